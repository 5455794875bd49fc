"""Rows of constraints: compute residuals, their rates and the forces of unit multipliers.

With positions p of the two points, axes x of body a and y of body b, and multipliers lambda that act on body b:

    position   phi = p_b - p_a, three rows
    distance   phi = |p_b - p_a| - length
    direction  phi = x . y for an axis x of body a and y of body b, or (x . y - z . w) / 2 for two of each
    coupler    phi = q_b - ratio q_a - offset

The rate of each row is the difference of two velocities. The forces on body a and on body b are therefore opposite, and
have the same line of action. Source: Featherstone (2008), sections 8.1 and 8.2.

`constraint_layout` describes the arguments. Residuals are in m or rad, rates in m/s or rad/s.
"""

import math

from ...compiling.jit import kernel, routine
from ..lanes.lanes import constant_like, full_like, nan_unless_finite, select, zeros_like
from ..spatial.storage import load3, load9, load_force, load_motion, store_spatial
from ..spatial.vectors import (
    Force,
    add3,
    column_of,
    compose,
    cross,
    dot,
    power,
    rotate,
    scale3,
    size,
    subtract3,
)
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.kinematics import move_dof
from ..tree.layout import PRISMATIC, REVOLUTE, parameter, parameter3, parameter9
from . import constraint_layout as closure, equation_layout as equation


@routine
def update_rows(model, constraints, q, qd, work, k):
    """Compute all rows in the state (q, qd). Reads R, LEVER and V; writes the rows from RESIDUAL to MOTOR_B.

    q is (nq, lanes), qd is (n, lanes).
    """
    for c in range(constraints.tables.table.shape[1]):
        row_type = constraints.tables.table[closure.TYPE, c]
        if row_type == closure.COUPLER:
            couple(c, model, constraints, q, qd, k)
        elif row_type == closure.ADDED_INERTIA:
            store_compliance(c, model, constraints, k)
        else:
            connect_points(c, model, constraints, work, k)
            align_axes(c, model, constraints, work, k)
        if constraints.tables.table[closure.COMPLIANT, c] == 1:
            store_compliances(c, model, constraints, k)


@routine
def move_and_update_rows(model, constraints, q, qd, work, k):
    """Compute poses, velocities and all rows in the state q (nq, lanes), qd (n, lanes), with their speeds."""
    for i in range(model.parent.shape[0]):
        move_dof(i, model, q, qd, work, k)
    update_rows(model, constraints, q, qd, work, k)
    update_speeds(model, constraints, qd, work, k)


@routine
def update_speeds(model, constraints, qd, work, k):
    """Compute the scales of the round-off of the rates, SPEED, from qd (n, lanes). Reads R, LEVER and the rows."""
    table, rows = constraints.tables.table, constraints.rows
    for c in range(table.shape[1]):
        row_type, row, i, j = (
            table[closure.TYPE, c],
            table[closure.ROW, c],
            table[closure.DOF_A, c],
            table[closure.DOF_B, c],
        )
        if row_type == closure.COUPLER:
            rows[row, equation.SPEED, k] = abs(qd[j, k]) + abs(rows[row, equation.MOTOR_A, k] * qd[i, k])
        elif row_type == closure.ADDED_INERTIA:
            rows[row, equation.SPEED, k] = constant_like(rows, 0.0)
        else:
            speed_a, turn_a = speeds_on_path(c, 0, model, constraints, qd, work, k)
            speed_b, turn_b = speeds_on_path(c, 1, model, constraints, qd, work, k)
            for r in range(table[closure.ROW_COUNT, c]):
                is_of_points = r < table[closure.POINT_ROWS, c]
                rows[row + r, equation.SPEED, k] = speed_a + speed_b if is_of_points else turn_a + turn_b


@kernel
def store_row(rows, row, k, residual, rate_bias, force_a, force_b):
    """Store the residual, the bias and the forces of one row.

    The bias is in m/s^2 or rad/s^2. The forces are Force values on both bodies for a unit multiplier.
    """
    rows[row, equation.RESIDUAL, k] = residual
    rows[row, equation.BIAS, k] = rate_bias
    store_spatial(rows, row, equation.FORCE_A, k, force_a)
    store_spatial(rows, row, equation.FORCE_B, k, force_b)


@kernel
def store_scale(rows, row, k, rate, scale):
    """Store the rate of one row, and the scale of the round-off of its residual, m or rad."""
    rows[row, equation.RATE, k] = rate
    rows[row, equation.SCALE, k] = scale
    rows[row, equation.MOTOR_A, k] = constant_like(rows, 0.0)
    rows[row, equation.MOTOR_B, k] = constant_like(rows, 0.0)


@kernel
def arm_of(c, side, r, constraints, work, k):
    """Compute the vector from the common ancestor of both bodies to a point of one body, as a sum of two vectors.

    r is the vector from the body's origin to the point. The first summand is the lever of the first joint after the
    common ancestor. The first summands of both bodies may be large, but their difference is small if the joints are
    close to each other. World axes, m.
    """
    table, paths = constraints.tables.table, constraints.tables.paths
    first, end = table[closure.PATH_A + side, c], table[closure.OWN_END_A + side, c]
    zero = zeros_like(r[0])
    if first == end:  # the point is on the common ancestor
        return r, (zero, zero, zero)
    rest = r
    for step in range(first, end - 1):
        rest = add3(rest, load3(work.dof, paths[0, step], frame.LEVER, k))
    return load3(work.dof, paths[0, end - 1], frame.LEVER, k), rest


@kernel
def speeds_on_path(c, side, model, constraints, qd, work, k):
    """Return the sums of the speeds of a point, and of the angular speeds of its body, that all dofs on its path cause.

    The velocity of the point is a sum of these terms, which may cancel: they set the scale of its round-off. The
    largest entry of an arm approximates its length. qd is (n, lanes); the results are in m/s and rad/s.
    """
    table, dof = constraints.tables.table, work.dof
    at, last = table[closure.PARAMETERS, c], table[closure.DOF_A + side, c]
    point = parameter3(
        model.parameters, at, closure.PARAM_POINT_A + side * (closure.PARAM_POINT_B - closure.PARAM_POINT_A), k
    )
    arm = rotate(load9(dof, last, frame.R, k), point)
    speed, turn = zeros_like(arm[0]), zeros_like(arm[0])
    for step in range(table[closure.PATH_A + side, c], table[closure.PATH_END_A + side, c]):
        i = constraints.tables.paths[0, step]
        rate = abs(qd[i, k])
        if model.joint[i] != PRISMATIC:
            turn = turn + rate
            sideways = max(abs(arm[0]), abs(arm[1]))
            speed = speed + rate * max(sideways, abs(arm[2]))
        if model.joint[i] != REVOLUTE:
            speed = speed + rate * abs(parameter(model.parameters, i, param.ADVANCE, k))
        arm = add3(arm, load3(dof, i, frame.LEVER, k))
    return speed, turn


@kernel
def connect_points(c, model, constraints, work, k):
    """Compute the rows of the two points: three in world axes, or one along the line between them."""
    table, dof, rows = constraints.tables.table, work.dof, constraints.rows
    i, j, at, row = (
        table[closure.DOF_A, c],
        table[closure.DOF_B, c],
        table[closure.PARAMETERS, c],
        table[closure.ROW, c],
    )
    r_a = rotate(load9(dof, i, frame.R, k), parameter3(model.parameters, at, closure.PARAM_POINT_A, k))
    r_b = rotate(load9(dof, j, frame.R, k), parameter3(model.parameters, at, closure.PARAM_POINT_B, k))
    root_a, rest_a = arm_of(c, 0, r_a, constraints, work, k)
    root_b, rest_b = arm_of(c, 1, r_b, constraints, work, k)
    v_a, v_b = load_motion(dof, i, frame.V, k), load_motion(dof, j, frame.V, k)
    point_v_a, point_v_b = add3(v_a.lin, cross(v_a.ang, r_a)), add3(v_b.lin, cross(v_b.ang, r_b))
    between = subtract3(root_b, root_a)
    d, rate = add3(between, subtract3(rest_b, rest_a)), subtract3(point_v_b, point_v_a)
    bias = subtract3(cross(v_b.ang, point_v_b), cross(v_a.ang, point_v_a))
    scale = size(between) + size(rest_a) + size(rest_b)
    if table[closure.PATH_END_A, c] > table[closure.OWN_END_A, c]:  # the levers were rotated by a common ancestor
        scale = scale + size(root_a) + size(root_b)
    if table[closure.TYPE, c] == closure.DISTANCE:
        zero, one = constant_like(dof, 0.0), constant_like(dof, 1.0)
        square = dot(d, d)
        is_apart = square > zero  # the direction of coinciding points is undefined
        length = math.sqrt(square)
        inverse = select(is_apart, one / select(is_apart, length, one), nan_unless_finite(length))
        e = scale3(inverse, d)
        along = dot(e, rate)
        rate_bias = dot(e, bias) + inverse * (dot(rate, rate) - along * along)
        residual = length - parameter(model.parameters, at, closure.PARAM_LENGTH, k)
        store_pull(rows, row, k, residual, rate_bias, r_a, r_b, e)
        store_scale(rows, row, k, along, scale)
        return
    for axis in range(3):
        zero, one = zeros_like(d[0]), full_like(d[0], 1.0)
        e = (one if axis == 0 else zero, one if axis == 1 else zero, one if axis == 2 else zero)
        store_pull(rows, row + axis, k, dot(e, d), dot(e, bias), r_a, r_b, e)
        store_scale(rows, row + axis, k, dot(e, rate), scale)


@kernel
def store_pull(rows, row, k, residual, rate_bias, r_a, r_b, e):
    """Store a row whose unit multiplier exerts the force e on the point of body b, and -e on the point of body a.

    r_a and r_b (3) are the vectors from the joint origins of the bodies to the points, m; e (3) is a unit vector.
    """
    opposite = (-e[0], -e[1], -e[2])
    store_row(rows, row, k, residual, rate_bias, Force(cross(r_a, opposite), opposite), Force(cross(r_b, e), e))


@kernel
def align_axes(c, model, constraints, work, k):
    """Compute the rows of the directions, which follow the rows of the points."""
    table, dof = constraints.tables.table, work.dof
    i, j, at = table[closure.DOF_A, c], table[closure.DOF_B, c], table[closure.PARAMETERS, c]
    first, count = table[closure.POINT_ROWS, c], table[closure.ROW_COUNT, c]
    if first == count:
        return
    A = compose(load9(dof, i, frame.R, k), parameter9(model.parameters, at, closure.PARAM_AXES_A, k))
    B = compose(load9(dof, j, frame.R, k), parameter9(model.parameters, at, closure.PARAM_AXES_B, k))
    w_a, w_b = load3(dof, i, frame.V, k), load3(dof, j, frame.V, k)
    half = constant_like(dof, 0.5)
    for r in range(first, count):
        axes = closure.AXES + closure.AXES_OF_ROW * (r - first)
        x, y = column_of(A, table[axes, c]), column_of(B, table[axes + 1, c])
        residual, e, bias = product_of_axes(x, y, w_a, w_b)
        if table[axes + 2, c] != closure.NO_AXIS:
            z, w = column_of(A, table[axes + 2, c]), column_of(B, table[axes + 3, c])
            other, other_e, other_bias = product_of_axes(z, w, w_a, w_b)
            e = scale3(half, subtract3(e, other_e))
            residual, bias = half * (residual - other), half * (bias - other_bias)
        store_turn(constraints.rows, table[closure.ROW, c] + r, k, residual, bias, e, subtract3(w_b, w_a))


@kernel
def is_turned_over(c, model, constraints, work, k):
    """Return 1 if the aligned axes of constraint c are turned by more than 90 degrees, else 0. Reads R.

    The rows of the directions are then zero even at half a turn.
    """
    table, dof = constraints.tables.table, work.dof
    i, j, at, first = (
        table[closure.DOF_A, c],
        table[closure.DOF_B, c],
        table[closure.PARAMETERS, c],
        table[closure.ALIGNED, c],
    )
    A = compose(load9(dof, i, frame.R, k), parameter9(model.parameters, at, closure.PARAM_AXES_A, k))
    B = compose(load9(dof, j, frame.R, k), parameter9(model.parameters, at, closure.PARAM_AXES_B, k))
    zero, cosines = zeros_like(A[0]), zeros_like(A[0])
    for axis in range(first, 3):
        cosines = cosines + dot(column_of(A, axis), column_of(B, axis))
    least = full_like(A[0], 0.5 * (2 - first))  # for three axes, the sum is 1 + 2 cos of the angle of the turn
    return select(cosines < least, full_like(A[0], 1.0), zero)


@kernel
def product_of_axes(x, y, w_a, w_b):
    """Compute x . y for an axis x of body a and y of body b.

    The unit vectors x and y (3) and the angular velocities w_a and w_b (3), rad/s, are in world axes. The rate of x . y
    is (w_b - w_a) . (y x x). Returns x . y, y x x and the part of the second derivative without accelerations, rad/s^2.
    """
    x_rate, y_rate = cross(w_a, x), cross(w_b, y)
    both = dot(x_rate, y_rate)
    bias = dot(cross(w_a, x_rate), y) + (both + both) + dot(x, cross(w_b, y_rate))
    return dot(x, y), cross(y, x), bias


@kernel
def store_turn(rows, row, k, residual, rate_bias, e, w):
    """Store a row whose unit multiplier exerts the moment e on body b, and -e on body a.

    w (3) is the angular velocity of body b relative to body a, rad/s.
    """
    zero = zeros_like(e[0])
    nothing = (zero, zero, zero)
    opposite = (-e[0], -e[1], -e[2])
    store_row(rows, row, k, residual, rate_bias, Force(opposite, nothing), Force(e, nothing))
    store_scale(rows, row, k, dot(e, w), constant_like(rows, 1.0))


@kernel
def couple(c, model, constraints, q, qd, k):
    """Compute the row of a coupler in the state q (nq, lanes), qd (n, lanes).

    Its unit multiplier exerts the force 1 on joint b, and -ratio on joint a.
    """
    table, rows = constraints.tables.table, constraints.rows
    i, j, at, row = (
        table[closure.DOF_A, c],
        table[closure.DOF_B, c],
        table[closure.PARAMETERS, c],
        table[closure.ROW, c],
    )
    ratio, offset = (
        parameter(model.parameters, at, closure.PARAM_RATIO, k),
        parameter(model.parameters, at, closure.PARAM_OFFSET, k),
    )
    q_a, q_b = q[model.coordinate[i], k], q[model.coordinate[j], k]
    zero = zeros_like(q_b)
    no_force = Force((zero, zero, zero), (zero, zero, zero))
    store_row(rows, row, k, q_b - ratio * q_a - offset, zero, no_force, no_force)
    scale = abs(q_b) + abs(ratio * q_a) + abs(offset)
    store_scale(rows, row, k, qd[j, k] - ratio * qd[i, k], scale)
    rows[row, equation.MOTOR_A, k] = -ratio
    rows[row, equation.MOTOR_B, k] = constant_like(rows, 1.0)


@kernel
def store_compliance(c, model, constraints, k):
    """Store the row of an added inertia: a joint force, and the compliance 1 / e, 1/kg or 1/(kg m^2)."""
    table, rows = constraints.tables.table, constraints.rows
    row, e = (
        table[closure.ROW, c],
        parameter(model.parameters, table[closure.PARAMETERS, c], closure.PARAM_ADDED_INERTIA, k),
    )
    zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
    no_force = Force((zero, zero, zero), (zero, zero, zero))
    store_row(rows, row, k, zero, zero, no_force, no_force)
    store_scale(rows, row, k, zero, zero)
    rows[row, equation.MOTOR_B, k] = one
    is_added = e > zero
    rows[row, equation.COMPLIANCE, k] = select(is_added, one / select(is_added, e, one), zero)


@kernel
def store_compliances(c, model, constraints, k):
    """Store - c / t^2 of the rows of a compliant constraint with the compliance c and the relaxation time t."""
    table, rows, at = constraints.tables.table, constraints.rows, constraints.tables.table[closure.PARAMETERS, c]
    inverse = inverse_relaxation_time(c, model, constraints, k)
    for r in range(table[closure.ROW_COUNT, c]):
        is_point = r < table[closure.POINT_ROWS, c]
        column = closure.PARAM_COMPLIANCE if is_point else closure.PARAM_ANGULAR_COMPLIANCE
        compliance = parameter(model.parameters, at, column, k)
        rows[table[closure.ROW, c] + r, equation.COMPLIANCE, k] = -compliance * (inverse * inverse)


@kernel
def inverse_relaxation_time(c, model, constraints, k):
    """Return 1 / t of a compliant constraint, 1/s."""
    at = constraints.tables.table[closure.PARAMETERS, c]
    time = parameter(model.parameters, at, closure.PARAM_RELAXATION_TIME, k)
    return constant_like(constraints.rows, 1.0) / time


@kernel
def row_of_motion(c, row, constraints, rates, work, k):
    """Compute J times `rates` (n, lanes) for a row of constraint c, from the motions of the frames in A.

    `rates` cause the motions in A. For accelerations, the second derivative of the row is this number plus BIAS.
    """
    table, rows, dof = constraints.tables.table, constraints.rows, work.dof
    i, j = table[closure.DOF_A, c], table[closure.DOF_B, c]
    if table[closure.TYPE, c] == closure.COUPLER:
        return rows[row, equation.MOTOR_A, k] * rates[i, k] + rows[row, equation.MOTOR_B, k] * rates[j, k]
    if table[closure.TYPE, c] == closure.ADDED_INERTIA:
        return rates[j, k]
    on_a = power(load_force(rows, row, equation.FORCE_A, k), load_motion(dof, i, frame.A, k))
    on_b = power(load_force(rows, row, equation.FORCE_B, k), load_motion(dof, j, frame.A, k))
    return on_a + on_b
