"""Inverse dynamics: compute joint forces from a motion by the recursive Newton-Euler algorithm.

Also computes accelerations of the bodies and reactions of the joints, which are intermediate results of the algorithm.
Sources: Luh, Walker and Paul (1980); Featherstone (2008), section 5.3.
"""

from ...compiling.jit import kernel
from ..forces.hydrodynamics import add_water_force
from ..spatial.inertias import rigid_momentum
from ..spatial.storage import load3, load9, load_force, load_motion, store3, store_spatial
from ..spatial.vectors import add3, add_forces, add_motions, cross, cross_force, motion_at_tip, rotate_back, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import add_joint_motion, joint_bias, joint_force
from ..tree.kinematics import body_axes, force_on_parent, move_dof, rigid_inertia
from ..tree.layout import parameter
from .aba import subtract_wrench


@kernel
def inverse_dynamics(model, q, qd, qdd, loads, work, k):
    """Compute the joint forces loads.tau (n, lanes) that produce the accelerations qdd, for the samples in lanes k.

    Two sweeps: outward for motions and the forces on each body, inward for joint forces. q is (nq, lanes), qd and qdd
    are (n, lanes); SI units.
    """
    n = model.parent.shape[0]
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
        apply_newton_euler(i, model, qd, qdd, loads, work, k)
    for i in range(n - 1, -1, -1):
        pass_force(i, model, qdd, loads, work, k)


@kernel
def apply_newton_euler(i, model, qd, qdd, loads, work, k):
    """Compute the acceleration of frame i, and the force on its body: F = I a + v x* I v - wrench.

    Reads R, LEVER, V, and A of the parent; writes A and F. The acceleration a is a Motion, and F a Force, in world axes
    at the joint origin.
    """
    a = accelerate_with_joint(i, model, qd, qdd, work, k)
    store_spatial(work.dof, i, frame.F, k, force_on_body(i, model, a, loads, work, k))


@kernel
def accelerate_with_joint(i, model, qd, qdd, work, k):
    """Compute the acceleration of frame i: a = a_parent + c + S qdd.

    Reads R, LEVER, V, and A of the parent. Writes A and returns it: a Motion in world axes, at the joint origin,
    rad/s^2 and m/s^2.
    """
    p, joint, dof = model.parent[i], model.joint[i], work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    c = joint_bias(joint, load_motion(dof, i, frame.V, k), axis, advance, qd[i, k])
    a = add_motions(motion_at_tip(load_motion(dof, p, frame.A, k), load3(dof, i, frame.LEVER, k)), c)
    a = add_joint_motion(joint, a, axis, advance, qdd[i, k])
    store_spatial(dof, i, frame.A, k, a)
    return a


@kernel
def body_accelerations(model, q, qd, qdd, accelerations, work, k):
    """Compute the accelerations of the body origins (3) and the angular accelerations (3), in world axes.

    Writes accelerations (bodies, 6, lanes), m/s^2 and rad/s^2. Call `remove_gravity` before: the sweeps treat gravity
    as an acceleration of the base, which must not count here.
    """
    for i in range(model.parent.shape[0]):
        move_dof(i, model, q, qd, work, k)
        a, v = accelerate_with_joint(i, model, qd, qdd, work, k), load_motion(work.dof, i, frame.V, k)
        b = model.body[i]
        if b >= 0:
            store3(accelerations, b, 0, k, add3(a.lin, cross(v.ang, v.lin)))
            store3(accelerations, b, 3, k, a.ang)


@kernel
def joint_reactions(model, q, qd, qdd, loads, reactions, work, k):
    """Compute the force (3) and the moment (3) that each joint transmits from the parent to its body.

    Writes reactions (bodies, 6, lanes), N and N m about the body origin in body axes; and loads.tau, as
    `inverse_dynamics` does.
    """
    inverse_dynamics(model, q, qd, qdd, loads, work, k)
    for i in range(model.parent.shape[0]):
        b = model.body[i]
        if b >= 0:
            axes, f = body_axes(i, model, work, k), load_force(work.dof, i, frame.F, k)
            store3(reactions, b, 0, k, rotate_back(axes, f.lin))
            store3(reactions, b, 3, k, rotate_back(axes, f.ang))


@kernel
def force_on_body(i, model, a, loads, work, k):
    """Compute the net force that the joints exert on the body of dof i (Featherstone 2008, eq. 5.9).

    F = I a + v x* I v - wrench,  world axes, about the joint origin, N m and N.

    a is a Motion, and F a Force.
    """
    v = load_motion(work.dof, i, frame.V, k)
    m, h, J = rigid_inertia(i, model, work, k)
    inertial = rigid_momentum(m, h, J, a)
    f = subtract_wrench(i, loads, add_forces(inertial, cross_force(v, rigid_momentum(m, h, J, v))), k)
    return add_water_force(i, model, a, f, work, k)


@kernel
def pass_force(i, model, qdd, loads, work, k):
    """Compute tau = S^T F + armature qdd of dof i, and add F to its parent's (Featherstone 2008, eqs. 5.10-5.11).

    F is in world axes, about the joint origin. loads.tau and qdd are (n, lanes).
    """
    p, joint, dof = model.parent[i], model.joint[i], work.dof
    f = load_force(dof, i, frame.F, k)
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    rotor = parameter(model.parameters, i, param.ARMATURE, k) * qdd[i, k]
    loads.tau[i, k] = joint_force(joint, axis, advance, f) + rotor
    if p < model.parent.shape[0]:
        f_parent = add_forces(load_force(dof, p, frame.F, k), force_on_parent(i, f, model, work, k))
        store_spatial(dof, p, frame.F, k, f_parent)
