"""Fits of several motions, with bounds and priors, and of the initial states of closed loops."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import least_squares

import rbchain as rb
from rbchain.fitting.initial_states import ClosedInitialState

from .closed_chains import closed_state, four_bar
from .mechanisms import slide
from .test_sensitivities import extrapolated, two_seeds
from .test_sensitivities_of_closed_chains import SLIDES, rate_of_trammel, slides_of, trammel

pytestmark = pytest.mark.plain_python
LOOSE = {"rtol": 1e-7, "atol": 1e-9}
T = np.linspace(0.0, 1.0, 6)


def pushed(mass, force, t=T, start=0.0, speed=0.0):
    """The motion of a slide under a constant force."""
    return t, (start + speed * t + 0.5 * force / mass * t**2)[:, None], (speed + force / mass * t)[:, None]


@pytest.mark.slow
def test_several_motions_with_own_loads_determine_a_mass_and_a_force():
    """One motion determines only the ratio of the unknown force and the mass."""
    unknown, known = 3.0, 5.0
    first = rb.Measurement(*pushed(2.0, unknown))
    push = rb.PrescribedForce("slide", known)
    second = rb.Measurement(*pushed(2.0, unknown + known, T[:4] ** 2, -0.3, 0.7), drives=[push])
    alone = rb.fit(slide(2.5), [first], ["mass", "tau"], tau=2.0, starts=1, **LOOSE)
    assert len(alone.undetermined) == 1
    assert (len(alone.residuals), len(alone.motion), alone.drives) == (1, 1, ((),))
    fit = rb.fit(slide(2.5), [first, second], ["mass", "tau"], tau=2.0, starts=1, **LOOSE)
    assert fit.undetermined == ()
    np.testing.assert_allclose([*fit.values.values()], [2.0, unknown], rtol=1e-6)
    assert fit.names == ("slide.mass", "slide.tau")
    assert [x.shape for x in fit.residuals] == [(6, 2), (4, 2)]
    assert [motion.t[-1] for motion in fit.motion] == [1.0, pytest.approx(0.36)]
    assert fit.drives == ((), (push,))


def test_each_motion_has_its_initial_state_and_its_noise():
    """The weighted mean of both motions: (1 / noise^2) weights, for positions with constant errors."""
    motions = [pushed(2.0, 0.0, start=start) for start in (0.3, -0.4)]
    noise = np.array([1e-3, 2e-3])
    given = [rb.Measurement(t, q, None, noise=s) for (t, q, _), s in zip(motions, noise, strict=True)]
    fit = rb.fit(slide(2.0), given, ["q"], starts=1, **LOOSE)
    assert fit.names == ("motion1.slide.q", "motion2.slide.q")
    np.testing.assert_allclose([*fit.values.values()], [0.3, -0.4], atol=1e-12)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance)), noise / np.sqrt(6), rtol=1e-9)
    bounded = rb.fit(slide(2.0), given, ["q"], bounds={"motion2.slide.q": (-0.5, 0.0)}, starts=1, **LOOSE)
    assert bounded.at_bounds == ()
    with pytest.raises(rb.ArgumentError, match=r"bounds of motion1\.slide\.q .* initial guess is 0\.3"):
        rb.fit(slide(2.0), given, ["q"], bounds={"slide.q": (-0.5, 0.0)}, starts=1, **LOOSE)


@pytest.mark.slow
def test_gains_are_common_to_drives_with_different_references():
    model = slide(2.0)
    given = []
    for reference in (0.5, -1.0):
        motion = model.simulate([0.1], drives=[rb.PID("slide", reference, kp=6.0, kd=1.3)], save_at=T, duration=1.0)
        given.append(rb.Measurement(motion.t, motion.q, motion.qd, drives=[rb.PID("slide", reference, kp=5.0, kd=1.0)]))
    fit = rb.fit(model, given, ["kp", "kd"], starts=1, **LOOSE)
    np.testing.assert_allclose([*fit.values.values()], [6.0, 1.3], rtol=1e-5)
    assert [drive.reference for (drive,) in fit.drives] == [0.5, -1.0]
    other = rb.Measurement(given[0].t, given[0].q, drives=[rb.PID("slide", 0.0, kp=4.0)])
    with pytest.raises(rb.ArgumentError, match="different gains"):
        rb.fit(model, [*given, other], ["kp"], starts=1)


def test_a_prior_is_averaged_with_the_data():
    """q = c + errors: the mean of 6 measurements and a prior, weighted by the reciprocals of their variances."""
    noise, (mean, deviation) = 0.1, (0.2, 0.05)
    errors = 0.1 * two_seeds(2).normal(size=6)
    data = (T, (0.3 + errors)[:, None], None)
    fit = rb.fit(slide(2.0), data, ["q"], noise=noise, priors={"slide.q": (mean, deviation)}, starts=1, **LOOSE)
    weight, of_prior = 6 / noise**2, 1 / deviation**2
    wanted = (weight * data[1].mean() + of_prior * mean) / (weight + of_prior)
    np.testing.assert_allclose(fit.values["slide.q"], wanted, rtol=1e-9)
    np.testing.assert_allclose(fit.standard_deviations["slide.q"], (weight + of_prior) ** -0.5, rtol=1e-9)


def test_a_prior_determines_a_combination_without_information():
    fit = rb.fit(
        slide(2.5),
        pushed(2.0, 3.0),
        ["mass", "tau"],
        **{"tau": 3.0, "noise": 1e-3, "starts": 1, "priors": {"mass": (2.2, 0.1)}},
        **LOOSE,
    )
    assert fit.undetermined == ()
    np.testing.assert_allclose(fit.values["slide.mass"], 2.2, rtol=1e-6)
    np.testing.assert_allclose(fit.values["slide.tau"], 3.3, rtol=1e-6)
    np.testing.assert_allclose(fit.standard_deviations["slide.mass"], 0.1, rtol=1e-3)


def test_an_estimate_stays_at_its_bound():
    """The mass is fitted at its bound, and the force is then the one of this mass."""
    data = pushed(2.0, 3.0)
    fit = rb.fit(slide(2.5), data, ["mass"], tau=3.0, bounds={"*.mass": (2.3, 2.8)}, starts=3, **LOOSE)
    np.testing.assert_allclose(fit.values["slide.mass"], 2.3, rtol=1e-6)
    assert fit.values["slide.mass"] >= 2.3
    assert fit.at_bounds == ("slide.mass",)
    assert fit.success
    assert "At their bounds" in fit.message
    second = rb.Measurement(*pushed(2.0, 8.0), drives=[rb.PrescribedForce("slide", 5.0)])
    fit = rb.fit(
        slide(2.5), [data, second], ["mass", "tau"], tau=3.0, bounds={"mass": (2.3, np.inf)}, starts=2, **LOOSE
    )
    np.testing.assert_allclose(fit.values["slide.mass"], 2.3, rtol=1e-6)
    np.testing.assert_allclose(fit.values["slide.tau"], np.mean([2.3 / 2 * 3, 2.3 / 2 * 8 - 5]), rtol=1e-6)
    assert fit.at_bounds == ("slide.mass",)


@pytest.mark.slow
def test_the_table_of_a_fit():
    data = pushed(2.0, 3.0)
    fit = rb.fit(slide(2.0, damping=1.0), data, ["mass", "damping"], tau=3.0, bounds={"damping": (0.5, 2)}, starts=1)
    lines = str(fit).splitlines()
    assert lines[0].split() == ["parameter", "value", "standard", "error", "unit"]
    assert lines[1].split()[0] == "slide.mass"
    assert lines[1].split()[3:] == ["kg", "determined"]
    assert lines[2].endswith("N s/m  at bound")
    assert len({line.index(word) for line, word in zip(lines, ("unit", "kg", "N s/m"), strict=False)}) == 1
    fit = rb.fit(slide(2.0), data, ["mass", "tau"], tau=2.0, starts=1)
    assert "not determined" in str(fit)
    assert rb.fit(rb.Model.serial_chain(1), (T, 0.0 * data[1], None), ["q"], starts=1).units == {"link1.q": "rad"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"motion": []}, "motion is an empty list"),
        ({"motion": [pushed(2.0, 3.0), 3]}, "motion2 is not a measured trajectory"),
        ({"motion": [rb.Measurement(*pushed(2.0, 3.0), noise=1.0), pushed(2.0, 3.0)]}, "noise is given for only some"),
        ({"motion": rb.Measurement(*pushed(2.0, 3.0), tau=1.0), "parameters": ["tau"]}, "has its own tau"),
        ({"bounds": {"mass": (1.0,)}}, r"expected the two numbers \(lower, upper\)"),
        ({"bounds": {"mass": (2.0, 1.0)}}, "expected the lower bound first"),
        ({"bounds": {"mass": (3.0, 4.0)}}, "initial guess is 2; expected bounds that contain it"),
        ({"bounds": {"slide.dampng": (3.0, 4.0)}}, "did you mean damping"),
        ({"bounds": {"slide.damping": (3.0, 4.0)}}, r"'slide\.damping', which is not fitted"),
        ({"bounds": {"mass": (1.0, 4.0), "slide.mass": (1.0, 3.0)}}, "both select slide.mass"),
        ({"bounds": {3: (1.0, 4.0)}}, "bounds contains 3; expected the name of a field"),
        ({"bounds": [1.0, 4.0]}, "expected a dict"),
        ({"priors": {"mass": (1.0, 0.1)}}, "priors is given without noise"),
        ({"priors": {"mass": (1.0, 0.0)}, "noise": 1.0}, "positive standard deviation"),
    ],
)
def test_refused_arguments(given, message):
    arguments = {"model": slide(2.0), "motion": pushed(2.0, 3.0), "parameters": ["mass"], "starts": 1} | given
    with pytest.raises((rb.ArgumentError, rb.UnknownNameError), match=message):
        rb.fit(**arguments)


@pytest.mark.slow
def test_bounds_of_a_tensor_are_refused_and_its_prior_counts():
    model = rb.Model.serial_chain(1, length=1.0, mass=3.0, gravity=(0, 0, 0))
    model = model.replace(inertia=[np.diag([0.3, 0.35, 0.4])])
    data = (T, 0.4 * T[:, None] ** 2, None)
    with pytest.raises(rb.ArgumentError, match="Use a prior for the tensor"):
        rb.fit(model, data, ["inertia"], bounds={"link1.inertia.xx": (0.1, 1.0)}, starts=1)
    priors = {
        f"link1.inertia.{i}": (x, 0.01)
        for i, x in zip(("xx", "xy", "xz", "yy", "yz"), (0.3, 0, 0, 0.35, 0), strict=True)
    }
    fit = rb.fit(model, data, ["inertia"], tau=1.0, noise=1e-4, priors=priors, starts=1)
    np.testing.assert_allclose(fit.values["link1.inertia.zz"], 1.25 - 0.75, rtol=1e-5)
    np.testing.assert_allclose(fit.standard_deviations["link1.inertia.xx"], 0.01, rtol=1e-3)
    assert fit.undetermined == ()


@pytest.mark.slow
def test_the_initial_state_of_a_closed_chain_is_fitted():
    """The estimate and its covariance are those of a fit of the rod's angle and rate in closed form."""
    model, true, t, noise = trammel(), np.array([0.6, 1.1]), np.linspace(0.0, 0.2, 4), 1e-3

    def slides(x):
        rates = partial(rate_of_trammel, x=SLIDES | {"tau": (0.0, 0.0)})
        return np.array([slides_of(extrapolated(rates, x, one, 1, 5)) for one in t])

    data = slides(true) + noise * two_seeds(4).normal(size=(4, 4))
    best = least_squares(lambda x: (slides(x) - data).ravel() / noise, true, xtol=1e-14, ftol=1e-14)
    fit = rb.fit(model, (t, data[:, :2], data[:, 2:]), ["q", "qd"], noise=noise, starts=1, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(np.r_[fit.motion.q[0], fit.motion.qd[0]], slides_of(best.x), rtol=0, atol=1e-7)
    chosen = [("x.q", "y.q", "x.qd", "y.qd").index(name) for name in fit.names]
    assert len(chosen) == 2
    np.testing.assert_allclose([*fit.values.values()], slides_of(best.x)[chosen], rtol=0, atol=1e-7)
    slopes = np.array([slides_of(best.x + 1e-20j * e).imag / 1e-20 for e in np.eye(2)]).T[chosen]
    wanted = slopes @ np.linalg.inv(best.jac.T @ best.jac) @ slopes.T
    np.testing.assert_allclose(fit.covariance, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    other = rb.fit(model, (t, data[:, :2], data[:, 2:]), ["x.q", "qd"], noise=noise, starts=1, rtol=1e-8, atol=1e-10)
    assert other.names[0] == "x.q"
    np.testing.assert_allclose(other.motion.q[0], fit.motion.q[0], rtol=0, atol=1e-7)


def test_states_of_closed_chains_that_cannot_be_fitted_are_refused():
    model, (q, qd) = trammel(), np.split(slides_of([0.6, 1.1]), 2)
    motion = np.linspace(0.0, 0.1, 2), np.tile(q, (2, 1)), np.tile(qd, (2, 1))
    with pytest.raises(rb.ArgumentError, match=r"expected 1 independent coordinates of the closed loop"):
        rb.fit(model, motion, ["x.q", "y.q"], starts=1)
    with pytest.raises(rb.ArgumentError, match="closed loops with prescribed motions"):
        rb.fit(model, motion, ["q"], drives=[rb.PrescribedAcceleration("x", 0.0)], starts=1)
    with pytest.raises(rb.ArgumentError, match="first measured state of a trajectory cannot be closed"):
        rb.fit(model, (motion[0], 0.0 * motion[1], motion[2]), ["q"], starts=1)


@pytest.mark.parametrize("name", ["trammel", "four bar"])
def test_changes_of_closed_states_agree_with_the_constraints(name):
    """J dq = 0, and the velocities of moved states satisfy the constraints: J dqd + d(J qd)/dq dq = 0."""
    if name == "trammel":
        model, (q, qd) = trammel(), np.split(slides_of([0.6, 1.1]), 2)
    else:
        model, (q, qd, _) = four_bar().model, closed_state(four_bar())
    start = ClosedInitialState(model, "", q, qd)
    dofs = start.entries("q", None)
    dq = np.zeros((1, model.nv))
    dq[:, dofs] = 0.1
    q, qd = start.states(dq, np.zeros((1, model.nv)))
    assert np.abs(model.constraint_residual(q)).max() < 1e-12
    assert np.abs(model.constraint_jacobian(q) @ qd[0]).max() < 1e-12
    found = start.changes("q", dq, np.zeros((1, model.nv)))[0]
    J = model.constraint_jacobian(q[0])
    assert np.abs(J @ found[: model.nv]).max() < 1e-9
    np.testing.assert_allclose(found[dofs][:, dofs], np.eye(len(dofs)), atol=1e-9)
