"""Derivatives of forces by parameters of the mechanism, for sensitivities."""

import math

from ...compiling.jit import kernel
from ..control import drive_layout as drive
from ..control.actuators import has_lag
from ..control.controller_derivatives import accelerates_with_input, computes_some_torques
from ..control.drive_forces import integral_of_error
from ..control.drive_slopes import share_of_drive, share_of_forces, slope_of_gear_friction
from ..forces import signal_layout as signal
from ..forces.passive import stribeck_share
from ..lanes.lanes import constant_like, select, zeros_like
from ..spatial.storage import load9, load_motion
from ..spatial.vectors import (
    Force,
    add3,
    column_of,
    cross,
    rotate,
    scale3,
)
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.kinematics import body_axes, force_on_parent
from ..tree.layout import parameter, parameter3
from .parameter_layout import (
    BETWEEN_BODIES,
    BY_ACCELERATION,
    BY_ARMATURE,
    BY_CUBIC_STIFFNESS,
    BY_DAMPING,
    BY_FORCE,
    BY_FRICTION,
    BY_GEAR_FRICTION,
    BY_GRAVITY,
    BY_INERTIA,
    BY_KD,
    BY_KI,
    BY_KP,
    BY_MASS,
    BY_POSITION,
    BY_REFERENCE,
    BY_SIGNAL_OF_FORCE,
    BY_STATIC_FRICTION,
    BY_STIFFNESS,
    BY_USER_PARAMETER,
    BY_VELOCITY,
    COLUMN_DOF,
    COLUMN_DRIVE,
    COLUMN_ENTRY,
    COLUMN_KIND,
    COLUMN_SIGNAL,
    INERTIAL,
    OF_ACTUATORS,
    OF_DRIVES,
    OF_FEEDBACK,
    OF_GEOMETRY,
)
from .parameters_between_bodies import add_force_between_bodies, force_of_dof
from .parameters_of_geometry import subtract_force_of_geometry


@kernel
def subtract_parameter_force(block, columns, column, y, rate, w, k):
    """Subtract dtau/dp of a parameter from w (n, lanes), N m or N per unit of the parameter.

    For a parameter of a user function, w contains the derivatives of the forces of the function. Otherwise, w is zero.
    `columns` is (COLUMN_ROWS, count); y and `rate` are (rows, lanes).
    """
    kind, i = columns[COLUMN_KIND, column], columns[COLUMN_DOF, column]
    if kind in (BY_POSITION, BY_VELOCITY, BY_ACCELERATION) or acts_at_instants(block, columns, column):
        return
    if kind in INERTIAL:
        subtract_force_of_body(i, block, kind, columns[COLUMN_ENTRY, column], w, k)
    elif kind == BY_GRAVITY:
        add_weights(block, columns[COLUMN_ENTRY, column], w, k)
    elif kind in OF_GEOMETRY:
        subtract_force_of_geometry(block, kind, i, columns[COLUMN_ENTRY, column], w, k)
    elif kind in BETWEEN_BODIES:
        add_force_between_bodies(block, columns, column, w, k)
    elif kind == BY_ARMATURE:
        w[i, k] = w[i, k] - rate[block.q.shape[0] + i, k]
    elif commands_acceleration(block, columns, column):
        add_computed_torques(block, i, derivative_of_command(block, columns, column, y, k), w, k)
    elif kind == BY_USER_PARAMETER:
        pass_user_force_on(block, y, w, k)
    elif kind in OF_ACTUATORS:
        change = derivative_of_actuator_force(block, columns, column, y, k)
        w[i, k] = w[i, k] + change
        if computes_some_torques(block) and not accelerates_with_input(block.loads.actions, i):
            add_computed_torques(block, i, change, w, k)
    else:
        w[i, k] = w[i, k] + derivative_of_passive_force(i, block, kind, y, k)


@kernel
def acts_at_instants(block, columns, column):
    """Whether the parameter of a column (COLUMN_ROWS, count) acts through outputs of sampled controllers or a lag."""
    kinds, kind = block.loads.actions.shared.drives[drive.KIND], columns[COLUMN_KIND, column]
    if kind == BY_FORCE:
        return has_lag(columns[COLUMN_DOF, column], block.loads.actions)
    return kind in OF_DRIVES and kinds[columns[COLUMN_DRIVE, column]] == drive.KIND_HELD


@kernel
def commands_acceleration(block, columns, column):
    """Whether the parameter of a column (COLUMN_ROWS, count) changes the command of a computed torque."""
    kinds, kind = block.loads.actions.shared.drives[drive.KIND], columns[COLUMN_KIND, column]
    return kind in OF_FEEDBACK and kinds[columns[COLUMN_DRIVE, column]] == drive.KIND_COMPUTED_TORQUE


@kernel
def add_computed_torques(block, i, change, w, k):
    """Add the changes of computed torques by a change of the input of dof i to w (n, lanes).

    The change is in 1/s^2 or m/s^2 for a dof with computed torque, and otherwise in N m or N, each per unit of the
    parameter. Reads the results of `store_responses_of_controllers`.
    """
    responses = block.loads.actions.sensitivities.linear.of_forces[0]
    for j in range(w.shape[0]):
        w[j, k] = w[j, k] + change * responses[j, i, k]


@kernel
def pass_user_force_on(block, y, w, k):
    """Replace the derivatives of user forces w (n, lanes) by the derivatives of all forces that depend on them.

    Actuators change a force with their torque-speed curves, and computed torques depend on the forces of the other
    dofs. y is (rows, lanes). The derivatives are in N m or N per unit of the parameter.
    """
    changes = block.loads.actions.sensitivities.linear.tangent
    for i in range(w.shape[0]):
        changes[i, k] = share_of_forces(i, block, y, k) * w[i, k]
        w[i, k] = changes[i, k]
    if computes_some_torques(block):
        for i in range(w.shape[0]):
            if not accelerates_with_input(block.loads.actions, i):
                add_computed_torques(block, i, changes[i, k], w, k)


@kernel
def derivative_of_command(block, columns, column, y, k):
    """Return the derivative of the acceleration that a computed torque commands with respect to its parameter.

    The parameter is a gain or a value of the reference. The result is a number. `columns` is (COLUMN_ROWS, count); y is
    (rows, lanes).
    """
    change = derivative_of_feedback(block, columns, column, y, k)
    if columns[COLUMN_KIND, column] == BY_REFERENCE:
        change = block.loads.actions.values[columns[COLUMN_SIGNAL, column], signal.ACCELERATION, k] + change
    return change


@kernel
def derivative_of_feedback(block, columns, column, y, k):
    """Return the derivative of kp e + kd de/dt + ki (integral of e) with respect to a gain or a value of the reference.

    The result is a number. `columns` is (COLUMN_ROWS, count); y is (rows, lanes).
    """
    kind, i, d = columns[COLUMN_KIND, column], columns[COLUMN_DOF, column], columns[COLUMN_DRIVE, column]
    actions, s = block.loads.actions, block.loads.actions.shared.drives[drive.SIGNAL, d]
    if kind == BY_KP:
        return actions.values[s, signal.VALUE, k] - y[block.model.coordinate[i], k]
    if kind == BY_KD:
        return actions.values[s, signal.RATE, k] - y[block.q.shape[0] + i, k]
    if kind == BY_KI:
        return integral_of_error(d, block, y, k)
    gains, change = actions.shared.drives[drive.GAINS, d], actions.values[columns[COLUMN_SIGNAL, column]]
    of_error = actions.numbers[gains + drive.GAIN_KP, k] * change[signal.VALUE, k]
    return of_error + actions.numbers[gains + drive.GAIN_KD, k] * change[signal.RATE, k]


@kernel
def derivative_of_actuator_force(block, columns, column, y, k):
    """Return the derivative of an actuator force with respect to the constant force, or to a parameter of a drive.

    The parameter is a gain of a PID, a value of a signal, or the gear friction of the actuator. The result is a number.
    `columns` is (COLUMN_ROWS, count); y is (rows, lanes).
    """
    kind, i, d = columns[COLUMN_KIND, column], columns[COLUMN_DOF, column], columns[COLUMN_DRIVE, column]
    if kind == BY_FORCE:
        return share_of_forces(i, block, y, k)
    if kind == BY_GEAR_FRICTION:
        return slope_of_gear_friction(i, block, y, k)
    factor = share_of_drive(d, block, y, k)
    if kind == BY_SIGNAL_OF_FORCE:
        return factor * block.loads.actions.values[columns[COLUMN_SIGNAL, column], signal.VALUE, k]
    return factor * derivative_of_feedback(block, columns, column, y, k)


@kernel
def derivative_of_passive_force(i, block, kind, y, k):
    """Return the derivative of the passive force of dof i with respect to one of its parameters.

    The result is a number; y is (rows, lanes).
    """
    parameters, v = block.model.parameters, y[block.q.shape[0] + i, k]
    if kind == BY_DAMPING:
        return -v
    if kind in (BY_FRICTION, BY_STATIC_FRICTION):
        v0, zero, one = parameter(parameters, i, param.FRICTION_VELOCITY, k), zeros_like(v), constant_like(v, 1.0)
        # without static friction above the sliding friction, the friction does not depend on the former
        share = select(
            parameter(parameters, i, param.BREAKAWAY, k) + zero > zero, stribeck_share(i, parameters, v, k), zero
        )
        return -(share if kind == BY_STATIC_FRICTION else one - share) * v / math.sqrt(v * v + v0 * v0)
    x = y[block.model.coordinate[i], k] - parameter(parameters, i, param.REST, k)
    if kind == BY_STIFFNESS:
        return -x
    if kind == BY_CUBIC_STIFFNESS:
        return -(x * x * x)
    cubic = constant_like(v, 3.0) * parameter(parameters, i, param.CUBIC_STIFFNESS, k) * (x * x)
    return parameter(parameters, i, param.STIFFNESS, k) + cubic


@kernel
def subtract_force_of_body(i, block, kind, entry, w, k):
    """Subtract the joint forces due to a change of an inertial parameter of the body of dof i (reads R, V and A).

    w is (n, lanes).
    """
    n, model, f = block.qd.shape[0], block.model, force_by_parameter(i, block, kind, entry, k)
    j = i
    while j < n:
        w[j, k] = w[j, k] - force_of_dof(j, f, block, k)
        f = force_on_parent(j, f, model, block.work, k)
        j = model.parent[j]


@kernel
def add_weights(block, entry, w, k):
    """Add the joint forces of the weights of all bodies in a field of 1 m/s^2 along an axis of the world.

    `entry` is the number of the axis. Changes w (n, lanes). Reads R and LEVER.
    """
    n, model, dof = block.qd.shape[0], block.model, block.work.dof
    one, zero = constant_like(dof, 1.0), constant_like(dof, 0.0)
    e = unit_vector(entry, one, zero)
    for i in range(n):
        c = rotate(load9(dof, i, frame.R, k), parameter3(model.parameters, i, param.CG, k))
        weight = scale3(parameter(model.parameters, i, param.MASS, k) + zero, e)
        f, j = Force(cross(c, weight), weight), i
        while j < n:
            w[j, k] = w[j, k] + force_of_dof(j, f, block, k)
            f = force_on_parent(j, f, model, block.work, k)
            j = model.parent[j]


@kernel
def unit_vector(axis, one, zero):
    """Return the unit vector (3) of axis 0, 1 or 2."""
    if axis == 0:
        return (one, zero, zero)
    return (zero, one, zero) if axis == 1 else (zero, zero, one)


@kernel
def force_by_parameter(i, block, kind, entry, k):
    """Return the derivative of the inertial force of the body of dof i, about its joint origin, in world axes.

    The force is m b and the moment c x m b + I w' + w x I w. Here c is the center of mass. I is the tensor about c, and
    w the angular velocity. The acceleration of the center of mass less gravity is b = a + w' x c + w x (w x c). The
    result is a Force, N m and N per unit of the parameter. w (3), w' (3), c (3) and b (3) are in world axes.
    """
    model, dof = block.model, block.work.dof
    v, acceleration = load_motion(dof, i, frame.V, k), load_motion(dof, i, frame.A, k)
    w, wd, axes = v.ang, acceleration.ang, body_axes(i, model, block.work, k)
    if kind == BY_INERTIA:
        row, column = (0, entry) if entry < 3 else (1, entry - 2) if entry < 5 else (2, 2)
        x, y = column_of(axes, row), column_of(axes, column)
        moment = moment_of_product(x, y, w, wd)
        if entry not in (0, 3, 5):  # the tensor is symmetric
            moment = add3(moment, moment_of_product(y, x, w, wd))
        zero = zeros_like(moment[0])
        return Force(moment, (zero, zero, zero))
    c = rotate(load9(dof, i, frame.R, k), parameter3(model.parameters, i, param.CG, k))
    b = add3(add3(acceleration.lin, cross(w, v.lin)), acceleration_about_origin(c, w, wd))
    if kind == BY_MASS:
        return Force(cross(c, b), b)
    m, e = parameter(model.parameters, i, param.MASS, k), column_of(axes, entry)
    change = acceleration_about_origin(e, w, wd)
    return Force(scale3(m, add3(cross(e, b), cross(c, change))), scale3(m, change))


@kernel
def acceleration_about_origin(c, w, wd):
    """Return w' x c + w x (w x c) (3) for three vectors (3) in the same axes."""
    return add3(cross(wd, c), cross(w, cross(w, c)))


@kernel
def moment_of_product(x, y, w, wd):
    """Return I w' + w x I w (3) for I = x y^T and four vectors (3) in the same axes."""
    rate = y[0] * wd[0] + y[1] * wd[1] + y[2] * wd[2]
    spin = y[0] * w[0] + y[1] * w[1] + y[2] * w[2]
    return add3(scale3(rate, x), cross(w, scale3(spin, x)))
