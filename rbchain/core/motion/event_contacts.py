"""Events of positions and velocities at contacts, in methods that locate changes of modes.

A step ends a little before or after the time of a change of modes, and the next steps project the positions onto closed
gaps. The side of the level on which a joint is there is an error of the method. A joint so close to its level has
reached it, and it leaves the level only when it moves farther away. Impacts do not change the positions. The same holds
for the velocity of a joint that friction stops.
"""

from ...compiling.jit import kernel, only_if
from ..contacts import mode_layout as mode
from ..contacts.contact_modes import closed_gap
from ..contacts.contact_rates import has_contact_modes
from .event_values import EVENT_ROW, distance_row
from .step_inspection import TIME_TOLERANCE

TIMES = 2.0  # the error of the time of a change of modes, as a multiple of its tolerance


@kernel
def observes_position(e, block):
    """Whether event e observes the position of a joint."""
    row = block.loads.actions.shared.events[EVENT_ROW, e]
    return row >= 0 and row < block.q.shape[0]


@kernel
def largest_closed_gap(modes, lane):
    """Return the largest gap, m or rad, up to which rows are closed."""
    largest = 0.0
    for row in range(modes.rows.shape[0]):
        largest = max(largest, float(closed_gap(row, modes, lane)))
    return largest


@only_if(lambda e, block, *_: has_contact_modes(block), otherwise=lambda e, block, f, lane: f)
@kernel
def begin_at_contacts(e, block, f, lane):
    """Store the distance from the level that counts as zero, and return the value of event e at the start of a sample.

    The start counts as a change of modes. The value f and the distance have the unit of the row of the state.
    """
    actions = block.loads.actions
    if not observes_position(e, block):
        return f
    distance = largest_closed_gap(actions.modes, lane)
    actions.event_values[distance_row(e, actions.shared.events.shape[1]), lane] = distance
    return 0.0 if abs(f) <= distance else f


@only_if(lambda e, block, *_: has_contact_modes(block))
@kernel
def update_distance_at_contacts(e, block, stepper, tableau, t, lane):
    """Update the distance from the level that counts as zero, if a step ends with a change of modes at time t.

    It is the largest one so far of the sums of a closed gap and the distance moved in the error of the time, in the
    unit of the row of the state.
    """
    actions = block.loads.actions
    row = actions.shared.events[EVENT_ROW, e]
    if row < 0 or actions.modes.flags[mode.FLAG_RESTARTS, lane] == 0.0:
        return
    at, tolerance = distance_row(e, actions.shared.events.shape[1]), max(TIME_TOLERANCE, 4.0 * 2.2e-16 * abs(t))
    distance = TIMES * tolerance * abs(float(stepper.rates[tableau.c.shape[0] - 1, row, lane]))
    if observes_position(e, block):
        distance += largest_closed_gap(actions.modes, lane)
    actions.event_values[at, lane] = max(actions.event_values[at, lane], distance)


@only_if(
    lambda e, block, *_: has_contact_modes(block),
    otherwise=lambda e, block, before, after, is_start, is_end, lane: after,
)
@kernel
def value_at_contacts(e, block, before, after, is_start, is_end, lane):
    """Return the value of event e at a place of a step, from the values at the place before it and at the place.

    At the start of a step, a position has the value at the end of the last step, and a velocity that after an impact.
    The value is 0 at a change of modes close to the level, and as long as the joint stays there.
    """
    actions = block.loads.actions
    if actions.shared.events[EVENT_ROW, e] < 0:
        return after
    if is_start and observes_position(e, block):
        return before
    changes = is_end and actions.modes.flags[mode.FLAG_RESTARTS, lane] > 0.0
    distance = actions.event_values[distance_row(e, actions.shared.events.shape[1]), lane]
    return 0.0 if (changes or before == 0.0) and abs(after) <= distance else after
