"""PID, computed torque and gravity compensation follow their linear equations, and limits hold."""

import numpy as np
import pytest

import rbchain as rb

from .models import BOTH, MASS, TIGHT, arm, columns, floater, linear_motion, reference_motion, slider, start, wave


@pytest.mark.parametrize("settings", BOTH)
def test_a_pid_loop_follows_its_linear_equation(settings):
    """m x'' = kp e + ki (integral of e) + kd e', by the matrix exponential; each sample follows its own parabola."""
    kp, kd, ki = np.array([30.0, 30.0, 8.0]), np.array([5.0, 0.0, 12.0]), np.array([20.0, 0.0, 3.0])
    r = np.array([[0.5, 0.0, 0.0], [0.0, 1.0, -0.5], [-1.0, 0.3, 0.4]])
    drive = rb.PID("slide", rb.Signal.polynomial(r), kp=kp, kd=kd, ki=ki)
    q0, qd0 = columns(0.0, 0.3, -0.5), columns(0.0, -1.0, 1.0)
    motion = slider().simulate(q0, qd0, 2.0, drives=[drive], save_at=5, **settings)
    for i in range(3):
        A = np.zeros((6, 6))  # of x, v, integral, 1, t, t^2
        A[0, 1], A[4, 3], A[5, 4] = 1.0, 1.0, 2.0
        A[2, 0], A[2, 3:] = -1.0, r[i]
        A[1] = kp[i] * A[2] + ki[i] * np.eye(6)[2] + kd[i] * (np.array([0, -1.0, 0, r[i, 1], 2 * r[i, 2], 0]))
        A[1] /= MASS
        expected = linear_motion(A, np.array([q0[i, 0], qd0[i, 0], 0, 1, 0, 0]), motion.t)
        np.testing.assert_allclose(motion.q[i, :, 0], expected[:, 0], rtol=0, atol=1e-9)
        np.testing.assert_allclose(motion.qd[i, :, 0], expected[:, 1], rtol=0, atol=1e-9)
        np.testing.assert_allclose(motion.tau[i, :, 0], MASS * (expected @ A.T)[:, 1], rtol=0, atol=1e-8)
        np.testing.assert_allclose(motion.qdd[i, :, 0], (expected @ A.T)[:, 1], rtol=0, atol=1e-8)


def test_a_motor_saturates_at_its_limit():
    limit = np.array([5.0, 12.0, 1e3])
    drive = rb.PID("slide", rb.Signal.sines(1.0, 3.0), kp=40.0, kd=4.0, limit=limit)
    times = np.linspace(0, 2, 41)
    motion = slider().simulate(np.zeros((3, 1)), np.zeros((3, 1)), 2.0, drives=[drive], save_at=times, **TIGHT)
    for i in range(3):

        def force(t, x, v, i=i):
            return np.clip(40.0 * (np.sin(3 * t) - x) + 4.0 * (3 * np.cos(3 * t) - v), -limit[i], limit[i])

        expected = reference_motion(lambda t, y, f=force: [y[1], f(t, *y) / MASS], [0.0, 0.0], times, max_step=0.005)
        np.testing.assert_allclose(motion.q[i, :, 0], expected[:, 0], rtol=0, atol=1e-7)
        np.testing.assert_allclose(motion.tau[i, :, 0], force(times, *expected.T), rtol=0, atol=1e-5)
    largest, smallest = motion.tau.max((1, 2)), motion.tau.min((1, 2))
    assert (largest[:2] == limit[:2]).all()
    assert (smallest[:2] == -limit[:2]).all()
    assert largest[2] < limit[2]


def test_no_type_of_drive_exceeds_its_limit():
    """All demand more than their limit, including gravity compensation."""
    model = arm()
    names, limits = model.joint_names, np.array([0.02, 0.03, 0.05, 0.04])
    drives = [
        rb.PrescribedForce(names[0], 5.0, limit=limits[0], gravity_compensation=True),
        rb.ComputedTorque(names[1], 2.0, kp=100.0, kd=1.0, limit=limits[1]),
        rb.PID(names[2], -2.0, kp=100.0, limit=limits[2], dof=0),
        rb.PrescribedForce(names[2], rb.Signal.polynomial([-7.0, -1.0]), limit=limits[3], dof=1),
    ]
    motion = model.simulate(*start(model, 3), 0.1, drives=drives, save_at=5)
    assert (np.abs(motion.tau) <= limits).all()
    assert (motion.tau[:, 0, [0, 3]] == [0.02, -0.04]).all()
    assert (np.abs(motion.tau) == limits).any((0, 1)).all()
    needed = model.inverse_dynamics(motion.q, motion.qd, motion.qdd)
    np.testing.assert_allclose(motion.tau, needed, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", ["force", "pid"])
def test_gravity_compensation_holds_a_mechanism_still_in_any_position(kind):
    model = arm()
    q, _ = start(model, 4)
    dofs = [(0, 0), (1, 0), (2, 0), (2, 1)]
    drives = [
        rb.PrescribedForce(model.joint_names[j], 0.0, dof=dof, gravity_compensation=True)
        if kind == "force"
        else rb.PID(model.joint_names[j], q[:, j + dof], kp=5.0, kd=1.0, gravity_compensation=True, dof=dof)
        for j, dof in dofs
    ]
    motion = model.simulate(q, np.zeros((4, 4)), 1.0, drives=drives, save_at=2)
    np.testing.assert_allclose(motion.q[:, 1], q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.tau[:, 0], model.gravity_forces(q), rtol=0, atol=1e-12)
    assert np.abs(motion.tau).max() > 0.1


def test_gravity_compensation_depends_on_the_positions_only():
    """The torque is a force plus the gravity force of the joint, in a moving mechanism with wrenches and friction."""
    model = arm().vary(damping=np.full(4, 0.1))
    drives = [
        rb.PrescribedForce(model.joint_names[j], 0.1 * (j + 1), dof=0, gravity_compensation=j != 1) for j in range(3)
    ]
    wrench = rb.Wrench(model.body_names[2], force=(1.0, 2.0, 3.0))
    motion = model.simulate(*start(model, 3), 0.3, drives=drives, forces=[wrench], save_at=4)
    weight = model.gravity_forces(motion.q) * [1.0, 0.0, 1.0, 0.0]
    np.testing.assert_allclose(motion.tau, [0.1, 0.2, 0.3, 0.0] + weight, rtol=0, atol=1e-12)


def computed_torques(model, reference, **gains):
    joints = [(name, dof) for name, dof in zip(model.joint_names, (1, 1, 2), strict=True) for dof in range(dof)]
    return [rb.ComputedTorque(name, reference[i], dof=dof, **gains) for i, (name, dof) in enumerate(joints)]


@pytest.mark.parametrize("settings", [TIGHT, {"method": "rk4", "step": 5e-4}])
def test_computed_torque_tracks_its_reference(settings):
    """The motion starts on the reference: sines, a polynomial, a table, and sines per sample."""
    model, times = arm(), np.linspace(0, 1, 6)
    table = rb.Signal.table([0, 0.3, 0.6, 1.0], np.random.default_rng(2).normal(size=(3, 4)))
    reference = [rb.Signal.sines(0.5, 3.0, phase=0.2), rb.Signal.polynomial([0.1, -0.5, 0.7, 1.0]), table, wave(0)]
    at = [np.stack([np.broadcast_to(r(times, order), (3, 6)) for r in reference], -1) for order in range(3)]
    drives = computed_torques(model, reference, kp=50.0, kd=15.0)
    motion = model.simulate(at[0][:, 0], at[1][:, 0], 1.0, drives=drives, save_at=times, **settings)
    np.testing.assert_allclose(motion.q, at[0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(motion.qd, at[1], rtol=0, atol=1e-8)
    np.testing.assert_allclose(motion.tau, model.inverse_dynamics(*at), rtol=0, atol=1e-6)


def test_tracking_errors_under_computed_torque_obey_their_linear_equations():
    """e'' + kd e' + kp e + ki (integral of e) = 0 at every joint, with the gains of each sample."""
    model = arm()
    kp, kd, ki = np.array([20.0, 30.0, 9.0]), np.array([4.0, 15.0, 6.0]), np.array([0.0, 10.0, 5.0])
    reference = [rb.Signal.sines(0.5, 3.0, phase=0.2), rb.Signal.polynomial([0.1, -0.5, 0.7]), 0.3, wave(0)]
    q0, qd0 = start(model, 3)
    drives = computed_torques(model, reference, kp=kp, kd=kd, ki=ki)
    motion = model.simulate(q0, qd0, 1.0, drives=drives, save_at=5, **TIGHT)
    signals = [*reference[:2], rb.Signal.constant(0.3), reference[3]]
    for i in range(3):
        A = np.array([[0, 1, 0], [-kp[i], -kd[i], -ki[i]], [1, 0, 0]])
        for j, signal in enumerate(signals):
            r, rate = (np.broadcast_to(signal(motion.t, order), (3, 5))[i] for order in (0, 1))
            e = linear_motion(A, [r[0] - q0[i, j], rate[0] - qd0[i, j], 0.0], motion.t)
            np.testing.assert_allclose(r - motion.q[i, :, j], e[:, 0], rtol=0, atol=1e-8)
            np.testing.assert_allclose(rate - motion.qd[i, :, j], e[:, 1], rtol=0, atol=1e-8)


def test_computed_torque_accounts_for_the_drives_of_other_joints():
    """On a floating hull, it accounts for the fin's drive with gravity compensation and for a prescribed velocity."""
    model = floater().vary(
        stiffness=np.zeros(9), cubic_stiffness=np.zeros(9), damping=np.zeros(9), friction=np.zeros(9),
        static_friction=np.zeros(9), limit_stiffness=np.zeros(9), stop_lower=np.full(9, -np.inf),
        stop_upper=np.full(9, np.inf),
    )  # fmt: skip
    drives = [
        rb.ComputedTorque("arm", wave(0), kp=20.0, kd=4.0),
        rb.PID("fin", 0.5, kp=3.0, kd=0.3, ki=1.0, dof=0, gravity_compensation=True),
        rb.PrescribedVelocity("fin", wave(0), dof=1),
        rb.PrescribedForce("hull", 2.0, dof=1),
    ]
    q0, qd0 = start(model, 3)
    motion = model.simulate(q0, qd0, 1.0, drives=drives, save_at=5, **TIGHT)
    A = np.array([[0, 1], [-20.0, -4.0]])
    r, rate = wave(0)(motion.t), wave(0)(motion.t, 1)
    for i in range(3):
        e = linear_motion(A, [r[i, 0] - q0[i, 7], rate[i, 0] - qd0[i, 6]], motion.t)
        np.testing.assert_allclose(r[i] - motion.q[i, :, 7], e[:, 0], rtol=0, atol=1e-8)
    needed = model.inverse_dynamics(motion.q, motion.qd, motion.qdd)
    np.testing.assert_allclose(motion.tau, needed, rtol=0, atol=1e-11 * np.abs(needed).max())


@pytest.mark.parametrize("disturbance", ["wrench", "spring"])
def test_computed_torque_does_not_compensate_disturbances(disturbance):
    """A force F on a mass m leaves the error e = -F / (m kp); with integral action the error vanishes."""
    model, forces = slider(), [rb.Wrench("slide", force=(3.0, 0.0, 0.0))]
    if disturbance == "spring":
        model, forces = slider(stiffness=1.0, rest_position=3.0), []
    for ki, expected in ((0.0, 3.0 / (MASS * 25.0 + (disturbance == "spring"))), (20.0, 0.0)):
        drive = rb.ComputedTorque("slide", 0.0, kp=25.0, kd=10.0, ki=ki)
        motion = model.simulate(np.zeros((2, 1)), np.zeros((2, 1)), 20.0, drives=[drive], forces=forces, save_at=2)
        np.testing.assert_allclose(motion.q[:, 1, 0], expected, rtol=0, atol=1e-7)
