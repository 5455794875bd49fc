"""Steps that stop where a function in Python has to compute outputs, and continue later.

Python calls such a function for all samples of a batch at once. So each block integrates its samples until they wait at
an instant of a function. The steps and the results are the same as in `fixed_steps` and `adaptive_steps`. Each block
keeps its own memory. A lane whose sample has ended takes no other sample, because all samples proceed together.
"""

from typing import NamedTuple

import numpy as np

from ...compiling.jit import kernel, routine
from ..control.sampler_clocks import is_measurement_due, is_reached
from ..lanes.lanes import constant_like
from ..sample.rate import allow_calls
from ..sample.records import CLOCK_T, CONTROL_ACCEPTED, CONTROL_H, CONTROL_TIME, TALLY_SAMPLE, TALLY_STATUS
from ..sample.status import DONE, IDLE, RUNNING, WAITING
from ..tree.sampler_layout import COUNT_NEXT, FLAG_IS_DUE, GROUP_BATCH_CALL
from .adaptive_steps import (
    accept_or_reject_step,
    compute_trial_step,
    end_lane,
    park_lane,
    restart_after_breaks,
    run_controllers_at_stops,
    start_new_lanes,
)
from .contact_events import restart_lane
from .fixed_steps import end_block, integrate_to_stop, run_controllers_of_block, start_block
from .sampled_controllers import is_due, measure_lanes
from .saved_states import accept_steps
from .work import integrate_work

# Stages of a block: not started; waits before the first step; waits later; all its samples have ended.
NEW, WAITS_AT_START, WAITS, ENDED = 0, 1, 2, 3


class Progress(NamedTuple):
    """Progress of the blocks of a batch.

    `stages` (blocks,) are defined above. For fixed steps, `starts` (blocks,) are the times that have been reached, s,
    and `slots` (blocks,) the numbers of the next saved times. `rows` (blocks, rows, lanes) are the rows of constraints.
    """

    stages: np.ndarray
    starts: np.ndarray
    slots: np.ndarray
    rows: np.ndarray


@routine
def ask_for_outputs(block, stepper, with_done_samples, span, k):
    """Measure the states for the functions that are due at the time of the lanes, and write them for Python.

    Lanes without a sample of their own do not write. Returns how many outputs are needed.
    """
    actions, sampled = block.loads.actions, block.loads.actions.sampled
    groups, asked, (first, last) = actions.shared.samplers.groups, 0, span
    for lane in range(stepper.y.shape[1]):
        stepper.control[CONTROL_TIME, lane] = constant_like(stepper.y, stepper.clock[CLOCK_T, lane])
    for g in range(groups.shape[1]):
        column, due = groups[GROUP_BATCH_CALL, g] - 1, 0
        if column < 0:
            continue
        for lane in range(stepper.y.shape[1]):
            status, t = stepper.tally[TALLY_STATUS, lane], stepper.clock[CLOCK_T, lane]
            sampled.flags[FLAG_IS_DUE, lane] = constant_like(sampled.flags, 0.0)
            proceeds = status == RUNNING or (with_done_samples and status == DONE)
            if proceeds and is_reached(sampled.stops[g, lane], t) and is_measurement_due(actions, g, t, lane):
                sampled.flags[FLAG_IS_DUE, lane] = constant_like(sampled.flags, 1.0)
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
    """Write the measured state of a lane and its instant for Python."""
    actions, sampled = block.loads.actions, block.loads.actions.sampled
    calls, sample = actions.shared.samplers.batch_calls, actions.sample[lane]
    calls.due[sample, column] = 1 + sampled.counts[COUNT_NEXT, g, lane]
    for j in range(calls.measured.shape[2]):
        calls.measured[column, sample, j] = sampled.measured[j, lane]


# --- adaptive steps ---------------------------------------------------------------------------------------------------


@routine
def continue_adaptive_steps(block, stepper, tableau, batch, tolerances, span, stage, k):
    """Integrate the samples of a block, span = (first, last), until each has ended or waits. Returns the new stage."""
    if stage == NEW:
        start_lanes(block, stepper, batch, span)
        wait_for_outputs(block, stepper, batch, span, k)
        if count_lanes(stepper, WAITING) > 0:
            return WAITS_AT_START
    if stage == WAITS:
        resume_lanes(block, stepper, batch)
        run_controllers_at_stops(block, stepper, batch, tolerances, k)
        end_and_restart_lanes(block, stepper, tableau, batch, tolerances, k)
    else:
        resume_lanes(block, stepper, batch)
        start_new_lanes(block, stepper, tableau, batch, tolerances, k)
    width = stepper.y.shape[1]
    while count_lanes(stepper, IDLE) + count_lanes(stepper, WAITING) < width and batch.outcome.interrupt[0] == 0:
        compute_trial_step(block, stepper, tableau, tolerances, k)
        for lane in range(width):
            if stepper.tally[TALLY_STATUS, lane] == RUNNING:
                accept_or_reject_step(block, stepper, tableau, batch, tolerances, lane)
        integrate_work(block, stepper, tableau, batch, k)
        accept_steps(block, stepper, tableau, batch, tolerances, k)
        restart_after_breaks(block, stepper, tableau, k)
        wait_for_outputs(block, stepper, batch, span, k)
        run_controllers_at_stops(block, stepper, batch, tolerances, k)
        end_and_restart_lanes(block, stepper, tableau, batch, tolerances, k)
    return WAITS if count_lanes(stepper, WAITING) > 0 else ENDED


@kernel
def start_lanes(block, stepper, batch, span):
    """Start the samples of a block. Lanes without a sample compute with a copy of the last one."""
    start_block(block, stepper, batch, span)
    first, last = span
    for lane in range(stepper.y.shape[1]):
        if first + lane >= last:
            stepper.tally[TALLY_STATUS, lane] = IDLE


@kernel
def count_lanes(stepper, status):
    """Return the number of lanes with a status."""
    count = 0
    for lane in range(stepper.y.shape[1]):
        count += stepper.tally[TALLY_STATUS, lane] == status
    return count


@kernel
def wait_for_outputs(block, stepper, batch, span, k):
    """Let the lanes wait that need the outputs of a function in Python. Their state and their rate do not change."""
    if ask_for_outputs(block, stepper, True, span, k) == 0:
        return
    due = block.loads.actions.shared.samplers.batch_calls.due
    for lane in range(stepper.y.shape[1]):
        sample, status = stepper.tally[TALLY_SAMPLE, lane], stepper.tally[TALLY_STATUS, lane]
        needs_outputs = False
        for column in range(due.shape[1]):
            needs_outputs = needs_outputs or due[sample, column] > 0
        if needs_outputs and status in (RUNNING, DONE):
            stepper.tally[TALLY_STATUS, lane] = WAITING
            stepper.control[CONTROL_H, lane] = constant_like(stepper.control, 0.0)
            stepper.control[CONTROL_ACCEPTED, lane] = constant_like(stepper.control, 0.0)
            allow_calls(block, False, lane)


@kernel
def resume_lanes(block, stepper, batch):
    """Let the lanes continue that wait. `run_controllers_at_stops` then sets their outputs and their next step."""
    end = batch.times[batch.times.shape[0] - 1]
    for lane in range(stepper.y.shape[1]):
        if stepper.tally[TALLY_STATUS, lane] == WAITING:
            stepper.tally[TALLY_STATUS, lane] = DONE if stepper.clock[CLOCK_T, lane] >= end else RUNNING
            allow_calls(block, True, lane)


@kernel
def end_and_restart_lanes(block, stepper, tableau, batch, tolerances, k):
    """Record the samples that have ended, and start the lanes again whose contacts have changed."""
    new_samples = 0
    for lane in range(stepper.y.shape[1]):
        if stepper.tally[TALLY_STATUS, lane] >= DONE:
            end_lane(block, stepper, tableau, batch, lane)
            stepper.control[CONTROL_ACCEPTED, lane] = constant_like(stepper.control, 0.0)
            stepper.tally[TALLY_STATUS, lane] = IDLE
            park_lane(block, stepper, lane)
        elif stepper.tally[TALLY_STATUS, lane] == RUNNING and restart_lane(block, stepper, lane):
            new_samples += 1
    if new_samples > 0:
        start_new_lanes(block, stepper, tableau, batch, tolerances, k)


# --- fixed steps ------------------------------------------------------------------------------------------------------


@routine
def continue_fixed_steps(block, stepper, tableau, batch, step, span, progress, b, k):
    """Integrate the samples of block b, span = (first, last), until they have ended or wait. Returns the new stage."""
    first, last = span
    times, samples, is_resumed = batch.times, min(stepper.y.shape[1], last - first), progress.stages[b] == WAITS
    if not is_resumed:
        start_block(block, stepper, batch, span)
        progress.starts[b], progress.slots[b] = times[0], 1
    running = 0
    for lane in range(samples):
        running += stepper.tally[TALLY_STATUS, lane] == RUNNING
    while running > 0 and batch.outcome.interrupt[0] == 0:
        start, slot = progress.starts[b], progress.slots[b]
        if not is_resumed and needs_outputs_at(block, stepper, start, span, k):
            return WAITS
        is_resumed = False
        if slot == times.shape[0]:
            run_controllers_of_block(block, stepper, batch, start, k)
            break
        place = first, samples, slot
        progress.starts[b], running = integrate_to_stop(block, stepper, tableau, batch, step, place, start, running, k)
        if not progress.starts[b] < times[slot]:
            progress.starts[b], progress.slots[b] = times[slot], slot + 1
    end_block(block, stepper, batch, samples)
    return ENDED


@kernel
def needs_outputs_at(block, stepper, t, span, k):
    """Whether a function in Python has to compute outputs at time t, which all lanes have reached."""
    for lane in range(stepper.y.shape[1]):
        stepper.clock[CLOCK_T, lane] = t
    return ask_for_outputs(block, stepper, False, span, k) > 0
