"""URDF that is written, and MJCF that is read: judged by the readers, and by MuJoCo's own dynamics."""

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import rbchain as rb
from tests.mechanisms import ROBOTS, random_tree

URDF_JOINTS = ("revolute", "prismatic", "free", "planar")
EPS = np.finfo(float).eps

MJCF = """
<mujoco model="arm">
  <compiler angle="radian"/>
  <option gravity="1 -2 -9"><flag contact="disable"/></option>
  <worldbody>
    <site name="corner" pos="1 2 3" euler="0.1 0.2 0.3"/>
    <body name="trunk" pos="0.1 0.2 0.3" euler="0.3 0.2 0.1">
      {trunk}
      <inertial pos="0.05 0.02 0.01" euler="0.2 0.1 0.4" mass="3" diaginertia="0.03 0.04 0.05"/>
      <body name="slider" pos="0.2 0 0.1" euler="0 0.4 0">
        <joint name="slide" type="slide" axis="1 2 3" armature="0.4" damping="0.7" stiffness="5"/>
        <inertial pos="0 0.1 0" mass="1" diaginertia="0.01 0.02 0.02"/>
        <site name="tool" pos="0.3 0.2 0.1"/>
        <body pos="0 0.3 0">
          <joint type="hinge" axis="1 0 0" pos="0.02 0.03 0.04" damping="0.2" armature="0.05"/>
          <joint type="hinge" axis="0 1 0" pos="0.02 0.03 0.04"/>
          <inertial pos="0.1 0 0" mass="0.7" diaginertia="0.01 0.01 0.015"/>
        </body>
      </body>
      <body name="lid" pos="-0.2 0.1 0">
        <joint name="ball" type="ball" pos="0.1 0 0.05" damping="0.3"/>
        <inertial pos="0.1 0.1 0" mass="0.5" diaginertia="0.004 0.005 0.006"/>
        <body name="handle" pos="0 0 0.2" euler="0.5 0 0">
          <inertial pos="0 0 0.1" mass="0.2" diaginertia="1e-3 1e-3 1e-3"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
TRUNKS = {
    "fixed": "",
    "hinge": '<joint name="waist" axis="0 1 1" pos="0.1 0.2 0.3" damping="0.1" stiffness="3" springref="0.2"/>',
    "free": "<freejoint/>",
}


def written(tmp_path, text):
    file = tmp_path / "model.xml"
    file.write_text(text)
    return file


def to_mujoco(engine, model, q, qd):
    """q and qd in MuJoCo's order of quaternions, and its linear velocity of free joints in world axes."""
    qpos, qvel = q.copy(), qd.copy()
    for j in range(engine.njnt):
        at, kind = engine.jnt_qposadr[j], mujoco.mjtJoint(engine.jnt_type[j])
        if kind in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL):
            first = at + 3 * (kind == mujoco.mjtJoint.mjJNT_FREE)
            qpos[first : first + 4] = q[[first + 3, first, first + 1, first + 2]]
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            # a free joint's position is in the world for MuJoCo, in its placement frame for rbchain
            place, turn = model.placement_rotation[0], np.empty(9)
            mujoco.mju_quat2Mat(turn, qpos[3:7])
            turn = place @ turn.reshape(3, 3)
            mujoco.mju_mat2Quat(qpos[3:7], turn.ravel())
            qpos[:3] = place @ q[:3] + model.placement_translation[0]
            qvel[:3] = turn @ qd[:3]
    return qpos, qvel


@pytest.mark.parametrize("trunk", TRUNKS)
def test_an_mjcf_moves_as_mujoco_has_it(tmp_path, trunk):
    file = written(tmp_path, MJCF.format(trunk=TRUNKS[trunk]))
    model, engine = rb.load(file), mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(engine)
    rng = np.random.default_rng(0)
    assert (model.nq, model.nv) == (engine.nq, engine.nv)
    for _ in range(5):
        q, qd = model.random_state(rng)
        data.qpos[:], data.qvel[:] = to_mujoco(engine, model, q, qd)
        mujoco.mj_forward(engine, data)
        H = np.zeros((engine.nv, engine.nv))
        mujoco.mj_fullM(engine, data, H)
        scale = np.linalg.cond(H) * engine.nv
        if trunk != "free":  # whose linear velocity is in other axes
            np.testing.assert_allclose(model.mass_matrix(q), H, atol=100 * EPS * abs(H).max())
            found = model.forward_dynamics(q, qd, model.passive_forces(q, qd))
            np.testing.assert_allclose(found, data.qacc, atol=100 * EPS * scale * abs(data.qacc).max())
        np.testing.assert_allclose(model.energy(q, qd)[0], qd_energy(H, data.qvel), rtol=1e3 * EPS)
        for name, i in (("corner", 0), ("tool", 1)):
            pose = model.frame_poses(q, name)
            np.testing.assert_allclose(pose.translation, data.site_xpos[i], atol=100 * EPS)
            np.testing.assert_allclose(pose.rotation, data.site_xmat[i].reshape(3, 3), atol=100 * EPS)


def qd_energy(H, qvel):
    return qvel @ H @ qvel / 2


def test_names_of_an_mjcf_are_kept(tmp_path):
    model = rb.load(written(tmp_path, MJCF.format(trunk=TRUNKS["hinge"])))
    assert model.name == "arm"
    assert model.body_names[:2] == ("trunk", "slider")
    assert model.joint_names[:2] == ("waist", "slide")
    assert {"corner", "tool", "handle"} <= set(model.fixed_frames)


def test_what_an_mjcf_has_besides_is_named(tmp_path):
    text = MJCF.format(trunk='<joint axis="0 1 1" limited="true" range="-1 1"/>')
    text = text.replace("</mujoco>", '<actuator><motor joint="slide"/></actuator></mujoco>')
    with pytest.warns(
        UserWarning, match=r"left out of the model: actuators, limits of joints \(kept, but do not act\)$"
    ):
        rb.load(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbody><body/></worldbody>", "model.xml: .*"),
        (MJCF.format(trunk='<joint axis="1 0 0"/><joint axis="0 1 0" pos="1 0 0"/>'), "body 'trunk' are at different"),
        (MJCF.format(trunk='<joint axis="1 0 0"/><joint type="ball"/>'), "body 'trunk' has a ball joint and others"),
    ],
)
def test_an_mjcf_that_cannot_be_read_says_why(tmp_path, text, message):
    with pytest.raises(rb.FileFormatError, match=message):
        rb.load(written(tmp_path, text))


def assert_close(found, expected):
    """The same mechanism, numbers to the bit, rotations to rounding."""
    assert (found.body_names, found.joint_types, found.dof_types) == (
        expected.body_names,
        expected.joint_types,
        expected.dof_types,
    )
    np.testing.assert_array_equal(found.parent, expected.parent)
    for field in ("placement_translation", "axis", "mass", "cg", "damping", "friction"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field), err_msg=field)
    np.testing.assert_allclose(
        found.inertia, expected.inertia, rtol=8 * EPS, atol=8 * EPS * abs(expected.inertia).max()
    )
    np.testing.assert_array_equal(found.position_limits, expected.position_limits)
    np.testing.assert_array_equal(found.effort_limit, expected.effort_limit)
    for name, visuals in expected.visuals.items():
        assert [(v.shape, v.size, v.file) for v in found.visuals[name]] == [(v.shape, v.size, v.file) for v in visuals]
        for a, b in zip(found.visuals[name], visuals, strict=True):
            np.testing.assert_allclose(a.pose.rotation, b.pose.rotation, atol=16 * EPS)
    np.testing.assert_allclose(found.placement_rotation, expected.placement_rotation, atol=16 * EPS)


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_survives_a_urdf(tmp_path, seed):
    rng = np.random.default_rng(seed)
    parents = [-1, *(int(rng.integers(-1, i)) for i in range(1, 6))]
    kinds = list(rng.choice(URDF_JOINTS, 6))
    model = random_tree(seed, parents, kinds).vary(gravity=(0, 0, -9.81))
    rb.save(model, tmp_path / "tree.urdf")
    again = rb.load(tmp_path / "tree.urdf")
    order = [again.body_names.index(name) for name in model.body_names]
    assert sorted(order) == list(range(6))
    if order == list(range(6)):  # a URDF is read depth first
        assert_close(again, model)
    q, qd = model.neutral(), np.zeros(model.nv)
    height = model.center_of_mass(q)
    np.testing.assert_allclose(again.center_of_mass(again.neutral()), height, atol=1e-14)
    assert qd.size == again.nv


@pytest.mark.filterwarnings("ignore:.*no body can have the inertia")
def test_a_robot_survives_a_urdf(tmp_path):
    model = rb.load(ROBOTS / "solo_description/robots/solo12.urdf", base=rb.Free())
    rb.save(model, tmp_path / "solo.urdf")
    assert len(model.visuals) == 17
    assert_close(rb.load(tmp_path / "solo.urdf"), model)


def test_limits_and_looks_of_a_urdf_are_kept(tmp_path):
    builder = rb.ModelBuilder()
    limits = rb.JointLimits(lower=-1.0, upper=2.0, velocity=3.0)
    look = rb.Visual("cylinder", (0.1, 0.5), rb.Pose((0, 0, 0.25)), colour=(1.0, 0.5, 0.0, 1.0))
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, (0.3, 0, 0)), limits=limits, visuals=[look])
    rb.save(builder.build(), tmp_path / "arm.urdf")
    again = rb.load(tmp_path / "arm.urdf")
    assert again.position_limits.tolist() == [[-1.0, 2.0]]
    assert (again.velocity_limit[0], again.effort_limit[0]) == (3.0, np.inf)
    (found,) = again.visuals["arm"]
    assert (found.shape, found.size, found.colour) == (look.shape, look.size, look.colour)
    assert found.pose.translation.tolist() == [0.0, 0.0, 0.25]


def test_a_urdf_says_how_far_every_slide_may_go_and_how_strong_motors_are(tmp_path):
    """As other readers demand; what is unlimited comes back so, and what is limited on one side only too."""
    builder = rb.ModelBuilder()
    builder.add_body("rail", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0))
    only_upper = rb.JointLimits(upper=0.5, effort=30.0)
    builder.add_body("arm", parent="rail", joint=rb.Revolute(), inertia=rb.Inertia(1.0, (1, 0, 0)), limits=only_upper)
    rb.save(builder.build(), tmp_path / "arm.urdf")
    read = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    assert read.nq == 2
    assert read.upperPositionLimit[1] == 0.5
    assert read.effortLimit.tolist() == [1e9, 30.0]
    again = rb.load(tmp_path / "arm.urdf")
    np.testing.assert_array_equal(again.position_limits, [[-np.inf, np.inf], [-np.inf, 0.5]])
    np.testing.assert_array_equal(again.effort_limit, [np.inf, 30.0])


def test_ranges_and_geoms_of_an_mjcf_are_kept(tmp_path):
    joint = '<joint axis="0 1 1" ref="0.5" limited="true" range="-1 1" actuatorfrcrange="-3 4"/>'
    geom = '<geom type="capsule" size="0.1 0.2" pos="0.3 0 0" rgba="1 0 0 0.5" contype="0"/>'
    with pytest.warns(UserWarning, match="left out"):
        model = rb.load(written(tmp_path, MJCF.format(trunk=joint + geom)))
    assert model.position_limits[0].tolist() == [-1.5, 0.5]
    assert model.effort_limit[0] == 4.0
    (look,) = model.visuals["trunk"]
    assert (look.shape, look.size, look.colour) == ("capsule", (0.1, 0.4), (1.0, 0.0, 0.0, 0.5))


def test_a_visual_that_cannot_be_read_is_left_out_with_a_warning(tmp_path):
    text = (
        '<robot name="r"><link name="base"><visual><geometry><torus/></geometry></visual></link>'
        '<link name="arm"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        '</inertial></link><joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>'
    )
    (tmp_path / "r.urdf").write_text(text)
    with pytest.warns(UserWarning, match=r"visuals of these links cannot be read, and are left out: \['base'\]"):
        assert rb.load(tmp_path / "r.urdf").visuals == {}


def test_joints_that_urdf_does_not_know_are_refused(tmp_path):
    builder = rb.ModelBuilder()
    builder.add_body("nut", joint=rb.Screw((0, 0, 1), 0.01), inertia=rb.Inertia(1.0))
    with pytest.raises(rb.FileFormatError, match="URDF knows no screw joints"):
        rb.save(builder.build(), tmp_path / "nut.urdf")


def test_what_urdf_cannot_say_is_named(tmp_path):
    with pytest.warns(UserWarning, match=r"leaves out: stiffness, rotor_inertia, gravity other than"):
        rb.save(rb.Model.serial_chain(2).vary(stiffness=[1, 2], rotor_inertia=[1, 1]), tmp_path / "chain.urdf")


def test_damping_that_urdf_has_no_place_for_is_named(tmp_path):
    builder = rb.ModelBuilder()
    drag = rb.JointForces(damping=1.0)
    builder.add_body("buoy", joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=1.0), passive=drag)
    with pytest.warns(UserWarning, match="leaves out: damping of free joints"):
        rb.save(builder.build(), tmp_path / "buoy.urdf")


ONE_ARM = """
<robot name="r">{material}<link name="base"/>
  <link name="arm">
    <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><geometry><sphere radius="1"/></geometry><material name="m"/></visual>
  </link>
  <joint name="j" type="revolute"><parent link="base"/><child link="arm"/>{limit}</joint>
</robot>
"""


@pytest.mark.parametrize("limit", ['<limit lower="1" upper="-1"/>', '<limit velocity="-1"/>'])
def test_limits_of_a_urdf_that_cannot_be_are_left_out_with_a_warning(tmp_path, limit):
    (tmp_path / "r.urdf").write_text(ONE_ARM.format(limit=limit, material=""))
    with pytest.warns(UserWarning, match=r"r.urdf: joint 'j' has limits that cannot be, which are left out"):
        assert not np.isfinite(rb.load(tmp_path / "r.urdf").position_limits).any()


@pytest.mark.parametrize(
    "material", ['<material name="m"><color/></material>', '<material name="m"><color rgba="a b"/></material>']
)
def test_a_material_without_sense_is_no_reason_to_refuse_a_urdf(tmp_path, material):
    (tmp_path / "r.urdf").write_text(ONE_ARM.format(limit="", material=material))
    (look,) = rb.load(tmp_path / "r.urdf").visuals["arm"]
    assert look.colour is None


def test_names_of_frames_and_joints_do_not_collide_in_a_urdf(tmp_path):
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, (1, 0, 0)), joint_name="tool_fixed")
    builder.add_body("tool", parent="arm", joint=rb.Fixed())
    rb.save(builder.build(), tmp_path / "r.urdf")
    assert rb.load(tmp_path / "r.urdf").joint_names == ("tool_fixed",)


def test_limits_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        rb.Model.serial_chain(1).position_limits[0, 0] = 1.0
