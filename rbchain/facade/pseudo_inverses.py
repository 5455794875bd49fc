"""Least-squares solutions of many small linear systems, with Jacobians that may lose rank."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import FloatArray

#: Singular values below this fraction of the largest one are round-off.
RANK_TOLERANCE = 1e-10


def product(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Multiply matrices (..., m, n) by vectors (..., n)."""
    return (matrix @ vector[..., None])[..., 0]


def pseudo_inverse(matrix: FloatArray) -> FloatArray:
    """Return the pseudo-inverses (..., n, m) of matrices (..., m, n) in float64; zero for matrices with NaN."""
    finite = np.where(np.isfinite(matrix), matrix, 0.0).astype(np.float64)
    return np.asarray(np.linalg.pinv(finite, rcond=RANK_TOLERANCE))


def damped_solution(J: FloatArray, residual: FloatArray, damping: npt.ArrayLike) -> FloatArray:
    """Solve J x = residual for x of minimum norm, with damped singular values."""
    J, residual = np.where(np.isfinite(J), J, 0.0), np.where(np.isfinite(residual), residual, 0.0)
    U, sigma, Vt = np.linalg.svd(J, full_matrices=False)
    square = sigma * sigma + np.minimum(np.asarray(damping), 1.0)[..., None] ** 2
    is_used = sigma > RANK_TOLERANCE * sigma.max(-1, keepdims=True)
    inverse = np.where(is_used, sigma / np.where(is_used, square, 1.0), 0.0)
    return product(np.swapaxes(Vt, -1, -2), inverse * product(np.swapaxes(U, -1, -2), residual))
