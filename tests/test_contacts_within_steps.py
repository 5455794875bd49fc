"""Contacts that close and open again within one step of a method with adaptive steps, by closed forms."""

import math

import numpy as np
import pytest
from numpy.polynomial import polynomial
from scipy.optimize import brentq

import rbchain as rb

G = 9.81
SLOW = pytest.mark.slow
METHODS = ["rk45", pytest.param("rosenbrock", marks=SLOW)]  # which share the code that finds contacts


def thrown_ball():
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("ball", joint=rb.Free(), inertia=rb.Inertia.sphere(0.05, mass=1.0))
    return builder.build()


def first_impact(center, distance, velocity, duration):
    """The first time at which a throw from the origin is this far from a center; NaN if it never is.

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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "n"),
    [
        pytest.param("rk45", 40, marks=pytest.mark.plain_python),
        pytest.param("rk45", 10_000, marks=SLOW),
        pytest.param("rosenbrock", 3_000, marks=SLOW),
    ],
)
def test_throws_hit_a_ball_at_the_time_of_the_closed_form(method, n):
    rng = np.random.default_rng(1)
    duration, center = rng.uniform(0.2, 1.5, n), rng.normal(size=(n, 3))
    center *= (rng.uniform(1.0, 5.0, n) / np.linalg.norm(center, axis=1))[:, None]
    radius = rng.uniform(0.01, 0.3, n)
    aim = center + 0.45 * (radius + 0.05)[:, None] * rng.normal(size=(n, 3))
    qd0 = np.zeros((n, 6))
    qd0[:, :3] = aim / duration[:, None] + [0.0, 0.0, 0.5 * G] * duration[:, None]
    q0 = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (n, 1))
    contact = rb.SphereSphereContact(
        None, "ball", point_a=center, point_b=(0, 0, 0), radius_a=radius, radius_b=0.05, restitution=0.5
    )
    motion = thrown_ball().simulate(q0, qd0, 3.0, method=method, forces=[contact], save_at=2)
    exact = np.array([first_impact(center[i], radius[i] + 0.05, qd0[i, :3], 3.0) for i in range(n)])
    assert motion.success and 0.8 * n < np.isfinite(exact).sum() < n  # some throws miss the ball
    # times are located to 1e-12 s, and gaps to 1e-10 m: near a grazing throw, the time follows from its square root
    np.testing.assert_allclose(motion.impacts[0].t[:, 0], exact, rtol=0, atol=1e-7)


@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("clearance", [-1e-6, -1e-8, 1e-8, 1e-6])
def test_a_throw_that_grazes_a_plane_touches_it_or_not(method, clearance):
    speed = 5.0
    height = 0.5 * speed**2 / G + clearance
    ceiling = rb.SphereContact(
        "ball", point=(0, 0, 0), radius=0.05, plane_point=(0, 0, height + 0.05), plane_normal=(0, 0, -1)
    )
    motion = thrown_ball().simulate(
        [0, 0, 0, 0, 0, 0, 1], [3, 0, speed, 0, 0, 0], 1.0, method=method, forces=[ceiling], save_at=2
    )
    assert motion.impacts[0].count == (clearance < 0.0)
    if clearance < 0.0:
        # an error of the gap by 1e-10 m moves the time by this distance over the speed at the contact
        speed_there = math.sqrt(speed**2 - 2.0 * G * height)
        t = (speed - speed_there) / G
        np.testing.assert_allclose(motion.impacts[0].t[0], t, rtol=0, atol=1e-10 / speed_there)


@pytest.mark.slow
@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
def test_a_rotor_hits_obstacles_that_it_reaches_after_hundreds_of_turns(method):
    """Constant velocities have no error, so that steps are as long as many turns."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    builder.add_body("arm", parent="cart", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(1e-9, inertia=(1, 1, 1)))
    model, rate, speed = builder.build(), 7.0, 0.01
    wall = rb.SphereContact("arm", point=(1, 0, 0), radius=0.02, plane_point=(4, 0, 0), plane_normal=(-1, 0, 0))
    motion = model.simulate([0, 0], [speed, rate], 400.0, method=method, forces=[wall], save_at=2)
    exact = first_zero(lambda t: 3.98 - speed * t - np.cos(rate * t), 400.0, 1_000_001)
    np.testing.assert_allclose(motion.impacts[0].t[0], exact, rtol=0, atol=1e-9)


@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("clearance", [-1e-6, 1e-6])
def test_a_pendulum_hits_a_ball_below_it_or_passes_above(method, clearance):
    """At its lowest point, the tip is 1 m below the joint. Energy gives the speed there."""
    builder = rb.ModelBuilder(gravity=(0, -G, 0))
    builder.add_body("rod", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(mass=1.0, cg=(1, 0, 0)))
    ball = rb.SphereSphereContact(
        None,
        "rod",
        point_a=(0, -1.01 - clearance, 0),
        point_b=(1, 0, 0),
        radius_a=0.005,
        radius_b=0.005,
        restitution=1.0,
    )
    motion = builder.build().simulate([0.0], [0.0], 1.0, method=method, forces=[ball], save_at=11)
    assert motion.impacts[0].count[()] >= 1 if clearance < 0.0 else motion.impacts[0].count == 0


@pytest.mark.slow_cases("rosenbrock")
@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("method", "order"), [("rk45", 1), ("rk45", -1), ("rosenbrock", 1), pytest.param("rosenbrock", -1, marks=SLOW)]
)
def test_the_earliest_of_several_contacts_in_a_step_stops_the_ball(method, order):
    """Three thin obstacles in the path of a ball without gravity, at the times 1, 2 and 3 s."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name in ("a", "b"):
        builder.add_body(name, joint=rb.Free(), inertia=rb.Inertia.sphere(0.01, mass=1.0))
    obstacles = [
        rb.SphereSphereContact(None, "a", point_a=(x, 0.0, 0.0), point_b=(0, 0, 0), radius_a=0.01, radius_b=0.01)
        for x in (1.02, 2.02, 3.02)
    ]
    forces = obstacles[::order]
    motion = builder.build().simulate(
        [0, 0, 0, 0, 0, 0, 1, 0, 5, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], 100.0,
        method=method, forces=forces, save_at=2,
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
    pair = rb.SphereSphereContact(
        "a", "b", point_a=(0, 0, 0), point_b=(0, 0, 0), radius_a=0.05, radius_b=0.05, restitution=1.0
    )
    start, velocity = np.array([6.0, -0.1, 0.0]), np.array([-6.0, 0.1, 0.0])
    motion = builder.build().simulate(
        [0, 0, 0, 0, 0, 0, 1, *start, 0, 0, 0, 1], [3, 0, 4, 0, 0, 0, -3, 0.1, 4, 0, 0, 0], 2.0,
        method=method, forces=[pair], save_at=2,
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
        motion = model.simulate([0.0], [speed], 0.7, method=method, forces=[stops], save_at=2)
        assert motion.impacts[0].count == (travel > 1.25)
        assert motion.q.max() <= 1.25


@pytest.mark.slow
@pytest.mark.plain_python
@pytest.mark.parametrize("method", ["rk45"])
def test_a_gap_that_stays_zero_costs_no_short_steps(method):
    """A body turns about the normal and slides along a plane that it touches, without gravity."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("body", joint=rb.Free(), inertia=rb.Inertia(mass=1.0, inertia=(1, 2, 2.5)))
    floor = rb.SphereContact("body", point=(0.1, 0, 0), radius=0.05, plane_point=(0, 0, 0), plane_normal=(0, 0, 1))
    start, velocity = [0, 0, 0.05, 0, 0, 0, 1], [1, 0, 0, 0, 0, 5]
    motion = builder.build().simulate(start, velocity, 2.0, method=method, forces=[floor], save_at=2)
    free = builder.build().simulate(start, velocity, 2.0, method=method, save_at=2)
    assert motion.impacts[0].count == 0
    assert motion.steps + motion.rejections <= free.steps + free.rejections + 10


# --- large lengths and speeds -----------------------------------------------------------------------------------------


@pytest.mark.fast_cases("100000000.0")
@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
def test_a_ball_bounces_on_a_plane_far_from_the_origin(method, offset):
    """The height has a round-off of eps times the offset. The ball ends at rest on the plane."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10.0))
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    floor = rb.SphereContact(
        "ball", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, offset), plane_normal=(0, 0, 1), restitution=0.5
    )
    motion = builder.build().simulate(
        [offset + 0.9], [0.0], 2.0, method=method, forces=[floor], max_steps=1000, save_at=2
    )
    assert motion.success
    round_off = np.finfo(float).eps * offset
    # the start is rounded once, and the gap at the impact by a few units; the speed there is 4 m/s
    np.testing.assert_allclose(motion.impacts[0].t[0], 0.4, rtol=0, atol=1e-12 + 10 * round_off / 4.0)
    np.testing.assert_allclose(motion.q[-1, 0], offset + 0.1, rtol=0, atol=1e-9 + 100 * round_off)
    np.testing.assert_allclose(motion.qd[-1, 0], 0.0, rtol=0, atol=1e-9)


@pytest.mark.slow_cases("1000000.0")
@pytest.mark.plain_python
@pytest.mark.parametrize("scale", [1e-3, pytest.param(1e3, marks=SLOW), 1e6])
def test_a_bouncing_ball_at_another_scale_has_scaled_impacts(scale):
    """With all lengths times s, all times are times the square root of s."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10.0))
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia.sphere(0.1 * scale, mass=1.0))
    floor = rb.SphereContact(
        "ball", point=(0, 0, 0), radius=0.1 * scale, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), restitution=0.5
    )
    time = math.sqrt(scale)
    motion = builder.build().simulate(
        [0.9 * scale], [0.0], 2.0 * time, forces=[floor], max_steps=1000, atol=1e-10 * scale, save_at=2
    )
    assert motion.success
    np.testing.assert_allclose(motion.impacts[0].t[:4], np.array([0.4, 0.8, 1.0, 1.1]) * time, rtol=1e-9)
    np.testing.assert_allclose(motion.q[-1, 0], 0.1 * scale, rtol=1e-8)


@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_two_balls_far_from_the_origin_collide(method, offset):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name in ("a", "b"):
        builder.add_body(name, joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    pair = rb.SphereSphereContact(
        "a", "b", point_a=(0, 0, 0), point_b=(0, 0, 0), radius_a=0.1, radius_b=0.1, restitution=1.0, friction=0.2
    )
    place, direction = np.array([1.0, -2.0, 0.5]) * offset, np.array([0.36, 0.48, 0.8])
    motion = builder.build().simulate(
        [*place, 0, 0, 0, 1, *(place + 2.2 * direction), 0, 0, 0, 1], [*direction, *np.zeros(9)], 4.0,
        method=method, forces=[pair], max_steps=1000, save_at=2,
    )  # fmt: skip
    assert motion.success
    # the distance consists of differences of coordinates, each with a round-off of eps times 2 offset
    error = 20 * np.finfo(float).eps * offset
    np.testing.assert_allclose(motion.impacts[0].t[0], 2.0, rtol=0, atol=1e-12 + error)
    # the normal has the relative error of the distance of 0.2 m
    np.testing.assert_allclose(motion.qd[-1, 6:9], direction, rtol=0, atol=1e-9 + 10 * error)


@pytest.mark.plain_python
@pytest.mark.parametrize("speed", [pytest.param(1e2, marks=SLOW), pytest.param(1e4, marks=SLOW), 1e5])
def test_bodies_meet_at_the_speed_of_satellites_after_a_long_time(speed):
    """The way during the round-off of the time, eps 1e4 s, is longer than the tolerance of a gap."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name in ("a", "b"):
        builder.add_body(name, joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    pair = rb.SphereSphereContact(
        "a", "b", point_a=(0, 0, 0), point_b=(0, 0, 0), radius_a=0.1, radius_b=0.1, restitution=0.5
    )
    distance, across = speed * 1e4, 0.05
    motion = builder.build().simulate(
        [0, 0, 0, 0, 0, 0, 1, distance, across, 0, 0, 0, 0, 1], [speed, *np.zeros(11)], 2e4, forces=[pair], save_at=2
    )
    assert motion.success and motion.impacts[0].count == 1
    exact = (distance - math.sqrt(0.2**2 - across**2)) / speed
    # round-off of the time and, over the speed, of the distance
    np.testing.assert_allclose(motion.impacts[0].t[0], exact, rtol=8 * np.finfo(float).eps)


# --- events -----------------------------------------------------------------------------------------------------------


def ballistic_block():
    builder = rb.ModelBuilder(gravity=(0, 0, -10.0))
    builder.add_body("block", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=1.0))
    return builder.build()


def times_at(height):
    """The times at which a throw with 5 m/s is at a height: its top is at 1.25 m after 0.5 s."""
    root = math.sqrt(25.0 - 20.0 * height)
    return [(5.0 - root) / 10.0, (5.0 + root) / 10.0]


def height_above(t, q, qd, parameters, out):
    out[0] = q[0] - parameters[0]


def outside_of_band(t, q, qd, parameters, out):
    out[0] = (q[0] - parameters[0]) * (q[0] - parameters[1])


STEPS = [("rk45", {}), ("rosenbrock", {}), ("rk4", {"step": 1.2}), ("moreau", {"step": 1.2})]


@pytest.mark.plain_python
@pytest.mark.parametrize(("method", "settings"), STEPS)
@pytest.mark.parametrize("level", [0.3, 1.0, 1.25 - 1e-6])
def test_an_event_that_occurs_twice_within_a_step_is_recorded_twice_and_in_order(method, settings, level):
    events = [rb.Event("block", value=level, direction=way, stop=False) for way in (0, 1, -1)]
    events.append(rb.Event(function=height_above, parameters=[level], stop=False))
    motion = ballistic_block().simulate([0.0], [5.0], 1.2, method=method, events=events, save_at=2, **settings)
    first, second = times_at(level)
    # times are located to 1e-11 s, and steeper than the square root of the round-off of the height
    for record, exact in zip(motion.events, [[first, second], [first], [second], [first, second]], strict=True):
        assert record.count == len(exact)
        np.testing.assert_allclose(record.t[: len(exact)], exact, rtol=0, atol=1e-9)


@pytest.mark.plain_python
@pytest.mark.parametrize(("method", "settings"), STEPS)
def test_a_stopping_event_stops_at_its_first_occurrence_and_hides_later_events(method, settings):
    events = [rb.Event("block", value=1.0, stop=True), rb.Event("block", value=0.5, stop=False)]
    events.append(rb.Event("block", value=1.2, stop=False))
    motion = ballistic_block().simulate([0.0], [5.0], 1.2, method=method, events=events, save_at=2, **settings)
    assert motion.status == rb.Status.STOPPED
    np.testing.assert_allclose(motion.end_time, times_at(1.0)[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(motion.events[1].t[0], times_at(0.5)[0], rtol=0, atol=1e-10)
    assert motion.events[1].count == 1 and motion.events[2].count == 0


@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
def test_a_function_that_changes_its_sign_four_times_within_a_step(method):
    band = rb.Event(function=outside_of_band, parameters=[0.5, 0.9], stop=False)
    none = rb.Event("block", value=1.25 + 1e-9, stop=False)
    motion = ballistic_block().simulate([0.0], [5.0], 1.2, method=method, events=[band, none], save_at=2)
    exact = sorted(times_at(0.5) + times_at(0.9))
    np.testing.assert_allclose(motion.events[0].t[:4], exact, rtol=0, atol=1e-10)
    assert motion.events[0].count == 4 and motion.events[1].count == 0


@pytest.mark.plain_python
def test_an_oscillator_passes_a_velocity_near_its_largest_one_twice_in_each_period():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    passive = rb.PassiveForces(stiffness=1.0)
    builder.add_body("mass", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0), passive=passive)
    event = rb.Event("mass", value=0.95, quantity="velocity", stop=False)
    motion = builder.build().simulate([0.0], [1.0], 20.0, events=[event], rtol=1e-4, atol=1e-4, save_at=2)
    angle = math.acos(0.95)
    exact = [2 * math.pi * turn + side * angle for turn in range(4) for side in (-1, 1)][1:]
    assert motion.steps < 50 and motion.events[0].count == 7
    # each of up to 50 steps adds an error of 1e-4, and the velocity changes by 0.31 in a unit of time there
    np.testing.assert_allclose(motion.events[0].t[:7], exact, rtol=0, atol=50 * 1e-4 / 0.31)


@pytest.mark.plain_python
@pytest.mark.parametrize("method", METHODS)
def test_events_and_contacts_in_the_same_step_are_recorded_until_the_impact_and_after_it(method):
    """A ball with restitution 1 falls from 0.8 m, so that it passes each height in both directions."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10.0))
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    floor = rb.SphereContact(
        "ball", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), restitution=1.0
    )
    events = [rb.Event("ball", value=value, stop=False) for value in (0.1 + 1e-6, 0.5)]
    events.append(rb.Event("ball", value=0.0, quantity="velocity", stop=False))
    motion = builder.build().simulate([0.9], [0.0], 1.0, method=method, forces=[floor], events=events, save_at=2)
    low, high = math.sqrt(0.8 - 1e-6) / math.sqrt(5.0), math.sqrt(0.4 / 5.0)
    for record, fall in zip(motion.events[:2], (low, high), strict=True):
        exact = [fall, 0.8 - fall] + ([0.8 + fall] if 0.8 + fall < 1.0 else [])
        assert record.count == len(exact)
        np.testing.assert_allclose(record.t[: len(exact)], exact, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.events[2].t[:2], [0.4, 0.8], rtol=0, atol=1e-9)


@pytest.mark.plain_python
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("speed", [-1e3, -2.0, 0.1, 2.0])
@pytest.mark.parametrize("method", METHODS)
def test_a_joint_reaches_its_stop_once_and_leaves_it_without_an_event(method, speed, restitution):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    limits = rb.JointLimits(lower=-1.0, upper=1.0)
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=2.0), limits=limits)
    arrives = 1 if speed > 0 else -1
    events = [rb.Event("slide", value=float(arrives), direction=d, stop=False) for d in (0, arrives, -arrives)]
    stops = [rb.HardStops("slide", restitution=restitution)]
    time = 1.0 / abs(speed)
    motion = builder.build().simulate([0.0], [speed], 1.5 * time, method=method, forces=stops, events=events, save_at=2)
    assert [record.count for record in motion.events] == [1, 1, 0]
    np.testing.assert_allclose(motion.events[0].t[0], time, rtol=1e-9)
    np.testing.assert_allclose(motion.qd[-1, 0], -restitution * speed, rtol=1e-9)


@pytest.mark.slow_cases("0.5")
@pytest.mark.plain_python
@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("up", [1, -1])
@pytest.mark.parametrize("method", METHODS)
def test_a_ball_arrives_on_the_plane_at_each_impact_and_never_from_inside(method, up, restitution):
    """A ball falls 0.9 m onto a plane and stays, or bounces until it rests after three times the time of the fall."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10.0 * up))
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia.sphere(0.1, mass=2.0))
    plane = rb.SphereContact(
        "ball", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, 0), plane_normal=(0, 0, up), restitution=restitution
    )
    leaves = rb.Event("ball", value=0.1 * up, direction=up, stop=True)
    arrives = rb.Event("ball", value=0.1 * up, direction=-up, stop=False)
    lands = rb.Event("ball", value=0.0, quantity="velocity", direction=up, stop=False)
    motion = builder.build().simulate(
        [1.0 * up], [0.0], 1.5, method=method, forces=[plane], events=[leaves, arrives, lands], save_at=2
    )
    fall = math.sqrt(0.18)
    assert motion.status == rb.Status.DONE and motion.events[0].count == 0
    # the first bounces 0.9 * 0.25^n m, up to n = 15, are higher than the distance 1e-10 m that counts as zero
    bounces = 15 if restitution > 0 else 0
    impacts = fall * (1 + 2 * np.cumsum(0.5 ** np.arange(1, bounces + 1)))
    impacts = np.concatenate(([fall], impacts))
    assert motion.events[1].count >= impacts.size
    np.testing.assert_allclose(motion.events[1].t[: impacts.size], impacts, rtol=0, atol=1e-8)
    np.testing.assert_allclose(motion.events[2].t[:1], fall, rtol=0, atol=1e-9)


@pytest.mark.plain_python
@pytest.mark.parametrize("method", ["rk45", pytest.param("rosenbrock", marks=pytest.mark.slow), "moreau"])
def test_a_velocity_that_friction_brings_to_rest_has_one_event(method):
    """A slide of 1 kg with 2 m/s rests after 0.5 s; it reaches the velocity 0 from above, and does not pass it."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0))
    events = [rb.Event("slide", value=0.0, quantity="velocity", stop=False, direction=d) for d in (0, 1, -1)]
    steps = {"step": 0.01} if method == "moreau" else {}
    friction = [rb.DryFriction("slide", 4.0)]
    motion = builder.build().simulate(
        [0.0], [2.0], 0.8, method=method, forces=friction, events=events, save_at=2, **steps
    )
    assert [int(event.count) for event in motion.events] == [1, 0, 1]
    np.testing.assert_allclose(motion.events[0].t[0], 0.5, rtol=0, atol=1e-9)
