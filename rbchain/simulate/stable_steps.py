"""Stability of fixed steps in the linear equations dx/dt = A x of small changes x, whose forces act explicitly.

The first n changes are positions, the next n are velocities, and the others are integrals of errors. A step multiplies
x by a matrix. If its spectral radius exceeds 1 although x does not grow in the exact solution, the step is too long.
Limits of forces and the geometry can bound the changes, so that the motion remains finite.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..common.real_arrays import FloatArray

#: Steps may multiply changes by this factor: changes that are not damped grow a little in steps of "moreau".
LARGEST_GROWTH = 1.001
#: Steps with larger numbers in their matrices are unstable.
LARGEST_FACTOR = 1e50
#: Largest relative error of `longest_stable`.
ACCURACY = 1e-3


def grows_in_steps(method: str, h: float, rates: FloatArray, n: int) -> np.ndarray:
    """Whether changes grow in steps of length h, s, for matrices A (..., m, m) with n positions."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = STEPS[method](h, rates, n)
        overflows = ~(np.abs(steps) < LARGEST_FACTOR).all((-2, -1))
    steps[overflows] = 0.0
    factor = abs(np.linalg.eigvals(steps)).max(-1, initial=0.0)
    grows: np.ndarray = overflows | (factor > LARGEST_GROWTH)
    return grows


def longest_stable(is_unstable: Callable[[float], np.ndarray], step: float) -> float:
    """Return the length of the longest stable steps, s, that are shorter than unstable steps of a length, s."""
    low, high = 0.0, step
    while high - low > ACCURACY * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_unstable(middle) else (middle, high)
    return low


def _rk4(h: float, rates: FloatArray, n: int) -> FloatArray:
    """Return the matrices of a step of "rk4", for the arguments of `grows_in_steps`."""
    unit, x = np.eye(rates.shape[-1]), h * rates
    step: FloatArray = unit + x @ (unit + x @ (unit + x @ (unit + x / 4.0) / 3.0) / 2.0)
    return step


def _implicit(h: float, rates: FloatArray, n: int) -> FloatArray:
    """Return the matrices of a step of "implicit": forces act at the start, and the new velocities move positions."""
    unit = np.eye(rates.shape[-1])
    step: FloatArray = unit + h * rates
    step[..., :n, :] = unit[:n] + h * step[..., n : 2 * n, :]
    return step


def _moreau(h: float, rates: FloatArray, n: int) -> FloatArray:
    """Return the matrices of a step of "moreau": positions in the middle follow from the velocities of the start.

    The velocities and integrals in the middle follow from a first force there.
    """
    unit = np.eye(rates.shape[-1])
    middle = np.broadcast_to(unit, rates.shape).copy()
    middle[..., :n, :] = unit[:n] + 0.5 * h * unit[n : 2 * n]
    middle[..., n:, :] = unit[n:] + 0.5 * h * (rates @ middle)[..., n:, :]
    step: FloatArray = unit + h * (rates @ middle)
    step[..., :n, :] = unit[:n] + 0.5 * h * (unit[n : 2 * n] + step[..., n : 2 * n, :])
    return step


STEPS = {"rk4": _rk4, "implicit": _implicit, "moreau": _moreau}
