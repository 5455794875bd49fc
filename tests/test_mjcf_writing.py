"""Saved MJCF files, compared with MuJoCo's dynamics and read back."""

import re

import mujoco
import numpy as np
import pytest

import rbchain as rb

from .closed_chains import CHAINS, closed_chain
from .mechanisms import EVERY_KIND, JOINTS, random_inertia, random_rotation
from .oracles.mjcf import Engine

EPS = np.finfo(float).eps
pytestmark = pytest.mark.plain_python
KINDS = [kind for kind in EVERY_KIND if kind not in ("screw", "composite", "free")]
CONSTRAINT_FIELDS = ("point_a", "point_b", "length", "ratio", "offset")


def saved(model, tmp_path):
    """The file of a model."""
    file = tmp_path / "model.xml"
    rb.save(model, file)
    return file


def loaded(file, exact=True):
    """The model of a file; `exact` if it has constraints, of which the reader warns."""
    if not exact:
        return rb.load(file)
    with pytest.warns(UserWarning, match="equality constraints .* are exact"):
        return rb.load(file)


def random_pose(rng):
    return rb.Pose(rng.normal(size=3), random_rotation(rng))


def random_model(seed):
    """A tree with joints of all types that MJCF has, numbered depth first, with motors, springs, damping and frames."""
    rng, builder = np.random.default_rng(seed), rb.ModelBuilder(name="tree", gravity=(1, -2, -9))
    for i in range(6):
        joint = rb.Free() if i == 0 and seed % 2 else JOINTS[rng.choice(KINDS)](rng)
        has_angle, dofs = joint.kind not in ("free", "spherical"), len(joint.dofs)
        motors, dampings = (rng.random(dofs) if has_angle else rng.random() for _ in range(2))
        springs = {"stiffness": rng.random(dofs), "rest_position": rng.normal(size=dofs)} if has_angle else {}
        limits = {"lower": -1.0 - rng.random(dofs), "effort": rng.random(dofs)} if has_angle else {}
        builder.add_body(
            f"body{i}",
            parent=None if i == 0 else f"body{i - 1 - (i == 4)}",
            joint=joint,
            placement=rb.Pose(rng.normal(size=3) * 0.4, random_rotation(rng)),
            inertia=random_inertia(rng),
            rotor_inertia=0.0 if joint.kind == "free" else motors,
            passive=rb.PassiveForces(damping=dampings, **springs),
            limits=rb.JointLimits(**limits) if limits else None,
        )
    sizes = {"box": 3, "cylinder": 2, "capsule": 2, "sphere": 1, "ellipsoid": 3}
    looks = [
        rb.Visual(shape, rng.random(count), pose=random_pose(rng), color=(1, 0.5, 0.25, 1))
        for shape, count in sizes.items()
    ]
    builder.add_body("tool", parent="body5", joint=rb.Fixed(), placement=random_pose(rng), visuals=looks)
    return builder.build()


def turned(engine, turns, nv):
    """The matrix from rbchain's velocities to those of MuJoCo."""
    T = np.eye(nv)
    for dof, turn in turns.items():
        T[dof : dof + 3, dof : dof + 3] = turn
    return T


def assert_dynamics_of_mujoco(model, file):
    """Compare mass matrices and free accelerations, hence bias forces, in a random state."""
    engine = Engine(file)
    engine.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    q, qd = model.random_state(0)
    expected = engine.accelerations(model, q, qd)
    T, H = turned(engine, engine.set_state(model, q, qd), model.nv), np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(engine.model, engine.data, H)
    M = model.mass_matrix(q)
    np.testing.assert_allclose(M, T.T @ H @ T, rtol=0, atol=1e3 * EPS * np.abs(M).max())
    forces = model.passive_forces(q, qd) - model.bias_forces(q, qd)
    np.testing.assert_allclose(M @ expected, forces, rtol=0, atol=1e4 * EPS * (np.abs(M @ expected).max() + 1))


def assert_equal(found, expected):
    """Numbers are equal to the bit, and those that depend on principal axes or quaternions up to round-off."""
    assert (found.name, found.body_names, found.dof_types) == (expected.name, expected.body_names, expected.dof_types)
    np.testing.assert_array_equal(found.parent, expected.parent)
    for field in ("placement_translation", "mass", "cg", "gravity", "armature", "damping", "stiffness", "friction"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field), err_msg=field)
    np.testing.assert_array_equal(found.rest_position * found.stiffness, expected.rest_position * expected.stiffness)
    np.testing.assert_array_equal(found.position_limits, expected.position_limits)
    np.testing.assert_array_equal(found.effort_limit, expected.effort_limit)
    np.testing.assert_allclose(found.axis, expected.axis, rtol=0, atol=4 * EPS)
    np.testing.assert_allclose(found.placement_rotation, expected.placement_rotation, rtol=0, atol=16 * EPS)
    np.testing.assert_allclose(found.inertia, expected.inertia, rtol=0, atol=64 * EPS * np.abs(expected.inertia).max())


@pytest.mark.parametrize("seed", range(6))
def test_a_tree_has_the_dynamics_of_its_mjcf_and_is_unchanged_after_loading(tmp_path, seed):
    model = random_model(seed)
    file = saved(model, tmp_path)
    assert_dynamics_of_mujoco(model, file)
    with pytest.warns(UserWarning, match=r"omitted from the model: limits of joints"):
        again = rb.load(file)
    assert_equal(again, model)
    q, _ = model.random_state(1)
    for pose in (model.frame_poses(q, "tool"), again.frame_poses(q, "tool")):
        np.testing.assert_allclose(pose.translation, model.frame_poses(q, "tool").translation, rtol=0, atol=64 * EPS)
    frame = model.description.frames["tool"].pose
    for found, look in zip(again.visuals["body5"], model.visuals["tool"], strict=True):
        assert (found.shape, found.size) == (look.shape, look.size)
        np.testing.assert_allclose(found.color, look.color, rtol=0, atol=1e-7)  # MuJoCo's are in float32
        np.testing.assert_allclose(found.pose.translation, (frame @ look.pose).translation, rtol=0, atol=16 * EPS)
        np.testing.assert_allclose(found.pose.rotation, (frame @ look.pose).rotation, rtol=0, atol=16 * EPS)


@pytest.mark.parametrize("name", CHAINS)
def test_a_closed_chain_has_the_rows_of_its_mjcf(tmp_path, name):
    model = closed_chain(name).model
    file = saved(model, tmp_path)
    assert_dynamics_of_mujoco(model.open_tree(), file)
    again, engine = loaded(file), Engine(file)
    assert_equal(again, model)
    q, qd = model.random_state(2)
    np.testing.assert_allclose(residual_of_translations(again, q), residual_of_translations(model, q), atol=1e-14)
    engine.accelerations(model, q, qd)
    signs = [1.0 if place.kind in ("coupler", "distance") else -1.0 for place in again.description.constraints]
    rows = [again.constraint_residual(q)[first] for first, _ in first_rows(again)]
    found = np.array(signs) * engine.data.efc_pos[[first for first, _ in first_rows(again)]]
    np.testing.assert_allclose(found, rows, rtol=0, atol=1e-13)
    if "hinge" not in {place.kind for place in model.description.constraints}:
        assert [place[:2] for place in again.description.constraints] == [
            place[:2] for place in model.description.constraints
        ]
        np.testing.assert_allclose(again.constraint_residual(q), model.constraint_residual(q), rtol=0, atol=1e-13)
        for field in CONSTRAINT_FIELDS:
            pair = (getattr(x.description, f"constraint_{field}") for x in (again, model))
            np.testing.assert_allclose(*pair, rtol=0, atol=4 * EPS, err_msg=field)


def first_rows(model):
    """The first row of each constraint, and its number of rows."""
    counts = [{"ball": 3, "hinge": 5, "weld": 6}.get(place.kind, 1) for place in model.description.constraints]
    return list(zip(np.cumsum([0, *counts[:-1]]).tolist(), counts, strict=True))


def residual_of_translations(model, q):
    """Translations, distances and couplers of a residual, without the second point of a hinge."""
    residual = model.constraint_residual(q)
    return np.concatenate(
        [
            residual[first : first + min(count, 3)]
            for (first, count), name in zip(first_rows(model), model.constraint_names, strict=True)
            if not name.endswith("_axis")
        ]
    )


@pytest.mark.parametrize("name", ["hinged arm", "Bricard"])
def test_a_hinge_constraint_becomes_two_points_on_its_axis(tmp_path, name):
    chain = closed_chain(name)
    again = loaded(saved(chain.model, tmp_path))
    (pin,) = chain.model.constraint_names
    assert again.constraint_names == (pin, f"{pin}_axis")
    q = chain.model.assemble(chain.guess)
    np.testing.assert_allclose(again.constraint_residual(q), 0.0, atol=1e-11)
    qd = chain.model.assemble_velocities(q, np.ones(chain.model.nv))
    qdd = chain.model.forward_dynamics(q, qd, np.zeros(chain.model.nv))
    found = again.forward_dynamics(q, qd, np.zeros(chain.model.nv))
    np.testing.assert_allclose(found, qdd, rtol=0, atol=1e-10 * np.abs(qdd).max())


def arm(nonphysical_inertia="refuse", **of_body):
    builder = rb.ModelBuilder(nonphysical_inertia=nonphysical_inertia)
    given = {"joint": rb.Revolute(), "inertia": rb.Inertia(1.0, cg=(1, 0, 0), inertia=(1, 1, 1)), **of_body}
    builder.add_body(given.pop("name", "arm"), **given)
    return builder


def on_body(joint):
    builder = arm()
    builder.add_body("second", parent="arm", joint=joint, inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    return builder


REFUSED = {
    "screw": (on_body(rb.Screw((0, 0, 1), 0.1)), "joint 'second' is or contains a screw joint"),
    "composite": (on_body(rb.Composite([rb.Revolute(), rb.Screw((0, 0, 1), 0.1)])), "joint 'second' .* screw joint"),
    "free": (on_body(rb.Free()), "joint 'second' is a free joint on body 'arm'"),
    "inertia": (
        arm("warn", inertia=rb.Inertia(1.0, inertia=(1, 1, 2.1))),
        r"body 'arm': the principal moments of its inertia are \[1.0, 1.0, 2.1\]; expected .* sum of the other two",
    ),
    "name": (arm(name="world"), "a body has the name 'world'"),
}


@pytest.mark.filterwarnings("ignore:.*no body can have the inertia")
@pytest.mark.parametrize("what", REFUSED)
def test_mechanisms_that_mujoco_does_not_support_are_refused(tmp_path, what):
    builder, message = REFUSED[what]
    with pytest.raises(rb.FileFormatError, match=message):
        saved(builder.build(), tmp_path)


LOST = {
    "static friction": ({"passive": rb.PassiveForces(friction=1.0, static_friction=2.0)}, "static_friction$"),
    "stops": (
        {"passive": rb.PassiveForces(stop_upper=1.0, limit_stiffness=1.0)},
        "stop_upper, limit_stiffness$",
    ),
    "free friction": (
        {"joint": rb.Free(), "passive": rb.PassiveForces(friction=1.0)},
        r"frictionloss \[1.0, .*\] of joint 'arm'$",
    ),
    "unequal damping": (
        {"joint": rb.Spherical(), "passive": rb.PassiveForces(damping=[1.0, 2.0, 3.0])},
        r"damping \[1.0, 2.0, 3.0\] of joint 'arm'$",
    ),
    "a locked range": ({"limits": rb.JointLimits(0.3, 0.3)}, "the position limits of joint 'arm'$"),
    "velocity": ({"limits": rb.JointLimits(velocity=2.0)}, "the velocity limit of joint 'arm'$"),
    "effort": ({"limits": rb.JointLimits(effort=0.0)}, "the effort limit 0 of joint 'arm'$"),
    "mesh": ({"visuals": [rb.Visual("mesh", file="a.stl")]}, "visuals that are meshes$"),
}


@pytest.mark.parametrize("what", LOST)
def test_features_that_mjcf_cannot_store_are_named(tmp_path, what):
    given, message = LOST[what]
    with pytest.warns(UserWarning, match=f"MJCF cannot represent, and the file omits: {message}"):
        assert mujoco.MjModel.from_xml_path(str(saved(arm(**given).build(), tmp_path))).nbody == 2


def test_bodies_without_inertia_have_the_least_that_mujoco_supports(tmp_path):
    """A body without mass carries a rod without inertia about its axis."""
    builder = rb.ModelBuilder(gravity=(1, 2, -9))
    builder.add_body("cross", joint=rb.Revolute((1, 0, 0)))
    rod = rb.Inertia(1.0, cg=(0.3, 0, 0), inertia=(0, 0.1, 0.1))
    builder.add_body("rod", parent="cross", joint=rb.Revolute((0, 1, 0)), inertia=rod)
    model = builder.build()
    with pytest.warns(UserWarning, match="1e-15 kg and kg m\\^2 instead of smaller .* of bodies 'cross', 'rod'"):
        file = saved(model, tmp_path)
    assert_dynamics_of_mujoco(model, file)


def test_names_in_use_are_not_given_to_sites_and_joints(tmp_path):
    builder = on_body(rb.Planar())
    builder.add_body("loop_a", parent="second", joint=rb.Fixed())
    builder.add_body("third", joint=rb.Revolute(), joint_name="second_1", inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    builder.add_constraint(rb.HingeConstraint("loop", "second", "third"))
    builder.add_constraint(rb.BallConstraint("loop_axis", None, "third"))
    again = loaded(saved(builder.build(), tmp_path))
    assert again.constraint_names == ("loop", "loop_axis_", "loop_axis")
    assert {"loop_a", "loop_a_", "loop_b", "loop_axis_a", "loop_axis__a"} <= set(again.description.frames)
    assert again.joint_names == ("arm", "second", "second_1")


def test_a_rod_may_have_no_length_at_the_zero_configuration(tmp_path):
    builder = on_body(rb.Revolute())
    builder.add_constraint(
        rb.DistanceConstraint("rod", None, "second", point_a=(0, 0, 0), point_b=(0, 0, 0), length=0.5)
    )
    again = loaded(saved(builder.build(), tmp_path))
    assert again.description.constraint_length.tolist() == [0.5]


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(rb.FileFormatError, match=re.escape("expected '.toml', '.urdf' or '.xml' (MJCF)")):
        rb.save(arm().build(), tmp_path / "arm.mjcf")
