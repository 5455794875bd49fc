"""The estimate of the error of a step of the Radau IIA method.

The method has order 2 s - 1. With z_j of the stages and a = eigenvalues[0, 0] / h (`RadauTableau`), the difference from
an embedded method of order s is

    e = (a - J)^-1 (f(t, y) + sum of error[j] z_j / h).

It is larger than the error of the step. For a component y' = lambda y and z = h lambda, the ratio of the error to e is
close to |z / (gamma - z)|^4, with gamma = h a. For a stiff component that follows a slow motion (Prothero and Robinson
1974), it is between 0.8 and 5.3 times this number. Therefore

    (1 - a (a - J)^-1)^4 e

estimates the error of linear motions. It is zero for forces over time, which do not change J. For a vibration of
frequency omega and x = omega h / 2, the ratio is x^4 / 300. A second estimate is this number times e for each row, with
x from the rate in the step. Let d_1 to d_4 be the Legendre coefficients of its row. For a vibration and small x, x^2 is
equal to 35 d_4 / d_2, 15 d_3 / d_1 and 198 e / d_3. The coefficients of a rate with a kink decay slowly. In other
motions, each of the three numbers can be too small, so the largest one counts. Legendre coefficients also control the
order of spectral elements (Mavriplis 1990; Houston and Suli 2005).

The error is estimated as the sum of the first estimate and MARGIN times the second one, which is at most e in each row.

Source: Hairer and Wanner (1996), *Solving Ordinary Differential Equations II*, section IV.8.
Source: Prothero and Robinson (1974), "On the stability and accuracy of one-step methods for solving stiff systems".
Source: Mavriplis (1990), "A posteriori error estimators for adaptive spectral element techniques".
Source: Houston and Suli (2005), "A note on the design of hp-adaptive finite element methods".
"""

import math

from ...compiling.jit import kernel, routine
from ..lanes.lanes import constant_like
from .radau_tableau import STAGES
from .rosenbrock import solve_stage

MARGIN = 6.0
SMALLEST_COEFFICIENT = 1e-30  # of a motion without acceleration


@routine
def estimate_error(block, stepper, tableau, a, h, k):
    """Store the estimated error of a step of length h, s, in `change` (rows, lanes); a is 1 / (h gamma), 1/s."""
    systems, rates, change = stepper.linear.systems, stepper.rates, stepper.change
    e, w = stepper.linear.changes[0], stepper.linear.changes[1]
    for j in range(change.shape[0]):
        total = rates[0, j, k]
        for i in range(STAGES):
            total = total + constant_like(h, tableau.error[i]) * (rates[i + 1, j, k] / h)
        e[j, k] = total
    solve_stage(block, systems.linear, systems.center, e, a, k)
    for j in range(change.shape[0]):
        change[j, k] = e[j, k]
    for _ in range(4):
        for j in range(change.shape[0]):
            w[j, k] = a * change[j, k]
        solve_stage(block, systems.linear, systems.center, w, a, k)
        for j in range(change.shape[0]):
            change[j, k] = change[j, k] - w[j, k]
    for j in range(change.shape[0]):
        change[j, k] = change[j, k] + error_of_smooth_motion(tableau, rates, e, j, k)


@kernel
def error_of_smooth_motion(tableau, rates, e, j, k):
    """Return the second estimate of the error of row j, times MARGIN, from the first estimate e (rows, lanes)."""
    one, least = constant_like(rates, 1.0), constant_like(rates, SMALLEST_COEFFICIENT)
    first, second = legendre_coefficient(tableau, rates, 0, j, k), legendre_coefficient(tableau, rates, 1, j, k)
    third, fourth = legendre_coefficient(tableau, rates, 2, j, k), legendre_coefficient(tableau, rates, 3, j, k)
    square = constant_like(rates, 35.0) * abs(fourth) / max(abs(second), least)
    square = max(square, constant_like(rates, 15.0) * abs(third) / max(abs(first), least))
    # The phases of e and d_3 differ. For vibrations with another phase, d_3 is 1.18 sqrt(d_2 d_4).
    third = max(abs(third), constant_like(rates, 1.18) * math.sqrt(abs(second * fourth)))
    square = max(square, constant_like(rates, 198.0) * abs(e[j, k]) / max(third, least))
    return min(one, constant_like(rates, MARGIN / 300.0) * square * square) * e[j, k]


@kernel
def legendre_coefficient(tableau, rates, number, j, k):
    """Return h times the Legendre coefficient of order `number` + 1 of the rate of row j."""
    total = constant_like(rates, tableau.legendre[number, 0]) * rates[1, j, k]
    for i in range(1, STAGES):
        total = total + constant_like(rates, tableau.legendre[number, i]) * rates[i + 1, j, k]
    return total
