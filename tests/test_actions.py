"""Drives, forces and events over time: compared with closed forms, SciPy's integrator and the work that they do."""

from functools import partial

import numba
import numpy as np
import pytest
from scipy.integrate import cumulative_simpson, solve_ivp
from scipy.interpolate import CubicSpline, PPoly
from scipy.linalg import expm
from scipy.optimize import brentq
from scipy.special import ellipj, ellipk, ellipkinc

import rbchain as rb
from rbchain.drivers.trajectories import integrate_batch

from .mechanisms import random_inertia, random_rotation, random_tree

DONE, STOPPED, TOO_STIFF = 0, 4, 5
TIGHT = {"rtol": 1e-11, "atol": 1e-12}
RK4 = {"method": "rk4", "step": 1e-3}
BOTH = [TIGHT, RK4]
MASS = 2.0


def slider(**passive):
    """2 kg along x, without gravity."""
    builder, own = rb.ModelBuilder(gravity=(0, 0, 0)), rb.PassiveForces(**passive)
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(MASS), passive=own)
    return builder.build()


def arm():
    """Three joints of different types under gravity, with random placements."""
    return random_tree(31, [-1, 0, 1], ("revolute", "screw", "universal"))


def floater(stops=True):
    """A floating hull with an elastic arm, a rotated hand and a fin of two axes; all joints have friction."""
    rng = np.random.default_rng(5)
    builder = rb.ModelBuilder(gravity=(0.3, -1.0, -9.81))
    drag = rb.PassiveForces(damping=(0.5, 0.6, 0.7, 0.1, 0.2, 0.3))
    sticky = rb.PassiveForces(
        stiffness=2.0, rest_position=0.2, cubic_stiffness=1.0, friction=0.3, static_friction=0.5, friction_velocity=0.3
    )
    limits = {"lower_limit": -0.4, "upper_limit": 0.4, "limit_stiffness": 50.0, "limit_damping": 0.5} if stops else {}
    builder.add_body("hull", joint=rb.Free(), inertia=random_inertia(rng), passive=drag)
    builder.add_body(
        "arm",
        parent="hull",
        joint=rb.Revolute((1, 2, 3)),
        placement=rb.Pose((0.3, 0.1, 0.2), random_rotation(rng)),
        inertia=random_inertia(rng),
        rotor_inertia=1e-5,
        gear_ratio=50.0,
        passive=sticky,
    )
    builder.add_body("hand", parent="arm", joint=rb.Fixed(), placement=rb.Pose((0.2, -0.1, 0.4), random_rotation(rng)))
    builder.add_body("tip", parent="arm", joint=rb.Fixed(), placement=rb.Pose((0.2, 0.3, 0.1)))
    builder.add_body(
        "fin",
        parent="hull",
        joint=rb.Universal(),
        placement=rb.Pose((-0.3, 0.1, 0.0), random_rotation(rng)),
        inertia=random_inertia(rng),
        passive=rb.PassiveForces(damping=0.2, **limits),
    )
    return builder.build()


def start(model, n, seed=0):
    q, qd = model.random_state(np.random.default_rng(seed), n)
    if model.nq == model.nv:
        return 0.5 * q, 0.5 * qd
    q[:, 7:] *= 0.2
    return q, 0.5 * qd


def columns(*numbers):
    """Initial states of one coordinate, one per sample."""
    return np.array(numbers, float)[:, None]


def linear_motion(A, x0, times):
    """x(t) of dx/dt = A x, (times, states)."""
    return np.array([expm(A * t) @ x0 for t in times])


def reference_motion(rate, y0, times, **settings):
    """The solution of SciPy's DOP853, (times, states)."""
    settings = {"rtol": 1e-12, "atol": 1e-13} | settings
    return solve_ivp(rate, (0, times[-1]), y0, method="DOP853", t_eval=times, **settings).y.T


# --- joints by themselves ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", BOTH)
@pytest.mark.parametrize("damping", [1.0, 20.0])
def test_a_driven_damped_oscillator_follows_its_closed_form(damping, settings):
    """m x'' + d x' + k (x - r) = b + F sin(w t + p). Each sample has its own F, w and p; one is at resonance."""
    k, rest, offset = 18.0, 0.3, 0.7
    force, phase = np.array([1.0, 2.0, -3.0, 0.0]), np.array([0.0, 0.4, -1.0, 0.0])
    w = np.array([0.5, np.sqrt(k / MASS), 8.0, 1.0])
    drive = rb.PrescribedForce("slide", rb.Signal.sines(force[:, None], w[:, None], phase[:, None], offset))
    q0, qd0 = columns(0.5, -0.2, 0.0, 1.0), columns(0.0, 1.0, 2.0, -1.0)
    model = slider(stiffness=k, damping=damping, rest_position=rest)
    motion = model.simulate(q0, qd0, 3.0, drives=[drive], save_at=7, **settings)
    roots = np.roots([MASS, damping, k]).astype(complex)
    for i in range(4):
        steady = force[i] * np.exp(1j * phase[i]) / (k - MASS * w[i] ** 2 + 1j * w[i] * damping)
        middle = rest + offset / k
        left = [q0[i, 0] - middle - steady.imag, qd0[i, 0] - (1j * w[i] * steady).imag]
        parts = np.linalg.solve([[1, 1], roots], left)
        own = parts[0] * np.exp(roots[0] * motion.t) + parts[1] * np.exp(roots[1] * motion.t)
        expected = middle + (steady * np.exp(1j * w[i] * motion.t)).imag + own.real
        np.testing.assert_allclose(motion.q[i, :, 0], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("cubic", [40.0, -4.0])
def test_a_cubic_spring_gives_the_duffing_oscillator(cubic):
    """A hardening and a softening spring, compared with SciPy."""
    model = slider(stiffness=5.0, cubic_stiffness=cubic, rest_position=-0.1, damping=0.3)
    q0, times = columns(0.9, 0.5, -0.6), np.linspace(0, 4, 9)
    motion = model.simulate(q0, np.zeros((3, 1)), 4.0, save_at=times, **TIGHT)

    def rate(t, y):
        x = y[0] + 0.1
        return [y[1], -(5.0 * x + cubic * x**3 + 0.3 * y[1]) / MASS]

    for i in range(3):
        expected = reference_motion(rate, [q0[i, 0], 0.0], times)
        np.testing.assert_allclose(motion.q[i, :, 0], expected[:, 0], rtol=0, atol=1e-9)
        np.testing.assert_allclose(motion.qd[i, :, 0], expected[:, 1], rtol=0, atol=1e-9)


def test_coulomb_friction_decelerates_a_fast_slider_at_a_constant_rate():
    """The regularised friction is below Coulomb's by a share of (friction_velocity / v)^2 / 2, at most 2e-12."""
    motion = slider(friction=3.0, friction_velocity=1e-6).simulate(
        columns(0.0, 0.0, 1.0), columns(3.0, -3.0, 2.5), 1.0, save_at=5, **TIGHT
    )
    sign, v0, x0 = np.array([[1.0], [-1.0], [1.0]]), np.array([[3.0], [-3.0], [2.5]]), np.array([[0.0], [0.0], [1.0]])
    np.testing.assert_allclose(motion.qd[..., 0], v0 - sign * 1.5 * motion.t, rtol=0, atol=1e-10)
    np.testing.assert_allclose(motion.q[..., 0], x0 + v0 * motion.t - sign * 0.75 * motion.t**2, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("forwards", "backwards"), [(4.0, 2.0), (1.0, 3.5), (3.0, 0.0), (0.0, 3.0)])
def test_friction_may_differ_between_the_two_directions(forwards, backwards):
    """The regularised friction is below Coulomb's by a share of (friction_velocity / v)^2 / 2, at most 5e-13."""
    model = slider(
        friction=(forwards + backwards) / 2, friction_asymmetry=(forwards - backwards) / 2, friction_velocity=1e-6
    )
    v0 = np.array([3.0, -3.0, 10.0, -10.0])
    for settings in BOTH:
        motion = model.simulate(np.zeros((4, 1)), v0[:, None], 1.0, save_at=5, **settings)
        slowing = -np.where(v0 > 0, forwards, -backwards)[:, None] / MASS
        np.testing.assert_allclose(motion.qd[..., 0], v0[:, None] + slowing * motion.t, rtol=0, atol=1e-10)
        way = v0[:, None] * motion.t + slowing * motion.t**2 / 2
        np.testing.assert_allclose(motion.q[..., 0], way, rtol=0, atol=1e-10)


def test_a_slider_pulled_by_less_than_its_friction_creeps_at_the_predicted_speed():
    """F v / sqrt(v^2 + v0^2) = G gives v = v0 G / sqrt(F^2 - G^2)."""
    force = np.array([0.0, 1.0, -2.0])
    for forwards, backwards in ((3.0, 3.0), (2.0, 4.0)):
        own = {"friction": (forwards + backwards) / 2, "friction_asymmetry": (forwards - backwards) / 2}
        model, pull = slider(friction_velocity=0.01, **own), rb.PrescribedForce("slide", force)
        motion = model.simulate(np.zeros((3, 1)), columns(0.1, 0.0, 0.2), 1.0, drives=[pull])
        friction = np.where(force > 0, forwards, backwards)
        creep = 0.01 * force / np.sqrt(friction**2 - force**2)
        np.testing.assert_allclose(motion.qd[:, -1, 0], creep, rtol=0, atol=1e-8)


def friction_curve(v, friction, static, stribeck, smooth, asymmetry=0.0):
    size = friction + (static - friction) / (1 + (v / stribeck) ** 2) + asymmetry * np.sign(v)
    return -size * v / np.hypot(v, smooth)


@pytest.mark.parametrize(("friction", "static"), [(1.0, 2.5), (0.0, 2.0), (1.5, 1.5)])
def test_friction_follows_the_stribeck_curve(friction, static):
    model = slider(friction=friction, static_friction=static, stribeck_velocity=0.2, friction_velocity=0.05)
    v = np.concatenate([-np.logspace(-4, 1, 30), [0.0], np.logspace(-4, 1, 30)])
    found = model.passive_forces(np.zeros((61, 1)), v[:, None])[:, 0]
    np.testing.assert_allclose(found, friction_curve(v, friction, static, 0.2, 0.05), rtol=1e-14, atol=0)
    times = np.linspace(0, 1.0, 6)
    motion = model.simulate(np.zeros((2, 1)), columns(1.0, -0.3), 1.0, save_at=times, **TIGHT)
    for i, v0 in enumerate((1.0, -0.3)):

        def rate(t, y):
            return friction_curve(y, friction, static, 0.2, 0.05) / MASS

        expected = reference_motion(rate, [v0], times)
        np.testing.assert_allclose(motion.qd[i, :, 0], expected[:, 0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("asymmetry", [1.0, -0.25, -1.0])
@pytest.mark.parametrize("static", [1.0, 2.5])
def test_asymmetric_friction_follows_the_stribeck_curve_in_every_precision_and_batch(static, asymmetry):
    """For one state, in lanes with shared and own parameters, and in float32. `test_one_source` checks plain Python."""
    numbers = {"friction": 1.0, "static_friction": static, "friction_asymmetry": asymmetry}
    model = slider(stribeck_velocity=0.2, friction_velocity=0.05, **numbers)
    v = np.concatenate([-np.logspace(-4, 1, 30), [0.0], np.logspace(-4, 1, 30)])[:, None]
    expected, q = friction_curve(v, 1.0, static, 0.2, 0.05, asymmetry), np.zeros((61, 1))
    found = model.passive_forces(q, v)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0)
    assert (found * v <= 0).all()
    assert np.array_equal(found, [model.passive_forces(q[0], one) for one in v])
    odd = np.arange(61)[:, None] % 2 == 1
    each = model.vary(friction_asymmetry=np.where(odd, asymmetry, 0.0)).passive_forces(q, v)
    without = friction_curve(v, 1.0, static, 0.2, 0.05)
    np.testing.assert_allclose(each, np.where(odd, expected, without), rtol=1e-14, atol=0)
    single = model.passive_forces(q.astype(np.float32), v.astype(np.float32))
    assert single.dtype == np.float32
    # friction that cancels leaves the round-off of 1
    np.testing.assert_allclose(single, expected, rtol=4e-6, atol=2e-6)


def test_the_energy_loss_equals_the_work_of_asymmetric_friction():
    """The energy of a triple pendulum is its initial energy minus the work of friction, and it never grows."""
    chain = rb.Model.serial_chain(3, length=0.5, mass=1.0)
    numbers = {"friction": 0.3, "friction_asymmetry": np.array([0.3, -0.2, 0.1]), "friction_velocity": 0.5}
    chain = chain.vary(**{name: np.broadcast_to(x, 3) for name, x in numbers.items()})
    q, qd = np.array([[0.1, 0.5, -0.3], [-2.0, 0.3, 0.2]]), np.array([[0.0, 0.0, 1.0], [2.0, -3.0, 1.0]])
    count, duration = 4001, 2.0
    motion = chain.simulate(q, qd, duration, save_at=count, **TIGHT)
    assert ((motion.qd > 0.1).any(1) & (motion.qd < -0.1).any(1)).any()
    energy = sum(chain.energy(motion.q, motion.qd))
    power = (chain.passive_forces(motion.q, motion.qd) * motion.qd).sum(-1)
    assert (power <= 0).all()
    lost = cumulative_simpson(power, dx=duration / (count - 1), initial=0.0)
    scale = np.abs(energy - energy[:, :1]).max()
    np.testing.assert_allclose(energy - energy[:, :1], lost, rtol=0, atol=1e-6 * scale)
    assert (np.diff(energy) < 1e-9 * scale).all()


def test_a_stop_without_damping_returns_the_kinetic_energy():
    """The contact lasts half a period, pi sqrt(m / k), at either end, and the speed after it is the same."""
    k, v = 800.0, np.array([1.0, 3.0, -2.0])
    model = slider(lower_limit=-0.7, upper_limit=0.5, limit_stiffness=k)
    times = np.linspace(0, 1.2, 61)
    motion = model.simulate(np.zeros((3, 1)), v[:, None], 1.2, save_at=times, **TIGHT)
    w, limit = np.sqrt(k / MASS), np.where(v > 0, 0.5, -0.7)
    for i in range(3):
        inside = times - limit[i] / v[i]
        after = inside - np.pi / w
        in_stop = limit[i] + v[i] / w * np.sin(w * inside)
        expected = np.where(inside < 0, v[i] * times, np.where(after < 0, in_stop, limit[i] - v[i] * after))
        here = (v[i] * after < 1.0) & (-v[i] * after < 1.0)  # before it reaches the other end
        assert (after[here] > 0).any()
        # at each contact the force has a kink within a step, whose error the step control detects
        np.testing.assert_allclose(motion.q[i, here, 0], expected[here], rtol=0, atol=1e-8)


def test_a_hunt_crossley_stop_dissipates_the_predicted_energy():
    """From m v dv = -k x (1 + d v) dx, v / d - ln(1 + d v) / d^2 is the same on the way in and out, at either end."""
    d, v = 0.6, np.array([0.5, 2.0, 6.0, -2.0, -6.0])
    model = slider(lower_limit=-0.1, upper_limit=0.1, limit_stiffness=500.0, limit_damping=d)
    events = [rb.Event("slide", value=np.sign(v) * 0.1, direction=0, stop=False)]
    motion = model.simulate(np.zeros((5, 1)), v[:, None], 0.5, events=events, **TIGHT)
    way = np.abs(v) / d - np.log1p(d * np.abs(v)) / d**2
    out = [brentq(lambda u, g=g: u / d - np.log1p(d * u) / d**2 - g, -1 / d + 1e-12, -1e-9, xtol=1e-15) for g in way]
    assert (motion.events[0].count >= 2).all()
    # the force has a kink within the step of the contact
    np.testing.assert_allclose(motion.events[0].qd[:, 0, 0], v, rtol=0, atol=1e-8)
    np.testing.assert_allclose(motion.events[0].qd[:, 1, 0], np.sign(v) * out, rtol=0, atol=1e-8)


def test_a_stop_never_pulls():
    """A joint that leaves faster than 1 / limit_damping loses contact with the stop."""
    model = slider(upper_limit=0.0, limit_stiffness=100.0, limit_damping=1.0)
    assert model.passive_forces(columns(0.1, 0.1, 0.1, -0.1), columns(-2.0, -1.0, -0.5, 3.0)).ravel() == pytest.approx(
        [0.0, 0.0, -5.0, 0.0], abs=0
    )


# --- prescribed motions -----------------------------------------------------------------------------------------------

WAVE = {"amplitude": [[0.3, 0.1], [-0.2, 0.05], [0.4, 0.0]], "angular_frequency": [2.0, 5.0], "phase": [0.3, 1.0]}


def wave(order, offset=0.0):
    """A derivative of those sines, as a signal again."""
    a, w, phase = (np.array(WAVE[name]) for name in ("amplitude", "angular_frequency", "phase"))
    return rb.Signal.sines(a * w**order, w, phase + order * np.pi / 2, offset)


@pytest.mark.parametrize("settings", BOTH)
def test_prescribed_joints_follow_their_signals_and_report_their_forces(settings):
    model = floater()
    table = rb.Signal.table([0, 0.2, 0.5, 0.8], np.random.default_rng(1).normal(size=(3, 4)))
    turn = rb.Signal.polynomial([0.2, 1.0, -2.0, 0.5])
    drives = [
        rb.PrescribedPosition("arm", wave(0, 0.1)),
        rb.PrescribedVelocity("hull", table, dof=5),
        rb.PrescribedAcceleration("fin", turn),
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
    builder.add_body("bob", parent="cart", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(0.5, (0, -0.8, 0)))
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


# --- controllers ------------------------------------------------------------------------------------------------------


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
    """All demand more than their limit, including gravity compensation and user forces at their joint."""
    model = arm()
    names, limits = model.joint_names, np.array([0.02, 0.03, 0.05, 0.04])
    drives = [
        rb.PrescribedForce(names[0], 5.0, limit=limits[0], gravity_compensation=True),
        rb.ComputedTorque(names[1], 2.0, kp=100.0, kd=1.0, limit=limits[1]),
        rb.PID(names[2], -2.0, kp=100.0, limit=limits[2]),
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
        rb.PrescribedForce(model.joint_names[j], 0.0, dof, gravity_compensation=True)
        if kind == "force"
        else rb.PID(model.joint_names[j], q[:, j + dof], kp=5.0, kd=1.0, gravity_compensation=True, dof=dof)
        for j, dof in dofs
    ]
    motion = model.simulate(q, np.zeros((4, 4)), 1.0, drives=drives)
    np.testing.assert_allclose(motion.q[:, 1], q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.tau[:, 0], model.gravity_forces(q), rtol=0, atol=1e-12)
    assert np.abs(motion.tau).max() > 0.1


def test_gravity_compensation_depends_on_the_positions_only():
    """The torque is a force plus the gravity force of the joint, in a moving mechanism with wrenches and friction."""
    model = arm().vary(damping=np.full(4, 0.1))
    drives = [rb.PrescribedForce(model.joint_names[j], 0.1 * (j + 1), gravity_compensation=j != 1) for j in range(3)]
    wrench = rb.Wrench(model.body_names[2], (1.0, 2.0, 3.0))
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
    reference = [rb.Signal.sines(0.5, 3.0, 0.2), rb.Signal.polynomial([0.1, -0.5, 0.7, 1.0]), table, wave(0)]
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
    reference = [rb.Signal.sines(0.5, 3.0, 0.2), rb.Signal.polynomial([0.1, -0.5, 0.7]), 0.3, wave(0)]
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
        static_friction=np.zeros(9), limit_stiffness=np.zeros(9), lower_limit=np.full(9, -np.inf),
        upper_limit=np.full(9, np.inf),
    )  # fmt: skip
    drives = [
        rb.ComputedTorque("arm", wave(0), kp=20.0, kd=4.0),
        rb.PID("fin", 0.5, kp=3.0, kd=0.3, ki=1.0, gravity_compensation=True),
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
    model, forces = slider(), [rb.Wrench("slide", (3.0, 0.0, 0.0))]
    if disturbance == "spring":
        model, forces = slider(stiffness=1.0, rest_position=3.0), []
    for ki, expected in ((0.0, 3.0 / (MASS * 25.0 + (disturbance == "spring"))), (20.0, 0.0)):
        drive = rb.ComputedTorque("slide", 0.0, kp=25.0, kd=10.0, ki=ki)
        motion = model.simulate(np.zeros((2, 1)), np.zeros((2, 1)), 20.0, drives=[drive], forces=forces)
        np.testing.assert_allclose(motion.q[:, 1, 0], expected, rtol=0, atol=1e-7)


# --- signals ----------------------------------------------------------------------------------------------------------

KNOTS = np.array([-0.2, 0.1, 0.45, 0.7, 1.5])
VALUES = np.random.default_rng(8).normal(size=(3, 5))
PIECES = np.random.default_rng(9).normal(size=(3, 4, 3))  # parabolas with jumps between them


def antiderivatives(kind, i):
    """The integral from 0 of the signal of sample i, by NumPy and SciPy."""
    if kind == "polynomial":
        return np.polynomial.Polynomial(VALUES[i]).integ()
    if kind == "sines":
        a, w, p = VALUES[i, :2], np.array([3.0, 7.0]), VALUES[i, 2:4]
        return lambda t: VALUES[i, 4] * t + (a / w * (np.cos(p) - np.cos(np.multiply.outer(t, w) + p))).sum(-1)
    pieces = {
        "linear": lambda: PPoly(np.stack([np.diff(VALUES[i]) / np.diff(KNOTS), VALUES[i, :-1]]), KNOTS),
        "cubic": lambda: CubicSpline(KNOTS, VALUES[i]),
        "scipy": lambda: PPoly(PIECES[..., i], KNOTS),
    }[kind]()
    whole = pieces.antiderivative()
    return lambda t: whole(t) - whole(0.0)


def signal_of(kind, of):
    """The signal of one sample, or of all: `of` selects from the first axis of VALUES."""
    return {
        "polynomial": lambda: rb.Signal.polynomial(VALUES[of]),
        "sines": lambda: rb.Signal.sines(VALUES[of][..., :2], [3.0, 7.0], VALUES[of][..., 2:4], VALUES[of][..., 4]),
        "linear": lambda: rb.Signal.table(KNOTS, VALUES[of], kind="linear"),
        "cubic": lambda: rb.Signal.table(KNOTS, VALUES[of]),
        "scipy": lambda: PPoly(PIECES[..., of], KNOTS),
    }[kind]()


@pytest.mark.parametrize("of", [slice(None), 1], ids=["each", "shared"])
@pytest.mark.parametrize("kind", ["polynomial", "sines", "linear", "cubic", "scipy"])
def test_the_momentum_is_the_integral_of_a_force_of_any_signal_type(kind, of):
    signal, times = signal_of(kind, of), np.linspace(0, 1.5, 16)
    motion = slider().simulate(
        np.zeros((3, 1)), np.zeros((3, 1)), 1.5, drives=[rb.PrescribedForce("slide", signal)], save_at=times, **TIGHT
    )
    for i in range(3):
        momentum = antiderivatives(kind, i if of == slice(None) else of)(times)
        # the error of a step that contains a jump is its length times the jump, so the step control makes it short
        np.testing.assert_allclose(MASS * motion.qd[i, :, 0], momentum, rtol=0, atol=1e-8)
    expected = (rb.Signal.pieces(signal) if kind == "scipy" else signal)(times)
    np.testing.assert_allclose(motion.tau[..., 0], np.broadcast_to(expected, (3, 16)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", ["polynomial", "sines", "cubic"])
def test_a_prescribed_position_of_any_smooth_signal_has_its_exact_derivatives(kind):
    for of in (slice(None), 2):
        signal = signal_of(kind, of)
        drives = [rb.PrescribedPosition("slide", signal)]
        motion = slider().simulate(np.zeros((3, 1)), np.zeros((3, 1)), 1.5, drives=drives, save_at=11, **RK4)
        for order, found in enumerate((motion.q, motion.qd, motion.qdd)):
            expected = np.broadcast_to(signal(motion.t, order), (3, 11))
            np.testing.assert_allclose(found[..., 0], expected, rtol=0, atol=1e-11)
        np.testing.assert_allclose(motion.tau, MASS * motion.qdd, rtol=1e-14)


# --- wrenches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", BOTH)
def test_a_spinning_disk_under_a_body_fixed_thrust_moves_in_a_circle(settings):
    """m v = F / w (sin wt, 1 - cos wt). With a thrust at the rim, a drive keeps the spin constant."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("disk", joint=rb.Free(), inertia=rb.Inertia(MASS, (0, 0, 0), (0.1, 0.1, 0.2)))
    model, w = builder.build(), np.array([[1.0], [3.0], [-2.0]])
    q, qd = np.tile([0, 0, 0, 0, 0, 0, 1.0], (3, 1)), np.zeros((3, 6))
    qd[:, 5] = w[:, 0]
    thrust = rb.Wrench("disk", force=(4.0, 0.0, 0.0), axes="body")
    motion = model.simulate(q, qd, 1.5, forces=[thrust], save_at=7, **settings)
    x = 4 / MASS / w**2 * np.stack([1 - np.cos(w * motion.t), w * motion.t - np.sin(w * motion.t)])
    np.testing.assert_allclose(motion.q[..., :2], np.moveaxis(x, 0, -1), rtol=0, atol=1e-9)
    aside = rb.Wrench("disk", force=(4.0, 0.0, 0.0), point=(0.0, -0.3, 0.0), axes="body")
    spun = model.simulate(q, qd, 1.5, forces=[aside], save_at=7, **settings)
    np.testing.assert_allclose(spun.qd[..., 5], w + 0.3 * 4.0 / 0.2 * spun.t, rtol=0, atol=1e-9)
    held = model.simulate(q, qd, 1.5, forces=[aside], drives=[rb.PrescribedVelocity("disk", w[:, 0], 5)], **settings)
    np.testing.assert_allclose(held.q[:, 1], motion.q[:, -1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(held.tau[..., 5], -1.2, rtol=0, atol=1e-12)


def all_wrenches():
    """Wrenches on bodies and frames, in world and body axes, shared and per sample, and their values.

    Of each: body or frame, axes, force (3, times, 3), moment, and point in that frame.
    """
    rng = np.random.default_rng(6)
    points, forces, moments = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
    pull = (wave(0), 1.5, rb.Signal.polynomial([0.3, -2.0]))
    wrenches = [
        rb.Wrench("hull", force=pull, moment=tuple(moments), point=points),
        rb.Wrench("fin", force=forces, moment=(0.0, wave(1), 0.0), point=(0.1, 0.2, 0.3), axes="body"),
        rb.Wrench("hand", force=(1.0, 2.0, 3.0), moment=(0.3, 0.2, 0.1), point=(0.0, 0.1, 0.2)),
        rb.Wrench("tip", force=(-1.0, 0.5, 2.0), point=(0.3, 0.0, 0.1), axes="body"),
    ]

    def numbers(t):
        each = np.ones((3, t.size, 1))
        pulled = np.stack([wave(0)(t), 1.5 * each[..., 0], (0.3 - 2.0 * t) * each[..., 0]], -1)
        turned = np.stack([0 * each[..., 0], wave(1)(t), 0 * each[..., 0]], -1)
        return [
            ("hull", "world", pulled, moments * each, points[:, None]),
            ("fin", "body", forces[:, None] * each, turned, [0.1, 0.2, 0.3]),
            ("hand", "world", [1.0, 2.0, 3.0] * each, [0.3, 0.2, 0.1] * each, [0.0, 0.1, 0.2]),
            ("tip", "body", [-1.0, 0.5, 2.0] * each, 0 * each, [0.3, 0.0, 0.1]),
        ]

    return wrenches, numbers


def wrenches_on_bodies(model, motion, numbers):
    """(3, times, bodies, 6): about the bodies' origins, in world axes."""
    bodies, total = model.body_poses(motion.q), np.zeros((*motion.q.shape[:-1], model.n_bodies, 6))
    for name, axes, *given, point in numbers(motion.t):
        body = model.fixed_frames[name] if name in model.fixed_frames else model.body_names.index(name)
        frame = model.frame_poses(motion.q, name)
        force, moment = (np.einsum("...ij,...j", frame.rotation, x) if axes == "body" else x for x in given)
        lever = frame.translation - bodies.translation[..., body, :] + np.einsum("...ij,...j", frame.rotation, point)
        total[..., body, :3] += force
        total[..., body, 3:] += moment + np.cross(lever, force)
    return total


@pytest.mark.parametrize("settings", [{}, RK4])
def test_wrenches_over_time_agree_with_inverse_dynamics(settings):
    model, (wrenches, numbers) = floater(), all_wrenches()
    motion = model.simulate(*start(model, 3), 0.5, forces=wrenches, save_at=6, **settings)
    total = wrenches_on_bodies(model, motion, numbers)
    passive = model.passive_forces(motion.q, motion.qd)
    # the joint forces equivalent to the wrenches have their power at unit velocities
    shares = [(model.body_velocities(motion.q, unit) * total).sum((-2, -1)) for unit in np.eye(model.nv)]
    needed = model.inverse_dynamics(motion.q, motion.qd, motion.qdd) - np.stack(shares, -1)
    assert not motion.tau.any()
    np.testing.assert_allclose(passive, needed, rtol=0, atol=1e-11 * np.abs(total).max())
    # the velocities are integrals of the accelerations, by central differences
    near = model.simulate(*start(model, 3), 0.5, forces=wrenches, save_at=[0.2 - 1e-4, 0.2, 0.2 + 1e-4], **TIGHT)
    slope = (near.qd[:, 2] - near.qd[:, 0]) / 2e-4
    np.testing.assert_allclose(slope, near.qdd[:, 1], rtol=0, atol=1e-5 * np.abs(slope).max())


def test_the_energy_changes_by_the_work_of_drives_friction_springs_and_wrenches():
    """The work is integrated by Gauss-Legendre quadrature over saved times."""
    model, (wrenches, numbers) = floater(stops=False), all_wrenches()
    model = model.vary(friction_velocity=np.full(9, 2.0), stribeck_velocity=np.full(9, 2.0))  # smooth enough
    drives = [
        rb.PID("arm", wave(0), kp=5.0, kd=0.5, ki=1.0),
        rb.PrescribedVelocity("fin", wave(1)),
        rb.PrescribedForce("fin", wave(1), dof=1, gravity_compensation=True),
        rb.UserForces(push, np.array([[1.0, 2.0], [0.5, 3.0], [2.0, 1.0]])),
    ]
    nodes, weights = np.polynomial.legendre.leggauss(10)
    edges = np.linspace(0, 0.6, 13)
    half = np.diff(edges)[:, None] / 2
    times = (edges[:-1, None] + half * (1 + nodes)).ravel()
    q0, qd0 = start(model, 3)
    motion = model.simulate(q0, qd0, 0.6, drives=drives, forces=wrenches, save_at=[0.0, *times, 0.6], **TIGHT)
    energy = sum(model.energy(motion.q, motion.qd))
    total = motion.tau + model.passive_forces(motion.q, motion.qd)
    power = model.power(motion.q, motion.qd, total, wrenches_on_bodies(model, motion, numbers))
    work = power[:, 1:-1] @ (half * weights).ravel()
    change = energy[:, -1] - energy[:, 0]
    assert (np.abs(change) > 0.1).all()
    np.testing.assert_allclose(work, change, rtol=0, atol=1e-8 * np.abs(energy).max())


# --- functions of the user's own --------------------------------------------------------------------------------------


def push(t, q, qd, parameters, out):
    out[1] += parameters[0] * np.sin(parameters[1] * t)
    out[6] -= 0.1 * qd[6]


def follow(t, q, qd, parameters, out):
    kp, kd, a, w = parameters
    out[0] += kp * (a * np.sin(w * t) - q[0]) + kd * (a * w * np.cos(w * t) - qd[0])
    out[3] += 0.5 * q[3]


@pytest.mark.parametrize("settings", BOTH)
def test_a_user_force_acts_like_the_equivalent_drive(settings):
    """With parameters per sample, together with a constant force, another drive and a spring."""
    model = arm()
    parameters = np.array([[5.0, 1.0, 0.3, 2.0], [3.0, 0.5, 0.1, 4.0], [8.0, 0.2, 0.2, 1.0]])
    kp, kd, a, w = parameters.T
    last, tau = model.joint_names[2], np.array([0.0, 0.1, 0.0, 0.0])
    other = rb.PrescribedForce(last, wave(0))
    ours = [rb.PID(model.joint_names[0], rb.Signal.sines(a[:, None], w[:, None]), kp=kp, kd=kd), other]
    q, qd = start(model, 3)
    theirs = [rb.UserForces(follow, parameters), other]
    # the spring with negative stiffness that is equivalent to `follow`
    away = model.vary(stiffness=[0, 0, 0, -0.5])
    one = away.simulate(q, qd, 0.5, tau=tau, drives=ours, save_at=4, **settings)
    two = model.simulate(q, qd, 0.5, tau=tau, drives=theirs, save_at=4, **settings)
    np.testing.assert_allclose(two.q, one.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(two.tau, one.tau + away.passive_forces(one.q, one.qd), rtol=0, atol=1e-8)
    compiled = [rb.UserForces(numba.njit(follow), parameters), other]
    assert np.array_equal(two.q, model.simulate(q, qd, 0.5, tau=tau, drives=compiled, save_at=4, **settings).q)


def test_a_function_that_cannot_be_compiled_is_refused():
    def asks(t, q, qd, parameters, out):
        out[0] = float(input("force?"))

    def short(t, q):
        return q

    for function in (asks, short):
        for actions in ({"drives": [rb.UserForces(function)]}, {"events": [rb.Event(function=function)]}):
            with pytest.raises(rb.StateError, match=r"cannot be compiled as a function\(t, q, qd, parameters, out\)"):
                slider().simulate(np.zeros((1, 1)), np.zeros((1, 1)), 1.0, **actions)


# --- events -----------------------------------------------------------------------------------------------------------

OMEGA = np.sqrt(9.81)
AMPLITUDES = np.array([0.4, 1.0, 2.0, 2.9])


def pendulum():
    """A mass on a weightless rod of 1 m; q from straight down."""
    builder = rb.ModelBuilder(gravity=(0, -9.81, 0))
    builder.add_body("bob", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(2.0, (0, -1.0, 0)))
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
        [rb.Event("bob", quantity="velocity", direction=1)], duration=10.0, save_at=[0.0, 0.3, 9.9], **settings
    )
    assert (motion.status == STOPPED).all()
    assert motion.success
    assert "event" in motion.message
    assert (motion.events[0].count == 1).all()
    half = 2 * ellipk(np.sin(AMPLITUDES / 2) ** 2) / OMEGA
    np.testing.assert_allclose(motion.events[0].t[:, 0], half, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.events[0].q[:, 0, 0], -AMPLITUDES, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.q[:, 1, 0], swing(AMPLITUDES, 0.3), rtol=0, atol=1e-7)
    assert np.isnan(motion.q[:, 2]).all()
    assert np.isnan(motion.qd[:, 2]).all()


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
    motion = thrown(method, *start, [rb.Event("ball", value=value, quantity=quantity)])
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


def above_ramp(t, q, qd, parameters, out):
    out[0] = q[0] - (parameters[0] + parameters[1] * t)


@pytest.mark.parametrize("settings", EVENT_SETTINGS)
def test_a_user_event_occurs_at_the_zero_of_its_function(settings):
    """The event occurs where the angle of each sample meets its own ramp in time."""
    ramps = np.array([[-0.3, 0.4], [0.2, 0.1], [-1.0, 0.5], [2.0, -0.3]])
    motion = released([rb.Event(function=above_ramp, parameters=ramps)], **settings)
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
        rb.Event("slide", value=first),
        rb.Event("slide", value=second),
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
    assert np.isnan(motion.q[after]).all()


@pytest.mark.parametrize("settings", [{"rtol": 1e-7, "atol": 1e-9}, {"method": "rk4", "step": 0.005}])
def test_stopped_samples_keep_their_trajectory_and_do_not_change_others(settings):
    model, n = floater(), 23
    q, qd = start(model, n)
    going = everything(n)
    others = going.pop("events")
    half_way = model.simulate(q, qd, 0.25, **going, **settings).q[:, 1, 7]
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
    assert np.isnan(cut.q[after]).all()
    assert np.isnan(cut.qd[after]).all()
    assert np.array_equal(cut.events[-1].t[:, 0], whole.events[-1].t[:, 0], equal_nan=True)
    # in the step of the event, a state at the end of the step is interpolated: equal up to round-off
    np.testing.assert_allclose(cut.q[~after], whole.q[~after], rtol=0, atol=1e-14)


# --- the implicit method ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asymmetry", [0.0, 2.5, -3.0])
def test_an_implicit_motion_follows_its_recurrence(asymmetry):
    """(m + h D + h^2 K) (v1 - v0) / h = F(x0, v0, t0) - h K v0, x1 = x0 + h v1; D and K contain all stiff terms."""
    k, c, d, f, fs, vs, v0 = 400.0, 50.0, 30.0, 3.0, 4.0, 0.1, 0.01
    hard, dissipation, kp, kd, h = 1e4, 0.5, 100.0, 20.0, 0.01
    model = slider(
        stiffness=k, cubic_stiffness=c, rest_position=0.1, damping=d, friction=f, static_friction=fs, lower_limit=-0.3,
        stribeck_velocity=vs, friction_velocity=v0, upper_limit=0.3, limit_stiffness=hard, limit_damping=dissipation,
        friction_asymmetry=asymmetry,
    )  # fmt: skip
    x, v = np.array([0.0, 0.25, -0.5, 0.35]), np.array([3.0, 4.0, -1.0, -1.5])
    q, qd, count, limit = x[:, None], v[:, None], 40, np.array([np.inf, np.inf, 60.0, np.inf])
    for n in range(count):
        side, depth = np.sign(x), np.maximum(np.abs(x) - 0.3, 0.0)
        pressing = np.maximum(1 + dissipation * side * v, 0.0)
        rubbing = f + (fs - f) / (1 + (v / vs) ** 2) + asymmetry * np.sign(v)
        control = kp * (0.4 * np.sin(20 * n * h) - x) + kd * (8.0 * np.cos(20 * n * h) - v)
        free = np.abs(control) < limit
        F = np.clip(control, -limit, limit) - k * (x - 0.1) - c * (x - 0.1) ** 3 - d * v
        F += -rubbing * v / np.hypot(v, v0) - side * hard * depth * pressing
        K = k + 3 * c * (x - 0.1) ** 2 + kp * free + np.where(depth > 0, hard * pressing, 0.0)
        D = (
            d
            + rubbing * v0**2 / np.hypot(v, v0) ** 3
            + kd * free
            + np.where(pressing > 0, hard * depth * dissipation, 0)
        )
        v = v + h * (F - h * K * v) / (MASS + h * D + h**2 * K)
        x = x + h * v
        if n in (0, 4, count - 1):
            drive = rb.PID("slide", rb.Signal.sines(0.4, 20.0), kp=kp, kd=kd, limit=limit)
            motion = model.simulate(q, qd, (n + 1) * h, drives=[drive], method="implicit", step=h)
            assert (motion.steps == n + 1).all()
            np.testing.assert_allclose(motion.q[:, 1, 0], x, rtol=0, atol=1e-11)
            np.testing.assert_allclose(motion.qd[:, 1, 0], v, rtol=0, atol=1e-9)


def test_the_implicit_method_converges_with_first_order():
    model, n = floater(stops=False), 3
    q, qd = start(model, n)
    actions = everything(n)
    actions.pop("events")
    reference = model.simulate(q, qd, 0.25, **actions, **TIGHT)
    steps = 2.0 ** -np.arange(9, 13)
    ends = [model.simulate(q, qd, 0.25, method="implicit", step=step, **actions) for step in steps]
    errors = np.array([np.abs(end.q[:, 1] - reference.q[:, 1]).max(-1) for end in ends])
    orders = np.log2(errors[:-1] / errors[1:])
    assert np.abs(orders[-1] - 1).max() < 0.1, orders


def test_the_implicit_method_is_stable_for_any_stiffness():
    """Damping, springs, gains and stops are a million times too stiff for an explicit step; all come to rest."""
    wild = {"damping": 1e6, "stiffness": 1e9, "limit_stiffness": 1e9, "upper_limit": 0.01, "friction": 1e5}
    motion = slider(**wild).simulate(
        columns(1.0, 0.0, -0.5), columns(0.0, 10.0, 3.0), 20.0, drives=[rb.PID("slide", 0.0, kp=1e8, kd=1e5)],
        method="implicit", step=0.1,
    )  # fmt: skip
    assert motion.success
    assert np.abs(motion.q[:, 1]).max() < 1e-3
    assert np.abs(motion.qd[:, 1]).max() < 1e-3


def test_events_are_found_in_implicit_steps_too():
    motion = slider().simulate(
        np.zeros((2, 1)), columns(0.5, 2.0), 1.0, method="implicit", step=0.3, events=[rb.Event("slide", value=0.4)]
    )
    np.testing.assert_allclose(motion.events[0].t[:, 0], [0.8, 0.2], rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("passive", "gains", "factor"),
    [
        ({"damping": 2.7853 * MASS / 0.1}, {}, 1.0),
        ({"stiffness": 8.0 * MASS / 0.01}, {}, 1.0),
        ({}, {"kp": 8.0 * MASS / 0.01}, 1.0),
        ({}, {"kp": 1.0, "kd": 2.7853 * MASS / 0.1}, 1.0),
    ],
)
@pytest.mark.parametrize("share", [0.999, 1.001])
def test_rk4_reports_a_step_that_is_too_long_for_the_stiffness(passive, gains, factor, share):
    """The limits of stability are a damping of 2.7853 m / h and a stiffness of 8 m / h^2."""
    model = slider(**{name: value * share for name, value in passive.items()})
    gains = {name: value * share for name, value in gains.items()}
    drives = [rb.PID("slide", 0.0, **gains)] if gains else []
    motion = model.simulate(np.zeros((2, 1)), np.full((2, 1), 0.1), 1.0, method="rk4", step=0.1, drives=drives)
    assert motion.status.tolist() == ([TOO_STIFF] * 2 if share > 1 else [DONE] * 2)
    assert np.isnan(motion.q[:, 1]).all() == (share > 1)
    assert motion.success == (share < 1)
    if share > 1:
        assert "implicit" in motion.message


@pytest.mark.plain_python
@pytest.mark.parametrize("omega", [0.5, 5.0])
def test_rk4_reports_a_stop_that_is_too_stiff_even_if_it_acts_within_a_step_only(omega):
    """Slides move against an elastic stop. The energy of those that reach it is an error of rk4 if h omega > 2.83."""
    step, start, speed = 0.1, -np.linspace(0.0, 0.3, 20)[:, None], 2.0
    model = slider(limit_stiffness=MASS * (omega / step) ** 2, upper_limit=0.3)
    motion = model.simulate(start, np.full_like(start, speed), 1.0, method="rk4", step=step)
    if omega > 1:
        assert (motion.status == TOO_STIFF).all()
        assert (motion.end_q[:, 0] < 0.3).all()  # the last valid state
    else:
        assert (motion.status == DONE).all()
        np.testing.assert_allclose(motion.qd[:, -1, 0], -speed, rtol=0.02)


@pytest.mark.plain_python
@pytest.mark.parametrize("pull", [0.0, 4.0, 15.0])
def test_rk4_reports_friction_that_stops_a_joint_within_less_than_a_step(pull):
    """Friction of 5 N brings a slide to rest if the pull back is smaller. Else the slide turns, and rk4 is valid."""
    model, time = slider(friction=5.0, friction_velocity=1e-4), MASS / (5.0 + pull)
    step = time / 7.3
    motion = model.simulate([0.0], [1.0], 2 * time, method="rk4", step=step, tau=[-pull])
    if pull < 5.0:
        assert motion.status == TOO_STIFF
        assert abs(motion.end_time - time) <= 2 * step
    else:
        assert motion.status == DONE
        # the error of the step that passes the velocity zero is at most the one of a friction with the wrong sign
        np.testing.assert_allclose(motion.qd[-1], -(pull - 5.0) * time / MASS, rtol=0, atol=2 * 5.0 * step / MASS)


@pytest.mark.plain_python
def test_rk4_passes_the_velocity_zero_if_its_step_resolves_the_friction():
    """The largest slope of the friction is 2 / h, below the limit 2.785 / h."""
    model = slider(friction=5.0, friction_velocity=0.1)
    motion = model.simulate([0.0], [1.0], 3 * MASS, method="rk4", step=2.0 * 0.1 * MASS / 5.0)
    assert motion.status == DONE
    assert abs(motion.qd[-1, 0]) < 1e-3


def test_a_sample_too_stiff_for_rk4_does_not_change_others():
    """The cubic spring is too stiff only in samples that stretch it far enough."""
    model = slider(cubic_stiffness=100.0)
    q = np.linspace(0.1, 0.5, 9)[:, None]
    calm = model.simulate(q, 0 * q, 1.0, method="rk4", step=0.1, save_at=3)
    assert (calm.status == DONE).all()
    wild = q.copy()
    wild[4] = 4.0
    motion = model.simulate(wild, 0 * q, 1.0, method="rk4", step=0.1, save_at=3)
    assert motion.status[4] == TOO_STIFF
    assert np.isnan(motion.q[4, 1:]).all()
    assert np.array_equal(np.delete(motion.q, 4, 0), np.delete(calm.q, 4, 0))


# --- batches ----------------------------------------------------------------------------------------------------------


def everything(n, of=slice(None)):
    """All types of actions on the floater, with values per sample for n samples; `of` selects samples."""
    rng = np.random.default_rng(11)
    a, b, c, d, e = rng.uniform(0.5, 1.5, size=(5, n))[:, of]
    knots, points = rng.normal(size=(n, 5))[of], rng.normal(size=(n, 3))[of]
    times = np.linspace(0, 0.5, 5)
    drives = [
        rb.PID("arm", rb.Signal.sines(a[..., None], 4.0), kp=5 * b, kd=c, ki=d, limit=4 * e, gravity_compensation=True),
        rb.PrescribedVelocity("fin", rb.Signal.table(times, knots)),
        rb.PrescribedForce("fin", rb.Signal.table(times, knots, kind="linear"), dof=1),
        rb.UserForces(push, np.stack([a, b], -1)),
    ]
    forces = [
        rb.Wrench("hull", force=(rb.Signal.polynomial(knots[..., :3]), 0.0, a), point=points),
        rb.Wrench("hand", moment=points),
        rb.Wrench("fin", force=points, axes="body"),
    ]
    events = [
        rb.Event("fin", value=0.1 * a, dof=1, stop=False),
        rb.Event(function=above_ramp, parameters=np.stack([b, c], -1), stop=False),
    ]
    return {"drives": drives, "forces": forces, "events": events}


@pytest.mark.parametrize("settings", [{"rtol": 1e-7, "atol": 1e-9}, {"method": "rk4", "step": 0.005}])
def test_no_bit_of_a_driven_sample_depends_on_its_batch(settings):
    model, n = floater(), 43
    q, qd = start(model, n)
    whole = model.simulate(q, qd, 0.5, save_at=4, **everything(n), **settings)
    assert whole.success
    before = rb.get_num_threads()
    for part, threads in ((slice(17, 18), 1), (slice(20, 31), 1), (slice(None, None, -1), 2)):
        rb.set_num_threads(threads)
        some = model.simulate(q[part], qd[part], 0.5, save_at=4, **everything(n, part), **settings)
        for name in ("q", "qd", "tau", "qdd", "status", "steps", "rejections"):
            assert np.array_equal(getattr(whole, name)[part], getattr(some, name)), name
        for one, other in zip(whole.events, some.events, strict=True):
            for name in ("count", "t", "q", "qd"):
                assert np.array_equal(getattr(one, name)[part], getattr(other, name), equal_nan=True), name
    rb.set_num_threads(before)
    assert whole.events[0].count.any()
    happened = np.isfinite(whole.events[0].t)
    assert np.abs(np.linalg.norm(whole.events[0].q[happened, 3:7], axis=-1) - 1).max() < 1e-14
    # two axes of the batch
    folded = {"drives": [rb.PID("arm", 0.1, kp=np.arange(6.0).reshape(2, 3))]}
    flat = {"drives": [rb.PID("arm", 0.1, kp=np.arange(6.0))]}
    one = model.simulate(q[:6].reshape(2, 3, -1), qd[:6].reshape(2, 3, -1), 0.1, **folded, **settings)
    two = model.simulate(q[:6], qd[:6], 0.1, **flat, **settings)
    assert np.array_equal(one.q.reshape(two.q.shape), two.q)
    assert np.array_equal(one.tau.reshape(two.tau.shape), two.tau)


def test_changing_values_or_types_of_actions_does_not_recompile():
    """Other drives, signals and forces of other models run the same compiled code, because actions are data."""
    motion_under = partial(slider().simulate, np.zeros((3, 1)), np.ones((3, 1)), 0.1)
    motion_under(drives=[rb.PrescribedForce("slide", 1.0)])
    compiled = len(integrate_batch.signatures)
    motion_under(drives=[rb.PID("slide", rb.Signal.table([0, 0.1, 0.2], [0, 1, 0]), kp=np.arange(3.0), ki=1.0)])
    motion_under(drives=[rb.PrescribedPosition("slide", rb.Signal.sines([1.0, 2.0], [3.0, 4.0]))])
    motion_under(drives=[rb.UserForces(lambda t, q, qd, parameters, out: None)], events=[rb.Event("slide", value=1.0)])
    motion_under(forces=[rb.Wrench(slider().body_names[0], (1.0, 0, 0))])
    floater().simulate(*start(floater(), 3), 0.01)
    assert len(integrate_batch.signatures) == compiled
