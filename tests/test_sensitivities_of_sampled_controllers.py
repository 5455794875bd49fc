"""Sensitivities under sampled controllers: complex steps of other equations, differences, identities, refused input."""

from dataclasses import replace

import numpy as np
import pytest

import rbchain as rb
from rbchain.core.motion.events import TIME_TOLERANCE

from .closed_chains import closed_state, four_bar
from .mechanisms import slide
from .other_process import computed
from .test_one_source import check_alike
from .test_sensitivities import (
    KNOWN,
    LINKS,
    START,
    STEP,
    TIGHT,
    equations_of_two_links,
    extrapolated,
    rate_of_two_links,
    two_links,
)
from .test_sensitivities_of_closed_chains import SLIDES, rate_of_trammel, slides_of, trammel

plain = pytest.mark.plain_python
TIMES = np.array([0.0, 0.03, 0.08])  # of the tables of the references, s
REFERENCES = np.array([[0.3, 0.5, 0.1], [-0.2, 0.1, 0.2]])
GAINS = {"kp": (6.0, 4.0), "ki": (3.0, 2.0), "kd": (0.7, 0.5)}


def linear_table(t, values):
    """The value and the slope of a linear table, also for complex values; at a break, the slope after it."""
    piece = min(int(np.searchsorted(TIMES, t, side="right")) - 1, TIMES.size - 2)
    slope = (values[piece + 1] - values[piece]) / (TIMES[piece + 1] - TIMES[piece])
    return values[piece] + slope * (t - TIMES[piece]), slope


def sampled_motion(flow, state, duration, clock, gains, references, coordinates, added=None):
    """The end of a motion under two sampled PID controllers, by the equations of `Sampled`; also complex.

    `flow` is a function of a state, the outputs and a length of time, `coordinates` of a state: positions and
    velocities. `added` is a function of a state: forces that the controllers add.
    """
    period, phase, delay, latency = (clock[name] for name in ("period", "phase", "delay", "latency"))
    first = int(np.ceil((latency - phase) / period - 1e-9))
    instants = [phase + i * period for i in range(max(first, 0), 1 + int((duration + latency - phase) / period))]
    stops = sorted([(t - latency, 1, t) for t in instants] + [(t + delay, 2, t) for t in instants])
    held, integral, waiting, now = np.zeros(2, complex), np.zeros(2, complex), {}, 0.0
    for stop, kind, t in stops:
        if stop > duration + 1e-12:
            break
        if stop > now + 1e-12:
            state, now = flow(state, held, stop - now), stop
        if kind == 2:
            held = waiting.pop(t)
            continue
        q, v = coordinates(state)
        r, slope = np.array([linear_table(t, values) for values in references]).T
        integral = integral + period * (r - q)
        force = gains["kp"] * (r - q) + gains["ki"] * integral + gains["kd"] * (slope - v)
        waiting[t] = force if added is None else force + added(state)
    return flow(state, held, duration - now)


def drives_of(names, clock, gains=GAINS, references=REFERENCES, **more):
    return [
        rb.Sampled(
            rb.PID(
                name,
                rb.Signal.table(TIMES, references[i], interpolation="linear"),
                **{gain: values[i] for gain, values in gains.items()},
                **more,
            ),
            **clock,
        )
        for i, name in enumerate(names)
    ]


CLOCKS = {
    "at instants": {"period": 0.02, "phase": 0.0, "delay": 0.0, "latency": 0.0},
    "late": {"period": 0.02, "phase": 0.005, "delay": 0.013, "latency": 0.006},
    "later than a period": {"period": 0.01, "phase": 0.0, "delay": 0.017, "latency": 0.012},
}


def changed(arrays, field, i):
    """Copy a dict of arrays, with a complex step of one entry."""
    found = {key: np.array(values, complex) for key, values in arrays.items()}
    found[field][i] += 1j * STEP
    return found


@pytest.mark.slow_cases("at instants", "later than a period")
@plain
@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
def test_two_links_agree_with_complex_steps_of_their_equations(clock):
    names = ["q", "qd", "mass", "damping", "tau", "kp", "ki", "kd", "signal"]
    drives = drives_of(["link1", "link2"], clock)
    motion = two_links().simulate(START[:2], START[2:], 0.07, drives=drives, derivatives=names, save_at=2, **TIGHT)
    found = {name: motion.derivatives[name][-1] for name in names}

    def end(start, x=LINKS, gains=GAINS, references=REFERENCES, tau=(0.0, 0.0)):
        def flow(state, forces, duration):
            return extrapolated(lambda s: rate_of_two_links(s, x, lambda _: tau + forces), state, duration, 1)

        gains = {name: np.asarray(values) for name, values in gains.items()}
        return sampled_motion(flow, start, 0.07, clock, gains, references, lambda s: (s[:2], s[2:]))

    wanted = {name: [] for name in names}
    for i in range(2):
        for name in ("mass", "damping"):
            wanted[name].append(end(START.astype(complex), x=changed(LINKS, name, i)))
        for name in GAINS:
            wanted[name].append(end(START.astype(complex), gains=changed(GAINS, name, i)))
        wanted["tau"].append(end(START.astype(complex), tau=1j * STEP * np.eye(2)[i]))
        for j in range(3):
            references = REFERENCES.astype(complex)
            references[i, j] += 1j * STEP
            wanted["signal"].append(end(START.astype(complex), references=references))
    for i in range(4):
        wanted["q" if i < 2 else "qd"].append(end(START + 1j * STEP * np.eye(4)[i]))
    for name in names:
        ends = np.array(wanted[name])
        np.testing.assert_allclose(np.r_[motion.q[-1], motion.qd[-1]], ends[0].real, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found[name], ends.imag.T / STEP, rtol=0, atol=1e-8, err_msg=name)
        assert np.abs(found[name]).max() > 1e-5, name


@plain
def test_gravity_compensation_agrees_with_complex_steps_of_its_equations():
    """The controllers know other masses than those of the arm."""
    clock, names = CLOCKS["late"], ["q", "qd", "mass", "kp"]
    known = two_links().replace(mass=KNOWN["mass"])
    drives = drives_of(["link1", "link2"], clock, gravity_compensation=True, controller_model=known)
    motion = two_links().simulate(START[:2], START[2:], 0.05, drives=drives, derivatives=names, save_at=2, **TIGHT)

    def end(start, x=LINKS, gains=GAINS):
        def flow(state, forces, duration):
            return extrapolated(lambda s: rate_of_two_links(s, x, lambda _: forces), state, duration, 1)

        def gravity(state):
            return equations_of_two_links(np.concatenate([state[:2], 0 * state[2:]]), KNOWN)[1]

        gains = {name: np.asarray(values) for name, values in gains.items()}
        return sampled_motion(flow, start, 0.05, clock, gains, REFERENCES, lambda s: (s[:2], s[2:]), gravity)

    for i in range(2):
        at = START.astype(complex)
        wanted = {"mass": end(at, x=changed(LINKS, "mass", i)), "kp": end(at, gains=changed(GAINS, "kp", i))}
        wanted |= {"q": end(START + 1j * STEP * np.eye(4)[i]), "qd": end(START + 1j * STEP * np.eye(4)[2 + i])}
        for name in names:
            np.testing.assert_allclose(motion.derivatives[name][-1][:, i], wanted[name].imag / STEP, rtol=0, atol=1e-8)


@plain
def test_forces_after_lags_agree_with_complex_steps_of_their_equations():
    """The state of the other equations includes the forces f of the actuators: T df/dt = tau + u - f."""
    clock, names, lags = CLOCKS["late"], ["q", "qd", "mass", "tau", "kp", "ki"], np.array([0.02, 0.005])
    drives = drives_of(["link1", "link2"], clock)
    drives += [rb.Actuator(f"link{i + 1}", time_constant=lags[i]) for i in range(2)]
    settings = {"tau": [0.5, -0.2], "drives": drives, "derivatives": names, "save_at": 2}
    motion = two_links().simulate(START[:2], START[2:], 0.06, **settings, **TIGHT)

    def end(start, x=LINKS, gains=GAINS, tau=(0.5, -0.2)):
        def flow(state, forces, duration):
            def rate(s):
                return np.concatenate([rate_of_two_links(s[:4], x, lambda _: s[4:]), (tau + forces - s[4:]) / lags])

            return extrapolated(rate, state, duration, 2)

        gains = {name: np.asarray(values) for name, values in gains.items()}
        first = np.concatenate([start, np.zeros(2)])
        return sampled_motion(flow, first, 0.06, clock, gains, REFERENCES, lambda s: (s[:2], s[2:4]))[:4]

    for i in range(2):
        at, step = START.astype(complex), 1j * STEP * np.eye(4)
        wanted = {"q": end(at + step[i]), "qd": end(at + step[2 + i]), "mass": end(at, x=changed(LINKS, "mass", i))}
        wanted |= {name: end(at, gains=changed(GAINS, name, i)) for name in ("kp", "ki")}
        wanted["tau"] = end(at, tau=np.array([0.5, -0.2]) + step[i, :2])
        for name in names:
            found = motion.derivatives[name][-1][:, i]
            np.testing.assert_allclose(found, wanted[name].imag / STEP, rtol=0, atol=1e-8, err_msg=name)
            np.testing.assert_allclose(np.r_[motion.q[-1], motion.qd[-1]], wanted[name].real, rtol=0, atol=1e-10)


@pytest.mark.slow_cases("rk4")
@plain
@pytest.mark.parametrize("settings", [TIGHT, {"method": "rk4", "step": 1e-3}], ids=["rk45", "rk4"])
def test_two_slides_and_a_rod_agree_with_complex_steps_of_their_equation(settings):
    """The controllers measure the initial state, whose derivatives are projected onto the constraint."""
    clock, start, names = CLOCKS["at instants"], slides_of(np.array([0.6, 1.1])), ["q", "qd", "mass", "kp", "ki", "kd"]
    motion = trammel().simulate(
        start[:2], start[2:], 0.05, drives=drives_of("xy", clock), derivatives=names, save_at=2, **settings
    )

    def end(first, x=SLIDES, gains=GAINS):
        def flow(state, forces, duration):
            return extrapolated(lambda s: rate_of_trammel(s, {**x, "tau": forces}), state, duration, 1)

        gains = {name: np.asarray(values) for name, values in gains.items()}
        coordinates = lambda s: np.split(slides_of(s), 2)  # noqa: E731
        return slides_of(sampled_motion(flow, first, 0.05, clock, gains, REFERENCES, coordinates))

    at = np.array([0.6, 1.1], complex)
    for i in range(2):
        wanted = {name: end(at, gains=changed(GAINS, name, i)) for name in GAINS}
        wanted["mass"] = end(at, x=changed(SLIDES, "mass", i))
        for name, expected in wanted.items():
            np.testing.assert_allclose(
                motion.derivatives[name][-1][:, i], expected.imag / STEP, rtol=0, atol=1e-8, err_msg=name
            )
        first = at + 1j * STEP * np.eye(2)[i]
        moved = slides_of(first).imag / STEP
        change = motion.derivatives["q"][-1] @ moved[:2] + motion.derivatives["qd"][-1] @ moved[2:]
        np.testing.assert_allclose(change, end(first).imag / STEP, rtol=0, atol=1e-8)


# --- one slide, whose motion between instants is known in closed form -------------------------------------------------


def end_of_slide(x, v, mass, gains, count, period, sensor=None, limit=np.inf, rate_limit=np.inf):
    """The end of a slide without friction after `count` periods; also complex."""
    held, integral, last, before = 0.0, 0.0, None, 0.0
    for _ in range(count):
        speed = v
        if sensor == "differences":
            speed, last = 0.0 if last is None else (x - last) / period, x
        error = 0.1 - x
        integral = integral + period * error
        force = gains[0] * error + gains[1] * integral - gains[2] * speed
        if abs(force.real) >= limit:
            force = limit * np.sign(force.real)
        if abs(force.real - before.real) > rate_limit * period:
            force = before + rate_limit * period * np.sign(force.real - before.real)
        held = before = force
        x, v = x + v * period + held / mass * period**2 / 2, v + held / mass * period
    return np.array([x, v])


def motion_of_slide(count, period, names, x=0.3, v=-0.4, mass=2.0, sensors=(), limit=np.inf, rate_limit=np.inf, **more):
    controller = rb.PID("slide", 0.1, kp=30.0, ki=40.0, kd=9.0, limit=limit)
    drive = rb.Sampled(controller, period=period, sensors=sensors, rate_limit=rate_limit)
    model = slide().replace(mass=[mass], damping=[0.0])
    settings = {"drives": [drive], "save_at": 2, "derivatives": names, "method": "rk4", "step": period} | more
    return model.simulate([x], [v], count * period, **settings)


OPTIONS = {
    "exact": {},
    "differences": {"sensor": "differences"},
    "limit": {"limit": 4.0},
    "rate limit": {"rate_limit": 60.0},
    "both limits": {"limit": 5.0, "rate_limit": 80.0},
}


@plain
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("count", [1, 2, 6, 20])
def test_a_slide_agrees_with_its_closed_form(options, count):
    """Runge-Kutta steps are exact under a constant force. Noise and bias of a sensor do not change the derivatives."""
    names, gains = ["q", "qd", "mass", "kp", "ki", "kd"], np.array([30.0, 40.0, 9.0])
    given = dict(options)
    sensors = [rb.Encoder("slide", measures_velocity=True)] if given.pop("sensor", None) else []
    motion = motion_of_slide(count, 0.02, names, sensors=sensors, **given)
    for i, name in enumerate(names):
        step = 1j * STEP * np.eye(6)[i]
        state, mass = [0.3 + step[0], -0.4 + step[1]], 2.0 + step[2]
        end = end_of_slide(*state, mass, gains + step[3:], count, 0.02, **options)
        np.testing.assert_allclose([motion.q[-1, 0], motion.qd[-1, 0]], end.real, rtol=0, atol=1e-13)
        np.testing.assert_allclose(
            motion.derivatives[name][-1][:, 0], end.imag / STEP, rtol=1e-12, atol=1e-13, err_msg=name
        )
    if sensors:
        noisy = [replace(sensors[0], noise=0.01, bias=0.02, seed=3)]
        other = motion_of_slide(count, 0.02, ["q", "mass"], sensors=noisy)
        assert count == 1 or np.abs(other.q - motion.q).max() > 1e-6
        np.testing.assert_allclose(other.derivatives["q"], motion.derivatives["q"], rtol=0, atol=1e-12)


@plain
def test_event_times_agree_with_differences():
    """Between instants, the force is constant, so differences have no error of the integration."""
    names, event = ["q", "qd", "mass"], rb.Event("slide", value=0.2, max_records=2)
    record = motion_of_slide(20, 0.02, names, events=[event]).events[0]
    assert record.count >= 1
    for name, field, value in zip(names, ("x", "v", "mass"), (0.3, -0.4, 2.0), strict=True):
        slopes, states = [], []
        for size in (2e-4, 1e-4):
            ends = [
                motion_of_slide(20, 0.02, (), events=[event], **{field: value + x}).events[0] for x in (-size, size)
            ]
            slopes.append((ends[1].t[0] - ends[0].t[0]) / (2 * size))
            states.append((ends[1].qd[0] - ends[0].qd[0]) / (2 * size))
        (rough, fine), (rough_state, fine_state) = slopes, states
        np.testing.assert_allclose(record.derivatives_of_t[name][0], (4 * fine - rough) / 3, rtol=1e-7)
        found = record.derivatives_of_state[name][0, 1]
        np.testing.assert_allclose(found, (4 * fine_state - rough_state) / 3, rtol=1e-7)


# --- together with other drives ---------------------------------------------------------------------------------------


def central_differences(simulate, size):
    """Central differences of the last state of `simulate(x)` at x = 0, extrapolated to fourth order."""
    slopes = []
    for h in (2 * size, size):
        ends = [np.concatenate([motion.q[-1], motion.qd[-1]]) for motion in (simulate(-h), simulate(h))]
        slopes.append((ends[1] - ends[0]) / (2 * h))
    return (4 * slopes[1] - slopes[0]) / 3


OTHERS = {
    "ComputedTorque": [rb.ComputedTorque("link1", 0.2, kp=30.0, kd=5.0, controller_model=two_links())],
    "PID": [rb.PID("link1", 0.2, kp=3.0, ki=1.0, kd=0.4)],
    "torque-speed curve": [
        rb.Actuator("link2", stall_torque=12.0, no_load_speed=4.0, gear_friction=0.2, gear_friction_velocity=0.5)
    ],
}


@plain
@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_sampled_controllers_beside_other_drives_agree_with_differences(others):
    gains = {"kp": (4.0,), "ki": (2.0,), "kd": (0.5,)}
    sampled = drives_of(["link2"], CLOCKS["late"], gains, REFERENCES[1:])
    settings = {"save_at": 2, "method": "rk4", "step": 1e-3}

    def simulate(x=0.0, field=None, derivatives=()):
        q, model, drives = START[:2].copy(), two_links(), list(sampled)
        if field == "q":
            q[1] += x
        elif field == "mass":
            model = model.replace(mass=model.mass + [0.0, x])
        elif field == "kp":
            controller = replace(sampled[0].controller, kp=4.0 + x)
            drives = [replace(sampled[0], controller=controller)]
        return model.simulate(q, START[2:], 0.05, drives=[*drives, *others], derivatives=derivatives, **settings)

    names = ["q", "mass", "kp"]
    motion = simulate(derivatives=names)
    for name in names:
        wanted = central_differences(lambda x, name=name: simulate(x, name), 1e-3)
        assert np.abs(wanted).max() > 1e-4
        np.testing.assert_allclose(motion.derivatives[name][-1][:, 1], wanted, rtol=0, atol=1e-8, err_msg=name)


@plain
def test_a_continued_motion_has_the_same_derivatives_to_the_last_bit():
    settings = {"derivatives": ["q", "mass", "ki", "tau"], "method": "rk4", "step": 0.005}
    encoders = {"sensors": [rb.Encoder("link2", measures_velocity=True)]}
    drives = [
        *drives_of(["link1"], CLOCKS["later than a period"]),
        rb.Sampled(rb.PID("link2", 0.1, kp=2.0, kd=0.2), period=0.01, **encoders),
        rb.Actuator("link2", time_constant=0.02),
    ]
    states = START[None, :2], START[None, 2:]
    model = two_links()
    whole = model.simulate(*states, 0.08, drives=drives, save_at=[0.035, 0.08], **settings)
    part = model.simulate(*states, 0.035, drives=drives, save_at=[0.035], **settings)
    rest = model.simulate(duration=0.045, continue_from=part, save_at=[0.08])
    for name in settings["derivatives"]:
        np.testing.assert_array_equal(part.derivatives[name][:, -1], whole.derivatives[name][:, 0])
        np.testing.assert_array_equal(rest.derivatives[name][:, -1], whole.derivatives[name][:, -1])


@plain
def test_samples_with_their_own_delays_have_their_own_derivatives_also_in_float32():
    delays, names = np.array([0.0, 0.01, 0.025]), ["q", "mass", "kd"]
    clock = {"period": 0.01, "phase": 0.005, "latency": 0.0}
    states = np.broadcast_to(START[:2], (3, 2)), np.broadcast_to(START[2:], (3, 2))
    settings = {"derivatives": names, "method": "rk4", "step": 0.005, "save_at": [0.06]}
    drives = drives_of(["link1"], clock | {"delay": delays})
    many = two_links().simulate(*states, 0.06, drives=drives, **settings)
    rough = two_links().simulate(*(x.astype(np.float32) for x in states), 0.06, drives=drives, **settings)
    for k, delay in enumerate(delays):
        alone = two_links().simulate(
            *(x[k] for x in states), 0.06, drives=drives_of(["link1"], clock | {"delay": delay}), **settings
        )
        for name in names:
            np.testing.assert_allclose(many.derivatives[name][k], alone.derivatives[name], rtol=0, atol=1e-13)
            assert rough.derivatives[name].dtype == np.float32
            np.testing.assert_allclose(rough.derivatives[name][k], alone.derivatives[name], rtol=1e-3, atol=1e-4)
    assert np.abs(np.diff(many.derivatives["q"], axis=0)).max() > 1e-3


@plain
def test_fit_estimates_a_mass_under_a_sampled_controller():
    drives = [rb.Sampled(rb.PID("slide", 0.1, kp=30.0, ki=40.0, kd=9.0), period=0.02, delay=0.01)]
    t = np.linspace(0.0, 0.2, 5)
    motion = slide(2.0).simulate([0.3], [-0.4], 0.2, save_at=t, drives=drives)
    fitted = rb.fit(slide(2.3), rb.Measurement(t, motion.q, motion.qd, drives=drives), parameters=["mass"])
    np.testing.assert_allclose(fitted.model.mass, 2.0, rtol=1e-6)


# --- refused input ----------------------------------------------------------------------------------------------------


def pull(t, q, qd, parameters, out):
    out[0] = -q[0]


@plain
@pytest.mark.parametrize(
    ("drives", "message"),
    [
        ([rb.Sampled(pull)], "do not support Sampled UserForces, .* expected a PID in Sampled"),
        (
            [rb.Sampled(rb.ComputedTorque("slide", 0.1, kp=1.0, kd=1.0))],
            "do not support Sampled ComputedTorque of joint 'slide'",
        ),
        ([rb.Sampled(rb.PID("slide", 0.1, kp=1.0), resolution=0.1)], "with a resolution, its output changes in steps"),
        (
            [rb.Sampled(rb.PID("slide", 0.1, kp=1.0), sensors=[rb.Encoder("slide", resolution=0.1)])],
            "with a resolution of its Encoder, its output changes in steps",
        ),
        (
            [rb.Sampled(rb.PID("slide", 0.1, kp=1.0, gravity_compensation=True, controller_model="own"))],
            r'contains mass, but the controllers use these parameters too \(controller_model="own"\)',
        ),
    ],
)
def test_refused_controllers(drives, message):
    with pytest.raises(rb.ArgumentError, match=message):
        slide().simulate([0.0], [0.0], 0.1, drives=drives, derivatives=["mass"])


@plain
def test_events_with_a_lag_are_refused():
    drives = [rb.Sampled(rb.PID("slide", 0.1, kp=1.0)), rb.Actuator("slide", time_constant=0.1)]
    with pytest.raises(rb.ArgumentError, match="events do not support Actuator of joint 'slide' with a time_constant"):
        slide().simulate([0.0], [0.0], 0.1, drives=drives, derivatives=["mass"], events=[rb.Event("slide", value=1.0)])


# --- lanes ------------------------------------------------------------------------------------------------------------


OF_EVENTS = "time of an event by "


def last_samples():
    """Derivatives of the last two of nine samples: one in the first block of lanes, one alone in the second."""
    scale = np.linspace(0.9, 1.1, 9)[:, None]
    clock = {"period": 0.02, "phase": 0.005, "latency": 0.006, "delay": np.linspace(0.002, 0.03, 9)}
    more = {"gravity_compensation": True, "limit": 15.0, "feedforward": rb.Signal.table(TIMES, [0.2, -0.1, 0.3])}
    encoder = rb.Encoder("link2", bias=0.01, noise=1e-3, seed=1, measures_velocity=True)
    drives = [
        *drives_of(["link1"], clock | {"rate_limit": 500.0}, **more),
        rb.Sampled(rb.PID("link2", 0.1, kp=scale[:, 0], kd=0.5, ki=2.0), period=0.015, sensors=[encoder]),
    ]
    events = [rb.Event("link1", quantity="velocity", value=0.6, max_records=1)]
    names = ["q", "mass", "kp", "ki", "kd", "signal", "tau"]
    settings = {"drives": drives, "events": events, "rtol": 1e-6, "atol": 1e-6}
    motion = two_links().simulate(scale * START[:2], scale * START[2:], 0.08, derivatives=names, **settings)
    found = {name: values[7:] for name, values in motion.derivatives.items()}
    found |= {f"{OF_EVENTS}{name}": x[7:] for name, x in motion.events[0].derivatives_of_t.items()}
    model, (q, qd, _) = four_bar().model, closed_state(four_bar(), batch=(9,))
    joint = model.joint_names[0]
    drives = [rb.Sampled(rb.PID(joint, 0.5, kp=scale[:, 0], kd=0.1), period=0.01)]
    drives.append(rb.Actuator(joint, time_constant=0.01 * (scale[:, 0] - 0.9)))
    motion = model.simulate(q, qd, 0.05, rtol=1e-6, atol=1e-6, drives=drives, derivatives=["q", "mass", "kp", "tau"])
    return found | {f"{name} of a closed loop": x[7:] for name, x in motion.derivatives.items()}


@pytest.mark.slow
def test_lanes_agree_with_plain_python():
    plain_python, lanes = computed(last_samples, NUMBA_DISABLE_JIT="1"), last_samples()
    for name in [name for name in lanes if name.startswith(OF_EVENTS)]:
        change = plain_python.pop(name) - lanes.pop(name)  # in s: the derivatives change by less than 1 1/s
        assert np.abs(change).max() <= TIME_TOLERANCE
    check_alike(plain_python, lanes)
