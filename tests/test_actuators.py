"""Actuators that are built from joints and drives: motors, series elasticity and backlash, against closed forms."""

import math

import numpy as np
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python


def about_z(inertia):
    return rb.Inertia(mass=1.0, inertia=(inertia, inertia, inertia))


def test_a_motor_at_constant_voltage():
    """Speed and current of a DC motor without inductance: w = w0 (1 - exp(-t / T)), T = J R / (k^2 n^2)."""
    k, R, n, J, voltage = 0.05, 0.8, 10.0, 0.3, 6.0
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    passive = rb.PassiveForces(damping=n**2 * k**2 / R)
    builder.add_body("shaft", joint=rb.Revolute((0, 0, 1)), inertia=about_z(J), passive=passive)
    drive = rb.PrescribedForce("shaft", n * k / R * voltage)
    motion = builder.build().simulate([[0.0]], [[0.0]], 2.0, method="rk4", step=0.02, drives=[drive], save_at=5)
    speed = voltage / (n * k) * (1 - np.exp(-motion.t * n**2 * k**2 / (R * J)))
    # rk4 with h / T = 0.02: local errors (h / T)^5 / 120
    np.testing.assert_allclose(motion.qd[0, :, 0], speed, rtol=0, atol=voltage / (n * k) * 1e-9)


def test_series_elasticity():
    """Motor and link oscillate against each other with the frequency sqrt(k (1 / J_motor + 1 / J_link))."""
    motor_inertia, link_inertia, stiffness, twist = 0.4, 0.1, 30.0, 0.05
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("motor", joint=rb.Revolute((0, 0, 1)), inertia=about_z(motor_inertia))
    builder.add_body(
        "link",
        parent="motor",
        joint=rb.Revolute((0, 0, 1)),
        inertia=about_z(link_inertia),
        passive=rb.PassiveForces(stiffness=stiffness),
    )
    w = math.sqrt(stiffness * (1 / motor_inertia + 1 / link_inertia))
    motion = builder.build().simulate([[0.0, twist]], [[0.0, 0.0]], 0.4, method="rk4", step=5e-3, save_at=9)
    # the global error of rk4 is (w h)^5 / 120 in each step
    atol = twist * (w * 5e-3) ** 5 / 120 * 80
    np.testing.assert_allclose(motion.q[0, :, 1], twist * np.cos(w * motion.t), rtol=0, atol=atol)
    # no moment acts from outside: the mean angle stays
    share = link_inertia / (motor_inertia + link_inertia)
    np.testing.assert_allclose(motion.q[0, :, 0] + share * motion.q[0, :, 1], share * twist, rtol=0, atol=1e-15)


def test_backlash():
    """The link crosses its play at constant speed, is in contact for half a period, and comes back as fast."""
    inertia, play, teeth, speed = 0.2, 0.02, 400.0, 0.1
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("motor", joint=rb.Revolute((0, 0, 1)), inertia=about_z(inertia))
    gap = rb.PassiveForces(lower_limit=-play / 2, upper_limit=play / 2, limit_stiffness=teeth)
    builder.add_body("link", parent="motor", joint=rb.Revolute((0, 0, 1)), inertia=about_z(inertia), passive=gap)
    contact = math.pi / math.sqrt(teeth * 2 / inertia)
    duration = play / speed + contact
    motion = builder.build().simulate([[0.0, 0.0]], [[0.0, speed]], duration, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(motion.q[0, -1, 1], 0.0, rtol=0, atol=1e-7)
    np.testing.assert_allclose(motion.qd[0, -1, 1], -speed, rtol=1e-6)
    np.testing.assert_allclose(motion.qd[0, -1, 0], speed, rtol=1e-6)  # equal inertias exchange their speeds
