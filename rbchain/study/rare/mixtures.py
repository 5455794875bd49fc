"""Mixtures of normal distributions with unit covariance, and their fits to weighted samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .random_numbers import normal_numbers, uniform_numbers

MOST_COMPONENTS = 4
MANY_COMPONENTS = (1, 2, 4, 8, 16, 32)  # for failures in many regions
PATIENCE = 1  # numbers of components without a larger likelihood after which the search ends
MOST_ROUNDS = 20  # of expectation-maximization
CHANGE = 1e-2  # of the responsibilities, below which a fit ends
LEAST_SHARE = 0.02  # of a component
CHOICE, SEEDS = 1 << 20, 1 << 21  # steps of the random numbers that choose components and starts of a fit


@dataclass(frozen=True)
class Mixture:
    """A mixture of normal distributions with unit covariance: shares (k,) and means (k, d).

    The covariance is not fitted. With a smaller variance than 1/2, the variance of the weights would be infinite.
    """

    shares: np.ndarray
    means: np.ndarray

    @staticmethod
    def of(shares: Sequence[float] | np.ndarray, mixtures: Sequence[Mixture]) -> Mixture:
        """Return the mixture of mixtures."""
        of_components = [share * mixture.shares for share, mixture in zip(shares, mixtures, strict=True)]
        return Mixture(np.concatenate(of_components), np.concatenate([mixture.means for mixture in mixtures]))

    def log_ratio(self, u: np.ndarray) -> np.ndarray:
        """Return the logarithm (m,) of the density divided by the standard normal density at u (m, d)."""
        return _log_sum(self._logarithms(u))[:, 0]

    def _logarithms(self, u: np.ndarray) -> np.ndarray:
        return u @ self.means.T - (self.means**2).sum(-1) / 2 + np.log(self.shares)

    def responsibilities(self, u: np.ndarray) -> np.ndarray:
        """Return the probabilities (m, k) that a component has generated u."""
        logarithms = self._logarithms(u)
        return np.exp(logarithms - _log_sum(logarithms))

    def sample(self, seed: int, stage: int, count: int) -> np.ndarray:
        """Return independent samples (count, d)."""
        chosen = uniform_numbers(seed, (stage, CHOICE), count, 1)[:, 0]
        component = np.minimum(np.searchsorted(np.cumsum(self.shares), chosen), self.shares.size - 1)
        return normal_numbers(seed, (stage, 0), count, self.means.shape[1]) + self.means[component]

    def shrunk(self, effective: float) -> Mixture:
        """Return the mixture whose means are shrunk by their errors, for a fit to this number of effective samples.

        The squared error of a mean is its dimension divided by the number of its samples (James and Stein 1961).
        """
        errors = self.means.shape[1] / (self.shares * effective)
        factors = np.maximum(1.0 - errors / np.maximum((self.means**2).sum(-1), errors), 0.0)
        return Mixture(self.shares, self.means * factors[:, None])


def effective_samples(logarithms: np.ndarray) -> float:
    """Return the effective number of samples (Kish 1965) for the logarithms (m,) of their weights."""
    if not logarithms.size:
        return 0.0
    weights = np.exp(logarithms - logarithms.max())
    return float(weights.sum() ** 2 / (weights**2).sum())


def _log_sum(logarithms: np.ndarray) -> np.ndarray:
    largest = logarithms.max(-1, keepdims=True)
    return largest + np.log(np.exp(logarithms - largest).sum(-1, keepdims=True))


def fitted(u: np.ndarray, logarithms: np.ndarray, seed: int, stage: int) -> Mixture:
    """Return the mixture for weighted samples, with the number of components that Schwarz's criterion chooses."""
    weights = np.exp(logarithms - logarithms.max())
    effective = effective_samples(logarithms)
    chosen, weights = weights > 1e-12, weights / weights.sum()
    u, weights = u[chosen], weights[chosen]
    best, least = None, math.inf
    for components in range(1, MOST_COMPONENTS + 1):
        mixture = expectation_maximization(u, weights, _starts(u, weights, components, seed, stage))
        likelihood = float(weights @ mixture.log_ratio(u))
        parameters = mixture.shares.size * (u.shape[1] + 1)
        criterion = parameters * math.log(effective) - 2 * effective * likelihood
        if best is not None and criterion >= least:
            break
        best, least = mixture, criterion
    assert best is not None
    return best


def fitted_to_halves(u: np.ndarray, logarithms: np.ndarray, seed: int, stage: int) -> Mixture:
    """Return the mixture for weighted samples, with up to 32 components.

    Their number has the largest likelihood of each half of the samples, with a fit to the other half.
    """
    weights = np.exp(logarithms - logarithms.max())
    chosen, weights = weights > 1e-12, weights / weights.sum()
    u, weights = u[chosen], weights[chosen]
    even = np.arange(len(u)) % 2 == 0
    best, largest, without_gain = 1, -math.inf, 0
    for components in MANY_COMPONENTS:
        if 4 * components > len(u) or without_gain > PATIENCE:
            break
        likelihood = 0.0
        for half in (even, ~even):
            mixture = _fit_of_clusters(u[half], weights[half], components, seed, stage)
            likelihood += float(weights[~half] @ mixture.log_ratio(u[~half]))
        without_gain += 1
        if likelihood > largest:
            best, largest, without_gain = components, likelihood, 0
    return _fit_of_clusters(u, weights, best, seed, stage)


def _fit_of_clusters(u: np.ndarray, weights: np.ndarray, components: int, seed: int, stage: int) -> Mixture:
    """Return a mixture whose means start in clusters, in the directions in which the samples vary most.

    In many dimensions, the distances of the samples themselves do not distinguish regions.
    """
    weights = weights / weights.sum()
    x = u - weights @ u
    if components < u.shape[1]:
        _, axes = np.linalg.eigh((x * weights[:, None]).T @ x)
        x = x @ axes[:, -components:]
    centers = _starts(x, weights, components, seed, stage)
    nearest = ((x[:, None] - centers) ** 2).sum(-1).argmin(-1)
    shares = np.stack([weights * (nearest == c) for c in range(components)])
    shares = shares[shares.sum(-1) > 0.0]
    return expectation_maximization(u, weights, (shares @ u) / shares.sum(-1, keepdims=True))


def _starts(u: np.ndarray, weights: np.ndarray, components: int, seed: int, stage: int) -> np.ndarray:
    """Return samples far from each other (k-means++ of Arthur and Vassilvitskii 2007)."""
    chosen = uniform_numbers(seed, (stage, SEEDS), components, 1)[:, 0]
    centers = np.empty((0, u.shape[1]))
    distance = np.ones(len(u))
    for number in chosen:
        cumulative = np.cumsum(weights * distance)
        center = u[min(np.searchsorted(cumulative, number * cumulative[-1]), len(u) - 1)]
        centers = np.concatenate([centers, center[None]])
        squares = ((u - center) ** 2).sum(-1)
        distance = squares if len(centers) == 1 else np.minimum(distance, squares)
    return centers


def expectation_maximization(u: np.ndarray, weights: np.ndarray, means: np.ndarray) -> Mixture:
    """Return the mixture of the largest weighted likelihood near these means."""
    mixture = Mixture(np.full(len(means), 1.0 / len(means)), means)
    old = np.zeros((len(u), 0))
    for _ in range(MOST_ROUNDS):
        responsibilities = mixture.responsibilities(u)
        if responsibilities.shape == old.shape and np.abs(responsibilities - old).max() < CHANGE:
            break
        old = responsibilities
        shares = weights @ responsibilities
        kept = shares > LEAST_SHARE
        of_kept = weights[:, None] * responsibilities[:, kept]
        mixture = Mixture(shares[kept] / shares[kept].sum(), (of_kept.T @ u) / shares[kept][:, None])
    return mixture
