"""rbchain's own files: loading returns what was saved to the last bit, and errors are named."""

import dataclasses
import re

import numpy as np
import pytest
from scipy.interpolate import PPoly

import rbchain as rb
from rbchain.acting.signals import as_signal
from rbchain.acting.tables import table_of_drive
from tests.mechanisms import CHUNKS, ROBOTS, random_trees

ARM = """
format = "rbchain 1"
name = "arm"
[[body]]
name = "upper"
joint = { type = "revolute", axis = [0, 0, 1] }
mass = 2.0
cg = [0.1, 0, 0]
inertia = [0.01, 0.02, 0.02]
"""


def same(a, b):
    """Check that two descriptions are equal to the last bit."""
    for field in dataclasses.fields(a):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if field.name == "drives":
            assert [table_of_drive(drive) for drive in x] == [table_of_drive(drive) for drive in y]
        elif field.name == "visuals":
            assert {k: [words(v) for v in of_body] for k, of_body in x.items()} == {
                k: [words(v) for v in of_body] for k, of_body in y.items()
            }
        elif field.name == "frames":
            assert x.keys() == y.keys()
            for name, frame in x.items():
                assert frame.body == y[name].body
                np.testing.assert_array_equal(frame.pose.translation, y[name].pose.translation)
                np.testing.assert_array_equal(frame.pose.rotation, y[name].pose.rotation)
        elif field.name == "nominal":
            assert (x is None) == (y is None)
            if x is not None:
                same(x, y)
        elif isinstance(x, np.ndarray):
            np.testing.assert_array_equal(x, y, err_msg=field.name)
        else:
            assert x == y, field.name


def words(visual):
    return visual.shape, visual.size, visual.pose.translation.tolist(), visual.color, visual.file


def round_trip(model, folder):
    file = folder / "model.toml"
    rb.save(model, file)
    return rb.load(file)


@pytest.mark.slow_cases("1", "2", "3")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_random_tree_is_bit_identical_after_saving_and_loading(chunk, tmp_path):
    for model in random_trees(chunk)[::5]:
        same(model.description, round_trip(model, tmp_path).description)


def test_passive_forces_and_immersion_are_unchanged_after_saving_and_loading(tmp_path):
    rng = np.random.default_rng(0)
    builder = rb.ModelBuilder(name="diver", fluid_density=1025.0)
    turned = rb.Pose((0.1, 0.2, 0.3), [0.1, 0.2, 0.3, 0.9])
    for i in range(3):
        spread = rng.normal(size=(6, 6))
        builder.add_body(
            f"body{i}",
            parent=f"body{i - 1}" if i else None,
            joint=rb.Universal((1, 2, 0), (0, 1, 1)),
            placement=turned,
            inertia=rb.Inertia(2.0, cg=(0.1, 0, 0), inertia=(0.1, 0.01, 0.02, 0.2, 0.03, 0.25)),
            joint_name=f"joint of {i}",
            rotor_inertia=(1e-4, 2e-4),
            gear_ratio=-50.0,
            passive=rb.PassiveForces(
                stiffness=(1.0, 2.0),
                damping=0.1,
                friction=0.2,
                static_friction=0.3,
                stop_upper=2.0,
                limit_stiffness=9.0,
                friction_asymmetry=(0.1, -0.2),
            ),
            immersion=rb.Immersion(
                volume=0.01,
                buoyancy_center=(0.01, 0.02, 0.03),
                added_mass=spread @ spread.T,
                added_volume=(1, 2, 3, 4, 5, 6),
                linear_damping=rng.normal(size=(6, 6)),
                quadratic_damping=(1, 2, 3, 4, 5, 6),
                pose=turned,
                strip_diameter=0.1,
                strip_length=0.5,
                strip_drag=1.2,
            ),
            limits=rb.JointLimits(lower=(-1.0, -np.inf), upper=2.5, effort=(30.0, 20.0)),
            visuals=[
                rb.Visual("capsule", (0.1, 0.3), pose=turned, color=(0.1, 0.2, 0.3, 0.4)),
                rb.Visual("mesh", (1e-3, 1e-3, 1e-3), file="/part.stl"),
            ],
        )
    builder.add_body("tool", parent="body2", joint=rb.Fixed(), placement=turned, inertia=rb.Inertia(0.3))
    builder.add_body("floor", joint=rb.Fixed(), placement=turned, visuals=[rb.Visual("box", (9, 9, 0.1))])
    model = builder.build()
    same(model.description, round_trip(model, tmp_path).description)


@pytest.mark.filterwarnings("ignore:.*no body can have the inertia")
def test_a_robot_is_bit_identical_after_saving_and_loading(tmp_path):
    model = rb.load(ROBOTS / "solo_description/robots/solo12.urdf", base=rb.Free())
    same(model.description, round_trip(model, tmp_path).description)


def test_the_nominal_model_is_unchanged_after_saving_and_loading(tmp_path):
    """Controllers use it, so that the same controller would give another motion without it."""
    builder = rb.ModelBuilder(fluid_density=1e3)
    builder.add_body("a", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=2.0))
    box = rb.Inertia.box((1, 1, 1), mass=1.0)
    water = rb.Immersion(volume=1e-3, added_mass=np.diag([1, 2, 3, 4, 5, 6.0]))
    builder.add_body("b", parent="a", joint=rb.Spherical(), inertia=box, immersion=water)
    builder.add_body("tool", parent="b", joint=rb.Fixed(), placement=rb.Pose((1, 0, 0)))
    builder.add_constraint(rb.DistanceConstraint("rope", "b", None, point_a=(0, 0, 0), point_b=(0, 3.0, 0), length=2.0))
    builder.add_drive(rb.PID("a", 0.3, kp=20.0, gravity_compensation=True))
    varied = builder.build().vary(mass=[2.5, 1.25], gravity=(0, 0, -9.7), constraint_length=[2.1])
    for model in (varied, builder.build().with_payload("tool", mass=0.5)):
        again = round_trip(model, tmp_path)
        same(again.description, model.description)
        assert again.nominal.mass.tolist() == [2.0, 1.0]


def test_units_and_gravity_of_a_file_hold_for_its_nominal_model(tmp_path):
    body = '[[{}]]\nname = "rod"\nmass = {}\ncg = [500, 0, 0]\njoint = {{ type = "revolute", axis = [0, 1, 0] }}\n'
    head = 'format = "rbchain 1"\nunits = "mm-kg-s"\ngravity = [0, 0, -1000]\n'
    path = tmp_path / "rod.toml"
    path.write_text(head + body.format("body", 2.0) + "[nominal]\n" + body.format("nominal.body", 1.0))
    model = rb.load(path)
    assert (model.mass.tolist(), model.nominal.mass.tolist()) == ([2.0], [1.0])
    for one in (model, model.nominal):
        np.testing.assert_allclose(one.gravity, [0.0, 0.0, -1.0])
        np.testing.assert_allclose(one.cg, [[0.5, 0.0, 0.0]])


def test_a_nominal_model_without_water_is_written(tmp_path):
    builder = rb.ModelBuilder(fluid_density=1000.0)
    immersion = rb.Immersion(volume=1e-3)
    builder.add_body("rod", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(1.0, cg=(0.5, 0, 0)), immersion=immersion)
    model = builder.build()
    varied = model.replace(fluid_density=0.0).vary(fluid_density=1000.0)
    again = round_trip(varied, tmp_path)
    assert (again.fluid_density, again.nominal.fluid_density) == (1000.0, 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('joint = { type = "prismatic", axis = [0, 0, 1] }', r"joint_types is \['prismatic'\]; expected .*'revolute'"),
        ('joint_name = "other"', r"joint_names is \['other'\]; expected the same as in the model, \['upper'\]"),
        ("masse = 2.0", "nominal: body 'upper'.*masse"),
    ],
)
def test_a_nominal_model_with_other_joints_is_refused(tmp_path, text, message):
    body = ARM.partition("[[body]]")[2].replace('joint = { type = "revolute", axis = [0, 0, 1] }', "")
    joint = "" if text.startswith("joint =") else 'joint = { type = "revolute", axis = [0, 0, 1] }'
    (tmp_path / "arm.toml").write_text(f"{ARM}[nominal]\n[[nominal.body]]{body}{joint}\n{text}\n")
    with pytest.raises(rb.FileFormatError, match=message):
        rb.load(tmp_path / "arm.toml")


@pytest.mark.parametrize("ending", ["urdf", "xml"])
def test_formats_without_a_nominal_model_name_it(tmp_path, ending):
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body("a", joint=rb.Revolute(), inertia=rb.Inertia.box((1, 1, 1), mass=2.0))
    model = builder.build().vary(mass=[3.0])
    with pytest.warns(UserWarning, match=r"omits: .*the nominal model, which controllers use"):
        rb.save(model, tmp_path / f"model.{ending}")


def test_drives_are_unchanged_after_saving_and_loading(tmp_path):
    """To the bit, including NumPy scalars, a second degree of freedom and a signal with an end."""
    builder = rb.ModelBuilder()
    for i in range(4):
        inertia = rb.Inertia.rod(0.5, mass=1.0, cg=(0.25, 0, 0))
        builder.add_body(f"link{i}", parent=f"link{i - 1}" if i else None, joint=rb.Revolute(), inertia=inertia)
    builder.add_drive(
        rb.PID("link0", rb.Signal.sines(0.1, 2.0, phase=0.3, offset=0.5), kp=[3.0, 4.0], kd=0.1, limit=9.0)
    )
    builder.add_drive(rb.PrescribedPosition("link1", rb.Signal.table([0, 0.1, 0.3], [0.0, 0.2, 0.1])))
    builder.add_drive(rb.ComputedTorque("link2", 0.1, kp=30.0, kd=10.0, ki=1.0))
    builder.add_drive(rb.PrescribedForce("link3", rb.Signal.polynomial([0.1, 0.2, 0.3]), gravity_compensation=True))
    builder.add_body(
        "wrist", parent="link3", joint=rb.Universal((1, 0, 0), (0, 1, 0)), inertia=rb.Inertia.sphere(0.1, mass=1.0)
    )
    builder.add_drive(
        rb.PID("wrist", PPoly([[1.0]], [0.0, 1.0]), kp=np.float64(2.0), dof=np.int64(1), gravity_compensation=np.True_)
    )
    model = builder.build()
    again = round_trip(model, tmp_path)
    same(model.description, again.description)
    last = again.drives[-1]
    assert (last.dof, last.gravity_compensation, as_signal("", last.reference).end) == (1, True, 1.0)
    assert isinstance(last.dof, int)
    assert 'type = "ComputedTorque"' in (tmp_path / "model.toml").read_text()
    for a, b in zip(model.drives, again.drives, strict=True):
        one, other = (getattr(x, "signal", None) or getattr(x, "reference", None) for x in (a, b))
        t = np.linspace(0, 0.5, 7)
        np.testing.assert_array_equal(as_signal("", one)(t), as_signal("", other)(t))


@pytest.mark.parametrize(
    ("drive", "message"),
    [
        (
            'type = "PID"\njoint = "upper"\ndof = 7\nreference = 1\nkp = 1',
            "dof is 7; expected 0, as the joint has one degree of freedom",
        ),
        ('type = ["PID"]\njoint = "upper"', "type is .*; expected one of Prescribed"),
        ('type = "PDI"\njoint = "upper"', "drive of joint 'upper': type is 'PDI'; expected one of PrescribedForce"),
        ('type = "PID"\njoint = "upper"\ngain = 1', "drive of joint 'upper': PID has no gain; it has controller_model"),
        (
            'type = "PID"\njoint = "elbow"\nreference = 1\nkp = 1',
            r"drive: its joint is 'elbow'; expected a joint .*: one of \['upper'\]",
        ),
        ('type = "PID"\njoint = "upper"\nreference = { type = "saw" }\nkp = 1', "type is 'saw'; expected one of"),
    ],
)
def test_errors_in_a_drive_are_named(tmp_path, drive, message):
    with pytest.raises(rb.RbchainError, match=message):
        read(tmp_path, f"{ARM}\n[[drive]]\n{drive}\n")


def read(tmp_path, text):
    file = tmp_path / "model.toml"
    file.write_text(text)
    return rb.load(file)


def test_values_are_read_in_the_units_of_the_file(tmp_path):
    in_mm = ARM.replace("[0.1, 0, 0]", "[100, 0, 0]").replace("[0.01, 0.02, 0.02]", "[1e4, 2e4, 2e4]")
    in_mm = in_mm.replace('name = "arm"', 'name = "arm"\nunits = "mm-kg-s"\ngravity = [0, 0, -9810]')
    found, expected = read(tmp_path, in_mm), read(tmp_path, ARM)
    np.testing.assert_allclose(found.cg, expected.cg, rtol=1e-15)
    np.testing.assert_allclose(found.inertia, expected.inertia, rtol=1e-15)
    np.testing.assert_allclose(found.gravity, expected.gravity, rtol=1e-15)
    mixed = read(tmp_path, ARM.replace("mass = 2.0", 'mass = "2000 g"'))
    np.testing.assert_allclose(mixed.mass, [2.0], rtol=1e-15)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rbchain 1", "rbchain 9", "format is 'rbchain 9'; expected the line: format = .rbchain 1."),
        ("mass =", "mas =", "body 'upper' has the unknown key 'mas'; expected name, parent, .*; did you mean mass.$"),
        (
            '"revolute"',
            '"hinge"',
            "body 'upper': the type of the joint is 'hinge'; expected joint = .* one of revolute",
        ),
        ("axis", "axes", "body 'upper': Revolute has the unknown key 'axes'; .* did you mean axis.$"),
        (
            "axis = [0, 0, 1]",
            "axis = [0, 0, 0]",
            r"body 'upper': axis of a Revolute joint is \[0.0, 0.0, 0.0\]; expected a non-zero",
        ),
        ("mass = 2.0", "mass = -2.0", "body 'upper': mass is -2.0"),
        ("[[body]]", "[body]", r"body is .*; expected a list of tables, each written as \[\[body\]\]"),
        ("mass = 2.0", 'mass = "2 m"', "mass is '2 m'; expected a mass"),
        (
            "mass = 2.0",
            'mass = 2.0\nparent = "elbow"',
            "parent is 'elbow', which is not a body of the model; use None for the world",
        ),
        (
            "mass = 2.0",
            "mass = 2.0\npassive = { damp = 1.0 }",
            "body 'upper': PassiveForces has the unknown key 'damp'; .*; did you mean damping.$",
        ),
        ('"revolute"', '"screw"', "body 'upper': required keys of Screw are missing: pitch"),
        ('format = "rbchain 1"', "", "the key format is missing; expected the line: format = .rbchain 1."),
        ("format", "= format", "the file is not valid TOML"),
    ],
)
def test_errors_in_a_file_are_named(tmp_path, old, new, message):
    with pytest.raises(rb.RbchainError, match=message):
        read(tmp_path, ARM.replace(old, new, 1))


def test_former_names_of_keys_are_read(tmp_path):
    text = (
        ARM
        + """
passive = { limit_stiffness = 9, stop_lower = -1.5, stop_upper = 0.5 }
[body.immersion]
volume = 1e-3
buoyancy_center = [0, 0, 0.1]
linear_damping = [1, 2, 3, 4, 5, 6]
pose = { translation = [0, 0, 0.2] }
[[frame]]
name = "tip"
body = "upper"
placement = { translation = [0.2, 0, 0] }
[[constraint]]
type = "distance"
name = "rope"
frame_b = "tip"
point_a = [1, 0, 0]
point_b = [0, 0, 0]
length = 0.8
"""
    )
    former = text.replace("stop_lower", "lower_limit").replace("stop_upper", "upper_limit")
    former = former.replace("pose =", "frame =").replace("frame_b", "body_b").replace("buoyancy_center", "center")
    assert "frame_b" not in former and "stop_" not in former and "pose" not in former and "buoyancy" not in former
    same(read(tmp_path, former).description, read(tmp_path, text).description)
    both = text.replace('frame_b = "tip"', 'frame_b = "tip"\nbody_b = "tip"')
    with pytest.raises(rb.FileFormatError, match="'rope': frame_b is given twice, also by its former name body_b"):
        read(tmp_path, both)


def test_a_varied_model_cannot_be_saved(tmp_path):
    with pytest.raises(rb.ModelError, match=r"is a batch \(3,\) of samples; expected a single model"):
        rb.save(rb.Model.serial_chain(2).vary(mass=np.ones((3, 2))), tmp_path / "model.toml")


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(
        rb.FileFormatError, match=r"the name ends in '\.step'; expected '\.toml', '\.urdf' or '\.xml' \(MJCF\)"
    ):
        rb.save(rb.Model.serial_chain(2), tmp_path / "model.step")


def test_visuals_use_the_units_of_the_file_and_mesh_paths_relative_to_it(tmp_path):
    look = 'visual = [{ shape = "box", size = [200, 100, 100], placement = { translation = [100, 0, 0] } },'
    look += ' { shape = "mesh", file = "arm.stl" }]'
    text = ARM.replace("[0.1, 0, 0]", "[100, 0, 0]").replace('name = "arm"', 'name = "arm"\nunits = "mm-kg-s"') + look
    box, mesh = read(tmp_path, text).visuals["upper"]
    np.testing.assert_allclose(box.size, (0.2, 0.1, 0.1))
    np.testing.assert_allclose(box.pose.translation, (0.1, 0, 0))
    assert mesh.file == str(tmp_path / "arm.stl")
    with pytest.raises(rb.FileFormatError, match="body 'upper': visual has the unknown key 'pose'; expected shape"):
        read(tmp_path, ARM + 'visual = [{ shape = "sphere", size = [1], pose = {} }]')


@pytest.mark.parametrize("digits", [401, 5001])
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mass = 2.0", "mass = {}", "body 'upper': mass is .*float64"),
        ("axis = [0, 0, 1]", "axis = [0, 0, {}]", "body 'upper': axis of a Revolute joint is .*float64"),
        ("mass = 2.0", "mass = 2.0\ngear_ratio = {}", "body 'upper': gear_ratio is .*float64"),
        ("mass = 2.0", "mass = 2.0\npassive = {{ damping = {} }}", "body 'upper': damping is .*float64"),
        ("mass = 2.0", "mass = 2.0\nimmersion = {{ added_mass = [0, 0, {}, 0, 0, 0] }}", "body 'upper': added_mass is"),
    ],
)
def test_an_integer_beyond_float64_is_refused_with_its_file_and_key(tmp_path, old, new, message, digits):
    """Python refuses to read more than 4300 digits; then the message names the file."""
    with pytest.raises(
        rb.RbchainError, match=message if digits < 4300 else "model.toml: .* not valid TOML: .*4300 digits"
    ):
        read(tmp_path, ARM.replace(old, new.format("1" + "0" * (digits - 1)), 1))


def test_added_masses_on_fixed_bodies_are_refused(tmp_path):
    tool = '\n[[body]]\nname = "tool"\nparent = "upper"\njoint = { type = "fixed" }\n'
    assert read(tmp_path, ARM + tool).n_bodies == 1
    with pytest.raises(
        rb.FileFormatError, match=r"body 'tool': immersion has \['added_mass'\], but the joint is fixed"
    ):
        read(tmp_path, ARM + tool + "immersion = { added_mass = [1, 1, 1, 0, 0, 0] }")


def test_one_warning_with_the_name_of_the_file_contains_all_others(tmp_path):
    file = tmp_path / "m.toml"
    file.write_text(
        'format = "rbchain 1"\nnonphysical_inertia = "warn"\n[[body]]\nname = "a"\njoint = { type = "revolute" }\n'
        'mass = 1\ninertia = [1, 1, 5]\n[[body]]\nname = "b"\nparent = "a"\njoint = { type = "revolute" }\n'
    )
    with pytest.warns(
        UserWarning, match=f"^{re.escape(str(file))}: .*of \\['a'\\].*; .* motion of \\['b'\\]"
    ) as caught:
        rb.load(file)
    assert [warning.filename for warning in caught] == [__file__]
