"""URDF files: versions, elements of other programs, and the single warning about everything else."""

import re
import warnings

import numpy as np
import pinocchio as pin
import pytest

import rbchain as rb

pytestmark = pytest.mark.plain_python
EPS = np.finfo(float).eps
INERTIAL = (
    '<inertial><origin xyz="0.1 0.02 0.3"/><mass value="2"/>'
    '<inertia ixx="0.2" iyy="0.3" izz="0.25" ixy="0.01" ixz="0.02" iyz="0.03"/></inertial>'
)
LIMIT = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'
QUATERNION = 'quat_xyzw="0.1 -0.2 0.3 0.9"'


def arm(
    link=INERTIAL,
    joint=LIMIT,
    extra="",
    head="",
    robot='<robot name="r">',
    root="base",
    name="j",
    kind="revolute",
    origin='<origin xyz="0 0 1"/>',
):
    """A pendulum: a root link, a rod, and a joint about y."""
    return (
        f'{head}{robot}<link name="{root}"/><link name="rod">{link}</link><joint name="{name}" type="{kind}">'
        f'<parent link="{root}"/><child link="rod"/>{origin}<axis xyz="0 1 0"/>{joint}</joint>{extra}</robot>'
    )


def second(joint="", name="k", kind="continuous", tag="joint"):
    """A second rod at the end of the first one."""
    return (
        f'<link name="rod2">{INERTIAL}</link><{tag} name="{name}" type="{kind}"><parent link="rod"/>'
        f'<child link="rod2"/><origin xyz="0 0 0.5"/><axis xyz="0 1 0"/>{joint}</{tag}>'
    )


@pytest.fixture
def load(tmp_path):
    """A function that loads a text; it returns the model and its only warning without the name of the file."""

    def load(text, name="m.urdf", **options):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = rb.load(file, **options)
        assert len(caught) <= 1
        assert all(str(warning.message).startswith(f"{file}: ") for warning in caught)
        assert all(warning.filename == __file__ for warning in caught)
        return model, "".join(str(warning.message).removeprefix(f"{file}: ") for warning in caught)

    return load


# --- versions of URDF -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize(
    "fields",
    [
        {"origin": f'<origin xyz="0 0 1" {QUATERNION}/>'},
        {"link": INERTIAL.replace('xyz="0.1 0.02 0.3"', f'xyz="0.1 0.02 0.3" {QUATERNION}')},
    ],
    ids=["joint", "inertia"],
)
def test_quaternions_are_read_as_by_pinocchio(load, version, fields):
    """Version 1.0 has no quaternions, so Pinocchio ignores them there."""
    text = arm(robot=f'<robot name="r" version="{version}">', **fields)
    model, said = load(text)
    engine = pin.buildModelFromXML(text)
    engine.gravity.linear = np.array([0.0, 0.0, -9.81])
    place, inertia = engine.jointPlacements[1], engine.inertias[1]
    np.testing.assert_allclose(model.placement_rotation[0], place.rotation, atol=8 * EPS)
    np.testing.assert_allclose(model.inertia[0], inertia.inertia, atol=8 * EPS)
    expected = pin.aba(engine, engine.createData(), *(np.array([x]) for x in (0.4, -0.7, 1.5)))
    np.testing.assert_allclose(model.forward_dynamics([0.4], [-0.7], [1.5]), expected, rtol=1e-13)
    ignored = 'version 1.0 of URDF does not have quat_xyzw, so they are ignored; set version="1.1" in <robot>'
    assert said.startswith(ignored) if version == "1.0" else said == ""


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ('rpy="0 0 0" quat_xyzw="0 0 0 1"', "joint 'j': <origin> has both rpy and quat_xyzw; remove one of the two"),
        ('quat_xyzw="0 0 0 0"', "quat_xyzw is '0 0 0 0'; expected a non-zero quaternion"),
        ('quat_xyzw="0 0 1"', "the attribute quat_xyzw of <origin> is '0 0 1'; expected 4 finite numbers"),
        ('quat_xyzw="0 0 nan 1"', "expected 4 finite numbers"),
    ],
)
def test_an_invalid_quaternion_is_refused(load, origin, message):
    with pytest.raises(rb.FileFormatError, match=message):
        load(arm(robot='<robot version="1.1">', origin=f"<origin {origin}/>"))


LIMITS_OF_1_2 = LIMIT.replace("/>", ' acceleration="3" deceleration="4" jerk="50"/>')


def test_limits_of_acceleration_and_jerk_are_read_and_written(load, tmp_path):
    model, said = load(arm(joint=LIMITS_OF_1_2, robot='<robot version="1.2">'))
    assert said == ""
    for name in ("again.urdf", "again.toml"):
        rb.save(model, tmp_path / name)
        for found in (model, rb.load(tmp_path / name)):
            limits = found.acceleration_limit[0], found.deceleration_limit[0], found.jerk_limit[0]
            assert limits == (3.0, 4.0, 50.0)
    assert pin.buildModelFromUrdf(str(tmp_path / "again.urdf")).nv == 1
    with pytest.warns(UserWarning, match="omits: .*the acceleration limit of joint 'j', the deceleration limit"):
        rb.save(model, tmp_path / "again.xml")


def test_the_limit_of_deceleration_is_that_of_acceleration_by_default(load):
    text = arm(joint=LIMIT.replace("/>", ' acceleration="3"/>'), robot='<robot version="1.2">')
    assert load(text)[0].deceleration_limit.tolist() == [3.0]


@pytest.mark.parametrize("limits", [rb.JointLimits(acceleration=3.0), rb.JointLimits(deceleration=4.0)])
def test_limits_of_acceleration_and_deceleration_are_kept_apart(tmp_path, limits):
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body("rod", joint=rb.Prismatic(), inertia=rb.Inertia(1.0), limits=limits)
    model = builder.build()
    for name in ("m.urdf", "m.toml"):
        rb.save(model, tmp_path / name)
        np.testing.assert_array_equal(rb.load(tmp_path / name).description.limits, model.description.limits)


def test_limits_of_a_later_version_are_named(load):
    model, said = load(arm(joint=LIMITS_OF_1_2))
    assert np.isinf(model.acceleration_limit[0])
    assert said.startswith("version 1.0 of URDF does not have acceleration, deceleration, jerk, so they are")


@pytest.mark.parametrize(("version", "read_as"), [("2.0", "1.2"), ("1.3", "1.2"), ("1", "1.0"), ("new", "1.0")])
def test_an_unknown_version_is_named(load, version, read_as):
    _, said = load(arm(robot=f'<robot version="{version}">'))
    assert f"the version of URDF is '{version}'; expected one of '1.0', '1.1', '1.2'. It is read as {read_as}" in said


def test_a_capsule_is_read_and_written(load, tmp_path):
    shape = '<visual><geometry><capsule radius="0.1" length="0.3"/></geometry></visual>'
    model, said = load(arm(link=INERTIAL + shape))
    rb.save(model, tmp_path / "again.urdf")
    again = rb.load(tmp_path / "again.urdf")
    assert said == ""
    assert [(look.shape, look.size) for found in (model, again) for look in found.visuals["rod"]] == [
        ("capsule", (0.1, 0.3))
    ] * 2
    assert 'version="1.1"' in (tmp_path / "again.urdf").read_text()


# --- XML that other programs read -------------------------------------------------------------------------------------

GAZEBO = '<gazebo reference="rod"><sensor:camera name="c"><updateRate>20</updateRate></sensor:camera></gazebo>'
TOLERATED = {
    "version 0.0": arm(head='<?xml version="0.0"?>'),
    "version 2.0 after a comment": arm(head='\n<!-- <?xml?> -->\n<?xml version="2.0" encoding="UTF-8"?>'),
    "mark of byte order": b"\xef\xbb\xbf" + arm(head='<?xml version="1.1"?>').encode(),
    "UTF-16": arm(head='<?xml version="1.0" encoding="UTF-16"?>').encode("utf-16"),
    "Latin-1": arm(head='<?xml version="0.0" encoding="latin-1"?><!-- Länge -->').encode("latin-1"),
    "undeclared prefix": arm(extra=GAZEBO),
    "default name space": arm(robot='<robot xmlns="http://www.ros.org" name="r">'),
    "default name space and undeclared prefix": arm(robot='<robot xmlns="http://www.ros.org" name="r">', extra=GAZEBO),
    "declared prefix": arm(robot='<robot xmlns:sensor="http://example.org" name="r">', extra=GAZEBO),
}


@pytest.mark.parametrize("text", TOLERATED.values(), ids=TOLERATED)
@pytest.mark.parametrize("name", ["m.urdf", "m.xml", "m.urdf.xacro"])
def test_xml_that_other_programs_read_is_read(load, text, name):
    model, said = load(text, name)
    expected, _ = load(arm())
    assert said == ""
    assert model.forward_dynamics([0.3], [0.2], [0.1]) == expected.forward_dynamics([0.3], [0.2], [0.1])
    assert (model.joint_names, model.velocity_limit.tolist()) == (("j",), [2.0])


@pytest.mark.parametrize(
    "text",
    [
        arm(head='<?xml version="0.0"?>\n').replace("</robot>", "</robt>"),
        arm(head="<!-- generated by xacro -->\n", robot='<robot xmlns:xacro="http://ros.org">') + "<robot/>",
        arm(head="\n", extra=GAZEBO).replace('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0">'),
        arm(head="\n", joint='<dynamics damping="1" damping="2"/>'),
    ],
    ids=["tag", "two roots", "prefix and tag", "attribute"],
)
def test_malformed_xml_is_refused_with_its_place_and_no_other_hint(load, text, tmp_path):
    with pytest.raises(rb.FileFormatError, match=r"not well-formed XML: .*, line 2, column \d+$") as caught:
        load(text)
    assert not {"xacro", "Namespace", "version"} & set(re.findall(r"\w+", str(caught.value).replace(str(tmp_path), "")))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.xml", "<sf/>", "the root element is <sf>; expected <mujoco> .MJCF., <robot> .URDF. or <sdf>"),
        ("m.urdf", "<!DOCTYPE html><html><body>404</body></html>", "the root element is <html>; expected <robot>$"),
        ("m.urdf", "<robt/>", "the root element is <robt>; expected <robot>; did you mean robot?"),
        ("m.xml", '<robot><link name="a"/><link name="b"/></robot>', "2 links have no parent joint"),
    ],
)
def test_the_root_element_decides_how_a_file_is_read(load, name, text, message):
    with pytest.raises(rb.FileFormatError, match=message):
        load(text, name)


def test_an_mjcf_named_urdf_is_read_as_mjcf(load):
    text = "<mujoco><worldbody><body name='b'><joint name='j'/><geom size='1' contype='0'/></body></worldbody></mujoco>"
    assert load(text, "m.urdf")[0].joint_names == ("j",)


def test_a_urdf_named_xml_may_have_a_free_base(load):
    assert load(arm(), "m.xml", base=rb.Free())[0].nv == 7


# --- xacro ------------------------------------------------------------------------------------------------------------

MACRO = '<xacro:macro name="leg" params="side"><link name="${side}"/></xacro:macro>'
USES_XACRO = {
    "call of a macro": (MACRO + '<xacro:leg side="left"/>', "the file uses <xacro:leg> in line 1"),
    "include": ('<xacro:include filename="leg.xacro"/>', "the file uses <xacro:include> in line 1"),
    "condition": ('<xacro:if value="true"/>', "the file uses <xacro:if>"),
    "name": ('<link name="${side}"/>', "name of <link> in line 1 is '${side}'; expected a name"),
    "number": (second('<dynamics damping="$(arg d)"/>'), "the attribute damping of <dynamics> is '$(arg d)'"),
}


@pytest.mark.parametrize(("extra", "message"), USES_XACRO.values(), ids=USES_XACRO)
@pytest.mark.parametrize(
    ("name", "expanded"),
    [("my arm.urdf.xacro", "my arm.urdf"), ("arm.xacro", "arm.urdf"), ("arm.urdf", "arm_expanded.urdf")],
)
def test_a_file_that_uses_xacro_is_refused_with_the_command_that_expands_it(
    load, tmp_path, extra, message, name, expanded
):
    extra += '<joint name="x" type="fixed"><parent link="rod"/><child link="${side}"/></joint>' * ("{side}" in message)
    with pytest.raises(rb.FileFormatError) as caught:
        load(arm(extra=extra), name)
    quote = "'" if " " in name else ""
    command = f"xacro {quote}{tmp_path / name}{quote} > {quote}{tmp_path / expanded}{quote}"
    assert message in str(caught.value)
    assert str(caught.value).endswith(f"expand its macros with the program xacro: {command}")


def test_definitions_of_xacro_that_nothing_uses_have_no_effect(load):
    assert (
        load(arm(extra=MACRO + '<xacro:property name="pi" value="3"/><xacro:arg name="a" default="${pi}"/>'))[1] == ""
    )


def test_a_call_that_xacro_cannot_expand_is_named(load):
    _, said = load(arm(extra='<xacro:leg side="left"/><xacro:leg side="right"/>'))
    assert said == "omitted from the model: <xacro:leg>, a macro of xacro that the file does not define"


# --- misspelled, repeated and unknown names ---------------------------------------------------------------------------

UNKNOWN = "unknown names, which are ignored: "
NAMED = {
    "attribute": (
        {"joint": LIMIT + '<dynamics dampng="0.7"/>'},
        UNKNOWN + "attribute 'dampng' of <dynamics>: did you mean damping? (joint 'j')",
    ),
    "capital letter": (
        {"joint": LIMIT + '<dynamics Damping="0.7"/>'},
        UNKNOWN + "attribute 'Damping' of <dynamics>: did you mean damping? (joint 'j')",
    ),
    "element": (
        {"joint": LIMIT + '<dinamics damping="0.7"/>'},
        UNKNOWN + "<dinamics> in <joint>: did you mean dynamics? (joint 'j')",
    ),
    "unknown": (
        {"link": INERTIAL + "<gravity>0</gravity>", "extra": second('<motor gear="2"/>')},
        UNKNOWN + "<motor> in <joint> (joint 'k'), <gravity> in <link> (link 'rod')",
    ),
    "in many joints": (
        {
            "extra": "".join(
                f'<link name="l{i}">{INERTIAL}</link><joint name="k{i}" type="continuous"><parent link="rod"/>'
                f'<child link="l{i}"/><limit torque="1"/></joint>'
                for i in range(6)
            )
        },
        UNKNOWN + "attribute 'torque' of <limit> (joint 'k5', joint 'k4', joint 'k3' and 3 more)",
    ),
    "inertial twice": (
        {"link": INERTIAL + INERTIAL.replace('"2"', '"3"')},
        "link 'rod' has 2 <inertial> elements, of which the first one is used",
    ),
    "mass twice": (
        {"link": INERTIAL.replace("</inertial>", '<mass value="3"/></inertial>')},
        "link 'rod' has 2 <mass> elements, of which the first one is used",
    ),
    "origin twice": (
        {"origin": '<origin xyz="0 0 1"/><origin xyz="0 0 2"/>'},
        "joint 'j' has 2 <origin> elements, of which the first one is used",
    ),
    "no tensor": (
        {"link": '<inertial><origin xyz="0.1 0 0.3"/><mass value="2"/></inertial>'},
        "links 'rod' have no <inertia>, so their masses are points",
    ),
    "old dynamics": (
        {"joint": '<joint_properties damping="3" friction="1"/>'},
        "omitted from the model: <joint_properties> (joint 'j')",
    ),
    "settings of Gazebo": (
        {
            "extra": '<gazebo><plugin name="p" filename="libmimic.so"/><static>false</static></gazebo>'
            '<gazebo reference="rod"><turnGravityOff>true</turnGravityOff><mu1>0.3</mu1></gazebo>'
        },
        "omitted from the model: <plugin> in <gazebo> ('libmimic.so'), <turnGravityOff> in <gazebo> ('rod')",
    ),
    "drag of Gazebo": (
        {
            "extra": '<gazebo reference="rod"><velocity_decay><linear>0</linear><angular>0.5</angular></velocity_decay>'
            "</gazebo>"
        },
        "omitted from the model: <velocity_decay> in <gazebo> ('rod')",
    ),
    "drag of Gazebo as attributes": (
        {"extra": '<gazebo reference="rod"><velocity_decay linear="0.1" angular="0"/></gazebo>'},
        "omitted from the model: <velocity_decay> in <gazebo> ('rod')",
    ),
    "a loop of Gazebo": (
        {"extra": '<gazebo><joint name="loop" type="revolute"><parent>rod</parent></joint></gazebo>'},
        "omitted from the model: <joint> in <gazebo> ('loop')",
    ),
    "springs between links": (
        {"extra": '<force_element name="s"><linear_spring_damper stiffness="3"/></force_element>'},
        "omitted from the model: <linear_spring_damper> in <force_element> ('s')",
    ),
    "settings of MuJoCo": ({"extra": "<mujoco><compiler balanceinertia='true'/></mujoco>"}, "<mujoco>"),
    "soft bodies of PyBullet": ({"extra": '<deformable name="d"/>'}, "<deformable> (deformable 'd')"),
    "scaled inertias of PyBullet": (
        {"link": INERTIAL + '<contact><lateral_friction value="1"/><inertia_scaling value="3"/></contact>'},
        "omitted from the model: <inertia_scaling> (link 'rod')",
    ),
    "forces of a floating joint": (
        {"kind": "floating", "joint": '<dynamics damping="3"/>'},
        "omitted from the model: <dynamics> of floating joints ('j')",
    ),
}


@pytest.mark.parametrize(("fields", "message"), NAMED.values(), ids=NAMED)
def test_one_warning_names_what_is_misspelled_repeated_or_left_out(load, fields, message):
    model, said = load(arm(**fields))
    assert message in said
    assert model.mass[0] == 2.0


MISSPELLED = {
    "link": (arm().replace('<link name="base"/>', '<lnk name="base"/>'), "did you mean link?"),
    "parent": (arm().replace("<parent ", "<prent "), "0 <parent> elements.*<prent> in <joint>: did you mean parent?"),
    "value": (arm().replace("<mass value", "<mass vlue"), "value of <mass> is missing.*'vlue' of <mass>: did you mean"),
    "exchanged letters": (
        arm().replace('<axis xyz="0 1 0"/>', '<axis xzy="0 1 0"/>'),
        "attribute xyz of <axis> is missing; .*'xzy' of <axis>: did you mean xyz?",
    ),
    "type": (arm(kind="revolut"), "the type of joint 'j' is 'revolut'; .*did you mean revolute?"),
    "reference": (arm().replace('<child link="rod"/>', '<child link="rd"/>'), "refers to link 'rd'.*did you mean rod?"),
    "mimic": (
        arm(name="elbow", extra=second('<mimic joint="lbow"/>')),
        "mimics joint 'lbow'; .*did you mean elbow?",
    ),
}


@pytest.mark.parametrize(("text", "message"), MISSPELLED.values(), ids=MISSPELLED)
def test_an_error_suggests_the_right_spelling(load, text, message):
    with pytest.raises(rb.FileFormatError, match=message):
        load(text)


SILENT = {
    "controllers": '<transmission name="t"><type>Simple</type><joint name="j"/></transmission><ros2_control name="x"/>',
    "collisions": '<material name="m"/><gazebo reference="rod"><mu1>1</mu1><selfCollide>true</selfCollide></gazebo>',
    "no drag": '<gazebo reference="rod"><velocity_decay><linear>0.0</linear><!-- 0.5 --></velocity_decay></gazebo>',
    "an empty pose": "<gazebo><pose>0 0 0.0 0 0 0</pose><static>0</static></gazebo>",
}


@pytest.mark.parametrize("extra", SILENT.values(), ids=SILENT)
def test_elements_without_effect_give_no_warning(load, extra):
    assert load(arm(extra=extra, joint=LIMIT + '<safety_controller k_velocity="1"/>'))[1] == ""


# --- elements of other programs ---------------------------------------------------------------------------------------

SPRINGS = {
    "Drake": (
        "",
        '<force_element name="s"><torsional_spring stiffness="23" rest_angle="0.4"><joint name="j"/>'
        "</torsional_spring></force_element>",
    ),
    "Gazebo": (
        "",
        '<gazebo reference="j"><springStiffness>23</springStiffness><springReference>0.4</springReference></gazebo>',
    ),
    "Gazebo, in two elements": (
        "",
        '<gazebo reference="j"><springStiffness>23</springStiffness></gazebo>'
        '<gazebo reference="j"><springReference>0.4</springReference></gazebo>',
    ),
    "attributes": ('<dynamics damping="0" spring_stiffness="23" spring_reference="0.4"/>', ""),
    "two in parallel": (
        '<dynamics spring_stiffness="3" spring_reference="-0.2"/>',
        f'<gazebo reference="j"><springStiffness value="20"/><springReference value="{9.8 / 20}"/></gazebo>',
    ),
}


@pytest.mark.parametrize(("joint", "extra"), SPRINGS.values(), ids=SPRINGS)
def test_springs_of_joints_act(load, joint, extra):
    """The moment is k (q0 - q); two springs have the sum of their moments, here 23 * 0.4 at q = 0."""
    model, said = load(arm(joint=LIMIT + joint, extra=extra))
    assert said == ""
    np.testing.assert_allclose(model.passive_forces([1.0], [0.0]), [23 * (0.4 - 1.0)], rtol=4 * EPS)


def test_a_spring_at_a_joint_without_an_angle_is_named(load):
    text = arm(kind="spherical", extra='<gazebo reference="j"><springStiffness>2</springStiffness></gazebo>')
    assert "springs that are not at a joint with one degree of freedom (joint 'j')" in load(text)[1]


def test_rotors_of_drake_act(load):
    """The reflected inertia is the inertia of the rotor times the square of the gear ratio."""
    extra = (
        '<transmission name="t"><joint name="j"/><actuator name="a"><drake:rotor_inertia value="0.01"/>'
        '<drake:gear_ratio value="9"/></actuator></transmission>'
    )
    (model, said), (plain, _) = load(arm(extra=extra)), load(arm())
    assert said == ""
    np.testing.assert_allclose(model.mass_matrix([0.3]), plain.mass_matrix([0.3]) + 0.81, rtol=4 * EPS)


FRAMES = {
    "Drake": '<frame name="tip" link="rod" xyz="0 0 0.3" rpy="0.1 0 0"/>',
    "Isaac Sim": '<fixed_frame name="tip"><parent link="rod"/><origin xyz="0 0 0.3" rpy="0.1 0 0"/></fixed_frame>',
}


@pytest.mark.parametrize("extra", FRAMES.values(), ids=FRAMES)
def test_frames_are_read(load, extra):
    model, said = load(arm(extra=extra))
    link = '<link name="tip"/><joint name="t" type="fixed"><parent link="rod"/><child link="tip"/>{}</joint>'
    expected, _ = load(arm(extra=link.format('<origin xyz="0 0 0.3" rpy="0.1 0 0"/>')))
    found, right = (x.frame_poses([0.7], "tip") for x in (model, expected))
    assert said == ""
    np.testing.assert_array_equal(found.translation, right.translation)
    np.testing.assert_array_equal(found.rotation, right.rotation)


def test_a_frame_with_the_name_of_a_link_is_named(load):
    assert (
        "frames with the name of a link or another frame ('rod')"
        in load(arm(extra='<frame name="rod" link="rod"/>'))[1]
    )


ENDS = '<link1 link="base" xyz="0.2 0 0"/><{} link="rod2" xyz="0 0 0.5" rpy="0 0.3 0"/>'
LOOPS = {"spherical": 3, "ball": 3, "continuous": 5, "revolute": 5, "fixed": 6}


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("tag", ["link2", "link1"])  # Isaac Sim repeats <link1>
def test_a_loop_joint_becomes_a_constraint(load, kind, tag):
    loop = f'<loop_joint name="loop" type="{kind}"><axis xyz="0 1 0"/>{ENDS.format(tag)}</loop_joint>'
    model, said = load(arm(extra=second() + loop))
    assert said == ""
    assert model.constraint_names == ("loop",)
    a, b = 0.4, -1.1
    residual = model.constraint_residual([a, b])
    # rod 1 begins at (0, 0, 1), and rod 2 after 0.5 m; both turn about y
    point = [0.5 * np.sin(a) + 0.5 * np.sin(a + b), 0.0, 1.0 + 0.5 * np.cos(a) + 0.5 * np.cos(a + b)]
    assert residual.shape == (LOOPS[kind],)
    np.testing.assert_allclose(residual[:3], np.subtract(point, [0.2, 0.0, 0.0]), atol=4 * EPS)
    if kind == "fixed":
        np.testing.assert_allclose(residual[3:], [0.0, np.sin(a + b + 0.3), 0.0], atol=4 * EPS)
    else:
        np.testing.assert_allclose(residual[3:], 0.0, atol=4 * EPS)


def test_a_loop_that_is_no_constraint_is_named(load):
    loop = f'<loop_joint name="loop" type="prismatic">{ENDS.format("link2")}</loop_joint>'
    model, said = load(arm(extra=second() + loop))
    assert said == "omitted from the model: <loop_joint> of type 'prismatic' ('loop')"
    assert model.constraint_names == ()


def test_a_ball_constraint_of_drake_is_read(load):
    prefix = "drake:ball_constraint"
    text = (
        f'<{prefix}><{prefix}_body_A name="rod"/><{prefix}_body_B name="base"/><{prefix}_p_AP value="0 0 0.5"/>'
        f'<{prefix}_p_BQ value="0 0 1.5"/></{prefix}>'
    )
    model, said = load(arm(extra=text))
    assert said == ""
    np.testing.assert_allclose(model.constraint_residual([0.0]), np.zeros(3), atol=EPS)


@pytest.mark.parametrize(
    ("kind", "found", "more"),
    [
        ("ball", "spherical", ""),
        ("universal", "universal", ""),
        ("planar", "planar", ""),
        ("screw", "screw", '<drake:screw_thread_pitch value="0.05"/>'),
    ],
)
def test_joints_of_drake_are_read(load, kind, found, more):
    model, said = load(arm(extra=second(more, kind=kind, tag="drake:joint")))
    assert said == ""
    assert model.joint_types == ("revolute", found)
    if kind == "screw":  # the thread pitch is the advance per turn
        assert model.pitch[1] == pytest.approx(0.05 / (2 * np.pi), rel=EPS)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ('<frame name="tip" link="rd"/>', "frame 'tip' refers to link 'rd'; expected a link .*; did you mean rod?"),
        ('<frame name="tip" link="rod" xyz="1 2"/>', "xyz of <frame> is '1 2'; expected 3 finite numbers"),
        ('<fixed_frame name="tip"/>', "fixed_frame 'tip' has no <parent>"),
        ('<loop_joint name="l"><link1 link="rod"/></loop_joint>', "has 1 elements <link1> and <link2>; expected two"),
        ("<drake:ball_constraint/>", r"<drake:ball_constraint> has \[\]; expected"),
        (
            '<gazebo reference="j"><springStiffness>stiff</springStiffness></gazebo>',
            "<springStiffness> in <gazebo>: value is 'stiff'; expected 1 finite number",
        ),
    ],
)
def test_an_invalid_extension_is_refused(load, extra, message):
    with pytest.raises(rb.FileFormatError, match=message):
        load(arm(extra=extra))


# --- names, limits and inertias ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [None, rb.Free()], ids=["fixed", "free"])
def test_a_joint_may_have_the_name_of_the_root_link(load, base):
    model, said = load(
        arm(name="base", link=INERTIAL).replace('<link name="base"/>', f'<link name="base">{INERTIAL}</link>'),
        base=base,
    )
    assert model.joint_names[-1] == "base"
    assert ("the joint of the root link has the name 'base_'" in said) == (base is not None)


def test_a_fixed_joint_may_have_the_name_of_the_root_link(load):
    tool = '<link name="tool"/><joint name="base" type="fixed"><parent link="rod"/><child link="tool"/></joint>'
    assert load(arm(extra=tool))[0].fixed_frames == {"base": -1, "tool": 0}


@pytest.mark.parametrize(
    ("limit", "position", "others", "invalid"),
    [
        ('lower="-inf" upper="inf" effort="5" velocity="inf"', (-np.inf, np.inf), (np.inf, 5.0), ""),
        ('lower="-1e400" upper="2" effort="5"', (-np.inf, 2.0), (np.inf, 5.0), ""),
        ('lower="0.3" upper="0.3" effort="5" velocity="2"', (0.3, 0.3), (2.0, 5.0), ""),
        ('lower="-0.5" upper="1" effort="5" velocity="-1"', (-0.5, 1.0), (np.inf, 5.0), "velocity -1"),
        ('lower="-0.5" upper="1" effort="-3" velocity="2"', (-0.5, 1.0), (2.0, np.inf), "effort -3"),
        ('lower="1" upper="0" effort="5" velocity="2"', (-np.inf, np.inf), (2.0, 5.0), "lower 1, upper 0"),
        ('lower="inf" upper="inf" effort="5"', (-np.inf, np.inf), (np.inf, 5.0), "lower inf, upper inf"),
        ('effort="0" velocity="0"', (-np.inf, np.inf), (np.inf, np.inf), ""),
    ],
)
def test_each_limit_is_read_on_its_own(load, limit, position, others, invalid):
    model, said = load(arm(joint=f"<limit {limit}/>"))
    assert tuple(model.position_limits[0]) == position
    assert (model.velocity_limit[0], model.effort_limit[0]) == others
    assert said == (
        f"joint 'j' has invalid limits, which are ignored: {invalid}; expected lower <= upper, and the others zero or "
        "more"
        if invalid
        else ""
    )


def test_invalid_limits_of_several_joints_are_named_together(load):
    bad = '<limit lower="1" upper="0" effort="5" velocity="-2"/>'
    _, said = load(arm(joint=bad, extra=second(bad, kind="prismatic")))
    assert "joints have invalid limits, which are ignored: 'j' (lower 1, upper 0, velocity -2), 'k' (" in said


@pytest.mark.parametrize("moments", [(0.0, 0.0, 0.0, 4.7e-38), (-5e-20, -5e-20, 0.0, 0.0), (1e-20, 0.0, 0.0, -8e-20)])
@pytest.mark.parametrize("merged", [False, True])
def test_round_off_in_an_inertia_is_no_negative_moment(load, moments, merged):
    """Files of robots such as the iCub contain zeros with round-off: m d^2 - m d^2."""
    xx, yy, zz, xy = moments
    head = (
        f'<inertial><origin xyz="0 0 0.2"/><mass value="1.3"/>'
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="{xy}" ixz="0" iyz="0"/></inertial>'
    )
    link = (
        f'<link name="head">{head}</link><joint name="t" type="fixed"><parent link="rod"/><child link="head"/></joint>'
    )
    model, said = load(arm(extra=link) if merged else arm(link=head))
    assert said == ""
    assert np.isfinite(model.forward_dynamics([0.2], [0.0], [1.0])).all()


def test_a_negative_moment_of_a_tiny_body_is_named(load):
    """The limit of round-off depends on the mass, so that it holds for mechanisms of any size."""
    moments = 'ixx="-1e-27" iyy="1e-26" izz="1e-26" ixy="0" ixz="0" iyz="0"'
    tiny = f'<inertial><mass value="1e-15"/><inertia {moments}/></inertial>'
    assert "the inertia of ['rod'] has a negative principal moment" in load(arm(link=tiny))[1]


def test_a_robot_without_joints_needs_a_free_base(load):
    text = f'<robot name="r"><link name="cube">{INERTIAL}</link></robot>'
    with pytest.raises(rb.ModelError, match=r"no moving body: .*pass base=rbchain.Free\(\) to load, or --free-base"):
        load(text)
    model, said = load(text, base=rb.Free())
    assert (model.nv, said) == (6, "")
