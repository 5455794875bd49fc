"""Samples that wait for functions in Python, which compute outputs of controllers for the whole batch.

Python calls such a function for all samples at once. So each block integrates its samples until they have ended or
wait at an instant of a function, and continues when Python has computed the outputs. The steps are the same as without
waiting. Without such functions, nothing here is compiled.
"""

from ...compiling.jit import kernel, only_if, routine
from ..control.sampler_clocks import is_measurement_due, is_reached
from ..lanes.lanes import constant_like
from ..sample import clock_layout as clocks, control_layout as controls, tally_layout as tallies
from ..sample.rate import allow_calls
from ..sample.status import DONE, NOT_STARTED, RUNNING, WAITING
from ..tree import sampler_layout as sampler
from ..tree.layout import set_sample_parameters
from ..tree.sampler_layout import has_batch_calls
from .measurements import is_due, measure_lanes


@kernel
def count_lanes(stepper, status):
    """Return the number of lanes with a status."""
    count = 0
    for lane in range(stepper.tally.shape[1]):
        count += stepper.tally[tallies.STATUS, lane] == status
    return count


@kernel
def waits(stepper):
    """Whether samples of a block wait."""
    return count_lanes(stepper, WAITING) > 0


@only_if(has_batch_calls, False)
@kernel
def is_resumed(block, stepper):
    """Whether the samples of a block wait. Without functions in Python, they never do."""
    return waits(stepper)


@only_if(has_batch_calls, False)
@kernel
def has_ended(block, stepper):
    """Whether all samples of a block have ended, so that a call only concerns other blocks."""
    return count_lanes(stepper, NOT_STARTED) == 0 and not waits(stepper)


@routine
def ask_for_outputs(block, stepper, with_done_samples, span, k):
    """Measure the states for the functions that are due at the time of the lanes, and write them for Python.

    Lanes that repeat another sample do not write. Returns how many outputs are needed.
    """
    actions, sampled = block.loads.actions, block.loads.actions.sampled
    groups, asked, (first, last) = actions.shared.samplers.groups, 0, span
    for lane in range(stepper.y.shape[1]):
        stepper.control[controls.TIME, lane] = constant_like(stepper.y, stepper.clock[clocks.T, lane])
    for g in range(groups.shape[1]):
        column, due = groups[sampler.GROUP_BATCH_CALL, g] - 1, 0
        if column < 0:
            continue
        for lane in range(stepper.y.shape[1]):
            status, t = stepper.tally[tallies.STATUS, lane], stepper.clock[clocks.T, lane]
            sampled.flags[sampler.FLAG_IS_DUE, lane] = constant_like(sampled.flags, 0.0)
            proceeds = status == RUNNING or (with_done_samples and status == DONE)
            if proceeds and is_reached(sampled.stops[g, lane], t) and is_measurement_due(actions, g, t, lane):
                sampled.flags[sampler.FLAG_IS_DUE, lane] = constant_like(sampled.flags, 1.0)
                due += 1
        if due == 0:
            continue
        measure_lanes(block, stepper, g, k)
        for lane in range(stepper.y.shape[1]):
            if is_due(block, lane) and first + lane < last:
                asked += 1
                write_measurement(block, g, column, lane)
    return asked


@kernel
def write_measurement(block, g, column, lane):
    """Write the measured state of a lane and its instant for Python, in BatchCalls; `column` is the function's."""
    actions, sampled = block.loads.actions, block.loads.actions.sampled
    calls, sample = actions.shared.samplers.batch_calls, actions.sample[lane]
    calls.due[sample, column] = 1 + sampled.counts[sampler.COUNT_NEXT, g, lane]
    for j in range(calls.measured.shape[2]):
        calls.measured[column, sample, j] = sampled.measured[j, lane]


@only_if(has_batch_calls, False)
@kernel
def wait_for_outputs(block, stepper, span, k):
    """Make the lanes that need outputs wait. Their state and their rate do not change. Returns whether a lane waits."""
    if ask_for_outputs(block, stepper, True, span, k) == 0:
        return False
    due = block.loads.actions.shared.samplers.batch_calls.due
    for lane in range(stepper.y.shape[1]):
        sample, status = stepper.tally[tallies.SAMPLE, lane], stepper.tally[tallies.STATUS, lane]
        needs_outputs = False
        for column in range(due.shape[1]):
            needs_outputs = needs_outputs or due[sample, column] > 0
        if needs_outputs and status in (RUNNING, DONE):
            stepper.tally[tallies.STATUS, lane] = WAITING
            stepper.control[controls.H, lane] = constant_like(stepper.control, 0.0)
            stepper.control[controls.ACCEPTED, lane] = constant_like(stepper.control, 0.0)
            allow_calls(block, False, lane)
    return waits(stepper)


@only_if(has_batch_calls, False)
@kernel
def block_waits_at(block, stepper, t, span, k):
    """Make all running lanes wait if one of them needs outputs at time t, which all have reached."""
    for lane in range(stepper.y.shape[1]):
        stepper.clock[clocks.T, lane] = t
    if ask_for_outputs(block, stepper, False, span, k) == 0:
        return False
    for lane in range(stepper.y.shape[1]):
        if stepper.tally[tallies.STATUS, lane] == RUNNING:
            stepper.tally[tallies.STATUS, lane] = WAITING
    return True


@kernel
def restore_parameters(block, stepper, batch):
    """Copy the parameters of the samples to the lanes again, because the blocks may share their memory."""
    for lane in range(stepper.y.shape[1]):
        sample = stepper.tally[tallies.SAMPLE, lane]
        set_sample_parameters(block, block.model.parameters, batch.variation, sample, sample % stepper.y.shape[1], lane)


@kernel
def resume_lanes(block, stepper, batch):
    """Let the waiting lanes continue. The controllers then set their outputs and their next step."""
    restore_parameters(block, stepper, batch)
    end = batch.times[batch.times.shape[0] - 1]
    for lane in range(stepper.y.shape[1]):
        if stepper.tally[tallies.STATUS, lane] == WAITING:
            stepper.tally[tallies.STATUS, lane] = DONE if stepper.clock[clocks.T, lane] >= end else RUNNING
            allow_calls(block, True, lane)


@kernel
def resume_block(block, stepper, batch):
    """Let the waiting lanes of a block with fixed steps continue."""
    restore_parameters(block, stepper, batch)
    for lane in range(stepper.y.shape[1]):
        if stepper.tally[tallies.STATUS, lane] == WAITING:
            stepper.tally[tallies.STATUS, lane] = RUNNING
