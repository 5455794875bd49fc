"""Properties of responses over time: settling time, overshoot, rise time, durations and integrals.

Each function takes times t (..., times) in s that do not decrease, and a series x (..., times), and returns one number
for each sample (...). Between two times, the series counts as linear.
"""

import numpy as np
import numpy.typing as npt

#: |tau| counts as saturated from this fraction of the limit on, because of round-off.
SATURATED = 1.0 - 1e-9


def settling_time(t: np.ndarray, x: np.ndarray, reference: float, band: float) -> np.ndarray:
    """Return the time after which x stays within `band` times the initial deviation from the reference.

    NaN if x is outside at the end.

    Examples
    --------
    >>> settling_time(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 1.5, 0.9, 1.0]), 1.0, 0.25).tolist()
    1.4166666666666667
    """
    deviation = np.abs(x - reference)
    outside = deviation - band * deviation[..., :1]
    last = _last(outside > 0.0)
    after = np.minimum(last + 1, x.shape[-1] - 1)
    # the series may pass through the whole band within one interval: take the crossing of the limit on its later side
    pair = [np.take_along_axis(x - reference, i[..., None], -1)[..., 0] for i in (last, after)]
    limit = np.sign(pair[0]) * band * deviation[..., 0]
    when = _crossing(t, last, after, pair[0] - limit, pair[1] - limit)
    never = ~(outside > 0.0).any(-1)
    return np.where(never, t[..., 0], np.where(outside[..., -1] > 0.0, np.nan, when))


def overshoot(t: np.ndarray, x: np.ndarray, reference: float) -> np.ndarray:
    """Return how far x passes the reference, relative to its initial deviation; 0 if it does not.

    Examples
    --------
    >>> overshoot(np.arange(4.0), np.array([0.0, 2.5, 1.5, 2.0]), 2.0).tolist()
    0.25
    """
    deviation = reference - x[..., :1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(((x - reference) / deviation).max(-1), 0.0)


def rise_time(t: np.ndarray, x: np.ndarray, reference: float) -> np.ndarray:
    """Return the time from the first 10 % to the first 90 % of the step to the reference. NaN if 90 % are not reached.

    Examples
    --------
    >>> rise_time(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 1.0]), 1.0).round(12).tolist()
    1.6
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        progress = (x - x[..., :1]) / (reference - x[..., :1])
    return _first_time(t, progress, 0.9) - _first_time(t, progress, 0.1)


def time_above(t: np.ndarray, x: np.ndarray, limit: np.ndarray | float) -> np.ndarray:
    """Return how long x is above the limit.

    Examples
    --------
    >>> time_above(np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 2.0]), 1.0).tolist()
    1.5
    """
    above = x - limit
    low, high = np.minimum(above[..., 1:], above[..., :-1]), np.maximum(above[..., 1:], above[..., :-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(low >= 0.0, 1.0, np.where(high <= 0.0, 0.0, high / (high - low)))
    return (np.where(high > 0.0, share, 0.0) * np.diff(t)).sum(-1)


def time_in_saturation(t: np.ndarray, x: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Return how long |x| is at its limit: the length of the intervals with both ends at the limit."""
    saturated = np.abs(x) >= SATURATED * limit
    return ((saturated[..., 1:] & saturated[..., :-1]) * np.diff(t)).sum(-1)


def largest_output(limit: npt.ArrayLike, resolution: npt.ArrayLike) -> np.ndarray:
    """Return the largest output of a controller that limits its output and rounds it.

    Examples
    --------
    >>> largest_output(1.0, [0.0, 0.3, 0.35]).round(9).tolist()
    [1.0, 0.9, 1.05]
    """
    limit, resolution = np.broadcast_arrays(np.asarray(limit, float), np.asarray(resolution, float))
    is_rounded = (resolution > 0.0) & np.isfinite(limit)
    with np.errstate(divide="ignore", invalid="ignore"):
        rounded = resolution * np.floor(limit / resolution + 0.5)
    return np.where(is_rounded, rounded, limit)


def integral(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the integral of x over time, by the trapezoidal rule.

    Examples
    --------
    >>> integral(np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 2.0])).tolist()
    5.0
    """
    return (0.5 * (x[..., 1:] + x[..., :-1]) * np.diff(t)).sum(-1)


def _last(mask: np.ndarray) -> np.ndarray:
    """Return the index of the last true value; 0 if there is none."""
    return np.where(mask.any(-1), mask.shape[-1] - 1 - mask[..., ::-1].argmax(-1), 0)


def _first_time(t: np.ndarray, x: np.ndarray, level: float) -> np.ndarray:
    """Return the first time at which x reaches a level above its first value; NaN if it does not."""
    reached = x >= level
    i = reached.argmax(-1)
    before = np.maximum(i - 1, 0)
    pair = [np.take_along_axis(x, k[..., None], -1)[..., 0] - level for k in (before, i)]
    return np.where(reached.any(-1), _crossing(t, before, i, *pair), np.nan)


def _crossing(t: np.ndarray, i: np.ndarray, j: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the time at which a series with the values a and b at the times i and j is zero."""
    times = np.broadcast_to(t, (*i.shape, t.shape[-1]))
    start, end = (np.take_along_axis(times, k[..., None], -1)[..., 0] for k in (i, j))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(a == b, 0.0, a / (a - b))
    return start + share * (end - start)
