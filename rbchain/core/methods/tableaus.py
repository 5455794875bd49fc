"""Integration methods as tableaus: the coefficients of the stages in a step."""

from typing import NamedTuple

import numpy as np


class Tableau(NamedTuple):
    """A Runge-Kutta method: stage s is at time t + c[s] h and state y + h sum over j of A[s, j] rate_j.

    The last stage is the end of the step and the first stage of the next step. `error` has the weights of the rates in
    the difference from the embedded method. `dense` has their weights in the fourth-order term of the continuous
    extension, whose other terms are a cubic. Both are empty for methods without them. `order` is the order of the
    result; the order of the error estimate is one lower. A is (stages, stages), all other arrays are (stages,).

    With adaptive steps, `stability_limit` is nearly the largest stable abs(h lambda) for negative real lambda
    (`stiffness`). It is infinite for methods whose last two stages are at different times.
    """

    A: np.ndarray
    c: np.ndarray
    error: np.ndarray
    dense: np.ndarray
    order: int
    stability_limit: float


RK4 = Tableau(  # Kutta (1901)
    A=np.array([[0] * 5, [1 / 2, 0, 0, 0, 0], [0, 1 / 2, 0, 0, 0], [0, 0, 1, 0, 0], [1 / 6, 1 / 3, 1 / 3, 1 / 6, 0]]),
    c=np.array([0, 1 / 2, 1 / 2, 1, 1]),
    error=np.empty(0),
    dense=np.empty(0),
    order=4,
    stability_limit=2.7853,
)

# Euler's method. The dynamics make it linearly implicit: see `motion.fixed_steps`.
EULER = Tableau(
    A=np.array([[0.0, 0.0], [1.0, 0.0]]),
    c=np.array([0.0, 1.0]),
    error=np.empty(0),
    dense=np.empty(0),
    order=1,
    stability_limit=2.0,
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
    stability_limit=3.25,
)


class RosenbrockTableau(NamedTuple):
    """A Rosenbrock method in the form without products of the Jacobian J and a vector (Hairer and Wanner 1996, IV.7).

    A step from y at time t, of length h, computes the increments u_1 to u_s from

        (1 / (h gamma) - J) u_i = f(t + c_i h, y + sum over j < i of A[i, j] u_j)
                                  + sum over j < i of C[i, j] u_j / h + h d_i df/dt.

    Rows and columns are numbered as the rates in `Stepper.rates`. Number 0 is the rate at the start of the step, and 1
    to s are the increments. The end of the step, y + sum of A[s + 1, j] u_j, has number s + 1. The sum of error[j] u_j
    is the difference from the embedded method. With the sums g_l of dense[l, j] u_j, the continuous extension is

        y + x (y_end - y + (1 - x) (g_0 + x (g_1 + x g_2))),  x = (time - t) / h.

    A is (s + 2, s + 2), C is (s + 1, s + 1), c is (s + 2,), d and `error` are (s + 1,), and `dense` is (3, s + 1).
    `order` is the order of the result; the order of the error estimate is one lower.
    """

    A: np.ndarray
    C: np.ndarray
    c: np.ndarray
    d: np.ndarray
    error: np.ndarray
    dense: np.ndarray
    gamma: float
    order: int


def _numbered_from_one(rows: list[list[float]]) -> np.ndarray:
    """Return the strictly lower triangular matrix of these rows, with a row and a column for the start of the step."""
    size = len(rows) + 1
    matrix = np.zeros((size, size))
    for i, row in enumerate(rows):
        matrix[i + 1, 1 : len(row) + 1] = row
    return matrix


# Rodas5P: Steinebach (2023), "Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks within the
# Julia Differential Equations package", BIT Numerical Mathematics 63:27. Stiffly accurate and L-stable, of order 5 with
# an embedded method of order 4 and a continuous extension of order 4.
_RODAS5P_A6 = [-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946]
RODAS5P = RosenbrockTableau(
    A=_numbered_from_one(
        [
            [],
            [3.0],
            [2.849394379747939, 0.45842242204463923],
            [-6.954028509809101, 2.489845061869568, -10.358996098473584],
            [2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641],
            _RODAS5P_A6,
            [*_RODAS5P_A6, 1.0],
            [*_RODAS5P_A6, 1.0, 1.0],
            [*_RODAS5P_A6, 1.0, 1.0, 1.0],
        ]
    ),
    C=_numbered_from_one(
        [
            [],
            [-14.155112264123755],
            [-17.97296035885952, -2.859693295451294],
            [147.12150275711716, -1.41221402718213, 71.68940251302358],
            [165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306],
            [24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471],
            [
                *(30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783),
                *(-19.097331116725623, -28.087943162872662),
            ],
            [
                *(37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047),
                *(-40.06618937091002, -54.66780262877968, -9.48861652309627),
            ],
        ]
    ),
    c=np.array(
        [
            *(0.0, 0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664),
            *(1.0, 1.0, 1.0, 1.0),
        ]
    ),
    d=np.array(
        [
            *(0.0, 0.21193756319429014, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734),
            *(2.325825639765069, 0.0, 0.0, 0.0),
        ]
    ),
    error=np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
    dense=np.array(
        [
            [
                *(0.0, 25.948786856663858, -2.5579724845846235, 10.433815404888879, -2.3679251022685204),
                *(0.524948541321073, 1.1241088310450404, 0.4272876194431874, -0.17202221070155493),
            ],
            [
                *(0.0, -9.91568850695171, -0.9689944594115154, 3.0438037242978453, -24.495224566215796),
                *(20.176138334709044, 15.98066361424651, -6.789040303419874, -6.710236069923372),
            ],
            [
                *(0.0, 11.419903575922262, 2.8879645146136994, 72.92137995996029, 80.12511834622643),
                *(-52.072871366152654, -59.78993625266729, -0.15582684282751913, 4.883087185713722),
            ],
        ]
    ),
    gamma=0.21193756319429014,
    order=5,
)
