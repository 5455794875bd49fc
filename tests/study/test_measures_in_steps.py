"""Measures do not depend on the saved times: closed forms of motions, of which few times are saved."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ellipj, ellipk

import rbchain as rb
from rbchain.errors import StudyError
from rbchain.simulate.dense_output import lagrange, lobatto
from rbchain.study import Measure
from rbchain.study.describe import in_steps
from rbchain.study.plan import plan
from rbchain.study.show.report import write_report

from ..closed_chains import closed_chain, closed_state
from ..mechanisms import slide

MASS, ARM, MOMENT, GRAVITY = 1.0, 0.1, 1e-4, 9.81
INERTIA = MASS * ARM**2 + MOMENT
SWING = {
    "speed": {"quantity": "velocity", "joint": "bob", "over": "peak"},
    "swing": {"quantity": "position", "joint": "bob", "over": "peak_to_peak"},
    "bearing": {"quantity": "reaction_force", "joint": "bob", "over": "max"},
    "at rest": {"quantity": "speed", "frame": "tip", "over": "min"},
    "drift": {"quantity": "energy_drift", "over": "peak"},
    "way": {"quantity": "velocity", "joint": "bob", "over": "integral_of_magnitude"},
    "path": {"quantity": "speed", "frame": "tip", "over": "integral"},
    "forward": {"quantity": "velocity", "joint": "bob", "over": "time_above", "threshold": 0.0},
    "height": {"quantity": "coordinate", "frame": "tip", "axis": "z", "over": "mean"},
}


def pendulum():
    """A pendulum about y with a fixed frame at its center of mass."""
    builder = rb.ModelBuilder(gravity=(0, 0, -GRAVITY))
    builder.add_body(
        "bob", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(MASS, cg=(0, 0, -ARM), inertia=(MOMENT,) * 3)
    )
    builder.add_body("tip", parent="bob", joint=rb.Fixed(), placement=rb.Pose(translation=(0, 0, -ARM)))
    return builder.build()


def exact_swing(amplitude, duration):
    """Return the measures SWING of a pendulum that starts from rest, by elliptic functions."""
    k, omega = math.sin(amplitude / 2), math.sqrt(MASS * GRAVITY * ARM / INERTIA)

    def angle(t):
        sn, *_ = ellipj(ellipk(k * k) - omega * np.asarray(t), k * k)
        return 2 * np.arcsin(k * sn)

    half = 2 * ellipk(k * k) / omega
    halves = int(duration // half)
    rest = duration - halves * half
    speed = math.sqrt(2 * MASS * GRAVITY * ARM * (1 - math.cos(amplitude)) / INERTIA)
    way = 2 * amplitude * halves + abs(angle(duration) - angle(halves * half))
    mean_height = quad(lambda t: -ARM * math.cos(angle(t)), 0, duration, limit=200, epsabs=1e-12)[0] / duration
    return {
        "speed": speed,
        "swing": 2 * amplitude,
        "bearing": MASS * GRAVITY + MASS * ARM * speed**2,  # at the bottom
        "at rest": 0.0,
        "drift": 0.0,
        "way": way,
        "path": ARM * way,
        "forward": halves // 2 * half + (rest if halves % 2 else 0.0),  # the first half swings back
        "height": mean_height,
    }


# The steps of rk4 have the error (omega h)^4 / 120 per radian of the motion, and those of the adaptive methods that of
# their tolerance. 1e-6 is required; the polynomials of radau within its long steps have errors of order h^6.
SETTINGS = {
    "rk45": {"rtol": 1e-10, "atol": 1e-12},
    "dop853": {"rtol": 1e-10, "atol": 1e-12},
    "rosenbrock": {"rtol": 1e-9, "atol": 1e-11},
    "radau": {"rtol": 1e-10, "atol": 1e-12},
    "rk4": {"step": 5e-3},
}


OTHERS = [method for method in SETTINGS if method != "rk45"]
SLOW, PLAIN = pytest.mark.slow, pytest.mark.plain_python
EACH_WAY = pytest.mark.usefixtures("plain_or_slow")


@pytest.mark.slow_cases("0.8")
@pytest.mark.parametrize(
    ("method", "duration", "times"),
    [
        *[("rk45", 3.0, times) for times in (2, 21)],
        *[pytest.param(method, 0.8, 21, marks=PLAIN) for method in OTHERS],
        *[pytest.param(method, 3.0, times, marks=SLOW) for method in OTHERS for times in (2, 21)],
    ],
)
def test_measures_of_a_pendulum_are_those_of_elliptic_functions(method, duration, times):
    model, amplitudes = pendulum(), np.array([1.0, 0.5, -2.0])
    start = np.stack([amplitudes], -1)
    settings = {"method": method, "save_at": times, "dense_output": 2000, **SETTINGS[method]}
    motion = model.simulate(start, 0 * start, duration, **settings)
    for name, given in SWING.items():
        found = Measure(name=name, **given).values(model, motion)
        for k, amplitude in enumerate(amplitudes[:2]):
            expected = exact_swing(amplitude, duration)[name]
            assert found[k] == pytest.approx(expected, rel=1e-6, abs=1e-6), (name, k)
    assert Measure(name="swing", **SWING["swing"]).values(model, motion)[2] == pytest.approx(4.0, rel=1e-6)


def test_a_study_has_the_same_measures_for_all_numbers_of_saved_times():
    """Steps of rk45 do not end at saved times, so that the measures agree to the last bit."""
    found = []
    for times in (2, 21, 301):
        study = rb.Study(
            model=pendulum(),
            samples=9,
            simulate={"duration": 2.0, "save_at": times, "rtol": 1e-10, "atol": 1e-12},
            vary={"*.q": rb.Uniform(0.2, 1.5)},
            measures=[{"name": name, **given} for name, given in SWING.items()],
            outputs={"extremes": True},
        )
        found.append(study.run())
    for name in (*SWING, "q_min", "q_max", "qd_min", "qd_max"):
        assert found[0][name].values.tobytes() == found[1][name].values.tobytes() == found[2][name].values.tobytes()
    amplitudes = found[0].parameters.values[:, 0]
    speeds = [exact_swing(amplitude, 2.0)["speed"] for amplitude in amplitudes]
    np.testing.assert_allclose(found[0]["speed"], speeds, rtol=1e-6)
    np.testing.assert_allclose(found[0].q_max[:, 0], amplitudes, rtol=1e-9)
    np.testing.assert_allclose(found[0].q_min[:, 0], -amplitudes, rtol=1e-6)


ZETA, OMEGA, DURATION, DROP = 0.2, 3.0, 6.0, 0.7
DAMPED = OMEGA * math.sqrt(1 - ZETA**2)
RESPONSE = {
    "overshoot": {"over": "overshoot", "step_to": 0.0},
    "settled": {"over": "settling_time", "step_to": 0.0, "band": 0.05},
    "rise": {"over": "rise_time", "step_to": 0.0},
    "above": {"over": "time_above", "threshold": 0.1},
    "mean": {"over": "mean"},
    "rms": {"over": "rms"},
    "integral": {"over": "integral"},
    "magnitude": {"over": "integral_of_magnitude"},
    "square": {"over": "integral_of_square"},
    "min": {"over": "min"},
}


def decay(t):
    """A damped oscillator that is released at DROP."""
    return DROP * np.exp(-ZETA * OMEGA * t) * (np.cos(DAMPED * t) + ZETA * OMEGA / DAMPED * np.sin(DAMPED * t))


def crossings(level):
    """Return the times at which the oscillator passes a level, by a search on a fine grid."""
    t = np.linspace(0, DURATION, 4001)
    x = decay(t) - level
    return [brentq(lambda s: decay(s) - level, *t[i : i + 2], xtol=1e-14) for i in np.flatnonzero(x[1:] * x[:-1] < 0)]


def exact_response():
    """Return the measures RESPONSE of the oscillator."""
    peak = math.exp(-math.pi * ZETA / math.sqrt(1 - ZETA**2))
    edges = [0.0, *crossings(0.0), DURATION]
    parts = [quad(decay, a, b, epsabs=1e-14)[0] for a, b in pairwise(edges)]
    square = quad(lambda t: decay(t) ** 2, 0, DURATION, epsabs=1e-14)[0]
    above = np.diff([0.0, *crossings(0.1)])[::2].sum()
    return {
        "overshoot": peak,
        "settled": max(crossings(0.05 * DROP) + crossings(-0.05 * DROP)),
        "rise": crossings(0.1 * DROP)[0] - crossings(0.9 * DROP)[0],
        "above": above,
        "mean": sum(parts) / DURATION,
        "rms": math.sqrt(square / DURATION),
        "integral": sum(parts),
        "magnitude": sum(map(abs, parts)),
        "square": square,
        "min": -DROP * peak,
    }


def test_responses_of_a_damped_oscillator():
    mass = 2.0
    model = slide(mass, stiffness=mass * OMEGA**2, damping=2 * ZETA * OMEGA * mass)
    measures = [{"name": name, "quantity": "position", "joint": "slide", **given} for name, given in RESPONSE.items()]
    simulate = {"duration": DURATION, "save_at": 2, "q": [DROP], "rtol": 1e-10, "atol": 1e-12}
    results = rb.Study(model=model, samples=2, simulate=simulate, measures=measures).run()
    for name, expected in exact_response().items():
        np.testing.assert_allclose(results[name], expected, rtol=1e-6, err_msg=name)


def test_responses_of_the_energy_drift_start_at_zero():
    """A force of 2 N on 1 kg at 3 m/s adds the energy 6 t + 2 t^2 J to the 4.5 J at the start: 8 J in 1 s."""
    motion = slide(1.0).simulate([[0.0]], [[3.0]], 1.0, method="rk4", step=0.05, tau=2.0, dense_output=20)

    def time(energy):
        return (-6.0 + math.sqrt(36.0 + 8.0 * energy)) / 4.0

    for over, given, expected in (
        ("rise_time", {"step_to": 4.0}, time(3.6) - time(0.4)),
        ("overshoot", {"step_to": 4.0}, 1.0),
        ("settling_time", {"step_to": 5.0, "band": 0.7}, time(1.5)),
    ):
        found = Measure("drift", "energy_drift", over=over, **given).values(motion.model, motion)
        np.testing.assert_allclose(found, expected, rtol=1e-8, err_msg=over)


def test_the_highest_of_many_similar_peaks_and_corners_between_nodes():
    """Sixty peaks fall by 3e-5 of their height each; the distance from a point that the slide passes has corners."""
    zeta, omega, speed, duration, target = 1e-5 / (2 * math.pi) * 3, 2 * math.pi, 5.0, 60.0, 0.31
    model, damped = slide(1.0, stiffness=omega**2, damping=2 * zeta * omega), omega * math.sqrt(1 - zeta**2)
    motion = model.simulate([[0.0]], [[speed]], duration, rtol=1e-9, atol=1e-12, dense_output=20_000, save_at=2)
    when = math.atan2(damped, zeta * omega) / damped
    peak = speed / damped * math.exp(-zeta * omega * when) * math.sin(damped * when)
    found = Measure(name="x", quantity="position", joint="slide", over="max").values(model, motion)
    np.testing.assert_allclose(found, peak, rtol=1e-7)
    distance = {"quantity": "distance", "frame": "slide", "point": (target, 0.0, 0.0)}
    near = Measure(name="x", over="min", **distance).values(model, motion)
    # a step of at most 0.1 s is divided to 3e-6 of its length
    np.testing.assert_allclose(near, 0.0, atol=3e-6 * 0.1 * speed)
    undamped = slide(1.0, stiffness=omega**2)
    motion = undamped.simulate([[0.0]], [[speed]], 3.0, rtol=1e-10, atol=1e-12, dense_output=20_000, save_at=2)
    away = Measure(name="x", over="integral", **distance).values(undamped, motion)
    # the integral of |a sin u - target| over a period is that of |a sin u - a sin b|
    height = speed / omega
    b = math.asin(target / height)
    of_period = 4 * height * (math.cos(b) + b * math.sin(b)) / omega
    np.testing.assert_allclose(away, 3 * of_period, rtol=1e-6)


@EACH_WAY
def test_integrals_and_means_end_at_the_event_that_stops_a_sample():
    """A free slide at v reaches 1 m at 1 / v; from there on, its state counts as constant. One does not reach it."""
    speeds = np.array([2.0, 3.0, 0.4])
    names = ("integral", "mean", "max", "time_above")
    motion = slide().simulate(
        np.zeros((3, 1)),
        speeds[:, None],
        2.0,
        dense_output=1000,
        events=[rb.Event("slide", value=1.0, stop=True)],
        save_at=2,
    )
    limits = {"time_above": {"threshold": 0.5}}
    found = {
        name: Measure(name=name, quantity="position", joint="slide", over=name, **limits.get(name, {})).values(
            slide(), motion
        )
        for name in names
    }
    ends = np.minimum(1 / speeds, 2.0)
    way = speeds * ends
    np.testing.assert_allclose(found["max"], way, rtol=1e-9)
    np.testing.assert_allclose(found["integral"], speeds * ends**2 / 2, rtol=1e-9)
    np.testing.assert_allclose(found["mean"], (speeds * ends**2 / 2 + way * (2.0 - ends)) / 2.0, rtol=1e-9)
    np.testing.assert_allclose(found["time_above"], ends - 0.5 / speeds, rtol=1e-9, atol=1e-9)


def bouncing_ball(restitution):
    """A ball above a floor at zero, and its contact with it."""
    builder = rb.ModelBuilder(gravity=(0, 0, -GRAVITY))
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(1.0))
    return builder.build(), [
        rb.SphereContact(
            "ball", point=(0, 0, 0), radius=0.0, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), restitution=restitution
        )
    ]


@pytest.mark.slow
@EACH_WAY
def test_peaks_before_and_after_an_impact():
    """A ball falls 1 m, and jumps back at 0.6 of its speed: both speeds count for all saved times."""
    (model, forces), height = bouncing_ball(0.6), np.array([[1.0], [0.5]])
    impact = np.sqrt(2 * GRAVITY * height[:, 0])
    for method, settings, tolerance in (("rk45", {"rtol": 1e-10}, 1e-6), ("moreau", {"step": 1e-3}, 1e-9)):
        motion = model.simulate(height, 0 * height, 0.6, method=method, forces=forces, dense_output=1000, **settings)
        down, up = (
            Measure(name="v", quantity="velocity", joint="ball", over=over).values(model, motion)
            for over in ("min", "max")
        )
        np.testing.assert_allclose(down, -impact, rtol=tolerance)
        np.testing.assert_allclose(up, 0.6 * impact, rtol=tolerance)


@pytest.mark.plain_python
def test_measures_of_time_stepping_are_exact_on_both_sides_of_an_impact():
    """A ball that falls from rest hits the floor at v and leaves it at 0.8 v, within a step of 10 ms."""
    model, forces = bouncing_ball(0.8)
    height, duration, limit = np.array([0.9, 0.8]), 1.0, 1.0
    motion = model.simulate(
        height[:, None],
        np.zeros((2, 1)),
        duration,
        method="moreau",
        step=1e-2,
        forces=forces,
        dense_output=200,
        save_at=2,
    )
    assert motion.impacts[0].count.tolist() == [1, 1]
    speed, time = np.sqrt(2 * GRAVITY * height), np.sqrt(2 * height / GRAVITY)
    flight = duration - time
    up = 0.8 * speed * flight - GRAVITY * flight**2 / 2
    expected = {
        ("velocity", "min"): -speed,
        ("velocity", "max"): 0.8 * speed,
        ("velocity", "integral"): up - height,
        ("velocity", "time_above"): (0.8 * speed - limit) / GRAVITY,
        ("velocity", "integral_of_square"): (speed**3 + (0.8 * speed) ** 3 - (0.8 * speed - GRAVITY * flight) ** 3)
        / (3 * GRAVITY),
        ("position", "min"): np.zeros(2),
        ("position", "integral"): height * time
        - GRAVITY * time**3 / 6
        + 0.8 * speed * flight**2 / 2
        - GRAVITY * flight**3 / 6,
    }
    for (quantity, over), exact in expected.items():
        given = {"threshold": limit} if over == "time_above" else {}
        found = Measure(name="x", quantity=quantity, joint="ball", over=over, **given).values(model, motion)
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-12, err_msg=f"{over} of {quantity}")


@pytest.mark.plain_python
def test_integrals_of_velocities_are_the_positions_with_friction_stops_and_drives():
    """Corrections of positions are at most 1e-9 rad in each of 100 steps."""
    builder = rb.ModelBuilder(gravity=(0, 0, -GRAVITY))
    for i in range(2):
        builder.add_body(
            f"link{i}",
            parent="link0" if i else None,
            joint=rb.Revolute((0, 1, 0)),
            placement=rb.Pose((0.4 * i, 0, 0)),
            inertia=rb.Inertia(1.0, cg=(0.2, 0, 0), inertia=(0.01, 0.02, 0.02)),
            limits=rb.JointLimits(-0.4, 0.4),
        )
    model = builder.build()
    forces = [rb.HardStops(name, restitution=e) for name, e in (("link0", 0.0), ("link1", 0.6))]
    forces.append(rb.DryFriction("link1", kinetic=0.3))
    start = np.array([[0.0, 0.3], [0.39, -0.2]]), np.array([[1.0, -3.0], [-2.0, 0.5]])
    motion = model.simulate(*start, 1.0, method="moreau", step=1e-2, forces=forces, dense_output=300, save_at=2)
    assert (motion.impacts[0].count + motion.impacts[1].count > 1).all()
    for i, name in enumerate(model.body_names):
        found = Measure(name="x", quantity="velocity", joint=name, over="integral").values(model, motion)
        np.testing.assert_allclose(found, motion.q[:, -1, i] - start[0][:, i], atol=1e-7, rtol=0)


@pytest.mark.plain_python
def test_events_in_a_step_with_an_impact_are_exact():
    """A ball passes 1 mm above the floor down and up again, and its velocity passes zero, in the same step."""
    model, forces = bouncing_ball(0.8)
    height, level = 0.9, 1e-3
    events = [
        rb.Event("ball", value=level, stop=False),
        rb.Event("ball", quantity="velocity", direction=1, stop=False),
    ]
    motion = model.simulate(
        [[height]], [[0.0]], 0.6, method="moreau", step=1e-2, forces=forces, events=events, dense_output=200, save_at=2
    )
    time, speed = math.sqrt(2 * height / GRAVITY), math.sqrt(2 * GRAVITY * height)
    down = math.sqrt(2 * (height - level) / GRAVITY)
    rise = (0.8 * speed - math.sqrt((0.8 * speed) ** 2 - 2 * GRAVITY * level)) / GRAVITY
    assert math.floor(down / 1e-2) == math.floor((time + rise) / 1e-2)
    assert motion.events[0].count == 2
    np.testing.assert_allclose(motion.events[0].t[0, :2], [down, time + rise], atol=1e-10, rtol=0)
    np.testing.assert_allclose(
        motion.events[0].qd[0, :2, 0], [-GRAVITY * down, 0.8 * speed - GRAVITY * rise], rtol=1e-8
    )
    assert motion.events[1].count == 1
    np.testing.assert_allclose(motion.events[1].t[0, 0], time, atol=1e-10, rtol=0)


@pytest.mark.plain_python
def test_a_step_with_an_impact_ends_at_the_event_that_stops_it():
    """The ball stops 1 mm above the floor, before or after the impact in the step: measures end there."""
    model, forces = bouncing_ball(0.8)
    height, level, speed = 0.9, 1e-3, math.sqrt(2 * GRAVITY * 0.9)
    rise = (0.8 * speed - math.sqrt((0.8 * speed) ** 2 - 2 * GRAVITY * level)) / GRAVITY
    ends = {-1: -math.sqrt(2 * GRAVITY * (height - level)), 1: 0.8 * speed - GRAVITY * rise}
    for direction, velocity in ends.items():
        stop = rb.Event("ball", value=level, direction=direction, stop=True)
        motion = model.simulate(
            [[height]],
            [[0.0]],
            0.6,
            method="moreau",
            step=1e-2,
            forces=forces,
            events=[stop],
            dense_output=200,
            save_at=2,
        )
        np.testing.assert_allclose(motion.end_qd, [[velocity]], rtol=1e-8)
        found = {
            over: Measure(name="x", quantity="velocity", joint="ball", over=over).values(model, motion)
            for over in ("max", "integral")
        }
        np.testing.assert_allclose(found["max"], max(0.0, 0.8 * speed) if direction == 1 else 0.0, atol=1e-12)
        np.testing.assert_allclose(found["integral"], level - height, rtol=1e-9)


@pytest.mark.slow
@EACH_WAY
def test_torques_that_jump_or_reach_their_limit():
    """Pulses between saved times, the hold of a digital controller, and a limit: closed forms."""
    model, start = slide(), np.zeros((2, 1))
    torque = {"quantity": "torque", "joint": "slide"}
    peak, saturated = Measure(name="x", over="max", **torque), Measure(name="x", over="time_in_saturation", **torque)
    work = Measure(name="x", over="integral", **torque)
    limited = rb.PrescribedForce("slide", rb.Signal.sines(2.0, 2 * math.pi), limit=[1.0, 5.0])
    motion = model.simulate(start, start, 1.0, drives=[limited], dense_output=2000, save_at=2)
    # |sin| exceeds 1/2 in two thirds of the time
    np.testing.assert_allclose(saturated.values(model, motion, [limited]), [2 / 3, 0.0], rtol=1e-6)
    np.testing.assert_allclose(peak.values(model, motion, [limited]), [1.0, 2.0], rtol=1e-9)
    np.testing.assert_allclose(work.values(model, motion, [limited]), 0.0, atol=1e-6)
    # the output of 3 N at the start is held for 0.1 s; the second one is smaller by 3 v^2 / 2
    digital = rb.Sampled(rb.PID("slide", 1.0, kp=3.0), period=0.1)
    motion = model.simulate(start, start, 0.25, drives=[digital], dense_output=2000, save_at=2)
    first = 3.0
    second = 3.0 * (1.0 - 0.5 * first / 2.0 * 0.1**2)
    speed, way = first / 2.0 * 0.1 + second / 2.0 * 0.1, 0.5 * first / 2.0 * 0.1**2 + first / 2.0 * 0.1 * 0.1
    third = 3.0 * (1.0 - way - 0.5 * second / 2.0 * 0.1**2)
    np.testing.assert_allclose(peak.values(model, motion, [digital]), first, rtol=1e-12)
    np.testing.assert_allclose(
        work.values(model, motion, [digital]), 0.1 * first + 0.1 * second + 0.05 * third, rtol=1e-6
    )
    fastest = Measure(name="x", quantity="velocity", joint="slide", over="max").values(model, motion)
    np.testing.assert_allclose(fastest, speed + third / 2.0 * 0.05, rtol=1e-6)


@pytest.mark.slow
@EACH_WAY
def test_closed_loops_and_float32():
    """Largest reactions and speeds of a loop are those of very many saved times."""
    chain = closed_chain("four-bar")
    model, (q, qd, _) = chain.model, closed_state(chain, batch=(2,))
    measures = [
        Measure(name="reaction", quantity="reaction_force", joint="crank", over="max"),
        Measure(name="speed", quantity="speed", frame="coupler", over="max"),
    ]
    before = model.simulate(q, qd, 0.45, save_at=2)  # the reactions and speeds are largest after 0.49 to 0.51 s
    few = model.simulate(before.end_q, before.end_qd, 0.1, rtol=1e-9, dense_output=400, save_at=2)
    many = model.simulate(before.end_q, before.end_qd, 0.1, rtol=1e-9, save_at=401)
    for measure in measures:
        found, on_grid = measure.values(model, few), measure.values(model, many)
        assert (found > on_grid * (1 - 1e-9)).all()
        np.testing.assert_allclose(found, on_grid, rtol=1e-5)
    swing = pendulum()
    start = np.array([[1.0], [0.5]], np.float32)
    motion = swing.simulate(start, 0 * start, 0.8, dense_output=2000, save_at=2)
    assert motion.q.dtype == np.float32
    speed = Measure(name="speed", **SWING["speed"]).values(swing, motion)
    # the default tolerance of float32 is 1e-5, over about one swing
    np.testing.assert_allclose(speed, [exact_swing(a, 0.8)["speed"] for a in (1.0, 0.5)], rtol=1e-4)


@pytest.fixture
def scattered():
    """A study of samples with very different numbers of steps, of which one fails and some are stopped."""

    def build(**keys):
        measures = [{"name": name, **given} for name, given in SWING.items()]
        measures += [
            {"name": "final", "quantity": "position", "joint": "bob"},
            {"name": "settled", "quantity": "position", "joint": "bob", "over": "settling_time", "step_to": 0.0},
        ]
        given = {
            "model": pendulum(),
            "samples": 70,
            "simulate": {"duration": 1.0, "save_at": 3, "max_steps": 300},
            "vary": {"*.qd": rb.Normal(std=40.0)},
            "events": [rb.Event("bob", value=3.0, stop=True)],
            "measures": measures,
        }
        return rb.Study(**(given | keys))

    return build


def test_no_bit_of_a_measure_depends_on_the_parts_of_a_batch(scattered, monkeypatch):
    study = scattered()
    expected = study.run()
    status = expected.status.values
    assert {rb.Status.DONE, rb.Status.STOPPED} <= set(status)
    for least, memory in ((3, 1), (200, 1 << 27)):
        monkeypatch.setattr(plan, "LEAST_AT_ONCE", least)
        monkeypatch.setattr(plan, "STEP_MEMORY", memory)
        monkeypatch.setattr(in_steps, "STATES_AT_ONCE", 1 << (9 if memory == 1 else 20))
        found = scattered().run(chunk=9 if memory == 1 else 70)
        for name in expected:
            assert found[name].values.tobytes() == expected[name].values.tobytes(), name


def test_the_motion_of_a_sample_has_the_stored_measures(scattered):
    study = scattered()
    results = study.run()
    for k in (0, 5, 13):
        _, model, motion = study.sample(k)
        for measure in study.plan.measures:
            stored = results[measure.name].values[k]
            if not np.isnan(stored):
                # a single model rounds differently
                assert measure.values(model, motion) == pytest.approx(stored, rel=1e-9, abs=1e-12), measure.name


@EACH_WAY
def test_an_empty_batch_and_too_few_steps():
    model, empty = pendulum(), np.zeros((0, 1))
    measures = [Measure(name=name, **given) for name, given in SWING.items()]
    motion = model.simulate(empty, empty, 1.0, dense_output=100, save_at=2)
    assert all(measure.values(model, motion).shape == (0,) for measure in measures)
    start = np.ones((2, 1))
    motion = model.simulate(start, start, 1.0, dense_output=4, save_at=2)
    with pytest.raises(StudyError, match=f"up to {motion.steps.max()} steps.*expected dense_output="):
        measures[0].values(model, motion)
    single = model.simulate([1.0], [0.0], 0.8, rtol=1e-10, atol=1e-12, dense_output=2000, save_at=2)
    assert measures[0].values(model, single) == pytest.approx(exact_swing(1.0, 0.8)["speed"], rel=1e-6)


def highest(model, motion):
    """A user's measure, which sees the saved times only."""
    return motion.q[..., 0].max(-1)


def test_results_and_report_tell_which_measures_depend_on_the_saved_times(tmp_path):
    measures = [
        {"name": "own", "quantity": "function", "function": highest},
        {"name": "speed", **SWING["speed"]},
    ]
    study = rb.Study(model=pendulum(), samples=12, simulate={"duration": 0.1}, measures=measures)
    results = study.run(tmp_path)
    assert results.own.attrs["evaluated"] == "at the saved times"
    assert "evaluated" not in results.speed.attrs
    assert write_report(tmp_path).read_text().count("at the saved times") == 1


def test_nodes_and_polynomials():
    """Lobatto's nodes integrate polynomials of degree 2 n - 3; the Lagrange polynomials reproduce those of n - 1."""
    for degree in (4, 5):
        nodes = lobatto(degree)
        t = np.linspace(0, 1, 7)
        np.testing.assert_allclose(lagrange(nodes, t) @ nodes**degree, t**degree, atol=1e-14)
        weights = np.linalg.solve(nodes[None] ** np.arange(degree + 1)[:, None], 1 / np.arange(1, degree + 2))
        np.testing.assert_allclose(weights @ nodes ** (2 * degree - 1), 1 / (2 * degree), rtol=1e-13)


@pytest.mark.plain_python
@pytest.mark.parametrize("place", [0.7, 1e3])
def test_a_body_that_rests_at_a_level_is_not_above_it(place):
    """It starts at the reference of its controller. With "moreau", a constant force then holds it at a stop."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    limits = rb.JointLimits(lower=-9, upper=place)
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0), limits=limits)
    above = {"name": "above", "quantity": "position", "over": "time_above", "threshold": place, "joint": "slide"}
    settled = {"name": "settled", "quantity": "position", "over": "settling_time", "joint": "slide", "step_to": place}
    held = [rb.PID("slide", place, kp=36.0, kd=2.4)]
    pushed = [rb.PrescribedForce("slide", 1.0)]
    for method, drives, forces in (("rk45", held, []), ("moreau", pushed, [rb.HardStops("slide")])):
        steps = {} if method == "rk45" else {"step": 0.01}
        results = rb.Study(
            model=builder.build(),
            samples=2,
            vary={"*.mass": rb.Dispersion(rb.Uniform(1, 1.1), how="multiply")},
            simulate={"duration": 0.5, "q": [place], "method": method, **steps},
            drives=drives,
            forces=forces,
            measures=[above, settled] if method == "rk45" else [above],
        ).run()
        assert (results.above.values == 0.0).all()
        if method == "rk45":
            assert (results.settled.values == 0.0).all()


@PLAIN
@pytest.mark.parametrize("depth", [0.01, 2.5e-3, 1e-5])
@pytest.mark.parametrize("method", ["rk45", "dop853", "rosenbrock", "radau"])
def test_short_excursions_within_a_long_step_are_not_missed(method, depth):
    """A slide with x = 1.4 t - t^2 is above 0.49 - d for 2 sqrt(d) around 0.7 s. Most methods take one or two steps."""
    slide = tossed(rb.Prismatic((0, 0, 1)), np.zeros(3))
    motion = slide.simulate([[0.0]], [[1.4]], 1.0, tau=[-2.0], method=method, dense_output=500, save_at=2)
    common = {"name": "x", "quantity": "position", "joint": "body"}
    above = rb.study.Measure(over="time_above", threshold=0.49 - depth, **common).values(slide, motion)
    np.testing.assert_allclose(above, 2.0 * np.sqrt(depth), rtol=0, atol=1e-7)
    settled = rb.study.Measure(over="settling_time", step_to=0.4, band=(0.09 - depth) / 0.4, **common)
    np.testing.assert_allclose(settled.values(slide, motion), 0.7 + np.sqrt(depth), rtol=0, atol=1e-7)
    below = rb.study.Measure(over="time_above", threshold=depth, name="v", quantity="speed", frame="body")
    np.testing.assert_allclose(below.values(slide, motion), 1.0 - depth, rtol=0, atol=1e-7)


@PLAIN
@pytest.mark.parametrize(("method", "step"), [("rk45", None), ("rosenbrock", None), ("rk4", 1.0), ("moreau", 1.0)])
def test_a_short_dip_of_a_distance_is_not_missed(method, step):
    """A body that passes a point at 0.05 m with 2 m/s is nearer than r to it for sqrt(r^2 - 0.05^2) s."""
    disk = tossed(rb.Planar(), np.zeros(3))
    given = {} if step is None else {"step": step}
    motion = disk.simulate(
        [[-1.0, 0.05, 0.0]], [[2.0, 0.0, 0.0]], 1.0, method=method, dense_output=300, save_at=2, **given
    )
    far = rb.study.Measure(
        name="far", quantity="distance", frame="body", point=(0.13, 0, 0), over="time_above", threshold=0.1
    )
    np.testing.assert_allclose(far.values(disk, motion), 1.0 - np.sqrt(0.1**2 - 0.05**2), rtol=0, atol=1e-6)


def tossed(joint, gravity):
    builder = rb.ModelBuilder(gravity=gravity)
    builder.add_body("body", joint=joint, inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    return builder.build()
