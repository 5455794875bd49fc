"""Saved URDF files, read by rbchain and other readers."""

import numpy as np
import pinocchio as pin
import pytest

import rbchain as rb
from tests.mechanisms import ROBOTS, random_tree

URDF_JOINTS = ("revolute", "prismatic", "free", "planar")
EPS = np.finfo(float).eps


def assert_close(found, expected):
    """Check that two mechanisms are equal: numbers to the bit, rotations to round-off."""
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
def test_a_tree_is_unchanged_after_saving_and_loading_a_urdf(tmp_path, seed):
    rng = np.random.default_rng(seed)
    parents = [-1, *(int(rng.integers(-1, i)) for i in range(1, 6))]
    kinds = list(rng.choice(URDF_JOINTS, 6))
    model = random_tree(seed, parents, kinds).replace(gravity=(0, 0, -9.81))
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
def test_a_robot_is_unchanged_after_saving_and_loading_a_urdf(tmp_path):
    model = rb.load(ROBOTS / "solo_description/robots/solo12.urdf", base=rb.Free())
    rb.save(model, tmp_path / "solo.urdf")
    assert len(model.visuals) == 17
    assert_close(rb.load(tmp_path / "solo.urdf"), model)


def test_limits_and_visuals_of_a_urdf_are_kept(tmp_path):
    builder = rb.ModelBuilder()
    limits = rb.JointLimits(lower=-1.0, upper=2.0, velocity=3.0)
    look = rb.Visual("cylinder", (0.1, 0.5), pose=rb.Pose((0, 0, 0.25)), color=(1.0, 0.5, 0.0, 1.0))
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, cg=(0.3, 0, 0)), limits=limits, visuals=[look])
    rb.save(builder.build(), tmp_path / "arm.urdf")
    again = rb.load(tmp_path / "arm.urdf")
    assert again.position_limits.tolist() == [[-1.0, 2.0]]
    assert (again.velocity_limit[0], again.effort_limit[0]) == (3.0, np.inf)
    (found,) = again.visuals["arm"]
    assert (found.shape, found.size, found.color) == (look.shape, look.size, look.color)
    assert found.pose.translation.tolist() == [0.0, 0.0, 0.25]


def test_a_saved_urdf_has_limits_for_every_slide_and_motor(tmp_path):
    """Other readers require limits. Unlimited joints and one-sided limits are the same after loading."""
    builder = rb.ModelBuilder()
    builder.add_body("rail", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0))
    only_upper = rb.JointLimits(upper=0.5, effort=30.0)
    builder.add_body(
        "arm", parent="rail", joint=rb.Revolute(), inertia=rb.Inertia(1.0, cg=(1, 0, 0)), limits=only_upper
    )
    rb.save(builder.build(), tmp_path / "arm.urdf")
    read = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    assert read.nq == 2
    assert read.upperPositionLimit[1] == 0.5
    assert read.effortLimit.tolist() == [1e9, 30.0]
    again = rb.load(tmp_path / "arm.urdf")
    np.testing.assert_array_equal(again.position_limits, [[-np.inf, np.inf], [-np.inf, 0.5]])
    np.testing.assert_array_equal(again.effort_limit, [np.inf, 30.0])


def test_a_visual_that_cannot_be_read_is_left_out_with_a_warning(tmp_path):
    text = (
        '<robot name="r"><link name="base"><visual><geometry><torus/></geometry></visual></link>'
        '<link name="arm"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        '</inertial></link><joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>'
    )
    (tmp_path / "r.urdf").write_text(text)
    with pytest.warns(UserWarning, match=r"some visuals of links \['base'\] are invalid and ignored"):
        assert rb.load(tmp_path / "r.urdf").visuals == {}


def test_joints_that_urdf_does_not_support_are_refused(tmp_path):
    builder = rb.ModelBuilder()
    builder.add_body("nut", joint=rb.Screw((0, 0, 1), 0.01), inertia=rb.Inertia(1.0))
    with pytest.raises(rb.FileFormatError, match="model 'model' has screw joints, which URDF does not have"):
        rb.save(builder.build(), tmp_path / "nut.urdf")


def test_features_that_urdf_cannot_store_are_named(tmp_path):
    with pytest.warns(UserWarning, match=r"omits: stiffness, rotor_inertia, gravity other than"):
        rb.save(rb.Model.serial_chain(2).replace(stiffness=[1, 2], rotor_inertia=[1, 1]), tmp_path / "chain.urdf")


def coupled_joints(*constraints):
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    for name, joint in (("a", rb.Revolute()), ("b", rb.Prismatic()), ("c", rb.Revolute((0, 1, 0)))):
        builder.add_body(name, joint=joint, joint_name=f"joint_{name}", inertia=rb.Inertia.sphere(0.1, mass=1.0))
    for constraint in constraints:
        builder.add_constraint(constraint)
    return builder.build()


def test_couplers_are_written_as_mimic_joints(tmp_path):
    model = coupled_joints(
        rb.CouplerConstraint("rack", "joint_b", "joint_a", ratio=0.1, offset=0.02),
        rb.CouplerConstraint("gear", "joint_c", "joint_b", ratio=-1 / 3),
    )
    rb.save(model, tmp_path / "gears.urdf")
    again = rb.load(tmp_path / "gears.urdf").description
    assert [place[1:] for place in again.constraints] == [place[1:] for place in model.description.constraints]
    for field in ("constraint_ratio", "constraint_offset"):
        np.testing.assert_array_equal(getattr(again, field), getattr(model.description, field))
    read = pin.buildModelFromUrdf(str(tmp_path / "gears.urdf"))
    assert read.nv == 3  # Pinocchio ignores mimic


def test_constraints_that_urdf_cannot_store_are_named(tmp_path):
    """A joint mimics at most one other joint, and joints do not mimic each other in a cycle."""
    model = coupled_joints(
        rb.BallConstraint("loop", "a", "c"),
        rb.CouplerConstraint("rack", "joint_b", "joint_a", ratio=0.1),
        rb.CouplerConstraint("second", "joint_b", "joint_c", ratio=0.1),
        rb.CouplerConstraint("cycle", "joint_a", "joint_b", ratio=10.0),
    )
    with pytest.warns(UserWarning, match=r"the file omits: constraints 'loop', 'second', 'cycle'$"):
        rb.save(model, tmp_path / "loops.urdf")
    assert rb.load(tmp_path / "loops.urdf").constraint_names == ("joint_b",)


def test_damping_that_urdf_cannot_store_is_named(tmp_path):
    builder = rb.ModelBuilder()
    drag = rb.PassiveForces(damping=1.0)
    builder.add_body("buoy", joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=1.0), passive=drag)
    with pytest.warns(UserWarning, match="omits: damping of free joints"):
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


@pytest.mark.parametrize(
    ("limit", "found"),
    [('<limit lower="1" upper="-1"/>', "lower 1, upper -1"), ('<limit velocity="-2"/>', "velocity -2")],
)
def test_invalid_limits_of_a_urdf_are_left_out_with_a_warning(tmp_path, limit, found):
    (tmp_path / "r.urdf").write_text(ONE_ARM.format(limit=limit, material=""))
    with pytest.warns(UserWarning, match=f"r.urdf: joint 'j' has invalid limits, which are ignored: {found}"):
        assert not np.isfinite(rb.load(tmp_path / "r.urdf").position_limits).any()


@pytest.mark.parametrize(
    "material", ['<material name="m"><color/></material>', '<material name="m"><color rgba="a b"/></material>']
)
def test_an_invalid_material_of_a_urdf_is_ignored(tmp_path, material):
    (tmp_path / "r.urdf").write_text(ONE_ARM.format(limit="", material=material))
    (look,) = rb.load(tmp_path / "r.urdf").visuals["arm"]
    assert look.color is None


def test_names_of_frames_and_joints_do_not_collide_in_a_urdf(tmp_path):
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, cg=(1, 0, 0)), joint_name="tool_fixed")
    builder.add_body("tool", parent="arm", joint=rb.Fixed())
    rb.save(builder.build(), tmp_path / "r.urdf")
    assert rb.load(tmp_path / "r.urdf").joint_names == ("tool_fixed",)


def test_limits_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        rb.Model.serial_chain(1).position_limits[0, 0] = 1.0
