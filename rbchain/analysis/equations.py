"""The equations of linear models: their matrices for a batch, with the samples along the first axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..acting.numeric_fields import Drive, Force
from ..common.real_arrays import FloatArray
from .coordinates import coordinates_of
from .equations_of_states import state_equations
from .input_ports import GivenInput, changes_by_inputs, inputs_of, wrenches_of_inputs
from .operating_points import (
    Conditions,
    checked_integrals,
    conditions_of,
    given_states,
    operating_points,
)
from .ports import Output, outputs_of, rows_of_outputs

if TYPE_CHECKING:
    from ..facade.model import Model


@dataclass(frozen=True)
class Request:
    """The checked arguments of `function`, such as `linearize`; `states` are q, qd and tau."""

    function: str
    model: Model
    states: tuple[npt.ArrayLike | None, npt.ArrayLike, npt.ArrayLike]
    drives: Sequence[Drive]
    forces: Sequence[Force]
    t: FloatArray
    integrals: FloatArray
    inputs: Sequence[GivenInput] | None
    outputs: Sequence[Output] | None

    def conditions(self, drives: Sequence[Drive]) -> tuple[Conditions, list[FloatArray], FloatArray]:
        """Return the conditions with these drives, the states of all samples, and their times."""
        return conditions_of(self.function, self.model, self.states, (drives, self.forces), self.t)


@dataclass(frozen=True)
class Equations:
    """The equations of a batch of linear models.

    `matrices` are A, B, C, D, and the maps from the states to the positions and velocities, all (samples, ., .).
    `acceleration` (samples, nv) is at the operating point. `period`, s, is None for continuous equations.
    """

    batch: tuple[int, ...]
    matrices: tuple[FloatArray, ...]
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    acceleration: FloatArray
    is_usable: npt.NDArray[np.bool_]
    period: float | None = None


def are_finite(matrices: Sequence[FloatArray]) -> npt.NDArray[np.bool_]:
    """Return whether all matrices of each sample are finite, (samples,)."""
    return np.logical_and.reduce([np.isfinite(x).all((1, 2)) for x in matrices])


def continuous_equations(request: Request) -> Equations:
    """Compute the equations under continuous drives."""
    conditions, states, times = request.conditions(request.drives)
    sums = checked_integrals(conditions, request.integrals)
    inputs, outputs = inputs_of(conditions, request.inputs), outputs_of(conditions, request.outputs)
    points = operating_points(conditions, (*given_states(conditions, states, times), sums), states[2], times)
    coordinates = coordinates_of(conditions, points)
    of_forces, of_integrals = changes_by_inputs(conditions, points, inputs)
    A, by_dofs, B = state_equations(conditions, points, coordinates, of_forces)
    wrenches = wrenches_of_inputs(conditions, points, inputs)
    C, D = rows_of_outputs(conditions, points, outputs, (coordinates, by_dofs, B), (of_forces, wrenches))
    B = coordinates.select(np.zeros_like(B), B, of_integrals)
    matrices = (A, B, C, D, coordinates.of_positions, coordinates.of_velocities)
    return Equations(
        batch=conditions.batch,
        matrices=matrices,
        states=coordinates.names(conditions.model.velocity_labels, conditions.integrated),
        inputs=tuple(given.name for given in inputs),
        outputs=tuple(name for output in outputs for name in output.names),
        acceleration=points.qdd,
        is_usable=points.is_finite & are_finite(matrices),
    )
