"""Episodes of a stepper that a study draws: they depend on (seed, sample, episode) only, and can be repeated alone."""

import functools
import math

import numpy as np
import pytest
from scipy import stats

import rbchain as rb
from rbchain.errors import ArgumentError, StudyError

from .closed_chains import closed_chain, closed_state
from .stepped import STEP

pytestmark = pytest.mark.plain_python

SEED = 5
MODEL = rb.Model.serial_chain(2)
VARY = {
    "*.q": rb.Uniform(-0.5, 0.5),
    "link1.qd": rb.Normal(0.3, 0.2),
    "*.mass_and_inertia": rb.Dispersion(rb.Normal(1.0, 0.1), how="multiply"),
    "link1.payload": rb.Dispersion(rb.Uniform(0.0, 0.3), point=(0.1, 0.0, 0.0)),
    "link2.tau": rb.Normal(0.0, 0.1),
    "link1.kp": rb.Uniform(0.2, 0.6),
    "link1.noise": rb.Uniform(1e-3, 2e-3),
    "push.force": rb.Dispersion(rb.MultivariateNormal([1.0, 1.0, 1.0], 0.1 * np.eye(3)), how="multiply"),
}


def actions(**more):
    sensor = rb.Encoder("link1", resolution=1e-5, noise=1e-3, measures_velocity=True)
    pid = rb.PID("link1", 0.2, kp=0.4, kd=0.04, ki=3.0)
    drives = [rb.Sampled(pid, period=3e-3, delay=2e-3, sensors=[sensor]), rb.PrescribedForce("link2", rb.Input("push"))]
    forces = [
        rb.Wrench("link2", force=[rb.Signal.random_walk(0.5, 2e-3), 0.1, 0.0], name="push"),
        *more.get("forces", []),
    ]
    return {"drives": drives, "forces": forces}


ACTIONS = actions()


def study(model=MODEL, vary=VARY, acting=ACTIONS, **settings):
    simulate = settings.pop("simulate", rb.Simulation(1.0))
    return rb.Study(model, **{"samples": 1, "seed": SEED, "simulate": simulate, "vary": vary} | acting | settings)


@functools.cache
def study_of_all():
    return study()


def stepper_of(batch, acting=ACTIONS, method="rk4", **settings):
    settings = {"step": STEP, "duration": 0.1, "seed": SEED, "method": method} | acting | settings
    return MODEL.stepper(np.zeros((*batch, 2)), **settings)


def check_same(found, expected):
    """Compare states, bit for bit."""
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def states_during(size, drawn, sequence):
    """The states of samples, by their number, episode and steps, while some are reset between steps."""
    stepper, found = stepper_of((size,)), {}
    for samples, steps in sequence:
        stepper.reset(samples, study=drawn)
        stepper.step(steps)
        for k in range(size):
            key = k, int(stepper.episodes[k]), round(stepper.t[k] / STEP)
            found[key] = [x[k].copy() for x in (stepper.q, stepper.qd, stepper.tau, stepper.model.mass)]
    return found


@pytest.mark.slow
def test_an_episode_depends_neither_on_the_batch_nor_on_the_order_of_resets():
    """The samples of the studies and their designs differ, too."""
    one = states_during(4, study_of_all(), [(..., 5), ([2, 0], 3), ([2], 2), ([], 3)])
    two = states_during(7, study(samples=64, design="sobol"), [(..., 2), ([2, 5], 5), ([0, 2], 3), ([], 2)])
    common = one.keys() & two.keys()
    assert common >= {(1, 1, 10), (3, 1, 10), (0, 2, 3), (0, 2, 5), (2, 3, 5)}
    for key in common:
        check_same(one[key], two[key])
    starts = {key[:2]: found[3][0] for key, found in one.items()}
    assert len({*starts.values()}) == len(starts)  # each episode has a mass of its own


@pytest.mark.slow
def test_the_draws_have_the_distributions_of_the_study():
    """The distance of Kolmogorov and Smirnov is above sqrt(log(2 / p) / 2 n) with a probability below p."""
    samples, p = 2000, 1e-6
    covariance = np.array([[0.04, 0.012], [0.012, 0.01]])
    vary = {
        "link1.q": rb.Uniform(-0.5, 0.5),
        "link1.qd": rb.Normal(0.3, 0.2),
        "link1.mass": rb.LogNormal(1.0, 0.3),
        "link2.cg.{x,y}": rb.MultivariateNormal([0.5, 0.1], covariance),
        "link1.damping": rb.Normal(0.1, 0.01),
    }
    correlate = [rb.study.Correlation(["link1.qd", "link1.damping"], [[1.0, 0.6], [0.6, 1.0]])]
    drawn = study(vary=vary, correlate=correlate)
    stepper = MODEL.stepper(np.zeros((samples, 2)), step=STEP, seed=SEED)
    of_episodes = []
    for _ in range(2):
        stepper.reset(study=drawn)
        model = stepper.model
        numbers = [stepper.q[:, 0], stepper.qd[:, 0], model.mass[:, 0], *model.cg[:, 1, :2].T, model.damping[:, 0]]
        of_episodes.append(np.array(numbers))
    bound = math.sqrt(math.log(2 / p) / 2 / samples)
    references = [
        stats.uniform(-0.5, 1.0),
        stats.norm(0.3, 0.2),
        None,
        stats.norm(0.5, 0.2),
        stats.norm(0.1, 0.1),
        stats.norm(0.1, 0.01),
    ]
    of_study = drawn.inputs.sample(samples).T
    for draws in of_episodes:
        for x, reference, own in zip(draws, references, of_study, strict=True):
            if reference is not None:
                assert stats.kstest(x, reference.cdf).statistic < bound
            assert stats.ks_2samp(x, own).statistic < math.sqrt(2.0) * bound
    scores = np.array([stats.norm.ppf((stats.rankdata(x) - 0.5) / samples) for x in np.concatenate(of_episodes)])
    expected = np.eye(12)
    for first in (0, 6):
        for i, j, value in ((1, 5, 0.6), (3, 4, 0.6)):
            expected[first + i, first + j] = expected[first + j, first + i] = value
    assert abs(np.corrcoef(scores) - expected).max() < 5.0 / math.sqrt(samples)


@pytest.mark.fast_cases("implicit")
@pytest.mark.parametrize("method", ["rk4", "implicit", "moreau", "moreau with contacts", "rk45"])
def test_a_replay_has_the_bits_of_the_episode(method):
    method, *contacts = method.split(" with ")
    is_adaptive = method == "rk45"
    plane = {"plane_point": (0, -0.101, 0), "plane_normal": (0, 1, 0)}
    floor = rb.SphereContact("link2", point=(0.5, 0, 0), radius=0.1, **plane, friction=0.3, name="floor")
    acting = actions(forces=[floor, rb.DryFriction("link1", 0.05)] if contacts else [])
    falls = {"*.q": rb.Uniform(0.0, 1e-3), "link1.qd": rb.Uniform(-0.5, -0.3), "floor.friction": rb.Uniform(0.1, 0.5)}
    vary = VARY | (falls if contacts else {})
    of_steps = {"rtol": 1e-5} if is_adaptive else {"step": STEP}
    settings = {"method": method, "duration": 0.1, "seed": SEED} | of_steps | acting
    drawn = study(vary=vary, acting=acting, simulate=rb.Simulation(1.0, method=method, **of_steps))
    stepper, hold = MODEL.stepper(np.zeros((4, 2)), **settings), 2e-3 if is_adaptive else 2
    stepper.reset(study=drawn)
    stepper.advance(3e-3)
    stepper.reset([1, 3], study=drawn)
    recorded = []
    for i in range(6):
        stepper.tau[:] = -0.1 * stepper.qd + 0.01 * i
        stepper.inputs["push"][:] = 0.01 * stepper.q[:, 0]
        recorded.append([x[3].copy() for x in (stepper.tau, stepper.inputs["push"], stepper.q, stepper.qd)])
        stepper.advance(2e-3)
    tau, push, q, qd = (np.array(x) for x in zip(*recorded, strict=True))
    before = stepper.save()
    motions = [stepper.replay(3, 2, {"tau": tau, "push": push}, hold=hold)]
    for start in (np.zeros(2), np.zeros((1, 2))):
        one = MODEL.stepper(start, **settings)
        motions.append(one.replay(3, 2, {"tau": tau, "push": push}, hold=hold, study=drawn))
    for motion in motions:
        check_same((motion.q[:-1], motion.qd[:-1], motion.q[-1], motion.end_qd), (q, qd, stepper.q[3], stepper.qd[3]))
        np.testing.assert_array_equal(motion.model.mass, stepper.model.mass[3])
        np.testing.assert_allclose(motion.t, 2e-3 * np.arange(7), rtol=1e-14)
        assert is_adaptive or motion.steps == 12
    for name in ("q", "t", "episodes", "memory"):
        np.testing.assert_array_equal(getattr(stepper.save(), name), getattr(before, name))


def test_the_episode_before_the_first_reset_is_replayed():
    stepper = stepper_of((3,))
    stepper.tau[:] = 0.1
    stepper.step(7)
    motion = stepper.replay(2, 0, {"tau": np.full((1, 2), 0.1)}, hold=7)
    check_same((motion.end_q, motion.end_qd), (stepper.q[2], stepper.qd[2]))
    check_same((stepper.replay(2, 0, count=3).t,), (np.array([0.0, STEP, 2 * STEP, 3 * STEP]),))


def test_a_restored_stepper_draws_the_same_episodes():
    drawn, stepper = study_of_all(), stepper_of((3,))
    stepper.reset(study=drawn)
    stepper.step(2)
    stepper.reset([1], study=drawn)
    stepper.step(1)
    snapshot, ends = stepper.save(), []
    for _ in range(2):
        stepper.step(3)
        stepper.reset([0, 1], study=drawn)
        stepper.step(4)
        ends.append([x.copy() for x in (stepper.q, stepper.qd, stepper.episodes, stepper.model.mass, stepper.tau)])
        stepper.restore(snapshot)
        assert stepper.episodes.tolist() == [1, 2, 1]
    check_same(*ends)
    assert ends[0][2].tolist() == [2, 3, 1]


def test_samples_with_invalid_draws_do_not_move_until_they_are_reset():
    drawn = study(vary={"link1.mass": rb.Uniform(-1.0, 1.0), "*.q": rb.Uniform(0.1, 0.5)})
    stepper = stepper_of((20,))
    stepper.reset(study=drawn)
    is_valid = stepper.status == rb.Status.DONE
    assert 0 < is_valid.sum() < 20
    assert set(stepper.status.tolist()) == {rb.Status.DONE, rb.Status.INVALID_PARAMETERS}
    assert ((stepper.q[:, 0] >= 0.1) == is_valid).all()
    assert (stepper.model.mass > 0.0).all()
    stepper.step(3)
    np.testing.assert_allclose(stepper.t, np.where(is_valid, 3 * STEP, 0.0), rtol=1e-14)
    invalid = int(np.argmin(is_valid))
    with pytest.raises(ArgumentError, match=f"episode 1 of sample {invalid} has the status INVALID_PARAMETERS"):
        stepper.replay(invalid, 1, count=2)
    while (stepper.status != rb.Status.DONE).any():
        stepper.reset(stepper.status != rb.Status.DONE, study=drawn)
    stepper.step(1)
    assert (stepper.t > 0.0).all()


def test_closed_chains_are_assembled():
    chain = closed_chain("four-bar")
    q, qd, _ = closed_state(chain, 0, (3,))
    name = chain.model.joint_names[0]
    vary = {f"{name}.q": rb.Dispersion(rb.Uniform(-0.1, 0.1), how="add")}
    drawn = study(chain.model, vary, {}, simulate=rb.Simulation(1.0, q=q[0], assemble=True))
    stepper = chain.model.stepper(q, qd, step=STEP, seed=SEED)
    stepper.reset([0, 2], study=drawn)
    np.testing.assert_allclose(chain.model.constraint_residual(stepper.q), 0.0, atol=1e-10)
    stepper.step(3)
    motion = stepper.replay(2, 1, count=1, hold=3)
    check_same((motion.end_q, motion.end_qd), (stepper.q[2], stepper.qd[2]))


def test_studies_and_episodes_that_do_not_fit_are_refused():
    stepper, plain = stepper_of((3,)), MODEL.stepper(np.zeros((3, 2)), step=STEP, seed=SEED)
    states = {"*.q": rb.Uniform(0.1, 0.5)}
    for match, error, given in (
        ("study is 3; expected a Study", ArgumentError, 3),
        ("other model than|another model", ArgumentError, study(rb.Model.serial_chain(3), states, {})),
        ("nominal mass differs", ArgumentError, study(MODEL.replace(mass=2.0), states, {})),
        ("the seed 6, but the stepper has the seed 5", ArgumentError, study(vary=states, seed=6)),
        (
            "other drives than the stepper",
            ArgumentError,
            study(
                acting=actions() | {"drives": [rb.PID("link1", 0.1, kp=1.0)]}, vary={"link1.kp": rb.Uniform(1.0, 2.0)}
            ),
        ),
        ("design is 'factorial'", StudyError, study(vary=states, samples=9, design="factorial")),
        ("design is 'array'", StudyError, study(vary=states, design=[[0.1, 0.2]])),
    ):
        with pytest.raises(error, match=match):
            stepper.reset(study=given)
    with pytest.raises(ArgumentError, match="has not drawn sample 0 yet"):
        stepper.reset([1], study=study_of_all())
    with pytest.raises(ArgumentError, match="the batch of the stepper has the shape"):
        stepper_of((1, 3)).reset(study=study_of_all())
    of_states = study(vary=states, acting={})
    with pytest.raises(ArgumentError, match="the study draws everything"):
        plain.reset(study=of_states, q=[0.0, 0.0])
    with pytest.raises(ArgumentError, match="episode is 1, but sample 0 is in episode 0"):
        plain.replay(0, 1, count=2)
    plain.reset([1], study=of_states)
    plain.reset([2])
    for match, call in (
        ("episode 1 of sample 2 was not drawn", (2, 1)),
        ("sample is 3, but the stepper has 3 samples", (3, 1)),
        ("episode is -1", (0, -1)),
        (r"tau'\] has shape \(2,\); expected \(count, 2\)", (1, 1, {"tau": [0.0, 0.0]})),
        ("contains 'gust'", (1, 1, {"gust": [0.0]})),
        ("found {'tau': 1, 'count': 2}", (1, 1, {"tau": [[0.0, 0.0]]})),
        ("inputs is 3", (1, 1, 3)),
    ):
        with pytest.raises(ArgumentError, match=match):
            plain.replay(*call, count=2)
    with pytest.raises(ArgumentError, match="found neither"):
        plain.replay(1, 1)
    assert stepper.episodes.tolist() == [0, 0, 0]
