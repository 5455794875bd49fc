"""Sampled controllers: exact discrete-time systems, delays, several clocks, sensors, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest

import rbchain as rb
from rbchain.core.lanes.random_numbers import two_normals

from .closed_chains import four_bar

pytestmark = pytest.mark.plain_python
SLOW = pytest.mark.slow
MASS, REFERENCE, KP, KD = 2.0, 0.3, 20.0, 8.0
START = ([[0.1]], [[0.2]])
METHODS = {"rk45": {}, "rosenbrock": {}, "radau": {}, "rk4": {"step": 0.02}, "moreau": {"step": 0.02}}


def slider(mass=MASS):
    """A mass on a slide without gravity: a double integrator."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass))
    return builder.build()


def pd(**clock):
    return rb.Sampled(rb.PID("slide", REFERENCE, kp=KP, kd=KD), **clock)


def discrete_motion(control, period, delay, count):
    """Compute the state and the force at the instants exactly: between changes of the force, the motion is a parabola.

    `control(q, v)` returns the output of an instant, which acts from `delay` after the instant on.
    """
    q, v, force = START[0][0][0], START[1][0][0], 0.0
    pending, found = [], []
    whole = int(delay / period + 1e-9)  # the output of instant i begins to act in the period i + whole
    rest = max(delay - whole * period, 0.0)
    for i in range(count + 1):
        pending.append(control(q, v))
        new = pending[i - whole] if i >= whole else 0.0
        found.append((q, v, force if rest > 0.0 else new))
        for length, acting in ((rest, force), (period - rest, new)):
            q, v = q + v * length + acting / MASS * length**2 / 2, v + acting / MASS * length
        force = new
    return np.array(found).T


DELAYS = {"none": 0.0, "fraction": 0.02, "one period": 0.05, "longer": 0.13}


@pytest.mark.parametrize(
    ("method", "delay"),
    [
        pytest.param(method, delay, id=f"{method}-{name}", marks=[] if method == "rk45" or i in (1, 3) else SLOW)
        for method in METHODS
        for i, (name, delay) in enumerate(DELAYS.items())
    ],
)
def test_a_sampled_pd_controller_is_the_discrete_time_system(method, delay):
    count, period = 25, 0.05
    drives = [pd(period=period, delay=delay)]
    settings = {"method": method, "save_at": count + 1, **METHODS[method]}
    motion = slider().simulate(*START, count * period, drives=drives, **settings)
    q, v, force = discrete_motion(lambda q, v: KP * (REFERENCE - q) - KD * v, period, delay, count)
    np.testing.assert_allclose(motion.q[0, :, 0], q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.qd[0, :, 0], v, rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.tau[0, :, 0], force, rtol=0, atol=1e-10)


def test_the_integral_is_a_sum_of_errors():
    """I_i = I_(i-1) + period e_i, and the output of instant i uses I_i."""
    count, period, ki = 20, 0.05, 11.0
    sums = [0.0]

    def control(q, v):
        sums[0] += period * (REFERENCE - q)
        return KP * (REFERENCE - q) - KD * v + ki * sums[0]

    drives = [rb.Sampled(rb.PID("slide", REFERENCE, kp=KP, kd=KD, ki=ki), period=period)]
    motion = slider().simulate(*START, count * period, drives=drives, save_at=count + 1)
    q, _, force = discrete_motion(control, period, 0.0, count)
    np.testing.assert_allclose(motion.q[0, :, 0], q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.tau[0, :, 0], force, rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", ["rk4", "implicit", "moreau"])
def test_delays_that_are_multiples_of_a_fixed_step_can_differ_between_samples(method):
    """Each sample moves as it does alone, bit for bit. The motion of "rk4" and "moreau" is exact."""
    period, count, delay = 0.05, 8, np.array([0.0, 0.03, 0.12, 0.05, 0.03])

    def motion_of(part):
        late = pd(period=period, delay=delay[part], latency=0.01 + 0.0 * delay[part], phase=0.01)
        start = [np.full((delay[part].size, 1), x[0][0]) for x in START]
        settings = {"method": method, "step": 0.01, "save_at": 5 * count + 1}
        return slider().simulate(*start, count * period, drives=[late], **settings)

    motion = motion_of(slice(None))
    for i in range(delay.size):
        alone = motion_of(slice(i, i + 1))
        np.testing.assert_array_equal(alone.q[0], motion.q[i])
        np.testing.assert_array_equal(alone.tau[0], motion.tau[i])
        q, v, _ = discrete_motion(lambda q, v: KP * (REFERENCE - q) - KD * v, period, 0.01 + delay[i], count)
        if method != "implicit":
            np.testing.assert_allclose(motion.q[i, ::5, 0], q, rtol=0, atol=1e-13)
            np.testing.assert_allclose(motion.qd[i, ::5, 0], v, rtol=0, atol=1e-13)


def spectral_radius(period, delay):
    """Largest eigenvalue of the sampled loop with a delay below one period: state (q, v, previous output)."""
    gain, late = np.array([KP, KD]), period - delay
    drift = np.array([[1.0, period], [0.0, 1.0]])
    previous = np.array([delay * (late + delay / 2), delay]) / MASS  # acts first, for `delay`
    new = np.array([late**2 / 2, late]) / MASS
    loop = np.zeros((3, 3))
    loop[:2, :2] = drift - np.outer(new, gain)
    loop[:2, 2] = previous
    loop[2, :2] = -gain
    return np.abs(np.linalg.eigvals(loop)).max()


def test_the_delay_margin_is_that_of_the_eigenvalues():
    period, low, high = 0.2, 0.0, 0.2
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if spectral_radius(period, middle) < 1.0 else (low, middle)
    assert 0.02 < low < 0.18  # the margin is within the period
    delays = low + np.array([-0.004, 0.004])
    q0, qd0 = np.full((2, 1), 0.1), np.zeros((2, 1))
    motion = slider().simulate(q0, qd0, 12.0, drives=[pd(period=period, delay=delays)], save_at=121)
    error = np.abs(motion.q[..., 0] - REFERENCE)
    early, late = error[:, 20:60].max(1), error[:, -40:].max(1)
    assert late[0] < 0.9 * early[0]
    assert late[1] > 1.1 * early[1]
    growth = np.array([spectral_radius(period, delay) for delay in delays]) ** (6.1 / period)
    np.testing.assert_allclose(late / early, growth, rtol=0.1)


def test_rates_that_are_computed_again_are_not_needed():
    """With an event, which never occurs here, the rate at the end of each step is computed. The motion is the same."""
    settings = {"method": "implicit", "step": 0.02, "save_at": 8, "drives": [pd(period=0.05, delay=0.07)]}
    motion = slider().simulate(*START, 0.5, **settings)
    other = slider().simulate(*START, 0.5, events=[rb.Event("slide", value=9.0, stop=True)], **settings)
    for name in ("q", "qd", "tau", "steps"):
        np.testing.assert_array_equal(getattr(motion, name), getattr(other, name))
    assert (motion.evaluations < other.evaluations).all()


def test_a_prescribed_motion_is_saved_where_outputs_change():
    """The rates there are computed again, but the steps before set the prescribed states at their ends."""
    drives = [rb.PrescribedPosition("x", rb.Signal.sines(0.1, 6.0)), rb.Sampled(rb.PID("y", 0.3, kp=KP), period=0.05)]
    zero = np.zeros((1, 2))
    for method in ("implicit", "rk4"):
        motion = two_sliders().simulate(zero, zero, 0.5, drives=drives, save_at=11, step=0.025, method=method)
        np.testing.assert_allclose(motion.q[0, :, 0], 0.1 * np.sin(6.0 * motion.t), rtol=0, atol=1e-15)


def two_sliders():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name, axis in (("x", (1, 0, 0)), ("y", (0, 1, 0))):
        builder.add_body(name, joint=rb.Prismatic(axis), inertia=rb.Inertia(MASS))
    return builder.build()


@pytest.mark.slow_cases("radau", "rosenbrock")
@pytest.mark.parametrize("method", METHODS)
def test_controllers_with_different_clocks_do_not_affect_each_other(method):
    """Each of two independent slides moves as it does alone."""
    clocks = {"x": {"period": 0.05, "delay": 0.07}, "y": {"period": 0.03, "phase": 0.01}}
    drives = {name: rb.Sampled(rb.PID(name, REFERENCE, kp=KP, kd=KD, ki=5.0), **clocks[name]) for name in clocks}
    zero, settings = np.zeros((1, 2)), {"method": method, "save_at": 13, **METHODS[method]}
    both = two_sliders().simulate(zero, zero, 0.6, drives=[*drives.values()], **settings)
    for i, drive in enumerate(drives.values()):
        one = two_sliders().simulate(zero, zero, 0.6, drives=[drive], **settings)
        np.testing.assert_allclose(both.q[..., i], one.q[..., i], rtol=0, atol=1e-12)
        np.testing.assert_allclose(both.tau[..., i], one.tau[..., i], rtol=0, atol=1e-10)
    assert (both.tau[0, 0] == [KP * REFERENCE * 0, 0]).all()  # outputs are zero before the first one acts


def test_methods_agree_for_an_arm():
    arm, zero = rb.Model.serial_chain(2), np.zeros((1, 2))
    pid = [rb.PID(name, 0.5, kp=0.3, kd=0.02, ki=0.5, gravity_compensation=True) for name in arm.joint_names]
    drives = [rb.Sampled(controller, period=0.02, delay=0.003) for controller in pid]
    found = [
        arm.simulate(zero, zero, 0.08, drives=drives, save_at=3, method=method, **settings)
        for method, settings in (("rk45", {}), ("rosenbrock", {}), ("rk4", {"step": 2e-3}))
    ]
    for motion in found[1:]:
        np.testing.assert_allclose(motion.q, found[0].q, rtol=0, atol=1e-7)
        np.testing.assert_allclose(motion.tau, found[0].tau, rtol=0, atol=1e-6)


def test_computed_torque_uses_the_state_of_the_instants():
    arm, period = rb.Model.serial_chain(2), 0.05
    drives = [rb.Sampled(rb.ComputedTorque(name, 0.4, kp=30.0, kd=8.0), period=period) for name in arm.joint_names]
    motion = arm.simulate([[0.1, -0.2]], [[0.3, 0.0]], 0.5, drives=drives, save_at=21)
    wanted = 30.0 * (0.4 - motion.q) - 8.0 * motion.qd
    torque = arm.inverse_dynamics(motion.q, motion.qd, wanted)
    np.testing.assert_allclose(motion.tau[:, ::2], torque[:, ::2], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(motion.tau[:, 1::2], motion.tau[:, :-1:2])  # held between the instants


def test_latency_and_delay_are_one_dead_time_for_a_constant_reference():
    """A measurement that is 0.02 s old with a delay of 0.03 s has the effect of a delay of 0.05 s, 0.02 s earlier."""
    count, period = 20, 0.05
    late = slider().simulate(*START, 1.0, drives=[pd(period=period, latency=0.02, delay=0.03, phase=0.02)], save_at=21)
    q, _, force = discrete_motion(lambda q, v: KP * (REFERENCE - q) - KD * v, period, 0.05, count)
    np.testing.assert_allclose(late.q[0, :, 0], q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(late.tau[0, :, 0], force, rtol=0, atol=1e-10)
    # the instants 0 and 0.05 s have no measurement, because it would be before the start
    latest = slider().simulate(*START, 0.2, drives=[pd(period=0.05, latency=0.06)], save_at=[0.0, 0.09, 0.1, 0.12, 0.2])
    assert (latest.tau[0, :2] == 0.0).all()
    measured = START[0][0][0] + 0.04 * START[1][0][0]
    np.testing.assert_allclose(latest.tau[0, 2:4, 0], KP * (REFERENCE - measured) - KD * 0.2, rtol=1e-12)


def test_sensors_and_outputs_are_rounded_and_limited():
    count, period = 20, 0.05
    sensors = [
        rb.Encoder("slide", resolution=0.01, bias=0.003),
        rb.VelocitySensor("slide", resolution=0.05, bias=-0.01),
    ]
    previous = [0.0]

    def control(q, v):
        measured = 0.01 * math.floor((q + 0.003) / 0.01 + 0.5), 0.05 * math.floor((v - 0.01) / 0.05 + 0.5)
        output = KP * (REFERENCE - measured[0]) - KD * measured[1]
        output = min(max(output, previous[0] - 25.0 * period), previous[0] + 25.0 * period)
        previous[0] = 0.125 * math.floor(output / 0.125 + 0.5)
        return previous[0]

    drives = [pd(period=period, sensors=sensors, rate_limit=25.0, resolution=0.125)]
    motion = slider().simulate(*START, count * period, drives=drives, save_at=count + 1)
    q, _, force = discrete_motion(control, period, 0.0, count)
    np.testing.assert_allclose(motion.q[0, :, 0], q, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(motion.tau[0, :, 0], force)
    assert np.ptp(force) > 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_output_of_an_instant_contains_a_jump_of_its_reference_at_this_instant(dtype):
    """In float32, 0.57 s and 0.58 s are rounded to times before the jump. 5 (1 / 3) is before 5 / 3 by round-off."""
    start = np.zeros((1, 1), dtype)
    for jump, period in ((0.57, 0.01), (0.58, 0.01), (5 / 3, 1 / 3)):
        reference = rb.Signal(np.array([[0.0], [1.0]]), breaks=np.array([0.0, jump]))
        drive = rb.Sampled(rb.PID("slide", reference, kp=1.0), period=period)
        times = [jump - period / 2, jump + period / 2, jump + 3 * period]
        motion = slider(1e6).simulate(
            start, start, times[-1], method="rk4", step=period, drives=[drive], save_at=times, on_failure="raise"
        )
        np.testing.assert_allclose(motion.tau[0, :, 0], [0.0, 1.0, 1.0], atol=1e-6)


def test_an_encoder_measures_the_velocity_by_differences():
    count, period = 20, 0.05
    before = [math.nan]

    def control(q, v):
        measured = 0.001 * math.floor(q / 0.001 + 0.5)
        velocity = 0.0 if math.isnan(before[0]) else (measured - before[0]) / period
        before[0] = measured
        return KP * (REFERENCE - measured) - KD * velocity

    sensors = [rb.Encoder("slide", resolution=0.001, measures_velocity=True)]
    motion = slider().simulate(*START, count * period, drives=[pd(period=period, sensors=sensors)], save_at=count + 1)
    q, _, force = discrete_motion(control, period, 0.0, count)
    np.testing.assert_allclose(motion.q[0, :, 0], q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.tau[0, :, 0], force, rtol=0, atol=1e-10)


def test_a_user_function_has_discrete_states_and_its_own_clock():
    """A PD controller as a user function, whose velocity is the difference of two positions in its states."""

    def control(t, q, qd, parameters, states, out):
        velocity = (q[0] - states[0]) / 0.05 if states[1] > 0.0 else 0.0
        states[0], states[1] = q[0], states[1] + 1.0
        out[0] = parameters[0] * (parameters[1] - q[0]) - parameters[2] * velocity

    user = rb.Sampled(
        rb.UserForces(control, parameters=[KP, REFERENCE, KD]), period=0.05, delay=0.02, states=[0.0, 0.0]
    )
    encoder = rb.Encoder("slide", measures_velocity=True)
    settings = {"save_at": 11, "method": "rk4", "step": 0.01}
    found = slider().simulate(*START, 0.5, drives=[user], **settings)
    known = slider().simulate(*START, 0.5, drives=[pd(period=0.05, delay=0.02, sensors=[encoder])], **settings)
    np.testing.assert_allclose(found.q, known.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.tau, known.tau, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_user_function_that_raises_ends_its_sample_with_the_time(method):
    def control(t, q, qd, parameters, out):
        if t > parameters[0]:
            raise ValueError("too late")
        out[0] = 1.0

    user = rb.Sampled(rb.UserForces(control, parameters=[[0.22], [9.0]]), period=0.1)
    zero = np.zeros((2, 1))
    motion = slider().simulate(
        zero, zero, 0.5, method=method, drives=[user], save_at=6, **METHODS[method], on_failure="ignore"
    )
    assert motion.status.tolist() == [rb.Status.USER_FUNCTION_FAILED, rb.Status.DONE]
    assert motion.end_time.tolist() == [pytest.approx(0.3), 0.5]
    assert "too late at t = 0.3 s" in motion.exceptions[0,]
    np.testing.assert_allclose(motion.q[1, :, 0], np.linspace(0, 0.5, 6) ** 2 / 2 / MASS, rtol=0, atol=1e-12)


def test_a_sample_moves_alone_as_in_a_batch():
    delay, kp = np.array([0.0, 0.01, 0.033, 0.2]), np.array([10.0, 20.0, 25.0, 5.0])
    start = np.linspace(0, 0.3, 4)[:, None]

    def drives(part):
        controller = rb.PID("slide", REFERENCE, kp=kp[part], kd=KD)
        return [rb.Sampled(controller, period=0.04, delay=delay[part], latency=0.005)]

    motion = slider().simulate(start, 0 * start, 0.5, drives=drives(slice(None)), save_at=6)
    for i in range(4):
        one = slider().simulate(start[[i]], 0 * start[[i]], 0.5, drives=drives(slice(i, i + 1)), save_at=6)
        np.testing.assert_array_equal(one.q[0], motion.q[i])
        np.testing.assert_array_equal(one.tau[0], motion.tau[i])


@pytest.mark.parametrize("settings", [{}, {"method": "moreau", "step": 0.01}], ids=["rk45", "moreau"])
def test_a_held_force_jumps_while_a_ball_rests_on_the_floor(settings):
    """The controller lifts a ball from the floor at its second instant; before, the floor carries its weight."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10.0))
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(MASS))

    def lift(t, q, qd, parameters, out):
        out[0] = 30.0 if t > 0.05 else 5.0

    floor = rb.SphereContact(
        "ball",
        point=(0, 0, 0),
        radius=0.1,
        plane_point=(0, 0, 0),
        plane_normal=(0, 0, 1),
        friction=0.0,
        restitution=0.0,
    )
    drives = [rb.Sampled(rb.UserForces(lift), period=0.1, delay=0.03)]
    motion = builder.build().simulate(
        [[0.1]], [[0.0]], 0.3, drives=drives, forces=[floor], save_at=[0.0, 0.1, 0.2, 0.3], **settings
    )
    np.testing.assert_allclose(motion.q[0, :2, 0], 0.1, rtol=0, atol=1e-12)
    rise = (np.array([0.2, 0.3]) - 0.13) ** 2 / 2 * (30.0 / MASS - 10.0)
    np.testing.assert_allclose(motion.q[0, 2:, 0], 0.1 + rise, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(motion.tau[0, :, 0], [0.0, 5.0, 30.0, 30.0])


@pytest.mark.parametrize("method", METHODS)
def test_a_closed_chain_moves_as_under_a_constant_force(method):
    chain = four_bar()
    start = chain.model.assemble(chain.guess)[None], np.zeros((1, chain.model.nv))

    def constant(t, q, qd, parameters, out):
        out[0] = parameters[0]

    settings = {"method": method, "save_at": 3} | ({"step": 0.005} if METHODS[method] else {})
    known = chain.model.simulate(*start, 0.1, drives=[rb.PrescribedForce("crank", 0.5)], **settings)
    drives = [rb.Sampled(rb.UserForces(constant, parameters=[0.5]), period=0.03)]
    found = chain.model.simulate(*start, 0.1, drives=drives, **settings)
    np.testing.assert_allclose(found.q, known.q, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(found.tau, known.tau)
    assert np.abs(chain.model.constraint_residual(found.q)).max() < 1e-12


@pytest.mark.slow
def test_a_sample_of_a_closed_chain_moves_alone_as_in_a_batch():
    chain, delay = four_bar(), np.array([0.0, 0.007, 0.045])
    start = np.tile(chain.model.assemble(chain.guess), (3, 1)), np.zeros((3, chain.model.nv))

    def motion_of(part):
        drives = [rb.Sampled(rb.PID("crank", 0.8, kp=20.0, kd=1.0), period=0.02, delay=delay[part])]
        return chain.model.simulate(start[0][part], start[1][part], 0.1, drives=drives, save_at=3)

    motion = motion_of(slice(None))
    assert motion.success
    for i in range(3):
        np.testing.assert_array_equal(motion_of(slice(i, i + 1)).q[0], motion.q[i])


def test_computed_torque_of_a_closed_chain_is_refused():
    chain = four_bar()
    drives = [rb.Sampled(rb.ComputedTorque("crank", 0.0, kp=1.0, kd=1.0))]
    with pytest.raises(rb.ArgumentError, match="ComputedTorque and gravity_compensation do not support closed loops"):
        chain.model.simulate(chain.model.assemble(chain.guess), np.zeros(chain.model.nv), 0.1, drives=drives, save_at=2)


def refusals():
    two = [rb.ComputedTorque(name, 0.0, kp=1.0, kd=1.0) for name in ("x", "y")]
    lists = [[rb.Encoder("x")], [rb.Encoder("x", bias=1e-3)]]
    yield lambda: [rb.Sampled(rb.PrescribedForce("x", 1.0))], {}, "expected a PID, a ComputedTorque or UserForces"
    yield lambda: [rb.Sampled(rb.PID("x", 0, kp=1), period=0.0)], {}, "Sampled PID of joint 'x': period is 0.0"
    yield (
        lambda: [rb.Sampled(rb.PID("x", 0, kp=1), delay=-1.0)],
        {},
        "delay is -1.0; expected finite numbers of at least 0",
    )
    yield lambda: [rb.Sampled(rb.PID("x", 0, kp=1), delay=2.0)], {}, "more than 1000 periods of 0.001 s"
    yield lambda: [rb.Sampled(rb.PID("x", 0, kp=1), states=[1.0])], {}, "only user functions have states"
    yield lambda: [rb.Sampled(rb.PID("x", 0, kp=1), sensors=[3])], {}, "expected Encoder or VelocitySensor objects"
    yield (
        lambda: [rb.Sampled(rb.PID("x", 0, kp=1), sensors=lists[0] * 2)],
        {},
        "another sensor measures the same quantity",
    )
    yield (
        lambda: [rb.Sampled(rb.PID("x", 0, kp=1), sensors=[rb.Encoder("y")])],
        {},
        "its sensors measure the joints \\['y'\\], but",
    )
    yield (
        lambda: [rb.Sampled(rb.PID("x", 0, kp=1), sensors=[rb.Encoder("x", sample_ids=[0.5, 1])])],
        {},
        "expected whole numbers",
    )
    yield lambda: [rb.Sampled(rb.PID("x", 0, kp=1)), rb.PrescribedVelocity("x", 0)], {}, "no effect"
    yield lambda: [rb.Sampled(two[0]), two[1]], {}, "ComputedTorque drives have different clocks"
    yield (
        lambda: [rb.Sampled(two[0]), rb.Sampled(two[1], delay=1e-4)],
        {},
        "ComputedTorque drives have different clocks",
    )
    yield (
        lambda: [rb.Sampled(two[0], sensors=lists[0]), rb.Sampled(two[1], sensors=lists[1])],
        {},
        "latency and sensors",
    )
    late = rb.Sampled(rb.PID("x", 0, kp=1), delay=[1e-3, 2e-3])
    common = 'delay or latency differs between samples, and the {}.* is not a multiple of the step.*Use .*"rk45"'
    yield lambda: [late], {"method": "rk4", "step": 1e-2}, common.format("delay 0.002 s")
    yield lambda: [late], {"method": "moreau", "step": 1e-3, "save_at": 8}, common.format("saved time 0.0")
    slow = rb.Sampled(rb.PID("x", 0, kp=1), latency=[1e-3, 2e-3], period=1.5e-3)
    yield lambda: [slow], {"method": "implicit", "step": 1e-3}, common.format("period 0.0015 s")


@pytest.mark.parametrize(("drives", "settings", "message"), [*refusals()])
def test_what_is_refused(drives, settings, message):
    with pytest.raises(rb.ArgumentError, match=message):
        two_sliders().simulate(np.zeros((2, 2)), np.zeros((2, 2)), 0.1, drives=drives(), **settings)


NOISY = [rb.Encoder("slide", noise=2e-3, seed=5), rb.VelocitySensor("slide", noise=3e-2)]


def test_the_noise_of_sensors_is_that_of_the_generator():
    """Encoder and velocity sensor have the channels 0 and 1 here; the seed of the latter is 0."""
    count, period = 10, 0.05
    instants = np.arange(count + 1)
    noise = [2e-3 * two_normals(5, 0, 0, instants)[0], 3e-2 * two_normals(0, 0, 1, instants)[0]]
    calls = iter(zip(*noise, strict=True))

    def control(q, v):
        dq, dv = next(calls)
        return KP * (REFERENCE - q - dq) - KD * (v + dv)

    motion = slider().simulate(*START, count * period, drives=[pd(period=period, sensors=NOISY)], save_at=count + 1)
    q, _, force = discrete_motion(control, period, 0.0, count)
    np.testing.assert_allclose(motion.q[0, :, 0], q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.tau[0, :, 0], force, rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_a_sample_sees_the_same_noise_alone(method):
    start, settings = np.full((3, 1), 0.1), {"method": method, "save_at": 6, **METHODS[method]}
    motion = slider().simulate(start, 0 * start, 0.25, drives=[pd(period=0.05, sensors=NOISY)], **settings)
    alone = [replace(sensor, sample_ids=2) for sensor in NOISY]
    one = slider().simulate(start[2:], 0 * start[2:], 0.25, drives=[pd(period=0.05, sensors=alone)], **settings)
    np.testing.assert_array_equal(one.tau[0], motion.tau[2])
    assert (motion.tau[0] != motion.tau[1]).any()


@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("function", "states"),
    [
        (lambda t, q, qd: -q, ()),
        (lambda q, qd: -q, ()),
        (lambda t, q, qd, parameters: -q, (0.0,)),
    ],
)
def test_a_function_in_python_with_too_few_parameters_is_refused_with_those_that_it_needs(function, states):
    """A function without `out` is in plain Python, and not one that cannot be compiled."""
    needed = "t, q, qd, parameters, states" if states else "t, q, qd, parameters"
    message = rf"cannot be called with \({needed}\): .*expected function\({needed}\) in plain Python, or function\("
    drive = rb.Sampled(function, period=0.1, states=states)
    with pytest.raises(rb.ArgumentError, match=message):
        rb.Model.serial_chain(1).simulate([[0.0]], [[0.0]], 0.1, method="rk4", step=0.1, drives=[drive], save_at=2)


def test_a_resolution_rounds_the_outputs_of_controllers_and_functions_alike():
    """Outputs are clipped to the limit first: 1.3 N is rounded to 1.5 N, and 1.1 N to 1.0 N."""

    def function(t, q, qd, parameters, out):
        out[0] = 1000.0 * (10.0 - q[0])

    for limit, expected in ((1.3, 1.5), (1.1, 1.0)):
        settings = {"period": 0.1, "resolution": 0.5}
        drives = (
            rb.Sampled(rb.PID("slide", 10.0, kp=1000.0, limit=limit), **settings),
            rb.Sampled(function, limit=limit, **settings),
        )
        for drive in drives:
            motion = slider().simulate([[0.0]], [[0.0]], 0.2, method="rk4", step=0.1, save_at=2, drives=[drive])
            assert motion.tau[0, 0, 0] == expected
