"""Samples that the tests of steppers step, and the motions of `simulate` that are their references."""

import numpy as np

import rbchain as rb

STEP = 1e-3
SAMPLES = 4
EPISODE = 1 << 26  # distance of the numbers of two episodes of a sample
MASSES = np.array([[1.0, 1.0], [1.2, 0.9], [0.7, 1.4], [1.1, 0.4]])
Q = np.array([[0.3, -0.2], [0.1, 0.5], [-0.4, 0.2], [0.8, 0.0]])
QD = 0.5 * Q[::-1]


def arm(samples=slice(None)):
    return rb.Model.serial_chain(2).vary(mass=MASSES[samples])


def count_calls(t, q, qd, parameters, states, out):
    states[0] += 1.0
    out[1] -= 0.02 * qd[1] + 1e-3 * states[0] + 0.01 * t


def controllers(ids=None):
    """Controllers with the noise of some samples, a motor, and a signal."""
    sensor = rb.Encoder("link1", resolution=1e-5, noise=1e-3, measures_velocity=True, sample_ids=ids)
    pid = rb.PID("link1", 0.2, kp=0.4, kd=0.04, ki=3.0)
    return [
        rb.Sampled(pid, period=3e-3, delay=2e-3, sensors=[sensor]),
        rb.Sampled(rb.UserForces(count_calls), period=2e-3, states=[1.0]),
        rb.Actuator("link1", time_constant=4e-3),
        rb.PrescribedForce("link2", rb.Signal.sines(0.3, 200.0)),
    ]


def check_end(stepper, sample, motion, of_motion=0):
    """Compare the state of a sample with the end of a motion, bit for bit."""
    np.testing.assert_array_equal(stepper.q[sample], motion.end_q[of_motion])
    np.testing.assert_array_equal(stepper.qd[sample], motion.end_qd[of_motion])


def fresh(sample, steps, ids=None, q=None, qd=None, model=None, **settings):
    """The motion of one sample from its start."""
    rows = slice(sample, sample + 1)
    states = [given[rows] if new is None else np.array([new]) for given, new in ((Q, q), (QD, qd))]
    settings = {"method": "rk4", "step": STEP, "drives": controllers(ids)} | settings
    model = arm(rows) if model is None else model
    return model.simulate(*states, steps * STEP, save_at=[steps * STEP], on_failure="ignore", **settings)
