"""Events: locate and record the times within a step at which a state passes a level or a user function changes sign.

`event_places` lists places of a step between which the value of an event has no extreme, so that it changes its sign
at most once between two of them.
"""

import math

from ...compiling.jit import kernel, only_if, routine
from ..lanes.lanes import constant_like, epsilon
from ..methods.runge_kutta import nan_unless_in_range
from ..sample import clock_layout as clocks, tally_layout as tallies
from ..tree.layout import CALLS_ALLOWED, has_actions
from ..tree.sampler_layout import has_samplers
from .event_contacts import begin_at_contacts, update_distance_at_contacts, value_at_contacts
from .event_places import list_places
from .event_values import (
    EVENT_DIRECTION,
    EVENT_NUMBERS,
    EVENT_ROW,
    EVENT_TERMINAL,
    MAX_OCCURRENCES,
    ROUND_OFF,
    count_row,
    end_row,
    event_value,
    interpolate_state,
    largest_row,
    occurrence_row,
    place_row,
    time_within_step,
    value_within_step,
    without_round_off,
)

# Returned instead of the fraction of a step after which an event ends the motion:
NO_EVENT = 2.0
EVENT_NOT_FINITE = -1.0  # an event occurs, but states within the step are not finite
TIME_TOLERANCE = 1e-11  # s; the error of an event's time, unless the round-off of the time is larger
MAX_ITERATIONS = 200


@kernel
def is_event_not_finite(theta):
    """Whether an event occurs in a step whose interpolated states are not finite."""
    return theta == EVENT_NOT_FINITE


@only_if(has_actions)
@kernel
def begin_events(block, y, t, lane):
    """Store the values of all events at the start of a sample, at time t, and their largest numbers."""
    actions = block.loads.actions
    values, events = actions.event_values, actions.shared.events
    count = events.shape[1]
    for e in range(count):
        f, row = event_value(e, block, y, t, lane), events[EVENT_ROW, e]
        if row >= 0:
            largest = max(abs(float(y[row, lane])), abs(float(actions.numbers[events[EVENT_NUMBERS, e], lane])))
            values[largest_row(e, count), lane] = largest
            f = without_round_off(f, ROUND_OFF, largest, y)
            f = begin_at_contacts(e, block, f, lane)
        values[e, lane] = f


@only_if(has_actions, NO_EVENT)
@routine
def check_events(block, stepper, tableau, records, lane):
    """Record the events in the step of a lane.

    Returns the fraction of the step after which an event ends the motion, NO_EVENT, or EVENT_NOT_FINITE. If a user
    function fails, no event of the step is recorded. All occurrences are therefore located first.
    """
    actions, end = block.loads.actions, NO_EVENT
    values, events = actions.event_values, actions.shared.events
    count = events.shape[1]
    for e in range(count):
        found = find_occurrences(e, block, stepper, tableau, lane)
        if found > 0 and not is_interpolation_finite(block, stepper, tableau, lane):
            return EVENT_NOT_FINITE
        values[count_row(e, count), lane] = found
        if found > 0 and events[EVENT_TERMINAL, e] == 1:
            end = min(end, values[occurrence_row(e, 0, count), lane])
    if actions.failures[lane] != CALLS_ALLOWED:
        return NO_EVENT
    for e in range(count):
        for number in range(int(values[count_row(e, count), lane])):
            theta = values[occurrence_row(e, number, count), lane]
            if theta <= end:
                record_event(e, block, stepper, tableau, records, theta, lane)
        values[e, lane] = values[end_row(e, count), lane]
    return end


@kernel
def record_event(e, block, stepper, tableau, records, theta, lane):
    """Record that event e occurs after the fraction theta of the step of a lane, in Records."""
    sample = stepper.tally[tallies.SAMPLE, lane]
    slot = records.counts[sample, e]
    records.counts[sample, e] = slot + 1
    if slot < records.times.shape[2]:
        interpolate_state(block, stepper, tableau, theta, lane)
        records.times[sample, e, slot] = time_within_step(stepper, theta, lane)
        for j in range(stepper.y.shape[0]):
            records.states[sample, e, slot, j] = stepper.change[j, lane]
        record_held_outputs(block, records.states[sample, e, slot], stepper.y.shape[0], lane)


@only_if(has_samplers)
@kernel
def record_held_outputs(block, numbers, first, lane):
    """Copy the latched outputs of sampled controllers to numbers[first:], if there is place for them."""
    for j in range(first, numbers.shape[0]):
        numbers[j] = block.loads.actions.sampled.held[j - first, lane]


@kernel
def find_occurrences(e, block, stepper, tableau, lane):
    """Locate the occurrences of event e in a step, store their fractions of the step in order, and return their number.

    An event occurs where its value reaches or passes zero between two successive places, in the direction of the event.
    It does not occur where a value leaves zero. `event_contacts` decides this for positions at contacts.
    """
    events, values = block.loads.actions.shared.events, block.loads.actions.event_values
    count, direction, found = events.shape[1], events[EVENT_DIRECTION, e], 0
    places = list_places(e, block, stepper, tableau, lane)
    low, before = 0.0, values[e, lane]
    update_distance_at_contacts(e, block, stepper, tableau, time_within_step(stepper, 1.0, lane), lane)
    for number in range(places):
        high, after = values[place_row(number, count), lane], values[place_row(number, count) + 1, lane]
        after = value_at_contacts(e, block, before, after, number == 0, number == places - 1, lane)
        rises, falls = before < 0.0 and after >= 0.0, before > 0.0 and after <= 0.0
        if (rises and direction >= 0) or (falls and direction <= 0):
            theta = locate_event(e, block, stepper, tableau, (low, high), (before, after), lane)
            if low == high > 0.0 and theta < NO_EVENT:  # an impact, after which the state is past the level
                theta = min(1.0, theta + 2.0 * epsilon(stepper.y))
            if theta < NO_EVENT and found < MAX_OCCURRENCES:
                values[occurrence_row(e, found, count), lane] = theta
                found += 1
        low, before = high, after
    values[end_row(e, count), lane] = before
    return found


@kernel
def is_interpolation_finite(block, stepper, tableau, lane):
    """Whether the continuous extension is finite in the middle of a step; both ends of the step are known to be."""
    interpolate_state(block, stepper, tableau, 0.5, lane)
    return nan_unless_in_range(stepper.change, lane) == constant_like(stepper.change, 0.0)


@kernel
def locate_event(e, block, stepper, tableau, places, values, lane):
    """Compute the fraction of the step after which event e occurs between two places, by regula falsi (Illinois).

    Every fourth iteration is a bisection, because regula falsi converges slowly for some functions. Returns NO_EVENT if
    the fraction is not finite. `places` are two fractions of the step, and `values` the values of event e there.
    """
    (low, high), (f_low, f_high) = places, values
    end, h = time_within_step(stepper, 1.0, lane), stepper.clock[clocks.STEP, lane]
    tolerance = max(TIME_TOLERANCE, 4.0 * 2.2e-16 * abs(end)) / h
    side = 0
    for iteration in range(MAX_ITERATIONS):
        if high - low <= tolerance or f_high == 0.0:
            break
        theta = high - f_high * (high - low) / (f_high - f_low)
        if iteration % 4 == 3 or not (low < theta < high):
            theta = 0.5 * (low + high)
        f = value_within_step(e, block, stepper, tableau, theta, lane)
        if (f < 0.0) == (f_low < 0.0) and f != 0.0:
            low, f_low = theta, f
            f_high = 0.5 * f_high if side == -1 else f_high
            side = -1
        else:
            high, f_high = theta, f
            f_low = 0.5 * f_low if side == 1 else f_low
            side = 1
    return high if math.isfinite(high) else NO_EVENT
