"""Events: locate and record the times within a step at which a state passes a level or a user function changes sign."""

import math

from ..simd.jit import kernel, routine
from ..simd.lanes import constant_like
from ..tree.kinematics import normalize_positions
from ..tree.layout import CALLS_ALLOWED, FAILED_FIRST_EVENT
from .callbacks import call, store_failed_call
from .dense_output import interpolate
from .runge_kutta import zero_if_finite

# Rows of `SharedActions.events`, one column for each event.
EVENT_ROW = 0  # the row of the state that passes a level, or -1 for a user function
EVENT_NUMBERS = 1  # index of the level, or of the first parameter of the function, in `BlockActions.numbers`
EVENT_NUMBER_COUNT = 2  # number of parameters of the function
EVENT_ADDRESS = 3  # of the function
EVENT_DIRECTION = 4  # 1: rising values only, -1: falling values only, 0: both
EVENT_TERMINAL = 5  # 1 if it ends the motion
EVENT_ROWS = 6

# Returned instead of the fraction of a step after which an event ends the motion:
NO_EVENT = 2.0
EVENT_NOT_FINITE = -1.0  # an event occurs, but states within the step are not finite
TIME_TOLERANCE = 1e-11  # s; the error of an event's time, unless the round-off of the time is larger
MAX_ITERATIONS = 200


@kernel
def is_event_not_finite(theta):
    """Whether an event occurs in a step whose interpolated states are not finite."""
    return theta == EVENT_NOT_FINITE


@kernel
def store_event_values(block, y, t, lane):
    """Store the values of all event functions at the start of a sample, at time t."""
    for e in range(block.loads.actions.shared.events.shape[1]):
        block.loads.actions.event_values[e, lane] = event_value(e, block, y, t, lane)


@routine
def find_events(block, stepper, tableau, records, t, h, sample, lane):
    """Record the events in the step of a lane from time t to t + h.

    Returns the fraction of the step after which an event ends the motion, NO_EVENT, or EVENT_NOT_FINITE. If an event
    occurs twice within one step, both occurrences may be missed. If a user function fails, no event of the step is
    recorded. The first loop therefore calls the functions for all states that the second one needs.
    """
    actions, end = block.loads.actions, NO_EVENT
    for e in range(actions.shared.events.shape[1]):
        if event_occurs(e, block, stepper, t + h, lane):
            if not is_interpolation_finite(block, stepper, tableau, h, lane):
                return EVENT_NOT_FINITE
            is_terminal = actions.shared.events[EVENT_TERMINAL, e] == 1
            if is_terminal or actions.shared.events[EVENT_ROW, e] < 0:
                theta = locate_event(e, block, stepper, tableau, t, h, lane)
                end = min(end, theta) if is_terminal else end
    if actions.failures[lane] != CALLS_ALLOWED:
        return NO_EVENT
    for e in range(actions.shared.events.shape[1]):
        if event_occurs(e, block, stepper, t + h, lane):
            theta = locate_event(e, block, stepper, tableau, t, h, lane)
            slot = records.counts[sample, e]
            if theta <= end:
                records.counts[sample, e] = slot + 1
                if slot < records.times.shape[2]:
                    interpolate_state(block, stepper, tableau, theta, h, lane)
                    records.times[sample, e, slot] = t + theta * h
                    for j in range(stepper.y.shape[0]):
                        records.states[sample, e, slot, j] = stepper.change[j, lane]
    for e in range(actions.shared.events.shape[1]):
        actions.event_values[e, lane] = event_value(e, block, stepper.y_new, t + h, lane)
    return end


@kernel
def event_occurs(e, block, stepper, t_new, lane):
    """Whether the value of event e changes sign over the step, in the direction of the event."""
    actions = block.loads.actions
    before, after = actions.event_values[e, lane], event_value(e, block, stepper.y_new, t_new, lane)
    rises, falls = before < 0.0 and after >= 0.0, before > 0.0 and after <= 0.0
    direction = actions.shared.events[EVENT_DIRECTION, e]
    return (rises and direction >= 0) or (falls and direction <= 0)


@kernel
def event_value(e, block, y, t, lane):
    """Compute the value that changes sign at event e: state minus level, or the result of the user function.

    NaN if a user function has failed or must not be called.
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
def interpolate_state(block, stepper, tableau, theta, h, lane):
    """Compute the state after the fraction theta of the step by the continuous extension, as `stepper.change`."""
    y, y_new, length, fraction = stepper.y, stepper.y_new, constant_like(stepper.y, h), constant_like(stepper.y, theta)
    for j in range(y.shape[0]):
        stepper.change[j, lane] = interpolate(tableau, y, y_new, length, stepper.rates, fraction, j, lane)
    normalize_positions(block.model, stepper.change, lane)


@kernel
def is_interpolation_finite(block, stepper, tableau, h, lane):
    """Whether the continuous extension is finite in the middle of a step; both ends of the step are known to be."""
    interpolate_state(block, stepper, tableau, 0.5, h, lane)
    return zero_if_finite(stepper.change, lane) == constant_like(stepper.change, 0.0)


@kernel
def locate_event(e, block, stepper, tableau, t, h, lane):
    """Compute the fraction of the step after which event e occurs, by regula falsi (Illinois).

    Every fourth iteration is a bisection, because regula falsi converges slowly for some functions. Returns NO_EVENT if
    the fraction is not finite.
    """
    low, high = 0.0, 1.0
    f_low, f_high = block.loads.actions.event_values[e, lane], event_value(e, block, stepper.y_new, t + h, lane)
    tolerance = max(TIME_TOLERANCE, 4.0 * 2.2e-16 * abs(t + h)) / h
    side = 0
    for iteration in range(MAX_ITERATIONS):
        if high - low <= tolerance or f_high == 0.0:
            break
        theta = high - f_high * (high - low) / (f_high - f_low)
        if iteration % 4 == 3 or not (low < theta < high):
            theta = 0.5 * (low + high)
        interpolate_state(block, stepper, tableau, theta, h, lane)
        f = event_value(e, block, stepper.change, t + theta * h, lane)
        if (f < 0.0) == (f_low < 0.0) and f != 0.0:
            low, f_low = theta, f
            f_high = 0.5 * f_high if side == -1 else f_high
            side = -1
        else:
            high, f_high = theta, f
            f_low = 0.5 * f_low if side == 1 else f_low
            side = 1
    return high if math.isfinite(high) else NO_EVENT
