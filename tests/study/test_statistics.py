"""Streaming statistics against those of NumPy and closed forms, for all chunk sizes."""

import numpy as np
import pytest
from scipy import stats

from rbchain.study.run.order_statistics import ranks_around_quantile
from rbchain.study.run.statistics import BLOCK, Moments, Quantiles, Statistics, proportion_interval

EPS = np.finfo(float).eps


class OneNumber:
    """As much of a plan as statistics need: one output."""

    class Variable:
        name, dims, dtype, units, label = "x", (), np.float64, "", ""

    variables = (Variable,)

    @staticmethod
    def sizes():
        return {}


def streamed(values, chunk, status=None):
    statistics = Statistics(OneNumber)
    status = np.zeros(len(values), np.int8) if status is None else status
    for first in range(0, len(values), chunk):
        part = slice(first, first + chunk)
        statistics.add({"x": values[part], "status": status[part]})
    statistics.finish()
    return statistics


def test_no_bit_of_the_statistics_depends_on_the_chunks():
    values = np.random.default_rng(0).normal(size=5000)
    values[::97] = np.nan
    whole = streamed(values, 5000).as_json()
    assert all(streamed(values, chunk).as_json() == whole for chunk in (1, 7, 1024, 1500, 4999))


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_moments_agree_with_a_two_pass_calculation(offset):
    values = offset + np.random.default_rng(1).normal(size=10_000)
    moments = streamed(values, 999).moments["x"]
    assert moments.count[0] == 10_000
    assert abs(moments.mean[0] - values.mean()) <= 20 * EPS * max(1.0, offset)
    # the numbers are rounded to eps times the offset, which is the only error allowed in the variance
    assert abs(moments.variance[0] / values.var(ddof=1) - 1) <= 1e-12 + 100 * EPS * offset
    assert (moments.least[0], moments.greatest[0]) == (values.min(), values.max())


def test_nonfinite_values_are_left_out():
    values = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])
    moments = Moments(2)
    moments.add(values)
    assert moments.count.tolist() == [2, 0]
    assert moments.mean[0] == 2.0
    assert moments.variance[0] == 2.0
    assert np.isnan(moments.variance[1])
    quantiles = Quantiles(2)
    quantiles.add(values)
    assert np.isnan(quantiles.quantile(0.5)[0][1])


CASES = {
    "normal": stats.norm(),
    "a narrow one far from zero": stats.norm(1e3, 1e-4),
    "heavy tails": stats.cauchy(),
    "skew": stats.lognorm(2.0),
    "bounded": stats.uniform(-3, 1e-3),
}


@pytest.mark.parametrize("case", CASES)
def test_quantiles_are_within_their_stated_error(case):
    values = CASES[case].rvs(30_000, random_state=np.random.default_rng(2))
    quantiles = streamed(values, 4096).quantiles["x"]
    for p in (0.001, 0.01, 0.25, 0.5, 0.75, 0.99, 0.999):
        found, error = (x[0] for x in quantiles.quantile(p))
        ordered = np.sort(values)
        exact = ordered[int(np.ceil(p * values.size)) - 1]
        assert abs(found - exact) <= error * (1 + 1e-9)
        # the stated error is small: relative to the spread in the middle, and to the distance far from it
        middle, spread = np.median(values[:BLOCK]), values[:BLOCK].std()
        assert error <= 0.004 * (spread + abs(exact - middle))


def test_a_constant_is_its_own_quantile():
    found, error = streamed(np.full(2000, 7.5), 500).quantiles["x"].quantile(0.5)
    assert abs(found[0] - 7.5) <= error[0] <= 1e-12


def test_a_histogram_counts_every_value():
    values = np.random.default_rng(3).normal(size=3000)
    counts, edges = streamed(values, 700).quantiles["x"].histogram(0)
    assert counts.sum() == 3000
    # the outermost bins contain the last few values, which may be far out
    assert np.quantile(values, 0.001) < edges[10]
    assert edges[0] < np.quantile(values, 0.002)
    # values within one bin of an edge (0.006 of 0.1 spreads) may be counted on the other side
    inner = np.histogram(values, edges)[0][2:-2]
    assert np.abs(counts[2:-2] - inner).sum() < 0.06 * 3000


@pytest.mark.parametrize("before", [0.0, np.nan, 7.0])
def test_quantiles_of_late_varying_values_are_within_their_error(before):
    """The first blocks do not show the range of later numbers."""
    late = np.random.default_rng(5).uniform(0.1, 0.6, 9000)
    values = np.concatenate([np.full(3000, before), late])
    quantiles = streamed(values, 1000).quantiles["x"]
    ordered = np.sort(values[np.isfinite(values)])
    for p in (0.05, 0.5, 0.9):
        found, error = (x[0] for x in quantiles.quantile(p))
        assert abs(found - ordered[int(np.ceil(p * ordered.size)) - 1]) <= error < 0.05


def test_the_quantile_error_beyond_all_bins_is_infinite():
    values = np.concatenate([np.random.default_rng(6).normal(size=2000), np.full(1000, 1e30)])
    found, error = streamed(values, 500).quantiles["x"].quantile(0.9)
    assert np.isinf(error[0])
    assert found[0] > 1e8


def test_the_interval_of_the_mean_agrees_with_student():
    values = np.random.default_rng(4).normal(size=50)
    half = streamed(values, 50).moments["x"].half_width(0.9)[0]
    expected = stats.t.interval(0.9, 49, values.mean(), stats.sem(values))
    assert abs(2 * half / (expected[1] - expected[0]) - 1) < 1e-12


def test_the_interval_of_the_failure_rate_agrees_with_wilson():
    """Newcombe (1998), Statistics in Medicine 17, table I: 15 of 148 gives 0.0624 to 0.1605 by the score method."""
    low, high = proportion_interval(15, 148)
    assert (round(low, 4), round(high, 4)) == (0.0624, 0.1605)
    status = np.zeros(2000, np.int8)
    status[:20], status[20:30] = 2, 4  # stopping at an event is not a failure
    statistics = streamed(np.zeros(2000), 300, status)
    assert statistics.failures == 20
    assert statistics.failure_rate() == (0.01, *proportion_interval(20, 2000))


@pytest.mark.slow_cases("0.9", "0.99")
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_the_ranks_around_a_quantile_agree_with_the_binomial_distribution(confidence):
    for count in (*range(1, 60), 999, 10_000, 10**8):
        for level in Statistics.QUANTILES:
            below = stats.binom(count, level)
            low, high = ranks_around_quantile(count, level, confidence)
            assert (low, high) == (below.ppf((1 - confidence) / 2), below.ppf((1 + confidence) / 2) + 1)
            assert below.cdf(high - 1) - below.cdf(low - 1) >= confidence


@pytest.mark.slow_cases("0.05", "0.95")
@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
def test_intervals_contain_quantiles_as_often_as_they_should(level):
    """1000 studies of 200 samples. The share of hits is within four standard deviations of 95 %, or above."""
    values = np.random.default_rng(7).exponential(size=(1000, 200))
    exact = -np.log(1.0 - level)
    hits = 0
    for of_study in values:
        low, high = streamed(of_study, 200).quantiles["x"].interval(0, level)
        assert low < np.quantile(of_study, level) < high
        hits += low <= exact <= high
    assert hits / 1000 > 0.95 - 4 * (0.95 * 0.05 / 1000) ** 0.5


def test_intervals_of_quantiles_contain_the_order_statistics_closely():
    values = np.random.default_rng(8).normal(size=5000)
    summary = streamed(values, 999).summary()["x"]
    ordered = np.sort(values)
    for level, (low, high) in zip(Statistics.QUANTILES, summary["quantile_intervals"], strict=True):
        ranks = ranks_around_quantile(5000, level)
        exact = ordered[ranks[0] - 1], ordered[ranks[1] - 1]
        assert low <= exact[0] <= low + 0.02
        assert high - 0.02 <= exact[1] <= high


def test_intervals_of_too_few_or_constant_numbers():
    assert streamed(np.full(500, 7.5), 100).quantiles["x"].interval(0, 0.5) == (7.5, 7.5)
    low, high = streamed(np.array([1.0, 2.0, 4.0]), 3).quantiles["x"].interval(0, 0.5)
    assert (low, high) == (-np.inf, np.inf)
    of_none = streamed(np.full(9, np.nan), 9).as_json()["of"]["x"]
    assert of_none["quantile_intervals"] == [[None, None]] * len(Statistics.QUANTILES)
    assert of_none["mean_interval"] == [None, None]
