"""Derivatives of the accelerations of closed chains: 50 digits, differences, identities, lanes, and refused input."""

import mpmath as mp
import numpy as np
import pytest

import rbchain as rb

from .closed_chains import CHAINS, closed_chain, closed_state, ends, four_bar, held_cable, polygon, random_turn
from .mechanisms import random_inertia, random_rotation
from .oracles.maximal_coordinates import as_doubles, at_50_digits, closed_chain_dynamics
from .oracles.newton_euler import exact, integrate, moved_along
from .quantities import derivative, matrix_vector, random_states

plain = pytest.mark.plain_python
every_chain = pytest.mark.parametrize("name", CHAINS)
# Accuracy relative to the largest entry. The mass matrices of these chains have condition numbers up to 1e3.
EXACT = 1e-10
KINDS = ("ball", "hinge", "weld", "distance", "distance from an ancestor", "ball on the world", "coupler")


def assert_close(found, expected, relative=EXACT, scale=None):
    scale = np.abs(expected).max() if scale is None else scale
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * scale)


def branches(kind):
    """Two branches of a floating body with joints of all types, between which a constraint acts."""
    rng = np.random.default_rng(1)
    builder = rb.ModelBuilder(name="branches", gravity=(1, 2, -9))

    def pose():
        return rb.Pose(rng.normal(size=3) * 0.4, random_rotation(rng))

    for name, parent, joint in (
        ("hull", None, rb.Free()),
        ("head", "hull", rb.Spherical()),
        ("left1", "head", rb.Universal()),
        ("left2", "left1", rb.Spherical()),
        ("right1", "head", rb.Screw((1, 2, 0.3), pitch=0.2)),
        ("right2", "right1", rb.Planar()),
        ("right3", "right2", rb.Spherical()),
        ("right4", "right3", rb.Prismatic((1, 1, 2))),
    ):
        builder.add_body(name, parent=parent, joint=joint, placement=pose(), inertia=random_inertia(rng))
    points, axes = ends(point=rng.normal(size=(2, 3)) * 0.2), ends(axis=rng.normal(size=(2, 3)))
    poses = ends(pose=(pose(), pose()))
    builder.add_constraint(
        {
            "ball": lambda: rb.BallConstraint("c", "left2", "right4", **points),
            "hinge": lambda: rb.HingeConstraint("c", "left2", "right4", **points, **axes),
            "weld": lambda: rb.WeldConstraint("c", "left2", "right4", **poses),
            "distance": lambda: rb.DistanceConstraint("c", "left2", "right4", **points, length=0.7),
            "distance from an ancestor": lambda: rb.DistanceConstraint("c", "hull", "right4", **points, length=0.7),
            "ball on the world": lambda: rb.BallConstraint("c", "right4", None, **points),
            "coupler": lambda: rb.CouplerConstraint("c", "right1", "right4", ratio=0.7, offset=0.1),
        }[kind]()
    )
    return builder.build()


# --- values -----------------------------------------------------------------------------------------------------------


@at_50_digits
def slope_at_50_digits(chain, state, directions):
    """Derivative of the accelerations along (dq, dqd, dtau), by differences with an error of about 1e-40."""
    step, (q, qd, tau), (dq, dqd, dtau) = mp.mpf(10) ** -20, state, directions
    ends = []
    for s in (step, -step):
        moved = integrate(chain.model, q, [s * exact(x) for x in dq])
        rates = (moved_along(x, [s * exact(y) for y in dx]) for x, dx in ((qd, dqd), (tau, dtau)))
        ends.append(closed_chain_dynamics(chain.model, chain.constraints, moved, *rates)[0])
    return as_doubles([(later - earlier) / (2 * step) for later, earlier in zip(*ends, strict=True)])


LARGE = ("welded and geared", "Andrews' squeezer")  # in 50 digits, these take as long as all others


@pytest.mark.fast_cases("four-bar")
@plain
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in CHAINS]
)
def test_derivatives_agree_with_50_digits(name):
    """In directions that open the loops, too. Dependent rows remain dependent, because the steps are tiny."""
    chain, rng = closed_chain(name), np.random.default_rng(0)
    state = closed_state(chain, seed=3)
    found = chain.model.forward_dynamics_derivatives(*state)
    for part in range(3):
        direction = rng.normal(size=chain.model.nv)
        directions = [direction if i == part else np.zeros(chain.model.nv) for i in range(3)]
        # the derivatives with respect to qd may be much smaller than the accelerations from which they cancel
        scale = np.abs(found[part]).max() + np.abs(chain.model.forward_dynamics(*state)).max()
        assert_close(found[part] @ direction, slope_at_50_digits(chain, state, directions), scale=scale)


@plain
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_agree_with_differences_in_open_positions(kind):
    """The accelerations are smooth functions of all states. The differences have an error of about 1e-11.

    The sizes of the components of a direction have the sum 1, so that the derivative along it is at most an entry.
    """
    model = branches(kind)
    q, qd, tau = random_states(model, (), seed=3, arrays=3)
    if kind != "coupler":
        assert np.abs(model.constraint_residual(q)).max() > 0.1
    found = model.forward_dynamics_derivatives(q, qd, tau)
    directions = np.random.default_rng(3).normal(size=(3, model.nv))
    for e in directions / np.abs(directions).sum(axis=1, keepdims=True):
        slopes = (
            derivative(lambda s, e=e: model.forward_dynamics(model.integrate(q, s * e), qd, tau)),
            derivative(lambda s, e=e: model.forward_dynamics(q, qd + s * e, tau)),
            derivative(lambda s, e=e: model.forward_dynamics(q, qd, tau + s * e)),
        )
        for matrix, slope in zip(found, slopes, strict=True):
            assert_close(matrix @ e, slope, 1e-9, scale=np.abs(matrix).max())


@pytest.mark.fast_cases("polygon")
@plain
@pytest.mark.parametrize("build", [lambda: held_cable(8), polygon, lambda: polygon(rotation=random_turn())])
def test_long_loops_agree_with_differences_along_closed_states(build):
    check_along_closed_states(build())


@pytest.mark.slow_cases("Andrews' squeezer", "hinged arm", "hung plate", "welded and geared")
@plain
@every_chain
def test_derivatives_agree_with_differences_along_closed_states(name):
    check_along_closed_states(closed_chain(name))


def check_along_closed_states(chain):
    """Along a path of closed states, the choice of independent rows does not matter."""
    model, rng = chain.model, np.random.default_rng(5)
    q, qd, tau = closed_state(chain, seed=5)
    dq = model.assemble_velocities(q, rng.normal(size=model.nv))
    dqd, dtau = rng.normal(size=(2, model.nv))

    def state(s):
        moved = model.assemble(model.integrate(q, s * dq))
        return moved, model.assemble_velocities(moved, qd + s * dqd), tau + s * dtau

    by_q, by_qd, by_tau = model.forward_dynamics_derivatives(q, qd, tau)
    along = [derivative(lambda s: model.difference(q, state(s)[0])), derivative(lambda s: state(s)[1])]
    slope = derivative(lambda s: model.forward_dynamics(*state(s)))
    scale = np.abs(slope).max() + np.abs(model.forward_dynamics(q, qd, tau)).max()
    assert_close(by_q @ along[0] + by_qd @ along[1] + by_tau @ dtau, slope, 1e-8, scale=scale)


# --- identities -------------------------------------------------------------------------------------------------------


@plain
@every_chain
def test_joint_forces_along_the_constraints_have_no_effect(name):
    """J dqdd/dtau = 0, dqdd/dtau J^T = 0, and dqdd/dtau is symmetric and positive semidefinite."""
    chain = closed_chain(name)
    state = closed_state(chain, seed=6)
    *_, G = chain.model.forward_dynamics_derivatives(*state)
    J = chain.model.constraint_jacobian(state[0])
    scale = np.abs(G).max()
    assert_close(G, G.T, scale=scale)
    assert_close(J @ G, 0.0, scale=scale * np.abs(J).max())
    assert np.linalg.eigvalsh(G + G.T).min() > -EXACT * scale
    assert np.linalg.matrix_rank(G, tol=1e-8 * scale) == chain.model.nv - np.linalg.matrix_rank(J, tol=1e-8)


@plain
def test_a_weld_of_two_bodies_agrees_with_a_fixed_joint():
    """The derivatives of an arm whose hand is welded to a body on a free joint are those with a fixed joint."""
    rng = np.random.default_rng(2)
    pose, axes = rb.Pose(rng.normal(size=3) * 0.2, random_rotation(rng)), rng.normal(size=(2, 3))
    inertias, place = [random_inertia(rng) for _ in range(3)], rb.Pose((0.3, 0.1, 0))
    models = {}
    for way in ("fixed", "welded"):
        builder = rb.ModelBuilder(gravity=(1, 2, -9))
        builder.add_body("upper", joint=rb.Revolute(axes[0]), inertia=inertias[0])
        builder.add_body("lower", parent="upper", joint=rb.Revolute(axes[1]), placement=place, inertia=inertias[1])
        if way == "fixed":
            builder.add_body("load", parent="lower", joint=rb.Fixed(), placement=pose, inertia=inertias[2])
        else:
            builder.add_body("load", joint=rb.Free(), inertia=inertias[2])
            builder.add_constraint(rb.WeldConstraint("weld", "lower", "load", pose_a=pose, pose_b=rb.Pose()))
        models[way] = builder.build()
    q, qd, tau = rng.normal(size=(3, 2))
    expected = models["fixed"].forward_dynamics_derivatives(q, qd, tau)
    welded = models["welded"]
    guess = joined_guess(welded, q, pose)
    closed_q = welded.assemble(guess, fixed=["upper", "lower"])
    closed_qd = welded.assemble_velocities(closed_q, [*qd, *np.zeros(6)], fixed=["upper", "lower"])
    by_q, by_qd, by_tau = welded.forward_dynamics_derivatives(closed_q, closed_qd, [*tau, *np.zeros(6)])
    J = welded.constraint_jacobian(closed_q)
    tangent = np.vstack([np.eye(2), -np.linalg.solve(J[:, 2:], J[:, :2])])  # changes that keep the weld closed
    turn = derivative(lambda s: closed_rates(welded, closed_q, closed_qd, s * tangent[:, 0]))
    other = derivative(lambda s: closed_rates(welded, closed_q, closed_qd, s * tangent[:, 1]))
    found = by_q @ tangent + by_qd @ np.column_stack([turn, other])
    assert_close(found[:2], expected[0], 1e-8)
    assert_close((by_qd @ tangent)[:2], expected[1], 1e-9)
    assert_close(by_tau[:2, :2], expected[2], 1e-9)


def joined_guess(model, q, pose):
    from scipy.spatial.transform import Rotation

    guess = np.array([*q, 0, 0, 0, 0, 0, 0, 1.0])
    target = model.frame_poses(guess, "lower") @ pose
    guess[2:] = [*target.translation, *Rotation.from_matrix(target.rotation).as_quat()]
    return guess


def closed_rates(model, q, qd, move):
    """The velocities near q that keep the weld closed, with unchanged velocities of the first two joints."""
    J = model.constraint_jacobian(model.integrate(q, move))
    return np.concatenate([qd[:2], -np.linalg.solve(J[:, 2:], J[:, :2] @ qd[:2])])


# --- lanes, precisions and refused input ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hinged arm", "Bricard"])
def test_batches_agree_with_single_states_and_with_float32(name):
    """11 states fill more than one block; the parameters of the samples differ."""
    chain, rng = closed_chain(name), np.random.default_rng(8)
    q, qd, tau = closed_state(chain, batch=(11,), seed=8)
    model = chain.model
    varied = model.vary(mass=model.mass * rng.uniform(0.5, 2.0, (11, model.n_bodies)))
    together = np.stack(varied.forward_dynamics_derivatives(q, qd, tau), 1)
    alike = np.stack(model.forward_dynamics_derivatives(q, qd, tau), 1)
    for s in range(11):
        alone = np.stack(model.forward_dynamics_derivatives(q[s], qd[s], tau[s]))
        own = np.stack(varied[s].forward_dynamics_derivatives(q[s], qd[s], tau[s]))
        for part in range(3):
            assert_close(alike[s, part], alone[part])
            assert_close(together[s, part], own[part])
    np.testing.assert_array_equal(np.stack(model.forward_dynamics_derivatives(q[9:], qd[9:], tau[9:]), 1), alike[9:])
    if name == "Bricard":  # states in float32 are open by more than the round-off of the dependent rows
        return
    single = np.stack(model.forward_dynamics_derivatives(*(x.astype(np.float32) for x in (q, qd, tau))), 1)
    assert single.dtype == np.float32
    for part in range(3):
        assert_close(single[:, part], alike[:, part], 1e-3)


@pytest.mark.slow
def test_a_state_of_nan_changes_no_other_state():
    model = four_bar().model
    q, qd, tau = closed_state(four_bar(), batch=(3,))
    expected = np.stack(model.forward_dynamics_derivatives(q, qd, tau), 1)
    q[1] = np.nan
    out = np.empty((3, 3, 3, 3))
    found = model.forward_dynamics_derivatives(q, qd, tau, out=out)
    assert np.shares_memory(found[0], out)
    assert np.isnan(out[1]).all()
    np.testing.assert_array_equal(out[[0, 2]], expected[[0, 2]])


@plain
def test_derivatives_keep_their_shape_behind_a_batch():
    model = four_bar().model
    q, qd, tau = closed_state(four_bar(), batch=(2, 2))
    found = model.forward_dynamics_derivatives(q, qd, tau)
    assert [x.shape for x in found] == [(2, 2, 3, 3)] * 3
    assert_close(matrix_vector(found[2], tau)[1, 1], found[2][1, 1] @ tau[1, 1])


@plain
def test_closed_chains_in_water_are_refused():
    builder = rb.ModelBuilder(fluid_density=1000.0)
    ball = rb.Immersion(volume=0.001)
    builder.add_body(
        "bob", joint=rb.Spherical(), inertia=rb.Inertia(1.0, cg=(0.5, 0, 0), inertia=(1, 1, 1)), immersion=ball
    )
    builder.add_constraint(
        rb.DistanceConstraint("rod", None, "bob", point_a=(0, 0, 1), point_b=(0.5, 0, 0), length=1.0)
    )
    model = builder.build()
    with pytest.raises(rb.ArgumentError, match="forward_dynamics_derivatives does not support bodies in water"):
        model.forward_dynamics_derivatives([0, 0, 0, 1.0], np.zeros(3), np.zeros(3))
