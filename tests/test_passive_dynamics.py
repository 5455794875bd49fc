"""`passive=True`: the functions of dynamics with the passive joint forces that `simulate` adds."""

import mujoco
import numpy as np
import pytest

import rbchain as rb

from .closed_chains import four_bar
from .mechanisms import random_tree

PASSIVE = {
    "stiffness": [2.0, 0.0, 1.0],
    "rest_position": [0.1, 0.0, -0.2],
    "cubic_stiffness": [0.5, 0.0, 0.0],
    "damping": [0.1, 0.2, 0.0],
    "friction": [0.0, 0.3, 0.2],
    "friction_velocity": [0.1, 0.1, 0.2],
}


def arm():
    return random_tree(7, [-1, 0, 1]).replace(**PASSIVE)


def random_state(model, batch=(), seed=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(*batch, model.nq)), rng.normal(size=(*batch, model.nv)), rng.normal(size=(*batch, model.nv))


HINGE = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <compiler angle="radian"/>
  <worldbody>
    <body>
      <joint name="a" axis="0 1 0" damping="2" stiffness="3" springref="0.2"/>
      <inertial pos="0.4 0 0" mass="0.8" diaginertia="0.01 0.02 0.03"/>
      <body pos="0.8 0 0">
        <joint name="b" axis="0 1 0" damping="0.5" armature="0.01"/>
        <inertial pos="0.3 0 0.1" mass="0.5" diaginertia="0.01 0.02 0.03"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def mujoco_model(tmp_path_factory):
    file = tmp_path_factory.mktemp("passive") / "hinge.xml"
    file.write_text(HINGE)
    return rb.load(file), mujoco.MjModel.from_xml_string(HINGE)


def test_forward_dynamics_is_mj_forward(mujoco_model):
    model, other = mujoco_model
    data = mujoco.MjData(other)
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = [0.3, -0.4], [1.0, 2.0], [0.7, 0.2]
    mujoco.mj_forward(other, data)
    found = model.forward_dynamics([0.3, -0.4], [1.0, 2.0], [0.7, 0.2], passive=True)
    np.testing.assert_allclose(found, data.qacc, rtol=1e-12)


def test_inverse_dynamics_is_mj_inverse(mujoco_model):
    model, other = mujoco_model
    data = mujoco.MjData(other)
    data.qpos[:], data.qvel[:], data.qacc[:] = [0.3, -0.4], [1.0, 2.0], [0.7, 0.2]
    mujoco.mj_inverse(other, data)
    found = model.inverse_dynamics([0.3, -0.4], [1.0, 2.0], [0.7, 0.2], passive=True)
    np.testing.assert_allclose(found, data.qfrc_inverse, rtol=1e-12)


@pytest.mark.parametrize("batch", [(), (5,), (0,)])
def test_inverse_dynamics_undoes_forward_dynamics(batch):
    model = arm()
    q, qd, tau = random_state(model, batch)
    qdd = model.forward_dynamics(q, qd, tau, passive=True)
    np.testing.assert_allclose(model.inverse_dynamics(q, qd, qdd, passive=True), tau, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(qdd, model.forward_dynamics(q, qd, tau + model.passive_forces(q, qd)))


def test_hybrid_dynamics_separates_passive_forces_from_joint_forces():
    model = arm()
    q, qd, tau = random_state(model, (5,))
    qdd = model.forward_dynamics(q, qd, tau, passive=True)
    prescribed = np.array([True, False, True])
    given = np.where(prescribed, np.nan, tau), np.where(prescribed, qdd, np.nan)
    found = model.hybrid_dynamics(q, qd, *given, prescribed, passive=True)
    np.testing.assert_allclose(found[0], qdd, rtol=1e-11)
    np.testing.assert_allclose(found[1], tau, rtol=1e-11, atol=1e-12)


def test_power_is_the_rate_of_the_mechanical_energy():
    model, h = arm(), 1e-4
    q, qd, tau = random_state(model)
    qdd = model.forward_dynamics(q, qd, tau, passive=True)

    def energy(s):  # along a path with this velocity and acceleration
        return model.energy(q + s * qd + 0.5 * s * s * qdd, qd + s * qdd)

    kinetic_and_potential = [sum(energy(s)[:2]) for s in (h, -h)]
    rate = (kinetic_and_potential[0] - kinetic_and_potential[1]) / (2.0 * h)
    # the error of the difference is h^2 / 6 of a third derivative of about 1e3 W/s^2
    assert model.power(q, qd, tau, passive=True) == pytest.approx(rate, abs=1e-5)


def test_derivatives_contain_the_passive_forces():
    model, h = arm(), 1e-6
    q, qd, tau = random_state(model, (4,))
    step = h * np.eye(3)[:, None]
    for function, derivatives in (
        (model.forward_dynamics, model.forward_dynamics_derivatives),
        (model.inverse_dynamics, model.inverse_dynamics_derivatives),
    ):
        found = derivatives(q, qd, tau, passive=True)
        for order in range(3):
            ends = [
                [x + sign * step * (order == number) for number, x in enumerate((q, qd, tau))] for sign in (1.0, -1.0)
            ]
            up, down = (function(*end, passive=True) for end in ends)
            difference = np.moveaxis((up - down) / (2.0 * h), 0, -1)
            scale = 1.0 + abs(difference).max()
            np.testing.assert_allclose(found[order], difference, atol=1e-7 * scale)  # round-off / h, and h^2


def test_elastic_stops_have_the_derivatives_of_their_forces():
    stops = {"stop_lower": [-0.2], "stop_upper": [0.2], "limit_stiffness": [50.0], "limit_damping": [0.5]}
    rod = rb.Model.serial_chain(1, gravity=(0, 0, 0)).replace(**stops)
    h, q, qd = 1e-6, np.array([[0.3], [-0.25], [0.1]]), np.array([[0.4], [-0.3], [1.0]])
    found = rod.inverse_dynamics_derivatives(q, qd, 0.0 * q, passive=True)
    for order, step in enumerate(((h, 0.0), (0.0, h))):
        up, down = (rod.passive_forces(q + s * step[0], qd + s * step[1]) for s in (1.0, -1.0))
        np.testing.assert_allclose(found[order][..., 0], -(up - down) / (2.0 * h), atol=1e-6)


@pytest.mark.slow
def test_closed_chains_have_the_same_flag():
    model, _, guess = four_bar()
    model = model.replace(damping=[0.3, 0.1, 0.2], stiffness=[1.0, 0.0, 2.0])
    q = model.assemble(guess)
    qd = model.assemble_velocities(q, np.full(model.nv, 0.5))
    tau, passive = np.array([0.7, 0.0, 0.0]), model.passive_forces(q, qd)
    qdd = model.forward_dynamics(q, qd, tau, passive=True)
    np.testing.assert_array_equal(qdd, model.forward_dynamics(q, qd, tau + passive))
    motor = model.inverse_dynamics(q, qd, qdd, actuated=["crank"], passive=True)
    np.testing.assert_allclose(motor, tau[:1], rtol=1e-9)
    reactions = model.joint_reactions(q, qd, qdd, tau=tau, passive=True)
    np.testing.assert_array_equal(reactions, model.joint_reactions(q, qd, qdd, tau=tau + passive))
    residual = model.force_balance_residual(q, qd, tau, passive=True)
    np.testing.assert_array_equal(residual, model.force_balance_residual(q, qd, tau + passive))


def test_joint_forces_are_zero_by_default_and_may_be_a_number():
    model = arm()
    q, qd, _ = random_state(model, (5,))
    zero, same = np.zeros(3), np.full(3, 0.4)
    for function in (model.forward_dynamics, model.power, model.force_balance_residual):
        np.testing.assert_array_equal(function(q, qd), function(q, qd, zero))
        np.testing.assert_array_equal(function(q, qd, 0.4), function(q, qd, same))
    float32 = model.forward_dynamics(q.astype(np.float32), qd.astype(np.float32), 0.4, passive=True)
    assert float32.dtype == np.float32
    for found, expected in zip(
        model.forward_dynamics_derivatives(q, qd), model.forward_dynamics_derivatives(q, qd, zero), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("passive", [None, 1, "yes", np.array([True, False])])
def test_a_flag_that_is_not_true_or_false_is_refused(passive):
    model = arm()
    q, qd, tau = random_state(model)
    for function in (model.forward_dynamics, model.inverse_dynamics, model.power, model.inverse_dynamics_derivatives):
        with pytest.raises(rb.ArgumentError, match=r"passive is .*; expected True or False"):
            function(q, qd, tau, passive=passive)
