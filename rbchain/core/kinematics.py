"""Where the bodies are and how they move: the outward sweep that every algorithm starts with."""

from .jit import kernel
from .joints import add_joint_motion, joint_rotation, joint_travel
from .layout import (
    ADVANCE,
    CG,
    INERTIA,
    LEVER,
    MASS,
    PLACEMENT_ROTATION,
    PLACEMENT_TRANSLATION,
    POSITION,
    R,
    V,
    parameter,
    parameter3,
    parameter6,
    parameter9,
)
from .spatial import add3, compose, motion_at_tip, rotate, rotate_symmetric, scale3, z_axis
from .storage import load3, load9, load_motion, store3, store9, store_spatial


@kernel
def turn_body(i, model, q, work, k):
    """Turn body i with its joint: R_i = R_parent placement rot(z, q), and the lever from the parent's joint to its own.

    Reads R of the parent; writes R and LEVER of body i.
    """
    p, joint, numbers, body = model.parent[i], model.joint[i], model.parameters, work.body
    R_parent = load9(body, p, R, k)
    R_joint = compose(R_parent, parameter9(numbers, i, PLACEMENT_ROTATION, k))
    lever = rotate(R_parent, parameter3(numbers, i, PLACEMENT_TRANSLATION, k))
    lever = joint_travel(joint, lever, z_axis(R_joint), parameter(numbers, i, ADVANCE, k), q[i, k])
    store9(body, i, R, k, joint_rotation(joint, R_joint, q[i, k]))
    store3(body, i, LEVER, k, lever)


@kernel
def move_body(i, model, q, qd, work, k):
    """Turn body i and give it its velocity: v_i = v_parent + S_i qd_i (Featherstone 2008, eq. 5.14).

    Reads R and V of the parent; writes R, LEVER and V of body i.
    """
    p, joint, body = model.parent[i], model.joint[i], work.body
    turn_body(i, model, q, work, k)
    v = motion_at_tip(load_motion(body, p, V, k), load3(body, i, LEVER, k))
    axis = z_axis(load9(body, i, R, k))
    v = add_joint_motion(joint, v, axis, parameter(model.parameters, i, ADVANCE, k), qd[i, k])
    store_spatial(body, i, V, k, v)


@kernel
def place_body(i, model, work, k):
    """Add up the levers: POSITION of body i in the world from its parent's."""
    body = work.body
    store3(body, i, POSITION, k, add3(load3(body, model.parent[i], POSITION, k), load3(body, i, LEVER, k)))


@kernel
def place_bodies(model, q, poses, work, k):
    """Pose of every body in the world: position (3) and rotation (9) in poses (n, 12, lanes)."""
    for i in range(model.parent.shape[0]):
        turn_body(i, model, q, work, k)
        place_body(i, model, work, k)
        store3(poses, i, 0, k, load3(work.body, i, POSITION, k))
        store9(poses, i, 3, k, load9(work.body, i, R, k))


@kernel
def rigid_inertia(i, model, work, k):
    """Mass, first moment and rotational inertia of body i about its joint origin, in world axes (reads R)."""
    numbers = model.parameters
    R_body = load9(work.body, i, R, k)
    m = parameter(numbers, i, MASS, k)
    c = rotate(R_body, parameter3(numbers, i, CG, k))
    h = scale3(m, c)
    J = rotate_symmetric(R_body, parameter6(numbers, i, INERTIA, k))
    xx, yy, zz = h[0] * c[0], h[1] * c[1], h[2] * c[2]
    return m, h, (
        *(J[0] + (yy + zz), J[1] - h[0] * c[1], J[2] - h[0] * c[2]),
        *(J[3] + (xx + zz), J[4] - h[1] * c[2], J[5] + (xx + yy)),
    )  # fmt: skip
