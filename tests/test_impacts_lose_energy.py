"""Impacts of random mechanisms never add energy, and keep Newton's coefficient of restitution if they lose energy."""

import numpy as np
import pytest

import rbchain as rb

STEP = 1e-10  # s; of moreau: finite forces hardly change a velocity in it


def random_mechanism(rng):
    """A tree of up to 7 bodies without gravity, with stops and dry friction in some of its joints."""
    builder, joints, count = rb.ModelBuilder(gravity=(0, 0, 0)), [], int(rng.integers(1, 8))
    for i in range(count):
        a, b, c = rng.uniform(0.5, 1.5, 3)
        size = 10 ** rng.uniform(-2, 1)
        inertia = rb.Inertia(size, cg=rng.uniform(-0.3, 0.3, 3), inertia=size * 0.02 * np.array([a + b, b + c, a + c]))
        kind = rng.choice(["free", "revolute", "prismatic"] if i == 0 else ["revolute", "revolute", "prismatic"])
        axis = (0, 0, 1) if rng.uniform() < 0.3 else rng.normal(size=3)
        joint = {"free": rb.Free(), "revolute": rb.Revolute(axis), "prismatic": rb.Prismatic(axis)}[kind]
        parent = None if i == 0 else f"body{rng.integers(i) if rng.uniform() < 0.4 else i - 1}"
        limits = rb.JointLimits(lower=0.25) if kind != "free" else None
        place = rb.Pose(rng.uniform(-0.5, 0.5, 3) if i else (0, 0, 0))
        builder.add_body(f"body{i}", parent=parent, joint=joint, placement=place, inertia=inertia, limits=limits)
        joints.append(kind)
    return builder.build(), joints


def random_impacts(rng, samples):
    """A mechanism, and states in which one to three spheres and some joint stops close at the same time."""
    model, joints = random_mechanism(rng)
    q, qd = np.tile(model.neutral(), (samples, 1)), rng.normal(size=(samples, model.nv)) * 10 ** rng.uniform(-1, 1)
    forces, first = [], model.nq - sum(kind != "free" for kind in joints)
    q[:, first:] = rng.uniform(0.3, 2.0, (samples, model.nq - first))
    if joints[0] == "free":
        quaternion = rng.normal(size=(samples, 4))
        q[:, 3:7] = quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)
    for i, kind in enumerate(joints):
        at, dof = i + model.nq - len(joints), i + model.nv - len(joints)
        if kind != "free" and rng.uniform() < 0.2:
            q[:, at] = 0.25
            qd[:, dof] = -abs(qd[:, dof])
            forces.append(rb.HardStops(f"body{i}", restitution=rng.uniform(0.01, 1, samples)))
        if kind != "free" and rng.uniform() < 0.2:
            forces.append(rb.DryFriction(f"body{i}", kinetic=rng.uniform(0, 5)))
    for _ in range(rng.integers(1, 4)):
        body, point = int(rng.integers(len(joints))), rng.uniform(-0.5, 0.5, 3)
        pose, velocity = model.frame_poses(q, f"body{body}"), model.body_velocities(q, qd)[:, body]
        lever = pose.rotation @ point
        speed = velocity[:, :3] + np.cross(velocity[:, 3:], lever)
        normal = rng.normal(size=(samples, 3))
        normal *= -np.sign((normal * speed).sum(1, keepdims=True)) / np.linalg.norm(normal, axis=1, keepdims=True)
        plane = pose.translation + lever
        friction, restitution = rng.uniform(0, 1.5, samples), rng.uniform(0.01, 1, samples)
        forces.append(
            rb.SphereContact(
                f"body{body}",
                point=point,
                radius=0.0,
                plane_point=plane,
                plane_normal=normal,
                friction=friction,
                restitution=restitution,
            )
        )
    return model, q, qd, forces


def kinetic_energy(model, q, qd):
    return model.energy(q, qd)[0]


def gain_of_moreau(model, q, qd, forces):
    """Return the energy that the impulses of one step add, the velocities after them, and the motion.

    All gaps are closed at the start of the step, so the impulses act there, and the step adds the change of the
    velocity without impulses. The mass matrix of a step is that in its middle, q + qd h / 2.
    """
    settings = {"method": "moreau", "step": STEP, "on_failure": "ignore"}
    motion = model.simulate(q, qd, STEP, forces=forces, save_at=2, **settings)
    far = [
        rb.SphereContact(
            model.body_names[-1], point=(0, 0, 0), radius=0.0, plane_point=(0, 0, -1000.0), plane_normal=(0, 0, 1)
        )
    ]
    smooth = model.simulate(q, qd, STEP, forces=far, save_at=2, **settings)
    middle = model.simulate(q, qd, STEP / 2, forces=far, save_at=2, **settings).q[:, -1]
    after = motion.qd[:, -1] - (smooth.qd[:, -1] - qd)
    return kinetic_energy(model, middle, after) - kinetic_energy(model, middle, qd), after, motion


def gain_of_rk45(model, q, qd, forces):
    motion = model.simulate(q, qd, STEP, forces=forces, rtol=1e-12, atol=1e-14, on_failure="ignore", save_at=2)
    after = motion.qd[:, -1]
    return kinetic_energy(model, motion.q[:, -1], after) - kinetic_energy(model, q, qd), after, motion


def terms_of_energy(model, q, qd, forces, motion):
    """Return the sums of |p| and of the absolute terms of the energy, p . u + p . W p / 2.

    The last term is at most half the square of the sum of |p| |W|^(1/2) over the contacts, with the blocks W of each.
    """
    inverse, sums, total, roots = model.mass_matrix_inverse(q), np.zeros(len(q)), np.zeros(len(q)), np.zeros(len(q))
    for force, record in zip([f for f in forces if not isinstance(f, rb.DryFriction)], motion.impacts, strict=True):
        if isinstance(force, rb.HardStops):
            J = np.zeros((len(q), 1, model.nv))
            J[:, 0, model.joint_names.index(force.joint) + model.nv - len(model.joint_names)] = 1.0
        else:
            J = model.jacobian(q, force.frame, point=force.point)[:, :3]
        impulse = np.nan_to_num(np.abs(record.impulse[:, 0])).reshape(len(q), -1).sum(1)
        sums += impulse
        total += impulse * np.abs(J @ qd[..., None]).sum((1, 2))
        roots += impulse * np.sqrt(np.linalg.norm(J @ inverse @ np.swapaxes(J, 1, 2), 2, axis=(1, 2)))
    return sums, total + 0.5 * roots**2


def check_random_impacts(mechanisms, samples, seed):
    """The energy is a sum of terms, so its round-off is that of their absolute values, times the error of W and u.

    W and u follow from forward dynamics, whose relative error is at most 8 nv eps times the condition number of the
    mass matrix (`test_dynamics`). The velocities u' that belong to the impulses p differ from those of the solver by
    `contact_residual`, which changes the energy by up to |p| times this residual.
    """
    rng, impacts, limited = np.random.default_rng(seed), 0, 0
    for _ in range(mechanisms):
        model, q, qd, forces = random_impacts(rng, samples)
        error = 8 * model.nv * np.finfo(float).eps * np.linalg.cond(model.mass_matrix(q))
        for compute in (gain_of_moreau, gain_of_rk45):
            gain, _, motion = compute(model, q, qd, forces)
            runs = motion.status == rb.Status.DONE
            impulses, terms = terms_of_energy(model, q, qd, forces, motion)
            allowed = error * (kinetic_energy(model, q, qd) + terms) + impulses * motion.contact_residual
            assert (gain[runs] <= allowed[runs]).all(), (gain / allowed)[runs].max()
            assert runs.mean() > 0.9
        impacts += int((motion.impacts[-1].count > 0).sum())
        limited += int((np.abs(gain) <= allowed).sum())
    return impacts, limited


def test_impacts_of_random_mechanisms_add_no_energy():
    impacts, limited = check_random_impacts(12, 64, seed=1)
    assert impacts > 500
    assert limited > 10


@pytest.mark.slow
def test_40_000_impacts_of_random_mechanisms_add_no_energy():
    impacts, limited = check_random_impacts(110, 512, seed=2)
    assert impacts > 40_000
    assert limited > 400


def two_links(samples, seed):
    """Two links whose end hits a floor, in states in which friction often makes Newton's law add energy."""
    builder, rng = rb.ModelBuilder(gravity=(0, 0, 0)), np.random.default_rng(seed)
    rod = rb.Inertia(1.0, cg=(0.5, 0, 0), inertia=(1e-4, 1 / 12, 1 / 12))
    builder.add_body("a", joint=rb.Revolute((0, 1, 0)), inertia=rod)
    builder.add_body("b", parent="a", joint=rb.Revolute((0, 1, 0)), placement=rb.Pose((1.0, 0, 0)), inertia=rod)
    model = builder.build()
    q = np.stack([rng.uniform(0.1, np.pi - 0.1, samples), rng.uniform(-2, 2, samples)], 1)
    qd = 2 * rng.normal(size=(samples, 2))
    pose = model.frame_poses(q, "b")
    end = pose.translation + pose.rotation @ [1.0, 0, 0]
    qd *= -np.sign(normal_velocity(model, q, qd))[:, None]
    return model, q, qd, end


def normal_velocity(model, q, qd):
    return (model.jacobian(q, "b", point=(1.0, 0, 0))[:, 2] * qd).sum(1)


@pytest.mark.parametrize("compute", [gain_of_moreau, gain_of_rk45])
def test_impacts_that_lose_energy_have_newtons_coefficient_and_all_others_keep_their_energy(compute):
    """Newton's law has no solution if friction holds the end. These impacts are plastic."""
    model, q, qd, end = two_links(512, seed=0)
    floor = rb.SphereContact(
        "b", point=(1.0, 0, 0), radius=0.0, plane_point=end, plane_normal=(0, 0, 1), friction=0.5, restitution=0.9
    )
    gain, after, motion = compute(model, q, qd, [floor])
    ratio = -normal_velocity(model, q, after) / normal_velocity(model, q, qd)
    energy = kinetic_energy(model, q, qd)
    newton, keeps, plastic = abs(ratio - 0.9) < 1e-6, abs(gain) < 1e-8 * energy, abs(ratio) < 1e-6
    assert (newton | keeps | plastic).all()
    assert min(newton.sum(), (keeps & ~newton).sum()) > 20
    assert motion.contact_residual.max() <= 1e-10
    assert (ratio > -1e-9).all() and (ratio < 0.9 + 1e-6).all()


@pytest.mark.parametrize("compute", [gain_of_moreau, gain_of_rk45])
def test_impacts_without_friction_have_exactly_newtons_coefficient(compute):
    model, q, qd, end = two_links(64, seed=3)
    e = np.linspace(0.02, 1.0, 64)
    floor = rb.SphereContact("b", point=(1.0, 0, 0), radius=0.0, plane_point=end, plane_normal=(0, 0, 1), restitution=e)
    gain, after, _ = compute(model, q, qd, [floor])
    u = normal_velocity(model, q, qd)
    np.testing.assert_allclose(normal_velocity(model, q, after), -e * u, rtol=0, atol=1e-8)
    inertia = model.jacobian(q, "b", point=(1.0, 0, 0))[:, 2]
    response = np.einsum("ki,kij,kj->k", inertia, np.linalg.inv(model.mass_matrix(q)), inertia)
    np.testing.assert_allclose(gain, -(1 - e**2) * u**2 / response / 2, rtol=1e-6, atol=1e-8)


def straight_arm(links, height):
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    for i in range(links):
        builder.add_body(
            f"link{i}",
            parent=f"link{i - 1}" if i else None,
            joint=rb.Revolute((0, 1, 0)),
            placement=rb.Pose((0.2, 0, 0) if i else (0, 0, height)),
            inertia=rb.Inertia(0.5, cg=(0.1, 0, 0), inertia=(1e-4, 0.5 * 0.04 / 12, 0.5 * 0.04 / 12)),
        )
    return builder.build()


@pytest.mark.parametrize("short", [1e-4, 1e-2])
def test_a_straight_arm_that_hits_the_floor_gains_no_energy(short):
    """The arm hangs down to a floor that is a little too high, and hits it where J of the contact nearly vanishes.

    A step of length h may change the kinetic energy by a few h w of it, with the angular velocity w <= 40 rad/s.
    """
    model, samples, h = straight_arm(2, 0.4 + 0.02 - short), 36, 1e-3
    rng = np.random.default_rng(1)
    friction, restitution = np.tile([0, 0.5, 1.0], 12), np.tile(np.repeat([0, 0.5, 0.9], 3), 4)
    q = np.stack([rng.uniform(0.3, 1.2, samples), 0.2 * rng.normal(size=samples)], 1)
    floor = rb.SphereContact(
        "link1",
        point=(0.2, 0, 0),
        radius=0.02,
        plane_point=(0, 0, 0),
        plane_normal=(0, 0, 1),
        friction=friction,
        restitution=restitution,
    )
    settings = {"method": "moreau", "step": h, "forces": [floor], "save_at": 1001}
    motion = model.simulate(q, np.zeros((samples, 2)), 1.0, **settings)
    energy = sum(model.energy(motion.q, motion.qd))
    scale = 2 * 0.5 * 9.81 * 0.2  # J
    assert motion.success
    assert np.diff(energy, axis=1).max() < 0.04 * scale
    assert energy.max() < energy[:, 0].max() + 0.1 * scale
    assert np.abs(motion.qd).max() < 60


@pytest.mark.plain_python
def test_a_step_that_turns_bodies_too_far_ends_with_a_status():
    """An arm whose motion cannot be computed with steps of 20 ms, beside one at rest that can."""
    arm = rb.Model.serial_chain(7)
    q = np.array([[0.3] + [0.1] * 6, [-np.pi / 2] + [0.0] * 6])
    motion = arm.simulate(q, np.zeros((2, 7)), 2.0, method="moreau", step=0.02, save_at=101, on_failure="ignore")
    assert motion.status.tolist() == [rb.Status.STEP_TOO_LONG, rb.Status.DONE]
    assert "Reduce the step" in motion.message
    start, end = sum(arm.energy(q[:1], np.zeros((1, 7)))), sum(arm.energy(motion.end_q[:1], motion.end_qd[:1]))
    assert abs(end - start) < 100.0


@pytest.mark.slow
@pytest.mark.plain_python
def test_the_energy_of_a_spinning_body_grows_with_the_third_power_of_the_step():
    """Steps of 0.1 and 0.05 rad about the axis of largest inertia. Steps of 0.5 rad add at most 2e-3 each."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("box", joint=rb.Free(), inertia=rb.Inertia.box((0.3, 0.2, 0.1), mass=2.0))
    model = builder.build()
    growth = {}
    for speed, step in ((100.0, 1e-3), (100.0, 5e-4), (500.0, 1e-3)):
        start = model.neutral(), np.array([1.0, 0, 0, 0.1, 0, speed])
        motion = model.simulate(*start, 0.2, method="moreau", step=step, save_at=2)
        assert motion.success
        growth[speed, step] = sum(model.energy(motion.q[-1], motion.qd[-1])) / sum(model.energy(*start)) - 1
    assert abs(np.log2(growth[100.0, 1e-3] / growth[100.0, 5e-4]) - 3) < 0.1
    assert growth[500.0, 1e-3] < (1 + 2e-3) ** 200 - 1
