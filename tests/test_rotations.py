"""Rotations are exact to round-off, and matrices close to a rotation become the nearest rotation."""

from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbchain as rb
from rbchain.io.write_urdf import urdf_of

EPS = np.finfo(float).eps
CUBE = Rotation.create_group("O")
LENGTHS = (1.0, np.sqrt(2.0), 3.0, 1e-160, 5e200)


def matrix_of(quaternion):
    """The rotation of a quaternion of any length, in rational numbers."""
    x, y, z, w = (Fraction(float(c)) for c in quaternion)
    n = x * x + y * y + z * z + w * w
    rows = (
        (w * w + x * x - y * y - z * z, 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), w * w + y * y - x * x - z * z, 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), w * w + z * z - x * x - y * y),
    )
    return np.array([[entry / n for entry in row] for row in rows])


def nearest(matrix):
    """Return the nearest rotation: the orthogonal factor of the polar decomposition."""
    with mpmath.workdps(50):
        U, _, V = mpmath.svd_r(mpmath.matrix(matrix.tolist()))
        return np.array((U * V).tolist())


def off(rotation, exact):
    return float(np.abs(rotation - exact).max())


def turned_chain(rotations):
    builder, parent = rb.ModelBuilder(), None
    for i, rotation in enumerate(rotations):
        place = rb.Pose((0.1, 0.2, 0.3), rotation)
        inertia = rb.Inertia.box((0.3, 0.2, 0.1), mass=1.0, cg=(0.1, 0, 0))
        builder.add_body(f"b{i}", parent=parent, joint=rb.Revolute(), placement=place, inertia=inertia)
        parent = f"b{i}"
    return builder.build()


@pytest.mark.parametrize("length", LENGTHS)
def test_the_quarter_turns_of_a_quaternion_are_exact(length):
    for quaternion, exact in zip(CUBE.as_quat(), CUBE.as_matrix().round(), strict=True):
        # SciPy has these quaternions, whose nonzero entries have equal magnitudes, only to round-off
        clean = length * np.sign(quaternion) * (np.abs(quaternion) > 0.1)
        np.testing.assert_array_equal(rb.Pose(rotation=clean).rotation, exact)


def test_a_quaternion_becomes_its_rotation_to_round_off():
    """The round-off of an entry is at most 7 units of EPS / 2: four products, their sums and a quotient."""
    rng = np.random.default_rng(0)
    for quaternion in rng.normal(size=(500, 4)) * 10.0 ** rng.uniform(-5, 5, (500, 1)):
        assert off(rb.Pose(rotation=quaternion).rotation, matrix_of(quaternion)) <= 3.5 * EPS


def test_quarter_turns_as_quaternions_and_as_matrices_give_identical_models():
    quaternions = np.sqrt(0.5) * np.array([[0, 0, 1, 1], [1, 0, 0, 1], [0, -1, 0, 1], [1, 1, 0, 0], [0, 1, -1, 0]])
    a, b = turned_chain(quaternions), turned_chain(Rotation.from_quat(quaternions).as_matrix().round())
    np.testing.assert_array_equal(a.placement_rotation, b.placement_rotation)


@pytest.mark.parametrize("amount", [1e-15, 1e-12, 1e-9, 1e-7, 3e-7])
def test_a_matrix_that_is_nearly_a_rotation_becomes_the_nearest_one(amount):
    rng = np.random.default_rng(1)
    for rotation in Rotation.random(20, rng).as_matrix():
        given = rotation + amount * rng.uniform(-1, 1, (3, 3))
        assert off(rb.Pose(rotation=given).rotation, nearest(given)) <= 4 * EPS


def test_matrices_of_samples_become_the_nearest_rotations():
    rng = np.random.default_rng(2)
    model = turned_chain([None, None])
    given = Rotation.random(10, rng).as_matrix().reshape(5, 2, 3, 3) + 1e-7 * rng.uniform(-1, 1, (5, 2, 3, 3))
    found = model.vary(placement_rotation=given).placement_rotation
    for index in np.ndindex(5, 2):
        assert off(found[index], nearest(given[index])) <= 4 * EPS


@pytest.mark.parametrize(
    "wrong",
    [
        np.diag([1.0, 1.0, 1.0 + 1e-5]),
        [[1, 1e-5, 0], [0, 1, 0], [0, 0, 1]],
        np.diag([1.0, 1.0, -1.0]),
        -np.eye(3),
        np.zeros((3, 3)),
        np.full((3, 3), 1e200),
    ],
)
def test_a_matrix_that_is_not_a_rotation_is_refused(wrong):
    with pytest.raises(rb.ModelError, match=r"rotation is .*; expected a rotation matrix, orthogonal to within 1e-06"):
        rb.Pose(rotation=wrong)
    with pytest.raises(rb.ModelError, match=r"'b1' of sample 2: placement_rotation is .*; expected a rotation matrix"):
        many = np.tile(np.eye(3), (4, 2, 1, 1))
        many[2, 1] = wrong
        turned_chain([None, None]).vary(placement_rotation=many)


def test_a_matrix_within_round_off_of_a_rotation_is_kept_unchanged():
    rng = np.random.default_rng(3)
    given = Rotation.random(1000, rng).as_matrix() + 1e-7 * rng.uniform(-1, 1, (1000, 3, 3))
    once = np.array([rb.Pose(rotation=matrix).rotation for matrix in given])
    twice = np.array([rb.Pose(rotation=matrix).rotation for matrix in once])
    np.testing.assert_array_equal(twice, once)


def test_a_chain_of_fixed_frames_is_bit_identical_after_saving_and_loading(tmp_path):
    """The product of a hundred rotations drifts, unless each product is projected to a rotation."""
    rng = np.random.default_rng(4)
    builder, parent = rb.ModelBuilder(), "arm"
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia.box((0.3, 0.2, 0.1), mass=1.0))
    for i, rotation in enumerate(Rotation.random(100, rng).as_matrix()):
        builder.add_body(f"f{i}", parent=parent, joint=rb.Fixed(), placement=rb.Pose((0, 0, 1), rotation))
        parent = f"f{i}"
    rb.save(builder.build(), tmp_path / "row.toml")
    rb.save(rb.load(tmp_path / "row.toml"), tmp_path / "again.toml")
    assert (tmp_path / "again.toml").read_text() == (tmp_path / "row.toml").read_text()


@pytest.mark.parametrize("distance", [0.0, 1e-14, 1e-10, 1e-8, 1e-7, 3e-7, 1e-5, 1e-2])
@pytest.mark.parametrize("side", [-1, 1])
def test_rotations_near_gimbal_lock_are_unchanged_by_a_urdf(tmp_path, side, distance):
    angles = [(roll, side * (np.pi / 2 - distance), yaw) for roll, yaw in product((-2.0, 0.3, 3.0), (-3.0, 0.0, 1.5))]
    model = turned_chain(Rotation.from_euler("xyz", angles).as_matrix())
    (tmp_path / "turned.urdf").write_text(urdf_of(model))
    again = rb.load(tmp_path / "turned.urdf")
    np.testing.assert_allclose(again.placement_rotation, model.placement_rotation, rtol=0, atol=4 * EPS)
