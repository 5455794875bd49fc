"""The Runge-Kutta method of order 8 of Dormand and Prince, with error estimates and dense output.

Three more stages, after the end of the step, give the dense output. A step computes them always, because the lanes of
a block have different saved times.

Sources: Hairer, Norsett and Wanner (1993), *Solving Ordinary Differential Equations I*, section II.5 (method), II.10
(error estimate) and II.6 (dense output); their code DOP853 has the digits of the coefficients.

`interface` describes the arguments. `rates` has 16 stages.
"""

import math
from typing import NamedTuple

import numpy as np

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, nan_unless_finite, select
from ..linear.sensitivities import error_norm, evaluate_with_sensitivities
from ..sample import control_layout as controls
from .explicit_steps import compute_stages
from .interface import MethodFunctions
from .runge_kutta import advance, combine
from .stiffness import detect_stiffness


class Dop853Tableau(NamedTuple):
    """The method as numbers, as in `Tableau`; the end of the step is stage 12.

    A is (13, 13), and c is (13,). `dense_A` (3, 16) and `dense_c` (3,) are the stages 13 to 15, of the dense output.
    `error` and `low_error` (13,) are the weights of the rates in the error estimates of order 5 and 3. `dense` (4, 16)
    are the weights of the rates in the terms of order 4 to 7 of the dense output, whose other terms are a cubic.
    """

    A: np.ndarray
    c: np.ndarray
    dense_A: np.ndarray
    dense_c: np.ndarray
    error: np.ndarray
    low_error: np.ndarray
    dense: np.ndarray
    order: int
    stability_limit: float


def _rows(count: int, entries: dict[int, dict[int, float]]) -> np.ndarray:
    """Return a matrix with `count` columns from its rows, {row: {column: number}}."""
    matrix = np.zeros((len(entries), count))
    for row, numbers in enumerate(entries.values()):
        for column, number in numbers.items():
            matrix[row, column] = number
    return matrix


_A = {
    0: {},
    1: {0: 0.05260015195876773},
    2: {0: 0.0197250569845379, 1: 0.0591751709536137},
    3: {0: 0.02958758547680685, 2: 0.08876275643042054},
    4: {0: 0.2413651341592667, 2: -0.8845494793282861, 3: 0.924834003261792},
    5: {0: 0.037037037037037035, 3: 0.17082860872947386, 4: 0.12546768756682242},
    6: {0: 0.037109375, 3: 0.17025221101954405, 4: 0.06021653898045596, 5: -0.017578125},
    7: {
        0: 0.03709200011850479,
        3: 0.17038392571223998,
        4: 0.10726203044637328,
        5: -0.015319437748624402,
        6: 0.008273789163814023,
    },
    8: {
        0: 0.6241109587160757,
        3: -3.3608926294469414,
        4: -0.868219346841726,
        5: 27.59209969944671,
        6: 20.154067550477894,
        7: -43.48988418106996,
    },
    9: {
        0: 0.47766253643826434,
        3: -2.4881146199716677,
        4: -0.590290826836843,
        5: 21.230051448181193,
        6: 15.279233632882423,
        7: -33.28821096898486,
        8: -0.020331201708508627,
    },
    10: {
        0: -0.9371424300859873,
        3: 5.186372428844064,
        4: 1.0914373489967295,
        5: -8.149787010746927,
        6: -18.52006565999696,
        7: 22.739487099350505,
        8: 2.4936055526796523,
        9: -3.0467644718982196,
    },
    11: {
        0: 2.273310147516538,
        3: -10.53449546673725,
        4: -2.0008720582248625,
        5: -17.9589318631188,
        6: 27.94888452941996,
        7: -2.8589982771350235,
        8: -8.87285693353063,
        9: 12.360567175794303,
        10: 0.6433927460157636,
    },
    12: {
        0: 0.054293734116568765,
        5: 4.450312892752409,
        6: 1.8915178993145003,
        7: -5.801203960010585,
        8: 0.3111643669578199,
        9: -0.1521609496625161,
        10: 0.20136540080403034,
        11: 0.04471061572777259,
    },
}
_DENSE_A = {
    13: {
        0: 0.056167502283047954,
        6: 0.25350021021662483,
        7: -0.2462390374708025,
        8: -0.12419142326381637,
        9: 0.15329179827876568,
        10: 0.00820105229563469,
        11: 0.007567897660545699,
        12: -0.008298,
    },
    14: {
        0: 0.03183464816350214,
        5: 0.028300909672366776,
        6: 0.053541988307438566,
        7: -0.05492374857139099,
        10: -0.00010834732869724932,
        11: 0.0003825710908356584,
        12: -0.00034046500868740456,
        13: 0.1413124436746325,
    },
    15: {
        0: -0.42889630158379194,
        5: -4.697621415361164,
        6: 7.683421196062599,
        7: 4.06898981839711,
        8: 0.3567271874552811,
        12: -0.0013990241651590145,
        13: 2.9475147891527724,
        14: -9.15095847217987,
    },
}
_DENSE = {
    4: {
        0: -8.428938276109013,
        5: 0.5667149535193777,
        6: -3.0689499459498917,
        7: 2.38466765651207,
        8: 2.117034582445028,
        9: -0.871391583777973,
        10: 2.2404374302607883,
        11: 0.6315787787694688,
        12: -0.08899033645133331,
        13: 18.148505520854727,
        14: -9.194632392478356,
        15: -4.436036387594894,
    },
    5: {
        0: 10.427508642579134,
        5: 242.28349177525817,
        6: 165.20045171727028,
        7: -374.5467547226902,
        8: -22.113666853125306,
        9: 7.733432668472264,
        10: -30.674084731089398,
        11: -9.332130526430229,
        12: 15.697238121770845,
        13: -31.139403219565178,
        14: -9.35292435884448,
        15: 35.81684148639408,
    },
    6: {
        0: 19.985053242002433,
        5: -387.0373087493518,
        6: -189.17813819516758,
        7: 527.8081592054236,
        8: -11.57390253995963,
        9: 6.8812326946963,
        10: -1.0006050966910838,
        11: 0.7777137798053443,
        12: -2.778205752353508,
        13: -60.19669523126412,
        14: 84.32040550667716,
        15: 11.99229113618279,
    },
    7: {
        0: -25.69393346270375,
        5: -154.18974869023643,
        6: -231.5293791760455,
        7: 357.6391179106141,
        8: 93.40532418362432,
        9: -37.45832313645163,
        10: 104.0996495089623,
        11: 29.8402934266605,
        12: -43.53345659001114,
        13: 96.32455395918828,
        14: -39.17726167561544,
        15: -149.72683625798564,
    },
}
_ERRORS = {
    5: {
        0: 0.01312004499419488,
        5: -1.2251564463762044,
        6: -0.4957589496572502,
        7: 1.6643771824549864,
        8: -0.35032884874997366,
        9: 0.3341791187130175,
        10: 0.08192320648511571,
        11: -0.022355307863886294,
    },
    3: {
        0: -0.18980075407240762,
        5: 4.450312892752409,
        6: 1.8915178993145003,
        7: -5.801203960010585,
        8: -0.4226823213237919,
        9: -0.1521609496625161,
        10: 0.20136540080403034,
        11: 0.02265179219836082,
    },
}
_C = [
    0.0,
    0.05260015195876773,
    0.0789002279381516,
    0.1183503419072274,
    0.2816496580927726,
    0.3333333333333333,
    0.25,
    0.3076923076923077,
    0.6512820512820513,
    0.6,
    0.8571428571428571,
    1.0,
    1.0,
]

DOP853 = Dop853Tableau(
    A=_rows(13, _A),
    c=np.array(_C),
    dense_A=_rows(16, _DENSE_A),
    dense_c=np.array([0.1, 0.2, 0.7777777777777778]),
    error=_rows(13, _ERRORS)[0],
    low_error=_rows(13, _ERRORS)[1],
    dense=_rows(16, _DENSE),
    order=8,
    stability_limit=6.1,
)


@kernel
def compute_dop853_step(block, stepper, tableau, tolerances, k):
    """Compute the stages of a step and of its dense output, its end y_new and its error, `change`.

    With the norms e5 and e3 of the two estimates, `change` is the estimate of order 5 times
    e5 / sqrt(e5^2 + e3^2 / 100), so that its norm is the error of section II.10.
    """
    y, y_new, change, rates, h = stepper.y, stepper.y_new, stepper.change, stepper.rates, stepper.control[controls.H, k]
    compute_stages(block, stepper, tableau, k)
    end = tableau.c.shape[0]
    for stage in range(tableau.dense_c.shape[0]):
        advance(tableau.dense_A[stage], end + stage, y, h, rates, change, k)
        t = stepper.control[controls.TIME, k] + constant_like(h, tableau.dense_c[stage]) * h
        evaluate_with_sensitivities(block, change, t, rates[end + stage], k)
    for j in range(y.shape[0]):
        change[j, k] = h * combine(tableau.low_error, end, rates, j, k)
    low = error_norm(block, change, y, y_new, tolerances, k)
    for j in range(y.shape[0]):
        change[j, k] = h * combine(tableau.error, end, rates, j, k)
    error, zero = error_norm(block, change, y, y_new, tolerances, k), constant_like(y, 0.0)
    size = math.sqrt(error * error + constant_like(y, 0.01) * (low * low))
    one = constant_like(y, 1.0)
    is_usable = (size > zero) & (size < constant_like(y, math.inf))  # squares of huge estimates overflow
    factor = select(is_usable, error / select(is_usable, size, one), one + nan_unless_finite(error))
    for j in range(y.shape[0]):
        change[j, k] = factor * change[j, k]


@kernel
def interpolate_dop853(tableau, y, y_new, h, rates, theta, j, k):
    """Compute row j of the dense output at t + theta h."""
    change, rest = y_new[j, k] - y[j, k], constant_like(theta, 1.0) - theta
    start = h * rates[0, j, k] - change
    end = change - h * rates[tableau.c.shape[0] - 1, j, k] - start
    stages = tableau.dense.shape[1]
    total = theta * (h * combine(tableau.dense[3], stages, rates, j, k))
    total = rest * (h * combine(tableau.dense[2], stages, rates, j, k) + total)
    total = theta * (h * combine(tableau.dense[1], stages, rates, j, k) + total)
    total = rest * (h * combine(tableau.dense[0], stages, rates, j, k) + total)
    return y[j, k] + theta * (change + rest * (start + theta * (end + total)))


@kernel
def evaluations_of_dop853_step(block, stepper, tableau, lane):
    """Return the number of evaluations in a step, whose first rate is known."""
    return tableau.c.shape[0] - 1 + tableau.dense_c.shape[0]


def rates_with_dense_output(tableau):
    """Return the number of rates of a step."""
    return tableau.c.shape[0] + tableau.dense_c.shape[0]


EIGHTH_ORDER = MethodFunctions(
    tableau=Dop853Tableau,
    take_step=compute_dop853_step,
    evaluations=evaluations_of_dop853_step,
    interpolate=interpolate_dop853,
    detect_stiffness=detect_stiffness,
    rates=rates_with_dense_output,
)
