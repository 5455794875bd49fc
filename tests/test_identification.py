"""Regressors: linear in the inertial parameters, and base parameters of minimal number."""

import numpy as np
import pytest

import rbchain as rb

from .conftest import mechanism
from .mechanisms import random_inertia, random_tree
from .quantities import EPS, Magnitudes, assert_within, computed, matrix_vector, random_state, random_states


def parameters_of(model):
    """m, m c, and the tensor about the body's origin, from the parallel axis theorem."""
    rows = []
    for m, c, inertia in zip(model.mass, model.cg, model.inertia, strict=True):
        J = inertia + m * (c @ c * np.eye(3) - np.outer(c, c))
        rows.append([m, *(m * c), J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2]])
    return np.array(rows).reshape(-1)


@pytest.mark.parametrize("name", ["arm7", "every_joint_tree", "floating_quadruped"])
def test_inertial_parameters_are_about_the_bodys_origin(name):
    model = mechanism(name)
    expected = parameters_of(model)
    np.testing.assert_allclose(model.inertial_parameters, expected, rtol=0, atol=EPS * np.abs(expected).max())


def test_inertial_parameters_of_a_varied_model_have_the_shape_of_the_batch():
    model = mechanism("every_joint_tree")
    mass = model.mass * np.random.default_rng(0).uniform(0.5, 2, (2, 3, model.n_bodies))
    found = model.vary(mass=mass).inertial_parameters
    assert found.shape == (2, 3, 10 * model.n_bodies)
    for index in np.ndindex(2, 3):
        expected = model.vary(mass=mass[index]).inertial_parameters
        np.testing.assert_allclose(found[index], expected, rtol=0, atol=EPS * np.abs(expected).max())


def test_regressors_times_parameters_give_forces_and_energies(trees):
    """Forces and energies of the rotors are subtracted."""
    for model, state, sizes in trees:
        q, qd, qdd, theta = state.q, state.qd, state.qdd, parameters_of(model)
        forces = model.inverse_dynamics_regressor(q, qd, qdd) @ theta + model.armature * qdd
        assert_within(model.inverse_dynamics(q, qd, qdd), forces, 2 * sizes.rounding * sizes.force)
        kinetic, potential = model.energy(q, qd)
        rotors = (model.armature * qd**2).sum(-1) / 2
        allowed = 2 * sizes.rounding * sizes.energy
        assert_within(kinetic, model.kinetic_energy_regressor(q, qd) @ theta + rotors, allowed)
        assert_within(potential, model.potential_energy_regressor(q) @ theta, allowed)


def test_regressors_do_not_depend_on_the_parameters(trees):
    """Regressors depend on the motion only, so that a mechanism with other inertias has the same."""
    rng = np.random.default_rng(0)
    for model, state, _ in trees[::5]:
        bodies = [random_inertia(rng) for _ in range(model.n_bodies)]
        other = model.vary(
            mass=np.array([b.mass for b in bodies]),
            cg=np.array([b.cg for b in bodies]),
            inertia=np.array([b.inertia for b in bodies]),
        )
        for name in ("inverse_dynamics_regressor", "kinetic_energy_regressor", "potential_energy_regressor"):
            assert np.array_equal(*(computed(one, name, state)[0] for one in (model, other)))


def test_the_rate_of_the_energy_regressors_is_the_power_of_the_force_regressor():
    """d(T + V)/dt = qd . Y, parameter by parameter, along the motion."""
    model = mechanism("every_joint_tree")
    state = random_state(model, (10,))
    q, qd, qdd = state.q, state.qd, state.qdd
    step = 2.0**-14
    before, after = (
        model.kinetic_energy_regressor(model.integrate(q, s * qd), qd + s * qdd)
        + model.potential_energy_regressor(model.integrate(q, s * qd))
        for s in (-step, step)
    )
    power = np.einsum("...i,...ij", qd, model.inverse_dynamics_regressor(q, qd, qdd))
    rate = (after - before) / (2 * step)
    # for frequencies of about 10 rad/s: a relative error of (10 step)^2, and round-off of the energies over the step
    np.testing.assert_allclose(rate, power, rtol=0, atol=1e-5 * np.abs(power).max())


# --- base parameters --------------------------------------------------------------------------------------------------

TREES = {
    "one_link": lambda: mechanism("one_link"),
    "double_pendulum": lambda: mechanism("double_pendulum"),
    "arm7": lambda: mechanism("arm7"),
    "prismatic_chain": lambda: mechanism("prismatic_chain"),
    "planar_chain": lambda: mechanism("planar_chain"),
    "free_body": lambda: mechanism("free_body"),
    "small_floating_tree": lambda: mechanism("small_floating_tree"),
    "geared": lambda: random_tree(31, [-1, 0, 0], ("revolute", "universal", "planar"), geared=("universal",)),
}


@pytest.mark.parametrize("name", TREES)
def test_base_parameters_explain_all_forces(name):
    """Y theta = Y[:, columns] (projection theta) for other inertias and states."""
    model = TREES[name]()
    base = model.base_parameters(rng=3)
    q, qd, qdd = random_states(model, (50,), seed=9)
    Y = model.inverse_dynamics_regressor(q, qd, qdd)
    rng = np.random.default_rng(0)
    for theta in (model.inertial_parameters, *rng.normal(size=(3, 10 * model.n_bodies))):
        tau = Y @ theta
        found = Y[..., base.columns] @ (base.projection @ theta)
        np.testing.assert_allclose(found, tau, rtol=0, atol=1e-8 * np.abs(Y).max() * np.abs(theta).max())
    assert base.projection.shape == (len(base.columns), 10 * model.n_bodies)
    assert len(base.names) == len(base.columns)
    np.testing.assert_allclose(base.projection[:, base.columns], np.eye(len(base.columns)), atol=1e-8)


@pytest.mark.parametrize("name", TREES)
def test_the_number_of_base_parameters_is_the_rank_of_the_regressor(name):
    model = TREES[name]()
    base = model.base_parameters()
    W = model.inverse_dynamics_regressor(*random_states(model, (20 * model.n_bodies,), seed=5)).reshape(
        -1, 10 * model.n_bodies
    )
    assert len(base.columns) == np.linalg.matrix_rank(W, tol=1e-7 * np.linalg.norm(W, 2))
    chosen = W[:, base.columns]
    assert np.linalg.cond(chosen / np.linalg.norm(chosen, axis=0)) < 1e6


def test_all_parameters_of_a_free_body_are_identifiable():
    base = mechanism("free_body").base_parameters()
    names = ("m", "mcx", "mcy", "mcz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz")
    assert base.names == tuple(f"body0.{name}" for name in names)
    np.testing.assert_allclose(base.projection, np.eye(10), rtol=0, atol=1e-8)


def test_a_hinge_identifies_two_first_moments_and_one_moment_of_inertia():
    builder = rb.ModelBuilder(gravity=(0, -10, 0))
    builder.add_body("rod", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia.rod(1.0, mass=2.0))
    assert builder.build().base_parameters().names == ("rod.mcx", "rod.mcy", "rod.Jzz")


def test_base_parameters_can_be_identified_from_a_motion():
    """Least squares on forces of the true inertias give the true combinations."""
    model = mechanism("double_pendulum")
    base = model.base_parameters()
    state = random_state(model, (200,))
    tau = model.inverse_dynamics(state.q, state.qd, state.qdd)
    W = model.inverse_dynamics_regressor(state.q, state.qd, state.qdd)[..., base.columns]
    found = np.linalg.lstsq(W.reshape(-1, len(base.columns)), tau.reshape(-1), rcond=None)[0]
    expected = base.projection @ model.inertial_parameters
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    sizes = Magnitudes(model, state)
    assert_within(matrix_vector(W, expected), tau, 1e3 * sizes.rounding * sizes.force)


def test_base_parameters_of_a_varied_model_are_refused():
    model = mechanism("arm7")
    with pytest.raises(rb.ModelError, match=r"batch_shape \(3,\)"):
        model.vary(mass=np.ones((3, 7))).base_parameters()
