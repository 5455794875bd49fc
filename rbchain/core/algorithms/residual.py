"""Residual of a forward dynamics: the unbalanced force on each body, zero up to round-off.

The force through joint i is that of the articulated-body algorithm, f_i = IA_i a_i + pA_i; its component along the
joint's axis is replaced by the actuator force. The residual is that of Newton's and Euler's equations for body i alone:
f_i - sum of the children's f - (I_i a_i + v_i x* I_i v_i - wrench_i), whose a_i are computed anew from qdd. Without
these two substitutions the balance would hold for any accelerations that the sweeps agree on.
"""

from ..simd.jit import kernel
from ..spatial.inertias import momentum
from ..spatial.storage import load3, load9, load_force, load_motion, store_spatial
from ..spatial.vectors import Force, add3, add_forces, force_at_root, scale3, subtract_forces, z_axis
from ..tree.joints import joint_force
from ..tree.kinematics import force_on_parent
from ..tree.layout import PARAM_ADVANCE, PARAM_ARMATURE, PRISMATIC, ROW_A, ROW_F, ROW_LEVER, ROW_R, parameter
from .aba import articulated_inertia_and_bias, forward_dynamics, no_contribution, project_out_joint
from .rnea import apply_newton_euler


@kernel
def force_balance(model, q, qd, loads, qdd, residual, work, k):
    """Solve for qdd, and write what is left of the balance of each body to residual (n, 6, lanes): moment, force."""
    n = model.parent.shape[0]
    forward_dynamics(model, q, qd, loads, qdd, work, k)
    contribution = no_contribution(work, k)
    for i in range(n - 1, -1, -1):
        contribution = find_joint_force(i, model, qd, qdd, loads, residual, contribution, work, k)
    for i in range(n):
        subtract_from_parent(i, model, residual, work, k)
    for i in range(n):
        apply_newton_euler(i, model, qd, qdd, loads, work, k)
        left = subtract_forces(load_force(residual, i, 0, k), load_force(work.dof, i, ROW_F, k))
        p = model.parent[i]
        if p < n and model.body[p] < 0:  # a body without mass is only there for a degree of freedom of this one
            x, y, z = load3(work.dof, i, ROW_LEVER, k)
            left = add_forces(left, force_at_root(load_force(residual, p, 0, k), (-x, -y, -z)))
        store_spatial(residual, i, 0, k, left)


@kernel
def find_joint_force(i, model, qd, qdd, loads, residual, contribution, work, k):
    """f = IA a + pA, by eliminating joint i once more now that a is known; along the axis, the actuator force.

    That is reduced by the force that accelerates the rotor. Returns what `aba.contribute_to_parent` does.
    """
    joint, dof = model.joint[i], work.dof
    axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    IA_body, pA = articulated_inertia_and_bias(i, model, loads, contribution, work, k)
    f = add_forces(momentum(IA_body, load_motion(dof, i, ROW_A, k)), pA)
    given = loads.tau[i, k] - parameter(model.parameters, i, PARAM_ARMATURE, k) * qdd[i, k]
    missing = scale3(given - joint_force(joint, axis, advance, f), axis)
    f = Force(f.ang, add3(f.lin, missing)) if joint == PRISMATIC else Force(add3(f.ang, missing), f.lin)
    store_spatial(residual, i, 0, k, f)
    return project_out_joint(i, model, qd, loads, IA_body, pA, work, k)


@kernel
def subtract_from_parent(i, model, residual, work, k):
    """Take the force through joint i off its parent's balance, before i's own children take theirs off it."""
    p = model.parent[i]
    if p < model.parent.shape[0]:
        handed = force_on_parent(i, load_force(residual, i, 0, k), model, work, k)
        store_spatial(residual, p, 0, k, subtract_forces(load_force(residual, p, 0, k), handed))
