"""The equations of the states of linear models, from the derivatives of the equations of motion."""

from __future__ import annotations

import numpy as np

from ..common.real_arrays import FloatArray
from .coordinates import Coordinates
from .operating_points import Conditions, OperatingPoints
from .tangents import rates_of_tangents


def state_equations(
    conditions: Conditions, points: OperatingPoints, coordinates: Coordinates, forces: FloatArray
) -> tuple[FloatArray, tuple[FloatArray, FloatArray], FloatArray]:
    """Compute the equations of the states.

    Parameters
    ----------
    conditions, points, coordinates
    forces : (samples, nv, inputs) array
        Changes of the right-hand side of M dqdd = df by the inputs.

    Returns
    -------
    A : (samples, states, states) array
    by_states : two arrays (samples, nv, states)
        The derivatives of dq/dt and of qdd.
    by_inputs : (samples, nv, inputs) array
        The derivatives of qdd.
    """
    P, V = coordinates.of_positions, coordinates.of_velocities
    forces_of_states = -(points.K @ P + points.D @ V)
    integrals = coordinates.integrals
    forces_of_states[:, :, forces_of_states.shape[2] - integrals :] += points.C
    accelerations = accelerations_by_forces(points, forces_of_states)
    by_inputs = accelerations_by_inputs(conditions, points, forces)
    rates = V + rates_of_tangents(conditions.model, points.qd) @ P
    of_integrals = -P[:, conditions.integrated]
    return coordinates.select(rates, accelerations, of_integrals), (rates, accelerations), by_inputs


def accelerations_by_inputs(conditions: Conditions, points: OperatingPoints, forces: FloatArray) -> FloatArray:
    """Compute the derivatives (samples, nv, inputs) of qdd by inputs that change M dqdd = df by these forces."""
    by_inputs = accelerations_by_forces(points, forces)
    return points.closed[:, 2] @ by_inputs if conditions.has_loops else by_inputs


def accelerations_by_forces(points: OperatingPoints, forces: FloatArray) -> FloatArray:
    """Compute the solutions dqdd of M dqdd = df for forces (samples, nv, columns); NaN for samples without one."""
    is_solvable = points.is_finite & np.isfinite(forces).all((1, 2))
    found = np.full(forces.shape, np.nan)
    found[is_solvable] = np.linalg.inv(points.M[is_solvable]) @ forces[is_solvable] if points.M.shape[1] else 0.0
    return found
