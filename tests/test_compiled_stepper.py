"""Steps in compiled code have the bits of the steps of the same stepper in Python, and both continue each other."""

from contextlib import nullcontext

import numpy as np
import pytest

import rbchain as rb
from rbchain import compiled
from rbchain.errors import ArgumentError

from .closed_chains import closed_chain, closed_state
from .stepped import QD, STEP, Q, arm, controllers
from .test_inputs import actions
from .test_motions_in_pieces import contacts_of_tree, free_tree

plain = pytest.mark.plain_python
GAIN = -2.0
ARRAYS = ("q", "qd", "t", "tau", "status", "episodes")


@compiled.driver
def control(samples, calls, steps):
    """Set the last joint force from the state before each call."""
    last = samples.tau.shape[1] - 1
    for _ in range(calls):
        for s in range(samples.q.shape[0]):
            samples.tau[s, last] = GAIN * samples.qd[s, last]
        compiled.step(samples, steps)


def control_in_python(stepper, calls, steps):
    for _ in range(calls):
        stepper.tau[..., -1] = GAIN * stepper.qd[..., -1]
        stepper.step(steps)


def check_equal(one, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.save().memory, other.save().memory)
    np.testing.assert_array_equal(one.save().steps, other.save().steps)


def digital(method="rk4", **settings):
    """Samples with digital controllers, noise, delays and signals."""
    return arm().stepper(Q, QD, method=method, step=STEP, drives=controllers(), **settings)


def with_contacts():
    model, q, qd = free_tree()
    return model.stepper(q, qd, method="moreau", step=STEP, forces=contacts_of_tree())


def closed():
    chain = closed_chain("four-bar")
    q, qd, _ = closed_state(chain, batch=(2,))
    return chain.model.stepper(q, qd, method="implicit", step=STEP)


def in_float32():
    return rb.Model.serial_chain(2).stepper(np.float32(Q), np.float32(QD), step=STEP)


def alone():
    return arm(0).stepper(Q[0], QD[0], step=STEP)


@plain
@pytest.mark.parametrize("make", [digital, with_contacts, closed, in_float32, alone])
def test_the_steps_have_the_bits_of_steps_in_python(make):
    check_compiled_steps(make)


def check_compiled_steps(make):
    """Compare steps of two equal steppers."""
    found, expected = make(), make()
    samples = found.in_compiled_code()
    for steps in (2, 1):  # compiled code and Python continue each other
        control(samples, 2, steps)
        control_in_python(found, 1, steps)
        control_in_python(expected, 3, steps)
        check_equal(found, expected)
    assert (found.status == rb.Status.DONE).all()
    with pytest.raises(ArgumentError, match="count is not positive"):  # also from compiled code
        control(samples, 1, 0)


@compiled.driver
def advance(samples, calls, duration):
    for _ in range(calls):
        compiled.advance(samples, duration)


@plain
@pytest.mark.parametrize("drives", [(), controllers()])
def test_adaptive_steps_have_the_bits_of_steps_in_python(drives):
    """Without drives, samples at different times move together."""
    found, expected = (arm().stepper(Q, QD, method="rk45", drives=drives) for _ in range(2))
    for stepper in (found, expected):
        stepper.advance(1e-3)
        stepper.reset([1, 2], q=[0.1, 0.2])
    advance(found.in_compiled_code(), 2, 4e-3)
    for _ in range(2):
        expected.advance(4e-3)
    assert len(np.unique(found.t)) == 2
    check_equal(found, expected)


@plain
def test_inputs_act_and_fail_as_in_python():
    inputs = rb.Input("a", [0.4, 0.2, 0.1]), rb.Input("b")
    model = rb.Model.serial_chain(2)
    found, expected = (model.stepper(Q[:3], step=STEP, duration=1.0, **actions(*inputs)) for _ in range(2))
    samples = found.in_compiled_code()
    for values in ([0.3, 0.2, -0.5], [0.1, np.nan, 0.2], [np.inf, 0.3, 0.7]):
        samples.inputs[:, [*found.inputs].index("b")] = values
        compiled.step(samples, 2)
        expected.inputs["b"] = values
        with pytest.warns(rb.SimulationWarning) if not np.isfinite(values).all() else nullcontext():
            expected.step(2)
        check_equal(found, expected)
    assert found.status.tolist() == [rb.Status.NOT_FINITE, rb.Status.NOT_FINITE, rb.Status.DONE]


@plain
@pytest.mark.parametrize("wrong", [np.nan, 1e200])
@np.errstate(all="ignore")
def test_a_sample_that_fails_keeps_its_state_and_the_others_continue(wrong):
    found, expected = (arm().stepper(Q, QD, step=STEP, on_failure="ignore") for _ in range(2))
    samples = found.in_compiled_code()
    compiled.step(samples, 2)
    samples.tau[1, 0] = wrong
    compiled.step(samples, 3)
    found.step()
    compiled.step(samples, 1)
    expected.step(2)
    expected.tau[1, 0] = wrong
    for count in (3, 1, 1):
        expected.step(count)
    check_equal(found, expected)
    assert found.status[1] != rb.Status.DONE
    assert np.isfinite(found.q).all()


@plain
def test_an_event_ends_a_sample_at_its_time():
    event = rb.Event("link1", value=0.25, stop=True)
    found, expected = (arm().stepper(Q, QD, method="rk45", events=[event]) for _ in range(2))
    advance(found.in_compiled_code(), 2, 0.05)
    expected.advance(0.05)
    expected.advance(0.05)
    check_equal(found, expected)
    assert (found.status == rb.Status.STOPPED).any()
    assert len(np.unique(found.t)) > 1


@plain
def test_restored_samples_move_again_with_the_same_bits():
    """They are restored before a reset, after which their noise differs."""
    found = digital()
    samples = found.in_compiled_code()
    control(samples, 1, 3)
    snapshot = compiled.snapshot_of(samples)
    control(samples, 2, 2)
    compiled.save(samples, snapshot)
    control(samples, 2, 3)
    end = found.save()
    compiled.reset(samples, 2)
    control(samples, 2, 3)
    assert found.t[2] < found.t[1]
    assert found.episodes.tolist() == [0, 0, 1, 0]
    for move in (control, control_in_python):
        compiled.restore(samples, snapshot)
        move(samples if move is control else found, 2, 3)
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(found, name), getattr(end, name), err_msg=name)


@plain
def test_a_reset_starts_the_episode_that_python_starts():
    """Its noise is the noise of the next episode. The state may be changed before the first step."""
    found, expected = digital(), digital()
    samples = found.in_compiled_code()
    control(samples, 2, 2)
    for _ in range(2):
        compiled.reset(samples, 1)
    compiled.reset(samples, 3)
    samples.q[3], samples.qd[3] = (0.2, 0.3), 0.1
    control(samples, 2, 3)
    control_in_python(expected, 2, 2)
    expected.reset([1])
    expected.reset([1])
    expected.reset([3], q=[0.2, 0.3], qd=[0.1, 0.1])
    control_in_python(expected, 2, 3)
    check_equal(found, expected)
    found.reset([0])  # the stepper continues with the episodes that compiled code has started
    expected.reset([0])
    found.step(3)
    expected.step(3)
    check_equal(found, expected)


@plain
def test_a_copied_sample_moves_as_the_original():
    """A sample of one stepper becomes all samples of another one."""
    plant, plan = arm(slice(0, 1)).stepper(Q[:1], QD[:1], step=STEP), arm([0, 0, 0]).stepper(Q[:3], step=STEP)
    source, samples = plant.in_compiled_code(), plan.in_compiled_code()
    control(source, 3, 2)
    for s in range(3):
        compiled.copy_sample(source, 0, samples, s)
    control(samples, 2, 2)
    control(source, 2, 2)
    for s in range(3):
        np.testing.assert_array_equal(plan.q[s], plant.q[0])
        assert plan.t[s] == plant.t[0]


@plain
def test_an_empty_batch_does_not_move():
    stepper = rb.Model.serial_chain(2).stepper(np.zeros((0, 2)), step=STEP)
    samples = stepper.in_compiled_code()
    control(samples, 2, 2)
    compiled.restore(samples, compiled.snapshot_of(samples))
    assert stepper.q.shape == (0, 2)


def in_python(t, q, qd, parameters):
    return 0.0 * q


def outdated():
    stepper = arm().stepper(Q, step=STEP)
    samples = stepper.in_compiled_code()
    stepper.reset([1], mass=[2.0, 1.0])
    compiled.step(samples, 1)


def moves_a_prescribed_joint():
    stepper = arm().stepper(Q, step=STEP, drives=[rb.PrescribedPosition("link1", 0.2)])
    samples = stepper.in_compiled_code()
    samples.tau[2, 0] = 1.0
    compiled.step(samples, 1)


def arrays(drives=(), **settings):
    return arm().stepper(Q, drives=drives, **settings).in_compiled_code()


RANDOM = rb.PrescribedForce("link1", rb.Signal.noise(0.5, frequencies=(0.0, 10.0)))
OWN_NUMBERS = controllers(ids=[3, 4, 5, 6])
SAMPLED_IN_PYTHON = rb.Sampled(rb.UserForces(in_python), period=STEP)
REFUSED = {
    "is a function in plain Python": lambda: arrays([SAMPLED_IN_PYTHON], step=STEP),
    "so they cannot be counted": lambda: compiled.step(arrays(method="rk45"), 1),
    "the steps of the method have a fixed length": lambda: compiled.advance(arrays(step=STEP), 0.1),
    "duration is not a positive number": lambda: compiled.advance(arrays(method="rk45"), 0.0),
    "count is not positive": lambda: compiled.step(arrays(step=STEP), 0),
    "after the duration of the stepper": lambda: compiled.step(arrays(step=STEP, duration=5e-3), 6),
    "parameters or the random numbers of the stepper have changed": outdated,
    "tau is other than zero": moves_a_prescribed_joint,
    "random signals": lambda: compiled.reset(arrays([RANDOM], step=STEP, duration=1.0), 0),
    "sensors with sample_ids": lambda: compiled.reset(arrays(OWN_NUMBERS, step=STEP), 0),
}


@plain
@pytest.mark.parametrize("words", REFUSED)
def test_what_compiled_code_cannot_do_is_refused(words):
    with pytest.raises(ArgumentError, match=words):
        REFUSED[words]()
