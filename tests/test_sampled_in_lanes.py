"""Sampled controllers and actuators in compiled lanes: a sample moves alone as in a batch, and as in plain Python."""

import numpy as np
import pytest

import rbchain as rb

BATCH = 9
TIMES = 11


def damper(t, q, qd, parameters, states, out):
    if t > parameters[1]:
        raise ValueError("too late")
    states[0] += 1.0
    out[2] -= parameters[0] * qd[2] + 1e-3 * states[0]


def target(t, q, qd, parameters, out):
    out[0] = 0.5 * (q[2] + parameters[0])


def arm():
    return rb.Model.serial_chain(3)


def spread(low, high, part):
    return np.linspace(low, high, BATCH)[part]


def drives(part, delay=None, fails_after=9.0):
    """Controllers with their own clocks, a cascade, and a motor; most numbers differ between samples."""
    noise = np.where(np.arange(BATCH) % 3 == 0, 0.0, 2e-4)[part]
    encoder = rb.Encoder(
        "link1",
        resolution=spread(0.0, 2e-3, part),
        bias=spread(-1e-3, 1e-3, part),
        noise=noise,
        measures_velocity=True,
        sample_ids=np.arange(BATCH)[part],
    )
    gains = {"kp": spread(0.2, 0.4, part), "kd": 0.04, "ki": 0.3, "limit": spread(0.02, 0.5, part)}
    pid = rb.PID("link1", 0.2, gravity_compensation=True, **gains)
    delay = spread(0.0, 0.013, part) if delay is None else delay
    limits = {"rate_limit": spread(2.0, 500.0, part), "resolution": spread(0.0, 1e-3, part)}
    parameters = np.stack([np.full(BATCH, 0.002), np.where(np.arange(BATCH) == 5, fails_after, 9.0)], -1)[part]
    return [
        rb.Sampled(pid, period=0.01, delay=delay, sensors=[encoder], **limits),
        rb.Sampled(rb.ComputedTorque("link2", 0.1, kp=20.0, kd=5.0), period=0.004, phase=0.001, latency=0.002),
        rb.Sampled(rb.UserForces(damper, parameters=parameters), period=0.007, states=[0.0]),
        rb.Sampled(
            rb.UserForces(target, parameters=[0.1]), period=0.02, outputs="position", joints=["link3"], limit=0.08
        ),
        rb.PID("link3", "outer", kp=0.05, kd=0.01),
        rb.Actuator("link1", time_constant=spread(0.0, 0.01, part), stall_torque=0.2, no_load_speed=1.0),
    ]


def motion_of(part, delay=None, fails_after=9.0, **settings):
    zero, given = np.zeros((BATCH, 3))[part], drives(part, delay, fails_after)
    return arm().simulate(zero, zero, 0.1, drives=given, save_at=TIMES, on_failure="ignore", **settings)


def check_alone(motion, **settings):
    """Check that samples move alone as in the batch, bit for bit."""
    for i in (0, 4, 5, 8):
        one = motion_of(slice(i, i + 1), **settings)
        for name in ("q", "qd", "tau", "steps", "status"):
            np.testing.assert_array_equal(getattr(one, name)[0], getattr(motion, name)[i])


@pytest.mark.slow
def test_a_sample_moves_alone_as_in_a_batch():
    motion = motion_of(slice(None))
    assert motion.success
    check_alone(motion)
    # the inverse dynamics of the motion are the held outputs, and the torque that the motor delivers
    torque = arm().inverse_dynamics(motion.q, motion.qd, motion.qdd)
    np.testing.assert_allclose(torque, motion.tau, rtol=0, atol=1e-12)


FIXED = {"method": "implicit", "step": 2e-3, "delay": 0.006}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, FIXED], ids=["rk45", "implicit"])
def test_samples_that_end_do_not_affect_others(settings):
    """One sample fails at 0.05 s, and an event stops others at different times."""
    motion = motion_of(slice(None), **settings)
    height = np.sort(motion.q[:, -1, 0])[BATCH // 2]
    ending = {"fails_after": 0.05, "events": [rb.Event("link1", value=height, stop=True)], **settings}
    ended = motion_of(slice(None), **ending)
    check_alone(ended, **ending)
    assert ended.status[5] == rb.Status.USER_FUNCTION_FAILED
    assert {rb.Status.DONE, rb.Status.STOPPED} < set(ended.status.tolist())
    for i in np.flatnonzero(ended.status == rb.Status.DONE):
        np.testing.assert_array_equal(ended.q[i], motion.q[i])
        np.testing.assert_array_equal(ended.tau[i], motion.tau[i])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, FIXED], ids=["rk45", "implicit"])
def test_controllers_that_share_sensors_compute_as_controllers_with_their_own(settings):
    """Controllers with the same list of sensors form a group; in another order, they measure by themselves."""
    encoders = [rb.Encoder(name, resolution=1e-4, noise=1e-4, measures_velocity=True) for name in ("link1", "link2")]
    zero, rest, found = np.zeros((BATCH, 3)), drives(slice(None), 0.006)[2:], []
    fixed = {name: settings[name] for name in settings if name != "delay"}
    for sensors in (encoders, encoders[::-1]):
        pids = [rb.PID(name, 0.2, kp=0.3, kd=0.04, limit=0.2, gravity_compensation=True) for name in ("link1", "link2")]
        clock = {"period": 0.01, "delay": 0.006, "rate_limit": 50.0}
        pair = [rb.Sampled(pid, sensors=of, **clock) for pid, of in zip(pids, (encoders, sensors), strict=True)]
        found.append(arm().simulate(zero, zero, 0.1, drives=[*pair, *rest], save_at=TIMES, **fixed))
    assert found[0].success
    for name in ("q", "qd", "tau", "steps"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))


def damper_of_batch(t, q, qd, parameters, states):
    states += 1.0
    out = np.zeros_like(qd)
    out[:, 2] = -(parameters[:, 0] * qd[:, 2] + 1e-3 * states[:, 0])
    return out


@pytest.mark.slow
def test_a_function_in_python_for_the_batch_gives_the_same_bits():
    zero, given = np.zeros((BATCH, 3)), drives(slice(None))
    user = rb.Sampled(rb.UserForces(damper_of_batch, parameters=[0.002, 9.0]), period=0.007, states=[0.0])
    motion = arm().simulate(zero, zero, 0.1, drives=[*given[:2], user, *given[3:]], save_at=TIMES)
    compiled = motion_of(slice(None))
    for name in ("q", "qd", "tau", "steps", "evaluations"):
        np.testing.assert_array_equal(getattr(motion, name), getattr(compiled, name))


@pytest.mark.slow
def test_compiled_code_agrees_with_the_discrete_time_system():
    """A double integrator under PD control, whose delay of 0.03 s is a fraction of the period of 0.05 s."""
    period, delay, mass = 0.05, 0.03, 2.0
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass))
    drive = rb.Sampled(rb.PID("slide", 0.3, kp=20.0, kd=8.0), period=period, delay=delay)
    motion = builder.build().simulate([[0.1]], [[0.2]], 20 * period, drives=[drive], save_at=21)
    q, v, previous = 0.1, 0.2, 0.0
    for i in range(21):
        np.testing.assert_allclose([motion.q[0, i, 0], motion.qd[0, i, 0]], [q, v], rtol=0, atol=1e-12)
        new = 20.0 * (0.3 - q) - 8.0 * v
        for length, force in ((delay, previous), (period - delay, new)):
            q, v = q + v * length + force / mass * length**2 / 2, v + force / mass * length
        previous = new
