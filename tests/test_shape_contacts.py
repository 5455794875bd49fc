"""Contacts of the collision shapes of models: URDF, MJCF and rbchain's own format, judged by MuJoCo."""

import mujoco
import numpy as np
import pytest
import trimesh

import rbchain as rb

plain = pytest.mark.plain_python
GROUND = rb.Plane((0.1, 0.2, -0.3), (0.1, -0.2, 2.0))
INERTIA = rb.Inertia(1.0, inertia=(0.02, 0.02, 0.02))
PLACE = rb.Pose((0.1, -0.2, 0.3), np.linalg.qr(np.array([[1.0, 2, 3], [-1, 1, 0.5], [0.3, 0.2, 1]]))[0])
PLACE = rb.Pose(PLACE.translation, PLACE.rotation * np.sign(np.linalg.det(PLACE.rotation)))


def body_with(*shapes):
    builder = rb.ModelBuilder()
    builder.add_body("body", joint=rb.Free(), inertia=INERTIA, collisions=list(shapes))
    return builder.build()


def lowest_gap(model, contacts, q):
    return min(contact.gap(model, q) for contact in contacts)


SCENE = """
<mujoco>
  <asset><mesh name="wedge" vertex="0 0 0  0.3 0 0  0 0.2 0  0 0 0.25  0.05 0.04 0.05"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 0.1" margin="50" {floor}/>
    <body name="body" pos="0 0 1"><freejoint/>
      <geom name="shape" pos="0.1 -0.2 0.3" euler="20 30 40" margin="50" {shape}/>
    </body>
  </worldbody>
  {more}
</mujoco>
"""
SHAPES = {
    "sphere": 'type="sphere" size="0.1"',
    "capsule": 'type="capsule" size="0.1 0.2"',
    "box": 'type="box" size="0.1 0.2 0.3"',
    "mesh": 'type="mesh" mesh="wedge"',
    "cylinder": 'type="cylinder" size="0.1 0.2"',
    "ellipsoid": 'type="ellipsoid" size="0.1 0.2 0.3"',
}


def scene(folder, shape, floor="", more=""):
    """Return the model of rbchain and of MuJoCo of one shape above a floor."""
    file = folder / "scene.xml"
    file.write_text(SCENE.format(shape=shape, floor=floor, more=more))
    with pytest.warns(UserWarning, match="omitted from the model: .*contacts of geoms"):
        model = rb.load(file)
    return model, mujoco.MjModel.from_xml_path(str(file))


@plain
@pytest.mark.parametrize("shape", SHAPES)
def test_the_lowest_gap_of_a_geom_is_that_of_mujoco(tmp_path, shape):
    model, other = scene(tmp_path, SHAPES[shape])
    contacts, state = model.contacts(ground=rb.Plane((0, 0, 0), (0, 0, 1))), mujoco.MjData(other)
    for seed in range(20):
        q, _ = model.random_state(seed)
        state.qpos[:] = rb.io.mjcf.state_to_mujoco(model, other, q, np.zeros(6))[0]
        mujoco.mj_forward(other, state)
        # MuJoCo stores vertices of meshes in single precision
        expected, tolerance = state.contact.dist.min(), 1e-6 if shape == "mesh" else 1e-12
        np.testing.assert_allclose(lowest_gap(model, contacts, q), expected, rtol=0, atol=tolerance)


@plain
@pytest.mark.parametrize(
    ("masks", "floor", "more"),
    [
        ("", "", ""),
        ('contype="2" conaffinity="0"', "", ""),
        ('contype="2" conaffinity="0"', 'conaffinity="2"', ""),
        ('contype="0" conaffinity="4"', 'contype="4"', ""),
        ("", "", '<contact><exclude body1="world" body2="body"/></contact>'),
        ('contype="0" conaffinity="0"', "", '<contact><pair geom1="floor" geom2="shape" margin="50"/></contact>'),
    ],
)
def test_a_geom_touches_the_ground_if_it_touches_the_floor_of_mujoco(tmp_path, masks, floor, more):
    model, other = scene(tmp_path, f"{SHAPES['sphere']} {masks}", floor, more)
    state = mujoco.MjData(other)
    mujoco.mj_forward(other, state)
    assert [shape.touches_ground for shape in model.collisions["body"]] == [state.ncon > 0]


def test_geoms_that_never_collide_are_no_collision_shapes(tmp_path):
    masks = 'contype="0" conaffinity="0"'
    (tmp_path / "a.xml").write_text(SCENE.format(shape=f"{SHAPES['box']} {masks}", floor="", more=""))
    with pytest.warns(UserWarning, match="omitted"):
        model = rb.load(tmp_path / "a.xml")
    assert model.collisions == {}
    with pytest.raises(rb.ArgumentError, match="has no collision shapes that can touch the ground; expected at least"):
        model.contacts(ground=GROUND)


URDF = """
<robot name="r">
  <link name="base"><collision><geometry><box size="9 9 1"/></geometry></collision></link>
  <joint name="slide" type="prismatic"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-9" upper="9" effort="1" velocity="1"/></joint>
  <link name="arm">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0 0 1" rpy="0 1.5707963267948966 0"/>
      <geometry><box size="0.2 0.4 0.6"/></geometry></collision>
    <collision><geometry><mesh filename="wedge.stl" scale="2 1 1"/></geometry></collision>
  </link>
  <joint name="tip" type="fixed"><parent link="arm"/><child link="foot"/><origin xyz="0 0 -1"/></joint>
  <link name="foot"><collision><origin xyz="0 0.1 0"/><geometry><sphere radius="0.05"/></geometry></collision></link>
</robot>
"""


def urdf(folder, text=URDF):
    wedge = trimesh.Trimesh(
        [[0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.25]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    )
    wedge.export(folder / "wedge.stl")
    (folder / "robot.urdf").write_text(text)
    return rb.load(folder / "robot.urdf")


def test_the_collision_shapes_of_a_urdf_have_contacts(tmp_path):
    model = urdf(tmp_path)
    contacts = model.contacts(ground=GROUND, friction=[0.3, 0.4], restitution=0.2)
    assert [contact.frame for contact in contacts] == ["arm"] * 12 + ["foot"]
    assert [contact.name for contact in contacts] == [*(f"arm {i}" for i in range(1, 13)), None]
    box = np.array([contact.point for contact in contacts[:8]])
    np.testing.assert_allclose(np.ptp(box, axis=0), [0.6, 0.4, 0.2], atol=1e-15)
    np.testing.assert_allclose(box.mean(0), [0, 0, 1], atol=1e-15)
    wedge = sorted(np.round(contact.point, 6).tolist() for contact in contacts[8:12])
    assert wedge == [[0, 0, 0], [0, 0, 0.25], [0, 0.2, 0], [0.6, 0, 0]]
    foot = contacts[-1]
    assert (foot.point.tolist(), foot.radius) == ([0, 0.1, 0], 0.05)
    assert (foot.friction, foot.restitution, foot.plane_point, foot.plane_normal) == (
        [0.3, 0.4], 0.2, GROUND.point, GROUND.normal
    )  # fmt: skip
    assert len(model.contacts(ground=GROUND, frames=["foot"])) == 1


@pytest.mark.parametrize("ending", ["toml", "urdf"])
def test_collision_shapes_are_unchanged_after_saving_and_loading(tmp_path, ending):
    model = urdf(tmp_path)
    rb.save(model, tmp_path / f"again.{ending}")
    again = rb.load(tmp_path / f"again.{ending}")
    assert again.collisions.keys() == model.collisions.keys()
    for name, shapes in model.collisions.items():
        for found, shape in zip(again.collisions[name], shapes, strict=True):
            assert (found.shape, found.size, found.file) == (shape.shape, shape.size, shape.file)
            np.testing.assert_allclose(found.pose.rotation, shape.pose.rotation, atol=1e-15)
            np.testing.assert_array_equal(found.pose.translation, shape.pose.translation)


def test_a_hull_that_does_not_touch_the_ground_is_unchanged_in_the_own_format(tmp_path):
    hull = rb.CollisionShape("hull", points=np.random.default_rng(0).normal(size=(5, 3)), touches_ground=False)
    model = body_with(hull, rb.CollisionShape("sphere", (0.1,), pose=PLACE))
    rb.save(model, tmp_path / "m.toml")
    for found, shape in zip(rb.load(tmp_path / "m.toml").collisions["body"], model.collisions["body"], strict=True):
        np.testing.assert_array_equal(found.points, shape.points)
        assert found.touches_ground == shape.touches_ground
    with pytest.warns(UserWarning, match="collision shapes that are hull, that some collision shapes do not touch"):
        rb.save(model, tmp_path / "m.urdf")
    with pytest.warns(UserWarning, match="omits: collision shapes$"):
        rb.save(model, tmp_path / "m.xml")


def test_collision_shapes_remain_when_a_joint_is_locked_or_a_model_is_added(tmp_path):
    model = urdf(tmp_path)
    builder = rb.ModelBuilder()
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=INERTIA)
    builder.add_model(model, parent="cart", prefix="left/")
    both = builder.build()
    assert list(both.collisions) == ["left/arm", "left/base", "left/foot"]
    locked = both.lock({"left/slide": 0.1})
    assert set(locked.collisions) == set(both.collisions)
    assert len(locked.contacts(ground=GROUND)) == 8 + 13  # the base moves with the cart


@plain
def test_spheres_of_two_bodies_touch_each_other():
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    for name in ("a", "b"):
        ball = rb.CollisionShape("sphere", (0.1,), pose=rb.Pose((0.2, 0, 0)), touches_ground=False)
        builder.add_body(name, joint=rb.Prismatic((1, 0, 0)), inertia=INERTIA, collisions=[ball])
    contacts = builder.build().contacts(pairs=[("a", "b")], restitution=1.0)
    motion = builder.build().simulate([0.0, 0.5], [1.0, 0.0], 1.0, method="moreau", step=0.01, forces=contacts)
    np.testing.assert_allclose(motion.qd[-1], [0, 1], atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, rb.ArgumentError, "no ground and no pairs"),
        ({"ground": "floor"}, rb.ArgumentError, "ground is 'floor'; expected a Plane"),
        ({"ground": GROUND, "frames": []}, rb.ArgumentError, "frames is empty, so nothing can touch the ground"),
        ({"ground": GROUND, "frames": ["body"] * 2}, rb.ArgumentError, "frames contains 'body' twice"),
        ({"frames": ["body"], "pairs": [("a", "b")]}, rb.ArgumentError, "frames is .*'body'.*, but no ground"),
        ({"pairs": [("a", "b"), ["b", "a"]]}, rb.ArgumentError, r"pairs contains \('a', 'b'\) twice"),
        ({"pairs": 3}, rb.ArgumentError, r"pairs is 3; expected a list, such as pairs=\[\("),
        ({"pairs": [3]}, rb.ArgumentError, "pairs contains 3; expected pairs of names"),
        ({"ground": GROUND, "frames": iter(["body"])}, rb.ArgumentError, "frames is <list_iterator .*expected a list"),
        ({"ground": GROUND, "frames": "body"}, rb.ArgumentError, r"expected a list, such as frames=\['body'\]"),
        ({"ground": GROUND, "frames": ["bdy"]}, rb.UnknownNameError, "'bdy' is not a body or frame; did you mean body"),
        ({"ground": GROUND, "frames": ["bare"]}, rb.ArgumentError, r"'bare' has no collision shapes; expected one of"),
        ({"ground": GROUND, "frames": ["wall"]}, rb.ArgumentError, "'wall' cannot touch the ground"),
        (
            {"pairs": [("body", "wall")]},
            rb.ArgumentError,
            "pairs contains 'body', .* is a box; expected spheres and capsules",
        ),
        ({"pairs": ["ab"]}, rb.ArgumentError, "pairs contains 'ab'; expected pairs of names"),
        ({"ground": GROUND, "mu": 0.5}, TypeError, "has no argument 'mu'; use friction"),
    ],
)
def test_calls_that_are_not_possible_are_refused(arguments, error, message):
    builder = rb.ModelBuilder()
    builder.add_body("wall", joint=rb.Fixed(), collisions=[rb.CollisionShape("sphere", (1.0,))])
    box = rb.CollisionShape("box", (1, 1, 1))
    builder.add_body("body", joint=rb.Free(), inertia=INERTIA, collisions=[box])
    builder.add_body("bare", parent="body", joint=rb.Revolute(), inertia=INERTIA)
    with pytest.raises(error, match=message):
        builder.build().contacts(**arguments)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: rb.CollisionShape("torus", (1,)), "shape is 'torus'"),
        (lambda: rb.CollisionShape("hull"), r"points of a hull have the shape \(0, 3\); expected an array \(p, 3\)"),
        (
            lambda: rb.CollisionShape("sphere", (1,), points=[[0, 0, 1]]),
            "expected none, because only a hull has points",
        ),
        (lambda: rb.CollisionShape("box", (1, 1, 1), touches_ground=1), "touches_ground of a box is 1"),
        (lambda: body_with("box"), "an element of collisions is 'box'; expected a CollisionShape"),
        (lambda: rb.Plane((0, 0), (0, 0, 1)), r"Plane: point is \[0.0, 0.0\]; expected three finite numbers"),
        (lambda: rb.Plane((0, 0, 0), (0, 0, 0)), "Plane: normal is .*; expected a vector that is not zero"),
    ],
)
def test_shapes_and_planes_that_are_not_possible_are_refused(made, message):
    with pytest.raises((rb.ArgumentError, rb.ModelError), match=message):
        made()


def test_a_hull_of_many_vertices_and_a_missing_mesh_are_refused_by_name(tmp_path):
    ball = np.random.default_rng(0).normal(size=(100, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    with pytest.raises(
        rb.ArgumentError, match="the hull of 'body' has a convex hull of 100 vertices; expected at most"
    ):
        body_with(rb.CollisionShape("hull", points=ball)).contacts(ground=GROUND)
    mesh = rb.CollisionShape("mesh", file=str(tmp_path / "none.stl"))
    with pytest.raises((FileNotFoundError, rb.ArgumentError), match=r"none\.stl"):
        body_with(mesh).contacts(ground=GROUND)
