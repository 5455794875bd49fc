"""Poses: made from and converted to the forms that other libraries use, and compared."""

import pickle

import numpy as np
import pytest
from scipy.spatial.transform import RigidTransform, Rotation

import rbchain as rb

from .mechanisms import random_rotation, random_tree

EPS = np.finfo(float).eps


def random_pose(seed):
    rng = np.random.default_rng(seed)
    return rb.Pose(rng.normal(size=3), random_rotation(rng))


def test_rotations_of_scipy_are_accepted():
    turn = Rotation.from_euler("xyz", [0.1, -0.7, 2.0])
    np.testing.assert_allclose(rb.Pose(rotation=turn).rotation, turn.as_matrix(), atol=4 * EPS)
    assert rb.Pose(rotation=turn) == rb.Pose(rotation=turn.as_matrix())


def test_a_batch_of_rotations_is_refused():
    with pytest.raises(rb.ModelError, match=r"rotation has shape \(2, 3, 3\)"):
        rb.Pose(rotation=Rotation.from_rotvec(np.ones((2, 3))))


def test_points_move_as_with_the_homogeneous_matrix():
    pose, points = random_pose(1), np.random.default_rng(2).normal(size=(4, 5, 3))
    homogeneous = np.concatenate([points, np.ones((4, 5, 1))], -1)
    expected = np.einsum("ij,...j", pose.matrix, homogeneous)[..., :3]
    np.testing.assert_allclose(pose.apply(points), expected, atol=16 * EPS)
    np.testing.assert_allclose(pose.inverse().apply(pose.apply(points)), points, atol=32 * EPS)


def test_poses_of_bodies_agree_with_scipy():
    model = random_tree(3, [-1, 0, 1, 1])
    poses = model.body_poses(np.random.default_rng(4).normal(size=(6, 4)))
    same = RigidTransform.from_matrix(poses.matrix.reshape(-1, 4, 4))
    np.testing.assert_allclose(poses.quaternion.reshape(-1, 4), same.rotation.as_quat(canonical=True), atol=16 * EPS)
    point = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(poses.apply(point).reshape(-1, 3), same.apply(point), atol=16 * EPS)


def test_quaternions_make_the_same_pose():
    pose = random_pose(5)
    again = rb.Pose(pose.translation, pose.quaternion)
    np.testing.assert_allclose(again.rotation, pose.rotation, atol=8 * EPS)
    assert pose.quaternion[3] >= 0.0


def test_matrices_make_the_same_pose():
    pose = random_pose(6)
    assert rb.Pose.from_matrix(pose.matrix) == pose


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3), r"matrix has shape \(3, 3\); expected shape \(4, 4\)"),
        (np.eye(4) + np.outer([0, 0, 0, 1], [1, 0, 0, 0]), "last row"),
        (2.0 * np.eye(4) - np.diag([0, 0, 0, 1.0]), "expected a rotation matrix"),
    ],
)
def test_matrices_that_are_no_poses_are_refused(matrix, message):
    with pytest.raises(rb.ModelError, match=message):
        rb.Pose.from_matrix(matrix)


def test_points_need_three_coordinates():
    with pytest.raises(rb.ArgumentError, match=r"points has shape \(2,\); expected \(\.\.\., 3\)"):
        rb.Pose().apply([1.0, 2.0])


def test_poses_are_equal_if_their_numbers_are():
    pose = random_pose(7)
    same = rb.Pose(pose.translation.tolist(), pose.rotation.tolist())
    assert pose == same == pickle.loads(pickle.dumps(pose))
    assert hash(pose) == hash(same)
    assert pose != rb.Pose(pose.translation + 1e-15, pose.rotation)
    assert pose != "pose"
    model = random_tree(3, [-1, 0])
    poses = model.body_poses([0.1, 0.2])
    assert poses == pickle.loads(pickle.dumps(poses)) == model.body_poses([0.1, 0.2])
    assert poses != model.body_poses([0.1, 0.3])
