"""The closed-form two-link arm agrees with the program of 1990, and the general solver with both."""

from functools import cache
from math import cos, pi, sin

import numpy as np
import pytest

import rbchain as rb
from rbchain.reference import TwoLink

LINKS = {"l1": 0.9, "l2": 0.6, "m1": 3.0, "m2": 2.0, "mp": 0.7}
TEN_DIGITS = 3.141592654


@cache
def arm(g=9.81):
    """The same arm for the general solver: gravity along -y, the payload part of the second link."""
    builder = rb.ModelBuilder(name="two_link", gravity=(0, -g, 0))
    l1, l2, m1, m2, mp = LINKS.values()
    builder.add_body("upper", joint=rb.Revolute(), inertia=rb.Inertia.rod(l1, mass=m1, cg=(l1 / 2, 0, 0)))
    fore = rb.Inertia.rod(l2, mass=m2, cg=(l2 / 2, 0, 0)) + rb.Inertia(mp, cg=(l2, 0, 0))
    builder.add_body("fore", parent="upper", joint=rb.Revolute(), placement=rb.Pose((l1, 0, 0)), inertia=fore)
    return builder.build()


def states(count=1000, seed=0):
    """Random angles, speeds of a few rad/s, and accelerations or torques of the same magnitude."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-pi, pi, (count, 2)), *rng.normal(size=(2, count, 2)) * [[[3.0]], [[10.0]]]


def assert_agree(found, expected, tolerance=1e-13):
    """Compare the numbers of each state, to a tolerance relative to the largest."""
    error = np.abs(found - expected).max(-1) / np.abs(expected).max(-1)
    assert error.max() <= tolerance


@pytest.mark.parametrize("g", [9.81, -9.81, 0.0])
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
def test_the_general_solver_agrees_with_the_closed_form(quantity, g):
    state = states()
    assert_agree(getattr(arm(g), quantity)(*state), getattr(TwoLink(**LINKS, g=g), quantity)(*state))


def test_forward_dynamics_undoes_inverse_dynamics():
    two_link, (q, qd, qdd) = TwoLink(**LINKS), states()
    assert_agree(two_link.forward_dynamics(q, qd, two_link.inverse_dynamics(q, qd, qdd)), qdd)
    assert two_link.inverse_dynamics(q.reshape(10, 100, 2), qd[0], [0, 0]).shape == (10, 100, 2)


@pytest.mark.parametrize("mp", [0.0, 1e6])
def test_light_and_heavy_payloads_leave_forward_dynamics_accurate(mp):
    two_link = TwoLink(**LINKS | {"mp": mp})
    r1, r2, r3, r4, r5, r6 = (getattr(two_link, f"r{i}") for i in range(1, 7))
    (q, qd, tau), n = states(100), np.longdouble  # extended precision: near a stretched arm the determinant cancels
    c2, s2 = np.cos(q[:, 1].astype(n)), np.sin(q[:, 1].astype(n))
    bias1 = -(r4 * qd[:, 0] + r5 * qd[:, 1]) * s2 * qd[:, 1] + r1 * np.cos(q[:, 0].astype(n))
    swing = r3 * np.cos(q.astype(n).sum(-1))
    left1, left2 = 4 * tau[:, 0] - bias1 - swing, 4 * tau[:, 1] - r5 * s2 * qd[:, 0] ** 2 - swing
    across, along = r6 + r5 * c2, r2 + r4 * c2
    determinant = r6 * along - across**2
    expected = np.stack([r6 * left1 - across * left2, along * left2 - across * left1], -1) / determinant[:, None]
    assert_agree(two_link.forward_dynamics(q, qd, tau), expected, 1e-9 if mp else 1e-13)


def program_of_1990(l1, l2, m1, m2, mp, gravity, pi_fact):
    """Inverse and forward dynamics as Macsyma wrote them, in degrees and with gravity along +y.

    Transcribed term by term; only the names of what is computed once are left out.
    """
    i1, i2 = m1 * l1 * l1 / 12.0, m2 * l2 * l2 / 12.0
    r1 = 4.0 * gravity * l1 * m2 + 2 * gravity * l1 * m1 + 4.0 * mp * gravity * l1
    r2 = mp * (4.0 * l2**2 + 4.0 * l1**2) + m2 * (l2**2 + 4.0 * l1**2) + m1 * l1**2 + 4.0 * i2 + 4 * i1
    r3 = 2.0 * gravity * l2 * m2 + 4.0 * mp * gravity * l2
    r4 = 8.0 * l1 * l2 * mp + 4.0 * l1 * l2 * m2
    r5 = 2.0 * l1 * l2 * m2 + 4.0 * mp * l1 * l2
    r6 = m2 * l2**2 + 4.0 * mp * l2**2 + 4.0 * i2

    def inverse_dynamics(q, qd, qdd):
        (v1, v2), (a1, a2) = np.multiply(qd, pi_fact), np.multiply(qdd, pi_fact)
        c1, s1, c2, s2 = (f(x * pi_fact) for x in q for f in (cos, sin))
        torque1 = (
            a2 * (r6 + (c1**2 * r5 + s1**2 * r5) * c2)
            + a1 * r2
            - c1 * r1
            + (-(c1**2) * r4 - s1**2 * r4) * v2 * s2 * v1
            + (-(c1**2) * r5 - s1**2 * r5) * v2 * v2 * s2
            + s1 * r3 * s2
            + (-c1 * r3 + (c1**2 * r4 + s1**2 * r4) * a1) * c2
        ) / 4.0
        torque2 = (
            a1 * r6
            + a2 * r6
            + s2 * ((c1**2 * r5 + s1**2 * r5) * v1 * v1 + s1 * r3)
            + (-c1 * r3 + (c1**2 * r5 + s1**2 * r5) * a1) * c2
        ) / 4.0
        return torque1, torque2

    def forward_dynamics(q, qd, tau):
        (v1, v2), (tor1, tor2) = np.multiply(qd, pi_fact), tau
        c1, s1, c2, s2 = (f(x * pi_fact) for x in q for f in (cos, sin))
        factor = 1.0 / (r6 * r6 + c2 * (2.0 * r5 - r4) * r6 - r2 * r6 + r5 * r5 * c2 * c2)
        a1 = factor * (
            (4.0 * c2 * r5 + 4.0 * r6) * tor2
            - 4.0 * r6 * tor1
            + s2 * (c2 * (-r3 * r5 * s1 - r5 * r5 * v1 * v1) - r5 * r6 * v1 * v1)
            - c1 * r1 * r6
            - v1 * r4 * r6 * s2 * v2
            - r5 * r6 * s2 * v2 * v2
            + c2 * c2 * c1 * r3 * r5
        )
        a2 = -factor * (
            (4.0 * c2 * r4 + 4.0 * r2) * tor2
            + (-4.0 * c2 * r5 - 4.0 * r6) * tor1
            + c2 * c1 * (-r1 * r5 + r2 * r3 - r3 * r6)
            + s2 * (c2 * ((r3 * r5 - r3 * r4) * s1 - v1 * v1 * r5 * r4) - v1 * v1 * r5 * r2 + (r3 * r6 - r2 * r3) * s1)
            - c1 * r1 * r6
            + s2 * v2 * v2 * (-c2 * r5 * r5 - r5 * r6)
            + (-v1 * r4 * c2 * r5 - v1 * r4 * r6) * s2 * v2
            + c2 * c2 * c1 * (r3 * r4 - r3 * r5)
        )
        return a1 / pi_fact, a2 / pi_fact

    return {"inverse_dynamics": inverse_dynamics, "forward_dynamics": forward_dynamics}


@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("its_pi, tolerance", [(pi, 1e-13), (TEN_DIGITS, 1e-8)])
def test_the_program_of_1990_agrees_with_reversed_gravity(quantity, its_pi, tolerance):
    q, qd, x = states(300)
    q, qd = np.rad2deg(q), np.rad2deg(qd)
    x = np.rad2deg(x) if quantity == "inverse_dynamics" else x
    its = program_of_1990(**LINKS, gravity=9.81, pi_fact=its_pi / 180.0)[quantity]
    expected = np.array([its(*state) for state in zip(q, qd, x, strict=True)])
    found = getattr(TwoLink(**LINKS, g=-9.81, degrees=True), quantity)(q, qd, x)
    assert_agree(found, expected, tolerance)
    assert np.abs(getattr(TwoLink(**LINKS, degrees=True), quantity)(q, qd, x) - expected).max() > 1.0


@pytest.mark.slow_cases("-9.81")
@pytest.mark.parametrize("g", [9.81, -9.81])
def test_a_step_agrees_with_the_general_solver(g):
    (q, qd, tau), duration = states(20), 0.7
    motion = arm(g).simulate(q, qd, duration, tau=tau, rtol=1e-12, atol=1e-13, save_at=2)
    found = TwoLink(**LINKS, g=g).step(q, qd, tau, duration, rtol=1e-12)
    np.testing.assert_allclose(found[0], motion.q[:, -1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found[1], motion.qd[:, -1], rtol=0, atol=1e-8)
    assert_agree(found[2], TwoLink(**LINKS, g=g).forward_dynamics(found[0], found[1], tau), 1e-15)


def test_two_steps_equal_one_step_of_twice_the_time():
    two_link, (q, qd, tau) = TwoLink(**LINKS), states(3)
    halfway = two_link.step(q, qd, tau, 0.25)
    np.testing.assert_allclose(
        two_link.step(*halfway[:2], tau, 0.25)[0], two_link.step(q, qd, tau, 0.5)[0], rtol=0, atol=1e-7
    )


def test_degrees_are_converted_to_radians():
    (q, qd, x), duration = states(10), 0.3
    radians, degrees = TwoLink(**LINKS), TwoLink(**LINKS, degrees=True)
    turned = np.rad2deg(q), np.rad2deg(qd)
    assert_agree(degrees.inverse_dynamics(*turned, np.rad2deg(x)), radians.inverse_dynamics(q, qd, x))
    assert_agree(degrees.forward_dynamics(*turned, x), np.rad2deg(radians.forward_dynamics(q, qd, x)))
    for found, expected in zip(degrees.step(*turned, x, duration), radians.step(q, qd, x, duration), strict=True):
        np.testing.assert_allclose(found, np.rad2deg(expected), rtol=1e-7)


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        ({"l1": 0.0}, "l1 is 0.0; expected a finite number above 0"),
        ({"m2": -1}, "m2 is -1; expected a finite number above 0"),
        ({"m1": [1, 2]}, "m1 is .1, 2.; expected a finite number above 0"),
        ({"mp": -0.1}, "mp is -0.1; expected a finite number of at least 0"),
        ({"g": np.nan}, "g is nan; expected a finite number"),
        ({"g": "down"}, "g is 'down'; expected a finite number"),
        ({"degrees": "yes"}, "degrees is 'yes'; expected True or False"),
    ],
)
def test_invalid_arms_are_refused(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        TwoLink(**LINKS | wrong)


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        ({"q": [0, 0, 0]}, r"q has shape \(3,\); expected \(..., 2\)"),
        ({"qd": 1.0}, r"qd has shape \(\); expected \(..., 2\)"),
        ({"tau": ["a", "b"]}, "tau is .*; expected real numbers"),
        ({"qd": [np.inf, 0]}, "qd is .inf, 0.0.; expected finite numbers"),
        ({"q": np.zeros((2, 2)), "qd": np.zeros((3, 2))}, "do not fit together"),
        ({"duration": 0}, "duration is 0; expected a finite number above 0"),
        ({"rtol": 1e-17}, "rtol is 1e-17; expected a finite number of at least 1e-13"),
        ({"rtol": 2}, "rtol is 2.0; expected a number below 1"),
    ],
)
def test_invalid_states_and_settings_are_refused(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        TwoLink(**LINKS).step(**{"q": [0, 0], "qd": [0, 0], "tau": [0, 0], "duration": 1.0} | wrong)
