"""Residuals of constraints as further errors of inverse kinematics (`algorithms.inverse_kinematics`)."""

import math

from ...compiling.jit import is_given, kernel, only_if, routine
from ..algorithms.inverse_kinematics import START, WEIGHT_OF_CONSTRAINTS
from ..lanes.lanes import constant_like, full_like, select, zeros_like
from . import constraint_layout as closure, equation_layout as equation
from .constraint_jacobian import constraint_jacobian
from .constraint_rows import is_turned_over, update_rows


@only_if(lambda constraints, *_: is_given(constraints))
@routine
def add_constraints(constraints, model, problem, search, q, work, k):
    """Add the residuals of all constraints to the energy, the gradient and the normal matrix of a `Search`.

    Rows in m are divided by the size of the mechanism, as the errors of the targets are. Sets `search.gap`. Reads R,
    LEVER and V, which is zero; q is (nq, lanes).
    """
    table, rows, n = constraints.tables.table, constraints.rows, model.parent.shape[0]
    update_rows(model, constraints, q, search.rest, work, k)
    for row in range(search.J.shape[0]):
        for i in range(n):
            search.J[row, i, k] = constant_like(q, 0.0)
    constraint_jacobian(model, constraints, search.J, closure.ROW, work, k)
    zero, inverse = constant_like(q, 0.0), search.goals[search.goals.shape[0] - 1, k]
    one = full_like(inverse, 1.0)
    start, count = search.state[START, k], constant_like(q, problem.starts.shape[0])
    forget_targets(search, start > count, k)
    weight = select(start == count, full_like(inverse, WEIGHT_OF_CONSTRAINTS), one)
    gap = zeros_like(inverse)
    for c in range(table.shape[1]):
        if table[closure.TYPE, c] == closure.COUPLER:
            couple_resistances(c, constraints, search.resistance, k)
        if table[closure.ALIGNED, c] < closure.NO_AXES:
            turned = is_turned_over(c, model, constraints, work, k)
            gap = select(turned > zero, constant_like(q, math.inf), gap)
        for r in range(table[closure.ROW_COUNT, c]):
            row, share = table[closure.ROW, c] + r, inverse if r < table[closure.POINT_ROWS, c] else one
            residual = rows[row, equation.RESIDUAL, k]
            gap = max(gap, abs(residual) * max(one, share))
            add_row(search, row, residual, weight * share, k)
    search.gap[0, k] = gap


@kernel
def couple_resistances(c, constraints, resistance, k):
    """Reduce the entry of W of the faster joint of a coupler, so that its motion counts as much as the slower one."""
    table = constraints.tables.table
    i, j = table[closure.DOF_A, c], table[closure.DOF_B, c]
    ratio = constraints.rows[table[closure.ROW, c], equation.MOTOR_A, k]
    square = ratio * ratio
    resistance[j, k] = min(resistance[j, k], resistance[i, k] / square)
    resistance[i, k] = min(resistance[i, k], resistance[j, k] * square)


@routine
def forget_targets(search, is_closing, k):
    """Set the energy, the gradient and the normal matrix to zero in lanes in which `is_closing` is true."""
    zero = constant_like(search.energy, 0.0)
    search.energy[0, k] = select(is_closing, zero, search.energy[0, k])
    for i in range(search.gradient.shape[0]):
        search.gradient[i, k] = select(is_closing, zero, search.gradient[i, k])
        for j in range(i + 1):
            search.normal[i, j, k] = select(is_closing, zero, search.normal[i, j, k])


@routine
def add_row(search, row, residual, weight, k):
    """Add the residual of a row, m or rad, times its weight."""
    square = weight * weight
    search.energy[0, k] = search.energy[0, k] + constant_like(search.energy, 0.5) * square * residual * residual
    for i in range(search.gradient.shape[0]):
        own = square * search.J[row, i, k]
        search.gradient[i, k] = search.gradient[i, k] + own * residual
        for j in range(i + 1):
            search.normal[i, j, k] = search.normal[i, j, k] + own * search.J[row, j, k]
