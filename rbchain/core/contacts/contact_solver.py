"""Impulses of dry friction, joint stops and contacts, by projected Gauss-Seidel sweeps and Newton steps.

With the velocities u = u_free + W p of the rows, W = J H^-1 J^T, find impulses p such that

    friction of a dof       p = min(max(p - u / W_ii, lower), upper)
    stop, normal direction  p = max(p - (u - bound) / W_ii, 0)
    tangents of a contact   p = the point of the disc of radius mu p_n + upper that is nearest to p - u / w

The difference between both sides, as a velocity, is the residual. A sweep applies these equations row by row. Sweeps
alone converge slowly if the rows are strongly coupled. Steps of Newton's method therefore linearise the equations of
all rows. A line search shortens them. Their result is kept in the lanes in which it halves the least residual so far.
Otherwise, they could return to the same local minimum of the residual after each sweep.

The solution does not depend on the factors of u, as long as they are positive. The factors change the path of Newton's
method, which fails with some factors. Sweeps and Newton steps with different factors alternate.
In a contact that slides slowly, u / w is small compared with p, so that z = p - u / w hardly depends on the direction
of u. Most rounds therefore choose the factor of the two tangents such that both terms are similarly large.

W is singular if there are more rows than dofs. A number is therefore added to the diagonal of a Newton step, as in the
proximal point method. It becomes larger after a failed step, and smaller after a successful step.

If sweeps and Newton steps fail, the solver starts again with numbers added to the diagonal of W, so that the rows
hardly depend on each other. The numbers become smaller in steps, and each solution is the start of the next solution.

Sources: Jean (1999), "The non-smooth contact dynamics method"; Alart and Curnier (1991), "A mixed formulation for
frictional contact problems prone to Newton like solution methods".
"""

import math

from ...compiling.jit import kernel, routine
from ..lanes.lanes import any_lane, constant_like, epsilon, select
from . import contact_layout as contact, element_layout as element
from .contact_layout import has_tangents

# Number of sweeps in the first round, the same for the last try, and its factor from round to round. The impulses of
# contacts that jam while they slide (Painleve) grow slowly from sweep to sweep. In impacts of three adjacent contacts,
# the impulse of the middle contact may decrease slowly to zero.
SWEEPS, LAST_SWEEPS, GROWTH = 3, 600, 1.2
# Residuals above this multiple of the tolerance are reduced by Newton steps, if sweeps were necessary at all.
GOAL = 1e-3
# Number of Newton steps of a round, and of lengths tried for each step: 1, 1/2, 1/4, ... A step without a length that
# fits fails.
NEWTON_STEPS, LENGTHS = 30, 7
# Multiples of the factors of u for the Newton steps, one for each round. Their order was found with 20 links that fall
# on a floor and move on it.
MULTIPLES = (1.0, 128.0, 8.0, 1024.0, 4.0, 256.0, 32.0, 4096.0)
# Least ratios of |u| / w to |p| of the tangents of a contact, one for each round. Another multiple of the factor, up to
# LARGEST_MULTIPLE, increases the ratio to this value.
BALANCES, LARGEST_MULTIPLE = (0.0, 0.0, 0.1, 1.0, 0.1, 1.0, 0.1, 1.0), 1e8
# Newton steps are kept if they reduce the least residual so far by this factor.
PROGRESS = 0.5
# A step of length t reduces the sum of squares by more than this multiple of t.
LEAST_REDUCTION = 2e-4
# Numbers added to the diagonal, as multiples of 1 / (factor of u): the first, the largest and the smallest number, and
# the ratio of the next number to a number with which the solver succeeded.
FIRST_ADDED, LARGEST_ADDED, LEAST_ADDED, RATIO = 0.1, 100.0, 1e-9, 0.25
# The solver gives up if the next number is more than LAST_RATIO times the last number with which it succeeded, or
# after MAX_ADDED numbers.
LAST_RATIO, MAX_ADDED = 0.8, 40
# The number added to the diagonal of a Newton step, which is scaled to 1, as a multiple of the square root of epsilon.
# Impulses of dependent rows then change as little as possible. The number is multiplied by INCREASE after a step that
# fails, up to LARGEST_PROXIMAL, and by DECREASE after a step that succeeds.
PROXIMAL, LARGEST_PROXIMAL, INCREASE, DECREASE = 16.0, 0.3, 100.0, 0.1


@routine
def solve_contacts(contacts, tolerance, k):
    """Solve for the impulses of all rows, starting from IMPULSE, and return the largest residual.

    Reads u_free from VELOCITY, and writes u to VELOCITY. The residual and the tolerance have the unit of u.
    """
    rows = contacts.rows
    for row in range(rows.shape[0]):
        rows[row, contact.GIVEN_VELOCITY, k] = rows[row, contact.VELOCITY, k]
    compute_velocities(contacts, constant_like(rows, 1.0), k)
    residual = run_rounds(contacts, largest_residual(contacts, k), tolerance, SWEEPS, k)
    if any_lane(residual > constant_like(rows, tolerance)):
        residual = reduce_diagonal(contacts, residual, tolerance, k)
    return max(residual, largest_missing_velocity(contacts, k))


@kernel
def compute_velocities(contacts, running, k):
    """Compute u = u_free + W p in the lanes in which `running` is positive."""
    rows = contacts.rows
    for row in range(rows.shape[0]):
        u, given = rows[row, contact.VELOCITY, k], rows[row, contact.GIVEN_VELOCITY, k]
        rows[row, contact.VELOCITY, k] = select(running > running - running, given, u)
    for row in range(rows.shape[0]):
        p = rows[row, contact.IMPULSE, k]
        add_to_velocities(row, select(running > running - running, p, p - p), contacts, k)


@routine
def run_rounds(contacts, residual, tolerance, sweeps, k):
    """Alternate sweeps and Newton steps in the lanes whose residual exceeds the tolerance, and return the residual.

    `sweeps` is the number of sweeps in the first round.
    """
    rows, count = contacts.rows, 1.0 * sweeps
    least, goal = constant_like(rows, tolerance), constant_like(rows, GOAL * tolerance)
    progress, lowest = constant_like(rows, PROGRESS), residual
    for index in range(len(MULTIPLES)):
        # numbers, because routines take no masks: above zero in the lanes that are running
        running = select(residual > least, residual, residual - residual)
        if not any_lane(running > running - running):
            break
        for _ in range(int(count)):
            sweep(contacts, running, k)
        count *= GROWTH
        residual = select(running > running - running, largest_residual(contacts, k), residual)
        lowest = min(lowest, residual)
        running = select(residual > goal, running, residual - residual)
        if any_lane(running > running - running):
            residual = newton_steps(contacts, residual, progress * lowest, running, index, least, k)
        lowest = min(lowest, residual)
    return residual


@kernel
def add_to_velocities(row, change, contacts, k):
    """Add the velocities that the change of an impulse causes to VELOCITY of all rows."""
    rows, matrix = contacts.rows, contacts.matrix
    if any_lane(change != change - change):
        for other in range(rows.shape[0]):
            rows[other, contact.VELOCITY, k] = rows[other, contact.VELOCITY, k] + matrix[row, other, k] * change


@routine
def sweep(contacts, running, k):
    """Update the impulses row by row, in the lanes in which `running` is positive."""
    table, rows = contacts.table, contacts.rows
    for e in range(table.shape[1]):
        kind, row = table[element.KIND, e], table[element.ROW, e]
        change = change_of_friction(row, rows, k) if kind == element.FRICTION else change_of_normal(row, rows, k)
        apply_change(row, change, contacts, running, k)
        if has_tangents(e, table):
            a, b = change_of_tangents(row, rows, k)
            apply_change(row + 1, a, contacts, running, k)
            apply_change(row + 2, b, contacts, running, k)


@kernel
def apply_change(row, change, contacts, running, k):
    """Change the impulse of a row in the lanes in which `running` is positive."""
    change = select(running > running - running, change, change - change)
    contacts.rows[row, contact.IMPULSE, k] = contacts.rows[row, contact.IMPULSE, k] + change
    add_to_velocities(row, change, contacts, k)


@kernel
def change_of_friction(row, rows, k):
    """Compute the change of the impulse of a dof's friction, between its limits."""
    p = rows[row, contact.IMPULSE, k]
    target = p - rows[row, contact.VELOCITY, k] * rows[row, contact.INVERSE, k]
    return min(max(target, rows[row, contact.LOWER, k]), rows[row, contact.UPPER, k]) - p


@kernel
def change_of_normal(row, rows, k):
    """Compute the change of the impulse of a stop or of a normal direction, which is not negative."""
    p = rows[row, contact.IMPULSE, k]
    above = rows[row, contact.VELOCITY, k] - rows[row, contact.BOUND, k]
    return max(p - above * rows[row, contact.INVERSE, k], p - p) - p


@kernel
def friction_target(row, rows, k):
    """Return the two tangential impulses without the limit, their norm, and the radius of the disc."""
    inverse = rows[row + 1, contact.INVERSE, k]
    a = rows[row + 1, contact.IMPULSE, k] - rows[row + 1, contact.VELOCITY, k] * inverse
    b = rows[row + 2, contact.IMPULSE, k] - rows[row + 2, contact.VELOCITY, k] * inverse
    radius = rows[row, contact.FRICTION, k] * rows[row, contact.IMPULSE, k] + rows[row + 1, contact.UPPER, k]
    return a, b, math.sqrt(a * a + b * b), radius


@kernel
def change_of_tangents(row, rows, k):
    """Compute the changes of the two tangential impulses, which stay in a disc."""
    a, b, norm, radius = friction_target(row, rows, k)
    one = constant_like(rows, 1.0)
    is_outside = norm > radius
    scale = select(is_outside, radius / select(is_outside, norm, one), one)
    return scale * a - rows[row + 1, contact.IMPULSE, k], scale * b - rows[row + 2, contact.IMPULSE, k]


@routine
def largest_residual(contacts, k):
    """Return the largest residual of the rows that impulses change, m/s or rad/s; NaN if one is not finite."""
    table, rows = contacts.table, contacts.rows
    residual = rows[0, contact.VELOCITY, k] - rows[0, contact.VELOCITY, k]
    for e in range(table.shape[1]):
        kind, row = table[element.KIND, e], table[element.ROW, e]
        if kind == element.FRICTION:
            residual = larger_residual(residual, row, change_of_friction(row, rows, k), rows, k)
            continue
        residual = larger_residual(residual, row, change_of_normal(row, rows, k), rows, k)
        if has_tangents(e, table):
            a, b = change_of_tangents(row, rows, k)
            residual = larger_residual(residual, row + 1, a, rows, k)
            residual = larger_residual(residual, row + 2, b, rows, k)
    return residual


@routine
def largest_missing_velocity(contacts, k):
    """Return the largest violation of BOUND by stops and contacts whose velocity no impulse changes, or zero."""
    table, rows = contacts.table, contacts.rows
    zero, largest = constant_like(rows, 0.0), rows[0, contact.VELOCITY, k] - rows[0, contact.VELOCITY, k]
    for e in range(table.shape[1]):
        if table[element.KIND, e] != element.FRICTION:
            row = table[element.ROW, e]
            missing = rows[row, contact.BOUND, k] - rows[row, contact.VELOCITY, k]
            largest = select(rows[row, contact.INVERSE, k] > zero, largest, max(largest, missing))
    return largest


@kernel
def larger_residual(residual, row, change, rows, k):
    """Return the larger of a residual and the residual of a row whose impulse would have to change by `change`."""
    inverse, one = rows[row, contact.INVERSE, k], constant_like(rows, 1.0)
    acts = inverse > inverse - inverse
    found = select(acts, abs(change) / select(acts, inverse, one), change - change)
    return select(residual >= found, residual, found + (residual - residual))


# --- numbers added to the diagonal ------------------------------------------------------------------------------------


@routine
def reduce_diagonal(contacts, residual, tolerance, k):
    """Solve with numbers added to the diagonal of W and reduced to zero, in the lanes whose residual is too large.

    If this fails in a lane, it continues there with the impulses of the smaller residual. Returns the residual.
    """
    rows, least = contacts.rows, constant_like(contacts.rows, tolerance)
    for row in range(rows.shape[0]):
        rows[row, contact.BEST_IMPULSE, k] = rows[row, contact.IMPULSE, k]
        rows[row, contact.REACHED_IMPULSE, k] = rows[row, contact.IMPULSE, k]
        rows[row, contact.GIVEN_DIAGONAL, k] = contacts.matrix[row, row, k]
        rows[row, contact.GIVEN_INVERSE, k] = rows[row, contact.INVERSE, k]
    zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
    first, largest = constant_like(rows, FIRST_ADDED), constant_like(rows, LARGEST_ADDED)
    smallest, ratio = max(constant_like(rows, LEAST_ADDED), epsilon(rows)), constant_like(rows, RATIO)
    last_ratio, ten = constant_like(rows, LAST_RATIO), constant_like(rows, 10.0)
    started = select(residual > least, one, zero)
    running, added, reached = started, first * started, zero * started
    for _ in range(MAX_ADDED):
        start_with_diagonal(contacts, added, running, k)
        found = select(running > zero, largest_residual(contacts, k), zero)
        found = run_rounds(contacts, found, tolerance, SWEEPS, k)
        succeeds = (running > zero) & (found <= least)
        is_solved = succeeds & (added == zero)
        for row in range(rows.shape[0]):
            p, last = rows[row, contact.IMPULSE, k], rows[row, contact.REACHED_IMPULSE, k]
            rows[row, contact.REACHED_IMPULSE, k] = select(succeeds, p, last)
        reached = select(succeeds, added, reached)
        smaller, between = ratio * added, math.sqrt(reached * max(added, ratio * smallest))
        smaller = select(smaller < smallest, zero, smaller)
        tried_enough = select(succeeds, zero, select(between > last_ratio * reached, one, zero))
        following = select(reached > zero, select(succeeds, smaller, between), ten * added)
        fails = select(reached > zero, tried_enough, select(following > largest, one, zero))
        running = select(is_solved | (fails > zero), zero, running)
        added = select(running > zero, following, zero)
        if not any_lane(running > zero):
            break
    start_with_diagonal(contacts, zero, started, k)
    found = select(started > zero, largest_residual(contacts, k), residual)
    worse = select(found > residual, one, zero)
    for row in range(rows.shape[0]):
        rows[row, contact.REACHED_IMPULSE, k] = rows[row, contact.BEST_IMPULSE, k]
    start_with_diagonal(contacts, zero, worse, k)
    return run_rounds(contacts, min(found, residual), tolerance, LAST_SWEEPS, k)


@kernel
def start_with_diagonal(contacts, added, running, k):
    """Add numbers to the diagonal of W, and start from REACHED_IMPULSE in the lanes in which `running` is positive."""
    rows, matrix, one = contacts.rows, contacts.matrix, constant_like(contacts.rows, 1.0)
    for row in range(rows.shape[0]):
        inverse = rows[row, contact.GIVEN_INVERSE, k]
        acts = inverse > inverse - inverse
        more = select(acts, added / select(acts, inverse, one), added - added)
        matrix[row, row, k] = rows[row, contact.GIVEN_DIAGONAL, k] + more
        rows[row, contact.INVERSE, k] = inverse / (one + added)  # otherwise, sweeps diverge
        p, start = rows[row, contact.IMPULSE, k], rows[row, contact.REACHED_IMPULSE, k]
        rows[row, contact.IMPULSE, k] = select(running > running - running, start, p)
    compute_velocities(contacts, running, k)


# --- Newton steps -----------------------------------------------------------------------------------------------------


@routine
def newton_steps(contacts, residual, limit, running, index, least, k):
    """Take Newton steps until the residual is at most `least` or steps fail, then a sweep; return the residual.

    Keeps the result in the lanes in which its residual is below `limit`.
    """
    rows = contacts.rows
    for row in range(rows.shape[0]):
        rows[row, contact.NEWTON_IMPULSE, k] = rows[row, contact.IMPULSE, k]
        rows[row, contact.NEWTON_VELOCITY, k] = rows[row, contact.VELOCITY, k]
    smallest, largest = least_proximal(rows), constant_like(rows, LARGEST_PROXIMAL)
    increase, decrease = constant_like(rows, INCREASE), constant_like(rows, DECREASE)
    nothing = running - running
    improves, proximal = running, smallest + nothing
    for _ in range(NEWTON_STEPS):
        if not any_lane(improves > nothing):
            break
        succeeds = newton_step(contacts, improves, index, proximal, k) > nothing
        proximal = select(succeeds, max(decrease * proximal, smallest + nothing), increase * proximal)
        is_solved = largest_residual(contacts, k) <= least
        improves = select(is_solved | (proximal > largest), nothing, improves)
    compute_velocities(contacts, running, k)  # long steps leave round-off in them
    sweep(contacts, running, k)
    found = largest_residual(contacts, k)
    is_better = (running > running - running) & (found < limit)
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
    compute_step(contacts, proximal, k)
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
    """Return the norm of the two tangential impulses or velocities of a contact."""
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
    total = rows[0, contact.VELOCITY, k] - rows[0, contact.VELOCITY, k]
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
    """Return the square of the change of an impulse, divided by the factor of u of its row."""
    inverse, one = rows[row, contact.INVERSE, k], constant_like(rows, 1.0)
    acts = inverse > inverse - inverse
    return select(acts, change * change / select(acts, inverse, one), change - change)


@routine
def compute_step(contacts, proximal, k):
    """Compute a Newton step: the changes of the impulses, in RIGHT, and the changes of the velocities, in CHANGE.

    Stores the impulses and velocities before the step.
    """
    rows, matrix = contacts.rows, contacts.matrix
    eliminate_rows(contacts, linearise(contacts, proximal, k), k)
    for row in range(rows.shape[0]):
        rows[row, contact.STEP_IMPULSE, k] = rows[row, contact.IMPULSE, k]
        rows[row, contact.STEP_VELOCITY, k] = rows[row, contact.VELOCITY, k]
        rows[row, contact.CHANGE, k] = constant_like(rows, 0.0)
    for row in range(rows.shape[0]):
        x = rows[row, contact.RIGHT, k]
        if any_lane(x != x - x):
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
def linearise(contacts, proximal, k):
    """Set the equations for the changes x of all impulses, and return the number of rows whose impulses may change.

    All other rows have x = 0. They are open contacts and stops, in all lanes.
    """
    table, rows, count = contacts.table, contacts.rows, 0
    for e in range(table.shape[1]):
        kind, row = table[element.KIND, e], table[element.ROW, e]
        linearise_row(kind, row, contacts, k)
        changes = row_changes(row, contacts, k)
        if has_tangents(e, table):
            linearise_tangents(row, contacts, k)
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
def row_at_place(a, contacts):
    """Return the number of the row at place a of the matrix of a Newton step."""
    return int(contacts.rows[a, contact.PLACE, 0])


@kernel
def row_changes(row, contacts, k):
    """Whether the equation of a row has a solution other than x = 0, or contains other rows, in any lane."""
    rows = contacts.rows
    zero = constant_like(rows, 0.0)
    return any_lane((rows[row, contact.RIGHT, k] != zero) | (rows[row, contact.COUPLES, k] != zero))


@kernel
def linearise_row(kind, row, contacts, k):
    """Set the right-hand side of a row: W x = target, or x = target at a limit. COUPLES is zero at a limit."""
    rows = contacts.rows
    p, u, inverse = rows[row, contact.IMPULSE, k], rows[row, contact.VELOCITY, k], rows[row, contact.INVERSE, k]
    zero, one = p - p, constant_like(rows, 1.0)
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
    linear[a, a, k] = linear[a, a, k] + select(is_inside, proximal + (couples - couples), one + (couples - couples))


@kernel
def linearise_tangents(row, contacts, k):
    """Set the right-hand sides of the two tangents of a contact. COUPLES is zero without dependence on other rows.

    If the disc has the radius zero, the tangents depend only on the normal impulse.
    """
    rows = contacts.rows
    a, b, norm, radius = friction_target(row, rows, k)
    zero, one = a - a, constant_like(rows, 1.0)
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

    Inside the disc, W x = -u. Outside, with z = p - u / w, its direction d = z / |z| and the radius r of the disc,

        x - mu d x_n - r / |z| (1 - d d^T) (x - W x / w) = r d - p
    """
    rows, linear, matrix = contacts.rows, contacts.linear, contacts.matrix
    a, b, norm, radius = friction_target(row, rows, k)
    zero, one = a - a, constant_like(rows, 1.0)
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


@routine
def eliminate_rows(contacts, count, k):
    """Solve the first `count` linear equations for the changes of the impulses, in RIGHT, by Gaussian elimination.

    The rows are not exchanged. A step that is wrong because of a small pivot does not pass the line search.
    """
    rows, linear = contacts.rows, contacts.linear
    zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
    for c in range(count):
        source = row_at_place(c, contacts)
        pivot = linear[c, c, k]
        is_regular = abs(pivot) > zero
        inverse = select(is_regular, one / select(is_regular, pivot, one), zero * pivot)
        rows[source, contact.PIVOT, k] = inverse
        # Else the rest of the row is zero, except for the tangents of a disc of radius zero, where the step neglects
        # it. Each lane decides for itself, so that it does not depend on its neighbours.
        couples = rows[source, contact.COUPLES, k] != zero
        has_rest = any_lane(couples)
        for a in range(c + 1, count):
            factor = linear[a, c, k] * inverse
            if any_lane(factor != zero):
                row = row_at_place(a, contacts)
                if has_rest:
                    passed = select(couples, factor, zero)
                    for j in range(c + 1, count):
                        linear[a, j, k] = linear[a, j, k] - passed * linear[c, j, k]
                rows[row, contact.RIGHT, k] = rows[row, contact.RIGHT, k] - factor * rows[source, contact.RIGHT, k]
    for a in range(count - 1, -1, -1):
        row = row_at_place(a, contacts)
        x = rows[row, contact.RIGHT, k]
        for j in range(a + 1, count):
            x = x - linear[a, j, k] * rows[row_at_place(j, contacts), contact.RIGHT, k]
        rows[row, contact.RIGHT, k] = x * rows[row, contact.PIVOT, k]
