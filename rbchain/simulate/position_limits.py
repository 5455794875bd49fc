"""Motions that exceed the position limits of joints without stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.coordinates import dof_index
from ..acting.friction_and_stops import HardStops
from ..core.tree.layout import TOPOLOGY_COORDINATE

if TYPE_CHECKING:
    from ..facade.model import Model

#: By how much a position may exceed its limit because of the errors of steps, in rad or m, or relative to the limit.
ALLOWED = {"float64": 1e-6, "float32": 1e-3}


def limits_to_check(model: Model, forces: Sequence[Any], batch: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return the coordinate, the lower and upper limit with an allowance, and the dof, of each limited dof.

    These are the dofs with a finite position limit, without HardStops and without an elastic stop in this direction.
    The shape is (samples, m, 4), or (1, m, 4) if all samples have the same stops.
    """
    stops = [force for force in forces if isinstance(force, HardStops)]
    with_stops = [dof_index(model, "HardStops", stop.joint, stop.dof) for stop in stops]
    limits = model.kernel_model.unguarded_limits
    limits = np.broadcast_to(limits, (*batch, *limits.shape[-2:])) if limits.ndim > 2 else limits
    limits = limits.reshape(-1, *limits.shape[-2:])
    dofs = [dof for dof in np.flatnonzero(np.isfinite(limits).any((0, 2))).tolist() if dof not in with_stops]
    limits = limits[:, dofs]
    allowed = ALLOWED[dtype.name] * np.where(np.isfinite(limits), np.maximum(1.0, np.abs(limits)), 0.0)
    found = np.empty((*limits.shape[:2], 4))
    found[..., 0] = model.kernel_model.topology[TOPOLOGY_COORDINATE, dofs]
    found[..., 1:3] = limits + [-1.0, 1.0] * allowed
    found[..., 3] = dofs
    return found
