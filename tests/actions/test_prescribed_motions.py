"""Joints with prescribed motions follow their signals, and report the forces that this needs."""

import numpy as np
import pytest

import rbchain as rb

from .models import BOTH, TIGHT, floater, reference_motion, start, wave


@pytest.mark.parametrize("settings", BOTH)
def test_prescribed_joints_follow_their_signals_and_report_their_forces(settings):
    model = floater()
    table = rb.Signal.table([0, 0.2, 0.5, 0.8], np.random.default_rng(1).normal(size=(3, 4)))
    turn = rb.Signal.polynomial([0.2, 1.0, -2.0, 0.5])
    drives = [
        rb.PrescribedPosition("arm", wave(0, 0.1)),
        rb.PrescribedVelocity("hull", table, dof=5),
        rb.PrescribedAcceleration("fin", turn, dof=0),
    ]
    q0, qd0 = start(model, 3)
    motion = model.simulate(q0, qd0, 0.8, drives=drives, save_at=9, **settings)
    assert motion.success
    hull, fin, arm_at = 5, 7, 6
    # at the prescribed position to the last bit, with the exact derivatives as accelerations
    assert np.array_equal(motion.q[..., 7], wave(0, 0.1)(motion.t))
    assert np.array_equal(motion.qd[..., arm_at], wave(0)(motion.t, 1))
    assert np.array_equal(motion.qd[..., hull], table(motion.t))
    assert (q0[:, 7] != motion.q[:, 0, 7]).all()
    np.testing.assert_allclose(motion.qdd[..., arm_at], wave(2)(motion.t), rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.qdd[..., hull], table(motion.t, 1), rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.qdd[..., fin] - turn(motion.t), 0.0, rtol=0, atol=1e-12)
    integral = np.polynomial.Polynomial([0.2, 1.0, -2.0, 0.5]).integ()(motion.t)
    np.testing.assert_allclose(motion.qd[..., fin], qd0[:, None, fin] + integral, rtol=0, atol=1e-9)
    needed = model.inverse_dynamics(motion.q, motion.qd, motion.qdd) - model.passive_forces(motion.q, motion.qd)
    np.testing.assert_allclose(motion.tau, needed, rtol=0, atol=1e-12 * np.abs(needed).max())
    free = np.delete(np.arange(model.nv), [hull, arm_at, fin])
    assert not motion.tau[..., free].any()
    assert np.abs(motion.tau[..., [hull, arm_at, fin]]).min() > 0.0


@pytest.mark.parametrize(("kind", "order"), [("Position", 0), ("Velocity", 1), ("Acceleration", 2)])
def test_a_pendulum_on_a_cart_with_prescribed_motion_follows_its_equation(kind, order):
    """l th'' = -g sin(th) - x'' cos(th), with prescribed position, velocity or acceleration of the cart."""
    builder = rb.ModelBuilder(gravity=(0, -9.81, 0))
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(3.0))
    builder.add_body("bob", parent="cart", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(0.5, cg=(0, -0.8, 0)))
    model, times = builder.build(), np.linspace(0, 2, 5)
    drive = getattr(rb, f"Prescribed{kind}")("cart", wave(order))
    q0, qd0 = np.zeros((3, 2)), np.zeros((3, 2))
    q0[:, 0], qd0[:, 0], q0[:, 1] = wave(0)([0.0])[:, 0], wave(1)([0.0])[:, 0], (0.5, 1.0, -2.0)
    motion = model.simulate(q0, qd0, 2.0, drives=[drive], save_at=times, **TIGHT)
    np.testing.assert_allclose(motion.q[..., 0], wave(0)(times), rtol=0, atol=1e-10)
    for i in range(3):

        def rate(t, y, i=i):
            return [y[1], -(9.81 * np.sin(y[0]) + wave(2)(np.array([t]))[i, 0] * np.cos(y[0])) / 0.8]

        expected = reference_motion(rate, [q0[i, 1], 0.0], times)
        np.testing.assert_allclose(motion.q[i, :, 1], expected[:, 0], rtol=0, atol=1e-9)
        np.testing.assert_allclose(motion.qd[i, :, 1], expected[:, 1], rtol=0, atol=1e-9)
