"""The parameters of a study by their paths: their bodies, degrees of freedom, drives, forces or events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...acting.between_bodies import label_of
from ...acting.coordinates import dof_index
from ...acting.friction_and_stops import DryFriction, HardStops
from ...acting.sampled import controller_of, sensors_of
from ...acting.signal_numbers import numbers_of, three_components
from ...acting.user_forces import UserForces, name_in_paths
from ...acting.wrenches import Current
from ...errors import StudyError, UnknownNameError
from ...facade.model import Model
from ...model.parameter_paths import relatives_of
from ...model.paths import Owned, matches
from ..describe.dispersions import Dispersion
from ..describe.parameter_table import (
    BODY,
    CONSTRAINT,
    DOF,
    DRIVE,
    ENCODER,
    EVENT,
    FUNCTION,
    MODEL,
    OF_SIGNALS,
    PARAMETERS,
    REFUSED,
    SIGNAL_OWNER,
    SIGNALS,
    VELOCITY_SENSOR,
)
from .nominal import Nominal


@dataclass(frozen=True)
class Target:
    """An owner of a parameter.

    Attributes
    ----------
    owner : str
        The name by which paths name it; empty for parameters of the whole model.
    index : int
        Index of the body, degree of freedom, constraint, drive, force or event.
    angular : bool
        Whether positions are angles, else lengths.
    dof, dofs : int
        Number of the degree of freedom in its joint, None if the owner is not a joint, and their count.
    entries : int
        Number of the parameters or the states of a user function of a drive or an event, or of the entries of a list
        of a signal.
    signal : str
        The parameter of the drive or force that is the signal, if the owner is one.
    component : int, optional
        Number of the component if this parameter has three signals.
    """

    owner: str
    index: int
    angular: bool = True
    dof: int | None = None
    dofs: int = 1
    entries: int = 0
    signal: str = ""
    component: int | None = None


@dataclass(frozen=True)
class Varied:
    """A parameter that a dispersion changes, with the components that it changes.

    Attributes
    ----------
    name : str
        Its path without a component, which is also the name of its values in the results.
    parameter : str
        A key of `PARAMETERS`.
    components : tuple of int
        Indices of the components.
    component_names : tuple of str
        Their names; () if the parameter is a scalar.
    """

    name: str
    parameter: str
    target: Target
    components: tuple[int, ...]
    component_names: tuple[str, ...]
    how: str
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def is_of_signal(self) -> bool:
        """Whether it is a number of a signal, and not the signal or another field."""
        return bool(self.target.signal)

    def neutral(self) -> tuple[Varied, float]:
        """Return the parameter with the way to change it that changes nothing for a draw, and the draw."""
        return (self, 1.0) if self.how == "multiply" else (replace(self, how="add"), 0.0)


Parameters = dict[str, list[Owned[tuple[str, Target]]]]


def parameters_of(nominal: Nominal) -> Parameters:
    """Return all parameters of a study by the fields of their paths."""
    found: Parameters = {}
    for name, parameter in PARAMETERS.items():
        of_field = found.setdefault(parameter.field_in_paths(name), [])
        for target in _known(nominal, name):
            components = parameter.components or tuple(map(str, range(target.entries)))
            of_field.append(Owned(target.owner, (name, target), components, target.dof, target.dofs))
    return {field: of_field for field, of_field in found.items() if of_field}


def varied_at(path: str, dispersion: Dispersion, parameters: Parameters, nominal: Nominal) -> list[Varied]:
    """Return the parameters that a dispersion changes. Raises StudyError if the path or the dispersion does not fit."""
    try:
        found = matches(path, parameters, relatives_of(nominal.model.description))
    except UnknownNameError:
        owner, *rest = path.split(".")
        field = next((name for name in reversed(rest or [owner]) if name in REFUSED and name not in parameters), None)
        if field is None:
            raise
        raise StudyError(f"{field!r} cannot vary: {REFUSED[field]}") from None
    names = [match.name for match in found]
    repeated = next((match for match in found if names.count(match.name) > 1), None)
    kinds = list(dict.fromkeys(match.owned.value[0] for match in found))
    if repeated is not None:
        owners = [_class_of(*match.owned.value, nominal) for match in found if match.name == repeated.name]
        classes = " and ".join(dict.fromkeys(owners))
        raise StudyError(
            f"{repeated.name!r} is the path of {len(owners)} parameters, of {classes}; expected one. Give "
            "drives, sensors, forces or contacts a `name`, which is then their owner in paths"
        )
    if len(kinds) > 1:
        owners = list(dict.fromkeys(_class_of(*match.owned.value, nominal) for match in found))
        raise StudyError(
            f"{path!r} matches different quantities, of {' and '.join(owners)}; expected paths of one of them"
        )
    name, parameter = kinds[0], PARAMETERS[kinds[0]]
    how = parameter.ways[0] if dispersion.how is None else dispersion.how
    if how not in parameter.ways:
        raise StudyError(f"how is {how!r}; expected {' or '.join(map(repr, parameter.ways))} for {path!r}")
    if any(dispersion.point) and name != "payload":
        raise StudyError(
            f"point is {list(dispersion.point)}, but only a payload has a point; remove point from {path!r}"
        )
    return [
        Varied(
            match.name,
            name,
            match.owned.value[1],
            match.components,
            tuple(match.owned.components[i] for i in match.components),
            how,
            dispersion.point,
        )
        for match in found
    ]


def _class_of(parameter: str, target: Target, nominal: Nominal) -> str:
    """Return the class or the kind of the owner of a parameter, for a message."""
    owner = PARAMETERS[parameter].owner
    if owner == SIGNAL_OWNER:
        return f"a signal of {_class_of(target.signal, target, nominal)}"
    if owner in (DRIVE, FUNCTION):
        return type(owner_of(nominal.drives[target.index], parameter)).__name__
    if owner in (ENCODER, VELOCITY_SENSOR, EVENT) or not PARAMETERS[parameter].classes:
        return f"the {owner}"
    return type(nominal.forces[target.index]).__name__


def _known(nominal: Nominal, parameter: str) -> list[Target]:
    """Return all owners of the parameter."""
    model, owner = nominal.model, PARAMETERS[parameter].owner
    if owner == MODEL and PARAMETERS[parameter].classes:
        return [
            Target(force.name or "current", i) for i, force in enumerate(nominal.forces) if isinstance(force, Current)
        ]
    if owner == MODEL:
        return [Target("", 0)]
    if owner == BODY:
        names = list(model.body_names)
        if parameter == "payload":
            names += list(model.fixed_frames)
        has_mass = parameter in ("mass", "mass_and_inertia")
        return [Target(name, i) for i, name in enumerate(names) if not (has_mass and model.mass[i] == 0.0)]
    if owner == DOF:
        return _degrees_of_freedom(model)
    if owner == CONSTRAINT:
        return [
            Target(place.name, i, model.joint_types[place.body_b] != "prismatic")
            for i, place in enumerate(model.description.constraints)
            if parameter in place.arrays
        ]
    if owner in (ENCODER, VELOCITY_SENSOR):
        dofs = _degrees_of_freedom(model)
        found = []
        for sensor in sensors_of(nominal.drives):
            if isinstance(sensor, PARAMETERS[parameter].classes):
                at = dofs[dof_index(model, owner, sensor.joint, sensor.dof)]
                found.append(at if sensor.name is None else Target(sensor.name, at.index, at.angular))
        return list(dict.fromkeys(found))
    if owner == DRIVE:
        return _drives(nominal, parameter)
    if owner == EVENT:
        return _events(nominal, parameter)
    if owner == SIGNAL_OWNER:
        return [target for name in SIGNALS for target in _signals(nominal, name, parameter)]
    return _functions(nominal, parameter) if owner == FUNCTION else _forces(nominal, parameter)


def _forces(nominal: Nominal, parameter: str) -> list[Target]:
    """Return a target for each force with the parameter."""
    dofs = _degrees_of_freedom(nominal.model)
    found = []
    for i, force in enumerate(nominal.forces):
        if not _has(force, parameter):
            continue
        if isinstance(force, (DryFriction, HardStops)):
            at = dofs[dof_index(nominal.model, PARAMETERS[parameter].owner, force.joint, force.dof)]
            found.append(replace(at, index=i) if force.name is None else Target(force.name, i, at.angular))
        else:
            place = force.frame if hasattr(force, "frame") else label_of(force)
            found.append(Target(force.name or place, i))
    return found


def _events(nominal: Nominal, parameter: str) -> list[Target]:
    """Return a target for each event of a joint, or of a user function with parameters."""
    dofs, is_of_function = _degrees_of_freedom(nominal.model), parameter == "event_parameter"
    found = []
    for i, event in enumerate(nominal.events):
        if event.function is not None and is_of_function and np.size(event.parameters):
            name = event.name or str(getattr(event.function, "__name__", "function"))
            found.append(Target(name, i, entries=np.shape(event.parameters)[-1]))
        elif event.joint is not None and parameter == f"event_{event.quantity}":
            at = dofs[dof_index(nominal.model, EVENT, event.joint, event.dof)]
            found.append(replace(at, index=i) if event.name is None else Target(event.name, i, at.angular))
    return found


def _drives(nominal: Nominal, parameter: str) -> list[Target]:
    """Return a target for each drive of a joint with the parameter."""
    dofs = _degrees_of_freedom(nominal.model)
    found = []
    for i, drive in enumerate(nominal.drives):
        controller = controller_of(drive)
        if isinstance(controller, UserForces) or not _has(drive, parameter):
            continue
        at = dofs[dof_index(nominal.model, "drive", controller.joint, controller.dof)]
        name = drive.name or controller.name
        found.append(replace(at, index=i) if name is None else Target(name, i, at.angular))
    return found


def _functions(nominal: Nominal, parameter: str) -> list[Target]:
    """Return a target for each user function."""
    field = PARAMETERS[parameter].field
    assert field is not None
    found = []
    for i, drive in enumerate(nominal.drives):
        controller = controller_of(drive)
        if isinstance(controller, UserForces) and _has(drive, parameter):
            name = drive.name or name_in_paths(controller)
            entries = np.size(getattr(owner_of(drive, parameter), field.name)) if field.shape else 0
            if entries or not field.shape:
                found.append(Target(name, i, entries=entries))
    return found


def _signals(nominal: Nominal, of_action: str, parameter: str) -> list[Target]:
    """Return a target for each signal with the parameter in the parameter `of_action` of a drive or a force."""
    given, name = PARAMETERS[of_action], parameter.removeprefix(OF_SIGNALS)
    found = []
    for target in _known(nominal, of_action):
        for component, axis in enumerate(given.components) if given.components else [(None, "")]:
            path = ".".join(part for part in (target.owner, given.field_in_paths(of_action), axis) if part)
            dof = target.dof if target.dofs > 1 else None  # a number after the path is an entry of a list
            owned = replace(target, owner=path, dof=dof, signal=of_action, component=component)
            numbers = numbers_of(signal_of(owned, nominal.drives, nominal.forces)).get(name)
            if numbers is not None:
                found.append(replace(owned, entries=numbers.entries))
    return found


def signal_of(target: Target, drives: Sequence[Any], forces: Sequence[Any]) -> Any:
    """Return the signal that is the owner of a parameter."""
    given = PARAMETERS[target.signal]
    assert given.field is not None
    action = (drives if given.owner == DRIVE else forces)[target.index]
    signal = getattr(owner_of(action, target.signal), given.field.name)
    return signal if target.component is None else three_components(signal)[target.component]


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
    counts = np.diff([*model.velocity_index, model.nv]).tolist()
    of_joints = [(n, d, c) for n, c in zip(model.joint_names, counts, strict=True) for d in range(c)]
    return [
        Target(name, i, kind != "prismatic", dof, count)
        for i, ((name, dof, count), kind) in enumerate(zip(of_joints, model.dof_types, strict=True))
    ]
