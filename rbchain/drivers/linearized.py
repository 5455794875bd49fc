"""The driver of the linear analysis: derivatives of the equations of motion in the states of a batch."""

import math
from typing import NamedTuple

import numpy as np

from ..compiling.jit import driver, kernel, only_if
from ..core.control import drive_layout as drive
from ..core.control.controller_derivatives import computes_some_torques, is_commanded, store_responses_of_controllers
from ..core.control.drive_forces import CONTINUOUS_FORCES
from ..core.control.drive_slopes import share_of_drive, share_of_forces
from ..core.lanes.lane_memory import all_lanes, lane_width
from ..core.lanes.lanes import constant_like
from ..core.linear.linear_memory import linearized_rate_in, linearized_rate_memory, without_tree
from ..core.linear.linearized_rate import differentiate_exactly
from ..core.loops import constraint_layout as closure, equation_layout as equation
from ..core.loops.constrained_derivatives import project_acceleration, project_change
from ..core.loops.constraint_hooks import decide_rank, has_constraints
from ..core.loops.constraint_minimum_norm import minimum_norm_multipliers
from ..core.loops.constraint_solver import solve_multipliers
from ..core.sample import control_layout as controls
from ..core.sample.rate import evaluate, has_failed_call, record_failed_call
from .trajectories import allow_calls_of_row, load_row, memory_for
from .trajectory_memory import state_memory


class Linearized(NamedTuple):
    """The results of `linearized_states` for each state, in the units of `core.linear.linearized_rate`.

    * `by_state` (rows, 3, n, n) holds K, D and M, and `by_integral` (rows, n, integrals) holds C.
    * `by_force` (rows, n, n + drives) is the derivative of the actuator forces with respect to constant joint forces,
      and to the force of each drive before its limit (a column of the table of drives).
    * `rate` (rows, n + integrals) holds the accelerations, and the rates of the integrals.
    * `velocity` (rows, n) are the velocities, with the prescribed ones.
    * `closed` (rows, 3, n, n) holds, for closed loops, the projections of unit changes of the positions: column j
      of `closed[:, 0]` is the change of the positions, and of `closed[:, 1]` the change of the velocities. Column j of
      `closed[:, 2]` are the accelerations for a unit acceleration of the open tree under the same forces.
    * `multipliers` (rows, m, 1 + 3 n + integrals) holds, for the m rows of all constraints, the multipliers of minimum
      norm, their derivatives with respect to q, qd and the integrals, and X of `core.loops.constrained_derivatives`.
      Forces that cause the accelerations u in the open tree change the multipliers by - X u. If rows depend on each
      other, only J^T times these derivatives is unique.
    """

    by_state: np.ndarray
    by_integral: np.ndarray
    by_force: np.ndarray
    rate: np.ndarray
    velocity: np.ndarray
    closed: np.ndarray
    multipliers: np.ndarray


def linearized_memory(topology, tables, state_size, actions, lanes):
    """Allocate the memory of a call: a TrajectoryMemory, and the two arrays of a LinearizedRate.

    `lanes` are the number of lanes and the precision of their numbers.
    """
    memory = state_memory(topology, tables, state_size, 1, actions, lanes, False, 1)
    return memory, linearized_rate_memory(topology.shape[1], tables, actions.integrals, state_size, *lanes)


@kernel
def store_derivatives_by_force(block, linear, y, by_force, first, count, k):
    """Store in `by_force` derivatives of actuator forces with respect to constant joint forces and forces of drives.

    A force on its torque-speed curve and the force of a drive at its limit are constant. Computed torques of some dofs
    depend on the forces of the others. y is (rows, lanes), and row `first` of `by_force` (samples, n, n + drives)
    belongs to the first of `count` lanes.
    """
    n, responses, scale = block.qd.shape[0], linear.of_forces[0], linear.direction
    drives = block.loads.actions.shared.drives
    for i in range(n):
        scale[i, k] = share_of_forces(i, block, y, k)
        for j in range(n):
            responses[i, j, k] = constant_like(y, 0.0)
    store_responses(block, linear, y, k)
    for j in range(n):
        store_responses_by_force(linear, j, j, scale[j], by_force, first, count)
    for d in range(drives.shape[1]):
        if drives[drive.KIND, d] in CONTINUOUS_FORCES:
            linear.tangent[0, k] = share_of_drive(d, block, y, k)
            j = drives[drive.DOF, d]
            store_responses_by_force(linear, j, n + d, linear.tangent[0], by_force, first, count)


@kernel
def store_responses_by_force(linear, j, column, varies, by_force, first, count):
    """Store the derivatives with respect to a force of dof j in a column of `by_force`, times `varies` (lanes,)."""
    responses = linear.of_forces[0]
    for lane in range(count):
        for i in range(responses.shape[0]):
            own = constant_like(responses, 1.0 if i == j else 0.0)
            by_force[first + lane, i, column] = varies[lane] * (own + responses[i, j, lane])


@only_if(lambda block, *_: not has_constraints(block))
@kernel
def store_responses(block, linear, y, k):
    """Store the derivatives of computed torques with respect to other actuator forces; a closed loop has none.

    The input of a dof with computed torque is its acceleration, and no force.
    """
    if computes_some_torques(block):
        store_responses_of_controllers(block, linear, y, k)
        responses = linear.of_forces[0]
        for j in range(block.qd.shape[0]):
            if is_commanded(block.loads.actions, j):
                for i in range(block.qd.shape[0]):
                    responses[i, j, k] = constant_like(y, 0.0)


@only_if(has_constraints)
@kernel
def store_closed_changes(block, linear, y, rate, closed, place, k):
    """Store the changes that keep the loops closed, and accelerations, in rows of `closed` (samples, 3, n, n).

    In water, the derivatives have overwritten values that projections read, so the dynamics are computed again.
    y and `rate` are (rows, lanes). `place` is (time, first sample, number of samples).
    """
    t, first, count = place
    if block.model.water is not None:
        evaluate(block, y, t, rate, k)
    n, constraints, u, w = block.qd.shape[0], block.constraints, linear.direction, linear.tangent
    is_closed = constraints.flags[closure.FLAG_DECIDES, k] > constant_like(y, 0.0)
    for j in range(n):
        for i in range(n):
            u[i, k], w[i, k] = constant_like(y, 1.0 if i == j else 0.0), constant_like(y, 0.0)
        project_change(constraints, linear.of_constraints, u, w, is_closed, block.work, k)
        for lane in range(count):
            for i in range(n):
                closed[first + lane, 0, i, j], closed[first + lane, 1, i, j] = u[i, lane], w[i, lane]
        for i in range(n):
            u[i, k] = constant_like(y, 1.0 if i == j else 0.0)
        project_acceleration(constraints, linear.of_constraints, u, k)
        for lane in range(count):
            for i in range(n):
                closed[first + lane, 2, i, j] = u[i, lane]


@only_if(has_constraints)
@kernel
def distribute_forces_of_constraints(block, k):
    """Replace the multipliers of the last dynamics by the multipliers of minimum norm."""
    minimum_norm_multipliers(block.constraints, k)


@only_if(has_constraints)
@kernel
def store_multipliers(block, linear, multipliers, first, count, k):
    """Store the multipliers and their derivatives in rows of `multipliers` (samples, m, 1 + 3 n + integrals).

    The derivatives are (J H^-1 J^T)^-1 times Y K - dc/dq, Y D - dc/dqd and - Y C. Overwrites TARGET and MULTIPLIER.
    """
    constraints, parts = block.constraints, linear.of_constraints
    n, integrals = block.qd.shape[0], parts.by_integral.shape[1]
    rows, one = constraints.rows, constant_like(constraints.rows, 1.0)
    for column in range(1 + 3 * n + integrals):
        for row in range(rows.shape[0]):
            if column == 0:
                rows[row, equation.MULTIPLIER, k] = parts.multipliers[row, k]
            elif column <= n:
                rows[row, equation.TARGET, k] = parts.by_q[row, column - 1, k]
            elif column <= 2 * n:
                rows[row, equation.TARGET, k] = parts.by_qd[row, column - 1 - n, k]
            elif column <= 2 * n + integrals:
                rows[row, equation.TARGET, k] = -one * parts.by_integral[row, column - 1 - 2 * n, k]
            else:
                rows[row, equation.MULTIPLIER, k] = parts.reactions[row, column - 1 - 2 * n - integrals, k]
        if 0 < column <= 2 * n + integrals:
            solve_multipliers(constraints, block.work, k)
        store_column_in_order(constraints, column, multipliers, first, count)


@kernel
def store_column_in_order(constraints, column, multipliers, first, count):
    """Store MULTIPLIER in a column of `multipliers`, in the order of the interface, without added inertias."""
    table = constraints.tables.table
    for c in range(table.shape[1]):
        if table[closure.TYPE, c] == closure.ADDED_INERTIA:
            continue
        for r in range(table[closure.ROW_COUNT, c]):
            for lane in range(count):
                value = constraints.rows[table[closure.ROW, c] + r, equation.MULTIPLIER, lane]
                multipliers[first + lane, table[closure.OUTPUT, c] + r, column] = value


@driver
def linearized_states(
    memory, topology, parameters, variation, tables, states, samples, tau, actions, times, result, first, last
):
    """Compute the derivatives of the equations of motion in states of a batch.

    `memory` is from `linearized_memory`. `states` are q (rows, nq), qd (rows, n) and the integrals of control errors
    (rows, m). `samples` (rows,) is the sample of each row. tau (all samples, n) are the constant joint forces, N m and
    N. `times` (all samples,) are in s. `result` is a Linearized. If a user function fails, the accelerations of its row
    are NaN, and the records of the actions describe the call.
    """
    q, _, integrals = states
    nq, n, m, width, k = q.shape[1], topology.shape[1], integrals.shape[1], lane_width(q), all_lanes(q)
    of_states, of_linear = memory
    block, stepper = memory_for(of_states, 0, topology, tables, parameters, q, actions, (nq + n + m, 1))
    linear = without_tree(linearized_rate_in(of_linear[0][0], of_linear[1][0], tables, nq, nq + n + m))
    y, rate = stepper.y, stepper.rates[0]
    for lane in range(width):
        decide_rank(block, constant_like(y, 1.0), lane)
    for start in range(first, last, width):
        count = min(width, last - start)
        for lane in range(width):
            row = min(start + lane, last - 1)
            place = samples[row], times[samples[row]]
            load_row(block, stepper, states, row, (variation, tau), place, lane)
            allow_calls_of_row(block, y, lane < count, lane)
        t = stepper.control[controls.TIME, k]
        evaluate(block, y, t, rate, k)
        distribute_forces_of_constraints(block, k)
        differentiate_exactly(block, linear, y, rate, t, k)
        for lane in range(count):
            store_lane(block, linear, y, rate, result, start + lane, lane)
            if has_failed_call(block, lane):
                record_failed_call(block, actions.records, samples[start + lane], lane)
                result.rate[start + lane, 0] = constant_like(q, math.nan)
        store_derivatives_by_force(block, linear, y, result.by_force, start, count, k)
        store_closed_changes(block, linear, y, rate, result.closed, (t, start, count), k)
        store_multipliers(block, linear, result.multipliers, start, count, k)


@kernel
def store_lane(block, linear, y, rate, result, sample, lane):
    """Store the derivatives, the rates and the velocities of one lane in row `sample` of the results."""
    nq, n = block.q.shape[0], block.qd.shape[0]
    for i in range(n):
        for j in range(n):
            for by in range(3):
                result.by_state[sample, by, i, j] = linear.derivatives[by, i, j, lane]
        for j in range(linear.by_integral.shape[1]):
            result.by_integral[sample, i, j] = linear.by_integral[i, j, lane]
        result.velocity[sample, i] = y[nq + i, lane]
    for j in range(result.rate.shape[1]):
        result.rate[sample, j] = rate[nq + j, lane]
