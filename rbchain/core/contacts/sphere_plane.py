"""Contact of a sphere on a body with a plane of the world: an element with a normal and two tangents.

The witness point is the point of the sphere that is closest to the plane. It moves on the body. The directions are
constant.
"""

import math

from ...compiling.jit import kernel
from ..lanes.lanes import full_like, zeros_like
from ..spatial.storage import load3, load_motion, number3
from ..spatial.vectors import add3, cross, dot, length, rotate, scale3, size, subtract3
from ..tree import frame_layout as frame
from ..tree.kinematics import body_axes
from . import contact_layout as contact, element_layout as element
from .contact_points import ContactLengths, ContactPoints, acceleration_of_point

# --- numbers of an element ---
POINT = element.NUMBER_SHAPE  # 3: center in the axes of the body, m
RADIUS = element.NUMBER_SHAPE + 3  # m
PLANE_POINT = element.NUMBER_SHAPE + 4  # 3: in world axes, m
PLANE_NORMAL = element.NUMBER_SHAPE + 7  # 3: unit vectors in world axes; the normal points away from the plane
PLANE_TANGENT_A, PLANE_TANGENT_B = element.NUMBER_SHAPE + 10, element.NUMBER_SHAPE + 13  # 3 each


@kernel
def points_of_sphere_on_plane(e, model, contacts, numbers, work, k):
    """Return the ContactPoints: see `points_of_contact`."""
    i, at = contacts.table[element.DOF, e], contacts.table[element.NUMBERS, e]
    n = number3(numbers, at + PLANE_NORMAL, k)
    center = rotate(body_axes(i, model, work, k), number3(numbers, at + POINT, k))
    lowest = subtract3(center, scale3(numbers[at + RADIUS, k], n))
    above = subtract3(add3(load3(work.dof, i, frame.POSITION, k), lowest), number3(numbers, at + PLANE_POINT, k))
    return ContactPoints(subtract3(n, n), lowest, n, dot(n, above))


@kernel
def tangents_of_plane(at, numbers, k):
    """Return the tangents, two vectors (3): see `tangents_of_contact`."""
    return number3(numbers, at + PLANE_TANGENT_A, k), number3(numbers, at + PLANE_TANGENT_B, k)


@kernel
def accelerations_of_sphere_on_plane(e, model, contacts, numbers, work, k):
    """Return the accelerations: see `accelerations_of_contact`.

    The point has the velocity v_c - omega x r n. The normal n is constant, so the derivative of this velocity is
    a_c - alpha x r n.
    """
    table, rows, dof = contacts.table, contacts.rows, work.dof
    i, at = table[element.DOF, e], table[element.NUMBERS, e]
    n = number3(numbers, at + PLANE_NORMAL, k)
    below = scale3(numbers[at + RADIUS, k], n)
    center = add3(load3(rows, table[element.ROW, e], contact.LEVER, k), below)
    v, a = load_motion(dof, i, frame.V, k), load_motion(dof, i, frame.A, k)
    change = subtract3(acceleration_of_point(v, a, center), cross(a.ang, below))
    change = subtract3(change, load_motion(dof, table[element.OTHER, e], frame.A, k).lin)
    return dot(n, change), change


@kernel
def lengths_of_sphere_on_plane(at, numbers, k):
    """Return the ContactLengths. The gap moves with the center."""
    point, radius = number3(numbers, at + POINT, k), numbers[at + RADIUS, k]
    lengths = size(point) + size(number3(numbers, at + PLANE_POINT, k)) + radius
    return ContactLengths(lengths, zeros_like(radius), length(point), full_like(radius, math.inf))
