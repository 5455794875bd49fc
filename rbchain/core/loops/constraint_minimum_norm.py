"""Multipliers of minimum norm, for constraints with rows that depend on each other.

Let A = J H^-1 J^T = B B^T, where B has one column for each independent row. Multipliers that cause the same forces
J^T lambda differ by a vector that J^T, and therefore B^T, maps to zero. The shortest multipliers are the projection
onto the columns of B, B (B^T B)^-1 B^T lambda. Source: Courrieu (2005), "Fast computation of Moore-Penrose inverse
matrices", for the factor B of full rank.

For the m rows of rigid constraints, B (m, m) is not stored: it follows from `Constraints.matrix`, with columns of zeros
for dependent rows. `Constraints.gram` holds B^T B, then its factors.
"""

import math

from ...compiling.jit import kernel, routine
from ..lanes.lanes import any_lane, constant_like, nan_unless_finite, select, zeros_like
from . import constraint_layout as closure, equation_layout as equation
from .constraint_factors import eliminate, substitute
from .constraint_solver import sum_responses


@routine
def minimum_norm_multipliers(constraints, k):
    """Replace MULTIPLIER by the solution of minimum norm, in the lanes with dependent rows; writes `joint_sums`."""
    rows, envelope, gram = constraints.rows, constraints.tables.envelope, constraints.gram
    m, one = constraints.tables.sizes[closure.RIGID_ROWS], constant_like(rows, 1.0)
    independent = rows[0, equation.KEPT, k]
    for row in range(m):
        independent = min(independent, rows[row, equation.KEPT, k])
    if not any_lane(independent < one):
        return
    store_roots(constraints, k)
    for row in range(m):
        rows[row, equation.REST, k] = rows[row, equation.MULTIPLIER, k]
        rows[row, equation.MULTIPLIER, k] = constant_like(rows, 0.0)
        for column in range(envelope[closure.GRAM_FIRST, row], row + 1):
            gram[envelope[closure.GRAM_OFFSET, row] + column, k] = product_of_columns(constraints, row, column, k)
    for row in range(m):
        pivot = eliminate(
            row, gram, envelope[closure.GRAM_FIRST], envelope[closure.GRAM_OFFSET], rows, equation.GRAM_PIVOT, k
        )
        rows[row, equation.GRAM_PIVOT, k] = one / pivot
    for _ in range(2):  # the second pass projects the difference, which removes the round-off of the first
        for row in range(m):
            rows[row, equation.SOLUTION, k] = rows[row, equation.REST, k] - rows[row, equation.MULTIPLIER, k]
        multiply_by_factor(constraints, True, k)
        substitute(gram, envelope[closure.GRAM_FIRST], envelope[closure.GRAM_OFFSET], rows, equation.GRAM_PIVOT, m, k)
        multiply_by_factor(constraints, False, k)
        for row in range(m):
            rows[row, equation.MULTIPLIER, k] = rows[row, equation.MULTIPLIER, k] + rows[row, equation.SOLUTION, k]
    for row in range(m):
        rows[row, equation.MULTIPLIER, k] = select(
            independent < one, rows[row, equation.MULTIPLIER, k], rows[row, equation.REST, k]
        )
    sum_responses(constraints, k)


@kernel
def store_roots(constraints, k):
    """Compute the roots of the pivots, the diagonal of B; 0 for dependent rows."""
    rows = constraints.rows
    zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
    for row in range(constraints.tables.sizes[closure.RIGID_ROWS]):
        inverse = rows[row, equation.PIVOT, k]
        uses = inverse > zero
        root = one / math.sqrt(select(uses, inverse, one))
        rows[row, equation.ROOT, k] = select(uses, root, nan_unless_finite(inverse))


@kernel
def factor_entry(constraints, row, column, k):
    """Return entry (row, column) of B = L sqrt(E)."""
    root = constraints.rows[column, equation.ROOT, k]
    if row == column:
        return root
    return root * constraints.matrix[constraints.tables.envelope[closure.ENVELOPE_OFFSET, row] + column, k]


@kernel
def product_of_columns(constraints, i, j, k):
    """Return entry (i, j) of B^T B; a dependent row has the diagonal entry 1."""
    envelope, m = constraints.tables.envelope, constraints.tables.sizes[closure.RIGID_ROWS]
    zero, one = constant_like(constraints.rows, 0.0), constant_like(constraints.rows, 1.0)
    total = nan_unless_finite(constraints.rows[i, equation.PIVOT, k])
    for row in range(i, m):
        if envelope[closure.ENVELOPE_FIRST, row] <= j:
            total = total + factor_entry(constraints, row, i, k) * factor_entry(constraints, row, j, k)
    if i == j:
        total = select(constraints.rows[i, equation.PIVOT, k] > zero, total, one + total)
    return total


@kernel
def multiply_by_factor(constraints, transposed, k):
    """Replace SOLUTION by B SOLUTION or, if `transposed` is true, by B^T SOLUTION."""
    rows, first = constraints.rows, constraints.tables.envelope[closure.ENVELOPE_FIRST]
    m = constraints.tables.sizes[closure.RIGID_ROWS]
    for step in range(m):
        target = step if transposed else m - 1 - step
        total = zeros_like(rows[0, equation.SOLUTION, k])
        for other in range(target if transposed else first[target], m if transposed else target + 1):
            if transposed:
                if first[other] <= target:
                    total = total + factor_entry(constraints, other, target, k) * rows[other, equation.SOLUTION, k]
            else:
                total = total + factor_entry(constraints, target, other, k) * rows[other, equation.SOLUTION, k]
        rows[target, equation.SOLUTION, k] = total
