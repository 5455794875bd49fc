"""Forward kinematics: the outward sweep for poses and velocities at the start of every algorithm."""

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, nan_unless_finite, select
from ..spatial.storage import load3, load9, load_motion, store3, store9, store_spatial
from ..spatial.vectors import (
    Motion,
    add3,
    compose,
    force_at_root,
    motion_at_tip,
    permute_axes,
    rotate,
    rotate_back,
    rotate_symmetric,
    scale3,
    subtract3,
    z_axis,
)
from . import frame_layout as frame, parameter_layout as param
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
    POSING_CARRIED,
    POSING_FREE,
    POSING_OWN,
    POSING_SPHERICAL,
    parameter,
    parameter3,
    parameter6,
    parameter9,
)


@kernel
def rotate_dof(i, model, q, work, k):
    """Compute the pose of frame i relative to its parent: R_i = R_parent placement rot(z, q), and the lever.

    The lever is the vector from the parent's joint origin to the joint origin of dof i, in world axes, m. Reads R of
    the parent; writes R and LEVER. R (9) is in world axes, and q is (nq, lanes).
    """
    p, posing, parameters, dof = model.parent[i], model.posing[i], model.parameters, work.dof
    R_parent = load9(dof, p, frame.R, k)
    if posing == POSING_CARRIED:
        zero = constant_like(dof, 0.0)
        store9(dof, i, frame.R, k, permute_axes(R_parent))
        store3(dof, i, frame.LEVER, k, (zero, zero, zero))
        return
    joint, at = model.joint[i], model.coordinate[i]
    R_joint = compose(R_parent, parameter9(parameters, i, param.PLACEMENT_ROTATION, k))
    lever = rotate(R_parent, parameter3(parameters, i, param.PLACEMENT_TRANSLATION, k))
    if posing == POSING_OWN:
        lever = joint_travel(joint, lever, z_axis(R_joint), parameter(parameters, i, param.ADVANCE, k), q[at, k])
        R = joint_rotation(joint, R_joint, q[at, k])
    else:
        if posing == POSING_FREE:
            lever = add3(lever, rotate(R_joint, (q[at, k], q[at + 1, k], q[at + 2, k])))
            at += 3
        rotation = quaternion_rotation(q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k])
        R = permute_axes(compose(R_joint, rotation))
    store9(dof, i, frame.R, k, R)
    store3(dof, i, frame.LEVER, k, lever)


@kernel
def move_dof(i, model, q, qd, work, k):
    """Compute the pose and the velocity of frame i: v_i = v_parent + S_i qd_i (Featherstone 2008, eq. 5.14).

    All frames of a free or spherical joint have the velocity of its body, because they are fixed in the body. The rate
    of each axis is therefore v_i x S_i. Reads R and V of the parent; writes R, LEVER and V. V is in world axes, at the
    joint origin. q is (nq, lanes) and qd (n, lanes).
    """
    p, posing, dof = model.parent[i], model.posing[i], work.dof
    rotate_dof(i, model, q, work, k)
    v = load_motion(dof, p, frame.V, k)
    if posing != POSING_CARRIED:
        v = motion_at_tip(v, load3(dof, i, frame.LEVER, k))
        axes = load9(dof, i, frame.R, k)
        if posing == POSING_OWN:
            advance = parameter(model.parameters, i, param.ADVANCE, k)
            v = add_joint_motion(model.joint[i], v, z_axis(axes), advance, qd[i, k])
        elif posing == POSING_FREE:
            lin, ang = (qd[i + 1, k], qd[i + 2, k], qd[i, k]), (qd[i + 4, k], qd[i + 5, k], qd[i + 3, k])
            v = Motion(add3(v.ang, rotate(axes, ang)), add3(v.lin, rotate(axes, lin)))
        else:
            v = Motion(add3(v.ang, rotate(axes, (qd[i + 1, k], qd[i + 2, k], qd[i, k]))), v.lin)
    store_spatial(dof, i, frame.V, k, v)


@kernel
def force_on_parent(i, f, model, work, k):
    """Refer a force f at the joint origin of dof i to its parent's joint origin (reads LEVER).

    Both are Forces in world axes, N m and N.
    """
    if model.posing[i] == POSING_CARRIED:  # both joint origins are at the same point
        return f
    return force_at_root(f, load3(work.dof, i, frame.LEVER, k))


@kernel
def axis_motion(i, model, work, k):
    """Return S of dof i, a Motion in world axes at its joint origin (reads R)."""
    axis, advance = z_axis(load9(work.dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    return joint_motion(model.joint[i], axis, advance)


@kernel
def position_rates(model, q, qd, rate, k):
    """Compute dq/dt: qd itself, except for quaternions and for the position of a free joint.

    q is (nq, lanes) and qd (n, lanes). Writes rate (nq, lanes), in the order of `q`: rad/s, m/s and, for quaternions,
    1/s. The rate of the position of a free joint is in the placement frame.
    """
    for i in range(model.parent.shape[0]):
        posing, at = model.posing[i], model.coordinate[i]
        if posing == POSING_OWN:
            rate[at, k] = qd[i, k]
        elif posing == POSING_FREE:
            lin, ang = (qd[i, k], qd[i + 1, k], qd[i + 2, k]), (qd[i + 3, k], qd[i + 4, k], qd[i + 5, k])
            x, y, z, w = q[at + 3, k], q[at + 4, k], q[at + 5, k], q[at + 6, k]
            v = rotate(quaternion_rotation(x, y, z, w), lin)
            rate[at, k], rate[at + 1, k], rate[at + 2, k] = v
            store_quaternion(rate, at + 3, k, quaternion_rate(x, y, z, w, ang))
        elif posing == POSING_SPHERICAL:
            ang = (qd[i, k], qd[i + 1, k], qd[i + 2, k])
            x, y, z, w = q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k]
            store_quaternion(rate, at, k, quaternion_rate(x, y, z, w, ang))


@kernel
def tangents_of_rates(model, q, rate, v, k):
    """Compute the velocities v (n, lanes) of rates dq/dt (nq, lanes): the inverse of `position_rates`.

    q is (nq, lanes). `position_rates` states the units.
    """
    for i in range(model.parent.shape[0]):
        posing, at = model.posing[i], model.coordinate[i]
        if posing == POSING_OWN:
            v[i, k] = rate[at, k]
        elif posing == POSING_FREE:
            x, y, z, w = q[at + 3, k], q[at + 4, k], q[at + 5, k], q[at + 6, k]
            lin = rotate_back(quaternion_rotation(x, y, z, w), (rate[at, k], rate[at + 1, k], rate[at + 2, k]))
            v[i, k], v[i + 1, k], v[i + 2, k] = lin
            store_turn_of_rate(i + 3, at + 3, q, rate, v, k)
        elif posing == POSING_SPHERICAL:
            store_turn_of_rate(i, at, q, rate, v, k)


@kernel
def store_turn_of_rate(i, at, q, rate, v, k):
    """Store the angular velocity of a quaternion's rate, twice the vector part of conj(q) dq/dt, in v[i : i + 3].

    q and `rate` are (nq, lanes), v is (n, lanes), and the angular velocity is in body axes, rad/s.
    """
    x, y, z, w = q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k]
    a, b, c, d = rate[at, k], rate[at + 1, k], rate[at + 2, k], rate[at + 3, k]
    two = constant_like(q, 2.0)
    v[i, k] = two * (w * a - d * x - (y * c - z * b))
    v[i + 1, k] = two * (w * b - d * y - (z * a - x * c))
    v[i + 2, k] = two * (w * c - d * z - (x * b - y * a))


@kernel
def add_step(model, q, step, rate, moved, k):
    """Compute the positions after a step of all dofs, with quaternions of length 1.

    q is (nq, lanes), and `step` (n, lanes) in rad and m. Writes `rate` (nq, lanes), and the positions to `moved`
    (nq, lanes), which may be `rate` or q.
    """
    position_rates(model, q, step, rate, k)
    for j in range(q.shape[0]):
        moved[j, k] = q[j, k] + rate[j, k]
    normalize_positions(model, moved, k)


@kernel
def normalize_positions(model, q, k):
    """Normalize the quaternions in q (nq, lanes): integration and interpolation do not preserve their unit length."""
    for i in range(model.parent.shape[0]):
        posing, at = model.posing[i], model.coordinate[i]
        if posing == POSING_FREE:
            normalize_quaternion(q, at + 3, k)
        elif posing == POSING_SPHERICAL:
            normalize_quaternion(q, at, k)


@kernel
def reset_quaternions(model, q, k):
    """Set the quaternions in q (nq, lanes) to the identity, (0, 0, 0, 1)."""
    for i in range(model.parent.shape[0]):
        posing, at = model.posing[i], model.coordinate[i]
        if posing == POSING_FREE:
            at += 3
        if posing in (POSING_FREE, POSING_SPHERICAL):
            zero = constant_like(q, 0.0)
            store_quaternion(q, at, k, (zero, zero, zero, constant_like(q, 1.0)))


@kernel
def store_quaternion(q, at, k, quaternion):
    """Store a quaternion (x, y, z, w) in q[at : at + 4] of an array (nq, lanes)."""
    q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k] = quaternion


@kernel
def place_dof(i, model, work, k):
    """Compute the position of joint origin i in the world, world axes, m.

    Reads POSITION of the parent and LEVER; writes POSITION.
    """
    dof = work.dof
    store3(
        dof, i, frame.POSITION, k, add3(load3(dof, model.parent[i], frame.POSITION, k), load3(dof, i, frame.LEVER, k))
    )


@kernel
def body_poses(model, q, poses, work, k):
    """Compute the pose of every body in the world.

    Writes poses (bodies, 12, lanes): position (3) of the body's origin in world axes, m, and rotation (9) from body
    axes to world axes.
    """
    for i in range(model.parent.shape[0]):
        rotate_dof(i, model, q, work, k)
        place_dof(i, model, work, k)
        b = model.body[i]
        if b >= 0:
            store3(poses, b, 0, k, load3(work.dof, i, frame.POSITION, k))
            store9(poses, b, 3, k, body_axes(i, model, work, k))


@kernel
def body_axes(i, model, work, k):
    """Compute the rotation (9) from body axes to world axes for the body of dof i (reads R)."""
    return axes_of_body(i, load9(work.dof, i, frame.R, k), model, k)


@kernel
def axes_of_body(i, R, model, k):
    """Return the rotation (9) from body axes to the world, for the rotation R (9) from frame i to the world."""
    x, y, z = parameter3(model.parameters, i, param.AXIS, k)
    one = constant_like(x, 1.0)
    # the transpose of `model.joint.axes_along`
    sign = select(z >= constant_like(x, 0.0), one, -one)
    b, c = sign * y, sign * z
    d = one / (one + c)
    xy = -x * b * d
    F_T = (one - x * x * d, sign * xy, -sign * x, xy, sign * (one - b * b * d), -sign * b, x, sign * b, sign * c)
    return compose(R, F_T)


@kernel
def place_about_first_joint(i, model, work, k):
    """Compute the position of joint origin i relative to the first joint origin.

    Far from the origin of the world, positions in the world would lose digits. Reads LEVER, and POSITION of the parent;
    writes POSITION. The position (3) is in world axes, m.
    """
    dof, p, lever = work.dof, model.parent[i], load3(work.dof, i, frame.LEVER, k)
    if p == model.parent.shape[0]:
        store3(dof, i, frame.POSITION, k, subtract3(lever, load3(dof, 0, frame.LEVER, k)))
    else:
        store3(dof, i, frame.POSITION, k, add3(load3(dof, p, frame.POSITION, k), lever))


@kernel
def origin_about_first_joint(i, model, work, k):
    """Return the position of joint origin i, or of the world's origin for i = n, relative to the first joint origin.

    Reads POSITION, as `place_about_first_joint` writes it. The result (3) is in world axes, m.
    """
    if i == model.parent.shape[0]:
        x, y, z = load3(work.dof, 0, frame.LEVER, k)
        return (-x, -y, -z)
    return load3(work.dof, i, frame.POSITION, k)


@kernel
def body_velocities(model, q, qd, velocities, work, k):
    """Compute the velocity of every body.

    Writes velocities (bodies, 6, lanes): velocity of the body's origin (3), m/s, and angular velocity (3), rad/s, in
    world axes.
    """
    for i in range(model.parent.shape[0]):
        move_dof(i, model, q, qd, work, k)
        b, v = model.body[i], load_motion(work.dof, i, frame.V, k)
        if b >= 0:
            store3(velocities, b, 0, k, v.lin)
            store3(velocities, b, 3, k, v.ang)


@kernel
def rigid_inertia(i, model, work, k):
    """Compute the inertia of the body of dof i about its joint origin, in world axes; zero without a body (reads R).

    Returns the mass m, kg, the first moment h = m c (3), kg m, and the rotational inertia J (6), kg m^2, as in `Rigid`.
    """
    parameters = model.parameters
    R = load9(work.dof, i, frame.R, k)
    m = parameter(parameters, i, param.MASS, k)
    if model.body[i] < 0:
        # no constant: code for parameters of each sample would fuse other operations than code for shared ones
        zero = nan_unless_finite(R[0])
        return m, (zero, zero, zero), (zero, zero, zero, zero, zero, zero)
    c = rotate(R, parameter3(parameters, i, param.CG, k))
    h = scale3(m, c)
    J = rotate_symmetric(R, parameter6(parameters, i, param.INERTIA, k))
    xx, yy, zz = h[0] * c[0], h[1] * c[1], h[2] * c[2]
    return m, h, (
        *(J[0] + (yy + zz), J[1] - h[0] * c[1], J[2] - h[0] * c[2]),
        *(J[3] + (xx + zz), J[4] - h[1] * c[2], J[5] + (xx + yy)),
    )  # fmt: skip
