"""Locate and record events: where a state passes a level, or a user's function changes its sign, within a step."""

import math

from ..simd.jit import kernel, routine
from ..simd.lanes import constant_like
from ..tree.kinematics import normalize_positions
from ..tree.layout import CALLS_ALLOWED, FAILED_FIRST_EVENT
from .callbacks import call, store_failed_call
from .runge_kutta import interpolate, zero_if_finite

# Rows of `SharedActions.events`, one column for each event.
EVENT_ROW = 0  # which row of the state passes the level; -1 where a user's function changes its sign
EVENT_NUMBERS = 1  # the number that is the level, or the first of the function's parameters
EVENT_NUMBER_COUNT = 2  # how many parameters the function has
EVENT_ADDRESS = 3  # of the function
EVENT_DIRECTION = 4  # 1 counts if it rises, -1 if it falls, 0 both
EVENT_TERMINAL = 5  # 1 if it ends the motion
EVENT_ROWS = 6

NEVER = 2.0  # a share of the step that no event has
NOWHERE = -1.0  # in place of a share: an event happens, but the state within the step is not finite
# s: events are located to this, or to rounding of the time.
TIME_TOLERANCE = 1e-11
MOST_HALVINGS = 200


@kernel
def is_nowhere(theta):
    """Whether an event happens in a step, but the state within the step is not finite."""
    return theta == NOWHERE


@kernel
def start_events(block, y, t, lane):
    """Note on which side of its events a sample starts at time t."""
    for e in range(block.loads.actions.shared.events.shape[1]):
        block.loads.actions.before[e, lane] = event_value(e, block, y, t, lane)


@routine
def find_events(block, stepper, tableau, records, t, h, sample, lane):
    """Record what happens in the step of a lane from t over h; the share of it after which the motion ends, or NEVER.

    NOWHERE if something happens, but states within the step are not finite. Two passes of the same event within one
    step cancel, and are not seen. If a user function fails, nothing of the step is recorded: so those functions are
    called for all states of interest before anything is.
    """
    actions, end = block.loads.actions, NEVER
    for e in range(actions.shared.events.shape[1]):
        if event_occurs(e, block, stepper, t + h, lane):
            if not is_finite_within(block, stepper, tableau, h, lane):
                return NOWHERE
            ends, asks = actions.shared.events[EVENT_TERMINAL, e] == 1, actions.shared.events[EVENT_ROW, e] < 0
            if ends or asks:
                theta = locate_event(e, block, stepper, tableau, t, h, lane)
                end = min(end, theta) if ends else end
    if actions.failures[lane] != CALLS_ALLOWED:
        return NEVER
    for e in range(actions.shared.events.shape[1]):
        if event_occurs(e, block, stepper, t + h, lane):
            theta = locate_event(e, block, stepper, tableau, t, h, lane)
            slot = records.counts[sample, e]
            if theta <= end:
                records.counts[sample, e] = slot + 1
                if slot < records.times.shape[2]:
                    state_within(block, stepper, tableau, theta, h, lane)
                    records.times[sample, e, slot] = t + theta * h
                    for j in range(stepper.y.shape[0]):
                        records.states[sample, e, slot, j] = stepper.change[j, lane]
    for e in range(actions.shared.events.shape[1]):
        actions.before[e, lane] = event_value(e, block, stepper.y_new, t + h, lane)
    return end


@kernel
def event_occurs(e, block, stepper, t_new, lane):
    """Whether event e has changed its sign, in the direction that counts, by the end of the step."""
    actions = block.loads.actions
    before, after = actions.before[e, lane], event_value(e, block, stepper.y_new, t_new, lane)
    rises, falls = before < 0.0 and after >= 0.0, before > 0.0 and after <= 0.0
    direction = actions.shared.events[EVENT_DIRECTION, e]
    return (rises and direction >= 0) or (falls and direction <= 0)


@kernel
def event_value(e, block, y, t, lane):
    """What changes its sign at event e."""
    actions, events = block.loads.actions, block.loads.actions.shared.events
    row, at = events[EVENT_ROW, e], events[EVENT_NUMBERS, e]
    if row >= 0:
        return float(y[row, lane]) - float(actions.numbers[at, lane])
    if actions.failures[lane] != CALLS_ALLOWED:
        return math.nan
    nq, n, memory = block.q.shape[0], block.qd.shape[0], actions.call
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
def state_within(block, stepper, tableau, theta, h, lane):
    """The state after a share theta of the step, by the continuous extension, into `stepper.change`."""
    y, y_new, length, share = stepper.y, stepper.y_new, constant_like(stepper.y, h), constant_like(stepper.y, theta)
    for j in range(y.shape[0]):
        stepper.change[j, lane] = interpolate(tableau, y, y_new, length, stepper.rates, share, j, lane)
    normalize_positions(block.model, stepper.change, lane)


@kernel
def is_finite_within(block, stepper, tableau, h, lane):
    """Whether the continuous extension of a step is finite, of which both ends are."""
    state_within(block, stepper, tableau, 0.5, h, lane)
    return zero_if_finite(stepper.change, lane) == constant_like(stepper.change, 0.0)


@kernel
def locate_event(e, block, stepper, tableau, t, h, lane):
    """The share of the step after which event e happens: false position (Illinois), and halving where that lags."""
    low, high = 0.0, 1.0
    f_low, f_high = block.loads.actions.before[e, lane], event_value(e, block, stepper.y_new, t + h, lane)
    enough = max(TIME_TOLERANCE, 4.0 * 2.2e-16 * abs(t + h)) / h
    side = 0
    for attempt in range(MOST_HALVINGS):
        if high - low <= enough or f_high == 0.0:
            break
        theta = high - f_high * (high - low) / (f_high - f_low)
        if attempt % 4 == 3 or not (low < theta < high):
            theta = 0.5 * (low + high)
        state_within(block, stepper, tableau, theta, h, lane)
        f = event_value(e, block, stepper.change, t + theta * h, lane)
        if (f < 0.0) == (f_low < 0.0) and f != 0.0:
            low, f_low = theta, f
            f_high = 0.5 * f_high if side == -1 else f_high
            side = -1
        else:
            high, f_high = theta, f
            f_low = 0.5 * f_low if side == 1 else f_low
            side = 1
    return high if math.isfinite(high) else NEVER
