"""Hybrid dynamics: of each joint the force or the acceleration is given, and the other is found, in one pass.

Featherstone (2008), section 9.2: a joint whose acceleration is given passes all its inertia to the parent, and its
acceleration is part of the bias. Which joints these are may differ from chain to chain.
"""

from ..forces.wrenches import yielding
from ..simd.jit import kernel
from ..simd.lanes import like, select
from ..spatial.inertias import deflate, momentum
from ..spatial.storage import load3, load9, load_force, load_motion, store_spatial
from ..spatial.vectors import add_forces, add_motions, motion_at_tip, power, scale_force, z_axis
from ..tree.joints import add_joint_motion, inertia_along, joint_bias, joint_force
from ..tree.kinematics import move_body
from ..tree.layout import ADVANCE, ARMATURE, DINV, FORCE, LEVER, A, R, U, V, parameter
from .aba import articulate_body, nothing_shown, reciprocal_of_inertia, show_to_parent


@kernel
def hybrid_dynamics(model, q, qd, loads, qdd, prescribed, work, k):
    """Fill in loads.tau where `prescribed` (n, lanes) is not zero, and qdd where it is."""
    n = model.parent.shape[0]
    for i in range(n):
        move_body(i, model, q, qd, work, k)
    shown = nothing_shown(work, k)
    for i in range(n - 1, -1, -1):
        shown = release_or_drive_joint(i, model, qd, loads, qdd, prescribed, shown, work, k)
    for i in range(n):
        accelerate_and_load(i, model, qd, loads, qdd, prescribed, work, k)


@kernel
def release_or_drive_joint(i, model, qd, loads, qdd, prescribed, shown, work, k):
    """`aba.eliminate_joint`, with 1 / D = 0 for a joint whose acceleration is given."""
    p, joint, body = model.parent[i], model.joint[i], work.body
    axis, advance = z_axis(load9(body, i, R, k)), parameter(model.parameters, i, ADVANCE, k)
    IA_body, pA = articulate_body(i, model, loads, shown, work, k)
    U_joint = inertia_along(joint, IA_body, axis, advance)
    D = joint_force(joint, axis, advance, U_joint) + parameter(model.parameters, i, ARMATURE, k)
    D = yielding(i, loads, D, k)
    driven, zero = prescribed[i, k] != like(body, 0.0), D - D
    Dinv = select(driven, zero, reciprocal_of_inertia(i, model, D, IA_body, work, k))
    u = select(driven, zero, loads.tau[i, k]) - joint_force(joint, axis, advance, pA)
    store_spatial(body, i, U, k, U_joint)
    body[i, DINV, k] = Dinv
    body[i, FORCE, k] = u
    if p < model.parent.shape[0]:
        c = joint_bias(joint, load_motion(body, i, V, k), axis, advance, qd[i, k])
        c = add_joint_motion(joint, c, axis, advance, select(driven, qdd[i, k], zero))
        Ia = deflate(IA_body, U_joint, Dinv)
        pa = add_forces(add_forces(pA, momentum(Ia, c)), scale_force(Dinv * u, U_joint))
        return show_to_parent(i, model, Ia, pa, work, k)
    return IA_body, pA  # a root contributes to no body


@kernel
def accelerate_and_load(i, model, qd, loads, qdd, prescribed, work, k):
    """qdd as in `aba.accelerate_body`; or, where that is given, tau = S . (IA a + pA) + armature qdd."""
    p, joint, body = model.parent[i], model.joint[i], work.body
    axis, advance = z_axis(load9(body, i, R, k)), parameter(model.parameters, i, ADVANCE, k)
    driven, U_joint, u = prescribed[i, k] != like(body, 0.0), load_force(body, i, U, k), body[i, FORCE, k]
    c = joint_bias(joint, load_motion(body, i, V, k), axis, advance, qd[i, k])
    a = add_motions(motion_at_tip(load_motion(body, p, A, k), load3(body, i, LEVER, k)), c)
    qdd_joint = select(driven, qdd[i, k], body[i, DINV, k] * (u - power(U_joint, a)))
    a = add_joint_motion(joint, a, axis, advance, qdd_joint)
    tau = power(U_joint, a) - u + parameter(model.parameters, i, ARMATURE, k) * qdd_joint
    qdd[i, k] = qdd_joint
    loads.tau[i, k] = select(driven, tau, loads.tau[i, k])
    store_spatial(body, i, A, k, a)
