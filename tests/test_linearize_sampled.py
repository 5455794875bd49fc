"""`Model.linearize` under sampled controllers: closed forms, and differences of motions over several periods."""

from functools import partial

import numpy as np
import pytest

import rbchain as rb

from .closed_chains import four_bar
from .test_linearize import WEIGHTS, rod

PLAIN = pytest.mark.plain_python
UPRIGHT = np.pi / 2


def slide():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(2.0))
    return builder.build()


@PLAIN
def test_a_double_integrator_with_one_period_of_delay():
    """x_(k+1) = x + T v + T^2 u / (2 m), v_(k+1) = v + T u / m, and u_(k+1) = kp (r - x) - kd v."""
    T, m, kp, kd = 0.1, 2.0, 3.0, 1.0
    drives = [rb.Sampled(rb.PID("slide", 0.0, kp=kp, kd=kd), period=T, delay=T)]
    inputs = ["slide", ("reference", "slide"), ("reference_velocity", "slide")]
    linear = slide().linearize(drives=drives, inputs=inputs, outputs=[("acceleration", "slide")])
    plant = np.array([[1, T, T**2 / 2 / m], [0, 1, T / m]])
    np.testing.assert_allclose(linear.A, [*plant, [-kp, -kd, 0]], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(linear.B, [[T**2 / 2 / m, 0, 0], [T / m, 0, 0], [0, kp, kd]], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(linear.C, [[0, 0, 1 / m]], rtol=1e-13)
    np.testing.assert_allclose(linear.D, [[1 / m, 0, 0]], rtol=1e-13)
    assert (linear.states, linear.period) == (("q slide", "qd slide", "output slide 1"), T)
    system = linear.to_scipy()
    assert system.dt == T
    w = np.array([0.5, 4.0])
    z = np.exp(1j * w * T)
    expected = [linear.C @ np.linalg.solve(x * np.eye(3) - linear.A, linear.B) + linear.D for x in z]
    np.testing.assert_allclose(linear.frequency_response(w / (2 * np.pi)).response, expected, rtol=1e-10)
    assert linear.frequency_response([0.5 / T]).response.shape == (1, 1, 3)
    for call in (linear.frequency_response, partial(slide().frequency_response, drives=drives)):
        with pytest.raises(rb.ArgumentError, match=r"frequency contains 6 Hz, .* half the sampling frequency, 5 Hz"):
            call([1.0, 6.0])


@PLAIN
def test_an_inverted_pendulum_with_delays_that_differ_between_samples():
    """x'' = w^2 x + u / I, with outputs that act after a part f of the period, or after more than one period."""
    T, I, w, kp, kd, ki = 0.05, 1.5, np.sqrt(10.0), 40.0, 6.0, 5.0  # noqa: E741
    delay = T * np.array([0.0, 0.4, 1.4, 1.0])
    pid = rb.PID("link1", UPRIGHT, kp=kp, kd=kd, ki=ki)
    linear = rod().linearize(np.full((4, 1), UPRIGHT), drives=[rb.Sampled(pid, period=T, delay=delay)])
    assert linear.states == ("q link1", "qd link1", "integral link1", "output link1 1", "output link1 2")

    def held(t):
        c, s = np.cosh(w * t), np.sinh(w * t)
        return np.array([[c, s / w], [w * s, c]]), np.array([c - 1, w * s]) / (w * w * I)

    error = np.array([-1.0, 0, 0, 0, 0])
    integral = np.array([0, 0, 1.0, 0, 0]) + T * error
    now = kp * error - kd * np.eye(5)[1] + ki * integral
    outputs = [now, np.eye(5)[3], np.eye(5)[4]]
    for sample, (f, m) in enumerate(((0.0, 0), (0.4, 0), (0.4, 1), (0.0, 1))):
        (before, by_first), (after, by_second) = held(f * T), held((1 - f) * T)
        first = before @ np.eye(5)[:2] + np.outer(by_first, outputs[min(m + 1, 2)])
        expected = after @ first + np.outer(by_second, outputs[m])
        np.testing.assert_allclose(linear.A[sample], [*expected, integral, now, outputs[1]], rtol=1e-12, atol=1e-13)
    assert linear[2].frequency_response([1.0]).response.shape == (1, 2, 1)


@PLAIN
def test_former_outputs_of_an_empty_batch_are_states():
    drives = [rb.Sampled(rb.PID("slide", 0.0, kp=1.0), period=0.1, delay=0.15)]
    assert slide().linearize(np.zeros((0, 1)), drives=drives).A.shape == (0, 4, 4)


@pytest.mark.slow
@PLAIN
@pytest.mark.parametrize(("delay", "latency"), [(0.065, 0.0), (0.0, 0.02)])
def test_powers_of_the_matrix_are_derivatives_of_motions(delay, latency):
    """An arm hangs at rest under controllers with an integral and gravity compensation; one of them is continuous."""
    T, count = 0.05, 3
    arm = rb.Model.serial_chain(2, length=0.5, mass=2.0, gravity=(0, -10, 0)).replace(damping=0.1)
    rest, (first, second) = np.array([-UPRIGHT, 0.0]), arm.joint_names
    clock = {"period": T, "delay": delay, "latency": latency, "phase": latency}

    def settings(r, c):
        reference = -UPRIGHT + 2.0 * rb.Input("r", r)
        drives = [
            rb.Sampled(rb.PID(first, reference, kp=20.0, kd=2.0, ki=30.0), **clock),
            rb.Sampled(rb.PID(second, rb.Input("r", r), kp=5.0, gravity_compensation=True), **clock),
            rb.PID(second, rb.Input("c", c), kp=1.0, kd=0.1, ki=2.0),
        ]
        force = (rb.Input("c", c), rb.Input("r", r), 0.0)
        return {"drives": drives, "forces": [rb.Wrench("link2", force=force, point=(0.3, 0, 0))]}

    linear = arm.linearize(rest, inputs=[rb.Input("r"), rb.Input("c")], **settings(0.0, 0.0))
    assert abs(linear.acceleration).max() < 1e-12

    step, changes = 3e-3, np.eye(6)
    sides = np.array([k * side for k, _ in WEIGHTS for side in (1, -1)]) * step
    weights = np.array([w * side for _, w in WEIGHTS for side in (1, -1)]) / step
    x = (changes[:, None] * sides[:, None]).reshape(-1, 6)
    motion = arm.simulate(
        rest + x[:, :2], x[:, 2:4], count * T, method="dop853", rtol=1e-12, atol=1e-14, **settings(x[:, 4], x[:, 5])
    )
    final = np.concatenate([motion.q[:, -1] - rest, motion.qd[:, -1]], -1)
    expected = np.einsum("s,csi->ic", weights, final.reshape(6, len(sides), 4))
    found, by_inputs = np.eye(len(linear.A)), np.zeros_like(linear.B)
    for _ in range(count):
        found, by_inputs = linear.A @ found, linear.A @ by_inputs + linear.B
    scale = abs(expected).max()
    np.testing.assert_allclose(found[:4, :4], expected[:, :4], rtol=1e-8, atol=1e-9 * scale)
    np.testing.assert_allclose(by_inputs[:4], expected[:, 4:], rtol=1e-8, atol=1e-9 * scale)


@PLAIN
def test_the_outputs_at_the_operating_point_hold_the_plant():
    """Away from the equilibrium, the plant has the accelerations and stiffness under the outputs as constant forces."""
    model, T = rb.Model.serial_chain(2, gravity=(0, -10, 0)), 1e-4
    pids = [rb.PID(joint, 0.3, kp=2.0, kd=0.1, limit=0.05) for joint in model.joint_names]
    pids[0] = rb.PID(model.joint_names[0], 0.3, kp=0.5, gravity_compensation=True)
    q, qd = [0.2, -0.4], [0.3, 0.1]
    linear = model.linearize(q, qd, drives=[rb.Sampled(pid, period=T) for pid in pids])
    continuous = model.linearize(q, qd, drives=pids)
    np.testing.assert_allclose(linear.acceleration, continuous.acceleration, rtol=1e-12)
    np.testing.assert_allclose((linear.A - np.eye(4)) / T, continuous.A, atol=1e-2 * abs(continuous.A).max())
    all_joints = [rb.ComputedTorque(joint, 0.3, kp=25.0, kd=10.0) for joint in model.joint_names]
    linear = model.linearize([0.3, 0.3], drives=[rb.Sampled(drive, period=T) for drive in all_joints])
    continuous = model.linearize([0.3, 0.3], drives=all_joints)
    np.testing.assert_allclose((linear.A - np.eye(4)) / T, continuous.A, atol=1e-2 * abs(continuous.A).max())


def push(t, q, qd, parameters, out):
    out[0] += 0.0


SAMPLED = rb.Sampled(rb.PID("link1", 0.0, kp=1.0), period=0.1)
PID = rb.PID("link2", 0.0, kp=1.0)
REFUSED = [
    ([rb.Sampled(push, period=0.1)], "has a user function as controller; expected a PID"),
    ([rb.Sampled(PID, period=0.1, sensors=[rb.Encoder("link2", resolution=0.1)])], "has sensors; expected none"),
    ([rb.Sampled(PID, period=0.1, rate_limit=1.0)], "has a rate_limit"),
    ([rb.Sampled(PID, period=0.1, resolution=0.1)], "has a resolution"),
    ([rb.Sampled(PID, period=0.1, latency=0.2)], "latency=0.2; expected a latency below the period"),
    ([SAMPLED, rb.Sampled(PID, period=0.2)], r"has period=0.2, but .*0.1; expected the same number"),
    ([SAMPLED, rb.Sampled(PID, period=0.1, delay=0.01)], "has delay=0.01"),
    ([SAMPLED, rb.Actuator("link1", time_constant=0.1)], "has a time_constant"),
    ([SAMPLED, rb.Sampled(rb.ComputedTorque("link2", 0.0, kp=1.0, kd=1.0), period=0.1)], "only if all degrees"),
]


@PLAIN
@pytest.mark.parametrize(("drives", "message"), REFUSED, ids=range(len(REFUSED)))
def test_controllers_without_a_linear_law_are_refused(drives, message):
    with pytest.raises(rb.ArgumentError, match=message):
        rb.Model.serial_chain(2).linearize([0.0, 0.0], drives=drives)


@PLAIN
def test_sampled_controllers_of_closed_chains_are_refused():
    model, _, guess = four_bar()
    drives = [rb.Sampled(rb.PID(model.joint_names[0], 0.0, kp=1.0))]
    with pytest.raises(rb.ArgumentError, match="does not support Sampled in closed loops"):
        model.linearize(model.assemble(guess), drives=drives)
