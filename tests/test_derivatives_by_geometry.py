"""Derivatives of motions by the placements and the axes of joints, and by the points of springs and bushings."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbchain as rb
from rbchain.model.pose import computed_pose

from . import test_sensitivities as links
from .test_sensitivities import DURATION, LINKS, START, STEP, TIGHT, equations_of_two_links, extrapolated, two_links
from .test_sensitivities_of_closed_chains import slides_of, trammel

plain = pytest.mark.plain_python
ENDS = {
    rb.SpringDamper: ("point_a", "point_b"),
    rb.Bushing: ("pose_a_translation", "pose_b_translation", "pose_a_rotation", "pose_b_rotation"),
}
SPAN = 0.02  # of motions of the tree, s
FIXED = {"method": "rk4", "step": 0.005, "save_at": [SPAN]}
WEIGHTS, STEPS = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280]), np.array([1.0, 2, 3, 4, -1, -2, -3, -4])


def rate_of_turned_links(state, turns):
    """The rate of two links whose joints are turned in their placements by these angles, without their springs."""
    (M, h), v = equations_of_two_links(state + np.append(turns, [0.0, 0.0]), LINKS), state[2:]
    b = -h - np.array(LINKS["damping"]) * v - np.array(LINKS["stiffness"]) * state[:2]
    D = M[0, 0] * M[1, 1] - M[0, 1] ** 2
    return np.array([*v, (M[1, 1] * b[0] - M[0, 1] * b[1]) / D, (M[0, 0] * b[1] - M[0, 1] * b[0]) / D])


@plain
def test_placements_of_two_links_agree_with_complex_steps(monkeypatch):
    names = ["link2.placement_translation.x", "placement_rotation", "placement_translation"]
    motion = two_links().simulate(START[:2], START[2:], DURATION, derivatives=names, save_at=[DURATION], **TIGHT)
    length, turns, translations = (motion.derivatives[name][-1] for name in names)
    assert length.shape == (4,) and turns.shape == translations.shape == (4, 2, 3)
    np.testing.assert_array_equal(length, translations[:, 1, 0])
    assert not translations[:, 0].any()  # the first joint moves the mechanism as a whole
    for i in range(2):
        turn = np.eye(2)[i] * 1j * STEP
        end = extrapolated(lambda s, turn=turn: rate_of_turned_links(s, turn), START.astype(complex), DURATION)
        np.testing.assert_allclose(turns[:, i, 2], end.imag / STEP, rtol=0, atol=1e-9)
    monkeypatch.setattr(links, "LENGTH", links.LENGTH + 1j * STEP)
    end = extrapolated(lambda s: links.rate_of_two_links(s, LINKS), START.astype(complex), DURATION)
    np.testing.assert_allclose(motion.q[-1], end.real[:2], rtol=0, atol=1e-11)
    np.testing.assert_allclose(length, end.imag / STEP, rtol=0, atol=1e-9)


def tree():
    """A tree with a joint of each type, with axes and placements in general directions."""
    rng = np.random.default_rng(8)
    builder = rb.ModelBuilder(gravity=(1.0, -2.0, -9.0))
    joints = {
        "base": (rb.Free(), None),
        "turret": (rb.Revolute((0.2, -0.3, 1.0)), "base"),
        "slide": (rb.Prismatic((1.0, 0.4, -0.2)), "turret"),
        "cardan": (rb.Universal((1.0, 0.2, 0.0), (-0.1, 0.5, 1.0)), "slide"),
        "screw": (rb.Screw((0.3, 1.0, 0.2), pitch=0.05), "turret"),
        "ball": (rb.Spherical(), "screw"),
        "tip": (rb.Revolute((0.0, 1.0, -0.5)), "ball"),
    }
    for name, (joint, parent) in joints.items():
        placement = rb.Pose(rng.uniform(-0.4, 0.4, 3), Rotation.from_rotvec(rng.uniform(-1, 1, 3)).as_matrix())
        root = rng.normal(size=(3, 3))
        inertia = rb.Inertia(
            rng.uniform(0.5, 2.0), cg=rng.uniform(-0.2, 0.2, 3), inertia=0.02 * root @ root.T + np.eye(3)
        )
        builder.add_body(name, parent=parent, joint=joint, placement=placement, inertia=inertia)
    return builder.build()


def start_of(model):
    rng = np.random.default_rng(5)
    q = model.integrate(model.neutral(), rng.uniform(-0.8, 0.8, model.nv))
    return q, rng.uniform(-1.5, 1.5, model.nv)


def forces():
    root = np.random.default_rng(4).normal(size=(2, 6, 6))
    K, D = root @ np.swapaxes(root, -1, -2)
    turn = Rotation.from_rotvec([0.3, -0.2, 0.1]).as_matrix()
    return [
        rb.Wrench("cardan", force=(3.0, -2.0, 1.0), moment=(0.2, 0.1, -0.3), point=(0.1, 0.2, 0.3)),
        rb.Wrench("ball", force=(-1.0, 2.0, 2.0), moment=(0.3, 0.5, 0.2), point=(0.3, -0.2, 0.1), axes="body"),
        rb.SpringDamper(
            "cardan", "tip", point_a=(0.1, 0.2, 0.3), point_b=(0.3, -0.1, 0.2), stiffness=20.0, damping=2.0,
            rest_length=0.2, name="cord",
        ),
        rb.SpringDamper(None, "slide", point_a=(1, 1, 0), point_b=(0.1, 0, 0), stiffness=5.0, damping=1.0, name="line"),
        rb.Bushing(
            "base", "screw", stiffness=3.0 * K, damping=0.3 * D,
            pose_a=rb.Pose((0.1, 0, 0.2), turn), pose_b=rb.Pose((0, 0.4, -0.3)), name="mount",
        ),
    ]  # fmt: skip


@plain
@pytest.mark.parametrize("name", ["placement_translation", "placement_rotation", "axis"])
def test_geometry_of_a_tree_with_forces_agrees_with_differences(name):
    """With equal steps, the errors of both are nearly equal."""
    model, h, given = tree(), 2e-3, {"forces": forces()}
    q, qd = start_of(model)
    motion = model.simulate(q, qd, SPAN, derivatives=[name], **FIXED | given)
    found = motion.derivatives[name][-1]
    value = getattr(model, name)
    assert found.shape == (2 * model.nv, len(value), 3)
    largest = 0.0
    for i in range(len(value)):
        joint = model.joint_types[model.kernel_model.dofs.body[i]] if name == "axis" else ""
        if joint in ("free", "spherical"):
            assert not found[:, i].any()
            continue
        for axis in range(3):
            changed = np.tile(value, (8, *[1] * value.ndim))
            for sample, step in enumerate(h * STEPS):
                turn = Rotation.from_rotvec(step * np.eye(3)[axis]).as_matrix()
                if name == "placement_translation":
                    changed[sample, i, axis] += step
                elif name == "placement_rotation":
                    changed[sample, i] = value[i] @ turn
                else:
                    changed[sample, i] = turn @ value[i]
            ends = model.vary(**{name: changed}).simulate(
                np.tile(q, (8, 1)), np.tile(qd, (8, 1)), SPAN, **FIXED | given
            )
            moves = np.concatenate([model.difference(motion.q[-1:], ends.q[:, -1]), ends.qd[:, -1]], -1)
            wanted = WEIGHTS @ (moves[:4] - moves[4:]) / h
            largest = max(largest, np.abs(wanted).max())
            np.testing.assert_allclose(found[:, i, axis], wanted, rtol=0, atol=1e-8, err_msg=f"{i} {axis}")
    assert largest > 0.1


def moved_end(force, field, axis, steps):
    """Return the force with an end that has moved along an axis, or turned about it, in each sample."""
    if not field.startswith("pose"):
        return replace(force, **{field: np.array(getattr(force, field)) + np.outer(steps, np.eye(3)[axis])})
    name, kind = field.rsplit("_", 1)
    pose = getattr(force, name)
    if kind == "translation":
        poses = computed_pose(
            pose.translation + np.outer(steps, np.eye(3)[axis]), np.tile(pose.rotation, (steps.size, 1, 1))
        )
    else:
        turns = Rotation.from_rotvec(np.outer(steps, np.eye(3)[axis])).as_matrix()
        poses = computed_pose(np.tile(pose.translation, (steps.size, 1)), pose.rotation @ turns)
    return replace(force, **{name: poses})


@plain
def test_ends_of_springs_and_bushings_agree_with_differences():
    model, h, given = tree(), 2e-3, forces()
    q, qd = start_of(model)
    paths = {
        f"{force.name}.{field}": (i, field) for i, force in enumerate(given) for field in ENDS.get(type(force), ())
    }
    motion = model.simulate(q, qd, SPAN, derivatives=[*paths, "cord.point_b.y"], forces=given, **FIXED)
    np.testing.assert_array_equal(motion.derivatives["cord.point_b.y"], motion.derivatives["cord.point_b"][..., 1])
    for path, (i, field) in paths.items():
        found = motion.derivatives[path][-1]
        assert found.shape == (2 * model.nv, 3) and np.abs(found).max() > 1e-3
        for axis in range(3):
            varied = [*given[:i], moved_end(given[i], field, axis, h * STEPS), *given[i + 1 :]]
            ends = model.simulate(np.tile(q, (8, 1)), np.tile(qd, (8, 1)), SPAN, forces=varied, **FIXED)
            moves = np.concatenate([model.difference(motion.q[-1:], ends.q[:, -1]), ends.qd[:, -1]], -1)
            wanted = WEIGHTS @ (moves[:4] - moves[4:]) / h
            np.testing.assert_allclose(found[:, axis], wanted, rtol=0, atol=1e-8, err_msg=f"{path} {axis}")


def test_a_length_follows_from_a_motion():
    """The distance between the joints of two links."""
    t, path = np.linspace(0.0, 0.5, 6), "link2.placement_translation.x"
    true = two_links().replace({path: 0.46})
    motion = true.simulate([0.3, -0.7], duration=0.5, save_at=t)
    fit = rb.fit(two_links(), motion, [path], starts=1, bounds={path: (0.3, 0.7)})
    np.testing.assert_allclose(fit.values[path], 0.46, rtol=1e-6)
    assert fit.units == {path: "m"}
    design = rb.experiment_design(two_links(), [rb.Measurement(t, [0.3, -0.7], [0.0, 0.0])], [path], noise=1e-3)
    assert 0 < design.standard_deviations[path] < 1e-2


@plain
def test_samples_have_their_own_geometry():
    model = two_links()
    places = np.tile(model.placement_translation, (3, 1, 1))
    places[:, 1, 0] += [0.0, 0.1, 0.2]
    many, given = model.vary(placement_translation=places), {"derivatives": ["placement_translation"], **FIXED}
    found = many.simulate(np.tile(START[:2], (3, 1)), np.tile(START[2:], (3, 1)), SPAN, **given)
    for i in range(3):
        one = many[i].simulate(START[:2], START[2:], SPAN, **given)
        np.testing.assert_allclose(
            found.derivatives["placement_translation"][i], one.derivatives["placement_translation"], rtol=0, atol=1e-13
        )


@plain
def test_geometry_without_derivatives_is_refused_by_name():
    two, names = two_links(), ["link2.axis", "placement_translation"]
    own = [rb.ComputedTorque("link1", 0.5, kp=20.0, kd=4.0, controller_model="own"), rb.PID("link2", 0.1, kp=2.0)]
    cord = rb.SpringDamper(None, "link2", **{"point_a": (1, 0, 0), "point_b": (0, 0, 0)}, stiffness=1.0, name="cord")
    immersed = rb.Immersion(volume=1e-3, added_mass=(0.1, 0.1, 0.1, 0, 0, 0))
    builder = rb.ModelBuilder(gravity=(0, 0, -10), fluid_density=1000.0)
    builder.add_body("hull", joint=rb.Free(), inertia=rb.Inertia.sphere(0.1, mass=1.0), immersion=immersed)
    hull, measured = builder.build(), rb.Measurement([0.0, 0.1], [START[:2]] * 2)
    for call, message in (
        (
            lambda: trammel().simulate(*np.split(slides_of((0.4, 1.1)), 2), 0.1, derivatives=["placement_translation"]),
            "contains placement_translation, but the model has closed loops, .* expected an open chain in air",
        ),
        (lambda: hull.simulate(duration=0.1, derivatives=["hull.placement_rotation.x"]), "but the model is in water"),
        (
            lambda: two.simulate(START[:2], duration=0.1, drives=own, derivatives=names),
            "contains link2.axis, placement_translation, but the controllers use these parameters too",
        ),
        (
            lambda: tree().simulate(duration=0.1, derivatives=["ball.axis.0"]),
            "has no derivative; expected a joint with",
        ),
        (lambda: rb.fit(two, measured, ["axis"]), "contains 'axis', a rotation, which fit does not support"),
        (lambda: rb.fit(two, measured, ["link2.placement_rotation"]), "a rotation, which fit does not support"),
        (
            lambda: rb.fit(two, measured, ["cord.point_a"], forces=[cord]),
            "a point or a pose of a force, which fit does",
        ),
    ):
        with pytest.raises(rb.ArgumentError, match=message):
            call()
