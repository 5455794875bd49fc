"""Edited models: locked joints, another root, and joined models have the dynamics of the original mechanism."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import rbchain as rb
from rbchain.model.description import VARIABLE_FIELDS

from .closed_chains import ends
from .conftest import mechanism
from .mechanisms import EVERY_KIND, JOINTS, random_inertia, random_rotation
from .test_water import immersed_tree

pytestmark = pytest.mark.plain_python
SPRINGS = ("stiffness", "rest_position", "cubic_stiffness", "damping", "friction")


def equipped_tree(kinds=EVERY_KIND, parents=None, seed=0):
    """A tree with frames, limits, visuals, drives, motors and passive forces on its joints."""
    rng = np.random.default_rng(seed)
    builder = rb.ModelBuilder(name="equipped", gravity=rng.normal(size=3) * 6)
    parents = list(range(-1, len(kinds) - 1)) if parents is None else parents
    for i, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        joint, extras = JOINTS[kind](rng), {}
        count = len(joint.dofs)
        if kind == "spherical":
            extras = {"rotor_inertia": 0.02, "passive": rb.PassiveForces(damping=0.3)}
        elif kind != "free":
            stops = {"stop_lower": -0.1, "limit_stiffness": 1.0 + rng.random(count)} if i % 2 else {}
            extras = {
                "passive": rb.PassiveForces(**dict(zip(SPRINGS, rng.random((5, count)), strict=True)), **stops),
                "limits": rb.JointLimits(
                    -rng.random(count) - 3, rng.random(count) + 3, velocity=1.0 + rng.random(count), effort=9.0
                ),
                "rotor_inertia": rng.random(count) * 1e-2,
                "gear_ratio": rng.random(count) * 5,
            }
        builder.add_body(
            f"body{i}",
            parent=None if parent < 0 else f"body{parent}",
            joint=joint,
            joint_name=f"joint {i}",
            placement=rb.Pose(rng.normal(size=3) * 0.4, random_rotation(rng)),
            inertia=random_inertia(rng),
            visuals=[rb.Visual("sphere", (0.1 + 0.01 * i,))],
            **extras,
        )
        if kind in ("revolute", "planar"):
            builder.add_drive(rb.PID(f"joint {i}", reference=0.1, kp=2.0, dof=0))
    last = f"body{len(kinds) - 1}"
    pose = rb.Pose(rng.normal(size=3), random_rotation(rng))
    builder.add_body("tool", parent=last, joint=rb.Fixed(), placement=pose, inertia=random_inertia(rng))
    builder.add_body("mount", parent="body1", joint=rb.Fixed(), placement=pose)
    builder.add_body("ground", joint=rb.Fixed(), placement=pose)
    return builder.build()


def assert_close(found, expected, tolerance=1e-11):
    scale = np.abs(expected).max(initial=0.0) + 1.0
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def all_names(model):
    return [*model.body_names, *model.fixed_frames]


def assert_same_motion(model, state, other, other_state, accelerations=None, sums=True):
    """Frames of the same names have the same poses, velocities and, if given, accelerations; and so has the whole."""
    (q, qd), (p, pd) = state, other_state
    for name in set(all_names(model)) - {"ground"}:
        one, two = model.frame_poses(q, name), other.frame_poses(p, name)
        assert_close(two.translation, one.translation)
        assert_close(two.rotation, one.rotation)
        jacobians = model.jacobian(q, name), other.jacobian(p, name)
        assert_close(jacobians[1] @ pd, jacobians[0] @ qd)
        if accelerations is not None:
            rates = model.jacobian_derivative(q, qd, name) @ qd, other.jacobian_derivative(p, pd, name) @ pd
            found = [J @ qdd + rate for J, qdd, rate in zip(jacobians, accelerations, rates, strict=True)]
            assert_close(found[1], found[0], 1e-9)
    if not sums:
        return
    assert_close(other.energy(p, pd), model.energy(q, qd))
    assert_close(other.momentum(p, pd), model.momentum(q, qd))
    assert_close(other.center_of_mass(p), model.center_of_mass(q))


def joint_parts(model, values):
    """The entries (nv,) of each joint."""
    first = [*model.velocity_index, model.nv]
    return {name: values[first[i] : first[i + 1]] for i, name in enumerate(model.joint_names)}


# --- lock -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "locked", [["joint 7"], ["joint 0"], ["joint 1", "joint 2", "joint 4"], ["joint 3", "joint 6"]]
)
def test_a_locked_model_moves_as_one_with_prescribed_joints(locked):
    """Hybrid dynamics with zero velocity and acceleration of the locked joints gives the same motion and forces."""
    model = equipped_tree(parents=[-1, 0, 0, 1, 2, 1, 0, 6])
    q, qd = model.random_state(np.random.default_rng(1))
    dofs = np.concatenate([np.arange(model.nv)[joint_parts(model, np.arange(model.nv))[name]] for name in locked])
    qd[dofs] = 0.0
    first = [*model.position_index, model.nq]
    positions = {name: q[first[i] : first[i + 1]] for i, name in enumerate(model.joint_names) if name in locked}
    stiff = model.lock(positions)
    p, pd = model.lock_state(locked, q, qd)
    assert stiff.joint_names == tuple(name for name in model.joint_names if name not in locked)
    assert set(all_names(stiff)) == set(all_names(model))
    prescribed = np.zeros(model.nv, bool)
    prescribed[dofs] = True
    tau = np.random.default_rng(2).normal(size=model.nv)
    qdd, _ = model.hybrid_dynamics(q, qd, tau, np.zeros(model.nv), prescribed)
    found = stiff.forward_dynamics(p, pd, np.delete(tau, dofs))
    assert_close(found, np.delete(qdd, dofs), 1e-10)
    # energy and momentum do not include bodies that are fixed to the world
    assert_same_motion(model, (q, qd), stiff, (p, pd), (qdd, found), sums="joint 0" not in locked)
    assert_close(stiff.passive_forces(p, pd), np.delete(model.passive_forces(q, qd), dofs))
    np.testing.assert_array_equal(stiff.position_limits, np.delete(model.position_limits, dofs, 0))
    np.testing.assert_array_equal(stiff.effort_limit, np.delete(model.effort_limit, dofs))
    np.testing.assert_array_equal(stiff.armature, np.delete(model.armature, dofs))
    assert stiff.visuals.keys() == model.visuals.keys()
    assert [drive.joint for drive in stiff.drives] == [d.joint for d in model.drives if d.joint not in locked]


def test_a_locked_model_in_water_keeps_buoyancy_and_added_mass():
    model = immersed_tree(("revolute", "free", "universal", "prismatic"))
    still = {"linear_damping", "quadratic_damping", "strip_drag"}
    model = model.replace(**{name: 0.0 * getattr(model, name) for name in still})
    q, qd = model.random_state(np.random.default_rng(3))
    name = model.joint_names[-1]
    dof = joint_parts(model, np.arange(model.nv))[name]
    qd[dof] = 0.0
    stiff = model.lock({name: q[model.position_index[-1] :]})
    prescribed = np.zeros(model.nv, bool)
    prescribed[dof] = True
    qdd, _ = model.hybrid_dynamics(q, qd, np.zeros(model.nv), np.zeros(model.nv), prescribed)
    p, pd = model.lock_state([name], q, qd)
    found = stiff.forward_dynamics(p, pd, np.zeros(stiff.nv))
    assert_close(found, np.delete(qdd, dof), 1e-9)
    assert_close(stiff.energy(p, pd), model.energy(q, qd))


@pytest.mark.parametrize(
    ("joints", "message"),
    [
        ({"elbow": 0.0}, r"lock: the model has no joint 'elbow'; its joints are \['link1', 'link2'\]"),
        ({"link3": 0.0}, r"did you mean link"),
        ({"link1": [0.0, 1.0]}, r"lock: joint 'link1': position has shape \(2,\); expected one number for a revolute"),
        ({"link1": np.nan}, r"lock: joint 'link1': position is nan; expected finite numbers"),
        ({"link1": 0.0, "link2": 0.0}, r"lock: joints contains all joints of model 'chain'; expected at least one"),
        (["link1"], r"lock: joints is \['link1'\]; expected a dict such as"),
    ],
)
def test_joints_that_cannot_be_locked_are_refused(joints, message):
    with pytest.raises(rb.ModelError, match=message):
        rb.Model.serial_chain(2).lock(joints)


def test_quaternions_of_locked_joints_have_norm_one():
    with pytest.raises(rb.ModelError, match=r"joint 'joint 2': its quaternion is .*; expected \[x, y, z, w\]"):
        equipped_tree().lock({"joint 2": [1.0, 0.0, 0.0, 1.0]})
    with pytest.raises(rb.ModelError, match=r"position has shape \(1,\); expected 4 numbers for a spherical joint"):
        equipped_tree().lock({"joint 2": 0.0})


# --- reroot -----------------------------------------------------------------------------------------------------------

WITH_FREE_INSIDE = ("free", "revolute", "free", "prismatic", "spherical")
BRANCHED = [-1, 0, 0, 1, 2, 1, 0, 6]


@pytest.mark.slow_cases("body7", "kinds2")
@pytest.mark.parametrize(
    ("kinds", "parents", "root"),
    [
        (EVERY_KIND, None, "body7"),
        (EVERY_KIND, None, "body3"),
        (EVERY_KIND, BRANCHED, "body4"),
        (EVERY_KIND, BRANCHED, "body7"),
        (WITH_FREE_INSIDE, None, "body4"),
        (WITH_FREE_INSIDE, [-1, 0, 0, 2, 2], "body3"),
    ],
)
def test_a_rerooted_model_has_the_same_motion(kinds, parents, root):
    model = equipped_tree(kinds, parents)
    turned, rng = model.reroot(root), np.random.default_rng(4)
    q, qd = model.random_state(rng, 3)
    p, pd = model.reroot_state(root, q, qd)
    assert set(all_names(model)) <= set(all_names(turned))
    assert set(turned.joint_names) == set(model.joint_names)
    assert turned.body_names[0] == root
    assert turned.joint_types[0] == "free"
    for k in range(3):
        state, other_state = (q[k], qd[k]), (p[k], pd[k])
        qdd = model.forward_dynamics(q[k], qd[k], np.zeros(model.nv))
        found = turned.forward_dynamics(p[k], pd[k], np.zeros(model.nv))
        assert_same_motion(model, state, turned, other_state, (qdd, found))
        # coordinates of joints that are not free or spherical are the same, maybe in reverse order
        for one, two in (
            (qdd, found),
            (model.passive_forces(q[k], qd[k]), turned.passive_forces(p[k], pd[k])),
            (model.armature, turned.armature),
            (model.effort_limit, turned.effort_limit),
            (model.position_limits[:, 0], turned.position_limits[:, 0]),
        ):
            ours, theirs = joint_parts(model, one), joint_parts(turned, two)
            for name, kind in zip(model.joint_names, model.joint_types, strict=True):
                if kind not in ("free", "spherical"):
                    same = theirs[name] if np.allclose(theirs[name], ours[name], rtol=1e-8) else theirs[name][::-1]
                    finite = np.isfinite(ours[name])
                    assert_close(same[finite], ours[name][finite], 1e-9)
    assert turned.visuals.keys() == model.visuals.keys()
    assert {drive.joint for drive in turned.drives} == {drive.joint for drive in model.drives}


def test_drives_of_rerooted_models_act_on_the_same_coordinates():
    """Also on the angle of a planar joint, which is the last coordinate before and the first one afterwards."""
    builder = rb.ModelBuilder(gravity=(0, 0, 0))
    inertia = rb.Inertia(1.0, cg=(0.1, 0.2, 0.0), inertia=(0.1, 0.2, 0.25))
    builder.add_body("base", joint=rb.Free(), inertia=inertia)
    builder.add_body("table", parent="base", joint=rb.Planar(), placement=rb.Pose((0.1, 0, 0.2)), inertia=inertia)
    builder.add_body("arm", parent="table", joint=rb.Revolute((1, 0, 0)), inertia=inertia)
    builder.add_drive(rb.PID("table", reference=0.3, kp=5.0, kd=1.0, dof=2))
    builder.add_drive(rb.PID("arm", reference=-0.2, kp=4.0))
    model = builder.build()
    turned = model.reroot("arm")
    q, qd = model.random_state(np.random.default_rng(5))
    settings = {"method": "rk4", "step": 0.01}
    one = model.simulate(q, qd, 0.03, drives=model.drives, save_at=2, **settings)
    two = turned.simulate(*model.reroot_state("arm", q, qd), 0.03, drives=turned.drives, save_at=2, **settings)
    p, pd = model.reroot_state("arm", one.q[-1], one.qd[-1])
    assert_close(two.q[-1], p, 1e-6)
    assert_close(two.qd[-1], pd, 1e-6)
    ours, theirs = (joint_parts(m, motion.tau[0]) for m, motion in ((model, one), (turned, two)))
    assert ours["table"][2] != 0.0
    assert_close(theirs["table"][::-1], ours["table"])
    assert_close(theirs["arm"], ours["arm"])


def test_rerooting_twice_gives_the_original_mechanism():
    model = equipped_tree(("free", "revolute", "screw", "prismatic"))
    turned = model.reroot("body3")
    back = turned.reroot("body0_body")
    q, qd = model.random_state(np.random.default_rng(6))
    p, pd = turned.reroot_state("body0_body", *model.reroot_state("body3", q, qd))
    assert_same_motion(model, (q, qd), back, (p, pd))
    assert model.reroot("body0").body_names == model.body_names
    found, _ = model.reroot_state("body0", q, qd)
    np.testing.assert_array_equal(found, q)


def test_models_that_cannot_be_rerooted_are_refused():
    with pytest.raises(rb.ModelError, match=r"'link1' is connected to the world by a revolute joint; expected a free"):
        rb.Model.serial_chain(2).reroot("link2")
    model = equipped_tree()
    for name, message in (
        ("body9", r"reroot: the model has no body 'body9'; its bodies are .*; did you mean body"),
        ("tool", r"reroot: 'tool' is a frame that is fixed to body 'body7'; expected the name of a body"),
        (3, r"reroot: the model has no body 3"),
    ):
        with pytest.raises(rb.ModelError, match=message):
            model.reroot(name)
    damped = model.replace(damping=np.where(np.arange(model.nv) == 4, 0.1, model.damping))
    with pytest.raises(rb.ModelError, match=r"the free joint 'joint 0' has damping, in the axes of its body"):
        damped.reroot("body1")
    first = model.velocity_index[2]
    damped = model.replace(damping=np.where(np.arange(model.nv) == first, 0.1, model.damping))
    with pytest.raises(rb.ModelError, match=r"the spherical joint 'joint 2' has damping, in the axes of its body"):
        damped.reroot("body3")
    damped.reroot("body1")  # the spherical joint is not reversed


def test_gravity_compensation_of_a_reversed_joint_is_refused():
    """The gravity force of a reversed joint is that of the bodies on its other side. Other joints keep theirs."""
    builder, inertia = rb.ModelBuilder(), rb.Inertia(1.0, cg=(0.1, 0.2, 0.0), inertia=(0.1, 0.2, 0.25))
    builder.add_body("base", joint=rb.Free(), inertia=inertia)
    for name in ("left", "right"):
        builder.add_body(name, parent="base", joint=rb.Revolute((0, 1, 0)), inertia=inertia)
    without_drive = builder.build()
    builder.add_drive(rb.PID("left", reference=0.3, kp=5.0, gravity_compensation=True))
    model = builder.build()
    q, qd = model.random_state(np.random.default_rng(7))
    forces = {}
    for root in ("base", "left", "right"):
        turned = without_drive.reroot(root)
        p, _ = without_drive.reroot_state(root, q, qd)
        forces[root] = joint_parts(turned, turned.gravity_forces(p))["left"]
    assert_close(forces["right"], forces["base"])
    assert abs(forces["left"] - forces["base"]) > 0.1
    model.reroot("right")
    with pytest.raises(rb.ModelError, match="the drive of joint 'left' has gravity compensation"):
        model.reroot("left")


def test_varied_models_and_drives_with_models_are_refused():
    chain = rb.Model.serial_chain(2)
    many = chain.vary(mass=[[1.0, 2.0], [3.0, 4.0]])
    builder = rb.ModelBuilder()
    for edit in (lambda: many.lock({"link1": 0.0}), lambda: many.reroot("link1"), lambda: builder.add_model(many)):
        with pytest.raises(rb.ModelError, match="expects a model without batch axes, but model 'chain' was varied"):
            edit()
    one = many[1].lock({"link2": 0.0})
    assert one.mass.tolist() == [7.0]
    assert one.nominal.mass.round(12).tolist() == [0.2]
    builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    builder.add_body("end", parent="arm", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    builder.add_drive(rb.PID("arm", 0.0, kp=1.0, gravity_compensation=True, controller_model=chain))
    with pytest.raises(rb.ModelError, match="the drive of joint 'arm' has its own model"):
        builder.build().lock({"end": 0.0})


# --- constraints ------------------------------------------------------------------------------------------------------


def closed_model(base=None):
    """Two arms with a rod between their tips, a coupler, a hinge and a weld, on a base that floats or is given."""
    builder, rng = rb.ModelBuilder(name="closed", gravity=(1.0, 2.0, -9.0)), np.random.default_rng(10)
    if base is None:
        builder.add_body("base", joint=rb.Free(), inertia=random_inertia(rng))
        base = "base"
    else:
        base = None
    for name, parent, joint in (
        ("left", base, rb.Revolute((1, 2, 3))),
        ("hand", "left", rb.Spherical()),
        ("finger", "hand", rb.Prismatic((0, 1, 0))),
        ("right", base, rb.Universal()),
        ("wrist", "right", rb.Revolute((1, 0, 1))),
        ("plate", base, rb.Free()),
    ):
        pose = rb.Pose(rng.normal(size=3) * 0.4, random_rotation(rng))
        builder.add_body(name, parent=parent, joint=joint, placement=pose, inertia=random_inertia(rng))
    pose = rb.Pose(rng.normal(size=3), random_rotation(rng))
    builder.add_body("tip", parent="wrist", joint=rb.Fixed(), placement=pose)
    points = rng.normal(size=(4, 3))
    # fewer rows than degrees of freedom in each loop, so that they do not contradict each other in any state
    builder.add_constraint(
        rb.DistanceConstraint("rod", "finger", "tip", point_a=points[0], point_b=points[1], length=1.5)
    )
    builder.add_constraint(rb.CouplerConstraint("gear", "wrist", "left", ratio=0.5, offset=0.1))
    builder.add_constraint(
        rb.HingeConstraint(
            "pin", None, "plate", point_a=points[2], point_b=points[3], axis_a=(0, 1, 2), axis_b=(1, 0, 2)
        )
    )
    builder.add_constraint(rb.BallConstraint("ball", "finger", None, point_a=points[1], point_b=points[0]))
    return builder.build()


@pytest.mark.parametrize("root", ["left", "finger", "wrist"])
def test_a_rerooted_model_keeps_its_constraints(root):
    model = closed_model()
    turned = model.reroot(root)
    q, qd = model.random_state(np.random.default_rng(11))
    p, pd = model.reroot_state(root, q, qd)
    assert turned.constraint_names == model.constraint_names
    lengths = [np.linalg.norm(m.constraint_residual(x)) for m, x in ((model, q), (turned, p))]
    np.testing.assert_allclose(lengths[1], lengths[0], rtol=1e-12)
    qdd = model.forward_dynamics(q, qd, np.zeros(model.nv))
    found = turned.forward_dynamics(p, pd, np.zeros(model.nv))
    assert_same_motion(model, (q, qd), turned, (p, pd), (qdd, found))
    ours, theirs = (m.constraint_forces(x, v, np.zeros(m.nv)) for m, x, v in ((model, q, qd), (turned, p, pd)))
    np.testing.assert_allclose(np.abs(theirs[:2]), np.abs(ours[:2]), rtol=1e-8)  # of the rod and of the gear


def test_a_locked_model_keeps_its_constraints():
    """Locking removes the columns of the locked joint from the constraint Jacobian, and the rows do not change."""
    model = closed_model()
    q, qd = model.random_state(np.random.default_rng(12))
    at, dof = model.position_index[3], joint_parts(model, np.arange(model.nv))["finger"]
    stiff = model.lock({"finger": q[at : at + 1]})
    p, _ = model.lock_state(["finger"], q, qd)
    assert_close(stiff.constraint_residual(p), model.constraint_residual(q))
    assert_close(stiff.constraint_jacobian(p), np.delete(model.constraint_jacobian(q), dof, 1))
    assert set(model.joint_names) - set(model.lock({"left": 0.0}).joint_names) == {"left", "wrist"}
    with pytest.raises(rb.ModelError, match=r"'pin'.*fixed to"):
        model.lock({"plate": [0, 0, 0, 0, 0, 0, 1], "base": [0, 0, 0, 0, 0, 0, 1]})


def test_an_added_model_keeps_its_constraints():
    """On a tilted frame that is fixed to the world, under the gravity seen from that frame, the motion is the same."""
    model, pose = closed_model(base="world"), rb.Pose((1, 2, 3), random_rotation(np.random.default_rng(13)))
    builder = rb.ModelBuilder(gravity=pose.rotation @ model.gravity)
    builder.add_body("ground", joint=rb.Fixed(), placement=pose)
    builder.add_model(model, parent="ground", prefix="one/")
    builder.add_model(model, placement=pose, prefix="two/")
    both = builder.build()
    names = model.constraint_names
    assert both.constraint_names == (*(f"one/{name}" for name in names), *(f"two/{name}" for name in names))
    q, qd = model.random_state(np.random.default_rng(14))
    x, v = np.concatenate([q, q]), np.concatenate([qd, qd])
    qdd = model.forward_dynamics(q, qd, np.zeros(model.nv))
    assert_close(both.forward_dynamics(x, v, np.zeros(both.nv)), np.concatenate([qdd, qdd]), 1e-9)
    rows = len(model.constraint_residual(q))
    for k in range(2):
        found = both.constraint_residual(x)[k * rows : (k + 1) * rows]
        np.testing.assert_allclose(np.linalg.norm(found), np.linalg.norm(model.constraint_residual(q)), rtol=1e-12)
    with pytest.raises(rb.ModelError, match=r"already has a constraint 'rod'|already has a body"):
        builder.add_model(model, prefix="one/")
    alone = rb.ModelBuilder()
    alone.add_constraint(rb.BallConstraint("rod", "left", None))
    with pytest.raises(rb.ModelError, match=r"this model already has a constraint 'rod'; expected unique names"):
        alone.add_model(model)


def closed_tree(seed=3):
    """A floating tree with a loop of two branches, a link to the world, and coupled joints; and a state of it."""
    rng = np.random.default_rng(seed)
    builder = rb.ModelBuilder(name="closed", gravity=rng.normal(size=3) * 6)
    builder.add_body("base", joint=rb.Free(), inertia=random_inertia(rng))
    for side in ("left", "right"):
        parent = "base"
        for i, kind in enumerate(("revolute", "spherical", "revolute", "prismatic")):
            joint, place = JOINTS[kind](rng), rb.Pose(rng.normal(size=3) * 0.4, random_rotation(rng))
            builder.add_body(f"{side}{i}", parent=parent, joint=joint, placement=place, inertia=random_inertia(rng))
            parent = f"{side}{i}"
        builder.add_body(f"{side} tool", parent=parent, joint=rb.Fixed(), placement=place)
    tree = builder.build()
    q, qd = tree.random_state(rng)
    position = {name: q[i] for name, i in zip(tree.joint_names, tree.position_index, strict=True)}

    def on(name, point, axis=None):
        """A point and a direction in world axes, in the axes of a body."""
        pose = tree.frame_poses(q, name).inverse()
        return pose.rotation @ point + pose.translation if axis is None else pose.rotation @ axis

    point, axis = rng.normal(size=(2, 3))
    loop, pin = ("left3", "right tool"), ("left1", "right1")
    builder.add_constraint(rb.BallConstraint("loop", *loop, **ends(point=[on(name, point) for name in loop])))
    builder.add_constraint(
        rb.DistanceConstraint(
            "rod", None, "left2", point_a=point, point_b=on("left2", point + 2 * axis), length=np.linalg.norm(2 * axis)
        )
    )
    of_pin = ends(point=[on(name, point) for name in pin], axis=[on(name, point, axis) for name in pin])
    builder.add_constraint(rb.HingeConstraint("pin", *pin, **of_pin))
    for name, joint, other, ratio in (("gear", "left2", "right2", -2.0), ("rack", "left3", "left2", 0.1)):
        offset = position[joint] - ratio * position[other]
        builder.add_constraint(rb.CouplerConstraint(name, joint, other, ratio=ratio, offset=offset))
    model = builder.build()
    return model, q, model.assemble_velocities(q, qd)


@pytest.mark.slow
def test_a_closed_chain_moves_the_same_way_with_another_root():
    model, q, qd = closed_tree()
    for root in ("left0", "left2", "right3", "right1"):
        turned = model.reroot(root)
        p, pd = model.reroot_state(root, q, qd)
        assert turned.constraint_names == model.constraint_names
        np.testing.assert_allclose(turned.constraint_residual(p), 0.0, atol=1e-10)
        np.testing.assert_allclose(turned.constraint_jacobian(p) @ pd, 0.0, atol=1e-10)
        tau, zero = np.zeros(model.nv), np.zeros(model.nv)
        accelerations = model.forward_dynamics(q, qd, tau), turned.forward_dynamics(p, pd, zero)
        assert_same_motion(model, (q, qd), turned, (p, pd), accelerations)
        powers = [x[0] for x in (model.constraint_forces(q, qd, tau), turned.constraint_forces(p, pd, zero))]
        assert_close(powers[1], powers[0], 1e-8)


def test_locked_joints_of_a_closed_chain():
    """A locked joint acts like one whose motion is prescribed, and locks the joints that are coupled to it."""
    model, q, _ = closed_tree()
    first = [*model.position_index, model.nq]
    positions = {name: q[first[i] : first[i + 1]] for i, name in enumerate(model.joint_names)}
    stiff = model.lock({"left2": positions["left2"]})
    assert set(model.joint_names) - set(stiff.joint_names) == {"left2", "left3", "right2"}
    assert stiff.constraint_names == ("loop", "rod", "pin")
    p, pd = model.lock_state(["left2"], q, np.zeros(model.nv))
    np.testing.assert_allclose(stiff.constraint_residual(p), 0.0, atol=1e-10)
    # a second way to hold the joint: its rates are rows of the constraints
    dofs = np.concatenate([joint_parts(model, np.arange(model.nv))[name] for name in ("left2", "left3", "right2")])
    rows = np.concatenate([model.constraint_jacobian(q), np.eye(model.nv)[dofs]])
    M, h = model.mass_matrix(q), model.bias_forces(q, np.zeros(model.nv))
    inverse = np.linalg.inv(M)
    qdd = -inverse @ h
    qdd -= inverse @ rows.T @ np.linalg.pinv(rows @ inverse @ rows.T) @ (rows @ qdd)
    assert_close(stiff.forward_dynamics(p, pd, pd), np.delete(qdd, dofs), 1e-8)


def parallelogram(*constraints):
    builder = rb.ModelBuilder()
    for name, x in (("left", 0.0), ("right", 1.0)):
        rod = rb.Inertia.rod(1.0, mass=1.0)
        builder.add_body(name, joint=rb.Revolute((0, 1, 0)), placement=rb.Pose((x, 0, 0)), inertia=rod)
        builder.add_body(f"{name} tip", parent=name, joint=rb.Fixed(), placement=rb.Pose((0, 0, 1)))
    builder.add_body("spare", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    for constraint in constraints:
        builder.add_constraint(constraint)
    return builder.build()


TIPS = ("left tip", "right tip")
WORLD_POINT = (np.sin(0.3), 0.0, np.cos(0.3))


@pytest.mark.parametrize(
    "constraint",
    [
        rb.DistanceConstraint("link", *TIPS, **ends(point=((0, 0, 0), (0, 0, 0))), length=1.0),
        rb.BallConstraint("link", *TIPS, point_a=(1, 0, 0)),
        rb.BallConstraint("link", "left", None, point_a=(0, 0, 1), point_b=WORLD_POINT),
        rb.HingeConstraint("link", *TIPS, point_a=(1, 0, 0), axis_a=(0, 1, 1), axis_b=(0, 1, 1)),
        rb.WeldConstraint("link", *TIPS, pose_a=rb.Pose((1, 0, 0))),
    ],
)
def test_constraints_between_bodies_that_are_fixed_to_each_other_are_checked(constraint):
    is_satisfied_at = (0.3, 0.3) if isinstance(constraint, rb.DistanceConstraint) else (0.0, 0.0)
    if constraint.frame_b is None:
        is_satisfied_at = (0.3, 0.7)
    locked = parallelogram(constraint).lock(dict(zip(("left", "right"), is_satisfied_at, strict=True)))
    assert (locked.constraint_names, locked.joint_names) == ((), ("spare",))
    with pytest.raises(
        rb.ModelError, match=r"lock: the positions violate constraint 'link', whose frames .* residual is"
    ):
        parallelogram(constraint).lock({"left": 0.1, "right": 0.2})


def test_hinges_and_welds_that_are_turned_over_are_not_satisfied():
    over = rb.Pose(rotation=np.diag([-1.0, 1.0, -1.0]))
    for constraint in (
        rb.HingeConstraint("link", *TIPS, point_a=(1, 0, 0), axis_a=(0, 1, 0), axis_b=(0, -1, 0)),
        rb.WeldConstraint("link", *TIPS, pose_a=rb.Pose((1, 0, 0)), pose_b=over),
    ):
        with pytest.raises(rb.ModelError, match=r"violate constraint 'link', .* its residual is inf, expected 0"):
            parallelogram(constraint).lock({"left": 0.0, "right": 0.0})


def test_positions_that_contradict_a_coupler_are_refused():
    model = parallelogram(rb.CouplerConstraint("gear", "right", "left", ratio=2.0, offset=0.1))
    assert model.lock({"left": 0.1, "right": 0.3}).joint_names == ("spare",)
    assert model.lock({"right": 0.3}).frame_poses([0.0], "left tip").translation[0] == pytest.approx(np.sin(0.1))
    with pytest.raises(
        rb.ModelError, match=r"0.4 of joint 'right' .* contradict .* 'gear'; expected 0.3 for joint 'ri"
    ):
        model.lock({"left": 0.1, "right": 0.4})
    with pytest.raises(rb.ModelError, match=r"joints contains all joints .* or joints that are coupled .*\['right'\]"):
        model.lock({"left": 0.1, "spare": 0.4})
    with pytest.raises(rb.ModelError, match=r"joint 'left': position has shape \(2,\); expected one number"):
        model.lock({"left": [0.1, 0.2]})


def test_residuals_of_an_added_model():
    """The world of the added model is a frame of an arm, which is turned and displaced."""
    rng = np.random.default_rng(11)
    place, flange = (rb.Pose(rng.normal(size=3), random_rotation(rng)) for _ in range(2))
    world_pose = rb.Pose(rng.normal(size=3) * 0.1, random_rotation(rng))
    part = parallelogram(
        rb.HingeConstraint(
            "hinge", None, "left", point_a=(1, 2, 3), point_b=(0, 0, 1), axis_a=(1, 2, 0), axis_b=(0, 1, 0)
        ),
        rb.WeldConstraint("weld", None, "right", pose_a=world_pose, pose_b=rb.Pose((0, 0, 1))),
        rb.BallConstraint("ball", "left tip", None, point_a=(0, 0, 1), point_b=(2, 1, 0)),
        rb.DistanceConstraint("rod", *TIPS, **ends(point=((1, 0, 0), (0, 0, 0))), length=0.7),
        rb.CouplerConstraint("gear", "spare", "left", ratio=2.0, offset=0.1),
    )
    builder = rb.ModelBuilder()
    builder.add_body("arm", joint=rb.Revolute(), inertia=random_inertia(rng))
    builder.add_body("flange", parent="arm", joint=rb.Fixed(), placement=flange)
    builder.add_model(part, parent="flange", placement=place, prefix="a/")
    builder.add_model(part, placement=place, prefix="b/")
    whole = builder.build()
    assert whole.constraint_names == tuple(f"{side}/{name}" for side in "ab" for name in part.constraint_names)
    q = rng.normal(size=3)
    both, alone = whole.constraint_residual([0.4, *q, *q]), part.constraint_residual(q)
    turns = [(rb.Pose(rotation=[0, 0, np.sin(0.2), np.cos(0.2)]) @ flange @ place).rotation, place.rotation]
    for found, turn in zip(np.split(both, 2), turns, strict=True):
        assert_close(found[:3], turn @ alone[:3])
        assert_close(np.linalg.norm(found[3:5]), np.linalg.norm(alone[3:5]))  # the two normals of an axis may turn
        assert_close(found[5:8], turn @ alone[5:8])
        assert_close(found[8:11], alone[8:11])
        assert_close(found[11:14], turn @ alone[11:14])
        assert_close(found[14:], alone[14:])
    with pytest.raises(rb.ModelError, match=r"add_model: this model already has a body 'a/left'"):
        builder.add_model(part, prefix="a/")
    other = rb.ModelBuilder()
    other.add_body("motor", joint=rb.Revolute(), inertia=random_inertia(rng))
    other.add_body("arm", joint=rb.Revolute(), inertia=random_inertia(rng))
    other.add_constraint(rb.CouplerConstraint("a/gear", "arm", "motor", ratio=2.0))
    with pytest.raises(
        rb.ModelError, match=r"add_model: this model already has a constraint 'a/gear'; expected unique"
    ):
        other.add_model(part, prefix="a/")


def test_a_model_without_its_constraints_is_an_open_tree():
    model, q, qd = closed_tree()
    tree = model.open_tree()
    assert tree.constraint_names == ()
    expected = np.linalg.solve(model.mass_matrix(q), -model.bias_forces(q, qd))
    assert_close(tree.forward_dynamics(q, qd, np.zeros(model.nv)), expected, 1e-9)


@pytest.mark.plain_python
def test_an_open_tree_warns_of_drives_of_coupled_joints():
    builder = rb.ModelBuilder()
    for name in ("motor", "arm"):
        builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    builder.add_constraint(rb.CouplerConstraint("gear", "arm", "motor", ratio=0.5))
    builder.add_drive(rb.PID("motor", 0.5, kp=1.0))
    with pytest.warns(UserWarning, match=r"drives of joints \['motor'\] act on these joints only"):
        assert builder.build().open_tree().drives


@pytest.mark.parametrize("edit", [lambda m: m.lock({"left2": 0.2}), lambda m: m.reroot("right2")])
def test_edited_closed_chains_can_be_saved_and_read(edit, tmp_path):
    model = edit(closed_tree()[0])
    rb.save(model, tmp_path / "edited.toml")
    assert_same_model(rb.load(tmp_path / "edited.toml"), model)


# --- join -------------------------------------------------------------------------------------------------------------


def assert_same_model(found, expected):
    for field in VARIABLE_FIELDS:
        np.testing.assert_allclose(getattr(found, field), getattr(expected, field), rtol=1e-14, atol=1e-15)
    assert found.body_names == expected.body_names
    assert found.joint_names == expected.joint_names
    assert found.joint_types == expected.joint_types
    assert found.fixed_frames == expected.fixed_frames
    np.testing.assert_array_equal(found.parent, expected.parent)
    np.testing.assert_array_equal(found.description.limits, expected.description.limits)
    assert found.visuals.keys() == expected.visuals.keys()
    assert [(type(d), d.joint, d.dof) for d in found.drives] == [(type(d), d.joint, d.dof) for d in expected.drives]


@pytest.mark.parametrize("name", ["equipped", "immersed", "puma560", "every_joint_forest", "floating_tree"])
def test_a_model_added_to_an_empty_builder_is_the_same_model(name):
    made = {"equipped": equipped_tree, "immersed": lambda: immersed_tree(EVERY_KIND)}
    model = made[name]() if name in made else mechanism(name)
    builder = rb.ModelBuilder(
        name=model.name,
        gravity=model.gravity,
        nonphysical_inertia=model.description.nonphysical_inertia,
        fluid_density=float(model.fluid_density),
    )
    builder.add_model(model)
    assert_same_model(builder.build(), model)


def test_joined_models_have_a_mass_matrix_of_blocks():
    one, two = equipped_tree(("revolute", "universal", "screw")), equipped_tree(("free", "planar"), seed=1)
    builder = rb.ModelBuilder(gravity=one.gravity)
    builder.add_model(one, prefix="one/", placement=rb.Pose((1, 2, 3)))
    builder.add_model(two, prefix="two/")
    both = builder.build()
    (q, qd), (p, pd) = one.random_state(np.random.default_rng(7)), two.random_state(np.random.default_rng(8))
    x, v = np.concatenate([q, p]), np.concatenate([qd, pd])
    assert_close(both.mass_matrix(x), block_diag(one.mass_matrix(q), two.mass_matrix(p)))
    heavy = two.replace(gravity=one.gravity)
    assert_close(both.bias_forces(x, v), np.concatenate([one.bias_forces(q, qd), heavy.bias_forces(p, pd)]))
    assert both.joint_names == (*(f"one/{n}" for n in one.joint_names), *(f"two/{n}" for n in two.joint_names))
    expected = [*(f"one/{d.joint}" for d in one.drives), *(f"two/{d.joint}" for d in two.drives)]
    assert [drive.joint for drive in both.drives] == expected
    at = both.frame_poses(x, "one/tool").translation - one.frame_poses(q, "tool").translation
    assert_close(at, [1.0, 2.0, 3.0])


def test_a_hand_on_an_arm_is_the_model_built_by_hand():
    """The hand is attached twice to a frame that is fixed to the arm, turned and displaced."""
    rng = np.random.default_rng(9)
    links, fingers = [random_inertia(rng) for _ in range(2)], [random_inertia(rng) for _ in range(2)]
    flange = rb.Pose((0.1, 0.2, 0.3), random_rotation(rng))
    places = [rb.Pose(rng.normal(size=3), random_rotation(rng)) for _ in range(2)]
    finger_place = rb.Pose((0.0, 0.1, 0.0), random_rotation(rng))

    def add_arm(builder):
        builder.add_body("upper", joint=rb.Revolute(), inertia=links[0])
        builder.add_body(
            "lower", parent="upper", joint=rb.Prismatic(), inertia=links[1], placement=rb.Pose((0.5, 0, 0))
        )
        builder.add_body("flange", parent="lower", joint=rb.Fixed(), placement=flange)

    hand = rb.ModelBuilder(name="hand", gravity=(0, 0, 1))
    hand.add_body("palm", joint=rb.Fixed(), placement=finger_place)
    hand.add_body("thumb", parent="palm", joint=rb.Revolute((1, 0, 0)), inertia=fingers[0], placement=finger_place)
    hand.add_body("tip", parent="thumb", joint=rb.Spherical(), inertia=fingers[1], placement=finger_place)
    hand = hand.build()
    joined, whole = rb.ModelBuilder(name="whole"), rb.ModelBuilder(name="whole")
    for builder in (joined, whole):
        add_arm(builder)
    for side, place in zip(("left", "right"), places, strict=True):
        joined.add_model(hand, parent="flange", placement=place, prefix=f"{side}/")
        names = {name: f"{side}/{name}" for name in ("palm", "thumb", "tip")}
        palm = place @ finger_place
        thumb = palm @ finger_place
        whole.add_body(
            names["thumb"], parent="flange", joint=rb.Revolute((1, 0, 0)), inertia=fingers[0], placement=thumb
        )
        whole.add_body(
            names["tip"], parent=names["thumb"], joint=rb.Spherical(), inertia=fingers[1], placement=finger_place
        )
        whole.add_body(names["palm"], parent="flange", joint=rb.Fixed(), placement=palm)
    found, expected = joined.build(), whole.build()
    assert_same_model(found, expected)
    q, qd = expected.random_state(rng)
    assert_close(found.forward_dynamics(q, qd, qd), expected.forward_dynamics(q, qd, qd), 1e-12)


def test_models_that_do_not_fit_are_refused():
    chain = rb.Model.serial_chain(2)
    wet = immersed_tree(("revolute", "prismatic"))
    puma = mechanism("puma560")
    builder = rb.ModelBuilder()
    builder.add_model(chain, prefix="left/")
    for arguments, message in (
        ((chain, {"prefix": "left/"}), r"this model already has a body 'left/link1'; expected unique names"),
        ((chain, {"parent": "link2", "prefix": "x/"}), r"add_model: parent is 'link2'; expected one of \['left/link1'"),
        ((chain, {"placement": (0, 0, 1)}), r"add_model: placement is \(0, 0, 1\); expected one Pose"),
        ((chain, {"prefix": 1}), r"add_model: prefix is 1; expected text"),
        (("chain", {}), r"add_model: other is 'chain'; expected a Model"),
        ((wet, {}), r"has the fluid_density .* and this builder has 0 kg/m\^3; expected equal densities"),
        ((puma, {"prefix": "p/"}), r"body 'p/"),
    ):
        with pytest.raises(rb.ModelError, match=message):
            builder.add_model(arguments[0], **arguments[1])
    assert builder.build().body_names == ("left/link1", "left/link2")  # nothing was added


@pytest.mark.parametrize("edit", [lambda m: m.lock({"joint 4": [0.1, 0.2]}), lambda m: m.reroot("body7")])
def test_edited_models_can_be_saved_and_read(edit, tmp_path):
    model = edit(equipped_tree())
    rb.save(model, tmp_path / "edited.toml")
    assert_same_model(rb.load(tmp_path / "edited.toml"), model)


@pytest.mark.parametrize("joint", ["link1", "link1_deflection"])
def test_a_joint_has_one_motor_at_most(joint):
    motor = {"stiffness": 20.0, "rotor_inertia": 1e-5, "gear_ratio": 50.0}
    elastic = rb.Model.serial_chain(2).with_motor("link1", **motor)
    message = f"with_motor: joint '{joint}' already has a motor, the body 'link1_motor' with the deflection 'link1_defl"
    with pytest.raises(rb.ModelError, match=message):
        elastic.with_motor(joint, **motor)
    assert elastic.with_motor("link2", **motor).nv == 4


def test_a_massless_body_with_a_child_is_no_motor():
    """Only the name of the joint behind a body without mass shows that `with_motor` has added it."""
    builder, hinge = rb.ModelBuilder(), rb.Revolute((0, 0, 1))
    builder.add_body("fork", joint=hinge, inertia=rb.Inertia(0.0), rotor_inertia=1e-3)
    builder.add_body("wheel", parent="fork", joint=hinge, inertia=rb.Inertia.rod(0.2, mass=0.5))
    assert builder.build().with_motor("fork", 20.0).nv == 3


def test_the_nominal_model_of_an_added_model_is_kept():
    builder = rb.ModelBuilder(gravity=(0, 0, -9.81))
    builder.add_body("a", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=2.0))
    builder.add_constraint(rb.DistanceConstraint("rope", "a", None, point_a=(1, 0, 0), point_b=(3.0, 0, 0), length=2.0))
    part = builder.build()
    varied = part.vary(mass=[2.5], constraint_length=[2.1])
    both = rb.ModelBuilder(gravity=(0, 0, -9.81))
    both.add_body("base", joint=rb.Prismatic(), inertia=rb.Inertia(mass=1.0))
    both.add_model(varied, parent="base", prefix="x/")
    both.add_model(part, parent="base", prefix="y/")
    model = both.build()
    assert (model.mass.tolist(), model.nominal.mass.tolist()) == ([1.0, 2.5, 2.0], [1.0, 2.0, 2.0])
    assert model.constraint_length.tolist() == [2.1, 2.0]
    assert model.nominal.constraint_length.tolist() == [2.0, 2.0]
    assert model.nominal.body_names == model.body_names
    assert model.nominal.constraint_names == model.constraint_names
