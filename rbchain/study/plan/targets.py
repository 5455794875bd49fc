"""Targets of a dispersion: the bodies, degrees of freedom, drives or forces whose parameter varies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ...acting.between_bodies import label_of
from ...acting.coordinates import dof_index
from ...acting.friction_and_stops import DryFriction, HardStops
from ...acting.sampled import controller_of, joints_of_sensors
from ...acting.user_forces import UserForces
from ...acting.wrenches import Current
from ...errors import StudyError
from ...facade.model import Model
from ...model.constraints import KINDS
from ..describe.parameter_table import (
    BODY,
    CONSTRAINT,
    DOF,
    DRIVE,
    ENCODER,
    FUNCTION,
    MODEL,
    PARAMETERS,
    VELOCITY_SENSOR,
)
from .nominal import Nominal


@dataclass(frozen=True)
class Target:
    """A target of a dispersion.

    Attributes
    ----------
    name : str
    index : int
    angular : bool
        Whether positions are angles, else lengths.
    entry : int
        Index of a number among the parameters or the states of a user function.
    """

    name: str
    index: int
    angular: bool = True
    entry: int = 0


def targets_of(nominal: Nominal, parameter: str, patterns: tuple[str, ...]) -> list[Target]:
    """Return the targets that match the patterns, in the order of the model. Each pattern must match one."""
    known = _known(nominal, parameter)
    if PARAMETERS[parameter].owner == MODEL:
        if patterns != ("*",):
            raise StudyError(f"found {list(patterns)}, but {parameter!r} belongs to the whole model; remove targets")
        return known
    if parameter in ("mass", "mass_and_inertia"):
        known = [target for target in known if nominal.model.mass[target.index] > 0.0]
    targets: list[Target] = []
    for pattern in patterns:
        matches = [target for target in known if fnmatchcase(target.name, pattern)]
        if not matches:
            owner, names = PARAMETERS[parameter].owner, list(dict.fromkeys(target.name for target in known))
            expected = (
                f"expected names, or patterns that match names, of {names}"
                if names
                else f"the study has no such {owner}"
            )
            raise StudyError(f"{pattern!r} does not match any {owner} with the parameter {parameter!r}; {expected}")
        targets += [target for target in matches if target not in targets]
    return sorted(targets, key=known.index)


def _known(nominal: Nominal, parameter: str) -> list[Target]:
    """Return all possible targets of the parameter."""
    model, owner = nominal.model, PARAMETERS[parameter].owner
    if owner == MODEL:
        currents = sum(isinstance(force, Current) for force in nominal.forces)
        if parameter == "current" and not currents:
            raise StudyError("the parameter 'current' varies, but the study has no current; add a Current to forces")
        if parameter == "current" and currents > 1:
            raise StudyError(
                f"the parameter 'current' varies, but the study has {currents} Currents; expected one. Add their "
                "velocities"
            )
        return [Target(model.name, 0)]
    if owner == BODY:
        names = list(model.body_names)
        if parameter == "payload":
            names += list(model.fixed_frames)
        return [Target(name, i) for i, name in enumerate(names)]
    if owner == DOF:
        return _degrees_of_freedom(nominal.model)
    if owner == CONSTRAINT:
        return [
            Target(place.name, i, model.joint_types[place.body_b] != "prismatic")
            for i, place in enumerate(model.description.constraints)
            if parameter in KINDS[place.kind].arrays()
        ]
    if owner in (ENCODER, VELOCITY_SENSOR):
        dofs = _degrees_of_freedom(model)
        return [
            replace(dofs[dof_index(model, owner, joint, dof)], name=joint if dof == 0 else f"{joint}.{dof}")
            for joint, dof in joints_of_sensors(nominal.drives, PARAMETERS[parameter].classes)
        ]
    if owner == DRIVE:
        return _drives(nominal, parameter)
    return _functions(nominal, parameter) if owner == FUNCTION else _forces(nominal, parameter)


def _forces(nominal: Nominal, parameter: str) -> list[Target]:
    """Return a target for each force with the parameter."""
    dofs = _degrees_of_freedom(nominal.model)
    found = []
    for i, force in enumerate(nominal.forces):
        if not _has(force, parameter):
            continue
        if isinstance(force, (DryFriction, HardStops)):
            at = dof_index(nominal.model, PARAMETERS[parameter].owner, force.joint, force.dof or 0)
            found.append(replace(dofs[at], index=i))
        else:
            places = [getattr(force, name) for name in ("frame", "body") if hasattr(force, name)]
            found.append(Target(places[0] if places else label_of(force), i))
    return _with_distinct_names(found)


def _drives(nominal: Nominal, parameter: str) -> list[Target]:
    """Return a target for each drive of a joint with the parameter."""
    model = nominal.model
    driven = [
        (controller_of(drive), i)
        for i, drive in enumerate(nominal.drives)
        if not isinstance(controller_of(drive), UserForces) and _has(drive, parameter)
    ]
    types = [model.dof_types[dof_index(model, "drive", drive.joint, drive.dof)] for drive, _ in driven]
    return _with_distinct_names(
        [Target(drive.joint, i, kind != "prismatic") for (drive, i), kind in zip(driven, types, strict=True)]
    )


def _functions(nominal: Nominal, parameter: str) -> list[Target]:
    """Return a target for each user function, or for each of its parameters or states."""
    field = PARAMETERS[parameter].field
    assert field is not None
    found = []
    for i, drive in enumerate(nominal.drives):
        controller = controller_of(drive)
        if isinstance(controller, UserForces) and _has(drive, parameter):
            found.append(Target(str(getattr(controller.function, "__name__", "function")), i))
    found = _with_distinct_names(found)
    if not field.shape:
        return found
    sizes = [np.size(getattr(owner_of(nominal.drives[target.index], parameter), field.name)) for target in found]
    return [
        replace(target, name=f"{target.name}.{j}", entry=j)
        for target, size in zip(found, sizes, strict=True)
        for j in range(size)
    ]


def owner_of(action: Any, parameter: str) -> Any:
    """Return the object that has a parameter: a drive or force, or the controller of a sampled drive."""
    return action if isinstance(action, PARAMETERS[parameter].classes) else controller_of(action)


def _has(action: Any, parameter: str) -> bool:
    """Whether a drive or a force has the parameter."""
    field, owner = PARAMETERS[parameter].field, owner_of(action, parameter)
    if not isinstance(owner, PARAMETERS[parameter].classes):
        return False
    if field is None or field.name not in ("reference", "torque_speed"):
        return True
    value = getattr(owner, field.name)  # a PID that follows targets has no reference of its own
    return not (value is None or isinstance(value, str))


def _degrees_of_freedom(model: Model) -> list[Target]:
    """Return a target for each degree of freedom."""
    counts = np.diff([*model.velocity_index, model.nv])
    names = [n if c == 1 else f"{n}.{d}" for n, c in zip(model.joint_names, counts, strict=True) for d in range(c)]
    return [Target(n, i, kind != "prismatic") for i, (n, kind) in enumerate(zip(names, model.dof_types, strict=True))]


def _with_distinct_names(targets: Sequence[Target]) -> list[Target]:
    """Return the targets with a number appended to a name that an earlier target has."""
    names = [target.name for target in targets]
    numbers = [names[:i].count(name) for i, name in enumerate(names)]
    return [
        replace(target, name=f"{target.name}.{number}") if number else target
        for target, number in zip(targets, numbers, strict=True)
    ]
