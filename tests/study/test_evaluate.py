"""`Study.evaluate`: samples with given inputs in place of random ones."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rbchain as rb
from rbchain.study import Correlation, GivenValues

pytestmark = pytest.mark.plain_python


def falling(**changes):
    """A rod of 0.1 kg and 1 m that falls from an angle q; the work of gravity on it is m g l (1 + sin(q)) / 2."""
    uniform = {"type": "uniform", "low": -1.5, "high": -0.1}
    factor = {"type": "uniform", "low": 0.5, "high": 2.0}
    keys = {
        "model": rb.Model.serial_chain(1, length=1.0),
        "samples": 4,
        "simulate": {"duration": 0.6, "rtol": 1e-6},
        "vary": {"*.q": uniform, "*.mass_and_inertia": rb.Dispersion(factor, how="multiply")},
        "measures": [{"name": "energy", "quantity": "kinetic_energy", "over": "max"}],
    }
    return rb.Study(**keys | changes)


POINTS = np.array([[-0.5, 1.0], [-1.0, 2.0], [-0.2, 0.5]])
EXACT = 0.5 * POINTS[:, 1] * (1.0 + np.sin(POINTS[:, 0]))


def test_given_numbers_take_the_place_of_drawn_ones():
    study = falling()
    assert study.inputs.units == {"link1.q": "rad", "link1.mass_and_inertia": "1"}
    results = study.evaluate(POINTS)
    np.testing.assert_allclose(results.energy, EXACT, rtol=1e-5)
    np.testing.assert_array_equal(results.parameters, POINTS)


def test_one_sample_is_the_sample_of_a_batch():
    study = falling()
    many, one = study.evaluate(POINTS), study.evaluate(POINTS[1:2])
    assert one.sizes["sample"] == 1
    assert json.loads(one.attrs["statistics"])["samples"] == 1
    np.testing.assert_array_equal(one.energy, many.energy[1:2])


def test_the_samples_of_a_study_can_be_evaluated_again():
    study = falling()
    results = study.run()
    np.testing.assert_array_equal(study.evaluate(results.parameters.values).energy, results.energy)
    np.testing.assert_array_equal(study.evaluate(results.parameters).energy, results.energy)


def test_columns_with_names_can_be_in_any_order():
    study = falling()
    table = pd.DataFrame(POINTS, columns=list(study.inputs))
    turned = table[table.columns[::-1]]
    for inputs in (table, turned, xr.DataArray(turned.values, dims=("x", "y"), coords={"y": turned.columns})):
        np.testing.assert_allclose(study.evaluate(inputs).energy, EXACT, rtol=1e-5)


def test_invalid_numbers_fail_their_own_sample_only():
    with pytest.warns(rb.SimulationWarning, match="invalid parameters"):
        results = falling().evaluate(np.vstack([POINTS, [[-0.5, -1.0]], [[np.nan, 1.0]]]))
    np.testing.assert_allclose(results.energy[:3], EXACT, rtol=1e-5)
    assert (results.status[3:] == rb.Status.INVALID_PARAMETERS).all()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (POINTS[0], r"inputs has shape \(2,\); expected \(m, 2\), a column for each of"),
        (POINTS[:, :1], r"inputs has shape \(3, 1\); expected \(m, 2\)"),
        ("text", "inputs"),
        (pd.DataFrame(POINTS, columns=["q", "mass"]), r"inputs has the columns \['q', 'mass'\]; expected the names of"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs, message):
    with pytest.raises(rb.RbchainError, match=message):
        falling().evaluate(inputs)


def test_settings_are_those_of_run():
    with pytest.raises(rb.RbchainError, match=r"Study.evaluate has no argument 'chunks'; .*did you mean chunk"):
        falling().evaluate(POINTS, chunks=2)
    np.testing.assert_allclose(falling().evaluate(POINTS, chunk=2).energy, EXACT, rtol=1e-5)


def test_inputs_have_names_units_and_distributions():
    inputs = falling().inputs
    assert inputs.names == tuple(inputs) == ("link1.q", "link1.mass_and_inertia")
    assert inputs["link1.q"].unit == "rad"
    assert inputs["link1.q"].distribution == rb.Uniform(-1.5, -0.1)
    assert "link1.qd" not in inputs
    assert repr(inputs) == "Inputs({'link1.q': 'rad', 'link1.mass_and_inertia': '1'})"
    with pytest.raises(AttributeError):
        inputs["link1.q"].unit = "deg"


def test_inputs_are_in_si_units():
    study = falling(vary={"*.q": rb.Uniform("-90 deg", "0 deg")})
    assert study.inputs["link1.q"].distribution.low == pytest.approx(-np.pi / 2)


def test_sampled_inputs_are_the_draws_of_the_study():
    study = falling(seed=5)
    drawn = study.inputs.sample(9)
    assert drawn.shape == (9, 2)
    np.testing.assert_array_equal(drawn[:4], study.plan.draw(0, 4))
    np.testing.assert_array_equal(study.evaluate(drawn[:4]).energy, study.run().energy)
    np.testing.assert_array_equal(study.inputs.sample(3), drawn[:3])
    np.testing.assert_array_equal(falling(seed=6).inputs.sample(3), study.inputs.sample(3, seed=6))
    assert (study.inputs.sample(3, seed=6) != drawn[:3]).all()
    assert falling(vary={}).inputs.sample(2).shape == (2, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda inputs: inputs.sample(0), "n is 0; expected a whole number of at least 1"),
        (lambda inputs: inputs.sample(1.5), "n is 1.5"),
        (lambda inputs: inputs.sample(2, seed=-1), "seed is -1"),
    ],
)
def test_wrong_numbers_of_inputs_are_refused(call, message):
    with pytest.raises(rb.StudyError, match=message):
        call(falling().inputs)


@pytest.mark.slow
def test_a_design_can_be_an_array():
    table = pd.DataFrame(POINTS, columns=list(falling().inputs))
    turned = table[table.columns[::-1]]
    named = xr.DataArray(turned.values, dims=("x", "y"), coords={"y": turned.columns})
    expected = falling().evaluate(POINTS).energy
    for design in (POINTS, POINTS.tolist(), table, turned, named, GivenValues(turned)):
        results = falling(samples=3, design=design).run()
        np.testing.assert_array_equal(results.parameters, POINTS)
        np.testing.assert_array_equal(results.energy, expected)
    in_table = {"type": "array", "values": turned.values.tolist(), "columns": list(turned)}
    np.testing.assert_array_equal(falling(samples=2, design=in_table).plan.draw(0, 2), POINTS[:2])


def test_a_change_of_the_array_does_not_change_the_study():
    points = POINTS.copy()
    study = falling(samples=3, design=points)
    points[:] = 0.0
    np.testing.assert_array_equal(study.plan.draw(0, 3), POINTS)


def test_results_of_another_array_are_another_study(tmp_path):
    falling(samples=3, design=POINTS).run(tmp_path)
    names = list(falling().inputs)
    falling(samples=3, design=pd.DataFrame(POINTS, columns=names)[names[::-1]]).run(tmp_path)  # the same numbers
    with pytest.raises(rb.StudyError, match=r"another study: design\.sha256 was"):
        falling(samples=3, design=POINTS + 0.1).run(tmp_path)


@pytest.mark.parametrize(
    ("design", "message"),
    [
        (POINTS[0], r"design.values has shape \(2,\); expected \(samples, columns\)"),
        (POINTS[:, :1], r"design has shape \(3, 1\); expected \(m, 2\), a column for each of \['link1.q'"),
        (POINTS[:2], r"design has 2 rows; expected at least 3, the number of samples. Add rows, or set samples = 2"),
        (POINTS * [1.0, np.nan], "row 0 of column 'link1.mass_and_inertia', counted from 0, is nan"),
        (pd.DataFrame(POINTS, columns=["q", "mass"]), r"design has the columns \['q', 'mass'\]; expected the names of"),
        ([["a", "b"]], "design.values is .*; expected real numbers"),
        (3, "design: found 3; expected the name of a design, a design, or an array"),
        ("sobo", "design.type is 'sobo'; .*; did you mean sobol"),
    ],
)
def test_designs_that_do_not_fit_are_refused(design, message):
    with pytest.raises(rb.StudyError, match=message):
        falling(samples=3, design=design)


def test_given_numbers_cannot_be_correlated():
    correlation = Correlation(list(falling().inputs), np.eye(2))
    with pytest.raises(rb.StudyError, match="takes all values from a table, which cannot be correlated"):
        falling(samples=3, design=POINTS, correlate=[correlation])
