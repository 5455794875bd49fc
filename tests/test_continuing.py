"""`simulate(continue_from=motion)` continues a motion, and `t0` is the time at its start."""

import numpy as np
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python
ARM = rb.Model.serial_chain(2)
START = np.array([[0.3, -0.2], [0.1, 0.4], [-1.0, 0.5]])
STEP, STEPS = 1e-3, 40
SERVO = rb.PID("link1", rb.Signal.sines(0.4, 9.0), kp=8.0, ki=5.0, kd=0.4)
ENCODER = rb.Encoder("link1", resolution=1e-3, noise=1e-3, measures_velocity=True)
DRIVES = {
    "PID": [SERVO],
    "sampled": [rb.Sampled(SERVO, period=0.007, delay=0.009, sensors=[ENCODER])],
    "lag": [rb.Sampled(SERVO, period=0.004), rb.Actuator("link1", time_constant=0.02)],
    "noise": [rb.PrescribedForce("link2", rb.Signal.random_walk(5.0, interval=0.003))],
}


def slide_without_gravity():
    """A mass of 2 kg that slides along x."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("mass", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(2.0))
    return builder.build()


@pytest.mark.fast_cases("implicit")
@pytest.mark.parametrize("method", ["rk4", "implicit", "moreau"])
@pytest.mark.parametrize("drives", DRIVES)
def test_pieces_with_fixed_steps_are_the_motion_in_one_call_bit_for_bit(method, drives):
    settings = {"method": method, "step": STEP, "drives": DRIVES[drives]}
    whole = ARM.simulate(START, duration=STEPS * STEP, **settings)
    motion = ARM.simulate(START, duration=13 * STEP, **settings)
    for steps in (1, 19, STEPS - 33):
        motion = ARM.simulate(duration=steps * STEP, continue_from=motion)
    np.testing.assert_array_equal(motion.end_q, whole.end_q)
    np.testing.assert_array_equal(motion.end_qd, whole.end_qd)
    assert motion.t[-1] == pytest.approx(STEPS * STEP, rel=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("drives", DRIVES)
def test_pieces_with_adaptive_steps_have_the_error_of_the_motion_in_one_call(drives):
    settings = {"drives": DRIVES[drives], "rtol": 1e-8, "atol": 1e-10, "save_at": 2}
    exact = ARM.simulate(START, duration=0.05, drives=DRIVES[drives], rtol=1e-12, atol=1e-14, save_at=2)
    whole = ARM.simulate(START, duration=0.05, **settings)
    first = ARM.simulate(START, duration=0.021, **settings)
    motion = ARM.simulate(duration=0.029, continue_from=first, save_at=2)
    error_of_whole = np.abs(whole.end_q - exact.end_q).max()
    assert np.abs(motion.end_q - exact.end_q).max() <= 10 * error_of_whole + 1e-12


@pytest.mark.fast_cases("dop853")
@pytest.mark.parametrize("method", ["rk45", "dop853", "rosenbrock", "radau"])
def test_pieces_with_adaptive_steps_take_one_step_more_each(method):
    """The end of a piece shortens a step, and the next piece begins with the length that the error allows."""
    whole, pieces = ARM.simulate(START, duration=0.3, method=method, save_at=2), 3
    motion = ARM.simulate(START, duration=0.1, method=method, save_at=2)
    steps = motion.steps
    for _ in range(pieces - 1):
        motion = ARM.simulate(duration=0.1, continue_from=motion, save_at=2)
        steps = steps + motion.steps
    assert (steps <= whole.steps + pieces).all()


def test_saved_times_continue():
    first = ARM.simulate(START, duration=0.02, method="rk4", step=STEP)
    motion = ARM.simulate(duration=0.02, continue_from=first, save_every=0.01)
    np.testing.assert_allclose(motion.t, [0.02, 0.03, 0.04], rtol=1e-15)
    np.testing.assert_array_equal(motion.q[:, 0], first.q[:, -1])


def test_a_single_state_continues():
    whole = ARM.simulate(START[0], duration=0.02, method="rk4", step=STEP)
    first = ARM.simulate(START[0], duration=0.01, method="rk4", step=STEP)
    np.testing.assert_array_equal(ARM.simulate(duration=0.01, continue_from=first).end_q, whole.end_q)


@pytest.mark.slow
def test_derivatives_continue():
    settings = {"method": "rk4", "step": STEP, "derivatives": ["q", "mass"]}
    whole = ARM.simulate(START, duration=0.04, **settings)
    motion = ARM.simulate(duration=0.02, continue_from=ARM.simulate(START, duration=0.02, **settings))
    for name, values in whole.derivatives.items():
        np.testing.assert_array_equal(motion.derivatives[name][:, -1], values[:, -1])


def test_samples_that_have_ended_remain_ended_and_the_others_continue():
    stop = rb.Event("link1", value=0.0, direction=-1, stop=True)
    settings = {"method": "rk4", "step": STEP, "events": [stop]}
    q, qd = [[0.01, 0.0], [1.0, 0.0]], [[-1.0, 0.0], [0.0, 0.0]]
    first = ARM.simulate(q, qd, 0.05, **settings)
    assert first.status.tolist() == [rb.Status.STOPPED, rb.Status.DONE]
    motion = ARM.simulate(duration=0.05, continue_from=first)
    assert motion.status.tolist() == [rb.Status.STOPPED, rb.Status.DONE]
    assert motion.end_time[0] == first.end_time[0]
    np.testing.assert_array_equal(motion.q[0], np.broadcast_to(first.end_q[0], motion.q[0].shape))
    np.testing.assert_array_equal(motion.end_q[0], first.end_q[0])
    np.testing.assert_array_equal(motion.end_q[1], ARM.simulate(q, qd, 0.1, **settings).end_q[1])


def test_a_motion_whose_samples_have_all_ended_continues_with_nothing():
    stop = rb.Event("link1", value=0.0, direction=-1, stop=True)
    first = ARM.simulate([0.01, 0.0], [-1.0, 0.0], 0.05, events=[stop])
    motion = ARM.simulate(duration=1.0, continue_from=first)
    assert (motion.status, motion.end_time) == (rb.Status.STOPPED, first.end_time)


def test_an_empty_batch_continues():
    first = ARM.simulate(np.zeros((0, 2)), duration=0.01, method="rk4", step=STEP)
    assert ARM.simulate(duration=0.01, continue_from=first, save_at=3).q.shape == (0, 3, 2)


def test_signals_count_from_the_time_zero_and_the_start_is_t0():
    """The force is the derivative of m t^2 / 2 of a mass on a slide."""
    slide = slide_without_gravity()
    push = rb.PrescribedForce("mass", rb.Signal.polynomial([0.0, 2.0]))
    motion = slide.simulate([[0.0]], duration=2.0, t0=3.0, drives=[push], save_at=[3.0, 4.0, 5.0])
    np.testing.assert_allclose(motion.qd[0, :, 0], (motion.t**2 - 9.0) / 2, rtol=0, atol=1e-7)
    assert motion.end_time[0] == 5.0


@pytest.mark.slow_cases("method0")
@pytest.mark.parametrize("method", [{}, {"method": "rk4", "step": 0.01}, {"method": "moreau", "step": 0.01}])
def test_without_functions_of_time_a_motion_does_not_depend_on_t0(method):
    floor = rb.SphereContact("link2", point=(0.5, 0, 0), radius=0.1, plane_point=(0, -0.8, 0), plane_normal=(0, 1, 0))
    forces = [floor] if method.get("method") != "rk4" else []
    early, late = (ARM.simulate(START, duration=0.2, t0=t0, forces=forces, save_at=5, **method) for t0 in (0.0, 7.0))
    np.testing.assert_allclose(late.q, early.q, rtol=0, atol=1e-7)
    np.testing.assert_allclose(late.t, early.t + 7.0, rtol=1e-15)


@pytest.mark.slow
def test_measures_between_saved_times_see_the_steps_after_t0():
    height = rb.Measure("height", "coordinate", frame="link2", axis="y", over="max")
    early, late = (ARM.simulate(START, duration=0.5, t0=t0, dense_output=200) for t0 in (0.0, 7.0))
    np.testing.assert_allclose(height.values(ARM, late), height.values(ARM, early), rtol=1e-9)


def test_sampled_controllers_start_at_the_first_instant_after_t0():
    """Instants are multiples of the period: the first one after 0.005 s is at 0.01 s."""
    drive = rb.Sampled(rb.PID("link1", 1.0, kp=3.0), period=0.01)
    motion = ARM.simulate(
        START, duration=0.01, t0=0.005, drives=[drive], method="rk4", step=STEP, save_at=[0.009, 0.012]
    )
    assert (motion.tau[:, 0, 0] == 0.0).all()
    assert (motion.tau[:, 1, 0] != 0.0).all()


@pytest.fixture(scope="module")
def motion():
    return ARM.simulate(START, duration=0.01, method="rk4", step=STEP)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "rk4"}, "method is 'rk4', but continue_from continues a trajectory with its own method"),
        ({"forces": ()}, r"forces is \(\), but"),
        ({"tau": 0.0}, "tau is 0.0, but"),
        ({"q0": START}, "q0 is array"),
        ({"qd0": START}, "qd0 is array"),
        ({"t0": 1.0}, "t0 is 1.0, but"),
        ({"step": 1e-2}, "step is 0.01, but"),
        ({"derivatives": ["q"]}, "derivatives is"),
        ({"continue_from": 3}, "continue_from is 3; expected a trajectory"),
        ({"duration": None}, "duration is missing"),
    ],
)
def test_what_the_motion_determines_cannot_be_given_again(motion, arguments, words):
    with pytest.raises(rb.ArgumentError, match=words):
        ARM.simulate(**({"duration": 0.01, "continue_from": motion} | arguments))


def test_a_part_of_a_motion_is_refused(motion):
    with pytest.raises(rb.ArgumentError, match="a part or a copy of a trajectory"):
        ARM.simulate(duration=0.01, continue_from=motion[1])


def test_a_motion_of_another_model_is_refused(motion):
    with pytest.raises(rb.ArgumentError, match="a trajectory of another model"):
        rb.Model.serial_chain(2).simulate(duration=0.01, continue_from=motion)


def test_saved_times_before_the_start_are_refused():
    with pytest.raises(rb.ArgumentError, match=r"expected times from the start, 1 s, to the end, 1\.5 s"):
        ARM.simulate(START, duration=0.5, t0=1.0, save_at=[0.5])


@pytest.mark.slow
def test_actuator_forces_at_the_start_are_those_at_the_end_before():
    drives = [rb.Sampled(SERVO, period=0.007, delay=0.003)]
    for method in ({"method": "rk4", "step": STEP}, {}):
        first = ARM.simulate(START, duration=0.025, drives=drives, **method)
        motion = ARM.simulate(duration=0.02, continue_from=first, save_at=3)
        np.testing.assert_array_equal(motion.tau[:, 0], first.tau[:, -1])


@pytest.mark.parametrize("over", ["mean", "rms", "settling_time"])
@pytest.mark.parametrize("dense_output", [0, 500])
def test_measures_do_not_depend_on_t0(over, dense_output):
    slide, drives = slide_without_gravity(), [rb.PID("mass", 1.0, kp=40.0, kd=4.0)]
    settings = {"step_to": 1.0, "band": 0.3} if over == "settling_time" else {}
    measure = rb.Measure("x", "position", joint="mass", over=over, **settings)
    motions = [
        slide.simulate([[0.0]], duration=2.0, t0=t0, drives=drives, dense_output=dense_output) for t0 in (0.0, 7.0)
    ]
    early, late = (measure.values(slide, motion) for motion in motions)
    np.testing.assert_allclose(late, early, rtol=1e-6)


@pytest.mark.slow
def test_seventy_pieces_are_the_motion_in_one_call_bit_for_bit():
    """The sum of the durations of the pieces has another round-off than the time of the step."""
    settings = {"method": "rk4", "step": STEP, "drives": [rb.PrescribedForce("link1", rb.Signal.sines(3.0, 200.0))]}
    motion = ARM.simulate(START, duration=STEP, **settings)
    for _ in range(69):
        motion = ARM.simulate(duration=STEP, continue_from=motion, save_at=2)
    np.testing.assert_array_equal(motion.end_qd, ARM.simulate(START, duration=0.07, save_at=2, **settings).end_qd)


def test_lists_and_arrays_that_change_later_do_not_change_the_motion():
    drives = [rb.PrescribedForce("link1", 1.0)]
    first = ARM.simulate(START, duration=0.01, drives=drives, method="rk4", step=STEP)
    expected = ARM.simulate(duration=0.01, continue_from=first).end_q
    drives[0] = rb.PrescribedForce("link1", 100.0)
    first.end_q[:] = 3.0
    np.testing.assert_array_equal(ARM.simulate(duration=0.01, continue_from=first).end_q, expected)


def test_an_empty_batch_with_digital_controllers_continues():
    first = ARM.simulate(np.zeros((0, 2)), duration=0.01, method="rk4", step=STEP, drives=DRIVES["sampled"])
    assert ARM.simulate(duration=0.01, continue_from=first, save_at=3).q.shape == (0, 3, 2)


@pytest.mark.parametrize(("t0", "words"), [(-1.0, "t0 is -1.0; expected"), (1e16, "where times are multiples of 2 s")])
def test_times_at_which_nothing_is_defined_or_resolved_are_refused(t0, words):
    with pytest.raises(rb.ArgumentError, match=words):
        ARM.simulate(START, duration=0.01, t0=t0)
    with pytest.raises(rb.ArgumentError, match=words):
        ARM.stepper(START, step=STEP, t0=t0)


def test_the_start_of_a_motion_is_saved_with_it(tmp_path):
    motion = ARM.simulate(START, duration=0.01, t0=2.0, save_at=[2.01])
    motion.save(tmp_path / "motion.npz")
    assert rb.load_motion(tmp_path / "motion.npz").start_time == motion.start_time == 2.0
