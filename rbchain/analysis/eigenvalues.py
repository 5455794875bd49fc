"""Eigenvalues and eigenvectors of the state equations of a batch, with exact zeros for rigid-body motions.

The equations are scaled first: by the mass matrix and by the fastest rate w of the sample, so that all entries are of
order one. Then round-off is about n epsilon, and smaller singular values are zero.

A free body has two zero eigenvalues for each direction, with only one eigenvector. Round-off e would change them to
about sqrt(e), 1e-8. Therefore the space of zero eigenvalues is split off before. With an orthonormal basis (V, U) and
A V = 0, the matrix is

    (V, U)^T A (V, U) = [[0, V^T A U], [0, U^T A U]],

and the same is repeated for U^T A U, until it is regular. Source: Kublanovskaya (1966), "On a method of solving the
complete eigenvalue problem for a degenerate matrix".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Singular values below this multiple of the number of states and the machine precision are round-off.
ROUND_OFF = 100.0


class Eigenpairs(NamedTuple):
    """Eigenvalues of one sample, and the changes of the positions, one column for each of them.

    Of two complex conjugate eigenvalues, only the one with positive imaginary part is included. For zero eigenvalues,
    only those with an eigenvector are.
    """

    values: np.ndarray
    positions: np.ndarray


def tolerance(states: int) -> float:
    """Return the largest singular value of scaled equations that is round-off."""
    return float(ROUND_OFF * max(states, 1) * np.finfo(np.float64).eps)


def eigenpairs_of_conservative(K: np.ndarray) -> list[Eigenpairs]:
    """Return the eigenpairs of x'' = - K x for each sample, for symmetric matrices K (samples, n, n) of order one.

    The eigenvalues of a positive entry w^2 are +- i w, of a negative one +- w.
    """
    squares, vectors = np.linalg.eigh(K)
    squares = np.where(abs(squares) <= tolerance(2 * K.shape[-1]), 0.0, squares)
    roots = np.sqrt(abs(squares))
    values = np.where(squares < 0.0, -roots, 1j * roots)
    vectors = vectors.astype(complex)
    return [
        Eigenpairs(
            np.concatenate([values[k], roots[k, squares[k] < 0.0]]),
            np.concatenate([vectors[k], vectors[k][:, squares[k] < 0.0]], 1),
        )
        for k in range(len(K))
    ]


def eigenpairs_of(A: np.ndarray, positions: int) -> Eigenpairs:
    """Return the eigenpairs of scaled equations x' = A x, whose first states are `positions` positions."""
    n = len(A)
    Q, first, null, size = np.eye(n), 0, 0, tolerance(n)
    T = A
    while first < n:
        _, values, right = np.linalg.svd(T[first:, first:])
        zeros = int((values <= size).sum())
        if not zeros:
            break
        # the zero directions first
        turn = np.concatenate([right[len(values) - zeros :], right[: len(values) - zeros]]).T
        Q = np.concatenate([Q[:, :first], Q[:, first:] @ turn], 1)
        T = Q.T @ A @ Q
        T[first:, first : first + zeros] = 0.0
        null = null or zeros
        first += zeros
    values, vectors = np.linalg.eig(T[first:, first:])
    chosen = values.imag >= 0.0
    values, vectors = values[chosen].astype(complex), vectors[:, chosen].astype(complex)
    above = np.zeros((first, len(values)), complex)
    for j, value in enumerate(values):
        above[:, j] = np.linalg.solve(value * np.eye(first) - T[:first, :first], T[:first, first:] @ vectors[:, j])
    found = Q @ np.concatenate([above, vectors])
    return Eigenpairs(
        np.concatenate([np.zeros(null, complex), values]),
        np.concatenate([Q[:positions, :null].astype(complex), found[:positions]], 1),
    )
