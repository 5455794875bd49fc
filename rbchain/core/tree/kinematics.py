"""Forward kinematics: rotations, positions and velocities, in the outward sweep that every algorithm starts with."""

from ..simd.jit import kernel
from ..simd.lanes import like, select
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
    ADVANCE,
    AXIS,
    CARRIED,
    CG,
    FREE,
    INERTIA,
    LEVER,
    MASS,
    OWN,
    PLACEMENT_ROTATION,
    PLACEMENT_TRANSLATION,
    POSITION,
    SPHERICAL,
    R,
    V,
    parameter,
    parameter3,
    parameter6,
    parameter9,
)


@kernel
def turn_body(i, model, q, work, k):
    """Rotation of body i, R_i = R_parent placement rot(z, q), and the lever from the parent's joint origin to its own.

    Reads R of the parent; writes R and LEVER of body i.
    """
    p, posing, numbers, body = model.parent[i], model.posing[i], model.parameters, work.body
    R_parent = load9(body, p, R, k)
    if posing == CARRIED:
        zero = like(body, 0.0)
        store9(body, i, R, k, next_axes(R_parent))
        store3(body, i, LEVER, k, (zero, zero, zero))
        return
    joint, at = model.joint[i], model.coordinate[i]
    R_joint = compose(R_parent, parameter9(numbers, i, PLACEMENT_ROTATION, k))
    lever = rotate(R_parent, parameter3(numbers, i, PLACEMENT_TRANSLATION, k))
    if posing == OWN:
        lever = joint_travel(joint, lever, z_axis(R_joint), parameter(numbers, i, ADVANCE, k), q[at, k])
        R_body = joint_rotation(joint, R_joint, q[at, k])
    else:
        if posing == FREE:
            lever = add3(lever, rotate(R_joint, (q[at, k], q[at + 1, k], q[at + 2, k])))
            at += 3
        turn = quaternion_rotation(q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k])
        R_body = next_axes(compose(R_joint, turn))
    store9(body, i, R, k, R_body)
    store3(body, i, LEVER, k, lever)


@kernel
def move_body(i, model, q, qd, work, k):
    """Rotation of body i, and its velocity v_i = v_parent + S_i qd_i (Featherstone 2008, eq. 5.14).

    All bodies of a free or spherical joint have the velocity of the last of them, with which their axes move: so the
    rate of every axis is v_i x S_i. Reads R and V of the parent; writes R, LEVER and V of body i.
    """
    p, posing, body = model.parent[i], model.posing[i], work.body
    turn_body(i, model, q, work, k)
    v = load_motion(body, p, V, k)
    if posing != CARRIED:
        v = motion_at_tip(v, load3(body, i, LEVER, k))
        axes = load9(body, i, R, k)
        if posing == OWN:
            advance = parameter(model.parameters, i, ADVANCE, k)
            v = add_joint_motion(model.joint[i], v, z_axis(axes), advance, qd[i, k])
        elif posing == FREE:
            slide, turn = (qd[i + 1, k], qd[i + 2, k], qd[i, k]), (qd[i + 4, k], qd[i + 5, k], qd[i + 3, k])
            v = Motion(add3(v.ang, rotate(axes, turn)), add3(v.lin, rotate(axes, slide)))
        else:
            v = Motion(add3(v.ang, rotate(axes, (qd[i + 1, k], qd[i + 2, k], qd[i, k]))), v.lin)
    store_spatial(body, i, V, k, v)


@kernel
def force_on_parent(i, f, model, work, k):
    """f on body i, referred to its parent's joint origin."""
    if model.posing[i] == CARRIED:  # both are at the same point
        return f
    return force_at_root(f, load3(work.body, i, LEVER, k))


@kernel
def axis_motion(i, model, work, k):
    """S of joint i (reads R)."""
    axis, advance = z_axis(load9(work.body, i, R, k)), parameter(model.parameters, i, ADVANCE, k)
    return joint_motion(model.joint[i], axis, advance)


@kernel
def position_rates(model, q, qd, rate, k):
    """dq/dt from the velocities: the same numbers, but for the quaternions and the position of a free joint."""
    for i in range(model.parent.shape[0]):
        posing, at = model.posing[i], model.coordinate[i]
        if posing == OWN:
            rate[at, k] = qd[i, k]
        elif posing == FREE:
            slide, turn = (qd[i, k], qd[i + 1, k], qd[i + 2, k]), (qd[i + 3, k], qd[i + 4, k], qd[i + 5, k])
            x, y, z, w = q[at + 3, k], q[at + 4, k], q[at + 5, k], q[at + 6, k]
            v = rotate(quaternion_rotation(x, y, z, w), slide)
            rate[at, k], rate[at + 1, k], rate[at + 2, k] = v
            store_quaternion(rate, at + 3, k, quaternion_rate(x, y, z, w, turn))
        elif posing == SPHERICAL:
            turn = (qd[i, k], qd[i + 1, k], qd[i + 2, k])
            x, y, z, w = q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k]
            store_quaternion(rate, at, k, quaternion_rate(x, y, z, w, turn))


@kernel
def normalize_positions(model, q, k):
    """Give the quaternions in q unit length, which steps of an integrator and interpolation do not keep."""
    for i in range(model.parent.shape[0]):
        posing, at = model.posing[i], model.coordinate[i]
        if posing == FREE:
            normalize_quaternion(q, at + 3, k)
        elif posing == SPHERICAL:
            normalize_quaternion(q, at, k)


@kernel
def straighten(model, q, k):
    """Make the quaternions in q those of no rotation."""
    for i in range(model.parent.shape[0]):
        posing, at = model.posing[i], model.coordinate[i]
        if posing == FREE:
            at += 3
        if posing in (FREE, SPHERICAL):
            zero = like(q, 0.0)
            store_quaternion(q, at, k, (zero, zero, zero, like(q, 1.0)))


@kernel
def store_quaternion(q, at, k, quaternion):
    q[at, k], q[at + 1, k], q[at + 2, k], q[at + 3, k] = quaternion


@kernel
def place_body(i, model, work, k):
    """Add up the levers: POSITION of body i in the world from its parent's."""
    body = work.body
    store3(body, i, POSITION, k, add3(load3(body, model.parent[i], POSITION, k), load3(body, i, LEVER, k)))


@kernel
def place_bodies(model, q, poses, work, k):
    """Pose of every body in the world: position (3) and rotation (9) of its own axes in poses (bodies, 12, lanes)."""
    for i in range(model.parent.shape[0]):
        turn_body(i, model, q, work, k)
        place_body(i, model, work, k)
        b = model.body[i]
        if b >= 0:
            store3(poses, b, 0, k, load3(work.body, i, POSITION, k))
            store9(poses, b, 3, k, body_axes(i, model, work, k))


@kernel
def body_axes(i, model, work, k):
    """Body i's own axes, turned back from those in which its joint's axis is z, to world axes (reads R)."""
    x, y, z = parameter3(model.parameters, i, AXIS, k)
    one = like(x, 1.0)
    # the flattening's `axes_along`, transposed
    sign = select(z >= like(x, 0.0), one, -one)
    b, c = sign * y, sign * z
    d = one / (one + c)
    xy = -x * b * d
    back = (one - x * x * d, sign * xy, -sign * x, xy, sign * (one - b * b * d), -sign * b, x, sign * b, sign * c)
    return compose(load9(work.body, i, R, k), back)


@kernel
def place_about_first_joint(i, model, work, k):
    """`place_body`, but with positions that start at the first joint: far from the world's origin they keep digits."""
    body, p, lever = work.body, model.parent[i], load3(work.body, i, LEVER, k)
    if p == model.parent.shape[0]:
        store3(body, i, POSITION, k, subtract3(lever, load3(body, 0, LEVER, k)))
    else:
        store3(body, i, POSITION, k, add3(load3(body, p, POSITION, k), lever))


@kernel
def bodies_in_motion(model, q, qd, velocities, work, k):
    """Velocity of every body's origin (3) and angular velocity (3), world axes, in velocities (bodies, 6, lanes)."""
    for i in range(model.parent.shape[0]):
        move_body(i, model, q, qd, work, k)
        b, v = model.body[i], load_motion(work.body, i, V, k)
        if b >= 0:
            store3(velocities, b, 0, k, v.lin)
            store3(velocities, b, 3, k, v.ang)


@kernel
def rigid_inertia(i, model, work, k):
    """Mass, first moment and rotational inertia of body i about its joint origin, in world axes (reads R)."""
    numbers = model.parameters
    R_body = load9(work.body, i, R, k)
    m = parameter(numbers, i, MASS, k)
    if model.body[i] < 0:  # only there for its degree of freedom
        zero = R_body[0] - R_body[0]
        return m, (zero, zero, zero), (zero, zero, zero, zero, zero, zero)
    c = rotate(R_body, parameter3(numbers, i, CG, k))
    h = scale3(m, c)
    J = rotate_symmetric(R_body, parameter6(numbers, i, INERTIA, k))
    xx, yy, zz = h[0] * c[0], h[1] * c[1], h[2] * c[2]
    return m, h, (
        *(J[0] + (yy + zz), J[1] - h[0] * c[1], J[2] - h[0] * c[2]),
        *(J[3] + (xx + zz), J[4] - h[1] * c[2], J[5] + (xx + yy)),
    )  # fmt: skip
