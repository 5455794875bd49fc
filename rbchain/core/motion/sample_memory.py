"""Memory of a sample between two calls: everything on which its motion depends besides state and parameters.

A call writes it at the end of each sample, and a later call continues with it. Each sample has one row of numbers: the
time of its first rate, the other rows of its state, and the state of its sampled controllers with its derivatives.
Methods with adaptive steps also keep the length of the next step and the error of the last one.
"""

import math

import numpy as np

from ...compiling.jit import kernel, only_if
from ..control.actuators import has_actuators, restart_lags
from ..lanes.lanes import constant_like
from ..linear.sampled_sensitivities import has_sampled_sensitivities
from ..sample import clock_layout as clocks
from ..tree import joint_layout as joint, sampler_layout as sampler
from ..tree.layout import sample_entry
from ..tree.sampler_layout import has_samplers

TIME_OF_RATE = 0  # clocks.RATE, s; NaN for a sample that restarts
NEXT_STEP = 1  # clocks.PROPOSED, s
LAST_ERROR = 2  # clocks.PREVIOUS_ERROR
FIRST_ROW_OF_STATE = 3


def memory_size(rows, samplers, n):
    """Return the length of the memory of a sample with n dofs.

    `rows` are the other rows of its state, and the numbers of its `sampled_sensitivities_size`.
    """
    size = FIRST_ROW_OF_STATE + rows
    if samplers is None:
        return size
    groups, channels = samplers.clocks.shape[1], samplers.channels.shape[1]
    size += (1 + sampler.COUNT_ROWS) * groups + (2 + int(samplers.sizes[sampler.SIZE_QUEUE])) * channels
    size += samplers.drives.shape[1] + int(samplers.sizes[sampler.SIZE_STATES]) + samplers.sensors.shape[1]
    return size + 2 * n + 1


def last_outputs(memory, samplers, n):
    """Return the last outputs of sampled controllers from the memory of samples (samples, m), of a model with n dofs.

    Returns the outputs (samples, LAST_OUTPUTS, channels), the latest one last, and the indices of the next instants
    (samples, groups). Outputs of instants before the first one are not defined.
    """
    groups, channels = samplers.clocks.shape[1], samplers.channels.shape[1]
    counts = memory.shape[1] - (memory_size(0, samplers, n) - FIRST_ROW_OF_STATE) + groups
    instants = memory[:, counts : counts + groups].astype(np.int64)
    queue = counts + sampler.COUNT_ROWS * groups + 2 * channels
    slots = int(samplers.sizes[sampler.SIZE_QUEUE])
    outputs = memory[:, queue : queue + slots * channels].reshape(-1, slots, channels)
    back = np.arange(-sampler.LAST_OUTPUTS, 0)[:, None]
    at = (instants[:, None, samplers.channels[sampler.CHANNEL_GROUP]] + back) % slots
    return np.take_along_axis(outputs, at, 1), instants


@kernel
def continues(memory, sample):
    """Whether a sample continues with its row of `memory` (samples, m), which an earlier call has written."""
    return memory.shape[0] > 0 and not math.isnan(memory[sample, TIME_OF_RATE])


@kernel
def recall_memory(block, stepper, start, sample, lane):
    """Copy the memory of a sample to its lane, if it continues. Call it when the lane has the sample's joint forces.

    `start` is a Start, whose `memory` is (samples, m).
    """
    if not continues(start.memory, sample):
        return
    numbers, y, first = start.memory[sample], stepper.y, block.q.shape[0] + block.qd.shape[0]
    stepper.clock[clocks.RATE, lane] = numbers[TIME_OF_RATE]
    stepper.clock[clocks.PROPOSED, lane] = numbers[NEXT_STEP]
    stepper.clock[clocks.PREVIOUS_ERROR, lane] = numbers[LAST_ERROR]
    for j in range(first, y.shape[0]):
        y[j, lane] = constant_like(y, numbers[FIRST_ROW_OF_STATE + j - first])
    at = exchange_sampled_sensitivities(block, numbers, FIRST_ROW_OF_STATE + y.shape[0] - first, True, lane)
    exchange_samplers(block, numbers, at, True, lane)
    restart_lags_of_new_forces(block, stepper.clock[clocks.T, lane], start, sample, lane)


@kernel
def record_memory(block, stepper, memory, sample, lane):
    """Copy the memory of a sample from its lane to its row of `memory` (samples, m)."""
    numbers, y, first = memory[sample], stepper.y, block.q.shape[0] + block.qd.shape[0]
    numbers[TIME_OF_RATE] = stepper.clock[clocks.RATE, lane]
    numbers[NEXT_STEP] = stepper.clock[clocks.PROPOSED, lane]
    numbers[LAST_ERROR] = stepper.clock[clocks.PREVIOUS_ERROR, lane]
    for j in range(first, y.shape[0]):
        numbers[FIRST_ROW_OF_STATE + j - first] = y[j, lane]
    at = exchange_sampled_sensitivities(block, numbers, FIRST_ROW_OF_STATE + y.shape[0] - first, False, lane)
    exchange_samplers(block, numbers, at, False, lane)


@only_if(has_sampled_sensitivities, otherwise=lambda block, numbers, at, recalls, lane: at)
@kernel
def exchange_sampled_sensitivities(block, numbers, at, recalls, lane):
    """Copy the derivatives of sampled controllers of a lane from numbers[at:] if `recalls`, else to these numbers.

    `numbers` (m,) is the memory of one sample. Returns the index of the number after the copied ones.
    """
    sampled = block.loads.actions.sensitivities.sampled
    for column in range(sampled.held.shape[0]):
        at = exchange(sampled.held[column], numbers, at, recalls, lane)
        at = exchange(sampled.computed[column], numbers, at, recalls, lane)
        for slot in range(sampled.queue.shape[1]):
            at = exchange(sampled.queue[column, slot], numbers, at, recalls, lane)
        at = exchange(sampled.integrals[column], numbers, at, recalls, lane)
        at = exchange(sampled.positions[column], numbers, at, recalls, lane)
        at = exchange(sampled.lagged[column], numbers, at, recalls, lane)
    return at


@only_if(has_samplers)
@kernel
def exchange_samplers(block, numbers, at, recalls, lane):
    """Copy the state of the sampled controllers of a lane from numbers[at:] if `recalls`, else to these numbers.

    `numbers` (m,) is the memory of one sample.
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
    at = exchange(sampled.lag_start, numbers, at, recalls, lane)
    if not recalls:
        exchange(block.loads.actions.joints[joint.CONSTANT_FORCE], numbers, at, False, lane)


def has_lags(block, *_):
    """Whether a block, or its Numba type, may have lags."""
    return has_samplers(block) and has_actuators(block)


@only_if(has_lags)
@kernel
def restart_lags_of_new_forces(block, t, start, sample, lane):
    """Restart the lags of a lane at time t, s, if the joint forces differ from those before, which acted until now.

    `start` is a Start; its `tau`, N m and N, are the new forces, and the last n numbers of its `memory` the old ones.
    """
    forces, numbers, n = block.loads.actions.joints[joint.CONSTANT_FORCE], start.memory[sample], block.qd.shape[0]
    has_changed, at = False, numbers.shape[0] - n
    for i in range(n):
        has_changed = has_changed or float(forces[i, lane]) != numbers[at + i]
        forces[i, lane] = constant_like(forces, numbers[at + i])
    if has_changed:
        restart_lags(block.loads.actions, t, lane)
    for i in range(n):
        forces[i, lane] = sample_entry(start.tau, sample, i)


@kernel
def exchange(rows, numbers, at, recalls, lane):
    """Copy rows (m, lanes) of a lane from numbers[at : at + m], or to these numbers. Returns at + m.

    `numbers` is a flat array in float64.
    """
    for j in range(rows.shape[0]):
        if recalls:
            rows[j, lane] = constant_like(rows, numbers[at + j])
        else:
            numbers[at + j] = rows[j, lane]
    return at + rows.shape[0]
