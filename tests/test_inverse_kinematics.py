"""Inverse kinematics reaches its targets, judged by `frame_poses`, closed forms, geometry and Pinocchio."""

import re

import numpy as np
import pytest

import rbchain as rb

from .mechanisms import ROBOTS

plain = pytest.mark.plain_python
pytestmark = pytest.mark.filterwarnings("ignore:.*unknown names")  # in the file of the Panda
URDF = ROBOTS / "panda_description/urdf/panda.urdf"


def panda():
    model = rb.load(URDF).open_tree()
    return model.lock({"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0})


def random_positions(model, samples, seed):
    """Positions within the limits, and angles of half a turn where there are none."""
    q, _ = model.random_state(seed, batch=samples)
    for i, j in model.coordinate_pairs:
        lower, upper = model.position_limits[j]
        if np.isfinite(lower) and np.isfinite(upper):
            q[..., i] = lower + (upper - lower) * np.random.default_rng(seed + j).random(samples)
    return q


def errors(model, q, frame, pose):
    """The distances (m) and the angles (rad) of a frame from its pose."""
    found = model.frame_poses(q, frame)
    turn = np.einsum("...ki,...kj->...ij", pose.rotation, found.rotation)
    double = np.linalg.norm(turn - np.swapaxes(turn, -1, -2), axis=(-2, -1)) / np.sqrt(2.0)  # 2 sin(angle)
    angle = np.arctan2(double, np.trace(turn, axis1=-2, axis2=-1) - 1.0)
    return np.linalg.norm(found.translation - pose.translation, axis=-1), angle


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def boat_with_arms():
    """A free base, a ball joint, a slide with limits, a screw and a universal joint, with a tool at the end."""
    builder, rod = rb.ModelBuilder(), rb.Inertia.rod(0.5, mass=1.0)
    builder.add_body("boat", joint=rb.Free(), inertia=rod)
    at = rb.Pose((0.1, 0.2, 0.3), (0, 0, 0.6, 0.8))
    builder.add_body("ball", parent="boat", joint=rb.Spherical(), placement=at, inertia=rod)
    slide, limits = rb.Prismatic((1, 0, 1)), rb.JointLimits(-0.2, 0.3)
    builder.add_body("slide", parent="ball", joint=slide, placement=rb.Pose((0, 0, 0.5)), inertia=rod, limits=limits)
    screw, down = rb.Screw((0, 1, 1), pitch=0.1), rb.Pose((0, -0.4, 0))
    builder.add_body("screw", parent="boat", joint=screw, placement=down, inertia=rod)
    builder.add_body("wrist", parent="screw", joint=rb.Universal((1, 0, 0), (0, 1, 0)), placement=down, inertia=rod)
    hand = rb.Pose((0, -0.1, 0), (0, 0.6, 0, 0.8))
    builder.add_body("tool", parent="wrist", joint=rb.Fixed(), placement=hand, inertia=rod)
    return builder.build()


MODELS = {"panda": (panda, ["panda_hand"]), "boat": (boat_with_arms, ["slide", "tool"])}


@plain
def test_a_planar_arm_has_the_angles_of_the_closed_form():
    arm = rb.Model.serial_chain(2, length=1.0)
    rng = np.random.default_rng(0)
    distance, angle = rng.uniform(0.1, 1.9, (4, 5)), rng.uniform(-3, 3, (4, 5))
    goal = np.stack([distance * np.cos(angle), distance * np.sin(angle), 0.0 * angle], -1)
    found = arm.inverse_kinematics({"link2": rb.Target(goal, point=(1, 0, 0))}, [0.3, 0.8])
    elbow = np.arccos(distance**2 / 2.0 - 1.0)  # law of cosines for two links of length 1
    assert found.success.all() and found.q.shape == (4, 5, 2)
    assert np.allclose(np.cos(found.q[..., 1]), np.cos(elbow), rtol=0, atol=1e-8)
    first = found.q[..., 0] + found.q[..., 1] / 2.0  # both links have the same angle to the line to the goal
    assert np.allclose(np.sin(first - angle), 0.0, rtol=0, atol=1e-8)


@plain
@pytest.mark.parametrize("name", MODELS)
def test_the_frames_reach_their_poses_and_errors_are_the_errors_of_the_frames(name):
    make, frames = MODELS[name]
    model = make()
    q = random_positions(model, 6, 1)
    poses = {frame: model.frame_poses(q, frame) for frame in frames}
    found = model.inverse_kinematics(poses)
    assert found.success.all()
    coarse = model.inverse_kinematics(poses, tolerance=1e-3)
    for result, tolerance in ((found, 1e-10), (coarse, 1e-3)):
        for i, frame in enumerate(frames):
            distance, angle = errors(model, result.q, frame, poses[frame])
            assert np.allclose(result.position_errors[:, i], distance, rtol=0, atol=1e-14)
            assert np.allclose(result.rotation_errors[:, i], angle, rtol=0, atol=1e-14)
        both = np.maximum(result.position_errors, result.rotation_errors).max(-1)
        assert np.array_equal(result.error, both)
        assert np.array_equal(result.success, both <= tolerance)
    assert (coarse.error > 1e-10).any()
    lower, upper = model.position_limits.T
    for i, j in model.coordinate_pairs:
        assert ((found.q[:, i] >= lower[j]) & (found.q[:, i] <= upper[j])).all()


@plain
def test_pinocchio_places_the_frame_at_its_target():
    pin = pytest.importorskip("pinocchio")
    model = panda()
    full = pin.buildModelFromUrdf(str(URDF))
    fingers = [full.getJointId(name) for name in full.names if "finger" in name]
    other = pin.buildReducedModel(full, fingers, pin.neutral(full))
    data, frame = other.createData(), other.getFrameId("panda_hand_tcp")

    def pose_of(q):
        pin.framesForwardKinematics(other, data, q)
        return pin.SE3(data.oMf[frame])

    poses = [pose_of(q) for q in random_positions(model, 4, 3)]
    goal = rb.Target([pose.translation for pose in poses], [pose.rotation for pose in poses])
    found = model.inverse_kinematics({"panda_hand_tcp": goal})
    assert found.success.all()
    for q, pose in zip(found.q, poses, strict=True):
        reached = pose_of(q)
        assert np.linalg.norm(reached.translation - pose.translation) <= 1e-10
        assert np.linalg.norm(pin.log3(pose.rotation.T @ reached.rotation)) <= 1e-10


def targets_near(model, q):
    """Targets of each kind that the positions q reach exactly."""
    pose, point, axis = model.frame_poses(q, "tool"), np.array([0.1, -0.2, 0.3]), np.array([0.0, 3.0, 4.0])
    direction = pose.rotation @ axis
    return {
        "position": rb.Target(pose.apply(point), point=point),
        "rotation": rb.Target(rotation=pose.rotation),
        "pose": pose,
        "direction": rb.Target(axis=axis, direction=10.0 * direction),
        "gaze": rb.Target(axis=axis, look_at=pose.apply(point) + 0.4 * direction, point=point),
        "position and gaze": rb.Target(pose.translation, axis=axis, look_at=pose.translation + 0.1 * direction),
    }


KINDS = ("position", "rotation", "pose", "direction", "gaze", "position and gaze")


@plain
@pytest.mark.parametrize("kind", KINDS)
def test_steps_from_near_a_solution_converge_quadratically(kind):
    model = boat_with_arms()
    q = random_positions(model, 4, 7)
    guess = model.integrate(q, 1e-3 * np.random.default_rng(1).normal(size=(4, model.nv)))
    found = model.inverse_kinematics({"tool": targets_near(model, q)[kind]}, guess, starts=1)
    # errors of about 1e-3, 1e-6 and 1e-12 before the end, each with a Jacobian of round-off accuracy
    assert found.success.all() and found.iterations.max() <= 4
    assert np.abs(model.difference(guess, found.q)).max() < 0.01


@plain
def test_an_axis_has_its_direction_and_looks_at_its_point():
    model = boat_with_arms()
    eye, axis = np.array([0.1, 0.2, 0.0]), np.array([1.0, 2.0, 0.0])
    goal = np.array([[3.0, -2.0, 1.0], [0.5, 0.0, -4.0]])
    found = model.inverse_kinematics({"tool": rb.Target(axis=axis, look_at=goal, point=eye)})
    pose = model.frame_poses(found.q, "tool")
    assert found.success.all()
    assert np.allclose(pose.rotation @ axis, np.sqrt(5.0) * unit(goal - pose.apply(eye)), rtol=0, atol=3e-10)
    found = model.inverse_kinematics({"slide": rb.Target(axis=axis, direction=goal)})
    along = model.frame_poses(found.q, "slide").rotation @ axis
    assert found.success.all()
    assert np.allclose(along, np.sqrt(5.0) * unit(goal), rtol=0, atol=3e-10)


@plain
def test_a_frame_turns_by_any_angle_up_to_half_a_turn():
    builder = rb.ModelBuilder()
    builder.add_body("ball", joint=rb.Spherical(), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    model, angles = builder.build(), np.array([1e-9, 0.1, 3.0, np.pi])
    quaternions = np.stack([np.sin(angles / 2), 0 * angles, 0 * angles, np.cos(angles / 2)], -1)
    goal = model.frame_poses(quaternions, "ball")
    found = model.inverse_kinematics({"ball": goal}, starts=2)
    assert found.success.all()
    assert np.allclose(abs((found.q * quaternions).sum(-1)), 1.0, rtol=0, atol=1e-14)
    assert np.allclose((found.q**2).sum(-1), 1.0, rtol=0, atol=1e-15)


@plain
def test_targets_out_of_reach_are_approached_and_not_solved():
    arm = rb.Model.serial_chain(2, length=1.0)
    angle = np.array([0.4, -2.0])
    goal = 3.0 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], -1)
    found = arm.inverse_kinematics({"link2": rb.Target(goal, point=(1, 0, 0))}, [0.1, 0.5])
    assert not found.success.any()
    assert np.allclose(found.error, 1.0, rtol=0, atol=1e-9)  # the stretched arm points at the goal
    assert np.allclose(np.cos(found.q[:, 0] - angle), 1.0, rtol=0, atol=1e-8)


@plain
def test_a_frame_that_no_joint_moves_is_solved_in_its_place_only():
    arm = rb.Model.serial_chain(2)
    found = arm.inverse_kinematics({"link1": rb.Target([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]])}, [0.3, 0.4])
    assert found.success.tolist() == [True, False] and found.error.tolist() == [0.0, 0.1]
    assert found.q[0].tolist() == [0.3, 0.4] and np.isfinite(found.q).all()


@plain
def test_weights_balance_targets_that_contradict_each_other():
    builder = rb.ModelBuilder()
    inertia = rb.Inertia(mass=1.0)
    builder.add_body("cart", joint=rb.Prismatic((1, 0, 0)), inertia=inertia)
    builder.add_body("tail", parent="cart", joint=rb.Fixed(), placement=rb.Pose((1, 0, 0)), inertia=inertia)
    targets = {"cart": rb.Target((0, 0, 0)), "tail": rb.Target((3, 0, 0), position_weight=2.0)}
    found = builder.build().inverse_kinematics(targets)
    # minimum of x^2 + (2 (x + 1 - 3))^2
    assert np.allclose(found.q, [8.0 / 5.0], rtol=0, atol=1e-8)
    assert np.allclose(found.position_errors, [1.6, 0.4], rtol=0, atol=1e-8) and not found.success


@plain
def test_limits_hold_unless_they_are_switched_off():
    builder = rb.ModelBuilder()
    limits = rb.JointLimits(-0.5, 0.7)
    builder.add_body("door", joint=rb.Revolute(), inertia=rb.Inertia.box((1, 1, 1), mass=1.0), limits=limits)
    builder.add_body("slide", parent="door", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    model = builder.build()
    goal = {"slide": rb.Target(2.0 * np.array([np.cos(1.0), np.sin(1.0), 0.0]))}
    held = model.inverse_kinematics(goal, [0.0, 1.5])
    assert not held.success and held.q[0] == 0.7
    assert np.isclose(held.q[1], 2.0 * np.cos(0.3), rtol=0, atol=1e-8)  # the foot of the perpendicular on the slide
    assert np.allclose(model.inverse_kinematics(goal, [0.0, 1.5], limits=False).q, [1.0, 2.0], rtol=0, atol=1e-9)
    inside = {"slide": rb.Target([np.cos(0.6), np.sin(0.6), 0.0])}
    assert np.allclose(model.inverse_kinematics(inside, [5.0, 1.5]).q, [0.6, 1.0], rtol=0, atol=1e-9)


@plain
def test_angles_without_limits_are_within_half_a_turn_of_the_guess():
    arm = rb.Model.serial_chain(3)
    goal = arm.frame_poses(random_positions(arm, 5, 2), "link3")
    found = arm.inverse_kinematics({"link3": goal}, [30.0, -20.0, 0.0])
    assert found.success.all() and np.abs(found.q - [30.0, -20.0, 0.0]).max() <= np.pi + 1e-12


@plain
def test_each_sample_has_its_own_geometry_and_its_own_target():
    lengths = np.array([0.6, 1.0, 1.4])
    arm = rb.Model.serial_chain(3, length=1.0)
    placement = np.zeros((3, 3, 3))
    placement[:, 1:, 0] = lengths[:, None]
    many = arm.vary(placement_translation=placement)
    q = random_positions(arm, (2, 3), 4)
    goal = many.frame_poses(q, "link3")
    found = many.inverse_kinematics({"link3": goal}, [0.1, 0.2, 0.3])
    assert found.success.all() and found.q.shape == (2, 3, 3)
    distance, angle = errors(many, found.q, "link3", goal)
    assert max(distance.max(), angle.max()) <= 1e-10
    one = many[1].inverse_kinematics({"link3": rb.Target(goal.translation[1, 1], goal.rotation[1, 1])}, [0.1, 0.2, 0.3])
    assert np.array_equal(one.q, found.q[1, 1])


@plain
def test_samples_that_are_not_finite_have_no_solution_and_leave_the_others_unchanged():
    arm = rb.Model.serial_chain(3)
    good = arm.frame_poses(random_positions(arm, 4, 5), "link3")
    expected = arm.inverse_kinematics({"link3": good}, np.full((4, 3), 0.1))
    goal, guess = rb.Target(good.translation, good.rotation), np.full((4, 3), 0.1)
    goal.position[1, 0], goal.rotation[2, 0, 0], guess[3, 1] = np.nan, np.inf, np.nan
    found = arm.inverse_kinematics({"link3": goal}, guess)
    assert np.array_equal(found.q[0], expected.q[0])
    assert found.success.tolist() == [True, False, False, False]
    assert np.isnan(found.q[1:]).all() and np.isnan(found.error[1:]).all()
    bad = rb.Target(np.where(np.arange(12).reshape(4, 3) == 3, np.inf, good.translation))
    assert arm.inverse_kinematics({"link3": bad}).success.tolist() == [True, False, True, True]


@pytest.mark.slow
@plain
def test_more_starts_solve_more_and_leave_the_solved_samples_unchanged():
    model = panda()
    goal = model.frame_poses(random_positions(model, 12, 6), "panda_hand")
    guess = 0.9 * model.position_limits[:, 1]
    one, many = (model.inverse_kinematics({"panda_hand": goal}, guess, starts=count) for count in (1, 12))
    assert one.success.sum() < many.success.sum() == 12
    assert np.array_equal(one.q[one.success], many.q[one.success])
    other = model.inverse_kinematics({"panda_hand": goal}, guess, starts=12, seed=1)
    assert not np.array_equal(other.q, many.q) and np.array_equal(other.q[one.success], one.q[one.success])


@plain
def test_shapes_precision_and_empty_batches():
    arm = rb.Model.serial_chain(3)
    pose = arm.frame_poses([0.1, 0.2, 0.3], "link3")
    single = arm.inverse_kinematics({"link3": pose})
    assert single.q.shape == (3,) and single.success.shape == single.error.shape == single.iterations.shape == ()
    assert single.position_errors.shape == single.rotation_errors.shape == (1,)
    none = arm.inverse_kinematics({"link3": pose, "link2": rb.Target((0.2, 0, 0))}, np.zeros((2, 0, 3)))
    assert none.q.shape == (2, 0, 3) and none.success.shape == (2, 0) and none.position_errors.shape == (2, 0, 2)
    q = np.array([[0.1, 0.2, 0.3]], np.float32)
    rough = arm.inverse_kinematics({"link3": arm.frame_poses(q, "link3")}, q)
    assert rough.q.dtype == np.float64
    assert not rough.success.any() or rough.error.max() <= 1e-10
    assert arm.inverse_kinematics({"link3": arm.frame_poses(q, "link3")}, q, tolerance=1e-6).success.all()


ARM = rb.Model.serial_chain(2)
POSE = rb.Pose((0.3, 0.1, 0))
REFUSED = {
    "no targets": (lambda: ARM.inverse_kinematics({}), r"targets is \{\}; expected a dict"),
    "not a dict": (lambda: ARM.inverse_kinematics(POSE), "targets is Pose"),
    "matrix": (lambda: ARM.inverse_kinematics({"link2": np.eye(4)}), r"'link2' is array.*Use rb.Pose.from_matrix"),
    "name": (lambda: ARM.inverse_kinematics({"link3": POSE}), "no body or frame 'link3'.*'link2'"),
    "guess": (lambda: ARM.inverse_kinematics({"link2": POSE}, [0.0]), r"q_guess has shape \(1,\); expected \(..., 2\)"),
    "batch": (
        lambda: ARM.inverse_kinematics({"link2": rb.Target(np.zeros((4, 3)))}, np.zeros((3, 2))),
        r"q_guess \(3,\), the target of 'link2' \(4,\)",
    ),
    "starts": (lambda: ARM.inverse_kinematics({"link2": POSE}, starts=0), "starts is 0; expected a whole number"),
    "seed": (lambda: ARM.inverse_kinematics({"link2": POSE}, seed=-1), "seed is -1"),
    "limits": (lambda: ARM.inverse_kinematics({"link2": POSE}, limits=1), "limits is 1; expected True or False"),
    "tolerance": (lambda: ARM.inverse_kinematics({"link2": POSE}, tolerance=0), "tolerance is 0; expected a finite"),
    "misspelled": (lambda: ARM.inverse_kinematics({"link2": POSE}, tol=1e-6), "use tolerance"),
    "empty target": (lambda: rb.Target(), "Target is empty; expected a position"),
    "two orientations": (lambda: rb.Target(rotation=np.eye(3), direction=(0, 0, 1)), "has rotation and direction"),
    "no axis": (lambda: rb.Target(look_at=(0, 0, 1)), "look_at without axis"),
    "unused axis": (lambda: rb.Target((0, 0, 1), axis=(0, 0, 1)), "axis without direction or look_at"),
    "zero axis": (lambda: rb.Target(axis=(0, 0, 0), look_at=(0, 0, 1)), "axis contains a zero vector"),
    "zero direction": (lambda: rb.Target(axis=(0, 0, 1), direction=np.zeros((2, 3))), "direction contains a zero"),
    "position": (lambda: rb.Target((0, 0)), r"position has shape \(2,\); expected \(..., 3\)"),
    "rotation": (lambda: rb.Target(rotation=[np.eye(3), 2 * np.eye(3)]), "1 of 2 matrices are not rotations"),
    "quaternions": (lambda: rb.Target(rotation=np.ones((2, 3, 4))), r"rotation has shape \(2, 3, 4\)"),
    "batches of a target": (lambda: rb.Target(np.zeros((2, 3)), np.tile(np.eye(3), (3, 1, 1))), r"position \(2,\)"),
    "weight": (lambda: rb.Target((0, 0, 0), position_weight=0), "position_weight is 0; expected a finite number above"),
}


@plain
@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_are_not_possible_are_refused(name):
    call, message = REFUSED[name]
    with pytest.raises((ValueError, TypeError), match=re.compile(message, re.DOTALL)):
        call()


@plain
def test_frames_of_the_world_are_refused():
    builder = rb.ModelBuilder()
    builder.add_body("stand", joint=rb.Fixed(), placement=rb.Pose((0, 0, 1)))
    builder.add_body("arm", parent="stand", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    with pytest.raises(rb.ArgumentError, match=r"'stand' is fixed to the world.*expected a frame of a body"):
        builder.build().inverse_kinematics({"stand": POSE})


@plain
def test_distant_targets_of_floating_bases_are_found():
    boat = boat_with_arms()
    poses = boat.frame_poses(random_positions(boat, 4, 1), "tool")
    assert boat.inverse_kinematics({"tool": rb.Target(poses.translation + [60, 0, 0], poses.rotation)}).success.all()


def test_lanes_solve_nearly_all_poses_of_a_panda_and_a_sample_does_not_depend_on_the_others():
    model = panda()
    goal = model.frame_poses(random_positions(model, 2000, 8), "panda_hand")
    found = model.inverse_kinematics({"panda_hand": goal})
    assert found.success.mean() >= 0.99
    distance, angle = errors(model, found.q, "panda_hand", goal)
    assert (np.maximum(distance, angle)[found.success] <= 1e-10).all()
    assert np.array_equal(found.success, np.maximum(distance, angle) <= 1e-10)
    chosen = np.array([1999, 3, 500, 4, *np.flatnonzero(~found.success)[:2], 0])
    some = model.inverse_kinematics({"panda_hand": rb.Target(goal.translation[chosen], goal.rotation[chosen])})
    assert np.array_equal(some.q, found.q[chosen]) and np.array_equal(some.iterations, found.iterations[chosen])
    alone = model.inverse_kinematics({"panda_hand": rb.Target(goal.translation[500], goal.rotation[500])})
    assert np.array_equal(alone.q, found.q[500])


@pytest.mark.slow
def test_lanes_take_the_geometry_of_their_next_sample():
    count = 30
    arm = rb.Model.serial_chain(3, length=1.0)
    placement = np.zeros((count, 3, 3))
    placement[:, 1:, 0] = np.random.default_rng(0).uniform(0.5, 1.5, (count, 2))
    many = arm.vary(placement_translation=placement)
    goal = many.frame_poses(random_positions(arm, count, 9), "link3")
    found = many.inverse_kinematics({"link3": goal}, [0.1, 0.2, 0.3])
    distance, angle = errors(many, found.q, "link3", goal)
    assert found.success.all() and max(distance.max(), angle.max()) <= 1e-10
    for i in (0, 7, 29):
        one = rb.Target(goal.translation[i], goal.rotation[i])
        assert np.array_equal(many[i : i + 1].inverse_kinematics({"link3": one}, [0.1, 0.2, 0.3]).q[0], found.q[i])
