"""Joint forces of a stepper act from the next step on, and wrong calls are refused."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.errors import ArgumentError, ModelError, UnknownNameError

from .closed_chains import closed_chain, closed_state
from .mechanisms import slide
from .stepped import QD, SAMPLES, STEP, Q, arm, check_end, fresh

pytestmark = pytest.mark.plain_python


@pytest.mark.parametrize("method", ["rk4", "implicit", "moreau"])
def test_joint_forces_act_from_the_next_step_on(method):
    """The reference is a motion whose pieces have constant joint forces."""
    forces = np.random.default_rng(2).normal(size=(5, SAMPLES, 2))
    stepper, q, qd = arm().stepper(Q, QD, method=method, step=STEP), Q, QD
    for tau in forces:
        stepper.tau[:] = tau
        stepper.step(2)
        motion = arm().simulate(q, qd, 2 * STEP, method=method, step=STEP, tau=tau, save_at=2)
        q, qd = motion.end_q, motion.end_qd
    np.testing.assert_allclose(stepper.q, q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(stepper.qd, qd, rtol=0, atol=1e-13)


def test_joint_forces_pass_through_the_lag_of_an_actuator():
    """A mass of 2 kg at rest: u jumps to 1 N at 7 ms, between two instants of the controller, which computes zero."""
    T = 0.02
    drives = [rb.Sampled(rb.PID("slide", 0.0, kp=0.0), period=5e-3), rb.Actuator("slide", time_constant=T)]
    stepper = slide().stepper([[0.0]], step=STEP, drives=drives)
    stepper.step(7)
    stepper.tau[:] = 1.0
    stepper.step(11)
    stepper.tau = 0.0
    stepper.step(3)
    t, rest = 0.011, 0.003
    force = 1.0 - np.exp(-t / T)
    expected = (t - T * force + force * T * (1.0 - np.exp(-rest / T))) / 2.0
    np.testing.assert_allclose(stepper.qd[0, 0], expected, rtol=1e-7)  # rk4: (h / T)^4 / 120


def test_joint_forces_act_until_they_are_changed_or_reset():
    stepper = slide().stepper([[0.0], [0.0]], step=STEP, tau=[[1.0], [2.0]])
    stepper.tau = [3.0]
    np.testing.assert_array_equal(stepper.tau, [[3.0], [3.0]])
    stepper.step(2)
    np.testing.assert_allclose(stepper.qd, 0.003, rtol=1e-12)
    stepper.reset([1])
    stepper.reset([0], tau=[5.0])
    np.testing.assert_array_equal(stepper.tau, [[5.0], [2.0]])
    stepper.step(2)
    np.testing.assert_allclose(stepper.qd, [[0.005], [0.002]], rtol=1e-12)


def test_the_state_is_read_only():
    stepper = arm().stepper(Q, QD, step=STEP)
    for name in ("q", "qd", "t", "status", "episodes"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(stepper, name)[0] = 1
        with pytest.raises(AttributeError):
            setattr(stepper, name, 1)


def test_arrays_show_the_current_state():
    stepper = arm().stepper(Q, QD, step=STEP)
    q, tau = stepper.q, stepper.tau
    stepper.step(3)
    np.testing.assert_array_equal(q, stepper.q)
    tau[1] = 2.0
    np.testing.assert_array_equal(stepper.tau[1], 2.0)


def stepper_of(**settings):
    return arm().stepper(Q, QD, **({"step": STEP} | settings))


WRONG_CALLS = {
    "samples is 7, which is not an index": lambda: stepper_of().reset(7),
    "samples is .*, which is not an index": lambda: stepper_of().reset("elbow"),
    "samples is .1, 1., which contains a sample twice": lambda: stepper_of().reset([1, 1]),
    "samples is .-1, 3., which contains a sample twice": lambda: stepper_of().reset([-1, 3]),
    r"q has shape \(3,\); expected \(2,\)": lambda: stepper_of().reset([1], q=[0.0, 0.0, 0.0]),
    r"qd has shape \(3, 2\)": lambda: stepper_of().reset([1, 2], qd=np.zeros((3, 2))),
    "new parameters have the batch shape": lambda: stepper_of().reset([1], mass=np.ones((3, 2))),
    "expected a multiple of step": lambda: stepper_of().advance(1.5e-3),
    "duration is 0.0": lambda: stepper_of().advance(0.0),
    "duration is -1": lambda: stepper_of().advance(-1),
    "count is 0": lambda: stepper_of().step(0),
    "count is 1.5": lambda: stepper_of().step(1.5),
    "count is 0.02.*use stepper.advance": lambda: stepper_of().step(0.02),
    "Write joint forces to stepper.tau": lambda: stepper_of().step(np.zeros((4, 2))),
    "no argument 'qpos'; use q": lambda: stepper_of().reset(qpos=[0.0, 0.0]),
    'method "rk45" chooses the length of its steps': lambda: stepper_of(method="rk45", step=None).step(),
    "does not stop": lambda: stepper_of(method="rk45", step=None, events=[rb.Event("link1", value=0.1)]),
    "saved by another stepper": lambda: stepper_of().restore(
        stepper_of(drives=[rb.PID("link1", 0.2, kp=1.0, ki=1.0)]).save()
    ),
    "saved by another stepper; expected one that this stepper has saved": lambda: stepper_of().restore(
        rb.Model.serial_chain(2).stepper([[0.1, 0.2]], step=STEP).save()
    ),
    "snapshot is 3": lambda: stepper_of().restore(3),
    "after the duration of the stepper, 0.005 s": lambda: stepper_of(duration=5e-3).step(6),
    "step is None": lambda: stepper_of(step=None),
    "tau has shape": lambda: stepper_of(tau=np.zeros((7, 2))),
    r"tau has shape \(3,\); expected an array that fits into \(4, 2\)": lambda: setattr(
        stepper_of(), "tau", np.ones(3)
    ),
    "on_failure is": lambda: stepper_of(on_failure="stop"),
    "seed is -1": lambda: stepper_of(seed=-1),
}


@pytest.mark.parametrize("words", WRONG_CALLS)
def test_wrong_calls_are_refused(words):
    with pytest.raises(ArgumentError, match=words):
        WRONG_CALLS[words]()


def test_parameters_that_do_not_exist_are_refused():
    for call in (
        lambda x: x.reset([1], {"link9.mass": 1.0}),
        lambda x: x.reset([1], mass=[-1.0, 1.0]),
    ):
        stepper = stepper_of()
        stepper.step(2)
        kept = stepper.save()
        with pytest.raises(ModelError):
            call(stepper)
        np.testing.assert_array_equal(stepper.q, kept.q)
        assert stepper.model is kept.model
        assert stepper.episodes.tolist() == [0] * SAMPLES


def test_quaternions_of_another_norm_are_refused():
    builder = rb.ModelBuilder()
    builder.add_body("body", joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    stepper = builder.build().stepper(step=STEP)
    with pytest.raises(ArgumentError, match="the quaternion of body 'body'"):
        stepper.reset(q=[0, 0, 0, 0, 0, 0, 2.0])
    assert stepper.episodes == 0


def test_misspelled_names_are_corrected():
    with pytest.raises(UnknownNameError, match="did you mean mass"):
        stepper_of().reset([1], masses=[1.0, 1.0])
    with pytest.raises(TypeError, match="step"):
        arm().stepper(Q, QD, dt=STEP)
    with pytest.raises(AttributeError, match="status"):
        _ = stepper_of().statuses
    with pytest.raises(AttributeError, match="did you mean tau"):
        stepper_of().taus[:] = 1.0
    with pytest.raises(AttributeError, match="did you mean tau"):
        stepper_of().taus = 1.0


def test_a_refused_call_leaves_the_stepper_as_it_was():
    stepper = stepper_of(duration=5e-3)
    stepper.step(4)
    with pytest.raises(ArgumentError):
        stepper.step(2)
    stepper.step(1)
    for k in range(SAMPLES):
        check_end(stepper, k, fresh(k, 5, drives=()))


def test_every_sample_needs_a_valid_start():
    chain = closed_chain("turned four-bar")
    q, qd, _ = closed_state(chain, 0, (2,))
    with pytest.raises(ArgumentError, match="do not satisfy the constraints"):
        chain.model.stepper(q[0] + 0.1, qd[0], step=STEP)
    q[1] += 0.1
    stepper = chain.model.stepper(q, qd, step=STEP, on_failure="ignore")
    stepper.step(2)
    assert stepper.status.tolist() == [rb.Status.DONE, rb.Status.NOT_ASSEMBLED]


@pytest.mark.parametrize(
    ("signal", "words"),
    [
        (
            rb.Signal.random_walk(5.0, interval=0.003),
            "duration is infinite, but drives or forces contain random signals",
        ),
        (
            rb.Signal.table([0.0, 1.0], [0.0, 1.0]),
            r"from 0 to 1 s; expected a signal without an end, or a stepper with",
        ),
    ],
)
def test_signals_that_end_need_a_duration(signal, words):
    model, drives = rb.Model.serial_chain(2), [rb.PrescribedForce("link1", signal)]
    with pytest.raises(rb.ArgumentError, match=words):
        model.stepper([0.0, 0.0], step=1e-3, drives=drives)
    model.stepper([0.0, 0.0], step=1e-3, drives=drives, duration=1.0).step()


@pytest.mark.parametrize(
    ("name", "value"), [("drives", rb.PID("link1", 0.0, kp=1.0)), ("events", rb.Event("link1", value=0.0, stop=True))]
)
def test_objects_that_are_not_in_a_list_are_refused(name, value):
    with pytest.raises(rb.ArgumentError, match=f"{name} is .*; expected a list"):
        rb.Model.serial_chain(2).stepper([0.0, 0.0], step=1e-3, **{name: value})
