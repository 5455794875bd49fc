"""Drivers of whole trajectories: a batch of chains from their initial states to the last saved time."""

import numpy as np

from ..core.jit import driver, setup
from ..core.lanes import all_lanes, lane_width
from ..core.rollout import (
    CLOCK_ROWS,
    CONTROL_ROWS,
    TALLY_ROWS,
    Batch,
    Stepper,
    Tolerances,
    roll_adaptively,
    roll_evenly,
)
from ..core.tableaus import Tableau
from .blocks import aligned, block_for


@setup
def stepper_for(n, stages, sample):
    """The integrator's memory for one block of lanes of chains with n joints."""
    width = lane_width(sample)
    states = aligned((3 + stages) * 2 * n * width, sample).reshape(3 + stages, 2 * n, width)
    return Stepper(
        states[0],
        states[1],
        states[2],
        states[3:],
        aligned(CONTROL_ROWS * width, sample).reshape(CONTROL_ROWS, width),
        np.zeros((CLOCK_ROWS, width)),
        np.zeros((TALLY_ROWS, width), np.int64),
    )


@driver
def fixed_steps(topology, parameters, variation, method, step, start, times, saved, tally, first, last):
    """`method` in equal steps no longer than `step`; start = (q0, qd0, tau), saved = (q, qd) flat."""
    q0, qd0, tau = start
    A, b, c, error, dense, order = method
    tableau = Tableau(A, b, c, error, dense, order)
    block = block_for(topology, parameters, None, 0, q0)
    stepper = stepper_for(topology.shape[1], b.shape[0], q0)
    batch = Batch(q0, qd0, tau, variation, times, saved[0], saved[1], tally)
    for block_start in range(first, last, lane_width(q0)):
        span = (block_start, min(block_start + lane_width(q0), last))
        roll_evenly(block, stepper, tableau, batch, step, span, all_lanes(q0))


@driver
def adaptive_steps(topology, parameters, variation, method, tolerances, start, times, saved, tally, first, last):
    """`method` at each chain's own step, tolerances = (rtol, atol, max_steps); the rest as for `fixed_steps`."""
    q0, qd0, tau = start
    A, b, c, error, dense, order = method
    rtol, atol, max_steps = tolerances
    tableau = Tableau(A, b, c, error, dense, order)
    block = block_for(topology, parameters, None, 0, q0)
    stepper = stepper_for(topology.shape[1], b.shape[0], q0)
    batch = Batch(q0, qd0, tau, variation, times, saved[0], saved[1], tally)
    roll_adaptively(block, stepper, tableau, batch, Tolerances(rtol, atol, max_steps), (first, last), all_lanes(q0))
