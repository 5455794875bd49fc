"""Sensitivities of a motion: the variational equations of the state for initial states and parameters.

The rows of the state after the integrals of errors z are the sensitivities. Each parameter p has one column: n numbers
u on the tangent space of the positions, n values w of the velocities, and one value s for each integral. Let M be the
mass matrix. Let tau be the forces of inverse dynamics minus all joint forces, at the accelerations of the state. With
K, D and C of `linearized_rate`,

    M w' = - K u - D w + C s - dtau/dp,   s' = - u of the dof.

For dofs outside of free and spherical joints, u' = w. The tangent space of a free or spherical joint turns with its
body. With the rotational part r and the linear part l of u, and the angular velocity omega and the velocity v of the
body in body axes,

    r' = w_r + r x omega,   l' = w_l + r x v + l x omega.

With closed loops, `loops.constrained_derivatives` projects K, D, C and dtau/dp. They then contain the forces of
the constraints, which do not depend on the parameters. When a state has been projected onto the constraints,
at the start and after each step, the columns are projected onto their derivatives. The initial identity matrix becomes
the derivative of the projection of the initial state. Between steps, the columns satisfy the derivatives of the
constraints within the error of the integration, as states do.

A parameter of an actuator force also changes the computed torques of other dofs, which depend on this force. A gain or
a value of the reference of a computed torque changes its command, and thereby all computed torques
(`controller_derivatives`).

A value of a table is a parameter of a drive. The derivative of the table with respect to this value is another signal,
the weight of the value. It changes the force of the drive, the integral of a PID, or a prescribed acceleration.

For gravity, -dtau/dp are the joint forces of the weights in a field of 1 m/s^2 along one axis of the world.

For an inertial parameter, dtau/dp is the derivative of the Newton-Euler equations of one body, whose force acts on its
dof and on the ancestors. A prescribed acceleration does not depend on other parameters: its row of the equations is
w' = 0.

Source: Hairer, Norsett and Wanner (1993), *Solving Ordinary Differential Equations I*, section I.14; Dickinson and
Gelinas (1976), "Sensitivity analysis of ordinary differential equation systems".
"""

from typing import NamedTuple

import numpy as np

from ...compiling.jit import is_given, kernel, only_if, routine
from ..algorithms.derivatives import BY_INPUT, BY_Q, BY_QD
from ..algorithms.lu import factorize, solve
from ..algorithms.rnea import accelerate_with_joint
from ..control import drive_layout as drive
from ..control.controller_derivatives import computes_some_torques, store_responses_of_controllers
from ..forces import signal_layout as signal
from ..lanes.error_norm import norm
from ..lanes.lanes import constant_like, full_like, zeros_like
from ..loops import constraint_layout as closure
from ..loops.constrained_derivatives import project_change, project_force
from ..loops.constraint_hooks import decide_rank, has_constraints
from ..sample.rate import count_drives, dof_of_drive, evaluate, integral_row, moves_freely
from ..spatial.vectors import add3, cross
from ..tree.kinematics import move_dof
from ..tree.layout import POSING_CARRIED, POSING_FREE, POSING_OWN
from .linearized_rate import LinearizedRate, differentiate_exactly
from .parameter_forces import commands_acceleration, subtract_parameter_force
from .parameter_layout import (
    BY_ACCELERATION,
    BY_POSITION,
    BY_REFERENCE,
    BY_VELOCITY,
    COLUMN_DOF,
    COLUMN_DRIVE,
    COLUMN_KIND,
    COLUMN_SIGNAL,
    OF_ACTUATORS,
    OF_BODIES,
    rows_of_column,
    rows_of_motion,
)
from .parameters_between_bodies import place_bodies
from .parameters_of_functions import store_derivatives_of_functions
from .parameters_of_geometry import prepare_geometry
from .sampled_sensitivities import (
    add_changes_of_outputs,
    begin_sampled_sensitivities,
    has_sampled_sensitivities,
)


class SensitivitySettings(NamedTuple):
    """The parameters (COLUMN_ROWS, count), and 1 if the errors of the sensitivities control the steps, else 0."""

    columns: np.ndarray
    controls_steps: int


class Sensitivities(NamedTuple):
    """The settings, and the working memory of one block. `linear` holds the derivatives of the accelerations.

    `sampled` is a SampledSensitivities, or None without sampled controllers.
    """

    settings: SensitivitySettings
    linear: LinearizedRate
    sampled: object


def has_sensitivities(block, *_):
    """Whether a block, or its Numba type, computes sensitivities."""
    return is_given(block, "loads", "actions", "sensitivities")


# --- start ------------------------------------------------------------------------------------------------------------


@only_if(has_sensitivities)
@kernel
def start_sensitivities(block, y, lane):
    """Set the sensitivities at the start of a sample: identity matrix for the initial state, zero for parameters.

    Prescribed positions and velocities do not depend on the initial state. y is (rows, lanes), and must be zero in the
    rows of the sensitivities.
    """
    n, columns = block.qd.shape[0], block.loads.actions.sensitivities.settings.columns
    first, one = rows_of_motion(block), constant_like(y, 1.0)
    for column in range(columns.shape[1]):
        i = columns[COLUMN_DOF, column]
        is_placed = block.loads.actions.shared.drives[drive.KIND, i] == drive.KIND_PRESCRIBED_POSITION
        if columns[COLUMN_KIND, column] == BY_POSITION and not is_placed:
            y[first + i, lane] = one
        elif columns[COLUMN_KIND, column] == BY_VELOCITY and moves_freely(block, i):
            y[first + n + i, lane] = one
        first += rows_of_column(block)
    begin_sampled_sensitivities(block, lane)


# --- rates ------------------------------------------------------------------------------------------------------------


@only_if(has_sensitivities, otherwise=lambda block, y, t, rate, k: evaluate(block, y, t, rate, k))
@routine
def evaluate_with_sensitivities(block, y, t, rate, k):
    """Compute the rate of the state y at time t with its sensitivities.

    y and `rate` are (rows, lanes), and t is a number, s.
    """
    evaluate(block, y, t, rate, k)
    n, linear = block.qd.shape[0], block.loads.actions.sensitivities.linear
    columns = block.loads.actions.sensitivities.settings.columns
    differentiate_exactly(block, linear, y, rate, t, k)
    factorize_mass_matrix(block, linear, k)
    update_responses_of_controllers(block, columns, y, k)
    close_columns(block, y, t, rate, k)
    update_motion(block, columns, y, rate, k)
    place_bodies(block, columns, y, k)
    prepare_geometry(block, columns, y, rate, k)
    first, size = rows_of_motion(block), rows_of_column(block)
    for column in range(columns.shape[1]):
        for i in range(n):
            rate[first + column * size + n + i, k] = constant_like(y, 0.0)
    store_derivatives_of_functions(block, columns, y, rate, first, size)
    for column in range(columns.shape[1]):
        u, change = y[first : first + size], rate[first : first + size]
        store_position_rates(block, y, u, change, k)
        add_change_of_reference(block, columns, column, change, k)
        w = change[n : 2 * n]
        subtract_parameter_force(block, columns, column, y, rate, w, k)
        add_changes_of_outputs(block, column, y, w, k)
        remove_constrained_force(block, w, k)
        subtract_state_force(block, linear, u, w, k)
        set_change_of_acceleration(block, columns, column, w, k)
        solve(linear.factors, linear.pivots, w, k)
        first += size


def measures_closed_columns(block, *_):
    """Whether sampled controllers of a closed loop measure a state with sensitivities."""
    return has_constraints(block) and has_sampled_sensitivities(block)


@only_if(measures_closed_columns)
@routine
def close_columns_of_start(block, y, is_new, t, rate, k):
    """Project the columns of the initial state y at time t, s, so that sampled controllers can measure it.

    `is_new` is positive in the lanes whose sample starts. y and `rate` are (rows, lanes); `rate` is scratch memory.
    """
    decide_rank(block, is_new, k)
    evaluate_with_sensitivities(block, y, t, rate, k)
    decide_rank(block, constant_like(y, 0.0), k)


@only_if(has_constraints)
@kernel
def close_columns(block, y, t, rate, k):
    """Project all columns of the state y onto the derivatives of the constraints, in the lanes whose state is closed.

    These are the lanes that decide which rows are independent. Changes y (rows, lanes). In water, the derivatives have
    overwritten U and DINV, which projections read, so the dynamics are computed again. `rate` is (rows, lanes),
    and t a number, s.
    """
    if block.model.water is not None:
        evaluate(block, y, t, rate, k)
    n, constraints, linear = block.qd.shape[0], block.constraints, block.loads.actions.sensitivities.linear
    is_closed = constraints.flags[closure.FLAG_DECIDES, k] > constant_like(y, 0.0)
    first = rows_of_motion(block)
    for _ in range(block.loads.actions.sensitivities.settings.columns.shape[1]):
        u, w = y[first : first + n], y[first + n : first + 2 * n]
        project_change(constraints, linear.of_constraints, u, w, is_closed, block.work, k)
        first += rows_of_column(block)


@only_if(has_constraints)
@kernel
def remove_constrained_force(block, w, k):
    """Remove the part of the joint forces w (n, lanes) of one column that the constraints of a closed loop cancel.

    The forces are in N m or N per unit of the parameter.
    """
    project_force(block.constraints, block.loads.actions.sensitivities.linear.of_constraints, w, k)


@kernel
def accelerates_freely(block, i):
    """Whether the acceleration of dof i follows from the forces."""
    return block.loads.actions.shared.drives[drive.KIND, i] not in drive.PRESCRIBED_KINDS


@kernel
def factorize_mass_matrix(block, linear, k):
    """Factorize the mass matrix, with a row of the identity matrix for each prescribed dof.

    Writes `linear.factors` (n, n, lanes) and `linear.pivots` (n, lanes).
    """
    n, M = block.qd.shape[0], linear.derivatives[BY_INPUT]
    for i in range(n):
        is_free = accelerates_freely(block, i)
        for j in range(n):
            linear.factors[i, j, k] = M[i, j, k] if is_free else full_like(M[i, j, k], 1.0 if i == j else 0.0)
    factorize(linear.factors, linear.pivots, k)


@kernel
def update_motion(block, columns, y, rate, k):
    """Compute velocities and accelerations of all dofs (V and A), for columns of inertial parameters or gravity.

    `differentiate_exactly` uses A as scratch memory if the model is in water. `columns` is (COLUMN_ROWS, count); y and
    `rate` are (rows, lanes).
    """
    nq, n, needed = block.q.shape[0], block.qd.shape[0], False
    for column in range(columns.shape[1]):
        needed = needed or columns[COLUMN_KIND, column] in OF_BODIES
    if needed:
        q, qd, qdd = y[:nq], y[nq : nq + n], rate[nq : nq + n]
        for i in range(n):
            move_dof(i, block.model, q, qd, block.work, k)
            accelerate_with_joint(i, block.model, qd, qdd, block.work, k)


@only_if(has_sampled_sensitivities, False)
@kernel
def has_held_changes(block):
    """Whether latched outputs of sampled controllers depend on the parameters."""
    return True


@only_if(lambda block, *_: not has_constraints(block))
@kernel
def update_responses_of_controllers(block, columns, y, k):
    """Store the derivatives of computed torques with respect to their inputs, if the columns need them.

    In closed loops, there are no such controllers. `columns` is (COLUMN_ROWS, count), and y (rows, lanes).
    """
    computes_some = computes_some_torques(block)
    needed = computes_some and has_held_changes(block)
    for column in range(columns.shape[1]):
        is_of_actuator = columns[COLUMN_KIND, column] in OF_ACTUATORS
        needed = needed or (computes_some and is_of_actuator) or commands_acceleration(block, columns, column)
    if needed:
        store_responses_of_controllers(block, block.loads.actions.sensitivities.linear, y, k)


@kernel
def store_position_rates(block, y, u, change, k):
    """Store the rates of the positions and integrals of one column u in `change`.

    u and `change` are (rows of a column, lanes), and y is (rows, lanes).
    """
    nq, n, model = block.q.shape[0], block.qd.shape[0], block.model
    for i in range(n):
        posing, v = model.posing[i], nq + i
        if posing == POSING_OWN:
            change[i, k] = u[n + i, k]
        elif posing == POSING_FREE:
            r, omega = (u[i + 3, k], u[i + 4, k], u[i + 5, k]), (y[v + 3, k], y[v + 4, k], y[v + 5, k])
            turned = add3(
                cross(r, (y[v, k], y[v + 1, k], y[v + 2, k])), cross((u[i, k], u[i + 1, k], u[i + 2, k]), omega)
            )
            store_sum(u, n + i, turned, change, i, k)
            store_sum(u, n + i + 3, cross(r, omega), change, i + 3, k)
        elif posing != POSING_CARRIED:
            r, omega = (u[i, k], u[i + 1, k], u[i + 2, k]), (y[v, k], y[v + 1, k], y[v + 2, k])
            store_sum(u, n + i, cross(r, omega), change, i, k)
    for d in range(count_drives(block)):
        row = integral_row(block, d)
        if row >= 0:
            change[n + row - nq, k] = -u[dof_of_drive(block, d), k]


@kernel
def set_change_of_acceleration(block, columns, column, w, k):
    """Set the derivative of a prescribed acceleration with respect to a value of its signal in w (n, lanes).

    `columns` is (COLUMN_ROWS, count).
    """
    if columns[COLUMN_KIND, column] == BY_ACCELERATION:
        weight = columns[COLUMN_SIGNAL, column]
        w[columns[COLUMN_DOF, column], k] = block.loads.actions.values[weight, signal.VALUE, k]


@kernel
def add_change_of_reference(block, columns, column, change, k):
    """Add the derivative of a reference with respect to one of its values to the rate of the integral of the error.

    `change` is (rows of a column, lanes), and `columns` is (COLUMN_ROWS, count).
    """
    if columns[COLUMN_KIND, column] == BY_REFERENCE:
        row, n = integral_row(block, columns[COLUMN_DRIVE, column]), block.qd.shape[0]
        if row >= 0:
            at, weight = n + row - block.q.shape[0], columns[COLUMN_SIGNAL, column]
            change[at, k] = change[at, k] + block.loads.actions.values[weight, signal.VALUE, k]


@kernel
def store_sum(u, row, vector, result, at, k):
    """Store the sum of three rows of u and a vector in three rows of `result`.

    u and `result` are (rows, lanes), and the vector is (3).
    """
    result[at, k] = u[row, k] + vector[0]
    result[at + 1, k] = u[row + 1, k] + vector[1]
    result[at + 2, k] = u[row + 2, k] + vector[2]


@kernel
def subtract_state_force(block, linear, u, w, k):
    """Subtract K u + D w - C s of a column u from w; zero for prescribed dofs.

    u is (rows of a column, lanes), and w (n, lanes), N m or N per unit of the parameter.
    """
    n = block.qd.shape[0]
    for i in range(n):
        total = w[i, k]
        for j in range(n):
            total = total - linear.derivatives[BY_Q, i, j, k] * u[j, k]
            total = total - linear.derivatives[BY_QD, i, j, k] * u[n + j, k]
        for j in range(linear.by_integral.shape[1]):
            total = total + linear.by_integral[i, j, k] * u[2 * n + j, k]
        w[i, k] = total if accelerates_freely(block, i) else zeros_like(total)


# --- errors -----------------------------------------------------------------------------------------------------------


@only_if(
    has_sensitivities,
    otherwise=lambda block, x, y, y_new, tolerances, k: norm(x, y, y_new, tolerances.atol, tolerances.rtol, k),
)
@kernel
def error_norm(block, x, y, y_new, tolerances, k):
    """Return the norm of the error x of the motion or, if it is larger and controls the steps, of the sensitivities.

    x, y and y_new are (rows, lanes). The norm is a number without a unit.
    """
    rows, atol, rtol = rows_of_motion(block), tolerances.atol, tolerances.rtol
    error = norm(x[:rows], y[:rows], y_new[:rows], atol, rtol, k)
    if block.loads.actions.sensitivities.settings.controls_steps == 0:
        return error
    return max(error, norm(x[rows:], y[rows:], y_new[rows:], atol, rtol, k))
