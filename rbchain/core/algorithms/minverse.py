"""The inverse of the mass matrix, from the results of the articulated-body algorithm.

Column j is the acceleration that a unit force in joint j gives the mechanism at rest without gravity (Featherstone
2008, section 7.3, for n right-hand sides): the same as Carpentier's "Analytical inverse of the joint space inertia
matrix" (2018), but column by column.
"""

from ..simd.jit import kernel
from ..simd.lanes import constant_like
from ..spatial.storage import load3, load9, load_force, load_motion, store_spatial
from ..spatial.vectors import add_forces, motion_at_tip, power, scale_force, z_axis
from ..tree.joints import add_joint_motion, joint_force
from ..tree.kinematics import force_on_parent
from ..tree.layout import PARAM_ADVANCE, ROW_DINV, ROW_LEVER, ROW_R, ROW_U, parameter

# Columns found together: each waits for its own last result, and meanwhile the processor works on the others.
COLUMNS_TOGETHER = 4
# Scratch of a dof for each of them: bias force of the bodies it carries, then, in the same rows, acceleration; and u.
COLUMN_FORCE = COLUMN_ACCELERATION = 0
COLUMN_U = 6
COLUMN_ROWS = 7


@kernel
def mass_matrix_inverse(model, inverse, columns, work, k):
    """inverse (n, n, lanes), from R, LEVER, U and DINV, which `aba` has written.

    Scratch are columns (COLUMNS_TOGETHER, n + 1, COLUMN_ROWS, lanes).
    The inverse is symmetric, so in column j only joints i <= j need an answer.
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
    """u = 1 for joint j, on which a unit force acts, less S . p for those that carry it; and p on to the parent."""
    dof, p = work.dof, model.parent[i]
    axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    pull = load_force(column, i, COLUMN_FORCE, k)
    u = constant_like(dof, 1.0 if i == j else 0.0) - joint_force(model.joint[i], axis, advance, pull)
    column[i, COLUMN_U, k] = u
    pull = add_forces(pull, scale_force(dof[i, ROW_DINV, k] * u, load_force(dof, i, ROW_U, k)))
    pull = force_on_parent(i, pull, model, work, k)
    store_spatial(column, p, COLUMN_FORCE, k, add_forces(load_force(column, p, COLUMN_FORCE, k), pull))


@kernel
def accelerate_under_unit_force(i, j, model, inverse, column, work, k):
    """Acceleration of joint i under a unit force in joint j."""
    dof = work.dof
    axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    a = motion_at_tip(load_motion(column, model.parent[i], COLUMN_ACCELERATION, k), load3(dof, i, ROW_LEVER, k))
    qdd = dof[i, ROW_DINV, k] * (column[i, COLUMN_U, k] - power(load_force(dof, i, ROW_U, k), a))
    store_spatial(column, i, COLUMN_ACCELERATION, k, add_joint_motion(model.joint[i], a, axis, advance, qdd))
    inverse[i, j, k] = qdd
    inverse[j, i, k] = qdd
