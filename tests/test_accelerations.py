"""`Model.accelerations`: the sum of all forces that `simulate` integrates, at one time."""

import numpy as np
import pytest

import rbchain as rb

from .closed_chains import four_bar
from .mechanisms import random_tree

PLAIN = pytest.mark.plain_python
SHORT = {"duration": 1e-3}


def arm():
    """Three joints of one degree of freedom each, with springs and damping."""
    return random_tree(7, [-1, 0, 1]).replace(stiffness=[2.0, 0.0, 1.0], damping=[0.1, 0.2, 0.0])


def random_states(model, batch, seed=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(*batch, model.nq)), rng.normal(size=(*batch, model.nv))


def drives_and_forces(model):
    first, second, third = model.joint_names
    drives = [
        rb.PID(first, rb.Signal.sines(0.3, 2.0), kp=4.0, kd=0.5, ki=0.2),
        rb.PrescribedForce(second, rb.Signal.polynomial([0.2, 1.5])),
        rb.PrescribedAcceleration(third, 0.7),
    ]
    tip = model.body_names[-1]
    forces = [
        rb.Wrench(tip, force=(rb.Signal.sines(1.0, 3.0, phase=1.0), 0.0, 2.0)),
        rb.SpringDamper(None, tip, point_a=(0, 0, 1), point_b=(0.1, 0, 0), stiffness=5.0, damping=0.3, rest_length=0.4),
    ]
    return {"drives": drives, "forces": forces}


@PLAIN
@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
def test_they_are_those_at_the_start_of_a_motion(batch):
    check_start_of_motion(batch)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [(), (4,)])
def test_compiled_ones_are_those_at_the_start_of_a_motion(batch):
    check_start_of_motion(batch)


def check_start_of_motion(batch):
    model = arm()
    q, qd = random_states(model, batch)
    found = model.accelerations(q, qd, **drives_and_forces(model))
    motion = model.simulate(q, qd, save_at=2, **SHORT, **drives_and_forces(model))
    np.testing.assert_array_equal(found, motion.qdd[..., 0, :])


@PLAIN
def test_they_contain_passive_forces_and_joint_forces():
    model, tau = arm(), np.array([0.3, -0.2, 0.1])
    q, qd = random_states(model, (5,))
    expected = model.forward_dynamics(q, qd, tau + model.passive_forces(q, qd))
    np.testing.assert_allclose(model.accelerations(q, qd, tau=tau), expected, rtol=1e-12)
    without = random_tree(7, [-1, 0, 1])
    np.testing.assert_array_equal(without.accelerations(q, qd, tau=tau), without.forward_dynamics(q, qd, tau + 0 * qd))


@PLAIN
def test_signals_act_at_the_given_times():
    """PID and a force over time have closed forms; each sample has its own time."""
    model = arm()
    q, qd = random_states(model, (4,))
    t, (first, second, _) = np.array([0.0, 0.3, 1.7, 20.0]), model.joint_names
    drives = [
        rb.PID(first, rb.Signal.sines(0.3, 2.0), kp=4.0, kd=0.5),
        rb.PrescribedForce(second, rb.Signal.polynomial([0.2, 1.5])),
    ]
    tau = np.zeros((4, 3))
    tau[:, 0] = 4.0 * (0.3 * np.sin(2.0 * t) - q[:, 0]) + 0.5 * (0.6 * np.cos(2.0 * t) - qd[:, 0])
    tau[:, 1] = 0.2 + 1.5 * t
    expected = model.forward_dynamics(q, qd, tau + model.passive_forces(q, qd))
    np.testing.assert_allclose(model.accelerations(q, qd, t=t, drives=drives), expected, rtol=1e-11)
    one_state = model.accelerations(q[0], qd[0], t=t, drives=drives)
    assert one_state.shape == (4, 3)
    for sample in range(4):
        alone = model.accelerations(q[0], qd[0], t=t[sample], drives=drives)
        np.testing.assert_allclose(one_state[sample], alone, rtol=1e-12)


@PLAIN
def test_each_sample_has_its_own_parameters():
    model, factor = arm(), np.array([1.0, 2.0, 3.0])
    many = model.vary(mass=model.mass * factor[:, None])
    q, qd = random_states(model, (3,))
    expected = [model.vary(mass=model.mass * f).accelerations(a, b) for f, a, b in zip(factor, q, qd, strict=True)]
    np.testing.assert_allclose(many.accelerations(q, qd), expected, rtol=1e-12)


@PLAIN
def test_prescribed_motions_replace_the_state():
    model = arm()
    drives = [rb.PrescribedPosition(model.joint_names[0], rb.Signal.polynomial([0.1, 0.2, 0.3]))]
    found = model.accelerations([9.0, 0.2, 0.1], [9.0, 0.3, 0.4], t=2.0, drives=drives)
    same = model.accelerations([0.1 + 0.4 + 1.2, 0.2, 0.1], [0.2 + 1.2, 0.3, 0.4], t=2.0, drives=drives)
    np.testing.assert_allclose(found, same, rtol=1e-12)
    assert found[0] == pytest.approx(0.6, rel=1e-12)


@PLAIN
def test_closed_chains_satisfy_their_constraints():
    model, _, guess = four_bar()
    q = model.assemble(guess)
    qd = model.assemble_velocities(q, np.full(model.nv, 0.1))
    found = model.accelerations(q, qd)
    expected = model.forward_dynamics(q, qd, model.passive_forces(q, qd))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@PLAIN
@pytest.mark.parametrize(
    "drive",
    [
        lambda joint: rb.PID(joint, 0.3, kp=1.0, gravity_compensation=True),
        lambda joint: rb.ComputedTorque(joint, 0.3, kp=1.0, kd=1.0),
    ],
)
def test_linearize_refuses_controllers_with_a_model_in_closed_chains(drive):
    model, _, guess = four_bar()
    with pytest.raises(rb.ArgumentError, match="no derivatives in closed loops"):
        model.linearize(model.assemble(guess), drives=[drive("crank")])


@PLAIN
def test_float32_states_give_float32():
    model = arm()
    q, qd = (x.astype(np.float32) for x in random_states(model, (4,)))
    found = model.accelerations(q, qd, **drives_and_forces(model))
    assert found.dtype == np.float32
    exact = model.accelerations(q.astype(float), qd.astype(float), **drives_and_forces(model))
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-3 * abs(exact).max())


@PLAIN
def test_a_batch_may_be_empty():
    model = arm()
    assert model.accelerations(np.zeros((0, 3)), np.zeros((0, 3)), **drives_and_forces(model)).shape == (0, 3)


def fails_beyond_one(t, q, qd, parameters, out):
    if q[0] > 1.0:
        raise ValueError("too far")
    out[:] = -q


@PLAIN
def test_an_exception_of_a_user_function_is_reported_with_its_sample():
    model = arm()
    drives = [rb.UserForces(fails_beyond_one)]
    q = np.array([[0.5, 0.0, 0.0], [1.5, 0.0, 0.0]])
    expected = model.forward_dynamics(q[0], np.zeros(3), model.passive_forces(q[0], np.zeros(3)) - q[0])
    np.testing.assert_allclose(model.accelerations(q[0], np.zeros(3), drives=drives), expected, rtol=1e-12)
    with pytest.raises(rb.ArgumentError, match=r"ValueError.*too far.*sample \(1,\)"):
        model.accelerations(q, np.zeros(3), drives=drives)


@PLAIN
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda j: {"t": -1.0}, "t is -1.0; expected finite times from 0"),
        (lambda j: {"t": [0.0, np.nan]}, "expected finite times"),
        (lambda j: {"t": [0.0, 0.1, 0.2]}, r"do not fit together: t \(3,\), q \(2,\)"),
        (lambda j: {"drives": [rb.Sampled(rb.PID(j, 0.1, kp=1.0), period=0.1)]}, "depend on the past with Sampled"),
        (lambda j: {"drives": [rb.PrescribedForce(j, rb.Signal.random_walk(1.0, 0.1))]}, "random signals"),
        (lambda j: {"forces": [rb.DryFriction(j, 0.1)]}, "not available with"),
        (lambda j: {"drives": [rb.PrescribedAcceleration(j, 0.1)], "tau": 0.1}, "so tau has no effect"),
    ],
)
def test_what_is_unknown_is_refused(arguments, message):
    model = arm()
    q, qd = random_states(model, (2,))
    with pytest.raises(rb.ArgumentError, match=message):
        model.accelerations(q, qd, **arguments(model.joint_names[0]))
