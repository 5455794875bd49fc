"""Estimation of parameters: exact and noisy motions, statistics of the errors, and combinations without information."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.fitting.variables import variables_of

from .conftest import mechanism
from .mechanisms import slide
from .test_sensitivities import START, arm_with, two_links, two_seeds

plain = pytest.mark.plain_python
LOOSE = {"rtol": 1e-6, "atol": 1e-8}
DRIVE = rb.PID("link1", rb.Signal.sines(1.0, 3.0), kp=5.0, kd=1.0)


def measured(model, noise=0.0, drives=(DRIVE,), duration=0.4, count=9):
    motion = model.simulate(START[:2], START[2:], duration, drives=drives, save_at=count, **LOOSE)
    rng = two_seeds(1)
    return (
        motion.t,
        motion.q + noise * rng.normal(size=motion.q.shape),
        motion.qd + noise * rng.normal(size=motion.q.shape),
    )


def numbers(by_name):
    return np.array([*by_name.values()])


@pytest.mark.slow
@plain
def test_an_exact_motion_returns_its_parameters():
    model = two_links()
    true = model.vary(mass=[1.5, 0.7], damping=[0.25, 0.15])
    motion = measured(true, duration=0.2, count=5)
    fit = rb.fit(model, motion, ["mass", "damping"], drives=[DRIVE], starts=1, **LOOSE)
    assert fit.names == ("link1.mass", "link2.mass", "link1.damping", "link2.damping")
    np.testing.assert_allclose(numbers(fit.values), [1.5, 0.7, 0.25, 0.15], rtol=1e-4)
    np.testing.assert_allclose(fit.model.mass, numbers(fit.values)[:2], rtol=1e-14)
    assert fit.undetermined == ()
    assert np.abs(fit.residuals).max() < 1e-5
    assert fit.model.batch_shape == ()


@pytest.mark.slow
@plain
def test_errors_of_a_noisy_motion_are_within_their_standard_deviations():
    model = two_links()
    motion = measured(model.vary(mass=[1.3, 0.75]), noise=1e-3)
    fit = rb.fit(model, motion, ["q", "qd", "mass"], drives=[DRIVE], starts=1, noise=1e-3, **LOOSE)
    true = dict(zip(fit.names, (*START, 1.3, 0.75), strict=True))
    errors = [(fit.values[name] - value) / fit.standard_deviations[name] for name, value in true.items()]
    assert np.abs(errors).max() < 3.0
    q, qd = ([fit.values[f"{joint}.{name}"] for joint in model.joint_names] for name in ("q", "qd"))
    np.testing.assert_allclose([q, qd], [fit.motion.q[0], fit.motion.qd[0]], rtol=0, atol=1e-14)
    assert 0.5 < np.nanstd(fit.residuals) / 1e-3 < 1.5
    assert fit.success
    assert "times the noise. The data determine all parameters" in fit.message
    estimated = rb.fit(fit.model, motion, ["q", "qd", "mass"], drives=[DRIVE], starts=1, **LOOSE)
    np.testing.assert_allclose(numbers(estimated.values), numbers(fit.values), rtol=1e-4, atol=1e-5)
    ratio = numbers(estimated.standard_deviations) / numbers(fit.standard_deviations)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)
    assert 0.5 < ratio[0] < 1.5


def test_the_estimated_noise_has_the_degrees_of_freedom_of_the_measurements():
    """A slide under a constant force f moves by f t^2 / (2 m). Its first position is exact, because it starts there."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(2.0))
    model, t = builder.build(), np.array([0.0, 1.0, 2.0])
    lever = t**2 / 4.0
    for measured in ([[0.0], [0.3], [1.0]], [[0.0], [0.3], [np.nan]]):
        q = np.array(measured)
        fit = rb.fit(model, (t, q, None), ["tau"], tau=[1.0], starts=1)
        known = np.isfinite(q[1:, 0])
        x, y = lever[1:][known], q[1:, 0][known]
        force = (x @ y) / (x @ x)
        np.testing.assert_allclose(fit.values["slide.tau"], force, rtol=1e-7)
        if known.all():
            expected = np.sqrt(np.square(y - force * x).sum() / (x @ x))  # two measurements, one parameter
            np.testing.assert_allclose(fit.standard_deviations["slide.tau"], expected, rtol=1e-6)
        else:
            assert np.isnan(fit.standard_deviations["slide.tau"])
            assert np.isnan(fit.covariance).all()
            assert "no more measurements than parameters" in fit.message


@pytest.mark.slow
@plain
def test_a_model_that_cannot_explain_the_motion_is_reported():
    model = two_links()
    motion = measured(model.vary(damping=[1.0, 1.0]), noise=1e-3)
    fit = rb.fit(model, motion, ["mass"], drives=[DRIVE], starts=1, noise=1e-3, **LOOSE)
    assert not fit.success
    assert "times the noise; expected about 1" in fit.message


@plain
def test_a_force_and_a_mass_are_known_up_to_their_ratio():
    """q'' = (F - d v) / m does not change if F, d and m grow by the same factor."""
    motion = slide(2.0, damping=0.5).simulate([0.0], [0.0], 1.0, tau=3.0, save_at=6, **LOOSE)
    model = slide(2.0, damping=0.6)
    data = (motion.t, motion.q, None)
    fit = rb.fit(model, data, ["mass", "damping", "tau"], tau=3.2, starts=1, **LOOSE)
    assert len(fit.undetermined) == 1
    shares, names = zip(*(part.split(" ") for part in fit.undetermined[0].split(" + ")), strict=True)
    assert names == fit.names == ("slide.mass", "slide.damping", "slide.tau")
    wanted = np.array([1.0, 1.0, numbers(fit.values)[2] / 3.2])
    np.testing.assert_allclose([float(x) for x in shares], wanted / np.linalg.norm(wanted), rtol=0, atol=0.006)
    assert np.isinf(numbers(fit.standard_deviations)).all()
    np.testing.assert_allclose(numbers(fit.values)[1] / numbers(fit.values)[0], 0.25, rtol=1e-4)
    assert np.isnan(fit.residuals[:, 1]).all()


@plain
def test_a_fit_whose_parameter_reaches_its_limit_is_no_success():
    """The initial guess of the mass is e^7 times too large."""
    motion = slide(2.0, damping=0.5).simulate([0.0], [0.0], 1.0, tau=3.0, save_at=6, **LOOSE)
    fit = rb.fit(slide(2.0 * np.exp(7.0), damping=0.5), motion, ["mass"], tau=3.0, starts=1, **LOOSE)
    assert not fit.success
    assert "estimates of slide.mass have the largest allowed difference from their initial guesses" in fit.message


@pytest.mark.slow
@plain
def test_joints_that_move_freely_have_a_constant_force_beside_their_drives():
    model, held = two_links(), rb.PrescribedAcceleration("link1", 0.3)
    for drives, names in (([DRIVE], ("link1.tau", "link2.tau")), ([held], ("link2.tau",))):
        tau = [0.2 if drives[0] is DRIVE else 0.0, 0.7]
        motion = model.simulate([0.1, 0.2], [0.0, 0.0], 0.3, tau=tau, drives=drives, save_at=7, **LOOSE)
        fit = rb.fit(model, motion, ["tau"], drives=drives, starts=1, **LOOSE)
        assert fit.names == names
        np.testing.assert_allclose(numbers(fit.values), tau[-len(names) :], rtol=1e-4)
    drives = [held, rb.PrescribedAcceleration("link2", 0.7)]
    with pytest.raises(rb.ArgumentError, match="drives prescribe the motion of all joints"):
        rb.fit(model, motion, ["tau"], drives=drives, starts=1, **LOOSE)


@pytest.mark.slow
@plain
def test_a_gain_of_two_pids_of_one_joint_is_ambiguous():
    model, drives = two_links(), [rb.PID("link1", 0.3, kp=kp) for kp in (1.0, 2.0)]
    motion = model.simulate([0.1, 0.2], [0.0, 0.0], 0.1, drives=drives, save_at=7, **LOOSE)
    with pytest.raises(rb.ArgumentError, match=r'contains "kp", but joint .link1. has several PIDs'):
        rb.fit(model, motion, ["kp"], drives=drives, starts=1, **LOOSE)
    assert rb.fit(model, motion, ["mass"], drives=drives, starts=1, **LOOSE).success


@pytest.mark.slow
@plain
def test_gains_and_the_initial_state_are_fitted():
    model = two_links()
    motion = measured(model, drives=[rb.PID("link1", rb.Signal.sines(1.0, 3.0), kp=6.0, kd=1.3)])
    fit = rb.fit(model, motion, ["kp", "kd"], drives=[DRIVE], starts=1, **LOOSE)
    np.testing.assert_allclose(numbers(fit.values), [6.0, 1.3], rtol=1e-5)
    assert fit.drives[0].kp == numbers(fit.values)[0]


@pytest.mark.slow
@plain
def test_all_starting_points_see_the_random_signals_of_the_first_sample():
    force = rb.PrescribedForce("slide", rb.Signal.noise(20.0, frequencies=[0.5, 3.0], sines=5, seed=3))
    motion = slide(2.0).simulate([0.0], [0.0], 0.2, drives=[force], save_at=5, **LOOSE)
    fit = rb.fit(slide(2.5), motion, ["mass"], drives=[force], starts=3, **LOOSE)
    np.testing.assert_allclose(numbers(fit.values), 2.0, rtol=1e-4)
    np.testing.assert_allclose(fit.costs, 0.0, rtol=0, atol=1e-10)


@pytest.mark.slow
@plain
def test_states_that_an_event_holds_are_no_measurements():
    rod = rb.Model.serial_chain(1, gravity=(0, -10, 0))
    stop = rb.Event("link1", value=-0.5, stop=True)
    motion = rod.replace(damping=[0.1]).simulate(duration=1.0, save_at=11, events=[stop], **LOOSE)
    assert (motion.q[6:] == motion.end_q).all()
    fit = rb.fit(rod.replace(damping=[0.05]), motion, ["damping"], starts=1, **LOOSE)
    np.testing.assert_allclose(numbers(fit.values), [0.1], rtol=1e-4)


@plain
def test_a_tensor_stays_physical_and_its_slopes_are_exact():
    """The log-Cholesky form reaches all physical tensors, and its derivatives agree with differences."""
    model, rng = arm_with(rb.Universal()), two_seeds(3)
    variables = variables_of(model, "inertia", np.zeros(4), {}, [])
    np.testing.assert_allclose(variables.values(np.zeros((1, 18)))[0], model.inertia, rtol=1e-14)
    x, direction = rng.normal(size=(1, 18)), rng.normal(size=18)
    moments = np.linalg.eigvalsh(variables.values(3 * x)[0])
    assert (moments[:, 0] > 0.0).all()
    assert (moments[:, 0] + moments[:, 1] > moments[:, 2]).all()
    model.vary(inertia=variables.values(3 * x)[0])  # checks the tensors
    ends = [variables.values(x + s * direction)[0] for s in (-1e-6, 1e-6)]
    found = variables.slopes(x)[0] @ direction
    np.testing.assert_allclose(found, (ends[1] - ends[0]) / 2e-6, rtol=0, atol=1e-8 * np.abs(found).max())


@plain
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parameters": []}, "parameters is empty"),
        ({"parameters": ["weight"]}, "parameters contains 'weight'"),
        ({"parameters": ["damping"], "model": slide()}, '"damping", but all its entries are zero'),
        (
            {"parameters": ["slide.damping"], "model": slide()},
            r'"slide\.damping", which is zero and therefore stays fixed',
        ),
        ({"parameters": ["inertia"], "model": slide()}, "a rod, a plate or a point"),
        ({"motion": 3}, "motion is not a measured trajectory"),
        ({"motion": ([0.0, 1.0], [[0.0]], None)}, r"expected \(times,\), \(times, 1\) and \(times, 1\)"),
        ({"motion": ([0.5, 1.0], [[0.0], [0.0]], None)}, "motion has no state at t = 0"),
        ({"motion": ([0.0, 1.0], [[0.0], [np.nan]], None)}, "fewer than the 2 parameters"),
        ({"noise": -1.0}, "noise is -1.0; expected positive"),
        ({"noise": [1.0, 1.0, 1.0]}, "expected one number or an array"),
    ],
)
def test_refused_arguments(given, message):
    arguments = {"model": slide(2.0, damping=1.0), "motion": ([0.0, 1.0], [[0.0], [0.1]], None)}
    arguments = arguments | {"parameters": ["mass", "damping"]} | given
    with pytest.raises((rb.ArgumentError, rb.ModelError), match=message):
        rb.fit(**arguments)


@pytest.mark.slow
def test_masses_of_an_arm_with_seven_joints_are_within_half_a_per_cent():
    """From a motion of 2 s with errors of 1e-3 rad and rad/s; all starting points lead to the same masses."""
    model, rng = mechanism("arm7"), np.random.default_rng(3)
    true = model.vary(mass=model.mass * rng.uniform(0.7, 1.3, (2, model.n_bodies)))
    names = enumerate(model.joint_names)
    drives = [rb.PID(name, rb.Signal.sines(0.5, 2 + 0.7 * i, phase=0.2 * i), kp=1000.0, kd=60.0) for i, name in names]
    start = np.tile(0.5 * rng.normal(size=7), (2, 1)), np.zeros((2, 7))
    motion = true.simulate(*start, 2.0, save_at=101, drives=drives, derivatives=["mass"])  # shares its machine code
    q, qd = (x[0] + 1e-3 * rng.normal(size=x[0].shape) for x in (motion.q, motion.qd))
    fit = rb.fit(model, (motion.t, q, qd), ["q", "qd", "mass"], drives=drives, starts=2, noise=1e-3, rtol=1e-6)
    assert fit.success
    assert fit.names[14:] == tuple(f"{name}.mass" for name in model.body_names)
    np.testing.assert_allclose(fit.costs, fit.costs.min(), rtol=1e-6)
    ratios, errors = (numbers(x)[14:] / true.mass[0] for x in (fit.values, fit.standard_deviations))
    determined = errors < 0.0025
    assert determined[1:].all()  # the first joint turns slowly, so the mass of its body is known less well
    np.testing.assert_allclose(ratios[determined], 1.0, rtol=0, atol=0.005)
    assert (np.abs(ratios - 1.0) < 4 * errors).all()


@plain
def test_a_constant_force_far_from_its_first_guess_is_found():
    t = np.linspace(0.0, 1.0, 11)
    fit = rb.fit(slide(2.0), (t, 2.5 * t[:, None] ** 2, None), ["tau"], tau=0.0, starts=2)
    assert fit.success
    np.testing.assert_allclose(numbers(fit.values), 10.0, rtol=1e-9)


@plain
def test_gains_with_several_numbers_are_refused():
    t = np.linspace(0.0, 1.0, 11)
    drive = rb.PID("slide", 0.3, kp=np.array([1.0, 2.0]))
    with pytest.raises(rb.ArgumentError, match=r"PID of joint 'slide': kp has shape \(2,\); fit needs one number"):
        rb.fit(slide(2.0), (t, t[:, None], None), ["mass"], drives=[drive])


@pytest.mark.slow
@pytest.mark.plain_python
def test_the_direction_of_gravity_follows_from_a_motion():
    """A pendulum about z determines two components; its tilt is unknown."""
    arm, t = rb.Model.serial_chain(1), np.linspace(0, 1, 6)
    true = arm.replace(gravity=(1.5, -9.6, 0)).simulate([0.3], duration=1.0, save_at=t)
    fit = rb.fit(arm, true, ["gravity.x", "gravity.y"], starts=1, bounds={"gravity.x": (-3, 3)})
    np.testing.assert_allclose(list(fit.values.values()), [1.5, -9.6], rtol=1e-6)
    assert fit.names == ("gravity.x", "gravity.y") and set(fit.units.values()) == {"m/s^2"}
    np.testing.assert_allclose(fit.model.gravity, [1.5, -9.6, 0], rtol=1e-6)
