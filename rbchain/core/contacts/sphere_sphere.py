"""Contact of two spheres on two bodies, or on a body and the world: an element with or without tangents.

The normal is the direction of the line from the first to the second center. With tangents, the witness points are the
points of the spheres on this line. They move on the bodies. Without tangents, they are the centers, because forces
along the normal have the same effect there.
"""

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, nan_unless_finite, select
from ..spatial.storage import load3, load_motion, number3
from ..spatial.vectors import add3, cross, dot, length, motion_at_tip, rotate, scale3, size, subtract3
from ..tree import frame_layout as frame
from ..tree.kinematics import body_axes
from . import element_layout as element
from .contact_layout import has_tangents
from .contact_points import ContactLengths, ContactPoints, acceleration_of_point

# --- numbers of an element ---
POINT, OTHER_POINT = (
    element.NUMBER_SHAPE,
    element.NUMBER_SHAPE + 3,
)  # 3 each: centers of the second and the first sphere, body axes, m
RADII = element.NUMBER_SHAPE + 6  # sum of both radii, m
RADIUS, OTHER_RADIUS = element.NUMBER_SHAPE + 7, element.NUMBER_SHAPE + 8  # of the second and the first sphere, m

# Orthonormal vectors c, e_1 and e_2, from which the tangents follow. The normal is rarely close to -c.
TANGENT_AXES = (
    (0.38535395140033873, -0.5519934979518366, 0.7394629878222716),
    (0.0, -0.8013523601360025, -0.5981926068620864),
    (0.9227688400353284, 0.23051588475277437, -0.3088042984423959),
)


@kernel
def vector_on_body(i, at, model, numbers, work, k):
    """Return a vector (3) of body i in world axes, m, whose numbers in body axes start at `at`; n is the world.

    Reads R.
    """
    vector = number3(numbers, at, k)
    return vector if i == model.parent.shape[0] else rotate(body_axes(i, model, work, k), vector)


@kernel
def line_of_centers(e, model, contacts, numbers, work, k):
    """Return the levers of the first and the second center, and the direction and length of their line.

    Vectors (3) in world axes, m. The direction is a unit vector, or zero for concentric spheres. Reads R and POSITION.
    """
    table, at = contacts.table, contacts.table[element.NUMBERS, e]
    other, i = table[element.OTHER, e], table[element.DOF, e]
    first = vector_on_body(other, at + OTHER_POINT, model, numbers, work, k)
    second = vector_on_body(i, at + POINT, model, numbers, work, k)
    line = subtract3(
        add3(load3(work.dof, i, frame.POSITION, k), second), add3(load3(work.dof, other, frame.POSITION, k), first)
    )
    d = length(line)
    return first, second, scale3(constant_like(d, 1.0) / positive_length(d), line), d


@kernel
def positive_length(d):
    """Return the length d, or 1 if it is zero: concentric spheres penetrate, and their line has the direction zero."""
    one = constant_like(d, 1.0) + nan_unless_finite(d)
    return select(d > constant_like(d, 0.0), d, one)


@kernel
def points_of_spheres(e, model, contacts, numbers, work, k):
    """Return the ContactPoints: see `points_of_contact`."""
    first, second, n, d = line_of_centers(e, model, contacts, numbers, work, k)
    return points_around(first, second, n, d, e, contacts.table, numbers, k)


@kernel
def points_around(first, second, n, d, e, table, numbers, k):
    """Return the ContactPoints of two surfaces at the radii from two points on the bodies.

    `first` and `second` (3) are the levers to these points, n (3) is the direction of their line, d its length.
    """
    at = table[element.NUMBERS, e]
    if has_tangents(e, table):
        first = add3(first, scale3(numbers[at + OTHER_RADIUS, k], n))
        second = subtract3(second, scale3(numbers[at + RADIUS, k], n))
    return ContactPoints(first, second, n, d - numbers[at + RADII, k])


@kernel
def tangents_of_spheres(n):
    """Return the tangents, two vectors (3): see `tangents_of_contact`. They turn with the normal n (3).

    The smallest rotation from c to n turns e_i to t_i = e_i - (e_i . n) / (1 + c . n) (c + n). The tangents are smooth
    functions of n except at n = -c.
    """
    one = constant_like(n[0], 1.0)
    c, first, second = constant3(n, TANGENT_AXES[0]), constant3(n, TANGENT_AXES[1]), constant3(n, TANGENT_AXES[2])
    weight, middle = one / positive_length(one + dot(c, n)), add3(c, n)
    return (
        subtract3(first, scale3(weight * dot(first, n), middle)),
        subtract3(second, scale3(weight * dot(second, n), middle)),
    )


@kernel
def constant3(like, constants):
    """Return a constant vector (3) in the precision of the vector `like`."""
    x, y, z = constants
    return (constant_like(like[0], x), constant_like(like[0], y), constant_like(like[0], z))


@kernel
def accelerations_of_spheres(e, model, contacts, numbers, work, k):
    """Return the accelerations: see `accelerations_of_contact`.

    Let w be the velocity of the second center relative to the first, and u = n . w. The line of the centers has the
    length d and the direction n. It turns with dn/dt = (w - u n) / d, so du/dt = n . dw/dt + |w - u n|^2 / d.

    The point of the second sphere, with radius r, has the velocity v - omega x r n. The point of the first sphere has
    the velocity v + omega x r n.
    """
    table, dof, at = contacts.table, work.dof, contacts.table[element.NUMBERS, e]
    first, second, n, d = line_of_centers(e, model, contacts, numbers, work, k)
    other, i = table[element.OTHER, e], table[element.DOF, e]
    v, a = load_motion(dof, i, frame.V, k), load_motion(dof, i, frame.A, k)
    v_other, a_other = load_motion(dof, other, frame.V, k), load_motion(dof, other, frame.A, k)
    w = subtract3(motion_at_tip(v, second).lin, motion_at_tip(v_other, first).lin)
    change = subtract3(acceleration_of_point(v, a, second), acceleration_of_point(v_other, a_other, first))
    across = subtract3(w, scale3(dot(n, w), n))
    normal = dot(n, change) + dot(across, across) / positive_length(d)
    if has_tangents(e, table):
        turn = scale3(constant_like(d, 1.0) / positive_length(d), across)
        change = subtract3(change, acceleration_of_radii(n, turn, (v, a), (v_other, a_other), at, numbers, k))
    return normal, change


@kernel
def acceleration_of_radii(n, turn, motion, other_motion, at, numbers, k):
    """Return by how much the relative acceleration of two surfaces is below the one of `points_around`, m/s^2.

    n (3) is the normal, and `turn` (3) its rate, 1/s. `motion` and `other_motion` are the velocity and the acceleration
    of the second and the first body. The point of the second surface, with the radius r, has the velocity
    - omega x r n relative to the point on the body, and the point of the first surface omega x r n.
    """
    (v, a), (v_other, a_other) = motion, other_motion
    below = add3(cross(a.ang, n), cross(v.ang, turn))
    above = add3(cross(a_other.ang, n), cross(v_other.ang, turn))
    return add3(scale3(numbers[at + RADIUS, k], below), scale3(numbers[at + OTHER_RADIUS, k], above))


@kernel
def lengths_of_spheres(at, numbers, k):
    """Return the ContactLengths. The gap moves with the centers, and the normal turns with their line."""
    point, other_point, radii = (
        number3(numbers, at + POINT, k),
        number3(numbers, at + OTHER_POINT, k),
        numbers[at + RADII, k],
    )
    return ContactLengths(size(point) + size(other_point) + radii, length(other_point), length(point), radii)
