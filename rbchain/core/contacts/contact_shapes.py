"""The shapes of contacts: each function here calls the function of the shape of an element.

A shape is a file of this package. It contains the numbers of its elements, and a function for each function here. The
first body of a shape that touches a plane is the world. All vectors are in world axes. R, POSITION, V and A are rows of
the working memory.

The search for contacts within steps (`core.motion.contact_search`) assumes that a gap is the smallest of the distances
of the points of the bodies, or of a point and a plane, up to a constant. `bend_of_contact` bounds how it bends.

`contact_layout` describes the arguments. `numbers` (count, lanes) contains the numbers of the shape, which the file of
the shape describes.
"""

from ...compiling.jit import kernel
from ..lanes.lanes import zeros_like
from . import element_layout as element
from .capsules import (
    accelerations_of_capsules,
    bend_of_capsules,
    lengths_of_capsules,
    points_of_capsules,
)
from .ellipsoid_plane import (
    accelerations_of_ellipsoid_on_plane,
    bend_of_ellipsoid_on_plane,
    lengths_of_ellipsoid_on_plane,
    points_of_ellipsoid_on_plane,
)
from .sphere_plane import (
    accelerations_of_sphere_on_plane,
    lengths_of_sphere_on_plane,
    points_of_sphere_on_plane,
    tangents_of_plane,
)
from .sphere_sphere import (
    accelerations_of_spheres,
    lengths_of_spheres,
    points_of_spheres,
    tangents_of_spheres,
)

# Values of element.KIND.
SPHERE_PLANE, SPHERE_SPHERE, ELLIPSOID_PLANE, CAPSULES = range(element.FIRST_SHAPE, element.FIRST_SHAPE + 4)


@kernel
def points_of_contact(e, model, contacts, numbers, work, k):
    """Return the ContactPoints. Reads R and POSITION."""
    if contacts.table[element.KIND, e] == SPHERE_PLANE:
        return points_of_sphere_on_plane(e, model, contacts, numbers, work, k)
    if contacts.table[element.KIND, e] == ELLIPSOID_PLANE:
        return points_of_ellipsoid_on_plane(e, model, contacts, numbers, work, k)
    if contacts.table[element.KIND, e] == CAPSULES:
        return points_of_capsules(e, model, contacts, numbers, work, k)
    return points_of_spheres(e, model, contacts, numbers, work, k)


@kernel
def tangents_of_contact(e, n, contacts, numbers, k):
    """Return two unit vectors (3) that form a right-handed frame with the normal n (3), in world axes."""
    if contacts.table[element.KIND, e] == SPHERE_SPHERE or contacts.table[element.KIND, e] == CAPSULES:
        return tangents_of_spheres(n)
    return tangents_of_plane(contacts.table[element.NUMBERS, e], numbers, k)


@kernel
def accelerations_of_contact(e, model, contacts, numbers, work, k):
    """Return d u / dt of the row of the normal n, and d w / dt, m/s^2.

    w (3) is the velocity of the second body relative to the first at the points of contact, and u = n . w. The rate
    of w contains the motion of the points on the bodies: a point that moves with a velocity c relative to its body has
    the acceleration `acceleration_of_point` + omega x c. The derivative of u contains w . dn/dt. Reads R, POSITION, V,
    A and the levers of `update_jacobian`. A may contain gravity, even in the row of the world.
    """
    if contacts.table[element.KIND, e] == SPHERE_PLANE:
        return accelerations_of_sphere_on_plane(e, model, contacts, numbers, work, k)
    if contacts.table[element.KIND, e] == ELLIPSOID_PLANE:
        return accelerations_of_ellipsoid_on_plane(e, model, contacts, numbers, work, k)
    if contacts.table[element.KIND, e] == CAPSULES:
        return accelerations_of_capsules(e, model, contacts, numbers, work, k)
    return accelerations_of_spheres(e, model, contacts, numbers, work, k)


@kernel
def lengths_of_contact(e, contacts, numbers, k):
    """Return the ContactLengths."""
    if contacts.table[element.KIND, e] == SPHERE_PLANE:
        return lengths_of_sphere_on_plane(contacts.table[element.NUMBERS, e], numbers, k)
    if contacts.table[element.KIND, e] == ELLIPSOID_PLANE:
        return lengths_of_ellipsoid_on_plane(contacts.table[element.NUMBERS, e], numbers, k)
    if contacts.table[element.KIND, e] == CAPSULES:
        return lengths_of_capsules(contacts.table[element.NUMBERS, e], numbers, k)
    return lengths_of_spheres(contacts.table[element.NUMBERS, e], numbers, k)


@kernel
def bend_of_contact(e, speed, turn, model, contacts, numbers, work, k):
    """Return by how much the second derivative of the gap may be below the accelerations of fixed points, m per step^2.

    The points of the bodies with which the gap moves have at most the relative velocity `speed`, m per step, and the
    bodies rotate by at most `turn`, rad per step. The result is zero if the points are fixed to the bodies. Reads R and
    POSITION.
    """
    if contacts.table[element.KIND, e] == ELLIPSOID_PLANE:
        return bend_of_ellipsoid_on_plane(e, turn, model, contacts, numbers, work, k)
    if contacts.table[element.KIND, e] == CAPSULES:
        return bend_of_capsules(e, speed, turn, model, contacts, numbers, work, k)
    return zeros_like(turn)
