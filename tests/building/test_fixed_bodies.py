"""Fixed bodies are parts of their parents, and frames."""

import numpy as np
import pytest

import rbchain as rb

from .models import EPS, GRAVITY, TwoBodies, assert_same_mechanism, homogeneous, pendulum, rotation_about


def assert_same_inertia(model, body, expected):
    assert model.mass[body] == pytest.approx(expected.mass, rel=10 * EPS)
    np.testing.assert_allclose(model.cg[body], expected.cg, atol=10 * EPS)
    np.testing.assert_allclose(model.inertia[body], expected.inertia, atol=20 * EPS)


def test_a_fixed_body_is_part_of_its_parent():
    builder = pendulum(inertia=TwoBodies.arm)
    builder.add_body("ball", parent="arm", joint=rb.Fixed(), placement=TwoBodies.pose(), inertia=TwoBodies.ball)
    merged, by_hand = builder.build(), pendulum(inertia=TwoBodies.by_hand()).build()
    assert merged.body_names == ("arm",)
    assert merged.fixed_frames == {"ball": 0}
    assert_same_inertia(merged, 0, TwoBodies.by_hand())
    assert_same_mechanism(merged, by_hand)


def test_a_chain_of_fixed_bodies_is_part_of_the_moving_body():
    """For bracket, plate and ball, only the product of the three placements matters."""
    steps = [
        rb.Pose((0.1, 0, 0), rotation_about((1, 0, 0), 0.4)),
        rb.Pose((0, 0.2, 0.1), rotation_about((0, 1, 1), -1.0)),
    ]
    whole = homogeneous(TwoBodies.rotation, TwoBodies.translation)
    for step in steps:
        whole = np.linalg.inv(homogeneous(step.rotation, step.translation)) @ whole
    # arm -> step 0 -> step 1 -> rest, with rest = inv(step 1) inv(step 0) whole
    builder = pendulum(inertia=TwoBodies.arm)
    builder.add_body("bracket", parent="arm", joint=rb.Fixed(), placement=steps[0])
    builder.add_body("plate", parent="bracket", joint=rb.Fixed(), placement=steps[1])
    rest = rb.Pose(whole[:3, 3], whole[:3, :3])
    builder.add_body("ball", parent="plate", joint=rb.Fixed(), placement=rest, inertia=TwoBodies.ball)
    merged = builder.build()
    assert merged.fixed_frames == {"bracket": 0, "plate": 0, "ball": 0}
    assert_same_inertia(merged, 0, TwoBodies.by_hand())
    assert_same_mechanism(merged, pendulum(inertia=TwoBodies.by_hand()).build())


def test_each_fixed_body_is_added_once():
    builder = pendulum(inertia=rb.Inertia(1.0))
    for i, place in enumerate([(1, 0, 0), (-1, 0, 0), (0, 2, 0), (0, -2, 0)]):
        builder.add_body(
            f"weight{i}", parent="arm", joint=rb.Fixed(), placement=rb.Pose(place), inertia=rb.Inertia(0.25)
        )
    model = builder.build()
    assert_same_inertia(model, 0, rb.Inertia(2.0, cg=(0, 0, 0), inertia=(2.0, 0.5, 2.5)))


def test_a_moving_body_on_a_fixed_body_uses_its_placement():
    hinge = rb.Pose((0.4, 0, 0.1), rotation_about((0, 0, 1), 0.3))
    last = {"joint": rb.Screw((1, 1, 0), 0.1), "inertia": TwoBodies.arm}
    builder = pendulum(inertia=TwoBodies.arm)
    builder.add_body("ball", parent="arm", joint=rb.Fixed(), placement=TwoBodies.pose(), inertia=TwoBodies.ball)
    builder.add_body("hand", parent="ball", placement=hinge, **last)
    by_hand = pendulum(inertia=TwoBodies.by_hand())
    whole = homogeneous(TwoBodies.rotation, TwoBodies.translation) @ homogeneous(hinge.rotation, hinge.translation)
    by_hand.add_body("hand", parent="arm", placement=rb.Pose(whole[:3, 3], whole[:3, :3]), **last)
    merged = builder.build()
    assert merged.body_names == ("arm", "hand")
    assert merged.parent.tolist() == [-1, 0]
    assert_same_mechanism(merged, by_hand.build())


def test_bodies_fixed_after_others_moved_still_join_their_own_parent():
    """The order is not depth-first, and the numbers of moving bodies skip the fixed bodies between them."""
    builder = pendulum(inertia=rb.Inertia.sphere(1.0, mass=1.0))
    builder.add_body("mast", joint=rb.Fixed(), placement=rb.Pose((0, 0, 5)), inertia=rb.Inertia(50.0))
    builder.add_body("jib", parent="mast", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(2.0))
    builder.add_body("lamp", parent="arm", joint=rb.Fixed(), inertia=rb.Inertia(4.0))
    builder.add_body("hook", parent="jib", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(8.0, cg=(0, 0, -1)))
    builder.add_body("sign", parent="jib", joint=rb.Fixed(), inertia=rb.Inertia(16.0))
    builder.add_body("ring", parent="hook", joint=rb.Fixed(), inertia=rb.Inertia(32.0, cg=(0, 0, -1)))
    model = builder.build()
    assert model.body_names == ("arm", "jib", "hook")
    assert model.parent.tolist() == [-1, -1, 1]
    assert model.mass.tolist() == [5.0, 18.0, 40.0]
    assert model.fixed_frames == {"mast": -1, "lamp": 0, "sign": 1, "ring": 2}
    np.testing.assert_array_equal(model.placement_translation, [[0, 0, 0], [0, 0, 5], [0, 0, 0]])


def test_a_body_fixed_to_the_world_only_places_its_children():
    builder = rb.ModelBuilder(gravity=GRAVITY)
    builder.add_body("pedestal", joint=rb.Fixed(), placement=TwoBodies.pose(), inertia=rb.Inertia(1e6))
    builder.add_body("arm", parent="pedestal", joint=rb.Revolute((0, 1, 0)), inertia=TwoBodies.arm)
    by_hand = pendulum(placement=TwoBodies.pose(), inertia=TwoBodies.arm)
    model = builder.build()
    assert model.fixed_frames == {"pedestal": -1}
    assert model.mass.tolist() == [1.5]
    assert_same_mechanism(model, by_hand.build())


def test_the_name_of_a_fixed_body_is_a_frame():
    builder = pendulum(placement=rb.Pose((1, 2, 3), rotation_about((1, 0, 0), 0.5)))
    builder.add_body("ball", parent="arm", joint=rb.Fixed(), placement=TwoBodies.pose())
    model = builder.build()
    fixed = homogeneous(TwoBodies.rotation, TwoBodies.translation)
    for q in (-0.4, 2.0):
        arm = homogeneous(rotation_about((1, 0, 0), 0.5), (1, 2, 3)) @ homogeneous(
            rotation_about((0, 1, 0), q), (0, 0, 0)
        )
        for name, expected in (("arm", arm), ("ball", arm @ fixed)):
            pose = model.frame_poses([q], name)
            np.testing.assert_allclose(pose.translation, expected[:3, 3], atol=20 * EPS)
            np.testing.assert_allclose(pose.rotation, expected[:3, :3], atol=20 * EPS)


def test_frame_poses_have_the_shape_of_the_batch():
    builder = pendulum()
    builder.add_body("ball", parent="arm", joint=rb.Fixed(), placement=TwoBodies.pose())
    builder.add_body("stand", joint=rb.Fixed(), placement=TwoBodies.pose())
    model, q = builder.build(), np.linspace(-1, 1, 6).reshape(2, 3, 1)
    for name in ("arm", "ball", "stand"):
        poses = model.frame_poses(q, name)
        assert poses.translation.shape == (2, 3, 3)
        assert poses.rotation.shape == (2, 3, 3, 3)
        one = model.frame_poses(q[1, 2], name)
        np.testing.assert_allclose(poses.translation[1, 2], one.translation, atol=4 * EPS)
        np.testing.assert_allclose(poses.rotation[1, 2], one.rotation, atol=4 * EPS)
    together = model.frame_poses(q, ("arm", "ball", "stand"))
    assert together.translation.shape == (2, 3, 3, 3) and together.rotation.shape == (2, 3, 3, 3, 3)
    for i, name in enumerate(("arm", "ball", "stand")):
        assert np.array_equal(together.translation[:, :, i], model.frame_poses(q, name).translation)
        assert np.array_equal(together.rotation[:, :, i], model.frame_poses(q, name).rotation)
    J = model.jacobian(q, ["arm", "ball"], point=(1, 2, 3))
    rates = model.jacobian_derivative(q, q, ["arm", "ball"], point=(1, 2, 3))
    for i, name in enumerate(("arm", "ball")):
        assert np.array_equal(J[:, :, i], model.jacobian(q, name, point=(1, 2, 3)))
        assert np.array_equal(rates[:, :, i], model.jacobian_derivative(q, q, name, point=(1, 2, 3)))
    stand = model.frame_poses(q, "stand")
    np.testing.assert_array_equal(stand.translation, np.broadcast_to(TwoBodies.translation, (2, 3, 3)))


def test_an_unknown_frame_is_refused_by_name():
    with pytest.raises(rb.ModelError, match="elbow"):
        pendulum().build().frame_poses([0.0], "elbow")
