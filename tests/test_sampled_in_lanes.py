"""Sampled controllers and actuators in compiled lanes: a sample moves alone as in a batch, and as in plain Python."""

import numpy as np
import pytest

import rbchain as rb

BATCH = 9
TIMES = 11


def damper(t, q, qd, parameters, states, out):
    states[0] += 1.0
    out[2] -= parameters[0] * qd[2] + 1e-3 * states[0]


def target(t, q, qd, parameters, out):
    out[0] = 0.5 * (q[2] + parameters[0])


def arm():
    return rb.Model.serial_chain(3)


def drives(part):
    """Controllers with their own clocks, a cascade, and a motor; delays, gains and time constants differ."""
    delay, kp = np.linspace(0.0, 0.013, BATCH)[part], np.linspace(0.2, 0.4, BATCH)[part]
    encoder = rb.Encoder("link1", resolution=1e-3, noise=2e-4, measures_velocity=True, samples=np.arange(BATCH)[part])
    pid = rb.PID("link1", 0.2, kp=kp, kd=0.04, ki=0.3, gravity_compensation=True)
    return [
        rb.Sampled(pid, period=0.01, delay=delay, sensors=[encoder], rate_limit=500.0, resolution=1e-4),
        rb.Sampled(rb.ComputedTorque("link2", 0.1, kp=20.0, kd=5.0), period=0.004, phase=0.001, latency=0.002),
        rb.Sampled(rb.UserForces(damper, [0.002]), period=0.007, states=[0.0]),
        rb.Sampled(rb.UserForces(target, [0.1]), period=0.02, outputs="position", joints=["link3"], limit=0.08),
        rb.PID("link3", "target", kp=0.05, kd=0.01),
        rb.Actuator("link1", np.linspace(0.0, 0.01, BATCH)[part], stall_torque=0.2, no_load_speed=1.0),
    ]


def motion_of(part):
    zero = np.zeros((BATCH, 3))[part]
    return arm().simulate(zero, zero, 0.1, drives=drives(part), save_at=TIMES)


@pytest.mark.slow
def test_a_sample_moves_alone_as_in_a_batch():
    motion = motion_of(slice(None))
    assert motion.success
    for i in (0, 4, 8):
        one = motion_of(slice(i, i + 1))
        for name in ("q", "qd", "tau", "steps"):
            np.testing.assert_array_equal(getattr(one, name)[0], getattr(motion, name)[i])
    # the inverse dynamics of the motion are the held outputs, and the torque that the motor delivers
    torque = arm().inverse_dynamics(motion.q, motion.qd, motion.qdd)
    np.testing.assert_allclose(torque, motion.tau, rtol=0, atol=1e-12)


def damper_of_batch(t, q, qd, parameters, states):
    states += 1.0
    out = np.zeros_like(qd)
    out[:, 2] = -(parameters[:, 0] * qd[:, 2] + 1e-3 * states[:, 0])
    return out


@pytest.mark.slow
def test_a_function_in_python_for_the_batch_gives_the_same_bits():
    zero, given = np.zeros((BATCH, 3)), drives(slice(None))
    user = rb.Sampled(rb.UserForces(damper_of_batch, [0.002]), period=0.007, states=[0.0])
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
