"""Solution of the linear equations of a Newton step of `contact_solver`, by Gaussian elimination.

The matrix is `Contacts.linear` (m, m, lanes): its entry (a, b) belongs to the rows at the places a and b. The first
`count` places are used. `contact_layout` describes the arguments.
"""

from ...compiling.jit import kernel, routine
from ..lanes.lanes import any_lane, constant_like, nan_unless_finite, select
from . import contact_layout as contact


@kernel
def row_at_place(a, contacts):
    """Return the number of the row at place a of the matrix of a Newton step."""
    return int(contacts.rows[a, contact.PLACE, 0])


@routine
def eliminate_rows(contacts, count, k):
    """Solve the first `count` linear equations for the changes of the impulses, in RIGHT, by Gaussian elimination.

    The rows are not exchanged. A step that is wrong because of a small pivot does not pass the line search.
    """
    rows, linear = contacts.rows, contacts.linear
    zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
    for a in range(count):
        row = row_at_place(a, contacts)
        groups = a - a % 4
        for c in range(0, groups, 4):
            subtract_four_rows(a, c, count, contacts, k)
        for c in range(groups, a):
            factor, passed = factors_of_row(linear[a, c, k], c, contacts, k)
            if any_lane(factor != zero):
                for j in range(c + 1, count):
                    linear[a, j, k] = linear[a, j, k] - passed * linear[c, j, k]
                source = row_at_place(c, contacts)
                rows[row, contact.RIGHT, k] = rows[row, contact.RIGHT, k] - factor * rows[source, contact.RIGHT, k]
        pivot = linear[a, a, k]
        is_regular = abs(pivot) > zero
        rows[row, contact.PIVOT, k] = select(is_regular, one / select(is_regular, pivot, one), zero * pivot)
    for a in range(count - 1, -1, -1):
        row = row_at_place(a, contacts)
        x = rows[row, contact.RIGHT, k]
        for j in range(a + 1, count):
            x = x - linear[a, j, k] * rows[row_at_place(j, contacts), contact.RIGHT, k]
        rows[row, contact.RIGHT, k] = x * rows[row, contact.PIVOT, k]


@kernel
def factors_of_row(entry, c, contacts, k):
    """Return the multiples of the row at place c to subtract from a right-hand side and from a row with this entry.

    Without coupling, the rest of the row at place c is zero, except for the tangents of a disk of radius zero, where
    the step neglects it. Each lane decides for itself, so that it does not depend on its neighbors.
    """
    rows, source = contacts.rows, row_at_place(c, contacts)
    factor = entry * rows[source, contact.PIVOT, k]
    zero = nan_unless_finite(factor)
    return factor, select(rows[source, contact.COUPLES, k] != zero, factor, zero)


@kernel
def subtract_four_rows(a, c, count, contacts, k):
    """Subtract multiples of the rows at places c to c + 3 from the row at place a, which is read and written once."""
    rows, linear, zero = contacts.rows, contacts.linear, constant_like(contacts.rows, 0.0)
    right0, first = factors_of_row(linear[a, c, k], c, contacts, k)
    entry = linear[a, c + 1, k] - first * linear[c, c + 1, k]
    right1, second = factors_of_row(entry, c + 1, contacts, k)
    entry = linear[a, c + 2, k] - first * linear[c, c + 2, k] - second * linear[c + 1, c + 2, k]
    right2, third = factors_of_row(entry, c + 2, contacts, k)
    entry = linear[a, c + 3, k] - first * linear[c, c + 3, k] - second * linear[c + 1, c + 3, k]
    right3, fourth = factors_of_row(entry - third * linear[c + 2, c + 3, k], c + 3, contacts, k)
    if any_lane((right0 != zero) | (right1 != zero) | (right2 != zero) | (right3 != zero)):
        for j in range(c + 4, count):
            entry = linear[a, j, k] - first * linear[c, j, k] - second * linear[c + 1, j, k]
            linear[a, j, k] = entry - third * linear[c + 2, j, k] - fourth * linear[c + 3, j, k]
        row = row_at_place(a, contacts)
        right = rows[row, contact.RIGHT, k] - right0 * rows[row_at_place(c, contacts), contact.RIGHT, k]
        right = right - right1 * rows[row_at_place(c + 1, contacts), contact.RIGHT, k]
        right = right - right2 * rows[row_at_place(c + 2, contacts), contact.RIGHT, k]
        rows[row, contact.RIGHT, k] = right - right3 * rows[row_at_place(c + 3, contacts), contact.RIGHT, k]
