"""Times at which a quantity crosses zero within the accepted steps of a motion, and how long it is positive."""

from __future__ import annotations

import numpy as np

from .in_steps import EXTREME_ROUNDS, PARTS, Steps, flat, total

GRID = 16  # intervals of a step with a crossing in which the quantity is evaluated
NEAR = 0.25  # distance of a quantity from zero, relative to its change in a step, from which it may cross zero
POINTS = 2 * GRID + 1  # of a step with a crossing in which the quantity is evaluated
CROSSING_ROUNDS = 6  # how often an interval is divided into PARTS to locate a crossing


def first_time(steps: Steps) -> np.ndarray:
    """Return the first time at which the quantity is positive, s; NaN if there is none."""
    return _time(steps, True)


def last_time(steps: Steps) -> np.ndarray:
    """Return the last time at which the quantity is positive, s; NaN if there is none."""
    return _time(steps, False)


def _time(steps: Steps, is_first: bool) -> np.ndarray:
    if len(steps.x) == 0:
        return np.zeros(0)
    order = slice(None) if is_first else slice(None, None, -1)
    is_always, is_mixed, is_near = _signs(steps)
    found = is_always | is_mixed | _becomes_positive(steps, is_near & ~is_always)
    found &= steps.is_step
    step = _place(found[:, order].argmax(-1), found.shape[1], is_first)
    fractions, x = (found_there[:, 0, order] for found_there in _points(steps, step))
    # the polynomial may be positive where the quantity only touches zero
    i = np.where((x > 0.0).any(-1), (x > 0.0).argmax(-1), x.argmax(-1))[:, None]
    before, after = (np.take_along_axis(fractions, np.maximum(i - j, 0), 1) for j in (1, 0))
    low, high = np.minimum(before, after), np.maximum(before, after)
    fractions = _crossings(steps, step, low, high, np.full(low.shape, not is_first))
    start, length = (np.take_along_axis(x, step, 1) for x in (steps.times[..., 0], steps.lengths))
    return np.where(found.any(-1), (start + fractions * length)[:, 0], np.nan)


def _signs(steps: Steps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return in which steps a quantity is always positive, sometimes positive, and so near zero that it may cross it.

    The values at the nodes and between them decide it, (samples, steps).
    """
    high, low = np.maximum(steps.x.max(-1), steps.fine.max(-1)), np.minimum(steps.x.min(-1), steps.fine.min(-1))
    is_mixed = (high > 0.0) & (low <= 0.0)
    is_near = ~is_mixed & (np.minimum(np.abs(high), np.abs(low)) <= NEAR * (high - low))
    return low > 0.0, is_mixed, is_near


def _becomes_positive(steps: Steps, is_near: np.ndarray) -> np.ndarray:
    """Return in which of these steps (samples, steps) the largest value is positive."""
    found = np.zeros(is_near.shape, bool)
    step, is_chosen = _chosen(is_near)
    if step.shape[1]:
        _, x = _points(steps, step)
        np.put_along_axis(found, step, (x > 0.0).any(-1) & is_chosen, 1)
    return found


def _points(steps: Steps, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return fractions of steps (samples, m), in their order, and the quantity there: both (samples, m, POINTS).

    They are a grid, the places of its maxima and minima, and the place at which the quantity is nearest to zero.
    """
    grid = np.broadcast_to(np.linspace(0.0, 1.0, GRID + 1), (*step.shape, GRID + 1))
    x = steps.at(*flat(step, grid)).reshape(grid.shape)
    places = _places_of_extremes(x)
    every, values = _sorted(grid, x, places, steps.at(*flat(step, places)).reshape(places.shape))
    nearest = _nearest_to_zero(steps, step, every, values)
    return _sorted(every, values, nearest, steps.at(*flat(step, nearest)).reshape(nearest.shape))


def _sorted(
    fractions: np.ndarray, values: np.ndarray, more: np.ndarray, their_values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return fractions and values (samples, m, points) with more of them, in the order of the fractions."""
    every = np.concatenate([fractions, more], -1)
    order = np.argsort(every, axis=-1, kind="stable")
    values = np.concatenate([values, their_values], -1)
    return np.take_along_axis(every, order, -1), np.take_along_axis(values, order, -1)


def _nearest_to_zero(steps: Steps, step: np.ndarray, fractions: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the fraction at which a quantity that does not change its sign is nearest to zero, (samples, m, 1).

    The interval around the smallest magnitude (samples, m, points) is divided, so that corners are found, too.
    """
    size, last = np.abs(x), x.shape[-1] - 1
    nearest = size.argmin(-1)[..., None]
    found = np.take_along_axis(fractions, nearest, -1)
    is_open = ((x > 0.0).all(-1) | (x < 0.0).all(-1)) & (size.min(-1) <= NEAR * (x.max(-1) - x.min(-1)))
    place, is_chosen = _chosen(is_open)
    if place.shape[1] == 0:
        return found
    of_step, sign = np.take_along_axis(step, place, 1), np.sign(np.take_along_axis(x[..., 0], place, 1))[..., None]
    low, high = (
        np.take_along_axis(np.take_along_axis(fractions, np.clip(nearest + i, 0, last), -1)[..., 0], place, 1)
        for i in (-1, 1)
    )
    for _ in range(EXTREME_ROUNDS):
        inner = low[..., None] + (high - low)[..., None] * (np.arange(1, PARTS) / PARTS)
        at = (sign * steps.at(*flat(of_step, inner)).reshape(inner.shape)).argmin(-1)
        width = (high - low) / PARTS
        low, high = low + at * width, low + (at + 2) * width
    before = np.take_along_axis(found[..., 0], place, 1)
    np.put_along_axis(found[..., 0], place, np.where(is_chosen, 0.5 * (low + high), before), 1)
    return found


def _places_of_extremes(x: np.ndarray) -> np.ndarray:
    """Return the fractions of the extremes of parabolas through three neighboring values of the grid (..., GRID + 1).

    Other points of the grid stand for themselves, (..., GRID - 1).
    """
    before, after = x[..., :-2] - x[..., 1:-1], x[..., 2:] - x[..., 1:-1]
    bend = before + after
    is_extreme = (before * after >= 0.0) & (bend != 0.0)
    offset = np.where(is_extreme, 0.5 * (before - after) / np.where(is_extreme, bend, 1.0), 0.0)
    return (np.arange(1, GRID) + offset) / GRID


def _place(i: np.ndarray, count: int, is_first: bool) -> np.ndarray:
    """Return numbers of steps, counted from the first or the last one, as (samples, 1)."""
    return (i if is_first else count - 1 - i)[:, None]


def time_above_zero(steps: Steps) -> np.ndarray:
    """Return how long the quantity is positive, s."""
    lengths, (is_always, is_mixed, is_near) = steps.lengths, _signs(steps)
    found = total(np.where(is_always & ~is_near, lengths, 0.0))
    step, is_real = _chosen(is_mixed | is_near)
    if step.shape[1] == 0:
        return found
    fractions, x = _points(steps, step)
    high, widths = x > 0.0, np.diff(fractions)
    of_steps = np.where(is_real, np.take_along_axis(lengths, step, 1), 0.0)
    found = found + total(of_steps * (widths * (high[..., 1:] & high[..., :-1])).sum(-1))
    place, is_crossing = _chosen(((high[..., 1:] != high[..., :-1]) & is_real[..., None]).reshape(len(step), -1))
    if place.shape[1] == 0:
        return found

    def there(numbers: np.ndarray) -> np.ndarray:
        """Return the numbers (samples, m, POINTS - 1) of the intervals with a crossing."""
        return np.take_along_axis(numbers.reshape(len(step), -1), place, 1)

    i, low, width = np.take_along_axis(step, place // (POINTS - 1), 1), there(fractions[..., :-1]), there(widths)
    starts_high = there(high[..., :-1])
    share = _crossings(steps, i, low, low + width, starts_high) - low
    share = np.where(starts_high, share, width - share)
    return found + total(np.where(is_crossing, share * np.take_along_axis(lengths, i, 1), 0.0))


def _chosen(is_chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices (samples, m) of the true entries, and whether an entry is one of them: the others fill up."""
    most = int(is_chosen.sum(1).max(initial=0))
    index = np.argsort(~is_chosen, axis=1, kind="stable")[:, :most]
    return index, np.take_along_axis(is_chosen, index, 1)


def _crossings(
    steps: Steps, step: np.ndarray, low: np.ndarray, high: np.ndarray, starts_high: np.ndarray
) -> np.ndarray:
    """Return the fractions of steps between `low` and `high` (samples, m) at which the quantity changes its sign.

    `starts_high` is True if it is positive at `low`. The interval is divided, and the last part is linear.
    """
    ends = np.arange(PARTS + 1) / PARTS
    for _ in range(CROSSING_ROUNDS):
        fractions = low[..., None] + (high - low)[..., None] * ends
        x = steps.at(*flat(step, fractions)).reshape(fractions.shape)
        has_changed = (x > 0.0)[..., 1:] != starts_high[..., None]
        i = np.where(has_changed.any(-1), has_changed.argmax(-1), PARTS - 1)[..., None]
        low, high = (np.take_along_axis(fractions, j, -1)[..., 0] for j in (i, i + 1))
    a, b = (np.take_along_axis(x, j, -1)[..., 0] for j in (i, i + 1))
    share = np.where(a * b < 0.0, a / np.where(a == b, 1.0, a - b), 1.0)
    return low + np.clip(share, 0.0, 1.0) * (high - low)
