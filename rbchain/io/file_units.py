"""Units of rbchain's own format: numbers and texts such as "5 mm" of a file in SI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..acting.numeric_fields import SIGNAL
from ..acting.signals import as_signal
from ..acting.tables import DRIVES, action_of
from ..model.units import Units
from ..model.validation import naming


class FileUnits:
    """Converter from the units of the file to SI. Plain numbers in SI are not changed, not even by round-off."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        name, degrees = given.get("units", "SI"), given.get("degrees", False)
        self.units = None if name == "SI" and not degrees else Units(name, degrees)

    def __call__(self, dimension: str, value: Any) -> Any:
        if self.units is None and not _has_text(value):
            return value
        return (self.units or Units()).quantity(value, dimension)

    def of_dofs(self, name: str, unit: str, value: Any, kinds: Sequence[str]) -> Any:
        """Convert one value for all dofs, or one for each.

        `unit` is one SI unit, or as "rad or m" the units of a rotation and of a translation.

        Raises a ModelError that begins with the name if a unit does not fit.
        """
        if self.units is None and not _has_text(value):
            return value
        of_rotation, _, of_translation = unit.partition(" or ")
        of_kind = [of_translation or unit if kind == "prismatic" else of_rotation for kind in kinds]
        units = self.units or Units()
        values = value if isinstance(value, list) else [value] * len(kinds)
        if len(values) != len(kinds):
            return value  # whose error `add_body` reports
        with naming(name):
            found = [units.in_si(number, own) for number, own in zip(values, of_kind, strict=True)]
        return found if isinstance(value, list) or len(set(of_kind)) > 1 else found[0]


def drive_in_si(table: Mapping[str, Any], units: FileUnits, kinds: Mapping[str, Sequence[str]]) -> Any:
    """Return the drive of a table, whose numbers and signals are in SI."""
    drive = action_of({name: _with_phase_in_si(value, units) for name, value in table.items()}, DRIVES)
    own, dof = kinds.get(drive.joint, ()), drive.dof or 0
    if units.units is None or dof >= len(own):  # `add_drive` reports an unknown joint or dof
        return drive
    found = {}
    for field in drive.numeric_fields:
        value, kind = getattr(drive, field.name), own[dof : dof + 1]
        factor = units.of_dofs(field.name, field.unit, 1.0, kind)
        if not isinstance(value, str):
            is_signal = field.kind == SIGNAL or field.has_inputs(value)
            found[field.name] = factor * (as_signal(field.name, value) if is_signal else np.asarray(value))
    return replace(drive, **found)


def _with_phase_in_si(value: Any, units: FileUnits) -> Any:
    """Return a value of a drive; the phase of sines, which is an angle, in rad."""
    has_phase = isinstance(value, dict) and value.get("type") == "sines" and "phase" in value
    return value | {"phase": units("angle", value["phase"])} if has_phase else value


def _has_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and any(_has_text(part) for part in value))
