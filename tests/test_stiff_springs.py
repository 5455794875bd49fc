"""Samples end at their start if fixed steps are unstable with the springs and bushings between bodies there."""

import warnings

import numpy as np
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python
DONE, TOO_STIFF = rb.Status.DONE, rb.Status.TOO_STIFF
#: Limits of h omega and of h d / m. For "rk4", |1 + z + z^2 / 2 + z^3 / 6 + z^4 / 24| = 1 on the imaginary and on the
#: real axis. The other methods are explicit in velocities, and symplectic in positions.
VIBRATION = {"rk4": np.sqrt(8.0), "implicit": 2.0, "moreau": 2.0}
DECAY = {"rk4": 2.7853, "implicit": 2.0, "moreau": 2.0}
MASS = 2.0


def slide(**passive):
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    forces = rb.PassiveForces(**passive) if passive else None
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(MASS), passive=forces)
    return builder.build()


def spring(stiffness=0.0, damping=0.0, *, rest_length=1.0, **settings):
    """Return a spring along the slide, which is at rest at the position 0."""
    points = {"point_a": (0, 0, 0), "point_b": (1, 0, 0)}
    return rb.SpringDamper(
        None, "slide", **points, stiffness=stiffness, damping=damping, rest_length=rest_length, **settings
    )


def status_of(model, method, forces, step, q=1e-3, **settings):
    """Return the status after two steps from one position of all joints."""
    start = np.full(model.nq, q)
    settings = {"duration": 2.0 * step, "on_failure": "ignore"} | settings
    return model.simulate(start, method=method, step=step, forces=forces, **settings).status


def stays(model, method, forces, step, start=1e-3):
    """Whether a motion from rest stays below 100 times its amplitude, in 400 steps."""
    q = np.full(model.nq, start)
    settings = {"method": method, "step": step, "forces": forces, "save_at": 401, "on_failure": "ignore"}
    motion = model.simulate(q, duration=400 * step, **settings)
    return motion.status == DONE and np.abs(motion.q).max() < 100 * start


@pytest.mark.parametrize("method", VIBRATION)
@pytest.mark.parametrize("kind", ["spring", "damper", "bushing"])
def test_the_longest_step_is_the_stability_limit(method, kind):
    k, d = (0.0, 80.0) if kind == "damper" else (5e3, 0.0)
    bushing = rb.Bushing(None, "slide", stiffness=k * np.eye(6), damping=np.zeros((6, 6)))
    forces = [bushing] if kind == "bushing" else [spring(k, d)]
    limit = DECAY[method] * MASS / d if d else VIBRATION[method] * np.sqrt(MASS / k)
    assert stays(slide(), method, forces, 0.99 * limit)
    assert status_of(slide(), method, forces, 1.01 * limit) == TOO_STIFF
    with pytest.raises(rb.SimulationError, match=r"steps are stable up to .* s\.$") as error:
        slide().simulate([0.0], duration=1.0, method=method, step=1.0, forces=forces)
    longest = float(str(error.value).split("up to ")[1].split()[0])
    assert longest == pytest.approx(limit, rel=6e-3)  # three digits


def test_several_springs_in_parallel_count_together():
    """Each spring alone is stable up to h omega = 2.83. Two of them have sqrt(2) times its frequency."""
    k, step = 5e3, 2.5 * np.sqrt(MASS / 5e3)
    assert status_of(slide(), "rk4", [spring(k)], step) == DONE
    assert status_of(slide(), "rk4", [spring(k), spring(k)], step) == TOO_STIFF


def test_steps_that_are_shorter_because_of_saved_times_and_controllers_count():
    """The steps are half as long as the argument, with which the spring has h omega = 4."""
    step = 4.0 * np.sqrt(MASS / 5e3)
    assert status_of(slide(), "rk4", [spring(5e3)], step) == TOO_STIFF
    assert status_of(slide(), "rk4", [spring(5e3)], step, duration=0.5 * step) == DONE
    digital = rb.Sampled(rb.PID("slide", 0.0, kp=1.0), period=0.5 * step)
    assert status_of(slide(), "rk4", [spring(5e3)], step, drives=[digital]) == DONE


@pytest.mark.parametrize("method", VIBRATION)
def test_the_modes_of_a_chain_determine_the_step(method):
    """The spring pulls at the tip of a double pendulum without gravity. Weak damping keeps the other mode at rest."""
    chain = rb.Model.serial_chain(2, length=0.5, mass=1.0, gravity=(0, 0, 0)).replace(damping=[0.0, 0.05])
    tip = {"point_a": (1.5, 0.5, 0), "point_b": (0.5, 0, 0), "rest_length": 0.5**0.5}
    forces = [rb.SpringDamper(None, "link2", stiffness=1e5, **tip)]
    J = np.array([0.5**0.5, -(0.5**0.5)]) @ chain.jacobian([0.0, 0.0], "link2", point=(0.5, 0, 0))[:2]
    limit = VIBRATION[method] / np.sqrt(1e5 * J @ np.linalg.solve(chain.mass_matrix([0.0, 0.0]), J))
    assert stays(chain, method, forces, 0.97 * limit, 1e-6)
    assert status_of(chain, method, forces, 1.03 * limit, 0.0) == TOO_STIFF


@pytest.mark.parametrize("passive", [{"stiffness": 2e3}, {"damping": 30.0}, {"stiffness": 1e3, "damping": 10.0}])
def test_the_forces_of_joints_count_as_the_methods_treat_them(passive):
    """For "implicit", h^2 (k + c) + 2 h (d + h c) = 4 (m + h d + h^2 c) at the limit, with c and d of the joint."""
    k, c, d = 5e3, passive.get("stiffness", 0.0), passive.get("damping", 0.0)
    limit = max(np.roots([k - c, -2.0 * d, -4.0 * MASS]))
    model, forces = slide(**passive), [spring(k)]
    assert stays(model, "implicit", forces, 0.99 * limit)
    assert status_of(model, "implicit", forces, 1.01 * limit) == TOO_STIFF
    together = [spring(k + c, d)]  # "rk4" treats the forces of joints as the forces between bodies
    for step in np.linspace(0.5, 1.5, 11) * np.sqrt(8.0 * MASS / (k + c)):
        assert status_of(model, "rk4", forces, step) == status_of(slide(), "rk4", together, step)


def test_a_spring_of_a_joint_keeps_longer_steps_of_moreau_stable():
    assert stays(slide(stiffness=2e3), "moreau", [spring(5e3)], 0.2)


@pytest.mark.parametrize("method", VIBRATION)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_stiff_sample_ends_at_its_start_and_the_others_do_not_change(method, dtype):
    stiffness = np.array([[1.0, 10.0, 2.0], [1e8, 100.0, 1e9]])
    q = np.linspace(0.1, 0.2, 6, dtype=dtype).reshape(2, 3, 1)
    settings = {"duration": 0.2, "method": method, "step": 1e-2, "save_at": 5, "energy_error": True, "dense_output": 30}
    is_stiff = stiffness > 1e6
    soft = slide().simulate(q, forces=[spring(np.where(is_stiff, 1.0, stiffness))], **settings)
    with pytest.warns(rb.SimulationWarning, match=r"2 of 6: The step is too long.* Sample \(1, 0\) reached 0 s"):
        motion = slide().simulate(q, forces=[spring(stiffness)], **settings)
    assert motion.q.dtype == dtype
    np.testing.assert_array_equal(motion.status, np.where(is_stiff, TOO_STIFF, DONE))
    for name in ("q", "qd", "tau", "energy_error", "steps", "end_q", "end_time", "evaluations"):
        np.testing.assert_array_equal(getattr(motion, name)[~is_stiff], getattr(soft, name)[~is_stiff])
    assert np.isnan(motion.q[is_stiff][:, 1:]).all()
    np.testing.assert_array_equal(motion.q[is_stiff][:, 0], q[is_stiff])
    np.testing.assert_array_equal(motion.end_q[is_stiff], q[is_stiff])
    assert not motion.end_time[is_stiff].any()
    assert not motion.steps[is_stiff].any()


def test_a_motion_and_its_continuation_have_the_same_statuses():
    """A taut cable and a slack one: only the first is checked, because the check applies to the start of the motion."""
    model, q = slide(), np.array([[0.1], [-1e-3]])
    settings = {"method": "rk4", "step": 1e-2, "forces": [spring(1e6, tension_only=True)], "on_failure": "ignore"}
    motion = model.simulate(q, duration=0.1, **settings)
    assert motion.status.tolist() == [TOO_STIFF, DONE]
    longer = model.simulate(duration=0.1, continue_from=motion, on_failure="ignore")
    assert longer.status.tolist() == [TOO_STIFF, DONE]
    once = model.simulate(q, duration=0.2, **settings)
    np.testing.assert_array_equal(longer.end_q, once.end_q)


def test_all_samples_of_a_large_batch_are_checked(monkeypatch):
    """With parts of 3 samples, of a model and a force that differ between samples."""
    monkeypatch.setattr("rbchain.simulate.stiff_springs.NUMBERS_AT_ONCE", 3)
    rng = np.random.default_rng(1)
    mass, k = rng.uniform(0.1, 10.0, 20), 10 ** rng.uniform(0.0, 6.0, 20)
    model = slide().vary(mass=mass[:, None])
    motion = model.simulate(
        np.zeros((20, 1)), duration=0.02, method="rk4", step=1e-2, forces=[spring(k)], on_failure="ignore"
    )
    omega = 1e-2 * np.sqrt(k / mass)
    assert (abs(omega - np.sqrt(8.0)) > 0.01).all()
    np.testing.assert_array_equal(motion.status, np.where(omega > np.sqrt(8.0), TOO_STIFF, DONE))


UNSTABLE = {"forces": [spring(1e8)]}


@pytest.mark.parametrize(
    "arguments",
    [
        {"forces": [spring(1e8, tension_only=True)], "q0": [-0.1]},  # slack at the start
        {**UNSTABLE, "drives": [rb.PrescribedPosition("slide", 0.0)]},
        {**UNSTABLE, "method": "rk45", "step": None},
        {"forces": [spring(0.0)]},
        {"forces": [spring(1e4)], "method": "implicit", "drives": [rb.PID("slide", 0.0, kp=1e5, kd=1e4)]},
    ],
)
def test_forces_that_do_not_move_a_joint_and_adaptive_methods_are_no_false_alarms(arguments):
    settings = {"q0": [0.0], "method": "rk4", "step": 2.7e-2, **arguments}
    assert slide().simulate(duration=0.054, **settings).success


def test_compressed_springs_are_no_false_alarms():
    """A compressed spring turns a pendulum away: its stiffness is negative, and only positive ones limit steps."""
    pendulum = rb.Model.serial_chain(1, gravity=(0, 0, 0))
    pushed = rb.SpringDamper(None, "link1", point_a=(2, 0, 0), point_b=(1, 0, 0), stiffness=1e6, rest_length=1.5)
    assert pendulum.derivatives_between_bodies([0.0], [0.0], [pushed])[0] > 0.0
    assert pendulum.simulate([0.0], duration=0.02, method="rk4", step=1e-2, forces=[pushed]).success


def test_springs_of_joints_move_bodies_without_inertia_in_implicit_steps():
    """The inertia is h d + h^2 c: the limit is the one of `test_the_forces_of_joints_count_...` with m = 0."""
    c, d, h = 2e3, 30.0, 1e-2
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), passive=rb.PassiveForces(stiffness=c, damping=d))
    with pytest.warns(UserWarning, match="no mass"):
        model = builder.build()
    limit = c + 2.0 * d / h  # of k, from h^2 (k + c) + 2 h (d + h c) = 4 (h d + h^2 c)
    assert status_of(model, "implicit", [spring(0.99 * limit)], h) == DONE
    assert stays(model, "implicit", [spring(0.99 * limit)], h)
    assert status_of(model, "implicit", [spring(1.01 * limit)], h) == TOO_STIFF


def test_numbers_that_overflow_are_too_stiff():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1e-200))
    forces = [spring(np.array([0.0, 1e150, 1e-205]))]
    motion = builder.build().simulate(
        np.zeros((3, 1)), duration=0.1, method="rk4", step=1e-2, forces=forces, on_failure="ignore"
    )
    assert motion.status.tolist() == [DONE, TOO_STIFF, DONE]


def test_nothing_moves_in_an_empty_batch():
    motion = slide().simulate(np.zeros((0, 1)), duration=1.0, method="rk4", step=1.0, forces=[spring(1e8)])
    assert motion.q.shape[0] == 0


# --- steppers and studies ---------------------------------------------------------------------------------------------


def test_samples_of_a_stepper_end_at_the_start_of_their_episode():
    k = np.array([1.0, 1e8, 10.0])
    with pytest.warns(rb.SimulationWarning, match="1 of 3 samples failed. Sample 1 reached 0 s: The step is too long"):
        stepper = slide().stepper(np.full((3, 1), 0.1), step=1e-2, forces=[spring(k)])
    soft = slide().stepper(np.full((3, 1), 0.1), step=1e-2, forces=[spring(np.where(k < 1e6, k, 1.0))])
    for each in (stepper, soft):
        each.step(3)
    assert stepper.status.tolist() == [DONE, TOO_STIFF, DONE]
    assert stepper.t.tolist() == [soft.t[0], 0.0, soft.t[2]]
    np.testing.assert_array_equal(stepper.q[[0, 2]], soft.q[[0, 2]])
    assert stepper.q[1] == 0.1


def test_a_reset_checks_the_samples_that_start():
    """The mass of sample 1 is too small in its second episode only. Sample 0 moves on as if nothing were reset."""
    stepper = slide().stepper(np.full((2, 1), 0.1), step=1e-2, forces=[spring(10.0)])
    alone = slide().stepper([[0.1]], step=1e-2, forces=[spring(10.0)])
    stepper.step(2)
    saved = stepper.save()
    with pytest.warns(rb.SimulationWarning, match="1 of 2 samples failed. Sample 1 reached 0 s: The step is too long"):
        stepper.reset([1], mass=[1e-6])
    assert stepper.status.tolist() == [DONE, TOO_STIFF]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stepper.step(3)
        alone.step(5)
    assert stepper.q[0] == alone.q[0]
    stepper.restore(saved)
    assert stepper.status.tolist() == [DONE, DONE]
    stepper.reset([1], mass=[1.0])
    stepper.step()
    assert stepper.status.tolist() == [DONE, DONE]


def test_a_stepper_of_one_state_raises():
    with pytest.raises(rb.SimulationError, match="It reached 0 s: The step is too long"):
        slide().stepper([0.0], step=1e-2, forces=[spring(1e8)])


def test_a_study_counts_stiff_samples():
    values = 10 ** np.linspace(0.0, 7.0, 8)
    study = rb.Study(
        slide(),
        samples=8,
        simulate=rb.Simulation(0.1, method="rk4", step=1e-2),
        forces=[spring(1.0, name="cord")],
        vary={"cord.stiffness": rb.Uniform(1.0, 1e8)},
        measures=[rb.Measure("last", "position", joint="slide")],
    )
    with pytest.warns(rb.SimulationWarning, match="too long for springs"):
        results = study.evaluate(values[:, None])
    omega = 1e-2 * np.sqrt(values / MASS)
    np.testing.assert_array_equal(results.status, np.where(omega > np.sqrt(8.0), TOO_STIFF, DONE))
