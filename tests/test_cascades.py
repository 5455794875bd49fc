"""Cascaded control: functions whose outputs are the targets of PID controllers, against discrete-time systems."""

import numpy as np
import pytest

import rbchain as rb

from .mechanisms import slide

pytestmark = pytest.mark.plain_python
MASS, GOAL = 2.0, 0.3  # the mass of `slide`
START = ([[0.1]], [[0.2]])
METHODS = {"rk45": {}, "rosenbrock": {}, "radau": {}, "rk4": {"step": 0.01}, "moreau": {"step": 0.01}}
SLOW, FAST = 0.05, 0.01
KP, KD, KI, OUTER = 40.0, 12.0, 5.0, 0.7


def compiled(t, q, qd, parameters, out):
    out[0] = q[0] + parameters[0] * (GOAL - q[0])


def of_batch(t, q, qd, parameters):
    return q + parameters * (GOAL - q)


def both_compiled(t, q, qd, parameters, out):
    out[0] = q[0] + parameters[0] * (GOAL - q[0])
    out[1] = parameters[0] * (GOAL - q[0])


def both_of_batch(t, q, qd, parameters):
    return np.concatenate([q + parameters * (GOAL - q), parameters * (GOAL - q)], -1)


FUNCTIONS = {"position": (compiled, of_batch), ("position", "velocity"): (both_compiled, both_of_batch)}


def cascade(function, **fields):
    outer = rb.Sampled(rb.UserForces(function, parameters=[OUTER]), period=SLOW, **fields)
    return [outer, rb.Sampled(rb.PID("slide", "outer", kp=KP, kd=KD, ki=KI), period=FAST)]


def loop_matrix(has_velocity):
    """Matrices of a fast period and of an outer instant, for the state (q, v, integral, target, rate of the target).

    The goal is the origin. The integral adds the error before the output is computed.
    """
    drift = np.array([[1.0, FAST], [0.0, 1.0]])
    by_force = np.array([FAST**2 / 2, FAST]) / MASS
    integral = np.array([-FAST, 0.0, 1.0, FAST, 0.0])
    error = np.array([-1.0, 0.0, 0.0, 1.0, 0.0])
    force = KP * error + KD * np.array([0.0, -1.0, 0.0, 0.0, 1.0]) + KI * integral
    fast = np.eye(5)
    fast[:2] = np.hstack([drift, np.zeros((2, 3))]) + np.outer(by_force, force)
    fast[2] = integral
    outer = np.eye(5)
    outer[3] = [1.0 - OUTER, 0.0, 0.0, 0.0, 0.0]
    outer[4] = [-OUTER if has_velocity else 0.0, 0.0, 0.0, 0.0, 0.0]
    return fast, outer, force


@pytest.mark.slow_cases("position-rk45", "rosenbrock")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("outputs", FUNCTIONS, ids=str)
def test_a_cascade_is_the_discrete_time_system(method, outputs):
    fast, outer, force = loop_matrix(outputs != "position")
    count, per_outer = 20, round(SLOW / FAST)
    state, found = np.array([START[0][0][0] - GOAL, START[1][0][0], 0.0, 0.0, 0.0]), []
    for i in range(count * per_outer + 1):
        if i % per_outer == 0:
            state = outer @ state
            found.append((state[0] + GOAL, state[1], force @ state))
        state = fast @ state
    q, v, tau = np.array(found).T
    for function in FUNCTIONS[outputs][: 1 if method in ("moreau", "radau") else 2]:
        settings = {"method": method, "save_at": count + 1, **METHODS[method]}
        motion = slide().simulate(*START, count * SLOW, drives=cascade(function, outputs=outputs), **settings)
        np.testing.assert_allclose(motion.q[0, :, 0], q, rtol=0, atol=1e-12)
        np.testing.assert_allclose(motion.qd[0, :, 0], v, rtol=0, atol=1e-12)
        np.testing.assert_allclose(motion.tau[0, :, 0], tau, rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", ["rk45", "rosenbrock"])
@pytest.mark.parametrize("function", FUNCTIONS["position"])
def test_a_continuous_controller_follows_held_targets(function, method):
    """Between the instants, the error of a PD loop without damping of the slide is an oscillation about the target."""
    drives = [
        rb.Sampled(rb.UserForces(function, parameters=[OUTER]), period=0.1, outputs="position"),
        rb.PID("slide", "outer", kp=KP),
    ]
    settings = {"method": method, "rtol": 1e-11, "atol": 1e-13}
    motion = slide().simulate(*START, 0.5, drives=drives, save_at=6, **settings)
    w, (q, v) = np.sqrt(KP / MASS), (START[0][0][0], START[1][0][0])
    for i in range(6):
        np.testing.assert_allclose([motion.q[0, i, 0], motion.qd[0, i, 0]], [q, v], rtol=0, atol=1e-10)
        target = q + OUTER * (GOAL - q)
        np.testing.assert_allclose(motion.tau[0, i, 0], KP * (target - q), rtol=0, atol=1e-8)
        c, s, error = np.cos(w * 0.1), np.sin(w * 0.1), q - target
        q, v = target + error * c + v / w * s, -error * w * s + v * c


def test_velocity_targets():
    """A proportional velocity loop: v' = kd (target - v) / m."""
    drives = [
        rb.Sampled(lambda t, q, qd, parameters: np.full_like(qd, 0.5), period=0.2, outputs="velocity"),
        rb.PID("slide", "outer", kp=0.0, kd=3.0),
    ]
    motion = slide().simulate(*START, 1.0, drives=drives, save_at=6, rtol=1e-10, atol=1e-12)
    exact = 0.5 - 0.3 * np.exp(-3.0 / MASS * motion.t)
    np.testing.assert_allclose(motion.qd[0, :, 0], exact, rtol=0, atol=1e-9)


@pytest.mark.parametrize("function", FUNCTIONS["position"])
def test_limits_of_targets(function):
    """The target starts at the initial position; saturation, rate limit and rounding apply in this order."""

    def step(t, q, qd, parameters, out):
        out[0] = 5.0

    drive = compiled if function is compiled else of_batch
    fields = {"rate_limit": 2.0, "resolution": 0.125, "limit": 0.8, "outputs": "position"}
    value = step if drive is compiled else lambda t, q, qd, parameters: np.full_like(q, 5.0)
    outer = rb.Sampled(value, period=0.1, delay=0.05, **fields)
    inner = rb.PID("slide", "outer", kp=1.0)  # its torque shows the target
    motion = slide().simulate([[0.1]], [[0.0]], 0.6, drives=[outer, inner], save_at=[0.0, 0.06, 0.16, 0.26, 0.36, 0.46])
    targets = motion.tau[0, :, 0] + motion.q[0, :, 0]
    rounded, previous = [0.1], 0.1
    for _ in range(5):
        previous = np.floor(min(0.8, previous + 0.2) / 0.125 + 0.5) * 0.125
        rounded.append(previous)
    np.testing.assert_allclose(targets, rounded, rtol=0, atol=1e-14)


def test_a_function_for_each_kind_of_targets_has_limits_of_its_own():
    drives = [
        rb.Sampled(lambda t, q, qd, parameters: np.full_like(q, 5.0), period=0.1, outputs="position", rate_limit=2.0),
        rb.Sampled(lambda t, q, qd, parameters: np.full_like(qd, 5.0), period=0.1, outputs="velocity", limit=0.5),
        rb.PID("slide", "outer", kp=1.0, kd=1.0),
    ]
    motion = slide().simulate([[0.1]], [[0.0]], 0.05, drives=drives, save_at=2)
    np.testing.assert_allclose(motion.tau[0, 0, 0], 0.2 + 0.5, rtol=0, atol=1e-14)


def test_a_limit_applies_before_the_rounding():
    drive = rb.Sampled(lambda t, q, qd, parameters: 10.0 * q, period=0.1, limit=0.8, resolution=0.5)
    assert slide().simulate([[0.1]], [[0.0]], 0.05, drives=[drive], save_at=2).tau[0, 0, 0] == 1.0


def test_forces_have_limits():
    drive = rb.Sampled(lambda t, q, qd, parameters: 10.0 * q, period=0.1, limit=[0.5, np.inf])
    motion = slide().simulate([[0.1], [0.1]], [[0.0], [0.0]], 0.05, drives=[drive], save_at=2)
    assert motion.tau[:, 0, 0].tolist() == [0.5, 1.0]


def test_some_joints_follow_targets():
    """Targets of one joint, a force on another one, and a lag, whose command is the torque of the inner controller."""
    arm = rb.Model.serial_chain(2, gravity=(0, 0, 0))

    def target(t, q, qd, parameters):
        return np.full((*q.shape[:-1], 1), GOAL)

    drives = [
        rb.Sampled(target, period=0.02, outputs="position", joints=["link2"]),
        rb.Sampled(rb.PID("link2", "outer", kp=0.5, kd=0.05), period=0.01),
        rb.Sampled(lambda t, q, qd, parameters: -0.1 * qd[..., :1], period=0.01, joints=["link1"]),
        rb.Actuator("link2", time_constant=0.005),
    ]
    plain = [rb.Sampled(rb.PID("link2", GOAL, kp=0.5, kd=0.05), period=0.01), *drives[2:]]
    found, expected = (arm.simulate([[0.1, 0.0]], [[0.0, 0.0]], 0.2, drives=x, save_at=7) for x in (drives, plain))
    np.testing.assert_allclose(found.q, expected.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.tau, expected.tau, rtol=0, atol=1e-8)


def test_an_inner_controller_computes_after_the_functions_before_it():
    """An unrelated PID with the same clock, listed before the function, must not delay the loop by an outer period."""
    arm = rb.Model.serial_chain(3, gravity=(0, 0, 0))

    def target(t, q, qd, parameters):
        return np.full((*q.shape[:-1], 2), GOAL + t)

    function = rb.Sampled(target, period=0.02, outputs="position", joints=["link2", "link3"])
    unrelated, inner, other_inner = (
        rb.Sampled(rb.PID(f"link{i}", reference, kp=0.5, kd=0.05), period=0.01)
        for i, reference in ((1, 0.0), (2, "outer"), (3, "outer"))
    )
    expected, found = (
        arm.simulate([[0.1, 0.0, 0.0]], [[0.0, 0.0, 0.0]], 0.1, drives=drives, save_at=11)
        for drives in (
            [function, unrelated, inner, other_inner],
            [unrelated, function, inner, other_inner],
        )
    )
    assert expected.tau[0, 0].tolist() == [-0.05, 0.5 * GOAL, 0.5 * GOAL]
    np.testing.assert_array_equal(found.tau, expected.tau)
    np.testing.assert_array_equal(found.q, expected.q)
    late = arm.simulate(
        [[0.1, 0.0, 0.0]], [[0.0, 0.0, 0.0]], 0.1, drives=[unrelated, inner, function, other_inner], save_at=11
    )
    assert late.tau[0, 0].tolist() == [-0.05, 0.0, 0.5 * GOAL]


def outer(**fields):
    return rb.Sampled(of_batch, **fields)


INNER = rb.PID("slide", "outer", kp=1.0)
BOTH = ("position", "velocity")


@pytest.mark.parametrize(
    ("drives", "message"),
    [
        (lambda: [INNER], "its reference is 'outer', but no user function computes its target"),
        (lambda: [INNER, outer()], "its reference is 'outer', but no user function"),
        (lambda: [outer(outputs="position")], "targets of joint 'slide', which has no PID that follows them"),
        (lambda: [rb.PID("slide", 0.0, kp=1.0), outer(outputs="position")], "has no PID that follows them"),
        (
            lambda: [INNER, outer(outputs="position"), outer(outputs="position")],
            "another function computes the position target",
        ),
        (lambda: [INNER, outer(outputs="velocity")], "it has kp or ki, but its target is only a velocity"),
        (lambda: [INNER, outer(outputs="torque")], "outputs is 'torque'; expected 'force', 'position'"),
        (lambda: [INNER, outer(outputs=("velocity", "position"))], "outputs is .* expected 'force', 'position'"),
        (lambda: [rb.Sampled(INNER, outputs="position")], "only user functions have outputs other than forces"),
        (lambda: [rb.Sampled(rb.PID("slide", 0, kp=1), limit=3.0)], "set the limit of the controller instead"),
        (lambda: [rb.PID("slide", "aim", kp=1.0)], "reference is 'aim'; expected a Signal, numbers, or 'outer'"),
        (
            lambda: [INNER, outer(outputs=BOTH, limit=0.5)],
            r"limit is 0.5, but outputs is .* different units; expected no limit",
        ),
        (
            lambda: [INNER, outer(outputs=BOTH, rate_limit=[3.0])],
            r"rate_limit is \[3.0\], but .* expected no rate_limit",
        ),
        (
            lambda: [INNER, outer(outputs=BOTH, resolution=0.1)],
            "resolution is 0.1, but .* Use one Sampled for each kind",
        ),
        (lambda: [rb.ComputedTorque("slide", "outer", kp=1.0, kd=1.0)], "reference is 'outer'"),
        (lambda: [INNER, outer(outputs="position", limit=-1.0)], "limit is -1.0"),
    ],
)
def test_what_is_refused(drives, message):
    with pytest.raises(rb.ArgumentError, match=message):
        slide().simulate(*START, 0.1, drives=drives(), save_at=2)
