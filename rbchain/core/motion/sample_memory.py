"""What the motion of a sample depends on besides its positions, velocities and parameters, between two calls.

A call writes it at the end of each sample, and a later call continues with it. Each sample has one row of numbers: the
time of its first rate, the other rows of its state, and the state of its sampled controllers.
"""

import math

from ...compiling.jit import kernel, only_if
from ..lanes.lanes import constant_like
from ..sample import clock_layout as clocks
from ..tree import sampler_layout as sampler
from ..tree.sampler_layout import has_samplers

TIME_OF_RATE = 0  # clocks.RATE, s; NaN for a sample that starts anew
FIRST_ROW_OF_STATE = 1


def memory_size(rows, samplers, n):
    """Return the length of the memory of a sample with `rows` more rows of the state and n dofs."""
    size = FIRST_ROW_OF_STATE + rows
    if samplers is None:
        return size
    groups, channels = samplers.clocks.shape[1], samplers.channels.shape[1]
    size += (1 + sampler.COUNT_ROWS) * groups + (2 + int(samplers.sizes[sampler.SIZE_QUEUE])) * channels
    size += samplers.drives.shape[1] + int(samplers.sizes[sampler.SIZE_STATES]) + samplers.sensors.shape[1]
    return size + n + 1


@kernel
def continues(memory, sample):
    """Whether a sample continues with its memory of an earlier call."""
    return memory.shape[0] > 0 and not math.isnan(memory[sample, TIME_OF_RATE])


@kernel
def recall_memory(block, stepper, memory, sample, lane):
    """Copy the memory of a sample to its lane, if it continues."""
    if not continues(memory, sample):
        return
    numbers, y, first = memory[sample], stepper.y, block.q.shape[0] + block.qd.shape[0]
    stepper.clock[clocks.RATE, lane] = numbers[TIME_OF_RATE]
    for j in range(first, y.shape[0]):
        y[j, lane] = constant_like(y, numbers[FIRST_ROW_OF_STATE + j - first])
    exchange_samplers(block, numbers, FIRST_ROW_OF_STATE + y.shape[0] - first, True, lane)


@kernel
def record_memory(block, stepper, memory, sample, lane):
    """Copy the memory of a sample from its lane."""
    numbers, y, first = memory[sample], stepper.y, block.q.shape[0] + block.qd.shape[0]
    numbers[TIME_OF_RATE] = stepper.clock[clocks.RATE, lane]
    for j in range(first, y.shape[0]):
        numbers[FIRST_ROW_OF_STATE + j - first] = y[j, lane]
    exchange_samplers(block, numbers, FIRST_ROW_OF_STATE + y.shape[0] - first, False, lane)


@only_if(has_samplers)
@kernel
def exchange_samplers(block, numbers, at, recalls, lane):
    """Copy the state of the sampled controllers of a lane from numbers[at:] if `recalls`, else to these numbers.

    The other arrays of a SamplerMemory follow from the numbers of the sample, or are computed before they are used.
    """
    sampled = block.loads.actions.sampled
    at = exchange(sampled.stops, numbers, at, recalls, lane)
    for row in range(sampler.COUNT_ROWS):
        for g in range(sampled.counts.shape[1]):
            if recalls:
                sampled.counts[row, g, lane] = int(numbers[at])
            else:
                numbers[at] = sampled.counts[row, g, lane]
            at += 1
    at = exchange(sampled.held, numbers, at, recalls, lane)
    at = exchange(sampled.computed, numbers, at, recalls, lane)
    for slot in range(sampled.queue.shape[0]):
        at = exchange(sampled.queue[slot], numbers, at, recalls, lane)
    at = exchange(sampled.integrals, numbers, at, recalls, lane)
    at = exchange(sampled.states, numbers, at, recalls, lane)
    at = exchange(sampled.positions, numbers, at, recalls, lane)
    at = exchange(sampled.lagged, numbers, at, recalls, lane)
    exchange(sampled.lag_start, numbers, at, recalls, lane)


@kernel
def exchange(rows, numbers, at, recalls, lane):
    """Copy rows (m, lanes) of a lane from numbers[at : at + m], or to these numbers. Returns at + m."""
    for j in range(rows.shape[0]):
        if recalls:
            rows[j, lane] = constant_like(rows, numbers[at + j])
        else:
            numbers[at + j] = rows[j, lane]
    return at + rows.shape[0]
