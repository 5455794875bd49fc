"""Drivers of whole trajectories: a batch of chains from their initial states to the last saved time."""

import numpy as np

from ..core.adaptive_steps import roll_adaptively
from ..core.fixed_steps import roll_evenly
from ..core.jit import driver, kernel
from ..core.lane_memory import CACHE_LINE, aligned_start, all_lanes, lane_width, window
from ..core.rollout import (
    CLOCK_ROWS,
    CONTROL_ROWS,
    TALLY_ROWS,
    Batch,
    Stepper,
    Tolerances,
)
from ..core.tableaus import Tableau
from .blocks import block_for, memory_size


def trajectory_memory(topology, state_size, stages, width, dtype):
    """Memory for one call of a driver here: of the block of lanes, and of the integrator (states, clocks, counts)."""
    return (
        np.empty(memory_size(topology, 0, width, dtype.itemsize), dtype),
        np.empty(((3 + stages) * state_size + CONTROL_ROWS) * width + CACHE_LINE // dtype.itemsize, dtype),
        np.zeros((CLOCK_ROWS, width)),
        np.zeros((TALLY_ROWS, width), np.int64),
    )


@kernel
def stepper_for(numbers, clock, tally, size, stages):
    """Lay out the integrator's memory for one block of lanes of chains with states of this size."""
    width, start = clock.shape[1], aligned_start(numbers)
    state = size * width
    return Stepper(
        window(numbers, start, (size, width)),
        window(numbers, start + state, (size, width)),
        window(numbers, start + 2 * state, (size, width)),
        window(numbers, start + 3 * state, (stages, size, width)),
        window(numbers, start + (3 + stages) * state, (CONTROL_ROWS, width)),
        clock,
        tally,
    )


@driver
def fixed_steps(memory, topology, parameters, variation, method, step, start, times, saved, tally, first, last):
    """`method` in equal steps no longer than `step`; start = (q0, qd0, tau), saved = (q, qd) flat."""
    q0, qd0, tau = start
    A, b, c, error, dense, order = method
    tableau = Tableau(A, b, c, error, dense, order)
    numbers, stepper_numbers, clock, counts = memory
    block = block_for(numbers, topology, parameters, None, 0, q0)
    stepper = stepper_for(stepper_numbers, clock, counts, block.q.shape[0] + topology.shape[1], b.shape[0])
    batch = Batch(q0, qd0, tau, variation, times, saved[0], saved[1], tally)
    for block_start in range(first, last, lane_width(q0)):
        span = (block_start, min(block_start + lane_width(q0), last))
        roll_evenly(block, stepper, tableau, batch, step, span, all_lanes(q0))


@driver
def adaptive_steps(
    memory, topology, parameters, variation, method, tolerances, start, times, saved, tally, first, last
):
    """`method` at each chain's own step, tolerances = (rtol, atol, max_steps); the rest as for `fixed_steps`."""
    q0, qd0, tau = start
    A, b, c, error, dense, order = method
    rtol, atol, max_steps = tolerances
    tableau = Tableau(A, b, c, error, dense, order)
    numbers, stepper_numbers, clock, counts = memory
    block = block_for(numbers, topology, parameters, None, 0, q0)
    stepper = stepper_for(stepper_numbers, clock, counts, block.q.shape[0] + topology.shape[1], b.shape[0])
    batch = Batch(q0, qd0, tau, variation, times, saved[0], saved[1], tally)
    roll_adaptively(block, stepper, tableau, batch, Tolerances(rtol, atol, max_steps), (first, last), all_lanes(q0))
