"""Residual of forward dynamics: compute the unbalanced force on each body, to verify the accelerations of a state.

The force through the joint of dof i is f_i = IA_i a_i + pA_i from the articulated-body algorithm, but its component
along the axis is replaced by the applied joint force. The residual of the Newton-Euler equations of one body is

    residual_i = f_i - sum of f over the children - (I_i a_i + v_i x* I_i v_i - wrench_i),

where a_i is computed again from qdd. It is zero up to round-off. Without these two substitutions it would also be zero
for wrong accelerations, if all sweeps contained the same error.
"""

from ...compiling.jit import kernel
from ..spatial.inertias import momentum
from ..spatial.storage import load3, load9, load_force, load_motion, store_spatial
from ..spatial.vectors import Force, add3, add_forces, force_at_root, scale3, subtract_forces, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import joint_force
from ..tree.kinematics import force_on_parent
from ..tree.layout import PRISMATIC, parameter
from .aba import articulated_inertia_and_bias, forward_dynamics, no_contribution, project_out_dof
from .rnea import apply_newton_euler


@kernel
def force_balance(model, q, qd, loads, qdd, residual, work, k):
    """Compute qdd, and the unbalanced moment and force of each dof: residual (n, 6, lanes), N m and N.

    World axes, about the joint origin. A dof without a body passes its residual on to the next dof of its joint. q is
    (nq, lanes), and qd and qdd are (n, lanes).
    """
    n = model.parent.shape[0]
    forward_dynamics(model, q, qd, loads, qdd, work, k)
    contribution = no_contribution(work, k)
    for i in range(n - 1, -1, -1):
        IA, pA = articulated_inertia_and_bias(i, model, loads, contribution, work, k)
        compute_joint_force(i, model, qdd, loads, (IA, pA), residual, work, k)
        contribution = project_out_dof(i, model, qd, loads, IA, pA, work, k)
    for i in range(n):
        subtract_from_parent(i, model, residual, work, k)
    for i in range(n):
        apply_newton_euler(i, model, qd, qdd, loads, work, k)
        unbalanced = subtract_forces(load_force(residual, i, 0, k), load_force(work.dof, i, frame.F, k))
        p = model.parent[i]
        if p < n and model.body[p] < 0:  # dof p belongs to the same joint, so its residual acts on this body
            x, y, z = load3(work.dof, i, frame.LEVER, k)
            unbalanced = add_forces(unbalanced, force_at_root(load_force(residual, p, 0, k), (-x, -y, -z)))
        store_spatial(residual, i, 0, k, unbalanced)


@kernel
def compute_joint_force(i, model, qdd, loads, articulated, residual, work, k):
    """Store f = IA a + pA of dof i as its residual, with the component along the axis replaced by tau - armature qdd.

    `articulated` is (IA, pA), the articulated inertia and bias force of dof i, in world axes about its origin.
    `residual` is (n, 6, lanes), N m and N.
    """
    joint, dof = model.joint[i], work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    IA, pA = articulated
    f = add_forces(momentum(IA, load_motion(dof, i, frame.A, k)), pA)
    applied = loads.tau[i, k] - parameter(model.parameters, i, param.ARMATURE, k) * qdd[i, k]
    correction = scale3(applied - joint_force(joint, axis, advance, f), axis)
    f = Force(f.ang, add3(f.lin, correction)) if joint == PRISMATIC else Force(add3(f.ang, correction), f.lin)
    store_spatial(residual, i, 0, k, f)


@kernel
def subtract_from_parent(i, model, residual, work, k):
    """Subtract the force through the joint of dof i from the residual (n, 6, lanes) of its parent.

    Call it in ascending order of i: the residual of dof i is then still the whole force through its joint.
    """
    p = model.parent[i]
    if p < model.parent.shape[0]:
        f = force_on_parent(i, load_force(residual, i, 0, k), model, work, k)
        store_spatial(residual, p, 0, k, subtract_forces(load_force(residual, p, 0, k), f))
