"""Problems with known probabilities of failure, and repetitions of a method."""

from functools import cache

import numpy as np
from scipy import integrate, stats

from rbchain.study.rare.importance import importance_sampling


def parabola_probability():
    """P(u2 > 3 + u1^2 / 5), by quadrature."""
    density = lambda x: stats.norm.pdf(x) * stats.norm.sf(3.0 + 0.2 * x**2)  # noqa: E731
    return integrate.quad(density, -10, 10, epsabs=0, epsrel=1e-10)[0]


def four_branches(u):
    """The margin of Waarts (2000), plus 1. Two branches are curved, and two are straight and fall faster."""
    difference, total = u[:, 0] - u[:, 1], (u[:, 0] + u[:, 1]) / np.sqrt(2)
    return 1.0 + np.minimum(3.0 + 0.1 * difference**2 - np.abs(total), 7.0 / np.sqrt(2) - np.abs(difference))


def four_branches_probability():
    """By quadrature over (u1 - u2) / sqrt(2), which is independent of (u1 + u2) / sqrt(2)."""
    limit = (7.0 / np.sqrt(2) + 1.0) / np.sqrt(2)
    density = lambda x: stats.norm.pdf(x) * 2 * stats.norm.sf(4.0 + 0.2 * x**2)  # noqa: E731
    return 2 * stats.norm.sf(limit) + integrate.quad(density, -limit, limit, epsabs=0, epsrel=1e-10)[0]


def steep_and_flat(u):
    """Failures beyond 4 on one axis and beyond 4.1 on another one, whose margin is 1.6 times as steep."""
    return np.minimum(4.0 - u[:, 0], 1.6 * (4.1 - u[:, 1]))


def planes(degrees, slope):
    """Failures beyond 4 along two directions with this angle between them, and their probability.

    The margin of the second one is `slope` times as steep. The probability of both is bivariate normal.
    """
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    both = stats.multivariate_normal([0.0, 0.0], [[1.0, cosine], [cosine, 1.0]]).cdf([-4.0, -4.0])
    margin = lambda u: np.minimum(4.0 - u[:, 0], slope * (4.0 - cosine * u[:, 0] - sine * u[:, 1]))  # noqa: E731
    return margin, 2 * stats.norm.sf(4.0) - both


#: Margin, dimension and exact probability of problems with known answers.
PROBLEMS = {
    "linear": (lambda u: 3.5 - u.sum(-1) / np.sqrt(2), 2, stats.norm.sf(3.5)),
    "parabola": (lambda u: 3.0 + 0.2 * u[:, 0] ** 2 - u[:, 1], 2, parabola_probability()),
    "series system": (lambda u: 3.5 - np.abs(u).max(-1), 2, 1 - (1 - 2 * stats.norm.sf(3.5)) ** 2),
    "50 dimensions": (lambda u: 4.0 - u.sum(-1) / np.sqrt(50), 50, stats.norm.sf(4.0)),
}
#: Problems in which the stages lose a region of failures whose margin falls faster than others.
REGIONS = {
    "four branches": (four_branches, 2, four_branches_probability()),
    "20 dimensions": (steep_and_flat, 20, 1 - (1 - stats.norm.sf(4.0)) * (1 - stats.norm.sf(4.1))),
    "opposite": (
        lambda u: np.minimum(4.0 - u[:, 0], 1.8 * (4.1 + u[:, 0])),
        50,
        stats.norm.sf(4.0) + stats.norm.sf(4.1),
    ),
}
#: Problems with a branch so steep that the stages by margins do not see it, with margin, dimension and probability.
STEEP = {
    "10 times as steep": (planes(90, 10.0)[0], 2, planes(90, 10.0)[1]),
    "3 times, 7 dimensions": (planes(90, 3.0)[0], 7, planes(90, 3.0)[1]),
    "3 times, 53 degrees": (planes(53, 3.0)[0], 7, planes(53, 3.0)[1]),
    "10 times, 20 dimensions": (planes(90, 10.0)[0], 20, planes(90, 10.0)[1]),
}
REPETITIONS = 100
#: Fewest of 100 intervals that contain the probability: fewer have the probability 4e-4 if each does with 95 %.
LEAST_COVERED = 87


@cache
def repeated(method, problem, **settings):
    margins, dimension, exact = (PROBLEMS | REGIONS | STEEP)[problem]
    return [method(margins, dimension, seed, **settings) for seed in range(REPETITIONS)], exact


def covered(found, exact):
    return sum(one.interval[0] <= exact <= one.interval[1] for one in found)


def with_stages_of_300(margins, dimension, seed):
    return importance_sampling(margins, dimension, seed, 300, 0.2, 20_000)
