"""SDF files: the models agree with Drake, whose results are in references/sdf.json (oracles/drake_sdf.py)."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import rbchain as rb
from rbchain import cli
from rbchain.study import ModelSource

pytestmark = pytest.mark.plain_python
TESTS = Path(__file__).parent
REFERENCES = json.loads((TESTS / "references/sdf.json").read_text())


def load(name, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rb.load(TESTS / f"sdf/{name}.sdf", **options)


@pytest.mark.parametrize("name", REFERENCES)
def test_dynamics_and_poses_agree_with_drake(name):
    """Round-off of some hundred operations; accelerations also depend on the condition number of the mass matrix."""
    model = load(name, base=rb.Free() if name == "floating" else None)
    for state in REFERENCES[name]:
        joints = state["joints"]
        assert set(joints) == set(model.joint_names)
        q, qd, gravity, qdd = (
            np.concatenate([joints[joint][key] for joint in model.joint_names]) for key in ("q", "qd", "gravity", "qdd")
        )
        names = [joint for joint, values in joints.items() for _ in values["qd"]]
        order = [i for joint in model.joint_names for i, name in enumerate(names) if name == joint]
        M = np.array(state["mass_matrix"])[np.ix_(order, order)]
        np.testing.assert_allclose(model.mass_matrix(q), M, rtol=0, atol=1e-14 * np.abs(M).max())
        np.testing.assert_allclose(model.gravity_forces(q), gravity, rtol=0, atol=1e-14 * model.mass.sum() * 9.81)
        round_off = 32 * np.finfo(float).eps * np.linalg.cond(M) * np.abs(qdd).max()
        np.testing.assert_allclose(model.accelerations(q, qd), qdd, rtol=0, atol=round_off)
        for frame, pose in state["poses"].items():
            own = f"{frame}_origin" if f"{frame}_origin" in model.fixed_frames else frame
            np.testing.assert_allclose(model.frame_poses(q, own).matrix[:3], pose, rtol=0, atol=4e-15, err_msg=frame)


PENDULUM = """<link name="rod">{link}</link>
<joint name="hinge" type="{kind}"><parent>world</parent><child>rod</child><axis><xyz>0 1 0</xyz>{axis}</axis>
{joint}</joint>{extra}"""
INERTIAL = (
    "<inertial><pose>0 0 -0.5 0 0 0</pose><mass>2</mass>"
    "<inertia><ixx>0.2</ixx><iyy>0.2</iyy><izz>0.1</izz></inertia></inertial>"
)


def model_of(
    version="1.9", link=INERTIAL, kind="revolute", axis="", joint="", extra="", head="", attributes='name="m"'
):
    """A pendulum about y in a file that has only this model."""
    inner = PENDULUM.format(link=link, kind=kind, axis=axis, joint=joint, extra=extra)
    return f'<sdf version="{version}"><model {attributes}>{head}{inner}</model></sdf>'


@pytest.fixture
def read(tmp_path):
    """A function that loads a text; it returns the model and its only warning without the name of the file."""

    def read(text, name="m.sdf", **options):
        file = tmp_path / name
        file.write_text(text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = rb.load(file, **options)
        assert len(caught) <= 1
        assert all(warning.filename == __file__ for warning in caught)
        return model, "".join(str(warning.message).removeprefix(f"{file}: ") for warning in caught)

    return read


def test_limits_friction_and_springs_are_read_by_axis(read):
    axis = (
        "<limit><lower>-1</lower><upper>1e16</upper><effort>-1</effort><velocity>3</velocity></limit>"
        "<dynamics><friction>0.2</friction><damping>0.1</damping></dynamics>"
    )
    second = "<axis2><xyz>1 0 0</xyz><limit><lower>-2</lower><upper>2</upper></limit>"
    second += "<dynamics><damping>0.3</damping></dynamics></axis2>"
    model, said = read(model_of(kind="universal", axis=axis, joint=second))
    assert said == ""
    np.testing.assert_array_equal(model.position_limits, [[-1, np.inf], [-2, 2]])
    np.testing.assert_array_equal(model.effort_limit, [np.inf, np.inf])
    np.testing.assert_array_equal(model.velocity_limit, [3, np.inf])
    np.testing.assert_array_equal([model.damping, model.friction], [[0.1, 0.3], [0.2, 0.0]])
    assert model.joint_types == ("universal",)
    assert read(model_of(kind="revolute2", joint=second))[0].joint_types == ("universal",)
    assert not np.isfinite(read(model_of(kind="continuous", axis=axis))[0].position_limits).any()
    invalid, said = read(model_of(axis="<limit><lower>2</lower><upper>1</upper></limit>"))
    assert said == "joint 'hinge' has invalid limits, which are ignored: lower 2, upper 1; expected lower <= upper"
    assert not np.isfinite(invalid.position_limits).any()


def test_a_joint_that_mimics_another_one_is_coupled(read):
    follower = """<link name="tip"/><joint name="finger" type="prismatic"><parent>rod</parent><child>tip</child>
        <axis><xyz>1 0 0</xyz><mimic joint="hinge"><multiplier>2</multiplier><offset>0.5</offset>
        <reference>0.1</reference></mimic></axis></joint>"""
    model, _ = read(model_of("1.11", extra=follower))
    np.testing.assert_allclose(model.constraint_residual([0.4, 2 * (0.4 - 0.1) + 0.5]), 0.0, atol=1e-16)
    with pytest.raises(rb.FileFormatError, match=r"joint 'finger' mimics joint 'hige'; expected another joint.*hinge"):
        read(model_of("1.11", extra=follower.replace('joint="hinge"', 'joint="hige"')))


def test_the_gravity_of_a_world_acts_and_a_missing_one_is_the_default_of_sdformat(read):
    world = f'<sdf version="1.6"><world name="w">{{}}{model_of()[19:-6]}</world></sdf>'
    for text, expected in (("<gravity>0 0 -3.7</gravity>", -3.7), ("", -9.8)):
        model, said = read(world.format(text), "w.world")
        assert (model.gravity.tolist(), model.joint_names, said) == ([0, 0, expected], ("hinge",), "")
    assert read(model_of())[0].gravity.tolist() == [0, 0, -9.81]


def test_a_model_without_a_joint_to_the_world_is_fixed_or_floats(read, tmp_path):
    text = (
        model_of()
        .replace("<parent>world</parent>", "<parent>base</parent>")
        .replace("</model>", '<link name="base"/></model>')
    )
    fixed, said = read(text)
    assert fixed.fixed_frames == {"base": -1}
    assert "no joint connects link 'base' to the world, so it would float in Gazebo; it is fixed to the world" in said
    floating, said = read(text, base=rb.Free())
    assert (floating.nv, "float" in said) == (7, False)
    with pytest.raises(rb.ModelError, match=r"base is Free.*connect all links to the world; remove base"):
        read(model_of(), base=rb.Free())
    with pytest.raises(rb.ModelError, match=r"has no moving body: .*pass base=rbchain.Free"):
        read('<sdf version="1.9"><model name="m"><link name="a"/></model></sdf>')
    two = '<sdf version="1.9"><model name="m"><link name="a"/><link name="b"/></model></sdf>'
    with pytest.raises(rb.FileFormatError, match="no joint connects links 'a', 'b' to the world"):
        read(two)
    assert read(two, base=rb.Free())[0].nv == 12
    assert read(text, base=rb.Fixed())[1] == said


def test_bodies_have_the_frames_of_their_links_where_joints_allow_it(read):
    along = '<pose relative_to="rod">0 0.3 0 0 0 0</pose>'
    model, said = read(model_of(joint=along))  # on the axis of the hinge
    assert (said, model.fixed_frames, model.cg[0].tolist()) == ("", {}, [0, 0, -0.5])
    model, said = read(model_of(joint=along.replace("0.3", "0.3 0.1").replace(" 0 0 0<", " 0 0<")))
    assert said == (
        "the bodies of links 'rod' have their origins at their joints, and the frames 'rod_origin' have the poses of "
        "the links"
    )
    np.testing.assert_allclose(model.frame_poses([0.0], "rod_origin").translation, 0.0, atol=1e-17)
    np.testing.assert_allclose(model.frame_poses([0.0], "rod").translation, [0, 0.3, 0.1], atol=1e-17)


def test_a_folder_of_gazebo_is_included_in_its_latest_version(read, tmp_path, monkeypatch):
    text = model_of(
        extra="<include><uri>model://hand</uri><pose relative_to='rod'>0 0 -1 0 0 0</pose></include>"
        "<joint name='weld' type='fixed'><parent>rod</parent><child>hand::palm</child></joint>"
    )
    with pytest.raises(
        rb.FileFormatError, match="<include> of 'model://hand': the file does not exist; expected it at"
    ):
        read(text)
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(TESTS / "sdf"))
    model, said = read(text)
    assert (model.joint_names, said) == (("hinge", "hand::knuckle"), "")
    assert "hand::grip" in model.fixed_frames


def test_shapes_are_read(read, tmp_path):
    shapes = {
        "box": ("<size>1 2 3</size>", (1, 2, 3)),
        "sphere": ("<radius>0.5</radius>", (0.5,)),
        "cylinder": ("<radius>0.5</radius><length>2</length>", (0.5, 2)),
        "capsule": ("<radius>0.5</radius><length>2</length>", (0.5, 2)),
        "ellipsoid": ("<radii>1 2 3</radii>", (1, 2, 3)),
        "mesh": ("<uri>model://parts/rod.stl</uri><scale>1 1 2</scale>", (1, 1, 2)),
        "plane": ("<normal>0 0 1</normal>", None),
    }
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/rod.stl").touch()
    pose = "<pose relative_to='__model__' degrees='true'>0 0 1 0 0 90</pose>"
    parts = "".join(
        f"<{tag} name='{name}'>{pose}<geometry><{name}>{inner}</{name}></geometry>"
        f"<material><diffuse>1 0 0 0.5</diffuse></material></{tag}>"
        for name, (inner, _) in shapes.items()
        for tag in ("collision", "visual")
    )
    model, said = read(model_of(link=f"<pose>0 0 0.4 0 0 0</pose>{INERTIAL}{parts}"))
    assert said == (
        "some collisions of links ['rod'] are invalid and ignored; "
        "some visuals of links ['rod'] are invalid and ignored"
    )
    for found in (model.collisions["rod"], model.visuals["rod"]):
        assert [(shape.shape, shape.size) for shape in found] == [
            (name, size) for name, (_, size) in shapes.items() if size is not None
        ]
        np.testing.assert_allclose(found[0].pose.translation, [0, 0, 0.6], atol=1e-16)
        np.testing.assert_allclose(found[0].pose.rotation[:, 0], [0, 1, 0], atol=1e-16)
    assert model.visuals["rod"][0].color == (1, 0, 0, 0.5)
    assert model.collisions["rod"][5].file == str(tmp_path / "parts/rod.stl")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"link": INERTIAL + "<gravity>false</gravity>"}, "omitted from the model: <gravity> false (link 'rod')"),
        ({"link": INERTIAL + "<kinematic>1</kinematic>"}, "<kinematic> 1 (link 'rod')"),
        (
            {"link": INERTIAL + "<velocity_decay><linear>0.1</linear></velocity_decay>"},
            "<velocity_decay> 0.1 (link 'rod')",
        ),
        (
            {
                "link": "<inertial auto='true'><mass>5</mass><pose>1 0 0 0 0 0</pose></inertial><collision name='c'>"
                "<geometry><sphere><radius>0.1</radius></sphere></geometry></collision>"
            },
            "omitted from the model: <mass>, <pose> in <inertial auto> (link 'rod')",
        ),
        ({"joint": "<physics><ode><max_force>3</max_force></ode></physics>"}, "<max_force> 3 (joint 'hinge')"),
        ({"extra": "<plugin name='p' filename='f'/>"}, "omitted from the model: <plugin> (plugin 'p')"),
        ({"extra": "<drake:joint name='j' type='planar'/>"}, "omitted from the model: <drake:joint> (joint 'j')"),
        (
            {"axis": "<dynamcs><damping>1</damping></dynamcs>"},
            "<dynamcs> in <axis>: did you mean dynamics? (joint 'hinge')",
        ),
        ({"link": ""}, "links without mass or inertia, which have SDFormat's defaults of 1 kg and 1 kg m^2: 'rod'"),
        ({"link": INERTIAL.replace("iyy", "iyz")}, "links without mass or inertia, which have SDFormat's defaults"),
        ({"link": INERTIAL + INERTIAL}, "link 'rod' has 2 <inertial> elements, of which the first one is used"),
    ],
)
def test_parts_that_are_not_read_are_listed_in_the_warning(read, arguments, message):
    assert message in read(model_of(**arguments))[1]


def test_neutral_settings_are_not_listed(read):
    link = (
        f"{INERTIAL}<gravity>1</gravity><kinematic>0</kinematic><enable_wind>false</enable_wind><sensor name='s'/>"
        "<velocity_decay><linear>0.0</linear><angular>0</angular></velocity_decay><self_collide>1</self_collide>"
    )
    joint = "<physics><ode><limit><cfm>0</cfm></limit><max_force>0</max_force></ode></physics>"
    assert read(model_of(link=link, joint=joint, head="<static>false</static>"))[1] == ""


CYCLE = "<frame name='a'><pose relative_to='b'/></frame><frame name='b'><pose relative_to='a'/></frame>"
LOOSE = "<link name='a'/><link name='b'/>" + "".join(
    f"<joint name='{x}{y}' type='fixed'><parent>{x}</parent><child>{y}</child></joint>" for x, y in ("ab", "ba")
)
CLOSING = "<joint name='again' type='prismatic'><parent>world</parent><child>rod</child><axis/></joint>"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"version": "1.3"}, "the version of <sdf> is '1.3'; expected '1.4' to '1.12'"),
        ({"version": ""}, "the version of <sdf> is ''"),
        ({"kind": "gearbox"}, "joint 'hinge': its type is 'gearbox'; expected one of"),
        ({"kind": "revolut"}, "its type is 'revolut'; expected one of .*did you mean revolute?"),
        ({"kind": "universal"}, "has 1 of the elements <axis> and <axis2>; expected 2"),
        ({"kind": "screw"}, "joint 'hinge' has no pitch; expected a <screw_thread_pitch>, in m per turn"),
        ({"joint": "<pose>0 0 0</pose>"}, "joint 'hinge': <pose> is '0 0 0'; expected 6 finite numbers"),
        ({"joint": "<pose>0 0 0 0 0 nan</pose>"}, "expected 6 finite numbers"),
        ({"joint": '<pose relative_to="rd">0 0 0 0 0 0</pose>'}, "model 'm' has no frame 'rd'; .*did you mean rod?"),
        ({"joint": '<pose rotation_format="quat_xyzw">0 0 0 1 1 1 1</pose>'}, "expected a unit quaternion x y z w"),
        ({"joint": '<pose rotation_format="matrix">0 0 0</pose>'}, "has rotation_format 'matrix' and degrees false"),
        ({"extra": CYCLE}, "the pose of 'a' is relative to itself; expected no cycle"),
        ({"extra": "<frame name='f' attached_to='f'/>"}, "the frame 'f' is attached to itself"),
        ({"extra": "<frame name='rod'/>"}, "a link and another frame have the name 'rod'; expected different names"),
        ({"extra": "<link/>"}, "the name of a link is None"),
        ({"extra": LOOSE}, "the joints of links 'a', 'b' form a cycle"),
        ({"extra": CLOSING}, "joint 'again' of type 'prismatic' closes a loop; expected a fixed, revolute"),
        ({"extra": "<include merge='true'><uri>x</uri></include>"}, '<include> of .x. has merge="true", which is not'),
        (
            {"extra": "<model name='n'><static>1</static><link name='a'/></model>"},
            "model 'n' is static, but it is part",
        ),
        ({"link": "<inertial><mass>two</mass></inertial>"}, "link 'rod': <mass> is 'two'; expected 1 number"),
        ({"link": "<inertial auto='true'/>"}, "link 'rod' has <inertial auto> and 0 collision shapes"),
        (
            {"axis": "<dynamics><damping>-1</damping></dynamics>"},
            "joint 'hinge': damping is -1.0; expected zero or more",
        ),
    ],
)
def test_an_invalid_file_is_refused_with_its_name_and_the_element(read, arguments, message):
    with pytest.raises((rb.FileFormatError, rb.ModelError), match=f"m.sdf: .*{message}"):
        read(model_of(**arguments))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<sdf version='1.9'/>", "the file has no <model>; expected one model that moves"),
        (model_of().replace("</sdf>", "<model name='n'><link name='a'/></model></sdf>"), "2 moving models .'m', 'n'."),
        (model_of(head="<static>true</static>"), "no body moves: the models 'm' are static"),
        ("<sdf version='1.9'><world name='a'/><world name='b'/></sdf>", "the file has 2 <world> elements"),
        (
            model_of().replace("<child>rod", "<child>world"),
            "its child is the world; .*Exchange its <parent> and <child>",
        ),
        (model_of().replace("<parent>world</parent>", ""), "joint 'hinge' has no <parent>"),
        (model_of().replace("0 1 0", "0 0 0"), r"joint 'hinge': axis is \[0.0, 0.0, 0.0\]; expected a non-zero vector"),
        ("<!DOCTYPE sdf [<!ENTITY a 'b'>]><sdf version='1.9'/>", "declares a document type"),
        ("<robt/>", "the root element is <robt>; expected <sdf>"),
    ],
)
def test_a_file_without_one_moving_model_is_refused(read, text, message):
    with pytest.raises((rb.FileFormatError, rb.ModelError), match=f"m.sdf: .*{message}"):
        read(text)


def test_files_that_include_each_other_are_refused(read, tmp_path):
    text = model_of(extra="<include><uri>m.sdf</uri><name>again</name></include>")
    with pytest.raises(rb.FileFormatError, match="the files include each other in a cycle; remove this <include>"):
        read(text)


def test_a_missing_file_of_a_world_is_listed(read, tmp_path):
    text = model_of().replace("<model", "<world name='w'><include><uri>model://sun</uri></include><model", 1)
    _, said = read(text.replace("</sdf>", "</world></sdf>"))
    assert said == "omitted from the model: included files that do not exist ('model://sun')"
    (tmp_path / "model.sdf").write_text(model_of())  # in the folder of the file, but not in a folder `sun`
    alone = "<sdf version='1.9'><world name='w'><include><uri>model://{}</uri></include></world></sdf>"
    for name in ("sun", "sun/model.sdf"):
        with pytest.raises(
            rb.FileFormatError, match=f"no <model>, and its included files 'model://{name}' do not exist"
        ):
            read(alone.format(name))


def test_a_loop_is_closed_by_a_constraint_without_forces(read):
    loop = "<joint name='{}' type='{}'><parent>world</parent><child>rod</child>{}</joint>"
    damping = "<axis><dynamics><damping>1</damping></dynamics></axis>"
    for kind, expected in (("ball", rb.BallConstraint), ("fixed", rb.WeldConstraint), ("revolute", rb.HingeConstraint)):
        model, said = read(model_of(extra=loop.format("pin", kind, damping)))
        assert isinstance(model.description.constraints[0].kind, str)
        assert model.constraint_names == ("pin",)
        np.testing.assert_allclose(model.constraint_residual([0.0]), 0.0, atol=1e-16)
        assert ("<dynamics> of joints that close loops ('pin')" in said) == (kind != "fixed")
        assert expected.kind == model.description.constraints[0].kind


def test_a_saved_and_loaded_model_is_unchanged(tmp_path):
    for name in ("joints", "four_bar", "nested"):
        model = load(name)
        rb.save(model, tmp_path / "m.toml")
        again = rb.load(tmp_path / "m.toml")
        assert again.joint_names == model.joint_names
        np.testing.assert_array_equal(again.mass_matrix(model.neutral()), model.mass_matrix(model.neutral()))


def test_links_and_joints_of_old_versions_may_have_equal_names(read):
    text = model_of("1.6").replace('name="hinge"', 'name="rod"')
    assert read(text)[0].joint_names == ("rod",)
    with pytest.raises(rb.FileFormatError, match=re.escape("a link and another joint have the name 'rod'")):
        read(text.replace("1.6", "1.7"))


def test_commands_and_studies_read_sdf_files(capsys):
    assert cli.main(["info", str(TESTS / "sdf/joints.sdf")]) == 0
    assert "cross: universal" in capsys.readouterr().out
    assert ModelSource(file="sdf/nested.sdf").build(TESTS).joint_names == ("roll", "gripper::knuckle")
    with pytest.warns(UserWarning, match="the frames 'leg_origin' have the poses of the links"):
        assert ModelSource(file="sdf/floating.sdf", free_base=True).build(TESTS).nv == 7
