"""Geometric Jacobians of points, and their rates (Siciliano et al. 2009, *Robotics*, sections 3.1 and 7.2).

Column i is the velocity of the point, and the angular velocity of its body, that a unit velocity of joint i gives. The
point may be watched from another body: then only the joints on the path between the two count, and those on the other
body's side count against.
"""

from typing import NamedTuple

from ..simd.jit import kernel
from ..simd.lanes import constant_like
from ..spatial.storage import load3, load9, load_motion
from ..spatial.vectors import add3, cross, motion_at_tip, rotate, subtract3, z_axis
from ..tree.joints import joint_motion
from ..tree.kinematics import body_axes, move_dof, place_about_first_joint, rotate_dof
from ..tree.layout import PARAM_ADVANCE, ROW_LEVER, ROW_POSITION, ROW_R, ROW_V, parameter


class Point(NamedTuple):
    """A point in the axes of a body, and the observer's body: each by its last degree of freedom, n for the world."""

    dof: int
    observer: int
    place: tuple


@kernel
def jacobian(model, q, point, J, work, k):
    """J (6, n, lanes): velocity, then angular velocity, in world axes. Entries that are not written stay zero."""
    for i in range(model.parent.shape[0]):
        rotate_dof(i, model, q, work, k)
        place_about_first_joint(i, model, work, k)
    _, tip = arm_and_tip(point, model, work, k)
    i, j = point.dof, point.observer
    while i != j:  # up both branches to where they meet; a parent's number is smaller, but for the world's
        if counts_first(i, j, model):
            store_column(i, J, k, column(i, model, tip, work, k))
            i = model.parent[i]
        else:
            store_column(j, J, k, negative(column(j, model, tip, work, k)))
            j = model.parent[j]


@kernel
def jacobian_derivative(model, q, qd, point, J, work, k):
    """Time derivative of the `jacobian`, written to J (6, n, lanes)."""
    for i in range(model.parent.shape[0]):
        move_dof(i, model, q, qd, work, k)
        place_about_first_joint(i, model, work, k)
    arm, tip = arm_and_tip(point, model, work, k)
    velocity = motion_at_tip(load_motion(work.dof, point.dof, ROW_V, k), arm).lin
    i, j = point.dof, point.observer
    while i != j:
        if counts_first(i, j, model):
            store_column(i, J, k, column_rate(i, model, tip, velocity, work, k))
            i = model.parent[i]
        else:
            store_column(j, J, k, negative(column_rate(j, model, tip, velocity, work, k)))
            j = model.parent[j]


@kernel
def arm_and_tip(point, model, work, k):
    """The point from its body's origin, and from the first joint, in world axes."""
    arm = rotate(body_axes(point.dof, model, work, k), point.place)
    if point.dof == model.parent.shape[0]:
        return arm, subtract3(arm, load3(work.dof, 0, ROW_LEVER, k))
    return arm, add3(load3(work.dof, point.dof, ROW_POSITION, k), arm)


@kernel
def counts_first(i, j, model):
    """Whether body i, rather than j, is the next to go to the parent of on the way to where both meet."""
    n = model.parent.shape[0]
    return j == n or (i != n and i > j)


@kernel
def column(i, model, tip, work, k):
    """Velocity and angular velocity that joint i gives to the tip: S_i moved there."""
    dof = work.dof
    axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    S = motion_at_tip(joint_motion(model.joint[i], axis, advance), subtract3(tip, load3(dof, i, ROW_POSITION, k)))
    return S.lin, S.ang


@kernel
def column_rate(i, model, tip, velocity, work, k):
    """The rate of `column`: the axis turns with the body, the joint and the tip move apart."""
    dof, joint, v = work.dof, model.joint[i], load_motion(work.dof, i, ROW_V, k)
    axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    turned = joint_motion(joint, cross(v.ang, axis), advance)
    S = motion_at_tip(turned, subtract3(tip, load3(dof, i, ROW_POSITION, k)))
    apart = cross(joint_motion(joint, axis, advance).ang, subtract3(velocity, v.lin))
    return add3(S.lin, apart), S.ang


@kernel
def negative(velocities):
    v, w = velocities
    return (-v[0], -v[1], -v[2]), (-w[0], -w[1], -w[2])


@kernel
def store_column(i, J, k, velocities):
    for axis in range(3):
        J[axis, i, k] = velocities[0][axis]
        J[3 + axis, i, k] = velocities[1][axis]


@kernel
def point_in(numbers, point):
    """A Point in the precision of `numbers` from (dof, observer, x, y, z)."""
    dof, observer, x, y, z = point
    return Point(dof, observer, (constant_like(numbers, x), constant_like(numbers, y), constant_like(numbers, z)))
