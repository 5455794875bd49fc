"""Hybrid dynamics: given the force or the acceleration of each dof, compute the other, for prescribed motions.

Source: Featherstone (2008), section 9.2. A dof with a prescribed acceleration passes its whole articulated inertia to
the parent, and its acceleration becomes part of the bias force. The prescribed dofs may differ between samples.
"""

from ...compiling.jit import kernel
from ..forces.between_bodies import update_wrenches_between_bodies
from ..forces.wrenches import add_implicit_inertia
from ..lanes.lanes import constant_like, select, zeros_like
from ..spatial.inertias import deflate, momentum
from ..spatial.storage import load3, load9, load_force, load_motion, store_spatial
from ..spatial.vectors import add_forces, add_motions, motion_at_tip, power, scale_force, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import add_joint_motion, inertia_along, joint_bias, joint_force
from ..tree.kinematics import move_dof
from ..tree.layout import parameter
from .aba import articulated_inertia_and_bias, contribute_to_parent, no_contribution, reciprocal_of_inertia


@kernel
def hybrid_dynamics(model, q, qd, loads, qdd, prescribed, work, k):
    """Compute loads.tau where `prescribed` (n, lanes) is not zero, and qdd elsewhere, for the samples in lanes k.

    Three sweeps, as in `aba.forward_dynamics`. q is (nq, lanes), qd, qdd and loads.tau are (n, lanes); SI units.
    """
    n = model.parent.shape[0]
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
    update_wrenches_between_bodies(model, loads, work, k)
    contribution = no_contribution(work, k)
    for i in range(n - 1, -1, -1):
        contribution = project_out_or_prescribe_dof(i, model, loads, (qd, qdd, prescribed), contribution, work, k)
    for i in range(n):
        acceleration_or_force(i, model, qd, loads, qdd, prescribed, work, k)


@kernel
def project_out_or_prescribe_dof(i, model, loads, motion, contribution, work, k):
    """Run the inward step of dof i as `aba.aba_inward_step` does, with 1 / D = 0 if its acceleration is prescribed.

    A prescribed dof has u = - S^T pA and c + S qdd instead of c. An implicit integration step adds to D. `motion`
    contains qd, qdd and `prescribed`, all (n, lanes). `contribution` and the result are an Inertia and a Force, as for
    `aba.children_contribution`.
    """
    qd, qdd, prescribed = motion
    p, joint, dof = model.parent[i], model.joint[i], work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    IA, pA = articulated_inertia_and_bias(i, model, loads, contribution, work, k)
    U = inertia_along(joint, IA, axis, advance)
    D = joint_force(joint, axis, advance, U) + parameter(model.parameters, i, param.ARMATURE, k)
    D = add_implicit_inertia(i, loads, D, k)
    is_prescribed, zero = prescribed[i, k] != constant_like(dof, 0.0), zeros_like(D)
    Dinv = select(is_prescribed, zero, reciprocal_of_inertia(i, model, D, IA, work, k))
    u = select(is_prescribed, zero, loads.tau[i, k]) - joint_force(joint, axis, advance, pA)
    store_spatial(dof, i, frame.U, k, U)
    dof[i, frame.DINV, k] = Dinv
    dof[i, frame.FORCE, k] = u
    if p < model.parent.shape[0]:
        c = joint_bias(joint, load_motion(dof, i, frame.V, k), axis, advance, qd[i, k])
        c = add_joint_motion(joint, c, axis, advance, select(is_prescribed, qdd[i, k], zero))
        Ia = deflate(IA, U, Dinv)
        pa = add_forces(add_forces(pA, momentum(Ia, c)), scale_force(Dinv * u, U))
        return contribute_to_parent(i, model, Ia, pa, work, k)
    return IA, pA  # not used: a root has no parent


@kernel
def acceleration_or_force(i, model, qd, loads, qdd, prescribed, work, k):
    """Compute qdd as `aba.accelerate_dof` does or, if it is prescribed, tau = S . (IA a + pA) + armature qdd.

    qd, qdd, loads.tau and `prescribed` are (n, lanes).
    """
    p, joint, dof = model.parent[i], model.joint[i], work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    is_prescribed = prescribed[i, k] != constant_like(dof, 0.0)
    U, u = load_force(dof, i, frame.U, k), dof[i, frame.FORCE, k]
    c = joint_bias(joint, load_motion(dof, i, frame.V, k), axis, advance, qd[i, k])
    a = add_motions(motion_at_tip(load_motion(dof, p, frame.A, k), load3(dof, i, frame.LEVER, k)), c)
    qdd_i = select(is_prescribed, qdd[i, k], dof[i, frame.DINV, k] * (u - power(U, a)))
    a = add_joint_motion(joint, a, axis, advance, qdd_i)
    tau = power(U, a) - u + parameter(model.parameters, i, param.ARMATURE, k) * qdd_i
    qdd[i, k] = qdd_i
    loads.tau[i, k] = select(is_prescribed, tau, loads.tau[i, k])
    store_spatial(dof, i, frame.A, k, a)
