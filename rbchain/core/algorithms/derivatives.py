"""Derivatives of the dynamics: differentiate joint forces or accelerations with respect to q, qd, and qdd or tau.

Singh, Russell and Wensing (2022), "Efficient analytical derivatives of rigid-body dynamics using spatial vector
algebra", an O(n d) form of Carpentier and Mansard (2018), "Analytical derivatives of rigid body dynamics algorithms".
Ic is the composite inertia, Bc the composite B of `coriolis`, and fc the force through the joint of dof i. S', P' and
P'' are Sdot, Psidot and Psiddot of the paper. For dof i, and for j = i and its ancestors:

    dtau_i/dq_j  = S_i . (2 Bc P'_j + Ic P''_j)         dtau_j/dq_i  = S_j . (2 Bc P'_i + Ic P''_i + S_i x* fc)
    dtau_i/dqd_j = S_i . (2 Bc S_j + Ic (P'_j + S'_j))  dtau_j/dqd_i = S_j . (2 Bc S_i + Ic (P'_i + S'_i))
    P'_j = v_p x S_j,  P''_j = a_p x S_j + v_p x P'_j,

where v_p and a_p are the velocity and the acceleration of the parent body of the joint.

For free and spherical joints, derivatives with respect to q are taken on the tangent space, along the velocities qd.
All axes of such a joint move with its body, so S_i x* fc is omitted between two dofs of the same joint.
"""

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like
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
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import joint_force, joint_motion, rigid_along
from ..tree.kinematics import axis_motion, force_on_parent, move_dof
from ..tree.layout import PRISMATIC, parameter
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

# Rows of the scratch memory of a dof: the rows of `coriolis`, but with P' + S' instead of S'; then P' and P''.
SCRATCH_PSIDOT_PLUS_SDOT = SCRATCH_SDOT
SCRATCH_PSIDOT = CORIOLIS_ROWS
SCRATCH_PSIDDOT = SCRATCH_PSIDOT + 6
DERIVATIVE_ROWS = SCRATCH_PSIDDOT + 6

# First index of the results. BY_INPUT is with respect to qdd for inverse dynamics, and to tau for forward dynamics.
BY_Q, BY_QD, BY_INPUT = 0, 1, 2


@kernel
def inverse_dynamics_derivatives(model, q, qd, qdd, loads, derivatives, scratch, work, k):
    """Compute d tau / dq, d tau / dqd and d tau / dqdd, as derivatives (3, n, n, lanes), for the samples in lanes k.

    `derivatives` must start as zeros. Only the diagonal and entries (i, j) where one dof is an ancestor of the other
    are written; all others stay zero. q is (nq, lanes), qd and qdd are (n, lanes); SI units.
    `scratch` (n, DERIVATIVE_ROWS, lanes) is scratch memory. Also writes loads.tau, as `inverse_dynamics` does.
    """
    n = model.parent.shape[0]
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
        start_composites(i, model, scratch, work, k)
        apply_newton_euler(i, model, qd, qdd, loads, work, k)
        store_axis_rates(i, model, scratch, work, k)
    for i in range(n - 1, -1, -1):
        differentiate_by_dof(i, model, derivatives, scratch, work, k)
        differentiate_force_of_dof(i, model, derivatives, scratch, work, k)
        pass_inertia(i, model, scratch, work, k)
        pass_coriolis(i, model, scratch, work, k)
        pass_force(i, model, qdd, loads, work, k)


@kernel
def store_axis_rates(i, model, scratch, work, k):
    """Store P' and P'' of dof i: the first and second rates of its axis due to the motion of the parent body.

    Both are in world axes, about the joint origin. Each is a Motion, in the rows SCRATCH_PSIDOT and SCRATCH_PSIDDOT of
    `scratch` (n, DERIVATIVE_ROWS or more, lanes).
    """
    dof, first = work.dof, model.first[i]
    p, r = model.parent[first], load3(dof, first, frame.LEVER, k)
    S = axis_motion(i, model, work, k)
    v, a = motion_at_tip(load_motion(dof, p, frame.V, k), r), motion_at_tip(load_motion(dof, p, frame.A, k), r)
    psidot = cross_motion(v, S)
    store_spatial(scratch, i, SCRATCH_PSIDOT, k, psidot)
    store_spatial(scratch, i, SCRATCH_PSIDDOT, k, add_motions(cross_motion(a, S), cross_motion(v, psidot)))
    store_spatial(
        scratch, i, SCRATCH_PSIDOT_PLUS_SDOT, k, add_motions(psidot, load_motion(scratch, i, SCRATCH_SDOT, k))
    )


@kernel
def differentiate_by_dof(i, model, derivatives, scratch, work, k):
    """Compute the derivatives of tau_j with respect to q_i and qd_i, for j = i and the ancestors of dof i.

    `derivatives` is (3, n, n, lanes), and `scratch` (n, DERIVATIVE_ROWS or more, lanes) has the composites of the
    subtree of dof i.
    """
    n, dof, two, first = model.parent.shape[0], work.dof, constant_like(work.dof, 2.0), model.first[i]
    S, Ic, Bc = axis_motion(i, model, work, k), load_rigid(scratch, i, 0, k), load_coriolis(scratch, i, SCRATCH_B, k)
    coriolis = scale_force(two, coriolis_times(Bc, load_motion(scratch, i, SCRATCH_PSIDOT, k)))
    by_q = add_forces(coriolis, rigid_times(Ic, load_motion(scratch, i, SCRATCH_PSIDDOT, k)))
    coriolis = scale_force(two, coriolis_times(Bc, S))
    by_qd = add_forces(coriolis, rigid_times(Ic, load_motion(scratch, i, SCRATCH_PSIDOT_PLUS_SDOT, k)))
    j = i
    while j < n:
        axis, advance = z_axis(load9(dof, j, frame.R, k)), parameter(model.parameters, j, param.ADVANCE, k)
        derivatives[BY_Q, j, i, k] = joint_force(model.joint[j], axis, advance, by_q)
        derivatives[BY_QD, j, i, k] = joint_force(model.joint[j], axis, advance, by_qd)
        if j == first:
            by_q = add_forces(by_q, cross_force(S, load_force(dof, i, frame.F, k)))
        by_q, by_qd = force_on_parent(j, by_q, model, work, k), force_on_parent(j, by_qd, model, work, k)
        j = model.parent[j]


@kernel
def differentiate_force_of_dof(i, model, derivatives, scratch, work, k):
    """Compute the derivatives of tau_i with respect to q_j, qd_j and qdd_j, for the ancestors j of dof i.

    For j = i, only the derivative with respect to qdd_i: the others come from `differentiate_by_dof`. `derivatives` is
    (3, n, n, lanes), and `scratch` (n, DERIVATIVE_ROWS or more, lanes) has the composites of the subtree of dof i.
    """
    n, dof = model.parent.shape[0], work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    S, Ic = joint_motion(model.joint[i], axis, advance), load_rigid(scratch, i, 0, k)
    inertial = rigid_along(model.joint[i], Ic, axis, advance)
    moment = scale3(constant_like(dof, 2.0), coriolis_transpose_moment(load_coriolis(scratch, i, SCRATCH_B, k), S))
    derivatives[BY_INPUT, i, i, k] = joint_force(model.joint[i], axis, advance, inertial) + parameter(
        model.parameters, i, param.ARMATURE, k
    )
    j = i
    while model.parent[j] < n:
        inertial = force_on_parent(j, inertial, model, work, k)
        j = model.parent[j]
        axis, advance = z_axis(load9(dof, j, frame.R, k)), parameter(model.parameters, j, param.ADVANCE, k)
        psidot, psiddot = load_motion(scratch, j, SCRATCH_PSIDOT, k), load_motion(scratch, j, SCRATCH_PSIDDOT, k)
        derivatives[BY_Q, i, j, k] = dot(moment, psidot.ang) + power(inertial, psiddot)
        by_qd = power(inertial, load_motion(scratch, j, SCRATCH_PSIDOT_PLUS_SDOT, k))
        derivatives[BY_QD, i, j, k] = by_qd if model.joint[j] == PRISMATIC else by_qd + dot(moment, axis)
        H_ij = joint_force(model.joint[j], axis, advance, inertial)
        derivatives[BY_INPUT, i, j, k] = H_ij
        derivatives[BY_INPUT, j, i, k] = H_ij


@kernel
def forward_dynamics_derivatives(block, derivatives, inverse_derivatives, scratch, columns, k):
    """Compute d qdd / dq, d qdd / dqd and d qdd / dtau = H^-1 in the state of a block, as derivatives (3, n, n, lanes).

    tau(q, qd, qdd(q, qd)) is constant, so d qdd = - H^-1 d tau (Carpentier and Mansard 2018, section V). Writes qdd.
    Scratch memory: `inverse_derivatives` (3, n, n, lanes), which must start as zeros, `scratch`
    (n, DERIVATIVE_ROWS, lanes) and `columns` (COLUMNS_TOGETHER, n + 1, COLUMN_ROWS, lanes) of `mass_matrix_inverse`. SI
    units.
    """
    model, work, q, qd, qdd, loads = block.model, block.work, block.q, block.qd, block.qdd, block.loads
    forward_dynamics(model, q, qd, loads, qdd, work, k)
    inverse_dynamics_derivatives(model, q, qd, qdd, loads, inverse_derivatives, scratch, work, k)
    mass_matrix_inverse(model, derivatives[BY_INPUT], columns, work, k)
    multiply_negative(derivatives[BY_INPUT], inverse_derivatives[BY_Q], derivatives[BY_Q], k)
    multiply_negative(derivatives[BY_INPUT], inverse_derivatives[BY_QD], derivatives[BY_QD], k)


@kernel
def multiply_negative(X, Y, result, k):
    """Compute result = - X Y for matrices (n, n, lanes), in tiles of 2 x 4 entries, whose sums fit in the registers."""
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
    """Compute the entries [i : i + 2, j : j + 4] of - X Y, for X, Y and the result (n, n, lanes)."""
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
