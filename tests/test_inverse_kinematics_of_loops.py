"""Inverse kinematics of closed loops, judged by closed forms, minimization and the residuals of the constraints."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial.transform import Rotation

import rbchain as rb

from .closed_chains import four_bar, hinged_arm, hung_plate, polygon
from .mechanisms import ROBOTS

plain = pytest.mark.plain_python
pytestmark = pytest.mark.filterwarnings("ignore:.*unknown names")  # in the file of the Panda
CRANK, COUPLER, ROCKER, BASE = 0.3, 0.9, 0.6, 1.0  # m, of `four_bar`
POINT = (0.4, 0.0, 0.0)  # on the coupler


def point_of_four_bar(crank, branch=1.0):
    """The position (..., 3) of POINT for angles of the crank, by the law of cosines."""
    tip = CRANK * np.stack([np.cos(crank), np.sin(crank)], -1)
    between = np.array([BASE, 0.0]) - tip
    distance = np.linalg.norm(between, axis=-1)
    opening = np.arccos((distance**2 + COUPLER**2 - ROCKER**2) / (2.0 * distance * COUPLER))
    angle = np.arctan2(between[..., 1], between[..., 0]) + branch * opening
    point = tip + POINT[0] * np.stack([np.cos(angle), np.sin(angle)], -1)
    return np.concatenate([point, np.zeros((*np.shape(crank), 1))], -1)


def platform(corners):
    """A Stewart platform: a free plate on six legs, with universal joints and slides. `corners` are (2, 6, 3)."""
    builder, rod = rb.ModelBuilder(), rb.Inertia.rod(0.5, mass=1.0)
    builder.add_body("plate", joint=rb.Free(), inertia=rb.Inertia.box((1, 1, 0.1), mass=10.0))
    universal, half = rb.Universal((1, 0, 0), (0, 1, 0)), rb.Pose((0, 0, 0.5))
    for i, (below, above) in enumerate(zip(*corners, strict=True)):
        builder.add_body(f"leg{i}", joint=universal, placement=rb.Pose(below), inertia=rod)
        builder.add_body(f"rod{i}", parent=f"leg{i}", joint=rb.Prismatic((0, 0, 1)), placement=half, inertia=rod)
        ball = rb.BallConstraint(f"ball{i}", f"rod{i}", "plate", point_a=(0, 0, 0.3), point_b=above)
        builder.add_constraint(ball)
    return builder.build()


def corners_of_platform():
    angles = np.radians([[-10, 10, 110, 130, 230, 250], [-50, 50, 70, 170, 190, 290]])
    return np.array([1.0, 0.6])[:, None, None] * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], -1)


def reachable(chain, frame, samples):
    """An assembled guess of a mechanism, and the poses of a frame in other closed positions."""
    model, guess = chain.model, chain.model.assemble(chain.guess)
    changes = np.random.default_rng(3).normal(0.0, 0.4, (samples, model.nv))
    q = model.assemble(model.integrate(np.tile(guess, (samples, 1)), changes), on_failure="ignore")
    return guess, model.frame_poses(q[np.isfinite(q).all(-1)], frame)


@plain
def test_the_coupler_of_a_four_bar_reaches_points_of_the_closed_form():
    model, _, guess = four_bar()
    crank = np.random.default_rng(0).uniform(0.0, 2.0 * np.pi, 100)
    found = model.inverse_kinematics({"coupler": rb.Target(point_of_four_bar(crank), point=POINT)}, guess)
    assert found.success.all()
    assert np.allclose(np.exp(1j * found.q[:, 0]), np.exp(1j * crank), rtol=0, atol=1e-9)
    assert np.abs(model.constraint_residual(found.q)).max() <= 1e-10
    assert np.abs(found.q - guess).max() <= np.pi + 1e-12


@plain
def test_an_unreachable_target_gives_the_nearest_assembled_mechanism():
    model, _, guess = four_bar()
    goal = np.array([5.0, 1.0, 0.0])
    found = model.inverse_kinematics({"coupler": rb.Target(goal, point=POINT)}, guess, starts=2)
    assert not found.success and np.abs(model.constraint_residual(found.q)).max() <= 1e-10

    def distance(crank):
        return min(float(np.linalg.norm(point_of_four_bar(crank, branch) - goal)) for branch in (-1.0, 1.0))

    coarse = min(np.linspace(-np.pi, np.pi, 60), key=distance)
    best = minimize_scalar(distance, bounds=(coarse - 0.2, coarse + 0.2), method="bounded", options={"xatol": 1e-10})
    # the weight of the constraints changes the position by 1e-6, and the minimum only to second order
    assert found.error == pytest.approx(best.fun, abs=1e-9)
    assert found.position_errors[0] == found.error


@plain
def test_a_stewart_platform_has_the_lengths_of_legs_of_the_closed_form():
    corners = corners_of_platform()
    model, rng = platform(corners), np.random.default_rng(1)
    shift, tilt = rng.uniform(-0.2, 0.2, (3, 3)) + [0, 0, 1], Rotation.from_rotvec(rng.uniform(-0.4, 0.4, (3, 3)))
    guess = model.neutral()
    guess[2] = 1.0
    # the corners on the ground differ between samples
    placement = np.tile(model.placement_translation, (3, 1, 1))
    legs = [model.body_names.index(f"leg{i}") for i in range(6)]
    placement[:, legs] += rng.uniform(-0.05, 0.05, (3, 6, 3))
    many = model.vary(placement_translation=placement)
    found = many.inverse_kinematics({"plate": rb.Target(shift, tilt)}, guess)
    assert found.success.all()
    ends = shift[:, None] + np.einsum("sij,kj->ski", tilt.as_matrix(), corners[1])
    lengths = np.linalg.norm(ends - placement[:, legs], axis=-1)
    slides = found.q[:, [model.position_index[model.body_names.index(f"rod{i}")] for i in range(6)]]
    assert np.allclose(slides + 0.8, lengths, rtol=0, atol=1e-9)


@plain
@pytest.mark.parametrize(("make", "frame"), [(hung_plate, "plate"), (hinged_arm, "load")])
def test_reachable_poses_are_reached_with_closed_loops(make, frame):
    """A free body on rods, and an arm with a spherical joint that is hinged to a free body."""
    chain = make()
    guess, poses = reachable(chain, frame, 3)
    found = chain.model.inverse_kinematics({frame: poses}, guess, starts=16)
    assert len(found.q) and found.success.all() and found.error.max() <= 1e-10
    assert np.abs(chain.model.constraint_residual(found.q)).max() <= 1e-10
    reached = chain.model.frame_poses(found.q, frame)
    assert np.allclose(reached.translation, poses.translation, rtol=0, atol=1e-10)
    assert np.allclose(reached.rotation, poses.rotation, rtol=0, atol=1e-9)


@plain
def test_the_coupled_fingers_of_a_robot_follow():
    model = rb.load(ROBOTS / "panda_description/urdf/panda.urdf")
    q = np.array([0.3, -0.4, 0.2, -1.9, 0.1, 1.6, 0.5, 0.02, 0.02])
    found = model.inverse_kinematics({"panda_leftfinger": model.frame_poses(q, "panda_leftfinger")})
    assert found.success and abs(found.q[-1] - found.q[-2]) <= 1e-10


@plain
def test_angles_of_couplers_do_not_move_by_whole_turns():
    builder = rb.ModelBuilder()
    for name in ("motor", "arm"):
        builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    builder.add_constraint(rb.CouplerConstraint("gear", "motor", "arm", ratio=20.0))
    goal = rb.Target((np.cos(2.0), np.sin(2.0), 0.0), point=(1, 0, 0))
    found = builder.build().inverse_kinematics({"arm": goal}, [0.0, 1.0])
    assert found.success and np.allclose(found.q, [40.0, 2.0], rtol=0, atol=1e-8)


@plain
def test_hinges_are_not_turned_over():
    """The residual of a hinge is zero also with opposite axes."""
    builder = rb.ModelBuilder()
    builder.add_body("door", joint=rb.Free(), inertia=rb.Inertia.box((1, 1, 1), mass=1.0))
    builder.add_constraint(rb.HingeConstraint("hinge", None, "door", axis_a=(0, 0, 1), axis_b=(0, 0, 1)))
    model = builder.build()
    goal = rb.Target((0.6, 0.8, 0.0), point=(1, 0, 0))
    found = model.inverse_kinematics({"door": goal}, [0, 0, 0, 1, 0, 0, 0], starts=20)
    assert found.success and model.frame_poses(found.q, "door").rotation[2, 2] == pytest.approx(1.0)
    alone = model.inverse_kinematics({"door": goal}, [0, 0, 0, 1, 0, 0, 0], starts=1)
    assert not alone.success and np.isnan(alone.q).all() and np.isnan(alone.error)


@plain
def test_loops_that_cannot_be_closed_have_no_positions_and_leave_other_samples_unchanged():
    model, _, guess = four_bar()
    placement = np.tile(model.placement_translation, (3, 1, 1))
    placement[1, model.body_names.index("rocker")] = [9.0, 0.0, 0.0]
    goal = {"coupler": rb.Target(point_of_four_bar(np.array([0.5, 0.6, 0.7])), point=POINT)}
    found = model.vary(placement_translation=placement).inverse_kinematics(goal, guess, starts=2)
    assert found.success.tolist() == [True, False, True] and np.isnan(found.q[1]).all()
    assert np.array_equal(found.q[::2], model.inverse_kinematics(goal, guess).q[::2])
    none = model.inverse_kinematics({"coupler": rb.Target(np.zeros((0, 3)))}, guess)
    assert none.q.shape == (0, 3) and none.success.shape == (0,)


@pytest.mark.slow
def test_lanes_solve_closed_loops_of_different_geometry():
    chain = polygon(7)
    guess, poses = reachable(chain, "link4", 100)
    found = chain.model.inverse_kinematics({"link4": poses}, guess)
    assert found.success.all()
    scale = np.random.default_rng(0).uniform(0.9, 1.1, 30)
    placement = scale[:, None, None] * chain.model.placement_translation
    many = chain.model.vary(placement_translation=placement)
    goal = rb.Target(poses.translation[:30])
    found = many.inverse_kinematics({"link4": goal}, guess)
    assert found.success.mean() > 0.5 and np.abs(many.constraint_residual(found.q))[found.success].max() <= 1e-10
    for i in (0, 7, 29):
        one = many[i].inverse_kinematics({"link4": rb.Target(goal.position[i])}, guess)
        assert np.array_equal(one.q, found.q[i], equal_nan=True)
