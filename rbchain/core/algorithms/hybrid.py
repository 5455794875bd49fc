"""Hybrid dynamics: of each joint the force or the acceleration is given, and the other is found, in one pass.

Featherstone (2008), section 9.2: a joint whose acceleration is given passes all its inertia to the parent, and its
acceleration is part of the bias. Which joints these are may differ from sample to sample.
"""

from ..forces.wrenches import add_implicit_inertia
from ..simd.jit import kernel
from ..simd.lanes import constant_like, select
from ..spatial.inertias import deflate, momentum
from ..spatial.storage import load3, load9, load_force, load_motion, store_spatial
from ..spatial.vectors import add_forces, add_motions, motion_at_tip, power, scale_force, z_axis
from ..tree.joints import add_joint_motion, inertia_along, joint_bias, joint_force
from ..tree.kinematics import move_dof
from ..tree.layout import (
    PARAM_ADVANCE,
    PARAM_ARMATURE,
    ROW_A,
    ROW_DINV,
    ROW_FORCE,
    ROW_LEVER,
    ROW_R,
    ROW_U,
    ROW_V,
    parameter,
)
from .aba import articulated_inertia_and_bias, contribute_to_parent, no_contribution, reciprocal_of_inertia


@kernel
def hybrid_dynamics(model, q, qd, loads, qdd, prescribed, work, k):
    """Fill in loads.tau where `prescribed` (n, lanes) is not zero, and qdd where it is."""
    n = model.parent.shape[0]
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
    contribution = no_contribution(work, k)
    for i in range(n - 1, -1, -1):
        contribution = project_out_or_prescribe_joint(i, model, qd, loads, qdd, prescribed, contribution, work, k)
    for i in range(n):
        acceleration_or_force(i, model, qd, loads, qdd, prescribed, work, k)


@kernel
def project_out_or_prescribe_joint(i, model, qd, loads, qdd, prescribed, contribution, work, k):
    """`aba.aba_inward_step`, with 1 / D = 0 for a joint whose acceleration is given."""
    p, joint, dof = model.parent[i], model.joint[i], work.dof
    axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    IA_body, pA = articulated_inertia_and_bias(i, model, loads, contribution, work, k)
    U_joint = inertia_along(joint, IA_body, axis, advance)
    D = joint_force(joint, axis, advance, U_joint) + parameter(model.parameters, i, PARAM_ARMATURE, k)
    D = add_implicit_inertia(i, loads, D, k)
    driven, zero = prescribed[i, k] != constant_like(dof, 0.0), D - D
    Dinv = select(driven, zero, reciprocal_of_inertia(i, model, D, IA_body, work, k))
    u = select(driven, zero, loads.tau[i, k]) - joint_force(joint, axis, advance, pA)
    store_spatial(dof, i, ROW_U, k, U_joint)
    dof[i, ROW_DINV, k] = Dinv
    dof[i, ROW_FORCE, k] = u
    if p < model.parent.shape[0]:
        c = joint_bias(joint, load_motion(dof, i, ROW_V, k), axis, advance, qd[i, k])
        c = add_joint_motion(joint, c, axis, advance, select(driven, qdd[i, k], zero))
        Ia = deflate(IA_body, U_joint, Dinv)
        pa = add_forces(add_forces(pA, momentum(Ia, c)), scale_force(Dinv * u, U_joint))
        return contribute_to_parent(i, model, Ia, pa, work, k)
    return IA_body, pA  # a root contributes to no body


@kernel
def acceleration_or_force(i, model, qd, loads, qdd, prescribed, work, k):
    """qdd as in `aba.accelerate_dof`; or, where that is given, tau = S . (IA a + pA) + armature qdd."""
    p, joint, dof = model.parent[i], model.joint[i], work.dof
    axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    driven, U_joint, u = prescribed[i, k] != constant_like(dof, 0.0), load_force(dof, i, ROW_U, k), dof[i, ROW_FORCE, k]
    c = joint_bias(joint, load_motion(dof, i, ROW_V, k), axis, advance, qd[i, k])
    a = add_motions(motion_at_tip(load_motion(dof, p, ROW_A, k), load3(dof, i, ROW_LEVER, k)), c)
    qdd_joint = select(driven, qdd[i, k], dof[i, ROW_DINV, k] * (u - power(U_joint, a)))
    a = add_joint_motion(joint, a, axis, advance, qdd_joint)
    tau = power(U_joint, a) - u + parameter(model.parameters, i, PARAM_ARMATURE, k) * qdd_joint
    qdd[i, k] = qdd_joint
    loads.tau[i, k] = select(driven, tau, loads.tau[i, k])
    store_spatial(dof, i, ROW_A, k, a)
