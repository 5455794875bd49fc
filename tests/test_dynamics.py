"""Forward and inverse dynamics, poses, energy and residual, judged by extended precision, Pinocchio and MuJoCo."""

import numpy as np
import pytest

import rbchain as rb
from rbchain.core.algorithms import aba

from .conftest import mechanism
from .mechanisms import ALL_KINDS, BREADTH_FIRST, MECHANISMS, random_tree
from .oracles import newton_euler, peers
from .quantities import EPS, ROUNDINGS, norm, random_states, random_wrenches

SMALL = [
    "one_link",
    "double_pendulum",
    "prismatic_chain",
    "screw_chain",
    "mixed_tree",
    "massless_middle",
    "puma560",
    "free_body",
    "coordinate_tree",
    "small_floating_tree",
    "every_joint_tree",
]
STATES = 25


def forward_condition(H, h, tau, qdd):
    """Amplification of relative errors of H, h and tau in qdd = H^-1 (tau - h) (Higham 2002, theorem 7.2)."""
    return np.linalg.norm(np.linalg.inv(H), 2) * (np.linalg.norm(H, 2) * norm(qdd) + norm(h) + norm(tau)) / norm(qdd)


def inverse_condition(H, h, qdd, tau):
    """Cancellation of the terms of tau = H qdd + h."""
    return (np.linalg.norm(H, 2) * norm(qdd) + norm(h)) / norm(tau)


@pytest.mark.slow_cases("every_joint_tree", "mixed_tree")
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("loaded", [False, True])
def test_forward_and_inverse_dynamics_agree_with_extended_precision(name, loaded):
    model = mechanism(name)
    q, qd, tau = random_states(model, (4,))
    wrenches = random_wrenches(model, (4,)) if loaded else None
    qdd = model.forward_dynamics(q, qd, tau, wrenches)
    torques = model.inverse_dynamics(q, qd, tau, wrenches)
    for s in range(4):
        wrench = wrenches[s] if loaded else None
        H = np.array(newton_euler.mass_matrix(model, q[s]), float)
        h = newton_euler.bias_forces(model, q[s], qd[s], wrench)
        exact = newton_euler.forward_dynamics(model, q[s], qd[s], tau[s], wrench)
        bound = model.nv * EPS * forward_condition(H, h, tau[s], exact)
        assert norm(qdd[s] - exact) <= bound * norm(exact)
        needed = newton_euler.inverse_dynamics(model, q[s], qd[s], tau[s], wrench)
        bound = model.nv * EPS * max(1.0, inverse_condition(H, h, tau[s], needed))
        assert norm(torques[s] - needed) <= bound * norm(needed)


def check_against_peer(model, peer):
    """Random states, each engine allowed the error of a backward-stable method: n eps condition."""
    q, qd, tau = random_states(model, (STATES,))
    wrenches = random_wrenches(model, (STATES,))
    qdd = model.forward_dynamics(q, qd, tau, wrenches)
    torques = model.inverse_dynamics(q, qd, tau, wrenches)
    # the joint reactions, whose components along the axes are the bias forces
    carried = model.joint_reactions(q, qd, np.zeros(model.nv), wrenches)
    for s in range(STATES):
        H, h = peer.mass_matrix(q[s]), carried[s]
        theirs = peer.forward_dynamics(q[s], qd[s], tau[s], wrenches[s])
        allowed = 2 * model.nv * EPS * forward_condition(H, h, tau[s], theirs)
        assert norm(qdd[s] - theirs) <= allowed * norm(theirs)
        theirs = peer.inverse_dynamics(q[s], qd[s], tau[s], wrenches[s])
        allowed = 2 * model.nv * EPS * max(1.0, inverse_condition(H, h, tau[s], theirs))
        assert norm(torques[s] - theirs) <= allowed * norm(theirs)


def test_dynamics_agree_with_pinocchio(model):
    check_against_peer(model, peers.to_pinocchio(model))


# MuJoCo has no screw joint. Only Pinocchio judges these mechanisms.
BEYOND_MUJOCO = ("screw_chain", "mixed_tree", "forest", "small_floating_tree", "every_joint_tree", "every_joint_forest")
IN_MUJOCO = tuple(name for name in MECHANISMS if name not in BEYOND_MUJOCO)


@pytest.mark.parametrize("name", BEYOND_MUJOCO)
def test_mujoco_refuses_a_mechanism_with_screw_joints(name):
    with pytest.raises(ValueError, match="screw"):
        peers.to_mujoco(mechanism(name))


@pytest.mark.parametrize("name", IN_MUJOCO)
def test_dynamics_agree_with_mujoco(name):
    check_against_peer(mechanism(name), peers.to_mujoco(mechanism(name)))


@pytest.mark.parametrize("name", IN_MUJOCO)
def test_mass_matrix_and_energy_agree_with_mujoco(name):
    model = mechanism(name)
    peer = peers.to_mujoco(model)
    q, qd = random_states(model, (20,), arrays=2)
    H, (kinetic, _) = model.mass_matrix(q), model.energy(q, qd)
    for s in range(20):
        expected = peer.mass_matrix(q[s])
        assert np.abs(H[s] - expected).max() <= 2 * model.nv * EPS * np.abs(expected).max()
        assert abs(kinetic[s] - peer.energy(q[s], qd[s])[0]) <= 2 * model.nv * EPS * norm(qd[s]) ** 2 * norm(expected)


def test_mechanisms_compared_with_mujoco_include_free_bases_balls_and_motors():
    """The tests above compare them in the models that MuJoCo supports."""
    taken = [mechanism(name) for name in IN_MUJOCO]
    kinds = {kind for model in taken for kind in model.joint_types}
    assert kinds >= {"revolute", "prismatic", "free", "spherical", "planar", "universal"}
    assert any(model.armature.any() and "free" in model.joint_types for model in taken)


def test_poses_and_energy_agree_with_pinocchio(model):
    peer = peers.to_pinocchio(model)
    q, qd, _ = random_states(model, (STATES,))
    poses = model.body_poses(q)
    kinetic, potential = model.energy(q, qd)
    reach = 1.0 + np.linalg.norm(model.placement_translation, axis=-1).sum() + np.abs(q).sum(-1).max()
    weight = model.mass.sum() * np.linalg.norm(model.gravity) * reach
    for s in range(STATES):
        translation, rotation = peer.body_poses(q[s])
        np.testing.assert_allclose(poses.translation[s], translation, rtol=0, atol=model.n_bodies * EPS * reach)
        np.testing.assert_allclose(poses.rotation[s], rotation, rtol=0, atol=model.n_bodies * EPS)
        T, V = peer.energy(q[s], qd[s])
        assert abs(kinetic[s] - T) <= 2 * model.n_bodies * EPS * T
        assert abs(potential[s] - V) <= 2 * model.n_bodies * EPS * weight


def test_kinetic_energy_agrees_with_the_mass_matrix(model):
    q, qd, _ = random_states(model, (5,))
    kinetic, _ = model.energy(q, qd)
    peer = peers.to_pinocchio(model)
    for s in range(5):
        expected = qd[s] @ peer.mass_matrix(q[s]) @ qd[s] / 2
        assert abs(kinetic[s] - expected) <= 2 * model.nv * EPS * norm(qd[s]) ** 2 * norm(peer.mass_matrix(q[s]))


def test_forward_dynamics_is_the_inverse_of_inverse_dynamics(model):
    """The error grows with the condition number of the problem."""
    q, qd, qdd = random_states(model, (20,))
    wrenches = random_wrenches(model, (20,))
    tau = model.inverse_dynamics(q, qd, qdd, wrenches)
    again = model.forward_dynamics(q, qd, tau, wrenches)
    peer = peers.to_pinocchio(model)
    for s in range(20):
        H = peer.mass_matrix(q[s])
        h = peer.inverse_dynamics(q[s], qd[s], np.zeros(model.nv), wrenches[s])
        bound = 2 * model.nv * EPS * forward_condition(H, h, tau[s], qdd[s])
        assert norm(again[s] - qdd[s]) <= bound * norm(qdd[s])


def test_forces_balance_on_every_body(model):
    """The residual is round-off: at most eps times the forces on a body times the number of joints."""
    q, qd, tau = random_states(model, (50,))
    wrenches = random_wrenches(model, (50,))
    residual = model.force_balance_residual(q, qd, tau, wrenches)
    qdd = model.forward_dynamics(q, qd, tau, wrenches)
    H = np.array([norm(peers.to_pinocchio(model).mass_matrix(x)) for x in q])
    forces = H * np.linalg.norm(qdd, axis=-1) + np.linalg.norm(wrenches, axis=(-1, -2)) + np.linalg.norm(tau, axis=-1)
    forces += model.mass.sum() * np.linalg.norm(model.gravity)
    assert residual.shape == (50, model.n_bodies, 6)
    assert (np.abs(residual).max((-1, -2)) <= 8 * model.n_bodies * EPS * forces).all()


# Intermediate results of the articulated-body algorithm, in Featherstone's symbols, and versions that are 0.1 % wrong.
ERRORS = {
    "D": ("reciprocal_of_inertia", lambda right: lambda *a: 1.001 * right(*a)),
    "u": ("joint_force", lambda right: lambda *a: 1.001 * right(*a)),
    "U": ("inertia_along", lambda right: lambda *a: aba.scale_force(1.001, right(*a))),
    "c": ("joint_bias", lambda right: lambda *a: right(a[0], a[1], a[2], a[3], 1.001 * a[4])),
}


@pytest.mark.plain_python
@pytest.mark.quick
@pytest.mark.parametrize("error", ["none", *ERRORS])
def test_the_force_balance_residual_detects_a_wrong_solution(error, monkeypatch):
    """An error of 0.1 % in any intermediate result of the articulated-body algorithm appears in the residual."""
    if error != "none":
        name, wrong = ERRORS[error]
        monkeypatch.setattr(aba, name, wrong(getattr(aba, name)))
    model = random_tree(8, BREADTH_FIRST, ALL_KINDS)
    q, qd, tau = np.random.default_rng(0).normal(size=(3, model.nv))
    assert (np.abs(model.force_balance_residual(q, qd, tau)).max() > 1e-4) == (error != "none")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arm7", "mixed_tree", "chain30"])
def test_float32_agrees_with_float64_to_its_own_precision(name):
    model = mechanism(name)
    q, qd, tau = (x.astype(np.float32) for x in random_states(model, (64,)))
    qdd = model.forward_dynamics(q, qd, tau)
    torques = model.inverse_dynamics(q, qd, tau)
    assert qdd.dtype == torques.dtype == np.float32
    eps = ROUNDINGS * np.finfo(np.float32).eps
    peer = peers.to_pinocchio(model)
    for s in range(64):
        q64, qd64, tau64 = (x[s].astype(float) for x in (q, qd, tau))
        H, h = peer.mass_matrix(q64), peer.inverse_dynamics(q64, qd64, np.zeros(model.nv))
        exact = peer.forward_dynamics(q64, qd64, tau64)
        assert norm(qdd[s] - exact) <= model.nv * eps * forward_condition(H, h, tau64, exact) * norm(exact)
        needed = peer.inverse_dynamics(q64, qd64, tau64)
        # the parameters are rounded to float32 too, which changes the forces in proportion
        bound = 2 * model.nv * eps * max(1.0, inverse_condition(H, h, tau64, needed))
        assert norm(torques[s] - needed) <= bound * norm(needed)


def test_a_single_state_agrees_with_the_batch_to_rounding(model):
    """A single state uses one lane and a batch several. The compiler may fuse the same operations differently."""
    q, qd, tau = random_states(model, (8,))
    batch = model.forward_dynamics(q, qd, tau)
    peer = peers.to_pinocchio(model)
    for s in range(8):
        H, h = peer.mass_matrix(q[s]), peer.inverse_dynamics(q[s], qd[s], np.zeros(model.nv))
        bound = 2 * model.nv * EPS * forward_condition(H, h, tau[s], batch[s])
        assert norm(model.forward_dynamics(q[s], qd[s], tau[s]) - batch[s]) <= bound * norm(batch[s])


@pytest.mark.slow
def test_a_thousand_links_satisfy_newton_and_euler():
    """The residual of the accelerations in the equations at 40 digits is of the order of round-off."""
    model = random_tree(11, range(-1, 999), ("revolute", "screw", "prismatic"))
    q, qd, tau = random_states(model, ())
    qdd = model.forward_dynamics(q, qd, tau)
    left = newton_euler.residual(model, q, qd, qdd, tau)
    # backward error: the magnitude of the terms of one equation, in which each body carries its subtree
    inertial = np.array(newton_euler.residual(model, q, np.zeros(1000), qdd, np.zeros(1000)), float)
    bias = np.array(newton_euler.residual(model, q, qd, np.zeros(1000), np.zeros(1000)), float)
    assert norm(left) <= 1000 * EPS * (norm(inertial) + norm(bias) + norm(tau))


def test_accelerations_are_bit_identical_far_from_the_origin():
    """An arm falls identically 10 km away, because all quantities refer to its own joints."""

    def arm(distance):
        builder = rb.ModelBuilder()
        for i in range(5):
            builder.add_body(
                f"b{i}",
                parent=f"b{i - 1}" if i else None,
                joint=rb.Revolute((0, 1, 0) if i % 2 else (0, 0, 1)),
                placement=rb.Pose((0.5 if i else distance, 0, 0)),
                inertia=rb.Inertia.rod(0.5, mass=1.0, cg=(0.25, 0, 0)),
            )
        return builder.build()

    q, qd, tau = random_states(arm(0.0), (16,))
    assert np.array_equal(arm(1e4).forward_dynamics(q, qd, tau), arm(0.0).forward_dynamics(q, qd, tau))


@pytest.mark.parametrize("at", [0, 1])
def test_a_massless_tip_gives_nan_in_its_own_sample_only(at):
    builder = rb.ModelBuilder()
    builder.add_body("link", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia.rod(1.0, mass=1.0, cg=(0.5, 0, 0)))
    builder.add_body("tip", parent="link", joint=rb.Revolute((0, 0, 1)), placement=rb.Pose((1, 0, 0)))
    with pytest.warns(UserWarning, match=r"resists the motion of \['tip'\]"):
        model = builder.build()
    with pytest.raises(rb.ModelError, match=r"resists the motion of \['tip'\]"):
        model.forward_dynamics([0.1, 0.2], [0.0, 0.0], [0.0, 0.0])
    mass = np.tile([1.0, 0.5], (3, 1))
    mass[at, 1] = 0.0
    chains = model.vary(mass=mass, cg=np.tile([0.5, 0.1, 0.0], (3, 2, 1)))
    qdd = chains.forward_dynamics(np.full((3, 2), 0.1), np.zeros((3, 2)), np.zeros((3, 2)))
    assert np.isnan(qdd[at]).all()
    assert np.isfinite(np.delete(qdd, at, 0)).all()
