"""Designs of experiments: closed forms of the information and of D-optimal weights."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.fitting.experiments import d_optimal_weights

from .mechanisms import slide
from .test_sensitivities import two_seeds

pytestmark = pytest.mark.plain_python
T, NOISE = np.linspace(0.0, 1.0, 6), 1e-3


def two_slides(masses=(2.0, 3.0)):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name, mass in zip("xy", masses, strict=True):
        builder.add_body(name, joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass))
    return builder.build()


def plan(*tau):
    """A motion from rest under constant forces, whose positions are measured."""
    return rb.Measurement(T, np.zeros(len(tau)), tau=tau)


def regression(rows):
    """The information of a linear regression with these rows."""
    return np.einsum("ki,kj->kij", rows, rows)


def test_quadratic_regression_has_its_known_weights():
    """A third at -1, 0 and 1 (Kiefer and Wolfowitz 1960)."""
    x = np.linspace(-1, 1, 9)
    weights = d_optimal_weights(regression(np.stack([np.ones_like(x), x, x**2], 1)))
    np.testing.assert_allclose(weights, np.isin(np.arange(9), (0, 4, 8)) / 3, atol=1e-5)


def test_random_designs_satisfy_the_theorem_of_equivalence():
    for seed in range(5):
        information = regression(two_seeds(seed).normal(size=(30, 4)))
        weights = d_optimal_weights(information)
        variances = np.trace(information @ np.linalg.inv(np.tensordot(weights, information, 1)), axis1=-2, axis2=-1)
        assert variances.max() < 4 * 1.001
        np.testing.assert_allclose(variances[weights > 0.01], 4, rtol=1e-3)


def test_weights_of_two_motions_with_two_masses():
    """q = F t^2 / (2 m): the information of log m is diagonal and proportional to F^2, so the determinant is known.

    (w a + (1 - w) c) (w b + (1 - w) d) is largest for w = -(c / (a - c) + d / (b - d)) / 2.
    """
    a, b, c, d = 9.0, 1.0, 1.0, 4.0
    wanted = -0.5 * (c / (a - c) + d / (b - d))
    assert 0.0 < wanted < 1.0
    model = two_slides()
    # the factors of t^2 / (2 m) are equal for both masses if the forces are proportional to the masses
    plans = [plan(2.0 * np.sqrt(p), 3.0 * np.sqrt(q)) for p, q in ((a, b), (c, d))]
    design = rb.experiment_design(model, [*plans, plan(0.0, 0.0)], ["mass"], noise=NOISE)
    np.testing.assert_allclose(design.weights, [wanted, 1 - wanted, 0.0], rtol=1e-3)
    u = np.square(0.5 * T**2 / NOISE).sum()
    np.testing.assert_allclose(design.information[0], u * np.diag([a / 2.0**2, b / 3.0**2]), rtol=1e-6, atol=1e-6)
    x, y = wanted * a + (1 - wanted) * c, wanted * b + (1 - wanted) * d
    np.testing.assert_allclose([*design.standard_deviations.values()], [2 / np.sqrt(u * x), 3 / np.sqrt(u * y)], 1e-3)
    np.testing.assert_allclose(design.efficiencies, [(a * b / (x * y)) ** 0.5, (c * d / (x * y)) ** 0.5, 0], 1e-3)
    assert str(design).splitlines()[3].split() == ["motion3", "0.000", "0.000"]
    assert design.names == ("x.mass", "y.mass")


def test_an_unknown_initial_state_reduces_the_information():
    """The mean of q is unknown, so only the deviations of t^2 / 2 from their mean contain information."""
    design = rb.experiment_design(slide(2.0), [plan(4.0)], ["q", "mass"], noise=NOISE)
    slopes = 0.5 * T**2 * 4.0 / 2.0**2
    assert design.names == ("slide.mass",)
    np.testing.assert_allclose(design.information[0], np.square((slopes - slopes.mean()) / NOISE).sum(), rtol=1e-6)
    assert design.weights == 1.0


@pytest.mark.slow
def test_the_standard_deviations_are_those_of_the_fit():
    model, drive = slide(2.0, damping=1.0), rb.PID("slide", rb.Signal.sines(1.0, 3.0), kp=5.0, kd=1.0)
    motion = model.simulate([0.1], duration=1.0, drives=[drive], save_at=T)
    design = rb.experiment_design(model, [motion], ["mass", "damping"], drives=[drive], noise=NOISE)
    fit = rb.fit(model, motion, ["mass", "damping"], drives=[drive], noise=NOISE, starts=1)
    np.testing.assert_allclose([*design.standard_deviations.values()], [*fit.standard_deviations.values()], rtol=1e-5)
    start = rb.Measurement(T, [0.1], [0.0], drives=[drive], noise=NOISE)
    other = rb.experiment_design(model, [start], ["mass", "damping"])
    np.testing.assert_allclose(other.information, design.information, rtol=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"motions": plan(1.0)}, "motions is not a list"),
        ({"motions": []}, "empty list"),
        ({"noise": None}, "noise is None"),
        ({"parameters": ["q"]}, "at least one parameter of the model"),
        ({"motions": [plan(0.0)]}, "do not determine 1.00 slide.mass"),
        (
            {"parameters": ["mass", "tau"], "motions": [rb.Measurement(T, [0.0])], "tau": 1.0},
            "0.71 slide.mass [+] 0.71",
        ),
    ],
)
def test_refused_arguments(given, message):
    arguments = {"motions": [plan(1.0)], "parameters": ["mass"], "noise": NOISE} | given
    with pytest.raises(rb.ArgumentError, match=message):
        rb.experiment_design(slide(2.0), **arguments)
