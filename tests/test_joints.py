"""Joints of several degrees of freedom: the meaning of their positions and velocities, and their motion."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbchain as rb

from .conftest import mechanism
from .mechanisms import BREADTH_FIRST, JOINTS, random_inertia, random_rotation, random_tree
from .oracles import newton_euler, peers
from .quantities import (
    ARGUMENTS,
    EPS,
    Magnitudes,
    assert_within,
    computed,
    derivative,
    map_state,
    norm,
    random_state,
)

FLOATING = ["free_body", "ball_chain", "floating_tree", "every_joint_tree", "every_joint_forest"]
BALL = rb.Inertia.sphere(0.1, mass=1.0)


# --- positions --------------------------------------------------------------------------------------------------------


def parts(model):
    """Return the type of each joint, and its entries in q and in qd."""
    positions = np.split(np.arange(model.nq), model.position_index[1:])
    velocities = np.split(np.arange(model.nv), model.velocity_index[1:])
    return zip(model.joint_types, positions, velocities, strict=True)


def test_the_numbers_of_positions_and_velocities_follow_from_the_joints():
    lengths = {"free": (7, 6), "spherical": (4, 3), "planar": (3, 3), "universal": (2, 2)}
    rng = np.random.default_rng(0)
    for kind in JOINTS:
        joint = JOINTS[kind](rng)
        builder = rb.ModelBuilder()
        builder.add_body("first", joint=rb.Revolute(), inertia=random_inertia(rng))
        builder.add_body("second", parent="first", joint=joint, inertia=random_inertia(rng))
        builder.add_body("third", parent="second", joint=rb.Revolute(), inertia=random_inertia(rng))
        model = builder.build()
        of_composite = len(joint.joints) if kind == "composite" else 1
        nq, nv = lengths.get(kind, (of_composite, of_composite))
        assert (model.nq, model.nv, model.n_bodies) == (nq + 2, nv + 2, 3)
        assert model.position_index.tolist() == [0, 1, 1 + nq]
        assert model.velocity_index.tolist() == [0, 1, 1 + nv]
        assert model.joint_types == ("revolute", kind, "revolute")
        assert len(model.dof_types) == len(model.axis) == len(model.pitch) == len(model.armature) == nv + 2


def test_the_degrees_of_freedom_are_described():
    builder = rb.ModelBuilder()
    joints = {
        "free": rb.Free(),
        "ball": rb.Spherical(),
        "plane": rb.Planar(),
        "cardan": rb.Universal(),
        "mixed": rb.Composite([rb.Screw((0, 0, 2), 0.1), rb.Prismatic((1, 0, 0))]),
    }
    for i, (name, joint) in enumerate(joints.items()):
        count = (6, 3, 3, 2, 2)[i]
        motors = {"rotor_inertia": np.arange(count) + 1.0, "gear_ratio": -2.0} if i else {"inertia": BALL}
        builder.add_body(name, parent=list(joints)[i - 1] if i else None, joint=joint, **motors)
    model = builder.build()
    slides, turns = ["prismatic"] * 3, ["revolute"] * 3
    assert list(model.dof_types) == [
        *slides, *turns, *turns, "prismatic", "prismatic", "revolute", "revolute", "revolute", "screw", "prismatic"
    ]  # fmt: skip
    x, y, z = np.eye(3)
    np.testing.assert_array_equal(model.axis, [x, y, z, x, y, z, x, y, z, x, y, z, x, y, z, x])
    np.testing.assert_array_equal(model.pitch, [0.0] * 14 + [0.1, 0.0])
    np.testing.assert_array_equal(model.rotor_inertia, [0] * 6 + [1, 2, 3, 1, 2, 3, 1, 2, 1, 2])
    np.testing.assert_array_equal(model.gear_ratio, [1] * 6 + [-2] * 10)
    np.testing.assert_array_equal(model.armature, 4 * model.rotor_inertia)


def test_a_planar_joint_slides_in_the_plane_normal_to_its_axis():
    """The directions are right-handed; for the axis z they are x and y."""
    rng = np.random.default_rng(0)
    for axis in (*rng.normal(size=(20, 3)), (0, 0, -1), (1, 0, 0), (0, -1, 0), (1e-9, 0, -1)):
        builder = rb.ModelBuilder()
        builder.add_body("body", joint=rb.Planar(axis), inertia=BALL)
        directions = builder.build().axis
        np.testing.assert_allclose(directions @ directions.T, np.eye(3), atol=8 * np.finfo(float).eps)
        np.testing.assert_allclose(directions[2], np.array(axis) / norm(axis), atol=4 * np.finfo(float).eps)
        assert np.linalg.det(directions) > 0


@pytest.mark.parametrize("name", FLOATING)
def test_in_the_neutral_position_every_joint_is_at_its_placement(name):
    model = mechanism(name)
    poses = model.body_poses(model.neutral())
    for i, p in enumerate(model.parent):
        carrier = (np.zeros(3), np.eye(3)) if p < 0 else (poses.translation[p], poses.rotation[p])
        place = carrier[0] + carrier[1] @ model.placement_translation[i]
        np.testing.assert_allclose(poses.translation[i], place, atol=model.nv * EPS)
        np.testing.assert_allclose(poses.rotation[i], carrier[1] @ model.placement_rotation[i], atol=model.nv * EPS)


@pytest.mark.parametrize("name", FLOATING)
def test_poses_agree_with_extended_precision(name):
    model = mechanism(name)
    q, _ = model.random_state(np.random.default_rng(0), 5)
    poses = model.body_poses(q)
    for s in range(5):
        for i, (rotation, translation) in enumerate(newton_euler.body_poses(model, q[s])):
            assert np.abs(poses.rotation[s, i] - rotation.astype(float)).max() <= model.nv * EPS
            reach = 1.0 + np.abs(model.placement_translation).sum() + np.abs(q[s]).sum()
            assert np.abs(poses.translation[s, i] - translation.astype(float)).max() <= model.nv * EPS * reach


def test_random_states_cover_the_whole_state_space():
    model = mechanism("every_joint_tree")
    q, qd = model.random_state(np.random.default_rng(0), (100, 100))
    assert q.shape == (100, 100, model.nq)
    assert qd.shape == (100, 100, model.nv)
    q, qd = q.reshape(-1, model.nq), qd.reshape(-1, model.nv)
    for kind, at_q, dofs in parts(model):
        if kind in ("free", "spherical"):
            assert np.abs(np.linalg.norm(q[:, at_q[-4:]], axis=-1) - 1).max() <= EPS
            # four standard deviations of the mean of 1e4 numbers of variance 1/4
            assert np.abs(q[:, at_q[-4:]].mean(0)).max() < 4 * 0.5 / 100
            assert np.abs((q[:, at_q[-4:]] ** 2).mean(0) - 0.25).max() < 0.02
            at_q, dofs = at_q[:-4], dofs[:-3]  # noqa: PLW2901
        for at, dof in zip(at_q, dofs, strict=True):
            largest = 1.0 if model.dof_types[dof] == "prismatic" else np.pi
            assert 0.99 * largest < np.abs(q[:, at]).max() <= largest
            assert np.abs(q[:, at].mean()) < 4 * largest / np.sqrt(3) / 100
    assert np.abs(qd.mean(0)).max() < 0.05
    assert np.abs(qd.var(0) - 1).max() < 0.06
    again = model.random_state(np.random.default_rng(0), (100, 100))
    assert np.array_equal(again[0].reshape(q.shape), q)
    single = model.random_state(np.random.default_rng(0))
    assert single[0].shape == (model.nq,)
    assert single[1].shape == (model.nv,)


# Rotations from zero to more than half a turn, and those at which series replace closed forms.
TURNS = [
    0.0,
    1e-300,
    1e-20,
    1e-12,
    1e-9,
    1e-6,
    1e-4,
    1e-3,
    1e-2,
    0.1,
    0.49,
    0.51,
    1.0,
    3.0,
    np.pi,
    3.2,
    6.0,
    2 * np.pi,
    7.0,
]


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("name", ["every_joint_tree", "ball_chain"])
def test_integrate_agrees_with_the_exponential(name, turn):
    """Compared with 40 digits. The sign of the quaternion is continuous."""
    model = mechanism(name)
    rng = np.random.default_rng(1)
    q, v = model.random_state(rng, 3)
    for kind, _, dofs in parts(model):
        if kind in ("free", "spherical"):
            v[:, dofs[-3:]] *= turn / np.linalg.norm(v[:, dofs[-3:]], axis=-1, keepdims=True)
    found = model.integrate(q, v)
    for s in range(3):
        exact = newton_euler.integrate(model, q[s], v[s]).astype(float)
        # numbers of order 1, and the round-off of the rotation
        assert np.abs(found[s] - exact).max() <= 4 * EPS * (1 + turn)
        assert np.abs(model.integrate(q[s], v[s]) - exact).max() <= 4 * EPS * (1 + turn)


@pytest.mark.parametrize("turn", [t for t in TURNS if t < np.pi] + [np.pi * (1 - 1e-6)])
def test_difference_is_the_inverse_of_integrate(turn):
    model = mechanism("every_joint_tree")
    rng = np.random.default_rng(2)
    q, v = model.random_state(rng, 50)
    for kind, _, dofs in parts(model):
        if kind in ("free", "spherical"):
            v[:, dofs[-3:]] *= turn / np.linalg.norm(v[:, dofs[-3:]], axis=-1, keepdims=True)
    # near half a turn the inverse of the mean rotation has the norm a / 2, which amplifies round-off of the translation
    np.testing.assert_allclose(model.difference(q, model.integrate(q, v)), v, rtol=0, atol=16 * EPS)


def test_integrate_is_the_inverse_of_difference():
    model = mechanism("every_joint_tree")
    rng = np.random.default_rng(3)
    q0, q1 = model.random_state(rng, 50)[0], model.random_state(rng, 50)[0]
    v = model.difference(q0, q1)
    found = model.integrate(q0, v)
    for kind, at_q, dofs in parts(model):
        if kind in ("free", "spherical"):
            sign = np.sign((found[:, at_q[-4:]] * q1[:, at_q[-4:]]).sum(-1))
            found[:, at_q[-4:]] *= sign[:, None]
            assert np.linalg.norm(v[:, dofs[-3:]], axis=-1).max() <= np.pi * (1 + EPS)
    np.testing.assert_allclose(found, q1, rtol=0, atol=16 * EPS)
    np.testing.assert_allclose(model.integrate(q0, np.zeros(model.nv)), q0, rtol=0, atol=EPS)
    np.testing.assert_allclose(model.difference(q0, q0), 0.0, rtol=0, atol=4 * EPS)


def test_the_sign_of_a_quaternion_does_not_matter():
    model = mechanism("every_joint_tree")
    state = random_state(model, (3,))
    turned = map_state(np.copy, state)
    for kind, at_q, _ in parts(model):
        if kind in ("free", "spherical"):
            turned.q[:, at_q[-4:]] *= -1
    for quantity in set(ARGUMENTS) - {"integrate"}:
        for x, y in zip(computed(model, quantity, state), computed(model, quantity, turned), strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * np.abs(x).max(initial=1.0), err_msg=quantity)


@pytest.mark.parametrize("name", FLOATING)
def test_integrate_and_difference_agree_with_pinocchio(name):
    """To 1e-11, because Pinocchio's own error is about 1e-12 for rotations of 1e-3 rad."""
    model = mechanism(name)
    peer = peers.to_pinocchio(model)
    rng = np.random.default_rng(4)
    (q0, v), (q1, _) = model.random_state(rng, 50), model.random_state(rng, 50)
    v *= rng.choice([1e-3, 0.1, 1.0], 50)[:, None]
    moved, apart = model.integrate(q0, v), model.difference(q0, q1)
    for s in range(50):
        expected = peer.integrate(q0[s], v[s])
        for kind, at_q, _ in parts(model):
            if kind in ("free", "spherical"):
                expected[at_q[-4:]] *= np.sign(expected[at_q[-4:]] @ moved[s, at_q[-4:]])
        np.testing.assert_allclose(moved[s], expected, rtol=0, atol=1e-11)
        np.testing.assert_allclose(apart[s], peer.difference(q0[s], q1[s]), rtol=0, atol=1e-11)


# --- the same mechanism in other words --------------------------------------------------------------------------------


def taken_apart(model):
    """The model with a massless body for each degree of freedom but the last of its joint; numbers of the last ones."""
    one_dof = {
        "revolute": lambda k: rb.Revolute(model.axis[k]),
        "prismatic": lambda k: rb.Prismatic(model.axis[k]),
        "screw": lambda k: rb.Screw(model.axis[k], model.pitch[k]),
    }
    builder, names = rb.ModelBuilder(gravity=model.gravity), []
    for i, (kind, _, dofs) in enumerate(parts(model)):
        parent = None if model.parent[i] < 0 else model.body_names[model.parent[i]]
        placement = rb.Pose(model.placement_translation[i], model.placement_rotation[i])
        whole = {"free": rb.Free, "spherical": rb.Spherical}.get(kind)
        joints = [whole()] if whole else [one_dof[model.dof_types[k]](k) for k in dofs]
        rotors = [dofs] if whole else dofs[:, None]
        for number, (joint, of_joint) in enumerate(zip(joints, rotors, strict=True), 1):
            name = model.body_names[i] if number == len(joints) else f"part {number} of {model.body_names[i]}"
            builder.add_body(
                name,
                parent=parent,
                joint=joint,
                placement=placement,
                inertia=rb.Inertia(model.mass[i], cg=model.cg[i], inertia=model.inertia[i])
                if number == len(joints)
                else None,
                rotor_inertia=model.rotor_inertia[of_joint],
                gear_ratio=model.gear_ratio[of_joint],
            )
            names.append(name)
            parent, placement = name, None
    return builder.build(), np.array([names.index(name) for name in model.body_names])


# Results per body, and their axis counted from the end.
OF_BODIES = {"joint_reactions": (2,), "body_velocities": (2,), "body_accelerations": (2,), "body_poses": (2, 3)}


@pytest.mark.parametrize("name", ["coordinate_tree", "floating_tree", "every_joint_tree", "every_joint_forest"])
@pytest.mark.parametrize("quantity", sorted(set(ARGUMENTS) - {"force_balance_residual"}))
def test_a_joint_of_several_motions_equals_a_chain_of_massless_bodies(name, quantity):
    model = mechanism(name)
    apart, last = taken_apart(model)
    assert (apart.nq, apart.nv) == (model.nq, model.nv)
    state = random_state(model, (4,))
    spread = map_state(np.copy, state)
    spread.wrenches = np.zeros((4, apart.n_bodies, 6))
    spread.wrenches[:, last] = state.wrenches
    sizes = Magnitudes(model, state)
    for part, (x, y) in enumerate(
        zip(computed(model, quantity, state), computed(apart, quantity, spread), strict=True)
    ):
        if quantity in OF_BODIES:
            y = np.take(y, last, axis=-OF_BODIES[quantity][part])  # noqa: PLW2901
        if quantity.endswith("regressor"):
            blocks = y.reshape(*y.shape[:-1], apart.n_bodies, 10)
            y = blocks[..., last, :].reshape(x.shape)  # noqa: PLW2901
        growth = sizes.inertia * sizes.inverse * (1 + sizes.rate)
        assert_within(x, y, sizes.rounding * growth * np.abs(y).reshape(4, -1).max(-1))


def test_a_composite_of_one_joint_equals_that_joint():
    rng = np.random.default_rng(0)
    axis, inertia, placement = (
        rng.normal(size=3),
        random_inertia(rng),
        rb.Pose(rng.normal(size=3), random_rotation(rng)),
    )
    for joint in (rb.Revolute(axis), rb.Prismatic(axis), rb.Screw(axis, 0.3)):
        models = []
        for same in (joint, rb.Composite([joint])):
            builder = rb.ModelBuilder()
            builder.add_body(
                "body", joint=same, placement=placement, inertia=inertia, rotor_inertia=0.2, gear_ratio=2.0
            )
            models.append(builder.build())
        q, qd, tau = rng.normal(size=(3, 5, 1))
        assert np.array_equal(*(model.forward_dynamics(q, qd, tau) for model in models))


def gimbal_rates(angles):
    """Angular velocity in body axes per unit rate (3, 3) of turns about x, then y, then z, each in the turned axes."""
    (_, b, c), (x, y, z) = angles, np.eye(3)
    back = Rotation.from_euler("z", -c).as_matrix()
    return np.stack([back @ Rotation.from_euler("y", -b).as_matrix() @ x, back @ y, z], 1)


def two_bodies(first, rng):
    """A body on this joint that carries another on a hinge; also the pair's motion with any first joint."""
    builder = rb.ModelBuilder(gravity=rng.normal(size=3) * 6)
    placement = rb.Pose(rng.normal(size=3), random_rotation(rng))
    builder.add_body("first", joint=first, placement=placement, inertia=random_inertia(rng))
    placement = rb.Pose(rng.normal(size=3), random_rotation(rng))
    joint = rb.Revolute(rng.normal(size=3))
    builder.add_body("second", parent="first", joint=joint, placement=placement, inertia=random_inertia(rng))
    return builder.build()


def test_a_spherical_joint_moves_like_three_hinges():
    """The same orientation, angular velocity and moment give the same accelerations of both bodies."""
    gimbal = rb.Composite([rb.Revolute((1, 0, 0)), rb.Revolute((0, 1, 0)), rb.Revolute((0, 0, 1))])
    for seed in range(10):
        ball, hinges = (two_bodies(joint, np.random.default_rng(seed)) for joint in (rb.Spherical(), gimbal))
        rng = np.random.default_rng(seed)
        angles, rates, tau = rng.uniform(-1, 1, (3, 4))
        rates_to_spin = gimbal_rates(angles[:3])
        q = np.concatenate([Rotation.from_euler("XYZ", angles[:3]).as_quat(), angles[3:]])
        qd = np.concatenate([rates_to_spin @ rates[:3], rates[3:]])
        moments = np.concatenate([np.linalg.solve(rates_to_spin.T, tau[:3]), tau[3:]])
        qdd = ball.forward_dynamics(q, qd, moments)
        found = ball.body_accelerations(q, qd, qdd)
        expected = hinges.body_accelerations(angles, rates, hinges.forward_dynamics(angles, rates, tau))
        # for angles within 1 rad the condition number of the gimbal is below 1 / cos 1
        condition = np.linalg.cond(hinges.mass_matrix(angles))
        assert np.abs(found - expected).max() <= 8 * EPS * condition * np.abs(expected).max()


def test_a_free_joint_moves_like_three_slides_and_a_ball():
    """Its linear velocity and force are in body axes, those of the slides in the axes of the placement."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        free = two_bodies(rb.Free(), np.random.default_rng(seed))
        slides = rb.Composite([rb.Prismatic(axis) for axis in np.eye(3)])
        builder = rb.ModelBuilder(gravity=free.gravity)
        names = ("slides", "first", "second")
        bodies = [
            rb.Inertia(mass, cg=cg, inertia=tensor)
            for mass, cg, tensor in zip(free.mass, free.cg, free.inertia, strict=True)
        ]
        poses = [rb.Pose(*pose) for pose in zip(free.placement_translation, free.placement_rotation, strict=True)]
        builder.add_body("slides", joint=slides, placement=poses[0])
        builder.add_body("first", parent="slides", joint=rb.Spherical(), inertia=bodies[0])
        joint = rb.Revolute(free.axis[-1])
        builder.add_body(names[2], parent="first", joint=joint, placement=poses[1], inertia=bodies[1])
        ball = builder.build()
        q, qd = free.random_state(rng)
        tau = rng.normal(size=7)
        R = Rotation.from_quat(q[3:7]).as_matrix()
        in_placement = [np.concatenate([R @ x[:3], x[3:]]) for x in (qd, tau)]
        qdd = free.forward_dynamics(q, qd, tau)
        found = free.body_accelerations(q, qd, qdd)
        expected = ball.body_accelerations(q, in_placement[0], ball.forward_dynamics(q, *in_placement))[1:]
        condition = np.linalg.cond(ball.mass_matrix(q))
        assert np.abs(found - expected).max() <= 8 * EPS * condition * np.abs(expected).max()


def test_a_free_body_obeys_newton_and_euler():
    """In body axes about the origin, m (dv + w x v + dw x c + w x (w x c)) = f + m g and J dw + ... = n + m c x g."""
    model = mechanism("free_body")
    state = random_state(model, (20,))
    qdd = model.forward_dynamics(state.q, state.qd, state.tau, state.wrenches)
    m, c = model.mass[0], model.cg[0]
    cross = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
    J = model.inertia[0] - m * cross @ cross
    H = np.block([[m * np.eye(3), -m * cross], [m * cross, J]])
    allowed = 8 * EPS * np.linalg.cond(H)
    for s in range(20):
        R = model.placement_rotation[0] @ Rotation.from_quat(state.q[s, 3:]).as_matrix()
        v, w = state.qd[s, :3], state.qd[s, 3:]
        force = state.tau[s, :3] + R.T @ (m * model.gravity + state.wrenches[s, 0, :3])
        moment = state.tau[s, 3:] + R.T @ state.wrenches[s, 0, 3:] + np.cross(c, R.T @ (m * model.gravity))
        drift = m * (np.cross(w, v) + np.cross(w, np.cross(w, c)))
        swirl = np.cross(w, J @ w) + m * np.cross(c, np.cross(w, v))
        expected = np.linalg.solve(H, np.concatenate([force - drift, moment - swirl]))
        assert np.abs(qdd[s] - expected).max() <= allowed * np.abs(expected).max()
        np.testing.assert_allclose(model.mass_matrix(state.q[s]), H, rtol=0, atol=8 * EPS * np.abs(H).max())


def test_armature_of_a_free_joint_resists_its_rotation():
    """Each degree of freedom has a rotor; MuJoCo supports those of the rotation."""
    rng = np.random.default_rng(0)
    builder = rb.ModelBuilder()
    rotors = np.array([0, 0, 0, 0.1, 0.2, 0.3])
    builder.add_body("body", joint=rb.Free(), inertia=random_inertia(rng), rotor_inertia=rotors, gear_ratio=3.0)
    model = builder.build()
    q, qd = model.random_state(rng, 20)
    tau, peer = rng.normal(size=(20, 6)), peers.to_mujoco(model)
    found = model.forward_dynamics(q, qd, tau)
    for s in range(20):
        expected = peer.forward_dynamics(q[s], qd[s], tau[s])
        condition = np.linalg.cond(peer.mass_matrix(q[s]))
        assert np.abs(found[s] - expected).max() <= 8 * EPS * condition * np.abs(expected).max()


@pytest.mark.parametrize("name", ["geared_arm", "every_joint_tree", "floating_tree"])
def test_a_motor_adds_its_rotor_times_the_gear_ratio_squared_to_its_own_joint(name):
    geared = mechanism(name)
    plain = geared.vary(rotor_inertia=np.zeros(geared.nv))
    state = random_state(geared, (5,))
    sizes = Magnitudes(geared, state)
    q, qd, qdd = state.q, state.qd, state.qdd
    rotors = geared.rotor_inertia * geared.gear_ratio**2
    assert (rotors > 0).sum() > geared.nv / 2
    assert_within(geared.mass_matrix(q), plain.mass_matrix(q) + np.diag(rotors), sizes.rounding * sizes.inertia)
    torques = geared.inverse_dynamics(q, qd, qdd) - plain.inverse_dynamics(q, qd, qdd)
    assert_within(torques, rotors * qdd, sizes.rounding * sizes.force)
    kinetic = geared.energy(q, qd)[0] - plain.energy(q, qd)[0]
    assert_within(kinetic, (rotors * qd**2).sum(-1) / 2, sizes.rounding * sizes.energy)
    for quantity in ("momentum", "joint_reactions", "bias_forces", "coriolis_matrix", "inverse_dynamics_regressor"):
        for x, y in zip(computed(geared, quantity, state), computed(plain, quantity, state), strict=True):
            assert np.array_equal(x, y)


def test_a_robot_with_held_floating_base_equals_the_robot_on_a_fixed_base():
    fixed, floating = mechanism("solo12"), mechanism("floating_quadruped")
    assert floating.body_names[1:] == fixed.body_names
    rng = np.random.default_rng(0)
    q, qd, tau = rng.normal(size=(3, 10, 12))
    still = np.zeros((10, 6))
    whole = np.concatenate([np.broadcast_to(floating.neutral()[:7], (10, 7)), q], -1)
    held = np.arange(18) < 6
    rates, forces = np.concatenate([still, qd], -1), np.concatenate([still, tau], -1)
    found, reaction = floating.hybrid_dynamics(whole, rates, forces, np.zeros(18), held)
    expected = fixed.forward_dynamics(q, qd, tau)
    condition = np.linalg.cond(fixed.mass_matrix(q)).max()
    assert np.abs(found[:, 6:] - expected).max() <= 12 * EPS * condition * np.abs(expected).max()
    # the force that holds the base is its joint reaction
    reactions = floating.joint_reactions(whole, rates, found)[:, 0]
    assert np.abs(reaction[:, :6] - reactions).max() <= 18 * EPS * condition * np.abs(reactions).max()


# --- frames on fixed joints -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_tools():
    """A tree with frames fixed to a moving body, to such a frame, and to the world."""
    rng = np.random.default_rng(0)
    builder = rb.ModelBuilder()
    place = lambda: rb.Pose(rng.normal(size=3), random_rotation(rng))  # noqa: E731
    builder.add_body("ground", joint=rb.Fixed(), placement=place())
    builder.add_body("base", parent="ground", joint=rb.Free(), placement=place(), inertia=random_inertia(rng))
    builder.add_body("arm", parent="base", joint=rb.Universal(), placement=place(), inertia=random_inertia(rng))
    builder.add_body("flange", parent="arm", joint=rb.Fixed(), placement=place(), inertia=random_inertia(rng))
    builder.add_body("tool", parent="flange", joint=rb.Fixed(), placement=place())
    return builder.build()


@pytest.mark.parametrize("frame", ["flange", "tool"])
@pytest.mark.parametrize(
    ("relative_to", "carrier"), [(None, None), ("base", "base"), ("flange", "arm"), ("ground", None)]
)
def test_the_jacobian_of_a_fixed_frame_is_that_of_its_body_at_the_same_point(with_tools, frame, relative_to, carrier):
    model, point = with_tools, np.array([0.3, -0.2, 0.5])
    q, qd = model.random_state(np.random.default_rng(1))
    pose, body = model.frame_poses(q, frame), model.frame_poses(q, "arm")
    place = body.rotation.T @ (pose.translation + pose.rotation @ point - body.translation)
    for quantity, state in ((model.jacobian, (q,)), (model.jacobian_derivative, (q, qd))):
        found = quantity(*state, frame, point=point, relative_to=relative_to)
        expected = quantity(*state, "arm", point=place, relative_to=carrier)
        assert np.abs(found - expected).max() <= model.nv * EPS * (1 + np.abs(expected).max())


@pytest.mark.parametrize("watcher", ["base", "arm", "tool"])
def test_the_jacobian_of_the_ground_relative_to_a_body_is_the_negative(with_tools, watcher):
    model, point = with_tools, np.array([0.3, -0.2, 0.5])
    q, qd = model.random_state(np.random.default_rng(1))

    def against(q):
        """Return the Jacobian of the point of the body that coincides with a point of the ground."""
        ground, pose = model.frame_poses(q, "ground"), model.frame_poses(q, watcher)
        there = pose.rotation.T @ (ground.translation + ground.rotation @ point - pose.translation)
        return -model.jacobian(q, watcher, point=there)

    expected = against(q)
    found = model.jacobian(q, "ground", point=point, relative_to=watcher)
    assert np.abs(found - expected).max() <= model.nv * EPS * (1 + np.abs(expected).max())
    assert not model.jacobian(q, "ground", point=point).any()
    rate = derivative(lambda s: against(model.integrate(q, s * qd)))
    found = model.jacobian_derivative(q, qd, "ground", point=point, relative_to=watcher)
    np.testing.assert_allclose(found, rate, rtol=0, atol=1e-8 * np.abs(rate).max())


def test_bodies_merged_by_a_fixed_joint_give_the_same_quantities():
    """The bodies are merged by hand or by the builder."""
    rng = np.random.default_rng(0)
    tree = random_tree(30, BREADTH_FIRST[:4], ("free", "spherical", "universal", "planar"))
    extra, pose = random_inertia(rng), rb.Pose(rng.normal(size=3), random_rotation(rng))
    models = []
    for merged in (False, True):
        builder = rb.ModelBuilder(gravity=tree.gravity)
        for i, (kind, _, dofs) in enumerate(parts(tree)):
            inertia = rb.Inertia(tree.mass[i], cg=tree.cg[i], inertia=tree.inertia[i])
            joint = {
                "free": lambda k: rb.Free(),
                "spherical": lambda k: rb.Spherical(),
                "universal": lambda k: rb.Universal(*tree.axis[k]),
                "planar": lambda k: rb.Planar(tree.axis[k][2]),
            }[kind](dofs)
            builder.add_body(
                tree.body_names[i],
                parent=tree.body_names[tree.parent[i]] if tree.parent[i] >= 0 else None,
                joint=joint,
                placement=rb.Pose(tree.placement_translation[i], tree.placement_rotation[i]),
                inertia=inertia + extra.moved(pose) if merged and i == 1 else inertia,
            )
        if not merged:
            builder.add_body("extra", parent="body1", joint=rb.Fixed(), placement=pose, inertia=extra)
        models.append(builder.build())
    state = random_state(models[0], (3,))
    for quantity in ARGUMENTS:
        for x, y in zip(*(computed(model, quantity, state) for model in models), strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * np.abs(x).max(initial=1.0), err_msg=quantity)
