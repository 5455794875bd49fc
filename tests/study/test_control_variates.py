"""Control variates against closed forms, and the coverage of their intervals in repeated studies."""

import json

import numpy as np
import pytest
from scipy import integrate, stats

import rbchain as rb
from rbchain.study.analyze.control_variates import controlled_mean, controlled_means
from rbchain.study.describe import distributions, scipy_distributions

pytestmark = pytest.mark.plain_python

EPS = np.finfo(float).eps


class Wave:
    """A user's own distribution of unknown mean."""

    @staticmethod
    def ppf(u):
        return 1.0 + np.sin(np.pi * (np.asarray(u) - 0.5))


DISTRIBUTIONS = [
    distributions.Normal(mean=3.0, std=0.2),
    distributions.TruncatedNormal(mean=1.0, std=0.5, low=0.8, high=3.0),
    distributions.TruncatedNormal(mean=0.0, std=1.0, low=9.0, high=12.0),
    distributions.LogNormal(median=4.0, sigma=0.3),
    distributions.Uniform(low=-1.0, high=4.0),
    distributions.Triangular(low=0.0, mode=0.5, high=2.0),
    distributions.Weibull(scale=2.0, shape=1.5, low=0.5),
    distributions.Weibull(scale=2.0, shape=300.0),
    distributions.Gumbel(mode=1.0, scale=0.5),
    scipy_distributions.Scipy(name="beta", args=(2.0, 3.0), kwds={"scale": 2.0}),
]


@pytest.mark.slow_cases("scipy")
@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda d: d.type)
def test_moments_are_integrals_of_the_quantiles(distribution):
    def integral(of_value):
        return integrate.quad(lambda u: of_value(distribution.ppf(u)), 0.0, 1.0, limit=500, epsabs=1e-12)[0]

    mean, std = distribution.moments()
    assert abs(integral(lambda x: x) / mean - 1) < 1e-7
    assert abs(integral(lambda x: (x - mean) ** 2) / std**2 - 1) < 1e-7


@pytest.mark.parametrize("low", [5.0, -5.0, 1e3, -1e4, 0.0])
def test_moments_of_narrow_truncated_normal_distributions(low):
    """For a width w far below 1 / low the density is linear, with the mean low + w / 2 - low w^2 / 12."""
    width = 2.0**-20
    second_order = ((abs(low) + 1.0) * width) ** 2
    truncated = distributions.TruncatedNormal(mean=0.0, std=1.0, low=low, high=low + width)
    mean, std = truncated.moments()
    assert abs(mean - (low + width / 2 - low * width**2 / 12)) < 4 * EPS * abs(low) + width * second_order
    assert abs(std / (width / np.sqrt(12)) - 1) < second_order + 100 * EPS


def test_moments_of_distant_truncated_normal_distributions():
    """Beyond a, the offset is nearly exponential: its mean is 1 / a - 2 / a^3, and its std 1 / a - 3 / a^3."""
    a = 1e3
    mean, std = distributions.TruncatedNormal(mean=0.0, std=1.0, low=a, high=2 * a).moments()
    assert abs(mean - a - (1 / a - 2 / a**3)) < 20 / a**5 + 4 * EPS * a
    assert abs(std - (1 / a - 3 / a**3)) < 50 / a**5 + 100 * EPS / a
    mirrored = distributions.TruncatedNormal(mean=0.0, std=1.0, low=-2 * a, high=-a).moments()
    assert mirrored == pytest.approx((-mean, std), rel=1e-14)


def test_wrong_moments_of_scipy_count_as_unknown():
    frozen = stats.truncnorm(5.0, 5.0 + 1e-6)
    assert not 0.9 < frozen.std() / (1e-6 / np.sqrt(12)) < 1.1  # remove the check of Scipy.moments when SciPy is right
    found = scipy_distributions.Scipy(name="truncnorm", args=(5.0, 5.0 + 1e-6)).moments()
    assert np.isnan(found).all()


def test_moments_of_discrete_and_unknown_distributions():
    mean, std = distributions.Discrete(values=[1.0, 5.0], probabilities=[0.25, 0.75]).moments()
    assert (mean, std) == (4.0, np.sqrt(3.0))
    assert distributions.Discrete(values=[1.0, 3.0]).moments() == (2.0, 1.0)
    assert np.isnan(scipy_distributions.Given(distribution=Wave).moments()).all()
    assert not np.isfinite(scipy_distributions.Scipy(name="cauchy").moments()).any()


def test_the_mean_of_a_linear_function_is_exact():
    controls = np.random.default_rng(0).normal(size=(200, 3))
    values = 7.0 + controls @ [1.0, -2.0, 0.5]
    mean, half, plain, _, factor = controlled_mean(values, controls)
    rounding = 200 * EPS * np.abs(values).max()
    assert abs(mean - 7.0) < rounding < 1e-10 * abs(plain - 7.0)
    assert half < rounding
    assert factor > 1e20


def test_an_independent_function_gains_nothing():
    """R^2 of n independent normal numbers and p controls has the distribution Beta(p / 2, (n - p - 1) / 2)."""
    n, p = 1000, 4
    generator = np.random.default_rng(1)
    factor = controlled_mean(generator.normal(size=n), generator.normal(size=(n, p)))[-1]
    price = (n - p - 1) * (n - p - 2) / (n - 1) / (n - 2)
    largest = stats.beta(p / 2, (n - p - 1) / 2).ppf(1 - 1e-9)
    assert price <= factor <= price / (1 - largest)


def test_the_factor_is_that_of_the_explained_variance():
    """y = 2 x + e with standard normal x and e has 1 / (1 - R^2) = 5. The ratio of variances has the std 2 sqrt(2/n)"""
    n = 20_000
    generator = np.random.default_rng(2)
    x = generator.normal(size=(n, 1))
    mean, half, *_, factor = controlled_mean(2 * x[:, 0] + generator.normal(size=n), x)
    assert abs(factor / 5 - 1) < 6 * np.sqrt(2 / n) * 2
    assert abs(half / (stats.norm.ppf(0.975) / np.sqrt(n)) - 1) < 6 * np.sqrt(0.5 / n) + 1e-3
    assert abs(mean) < 6 / np.sqrt(n)


@pytest.mark.parametrize("nonlinear", [False, True])
def test_intervals_cover_the_mean_and_estimates_are_unbiased(nonlinear):
    """The number of intervals that contain the mean is binomial. For normal numbers its probability is exactly 95 %.

    For y = x + x^2 + e with n = 200 samples the interval is asymptotic. The estimate has the bias -E[x^2 (x^2 - 1)] / n
    = -2 / n and the variance 3 / n, so the bias is 8 % of the standard deviation. It changes the coverage by 0.1 %, and
    terms of order 1 / n by at most as much again; 1 % is allowed.
    """
    repetitions, n, p = 2000, 200 if nonlinear else 25, 2
    generator = np.random.default_rng(3)
    x = generator.normal(size=(repetitions, n, p))
    values = x @ [1.0, -1.0] + generator.normal(size=(repetitions, n)) + 5.0
    if nonlinear:
        values += x[..., 0] ** 2 - 1.0
    estimates = np.array([controlled_mean(*sample) for sample in zip(values, x, strict=True)])
    inside = int((np.abs(estimates[:, 0] - 5.0) <= estimates[:, 1]).sum())
    allowed = 0.01 * nonlinear
    low = stats.binom(repetitions, 0.95 - allowed).ppf(1e-8)
    high = stats.binom(repetitions, 0.95 + allowed).ppf(1 - 1e-8)
    assert low <= inside <= high
    bias = -2 / n if nonlinear else 0.0
    variance = 3 / n if nonlinear else (n - 2) / (n - p - 2) / n  # of the estimate
    assert abs((estimates[:, 0] - 5.0).mean() - bias) < 6 * np.sqrt(variance / repetitions)
    if not nonlinear:
        # the kurtosis of the estimate is below 4, so the std of its variance is below sqrt(3 / repetitions)
        assert abs(estimates[:, 0].var() / variance - 1) < 6 * np.sqrt(3 / repetitions)


def linear(model, motion):
    return 3.0 + 2.0 * model.gravity[..., 0] - model.gravity[..., 1]


def even(model, motion):
    return model.gravity[..., 0] ** 2


def constant(model, motion):
    return np.full(motion.status.shape, 4.0)


def partly_infinite(model, motion):
    return np.where(model.gravity[..., 0] > 0.5, np.inf, 1.0)


def study_of(model, *functions, **changed):
    given = {
        "samples": 60,
        "seed": 1,
        "vary": {"gravity.[xy]": rb.Uniform(-1, 1)},
        "simulate": {"duration": 0.01, "method": "rk4", "step": 0.01, "save_at": 2},
        "measures": [{"name": f.__name__, "quantity": "function", "function": f, "unit": "m"} for f in functions],
    }
    return rb.Study(model=model, **given | changed)


def test_a_study_estimates_the_means_of_all_its_measures(rod, tmp_path):
    study = study_of(rod, linear, even, constant)
    results = study.run()
    found = study.control_variates(results)
    assert found.attrs == {"samples": 60, "parameters": ["gravity.x", "gravity.y"]}
    assert found.measure.values.tolist() == ["linear", "even", "constant"]
    assert found.units.values.tolist() == ["m", "m", "m"]
    of_linear, of_even, of_constant = (found.sel(measure=name) for name in found.measure.values)
    assert abs(of_linear["mean"] - 3.0) < 100 * EPS
    assert of_linear.factor > 1e20
    assert of_linear.plain_mean == pytest.approx(results.linear.mean().item(), rel=10 * EPS)
    assert abs(of_even["mean"] - 1 / 3) < 2 * of_even.half_width
    assert (of_constant["mean"], of_constant.half_width, of_constant.factor) == (4.0, 0.0, 1.0)
    assert study.control_variates(results, "even").equals(of_even)
    assert study.control_variates(study.run(tmp_path)).equals(found)


def test_numbers_of_unknown_mean_are_left_out(rod):
    rare = rb.Discrete([0.0, 1.0], [1 - 1e-5, 1e-5])
    study = study_of(rod, linear, vary={"gravity.y": Wave, "gravity.x": rb.Normal(std=1.0), "*.q": rare})
    found = study.control_variates(study.run(), "linear")
    assert found.attrs["parameters"] == ["gravity.x"]
    # the variance of 2 x is 4, and that of sin(pi (u - 1/2)) is 1/2
    assert 3 < found.factor < 27
    assert abs(found["mean"] - 2.0) < 3 * found.half_width


def test_results_that_control_variates_cannot_use_are_refused(rod):
    study = study_of(rod, linear, even)
    results = study.run()
    for wrong, message in (
        (results.isel(sample=slice(1, None)), "differ from the draws of this study"),
        (results.isel(sample=slice(0, 29)), "have 29 samples; expected at least 30"),
        (results.drop_vars("even"), "the results contain no 'even'"),
        (results.assign(status=results.status * 0 - 1), "60 of 60 samples failed or were not run"),
    ):
        with pytest.raises(rb.StudyError, match=message):
            study.control_variates(wrong)
    with pytest.raises(rb.StudyError, match=r"measure is 'odd'; expected one of the measures .*'linear', 'even'"):
        study.control_variates(results, "odd")
    with pytest.raises(rb.StudyError, match="differ from the draws of this study"):
        study_of(rod, linear, seed=2).control_variates(results)
    infinite = study_of(rod, partly_infinite)
    with pytest.raises(rb.StudyError, match=r"'partly_infinite' is not finite in \d+ of 60 samples"):
        infinite.control_variates(infinite.run())
    stratified = study_of(rod, linear, design="latin_hypercube")
    with pytest.raises(rb.StudyError, match="design of this study is 'latin_hypercube', but control variates need"):
        stratified.control_variates(stratified.run())


@pytest.mark.parametrize("method", ["sobol", "morris"])
def test_results_of_a_sensitivity_analysis_have_no_control_variates(rod, tmp_path, method):
    """Their samples are those of a design and not independent."""
    study = study_of(rod, linear, even)
    {"sobol": study.sobol_indices, "morris": study.morris}[method]("linear", base_samples=16, out=tmp_path)
    results = rb.load_results(tmp_path)
    assert "control_variates" not in json.loads(results.attrs["linear_analysis"])
    varied = study_of(rod, linear, even).plan.with_values(results["parameters"].values)
    measures = {"linear": results.linear.values}
    with pytest.raises(rb.StudyError, match="draws of this study come from a table, but control variates need"):
        controlled_means(varied, results["parameters"].values, results.status.values, measures)


@pytest.mark.slow
def test_a_run_stores_the_control_variates_of_finite_measures_and_the_reason_for_others(rod, tmp_path):
    def analysis(name, *functions, **changed):
        return json.loads(study_of(rod, *functions, **changed).run(tmp_path / name).attrs["linear_analysis"])

    some = analysis("some", linear, partly_infinite, even)
    assert set(some["control_variates"]) == {"linear", "even"}
    assert some["reasons"]["control_variates"].endswith("some are not finite: 'partly_infinite'.")
    assert some["control_variates"] == analysis("finite", linear, even)["control_variates"]
    none = analysis("none", partly_infinite)
    assert "control_variates" not in none
    assert none["reasons"]["control_variates"].startswith("'partly_infinite' is not finite in ")
    stratified = analysis("stratified", linear, design="latin_hypercube")
    assert stratified["reasons"]["control_variates"].startswith("the design of this study is 'latin_hypercube', but")
    assert "reasons" not in analysis("all", linear, even)


def test_linearly_dependent_controls_are_refused():
    x = np.random.default_rng(4).normal(size=50)
    with pytest.raises(rb.StudyError, match="linearly dependent"):
        controlled_mean(x**2, np.stack([x, 2 * x], -1))
