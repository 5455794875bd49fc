"""Derivatives of the dynamics: compared with 40 digits and Pinocchio, and by identities."""

import numpy as np
import pytest

import rbchain as rb

from .conftest import mechanism
from .oracles import newton_euler, peers
from .quantities import EPS, Magnitudes, along, assert_within, derivative, derivative_error, matrix_vector, random_state

SMALL = ["double_pendulum", "coordinate_tree", "small_floating_tree"]


def sizes_of_derivatives(model, state, sizes):
    """Return the magnitudes of the terms of dtau/dq, dtau/dqd and dtau/dqdd."""
    return sizes.force, 2 * sizes.inertia * sizes.rate, sizes.inertia


def rounding_of_accelerations_derivatives(model, sizes, state):
    """How far dqdd/dq, dqdd/dqd and dqdd/dtau may be off, by H^-1 times the errors of what it is applied to.

    dqdd/dq = - H^-1 dtau/dq at the accelerations, which are off themselves, by H^-1 times the error of the forces.
    """
    found = model.forward_dynamics(state.q, state.qd, state.tau)
    state_then = type(state)(**(vars(state) | {"qdd": found}))
    then = Magnitudes(model, state_then)
    by_q, by_qd, by_qdd = sizes_of_derivatives(model, state_then, then)
    off = then.rounding * then.inverse
    condition = 1 + then.inverse * then.inertia
    return off * by_q * condition, off * by_qd * condition, off * by_qdd * then.inverse


@pytest.mark.parametrize("name", SMALL)
def test_derivatives_of_forces_agree_with_extended_precision(name):
    model = mechanism(name)
    state = random_state(model, (2,))
    state.wrenches[:] = 0.0
    sizes = Magnitudes(model, state)
    found = model.inverse_dynamics_derivatives(state.q, state.qd, state.qdd)
    allowed = sizes_of_derivatives(model, state, sizes)
    for s in range(2):
        exact = newton_euler.inverse_dynamics_derivatives(model, state.q[s], state.qd[s], state.qdd[s])
        alone = model.inverse_dynamics_derivatives(state.q[s], state.qd[s], state.qdd[s])
        for x, y, one, size in zip(found, exact, alone, allowed, strict=True):
            bound = sizes.rounding * size[s]
            assert bound <= 1e-9 * np.abs(y.astype(float)).max()
            assert np.abs(x[s] - y.astype(float)).max() <= bound
            assert np.abs(one - y.astype(float)).max() <= bound


@pytest.mark.slow_cases("coordinate_tree")
@pytest.mark.parametrize("name", SMALL)
def test_derivatives_of_accelerations_agree_with_extended_precision(name):
    model = mechanism(name)
    state = random_state(model, (1,))
    state.wrenches[:] = 0.0
    sizes = Magnitudes(model, state)
    found = model.forward_dynamics_derivatives(state.q, state.qd, state.tau)
    allowed = rounding_of_accelerations_derivatives(model, sizes, state)
    exact = newton_euler.forward_dynamics_derivatives(model, state.q[0], state.qd[0], state.tau[0])
    alone = model.forward_dynamics_derivatives(state.q[0], state.qd[0], state.tau[0])
    for x, y, one, bound in zip(found, exact, alone, allowed, strict=True):
        largest = np.abs(y.astype(float)).max()
        assert np.abs(x[0] - y.astype(float)).max() <= min(bound[0], 1e-9 * largest)
        assert np.abs(one - y.astype(float)).max() <= min(bound[0], 1e-9 * largest)


def test_derivatives_of_accelerations_agree_with_pinocchio(model):
    """Both engines' errors grow with the condition number. `test_quantities` compares the derivatives of forces."""
    state, peer = random_state(model, (50,)), peers.to_pinocchio(model)
    found = model.forward_dynamics_derivatives(state.q, state.qd, state.tau)
    for s in range(50):
        q, qd, tau = state.q[s], state.qd[s], state.tau[s]
        expected = peer.forward_dynamics_derivatives(q, qd, tau)
        qdd = peer.forward_dynamics(q, qd, tau)
        by_q, by_qd, H = (np.linalg.norm(x, 2) for x in peer.inverse_dynamics_derivatives(q, qd, qdd))
        inverse = np.linalg.norm(np.linalg.inv(peer.mass_matrix(q)), 2)
        force = H * np.linalg.norm(qdd) + np.linalg.norm(peer.bias_forces(q, qd)) + np.linalg.norm(tau)
        by_qd += H * np.linalg.norm(qd)  # the sum of its terms, which may cancel
        # round-off of the argument of H^-1, of H^-1 by its condition number, and of qdd in dtau/dq
        off = 2 * model.nv * EPS * inverse
        condition = inverse * H
        bounds = (off * (by_q * condition + H * inverse * force), off * by_qd * condition, off * condition)
        alone = model.forward_dynamics_derivatives(q, qd, tau) if s < 3 else [x[s] for x in found]
        for many, one, theirs, bound in zip(found, alone, expected, bounds, strict=True):
            assert np.abs(many[s] - theirs).max() <= bound
            assert np.abs(one - theirs).max() <= bound


def test_the_derivative_with_respect_to_acceleration_is_the_mass_matrix(trees):
    for model, state, sizes in trees:
        *_, by_qdd = model.inverse_dynamics_derivatives(state.q, state.qd, state.qdd)
        assert_within(by_qdd, model.mass_matrix(state.q), sizes.rounding * sizes.inertia)
        *_, by_tau = model.forward_dynamics_derivatives(state.q, state.qd, state.tau)
        allowed = sizes.rounding * sizes.inertia * sizes.inverse**2
        assert_within(by_tau, model.mass_matrix_inverse(state.q), allowed)


def test_the_derivative_with_respect_to_position_is_the_slope_along_integrate(trees):
    """By differences in a random direction at each state."""
    rng = np.random.default_rng(0)
    for model, state, sizes in trees:
        q, qd, qdd = state.q, state.qd, state.qdd
        v = rng.normal(size=qd.shape)
        slope = derivative(lambda s: model.inverse_dynamics(model.integrate(q, s * v), qd, qdd))  # noqa: B023
        by_q, *_ = model.inverse_dynamics_derivatives(q, qd, qdd)
        moved = Magnitudes(model, type(state)(**(vars(state) | {"qd": v})))
        allowed = derivative_error(sizes.force, moved)
        assert_within(matrix_vector(by_q, v), slope, allowed)


def test_the_derivative_with_respect_to_velocity_is_the_slope(trees):
    """Forces are quadratic in the velocities, so differences are exact; C qd is half of the derivative times qd."""
    rng = np.random.default_rng(0)
    for model, state, sizes in trees:
        q, qd, qdd = state.q, state.qd, state.qdd
        v = rng.normal(size=qd.shape)
        _, by_qd, _ = model.inverse_dynamics_derivatives(q, qd, qdd)
        slope = (model.inverse_dynamics(q, qd + v, qdd) - model.inverse_dynamics(q, qd - v, qdd)) / 2
        bigger = Magnitudes(model, type(state)(**(vars(state) | {"qd": np.abs(qd) + np.abs(v)})))
        assert_within(matrix_vector(by_qd, v), slope, 2 * bigger.rounding * bigger.force)
        coriolis = model.bias_forces(q, qd) - model.gravity_forces(q)
        assert_within(matrix_vector(by_qd, qd), 2 * coriolis, 2 * sizes.rounding * sizes.force)


def test_derivatives_of_accelerations_follow_from_those_of_forces(trees):
    """At the accelerations of the given forces, dqdd/dq = - H^-1 dtau/dq and dqdd/dqd = - H^-1 dtau/dqd."""
    for model, state, _ in trees:
        q, qd, tau = state.q, state.qd, state.tau
        by_q, by_qd, inverse = model.forward_dynamics_derivatives(q, qd, tau)
        then = type(state)(**(vars(state) | {"qdd": model.forward_dynamics(q, qd, tau)}))
        sizes = Magnitudes(model, then)
        of_force = model.inverse_dynamics_derivatives(q, qd, then.qdd)
        allowed = sizes.rounding * sizes.inverse * (1 + sizes.inverse * sizes.inertia)
        assert_within(by_q, -inverse @ of_force[0], allowed * sizes.force)
        assert_within(by_qd, -inverse @ of_force[1], 2 * allowed * sizes.inertia * sizes.rate)


def test_the_rate_of_the_mass_matrix_is_the_coriolis_matrix_plus_its_transpose(trees):
    """To round-off: each column of dH/dt follows from the forces for a unit acceleration at rest, without gravity."""
    for model, state, sizes in trees:
        q, qd, n = state.q, state.qd, model.nv
        C = model.coriolis_matrix(q, qd)
        positions = np.repeat(q[:, None], n, 1)
        units = np.broadcast_to(np.eye(n), (len(q), n, n))
        by_q, *_ = model.vary(gravity=np.zeros(3)).inverse_dynamics_derivatives(positions, 0 * units, units)
        rate = np.einsum("...jik,...k->...ij", by_q, qd)
        assert_within(C + C.mT, rate, 2 * sizes.rounding * sizes.inertia * sizes.rate)
        if model.nq == model.nv:
            symbols = model.christoffel_symbols(q)
            gradient = np.einsum("...jik->...ijk", by_q)  # dH_ij / dq_k
            expected = (gradient + gradient.mT - np.einsum("...kji->...ijk", gradient)) / 2
            assert_within(symbols, expected, 2 * sizes.rounding * sizes.inertia)


def test_the_derivative_of_gravity_forces_is_symmetric(trees):
    """It is the Hessian of the potential energy if velocities are rates of the coordinates."""
    for model, state, sizes in trees:
        rest = np.zeros_like(state.qd)
        by_q, by_qd, _ = model.inverse_dynamics_derivatives(state.q, rest, rest)
        assert_within(by_qd, 0.0, np.zeros(len(rest)))
        if model.nq == model.nv:
            assert_within(by_q, by_q.mT, 2 * sizes.rounding * sizes.weight)
        slope = derivative(lambda s: model.energy(along(model, state, s)[0], rest)[1])  # noqa: B023 : used at once
        power = (model.gravity_forces(state.q) * state.qd).sum(-1)
        assert_within(power, slope, derivative_error(sizes.weight * (1 + np.abs(state.q).sum(-1)), sizes))


def test_no_force_depends_on_position_or_linear_velocity_of_a_floating_base():
    """Derivatives with respect to the position and, without gravity, the orientation of a free root are zero."""
    model = mechanism("floating_quadruped")
    state = random_state(model, (10,))
    by_q, *_ = model.inverse_dynamics_derivatives(state.q, state.qd, state.qdd)
    scale = np.abs(by_q).max()
    assert np.abs(by_q[..., :3]).max() <= model.nv * EPS * scale
    weightless = model.vary(gravity=np.zeros(3))
    by_q, *_ = weightless.inverse_dynamics_derivatives(state.q, state.qd, state.qdd)
    assert np.abs(by_q[..., :6]).max() <= model.nv * EPS * scale


@pytest.mark.plain_python
def test_derivatives_are_nan_only_for_singular_samples():
    builder = rb.ModelBuilder()
    builder.add_body("link", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia.rod(1.0, mass=1.0, cg=(0.5, 0, 0)))
    builder.add_body("tip", parent="link", joint=rb.Revolute((0, 0, 1)), placement=rb.Pose((1, 0, 0)))
    with pytest.warns(UserWarning, match=r"resists the motion of \['tip'\]"):
        model = builder.build()
    mass = np.array([[1.0, 0.5], [1.0, 0.0], [1.0, 0.5]])
    chains = model.vary(mass=mass, cg=np.tile([0.5, 0.1, 0.0], (3, 2, 1)))
    state = (np.full((3, 2), 0.1), np.zeros((3, 2)), np.zeros((3, 2)))
    for found in chains.forward_dynamics_derivatives(*state):
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[[0, 2]]).all()
    inverse = chains.mass_matrix_inverse(state[0])
    assert np.isnan(inverse[1]).all()
    assert np.isfinite(inverse[[0, 2]]).all()
    assert all(np.isfinite(x).all() for x in chains.inverse_dynamics_derivatives(*state))
