"""Newton steps of `contact_solver`: linearized equations of all rows, and a line search.

`contact_layout` describes the arguments. `residual`, `limit`, `running` and `length` are one value for each lane, and
`index` is the number of the round. `proximal` is added to the diagonal of the matrix of a step, which
`contact_elimination` describes. In bodies with three or more points on the world, the equations of `contact_reduction`
have the same solution with fewer unknowns.
"""

import math

from ...compiling.jit import kernel, routine
from ..lanes.lanes import any_lane, constant_like, epsilon, nan_unless_finite, select
from . import contact_layout as contact, element_layout as element
from .contact_elimination import eliminate_rows, row_at_place
from .contact_layout import has_tangents
from .contact_reduction import expand_step, fill_reduced_equations, is_reduced
from .contact_residuals import (
    change_of_friction,
    change_of_normal,
    change_of_tangents,
    compute_velocities,
    friction_target,
    largest_residual,
    sweep,
)

# Number of lengths tried for each step: 1, 1/2, 1/4, ... A step without a length that fits fails.
LENGTHS = 7
# Multiples of the factors of u for the Newton steps, one for each round. Their order was found with 20 links that fall
# on a floor and move on it.
MULTIPLES = (1.0, 128.0, 8.0, 1024.0, 4.0, 256.0, 32.0, 4096.0)
# Least ratios of |u| / w to |p| of the tangents of a contact, one for each round. Another multiple of the factor, up to
# LARGEST_MULTIPLE, increases the ratio to this value.
BALANCES, LARGEST_MULTIPLE = (0.03, 0.0, 0.1, 1.0, 0.1, 1.0, 0.1, 1.0), 1e8
# A step of length t reduces the sum of squares by more than this multiple of t.
LEAST_REDUCTION = 2e-4
# The number added to the diagonal of a Newton step, which is scaled to 1, as a multiple of the square root of epsilon.
# Impulses of dependent rows then change as little as possible. The number is multiplied by INCREASE after a step that
# fails, up to LARGEST_PROXIMAL, and by DECREASE after a step that succeeds.
PROXIMAL, LARGEST_PROXIMAL, INCREASE, DECREASE = 16.0, 0.3, 100.0, 0.1
# Number of rounds with the equations of `contact_reduction`, if their round-off error is less than ROUND_OFF times the
# tolerance of the solver.
REDUCED_ROUNDS, ROUND_OFF = 1, 100.0


@routine
def newton_steps(contacts, residual, limit, running, index, least, steps, k):
    """Take at most `steps` Newton steps, until the residual is at most `least` or steps fail, and return the residual.

    A sweep follows. Keeps the result in the lanes in which its residual is below `limit`.
    """
    rows = contacts.rows
    for row in range(rows.shape[0]):
        rows[row, contact.NEWTON_IMPULSE, k] = rows[row, contact.IMPULSE, k]
        rows[row, contact.NEWTON_VELOCITY, k] = rows[row, contact.VELOCITY, k]
    smallest, largest = least_proximal(rows), constant_like(rows, LARGEST_PROXIMAL)
    increase, decrease = constant_like(rows, INCREASE), constant_like(rows, DECREASE)
    nothing = nan_unless_finite(running)
    improves, proximal = running, smallest + nothing
    for _ in range(steps):
        if not any_lane(improves > nothing):
            break
        succeeds = newton_step(contacts, improves, index, proximal, k) > nothing
        proximal = select(succeeds, max(decrease * proximal, smallest + nothing), increase * proximal)
        is_solved = largest_residual(contacts, k) <= least
        improves = select(is_solved | (proximal > largest), nothing, improves)
    compute_velocities(contacts, running, k)  # long steps leave round-off in them
    sweep(contacts, running, k)
    found = largest_residual(contacts, k)
    is_better = (running > nan_unless_finite(running)) & (found < limit)
    for row in range(rows.shape[0]):
        p, u = rows[row, contact.IMPULSE, k], rows[row, contact.VELOCITY, k]
        rows[row, contact.IMPULSE, k] = select(is_better, p, rows[row, contact.NEWTON_IMPULSE, k])
        rows[row, contact.VELOCITY, k] = select(is_better, u, rows[row, contact.NEWTON_VELOCITY, k])
    return select(is_better, found, residual)


@routine
def newton_step(contacts, running, index, proximal, k):
    """Take a Newton step with a line search, and return a number that is zero in the lanes in which it fails."""
    rows = contacts.rows
    zero, one, half = constant_like(rows, 0.0), constant_like(rows, 1.0), constant_like(rows, 0.5)
    reduction = constant_like(rows, LEAST_REDUCTION)
    enlarge_factors(contacts, index, k)
    before = sum_of_squares(contacts, k)
    compute_step(contacts, index, proximal, k)
    length = select(running > zero, one, zero)
    for trial in range(LENGTHS + 1):
        move_along_step(contacts, length, k)
        is_shorter = sum_of_squares(contacts, k) < before * (one - reduction * length)
        missed = select(is_shorter, zero, length)
        if not any_lane(missed > zero):
            break
        length = length - (half * missed if trial < LENGTHS - 1 else missed)
    restore_factors(contacts, k)
    return select(length > zero, running, zero)


@kernel
def least_proximal(rows):
    """Return the number on the diagonal of the matrix of a Newton step after steps that succeed."""
    return constant_like(rows, PROXIMAL * math.sqrt(epsilon(rows)))


@kernel
def enlarge_factors(contacts, index, k):
    """Multiply the factors of u for a Newton step of a round; the tangents of a contact have the same multiple."""
    table, rows = contacts.table, contacts.rows
    multiple, balance = constant_like(rows, MULTIPLES[index]), constant_like(rows, BALANCES[index])
    zero, one, largest = constant_like(rows, 0.0), constant_like(rows, 1.0), constant_like(rows, LARGEST_MULTIPLE)
    for row in range(rows.shape[0]):
        rows[row, contact.SWEEP_INVERSE, k] = rows[row, contact.INVERSE, k]
        rows[row, contact.INVERSE, k] = multiple * rows[row, contact.INVERSE, k]
    for e in range(table.shape[1]):
        if has_tangents(e, table):
            row = table[element.ROW, e]
            inverse = rows[row + 1, contact.INVERSE, k]
            p = norm_of_tangents(row, contact.IMPULSE, rows, k)
            change = inverse * norm_of_tangents(row, contact.VELOCITY, rows, k)
            moves = change > zero
            ratio = balance * p / select(moves, change, one)
            inverse = inverse * select(moves, min(max(ratio, one), largest), one)
            rows[row + 1, contact.INVERSE, k] = inverse
            rows[row + 2, contact.INVERSE, k] = inverse


@kernel
def norm_of_tangents(row, column, rows, k):
    """Return the norm of the two tangential impulses or velocities of a contact, in a column of `rows`."""
    a, b = rows[row + 1, column, k], rows[row + 2, column, k]
    return math.sqrt(a * a + b * b)


@kernel
def restore_factors(contacts, k):
    """Restore the factors of u for sweeps and residuals."""
    rows = contacts.rows
    for row in range(rows.shape[0]):
        rows[row, contact.INVERSE, k] = rows[row, contact.SWEEP_INVERSE, k]


@routine
def sum_of_squares(contacts, k):
    """Return the sum of the squares of the changes of the impulses that the equations require, scaled to an energy."""
    table, rows = contacts.table, contacts.rows
    total = nan_unless_finite(rows[0, contact.VELOCITY, k])
    for e in range(table.shape[1]):
        kind, row = table[element.KIND, e], table[element.ROW, e]
        change = change_of_friction(row, rows, k) if kind == element.FRICTION else change_of_normal(row, rows, k)
        total = total + scaled_square(row, change, rows, k)
        if has_tangents(e, table):
            a, b = change_of_tangents(row, rows, k)
            total = total + scaled_square(row + 1, a, rows, k) + scaled_square(row + 2, b, rows, k)
    return total


@kernel
def scaled_square(row, change, rows, k):
    """Return the square of the change of an impulse, divided by the factor of u of its row, J."""
    inverse, one = rows[row, contact.INVERSE, k], constant_like(rows, 1.0)
    acts = inverse > nan_unless_finite(inverse)
    return select(acts, change * change / select(acts, inverse, one), nan_unless_finite(change))


@routine
def compute_step(contacts, index, proximal, k):
    """Compute a Newton step: the changes of the impulses, in RIGHT, and the changes of the velocities, in CHANGE.

    Stores the impulses and velocities before the step.
    """
    rows, zero = contacts.rows, constant_like(contacts.rows, 0.0)
    for row in range(rows.shape[0]):
        rows[row, contact.STEP_IMPULSE, k] = rows[row, contact.IMPULSE, k]
        rows[row, contact.STEP_VELOCITY, k] = rows[row, contact.VELOCITY, k]
    reduces = reduced_lanes(contacts, index, k)
    if any_lane(reduces > zero):
        linearize_rows(contacts, k)
        eliminate_rows(contacts, fill_reduced_equations(contacts, proximal, k), k)
        expand_step(contacts, k)
    if any_lane(reduces <= zero):
        eliminate_rows(contacts, linearize(contacts, proximal, k), k)
        compute_change(contacts, k)
    for row in range(rows.shape[0] if is_reduced(contacts) else 0):
        x, change = rows[row, contact.SOLVED, k], rows[row, contact.SOLVED_CHANGE, k]
        rows[row, contact.RIGHT, k] = select(reduces > zero, x, rows[row, contact.RIGHT, k])
        rows[row, contact.CHANGE, k] = select(reduces > zero, change, rows[row, contact.CHANGE, k])


@kernel
def reduced_lanes(contacts, index, k):
    """Return 1 in lanes whose Newton step of a round follows from the equations of `contact_reduction`, else 0."""
    return contacts.rows[0, contact.REDUCES, k] * constant_like(contacts.rows, 1.0 if index < REDUCED_ROUNDS else 0.0)


@kernel
def choose_equations(contacts, tolerance, k):
    """Set REDUCES, from the velocities and the tolerance of the solver, in m/s or rad/s.

    The equations of `contact_reduction` have larger round-off errors, which are too large for some velocities.
    """
    rows = contacts.rows
    zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
    speed = nan_unless_finite(rows[0, contact.VELOCITY, k])
    for row in range(rows.shape[0]):
        speed = max(speed, abs(rows[row, contact.VELOCITY, k]))
    fits = speed * epsilon(rows) <= constant_like(rows, ROUND_OFF * tolerance) * least_proximal(rows)
    reduces = one if is_reduced(contacts) else zero
    rows[0, contact.REDUCES, k] = select(fits, reduces, zero)


@kernel
def compute_change(contacts, k):
    """Compute the changes of the velocities, in CHANGE, from the changes of the impulses, in RIGHT."""
    rows, matrix = contacts.rows, contacts.matrix
    for row in range(rows.shape[0]):
        rows[row, contact.CHANGE, k] = constant_like(rows, 0.0)
    for row in range(rows.shape[0]):
        x = rows[row, contact.RIGHT, k]
        if any_lane(x != nan_unless_finite(x)):
            for other in range(rows.shape[0]):
                rows[other, contact.CHANGE, k] = rows[other, contact.CHANGE, k] + matrix[row, other, k] * x


@kernel
def move_along_step(contacts, length, k):
    """Set the impulses and velocities after a Newton step of length `length`. Zero restores the start of the step."""
    rows = contacts.rows
    zero = constant_like(rows, 0.0)
    for row in range(rows.shape[0]):
        p, u = rows[row, contact.STEP_IMPULSE, k], rows[row, contact.STEP_VELOCITY, k]
        x, change = rows[row, contact.RIGHT, k], rows[row, contact.CHANGE, k]
        rows[row, contact.IMPULSE, k] = select(length > zero, p + length * x, p)
        rows[row, contact.VELOCITY, k] = select(length > zero, u + length * change, u)


@routine
def linearize(contacts, proximal, k):
    """Set the equations for the changes x of all impulses, and return the number of rows whose impulses may change.

    All other rows have x = 0. They are open contacts and stops, in all lanes.
    """
    table, rows, count = contacts.table, contacts.rows, 0
    for e in range(table.shape[1]):
        kind, row = table[element.KIND, e], table[element.ROW, e]
        linearize_row(kind, row, contacts, k)
        changes = row_changes(row, contacts, k)
        if has_tangents(e, table):
            linearize_tangents(row, contacts, k)
            changes = changes or row_changes(row + 1, contacts, k) or row_changes(row + 2, contacts, k)
        if changes:
            for r in range(row, row + table[element.SIZE, e]):
                rows[count, contact.PLACE, 0] = constant_like(rows, r)
                count += 1
    a = 0
    for e in range(table.shape[1]):
        kind, row = table[element.KIND, e], table[element.ROW, e]
        if a < count and row_at_place(a, contacts) == row:
            fill_row(a, row, count, contacts, proximal, k)
            if has_tangents(e, table):
                fill_tangents(a, row, count, contacts, proximal, k)
            a += table[element.SIZE, e]
    return count


@kernel
def linearize_rows(contacts, k):
    """Set the right-hand sides of the equations of all rows."""
    table = contacts.table
    for e in range(table.shape[1]):
        row = table[element.ROW, e]
        linearize_row(table[element.KIND, e], row, contacts, k)
        if has_tangents(e, table):
            linearize_tangents(row, contacts, k)


@kernel
def row_changes(row, contacts, k):
    """Whether the equation of a row has a solution other than x = 0, or contains other rows, in any lane."""
    rows = contacts.rows
    zero = constant_like(rows, 0.0)
    return any_lane((rows[row, contact.RIGHT, k] != zero) | (rows[row, contact.COUPLES, k] != zero))


@kernel
def linearize_row(kind, row, contacts, k):
    """Set the right-hand side of a row: W x = target, or x = target at a limit. COUPLES is zero at a limit."""
    rows = contacts.rows
    p, u, inverse = rows[row, contact.IMPULSE, k], rows[row, contact.VELOCITY, k], rows[row, contact.INVERSE, k]
    zero, one = nan_unless_finite(p), constant_like(rows, 1.0)
    if kind == element.FRICTION:
        lower, upper = rows[row, contact.LOWER, k], rows[row, contact.UPPER, k]
        target = p - u * inverse
        is_inside = (target > lower) & (target < upper)
        right = select(is_inside, -u * inverse, min(max(target, lower), upper) - p)
    else:
        above = (u - rows[row, contact.BOUND, k]) * inverse
        is_inside = p - above > zero
        right = select(is_inside, -above, -p)
    rows[row, contact.RIGHT, k] = right
    rows[row, contact.COUPLES, k] = select(is_inside, one + zero, zero)


@kernel
def fill_row(a, row, count, contacts, proximal, k):
    """Write the equation of a row at place a of the matrix."""
    rows, linear, zero = contacts.rows, contacts.linear, constant_like(contacts.rows, 0.0)
    couples, one = rows[row, contact.COUPLES, k], constant_like(rows, 1.0)
    is_inside = couples > zero
    scale = select(is_inside, rows[row, contact.INVERSE, k], zero * couples)
    for b in range(count):
        linear[a, b, k] = contacts.matrix[row, row_at_place(b, contacts), k] * scale
    linear[a, a, k] = linear[a, a, k] + select(
        is_inside, proximal + nan_unless_finite(couples), one + nan_unless_finite(couples)
    )


@kernel
def linearize_tangents(row, contacts, k):
    """Set the right-hand sides of the two tangents of a contact. COUPLES is zero without dependence on other rows.

    If the disk has the radius zero, the tangents depend only on the normal impulse.
    """
    rows = contacts.rows
    a, b, norm, radius = friction_target(row, rows, k)
    zero, one = nan_unless_finite(a), constant_like(rows, 1.0)
    is_inside = norm <= radius
    safe = select(norm > zero, norm, one)
    inverse, ratio = rows[row + 1, contact.INVERSE, k], radius / safe
    radius = select(is_inside, zero, radius)  # may be infinite inside
    for axis in range(2):
        at, d = row + 1 + axis, (a if axis == 0 else b) / safe
        p, u = rows[at, contact.IMPULSE, k], rows[at, contact.VELOCITY, k]
        rows[at, contact.RIGHT, k] = select(is_inside, -u * inverse, radius * d - p)
        rows[at, contact.COUPLES, k] = select(is_inside, one + zero, ratio)


@kernel
def fill_tangents(place, row, count, contacts, proximal, k):
    """Write the equations of the two tangents of a contact, whose normal is at this place of the matrix.

    Inside the disk, W x = -u. Outside, with z = p - u / w, its direction d = z / |z| and the radius r of the disk,

        x - mu d x_n - r / |z| (1 - d d^T) (x - W x / w) = r d - p
    """
    rows, linear, matrix = contacts.rows, contacts.linear, contacts.matrix
    a, b, norm, radius = friction_target(row, rows, k)
    zero, one = nan_unless_finite(a), constant_like(rows, 1.0)
    is_inside = norm <= radius
    safe = select(norm > zero, norm, one)
    a, b, ratio, mu = a / safe, b / safe, radius / safe, rows[row, contact.FRICTION, k]
    inverse = rows[row + 1, contact.INVERSE, k]
    ratio, scale = select(is_inside, zero, ratio), select(is_inside, inverse, zero)
    for axis in range(2):
        at, here = row + 1 + axis, place + 1 + axis
        d, first, second = (
            a if axis == 0 else b,
            one - a * a if axis == 0 else -a * b,
            -a * b if axis == 0 else one - b * b,
        )
        for c in range(count):
            other = row_at_place(c, contacts)
            across = first * matrix[row + 1, other, k] + second * matrix[row + 2, other, k]
            linear[here, c, k] = matrix[at, other, k] * scale + ratio * inverse * across
        linear[here, here, k] = linear[here, here, k] + select(is_inside, proximal + zero, one)
        linear[here, place + 1, k] = linear[here, place + 1, k] - ratio * first
        linear[here, place + 2, k] = linear[here, place + 2, k] - ratio * second
        linear[here, place, k] = linear[here, place, k] - select(is_inside, zero, mu * d)
