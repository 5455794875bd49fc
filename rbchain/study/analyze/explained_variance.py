"""The share of the variance of a measure that each parameter explains, from a regression on all parameters."""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import legendre

#: Degrees of the polynomial of a parameter, with the samples that each of its coefficients needs at least.
DEGREES = {4: 20, 2: 10, 1: 4}
LEVEL = 0.01  # probability that a parameter without influence is named, for all parameters together
GROUPS = 20  # of samples with similar values of a parameter
LEAST_SHARE_OF_GROUPS = 30.0  # divided by the number of samples: noise exceeds it with a probability of about 1e-4
ROUND_OFF = 1e-10  # relative, of the eigenvalues of parameters that depend on each other


def explained_shares(drawn: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Estimate the share of the variance of `values` that each parameter explains.

    The measure is a sum of polynomials of the ranks of the parameters. Ranks make the estimate robust against heavy
    tails. The variance of the other parameters does not add to the error of a share, as it does for correlations. Where
    groups of samples with similar values of a parameter explain more, as for oscillations, their share counts. A share
    that noise explains is zero.

    Parameters
    ----------
    drawn : (m, columns) array
        Random inputs.
    values : (m,) array
        Finite values of a measure.

    Returns
    -------
    (columns,) array
        Zero for parameters without influence, for constant ones, and if the samples are too few.

    Examples
    --------
    >>> drawn = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> explained_shares(drawn, drawn[:, 0] + 0.5 * drawn[:, 1] ** 2).round(2).tolist()
    [0.95, 0.06, 0.0]
    """
    count, columns = drawn.shape
    shares = np.zeros(columns)
    varies = np.flatnonzero(np.ptp(drawn, axis=0) > 0.0) if count else np.zeros(0, int)
    degree = next((d for d, least in DEGREES.items() if count >= least * d * len(varies)), 0)
    if not (len(varies) and degree and np.ptp(values) > 0.0):
        return shares
    basis = np.concatenate([_polynomials(drawn[:, c], degree) for c in varies], -1)
    y = (values - values.mean()) / np.ptp(values)  # squares of very large or small values are not numbers
    inverse = _inverse(basis.T @ basis)
    coefficients = inverse @ (basis.T @ y)
    parts = (basis * coefficients).reshape(count, len(varies), degree).sum(-1)
    free = max(1, count - basis.shape[1] - 1)
    left = max(0.0, float(np.square(y - parts.sum(-1)).sum())) / free
    for i, c in enumerate(varies):
        own = slice(i * degree, (i + 1) * degree)
        # the sum of squares that this parameter explains and the others do not: the partial F test
        added = coefficients[own] @ np.linalg.pinv(inverse[own, own], hermitian=True) @ coefficients[own]
        if _tail(added / (degree * left) if left > 0.0 else math.inf, degree, free) < LEVEL / len(varies):
            shares[c] = max(0.0, np.square(parts[:, i]).sum() - degree * left) / np.square(y).sum()
        shares[c] = max(shares[c], _correlation_ratio(drawn[:, c], y))
    return shares


def _correlation_ratio(parameter: np.ndarray, y: np.ndarray) -> float:
    """Return the share of the variance between groups of samples with similar values of a parameter.

    It needs many samples, but detects each shape of a dependence. Zero if noise explains it.
    """
    if len(y) < 2 * GROUPS:
        return 0.0
    groups = [y[indices] for indices in np.array_split(np.argsort(parameter, kind="stable"), GROUPS)]
    between = sum(group.size * (group.mean() - y.mean()) ** 2 for group in groups)
    total = np.square(y - y.mean()).sum()
    by_chance = (total - between) / (len(y) - GROUPS) * (GROUPS - 1)
    share = (between - by_chance) / total
    return float(share) if share > LEAST_SHARE_OF_GROUPS / len(y) else 0.0


def _polynomials(parameter: np.ndarray, degree: int) -> np.ndarray:
    """Return Legendre polynomials (m, degree) of the mean ranks of a parameter, which are scaled to (-1, 1)."""
    _, place, counts = np.unique(parameter, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - counts / 2)[place] / len(parameter)
    found = legendre.legvander(2.0 * ranks - 1.0, degree)[:, 1:]
    return found - found.mean(0)


def _inverse(gram: np.ndarray) -> np.ndarray:
    """Return the inverse of a positive semidefinite matrix; its pseudo-inverse if parameters depend on each other."""
    eigenvalues, vectors = np.linalg.eigh(gram)
    kept = eigenvalues > ROUND_OFF * eigenvalues[-1]
    return (vectors[:, kept] / eigenvalues[kept]) @ vectors[:, kept].T


def _tail(x: float, degree: int, free: int) -> float:
    """Return the probability that a number with the F distribution of (degree, free) degrees of freedom exceeds x.

    Exact for the degrees 2 and 4; for 1, the normal approximation of Wallace (1959).
    """
    if not x < math.inf:
        return 0.0
    if degree == 1:
        return math.erfc((8 * free + 1) / (8 * free + 3) * math.sqrt(free * math.log1p(x / free) / 2))
    inside = 1.0 / (1.0 + degree * x / free)
    return inside ** (free / 2) * (1.0 if degree == 2 else 1.0 + (1.0 - inside) * free / 2)
