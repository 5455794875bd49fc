"""Targets of a dispersion: the bodies, degrees of freedom, drives or forces whose parameter varies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ...acting.actuators import OF_ACTUATOR, Actuator
from ...acting.between_bodies import Bushing, SpringDamper, label_of
from ...acting.contacts import SphereContact, SphereSphereContact
from ...acting.coordinates import dof_index
from ...acting.drives import PID, ComputedTorque, PrescribedForce
from ...acting.friction_and_stops import DryFriction, HardStops
from ...acting.sampled import OF_SAMPLED, Sampled, controller_of, encoder_joints
from ...acting.wrenches import Current, Wrench
from ...errors import StudyError
from ...facade.model import Model
from ..describe.parameter_table import (
    BODY,
    BUSHING,
    CONSTRAINT,
    CONTACT,
    DOF,
    DRY_FRICTION,
    ENCODER,
    HARD_STOPS,
    MODEL,
    PARAMETERS,
    PREFIXES,
    SPRING,
    WRENCH,
)
from .nominal import Nominal

#: Parameters that only some kinds of constraints have.
OF_KINDS = {
    "constraint_point_a": ("ball", "hinge", "weld", "distance"),
    "constraint_point_b": ("ball", "hinge", "weld", "distance"),
    "constraint_length": ("distance",),
    "constraint_ratio": ("coupler",),
    "constraint_offset": ("coupler",),
}


@dataclass(frozen=True)
class Target:
    """A target of a dispersion: its name, its index, and whether positions are angles (else lengths)."""

    name: str
    index: int
    angular: bool = True


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
        if parameter == "current" and not any(isinstance(force, Current) for force in nominal.forces):
            raise StudyError("the parameter 'current' varies, but the study has no current; add a Current to forces")
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
            if place.kind in OF_KINDS[parameter]
        ]
    if owner == WRENCH:
        return _with_distinct_names([Target(f.frame, i) for i, f in enumerate(nominal.forces) if isinstance(f, Wrench)])
    if owner in (SPRING, BUSHING):
        kind = SpringDamper if owner == SPRING else Bushing
        return _with_distinct_names(
            [Target(label_of(f), i) for i, f in enumerate(nominal.forces) if isinstance(f, kind)]
        )
    if owner in (DRY_FRICTION, HARD_STOPS):
        of_joints = DryFriction if owner == DRY_FRICTION else HardStops
        dofs = _degrees_of_freedom(model)
        return [
            replace(dofs[dof_index(model, owner, force.joint, force.dof or 0)], index=i)
            for i, force in enumerate(nominal.forces)
            if isinstance(force, of_joints)
        ]
    if owner == CONTACT:
        return _with_distinct_names(
            [
                Target(force.body if isinstance(force, SphereContact) else label_of(force), i)
                for i, force in enumerate(nominal.forces)
                if isinstance(force, (SphereContact, SphereSphereContact)) and hasattr(force, contact_field(parameter))
            ]
        )
    if owner == ENCODER:
        return [
            Target(joint if dof == 0 else f"{joint}.{dof}", dof_index(model, "Encoder", joint, dof))
            for joint, dof in encoder_joints(nominal.drives)
        ]
    kinds: tuple[Any, ...] = (PrescribedForce,) if parameter == "signal" else (PID, ComputedTorque)
    kinds = (PID, ComputedTorque, PrescribedForce) if parameter == "limit" else kinds
    kinds = (Actuator,) if parameter in OF_ACTUATOR else kinds
    driven = [
        (controller_of(d), i)
        for i, d in enumerate(nominal.drives)
        if isinstance(controller_of(d), kinds) and (isinstance(d, Sampled) or parameter not in OF_SAMPLED)
    ]
    types = [model.dof_types[dof_index(model, "drive", d.joint, d.dof)] for d, _ in driven]
    return _with_distinct_names(
        [Target(d.joint, i, kind != "prismatic") for (d, i), kind in zip(driven, types, strict=True)]
    )


def contact_field(parameter: str) -> str:
    """Return the field of dry friction, hard stops or a contact that a parameter changes."""
    return parameter.removeprefix(PREFIXES[PARAMETERS[parameter].owner])


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
