"""Parameters of springs between bodies in a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.numeric_fields import Force
from ..common.real_arrays import FloatArray, real_array
from ..errors import ArgumentError
from ..simulate.sensitivity_columns import parameters_at
from .variables import EntryVariables

if TYPE_CHECKING:
    from ..facade.model import Model


class SpringVariables(EntryVariables):
    """The logarithm of one parameter of a spring. `unit` is its SI unit."""

    def __init__(self, name: str, first: FloatArray, unit: str) -> None:
        super().__init__(first.reshape(1), np.array([0]), None, [name])
        self.unit = unit


def is_of_spring(name: str) -> bool:
    """Whether a name of the parameters of a problem is the path of a parameter of a spring; other names are fields."""
    return "." in name


def variables_of_spring(model: Model, name: str, forces_of_motions: Sequence[Sequence[Force]]) -> SpringVariables:
    """Return the variables of the parameter of a spring that acts in all measurements.

    Raises
    ------
    ArgumentError
        If the initial guess is zero, differs between the measurements, or is not a scalar.
    """
    found = []
    for forces in forces_of_motions:
        i, field = place_of(model, name, forces)
        found.append(real_array(name, getattr(forces[i], field), ArgumentError))
    if found[0].ndim:
        raise ArgumentError(f"{name} has shape {found[0].shape}; fit needs one number for each trajectory")
    if any(not np.array_equal(value, found[0]) for value in found):
        raise ArgumentError(
            f'parameters contains "{name}", but its springs have different initial guesses; expected the same spring '
            "for all trajectories"
        )
    if not found[0] > 0.0:
        raise ArgumentError(
            f'parameters contains "{name}", which is zero and therefore stays fixed; expected a positive initial guess'
        )
    return SpringVariables(name, found[0], forces[i].numeric_field(field).unit)


def place_of(model: Model, name: str, forces: Sequence[Force]) -> tuple[int, str]:
    """Return the place of the spring among the forces, and the field that a path names."""
    found = parameters_at(model, name, forces)
    if len(found) > 1:
        raise ArgumentError(
            f'parameters contains "{name}", which matches {len(found)} parameters; expected one. Give each force '
            "another name"
        )
    return found[0].owned.value.force, found[0].field


def fitted_forces(model: Model, forces: Sequence[Force], values: dict[str, FloatArray]) -> tuple[Force, ...]:
    """Return the forces with the parameters of springs in `values`, {path: (..., 1) array}."""
    found: list[Any] = list(forces)
    for name in filter(is_of_spring, values):
        i, field = place_of(model, name, forces)
        found[i] = replace(found[i], **{field: values[name][..., 0]})
    return tuple(found)
