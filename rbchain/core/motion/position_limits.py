"""Positions that exceed the limits of joints without stops."""

from ...compiling.jit import kernel
from ..sample import tally_layout as tallies
from .events import NO_EVENT


@kernel
def check_limits_of_start(stepper, batch, lane):
    """Record the first position of the initial state that exceeds its limits."""
    for row in range(batch.outcome.limits.shape[1]):
        check_position(row, stepper.y, stepper, batch, lane)


@kernel
def check_limits_of_end(stepper, batch, theta, lane):
    """Record the first position that exceeds its limits at the end of the step, or at an event that ends the motion.

    theta is the fraction of the step at the event; `stepper.change` is the state there.
    """
    for row in range(batch.outcome.limits.shape[1]):
        if theta < NO_EVENT:
            check_position(row, stepper.change, stepper, batch, lane)
        else:
            check_position(row, stepper.y_new, stepper, batch, lane)


@kernel
def check_position(row, state, stepper, batch, lane):
    """Record the number of the dof, counted from 1, if the state exceeds its limits and none is recorded.

    `row` is the row of the sample in `Outcome.limits`, rad or m.
    """
    limits, tally = batch.outcome.limits, stepper.tally
    sample = tally[tallies.SAMPLE, lane] if limits.shape[0] > 1 else 0
    position = float(state[int(limits[sample, row, 0]), lane])
    is_beyond = position < limits[sample, row, 1] or position > limits[sample, row, 2]
    if is_beyond and tally[tallies.BEYOND_LIMIT, lane] == 0:
        tally[tallies.BEYOND_LIMIT, lane] = int(limits[sample, row, 3]) + 1
