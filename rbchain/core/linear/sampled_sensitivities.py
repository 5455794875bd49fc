"""Sensitivities under sampled PID controllers: the derivatives of their outputs and of their discrete states.

At an instant, the PID of a dof computes its output u from the measured position q and velocity v of its dof. With the
period T, the reference r, the integral I, the feedforward f and the gravity compensation g(q),

    I_i = I_(i-1) + T (r - q),   u_i = kp (r - q) + kd (dr/dt - v) + ki I_i + f + g(q).

Each parameter has derivatives of I and u, which follow from these equations and from its column of the measured state.
Noise and bias of sensors do not depend on parameters. A velocity that a sensor computes is a difference of positions,
and so is its derivative. An output at its limit does not change with a parameter. An output at its rate limit changes
as the output before it. The outputs wait in a queue with their derivatives until they act.

Between two stops, the latched outputs are constant, and each adds its derivative to -dtau/dp. If an actuator has a lag,
the force after the lag and its derivative have the same closed solution (`control.actuators`).

Each array has an entry for each column of the parameters. Derivatives of outputs are in N m or N per unit of the
parameter.
"""

from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import is_given, kernel, only_if, routine
from ..algorithms.derivatives import BY_Q
from ..control import drive_layout as drive
from ..control.actuators import actions_have_lags, has_lag, share_of_last_force
from ..control.controller_derivatives import (
    accelerates_with_input,
    computes_some_torques,
    differentiate_controllers_model,
)
from ..control.drive_slopes import share_of_forces
from ..control.sampler_clocks import is_output_due
from ..forces import signal_layout as signal
from ..lanes.lane_memory import CACHE_LINE, aligned_start
from ..lanes.lane_records import lane_record
from ..lanes.lanes import constant_like, select, zeros_like
from ..tree import sampler_layout as sampler, setting_layout as setting
from ..tree.layout import apply_gravity
from .parameter_forces import add_computed_torques, derivative_of_feedback
from .parameter_layout import (
    BY_FORCE,
    BY_REFERENCE,
    BY_SIGNAL_OF_FORCE,
    COLUMN_DOF,
    COLUMN_DRIVE,
    COLUMN_KIND,
    COLUMN_SIGNAL,
    OF_FEEDBACK,
    rows_of_column,
    rows_of_motion,
)


class SampledSensitivities(NamedTuple):
    """The derivatives of the state of sampled controllers, a SamplerMemory, by each parameter.

    `held`, `computed`, `queue`, `integrals`, `positions` and `lagged` are the derivatives of its arrays with these
    names.
    """

    held: Annotated[np.ndarray, "columns", "channels"]
    computed: Annotated[np.ndarray, "columns", "channels"]
    queue: Annotated[np.ndarray, "columns", "slots", "channels"]
    integrals: Annotated[np.ndarray, "columns", "channels"]
    positions: Annotated[np.ndarray, "columns", "sensors"]
    lagged: Annotated[np.ndarray, "columns", "n"]


_size, _carve = lane_record(SampledSensitivities, "columns", "slots", "channels", "sensors", "n")


def has_sampled_sensitivities(block, *_):
    """Whether a block, or its Numba type, has sampled controllers and computes sensitivities."""
    return is_given(block, "loads", "actions", "sensitivities", "sampled")


# --- memory -----------------------------------------------------------------------------------------------------------


def sampled_sensitivities_size(samplers, columns, n):
    """Return how many numbers per lane `columns` parameters need with n dofs; 0 without sampled controllers."""
    if samplers is None:
        return 0
    slots, channels, sensors = samplers.sizes[sampler.SIZE_QUEUE], samplers.channels.shape[1], samplers.sensors.shape[1]
    return _size(columns, int(slots), channels, sensors, n)


def sampled_sensitivities_memory(samplers, columns, n, width, dtype, blocks):
    """Allocate memory (blocks, m) for SampledSensitivities; None without sampled controllers."""
    if samplers is None:
        return None
    size = sampled_sensitivities_size(samplers, columns, n) * width + CACHE_LINE // dtype.itemsize
    return np.zeros((blocks, size), dtype)


@only_if(lambda memory, b, samplers, columns, n, width: is_given(samplers))
@kernel
def sampled_sensitivities_in(memory, b, samplers, columns, n, width):
    """Return the SampledSensitivities of block b in `memory` (blocks, m), or None without sampled controllers."""
    numbers, slots = memory[b], samplers.sizes[sampler.SIZE_QUEUE]
    sizes = columns, slots, samplers.channels.shape[1], samplers.sensors.shape[1], n
    return _carve(numbers, aligned_start(numbers), width, *sizes)


@only_if(has_sampled_sensitivities)
@kernel
def begin_sampled_sensitivities(block, lane):
    """Set the derivatives of a lane with a new sample to zero. The first measurements of positions have none: NaN."""
    sampled = block.loads.actions.sensitivities.sampled
    zero, unknown = constant_like(sampled.held, 0.0), constant_like(sampled.held, np.nan)
    for column in range(sampled.held.shape[0]):
        for c in range(sampled.held.shape[1]):
            sampled.held[column, c, lane] = zero
            sampled.computed[column, c, lane] = zero
            sampled.integrals[column, c, lane] = zero
        for s in range(sampled.positions.shape[1]):
            sampled.positions[column, s, lane] = unknown
        for i in range(sampled.lagged.shape[1]):
            sampled.lagged[column, i, lane] = zero


# --- instants ---------------------------------------------------------------------------------------------------------


@only_if(has_sampled_sensitivities)
@routine
def differentiate_gravity_of_group(block, g, k):
    """Store the derivatives of the gravity compensation of a group with the measured state, if it has some.

    Writes `linear.derivatives[BY_Q]` (n, n, lanes), N m/rad or N/m. Overwrites loads.tau.
    """
    actions, linear = block.loads.actions, block.loads.actions.sensitivities.linear
    if actions.shared.samplers.groups[sampler.GROUP_COMPENSATES, g] == 0:
        return
    for i in range(block.qd.shape[0]):
        linear.direction[i, k] = constant_like(linear.direction, 0.0)
    actions.settings[setting.EXTERNAL_FORCES] = 0
    apply_gravity(actions.model, block.work, k)
    q = actions.sampled.measured[: block.q.shape[0]]
    differentiate_controllers_model(block, q, linear.direction, linear.direction, linear, k)
    actions.settings[setting.EXTERNAL_FORCES] = 1
    apply_gravity(block.model, block.work, k)


@only_if(has_sampled_sensitivities)
@routine
def differentiate_output(block, y, g, d, force, due, k):
    """Compute the derivatives of the next output of drive d in group g, and of its integral, in lanes that are `due`.

    Call it before the output is computed: `force`, N m or N, is the output before its limits. Reads the measured state,
    the signals at the instant, and the columns of the state y (rows, lanes).
    """
    actions, sampled = block.loads.actions, block.loads.actions.sensitivities.sampled
    samplers, columns = actions.shared.samplers, actions.sensitivities.settings.columns
    gains = samplers.drives[drive.GAINS, d]
    limit, ki = actions.numbers[gains + drive.GAIN_LIMIT, k], actions.numbers[gains + drive.GAIN_KI, k]
    period = constant_like(y, samplers.clocks[sampler.CLOCK_PERIOD, g])
    longest = actions.numbers[samplers.channels[sampler.CHANNEL_NUMBERS, d], k] * period
    is_free, output = abs(force) < limit, min(max(force, -limit), limit)
    is_slow = abs(output - actions.sampled.computed[d, k]) > longest
    for column in range(columns.shape[1]):
        error = change_of_error(block, y, d, column, k)
        integral, last = sampled.integrals[column, d, k], sampled.computed[column, d, k]
        integral = select(due, integral + period * error, integral)
        sampled.integrals[column, d, k] = integral
        change = change_of_output(block, y, g, d, column, k) + ki * integral
        change = select(is_slow, last, select(is_free, change, zeros_like(change)))
        sampled.computed[column, d, k] = select(due, change, last)


@kernel
def change_of_error(block, y, d, column, k):
    """Return the derivative of the measured position error of drive d.

    The result is a number; y is (rows, lanes).
    """
    actions = block.loads.actions
    columns, samplers = actions.sensitivities.settings.columns, actions.shared.samplers
    change = -y[row_of_change(block, samplers.drives[drive.DOF, d], column), k]
    if columns[COLUMN_KIND, column] == BY_REFERENCE and columns[COLUMN_DRIVE, column] == d:
        change = change + actions.values[columns[COLUMN_SIGNAL, column], signal.VALUE, k]
    return change


@kernel
def change_of_output(block, y, g, d, column, k):
    """Return the derivative of the output of drive d before its limits at constant integral of the error.

    The result is a number; y is (rows, lanes).
    """
    actions, n = block.loads.actions, block.qd.shape[0]
    columns, samplers = actions.sensitivities.settings.columns, actions.shared.samplers
    i, gains = samplers.drives[drive.DOF, d], samplers.drives[drive.GAINS, d]
    first = row_of_change(block, 0, column)
    of_position = actions.numbers[gains + drive.GAIN_KP, k] * y[first + i, k]
    of_velocity = actions.numbers[gains + drive.GAIN_KD, k] * change_of_measured_velocity(block, y, g, i, column, k)
    change = -of_position - of_velocity
    if samplers.drives[drive.COMPENSATES_GRAVITY, d] == 1:
        of_gravity = actions.sensitivities.linear.derivatives[BY_Q]
        for j in range(n):
            change = change + of_gravity[i, j, k] * y[first + j, k]
    kind = columns[COLUMN_KIND, column]
    if kind in OF_FEEDBACK and columns[COLUMN_DRIVE, column] == d:
        change = change + derivative_of_feedback(block, columns, column, actions.sampled.measured, k)
    elif kind == BY_SIGNAL_OF_FORCE and columns[COLUMN_DRIVE, column] == d:
        change = change + actions.values[columns[COLUMN_SIGNAL, column], signal.VALUE, k]
    return change


@kernel
def row_of_change(block, i, column):
    """Return the row of the state with the derivative of the position of dof i by a parameter."""
    return rows_of_motion(block) + column * rows_of_column(block) + i


@kernel
def change_of_measured_velocity(block, y, g, i, column, k):
    """Return the derivative of the velocity of dof i that the controllers of group g measure.

    The result is a number; y is (rows, lanes).
    """
    groups, sensors = block.loads.actions.shared.samplers.groups, block.loads.actions.shared.samplers.sensors
    clocks, positions = block.loads.actions.shared.samplers.clocks, block.loads.actions.sensitivities.sampled.positions
    at = row_of_change(block, i, column)
    change, first = y[at + block.qd.shape[0], k], groups[sampler.GROUP_FIRST_SENSOR, g]
    for s in range(first, first + groups[sampler.GROUP_SENSOR_COUNT, g]):
        if sensors[sampler.SENSOR_DIFFERENCE, s] == block.q.shape[0] + i:
            previous, period = positions[column, s, k], constant_like(y, clocks[sampler.CLOCK_PERIOD, g])
            is_known = abs(previous) >= zeros_like(previous)  # it is NaN before the first measurement
            change = select(is_known, (y[at, k] - previous) / period, zeros_like(change))
    return change


@only_if(has_sampled_sensitivities)
@kernel
def keep_measured_changes(block, y, g, due, k):
    """Store the derivatives of the positions from which group g computes its next velocities, in lanes that are `due`.

    y is (rows, lanes).
    """
    groups, sensors = block.loads.actions.shared.samplers.groups, block.loads.actions.shared.samplers.sensors
    positions, first = block.loads.actions.sensitivities.sampled.positions, groups[sampler.GROUP_FIRST_SENSOR, g]
    for s in range(first, first + groups[sampler.GROUP_SENSOR_COUNT, g]):
        i = sensors[sampler.SENSOR_DIFFERENCE, s] - block.q.shape[0]
        if i >= 0:
            for column in range(positions.shape[0]):
                change = y[row_of_change(block, i, column), k]
                positions[column, s, k] = select(due, change, positions[column, s, k])


@only_if(lambda actions, g, slot, lane: is_given(actions, "sensitivities", "sampled"))
@kernel
def enqueue_changes(actions, g, slot, lane):
    """Add the derivatives of the computed outputs of a group to the queue of a lane."""
    sampled, channels = actions.sensitivities.sampled, actions.shared.samplers.channels
    for c in range(channels.shape[1]):
        if channels[sampler.CHANNEL_GROUP, c] == g:
            for column in range(sampled.held.shape[0]):
                sampled.queue[column, slot, c, lane] = sampled.computed[column, c, lane]


@only_if(lambda actions, g, before, lane: is_given(actions, "sensitivities", "sampled"))
@kernel
def hold_changes(actions, g, before, lane):
    """Latch the derivatives of the outputs of a group. `before` was its COUNT_ACTING before this."""
    sampled, channels = actions.sensitivities.sampled, actions.shared.samplers.channels
    acting = actions.sampled.counts[sampler.COUNT_ACTING, g, lane]
    if acting == before:
        return
    slot = (acting - 1) % sampled.queue.shape[1]
    for c in range(channels.shape[1]):
        if channels[sampler.CHANNEL_GROUP, c] == g:
            for column in range(sampled.held.shape[0]):
                sampled.held[column, c, lane] = sampled.queue[column, slot, c, lane]


# --- between instants -------------------------------------------------------------------------------------------------


@kernel
def change_of_held_force(i, actions, column, t, k):
    """Return the derivative of the sum of the latched outputs on dof i; the time t, s, is not used."""
    drives, held, d = actions.shared.drives, actions.sensitivities.sampled.held, i
    change = zeros_like(held[column, i, k])
    while d >= 0:
        if drives[drive.KIND, d] == drive.KIND_HELD:
            change = change + held[column, d, k]
        d = drives[drive.NEXT, d]
    return change


@only_if(lambda i, actions, column, t, k: actions_have_lags(actions), otherwise=change_of_held_force)
@kernel
def change_of_lagged_output(i, actions, column, t, k):
    """Return the derivative of `lagged_output`, the force of dof i after its lag at time t, s, if it has a lag.

    Without a lag, the force does not include the constant force.
    """
    change, columns = change_of_held_force(i, actions, column, t, k), actions.sensitivities.settings.columns
    if not has_lag(i, actions):
        return change
    if columns[COLUMN_KIND, column] == BY_FORCE and columns[COLUMN_DOF, column] == i:
        change = change + constant_like(change, 1.0)
    e = share_of_last_force(i, actions, t, k)
    return actions.sensitivities.sampled.lagged[column, i, k] * e + change * (constant_like(change, 1.0) - e)


@only_if(lambda actions, g, t, lane: is_given(actions, "sensitivities", "sampled") and actions_have_lags(actions))
@kernel
def restart_changes_of_lags(actions, g, t, lane):
    """Restart the derivatives of the lags of a lane at time t, s, if an output of a group begins to act then.

    Call it before the output is latched.
    """
    lagged = actions.sensitivities.sampled.lagged
    if is_output_due(actions, g, t, lane):
        time = constant_like(lagged, t)
        for column in range(lagged.shape[0]):
            for i in range(lagged.shape[1]):
                lagged[column, i, lane] = change_of_lagged_output(i, actions, column, time, lane)


@kernel
def is_driven_at_instants(i, actions):
    """Whether sampled controllers act on dof i."""
    drives, d = actions.shared.drives, i
    while d >= 0:
        if drives[drive.KIND, d] == drive.KIND_HELD:
            return True
        d = drives[drive.NEXT, d]
    return False


@only_if(has_sampled_sensitivities)
@kernel
def add_changes_of_outputs(block, column, y, w, k):
    """Add the changes of the joint forces by the derivatives of the latched outputs to w (n, lanes).

    w is in N m or N per unit of the parameter, and y is (rows, lanes).
    """
    actions = block.loads.actions
    for i in range(block.qd.shape[0]):
        if is_driven_at_instants(i, actions):
            change = change_of_lagged_output(i, actions, column, actions.time[0, k], k)
            change = share_of_forces(i, block, y, k) * change
            w[i, k] = w[i, k] + change
            if computes_some_torques(block) and not accelerates_with_input(actions, i):
                add_computed_torques(block, i, change, w, k)
