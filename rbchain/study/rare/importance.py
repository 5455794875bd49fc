"""Importance sampling from shifted normal distributions, whose means sequential stages find."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from ...errors import StudyError
from .estimates import Estimate, Margins, Stage, lognormal_interval
from .mixtures import Mixture, fitted, fitted_to_halves
from .regions import COMMON, LEAST_SHARE, MOST_SEARCHES, NEGLIGIBLE, SEARCH, Region, Regions
from .wide import WideSearch

SPREAD = 1.5  # coefficient of variation of the weights in a stage
SEARCH_SPREAD = 2.5  # of the weights in a further search, which needs less accurate means
LAST_SPREAD = 3.0  # of the indicator in the last stage, which is then a failure in at least 10 % of the samples
MOST_STAGES = 50
FALL = 0.95  # of sigma in a stage
WIDER = 1.25  # factor of the spread while sigma does not fall
PILOT, REST = 1000, 1001  # stages of the random numbers of the estimate
MARGIN = 1.1  # more samples than the pilot asks for


def importance_sampling(
    margins: Margins,
    dimension: int,
    seed: int,
    samples: int,
    wanted: float,
    limit: int,
    exploring: Margins | None = None,
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

    The stages may drift to one region of failures and lose another one. So further searches start from the first
    samples again, and use only samples elsewhere: outside of half-spaces in the directions of the means that previous
    searches have found, which contain half of the first samples. 2 Phi(-margin / sigma) is at least 1 in failures, so
    twice its mean elsewhere is at least the probability of failures there. The searches end when this bound is below
    5 % of the probability found, or does not fall. A last search starts from samples of large spread, which fail for
    margins of any slope (`WideSearch`). The upper limit of the interval includes the larger one of both bounds.

    The estimate uses new independent samples of the mixture of all regions, so it has no bias. A pilot of `samples`
    determines how many more the wanted coefficient of variation needs.

    Parameters
    ----------
    margins, dimension, seed, samples
        As for `subset_simulation`.
    wanted : float
        Coefficient of variation.
    limit : int
        Largest number of samples.
    exploring : function, optional
        As `margins`, but NaN where the margin is unknown. The wide samples use it, because they can lie far from all
        others. They do not count as failures there.

    Examples
    --------
    >>> found = importance_sampling(lambda u: 4.75 - u.mean(-1) * 2.0, 4, seed=1, samples=500, wanted=0.1, limit=20_000)
    >>> found.interval[0] < 1.017e-6 < found.interval[1], found.coefficient_of_variation < 0.11
    (True, True)
    """
    regions = Regions(margins, exploring or margins, dimension, seed, samples, limit)
    searches = _Searches(regions)
    searches.add_region()
    wide = WideSearch(regions)
    for _ in range(MOST_SEARCHES - 1):
        if not searches.add_region():
            break
    wide.add_regions()
    mixture = regions.mixture()
    counts = samples, limit - regions.simulations
    found = estimate_from(margins, mixture, seed, counts, wanted, regions.stages)
    low, high = found.interval
    return dataclasses.replace(found, interval=(low, min(high + max(searches.bound, wide.bound), 1.0)))


class _NotFound(Exception):
    """A search has not found a region."""


@dataclass
class _Searches:
    """Searches for regions of failures by margins, each elsewhere than the previous ones.

    `bound` is the estimate of an upper bound of the probability of failures elsewhere, in the last stage of the last
    search.
    """

    regions: Regions
    bound: float = 0.0

    def __post_init__(self) -> None:
        self.first = self.regions.simulated(self.regions.start, 0, 0.0)

    def add_region(self) -> bool:
        """Search a further region, and return whether there is one.

        There is none if failures elsewhere are negligible or not found. Raises a StudyError if the first search does
        not find a region.
        """
        if self.regions.probability > COMMON:
            return False
        try:
            self.regions.found.append(self._found_region())
        except _NotFound as reason:
            if self.regions.found:
                return False
            raise StudyError(str(reason)) from None
        return True

    def _found_region(self) -> Region:
        """Return the region of a new search, or raise _NotFound with the reason."""
        regions = self.regions
        base, is_elsewhere = SEARCH * len(regions.found), self._elsewhere()
        mixture, sigma, has_many, is_stalled = regions.start, math.inf, False, False
        spread = SEARCH_SPREAD if regions.found else SPREAD
        u, found = self.first
        for stage in range(base, base + MOST_STAGES):
            if stage > base:
                if regions.found and not regions.has_simulations():
                    raise _NotFound("the limit is reached")
                u, found = regions.simulated(mixture, stage, float(sigma))
            log_ratio, chosen = mixture.log_ratio(u), is_elsewhere(u)
            u, found, log_ratio = u[chosen], found[chosen], log_ratio[chosen]
            self._check_elsewhere(found, log_ratio, sigma)
            if _is_smooth_enough(found, sigma):
                break
            before, sigma = sigma, _smallest_sigma(found, log_ratio, sigma, spread)
            if sigma > FALL * before:
                has_many, sigma = True, _falling_sigma(found, log_ratio, before, spread)
            if is_stalled and sigma > FALL * before:
                raise _NotFound(
                    "the stages of importance sampling do not come closer to the failures; expected failures in few "
                    f"regions, which {regions.samples} samples can distinguish. Use a larger stage, or method='subset'"
                )
            is_stalled = sigma > FALL * before
            fit = fitted_to_halves if has_many else fitted
            mixture = fit(u, _log_indicator(found, sigma) - log_ratio, regions.seed, stage)
        else:
            raise _NotFound(
                f"importance sampling does not reach the failures within {MOST_STAGES} stages; expected a measure that "
                "shows how close a sample is to a failure. Use another method, or change the threshold"
            )
        fit, logarithms = fitted_to_halves if has_many else fitted, np.where(found < 0.0, -log_ratio, -np.inf)
        probability = float(np.exp(logarithms).sum() / regions.samples)
        return Region(probability, fit(u, logarithms, regions.seed, base + MOST_STAGES), mixture)

    def _check_elsewhere(self, found: np.ndarray, log_ratio: np.ndarray, sigma: float) -> None:
        """Estimate the bound, and end a further search whose samples elsewhere are negligible or too few."""
        if not self.regions.found:
            return
        samples = self.regions.samples
        self.bound = _bound(found, log_ratio, sigma, samples)
        if self.bound < NEGLIGIBLE * self.regions.probability or len(found) < LEAST_SHARE * samples:
            raise _NotFound("failures elsewhere are negligible, or the samples are not there")

    def _elsewhere(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that tells which samples are elsewhere than the regions."""
        if not self.regions.found:
            return lambda u: np.ones(len(u), bool)
        directions = self.regions.directions()
        limit = max(float(np.median((self.first[0] @ directions).max(-1))), 0.0)
        return lambda u: (u @ directions).max(-1) <= limit


def _log_indicator(found: np.ndarray, sigma: float) -> np.ndarray:
    """Return the logarithms (m,) of the smoothed indicator of a failure, Phi(-margin / sigma)."""
    with np.errstate(over="ignore", invalid="ignore"):
        ratios = np.where(np.isinf(found), found, found / sigma)
    logarithms: np.ndarray = special.log_ndtr(-ratios)
    return logarithms


def _bound(found: np.ndarray, log_ratio: np.ndarray, sigma: float, samples: int) -> float:
    """Estimate an upper bound of the probability of failures: twice the mean of the smoothed indicator."""
    return 2.0 * float(np.exp(_log_indicator(found, sigma) - log_ratio).sum() / samples)


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
    value, squares = min(float(weights.mean()), 1.0), (weights - weights.mean()) ** 2
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
    ratio = np.where(found < 0.0, np.exp(-_log_indicator(np.minimum(found, 0.0), sigma)), 0.0)
    return bool(ratio.any() and ratio.std() <= LAST_SPREAD * ratio.mean())


def _falling_sigma(found: np.ndarray, log_ratio: np.ndarray, largest: float, spread: float) -> float:
    """Return a sigma that is clearly smaller than `largest`, if possible, with weights that vary little."""
    sigma = largest
    while sigma > FALL * largest and spread < LAST_SPREAD:
        spread = min(WIDER * spread, LAST_SPREAD)
        sigma = _smallest_sigma(found, log_ratio, largest, spread)
    return sigma


def _smallest_sigma(found: np.ndarray, log_ratio: np.ndarray, largest: float, spread: float) -> float:
    """Return the smallest sigma, at most `largest`, for which the coefficient of variation is at most `spread`."""
    finite = np.abs(found[np.isfinite(found)])
    if not (finite.any() and found.min() < found.max()):
        raise _NotFound(
            f"the measure is the same, at the threshold or infinite in all {len(found)} samples of a stage of "
            "importance sampling; expected a measure that shows how close a sample is to a failure. Use "
            "method='monte_carlo'"
        )
    scale = math.log(10.0) + math.log(float(finite.max()))
    high = min(math.log(largest), scale)
    low = min(high, scale - 30.0)  # samples at the threshold allow any sigma
    for _ in range(40):
        middle = (low + high) / 2
        logarithms = _log_indicator(found, math.exp(middle)) - log_ratio
        weights = np.exp(logarithms - logarithms.max())
        low, high = (middle, high) if weights.std() > spread * weights.mean() else (low, middle)
    return math.exp(high)
