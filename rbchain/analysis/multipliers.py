"""The forces of constraints as functions of the states and inputs of a linear model.

If rows depend on each other, `Model.constraint_forces` returns the multipliers of minimum norm, l = J y. The rank of J
is constant for changes of the state that keep the loops closed. `points.multipliers` contains changes dL with
J^T dL = d(J^T l) - (dJ)^T l, but not those with minimum norm. Because J^T dl = J^T dL and dl = J dy + (dJ) y,

    dl = J J^+ dL + (1 - J J^+) (dJ) y,   y = J^+ l.

Source: Golub and Pereyra (1973), "The differentiation of pseudo-inverses and nonlinear least squares problems whose
variables separate".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..common.real_arrays import FloatArray
from .coordinates import Coordinates
from .equations_of_states import accelerations_by_forces
from .loads_between_bodies import changes_of_rates
from .operating_points import Conditions, OperatingPoints

#: Singular values of J below this multiple of the largest one are zero.
SMALLEST_SINGULAR_VALUE = 1e-9


class Multipliers(NamedTuple):
    """The multipliers (samples, m), and their derivatives (samples, m, columns) by states and inputs."""

    value: FloatArray
    by_states: FloatArray
    by_inputs: FloatArray


def multipliers_of(
    conditions: Conditions, points: OperatingPoints, coordinates: Coordinates, forces: FloatArray
) -> Multipliers:
    """Compute the multipliers of minimum norm, in the order of `Model.constraint_forces`, and their derivatives.

    `forces` (samples, nv, inputs) are the changes of the right-hand side of M dqdd = df by the inputs.
    """
    n, P, V = conditions.model.nv, coordinates.of_positions, coordinates.of_velocities
    found = points.multipliers
    value, by_q, by_qd = found[:, :, 0], found[:, :, 1 : 1 + n], found[:, :, 1 + n : 1 + 2 * n]
    by_integrals, X = found[:, :, 1 + 2 * n : found.shape[2] - n], found[:, :, found.shape[2] - n :]
    by_states = by_q @ P + by_qd @ V
    by_states[:, :, P.shape[2] - coordinates.integrals :] += by_integrals
    by_inputs = -X @ accelerations_by_forces(points, forces)
    return _of_minimum_norm(conditions, points, coordinates, Multipliers(value, by_states, by_inputs))


def _of_minimum_norm(
    conditions: Conditions, points: OperatingPoints, coordinates: Coordinates, given: Multipliers
) -> Multipliers:
    """Return the multipliers of minimum norm that exert the same joint forces."""
    model, samples = conditions.model, conditions.samples
    q = points.q.reshape(*conditions.batch, model.nq)
    J = model.constraint_jacobian(q).reshape(samples, -1, model.nv)
    is_finite = np.logical_and(np.isfinite(J).all((1, 2)), np.isfinite(given.value).all(1))
    U, S, Vt = np.linalg.svd(np.where(is_finite[:, None, None], J, 0.0), full_matrices=False)
    kept = np.greater(S, SMALLEST_SINGULAR_VALUE * S[:, :1])
    if S.shape[1] == J.shape[1] and kept[is_finite].all():
        return given  # all rows are independent
    U = U * kept[:, None]
    onto = U @ np.swapaxes(U, 1, 2)
    rest = np.eye(J.shape[1]) - onto
    weights = np.divide(1.0, S, out=np.zeros_like(S), where=kept)
    y = np.einsum("sri,sr,skr,sk->si", Vt, weights, U, np.nan_to_num(given.value))
    by_states = onto @ given.by_states + rest @ changes_of_rates(conditions, points, y) @ coordinates.of_positions
    return Multipliers(given.value, by_states, onto @ given.by_inputs)
