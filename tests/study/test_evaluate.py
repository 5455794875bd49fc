"""`Study.evaluate`: samples with given numbers in place of drawn ones."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rbchain as rb

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
    assert study.inputs == {"link1.q": "rad", "link1.mass_and_inertia": "1"}
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
