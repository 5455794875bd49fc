"""The columns of sensitivities: the parameters that names of fields and paths stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..acting.coordinates import joints_of_dofs
from ..core.control import drive_layout as drive
from ..core.control.actuators import ACTUATOR_GEAR
from ..core.linear import parameter_layout as codes
from ..errors import ArgumentError
from ..model.parameter_paths import MASS_AND_INERTIA, TENSOR, XYZ, relatives_of
from ..model.paths import Match, Owned, matches
from .force_columns import PlaceOfForce, parameters_of_forces
from .function_columns import PlaceInFunction, parameters_of_functions

if TYPE_CHECKING:
    from ..drivers.trajectories import Actions
    from ..facade.model import Model

#: The kind of the columns of each name.
KINDS = {
    "q": codes.BY_POSITION,
    "qd": codes.BY_VELOCITY,
    "tau": codes.BY_FORCE,
    "mass": codes.BY_MASS,
    "cg": codes.BY_CG,
    "inertia": codes.BY_INERTIA,
    "rotor_inertia": codes.BY_ARMATURE,
    "gear_ratio": codes.BY_ARMATURE,
    "stiffness": codes.BY_STIFFNESS,
    "rest_position": codes.BY_REST,
    "cubic_stiffness": codes.BY_CUBIC_STIFFNESS,
    "damping": codes.BY_DAMPING,
    "friction": codes.BY_FRICTION,
    "static_friction": codes.BY_STATIC_FRICTION,
    "kp": codes.BY_KP,
    "ki": codes.BY_KI,
    "kd": codes.BY_KD,
    "gear_friction": codes.BY_GEAR_FRICTION,
    "gravity": codes.BY_GRAVITY,
    "placement_translation": codes.BY_TRANSLATION,
    "placement_rotation": codes.BY_ROTATION,
    "axis": codes.BY_AXIS,
}
GRAVITY, AXIS = "gravity", "axis"
PLACEMENTS = ("placement_translation", "placement_rotation")
GEOMETRY = (*PLACEMENTS, AXIS)
ENTRIES_OF_BODY = {"mass": 1, "cg": 3, "inertia": 6, **dict.fromkeys(PLACEMENTS, 3)}
SPRINGS = ("stiffness", "rest_position", "cubic_stiffness")
GAINS, GEAR_FRICTION = ("kp", "ki", "kd"), "gear_friction"
KINDS_WITH_GAINS = (drive.KIND_PID, drive.KIND_COMPUTED_TORQUE)


def parameters_at(model: Model, path: str, acting: Sequence[Any] = ()) -> list[Match[Any]]:
    """Return the parameters with derivatives that a path names, of the model, of springs, bushings and user functions.

    `acting` are forces, and drives after them. The values of the parameters are the indices of bodies or dofs, a
    PlaceOfForce or a PlaceInFunction.
    """
    components = {"inertia": TENSOR, **dict.fromkeys(("cg", *GEOMETRY), XYZ)}
    of_model = [Owned("", 0, XYZ)]
    of_body = [Owned(body, i) for i, body in enumerate(model.body_names)]
    first, counts = model.velocity_index.tolist(), model.kernel_model.dofs.counts.tolist()
    of_dof = [
        Owned(joint, at + dof, (), dof, count)
        for joint, at, count in zip(model.joint_names, first, counts, strict=True)
        for dof in range(count)
    ]
    parameters = {
        name: [owned._replace(components=components.get(name, ())) for owned in of_body]
        if name in ENTRIES_OF_BODY
        else of_model
        if name == GRAVITY
        else [owned._replace(components=components.get(name, ())) for owned in of_dof]
        for name in KINDS
    } | {MASS_AND_INERTIA: of_body}
    for name, of_forces in (parameters_of_forces(acting) | parameters_of_functions(acting)).items():
        parameters[name] = [*parameters.get(name, ()), *of_forces]
    return matches(path, parameters, relatives_of(model.description))


def columns_of(model: Model, actions: Actions, acting: Sequence[Any], name: str) -> np.ndarray:
    """Return the columns (COLUMN_ROWS, count) of one field or path."""
    if name not in KINDS:
        return _columns_of_path(model, actions, name, parameters_at(model, name, acting)[0])
    if name in ENTRIES_OF_BODY:
        entries = ENTRIES_OF_BODY[name]
        dofs, entry = np.repeat(_dofs_of_bodies(model, name), entries), np.tile(np.arange(entries), model.n_bodies)
    elif name == AXIS:
        chosen = dofs_of(model, actions, name)
        dofs, entry = np.repeat(chosen, 3), np.tile(np.arange(3), chosen.size)
    elif name == GRAVITY:
        dofs, entry = np.zeros(3, int), np.arange(3)
    elif name in GAINS:
        entry = _drives_with_gains(model, actions, name)
        dofs = actions.shared.drives[drive.DOF, entry]
    else:
        dofs = dofs_of(model, actions, name)
        entry = np.zeros(dofs.size, int)
    return _rows(np.full(dofs.size, KINDS[name]), dofs, entry)


def _dofs_of_bodies(model: Model, name: str) -> np.ndarray:
    """Return the degree of freedom of each body that has its placement or its inertia in the kernels' arrays."""
    dofs = model.kernel_model.dofs
    return dofs.velocity_index if name in PLACEMENTS else dofs.last


def _rows(kinds: npt.ArrayLike, dofs: npt.ArrayLike, entries: npt.ArrayLike) -> np.ndarray:
    """Return columns (COLUMN_ROWS, count) without signals."""
    return np.stack(np.broadcast_arrays(kinds, dofs, entries, -1)).astype(np.int64)


def _columns_of_path(model: Model, actions: Actions, path: str, match: Match[Any]) -> np.ndarray:
    """Return the columns (COLUMN_ROWS, count) of the parameter `match` that a path names."""
    name, i = match.field, match.owned.value
    if isinstance(i, PlaceOfForce):
        return i.rows(match.components)
    if isinstance(i, PlaceInFunction):
        return i.rows(path, match.components)
    if name == MASS_AND_INERTIA:
        if not (model.mass[..., i] > 0.0).all():
            raise ArgumentError(f"derivatives contains {path!r}, but the mass is 0; expected a body with a mass")
        entries = np.arange(ENTRIES_OF_BODY["inertia"])
        kinds = [KINDS["mass"], *np.full(entries.size, KINDS["inertia"])]
        return _rows(kinds, model.kernel_model.dofs.last[i], [0, *entries])
    if name in ENTRIES_OF_BODY:
        return _rows(KINDS[name], _dofs_of_bodies(model, name)[i], list(match.components) or [0])
    if name == GRAVITY:
        return _rows(KINDS[name], 0, list(match.components))
    if name in GAINS:
        return _rows(KINDS[name], i, _drives_with_gains(model, actions, name, i))
    if i not in dofs_of(model, actions, name):
        expected = "an Actuator with a gear_friction" if name == GEAR_FRICTION else "a joint with an axis"
        raise ArgumentError(f"derivatives contains {path!r}, which has no derivative; expected {expected}")
    return _rows(KINDS[name], i, list(match.components) or [0])


def dofs_of(model: Model, actions: Actions, name: str) -> np.ndarray:
    """Return the degrees of freedom that have a column for one name; the others have zero sensitivities."""
    if name in (*SPRINGS, AXIS):
        return np.flatnonzero(~model.kernel_model.dofs.in_quaternion_joint)
    if name in GAINS:
        return actions.shared.drives[drive.DOF, _drives_with_gains(model, actions, name)]
    return _dofs_of_gears(actions) if name == GEAR_FRICTION else np.arange(model.nv)


def _dofs_of_gears(actions: Actions) -> np.ndarray:
    """Return the degrees of freedom whose actuator has a gear friction. Raises an ArgumentError if there is none."""
    actuators: Any = actions.shared.actuators
    found = np.zeros(0, int) if actuators is None else np.flatnonzero(actuators[ACTUATOR_GEAR] >= 0)
    if not found.size:
        raise ArgumentError(
            f'derivatives contains "{GEAR_FRICTION}", but no Actuator has a gear_friction; expected an Actuator whose '
            "gear_friction is not zero in at least one sample"
        )
    return found


def _drives_with_gains(model: Model, actions: Actions, name: str, dof: int | None = None) -> np.ndarray:
    """Return the columns of the drives with gains in the table of drives, in the order of their degrees of freedom.

    With `dof`, only the drive of this degree of freedom. Raises an ArgumentError if there is none, if a degree of
    freedom has several, or for "ki" if one integrates no error.
    """
    drives, samplers = actions.shared.drives, actions.shared.samplers
    has_gains = np.isin(drives[drive.KIND], KINDS_WITH_GAINS)
    is_held = drives[drive.KIND] == drive.KIND_HELD
    if samplers is not None:
        has_gains |= is_held & np.isin(samplers.drives[drive.KIND], KINDS_WITH_GAINS)
    found = np.flatnonzero(has_gains)
    found = found if dof is None else found[drives[drive.DOF, found] == dof]
    found = found[np.argsort(drives[drive.DOF, found], kind="stable")]
    if not found.size:
        where = "drives contains none" if dof is None else f"joints {joints_of_dofs(model, [dof])} have none"
        raise ArgumentError(f'derivatives contains "{name}"; expected a PID or ComputedTorque, but {where}')
    dofs, counts = np.unique(drives[drive.DOF, found], return_counts=True)
    if (counts > 1).any():
        joints = joints_of_dofs(model, dofs[counts > 1])
        raise ArgumentError(
            f'derivatives contains "{name}", but a degree of freedom of joints {joints} has several drives with gains; '
            "expected one PID or ComputedTorque. Add the gains of several PIDs in one"
        )
    without = (drives[drive.INTEGRAL, found] < 0) & ~is_held[found]  # a sampled PID always integrates its error
    if name == "ki" and without.any():
        joints = joints_of_dofs(model, dofs[without])
        raise ArgumentError(
            f'derivatives contains "ki", but the drives of joints {joints} have ki = 0 and integrate no error; '
            "expected a ki other than zero in at least one sample"
        )
    return found
