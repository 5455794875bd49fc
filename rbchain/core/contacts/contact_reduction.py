"""Newton steps of `contact_solver` with six unknowns for each body, for bodies with three or more points on the world.

The velocities of all points of a body depend on its motion w (6): u = B w. B^T x is the Force on the body about its
joint origin due to the impulses x. The bodies have J H^-1 J^T = B K B^T, where K = L L^T contains the motions that unit
forces on all bodies cause. With the linearized equations of `contact_newton`, the changes x of the impulses are

    x = t - M B w,   w = L z,   z = L^T B^T x    so that    (1 + L^T S L) z = L^T B^T t,   S = B^T M B

M is symmetric and positive for contacts that stick, and so is the matrix of these equations, which is solved without
exchange of rows. The equations have the solution of `contact_newton`, except where M would be almost infinite, because
a contact is about to slide. There, `proximal` is the least pivot. They contain the numbers that are added to the
diagonal of J H^-1 J^T. A large M multiplies round-off, so `contact_newton` solves its own equations in extreme cases.

`contact_layout` describes the arguments. `group` is the number of a body, and `first` the number of its first unknown.
"""

import math

from ...compiling.jit import kernel, routine
from ..lanes.lanes import constant_like, epsilon, nan_unless_finite, select
from ..spatial.storage import load3, load_force, load_motion, store3
from ..spatial.vectors import add3, dot, power, scale3
from . import contact_layout as contact, element_layout as element
from .contact_residuals import friction_target

# Columns of `Contacts.sums`: S of the body (6), and then L^T B^T t, B^T x or w.
FORCE = 6
# Pivots of K smaller than this multiple of epsilon, relative to the diagonal, are zero.
ROUND_OFF = 64.0


@kernel
def is_reduced(contacts):
    """Whether all rows are points of bodies with three or more points on the world, so that six unknowns suffice."""
    return contacts.sums.shape[0] > 0


@routine
def factorize(contacts, k):
    """Replace the upper triangle of K in `reduced` by L^T. Rows whose diagonal is zero up to round-off are zero."""
    rows, reduced = contacts.rows, contacts.reduced
    one, least = constant_like(rows, 1.0), constant_like(rows, ROUND_OFF) * epsilon(rows)
    for a in range(reduced.shape[0]):
        for b in range(a + 1):
            total = reduced[b, a, k]
            for j in range(b):
                total = total - reduced[j, a, k] * reduced[j, b, k]
            if b < a:
                reduced[b, a, k] = total * rows[b, contact.PIVOT, k]
                reduced[a, b, k] = nan_unless_finite(total)
            else:
                is_regular = total > least * reduced[a, a, k]
                root = math.sqrt(select(is_regular, total, one))
                rows[a, contact.PIVOT, k] = select(is_regular, one / root, nan_unless_finite(total))
                reduced[a, a, k] = select(is_regular, root, nan_unless_finite(total))


@routine
def fill_reduced_equations(contacts, proximal, k):
    """Set the equations for z, (1 + L^T S L) z = L^T B^T t, and return their number.

    Reads the right-hand sides of `contact_newton.linearize_rows`.
    """
    table, rows, linear, sums = contacts.table, contacts.rows, contacts.linear, contacts.sums
    zero, one, count = constant_like(rows, 0.0), constant_like(rows, 1.0), sums.shape[0]
    for a in range(count):
        for column in range(sums.shape[1]):
            sums[a, column, k] = zero
        for b in range(count):
            linear[a, b, k] = one if a == b else zero
    for e in range(table.shape[1]):
        solve_normal(table[element.ROW, e], contacts, proximal, k)
        solve_tangents(table[element.ROW, e], contacts, proximal, k)
        add_point(table[element.ROW, e], 6 * table[element.GROUP, e], contacts, k)
    for first in range(0, count, 6):
        add_body(first, contacts, k)
    for a in range(count):
        rows[a, contact.PLACE, 0] = constant_like(rows, a)
        rows[a, contact.COUPLES, k] = one
        rows[a, contact.RIGHT, k] = force_on_unknown(a, contacts, k)
    return count


@kernel
def add_body(first, contacts, k):
    """Add L^T S L of a body to the matrix of the equations."""
    linear, sums, reduced = contacts.linear, contacts.sums, contacts.reduced
    for b in range(first + 6):
        column = load_force(reduced, b, first, k)
        ang = (
            power(column, load_motion(sums, first, 0, k)),
            power(column, load_motion(sums, first + 1, 0, k)),
            power(column, load_motion(sums, first + 2, 0, k)),
        )
        lin = (
            power(column, load_motion(sums, first + 3, 0, k)),
            power(column, load_motion(sums, first + 4, 0, k)),
            power(column, load_motion(sums, first + 5, 0, k)),
        )
        for a in range(first + 6):
            total = dot(load3(reduced, a, first, k), ang) + dot(load3(reduced, a, first + 3, k), lin)
            linear[a, b, k] = linear[a, b, k] + total


@kernel
def force_on_unknown(a, contacts, k):
    """Return an entry of L^T times the column FORCE of `sums`."""
    total = contacts.reduced[a, a, k] * contacts.sums[a, FORCE, k]
    for b in range(a + 1, contacts.sums.shape[0]):
        total = total + contacts.reduced[a, b, k] * contacts.sums[b, FORCE, k]
    return total


@kernel
def solve_normal(row, contacts, proximal, k):
    """Set x = t - M u of the row of a normal."""
    rows, one = contacts.rows, constant_like(contacts.rows, 1.0)
    inverse, couples = rows[row, contact.INVERSE, k], rows[row, contact.COUPLES, k]
    is_inside = couples > nan_unless_finite(couples)
    pivot = select(is_inside, proximal + inverse * added_to_diagonal(row, contacts, k), one)
    rows[row, contact.SLOPE, k] = select(is_inside, inverse / pivot, nan_unless_finite(inverse))
    rows[row, contact.SOLVED, k] = rows[row, contact.RIGHT, k] / pivot


@kernel
def added_to_diagonal(row, contacts, k):
    """Return the number that is added to the diagonal of J H^-1 J^T."""
    return contacts.matrix[row, row, k] - contacts.rows[row, contact.DIAGONAL, k]


@kernel
def solve_tangents(row, contacts, proximal, k):
    """Set x = t - M u of the two tangents of a contact, along a direction d and normal to it.

    With d = z / |z| outside of the disk (`contact_newton.fill_tangents`), the two equations are independent of each
    other. t along d has the term TURN x_n. In the rows of the tangents, TURN is d.
    """
    rows, at = contacts.rows, row + 1
    a, b, norm, radius = friction_target(row, rows, k)
    zero, one = nan_unless_finite(a), constant_like(rows, 1.0)
    is_inside = norm <= radius
    safe = select(norm > zero, norm, one)
    a, b = select(is_inside, one, a / safe), select(is_inside, zero, b / safe)
    ratio, inverse = select(is_inside, zero, radius / safe), rows[at, contact.INVERSE, k]
    added = inverse * added_to_diagonal(at, contacts, k)
    along = select(is_inside, proximal + added, one)
    across = select(is_inside, along, max(one - ratio, proximal + zero) + ratio * added)
    first, second = rows[at, contact.RIGHT, k], rows[at + 1, contact.RIGHT, k]
    rows[row, contact.TURN, k] = select(is_inside, zero, rows[row, contact.FRICTION, k] / along)
    rows[at, contact.TURN, k], rows[at + 1, contact.TURN, k] = a, b
    rows[at, contact.SLOPE, k] = select(is_inside, inverse / along, zero)
    rows[at + 1, contact.SLOPE, k] = select(is_inside, inverse, ratio * inverse) / across
    rows[at, contact.SOLVED, k] = (a * first + b * second) / along
    rows[at + 1, contact.SOLVED, k] = (a * second - b * first) / across


@kernel
def add_point(row, first, contacts, k):
    """Add the equations of a contact to S and B^T t of its body."""
    rows, sums = contacts.rows, contacts.sums
    normal_ang, normal_lin = load3(rows, row, contact.BASIS, k), load3(rows, row, contact.BASIS + 3, k)
    first_ang, first_lin = load3(rows, row + 1, contact.BASIS, k), load3(rows, row + 1, contact.BASIS + 3, k)
    second_ang, second_lin = load3(rows, row + 2, contact.BASIS, k), load3(rows, row + 2, contact.BASIS + 3, k)
    a, b, turn = rows[row + 1, contact.TURN, k], rows[row + 2, contact.TURN, k], rows[row, contact.TURN, k]
    slopes = rows[row, contact.SLOPE, k], rows[row + 1, contact.SLOPE, k], rows[row + 2, contact.SLOPE, k]
    solved = rows[row, contact.SOLVED, k], rows[row + 1, contact.SOLVED, k], rows[row + 2, contact.SOLVED, k]
    for i in range(6):
        on_first, on_second = rows[row + 1, contact.BASIS + i, k], rows[row + 2, contact.BASIS + i, k]
        along, across = a * on_first + b * on_second, a * on_second - b * on_first
        on_normal = rows[row, contact.BASIS + i, k] + turn * along
        right = dot((on_normal, along, across), solved)
        sums[first + i, FORCE, k] = sums[first + i, FORCE, k] + right
        on_normal, along, across = slopes[0] * on_normal, slopes[1] * along, slopes[2] * across
        on_first, on_second = a * along - b * across, b * along + a * across
        ang = add3(scale3(on_first, first_ang), scale3(on_second, second_ang))
        lin = add3(scale3(on_first, first_lin), scale3(on_second, second_lin))
        ang, lin = add3(ang, scale3(on_normal, normal_ang)), add3(lin, scale3(on_normal, normal_lin))
        store3(sums, first + i, 0, k, add3(load3(sums, first + i, 0, k), ang))
        store3(sums, first + i, 3, k, add3(load3(sums, first + i, 3, k), lin))


@routine
def expand_step(contacts, k):
    """Compute the changes x of the impulses, in SOLVED, and of the velocities, in SOLVED_CHANGE, from z in RIGHT."""
    table, rows, sums = contacts.table, contacts.rows, contacts.sums
    respond(contacts, k)
    for a in range(sums.shape[0]):
        sums[a, FORCE, k] = constant_like(rows, 0.0)
    for e in range(table.shape[1]):
        row, first = table[element.ROW, e], 6 * table[element.GROUP, e]
        a, b = rows[row + 1, contact.TURN, k], rows[row + 2, contact.TURN, k]
        x = rows[row, contact.SOLVED, k] - rows[row, contact.SLOPE, k] * rows[row, contact.SOLVED_CHANGE, k]
        on_first, on_second = rows[row + 1, contact.SOLVED_CHANGE, k], rows[row + 2, contact.SOLVED_CHANGE, k]
        along = rows[row + 1, contact.SOLVED, k] + rows[row, contact.TURN, k] * x
        along = along - rows[row + 1, contact.SLOPE, k] * (a * on_first + b * on_second)
        across = rows[row + 2, contact.SOLVED, k] - rows[row + 2, contact.SLOPE, k] * (a * on_second - b * on_first)
        y, z = a * along - b * across, b * along + a * across
        rows[row, contact.SOLVED, k], rows[row + 1, contact.SOLVED, k], rows[row + 2, contact.SOLVED, k] = x, y, z
        for i in range(6):
            change = rows[row, contact.BASIS + i, k] * x + rows[row + 1, contact.BASIS + i, k] * y
            change = change + rows[row + 2, contact.BASIS + i, k] * z
            sums[first + i, FORCE, k] = sums[first + i, FORCE, k] + change
    for a in range(sums.shape[0]):
        rows[a, contact.RIGHT, k] = force_on_unknown(a, contacts, k)
    respond(contacts, k)


@kernel
def respond(contacts, k):
    """Compute the changes B L z of the velocities of all rows, in SOLVED_CHANGE, from z in RIGHT."""
    table, rows, sums, reduced = contacts.table, contacts.rows, contacts.sums, contacts.reduced
    for a in range(sums.shape[0]):
        total = reduced[0, a, k] * rows[0, contact.RIGHT, k]
        for b in range(1, a + 1):
            total = total + reduced[b, a, k] * rows[b, contact.RIGHT, k]
        sums[a, FORCE, k] = total
    for e in range(table.shape[1]):
        row, first = table[element.ROW, e], 6 * table[element.GROUP, e]
        for r in range(row, row + 3):
            total = rows[r, contact.BASIS, k] * sums[first, FORCE, k]
            for i in range(1, 6):
                total = total + rows[r, contact.BASIS + i, k] * sums[first + i, FORCE, k]
            rows[r, contact.SOLVED_CHANGE, k] = total
