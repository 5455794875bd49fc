"""Measures of responses against closed forms, and modules of users that are found next to the study file."""

import json
import math
import sys

import numpy as np
import pytest
from scipy import stats

import rbchain as rb
from rbchain.cli import main
from rbchain.errors import StudyError
from rbchain.study import Measure
from rbchain.study.describe.responses import (
    integral,
    overshoot,
    rise_time,
    settling_time,
    time_above,
    time_in_saturation,
)

from ..mechanisms import slide

pytestmark = pytest.mark.plain_python

ZETA, OMEGA, STEP, START = np.array([0.2, 0.5, 0.8]), 3.0, 2.0, 0.5
DAMPED = OMEGA * np.sqrt(1 - ZETA**2)


def step_response(t):
    """Return the response (3, times) of second-order systems at rest at START, to a step to START + STEP."""
    phase = np.multiply.outer(DAMPED, t)
    decay = np.exp(-np.multiply.outer(ZETA * OMEGA, t))
    return START + STEP * (1 - decay * (np.cos(phase) + (ZETA * OMEGA / DAMPED)[:, None] * np.sin(phase)))


def test_overshoot():
    t = np.linspace(0, 20, 20_001)
    # the largest of the times is within half an interval of the peak: the error is the square of its angle
    error = (DAMPED * 5e-4).max() ** 2
    expected = np.exp(-math.pi * ZETA / np.sqrt(1 - ZETA**2))
    np.testing.assert_allclose(overshoot(t, step_response(t), START + STEP), expected, rtol=0, atol=error)
    np.testing.assert_allclose(overshoot(t, -step_response(t), -START - STEP), expected, rtol=0, atol=error)
    assert (overshoot(t, np.exp(-t)[None], 0.0) == 0.0).all()


@pytest.mark.parametrize("band", [0.02, 0.05, 0.3])
def test_settling_time(band):
    """The definition, on a grid that is 20 times finer; and that the response is at the limit of the band then."""
    coarse, fine = np.linspace(0, 20, 4001), np.linspace(0, 20, 80_001)
    found = settling_time(coarse, step_response(coarse), START + STEP, band)
    deviation = np.abs(step_response(fine) - START - STEP)
    last = np.array([np.flatnonzero(row > band * STEP)[-1] for row in deviation])
    np.testing.assert_allclose(found, fine[last], rtol=0, atol=3e-4)
    at_limit = np.abs([step_response(np.array([when]))[k, 0] - START - STEP for k, when in enumerate(found)])
    np.testing.assert_allclose(at_limit, band * STEP, rtol=0, atol=1e-4)
    t = np.linspace(0, 3, 301)
    np.testing.assert_allclose(
        settling_time(t, np.exp(-t), 0.0, band), -math.log(band) if band > 0.02 else np.nan, atol=1e-4
    )


def test_rise_time():
    t = np.linspace(0, 10, 10_001)
    expected = (math.log(10) - math.log(10 / 9)) / 2.0
    np.testing.assert_allclose(rise_time(t, 1 - np.exp(-2 * t), 1.0), expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(rise_time(t, np.exp(-2 * t)[None], 0.0), expected, rtol=0, atol=1e-6)
    assert np.isnan(rise_time(t, 0.5 * (1 - np.exp(-t)), 1.0))


def test_durations_and_integrals():
    t = np.linspace(0, 2 * math.pi, 6001)
    x = np.sin(np.stack([t, 2 * t]))
    np.testing.assert_allclose(time_above(t, x, 0.5), 2 * math.pi / 3, rtol=0, atol=1e-6)
    np.testing.assert_allclose(time_above(t, x, np.array([[0.5], [2.0]])), [2 * math.pi / 3, 0.0], rtol=0, atol=1e-6)
    assert time_above(np.array([0.0, 2.0]), np.array([0.0, 0.0]), 0.0) == 0.0
    clipped = np.clip(x, -0.5, 0.5)
    # each of the up to eight ends is within an interval
    np.testing.assert_allclose(
        time_in_saturation(t, clipped, np.full((2, 1), 0.5)), 4 * math.pi / 3, rtol=0, atol=8 * t[1]
    )
    np.testing.assert_allclose(integral(t, x**2), math.pi, rtol=0, atol=1e-6)


CONTROLLED = {
    "error": {"quantity": "tracking_error", "joint": "slide", "over": "final"},
    "largest error": {"quantity": "tracking_error", "joint": "slide", "over": "peak"},
    "overshoot": {"quantity": "position", "joint": "slide", "over": "overshoot", "step_to": 0.4},
    "overshoot of the error": {"quantity": "tracking_error", "joint": "slide", "over": "overshoot"},
    "settled": {"quantity": "tracking_error", "joint": "slide", "over": "settling_time", "band": 0.05},
    "rise": {"quantity": "position", "joint": "slide", "over": "rise_time", "step_to": 0.4},
    "energy of the drive": {"quantity": "power", "over": "integral"},
    "energy of the joint": {"quantity": "power", "joint": "slide", "over": "integral"},
    "effort": {"quantity": "torque", "joint": "slide", "over": "integral_of_square"},
    "saturated": {"quantity": "torque", "joint": "slide", "over": "time_in_saturation"},
    "behind": {"quantity": "distance_to_plane", "frame": "slide", "point": (0.4, 0, 0), "normal": (-2, 0, 0)},
    "beyond": {"quantity": "position", "joint": "slide", "over": "time_above", "threshold": 0.4},
}


@pytest.mark.slow
def test_measures_of_a_controlled_slide():
    """A PD controller on a mass is a system of second order; energies follow from the work."""
    zeta, m, duration = 0.4, 2.0, 3.0
    gains = {"kp": m * OMEGA**2, "kd": 2 * zeta * OMEGA * m}
    study = rb.Study(
        model=slide(),
        samples=2,
        drives=[rb.PID("slide", 0.4, **gains, limit=500.0)],
        vary={"*.limit": rb.Dispersion(rb.Uniform(1, 2), how="multiply")},
        simulate={"duration": duration, "method": "rk4", "step": 0.015, "save_at": 201},
        measures=[{"name": name, **given} for name, given in CONTROLLED.items()],
    )
    results = study.run()
    motion = study.motions(2, save_at=201)
    x, v, t = motion.q[..., 0], motion.qd[..., 0], motion.t
    roots, weights = np.polynomial.legendre.leggauss(60)
    at, damped = 0.5 * duration * (roots + 1), OMEGA * math.sqrt(1 - zeta**2)
    wave = np.cos(damped * at) - zeta * OMEGA / damped * np.sin(damped * at)
    force = m * 0.4 * OMEGA**2 * np.exp(-zeta * OMEGA * at) * wave
    units = {name: results[name].attrs.get("units", "") for name in CONTROLLED}
    assert units["energy of the drive"] == "J" and units["effort"] == "(N)^2 s" and units["settled"] == "s"
    assert units["overshoot"] == "" and units["error"] == "m"
    expected = {
        "error": x[:, -1] - 0.4,
        "largest error": np.full(2, 0.4),
        "overshoot": np.full(2, math.exp(-math.pi * zeta / math.sqrt(1 - zeta**2))),
        "energy of the drive": m * v[:, -1] ** 2 / 2,
        "effort": np.full(2, 0.5 * duration * weights @ force**2),
        "saturated": np.zeros(2),
        "behind": 0.4 - x[:, -1],
        "beyond": time_above(t, x, 0.4),  # linear between times 15 ms apart
    }
    expected["overshoot of the error"] = expected["overshoot"]
    expected["energy of the joint"] = expected["energy of the drive"]
    for name, values in expected.items():
        # the error of rk4 is about (3 * 0.015)^4 / 120 per radian
        tolerance = 1e-3 if name == "beyond" else 1e-6
        np.testing.assert_allclose(results[name], values, rtol=1e-6, atol=tolerance, err_msg=name)
    at = results["settled"].values[0]
    assert abs(np.interp(at, t, x[0]) - 0.4) == pytest.approx(0.05 * 0.4, abs=1e-4)
    assert (np.abs(x[0, t > at] - 0.4) < 0.02).all()
    # the same measure of a trajectory
    one = Measure(name="overshoot", **CONTROLLED["overshoot"])
    np.testing.assert_array_equal(one.values(slide(), motion), results["overshoot"])
    np.testing.assert_array_equal(one.values(slide(), motion[1]), results["overshoot"][1])


@pytest.mark.slow
def test_limits_and_references_are_those_of_each_sample():
    model, start = slide(), np.zeros((2, 1))
    force = rb.PrescribedForce("slide", rb.Signal.sines(2.0, 2 * math.pi), limit=[1.0, 5.0])
    motion = model.simulate(start, start, 1.0, method="rk4", step=0.05, save_at=401, drives=[force])
    saturated = Measure(name="x", quantity="torque", joint="slide", over="time_in_saturation")
    # |sin| exceeds 1/2 in two thirds of the time; each of four ends is within an interval
    np.testing.assert_allclose(saturated.values(model, motion, [force]), [2 / 3, 0.0], rtol=0, atol=4 / 400)
    # a digital controller that is always at its limit of 1 N, which it rounds to 0.9 N
    digital = rb.Sampled(rb.PID("slide", 100.0, kp=1.0, limit=1.0), period=0.05, resolution=0.3)
    motion = model.simulate(start, start, 1.0, method="rk4", step=0.05, save_at=21, drives=[digital])
    np.testing.assert_allclose(saturated.values(model, motion, [digital]), 1.0, rtol=1e-14)
    reference = np.array([0.1, -0.3])
    drive = rb.PID("slide", reference, kp=1.0)
    error = Measure(name="x", quantity="tracking_error", joint="slide")
    np.testing.assert_allclose(error.values(model, motion, [drive]), motion.q[:, -1, 0] - reference, rtol=1e-14)


@pytest.mark.parametrize("stops", [False, True])
def test_final_values_of_frames_are_those_of_the_last_states(stops):
    """Also for samples that end between saved times, whose later states are NaN."""
    model, events = rb.Model.serial_chain(2), [rb.Event("link1", value=-1.0, stop=True)] if stops else []
    start = np.array([[0.0, 0.1], [0.4, 0.0]])
    motion = model.simulate(start, 0 * start, 0.5, save_at=6, events=events, rtol=1e-6)
    assert (motion.end_time < 0.5).any() == stops
    points = model.body_poses(motion.end_q).translation[:, 1]
    target = (0.1, 0.2, 0.3)
    distance = Measure(name="d", quantity="distance", frame="link2", point=target)
    np.testing.assert_array_equal(distance.values(model, motion), np.linalg.norm(points - target, axis=-1))
    height = Measure(name="h", quantity="coordinate", frame="link2", axis="y")
    np.testing.assert_array_equal(height.values(model, motion), points[:, 1])


@pytest.mark.parametrize("times", [2, 21])
def test_final_values_are_those_at_the_event_that_stops_a_sample(times):
    """A PID without damping is a spring: the energy determines the speed, and so all forces, at each angle."""
    mass, arm, moment, weight, kp, target, angle = 1.5, 0.8, 0.02, 15.0, 3.0, 0.3, -0.9
    builder = rb.ModelBuilder(gravity=(0, -weight / mass, 0))
    inertia = rb.Inertia(mass, cg=(arm, 0, 0), inertia=np.diag([moment] * 3))
    builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=inertia)
    quantities = ("velocity", "torque", "tracking_error", "power", "reaction_force", "reaction_moment")
    drive, of_joint = rb.PID("bob", target, kp=kp), {"joint": "bob"}
    measures = [{"name": f"final {quantity}", "quantity": quantity, **of_joint} for quantity in quantities]
    measures += [{"name": "largest torque", "quantity": "torque", "over": "max", **of_joint}]
    measures += [{"name": "final energy", "quantity": "energy"}, {"name": "final drift", "quantity": "energy_drift"}]
    study = rb.Study(
        model=builder.build(),
        samples=2,
        simulate={"duration": 2.0, "save_at": times, "rtol": 1e-9, "atol": 1e-11},
        drives=[drive],
        events=[rb.Event("bob", value=angle, stop=True)],
        measures=measures,
    )
    results = study.run()
    about_joint, work = moment + mass * arm**2, kp * (target * angle - angle**2 / 2)
    speed = -math.sqrt(2 * (work - weight * arm * math.sin(angle)) / about_joint)
    torque = kp * (target - angle)
    turning = (torque - weight * arm * math.cos(angle)) / about_joint
    along = weight * math.sin(angle) - mass * arm * speed**2
    across = weight * math.cos(angle) + mass * arm * turning
    expected = {
        "final velocity": speed,
        "final torque": torque,
        "final tracking_error": angle - target,
        "final power": torque * speed,
        "final reaction_force": math.hypot(along, across),
        "final reaction_moment": torque,
        "largest torque": torque,
        "final energy": work,  # it is zero at the start
        "final drift": work,
    }
    _, model, motion = study.sample(1)
    for measure in study.plan.measures:
        # the time of the event has the accuracy of the interpolant
        np.testing.assert_allclose(results[measure.name], expected[measure.name], rtol=1e-6, err_msg=measure.name)
        of_motion = measure.values(model, motion, [drive])
        np.testing.assert_allclose(of_motion, expected[measure.name], rtol=1e-6, err_msg=measure.name)


def test_final_values_of_digital_control_and_references_are_those_at_the_event():
    """A force that is constant between instants. The reference moves on after the event."""
    mass, kp, period, end = 2.0, 5.0, 0.1, 0.35
    given = {"model": slide(mass), "samples": 2, "events": [rb.Event("slide", value=end, stop=True)]}
    simulate = {"duration": 2.0, "save_at": 2, "qd": 1.0}
    torque = {"name": "x", "quantity": "torque", "joint": "slide"}
    digital = rb.Sampled(rb.PID("slide", 0.0, kp=kp), period=period)
    found = rb.Study(simulate=simulate, drives=[digital], measures=[torque], **given).run()
    x, v, latched = 0.0, 1.0, 0.0
    while x + v * period + latched / mass * period**2 / 2 < end:
        x, v = x + v * period + latched / mass * period**2 / 2, v + latched / mass * period
        latched = -kp * x
    np.testing.assert_allclose(found["x"], latched, rtol=1e-8)
    reference = rb.Signal.sines(0.2, 3.0)
    error = {"name": "x", "quantity": "tracking_error", "joint": "slide"}
    free = rb.PID("slide", reference, kp=0.0)  # without gains, the slide reaches the end at 0.35 s
    found = rb.Study(simulate=simulate, drives=[free], measures=[error], **given).run()
    np.testing.assert_allclose(found["x"], end - reference(end), rtol=1e-8)


def test_integrals_end_at_the_event_that_stops_a_sample():
    """A slide at 2 m/s stops at 1 m, after 0.5 s: distances and times are those until then."""
    study = rb.Study(
        model=slide(),
        samples=2,
        simulate={"duration": 2.0, "method": "rk4", "step": 0.1, "save_at": 21, "qd": 2.0},
        events=[rb.Event("slide", value=1.0, stop=True)],
        measures=[
            {"name": "distance", "quantity": "velocity", "joint": "slide", "over": "integral"},
            {"name": "fast", "quantity": "velocity", "joint": "slide", "over": "time_above", "threshold": 1.0},
        ],
    )
    results = study.run()
    np.testing.assert_allclose(results["distance"], 1.0, rtol=0, atol=1e-9)
    np.testing.assert_allclose(results["fast"], 0.5, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quantity": "position", "joint": "slide", "over": "overshoot"}, "step_to is missing; over = 'overshoot'"),
        ({"quantity": "position", "joint": "slide", "step_to": 1.0}, "step_to is 1.0, but over = 'final' of"),
        ({"quantity": "position", "joint": "slide", "over": "time_above"}, "threshold is missing; over = 'time_above'"),
        (
            {"quantity": "velocity", "joint": "slide", "over": "time_in_saturation"},
            "quantity is 'velocity'; expected 't",
        ),
        ({"quantity": "distance_to_plane", "frame": "slide"}, "normal is missing; the quantity 'distance_to_plane'"),
        ({"quantity": "distance_to_plane", "frame": "slide", "normal": [0, 0, 0]}, "expected a vector other than zero"),
        ({"quantity": "tracking_error", "joint": "slide"}, "joint 'slide' has no drive with a reference, which this"),
        ({"quantity": "torque", "joint": "slide", "over": "time_in_saturation"}, "no drive with a limit, which this"),
        ({"quantity": "position", "joint": "slide", "over": "settling_time", "step_to": 1, "band": 2}, "band"),
    ],
)
def test_errors(given, message):
    with pytest.raises(StudyError, match=r"measures\[0\].*" + message):
        rb.Study(model=slide(), samples=2, simulate={"duration": 1.0}, measures=[{"name": "x", **given}])


def test_time_in_saturation_is_refused_for_a_joint_with_an_actuator():
    """Its torque differs from the command, which is at the limit."""
    drives = [rb.PID("slide", 0.3, kp=5.0, limit=1.0), rb.Actuator("slide", stall_torque=0.5)]
    measure = {"name": "x", "quantity": "torque", "joint": "slide", "over": "time_in_saturation"}
    with pytest.raises(StudyError, match="joint 'slide' has an Actuator"):
        rb.Study(model=slide(), samples=2, simulate={"duration": 1.0}, drives=drives, measures=[measure])


@pytest.mark.parametrize(
    ("added", "keys", "message"),
    [
        ([rb.PID("slide", 0.1, kp=1.0)], {}, "joint 'slide' has 2 drives with a limit, so this measure is ambiguous"),
        ([rb.PrescribedForce("slide", 0.1)], {}, "joint 'slide' has 2 drives with a limit"),
        ([rb.UserForces(lambda t, q, qd, parameters, out: None)], {}, "UserForces may act on joint 'slide'"),
        ([rb.Sampled(lambda t, q, qd, parameters: q)], {}, "UserForces may act on joint 'slide'"),
        ([], {"simulate": {"duration": 1.0, "tau": 0.1}}, "joint 'slide' has a constant joint force"),
        ([], {"vary": {"slide.tau": stats.norm(0.0, 1.0)}}, "has a constant joint force"),
    ],
)
def test_time_in_saturation_is_refused_for_a_joint_with_other_forces(added, keys, message):
    """The torque is the sum of all forces, so it is not at the limit of one drive."""
    drives = [rb.PID("slide", 0.3, kp=5.0, limit=1.0), *added]
    measure = {"name": "x", "quantity": "torque", "joint": "slide", "over": "time_in_saturation"}
    given = {"model": slide(), "samples": 2, "simulate": {"duration": 1.0}, "drives": drives, "measures": [measure]}
    with pytest.raises(StudyError, match=message):
        rb.Study(**(given | keys))


def test_tracking_error_needs_one_reference():
    first, second = rb.PID("slide", 0.3, kp=5.0), rb.PID("slide", 0.1, kp=1.0)
    measure = {"name": "x", "quantity": "tracking_error", "joint": "slide"}
    given = {"model": slide(), "samples": 2, "simulate": {"duration": 1.0}, "measures": [measure]}
    with pytest.raises(StudyError, match="joint 'slide' has 2 drives with a reference, so this measure is ambiguous"):
        rb.Study(**given, drives=[first, second])
    rb.Study(**given, drives=[first, rb.PrescribedForce("slide", 0.1)])


def test_tracking_error_is_refused_for_targets_that_are_not_stored():
    targets = rb.Sampled(rb.UserForces(lambda t, q, qd, parameters: q), period=0.1, outputs="position")
    drives = [targets, rb.PID("slide", "outer", kp=5.0)]
    measure = {"name": "x", "quantity": "tracking_error", "joint": "slide"}
    with pytest.raises(StudyError, match="the PID of joint 'slide' follows the 'outer' of a user function"):
        rb.Study(model=slide(), samples=2, simulate={"duration": 1.0}, drives=drives, measures=[measure])


FILE = """
samples = 2
[model.serial_chain]
n = 1
[simulate]
duration = 0.02
method = "rk4"
step = 0.01
save_at = 3
[[measures]]
name = "height"
quantity = "function"
function = "measures_of_this_study:height"
"""
CODE = """
def height(model, motion):
    return model.body_poses(motion.q).translation[..., 0, 1]
"""


@pytest.fixture
def study_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "study.toml").write_text(FILE)
    (tmp_path / "measures_of_this_study.py").write_text(CODE)
    yield tmp_path / "study.toml"
    sys.modules.pop("measures_of_this_study", None)


def test_modules_next_to_the_study_file_are_found_and_printed(study_file, capsys):
    code = study_file.with_name("measures_of_this_study.py")
    study = rb.Study.read(study_file)
    assert study.modules == {"measures_of_this_study": str(code)}
    assert (study.run()["height"] == 0.0).all()
    assert main(["study", "sample", str(study_file), "1"]) == 0
    assert f"the study imports module 'measures_of_this_study' from {code}" in " ".join(
        capsys.readouterr().err.split("\n")
    )


def test_samples_without_a_finite_measure_are_counted(study_file, capsys):
    study_file.with_name("measures_of_this_study.py").write_text(CODE.replace("[..., 0, 1]", "[..., 0, 1] / 0.0"))
    assert main(["study", "run", str(study_file), "--out", str(study_file.with_name("out"))]) == 0
    samples = rb.Study.read(study_file).description.samples
    assert f"height: without {samples} samples, in which it is not a finite number" in capsys.readouterr().out


def test_code_is_refused(study_file, capsys):
    message = r"measures\[0\].function is 'measures_of_this_study:height', but importing code is not allowed"
    with pytest.raises(StudyError, match=message):
        rb.Study.read(study_file, code=False)
    assert main(["study", "sample", str(study_file), "1", "--no-code"]) == 2
    assert "importing code is not allowed (--no-code" in " ".join(capsys.readouterr().err.split())
    assert main(["warm", str(study_file), "--no-code"]) == 2
    assert "importing code is not allowed (--no-code" in " ".join(capsys.readouterr().err.split())
    assert "measures_of_this_study" not in sys.modules


def test_a_module_with_the_name_of_another_one_is_refused(study_file):
    study_file.with_name("json.py").write_text(CODE)
    study_file.write_text(FILE.replace("measures_of_this_study:height", "json:loads"))
    with pytest.raises(
        StudyError, match=r"there are two modules 'json': .*json.py, next to the study file, and .*Rename"
    ):
        rb.Study.read(study_file)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"quantity": "speed", "frame": "slide", "axis": "z"}, "axis is 'z', but the quantity 'speed' does not use it"),
        ({"quantity": "speed", "frame": "slide", "point": (1, 0, 0)}, "point is"),
        ({"quantity": "energy", "dof": 1}, "dof is 1"),
        ({"quantity": "speed", "frame": "slide", "band": 0.5}, "band is 0.5, but over = 'final' does not use it"),
    ],
)
def test_keys_that_a_measure_does_not_use_are_refused(keys, message):
    with pytest.raises(ValueError, match=message):
        Measure(name="x", **keys)


def test_a_joint_with_several_degrees_of_freedom_needs_dof():
    """The first one would be a number of another axis without a word."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("disk", joint=rb.Planar(), inertia=rb.Inertia.box((1, 1, 0.1), mass=1.0))
    model, simulate = builder.build(), rb.Simulation(0.1, method="rk4", step=0.05, qd=(1.0, 2.0, 3.0))
    message = r"Measure 'v': joint 'disk' has 3 degrees of freedom, but dof is not given; .* integer from 0 to 2"
    with pytest.raises(StudyError, match=rf"measures\[0\]: {message}"):
        rb.Study(model, samples=1, simulate=simulate, measures=[Measure("v", "velocity", joint="disk")])
    with pytest.raises(rb.ArgumentError, match=message):
        Measure("v", "velocity", joint="disk").values(model, model.simulate(duration=0.1, method="rk4", step=0.05))
    measures = [Measure(f"v{i}", "velocity", joint="disk", dof=i) for i in range(3)]
    measures.append(Measure("load", "reaction_force", joint="disk"))
    results = rb.Study(model, samples=1, simulate=simulate, measures=measures).run()
    np.testing.assert_allclose([results[f"v{i}"].item() for i in range(3)], [1.0, 2.0, 3.0], rtol=1e-12)


def test_measures_at_events_are_those_of_the_closed_form():
    """A mass falls from h: it passes z after sqrt(2 (h - z) / g) with the speed sqrt(2 g (h - z))."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    builder.add_body("mass", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=2.0))
    events = [rb.Event("mass", value=0.5), rb.Event("mass", value=0.0, stop=True, name="ground")]
    measures = [
        rb.Measure("landing", "event_time", event="ground", unit="ms"),
        rb.Measure("half way", "event_time", event=0),
        rb.Measure("speed", "velocity", joint="mass", over="at_event", event=0),
        rb.Measure("height", "coordinate", frame="mass", axis="z", over="at_event", event=1),
        rb.Measure("energy", "kinetic_energy", over="at_event", event="ground"),
        rb.Measure("drift", "energy_drift", over="at_event", event="ground"),
    ]
    heights = np.array([[0.75], [1.0], [0.25], [-0.5]])  # the third starts below the first event, the last below both
    study = rb.Study(
        builder.build(),
        samples=4,
        design=heights,
        vary={"mass.q": rb.Uniform(-1, 1)},
        simulate=rb.Simulation(1.0, method="rk4", step=0.1, save_at=2),
        events=events,
        measures=measures,
    )
    results, h = study.run(), heights[:, 0]
    with np.errstate(invalid="ignore"):
        landing, half_way = np.sqrt(2 * h / 10), np.sqrt(2 * (h - 0.5) / 10)
    np.testing.assert_allclose(results.landing, 1e3 * landing, rtol=1e-10)
    np.testing.assert_allclose(results["half way"], half_way, rtol=1e-10)
    np.testing.assert_allclose(results.speed, -10 * half_way, rtol=1e-10)
    np.testing.assert_allclose(results.height, np.where(h > 0, 0.0, np.nan), atol=1e-10)
    np.testing.assert_allclose(results.energy, np.where(h > 0, 20 * h, np.nan), rtol=1e-10)
    np.testing.assert_allclose(results.drift, np.where(h > 0, 0.0, np.nan), atol=1e-9)
    assert json.loads(results.attrs["statistics"])["of"]["landing"]["count"] == 3


def test_a_name_of_several_events_is_refused(arm):
    twice = [rb.Event("link1", value=value, name="passes") for value in (0.1, 0.2)]
    measure = rb.Measure("m", "event_time", event="passes")
    with pytest.raises(rb.StudyError, match="'passes', which is the name of several events; expected a number"):
        rb.Study(arm, samples=1, simulate=rb.Simulation(1.0), events=twice, measures=[measure])


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ({"quantity": "event_time"}, "event is missing; the quantity 'event_time' needs it"),
        ({"quantity": "energy", "over": "at_event"}, "event is missing; over = 'at_event' needs it"),
        (
            {"quantity": "energy", "event": 0},
            "event is 0, but the quantity 'energy' with over = 'final' does not use it",
        ),
        ({"quantity": "event_time", "over": "max", "event": 0}, "has one number for each sample"),
        ({"quantity": "power", "over": "at_event", "event": 0}, "does not determine the quantity 'power'"),
        ({"quantity": "event_time", "event": 1}, "event is 1; expected an event of the study, by number or name: .0."),
        ({"quantity": "event_time", "event": "ground"}, "event is 'ground'; expected an event of the study"),
    ],
)
def test_measures_at_events_that_do_not_exist_are_refused(arm, measure, message):
    with pytest.raises(rb.StudyError, match=message):
        rb.Study(
            arm,
            samples=1,
            simulate=rb.Simulation(1.0),
            events=[rb.Event("link1", value=0.5)],
            measures=[rb.Measure("m", **measure)],
        )


@pytest.mark.parametrize("quantity", ["position", "velocity", "torque", "power", "reaction_force", "reaction_moment"])
def test_a_measure_of_a_motion_names_the_joints_if_its_joint_does_not_exist(arm, quantity):
    motion = arm.simulate(arm.neutral(), duration=0.1, save_at=2)
    with pytest.raises(rb.UnknownNameError, match="Measure 'm': the model has no joint 'lnk1'; its joints are"):
        rb.Measure("m", quantity, joint="lnk1").values(arm, motion)
