"""Drivers that integrate a batch until functions in Python have to compute the outputs of sampled controllers.

Each call continues where the last one has ended. Each block of samples has its own memory, which is an entry of the
arrays of `memory_of_blocks`.
"""

import numpy as np

from ..compiling.jit import choose, driver, is_given, kernel
from ..core.lanes.lane_memory import all_lanes, lane_width
from ..core.loops.constraint_layout import MEMORY_SIZE
from ..core.methods.adaptive_methods import rates_of_step
from ..core.motion.paused_steps import ENDED, NEW, Progress, continue_adaptive_steps, continue_fixed_steps
from ..core.sample.rate import set_controller_parameters
from ..core.sample.records import TALLY_SAMPLE, Batch
from ..core.tree.layout import set_sample_parameters
from .trajectories import memory_for, records_for, rosenbrock_memory_for


def memory_of_blocks(memory, blocks):
    """Allocate the arrays of `memory` for each block: (blocks, ...) instead of (...). None and tuples remain."""
    if memory is None:
        return None
    if isinstance(memory, tuple):
        return tuple(memory_of_blocks(part, blocks) for part in memory)
    return np.zeros((blocks, *memory.shape), memory.dtype)


def new_progress(tables, blocks, width, dtype):
    """Return the Progress of blocks that have not started. `tables` is a ConstraintTables or None."""
    rows = 0 if tables is None else int(tables.sizes[MEMORY_SIZE])
    return Progress(
        np.full(blocks, NEW), np.zeros(blocks), np.ones(blocks, np.int64), np.zeros((blocks, rows, width), dtype)
    )


# The memory of block b in arrays (blocks, ...), or None.
_part = choose(lambda memory, b: is_given(memory), lambda memory, b: memory[b], lambda memory, b: None)
_work = choose(lambda work, b: is_given(work), lambda work, b: (work[0][b], work[1][b]), lambda work, b: None)


@kernel
def memory_of_block(memory, b):
    """Return the memory of block b as `trajectory_memory` does, from the memory of all blocks."""
    numbers, stepper, clock, tally, actions, work = memory
    of_actions, event_values, call_arguments, integers, failed_calls, modes, _, samplers = actions
    return (
        numbers[b],
        stepper[b],
        clock[b],
        tally[b],
        (
            of_actions[b],
            event_values[b],
            call_arguments[b],
            integers[b],
            failed_calls[b],
            _part(modes, b),
            None,
            (samplers[0][b], samplers[1][b], samplers[2][b]),
        ),
        _work(work, b),
    )


@kernel
def recall_block(block, stepper, batch, progress, b):
    """Restore the constraints and varied parameters that `memory_for` resets, for a block of samples that wait."""
    width = stepper.y.shape[1]
    for row in range(progress.rows.shape[1]):
        for lane in range(width):
            block.rows[row, lane] = progress.rows[b, row, lane]
    for lane in range(width):
        sample = stepper.tally[TALLY_SAMPLE, lane]
        set_sample_parameters(block, block.model.parameters, batch.variation, sample, sample % width, lane)
        set_controller_parameters(block, sample, lane)


@kernel
def keep_rows(block, progress, b):
    """Keep the rows of constraints of a block whose samples wait."""
    for row in range(progress.rows.shape[1]):
        for lane in range(progress.rows.shape[2]):
            progress.rows[b, row, lane] = block.rows[row, lane]


@driver
def paused_fixed_steps(
    memory,
    topology,
    parameters,
    variation,
    tables,
    settings,
    start,
    actions,
    times,
    saved,
    outcome,
    progress,
    first,
    last,
):
    """Integrate the samples [first, last) with a fixed step until they have ended or wait for Python.

    `memory` is from `memory_of_blocks`, `progress` a Progress. The other arguments are as for `fixed_steps`.
    """
    width = lane_width(start.q)
    tableau, shape = settings.tableau, (outcome.end_states.shape[1], rates_of_step(settings.tableau))
    batch = Batch(start, variation, times, saved, outcome, records_for(actions))
    for block_start in range(first, last, width):
        b = block_start // width
        if outcome.interrupt[0] != 0 or progress.stages[b] == ENDED:
            continue
        block, stepper = memory_for(memory_of_block(memory, b), topology, tables, parameters, start.q, actions, shape)
        if progress.stages[b] != NEW:
            recall_block(block, stepper, batch, progress, b)
        span = (block_start, min(block_start + width, last))
        progress.stages[b] = continue_fixed_steps(
            block, stepper, tableau, batch, settings.step, span, progress, b, all_lanes(start.q)
        )
        keep_rows(block, progress, b)


@driver
def paused_adaptive_steps(
    memory,
    topology,
    parameters,
    variation,
    tables,
    settings,
    start,
    actions,
    times,
    saved,
    outcome,
    progress,
    first,
    last,
):
    """Integrate the samples [first, last), each with its own adaptive step, until they have ended or wait for Python.

    The arguments are as for `paused_fixed_steps`, with the settings of `adaptive_steps`.
    """
    width = lane_width(start.q)
    tableau, shape = settings.tableau, (outcome.end_states.shape[1], rates_of_step(settings.tableau))
    batch = Batch(start, variation, times, saved, outcome, records_for(actions))
    for block_start in range(first, last, width):
        b = block_start // width
        if outcome.interrupt[0] != 0 or progress.stages[b] == ENDED:
            continue
        block, stepper = memory_for(memory_of_block(memory, b), topology, tables, parameters, start.q, actions, shape)
        if progress.stages[b] != NEW:
            recall_block(block, stepper, batch, progress, b)
        span = (block_start, min(block_start + width, last))
        progress.stages[b] = continue_adaptive_steps(
            block, stepper, tableau, batch, settings.tolerances, span, progress.stages[b], all_lanes(start.q)
        )
        keep_rows(block, progress, b)


@driver
def paused_rosenbrock_steps(
    memory,
    topology,
    parameters,
    variation,
    tables,
    settings,
    start,
    actions,
    times,
    saved,
    outcome,
    progress,
    first,
    last,
):
    """Integrate the samples [first, last) by a Rosenbrock method until they have ended or wait for Python.

    The arguments are as for `paused_adaptive_steps`.
    """
    width = lane_width(start.q)
    tableau, shape = settings.tableau, (outcome.end_states.shape[1], rates_of_step(settings.tableau))
    batch = Batch(start, variation, times, saved, outcome, records_for(actions))
    for block_start in range(first, last, width):
        b = block_start // width
        if outcome.interrupt[0] != 0 or progress.stages[b] == ENDED:
            continue
        memory_of_this = memory_of_block(memory[0], b), memory[1][b], memory[2][b]
        block, stepper = rosenbrock_memory_for(memory_of_this, topology, tables, parameters, start.q, actions, shape)
        if progress.stages[b] != NEW:
            recall_block(block, stepper, batch, progress, b)
        span = (block_start, min(block_start + width, last))
        progress.stages[b] = continue_adaptive_steps(
            block, stepper, tableau, batch, settings.tolerances, span, progress.stages[b], all_lanes(start.q)
        )
        keep_rows(block, progress, b)
