"""Runge-Kutta formulas: combine rates to the state at the end of a step, estimate its error, and choose the next step.

This file does not depend on the mechanics. States are y (rows, lanes), `rates` is (stages, rows, lanes), and `weights`
are the factors of the first stages, in a flat array. Step lengths `h` are in s. `interface` describes all arguments.
Sources: Hairer, Norsett and Wanner (1993), *Solving Ordinary Differential Equations I*, sections II.4 (error norm,
first step, step control) and II.6 (continuous extension); Gustafsson (1991) for the proportional-integral control.
"""

import math

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, nan_unless_finite, zeros_like

SAFETY_FACTOR, MIN_GROWTH, MAX_GROWTH = 0.9, 0.2, 10.0
INTEGRAL_GAIN = 0.04  # beta of Hairer's step control for order 5; it is proportional to 1 / order
OVERFLOW_MARGIN = 1e8  # ratio of the largest finite number to the largest valid state
MIN_PREVIOUS_ERROR = 1e-4  # a smaller error would give the previous step too much weight in the next step length


@kernel
def combine(weights, stages, rates, j, k):
    """Compute the weighted sum of the rates of row j over the first stages."""
    total = zeros_like(rates[0, j, k])
    for stage in range(stages):
        weight = weights[stage]
        if weight != 0.0:
            total = total + constant_like(rates, weight) * rates[stage, j, k]
    return total


@kernel
def advance(weights, stages, y, h, rates, result, k):
    """Compute result (rows, lanes) = y + h times the weighted sum of the rates over the first stages."""
    for j in range(y.shape[0]):
        result[j, k] = y[j, k] + h * combine(weights, stages, rates, j, k)


@kernel
def nan_unless_in_range(y, k):
    """Return zero, or NaN if a row of y is not finite or so large that the interpolation of a step may overflow."""
    margin = constant_like(y, OVERFLOW_MARGIN)
    total = nan_unless_finite(margin * y[0, k])
    for j in range(1, y.shape[0]):
        total = total + nan_unless_finite(margin * y[j, k])
    return total


@kernel
def euler_step(size, rate):
    """Return the length of an Euler step that changes y by 1 % of its norm (II.4, starting step size, step b), s.

    `size` and `rate`, per s, are the norms of y and of its rate, relative to the tolerances.
    """
    return 1e-6 if size < 1e-5 or rate < 1e-5 else 0.01 * size / rate


@kernel
def first_step(euler_length, rate, change, order):
    """Return the first step length from an Euler step and the change of the rate over it (II.4, steps d to f).

    It is at least a millionth of the Euler step. A state that is zero at the start allows errors of atol only. The
    state at the end of the step may allow much larger ones. Lengths are in s. `rate` and `change`, per s, are norms
    relative to the tolerances.
    """
    largest = max(rate, change / euler_length)
    first = max(1e-6, 1e-3 * euler_length) if largest <= 1e-15 else (0.01 / largest) ** (1.0 / order)
    return min(100.0 * euler_length, max(first, 1e-6 * euler_length))


@kernel
def growth_of_step(error, previous_error, order, after_rejection):
    """Return the ratio of the next step length to this one, after an accepted step (error at most 1)."""
    if error == 0.0:
        factor = MAX_GROWTH
    else:
        gain = INTEGRAL_GAIN * 5.0 / order
        factor = SAFETY_FACTOR * error ** -(1.0 / order - 0.75 * gain) * previous_error**gain
    factor = min(MAX_GROWTH, max(MIN_GROWTH, factor))
    return min(factor, 1.0) if after_rejection else factor


@kernel
def shrinkage_of_step(error, order):
    """Return the ratio of the next step length to this one, after a rejected step. The error may be inf or NaN."""
    if not error < math.inf:
        return MIN_GROWTH
    return max(MIN_GROWTH, SAFETY_FACTOR * error ** -(1.0 / order - 3.75 * INTEGRAL_GAIN / order))


@kernel
def interpolate_runge_kutta(tableau, y, y_new, h, rates, theta, j, k):
    """Compute row j of the continuous extension at t + theta h (II.6, eq. 6.12 and Hairer's DOPRI5)."""
    change = y_new[j, k] - y[j, k]
    start = h * rates[0, j, k] - change
    end = change - h * rates[tableau.c.shape[0] - 1, j, k] - start
    fourth = h * combine(tableau.dense, tableau.dense.shape[0], rates, j, k)
    rest = constant_like(theta, 1.0) - theta
    return y[j, k] + theta * (change + rest * (start + theta * (end + rest * fourth)))


@kernel
def polynomial_of_runge_kutta(tableau, y, y_new, h, rates, j, k):
    """Return the coefficients of theta to theta^4 in the continuous extension of row j (`interpolate_runge_kutta`)."""
    change = y_new[j, k] - y[j, k]
    start = h * rates[0, j, k] - change
    end = change - h * rates[tableau.c.shape[0] - 1, j, k] - start
    fourth = h * combine(tableau.dense, tableau.dense.shape[0], rates, j, k)
    return change + start, end + fourth - start, -end - fourth - fourth, fourth
