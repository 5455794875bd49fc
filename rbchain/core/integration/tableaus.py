"""Runge-Kutta methods as Butcher tableaus: the coefficients with which a step combines its stages."""

from typing import NamedTuple

import numpy as np


class Tableau(NamedTuple):
    """A Runge-Kutta method: stage s is at time t + c[s] h and state y + h sum over j of A[s, j] rate_j.

    The last stage is the end of the step and the first stage of the next step. `error` has the weights of the rates in
    the difference from the embedded method. `dense` has those in the fourth-order term of the continuous extension,
    whose other terms are a cubic. Both are empty for methods without them. `order` is the order of the result; the
    order of the error estimate is one lower.
    """

    A: np.ndarray
    c: np.ndarray
    error: np.ndarray
    dense: np.ndarray
    order: int


RK4 = Tableau(  # Kutta (1901)
    A=np.array([[0] * 5, [1 / 2, 0, 0, 0, 0], [0, 1 / 2, 0, 0, 0], [0, 0, 1, 0, 0], [1 / 6, 1 / 3, 1 / 3, 1 / 6, 0]]),
    c=np.array([0, 1 / 2, 1 / 2, 1, 1]),
    error=np.empty(0),
    dense=np.empty(0),
    order=4,
)

# Euler's method. The dynamics make it linearly implicit: see `fixed_steps`.
EULER = Tableau(
    A=np.array([[0.0, 0.0], [1.0, 0.0]]),
    c=np.array([0.0, 1.0]),
    error=np.empty(0),
    dense=np.empty(0),
    order=1,
)

# Dormand and Prince (1980), "A family of embedded Runge-Kutta formulae". Continuous extension: Hairer, Norsett and
# Wanner (1993), Solving ODEs I, section II.6, eq. 6.12.
DORMAND_PRINCE = Tableau(
    A=np.array(
        [
            [0, 0, 0, 0, 0, 0, 0],
            [1 / 5, 0, 0, 0, 0, 0, 0],
            [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
            [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
            [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
            [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
            [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
        ]
    ),
    c=np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1]),
    error=np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]),
    dense=np.array(
        [
            -12715105075 / 11282082432,
            0,
            87487479700 / 32700410799,
            -10690763975 / 1880347072,
            701980252875 / 199316789632,
            -1453857185 / 822651844,
            69997945 / 29380423,
        ]
    ),
    order=5,
)
