"""Dynamics of closed loops: add the forces of the constraints to forward dynamics, and project states.

    H qdd + h = tau + J^T lambda,  J qdd + dJ/dt qd = 0

The multipliers follow from the accelerations without constraints. A second outward sweep then gives the accelerations,
because the forces of the constraints change only u of the articulated-body algorithm. Source: Featherstone (2008),
sections 8.1 and 8.4.
"""

import numpy as np

from ...compiling.jit import kernel, routine
from ..algorithms.aba import accelerate_dof, forward_dynamics
from ..algorithms.hybrid import acceleration_or_force, hybrid_dynamics
from ..lanes.lanes import any_lane, constant_like, epsilon, full_like, nan_unless_finite, select, zeros_like
from ..spatial.storage import load3, load9, load_motion, store_spatial
from ..spatial.vectors import motion_at_tip, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import add_joint_motion
from ..tree.kinematics import add_step, position_rates, tangents_of_rates
from ..tree.layout import apply_gravity, parameter, remove_gravity
from . import constraint_layout as closure, equation_layout as equation
from .constraint_rows import inverse_relaxation_time, move_and_update_rows, row_of_motion, update_rows
from .constraint_solver import factor_constraints, respond_to_multipliers, solve_multipliers

MAX_PROJECTIONS = 12
# Residuals up to this multiple of epsilon times their scale need no iteration.
NEGLIGIBLE = 16.0
# Near singular configurations, the residuals of smaller errors matter too, down to this multiple: below, they are
# round-off. A correction by them would add the round-off divided by the distance to the singular configuration.
ROUND_OFF = 4.0
# A residual up to this multiple of epsilon times its scale is accepted if iterations do not reduce it further.
ACCEPTED_ROUND_OFF = 65536.0
# Longest way of a projection, rad or m, relative to FLAG_CONDITION.
LONGEST_WAY = 0.25
# Sorts of rows with the same units.
POINTS, DIRECTIONS, COUPLERS = 0, 1, 2


@routine
def constrained_forward_dynamics(model, constraints, q, qd, loads, qdd, work, k):
    """Compute qdd (n, lanes) and the multipliers, as `aba.forward_dynamics` does without constraints.

    q is (nq, lanes), qd is (n, lanes), in SI units. Stores the multipliers in MULTIPLIER, N or N m.
    """
    forward_dynamics(model, q, qd, loads, qdd, work, k)
    update_rows(model, constraints, q, qd, work, k)
    add_constraint_forces(model, constraints, qdd, work, k)
    for i in range(model.parent.shape[0]):
        accelerate_dof(i, model, qd, qdd, work, k)


@routine
def constrained_hybrid_dynamics(model, constraints, q, qd, loads, qdd, prescribed, work, k):
    """Compute qdd, tau and the multipliers, as `hybrid.hybrid_dynamics` does without constraints.

    q is (nq, lanes), qd, qdd and `prescribed` are (n, lanes). Stores the multipliers in MULTIPLIER, N or N m.
    """
    hybrid_dynamics(model, q, qd, loads, qdd, prescribed, work, k)
    update_rows(model, constraints, q, qd, work, k)
    add_constraint_forces(model, constraints, qdd, work, k)
    for i in range(model.parent.shape[0]):
        acceleration_or_force(i, model, qd, loads, qdd, prescribed, work, k)


@kernel
def add_constraint_forces(model, constraints, qdd, work, k):
    """Compute the multipliers from the accelerations without constraints, and add their forces to u (FORCE).

    `qdd` (n, lanes) and A hold these accelerations.
    """
    table = constraints.tables.table
    factor_constraints(model, constraints, work, k)
    for c in range(table.shape[1]):
        for row in range(table[closure.ROW, c], table[closure.ROW, c] + table[closure.ROW_COUNT, c]):
            acceleration = row_of_motion(c, row, constraints, qdd, work, k) + constraints.rows[row, equation.BIAS, k]
            constraints.rows[row, equation.TARGET, k] = -acceleration
    add_relaxation(model, constraints, k)
    solve_multipliers(constraints, work, k)
    for i in range(model.parent.shape[0]):
        work.dof[i, frame.FORCE, k] = work.dof[i, frame.FORCE, k] + constraints.joint_sums[i, k]


@kernel
def add_relaxation(model, constraints, k):
    """Subtract 2 / t dphi/dt + phi / t^2 from TARGET of the rows of compliant constraints (`constraint_solver`)."""
    table, rows = constraints.tables.table, constraints.rows
    for c in range(table.shape[1]):
        if table[closure.COMPLIANT, c] == 1:
            inverse = inverse_relaxation_time(c, model, constraints, k)
            for row in range(table[closure.ROW, c], table[closure.ROW, c] + table[closure.ROW_COUNT, c]):
                rate = rows[row, equation.RATE, k]
                relaxed = inverse * (rate + rate + inverse * rows[row, equation.RESIDUAL, k])
                rows[row, equation.TARGET, k] = rows[row, equation.TARGET, k] - relaxed


@kernel
def ignore_compliant_rows(constraints, k):
    """Set TARGET of the rows of compliant constraints to zero: projections keep these constraints as they are."""
    sizes = constraints.tables.sizes
    for row in range(sizes[closure.RIGID_ROWS], sizes[closure.CONSTRAINT_ROWS]):
        constraints.rows[row, equation.TARGET, k] = constant_like(constraints.rows, 0.0)


@routine
def project_state(model, constraints, q, qd, work, active, moves_velocities, k):
    """Move the state (q, qd) to the nearest state that satisfies the constraints, in the metric of inertia.

    Uses Newton's method with the factors of the last dynamics, which belong to a nearby state:

        delta q = - H^-1 J^T (J H^-1 J^T)^-1 phi,  delta qd = - H^-1 J^T (J H^-1 J^T)^-1 J qd

    q is (nq, lanes), qd is (n, lanes). Velocities change only if `moves_velocities` is true. Lanes in which the number
    `active` is not positive keep their states.
    Sets FLAG_ERROR, and FLAG_OPEN in the lanes that remain open.

    Source: Eich (1993), "Convergence results for a coordinate projection method".
    """
    flags = constraints.flags
    zero, one = constant_like(q, 0.0), constant_like(q, 1.0)
    is_active = active > zero
    condition, unit = flags[closure.FLAG_CONDITION, k], constant_like(q, epsilon(q))
    # near singular configurations, the error of the state is the residual divided by FLAG_CONDITION
    goal = max(constant_like(q, NEGLIGIBLE) * condition, constant_like(q, ROUND_OFF)) * unit
    is_moving, before, earlier = is_active, full_like(active, np.inf), full_like(active, np.inf)
    farthest, speed_error = zeros_like(active), zeros_like(active)
    for _ in range(MAX_PROJECTIONS):
        move_and_update_rows(model, constraints, q, qd, work, k)
        place_error = largest_error(constraints, equation.RESIDUAL, equation.SCALE, unit, k)
        if moves_velocities:
            speed_error = largest_error(constraints, equation.RATE, equation.SPEED, unit, k)
        error = larger(place_error, speed_error)
        flags[closure.FLAG_ERROR, k] = select(is_moving, error, flags[closure.FLAG_ERROR, k])
        # If two iterations together do not halve the error, it is round-off. A single iteration may fail to halve it,
        # because the change of the positions also changes the rates.
        is_moving = is_moving & (error > goal) & (error + error < earlier)
        earlier, before = before, error
        if not any_lane(is_moving):
            break
        moves = is_moving & (place_error > goal)
        if any_lane(moves):
            compute_correction(model, constraints, equation.RESIDUAL, work, k)
            for i in range(qd.shape[0]):
                farthest = select(moves, max(farthest, abs(constraints.changes[i, k])), farthest)
            move_positions(model, constraints, q, moves, k)
        moves = is_moving & (speed_error > goal)
        if any_lane(moves):
            compute_correction(model, constraints, equation.RATE, work, k)
            for i in range(qd.shape[0]):
                qd[i, k] = qd[i, k] + select(moves, constraints.changes[i, k], zero)
    apply_gravity(model, work, k)
    is_closed = flags[closure.FLAG_ERROR, k] <= constant_like(q, ACCEPTED_ROUND_OFF * epsilon(q))
    # near a singular configuration, a longer way could lead to another branch
    is_near = farthest <= constant_like(q, LONGEST_WAY) * condition
    reason = select(is_near, select(is_closed, zero, one), one + one)
    flags[closure.FLAG_OPEN, k] = select(is_active, reason, zero)


@routine
def compute_correction(model, constraints, column, work, k):
    """Compute `changes` (n, lanes) that remove the residuals or the rates in `column` of the rows. Writes A.

    They are in rad or m for residuals, and in rad/s or m/s for rates.
    """
    rows = constraints.rows
    for row in range(rows.shape[0]):
        rows[row, equation.TARGET, k] = -rows[row, column, k]
    ignore_compliant_rows(constraints, k)
    solve_multipliers(constraints, work, k)
    respond_to_multipliers(model, constraints, work, k)


@routine
def remove_normal_part(model, constraints, q, change_q, change_qd, work, k):
    """Remove the part of a change of the state that the projection corrects: e - H^-1 J^T (J H^-1 J^T)^-1 J e.

    `change_q` (nq, lanes) and `change_qd` (n, lanes) are changes of a state close to the state of the last dynamics;
    q (nq, lanes) are its positions. Reads the forces of the rows; writes A.
    """
    n, changes, moves = change_qd.shape[0], constraints.changes, constraints.moves
    tangents_of_rates(model, q, change_q, moves, k)
    for part in range(2):
        remove_gravity(model, work, k)
        for i in range(n):
            changes[i, k] = moves[i, k] if part == 0 else change_qd[i, k]
            carry_change(i, model, changes, work, k)
        store_targets_of_changes(constraints, work, k)
        ignore_compliant_rows(constraints, k)
        solve_multipliers(constraints, work, k)
        respond_to_multipliers(model, constraints, work, k)
        for i in range(n):
            if part == 0:
                changes[i, k] = moves[i, k] + changes[i, k]
            else:
                change_qd[i, k] = change_qd[i, k] + changes[i, k]
        if part == 0:
            position_rates(model, q, changes, change_q, k)
    apply_gravity(model, work, k)


@kernel
def carry_change(i, model, changes, work, k):
    """Compute the motion of frame i due to changes (n, lanes) of positions or velocities, as A.

    Reads R, LEVER and the parent's A.
    """
    dof = work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    a = motion_at_tip(load_motion(dof, model.parent[i], frame.A, k), load3(dof, i, frame.LEVER, k))
    store_spatial(dof, i, frame.A, k, add_joint_motion(model.joint[i], a, axis, advance, changes[i, k]))


@kernel
def store_targets_of_changes(constraints, work, k):
    """Set TARGET of all rows to - J e, for the changes e (`constraints.changes`) whose motions are in A."""
    table, rows = constraints.tables.table, constraints.rows
    for c in range(table.shape[1]):
        for row in range(table[closure.ROW, c], table[closure.ROW, c] + table[closure.ROW_COUNT, c]):
            rows[row, equation.TARGET, k] = -row_of_motion(c, row, constraints, constraints.changes, work, k)


@kernel
def largest_error(constraints, value, scale, smallest, k):
    """Return the largest number in column `value` of the rows, relative to column `scale`; NaN if one is not finite.

    The columns are RESIDUAL and SCALE, or RATE and SPEED.

    A dependent row has the round-off of the rows that imply it. Its scale is the largest scale of all points,
    directions or couplers. `smallest`, in m, rad, m/s and rad/s, is added to all scales, because the scales of couplers
    at zero and of parts at rest are zero or round-off.
    """
    table, rows, zero = constraints.tables.table, constraints.rows, constant_like(constraints.rows, 0.0)
    error = zeros_like(rows[0, equation.RESIDUAL, k])
    for sort in range(3):
        largest = zeros_like(error)
        for c in range(table.shape[1]):
            start, end = rows_of_sort(table, c, sort)
            for row in range(start, end):
                largest = max(largest, rows[row, scale, k])
        for c in range(table.shape[1]):
            start, end = rows_of_sort(table, c, sort)
            for row in range(start, end):
                is_kept = rows[row, equation.KEPT, k] > zero
                size = smallest + select(is_kept, rows[row, scale, k], largest)
                error = larger(error, abs(rows[row, value, k]) / size)
    return error


@kernel
def rows_of_sort(table, c, sort):
    """Return the range of the rows of a rigid constraint c that are points (sort 0), directions (1) or couplers (2).

    The range of a compliant constraint is empty. `table` is `ConstraintTables.table`.
    """
    first, end = table[closure.ROW, c], table[closure.ROW, c] + table[closure.ROW_COUNT, c]
    if table[closure.COMPLIANT, c] == 1:
        return first, first
    if table[closure.TYPE, c] in closure.TYPES_OF_JOINTS:
        return first, end if sort == COUPLERS else first
    end_of_points = first + table[closure.POINT_ROWS, c]
    if sort == POINTS:
        return first, end_of_points
    return end_of_points, end if sort == DIRECTIONS else end_of_points


@kernel
def larger(a, b):
    """Return the larger number, or NaN if one of them is NaN."""
    return select(a >= b, a, b + nan_unless_finite(a))


@kernel
def move_positions(model, constraints, q, is_moving, k):
    """Move q (nq, lanes) along the tangent space by `changes`, rad or m, in the lanes in which `is_moving` is true."""
    moves = constraints.moves
    add_step(model, q, constraints.changes, moves, moves, k)
    for j in range(q.shape[0]):
        q[j, k] = select(is_moving, moves[j, k], q[j, k])
