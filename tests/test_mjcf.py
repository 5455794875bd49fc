"""MJCF files, compared with MuJoCo's own dynamics."""

import re
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh

import rbchain as rb
from rbchain.io.mjcf_differences import refusals
from rbchain.io.mjcf_forces import Forces
from rbchain.io.mjcf_source import Source
from tests.mechanisms import random_rotation
from tests.oracles.mjcf import Engine

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
FLOATING = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body><joint type="free" armature="0.5"/><inertial pos="0 0 0" mass="1" diaginertia="0.1 0.2 0.25"/></body>
  </worldbody>
</mujoco>
"""
#: One body on a joint, and a body that is fixed to it or hinged.
PAIR = """
<mujoco>
  <option {option}><flag contact="disable" {flag}/></option>
  <worldbody>
    <body name="base" pos="0.1 0.2 0.3" euler="10 20 30" {base}>
      {joint}
      <inertial pos="0.05 0.02 0.01" euler="20 10 40" mass="3" diaginertia="0.03 0.04 0.05"/>
      <body name="arm" pos="0.2 0 0.1" euler="0 40 0" {arm}>
        <joint name="elbow" axis="1 2 3" {elbow}/>
        <inertial pos="0 0.1 0.3" mass="1" diaginertia="0.01 0.02 0.02"/>
      </body>
    </body>
  </worldbody>
  {more}
</mujoco>
"""
HINGE, SLIDE, FREE, BALL = (
    '<joint name="root" axis="0 1 1" {}/>',
    '<joint name="root" type="slide" axis="0 1 1" {}/>',
    '<joint name="root" type="free" {}/>',
    '<joint name="root" type="ball" pos="0.1 0.2 0.3" {}/>',
)
ACTUATORS = """
<actuator>
  <motor joint="root" gear="3" armature="0.02" damping="0.5"/>
  <motor joint="elbow" gear="-2" armature="0.01"/>
  <motor joint="elbow" gear="5" armature="0.03" damping="0.1"/>
</actuator>
"""
FLUID = 'density="1.2" viscosity="0.3"'
#: The fields of PAIR for each file.
FEATURES = {
    "no gravity": {"flag": 'gravity="disable"', "base": 'gravcomp="1"'},
    "no springs": {"flag": 'spring="disable"', "elbow": 'stiffness="2 3 4" damping="0.2"', "base": 'gravcomp="1"'},
    "no dampers": {"flag": 'damper="disable"', "elbow": 'stiffness="2" damping="0.2 3 4"', "option": FLUID},
    "neither springs nor dampers": {
        "flag": 'spring="disable" damper="disable"',
        "elbow": 'stiffness="2 3" damping="0.2 3"',
        "base": 'gravcomp="1"',
        "option": FLUID,
    },
    "no constraints": {"flag": 'constraint="disable"', "elbow": 'frictionloss="0.3" range="-1 1"'},
    "no dry friction": {"flag": 'frictionloss="disable"', "elbow": 'frictionloss="0.3"'},
    "gravity compensation": {"base": 'gravcomp="0.7"', "arm": 'gravcomp="1.5"'},
    "gravity compensation by passive joints": {"base": 'gravcomp="1"', "elbow": 'actuatorgravcomp="true"'},
    "cubic springs": {"elbow": 'stiffness="2 0 4" springref="30" ref="20"'},
    "a cubic spring alone": {"elbow": 'stiffness="0 0 4" springref="30"'},
    "armature": {"elbow": 'armature="0.3"'},
    "actuators": {"more": ACTUATORS},
    "actuators without force": {"more": ACTUATORS, "flag": 'actuation="disable"'},
    "a thick fluid": {"option": 'viscosity="2"'},
    "a heavy fluid": {"option": 'density="1000"'},
    "a fluid without density": {"option": 'density="-1" viscosity="0.3"'},
    "a fluid and gravity compensation": {"option": FLUID, "base": 'gravcomp="0.4"', "arm": 'gravcomp="2"'},
    "the discrete integrator": {"option": 'integrator="discrete"', "elbow": 'damping="2"'},
}
JOINTS = {
    "hinge": HINGE.format('armature="0.2"'),
    "slide": SLIDE.format('armature="0.2"'),
    "free": FREE.format('armature="0.2" damping="0.3"'),
    "ball": BALL.format('armature="0.2" damping="0.3"'),
}
#: Joints of one body that do not all turn about one point, with the joints that they become.
SEVERAL = {
    "slides and a hinge elsewhere": (
        '<joint type="slide" axis="1 0 0"/><joint type="slide" pos="1 2 3"/><joint axis="0 1 0" pos="0 0 0.4"/>',
        ["composite"],
    ),
    "hinges at two points": (
        '<joint axis="1 0 0" pos="0.1 0 0" armature="0.1"/><joint axis="0 1 0" pos="0 0.3 0" stiffness="3" ref="20"/>',
        ["revolute", "revolute"],
    ),
    "hinges almost at one point": (
        '<joint axis="1 0 0" pos="1 0 0"/><joint axis="0 1 0" pos="1.000001 0 0"/>',
        ["revolute", "revolute"],
    ),
    "hinges at three points": (
        '<joint axis="1 0 0" pos="0.1 0 0"/><joint pos="0.1 0 0"/><joint axis="0 1 0" pos="0 0.3 0"/>'
        '<joint type="slide" axis="0 1 1"/><joint axis="0 1 1" pos="0 0.2 0.1"/>',
        ["composite", "composite", "revolute"],
    ),
    "a slide and a ball": (
        '<joint type="slide" axis="1 0 1"/><joint type="ball" pos="0.1 0.2 0.3" armature="0.1"/>',
        ["prismatic", "spherical"],
    ),
    "slides and a ball": (
        '<joint type="slide" axis="1 0 1"/><joint type="slide" axis="0 1 0"/><joint type="ball" pos="0 0.2 0"/>'
        '<joint type="slide" axis="0 1 2" damping="1"/>',
        ["composite", "spherical", "prismatic"],
    ),
}


def written(tmp_path, text):
    file = tmp_path / "model.xml"
    file.write_text(text)
    return file


def pair(**fields):
    """A file of two bodies."""
    unsaid = dict.fromkeys(("option", "flag", "base", "arm", "elbow", "more"), "")
    return PAIR.format(**{**unsaid, "joint": HINGE.format(""), **fields})


def assert_moves_as_in_mujoco(file, states=3):
    """Compare accelerations and kinetic energies, up to round-off times the condition number of the mass matrix."""
    model, engine = rb.load(file), Engine(file)
    rng = np.random.default_rng(0)
    assert (model.nq, model.nv) == (engine.model.nq, engine.model.nv)
    for _ in range(states):
        q, qd = model.random_state(rng)
        expected = engine.accelerations(model, q, qd)
        H = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(engine.model, engine.data, H)
        found = model.forward_dynamics(q, qd, model.passive_forces(q, qd))
        scale = np.linalg.cond(H) * model.nv * abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=100 * EPS * scale)
        moving = engine.data.qvel @ H @ engine.data.qvel / 2
        np.testing.assert_allclose(model.energy(q, qd)[0], moving, rtol=1e3 * EPS)
    return model, engine


@pytest.mark.parametrize("trunk", TRUNKS)
def test_accelerations_of_an_mjcf_agree_with_mujoco(tmp_path, trunk):
    model, engine = assert_moves_as_in_mujoco(written(tmp_path, MJCF.format(trunk=TRUNKS[trunk])))
    q, qd = model.random_state(1)
    engine.accelerations(model, q, qd)
    if trunk != "free":  # its linear velocity is in other axes
        H = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(engine.model, engine.data, H)
        np.testing.assert_allclose(model.mass_matrix(q), H, atol=100 * EPS * abs(H).max())
    for name, i in (("corner", 0), ("tool", 1)):
        pose = model.frame_poses(q, name)
        np.testing.assert_allclose(pose.translation, engine.data.site_xpos[i], atol=100 * EPS)
        np.testing.assert_allclose(pose.rotation, engine.data.site_xmat[i].reshape(3, 3), atol=100 * EPS)


@pytest.mark.filterwarnings("ignore:.*(omitted from the model|ref is not added)")
@pytest.mark.parametrize("joint", JOINTS)
@pytest.mark.parametrize("feature", FEATURES)
def test_passive_forces_of_an_mjcf_agree_with_mujoco(tmp_path, feature, joint):
    assert_moves_as_in_mujoco(written(tmp_path, pair(joint=JOINTS[joint], **FEATURES[feature])))


@pytest.mark.parametrize("joint", JOINTS)
def test_linear_drag_of_bodies_that_are_fixed_to_each_other_agrees_with_mujoco(tmp_path, joint):
    tip = (
        '<body name="tip" pos="0 0.1 0.2" euler="50 0 9" gravcomp="0.4"><geom type="box" size="0.03 0.1 0.05"/></body>'
    )
    fin = '<geom type="box" size="0.1 0.2 0.05" pos="0.1 0 0"/>' + tip
    fixed = f'{JOINTS[joint]}<body name="fin" pos="0.1 0.2 0.3" euler="10 20 30">{fin}</body>'
    assert_moves_as_in_mujoco(written(tmp_path, pair(joint=fixed, option='viscosity="2"')))


def test_a_spinning_free_body_with_armature_moves_in_a_straight_line(tmp_path):
    model = rb.load(written(tmp_path, FLOATING))
    spin, velocity = np.array([0.0, 0.0, 3.0]), np.array([2.0, 0.0, 0.0])
    qdd = model.forward_dynamics(model.neutral(), [*velocity, *spin], np.zeros(6))
    np.testing.assert_allclose(qdd, [*np.cross(velocity, spin), 0.0, 0.0, 0.0], atol=100 * EPS)


@pytest.mark.filterwarnings("ignore:.*ref is not added")
@pytest.mark.parametrize("joints", SEVERAL)
def test_a_body_may_have_several_joints_at_different_points(tmp_path, joints):
    text, kinds = SEVERAL[joints]
    model, engine = assert_moves_as_in_mujoco(written(tmp_path, pair(joint=text)))
    assert list(model.joint_types) == [*kinds, "revolute"]
    assert model.body_names[-2:] == ("base", "arm")
    assert model.mass[: len(kinds) - 1].tolist() == [0.0] * (len(kinds) - 1)
    q, qd = model.random_state(1)
    engine.accelerations(model, q, qd)
    pose = model.frame_poses(q, "arm")
    np.testing.assert_allclose(pose.translation, engine.data.body("arm").xpos, atol=100 * EPS)
    np.testing.assert_allclose(pose.rotation, engine.data.body("arm").xmat.reshape(3, 3), atol=100 * EPS)


def random_mjcf(seed):
    """A tree of bodies with random joints at random points, springs, damping, armature, gravity compensation, fluid."""
    rng = np.random.default_rng(seed)
    spec = mujoco.MjSpec()
    spec.option.gravity, spec.option.viscosity, spec.option.density = rng.normal(size=3), *rng.uniform(0, 1, 2)
    bodies = []
    for i in range(6):
        parent = spec.worldbody if i == 0 or rng.random() < 0.2 else bodies[rng.integers(i)]
        tensor = np.cov(rng.normal(size=(3, 8))) * 0.1
        R = random_rotation(rng)
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, R.ravel())
        body = parent.add_body(
            name=f"body {i}",
            pos=rng.normal(size=3),
            quat=quaternion,
            gravcomp=rng.choice([0.0, 1.0, 1.7]),
            mass=rng.uniform(0.1, 2),
            ipos=rng.normal(size=3) * 0.2,
            fullinertia=(tensor.trace() * np.eye(3) - tensor)[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]],
            explicitinertial=True,
        )
        free = parent is spec.worldbody and rng.random() < 0.5
        rows = (
            ["FREE"]
            if free
            else [*rng.choice(["SLIDE", "HINGE"], rng.integers(0, 4)), *["BALL"] * int(rng.integers(2))]
        )
        for kind in rows or ["HINGE"]:
            joint = body.add_joint(
                type=getattr(mujoco.mjtJoint, f"mjJNT_{kind}"),
                axis=rng.normal(size=3),
                armature=rng.uniform(0, 0.5),
                pos=np.zeros(3) if kind == "FREE" else rng.normal(size=3) * 0.3,
            )
            joint.damping[0] = rng.uniform(0, 0.5)
            if kind in ("SLIDE", "HINGE"):
                joint.stiffness[:] = rng.uniform(0, 2), 0.0, rng.uniform(-1, 1)
                joint.springref, joint.ref = rng.normal(size=2)
        bodies.append(body)
    spec.compile()
    return spec.to_xml()


@pytest.mark.filterwarnings("ignore:.*ref is not added")
@pytest.mark.parametrize("seed", range(10))
def test_accelerations_of_random_mjcf_agree_with_mujoco(tmp_path, seed):
    assert_moves_as_in_mujoco(written(tmp_path, random_mjcf(seed)))


def robot(name):
    """A file of Gymnasium's robots."""
    return Path(find_spec("gymnasium").submodule_search_locations[0]) / "envs" / "mujoco" / "assets" / f"{name}.xml"


@pytest.mark.filterwarnings("ignore:.*omitted from the model")
@pytest.mark.parametrize(
    "name", ["ant", "half_cheetah", "hopper", "humanoid", "inverted_double_pendulum", "pusher", "swimmer", "walker2d"]
)
def test_accelerations_of_published_robots_agree_with_mujoco(name):
    assert_moves_as_in_mujoco(robot(name))


def test_includes_meshes_defaults_frames_and_replicates_agree_with_mujoco(tmp_path):
    (tmp_path / "parts").mkdir()
    corners = [f"{x} {y} {z}" for x in (0, 0.1) for y in (0, 0.2) for z in (0, 0.3)]
    (tmp_path / "parts" / "block.obj").write_text(
        "\n".join([*(f"v {corner}" for corner in corners), "f 1 2 3", "f 2 4 3", "f 5 7 6", "f 6 7 8", "f 1 5 6",
                   "f 1 6 2", "f 3 4 8", "f 3 8 7", "f 1 3 7", "f 1 7 5", "f 2 6 8", "f 2 8 4"])
    )  # fmt: skip
    (tmp_path / "parts" / "defaults.xml").write_text(
        '<mujoco><default><joint damping="0.2"/><geom contype="0" conaffinity="0"/><default class="stiff">'
        '<joint stiffness="3"/></default></default></mujoco>'
    )
    text = """
    <mujoco>
      <include file="parts/defaults.xml"/>
      <compiler meshdir="parts"/>
      <asset><mesh name="block" file="block.obj"/></asset>
      <worldbody>
        <replicate count="2" offset="1 0 0">
          <frame pos="0 0 1" euler="0 90 0">
            <body name="b" childclass="stiff"><joint name="j"/><geom type="mesh" mesh="block"/></body>
          </frame>
        </replicate>
      </worldbody>
    </mujoco>"""
    model, _ = assert_moves_as_in_mujoco(written(tmp_path, text))
    assert model.joint_names == ("j0", "j1")
    assert model.stiffness.tolist() == [3.0, 3.0]
    assert model.damping.tolist() == [0.2, 0.2]


@pytest.mark.plain_python
def test_meshes_of_an_mjcf_become_visuals(tmp_path):
    """A visual shows the vertices of the file where MuJoCo has them."""
    mesh = trimesh.creation.box(extents=(1, 2, 3))
    mesh.apply_transform(trimesh.transformations.rotation_matrix(0.5, (1, 2, 3), (3, 1, 2)))
    (tmp_path / "parts").mkdir()
    mesh.export(tmp_path / "parts" / "box.stl")
    text = """
    <mujoco>
      <compiler meshdir="parts"/>
      <asset>
        <material name="red" rgba="1 0 0 1"/>
        <mesh name="box" file="box.stl" scale="0.1 0.2 -0.1"/>
        <mesh name="moved" file="box.stl" refpos="1 0 0"/>
        <mesh name="inline" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
      </asset>
      <worldbody>
        <body name="a" pos="0 0 1">
          <joint pos="0.1 0.2 0.3"/>
          <geom type="mesh" mesh="box" pos="1 2 3" euler="10 20 30" material="red" contype="0" conaffinity="0"/>
          <geom size="0.3" group="3" contype="0" conaffinity="0"/> {more}
        </body>
      </worldbody>
    </mujoco>"""
    file = written(tmp_path, text.format(more=""))
    model = rb.load(file)
    (visual,) = model.visuals["a"]
    assert visual.color == (1.0, 0.0, 0.0, 1.0)
    engine = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(engine)
    mujoco.mj_forward(engine, data)
    expected = engine.mesh_vert[: engine.mesh_vertnum[0]] @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
    vertices = trimesh.load(visual.file).vertices * visual.size
    pose = model.frame_poses(model.neutral(), "a") @ visual.pose
    found = vertices @ pose.rotation.T + pose.translation
    near = np.abs(found[:, None] - expected).max(-1).min(1)
    assert near.max() < 1e-6  # the vertices are float32
    for name in ("moved", "inline"):
        more = f'<geom type="mesh" mesh="{name}" contype="0" conaffinity="0"/>'
        with pytest.warns(UserWarning, match=r"omitted from the model: height fields and some meshes as visuals$"):
            assert len(rb.load(written(tmp_path, text.format(more=more))).visuals["a"]) == 1


def test_names_of_an_mjcf_are_kept(tmp_path):
    model = rb.load(written(tmp_path, MJCF.format(trunk=TRUNKS["hinge"])))
    assert model.name == "arm"
    assert model.body_names[:2] == ("trunk", "slider")
    assert model.joint_names[:2] == ("waist", "slide")
    assert {"corner", "tool", "handle"} <= set(model.fixed_frames)


@pytest.mark.filterwarnings("ignore:.*sites 'w' have the names of bodies")
def test_names_that_bodies_joints_and_sites_share_do_not_collide(tmp_path):
    text = """
    <mujoco><worldbody>
      <body name="w"><joint/><joint axis="1 0 0"/><geom size="1" contype="0"/><site name="w"/><site name="w_site"/>
        <body name="v"><joint name="w" axis="0 1 0"/><geom size="1" contype="0"/><site/>
          <body name="body4"><joint name="w_joints"/><geom size="1" contype="0"/>
            <body><geom size="1" contype="0"/><joint pos="1 0 0"/><joint axis="0 1 0"/></body>
          </body>
        </body>
        <body name="fixed"><body><joint name="fixed"/><geom size="1" contype="0"/></body></body>
      </body>
    </worldbody></mujoco>"""
    model, _ = assert_moves_as_in_mujoco(written(tmp_path, text))
    assert model.body_names == ("w", "v", "body4", "body4_2_1", "body4_2", "body6")
    assert model.joint_names == ("w_joints_2", "w", "w_joints", "body4_2_1", "body4_2", "fixed")
    assert set(model.fixed_frames) == {"w_site", "w_site_2", "site2", "fixed"}


def test_a_site_with_the_name_of_a_body_is_named(tmp_path):
    site = '<body name="tip"><joint axis="0 1 0"/><geom size="1" contype="0"/><site name="tip" pos="0 0 0.5"/></body>'
    file = written(tmp_path, f"<mujoco><worldbody><site name='world'/>{site}</worldbody></mujoco>")
    with pytest.warns(UserWarning) as caught:
        model = rb.load(file)
    sentence = "sites 'tip' have the names of bodies, so their frames have the names 'tip_site'"
    assert [str(warning.message) for warning in caught] == [f"{file}: {sentence}"]
    engine = Engine(file)
    engine.accelerations(model, np.array([0.3]), np.zeros(1))
    expected = engine.data.site("tip").xpos
    np.testing.assert_allclose(model.frame_poses([0.3], "tip_site").translation, expected, atol=4 * EPS)
    assert "world" in model.fixed_frames


def test_ranges_and_geoms_of_an_mjcf_are_kept(tmp_path):
    joint = '<joint axis="0 1 1" ref="0.5" limited="true" range="-1 1" actuatorfrcrange="-3 4"/>'
    geom = '<geom type="capsule" size="0.1 0.2" pos="0.3 0 0" rgba="1 0 0 0.5" contype="0"/>'
    with pytest.warns(UserWarning, match="omitted"):
        model = rb.load(written(tmp_path, MJCF.format(trunk=joint + geom)))
    assert model.position_limits[0].tolist() == [-1.5, 0.5]
    assert model.effort_limit[0] == 4.0
    (look,) = model.visuals["trunk"]
    assert (look.shape, look.size, look.color) == ("capsule", (0.1, 0.4), (1.0, 0.0, 0.0, 0.5))


COUPLED = """
<mujoco>
  <option><flag {flag}/></option>
  <worldbody>
    <body name="a" {a}><joint name="ja" {ja}/><geom size="0.1" {geom}/><site name="sa"/></body>
    <body name="b" {b} pos="1 0 0"><joint name="jb" {jb}/><geom size="0.1" {geom}/><site name="sb"/></body>
    {mocap}
  </worldbody>
  {more}
</mujoco>
"""
TENDON = """
<tendon>
  <fixed name="t" {}><joint joint="ja" coef="1"/></fixed>
  <fixed name="measured"><joint joint="jb" coef="1"/></fixed>
</tendon>
"""
MOTOR = '<actuator><motor joint="ja"/></actuator>'
MUSCLE = '<actuator><muscle name="m" joint="ja" lengthrange="0 1"/></actuator>'
WELD = '<equality><weld name="glue" body1="a" body2="b"/></equality>'
CONSTRAINTS = """
<equality>
  <weld body1="a" body2="b"/> <connect site1="sa" site2="sb"/> <connect body1="a" anchor="0 0 0"/>
  <joint joint1="ja" joint2="jb"/> <joint joint1="jb"/> <tendon tendon1="t"/>
</equality>
"""
LEFT_OUT = "omitted from the model: "
#: Fields of COUPLED, and the warning.
DIFFERENT = {
    "actuators": (
        {"more": MUSCLE},
        LEFT_OUT + "actuators 'm' (its activation is the activation of a muscle; use rb.Sampled with a function)",
    ),
    "limits": ({"ja": 'range="-1 1"'}, LEFT_OUT + "limits of joints (1; stored, and enforced by model.hard_stops())"),
    "limits of a ball": ({"ja": 'type="ball" range="0 1"'}, LEFT_OUT + "limits of ball joints 'ja'"),
    "contacts": ({"geom": 'contype="1" conaffinity="1"'}, LEFT_OUT + "contacts of geoms (use model.contacts)"),
    "tendons": ({"more": TENDON.format('stiffness="1"')}, LEFT_OUT + "tendons 't'"),
    "polynomial tendons": ({"more": TENDON.format('damping="0 1"')}, LEFT_OUT + "tendons 't'"),
    "heavy tendons": ({"more": TENDON.format('armature="1"')}, LEFT_OUT + "tendons 't'"),
    "limited tendons": ({"more": TENDON.format('range="-1 1"')}, LEFT_OUT + "tendons 't'"),
    "motors that make tendons heavy": (
        {"more": TENDON.format("") + '<actuator><motor tendon="t" armature="1"/></actuator>'},
        LEFT_OUT + "tendons 't'",
    ),
    "a constraint": ({"more": WELD}, "equality constraints 'glue' are exact: solref and solimp are ignored"),
    "constraints without names": (
        {"more": TENDON.format("") + CONSTRAINTS},
        LEFT_OUT + "equality constraints joint of 'jb', tendon of 't'; equality constraints weld of 'a' and 'b', "
        "connect of 'sa' and 'sb', connect of 'a' and 'world', joint of 'ja' and 'jb' are exact: solref and solimp are "
        "ignored",
    ),
    "nonlinear constraints": (
        {"more": '<equality><joint joint1="ja" joint2="jb" polycoef="0 1 1 0 0"/></equality>'},
        LEFT_OUT + "equality constraints joint of 'ja' and 'jb'",
    ),
    "constraints that hold a joint": (
        {"more": '<equality><joint joint1="ja" joint2="jb" polycoef="0.1 0 0 0 0"/></equality>'},
        LEFT_OUT + "equality constraints joint of 'ja' and 'jb'",
    ),
    "actuators against gravity": (
        {"b": 'gravcomp="1"', "jb": 'actuatorgravcomp="true"'},
        LEFT_OUT + "gravity compensation by actuators of bodies 'b'",
    ),
    "dry friction": (
        {"ja": 'frictionloss="1"'},
        "dry friction of joints 'ja' is regularized: they creep instead of sticking",
    ),
    "dry friction of a floating base": (
        {"ja": 'type="free" frictionloss="1"'},
        "dry friction of joints 'ja' is regularized: they creep instead of sticking; "
        "dry friction of joints 'ja' acts along body axes, and not along world axes",
    ),
    "quadratic drag of two bodies": (
        {
            "flag": "/></option><option density='1.2'><flag ",
            "mocap": '<body name="c"><joint/><geom size="0.1" contype="0"/>'
            '<body name="fin"><geom size="0.05" contype="0"/></body></body>',
        },
        LEFT_OUT + "quadratic drag of bodies that are fixed to other bodies with drag: 'fin'",
    ),
    "names of joints in a composite joint": (
        {
            "mocap": '<body name="c"><joint name="u"/><joint name="v" axis="1 0 0"/><geom size="0.1" contype="0"/>'
            "</body>"
        },
        "joints of one body form the composite joints 'c' (u, v)",
    ),
    "a reference": (
        {"ja": 'ref="1"'},
        "positions of joints 'ja' are relative to the pose in the file: ref is not added",
    ),
    "a mocap body": (
        {"mocap": '<body name="m" mocap="true"/>'},
        "mocap bodies 'm' are fixed at their pose in the file",
    ),
    "a body asleep": (
        {"b": 'sleep="init"', "flag": 'sleep="enable"'},
        "bodies 'b' are simulated from the start, although the file lets them sleep",
    ),
    "several": (
        {"more": WELD + MUSCLE, "ja": 'frictionloss="1"', "jb": 'frictionloss="1"'},
        LEFT_OUT + "actuators 'm' (its activation is the activation of a muscle; use rb.Sampled with a function); "
        "equality constraints 'glue' are exact: solref and solimp are "
        "ignored; dry friction of joints 'ja', 'jb' is regularized: they creep instead of sticking",
    ),
}
#: Features of the file without effect.
WITHOUT_EFFECT = {
    "disabled actuators": {"more": MUSCLE, "flag": 'actuation="disable"'},
    "motors": {"more": MOTOR},
    "disabled limits": {"ja": 'range="-1 1"', "flag": 'limit="disable"'},
    "geoms that do not meet": {"geom": 'contype="1" conaffinity="2"'},
    "disabled contacts": {"geom": 'contype="1" conaffinity="1"', "flag": 'contact="disable"'},
    "disabled dry friction": {"ja": 'frictionloss="1"', "flag": 'frictionloss="disable"'},
    "tendons that only measure": {"more": TENDON.format("")},
    "disabled springs of tendons": {"more": TENDON.format('stiffness="1"'), "flag": 'spring="disable"'},
    "inactive constraints": {"more": WELD.replace("weld ", 'weld active="false" ')},
    "disabled constraints": {"more": WELD, "ja": 'range="-1 1" frictionloss="1"', "flag": 'constraint="disable"'},
    "permission to sleep": {"b": 'sleep="init"'},
    "a wing that stands still": {
        "flag": "/></option><option viscosity='1'><flag ",
        "mocap": '<body gravcomp="-1"><geom size="1" contype="0" conaffinity="0" fluidshape="ellipsoid"/></body>',
    },
}


#: Bodies on joints of all types, in a loop that equality constraints close, and two sites to constrain.
LOOPS = """
<mujoco>
  <compiler angle="radian"/>
  <option gravity="1 -2 -9" jacobian="dense"/>
  <worldbody>
    <site name="corner" pos="0.1 0.2 0.9" euler="0.1 0.2 0.3"/>
    <body name="trunk" pos="0.1 0.2 0.3" euler="0.3 0.2 0.1">
      <freejoint/>
      <inertial pos="0.05 0.02 0.01" euler="0.2 0.1 0.4" mass="3" diaginertia="0.03 0.04 0.05"/>
      <site name="hook" pos="0.1 0.1 0.2" euler="0.3 0 0.2"/>
      <body name="left" pos="0.2 0 0.1" euler="0 0.4 0">
        <joint name="left" axis="1 2 3" pos="0.02 0.03 0.04" ref="0.3"/>
        <inertial pos="0 0.1 0" mass="1" diaginertia="0.01 0.02 0.02"/>
        <body name="hand" pos="0 0.3 0">
          <joint name="lift" type="slide" axis="1 0 1" pos="0.02 0.03 0.04"/>
          <inertial pos="0.1 0 0" mass="0.7" diaginertia="0.01 0.01 0.015"/>
          <site name="tip" pos="0.1 0.05 0.3" euler="0.5 0.1 0"/>
        </body>
      </body>
      <body name="right" pos="-0.2 0.1 0" euler="0.5 0 0">
        <joint name="ball" type="ball" pos="0.1 0 0.05"/>
        <inertial pos="0.1 0.1 0" mass="0.5" diaginertia="0.004 0.005 0.006"/>
        <body name="thumb" pos="0.1 0 0.2">
          <joint name="thumb" axis="0 1 0" pos="0.1 0.2 0"/>
          <inertial pos="0.1 0 0" mass="0.3" diaginertia="0.004 0.005 0.006"/>
          <site name="nail" pos="0.2 0.05 0.1" euler="0.5 0.6 0"/>
        </body>
      </body>
    </body>
    <body name="other" pos="0.5 0.2 0.6">
      <joint name="spin" axis="0 1 1" pos="0 0.1 0.2"/>
      <inertial pos="0.1 0 0" mass="0.9" diaginertia="0.01 0.01 0.015"/>
      <body name="wheel"><joint type="ball"/><inertial pos="0 0 0" mass="0.9" diaginertia="0.01 0.01 0.01"/></body>
    </body>
  </worldbody>
  <tendon><spatial name="rope"><site site="tip"/><site site="nail"/></spatial>
    <fixed name="two"><joint joint="left" coef="2"/><joint joint="lift" coef="-0.6"/></fixed></tendon>
  <equality>{}</equality>
</mujoco>
"""
#: Equality constraints, and the factors of MuJoCo's rows that give those of rbchain at a closed configuration.
EQUALITIES = {
    "connect": ('<connect name="x" body1="hand" body2="thumb" anchor="0.1 0.2 0.3"/>', [-1] * 3),
    "connect to the world": ('<connect body1="hand" anchor="0.1 0.2 0.3"/>', [-1] * 3),
    "connect sites": ('<connect site1="tip" site2="corner"/>', [-1] * 3),
    "weld": ('<weld body1="hand" body2="other" torquescale="0.8"/>', [-1] * 3 + [-2 / 0.8] * 3),
    "weld at a pose": (
        '<weld body1="trunk" body2="other" anchor="0.1 0 0.2" relpose="0.1 0.2 0.1 0.95 0.1 0.15 0.2"/>',
        [-1] * 3 + [-2] * 3,
    ),
    "weld sites": ('<weld site1="hook" site2="corner"/>', [-1] * 3 + [-2] * 3),
    "weld to the world": ('<weld body1="hand" relpose="0.1 0.2 0.1 0.95 0.1 0.15 0.2"/>', [-1] * 3 + [-2] * 3),
    "joint": ('<joint joint1="left" joint2="lift" polycoef="0.1 -2 0 0 0"/>', [1]),
    "length": ('<tendon tendon1="rope" polycoef="0.1 0 0 0 0"/>', [1]),
    "tendon of two joints": ('<tendon tendon1="two" polycoef="0.1 0 0 0 0"/>', [1 / 2]),
}
THREE = ("connect", "weld sites", "joint")


def with_equalities(tmp_path, *parts):
    """The model and MuJoCo's, with equality constraints, and MuJoCo's factors of the rows."""
    file = written(tmp_path, LOOPS.format("".join(EQUALITIES[part][0] for part in parts)))
    with pytest.warns(UserWarning, match="equality constraints .* are exact: solref and solimp are ignored"):
        model = rb.load(file)
    return model, Engine(file), np.concatenate([EQUALITIES[part][1] for part in parts])


def rows_of_mujoco(model, engine, q, qd):
    """The residuals and the Jacobian of the equality constraints, in rbchain's coordinates."""
    engine.accelerations(model, q, qd)
    turns = engine.set_state(model, q, qd)
    J = engine.data.efc_J.reshape(-1, model.nv).copy()
    for dof, turn in turns.items():
        J[:, dof : dof + 3] = J[:, dof : dof + 3] @ turn
    return engine.data.efc_pos.copy(), J


def a_closed_configuration(model):
    return model.assemble(model.integrate(model.neutral(), 0.2 * np.random.default_rng(6).normal(size=model.nv)))


@pytest.mark.slow_cases("('connect sites',)", "('weld',)")
@pytest.mark.plain_python
@pytest.mark.parametrize("parts", [(part,) for part in EQUALITIES] + [THREE], ids=str)
def test_equality_constraints_have_the_rows_of_mujoco(tmp_path, parts):
    model, engine, factors = with_equalities(tmp_path, *parts)
    q, qd = model.random_state(np.random.default_rng(5))
    if len(parts) == 1:  # translations and distances agree in all configurations
        residual, _ = rows_of_mujoco(model, engine, q, qd)
        rows = slice(0, min(3, len(factors)))
        np.testing.assert_allclose(model.constraint_residual(q)[rows], (factors * residual)[rows], atol=1e-13)
    q = a_closed_configuration(model)
    residual, J = rows_of_mujoco(model, engine, q, qd)
    np.testing.assert_allclose(residual, 0.0, atol=1e-11)
    np.testing.assert_allclose(model.constraint_jacobian(q), factors[:, None] * J, atol=1e-10)


@pytest.mark.slow_cases("('connect sites',)", "('weld',)")
@pytest.mark.plain_python
@pytest.mark.parametrize("parts", [(part,) for part in EQUALITIES] + [THREE], ids=str)
def test_accelerations_with_equality_constraints_are_those_of_mujoco_in_the_limit(tmp_path, parts):
    """MuJoCo's mass matrix, rows and free accelerations give the limit of infinitely stiff constraints, at rest."""
    model, engine, _ = with_equalities(tmp_path, *parts)
    q, rest = a_closed_configuration(model), np.zeros(model.nv)
    engine.accelerations(model, q, rest)
    turns = engine.set_state(model, q, rest)
    H, J, qdd = np.zeros((model.nv, model.nv)), engine.data.efc_J.reshape(-1, model.nv), engine.data.qacc_smooth.copy()
    mujoco.mj_fullM(engine.model, engine.data, H)
    response = np.linalg.solve(H, J.T)
    qdd -= response @ np.linalg.solve(J @ response, J @ qdd)
    for dof, turn in turns.items():
        qdd[dof : dof + 3] = turn.T @ qdd[dof : dof + 3]
    found = model.forward_dynamics(q, rest, rest)
    np.testing.assert_allclose(found, qdd, rtol=0, atol=1e-9 * np.abs(qdd).max())


def test_a_weld_without_torque_is_a_ball_joint(tmp_path):
    file = written(tmp_path, LOOPS.format('<weld name="x" body1="hand" body2="other" torquescale="0"/>'))
    with pytest.warns(UserWarning, match="'x' are exact"):
        assert [place.kind for place in rb.load(file).description.constraints] == ["ball"]


def test_equality_constraints_between_bodies_that_are_fixed_to_each_other_are_ignored(tmp_path):
    fixed = {"mocap": '<body name="m"/>', "more": '<equality><connect body1="m" anchor="1 2 3"/></equality>'}
    assert_moves_as_in_mujoco(written(tmp_path, coupled(fixed)))


def test_joints_that_are_part_of_a_composite_joint_are_not_coupled(tmp_path):
    more = '<equality><joint name="gear" joint1="root" joint2="elbow"/></equality>'
    file = written(tmp_path, pair(joint=HINGE.format("") + '<joint axis="1 0 0"/>', more=more))
    with pytest.warns(UserWarning, match="omitted from the model: equality constraints 'gear'"):
        assert rb.load(file).constraint_names == ()


def coupled(fields):
    unsaid = dict.fromkeys(("flag", "a", "b", "ja", "jb", "mocap", "more"), "")
    return COUPLED.format(**{**unsaid, "geom": 'contype="0" conaffinity="0"', **fields})


@pytest.mark.parametrize("part", DIFFERENT)
def test_features_that_differ_from_mujoco_are_named(tmp_path, part):
    fields, text = DIFFERENT[part]
    file = written(tmp_path, coupled(fields))
    with pytest.warns(UserWarning) as caught:
        rb.load(file)
    assert [str(warning.message) for warning in caught] == [f"{file}: {text}"]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("part", WITHOUT_EFFECT)
def test_features_without_effect_give_no_warning(tmp_path, part):
    assert_moves_as_in_mujoco(written(tmp_path, coupled(WITHOUT_EFFECT[part])))


#: Fields of PAIR, and the reason to refuse the file.
REFUSED = {
    "damping": ({"elbow": 'damping="0 3"'}, r"joint 'elbow': damping, .*, is \[0.0, 3.0, 0.0\]; expected zeros after"),
    "damping of an actuator": (
        {"more": '<actuator><motor joint="elbow" gear="2" damping="1 3"/></actuator>'},
        r"joint 'elbow': damping, including actuators, is \[4.0, 12.0, 0.0\]; expected zeros after",
    ),
    "quadratic springs": (
        {"elbow": 'stiffness="0 3"'},
        r"joint 'elbow': stiffness is \[0.0, 3.0, 0.0\]; expected 0 as the second number",
    ),
    "springs of a ball": (
        {"joint": BALL.format('stiffness="2"')},
        r"joint 'root': stiffness is \[2.0.*\]; expected 0, because rbchain has springs at hinge",
    ),
    "springs of a free body": ({"joint": FREE.format('stiffness="0 2"')}, r"joint 'root': stiffness is \[0.0, 2.0"),
    "plastic springs": (
        {"elbow": 'stiffness="2" springyield="0.5"'},
        "joint 'elbow': springyield is 0.0087.*; expected 0",
    ),
    "a joint without a name": (
        {"joint": '<joint/><joint axis="1 0 0" damping="0 1"/>'},
        "joint number 1 of body 'base': damping",
    ),
    "gravity increased": (
        {"base": 'gravcomp="-0.5"'},
        "body 'base': gravcomp is -0.5; expected zero or more",
    ),
    "gravity that actuators compensate in part": (
        {"arm": 'gravcomp="1"', "elbow": 'actuatorgravcomp="true"'},
        r"body 'arm': actuators compensate its gravity \(gravcomp\) at some of the joints that carry it; expected",
    ),
    "wind": ({"option": FLUID + ' wind="1 0 0"'}, r"wind is \[1.0, 0.0, 0.0\]; expected zeros, .* rbchain.Current"),
    "lift": (
        {"option": FLUID, "joint": HINGE.format("") + '<geom name="wing" size="1" fluidshape="ellipsoid"/>'},
        "geom 'wing' of body 'base': fluidshape is ellipsoid; expected none",
    ),
    "a deformable body": (
        {
            "joint": '<flexcomp name="cloth" type="grid" count="3 3 1" spacing="1 1 1" dim="2" radius="0.01">'
            '<elasticity young="1e3" poisson="0.1" thickness="0.01" elastic2d="both"/></flexcomp>'
        },
        "flex 'cloth' is deformable; expected rigid bodies only",
    ),
    "two reasons": ({"elbow": 'damping="0 3" stiffness="0 3"'}, "joint 'elbow': damping.*; joint 'elbow': stiffness"),
}


@pytest.mark.parametrize("part", REFUSED)
def test_unsupported_forces_are_refused(tmp_path, part):
    fields, reason = REFUSED[part]
    file = written(tmp_path, pair(**fields))
    with pytest.raises(rb.FileFormatError, match=re.escape(f"{file}: rbchain cannot represent this file: ") + reason):
        rb.load(file)


def test_a_file_without_joints_is_refused_with_a_remedy(tmp_path):
    file = written(tmp_path, '<mujoco><worldbody><body><geom size="1"/></body></worldbody></mujoco>')
    with pytest.raises(rb.ModelError, match=re.escape(f"{file}: model 'model' has no moving body") + ".*<freejoint/>"):
        rb.load(file)


def test_one_warning_with_the_name_of_the_file_contains_all_others(tmp_path, monkeypatch):
    """MuJoCo would write its own warnings to a file in the current folder."""
    monkeypatch.chdir(tmp_path)
    text = '<joint axis="0 1 0" range="0 1"/><joint axis="0 1 0"/><geom size="1" contype="0"/>'
    file = written(tmp_path, f"<mujoco><worldbody><body name='b'>{text}</body></worldbody></mujoco>")
    with pytest.warns(UserWarning) as caught:
        rb.load(file)
    (warning,) = caught
    assert re.fullmatch(
        re.escape(
            f"{file}: {LEFT_OUT}limits of joints (1; stored, and enforced by model.hard_stops()); MuJoCo warns: "
            "Inertia matrix is too"
        )
        + r".*; model '.*': no mass, inertia or rotor resists the motion of \['b'\].*",
        str(warning.message),
    )
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()


def test_a_plugin_of_a_body_is_refused(tmp_path):
    source = Source(written(tmp_path, pair()))
    source.model.body_plugin[1] = 0  # MuJoCo 4 comes with no plugin for bodies
    assert list(refusals(source, Forces(source))) == [
        "body 'base': a plugin acts on it; expected none, because rbchain does not run MuJoCo plugins"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"<mujoco><worldbody><body/></worldbody>", "model.xml: MuJoCo cannot compile the file: "),
        (
            b'<mujoco model="\xff"><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>',
            "not encoded in UTF-8",
        ),
    ],
)
def test_an_unreadable_mjcf_is_refused_with_the_reason(tmp_path, text, message):
    (tmp_path / "model.xml").write_bytes(text)
    with pytest.raises(rb.FileFormatError, match=message):
        rb.load(tmp_path / "model.xml")
