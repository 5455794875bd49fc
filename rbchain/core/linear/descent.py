"""The search for an equilibrium in lanes: Newton steps with a shift, for open trees whose joints may all move.

With the forces f of all joints at rest, the symmetric part K of their stiffness, and the diagonal B of the mass matrix,
a step solves

    (K + s B) step = f.

The shift s is the smallest of a sequence that makes the matrix positive definite. Therefore each step has a positive
component along the force, even where the stiffness is negative. Near a stable equilibrium, it is Newton's step. A step
is halved while it passes the point at which the force along it changes its sign, unless the force decreases.
`analysis.equilibrium_search` completes and verifies the search. Source: Nocedal and Wright (2006), *Numerical
Optimization*, section 3.4.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import kernel, routine
from ..algorithms.derivatives import BY_INPUT, BY_Q
from ..algorithms.inverse_kinematics import SMALLEST_PIVOT, solve_positive
from ..lanes.lane_records import lane_record
from ..lanes.lanes import any_lane, constant_like, full_like, select, zeros_like
from ..tree.kinematics import add_step
from ..tree.layout import POSING_OWN, PRISMATIC

#: Shifts relative to a bound of the stiffness: the first one if a direction has no stiffness, then from LEAST_SHIFT on.
ROUND_OFF_SHIFT, LEAST_SHIFT, MORE_SHIFT, MOST_SHIFTS = 1e-9, 1.0 / 64.0, 2.0, 10
#: A pivot relative to the bound below which the matrix is not positive definite.
LEAST_PIVOT = 1e-11
#: Share of the moments that are not balanced in the shift of trees with free and spherical joints.
DAMPING = 0.1
#: Largest change of an angle in one step, rad.
LARGEST_TURN = 0.5
#: Share of the force along a step that may act against it at its end; ratio of the squared forces that always suffices.
OVERSHOOT, DECREASE = 0.5, 0.81
MOST_HALVINGS = 25
#: Residual of an equilibrium relative to the largest stiffness, and one that is round-off.
LARGEST_RESIDUAL, ROUND_OFF = 1e-12, 1e-15

# --- rows of `Descent.state` (STATE_ROWS, lanes) ---
EVALUATIONS = 0  # of the sample
HALVINGS = 1  # of the step
ALONG = 2  # force along the complete step, at its start
SIZE = 3  # sum of f^2 / B at the start of the step
SHARE = 4  # of the step
BEST = 5  # smallest residual so far
IS_DONE = 6
STATE_ROWS = 7


class Descent(NamedTuple):
    """The search of the sample in each lane.

    `start` and `change` are the positions at the start of the step, and the complete step. `matrix` holds K + s B and
    its factor, both divided by the square roots of B, whose inverses are `scale`. `found` are the positions with the
    smallest residual.
    """

    start: Annotated[np.ndarray, "nq"]
    rate: Annotated[np.ndarray, "nq"]
    found: Annotated[np.ndarray, "nq"]
    change: Annotated[np.ndarray, "n"]
    step: Annotated[np.ndarray, "n"]
    force: Annotated[np.ndarray, "n"]
    scale: Annotated[np.ndarray, "n"]
    matrix: Annotated[np.ndarray, "n", "n"]
    state: Annotated[np.ndarray, STATE_ROWS]


descent_size, descent_in = lane_record(Descent, "n", "nq")


@kernel
def begin_descent(descent, q, lane):
    """Start the search in a lane, from the positions q (nq, lanes)."""
    for row in range(STATE_ROWS):
        descent.state[row, lane] = 0.0
    descent.state[SIZE, lane] = descent.state[BEST, lane] = math.inf
    for j in range(q.shape[0]):
        descent.start[j, lane] = descent.found[j, lane] = q[j, lane]
    for i in range(descent.change.shape[0]):
        descent.change[i, lane] = 0.0


@kernel
def sum_forces(derivatives, descent, qdd, k):
    """Compute the sums of all joint forces, M qdd. `derivatives` (3, n, n, lanes) has K, D and M; qdd is (n, lanes)."""
    n = descent.force.shape[0]
    for i in range(n):
        force = zeros_like(qdd[i, k])
        for j in range(n):
            force = force + derivatives[BY_INPUT, i, j, k] * qdd[j, k]
        descent.force[i, k] = force


@routine
def move_down(model, derivatives, descent, most, q, k):
    """Accept or shorten the last step, and move the positions q (nq, lanes) by the next one. Sets IS_DONE.

    `most` is the largest number of evaluations.
    """
    state, force, n = descent.state, descent.force, descent.force.shape[0]
    zero, one = zeros_like(state[SIZE, k]), full_like(state[SIZE, k], 1.0)
    size, at_end, largest, stiffest = zero, zero, zero, zero
    for i in range(n):
        size = size + force[i, k] * force[i, k] / derivatives[BY_INPUT, i, i, k]
        at_end = at_end + force[i, k] * descent.change[i, k]
        largest = max(largest, abs(force[i, k]))
        for j in range(n):
            stiffest = max(stiffest, abs(derivatives[BY_Q, i, j, k]))
    is_finite = size < constant_like(q, math.inf)
    is_better = is_finite & (largest < state[BEST, k])
    improves = is_finite & (largest <= constant_like(q, 0.5) * state[BEST, k])
    state[BEST, k] = select(is_better, largest, state[BEST, k])
    for j in range(q.shape[0]):
        descent.found[j, k] = select(is_better, q[j, k], descent.found[j, k])
    state[EVALUATIONS, k] = state[EVALUATIONS, k] + one
    is_small = largest <= constant_like(q, LARGEST_RESIDUAL) * stiffest
    is_still = largest <= constant_like(q, ROUND_OFF) * stiffest
    ends = select(improves, select(is_still, one, zero), select(is_small, one, zero))
    has_numbers = is_finite | (state[SIZE, k] < constant_like(q, math.inf))
    ends = select(has_numbers, ends, one)
    state[IS_DONE, k] = select(state[EVALUATIONS, k] >= full_like(zero, most), one, ends)
    turns_back = at_end < constant_like(q, -OVERSHOOT) * state[ALONG, k]
    grows = size > constant_like(q, DECREASE) * state[SIZE, k]
    is_too_long = select(is_finite, select(turns_back & grows, one, zero), one)
    is_open = (is_too_long > zero) & (state[HALVINGS, k] < constant_like(q, MOST_HALVINGS))
    store_step(model, derivatives, descent, size, k)
    turn, along = full_like(zero, LARGEST_TURN), zero
    for i in range(n):
        descent.change[i, k] = select(is_open, descent.change[i, k], descent.step[i, k])
        along = along + force[i, k] * descent.step[i, k]
        if model.joint[i] != PRISMATIC:
            turn = max(turn, abs(descent.step[i, k]))
    state[ALONG, k] = select(is_open, state[ALONG, k], along)
    state[SIZE, k] = select(is_open, state[SIZE, k], size)
    half, share = constant_like(q, 0.5) * state[SHARE, k], constant_like(q, LARGEST_TURN) / turn
    state[SHARE, k] = select(is_open, half, share)
    state[HALVINGS, k] = select(is_open, state[HALVINGS, k] + one, zero)
    for j in range(q.shape[0]):
        q[j, k] = descent.start[j, k] = select(is_open, descent.start[j, k], q[j, k])
    for i in range(n):
        descent.step[i, k] = state[SHARE, k] * descent.change[i, k]
    add_step(model, q, descent.step, descent.rate, q, k)


@routine
def store_step(model, derivatives, descent, size, k):
    """Solve for the step with the smallest shift that makes the matrix positive definite.

    `size` is the sum of f^2 / B.
    """
    n, half = descent.force.shape[0], constant_like(descent.force, 0.5)
    zero, one, turning = zeros_like(size), full_like(size, 1.0), zeros_like(size)
    bound, has_quaternions = zero, False
    for i in range(n):
        descent.scale[i, k] = one / math.sqrt(derivatives[BY_INPUT, i, i, k])
        has_quaternions = has_quaternions or model.posing[i] != POSING_OWN
        if model.joint[i] != PRISMATIC:
            turning = turning + descent.scale[i, k] * descent.scale[i, k]
    for i in range(n):
        row = zero
        for j in range(n):
            row = row + abs(derivatives[BY_Q, i, j, k] + derivatives[BY_Q, j, i, k]) * descent.scale[j, k]
        bound = max(bound, half * row * descent.scale[i, k])
    # the stiffness of free and spherical joints contains the moments that are not balanced
    damping = constant_like(size, DAMPING) * math.sqrt(turning * size) if has_quaternions else zero
    shift = zero
    for attempt in range(MOST_SHIFTS):
        for i in range(n):
            descent.step[i, k] = descent.scale[i, k] * descent.force[i, k]
            for j in range(i + 1):
                entry = half * (derivatives[BY_Q, i, j, k] + derivatives[BY_Q, j, i, k])
                descent.matrix[i, j, k] = descent.scale[i, k] * entry * descent.scale[j, k]
            descent.matrix[i, i, k] = descent.matrix[i, i, k] + (shift + damping)
        least = max(constant_like(size, LEAST_PIVOT) * (bound + shift), constant_like(size, SMALLEST_PIVOT))
        solve_positive(descent.matrix, descent.step, least, k)
        root = one / math.sqrt(least)
        is_wrong = zero
        for i in range(n):
            is_wrong = select(descent.matrix[i, i, k] < root, is_wrong, one)
        if attempt == MOST_SHIFTS - 1 or not any_lane(is_wrong > zero):
            break
        following = constant_like(size, ROUND_OFF_SHIFT if attempt == 0 else LEAST_SHIFT * MORE_SHIFT ** (attempt - 1))
        shift = select(is_wrong > zero, following * bound, shift)
    for i in range(n):
        descent.step[i, k] = descent.scale[i, k] * descent.step[i, k]
