"""Derivatives of the times and states of events: closed forms, differences of simulations, identities, and NaN."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ellipe, ellipk

import rbchain as rb

from .mechanisms import slide
from .test_sensitivities import FIXED, LINKS, START, arm_with, floating, two_links
from .test_sensitivities_of_closed_chains import slides_of, trammel

plain = pytest.mark.plain_python
TIGHT = {"method": "dop853", "rtol": 1e-12, "atol": 1e-13}
SIXTH_ORDER = np.array([3 / 4, -3 / 20, 1 / 60])
STEP = 5e-3  # of differences; their errors are about STEP^6, and 1e-11 s / STEP of the times


def falling_mass():
    """A mass of 2 kg under a gravity of 10 m/s^2."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    builder.add_body("mass", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=2.0))
    return builder.build()


@plain
@pytest.mark.parametrize("settings", [{}, {"method": "dop853"}, {"method": "rk4", "step": 0.05}])
def test_a_mass_falls_to_a_level(settings):
    """z = z0 + v0 t - a t^2 / 2 with a = 10 - F / m; the apex and the ground are events, and so is z + v = 0."""

    def height_and_speed(t, q, qd, parameters, out):
        x = q[0] + qd[0]
        out[0] = parameters[0] * (x + x**3)

    z0, v0, force, mass = np.array([[5.0], [4.0]]), np.array([[3.0], [1.0]]), np.array([[0.0], [2.0]]), 2.0
    events = [
        rb.Event("mass", value=0.0, stop=True, max_records=2),
        rb.Event("mass", quantity="velocity", max_records=2),
        rb.Event(function=height_and_speed, parameters=[[3.0], [4.0]], max_records=2),
    ]
    names = ["q", "qd", "mass", "tau"]
    motion = falling_mass().simulate(z0, v0, 4.0, tau=force, events=events, derivatives=names, **settings)
    a, by_a = 10.0 - force / mass, {"q": 0.0, "qd": 0.0, "mass": force / mass**2, "tau": -1.0 / mass}
    # of times: those with z = 0, v = 0, and z + v = 0, as functions of z0, v0 and a
    root = np.sqrt(v0**2 + 2 * a * z0)
    both = np.sqrt((v0 - a) ** 2 + 2 * a * (z0 + v0))
    times = (v0 + root) / a, v0 / a, (v0 - a + both) / a
    slopes = (
        {"q": 1 / root, "qd": times[0] / root, "a": -(times[0] ** 2) / (2 * root)},
        {"q": 0 * a, "qd": 1 / a, "a": -v0 / a**2},
        {"q": 1 / both, "qd": (1 + times[2]) / both, "a": -(times[2] ** 2 / 2 + times[2]) / both},
    )
    for record, t, of in zip(motion.events, times, slopes, strict=True):
        np.testing.assert_array_equal(record.count, 1)
        np.testing.assert_allclose(record.t[:, :1], t, rtol=0, atol=1e-9)
        for name in names:
            wanted = of["a"] * by_a[name] + of.get(name, 0.0)
            found = record.derivatives_of_t[name][:, :1, 0]
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9, err_msg=name)
            dz0, dv0 = float(name == "q"), float(name == "qd")
            speed = dv0 - a * wanted - by_a[name] * t
            height = dz0 + dv0 * t - by_a[name] * t**2 / 2 + (v0 - a * t) * wanted
            state = record.derivatives_of_state[name][:, 0, :, 0]
            np.testing.assert_allclose(state, np.concatenate([height, speed], -1), rtol=0, atol=1e-8, err_msg=name)
            assert np.isnan(record.derivatives_of_t[name][:, 1:]).all()
            assert np.isnan(record.derivatives_of_state[name][:, 1:]).all()


@pytest.mark.slow
@plain
def test_a_pendulum_swings_to_its_lowest_position():
    """A quarter of the period is K(m) sqrt(L / g) with m = sin^2(amplitude / 2), so the time of a fall."""
    length, amplitude, gravity = 1.5, 2.0, 9.81
    builder = rb.ModelBuilder(gravity=(0, -gravity, 0))
    builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(2.0, cg=(length, 0, 0)))
    event = rb.Event("bob", value=-np.pi / 2, max_records=3)
    names = ["q", "bob.cg.x", "mass", "gravity.y"]
    motion = builder.build().simulate([amplitude - np.pi / 2], duration=8.0, events=[event], derivatives=names, **TIGHT)
    (record,), m = motion.events, np.sin(amplitude / 2) ** 2
    quarter = ellipk(m) * np.sqrt(length / gravity)
    by_m = (ellipe(m) - (1 - m) * ellipk(m)) / (2 * m * (1 - m))
    by_amplitude = by_m * np.sin(amplitude) / 2 * np.sqrt(length / gravity)
    number = np.array([1.0, 3.0, 5.0])
    np.testing.assert_allclose(record.t, number * quarter, rtol=0, atol=1e-9)
    np.testing.assert_allclose(record.derivatives_of_t["q"][:, 0], number * by_amplitude, rtol=0, atol=1e-9)
    np.testing.assert_allclose(record.derivatives_of_t["bob.cg.x"], number * quarter / (2 * length), rtol=0, atol=1e-9)
    by_gravity = number * quarter / (2 * gravity)  # of gravity along y, which is negative
    np.testing.assert_allclose(record.derivatives_of_t["gravity.y"], by_gravity, rtol=0, atol=1e-9)
    np.testing.assert_allclose(record.derivatives_of_t["mass"], 0.0, rtol=0, atol=1e-9)
    # the angle is the level, and energy gives the rate there: rate^2 = 4 m g / L
    np.testing.assert_allclose(record.derivatives_of_state["q"][:, 0], 0.0, rtol=0, atol=1e-9)
    by_angle = np.sqrt(gravity / length) * np.cos(amplitude / 2)
    np.testing.assert_allclose(record.derivatives_of_state["q"][:, 1, 0], [-by_angle, by_angle, -by_angle], atol=1e-8)


def differences(simulated, model):
    """Differences of the times and states of all events: `simulated(steps)` returns the motion of a batch of steps."""
    steps = STEP * np.array([1.0, 2, 3, -1, -2, -3, 0])
    found = []
    for record in simulated(steps).events:
        assert (record.count == record.count[-1]).all()
        t = SIXTH_ORDER @ (record.t[:3] - record.t[3:6]) / STEP
        moves = np.concatenate([model.difference(record.q[-1:], record.q), record.qd], -1)
        found.append((t, np.einsum("i,i...->...", SIXTH_ORDER, moves[:3] - moves[3:6]) / STEP))
    return found


def check(records, name, wanted, allowed=1e-8):
    """Compare the derivatives by one number with differences."""
    for record, (t, state) in zip(records, wanted, strict=True):
        used = np.isfinite(record.t)
        assert used.any()
        np.testing.assert_allclose(record.derivatives_of_t[name][used], t[used], rtol=allowed, atol=allowed)
        np.testing.assert_allclose(record.derivatives_of_state[name][used], state[used], rtol=allowed, atol=allowed)


def chirp(t, q, qd, parameters, out):
    """Depends on the time, and on the positions and the velocities of both links."""
    out[0] = np.sin(q[0] - 0.3 * q[1]) + 0.1 * qd[0] * qd[1] - parameters[0] * np.cos(3.0 * t)


@pytest.mark.slow
@plain
def test_events_of_two_links_agree_with_differences():
    model, duration = two_links(), 0.4
    events = [
        rb.Event("link1", value=0.25, max_records=4),
        rb.Event("link2", quantity="velocity", value=0.5, max_records=4),
        rb.Event(function=chirp, parameters=[0.4], max_records=4),
    ]

    def simulated(steps, name=None, derivatives=()):
        starts = np.tile(START, (*np.shape(steps), 1))
        kp, own = np.full(np.shape(steps), 3.0), model
        if name == "qd":
            starts[:, 2] += steps
        elif name == "kp":
            kp = kp + steps
        elif name is not None:
            own = model.vary({name: LINKS["mass"][1] + steps})
        drives = [rb.PID("link1", rb.Signal.sines([0.3], [5.0]), kp=kp, ki=2.0)]
        return own.simulate(
            *(starts[..., :2], starts[..., 2:], duration),
            **{"drives": drives, "events": events, "derivatives": derivatives, "save_at": 2, **TIGHT},
        )

    motion = simulated(0.0, derivatives=["qd", "kp", "link2.mass"])
    assert all(record.count >= 1 for record in motion.events)
    for name, column in (("qd", 0), ("kp", 0), ("link2.mass", None)):
        wanted = differences(lambda steps, name=name: simulated(steps, name), model)
        records = motion.events if column is None else [by_entry(record, name, column) for record in motion.events]
        check(records, name, wanted)


@pytest.mark.slow_cases("free")
@plain
@pytest.mark.parametrize("joint", [rb.Free(), rb.Spherical()], ids=["free", "spherical"])
def test_functions_of_turns_agree_with_differences(joint):
    """The value is a direction of the body in the world, whose slopes are on the tangent space."""
    model = floating(joint)
    n, at = model.nv, model.nq - 4

    def upwards(t, q, qd, parameters, out):
        x, y, z, w = q[at], q[at + 1], q[at + 2], q[at + 3]
        out[0] = (2.0 * (x * y + w * z) + 0.1 * q[0] + 0.01 * qd[n - 1] ** 2) ** 2 - 0.01

    rng = np.random.default_rng(3)
    q, qd = model.neutral(), 2.0 * rng.normal(size=n)
    events = [rb.Event(function=upwards, max_records=3)]
    settings = {"events": events, "save_at": 2, **TIGHT}
    motion = model.simulate(q, qd, 0.55, derivatives=["qd"], **settings)
    assert motion.events[0].count >= 1
    unit = np.eye(n)[-1]
    wanted = differences(
        lambda steps: model.simulate(np.tile(q, (7, 1)), qd + steps[:, None] * unit, 0.55, **settings), model
    )
    check([by_entry(motion.events[0], "qd", -1)], "qd", wanted)


def by_entry(record, name, i):
    """The record of an event with the derivatives by one entry of a field."""
    return replace(
        record,
        derivatives_of_t={name: record.derivatives_of_t[name][..., i]},
        derivatives_of_state={name: record.derivatives_of_state[name][..., i]},
    )


@pytest.mark.slow
@plain
def test_events_of_a_closed_chain_agree_with_differences():
    """Along the angle of the rod, so that the initial states are closed."""
    model, start = trammel(), np.array([0.6, 1.1])
    settings = {"events": [rb.Event("y", value=0.42, max_records=2)], "save_at": 2, "tau": (0.4, -0.3)} | TIGHT
    motion = model.simulate(*np.split(slides_of(start), 2), 0.4, derivatives=["q", "qd", "x.mass"], **settings)
    (record,) = motion.events
    assert record.count >= 1

    def from_rate(steps):
        states = np.array([slides_of(start + [0.0, step]) for step in steps])
        return model.simulate(states[:, :2], states[:, 2:], 0.4, **settings)

    def of_mass(steps):
        states = np.tile(slides_of(start), (steps.size, 1))
        return model.vary({"x.mass": 1.5 + steps}).simulate(states[:, :2], states[:, 2:], 0.4, **settings)

    check([record], "x.mass", differences(of_mass, model))
    along = slides_of([start[0], 1.0])[2:]  # velocities for a unit of the rate
    of_t, of_state = (of["qd"] @ along for of in (record.derivatives_of_t, record.derivatives_of_state))
    ((t, state),) = differences(from_rate, model)
    np.testing.assert_allclose(of_t[:1], t[:1], rtol=0, atol=1e-8)
    np.testing.assert_allclose(of_state[:1], state[:1], rtol=0, atol=1e-8)


@plain
def test_a_prescribed_motion_reaches_its_level_at_the_same_time():
    model = two_links()
    drives = [rb.PrescribedPosition("link1", rb.Signal.sines([1.0], [2.0]))]
    events = [rb.Event("link1", value=0.5, max_records=1), rb.Event("link2", value=-0.7, max_records=2)]
    motion = model.simulate(
        [0.0, -0.7], [2.0, 1.0], 1.0, drives=drives, events=events, derivatives=["link2.mass"], save_at=2, **TIGHT
    )
    assert motion.events[0].count == 1
    np.testing.assert_allclose(motion.events[0].derivatives_of_t["link2.mass"], 0.0, atol=1e-12)


@plain
def test_a_mass_that_turns_back_at_the_level_has_no_derivatives():
    """The apex is 1e-7 m, or 1e-2 m, above the level. The first is within 100 tolerances, the second is not."""
    apex = np.array([[1e-7], [1e-2]])
    events = [
        rb.Event("mass", value=0.0, max_records=2),
        rb.Event(function=lambda t, q, qd, parameters, out: out.fill(q[0] ** 3 + q[0]), max_records=2),
    ]
    motion = falling_mass().simulate(apex - 5.0, 10.0, 2.0, events=events, derivatives=["q"])
    for record in motion.events:
        np.testing.assert_array_equal(record.count, 2)
        assert np.isnan(record.derivatives_of_t["q"][0]).all()
        assert np.isnan(record.derivatives_of_state["q"][0]).all()
        rate = np.sqrt(20.0 * apex[1]) * [1.0, -1.0]  # z^2 = 20 m/s^2 (apex - level)
        np.testing.assert_allclose(record.derivatives_of_t["q"][1, :, 0], -1.0 / rate, rtol=1e-5)


@plain
def test_functions_without_accurate_slopes_have_no_derivatives():
    """Large round-off and a kink at the level have none; small round-off and a kink beside the level have some."""

    def rounded(t, q, qd, parameters, out):
        out[0] = np.floor(1e4 * np.sin(q[0] - 1.0)) + 0.5

    def less_rounded(t, q, qd, parameters, out):
        out[0] = np.float32(np.sin(q[0] - 1.0))

    def bent(t, q, qd, parameters, out):
        out[0] = q[0] - 1.0 if q[0] < 1.0 else 2.0 * (q[0] - 1.0)

    def bent_beside(t, q, qd, parameters, out):
        out[0] = 2.0 * (q[0] - 1.0) + abs(q[0] - 1.001) - 0.001

    def fails(t, q, qd, parameters, out):
        out[0] = q[0] - 1.0
        if q[0] > 1.1 or q[0] != q[0] or qd[0] != 2.0:
            raise ValueError

    functions = (rounded, bent, fails, less_rounded, bent_beside)
    events = [rb.Event(function=function, max_records=1) for function in functions]
    motion = slide().simulate([0.0], [2.0], 0.52, events=events, derivatives=["q", "qd"])
    assert motion.success and all(record.count == 1 for record in motion.events)
    for record in motion.events[:3]:
        assert np.isnan(record.derivatives_of_t["q"]).all()
        assert np.isnan(record.derivatives_of_state["q"]).all()
    for record in motion.events[3:]:
        np.testing.assert_allclose(record.derivatives_of_t["q"], -0.5, rtol=1e-6)
        np.testing.assert_allclose(record.derivatives_of_t["qd"], -0.25, rtol=1e-6)


@plain
def test_one_sample_float32_a_file_and_an_empty_batch(tmp_path):
    states = np.stack([START[:2], START[2:]])[:, None] * np.array([1.0, 0.5])[:, None]
    settings = {"derivatives": ["q", "inertia"], "events": [rb.Event("link1", value=-0.3, max_records=2)]} | FIXED
    model = two_links()
    motion = model.simulate(*states, 0.5, **settings)
    single = model.simulate(*states[:, 1], 0.5, **settings)
    motion.save(tmp_path / "motion.npz")
    loaded = rb.load_motion(tmp_path / "motion.npz")
    rough = model.simulate(*states.astype(np.float32), 0.5, **settings)
    empty = model.simulate(*states[:, :0], 0.5, **settings)
    assert (motion.events[0].count > 0).all()
    for name, axes in (("q", (2,)), ("inertia", (2, 3, 3))):
        for of, rows in (("derivatives_of_t", ()), ("derivatives_of_state", (4,))):
            found = getattr(motion.events[0], of)[name]
            assert found.shape == (2, 2, *rows, *axes)
            np.testing.assert_array_equal(getattr(motion[1].events[0], of)[name], found[1])
            np.testing.assert_array_equal(getattr(single.events[0], of)[name], found[1])
            np.testing.assert_array_equal(getattr(loaded.events[0], of)[name], found)
            assert getattr(empty.events[0], of)[name].shape == (0, 2, *rows, *axes)
            of_rough = getattr(rough.events[0], of)[name]
            assert of_rough.dtype == np.float32
            np.testing.assert_allclose(of_rough, found, rtol=1e-3, atol=1e-3)
    without = model.simulate(*states, 0.5, **settings | {"derivatives": ()})
    assert without.events[0].derivatives_of_t == {} == without.events[0].derivatives_of_state
    with pytest.raises(AttributeError, match="derivatives_of_state"):
        _ = motion.events[0].derivatives


@pytest.mark.slow
@plain
def test_a_sample_that_fails_does_not_change_others():
    """The arm has a spherical joint and friction. The second sample fails before its event."""
    model = arm_with(rb.Spherical())
    rng = np.random.default_rng(8)
    q, qd = model.random_state(rng, (3,))
    masses = model.mass * rng.uniform(0.9, 1.1, (3, 3))
    event = rb.Event("a", value=q[:, 0] + 0.05 * np.sign(qd[:, 0]), max_records=1)
    settings = {"events": [event], "derivatives": ["mass"], "method": "rk4", "step": 0.01}
    good = model.vary(mass=masses).simulate(q, 0.5 * qd, 0.3, **settings)
    qd[1] = 1e200
    with pytest.warns(rb.SimulationWarning):
        failed = model.vary(mass=masses).simulate(q, 0.5 * qd, 0.3, **settings)
    np.testing.assert_array_equal(failed.failed, [False, True, False])
    assert (good.events[0].count >= 0).all()
    for of in ("derivatives_of_t", "derivatives_of_state"):
        found = getattr(failed.events[0], of)["mass"]
        assert np.isnan(found[1]).all()
        np.testing.assert_array_equal(found[[0, 2]], getattr(good.events[0], of)["mass"][[0, 2]])
