"""Trajectories in steps of equal length, all lanes together."""

import math

from .aba import fail_together
from .jit import kernel
from .kinematics import normalize_positions
from .lanes import like
from .rollout import DONE, EVALUATIONS, NOT_FINITE, REJECTIONS, STATUS, STEPS, evaluate, save_lane, take_chain
from .runge_kutta import advance


@kernel
def roll_evenly(block, stepper, tableau, batch, step, span, k):
    """Take one block of chains, span = (first, last), from each saved time to the next in equal steps."""
    first, last = span
    width, times = stepper.y.shape[1], batch.times
    for lane in range(width):
        take_chain(block, stepper, batch, min(first + lane, last - 1), lane)
    save_lanes(block, stepper, batch, 0, span)
    attempted = 0
    for slot in range(1, times.shape[0]):
        length = times[slot] - times[slot - 1]
        steps = max(1, int(math.ceil(length / step * (1.0 - 1e-12))))  # noqa: RUF046 (Numba's is a float)
        for _ in range(steps):
            step_evenly(block, stepper, tableau, like(stepper.y, length / steps), k)
        attempted += steps
        save_lanes(block, stepper, batch, slot, span)
    for lane in range(min(width, last - first)):
        taken = stepper.tally[STEPS, lane]
        batch.tally[first + lane, STATUS] = DONE if taken == attempted else NOT_FINITE
        batch.tally[first + lane, STEPS] = taken
        batch.tally[first + lane, REJECTIONS] = 0
        batch.tally[first + lane, EVALUATIONS] = taken * tableau.b.shape[0]


@kernel
def step_evenly(block, stepper, tableau, h, k):
    """One step of length h. A state that is no longer finite becomes NaN throughout, and its steps no longer count."""
    y, y_new, rates = stepper.y, stepper.y_new, stepper.rates
    stages = tableau.b.shape[0]
    evaluate(block, y, rates[0], k)
    for stage in range(1, stages):
        advance(tableau.A[stage], stage, y, h, rates, y_new, k)
        evaluate(block, y_new, rates[stage], k)
    advance(tableau.b, stages, y, h, rates, y, k)
    normalize_positions(block.model, y, k)
    fail_together(y, k)
    for lane in range(y.shape[1]):
        if y[0, lane] == y[0, lane]:
            stepper.tally[STEPS, lane] += 1


@kernel
def save_lanes(block, stepper, batch, slot, span):
    """Save the states of a block of chains."""
    first, last = span
    for lane in range(min(stepper.y.shape[1], last - first)):
        save_lane(block, stepper.y, batch, first + lane, slot, lane)
