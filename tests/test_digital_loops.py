"""Messages name digital loops that oscillate near their sampling rate. A mass with a sampled damper has a closed form.

The speed changes by the factor 1 - gain in each period, with gain = kd period / mass: its sign alternates above 1, and
its amplitude grows above 2. With a delay of one period, v_(k+1) = v_k - gain v_(k-1): the roots of z^2 = z - gain have
the magnitude sqrt(gain), and a period of 6 instants at gain 1.
"""

import numpy as np
import pytest

import rbchain as rb

pytestmark = [pytest.mark.plain_python, pytest.mark.filterwarnings("ignore:.*A digital control loop")]

MASS, PERIOD = 2.0, 0.1
GROWS = "A digital control loop oscillates near its sampling rate. The force of the Sampled controller of joint 'slide'"


@pytest.fixture(scope="module")
def slide():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(MASS))
    return builder.build()


def damper(gain, limit=np.inf, **keys):
    kd = np.asarray(gain) * MASS / PERIOD
    return rb.Sampled(rb.PID("slide", 0.0, kp=0.0, kd=kd, limit=limit), period=PERIOD, **keys)


def motion_of(slide, *drives, speeds=1.0, duration=2.05, **keys):
    speeds = np.atleast_1d(speeds)[:, None]
    settings = {"method": "rk4", "step": PERIOD, "save_at": 2} | keys
    return slide.simulate(0 * speeds, speeds, duration, drives=drives, **settings)


def test_only_loops_that_grow_are_named(slide, tmp_path):
    gains = np.array([0.5, 1.9, 2.0, 2.1, 3.0])
    motion = motion_of(slide, damper(gains), speeds=np.ones(5))
    # the last full period ends at 2.0 s
    np.testing.assert_allclose(motion.end_qd[:, 0], (1 - gains) ** 20 * (1 - 0.5 * gains), rtol=1e-9, atol=1e-12)
    assert motion.success
    assert motion.oscillating_dof.tolist() == [-1, -1, -1, 0, 0]
    assert f"2 of 5: {GROWS} in sample 3 changes its direction" in motion.message
    with pytest.warns(rb.SimulationWarning, match="2 of 5: A digital control loop oscillates near its sampling rate"):
        motion_of(slide, damper(gains), speeds=np.ones(5))
    assert motion[4].oscillating_dof == 0
    assert GROWS in motion[4].message
    assert "digital" not in motion[1].message
    motion.save(tmp_path / "motion.npz")
    assert rb.load_motion(tmp_path / "motion.npz").oscillating_dof.tolist() == [-1, -1, -1, 0, 0]


def test_a_loop_that_only_its_limit_bounds_is_named(slide):
    motion = motion_of(slide, damper(np.array([1.9, 2.5]), limit=5.0), speeds=[0.1, 0.1], duration=6.0)
    assert np.abs(motion.end_qd).max() < 1.0
    assert motion.oscillating_dof.tolist() == [-1, 0]


def relay(t, q, qd, parameters, out):
    out[0] = -5.0 if qd[0] > 0.0 else 5.0


def linear(t, q, qd, parameters, out):
    out[0] = -parameters[0] * qd[0]


def test_bang_bang_control_is_not_named_but_a_function_that_grows_is(slide):
    """The relay alternates between its two forces for ever."""
    bang_bang = motion_of(slide, rb.Sampled(rb.UserForces(relay), period=PERIOD), speeds=[0.1])
    force = 0.5 * MASS * 5.0 / MASS * PERIOD
    assert abs(bang_bang.end_qd[0, 0]) < 2 * force
    assert bang_bang.oscillating_dof.tolist() == [-1]
    function = rb.UserForces(linear, parameters=[2.2 * MASS / PERIOD])
    assert motion_of(slide, rb.Sampled(function, period=PERIOD)).oscillating_dof.tolist() == [0]


@pytest.mark.slow
def test_noise_and_saturation_without_oscillation_are_not_named(slide):
    """A saturated damper brakes for a long time; noise alternates, also between the limits."""
    assert motion_of(slide, damper(1.5, limit=0.5), speeds=[50.0]).oscillating_dof.tolist() == [-1]
    sensor = rb.VelocitySensor("slide", noise=1.0, seed=1)
    for limit in (np.inf, 1e-3):
        noisy = motion_of(slide, damper(1.8, limit, sensors=[sensor]), speeds=np.zeros(50))
        assert (noisy.oscillating_dof == -1).all()


def test_a_loop_needs_enough_instants_in_this_motion(slide):
    drives = [damper(2.1)]
    few = motion_of(slide, *drives, duration=1.15)
    assert few.steps.max() > 0
    assert few.oscillating_dof.tolist() == [-1]
    assert motion_of(slide, *drives, duration=1.35).oscillating_dof.tolist() == [0]
    later = {"t0": 7.0, "duration": 1.15}
    assert motion_of(slide, *drives, **later).oscillating_dof.tolist() == [-1]
    assert motion_of(slide, *drives, **later | {"duration": 1.35}).oscillating_dof.tolist() == [0]
    again = slide.simulate(duration=1.4, continue_from=few, save_at=2)
    assert again.oscillating_dof.tolist() == [0]
    assert slide.simulate(duration=0.5, continue_from=few, save_at=2).oscillating_dof.tolist() == [-1]


def test_each_sampled_joint_is_observed_and_others_are_not():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name in ("first", "second"):
        builder.add_body(name, joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(MASS))
    model = builder.build()
    kd = 2.1 * MASS / PERIOD
    drives = [rb.PID("first", 0.0, kd=1.0, kp=0.0), rb.Sampled(rb.PID("second", 0.0, kp=0.0, kd=kd), period=PERIOD)]
    motion = model.simulate([0, 0], [1.0, 1.0], 2.05, drives=drives, method="rk4", step=PERIOD / 2)
    assert motion.oscillating_dof == 1
    assert "controller of joint 'second' changes" in motion.message
    assert model.simulate([0, 0], duration=0.1, method="rk4", step=0.05).oscillating_dof == -1
    delayed = rb.Sampled(rb.PID("second", 0.0, kp=0.0, kd=kd), period=PERIOD, delay=1e-3, phase=0.02)
    motion = model.simulate(np.zeros((0, 2)), duration=1.0, drives=[delayed], method="rk4", step=PERIOD)
    assert motion.oscillating_dof.shape == (0,)


@pytest.mark.parametrize("late", [{"delay": PERIOD}, {"latency": PERIOD}])
def test_loops_with_a_delay_of_one_period_that_grow_are_named(slide, late):
    gains = np.array([0.5, 0.9, 1.0, 1.03, 1.2, 1.9])
    motion = motion_of(slide, damper(gains, **late), speeds=np.ones(6), duration=4.05)
    assert motion.oscillating_dof.tolist() == [-1, -1, -1, 0, 0, 0]
    np.testing.assert_allclose(np.abs(np.roots([1, -1, 1.03])), np.sqrt(1.03))
    assert f"3 of 6: {GROWS} in sample 3" in motion.message


def test_a_delayed_loop_that_only_its_limit_bounds_is_named(slide):
    motion = motion_of(slide, damper(np.array([0.9, 200.0]), limit=5.0, delay=PERIOD), speeds=[0.1, 0.1], duration=6.0)
    assert np.abs(motion.end_qd).max() < 1.0
    assert motion.oscillating_dof.tolist() == [-1, 0]


def test_a_fast_reference_is_not_named(slide):
    """Its period is 6 instants, and so is the period of the force."""
    reference = rb.Signal.sines(0.3, 2 * np.pi / (6 * PERIOD))
    kp, kd = 0.5 * MASS / PERIOD**2, 0.8 * MASS / PERIOD
    drive = rb.Sampled(rb.PID("slide", reference, kp=kp, kd=kd), period=PERIOD)
    motion = motion_of(slide, drive, duration=8.05)
    assert np.abs(motion.end_qd).max() > 1.0
    assert motion.oscillating_dof.tolist() == [-1]


def test_noise_with_a_delay_is_not_named(slide):
    sensor = rb.VelocitySensor("slide", noise=1.0, seed=1)
    noisy = motion_of(slide, damper(0.95, sensors=[sensor], delay=PERIOD), speeds=np.zeros(200))
    assert (noisy.oscillating_dof == -1).all()


def test_a_failed_simulation_of_a_loop_that_diverges_is_named():
    arm = rb.Model.serial_chain(2, length=0.5, mass=5.0)
    pid = [rb.PID(joint, 0.3, kp=20, kd=60) for joint in ("link1", "link2")]
    drives = [rb.Sampled(controller, period=0.01, delay=0.01) for controller in pid]
    motion = arm.simulate([[0.3, 0.2]], duration=3.0, drives=drives, max_steps=300, on_failure="ignore")
    assert motion.status == rb.Status.TOO_MANY_STEPS
    assert motion.oscillating_dof == 0
    assert "A digital control loop oscillates near its sampling rate" in motion.message
    slow = arm.simulate([[0.3, 0.2]], duration=3.0, drives=pid, max_steps=30, on_failure="ignore")
    assert slow.status == rb.Status.TOO_MANY_STEPS
    assert "digital" not in slow.message
