"""`Bushing.in_place_of`: bearings that give way, compared with their law, statics and rigid constraints."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbchain as rb

from .mechanisms import random_rotation
from .quantities import derivative

PLAIN = pytest.mark.plain_python
COMPLIANCE = {"compliance": 1e-8, "angular_compliance": 1e-6, "damping_time": 1e-3}


def floating_pair():
    builder = rb.ModelBuilder()
    for name in ("a", "b"):
        builder.add_body(name, joint=rb.Free(), inertia=rb.Inertia(1.0, inertia=(0.5, 0.6, 0.7)))
    return builder.build()


def random_bearing(rng):
    factors = rng.normal(size=(2, 5, 5))
    stiffness, damping = (np.pad(factor @ factor.T, ((0, 1), (0, 1))) for factor in factors)
    poses = {f"pose_{side}": rb.Pose(rng.normal(size=3), random_rotation(rng)) for side in "ab"}
    return rb.Bushing("a", "b", stiffness=stiffness, damping=damping, free_axis=True, **poses)


def displacement(model, q, bearing):
    """The position of B in A, and the tilt z_A x z_B."""
    A = model.frame_poses(q, "a") @ bearing.pose_a
    B = model.frame_poses(q, "b") @ bearing.pose_b
    relative = A.inverse() @ B
    return np.concatenate([relative.translation, np.cross([0.0, 0.0, 1.0], relative.rotation[:, 2])])


def joint_forces(model, q, qd, bearing):
    rest = np.zeros(model.nv)
    wrenches = model.wrenches_between_bodies(q, qd, [bearing])
    return model.inverse_dynamics(q, qd, rest) - model.inverse_dynamics(q, qd, rest, wrenches)


@PLAIN
@pytest.mark.parametrize("seed", range(4))
def test_a_bearing_follows_its_law_at_all_angles(seed):
    rng, model = np.random.default_rng(seed), floating_pair()
    bearing, q = random_bearing(rng), model.integrate(model.neutral(), 3.0 * rng.normal(size=12))
    qd = rng.normal(size=12)
    along = [derivative(lambda s, e=e: displacement(model, model.integrate(q, s * e), bearing)) for e in np.eye(12)]
    J, x = np.stack(along, -1), displacement(model, q, bearing)
    np.testing.assert_allclose(model.elastic_energy(q, [bearing]), x @ bearing.stiffness @ x / 2, rtol=1e-12)
    expected = -J.T @ (bearing.stiffness @ x + bearing.damping @ J @ qd)
    size = np.abs(expected).max()
    np.testing.assert_allclose(joint_forces(model, q, qd, bearing), expected, atol=1e-9 * size)
    by_q, by_qd = model.derivatives_between_bodies(q, qd, [bearing])
    for e, of_q, of_qd in zip(np.eye(12), by_q.T, by_qd.T, strict=True):
        by_position = derivative(lambda s, e=e: joint_forces(model, model.integrate(q, s * e), qd, bearing))
        by_velocity = derivative(lambda s, e=e: joint_forces(model, q, qd + s * e, bearing))
        np.testing.assert_allclose(of_q, by_position, atol=1e-8 * size)
        np.testing.assert_allclose(of_qd, by_velocity, atol=1e-8 * size)


@PLAIN
def test_two_bearings_of_a_shaft_share_an_axial_load_by_their_stiffness():
    builder = rb.ModelBuilder(gravity=(0, 0, -10.0))
    builder.add_body("shaft", joint=rb.Free(), inertia=rb.Inertia(3.0, inertia=(0.2, 0.2, 0.01)))
    model, compliances = builder.build(), (1e-7, 2e-7)
    bearings = [
        rb.Bushing.in_place_of(
            rb.HingeConstraint(name, None, "shaft", point_a=(0, 0, z), point_b=(0, 0, z)),
            compliance=compliance, angular_compliance=1e-5, damping_time=0.0,
        )
        for name, z, compliance in (("lower", 0.0, compliances[0]), ("upper", 0.4, compliances[1]))
    ]  # fmt: skip
    # the shaft would turn freely about its axis, which is no isolated equilibrium; a weak spring selects one
    spring = rb.Bushing(None, "shaft", stiffness=np.diag([0.0] * 5 + [1.0]))
    found = model.equilibrium(model.neutral(), forces=[*bearings, spring])
    assert found.success
    forces = [model.wrenches_between_bodies(found.q, np.zeros(6), [bearing])[0, 2] for bearing in bearings]
    # in parallel, the shares of the weight of 30 N are inversely proportional to the compliances
    np.testing.assert_allclose(forces, [20.0, 10.0], rtol=1e-9)


def bennett_linkage(error=0.0):
    """Links of lengths a, b, a, b and twists alpha, beta: mobile only if a sin(beta) = b sin(alpha).

    Source: Bennett (1903). Returns the open chain, one link of which is too long by `error`, and the hinge that
    closes it.
    """
    alpha, beta, a = np.radians(30.0), np.radians(50.0), 0.5
    b = a * np.sin(beta) / np.sin(alpha)

    def link(length, twist):
        return rb.Pose((length, 0, 0), Rotation.from_rotvec((twist, 0, 0)))

    builder, hinge = rb.ModelBuilder(gravity=(0, 0, 0)), rb.Revolute((0, 0, 1))
    inertia = rb.Inertia(1.0, inertia=(0.05, 0.05, 0.05))
    builder.add_body("first", joint=hinge, inertia=inertia)
    builder.add_body("second", parent="first", joint=hinge, placement=link(a, alpha), inertia=inertia)
    builder.add_body("third", parent="second", joint=hinge, placement=link(b + error, beta), inertia=inertia)
    end, fixed = link(a, alpha), link(b, beta).inverse()
    closing = rb.HingeConstraint(
        "closing", None, "third", point_a=fixed.translation, axis_a=fixed.rotation[:, 2],
        point_b=end.translation, axis_b=end.rotation[:, 2],
    )  # fmt: skip
    return builder, closing


CLOSED = (1.33236421, -3.56008145, -1.33236421)


def rigid_motion(duration):
    """The motion of the perfect linkage with a rigid hinge, and its initial state."""
    builder, closing = bennett_linkage()
    builder.add_constraint(closing)
    model = builder.build()
    q = model.assemble(CLOSED)
    qd = model.assemble_velocities(q, [2.0, 0, 0], fixed=["first"])
    return model.simulate(q, qd, duration, rtol=1e-9, save_at=2), q, qd


@pytest.mark.slow
@pytest.mark.usefixtures("plain_or_slow")
def test_a_linkage_on_a_bearing_approaches_the_rigid_linkage_with_steps_as_long():
    rigid, q, qd = rigid_motion(2.0)
    assert np.abs(rigid.q[-1] - q).max() > np.pi  # the free axis of the bearing turns beyond half a turn
    builder, closing = bennett_linkage()
    model, compliances = builder.build(), np.array([4e-7, 2e-7])
    bearing = rb.Bushing.in_place_of(
        closing, compliance=compliances, angular_compliance=100 * compliances, damping_time=1e-4
    )
    states = np.tile(q, (2, 1)), np.tile(qd, (2, 1))
    motion = model.simulate(*states, 2.0, method="radau", rtol=1e-9, save_at=2, forces=[bearing])
    errors = np.abs(motion.q[:, -1] - rigid.q[-1]).max(-1)
    # the difference of both motions is proportional to the compliance, up to terms of its square
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.05)
    assert errors[1] < 1e-5
    assert motion.steps.max() < 4 * rigid.steps


@pytest.mark.slow
@PLAIN
def test_a_linkage_that_cannot_close_stands_on_its_bearing():
    _, closing = bennett_linkage()
    builder, _ = bennett_linkage(error=1e-5)
    stiff = builder.build()
    builder.add_constraint(closing)
    with pytest.raises(rb.AssemblyError, match=r"Bushing\.in_place_of"):
        builder.build().assemble(CLOSED)
    bearing = rb.Bushing.in_place_of(closing, **COMPLIANCE)
    found = stiff.equilibrium(CLOSED, free=["second", "third"], forces=[bearing])
    assert found.success
    # the residual of a rigid hinge, about 1e-5 m, is the displacement; the energy is x^T K x / 2
    energy = stiff.elastic_energy(found.q, [bearing])
    assert 0 < energy < 0.5 * 1e8 * 1e-5**2


@PLAIN
def test_constraints_become_bushings_that_hold_the_same_directions():
    weld = rb.WeldConstraint("w", None, "a", pose_b=rb.Pose((0, 0, 1)))
    ball = rb.BallConstraint("b", None, "a", point_a=(1, 2, 3))
    batch = rb.Bushing.in_place_of(weld, compliance=[1e-2, 1e-3], angular_compliance=0.1, damping_time=[0.5, 0.0])
    np.testing.assert_allclose(batch.stiffness[1].diagonal(), [1e3] * 3 + [10.0] * 3)
    np.testing.assert_allclose(batch.damping[0], 0.5 * batch.stiffness[0])
    assert not batch.free_axis
    assert not batch.damping[1].any()
    of_ball = rb.Bushing.in_place_of(ball, compliance=1e-2, damping_time=0.0)
    np.testing.assert_allclose(of_ball.stiffness.diagonal(), [100.0] * 3 + [0.0] * 3)
    np.testing.assert_array_equal(of_ball.pose_a.translation, [1, 2, 3])


HINGE = rb.HingeConstraint("hinge", None, "a")


@PLAIN
@pytest.mark.parametrize(
    ("constraint", "changed", "problem"),
    [
        (rb.DistanceConstraint("rod", None, "a", (0, 0, 0), (0, 0, 0), 1.0), {}, "expected a BallConstraint, a HingeC"),
        (HINGE, {"compliance": 0.0}, r"compliance is 0\.0; expected more than 0"),
        (HINGE, {"angular_compliance": None}, "angular_compliance is None; expected the tilt per moment"),
        (rb.BallConstraint("ball", None, "a"), {}, "expected none, because a ball joint turns freely"),
        (HINGE, {"damping_time": [-1.0]}, r"damping_time is \[-1\.0\]; expected at least 0"),
        (HINGE, {"compliance": np.nan}, "expected finite numbers"),
        (HINGE, {"compliance": [1e-2] * 3, "angular_compliance": [0.1] * 2}, r"compliance \(3,\), angular_.*one per s"),
        (HINGE, {"compliance": [1e-2] * 3, "damping_time": [0.0] * 2}, r"damping_time \(2,\); expected one number"),
    ],
)
def test_numbers_that_do_not_describe_a_bearing_are_refused(constraint, changed, problem):
    with pytest.raises(rb.ArgumentError, match=problem):
        rb.Bushing.in_place_of(constraint, **COMPLIANCE | changed)


@PLAIN
def test_a_free_axis_has_no_stiffness():
    bushing = rb.Bushing("a", "b", stiffness=np.eye(6), free_axis=True)
    with pytest.raises(rb.ArgumentError, match=r"last row of its stiffness is .*expected zeros, because"):
        floating_pair().wrenches_between_bodies(floating_pair().neutral(), np.zeros(12), [bushing])
