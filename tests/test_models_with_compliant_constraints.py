"""Edited, saved, stepped and exported models with compliant constraints."""

import mujoco
import numpy as np
import pytest

import rbchain as rb
from rbchain import compiled

from .mechanisms import random_inertia, random_rotation
from .quantities import derivative
from .test_compliant_constraints import compliances_of_rows, door
from .test_editing import assert_close, assert_same_motion
from .test_native import same

pytestmark = pytest.mark.plain_python
TIME = 0.05  # relaxation time, s
START = np.array([0, 0, 0, 0, 0, 0, 1.0]), np.full(6, 1e-3)
STEP = 1e-3


def soft(rng, *names):
    """Arguments of `add_constraint` that have no short decimals."""
    given = dict(zip(("compliance", "angular_compliance"), 10.0 ** rng.uniform(-3, -1, 2), strict=True))
    return {name: given[name] for name in names} | {"relaxation_time": TIME * rng.uniform(1.0, 2.0)}


def floating_model():
    """A floating base with two arms that compliant constraints of all kinds join, beside a rigid rod and a gear."""
    rng = np.random.default_rng(20)
    builder = rb.ModelBuilder(name="floating", gravity=(1.0, 2.0, -9.0))
    for name, parent, joint in (
        ("base", None, rb.Free()),
        ("left", "base", rb.Revolute((1, 2, 3))),
        ("hand", "left", rb.Spherical()),
        ("finger", "hand", rb.Prismatic((0, 1, 0))),
        ("right", "base", rb.Universal()),
        ("wrist", "right", rb.Revolute((1, 0, 1))),
    ):
        pose = rb.Pose(rng.normal(size=3) * 0.4, random_rotation(rng))
        builder.add_body(name, parent=parent, joint=joint, placement=pose, inertia=random_inertia(rng))
    builder.add_body("tip", parent="wrist", joint=rb.Fixed(), placement=pose)
    points, axes = ({f"{name}_{s}": rng.normal(size=3) for s in "ab"} for name in ("point", "axis"))
    both = "compliance", "angular_compliance"
    builder.add_constraint(rb.HingeConstraint("hinge", "finger", "tip", **points, **axes), **soft(rng, *both))
    pose = rb.Pose(rng.normal(size=3), random_rotation(rng))
    builder.add_constraint(rb.WeldConstraint("weld", "hand", "wrist", pose_a=pose), **soft(rng, *both))
    builder.add_constraint(rb.BallConstraint("ball", None, "finger", **points), **soft(rng, "compliance"))
    builder.add_constraint(
        rb.DistanceConstraint("spring", "left", "right", **points, length=1.5), **soft(rng, "compliance")
    )
    builder.add_constraint(rb.DistanceConstraint("rod", "base", "tip", **points, length=1.5))
    builder.add_constraint(rb.CouplerConstraint("gear", "wrist", "left", ratio=0.5, offset=0.1))
    return builder.build()


FLOATING = floating_model()
ROWS = np.cumsum([0, 5, 6, 3, 1, 1, 1])  # of the constraints


def sizes(model, rows):
    """The sizes of the linear and of the angular parts of the rows (..., 17) of each constraint."""
    found = []
    for place, first, end in zip(model.description.constraints, ROWS[:-1], ROWS[1:], strict=True):
        of_points = place.rows.of_points
        found += [np.linalg.norm(part) for part in (rows[first : first + of_points], rows[first + of_points : end])]
    return np.array(found)


@pytest.mark.parametrize("root", ["left", "finger", "wrist"])
def test_a_rerooted_model_has_the_same_motion(root):
    model, turned = FLOATING, FLOATING.reroot(root)
    q, qd = model.random_state(np.random.default_rng(21))
    p, pd = model.reroot_state(root, q, qd)
    for name in ("compliance", "angular_compliance", "relaxation_time"):
        of = f"constraint_{name}"
        np.testing.assert_array_equal(getattr(turned, of), getattr(model, of))
    assert_close(sizes(turned, turned.constraint_residual(p)), sizes(model, model.constraint_residual(q)))
    zero = np.zeros(model.nv)
    accelerations = model.forward_dynamics(q, qd, zero), turned.forward_dynamics(p, pd, zero)
    assert_same_motion(model, (q, qd), turned, (p, pd), accelerations)
    forces = [sizes(m, m.constraint_forces(x, v, zero)) for m, x, v in ((model, q, qd), (turned, p, pd))]
    assert_close(forces[1], forces[0], 1e-9)


def test_a_rerooted_model_has_the_same_simulation():
    q = FLOATING.assemble(FLOATING.random_state(31)[0])
    qd = FLOATING.assemble_velocities(q, np.ones(FLOATING.nv))
    turned, settings = FLOATING.reroot("finger"), {"duration": 0.1, "rtol": 1e-9, "atol": 1e-11, "save_at": 2}
    expected = FLOATING.simulate(q, qd, **settings)
    found = turned.simulate(*FLOATING.reroot_state("finger", q, qd), **settings)
    assert expected.success
    assert found.success
    for name in FLOATING.body_names:
        poses = [model.frame_poses(m.q[-1], name) for model, m in ((FLOATING, expected), (turned, found))]
        np.testing.assert_allclose(poses[1].translation, poses[0].translation, atol=1e-7)


def test_a_locked_model_solves_the_equations_of_the_other_joints():
    q, qd = FLOATING.random_state(np.random.default_rng(23))
    free = np.r_[0:7, 11:14]  # without the hand, the dofs 7 to 9, and the finger, 10
    assert FLOATING.velocity_index.tolist() == [0, 6, 7, 10, 11, 13]
    qd[7:11] = 0.0
    stiff = FLOATING.lock({"hand": q[8:12], "finger": q[12:13]})
    p, pd = FLOATING.lock_state(["hand", "finger"], q, qd)
    J, phi = FLOATING.constraint_jacobian(q), FLOATING.constraint_residual(q)
    bias = derivative(lambda s: FLOATING.constraint_jacobian(FLOATING.integrate(q, s * qd)) @ qd)
    c, t = compliances_of_rows(FLOATING)
    H, h = FLOATING.mass_matrix(q)[np.ix_(free, free)], FLOATING.bias_forces(q, qd)[free]
    matrix = np.block([[H, -J[:, free].T], [J[:, free], np.diag(c / t**2)]])
    right = np.concatenate([-h, -bias - 2 / t * (J @ qd) - phi / t**2])
    zero = np.zeros(stiff.nv)
    expected = np.split(np.linalg.solve(matrix, right), [stiff.nv])
    assert_close(stiff.forward_dynamics(p, pd, zero), expected[0], 1e-7)
    # the two directions of the hinge are other ones in the body that carries the finger
    assert_close(sizes(stiff, stiff.constraint_forces(p, pd, zero)), sizes(stiff, expected[1]), 1e-7)


def test_a_compliant_constraint_within_one_body_disappears_with_its_joint():
    """The bearing of a locked joint holds a misfit inside, which moves nothing; a rigid one is refused."""
    for given in ({"compliance": 1e-6}, {}):
        builder = rb.ModelBuilder()
        for name in ("a", "b"):
            parent = "a" if name == "b" else None
            builder.add_body(name, parent=parent, joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
        builder.add_constraint(rb.BallConstraint("misfit", "a", "b", point_a=(1, 0, 0), point_b=(1, 0, 1e-5)), **given)
        if given:
            assert builder.build().lock({"b": 0.0}).constraint_names == ()
        else:
            with pytest.raises(rb.ModelError, match="lock: the positions violate constraint 'misfit'"):
                builder.build().lock({"b": 0.0})


def test_replaced_compliances_are_the_compliances_of_a_new_model():
    changed = door().replace(constraint_compliance=[1e-7] * 3, constraint_angular_compliance=[1e-5] * 3)
    expected = door([1e-7] * 3).constraint_forces(*START)
    np.testing.assert_array_equal(changed.constraint_forces(*START), expected)
    with pytest.raises(rb.ModelError, match="constraint_compliance is 0"):
        door().replace(constraint_compliance=[0.0] * 3)


def test_an_open_tree_has_no_compliances():
    tree = FLOATING.open_tree()
    q, qd = FLOATING.random_state(np.random.default_rng(24))
    assert tree.constraint_names == ()
    expected = np.linalg.solve(FLOATING.mass_matrix(q), -FLOATING.bias_forces(q, qd))
    assert_close(tree.forward_dynamics(q, qd), expected, 1e-10)


def test_models_and_motions_in_files_keep_every_bit(tmp_path):
    q = FLOATING.assemble(FLOATING.random_state(25)[0])
    motion = FLOATING.simulate(q, duration=0.02, method="rk4", step=STEP)
    rb.save(FLOATING, tmp_path / "floating.toml")
    motion.save(tmp_path / "motion.npz")
    loaded, stored = rb.load(tmp_path / "floating.toml"), rb.load_motion(tmp_path / "motion.npz")
    for model in (loaded, stored.model):
        same(model.description, FLOATING.description)
        np.testing.assert_array_equal(model.simulate(q, duration=0.02, method="rk4", step=STEP).q, motion.q)
    np.testing.assert_array_equal(stored.constraint_forces, motion.constraint_forces)


# --- stepping ---------------------------------------------------------------------------------------------------------


def states(count):
    """States of doors beside their hinges, and the compliances of the doors."""
    rng = np.random.default_rng(26)
    many = door(relaxation_time=1e-2).vary({"hinge1.compliance": np.linspace(1e-8, 2e-8, count)})
    return (
        many,
        START[0] + 1e-4 * rng.normal(size=(count, 7)) * [1, 1, 1, 0, 0, 0, 0],
        1e-2 * rng.normal(size=(count, 6)),
    )


@pytest.mark.parametrize("method", ["rk4", "implicit"])
def test_steps_and_pieces_are_the_motion_in_one_call_bit_for_bit(method):
    many, q, qd = states(3)
    settings = {"method": method, "step": STEP}
    whole = many.simulate(q, qd, 12 * STEP, **settings)
    stepper = many.stepper(q, qd, **settings)
    motion = many.simulate(q, qd, 5 * STEP, **settings)
    motion = many.simulate(duration=7 * STEP, continue_from=motion)
    stepper.step(4)
    stepper.step(8)
    for found in ((motion.end_q, motion.end_qd), (stepper.q, stepper.qd)):
        np.testing.assert_array_equal(found[0], whole.end_q)
        np.testing.assert_array_equal(found[1], whole.end_qd)


@pytest.mark.parametrize("method", ["rk4", "implicit"])
def test_a_sample_that_is_reset_moves_as_a_fresh_one(method):
    many, q, qd = states(3)
    settings = {"method": method, "step": STEP}
    stepper = many.stepper(q, qd, **settings)
    stepper.step(3)
    stepper.reset([1])
    stepper.step(2)
    stepper.reset([2], q=q[[0]], qd=qd[[0]])
    stepper.step(4)
    for k, start, steps in ((0, 0, 9), (1, 1, 6), (2, 0, 4)):
        fresh = many[k].simulate(q[[start]], qd[[start]], steps * STEP, **settings)
        np.testing.assert_array_equal(stepper.q[k], fresh.end_q[0])
        np.testing.assert_array_equal(stepper.qd[k], fresh.end_qd[0])


@pytest.mark.parametrize("method", ["rk45", "radau"])
def test_pieces_with_adaptive_steps_have_the_error_of_the_tolerance(method):
    q = FLOATING.assemble(FLOATING.random_state(34)[0])
    settings = {"method": method, "rtol": 1e-8, "atol": 1e-10, "save_at": 2}
    whole = FLOATING.simulate(q, duration=0.05, **settings)
    first = FLOATING.simulate(q, duration=0.02, **settings)
    motion = FLOATING.simulate(duration=0.03, continue_from=first, save_at=2)
    for found, expected in ((motion.end_q, whole.end_q), (motion.end_qd, whole.end_qd)):
        np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(whole.qd).max())


# --- export -----------------------------------------------------------------------------------------------------------


def test_generated_dynamics_and_blocks_refuse_the_constraints_by_name():
    with pytest.raises(rb.ModelError, match=r"^generate of forward_dynamics does not support closed loops.*'hinge0'"):
        door().generate(["forward_dynamics"])
    with pytest.raises(rb.ModelError, match=r"^compiled\.block_of does not support closed loops.*'hinge0'"):
        compiled.block_of(door())
    module = {}
    exec(door().generate(["mass_matrix"], language="numpy"), module)  # of the open tree
    np.testing.assert_allclose(module["mass_matrix"](START[0]), door().mass_matrix(START[0]), rtol=0, atol=1e-13)


def test_files_of_other_programs_name_the_compliances_that_they_omit(tmp_path):
    with pytest.warns(UserWarning, match="omits: compliances of constraints 'hinge0', 'hinge1', 'hinge2'"):
        rb.save(door(), tmp_path / "door.xml")
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "door.xml")).neq == 6  # two points of each hinge
    with pytest.warns(UserWarning, match="are exact"):
        again = rb.load(tmp_path / "door.xml")
    assert not any(place.is_compliant for place in again.description.constraints)
    with pytest.warns(UserWarning, match="'hinge0', 'hinge1', 'hinge2'"):
        rb.save(door(), tmp_path / "door.urdf")
