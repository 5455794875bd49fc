"""Drivers of `simulate`, which integrate each state of a batch to the last saved time, and their memory."""

import math
from typing import NamedTuple

import numpy as np

from ..compiling.jit import choose, driver, is_given, kernel
from ..core.contacts.contact_layout import contacts_in, contacts_size
from ..core.contacts.contact_modes import modes_in, modes_size
from ..core.control.actuators import recall_lags
from ..core.forces.signal_breaks import NODES
from ..core.forces.signals import PIECE_COEFFICIENTS, WINDOW_ROWS
from ..core.lanes.lane_memory import CACHE_LINE, aligned_start, all_lanes, lane_width, window
from ..core.lanes.lanes import constant_like
from ..core.linear.linearised_rate import carve_linearised_rate, linearised_rate_size
from ..core.linear.sensitivities import Sensitivities
from ..core.loops.constraint_hooks import decide_rank
from ..core.loops.constraint_layout import (
    MEMORY_SIZE,
    constraint_derivatives_in,
    constraint_derivatives_size,
    constraints_in,
)
from ..core.methods.adaptive_methods import rates_of_step
from ..core.motion.adaptive_steps import integrate_adaptive_steps
from ..core.motion.event_values import event_rows
from ..core.motion.fixed_steps import integrate_fixed_steps
from ..core.motion.moreau import integrate_moreau_steps
from ..core.sample.rate import allow_calls, evaluate, has_failed_call, set_sample_forces
from ..core.sample.records import (
    CLOCK_ROWS,
    CONTROL_TIME,
    TALLY_ROWS,
    Batch,
    Records,
    Stepper,
    carve_stepper,
    stepper_size,
)
from ..core.sample.work_memory import work_in, work_memory
from ..core.tree.layout import (
    JOINT_ACTUATOR_FORCE,
    JOINT_ROWS,
    SETTING_COUNT,
    SETTING_DERIVATIVES,
    Block,
    BlockActions,
    Loads,
    SharedActions,
    flat_model,
    set_sample_parameters,
)
from ..core.tree.sampler_layout import SIZE_OUTPUTS, SIZE_STATES, has_samplers, sampler_sizes, samplers_in
from .blocks import block_for, choose_parameters, memory_size, water_of


class Actions(NamedTuple):
    """Drives, wrenches and events over time of the samples in a call, and the arrays that record events.

    `settings` are as in `core.tree.layout.BlockActions`; each block has a copy. `controller` holds the parameters of
    the controllers' model, with as many axes as the parameters of the mechanism. `max_coefficients` is the largest
    number of coefficients of a piece of a signal, `integrals` the number of integrals of control errors in the state.
    `modes` (1,) is the number of rows of dry friction, stops and contacts if the method computes their forces from
    modes, else None. `sensitivities` is a SensitivitySettings, or None.
    """

    shared: SharedActions
    settings: np.ndarray
    controller: np.ndarray
    records: Records
    max_coefficients: int
    integrals: int
    modes: object
    sensitivities: object


def trajectory_memory(topology, tables, state_size, stages, actions, width, dtype, has_work=False):
    """Allocate the memory for one call of a driver in this module: of the block, the integrator, the actions, the work.

    `has_work` says whether the work of forces is computed.
    """
    rows, constraints = (0, 0) if tables is None else (int(tables.sizes[MEMORY_SIZE]), tables.table.shape[1])
    return (
        np.empty(memory_size(topology, rows, width, dtype.itemsize, constraints), dtype),
        np.empty(stepper_size(state_size, stages) * width + CACHE_LINE // dtype.itemsize, dtype),
        np.zeros((CLOCK_ROWS, width)),
        np.zeros((TALLY_ROWS, width), np.int64),
        None if actions is None else actions_memory(topology, tables, state_size, actions, width, dtype),
        work_memory(topology.shape[1], state_size, width, dtype) if has_work else None,
    )


def rosenbrock_memory(topology, tables, state_size, stages, actions, width, dtype, has_work=False):
    """Allocate the memory for one call of `rosenbrock_steps`: as for the other drivers, and of a LinearisedRate."""
    n, integrals = topology.shape[1], 0 if actions is None else actions.integrals
    return (
        trajectory_memory(topology, tables, state_size, stages, actions, width, dtype, has_work),
        *linearised_rate_memory(n, tables, integrals, state_size, width, dtype),
    )


def linearised_rate_memory(n, tables, integrals, state_size, width, dtype):
    """Allocate the memory that `linearised_rate_in` divides among the fields of a LinearisedRate."""
    rows = linearised_rate_size(n, state_size - n - integrals, integrals)
    rows += 0 if tables is None else constraint_derivatives_size(tables.envelope.shape[1], n)
    return np.zeros(rows * width + CACHE_LINE // dtype.itemsize, dtype), np.zeros((n, width), np.int64)


def actions_memory(topology, tables, state_size, actions, width, dtype):
    """Allocate the memory that `lay_out_actions` divides among the fields of BlockActions.

    Returns, in this order: numbers in lanes, values of event functions and differences of signals, arguments of a user
    function, integers, arguments of failed calls. Then follow the memory of the modes of contacts, of sensitivities and
    of sampled controllers; each is None if it is not used.
    """
    n, numbers, signals = topology.shape[1], actions.shared.numbers.shape[1], actions.shared.signals.shape[1]
    rows = numbers + 1 + signals * (3 + PIECE_COEFFICIENTS + actions.max_coefficients) + JOINT_ROWS * n
    controller = actions.controller.shape[0] * actions.controller.shape[1]
    contacts = 0 if actions.shared.contacts is None else contacts_size(actions.shared.contacts, n)
    results = 2 * n * n if actions.settings[SETTING_DERIVATIVES] != 0 else n
    if actions.shared.samplers is not None:
        sizes = actions.shared.samplers.sizes
        results = max(results, int(sizes[SIZE_OUTPUTS] + sizes[SIZE_STATES]))
    return (
        np.zeros((rows + controller + 6 * (n + 1) + contacts) * width + CACHE_LINE // dtype.itemsize, dtype),
        np.zeros((event_rows(actions.shared.events.shape[1]) + len(NODES), width)),
        np.zeros(state_size + numbers + results + 1),
        np.zeros((2 + WINDOW_ROWS * signals) * width + SETTING_COUNT, np.int64),
        np.zeros((actions.records.failed_calls.shape[1], width)),
        None if actions.modes is None else np.zeros(modes_size(int(actions.modes[0])) * width, dtype),
        None
        if actions.sensitivities is None
        else linearised_rate_memory(n, tables, actions.integrals, 2 * n + actions.integrals, width, dtype),
        None
        if actions.shared.samplers is None
        else sampler_memory(actions.shared.samplers, n, state_size, width, dtype),
    )


def sampler_memory(samplers, n, state_size, width, dtype):
    """Allocate the memory of sampled controllers: numbers, times in float64, and integers."""
    numbers, times, counts = sampler_sizes(samplers, n, state_size, width)
    return np.zeros(numbers, dtype), np.zeros(times), np.zeros(counts, np.int64)


@kernel
def stepper_for(numbers, clock, tally, work, size, stages):
    """Create the Stepper of one block in the memory of the integrator; `size` is the number of rows of the state.

    `work` is a WorkMemory or None.
    """
    return carve_stepper(numbers, aligned_start(numbers), clock.shape[1], clock, tally, None, work, size, stages)


def has_forces_between_bodies(actions, *_):
    """Whether the actions contain springs or bushings."""
    return is_given(actions, "shared", "springs")


# The array of the forces between bodies of one block, or None without such forces.
if_between_bodies = choose(
    has_forces_between_bodies, lambda actions, wrenches: wrenches, lambda actions, wrenches: None
)


# The Contacts of a block in the memory of the actions, or None without dry friction, stops and contacts.
contacts_in_block = choose(
    lambda numbers, first, width, actions, n: is_given(actions, "shared", "contacts"),
    lambda numbers, first, width, actions, n: contacts_in(numbers, first, width, actions.shared.contacts, n),
    lambda numbers, first, width, actions, n: None,
)


# The ContactModes of a block, or None if the method computes no forces from modes.
modes_in_block = choose(
    lambda memory, width, actions: is_given(actions, "modes"),
    lambda memory, width, actions: modes_in(memory, 0, width, actions.modes[0]),
    lambda memory, width, actions: None,
)


# The SamplerMemory of a block, or None without sampled controllers.
samplers_in_block = choose(
    lambda memory, n, width, actions: is_given(actions, "shared", "samplers"),
    lambda memory, n, width, actions: samplers_in(memory, actions.shared.samplers, n, width),
    lambda memory, n, width, actions: None,
)


# The ConstraintDerivatives of a block, or None for an open chain.
constraint_derivatives_in_block = choose(
    lambda numbers, start, tables, n, width: is_given(tables),
    lambda numbers, start, tables, n, width: constraint_derivatives_in(
        numbers, start, width, tables.envelope.shape[1], n
    ),
    lambda numbers, start, tables, n, width: None,
)


@kernel
def linearised_rate_in(numbers, pivots, tables, nq, size):
    """Create the LinearisedRate of a block with nq positions and `size` rows of the state."""
    n, width = pivots.shape
    integrals, start = size - nq - n, aligned_start(numbers)
    of_constraints = constraint_derivatives_in_block(
        numbers, start + linearised_rate_size(n, nq, integrals) * width, tables, n, width
    )
    return carve_linearised_rate(numbers, start, width, pivots, of_constraints, n, nq, integrals)


# The Sensitivities of a block, or None. Their LinearisedRate has no scratch memory for differences, which need all rows
# of the state.
sensitivities_in_block = choose(
    lambda memory, actions, tables, n: is_given(actions, "sensitivities"),
    lambda memory, actions, tables, n: Sensitivities(
        actions.sensitivities, linearised_rate_in(memory[0], memory[1], tables, n, 2 * n + actions.integrals)
    ),
    lambda memory, actions, tables, n: None,
)


@kernel
def lay_out_actions(memory, actions, topology, tables):
    """Create the BlockActions of one block in the memory of the actions."""
    numbers, times, call_arguments, integers, failed_calls, mode_numbers, of_sensitivities, of_samplers = memory
    n, shared, coefficients = topology.shape[1], actions.shared, actions.max_coefficients
    width, count, start = times.shape[1], shared.signals.shape[1], aligned_start(numbers)
    time = start + shared.numbers.shape[1] * width
    values = time + width
    pieces = values + 3 * count * width
    joints = pieces + (PIECE_COEFFICIENTS + coefficients) * count * width
    controllers = joints + JOINT_ROWS * n * width
    copies = window(numbers, controllers, (*actions.controller.shape[:2], width))
    controller = choose_parameters(actions.controller, copies)
    between_bodies = window(numbers, controllers + copies.size, (n + 1, 6, width))
    for j in range(SETTING_COUNT):
        integers[j] = actions.settings[j]
    events, lanes = times.shape[0] - len(NODES), integers[SETTING_COUNT:]
    return BlockActions(
        shared,
        integers[:SETTING_COUNT],
        lanes[:width],
        window(numbers, start, (shared.numbers.shape[1], width)),
        window(numbers, time, (1, width)),
        window(numbers, values, (count, 3, width)),
        window(numbers, pieces, (count, PIECE_COEFFICIENTS + coefficients, width)),
        window(lanes, 2 * width, (WINDOW_ROWS, count, width)),
        times[events:],
        window(numbers, joints, (JOINT_ROWS, n, width)),
        times[:events],
        call_arguments,
        lanes[width : 2 * width],
        failed_calls,
        flat_model(topology, controller, water_of(topology, controller)),
        if_between_bodies(actions, between_bodies),
        contacts_in_block(numbers, controllers + copies.size + between_bodies.size, width, actions, n),
        modes_in_block(mode_numbers, width, actions),
        sensitivities_in_block(of_sensitivities, actions, tables, n),
        samplers_in_block(of_samplers, n, width, actions),
    )


# The BlockActions of a block, or None without actions.
actions_in_block = choose(
    lambda memory, actions, topology, tables: is_given(actions),
    lay_out_actions,
    lambda memory, actions, topology, tables: None,
)

# The arrays that record events, or None without actions.
records_for = choose(is_given, lambda actions: actions.records, lambda actions: None)


# The Constraints of a block, or None for an open chain, and their number of rows.
constraints_in_block = choose(
    lambda tables, rows, n: is_given(tables),
    lambda tables, rows, n: constraints_in(rows, 0, tables, n),
    lambda tables, rows, n: None,
)
rows_of_constraints = choose(is_given, lambda tables: tables.sizes[MEMORY_SIZE], lambda tables: 0)


@kernel
def memory_for(memory, topology, tables, parameters, q, actions, shape):
    """Create the block with its actions and constraints, and the Stepper.

    `shape` is (rows of the state, stages of the method).
    """
    numbers, stepper_numbers, clock, counts, action_numbers, work_numbers = memory
    block = block_for(numbers, topology, parameters, None, rows_of_constraints(tables), q)
    loads = Loads(block.loads.tau, block.loads.wrenches, actions_in_block(action_numbers, actions, topology, tables))
    constraints = constraints_in_block(tables, block.rows, topology.shape[1])
    block_with_actions = Block(block.model, block.work, block.q, block.qd, block.qdd, loads, block.rows, constraints)
    work = work_in(work_numbers, topology.shape[1], shape[0])
    return block_with_actions, stepper_for(stepper_numbers, clock, counts, work, shape[0], shape[1])


@driver
def fixed_steps(
    memory, topology, parameters, variation, tables, settings, start, actions, times, saved, outcome, first, last
):
    """Integrate the samples [first, last) with a fixed step.

    `tables` is a ConstraintTables or None, `settings` a FixedStepSettings, `start` a Start, `actions` an Actions or
    None, `times` (m,) the saved times, s. Writes `saved`, a Saved, and `outcome`, an Outcome. The other arguments are
    as in `dynamics`.
    """
    tableau, shape = settings.tableau, (outcome.end_states.shape[1], rates_of_step(settings.tableau))
    block, stepper = memory_for(memory, topology, tables, parameters, start.q, actions, shape)
    batch = Batch(start, variation, times, saved, outcome, records_for(actions))
    for block_start in range(first, last, lane_width(start.q)):
        if outcome.interrupt[0] != 0:
            break
        span = (block_start, min(block_start + lane_width(start.q), last))
        integrate_fixed_steps(block, stepper, tableau, batch, settings.step, span, all_lanes(start.q))


@driver
def moreau_steps(
    memory, topology, parameters, variation, tables, settings, start, actions, times, saved, outcome, first, last
):
    """Integrate the samples [first, last) by Moreau's time stepping with a fixed step.

    `settings` is a ContactStepSettings; the other arguments are as for `fixed_steps`.
    """
    shape = outcome.end_states.shape[1], rates_of_step(settings.tableau)
    block, stepper = memory_for(memory, topology, tables, parameters, start.q, actions, shape)
    batch = Batch(start, variation, times, saved, outcome, records_for(actions))
    for block_start in range(first, last, lane_width(start.q)):
        if outcome.interrupt[0] != 0:
            break
        span = (block_start, min(block_start + lane_width(start.q), last))
        integrate_moreau_steps(block, stepper, settings, batch, span, all_lanes(start.q))


@driver
def adaptive_steps(
    memory, topology, parameters, variation, tables, settings, start, actions, times, saved, outcome, first, last
):
    """Integrate the samples [first, last), each with its own adaptive step.

    `settings` is an AdaptiveStepSettings; the other arguments are as for `fixed_steps`.
    """
    tableau, shape = settings.tableau, (outcome.end_states.shape[1], rates_of_step(settings.tableau))
    block, stepper = memory_for(memory, topology, tables, parameters, start.q, actions, shape)
    batch = Batch(start, variation, times, saved, outcome, records_for(actions))
    integrate_adaptive_steps(block, stepper, tableau, batch, settings.tolerances, (first, last), all_lanes(start.q))


@kernel
def rosenbrock_memory_for(memory, topology, tables, parameters, q, actions, shape):
    """Create the block and the Stepper of a Rosenbrock method, as `memory_for` does."""
    common, numbers, pivots = memory
    block, stepper = memory_for(common, topology, tables, parameters, q, actions, shape)
    y, y_new, change, rates, control, clock, tally, _, spare, work = stepper
    linear = linearised_rate_in(numbers, pivots, tables, block.q.shape[0], shape[0])
    return block, Stepper(y, y_new, change, rates, control, clock, tally, linear, spare, work)


@driver
def rosenbrock_steps(
    memory, topology, parameters, variation, tables, settings, start, actions, times, saved, outcome, first, last
):
    """Integrate the samples [first, last) by a Rosenbrock method, each with its own adaptive step.

    `memory` is from `rosenbrock_memory`; the other arguments are as for `adaptive_steps`.
    """
    tableau, shape = settings.tableau, (outcome.end_states.shape[1], rates_of_step(settings.tableau))
    block, stepper = rosenbrock_memory_for(memory, topology, tables, parameters, start.q, actions, shape)
    batch = Batch(start, variation, times, saved, outcome, records_for(actions))
    integrate_adaptive_steps(block, stepper, tableau, batch, settings.tolerances, (first, last), all_lanes(start.q))


@kernel
def copy_outputs(block, outputs, row, lane):
    """Copy saved outputs of sampled controllers (rows, channels) to a lane."""
    held = block.loads.actions.sampled.held
    for c in range(held.shape[0]):
        held[c, lane] = outputs[row, c]
    recall_lags(block.loads.actions, lane)


# Copy saved outputs of sampled controllers to a lane.
recall_outputs = choose(has_samplers, copy_outputs, lambda block, outputs, row, lane: None)


@driver
def actuator_forces(memory, topology, parameters, variation, tables, states, tau, actions, times, result, first, last):
    """Compute actuator forces and accelerations at states of trajectories, at the times (samples, times).

    `states` is a Saved with arrays (samples * times, ...), `tau` the constant joint forces, N m and N. `result`
    (samples * times, 2 n) holds the actuator forces, N m and N, then the accelerations, rad/s^2 and m/s^2. `first` and
    `last` count rows of these arrays, in which the times of one sample follow each other.
    """
    q, qd, integrals, _, outputs, _ = states
    nq, n, m, width = q.shape[1], topology.shape[1], times.shape[1], lane_width(q)
    block, stepper = memory_for(memory, topology, tables, parameters, q, actions, (nq + n + integrals.shape[1], 1))
    y, rate, joints = stepper.y, stepper.rates[0], block.loads.actions.joints
    for lane in range(width):
        decide_rank(block, constant_like(y, 1.0), lane)
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
            set_sample_forces(block, tau, times[row // m, row % m], row // m, lane)
            recall_outputs(block, outputs, row, lane)
            # User functions are not called for samples that have ended, nor for lanes that repeat the last row.
            allow_calls(block, math.isfinite(float(y[0, lane])) and block_start + lane < last, lane)
            stepper.control[CONTROL_TIME, lane] = constant_like(q, times[row // m, row % m])
        evaluate(block, y, stepper.control[CONTROL_TIME, all_lanes(q)], rate, all_lanes(q))
        for lane in range(min(width, last - block_start)):
            failed = has_failed_call(block, lane)
            for j in range(n):
                result[block_start + lane, j] = (
                    constant_like(q, math.nan) if failed else joints[JOINT_ACTUATOR_FORCE, j, lane]
                )
                result[block_start + lane, n + j] = constant_like(q, math.nan) if failed else rate[nq + j, lane]
