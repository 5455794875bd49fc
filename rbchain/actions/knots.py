"""Classes of the knots of a signal, at which steps with error control have to end (`core.forces.signal_breaks`)."""

from __future__ import annotations

from math import comb

import numpy as np

from ..core.forces.signal_breaks import KNOT_JUMP, KNOT_KINK, KNOT_SAME, KNOT_SMOOTH
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
    rows = max(1, NUMBERS_AT_ONCE // (pieces * count))
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, len(coefficients), rows):
            part = coefficients[first : first + rows]
            classes[first : first + rows, 1:] = _classes(part, signal.breaks, derivatives, duration)
    return classes


def _classes(c: np.ndarray, breaks: np.ndarray, derivatives: int, duration: float) -> np.ndarray:
    """Return the classes of the knots between the pieces with coefficients c (samples, pieces, m)."""
    count, left, right = c.shape[-1], c[:, :-1], c[:, 1:]
    before = np.diff(breaks)
    after = np.append(before[1:], max(duration - breaks[-1], 0.0))
    # the polynomial of the left piece in powers of the time since the knot
    continued = np.zeros_like(left)
    for j in range(count):
        for i in range(j, count):
            continued[..., j] += comb(i, j) * left[..., i] * before ** (i - j)
    differences = np.abs(right - continued)
    result = np.where(_exceeds(differences, c, breaks, before, after).any(-1), KNOT_SMOOTH, KNOT_SAME)
    jumps = _exceeds(differences, c, breaks, before, np.minimum(before, after))
    result[jumps[..., : max(2, derivatives + 1)].any(-1)] = KNOT_KINK
    result[jumps[..., : derivatives + 1].any(-1)] = KNOT_JUMP
    return result


def _exceeds(
    differences: np.ndarray, c: np.ndarray, breaks: np.ndarray, before: np.ndarray, length: np.ndarray
) -> np.ndarray:
    """Whether the term of each power of a difference exceeds the round-off, within this time after each knot.

    The round-off is at least that of the largest value of the table: a cubic spline rings at the ends of a pulse, with
    amplitudes that decay from knot to knot.
    """
    left, right = np.abs(c[:, :-1]), np.abs(c[:, 1:])
    powers = np.arange(c.shape[-1])
    largest = (left * before[:, None] ** powers).sum(-1).max(-1, keepdims=True)
    size = (left * (before + length)[:, None] ** powers + right * length[:, None] ** powers).sum(-1)
    slopes = (left * powers * before[:, None] ** np.maximum(powers - 1, 0)).sum(-1)
    if c.shape[-1] > 1:
        slopes = slopes + right[..., 1]
    size = np.maximum(size + np.abs(breaks[1:]) * slopes, largest)
    return differences * length[:, None] ** powers > ROUND_OFF * size[..., None]
