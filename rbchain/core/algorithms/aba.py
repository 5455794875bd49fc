"""Forward dynamics: the articulated-body algorithm (Featherstone 1983; 2008, section 7.3), in world-aligned axes.

Every body's quantities refer to its own joint origin, so that passing them to the parent is a translation only.
"""

import numpy as np

from ..forces.hydrodynamics import add_inertia_and_bias
from ..forces.wrenches import subtract_action_wrenches
from ..simd.jit import kernel
from ..simd.lanes import constant_like, epsilon, select
from ..spatial.inertias import add_inertias, deflate, inertia_at_root, momentum
from ..spatial.storage import load3, load9, load_force, load_inertia, load_motion, store_inertia, store_spatial
from ..spatial.vectors import (
    Force,
    add_forces,
    add_motions,
    force_at_root,
    motion_at_tip,
    power,
    scale_force,
    subtract_forces,
    z_axis,
)
from ..tree.joints import add_joint_motion, inertia_along, joint_bias, joint_force
from ..tree.kinematics import move_dof
from ..tree.layout import (
    CONTRIBUTION_IA,
    CONTRIBUTION_PA,
    IN_REGISTERS,
    PARAM_ADVANCE,
    PARAM_ARMATURE,
    POSING_CARRIED,
    PRISMATIC,
    ROW_A,
    ROW_DINV,
    ROW_FORCE,
    ROW_LEVER,
    ROW_R,
    ROW_SCALE,
    ROW_U,
    ROW_V,
    parameter,
)

ROUNDINGS = 16.0  # bound of the round-off in a small difference of large inertias, in units of epsilon


@kernel
def forward_dynamics(model, q, qd, loads, qdd, work, k):
    """Accelerations of all joints under the given forces, for the samples of lanes k."""
    n = model.parent.shape[0]
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
    contribution = no_contribution(work, k)
    for i in range(n - 1, -1, -1):
        contribution = aba_inward_step(i, model, qd, loads, contribution, work, k)
    for i in range(n):
        accelerate_dof(i, model, qd, qdd, work, k)


@kernel
def fail_together(rows, k):
    """Make NaN of all rows (m, lanes) in a lane where any is not finite: a sample that fails, fails as a whole."""
    nothing = rows[0, k] - rows[0, k]
    for j in range(1, rows.shape[0]):
        nothing = nothing + (rows[j, k] - rows[j, k])
    for j in range(rows.shape[0]):
        rows[j, k] = rows[j, k] + nothing


@kernel
def subtract_wrench(i, loads, f, k):
    """f less the external wrench on body i, if there are any: force, then moment, as the interface has them."""
    if loads.wrenches.shape[0] == 0:
        return f
    return subtract_forces(f, Force(load3(loads.wrenches, i, 3, k), load3(loads.wrenches, i, 0, k)))


@kernel
def no_contribution(work, k):
    """The contribution to a body without children: no inertia and no force."""
    sums, childless = work.contributions, work.contributions.shape[0] - 1
    return load_inertia(sums, childless, CONTRIBUTION_IA, k), load_force(sums, childless, CONTRIBUTION_PA, k)


@kernel
def children_contribution(i, model, contribution, work, k):
    """Sum of the contributions of body i's children to its inertia and bias force.

    If the only child is body i + 1, that is `contribution`, which the sweep has just returned. So along a chain
    contributions stay in registers. Where a body has several children, their sum is in memory.
    """
    row, sums = model.contribution_row[i], work.contributions
    if row == IN_REGISTERS:
        return contribution
    return load_inertia(sums, row, CONTRIBUTION_IA, k), load_force(sums, row, CONTRIBUTION_PA, k)


@kernel
def articulated_inertia_and_bias(i, model, loads, contribution, work, k):
    """Articulated inertia and bias force of body i, with everything that it carries.

    IA = I + sum of the children's, pA = v x* I v - wrench + sum of the children's (Featherstone 2008, eqs. 7.21-7.22).
    """
    I_children, p_children = children_contribution(i, model, contribution, work, k)
    IA_body, p = add_inertia_and_bias(i, model, I_children, work, k)
    pA = subtract_action_wrenches(i, model, loads, subtract_wrench(i, loads, p, k), work, k)
    return IA_body, add_forces(pA, p_children)


@kernel
def reciprocal_of_inertia(i, model, D, IA_body, work, k):
    """1 / D, or NaN if D is only round-off: there the mechanism is singular.

    Use the inertia of the joint's last body to set the threshold for round-off, because after the other degrees of
    freedom are eliminated only round-off may remain.
    """
    p, J, M = model.parent[i], IA_body.J, IA_body.M
    rotational, translational = J[0] + J[3] + J[5], M[0] + M[3] + M[5]
    if model.body[i] < 0:
        rotational = max(rotational, work.dof[i, ROW_SCALE, k])
        translational = max(translational, work.dof[i, ROW_SCALE + 1, k])
    if p < model.parent.shape[0] and model.body[p] < 0:
        work.dof[p, ROW_SCALE, k] = rotational
        work.dof[p, ROW_SCALE + 1, k] = translational
    noise = ROUNDINGS * epsilon(D) * (translational if model.joint[i] == PRISMATIC else rotational)
    one, enough = constant_like(D, 1.0), noise < D
    return select(enough, one / select(enough, D, one), constant_like(D, np.nan))


@kernel
def aba_inward_step(i, model, qd, loads, contribution, work, k):
    """Step of the inward sweep: eliminate the acceleration of joint i, and pass the remaining inertia to the parent."""
    IA_body, pA = articulated_inertia_and_bias(i, model, loads, contribution, work, k)
    return project_out_joint(i, model, qd, loads, IA_body, pA, work, k)


@kernel
def project_out_joint(i, model, qd, loads, IA_body, pA, work, k):
    """U = IA S, D = S^T U + armature, u = tau - S^T pA; to the parent Ia = IA - U U^T / D, pa = pA + Ia c + U u / D.

    Featherstone (2008), eqs. 7.43-7.47. Writes U, DINV and FORCE; returns what `contribute_to_parent` does.
    """
    p, joint, dof = model.parent[i], model.joint[i], work.dof
    axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    U_joint = inertia_along(joint, IA_body, axis, advance)
    D = joint_force(joint, axis, advance, U_joint) + parameter(model.parameters, i, PARAM_ARMATURE, k)
    Dinv = reciprocal_of_inertia(i, model, D, IA_body, work, k)
    u = loads.tau[i, k] - joint_force(joint, axis, advance, pA)
    store_spatial(dof, i, ROW_U, k, U_joint)
    dof[i, ROW_DINV, k] = Dinv
    dof[i, ROW_FORCE, k] = u
    if p < model.parent.shape[0]:
        c = joint_bias(joint, load_motion(dof, i, ROW_V, k), axis, advance, qd[i, k])
        Ia = deflate(IA_body, U_joint, Dinv)
        pa = add_forces(add_forces(pA, momentum(Ia, c)), scale_force(Dinv * u, U_joint))
        return contribute_to_parent(i, model, Ia, pa, work, k)
    return IA_body, pA  # a root contributes to no body


@kernel
def contribute_to_parent(i, model, Ia, pa, work, k):
    """The contribution of body i, at its parent's joint origin; added to that of its siblings, if it has any."""
    if model.posing[i] != POSING_CARRIED:  # else both are at the same point
        r = load3(work.dof, i, ROW_LEVER, k)
        Ia, pa = inertia_at_root(Ia, r), force_at_root(pa, r)
    row, contributions = model.contribution_row[model.parent[i]], work.contributions
    if row == IN_REGISTERS:
        return Ia, pa
    if model.accumulates[i]:
        Ia = add_inertias(Ia, load_inertia(contributions, row, CONTRIBUTION_IA, k))
        pa = add_forces(pa, load_force(contributions, row, CONTRIBUTION_PA, k))
    store_inertia(contributions, row, CONTRIBUTION_IA, k, Ia)
    store_spatial(contributions, row, CONTRIBUTION_PA, k, pa)
    return Ia, pa


@kernel
def accelerate_dof(i, model, qd, qdd, work, k):
    """qdd = (u - U . a') / D and a = a' + S qdd with a' = a_parent + c (Featherstone 2008, eqs. 7.48-7.50)."""
    p, joint, dof = model.parent[i], model.joint[i], work.dof
    axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    c = joint_bias(joint, load_motion(dof, i, ROW_V, k), axis, advance, qd[i, k])
    a = add_motions(motion_at_tip(load_motion(dof, p, ROW_A, k), load3(dof, i, ROW_LEVER, k)), c)
    qdd_joint = dof[i, ROW_DINV, k] * (dof[i, ROW_FORCE, k] - power(load_force(dof, i, ROW_U, k), a))
    qdd[i, k] = qdd_joint
    store_spatial(dof, i, ROW_A, k, add_joint_motion(joint, a, axis, advance, qdd_joint))
