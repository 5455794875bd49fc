"""What the model contains acts, and what does not act or fails says so."""

import warnings

import numpy as np
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python
SETTINGS = {"method": "rk4", "step": 0.01}
METHODS = [SETTINGS, {"method": "rk45"}, {"method": "implicit", "step": 0.01}, {"method": "moreau", "step": 0.01}]
LIMIT = 0.5


def arm(limits=None, passive=None, drive=None):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    inertia = rb.Inertia(1.0, inertia=(0.1, 0.1, 0.1))
    settings = {"joint": rb.Revolute((0, 0, 1)), "inertia": inertia}
    if limits:
        settings["limits"] = rb.JointLimits(*limits)
    if passive:
        settings["passive"] = passive
    builder.add_body("arm", **settings)
    if drive:
        builder.add_drive(drive)
    return builder.build()


def driven():
    return arm(drive=rb.PrescribedForce("arm", 0.2))


@pytest.mark.slow
def test_the_drives_of_the_model_act_unless_others_are_given():
    """A torque of 0.2 N m on 0.1 kg m^2 gives an angle of t^2."""
    model, q = driven(), np.zeros((2, 1))
    assert np.allclose(model.simulate(q, q, 0.5, save_at=2, **SETTINGS).end_q, 0.25, rtol=1e-12)
    np.testing.assert_array_equal(model.simulate(q, q, 0.5, drives=(), save_at=2, **SETTINGS).end_q, 0.0)
    other = [rb.PrescribedForce("arm", -0.4)]
    assert np.allclose(model.simulate(q, q, 0.5, drives=other, save_at=2, **SETTINGS).end_q, -0.5, rtol=1e-12)
    many = model.vary(mass=np.ones((2, 1)))
    assert np.allclose(many.simulate(q, q, 0.5, save_at=2, **SETTINGS).end_q, 0.25, rtol=1e-12)


def test_accelerations_contain_the_drives_of_the_model():
    model = driven()
    assert np.allclose(model.accelerations([0.0], [0.0]), 2.0, rtol=1e-14)
    assert np.allclose(model.accelerations([0.0], [0.0], drives=()), 0.0)


def test_a_fit_simulates_the_drives_of_the_model():
    model, t = driven(), np.linspace(0.0, 1.0, 11)
    measured = t, 0.5 * t[:, None] ** 2, None  # as with 0.2 kg m^2
    fit = rb.fit(model.vary(rotor_inertia=np.array([0.05])), measured, ["rotor_inertia"], starts=1)
    assert np.allclose([*fit.values.values()], 0.1, rtol=1e-6)


@pytest.mark.parametrize(("given", "angle"), [({}, 0.25), ({"drives": []}, 0.0)])
def test_a_study_simulates_the_drives_of_the_model(given, angle):
    study = rb.Study(model=driven(), samples=2, simulate={"duration": 0.5, **SETTINGS}, **given)
    assert np.allclose(study.run().q_final, angle, rtol=1e-12)


def test_the_identity_of_a_study_contains_the_drives_of_its_model(tmp_path):
    keys = {"samples": 2, "simulate": {"duration": 0.5, **SETTINGS}}
    rb.Study(model=driven(), **keys).run(tmp_path / "results")
    with pytest.raises(rb.RbchainError, match="another study"):
        rb.Study(model=arm(drive=rb.PrescribedForce("arm", 0.3)), **keys).run(tmp_path / "results")


@pytest.mark.parametrize("settings", METHODS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_motions_beyond_the_position_limits_are_reported(settings, dtype):
    """The samples turn by 0.4, 0.6 and -0.6 rad."""
    model, q = arm(limits=(-LIMIT, LIMIT)), np.zeros((3, 1), dtype)
    with pytest.warns(rb.SimulationWarning, match=r"2 of 3: .* without stops: 'arm' in sample 1\. Limits are not"):
        motion = model.simulate(q, np.array([[0.4], [0.6], [-0.6]], dtype), 1.0, save_at=2, **settings)
    assert motion.beyond_limits.tolist() == [False, True, True]
    assert motion.dof_beyond_limits.tolist() == [-1, 0, 0]
    assert motion[1].beyond_limits
    assert not motion[0].beyond_limits


@pytest.mark.slow
def test_a_motion_that_returns_before_the_saved_time_was_beyond_its_limit():
    model, spring = (
        arm(limits=(-LIMIT, LIMIT)),
        rb.SpringDamper(None, "arm", point_a=(2, 0, 0), point_b=(1, 0, 0), stiffness=3.0),
    )
    with pytest.warns(rb.SimulationWarning, match="exceeds the position limits"):
        motion = model.simulate([[0.0]], [[4.0]], 2.0, forces=[spring], max_step=0.05, save_at=[0.0, 2.0])
    assert motion.beyond_limits.all()


def test_the_initial_state_counts():
    model = arm(limits=(-LIMIT, LIMIT))
    with pytest.warns(rb.SimulationWarning, match="'arm'"):
        assert model.simulate([0.6], [0.0], 0.1, save_at=2).beyond_limits


@pytest.mark.parametrize("beyond", [5e-7, 2e-6])
def test_errors_of_the_steps_are_no_motion_beyond_the_limits(beyond):
    drive = rb.PrescribedPosition("arm", rb.Signal.polynomial([0.0, LIMIT + beyond]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        motion = arm(limits=(-LIMIT, LIMIT)).simulate(
            [0.0], [LIMIT + beyond], 1.0, drives=[drive], save_at=2, **SETTINGS
        )
    assert bool(motion.beyond_limits) is (beyond > 1e-6)


@pytest.mark.slow_cases("settings1", "settings3")
@pytest.mark.parametrize("settings", METHODS)
def test_joints_with_stops_are_not_reported(settings):
    passive = rb.PassiveForces(stop_lower=-LIMIT, stop_upper=LIMIT, limit_stiffness=1e3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model, forces in (
            (arm(limits=(-LIMIT, LIMIT), passive=passive), ()),
            (arm(limits=(-LIMIT, LIMIT)), [rb.HardStops("arm")]),
            (arm(), ()),
        ):
            if forces and settings["method"] in ("rk4", "implicit"):
                continue
            motion = model.simulate([[0.0]], [[1.0]], 1.0, forces=forces, save_at=2, **settings)
            assert not motion.beyond_limits.any()


def test_motions_in_files_keep_what_was_beyond_the_limits(tmp_path):
    model = arm(limits=(-LIMIT, LIMIT))
    with pytest.warns(rb.SimulationWarning):
        motion = model.simulate(np.zeros((2, 1)), [[0.0], [1.0]], 1.0, save_at=2)
    motion.save(tmp_path / "motion.npz")
    assert rb.load_motion(tmp_path / "motion.npz").beyond_limits.tolist() == [False, True]


TOO_FEW = {"method": "rk45", "max_steps": 1}


def test_failed_samples_of_a_batch_warn_and_a_failed_single_state_raises():
    model, zero = rb.Model.serial_chain(2), np.zeros(2)
    with pytest.warns(rb.SimulationWarning, match="2 of 2: The limit of max_steps was reached"):
        motion = model.simulate(np.zeros((2, 2)), np.zeros((2, 2)), 1.0, save_at=2, **TOO_FEW)
    assert not motion.success
    with pytest.raises(rb.SimulationError, match="The limit of max_steps was reached") as caught:
        model.simulate(zero, zero, 1.0, save_at=2, **TOO_FEW)
    assert caught.value.trajectory.status == rb.Status.TOO_MANY_STEPS


@pytest.mark.parametrize("batch", [(), (2,)])
def test_failures_can_be_errors_or_be_ignored(batch):
    model, state = rb.Model.serial_chain(2), np.zeros((*batch, 2))
    with pytest.raises(rb.SimulationError):
        model.simulate(state, state, 1.0, on_failure="raise", save_at=2, **TOO_FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not model.simulate(state, state, 1.0, on_failure="ignore", save_at=2, **TOO_FEW).success


def test_a_study_warns_of_failed_samples():
    study = rb.Study(model=rb.Model.serial_chain(2), samples=3, simulate={"duration": 1.0, **TOO_FEW})
    with pytest.warns(rb.SimulationWarning, match="3"):
        study.run()
    with pytest.raises(rb.RbchainError):
        study.run(on_failure="raise")
    assert (study.run(on_failure="ignore").status == rb.Status.TOO_MANY_STEPS).all()


@pytest.mark.parametrize("old", ["status", "nan"])
def test_old_words_name_the_new_one(old):
    model = rb.Model.serial_chain(1)
    with pytest.raises(rb.ArgumentError, match=f"'{old}' is now called 'ignore'"):
        model.simulate([0.0], [0.0], 1.0, on_failure=old, save_at=2)
