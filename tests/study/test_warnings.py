"""Studies report what `Model.simulate` warns about: position limits, unstable digital loops and inexact contacts."""

import json
import re
import warnings

import numpy as np
import pytest

import rbchain as rb
from rbchain.cli import main
from rbchain.study.show.rare_report import rare_events

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
        places = {"lower": {"stop_lower": -0.3}, "both": {"stop_lower": -0.3, "stop_upper": 0.3}}.get(stops)
        model = pendulum(lower=-0.3, upper=0.3).replace(**(of_stop | places if places else {}))
        motion = model.simulate([[-0.25], [0.25]], [[-2.0], [2.0]], 0.2, method="rk4", step=1e-3, on_failure="ignore")
        assert motion.beyond_limits.tolist() == np.array(warned, bool).tolist(), stops


@pytest.mark.parametrize("method", ["rk4", "rk45"])
def test_the_elastic_stop_of_a_sample_guards_this_sample_only(method):
    """The samples swing to 0.5 rad: the first has no stop, the others have stops below their amplitude."""
    upper, steps = np.array([[np.inf], [0.3], [0.3]]), {"step": 1e-3} if method == "rk4" else {}
    model = pendulum(lower=-0.6, upper=0.3).vary(stop_upper=upper, limit_stiffness=[1e4])
    with pytest.warns(rb.SimulationWarning, match="1 of 3: The motion exceeds the position limits"):
        motion = model.simulate([[-0.5]] * 3, duration=2.0, method=method, **steps)
    assert motion.beyond_limits.tolist() == [True, False, False]
    both = model.simulate(np.full((2, 3, 1), -0.5), duration=2.0, method=method, on_failure="ignore", **steps)
    assert both.beyond_limits.tolist() == [[True, False, False]] * 2


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


def study_beyond_limits():
    """Amplitudes are uniform from 0 to 0.4 rad, and the limits are +-0.3 rad: a quarter of the samples exceed them."""
    vary = {"rod.q": rb.Dispersion(rb.Uniform(0.0, 0.4), how="set")}
    return study_of_amplitudes([0.0] * 64, design="random", vary=vary)


@pytest.mark.parametrize("method", ["sobol_indices", "morris", "shapley_effects"])
def test_indices_state_how_many_samples_have_warnings(method):
    analyze = getattr(study_beyond_limits(), method)
    with pytest.warns(rb.SimulationWarning, match=r"(\d+) of \d+ samples exceed the position limits") as caught:
        motions = analyze("angle", base_samples=8).motions
    count, total = map(int, re.match(r"(\d+) of (\d+)", str(caught[0].message)).groups())
    assert total == motions
    assert 0 < count < total / 2
    assert caught[0].filename == __file__
    analyze("angle", base_samples=8, on_failure="ignore")  # without a warning


def test_a_probability_states_how_many_samples_have_warnings(tmp_path):
    study, settings = study_beyond_limits(), {"above": 0.0, "method": "monte_carlo", "simulations": 60}
    with pytest.warns(rb.SimulationWarning, match=r"of 60 samples exceed the position limits"):
        found = study.probability("angle", out=tmp_path / "probability" / "angle", **settings)
    exceed = int((found.study.plan.table > 0.3).sum())
    assert found.warnings[0].startswith(f"{exceed} of 60 samples exceed")
    assert found.warnings[0] in str(found)
    with pytest.warns(rb.SimulationWarning, match=f"^{exceed} of 60 samples"):
        again = study.probability("angle", out=tmp_path / "probability" / "angle", **settings)
    assert again.warnings == found.warnings
    assert f"angle &gt; 0: {found.warnings[0]}".replace("0:", "0 rad:") in rare_events(tmp_path, lambda title, _: title)


def test_a_gradient_states_how_many_samples_have_warnings():
    """The mean of the amplitudes exceeds the limit, so all 5 simulations near it do."""
    vary = {"rod.q": rb.Dispersion(rb.Uniform(0.3, 0.5), how="set")}
    study = study_of_amplitudes([0.0] * 64, design="random", vary=vary)
    with pytest.warns(rb.SimulationWarning, match="^5 of 5 samples exceed the position limits"):
        study.gradient("angle")
