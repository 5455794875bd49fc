"""Drivers that integrate a batch of samples: lay out their memory, and run each state to the last saved time."""

import math
from typing import NamedTuple

import numpy as np

from ..core.forces.signals import PIECE_COEFFICIENTS
from ..core.integration.action_hooks import allow_calls, evaluate, has_failed_call, set_sample_forces
from ..core.integration.adaptive_steps import integrate_adaptive_steps
from ..core.integration.fixed_steps import integrate_fixed_steps
from ..core.integration.rollout import (
    CLOCK_ROWS,
    CONTROL_ROWS,
    CONTROL_TIME,
    TALLY_ROWS,
    Batch,
    Records,
    Stepper,
)
from ..core.simd.jit import choose, driver, is_given, kernel
from ..core.simd.lane_memory import CACHE_LINE, aligned_start, all_lanes, lane_width, window
from ..core.simd.lanes import constant_like
from ..core.tree.layout import (
    JOINT_ACTUATOR_FORCE,
    JOINT_ROWS,
    SETTING_COUNT,
    Block,
    BlockActions,
    Loads,
    SharedActions,
    flat_model,
    set_sample_parameters,
)
from .blocks import block_for, choose_parameters, memory_size, water_of


class Actions(NamedTuple):
    """What acts over time on the samples of a call, and where its events are recorded.

    `settings` are those of `core.tree.layout.BlockActions`, of which each block has a copy. `controller` holds the
    parameters of the controllers' model, with as many axes as those of the mechanism itself. `most_coefficients` is
    that of the signals' polynomial pieces, `integrals` how many integrals of errors the state has.
    """

    shared: SharedActions
    settings: np.ndarray
    controller: np.ndarray
    records: Records
    most_coefficients: int
    integrals: int


def trajectory_memory(topology, state_size, stages, actions, width, dtype):
    """Memory for one call of a driver here: of the block, the integrator, its clocks and counts, and what acts."""
    return (
        np.empty(memory_size(topology, 0, width, dtype.itemsize), dtype),
        np.empty(((3 + stages) * state_size + CONTROL_ROWS) * width + CACHE_LINE // dtype.itemsize, dtype),
        np.zeros((CLOCK_ROWS, width)),
        np.zeros((TALLY_ROWS, width), np.int64),
        None if actions is None else actions_memory(topology, state_size, actions, width, dtype),
    )


def actions_memory(topology, state_size, actions, width, dtype):
    """Memory for what acts in one call: numbers in lanes; signs of events; arguments of a user's function; integers."""
    n, numbers, signals = topology.shape[1], actions.shared.given.shape[1], actions.shared.signals.shape[1]
    rows = numbers + 1 + signals * (3 + PIECE_COEFFICIENTS + actions.most_coefficients) + JOINT_ROWS * n
    own = actions.controller.shape[0] * actions.controller.shape[1]
    return (
        np.zeros((rows + own) * width + CACHE_LINE // dtype.itemsize, dtype),
        np.zeros((actions.shared.events.shape[1], width)),
        np.zeros(state_size + numbers + n + 1),
        np.zeros(2 * width + SETTING_COUNT, np.int64),
        np.zeros((1 + state_size - actions.integrals, width)),
    )


@kernel
def stepper_for(numbers, clock, tally, size, stages):
    """Lay out the integrator's memory for one block of lanes of samples with states of this size."""
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
def lay_out_actions(memory, actions, topology):
    """What acts on the samples of one block of lanes, in its memory."""
    numbers, before, call, integers, failed_calls = memory
    n, shared, coefficients = topology.shape[1], actions.shared, actions.most_coefficients
    width, count, start = before.shape[1], shared.signals.shape[1], aligned_start(numbers)
    time = start + shared.given.shape[1] * width
    values = time + width
    pieces = values + 3 * count * width
    joints = pieces + (PIECE_COEFFICIENTS + coefficients) * count * width
    of_lanes = window(numbers, joints + JOINT_ROWS * n * width, (*actions.controller.shape[:2], width))
    controller = choose_parameters(actions.controller, of_lanes)
    for j in range(SETTING_COUNT):
        integers[2 * width + j] = actions.settings[j]
    return BlockActions(
        shared,
        integers[2 * width :],
        integers[:width],
        window(numbers, start, (shared.given.shape[1], width)),
        window(numbers, time, (1, width)),
        window(numbers, values, (count, 3, width)),
        window(numbers, pieces, (count, PIECE_COEFFICIENTS + coefficients, width)),
        window(numbers, joints, (JOINT_ROWS, n, width)),
        before,
        call,
        integers[width : 2 * width],
        failed_calls,
        flat_model(topology, controller, water_of(topology, controller)),
    )


# What acts on the samples over time, or None.
actions_in_block = choose(
    lambda memory, actions, topology: is_given(actions), lay_out_actions, lambda memory, actions, topology: None
)

# Where events are recorded, or None.
records_for = choose(is_given, lambda actions: actions.records, lambda actions: None)


@kernel
def memory_for(memory, topology, parameters, q, actions, shape):
    """A block of lanes, with what acts over time, and the integrator's memory; shape = (rows of the state, stages)."""
    numbers, stepper_numbers, clock, counts, action_numbers = memory
    block = block_for(numbers, topology, parameters, None, 0, q)
    loads = Loads(block.loads.tau, block.loads.wrenches, actions_in_block(action_numbers, actions, topology))
    acted_on = Block(block.model, block.work, block.q, block.qd, block.qdd, loads, block.rows)
    return acted_on, stepper_for(stepper_numbers, clock, counts, shape[0], shape[1])


@driver
def fixed_steps(memory, topology, parameters, variation, settings, start, actions, times, saved, outcome, first, last):
    """Integrate in equal steps: `settings` FixedStepSettings, `start` a Start, `saved` a Saved, `outcome` an Outcome.

    `actions` is an Actions, or None.
    """
    tableau, shape = settings.tableau, (outcome.end_states.shape[1], settings.tableau.c.shape[0])
    block, stepper = memory_for(memory, topology, parameters, start.q, actions, shape)
    batch = Batch(start, variation, times, saved, outcome, records_for(actions))
    for block_start in range(first, last, lane_width(start.q)):
        if outcome.interrupt[0] != 0:
            break
        span = (block_start, min(block_start + lane_width(start.q), last))
        integrate_fixed_steps(block, stepper, tableau, batch, settings.step, span, all_lanes(start.q))


@driver
def adaptive_steps(
    memory, topology, parameters, variation, settings, start, actions, times, saved, outcome, first, last
):
    """Integrate each sample at its own steps: `settings` AdaptiveStepSettings; the rest as for `fixed_steps`."""
    tableau, shape = settings.tableau, (outcome.end_states.shape[1], settings.tableau.c.shape[0])
    block, stepper = memory_for(memory, topology, parameters, start.q, actions, shape)
    batch = Batch(start, variation, times, saved, outcome, records_for(actions))
    integrate_adaptive_steps(block, stepper, tableau, batch, settings.tolerances, (first, last), all_lanes(start.q))


@driver
def actuator_forces(memory, topology, parameters, variation, states, tau, actions, times, found, first, last):
    """What the motors give, and the accelerations, found (samples times, 2 n), at saved states of a trajectory.

    `states`, a Saved of arrays (samples times, ...), and `first` and `last` count the times of each sample one after
    the other.
    """
    q, qd, integrals = states
    nq, n, m, width = q.shape[1], topology.shape[1], times.shape[0], lane_width(q)
    block, stepper = memory_for(memory, topology, parameters, q, actions, (nq + n + integrals.shape[1], 1))
    y, rate, joints = stepper.y, stepper.rates[0], block.loads.actions.joints
    for block_start in range(first, last, width):
        for lane in range(width):
            row = min(block_start + lane, last - 1)
            for j in range(nq):
                y[j, lane] = q[row, j]
            for j in range(n):
                y[nq + j, lane] = qd[row, j]
            for j in range(integrals.shape[1]):
                y[nq + n + j, lane] = integrals[row, j]
            set_sample_parameters(block, block.model.parameters, variation, row // m, row // m % width, lane)
            set_sample_forces(block, tau, times[row % m], row // m, lane)
            # neither for a sample that had ended before, nor for a copy
            allow_calls(block, math.isfinite(float(y[0, lane])) and block_start + lane < last, lane)
            stepper.control[CONTROL_TIME, lane] = constant_like(q, times[row % m])
        evaluate(block, y, stepper.control[CONTROL_TIME, all_lanes(q)], rate, all_lanes(q))
        for lane in range(min(width, last - block_start)):
            failed = has_failed_call(block, lane)
            for j in range(n):
                found[block_start + lane, j] = (
                    constant_like(q, math.nan) if failed else joints[JOINT_ACTUATOR_FORCE, j, lane]
                )
                found[block_start + lane, n + j] = constant_like(q, math.nan) if failed else rate[nq + j, lane]
