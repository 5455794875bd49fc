"""Derivatives of the accelerations of closed loops with respect to q, qd and tau.

Let K = dtau/dq - d(J^T lambda)/dq and D = dtau/dqd be the derivatives of inverse dynamics and of the forces of the
constraints, at the accelerations and multipliers of the state. Let c = J qdd + dJ/dt qd be the accelerations of the
rows. The derivatives of H qdd + h = tau + J^T lambda and of c = 0 are

    H dqdd - J^T dlambda = - K dq - D dqd + dtau,   J dqdd = - dc/dq dq - dc/dqd dqd.

With the responses Y = J H^-1 and the reactions X = (J H^-1 J^T)^-1 J,

    H dqdd = - (K - X^T (Y K - dc/dq)) dq - (D - X^T (Y D - dc/dqd)) dqd + (1 - X^T Y) dtau.

If the accelerations of some dofs are prescribed, only the other dofs f respond to forces (hybrid dynamics). The rows
of dofs f in these equations hold with Y_f = J_f H_ff^-1, Y = 0 for the prescribed dofs, and
X = (J_f H_ff^-1 J_f^T)^-1 J.

For compliant rows, dc/dq and dc/dqd contain the derivatives of 2 / t dphi/dt + phi / t^2 (`constraint_solver`), and
c / t^2 is part of the diagonal of J H^-1 J^T in X.

`project_derivatives` replaces K and D by these brackets. The derivatives hold for all changes dq and dqd, even for
changes that violate the constraints. Rows that count as dependent in the state remain so: their multipliers are zero.

Sources: Carpentier and Mansard (2018), "Analytical derivatives of rigid body dynamics algorithms"; Carpentier,
Budhiraja and Mansard (2021), "Proximal and sparse resolution of constrained dynamic equations"; Featherstone (2008),
chapter 8.
"""

from ...compiling.jit import kernel, routine
from ..algorithms.derivatives import BY_INPUT, BY_Q, BY_QD, inverse_dynamics_derivatives, multiply_negative
from ..algorithms.minverse import mass_matrix_inverse
from ..lanes.lanes import constant_like, full_like, select
from ..tree.layout import apply_gravity
from . import constraint_layout as closure, equation_layout as equation
from .constrained_dynamics import constrained_forward_dynamics
from .constraint_jacobian import constraint_jacobian
from .constraint_solver import respond_to_multipliers, solve_multipliers
from .derivatives_of_constraints import differentiate_constraints


@kernel
def constrained_forward_dynamics_derivatives(
    block, constraints, derivatives, inverse_derivatives, scratch, columns, parts, k
):
    """Compute d qdd / dq, d qdd / dqd and d qdd / dtau of a closed loop, as derivatives (3, n, n, lanes). Writes qdd.

    Scratch memory: `inverse_derivatives` (3, n, n, lanes), `scratch` and `columns` as in
    `derivatives.forward_dynamics_derivatives`, and `parts`, a ConstraintDerivatives. SI units.
    """
    model, work, q, qd, qdd, loads = block.model, block.work, block.q, block.qd, block.qdd, block.loads
    for by in range(2):
        for i in range(qdd.shape[0]):
            for j in range(qdd.shape[0]):
                inverse_derivatives[by, i, j, k] = constant_like(qdd, 0.0)
    constrained_forward_dynamics(model, constraints, q, qd, loads, qdd, work, k)
    store_reactions(model, constraints, parts, work, k)
    inverse_dynamics_derivatives(model, q, qd, qdd, loads, inverse_derivatives, scratch, work, k)
    differentiate_constraints(model, constraints, parts, inverse_derivatives, scratch, work, k)
    for by in range(2):
        project_derivatives(inverse_derivatives[by], parts.by_q if by == BY_Q else parts.by_qd, parts, k)
    mass_matrix_inverse(model, derivatives[BY_INPUT], columns, work, k)
    multiply_negative(derivatives[BY_INPUT], inverse_derivatives[BY_Q], derivatives[BY_Q], k)
    multiply_negative(derivatives[BY_INPUT], inverse_derivatives[BY_QD], derivatives[BY_QD], k)
    subtract_constrained_part(derivatives[BY_INPUT], parts, k)


@routine
def store_reactions(model, constraints, parts, work, k):
    """Store the multipliers of the state, the responses Y = J H^-1 and the reactions X = (J H^-1 J^T)^-1 J.

    Y is `parts.responses`, and X is `parts.reactions` (m, n, lanes). Reads R, LEVER, U, DINV and the rows of the last
    constrained dynamics. Writes A and MULTIPLIER.
    """
    rows, X, Y = constraints.rows, parts.reactions, parts.responses
    for row in range(rows.shape[0]):
        parts.multipliers[row, k] = rows[row, equation.MULTIPLIER, k]
        for i in range(X.shape[1]):
            X[row, i, k] = constant_like(X, 0.0)
    constraint_jacobian(model, constraints, X, closure.ROW, work, k)
    store_responses(model, constraints, Y, work, k)
    for i in range(X.shape[1]):
        for row in range(rows.shape[0]):
            rows[row, equation.TARGET, k] = X[row, i, k]
        solve_multipliers(constraints, work, k)
        for row in range(rows.shape[0]):
            X[row, i, k] = rows[row, equation.MULTIPLIER, k]
    apply_gravity(model, work, k)


@kernel
def store_responses(model, constraints, Y, work, k):
    """Store Y = J H^-1 (m, n, lanes): row r holds the accelerations due to a unit multiplier of row r alone."""
    tables, sums = constraints.tables, constraints.joint_sums
    table = tables.table
    for c in range(table.shape[1]):
        width, first = table[closure.SUPPORT_COUNT, c], table[closure.SUPPORT, c]
        for r in range(table[closure.ROW_COUNT, c]):
            for i in range(sums.shape[0]):
                sums[i, k] = constant_like(sums, 0.0)
            for slot in range(width):
                i = tables.support[first + slot]
                sums[i, k] = constraints.responses[table[closure.RESPONSE, c] + r * width + slot, k]
            respond_to_multipliers(model, constraints, work, k)
            for i in range(sums.shape[0]):
                Y[table[closure.ROW, c] + r, i, k] = constraints.changes[i, k]


@kernel
def project_derivatives(matrix, of_rows, parts, k):
    """Replace a matrix (n, columns, lanes) by matrix - X^T (Y matrix - of_rows), with `of_rows` (m, columns, lanes).

    Overwrites `of_rows`.
    """
    X, Y = parts.reactions, parts.responses
    m, n = X.shape[0], X.shape[1]
    for row in range(m):
        for column in range(matrix.shape[1]):
            total = -of_rows[row, column, k]
            for i in range(n):
                total = total + Y[row, i, k] * matrix[i, column, k]
            of_rows[row, column, k] = total
    for i in range(n):
        for column in range(matrix.shape[1]):
            total = matrix[i, column, k]
            for row in range(m):
                total = total - X[row, i, k] * of_rows[row, column, k]
            matrix[i, column, k] = total


@kernel
def project_force(constraints, parts, f, k):
    """Replace joint forces f (n, lanes), N m or N, by f - X^T Y f: the forces that accelerate the mechanism."""
    X, Y, rows = parts.reactions, parts.responses, constraints.rows
    for row in range(rows.shape[0]):
        rows[row, equation.TARGET, k] = product_of_row(Y, row, f, k)
    for i in range(f.shape[0]):
        total = f[i, k]
        for row in range(rows.shape[0]):
            total = total - X[row, i, k] * rows[row, equation.TARGET, k]
        f[i, k] = total


@kernel
def project_change(constraints, parts, u, w, is_closed, work, k):
    """Move a change (u, w), (n, lanes) each, of positions and velocities to the nearest one that keeps loops closed.

    To first order, and in the metric of inertia, as `constrained_dynamics.project_state` does for states:

        u - Y^T X u,   w - Y^T (X w + (J H^-1 J^T)^-1 d(J qd)/dq u).

    Rows of added inertias do not restrict changes: X has a part for them, which is taken away. Lanes in which
    `is_closed` is false keep their changes. Overwrites TARGET and MULTIPLIER.
    """
    X, Y, rows = parts.reactions, parts.responses, constraints.rows
    has_added = rows.shape[0] > constraints.tables.sizes[closure.CONSTRAINT_ROWS]
    if has_added:
        for row in range(rows.shape[0]):
            rows[row, equation.TARGET, k] = constant_like(rows, 0.0)
        release_light_dofs(constraints, u, k)
        solve_multipliers(constraints, work, k)
    for row in range(rows.shape[0]):
        of_row = product_of_row(X, row, u, k)
        rows[row, equation.MULTIPLIER, k] = rows[row, equation.MULTIPLIER, k] + of_row if has_added else of_row
    subtract_accelerations(Y, rows, u, is_closed, k)
    for row in range(rows.shape[0]):
        rows[row, equation.TARGET, k] = product_of_row(parts.rates, row, u, k)
    if has_added:
        release_light_dofs(constraints, w, k)
    solve_multipliers(constraints, work, k)
    for row in range(rows.shape[0]):
        rows[row, equation.MULTIPLIER, k] = rows[row, equation.MULTIPLIER, k] + product_of_row(X, row, w, k)
    subtract_accelerations(Y, rows, w, is_closed, k)


@kernel
def release_light_dofs(constraints, x, k):
    """Subtract the changes x (n, lanes) of the dofs with an added inertia from TARGET of their rows."""
    table, rows = constraints.tables.table, constraints.rows
    for c in range(table.shape[1]):
        if table[closure.TYPE, c] == closure.ADDED_INERTIA:
            row, i = table[closure.ROW, c], table[closure.DOF_B, c]
            rows[row, equation.TARGET, k] = rows[row, equation.TARGET, k] - x[i, k]


@kernel
def project_acceleration(constraints, parts, u, k):
    """Replace accelerations u (n, lanes) of the open tree, with its added inertias, by u - Y^T X u.

    These are the accelerations of the closed loop under the same forces. Overwrites MULTIPLIER.
    """
    rows = constraints.rows
    for row in range(rows.shape[0]):
        rows[row, equation.MULTIPLIER, k] = product_of_row(parts.reactions, row, u, k)
    is_closed = full_like(u[0, k], 1.0) > constant_like(u, 0.0)
    subtract_accelerations(parts.responses, rows, u, is_closed, k)


@kernel
def product_of_row(matrix, row, x, k):
    """Return the product of one row of a matrix (m, n, lanes) and a vector x (n, lanes)."""
    total = matrix[row, 0, k] * x[0, k]
    for i in range(1, x.shape[0]):
        total = total + matrix[row, i, k] * x[i, k]
    return total


@kernel
def subtract_accelerations(Y, rows, x, is_closed, k):
    """Subtract Y^T MULTIPLIER from x (n, lanes) in the lanes in which `is_closed` is true; Y is (m, n, lanes)."""
    for i in range(x.shape[0]):
        total = x[i, k]
        for row in range(rows.shape[0]):
            total = total - Y[row, i, k] * rows[row, equation.MULTIPLIER, k]
        x[i, k] = select(is_closed, total, x[i, k])


@kernel
def subtract_constrained_part(inverse, parts, k):
    """Replace H^-1 (n, n, lanes) by H^-1 (1 - X^T Y). Overwrites `parts.by_q`."""
    X, Y, XM = parts.reactions, parts.responses, parts.by_q  # XM = X H^-1
    m, n = X.shape[0], X.shape[1]
    for row in range(m):
        for j in range(n):
            total = X[row, 0, k] * inverse[0, j, k]
            for i in range(1, n):
                total = total + X[row, i, k] * inverse[i, j, k]
            XM[row, j, k] = total
    for i in range(n):
        for j in range(n):
            total = inverse[i, j, k]
            for row in range(m):
                total = total - XM[row, i, k] * Y[row, j, k]
            inverse[i, j, k] = total
