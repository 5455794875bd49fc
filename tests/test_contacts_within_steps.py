"""Contacts that close and open again within one step of a method with adaptive steps, by closed forms."""

import math

import numpy as np
import pytest
from numpy.polynomial import polynomial
from scipy.optimize import brentq

import rbchain as rb

G = 9.81
METHODS = ["rk45", "rosenbrock"]


def thrown_ball():
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("ball", joint=rb.Free(), inertia=rb.Inertia.sphere(0.05, mass=1.0))
    return builder.build()


def first_impact(center, distance, velocity, duration):
    """The first time at which a throw from the origin is this far from a centre; NaN if it never is.

    The squared distance is a polynomial of fourth degree in the time.
    """
    square = np.zeros(5)
    for axis in range(3):
        path = [-center[axis], velocity[axis], -0.5 * G if axis == 2 else 0.0]
        square = square + np.convolve(path, path)
    square[0] -= distance**2
    roots = polynomial.polyroots(square)
    times = roots[np.abs(roots.imag) < 1e-9].real
    times = times[(times > 0.0) & (times < duration)]
    return times.min() if times.size > 0 else np.nan


def first_zero(gap, duration, count):
    """The first zero of a function of the time, which is sampled finely."""
    t = np.linspace(0.0, duration, count)
    i = int(np.argmax(gap(t) < 0.0))
    return brentq(gap, t[i - 1], t[i], xtol=1e-14)


@pytest.mark.parametrize("method", ["rk45", pytest.param("rosenbrock", marks=pytest.mark.slow)])
def test_ten_thousand_throws_hit_a_ball_at_the_time_of_the_closed_form(method):
    rng, n = np.random.default_rng(1), 10000
    duration, center = rng.uniform(0.2, 1.5, n), rng.normal(size=(n, 3))
    center *= (rng.uniform(1.0, 5.0, n) / np.linalg.norm(center, axis=1))[:, None]
    radius = rng.uniform(0.01, 0.3, n)
    aim = center + 0.45 * (radius + 0.05)[:, None] * rng.normal(size=(n, 3))
    qd0 = np.zeros((n, 6))
    qd0[:, :3] = aim / duration[:, None] + [0.0, 0.0, 0.5 * G] * duration[:, None]
    q0 = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (n, 1))
    contact = rb.SphereSphereContact(None, "ball", center, (0, 0, 0), radius, 0.05, restitution=0.5)
    motion = thrown_ball().simulate(q0, qd0, 3.0, method=method, forces=[contact])
    exact = np.array([first_impact(center[i], radius[i] + 0.05, qd0[i, :3], 3.0) for i in range(n)])
    assert motion.success and 8000 < np.isfinite(exact).sum() < n - 500
    # times are located to 1e-12 s, and gaps to 1e-10 m: near a grazing throw, the time follows from its square root
    np.testing.assert_allclose(motion.impacts[0].t[:, 0], exact, rtol=0, atol=1e-7)


@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("clearance", [-1e-6, -1e-8, 1e-8, 1e-6])
def test_a_throw_that_grazes_a_plane_touches_it_or_not(method, clearance):
    speed = 5.0
    height = 0.5 * speed**2 / G + clearance
    ceiling = rb.SphereContact("ball", (0, 0, 0), 0.05, (0, 0, height + 0.05), (0, 0, -1))
    motion = thrown_ball().simulate([0, 0, 0, 0, 0, 0, 1], [3, 0, speed, 0, 0, 0], 1.0, method=method, forces=[ceiling])
    assert motion.impacts[0].count == (clearance < 0.0)
    if clearance < 0.0:
        # an error of the gap by 1e-10 m moves the time by this distance over the speed at the contact
        speed_there = math.sqrt(speed**2 - 2.0 * G * height)
        t = (speed - speed_there) / G
        np.testing.assert_allclose(motion.impacts[0].t[0], t, rtol=0, atol=1e-10 / speed_there)


@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
def test_a_rotor_hits_obstacles_that_it_reaches_after_hundreds_of_turns(method):
    """Constant velocities have no error, so that steps are as long as many turns."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    builder.add_body("arm", parent="cart", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(1e-9, inertia=(1, 1, 1)))
    model, rate, speed = builder.build(), 7.0, 0.01
    wall = rb.SphereContact("arm", (1, 0, 0), 0.02, (4, 0, 0), (-1, 0, 0))
    motion = model.simulate([0, 0], [speed, rate], 400.0, method=method, forces=[wall])
    exact = first_zero(lambda t: 3.98 - speed * t - np.cos(rate * t), 400.0, 1_000_001)
    np.testing.assert_allclose(motion.impacts[0].t[0], exact, rtol=0, atol=1e-9)


@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("clearance", [-1e-6, 1e-6])
def test_a_pendulum_hits_a_ball_below_it_or_passes_above(method, clearance):
    """At its lowest point, the tip is 1 m below the joint. Energy gives the speed there."""
    builder = rb.ModelBuilder(gravity=(0, -G, 0))
    builder.add_body("rod", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(mass=1.0, cg=(1, 0, 0)))
    ball = rb.SphereSphereContact(None, "rod", (0, -1.01 - clearance, 0), (1, 0, 0), 0.005, 0.005, restitution=1.0)
    motion = builder.build().simulate([0.0], [0.0], 1.0, method=method, forces=[ball], save_at=11)
    assert motion.impacts[0].count[()] >= 1 if clearance < 0.0 else motion.impacts[0].count == 0


@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("order", [1, -1])
def test_the_earliest_of_several_contacts_in_a_step_stops_the_ball(method, order):
    """Three thin obstacles in the path of a ball without gravity, at the times 1, 2 and 3 s."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name in ("a", "b"):
        builder.add_body(name, joint=rb.Free(), inertia=rb.Inertia.sphere(0.01, mass=1.0))
    obstacles = [rb.SphereSphereContact(None, "a", (x, 0.0, 0.0), (0, 0, 0), 0.01, 0.01) for x in (1.02, 2.02, 3.02)]
    forces = obstacles[::order]
    motion = builder.build().simulate(
        [0, 0, 0, 0, 0, 0, 1, 0, 5, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], 100.0,
        method=method, forces=forces,
    )  # fmt: skip
    records = motion.impacts[::order]
    assert [int(record.count) for record in records] == [1, 0, 0]
    np.testing.assert_allclose(records[0].t[0], 1.0, rtol=0, atol=1e-11)
    np.testing.assert_allclose(motion.q[-1, [0, 8]], [1.0, 105.0], rtol=1e-12)


@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
def test_two_thrown_balls_meet(method):
    """Gravity acts on both, so that their relative motion is straight."""
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    for name in ("a", "b"):
        builder.add_body(name, joint=rb.Free(), inertia=rb.Inertia.sphere(0.05, mass=1.0))
    pair = rb.SphereSphereContact("a", "b", (0, 0, 0), (0, 0, 0), 0.05, 0.05, restitution=1.0)
    start, velocity = np.array([6.0, -0.1, 0.0]), np.array([-6.0, 0.1, 0.0])
    motion = builder.build().simulate(
        [0, 0, 0, 0, 0, 0, 1, *start, 0, 0, 0, 1], [3, 0, 4, 0, 0, 0, -3, 0.1, 4, 0, 0, 0], 2.0,
        method=method, forces=[pair],
    )  # fmt: skip
    polynomial_of_gap = [velocity @ velocity, 2.0 * start @ velocity, start @ start - 0.1**2]
    np.testing.assert_allclose(motion.impacts[0].t[0], np.roots(polynomial_of_gap).min(), rtol=0, atol=1e-10)


@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
def test_a_stop_that_the_joint_reaches_at_its_turning_point(method):
    builder = rb.ModelBuilder(gravity=(-G, 0, 0))
    limits = rb.JointLimits(lower=-100.0, upper=1.25)
    builder.add_body("block", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0), limits=limits)
    model, stops = builder.build(), rb.HardStops("block", restitution=1.0)
    for travel in (1.25 + 1e-6, 1.25 - 1e-6):
        speed = math.sqrt(2.0 * G * travel)
        motion = model.simulate([0.0], [speed], 0.7, method=method, forces=[stops])
        assert motion.impacts[0].count == (travel > 1.25)
        assert motion.q.max() <= 1.25


@pytest.mark.plain_python
@pytest.mark.parametrize("method", ["rk45"])
def test_a_gap_that_stays_zero_costs_no_short_steps(method):
    """A body turns about the normal and slides along a plane that it touches, without gravity."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("body", joint=rb.Free(), inertia=rb.Inertia(mass=1.0, inertia=(1, 2, 2.5)))
    floor = rb.SphereContact("body", (0.1, 0, 0), 0.05, (0, 0, 0), (0, 0, 1))
    start, velocity = [0, 0, 0.05, 0, 0, 0, 1], [1, 0, 0, 0, 0, 5]
    motion = builder.build().simulate(start, velocity, 2.0, method=method, forces=[floor])
    free = builder.build().simulate(start, velocity, 2.0, method=method)
    assert motion.impacts[0].count == 0
    assert motion.steps + motion.rejections <= free.steps + free.rejections + 10
