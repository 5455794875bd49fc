"""Stability margins of a loop with the transfer function L(s) = k (s - A)^-1 b. The closed loop has 1 + L = 0.

The crossovers are not searched on a grid. The gain |L| is 1 at frequencies w for which i w is an eigenvalue of

    [A, b b^T; -k^T k, -A^T],

because these eigenvalues are the zeros of 1 - L(s) L(-s). L is real where L(s) - L(-s) = 0. These are the zeros of the
system with the matrices diag(A, -A), (b, b) and (k, k), which are generalized eigenvalues. Newton's method on log(-L)
removes the round-off of all eigenvalues near the imaginary axis. Round-off moves double eigenvalues away from it.

A discrete loop with the period T has L(z) = k (z - A)^-1 b, with z = exp(i w T). Its conditions are L(z) L(1 / z) = 1
and L(z) = L(1 / z). With u and y at the ends of L(z), and v and y' of L(1 / z), they are generalized eigenvalues of

    z x = A x + b u, y = k x,   z (A x' + b v) = x', y' = k x',   with u = y', v = y   or   u = v, y = y'.

Sources: Boyd, Balakrishnan and Kabamba (1989), "A bisection method for computing the H-infinity norm of a transfer
matrix and related problems"; Emami-Naeini and Van Dooren (1982), "Computation of zeros of linear multivariable
systems". For discrete loops: Pappas, Laub and Sandell (1980), "On the numerical solution of the discrete-time algebraic
Riccati equation".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .transfer_functions import ComplexArray, inverses

Array = np.ndarray

#: Largest real part of eigenvalues near the imaginary axis: relative to the eigenvalue, and to the norm of A.
NEAR_AXIS, ROUND_OFF_OF_AXIS = 1e-2, 1e-8
#: Most steps of Newton's method, a step that is round-off, and the largest last step, relative to the frequency.
STEPS, SMALLEST_STEP, LAST_STEP = 20, 1e-14, 1e-6
#: Largest residual of log(-L) at a crossover.
LARGEST_RESIDUAL = 1e-6
#: Distance of frequencies of a discrete loop from 0 and from half the sampling frequency, as a share of the latter.
INSIDE = 1e-12
#: A factor of the gain this close to 1 is 1, and a factor this far from it is infinite or zero.
ROUND_OFF, LARGEST_FACTOR = 1e-9, 1e9
#: Growth of a motion that is round-off: of a simple eigenvalue, and at most, relative to the norm of the matrix.
GROWTH, LARGEST_GROWTH = 1e-13, 1e-6


class Loop(NamedTuple):
    """The transfer function L = k (s - A)^-1 b, with A (n, n), b (n,) and k (n,); a discrete one has a period, s."""

    A: Array
    b: Array
    k: Array
    period: float | None

    @property
    def highest(self) -> float:
        """Half the sampling frequency, rad/s."""
        return np.inf if self.period is None else np.pi / self.period

    def at(self, w: Array) -> tuple[ComplexArray, ComplexArray]:
        """Return L and its derivative with respect to w, for frequencies (f,) in rad/s; NaN at poles."""
        s = 1j * w if self.period is None else np.exp(1j * w * self.period)
        slope = np.full(w.shape, 1j) if self.period is None else 1j * self.period * s
        R = inverses(s[:, None, None] * np.eye(len(self.b)) - self.A)
        x = R @ self.b
        return x @ self.k, -slope * ((R @ x[:, :, None])[:, :, 0] @ self.k)


class LoopMargins(NamedTuple):
    """Margins of one loop, as in `margins.Margins`, with crossovers in rad/s."""

    gain_margin: float
    lower_gain_margin: float
    phase_margin: float
    delay_margin: float
    phase_crossover: float
    lower_phase_crossover: float
    gain_crossover: float


class LoopEquations(NamedTuple):
    """The equations x' = A x + B u of a batch, the change -k x of the force that is cut, and which are finite."""

    A: Array
    B: Array
    k: Array
    is_usable: Array


class Numbers(NamedTuple):
    """The numbers of all loops: the margins (samples, 7), whether they are stable, and whether they have equations."""

    margins: Array
    is_stable: Array
    success: Array

    def compute(self, rows: Array, equations: LoopEquations, period: float | None = None) -> None:
        """Compute the numbers of some of the samples."""
        A, B, k, is_usable = equations
        self.success[rows] = is_usable
        for row, *matrices in zip(rows[is_usable], A[is_usable], B[is_usable], k[is_usable], strict=True):
            closed, by_force, of_states = matrices
            self.is_stable[row] = not grows(closed, period)
            if self.is_stable[row]:
                opened = closed + by_force @ of_states
                self.margins[row] = margins_of_loop(opened, by_force[:, 0], of_states[0], period)


def unknown_numbers(samples: int) -> Numbers:
    """Return numbers that are not computed yet."""
    return Numbers(np.full((samples, 7), np.nan), np.zeros(samples, bool), np.zeros(samples, bool))


def margins_of_loop(A: Array, b: Array, k: Array, period: float | None = None) -> LoopMargins:
    """Compute the margins of the loop with matrices A (n, n), b (n,) and k (n,); a discrete one has a period, s."""
    loop = _scaled(A, b, k, period)
    w_gain = _roots(loop, _where_gain_may_be_one(loop), np.real)
    always = [0.0] if period is None else [0.0, loop.highest]  # L is real there
    w_phase = np.append(always, _roots(loop, np.append(_where_loop_may_be_real(loop), w_gain), np.imag))
    L, _ = loop.at(w_phase)
    with np.errstate(divide="ignore"):
        factors = np.where(L.real < 0.0, 1.0 / abs(L), np.nan)
    upper, at_upper = _least(np.where(factors >= 1.0 - ROUND_OFF, factors, np.nan), w_phase)
    inverse, at_lower = _least(np.where(factors <= 1.0 + ROUND_OFF, 1.0 / factors, np.nan), w_phase)
    angles = np.angle(-loop.at(w_gain)[0])
    phase, at_gain = _least(abs(angles), w_gain)
    lags = np.where(angles < -ROUND_OFF, angles + 2.0 * np.pi, abs(angles))
    return LoopMargins(
        gain_margin=upper if upper <= LARGEST_FACTOR else np.inf,
        lower_gain_margin=1.0 / inverse if inverse <= LARGEST_FACTOR else 0.0,
        phase_margin=phase,
        # a delay that is no whole number of periods changes a discrete loop by more than its phase
        delay_margin=_least(lags / w_gain, w_gain)[0] if period is None else np.nan,
        phase_crossover=at_upper if upper <= LARGEST_FACTOR else np.nan,
        lower_phase_crossover=at_lower if inverse <= LARGEST_FACTOR else np.nan,
        gain_crossover=at_gain,
    )


def grows(A: Array, period: float | None = None) -> bool:
    """Whether a motion x' = A x grows exponentially, apart from round-off; with a period, x_(k+1) = A x_k.

    Round-off changes an eigenvalue by epsilon |A| / |cosine of the angle between its left and right eigenvectors|. This
    cosine is zero for rigid-body motions, which have double eigenvalues.
    """
    from scipy.linalg import eig, matrix_balance  # slow to import

    if not A.size:
        return False
    balanced, _ = matrix_balance(A, permute=False)
    values, left, right = eig(balanced, left=True)
    cosines = abs((left.conj() * right).sum(0))
    size = np.linalg.norm(balanced)
    limits = np.minimum(GROWTH * len(A) / np.maximum(cosines, GROWTH), LARGEST_GROWTH) * size
    growth = values.real if period is None else abs(values) - 1.0
    return bool((growth > limits).any())


def _scaled(A: Array, b: Array, k: Array, period: float | None) -> Loop:
    """Return the same transfer function with numbers of similar size."""
    from scipy.linalg import matrix_balance

    balanced, (scale, _) = matrix_balance(A, permute=False, separate=True)
    b, k = b / scale, k * scale
    sizes = np.linalg.norm(b), np.linalg.norm(k)
    factor = np.sqrt(sizes[1] / sizes[0]) if all(sizes) else 1.0
    return Loop(balanced, b * factor, k / factor, period)


def _where_gain_may_be_one(loop: Loop) -> Array:
    """Return frequencies, rad/s, near all at which |L| = 1."""
    A, b, k, period = loop
    by_k = np.outer(b, k)
    if period is None:
        return _frequencies(np.linalg.eigvals(np.block([[A, np.outer(b, b)], [-np.outer(k, k), -A.T]])), loop)
    one, zero = np.eye(len(b)), np.zeros_like(A)
    return _frequencies(_generalized([[A, by_k], [zero, one]], [[one, zero], [by_k, A]]), loop)


def _where_loop_may_be_real(loop: Loop) -> Array:
    """Return frequencies, rad/s, near all at which L is real."""
    A, b, k, period = loop
    one, zero, none = np.eye(len(b)), np.zeros_like(A), np.zeros((len(b), 1))
    b, k, last = b[:, None], k[None], np.zeros((1, 1))
    if period is None:
        of_states, by_s = [[A, zero, b], [zero, -A, b], [k, k, last]], [[one, zero, none], [zero, one, none]]
    else:
        of_states, by_s = [[A, zero, b], [zero, one, none], [k, -k, last]], [[one, zero, none], [zero, A, b]]
    return _frequencies(_generalized(of_states, [*by_s, [none.T, none.T, last]]), loop)


def _generalized(M: list[list[Array]], E: list[list[Array]]) -> ComplexArray:
    """Return the numbers s, some of them infinite, for which the block matrix M - s E is singular."""
    from scipy.linalg import eigvals  # slow to import

    return np.asarray(eigvals(np.block(M), np.block(E)), complex)


def _frequencies(values: ComplexArray, loop: Loop) -> Array:
    """Return the frequencies, rad/s, of finite eigenvalues near the imaginary axis, or near the unit circle."""
    size = np.linalg.norm(loop.A)
    values = values[np.isfinite(values)]
    if loop.period is not None:
        size /= loop.period
        values = np.log(values[values != 0.0]) / loop.period
    values = values[values.imag > 0.0]
    if loop.period is not None:  # L is real at half the sampling frequency: it is no crossover
        values = values[abs(values.imag / loop.highest - 0.5) < 0.5 - INSIDE]
    is_near = abs(values.real) <= NEAR_AXIS * abs(values) + ROUND_OFF_OF_AXIS * size
    return values.imag[is_near]


def _roots(loop: Loop, w: Array, part: Callable[[ComplexArray], Array]) -> Array:
    """Return frequencies, rad/s, near w at which the real or imaginary part of log(-L) is zero."""
    if not (len(w) and loop.b.any() and loop.k.any()):
        return np.zeros(0)
    for _ in range(STEPS):
        L, slope = loop.at(w)
        with np.errstate(divide="ignore", invalid="ignore"):
            residual = part(np.log(-L))
            moved = w - residual / part(slope / L)
        last, w = w, np.where(np.isfinite(moved), np.clip(moved, w / 2.0, np.minimum(2.0 * w, loop.highest)), w)
        if (abs(w - last) <= SMALLEST_STEP * w).all():
            break
    is_root = (abs(residual) <= LARGEST_RESIDUAL) & (abs(w - last) <= LAST_STEP * w)
    return w[is_root]


def _least(values: Array, w: Array) -> tuple[float, float]:
    """Return the smallest value and its frequency; infinity and NaN if all values are NaN."""
    if np.isnan(values).all():
        return np.inf, np.nan
    best = int(np.nanargmin(values))
    return float(values[best]), float(w[best])
