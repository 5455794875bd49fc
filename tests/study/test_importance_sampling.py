"""Importance sampling against closed forms."""

import numpy as np
import pytest
from scipy import stats

import rbchain as rb
from rbchain.study.rare.importance import importance_sampling

from .rare_problems import (
    LEAST_COVERED,
    PROBLEMS,
    REGIONS,
    REPETITIONS,
    STEEP,
    covered,
    planes,
    repeated,
    steep_and_flat,
    with_stages_of_300,
)

pytestmark = pytest.mark.plain_python


def most_of_axes(u):
    """A margin that is negative beyond 4 on each side of each axis."""
    return 4.0 - np.abs(u).max(-1)


def test_importance_sampling_finds_ten_regions_of_failures():
    """The failures in 5 dimensions are in 10 regions of equal probability."""
    exact = 1 - (1 - 2 * stats.norm.sf(4.0)) ** 5
    found = [importance_sampling(most_of_axes, 5, seed, 1000, 0.2, 20_000) for seed in range(2)]
    for one in found:
        assert abs(one.value / exact - 1.0) < 4 * max(one.coefficient_of_variation, 0.1)
        assert sum(stage.simulations for stage in one.stages) < 16_000


def test_importance_sampling_with_too_few_samples_for_the_regions_is_refused():
    """With 300 samples, two opposite regions in 50 dimensions look like none."""
    margins = lambda u: 4.0 - np.abs(u.sum(-1)) / np.sqrt(50)  # noqa: E731
    with pytest.raises(rb.StudyError, match=r"do not come closer to the failures; .* 300 samples can distinguish"):
        importance_sampling(margins, 50, 0, 300, 0.2, 20_000)


def test_importance_sampling_of_margins_without_slope_is_refused_or_right():
    """P(u1 > 3.09) = 1e-3 with the margins 1 and -1: a stage of 300 samples contains failures, or none."""
    margins = lambda u: np.where(u[:, 0] > 3.0902, -1.0, 1.0)  # noqa: E731
    refused = 0
    for seed in range(20):
        try:
            assert importance_sampling(margins, 2, seed, 300, 0.2, 20_000).value == pytest.approx(1e-3, rel=0.7)
        except rb.StudyError as error:
            assert "the same, at the threshold or infinite in all 300 samples" in str(error)
            refused += 1
    assert 0 < refused < 20
    infinite = lambda u: np.where(u[:, 0] < 0.0, np.inf, 3.0 - u[:, 0])  # noqa: E731
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        found = importance_sampling(infinite, 2, 0, 300, 0.2, 20_000)
    assert found.interval[0] < stats.norm.sf(3.0) < found.interval[1]


def test_further_searches_of_importance_sampling_keep_simulations_for_the_estimate():
    """Without simulations for a search elsewhere, nothing is known about failures there: the upper limit is 1."""
    found = importance_sampling(steep_and_flat, 2, 0, 300, 0.2, 1500)
    assert sum(stage.simulations for stage in found.stages) <= 1500
    assert found.interval[1] == 1.0


@pytest.mark.fast_cases("10 times as steep")
@pytest.mark.parametrize("problem", STEEP)
def test_importance_sampling_finds_steep_branches(problem):
    """Samples of large spread fail on both branches for any slope."""
    found, exact = repeated(with_stages_of_300, problem)
    assert covered(found, exact) >= LEAST_COVERED
    # without the steep branch, the estimates are about half of the probability
    assert np.mean([one.value for one in found]) > 0.85 * exact
    assert np.mean([sum(stage.simulations for stage in one.stages) for one in found]) < 7000


def test_the_upper_limit_includes_a_steep_branch_that_importance_sampling_does_not_find():
    """300 samples do not determine a direction in 50 dimensions, but they show that there are failures elsewhere."""
    margins, exact = planes(90, 10.0)
    found = [importance_sampling(margins, 50, seed, 300, 0.2, 20_000) for seed in range(10)]
    assert covered(found, exact) >= 8  # fewer have the probability 1.2 % if each does with 95 %
    assert np.median([one.value for one in found]) < 0.7 * exact


def test_wide_samples_without_a_margin_are_no_failures():
    """Margins that are unknown beyond 5 do not end the method, because only the wide samples are that far away."""
    margins, exact = planes(90, 3.0)
    known = lambda u: np.where(np.abs(u).max(-1) > 5.0, np.nan, margins(u))  # noqa: E731
    found = [importance_sampling(margins, 2, seed, 300, 0.2, 20_000, exploring=known) for seed in range(20)]
    assert covered(found, exact) >= 17


@pytest.mark.fast_cases("four branches")
@pytest.mark.parametrize("problem", REGIONS)
def test_intervals_of_importance_sampling_include_regions_that_the_first_search_loses(problem):
    """The searches find these regions, or the bound of their probability is in the interval."""
    found, exact = repeated(with_stages_of_300, problem)
    assert covered(found, exact) >= LEAST_COVERED
    assert np.mean([sum(stage.simulations for stage in one.stages) for one in found]) < 8000


@pytest.mark.fast_cases("parabola")
@pytest.mark.parametrize("problem", PROBLEMS)
def test_intervals_of_importance_sampling_contain_the_probability(problem):
    """95 of 100 intervals. The estimates have no bias, and scatter as the coefficient of variation says, or less."""
    found, exact = repeated(with_stages_of_300, problem)
    assert covered(found, exact) >= LEAST_COVERED
    ratios = np.array([one.value / exact for one in found])
    assert abs(ratios.mean() - 1.0) < 4 * ratios.std() / np.sqrt(REPETITIONS)
    assert np.mean([one.coefficient_of_variation < 0.25 for one in found]) >= 0.95
    assert max(sum(stage.simulations for stage in one.stages) for one in found) < 10_000
