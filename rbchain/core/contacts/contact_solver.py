"""Impulses of dry friction, joint stops and contacts, by projected Gauss-Seidel sweeps and Newton steps.

With the velocities u = u_free + W p of the rows, W = J H^-1 J^T, find impulses p such that

    friction of a dof       p = min(max(p - u / W_ii, lower), upper)
    stop, normal direction  p = max(p - (u - bound) / W_ii, 0)
    tangents of a contact   p = the point of the disk of radius mu p_n + upper that is nearest to p - u / w

The difference between both sides, as a velocity, is the residual. A sweep applies these equations row by row. Sweeps
alone converge slowly if the rows are strongly coupled. Steps of Newton's method therefore linearize the equations of
all rows. A line search shortens them. Their result is kept in the lanes in which it halves the least residual so far.
Otherwise, they could return to the same local minimum of the residual after each sweep.

The solution does not depend on the factors of u, as long as they are positive. The factors change the path of Newton's
method, which fails with some factors. Sweeps and Newton steps with different factors alternate.
In a contact that slides slowly, u / w is small compared with p, so z = p - u / w hardly depends on the direction
of u. Most rounds therefore choose the factor of the two tangents such that both terms are similarly large.

W is singular if there are more rows than dofs, or if a body touches another at three or more points. A number is
therefore added to the diagonal of a Newton step, as in the proximal point method. It becomes larger after a failed
step, and smaller after a successful step.

If sweeps and Newton steps fail, the solver starts again with numbers added to the diagonal of W, so that the rows
hardly depend on each other. The numbers become smaller in steps, and each solution is the start of the next solution.

Sources: Jean (1999), "The non-smooth contact dynamics method"; Alart and Curnier (1991), "A mixed formulation for
frictional contact problems prone to Newton like solution methods".

`contact_layout` describes the arguments. `residual`, `running` and `added` are one value for each lane; `tolerance` is
one value for all lanes.
"""

import math

from ...compiling.jit import kernel, routine
from ..lanes.lanes import any_lane, constant_like, epsilon, nan_unless_finite, select
from . import contact_layout as contact
from .contact_newton import MULTIPLES, choose_equations, newton_steps
from .contact_residuals import compute_velocities, largest_missing_velocity, largest_residual, sweep

# Number of sweeps in the first round, the same for the last try, and its factor from round to round. The impulses of
# contacts that jam while they slide (Painleve) grow slowly from sweep to sweep. In impacts of three adjacent contacts,
# the impulse of the middle contact may decrease slowly to zero.
SWEEPS, LAST_SWEEPS, GROWTH = 3, 600, 1.2
# Newton steps of a round, fewer of a prediction, whose residual may be PREDICTED times the tolerance.
NEWTON_STEPS, PREDICTION_STEPS, PREDICTED = 20, 6, 100.0
# Residuals above this multiple of the tolerance are reduced by Newton steps, if sweeps were necessary at all.
GOAL = 1e-3
# Newton steps are kept if they reduce the least residual so far by this factor.
PROGRESS = 0.5
# Numbers added to the diagonal, as multiples of 1 / (factor of u): the first, the largest and the smallest number, and
# the ratio of the next number to a number with which the solver succeeded.
FIRST_ADDED, LARGEST_ADDED, LEAST_ADDED, RATIO = 0.1, 100.0, 1e-9, 0.25
# The solver gives up if the next number is more than LAST_RATIO times the last number with which it succeeded, or
# after MAX_ADDED numbers.
LAST_RATIO, MAX_ADDED = 0.8, 40


@routine
def solve_contacts(contacts, tolerance, k):
    """Solve for the impulses of all rows, starting from IMPULSE, and return the largest residual.

    Reads u_free from VELOCITY, and writes u to VELOCITY. The residual and the tolerance have the unit of u.
    """
    start_with_impulses(contacts, k)
    choose_equations(contacts, tolerance, k)
    rows = contacts.rows
    residual = run_rounds(contacts, largest_residual(contacts, k), tolerance, SWEEPS, len(MULTIPLES), NEWTON_STEPS, k)
    if any_lane(residual > constant_like(rows, tolerance)):
        residual = reduce_diagonal(contacts, residual, tolerance, k)
    return max(residual, largest_missing_velocity(contacts, k))


@routine
def predict_contacts(contacts, tolerance, k):
    """Approximate the impulses of all rows as a first guess of `solve_contacts`, with one round of few steps.

    Reads and writes VELOCITY as `solve_contacts` does.
    """
    start_with_impulses(contacts, k)
    choose_equations(contacts, tolerance, k)
    run_rounds(contacts, largest_residual(contacts, k), PREDICTED * tolerance, SWEEPS, 1, PREDICTION_STEPS, k)


@kernel
def start_with_impulses(contacts, k):
    """Store u_free, and add the velocities that the impulses of the first guess cause."""
    rows = contacts.rows
    for row in range(rows.shape[0]):
        rows[row, contact.GIVEN_VELOCITY, k] = rows[row, contact.VELOCITY, k]
    compute_velocities(contacts, constant_like(rows, 1.0), k)


@routine
def run_rounds(contacts, residual, tolerance, sweeps, rounds, steps, k):
    """Alternate sweeps and Newton steps in the lanes whose residual exceeds the tolerance, and return the residual.

    `sweeps` is the number of sweeps in the first round, `rounds` the largest number of rounds, and `steps` the largest
    number of Newton steps in each.
    """
    rows, count = contacts.rows, 1.0 * sweeps
    least, goal = constant_like(rows, tolerance), constant_like(rows, GOAL * tolerance)
    progress, lowest = constant_like(rows, PROGRESS), residual
    for index in range(rounds):
        # numbers, because routines take no masks: above zero in the lanes that are running
        running = select(residual > least, residual, nan_unless_finite(residual))
        if not any_lane(running > nan_unless_finite(running)):
            break
        for _ in range(int(count)):
            sweep(contacts, running, k)
        count *= GROWTH
        residual = select(running > nan_unless_finite(running), largest_residual(contacts, k), residual)
        lowest = min(lowest, residual)
        running = select(residual > goal, running, nan_unless_finite(residual))
        if any_lane(running > nan_unless_finite(running)):
            residual = newton_steps(contacts, residual, progress * lowest, running, index, least, steps, k)
        lowest = min(lowest, residual)
    return residual


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
        found = run_rounds(contacts, found, tolerance, SWEEPS, len(MULTIPLES), NEWTON_STEPS, k)
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
    return run_rounds(contacts, min(found, residual), tolerance, LAST_SWEEPS, len(MULTIPLES), NEWTON_STEPS, k)


@kernel
def start_with_diagonal(contacts, added, running, k):
    """Add numbers to the diagonal of W, and start from REACHED_IMPULSE in the lanes in which `running` is positive."""
    rows, matrix, one = contacts.rows, contacts.matrix, constant_like(contacts.rows, 1.0)
    for row in range(rows.shape[0]):
        inverse = rows[row, contact.GIVEN_INVERSE, k]
        acts = inverse > nan_unless_finite(inverse)
        more = select(acts, added / select(acts, inverse, one), nan_unless_finite(added))
        matrix[row, row, k] = rows[row, contact.GIVEN_DIAGONAL, k] + more
        rows[row, contact.INVERSE, k] = inverse / (one + added)  # otherwise, sweeps diverge
        p, start = rows[row, contact.IMPULSE, k], rows[row, contact.REACHED_IMPULSE, k]
        rows[row, contact.IMPULSE, k] = select(running > nan_unless_finite(running), start, p)
    compute_velocities(contacts, running, k)
