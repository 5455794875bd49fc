"""Every parameter of a study has the effect on the samples that its description states, and bodies stay valid."""

import dataclasses
import re

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.transform import Rotation

import rbchain as rb
from rbchain.acting.sampled import controller_of
from rbchain.errors import StudyError
from rbchain.model.description import VARIABLE_FIELDS
from rbchain.model.passive import OF_POSITION
from rbchain.study import Dispersion
from rbchain.study.describe.description import Description
from rbchain.study.describe.parameter_table import (
    BODY,
    BUSHING,
    CONSTRAINT,
    CONTACT,
    DRIVE,
    DRY_FRICTION,
    ENCODER,
    EVENT,
    FUNCTION,
    HARD_STOPS,
    MODEL,
    PARAMETERS,
    REFUSED,
    SIGNAL_OWNER,
    SPRING,
    VELOCITY_SENSOR,
    WRENCH,
)
from rbchain.study.plan import plan as plans
from rbchain.study.plan.effects import effects_of
from rbchain.study.plan.samples import Samples

from ..test_numeric_fields import CLASSES
from ..test_water import immersed_tree

CLOCK = {"period": 0.01, "delay": 1e-3, "latency": 1e-3, "rate_limit": 9.0, "resolution": 0.1}


def mechanism():
    """A tree with every joint, in water, with everything on its joints that can be."""
    model = immersed_tree(("revolute", "free", "universal", "prismatic", "screw"))
    ones = np.where(np.isin(model.dof_types, ("revolute", "prismatic", "screw")), 1.0, 0.0)
    ones[model.kernel_model.dofs.in_quaternion_joint] = 0.0
    of_all = dict.fromkeys(("rotor_inertia", "damping", "friction"), np.full(model.nv, 0.1))
    return model.vary(
        **of_all,
        static_friction=np.full(model.nv, 0.2),
        stiffness=ones,
        cubic_stiffness=ones,
        rest_position=0.1 * ones,
        limit_stiffness=10 * ones,
        limit_damping=ones,
        friction_asymmetry=np.full(model.nv, 0.01),
        stop_lower=np.where(ones > 0, -2.0, -np.inf),
        stop_upper=np.where(ones > 0, 2.0, np.inf),
        strip_drag=np.ones(model.n_bodies),
    )


def looped():
    """A parallelogram, and a joint that is coupled to its crank."""
    builder, rod = rb.ModelBuilder(), rb.Inertia.rod(1.0, mass=1.0)
    for name, x in (("crank", 0.0), ("rocker", 1.0)):
        builder.add_body(name, joint=rb.Revolute((0, 1, 0)), placement=rb.Pose((x, 0, 0)), inertia=rod)
    builder.add_body("slide", joint=rb.Prismatic(), inertia=rod)
    builder.add_constraint(
        rb.DistanceConstraint("strut", "crank", "rocker", point_a=(0, 0, 1), point_b=(0, 0, 1), length=1.0)
    )
    builder.add_constraint(rb.CouplerConstraint("rack", "slide", "crank", ratio=0.5, offset=0.1))
    return builder.build()


def welded(**compliances):
    """A free body that is welded to the world."""
    builder = rb.ModelBuilder()
    builder.add_body("body", joint=rb.Free(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    builder.add_constraint(rb.WeldConstraint("weld", None, "body"), **compliances)
    return builder.build()


def touching():
    """A rod with dry friction and stops above a plane, and a sphere beside it."""
    builder, rod = rb.ModelBuilder(gravity=(0, 0, -10)), rb.Inertia.rod(1.0, mass=1.0)
    limits = rb.JointLimits(lower=-1.0, upper=1.0)
    builder.add_body("rod", joint=rb.Revolute((0, 1, 0)), inertia=rod, limits=limits)
    builder.add_body("slide", joint=rb.Prismatic(), placement=rb.Pose((2, 0, 0)), inertia=rod)
    model = builder.build()
    contacts = [
        rb.DryFriction(
            "rod", kinetic=1.0, static=9.0, kinetic_backward=1.5, static_backward=9.5, gear_friction=0.1, name="dry"
        ),
        rb.HardStops("rod", restitution=0.5, name="stops"),
        rb.SphereContact(
            "rod",
            point=(1, 0, 0),
            radius=0.1,
            plane_point=(0, 0, -3.0),
            plane_normal=(0, 0, 2),
            friction=0.5,
            restitution=0.5,
            name="contact",
        ),
        rb.SphereSphereContact(
            "rod",
            "slide",
            point_a=(1, 0, 0),
            point_b=(1, 0, 0),
            radius_a=0.1,
            radius_b=0.2,
            restitution=0.5,
            name="contact of spheres",
        ),
        rb.EllipsoidContact(
            "rod",
            point=(1, 0, 0),
            semi_axes=np.diag((0.1, 0.1, 0.05)),
            plane_point=(0, 0, -4.0),
            plane_normal=(0, 0, 1),
            name="contact of an ellipsoid",
        ),
        rb.CapsuleCapsuleContact(
            "rod",
            "slide",
            point_a=(1, 0, 0),
            point_b=(1, 2, 0),
            half_axis_a=(0, 0.1, 0),
            half_axis_b=(0, 0, 0.2),
            radius_a=0.1,
            radius_b=0.2,
            name="contact of capsules",
        ),
    ]
    return model, contacts


def drives(model):
    screw = model.joint_names[4]
    encoder = rb.Encoder(screw, resolution=1e-3, bias=1e-3, noise=1e-3, name="encoder")
    return [
        rb.PID(
            model.joint_names[0], 0.2, kp=3.0, kd=0.1, ki=0.2, limit=5.0, feedforward=0.3, feedforward_time_constant=0.1
        ),
        rb.PrescribedForce(model.joint_names[3], 1.0),
        rb.Sampled(rb.PID(screw, 0.1, kp=1.0), sensors=[encoder], **CLOCK),
        rb.Actuator(screw, time_constant=1e-3, stall_torque=5.0, no_load_speed=9.0, gear_friction=0.2),
    ]


def forces(model):
    stiff, soft, point = 10.0 * np.eye(6), np.eye(6), (0.1, 0.2, 0.3)
    return [
        rb.Wrench(
            model.body_names[1],
            force=(1.0, 0.0, rb.Signal.sines(1.0, 2.0)),
            moment=(0.5, 0.0, 0.2),
            point=point,
            name="wrench",
        ),
        rb.Current((0.1, 0.0, 0.2)),
        rb.SpringDamper(
            None,
            model.body_names[1],
            point_a=(0, 0, 1),
            point_b=point,
            stiffness=10.0,
            damping=1.0,
            rest_length=0.5,
            name="spring",
        ),
        rb.Bushing(
            model.body_names[0],
            model.body_names[2],
            stiffness=stiff,
            damping=soft,
            pose_a=rb.Pose(point),
            pose_b=rb.Pose(point),
            name="bushing",
        ),
    ]


def spring(t, q, qd, parameters, out):
    out[0] -= parameters[0] * q[0] + parameters[1] * qd[0]


def pulse(t, q, qd, parameters, states, out):
    states[0] += 1.0
    out[0] = states[0]


def driven():
    """Three links with every other drive and sensor, at most one on each joint."""
    model = rb.Model.serial_chain(4)
    velocity = rb.VelocitySensor("link4", resolution=1e-3, bias=1e-3, noise=1e-3, name="velocity")
    return model, [
        rb.PrescribedAcceleration("link1", 1.0),
        rb.PrescribedVelocity("link2", 1.0),
        rb.PrescribedPosition("link3", 1.0),
        rb.Sampled(rb.PID("link4", 0.1, kp=1.0), sensors=[velocity], **CLOCK),
        rb.Actuator("link4", torque_speed=[[0.0, 5.0], [9.0, 0.0]]),
        rb.UserForces(spring, parameters=[1.0, 2.0]),
        rb.Sampled(rb.UserForces(pulse), states=[1.0, 2.0], limit=5.0, joints=["link4"], **CLOCK),
    ]


def far(t, q, qd, parameters, out):
    out[0] = q[0] - parameters[0] - parameters[1]


def events(model):
    return [
        rb.Event(model.joint_names[0], value=0.3, name="event of a position"),
        rb.Event(model.joint_names[0], value=0.3, quantity="velocity", name="event of a velocity"),
        rb.Event(function=far, parameters=[0.1, 0.2]),
    ]


#: Names of the owners of parameters, or patterns that match them.
OWNERS = {
    BODY: "*",
    CONSTRAINT: "*",
    FUNCTION: "[sp]*",
    ENCODER: "encoder",
    VELOCITY_SENSOR: "velocity",
    WRENCH: "wrench",
    SPRING: "spring",
    BUSHING: "bushing",
    DRY_FRICTION: "dry",
    HARD_STOPS: "stops",
    CONTACT: "contact*",
    EVENT: "[ef]*",
}
#: Parameters of the drives that only `driven` has.
OF_DRIVEN = [
    name
    for name, parameter in PARAMETERS.items()
    if name == "torque_speed" or name.startswith(("prescribed", "function", "velocity_sensor"))
]
ON_CONTACT = (DRY_FRICTION, HARD_STOPS, CONTACT)


def plan_of(vary, model=None, **keys):
    model = model or mechanism()
    acting = drives(model) if len(model.joint_names) > 3 and "drives" not in keys else []
    tau = np.full(model.nv, 0.0 if "drives" in keys else 0.1)
    joints = [controller_of(drive).joint for drive in acting]
    tau[[model.velocity_index[model.joint_names.index(joint)] for joint in joints]] = 0.0
    given = {
        "model": model,
        "samples": 20,
        "vary": vary,
        "simulate": {"duration": 0.1, "qd": 0.5, "tau": tau},
        "drives": acting,
        "forces": forces(model) if model.in_water else [],
    }
    return plans.plan_of(Description(**given | keys))


def path_of(model, parameter):
    """The path of a parameter for something that has it."""
    owner, field = PARAMETERS[parameter].owner, PARAMETERS[parameter].field_in_paths(parameter)
    names = list(model.joint_names)
    if parameter == "pitch":
        names = [name for name, kind in zip(names, model.joint_types, strict=True) if kind == "screw"]
    elif parameter == "tau":
        names = names[1:2]  # without a drive
    elif parameter in (*OF_POSITION, "axis", "q"):
        names = names[:1]
    elif parameter.startswith("prescribed"):
        names = ["link1", "link2", "link3"][["acceleration", "velocity", "position"].index(parameter[11:]) :][:1]
    elif parameter == "feedforward_time_constant":
        names = names[:1]  # not of a controller in Sampled
    elif owner == DRIVE:
        names = ["*"] if parameter != "resolution" else names[4:5]
    elif owner == EVENT and field == "value":
        names = [parameter.replace("event_", "event of a ")]
    elif owner == MODEL:
        names = ["current"] if PARAMETERS[parameter].classes else []
    elif owner in OWNERS:
        names = [OWNERS[owner]]
    return f"{{{','.join(names)}}}.{field}" if names else field


def changed_chains(plan, count=6):
    """Return the first samples and their draws."""
    values = plan.draw(0, count)
    return plan.samples(values, np.arange(count)), values


def test_the_position_of_a_free_joint_is_displaced_in_its_placement_frame_and_turned_in_body_axes():
    """x, y and z of q change as numbers, for every orientation and its draw."""
    builder = rb.ModelBuilder()
    pose = rb.Pose((1.0, 0.0, 0.0), Rotation.from_rotvec((0.2, 0.1, 0.4)))
    builder.add_body("base", joint=rb.Free(), placement=pose, inertia=rb.Inertia.sphere(0.1, mass=1.0))
    start, turns = Rotation.from_rotvec((0.9, -0.3, 0.5)), np.array([0.7, -1.0, 2.0])
    q = np.array([1.0, 2.0, 3.0, *start.as_quat()])
    drawn = {"q.0": (0.3, "add"), "q.1": (-4.0, "set"), "q.2": (0.5, "add")}
    drawn |= {f"q.{3 + i}": (turns[i], "add") for i in range(3)}
    vary = {f"base.{field}": rb.Dispersion(stats.uniform(x, 1e-9), how=how) for field, (x, how) in drawn.items()}
    study = rb.Study(builder.build(), samples=2, vary=vary, simulate={"duration": 1.0, "q": q})
    samples, _ = changed_chains(study.plan, 2)
    np.testing.assert_allclose(samples.q[:, :3], [[1.3, -4.0, 3.5]] * 2, rtol=0, atol=1e-8)
    expected = (start * Rotation.from_rotvec(turns)).as_matrix()
    found = Rotation.from_quat(samples.q[:, 3:]).as_matrix()
    np.testing.assert_allclose(found, [expected] * 2, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("parameter", "how"),
    [(name, how) for name, x in PARAMETERS.items() if x.owner != SIGNAL_OWNER for how in x.ways],  # in test_signals
)
def test_every_parameter_reaches_the_kernels_and_reports_its_effect(parameter, how):
    model = looped() if parameter.startswith("constraint") else mechanism()
    model = welded() if parameter.startswith("constraint_axes") else model
    if parameter.endswith(("compliance", "relaxation_time")):
        model = welded(compliance=1e-6, angular_compliance=1e-4, relaxation_time=1e-3)
    keys = {}
    if PARAMETERS[parameter].owner in ON_CONTACT:
        model, keys["forces"] = touching()
    if parameter in OF_DRIVEN:
        model, keys["drives"] = driven()
    if PARAMETERS[parameter].owner == EVENT:
        keys["events"] = events(model)
    if parameter == "q" and how == "set":
        with pytest.raises(
            StudyError, match=r"how is 'set' for a rotation of .*, a free or spherical joint; expected 'add'"
        ):
            effects_of(plan_of({"*.q": rb.Dispersion(stats.norm(0, 0.1), how="set")}, model))
    small = stats.uniform(-2.5 if parameter == "stop_lower" else 2.5, 0.1) if how == "set" else stats.uniform(0.0, 0.1)
    distribution = stats.uniform(0.9, 0.05) if how == "multiply" else small
    if parameter == "friction" and how == "set":  # at most the friction at rest
        distribution = stats.uniform(0.12, 0.05)
    if parameter == "friction_asymmetry" and how != "multiply":  # at most the friction
        distribution = stats.uniform(0.02, 0.05)
    is_limited = PARAMETERS[parameter].owner in ON_CONTACT or parameter == "gear_friction"
    if is_limited and how == "set":  # at most the static friction, or 1
        distribution = stats.uniform(9.6 if "static" in parameter else 0.4, 0.05)
    path = path_of(model, parameter)
    reached = effects_of(plan_of({path: rb.Dispersion(distribution, how=how)}, model, **keys))
    assert list(reached) == [path]
    words = {
        "constraint_point_a": "point_a of ",
        "constraint_point_b": "point_b of ",
        "constraint_axes_b": "axes_b of ",
        "constraint_offset": "offset of rack",
        "constraint_length": "length of strut",
        "constraint_ratio": "ratio of rack",
        "q": "initial positions",
        "qd": "initial velocities",
        "tau": "joint forces",
        "mass": "mass",
        "mass_and_inertia": "mass, inertia",
    }
    in_actions = [name for name, given in PARAMETERS.items() if given.classes]
    words |= {name: "events" for name in in_actions if name.startswith("event")}
    assert words.get(parameter, "drives and forces" if parameter in in_actions else " of ") in reached[path]


def closing_plan(assemble, lengths=(0.95, 1.05), **keys):
    """Parallelograms with rods of several lengths; with the crank at 0.5 rad, those that are too long cannot close."""
    lengths = {"*.length": stats.uniform(lengths[0], lengths[1] - lengths[0])}
    points = {"*.point_b.z": rb.Dispersion(stats.uniform(-0.05, 0.1), how="add")}
    ratio = {"*.ratio": stats.uniform(0.4, 0.2)}
    simulate = {
        "duration": 0.05,
        "method": "rk4",
        "step": 0.01,
        "q": [0.5, 0.4, 0.0],
        "qd": [1.0, 0.0, 0.0],
        "save_at": 2,
    }
    given = {"model": looped(), "samples": 12, "vary": lengths | points | ratio, "outputs": {"motion": True}}
    return plans.plan_of(Description(**given | {"simulate": simulate | {"assemble": assemble}} | keys))


@pytest.mark.plain_python
@pytest.mark.parametrize("assemble", [True, {"fixed": "crank"}])
def test_samples_start_from_closed_configurations(assemble):
    plan = closing_plan(assemble)
    values = plan.draw(0, 6)
    many, motion = plan.simulate(plan.samples(values, np.arange(6)))
    assert (motion.status == rb.Status.DONE).all()
    np.testing.assert_allclose(many.constraint_length[:, 0], values[:, 0])
    np.testing.assert_allclose(many.constraint_point_b[:, 0, 2], 1.0 + values[:, 1])
    np.testing.assert_allclose(many.constraint_ratio[:, 1], values[:, 2])
    start = motion.q[:, 0], motion.qd[:, 0]
    np.testing.assert_allclose(many.constraint_residual(start[0]), 0.0, atol=1e-10)
    rates = (many.constraint_jacobian(start[0]) @ start[1][..., None])[..., 0]
    np.testing.assert_allclose(rates, 0.0, atol=1e-10)
    if assemble is not True:
        np.testing.assert_allclose(start[0][:, 0], 0.5, atol=1e-12)
        np.testing.assert_allclose(start[1][:, 0], 1.0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.plain_python
def test_samples_that_cannot_be_assembled_have_a_status_and_do_not_change_the_others():
    plan = closing_plan({"fixed": ["crank"]}, (0.5, 3.5))
    found = plan.compute(0, 12)
    failed = found["status"] == rb.Status.NOT_ASSEMBLED
    assert failed.any()
    assert (~failed).any()
    assert (found["status"][~failed] == rb.Status.DONE).all()
    assert np.isnan(found["q"][failed]).all()
    assert np.isfinite(found["q"][~failed]).all()
    for first, last in ((0, 5), (5, 12)):
        for name, part in plan.compute(first, last).items():
            np.testing.assert_array_equal(part, found[name][first:last], err_msg=name)


@pytest.mark.plain_python
def test_states_that_are_not_assembled_have_to_be_closed():
    plan = closing_plan(False)
    assert plan.nominal.simulation.assembly is None
    assert (plan.compute(0, 3)["status"] == rb.Status.NOT_ASSEMBLED).all()


@pytest.mark.plain_python
def test_assembly_that_does_not_fit_the_model_is_refused(arm):
    with pytest.raises(StudyError, match=r"simulate.assemble is given, but model .* has no constraints; remove"):
        plan_of({"*.mass": stats.norm(1, 0.1)}, arm, simulate={"duration": 1.0, "assemble": True})
    with pytest.raises(StudyError, match=r"simulate.assemble: fixed: the model has no joint 'cranck'.*crank"):
        closing_plan({"fixed": ["cranck"]})
    with pytest.raises(StudyError, match=r"simulate.assemble.*unknown key 'fix'; expected one of fixed"):
        closing_plan({"fix": ["crank"]})
    with pytest.raises(StudyError, match=r"simulate.assemble: found 'yes'; expected true, false or a table such as"):
        closing_plan("yes")
    with pytest.raises(StudyError, match=r"'rack' has no 'length'; expected one of ratio, offset"):
        closing_plan(True, vary={"rack.length": stats.norm(1, 0.1)})


def test_mass_and_inertia_scale_together():
    model = mechanism()
    plan = plan_of({"*.mass_and_inertia": rb.Dispersion(stats.uniform(0.5, 1.0), how="multiply")}, model)
    chains, values = changed_chains(plan)
    many = chains.build()
    assert np.allclose(many.mass, model.mass * values, rtol=1e-15)
    assert np.allclose(many.inertia, model.inertia * values[..., None, None], rtol=1e-14)


def test_varying_mass_alone_does_not_change_the_tensor(arm):
    plan = plan_of({"*.mass": rb.Dispersion(stats.uniform(0.9, 0.2), how="multiply")}, arm)
    chains, values = changed_chains(plan)
    many = chains.build()
    assert np.allclose(many.mass, arm.mass * values, rtol=1e-15)
    assert np.array_equal(np.broadcast_to(many.inertia, (6, 2, 3, 3)), np.broadcast_to(arm.inertia, (6, 2, 3, 3)))


def test_a_perturbed_inertia_is_that_of_the_stretched_body():
    """The tensor follows from the second moments of points that are moved to exp(E / 2) x."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 3)) * [0.1, 0.2, 0.3]
    points -= points.mean(0)
    tensor = sum(x @ x * np.eye(3) - np.outer(x, x) for x in points) / 400
    model = rb.Model.serial_chain(1, inertia=rb.Inertia(1.0, inertia=tensor))
    distribution = {"type": "normal", "std": 1.5}
    chains, values = changed_chains(plan_of({"*.inertia": distribution}, model))
    found = chains.build().inertia[:, 0]
    for strain, inertia in zip(values, found, strict=True):
        xx, yy, zz, xy, xz, yz = strain
        exponents, axes = np.linalg.eigh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) / 2)
        moved = points @ (axes * np.exp(exponents)) @ axes.T
        expected = sum(x @ x * np.eye(3) - np.outer(x, x) for x in moved) / 400
        assert np.allclose(inertia, expected, rtol=0, atol=1e-12 * np.trace(expected))
        moments = np.linalg.eigvalsh(inertia)
        assert moments[0] + moments[1] >= moments[2] * (1 - 1e-12)


def test_a_misaligned_axis_is_rotated_by_the_drawn_vector():
    model = rb.Model.serial_chain(2)
    dispersion = {"*.axis.[xy]": rb.Normal(std="2 deg")}
    chains, values = changed_chains(plan_of(dispersion, model))
    turns = Rotation.from_rotvec(np.pad(values.reshape(-1, 2, 2), ((0, 0), (0, 0), (0, 1))).reshape(-1, 3))
    assert np.allclose(chains.build().axis.reshape(-1, 3), turns.apply([0.0, 0.0, 1.0]), rtol=0, atol=1e-15)
    assert 0.5 < np.degrees(np.abs(values)).mean() < 4


def test_a_misplaced_joint_is_rotated_and_translated():
    model = rb.Model.serial_chain(2)
    dispersions = {
        "link2.placement_rotation": stats.norm(0, 0.1),
        "link2.placement_translation": rb.Dispersion(stats.norm(0, 0.01), how="add"),
    }
    chains, values = changed_chains(plan_of(dispersions, model))
    many = chains.build()
    turns = Rotation.from_rotvec(values[:, :3]).as_matrix()
    assert np.allclose(many.placement_rotation[:, 1], model.placement_rotation[1] @ turns, rtol=0, atol=1e-15)
    assert np.allclose(many.placement_translation[:, 1], model.placement_translation[1] + values[:, 3:], rtol=1e-15)
    assert np.array_equal(many.placement_translation[:, 0], np.broadcast_to(model.placement_translation[0], (6, 3)))


def test_a_payload_equals_with_payload(arm):
    dispersion = {"link2.payload": rb.Dispersion(stats.uniform(0, 2), point=(0.25, 0, 0))}
    chains, values = changed_chains(plan_of(dispersion, arm))
    expected = arm.with_payload("link2", mass=values[:, 0], cg=(0.25, 0, 0))
    assert np.array_equal(chains.build().inertia, expected.inertia)
    assert np.array_equal(chains.build().mass, expected.mass)


def test_initial_states_are_set_or_displaced_along_the_joints():
    model = mechanism()
    q, _ = model.random_state(np.random.default_rng(0))
    dispersion = {"*.q": rb.Dispersion(stats.norm(0, 0.1), how="add")}
    chains, values = changed_chains(plan_of(dispersion, model, simulate={"duration": 0.1, "q": q, "qd": 0.5}))
    at, dof = (of_all[model.joint_types.index("free")] for of_all in (model.position_index, model.velocity_index))
    assert np.allclose(chains.q[:, at : at + 3], q[at : at + 3] + values[:, dof : dof + 3], rtol=0, atol=1e-14)
    along_axes = np.delete(np.arange(model.nv), range(dof, dof + 3))  # the turns of the free joint, and other joints
    found = model.difference(q, chains.q)[:, along_axes]
    assert np.allclose(found, values[:, along_axes], rtol=0, atol=1e-12)
    first = {f"{model.joint_names[0]}.q": stats.norm(0, 0.1)}
    chains, values = changed_chains(plan_of(first, model, simulate={"duration": 0.1, "q": q}))
    at = model.position_index[0]
    assert np.allclose(chains.q[:, at], values[:, 0], rtol=0, atol=1e-14)
    assert np.array_equal(np.delete(chains.q, at, 1), np.broadcast_to(np.delete(q, at), (6, q.size - 1)))


def test_gains_references_and_wrenches_may_vary_per_sample():
    model = mechanism()
    first = model.joint_names[0]
    vary = {
        f"{first}.kp": rb.Dispersion(stats.uniform(0.5, 1), how="multiply"),
        f"{first}.reference": stats.norm(0, 0.1),
        "*.force.z": stats.norm(0, 0.1),
        "current.velocity.x": rb.Dispersion(stats.uniform(0.5, 1), how="multiply"),
    }
    chains, values = changed_chains(plan_of(vary, model))
    assert np.allclose(chains.drives[0].kp, 3.0 * values[:, 0], rtol=1e-15)
    assert np.allclose(chains.drives[0].reference(0.3), 0.2 + values[:, 1], rtol=1e-15)
    assert chains.drives[0].kd == 0.1
    assert np.allclose(chains.forces[0].force[2](0.3), np.sin(0.6) + values[:, 2], rtol=1e-14)
    assert np.allclose(chains.forces[1].velocity[0](0.0), 0.1 * values[:, 3], rtol=1e-15)


def test_a_shared_dispersion_has_one_draw_for_all_targets(arm):
    own = {"*.damping": stats.uniform(0, 1)}
    plan = plan_of(own, arm)
    assert plan.columns == ("link1.damping", "link2.damping")
    plan = plan_of({"*.damping": rb.Dispersion(stats.uniform(0, 1), shared=True)}, arm)
    assert plan.columns == ("*.damping",)
    chains, values = changed_chains(plan)
    assert np.array_equal(chains.build().damping, np.repeat(values, 2, 1))


def test_a_dispersion_without_effect_is_refused(arm):
    """Neither link has friction, so a factor has no effect."""
    plan = plan_of({"*.friction": rb.Dispersion(stats.uniform(0.5, 1), how="multiply")}, arm)
    with pytest.raises(StudyError, match=r'vary."\*.friction" has no effect on the model'):
        effects_of(plan)


def test_effects_on_many_bodies_name_the_first_and_the_last():
    plan = plan_of({"*.damping": stats.uniform(0, 1)}, rb.Model.serial_chain(20))
    expected = "damping of link1, link2, link3, link4, link5, link6, link7, ..., link20 (20 bodies)"
    assert effects_of(plan) == {"*.damping": expected}


@pytest.mark.plain_python
def test_every_number_of_drives_forces_and_events_varies_or_is_refused_with_a_reason():
    for kind in CLASSES:
        fields = [field.name for field in kind.numeric_fields]
        varies = {p.field.name for p in PARAMETERS.values() if kind in p.classes and p.field is not None}
        for name in fields:
            assert name in varies, (kind, name)
        others = [x.name for x in dataclasses.fields(kind) if str(x.type) in ("int", "float", "int | None")]
        assert set(others) - set(fields) - {"direction"} <= set(REFUSED), kind
    for name, reason in REFUSED.items():
        with pytest.raises(StudyError, match=re.escape(f"{name!r} cannot vary: {reason}")):
            plan_of({f"link1.{name}": stats.norm(0, 1)}, rb.Model.serial_chain(2))


@pytest.mark.plain_python
def test_each_parameter_and_state_of_a_function_varies_on_its_own():
    model, acting = driven()
    vary = {"spring.parameters.1": rb.Dispersion(stats.norm(1, 1), how="multiply"), "pulse.states.0": stats.norm(0, 1)}
    chains, values = changed_chains(plan_of(vary, model, drives=acting))
    np.testing.assert_array_equal(chains.drives[5].parameters, np.stack([np.ones(6), 2.0 * values[:, 0]], -1))
    np.testing.assert_array_equal(chains.drives[6].states, np.stack([values[:, 1], np.full(6, 2.0)], -1))


@pytest.mark.plain_python
def test_a_sample_with_a_varied_function_moves_as_with_these_numbers():
    model, state = rb.Model.serial_chain(1, gravity=(0, 0, 0)), ([0.3], [0.1])
    settings = {"duration": 0.05, "method": "rk4", "step": 0.01}
    vary = {"*.parameters": stats.uniform(0.1, 1.0)}
    drive = rb.UserForces(spring, parameters=[1.0, 2.0])
    simulate = settings | {"q": state[0], "qd": state[1], "save_at": 2}
    plan = plan_of(vary, model, drives=[drive], simulate=simulate)
    assert plan.columns == ("spring.parameters.0", "spring.parameters.1")
    values = plan.draw(0, 3)
    _, motion = plan.simulate(plan.samples(values, np.arange(3)))
    states = [np.tile(x, (3, 1)) for x in state]
    expected = model.simulate(*states, drives=[rb.UserForces(spring, parameters=values)], save_at=2, **settings)
    np.testing.assert_array_equal(motion.q[:, -1], expected.q[:, -1])
    assert np.unique(motion.q[:, -1]).size == 3


@pytest.mark.plain_python
def test_units_of_sensors_follow_the_type_of_the_joint():
    slide, hinge = rb.Prismatic((1, 0, 0)), rb.Revolute((0, 1, 0))
    for joint, unit in ((slide, "mm"), (hinge, "deg")):
        builder = rb.ModelBuilder()
        builder.add_body("body", joint=joint, inertia=rb.Inertia.sphere(0.1, mass=1.0))
        encoder, velocity = rb.Encoder("body", name="encoder"), rb.VelocitySensor("body", name="velocity")
        drive = rb.Sampled(rb.PID("body", 0.1, kp=1.0), period=0.01, sensors=[encoder, velocity])
        scale = {"mm": 1e-3, "deg": np.pi / 180}[unit]
        for owner, of_time in (("encoder", ""), ("velocity", "/s")):
            drawn = {"type": "uniform", "low": f"1 {unit}{of_time}", "high": f"2 {unit}{of_time}"}
            plan = plan_of({f"{owner}.bias": drawn}, builder.build(), drives=[drive])
            values = plan.draw(0, 5)
            assert ((values > scale) & (values < 2 * scale)).all()


@pytest.mark.plain_python
def test_every_field_of_a_model_that_vary_accepts_is_a_parameter():
    assert set(VARIABLE_FIELDS) <= set(PARAMETERS)


@pytest.mark.plain_python
def test_a_body_that_is_welded_with_varied_axes_is_turned_by_the_drawn_vector():
    vary = {"*.axes_a": stats.norm(0, 0.1)}
    simulate = {"duration": 0.01, "method": "rk4", "step": 0.01, "save_at": 2, "assemble": True}
    plan = plan_of(vary, welded(), simulate=simulate, drives=[])
    values = plan.draw(0, 4)
    many, motion = plan.simulate(plan.samples(values, np.arange(4)))
    found = many.body_poses(motion.q[:, 0]).rotation[:, 0]
    np.testing.assert_allclose(found, Rotation.from_rotvec(values).as_matrix(), rtol=0, atol=1e-9)


@pytest.mark.plain_python
def test_a_varied_torque_speed_curve_keeps_its_velocities():
    model, acting = driven()
    vary = {"*.torque_speed": stats.uniform(0.5, 1.0)}
    chains, values = changed_chains(plan_of(vary, model, drives=acting))
    np.testing.assert_array_equal(chains.drives[4].torque_speed[..., 0], np.tile([0.0, 9.0], (6, 1)))
    np.testing.assert_array_equal(chains.drives[4].torque_speed[..., 1], values * [5.0, 0.0])


@pytest.mark.plain_python
def test_a_varied_pose_of_a_bushing_is_moved_and_turned():
    model = mechanism()
    turn = {"*.pose_a_rotation": stats.norm(0, 0.1)}
    move = {"*.pose_b_translation.y": rb.Dispersion(stats.norm(0, 0.1), how="add")}
    chains, values = changed_chains(plan_of(turn | move, model))
    bushing = chains.forces[3]
    turns = Rotation.from_rotvec(values[:, :3]).as_matrix()
    np.testing.assert_allclose(bushing.pose_a.rotation, turns, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(bushing.pose_b.translation[:, 1], 0.2 + values[:, 3])
    np.testing.assert_array_equal(bushing.pose_b.translation[:, [0, 2]], np.tile([0.1, 0.3], (6, 1)))


def test_every_parameter_is_documented():
    """`Dispersion` lists all parameters, but for the other fields of `PassiveForces`, which it mentions together."""
    named = set(re.findall(r'"(\w+)"', Dispersion.__doc__))
    fields = {parameter.field_in_paths(name) for name, parameter in PARAMETERS.items()}
    assert fields - named <= {field.name for field in dataclasses.fields(rb.PassiveForces)}


def test_samples_without_dispersions_equal_the_model(arm):
    chains = Samples(plan_of({"*.mass": stats.uniform(1, 1)}, arm).nominal, np.arange(3))
    assert chains.build().batch_shape == ()
    assert np.array_equal(chains.q, np.zeros((3, 2)))


def height(t, q, qd, parameters, out):
    out[0] = q[0] - parameters[0] * parameters[1]


@pytest.mark.plain_python
def test_the_values_and_the_parameters_of_events_vary():
    """A mass falls from 5 m: it passes z after sqrt(2 (5 - z) / g), and has a speed v after v / g."""
    builder = rb.ModelBuilder(gravity=(0, 0, -10))
    builder.add_body("mass", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(1.0))
    quantities = ("position", "velocity", "function")
    study = rb.Study(
        builder.build(),
        samples=3,
        simulate=rb.Simulation(1.1, q=5.0, rtol=1e-9, atol=1e-11),
        events=[
            rb.Event("mass", value=1.0, name="position"),
            rb.Event("mass", quantity="velocity", value=-1.0, name="velocity"),
            rb.Event(function=height, parameters=[2.0, 1.0], name="function"),
        ],
        vary={
            "position.value": rb.Uniform(1.0, 2.0),
            "velocity.value": rb.Dispersion(rb.Uniform("-2 m/s", "2 m/s"), how="add"),
            "function.parameters.1": rb.Dispersion(rb.Uniform(0.2, 1.8), how="multiply"),
        },
        measures=[rb.Measure(f"time of {name}", "event_time", event=name) for name in quantities],
    )
    assert study.effects == {"position.value": "events", "velocity.value": "events", "function.parameters.1": "events"}
    assert study.plan.units == ("m", "m/s", "1")
    results = study.run()
    level, speed, factor = results.parameters.values.T
    np.testing.assert_allclose(results["time of position"], np.sqrt((5.0 - level) / 5.0), rtol=1e-9)
    np.testing.assert_allclose(
        results["time of velocity"], np.where(speed < 1.0, (1.0 - speed) / 10.0, np.nan), rtol=1e-9
    )
    np.testing.assert_allclose(results["time of function"], np.sqrt((5.0 - 2.0 * factor) / 5.0), rtol=1e-9)
    drawn, _, motion = study.sample(2)
    assert motion.events[0].t[0] == results["time of position"][2].item()
    assert drawn["position.value"] == level[2]


@pytest.mark.plain_python
def test_parameters_without_a_named_dimension_have_units():
    """Stiffness, damping and gains, of joints that turn and that slide, also in texts."""
    builder = rb.ModelBuilder()
    for name, joint in (("turn", rb.Revolute()), ("slide", rb.Prismatic())):
        builder.add_body(name, joint=joint, inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    paths = ("turn.stiffness", "slide.stiffness", "turn.damping", "slide.damping", "slide.kp", "spring.stiffness")
    study = rb.Study(
        builder.build(),
        samples=2,
        simulate=rb.Simulation(0.1),
        drives=[rb.PID("slide", 0.1, kp=1.0)],
        forces=[rb.SpringDamper(None, "slide", point_a=(0, 0, 0), point_b=(1, 0, 0), stiffness=1.0, name="spring")],
        vary={path: rb.Uniform(1.0, 2.0) for path in paths} | {"turn.rotor_inertia": rb.Uniform("1 kg m^2", 2.0)},
    )
    units = ("N m/rad", "N/m", "N m s/rad", "N s/m", "N/m", "N/m", "kg m^2")
    assert study.plan.units == units
    assert study.run().parameter_units.values.tolist() == list(units)
    spring = study.description.model_copy(update={"vary": {"spring.stiffness": rb.Dispersion(rb.Normal(std="1 N/mm"))}})
    assert plans.plan_of(spring).drawn.columns[0].distribution.std == 1000.0
    wrong = study.description.model_copy(update={"vary": {"spring.stiffness": rb.Dispersion(rb.Normal(std="1 N"))}})
    with pytest.raises(StudyError, match="found '1 N'; expected a number and a unit such as '1 N/m'"):
        plans.plan_of(wrong)


@pytest.mark.plain_python
def test_bodies_may_have_the_names_of_fields_that_cannot_vary():
    builder = rb.ModelBuilder()
    builder.add_body("lower", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    model = builder.build()
    assert plan_of({"lower.mass": stats.norm(1, 0.1)}, model).columns == ("lower.mass",)
    with pytest.raises(StudyError, match="'lower' has no 'mas'"):
        plan_of({"lower.mas": stats.norm(1, 0.1)}, model)
