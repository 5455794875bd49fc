"""The points at which a contact acts on its two bodies, and the lengths of its shape."""

from typing import NamedTuple

from ...compiling.jit import kernel
from ..spatial.vectors import add3, cross, motion_at_tip


class ContactPoints(NamedTuple):
    """The witness points of a contact: the points of two bodies between which the gap is measured.

    `first` and `second` (3) are the levers from the joint origins of the bodies to the points, m. `first` is not used
    if the first body is the world. `normal` (3) is the unit vector along which the second body moves away from the
    first. `gap` is the distance, negative in a penetration, m. All are in world axes.
    """

    first: tuple
    second: tuple
    normal: tuple
    gap: float


class ContactLengths(NamedTuple):
    """Lengths of the shape of a contact, m.

    `size` is the sum of the absolute values of the lengths that cancel in the gap. `first_reach` and `second_reach` are
    the distances of the points with which the gap moves from the joint origins of the first and the second body. These
    are the largest distances if the points move on the bodies. The distance is zero for the world. `turning` is the
    distance over which a motion of the points turns the normal by about 1 rad, if the gap is zero. It increases with
    the gap, and is infinite if the normal is constant. If the points move on the bodies, it is at most the distance
    over which they move by about the size of the shape.
    """

    size: float
    first_reach: float
    second_reach: float
    turning: float


@kernel
def acceleration_of_point(v, a, lever):
    """Return the acceleration of a point of a body, m/s^2, from the motion of its frame and the lever to the point.

    v and a are the velocity and the acceleration of the frame as Motion values at its joint origin. The lever (3) is in
    m. All are in world axes.
    """
    return add3(motion_at_tip(a, lever).lin, cross(v.ang, motion_at_tip(v, lever).lin))
