"""Springs and bushings between bodies: a published benchmark, SciPy, MuJoCo, and identities."""

import dataclasses
import json
import sys
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbchain as rb
from rbchain.model.pose import computed_pose

from .conftest import mechanism
from .mechanisms import random_rotation
from .other_process import computed
from .quantities import derivative, random_states
from .test_one_source import check_alike

REFERENCES = Path(__file__).parent / "references"
FORCE_KINDS = (rb.SpringDamper, rb.Bushing)
plain = pytest.mark.plain_python


def random_matrix(rng):
    factor = rng.normal(size=(6, 6))
    return factor @ factor.T


def random_pose(rng):
    return rb.Pose(rng.normal(size=3), random_rotation(rng))


def random_force(kind, a, b, rng):
    if kind is rb.SpringDamper:
        points, (k, d, length) = rng.normal(size=(2, 3)), rng.random(3) * [50.0, 1.0, 0.5]
        return kind(a, b, point_a=points[0], point_b=points[1], stiffness=k, damping=d, rest_length=length)
    matrices = {"stiffness": random_matrix(rng), "damping": random_matrix(rng)}
    return kind(a, b, **matrices, pose_a=random_pose(rng), pose_b=random_pose(rng))


def random_forces(model, kind, count=3, seed=0):
    """Forces between random bodies, and one to the world in either order."""
    rng, names = np.random.default_rng(seed), model.body_names
    pairs = [rng.choice(len(names), 2, replace=False) for _ in range(count)]
    forces = [random_force(kind, names[a], names[b], rng) for a, b in pairs]
    return [*forces, random_force(kind, None, names[-1], rng), random_force(kind, names[0], None, rng)]


def without_damping(forces):
    return [dataclasses.replace(f, damping=0.0 if isinstance(f, rb.SpringDamper) else None) for f in forces]


def joint_forces(model, q, qd, forces):
    """The joint forces that do the same work as the wrenches."""
    wrenches, rest = model.wrenches_between_bodies(q, qd, forces), np.zeros(model.nv)
    return model.inverse_dynamics(q, qd, rest) - model.inverse_dynamics(q, qd, rest, wrenches)


# --- identities -------------------------------------------------------------------------------------------------------

MECHANISMS = ["every_joint_tree", "small_floating_tree", "coordinate_tree"]


@plain
@pytest.mark.parametrize("kind", FORCE_KINDS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_elastic_forces_are_minus_the_gradient_of_the_energy(name, kind):
    model = mechanism(name)
    forces = without_damping(random_forces(model, kind))
    q, qd = (x[0] for x in random_states(model, (1,), arrays=2))

    def energy(s):
        """The energies after a step s along each axis."""
        return model.elastic_energy(model.integrate(q, s * np.eye(model.nv)), forces)

    gradient = derivative(energy)
    found = joint_forces(model, q, qd, forces)
    np.testing.assert_allclose(found, -gradient, rtol=0, atol=1e-9 * np.abs(gradient).max())
    at_rest = joint_forces(model, q, 0 * qd, forces)
    np.testing.assert_allclose(found, at_rest, rtol=0, atol=1e-13 * np.abs(gradient).max())


@pytest.mark.fast_cases("coordinate_tree-SpringDamper")
@plain
@pytest.mark.parametrize("kind", FORCE_KINDS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_derivatives_of_joint_forces_agree_with_differences(name, kind):
    model = mechanism(name)
    forces = random_forces(model, kind)
    q, qd = (x[0] for x in random_states(model, (1,), arrays=2))
    by_q, by_qd = model.derivatives_between_bodies(q, qd, forces)
    axes = np.eye(model.nv)
    differences = derivative(lambda s: joint_forces(model, model.integrate(q, s * axes), qd, forces))
    np.testing.assert_allclose(by_q, differences.T, rtol=0, atol=1e-8 * np.abs(by_q).max())
    differences = derivative(lambda s: joint_forces(model, q, qd + s * axes, forces))
    np.testing.assert_allclose(by_qd, differences.T, rtol=0, atol=1e-8 * np.abs(by_qd).max())
    # a spring's and a bushing's damping matrix is symmetric and dissipative in joint coordinates, too
    np.testing.assert_allclose(by_qd, by_qd.T, rtol=0, atol=1e-12 * np.abs(by_qd).max())
    assert np.linalg.eigvalsh(by_qd)[-1] <= 1e-12 * np.abs(by_qd).max()


@plain
@pytest.mark.parametrize("kind", FORCE_KINDS)
def test_forces_on_the_two_bodies_are_opposite(kind):
    """The sum of the wrenches about the origin of the world is zero."""
    model = mechanism("floating_tree")
    forces = random_forces(model, kind)[:-2]
    q, qd = random_states(model, (3,), arrays=2)
    wrenches, origins = model.wrenches_between_bodies(q, qd, forces), model.body_poses(q).translation
    moments = wrenches[..., 3:] + np.cross(origins, wrenches[..., :3])
    total = np.concatenate([wrenches[..., :3], moments], -1).sum(-2)
    np.testing.assert_allclose(total, 0.0, rtol=0, atol=1e-12 * np.abs(wrenches).max())


# --- the laws, computed in another way --------------------------------------------------------------------------------


def displacement(model, q, bushing):
    """The displacement x = (p, phi) of a bushing between bodies, with SciPy's rotation vector."""
    A, B = (rb.Pose() if name is None else model.frame_poses(q, name) for name in (bushing.frame_a, bushing.frame_b))
    relative = (A @ (bushing.pose_a or rb.Pose())).inverse() @ B @ (bushing.pose_b or rb.Pose())
    return np.concatenate([relative.translation, Rotation.from_matrix(relative.rotation).as_rotvec()])


@plain
def test_a_bushing_follows_its_law():
    """Its energy is x^T K x / 2, and its power is that of K x + D dx/dt along dx/dt."""
    model, rng = mechanism("small_floating_tree"), np.random.default_rng(2)
    for seed in range(5):
        a, b = rng.choice(model.n_bodies, 2, replace=False)
        bushing = random_force(rb.Bushing, model.body_names[a], model.body_names[b], rng)
        q, qd = (x[0] for x in random_states(model, (1,), seed, arrays=2))
        x = displacement(model, q, bushing)
        rate = derivative(lambda s, b=bushing, q=q, qd=qd: displacement(model, model.integrate(q, s * qd), b))
        energy = model.elastic_energy(q, [bushing])
        np.testing.assert_allclose(energy, x @ bushing.stiffness @ x / 2, rtol=1e-12)
        power = model.power(q, qd, np.zeros(model.nv), model.wrenches_between_bodies(q, qd, [bushing]))
        expected = -rate @ (bushing.stiffness @ x + bushing.damping @ rate)
        np.testing.assert_allclose(power, expected, rtol=1e-8)


@plain
@pytest.mark.parametrize("angle", [0.0, 1e-200, 1e-9, 1e-4, 0.9999, 1.0001, 2.5, np.pi - 1e-9, np.pi])
def test_a_bushing_is_accurate_at_any_angle(angle):
    """The moment of a turned body with the stiffness k about each axis is k times its rotation vector."""
    builder = rb.ModelBuilder()
    builder.add_body("ball", joint=rb.Spherical(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    model, bushing = builder.build(), rb.Bushing(None, "ball", stiffness=np.diag([1.0] * 3 + [5.0] * 3))
    axis = np.array([2.0, -1.0, 2.0]) / 3.0
    q = np.array([*(np.sin(angle / 2) * axis), np.cos(angle / 2)])
    wrench = model.wrenches_between_bodies(q, np.zeros(3), [bushing])[0]
    sign = np.sign(-wrench[3]) if angle == np.pi else 1.0  # phi and -phi are the same rotation
    np.testing.assert_allclose(wrench, [0, 0, 0, *(-5.0 * sign * angle * axis)], rtol=1e-14, atol=1e-200)
    by_q, _ = model.derivatives_between_bodies(q, np.ones(3), [bushing])
    assert np.isfinite(by_q).all()
    if angle < np.pi - 1e-6:
        moment = lambda s, d: joint_forces(model, model.integrate(q, s * d), np.ones(3), [bushing])  # noqa: E731
        differences = [derivative(lambda s, d=d: moment(s, d)) for d in np.eye(3)]
        np.testing.assert_allclose(by_q, np.stack(differences, -1), rtol=0, atol=1e-7)


@plain
def test_a_spring_without_length_has_no_force():
    builder = rb.ModelBuilder()
    builder.add_body("body", joint=rb.Free(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    model, here = builder.build(), np.zeros(3)
    q, qd = model.neutral(), np.ones(6)
    for rest_length, pull in ((0.0, -7.0), (0.5, -7.0)):
        spring = rb.SpringDamper(
            None, "body", point_a=here, point_b=here, stiffness=7.0, damping=2.0, rest_length=rest_length
        )
        assert not model.wrenches_between_bodies(q, qd, [spring]).any()
        by_q, by_qd = model.derivatives_between_bodies(q, qd, [spring])
        np.testing.assert_array_equal(by_q[:3, :3], pull * np.eye(3))
        assert not by_qd.any()
    soft = rb.SpringDamper(None, "body", point_a=here, point_b=here, stiffness=7.0)
    for length in (1e-300, 1e-160, 1e-8):
        q[:3] = length * np.array([2.0, -1.0, 2.0]) / 3.0
        force = model.wrenches_between_bodies(q, qd, [soft])[0, :3]
        np.testing.assert_allclose(force, -7.0 * q[:3], rtol=1e-14, atol=1e-150)


@plain
def test_a_cable_never_pushes():
    """Its tension is that of the spring, but at least zero, also with damping."""
    builder = rb.ModelBuilder()
    builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(1.0))
    model, law = builder.build(), {"stiffness": 10.0, "damping": 3.0, "rest_length": 1.0}
    spring, cable = (
        rb.SpringDamper(None, "slide", point_a=(0, 0, 0), point_b=(0, 0, 0), **law, tension_only=x)
        for x in (False, True)
    )
    q = np.repeat(np.linspace(0.5, 1.5, 5), 5)[:, None]
    qd = np.tile(np.linspace(-2.0, 2.0, 5), 5)[:, None]
    tension = 10.0 * (q - 1.0) + 3.0 * qd
    for force, expected in ((spring, tension), (cable, np.maximum(tension, 0.0))):
        wrenches = model.wrenches_between_bodies(q, qd, [force])
        np.testing.assert_allclose(wrenches[:, 0, 0], -expected[:, 0], rtol=0, atol=1e-14)
        assert not wrenches[:, 0, 1:].any()
    by_q, by_qd = model.derivatives_between_bodies(q, qd, [cable])
    np.testing.assert_array_equal(by_q[:, 0, 0], np.where(tension[:, 0] < 0.0, 0.0, -10.0))
    np.testing.assert_array_equal(by_qd[:, 0, 0], np.where(tension[:, 0] < 0.0, 0.0, -3.0))
    energy = model.elastic_energy(q, [cable])
    np.testing.assert_allclose(energy, 5.0 * np.maximum(q[:, 0] - 1.0, 0.0) ** 2, rtol=1e-15)


class Placed:
    """A body at 50 digits: rotation, position and velocities, in world axes. `moved` displaces it."""

    def __init__(self, R, p, v, w):
        self.R, self.p, self.v, self.w = R, p, v, w

    def moved(self, direction, s):
        """Displace the body by s along one of its six velocities, [linear, angular], to first order."""
        step = mp.matrix([s * x for x in direction])
        turn = mp.matrix([[0, -step[5], step[4]], [step[5], 0, -step[3]], [-step[4], step[3], 0]])
        return Placed(self.R + turn * self.R, self.p + step[:3], self.v, self.w)


def placed_bodies(model, q, qd):
    """The bodies of a model of free joints at the origin; the velocities of a free joint are in body axes."""
    found = []
    for i in range(model.n_bodies):
        (x, y, z, w), at = mp.matrix(q[7 * i + 3 : 7 * i + 7].tolist()), 6 * i
        norm = x * x + y * y + z * z + w * w
        R = mp.eye(3) + (2 / norm) * mp.matrix(
            [[-y * y - z * z, x * y - z * w, x * z + y * w], [x * y + z * w, -x * x - z * z, y * z - x * w],
             [x * z - y * w, y * z + x * w, -x * x - y * y]]
        )  # fmt: skip
        velocities = (R * mp.matrix(qd[first : first + 3].tolist()) for first in (at, at + 3))
        found.append(Placed(R, mp.matrix(q[7 * i : 7 * i + 3].tolist()), *velocities))
    return found


def coordinates_of(force, a, b):
    """The displacements x that a force resists: a length, or position and rotation vector of B in A."""
    if isinstance(force, rb.SpringDamper):
        d = b.p + b.R * mp.matrix(list(force.point_b)) - a.p - a.R * mp.matrix(list(force.point_a))
        return mp.matrix([mp.norm(d)])
    (R_A, p_A), (R_B, p_B) = (
        (body.R * mp.matrix(pose.rotation.tolist()), body.p + body.R * mp.matrix(pose.translation.tolist()))
        for body, pose in ((a, force.pose_a), (b, force.pose_b))
    )
    R = R_A.T * R_B  # of doubles, hence orthogonal to 1e-16 only
    sine = mp.matrix([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    angle = mp.atan2(mp.norm(sine), (R[0, 0] + R[1, 1] + R[2, 2] - 1) / 2)
    return mp.matrix([*(R_A.T * (p_B - p_A)), *(sine * angle / mp.norm(sine))])


def wrenches_by_virtual_work(force, a, b):
    """The wrenches on both bodies, from the work of K (x - x0) + D dx/dt on virtual displacements, and the energy."""
    x = coordinates_of(force, a, b)
    rows = [[], []]
    for side in range(2):
        for direction in np.eye(6).tolist():

            def along(s, side=side, direction=direction):
                bodies = [a, b]
                bodies[side] = bodies[side].moved(direction, s)
                return coordinates_of(force, *bodies)

            step = mp.mpf(10) ** -16  # errors of 1e-32 of the difference, and of 1e-34 by round-off
            rows[side].append((along(step) - along(-step)) / (2 * step))
    velocities = [[*body.v, *body.w] for body in (a, b)]
    rate = sum((rows[i][j] * velocities[i][j] for i in range(2) for j in range(6)), 0 * x)
    if isinstance(force, rb.SpringDamper):
        elastic, viscous = (x - mp.matrix([force.rest_length])) * force.stiffness, rate * force.damping
        energy = force.stiffness * (x[0] - force.rest_length) ** 2 / 2
    else:
        K, D = (mp.matrix(matrix.tolist()) for matrix in (force.stiffness, force.damping))
        elastic, viscous = K * x, D * rate
        energy = (x.T * K * x)[0] / 2
    total = elastic + viscous
    return [[float(-(total.T * row)[0]) for row in rows[side]] for side in range(2)], float(energy)


@plain
@pytest.mark.parametrize("kind", FORCE_KINDS)
def test_wrenches_agree_with_virtual_work_at_50_digits(kind):
    """Both bodies move and turn; the wrenches are about their origins, in world axes."""
    model, rng = free_pair(), np.random.default_rng(21)
    for seed in range(3):
        q, qd = (x[0] for x in random_states(model, (1,), seed, arrays=2))
        force = random_force(kind, "a", "b", rng)
        with mp.workdps(50):
            expected, energy = wrenches_by_virtual_work(force, *placed_bodies(model, q, qd))
        found = model.wrenches_between_bodies(q, qd, [force])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
        np.testing.assert_allclose(model.elastic_energy(q, [force]), energy, rtol=1e-13)


def moment_with_three_angles(R, spin, stiffness, damping):
    """The moment on B of Drake's LinearBushingRollPitchYaw and Simbody's LinearBushing, from their documentation.

    With space-fixed x-y-z angles y and dy/dt = N spin, it is -N^T (k y + d dy/dt), in the axes of A.
    """
    y = Rotation.from_matrix(R).as_euler("xyz")
    (sp, cp), (sy, cy) = ((np.sin(x), np.cos(x)) for x in y[1:])
    N = np.array([[cy / cp, sy / cp, 0.0], [-sy, cy, 0.0], [cy * sp / cp, sy * sp / cp, 1.0]])
    return -N.T @ (stiffness * y + damping * (N @ spin))


@plain
def test_a_bushing_with_three_angles_is_the_same_about_one_axis_and_close_for_small_rotations():
    """The angles differ from the rotation vector in the second order, so that the moments do, too."""
    builder = rb.ModelBuilder()
    builder.add_body("ball", joint=rb.Spherical(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    model, k, d = builder.build(), np.array([5.0, 7.0, 11.0]), np.array([0.5, 0.2, 0.3])
    bushing = rb.Bushing(None, "ball", stiffness=np.diag([1.0] * 3 + [*k]), damping=np.diag([1.0] * 3 + [*d]))
    for axis in np.eye(3):
        turn = Rotation.from_rotvec(0.8 * axis)
        wrench = model.wrenches_between_bodies(turn.as_quat(), -0.6 * axis, [bushing])[0]
        expected = moment_with_three_angles(turn.as_matrix(), -0.6 * axis, k, d)
        np.testing.assert_allclose(wrench[3:], expected, rtol=0, atol=1e-14 * 11)
    direction, differences = np.array([0.6, -0.5, 0.7]), []
    for size in (1e-2, 1e-3):
        turn = Rotation.from_rotvec(size * direction)
        spin = size * np.array([1.0, 2.0, -1.0])  # in the axes of A
        wrench = model.wrenches_between_bodies(turn.as_quat(), turn.inv().apply(spin), [bushing])[0]
        differences.append(np.abs(wrench[3:] - moment_with_three_angles(turn.as_matrix(), spin, k, d)).max())
    assert 0.9e-2 < differences[1] / differences[0] < 1.1e-2


@pytest.mark.slow
def test_springs_agree_with_tendons_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    text = """
    <mujoco><option gravity="0 0 -9.81"><flag contact="disable"/></option>
      <worldbody>
        <site name="world" pos="0.3 -0.2 1.5"/>
        <body name="upper" pos="0 0 1"><joint name="upper" axis="0 1 0"/><geom size="0.1" pos="0 0 -0.4" mass="2"/>
          <site name="upper" pos="0.1 0.2 -0.1"/>
          <body name="lower" pos="0 0 -0.8"><joint name="lower" axis="1 0 0"/><geom size="0.1" pos="0 0 -0.3" mass="1"/>
            <site name="lower" pos="-0.1 0.3 -0.5"/></body></body>
      </worldbody>
      <tendon>
        <spatial stiffness="40" damping="3" springlength="0.3"><site site="world"/><site site="lower"/></spatial>
        <spatial stiffness="25" damping="1" springlength="0.2"><site site="upper"/><site site="lower"/></spatial>
      </tendon>
    </mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    for name, parent, z, axis, cg, mass in (
        ("upper", None, 1.0, (0, 1, 0), -0.4, 2.0),
        ("lower", "upper", -0.8, (1, 0, 0), -0.3, 1.0),
    ):
        inertia = rb.Inertia.sphere(0.1, mass=mass)
        inertia = rb.Inertia(mass, cg=(0, 0, cg), inertia=inertia.inertia)
        builder.add_body(name, parent=parent, joint=rb.Revolute(axis), placement=rb.Pose((0, 0, z)), inertia=inertia)
    model = builder.build()
    springs = [
        rb.SpringDamper(
            None,
            "lower",
            point_a=(0.3, -0.2, 1.5),
            point_b=(-0.1, 0.3, -0.5),
            stiffness=40.0,
            damping=3.0,
            rest_length=0.3,
        ),
        rb.SpringDamper(
            "upper",
            "lower",
            point_a=(0.1, 0.2, -0.1),
            point_b=(-0.1, 0.3, -0.5),
            stiffness=25.0,
            damping=1.0,
            rest_length=0.2,
        ),
    ]
    for q, qd in np.random.default_rng(0).normal(size=(5, 2, 2)):
        data.qpos[:], data.qvel[:] = q, qd
        mujoco.mj_forward(theirs, data)
        found = model.forward_dynamics(q, qd, np.zeros(2), model.wrenches_between_bodies(q, qd, springs))
        np.testing.assert_allclose(joint_forces(model, q, qd, springs), data.qfrc_passive, rtol=0, atol=1e-12 * 100)
        np.testing.assert_allclose(found, data.qacc, rtol=0, atol=1e-12 * np.abs(data.qacc).max() * 10)


# --- simulations ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def governor():
    """The stiff flyball governor: its model, springs and reference."""
    reference = json.loads((REFERENCES / "governor.json").read_text(encoding="utf-8"))
    builder, names = rb.ModelBuilder(gravity=reference["gravity"]), [body["name"] for body in reference["bodies"]]
    for body in reference["bodies"]:
        xx, xy, xz, yy, yz, zz = body["inertia"]
        builder.add_body(
            body["name"],
            parent=None if body["parent"] < 0 else names[body["parent"]],
            joint={"revolute": rb.Revolute, "prismatic": rb.Prismatic}[body["joint"]](body["axis"]),
            placement=rb.Pose(body["placement"]),
            inertia=rb.Inertia(body["mass"], cg=body["cg"], inertia=[[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]),
        )
    springs = [
        rb.SpringDamper(
            *(names[spring["a"]], names[spring["b"]]),
            point_a=spring["pa"],
            point_b=spring["pb"],
            stiffness=spring["stiffness"],
            damping=spring["damping"],
            rest_length=spring["rest_length"],
        )
        for spring in reference["springs"]
    ]
    return builder.build(), springs, reference["samples"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "rtol", "error"),
    [("rk45", 1e-6, 1e-5), ("rk45", 1e-9, 1e-7), ("rk45", 1e-12, 1e-8), ("radau", 1e-9, 1e-7), ("radau", 1e-11, 1e-8)],
)
def test_the_stiff_governor_agrees_with_its_published_motion(governor, method, rtol, error):
    model, springs, samples = governor
    t, q, qd = (np.array([sample[name] for sample in samples]) for name in ("t", "q", "v"))
    settings = {"method": method, "rtol": rtol, "atol": 1e-2 * rtol, "save_at": t, "forces": springs}
    motion = model.simulate(q[:1], qd[:1], t[-1], **settings)
    assert motion.success
    np.testing.assert_allclose(motion.q[0], q, rtol=0, atol=error)
    kinetic, potential = model.energy(motion.q[0], motion.qd[0])
    for name, found in (
        ("kinetic", kinetic),
        ("gravity_potential", potential),
        ("spring_potential", model.elastic_energy(motion.q[0], springs)),
    ):
        expected = [sample[name] for sample in samples]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e4 * error, err_msg=name)
    # about the vertical axis through the center of mass, which stays on that axis
    spin = model.momentum(motion.q[0], motion.qd[0])[:, 5]
    np.testing.assert_allclose(spin, spin[0], rtol=1e2 * error)


def free_pair(gravity=(0, 0, 0)):
    builder = rb.ModelBuilder(gravity=gravity)
    for name, mass, tensor in (("a", 2.0, (0.1, 0.2, 0.25)), ("b", 1.0, (0.05, 0.04, 0.03))):
        builder.add_body(name, joint=rb.Free(), inertia=rb.Inertia(mass, cg=(0.1, 0.0, -0.1), inertia=tensor))
    return builder.build()


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORCE_KINDS)
def test_a_free_pair_keeps_its_momentum_and_loses_the_energy_that_its_dampers_take(kind):
    """Two bodies with different forces in each sample; the power is integrated by Gauss-Legendre quadrature."""
    model, rng = free_pair(), np.random.default_rng(3)
    q = model.integrate(model.neutral(), 0.2 * rng.normal(size=(3, 12)))
    qd = 0.5 * rng.normal(size=(3, 12))
    if kind is rb.SpringDamper:
        k, c, length = rng.uniform(0.5, 5.0, (3, 3))
        force = kind(
            "a",
            "b",
            point_a=rng.normal(size=(3, 3)),
            point_b=(1.0, 0.0, 0.3),
            stiffness=k,
            damping=c,
            rest_length=length,
        )
    else:
        pose = computed_pose(rng.normal(size=(3, 3)), np.stack([random_rotation(rng) for _ in range(3)]))
        stiff, damped = np.stack([np.eye(6) * x for x in (1.0, 2.0, 3.0)]), 0.1 * random_matrix(rng)
        force = kind("a", "b", stiffness=stiff, damping=damped, pose_a=pose, pose_b=pose)
    nodes, weights = np.polynomial.legendre.leggauss(10)
    edges = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 30)])  # the damping is fast at the start
    half = np.diff(edges)[:, None] / 2
    times = (edges[:-1, None] + half * (1 + nodes)).ravel()
    settings = {"rtol": 1e-12, "atol": 1e-13, "save_at": [0.0, *times, 1.0]}
    motion = model.simulate(q, qd, 1.0, forces=[force], **settings)
    momentum = model.momentum(motion.q, motion.qd)
    np.testing.assert_allclose(momentum, momentum[:, :1] + 0 * momentum, rtol=0, atol=1e-10)
    for k in range(3):
        one, own = motion[k], force.of_sample(k, (3,))
        wrenches = model.wrenches_between_bodies(one.q, one.qd, [own])
        mechanical, elastic = sum(model.energy(one.q, one.qd)), model.elastic_energy(one.q, [own])
        power = model.power(one.q, one.qd, np.zeros(12), wrenches)
        np.testing.assert_allclose(power[1:-1] @ (half * weights).ravel(), mechanical[-1] - mechanical[0], atol=1e-9)
        np.testing.assert_allclose(motion.elastic_energy[k], elastic, rtol=1e-12)
        np.testing.assert_allclose(one.elastic_energy, elastic, rtol=1e-12)
        total = mechanical + elastic
        assert total[-1] < total[0] - 1e-3
        # the accelerations of the simulation are those under the wrenches, and so are its reactions
        found = model.forward_dynamics(one.q, one.qd, np.zeros(12), wrenches)
        np.testing.assert_allclose(found, one.qdd, rtol=0, atol=1e-12 * np.abs(found).max())
        np.testing.assert_allclose(motion.reactions[k], 0.0, rtol=0, atol=1e-12 * np.abs(wrenches).max())
        np.testing.assert_allclose(one.reactions, 0.0, rtol=0, atol=1e-12 * np.abs(wrenches).max())
        alone = model.simulate(q[k : k + 1], qd[k : k + 1], 1.0, forces=[own], **settings)
        np.testing.assert_allclose(alone.q[0], motion.q[k], rtol=0, atol=1e-9)
    elastic = model.simulate(q, qd, 1.0, forces=without_damping([force]), **settings)
    for k in range(3):
        own = without_damping([force.of_sample(k, (3,))])
        one = elastic[k]
        total = sum(model.energy(one.q, one.qd)) + model.elastic_energy(one.q, own)
        np.testing.assert_allclose(total, total[0], rtol=0, atol=1e-10)


@pytest.mark.slow
@plain  # compiled, it would take minutes to compile the drivers of varied models once more
def test_forces_join_drives_wrenches_and_varied_models():
    """The controllers' model ignores springs; reactions of varied samples use the numbers of each sample."""
    chain = rb.Model.serial_chain(3)
    many = chain.vary(mass=chain.mass * np.array([1.0, 1.5, 2.0])[:, None])
    spring = rb.SpringDamper(
        "link1",
        "link3",
        point_a=(0.1, 0.1, 0),
        point_b=(0.2, 0, 0),
        stiffness=[1.0, 2.0, 3.0],
        damping=0.1,
        rest_length=0.05,
    )
    others = [
        rb.Wrench("link2", force=(0.1, 0.2, 0.3)),
        rb.PID("link1", 0.3, kp=5.0, kd=1.0, gravity_compensation=True),
    ]
    q, qd = 0.3 * np.ones((3, 3)), np.zeros((3, 3))
    motion = many.simulate(q, qd, 0.2, drives=others[1:], forces=[spring, others[0]], save_at=3, rtol=1e-6)
    for k in range(3):
        one, own = many[k], spring.of_sample(k, (3,))
        at = motion[k]
        wrenches = one.wrenches_between_bodies(at.q, at.qd, [own])
        wrenches[:, 1, :3] += [0.1, 0.2, 0.3]
        found = one.forward_dynamics(at.q, at.qd, at.tau, wrenches)
        np.testing.assert_allclose(at.qdd, found, rtol=0, atol=1e-11 * np.abs(found).max())
        gravity = chain.gravity_forces(at.q)[:, 0]
        np.testing.assert_allclose(at.tau[:, 0], 5.0 * (0.3 - at.q[:, 0]) - at.qd[:, 0] + gravity, rtol=0, atol=1e-12)
        np.testing.assert_allclose(motion.elastic_energy[k], one.elastic_energy(at.q, [own]), rtol=1e-12)
        expected = one.joint_reactions(at.q, at.qd, at.qdd, wrenches)
        np.testing.assert_allclose(motion.reactions[k], expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@plain
def test_springs_act_on_closed_chains():
    """A four-bar linkage with a spring between its cranks, in plain Python: accelerations and energy."""
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    rod = rb.Inertia.rod(1.0, mass=1.0, axis=(0, 0, 1), cg=(0, 0, -0.5))
    for name, x in (("left", 0.0), ("right", 1.0)):
        builder.add_body(name, joint=rb.Revolute((0, 1, 0)), placement=rb.Pose((x, 0, 0)), inertia=rod)
    builder.add_constraint(
        rb.DistanceConstraint("coupler", "left", "right", point_a=(0, 0, -1), point_b=(0, 0, -1), length=1.2)
    )
    model = builder.build()
    spring = rb.SpringDamper(
        "left", "right", point_a=(0, 0, -0.3), point_b=(0, 0.1, -0.8), stiffness=50.0, rest_length=0.4
    )
    q = model.assemble([0.1, 0.2], fixed=("left",))
    qd = model.assemble_velocities(q, [1.0, 0.0], fixed=("left",))
    motion = model.simulate(q, qd, 0.1, forces=[spring], save_at=3)
    wrenches = model.wrenches_between_bodies(motion.q, motion.qd, [spring])
    found = model.forward_dynamics(motion.q, motion.qd, np.zeros((3, 2)), wrenches)
    np.testing.assert_allclose(motion.qdd, found, rtol=0, atol=1e-12 * np.abs(found).max())
    energy = sum(model.energy(motion.q, motion.qd)) + model.elastic_energy(motion.q, [spring])
    np.testing.assert_allclose(energy, energy[0], rtol=0, atol=1e-7)
    assert np.abs(np.diff(model.elastic_energy(motion.q, [spring]))).max() > 0.1


def test_models_without_forces_between_bodies_compile_nothing_for_them():
    from rbchain.acting.flatten import flatten_actions

    chain, settings = rb.Model.serial_chain(2), ((), 1.0, np.dtype(float))
    actions, _ = flatten_actions(chain, *settings, ([], [rb.Wrench("link1")], []))
    assert (actions.shared.springs, actions.shared.bushings) == (None, None)
    spring = rb.SpringDamper(None, "link1", point_a=(0, 0, 0), point_b=(1, 0, 0), stiffness=1.0)
    actions, _ = flatten_actions(chain, *settings, ([], [spring], []))
    assert (actions.shared.springs.shape[1], actions.shared.bushings.shape[1]) == (1, 0)


def quantities_of_precisions():
    """Forces, energies, derivatives and a motion of a tree with springs and bushings."""
    model = mechanism("small_floating_tree")
    forces = [force for kind in FORCE_KINDS for force in random_forces(model, kind)]
    q, qd = model.random_state(0, 5)
    out = {}
    for dtype in (np.float64, np.float32):
        Q, QD = q.astype(dtype), qd.astype(dtype)
        found = {
            "wrenches": model.wrenches_between_bodies(Q, QD, forces),
            "energy": model.elastic_energy(Q, forces),
            "derivatives": np.stack(model.derivatives_between_bodies(Q, QD, forces)),
            "single": np.stack([model.wrenches_between_bodies(*x, forces) for x in zip(Q, QD, strict=True)]),
        }
        assert all(x.dtype == dtype for x in found.values())
        out |= {name + " " + np.dtype(dtype).name: value for name, value in found.items()}
    motion = model.simulate(q[:2], qd[:2], 0.002, method="rk4", step=0.001, forces=forces, save_at=3)
    out |= {"q": motion.q, "qd": motion.qd}
    return out


@pytest.mark.slow
def test_plain_python_single_states_and_float32_agree_with_lanes():
    found, expected = computed(quantities_of_precisions, NUMBA_DISABLE_JIT="1"), quantities_of_precisions()
    check_alike(found, expected)
    for name in ("wrenches", "energy", "derivatives", "single"):
        scale = np.abs(expected[f"{name} float64"]).max()
        np.testing.assert_allclose(expected[f"{name} float32"], expected[f"{name} float64"], rtol=0, atol=1e-4 * scale)
    for precision, allowed in (("float64", 1e-13), ("float32", 1e-5)):
        lanes, single = expected[f"wrenches {precision}"], expected[f"single {precision}"]
        np.testing.assert_allclose(single, lanes, rtol=0, atol=allowed * np.abs(lanes).max())


# --- studies ----------------------------------------------------------------------------------------------------------

STUDY = """
samples = 4
[model]
serial_chain = {n = 2, gravity = [0, 0, 0]}
[simulate]
duration = 0.05
method = "rk4"
step = 0.0025
save_at = 21
qd = 1.0
[[forces]]
type = "SpringDamper"
frame_b = "link2"
point_a = [0.6, 0, 0]
point_b = [0.25, 0, 0]
stiffness = 20.0
tension_only = true
[[forces]]
type = "Bushing"
frame_a = "link1"
frame_b = "link2"
stiffness = [[1,0,0,0,0,0],[0,1,0,0,0,0],[0,0,1,0,0,0],[0,0,0,2,0,0],[0,0,0,0,2,0],[0,0,0,0,0,2]]
pose_a = {translation = [0.25, 0, 0]}
[vary."world-link2.stiffness"]
how = "multiply"
distribution = {type = "uniform", low = 0.5, high = 1.5}
[vary."link1-link2.stiffness"]
distribution = {type = "uniform", low = 0.5, high = 1.5}
[[measures]]
name = "drift"
quantity = "energy_drift"
over = "peak"
"""


@pytest.mark.slow
@plain
def test_a_study_in_a_file_varies_springs_and_bushings(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    study = rb.Study.read(path)
    results = study.run()
    drawn, model, motion = study.sample(3)
    spring, bushing = motion.forces
    assert drawn["world-link2.stiffness"] * 20.0 == pytest.approx(spring.stiffness, rel=1e-14)
    assert drawn["link1-link2.stiffness"] * 2.0 == pytest.approx(bushing.stiffness[5, 5], rel=1e-14)
    assert spring.tension_only is True
    np.testing.assert_array_equal(bushing.pose_a.translation, [0.25, 0, 0])
    again = model.simulate(
        np.zeros(2), np.ones(2), 0.05, method="rk4", step=0.0025, forces=[spring, bushing], save_at=2
    )
    np.testing.assert_allclose(results.q_final[3], again.q[-1], rtol=0, atol=1e-12)
    assert (results.drift.values < 1e-6).all()  # the joints have no friction, and the springs no damping


# --- errors -----------------------------------------------------------------------------------------------------------

SPRING = {"frame_a": None, "frame_b": "link1", "point_a": (0, 0, 0), "point_b": (1, 0, 0), "stiffness": 1.0}
BUSHING = {"frame_a": "link1", "frame_b": "link2", "stiffness": np.eye(6)}


@plain
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (SPRING | {"frame_b": "link9"}, "'link9'"),
        (SPRING | {"frame_b": 3}, r"SpringDamper world-3: frame_b is 3; expected the name of a body or frame, or None"),
        (SPRING | {"frame_b": None}, r"SpringDamper world-world: both ends are fixed to the world; expected two"),
        (SPRING | {"frame_a": "link1"}, r"both ends are fixed to body 'link1'; expected two different bodies"),
        (SPRING | {"point_a": (0, 0)}, r"point_a has shape \(2,\); expected \(3,\) or \(..., 3\)"),
        (SPRING | {"point_b": (0, 0, np.nan)}, r"point_b is .*nan.*; expected finite numbers"),
        (SPRING | {"stiffness": -1.0}, r"stiffness is -1.0; expected finite numbers of at least 0"),
        (SPRING | {"stiffness": np.inf}, r"stiffness is inf; expected finite numbers"),
        (SPRING | {"damping": -1.0}, r"damping is -1.0; expected finite numbers of at least 0"),
        (SPRING | {"rest_length": [0.1, 0.2]}, r"rest_length has shape \(2,\); expected one number"),
        (SPRING | {"tension_only": 1}, r"tension_only is 1; expected True or False"),
        (BUSHING | {"stiffness": 1.0}, r"Bushing link1-link2: stiffness has shape \(\); expected \(6, 6\) or"),
        (BUSHING | {"stiffness": np.eye(6)[::-1] + np.eye(6, k=1)}, r"stiffness is not symmetric: its element"),
        (BUSHING | {"damping": -np.eye(6)}, r"damping has the eigenvalue -1; expected a positive semidefinite matrix"),
        (BUSHING | {"pose_a": (0, 0, 1)}, r"pose_a is \(0, 0, 1\); expected a Pose"),
    ],
)
def test_invalid_forces_are_refused_by_name(given, message):
    model = rb.Model.serial_chain(2)
    make = rb.Bushing if "point_a" not in given else rb.SpringDamper
    with pytest.raises((rb.ArgumentError, rb.ModelError), match=message):
        model.simulate(np.zeros((3, 2)), np.zeros((3, 2)), 1.0, forces=[make(**given)], save_at=2)
    with pytest.raises((rb.ArgumentError, rb.ModelError), match=message):
        model.wrenches_between_bodies(np.zeros((3, 2)), np.zeros((3, 2)), [make(**given)])


@plain
def test_other_forces_are_refused_in_quantities():
    model = rb.Model.serial_chain(2)
    with pytest.raises(rb.ArgumentError, match="expected a list of SpringDamper and Bushing objects"):
        model.elastic_energy(np.zeros(2), [rb.Wrench("link1")])
    assert sys.float_info.max > model.elastic_energy(np.zeros(2), []) == 0.0
