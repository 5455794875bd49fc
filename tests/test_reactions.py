"""Reactions of a motion, checked with Newton's law for the whole mechanism."""

import numpy as np
import pytest

import rbchain as rb


def test_the_reaction_at_the_base_satisfies_newtons_law():
    """In each sample, the mass times the acceleration of the cgs is the sum of gravity, wrenches and base reaction."""
    chain = rb.Model.serial_chain(3).vary(damping=[0.1, 0.0, 0.2])
    batch = 4
    rng = np.random.default_rng(0)
    strengths = rng.normal(size=batch)
    push = rb.Wrench(
        "link2", force=(rb.Signal.sines(0.3, 5.0), strengths, 0.1), point=rng.normal(size=(batch, 3)), axes="body"
    )
    pull = rb.Wrench("link3", force=(0.2, 0, 0.3), moment=(0.1, 0.2, rb.Signal.polynomial([0.0, 1.0])))
    start = rng.normal(size=(2, batch, 3))
    drive = rb.PID("link1", reference=0.5, kp=0.3)
    motion = chain.simulate(*start, 0.5, drives=[drive], forces=[push, pull], save_at=6)

    q, qd, qdd, m = motion.q, motion.qd, motion.qdd, chain.mass[:, None]
    poses, velocities = chain.body_poses(q), chain.body_velocities(q, qd)
    accelerations = chain.body_accelerations(q, qd, qdd)
    arm = np.einsum("...nij,nj->...ni", poses.rotation, chain.cg)
    spin, turning = velocities[..., 3:], accelerations[..., 3:]
    a = accelerations[..., :3] + np.cross(turning, arm) + np.cross(spin, np.cross(spin, arm))
    pushed = np.zeros((batch, 6, 3))
    pushed[..., 0], pushed[..., 1], pushed[..., 2] = 0.3 * np.sin(5.0 * motion.t), strengths[:, None], 0.1
    pushed = np.einsum("...ij,...j->...i", poses.rotation[..., 1, :, :], pushed)
    expected = (m * (a - chain.gravity)).sum(-2) - pushed - [0.2, 0.0, 0.3]
    root = np.einsum("...ij,...j->...i", poses.rotation[..., 0, :, :], motion.reactions[..., 0, :3])
    np.testing.assert_allclose(root, expected, atol=1e-12 * np.abs(expected).max())

    one = motion[2]
    np.testing.assert_allclose(one.reactions, motion.reactions[2], rtol=0, atol=1e-12 * np.abs(motion.reactions).max())


def test_the_reaction_along_a_joint_axis_is_the_sum_of_drive_and_passive_force():
    chain = rb.Model.serial_chain(3).vary(damping=[0.1, 0.0, 0.2])
    motion = chain.simulate(*np.ones((2, 1, 3)), 0.2, tau=[0.1, 0.2, 0.3], save_at=3)
    passive = chain.passive_forces(motion.q, motion.qd)
    scale = np.abs(motion.reactions).max()
    np.testing.assert_allclose(motion.reactions[..., 5], motion.tau + passive, atol=1e-12 * scale)


def test_reactions_in_water_with_drag_are_refused():
    builder = rb.ModelBuilder(fluid_density=1000.0)
    water = rb.Immersion(volume=1e-3, linear_damping=(1, 1, 1, 1, 1, 1))
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, cg=(1, 0, 0)), immersion=water)
    states = np.zeros((1, 1)), np.zeros((1, 1))
    motion = rb.Trajectory(np.zeros(1), *states, *np.zeros((4, 1), int), model=builder.build())
    with pytest.raises(rb.ArgumentError, match="reactions are not available in water with drag or a current"):
        _ = motion.reactions
