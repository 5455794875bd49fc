"""Sums, multiples and derivatives of signals: they have the values of their parts at each time."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import rbchain as rb

EPS = np.finfo(float).eps
TIMES = np.linspace(0.0, 3.0, 301)
SIGNALS = {
    "constant": lambda: rb.Signal.constant(2.5),
    "polynomial": lambda: rb.Signal.polynomial([1.0, -2.0, 0.5, 0.25]),
    "sines": lambda: rb.Signal.sines([1.0, 0.3], [2.0, 7.0], phase=[0.1, 0.2], offset=0.7),
    "line": lambda: rb.Signal.table([0.0, 0.7, 1.9, 4.0], [0.0, 2.0, -1.0, 0.5], interpolation="linear"),
    "spline": lambda: rb.Signal.table([0.0, 0.5, 1.1, 2.3, 3.5], [0.0, 1.0, -1.0, 2.0, 0.3]),
    "samples": lambda: rb.Signal.sines(np.array([[1.0], [2.0], [3.0]]), 4.0, offset=np.array([0.0, 1.0, 2.0])),
}


@pytest.mark.parametrize("second", SIGNALS)
@pytest.mark.parametrize("first", SIGNALS)
def test_sums_and_differences_have_the_values_of_their_parts(first, second):
    a, b = SIGNALS[first](), SIGNALS[second]()
    size = abs(a(TIMES)) + abs(b(TIMES)) + 10.0  # the coefficients of the pieces
    assert (abs((a + b)(TIMES) - (a(TIMES) + b(TIMES))) <= 64 * EPS * size).all()
    assert (abs((a - b)(TIMES) - (a(TIMES) - b(TIMES))) <= 64 * EPS * size).all()
    for order in (1, 2):
        found, expected = (a + b)(TIMES, order), a(TIMES, order) + b(TIMES, order)
        np.testing.assert_allclose(found, expected, atol=1e-11 * (1.0 + abs(expected).max()))


@pytest.mark.parametrize("name", SIGNALS)
def test_multiples_have_multiple_values(name):
    signal, factors = SIGNALS[name](), np.array([2.0, -1.0, 0.5])
    values = signal(TIMES)
    for found, expected in (
        (2.0 * signal, 2.0 * values),
        (signal * 2, 2.0 * values),
        (-signal, -values),
        (signal / 4.0, values / 4.0),
        (1.0 - signal, 1.0 - values),
        (factors * signal, factors[:, None] * values),
        (signal + factors, values + factors[:, None]),
    ):
        np.testing.assert_allclose(found(TIMES), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", SIGNALS)
def test_the_derivative_has_the_values_of_the_first_derivative(name):
    signal = SIGNALS[name]()
    np.testing.assert_allclose(signal.derivative()(TIMES), signal(TIMES, 1), atol=1e-12)
    assert signal.derivative().end == signal.end


def test_the_derivative_of_a_jump_is_refused():
    jumping = rb.Signal([[0.0], [1.0]], breaks=[0.0, 2.0])
    with pytest.raises(rb.ArgumentError, match="jumps at t = 2 s, where it has no derivative"):
        jumping.derivative()


def test_a_sum_ends_with_its_first_part():
    assert (SIGNALS["line"]() + SIGNALS["spline"]()).end == 3.5


def test_splines_of_scipy_and_arrays_are_terms():
    spline = CubicSpline([0.0, 1.0, 2.0, 4.0], [0.0, 1.0, 8.0, 3.0])
    found = rb.Signal.constant(1.0) + spline
    np.testing.assert_allclose(found(TIMES), 1.0 + spline(TIMES), atol=1e-13)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda s: s * s, "the product of two signals is not a signal"),
        (lambda s: s / 0.0, "divisor is 0.0; expected numbers other than zero"),
        (lambda s: s * np.nan, "factor is nan; expected finite numbers"),
        (lambda s: s + "x", "a term of a sum"),
    ],
)
def test_other_operands_are_refused(operation, message):
    with pytest.raises(rb.ArgumentError, match=message):
        operation(rb.Signal.constant(1.0))


# --- random signals ---------------------------------------------------------------------------------------------------


def test_sums_of_random_signals_have_the_values_of_their_parts():
    noise = rb.Signal.noise(0.5, frequencies=(0.0, 5.0), seed=1, channel=2)
    walk = rb.Signal.random_walk(1.0, 0.1, seed=2, channel=3)
    found = (2.0 * noise - walk + rb.Signal.sines(1.0, 3.0)).signal(3.0, range(4))(TIMES)
    parts = [process.signal(3.0, range(4))(TIMES) for process in (noise, walk)]
    np.testing.assert_allclose(found, 2.0 * parts[0] - parts[1] + np.sin(3.0 * TIMES), atol=1e-11)


def test_a_random_signal_minus_itself_is_zero():
    noise = rb.Signal.noise(0.5, frequencies=(0.0, 5.0))
    np.testing.assert_allclose((noise + 1.0 - noise).signal(3.0, range(3))(TIMES), 1.0, atol=1e-12)


SMOOTH = {
    "noise": lambda: rb.Signal.noise(0.5, frequencies=(0.1, 2.0), sines=10),
    "offset": lambda: rb.Signal.noise(0.5, (0.1, 2.0), sines=10, offset=3.0, factor=2.0, seed=4, channel=2),
    "sea_state": lambda: rb.Signal.sea_state(2.0, 8.0, sines=20),
    "sum": lambda: 2.0 * rb.Signal.noise(0.5, (0.1, 2.0), sines=10) - rb.Signal.sea_state(2.0, 8.0) + 1.5,
}


@pytest.mark.plain_python
@pytest.mark.parametrize("name", SMOOTH)
def test_the_derivative_of_a_random_signal_is_that_of_its_realizations(name):
    random, ids = SMOOTH[name](), [0, 5, 17]
    realization = random.signal(3.0, ids)
    for found, order in ((random.derivative(), 1), (random.derivative().derivative(), 2)):
        np.testing.assert_allclose(found.signal(3.0, ids)(TIMES), realization(TIMES, order), atol=1e-10)


@pytest.mark.plain_python
def test_a_random_signal_and_its_derivative_in_a_sum_belong_to_one_realization():
    noise = SMOOTH["noise"]()
    realization = noise.signal(3.0, range(4))
    for found in (noise + 0.5 * noise.derivative(), 0.5 * noise.derivative() + noise):
        expected = realization(TIMES) + 0.5 * realization(TIMES, 1)
        np.testing.assert_allclose(found.signal(3.0, range(4))(TIMES), expected, atol=1e-11)


@pytest.mark.plain_python
@pytest.mark.parametrize(
    "make",
    [
        lambda: rb.Signal.random_walk(1.0, 0.1),
        lambda: rb.Signal.ornstein_uhlenbeck(1.0, 0.5),
        lambda: 2.0 * rb.Signal.random_walk(1.0, 0.1) + rb.Signal.noise(0.5, (0.1, 2.0)),
    ],
)
def test_processes_without_a_derivative_are_refused(make):
    with pytest.raises(rb.ArgumentError, match="has no derivative: its slope between two times grows without limit"):
        make().derivative()


@pytest.mark.plain_python
def test_the_derivative_of_a_random_signal_drives_each_sample():
    """A prescribed velocity n'(t) moves a mass from 0 to n(t) - n(0)."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    noise = rb.Signal.noise(0.5, frequencies=(0.1, 2.0), sines=10, seed=3)
    drive = rb.PrescribedVelocity("slide", noise.derivative())
    motion = builder.build().simulate(np.zeros((3, 1)), duration=1.0, drives=[drive], save_at=5)
    realization = noise.signal(1.0, range(3))
    np.testing.assert_allclose(motion.qd[..., 0], realization(motion.t, 1), atol=1e-12)
    expected = realization(motion.t) - realization(np.zeros(1))
    np.testing.assert_allclose(motion.q[..., 0], expected, atol=1e-7)
    assert np.ptp(motion.q[:, -1]) > 1e-3


@pytest.mark.plain_python
def test_a_sum_of_random_signals_drives_each_sample():
    """A mass under the force 2 n(t) + 3 has the velocity 2 v(t) + 3 t, with v under the noise alone."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    model, rest = builder.build(), np.zeros((3, 1))
    noise = rb.Signal.noise(0.5, frequencies=(0.1, 2.0), sines=10)
    alone, both = (
        model.simulate(rest, rest, 1.0, drives=[rb.PrescribedForce("slide", signal)], save_at=2)
        for signal in (noise, 2 * noise + 3)
    )
    np.testing.assert_allclose(both.qd[:, -1], 2.0 * alone.qd[:, -1] + 3.0, atol=1e-7)
    assert np.ptp(alone.qd[:, -1]) > 1e-3


@pytest.mark.slow
@pytest.mark.plain_python
def test_terms_of_a_sum_are_independent():
    """Without channels of their own, the terms have the channels 0 and 1, as two drives do."""
    first, second = (rb.Signal.noise(0.5, frequencies=(0.1, 2.0), sines=10) for _ in range(2))
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name in ("a", "b"):
        builder.add_body(name, joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    model, rest = builder.build(), np.zeros((3, 2))
    of_two = [rb.PrescribedForce("a", first), rb.PrescribedForce("b", second)]
    of_sum = [rb.PrescribedForce("a", first + second)]
    apart = model.simulate(rest, rest, 1.0, drives=of_two, save_at=2).qd[:, -1].sum(-1)
    np.testing.assert_allclose(model.simulate(rest, rest, 1.0, drives=of_sum, save_at=2).qd[:, -1, 0], apart, atol=1e-7)
