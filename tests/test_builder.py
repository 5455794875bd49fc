"""ModelBuilder and Model: results follow the description, and invalid descriptions are refused by name."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import rbchain as rb
from rbchain.model.pose import computed_pose

from .oracles import newton_euler

EPS = np.finfo(float).eps
GRAVITY = (0.3, -9.7, 1.1)


# --- helpers: mechanisms described twice, to the builder and to the oracle --------------------------------------------


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
            inertia=rb.Inertia(body.mass, body.cg, body.inertia),
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
    given = {"joint": rb.Revolute(axis=(0, 1, 0)), "inertia": rb.Inertia(1.0, (0.1, 0, -0.5), (0.1, 0.1, 0.1))}
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


# --- what was described is what is computed ---------------------------------------------------------------------------


@pytest.mark.parametrize("parent", NUMBERINGS.values(), ids=NUMBERINGS)
def test_accelerations_are_correct_for_any_numbering_with_parents_first(parent):
    rng = np.random.default_rng(len(set(parent)))
    bodies = [random_body(rng, kind) for kind in KINDS]
    model, reference = built(bodies, parent), described(bodies, parent)
    assert model.parent.tolist() == parent
    for _ in range(3):
        assert_accelerations_are_right(model, reference, *rng.uniform(-1, 1, (3, len(parent))))


@pytest.mark.parametrize("seed", range(6))
def test_accelerations_of_randomly_numbered_trees_are_correct(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 14))
    parent = [-1] + [int(rng.integers(-1, i)) for i in range(1, n)]
    bodies = [random_body(rng, KINDS[int(rng.integers(len(KINDS)))]) for _ in range(n)]
    model, reference = built(bodies, parent), described(bodies, parent)
    assert_accelerations_are_right(model, reference, *rng.uniform(-1, 1, (3, n)))


@pytest.mark.parametrize("seed", range(20))
def test_accelerations_do_not_depend_on_the_numbering(seed):
    """The same tree is added in two orders, both with parents first, and computed in a batch."""
    rng = np.random.default_rng(100 + seed)
    n = 15
    parent = [-1] + [int(rng.integers(-1, i)) for i in range(1, n)]
    bodies = [random_body(rng, KINDS[int(rng.integers(len(KINDS)))]) for _ in range(n)]
    order, waiting = [], list(range(n))
    while waiting:
        ready = [i for i in waiting if parent[i] < 0 or parent[i] in order]
        order.append(ready[int(rng.integers(len(ready)))])
        waiting.remove(order[-1])
    place = {i: k for k, i in enumerate(order)} | {-1: -1}
    one, other = built(bodies, parent), built([bodies[i] for i in order], [place[parent[i]] for i in order])
    q, qd, tau = rng.uniform(-1, 1, (3, 9, n))
    a = one.forward_dynamics(q, qd, tau)[:, order]
    b = other.forward_dynamics(q[:, order], qd[:, order], tau[:, order])
    np.testing.assert_allclose(a, b, atol=1e-10 * np.abs(a).max())
    a = one.inverse_dynamics(q, qd, tau)[:, order]
    b = other.inverse_dynamics(q[:, order], qd[:, order], tau[:, order])
    np.testing.assert_allclose(a, b, atol=1e-13 * np.abs(a).max())


@pytest.mark.parametrize("parent", NUMBERINGS.values(), ids=NUMBERINGS)
def test_poses_are_the_products_of_placements_and_joints(parent):
    rng = np.random.default_rng(3)
    bodies = [random_body(rng, kind) for kind in KINDS]
    q = rng.uniform(-2, 2, len(parent))
    found = built(bodies, parent).body_poses(q)
    world = {-1: np.eye(4)}
    for i, body in enumerate(bodies):
        angle = 0.0 if body.kind == "prismatic" else q[i]
        slide = {"revolute": 0.0, "prismatic": q[i], "screw": body.pitch * q[i]}[body.kind]
        moved = homogeneous(rotation_about(body.axis, angle), slide * body.axis)
        world[i] = world[parent[i]] @ homogeneous(body.rotation, body.translation) @ moved
        np.testing.assert_allclose(found.translation[i], world[i][:3, 3], atol=100 * EPS)
        np.testing.assert_allclose(found.rotation[i], world[i][:3, :3], atol=100 * EPS)


def test_the_model_reports_its_description():
    rng = np.random.default_rng(4)
    bodies = [random_body(rng, kind) for kind in KINDS]
    model, expected = built(bodies, SERIAL), described(bodies, SERIAL)
    assert (model.nq, model.nv, model.n_bodies) == (7, 7, 7)
    assert model.body_names == tuple(f"body{i}" for i in range(7))
    assert model.joint_names == model.body_names
    assert model.joint_types == KINDS
    assert model.fixed_frames == {}
    for field in ("placement_rotation", "placement_translation", "axis", "pitch", "mass", "cg", "inertia", "gravity"):
        np.testing.assert_allclose(getattr(model, field), getattr(expected, field), rtol=4 * EPS, atol=4 * EPS)


def test_an_axis_that_is_not_unit_is_normalised():
    rng = np.random.default_rng(6)
    bodies = [random_body(rng, kind) for kind in KINDS]
    model = built(bodies, SERIAL, stretch=-37.5)
    np.testing.assert_allclose(np.linalg.norm(model.axis, axis=1), 1.0, atol=4 * EPS)
    np.testing.assert_allclose(model.axis, [-body.axis for body in bodies], atol=4 * EPS)


@pytest.mark.parametrize(
    "axis", [(0, 0, -1), (0, 0, 1), (-1, 0, 0), (0, 1, 0), (1e-9, 0, -1), (1, -1, 0), (1, 1, -1e-17)]
)
@pytest.mark.parametrize("kind", ["revolute", "prismatic", "screw"])
def test_an_axis_may_have_any_direction_and_length(axis, kind):
    rng = np.random.default_rng(7)
    bodies = [random_body(rng, kind) for _ in range(3)]
    for body in bodies:
        body.axis = np.array(axis) / np.linalg.norm(axis)
    model, reference = built(bodies, [-1, 0, 0]), described(bodies, [-1, 0, 0])
    assert_accelerations_are_right(model, reference, *rng.uniform(-1, 1, (3, 3)))


@pytest.mark.parametrize(
    "joint",
    [lambda a: rb.Revolute(axis=a), lambda a: rb.Prismatic(axis=a), lambda a: rb.Screw(axis=a, pitch=0.1)],
    ids=["revolute", "prismatic", "screw"],
)
@pytest.mark.parametrize("axis", [(0, 0, 0), (0, 0, np.nan), (np.inf, 0, 0), (0, 1), 1.0])
def test_a_zero_axis_is_refused(joint, axis):
    with pytest.raises(rb.ModelError, match="axis"):
        rb.ModelBuilder().add_body("arm", joint=joint(axis))


@pytest.mark.parametrize("pitch", [np.nan, np.inf])
def test_a_pitch_that_is_not_finite_is_refused(pitch):
    with pytest.raises(rb.ModelError, match="pitch"):
        rb.Screw((0, 0, 1), pitch)


def test_a_screw_of_pitch_zero_is_a_revolute_joint():
    rng = np.random.default_rng(8)
    bodies = [random_body(rng, "revolute") for _ in range(4)]
    turning = built(bodies, [-1, 0, 1, 1])
    for body in bodies:
        body.kind = "screw"
    assert_same_mechanism(turning, built(bodies, [-1, 0, 1, 1]))


def test_a_placement_may_be_given_by_quaternion_or_matrix():
    matrix = rotation_about((1, 2, 3), 0.7)
    quaternion = np.append(np.sin(0.35) * np.array([1, 2, 3]) / np.sqrt(14), np.cos(0.35))
    for scale in (1.0, -3.0):
        np.testing.assert_allclose(rb.Pose(rotation=scale * quaternion).rotation, matrix, atol=4 * EPS)


# --- massless bodies --------------------------------------------------------------------------------------------------


def test_a_universal_joint_of_massless_bodies_has_the_correct_accelerations():
    """Two pairs of crossed axes with massless bodies between them, in random states."""
    rng = np.random.default_rng(9)
    bodies = [random_body(rng, kind) for kind in ("revolute", "revolute", "screw", "revolute", "prismatic", "revolute")]
    for i in (0, 2, 4):
        bodies[i].mass, bodies[i].cg, bodies[i].inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    model, reference = built(bodies, SERIAL[:6]), described(bodies, SERIAL[:6])
    assert model.mass.tolist()[::2] == [0.0, 0.0, 0.0]
    for _ in range(3):
        assert_accelerations_are_right(model, reference, *rng.uniform(-1, 1, (3, 6)))


def test_a_body_without_inertia_is_massless():
    builder = pendulum(inertia=None)
    builder.add_body("bob", parent="arm", joint=rb.Revolute(axis=(1, 0, 0)), inertia=rb.Inertia(2.0, (0, 0, -1)))
    assert builder.build().mass.tolist() == [0.0, 2.0]


def test_a_massless_body_with_two_children_has_the_correct_accelerations():
    rng = np.random.default_rng(10)
    bodies = [random_body(rng, "revolute") for _ in range(3)]
    bodies[0].mass, bodies[0].inertia = 0.0, np.zeros((3, 3))
    model, reference = built(bodies, [-1, 0, 0]), described(bodies, [-1, 0, 0])
    assert_accelerations_are_right(model, reference, *rng.uniform(-1, 1, (3, 3)))


@pytest.mark.parametrize("joint", [rb.Revolute((1, 2, 3)), rb.Prismatic((1, 2, 3)), rb.Screw((1, 2, 3), 0.2)])
def test_a_massless_tip_is_singular_and_is_refused(joint):
    builder = pendulum()
    builder.add_body(
        "tip", parent="arm", joint=joint, placement=rb.Pose((0.1, 0.2, 0.3), rotation_about((3, 1, 2), 1.0))
    )
    with pytest.warns(UserWarning, match=r"resists the motion of \['tip'\]"):
        model = builder.build()
    with pytest.raises(rb.ModelError, match=r"resists the motion of \['tip'\]"):
        model.forward_dynamics([0.1, 0.2], [1.0, 2.0], [0.3, 0.4])
    with pytest.raises(rb.ModelError, match=r"resists the motion of \['tip'\]"):
        model.forward_dynamics(*np.full((3, 11, 2), 0.7))


def test_two_massless_coaxial_hinges_are_singular_and_are_refused():
    builder = pendulum(inertia=None)
    builder.add_body(
        "bob", parent="arm", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(2.0, (0.1, 0, -1), (1, 1, 1))
    )
    with pytest.warns(UserWarning, match=r"resists the motion of \['arm'\]"):
        model = builder.build()
    with pytest.raises(rb.ModelError, match=r"resists the motion of \['arm'\]"):
        model.forward_dynamics([0.0, 0.2], [1.0, 2.0], [0.3, 0.4])


def test_kinematics_and_inverse_dynamics_accept_a_massless_tip():
    builder = pendulum()
    builder.add_body("tip", parent="arm", joint=rb.Revolute((0, 1, 0)), placement=rb.Pose((1, 2, 3)))
    with pytest.warns(UserWarning, match=r"resists the motion of \['tip'\]"):
        with_tip, without = builder.build(), pendulum().build()
    found = with_tip.inverse_dynamics([0.1, 0.2], [1.0, 2.0], [0.3, 0.4])
    np.testing.assert_allclose(found, [*without.inverse_dynamics([0.1], [1.0], [0.3]), 0.0], rtol=10 * EPS)


def test_a_singular_sample_does_not_change_a_bit_of_others():
    chain = rb.Model.serial_chain(3)
    rng = np.random.default_rng(11)
    q, qd, tau = rng.uniform(-1, 1, (3, 20, 3))
    inertia = np.tile(chain.inertia, (20, 1, 1, 1))
    mass = rng.uniform(0.1, 0.2, (20, 3))
    sound = chain.vary(mass=mass, inertia=inertia).forward_dynamics(q, qd, tau)
    mass[5, 2], inertia[5, 2] = 0.0, 0.0
    found = chain.vary(mass=mass, inertia=inertia).forward_dynamics(q, qd, tau)
    assert np.isnan(found[5]).all()
    np.testing.assert_array_equal(np.delete(found, 5, 0), np.delete(sound, 5, 0))


# --- fixed bodies -----------------------------------------------------------------------------------------------------


class TwoBodies:
    """Return an arm with a ball fixed to it at a pose, and the mass properties of both computed by hand."""

    arm = rb.Inertia(1.5, (0.1, 0.2, -0.4), (0.05, 0.06, 0.07))
    ball = rb.Inertia(0.5, (0.3, -0.1, 0.2), (0.02, 0.002, 0.001, 0.025, -0.002, 0.03))
    translation, rotation = np.array([0.2, -0.3, -0.9]), rotation_about((1, -1, 2), 0.8)

    @classmethod
    def by_hand(cls):
        place = cls.translation + cls.rotation @ cls.ball.cg
        cg = (1.5 * cls.arm.cg + 0.5 * place) / 2.0
        tensor = cls.arm.inertia + cls.rotation @ cls.ball.inertia @ cls.rotation.T
        for mass, r in ((1.5, cls.arm.cg - cg), (0.5, place - cg)):
            tensor = tensor + mass * (np.dot(r, r) * np.eye(3) - np.outer(r, r))
        return rb.Inertia(2.0, cg, (tensor + tensor.T) / 2)

    @classmethod
    def pose(cls):
        return rb.Pose(cls.translation, cls.rotation)


def assert_same_inertia(model, body, expected):
    assert model.mass[body] == pytest.approx(expected.mass, rel=10 * EPS)
    np.testing.assert_allclose(model.cg[body], expected.cg, atol=10 * EPS)
    np.testing.assert_allclose(model.inertia[body], expected.inertia, atol=20 * EPS)


def test_a_fixed_body_is_part_of_its_parent():
    builder = pendulum(inertia=TwoBodies.arm)
    builder.add_body("ball", parent="arm", joint=rb.Fixed(), placement=TwoBodies.pose(), inertia=TwoBodies.ball)
    merged, by_hand = builder.build(), pendulum(inertia=TwoBodies.by_hand()).build()
    assert merged.body_names == ("arm",)
    assert merged.fixed_frames == {"ball": 0}
    assert_same_inertia(merged, 0, TwoBodies.by_hand())
    assert_same_mechanism(merged, by_hand)


def test_a_chain_of_fixed_bodies_is_part_of_the_moving_body():
    """For bracket, plate and ball, only the product of the three placements matters."""
    steps = [
        rb.Pose((0.1, 0, 0), rotation_about((1, 0, 0), 0.4)),
        rb.Pose((0, 0.2, 0.1), rotation_about((0, 1, 1), -1.0)),
    ]
    whole = homogeneous(TwoBodies.rotation, TwoBodies.translation)
    for step in steps:
        whole = np.linalg.inv(homogeneous(step.rotation, step.translation)) @ whole
    # arm -> step 0 -> step 1 -> rest, with rest = inv(step 1) inv(step 0) whole
    builder = pendulum(inertia=TwoBodies.arm)
    builder.add_body("bracket", parent="arm", joint=rb.Fixed(), placement=steps[0])
    builder.add_body("plate", parent="bracket", joint=rb.Fixed(), placement=steps[1])
    rest = rb.Pose(whole[:3, 3], whole[:3, :3])
    builder.add_body("ball", parent="plate", joint=rb.Fixed(), placement=rest, inertia=TwoBodies.ball)
    merged = builder.build()
    assert merged.fixed_frames == {"bracket": 0, "plate": 0, "ball": 0}
    assert_same_inertia(merged, 0, TwoBodies.by_hand())
    assert_same_mechanism(merged, pendulum(inertia=TwoBodies.by_hand()).build())


def test_each_fixed_body_is_added_once():
    builder = pendulum(inertia=rb.Inertia(1.0))
    for i, place in enumerate([(1, 0, 0), (-1, 0, 0), (0, 2, 0), (0, -2, 0)]):
        builder.add_body(
            f"weight{i}", parent="arm", joint=rb.Fixed(), placement=rb.Pose(place), inertia=rb.Inertia(0.25)
        )
    model = builder.build()
    assert_same_inertia(model, 0, rb.Inertia(2.0, (0, 0, 0), (2.0, 0.5, 2.5)))


def test_a_moving_body_on_a_fixed_body_uses_its_placement():
    hinge = rb.Pose((0.4, 0, 0.1), rotation_about((0, 0, 1), 0.3))
    last = {"joint": rb.Screw((1, 1, 0), 0.1), "inertia": TwoBodies.arm}
    builder = pendulum(inertia=TwoBodies.arm)
    builder.add_body("ball", parent="arm", joint=rb.Fixed(), placement=TwoBodies.pose(), inertia=TwoBodies.ball)
    builder.add_body("hand", parent="ball", placement=hinge, **last)
    by_hand = pendulum(inertia=TwoBodies.by_hand())
    whole = homogeneous(TwoBodies.rotation, TwoBodies.translation) @ homogeneous(hinge.rotation, hinge.translation)
    by_hand.add_body("hand", parent="arm", placement=rb.Pose(whole[:3, 3], whole[:3, :3]), **last)
    merged = builder.build()
    assert merged.body_names == ("arm", "hand")
    assert merged.parent.tolist() == [-1, 0]
    assert_same_mechanism(merged, by_hand.build())


def test_bodies_fixed_after_others_moved_still_join_their_own_parent():
    """The order is not depth-first, and the numbers of moving bodies skip the fixed bodies between them."""
    builder = pendulum(inertia=rb.Inertia.sphere(1.0, mass=1.0))
    builder.add_body("mast", joint=rb.Fixed(), placement=rb.Pose((0, 0, 5)), inertia=rb.Inertia(50.0))
    builder.add_body("jib", parent="mast", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(2.0))
    builder.add_body("lamp", parent="arm", joint=rb.Fixed(), inertia=rb.Inertia(4.0))
    builder.add_body("hook", parent="jib", joint=rb.Revolute((0, 1, 0)), inertia=rb.Inertia(8.0, (0, 0, -1)))
    builder.add_body("sign", parent="jib", joint=rb.Fixed(), inertia=rb.Inertia(16.0))
    builder.add_body("ring", parent="hook", joint=rb.Fixed(), inertia=rb.Inertia(32.0, (0, 0, -1)))
    model = builder.build()
    assert model.body_names == ("arm", "jib", "hook")
    assert model.parent.tolist() == [-1, -1, 1]
    assert model.mass.tolist() == [5.0, 18.0, 40.0]
    assert model.fixed_frames == {"mast": -1, "lamp": 0, "sign": 1, "ring": 2}
    np.testing.assert_array_equal(model.placement_translation, [[0, 0, 0], [0, 0, 5], [0, 0, 0]])


def test_a_body_fixed_to_the_world_only_places_its_children():
    builder = rb.ModelBuilder(gravity=GRAVITY)
    builder.add_body("pedestal", joint=rb.Fixed(), placement=TwoBodies.pose(), inertia=rb.Inertia(1e6))
    builder.add_body("arm", parent="pedestal", joint=rb.Revolute((0, 1, 0)), inertia=TwoBodies.arm)
    by_hand = pendulum(placement=TwoBodies.pose(), inertia=TwoBodies.arm)
    model = builder.build()
    assert model.fixed_frames == {"pedestal": -1}
    assert model.mass.tolist() == [1.5]
    assert_same_mechanism(model, by_hand.build())


def test_the_name_of_a_fixed_body_is_a_frame():
    builder = pendulum(placement=rb.Pose((1, 2, 3), rotation_about((1, 0, 0), 0.5)))
    builder.add_body("ball", parent="arm", joint=rb.Fixed(), placement=TwoBodies.pose())
    model = builder.build()
    fixed = homogeneous(TwoBodies.rotation, TwoBodies.translation)
    for q in (-0.4, 2.0):
        arm = homogeneous(rotation_about((1, 0, 0), 0.5), (1, 2, 3)) @ homogeneous(
            rotation_about((0, 1, 0), q), (0, 0, 0)
        )
        for name, expected in (("arm", arm), ("ball", arm @ fixed)):
            pose = model.frame_poses([q], name)
            np.testing.assert_allclose(pose.translation, expected[:3, 3], atol=20 * EPS)
            np.testing.assert_allclose(pose.rotation, expected[:3, :3], atol=20 * EPS)


def test_frame_poses_have_the_shape_of_the_batch():
    builder = pendulum()
    builder.add_body("ball", parent="arm", joint=rb.Fixed(), placement=TwoBodies.pose())
    builder.add_body("stand", joint=rb.Fixed(), placement=TwoBodies.pose())
    model, q = builder.build(), np.linspace(-1, 1, 6).reshape(2, 3, 1)
    for name in ("arm", "ball", "stand"):
        poses = model.frame_poses(q, name)
        assert poses.translation.shape == (2, 3, 3)
        assert poses.rotation.shape == (2, 3, 3, 3)
        one = model.frame_poses(q[1, 2], name)
        np.testing.assert_allclose(poses.translation[1, 2], one.translation, atol=4 * EPS)
        np.testing.assert_allclose(poses.rotation[1, 2], one.rotation, atol=4 * EPS)
    stand = model.frame_poses(q, "stand")
    np.testing.assert_array_equal(stand.translation, np.broadcast_to(TwoBodies.translation, (2, 3, 3)))


def test_an_unknown_frame_is_refused_by_name():
    with pytest.raises(rb.ModelError, match="elbow"):
        pendulum().build().frame_poses([0.0], "elbow")


# --- immutable and picklable ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy], ids=["pickle", "copy"])
def test_a_duplicate_computes_the_same_bits(duplicate):
    rng = np.random.default_rng(12)
    bodies = [random_body(rng, kind) for kind in KINDS]
    builder_made = built(bodies, NUMBERINGS["mixed"])
    state = rng.uniform(-1, 1, (3, 10, 7))
    for model in (builder_made, builder_made.vary(mass=rng.uniform(1, 2, (10, 7)))):
        expected = model.forward_dynamics(*state)
        twin = duplicate(model)
        np.testing.assert_array_equal(twin.forward_dynamics(*state), expected)
        assert (twin.name, twin.body_names, twin.fixed_frames) == (model.name, model.body_names, model.fixed_frames)
        assert twin.batch_shape == model.batch_shape
        assert not twin.mass.flags.writeable


def test_a_pickle_keeps_the_fixed_frames():
    builder = pendulum()
    builder.add_body("ball", parent="arm", joint=rb.Fixed(), placement=TwoBodies.pose())
    model = builder.build()
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        twin.frame_poses([0.3], "ball").translation, model.frame_poses([0.3], "ball").translation
    )


FIELDS = ("parent", "placement_rotation", "placement_translation", "axis", "pitch", "mass", "cg", "inertia", "gravity")


@pytest.mark.parametrize("field", FIELDS)
def test_the_arrays_of_a_model_are_read_only(field):
    chain = rb.Model.serial_chain(2)
    for model in (pendulum().build(), chain, chain.vary(mass=np.ones((3, 2)))):
        with pytest.raises(ValueError, match="read-only"):
            getattr(model, field)[...] = 0
        with pytest.raises(AttributeError):
            setattr(model, field, 0)


def test_a_model_keeps_its_own_copy_of_its_input():
    gravity, cg, place, axis = np.array([0.0, 0, -9]), np.array([0.1, 0, -0.5]), np.ones(3), np.array([0.0, 1, 0])
    builder = rb.ModelBuilder(gravity=gravity)
    builder.add_body("arm", joint=rb.Revolute(axis), placement=rb.Pose(place), inertia=rb.Inertia(1.0, cg, (1, 1, 1)))
    model = builder.build()
    before = {field: getattr(model, field).copy() for field in FIELDS}
    for array in (gravity, cg, place, axis):
        array[:] = 77.0
    builder.add_body("ball", parent="arm", joint=rb.Fixed(), inertia=rb.Inertia(100.0))
    model.fixed_frames["ghost"] = 0
    for field, value in before.items():
        np.testing.assert_array_equal(getattr(model, field), value)
    assert model.fixed_frames == {}


def test_the_builder_copies_a_body_when_it_is_added():
    """Writing into the caller's array between add_body and build changes nothing."""
    gravity, cg, place, axis = np.array([0.0, 0, -9]), np.array([0.1, 0, -0.5]), np.ones(3), np.array([0.0, 1, 0])
    builder = rb.ModelBuilder(gravity=gravity)
    builder.add_body("arm", joint=rb.Revolute(axis), placement=rb.Pose(place), inertia=rb.Inertia(1.0, cg, (1, 1, 1)))
    for array in (gravity, cg, place, axis):
        array[:] = np.nan
    model = builder.build()
    np.testing.assert_array_equal(model.gravity, [0, 0, -9])
    np.testing.assert_array_equal(model.cg, [[0.1, 0, -0.5]])
    np.testing.assert_array_equal(model.placement_translation, [[1, 1, 1]])
    np.testing.assert_array_equal(model.axis, [[0, 1, 0]])


def test_a_builder_can_add_bodies_after_build():
    builder = pendulum()
    first = builder.build()
    builder.add_body("hand", parent="arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, (1, 0, 0)))
    second = builder.build()
    assert (first.n_bodies, second.n_bodies) == (1, 2)
    assert builder.build().mass.tolist() == second.mass.tolist()


# --- the classical benchmark ------------------------------------------------------------------------------------------


def test_the_serial_chain_is_the_classical_benchmark():
    chain = rb.Model.serial_chain(5)
    assert chain.parent.tolist() == [-1, 0, 1, 2, 3]
    assert chain.joint_types == ("revolute",) * 5
    np.testing.assert_array_equal(chain.axis, [[0, 0, 1]] * 5)
    np.testing.assert_array_equal(chain.mass, 0.1)
    np.testing.assert_array_equal(chain.cg, [[0.125, 0, 0]] * 5)
    np.testing.assert_allclose(chain.inertia, [np.diag([0, 0.1 / 192, 0.1 / 192])] * 5, atol=EPS * 0.1)
    np.testing.assert_array_equal(chain.gravity, [0, -10, 0])
    np.testing.assert_array_equal(chain.placement_rotation, [np.eye(3)] * 5)
    np.testing.assert_array_equal(chain.placement_translation, [[0, 0, 0]] + [[0.25, 0, 0]] * 4)


def test_the_serial_chain_equals_the_same_links_from_the_builder():
    builder = rb.ModelBuilder(gravity=(0, -10, 0))
    for i in range(6):
        builder.add_body(
            f"link{i}",
            parent=f"link{i - 1}" if i else None,
            joint=rb.Revolute(axis=(0, 0, 1)),
            placement=rb.Pose((0.25 if i else 0, 0, 0)),
            inertia=rb.Inertia(0.1, (0.125, 0, 0), (0, 0.1 * 0.0625 / 12, 0.1 * 0.0625 / 12)),
        )
    assert_same_mechanism(rb.Model.serial_chain(6), builder.build())


def test_default_gravity_is_the_same_for_builders_tables_and_files(tmp_path):
    """The builder, Denavit-Hartenberg tables and files use 9.81 m/s^2; the serial chain uses that of the benchmark."""
    (tmp_path / "slider.toml").write_text(
        'format = "rbchain 1"\n[[body]]\nname = "a"\njoint = { kind = "prismatic" }\nmass = 1.0'
    )
    inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    joint = '<joint name="slide" type="prismatic"><parent link="world"/><child link="a"/><axis xyz="1 0 0"/></joint>'
    (tmp_path / "slider.urdf").write_text(
        f'<robot name="slider"><link name="world"/><link name="a">{inertial}</link>{joint}</robot>'
    )
    models = [
        rb.ModelBuilder(),
        rb.io.dh.from_dh([rb.io.dh.DHLink(1.0, 0.0, 0.0, mass=1.0, inertia=(0.1, 0.1, 0.1))]),
        *(rb.load(tmp_path / f"slider.{ending}") for ending in ("toml", "urdf")),
    ]
    assert [model.gravity.tolist() for model in models] == [[0.0, 0.0, -9.81]] * 4
    assert rb.Model.serial_chain(1).gravity.tolist() == [0.0, -10.0, 0.0]
    in_study = rb.study.ModelSource(serial_chain={"n": 1}).build(tmp_path)
    assert in_study.gravity.tolist() == [0.0, -10.0, 0.0]


def test_the_serial_chain_accepts_other_parameters():
    link = rb.Inertia.cylinder(0.05, 2.0, mass=3.0, axis=(1, 0, 0), cg=(1, 0, 0))
    chain = rb.Model.serial_chain(3, length=2.0, mass=3.0, inertia=link, gravity=(0, 0, -1))
    np.testing.assert_array_equal(chain.inertia, [link.inertia] * 3)
    np.testing.assert_array_equal(chain.placement_translation[1:], [[2, 0, 0]] * 2)
    np.testing.assert_array_equal(chain.gravity, [0, 0, -1])


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 0},
        {"n": -1},
        {"n": 1.5},
        {"n": 2, "length": np.nan},
        {"n": 2, "length": np.nan, "inertia": rb.Inertia(1.0)},
        {"n": 2, "mass": -1.0},
        {"n": 2, "mass": np.nan},
        {"n": 2, "inertia": rb.Inertia(1.0, (np.nan, 0, 0))},
        {"n": 2, "inertia": rb.Inertia(1.0, inertia=(1, 1, 3))},
        {"n": 2, "gravity": (0, np.nan, 0)},
        {"n": 2, "gravity": 9.81},
    ],
    ids=lambda arguments: ", ".join(arguments),
)
def test_invalid_parameters_of_a_serial_chain_are_refused(arguments):
    with pytest.raises(rb.ModelError):
        rb.Model.serial_chain(**arguments)


# --- what cannot be is refused, by the body's name --------------------------------------------------------------------

UNPHYSICAL = {
    "mass nan": {"mass": np.nan},
    "mass infinite": {"mass": np.inf},
    "mass negative": {"mass": -1e-9},
    "cg nan": {"cg": (0, np.nan, 0)},
    "cg infinite": {"cg": (0, np.inf, 0)},
    "diagonal nan": {"inertia": (1, np.nan, 1)},
    "six numbers nan": {"inertia": (1, 0, np.nan, 1, 0, 1)},
    "diagonal infinite": {"inertia": (np.inf, np.inf, 1)},
    "negative moment": {"inertia": (1, 1, -0.1)},
    "not positive semi-definite": {"inertia": (1, 2, 0, 1, 0, 1)},
    "triangle inequality": {"inertia": (1, 1, 2.1)},
    "triangle inequality in other axes": {"inertia": TwoBodies.rotation @ np.diag([1, 1, 2.1]) @ TwoBodies.rotation.T},
}


@pytest.mark.parametrize("numbers", UNPHYSICAL.values(), ids=UNPHYSICAL)
@pytest.mark.parametrize("joint", [rb.Revolute(), rb.Fixed()], ids=["moving", "fixed"])
def test_unphysical_inertias_are_refused_with_the_name_of_the_body(numbers, joint):
    with pytest.raises(rb.ModelError, match="forearm"):
        pendulum().add_body(
            "forearm", parent="arm", joint=joint, inertia=rb.Inertia(**({"mass": 1.0, "inertia": (1, 1, 1)} | numbers))
        )


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_tensor_with_nonfinite_entries_is_refused(bad):
    """The message of Inertia cannot name the body, but it must name the error."""
    with pytest.raises(rb.ModelError, match="finite"):
        pendulum(inertia=rb.Inertia(1.0, inertia=np.diag([1.0, 1.0, bad])))


@pytest.mark.parametrize("moments", [(0, 0, 0), (0, 1, 1), (1, 1, 2), (0.3, 0.7, 1.0)])
def test_tensors_at_the_limit_of_the_triangle_inequality_are_accepted(moments):
    """Round-off must not lead to the refusal of points, thin rods and flat plates in any axes."""
    tensor = TwoBodies.rotation @ np.diag(moments) @ TwoBodies.rotation.T
    for scale in (1e-9, 1.0, 1e9):
        pendulum(inertia=rb.Inertia(1.0, (1, 0, 0), scale * tensor)).build()


def test_an_unphysical_inertia_can_be_accepted_with_a_warning():
    builder = rb.ModelBuilder(nonphysical_inertia="warn")
    builder.add_body("forearm", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 2.1)))
    with pytest.warns(UserWarning, match="forearm"):
        model = builder.build()
    np.testing.assert_array_equal(model.inertia[0], np.diag([1, 1, 2.1]))


@pytest.mark.parametrize("numbers", [{"mass": -1.0}, {"mass": 1.0, "inertia": (np.nan, 1, 1)}])
def test_accepting_unphysical_inertias_does_not_accept_other_errors(numbers):
    builder = rb.ModelBuilder(nonphysical_inertia="warn")
    with pytest.raises(rb.ModelError, match="forearm"):
        builder.add_body("forearm", joint=rb.Revolute(), inertia=rb.Inertia(**numbers))


def test_an_unknown_parent_is_refused_with_both_names():
    builder = pendulum()
    with pytest.raises(rb.ModelError, match=r"(?s)forearm.*shoulder"):
        builder.add_body("forearm", parent="shoulder", joint=rb.Revolute(), inertia=rb.Inertia(1.0))
        builder.build()


def test_a_duplicate_body_name_is_refused():
    builder = pendulum()
    with pytest.raises(rb.ModelError, match="arm"):
        builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia(1.0))
        builder.build()


def test_a_duplicate_of_a_fixed_body_name_is_refused():
    builder = pendulum()
    builder.add_body("ball", parent="arm", joint=rb.Fixed())
    with pytest.raises(rb.ModelError, match="ball"):
        builder.add_body("ball", joint=rb.Revolute(), inertia=rb.Inertia(1.0))
        builder.build()


def test_a_duplicate_joint_name_is_refused():
    builder = rb.ModelBuilder()
    builder.add_body("upper", joint=rb.Revolute(), joint_name="hinge", inertia=rb.Inertia(1.0, (1, 0, 0)))
    with pytest.raises(rb.ModelError, match="hinge"):
        builder.add_body(
            "lower", parent="upper", joint=rb.Revolute(), joint_name="hinge", inertia=rb.Inertia(1.0, (1, 0, 0))
        )
        builder.build()


@pytest.mark.parametrize(
    "parents",
    [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "a"}, {"root": None, "a": "b", "b": "c", "c": "b"}],
    ids=str,
)
@pytest.mark.parametrize("joint", [rb.Revolute(), rb.Fixed()], ids=["moving", "fixed"])
def test_a_cycle_is_refused_with_the_name_of_a_body(parents, joint):
    builder = rb.ModelBuilder()
    with pytest.raises(rb.ModelError, match=r"'[abc]'"):
        for name, parent in parents.items():
            builder.add_body(name, parent=parent, joint=joint, inertia=rb.Inertia(1.0, (1, 0, 0)))
        builder.build()


def test_a_parent_listed_after_its_child_is_refused_with_both_names():
    builder = rb.ModelBuilder()
    with pytest.raises(rb.ModelError, match=r"(?s)forearm.*shoulder"):
        builder.add_body("forearm", parent="shoulder", joint=rb.Revolute(), inertia=rb.Inertia(1.0, (1, 0, 0)))
        builder.add_body("shoulder", joint=rb.Revolute(), inertia=rb.Inertia(1.0, (1, 0, 0)))
        builder.build()


def test_an_empty_model_is_refused():
    with pytest.raises(rb.ModelError, match="crane"):
        rb.ModelBuilder(name="crane").build()


def test_a_model_without_a_moving_body_is_refused():
    builder = rb.ModelBuilder(name="statue")
    builder.add_body("block", joint=rb.Fixed(), inertia=rb.Inertia(1.0))
    with pytest.raises(rb.ModelError, match="statue"):
        builder.build()


@pytest.mark.parametrize(
    "arguments",
    [
        {"joint": None},
        {"joint": "revolute"},
        {"joint": rb.Revolute},
        {"placement": (0, 0, 1)},
        {"inertia": 3.0},
        {"placement": computed_pose(np.zeros((2, 3)), np.tile(np.eye(3), (2, 1, 1)))},
        {"parent": 0},
    ],
    ids=["no joint", "joint by name", "joint class", "bare translation", "bare mass", "many poses", "parent by number"],
)
def test_an_argument_of_the_wrong_type_is_refused_with_the_name_of_the_body(arguments):
    with pytest.raises(rb.ModelError, match="arm"):
        pendulum(**arguments).build()


@pytest.mark.parametrize(
    "rotation",
    [
        np.diag([1.0, 1.0, -1.0]),
        2 * np.eye(3),
        np.full((3, 3), np.nan),
        np.zeros((3, 3)),
        (0, 0, 0, 0),
        (0, 0, 0, np.nan),
        (1, 2, 3),
    ],
)
def test_an_invalid_rotation_of_a_placement_is_refused(rotation):
    with pytest.raises(rb.ModelError, match=r"rotation|quaternion"):
        rb.Pose(rotation=rotation)


@pytest.mark.parametrize("translation", [(0, 0, np.nan), (0, np.inf, 0), (1, 2), 1.0])
def test_an_invalid_translation_of_a_placement_is_refused(translation):
    with pytest.raises(rb.ModelError, match="translation"):
        rb.Pose(translation)


@pytest.mark.parametrize("gravity", [9.81, (0, 0), (0, 0, np.nan), (np.inf, 0, 0)])
def test_an_invalid_gravity_is_refused(gravity):
    with pytest.raises(rb.ModelError, match="gravity"):
        rb.ModelBuilder(gravity=gravity)


# --- vary -------------------------------------------------------------------------------------------------------------


def varied_values():
    """Valid values of every field, for five samples of three links."""
    rng = np.random.default_rng(13)
    tensors = np.array([[random_body(rng, "revolute").inertia for _ in range(3)] for _ in range(5)])
    return {
        "mass": rng.uniform(1, 2, (5, 3)),
        "cg": rng.uniform(-1, 1, (5, 3, 3)),
        "inertia": tensors,
        "placement_rotation": np.array([[random_body(rng, "revolute").rotation for _ in range(3)] for _ in range(5)]),
        "placement_translation": rng.uniform(-1, 1, (5, 3, 3)),
        "axis": rng.normal(size=(5, 3, 3)),
        "pitch": rng.uniform(-1, 1, (5, 3)),
        "gravity": rng.uniform(-10, 10, (5, 3)),
    }


@pytest.mark.parametrize("field", varied_values())
def test_varied_samples_equal_models_built_one_by_one(field):
    rng = np.random.default_rng(14)
    bodies = [random_body(rng, "screw") for _ in range(3)]
    q, qd, tau = rng.uniform(-1, 1, (3, 5, 3))
    values = varied_values()[field]
    found = built(bodies, [-1, 0, 0]).vary(**{field: values}).forward_dynamics(q, qd, tau)
    for chain in range(5):
        reference = described(bodies, [-1, 0, 0])
        setattr(reference, field, values[chain])
        if field == "axis":
            reference.axis = reference.axis / np.linalg.norm(reference.axis, axis=1)[:, None]
        expected = newton_euler.forward_dynamics(reference, q[chain], qd[chain], tau[chain]).astype(float)
        np.testing.assert_allclose(found[chain], expected, atol=1e-10 * np.abs(expected).max())


def test_vary_copies_its_input_and_does_not_change_the_model():
    chain, mass = rb.Model.serial_chain(3), np.ones((5, 3))
    many = chain.vary(mass=mass)
    mass[:] = 9.0
    np.testing.assert_array_equal(many.mass, 1.0)
    np.testing.assert_array_equal(chain.mass, 0.1)
    assert (chain.batch_shape, many.batch_shape) == ((), (5,))


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("mass", np.nan),
        ("mass", np.inf),
        ("mass", -0.5),
        ("cg", np.nan),
        ("inertia", np.nan),
        ("inertia", -5.0),
        ("placement_translation", np.inf),
        ("placement_rotation", np.nan),
        ("placement_rotation", 0.5),
        ("axis", np.nan),
        ("axis", 0.0),
        ("pitch", np.nan),
    ],
)
def test_an_invalid_sample_is_refused_with_body_and_index(field, bad):
    values = varied_values()[field]
    values[3, 1] = bad
    with pytest.raises(rb.ModelError, match=r"(?s)link2.*sample 3"):
        rb.Model.serial_chain(3).vary(**{field: values})


@pytest.mark.parametrize(("moments", "what"), [((1, 1, 3), "triangle"), ((1, 1, -1), "positive semi-definite")])
def test_an_unphysical_tensor_of_one_sample_is_refused_with_body_and_index(moments, what):
    tensors = varied_values()["inertia"]
    tensors[4, 2] = np.diag(moments)
    with pytest.raises(rb.ModelError, match=rf"(?s)link3.*sample 4.*{what}"):
        rb.Model.serial_chain(3).vary(inertia=tensors)


def test_an_asymmetric_tensor_of_one_sample_is_refused_with_body_and_index():
    tensors = varied_values()["inertia"]
    tensors[2, 0, 0, 1] += 0.5 * tensors[2, 0, 0, 0]
    with pytest.raises(rb.ModelError, match=r"(?s)link1.*sample 2"):
        rb.Model.serial_chain(3).vary(inertia=tensors)


def test_an_invalid_gravity_of_one_sample_is_refused_with_its_index():
    gravity = varied_values()["gravity"]
    gravity[3, 1] = np.nan
    with pytest.raises(rb.ModelError, match=r"(?s)gravity.*sample 3"):
        rb.Model.serial_chain(3).vary(gravity=gravity)


def test_an_invalid_sample_of_a_nested_batch_is_refused_with_all_indices():
    mass = np.ones((2, 4, 3))
    mass[1, 2, 0] = -1
    with pytest.raises(rb.ModelError, match=r"(?s)link1.*sample \(1, 2\)"):
        rb.Model.serial_chain(3).vary(mass=mass)


@pytest.mark.parametrize(
    ("field", "shape"),
    [
        ("mass", ()),
        ("mass", (2,)),
        ("mass", (5, 2)),
        ("mass", (5, 1)),
        ("mass", (3, 5)),
        ("cg", (3,)),
        ("cg", (5, 3)),
        ("inertia", (5, 3, 3)),
        ("inertia", (5, 3, 5)),
        ("axis", (5, 3, 2)),
        ("gravity", (5,)),
        ("pitch", (5, 4)),
        ("placement_rotation", (5, 3, 4)),
    ],
)
def test_a_wrong_shape_is_refused_with_the_shape_found_and_expected(field, shape):
    with pytest.raises(rb.ModelError) as refusal:
        rb.Model.serial_chain(3).vary(**{field: np.ones(shape)})
    assert field in str(refusal.value)
    assert str(shape) in str(refusal.value)


def test_fields_of_different_batches_are_refused():
    with pytest.raises(rb.ModelError, match="batch"):
        rb.Model.serial_chain(3).vary(mass=np.ones((5, 3)), cg=np.zeros((4, 3, 3)))
    with pytest.raises(rb.ModelError, match="batch"):
        rb.Model.serial_chain(3).vary(mass=np.ones((5, 3))).vary(cg=np.zeros((4, 3, 3)))


@pytest.mark.parametrize("field", ["length", "masses", "parent", "name", "joint_types", "frames"])
def test_an_unknown_field_is_refused_by_name(field):
    with pytest.raises(rb.ModelError, match=field):
        rb.Model.serial_chain(3).vary(**{field: np.ones(3)})


@pytest.mark.parametrize("value", ["heavy", None, {"a": 1}, [[1, 1, 1], [1, 1]]], ids=str)
def test_a_value_that_is_not_a_number_is_refused_with_the_name_of_the_field(value):
    with pytest.raises(rb.ModelError, match="mass"):
        rb.Model.serial_chain(3).vary(mass=value)
