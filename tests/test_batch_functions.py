"""Sampled controllers in plain Python for the whole batch: the same motions as with compiled functions, and errors."""

import numpy as np
import pytest

import rbchain as rb

from .closed_chains import four_bar
from .mechanisms import slide

pytestmark = pytest.mark.plain_python
LOOSE, STEP = {"rtol": 1e-4, "atol": 1e-6}, {"step": 4e-3}
METHODS = {"rk45": {}, "dop853": {}, "rosenbrock": LOOSE, "radau": LOOSE, "rk4": STEP, "implicit": STEP, "moreau": STEP}
BATCH, TARGET = 5, 0.3


def control(t, q, qd, parameters, states, out):
    """Compute two torques: a PI controller with damping, and a spring."""
    states[0] += TARGET - q[0]
    out[0] = parameters[0] * (TARGET - q[0]) - 0.2 * qd[0] + 0.05 * states[0]
    out[1] = -parameters[1] * q[1] - 0.1 * qd[1] + 0.1 * t


def control_of_batch(t, q, qd, parameters, states):
    """Compute the torques of `control` for all samples."""
    states[..., 0] += TARGET - q[..., 0]
    first = parameters[..., 0] * (TARGET - q[..., 0]) - 0.2 * qd[..., 0] + 0.05 * states[..., 0]
    return np.stack([first, -parameters[..., 1] * q[..., 1] - 0.1 * qd[..., 1] + 0.1 * t], -1)


def arm():
    return rb.Model.serial_chain(2, gravity=(0, 0, 0))


def random_start(batch=(BATCH,)):
    rng = np.random.default_rng(1)
    return rng.uniform(-0.3, 0.3, (*batch, 2)), rng.uniform(-0.3, 0.3, (*batch, 2))


def gains(batch=(BATCH,)):
    count = int(np.prod(batch, dtype=int))
    return np.stack([np.linspace(1.0, 2.0, count), np.linspace(2.0, 1.0, count)], -1).reshape(*batch, 2)


def drives_with(function, delay, batch=(BATCH,)):
    """Return a function with noise and delay, and a compiled controller with another clock."""
    sensors = [
        rb.Encoder("link1", resolution=1e-3, noise=1e-3, measures_velocity=True),
        rb.VelocitySensor("link2", noise=1e-2, bias=0.01),
    ]
    clock = {"period": 0.02, "delay": delay, "latency": 0.004, "sensors": sensors}
    user = rb.UserForces(function, parameters=gains(batch))
    pid = rb.PID("link2", 0.1, kp=0.2, kd=0.1, ki=0.1, gravity_compensation=True, controller_model="own")
    return [
        rb.Sampled(user, states=[0.5], rate_limit=90.0, resolution=1e-4, **clock),
        rb.Sampled(pid, period=0.007, phase=0.002),
    ]


def assert_equal_motions(a, b):
    """Assert that two motions are equal, bit for bit, with all statistics and events."""
    for name in ("q", "qd", "tau", "status", "steps", "rejections", "evaluations", "end_time", "end_q"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    for one, other in zip(a.events, b.events, strict=True):
        np.testing.assert_array_equal(one.t, other.t)


@pytest.mark.fast_cases("implicit")
@pytest.mark.parametrize("method", METHODS)
def test_the_motion_is_that_of_the_compiled_function(method):
    """Delays of up to two periods, latency, noise, a second clock, saved times between instants, and events."""
    loaded = rb.Model.serial_chain(2, gravity=(0, -1, 0))
    loaded = loaded.vary(mass=loaded.mass * np.linspace(0.8, 1.2, BATCH)[:, None])
    delay = 0.013 if "step" in METHODS[method] else np.linspace(0.0, 0.04, BATCH)
    events = (
        [rb.Event("link1", value=0.15, stop=True), rb.Event("link2", value=0.3, stop=True)] if method != "radau" else []
    )
    settings = {"method": method, "events": events, "save_at": [0.013, 0.1, 0.17], **METHODS[method]}
    compiled, plain = (
        loaded.simulate(*random_start(), 0.2, drives=drives_with(function, delay), **settings)
        for function in (control, control_of_batch)
    )
    assert_equal_motions(compiled, plain)
    assert {*plain.status.tolist()} == {rb.Status.DONE, rb.Status.STOPPED} if events else {rb.Status.DONE}


@pytest.mark.parametrize("batch", [(), (2, 3)], ids=str)
def test_functions_receive_the_shape_of_the_batch(batch):
    shapes = []

    def function(t, q, qd, parameters, states):
        shapes.append((t, q.shape, qd.shape, parameters.shape, states.shape))
        return control_of_batch(t, q, qd, parameters, states)

    start = [x.astype(np.float32) for x in random_start(batch)]
    compiled, plain = (
        arm().simulate(*start, 0.05, drives=drives_with(f, 0.01, batch), save_at=3) for f in (control, function)
    )
    assert_equal_motions(compiled, plain)
    assert shapes == [(t, *[(*batch, 2)] * 3, (*batch, 1)) for t in (0.02, 0.04)]


@pytest.mark.parametrize("method", METHODS)
def test_a_function_is_the_discrete_time_controller(method):
    """A double integrator under PD control, without delay, against the exact recursion."""
    kp, kd, period, count = 20.0, 8.0, 0.05, 25
    drive = rb.Sampled(lambda t, q, qd, parameters: kp * (TARGET - q) - kd * qd, period=period)
    settings = {"method": method} | ({"step": period / 2} if "step" in METHODS[method] else {})
    motion = slide().simulate([[0.1]], [[0.2]], count * period, drives=[drive], save_at=count + 1, **settings)
    mass, state = float(slide().mass[0]), np.array([0.1, 0.2])
    steps = 2 if method == "implicit" else np.inf  # the implicit Euler method moves by h v at the end of the step
    for i in range(count + 1):
        np.testing.assert_allclose([motion.q[0, i, 0], motion.qd[0, i, 0]], state, rtol=0, atol=1e-12)
        force = kp * (TARGET - state[0]) - kd * state[1]
        np.testing.assert_allclose(motion.tau[0, i, 0], force, rtol=0, atol=1e-10)
        moved = period * state[1] + force / mass * period**2 * (1 + 1 / steps) / 2
        state = state + [moved, force / mass * period]


@pytest.mark.slow
def test_several_functions_and_a_continuous_one():
    """Functions are called in the order of the drives, at their instants, and act on their joints only."""

    def weak(t, q, qd, parameters, out):
        out[1] -= 0.3 * q[1]

    def slow(t, q, qd, parameters, out):
        out[0] = -0.4 * qd[1]

    calls = []

    def fast_of_batch(t, q, qd, parameters):
        calls.append(("fast", round(t, 12)))
        return -0.5 * q

    def slow_of_batch(t, q, qd, parameters):
        calls.append(("slow", round(t, 12)))
        return -0.4 * qd[..., 1:]

    def fast(t, q, qd, parameters, out):
        out[:] = -0.5 * q

    def motion(f, g):
        drives = [
            rb.Sampled(f, period=0.02),
            rb.UserForces(weak),
            rb.Sampled(g, period=0.03, joints=["link2"]),
        ]
        return arm().simulate(*random_start(), 0.06, drives=drives, save_at=4)

    assert_equal_motions(motion(fast, slow), motion(fast_of_batch, slow_of_batch))
    expected = [(0.0, "fast"), (0.0, "slow"), (0.02, "fast"), (0.03, "slow"), (0.04, "fast")]
    assert calls == [(name, t) for t, name in [*expected, (0.06, "fast"), (0.06, "slow")]]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rk45", "moreau"])
def test_closed_chains_and_contacts(method):
    settings, delay = ({}, [0.0, 0.01]) if method == "rk45" else (STEP, 0.01)

    def hold(t, q, qd, parameters, out):
        out[0] = -0.5 * qd[0] + 0.2

    def hold_of_batch(t, q, qd, parameters):
        out = np.zeros_like(qd)
        out[..., 0] = -0.5 * qd[..., 0] + 0.2
        return out

    chain, wall = (
        four_bar(),
        rb.SphereContact(
            "slide",
            point=(0, 0, 0),
            radius=0.1,
            plane_point=(1, 0, 0),
            plane_normal=(-1, 0, 0),
            friction=0.0,
            restitution=0.6,
        ),
    )
    bar = chain.model.vary(mass=chain.model.mass * np.array([[1.0], [1.2]]))
    q = np.tile(chain.model.assemble(chain.guess), (2, 1))
    for model, start, forces in ((bar, q, []), (slide(), np.array([[0.88], [0.89]]), [wall])):
        motions = [
            model.simulate(
                *(start, np.full((2, 1), 0.3) if forces else np.zeros((2, model.nv)), 0.3),
                forces=forces,
                save_at=7,
                drives=[rb.Sampled(function, period=0.06, delay=delay)],
                method=method,
                **settings,
            )
            for function in (hold, hold_of_batch)
        ]
        assert motions[0].success
        assert not forces or (motions[0].impacts[0].count > 0).all()
        assert_equal_motions(*motions)


@pytest.mark.slow
def test_a_sample_that_fails_does_not_affect_the_others():
    """Sample 1 gets outputs that are NaN, and sample 3 has no finite force later; both have an end state."""

    def function(t, q, qd, parameters):
        assert np.isfinite(q).all()
        forces = -0.5 * q
        forces[1, 0] = np.nan if t > 0.05 and parameters[1, 0] == 1.0 else forces[1, 0]
        return forces

    def escapes(t, q, qd, parameters, out):
        if t > parameters[0]:
            raise ValueError("too late")

    def motion(parameters, limits):
        drives = [
            rb.Sampled(rb.UserForces(function, parameters=parameters), period=0.02),
            rb.UserForces(escapes, parameters=limits),
        ]
        return arm().simulate(*random_start(), 0.2, drives=drives, save_at=11, on_failure="ignore")

    limits = np.full((BATCH, 1), 9.0)
    expected = motion([0.0], limits)
    limits[3] = 0.11
    found = motion([1.0], limits)
    others = [0, 2, 4]
    for name in ("q", "qd", "tau", "steps"):
        np.testing.assert_array_equal(getattr(found, name)[others], getattr(expected, name)[others])
    failed = rb.Status.USER_FUNCTION_FAILED
    assert found.status.tolist() == [0, failed, 0, failed, 0]
    assert "Sampled UserForces with function 'function' returned nan at t = 0.06 s" in found.message
    assert found.end_time[1] == 0.06
    assert "ValueError: too late" in found.exceptions[(3,)]


def test_exceptions_have_the_time():
    def function(t, q, qd, parameters):
        if t > 0.03:
            raise RuntimeError("the sensor is broken")
        return 0.0 * q

    with pytest.raises(RuntimeError, match="the sensor is broken") as caught:
        arm().simulate(*random_start(), 0.1, drives=[rb.Sampled(function, period=0.01)], save_at=2)
    note = "Sampled UserForces with function 'function' raised this exception at t = 0.04 s."
    assert caught.value.__notes__ == [note]


def test_a_keyboard_interrupt_stops_the_simulation():
    def function(t, q, qd, parameters):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        arm().simulate(*random_start(), 0.1, drives=[rb.Sampled(function, period=0.01)], save_at=2)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, r"the result at t = 0 s is None; expected an array of shape \(5, 2\).* Return the outputs"),
        (np.zeros(2), r"the result at t = 0 s has shape \(2,\); expected an array of shape \(5, 2\)"),
        (np.zeros((5, 2), complex), "the result at t = 0 s has type complex128; expected real numbers"),
        ("zero", "the result at t = 0 s is 'zero'; expected real numbers"),
    ],
)
def test_wrong_results_are_refused(result, message):
    drives = [rb.Sampled(lambda t, q, qd, parameters: result, period=0.01)]
    with pytest.raises(rb.ArgumentError, match=f"Sampled UserForces with function a lambda: {message}"):
        arm().simulate(*random_start(), 0.1, drives=drives, save_at=2)


def zero(t, q, qd, parameters):
    return 0.0 * q


@pytest.mark.parametrize(
    ("drives", "settings", "message"),
    [
        (lambda: [rb.UserForces(zero)], {}, "it has no argument out.* only Sampled supports"),
        (
            lambda: [rb.Sampled(zero, latency=np.arange(5) * 1e-3)],
            {},
            "latency differs between samples, but Python calls",
        ),
        (lambda: [rb.Sampled(zero, joints=["link3"])], {}, "joints: the model has no joint 'link3'"),
        (lambda: [rb.Sampled(zero, joints=["link1", "link1"])], {}, "expected each joint once"),
        (lambda: [rb.Sampled(zero, joints="link1")], {}, "joints is 'link1'; expected a list of names"),
        (lambda: [rb.Sampled(rb.PID("link1", 0, kp=1), joints=["link1"])], {}, "only user functions have joints"),
        (lambda: [rb.Sampled(zero, period=-1.0)], {}, "period is -1.0"),
        (lambda: [rb.Sampled(rb.UserForces(zero, parameters=np.zeros((3, 1))))], {}, r"parameters has shape \(3, 1\)"),
        (lambda: [rb.Sampled(lambda t, q: q)], {}, r"expected function\(t, q, qd, parameters\) in plain Python"),
        (lambda: [rb.Sampled(control_of_batch)], {}, "'control_of_batch' is called states, but there are no states"),
        (lambda: [rb.Sampled(lambda t, q, qd, p, out: None, states=[0.0])], {}, "Give it these six parameters"),
        (
            lambda: [rb.Sampled(lambda t, q, qd, p: q, states=[0.0])],
            {},
            r"expected function\(t, q, qd, parameters, states\) in plain Python",
        ),
    ],
)
def test_what_is_refused(drives, settings, message):
    with pytest.raises(rb.ArgumentError, match=message):
        arm().simulate(*random_start(), 0.1, drives=drives(), **settings)


@pytest.mark.plain_python
def test_functions_with_default_arguments_are_plain_python_without_an_argument_out():
    """Such a function was taken for a compiled one, whose result is not returned."""

    def spring(t, q, qd, parameters):
        return 30.0 * (0.1 - q) - 2.0 * qd

    def with_default(t, q, qd, parameters, gain=30.0):
        return gain * (0.1 - q) - 2.0 * qd

    def with_any(*arguments, **others):
        return spring(*arguments, **others)

    motions = [
        slide().simulate(np.zeros((3, 1)), np.zeros((3, 1)), 0.3, drives=[rb.Sampled(function, period=0.05)], save_at=4)
        for function in (spring, with_default, with_any)
    ]
    assert motions[0].q[0, -1] > 0.05
    for motion in motions[1:]:
        np.testing.assert_array_equal(motion.q, motions[0].q)
