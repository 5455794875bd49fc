"""The length of the next step of a lane: it ends at stops, and resolves the signals that act on the lane.

Stops are the end of the motion, the breaks of signals, and the times at which sampled controllers measure or outputs
begin to act. A step that a stop shortens does not predict the steps after it. Therefore the step after the stop uses
the length that its error would have allowed without the stop.
"""

import math

from ...compiling.jit import kernel, only_if
from ..contacts.contact_rates import has_contact_modes
from ..control.sampler_clocks import limit_to_stops
from ..forces.signal_breaks import next_break, pass_breaks, resolved_length, shortest_period
from ..lanes.lanes import constant_like
from ..methods.adaptive_methods import predicts
from ..sample import clock_layout as clocks, control_layout as controls, tally_layout as tallies
from ..tree.layout import has_actions

NEAR_STOP = 10.0  # if fewer steps remain to a stop, they have equal lengths
# The first step is at most this fraction of the shortest period of the sines, so that its stages see them. Later steps
# are at most ten times longer than the one before.
FIRST_PART_OF_PERIOD = 0.25
# With contacts and dry friction, all steps are at most this fraction of a period: a body that sticks has no error.
PART_OF_PERIOD = 0.125


@only_if(has_actions, otherwise=lambda block, until, lane: until)
@kernel
def limit_to_breaks(block, until, lane):
    """Return the time of the first break of a signal, s, if it is before another time, `until`; else `until`."""
    return next_break(block.loads.actions, until, lane)


@kernel
def next_stop(block, batch, lane):
    """Return the latest end of the next step of a lane, s."""
    end = batch.times[batch.times.shape[0] - 1]
    return limit_to_breaks(block, limit_to_stops(block, end, lane), lane)


@only_if(has_actions)
@kernel
def pass_breaks_of_lane(block, tally, t, lane):
    """Record which breaks of signals a lane has passed at the end of a step, for `restart_after_breaks`.

    `tally` (tallies.ROWS, lanes) is `Stepper.tally`.
    """
    record_breaks(block, tally, t, lane)


@kernel
def record_breaks(block, tally, t, lane):
    """Record the class of the breaks that a lane has passed at time t in `tally` (tallies.ROWS, lanes)."""
    tally[tallies.BREAK, lane] = pass_breaks(block.loads.actions, t, lane)


@only_if(has_actions, otherwise=lambda block, tolerances, t, length, lane: length)
@kernel
def length_for_signals(block, tolerances, t, length, lane):
    """Return the length of a step from t in which no signal has a pulse that the step may miss, s."""
    return resolved_length(block.loads.actions, t, length, tolerances.of_signals, lane)


@only_if(has_actions, math.inf)
@kernel
def shortest_period_of_lane(block, lane):
    """Return the shortest period of the sines that act on a lane, s."""
    return shortest_period(block.loads.actions, lane)


@only_if(has_contact_modes, otherwise=lambda block, tolerances, lane: tolerances.max_step)
@kernel
def longest_step(block, tolerances, lane):
    """Return the length of the longest step of a lane, s."""
    return min(tolerances.max_step, PART_OF_PERIOD * shortest_period(block.loads.actions, lane))


@kernel
def longest_first_step(block, stepper, batch, tolerances, lane):
    """Return the length that the first step of a lane must not exceed, s."""
    remaining = next_stop(block, batch, lane) - stepper.clock[clocks.T, lane]
    return min(remaining, tolerances.max_step, FIRST_PART_OF_PERIOD * shortest_period_of_lane(block, lane))


@only_if(predicts, otherwise=lambda tableau, step, remaining: step)
@kernel
def step_before_stop(tableau, step, remaining):
    """Return the length of the next step, s, at most `step`, if all steps to a stop that is near are of equal length.

    `remaining` is the time to the stop, s.
    """
    return remaining / math.ceil(remaining / step) if remaining < NEAR_STOP * step else step


@kernel
def set_step(block, stepper, tableau, batch, tolerances, step, lane):
    """Set the next step length, adjusted so that a step ends at the next stop, such as the end of the motion.

    A step that would end less than 1 % of its length before that time is extended to it, but not beyond the longest
    step.
    """
    clock, longest = stepper.clock, longest_step(block, tolerances, lane)
    extension, step = (1.01, step) if step < longest else (1.0 + 1e-12, longest)
    clock[clocks.STOP, lane] = next_stop(block, batch, lane)
    remaining = clock[clocks.STOP, lane] - clock[clocks.T, lane]
    length = length_for_signals(block, tolerances, clock[clocks.T, lane], min(step, remaining), lane)
    is_last = extension * length >= remaining
    length = remaining if is_last else step_before_stop(tableau, length, remaining)
    clock[clocks.STEP, lane] = length
    clock[clocks.PROPOSED, lane] = step if length < step else 0.0
    stepper.control[controls.H, lane] = constant_like(stepper.control, length)


@kernel
def recall_step(stepper, step, lane):
    """Return the length of the next step; that before a stop shortened the last one, if it is longer."""
    proposed = stepper.clock[clocks.PROPOSED, lane]
    stepper.clock[clocks.PROPOSED, lane] = 0.0
    return max(step, proposed)
