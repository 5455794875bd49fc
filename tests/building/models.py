"""Mechanisms that are described twice: to the builder and to the oracle."""

from types import SimpleNamespace

import numpy as np

import rbchain as rb

from ..oracles import newton_euler

EPS = np.finfo(float).eps
GRAVITY = (0.3, -9.7, 1.1)


def rotation_about(axis, angle):
    """Rodrigues' formula, independent of the package."""
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def homogeneous(rotation, translation):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, translation
    return matrix


def random_body(rng, kind):
    """One body: its joint, placement and mass properties as plain numbers."""
    axis = rng.normal(size=3)
    frame = rotation_about(rng.normal(size=3), rng.uniform(-3, 3))
    a, b, c = rng.uniform(0.01, 0.1, 3)
    return SimpleNamespace(
        kind=kind,
        axis=axis / np.linalg.norm(axis),
        pitch=rng.uniform(-0.4, 0.4) if kind == "screw" else 0.0,
        rotation=rotation_about(rng.normal(size=3), rng.uniform(-3, 3)),
        translation=rng.uniform(-0.5, 0.5, 3),
        mass=rng.uniform(0.5, 2.0),
        cg=rng.uniform(-0.3, 0.3, 3),
        inertia=frame @ np.diag([b + c, a + c, a + b]) @ frame.T,
    )


def joint_of(body, stretch=1.0):
    if body.kind == "screw":
        return rb.Screw(stretch * body.axis, body.pitch)
    return {"revolute": rb.Revolute, "prismatic": rb.Prismatic}[body.kind](stretch * body.axis)


def described(bodies, parent):
    """The mechanism in the form that the oracle expects."""
    stacked = {name: np.array([getattr(body, name) for body in bodies]) for name in ("axis", "pitch", "mass", "cg")}
    return SimpleNamespace(
        parent=np.array(parent),
        joint_types=tuple(body.kind for body in bodies),
        dof_types=tuple(body.kind for body in bodies),
        n_bodies=len(bodies),
        nv=len(bodies),
        position_index=np.arange(len(bodies)),
        velocity_index=np.arange(len(bodies)),
        armature=np.zeros(len(bodies)),
        placement_rotation=np.array([body.rotation for body in bodies]),
        placement_translation=np.array([body.translation for body in bodies]),
        inertia=np.array([body.inertia for body in bodies]),
        gravity=np.array(GRAVITY),
        **stacked,
    )


def built(bodies, parent, stretch=1.0):
    """The same mechanism from the builder."""
    builder = rb.ModelBuilder(gravity=GRAVITY)
    for i, body in enumerate(bodies):
        builder.add_body(
            f"body{i}",
            parent=None if parent[i] < 0 else f"body{parent[i]}",
            joint=joint_of(body, stretch),
            placement=rb.Pose(body.translation, body.rotation),
            inertia=rb.Inertia(body.mass, cg=body.cg, inertia=body.inertia),
        )
    return builder.build()


def assert_accelerations_are_right(model, reference, q, qd, tau):
    """Compare forward dynamics with 40 digits; the error allowed follows from round-off in the equations of motion."""
    found = model.forward_dynamics(q, qd, tau)
    H = newton_euler.mass_matrix(reference, q).astype(float)
    bias = newton_euler.bias_forces(reference, q, qd).astype(float)
    exact = newton_euler.forward_dynamics(reference, q, qd, tau).astype(float)
    forces = np.abs(bias).max() + np.abs(tau).max() + (np.abs(H) @ np.abs(exact)).max()
    bound = 50 * len(q) * EPS * np.linalg.norm(np.linalg.inv(H), np.inf) * forces
    assert np.isfinite(found).all()
    assert np.abs(found - exact).max() <= bound


def assert_same_mechanism(one, other):
    """Check that two models have the same motion of each body."""
    rng = np.random.default_rng(5)
    q, qd, tau = rng.uniform(-1, 1, (3, 4, one.nq))
    a, b = one.forward_dynamics(q, qd, tau), other.forward_dynamics(q, qd, tau)
    np.testing.assert_allclose(a, b, atol=1e-11 * np.abs(b).max())
    np.testing.assert_allclose(one.inverse_dynamics(q, qd, tau), other.inverse_dynamics(q, qd, tau), atol=1e-12)


def pendulum(**arguments):
    """A builder with one swinging body."""
    builder = rb.ModelBuilder(gravity=GRAVITY)
    given = {
        "joint": rb.Revolute(axis=(0, 1, 0)),
        "inertia": rb.Inertia(1.0, cg=(0.1, 0, -0.5), inertia=(0.1, 0.1, 0.1)),
    }
    builder.add_body("arm", **(given | arguments))
    return builder


SERIAL = [-1, 0, 1, 2, 3, 4, 5]
NUMBERINGS = {
    "serial": SERIAL,
    "depth first": [-1, 0, 1, 1, 0, 4, 4],
    "breadth first": [-1, 0, 0, 1, 1, 2, 2],
    "branches interleaved": [-1, -1, 0, 1, 2, 3, 4],
    "late children of early bodies": [-1, 0, 1, 2, 1, 0, -1],
    "all on the world": [-1] * 7,
    "a star": [-1, 0, 0, 0, 0, 0, 0],
    "mixed": [-1, 0, 0, 2, 1, 2, 1],
}
KINDS = ("revolute", "prismatic", "screw", "revolute", "screw", "prismatic", "revolute")


class TwoBodies:
    """Return an arm with a ball fixed to it at a pose, and the mass properties of both computed by hand."""

    arm = rb.Inertia(1.5, cg=(0.1, 0.2, -0.4), inertia=(0.05, 0.06, 0.07))
    ball = rb.Inertia(0.5, cg=(0.3, -0.1, 0.2), inertia=(0.02, 0.002, 0.001, 0.025, -0.002, 0.03))
    translation, rotation = np.array([0.2, -0.3, -0.9]), rotation_about((1, -1, 2), 0.8)

    @classmethod
    def by_hand(cls):
        place = cls.translation + cls.rotation @ cls.ball.cg
        cg = (1.5 * cls.arm.cg + 0.5 * place) / 2.0
        tensor = cls.arm.inertia + cls.rotation @ cls.ball.inertia @ cls.rotation.T
        for mass, r in ((1.5, cls.arm.cg - cg), (0.5, place - cg)):
            tensor = tensor + mass * (np.dot(r, r) * np.eye(3) - np.outer(r, r))
        return rb.Inertia(2.0, cg=cg, inertia=(tensor + tensor.T) / 2)

    @classmethod
    def pose(cls):
        return rb.Pose(cls.translation, cls.rotation)
