"""The values of events: the number whose sign an event observes, in a state and within a step."""

import math

from ...compiling.jit import kernel, only_if, routine
from ..control.callbacks import call, store_failed_call
from ..lanes.lanes import constant_like, epsilon
from ..methods.adaptive_methods import has_large_stages
from ..sample import clock_layout as clocks
from ..tree.kinematics import normalize_positions
from ..tree.layout import CALLS_ALLOWED, FAILED_FIRST_EVENT
from .step_parts import state_within_step

# Rows of `SharedActions.events`, one column for each event.
EVENT_ROW = 0  # the row of the state that passes a level, or -1 for a user function
EVENT_NUMBERS = 1  # index of the level, or of the first parameter of the function, in `BlockActions.numbers`
EVENT_NUMBER_COUNT = 2  # number of parameters of the function
EVENT_ADDRESS = 3  # of the function
EVENT_DIRECTION = 4  # 1: rising values only, -1: falling values only, 0: both
EVENT_TERMINAL = 5  # 1 if it ends the motion
EVENT_ROWS = 6

# Rows of `BlockActions.event_values` (rows, lanes), for m events: the values at the start of a step (m), the numbers of
# occurrences in it (m), and the values at its end (m). The value of an event is the difference of two numbers, and the
# next rows are the largest of these numbers so far (m). Then follow the distances of positions from their levels that
# count as zero at contacts (m). The last rows are the fractions of the step at which events occur (MAX_OCCURRENCES
# each), and the places of one event (fraction and value, MAX_PLACES).
MAX_PLACES = 12
MAX_OCCURRENCES = MAX_PLACES - 1
# Round-off in units of the precision of the largest number. ROUND_OFF applies to a row of the state after some steps,
# ROUND_OFF_OF_STAGES in a step of a Rosenbrock method. There, the stages are much larger than the change in the step
# (largest found: 105).
ROUND_OFF, ROUND_OFF_OF_STAGES = 8.0, 128.0


def event_rows(count):
    """Return the number of rows of `BlockActions.event_values` for `count` events. Called in Python."""
    return count * (5 + MAX_OCCURRENCES) + 2 * MAX_PLACES if count > 0 else 0


@kernel
def count_row(e, count):
    """Return the row of the number of occurrences of event e in a step."""
    return count + e


@kernel
def end_row(e, count):
    """Return the row of the value of event e at the end of a step."""
    return 2 * count + e


@kernel
def largest_row(e, count):
    """Return the row of the largest number so far, of the row of the state that event e observes and of its level."""
    return 3 * count + e


@kernel
def distance_row(e, count):
    """Return the row of the distance of a position from its level, m or rad, that counts as zero at contacts."""
    return 4 * count + e


@kernel
def occurrence_row(e, number, count):
    """Return the row of the fraction of a step at occurrence `number` of event e, counted from 0."""
    return 5 * count + MAX_OCCURRENCES * e + number


@kernel
def place_row(number, count):
    """Return the row of the fraction of a step of a place; the value there is in the next row."""
    return (5 + MAX_OCCURRENCES) * count + 2 * number


@kernel
def without_round_off(f, units, largest, y):
    """Return a difference f of numbers up to `largest` in the precision of y, or 0 if it is at most that many units.

    The sign of round-off differs between methods and steps, so it must not decide whether a value passes its level.
    """
    return 0.0 if abs(f) <= units * epsilon(y) * largest else f


@only_if(has_large_stages, ROUND_OFF)
@kernel
def units_within_step(tableau):
    """Return the units of round-off of the value of a row within a step."""
    return ROUND_OFF_OF_STAGES


@kernel
def event_value(e, block, y, t, lane):
    """Compute the value that changes sign at event e: state minus level, or the result of the user function.

    NaN if a user function has failed or must not be called. The value has the unit of the row, or of the function.
    """
    actions, events = block.loads.actions, block.loads.actions.shared.events
    row, at = events[EVENT_ROW, e], events[EVENT_NUMBERS, e]
    if row >= 0:
        return float(y[row, lane]) - float(actions.numbers[at, lane])
    if actions.failures[lane] != CALLS_ALLOWED:
        return math.nan
    nq, n, memory = block.q.shape[0], block.qd.shape[0], actions.call_arguments
    out = nq + n + events[EVENT_NUMBER_COUNT, e]
    for j in range(nq + n):
        memory[j] = y[j, lane]
    for j in range(events[EVENT_NUMBER_COUNT, e]):
        memory[nq + n + j] = actions.numbers[at + j, lane]
    memory[out] = 0.0
    failed = call(
        events[EVENT_ADDRESS, e], t, memory[:nq], memory[nq : nq + n], memory[nq + n : out], memory[out : out + 1]
    )
    if failed != 0:
        store_failed_call(actions, FAILED_FIRST_EVENT + e, t, y, lane)
        return math.nan
    return memory[out]


@kernel
def time_within_step(stepper, theta, lane):
    """Return the time after the fraction theta of the step, s."""
    return stepper.clock[clocks.T, lane] + theta * stepper.clock[clocks.STEP, lane]


@kernel
def interpolate_state(block, stepper, tableau, theta, lane):
    """Compute the state after the fraction theta of the step by the continuous extension, as `stepper.change`."""
    length = constant_like(stepper.y, stepper.clock[clocks.STEP, lane])
    fraction = constant_like(stepper.y, theta)
    for j in range(stepper.y.shape[0]):
        stepper.change[j, lane] = state_within_step(block, stepper, tableau, length, fraction, j, lane)
    normalize_positions(block.model, stepper.change, lane)


@routine
def value_within_step(e, block, stepper, tableau, theta, lane):
    """Compute the value of event e after the fraction theta of the step."""
    interpolate_state(block, stepper, tableau, theta, lane)
    return event_value(e, block, stepper.change, time_within_step(stepper, theta, lane), lane)
