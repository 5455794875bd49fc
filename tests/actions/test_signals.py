"""Forces and prescribed positions over time, with each kind of signal."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PPoly

import rbchain as rb

from .models import MASS, RK4, TIGHT, slider

KNOTS = np.array([-0.2, 0.1, 0.45, 0.7, 1.5])
VALUES = np.random.default_rng(8).normal(size=(3, 5))
PIECES = np.random.default_rng(9).normal(size=(3, 4, 3))  # parabolas with jumps between them


def antiderivatives(kind, i):
    """The integral from 0 of the signal of sample i, by NumPy and SciPy."""
    if kind == "polynomial":
        return np.polynomial.Polynomial(VALUES[i]).integ()
    if kind == "sines":
        a, w, p = VALUES[i, :2], np.array([3.0, 7.0]), VALUES[i, 2:4]
        return lambda t: VALUES[i, 4] * t + (a / w * (np.cos(p) - np.cos(np.multiply.outer(t, w) + p))).sum(-1)
    pieces = {
        "linear": lambda: PPoly(np.stack([np.diff(VALUES[i]) / np.diff(KNOTS), VALUES[i, :-1]]), KNOTS),
        "cubic": lambda: CubicSpline(KNOTS, VALUES[i]),
        "scipy": lambda: PPoly(PIECES[..., i], KNOTS),
    }[kind]()
    whole = pieces.antiderivative()
    return lambda t: whole(t) - whole(0.0)


def signal_of(kind, of):
    """The signal of one sample, or of all: `of` selects from the first axis of VALUES."""
    return {
        "polynomial": lambda: rb.Signal.polynomial(VALUES[of]),
        "sines": lambda: rb.Signal.sines(
            VALUES[of][..., :2], [3.0, 7.0], phase=VALUES[of][..., 2:4], offset=VALUES[of][..., 4]
        ),
        "linear": lambda: rb.Signal.table(KNOTS, VALUES[of], interpolation="linear"),
        "cubic": lambda: rb.Signal.table(KNOTS, VALUES[of]),
        "scipy": lambda: PPoly(PIECES[..., of], KNOTS),
    }[kind]()


@pytest.mark.parametrize("of", [slice(None), 1], ids=["each", "shared"])
@pytest.mark.parametrize("kind", ["polynomial", "sines", "linear", "cubic", "scipy"])
def test_the_momentum_is_the_integral_of_a_force_of_any_signal_type(kind, of):
    signal, times = signal_of(kind, of), np.linspace(0, 1.5, 16)
    motion = slider().simulate(
        np.zeros((3, 1)), np.zeros((3, 1)), 1.5, drives=[rb.PrescribedForce("slide", signal)], save_at=times, **TIGHT
    )
    for i in range(3):
        momentum = antiderivatives(kind, i if of == slice(None) else of)(times)
        # the error of a step that contains a jump is its length times the jump, so the step control makes it short
        np.testing.assert_allclose(MASS * motion.qd[i, :, 0], momentum, rtol=0, atol=1e-8)
    expected = (rb.Signal.pieces(signal) if kind == "scipy" else signal)(times)
    np.testing.assert_allclose(motion.tau[..., 0], np.broadcast_to(expected, (3, 16)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", ["polynomial", "sines", "cubic"])
def test_a_prescribed_position_of_any_smooth_signal_has_its_exact_derivatives(kind):
    for of in (slice(None), 2):
        signal = signal_of(kind, of)
        drives = [rb.PrescribedPosition("slide", signal)]
        motion = slider().simulate(np.zeros((3, 1)), np.zeros((3, 1)), 1.5, drives=drives, save_at=11, **RK4)
        for order, found in enumerate((motion.q, motion.qd, motion.qdd)):
            expected = np.broadcast_to(signal(motion.t, order), (3, 11))
            np.testing.assert_allclose(found[..., 0], expected, rtol=0, atol=1e-11)
        np.testing.assert_allclose(motion.tau, MASS * motion.qdd, rtol=1e-14)
