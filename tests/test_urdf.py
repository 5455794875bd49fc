"""URDF files: read like in Pinocchio, and refused with a clear message if they are invalid."""

import pickle
import re
import sys
import sysconfig
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import rbchain as rb

EPS = np.finfo(float).eps
PUMA = Path(__file__).parents[1] / "examples" / "puma560.urdf"

# --- files written for the occasion -----------------------------------------------------------------------------------

LINKS = """
<link name="base"/>
<link name="arm">
  <inertial>
    <origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/>
    <mass value="2.5"/>
    <inertia ixx="0.3" ixy="0.01" ixz="0.02" iyy="0.4" iyz="0.03" izz="0.5"/>
  </inertial>
</link>
"""
JOINT = """
<joint name="hinge" type="revolute">
  <parent link="base"/>
  <child link="arm"/>
  <origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>
  <axis xyz="0 3 4"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/>
</joint>
"""
ROBOT = f'<?xml version="1.0"?>\n<robot name="test">{LINKS}{JOINT}</robot>\n'


@pytest.fixture
def write(tmp_path):
    def write(text, name="sample.urdf"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def changed(old, new, robot=ROBOT):
    """The sample robot with one thing changed; fails if there is nothing to change."""
    assert old in robot
    return robot.replace(old, new, 1)


def rotation_of(roll, pitch, yaw):
    """URDF's fixed-axis angles: about x, then y, then z of the parent."""
    (cr, cp, cy), (sr, sp, sy) = np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw])
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


def test_a_link_and_its_joint_are_read_as_specified(write):
    model = rb.load(write(ROBOT))
    assert (model.name, model.body_names, model.joint_names) == ("test", ("arm",), ("hinge",))
    assert model.joint_types == ("revolute",)
    turned = rotation_of(0.4, 0.5, 0.6)
    tensor = np.array([[0.3, 0.01, 0.02], [0.01, 0.4, 0.03], [0.02, 0.03, 0.5]])
    np.testing.assert_allclose(model.axis, [[0, 0.6, 0.8]], atol=2 * EPS)
    np.testing.assert_allclose(model.placement_translation, [[1, 2, 3]])
    np.testing.assert_allclose(model.placement_rotation[0], rotation_of(0.1, 0.2, 0.3), atol=4 * EPS)
    np.testing.assert_allclose(model.mass, [2.5])
    np.testing.assert_allclose(model.cg, [[0.1, 0.2, 0.3]])
    np.testing.assert_allclose(model.inertia[0], turned @ tensor @ turned.T, atol=4 * EPS)
    np.testing.assert_array_equal(model.gravity, [0, 0, -9.81])
    assert model.fixed_frames == {"base": -1}


@pytest.mark.parametrize(
    ("urdf_type", "joint_type"),
    [
        ("revolute", "revolute"),
        ("continuous", "revolute"),
        ("prismatic", "prismatic"),
        ("planar", "planar"),
        ("floating", "free"),
    ],
)
def test_joint_types_are_read_as_specified(write, urdf_type, joint_type):
    assert rb.load(write(changed('"revolute"', f'"{urdf_type}"'))).joint_types == (joint_type,)


def test_the_default_axis_is_x(write):
    np.testing.assert_array_equal(rb.load(write(changed('<axis xyz="0 3 4"/>', ""))).axis, [[1, 0, 0]])


def test_the_default_origin_is_the_identity(write):
    model = rb.load(write(changed('<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>', "")))
    np.testing.assert_array_equal(model.placement_translation, [[0, 0, 0]])
    np.testing.assert_array_equal(model.placement_rotation, [np.eye(3)])


def test_a_link_without_inertial_is_massless(write):
    extra = '<link name="tip"/>' + JOINT.replace("hinge", "wrist").replace("arm", "tip").replace("base", "arm")
    with pytest.warns(UserWarning, match=r"sample.urdf: model 'test': no mass, inertia .* motion of \['tip'\]"):
        assert rb.load(write(changed("</robot>", extra + "</robot>"))).mass.tolist() == [2.5, 0.0]


def test_meshes_are_not_needed(write):
    geometry = '<geometry><mesh filename="package://nowhere/arm.stl"/></geometry>'
    visual = f"<visual>{geometry}</visual><collision>{geometry}</collision></link>"
    model = rb.load(write(ROBOT.replace("</link>", visual)))
    np.testing.assert_array_equal(model.mass, [2.5])


def test_comments_and_processing_instructions_are_skipped(write):
    noisy = ROBOT.replace("<joint", "<!-- <joint/> --><?editor fold?><joint").replace("<parent", "<!-- --><parent")
    assert rb.load(write(noisy)).n_bodies == 1


def test_the_order_of_elements_does_not_matter(write):
    one, other = rb.load(write(ROBOT)), rb.load(write(f'<robot name="test">{JOINT}{LINKS}</robot>', "other.urdf"))
    assert one.forward_dynamics([0.1], [0.2], [0.3]) == other.forward_dynamics([0.1], [0.2], [0.3])


def test_a_urdf_may_be_given_as_text_or_path(write):
    path = write(ROBOT)
    a, b = rb.load(path), pickle.loads(pickle.dumps(rb.load(str(path))))
    assert a.forward_dynamics([0.1], [0.2], [0.3]) == b.forward_dynamics([0.1], [0.2], [0.3])


@pytest.mark.slow
def test_a_chain_of_two_thousand_links_loads(write):
    """No function recurses over the links."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    links = "".join(f'<link name="l{i}">{inertial}</link>' for i in range(2001))
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/></joint>' for i in range(2000)
    )
    assert rb.load(write(f'<robot name="long">{joints}{links}</robot>')).n_bodies == 2000


# --- files that are not what they claim to be -------------------------------------------------------------------------

BILLION_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY a0 "laughter">'
    + "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(9))
    + f']><robot name="&a9;">{LINKS}{JOINT}</robot>'
)
EXTERNAL = '<!DOCTYPE robot [<!ENTITY secret SYSTEM "file:///etc/passwd">]>'

NOT_URDF = {
    "empty file": "",
    "only white space": "  \n ",
    "binary junk": bytes(range(256)) * 64,
    "zeros": bytes(4096),
    "plain text": "a robot with one arm",
    "cut short": ROBOT[:-40],
    "tags crossed": changed("</inertial>\n</link>", "</link></inertial>"),
    "attribute twice": changed('name="hinge"', 'name="hinge" name="hinge"'),
    "undefined entity": changed('name="hinge"', 'name="&hinge;"'),
    "unknown encoding": changed("?>", ' encoding="klingon"?>'),
    "bytes not in the encoding": ROBOT.encode().replace(b"hinge", b"hin\xff\xfege"),
    "wrong root": '<sdf version="1.6"><model name="x"/></sdf>',
    "empty robot": '<robot name="x"/>',
    "robot in a robot": f'<robot name="x"><robot name="y">{LINKS}{JOINT}</robot></robot>',
    "billion laughs": BILLION_LAUGHS,
    "external entity in text": EXTERNAL + f'<robot name="x">&secret;{LINKS}{JOINT}</robot>',
    "external entity in an attribute": EXTERNAL + f'<robot name="&secret;">{LINKS}{JOINT}</robot>',
    "external parameter entity": '<!DOCTYPE robot [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x.dtd"> %x;]>' + ROBOT[21:],
    "external document type": '<!DOCTYPE robot SYSTEM "http://127.0.0.1:9/x.dtd">' + ROBOT[21:],
    "any document type": "<!DOCTYPE robot>" + ROBOT[21:],
    "deeply nested links": '<robot name="x">' + '<link name="x">' * 400_000 + "</link>" * 400_000 + "</robot>",
    "deeply nested elements to ignore": f'<robot name="x">{"<gazebo>" * 600_000}{"</gazebo>" * 600_000}</robot>',
    "joint without name": changed(' name="hinge"', ""),
    "link without name": changed('<link name="base"/>', "<link/>"),
    "joint without type": changed(' type="revolute"', ""),
    "unknown joint type": changed('"revolute"', '"hinge"'),
    "joint type that is no longer one": changed('"revolute"', '"universal"'),
    "no parent": changed('<parent link="base"/>', ""),
    "no child": changed('<child link="arm"/>', ""),
    "parent without link": changed('<parent link="base"/>', "<parent/>"),
    "child without link": changed('<child link="arm"/>', "<child/>"),
    "unknown parent": changed('<parent link="base"/>', '<parent link="ghost"/>'),
    "unknown child": changed('<child link="arm"/>', '<child link="ghost"/>'),
    "two parents": changed("</robot>", JOINT.replace("hinge", "second") + "</robot>"),
    "two roots": changed("</robot>", '<link name="stray"/></robot>'),
    "no root": changed(
        "</robot>", '<joint name="k" type="fixed"><parent link="arm"/><child link="base"/></joint></robot>'
    ),
    "link on itself": changed('<parent link="base"/>', '<parent link="arm"/>'),
    "cycle beside the tree": changed(
        "</robot>",
        '<link name="b"/><link name="c"/>'
        '<joint name="k" type="revolute"><parent link="b"/><child link="c"/></joint>'
        '<joint name="l" type="revolute"><parent link="c"/><child link="b"/></joint></robot>',
    ),
    "link name twice": changed("</robot>", '<link name="arm"/></robot>'),
    "joint name twice": changed(
        "</robot>", '<link name="b"/>' + JOINT.replace('"arm"', '"b"').replace('"base"', '"arm"') + "</robot>"
    ),
    "mass without value": changed('<mass value="2.5"/>', "<mass/>"),
    "inertial without mass": changed('<mass value="2.5"/>', ""),
    "inertia without ixx": changed('ixx="0.3" ', ""),
    "inertia without izz": changed(' izz="0.5"', ""),
    "inertia without ixy": changed(' ixy="0.01"', ""),
    "mass in words": changed('"2.5"', '"heavy"'),
    "mass empty": changed('"2.5"', '""'),
    "mass with a comma": changed('"2.5"', '"2,5"'),
    "moment in words": changed('izz="0.5"', 'izz="large"'),
    "axis in words": changed('"0 3 4"', '"up up up"'),
    "axis of two numbers": changed('"0 3 4"', '"3 4"'),
    "axis of four numbers": changed('"0 3 4"', '"0 3 4 0"'),
    "place in words": changed('"1 2 3"', '"here or there"'),
    "place of no numbers": changed('"1 2 3"', '""'),
    "place of one number": changed('"1 2 3"', '"1"'),
    "place of two numbers": changed('"1 2 3"', '"1 2"'),
    "place of four numbers": changed('"1 2 3"', '"1 2 3 4"'),
    "angles of one number": changed('rpy="0.1 0.2 0.3"', 'rpy="0.1"'),
    "angles of two numbers": changed('rpy="0.1 0.2 0.3"', 'rpy="0.1 0.2"'),
    "angles of four numbers": changed('rpy="0.1 0.2 0.3"', 'rpy="0.1 0.2 0.3 0.4"'),
    "cg of two numbers": changed('xyz="0.1 0.2 0.3"', 'xyz="0.1 0.2"'),
    "cg of four numbers": changed('xyz="0.1 0.2 0.3"', 'xyz="0.1 0.2 0.3 0.4"'),
}


@pytest.mark.parametrize("text", NOT_URDF.values(), ids=NOT_URDF)
def test_a_file_that_is_not_a_urdf_is_refused_with_its_name(write, text):
    with pytest.raises(rb.FileFormatError, match=r"sample\.urdf"):
        rb.load(write(text))


NUMBERS = {
    "mass": ('mass value="2.5"', 'mass value="{}"'),
    "moment": ('izz="0.5"', 'izz="{}"'),
    "product": ('ixy="0.01"', 'ixy="{}"'),
    "cg": ('xyz="0.1 0.2 0.3"', 'xyz="0.1 0.2 {}"'),
    "angles of the inertia": ('rpy="0.4 0.5 0.6"', 'rpy="0.4 {} 0.6"'),
    "place": ('xyz="1 2 3"', 'xyz="1 {} 3"'),
    "angles": ('rpy="0.1 0.2 0.3"', 'rpy="{} 0.2 0.3"'),
    "axis": ('xyz="0 3 4"', 'xyz="0 3 {}"'),
}


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize(("sound", "spoilt"), NUMBERS.values(), ids=NUMBERS)
def test_a_nonfinite_number_is_refused_with_its_link_or_joint(write, sound, spoilt, bad):
    """The message names the file, the link or the joint."""
    with pytest.raises((rb.FileFormatError, rb.ModelError), match=r"sample\.urdf|'arm'|'hinge'"):
        rb.load(write(changed(sound, spoilt.format(bad))))


@pytest.mark.parametrize("given", ['lower="-2"', 'upper="3"', 'lower="-2" upper="3"'])
def test_a_limit_that_is_missing_beside_the_other_one_is_zero(write, given):
    path = write(changed('lower="-1" upper="1"', given))
    judge = pin.buildModelFromUrdf(str(path))
    found = rb.load(path).position_limits[0]
    assert found.tolist() == [judge.lowerPositionLimit[0], judge.upperPositionLimit[0]]


def test_a_zero_axis_is_refused_with_its_joint(write):
    with pytest.raises(
        rb.FileFormatError, match=r"sample\.urdf: joint 'hinge': axis is .*; expected a non-zero vector"
    ):
        rb.load(write(changed('"0 3 4"', '"0 0 0"')))


def test_a_negative_mass_is_refused_with_the_name_of_the_link(write):
    with pytest.raises((rb.FileFormatError, rb.ModelError), match="'arm'"):
        rb.load(write(changed('"2.5"', '"-2.5"')))


def test_entities_are_not_expanded_in_memory(write):
    """The expanded "billion laughs" file would be 8 GB; the refusal needs little memory."""
    path = write(BILLION_LAUGHS)
    tracemalloc.start()
    with pytest.raises(rb.FileFormatError):
        rb.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


def test_external_entities_are_not_read(write, tmp_path):
    (tmp_path / "secret.txt").write_text("open sesame")
    entity = f'<!DOCTYPE robot [<!ENTITY secret SYSTEM "file://{tmp_path}/secret.txt">]>'
    for place in (
        f'<robot name="x">&secret;{LINKS}{JOINT}</robot>',
        '<robot name="x"><link name="a">&secret;</link></robot>',
    ):
        with pytest.raises(rb.FileFormatError) as refusal:
            rb.load(write(entity + place))
        assert "sesame" not in str(refusal.value)


def test_a_missing_urdf_raises_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        rb.load(tmp_path / "nowhere.urdf")


@pytest.mark.parametrize("name", ["arm.txt", "arm", "arm.stl"])
def test_a_file_of_another_type_is_refused_by_its_name(write, name):
    ending = name.removeprefix("arm")
    with pytest.raises(rb.FileFormatError, match=f"{name}: the name ends in '{ending}'; expected '.urdf', '.sdf'"):
        rb.load(write(ROBOT, name))


def test_an_unphysical_inertia_gives_a_warning_or_an_error(write):
    path = write(changed('izz="0.5"', 'izz="5.0"'))
    with pytest.warns(UserWarning, match="arm"):
        model = rb.load(path)
    np.testing.assert_allclose(np.trace(model.inertia[0]), 5.7)
    with pytest.raises(rb.ModelError, match="arm"):
        rb.load(path, nonphysical_inertia="refuse")


def test_damping_and_friction_act_at_the_joint(write):
    model = rb.load(write(changed("</joint>", '<dynamics damping="0.5" friction="0.1"/></joint>')))
    assert (model.damping[0], model.friction[0]) == (0.5, 0.1)
    # at 100 times the friction velocity, the regularized friction is lower by 5e-5
    np.testing.assert_allclose(model.passive_forces([0.3], [1.0]), [-0.6], atol=1e-5)


def mimicking(joint, numbers='multiplier="2"', name="ape", kind="revolute", robot=ROBOT):
    """A robot with a joint "ape" that mimics a joint of this name."""
    body = f"of_{name}"
    link = LINKS[LINKS.index('<link name="arm">') :].replace('"arm"', f'"{body}"')
    extra = link + JOINT.replace("hinge", name).replace('"arm"', f'"{body}"').replace('"revolute"', f'"{kind}"')
    extra = extra.replace("</joint>", f'<mimic joint="{joint}" {numbers}/></joint>')
    return changed("</robot>", extra + "</robot>", robot)


@pytest.mark.plain_python
@pytest.mark.parametrize(
    ("numbers", "residual"),
    [('multiplier="2"', 0.5 - 2 * 0.1), ("", 0.5 - 0.1), ('multiplier="-0.5" offset="0.2"', 0.5 + 0.05 - 0.2)],
)
def test_a_mimic_joint_is_coupled(write, numbers, residual):
    model = rb.load(write(mimicking("hinge", numbers)))
    assert model.constraint_names == ("ape",)
    assert model.joint_names == ("hinge", "ape")
    np.testing.assert_allclose(model.constraint_residual([0.1, 0.5]), [residual], atol=EPS)
    np.testing.assert_array_equal(model.open_tree().mass, model.mass)


@pytest.mark.plain_python
def test_a_mimic_of_a_mimic_is_coupled_to_the_joint_that_it_names(write):
    model = rb.load(write(mimicking("ape", 'multiplier="3"', "clown", "prismatic", mimicking("hinge"))))
    assert model.constraint_names == ("ape", "clown")
    q = model.assemble([0.1, 0.0, 0.0], fixed=["hinge"])
    np.testing.assert_allclose(q, [0.1, 0.2, 0.6], atol=1e-11)


@pytest.mark.plain_python
def test_a_joint_that_mimics_the_joint_that_carries_it(write):
    text = mimicking("hinge").replace(
        '<joint name="ape" type="revolute">\n  <parent link="base"/>',
        '<joint name="ape" type="revolute"><parent link="arm"/>',
    )
    model = rb.load(write(text))
    assert model.parent.tolist() == [-1, 0]
    np.testing.assert_array_equal(model.constraint_jacobian([0.1, 0.2]), [[-2.0, 1.0]])
    np.testing.assert_allclose(model.assemble([0.1, 0.0], fixed=["hinge"]), [0.1, 0.2], atol=1e-11)
    M, h, G = model.mass_matrix([0.1, 0.2]), model.bias_forces([0.1, 0.2], [0.5, 1.0]), np.array([1.0, 2.0])
    expected = -(G @ h) / (G @ M @ G) * G
    np.testing.assert_allclose(model.forward_dynamics([0.1, 0.2], [0.5, 1.0], np.zeros(2)), expected, rtol=1e-12)


@pytest.mark.plain_python
def test_mimic_joints_have_the_dynamics_of_pinocchios_mimic_joints(write):
    """Pinocchio eliminates the coordinates of mimic joints."""
    robot = mimicking("hinge", name="mime")  # Pinocchio expects mimic joints after others in the order of their names
    path = write(mimicking("hinge", 'multiplier="6" offset="0.1"', "puppet", "prismatic", robot))
    model, engine = rb.load(path), pin.buildModelFromUrdf(str(path), True)
    engine.gravity.linear = np.array([0.0, 0.0, -9.81])
    data = engine.createData()
    ratios = np.array([1.0, 2.0, 6.0])
    q, qd = np.array([0.3, 0.6, 1.9]), 0.7 * ratios
    assert (engine.nq, engine.nv) == (1, 1)
    M = float(pin.crba(engine, data, q[:1]).item())
    h = float(pin.rnea(engine, data, q[:1], qd[:1], np.zeros(1)).item())
    tau = np.array([1.5, -0.4, 0.2])
    expected = (ratios @ tau - h) / M * ratios
    np.testing.assert_allclose(model.forward_dynamics(q, qd, tau), expected, rtol=1e-11)


@pytest.mark.parametrize(
    ("numbers", "kind"), [('multiplier="0"', "revolute"), ("", "floating"), ('multiplier="2"', "planar")]
)
def test_ignored_mimic_joints_are_named(write, numbers, kind):
    with pytest.warns(UserWarning, match=rf"rbchain ignores <mimic> of joints .*: 'ape' \({kind}\) mimics 'hinge'"):
        assert rb.load(write(mimicking("hinge", numbers, kind=kind))).constraint_names == ()


def test_the_mimic_of_a_fixed_joint_has_no_effect(write):
    assert rb.load(write(mimicking("hinge", kind="fixed"))).constraint_names == ()


def test_joints_that_mimic_each_other_in_a_cycle_are_refused(write):
    text = mimicking("clown", name="ape", robot=mimicking("ape", name="clown"))
    with pytest.raises(rb.FileFormatError, match=r"the joints \['clown', 'ape'\] mimic each other in a cycle; remove"):
        rb.load(write(text))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ('multiplier="two"', "the attribute multiplier of <mimic> is 'two'; expected 1 finite number"),
        ('offset="nan"', "the attribute offset of <mimic> is 'nan'; expected 1 finite number"),
        ('/><mimic joint="hinge"', "joint 'ape' has 2 <mimic> elements; expected at most one"),
    ],
)
def test_an_invalid_mimic_is_refused(write, numbers, message):
    with pytest.raises(rb.FileFormatError, match=message):
        rb.load(write(mimicking("hinge", numbers)))


@pytest.mark.parametrize("missing", ["hing", "", "ape"])
def test_a_mimic_of_an_unknown_joint_is_refused(write, missing):
    """A joint cannot mimic itself either."""
    with pytest.raises(
        rb.FileFormatError, match=f"sample.urdf: joint 'ape' mimics joint '{missing}'; expected another"
    ):
        rb.load(write(mimicking(missing)))


def test_a_mimic_without_a_joint_is_refused(write):
    with pytest.raises(rb.FileFormatError, match=r"sample.urdf: joint 'ape' mimics joint None; expected another"):
        rb.load(write(mimicking("hinge").replace('mimic joint="hinge"', "mimic")))


# --- the Puma ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def puma():
    with pytest.warns(UserWarning, match="link3"):
        return rb.load(PUMA)


def test_the_puma_has_six_joints_and_its_published_mass(puma):
    assert puma.n_bodies == puma.nq == puma.nv == 6
    assert puma.joint_types == ("revolute",) * 6
    assert puma.mass[1:].sum() == pytest.approx(23.45, abs=1e-12)
    assert puma.mass[0] == 0.0


def test_the_tool_of_the_puma_is_a_frame_on_the_last_link(puma):
    assert puma.fixed_frames["tool0"] == 5
    q = np.array([0.1, -0.4, 0.8, 0.3, -0.6, 1.0])
    tool, wrist = puma.frame_poses(q, "tool0"), puma.frame_poses(q, "link6")
    np.testing.assert_allclose(tool.rotation, wrist.rotation, atol=4 * EPS)
    np.testing.assert_allclose(tool.translation, wrist.translation + 0.0558 * wrist.rotation[:, 2], atol=4 * EPS)


def test_the_tool_pose_of_the_puma_agrees_with_pinocchio(puma):
    q = np.array([0.1, -0.4, 0.8, 0.3, -0.6, 1.0])
    engine = pin.buildModelFromUrdf(str(PUMA))
    data = engine.createData()
    pin.framesForwardKinematics(engine, data, q)
    tool, expected = puma.frame_poses(q, "tool0"), data.oMf[engine.getFrameId("tool0")]
    np.testing.assert_allclose(tool.translation, expected.translation, atol=20 * EPS)
    np.testing.assert_allclose(tool.rotation, expected.rotation, atol=20 * EPS)


# --- robots as they are published -------------------------------------------------------------------------------------


def published_robots():
    """Folder of the robots of the package example-robot-data, or None."""
    inside = "cmeel.prefix/share/example-robot-data/robots"
    for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}:
        if (found := Path(place) / inside).is_dir():
            return found
    return None


ROBOTS = published_robots()
FILES = sorted(path.relative_to(ROBOTS).as_posix() for path in ROBOTS.glob("**/*.urdf")) if ROBOTS else []

#: Files that rbchain refuses correctly.
NOTHING_MOVES = {"hector_description/robots/quadrotor_base.urdf", "iris_description/robots/iris_simple.urdf"}
NO_URDF = {"ur_description/urdf/ur3.urdf"}  # the empty shell of a xacro macro: it has no link
#: Loaded, but with massless fingers at the ends of the arms: no acceleration follows from a force on them.
MASSLESS_TIPS = {"romeo_description/urdf/romeo.urdf", "romeo_description/urdf/romeo_laas_small.urdf"}
#: Its left fingers mimic joints that have other names in the file.
MIMICS_NOTHING = {"alex_description/urdf/alex_psyonic_hands.urdf"}
LOADABLE = [name for name in FILES if name not in NOTHING_MOVES | NO_URDF | MIMICS_NOTHING]


def load_published(name):
    """Load a robot without the couplers of its mimic joints. The tests above check the warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return rb.load(ROBOTS / name).open_tree()


def test_the_published_robots_are_found():
    assert len(FILES) > 50
    assert set(FILES) >= NOTHING_MOVES | NO_URDF | MIMICS_NOTHING | MASSLESS_TIPS
    assert len(LOADABLE) >= 65


@pytest.mark.parametrize("name", sorted(NOTHING_MOVES))
def test_a_robot_without_moving_joints_is_refused(name):
    assert pin.buildModelFromUrdf(str(ROBOTS / name)).nv == 0
    with pytest.raises(rb.ModelError, match="has no moving body: all its joints are fixed"):
        load_published(name)


@pytest.mark.parametrize("name", sorted(NO_URDF))
def test_an_empty_macro_shell_is_refused(name):
    assert "<link" not in (ROBOTS / name).read_text()
    with pytest.raises(rb.FileFormatError, match=r"ur3.*: the file has no <link> elements; expected .* xacro"):
        load_published(name)


@pytest.mark.parametrize("name", sorted(MIMICS_NOTHING))
def test_a_robot_that_mimics_missing_joints_is_refused(name):
    with pytest.raises(rb.FileFormatError, match="'Left_index_q2' mimics joint 'index_q1'; expected another joint"):
        load_published(name)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("tiago_description/robots/tiago.urdf", "base_antenna_left_link"),
        ("romeo_description/urdf/romeo_laas_small.urdf", "LHipPitch_link"),
    ],
)
def test_links_of_published_robots_with_a_negative_moment_are_named(name, link):
    with pytest.warns(UserWarning, match=rf"the inertia of \[.*'{link}'.*\] has a negative principal moment"):
        rb.load(ROBOTS / name)


class Engine:
    """Pinocchio's own reading of the file, in rbchain's numbering of the joints."""

    def __init__(self, path, model):
        self.model = pin.buildModelFromUrdf(str(path))
        self.model.gravity.linear = np.array([0.0, 0.0, -9.81])
        self.data = self.model.createData()
        self.joints = [self.model.joints[self.model.getJointId(name)] for name in model.joint_names]
        self.order = np.array([joint.idx_v for joint in self.joints])

    def configuration(self, q):
        result = np.zeros(self.model.nq)
        for joint, angle in zip(self.joints, q, strict=True):
            result[joint.idx_q : joint.idx_q + joint.nq] = angle if joint.nq == 1 else (np.cos(angle), np.sin(angle))
        return result

    def put(self, values):
        result = np.zeros(self.model.nv)
        result[self.order] = values
        return result

    def mass_matrix(self, q):
        upper = np.triu(pin.crba(self.model, self.data, self.configuration(q)))
        return (upper + np.triu(upper, 1).T)[np.ix_(self.order, self.order)]

    def inverse_dynamics(self, q, qd, qdd):
        state = self.configuration(q), self.put(qd), self.put(qdd)
        return pin.rnea(self.model, self.data, *state)[self.order]

    def forward_dynamics(self, q, qd, tau):
        state = self.configuration(q), self.put(qd), self.put(tau)
        return pin.aba(self.model, self.data, *state)[self.order]


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADABLE)
def test_joints_and_mass_of_a_published_robot_agree_with_pinocchio(name):
    model = load_published(name)
    engine = pin.buildModelFromUrdf(str(ROBOTS / name))
    assert sorted(model.joint_names) == sorted(engine.names[1:])
    assert model.nv == engine.nv
    moving = sum(inertia.mass for inertia in list(engine.inertias)[1:])
    assert model.mass.sum() == pytest.approx(moving, rel=1e-13)
    for joint, mass in zip(model.joint_names, model.mass, strict=True):
        assert mass == pytest.approx(engine.inertias[engine.getJointId(joint)].mass, rel=1e-13, abs=0)


# Two engines and two readers (angles to matrices, merged bodies), each with about 16 rounding errors per body.
ROUNDINGS = 4 * 8


@pytest.mark.parametrize("name", LOADABLE)
def test_dynamics_of_a_published_robot_agree_with_pinocchio(name):
    """The error allowed follows from the round-off of both readers and engines and the inverse of the mass matrix."""
    model = load_published(name)
    engine = Engine(ROBOTS / name, model)
    n = model.nv
    q, qd, qdd, tau = np.random.default_rng(n).uniform(-1, 1, (4, n))
    H = engine.mass_matrix(q)

    def force_scale(acceleration):
        rest = engine.inverse_dynamics(q, np.zeros(n), np.zeros(n))
        coriolis = engine.inverse_dynamics(q, qd, np.zeros(n)) - rest
        return max(np.abs(part).max() for part in (np.abs(H) @ np.abs(acceleration), rest, coriolis, tau))

    found, expected = model.inverse_dynamics(q, qd, qdd), engine.inverse_dynamics(q, qd, qdd)
    assert np.abs(found - expected).max() <= ROUNDINGS * n * EPS * force_scale(qdd)

    if name in MASSLESS_TIPS:
        massless = [name for name, diagonal in zip(model.body_names, np.diag(H), strict=True) if diagonal == 0.0]
        assert massless
        assert list(model.bodies_without_inertia) == massless
        with pytest.raises(rb.ModelError, match=re.escape(f"resists the motion of {massless}")):
            model.forward_dynamics(q, qd, tau)
        return
    assert model.bodies_without_inertia == ()
    found, expected = model.forward_dynamics(q, qd, tau), engine.forward_dynamics(q, qd, tau)
    assert np.isfinite(found).all()
    amplification = np.linalg.norm(np.linalg.inv(H), np.inf)
    assert np.abs(found - expected).max() <= ROUNDINGS * n * EPS * amplification * force_scale(expected)
