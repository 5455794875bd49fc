"""Studies report what `Model.simulate` warns about: position limits, unstable digital loops and inexact contacts."""

import json
import warnings

import numpy as np
import pytest

import rbchain as rb
from rbchain.cli import main

pytestmark = pytest.mark.plain_python

MASS, PERIOD = 2.0, 0.1


def pendulum(**limits):
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    rod = rb.Inertia(1.0, cg=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    builder.add_body("rod", joint=rb.Revolute((0, 1, 0)), inertia=rod, limits=rb.JointLimits(**limits))
    return builder.build()


def study_of_amplitudes(amplitudes, **keys):
    """A pendulum without damping, released from rest, comes back to the other side. Its limits are +- 0.3 rad."""
    given = {
        "simulate": rb.Simulation(1.5, method="rk4", step=0.01, save_at=2),
        "vary": {"rod.q": rb.Dispersion(rb.Uniform(0.0, 1.0), how="set")},
        "design": np.reshape(amplitudes, (-1, 1)),
        "measures": [rb.Measure("angle", "position", joint="rod")],
    }
    return rb.Study(pendulum(lower=-0.3, upper=0.3), samples=len(amplitudes), **given | keys)


AMPLITUDES = [0.1, 0.29, 0.31, 0.5, 0.2]
LIMITS = "2 of 5 samples exceed the position limits of joints without stops"


def test_samples_that_exceed_position_limits_are_counted(tmp_path, capsys):
    with pytest.warns(rb.SimulationWarning, match=LIMITS):
        found = study_of_amplitudes(AMPLITUDES).run()
    assert found.warnings.values.tolist() == [0, 0, 1, 1, 0]
    assert (found.status == rb.Status.DONE).all()
    assert found.warnings.attrs["long_name"].startswith("sum of 1 beyond limits, 2 oscillates, 4 ")
    with pytest.warns(rb.SimulationWarning, match=LIMITS):
        again = study_of_amplitudes(AMPLITUDES).run(tmp_path / "results", chunk=2)
    np.testing.assert_array_equal(again.warnings, found.warnings)
    main(["study", "status", str(tmp_path / "results")])
    assert LIMITS in capsys.readouterr().out
    main(["study", "report", str(tmp_path / "results")])
    assert LIMITS in (tmp_path / "results" / "report.html").read_text()
    study_of_amplitudes(AMPLITUDES).run(on_failure="ignore")  # without a warning


def test_stops_in_one_direction_guard_this_direction_only():
    """A stiffness needs the position of a stop."""
    of_stop = {"limit_stiffness": 1e4, "limit_damping": 0.1}
    expected = {"none": [1, 1], "lower": [0, 1], "both": [0, 0]}
    for stops, warned in expected.items():
        values = dict(of_stop)
        values |= {"lower": {"stop_lower": -0.3}, "both": {"stop_lower": -0.3, "stop_upper": 0.3}}.get(stops, {})
        model = pendulum(lower=-0.3, upper=0.3).replace(**values)
        motion = model.simulate([[-0.25], [0.25]], [[-2.0], [2.0]], 0.2, method="rk4", step=1e-3, on_failure="ignore")
        assert motion.beyond_limits.tolist() == np.array(warned, bool).tolist(), stops


def slide():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(MASS))
    return builder.build()


def test_samples_with_an_unstable_digital_loop_are_counted():
    """The speed changes by the factor 1 - kd period / mass in each period."""
    masses = np.array([2.0, 1.2, 0.9, 3.0])
    study = rb.Study(
        slide(),
        samples=4,
        simulate=rb.Simulation(2.05, method="rk4", step=PERIOD / 2, save_at=2, qd=[1.0]),
        drives=[rb.Sampled(rb.PID("slide", 0.0, kp=0, kd=MASS / PERIOD), period=PERIOD)],
        vary={"slide.mass": rb.Dispersion(rb.Uniform(0.5, 4.0), how="set")},
        design=masses[:, None],
    )
    with pytest.warns(rb.SimulationWarning, match="1 of 4 samples have a digital control loop that oscillates"):
        found = study.run()
    assert found.warnings.values.tolist() == [2 if MASS / mass > 2.0 else 0 for mass in masses]


def test_studies_without_limits_digital_loops_and_contacts_have_no_warnings():
    study = rb.Study(slide(), samples=3, simulate=rb.Simulation(0.1), vary={"slide.mass": rb.Normal(2.0, 0.1)})
    with warnings.catch_warnings(action="error"):
        assert "warnings" not in study.run()
    with pytest.raises(rb.StudyError, match="warnings"):
        rb.Study(slide(), samples=3, simulate=rb.Simulation(0.1), measures=[rb.Measure("warnings", "energy")])
    assert "warnings" not in json.loads(study.run().attrs["statistics"])["of"]


def test_failed_samples_and_invalid_draws_have_no_warnings_of_their_own():
    """A mass below zero is invalid; the others exceed the limits."""
    study = study_of_amplitudes(
        [0.5, 0.5],
        vary={
            "rod.mass": rb.Dispersion(rb.Uniform(-1.0, 1.0), how="set"),
            "rod.q": rb.Dispersion(rb.Uniform(0, 1), how="set"),
        },
        design=np.array([[-1.0, 0.5], [1.0, 0.5]]),
    )
    found = study.run(on_failure="ignore")
    assert found.status.values.tolist() == [rb.Status.INVALID_PARAMETERS, rb.Status.DONE]
    assert found.warnings.values.tolist() == [0, 1]
