"""The targets of a dispersion: the bodies, degrees of freedom, drives or wrenches whose parameter varies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ..actions.coordinates import dof_index
from ..actions.drives import PID, ComputedTorque, PrescribedForce
from ..actions.wrenches import Current, Wrench
from ..errors import StudyError
from .nominal import Nominal
from .parameter_table import BODY, DOF, MODEL, PARAMETERS, WRENCH


@dataclass(frozen=True)
class Target:
    """One thing that a dispersion is of: its name, its place, and whether it is measured in angles."""

    name: str
    index: int
    angular: bool = True


def targets_of(nominal: Nominal, parameter: str, patterns: tuple[str, ...]) -> list[Target]:
    """What the patterns name, in the model's order; a StudyError where one names nothing."""
    known = _known(nominal, parameter)
    if PARAMETERS[parameter].owner == MODEL:
        if patterns != ("*",):
            raise StudyError(f"{parameter} is of the whole model; found targets = {list(patterns)}")
        return known
    if parameter in ("mass", "mass_and_inertia"):
        known = [target for target in known if nominal.model.mass[target.index] > 0.0]
    found = []
    for pattern in patterns:
        matches = [target for target in known if fnmatchcase(target.name, pattern)]
        if not matches:
            names = sorted({target.name for target in known}, key=[t.name for t in known].index)
            raise StudyError(
                f"{pattern!r} names no {PARAMETERS[parameter].owner} with a {parameter}; there are {names}"
            )
        found += [target for target in matches if target not in found]
    return sorted(found, key=known.index)


def _known(nominal: Nominal, parameter: str) -> list[Target]:
    """Everything that has the parameter."""
    model, owner = nominal.model, PARAMETERS[parameter].owner
    if owner == MODEL:
        if parameter == "current" and not any(isinstance(force, Current) for force in nominal.forces):
            raise StudyError("a current varies, but there is none: give forces a Current")
        return [Target(model.name, 0)]
    if owner == BODY:
        names = list(model.body_names)
        if parameter == "payload":
            names += list(model.fixed_frames)
        return [Target(name, i) for i, name in enumerate(names)]
    if owner == DOF:
        counts = np.diff([*model.velocity_index, model.nv])
        names = [n if c == 1 else f"{n}.{d}" for n, c in zip(model.joint_names, counts, strict=True) for d in range(c)]
        return [
            Target(n, i, kind != "prismatic") for i, (n, kind) in enumerate(zip(names, model.dof_types, strict=True))
        ]
    if owner == WRENCH:
        return _named([(f.frame, i, True) for i, f in enumerate(nominal.forces) if isinstance(f, Wrench)])
    kinds: tuple[Any, ...] = (PrescribedForce,) if parameter == "signal" else (PID, ComputedTorque)
    kinds = (PID, ComputedTorque, PrescribedForce) if parameter == "limit" else kinds
    driven = [(d, i) for i, d in enumerate(nominal.drives) if isinstance(d, kinds)]
    turns = [model.dof_types[dof_index(model, "drive", d.joint, d.dof)] != "prismatic" for d, _ in driven]
    return _named([(d.joint, i, turn) for (d, i), turn in zip(driven, turns, strict=True)])


def _named(things: Sequence[tuple[str, int, bool]]) -> list[Target]:
    """Targets of which those with a name that was there before have their number behind it."""
    names = [name for name, *_ in things]
    numbers = [names[:i].count(name) for i, name in enumerate(names)]
    return [
        Target(f"{name}.{number}" if number else name, index, turns)
        for (name, index, turns), number in zip(things, numbers, strict=True)
    ]
