"""Inverse of the mass matrix: compute H^-1 from the results of the articulated-body algorithm.

Column j is the acceleration of the mechanism at rest, without gravity, under a unit force of dof j. This is the
articulated-body algorithm (Featherstone 2008, section 7.3) for n right-hand sides. Carpentier (2018), "Analytical
inverse of the joint space inertia matrix", computes the same, but not column by column.
"""

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like
from ..spatial.storage import load3, load9, load_force, load_motion, store_spatial
from ..spatial.vectors import add_forces, motion_at_tip, power, scale_force, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import add_joint_motion, joint_force
from ..tree.kinematics import force_on_parent
from ..tree.layout import parameter

# Columns computed at a time: each step of a column depends on the last step, so the processor would otherwise wait.
COLUMNS_TOGETHER = 4
# Rows of the scratch memory of a dof, per column: bias force, later replaced by the acceleration; and u.
COLUMN_FORCE = COLUMN_ACCELERATION = 0
COLUMN_U = 6
COLUMN_ROWS = 7


@kernel
def mass_matrix_inverse(model, inverse, columns, work, k):
    """Compute the inverse (n, n, lanes) of the mass matrix, from R, LEVER, U and DINV of `aba.forward_dynamics`.

    `columns` (COLUMNS_TOGETHER, n + 1, COLUMN_ROWS, lanes) is scratch memory. The inverse is symmetric, so column j
    is computed for dofs i <= j only. It is in 1/(kg m^2), 1/(kg m) or 1/kg.
    """
    n, zero = model.parent.shape[0], constant_like(work.dof, 0.0)
    for start in range(0, n, COLUMNS_TOGETHER):
        end = min(start + COLUMNS_TOGETHER, n)
        for j in range(start, end):
            for i in range(end):
                for row in range(COLUMN_U):
                    columns[j - start, i, row, k] = zero
        for i in range(end - 1, -1, -1):
            for j in range(start, end):
                apply_unit_force(i, j, model, columns[j - start], work, k)
        for j in range(start, end):
            for row in range(COLUMN_U):
                columns[j - start, n, row, k] = zero
        for i in range(end):
            for j in range(start, end):
                accelerate_under_unit_force(i, j, model, inverse, columns[j - start], work, k)


@kernel
def apply_unit_force(i, j, model, column, work, k):
    """Run the inward step of dof i for a unit force of dof j.

        u = (1 if i == j else 0) - S . p,  p_parent += p + U u / D

    Reads R, LEVER, U and DINV; writes u of dof i and adds to the bias force p of the parent. `column` is (n + 1,
    COLUMN_ROWS, lanes).
    """
    dof, p = work.dof, model.parent[i]
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    p_i = load_force(column, i, COLUMN_FORCE, k)
    u = constant_like(dof, 1.0 if i == j else 0.0) - joint_force(model.joint[i], axis, advance, p_i)
    column[i, COLUMN_U, k] = u
    p_i = add_forces(p_i, scale_force(dof[i, frame.DINV, k] * u, load_force(dof, i, frame.U, k)))
    p_i = force_on_parent(i, p_i, model, work, k)
    store_spatial(column, p, COLUMN_FORCE, k, add_forces(load_force(column, p, COLUMN_FORCE, k), p_i))


@kernel
def accelerate_under_unit_force(i, j, model, inverse, column, work, k):
    """Run the outward step of dof i for a unit force of dof j.

    inverse_ij = inverse_ji = qdd = (u - U . a_parent) / D,  a = a_parent + S qdd

    `inverse` is (n, n, lanes), and `column` (n + 1, COLUMN_ROWS, lanes).
    """
    dof = work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    a = motion_at_tip(load_motion(column, model.parent[i], COLUMN_ACCELERATION, k), load3(dof, i, frame.LEVER, k))
    qdd = dof[i, frame.DINV, k] * (column[i, COLUMN_U, k] - power(load_force(dof, i, frame.U, k), a))
    store_spatial(column, i, COLUMN_ACCELERATION, k, add_joint_motion(model.joint[i], a, axis, advance, qdd))
    inverse[i, j, k] = qdd
    inverse[j, i, k] = qdd
