"""Units of measures: all results of a study are in the unit of the measure, and other quantities are refused."""

import json

import numpy as np
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python

#: A hinge with a velocity about 0.5 rad/s turns freely for 1 s: measures, and their values per unit of the velocity.
MEASURES = {
    "deg": ({"quantity": "position"}, 180 / np.pi),
    "rad": ({"quantity": "position"}, 1.0),
    "rpm": ({"quantity": "velocity"}, 30 / np.pi),
    "deg s": ({"quantity": "position", "over": "integral"}, 0.5 * 180 / np.pi),
    "deg^2 s": ({"quantity": "position", "over": "integral_of_square"}, None),
    "ms": ({"quantity": "position", "over": "time_above", "threshold": -1.0}, None),
}


def study_of(measures, **keys):
    given = {
        "model": rb.Model.serial_chain(1, gravity=(0, 0, 0)),
        "samples": 8,
        "vary": {"*.qd": rb.Uniform("25 deg/s", "35 deg/s")},
        "simulate": {"duration": 1.0, "method": "rk4", "step": 0.1, "save_at": 11},
        "measures": [{"name": f"m{i}", **measure} for i, measure in enumerate(measures)],
    }
    return rb.Study(**(given | keys))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("units")
    study_of([measure | {"unit": unit, "joint": "link1"} for unit, (measure, _) in MEASURES.items()]).run(path)
    return path


@pytest.mark.parametrize("i", range(len(MEASURES)))
def test_results_and_statistics_are_in_the_unit_of_the_measure(folder, i):
    unit, (measure, per_velocity) = [*MEASURES.items()][i]
    results = rb.load_results(folder)
    velocity = results.parameters.values[:, 0]
    if measure.get("over") == "integral_of_square":  # of (v t)^2
        expected = (velocity * 180 / np.pi) ** 2 / 3
    else:
        expected = np.full(8, 1000.0) if per_velocity is None else per_velocity * velocity
    np.testing.assert_allclose(results[f"m{i}"], expected, rtol=1e-12)
    assert results[f"m{i}"].attrs["units"] == unit
    statistics = json.loads(results.attrs["statistics"])["of"][f"m{i}"]
    np.testing.assert_allclose(statistics["mean"], expected.mean(), rtol=1e-12)
    if per_velocity is not None:
        found = study_of([measure | {"unit": unit, "joint": "link1"}]).gradient("m0")
        np.testing.assert_allclose(found.gradient, [per_velocity], rtol=1e-9)
        assert found.gradient_units.values.tolist() == [f"{unit}/(rad/s)"]


@pytest.mark.slow
def test_reports_name_the_unit(folder):
    from rbchain.study.show.report import write_report

    text = write_report(folder).read_text(encoding="utf-8")
    assert "<td>deg</td>" in text
    assert "<td>rpm</td>" in text


@pytest.mark.parametrize(
    ("given", "in_si"),
    [
        ({"over": "time_above", "threshold": "10 deg"}, {"over": "time_above", "threshold": np.radians(10)}),
        ({"over": "overshoot", "step_to": "20 deg"}, {"over": "overshoot", "step_to": np.radians(20)}),
        ({"over": "settling_time", "step_to": "20 deg"}, {"over": "settling_time", "step_to": np.radians(20)}),
        ({"over": "rise_time", "step_to": "1 deg"}, {"over": "rise_time", "step_to": np.radians(1)}),
    ],
)
def test_limits_and_references_can_have_units(given, in_si):
    joint = {"quantity": "position", "joint": "link1"}
    results = study_of([joint | given, joint | in_si]).run()
    np.testing.assert_allclose(results.m0, results.m1, rtol=1e-12)


def test_an_overshoot_can_be_in_percent():
    joint = {"quantity": "position", "joint": "link1", "over": "overshoot", "step_to": 0.2}
    results = study_of([joint, joint | {"unit": "%"}]).run()
    np.testing.assert_allclose(results.m1, 100 * results.m0, rtol=1e-15)


def test_a_function_returns_numbers_in_its_unit():
    function = {"quantity": "function", "function": lambda model, motion: motion.q[..., 0], "unit": "turns of my own"}
    results = study_of([function]).run()
    np.testing.assert_allclose(results.m0, results.q_final[:, 0], rtol=1e-15)
    assert results.m0.attrs["units"] == "turns of my own"


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (
            {"quantity": "position", "unit": "mm"},
            "unit is 'mm', but the measure is in 'rad'; expected",
        ),
        ({"quantity": "velocity", "unit": "Hz"}, "unit is 'Hz', but the measure is in 'rad/s'"),
        ({"quantity": "velocity", "unit": "parsnip"}, "unit is 'parsnip', but the measure is in 'rad/s'"),
        ({"quantity": "position", "over": "integral", "unit": "deg"}, "unit is 'deg', but the measure is in 'rad s'"),
        ({"quantity": "position", "over": "rise_time", "step_to": 1.0, "unit": "deg"}, "the measure is in 's'"),
        (
            {"quantity": "position", "over": "overshoot", "step_to": 1.0, "unit": "deg"},
            "the measure is a plain number",
        ),
        (
            {"quantity": "position", "over": "time_above", "threshold": "1 mm"},
            "threshold is '1 mm'; expected a number in 'rad'",
        ),
        ({"quantity": "position", "over": "overshoot", "step_to": "much"}, "step_to is 'much'; expected a number"),
    ],
)
def test_units_of_other_quantities_are_refused(measure, message):
    with pytest.raises(rb.StudyError, match=rf"measures\[0\].*{message}"):
        study_of([measure | {"joint": "link1"}])


def test_frequencies_are_no_angular_velocities():
    vary = {"*.qd": rb.Uniform("1 Hz", "2 Hz")}
    with pytest.raises(rb.StudyError, match="angular velocity is '1 Hz'"):
        study_of([], vary=vary)
