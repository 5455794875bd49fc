"""Every quantity agrees with Pinocchio, satisfies identities on 200 random trees, and keeps its bits."""

import numpy as np
import pytest

import rbchain as rb

from .conftest import mechanism
from .oracles import newton_euler, peers
from .quantities import (
    ARGUMENTS,
    EPS,
    SOLVED,
    Magnitudes,
    along,
    assert_within,
    chains_of,
    computed,
    derivative,
    derivative_error,
    map_state,
    matrix_vector,
    norm,
    random_state,
    usual_rounding,
)

FAR = 1e4  # m
# NumPy computes these and chooses the order of summation by size and layout.
SUMMED = ("power", "integrate", "difference")


# --- against Pinocchio ------------------------------------------------------------------------------------------------

STATES = 21
PEERED = (
    *("inverse_dynamics", "bias_forces", "gravity_forces", "joint_reactions", "mass_matrix"),
    *("centroidal_momentum_matrix", "momentum", "center_of_mass", "energy"),
    *("body_poses", "body_velocities", "body_accelerations"),
    *("jacobian", "relative_jacobian", "jacobian_derivative", "relative_jacobian_derivative"),
    *("inverse_dynamics_derivatives", "inverse_dynamics_regressor"),
    *("kinetic_energy_regressor", "potential_energy_regressor", "difference"),
)
# Pinocchio defines these differently, or other tests compare them with tolerances of their own.
ELSEWHERE = ("coriolis_matrix", "forward_dynamics", "mass_matrix_inverse", "forward_dynamics_derivatives", "integrate")
# Pinocchio has no function for these; identities check them.
WITHOUT_PEER = (
    *("hybrid_dynamics", "force_balance_residual", "power", "solve_mass_matrix", "christoffel_symbols", "frame_poses"),
)


def test_every_quantity_is_compared_with_pinocchio_or_listed_as_without_peer():
    assert sorted([*PEERED, *ELSEWHERE, *WITHOUT_PEER]) == sorted(ARGUMENTS)
    assert not [q for q in WITHOUT_PEER if hasattr(peers.PinocchioPeer, q)]


def from_peer(peer, model, name, state):
    """A quantity of one sample in Pinocchio, as a tuple; Pinocchio numbers the bodies."""
    bodies = {"frame": model.body_names.index(state.frame), "relative_to": model.body_names.index(state.relative_to)}
    arguments = [bodies.get(argument, getattr(state, argument)) for argument in ARGUMENTS[name].split()]
    found = getattr(peer, name.removeprefix("relative_"))(*arguments)
    return found if isinstance(found, tuple) else (found,)


def assert_close(found, expected):
    """Compare the arrays of one result to 1e-11 of its largest entry, because entries that cancel leave round-off."""
    largest = max(np.abs(x).max() for x in expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.shape == np.shape(theirs)
        assert np.abs(mine - theirs).max() <= 1e-11 * largest


@pytest.mark.parametrize("quantity", PEERED)
def test_a_quantity_agrees_with_pinocchio(model, quantity):
    """To 1e-11 of the largest entry, in a batch and for a single state."""
    state, peer = random_state(model, (STATES,)), peers.to_pinocchio(model)
    batch = computed(model, quantity, state)
    for s in range(STATES):
        chain = chains_of(state, s)
        expected = from_peer(peer, model, quantity, chain)
        assert_close([x[s] for x in batch], expected)
        if s < 3:
            assert_close(computed(model, quantity, chain), expected)


def test_bias_forces_from_the_coriolis_matrix_agree_with_pinocchio(model):
    """Pinocchio's Coriolis matrix differs, because many matrices have the same product with qd."""
    state, peer = random_state(model, (STATES,)), peers.to_pinocchio(model)
    gravity = model.gravity_forces(state.q)
    batch = matrix_vector(model.coriolis_matrix(state.q, state.qd), state.qd) + gravity
    for s in range(STATES):
        q, qd = state.q[s], state.qd[s]
        expected = [peer.bias_forces(q, qd)]
        assert_close([batch[s]], expected)
        if s < 3:
            assert_close([model.coriolis_matrix(q, qd) @ qd + gravity[s]], expected)


def test_the_inverse_of_the_mass_matrix_agrees_with_pinocchio(model):
    """Each engine may err by n eps times the condition number (Higham 2002, theorem 14.1)."""
    state, peer = random_state(model, (STATES,)), peers.to_pinocchio(model)
    inverse, solved = model.mass_matrix_inverse(state.q), model.solve_mass_matrix(state.q, state.tau)
    for s in range(STATES):
        q, tau = state.q[s], state.tau[s]
        expected = peer.mass_matrix_inverse(q)
        allowed = 2 * model.nv * EPS * np.linalg.cond(peer.mass_matrix(q)) * np.linalg.norm(expected, 2)
        assert np.abs(inverse[s] - expected).max() <= allowed
        assert norm(solved[s] - expected @ tau) <= allowed * norm(tau)
        if s < 3:
            assert np.abs(model.mass_matrix_inverse(q) - expected).max() <= allowed
            assert norm(model.solve_mass_matrix(q, tau) - expected @ tau) <= allowed * norm(tau)


# --- among each other, on 200 random trees ----------------------------------------------------------------------------


@pytest.mark.slow_cases("1", "2", "3")
def test_forward_dynamics_of_inverse_dynamics_returns_the_accelerations(trees):
    for model, state, sizes in trees:
        tau = model.inverse_dynamics(state.q, state.qd, state.qdd, state.wrenches)
        qdd = model.forward_dynamics(state.q, state.qd, tau, state.wrenches)
        assert_within(qdd, state.qdd, 2 * sizes.rounding * sizes.inverse * sizes.force)


def test_inverse_dynamics_is_the_sum_of_inertial_coriolis_and_gravity_forces(trees):
    """H qdd + C qd + g = tau and C qd + g = h."""
    for model, state, sizes in trees:
        q, qd, qdd = state.q, state.qd, state.qdd
        bias = matrix_vector(model.coriolis_matrix(q, qd), qd) + model.gravity_forces(q)
        allowed = 2 * sizes.rounding * sizes.force
        assert_within(model.bias_forces(q, qd), bias, allowed)
        assert_within(model.inverse_dynamics(q, qd, qdd), matrix_vector(model.mass_matrix(q), qdd) + bias, allowed)


def test_a_wrench_acts_through_the_jacobian_of_its_body(trees):
    for model, state, sizes in trees:
        q, qd, qdd = state.q, state.qd, state.qdd
        loaded = model.inverse_dynamics(q, qd, qdd, state.wrenches)
        share = sum(
            np.einsum("...ij,...i", model.jacobian(q, name), state.wrenches[:, i])
            for i, name in enumerate(model.body_names)
        )
        assert_within(loaded + share, model.inverse_dynamics(q, qd, qdd), 2 * sizes.rounding * sizes.force)


def test_the_mass_matrix_is_symmetric_and_its_inverse_is_consistent(trees):
    for model, state, sizes in trees:
        H, inverse = model.mass_matrix(state.q), model.mass_matrix_inverse(state.q)
        assert np.array_equal(H, H.mT)
        assert np.array_equal(inverse, inverse.mT)
        allowed = 2 * sizes.rounding * sizes.inertia * sizes.inverse
        assert_within(H @ inverse, np.eye(model.nv), allowed)
        # the products of the inverse with tau add round-off
        allowed = allowed * sizes.inverse * np.abs(state.tau).sum(-1)
        assert_within(model.solve_mass_matrix(state.q, state.tau), matrix_vector(inverse, state.tau), allowed)


def test_the_rate_of_the_mass_matrix_minus_twice_the_coriolis_matrix_is_skew(trees):
    """Hdot = C + C^T, with Hdot by differences along the motion, so that x^T (Hdot - 2 C) x = 0."""
    for model, state, sizes in trees:
        C = model.coriolis_matrix(state.q, state.qd)
        rate = derivative(lambda s: model.mass_matrix(along(model, state, s)[0]))  # noqa: B023 : used at once
        allowed = derivative_error(sizes.inertia, sizes)
        assert_within(C + C.mT, rate, allowed)
        power = np.einsum("...i,...ij,...j", state.tau, rate - 2 * C, state.tau)
        assert (np.abs(power) <= allowed * np.abs(state.tau).sum(-1) ** 2).all()


def test_christoffel_symbols_times_velocities_give_the_coriolis_matrix(trees):
    for model, state, sizes in trees:
        symbols = model.christoffel_symbols(state.q)
        C = np.einsum("...ijk,...k", symbols, state.qd)
        assert_within(model.coriolis_matrix(state.q, state.qd), C, 2 * sizes.rounding * sizes.inertia * sizes.rate)
        if model.nq == model.nv:  # velocities are the rates of the coordinates
            assert_within(symbols, symbols.mT, 2 * sizes.rounding * sizes.inertia)


def test_energy_and_momentum_agree_with_the_mass_and_momentum_matrices(trees):
    for model, state, sizes in trees:
        q, qd = state.q, state.qd
        kinetic, _ = model.energy(q, qd)
        expected = np.einsum("...i,...ij,...j", qd, model.mass_matrix(q), qd) / 2
        assert_within(kinetic, expected, 2 * sizes.rounding * sizes.energy)
        expected = matrix_vector(model.centroidal_momentum_matrix(q), qd)
        assert_within(model.momentum(q, qd), expected, 2 * sizes.rounding * sizes.inertia * sizes.rate)


def centers_and_arms(model, poses):
    """Return centers of mass in the world, and their lever arms from the body origins in world axes."""
    arms = matrix_vector(poses.rotation, model.cg)
    return poses.translation + arms, arms


def test_energy_and_momentum_are_sums_over_the_bodies(trees):
    """By definition, from the poses and velocities of the bodies."""
    for model, state, sizes in trees:
        poses, velocities = model.body_poses(state.q), model.body_velocities(state.q, state.qd)
        linear, angular = velocities[..., :3], velocities[..., 3:]
        centers, arms = centers_and_arms(model, poses)
        spin = matrix_vector(poses.rotation @ model.inertia @ poses.rotation.mT, angular)
        impulse = model.mass[:, None] * (linear + np.cross(angular, arms))
        center = model.mass @ centers / model.mass.sum()
        momentum = np.concatenate(
            [impulse.sum(-2), (spin + np.cross(centers - center[..., None, :], impulse)).sum(-2)], -1
        )
        assert_within(model.momentum(state.q, state.qd), momentum, 2 * sizes.rounding * sizes.inertia * sizes.rate)
        assert_within(model.center_of_mass(state.q), center, 2 * sizes.rounding * sizes.length)
        kinetic, potential = model.energy(state.q, state.qd)
        twice = (impulse**2 / model.mass[:, None]).sum((-1, -2)) + (spin * angular).sum((-1, -2))
        rotors = (model.armature * state.qd**2).sum(-1)
        assert_within(kinetic, (twice + rotors) / 2, 2 * sizes.rounding * sizes.energy)
        assert_within(
            potential, -(model.mass @ (centers @ model.gravity)[..., None])[..., 0], 2 * sizes.rounding * sizes.energy
        )


@pytest.mark.slow_cases("1", "2", "3")
def test_body_velocities_and_accelerations_are_time_derivatives(trees):
    """They are derivatives of poses and velocities along the motion."""
    for model, state, sizes in trees:
        q, qd, qdd = state.q, state.qd, state.qdd
        velocities = model.body_velocities(q, qd)
        poses = lambda s: model.body_poses(along(model, state, s)[0])  # noqa: B023, E731 : used at once
        allowed = derivative_error(sizes.length, sizes)
        assert_within(velocities[..., :3], derivative(lambda s: poses(s).translation), allowed)  # noqa: B023
        turning = derivative(lambda s: poses(s).rotation) @ model.body_poses(q).rotation.mT  # noqa: B023
        spin = np.stack([turning[..., 2, 1], turning[..., 0, 2], turning[..., 1, 0]], -1)
        assert_within(velocities[..., 3:], spin, 2 * allowed)
        rate = derivative(lambda s: model.body_velocities(*along(model, state, s)))  # noqa: B023
        allowed = derivative_error(sizes.length * (sizes.rate + sizes.acceleration / sizes.rate), sizes)
        assert_within(model.body_accelerations(q, qd, qdd), rate, allowed)


def point_motion(velocity, acceleration, arm):
    """Return velocity and acceleration (..., 6) of the point of a body at the lever arm `arm` from its origin."""
    v, w, dv, dw = velocity[..., :3], velocity[..., 3:], acceleration[..., :3], acceleration[..., 3:]
    swing = np.cross(w, arm)
    return (
        np.concatenate([v + swing, w], -1),
        np.concatenate([dv + np.cross(dw, arm) + np.cross(w, swing), dw], -1),
    )


def test_jacobians_give_velocities_and_accelerations_of_points(trees):
    """J qd and dJ/dt qd + J qdd, in the world and relative to the coincident point of another body."""
    rng = np.random.default_rng(0)
    for model, state, sizes in trees:
        q, qd, qdd = state.q, state.qd, state.qdd
        poses, point = model.body_poses(q), rng.normal(size=3)
        moving = model.body_velocities(q, qd), model.body_accelerations(q, qd, qdd)
        one, other = rng.integers(model.n_bodies, size=2)
        arm = poses.rotation[:, one] @ point
        velocity, acceleration = point_motion(moving[0][:, one], moving[1][:, one], arm)
        allowed = 2 * sizes.rounding * (sizes.length + norm(point))

        def assert_jacobian_gives(velocity, acceleration, relative_to):
            of = {"point": point, "relative_to": relative_to}  # noqa: B023 : used at once
            J = model.jacobian(q, model.body_names[one], **of)  # noqa: B023
            rate = model.jacobian_derivative(q, qd, model.body_names[one], **of)  # noqa: B023
            assert_within(matrix_vector(J, qd), velocity, allowed * sizes.rate)  # noqa: B023
            found = matrix_vector(rate, qd) + matrix_vector(J, qdd)  # noqa: B023
            assert_within(found, acceleration, allowed * sizes.acceleration)  # noqa: B023

        assert_jacobian_gives(velocity, acceleration, None)
        place = poses.translation[:, one] + arm - poses.translation[:, other]
        carried, acceleration_of_carrier = point_motion(moving[0][:, other], moving[1][:, other], place)
        relative = velocity - carried
        # the rate of the carrier's velocity field at the moving point, not of the velocity of one point of the carrier
        acceleration_of_carrier[:, :3] += np.cross(moving[0][:, other, 3:], relative[:, :3])
        assert_jacobian_gives(relative, acceleration - acceleration_of_carrier, model.body_names[other])


def test_the_jacobian_derivative_is_the_rate_of_the_jacobian(trees):
    rng = np.random.default_rng(0)
    for model, state, sizes in trees:
        body, watcher = (model.body_names[i] for i in rng.integers(model.n_bodies, size=2))
        point = rng.normal(size=3)
        allowed = derivative_error(sizes.length + norm(point), sizes)
        for relative_to in (None, watcher):
            of = {"point": point, "relative_to": relative_to}
            jacobian = lambda s: model.jacobian(along(model, state, s)[0], body, **of)  # noqa: B023, E731
            found = model.jacobian_derivative(state.q, state.qd, body, **of)
            assert_within(found, derivative(jacobian), allowed)


def test_relative_jacobians_of_two_bodies_are_opposite(trees):
    rng = np.random.default_rng(0)
    for model, state, sizes in trees:
        q, qd, poses = state.q[0], state.qd[0], model.body_poses(state.q[0])
        i, j = rng.integers(model.n_bodies, size=2)
        one, other = model.body_names[i], model.body_names[j]
        place = poses.translation[i]
        there = poses.rotation[j].T @ (place - poses.translation[j])
        allowed = 2 * sizes.rounding * sizes.length[0]
        forth, back = model.jacobian(q, one, relative_to=other), model.jacobian(q, other, point=there, relative_to=one)
        assert np.abs(forth + back).max() <= allowed
        # the two points coincide only at this instant and separate with their relative velocity
        forth, back = (
            model.jacobian_derivative(q, qd, one, relative_to=other),
            model.jacobian_derivative(q, qd, other, point=there, relative_to=one),
        )
        J = model.jacobian(q, one, relative_to=other)
        parting = np.cross(J[3:].T, J[:3] @ qd).T
        assert np.abs(forth[:3] + back[:3] - parting).max() <= 4 * allowed * sizes.rate[0]
        assert np.abs(forth[3:] + back[3:]).max() <= 4 * allowed * sizes.rate[0]
        assert not model.jacobian(q, one, point=(1, 2, 3), relative_to=one).any()


def test_power_is_the_rate_of_the_energy(trees):
    for model, state, sizes in trees:
        tau = model.inverse_dynamics(state.q, state.qd, state.qdd, state.wrenches)
        rate = derivative(lambda s: sum(model.energy(*along(model, state, s))))  # noqa: B023 : used at once
        # the power of tau includes that of the wrenches
        allowed = derivative_error(sizes.energy + sizes.force, sizes)
        assert_within(model.power(state.q, state.qd, tau, state.wrenches), rate, allowed)


def test_hybrid_dynamics_agrees_with_forward_and_inverse_dynamics(trees):
    """With shared masks and masks per sample. Unused inputs are NaN. Full and empty masks are special cases."""
    for model, state, sizes in trees:
        q, qd, qdd, wrenches = state.q, state.qd, state.qdd, state.wrenches
        tau = model.inverse_dynamics(q, qd, qdd, wrenches)
        allowed = 2 * sizes.rounding * sizes.inverse * sizes.force
        nothing, everything = np.zeros(model.nv, bool), np.ones(model.nv, bool)
        for prescribed in (state.prescribed, state.prescribed[0], nothing, everything):
            forces, accelerations = np.where(prescribed, np.nan, tau), np.where(prescribed, qdd, np.nan)
            found = model.hybrid_dynamics(q, qd, forces, accelerations, prescribed, wrenches)
            assert_within(found[0], qdd, allowed)
            assert_within(found[1], tau, allowed * sizes.inertia)
            given = np.broadcast_to(prescribed, qdd.shape)
            assert np.array_equal(found[0][given], qdd[given])
            assert np.array_equal(found[1][~given], tau[~given])
        forward = model.forward_dynamics(q, qd, tau, wrenches)
        assert_within(model.hybrid_dynamics(q, qd, tau, qdd, nothing, wrenches)[0], forward, allowed)
        assert_within(
            model.hybrid_dynamics(q, qd, tau, qdd, everything, wrenches)[1], tau, 2 * sizes.rounding * sizes.force
        )


def in_world(poses, reactions):
    """Force and moment about each body's origin, from body axes to world axes."""
    return (matrix_vector(poses.rotation, reactions[..., part]) for part in (slice(3), slice(3, 6)))


def test_joint_reactions_satisfy_newton_and_euler_for_each_body(trees):
    """From the pose, velocity and acceleration of each body."""
    for model, state, sizes in trees:
        q, qd, qdd, wrenches = state.q, state.qd, state.qdd, state.wrenches
        poses = model.body_poses(q)
        w = model.body_velocities(q, qd)[..., 3:]
        acceleration = model.body_accelerations(q, qd, qdd)
        dv, dw = acceleration[..., :3], acceleration[..., 3:]
        _, arms = centers_and_arms(model, poses)
        tensor = poses.rotation @ model.inertia @ poses.rotation.mT
        inertial = model.mass[:, None] * (dv + np.cross(dw, arms) + np.cross(w, np.cross(w, arms)) - model.gravity)
        spin = matrix_vector(tensor, dw) + np.cross(w, matrix_vector(tensor, w)) + np.cross(arms, inertial)
        force, moment = in_world(poses, model.joint_reactions(q, qd, qdd, wrenches))
        force_left, moment_left = force + wrenches[..., :3] - inertial, moment + wrenches[..., 3:] - spin
        for i, p in enumerate(model.parent):
            if p >= 0:
                force_left[:, p] -= force[:, i]
                lever = poses.translation[:, i] - poses.translation[:, p]
                moment_left[:, p] -= moment[:, i] + np.cross(lever, force[:, i])
        assert_within(force_left, 0.0, 2 * sizes.rounding * sizes.force)
        assert_within(moment_left, 0.0, 2 * sizes.rounding * sizes.force)


def test_the_reactions_at_the_base_change_the_momentum(trees):
    """With gravity and wrenches; the rate of the momentum is computed by differences."""
    for model, state, sizes in trees:
        q, qd, qdd, wrenches = state.q, state.qd, state.qdd, state.wrenches
        poses, center = model.body_poses(q), model.center_of_mass(q)[..., None, :]
        force, moment = in_world(poses, model.joint_reactions(q, qd, qdd, wrenches))
        roots = model.parent < 0
        moment = moment + np.cross(poses.translation - center, force)
        load = wrenches[..., 3:] + np.cross(poses.translation - center, wrenches[..., :3])
        gain = np.concatenate([wrenches[..., :3].sum(-2), load.sum(-2)], -1)
        gain[..., :3] += force[:, roots].sum(-2) + model.mass.sum() * model.gravity
        gain[..., 3:] += moment[:, roots].sum(-2)
        rate = derivative(lambda s: model.momentum(*along(model, state, s)))  # noqa: B023 : used at once
        size = sizes.inertia * (sizes.rate + sizes.acceleration / sizes.rate)
        assert_within(gain, rate, derivative_error(size, sizes) + 2 * sizes.rounding * sizes.force)


def test_joint_forces_are_projections_of_the_joint_reactions(trees):
    """tau = J^T reaction + armature qdd, with the Jacobian J of the body relative to its parent."""
    for model, state, sizes in trees:
        q, qd, qdd, wrenches = state.q, state.qd, state.qdd, state.wrenches
        reactions = in_world(model.body_poses(q), model.joint_reactions(q, qd, qdd, wrenches))
        reactions = np.concatenate(list(reactions), -1)
        tau = model.armature * qdd
        for i, (name, p) in enumerate(zip(model.body_names, model.parent, strict=True)):
            J = model.jacobian(q, name, relative_to=model.body_names[p] if p >= 0 else None)
            tau += np.einsum("...ij,...i", J, reactions[:, i])
        assert_within(model.inverse_dynamics(q, qd, qdd, wrenches), tau, 2 * sizes.rounding * sizes.force)


def test_forces_balance_on_every_body_of_every_tree(trees):
    for model, state, _ in trees:
        residual = model.force_balance_residual(state.q, state.qd, state.tau, state.wrenches)
        state.qdd, given = model.forward_dynamics(state.q, state.qd, state.tau, state.wrenches), state.qdd
        assert_within(residual, 0.0, 2 * Magnitudes(model, state).rounding * Magnitudes(model, state).force)
        state.qdd = given


# --- against 40 digits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["double_pendulum", "prismatic_chain", "coordinate_tree"])
def test_the_coriolis_matrix_agrees_with_christoffel_symbols_in_extended_precision(name):
    model = mechanism(name)
    state = random_state(model, (2,))
    sizes = Magnitudes(model, state)
    found = model.coriolis_matrix(state.q, state.qd)
    symbols = np.einsum("...ijk,...k", model.christoffel_symbols(state.q), state.qd)
    for s in range(2):
        exact = newton_euler.coriolis_christoffel(model, state.q[s], state.qd[s]).astype(float)
        allowed = sizes.rounding * (sizes.inertia * sizes.rate)[s]
        assert allowed <= 1e-9 * np.abs(exact).max()
        assert np.abs(found[s] - exact).max() <= allowed
        assert np.abs(symbols[s] - exact).max() <= allowed


@pytest.mark.parametrize("name", ["ball_chain", "small_floating_tree"])
def test_the_coriolis_matrix_agrees_with_the_rate_of_the_mass_matrix_at_40_digits(name):
    """Hdot = C + C^T, also for free and spherical joints."""
    model = mechanism(name)
    state = random_state(model, (2,))
    sizes = Magnitudes(model, state)
    found = model.coriolis_matrix(state.q, state.qd)
    for s in range(2):
        exact = newton_euler.mass_matrix_rate(model, state.q[s], state.qd[s]).astype(float)
        allowed = 2 * sizes.rounding * (sizes.inertia * sizes.rate)[s]
        assert allowed <= 1e-9 * np.abs(exact).max()
        assert np.abs(found[s] + found[s].T - exact).max() <= allowed


# --- however computed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_no_bit_of_a_quantity_depends_on_its_batch(quantity, monkeypatch):
    """It does not depend on the batch, its shape or layout, the index in it, or the number of threads."""
    monkeypatch.setattr("rbchain.drivers.threads.DOFS_PER_THREAD", 1)
    model = mechanism("every_joint_tree")
    state = random_state(model, (100,))
    allowed = usual_rounding(model, quantity, state) if quantity in SUMMED else [0.0 * state.qd[:, 0]]
    before = rb.get_num_threads()
    rb.set_num_threads(1)
    whole = computed(model, quantity, state)
    for threads in (2, 3):
        rb.set_num_threads(threads)
        for x, same in zip(whole, computed(model, quantity, state), strict=True):
            assert np.array_equal(x, same)
    rb.set_num_threads(before)
    for part in (slice(3, 4), slice(40, 49), slice(None, None, -3)):
        for x, some in zip(whole, computed(model, quantity, chains_of(state, part)), strict=True):
            assert_within(some, x[part], allowed[0][part])
    folded = computed(model, quantity, map_state(lambda x: x.reshape(4, 25, *x.shape[1:]), state))
    strided = computed(model, quantity, map_state(lambda x: np.asfortranarray(np.repeat(x, 2, 0))[::2], state))
    for x, same, again in zip(whole, folded, strided, strict=True):
        assert_within(same.reshape(x.shape), x, allowed[0])
        assert_within(again, x, allowed[0])


# Results that depend on the position of the mechanism, by their index among the results of the quantity.
OF_PLACE = {
    "body_poses": 0,
    "frame_poses": 0,
    "energy": 1,
    "center_of_mass": 0,
    "potential_energy_regressor": 0,
    "integrate": 0,
}


@pytest.mark.parametrize("name", ["every_joint_tree", "floating_quadruped"])
@pytest.mark.parametrize("quantity", ARGUMENTS)
def test_quantities_are_accurate_ten_kilometers_from_the_origin(name, quantity):
    """Errors grow by less than two digits; lever arms from the world's origin would cost four."""
    model = mechanism(name)
    home = random_state(model, (5,))
    for q in (home.q, home.q1):  # few enough bits that adding the distance is exact and the mechanism is the same there
        q[:, :3] = np.round(q[:, :3] * 2**20) / 2**20
    far = map_state(np.copy, home)
    far.q[:, :3] += FAR
    far.q1[:, :3] += FAR
    sizes = Magnitudes(model, home)
    growth = sizes.inertia * sizes.inverse if quantity in SOLVED else np.ones(5)
    parts = zip(computed(model, quantity, home), computed(model, quantity, far), strict=True)
    for part, (x, y) in enumerate(parts):
        if OF_PLACE.get(quantity) != part:
            usual = 4 * np.finfo(float).eps * growth * np.abs(x).reshape(5, -1).max(-1)
            assert_within(y, x, 100 * usual)
