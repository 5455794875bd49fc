"""The inverse of the mass matrix, from the results of the articulated-body algorithm.

Column j is the acceleration that a unit force in joint j gives the mechanism at rest without gravity (Featherstone
2008, section 7.3, for n right-hand sides): the same as Carpentier's "Analytical inverse of the joint space inertia
matrix" (2018), but column by column.
"""

from ..simd.jit import kernel
from ..simd.lanes import like
from ..spatial.storage import load3, load9, load_force, load_motion, store_spatial
from ..spatial.vectors import add_forces, motion_at_tip, power, scale_force, z_axis
from ..tree.joints import add_joint_motion, joint_force
from ..tree.kinematics import force_on_parent
from ..tree.layout import ADVANCE, DINV, LEVER, R, U, parameter

# Columns found together: each waits for its own last result, and meanwhile the processor works on the others.
TOGETHER = 4
# Scratch of a dof for each of them: bias force of the bodies it carries, then, in the same rows, acceleration; and u.
PULL = YIELD = 0
LEFT = 6
COLUMN_ROWS = 7


@kernel
def mass_matrix_inverse(model, inverse, columns, work, k):
    """inverse (n, n, lanes), from R, LEVER, U and DINV, which `aba` has written.

    Scratch are columns (TOGETHER, n + 1, COLUMN_ROWS, lanes).
    The inverse is symmetric, so in column j only joints i <= j need an answer.
    """
    n, zero = model.parent.shape[0], like(work.body, 0.0)
    for start in range(0, n, TOGETHER):
        end = min(start + TOGETHER, n)
        for j in range(start, end):
            for i in range(end):
                for row in range(LEFT):
                    columns[j - start, i, row, k] = zero
        for i in range(end - 1, -1, -1):
            for j in range(start, end):
                pull_joint(i, j, model, columns[j - start], work, k)
        for j in range(start, end):
            for row in range(LEFT):
                columns[j - start, n, row, k] = zero
        for i in range(end):
            for j in range(start, end):
                yield_joint(i, j, model, inverse, columns[j - start], work, k)


@kernel
def pull_joint(i, j, model, column, work, k):
    """u = 1 for joint j, on which a unit force acts, less S . p for those that carry it; and p on to the parent."""
    body, p = work.body, model.parent[i]
    axis, advance = z_axis(load9(body, i, R, k)), parameter(model.parameters, i, ADVANCE, k)
    pull = load_force(column, i, PULL, k)
    u = like(body, 1.0 if i == j else 0.0) - joint_force(model.joint[i], axis, advance, pull)
    column[i, LEFT, k] = u
    pull = add_forces(pull, scale_force(body[i, DINV, k] * u, load_force(body, i, U, k)))
    pull = force_on_parent(i, pull, model, work, k)
    store_spatial(column, p, PULL, k, add_forces(load_force(column, p, PULL, k), pull))


@kernel
def yield_joint(i, j, model, inverse, column, work, k):
    """Acceleration of joint i under a unit force in joint j."""
    body = work.body
    axis, advance = z_axis(load9(body, i, R, k)), parameter(model.parameters, i, ADVANCE, k)
    a = motion_at_tip(load_motion(column, model.parent[i], YIELD, k), load3(body, i, LEVER, k))
    qdd = body[i, DINV, k] * (column[i, LEFT, k] - power(load_force(body, i, U, k), a))
    store_spatial(column, i, YIELD, k, add_joint_motion(model.joint[i], a, axis, advance, qdd))
    inverse[i, j, k] = qdd
    inverse[j, i, k] = qdd
