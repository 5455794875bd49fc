"""Inverse kinematics: find positions in which frames reach their targets, by damped least squares from several starts.

The energy E is half the sum of the squared, weighted errors e of all targets (`target_errors`). With their exact
Jacobian J, each iteration moves the positions on their tangent space by

    (J^T J + damping E W + FLOOR trace(J^T J) 1) step = -J^T e,

with the diagonal matrix W: 1 for angles, and 1 / size^2 of the mechanism for displacements. Joints that turn faster
than a joint to which they are coupled have smaller entries.

Damping in proportion to the energy makes the convergence quadratic, even for redundant and singular mechanisms
(Sugihara 2011, "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method", IEEE Trans. Robotics
27(5); Yamashita and Fukushima 2001). Positions beyond a limit are projected on the limit. A position at a limit does
not take part in a step that would move it outward.

A start ends if its energy hardly decreases over some iterations. If no start solves a sample, the last iterations
continue from the best positions found, until they are a local minimum of the energy. Far from zero, the normal matrix
is not a good model of the energy. Steps that increase it are therefore taken back there, and the damping grows.

The residuals of constraints are further errors (`loops.constraint_errors`), which a solution satisfies in any case. The
last iterations weigh them so much more than the targets that they hardly depend on these. The closing iterations, which
follow, have no targets.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import kernel, routine
from ..lanes.lane_records import lane_record
from ..lanes.lanes import constant_like, floor, full_like, select, zeros_like
from ..tree.kinematics import add_step, place_dof, rotate_dof
from ..tree.layout import POSING_OWN, PRISMATIC, REVOLUTE
from .target_errors import GOAL_ROWS, Targets, add_target

DAMPING, FLOOR = 0.1, 1e-10
#: Energy above which the damping does not grow: half a turn of two targets.
LARGEST_ENERGY = 4.0
#: Instead of zero, for lanes whose sample is solved in a position in which nothing moves the frames.
SMALLEST_PIVOT = 1e-200
#: A start ends if the energy after this number of iterations is above this fraction of the energy before them.
ITERATIONS_OF_CHECK, SHARE_OF_CHECK = 8, 0.8
ITERATIONS_OF_START = 40
#: The same for the last iterations, which end at a local minimum of the energy.
SHARE_OF_LAST_CHECK, LAST_ITERATIONS = 1.0 - 1e-9, 200
#: Weight of the constraints in the last iterations. Their residuals are then about 1e-4 of the errors of the targets.
WEIGHT_OF_CONSTRAINTS = 1e2
#: Factors of the damping in the last iterations, after steps that increase and decrease the energy.
MORE_DAMPING, LESS_DAMPING = 4.0, 0.5

# --- rows of `Search.state` (STATE_ROWS, lanes) ---
IS_SOLVED = 0  # 1 if all errors are within the tolerance, else 0
IS_MOVING = 1  # 0 if the positions have just been set, so the normal matrix belongs to others
ITERATION = 2  # of the start
ITERATIONS = 3  # of the sample
START = 4  # number of the start; the number of starts in the last iterations, and one more in the closing ones
CHECKED_ENERGY = 5
BEST_ENERGY = 6
DAMPING_FACTOR = 7  # of the energy
STATE_ROWS = 8


class Problem(NamedTuple):
    """What all samples of a call share.

    `starts` (starts, 2, nq): a start is the guess, times the first row, plus the second row. `limits` (n, 2) are the
    position limits of the dofs, rad or m; the limits of free and spherical joints are not used. `tolerance` is the
    largest error of a solution, m and rad, and `largest_gap` the same for the constraints.
    """

    targets: Targets
    starts: np.ndarray
    limits: np.ndarray
    tolerance: float
    largest_gap: float


class Search(NamedTuple):
    """The search of the sample in each lane.

    `normal`, `gradient` and `step` are J^T J, J^T e and the step, and `columns` J of one target. `is_free` is 0 for
    dofs that do not take part in a step, else 1. `errors` are the position error, m, and the length of the rotation
    error of each target. `goals` (rows, lanes) are described in `target_errors`, the rows of `state` above.

    `resistance` (n) is the diagonal of W. `J` are the derivatives of the m rows of constraints, `gap` their largest
    residual, m and rad, or infinity if an axis points backwards, and `rest` are velocities of zero.
    """

    normal: Annotated[np.ndarray, "n", "n"]
    columns: Annotated[np.ndarray, "n", 6]
    gradient: Annotated[np.ndarray, "n"]
    step: Annotated[np.ndarray, "n"]
    resistance: Annotated[np.ndarray, "n"]
    is_free: Annotated[np.ndarray, "n"]
    guess: Annotated[np.ndarray, "nq"]
    rate: Annotated[np.ndarray, "nq"]
    best_q: Annotated[np.ndarray, "nq"]
    errors: Annotated[np.ndarray, "targets", 2]
    best_errors: Annotated[np.ndarray, "targets", 2]
    goals: Annotated[np.ndarray, f"{GOAL_ROWS} * targets + 1"]
    energy: Annotated[np.ndarray, 1]
    gap: Annotated[np.ndarray, 1]
    best_gap: Annotated[np.ndarray, 1]
    J: Annotated[np.ndarray, "m", "n"]
    rest: Annotated[np.ndarray, "n"]
    state: Annotated[np.ndarray, STATE_ROWS]


search_size, search_in = lane_record(Search, "n", "nq", "targets", "m")


@kernel
def begin_sample(problem, search, q, lane):
    """Start the search of the sample in a lane, from its guess and goals, which `search` contains."""
    state = search.state
    for row in range(STATE_ROWS):
        state[row, lane] = 0.0
    state[BEST_ENERGY, lane] = math.inf
    search.best_gap[0, lane] = math.nan
    for j in range(q.shape[0]):
        search.best_q[j, lane] = math.nan
    for t in range(search.errors.shape[0]):
        search.best_errors[t, 0, lane] = math.nan
        search.best_errors[t, 1, lane] = math.nan
    begin_start(problem, search, q, lane)


@kernel
def begin_start(problem, search, q, lane):
    """Set the positions q (nq, lanes) in a lane to its current start, or to the best ones after the last start."""
    state = search.state
    number = int(state[START, lane])
    for j in range(q.shape[0]):
        if number < problem.starts.shape[0]:
            start = problem.starts[number]
            q[j, lane] = start[0, j] * search.guess[j, lane] + start[1, j]
        else:
            q[j, lane] = search.best_q[j, lane]
    state[IS_MOVING, lane] = 0.0
    state[ITERATION, lane] = 0.0
    state[CHECKED_ENERGY, lane] = math.inf
    state[DAMPING_FACTOR, lane] = DAMPING


@routine
def evaluate(model, problem, search, q, work, k):
    """Compute the errors of the targets, the energy, its gradient and the normal matrix in q (nq, lanes).

    The positions are within their limits afterwards, with angles without limits within half a turn of the guess.
    """
    project_positions(model, problem.limits, search.guess, q, k)
    n, inverse = model.parent.shape[0], search.goals[search.goals.shape[0] - 1, k]
    for i in range(n):
        # a displacement by the size of the mechanism counts as much as 1 rad
        search.resistance[i, k] = inverse * inverse if model.joint[i] == PRISMATIC else full_like(inverse, 1.0)
        rotate_dof(i, model, q, work, k)
        place_dof(i, model, work, k)
        search.gradient[i, k] = constant_like(q, 0.0)
        for j in range(i + 1):
            search.normal[i, j, k] = constant_like(q, 0.0)
    search.energy[0, k] = search.gap[0, k] = constant_like(q, 0.0)
    for t in range(problem.targets.table.shape[1]):
        add_target(t, model, problem.targets, search.goals, search, work, k)


@kernel
def project_positions(model, limits, guess, q, k):
    """Project positions on their limits, and move angles without limits by whole turns to the guess.

    `guess` and q are (nq, lanes), and `limits` (n, 2).
    """
    turn, half = constant_like(q, 2.0 * math.pi), constant_like(q, 0.5)
    for i in range(model.parent.shape[0]):
        if model.posing[i] == POSING_OWN:
            at, lower, upper = model.coordinate[i], limits[i, 0], limits[i, 1]
            if model.joint[i] == REVOLUTE and math.isinf(lower) and math.isinf(upper):
                x = q[at, k]
                q[at, k] = x - turn * floor((x - guess[at, k]) / turn + half)
            else:
                q[at, k] = min(max(q[at, k], constant_like(q, lower)), constant_like(q, upper))


@kernel
def keep_best(problem, search, q, k):
    """Set IS_SOLVED, and keep the positions q (nq, lanes) if they solve the targets or have less energy than before.

    In the closing iterations, IS_SOLVED means that the constraints are satisfied.
    """
    state, energy = search.state, search.energy[0, k]
    one, zero = zeros_like(energy) + constant_like(q, 1.0), zeros_like(energy)
    largest = zero
    for t in range(search.errors.shape[0]):
        for part in range(2):
            largest = max(largest, search.errors[t, part, k])
    last = constant_like(q, problem.starts.shape[0])
    reached = select(state[START, k] > last, one, select(largest <= problem.tolerance, one, zero))
    closed = select(search.gap[0, k] <= problem.largest_gap, reached, zero)
    # the energy is NaN if any error is, but `max` may ignore NaN
    is_solved = select(energy < constant_like(q, math.inf), closed, zero)
    better = (energy < state[BEST_ENERGY, k]) | (is_solved > zero)
    state[IS_SOLVED, k] = is_solved
    state[BEST_ENERGY, k] = select(better, energy, state[BEST_ENERGY, k])
    for j in range(q.shape[0]):
        search.best_q[j, k] = select(better, q[j, k], search.best_q[j, k])
    search.best_gap[0, k] = select(better, search.gap[0, k], search.best_gap[0, k])
    for t in range(search.errors.shape[0]):
        for part in range(2):
            found, best = search.errors[t, part, k], search.best_errors[t, part, k]
            search.best_errors[t, part, k] = select(better, found, best)


@kernel
def is_done(problem, search, q, lane):
    """Whether the search in a lane has ended, after `keep_best`; if its start has ended, begin the next one."""
    state = search.state
    state[ITERATION, lane] += 1.0
    state[ITERATIONS, lane] += 1.0
    if state[IS_SOLVED, lane] > 0.0:
        return True
    energy, iteration = search.energy[0, lane], int(state[ITERATION, lane])
    count = problem.starts.shape[0]
    is_last = int(state[START, lane]) >= count
    if is_last:
        adapt_damping(search, q, lane)
    else:
        state[IS_MOVING, lane] = 1.0
    ends = not energy < math.inf or iteration >= (LAST_ITERATIONS if is_last else ITERATIONS_OF_START)
    if not ends and iteration % ITERATIONS_OF_CHECK == 0:
        share = SHARE_OF_LAST_CHECK if is_last else SHARE_OF_CHECK
        checked = state[BEST_ENERGY, lane] if is_last else energy
        ends = not checked < share * state[CHECKED_ENERGY, lane]
        state[CHECKED_ENERGY, lane] = checked
    if not ends:
        return False
    state[START, lane] += 1.0
    begin_start(problem, search, q, lane)
    number = int(state[START, lane])
    if number < count:
        return False
    is_lost = not state[BEST_ENERGY, lane] < math.inf
    state[BEST_ENERGY, lane] = math.inf  # the weights of the constraints change
    return is_lost or number > count + (1 if search.J.shape[0] > 0 else 0)


@kernel
def adapt_damping(search, q, lane):
    """After a step of the last iterations: take it back and increase the damping if the energy has increased."""
    state = search.state
    if not search.energy[0, lane] <= state[BEST_ENERGY, lane]:
        for j in range(q.shape[0]):
            q[j, lane] = search.best_q[j, lane]
        state[DAMPING_FACTOR, lane] *= MORE_DAMPING
        state[IS_MOVING, lane] = 0.0
    else:
        if state[IS_MOVING, lane] > 0.0:
            state[DAMPING_FACTOR, lane] *= LESS_DAMPING
        state[IS_MOVING, lane] = 1.0


@routine
def move(model, problem, search, q, k):
    """Move the positions q (nq, lanes) by one step; lanes whose positions have just been set do not move."""
    limits, n = problem.limits, model.parent.shape[0]
    hold_at_limits(model, limits, search, q, k)
    trace = zeros_like(search.energy[0, k])
    for i in range(n):
        trace = trace + search.normal[i, i, k]
    # more energy does not mean that the positions are further from the solution: targets of floating bases may be far
    energy = min(search.energy[0, k], constant_like(q, LARGEST_ENERGY))
    by_energy, by_trace = search.state[DAMPING_FACTOR, k] * energy, constant_like(q, FLOOR) * trace
    one = constant_like(q, 1.0)
    for i in range(n):
        free = search.is_free[i, k]
        damping = by_energy * search.resistance[i, k] + by_trace
        for j in range(i):
            search.normal[i, j, k] = free * search.is_free[j, k] * search.normal[i, j, k]
        search.normal[i, i, k] = free * search.normal[i, i, k] + (damping + (one - free))
        search.step[i, k] = -free * search.gradient[i, k]
    solve_positive(search.normal, search.step, constant_like(q, SMALLEST_PIVOT), k)
    zero = constant_like(q, 0.0)
    is_moving = search.state[IS_MOVING, k] > zero
    for i in range(n):
        search.step[i, k] = select(is_moving, search.step[i, k], zero)
    add_step(model, q, search.step, search.rate, q, k)


@kernel
def hold_at_limits(model, limits, search, q, k):
    """Set `is_free` to 0 for dofs at a limit beyond which the negative gradient points, else to 1."""
    for i in range(model.parent.shape[0]):
        g = search.gradient[i, k]
        zero = zeros_like(g)
        one = zero + constant_like(q, 1.0)
        search.is_free[i, k] = one
        if model.posing[i] == POSING_OWN:
            x = q[model.coordinate[i], k]
            is_low = (x <= constant_like(q, limits[i, 0])) & (g > zero)
            is_high = (x >= constant_like(q, limits[i, 1])) & (g < zero)
            search.is_free[i, k] = select(is_low | is_high, zero, one)


@kernel
def solve_positive(A, x, least, k):
    """Replace the right-hand side x (n, lanes) by the solution of A x, by a Cholesky factorization in place.

    A (n, n, lanes) is positive definite, and only entries (i, j) with j <= i are read. Pivots below `least`, a number,
    count as `least`. Afterwards, the diagonal of A holds the inverse square roots of the pivots. Source: Golub and Van
    Loan (2013), *Matrix Computations*, algorithm 4.2.1.
    """
    n, one = A.shape[0], constant_like(A, 1.0)
    for c in range(n):
        pivot = A[c, c, k]
        for j in range(c):
            pivot = pivot - A[c, j, k] * A[c, j, k]
        inverse = one / math.sqrt(max(pivot, least))
        A[c, c, k] = inverse
        for i in range(c + 1, n):
            entry = A[i, c, k]
            for j in range(c):
                entry = entry - A[i, j, k] * A[c, j, k]
            A[i, c, k] = entry * inverse
        total = x[c, k]
        for j in range(c):
            total = total - A[c, j, k] * x[j, k]
        x[c, k] = total * inverse
    for i in range(n - 1, -1, -1):
        total = x[i, k]
        for j in range(i + 1, n):
            total = total - A[j, i, k] * x[j, k]
        x[i, k] = total * A[i, i, k]
