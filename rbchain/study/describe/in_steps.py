"""Reductions of quantities over time from the accepted steps of a motion: they do not depend on the saved times.

A quantity is computed at the nodes of each step. The polynomial through these values finds where extremes and crossings
are. The values there are then computed from the states of the dense output. So corners of a quantity, such as limits of
a torque and zeros of a distance, are accurate too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...common.lock_free import cached_property
from ...errors import StudyError
from ...simulate.dense_output import DenseOutput, lagrange
from ...simulate.trajectory import Trajectory

Quantity = Callable[[Trajectory], np.ndarray]
At = Callable[[np.ndarray, np.ndarray], np.ndarray]

CANDIDATES = 3  # steps of a sample in which its largest value is searched
BESIDE = 0.1  # distance from the maximum of a polynomial at which it is compared with the quantity, as a fraction
SMOOTH = 1e-4  # difference from the polynomial, relative to the change in a step, of a quantity without corners
PARTS = 5  # parts into which an interval is divided to locate an extreme or a crossing
EXTREME_ROUNDS = 14  # how often
LEVELS = 16  # bisections of a step with a corner, for an integral
SHARE = 1e-8  # of an integral that the estimated error of one step may have
STATES_AT_ONCE = 1 << 16  # for which a quantity is computed


@dataclass(frozen=True, eq=False)
class Steps:
    """A quantity in the steps of each sample.

    Attributes
    ----------
    nodes : (nodes,) array
        Fractions of a step.
    times : (samples, steps, 2) array, s
    counts : (samples,) array of int
        Number of the last step of each sample. Later ones have a length of zero.
    x : (samples, steps, nodes) array
        The quantity at the nodes.
    at : callable
        Computes the quantity at fractions of steps, both (samples, m).
    raw : (samples, steps, nodes) array
    function : callable
        The function of the quantity in `raw` which gives `x`.
    """

    nodes: np.ndarray
    times: np.ndarray
    counts: np.ndarray
    x: np.ndarray
    at: At
    raw: np.ndarray
    function: Callable[[np.ndarray], np.ndarray]

    @cached_property
    def grid(self) -> np.ndarray:
        """The nodes, and the middles between them."""
        return np.insert(self.nodes, np.arange(1, self.nodes.size), 0.5 * (self.nodes[1:] + self.nodes[:-1]))

    def on_grid(self, x: np.ndarray) -> np.ndarray:
        """Return the polynomials through values at the nodes (..., nodes), at the fractions in `grid`."""
        every = np.empty((*x.shape[:-1], self.grid.size))
        every[..., ::2] = x
        for i, weights in enumerate(lagrange(self.nodes, self.grid[1::2])):
            every[..., 2 * i + 1] = weighted(x, weights)
        return every

    @cached_property
    def fine(self) -> np.ndarray:
        """The function of the polynomials through the raw values, at the fractions in `grid`."""
        return self.function(self.on_grid(self.raw))

    @property
    def lengths(self) -> np.ndarray:
        """Lengths of the steps, s."""
        return self.times[..., 1] - self.times[..., 0]

    @property
    def is_step(self) -> np.ndarray:
        """Whether a sample has this step, or has ended before: (samples, steps)."""
        return np.arange(self.x.shape[1]) <= self.counts[:, None]

    @property
    def end(self) -> np.ndarray:
        """The last value of each sample."""
        return self.x[np.arange(len(self.x)), self.counts, -1]

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> Steps:
        """Return a function of the quantity; it receives arrays whose first axis is the sample."""
        at, inner = self.at, self.function
        return replace(
            self,
            x=function(self.x),
            at=lambda i, f: function(at(i, f)),
            function=lambda x: function(inner(x)),
        )


def in_steps(motion: Trajectory, quantities: Sequence[Quantity]) -> list[Steps]:
    """Return quantities in the steps of a motion: functions of a motion that return (..., times).

    Raises StudyError if `simulate` has not kept all steps.
    """
    dense = _all_steps(motion)
    samples, steps, _ = dense.times.shape
    nodes = dense.nodes
    found = [np.empty((samples, steps, nodes.size)) for _ in quantities]
    block = max(1, STATES_AT_ONCE // max(1, samples * nodes.size))
    for first in range(0, steps, block):
        last = min(first + block, steps)
        states = dense.at_nodes(first, last)
        for x, quantity in zip(found, quantities, strict=True):
            x[:, first:last] = quantity(states).reshape(samples, last - first, nodes.size)

    def values(quantity: Quantity) -> At:
        def at(steps: np.ndarray, fractions: np.ndarray) -> np.ndarray:
            block = max(1, STATES_AT_ONCE // max(1, samples))
            parts = range(0, steps.shape[1], block)
            motions = (dense.at(steps[:, i : i + block], fractions[:, i : i + block]) for i in parts)
            return np.concatenate([quantity(m).reshape(samples, m.t.shape[-1]) for m in motions], 1)

        return at

    return [
        Steps(nodes, dense.times, dense.counts, x, values(quantity), x, np.asarray)
        for x, quantity in zip(found, quantities, strict=True)
    ]


def _all_steps(motion: Trajectory) -> DenseOutput:
    """Return the steps of a trajectory. Raises StudyError if `simulate` has not kept all of them."""
    dense = motion.dense_output
    if dense is None or not dense.is_complete:
        most = int(motion.steps.max(initial=0)) if dense is None else dense.most
        raise StudyError(
            f"the trajectory has up to {most} steps, but simulate has not kept all of them; expected "
            f"dense_output={most} or more in the call of simulate"
        )
    return dense


def ends_of(motion: Trajectory) -> Trajectory:
    """Return the states at the end of the last step of each sample, (..., 1) times, with the forces of this step."""
    dense = _all_steps(motion)
    return dense.at(dense.counts[:, None], np.ones((len(dense.counts), 1)))


def duration_of(motion: Trajectory) -> float:
    """Return the duration of the simulation of a motion, s."""
    return _all_steps(motion).duration


def weighted(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the sum of x (..., nodes) over the nodes with weights (nodes, ...).

    BLAS would round depending on the size of the batch.
    """
    return sum(weight * x[..., i] for i, weight in enumerate(weights))


def total(x: np.ndarray) -> np.ndarray:
    """Return the sum over axis 1 in its order, so that zeros at its end do not change a bit."""
    return np.cumsum(x, 1)[:, -1] if x.shape[1] else np.zeros(len(x))


def along(numbers: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return a number of each sample in a shape that fits x (samples, ...)."""
    return np.reshape(numbers, (-1, *np.ones(x.ndim - 1, int)))


def largest(steps: Steps) -> np.ndarray:
    """Return the largest value of each sample.

    The maxima of the polynomials through the nodes show in which steps it may be. If the quantity agrees with the
    polynomial around its maximum, this is the place of the largest value: the error is the square of the difference.
    Otherwise the quantity has a corner, and the step is divided to 3e-6 of its length.
    """
    samples, count, _ = steps.x.shape
    if samples == 0:
        return np.zeros(0)
    is_step = steps.is_step & (steps.lengths > 0.0)
    best = np.where(steps.is_step[..., None], steps.x, -np.inf).max((1, 2))
    places, maxima = _maxima(steps)
    step = np.argsort(-np.where(is_step, maxima, -np.inf), axis=1, kind="stable")[:, : min(CANDIDATES, count)]
    is_real = np.take_along_axis(is_step, step, 1)[..., None]
    rows = np.arange(samples)[:, None]
    fractions = np.clip(places[rows, step][..., None] + BESIDE * np.arange(-1, 2), 0.0, 1.0)
    nodes = steps.x[rows, step]
    expected = weighted(nodes[:, :, None], np.moveaxis(lagrange(steps.nodes, fractions), -1, 0))
    x = steps.at(*flat(step, fractions)).reshape(fractions.shape)
    best = np.maximum(best, np.where(is_real, x, -np.inf).max((1, 2)))
    change = (nodes.max(-1) - nodes.min(-1))[..., None]
    is_open = (is_real & (np.abs(x - expected) > SMOOTH * change)).any((1, 2))
    if not is_open.any():
        return best
    low, high = np.zeros(step.shape), np.ones(step.shape)
    for _ in range(EXTREME_ROUNDS):
        fractions = low[..., None] + (high - low)[..., None] * (np.arange(1, PARTS) / PARTS)
        x = np.where(is_real, steps.at(*flat(step, fractions)).reshape(fractions.shape), -np.inf)
        # the bits of other samples must not depend on this one
        best = np.where(is_open, np.maximum(best, x.max((1, 2))), best)
        width, peak = (high - low) / PARTS, x.argmax(-1)
        low, high = low + peak * width, low + (peak + 2) * width
    return best


def _maxima(steps: Steps) -> tuple[np.ndarray, np.ndarray]:
    """Return where the polynomials through the nodes have their maximum, and the maxima: both (samples, steps).

    A parabola through three points around the largest one on a finer grid finds the place.
    """
    grid, x = steps.grid, steps.on_grid(steps.x)
    peak = x.argmax(-1)
    i = np.clip(peak, 1, grid.size - 2)
    a, b, c = (np.take_along_axis(x, (i + j)[..., None], -1)[..., 0] for j in (-1, 0, 1))
    left, right = grid[i - 1] - grid[i], grid[i + 1] - grid[i]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope_a, slope_c = (a - b) / left, (c - b) / right
        bend = (slope_c - slope_a) / (right - left)
        vertex = 0.5 * (left - slope_a / bend)
    is_inside = (bend < 0.0) & (vertex > left) & (vertex < right)
    places = grid[i] + np.where(is_inside, vertex, grid[peak] - grid[i])
    at_places = weighted(steps.x, np.moveaxis(lagrange(steps.nodes, places), -1, 0))
    return places, np.maximum(at_places, np.maximum(a, np.maximum(b, c)))


def smallest(steps: Steps) -> np.ndarray:
    """Return the smallest value of each sample."""
    return -largest(steps.map(np.negative))


def integral(steps: Steps) -> np.ndarray:
    """Return the integral over time, by Lobatto's quadrature of each step.

    The inner nodes alone give another quadrature. Where the two differ too much, the step is bisected.
    """
    samples, count, _ = steps.x.shape
    sums, scales, errors = _quadrature(steps.nodes, steps.x, steps.lengths)
    limit = SHARE * total(scales)[:, None]
    found = total(np.where(errors > limit, 0.0, sums))
    chosen = np.broadcast_to(np.arange(count), (samples, count))
    low, high = np.zeros((samples, count)), np.ones((samples, count))
    for level in range(LEVELS):
        is_open = errors > limit
        most = int(is_open.sum(1).max(initial=0))
        if most == 0:
            break
        first = np.argsort(~is_open, axis=1, kind="stable")[:, :most]
        is_open, chosen = np.take_along_axis(is_open, first, 1), np.take_along_axis(chosen, first, 1)
        low, high = np.take_along_axis(low, first, 1), np.take_along_axis(high, first, 1)
        middle = 0.5 * (low + high)
        low, high = np.concatenate([low, middle], 1), np.concatenate([middle, high], 1)
        chosen, is_open = np.concatenate([chosen, chosen], 1), np.concatenate([is_open, is_open], 1)
        fractions = low[..., None] + (high - low)[..., None] * steps.nodes
        x = steps.at(*flat(chosen, fractions)).reshape(fractions.shape)
        lengths = np.take_along_axis(steps.lengths, chosen, 1) * (high - low)
        sums, _, errors = _quadrature(steps.nodes, x, np.where(is_open, lengths, 0.0))
        errors = errors if level < LEVELS - 1 else np.zeros_like(errors)
        found = found + total(np.where(errors > limit, 0.0, sums))
    return found


def _quadrature(nodes: np.ndarray, x: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the integrals over intervals, the integrals of magnitudes, and estimates of the errors.

    The error is estimated as in QUADPACK (Piessens et al. 1983): the difference from a quadrature of lower order, to
    the power 3/2, because the error of smooth quantities is much smaller than the difference.
    """
    weights, inner = _weights(nodes), np.r_[0.0, _weights(nodes[1:-1]), 0.0]
    sums, scales = lengths * weighted(x, weights), lengths * weighted(np.abs(x), weights)
    differences = np.abs(sums - lengths * weighted(x, inner))
    ratios = 20.0 * differences / np.where(scales > 0.0, scales, 1.0)
    return sums, scales, scales * np.minimum(1.0, ratios**1.5)


def _weights(nodes: np.ndarray) -> np.ndarray:
    """Return the weights of the quadrature on [0, 1] with these nodes."""
    powers = np.arange(nodes.size)
    return np.linalg.solve(nodes[None] ** powers[:, None], 1.0 / (powers + 1))


def mean(steps: Steps, duration: float) -> np.ndarray:
    """Return the mean over the duration, s; after the end of a sample, its last value counts."""
    ends = steps.times[np.arange(len(steps.x)), steps.counts, 1] - steps.times[:, 0, 0]
    return (integral(steps) + (duration - ends) * steps.end) / duration


def flat(steps: np.ndarray, fractions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return steps (samples, m) and fractions (samples, m, n) of them as arrays (samples, m n)."""
    samples = len(steps)
    every = np.broadcast_to(steps[..., None], fractions.shape)
    return every.reshape(samples, -1), np.ascontiguousarray(fractions).reshape(samples, -1)
