"""Sobol indices of second order, Shapley effects, and indices of all measures at once."""

import itertools
import json
import math
import re

import numpy as np
import pytest

import rbchain as rb
from rbchain import cli
from rbchain.cli import output
from rbchain.study.analyze.shapley import effects_of, orders_and_scores
from rbchain.study.show.report import write_report

SETTINGS = {"duration": 0.01, "method": "rk4", "step": 0.01, "save_at": 2}
CORRELATION = np.array([[1.0, 0.8, -0.3], [0.8, 1.0, 0.0], [-0.3, 0.0, 1.0]])
#: Variances of the Ishigami function with a = 7 and b = 0.1 on (-pi, pi): of x, of y, and of x and z together.
OF_X, OF_Y, OF_XZ = (1 + 0.1 * np.pi**4 / 5) ** 2 / 2, 49 / 8, 0.1**2 * np.pi**8 * (1 / 18 - 1 / 50)


def ishigami(x, y, z):
    return np.sin(x) + 7 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)


def shapley_of_linear(slopes, covariance):
    """Effects of a linear function of normal numbers, from their definition: the mean over all orders.

    The variance that the numbers u explain is b^T S[:, u] S[u, u]^-1 S[u, :] b (Owen and Prieur 2017).
    """
    d, of_slopes, effects = len(slopes), covariance @ slopes, np.zeros(len(slopes))
    for order in itertools.permutations(range(d)):
        explained = [0.0]
        for k in range(1, d + 1):
            u = list(order[:k])
            explained.append(of_slopes[u] @ np.linalg.solve(covariance[np.ix_(u, u)], of_slopes[u]))
        effects[list(order)] += np.diff(explained)
    return effects / math.factorial(d) / (slopes @ of_slopes)


def test_the_definition_agrees_with_the_closed_form_of_two_numbers():
    """Owen and Prieur (2017), equation for d = 2."""
    (a, b), rho = (2.0, -0.5), 0.6
    variance = a**2 + b**2 + 2 * rho * a * b
    first = (a**2 * (1 - rho**2 / 2) + rho * a * b + b**2 * rho**2 / 2) / variance
    found = shapley_of_linear(np.array([a, b]), np.array([[1.0, rho], [rho, 1.0]]))
    np.testing.assert_allclose(found, [first, 1 - first], rtol=1e-12)


@pytest.mark.parametrize("correlation", [np.eye(3), CORRELATION])
def test_shapley_effects_of_linear_functions_agree_with_the_closed_form(correlation):
    """The intervals of 95 % contain it in 91.2 % to 98.8 % of 300 cases: three standard deviations are 3.8 %."""
    slopes, stds = np.array([1.0, 0.4, 0.7]), np.array([1.0, 2.0, 3.0])
    exact = shapley_of_linear(slopes, correlation * np.outer(stds, stds))
    inside = []
    for seed in range(300):
        orders, scores = orders_and_scores(seed, 400, np.linalg.cholesky(correlation))
        effects, half = effects_of(orders, (scores * stds) @ slopes)
        assert effects.sum() == pytest.approx(1.0, abs=1e-12)
        inside.append(np.abs(effects - exact) < half)
    assert (abs(np.mean(inside, axis=0) - 0.95) < 0.038).all()
    assert half.max() < 0.15


def test_scores_have_their_correlation_and_are_conditioned_on_the_last_sample():
    orders, scores = orders_and_scores(0, 20_000, np.linalg.cholesky(CORRELATION))
    for k in range(4):
        np.testing.assert_allclose(np.corrcoef(scores[:, k].T), CORRELATION, atol=0.03)
    first = np.take_along_axis(scores, orders[:, None, :1], -1)[..., 0]
    np.testing.assert_array_equal(first[:, 1:3], first[:, 3:].repeat(2, 1))
    assert abs(np.corrcoef(scores[:, 0, 0], scores[:, 3, 0])[0, 1]) < 0.03


def test_numbers_that_are_the_same_have_equal_shares():
    factor = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    orders, scores = orders_and_scores(0, 4000, factor)
    np.testing.assert_allclose(scores[..., 0], scores[..., 1], rtol=0, atol=1e-12)
    effects, half = effects_of(orders, scores[..., 0] + scores[..., 2])
    assert (np.abs(effects - [0.25, 0.25, 0.5]) < 2 * half).all()


def test_shapley_effects_of_the_ishigami_function_agree_with_the_closed_form():
    """The interaction of x and z is shared by both."""
    orders, scores = orders_and_scores(0, 20_000, np.eye(3))
    uniform = np.pi * np.vectorize(math.erf)(scores / 2**0.5)
    effects, half = effects_of(orders, ishigami(*np.moveaxis(uniform, -1, 0)))
    exact = np.array([OF_X + OF_XZ / 2, OF_Y, OF_XZ / 2]) / (OF_X + OF_Y + OF_XZ)
    assert (np.abs(effects - exact) < 2 * half).all()
    assert half.max() < 0.03


def of_gravity(function):
    """Return a measure that is a function of gravity, without a simulation of its own."""
    return lambda model, motion: np.broadcast_to(function(*np.moveaxis(model.gravity, -1, 0)), motion.status.shape)


def of_gravities(**more):
    measures = {"ishigami": ishigami, "sum": lambda x, y, z: x + y + z, "constant": lambda x, y, z: 2.0 + 1e-15 * x}
    return rb.Study(
        model=rb.Model.serial_chain(1),
        samples=40,
        simulate=SETTINGS,
        vary={"gravity": rb.Uniform(-np.pi, np.pi)},
        measures=[rb.Measure(name, "function", function=of_gravity(of)) for name, of in measures.items()],
        **more,
    )


@pytest.mark.slow
@pytest.mark.plain_python
def test_indices_of_all_measures_and_pairs_agree_with_the_closed_form(tmp_path):
    study = of_gravities()
    study.run(tmp_path)
    nan = "indices of 'constant' are NaN, because .* Sobol indices are shares of its"
    with pytest.warns(UserWarning, match=nan) as warned:
        found = study.sobol_indices(base_samples=128, second_order=True, out=tmp_path / "indices-sobol")
    assert warned[0].filename == __file__
    assert dict(found.sizes) == {"measure": 3, "parameter": 3, "other": 3}
    variance, of_one = OF_X + OF_Y + OF_XZ, found.sel(measure="ishigami")
    assert (np.abs(of_one.S1 - np.array([OF_X, OF_Y, 0]) / variance) < 2 * of_one.S1_conf).all()
    pairs = np.array([[np.nan, 0, OF_XZ], [0, np.nan, 0], [OF_XZ, 0, np.nan]]) / variance
    np.testing.assert_allclose(of_one.S2, pairs, atol=2 * float(of_one.S2_conf.max()))
    assert np.isnan(found.S1.sel(measure="constant")).all()
    np.testing.assert_allclose(found.ST.sel(measure="sum"), 1 / 3, atol=0.1)
    alone = study.sobol_indices("sum", base_samples=128, second_order=True)
    np.testing.assert_array_equal(alone.S2, found.S2.sel(measure="sum"))
    effects = study.shapley_effects("sum", base_samples=100, out=tmp_path / "indices-shapley")
    np.testing.assert_allclose(effects.Sh, 1 / 3, atol=2 * float(effects.Sh_conf.max()))
    page = write_report(tmp_path).read_text()
    for title in (
        "ishigami: Sobol indices, 1,024 simulations",
        "ishigami: pairs",
        "sum: Shapley effects, 400 simulations",
    ):
        assert f"<caption>{title}</caption>" in page
    shown = re.search(r"<tr><th>gravity.x, gravity.z</th><td class=\"number\">([^<]*)<", page)[1]
    assert float(shown) == pytest.approx(float(of_one.S2[0, 2]), abs=0.01)


@pytest.mark.slow
@pytest.mark.plain_python
def test_correlated_draws_have_shapley_effects_only(tmp_path):
    """For x + y + z with the variances of uniform numbers, whose correlation is (6 / pi) asin(rho / 2)."""
    names = [f"gravity.{axis}" for axis in "xyz"]
    study = of_gravities(correlate=[rb.study.Correlation(names, [[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])])
    for indices in (study.sobol_indices, study.morris):
        with pytest.raises(rb.StudyError, match=r"draws of this study are correlated, .* use Study.shapley_effects"):
            indices("sum", base_samples=8)
    found = study.shapley_effects("sum", base_samples=400)
    rho = 6 / np.pi * np.arcsin(0.45)
    alone = 1 / (3 + 2 * rho)
    exact = np.array([(1 - alone) / 2, (1 - alone) / 2, alone])  # x and y are alike, and z is independent
    assert (np.abs(found.Sh - exact) < 2 * found.Sh_conf).all()
    again = study.shapley_effects("sum", base_samples=400, chunk=7)
    np.testing.assert_array_equal(again.Sh, found.Sh)
    with pytest.raises(rb.StudyError, match="come from a table"):
        of_gravities(design=np.zeros((40, 3))).shapley_effects("sum")
    with pytest.raises(rb.StudyError, match="'constant' is 2 in all 32 samples, but Shapley effects are shares"):
        study.shapley_effects("constant", base_samples=8)
    with pytest.warns(
        UserWarning, match="indices of 'constant' are NaN, because .* Shapley effects are shares"
    ) as warned:
        assert np.isnan(study.shapley_effects(base_samples=8).Sh.sel(measure="constant")).all()
    assert warned[0].filename == __file__
    with pytest.raises(rb.StudyError, match=r"Study.shapley_effects has no argument 'permutations'"):
        study.shapley_effects("sum", permutations=8)


@pytest.mark.plain_python
def test_the_command_line_prints_indices_of_all_measures(tmp_path, capsys):
    file = tmp_path / "swing.toml"
    file.write_text(
        'name = "swing"\nmodel = { serial_chain = { n = 2 } }\nsamples = 3\n'
        'simulate = { duration = 0.02, method = "rk4", step = 0.02 }\n'
        'vary = { "*.q" = { type = "normal", std = "5 deg" } }\n'
        'measures = [{ name = "angle", quantity = "position", joint = "link1" }, '
        '{ name = "energy", quantity = "kinetic_energy" }]\n'
    )
    arguments = ["study", "indices", str(file), "--base-samples", "8"]
    assert cli.main([*arguments, "--second-order"]) == output.EXIT_OK
    shown = " ".join(capsys.readouterr().out.split())
    for part in ("angle: sobol, 48 simulations", "energy: pairs", "link1.q, link2.q"):
        assert part in shown
    assert cli.main([*arguments, "--method", "shapley"]) == output.EXIT_OK
    assert "energy: shapley, 24 simulations" in " ".join(capsys.readouterr().out.split())
    written = json.loads((tmp_path / "swing" / "indices-shapley" / "indices.json").read_text())
    assert written["measures"]["angle"]["Sh"] == pytest.approx([1.0, 0.0], abs=0.01)
    assert cli.main([*arguments, "--method", "morris", "--second-order"]) == output.EXIT_REFUSED
    assert "--second-order needs the method sobol" in capsys.readouterr().err
