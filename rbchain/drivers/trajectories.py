"""Drivers of whole trajectories: a batch of chains from their initial states to the last saved time."""

import math
from typing import NamedTuple

import numpy as np

from ..core.forces.signals import COEFFICIENTS
from ..core.integration.acting import allow_calls, evaluate, has_failed_call, take_loads
from ..core.integration.adaptive_steps import roll_adaptively
from ..core.integration.fixed_steps import roll_evenly
from ..core.integration.rollout import (
    CLOCK_ROWS,
    CONTROL_ROWS,
    TALLY_ROWS,
    TIME,
    Batch,
    Records,
    Stepper,
    Tolerances,
    take_parameters,
)
from ..core.integration.tableaus import Tableau
from ..core.simd.jit import choose, driver, is_given, kernel
from ..core.simd.lane_memory import CACHE_LINE, aligned_start, all_lanes, lane_width, window
from ..core.simd.lanes import like
from ..core.tree.layout import JOINT_ROWS, MOTOR, SETTINGS, Acting, Block, Loads, flat_model
from .blocks import block_for, choose_parameters, memory_size, water_of


class Actions(NamedTuple):
    """What acts on a batch of chains over time, as `core.layout.Acting` has it, and where its events are recorded.

    `controller` holds the parameters of the controllers' model, with as many axes as those of the mechanism itself, and
    `variation` what differs from chain to chain in it, or None.
    """

    signals: np.ndarray
    drives: np.ndarray
    wrenches: np.ndarray
    events: np.ndarray
    settings: np.ndarray
    tables: np.ndarray
    given: np.ndarray
    most_coefficients: int
    integrals: int
    records: Records
    controller: np.ndarray
    variation: object


class Outcome(NamedTuple):
    """How each sample ended, as `core.rollout.Batch` has it, and the flag by which the caller stops all lanes."""

    tally: np.ndarray
    end_times: np.ndarray
    end_states: np.ndarray
    interrupt: np.ndarray


def trajectory_memory(topology, state_size, stages, actions, width, dtype):
    """Memory for one call of a driver here: of the block, the integrator, its clocks and counts, and what acts."""
    return (
        np.empty(memory_size(topology, 0, width, dtype.itemsize), dtype),
        np.empty(((3 + stages) * state_size + CONTROL_ROWS) * width + CACHE_LINE // dtype.itemsize, dtype),
        np.zeros((CLOCK_ROWS, width)),
        np.zeros((TALLY_ROWS, width), np.int64),
        None if actions is None else acting_memory(topology, state_size, actions, width, dtype),
    )


def acting_memory(topology, state_size, actions, width, dtype):
    """Memory for what acts in one call: numbers in lanes; signs of events; arguments of a user's function; integers."""
    n, numbers, signals = topology.shape[1], actions.given.shape[1], actions.signals.shape[1]
    rows = numbers + 1 + signals * (3 + COEFFICIENTS + actions.most_coefficients) + JOINT_ROWS * n
    own = actions.controller.shape[0] * actions.controller.shape[1]
    return (
        np.zeros((rows + own) * width + CACHE_LINE // dtype.itemsize, dtype),
        np.zeros((actions.events.shape[1], width)),
        np.zeros(state_size + numbers + n + 1),
        np.zeros(2 * width + SETTINGS, np.int64),
        np.zeros((1 + state_size - actions.integrals, width)),
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


@kernel
def lay_out_acting(memory, actions, topology):
    """What acts on the chains of one block of lanes, in its memory."""
    numbers, before, call, integers, failed_calls = memory
    n = topology.shape[1]
    signals, given, coefficients = actions.signals, actions.given, actions.most_coefficients
    width, count, start = before.shape[1], signals.shape[1], aligned_start(numbers)
    time = start + given.shape[1] * width
    values = time + width
    pieces = values + 3 * count * width
    joints = pieces + (COEFFICIENTS + coefficients) * count * width
    of_lanes = window(numbers, joints + JOINT_ROWS * n * width, (*actions.controller.shape[:2], width))
    controller = choose_parameters(actions.controller, of_lanes)
    for j in range(SETTINGS):
        integers[2 * width + j] = actions.settings[j]
    return Acting(
        signals,
        actions.drives,
        actions.wrenches,
        actions.events,
        integers[2 * width :],
        actions.tables,
        given,
        integers[:width],
        window(numbers, start, (given.shape[1], width)),
        window(numbers, time, (1, width)),
        window(numbers, values, (count, 3, width)),
        window(numbers, pieces, (count, COEFFICIENTS + coefficients, width)),
        window(numbers, joints, (JOINT_ROWS, n, width)),
        before,
        call,
        integers[width : 2 * width],
        failed_calls,
        flat_model(topology, controller, water_of(topology, controller)),
        actions.variation,
    )


# What acts on the chains over time, or None.
acting_for = choose(
    lambda memory, actions, topology: is_given(actions), lay_out_acting, lambda memory, actions, topology: None
)

# Where events are recorded, or None.
records_for = choose(is_given, lambda actions: actions.records, lambda actions: None)


@kernel
def batch_of(start, variation, times, saved, outcome, records):
    """The samples of a call, and where their results go."""
    tally, end_times, end_states, interrupt = outcome
    return Batch(*start[:3], variation, times, *saved, tally, end_times, end_states, interrupt, records)


@kernel
def memory_for(memory, topology, parameters, start, actions, stages):
    """A block of lanes with what acts on its chains, and the integrator's memory for it."""
    numbers, stepper_numbers, clock, counts, acting_numbers = memory
    block = block_for(numbers, topology, parameters, None, 0, start[0])
    loads = Loads(block.loads.tau, block.loads.wrenches, acting_for(acting_numbers, actions, topology))
    acted_on = Block(block.model, block.work, block.q, block.qd, block.qdd, loads, block.rows)
    return acted_on, stepper_for(stepper_numbers, clock, counts, start[3], stages)


@driver
def fixed_steps(
    memory, topology, parameters, variation, method, step, start, actions, times, saved, outcome, first, last
):
    """`method` in equal steps no longer than `step`; start = (q0, qd0, tau, rows of the state).

    saved = (q, qd, integrals) flat; `outcome` an Outcome; `actions` an Actions, or None.
    """
    A, c, error, dense, order = method
    tableau = Tableau(A, c, error, dense, order)
    block, stepper = memory_for(memory, topology, parameters, start, actions, c.shape[0])
    batch = batch_of(start, variation, times, saved, outcome, records_for(actions))
    for block_start in range(first, last, lane_width(start[0])):
        if outcome.interrupt[0] != 0:
            break
        span = (block_start, min(block_start + lane_width(start[0]), last))
        roll_evenly(block, stepper, tableau, batch, step, span, all_lanes(start[0]))


@driver
def adaptive_steps(
    memory, topology, parameters, variation, method, tolerances, start, actions, times, saved, outcome, first, last
):
    """`method` at each chain's own step, tolerances = (rtol, atol, max_steps); the rest as for `fixed_steps`."""
    A, c, error, dense, order = method
    rtol, atol, max_steps = tolerances
    tableau = Tableau(A, c, error, dense, order)
    block, stepper = memory_for(memory, topology, parameters, start, actions, c.shape[0])
    batch = batch_of(start, variation, times, saved, outcome, records_for(actions))
    span, k = (first, last), all_lanes(start[0])
    roll_adaptively(block, stepper, tableau, batch, Tolerances(rtol, atol, max_steps), span, k)


@driver
def motor_forces(memory, topology, parameters, variation, states, tau, actions, times, found, first, last):
    """What the motors give, and the accelerations, found (chains times, 2 n), at saved states of a trajectory.

    states = (q, qd, integrals), and `first` and `last`, count the times of each chain one after the other.
    """
    q, qd, integrals = states
    nq, n, m, width = q.shape[1], topology.shape[1], times.shape[0], lane_width(q)
    start = (q, qd, tau, nq + n + integrals.shape[1])
    block, stepper = memory_for(memory, topology, parameters, start, actions, 1)
    y, rate, joints = stepper.y, stepper.rates[0], block.loads.acting.joints
    for block_start in range(first, last, width):
        for lane in range(width):
            row = min(block_start + lane, last - 1)
            for j in range(nq):
                y[j, lane] = q[row, j]
            for j in range(n):
                y[nq + j, lane] = qd[row, j]
            for j in range(integrals.shape[1]):
                y[nq + n + j, lane] = integrals[row, j]
            take_parameters(block, block.model.parameters, variation, row // m, lane)
            take_loads(block, tau, times[row % m], row // m, lane)
            # neither for a sample that had ended before, nor for a copy
            allow_calls(block, math.isfinite(float(y[0, lane])) and block_start + lane < last, lane)
            stepper.control[TIME, lane] = like(q, times[row % m])
        evaluate(block, y, stepper.control[TIME, all_lanes(q)], rate, all_lanes(q))
        for lane in range(min(width, last - block_start)):
            failed = has_failed_call(block, lane)
            for j in range(n):
                found[block_start + lane, j] = like(q, math.nan) if failed else joints[MOTOR, j, lane]
                found[block_start + lane, n + j] = like(q, math.nan) if failed else rate[nq + j, lane]
