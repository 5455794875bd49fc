"""Inverse dynamics: the recursive Newton-Euler algorithm (Luh, Walker, Paul 1980; Featherstone 2008, section 5.3)."""

from .aba import subtract_wrench
from .jit import kernel
from .joints import add_joint_motion, joint_bias, joint_force
from .kinematics import move_body, rigid_inertia
from .layout import ADVANCE, LEVER, A, F, R, V, parameter
from .spatial import add_forces, add_motions, cross_force, force_at_root, motion_at_tip, rigid_momentum, z_axis
from .storage import load3, load9, load_force, load_motion, store_spatial


@kernel
def inverse_dynamics(model, q, qd, qdd, loads, work, k):
    """Joint forces that give the accelerations qdd, written to loads.tau, for the chains of lanes k."""
    n = model.parent.shape[0]
    for i in range(n):
        move_body(i, model, q, qd, work, k)
        impel_body(i, model, qd, qdd, loads, work, k)
    for i in range(n - 1, -1, -1):
        pass_force(i, model, loads, work, k)


@kernel
def impel_body(i, model, qd, qdd, loads, work, k):
    """a = a_parent + c + S qdd, and the force the motion of body i alone takes: F = I a + v x* I v - wrench."""
    p, joint, body = model.parent[i], model.joint[i], work.body
    axis, advance = z_axis(load9(body, i, R, k)), parameter(model.parameters, i, ADVANCE, k)
    c = joint_bias(joint, load_motion(body, i, V, k), axis, advance, qd[i, k])
    a = add_motions(motion_at_tip(load_motion(body, p, A, k), load3(body, i, LEVER, k)), c)
    a = add_joint_motion(joint, a, axis, advance, qdd[i, k])
    store_spatial(body, i, A, k, a)
    store_spatial(body, i, F, k, force_on_body(i, model, a, loads, work, k))


@kernel
def force_on_body(i, model, a, loads, work, k):
    """I a + v x* I v - wrench: what the joints together must exert on body i (Featherstone 2008, eq. 5.9)."""
    v = load_motion(work.body, i, V, k)
    m, h, J = rigid_inertia(i, model, work, k)
    inertial = rigid_momentum(m, h, J, a)
    return subtract_wrench(i, loads, add_forces(inertial, cross_force(v, rigid_momentum(m, h, J, v))), k)


@kernel
def pass_force(i, model, loads, work, k):
    """tau = S^T F, and F on to the parent (Featherstone 2008, eqs. 5.10-5.11)."""
    p, joint, body = model.parent[i], model.joint[i], work.body
    f = load_force(body, i, F, k)
    axis, advance = z_axis(load9(body, i, R, k)), parameter(model.parameters, i, ADVANCE, k)
    loads.tau[i, k] = joint_force(joint, axis, advance, f)
    if p < model.parent.shape[0]:
        f_parent = add_forces(load_force(body, p, F, k), force_at_root(f, load3(body, i, LEVER, k)))
        store_spatial(body, p, F, k, f_parent)
