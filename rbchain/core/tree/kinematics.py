"""Forward kinematics: rotations, positions and velocities, in the outward sweep that every algorithm starts with."""

from ..simd.jit import kernel
from ..simd.lanes import constant_like, select
from ..spatial.storage import load3, load9, load_motion, store3, store9, store_spatial
from ..spatial.vectors import (
    Motion,
    add3,
    compose,
    force_at_root,
    motion_at_tip,
    next_axes,
    rotate,
    rotate_symmetric,
    scale3,
    subtract3,
    z_axis,
)
from .joints import (
    add_joint_motion,
    joint_motion,
    joint_rotation,
    joint_travel,
    normalize_quaternion,
    quaternion_rate,
    quaternion_rotation,
)
from .layout import (
    PARAM_ADVANCE,
    PARAM_AXIS,
    PARAM_CG,
    PARAM_INERTIA,
    PARAM_MASS,
    PARAM_PLACEMENT_ROTATION,
    PARAM_PLACEMENT_TRANSLATION,
    POSING_CARRIED,
    POSING_FREE,
    POSING_OWN,
    POSING_SPHERICAL,
    ROW_LEVER,
    ROW_POSITION,
    ROW_R,
    ROW_V,
    parameter,
    parameter3,
    parameter6,
    parameter9,
)


@kernel
def rotate_dof(i, model, q, work, k):
    """Rotation of body i, R_i = R_parent placement rot(z, q), and the lever from the parent's joint origin to its own.

    Reads R of the parent; writes R and LEVER of body i.
    """
    p, posing, numbers, dof = model.parent[i], model.posing[i], model.parameters, work.dof
    R_parent = load9(dof, p, ROW_R, k)
    if posing == POSING_CARRIED:
        zero = constant_like(dof, 0.0)
        store9(dof, i, ROW_R, k, next_axes(R_parent))
        store3(dof, i, ROW_LEVER, k, (zero, zero, zero))
        return
    joint, at = model.joint[i], model.coordinate[i]
    R_joint = compose(R_parent, parameter9(numbers, i, PARAM_PLACEMENT_ROTATION, k))
    lever = rotate(R_parent, parameter3(numbers, i, PARAM_PLACEMENT_TRANSLATION, k))
    if posing == POSING_OWN:
        lever = joint_travel(joint, lever, z_axis(R_joint), parameter(numbers, i, PARAM_ADVANCE, k), q[at, k])
        R_body = joint_rotation(joint, R_joint, q[at, k])
    else:
        if posing == POSING_FREE:
            lever = add3(lever, rotate(R_joint, (q[at, k], q[at + 1, k], q[at + 2, k])))
            at += 3
        turn = quaternion_rotation(q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k])
        R_body = next_axes(compose(R_joint, turn))
    store9(dof, i, ROW_R, k, R_body)
    store3(dof, i, ROW_LEVER, k, lever)


@kernel
def move_dof(i, model, q, qd, work, k):
    """Rotation of body i, and its velocity v_i = v_parent + S_i qd_i (Featherstone 2008, eq. 5.14).

    All bodies of a free or spherical joint have the velocity of the last of them, with which their axes move: so the
    rate of every axis is v_i x S_i. Reads R and V of the parent; writes R, LEVER and V of body i.
    """
    p, posing, dof = model.parent[i], model.posing[i], work.dof
    rotate_dof(i, model, q, work, k)
    v = load_motion(dof, p, ROW_V, k)
    if posing != POSING_CARRIED:
        v = motion_at_tip(v, load3(dof, i, ROW_LEVER, k))
        axes = load9(dof, i, ROW_R, k)
        if posing == POSING_OWN:
            advance = parameter(model.parameters, i, PARAM_ADVANCE, k)
            v = add_joint_motion(model.joint[i], v, z_axis(axes), advance, qd[i, k])
        elif posing == POSING_FREE:
            slide, turn = (qd[i + 1, k], qd[i + 2, k], qd[i, k]), (qd[i + 4, k], qd[i + 5, k], qd[i + 3, k])
            v = Motion(add3(v.ang, rotate(axes, turn)), add3(v.lin, rotate(axes, slide)))
        else:
            v = Motion(add3(v.ang, rotate(axes, (qd[i + 1, k], qd[i + 2, k], qd[i, k]))), v.lin)
    store_spatial(dof, i, ROW_V, k, v)


@kernel
def force_on_parent(i, f, model, work, k):
    """f on body i, referred to its parent's joint origin."""
    if model.posing[i] == POSING_CARRIED:  # both are at the same point
        return f
    return force_at_root(f, load3(work.dof, i, ROW_LEVER, k))


@kernel
def axis_motion(i, model, work, k):
    """S of joint i (reads R)."""
    axis, advance = z_axis(load9(work.dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    return joint_motion(model.joint[i], axis, advance)


@kernel
def position_rates(model, q, qd, rate, k):
    """dq/dt from the velocities: the same numbers, but for the quaternions and the position of a free joint."""
    for i in range(model.parent.shape[0]):
        posing, at = model.posing[i], model.coordinate[i]
        if posing == POSING_OWN:
            rate[at, k] = qd[i, k]
        elif posing == POSING_FREE:
            slide, turn = (qd[i, k], qd[i + 1, k], qd[i + 2, k]), (qd[i + 3, k], qd[i + 4, k], qd[i + 5, k])
            x, y, z, w = q[at + 3, k], q[at + 4, k], q[at + 5, k], q[at + 6, k]
            v = rotate(quaternion_rotation(x, y, z, w), slide)
            rate[at, k], rate[at + 1, k], rate[at + 2, k] = v
            store_quaternion(rate, at + 3, k, quaternion_rate(x, y, z, w, turn))
        elif posing == POSING_SPHERICAL:
            turn = (qd[i, k], qd[i + 1, k], qd[i + 2, k])
            x, y, z, w = q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k]
            store_quaternion(rate, at, k, quaternion_rate(x, y, z, w, turn))


@kernel
def normalize_positions(model, q, k):
    """Give the quaternions in q unit length, which steps of an integrator and interpolation do not keep."""
    for i in range(model.parent.shape[0]):
        posing, at = model.posing[i], model.coordinate[i]
        if posing == POSING_FREE:
            normalize_quaternion(q, at + 3, k)
        elif posing == POSING_SPHERICAL:
            normalize_quaternion(q, at, k)


@kernel
def reset_quaternions(model, q, k):
    """Make the quaternions in q those of no rotation."""
    for i in range(model.parent.shape[0]):
        posing, at = model.posing[i], model.coordinate[i]
        if posing == POSING_FREE:
            at += 3
        if posing in (POSING_FREE, POSING_SPHERICAL):
            zero = constant_like(q, 0.0)
            store_quaternion(q, at, k, (zero, zero, zero, constant_like(q, 1.0)))


@kernel
def store_quaternion(q, at, k, quaternion):
    q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k] = quaternion


@kernel
def place_dof(i, model, work, k):
    """Add up the levers: POSITION of body i in the world from its parent's."""
    dof = work.dof
    store3(dof, i, ROW_POSITION, k, add3(load3(dof, model.parent[i], ROW_POSITION, k), load3(dof, i, ROW_LEVER, k)))


@kernel
def body_poses(model, q, poses, work, k):
    """Pose of every body in the world: position (3) and rotation (9) of its own axes in poses (bodies, 12, lanes)."""
    for i in range(model.parent.shape[0]):
        rotate_dof(i, model, q, work, k)
        place_dof(i, model, work, k)
        b = model.body[i]
        if b >= 0:
            store3(poses, b, 0, k, load3(work.dof, i, ROW_POSITION, k))
            store9(poses, b, 3, k, body_axes(i, model, work, k))


@kernel
def body_axes(i, model, work, k):
    """Body i's own axes, turned back from those in which its joint's axis is z, to world axes (reads R)."""
    x, y, z = parameter3(model.parameters, i, PARAM_AXIS, k)
    one = constant_like(x, 1.0)
    # the flattening's `axes_along`, transposed
    sign = select(z >= constant_like(x, 0.0), one, -one)
    b, c = sign * y, sign * z
    d = one / (one + c)
    xy = -x * b * d
    back = (one - x * x * d, sign * xy, -sign * x, xy, sign * (one - b * b * d), -sign * b, x, sign * b, sign * c)
    return compose(load9(work.dof, i, ROW_R, k), back)


@kernel
def place_about_first_joint(i, model, work, k):
    """`place_dof`, but with positions that start at the first joint: far from the world's origin they keep digits."""
    dof, p, lever = work.dof, model.parent[i], load3(work.dof, i, ROW_LEVER, k)
    if p == model.parent.shape[0]:
        store3(dof, i, ROW_POSITION, k, subtract3(lever, load3(dof, 0, ROW_LEVER, k)))
    else:
        store3(dof, i, ROW_POSITION, k, add3(load3(dof, p, ROW_POSITION, k), lever))


@kernel
def body_velocities(model, q, qd, velocities, work, k):
    """Velocity of every body's origin (3) and angular velocity (3), world axes, in velocities (bodies, 6, lanes)."""
    for i in range(model.parent.shape[0]):
        move_dof(i, model, q, qd, work, k)
        b, v = model.body[i], load_motion(work.dof, i, ROW_V, k)
        if b >= 0:
            store3(velocities, b, 0, k, v.lin)
            store3(velocities, b, 3, k, v.ang)


@kernel
def rigid_inertia(i, model, work, k):
    """Mass, first moment and rotational inertia of body i about its joint origin, in world axes (reads R)."""
    numbers = model.parameters
    R_body = load9(work.dof, i, ROW_R, k)
    m = parameter(numbers, i, PARAM_MASS, k)
    if model.body[i] < 0:  # only there for its degree of freedom
        zero = R_body[0] - R_body[0]
        return m, (zero, zero, zero), (zero, zero, zero, zero, zero, zero)
    c = rotate(R_body, parameter3(numbers, i, PARAM_CG, k))
    h = scale3(m, c)
    J = rotate_symmetric(R_body, parameter6(numbers, i, PARAM_INERTIA, k))
    xx, yy, zz = h[0] * c[0], h[1] * c[1], h[2] * c[2]
    return m, h, (
        *(J[0] + (yy + zz), J[1] - h[0] * c[1], J[2] - h[0] * c[2]),
        *(J[3] + (xx + zz), J[4] - h[1] * c[2], J[5] + (xx + yy)),
    )  # fmt: skip
