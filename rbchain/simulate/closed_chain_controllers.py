"""Gravity compensation and computed torque in closed loops: checks, and which joints hold the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..acting.controllers import controllers_model
from ..acting.coordinates import joints_of_dofs
from ..common.real_arrays import excerpt
from ..core.control import drive_layout
from ..core.loops import constraint_layout as closure
from ..core.loops.constraint_layout import ConstraintTables
from ..core.tree import setting_layout
from ..drivers.trajectories import Actions
from ..errors import ArgumentError
from ..model.description import CONSTRAINT_FIELDS
from .loops import held_dofs

if TYPE_CHECKING:
    from ..acting.numeric_fields import Drive
    from ..facade.model import Model
    from ..model.kernel_model import KernelModel

#: Singular values below this fraction of the largest one are round-off.
RANK_TOLERANCE = {"float64": 1e-8, "float32": 1e-3}
#: Number of samples from which the rank of the constraints is computed. The largest rank counts.
SAMPLES_FOR_RANK = 16
#: Fields that must be equal in both models if constraints connect points or directions.
GEOMETRY = ("placement_rotation", "placement_translation", "axis", "pitch", *CONSTRAINT_FIELDS)


def prepare_closed_controllers(
    model: Model, kernel_model: KernelModel, actions: Actions | None, drives: Sequence[Drive], q: np.ndarray
) -> None:
    """Set drive_layout.RESTS for gravity compensation in loops; raise an error if drives do not determine forces.

    Dofs that constraints connect are one group. The gravity forces of a group act on its dofs with gravity
    compensation. If these are not all of its dofs, the others move freely in the gravity sweep, so the forces of
    the compensated dofs hold them.

    Parameters
    ----------
    model : Model
    kernel_model : KernelModel
        The kernel model of the simulation.
    actions : Actions, optional
    drives : sequence of drives
    q : (..., nq) array
        Closed positions of all samples. NaN for samples that fail.

    Raises
    ------
    ArgumentError
        If forces of compensated dofs are not unique or cannot hold their group, the accelerations of computed torque
        depend on each other, or the controllers' model has other constraints than the mechanism.
    """
    if actions is None or kernel_model.constraint_tables is None:
        return
    computes, compensates = (actions.settings[[setting_layout.COMPUTES, setting_layout.COMPENSATES]] == 1).tolist()
    if not computes and not compensates:
        return
    what = "ComputedTorque" if computes else "gravity_compensation"
    kernel_model.refuse_compliance(what, "Use PID with a feedforward, or a constraint that is rigid")
    if kernel_model is not model.kernel_model:
        raise ArgumentError(
            f"{what}: bodies in the loops of model {model.name!r} are massless or much lighter than the others; "
            "expected larger masses and moments of inertia. Increase them, or add rotor_inertia to their joints"
        )
    _check_model(model, what, controllers_model(model, drives, q.shape[:-1]))
    J = model.constraint_jacobian(q).reshape(-1, model.kernel_model.constraint_rows, model.nv)
    J, table = J[np.isfinite(J).all((-2, -1))][:SAMPLES_FOR_RANK], actions.shared.drives
    if len(J) == 0:
        return
    prescribed = held_dofs(actions, model.nv)
    if computes:
        torques = table[drive_layout.KIND, : model.nv] == drive_layout.KIND_COMPUTED_TORQUE
        _check_torques(model, J, np.flatnonzero(torques), np.flatnonzero(prescribed | torques))
    compensated = np.zeros(model.nv, bool)
    compensated[table[drive_layout.DOF, table[drive_layout.COMPENSATES_GRAVITY] == 1]] = True
    for group in _groups(kernel_model.constraint_tables, model.nv):
        holding = group[(compensated | prescribed)[group]]
        if compensated[group].any() and len(holding) < len(group):
            _check_group(model, J, group, holding)
            table[drive_layout.RESTS, np.setdiff1d(group, holding)] = 0


def _check_model(model: Model, what: str, controller: Model) -> None:
    """Raise an error for a controllers' model with other constraints or, in loops, with another geometry."""
    places, others = model.description.constraints, controller.description.constraints
    if tuple(places) != tuple(others):
        raise ArgumentError(
            f"{what}: the controllers' model has the constraints {excerpt(list(controller.constraint_names))}; "
            f"expected the constraints of the simulated model, {excerpt(list(model.constraint_names))}"
        )
    if controller is model or all(place.kind == "coupler" for place in places):
        return
    for name in GEOMETRY:
        if (getattr(model, name) != getattr(controller, name)).any():
            raise ArgumentError(
                f"{what}: {name} differs between the simulated model and the controllers' model, so the loops of the "
                'controllers\' model are not closed; expected equal values. Set controller_model="own"'
            )


def _check_torques(model: Model, J: np.ndarray, torques: np.ndarray, given: np.ndarray) -> None:
    """Raise an error for computed torque and prescribed motions of dofs whose accelerations depend on each other."""
    if _rank(J, given) < _rank(J, given[:0]) + len(given):
        names = joints_of_dofs(model, torques)
        raise ArgumentError(
            f"ComputedTorque: the constraints {excerpt(list(model.constraint_names))} couple the accelerations of "
            f"joints with ComputedTorque or prescribed motions; ComputedTorque acts on {excerpt(names)}; expected "
            f"independent joints. Remove the drive of a dependent joint, or lock the joint: {_lock(names[-1])}"
        )


def _check_group(model: Model, J: np.ndarray, group: np.ndarray, holding: np.ndarray) -> None:
    """Raise an error for a group of connected dofs that the dofs `holding` do not hold, or hold in several ways."""
    rank = _rank(J[..., group], group[:0])
    position = np.searchsorted(group, holding)
    free = len(group) - rank
    if not _rank(J[..., group], position) == rank + len(holding) == len(group):
        others = joints_of_dofs(model, np.setdiff1d(group, holding))
        raise ArgumentError(
            f"gravity_compensation acts on {excerpt(joints_of_dofs(model, holding))}, but constraints connect the "
            f"joints {excerpt(joints_of_dofs(model, group))}. The forces are not unique or do not hold the other "
            "joints. Expected gravity_compensation of all these joints, or of as many independent ones as they have "
            f"degrees of freedom ({free}). Add or remove it, or lock a joint: {_lock(others[-1])}"
        )


def _rank(J: np.ndarray, given: np.ndarray) -> int:
    """Return the largest rank, over all samples, of J (samples, m, n) with a row for each given dof."""
    rows = np.broadcast_to(np.eye(J.shape[-1])[given], (len(J), len(given), J.shape[-1]))
    values = np.linalg.svd(np.concatenate([J.astype(np.float64), rows], -2), compute_uv=False)
    largest = values.max(-1, keepdims=True, initial=0.0)
    return int((values > RANK_TOLERANCE[J.dtype.name] * largest).sum(-1).max(initial=0))


def _groups(tables: ConstraintTables, nv: int) -> list[np.ndarray]:
    """Return the dofs that constraints connect, directly or through other dofs, as sorted arrays."""
    table, paths, label = tables.table, tables.paths[0], np.arange(nv)
    for c in range(table.shape[1]):
        if table[closure.TYPE, c] in closure.TYPES_OF_JOINTS:
            dofs = table[[closure.DOF_A, closure.DOF_B], c]
        else:
            dofs = np.concatenate(
                [paths[table[closure.PATH_A + s, c] : table[closure.OWN_END_A + s, c]] for s in range(2)]
            )
        label[np.isin(label, label[dofs])] = label[dofs].min(initial=nv)
    return [np.flatnonzero(label == value) for value in np.unique(label) if (label == value).sum() > 1]


def _lock(joint: str) -> str:
    return f'model.lock({{"{joint}": position}})'
