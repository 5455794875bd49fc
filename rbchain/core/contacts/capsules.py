"""Contact of two capsules on two bodies, or on a body and the world: an element with or without tangents.

A capsule contains the points that are closer to a segment than its radius. The segments have the centers p and P and
the half axes a and A, so their points are p + s a and P + t A with s and t from -1 to 1. D is the vector from the
closest point of the first segment to the closest point of the second one, d its length, and n = D / d the normal. At a
point inside a segment, D is perpendicular to the segment: D . a = 0 or D . A = 0. The derivatives of these equations
give the velocities of s and t; at the end of a segment, they are zero. The gap has a continuous rate, and its second
derivative jumps where a closest point reaches an end.

With tangents, the witness points are the points of the surfaces on the line D; without tangents, the closest points of
the segments, because forces along the normal have the same effect there. Parallel capsules have no unique closest
points: the middle of the part of the first segment that is next to the second one is taken.

Source: Ericson (2005), "Real-Time Collision Detection", section 5.1.9, for the closest points.
"""

import math
from typing import NamedTuple

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, epsilon, full_like, select, zeros_like
from ..spatial.storage import load3, load_motion, number3
from ..spatial.vectors import add3, cross, dot, length, motion_at_tip, scale3, size, subtract3
from ..tree import frame_layout as frame
from . import element_layout as element
from .contact_layout import has_tangents
from .contact_points import ContactLengths, acceleration_of_point
from .sphere_sphere import (
    OTHER_POINT,
    POINT,
    RADII,
    acceleration_of_radii,
    points_around,
    positive_length,
    vector_on_body,
)

# --- numbers of an element: those of two spheres at the centers, and ---
HALF_AXIS = element.NUMBER_SHAPE + 9  # 3: from the center of the second segment to an end, body axes, m
OTHER_HALF_AXIS = element.NUMBER_SHAPE + 12  # 3: of the first segment

# Segments are parallel if the squared sine of their angle is below this multiple of epsilon.
PARALLEL = 4096.0
# The least sine of the angle of two segments in the bound of their gap.
LEAST_SINE = 1e-6


class Segments(NamedTuple):
    """The closest points of two segments, in world axes and m.

    * `first` and `second` (3) are the vectors from the joint origins of the bodies to the closest points.
    * `axis` and `other_axis` (3) are the half axes of the second and the first segment.
    * `line` (3) is D, `normal` (3) its direction, or zero for segments that meet, and `distance` its length.
    * `is_inside` and `other_is_inside` state whether the closest points of the second and the first segment move.
    """

    first: tuple
    second: tuple
    axis: tuple
    other_axis: tuple
    line: tuple
    normal: tuple
    distance: float
    is_inside: bool
    other_is_inside: bool


@kernel
def within_segment(x):
    """Return the number between -1 and 1 that is closest to x."""
    one = full_like(x, 1.0)
    return max(-one, min(one, x))


@kernel
def ratio(x, y):
    """Return x / y, or zero if y is not positive."""
    is_positive = y > zeros_like(y)
    return select(is_positive, x / select(is_positive, y, full_like(y, 1.0)), zeros_like(y))


@kernel
def closest_points(e, model, contacts, numbers, work, k):
    """Return the Segments of a contact. Reads R and POSITION."""
    table, at = contacts.table, contacts.table[element.NUMBERS, e]
    other, i = table[element.OTHER, e], table[element.DOF, e]
    first = vector_on_body(other, at + OTHER_POINT, model, numbers, work, k)
    second = vector_on_body(i, at + POINT, model, numbers, work, k)
    a = vector_on_body(other, at + OTHER_HALF_AXIS, model, numbers, work, k)
    b = vector_on_body(i, at + HALF_AXIS, model, numbers, work, k)
    between = subtract3(
        add3(load3(work.dof, i, frame.POSITION, k), second), add3(load3(work.dof, other, frame.POSITION, k), first)
    )
    aa, bb, ab, along_a, along_b = dot(a, a), dot(b, b), dot(a, b), dot(a, between), dot(b, between)
    sine, least = aa * bb - ab * ab, constant_like(aa, PARALLEL * epsilon(work.dof)) * (aa * bb)
    is_crossing = sine > least
    beside = within_segment(ratio(along_a + ab, aa)) + within_segment(ratio(along_a - ab, aa))
    crossing = ratio(bb * along_a - ab * along_b, select(is_crossing, sine, zeros_like(sine)))
    s = within_segment(select(is_crossing, crossing, constant_like(aa, 0.5) * beside))
    free_t = ratio(ab * s - along_b, bb)
    t = within_segment(free_t)
    is_cut = (abs(free_t) > full_like(t, 1.0)) | (bb <= zeros_like(bb))
    s = select(is_cut, within_segment(ratio(along_a + ab * t, aa)), s)
    one, zero = full_like(s, 1.0), zeros_like(s)
    is_inside = (abs(t) < one) & (bb > zero)
    other_is_inside = (abs(s) < one) & (aa > zero) & (is_crossing | ~is_inside)
    to_first, to_second = scale3(s, a), scale3(t, b)
    line = add3(between, subtract3(to_second, to_first))
    d = length(line)
    return Segments(
        first=add3(first, to_first),
        second=add3(second, to_second),
        axis=b,
        other_axis=a,
        line=line,
        normal=scale3(constant_like(d, 1.0) / positive_length(d), line),
        distance=d,
        is_inside=is_inside,
        other_is_inside=other_is_inside,
    )


@kernel
def points_of_capsules(e, model, contacts, numbers, work, k):
    """Return the ContactPoints: see `points_of_contact`."""
    found = closest_points(e, model, contacts, numbers, work, k)
    return points_around(found.first, found.second, found.normal, found.distance, e, contacts.table, numbers, k)


@kernel
def velocities_along_axes(found, w, turn, other_turn):
    """Return the velocities (3) with which the closest points move along the second and the first segment, m/s.

    w (3) is the velocity of the second body relative to the first one at the closest points, m/s, `turn` and
    `other_turn` (3) are the angular velocities of the bodies, rad/s. With dD/dt = w + t' A - s' a, the equations are

        dD/dt . A + D . (turn x A) = 0        dD/dt . a + D . (other_turn x a) = 0
    """
    a, b = found.other_axis, found.axis
    zero = zeros_like(found.distance)
    aa, bb, ab = dot(a, a), dot(b, b), dot(a, b)
    of_a = dot(w, a) + dot(found.line, cross(other_turn, a))
    of_b = dot(w, b) + dot(found.line, cross(turn, b))
    both = found.is_inside & found.other_is_inside
    determinant = select(both, aa * bb - ab * ab, zero)
    s_rate = select(
        both, ratio(bb * of_a - ab * of_b, determinant), select(found.other_is_inside, ratio(of_a, aa), zero)
    )
    t_rate = select(found.is_inside, ratio(ab * s_rate - of_b, bb), zero)
    return scale3(t_rate, b), scale3(s_rate, a)


@kernel
def accelerations_of_capsules(e, model, contacts, numbers, work, k):
    """Return the accelerations: see `accelerations_of_contact`.

    The normal turns with dn/dt = (dD/dt - u n) / d. With the velocities c and C of the closest points relative to the
    bodies, the acceleration of w is the difference of `acceleration_of_point` + omega x c of both bodies, and du/dt =
    n . dw/dt + dn/dt . w. The point of the surface of the second capsule has the velocity c - r (dn/dt - omega x n)
    relative to its body, with the radius r.
    """
    table, dof, at = contacts.table, work.dof, contacts.table[element.NUMBERS, e]
    found, one = closest_points(e, model, contacts, numbers, work, k), constant_like(numbers, 1.0)
    other, i, n, d = table[element.OTHER, e], table[element.DOF, e], found.normal, found.distance
    v, a = load_motion(dof, i, frame.V, k), load_motion(dof, i, frame.A, k)
    v_other, a_other = load_motion(dof, other, frame.V, k), load_motion(dof, other, frame.A, k)
    w = subtract3(motion_at_tip(v, found.second).lin, motion_at_tip(v_other, found.first).lin)
    drift, other_drift = velocities_along_axes(found, w, v.ang, v_other.ang)
    change = subtract3(
        add3(acceleration_of_point(v, a, found.second), cross(v.ang, drift)),
        add3(acceleration_of_point(v_other, a_other, found.first), cross(v_other.ang, other_drift)),
    )
    rate = add3(w, subtract3(drift, other_drift))
    turn = scale3(one / positive_length(d), subtract3(rate, scale3(dot(n, rate), n)))
    normal = dot(n, change) + dot(turn, w)
    if has_tangents(e, table):
        change = subtract3(change, acceleration_of_radii(n, turn, (v, a), (v_other, a_other), at, numbers, k))
    return normal, change


@kernel
def lengths_of_capsules(at, numbers, k):
    """Return the ContactLengths. The closest points may move along the whole segments."""
    point, other_point, radii = (
        number3(numbers, at + POINT, k),
        number3(numbers, at + OTHER_POINT, k),
        numbers[at + RADII, k],
    )
    axis, other_axis = number3(numbers, at + HALF_AXIS, k), number3(numbers, at + OTHER_HALF_AXIS, k)
    reach, other_reach = length(point) + length(axis), length(other_point) + length(other_axis)
    lengths = size(point) + size(other_point) + size(axis) + size(other_axis) + radii
    return ContactLengths(lengths, other_reach, reach, zeros_like(radii))


@kernel
def bend_of_capsules(e, speed, turn, model, contacts, numbers, work, k):
    """Return the bend: see `bend_of_contact`.

    The distance d of the closest points has the second derivative

        d'' = n . c - 2 v . h - d h . h        h . a = n . (omega_a x a)        h . A = n . (omega_b x A)

    The points of the bodies have the relative acceleration c and velocity v. The vector h is in the plane of both
    segments. Its length is at most turn (1 + 1 / sine), with the sine of the angle of the segments. It is at most
    `turn` if one segment is a point, or if one closest point is an end.
    """
    found = closest_points(e, model, contacts, numbers, work, k)
    a, b, one = found.other_axis, found.axis, full_like(turn, 1.0)
    aa, bb, ab = dot(a, a), dot(b, b), dot(a, b)
    square = ratio(aa * bb - ab * ab, aa * bb)
    sine = max(math.sqrt(max(square, zeros_like(square))) - turn, full_like(turn, LEAST_SINE))
    h = turn * select(aa * bb > zeros_like(aa), one + one / sine, one)
    farthest = found.distance + speed
    return h * (speed + speed + farthest * h)
