"""The driver of `simulate`, which integrates each state of a batch to the last saved time, and its memory."""

import math
from typing import NamedTuple

import numpy as np

from ..compiling.jit import choose, driver, is_given, kernel, only_if
from ..core.contacts.contact_layout import contacts_in
from ..core.contacts.contact_modes import modes_in
from ..core.control.actuators import recall_lags
from ..core.forces import signal_layout as signal
from ..core.forces.signal_breaks import NODES
from ..core.lanes.lane_memory import aligned_start, all_lanes, lane_width, window
from ..core.lanes.lanes import constant_like
from ..core.linear.linear_memory import linearized_rate_in
from ..core.linear.sampled_sensitivities import sampled_sensitivities_in
from ..core.linear.sensitivities import Sensitivities
from ..core.loops import constraint_layout as closure
from ..core.loops.constraint_hooks import decide_rank
from ..core.loops.constraint_layout import constraints_in
from ..core.methods.adaptive_methods import rates_of_step, record_of_method
from ..core.motion.life import integrate
from ..core.motion.waiting import waits
from ..core.sample import control_layout as controls
from ..core.sample.rate import allow_calls, evaluate, has_failed_call, record_failed_call, set_sample_forces
from ..core.sample.records import Batch, Records, Stepper, carve_stepper
from ..core.sample.work_memory import work_in
from ..core.tree import joint_layout as joint, setting_layout as setting
from ..core.tree.layout import Block, BlockActions, Loads, SharedActions, flat_model, set_sample_parameters
from ..core.tree.sampler_layout import has_samplers, samplers_in
from .blocks import block_in, choose_parameters, copy_parameters, reset_block, water_of


class Actions(NamedTuple):
    """Drives, wrenches and events over time of the samples in a call, and the arrays that record events.

    `settings` (setting.COUNT,) are as in `core.tree.layout.BlockActions`; each block has a copy. `controller` holds the
    parameters of the controllers' model, (n + 1, param.COLUMNS) or (n + 1, param.COLUMNS, 1), as the parameters of the
    mechanism. `max_coefficients` is the largest
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


def has_forces_between_bodies(actions, *_):
    """Whether the actions contain springs or bushings."""
    return is_given(actions, "shared", "springs")


@only_if(has_forces_between_bodies)
@kernel
def if_between_bodies(actions, wrenches):
    """Return `wrenches` (n + 1, 6, lanes), the forces between bodies of one block, or None without such forces."""
    return wrenches


@only_if(lambda numbers, first, width, actions, n: is_given(actions, "shared", "contacts"))
@kernel
def contacts_in_block(numbers, first, width, actions, n):
    """Return the Contacts of a block in the memory of the actions, or None without dry friction, stops and contacts.

    They are in `numbers` (m,) of one block, starting at index `first`.
    """
    return contacts_in(numbers, first, width, actions.shared.contacts, n)


@only_if(lambda memory, b, width, actions: is_given(actions, "modes"))
@kernel
def modes_in_block(memory, b, width, actions):
    """Return the ContactModes of block b in `memory` (blocks, m), or None if forces do not follow from modes."""
    return modes_in(memory[b], 0, width, actions.modes[0])


@only_if(lambda memory, b, n, width, actions: is_given(actions, "shared", "samplers"))
@kernel
def samplers_in_block(memory, b, n, width, actions):
    """Return the SamplerMemory of a block, or None without sampled controllers.

    `memory` are three arrays (blocks, m): numbers in the precision of the states, float64 numbers, and integers.
    """
    return samplers_in((memory[0][b], memory[1][b], memory[2][b]), actions.shared.samplers, n, width)


@only_if(lambda memory, b, actions, tables, n: is_given(actions, "sensitivities"))
@kernel
def sensitivities_in_block(memory, b, actions, tables, n):
    """Return the Sensitivities of block b, or None.

    `memory` are the arrays of `linearized_rate_memory`, and of `sampled_sensitivities_memory`.

    Their LinearizedRate has no scratch memory for differences, which need all rows of the state.
    """
    linear = linearized_rate_in(memory[0][b], memory[1][b], tables, n, 2 * n + actions.integrals)
    columns, width = actions.sensitivities.columns.shape[1], memory[1].shape[2]
    sampled = sampled_sensitivities_in(memory[2], b, actions.shared.samplers, columns, n, width)
    return Sensitivities(actions.sensitivities, linear, sampled)


@kernel
def lay_out_actions(memory, b, actions, topology, tables):
    """Create the BlockActions of block b in the memory of the actions, the arrays of `actions_memory`."""
    numbers, times, call_arguments, integers = memory[0][b], memory[1][b], memory[2][b], memory[3][b]
    failed_calls, mode_numbers, of_sensitivities, of_samplers = memory[4][b], memory[5], memory[6], memory[7]
    n, shared, coefficients = topology.shape[1], actions.shared, actions.max_coefficients
    width, count, start = times.shape[1], shared.signals.shape[1], aligned_start(numbers)
    time = start + shared.numbers.shape[1] * width
    values = time + width
    pieces = values + 3 * count * width
    joints = pieces + (signal.PIECE_COEFFICIENTS + coefficients) * count * width
    controllers = joints + joint.ROWS * n * width
    copies = window(numbers, controllers, (*actions.controller.shape[:2], width))
    controller = choose_parameters(actions.controller, copies)
    between_bodies = window(numbers, controllers + copies.size, (n + 1, 6, width))
    for j in range(setting.COUNT):
        integers[j] = actions.settings[j]
    events, lanes = times.shape[0] - len(NODES), integers[setting.COUNT :]
    return BlockActions(
        shared=shared,
        settings=integers[: setting.COUNT],
        sample=lanes[:width],
        numbers=window(numbers, start, (shared.numbers.shape[1], width)),
        time=window(numbers, time, (1, width)),
        values=window(numbers, values, (count, 3, width)),
        pieces=window(numbers, pieces, (count, signal.PIECE_COEFFICIENTS + coefficients, width)),
        windows=window(lanes, 2 * width, (signal.WINDOW_ROWS, count, width)),
        differences=times[events:],
        joints=window(numbers, joints, (joint.ROWS, n, width)),
        event_values=times[:events],
        call_arguments=call_arguments,
        failures=lanes[width : 2 * width],
        failed_calls=failed_calls,
        model=flat_model(topology, controller, water_of(topology, controller)),
        between_bodies=if_between_bodies(actions, between_bodies),
        contacts=contacts_in_block(numbers, controllers + copies.size + between_bodies.size, width, actions, n),
        modes=modes_in_block(mode_numbers, b, width, actions),
        sensitivities=sensitivities_in_block(of_sensitivities, b, actions, tables, n),
        sampled=samplers_in_block(of_samplers, b, n, width, actions),
    )


# The BlockActions of a block, or None without actions.
actions_in_block = choose(
    lambda memory, b, actions, topology, tables: is_given(actions),
    lay_out_actions,
    lambda memory, b, actions, topology, tables: None,
)


@only_if(is_given)
@kernel
def records_for(actions):
    """Return the arrays that record events, a Records, or None without actions."""
    return actions.records


@only_if(lambda tables, rows, n: is_given(tables))
@kernel
def constraints_in_block(tables, rows, n):
    """Return the Constraints of a block in its `rows` (m, lanes), or None for an open chain."""
    return constraints_in(rows, 0, tables, n)


rows_of_constraints = choose(is_given, lambda tables: tables.sizes[closure.MEMORY_SIZE], lambda tables: 0)


@kernel
def memory_for(memory, b, topology, tables, parameters, q, actions, shape):
    """Create block b with its actions and constraints, and the Stepper without the record of a method.

    `memory` is a TrajectoryMemory, `tables` a ConstraintTables or None. `actions` is an Actions or None, and `shape` is
    (rows of the state, rates of a step). A block whose samples wait continues with the numbers in memory.
    """
    is_shared = memory.block.shape[0] < memory.clock.shape[0]
    block = block_in(memory.block[0 if is_shared else b], topology, parameters, None, rows_of_constraints(tables), q)
    actions_of_block = actions_in_block(memory.actions, b, actions, topology, tables)
    constraints = constraints_in_block(tables, block.rows, topology.shape[1])
    loads = Loads(block.loads.tau, block.loads.wrenches, actions_of_block)
    block_with_actions = Block(
        model=block.model,
        work=block.work,
        q=block.q,
        qd=block.qd,
        qdd=block.qdd,
        loads=loads,
        rows=block.rows,
        constraints=constraints,
    )
    numbers, clock, tally, (size, rates) = memory.stepper[b], memory.clock[b], memory.tally[b], shape
    work = work_in(memory.work, b, topology.shape[1], size)
    stepper = carve_stepper(numbers, aligned_start(numbers), clock.shape[1], clock, tally, None, work, size, rates)
    resumes = waits(stepper)
    if is_shared or not resumes:
        reset_block(block, parameters, all_lanes(q))
    if not resumes:
        reset_controller_model(block_with_actions, actions)
    return block_with_actions, stepper


@only_if(lambda block, actions: is_given(actions))
@kernel
def reset_controller_model(block, actions):
    """Copy the parameters of the controllers' model to the lanes of a block."""
    copy_parameters(actions.controller, block.loads.actions.model.parameters)


@kernel
def block_of_method(memory, b, topology, tables, parameters, q, actions, of_steps):
    """Create block b and its Stepper with the record of the method. `of_steps` are its tableau and the state's rows.

    The other arguments are as in `memory_for`.
    """
    tableau, size = of_steps
    shape = size, rates_of_step(tableau)
    block, stepper = memory_for(memory, b, topology, tables, parameters, q, actions, shape)
    of_method = record_of_method(tableau, memory.method, b, tables, block.q.shape[0], size)
    y, y_new, change, rates, control, clock, tally, _, spare, work = stepper
    return block, Stepper(
        y=y,
        y_new=y_new,
        change=change,
        rates=rates,
        control=control,
        clock=clock,
        tally=tally,
        linear=of_method,
        spare=spare,
        work=work,
    )


@driver
def integrate_batch(
    memory, topology, parameters, variation, tables, settings, start, actions, times, saved, outcome, first, last
):
    """Integrate the samples [first, last), until they have ended or wait for functions in Python (`motion.life`).

    `memory` is from `trajectory_memory`, `tables` a ConstraintTables or None, `settings` are the settings of a method
    (`methods.settings`), `start` is a Start, `actions` an Actions or None, `times` (m,) are the saved times, s. Writes
    `saved`, a Saved, and `outcome`, an Outcome. The other arguments are as in `dynamics`.
    """
    batch = Batch(start, variation, times, saved, outcome, records_for(actions))
    k, blocks = all_lanes(start.q), memory.clock.shape[0]
    of_steps = settings.tableau, outcome.end_states.shape[1]
    count = max(1, last - first) if blocks == 1 else lane_width(start.q)  # samples of a block
    for first_of_block in range(first, last, count):
        if outcome.interrupt[0] != 0:
            break
        b = 0 if blocks == 1 else first_of_block // count
        block, stepper = block_of_method(memory, b, topology, tables, parameters, start.q, actions, of_steps)
        integrate(block, stepper, settings, batch, (first_of_block, min(first_of_block + count, last)), k)


@only_if(has_samplers)
@kernel
def recall_outputs(block, outputs, row, lane):
    """Copy saved outputs of sampled controllers, row `row` of `outputs` (rows, channels), to a lane."""
    held = block.loads.actions.sampled.held
    for c in range(held.shape[0]):
        held[c, lane] = outputs[row, c]
    recall_lags(block.loads.actions, lane)


@kernel
def load_row(block, stepper, states, row, of_samples, place, lane):
    """Copy a row of `states`, which are q, qd and the integrals, to a lane, with the numbers of its sample.

    `of_samples` are the variation and the joint forces of all samples, N m and N. `place` is the sample of the row and
    its time, s.
    """
    q, qd, integrals = states
    variation, tau = of_samples
    sample, t = place
    y, nq, n = stepper.y, q.shape[1], qd.shape[1]
    for j in range(nq):
        y[j, lane] = q[row, j]
    for j in range(n):
        y[nq + j, lane] = qd[row, j]
    for j in range(integrals.shape[1]):
        y[nq + n + j, lane] = integrals[row, j]
    set_sample_parameters(block, block.model.parameters, variation, sample, sample % lane_width(q), lane)
    set_sample_forces(block, tau, t, sample, lane)
    stepper.control[controls.TIME, lane] = constant_like(q, t)


@kernel
def allow_calls_of_row(block, y, is_own, lane):
    """Allow calls of user functions for a state that is finite, if no other lane has the same row."""
    is_allowed = math.isfinite(float(y[0, lane])) and is_own
    allow_calls(block, is_allowed, lane)


@driver
def actuator_forces(memory, topology, parameters, variation, tables, states, tau, actions, times, result, first, last):
    """Compute actuator forces and accelerations at states of trajectories, at the times (samples, times), s.

    `states` is a Saved with arrays (samples * times, ...), `tau` (samples, n) the constant joint forces, N m and N.
    `result` (samples * times, 2 n) holds the actuator forces, N m and N, then the accelerations, rad/s^2 and m/s^2.
    They are NaN where a user function fails, which the records of the actions show. `first` and `last` count rows of
    these arrays, in which the times of one sample follow each other.
    """
    q, qd, integrals, _, outputs, _ = states
    nq, n, m, width = q.shape[1], topology.shape[1], times.shape[1], lane_width(q)
    shape = nq + n + integrals.shape[1], 1
    block, stepper = memory_for(memory, 0, topology, tables, parameters, q, actions, shape)
    y, rate, joints = stepper.y, stepper.rates[0], block.loads.actions.joints
    for lane in range(width):
        decide_rank(block, constant_like(y, 1.0), lane)
    for block_start in range(first, last, width):
        for lane in range(width):
            row = min(block_start + lane, last - 1)
            sample, t = row // m, times[row // m, row % m]
            load_row(block, stepper, (q, qd, integrals), row, (variation, tau), (sample, t), lane)
            recall_outputs(block, outputs, row, lane)
            allow_calls_of_row(block, y, block_start + lane < last, lane)
        evaluate(block, y, stepper.control[controls.TIME, all_lanes(q)], rate, all_lanes(q))
        for lane in range(min(width, last - block_start)):
            failed, row = has_failed_call(block, lane), block_start + lane
            if failed:
                record_failed_call(block, actions.records, row // m, lane)
            for j in range(n):
                result[row, j] = constant_like(q, math.nan) if failed else joints[joint.ACTUATOR_FORCE, j, lane]
                result[row, n + j] = constant_like(q, math.nan) if failed else rate[nq + j, lane]
