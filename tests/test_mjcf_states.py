"""States of MuJoCo and of the model of the same file: both libraries see the same positions and velocities."""

import mujoco
import numpy as np
import pytest

import rbchain as rb
from rbchain.io.mjcf import state_from_mujoco, state_to_mujoco

EPS = np.finfo(float).eps

TWO_ROBOTS = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="first" pos="0.1 0.2 0.3" euler="0.3 0.2 0.1">
      <freejoint/>
      <inertial pos="0.05 0.02 0.01" mass="3" diaginertia="0.03 0.04 0.05"/>
      <body name="arm" pos="0.2 0 0.1" euler="0 0.4 0">
        <joint name="elbow" axis="0 1 0" pos="0.02 0.03 0.04" ref="0.7"/>
        <joint name="rail" type="slide" axis="1 2 3" ref="-0.2"/>
        <inertial pos="0 0.1 0" mass="1" diaginertia="0.01 0.02 0.02"/>
        <body name="hand" pos="0 0.3 0">
          <joint name="wrist" type="ball" pos="0.1 0 0.05"/>
          <inertial pos="0.1 0 0" mass="0.7" diaginertia="0.01 0.01 0.015"/>
        </body>
      </body>
    </body>
    <body name="second" pos="1 0 0" euler="0 0 2">
      <freejoint/>
      <inertial pos="0 0 0.1" mass="2" diaginertia="0.1 0.2 0.25"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    file = tmp_path_factory.mktemp("states") / "robots.xml"
    file.write_text(TWO_ROBOTS)
    with pytest.warns(UserWarning, match="ref is not added"):
        model = rb.load(file)
    return model, mujoco.MjModel.from_xml_path(str(file))


def random_state(models, batch=(), seed=1):
    """A state of MuJoCo with quaternions of norm 1."""
    other, rng = models[1], np.random.default_rng(seed)
    qpos, qvel = rng.normal(size=(*batch, other.nq)), rng.normal(size=(*batch, other.nv))
    for j in range(other.njnt):
        if other.jnt_type[j] < 2:
            at = other.jnt_qposadr[j] + 3 * (other.jnt_type[j] == 0)
            qpos[..., at : at + 4] /= np.linalg.norm(qpos[..., at : at + 4], axis=-1, keepdims=True)
    return qpos, qvel


def test_centers_of_mass_and_their_velocities_are_the_same(models):
    model, other = models
    qpos, qvel = random_state(models)
    data = mujoco.MjData(other)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(other, data)
    q, qd = state_from_mujoco(model, other, qpos, qvel)
    bodies, velocities = model.body_poses(q), model.body_velocities(q, qd)
    for name in ("first", "arm", "hand", "second"):
        i, of_mujoco = model.body_names.index(name), other.body(name).id
        arm = bodies.rotation[i] @ model.cg[i]
        np.testing.assert_allclose(bodies.translation[i] + arm, data.xipos[of_mujoco], atol=64 * EPS, err_msg=name)
        np.testing.assert_allclose(bodies.rotation[i], data.xmat[of_mujoco].reshape(3, 3), atol=64 * EPS)
        found = np.empty(6)  # angular, then linear, of the center of mass, in world axes
        mujoco.mj_objectVelocity(other, data, mujoco.mjtObj.mjOBJ_BODY, of_mujoco, found, 0)
        at_origin, spin = velocities[i, :3], velocities[i, 3:]
        place = data.xipos[of_mujoco] - bodies.translation[i]
        np.testing.assert_allclose(spin, found[:3], atol=64 * EPS * 10, err_msg=name)
        np.testing.assert_allclose(at_origin + np.cross(spin, place), found[3:], atol=64 * EPS * 10, err_msg=name)


def test_energies_are_the_same(models):
    model, other = models
    qpos, qvel = random_state(models, seed=2)
    data = mujoco.MjData(other)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(other, data)
    mujoco.mj_energyPos(other, data)
    mujoco.mj_energyVel(other, data)
    kinetic, potential = model.energy(*state_from_mujoco(model, other, qpos, qvel))
    assert kinetic == pytest.approx(data.energy[1], rel=1e-13)
    assert potential == pytest.approx(data.energy[0], rel=1e-13)


@pytest.mark.parametrize("batch", [(), (5,), (2, 3), (0,)])
def test_the_way_back_gives_the_same_state(models, batch):
    model, other = models
    qpos, qvel = random_state(models, batch, seed=3)
    again = state_to_mujoco(model, other, *state_from_mujoco(model, other, qpos, qvel))
    assert again[0].shape == qpos.shape
    at = np.concatenate([np.arange(j, j + 4) for j in (3, 9, 16)]).reshape(3, 4)
    for quaternion in at:  # a quaternion and its negative are the same rotation
        np.testing.assert_allclose(abs((again[0][..., quaternion] * qpos[..., quaternion]).sum(-1)), 1.0, atol=32 * EPS)
    others = np.setdiff1d(np.arange(other.nq), at)
    np.testing.assert_allclose(again[0][..., others], qpos[..., others], atol=32 * EPS)
    np.testing.assert_allclose(again[1], qvel, atol=32 * EPS)


def test_the_pose_in_the_file_is_the_neutral_one(models):
    model, other = models
    q, qd = state_from_mujoco(model, other, other.qpos0, np.zeros(other.nv))
    np.testing.assert_allclose(q, model.neutral(), atol=8 * EPS)
    assert not qd.any()


def test_other_models_and_shapes_are_refused(models):
    model, other = models
    with pytest.raises(rb.ArgumentError, match="expected two models of one file"):
        state_from_mujoco(rb.Model.serial_chain(2), other, other.qpos0, np.zeros(other.nv))
    with pytest.raises(rb.ArgumentError, match=r"qvel has shape \(3,\)"):
        state_from_mujoco(model, other, other.qpos0, np.zeros(3))
