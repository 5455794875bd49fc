"""Importance sampling from shifted normal distributions, whose means sequential stages find."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from ...errors import StudyError
from .estimates import Estimate, Margins, Stage, lognormal_interval
from .random_numbers import normal_numbers, uniform_numbers

SPREAD = 1.5  # coefficient of variation of the weights in a stage
LAST_SPREAD = 3.0  # of the indicator in the last stage, which is then a failure in at least 10 % of the samples
MOST_COMPONENTS = 4
MANY_COMPONENTS = (1, 2, 4, 8, 16, 32)  # after a stage in which sigma does not fall
PATIENCE = 1  # numbers of components without a larger likelihood after which the search ends
MOST_STAGES = 50
FALL = 0.95  # of sigma in a stage
WIDER = 1.25  # factor of the spread while sigma does not fall
MOST_ROUNDS = 20  # of expectation-maximisation
CHANGE = 1e-2  # of the responsibilities, below which a fit ends
LEAST_SHARE = 0.02  # of a component
OF_PREVIOUS = 0.2  # share of the previous stage in the last density
CHOICE, SEEDS = 1 << 20, 1 << 21  # steps of the random numbers that choose components and starts of a fit
PILOT, REST = 1000, 1001  # stages of the random numbers of the estimate
MARGIN = 1.1  # more samples than the pilot asks for


@dataclass(frozen=True)
class Mixture:
    """A mixture of normal distributions with unit covariance: shares (k,) and means (k, d).

    The covariance is not fitted. With a smaller variance than 1/2, the variance of the weights would be infinite.
    """

    shares: np.ndarray
    means: np.ndarray

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


def _log_sum(logarithms: np.ndarray) -> np.ndarray:
    largest = logarithms.max(-1, keepdims=True)
    return largest + np.log(np.exp(logarithms - largest).sum(-1, keepdims=True))


def importance_sampling(
    margins: Margins, dimension: int, seed: int, samples: int, wanted: float, limit: int
) -> Estimate:
    """Estimate the probability of a failure by sequential importance sampling with a mixture of normal distributions.

    Each stage samples the mixture of the previous stage. It weights the samples by the smoothed indicator of a failure,
    Phi(-margin / sigma). Sigma is the smallest value for which the weights have a coefficient of variation of 1.5. The
    means of the next mixture are fitted to these weights. The stages end when the indicator itself is smooth enough.
    This is the improved cross-entropy method (Papaioannou, Geyer and Straub 2019), with the smoothing of sequential
    importance sampling (Papaioannou, Papadimitriou and Straub 2016). The information criterion of Schwarz chooses the
    number of components, at most 4.

    If sigma does not fall in a stage, the failures may be in more regions than the mixture has components. From then
    on, the weights may vary more, and cross-validation chooses up to 32 components. If sigma still does not fall for
    two stages, the method ends with an error, because a mixture that drifts gives wrong estimates.

    The estimate uses new independent samples of the last mixture, so it has no bias. A pilot of `samples` determines
    how many more the wanted coefficient of variation needs.

    Parameters
    ----------
    margins, dimension, seed, samples
        As for `subset_simulation`.
    wanted : float
        Coefficient of variation.
    limit : int
        Largest number of samples.

    Examples
    --------
    >>> found = importance_sampling(lambda u: 4.75 - u.mean(-1) * 2.0, 4, seed=1, samples=500, wanted=0.1, limit=20_000)
    >>> found.interval[0] < 1.017e-6 < found.interval[1], found.coefficient_of_variation < 0.11
    (True, True)
    """
    mixture = Mixture(np.ones(1), np.zeros((1, dimension)))
    sigma, stages, has_many, is_stalled = math.inf, [], False, False
    for stage in range(MOST_STAGES):
        u = mixture.sample(seed, stage, samples)
        found, log_ratio = margins(u), mixture.log_ratio(u)
        failing = found < 0.0
        stages.append(Stage(samples, 0.0 if not stage else float(sigma), math.nan))
        if _is_smooth_enough(found, sigma):
            break
        before, sigma = sigma, _smallest_sigma(found, log_ratio, sigma, SPREAD)
        if sigma > FALL * before:
            has_many, sigma = True, _falling_sigma(found, log_ratio, before)
        if is_stalled and sigma > FALL * before:
            raise StudyError(
                "the stages of importance sampling do not come closer to the failures; expected failures in few "
                f"regions, which {samples} samples can distinguish. Use a larger stage, or method='subset'"
            )
        is_stalled = sigma > FALL * before
        fit = _fitted_to_halves if has_many else _fitted
        mixture = fit(u, special.log_ndtr(-found / sigma) - log_ratio, seed, stage)
    else:
        raise StudyError(
            f"importance sampling does not reach the failures within {MOST_STAGES} stages; expected a measure that "
            "shows how close a sample is to a failure. Use another method, or change the threshold"
        )
    last = (_fitted_to_halves if has_many else _fitted)(u, np.where(failing, -log_ratio, -np.inf), seed, MOST_STAGES)
    shares = np.concatenate([(1.0 - OF_PREVIOUS) * last.shares, OF_PREVIOUS * mixture.shares])
    last = Mixture(shares, np.concatenate([last.means, mixture.means]))
    used = sum(stage.simulations for stage in stages)
    return estimate_from(margins, last, seed, (samples, limit - used), wanted, stages)


def estimate_from(
    margins: Margins, mixture: Mixture, seed: int, counts: tuple[int, int], wanted: float, stages: list[Stage]
) -> Estimate:
    """Estimate the probability of a failure from independent samples of a mixture.

    `counts` are the number of samples of the pilot and the limit for all samples. The interval is lognormal, with
    Student's t for the effective number of samples that determine the variance.
    """
    pilot, most = counts
    u = mixture.sample(seed, PILOT, pilot)
    weights = _weights(margins(u), mixture, u)
    variation = _variation(weights)
    more = most - pilot
    if math.isfinite(variation):
        more = min(more, math.ceil(pilot * (MARGIN * (variation / wanted) ** 2 - 1.0)))
    if variation > wanted and more >= 2:
        rest = mixture.sample(seed, REST, more)
        u, weights = np.concatenate([u, rest]), np.concatenate([weights, _weights(margins(rest), mixture, rest)])
    value, squares = float(weights.mean()), (weights - weights.mean()) ** 2
    variation = _variation(weights)
    effective = squares.sum() ** 2 / max((squares**2).sum(), 1e-300) if math.isfinite(variation) else 1.0
    interval = lognormal_interval(value, variation, effective)
    failing = weights > 0.0
    stages = [*stages, Stage(len(u), 0.0, value)]
    of_failing = weights[failing] / max(weights.sum(), 1e-300)
    return Estimate(value, interval, variation, tuple(stages), u[failing], of_failing)


def _weights(found: np.ndarray, mixture: Mixture, u: np.ndarray) -> np.ndarray:
    return np.where(found < 0.0, np.exp(-mixture.log_ratio(u)), 0.0)


def _variation(weights: np.ndarray) -> float:
    """Return the coefficient of variation of the mean of weights."""
    mean = weights.mean()
    return float(weights.std(ddof=1) / mean / math.sqrt(weights.size)) if mean > 0.0 else math.inf


def _is_smooth_enough(found: np.ndarray, sigma: float) -> bool:
    """Return whether the indicator of a failure, divided by the smoothed one, varies so little as the weights may."""
    with np.errstate(divide="ignore"):
        ratio = np.where(found < 0.0, 1.0 / special.ndtr(-found / sigma), 0.0)
    return bool(ratio.any() and ratio.std() <= LAST_SPREAD * ratio.mean())


def _falling_sigma(found: np.ndarray, log_ratio: np.ndarray, largest: float) -> float:
    """Return a sigma that is clearly smaller than `largest`, if possible, with weights that vary little."""
    spread, sigma = SPREAD, largest
    while sigma > FALL * largest and spread < LAST_SPREAD:
        spread = min(WIDER * spread, LAST_SPREAD)
        sigma = _smallest_sigma(found, log_ratio, largest, spread)
    return sigma


def _smallest_sigma(found: np.ndarray, log_ratio: np.ndarray, largest: float, spread: float) -> float:
    """Return the smallest sigma, at most `largest`, for which the coefficient of variation is at most `spread`."""
    finite = np.abs(found[np.isfinite(found)])
    if not finite.any():
        raise StudyError(
            "the measure is at the threshold or infinite in all samples of a stage of importance sampling; expected a "
            "measure that shows how close a sample is to a failure. Use method='monte_carlo'"
        )
    high = math.log(min(largest, 10.0 * float(finite.max())))
    low = high - 30.0
    for _ in range(40):
        middle = (low + high) / 2
        logarithms = special.log_ndtr(-found / math.exp(middle)) - log_ratio
        weights = np.exp(logarithms - logarithms.max())
        low, high = (middle, high) if weights.std() > spread * weights.mean() else (low, middle)
    return math.exp(high)


def _fitted(u: np.ndarray, logarithms: np.ndarray, seed: int, stage: int) -> Mixture:
    """Return the mixture for weighted samples, with the number of components that Schwarz's criterion chooses."""
    weights = np.exp(logarithms - logarithms.max())
    effective = weights.sum() ** 2 / (weights**2).sum()
    chosen, weights = weights > 1e-12, weights / weights.sum()
    u, weights = u[chosen], weights[chosen]
    best, least = None, math.inf
    for components in range(1, MOST_COMPONENTS + 1):
        mixture = _expectation_maximisation(u, weights, _starts(u, weights, components, seed, stage))
        likelihood = float(weights @ mixture.log_ratio(u))
        parameters = mixture.shares.size * (u.shape[1] + 1)
        criterion = parameters * math.log(effective) - 2 * effective * likelihood
        if best is not None and criterion >= least:
            break
        best, least = mixture, criterion
    assert best is not None
    return best


def _fitted_to_halves(u: np.ndarray, logarithms: np.ndarray, seed: int, stage: int) -> Mixture:
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
    return _expectation_maximisation(u, weights, (shares @ u) / shares.sum(-1, keepdims=True))


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


def _expectation_maximisation(u: np.ndarray, weights: np.ndarray, means: np.ndarray) -> Mixture:
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
