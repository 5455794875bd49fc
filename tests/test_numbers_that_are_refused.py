"""All functions that accept numbers refuse masks, imaginary parts and numbers beyond float64."""

import re

import numpy as np
import pytest

import rbchain as rb
from rbchain.model.description import VARIABLE_FIELDS
from rbchain.model.limits import LIMITS
from rbchain.model.materials import density_of
from rbchain.model.passive import PASSIVE_FIELDS
from rbchain.model.units import Units

ROD = rb.Inertia.rod(1.0, mass=2.0)
IN_WATER = {"immersion": rb.Immersion.sphere(0.1)}
ARM = rb.Model.serial_chain(2)


def swimmer():
    builder = rb.ModelBuilder(fluid_density=1000.0)
    builder.add_body("link1", joint=rb.Screw((0, 0, 1), 0.1), inertia=ROD, **IN_WATER)
    builder.add_constraint(
        rb.DistanceConstraint("rod", None, "link1", point_a=(1, 0, 0), point_b=(0, 1, 0), length=1.0)
    )
    return builder.build()


SWIMMER = swimmer()


def body(**arguments):
    rb.ModelBuilder().add_body("link1", joint=rb.Revolute(), inertia=ROD, **arguments)


def joined(**arguments):
    rb.ModelBuilder().add_constraint(rb.BallConstraint("ball", None, "link1"), **arguments)


def simulated(**actions):
    # the numbers have to be accepted; the motion may fail
    start = np.zeros((1, 2)), np.zeros((1, 2))
    ARM.simulate(*start, 1.0, method="rk4", step=0.1, on_failure="ignore", save_at=2, **actions)


def driven(**arguments):
    simulated(drives=[rb.PID("link1", **{"reference": 0.0, "kp": 1.0} | arguments)])


def pushed(**arguments):
    simulated(forces=[rb.Wrench("link1", **arguments)])


#: Functions that take numbers, the name in their messages, and valid numbers.
#: Passive forces that allow each number of PassiveForces to be 1.
STOP = {"stop_upper": 3.0, "limit_stiffness": 2.0, "friction": 1.0}
ENTRIES = {
    "Inertia: mass": (rb.Inertia, "mass", 1.0),
    "Inertia: cg": (lambda x: rb.Inertia(1.0, cg=x), "cg", [0.0, 0.0, 1.0]),
    "Inertia: inertia": (lambda x: rb.Inertia(1.0, inertia=x), "inertia", [1.0, 1.0, 1.0]),
    "Inertia.rod: length": (lambda x: rb.Inertia.rod(x, mass=1.0), "length", 1.0),
    "Inertia.rod: mass": (lambda x: rb.Inertia.rod(1.0, mass=x), "mass", 1.0),
    "Inertia.sphere: density": (lambda x: rb.Inertia.sphere(1.0, density=x), "density", 1.0),
    "Inertia.rod: axis": (lambda x: rb.Inertia.rod(1.0, mass=1.0, axis=x), "axis", [0.0, 0.0, 1.0]),
    "Inertia.box: size": (lambda x: rb.Inertia.box(x, mass=1.0), "size", [1.0, 1.0, 1.0]),
    "Inertia.box: rotation": (lambda x: rb.Inertia.box((1, 1, 1), mass=1.0, rotation=x), "rotation", np.eye(3)),
    "Inertia.cylinder: radius": (lambda x: rb.Inertia.cylinder(x, 1.0, mass=1.0), "radius", 1.0),
    "Inertia.cylinder: length": (lambda x: rb.Inertia.cylinder(1.0, x, mass=1.0), "length", 1.0),
    "Inertia.sphere: radius": (lambda x: rb.Inertia.sphere(x, mass=1.0), "radius", 1.0),
    "Inertia.about: point": (ROD.about, "point", [0.0, 0.0, 1.0]),
    "density_of": (density_of, "density", 1.0),
    "Pose: translation": (rb.Pose, "translation", [0.0, 0.0, 1.0]),
    "Pose: rotation": (lambda x: rb.Pose(rotation=x), "rotation", [0.0, 0.0, 0.0, 1.0]),
    "Revolute: axis": (rb.Revolute, "axis", [0.0, 0.0, 1.0]),
    "Prismatic: axis": (rb.Prismatic, "axis", [0.0, 0.0, 1.0]),
    "Planar: axis": (rb.Planar, "axis", [0.0, 0.0, 1.0]),
    "Universal: second": (lambda x: rb.Universal((1, 0, 0), x), "second", [0.0, 0.0, 1.0]),
    "Screw: axis": (lambda x: rb.Screw(x, 0.1), "axis", [0.0, 0.0, 1.0]),
    "Screw: pitch": (lambda x: rb.Screw((0, 0, 1), x), "pitch", 1.0),
    "ModelBuilder: gravity": (lambda x: rb.ModelBuilder(gravity=x), "gravity", [0.0, 0.0, 1.0]),
    "ModelBuilder: fluid_density": (lambda x: rb.ModelBuilder(fluid_density=x), "fluid_density", 1.0),
    "add_body: rotor_inertia": (lambda x: body(rotor_inertia=x), "body 'link1': rotor_inertia", [1.0]),
    "add_body: gear_ratio": (lambda x: body(gear_ratio=x), "body 'link1': gear_ratio", 1.0),
    **{
        f"PassiveForces: {n}": (lambda x, n=n: rb.PassiveForces(**(STOP | {n: x})), n, [1.0])
        for n in PASSIVE_FIELDS
    },
    **{
        f"JointLimits: {n}": (lambda x, n=n: rb.JointLimits(**{n: x}), n, [1.0])
        for n in LIMITS
    },
    **{
        f"Immersion: {name}": (lambda x, n=name: rb.Immersion(**{n: x}), name, 1.0)
        for name in ("volume", "strip_diameter", "strip_length", "strip_drag")
    },
    "Immersion: buoyancy_center": (lambda x: rb.Immersion(buoyancy_center=x), "buoyancy_center", [0.0, 0.0, 1.0]),
    **{
        f"Immersion: {name}": (lambda x, n=name: rb.Immersion(**{n: x}), name, np.ones(6))
        for name in ("added_mass", "added_volume", "linear_damping", "quadratic_damping")
    },
    "add_constraint: compliance": (lambda x: joined(compliance=x), "BallConstraint 'ball': compliance", 1.0),
    "add_constraint: relaxation_time": (
        *(lambda x: joined(compliance=1.0, relaxation_time=x), "BallConstraint 'ball': relaxation_time", 1.0),
    ),
    "Immersion.sphere: radius": (rb.Immersion.sphere, "radius", 1.0),
    "Immersion.cylinder: radius": (lambda x: rb.Immersion.cylinder(x, 1.0), "radius", 1.0),
    "Immersion.cylinder: length": (lambda x: rb.Immersion.cylinder(1.0, x), "length", 1.0),
    "Immersion.cylinder: mass": (lambda x: rb.Immersion.cylinder(1.0, 1.0, mass=x), "mass", 1.0),
    "Immersion.ellipsoid: semi_axes": (rb.Immersion.ellipsoid, "semi_axes", [1.0, 1.0, 1.0]),
    "Immersion.box: size": (rb.Immersion.box, "size", [1.0, 1.0, 1.0]),
    **{
        f"vary: {name}": (lambda x, n=name: SWIMMER.vary(**{n: x}), name, getattr(SWIMMER, name))
        for name in VARIABLE_FIELDS
    },
    "with_payload: mass": (lambda x: ARM.with_payload("link1", mass=x), "payload on 'link1'", 1.0),
    "with_payload: cg": (lambda x: ARM.with_payload("link1", mass=1, cg=x), "payload on 'link1': cg", [0.0, 0.0, 1.0]),
    "with_payload: inertia": (
        lambda x: ARM.with_payload("link1", mass=1.0, inertia=x),
        "payload on 'link1': inertia",
        np.eye(3),
    ),
    "serial_chain: length": (lambda x: rb.Model.serial_chain(1, length=x), "length", 1.0),
    "serial_chain: mass": (lambda x: rb.Model.serial_chain(1, mass=x), "mass", 1.0),
    "serial_chain: gravity": (lambda x: rb.Model.serial_chain(1, gravity=x), "gravity", [0.0, 0.0, 1.0]),
    "Visual: size": (lambda x: rb.Visual("box", x), "size of a box", [1.0, 1.0, 1.0]),
    "Visual: color": (lambda x: rb.Visual("sphere", [1.0], color=x), "color", [1.0, 1.0, 1.0]),
    "Units": (Units("cm-kg-s").length, "length", [1.0, 2.0]),
    "Signal.constant": (rb.Signal.constant, "value", 1.0),
    "Signal.polynomial": (rb.Signal.polynomial, "coefficients", [1.0, 2.0]),
    "Signal.sines: amplitude": (lambda x: rb.Signal.sines(x, 1.0), "amplitude", [1.0, 2.0]),
    "Signal.sines: angular_frequency": (lambda x: rb.Signal.sines(1.0, x), "angular_frequency", 1.0),
    "Signal.sines: phase": (lambda x: rb.Signal.sines(1.0, 1.0, phase=x), "phase", 1.0),
    "Signal.sines: offset": (lambda x: rb.Signal.sines(1.0, 1.0, phase=0.0, offset=x), "offset", 1.0),
    "Signal.table: times": (lambda x: rb.Signal.table(x, [1.0, 2.0], interpolation="linear"), "times", [0.0, 1.0]),
    "Signal.table: values": (lambda x: rb.Signal.table([0.0, 1.0], x, interpolation="linear"), "values", [0.0, 1.0]),
    "Signal: breaks": (lambda x: rb.Signal(np.ones((2, 1)), breaks=x), "breaks of a signal", [0.0, 1.0]),
    "Signal: end": (lambda x: rb.Signal(np.ones((1, 1)), end=x), "end of a signal", 1.0),
    "Signal: a time": (rb.Signal.constant(1.0), "t", [0.0, 1.0]),
    "Wrench: force": (lambda x: pushed(force=x), "Wrench on 'link1': force", np.ones(3)),
    "Wrench: moment": (lambda x: pushed(moment=x), "Wrench on 'link1': moment", np.ones(3)),
    "Wrench: point": (lambda x: pushed(point=x), "Wrench on 'link1': point", [0.0, 0.0, 1.0]),
    "PID: reference": (lambda x: driven(reference=x), "PID of joint 'link1'", 1.0),
    **{f"PID: {n}": (lambda x, n=n: driven(**{n: x}), f"PID of joint 'link1': {n}", [1.0]) for n in ("kp", "kd", "ki")},
    "PID: limit": (lambda x: driven(limit=x), "PID of joint 'link1': limit", [1.0]),
    "PrescribedForce: signal": (
        lambda x: simulated(drives=[rb.PrescribedForce("link1", x)]), "PrescribedForce of joint 'link1'", 1.0
    ),
    "UserForces: parameters": (
        lambda x: rb.UserForces(print, parameters=x), "UserForces with function 'print': parameters", [1.0, 2.0]
    ),
    "Event: value": (lambda x: rb.Event("link1", value=x, stop=True), "Event of joint 'link1': value", 1.0),
}  # fmt: skip


def masked(good):
    found = np.ma.array(good, dtype=float)
    found[(0,) * found.ndim] = np.ma.masked
    return found


def huge(good):
    found = np.array(good, dtype=object)
    found[(0,) * found.ndim] = 10**400
    return found.tolist()


BAD = {
    "masked": (masked, "masked array; expected real numbers without a mask"),
    "a mask that hides nothing": (lambda good: np.ma.array(good), "masked array; expected real numbers without a mask"),
    "masked, in a list": (lambda good: list(np.atleast_1d(masked(good))), "masked array"),
    "complex": (lambda good: np.asarray(good) * (1 + 1j), "type complex128; expected real numbers"),
    "of no imaginary part": (lambda good: (np.asarray(good) + 0j).tolist(), "type complex128; expected real numbers"),
    "beyond float64": (huge, "expected numbers within float64's range"),
    "text": (lambda good: np.asarray(good).astype(str).tolist(), "expected"),
    "truth values": (lambda good: np.asarray(good, bool).tolist(), "expected"),
    "None": (lambda good: None, "expected"),
}


#: Values that are not numbers but have a meaning of their own.
TAKEN = {
    "None": (
        *("Pose: rotation", "Inertia.box: rotation", "Inertia.sphere: density"),
        *("Immersion.cylinder: mass", "Visual: color", "add_constraint: compliance"),
        "add_constraint: relaxation_time",
    ),
    "text": ("Inertia.sphere: density", "density_of"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_numbers_are_accepted_in_the_entries_that_refuse_others(entry):
    call, _, good = ENTRIES[entry]
    call(good)


@pytest.mark.parametrize(("entry", "bad"), [(e, b) for e in ENTRIES for b in BAD if e not in TAKEN.get(b, ())])
def test_numbers_that_would_lose_information_are_refused_by_name(entry, bad):
    call, name, good = ENTRIES[entry]
    make, message = BAD[bad]
    with pytest.raises(rb.RbchainError, match=f"(?s)^{re.escape(name)}.*{message}"):
        call(make(good))
