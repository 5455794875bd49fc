"""Probabilities of rare events: the methods against closed forms, and `Study.probability`."""

import json
import re

import numpy as np
import pytest
from scipy import integrate, stats

import rbchain as rb
from rbchain.cli import main
from rbchain.study.rare.estimates import clopper_pearson
from rbchain.study.rare.form import form
from rbchain.study.rare.monte_carlo import monte_carlo
from rbchain.study.rare.random_numbers import normal_numbers
from rbchain.study.rare.subset import subset_simulation
from rbchain.study.show.report import write_report

from .rare_problems import LEAST_COVERED, PROBLEMS, REPETITIONS, covered, repeated, with_stages_of_300

pytestmark = pytest.mark.plain_python


def in_stage_of_500(margins, dimension, seed):
    return subset_simulation(margins, dimension, seed, 500)


@pytest.mark.slow_cases("50 dimensions")
@pytest.mark.parametrize("problem", PROBLEMS)
def test_intervals_of_subset_simulation_contain_the_probability(problem):
    """95 of 100 intervals; the logarithms of the estimates scatter as the coefficient of variation says."""
    found, exact = repeated(in_stage_of_500, problem)
    assert covered(found, exact) >= LEAST_COVERED
    logarithms = np.log([one.value / exact for one in found])
    stated = np.sqrt(np.mean([np.log1p(one.coefficient_of_variation**2) for one in found]))
    # the relative standard deviation of a standard deviation of 100 numbers is 0.07; four of them
    assert 0.72 < logarithms.std() / stated < 1.28
    # subset simulation has a bias of the order 1 / samples: its logarithm is that of a skew distribution
    assert abs(logarithms.mean()) < stated**2 + 4 * stated / np.sqrt(REPETITIONS)


def around_design_points(margins, dimension, seed):
    return form(margins, dimension, seed, 0.2, 20_000)


@pytest.mark.parametrize("problem", ["linear", "parabola", "50 dimensions"])
def test_intervals_of_form_contain_the_probability(problem):
    found, exact = repeated(around_design_points, problem)
    assert covered(found, exact) >= LEAST_COVERED
    if problem != "parabola":  # the first order is exact for linear margins
        assert found[0].first_order == pytest.approx(exact, rel=1e-6)
    else:  # Breitung (1984): a curvature of 0.4 divides the probability by about sqrt(1 + 3 * 0.4)
        assert found[0].first_order == pytest.approx(stats.norm.sf(3.0), rel=1e-6)
        assert exact == pytest.approx(found[0].first_order / np.sqrt(1 + 3.0 * 0.4), rel=0.05)


def test_form_finds_a_second_design_point():
    """Two regions of failures, u > 3 and u < -3.2."""
    exact = stats.norm.sf(3.0) + stats.norm.sf(3.2)
    margins = lambda u: (3.0 - u[:, 0]) * (3.2 + u[:, 0])  # noqa: E731
    found = [form(margins, 3, seed, 0.2, 20_000) for seed in range(20)]
    assert covered(found, exact) >= 17
    with pytest.raises(rb.StudyError, match="does not change near a point"):
        form(lambda u: 3.5 - np.abs(u).max(-1).round(), 2, 0, 0.2, 1000)


def test_the_interval_of_monte_carlo_is_the_one_of_scipy():
    for failures, samples in ((0, 10), (3, 50), (10, 10)):
        exact = stats.binomtest(failures, samples).proportion_ci(0.95, method="exact")
        assert clopper_pearson(failures, samples) == pytest.approx((exact.low, exact.high), rel=1e-12)


def test_intervals_of_monte_carlo_contain_the_probability():
    found = []
    for seed in range(REPETITIONS):
        u = normal_numbers(seed, (0, 0), 500, 1)
        found.append(monte_carlo(u, 2.0 - u[:, 0]))
    assert covered(found, stats.norm.sf(2.0)) >= LEAST_COVERED


def test_unknown_samples_widen_the_interval_of_monte_carlo():
    u = np.zeros((10, 1))
    margins = np.array([-1.0, np.nan, *[1.0] * 8])
    found = monte_carlo(u, margins)
    assert found.value == 1 / 9
    assert found.interval == (clopper_pearson(1, 10)[0], clopper_pearson(2, 10)[1])


def test_margins_with_few_values_do_not_bias_subset_simulation():
    """Half of the margins are equal: P(3 - floor(u) < 0) = P(u >= 4), whose levels have probabilities far from 0.1."""
    margins = lambda u: 3.5 - np.floor(np.maximum(u[:, 0], 0.0))  # noqa: E731
    exact = stats.norm.sf(4.0)
    found = [subset_simulation(margins, 1, seed, 1000) for seed in range(20)]
    assert covered(found, exact) >= 17
    with pytest.raises(rb.StudyError, match="the same in at least half"):
        subset_simulation(lambda u: np.ones(len(u)), 1, 0, 200)
    with pytest.raises(rb.StudyError, match="no failure found"):
        subset_simulation(lambda u: 1.0 + np.exp(-u[:, 0]), 1, 0, 200)


# --- studies ----------------------------------------------------------------------------------------------------------


def stopped_at_the_threshold(u):
    """The distance from a stop that 20 % of the samples reach, and that breaks beyond 2 standard deviations."""
    return np.where(u[:, 0] > 2.0, -1.0, np.maximum(stats.norm.isf(0.2) - u[:, 0], 0.0))


@pytest.mark.parametrize("method", [subset_simulation, with_stages_of_300])
def test_samples_at_the_threshold_are_no_failures(method):
    settings = {"samples": 300} if method is subset_simulation else {}
    exact = stats.norm.sf(2.0)
    found = method(stopped_at_the_threshold, dimension=2, seed=1, **settings)
    assert found.interval[0] < exact < found.interval[1]
    never_fails = lambda u: np.maximum(stats.norm.isf(0.3) - u[:, 0], 0.0)  # noqa: E731
    with pytest.raises(rb.StudyError, match=r"no sample is closer|do not come closer"):
        method(never_fails, dimension=2, seed=1, **settings)


def test_no_estimate_of_a_probability_exceeds_one():
    found = form(lambda u: u[:, 0] - 1.5, dimension=2, seed=1, wanted=0.2, limit=2000)
    assert found.value <= 1.0
    assert found.interval[0] < stats.norm.cdf(1.5) <= found.interval[1]


def total(model, motion):
    x, y, _ = np.moveaxis(model.gravity, -1, 0)
    return x + y


def sometimes_undefined(model, motion):
    x, y, _ = np.moveaxis(model.gravity, -1, 0)
    return np.where(x < -1.0, np.nan, x + y)


def study_of(function=total, **changed):
    given = {
        "samples": 10,
        "seed": 3,
        "vary": {"gravity.[xy]": rb.Normal(0.0, 1.0)},
        "simulate": {"duration": 0.01, "method": "rk4", "step": 0.01, "save_at": 2},
        "measures": [{"name": "total", "quantity": "function", "function": function, "unit": "m"}],
    }
    return rb.Study(rb.Model.serial_chain(1), **given | changed)


#: P(total > 4) = P(u > 4 / sqrt(2)).
EXACT = stats.norm.sf(4.0 / np.sqrt(2.0))


@pytest.mark.slow
def test_the_probability_of_a_study(tmp_path):
    """A study has the probability of its distributions; the most probable failing sample can be simulated again."""
    study = study_of()
    found = study.probability("total", above="4000 mm", stage=400)
    assert found.interval[0] < EXACT < found.interval[1]
    assert (found.failed, found.undefined, found.method) == (0, 0, "subset")
    assert found.question == "total > 4 m"
    assert found.simulations == len(found.study.plan.table) == sum(stage.simulations for stage in found.stages) - 80
    # the design point is (2, 2)
    assert np.abs(found.inputs - 2.0).max() < 0.5
    assert np.abs(found.importance - 0.5).max() < 0.2
    again = found.study.sample(found.sample)
    assert [*again[0].values()] == found.inputs.values.tolist()
    assert found.motion().success
    assert total(again[1], None) > 4.0
    assert f"P(total > 4 m) = {found.estimate:.4g}" in str(found)
    mirrored = study.probability("total", below=-4.0, stage=400)
    assert mirrored.interval[0] < EXACT < mirrored.interval[1]


@pytest.mark.slow_cases("importance")
@pytest.mark.parametrize("method", ["importance", "form"])
def test_methods_that_choose_their_number_of_simulations(method):
    study = study_of()
    settings = {"stage": 300} if method == "importance" else {}
    found = study.probability("total", above=4.0, method=method, coefficient_of_variation=0.3, **settings)
    assert found.interval[0] < EXACT < found.interval[1]
    assert found.coefficient_of_variation < 0.35
    assert np.abs(found.importance - 0.5).max() < 0.2
    assert found.simulations == sum(stage.simulations for stage in found.stages)
    assert np.isnan(found.first_order) == (method == "importance")
    assert total(found.study.sample(found.sample)[1], None) > 4.0


@pytest.mark.slow
def test_correlations_and_distributions_have_an_effect():
    """Exponential of a sum of normal numbers with correlation 1/2: P(x + y > 4), of variance 3."""
    covariance = [[1.0, 0.5], [0.5, 1.0]]
    study = study_of(vary={"gravity.[xy]": rb.study.MultivariateNormal(mean=[0.0, 0.0], covariance=covariance)})
    found = study.probability("total", above=4.0, stage=400)
    assert found.interval[0] < stats.norm.sf(4.0 / np.sqrt(3.0)) < found.interval[1]
    uniform = study_of(vary={"gravity.[xy]": rb.Uniform(0.0, 1.0)}).probability("total", above=1.9, stage=400)
    assert uniform.interval[0] < 0.005 < uniform.interval[1]


def test_the_samples_of_monte_carlo_are_the_samples_of_the_study():
    study = study_of(samples=40)
    found = study.probability("total", above=0.5, method="monte_carlo", simulations=40)
    results = study.run()
    assert np.array_equal(found.study.plan.table, results.parameters.values)
    assert found.estimate == (results.total > 0.5).mean().item()


@pytest.mark.slow
def test_simulations_do_not_depend_on_chunks_and_continue_to_the_bit(tmp_path):
    study = study_of()
    whole = study.probability("total", above=4.0, stage=200)
    with pytest.raises(rb.StudyError, match="needs more than the 500 simulations"):
        study.probability("total", above=4.0, stage=200, simulations=500, out=tmp_path / "one", chunk=37)
    assert len([*(tmp_path / "one" / "simulations").iterdir()]) > 5
    continued = study.probability("total", above=4.0, stage=200, out=tmp_path / "one")
    assert (continued.estimate, continued.interval) == (whole.estimate, whole.interval)
    assert np.array_equal(continued.study.plan.table, whole.study.plan.table)
    stored = json.loads((tmp_path / "one" / "probability.json").read_text())
    assert stored["estimate"] == whole.estimate
    with pytest.raises(rb.StudyError, match=r"belongs to another analysis: question.threshold was 4\.0, is 3\.0"):
        study.probability("total", above=3.0, stage=200, out=tmp_path / "one")
    with pytest.raises(rb.StudyError, match=r"belongs to another analysis: study.seed was 3, is 4"):
        study_of(seed=4).probability("total", above=4.0, stage=200, out=tmp_path / "one")
    damaged = min((tmp_path / "one" / "simulations").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.warns(UserWarning, match="is damaged"):
        repaired = study.probability("total", above=4.0, stage=200, out=tmp_path / "one")
    assert repaired.estimate == whole.estimate


@pytest.mark.slow
def test_importance_sampling_continues_to_the_bit(tmp_path):
    """All of its simulations can be repeated, including the wide ones; invalid masses far away do not end it."""
    study = study_of(vary={"gravity.[xy]": rb.Normal(0.0, 1.0), "link1.mass": rb.Normal(1.0, 0.2)})
    ask = {"above": 4.0, "method": "importance", "stage": 200}
    whole = study.probability("total", **ask, out=tmp_path / "one", chunk=37)
    assert whole.interval[0] < EXACT < whole.interval[1]
    assert whole.failed > 0  # wide samples with a negative mass
    for file in sorted((tmp_path / "one" / "simulations").iterdir())[10:]:
        file.unlink()
    continued = study.probability("total", **ask, out=tmp_path / "one")
    assert (continued.estimate, continued.interval) == (whole.estimate, whole.interval)
    assert np.array_equal(continued.study.plan.table, whole.study.plan.table)
    first = 0
    for stage in whole.stages:
        values, model, _ = whole.study.sample(first)
        assert [*values.values()] == whole.study.plan.table[first].tolist()
        assert np.isfinite(total(model, None))
        first += stage.simulations
    assert first == whole.simulations


@pytest.mark.slow
def test_the_command_prints_the_result_of_the_study(tmp_path, capsys):
    """The command reads the question with its unit, and keeps the simulations beside the results."""
    study = rb.Study(
        rb.Model.serial_chain(1),
        samples=10,
        vary={"link1.q": rb.Normal(0.0, 0.1)},
        simulate={"duration": 0.01, "method": "rk4", "step": 0.01, "save_at": 2},
        measures=[rb.Measure("start angle", "position", joint="link1", over="max")],
    )
    study.run(tmp_path / "arm")
    file = tmp_path / "arm" / "description" / "study.toml"
    command = ["study", "probability", str(file), "start angle > 14 deg", "--stage", "100", "--out", str(tmp_path)]
    assert main(command) == 0
    printed = capsys.readouterr().out
    found = study.probability("start angle", above="14 deg", stage=100)
    assert str(found) in printed
    folder = tmp_path / "probability" / "start angle above 14 deg, subset"
    assert (folder / "probability.json").exists()
    assert main(command[:3] + ["start angle = 3"]) == 2
    (tmp_path / "probability").rename(tmp_path / "arm" / "probability")
    page = write_report(tmp_path / "arm").read_text()
    section = page[page.index("<h2>Rare events</h2>") : page.index("<h2>Failures</h2>")]
    assert "start angle &gt; 0.244346 rad" in section
    assert f"{found.estimate:.3g}<small>{found.interval[0]:.2g} to {found.interval[1]:.2g}" in section
    assert f"most probable failing sample {found.sample}" in section
    assert f"{found.inputs.values[0]:.5g}" in section
    assert '<img alt="trajectory of the most probable failing sample: start angle' in section
    stored = json.loads((tmp_path / "arm" / "probability" / folder.name / "probability.json").read_text())
    assert np.array_equal(stored["motion"]["q"], found.motion().q)


def test_a_folder_of_monte_carlo_can_grow(tmp_path):
    study = study_of()
    study.probability("total", above=2.0, method="monte_carlo", simulations=50, out=tmp_path)
    grown = study.probability("total", above=2.0, method="monte_carlo", simulations=80, out=tmp_path)
    assert grown.estimate == study.probability("total", above=2.0, method="monte_carlo", simulations=80).estimate


@pytest.mark.slow
def test_samples_without_a_number_are_reported():
    """x < -1 gives NaN, in 16 % of the samples. They count as the user says."""
    study = study_of(sometimes_undefined)
    found = study.probability("total", above=1.0, method="monte_carlo", simulations=300)
    assert (found.failed, found.undefined > 20) == (0, True)
    as_failure, as_none = (
        study.probability("total", above=1.0, method="monte_carlo", simulations=300, undefined=choice)
        for choice in ("failure", "no_failure")
    )
    assert found.interval == (as_none.interval[0], as_failure.interval[1])
    assert as_failure.estimate == pytest.approx(as_none.estimate + found.undefined / 300)
    with pytest.raises(rb.StudyError, match=r"have no value: 0 failed.*gravity\.x = -.*undefined='failure'"):
        study.probability("total", above=3.0)
    counted = study.probability("total", above=3.0, stage=300, undefined="no_failure")
    exact = integrate.quad(lambda x: stats.norm.pdf(x) * stats.norm.sf(3.0 - x), -1.0, 10.0)[0]
    assert counted.interval[0] < exact < counted.interval[1]
    assert counted.undefined > 20


@pytest.mark.slow
def test_failed_simulations_are_reported():
    """Draws of a negative mass are invalid: the simulation fails."""
    study = study_of(vary={"gravity.[xy]": rb.Normal(0.0, 1.0), "link1.mass": rb.Normal(1.0, 0.5)})
    found = study.probability("total", above=1.0, method="monte_carlo", simulations=200)
    assert found.failed > 0
    assert found.undefined == 0
    with pytest.raises(rb.StudyError, match=r"have no value: \d+ failed.*\"invalid parameters\""):
        study.probability("total", above=3.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expected one threshold"),
        ({"above": 1.0, "below": 2.0}, "expected one threshold"),
        ({"above": "1 kg"}, "above is '1 kg'; expected a number in 'm'"),
        ({"above": np.nan}, "above is nan"),
        ({"above": 1.0, "method": "montecarlo"}, "method is 'montecarlo'"),
        ({"above": 1.0, "undefined": "fail"}, "undefined is 'fail'"),
        ({"above": 1.0, "method": "monte_carlo", "stage": 200}, "has no stages"),
        ({"above": 1.0, "method": "form", "stage": 200}, "has no stages"),
        ({"above": 1.0, "coefficient_of_variation": 0.1}, "does not choose its number of simulations"),
        ({"above": 1.0, "method": "form", "coefficient_of_variation": 0.0}, "coefficient_of_variation is 0"),
        ({"above": 1.0, "stage": 10}, "stage is 10"),
        ({"above": 1.0, "simulations": 0}, "simulations is 0"),
        ({"above": 1.0, "sample": 3}, "Study.probability has no argument 'sample'"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(rb.StudyError, match=re.escape(message)):
        study_of().probability("total", **arguments)


def test_studies_that_a_method_does_not_support_are_refused():
    noise = rb.Wrench("link1", force=(rb.Signal.noise(1.0, (0.0, 10.0)), 0.0, 0.0))
    with pytest.raises(rb.StudyError, match=r"method is 'subset', but .*noise.*method='monte_carlo'"):
        study_of(forces=[noise]).probability("total", above=1.0)
    found = study_of(forces=[noise]).probability("total", above=1.0, method="monte_carlo", simulations=20)
    assert found.simulations == 20
    with pytest.raises(rb.StudyError, match="come from a table"):
        study_of(design=np.zeros((10, 2))).probability("total", above=1.0)
    discrete = study_of(vary={"gravity.[xy]": rb.study.Discrete([0.0, 1.0])})
    with pytest.raises(rb.StudyError, match="has a discrete distribution"):
        discrete.probability("total", above=1.0, method="form")
    with pytest.raises(rb.StudyError, match="has no dispersions"):
        study_of(vary={}).probability("total", above=1.0)
    with pytest.raises(rb.StudyError, match="no failure"):
        study_of().probability("total", above=99.0, method="monte_carlo", simulations=10).motion()
