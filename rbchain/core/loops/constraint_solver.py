"""Multipliers of constraints: factor J H^-1 J^T, and solve for the forces that give the rows an acceleration.

The articulated-body algorithm factors the mass matrix. A unit multiplier of a row changes u of each dof on the paths
from its bodies to the roots. Let W contain these changes, with one row for each row of J. Then

    J H^-1 J^T = W D^-1 W^T,   H^-1 J^T lambda follows from u = W^T lambda by one outward sweep.

Sources: Featherstone (2008), section 8.4; Rodriguez, Jain and Kreutz-Delgado (1991) for the factors of the inverse mass
matrix. The rows are ordered so that constraints of neighboring loops follow each other; the factorization then fills
only the envelope of the matrix (`constraint_factors`).

Dependent rows get the multiplier zero, which does not change the accelerations. `constraint_minimum_norm` distributes
the forces among dependent rows.

A light or massless body between two constraints would make H^-1 so large that heavy bodies are lost in the round-off of
J H^-1 J^T. The dofs of such bodies therefore get an added inertia e (`model.added_inertias`), like the inertia of a
rotor. For each added inertia, a further row with the multiplier y cancels the force e qdd. The solution does not depend
on e. Let F have a column of the identity matrix for each added inertia, let C = 1 / e, and let H + F e F^T replace H.
Then

    (H + F e F^T) qdd + h = tau + J^T lambda + F y,   J qdd + dJ/dt qd = 0,   F^T qdd - C y = 0.

The matrix [J; F^T] (H + F e F^T)^-1 [J^T, F] - [0, 0; 0, C] is quasi-definite. Its factors L E L^T exist in the order
of the rows, with negative pivots for y (Vanderbei 1995, "Symmetric quasi-definite matrices").

A compliant row with the compliance c and the relaxation time t gives way: instead of J qdd + dJ/dt qd = 0,

    phi + 2 t dphi/dt + t^2 d^2phi/dt^2 = - c lambda.

This adds c / t^2 to its diagonal entry, so such rows never depend on each other. At rest, c lambda = - phi, as in
a spring. The forces of a motion that is slow compared with t differ by terms of first order in t. For c = 0, this is
the stabilization of Baumgarte (1972), "Stabilization of constraints and integrals of motion in dynamical systems".

W is stored by supports in `Constraints.responses` (w, lanes). The right-hand side and the solution are the columns
TARGET and MULTIPLIER of `Constraints.rows`.
"""

import numpy as np

from ...compiling.jit import kernel, routine
from ..lanes.lanes import any_lane, constant_like, epsilon, full_like, nan_unless_finite, select, zeros_like
from ..spatial.storage import load3, load9, load_force, load_motion, store_spatial
from ..spatial.vectors import motion_at_tip, power, rotate, scale_force, size, subtract_forces, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import add_joint_motion, joint_force
from ..tree.kinematics import force_on_parent
from ..tree.layout import PRISMATIC, REVOLUTE, parameter, parameter3, remove_gravity
from . import constraint_layout as closure, equation_layout as equation
from .constraint_factors import DEPENDENT_ROW_FACTOR, factor_matrix, select_rows, substitute

# A response u below this multiple of epsilon times its largest possible value is round-off. Residuals up to the same
# multiple are accepted, so positions are closed to this accuracy.
RESPONSE_ROUND_OFF = 65536.0
# Rows whose diagonal entries are below this multiple of epsilon times their noise cannot be solved.
NOISE_LIMIT = 1e4


@routine
def factor_constraints(model, constraints, work, k):
    """Compute the responses of all rows, and factor J H^-1 J^T = L E L^T. Reads R, LEVER, U and DINV.

    In the lanes with FLAG_DECIDES, it decides again which rows are independent.
    """
    for c in range(constraints.tables.table.shape[1]):
        for side in range(2):
            respond(c, side, model, constraints, work, k)
    assemble_matrix(constraints, work, k)
    store_scales_of_pivots(model, constraints, work, k)
    factor_matrix(constraints, True, k)
    flags = constraints.flags
    if any_lane(flags[closure.FLAG_UNCERTAIN, k] > constant_like(flags, 0.0)):
        assemble_matrix(constraints, work, k)
        for lane in range(flags.shape[1]):
            if flags[closure.FLAG_UNCERTAIN, lane] > constant_like(flags, 0.0):
                select_rows(constraints, lane)
        factor_matrix(constraints, False, k)


@kernel
def respond(c, side, model, constraints, work, k):
    """Add the responses of constraint c to its force on one body (side 0: a, 1: b).

    u = motor + S . f,  f_parent = f - U u / D
    """
    table, paths, rows, passing = (
        constraints.tables.table,
        constraints.tables.paths,
        constraints.rows,
        constraints.passing,
    )
    first, end, count, width = (
        table[closure.PATH_A + side, c],
        table[closure.PATH_END_A + side, c],
        table[closure.ROW_COUNT, c],
        table[closure.SUPPORT_COUNT, c],
    )
    responses, at, row = constraints.responses, table[closure.RESPONSE, c], table[closure.ROW, c]
    if side == 0:
        for entry in range(at, at + count * width):
            responses[entry, k] = constant_like(responses, 0.0)
    for r in range(count):
        f = load_force(rows, row + r, equation.FORCE_A + side * (equation.FORCE_B - equation.FORCE_A), k)
        store_spatial(passing, r, 0, k, f)
    for step in range(first, end):
        i, slot = paths[0, step], paths[1, step]
        axis, advance = z_axis(load9(work.dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
        U, Dinv = load_force(work.dof, i, frame.U, k), work.dof[i, frame.DINV, k]
        for r in range(count):
            f = load_force(passing, r, 0, k)
            u = joint_force(model.joint[i], axis, advance, f)
            if step == first:
                u = u + rows[row + r, equation.MOTOR_A + side, k]
            entry = at + r * width + slot
            responses[entry, k] = responses[entry, k] + u
            store_spatial(
                passing, r, 0, k, force_on_parent(i, subtract_forces(f, scale_force(Dinv * u, U)), model, work, k)
            )


@kernel
def assemble_matrix(constraints, work, k):
    """Compute the lower triangle of J H^-1 J^T = W D^-1 W^T within its envelope, less the compliances."""
    tables, matrix, responses = constraints.tables, constraints.matrix, constraints.responses
    table, envelope, shared = tables.table, tables.envelope, tables.shared
    for entry in range(matrix.shape[0]):
        matrix[entry, k] = constant_like(matrix, 0.0)
    for pair in range(tables.pairs.shape[1]):
        c, d = tables.pairs[0, pair], tables.pairs[1, pair]
        for i in range(table[closure.ROW_COUNT, c]):
            row = table[closure.ROW, c] + i
            at_c = table[closure.RESPONSE, c] + i * table[closure.SUPPORT_COUNT, c]
            for j in range(i + 1 if c == d else table[closure.ROW_COUNT, d]):
                at_d = table[closure.RESPONSE, d] + j * table[closure.SUPPORT_COUNT, d]
                total = zeros_like(matrix[0, k])
                for s in range(tables.pairs[2, pair], tables.pairs[3, pair]):
                    Dinv = work.dof[shared[2, s], frame.DINV, k]
                    total = total + responses[at_c + shared[0, s], k] * (Dinv * responses[at_d + shared[1, s], k])
                matrix[envelope[closure.ENVELOPE_OFFSET, row] + table[closure.ROW, d] + j, k] = total
    for row in range(tables.sizes[closure.RIGID_ROWS], constraints.rows.shape[0]):
        at = envelope[closure.ENVELOPE_OFFSET, row] + row
        matrix[at, k] = matrix[at, k] - constraints.rows[row, equation.COMPLIANCE, k]


@kernel
def store_scales_of_pivots(model, constraints, work, k):
    """Compute the scale of each pivot: the largest entry of the diagonal among the rows of a point or of directions.

    Near a singular configuration, one of these rows may become small as a whole, while the others keep their size. All
    of them may be round-off, such as the rows of the directions of a hinge in a planar mechanism. The geometry shows
    this case: the responses of all dofs are then round-off of the lengths from which they are computed. The scale then
    becomes so large that these rows count as dependent, for all inertias. Only lanes that decide need this scale.
    """
    tables, rows = constraints.tables, constraints.rows
    table, zero = tables.table, constant_like(rows, 0.0)
    decides = constraints.flags[closure.FLAG_DECIDES, k] > zero
    for c in range(table.shape[1]):
        first, points, count = table[closure.ROW, c], table[closure.POINT_ROWS, c], table[closure.ROW_COUNT, c]
        if table[closure.COMPLIANT, c] == 1:  # its rows are always independent
            continue
        has_round_off = table[closure.TYPE, c] not in closure.TYPES_OF_JOINTS
        for part in range(2):
            start, end = (0, points) if part == 0 else (points, count)
            if start == end:
                continue
            largest = zeros_like(constraints.matrix[0, k])
            for row in range(first + start, first + end):
                largest = max(largest, constraints.matrix[tables.envelope[closure.ENVELOPE_OFFSET, row] + row, k])
            if has_round_off and any_lane(decides):
                scale = scale_of_geometry(c, start, end, largest, model, constraints, work, k)
                largest = select(decides, scale, largest)
            for row in range(first + start, first + end):
                rows[row, equation.PIVOT_SCALE, k] = largest


@kernel
def scale_of_geometry(c, start, end, largest, model, constraints, work, k):
    """Return the scale of the pivots of the rows of a point or of directions.

    `largest` is their largest diagonal entry. The result is NaN if round-off of the responses dominates the diagonal
    entries of rows that are not round-off themselves.
    """
    rows, one = constraints.rows, constant_like(constraints.rows, 1.0)
    smallest = constant_like(rows, RESPONSE_ROUND_OFF * RESPONSE_ROUND_OFF / DEPENDENT_ROW_FACTOR * epsilon(rows))
    square, noise = sizes_of_responses(c, start, end, model, constraints, work, k)
    least = constant_like(rows, (RESPONSE_ROUND_OFF * epsilon(rows)) ** 2 / 2.0)
    scale = largest * max(one + nan_unless_finite(square), smallest / max(square, least))
    is_lost = scale < constant_like(rows, NOISE_LIMIT * epsilon(rows)) * noise
    return select((least + least < square) & is_lost, constant_like(rows, np.nan) * noise, scale)


@kernel
def sizes_of_responses(c, start, end, model, constraints, work, k):
    """Return the square of the largest relative response of the rows of a point or of directions, and their noise.

    A response u is relative to its largest possible value: the distance from the joint to the point for the force of a
    point, and 1 for the moment of a direction. The noise is the part of the diagonal entries that round-off of the
    responses causes, epsilon times the sum of their squares divided by D. Dofs that move both bodies do not count.
    """
    table, paths, dof = constraints.tables.table, constraints.tables.paths, work.dof
    zero, one, responses = constant_like(dof, 0.0), constant_like(dof, 1.0), constraints.responses
    at, width = table[closure.PARAMETERS, c], table[closure.SUPPORT_COUNT, c]
    is_direction = start >= table[closure.POINT_ROWS, c]
    found, noise = nan_unless_finite(dof[0, frame.DINV, k]), nan_unless_finite(dof[0, frame.DINV, k])
    for side in range(2):
        point = closure.PARAM_POINT_A + side * (closure.PARAM_POINT_B - closure.PARAM_POINT_A)
        own = rotate(load9(dof, table[closure.DOF_A + side, c], frame.R, k), parameter3(model.parameters, at, point, k))
        distance = size(own)
        for step in range(table[closure.PATH_A + side, c], table[closure.OWN_END_A + side, c]):
            i, slot = paths[0, step], paths[1, step]
            bound = zeros_like(distance)
            if model.joint[i] != PRISMATIC:
                bound = bound + (full_like(distance, 1.0) if is_direction else distance * distance)
            if model.joint[i] != REVOLUTE and not is_direction:
                advance = parameter(model.parameters, i, param.ADVANCE, k)
                bound = bound + advance * advance
            square = zeros_like(distance)
            for r in range(start, end):
                u = responses[table[closure.RESPONSE, c] + r * width + slot, k]
                square = max(square, u * u)
            found = max(found, select(bound > zero, square / select(bound > zero, bound, one), zero))
            noise = noise + constant_like(dof, epsilon(dof)) * (dof[i, frame.DINV, k] * bound)
            distance = distance + size(load3(dof, i, frame.LEVER, k))
    return found, noise


@routine
def solve_multipliers(constraints, work, k):
    """Solve J H^-1 J^T lambda = TARGET for MULTIPLIER, with one step of iterative refinement; writes `joint_sums`."""
    rows, envelope = constraints.rows, constraints.tables.envelope
    first, offset = envelope[closure.ENVELOPE_FIRST], envelope[closure.ENVELOPE_OFFSET]
    for row in range(rows.shape[0]):
        rows[row, equation.SOLUTION, k] = rows[row, equation.TARGET, k]
        rows[row, equation.MULTIPLIER, k] = constant_like(rows, 0.0)
    for refinement in range(2):
        if refinement == 1:
            store_rest(constraints, work, k)
        substitute(constraints.matrix, first, offset, rows, equation.PIVOT, rows.shape[0], k)
        for row in range(rows.shape[0]):
            rows[row, equation.MULTIPLIER, k] = rows[row, equation.MULTIPLIER, k] + rows[row, equation.SOLUTION, k]
        sum_responses(constraints, k)


@kernel
def sum_responses(constraints, k):
    """Compute joint_sums = W^T MULTIPLIER (n, lanes)."""
    tables, sums = constraints.tables, constraints.joint_sums
    table = tables.table
    for i in range(sums.shape[0]):
        sums[i, k] = constant_like(sums, 0.0)
    for c in range(table.shape[1]):
        width, first = table[closure.SUPPORT_COUNT, c], table[closure.SUPPORT, c]
        for r in range(table[closure.ROW_COUNT, c]):
            multiplier, at = (
                constraints.rows[table[closure.ROW, c] + r, equation.MULTIPLIER, k],
                table[closure.RESPONSE, c] + r * width,
            )
            for slot in range(width):
                i = tables.support[first + slot]
                sums[i, k] = sums[i, k] + multiplier * constraints.responses[at + slot, k]


@kernel
def store_rest(constraints, work, k):
    """Compute SOLUTION = TARGET - W D^-1 joint_sums + C MULTIPLIER, the right-hand side that remains."""
    tables, sums, rows = constraints.tables, constraints.joint_sums, constraints.rows
    table = tables.table
    for c in range(table.shape[1]):
        width, first = table[closure.SUPPORT_COUNT, c], table[closure.SUPPORT, c]
        for r in range(table[closure.ROW_COUNT, c]):
            row, at = table[closure.ROW, c] + r, table[closure.RESPONSE, c] + r * width
            rest = rows[row, equation.TARGET, k]
            for slot in range(width):
                i = tables.support[first + slot]
                rest = rest - constraints.responses[at + slot, k] * (work.dof[i, frame.DINV, k] * sums[i, k])
            rows[row, equation.SOLUTION, k] = rest
    for row in range(tables.sizes[closure.RIGID_ROWS], rows.shape[0]):
        softened = rows[row, equation.COMPLIANCE, k] * rows[row, equation.MULTIPLIER, k]
        rows[row, equation.SOLUTION, k] = rows[row, equation.SOLUTION, k] + softened


@routine
def respond_to_multipliers(model, constraints, work, k):
    """Compute changes = H^-1 J^T lambda (n, lanes) from joint_sums (n, lanes), by an outward sweep.

    Reads R, LEVER, U and DINV; writes A.
    """
    dof, changes = work.dof, constraints.changes
    remove_gravity(model, work, k)
    for i in range(model.parent.shape[0]):
        axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
        a = motion_at_tip(load_motion(dof, model.parent[i], frame.A, k), load3(dof, i, frame.LEVER, k))
        change = dof[i, frame.DINV, k] * (constraints.joint_sums[i, k] - power(load_force(dof, i, frame.U, k), a))
        changes[i, k] = change
        store_spatial(dof, i, frame.A, k, add_joint_motion(model.joint[i], a, axis, advance, change))
