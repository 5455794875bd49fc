"""Springs, friction and elastic stops of joints: closed forms, SciPy's integrator, and the work of friction."""

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson
from scipy.optimize import brentq

import rbchain as rb

from .models import BOTH, MASS, TIGHT, columns, reference_motion, slider


@pytest.mark.slow_cases("settings1")
@pytest.mark.parametrize("settings", BOTH)
@pytest.mark.parametrize("damping", [1.0, 20.0])
def test_a_driven_damped_oscillator_follows_its_closed_form(damping, settings):
    """m x'' + d x' + k (x - r) = b + F sin(w t + p). Each sample has its own F, w and p; one is at resonance."""
    k, rest, offset = 18.0, 0.3, 0.7
    force, phase = np.array([1.0, 2.0, -3.0, 0.0]), np.array([0.0, 0.4, -1.0, 0.0])
    w = np.array([0.5, np.sqrt(k / MASS), 8.0, 1.0])
    drive = rb.PrescribedForce(
        "slide", rb.Signal.sines(force[:, None], w[:, None], phase=phase[:, None], offset=offset)
    )
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
    """The regularized friction is below Coulomb's by a share of (friction_velocity / v)^2 / 2, at most 2e-12."""
    motion = slider(friction=3.0, friction_velocity=1e-6).simulate(
        columns(0.0, 0.0, 1.0), columns(3.0, -3.0, 2.5), 1.0, save_at=5, **TIGHT
    )
    sign, v0, x0 = np.array([[1.0], [-1.0], [1.0]]), np.array([[3.0], [-3.0], [2.5]]), np.array([[0.0], [0.0], [1.0]])
    np.testing.assert_allclose(motion.qd[..., 0], v0 - sign * 1.5 * motion.t, rtol=0, atol=1e-10)
    np.testing.assert_allclose(motion.q[..., 0], x0 + v0 * motion.t - sign * 0.75 * motion.t**2, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("forwards", "backwards"), [(4.0, 2.0), (1.0, 3.5), (3.0, 0.0), (0.0, 3.0)])
def test_friction_may_differ_between_the_two_directions(forwards, backwards):
    """The regularized friction is below Coulomb's by a share of (friction_velocity / v)^2 / 2, at most 5e-13."""
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
        motion = model.simulate(np.zeros((3, 1)), columns(0.1, 0.0, 0.2), 1.0, drives=[pull], save_at=2)
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
    model = slider(stop_lower=-0.7, stop_upper=0.5, limit_stiffness=k)
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
    model = slider(stop_lower=-0.1, stop_upper=0.1, limit_stiffness=500.0, limit_damping=d)
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
    model = slider(stop_upper=0.0, limit_stiffness=100.0, limit_damping=1.0)
    assert model.passive_forces(columns(0.1, 0.1, 0.1, -0.1), columns(-2.0, -1.0, -0.5, 3.0)).ravel() == pytest.approx(
        [0.0, 0.0, -5.0, 0.0], abs=0
    )
