"""Classes of the knots of a signal, at which steps with error control have to end (`core.forces.signal_breaks`)."""

from __future__ import annotations

import numpy as np

from ..core.forces.signal_breaks import KNOT_JUMP, KNOT_KINK, KNOT_SAME, KNOT_SMOOTH
from ..errors import ArgumentError
from .signals import Signal

#: The multiple of the round-off of float64 below which the difference of two pieces is round-off.
ROUND_OFF = 1e3 * np.finfo(float).eps
NUMBERS_AT_ONCE = 1 << 18  # coefficients that are compared at once, so that they stay in the cache


def classes_of_knots(signal: Signal, derivatives: int, duration: float) -> np.ndarray:
    """Return the class of the start of each piece, (samples or 1, pieces) of uint8; the first piece has KNOT_SAME.

    Parameters
    ----------
    signal : Signal
    derivatives : int
        Highest derivative on which the rate of the state depends, from 0 to 2. It is -1 if the signal does not act
        between the instants of a sampled controller; its knots then have KNOT_SAME.
    duration : float, s
        The last piece counts until this time.
    """
    pieces, count = signal.coefficients.shape[-2:]
    coefficients = signal.coefficients.reshape(-1, pieces, count)
    classes = np.full((len(coefficients), pieces), KNOT_SAME, np.uint8)
    if derivatives < 0 or pieces == 1:
        return classes
    breaks = signal.breaks.reshape(-1, pieces)
    rows = max(1, NUMBERS_AT_ONCE // (pieces * count))
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, len(coefficients), rows):
            part = coefficients[first : first + rows]
            own = breaks if len(breaks) == 1 else breaks[first : first + rows]
            classes[first : first + rows, 1:] = _classes(part, own, derivatives, duration)
    return classes


def _classes(c: np.ndarray, breaks: np.ndarray, derivatives: int, duration: float) -> np.ndarray:
    """Return the classes of the knots between the pieces with coefficients c (samples, pieces, m).

    `breaks` are the starts (samples or 1, pieces) of the pieces in s.
    """
    coefficients = np.ascontiguousarray(np.moveaxis(c, -1, 0))
    left, right = coefficients[..., :-1], coefficients[..., 1:]
    before = np.diff(breaks)
    after = np.concatenate([before[:, 1:], np.maximum(duration - breaks[:, -1:], 0.0)], 1)
    differences = np.abs(right - _continued(left, before))
    sizes = _continued(np.abs(left), before)
    # a cubic spline rings at the ends of a pulse, with amplitudes that decay from knot to knot below round-off
    largest = sizes[0].max(-1, keepdims=True)
    sizes += np.abs(right)
    of_times = np.abs(breaks[:, 1:]) * sizes[1] if len(sizes) > 1 else 0.0
    # neighbors in a table of a slow function differ by round-off only; so their difference counts up to the end
    rest = np.maximum(duration - breaks[:, 1:], after)
    result = np.where(_exceeds(differences, sizes[:1], of_times, largest, rest).any(0), KNOT_SMOOTH, KNOT_SAME)
    jumps = _exceeds(differences, sizes, of_times, largest, np.minimum(before, after))
    result[jumps[: max(2, derivatives + 1)].any(0)] = KNOT_KINK
    result[jumps[: derivatives + 1].any(0)] = KNOT_JUMP
    return result


def _continued(coefficients: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Return the coefficients (m, ...) of polynomials in powers of the time since `length` after their start."""
    result = coefficients.copy()
    for first in range(len(result) - 1):
        for j in range(len(result) - 2, first - 1, -1):
            result[j] += length * result[j + 1]
    return result


def _exceeds(
    differences: np.ndarray, sizes: np.ndarray, of_times: np.ndarray | float, largest: np.ndarray, length: np.ndarray
) -> np.ndarray:
    """Whether each term of a difference exceeds the round-off of the sum of sizes, within this time after a knot.

    The round-off includes the round-off of the times. It is at least the round-off of the largest value of the table.
    """
    size = np.zeros_like(sizes[0])
    for j in range(len(sizes) - 1, -1, -1):
        size = size * length + sizes[j]
    size = ROUND_OFF * np.maximum(size + of_times, largest)
    result, power = np.zeros(differences.shape, bool), np.ones_like(length)
    for j in range(len(differences)):
        result[j] = differences[j] * power > size
        power = power * length
    return result


def refuse_jumps(what: str, signal: Signal, derivatives: int) -> None:
    """Raise an error for a prescribed motion with jumps in position or velocity, which no finite force can cause.

    `derivatives` is 2 for a signal of the position, and 1 for a signal of the velocity.
    """
    times = signal.breaks[..., 1:]
    for order in range(derivatives if times.size else 0):
        before, after = signal(np.nextafter(times, -np.inf), order), signal(times, order)
        size = np.abs(signal(signal.breaks, order)).max() + np.abs(after) + 1.0
        jumps = np.abs(after - before) > 1e-9 * size
        if jumps.any():
            at = np.broadcast_to(times, jumps.shape)[jumps][0]
            kind = ("position", "velocity")[order + (derivatives == 1)]
            raise ArgumentError(
                f"{what}: the {kind} jumps at {at:g} s, which would require an infinite force; expected a smoother "
                'signal, such as Signal.table(times, values, interpolation="cubic")'
            )
