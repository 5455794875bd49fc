"""Combine rates into the state at a step's end, estimate its error, choose the next step; without any mechanics.

States are rows `y[j, k]`, rates `rates[stage, j, k]`. Sources: Hairer, Norsett and Wanner (1993), *Solving Ordinary
Differential Equations I*, sections II.4 (error norm, first step, step control) and II.6 (continuous extension);
Gustafsson (1991) for the proportional-integral control.
"""

import math

from ..simd.jit import kernel
from ..simd.lanes import constant_like

SAFETY, SHRINK_MOST, GROW_MOST = 0.9, 0.2, 10.0
INTEGRAL_GAIN = 0.04  # of the step control: Hairer's beta
MARGIN = 1e8  # of states to the largest number
SMALLEST_ERROR = 1e-4  # remembered of a step, so that one lucky step does not decide the next


@kernel
def combine(weights, stages, rates, j, k):
    """Sum of weights times the rates of row j over the first stages."""
    total = constant_like(rates, 0.0) * rates[0, j, k]
    for stage in range(stages):
        weight = weights[stage]
        if weight != 0.0:
            total = total + constant_like(rates, weight) * rates[stage, j, k]
    return total


@kernel
def advance(weights, stages, y, h, rates, result, k):
    """result = y + h sum of weights times rates."""
    for j in range(y.shape[0]):
        result[j, k] = y[j, k] + h * combine(weights, stages, rates, j, k)


@kernel
def norm(x, y, y_new, atol, rtol, k):
    """Root mean square of x over atol + rtol max(|y|, |y_new|): at most 1 for an error that is small enough."""
    total = constant_like(y, 0.0) * y[0, k]
    for j in range(y.shape[0]):
        ratio = x[j, k] / (constant_like(y, atol) + constant_like(y, rtol) * max(abs(y[j, k]), abs(y_new[j, k])))
        total = total + ratio * ratio
    return math.sqrt(total / constant_like(y, y.shape[0]))


@kernel
def zero_if_finite(y, k):
    """Zero, or NaN where a row of y is not finite, or so large that sums in the step's interpolation may overflow."""
    margin = constant_like(y, MARGIN)
    total = margin * y[0, k] - margin * y[0, k]
    for j in range(1, y.shape[0]):
        total = total + (margin * y[j, k] - margin * y[j, k])
    return total


@kernel
def trial_step(size, rate):
    """The length of an Euler step that changes y by a hundredth of its size (II.4, starting step size, b)."""
    return 1e-6 if size < 1e-5 or rate < 1e-5 else 0.01 * size / rate


@kernel
def first_step(trial, rate, change, order):
    """The first step, from the Euler step and how much the rate changed over it (II.4, starting step size, d to f)."""
    largest = max(rate, change / trial)
    wanted = max(1e-6, 1e-3 * trial) if largest <= 1e-15 else (0.01 / largest) ** (1.0 / order)
    return min(100.0 * trial, wanted)


@kernel
def growth_of_step(error, previous_error, order, after_rejection):
    """Next step over this one, after a step with an error of at most 1."""
    if error == 0.0:
        factor = GROW_MOST
    else:
        proportional = error ** -(1.0 / order - 0.75 * INTEGRAL_GAIN)
        factor = SAFETY * proportional * previous_error**INTEGRAL_GAIN
    factor = min(GROW_MOST, max(SHRINK_MOST, factor))
    return min(factor, 1.0) if after_rejection else factor


@kernel
def shrinkage_of_step(error, order):
    """Next step over this one, after a step that was rejected; an error that is no number shrinks it most."""
    if not error < math.inf:
        return SHRINK_MOST
    return max(SHRINK_MOST, SAFETY * error ** -(1.0 / order - 0.75 * INTEGRAL_GAIN))


@kernel
def interpolate(tableau, y, y_new, h, rates, theta, j, k):
    """Row j of the continuous extension at t + theta h (II.6, eq. 6.12 and Hairer's DOPRI5)."""
    change = y_new[j, k] - y[j, k]
    start = h * rates[0, j, k] - change
    end = change - h * rates[tableau.c.shape[0] - 1, j, k] - start
    fourth = h * combine(tableau.dense, tableau.dense.shape[0], rates, j, k)
    rest = constant_like(theta, 1.0) - theta
    return y[j, k] + theta * (change + rest * (start + theta * (end + rest * fourth)))
