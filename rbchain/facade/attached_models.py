"""Another model that a `ModelBuilder` adds: checks, and its parts with a prefix, fixed to a body of the builder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..acting.drives import OneJointDrive
from ..acting.input_values import with_prefix
from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import ModelError, UnknownNameError
from ..model.assembly import Body, Mechanism
from ..model.constraint_fields import attached_constraint
from ..model.constraints import Constraint
from ..model.editing import editable
from ..model.pose import Pose
from ..model.sensor_of_file import SensorOfFile
from .file_records import attached_sensor
from .model import Model


class AttachedModel(NamedTuple):
    """The parts of another model, with a prefix before all names. Its world is fixed to a body or to the world.

    `nominal_bodies` and `nominal_constraints` belong to the nominal model of a varied model; empty for other models.
    """

    bodies: dict[str, Body]
    constraints: list[Constraint]
    drives: list[OneJointDrive]
    sensors: dict[str, SensorOfFile]
    nominal_bodies: dict[str, Body]
    nominal_constraints: dict[str, Constraint]


def check_attachment(
    other: Model, parent: str | None, placement: Pose, prefix: str, bodies: Mapping[str, Body]
) -> None:
    """Raise a ModelError if an argument of `ModelBuilder.add_model` is invalid for a builder with these bodies."""
    if not isinstance(other, Model):
        raise ModelError(f"add_model: other is {excerpt(other)}; expected a Model")
    if not isinstance(placement, Pose) or placement.translation.shape != (3,):
        raise ModelError(f"add_model: placement is {excerpt(placement)}; expected one Pose")
    if not isinstance(prefix, str):
        raise ModelError(f'add_model: prefix is {excerpt(prefix)}; expected text, such as "left/"')
    if parent is not None and parent not in bodies:
        known = f"one of {[*bodies]}{did_you_mean(str(parent), bodies)}, or " if bodies else ""
        raise UnknownNameError(f"add_model: parent is {excerpt(parent)}; expected {known}None for the world")


def attached_model(other: Model, prefix: str, parent: str | None, placement: Pose) -> AttachedModel:
    """Return the parts of a model with a prefix. Its world is fixed to the parent at this placement.

    Raises a ModelError if the samples of the model differ, or if one of its drives has its own model.
    """
    added, nominal = editable(other.description, "add_model"), other.description.nominal
    of_nominal = None if nominal is None else editable(nominal, "add_model")
    return AttachedModel(
        bodies=_attached_bodies(added, prefix, parent, placement),
        constraints=[attached_constraint(constraint, prefix, parent, placement) for constraint in added.constraints],
        drives=[with_prefix(replace(drive, joint=prefix + drive.joint), prefix) for drive in added.drives],
        sensors={
            prefix + name: attached_sensor(sensor, prefix, parent, placement) for name, sensor in other.sensors.items()
        },
        nominal_bodies={} if of_nominal is None else _attached_bodies(of_nominal, prefix, parent, placement),
        nominal_constraints={
            prefix + constraint.name: attached_constraint(constraint, prefix, parent, placement)
            for constraint in (() if of_nominal is None else of_nominal.constraints)
        },
    )


def _attached_bodies(added: Mechanism, prefix: str, parent: str | None, placement: Pose) -> dict[str, Body]:
    """Return the bodies of another mechanism with a prefix. The world of the other mechanism is fixed to the parent."""
    bodies = {}
    for name, body in added.bodies.items():
        is_root = body.parent is None
        bodies[prefix + name] = body._replace(
            parent=parent if is_root else f"{prefix}{body.parent}",
            placement=placement @ body.placement if is_root else body.placement,
            joint_name=prefix + body.joint_name if body.joint_name else "",
        )
    return bodies


def check_new_names(
    attached: AttachedModel,
    bodies: Mapping[str, Body],
    constraints: Sequence[Constraint],
    sensors: Mapping[str, SensorOfFile],
) -> None:
    """Raise a ModelError if a name of a body, joint, constraint or sensor of an attached model is already used."""
    joints = {body.joint_name for body in bodies.values()}
    names = {constraint.name for constraint in constraints}
    clashes: list[tuple[str, str]] = []
    for name, body in attached.bodies.items():
        clashes += [("body", name)] if name in bodies else []
        clashes += [("joint", body.joint_name)] if body.joint_name and body.joint_name in joints else []
    clashes += [("constraint", constraint.name) for constraint in attached.constraints if constraint.name in names]
    for what, found in clashes:
        raise ModelError(
            f"add_model: this model already has a {what} {found!r}; expected unique names. Choose "
            'another prefix, such as prefix="left/"'
        )
    for name in attached.sensors.keys() & sensors.keys():
        raise ModelError(f"add_model: this model already has a sensor {name!r}; choose another prefix")
