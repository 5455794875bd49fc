"""Make the motor of a joint a separate body that drives the link by an elastic transmission: `Model.with_motor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import ModelError
from .assembly import Body, assemble
from .constraints import CouplerConstraint
from .description import Description
from .editing import check_joints, editable, unused_name
from .inertia import Inertia
from .joint import Fixed, Prismatic, Revolute
from .limits import JointLimits
from .passive import PassiveForces
from .pose import Pose, numbers

DEFLECTION = "_deflection"  # ending of the name of the joint between motor and link


def description_with_motor(
    description: Description,
    joint: str,
    spring: dict[str, Any],
    motor: dict[str, Any],
) -> Description:
    """Return the description with a motor at a joint. Raises a ModelError if that is impossible.

    `spring` holds the stiffness, damping and backlash of the transmission, at the joint. `motor` holds the
    rotor_inertia, gear_ratio, friction and damping at the shaft of the motor; the first two may be None.
    """
    mechanism = editable(description, "with_motor")
    of_joint = {body.joint_name: name for name, body in mechanism.bodies.items() if not isinstance(body.joint, Fixed)}
    check_joints("with_motor", [joint], tuple(of_joint))
    what, link_name = f"with_motor: joint {joint!r}", of_joint[joint]
    link = mechanism.bodies[link_name]
    if not isinstance(link.joint, (Revolute, Prismatic)):
        raise ModelError(f"{what} is a {link.joint.kind} joint; expected a revolute or a prismatic joint")
    _refuse_motor(what, mechanism.bodies, link_name)
    for constraint in mechanism.constraints:
        if isinstance(constraint, CouplerConstraint) and joint in (constraint.joint, constraint.other):
            raise ModelError(
                f"{what} belongs to CouplerConstraint {constraint.name!r}, which would couple the motor and not the "
                "link; expected a joint without couplers"
            )
    given = {name: value for name, value in (spring | motor).items() if value is not None}
    checked = {name: _number(what, name, value) for name, value in given.items()}
    if not checked["stiffness"] > 0.0:
        raise ModelError(
            f"{what}: stiffness is 0; expected a number above 0, because it connects the motor to the link"
        )
    motor_name = unused_name(f"{link_name}_motor", mechanism.bodies)
    bodies: dict[str, Body] = {}
    for name, body in mechanism.bodies.items():
        if name == link_name:
            bodies[motor_name] = _motor(what, link, checked)
            bodies[link_name] = _link(link, motor_name, unused_name(f"{joint}{DEFLECTION}", of_joint), checked)
        else:
            bodies[name] = body
    found = assemble(replace(mechanism, bodies=bodies))
    nominal = description.nominal
    if nominal is None:
        return found
    return replace(found, nominal=description_with_motor(nominal, joint, spring, motor))


def _refuse_motor(what: str, bodies: Mapping[str, Body], name: str) -> None:
    """Raise a ModelError if the body is a motor that `with_motor` has added, or the link that one drives."""
    for link_name, link in bodies.items():
        motor = bodies.get(link.parent or "")
        if motor is None or motor.inertia.mass > 0.0 or name not in (link.parent, link_name):
            continue
        if link.joint_name.startswith(f"{motor.joint_name}{DEFLECTION}"):
            raise ModelError(
                f"{what} already has a motor, the body {link.parent!r} with the deflection {link.joint_name!r}; "
                "expected a joint without a motor. To change the motor, call with_motor on the model without it"
            )


def _number(what: str, name: str, value: Any) -> float:
    """Return one value of at least zero. Raises a ModelError."""
    found = numbers(value, f"{what}: {name}")
    if found.shape != () or found < 0.0:
        raise ModelError(f"{what}: {name} is {found.tolist()}; expected one number of at least 0")
    return float(found)


def _motor(what: str, link: Body, given: dict[str, float]) -> Body:
    """Return the body of a motor, which has no mass, on the joint of the link."""
    inertia = given.get("rotor_inertia", float(link.rotor_inertia[0]))
    ratio = given.get("gear_ratio", float(link.gear_ratio[0]))
    if not inertia * ratio**2 > 0.0:
        raise ModelError(
            f"{what}: rotor_inertia is {inertia:g} and gear_ratio is {ratio:g}; expected numbers above 0, because the "
            "motor needs an inertia"
        )
    passive = {field: value.copy() for field, value in link.passive.items()}
    friction = abs(ratio) * given["motor_friction"]
    passive["friction"] += friction
    passive["static_friction"] += np.where(passive["static_friction"] > 0.0, friction, 0.0)  # 0: no Stribeck effect
    passive["damping"] += ratio**2 * given["motor_damping"]
    return link._replace(
        inertia=Inertia(0.0),
        rotor_inertia=np.array([inertia]),
        gear_ratio=np.array([ratio]),
        passive=passive,
        immersion=None,
        visuals=(),
        collisions=(),
    )


def _link(link: Body, motor_name: str, joint_name: str, given: dict[str, float]) -> Body:
    """Return the link on an elastic joint on the motor. With backlash, the spring acts only outside the play."""
    stiffness, play = given["stiffness"], given["backlash"] / 2.0
    if play > 0.0:
        spring = PassiveForces(damping=given["damping"], stop_lower=-play, stop_upper=play, limit_stiffness=stiffness)
    else:
        spring = PassiveForces(stiffness=stiffness, damping=given["damping"])
    return link._replace(
        parent=motor_name,
        placement=Pose(),
        rotor_inertia=np.zeros(1),
        gear_ratio=np.ones(1),
        passive=spring.of_dofs(motor_name, link.joint),
        limits=JointLimits().of_dofs(motor_name, link.joint),
        joint_name=joint_name,
    )
