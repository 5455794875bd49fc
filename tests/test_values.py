"""Joints, inertias, drives, forces, events and signals are equal if their fields are."""

import inspect
import pickle
from dataclasses import replace

import numpy as np
import pytest

import rbchain as rb
from rbchain.io.dh import DHLink
from rbchain.model.units import Units


def push(t, q, qd, parameters, out):
    out[0] = parameters[0]


VALUES = {
    "Inertia": (lambda x: rb.Inertia(x, cg=(0.1, 0, 0), inertia=(1, 2, 3)), 2.0, 2.5),
    "Revolute": (lambda x: rb.Revolute((0, x, 1)), 0.0, 1.0),
    "Screw": (lambda x: rb.Screw((0, 0, 1), pitch=x), 0.1, 0.2),
    "Universal": (lambda x: rb.Universal((1, 0, 0), (0, 1, x)), 0.0, 1.0),
    "Composite": (lambda x: rb.Composite([rb.Revolute((0, 0, 1)), rb.Prismatic((x, 0, 0))]), 1.0, -1.0),
    "JointLimits": (lambda x: rb.JointLimits(-1.0, x), 1.0, np.inf),
    "PassiveForces": (lambda x: rb.PassiveForces(damping=x, stiffness=(1.0, 2.0)), 0.1, 0.2),
    "Visual": (lambda x: rb.Visual("sphere", (0.1,), pose=rb.Pose((x, 0, 0))), 0.0, 1.0),
    "Immersion": (lambda x: rb.Immersion(volume=x), 0.1, 0.2),
    "HingeConstraint": (lambda x: rb.HingeConstraint("tip", "a", "b", point_a=(0, 0, 1), point_b=(x, 0, 0)), 0.0, 1.0),
    "CouplerConstraint": (lambda x: rb.CouplerConstraint("gear", "a", "b", ratio=x), 2.0, -2.0),
    "WeldConstraint": (lambda x: rb.WeldConstraint("weld", "a", None, pose_a=rb.Pose((x, 0, 0))), 0.0, 1.0),
    "PID": (lambda x: rb.PID("a", rb.Signal.sines(1.0, 2.0), kp=x), np.array([1.0, 2.0]), np.array([1.0, 3.0])),
    "Sampled": (lambda x: rb.Sampled(rb.PID("a", 0.1, kp=1.0), period=x, sensors=[rb.Encoder("a")]), 0.1, 0.2),
    "UserForces": (lambda x: rb.UserForces(push, parameters=[x]), 1.0, 2.0),
    "Wrench": (lambda x: rb.Wrench("a", force=(x, 0, rb.Signal.constant(1.0))), 1.0, 2.0),
    "Bushing": (lambda x: rb.Bushing(None, "a", stiffness=x * np.eye(6), pose_a=rb.Pose((0, 0, 1))), 1.0, 2.0),
    "SphereContact": (
        lambda x: rb.SphereContact("a", point=(0, 0, 0), radius=0.1, plane_point=(0, 0, x), plane_normal=(0, 0, 1)),
        0.0,
        -1.0,
    ),
    "Event": (lambda x: rb.Event("a", value=x, stop=True), 0.5, 0.6),
    "Signal": (lambda x: rb.Signal.table([0, 1, 2], [0, x, 1], interpolation="linear"), 1.0, 2.0),
    "RandomSignal": (lambda x: rb.Signal.random_walk(x, 0.1), 1.0, 2.0),
    "sum of signals": (lambda x: rb.Signal.random_walk(1.0, 0.1) + x, 1.0, 2.0),
    "Units": (lambda x: Units(x, degrees=True), "SI", "cm-g-s"),
    "Target": (lambda x: rb.Target((0, 0, 1), axis=(1, 0, 0), look_at=(x, 0, 0)), 1.0, 2.0),
    "DHLink": (lambda x: DHLink(x, 0.1, 0.2), 0.5, 0.6),
}


@pytest.mark.parametrize("name", VALUES)
def test_equal_fields_make_equal_objects(name):
    make, number, other = VALUES[name]
    value, same = make(number), make(number)
    assert value == same
    assert hash(value) == hash(same)
    assert pickle.loads(pickle.dumps(value)) == value
    assert value != make(other)
    assert value != "another type"


def test_numbers_in_lists_and_arrays_are_equal():
    assert rb.Revolute([0, 0, 1]) == rb.Revolute(np.array([0.0, 0.0, 1.0]))
    assert rb.PassiveForces(damping=1) == rb.PassiveForces(damping=np.float64(1.0))
    assert rb.PID("a", 0.0, kp=1) == rb.PID("a", 0.0, kp=1.0)


def test_joints_of_different_types_differ():
    assert rb.Revolute((0, 0, 1)) != rb.Prismatic((0, 0, 1))
    assert rb.Free() == rb.Free()


def test_units_with_other_angles_differ():
    assert Units() == Units("SI")
    assert Units() != Units(degrees=True)


def test_numbers_that_are_missing_are_equal():
    assert rb.Inertia(1.0, (np.nan, 0, 0)) == rb.Inertia(1.0, (np.nan, 0, 0))


def test_equal_objects_are_one_entry_of_a_set():
    joints = [rb.Revolute((0, 0, 1)), rb.Revolute((0, 0, 1)), rb.Revolute((0, 1, 0))]
    assert len(set(joints)) == 2
    assert joints.index(rb.Revolute((0, 1, 0))) == 2


def test_a_changed_copy_differs():
    drive = rb.PID("a", 0.1, kp=1.0)
    assert replace(drive, kp=1.0) == drive != replace(drive, kp=2.0)


@pytest.mark.parametrize(
    ("kind", "positional"),
    [
        (rb.PID, ["joint", "reference"]),
        (rb.ComputedTorque, ["joint", "reference"]),
        (rb.PrescribedForce, ["joint", "signal"]),
        (rb.Sampled, ["controller"]),
        (rb.Encoder, ["joint"]),
        (rb.Actuator, ["joint"]),
        (rb.UserForces, ["function"]),
        (rb.Event, ["joint", "function"]),
        (rb.Wrench, ["frame"]),
        (rb.SpringDamper, ["frame_a", "frame_b"]),
        (rb.Bushing, ["frame_a", "frame_b"]),
        (rb.DryFriction, ["joint", "kinetic"]),
        (rb.HardStops, ["joint"]),
        (rb.SphereContact, ["frame"]),
        (rb.EllipsoidContact, ["frame"]),
        (rb.BallConstraint, ["name", "frame_a", "frame_b", "point_a", "point_b"]),
        (rb.CouplerConstraint, ["name", "joint", "other", "ratio", "offset"]),
        (rb.SphereSphereContact, ["frame_a", "frame_b"]),
        (rb.CapsuleCapsuleContact, ["frame_a", "frame_b"]),
        (rb.JointLimits, ["lower", "upper"]),
        (rb.PassiveForces, []),
        (rb.Inertia, ["mass", "cg", "inertia"]),
        (rb.Model.simulate, ["self", "q0", "qd0", "duration"]),
        (rb.Model.accelerations, ["self", "q", "qd"]),
        (rb.Model.linearize, ["self", "q", "qd"]),
        (rb.Model.modes, ["self", "q", "qd"]),
        (rb.Model.frequency_response, ["self", "frequency", "q", "qd"]),
        (rb.Model.margins, ["self", "q", "qd"]),
        (rb.Model.equilibrium, ["self", "q_guess"]),
        (rb.Model.generate, ["self", "functions"]),
    ],
    ids=lambda kind: getattr(kind, "__name__", ""),
)
def test_only_the_target_and_the_main_arguments_are_positional(kind, positional):
    parameters = inspect.signature(kind).parameters.values()
    found = [p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert [{"model": "self"}.get(name, name) for name in found] == positional
