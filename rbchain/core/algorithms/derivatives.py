"""Analytical derivatives of inverse and forward dynamics.

Singh, Russell and Wensing (2022), "Efficient analytical derivatives of rigid-body dynamics using spatial vector
algebra", an O(n d) form of Carpentier and Mansard (2018), "Analytical derivatives of rigid body dynamics algorithms".
With the composite inertia Ic, the composite B of `coriolis`, and the force fc through joint i, for j = i and all that
carry i (S', P' and P'' below are their Sdot, Psidot and Psiddot):

    dtau_i/dq_j  = S_i . (2 Bc P'_j + Ic P''_j)         dtau_j/dq_i  = S_j . (2 Bc P'_i + Ic P''_i + S_i x* fc)
    dtau_i/dqd_j = S_i . (2 Bc S_j + Ic (P'_j + S'_j))  dtau_j/dqd_i = S_j . (2 Bc S_i + Ic (P'_i + S'_i))
    P'_j = v_p x S_j,  P''_j = a_p x S_j + v_p x P'_j,  with v_p and a_p those of the body that joint j is on.

Derivatives with respect to q are along its tangent space: the velocities of a free or spherical joint. Their axes move
with the body, so between two of them S_i x* fc is left out.
"""

from ..simd.jit import kernel
from ..simd.lanes import constant_like
from ..spatial.inertias import rigid_times
from ..spatial.storage import load3, load9, load_force, load_motion, load_rigid, store_spatial
from ..spatial.vectors import (
    add_forces,
    add_motions,
    cross_force,
    cross_motion,
    dot,
    motion_at_tip,
    power,
    scale3,
    scale_force,
    z_axis,
)
from ..tree.joints import joint_force, joint_motion, rigid_along
from ..tree.kinematics import axis_motion, force_on_parent, move_dof
from ..tree.layout import PARAM_ADVANCE, PARAM_ARMATURE, PRISMATIC, ROW_A, ROW_F, ROW_LEVER, ROW_R, ROW_V, parameter
from .aba import forward_dynamics
from .coriolis import (
    CORIOLIS_ROWS,
    SCRATCH_B,
    SCRATCH_SDOT,
    coriolis_times,
    coriolis_transpose_moment,
    load_coriolis,
    pass_coriolis,
    start_composites,
)
from .crba import pass_inertia
from .minverse import mass_matrix_inverse
from .rnea import apply_newton_euler, pass_force

# Scratch of a body: that of the Coriolis matrix, but P' + S' in the place of S', and P', P''.
SCRATCH_PSIDOT_PLUS_SDOT = SCRATCH_SDOT
SCRATCH_PSIDOT = CORIOLIS_ROWS
SCRATCH_PSIDDOT = SCRATCH_PSIDOT + 6
DERIVATIVE_ROWS = SCRATCH_PSIDDOT + 6

# Which derivative: the first index of the results.
WITH_Q, WITH_QD, WITH_LAST = 0, 1, 2


@kernel
def inverse_dynamics_derivatives(model, q, qd, qdd, loads, found, scratch, work, k):
    """found (3, n, n, lanes): d tau / dq, d tau / dqd and d tau / dqdd; scratch (n, DERIVATIVE_ROWS, lanes).

    Pairs of bodies of which neither carries the other are not written: their entries stay zero.
    """
    n = model.parent.shape[0]
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
        start_composites(i, model, scratch, work, k)
        apply_newton_euler(i, model, qd, qdd, loads, work, k)
        store_axis_rates(i, model, scratch, work, k)
    for i in range(n - 1, -1, -1):
        differentiate_along_joint(i, model, found, scratch, work, k)
        differentiate_joint_force(i, model, found, scratch, work, k)
        pass_inertia(i, model, scratch, work, k)
        pass_coriolis(i, model, scratch, work, k)
        pass_force(i, model, qdd, loads, work, k)


@kernel
def store_axis_rates(i, model, scratch, work, k):
    """P' and P'' of joint i: rates of its axis, first and second, that follow from the motion of the parent."""
    dof, first = work.dof, model.first[i]
    p, r = model.parent[first], load3(dof, first, ROW_LEVER, k)
    S = axis_motion(i, model, work, k)
    v, a = motion_at_tip(load_motion(dof, p, ROW_V, k), r), motion_at_tip(load_motion(dof, p, ROW_A, k), r)
    psidot = cross_motion(v, S)
    store_spatial(scratch, i, SCRATCH_PSIDOT, k, psidot)
    store_spatial(scratch, i, SCRATCH_PSIDDOT, k, add_motions(cross_motion(a, S), cross_motion(v, psidot)))
    store_spatial(
        scratch, i, SCRATCH_PSIDOT_PLUS_SDOT, k, add_motions(psidot, load_motion(scratch, i, SCRATCH_SDOT, k))
    )


@kernel
def differentiate_along_joint(i, model, found, scratch, work, k):
    """Derivatives with respect to q_i and qd_i of the forces in joint i and in all joints that carry it."""
    n, dof, two, first = model.parent.shape[0], work.dof, constant_like(work.dof, 2.0), model.first[i]
    S, I_c, B_c = axis_motion(i, model, work, k), load_rigid(scratch, i, 0, k), load_coriolis(scratch, i, SCRATCH_B, k)
    coriolis = scale_force(two, coriolis_times(B_c, load_motion(scratch, i, SCRATCH_PSIDOT, k)))
    by_q = add_forces(coriolis, rigid_times(I_c, load_motion(scratch, i, SCRATCH_PSIDDOT, k)))
    coriolis = scale_force(two, coriolis_times(B_c, S))
    by_qd = add_forces(coriolis, rigid_times(I_c, load_motion(scratch, i, SCRATCH_PSIDOT_PLUS_SDOT, k)))
    j = i
    while j < n:
        axis, advance = z_axis(load9(dof, j, ROW_R, k)), parameter(model.parameters, j, PARAM_ADVANCE, k)
        found[WITH_Q, j, i, k] = joint_force(model.joint[j], axis, advance, by_q)
        found[WITH_QD, j, i, k] = joint_force(model.joint[j], axis, advance, by_qd)
        if j == first:
            by_q = add_forces(by_q, cross_force(S, load_force(dof, i, ROW_F, k)))
        by_q, by_qd = force_on_parent(j, by_q, model, work, k), force_on_parent(j, by_qd, model, work, k)
        j = model.parent[j]


@kernel
def differentiate_joint_force(i, model, found, scratch, work, k):
    """Derivatives of the force in joint i with respect to q_j, qd_j and qdd_j of all joints j that carry it."""
    n, dof = model.parent.shape[0], work.dof
    axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    S, I_c = joint_motion(model.joint[i], axis, advance), load_rigid(scratch, i, 0, k)
    inertial = rigid_along(model.joint[i], I_c, axis, advance)
    moment = scale3(constant_like(dof, 2.0), coriolis_transpose_moment(load_coriolis(scratch, i, SCRATCH_B, k), S))
    found[WITH_LAST, i, i, k] = joint_force(model.joint[i], axis, advance, inertial) + parameter(
        model.parameters, i, PARAM_ARMATURE, k
    )
    j = i
    while model.parent[j] < n:
        inertial = force_on_parent(j, inertial, model, work, k)
        j = model.parent[j]
        axis, advance = z_axis(load9(dof, j, ROW_R, k)), parameter(model.parameters, j, PARAM_ADVANCE, k)
        psidot, psiddot = load_motion(scratch, j, SCRATCH_PSIDOT, k), load_motion(scratch, j, SCRATCH_PSIDDOT, k)
        found[WITH_Q, i, j, k] = dot(moment, psidot.ang) + power(inertial, psiddot)
        by_qd = power(inertial, load_motion(scratch, j, SCRATCH_PSIDOT_PLUS_SDOT, k))
        found[WITH_QD, i, j, k] = by_qd if model.joint[j] == PRISMATIC else by_qd + dot(moment, axis)
        H_ij = joint_force(model.joint[j], axis, advance, inertial)
        found[WITH_LAST, i, j, k] = H_ij
        found[WITH_LAST, j, i, k] = H_ij


@kernel
def forward_dynamics_derivatives(model, q, qd, qdd, loads, found, of_inverse, scratch, columns, work, k):
    """found (3, n, n, lanes): d qdd / dq, d qdd / dqd and d qdd / dtau = H^-1.

    Scratch are of_inverse, as large, and those of `inverse_dynamics_derivatives` and `mass_matrix_inverse`.

    From tau(q, qd, qdd(q, qd)) = constant follows d qdd = - H^-1 d tau (Carpentier and Mansard 2018, section V).
    """
    forward_dynamics(model, q, qd, loads, qdd, work, k)
    inverse_dynamics_derivatives(model, q, qd, qdd, loads, of_inverse, scratch, work, k)
    mass_matrix_inverse(model, found[WITH_LAST], columns, work, k)
    multiply_negative(found[WITH_LAST], of_inverse[WITH_Q], found[WITH_Q], k)
    multiply_negative(found[WITH_LAST], of_inverse[WITH_QD], found[WITH_QD], k)


@kernel
def multiply_negative(X, Y, result, k):
    """result = - X Y of matrices (n, n, lanes), in tiles of two by four that fill the registers."""
    n = X.shape[0]
    if n < 4:
        for i in range(n):
            for j in range(n):
                total = -X[i, 0, k] * Y[0, j, k]
                for l in range(1, n):  # noqa: E741
                    total = total - X[i, l, k] * Y[l, j, k]
                result[i, j, k] = total
        return
    for j in range(0, n, 4):
        for i in range(0, n, 2):
            multiply_tile(min(i, n - 2), min(j, n - 4), X, Y, result, k)


@kernel
def multiply_tile(i, j, X, Y, result, k):
    """Entries [i : i + 2, j : j + 4] of - X Y."""
    x, z = -X[i, 0, k], -X[i + 1, 0, k]
    y = (Y[0, j, k], Y[0, j + 1, k], Y[0, j + 2, k], Y[0, j + 3, k])
    upper, lower = (x * y[0], x * y[1], x * y[2], x * y[3]), (z * y[0], z * y[1], z * y[2], z * y[3])
    for l in range(1, X.shape[0]):  # noqa: E741
        x, z = X[i, l, k], X[i + 1, l, k]
        y = (Y[l, j, k], Y[l, j + 1, k], Y[l, j + 2, k], Y[l, j + 3, k])
        upper = (upper[0] - x * y[0], upper[1] - x * y[1], upper[2] - x * y[2], upper[3] - x * y[3])
        lower = (lower[0] - z * y[0], lower[1] - z * y[1], lower[2] - z * y[2], lower[3] - z * y[3])
    for column in range(4):
        result[i, j + column, k] = upper[column]
        result[i + 1, j + column, k] = lower[column]
