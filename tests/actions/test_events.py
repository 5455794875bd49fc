"""Events of coordinates and of user functions, compared with elliptic integrals."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ellipj, ellipk, ellipkinc

import rbchain as rb

from .models import DONE, RK4, STOPPED, above_ramp, everything, floater, slider, start

OMEGA = np.sqrt(9.81)
AMPLITUDES = np.array([0.4, 1.0, 2.0, 2.9])


def pendulum():
    """A mass on a weightless rod of 1 m; q from straight down."""
    builder = rb.ModelBuilder(gravity=(0, -9.81, 0))
    builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(2.0, cg=(0, -1.0, 0)))
    return builder.build()


def swing(amplitude, t):
    k = np.sin(amplitude / 2)
    return 2 * np.arcsin(k * ellipj(ellipk(k**2) - OMEGA * t, k**2)[0])


def crossings(amplitude, angle, until):
    """When a pendulum released at `amplitude` passes an angle, falling first, in elliptic integrals."""
    k = np.sin(amplitude / 2)
    quarter, u = ellipk(k**2), ellipkinc(np.arcsin(np.sin(angle / 2) / k), k**2)
    times = np.sort([[4 * n * quarter + (quarter - u), 4 * (n + 1) * quarter - (quarter - u)] for n in range(9)], None)
    return times[times < OMEGA * until] / OMEGA


def released(events, duration=4.0, **settings):
    return pendulum().simulate(AMPLITUDES[:, None], np.zeros((4, 1)), duration, events=events, **settings)


EVENT_SETTINGS = [{"rtol": 1e-12, "atol": 1e-13}, {"method": "rk4", "step": 5e-4}]


@pytest.mark.parametrize("settings", EVENT_SETTINGS)
@pytest.mark.parametrize("angle", [0.0, "own"])
def test_a_pendulum_passes_an_angle_at_the_times_of_its_elliptic_integral(angle, settings):
    """For rising, falling and both crossings, of which two are recorded. `own` is another angle for each sample."""
    angles = 0.6 * AMPLITUDES if angle == "own" else np.zeros(4)
    value = angles if angle == "own" else 0.0
    events = [rb.Event("bob", value=value, direction=d, stop=False, max_records=2) for d in (0, 1, -1)]
    motion = released(events, **settings)
    assert (motion.status == DONE).all()
    for i, amplitude in enumerate(AMPLITUDES):
        all_times = crossings(amplitude, angles[i], 4.0)
        for event, expected in zip(motion.events, (all_times, all_times[1::2], all_times[::2]), strict=True):
            assert event.count[i] == expected.size
            kept = expected[:2]
            assert event.t.shape == (4, 2)
            np.testing.assert_allclose(event.t[i, : kept.size], kept, rtol=0, atol=1e-9)
            assert np.isnan(event.t[i, kept.size :]).all()
            assert np.isnan(event.q[i, kept.size :]).all()
            np.testing.assert_allclose(event.q[i, : kept.size, 0], angles[i], rtol=0, atol=1e-9)
            speed = OMEGA * np.sqrt(2 * (np.cos(angles[i]) - np.cos(amplitude)))
            np.testing.assert_allclose(np.abs(event.qd[i, : kept.size, 0]), speed, rtol=0, atol=1e-8)


@pytest.mark.parametrize("settings", EVENT_SETTINGS)
def test_a_pendulum_turns_after_half_its_period(settings):
    """The velocity is zero at the start too, which does not count as an event."""
    motion = released(
        [rb.Event("bob", quantity="velocity", direction=1, stop=True)],
        duration=10.0,
        save_at=[0.0, 0.3, 9.9],
        **settings,
    )
    assert (motion.status == STOPPED).all()
    assert motion.success
    assert "event" in motion.message
    assert (motion.events[0].count == 1).all()
    half = 2 * ellipk(np.sin(AMPLITUDES / 2) ** 2) / OMEGA
    np.testing.assert_allclose(motion.events[0].t[:, 0], half, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.events[0].q[:, 0, 0], -AMPLITUDES, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.q[:, 1, 0], swing(AMPLITUDES, 0.3), rtol=0, atol=1e-7)
    check_held(motion, np.array([[False, False, True]]))


def check_held(motion, after):
    """Check that the states stay as they are at the event at the times `after` (samples, times)."""
    after = np.broadcast_to(after, motion.q.shape[:-1])
    for states, ends in ((motion.q, motion.end_q), (motion.qd, motion.end_qd)):
        np.testing.assert_array_equal(states[after], np.broadcast_to(ends[:, None], states.shape)[after])
    for event in motion.events:
        is_last = (event.count == 1) & (event.t[:, 0] == motion.end_time)
        np.testing.assert_allclose(motion.end_q[is_last], event.q[is_last, 0], rtol=0, atol=1e-14)


def thrown(method, position, velocity, events, dtype=np.float64, **settings):
    """A ball in a gravity of 10 m/s^2 upwards or downwards, whose motion all methods but "implicit" compute exactly."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=1.0))
    steps = {} if method in ("rk45", "rosenbrock") else {"step": 0.01}
    start = (np.array([[x]], dtype) for x in (position, velocity))
    return builder.build().simulate(*start, 0.3, method=method, events=events, **steps, **settings)


@pytest.mark.plain_python
@pytest.mark.parametrize("quantity", ["position", "velocity"])
@pytest.mark.parametrize("value", [0.0, 0.1, 0.5, 3e3])
@pytest.mark.parametrize("method", ["rk45", "rosenbrock", "rk4", "implicit", "moreau"])
def test_a_joint_that_starts_at_the_value_of_an_event_leaves_it_without_an_event(method, value, quantity):
    start = (value, 0.0) if quantity == "position" else (0.2, value)
    motion = thrown(method, *start, [rb.Event("ball", value=value, quantity=quantity, stop=True)])
    assert motion.status[0] == DONE
    assert motion.events[0].count[0] == 0


@pytest.mark.plain_python
@pytest.mark.parametrize("height", [0.0, 0.5, -0.05, 3e3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", ["rk45", "rosenbrock", "rk4", "moreau"])
def test_a_joint_that_turns_back_at_the_value_of_an_event_has_one_event(method, height, dtype):
    """A ball thrown with 1 m/s reaches the height of 0.05 m after 0.1 s."""
    level = float(dtype(height)) + 0.05
    events = [rb.Event("ball", value=level, direction=d, stop=False) for d in (0, 1, -1)]
    motion = thrown(method, height, 1.0, events, dtype)
    assert [record.count[0] for record in motion.events] == [1, 1, 0]
    # the height is flat at its apex, so that its round-off u moves the event by sqrt(2 u / g)
    margin = np.sqrt(2 * 256 * np.finfo(dtype).eps * max(abs(height), 1.0) / 10)
    assert abs(motion.events[0].t[0, 0] - 0.1) <= margin


@pytest.mark.parametrize("settings", EVENT_SETTINGS)
def test_a_user_event_occurs_at_the_zero_of_its_function(settings):
    """The event occurs where the angle of each sample meets its own ramp in time."""
    ramps = np.array([[-0.3, 0.4], [0.2, 0.1], [-1.0, 0.5], [2.0, -0.3]])
    motion = released([rb.Event(function=above_ramp, parameters=ramps, stop=True)], **settings)
    assert (motion.status == STOPPED).all()
    for i, (a, b) in enumerate(ramps):
        times = np.linspace(0, 4, 4001)
        apart = swing(AMPLITUDES[i], times) - a - b * times
        at = np.argmax(apart <= 0)
        expected = brentq(lambda t: swing(AMPLITUDES[i], t) - a - b * t, *times[at - 1 : at + 1], xtol=1e-14)  # noqa: B023
        np.testing.assert_allclose(motion.events[0].t[i, 0], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("settings", [{}, RK4])
def test_events_after_the_end_of_a_motion_are_not_recorded(settings):
    """The earlier of two stopping events ends each sample. Later events of the same step are not recorded."""
    first, second = np.array([0.3, 0.6, 0.3, 0.6]), np.array([0.6, 0.3, 0.6, 0.3])
    near = np.minimum(first, second)
    events = [
        rb.Event("slide", value=first, stop=True),
        rb.Event("slide", value=second, stop=True),
        rb.Event("slide", value=near - 1e-7, stop=False),
        rb.Event("slide", value=near + 1e-7, stop=False),
    ]
    motion = slider().simulate(np.zeros((4, 1)), np.full((4, 1), 0.5), 2.0, events=events, save_at=201, **settings)
    assert (motion.status == STOPPED).all()
    counts = [event.count.tolist() for event in motion.events]
    assert counts == [[1, 0, 1, 0], [0, 1, 0, 1], [1] * 4, [0] * 4]
    np.testing.assert_allclose(motion.events[2].t[:, 0], (near - 1e-7) / 0.5, rtol=0, atol=1e-10)
    # at the end itself, the saved state may be either
    before, after = (motion.t < near[:, None] / 0.5 - 1e-9), (motion.t > near[:, None] / 0.5 + 1e-9)
    assert np.isfinite(motion.q[before]).all()
    check_held(motion, after)


@pytest.mark.parametrize("settings", [{"rtol": 1e-7, "atol": 1e-9}, {"method": "rk4", "step": 0.005}])
def test_stopped_samples_keep_their_trajectory_and_do_not_change_others(settings):
    model, n = floater(), 23
    q, qd = start(model, n)
    going = everything(n)
    others = going.pop("events")
    half_way = model.simulate(q, qd, 0.25, save_at=2, **going, **settings).q[:, 1, 7]
    level = np.where(np.arange(n) % 3 == 0, half_way, 50.0)
    stop, go_on = ([*others, rb.Event("arm", value=level, stop=s)] for s in (True, False))
    whole = model.simulate(q, qd, 0.5, events=go_on, save_at=51, **going, **settings)
    cut = model.simulate(q, qd, 0.5, events=stop, save_at=51, **going, **settings)
    stopped = cut.status == STOPPED
    assert 3 < stopped.sum() < n - 3
    assert (cut.status[~stopped] == DONE).all()
    for name in ("q", "qd", "tau", "steps"):
        assert np.array_equal(getattr(cut, name)[~stopped], getattr(whole, name)[~stopped]), name
    after = cut.t > cut.events[-1].t[:, :1]
    check_held(cut, after)
    assert np.isnan(cut.tau[after]).all() and np.isfinite(cut.tau[~after]).all()
    assert np.array_equal(cut.events[-1].t[:, 0], whole.events[-1].t[:, 0], equal_nan=True)
    # in the step of the event, a state at the end of the step is interpolated: equal up to round-off
    np.testing.assert_allclose(cut.q[~after], whole.q[~after], rtol=0, atol=1e-14)
