"""Factors of the symmetric matrix of the rows, and the selection of independent rows.

The matrix A = J H^-1 J^T = L E L^T is factored in the order of the rows, within its envelope (Jennings 1977, *Matrix
Computation for Engineers and Scientists*, section 5.8). A row whose pivot is round-off depends on the rows before it.

In this order, a pivot may be small only because its row nearly depends on the rows before it, while a later row could
replace it. A selection with such a pivot is not used. An elimination with the largest pivot first selects the rows
anew, as in the pivoted Cholesky factorization (Higham 2002, *Accuracy and Stability of Numerical Algorithms*, section
10.3). The selection is made at the end of each step, long before its rows depend on each other.

The rows of compliant constraints and of added inertias (`constraint_solver`) follow the rows of the rigid constraints.
They are always independent. The pivots of added inertias are negative.
"""

import math

import numpy as np

from ...compiling.jit import kernel, routine
from ..lanes.lanes import constant_like, epsilon, full_like, nan_unless_finite, select
from . import constraint_layout as closure, equation_layout as equation

# A pivot below this multiple of epsilon times its scale is round-off.
DEPENDENT_ROW_FACTOR = 512.0
# The rows are selected again if the ratio of a pivot to its scale is below this number while other rows are dependent.
# If all rows count as independent, round-off may have hidden a dependent row: the limit is then epsilon to this power.
SMALL_PIVOT = 1e-3
DOUBTFUL_POWER = 0.5


@kernel
def factor_matrix(constraints, may_decide, k):
    """Factor `constraints.matrix` in place, and store 1 / E in PIVOT (0 for a dependent row).

    If `may_decide` is true, it decides in the lanes with FLAG_DECIDES which rows are independent. It sets
    FLAG_UNCERTAIN in the lanes in which the rows must be selected again.
    """
    matrix, rows, envelope = constraints.matrix, constraints.rows, constraints.tables.envelope
    flags, zero, one = constraints.flags, constant_like(matrix, 0.0), constant_like(matrix, 1.0)
    round_off = constant_like(matrix, DEPENDENT_ROW_FACTOR * epsilon(matrix))
    decides = flags[closure.FLAG_DECIDES, k] > (zero if may_decide else constant_like(matrix, np.inf))
    smallest = full_like(flags[closure.FLAG_DECIDES, k], 1.0)
    fewest = smallest
    for row in range(constraints.tables.sizes[closure.RIGID_ROWS]):
        scale = rows[row, equation.PIVOT_SCALE, k]
        pivot = eliminate(
            row, matrix, envelope[closure.ENVELOPE_FIRST], envelope[closure.ENVELOPE_OFFSET], rows, equation.PIVOT, k
        )
        is_independent, nothing = pivot > round_off * scale, nan_unless_finite(pivot)
        kept = select(decides, select(is_independent, one + nothing, nothing), rows[row, equation.KEPT, k])
        rows[row, equation.KEPT, k] = kept
        uses = (kept > zero) & (pivot > zero)
        # NaN if the scale is NaN: such rows cannot be solved
        rows[row, equation.PIVOT, k] = select(uses, one / select(uses, pivot, one), nothing + nan_unless_finite(scale))
        smallest = select(uses, min(smallest, pivot / select(uses, scale, one)), smallest)
        fewest = min(fewest, kept)
    factor_compliant_rows(constraints, k)
    factor_added_inertias(constraints, k)
    flags[closure.FLAG_CONDITION, k] = math.sqrt(smallest)
    doubtful = constant_like(matrix, epsilon(matrix) ** DOUBTFUL_POWER)
    limit = select(fewest > zero, doubtful, constant_like(matrix, SMALL_PIVOT))
    flags[closure.FLAG_UNCERTAIN, k] = select(decides & (smallest < limit), one, zero)


@kernel
def factor_compliant_rows(constraints, k):
    """Factor the rows of compliant constraints. PIVOT is NaN if a compliance is lost in the round-off of its row."""
    matrix, rows, envelope = constraints.matrix, constraints.rows, constraints.tables.envelope
    zero, one = constant_like(matrix, 0.0), constant_like(matrix, 1.0)
    round_off, sizes = constant_like(matrix, DEPENDENT_ROW_FACTOR * epsilon(matrix)), constraints.tables.sizes
    for row in range(sizes[closure.RIGID_ROWS], sizes[closure.CONSTRAINT_ROWS]):
        scale = matrix[envelope[closure.ENVELOPE_OFFSET, row] + row, k]
        pivot = eliminate(
            row, matrix, envelope[closure.ENVELOPE_FIRST], envelope[closure.ENVELOPE_OFFSET], rows, equation.PIVOT, k
        )
        is_regular = pivot > round_off * scale
        inverse = select(is_regular, one / select(is_regular, pivot, one), constant_like(matrix, np.nan))
        rows[row, equation.PIVOT, k] = inverse
        rows[row, equation.KEPT, k] = one + zero * inverse


@kernel
def factor_added_inertias(constraints, k):
    """Factor the rows of added inertias. PIVOT is NaN if the dof's own inertia is lost in round-off."""
    matrix, rows, envelope = constraints.matrix, constraints.rows, constraints.tables.envelope
    zero, one = constant_like(matrix, 0.0), constant_like(matrix, 1.0)
    round_off = constant_like(matrix, epsilon(matrix) ** DOUBTFUL_POWER)
    for row in range(constraints.tables.sizes[closure.CONSTRAINT_ROWS], rows.shape[0]):
        compliance = rows[row, equation.COMPLIANCE, k]
        pivot = eliminate(
            row, matrix, envelope[closure.ENVELOPE_FIRST], envelope[closure.ENVELOPE_OFFSET], rows, equation.PIVOT, k
        )
        is_added = compliance > zero
        is_regular = -pivot > round_off * compliance
        inverse = select(is_regular, one / select(is_regular, pivot, one), constant_like(matrix, np.nan))
        nothing = nan_unless_finite(compliance)
        rows[row, equation.PIVOT, k] = select(is_added, inverse, nothing)
        rows[row, equation.KEPT, k] = one + nothing


@routine
def select_rows(constraints, lane):
    """Decide for one lane which rows are independent: eliminate the row with the largest pivot first. Writes KEPT.

    Reads the matrix before its factorization. Pivots are compared relative to their scales.
    """
    rows, matrix, envelope, rest = (
        constraints.rows,
        constraints.matrix,
        constraints.tables.envelope,
        constraints.remaining,
    )
    m, zero, one = (
        constraints.tables.sizes[closure.RIGID_ROWS],
        constant_like(matrix, 0.0),
        constant_like(matrix, 1.0),
    )
    for row in range(m):
        rows[row, equation.KEPT, lane] = zero
        for column in range(row + 1):
            is_inside = column >= envelope[closure.ENVELOPE_FIRST, row]
            rest[entry_of(row, column), lane] = (
                matrix[envelope[closure.ENVELOPE_OFFSET, row] + column, lane] if is_inside else zero
            )
    for _ in range(m):
        best = largest_pivot(constraints, m, lane)
        if best < 0:
            break
        rows[best, equation.KEPT, lane] = one
        inverse = one / rest[entry_of(best, best), lane]
        for row in range(m):
            factor = inverse * rest[entry_of(max(row, best), min(row, best)), lane]
            if rows[row, equation.KEPT, lane] == zero and factor != zero:
                for column in range(row + 1):
                    if rows[column, equation.KEPT, lane] == zero:
                        x = rest[entry_of(max(column, best), min(column, best)), lane]
                        rest[entry_of(row, column), lane] = rest[entry_of(row, column), lane] - factor * x


@kernel
def largest_pivot(constraints, m, lane):
    """Return the remaining row with the largest ratio of its pivot to its scale; -1 if all are round-off."""
    rows, rest = constraints.rows, constraints.remaining
    best, largest = -1, constant_like(rest, DEPENDENT_ROW_FACTOR * epsilon(rest))
    for row in range(m):
        pivot, scale = rest[entry_of(row, row), lane], rows[row, equation.PIVOT_SCALE, lane]
        if rows[row, equation.KEPT, lane] == constant_like(rest, 0.0) and pivot > largest * scale:
            best, largest = row, pivot / scale
    return best


@kernel
def entry_of(row, column):
    """Return the number of an entry of the lower triangle, as in `Constraints.remaining`."""
    return row * (row + 1) // 2 + column


@kernel
def eliminate(row, matrix, first, offset, rows, pivots, k):
    """Compute one row of the factor L of a symmetric matrix in place, and return its pivot.

    Entry (row, column) of the matrix is number offset[row] + column of `matrix` (entries, lanes), for columns >=
    first[row]. `first` and `offset` are (m,). Column `pivots` of `rows` (m, equation.ROWS, lanes) has the inverse
    pivots of the previous rows.
    """
    at = offset[row]
    for column in range(first[row], row):
        total, before = matrix[at + column, k], offset[column]
        for j in range(max(first[row], first[column]), column):
            total = total - matrix[at + j, k] * matrix[before + j, k]
        matrix[at + column, k] = total
    pivot = matrix[at + row, k]
    for column in range(first[row], row):
        product = matrix[at + column, k]
        factor = product * rows[column, pivots, k]
        pivot = pivot - product * factor
        matrix[at + column, k] = factor
    return pivot


@kernel
def substitute(matrix, first, offset, rows, pivots, m, k):
    """Solve L E L^T x = b in place, where b and x are the first m entries of the column SOLUTION of `rows`.

    The other arguments are as in `eliminate`, which writes L to `matrix`; column `pivots` has 1 / E.
    """
    for row in range(m):
        x = rows[row, equation.SOLUTION, k]
        for column in range(first[row], row):
            x = x - matrix[offset[row] + column, k] * rows[column, equation.SOLUTION, k]
        rows[row, equation.SOLUTION, k] = x
    for row in range(m):
        rows[row, equation.SOLUTION, k] = rows[row, equation.SOLUTION, k] * rows[row, pivots, k]
    for row in range(m - 1, -1, -1):
        x = rows[row, equation.SOLUTION, k]
        for column in range(first[row], row):
            rows[column, equation.SOLUTION, k] = (
                rows[column, equation.SOLUTION, k] - matrix[offset[row] + column, k] * x
            )
