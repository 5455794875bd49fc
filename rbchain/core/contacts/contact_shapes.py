"""The shapes of contacts: each function here calls the function of the shape of an element.

A shape is a file of this package. It contains the numbers of its elements, and a function for each function here. The
first body of a shape that touches a plane is the world. All vectors are in world axes. R, POSITION, V and A are rows of
the working memory.

The search for contacts within steps (`core.motion.contact_search`) assumes that a gap is the distance of two points, or
of a point and a plane, up to a constant.

`contact_layout` describes the arguments. `numbers` (count, lanes) contains the numbers of the shape, which the file of
the shape describes.
"""

import math

from ...compiling.jit import kernel
from . import element_layout as element
from .sphere_plane import (
    accelerations_of_sphere_on_plane,
    points_of_sphere_on_plane,
    reaches_of_sphere_on_plane,
    size_of_sphere_on_plane,
    tangents_of_plane,
)
from .sphere_sphere import (
    accelerations_of_spheres,
    distance_of_centers,
    points_of_spheres,
    reaches_of_spheres,
    size_of_spheres,
    tangents_of_spheres,
)

# Values of element.KIND.
SPHERE_PLANE, SPHERE_SPHERE = element.FIRST_SHAPE, element.FIRST_SHAPE + 1


@kernel
def points_of_contact(e, model, contacts, numbers, work, k):
    """Return the ContactPoints. Reads R and POSITION."""
    if contacts.table[element.KIND, e] == SPHERE_PLANE:
        return points_of_sphere_on_plane(e, model, contacts, numbers, work, k)
    return points_of_spheres(e, model, contacts, numbers, work, k)


@kernel
def tangents_of_contact(e, n, contacts, numbers, k):
    """Return two unit vectors (3) that form a right-handed frame with the normal n (3), in world axes."""
    if contacts.table[element.KIND, e] == SPHERE_PLANE:
        return tangents_of_plane(contacts.table[element.NUMBERS, e], numbers, k)
    return tangents_of_spheres(n)


@kernel
def accelerations_of_contact(e, model, contacts, numbers, work, k):
    """Return d u / dt of the row of the normal n, and d w / dt, m/s^2.

    w (3) is the velocity of the second body relative to the first at the points of contact, and u = n . w. The rate
    of w contains the motion of the points on the bodies: a point that moves with a velocity c relative to its body has
    the acceleration `acceleration_of_point` + omega x c. The derivative of u contains w . dn/dt. Reads R, POSITION, V,
    A and the levers of `update_jacobian`. A may contain gravity, also in the row of the world.
    """
    if contacts.table[element.KIND, e] == SPHERE_PLANE:
        return accelerations_of_sphere_on_plane(e, model, contacts, numbers, work, k)
    return accelerations_of_spheres(e, model, contacts, numbers, work, k)


@kernel
def size_of_contact(e, contacts, numbers, k):
    """Return the sum of the absolute values of the lengths of the shape that cancel in the gap, m."""
    if contacts.table[element.KIND, e] == SPHERE_PLANE:
        return size_of_sphere_on_plane(contacts.table[element.NUMBERS, e], numbers, k)
    return size_of_spheres(contacts.table[element.NUMBERS, e], numbers, k)


@kernel
def reaches_of_contact(e, contacts, numbers, k):
    """Return the distances of the points with which the gap moves from the first and the second joint origin, m.

    These are the largest distances if the points move on the bodies. The distance is zero for the world.
    """
    if contacts.table[element.KIND, e] == SPHERE_PLANE:
        return reaches_of_sphere_on_plane(contacts.table[element.NUMBERS, e], numbers, k)
    return reaches_of_spheres(contacts.table[element.NUMBERS, e], numbers, k)


@kernel
def turning_distance(e, gap, contacts, numbers, k):
    """Return the distance over which a motion of the points turns the normal by about 1 rad, m.

    It is infinite if the normal is constant.
    """
    if contacts.table[element.KIND, e] == SPHERE_PLANE:
        return math.inf
    return distance_of_centers(gap, contacts.table[element.NUMBERS, e], numbers, k)
