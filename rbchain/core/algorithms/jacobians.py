"""Jacobians: compute the geometric Jacobian of a point and its time derivative, to map qd to velocities.

Column i is the velocity of the point and the angular velocity of its body for a unit velocity of dof i. Velocities may
be relative to an observer's body. Only the dofs on the path between the two bodies then have columns other than zero,
and the columns of the observer's branch have the opposite sign. Source: Siciliano et al. (2009), *Robotics*, sections
3.1 and 7.2.
"""

from typing import NamedTuple

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like
from ..spatial.storage import load3, load9, load_motion
from ..spatial.vectors import add3, cross, motion_at_tip, rotate, subtract3, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import joint_motion
from ..tree.kinematics import body_axes, move_dof, place_about_first_joint, rotate_dof
from ..tree.layout import parameter


class Point(NamedTuple):
    """A point on a body, and the body of the observer.

    `dof` and `observer` are the last dofs of the two bodies, or n for the world. `position` (3) is the position of
    the point in body axes, m.
    """

    dof: int
    observer: int
    position: tuple


@kernel
def jacobian(model, q, point, J, work, k):
    """Compute the Jacobian J (6, n, lanes): rows of velocity, then of angular velocity, in world axes.

    J must start as zeros: only the columns of dofs on the path between the point's body and the observer are written. J
    qd is in m/s and rad/s. `point` is a Point, and q is (nq, lanes).
    """
    for i in range(model.parent.shape[0]):
        rotate_dof(i, model, q, work, k)
        place_about_first_joint(i, model, work, k)
    store_jacobian(model, point, J, work, k)


@kernel
def store_jacobian(model, point, J, work, k):
    """Store the Jacobian of a point as `jacobian` does, from the kinematics of the dofs: reads R, LEVER and POSITION.

    J (6, n, lanes) must start as zeros, and `point` is a Point.
    """
    _, tip = offset_and_tip(point, model, work, k)
    i, j = point.dof, point.observer
    while i != j:  # go up both branches until they meet
        if comes_after(i, j, model):
            store_column(i, J, k, column(i, model, tip, work, k))
            i = model.parent[i]
        else:
            store_column(j, J, k, negative(column(j, model, tip, work, k)))
            j = model.parent[j]


@kernel
def jacobian_derivative(model, q, qd, point, J, work, k):
    """Compute the time derivative of the `jacobian`, as J (6, n, lanes), which must start as zeros.

    `point` is a Point, and q is (nq, lanes). J qd is in m/s^2 and rad/s^2.
    """
    for i in range(model.parent.shape[0]):
        move_dof(i, model, q, qd, work, k)
        place_about_first_joint(i, model, work, k)
    store_jacobian_derivative(model, point, J, work, k)


@kernel
def store_jacobian_derivative(model, point, J, work, k):
    """Store the result of `jacobian_derivative`, from the kinematics of the dofs: reads R, LEVER, POSITION and V.

    J (6, n, lanes) must start as zeros, and `point` is a Point.
    """
    offset, tip = offset_and_tip(point, model, work, k)
    velocity = motion_at_tip(load_motion(work.dof, point.dof, frame.V, k), offset).lin
    i, j = point.dof, point.observer
    while i != j:
        if comes_after(i, j, model):
            store_column(i, J, k, column_rate(i, model, tip, velocity, work, k))
            i = model.parent[i]
        else:
            store_column(j, J, k, negative(column_rate(j, model, tip, velocity, work, k)))
            j = model.parent[j]


@kernel
def offset_and_tip(point, model, work, k):
    """Compute the positions of the point relative to its body's origin and to the first joint origin, world axes, m.

    Both are vectors (3); `point` is a Point.
    """
    offset = rotate(body_axes(point.dof, model, work, k), point.position)
    if point.dof == model.parent.shape[0]:
        return offset, subtract3(offset, load3(work.dof, 0, frame.LEVER, k))
    return offset, add3(load3(work.dof, point.dof, frame.POSITION, k), offset)


@kernel
def comes_after(i, j, model):
    """Whether i comes after j in the order of the dofs, in which parents precede children and the world is first.

    The later dof cannot be an ancestor of the other dof, so loops go up the branch of the later dof.
    """
    n = model.parent.shape[0]
    return j == n or (i != n and i > j)


@kernel
def column(i, model, tip, work, k):
    """Compute the velocity and the angular velocity at the tip for a unit velocity of dof i: S_i at the tip.

    The results (3) and `tip` (3), m, which is the position from the first joint origin, are in world axes.
    """
    dof = work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    S = motion_at_tip(joint_motion(model.joint[i], axis, advance), subtract3(tip, load3(dof, i, frame.POSITION, k)))
    return S.lin, S.ang


@kernel
def column_rate(i, model, tip, velocity, work, k):
    """Compute the rate of `column`: the axis turns with its body, and the tip moves relative to the joint origin.

    `tip` (3) is as for `column`. `velocity` (3) is the velocity of the tip in world axes, m/s.
    """
    dof, joint, v = work.dof, model.joint[i], load_motion(work.dof, i, frame.V, k)
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    S_rate = joint_motion(joint, cross(v.ang, axis), advance)
    S = motion_at_tip(S_rate, subtract3(tip, load3(dof, i, frame.POSITION, k)))
    relative = cross(joint_motion(joint, axis, advance).ang, subtract3(velocity, v.lin))
    return add3(S.lin, relative), S.ang


@kernel
def negative(velocities):
    """Return a column (velocity (3), angular velocity (3)) with the opposite sign."""
    v, w = velocities
    return (-v[0], -v[1], -v[2]), (-w[0], -w[1], -w[2])


@kernel
def store_column(i, J, k, velocities):
    """Store (velocity (3), angular velocity (3)) as column i of J (6, n, lanes)."""
    for axis in range(3):
        J[axis, i, k] = velocities[0][axis]
        J[3 + axis, i, k] = velocities[1][axis]


@kernel
def point_in(numbers, point):
    """Return a Point in the precision of `numbers` from an array (5,): dof, observer, x, y, z.

    x, y and z are in body axes, m. `numbers` is any array of the block.
    """
    x, y, z = constant_like(numbers, point[2]), constant_like(numbers, point[3]), constant_like(numbers, point[4])
    return Point(int(point[0]), int(point[1]), (x, y, z))
