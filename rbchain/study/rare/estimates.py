"""Estimates of a probability with their 95 % confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

CONFIDENCE = 0.95

#: Margins (m,) of standard normal vectors u (m, d): negative for a failure.
Margins = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Stage:
    """A stage of a method.

    Attributes
    ----------
    simulations : int
    level : float
        Margin that separates the samples of the next stage; 0 in the last stage. NaN for the samples of "importance"
        with a larger standard deviation.
    probability : float
        Probability that a sample of this stage is below the level; NaN if the stage does not estimate it.
    """

    simulations: int
    level: float
    probability: float


@dataclass(frozen=True)
class Estimate:
    """A probability with its interval.

    Attributes
    ----------
    weights : (m,) array
        Weights of the samples `failing` in the conditional distribution of failures.
    failing : (m, d) array
        Standard normal vectors of these samples.
    """

    value: float
    interval: tuple[float, float]
    coefficient_of_variation: float
    stages: tuple[Stage, ...]
    failing: np.ndarray
    weights: np.ndarray
    design_point: np.ndarray | None = None
    first_order: float = math.nan


def clopper_pearson(failures: int, samples: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a probability from independent samples (Clopper and Pearson 1934).

    Examples
    --------
    >>> low, high = clopper_pearson(0, 100)
    >>> low, round(high, 6) == round(1 - 0.025 ** (1 / 100), 6)
    (0.0, True)
    """
    tail = (1.0 - CONFIDENCE) / 2
    low = 0.0 if failures == 0 else float(special.betaincinv(failures, samples - failures + 1, tail))
    high = 1.0 if failures == samples else float(special.betaincinv(failures + 1, samples - failures, 1.0 - tail))
    return low, high


def lognormal_interval(value: float, variation: float, degrees: float) -> tuple[float, float]:
    """Return the 95 % interval of an estimate whose logarithm is normally distributed.

    Parameters
    ----------
    value, variation : float
        The estimate and its coefficient of variation.
    degrees : float
        Degrees of freedom of the variance (Student's t).
    """
    if not (value > 0.0 and math.isfinite(variation)):
        return 0.0, 1.0
    half = special.stdtrit(max(degrees, 1.0), 0.5 + CONFIDENCE / 2) * math.sqrt(math.log1p(variation**2))
    half = min(float(half), 700.0)  # so that the exponential is finite
    return value * math.exp(-half), min(value * math.exp(half), 1.0)
