"""Steps of the Radau IIA method: the stages satisfy the equations of collocation, which Newton's method solves.

With the increments Z = (z_1 ... z_s) of the stages, the rates F of the stages and the matrix W = `inverse` of
`RadauTableau`, the equations are F = W Z / h. A simplified Newton iteration has the same Jacobian J for all stages. The
matrix W is transformed to blocks, so that one real system and (s - 1) / 2 complex systems of the size of the state
remain:

    (W / h - 1 (x) J) dZ = F - W Z / h.

J is evaluated at the middle stage of the predicted step. The polynomial of the previous step predicts the stages. If a
step is much longer than the previous one, all stages are predicted to be at its start.

J can be much stiffer than the motion, for example at an elastic stop which the body leaves in the step. The changes and
every error that J filters are then small, although the forces do not balance. The defect of the last stage,
h f - (W Z)_s, is not filtered. A step fails if the iteration does not reduce its defect.

Lanes iterate together. A lane that has converged keeps its stages, so its result does not depend on other lanes.
`interface` describes the arguments; `step` is a RadauStep, and `rates` has the increments z_i in its entries 1 to s.

Source: Hairer and Wanner (1996), *Solving Ordinary Differential Equations II*, section IV.8.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import kernel, routine
from ..lanes.lane_memory import CACHE_LINE, aligned_start
from ..lanes.lane_records import lane_record
from ..lanes.lanes import constant_like, nan_unless_finite, select, zeros_like
from ..linear.complex_systems import (
    ComplexSystems,
    carve_complex_systems,
    complex_systems_size,
    factorize_complex_step,
    solve_complex_system,
)
from ..linear.linear_memory import linearized_rate_in, linearized_rate_memory, without_tree
from ..linear.linearized_rate import differentiate_by_state
from ..linear.sensitivities import error_norm
from ..linear.step_matrix import factorize_step
from ..sample import control_layout as controls
from ..sample.rate import evaluate
from ..tree.kinematics import normalize_positions
from .interface import MethodFunctions, error_or_failure
from .radau_error import estimate_error
from .radau_tableau import STAGES, RadauTableau
from .rosenbrock import evaluations_of_jacobian, solve_stage

MAX_ITERATIONS = 10
MAX_RATIO = 2.5  # of a step to the previous step, if the polynomial of the previous step predicts it
MIDDLE = (STAGES + 1) // 2  # the number of the middle stage
PAIRS = (STAGES - 1) // 2  # the number of complex systems
GROWTH_AT_START = 2.0  # the iteration fails if the ratio of the second change to the first one is larger
MAX_DEFECT = 0.1  # of the end, above the tolerance, as a fraction of the defect of the prediction
ERROR_OF_FAILURE = 25400.0  # as for "rosenbrock"
SLOW_CONVERGENCE = 6  # from this number of iterations on, the next step is not longer
GROWTH_FACTOR = 0.9  # of the step length: a rejected step takes more time than shorter steps

# Rows of `RadauStep.iteration`.
ROW_ACTIVE = 0  # 1 while a lane iterates
ROW_SIZE = 1  # norm of the largest changes of all stages in the last iteration
ROW_NEW_SIZE = 2  # the same for this iteration
ROW_COUNT = 3  # number of iterations
ROW_STEP = 4  # length of the step, s
ROW_PREVIOUS_STEP = 5  # length of the step of `polynomial`, s; 0 without one
ROW_FIRST_DEFECT, ROW_DEFECT = 6, 7  # norms of the defects of the prediction, and of the end
ROW_OFFSET = 8  # time from the end of the step of `polynomial` to the start of this step, as a fraction of that step
ITERATION_ROWS = 9


class RadauStep(NamedTuple):
    """Working memory of the steps. All arrays end in lanes.

    * `systems` are the ComplexSystems, PAIRS of them. Their LinearizedRate has the factors of the real system.
    * `residuals` and `changes` (STAGES, rows) are the residuals or changes of the stages, and these transformed.
    * `polynomial` (STAGES, rows) has the coefficients g of the last accepted step (`RadauTableau`).
    * `iteration` (ITERATION_ROWS,) is defined above.
    """

    systems: ComplexSystems
    residuals: Annotated[np.ndarray, STAGES, "rows"]
    changes: Annotated[np.ndarray, STAGES, "rows"]
    polynomial: Annotated[np.ndarray, STAGES, "rows"]
    iteration: Annotated[np.ndarray, ITERATION_ROWS]


radau_step_size, carve_radau_step = lane_record(RadauStep, "rows")


@routine
def compute_radau_step(block, stepper, tableau, tolerances, k):
    """Compute the increments of the stages of a step, its end y_new, the rate there, and the estimate of the error."""
    y, y_new, change, rates, step = stepper.y, stepper.y_new, stepper.change, stepper.rates, stepper.linear
    t, last, systems = stepper.control[controls.TIME, k], tableau.c.shape[0] - 1, stepper.linear.systems
    zero, one, h = constant_like(y, 0.0), constant_like(y, 1.0), stepper.control[controls.H, k]
    start_iteration(stepper, h, k)
    h = select(h > zero, h, one + nan_unless_finite(h))  # idle lanes have no step
    predict_stages(stepper, tableau, h, k)
    for iteration in range(MAX_ITERATIONS):
        for stage in range(1, STAGES + 1):
            for j in range(y.shape[0]):
                y_new[j, k] = y[j, k] + rates[stage, j, k]
            time = t + constant_like(h, tableau.c[stage]) * h
            evaluate(block, y_new, time, step.residuals[stage - 1], k)
            if iteration == 0 and stage == MIDDLE:
                for j in range(y.shape[0]):
                    systems.center[j, k] = y_new[j, k]
                differentiate_by_state(block, systems.linear, systems.center, step.residuals[stage - 1], time, h, k)
                factorize_systems(block, step, tableau, h, k)
        if iteration == 0:
            store_defect(stepper, tableau, step.residuals[STAGES - 1], h, k)
            step.iteration[ROW_FIRST_DEFECT, k] = error_norm(block, change, y, y_new, tolerances, k)
        change_stages(block, stepper, tableau, h, k)
        add_changes(stepper, k)
        step.iteration[ROW_NEW_SIZE, k] = error_norm(block, change, y, y_new, tolerances, k)
        if not stop_lanes(stepper, tableau, iteration + 1):
            break
    has_failed = stepper.control[controls.FAILURE, k] > zero
    for j in range(y.shape[0]):
        y_new[j, k] = select(has_failed, y[j, k], y[j, k] + rates[STAGES, j, k])
    normalize_positions(block.model, y_new, k)
    evaluate(block, y_new, t + h, rates[last], k)
    store_defect(stepper, tableau, rates[last], h, k)
    step.iteration[ROW_DEFECT, k] = error_norm(block, change, y, y_new, tolerances, k)
    judge_defects(stepper, tableau)
    estimate_error(block, stepper, tableau, scaled_eigenvalue(tableau, 0, h)[0], h, k)


@kernel
def store_defect(stepper, tableau, rate, h, k):
    """Store h times the rate minus (W Z)_s in `change`: zero if the stages are a solution with this rate at the end.

    `rate` is (rows, lanes), and h is in s.
    """
    rates = stepper.rates
    for j in range(rate.shape[0]):
        total = h * rate[j, k]
        for i in range(STAGES):
            total = total - constant_like(h, tableau.inverse[STAGES - 1, i]) * rates[i + 1, j, k]
        stepper.change[j, k] = total


@kernel
def judge_defects(stepper, tableau):
    """Reject the step if the defect exceeds the tolerance and no longer decreases, unless only round-off is left."""
    iteration, control = stepper.linear.iteration, stepper.control
    for lane in range(iteration.shape[1]):
        defect, first = float(iteration[ROW_DEFECT, lane]), float(iteration[ROW_FIRST_DEFECT, lane])
        is_large = not defect <= max(1.0, MAX_DEFECT * first)
        has_failed = control[controls.FAILURE, lane] > 0.0
        if is_large and not has_failed and float(iteration[ROW_SIZE, lane]) > tableau.round_off:
            control[controls.FAILURE, lane] = constant_like(control, ERROR_OF_FAILURE)


@kernel
def start_iteration(stepper, h, k):
    """Let the lanes that have a step of length h iterate."""
    iteration, zero, one = stepper.linear.iteration, constant_like(h, 0.0), constant_like(h, 1.0)
    iteration[ROW_ACTIVE, k] = select(h > zero, one, zero)
    stepper.control[controls.FAILURE, k] = zero
    iteration[ROW_COUNT, k] = zero
    iteration[ROW_STEP, k] = h


@kernel
def predict_stages(stepper, tableau, h, k):
    """Predict the increments of the stages by the polynomial of the last step, or as zero."""
    polynomial, iteration, rates = stepper.linear.polynomial, stepper.linear.iteration, stepper.rates
    zero, one = constant_like(h, 0.0), constant_like(h, 1.0)
    previous = iteration[ROW_PREVIOUS_STEP, k] * iteration[ROW_ACTIVE, k]  # idle lanes do not move
    is_near = h <= constant_like(h, MAX_RATIO) * previous
    ratio, start = h / select(is_near, previous, one), iteration[ROW_OFFSET, k]
    for stage in range(1, STAGES + 1):
        x = start + constant_like(h, tableau.c[stage]) * ratio
        for j in range(rates.shape[1]):
            increment = extrapolated(polynomial, x, j, k) - extrapolated(polynomial, start, j, k)
            rates[stage, j, k] = select(is_near, increment, zero)


@kernel
def extrapolated(polynomial, x, j, k):
    """Return the change of row j by the polynomial of the last step from its end to x steps after it.

    `polynomial` (STAGES, rows, lanes) is `RadauStep.polynomial`.
    """
    total = polynomial[STAGES - 1, j, k]
    for m in range(STAGES - 2, -1, -1):
        total = polynomial[m, j, k] + x * total
    return x * total


@kernel
def scaled_eigenvalue(tableau, number, h):
    """Return an eigenvalue of `inverse` / h as a complex number, 1/s: the pair of its real and imaginary part."""
    eigenvalues = tableau.eigenvalues
    return constant_like(h, eigenvalues[number, 0]) / h, constant_like(h, eigenvalues[number, 1]) / h


@routine
def factorize_systems(block, step, tableau, h, k):
    """Compute and factorize the matrices of the real system and of the complex ones."""
    factorize_step(block, step.systems.linear, step.systems.center, scaled_eigenvalue(tableau, 0, h)[0], k)
    for pair in range(PAIRS):
        factorize_complex_step(block, step.systems, pair, scaled_eigenvalue(tableau, 1 + pair, h), k)


@routine
def change_stages(block, stepper, tableau, h, k):
    """Replace the rates of the stages in `residuals` by the changes of the stages."""
    rates, step = stepper.rates, stepper.linear
    residuals, changes, systems = step.residuals, step.changes, step.systems
    inverse_h = constant_like(h, 1.0) / h
    for j in range(rates.shape[1]):
        for i in range(STAGES):
            total = constant_like(h, tableau.inverse[i, 0]) * rates[1, j, k]
            for stage in range(1, STAGES):
                total = total + constant_like(h, tableau.inverse[i, stage]) * rates[stage + 1, j, k]
            residuals[i, j, k] = residuals[i, j, k] - inverse_h * total
        transform(tableau.to_modes, residuals, changes, j, k)
    solve_stage(block, systems.linear, systems.center, changes[0], scaled_eigenvalue(tableau, 0, h)[0], k)
    for pair in range(PAIRS):
        parts = changes[1 + 2 * pair : 3 + 2 * pair]
        solve_complex_system(block, systems, pair, parts, scaled_eigenvalue(tableau, 1 + pair, h), k)
    for j in range(rates.shape[1]):
        transform(tableau.from_modes, changes, residuals, j, k)


@kernel
def transform(matrix, numbers, results, j, k):
    """Compute the products of a matrix (stages, stages) and row j of the numbers (stages, rows, lanes).

    `results` is (stages, rows, lanes) too.
    """
    for i in range(STAGES):
        total = constant_like(numbers, matrix[i, 0]) * numbers[0, j, k]
        for m in range(1, STAGES):
            total = total + constant_like(numbers, matrix[i, m]) * numbers[m, j, k]
        results[i, j, k] = total


@kernel
def add_changes(stepper, k):
    """Add the changes to the stages of the lanes that iterate.

    Store the largest one of each row in `change`, and the end of the step in y_new.
    """
    rates, step, change = stepper.rates, stepper.linear, stepper.change
    is_active = step.iteration[ROW_ACTIVE, k] > constant_like(rates, 0.0)
    for j in range(rates.shape[1]):
        largest = abs(step.residuals[0, j, k])
        for stage in range(STAGES):
            z, dz = rates[stage + 1, j, k], step.residuals[stage, j, k]
            rates[stage + 1, j, k] = select(is_active, z + dz, z)
            largest = max(largest, abs(dz))
        change[j, k] = largest
        stepper.y_new[j, k] = stepper.y[j, k] + rates[STAGES, j, k]


@kernel
def stop_lanes(stepper, tableau, count):
    """Stop the lanes whose stages have converged, or do not converge, after `count` iterations.

    Returns whether a lane continues. Changes shrink by a factor of about theta per iteration, so the remaining error is
    theta / (1 - theta) of the last change. A lane stops early if it would not converge in the remaining iterations.
    """
    iteration, control, continues = stepper.linear.iteration, stepper.control, False
    for lane in range(iteration.shape[1]):
        if iteration[ROW_ACTIVE, lane] == 0.0:
            continue
        size, previous = float(iteration[ROW_NEW_SIZE, lane]), float(iteration[ROW_SIZE, lane])
        # a single change may be small because the Jacobian is too stiff
        has_converged = count > 1 and size <= tableau.round_off
        has_failed = not size < math.inf
        if count > 1 and not has_converged:
            theta = size / previous
            has_converged = theta * size <= tableau.convergence * (1.0 - theta)
            has_failed = has_failed or theta >= (GROWTH_AT_START if count == 2 else 1.0)
            if count > 2 and not (has_converged or has_failed):
                has_failed = theta ** (MAX_ITERATIONS - count + 1) * size > tableau.convergence * (1.0 - theta)
        iteration[ROW_SIZE, lane] = iteration[ROW_NEW_SIZE, lane]
        iteration[ROW_COUNT, lane] = constant_like(iteration, count)
        if has_failed:
            control[controls.FAILURE, lane] = constant_like(control, ERROR_OF_FAILURE if size < math.inf else math.inf)
        if has_failed or has_converged:
            iteration[ROW_ACTIVE, lane] = constant_like(iteration, 0.0)
        else:
            continues = True
    return continues


@kernel
def growth_after_iterations(stepper, tableau, growth, lane):
    """Return the ratio of the next step length to this one, which is at most 1 if the stages converged slowly."""
    growth = GROWTH_FACTOR * growth
    return min(growth, 1.0) if stepper.linear.iteration[ROW_COUNT, lane] >= SLOW_CONVERGENCE else growth


@kernel
def keep_polynomial(stepper, tableau, accepted, k):
    """Store the polynomials of the accepted steps, to predict the stages of the next ones."""
    step, rates = stepper.linear, stepper.rates
    for j in range(rates.shape[1]):
        for m in range(STAGES):
            total = constant_like(rates, tableau.polynomial[m, 0]) * rates[1, j, k]
            for i in range(1, STAGES):
                total = total + constant_like(rates, tableau.polynomial[m, i]) * rates[i + 1, j, k]
            step.polynomial[m, j, k] = select(accepted, total, step.polynomial[m, j, k])
    iteration = step.iteration
    iteration[ROW_PREVIOUS_STEP, k] = select(accepted, iteration[ROW_STEP, k], iteration[ROW_PREVIOUS_STEP, k])


@kernel
def forget_polynomial(stepper, tableau, lane):
    """Forget the polynomial of a lane, which does not continue the last step."""
    iteration = stepper.linear.iteration
    iteration[ROW_PREVIOUS_STEP, lane] = constant_like(iteration, 0.0)


@kernel
def evaluations_of_radau_step(block, stepper, tableau, lane):
    """Return the number of evaluations of the dynamics in the step of a lane, and for its Jacobian."""
    of_stages = STAGES * int(stepper.linear.iteration[ROW_COUNT, lane])
    return of_stages + 1 + evaluations_of_jacobian(block, stepper.linear.systems.linear)


@kernel
def interpolate_radau(tableau, y, y_new, h, rates, theta, j, k):
    """Compute row j of the polynomial of collocation at t + theta h, whose order is s + 1: see `RadauTableau`."""
    x, stages = theta - constant_like(theta, 1.0), tableau.polynomial.shape[0]
    total = zeros_like(theta)
    for m in range(stages - 1, -1, -1):
        coefficient = constant_like(theta, tableau.polynomial[m, 0]) * rates[1, j, k]
        for i in range(1, stages):
            coefficient = coefficient + constant_like(theta, tableau.polynomial[m, i]) * rates[i + 1, j, k]
        total = x * (coefficient + total)
    return y_new[j, k] + total


def allocate_radau_step(tableau, topology, tables, integrals, state_size, width, dtype, blocks):
    """Allocate the memory of a LinearizedRate and of a RadauStep for each block."""
    n = topology.shape[1]
    rows = complex_systems_size(PAIRS, n, state_size - n - integrals, state_size) + radau_step_size(state_size)
    return (
        *linearized_rate_memory(n, tables, integrals, state_size, width, dtype, blocks),
        np.zeros((blocks, rows * width + CACHE_LINE // dtype.itemsize), dtype),
        np.zeros((blocks, PAIRS, 2 * n, width), np.int64),
    )


@kernel
def radau_step_in(tableau, memory, b, tables, nq, size):
    """Return the RadauStep of block b. Its systems have matrices, so its LinearizedRate has no tree."""
    linear_numbers, linear_pivots, numbers, pivots = memory[0][b], memory[1][b], memory[2][b], memory[3][b]
    n, width = linear_pivots.shape
    linear = without_tree(linearized_rate_in(linear_numbers, linear_pivots, tables, nq, size))
    start = aligned_start(numbers)
    systems = carve_complex_systems(numbers, start, width, linear, pivots, PAIRS, n, nq, size)
    stages = start + complex_systems_size(PAIRS, n, nq, size) * width
    return carve_radau_step(numbers, stages, width, systems, size)


@kernel
def set_offset_of_polynomial(stepper, tableau, offset, lane):
    """Set where the next step starts, `offset` steps after the end of the step of `polynomial`."""
    stepper.linear.iteration[ROW_OFFSET, lane] = constant_like(stepper.y, offset)


RADAU = MethodFunctions(
    tableau=RadauTableau,
    take_step=compute_radau_step,
    evaluations=evaluations_of_radau_step,
    interpolate=interpolate_radau,
    error=error_or_failure,
    growth=growth_after_iterations,
    after_accept=keep_polynomial,
    forget=forget_polynomial,
    predict_from=set_offset_of_polynomial,
    allocate=allocate_radau_step,
    carve=radau_step_in,
    predicts=True,
    solves_saved_states=True,
)
