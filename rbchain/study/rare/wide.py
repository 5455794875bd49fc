"""A search for failures among samples of large spread. It uses the sign of the margins only, not their slopes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from .mixtures import effective_samples, fitted
from .regions import COMMON, MOST_SEARCHES, NEGLIGIBLE, SEARCH, Region, Regions

REACH = 1.5  # distance to failures as probable as the known ones, divided by the first spread
NEAR_MEAN = 0.75  # share of the way to a mean beyond which failures belong to its region
PART = 4.0  # factor for failures that are only a part of a half-space
LEAST_EFFECTIVE = 0.05  # share of the samples of a stage
OF_SAMPLES = 0.9  # share of the failing samples that are effective, if they are few
FALL = 0.5  # of the number of effective samples in a stage
MOST_STAGES = 12
WIDE = 2000  # stage of the random numbers


class WideSearch:
    """A search for regions of failures that the search by margins has lost.

    The stages by margins follow the margin that falls slowest on the way to the failures. Near the medians, a steep
    margin behind it has no effect on their samples. This search starts from samples with the covariance s^2 I instead.
    Beyond a plane at the distance b, a share Phi(-b / s) of them fails, in any dimension and for any slope. The first
    spread s is b / 1.5 for the b at which Phi(-b) is the known probability.

    Failures before 3/4 of the way to all known means lie elsewhere. The stages reduce s to 1 and fit a mixture, times
    s, to these failures by sequential importance sampling. Each new s is the smallest one that at most halves the
    effective number of samples. If too few samples are effective, s stays, and the mixture is fitted to a power of
    their weights, which makes more samples effective. Means are shrunk (James and Stein 1961), because few samples in
    many dimensions determine them.

    A half-space whose share at the spread s is p has the probability Phi(s Phi^-1(p)) at s = 1 (asymptotic sampling,
    Bucher 2009). The bound is this probability for 4 p, because failures elsewhere can be a part of a half-space. The
    search ends when the bound is below 5 % of the known probability.

    Parameters
    ----------
    regions : Regions
        At least one region. The search adds further ones.

    Attributes
    ----------
    bound : float
        Estimate of an upper bound of the probability of failures elsewhere; 1 if the limit prevents the search.
    """

    def __init__(self, regions: Regions) -> None:
        self.regions, self.bound = regions, 0.0
        self.spread = max(1.0, -float(special.ndtri(regions.probability)) / REACH)
        self.is_needed = regions.probability <= COMMON
        if self.is_needed and not regions.has_simulations():
            self.is_needed, self.bound = False, 1.0
        if self.is_needed:
            self.first = regions.explored(regions.start, WIDE, self.spread)

    def add_regions(self) -> None:
        """Search regions until failures elsewhere are negligible or not found."""
        for _ in range(MOST_SEARCHES if self.is_needed else 0):
            region = self._region()
            if region is None:
                break
            self.regions.found.append(region)

    def _region(self) -> Region | None:
        """Return a further region, or None."""
        regions, spread = self.regions, self.spread
        directions, mixture, (u, found) = regions.directions(), regions.start, self.first
        base = WIDE + SEARCH * len(regions.found)
        for stage in range(base, base + MOST_STAGES):
            if stage > base:
                if not regions.has_simulations():
                    return None
                u, found = regions.explored(mixture, stage, spread)
            u = u[(found < 0.0) & ((u @ directions).max(-1) <= NEAR_MEAN)]
            logarithms = -mixture.log_ratio(u / spread)
            least = LEAST_EFFECTIVE * regions.samples
            if stage == base or effective_samples(logarithms) >= least:
                probability = float(np.exp(logarithms).sum()) / regions.samples
                self.bound = _bound(probability, spread)
                if self.bound < NEGLIGIBLE * regions.probability:
                    return None
                if spread == 1.0:
                    return Region(probability, fitted(u, logarithms, regions.seed, stage), mixture)
            if not len(u):
                return None
            spread, logarithms = _target(u, logarithms, spread, min(least, OF_SAMPLES * len(u)))
            fit = fitted(u / spread, logarithms, regions.seed, stage)
            mixture = fit.shrunk(effective_samples(logarithms))
        return None


def _bound(probability: float, spread: float) -> float:
    """Return an upper bound of the probability of failures from their share of samples with a spread."""
    if spread == 1.0:
        return probability
    return float(special.ndtr(spread * special.ndtri(min(PART * probability, 1.0))))


def _target(u: np.ndarray, logarithms: np.ndarray, spread: float, least: float) -> tuple[float, np.ndarray]:
    """Return the spread of the next stage, and the logarithms (m,) of the weights for it.

    `logarithms` are the ones for the current spread. At least `least` samples are effective.
    """
    squares = (u**2).sum(-1) / 2
    effective = effective_samples(logarithms)
    if effective < least:
        power = _closest(lambda x: effective_samples(x * logarithms) >= least, 0.0, 1.0)
        return spread, power * logarithms

    def of_spread(x: float) -> np.ndarray:
        return logarithms - squares * (x**-2 - spread**-2)

    least = max(least, FALL * effective)
    chosen = _closest(lambda x: effective_samples(of_spread(x)) >= least, spread, 1.0)
    return chosen, of_spread(chosen)


def _closest(is_allowed: Callable[[float], bool], allowed: float, wanted: float) -> float:
    """Return an allowed number close to a wanted one, by bisection."""
    if is_allowed(wanted):
        return wanted
    for _ in range(40):
        middle = (allowed + wanted) / 2
        allowed, wanted = (middle, wanted) if is_allowed(middle) else (allowed, middle)
    return allowed
