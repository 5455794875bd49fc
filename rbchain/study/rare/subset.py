"""Subset simulation: a small probability as a product of larger ones, by random walks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...errors import StudyError
from .estimates import Estimate, Margins, Stage, lognormal_interval
from .random_numbers import normal_numbers, uniform_numbers

SHARE = 0.1  # of the samples of a stage that are below the next level
ACCEPTANCE = 0.44  # share of accepted proposals, which the width of the proposals approaches
FIRST_WIDTH = 0.6  # of the proposals
LEAST = 1e-12  # probability; u is a coarse function of smaller tail probabilities in float64
CHOICE = 1 << 20  # step of the random numbers that choose the seeds


class _Level(NamedTuple):
    """Samples of a level: vectors (m, d), margins (m,), and the number (m,) of the first ancestor of each."""

    u: np.ndarray
    margins: np.ndarray
    families: np.ndarray


def subset_simulation(margins: Margins, dimension: int, seed: int, samples: int) -> Estimate:
    """Estimate the probability of a failure by subset simulation (Au and Beck 2001).

    Stage 0 has independent samples. The samples with the smallest margins, 10 % of them, are the seeds of stage 1.
    Random walks from the seeds sample the distribution below the largest margin of the seeds. The stages end when 10 %
    of the samples are failures. The estimate is the product of the shares.

    The proposals are rho u + sigma z with standard normal z and rho^2 + sigma^2 = 1. They do not degenerate in high
    dimensions. Their width sigma adapts to an acceptance of 44 % (Papaioannou, Betz, Zwirglmaier and Straub 2015).

    All samples with the same ancestor in stage 0 form a family. Families are independent in the limit of many samples,
    but samples of a family are correlated, within walks and across stages. So the variance of the logarithm is the sum
    of the squared contributions of the families (Chan and Lai 2013; Lee and Whiteley 2018). The interval is lognormal,
    with Student's t for the effective number of families.

    Parameters
    ----------
    margins : function
        Maps standard normal vectors (m, d) to margins (m,); negative for a failure.
    dimension, seed : int
    samples : int
        Number of samples of each stage.

    Raises
    ------
    StudyError
        If the margins of all samples are equal, or no failure is found at probabilities above 1e-12.

    Examples
    --------
    The sum of two standard normal numbers exceeds 5 with probability 2.03e-4:

    >>> found = subset_simulation(lambda u: 5.0 - u.sum(-1), dimension=2, seed=1, samples=1000)
    >>> found.interval[0] < 2.03e-4 < found.interval[1], len(found.stages)
    (True, 4)
    """
    u = normal_numbers(seed, (0, 0), samples, dimension)
    level = _Level(u, margins(u), np.arange(samples))
    contributions, logarithm, width = np.zeros(samples), 0.0, FIRST_WIDTH
    stages: list[Stage] = []
    while True:
        bound = _next_bound(level.margins, stages)
        is_last = bound < 0.0
        below = level.margins < 0.0 if is_last else level.margins <= bound
        share = below.mean()
        np.add.at(contributions, level.families, (below - share) / (share * below.size))
        logarithm += math.log(share)
        stages.append(Stage(below.size, max(bound, 0.0), float(share)))
        if is_last:
            break
        if logarithm < math.log(LEAST):
            raise StudyError(
                f"no failure found: the margin of the nearest samples is {level.margins.min():g}, and the probability "
                f"of coming this close is below {LEAST:g}; expected a larger probability. Change the threshold"
            )
        level, width = _conditional_samples(margins, level, below, bound, width, (seed, len(stages), samples))
    value, squares = math.exp(logarithm), contributions**2
    variation = math.sqrt(squares.sum())
    families = squares.sum() ** 2 / max((squares**2).sum(), 1e-300)
    interval = lognormal_interval(value, variation, families)
    weights = np.full(int(below.sum()), 1.0 / below.sum())
    return Estimate(value, interval, variation, tuple(stages), level.u[below], weights)


def _next_bound(margins: np.ndarray, stages: list[Stage]) -> float:
    """Return the margin that the wanted share of samples does not exceed; it is negative in the last stage.

    Many samples may have the same margin. Then the bound is the next smaller one, if there is one. A sample at the
    threshold, whose margin is 0, is not a failure.
    """
    ordered = np.sort(margins)
    bound = ordered[max(1, round(SHARE * margins.size)) - 1]
    if bound >= 0.0 and (margins <= bound).mean() > 0.5:
        smaller = ordered[ordered < bound]
        if not smaller.size:
            raise StudyError(
                f"the measure is the same in at least half of the {margins.size} samples of stage {len(stages)}, and "
                "no sample is closer to the threshold; expected a measure that varies. Use method='monte_carlo', or a "
                "measure that shows how close a sample is to a failure"
            )
        bound = smaller[-1]
    return float(bound)


def _conditional_samples(
    margins: Margins, level: _Level, below: np.ndarray, bound: float, width: float, place: tuple[int, int, int]
) -> tuple[_Level, float]:
    """Return samples below the bound, from random walks that start at the samples below it, and the adapted width.

    `place` contains the seed, the number of the stage, and the number of its samples.
    """
    seed, stage, samples = place
    candidates = np.flatnonzero(below)
    chosen = np.argsort(uniform_numbers(seed, (stage, CHOICE), candidates.size, 1)[:, 0], kind="stable")
    seeds = candidates[chosen[: max(1, round(SHARE * samples))]]
    u, found, families = level.u[seeds], level.margins[seeds], level.families[seeds]
    steps = -(-samples // seeds.size)
    all_u, all_margins = [u], [found]
    for step in range(1, steps):
        z = normal_numbers(seed, (stage, step), *u.shape)
        proposed = math.sqrt(1.0 - width**2) * u + width * z
        of_proposed = margins(proposed)
        accepted = of_proposed <= bound
        u, found = np.where(accepted[:, None], proposed, u), np.where(accepted, of_proposed, found)
        all_u.append(u)
        all_margins.append(found)
        width = min(1.0, width * math.exp((accepted.mean() - ACCEPTANCE) / math.sqrt(step)))
    return _Level(np.concatenate(all_u), np.concatenate(all_margins), np.tile(families, steps)), width
