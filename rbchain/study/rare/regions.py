"""Regions of failures that the searches of importance sampling have found, and the simulations of these searches."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from .estimates import Margins, Stage
from .mixtures import Mixture, expectation_maximization

OF_PREVIOUS = 0.2  # share of the previous stage in the mixture of a region
LEAST_SHARE = 0.1  # of a region in the last mixture
OF_FIT = 0.5  # share of the fit to all regions together in the last mixture
COMMON = 0.1  # probability of a failure above which the first samples contain failures of all regions
NEGLIGIBLE = 0.05  # share of the probability that failures elsewhere may have
MOST_SEARCHES = 9
SEARCH = 100  # step of the stages of the random numbers from search to search
TOGETHER = 1002  # stage of the random numbers of the fit to all regions


@dataclass(frozen=True)
class Region:
    """The result of a search: the probability of these failures, and a mixture that samples them."""

    probability: float
    fit: Mixture
    previous: Mixture

    @property
    def mixture(self) -> Mixture:
        return Mixture.of([1.0 - OF_PREVIOUS, OF_PREVIOUS], [self.fit, self.previous])


@dataclass
class Regions:
    """The regions of failures, with the stages of the searches.

    Attributes
    ----------
    margins, dimension, seed, samples, limit
        As for `importance_sampling`.
    exploring : function
        Margins, NaN where they are unknown.
    start : Mixture
        The standard normal distribution.
    """

    margins: Margins
    exploring: Margins
    dimension: int
    seed: int
    samples: int
    limit: int
    stages: list[Stage] = field(default_factory=list)
    found: list[Region] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start = Mixture(np.ones(1), np.zeros((1, self.dimension)))

    @property
    def probability(self) -> float:
        return sum(region.probability for region in self.found)

    @property
    def simulations(self) -> int:
        return sum(stage.simulations for stage in self.stages)

    def has_simulations(self) -> bool:
        """Return whether the limit allows one more stage before the pilot of the estimate."""
        return self.simulations + 2 * self.samples <= self.limit

    def simulated(self, mixture: Mixture, stage: int, sigma: float) -> tuple[np.ndarray, np.ndarray]:
        """Return samples of a mixture, and their margins."""
        u = mixture.sample(self.seed, stage, self.samples)
        self.stages.append(Stage(self.samples, sigma, math.nan))
        return u, self.margins(u)

    def explored(self, mixture: Mixture, stage: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
        """Return samples of a mixture times `spread`, and their margins, NaN where they are unknown."""
        u = spread * mixture.sample(self.seed, stage, self.samples)
        self.stages.append(Stage(self.samples, math.nan, math.nan))
        return u, self.exploring(u)

    def directions(self) -> np.ndarray:
        """Return vectors (d, k) whose product with a sample is its share of the way to each mean."""
        means = np.concatenate([region.fit.means for region in self.found])
        return (means / (means**2).sum(-1, keepdims=True)).T

    def mixture(self) -> Mixture:
        """Return a mixture for all regions.

        A search fits its means to failures in a part of the space. With more than one mean, half of the mixture is
        therefore fitted again, to the failures of all regions together. The estimate does not use these samples.
        """
        shares = np.array([region.probability for region in self.found])
        shares = np.maximum(shares / shares.sum(), LEAST_SHARE)
        mixture = Mixture.of(shares / shares.sum(), [region.mixture for region in self.found])
        means = np.concatenate([region.fit.means for region in self.found])
        if len(means) == 1 or not self.has_simulations():
            return mixture
        u, found = self.simulated(mixture, TOGETHER, 0.0)
        failing = found < 0.0
        if not failing.any():
            return mixture
        logarithms = -mixture.log_ratio(u[failing])
        weights = np.exp(logarithms - logarithms.max())
        fit = expectation_maximization(u[failing], weights / weights.sum(), means)
        return Mixture.of([OF_FIT, 1.0 - OF_FIT], [fit, mixture])
