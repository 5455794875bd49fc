"""Saved times do not change the steps of methods with error control. The states at them are as accurate as the end."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.simulate.settings import times_to_save

END = 2.0
PLAIN = pytest.mark.plain_python
EACH_WAY = pytest.mark.usefixtures("plain_or_slow")
TIMES = {"none": None, "grid": 21, "uneven": np.array([1e-9, 0.1, 0.1 + 1e-12, 0.7, 1.3, 1.9999])}


def oscillator(stiffness: float, damping: float = 0.0) -> rb.Model:
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    passive = rb.PassiveForces(stiffness=stiffness, damping=damping)
    builder.add_body("mass", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0), passive=passive)
    return builder.build()


def double_pendulum() -> rb.Model:
    return rb.Model.serial_chain(2, gravity=(0, -9.81, 0))


def bouncing(method: str, save_at: object) -> rb.Trajectory:
    """Balls bounce with friction on a floor, each from another height; one rolls to rest."""
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body("ball", joint=rb.Free(), inertia=rb.Inertia(1.0, inertia=np.eye(3) * 0.004))
    floor = rb.SphereContact(
        "ball",
        point=(0, 0, 0),
        radius=0.1,
        plane_point=(0, 0, 0),
        plane_normal=(0, 0, 1),
        friction=0.3,
        restitution=0.6,
    )
    q = np.zeros((5, 7))
    q[:, 6], q[:, 2] = 1.0, [0.1, 0.2, 0.3, 0.5, 1.0]
    qd = np.zeros((5, 6))
    qd[:, 0] = 0.5
    return builder.build().simulate(q, qd, END, method=method, forces=[floor], save_at=save_at)


def swinging(method: str, save_at: object) -> rb.Trajectory:
    q = np.array([[0.3, 0.2], [1.0, -0.5], [2.0, 0.1]])
    return double_pendulum().simulate(q, np.zeros((3, 2)), END, method=method, save_at=save_at)


def vibrating(method: str, save_at: object) -> rb.Trajectory:
    return oscillator(9.0).simulate([[1.0], [0.3]], [[0.0], [2.0]], END, method=method, save_at=save_at)


def falling(method: str, save_at: object) -> rb.Trajectory:
    """Balls fall on a floor along one axis."""
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(1.0))
    floor = rb.SphereContact(
        "ball", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, 0), plane_normal=(0, 0, 1), restitution=0.9
    )
    start = np.array([[0.6], [1.0]])
    return builder.build().simulate(start, 0 * start, END, method=method, forces=[floor], save_at=save_at)


CASES = [
    (swinging, "rk45"),
    (bouncing, "rk45"),
    pytest.param(vibrating, "dop853", marks=PLAIN),
    pytest.param(vibrating, "radau", marks=PLAIN),
    pytest.param(falling, "rosenbrock", marks=PLAIN),
    pytest.param(swinging, "radau", marks=pytest.mark.slow),
    pytest.param(bouncing, "rosenbrock", marks=pytest.mark.slow),
]


@pytest.mark.slow_cases("falling", "radau")
@pytest.mark.parametrize(("simulate", "method"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_saved_times_do_not_change_the_motion(simulate, method):
    motions = {name: simulate(method, times) for name, times in TIMES.items()}
    for motion in motions.values():
        assert motion.success, motion.message
        assert motion.end_q.tobytes() == motions["none"].end_q.tobytes()
        assert motion.end_qd.tobytes() == motions["none"].end_qd.tobytes()
        for name in ("steps", "rejections", "evaluations"):
            np.testing.assert_array_equal(getattr(motion, name), getattr(motions["none"], name))
    # 0.7 and 1.3 s are in both, and may be different numbers
    grid, uneven = motions["grid"], motions["uneven"]
    for time in (0.1, 0.7, 1.3):
        i, j = (int(np.argmin(abs(motion.t - time))) for motion in (grid, uneven))
        if grid.t[i] == uneven.t[j]:
            assert grid.q[:, i].tobytes() == uneven.q[:, j].tobytes()
            assert grid.qd[:, i].tobytes() == uneven.qd[:, j].tobytes()


@pytest.mark.slow
def test_a_sample_is_saved_alike_alone_and_in_a_batch():
    together = swinging("radau", 21)
    alone = double_pendulum().simulate([[1.0, -0.5]], [[0.0, 0.0]], END, method="radau", save_at=21)
    assert alone.q[0].tobytes() == together.q[1].tobytes()


@pytest.mark.slow_cases("1e-12")
@EACH_WAY
@pytest.mark.parametrize("tolerance", [1e-6, 1e-12])
def test_saved_states_of_radau_are_as_accurate_as_the_steps(tolerance):
    """A vibration takes about 0.7 rad per step at 1e-12, where the polynomial of a step has errors of 1e-8."""
    w = 3.0
    settings = {"method": "radau", "rtol": tolerance, "atol": tolerance}
    motion = oscillator(w * w).simulate([[1.0]], [[0.0]], 10.0, save_at=301, **settings)
    error = np.abs(motion.q[0, :, 0] - np.cos(w * motion.t))
    assert motion.steps[0] < 200
    # the errors of steps add up to the end, where the number of steps bounds them
    assert error.max() < motion.steps[0] * tolerance


@EACH_WAY
def test_saved_states_of_radau_are_accurate_where_the_motion_is_stiff():
    """Overdamped: m q'' + c q' + k q = 0 from rest, with the eigenvalues -1 and -1e6."""
    slow, fast = -1.0, -1e6
    motion = oscillator(slow * fast, -slow - fast).simulate([[1.0]], [[0.0]], END, method="radau", save_at=41)
    exact = (fast * np.exp(slow * motion.t) - slow * np.exp(fast * motion.t)) / (fast - slow)
    np.testing.assert_allclose(motion.q[0, :, 0], exact, atol=1e-7)


@EACH_WAY
@pytest.mark.parametrize("method", ["rk45", "rosenbrock"])
def test_forces_and_rest_at_saved_times_are_those_of_the_state(method):
    """A block of 2 kg on a force 4 t N with friction: it holds until 12 N, then slides against 8 N."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("block", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(2.0))
    push = rb.PrescribedForce("block", rb.Signal.polynomial([0.0, 4.0]))
    friction = rb.DryFriction("block", kinetic=8.0, static=12.0)
    settings = {"method": method, "drives": [push], "forces": [friction]}
    motion = builder.build().simulate([[0.0]], [[0.0]], 5.0, save_at=50, **settings)
    t, sticks = motion.t, motion.t < 3.0
    assert (motion.qd[0, sticks, 0] == 0.0).all()
    np.testing.assert_allclose(motion.qd[0, ~sticks, 0], (t[~sticks] ** 2 - 9.0) - 4.0 * (t[~sticks] - 3.0), atol=1e-7)


@EACH_WAY
@pytest.mark.parametrize("method", ["rk45", "rosenbrock"])
def test_contact_forces_at_saved_times_are_those_of_the_state(method):
    """A ball of 2 kg rests on a floor under a force of -4 t N, which jumps to 30 N upwards at 1.5 s."""
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(2.0))
    force = rb.Signal(np.array([[0.0, -4.0], [30.0, 0.0]]), breaks=np.array([0.0, 1.5]))
    floor = rb.SphereContact("ball", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, 0), plane_normal=(0, 0, 1))
    settings = {"method": method, "drives": [rb.PrescribedForce("ball", force)], "forces": [floor]}
    motion = builder.build().simulate([[0.1]], [[0.0]], END, save_at=40, **settings)
    t, rests = motion.t, motion.t < 1.5
    np.testing.assert_allclose(motion.contact_forces[0, :, 0, 2], np.where(rests, 2 * 9.81 + 4 * t, 0.0), atol=1e-8)
    lifted = 0.5 * (30.0 / 2.0 - 9.81) * (t - 1.5) ** 2
    np.testing.assert_allclose(motion.q[0, :, 0], np.where(rests, 0.1, 0.1 + lifted), atol=1e-9)


@pytest.mark.plain_python
@pytest.mark.parametrize("indices", [[4], [-5], [0.5], [True, False]])
def test_saved_times_that_do_not_exist_are_refused(indices):
    motion = rb.Model.serial_chain(1).simulate([[0.0]], [[0.0]], 0.1, save_at=4)
    with pytest.raises(rb.ArgumentError, match="expected whole numbers from -4 to 3, because 4 times are saved"):
        motion.at_times(indices)
    np.testing.assert_array_equal(motion.at_times([-1, 0]).t, [0.1, 0.0])


@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("duration", "save_every", "expected"),
    [
        (1.0, 0.3, [0.0, 0.3, 0.6, 0.9, 1.0]),
        (0.3, 0.1, [0.0, 0.1, 0.2, 0.3]),
        (1.0, 2.0, [0.0, 1.0]),
        (0.7, 0.7, [0.0, 0.7]),
    ],
)
def test_save_every_gives_the_multiples_of_an_interval_and_the_end(duration, save_every, expected):
    motion = oscillator(9.0).simulate([1.0], duration=duration, save_every=save_every)
    np.testing.assert_allclose(motion.t, expected, rtol=1e-15)
    assert motion.t[-1] == duration
    exact = np.cos(3.0 * motion.t)
    np.testing.assert_allclose(motion.q[:, 0], exact, atol=1e-7)


@pytest.mark.plain_python
@pytest.mark.parametrize("count", range(1, 400, 7))
def test_intervals_that_divide_the_duration_up_to_round_off_give_no_other_interval(count):
    times, _ = times_to_save(0.1 * count, None, 0.1)
    assert times.size == count + 1


@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "duration is missing"),
        ({"duration": 1.0, "save_at": 0.05}, "use save_every=0.05"),
        ({"duration": 1.0, "save_at": 11.0}, "use save_every=11"),
        ({"duration": 1.0, "save_at": np.float64(0.5)}, "use save_every=0.5"),
        ({"duration": 1.0, "save_at": True}, "save_at is True; expected the number of times"),
        (
            {"duration": 1.0, "save_at": 3, "save_every": 0.1},
            "save_at is 3 and save_every is 0.1; use one of the two",
        ),
        ({"duration": 1.0, "save_every": 0.0}, "save_every is 0"),
        ({"duration": 1.0, "save_every": 1e-12}, "save_every is 1e-12 s, which gives more than"),
    ],
)
def test_a_missing_duration_and_invalid_saved_times_are_refused(settings, message):
    with pytest.raises(rb.ArgumentError, match=message):
        double_pendulum().simulate(**settings)


@pytest.mark.plain_python
def test_a_motion_starts_at_rest_in_the_neutral_positions_and_saves_101_times_by_default():
    model = double_pendulum()
    motion = model.simulate(duration=0.1)
    given = model.simulate(np.zeros(2), np.zeros(2), 0.1, save_at=101)
    assert motion.t.size == 101
    assert motion.q.tobytes() == given.q.tobytes()
    one_speed, two_speeds = (model.simulate(qd0=speed, duration=0.1) for speed in (0.5, [0.5, 0.5]))
    assert one_speed.q.tobytes() == two_speeds.q.tobytes()
    assert model.simulate(np.zeros(2, np.float32), 0.5, 0.1, rtol=1e-3, save_at=2).q.dtype == np.float32
    np.testing.assert_array_equal(model.accelerations(), model.forward_dynamics(np.zeros(2), np.zeros(2)))


@pytest.mark.plain_python
@pytest.mark.parametrize("method", ["rk4", "implicit", "moreau"])
@pytest.mark.parametrize(
    ("duration", "step", "times", "steps"),
    [
        (1.0, 0.25, 5, 4),
        (0.3, 0.1, 4, 3),
        (1.0, 0.3, 5, 4),
        (0.1, 5.0, 2, 1),
        (1.0, 0.01, 101, 100),
        (1.5, 0.01, 76, 150),
        (1.51, 0.01, 77, 151),
        (2.0, 0.01, 101, 200),
    ],
)
def test_the_default_of_saved_times_keeps_the_length_of_fixed_steps(method, duration, step, times, steps):
    model, settings = oscillator(stiffness=0.1), {"duration": duration, "method": method, "step": step}
    motion = model.simulate([0.3], **settings)
    assert (motion.t.size, int(motion.steps)) == (times, steps)
    assert (motion.t[0], motion.t[-1]) == (0.0, duration)
    end = model.simulate([0.3], **settings, save_at=[duration])
    np.testing.assert_allclose(motion.q[-1], end.q[-1], rtol=0, atol=1e-12)


@pytest.mark.plain_python
def test_halved_steps_halve_the_error_of_a_method_of_first_order():
    """A default that shortened long steps would give the same motion for each of them."""
    model = oscillator(stiffness=4.0)
    errors = [
        abs(model.simulate([1.0], duration=1.0, method="implicit", step=h).q[-1, 0] - np.cos(2.0)) for h in (0.1, 0.05)
    ]
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)


@pytest.mark.slow
@pytest.mark.plain_python
def test_round_off_of_late_saved_times_adds_no_steps():
    """Differences of times near 150 s have an error of 3e-14 s, which is more than 1e-12 of 0.01 s."""
    late = np.arange(15000, 15301) * 0.01
    motion = oscillator(stiffness=1.0).simulate(duration=late[-1], method="implicit", step=0.01, save_at=late)
    assert motion.steps == 15300


@pytest.mark.plain_python
def test_saved_times_without_enough_memory_are_refused_with_the_remedy():
    with pytest.raises(rb.ArgumentError, match=r"such as only the end by save_at=\[duration\]"):
        double_pendulum().simulate(np.zeros((10**6, 2)), duration=1.0, save_at=10**6)
