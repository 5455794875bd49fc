"""The equations of linear models: their matrices for a batch, with the samples along the first axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..acting.numeric_fields import Drive, Force
from ..common.real_arrays import FloatArray
from .coordinates import Coordinates, coordinates_of
from .input_ports import GivenInput, changes_by_inputs, inputs_of, wrenches_of_inputs
from .operating_points import (
    Conditions,
    OperatingPoints,
    checked_integrals,
    conditions_of,
    given_states,
    operating_points,
)
from .ports import Output, outputs_of, rows_of_outputs
from .tangents import rates_of_tangents

if TYPE_CHECKING:
    from ..facade.model import Model


@dataclass(frozen=True)
class Request:
    """The checked arguments of `linearize`; `states` are q, qd and tau."""

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
        return conditions_of("linearize", self.model, self.states, (drives, self.forces), self.t)


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
    A, by_dofs, B = state_equations(conditions, points, coordinates, [of_forces])
    wrenches = wrenches_of_inputs(conditions, points, inputs)
    C, D = rows_of_outputs(conditions, points, outputs, (coordinates, by_dofs, B), wrenches)
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


def state_equations(
    conditions: Conditions, points: OperatingPoints, coordinates: Coordinates, forces: Sequence[FloatArray]
) -> tuple[FloatArray, tuple[FloatArray, FloatArray], FloatArray]:
    """Compute the equations of the states.

    Parameters
    ----------
    conditions, points, coordinates
    forces : list of (samples, nv, inputs) arrays
        Changes of the right-hand side of M dqdd = df by the inputs.

    Returns
    -------
    A : (samples, states, states) array
    by_states : two arrays (samples, nv, states)
        The derivatives of dq/dt and of qdd.
    by_inputs : (samples, nv, inputs) array
        The derivatives of qdd.
    """
    n, samples, P, V = conditions.model.nv, conditions.samples, coordinates.of_positions, coordinates.of_velocities
    forces_of_states = -(points.K @ P + points.D @ V)
    integrals = coordinates.integrals
    forces_of_states[:, :, forces_of_states.shape[2] - integrals :] += points.C
    is_solvable = points.is_finite & np.isfinite(forces_of_states).all((1, 2))
    inverse = np.full((samples, n, n), np.nan)
    inverse[is_solvable] = np.linalg.inv(points.M[is_solvable]) if n else 0.0
    accelerations = inverse @ forces_of_states
    by_inputs = inverse @ np.concatenate([np.zeros((samples, n, 0)), *forces], 2)
    if conditions.has_loops:
        by_inputs = points.closed[:, 0] @ by_inputs
    rates = V + rates_of_tangents(conditions.model, points.qd) @ P
    of_integrals = -P[:, conditions.integrated]
    return coordinates.select(rates, accelerations, of_integrals), (rates, accelerations), by_inputs
