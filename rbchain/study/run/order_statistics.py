"""Confidence intervals of quantiles from order statistics, without assumptions on the distribution."""

from __future__ import annotations

import math

import numpy as np

CONFIDENCE = 0.95
#: Three numbers: a quantile, and the ends of its confidence interval; NaN for an end that is unknown.
QuantileAndInterval = tuple[float, float, float]
TAIL = 12.0  # standard deviations of the binomial distribution; the rest is below round-off


def ranks_around_quantile(count: int, level: float, confidence: float = CONFIDENCE) -> tuple[int, int]:
    """Return the ranks of the two ordered numbers between which a quantile lies.

    The number of samples below the quantile has a binomial distribution. So the interval from the number of rank `low`
    to the number of rank `high` contains the quantile with at least this confidence. Source: David and Nagaraja
    (2003), Order Statistics, third edition, section 7.1.

    Parameters
    ----------
    count : int
        Number of samples.
    level : float
        Level of the quantile, between 0 and 1.
    confidence : float

    Returns
    -------
    low, high : int
        Ranks from 1 to `count`. If `count` is too small for a limit, `low` is 0 or `high` is `count` + 1.

    Examples
    --------
    >>> ranks_around_quantile(100, 0.5)
    (40, 61)
    >>> ranks_around_quantile(10, 0.05)
    (0, 3)
    """
    mean, spread = count * level, (count * level * (1.0 - level)) ** 0.5
    first, last = max(0, int(mean - TAIL * spread - 40)), min(count, int(mean + TAIL * spread + 40))
    k = np.arange(first, last)
    # the ratio of the probabilities of k + 1 and of k, as a logarithm
    steps = np.log((count - k) / (k + 1.0) * (level / (1.0 - level)))
    logarithm = np.concatenate([[0.0], steps.cumsum()])
    cumulative = np.exp(logarithm - logarithm.max()).cumsum()
    tail = (1.0 - confidence) / 2 * cumulative[-1]
    low, high = np.searchsorted(cumulative, [tail, cumulative[-1] - tail])
    return first + int(low), first + int(high) + 1


def quantile_and_interval(ordered: np.ndarray, level: float) -> QuantileAndInterval:
    """Return a quantile of sorted numbers, and the ends of its confidence interval; NaN for an end that is unknown.

    Examples
    --------
    >>> quantile_and_interval(np.arange(1.0, 101.0), 0.5)
    (50.0, 40.0, 61.0)
    """
    count = len(ordered)
    ranks = (math.ceil(level * count), *ranks_around_quantile(count, level))
    return tuple(float(ordered[rank - 1]) if 1 <= rank <= count else math.nan for rank in ranks)  # type: ignore[return-value]
