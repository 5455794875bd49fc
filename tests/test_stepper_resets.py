"""A sample that is reset moves as a fresh one, and a motion that is restored has the same bits."""

import copy
import dataclasses

import numpy as np
import pytest

import rbchain as rb
from rbchain.errors import ArgumentError

from .closed_chains import closed_chain, closed_state
from .stepped import EPISODE, MASSES, QD, SAMPLES, STEP, Q, arm, check_end, controllers, fresh

pytestmark = pytest.mark.plain_python


@pytest.mark.parametrize("method", ["rk4", "implicit", "moreau"])
def test_samples_that_are_reset_at_different_times_move_as_fresh_ones(method):
    stepper = arm().stepper(Q, QD, method=method, step=STEP, drives=controllers())
    stepper.step(3)
    stepper.reset([1])
    stepper.step(4)
    stepper.reset([2, 0], q=Q[[0, 1]], qd=0.1)
    stepper.step(5)
    stepper.reset([1])
    stepper.step(2)
    np.testing.assert_allclose(stepper.t, STEP * np.array([7, 2, 7, 14]), rtol=1e-14)
    assert stepper.episodes.tolist() == [1, 2, 1, 0]
    settings = {"method": method}
    check_end(stepper, 0, fresh(0, 7, [EPISODE], q=Q[1], qd=[0.1, 0.1], **settings))
    check_end(stepper, 1, fresh(1, 2, [1 + 2 * EPISODE], **settings))
    check_end(stepper, 2, fresh(2, 7, [2 + EPISODE], q=Q[0], qd=[0.1, 0.1], **settings))
    check_end(stepper, 3, fresh(3, 14, [3], **settings))


@pytest.mark.parametrize("method", ["rk4", "implicit", "moreau"])
def test_without_time_all_samples_move_in_one_call_as_fresh_ones(method):
    """Springs, gains and integrals depend on the state only."""
    drives = [rb.PID("link1", 0.2, kp=5.0, kd=0.4, ki=30.0)]
    stepper = arm().stepper(Q, QD, method=method, step=STEP, drives=drives)
    for steps, reset in ((3, [1]), (4, [0, 2]), (5, [1]), (2, [])):
        stepper.step(steps)
        stepper.reset(reset)
    for k, steps in enumerate((7, 2, 7, 14)):
        check_end(stepper, k, fresh(k, steps, drives=drives, method=method))


def test_samples_are_chosen_as_in_numpy():
    for index, rows in (
        (..., range(4)),
        (slice(1, 3), [1, 2]),
        ([True, False, False, True], [0, 3]),
        (-1, [3]),
        ([], []),
    ):
        stepper = arm().stepper(Q, QD, step=STEP)
        stepper.step(2)
        stepper.reset(np.array(index, bool) if isinstance(index, list) and True in index else index)
        assert np.flatnonzero(stepper.episodes).tolist() == list(rows)
        assert np.flatnonzero(stepper.t == 0.0).tolist() == list(rows)


def test_new_parameters_act_until_they_are_changed_again():
    stepper = arm().stepper(Q, QD, step=STEP, drives=controllers())
    stepper.step(2)
    stepper.reset([1, 3], {"link2.mass": [2.5, 3.5]})
    stepper.step(3)
    stepper.reset([3])
    stepper.reset([0], mass=[0.6, 0.8], damping=[0.1, 0.2])
    stepper.step(4)
    masses = MASSES.copy()
    masses[[1, 3], 1], masses[0] = [2.5, 3.5], [0.6, 0.8]
    np.testing.assert_array_equal(stepper.model.mass, masses)
    expected = [(1, 7, 1 + EPISODE), (3, 4, 3 + 2 * EPISODE), (2, 9, 2), (0, 4, EPISODE)]
    for k, steps, number in expected:
        # the inertia and the center of mass of serial_chain do not change with the mass
        model = arm(slice(k, k + 1)).vary(mass=masses[[k]], damping=[[0.1, 0.2]] if k == 0 else [[0.0, 0.0]])
        check_end(stepper, k, fresh(k, steps, [number], model=model))


def test_parameters_of_a_single_sample_change():
    model = rb.Model.serial_chain(2)
    stepper = model.stepper([0.3, -0.2], step=STEP)
    stepper.step(3)
    stepper.reset(mass=[2.0, 3.0], q=[0.1, 0.2])
    stepper.step(4)
    motion = model.vary(mass=[[2.0, 3.0]]).simulate([[0.1, 0.2]], 0.0, 4 * STEP, method="rk4", step=STEP)
    np.testing.assert_array_equal(stepper.q, motion.end_q[0])
    np.testing.assert_array_equal(stepper.model.mass, [2.0, 3.0])


def test_noise_differs_between_episodes_and_does_not_depend_on_the_resets_of_others():
    """Random signals and sensors have the numbers sample + 2**26 * episode."""
    gust = rb.Signal.random_walk(0.5, 2e-3)

    def drives(signal, ids=None):
        sensor = rb.Encoder("link1", noise=1e-3, sample_ids=ids)
        pid = rb.Sampled(rb.PID("link1", 0.2, kp=0.4), period=2e-3, sensors=[sensor])
        return [pid, rb.PrescribedForce("link2", signal)]

    stepper = arm().stepper(Q, QD, step=STEP, drives=drives(gust), duration=0.02)
    ends = []
    for _ in range(3):
        stepper.step(6)
        ends.append(stepper.q.copy())
        stepper.reset()
    q, qd = (np.tile(x, (3, 1)) for x in (Q, QD))
    ids = (np.arange(SAMPLES) + EPISODE * np.arange(3)[:, None]).reshape(-1)
    settings = {"drives": drives(gust.signal(0.02, ids), ids), "method": "rk4", "step": STEP}
    model = rb.Model.serial_chain(2).vary(mass=np.tile(MASSES, (3, 1)))
    motion = model.simulate(q, qd, 0.02, save_at=[6 * STEP], **settings)
    np.testing.assert_array_equal(np.concatenate(ends), motion.q[:, 0])
    assert np.unique(motion.q[:, 0, 0]).size == 3 * SAMPLES


def test_the_seed_changes_the_noise():
    drives, ends = controllers(), []
    for seed in (0, 1, 1):
        stepper = arm().stepper(Q, QD, step=STEP, drives=drives, seed=seed)
        stepper.step(6)
        ends.append(stepper.q.copy())
    assert (ends[0][:, 0] != ends[1][:, 0]).all()
    np.testing.assert_array_equal(ends[1], ends[2])
    check_end(
        stepper,
        0,
        fresh(
            0,
            6,
            drives=[
                dataclasses.replace(
                    controllers([0])[0], sensors=[dataclasses.replace(controllers([0])[0].sensors[0], seed=1)]
                ),
                *controllers()[1:],
            ],
        ),
    )


def test_a_closed_chain_is_reset_to_a_closed_state():
    chain = closed_chain("turned four-bar")
    (q, qd, _), (new_q, new_qd, _) = closed_state(chain, 0, (2,)), closed_state(chain, 1, (2,))
    stepper = chain.model.stepper(q, qd, step=STEP)
    stepper.step(2)
    stepper.reset([1], q=new_q[0], qd=new_qd[0])
    stepper.step(3)
    for k, steps, at in ((0, 5, (q[0], qd[0])), (1, 3, (new_q[0], new_qd[0]))):
        other = chain.model.stepper(*(x[None] for x in at), step=STEP)
        other.step(steps)
        np.testing.assert_array_equal(stepper.q[k], other.q[0])
        np.testing.assert_array_equal(stepper.qd[k], other.qd[0])
    kept = stepper.q.copy()
    with pytest.raises(ArgumentError, match="the new state of sample 1 does not satisfy the constraints"):
        stepper.reset([1], q=new_q[0] + 0.1)
    np.testing.assert_array_equal(stepper.q, kept)
    assert stepper.episodes.tolist() == [0, 1]


@pytest.mark.parametrize("method", ["rk4", "implicit", "moreau", "rk45"])
def test_a_restored_motion_has_the_same_bits(method):
    settings = {"method": method} | ({"rtol": 1e-5} if method == "rk45" else {"step": STEP})
    stepper = arm().stepper(Q, QD, drives=controllers(), **settings)
    stepper.advance(3e-3)
    stepper.reset([1], {"link2.mass": 2.0}, q=[0.2, 0.1])
    stepper.advance(2e-3)
    stepper.tau[0] = 0.2
    stepper.advance(2e-3)
    snapshot, ends = stepper.save(), []

    def moves_on():
        stepper.advance(3e-3)
        stepper.tau[2] = 0.3
        stepper.reset([0, 3], mass=[0.5, 0.6])
        stepper.advance(4e-3)
        return [x.copy() for x in (stepper.q, stepper.qd, stepper.t, stepper.tau, stepper.episodes, stepper.model.mass)]

    ends = [moves_on()]
    for _ in range(2):
        stepper.restore(snapshot)
        ends.append(moves_on())
    for again in ends[1:]:
        for found, expected in zip(again, ends[0], strict=True):
            np.testing.assert_array_equal(found, expected)


def test_a_failed_sample_is_restored():
    stepper = arm().stepper(Q, QD, step=STEP, on_failure="ignore")
    stepper.step(2)
    snapshot = stepper.save()
    stepper.tau[1] = 1e200
    stepper.step(2)
    failed = stepper.save()
    stepper.restore(snapshot)
    assert (stepper.status == rb.Status.DONE).all()
    stepper.step(3)
    for k in range(SAMPLES):
        check_end(stepper, k, fresh(k, 5, drives=()))
    stepper.restore(failed)
    stepper.step(1)
    assert stepper.status[1] == rb.Status.NOT_FINITE


def test_a_reset_may_change_which_forces_act():
    """Joint springs need memory that the steps before did not."""
    model = rb.Model.serial_chain(2)
    stepper = model.stepper(np.zeros((3, 2)), step=1e-3)
    stepper.step(3)
    stepper.reset([1], stiffness=[5.0, 5.0], q=[0.3, 0.1])
    stepper.step(5)
    alone = model.vary(stiffness=[5.0, 5.0]).stepper([[0.3, 0.1]], step=1e-3)
    alone.step(5)
    np.testing.assert_array_equal(stepper.q[1], alone.q[0])


def test_a_reset_that_is_refused_changes_nothing():
    stepper = rb.Model.serial_chain(2).stepper([[0.1, 0.2], [0.3, 0.4]], step=1e-3)
    stepper.step(2)
    before = stepper.save()
    with pytest.raises(rb.RbchainError):
        stepper.reset(..., {"link2.mass": 0.0, "link2.inertia": np.zeros((3, 3))}, q=[1.0, 1.0])
    after = stepper.save()
    assert after.model is before.model
    for name in ("episodes", "steps", "t", "q", "qd", "tau", "memory", "status"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))


def test_a_copy_of_a_stepper_moves_alone():
    stepper = rb.Model.serial_chain(2).stepper([[0.1, 0.2]], step=1e-3)
    other = copy.copy(stepper)
    other.step(3)
    assert stepper.t[0] == 0.0
    assert other.t[0] > 0.0
