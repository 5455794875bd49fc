"""Motions and poses follow the description of the mechanism, in any order of its bodies."""

import numpy as np
import pytest

import rbchain as rb

from .models import (
    EPS,
    KINDS,
    NUMBERINGS,
    SERIAL,
    assert_accelerations_are_right,
    assert_same_mechanism,
    built,
    described,
    homogeneous,
    random_body,
    rotation_about,
)


@pytest.mark.parametrize("parent", NUMBERINGS.values(), ids=NUMBERINGS)
def test_accelerations_are_correct_for_any_numbering_with_parents_first(parent):
    rng = np.random.default_rng(len(set(parent)))
    bodies = [random_body(rng, kind) for kind in KINDS]
    model, reference = built(bodies, parent), described(bodies, parent)
    assert model.parent.tolist() == parent
    for _ in range(3):
        assert_accelerations_are_right(model, reference, *rng.uniform(-1, 1, (3, len(parent))))


@pytest.mark.parametrize("seed", range(6))
def test_accelerations_of_randomly_numbered_trees_are_correct(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 14))
    parent = [-1] + [int(rng.integers(-1, i)) for i in range(1, n)]
    bodies = [random_body(rng, KINDS[int(rng.integers(len(KINDS)))]) for _ in range(n)]
    model, reference = built(bodies, parent), described(bodies, parent)
    assert_accelerations_are_right(model, reference, *rng.uniform(-1, 1, (3, n)))


@pytest.mark.parametrize("seed", range(20))
def test_accelerations_do_not_depend_on_the_numbering(seed):
    """The same tree is added in two orders, both with parents first, and computed in a batch."""
    rng = np.random.default_rng(100 + seed)
    n = 15
    parent = [-1] + [int(rng.integers(-1, i)) for i in range(1, n)]
    bodies = [random_body(rng, KINDS[int(rng.integers(len(KINDS)))]) for _ in range(n)]
    order, waiting = [], list(range(n))
    while waiting:
        ready = [i for i in waiting if parent[i] < 0 or parent[i] in order]
        order.append(ready[int(rng.integers(len(ready)))])
        waiting.remove(order[-1])
    place = {i: k for k, i in enumerate(order)} | {-1: -1}
    one, other = built(bodies, parent), built([bodies[i] for i in order], [place[parent[i]] for i in order])
    q, qd, tau = rng.uniform(-1, 1, (3, 9, n))
    a = one.forward_dynamics(q, qd, tau)[:, order]
    b = other.forward_dynamics(q[:, order], qd[:, order], tau[:, order])
    np.testing.assert_allclose(a, b, atol=1e-10 * np.abs(a).max())
    a = one.inverse_dynamics(q, qd, tau)[:, order]
    b = other.inverse_dynamics(q[:, order], qd[:, order], tau[:, order])
    np.testing.assert_allclose(a, b, atol=1e-13 * np.abs(a).max())


@pytest.mark.parametrize("parent", NUMBERINGS.values(), ids=NUMBERINGS)
def test_poses_are_the_products_of_placements_and_joints(parent):
    rng = np.random.default_rng(3)
    bodies = [random_body(rng, kind) for kind in KINDS]
    q = rng.uniform(-2, 2, len(parent))
    found = built(bodies, parent).body_poses(q)
    world = {-1: np.eye(4)}
    for i, body in enumerate(bodies):
        angle = 0.0 if body.kind == "prismatic" else q[i]
        slide = {"revolute": 0.0, "prismatic": q[i], "screw": body.pitch * q[i]}[body.kind]
        moved = homogeneous(rotation_about(body.axis, angle), slide * body.axis)
        world[i] = world[parent[i]] @ homogeneous(body.rotation, body.translation) @ moved
        np.testing.assert_allclose(found.translation[i], world[i][:3, 3], atol=100 * EPS)
        np.testing.assert_allclose(found.rotation[i], world[i][:3, :3], atol=100 * EPS)


def test_the_model_reports_its_description():
    rng = np.random.default_rng(4)
    bodies = [random_body(rng, kind) for kind in KINDS]
    model, expected = built(bodies, SERIAL), described(bodies, SERIAL)
    assert (model.nq, model.nv, model.n_bodies) == (7, 7, 7)
    assert model.body_names == tuple(f"body{i}" for i in range(7))
    assert model.joint_names == model.body_names
    assert model.joint_types == KINDS
    assert model.fixed_frames == {}
    for field in ("placement_rotation", "placement_translation", "axis", "pitch", "mass", "cg", "inertia", "gravity"):
        np.testing.assert_allclose(getattr(model, field), getattr(expected, field), rtol=4 * EPS, atol=4 * EPS)


def test_an_axis_that_is_not_unit_is_normalized():
    rng = np.random.default_rng(6)
    bodies = [random_body(rng, kind) for kind in KINDS]
    model = built(bodies, SERIAL, stretch=-37.5)
    np.testing.assert_allclose(np.linalg.norm(model.axis, axis=1), 1.0, atol=4 * EPS)
    np.testing.assert_allclose(model.axis, [-body.axis for body in bodies], atol=4 * EPS)


@pytest.mark.parametrize(
    "axis", [(0, 0, -1), (0, 0, 1), (-1, 0, 0), (0, 1, 0), (1e-9, 0, -1), (1, -1, 0), (1, 1, -1e-17)]
)
@pytest.mark.parametrize("kind", ["revolute", "prismatic", "screw"])
def test_an_axis_may_have_any_direction_and_length(axis, kind):
    rng = np.random.default_rng(7)
    bodies = [random_body(rng, kind) for _ in range(3)]
    for body in bodies:
        body.axis = np.array(axis) / np.linalg.norm(axis)
    model, reference = built(bodies, [-1, 0, 0]), described(bodies, [-1, 0, 0])
    assert_accelerations_are_right(model, reference, *rng.uniform(-1, 1, (3, 3)))


@pytest.mark.parametrize(
    "joint",
    [lambda a: rb.Revolute(axis=a), lambda a: rb.Prismatic(axis=a), lambda a: rb.Screw(axis=a, pitch=0.1)],
    ids=["revolute", "prismatic", "screw"],
)
@pytest.mark.parametrize("axis", [(0, 0, 0), (0, 0, np.nan), (np.inf, 0, 0), (0, 1), 1.0])
def test_a_zero_axis_is_refused(joint, axis):
    with pytest.raises(rb.ModelError, match="axis"):
        rb.ModelBuilder().add_body("arm", joint=joint(axis))


@pytest.mark.parametrize("pitch", [np.nan, np.inf])
def test_a_pitch_that_is_not_finite_is_refused(pitch):
    with pytest.raises(rb.ModelError, match="pitch"):
        rb.Screw((0, 0, 1), pitch)


def test_a_screw_of_pitch_zero_is_a_revolute_joint():
    rng = np.random.default_rng(8)
    bodies = [random_body(rng, "revolute") for _ in range(4)]
    turning = built(bodies, [-1, 0, 1, 1])
    for body in bodies:
        body.kind = "screw"
    assert_same_mechanism(turning, built(bodies, [-1, 0, 1, 1]))


def test_a_placement_may_be_given_by_quaternion_or_matrix():
    matrix = rotation_about((1, 2, 3), 0.7)
    quaternion = np.append(np.sin(0.35) * np.array([1, 2, 3]) / np.sqrt(14), np.cos(0.35))
    for scale in (1.0, -3.0):
        np.testing.assert_allclose(rb.Pose(rotation=scale * quaternion).rotation, matrix, atol=4 * EPS)
