"""Steps with error control end at the breaks of signals and see every pulse, however short it is."""

import warnings

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator, PPoly

import rbchain as rb

OTHERS = ("dop853", "rosenbrock", "radau")
# Machine code of a method takes longer to compile than these motions take in plain Python, unless they have many steps.
METHODS = ("rk45", *(pytest.param(method, marks=pytest.mark.plain_python) for method in OTHERS))
METHODS_OF_LONG_MOTIONS = ("rk45", *(pytest.param(method, marks=pytest.mark.slow) for method in OTHERS))
END = 10.0
ROUND_OFF = 1e-11  # of a speed of up to 1000 m/s that some hundred steps add up


def sliding_mass() -> rb.Model:
    """Return a mass of 1 kg without gravity, whose speed is the impulse of its force."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("mass", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    return builder.build()


def pendulum() -> rb.Model:
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body("rod", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(1.0, cg=(0, 0, -1.0)))
    return builder.build()


def integral(signal: rb.Signal, end: float) -> np.ndarray:
    """Return the integral of a piecewise polynomial from 0 to the end."""
    powers = np.arange(signal.coefficients.shape[-1]) + 1
    lengths = np.diff(np.append(signal.breaks, end))[:, None]
    return (signal.coefficients / powers * lengths**powers).sum((-1, -2))


def push(signal: rb.Signal, dtype: type = np.float64, **settings: object) -> rb.Trajectory:
    """Simulate the mass from rest under a force over time."""
    start = np.zeros((*signal.batch_shape, 1) if signal.batch_shape else (1, 1), dtype)
    motion = sliding_mass().simulate(
        start, start, END, drives=[rb.PrescribedForce("mass", signal)], save_at=2, **settings
    )
    assert motion.success, motion.message
    return motion


def pulses(width: float, samples: int) -> rb.Signal:
    """Return a triangle of the given width for each sample, each at another time, in a table that all samples share."""
    middle = np.linspace(0.7, 9.1, samples)
    times = np.unique(np.concatenate([[0.0, END], *(middle + width * side for side in (-0.5, 0.0, 0.5))]))
    heights = np.where(times == middle[:, None], 10.0 * (1.0 + np.arange(samples))[:, None], 0.0)
    return rb.Signal.table(times, heights, interpolation="linear")


def bump(height: float, width: float, level: float) -> rb.Signal:
    """Return a level with one polynomial of fourth order on it from 5 s on, which continues it with its slope."""
    coefficients = np.zeros((3, 5))
    coefficients[1] = np.array([0.0, 0.0, 16.0, -32.0, 16.0]) * height / width ** np.arange(5)
    coefficients[:, 0] = level
    return rb.Signal(coefficients, breaks=np.array([0.0, 5.0, 5.0 + width]))


def table_with_one_value(interval: float) -> rb.Signal:
    times = np.arange(0.0, END + interval / 2, interval)
    values = np.zeros(times.size)
    values[times.size // 2] = 3.0
    return rb.Signal.pieces(PPoly(PchipInterpolator(times, values).c, times))


def fourier_series(width: float) -> rb.Signal:
    """Return sines whose sum is exp(-((t - 5) / width)^2 / 2), up to round-off, with period END."""
    mean, w = width * np.sqrt(2.0 * np.pi) / END, 2.0 * np.pi / END
    k = np.arange(1, int(7.0 / (width * w)) + 1)
    amplitudes = 2.0 * mean * np.exp(-((k * w * width) ** 2) / 2)
    return rb.Signal.sines(amplitudes, k * w, phase=np.pi / 2 - 5.0 * k * w, offset=mean)


def response_to_fourier_series(width: float, w: float) -> float:
    """Return the speed at END of z'' = w^2 (u - z) from rest, where u is the pulse of `fourier_series`."""
    return w**2 * width * np.sqrt(2.0 * np.pi) * np.cos(w * (END - 5.0)) * np.exp(-((w * width) ** 2) / 2)


@pytest.mark.parametrize("method", METHODS)
def test_no_sample_misses_a_triangle(method):
    signal = pulses(0.1, 11)
    np.testing.assert_allclose(push(signal, method=method).qd[:, -1, 0], integral(signal, END), rtol=ROUND_OFF)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("width", [1e-3, 1.0 / 3.0, 1e-7])
def test_a_step_uses_the_values_before_a_jump_and_the_next_step_those_after_it(method, width):
    """No step is rejected, because the force is constant in each one."""
    signal = rb.Signal(np.array([[0.0], [1.0 / width], [0.0]]), breaks=np.array([0.0, 1.0, 1.0 + width]))
    motion = push(signal, method=method)
    # the difference of the two breaks has their round-off
    np.testing.assert_allclose(motion.qd[0, -1, 0], 1.0, rtol=ROUND_OFF + 4e-16 / width)
    assert motion.rejections.tolist() == [0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("height", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("level", [0.0, 7.0])
def test_a_smooth_pulse_acts(method, height, level):
    """A step passes a pulse of less than 100 rtol of the level only, here 7e-6 N for 0.1 s."""
    signal = bump(height, 0.1, level)
    np.testing.assert_allclose(push(signal, method=method).qd[0, -1, 0], integral(signal, END), rtol=1e-7)


def test_a_slow_pulse_of_a_fine_table_acts():
    """Neighboring pieces of the table differ by round-off only: 2.5e-16 of the pulse."""
    times = np.linspace(0.0, END, 200_001)
    values = np.where(abs(times - 5.0) < 0.5, np.cos(np.pi * (times - 5.0)) ** 2, 0.0)
    signal = rb.Signal.table(times, values)
    motion = push(signal)
    np.testing.assert_allclose(motion.qd[0, -1, 0], 0.5, rtol=1e-7)
    assert motion.steps[0] < 300


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("interval", [0.5, 0.02])
def test_one_value_of_a_smooth_table_acts(method, interval):
    signal = table_with_one_value(interval)
    np.testing.assert_allclose(push(signal, method=method).qd[0, -1, 0], integral(signal, END), rtol=1e-7)


def check_fourier_series(width, rtol, method):
    """The speed is the integral of the force: the offset times the period."""
    motion = push(fourier_series(width), method=method, rtol=rtol, atol=1e-2 * rtol)
    np.testing.assert_allclose(motion.qd[0, -1, 0], width * np.sqrt(2.0 * np.pi), rtol=10.0 * rtol)


@pytest.mark.slow_cases("0.1-0.0001-dop853", "0.1-1e-08", "1e-08-radau", "rosenbrock")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rtol", [1e-8, 1e-4])
@pytest.mark.parametrize("width", [0.3, 0.1])
def test_the_pulse_of_a_fourier_series_acts(method, rtol, width):
    check_fourier_series(width, rtol, method)


@pytest.mark.parametrize("method", METHODS_OF_LONG_MOTIONS)
@pytest.mark.parametrize("rtol", [1e-8, 1e-4])
@pytest.mark.parametrize("width", [0.03, 0.01])
def test_the_short_pulse_of_a_long_fourier_series_acts(method, rtol, width):
    check_fourier_series(width, rtol, method)


@pytest.mark.slow_cases("dop853", "radau", "rosenbrock")
@pytest.mark.parametrize("method", METHODS)
def test_the_bound_of_sines_costs_no_steps_where_errors_limit_them(method):
    """A sine takes about as many steps as a table of it, which is compared with polynomials by its values."""
    w, times = 2.0 * np.pi, np.linspace(0.0, END, 10_001)
    sine, table = rb.Signal.sines(1.0, w), rb.Signal.table(times, np.sin(w * times))
    assert push(sine, method=method).steps[0] < 1.1 * push(table, method=method).steps[0]


@pytest.mark.plain_python
def test_pulses_act_in_float32():
    """The times of breaks have no exact values in float32, so their sides must not depend on comparisons of times.

    The round-off of a time changes the force on a slope by the same fraction as that of the width of the slope.
    """
    signal, round_off = pulses(0.1, 11), 1.2e-7
    motion = push(signal, np.float32)
    np.testing.assert_allclose(motion.qd[:, -1, 0], integral(signal, END), rtol=2.0 * END * round_off / 0.05)
    jump = rb.Signal(np.array([[0.0], [10.0], [0.0]]), breaks=np.array([0.0, 1.1, 1.3]))
    motion = push(jump, np.float32)
    np.testing.assert_allclose(motion.qd[:, -1, 0], 2.0, rtol=END * round_off / 0.2)
    assert motion.rejections.tolist() == [0]


@pytest.mark.plain_python
@pytest.mark.parametrize(("start", "width"), [(1.0, 1e-3), (8.0, 5e-3)])
def test_a_long_step_behind_a_pulse_starts_with_the_rate_behind_it_in_float32(start, width):
    """The rate before the last kink is wrong by the slope 1 / width^2 times the round-off of the time.

    A step of a tenth of a second would multiply it. What remains is the round-off of the times of the stages, at most
    half of the distance of two times each. The slope and the weights of the stages, whose sum is 1.65, multiply it over
    the two sides of the pulse.
    """
    times, values = [0, start, start + width, start + 2 * width, END], [0, 0, 1 / width, 0, 0]
    signal = rb.Signal.table(times, values, interpolation="linear")
    with pytest.warns(rb.SimulationWarning, match="times near .* s are multiples of"):
        motion = push(signal, np.float32)
    distance = np.spacing(np.float32(start + width))
    assert abs(motion.qd[0, -1, 0] - 1.0) < 2.0 * 1.65 * 0.5 * distance / width


@pytest.mark.plain_python
@pytest.mark.parametrize("method", ["rk4", "rk45"])
def test_a_stepper_in_float32_warns_when_its_times_are_too_inexact_for_a_signal(method):
    """Times from 2^k s are multiples of 2^(k - 23) s in float32; 64 rad/s turn this into 2^(k - 17).

    The value is 6.1e-5 from 8 s, and 1.2e-4 from 16 s. It is checked until the next power of two.
    """
    model, drives = rb.Model.serial_chain(1), [rb.PrescribedForce("link1", rb.Signal.sines(1.0, 64.0))]
    settings = {"step": 0.5} if method == "rk4" else {"rtol": 1e-2, "atol": 1e-2}

    def steps(dtype, **more):
        start = np.zeros((2, 1), dtype)
        return model.stepper(start, start, method=method, drives=drives, **settings, **more)

    stepper = steps(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stepper.advance(0.5)
        stepper.advance(15.5)
        steps(np.float64).advance(17.0)
    with pytest.warns(rb.SimulationWarning, match="times near 32 s are multiples of 1.9e-06 s") as caught:
        stepper.advance(0.5)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stepper.advance(0.5)  # once
    with pytest.warns(rb.SimulationWarning, match="times near 32 s"):
        steps(np.float32, duration=32.0 - 1e-6)


@pytest.mark.plain_python
@pytest.mark.parametrize("own", [False, True])
def test_float32_warns_of_tables_that_change_more_quickly_than_it_resolves_times(own):
    """Near 9 s, times in float32 are multiples of 2^-20 s = 9.5e-7 s, which is 9.5e-5 of 10 ms and 1.9e-4 of 5 ms."""
    for width, is_resolved in ((1e-2, True), (5e-3, False)):
        times, values = [0.0, 9.0, 9.0 + width, END], np.array([0.0, 0.0, 1.0, 1.0])
        signal = rb.Signal.table(times, values * [[1.0], [3.0]] if own else values, interpolation="linear")
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            push(signal, np.float32)
            push(signal)
        texts = [str(warning.message) for warning in found]
        assert len(texts) == (not is_resolved), texts
        assert is_resolved or "near 9.005 s are multiples of 9.5e-07 s" in texts[0], texts
        assert is_resolved or "wrong by up to 0.019 % of the maximum. Use float64" in texts[0], texts


@pytest.mark.plain_python
def test_float32_warns_of_sines_that_change_more_quickly_than_it_resolves_times():
    """Near 100 s, times in float32 are multiples of 2^-17 s = 7.6e-6 s: 7.6e-5 rad at 10 rad/s, 2.3e-4 rad at 30."""
    model, start = pendulum(), np.zeros((1, 1), np.float32)
    for frequency, offset, is_resolved in ((10.0, 0.0, True), (30.0, 0.0, False), (30.0, 9.0, True)):
        signal = rb.Signal.sines([[0.1]], frequency, offset=offset)
        drives = [rb.PID("rod", signal, kp=1.0), rb.Sampled(rb.PID("rod", signal, kp=1.0), period=0.01)]
        for drive in drives:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                model.simulate(start, start, 0.02, method="rk4", step=0.01, t0=99.9, drives=[drive])
            texts = [str(warning.message) for warning in found]
            assert len(texts) == (not is_resolved), texts
            assert is_resolved or "wrong by up to 0.023 % of the maximum" in texts[0], texts


def test_a_sample_does_not_depend_on_the_pulses_of_others():
    together = push(pulses(0.1, 11))
    for i in (0, 7):
        signal = pulses(0.1, 11)
        alone = push(rb.Signal(signal.coefficients[i : i + 1], breaks=signal.breaks))
        assert alone.q[0].tobytes() == together.q[i].tobytes()
        assert alone.steps[0] == together.steps[i]


def test_a_kick_acts_on_a_pendulum():
    """The reference is the same motion in three simulations, which end at the jumps of the torque."""
    width, model = 1e-3, pendulum()
    kick = rb.Signal(np.array([[0.0], [1.0 / width], [0.0]]), breaks=np.array([0.0, 1.0, 1.0 + width]))
    whole = model.simulate([[0.3]], [[0.0]], 2.0, drives=[rb.PrescribedForce("rod", kick)], save_at=21)
    q, qd = np.array([[0.3]]), np.array([[0.0]])
    for torque, duration in ((0.0, 1.0), (1.0 / width, width), (0.0, 1.0 - width)):
        part = model.simulate(q, qd, duration, drives=[rb.PrescribedForce("rod", torque)], save_at=2)
        q, qd = part.q[:, -1], part.qd[:, -1]
    np.testing.assert_allclose(whole.q[:, -1], q, rtol=1e-7)


TABLE = rb.Signal.table([0, 5, 5.05, 5.1, END], [0, 0, 1.0, 0, 0], interpolation="linear")


def test_pulses_of_wrenches_and_references_act():
    """The final speeds are 0.05 m/s times gains: a pulse of 1 N, of 1 N/m times 1 m, and of 1 m/s^2, for 0.05 s."""
    model, at_rest = sliding_mass(), np.zeros((1, 1))
    wrench = model.simulate(at_rest, at_rest, END, forces=[rb.Wrench("mass", force=(TABLE, 0.0, 0.0))], save_at=2)
    np.testing.assert_allclose(wrench.qd[0, -1], 0.05, rtol=ROUND_OFF)
    drive = rb.PrescribedAcceleration("mass", TABLE)
    np.testing.assert_allclose(
        model.simulate(at_rest, at_rest, END, drives=[drive], save_at=2).qd[0, -1], 0.05, rtol=ROUND_OFF
    )
    # m q'' = kp (r(t) - q): with w^2 = kp / m, v(t) = integral of w^2 r(s) cos(w (t - s)) ds
    w = 0.3
    servo = model.simulate(at_rest, at_rest, END, drives=[rb.PID("mass", reference=TABLE, kp=w**2)], save_at=2)
    s = np.linspace(5.0, 5.1, 20001)
    f = w**2 * TABLE(s) * np.cos(w * (END - s))
    np.testing.assert_allclose(servo.qd[0, -1, 0], np.sum((f[1:] + f[:-1]) / 2) * (s[1] - s[0]), rtol=1e-6)


@pytest.mark.parametrize("method", METHODS_OF_LONG_MOTIONS)
def test_fourier_series_of_wrenches_references_and_prescribed_positions_act(method):
    model, at_rest, pulse, w = sliding_mass(), np.zeros((1, 1)), fourier_series(0.03), 0.3
    wrench = model.simulate(
        at_rest, at_rest, END, method=method, forces=[rb.Wrench("mass", force=(pulse, 0.0, 0.0))], save_at=2
    )
    np.testing.assert_allclose(wrench.qd[0, -1], 0.03 * np.sqrt(2.0 * np.pi), rtol=1e-7)
    servo = model.simulate(
        at_rest, at_rest, END, method=method, drives=[rb.PID("mass", reference=pulse, kp=w**2)], save_at=2
    )
    np.testing.assert_allclose(servo.qd[0, -1, 0], response_to_fourier_series(0.03, w), rtol=1e-6)
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    spring = rb.PassiveForces(stiffness=w**2)
    builder.add_body("mass", parent="cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0), passive=spring)
    cart = builder.build().simulate(
        np.zeros((1, 2)), np.zeros((1, 2)), END, method=method, drives=[rb.PrescribedPosition("cart", pulse)], save_at=2
    )
    speed = np.exp(-0.5) / 0.03  # the largest one of the cart, to which rtol refers
    np.testing.assert_allclose(cart.qd[0, -1].sum(), response_to_fourier_series(0.03, w), atol=1e-8 * speed)


def test_prescribed_motions_pass_on_their_pulses():
    """A cart moves by a smooth pulse of 1 mm in 0.1 s; a mass on its spring is at rest before it.

    With the spring constant k = w^2 of 1 kg, z'' = k (u - z), so the speed after the pulse is the integral of
    k u(s) cos(w (t - s)).
    """
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    w, stiff = 2.0, rb.PassiveForces(stiffness=4.0)
    builder.add_body("mass", parent="cart", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0), passive=stiff)
    signal = bump(1e-3, 0.1, 0.0)
    drive = [rb.PrescribedPosition("cart", rb.Signal(signal.coefficients, breaks=signal.breaks))]
    motion = builder.build().simulate(np.zeros((1, 2)), np.zeros((1, 2)), END, drives=drive, save_at=2)
    s = np.linspace(5.0, 5.1, 2001)
    f = w**2 * signal(s) * np.cos(w * (END - s))
    expected = np.sum((f[1:] + f[:-1]) / 2) * (s[1] - s[0])
    np.testing.assert_allclose(motion.qd[0, -1].sum(), expected, rtol=1e-4)


def test_tables_of_thousands_of_knots_cost_no_steps_where_they_are_smooth():
    """Motions under a table of 10,001 values take about as many steps as under the function of the table."""
    times, w = np.linspace(0.0, END, 10_001), 2.0 * np.pi * 0.55
    constant = push(rb.Signal.constant(2.0)).steps[0]
    for kind in ("cubic", "linear"):
        assert push(rb.Signal.table(times, np.full(times.size, 2.0), interpolation=kind)).steps[0] == constant
        assert push(rb.Signal.table(times, 0.3 + 0.7 * times, interpolation=kind)).steps[0] == constant
    table, sine = rb.Signal.table(times, np.sin(w * times)), rb.Signal.sines(1.0, w)
    assert push(table).steps[0] < 1.1 * push(sine).steps[0]


def test_no_first_step_passes_whole_periods_of_a_sine():
    """The mass moves slowly, and all stages of a step of 90 periods would see the force zero."""
    drive, periods = rb.PrescribedForce("mass", rb.Signal.sines(1.0, 2.0 * np.pi * 45.0)), 90
    motion = sliding_mass().simulate([[1000.0]], [[3e-8]], periods / 45.0, drives=[drive], save_at=2)
    # the integral of (1 - cos(w t)) / w over whole periods
    expected = 3e-8 * motion.t[-1] + motion.t[-1] / (2.0 * np.pi * 45.0)
    np.testing.assert_allclose(motion.q[0, -1, 0] - 1000.0, expected, atol=1e-6)


def test_a_batch_of_zero_samples_accepts_tables():
    motion = sliding_mass().simulate(
        np.zeros((0, 1)), np.zeros((0, 1)), END, drives=[rb.PrescribedForce("mass", TABLE)], save_at=2
    )
    assert motion.q.shape == (0, 2, 1)


@pytest.mark.plain_python
def test_dry_friction_holds_until_a_pulse_exceeds_it():
    """A triangle of 10 N and 0.1 s against 5 N: the speed after it is 0.5 times 5 N times the 0.05 s above 5 N.

    Then friction stops the mass: the same area below 5 N has passed at 5.1 s less the time of the fall.
    """
    force = rb.Signal.table([0, 5, 5.05, 5.1, END], [0, 0, 10.0, 0, 0], interpolation="linear")
    motion = sliding_mass().simulate(
        np.zeros((1, 1)),
        np.zeros((1, 1)),
        END,
        drives=[rb.PrescribedForce("mass", force)],
        forces=[rb.DryFriction("mass", kinetic=5.0)],
        save_at=[5.025, 5.075],
    )
    np.testing.assert_allclose(motion.qd[0, :, 0], [0.0, 0.5 * 5.0 * 0.05], atol=1e-9)


@pytest.mark.slow
@pytest.mark.plain_python
def test_dry_friction_holds_until_a_sine_exceeds_it():
    """A body that sticks has no error, so only the period of the force limits its steps: 6 sin(w t) N against 5 N."""
    w, times = 2.0 * np.pi, np.array([0.1, 0.25])
    motion = sliding_mass().simulate(
        np.zeros((1, 1)),
        np.zeros((1, 1)),
        END,
        drives=[rb.PrescribedForce("mass", rb.Signal.sines(6.0, w))],
        forces=[rb.DryFriction("mass", kinetic=5.0)],
        save_at=times,
    )
    start = np.arcsin(5.0 / 6.0) / w
    speed = 6.0 / w * (np.cos(w * start) - np.cos(w * times[1])) - 5.0 * (times[1] - start)
    np.testing.assert_allclose(motion.qd[0, :, 0], [0.0, speed], atol=1e-8)


def test_max_step_lets_the_pulse_of_a_user_function_act():
    def kick(t, q, qd, parameters, out):
        out[0] = 100.0 if 5.0 <= t < 5.1 else 0.0

    model, at_rest = sliding_mass(), np.zeros((1, 1))
    missed = model.simulate(at_rest, at_rest, END, drives=[rb.UserForces(kick)], save_at=2)
    assert missed.qd[0, -1, 0] == 0.0  # rbchain cannot know when the function acts
    motion = model.simulate(at_rest, at_rest, END, drives=[rb.UserForces(kick)], max_step=0.03, save_at=2)
    np.testing.assert_allclose(motion.qd[0, -1, 0], 10.0, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_no_step_is_longer_than_max_step(method):
    assert push(rb.Signal.constant(0.0), method=method, max_step=0.0999).steps[0] >= END / 0.0999


@pytest.mark.parametrize("method", METHODS)
def test_a_tiny_absolute_tolerance_does_not_end_a_motion_from_rest(method):
    motion = push(rb.Signal.constant(2.0), method=method, atol=1e-100)
    np.testing.assert_allclose(motion.qd[0, -1, 0], 2.0 * END, rtol=1e-8)


def test_a_duration_that_time_cannot_resolve_is_the_reason_of_the_failure():
    model = pendulum()
    swinging = model.simulate([[0.3]], [[0.0]], 1e16, on_failure="ignore", save_at=2)
    assert swinging.status.tolist() == [rb.Status.TIME_NOT_RESOLVED]
    assert "Reduce the duration" in swinging.message
    at_rest = model.simulate([[0.0]], [[0.0]], 1e16, save_at=2)
    assert at_rest.success
