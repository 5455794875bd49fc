"""Regressors: compute the matrices that map the inertial parameters of the bodies to joint forces and energies.

The ten parameters of a body are its mass m, its first moment m c (3), and its inertia J about the body origin (xx, xy,
xz, yy, yz, zz), in body axes. Source: Atkeson, An and Hollerbach (1986), "Estimation of inertial parameters of
manipulator loads and links".
"""

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, zeros_like
from ..spatial.storage import load3, load9, load_motion
from ..spatial.vectors import (
    Force,
    add3,
    cross,
    dot,
    force_at_root,
    rotate_back,
    scale3,
    z_axis,
)
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import joint_force
from ..tree.kinematics import body_axes, move_dof, place_dof, rotate_dof
from ..tree.layout import POSING_CARRIED, PRISMATIC, parameter, parameter3
from .rnea import accelerate_with_joint

PARAMETERS_OF_BODY = 10


@kernel
def inverse_dynamics_regressor(model, q, qd, qdd, Y, work, k):
    """Compute Y (n, bodies, 10, lanes), with tau = sum of Y times the parameters, for the samples in lanes k.

    Y must start as zeros: a body contributes only to its own dofs and their ancestors. Other entries are not written. q
    is (nq, lanes), qd and qdd are (n, lanes); SI units.
    """
    for i in range(model.parent.shape[0]):
        move_dof(i, model, q, qd, work, k)
        accelerate_with_joint(i, model, qd, qdd, work, k)
        if model.body[i] >= 0:
            body_regressor(i, model, Y, work, k)


@kernel
def body_regressor(i, model, Y, work, k):
    """Compute the entries of Y for the body of dof i: the force of a unit of each parameter, projected on the dofs.

        f = m a + w' x h + w x (w x h),  moment about the origin = h x a + J w' + w x J w

    h = m c, w is the angular velocity, and a the acceleration of the body origin less gravity. World axes. Y is
    (n, bodies, 10, lanes).
    """
    n, dof = model.parent.shape[0], work.dof
    axes, v, acceleration = (
        body_axes(i, model, work, k),
        load_motion(dof, i, frame.V, k),
        load_motion(dof, i, frame.A, k),
    )
    w, wd, a = v.ang, acceleration.ang, add3(acceleration.lin, cross(v.ang, v.lin))
    x, y, z = (axes[0], axes[3], axes[6]), (axes[1], axes[4], axes[7]), (axes[2], axes[5], axes[8])
    f_x, f_y, f_z = first_moment_force(x, w, wd, a), first_moment_force(y, w, wd, a), first_moment_force(z, w, wd, a)
    m_xx, m_xy, m_xz = second_moment(x, x, w, wd), mixed_moment(x, y, w, wd), mixed_moment(x, z, w, wd)
    m_yy, m_yz, m_zz = second_moment(y, y, w, wd), mixed_moment(y, z, w, wd), second_moment(z, z, w, wd)
    zero = zeros_like(a[0])
    f_m, b, j = Force((zero, zero, zero), a), model.body[i], i
    while j < n:
        joint, axis = model.joint[j], z_axis(load9(dof, j, frame.R, k))
        advance = parameter(model.parameters, j, param.ADVANCE, k)
        Y[j, b, 0, k] = joint_force(joint, axis, advance, f_m)
        Y[j, b, 1, k] = joint_force(joint, axis, advance, f_x)
        Y[j, b, 2, k] = joint_force(joint, axis, advance, f_y)
        Y[j, b, 3, k] = joint_force(joint, axis, advance, f_z)
        Y[j, b, 4, k] = moment_on_joint(joint, axis, m_xx)
        Y[j, b, 5, k] = moment_on_joint(joint, axis, m_xy)
        Y[j, b, 6, k] = moment_on_joint(joint, axis, m_xz)
        Y[j, b, 7, k] = moment_on_joint(joint, axis, m_yy)
        Y[j, b, 8, k] = moment_on_joint(joint, axis, m_yz)
        Y[j, b, 9, k] = moment_on_joint(joint, axis, m_zz)
        if model.posing[j] != POSING_CARRIED:  # a carried dof has the same joint origin as its parent
            r = load3(dof, j, frame.LEVER, k)
            f_m, f_x = force_at_root(f_m, r), force_at_root(f_x, r)
            f_y, f_z = force_at_root(f_y, r), force_at_root(f_z, r)
        j = model.parent[j]


@kernel
def moment_on_joint(joint, axis, moment):
    """Compute the number S . (moment, 0) for vectors `axis` (3) and `moment` (3) in the same axes."""
    return zeros_like(axis[0]) if joint == PRISMATIC else dot(axis, moment)


@kernel
def first_moment_force(h, w, wd, a):
    """Compute the force and the moment about the body origin due to a first moment h.

    h (3), w (3), rad/s, w' (3), rad/s^2, and a (3), m/s^2, are in world axes. The result is a Force.
    """
    return Force(cross(h, a), add3(cross(wd, h), cross(w, cross(w, h))))


@kernel
def second_moment(x, y, w, wd):
    """Compute J w' + w x J w (3) for J = x y^T and vectors x, y, w and w' (3) in the same axes."""
    return add3(scale3(dot(y, wd), x), cross(w, scale3(dot(y, w), x)))


@kernel
def mixed_moment(x, y, w, wd):
    """Compute J w' + w x J w (3) for J = x y^T + y x^T and vectors x, y, w and w' (3) in the same axes."""
    return add3(second_moment(x, y, w, wd), second_moment(y, x, w, wd))


@kernel
def kinetic_energy_regressor(model, q, qd, Y, work, k):
    """Compute Y (bodies, 10, lanes) for the kinetic energy T = m v.v / 2 + (v x w).h + w.J w / 2, in body axes.

    v is the velocity of the body origin, w the angular velocity, h = m c. T is in J. q is (nq, lanes), and qd
    (n, lanes).
    """
    half = constant_like(work.dof, 0.5)
    for i in range(model.parent.shape[0]):
        move_dof(i, model, q, qd, work, k)
        axes, motion = body_axes(i, model, work, k), load_motion(work.dof, i, frame.V, k)
        v, w = rotate_back(axes, motion.lin), rotate_back(axes, motion.ang)
        b = model.body[i]
        if b >= 0:
            Y[b, 0, k] = half * dot(v, v)
            Y[b, 1, k], Y[b, 2, k], Y[b, 3, k] = cross(v, w)
            Y[b, 4, k], Y[b, 5, k], Y[b, 6, k] = half * w[0] * w[0], w[0] * w[1], w[0] * w[2]
            Y[b, 7, k], Y[b, 8, k], Y[b, 9, k] = half * w[1] * w[1], w[1] * w[2], half * w[2] * w[2]


@kernel
def potential_energy_regressor(model, q, Y, work, k):
    """Compute Y (bodies, 10, lanes) for the potential energy V = - m g . p - g . h; p is the position of the origin.

    q is (nq, lanes), and V is in J.
    """
    n = model.parent.shape[0]
    gravity = parameter3(model.parameters, n, param.GRAVITY, k)
    for i in range(n):
        rotate_dof(i, model, q, work, k)
        place_dof(i, model, work, k)
        b, g = model.body[i], rotate_back(body_axes(i, model, work, k), gravity)
        if b >= 0:
            Y[b, 0, k] = -dot(gravity, load3(work.dof, i, frame.POSITION, k))
            Y[b, 1, k], Y[b, 2, k], Y[b, 3, k] = -g[0], -g[1], -g[2]
