"""Gradients of measures against closed forms, and first-order against Monte Carlo standard deviations."""

import json
import pickle

import numpy as np
import pytest

import rbchain as rb
from rbchain.study.analyze import gradients
from rbchain.study.analyze.gradients import differences
from rbchain.study.analyze.linear_analysis import linear_analysis
from rbchain.study.plan.plan import Plan
from rbchain.study.run.executors import local
from rbchain.study.store.store import Store

pytestmark = pytest.mark.plain_python

EPS = np.finfo(float).eps


def smooth(model, motion):
    x, y, _ = np.moveaxis(model.gravity, -1, 0)
    return np.sin(x) * np.exp(y)


def linear(model, motion):
    return 3.0 + model.gravity[..., 0] - 2.0 * model.gravity[..., 1]


def kinked(model, motion):
    return np.abs(model.gravity[..., 0] - 1.0)


def stepped(model, motion):
    return np.where(model.gravity[..., 0] > 1.0, 5.0, 0.0)


def infinite(model, motion):
    return np.where(model.gravity[..., 0] > 1.0, np.inf, 0.0)


def study_of(model, *functions, **changed):
    covariance = [[0.04, 0.01], [0.01, 0.09]]
    normal = {"type": "multivariate_normal", "mean": [1.0, 0.5], "covariance": covariance}
    given = {
        "samples": 100,
        "vary": {"gravity.[xy]": normal},
        "simulate": {"duration": 0.01, "method": "rk4", "step": 0.01, "save_at": 2},
        "measures": [{"name": f.__name__, "quantity": "function", "function": f, "unit": "m"} for f in functions],
    }
    return rb.Study(model=model, **given | changed)


def test_gradients_of_functions_agree_with_closed_forms(rod):
    """The measures of a run agree with the closed forms up to the stated errors, which are small for smooth ones."""
    found = study_of(rod, smooth, linear).gradient()
    exact = [[np.cos(1.0) * np.exp(0.5), np.sin(1.0) * np.exp(0.5)], [1.0, -2.0]]
    assert (np.abs(found.gradient - exact) <= found.error).all()
    assert (found.error < [[3e-5, 3e-5], [1e-11, 1e-11]]).all()
    # Richardson's extrapolation has errors of fourth order: 4 h^4 f^(5) / 120 with h below 0.3 / 64
    assert (np.abs(found.gradient - exact) < 4 / 120 * (0.3 / 64) ** 4 * 2 + 300 * EPS / (0.2 / 64)).all()
    assert np.allclose(found.value, [np.sin(1.0) * np.exp(0.5), 3.0], rtol=10 * EPS)
    assert np.allclose(found.contribution, np.abs(exact) * [0.2, 0.3], rtol=1e-6)
    assert (found["mean"].values.tolist(), found["std"].values.tolist()) == ([1.0, 0.5], [0.2, 0.3])
    assert found.parameter.values.tolist() == ["gravity.x", "gravity.y"]
    assert found.gradient_units.values.tolist() == [["m/(m/s^2)"] * 2] * 2
    assert found.attrs == {"motions": 9}


def test_a_measure_that_is_not_smooth_has_a_large_error(rod):
    found = study_of(rod, kinked, stepped, infinite).gradient().sel(parameter="gravity.x")
    assert (found.gradient.sel(measure="kinked"), found.error.sel(measure="kinked")) == (0.0, pytest.approx(1.0))
    assert found.error.sel(measure="stepped") > 5.0
    assert np.isnan(found.gradient.sel(measure="infinite"))


def test_errors_of_differences_bound_those_of_a_polynomial():
    """For x + x^2 + x^3 the extrapolation is exact and |D1 - D2| / 3 is the error of D1, h^2; -h^3 f'''' / 2 is 0."""
    h = 2.0**-6
    x = np.array([0.0, h, -h, 2 * h, -2 * h])
    gradient, error = differences((x + x**2 + x**3)[None], np.array([h]))
    assert abs(gradient[0, 0] - 1.0) < 20 * EPS
    assert error[0, 0] == pytest.approx(h**2, rel=1e-9)


def test_standard_deviations_of_first_order_are_those_of_a_linear_measure(rod, tmp_path):
    """The variance of x - 2 y is a C a. The relative std of a sample variance is sqrt(2 / n)."""
    study = study_of(rod, linear, smooth)
    results = study.run()
    found = results.rbchain.gradient("linear")
    exact = np.sqrt(0.04 - 4 * 0.01 + 4 * 0.09)
    assert found.first_order_std == pytest.approx(exact, rel=1e-11)
    assert found.monte_carlo_std == pytest.approx(results.linear.std(ddof=1).item(), rel=10 * EPS)
    assert abs(found.monte_carlo_std / exact - 1) < 6 * np.sqrt(0.5 / 100)
    stored = study.run(tmp_path)
    both = stored.rbchain.gradient()
    assert both.sel(measure="linear").equals(found)
    assert both.monte_carlo_std.dims == ("measure",)
    assert pickle.loads(pickle.dumps(results)).equals(results)
    for without in (results.copy(), pickle.loads(pickle.dumps(results))):
        with pytest.raises(rb.StudyError, match=r"do not contain their study.*rbchain\.load_results"):
            without.rbchain.gradient("linear")
    with pytest.raises(rb.StudyError, match=r"cannot be read from files: measures\[0\]\.function is"):
        rb.load_results(tmp_path).rbchain.gradient("linear")


def test_correlated_numbers_that_are_not_normal_have_no_variance_of_first_order(rod):
    uniform = {"type": "uniform", "low": -1.0, "high": 1.0}
    vary = {"gravity.[xy]": uniform}
    parameters = ["gravity.x", "gravity.y"]
    correlate = [{"parameters": parameters, "matrix": [[1.0, 0.5], [0.5, 1.0]]}]
    found = study_of(rod, linear, vary=vary, correlate=correlate).gradient("linear")
    assert np.isnan(found.first_order_std)
    assert np.allclose(found.gradient, [1.0, -2.0], rtol=1e-11)
    independent = study_of(rod, linear, vary=vary, design="sobol").gradient("linear")
    assert independent.first_order_std == pytest.approx(np.sqrt(5 / 3), rel=1e-11)


def test_the_gradient_of_an_oscillator_agrees_with_its_closed_form():
    """x(t) = x0 cos(w t) with w = sqrt(k / I). The error of rk4 is below (w h)^5 / 120 per step, relative to x0."""
    spring = rb.Model.serial_chain(1, inertia=rb.Inertia(1.0, inertia=(0.5, 0.5, 0.5)), gravity=(0, 0, 0))
    study = rb.Study(
        model=spring.vary(stiffness=[8.0]),
        samples=10,
        vary={"*.stiffness": rb.Dispersion(rb.Normal(1.0, 0.1), how="multiply"), "*.q": rb.Uniform(0.1, 0.3)},
        simulate={"duration": 0.3, "method": "rk4", "step": 0.01, "save_at": 2},
        measures=[{"name": "end", "quantity": "position", "joint": "link1"}],
    )
    found = study.gradient("end")
    exact = [-0.2 * 0.3 * np.sin(1.2) * 4.0 / 2, np.cos(1.2)]
    allowed = 30 * 0.04**5 / 120 * 5  # the derivative of an error by k is at most 5 / 2 times the error
    assert (np.abs(found.gradient - exact) < found.error + allowed).all()
    assert (found.error < 1e-4).all()
    assert found.gradient_units.values.tolist() == ["rad", "1"]


def test_studies_without_a_gradient_are_refused(rod, tmp_path):
    class Wave:
        @staticmethod
        def ppf(u):
            return 1.0 + np.sin(np.pi * (np.asarray(u) - 0.5))

    def varied(distribution):
        return study_of(rod, linear, vary={"*.q": distribution})

    normal = {"type": "normal", "std": 0.1}
    np.save(tmp_path / "design.npy", np.ones((100, 2)))
    table = study_of(rod, linear, design={"type": "table", "file": str(tmp_path / "design.npy")})
    lowest = [{"name": "x", "quantity": "coordinate", "frame": "link1"}]
    heavy_tail = {"*.mass": rb.LogNormal(sigma=3.0)}
    massless = study_of(rod, vary=heavy_tail, measures=lowest)
    for study, message in (
        (study_of(rod, linear, vary={}), "no dispersions, but a gradient needs at least one"),
        (varied(Wave), r"the mean of 'link1.q' is nan and its standard deviation is nan"),
        (varied(rb.Uniform(0.1, 0.1 + 1e-15)), r"standard deviation is 2\.\d*e-16"),
        (table, "come from a table, but a gradient needs the means"),
        (massless, r"at their means, except 'link1.mass' = -\d.* fails, but a gradient needs it"),
        (study_of(rod, vary={"*.q": normal}), "the study has no measures"),
    ):
        with pytest.raises(rb.StudyError, match=message):
            study.gradient()
    with pytest.raises(rb.StudyError, match=r"measure is 'odd'; expected one of the measures .*'linear'"):
        study_of(rod, linear).gradient("odd")


def test_gradients_of_many_numbers_are_computed_in_chunks(rod, monkeypatch):
    """The memory is bounded, the result is the same bit for bit, and no sample is computed alone."""
    study = study_of(rod, smooth, linear)
    at_once = study.gradient()
    sizes = []

    def recorded(plan, spans):
        for chunk, outputs in local(plan, spans):
            sizes.append(len(outputs["status"]))
            yield chunk, outputs

    monkeypatch.setattr(gradients, "chunk_size", lambda plan, memory: 2)
    in_chunks = gradients.compute_gradients(study.plan, ["smooth", "linear"], recorded)
    np.testing.assert_array_equal(in_chunks.gradient, at_once.gradient)
    np.testing.assert_array_equal(in_chunks.error, at_once.error)
    assert sum(sizes) == at_once.motions
    assert set(sizes) <= {2, 3}


def reciprocal(model, motion):
    """Raise an error at the mean of gravity only."""
    return np.array([1.0 / (x - 1.0) for x in model.gravity[..., 0].tolist()])


def test_a_run_stores_the_reason_why_it_has_no_gradients(rod, tmp_path):
    analysis = json.loads(study_of(rod, reciprocal).run(tmp_path / "reciprocal").attrs["linear_analysis"])
    assert "gradients" not in analysis
    assert analysis["reasons"]["gradients"].startswith("ZeroDivisionError: ")
    cauchy = {"type": "scipy", "name": "cauchy"}
    vary = {"gravity.x": cauchy}
    heavy_tail = json.loads(study_of(rod, linear, vary=vary).run(tmp_path / "cauchy").attrs["linear_analysis"])
    assert heavy_tail["reasons"]["gradients"].startswith("the mean of 'gravity.x' is nan and its standard dev")
    assert heavy_tail["reasons"]["gradients"].endswith("and above the round-off of the mean.")


@pytest.fixture
def motions(monkeypatch):
    """The sizes of the chunks that are computed for gradients from here on."""
    sizes, compute = [], Plan.compute

    def noted(plan, first, last):
        if plan.table is not None:
            sizes.append(last - first)
        return compute(plan, first, last)

    monkeypatch.setattr(Plan, "compute", noted)
    return sizes


@pytest.mark.slow
def test_gradients_of_a_run_use_its_chunk_size_and_all_workers(rod, tmp_path, motions):
    """The 9 motions are 3 chunks if a chunk has at most 4, and as many chunks as the study for several workers."""
    study = study_of(rod, smooth, linear)
    in_chunks = json.loads(study.run(tmp_path / "small", chunk=4).attrs["linear_analysis"])
    assert motions == [3, 3, 3]
    at_once = json.loads(study.run(tmp_path / "large", chunk=50).attrs["linear_analysis"])
    assert motions[3:] == [9]
    shared = linear_analysis(
        study.plan, Store.open(tmp_path / "large", study.plan, study.effects), lambda *a: local(*a)
    )
    assert motions[4:] == [4, 5]
    assert in_chunks == at_once == shared


def test_a_finished_run_keeps_its_gradients_until_files_are_damaged(rod, tmp_path, motions):
    study = study_of(rod, linear)
    first = study.run(tmp_path, chunk=50).attrs
    assert sum(motions) == 9
    assert study.run(tmp_path).attrs == first
    assert sum(motions) == 9
    (tmp_path / "results.zarr/linear/c/1").write_bytes(b"")
    with pytest.warns(UserWarning, match="linear"):
        assert study.run(tmp_path).attrs == first
    assert sum(motions) == 18


def test_a_run_that_ends_during_its_gradients_is_finished(rod, tmp_path, monkeypatch, motions):
    study, compute = study_of(rod, linear), Plan.compute

    def killed(plan, first, last):
        if plan.table is not None:
            raise KeyboardInterrupt
        return compute(plan, first, last)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Plan, "compute", killed)
        study.run(tmp_path)
    results = rb.load_results(tmp_path)
    assert "linear_analysis" not in results.attrs
    assert json.loads(results.attrs["statistics"])["of"]["linear"]["count"] == 100
    resumed = study.run(tmp_path)
    assert resumed.attrs["statistics"] == results.attrs["statistics"]
    assert json.loads(resumed.attrs["linear_analysis"])["gradients"]["linear"]["gradient"] == pytest.approx([1.0, -2.0])
