"""Contact of an ellipsoid or a disk on a body with a plane of the world: an element with a normal and two tangents.

The rows of a matrix A are the vectors of the semi-axes in body axes. One of them is zero for a disk. In the direction
of the normal n, with m = R^T n, the ellipsoid reaches from its center as far as its support function

    h(m) = |A m|        grad h = A^T d        d = A m / h

The witness point is the lowest point, center - R grad h. It moves on the body with the velocity

    -R (A^T (I - d d^T) A w) / h        w = dm/dt = R^T (n x omega)

A disk that lies flat on the plane has h = 0 and no unique lowest point. Its witness point is then its center.

Source: the support function is in Boyd and Vandenberghe (2004), "Convex Optimization", section 3.3.
"""

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, select, zeros_like
from ..spatial.storage import load3, load_motion, number3
from ..spatial.vectors import add3, cross, dot, length, rotate, rotate_back, scale3, size, subtract3
from ..tree import frame_layout as frame
from ..tree.kinematics import body_axes
from . import contact_layout as contact, element_layout as element
from .contact_points import ContactLengths, ContactPoints, acceleration_of_point
from .sphere_plane import PLANE_NORMAL, PLANE_POINT, POINT, RADIUS

# --- numbers of an element: those of a sphere on a plane, with the largest semi-axis as the radius, and ---
SMALLEST = element.NUMBER_SHAPE + 16  # smallest semi-axis, or a small number for a disk, m
SEMI_AXES = element.NUMBER_SHAPE + 17  # 9: three vectors in the axes of the body, m

# The smallest semi-axis of a disk, as a fraction of its radius. Radii of curvature are then finite.
THINNEST = 1e-12
# A disk lies flat if h is smaller than this fraction of its radius.
LEAST_TILT = 1e-12


@kernel
def points_of_ellipsoid_on_plane(e, model, contacts, numbers, work, k):
    """Return the ContactPoints: see `points_of_contact`."""
    i, at = contacts.table[element.DOF, e], contacts.table[element.NUMBERS, e]
    n, R = number3(numbers, at + PLANE_NORMAL, k), body_axes(i, model, work, k)
    d, h = reach_of_ellipsoid(at, rotate_back(R, n), numbers, k)
    center = rotate(R, number3(numbers, at + POINT, k))
    above = subtract3(add3(load3(work.dof, i, frame.POSITION, k), center), number3(numbers, at + PLANE_POINT, k))
    lowest = subtract3(center, rotate(R, sum_of_semi_axes(at, d, numbers, k)))
    return ContactPoints(subtract3(n, n), lowest, n, dot(n, above) - h)


@kernel
def reach_of_ellipsoid(at, m, numbers, k):
    """Return d (3) and h for a unit vector m (3) in body axes. d is zero if a disk lies flat."""
    along = products_with_semi_axes(at, m, numbers, k)
    h = length(along)
    return scale3(inverse_reach(at, h, numbers, k), along), h


@kernel
def inverse_reach(at, h, numbers, k):
    """Return 1 / h, or zero if a disk lies flat."""
    one, tilted = constant_like(h, 1.0), h > constant_like(h, LEAST_TILT) * numbers[at + RADIUS, k]
    return select(tilted, one / select(tilted, h, one + zeros_like(h)), zeros_like(h))


@kernel
def products_with_semi_axes(at, a, numbers, k):
    """Return A a (3) for a vector a (3) in body axes."""
    return (
        dot(number3(numbers, at + SEMI_AXES, k), a),
        dot(number3(numbers, at + SEMI_AXES + 3, k), a),
        dot(number3(numbers, at + SEMI_AXES + 6, k), a),
    )


@kernel
def sum_of_semi_axes(at, x, numbers, k):
    """Return A^T x (3), in body axes, for three numbers x."""
    first = scale3(x[0], number3(numbers, at + SEMI_AXES, k))
    second = scale3(x[1], number3(numbers, at + SEMI_AXES + 3, k))
    return add3(add3(first, second), scale3(x[2], number3(numbers, at + SEMI_AXES + 6, k)))


@kernel
def accelerations_of_ellipsoid_on_plane(e, model, contacts, numbers, work, k):
    """Return the accelerations: see `accelerations_of_contact`."""
    table, rows, dof = contacts.table, contacts.rows, work.dof
    i, at = table[element.DOF, e], table[element.NUMBERS, e]
    n, R = number3(numbers, at + PLANE_NORMAL, k), body_axes(i, model, work, k)
    v, a = load_motion(dof, i, frame.V, k), load_motion(dof, i, frame.A, k)
    d, h = reach_of_ellipsoid(at, rotate_back(R, n), numbers, k)
    turn = products_with_semi_axes(at, rotate_back(R, cross(n, v.ang)), numbers, k)
    across = scale3(inverse_reach(at, h, numbers, k), subtract3(turn, scale3(dot(d, turn), d)))
    drift = rotate(R, sum_of_semi_axes(at, across, numbers, k))
    change = acceleration_of_point(v, a, load3(rows, table[element.ROW, e], contact.LEVER, k))
    change = subtract3(change, cross(v.ang, drift))
    change = subtract3(change, load_motion(dof, table[element.OTHER, e], frame.A, k).lin)
    return dot(n, change), change


@kernel
def lengths_of_ellipsoid_on_plane(at, numbers, k):
    """Return the ContactLengths. A rotation by the smallest semi-axis over the largest one turns the lowest point."""
    point, largest = number3(numbers, at + POINT, k), numbers[at + RADIUS, k]
    lengths = size(point) + size(number3(numbers, at + PLANE_POINT, k)) + largest
    return ContactLengths(lengths, zeros_like(largest), length(point) + largest, numbers[at + SMALLEST, k])


@kernel
def bend_of_ellipsoid_on_plane(e, turn, model, contacts, numbers, work, k):
    """Return the bend: see `bend_of_contact`.

    The second derivative of h is at most a^2 / h, with the largest semi-axis a. A rotation changes h by at most a times
    its angle, and h is at least the smallest semi-axis.
    """
    at, R = contacts.table[element.NUMBERS, e], body_axes(contacts.table[element.DOF, e], model, work, k)
    largest = numbers[at + RADIUS, k]
    h = length(products_with_semi_axes(at, rotate_back(R, number3(numbers, at + PLANE_NORMAL, k)), numbers, k))
    return largest * largest / max(h - largest * turn, numbers[at + SMALLEST, k]) * (turn * turn)
