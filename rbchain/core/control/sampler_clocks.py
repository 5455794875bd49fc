"""Clocks of sampled controllers: the instants at which they compute outputs, and at which outputs begin to act.

Instant i of a group is at phase + i period. The controllers use the state that was measured one latency before. Their
outputs begin to act one delay after the instant, and remain latched until the next outputs act. Before the first
outputs act, all outputs are zero.
"""

import math

from ...compiling.jit import kernel, only_if
from ..forces import signal_layout as signal
from ..forces.signal_breaks import RELATIVE_ROUND_OFF, is_reached, start_of_piece
from ..forces.signals import piece_at
from ..lanes.lanes import constant_like
from ..tree import sampler_layout as sampler
from ..tree.sampler_layout import actions_have_samplers, has_samplers, has_targets
from . import drive_layout as drive
from .actuators import begin_lags, restart_lags

# A measurement that is due before the start by less than this fraction of the period is due at the start.
START_TOLERANCE = 1e-9
# A number that is rounded to float32 loses at most this fraction.
HALF_UNIT_OF_FLOAT32 = 2.0**-24


@kernel
def delay_and_latency(actions, g, lane):
    """Return the delay and the latency of a group for the sample in a lane, s."""
    shared = actions.shared
    row, column = min(actions.sample[lane], shared.numbers.shape[0] - 1), shared.samplers.groups[sampler.GROUP_DELAY, g]
    return shared.numbers[row, column], shared.numbers[row, column + 1]


@kernel
def instant(actions, g, index):
    """Return the time of an instant of a group, s."""
    clocks = actions.shared.samplers.clocks
    return clocks[sampler.CLOCK_PHASE, g] + index * clocks[sampler.CLOCK_PERIOD, g]


@kernel
def set_time_of_signals(actions, g, lane):
    """Set the time of the signals in a lane to the next instant of a group, s, rounded up.

    With a time before the instant, the output would miss a jump of a signal at the instant for one period. So a piece
    of a table that starts later by round-off starts at the instant.
    """
    t, codes = instant(actions, g, actions.sampled.counts[sampler.COUNT_NEXT, g, lane]), actions.shared.signals
    for s in range(codes.shape[1]):
        if codes[signal.KIND, s] == signal.TABLE:
            piece = piece_at(actions, s, t * (1.0 + RELATIVE_ROUND_OFF), 0, codes[signal.PIECES, s] - 1, lane)
            t = max(t, start_of_piece(actions, s, piece, lane))
    actions.time[0, lane] = constant_like(actions.time, t)
    if float(actions.time[0, lane]) < t:
        actions.time[0, lane] = constant_like(actions.time, t * (1.0 + HALF_UNIT_OF_FLOAT32))


@kernel
def set_next_stop(actions, g, lane):
    """Compute the next time, s, at which a group measures, or at which an output begins to act."""
    sampled, (delay, latency) = actions.sampled, delay_and_latency(actions, g, lane)
    following, acting = sampled.counts[sampler.COUNT_NEXT, g, lane], sampled.counts[sampler.COUNT_ACTING, g, lane]
    stop = instant(actions, g, following) - latency
    if acting < following:
        stop = min(stop, instant(actions, g, acting) + delay)
    sampled.stops[g, lane] = stop


@kernel
def is_measurement_due(actions, g, t, lane):
    """Whether a group measures at time t, s, or before."""
    _, latency = delay_and_latency(actions, g, lane)
    return is_reached(instant(actions, g, actions.sampled.counts[sampler.COUNT_NEXT, g, lane]) - latency, t)


@kernel
def is_output_due(actions, g, t, lane):
    """Whether an output of a group begins to act at time t, s, or before."""
    counts, (delay, _) = actions.sampled.counts, delay_and_latency(actions, g, lane)
    acting = counts[sampler.COUNT_ACTING, g, lane]
    return acting < counts[sampler.COUNT_NEXT, g, lane] and is_reached(instant(actions, g, acting) + delay, t)


@kernel
def hold_due_outputs(actions, g, t, lane):
    """Latch the outputs of a group that are due at time t, s, or before."""
    sampled, channels = actions.sampled, actions.shared.samplers.channels
    while is_output_due(actions, g, t, lane):
        acting = sampled.counts[sampler.COUNT_ACTING, g, lane]
        restart_lags(actions, t, lane)
        for c in range(channels.shape[1]):
            if channels[sampler.CHANNEL_GROUP, c] == g:
                sampled.held[c, lane] = sampled.queue[acting % sampled.queue.shape[0], c, lane]
        sampled.counts[sampler.COUNT_ACTING, g, lane] = acting + 1


@only_if(actions_have_samplers)
@kernel
def begin_samplers(actions, t, lane):
    """Reset the sampled controllers of a lane with a new sample, whose motion starts at time t, s.

    The first instant of a group is the first one with a measurement at or after the start.
    """
    sampled, samplers = actions.sampled, actions.shared.samplers
    for c in range(sampled.held.shape[0]):
        sampled.held[c, lane] = constant_like(sampled.held, 0.0)
        sampled.computed[c, lane] = constant_like(sampled.held, 0.0)
    for i in range(sampled.integrals.shape[0]):
        sampled.integrals[i, lane] = constant_like(sampled.integrals, 0.0)
    row = min(actions.sample[lane], actions.shared.numbers.shape[0] - 1)
    for s in range(sampled.positions.shape[0]):
        sampled.positions[s, lane] = constant_like(sampled.positions, math.nan)
        at = samplers.sensors[sampler.SENSOR_NUMBERS, s]
        sampled.deviations[s, lane] = actions.shared.numbers[row, at + 2]
        sampled.sample_numbers[s, lane] = actions.shared.numbers[row, at + sampler.SENSOR_SAMPLE]
    begin_lags(actions, lane)
    sampled.flags[sampler.FLAG_HAS_CHANGED, lane] = constant_like(sampled.flags, 0.0)
    for g in range(samplers.groups.shape[1]):
        for j in range(samplers.groups[sampler.GROUP_STATE_COUNT, g]):
            value = actions.numbers[samplers.groups[sampler.GROUP_STATE_NUMBERS, g] + j, lane]
            sampled.states[samplers.groups[sampler.GROUP_STATE, g] + j, lane] = value
        _, latency = delay_and_latency(actions, g, lane)
        wait = (t + latency - samplers.clocks[sampler.CLOCK_PHASE, g]) / samplers.clocks[sampler.CLOCK_PERIOD, g]
        tolerance = max(START_TOLERANCE, 2.0 * RELATIVE_ROUND_OFF * abs(wait))
        first = max(0, int(math.ceil(wait - tolerance)))  # noqa: RUF046 (Numba's is a float)
        sampled.counts[sampler.COUNT_NEXT, g, lane] = first
        sampled.counts[sampler.COUNT_ACTING, g, lane] = first
        set_next_stop(actions, g, lane)


@only_if(has_targets)
@kernel
def begin_targets(block, y, lane):
    """Set the targets of positions to the initial positions in y (rows, lanes), until the first outputs act."""
    sampled, samplers = block.loads.actions.sampled, block.loads.actions.shared.samplers
    for d in range(samplers.drives.shape[1]):
        channel = samplers.targets[sampler.TARGET_POSITION, d]
        if channel >= 0:
            position = y[block.model.coordinate[samplers.drives[drive.DOF, d]], lane]
            sampled.held[channel, lane] = position
            sampled.computed[channel, lane] = position


@only_if(has_samplers, otherwise=lambda block, until, lane: until)
@kernel
def limit_to_stops(block, until, lane):
    """Return the first stop of all groups, s, or `until` if this time is earlier."""
    stops, first = block.loads.actions.sampled.stops, until
    for g in range(stops.shape[0]):
        if stops[g, lane] < first * (1.0 - RELATIVE_ROUND_OFF):
            first = stops[g, lane]
    return first


@only_if(has_samplers, otherwise=lambda block, until: until)
@kernel
def limit_to_stops_of_lanes(block, until):
    """Return the first stop of all groups in any lane, s, or `until` if this time is earlier."""
    for lane in range(block.loads.actions.sampled.stops.shape[1]):
        until = limit_to_stops(block, until, lane)
    return until
