"""Wrenches over time: closed forms, inverse dynamics, and the work of all forces."""

import numpy as np
import pytest

import rbchain as rb

from .models import BOTH, MASS, RK4, TIGHT, floater, push, start, wave


@pytest.mark.parametrize("settings", BOTH)
def test_a_spinning_disk_under_a_body_fixed_thrust_moves_in_a_circle(settings):
    """m v = F / w (sin wt, 1 - cos wt). With a thrust at the rim, a drive keeps the spin constant."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("disk", joint=rb.Free(), inertia=rb.Inertia(MASS, cg=(0, 0, 0), inertia=(0.1, 0.1, 0.2)))
    model, w = builder.build(), np.array([[1.0], [3.0], [-2.0]])
    q, qd = np.tile([0, 0, 0, 0, 0, 0, 1.0], (3, 1)), np.zeros((3, 6))
    qd[:, 5] = w[:, 0]
    thrust = rb.Wrench("disk", force=(4.0, 0.0, 0.0), axes="body")
    motion = model.simulate(q, qd, 1.5, forces=[thrust], save_at=7, **settings)
    x = 4 / MASS / w**2 * np.stack([1 - np.cos(w * motion.t), w * motion.t - np.sin(w * motion.t)])
    np.testing.assert_allclose(motion.q[..., :2], np.moveaxis(x, 0, -1), rtol=0, atol=1e-9)
    aside = rb.Wrench("disk", force=(4.0, 0.0, 0.0), point=(0.0, -0.3, 0.0), axes="body")
    spun = model.simulate(q, qd, 1.5, forces=[aside], save_at=7, **settings)
    np.testing.assert_allclose(spun.qd[..., 5], w + 0.3 * 4.0 / 0.2 * spun.t, rtol=0, atol=1e-9)
    spin = rb.PrescribedVelocity("disk", w[:, 0], dof=5)
    held = model.simulate(q, qd, 1.5, forces=[aside], drives=[spin], save_at=2, **settings)
    np.testing.assert_allclose(held.q[:, 1], motion.q[:, -1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(held.tau[..., 5], -1.2, rtol=0, atol=1e-12)


def all_wrenches():
    """Wrenches on bodies and frames, in world and body axes, shared and per sample, and their values.

    Of each: body or frame, axes, force (3, times, 3), moment, and point in that frame.
    """
    rng = np.random.default_rng(6)
    points, forces, moments = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
    pull = (wave(0), 1.5, rb.Signal.polynomial([0.3, -2.0]))
    wrenches = [
        rb.Wrench("hull", force=pull, moment=tuple(moments), point=points),
        rb.Wrench("fin", force=forces, moment=(0.0, wave(1), 0.0), point=(0.1, 0.2, 0.3), axes="body"),
        rb.Wrench("hand", force=(1.0, 2.0, 3.0), moment=(0.3, 0.2, 0.1), point=(0.0, 0.1, 0.2)),
        rb.Wrench("tip", force=(-1.0, 0.5, 2.0), point=(0.3, 0.0, 0.1), axes="body"),
    ]

    def numbers(t):
        each = np.ones((3, t.size, 1))
        pulled = np.stack([wave(0)(t), 1.5 * each[..., 0], (0.3 - 2.0 * t) * each[..., 0]], -1)
        turned = np.stack([0 * each[..., 0], wave(1)(t), 0 * each[..., 0]], -1)
        return [
            ("hull", "world", pulled, moments * each, points[:, None]),
            ("fin", "body", forces[:, None] * each, turned, [0.1, 0.2, 0.3]),
            ("hand", "world", [1.0, 2.0, 3.0] * each, [0.3, 0.2, 0.1] * each, [0.0, 0.1, 0.2]),
            ("tip", "body", [-1.0, 0.5, 2.0] * each, 0 * each, [0.3, 0.0, 0.1]),
        ]

    return wrenches, numbers


def wrenches_on_bodies(model, motion, numbers):
    """(3, times, bodies, 6): about the bodies' origins, in world axes."""
    bodies, total = model.body_poses(motion.q), np.zeros((*motion.q.shape[:-1], model.n_bodies, 6))
    for name, axes, *given, point in numbers(motion.t):
        body = model.fixed_frames[name] if name in model.fixed_frames else model.body_names.index(name)
        frame = model.frame_poses(motion.q, name)
        force, moment = (np.einsum("...ij,...j", frame.rotation, x) if axes == "body" else x for x in given)
        lever = frame.translation - bodies.translation[..., body, :] + np.einsum("...ij,...j", frame.rotation, point)
        total[..., body, :3] += force
        total[..., body, 3:] += moment + np.cross(lever, force)
    return total


@pytest.mark.parametrize("settings", [{}, RK4])
def test_wrenches_over_time_agree_with_inverse_dynamics(settings):
    model, (wrenches, numbers) = floater(), all_wrenches()
    motion = model.simulate(*start(model, 3), 0.5, forces=wrenches, save_at=6, **settings)
    total = wrenches_on_bodies(model, motion, numbers)
    passive = model.passive_forces(motion.q, motion.qd)
    # the joint forces equivalent to the wrenches have their power at unit velocities
    shares = [(model.body_velocities(motion.q, unit) * total).sum((-2, -1)) for unit in np.eye(model.nv)]
    needed = model.inverse_dynamics(motion.q, motion.qd, motion.qdd) - np.stack(shares, -1)
    assert not motion.tau.any()
    np.testing.assert_allclose(passive, needed, rtol=0, atol=1e-11 * np.abs(total).max())
    # the velocities are integrals of the accelerations, by central differences
    near = model.simulate(*start(model, 3), 0.5, forces=wrenches, save_at=[0.2 - 1e-4, 0.2, 0.2 + 1e-4], **TIGHT)
    slope = (near.qd[:, 2] - near.qd[:, 0]) / 2e-4
    np.testing.assert_allclose(slope, near.qdd[:, 1], rtol=0, atol=1e-5 * np.abs(slope).max())


def test_the_energy_changes_by_the_work_of_drives_friction_springs_and_wrenches():
    """The work is integrated by Gauss-Legendre quadrature over saved times."""
    model, (wrenches, numbers) = floater(stops=False), all_wrenches()
    model = model.vary(friction_velocity=np.full(9, 2.0), stribeck_velocity=np.full(9, 2.0))  # smooth enough
    drives = [
        rb.PID("arm", wave(0), kp=5.0, kd=0.5, ki=1.0),
        rb.PrescribedVelocity("fin", wave(1), dof=0),
        rb.PrescribedForce("fin", wave(1), dof=1, gravity_compensation=True),
        rb.UserForces(push, parameters=np.array([[1.0, 2.0], [0.5, 3.0], [2.0, 1.0]])),
    ]
    nodes, weights = np.polynomial.legendre.leggauss(10)
    edges = np.linspace(0, 0.6, 13)
    half = np.diff(edges)[:, None] / 2
    times = (edges[:-1, None] + half * (1 + nodes)).ravel()
    q0, qd0 = start(model, 3)
    motion = model.simulate(q0, qd0, 0.6, drives=drives, forces=wrenches, save_at=[0.0, *times, 0.6], **TIGHT)
    energy = sum(model.energy(motion.q, motion.qd))
    total = motion.tau + model.passive_forces(motion.q, motion.qd)
    power = model.power(motion.q, motion.qd, total, wrenches_on_bodies(model, motion, numbers))
    work = power[:, 1:-1] @ (half * weights).ravel()
    change = energy[:, -1] - energy[:, 0]
    assert (np.abs(change) > 0.1).all()
    np.testing.assert_allclose(work, change, rtol=0, atol=1e-8 * np.abs(energy).max())
