"""Elastic stops, plays and cables that act only between the ends of a step, by closed forms."""

from functools import cache
from itertools import product

import numpy as np
import pytest

import rbchain as rb

G = 10.0
METHODS = ("rk45", "dop853", "rosenbrock", "radau")

pytestmark = pytest.mark.plain_python


def thrown(limit, side=1.0, stiffness=1e6):
    """A mass of 1 kg that is thrown against the direction of gravity, with an elastic stop at `side * limit`."""
    stop = {"stop_upper": limit} if side > 0 else {"stop_lower": -limit}
    builder = rb.ModelBuilder(gravity=(0, 0, -side * G))
    passive = rb.PassiveForces(**stop, limit_stiffness=stiffness)
    builder.add_body("mass", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=1.0), passive=passive)
    return builder.build()


def rebound(speed, limit, duration, acceleration=G, frequency=1e3):
    """The position after a throw at `speed`, whose deceleration is constant, against a spring at `limit`.

    In the spring, the mass oscillates about its place of equilibrium, x0 below the largest depth.
    """
    arrival = np.sqrt(speed**2 - 2 * acceleration * limit)
    x0 = acceleration / frequency**2
    contact = 2 * np.arccos(x0 / np.hypot(x0, arrival / frequency)) / frequency
    t = duration - (speed - arrival) / acceleration - contact
    return limit - arrival * t - acceleration * t**2 / 2


THROWS = list(product((1.0, -1.0), (3.0, 5.0), (0.3, 0.03, 1e-3)))
FEW = ((1.0, 3.0, 0.3), (-1.0, 5.0, 0.03), (1.0, 5.0, 1e-3), (-1.0, 3.0, 1e-3))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("side", "speed", "excess"),
    [pytest.param(*throw, marks=[] if throw in FEW else pytest.mark.slow) for throw in THROWS],
)
def test_a_thrown_mass_does_not_pass_a_stop_below_its_apex(method, side, speed, excess):
    """The apex would be `excess` beyond the stop. Errors e of the position change the arrival by e g / its speed."""
    limit = speed**2 / (2 * G) - excess
    motion = thrown(limit, side).simulate([0.0], [side * speed], 1.2, method=method, save_at=2)
    assert motion.success
    error = 3 * int(motion.steps) * 1e-6 * (1 + 2 * G * 1.2 / np.sqrt(2 * G * excess))
    np.testing.assert_allclose(side * motion.q[-1, 0], rebound(speed, limit, 1.2), rtol=0, atol=error)


@cache
def thrown_against_a_damped_stop(method, **settings):
    passive = rb.PassiveForces(stop_upper=1.2, limit_stiffness=1e5, limit_damping=10.0)
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("mass", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=1.0), passive=passive)
    speed = np.array([[4.91], [4.96]])
    return builder.build().simulate(0 * speed, speed, 0.8, method=method, save_at=2, **settings)


@pytest.mark.fast_cases("dop853")
@pytest.mark.parametrize("method", METHODS)
def test_a_damped_stop_that_does_not_act_on_a_leaving_joint_is_not_passed(method):
    """A joint that leaves it with more than 0.1 m/s feels no force, so the end of a long step inside is free."""
    motion, fine = thrown_against_a_damped_stop(method), thrown_against_a_damped_stop("rk45", max_step=5e-3)
    np.testing.assert_allclose(motion.q[:, -1], fine.q[:, -1], rtol=0, atol=3e-6 * int(fine.steps.max()))


@pytest.mark.parametrize("method", METHODS)
def test_a_stop_above_the_apex_does_not_act(method):
    motion = thrown(1.25 + 1e-6).simulate([0.0], [5.0], 1.2, method=method, save_at=2)
    np.testing.assert_allclose(motion.q[-1, 0], 5.0 * 1.2 - G * 1.2**2 / 2, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_disc_touches_the_other_tooth_of_a_play(method):
    """A disc (0.1 kg m^2) moves in a play of 0.2 rad towards a motor (1 kg m^2), decelerated by 0.3 N m on both."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    inertia = rb.Inertia(1.0, inertia=(0.1, 0.1, 0.1))
    builder.add_body("disc", joint=rb.Revolute(), inertia=inertia, rotor_inertia=1.0, gear_ratio=1.0)
    model = builder.build().with_motor("disc", stiffness=1e6, backlash=0.2)
    brake = [rb.PrescribedForce("disc_deflection", -0.3)]
    motion = model.simulate([0.0, 0.0], [0.0, 0.84], 0.4, method=method, drives=brake, save_at=2)
    expected = rebound(0.84, 0.1, 0.4, acceleration=0.3 * 11, frequency=np.sqrt(1e6 * 11))
    np.testing.assert_allclose(motion.q[-1, 1], expected, rtol=0, atol=3 * int(motion.steps) * 1e-6)


@pytest.mark.fast_cases("rk45")
@pytest.mark.parametrize("method", METHODS)
def test_a_thrown_mass_tightens_a_cable_below_its_apex(method):
    """A cable from 3 m below becomes taut 0.01 m and less below the apex, in each sample at another height."""
    builder = rb.ModelBuilder(gravity=(0, 0, -G))
    builder.add_body("mass", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=1.0))
    speed = np.linspace(3.0, 5.0, 6)
    excess = np.geomspace(1e-3, 0.1, 6)
    height = speed**2 / (2 * G) - excess
    lengths = {"rest_length": height + 3, "stiffness": 1e5, "tension_only": True}
    cable = rb.SpringDamper(None, "mass", point_a=(0, 0, -3.0), point_b=(0, 0, 0), **lengths)
    start = np.zeros((6, 1)), speed[:, None]
    motion = builder.build().simulate(*start, 1.2, method=method, forces=[cable], save_at=2)
    assert motion.success
    error = 3 * motion.steps * 3e-6 * (1 + 2 * G * 1.2 / np.sqrt(2 * G * excess))
    expected = rebound(speed, height, 1.2, frequency=np.sqrt(1e5))
    assert (np.abs(motion.q[:, -1, 0] - expected) <= error).all()


@pytest.mark.fast_cases("rk45")
@pytest.mark.parametrize("method", METHODS)
def test_a_tethered_ball_turns_where_its_tether_tightens(method):
    """A ball flies from the middle of a sphere, whose radius is the tether's length, and stays within it."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("ball", joint=rb.Free(), inertia=rb.Inertia.sphere(0.05, mass=1.0))
    tether = rb.SpringDamper(
        None, "ball", point_a=(0, 0, 0), point_b=(0, 0, 0), rest_length=1.0, stiffness=1e6, tension_only=True
    )
    q, qd = [0.6, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 0.0, 0.0, 0.0]
    motion = builder.build().simulate(q, qd, 1.2, method=method, forces=[tether], save_at=31)
    assert np.linalg.norm(motion.q[:, :3], axis=-1).max() < 1.0 + 5**0.5 / 1e3
    # the tether has no moment about its fixed point, and stores energy only while it is taut
    momentum = np.cross(motion.q[:, :3], motion.qd[:, :3])
    np.testing.assert_allclose(momentum, [momentum[0]] * 31, rtol=0, atol=3 * int(motion.steps) * 3e-6)


def test_a_sample_that_passes_no_stop_keeps_its_bits():
    alone = thrown(2.0).simulate([[0.0]], [[5.0]], 1.2, save_at=2)
    both = thrown(2.0).simulate([[0.0], [0.0]], [[5.0], [6.5]], 1.2, save_at=2)
    assert np.array_equal(alone.q[0], both.q[0])
    assert both.rejections[1] > 0
