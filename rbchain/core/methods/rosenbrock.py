"""Rosenbrock methods: linearly implicit steps for stiff systems. `linearized_rate` describes the linear systems.

The stages need the exact Jacobian. Where central differences replace derivatives, their relative error is about
epsilon^(2/3), 4e-11 in float64. It adds the same fraction of the terms of second order to the error of a step.

Source: Hairer and Wanner (1996), *Solving Ordinary Differential Equations II*, section IV.7.

`interface` describes the arguments.
"""

from ...compiling.jit import kernel, routine
from ..algorithms.derivatives import BY_INPUT, BY_Q
from ..algorithms.lu import solve
from ..lanes.lanes import constant_like, epsilon, nan_unless_finite, select, zeros_like
from ..linear.linear_memory import linearized_rate_in, linearized_rate_memory
from ..linear.linearized_rate import differentiate_rate, reads_dynamics
from ..linear.linearized_tree import follows_tree, solve_along_tree
from ..linear.sensitivities import error_norm
from ..linear.step_matrix import divide_positions, factorize_step
from ..loops.constraint_hooks import reduce_error
from ..sample import control_layout as controls
from ..sample.rate import (
    count_drives,
    dof_of_drive,
    evaluate,
    has_exact_derivatives,
    integral_row,
    moves_freely,
)
from ..tree.kinematics import normalize_positions, position_rates, tangents_of_rates
from .interface import MethodFunctions, error_or_failure
from .runge_kutta import combine
from .tableaus import RosenbrockTableau

MAX_DEFECT = 0.5  # of the end of a step, as a fraction of the change of the rate that J describes
ROUND_OFF = 50.0  # increments below this multiple of the machine precision are round-off
# An error after which the step control repeats the step with 0.38 of its length. After half of the length, the next
# step would end at the same place, where the method has failed.
ERROR_OF_FAILURE = 158.0


@routine
def compute_rosenbrock_step(block, stepper, tableau, tolerances, k):
    """Compute the increments of a step, its end y_new, the rate there, and the difference from the embedded method."""
    y, y_new, change, rates, linear = stepper.y, stepper.y_new, stepper.change, stepper.rates, stepper.linear
    t, last = stepper.control[controls.TIME, k], tableau.c.shape[0] - 1
    zero, one, h = constant_like(y, 0.0), constant_like(y, 1.0), stepper.control[controls.H, k]
    h = select(h > zero, h, one + nan_unless_finite(h))  # idle lanes have no step
    a = one / (constant_like(y, tableau.gamma) * h)
    differentiate_rate(block, linear, y, rates[0], t, h, k)
    factorize_step(block, linear, y, a, k)
    for stage in range(1, last):
        if stage > 1:
            add_increments(tableau, stage, y, rates, y_new, k)
            evaluate(block, y_new, t + constant_like(h, tableau.c[stage]) * h, linear.rates[0], k)
        for j in range(y.shape[0]):
            right = linear.rates[0, j, k] if stage > 1 else rates[0, j, k]
            right = right + combine(tableau.C[stage], stage, rates, j, k) / h
            rates[stage, j, k] = right + h * (constant_like(h, tableau.d[stage]) * linear.by_time[j, k])
        solve_stage(block, linear, y, rates[stage], a, k)
    add_increments(tableau, last, y, rates, y_new, k)
    normalize_positions(block.model, y_new, k)
    evaluate(block, y_new, t + h, rates[last], k)
    judge_end(block, stepper, tableau, tolerances, a, h, k)
    for j in range(y.shape[0]):
        change[j, k] = combine(tableau.error, tableau.error.shape[0], rates, j, k)


@kernel
def judge_end(block, stepper, tableau, tolerances, a, h, k):
    """Set controls.FAILURE in lanes in which J does not describe the forces at the end of the step.

    The last increment u satisfies (a - J) u = r + f(g), at the state g before it. If J is constant, J u is the change
    of the rate to the end, so the defect r + f(end) - a u is zero. A step fails if its defect is above the tolerance
    and half of J u, unless u is round-off. Then J is much stiffer than the motion, for example at an elastic stop that
    the body leaves, and makes all increments and the estimate of the error small.

    With closed loops, only the parts along the constraints count, as for the error. Near singular configurations, J is
    very stiff across the constraints, and does not describe the forces beyond such a configuration. The projection
    corrects this part.
    """
    rates, change, linear, control = stepper.rates, stepper.change, stepper.linear, stepper.control
    last = tableau.c.shape[0] - 1
    for j in range(change.shape[0]):
        change[j, k] = h * (rates[last, j, k] - a * rates[last - 1, j, k])
        change[j, k] = change[j, k] + combine(tableau.C[last - 1], last - 1, rates, j, k)
    reduce_error(block, stepper.y_new, change, k)
    defect = error_norm(block, change, stepper.y, stepper.y_new, tolerances, k)
    for j in range(change.shape[0]):
        linear.rates[0, j, k] = h * (rates[last, j, k] - linear.rates[0, j, k])
    reduce_error(block, stepper.y_new, linear.rates[0], k)
    for j in range(change.shape[0]):
        change[j, k] = change[j, k] - linear.rates[0, j, k]
    expected = error_norm(block, change, stepper.y, stepper.y_new, tolerances, k)
    size = error_norm(block, rates[last - 1], stepper.y, stepper.y_new, tolerances, k)
    one, zero = constant_like(h, 1.0), constant_like(h, 0.0)
    round_off = constant_like(h, ROUND_OFF) * epsilon(h) / constant_like(h, max(tolerances.rtol, tolerances.atol))
    fails = select(defect > max(one, constant_like(h, MAX_DEFECT) * expected), one, zero)
    fails = select(size > round_off, fails, zero)
    control[controls.FAILURE, k] = constant_like(h, ERROR_OF_FAILURE) * fails


@kernel
def add_increments(tableau, stage, y, rates, result, k):
    """Compute the state of a stage, or of the end of the step, from the increments before it.

    Writes `result` (rows, lanes). The increments are in rates[1:].
    """
    for j in range(y.shape[0]):
        result[j, k] = y[j, k] + combine(tableau.A[stage], stage, rates, j, k)


@routine
def solve_stage(block, linear, y, right, a, k):
    """Replace the right-hand side (rows, lanes) of a stage, per s, by its increments. y (rows, lanes) belongs to J."""
    nq, n, model = block.q.shape[0], block.qd.shape[0], block.model
    u, w = right[:nq], right[nq : nq + n]
    divide_positions(block, linear, y, u, a, k)
    tangents_of_rates(model, y[:nq], u, linear.tangent, k)
    for d in range(count_drives(block)):
        row = integral_row(block, d)
        if row >= 0:
            right[row, k] = (right[row, k] - u[model.coordinate[dof_of_drive(block, d)], k]) / a
    if follows_tree(block, linear):
        solve_along_tree(block, linear, right, k)
    else:
        solve_with_matrix(block, linear, right, k)
    for i in range(n):
        linear.direction[i, k] = w[i, k] if moves_freely(block, i) else zeros_like(w[i, k])
    position_rates(model, y[:nq], linear.direction, linear.displacement, k)
    divide_positions(block, linear, y, linear.displacement, a, k)
    for j in range(nq):
        u[j, k] = u[j, k] + linear.displacement[j, k]
    for d in range(count_drives(block)):
        row = integral_row(block, d)
        if row >= 0:
            change = linear.displacement[model.coordinate[dof_of_drive(block, d)], k] / a
            right[row, k] = right[row, k] - change


@kernel
def solve_with_matrix(block, linear, right, k):
    """Replace the right-hand side s of the velocities by the increments w.

    `right` (rows, lanes) has the increments of the integrals, p_0. `linear.tangent` (n, lanes) has T u_0.
    """
    nq, n = block.q.shape[0], block.qd.shape[0]
    w, is_exact = right[nq : nq + n], has_exact_derivatives(block)
    for i in range(n):
        total = w[i, k]
        if is_exact:
            total = zeros_like(total)
            for j in range(n):
                total = total + linear.derivatives[BY_INPUT, i, j, k] * w[j, k]
        for j in range(n):
            total = total - linear.derivatives[BY_Q, i, j, k] * linear.tangent[j, k]
        linear.direction[i, k] = total
    for i in range(n):
        w[i, k] = linear.direction[i, k]
    for row in range(nq + n, right.shape[0]):
        for i in range(n):
            w[i, k] = w[i, k] + linear.by_integral[i, row - nq - n, k] * right[row, k]
    solve(linear.factors, linear.pivots, w, k)


@kernel
def evaluations_of_rosenbrock_step(block, stepper, tableau, lane):
    """Return the number of evaluations of the dynamics in a step, and for its Jacobian."""
    return tableau.c.shape[0] - 2 + evaluations_of_jacobian(block, stepper.linear)


@kernel
def evaluations_of_jacobian(block, linear):
    """Return the number of evaluations of the dynamics for a Jacobian."""
    columns = 2 * linear.pivots.shape[0] + linear.by_integral.shape[1]
    return evaluations_of_exact_derivatives(block) if has_exact_derivatives(block) else 2 * columns


@kernel
def evaluations_of_exact_derivatives(block):
    """Return the number of evaluations of the dynamics for the exact derivatives."""
    return 1 if reads_dynamics(block) else 0


@kernel
def interpolate_rosenbrock(tableau, y, y_new, h, rates, theta, j, k):
    """Compute row j of the continuous extension at t + theta h: see `RosenbrockTableau`."""
    stages, one = tableau.dense.shape[1], constant_like(theta, 1.0)
    bend = combine(tableau.dense[0], stages, rates, j, k) + theta * (
        combine(tableau.dense[1], stages, rates, j, k) + theta * combine(tableau.dense[2], stages, rates, j, k)
    )
    return y[j, k] + theta * (y_new[j, k] - y[j, k] + (one - theta) * bend)


@kernel
def polynomial_of_rosenbrock(tableau, y, y_new, h, rates, j, k):
    """Return the coefficients of theta to theta^4 in the continuous extension of row j: see `RosenbrockTableau`."""
    stages, change = tableau.dense.shape[1], y_new[j, k] - y[j, k]
    first = combine(tableau.dense[0], stages, rates, j, k)
    second = combine(tableau.dense[1], stages, rates, j, k)
    third = combine(tableau.dense[2], stages, rates, j, k)
    return change + first, second - first, third - second, -third


def allocate_linear_systems(tableau, topology, tables, integrals, state_size, width, dtype, blocks):
    """Allocate the memory of a LinearizedRate for each block."""
    return linearized_rate_memory(topology.shape[1], tables, integrals, state_size, width, dtype, blocks)


@kernel
def carve_linear_systems(tableau, memory, b, tables, nq, size):
    """Return the LinearizedRate of block b."""
    return linearized_rate_in(memory[0][b], memory[1][b], tables, nq, size)


ROSENBROCK = MethodFunctions(
    tableau=RosenbrockTableau,
    take_step=compute_rosenbrock_step,
    evaluations=evaluations_of_rosenbrock_step,
    interpolate=interpolate_rosenbrock,
    polynomial=polynomial_of_rosenbrock,
    error=error_or_failure,
    allocate=allocate_linear_systems,
    carve=carve_linear_systems,
    has_quartic=True,
    has_large_stages=True,
)
