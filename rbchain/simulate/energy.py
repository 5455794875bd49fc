"""The energy error of trajectories: mechanical energy minus the work of all other forces since the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..acting.flatten_between_bodies import elastic_energy
from ..acting.numeric_fields import Force
from ..common.real_arrays import FloatArray
from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..facade.model import Model


def new_work(is_requested: bool, samples: int, times: int) -> FloatArray | None:
    """Allocate the work (samples, times) of forces since the start; None if it is not requested."""
    return np.full((samples, times), np.nan) if is_requested else None


def refuse_without_inertia(model: Model, method: str) -> None:
    """Raise an error for bodies without inertia: springs and dampers move them in implicit steps."""
    raise ArgumentError(
        f'energy_error is True, but model {model.name!r} has bodies without inertia, and method "{method}" moves them '
        "by springs and dampers alone, which does not determine the powers of the forces; expected bodies with "
        "inertia. Give them mass, or omit energy_error"
    )


def energy_error_of(
    model: Model,
    forces: Sequence[Force],
    q: FloatArray,
    qd: FloatArray,
    work: FloatArray | None,
    batch: tuple[int, ...],
) -> FloatArray | None:
    """Compute the error of the energy, J, in float64; None if it is not requested.

    Parameters
    ----------
    model : Model
    forces : sequence
        The forces of the simulation. Springs and bushings have elastic energy.
    q, qd : (samples, times, nq) and (samples, times, nv) arrays
        States at the start and at later times.
    work : (samples, times) array or None, J
        Work of all forces that are neither gravity nor elastic.
    batch : tuple
        Shape of the batch.

    Returns
    -------
    (*batch, times) array
    """
    if work is None:
        return None
    q, qd = (x.reshape(*batch, *x.shape[1:]).astype(np.float64) for x in (q, qd))
    kinetic, potential = model[..., None].energy(q, qd)
    energy = kinetic + potential + elastic_energy(model, forces, q, qd)
    return energy - energy[..., :1] - work.reshape(energy.shape)
