"""Stability margins of a loop with the transfer function L(s) = k (s - A)^-1 b. The closed loop has 1 + L = 0.

The crossovers are not searched on a grid. The gain |L| is 1 at frequencies w for which i w is an eigenvalue of

    [A, b b^T; -k^T k, -A^T],

because these eigenvalues are the zeros of 1 - L(s) L(-s). L is real where L(s) - L(-s) = 0. These are the zeros of the
system with the matrices diag(A, -A), (b, b) and (k, k), which are generalized eigenvalues. Newton's method on log(-L)
removes the round-off of all eigenvalues near the imaginary axis. Round-off moves double eigenvalues away from it.

Sources: Boyd, Balakrishnan and Kabamba (1989), "A bisection method for computing the H-infinity norm of a transfer
matrix and related problems"; Emami-Naeini and Van Dooren (1982), "Computation of zeros of linear multivariable
systems".
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
#: A factor of the gain this close to 1 is 1, and a factor this far from it is infinite or zero.
ROUND_OFF, LARGEST_FACTOR = 1e-9, 1e9
#: Growth of a motion that is round-off: of a simple eigenvalue, and at most, relative to the norm of the matrix.
GROWTH, LARGEST_GROWTH = 1e-13, 1e-6


class Loop(NamedTuple):
    """The transfer function L(s) = k (s - A)^-1 b, with A (n, n), b (n,) and k (n,)."""

    A: Array
    b: Array
    k: Array

    def at(self, w: Array) -> tuple[ComplexArray, ComplexArray]:
        """Return L(i w) and its derivative with respect to w, for frequencies (f,) in rad/s; NaN at poles."""
        R = inverses(1j * w[:, None, None] * np.eye(len(self.b)) - self.A)
        x = R @ self.b
        return x @ self.k, -1j * (R @ x[:, :, None])[:, :, 0] @ self.k


class LoopMargins(NamedTuple):
    """Margins of one loop, as in `margins.Margins`, with crossovers in rad/s."""

    gain_margin: float
    lower_gain_margin: float
    phase_margin: float
    delay_margin: float
    phase_crossover: float
    lower_phase_crossover: float
    gain_crossover: float


def margins_of_loop(A: Array, b: Array, k: Array) -> LoopMargins:
    """Compute the margins of the loop with matrices A (n, n), b (n,) and k (n,)."""
    loop = _scaled(A, b, k)
    w_gain = _roots(loop, _where_gain_may_be_one(loop), np.real)
    w_phase = np.append(0.0, _roots(loop, np.append(_where_loop_may_be_real(loop), w_gain), np.imag))
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
        delay_margin=_least(lags / w_gain, w_gain)[0],
        phase_crossover=at_upper if upper <= LARGEST_FACTOR else np.nan,
        lower_phase_crossover=at_lower if inverse <= LARGEST_FACTOR else np.nan,
        gain_crossover=at_gain,
    )


def grows(A: Array) -> bool:
    """Whether a motion x' = A x grows exponentially, apart from round-off.

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
    return bool((values.real > limits).any())


def _scaled(A: Array, b: Array, k: Array) -> Loop:
    """Return the same transfer function with numbers of similar size."""
    from scipy.linalg import matrix_balance

    balanced, (scale, _) = matrix_balance(A, permute=False, separate=True)
    b, k = b / scale, k * scale
    sizes = np.linalg.norm(b), np.linalg.norm(k)
    factor = np.sqrt(sizes[1] / sizes[0]) if all(sizes) else 1.0
    return Loop(balanced, b * factor, k / factor)


def _where_gain_may_be_one(loop: Loop) -> Array:
    """Return frequencies, rad/s, near all at which |L| = 1."""
    A, b, k = loop
    return _frequencies(np.linalg.eigvals(np.block([[A, np.outer(b, b)], [-np.outer(k, k), -A.T]])), A)


def _where_loop_may_be_real(loop: Loop) -> Array:
    """Return frequencies, rad/s, near all at which L is real."""
    from scipy.linalg import eigvals

    A, b, k = loop
    n = len(b)
    pencil = np.zeros((2 * n + 1, 2 * n + 1))
    pencil[:n, :n], pencil[n : 2 * n, n : 2 * n] = A, -A
    pencil[:-1, -1], pencil[-1, :-1] = np.tile(b, 2), np.tile(k, 2)
    identity = np.eye(2 * n + 1)
    identity[-1, -1] = 0.0
    return _frequencies(eigvals(pencil, identity), A)


def _frequencies(values: ComplexArray, A: Array) -> Array:
    """Return the positive imaginary parts of finite eigenvalues near the imaginary axis."""
    values = values[np.isfinite(values) & (values.imag > 0.0)]
    is_near = abs(values.real) <= NEAR_AXIS * abs(values) + ROUND_OFF_OF_AXIS * np.linalg.norm(A)
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
        last, w = w, np.where(np.isfinite(moved), np.clip(moved, w / 2.0, 2.0 * w), w)
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
