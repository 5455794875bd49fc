"""Designs and distributions: sample k is reproducible and follows the requested distribution."""

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

import rbchain as rb
from rbchain.errors import StudyError
from rbchain.study import (
    Discrete,
    Gumbel,
    LogNormal,
    MultivariateNormal,
    Normal,
    Scipy,
    Triangular,
    TruncatedNormal,
    Uniform,
    Weibull,
)
from rbchain.study.describe.description import Description
from rbchain.study.describe.designs import Factorial, LatinHypercube, Random, Sobol, permuted, uniforms
from rbchain.study.plan import plan as plans

DESIGNS = [Random(), LatinHypercube(), Sobol(), Factorial(levels=4)]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.type)
def test_sample_k_does_not_depend_on_the_range_that_is_drawn(design):
    samples, columns = 64, 3
    whole = design.points(0, samples, columns, 5, samples)
    assert ((whole > 0.0) & (whole < 1.0)).all()
    for first, last in ((0, 1), (17, 18), (63, 64), (10, 40), (33, 64)):
        assert np.array_equal(design.points(first, last, columns, 5, samples), whole[first:last])


@pytest.mark.parametrize("design", DESIGNS[:3], ids=lambda design: design.type)
def test_another_seed_gives_other_samples(design):
    assert not np.array_equal(design.points(0, 8, 2, 1, 8), design.points(0, 8, 2, 2, 8))


def test_random_numbers_are_uniform_and_independent():
    u = uniforms(3, 0, 0, 20_000, 6)
    assert all(stats.kstest(column, "uniform").pvalue > 1e-3 for column in u.T)
    between = np.corrcoef(np.concatenate([u, np.roll(u, 1, 0)], 1).T)
    assert np.abs(between - np.eye(12)).max() < 5 / np.sqrt(20_000)
    far = uniforms(3, 0, 10**12, 10**12 + 2, 6)  # the number of samples has no upper limit
    assert np.unique(np.concatenate([u[:2], far])).size == 24


@pytest.mark.parametrize("n", [1, 2, 3, 5, 64, 1000, 4097])
def test_permuted_gives_each_column_its_own_permutation(n):
    first, second = (permuted(np.arange(n), n, 7, column) for column in (0, 1))
    assert np.array_equal(np.sort(first), np.arange(n))
    assert n < 64 or np.abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(n)
    assert n < 64 or np.abs(np.corrcoef(first, np.arange(n))[0, 1]) < 5 / np.sqrt(n)


def test_a_latin_hypercube_has_one_sample_in_every_stratum():
    points = LatinHypercube().points(0, 500, 4, 1, 500)
    assert all(np.array_equal(np.sort((column * 500).astype(int)), np.arange(500)) for column in points.T)


def test_a_sobol_design_agrees_with_scipy():
    expected = qmc.Sobol(3, rng=np.random.default_rng(9)).random(128)
    assert np.array_equal(Sobol().points(0, 128, 3, 9, 128), expected)


def test_a_factorial_design_has_every_combination_once():
    points = Factorial(levels=3).points(0, 27, 3, 0, 27)
    assert len({tuple(p) for p in points}) == 27
    assert np.array_equal(np.unique(points), [1 / 6, 0.5, 5 / 6])


DISTRIBUTIONS = [
    (Normal(mean=2.0, std=0.5), stats.norm(2.0, 0.5)),
    (TruncatedNormal(mean=1.0, std=0.5, low=0.8, high=2.0), stats.truncnorm(-0.4, 2.0, loc=1.0, scale=0.5)),
    (LogNormal(median=3.0, sigma=0.2), stats.lognorm(0.2, scale=3.0)),
    (Uniform(low=-1.0, high=4.0), stats.uniform(-1.0, 5.0)),
    (Triangular(low=0.0, mode=1.0, high=3.0), stats.triang(1 / 3, 0.0, 3.0)),
    (Weibull(scale=2.0, shape=1.5, low=0.5), stats.weibull_min(1.5, loc=0.5, scale=2.0)),
    (Gumbel(mode=1.0, scale=0.5), stats.gumbel_r(1.0, 0.5)),
    (Scipy(name="beta", args=(2.0, 3.0), kwds={"scale": 4.0}), stats.beta(2.0, 3.0, scale=4.0)),
]


@pytest.mark.parametrize(("distribution", "expected"), DISTRIBUTIONS, ids=lambda x: getattr(x, "type", ""))
def test_draws_follow_the_requested_distribution(distribution, expected):
    draws = distribution.ppf(uniforms(1, 0, 0, 5000, 1)[:, 0])
    assert stats.kstest(draws, expected.cdf).pvalue > 1e-3
    assert np.allclose(distribution.ppf(np.array([0.1, 0.5, 0.9])), expected.ppf([0.1, 0.5, 0.9]), rtol=1e-14)


def test_discrete_values_occur_with_their_probabilities():
    u = uniforms(2, 0, 0, 40_000, 1)[:, 0]
    draws = Discrete(values=[1.0, 5.0, 7.0], probabilities=[0.2, 0.5, 0.3]).ppf(u)
    found = [np.mean(draws == value) for value in (1.0, 5.0, 7.0)]
    assert np.abs(np.subtract(found, [0.2, 0.5, 0.3])).max() < 4 * 0.5 / 200
    assert set(Discrete(values=[2.0, 3.0]).ppf(np.array([0.2, 0.7]))) == {2.0, 3.0}


def test_discrete_values_of_probability_zero_never_occur():
    ends = np.array([0.0, 1.0])  # levels of the design of Morris
    distribution = Discrete(values=[9.0, 1.0, 9.0, 2.0, 9.0], probabilities=[0.0, 0.4, 0.0, 0.6, 0.0])
    assert distribution.ppf(ends).tolist() == [1.0, 2.0]


def plan_of(model, vary, **keys):
    """A plan of a thousand motions in which these dispersions vary."""
    given = {"model": model, "samples": 1000, "vary": vary, "simulate": {"duration": 1.0}}
    return plans.plan_of(Description(**given | keys))


def test_draws_have_the_requested_covariance(arm):
    covariance = np.array([[4e-4, 1e-4, 0.0], [1e-4, 1e-4, -2e-5], [0.0, -2e-5, 1e-4]])
    law = MultivariateNormal([0.1, 0.0, -0.2], covariance)
    dispersion = {"link2.cg": rb.Dispersion(law, how="add")}
    draws = plan_of(arm, dispersion, samples=40_000).draw(0, 40_000)
    found = np.cov(draws.T)
    deviations = np.sqrt(covariance.diagonal())
    # the standard deviation of a covariance's estimate is at most sqrt(2 / n) of the product of deviations
    assert (np.abs(found - covariance) <= 5 * np.sqrt(2 / 40_000) * np.outer(deviations, deviations)).all()
    assert (np.abs(draws.mean(0) - [0.1, 0.0, -0.2]) < 5 * deviations / 200).all()


def test_correlated_dispersions_keep_their_own_distributions(arm):
    vary = {"link1.mass": rb.Dispersion(Normal(1.0, 0.1), how="multiply"), "link1.damping": stats.expon(scale=0.1)}
    correlate = [{"parameters": ["mass", "link1.damping"], "matrix": [[1.0, 0.7], [0.7, 1.0]]}]
    with pytest.raises(
        StudyError, match=r"correlate\[0\].parameters: 'mass' is not a random input; expected names of .*link1.mass"
    ):
        plan_of(arm, vary, correlate=correlate)
    correlate[0]["parameters"][0] = "link1.mass"
    draws = plan_of(arm, vary, correlate=correlate, samples=20_000).draw(0, 20_000)
    # the Spearman correlation of a Gaussian copula is 6 / pi arcsin(rho / 2) (Kruskal 1958)
    assert abs(stats.spearmanr(*draws.T).statistic - 6 / np.pi * np.arcsin(0.35)) < 5 / np.sqrt(20_000)
    assert stats.kstest(draws[:, 1], stats.expon(scale=0.1).cdf).pvalue > 1e-3


def test_no_bit_of_a_draw_depends_on_the_chunk(arm):
    """For every distribution and for correlated numbers, for which a matrix product has no fixed order of summation."""
    bodies = [f"link{i}.cg.{c}" for i in (1, 2) for c in "xyz"]
    matrix = np.full((6, 6), 0.3) + 0.7 * np.eye(6)
    fields = ("damping", "friction", "stiffness", "rest_position", "rotor_inertia", "gear_ratio", "q", "qd", "tau")
    vary = {"*.cg": rb.Dispersion(Normal(std=0.01), how="add")}
    vary |= {
        f"link{i}.{field}": rb.Dispersion(law, how="add")
        for (law, _), (field, i) in zip(DISTRIBUTIONS, product(fields, (1, 2)), strict=False)
    }
    assert len(vary) == 1 + len(DISTRIBUTIONS)
    plan = plan_of(arm, vary, correlate=[{"parameters": bodies, "matrix": matrix}])
    whole = plan.draw(0, 101)
    for size in (1, 2, 5, 33):
        parts = [plan.draw(first, min(101, first + size)) for first in range(0, 101, size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()


def test_any_object_with_quantiles_is_a_distribution(arm):
    histogram = stats.rv_histogram(np.histogram([1.0, 2.0, 2.5, 4.0], bins=4))
    plan = plan_of(arm, {"link1.damping": histogram})
    assert np.allclose(plan.drawn.values(np.array([[0.25]])), histogram.ppf(0.25))


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_columns_of_a_table_that_the_study_does_not_use_are_refused(ending, tmp_path, arm):
    """Weights of samples would change all statistics."""
    import pandas

    path, table = tmp_path / f"design.{ending}", {"link1.mass": [1.0, 2.0], "weight": [0.2, 0.8]}
    pandas.DataFrame(table).to_csv(path, index=False) if ending == "csv" else np.savez(path, **table)
    with pytest.raises(StudyError, match=r"has the columns \['weight'\], which the study does not use"):
        plans.plan_of(
            Description(
                model=arm,
                samples=2,
                design={"type": "table", "file": path.name},
                vary={"link1.mass": Normal(std=1.0)},
                simulate={"duration": 1.0},
            ),
            tmp_path,
        )


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "npy"])
def test_a_user_table_is_used_unchanged(ending, tmp_path, arm):
    import pandas

    table = pandas.DataFrame({"link1.mass": [1.0, 2.0, 3.0], "link2.mass": [4.0, 5.0, 6.5]})
    path = tmp_path / f"design.{ending}"
    if ending == "csv":
        table.to_csv(path, index=False)
    elif ending == "parquet":
        table.to_parquet(path)
    elif ending == "npz":
        np.savez(path, **{name: table[name] for name in table})
    else:
        np.save(path, table.to_numpy())
    given = {
        "model": arm,
        "samples": 3,
        "design": {"type": "table", "file": path.name},
        "vary": {"*.mass": Normal(std=1.0)},
        "simulate": {"duration": 1.0},
    }
    plan = plans.plan_of(Description(**given), tmp_path)
    assert np.array_equal(plan.draw(0, 3), table)
    assert np.array_equal(plan.draw(1, 2), table.iloc[1:2])
    with pytest.raises(StudyError, match="3 rows; expected at least 4, the number of samples"):
        plans.plan_of(Description(**given | {"samples": 4}), tmp_path)
    path.write_bytes(b"" if ending == "npy" else b"PK nothing")
    with pytest.raises(StudyError, match=f"design.file: design.{ending} (cannot be read|has no column)"):
        plans.plan_of(Description(**given), tmp_path)
