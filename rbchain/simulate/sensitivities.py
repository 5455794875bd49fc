"""Sensitivities in `simulate`: check their names, choose the columns that are integrated, and shape the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..acting.contacts import NAMES_OF_CONTACTS
from ..acting.controllers import uses_simulated_model
from ..acting.coordinates import joints_of_dofs
from ..acting.flatten_drives import refuse_lags
from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..core.control import drive_layout as drive
from ..core.control.actuators import ACTUATOR_GEAR
from ..core.linear import parameter_layout as codes
from ..core.linear.sensitivities import SensitivitySettings
from ..core.tree import setting_layout as setting
from ..errors import ArgumentError, UnknownNameError
from ..model.parameter_paths import MASS_AND_INERTIA, TENSOR, XYZ, relatives_of
from ..model.parameters import UPPER_TRIANGLE
from ..model.paths import Match, Owned, matches
from .force_columns import PlaceOfForce, matrices_of_columns, parameters_of_forces
from .methods import names_of
from .signal_columns import SIGNALS, Weights

if TYPE_CHECKING:
    from ..drivers.trajectories import Actions
    from ..facade.model import Model
    from .request import Request

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
}
GRAVITY = "gravity"
ENTRIES_OF_BODY = {"mass": 1, "cg": 3, "inertia": 6}
SPRINGS = ("stiffness", "rest_position", "cubic_stiffness")
GAINS, GEAR_FRICTION = ("kp", "ki", "kd"), "gear_friction"
KINDS_WITH_GAINS = (drive.KIND_PID, drive.KIND_COMPUTED_TORQUE)
#: The parameters that the forces of controllers with a model depend on.
PARAMETERS_OF_CONTROLLERS = ("gravity", "mass", MASS_AND_INERTIA, "cg", "inertia", "rotor_inertia", "gear_ratio")


def with_sensitivities(request: Request, actions: Actions | None, weights: Weights | None) -> Actions | None:
    """Return the actions with the settings of the sensitivities, and memory for the states of events with them.

    `weights` are of the values of tables, if the names contain "signal". They are the last signals of the actions.

    Raises
    ------
    ArgumentError
        If a name is unknown, or the sensitivities do not support the method, the model or the actions.
    """
    model, names = request.model, request.names
    if not names:
        return actions
    assert actions is not None  # flatten_actions was called with always=True
    _refuse_unsupported(request, actions)
    of_name = {SIGNALS: _columns_of_weights(model, actions, weights)} if weights is not None else {}
    of_name |= {name: _columns_of(model, actions, request.forces, name) for name in names if name != SIGNALS}
    columns = np.concatenate([of_name[name] for name in names], 1)
    settings = SensitivitySettings(np.ascontiguousarray(columns), int(request.control_derivative_errors))
    states = actions.records.states
    rows = states.shape[-1] + columns.shape[1] * _rows_of_column(model, actions)
    states = np.full((*states.shape[:-1], rows), np.nan, states.dtype)
    return actions._replace(sensitivities=settings, records=actions.records._replace(states=states))


def _columns_of_weights(model: Model, actions: Actions, weights: Weights) -> np.ndarray:
    """Return the columns (COLUMN_ROWS, count) of the values of tables, whose weights are the last signals."""
    if not weights.signals:
        raise ArgumentError(
            f'derivatives contains "{SIGNALS}", but no drive has a table; expected a drive such as '
            "rb.PrescribedForce(joint, rb.Signal.table(times, values))"
        )
    columns = weights.columns.copy()
    if (columns[codes.COLUMN_KIND] == codes.BY_ACCELERATION).any():
        is_closed = model.kernel_model.constraint_tables is not None
        if is_closed or actions.settings[setting.COMPUTES]:
            raise ArgumentError(
                f'derivatives contains "{SIGNALS}", but a PrescribedAcceleration has a table, and '
                f"{'the model has closed loops' if is_closed else 'another drive is a ComputedTorque'}; expected "
                "tables in PrescribedForce and PID only. Use one of them, or finite differences of simulations"
            )
    columns[codes.COLUMN_SIGNAL] += actions.shared.signals.shape[1] - len(weights.signals)
    return columns


def sensitivity_rows(model: Model, actions: Actions | None) -> int:
    """Return the number of rows of the state for sensitivities."""
    if actions is None or actions.sensitivities is None:
        return 0
    settings: Any = actions.sensitivities
    return int(settings.columns.shape[1]) * _rows_of_column(model, actions)


def _rows_of_column(model: Model, actions: Actions) -> int:
    return 2 * model.nv + actions.integrals


def checked_names(
    model: Model, names: Any, forces: Sequence[Any] = (), argument: str = "derivatives"
) -> tuple[str, ...]:
    """Return the names of fields and the paths of parameters of a model and of forces as a tuple.

    Raises ArgumentError or UnknownNameError if one is unknown, given twice, or names several parameters.
    """
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ArgumentError(f'{argument} is {excerpt(names)}; expected a list of names such as ("q", "link2.mass")')
    names_of_all = (*KINDS, SIGNALS)
    for name in names:
        if isinstance(name, str) and name in names_of_all:
            continue
        if not (isinstance(name, str) and "." in name):
            raise UnknownNameError(
                f"{argument} contains {excerpt(name)}; expected names among {', '.join(names_of_all)}, or paths such "
                f'as "link2.mass"{did_you_mean(str(name), names_of_all)}'
            )
        found = parameters_at(model, name, forces)
        if len(found) > 1 or not (found[0].is_whole or len(found[0].components) == 1):
            known = [match.name for match in found]
            remedy = ". Give each force another name" if len(set(known)) < len(known) else ""
            raise ArgumentError(
                f"{argument} contains {name!r}, which names {len(found)} parameters; expected the path of one of "
                f"{excerpt(known)}{remedy}"
            )
    if len(set(names)) < len(names):
        raise ArgumentError(f"{argument} is {excerpt(list(names))}; expected each name once")
    return tuple(names)


def parameters_at(model: Model, path: str, forces: Sequence[Any] = ()) -> list[Match[Any]]:
    """Return the parameters with derivatives that a path names, of the model and of springs and bushings.

    Their values are the indices of bodies or dofs, or a PlaceOfForce.
    """
    components = {"cg": XYZ, "inertia": TENSOR}
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
        else of_dof
        for name in KINDS
    } | {MASS_AND_INERTIA: of_body}
    for name, of_forces in parameters_of_forces(forces).items():
        parameters[name] = [*parameters.get(name, ()), *of_forces]
    return matches(path, parameters, relatives_of(model.description))


def _refuse_unsupported(request: Request, actions: Actions) -> None:
    """Raise an error for methods, models and actions without sensitivities."""
    remedy, method = "Use finite differences of simulations", request.method
    request.model.kernel_model.refuse_compliance("simulate(derivatives=...)", remedy)
    if not method.has_sensitivities:
        raise ArgumentError(
            f'method is "{method.name}", which does not compute derivatives; expected '
            f"{names_of(lambda method: method.has_sensitivities)}"
        )
    if actions.shared.contacts is not None:
        raise ArgumentError(
            f"derivatives do not support {NAMES_OF_CONTACTS}, because trajectories with impacts are not smooth. Use "
            "the friction and the elastic stops of PassiveForces"
        )
    if request.model.in_water and any(name.partition(".")[0] == GRAVITY for name in request.names):
        raise ArgumentError(
            f"derivatives contains gravity, but the model is in water, whose buoyancy depends on gravity too. {remedy}"
        )
    refuse_lags("the computation of derivatives", actions.shared.drives, remedy)
    _refuse_unsupported_controllers(request, actions, remedy)
    if actions.shared.samplers is not None:
        raise ArgumentError(
            f"derivatives do not support Sampled, because the derivatives of its outputs are not computed. {remedy}"
        )
    if actions.settings[setting.FUNCTIONS] > 0 and actions.settings[setting.DERIVATIVES] == 0:
        raise ArgumentError(
            "derivatives of trajectories require the derivatives of UserForces with respect to q and qd, but its "
            "derivatives are None. Pass UserForces(..., derivatives=...)"
        )


def _refuse_unsupported_controllers(request: Request, actions: Actions, remedy: str) -> None:
    """Raise an error for controllers with a model, if the derivatives of their forces are not computed."""
    model, drives = request.model, request.drives
    if not actions.settings[[setting.COMPUTES, setting.COMPENSATES]].any():
        return
    of_model = [
        name
        for name in request.names
        if name != SIGNALS and _field_of(model, request.forces, name) in PARAMETERS_OF_CONTROLLERS
    ]
    if of_model and uses_simulated_model(model, drives):
        raise ArgumentError(
            f"derivatives contains {', '.join(of_model)}, but the controllers use these parameters too "
            f'(controller_model="own"); expected controller_model="nominal", whose parameters do not change. {remedy}'
        )


def _field_of(model: Model, forces: Sequence[Any], name: str) -> str:
    """Return the field of a name, which is a field or a path."""
    return name if name in KINDS else parameters_at(model, name, forces)[0].field


def _columns_of(model: Model, actions: Actions, forces: Sequence[Any], name: str) -> np.ndarray:
    """Return the columns (COLUMN_ROWS, count) of one field or path."""
    if name not in KINDS:
        return _columns_of_path(model, actions, name, parameters_at(model, name, forces)[0])
    if name in ENTRIES_OF_BODY:
        entries = ENTRIES_OF_BODY[name]
        dofs, entry = np.repeat(model.kernel_model.dofs.last, entries), np.tile(np.arange(entries), model.n_bodies)
    elif name == GRAVITY:
        dofs, entry = np.zeros(3, int), np.arange(3)
    elif name in GAINS:
        entry = _drives_with_gains(model, actions, name)
        dofs = actions.shared.drives[drive.DOF, entry]
    else:
        dofs = _dofs_of(model, actions, name)
        entry = np.zeros(dofs.size, int)
    return _rows(np.full(dofs.size, KINDS[name]), dofs, entry)


def _rows(kinds: npt.ArrayLike, dofs: npt.ArrayLike, entries: npt.ArrayLike) -> np.ndarray:
    """Return columns (COLUMN_ROWS, count) without signals."""
    return np.stack(np.broadcast_arrays(kinds, dofs, entries, -1)).astype(np.int64)


def _columns_of_path(model: Model, actions: Actions, path: str, match: Match[Any]) -> np.ndarray:
    """Return the columns (COLUMN_ROWS, count) of the parameter `match` that a path names."""
    name, i = match.field, match.owned.value
    if isinstance(i, PlaceOfForce):
        return i.rows
    if name == MASS_AND_INERTIA:
        if not (model.mass[..., i] > 0.0).all():
            raise ArgumentError(f"derivatives contains {path!r}, but the mass is 0; expected a body with a mass")
        entries = np.arange(ENTRIES_OF_BODY["inertia"])
        kinds = [KINDS["mass"], *np.full(entries.size, KINDS["inertia"])]
        return _rows(kinds, model.kernel_model.dofs.last[i], [0, *entries])
    if name in ENTRIES_OF_BODY:
        return _rows(KINDS[name], model.kernel_model.dofs.last[i], list(match.components) or [0])
    if name == GRAVITY:
        return _rows(KINDS[name], 0, list(match.components))
    if name in GAINS:
        return _rows(KINDS[name], i, _drives_with_gains(model, actions, name, i))
    if i not in _dofs_of(model, actions, name):
        expected = "an Actuator with a gear_friction" if name == GEAR_FRICTION else "a joint with an angle"
        raise ArgumentError(f"derivatives contains {path!r}, which has no derivative; expected {expected}")
    return _rows(KINDS[name], i, [0])


def _dofs_of(model: Model, actions: Actions, name: str) -> np.ndarray:
    """Return the degrees of freedom that have a column for one name; the others have zero sensitivities."""
    if name in SPRINGS:
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
    drives = actions.shared.drives
    found = np.flatnonzero(np.isin(drives[drive.KIND], KINDS_WITH_GAINS))
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
    without = drives[drive.INTEGRAL, found] < 0
    if name == "ki" and without.any():
        joints = joints_of_dofs(model, dofs[without])
        raise ArgumentError(
            f'derivatives contains "ki", but the drives of joints {joints} have ki = 0 and integrate no error; '
            "expected a ki other than zero in at least one sample"
        )
    return found


def columns_of_states(model: Model, actions: Actions, saved: np.ndarray) -> np.ndarray:
    """Return all columns (..., 2 nv, columns) from the rows of states (..., rows) after the integrals."""
    rows = _rows_of_column(model, actions)
    columns = saved.reshape(*saved.shape[:-1], saved.shape[-1] // rows, rows)
    return np.swapaxes(columns[..., : 2 * model.nv], -1, -2)


def named(request: Request, actions: Actions, columns: np.ndarray) -> dict[str, np.ndarray]:
    """Return {name: array} from columns (..., times, rows, columns); each array has the axes of its parameter last."""
    model, forces, found, first = request.model, request.forces, {}, 0
    for name in request.names:
        count = _count_of(model, actions, forces, name)
        found[name] = _shaped(model, actions, forces, name, columns[..., first : first + count])
        first += count
    return found


def sensitivities_of(request: Request, actions: Actions | None, saved: np.ndarray) -> dict[str, np.ndarray]:
    """Return {name: sensitivities} from the rows of saved states (..., times, rows) after the integrals."""
    if actions is None or not request.names:
        return {}
    return named(request, actions, columns_of_states(request.model, actions, saved))


def _count_of(model: Model, actions: Actions, forces: Sequence[Any], name: str) -> int:
    """Return the number of columns of a field, a path, or the values of tables."""
    if name == SIGNALS:
        settings: Any = actions.sensitivities
        return int(np.isin(settings.columns[codes.COLUMN_KIND], codes.OF_SIGNALS).sum())
    return _columns_of(model, actions, forces, name).shape[1]


def _shaped(model: Model, actions: Actions, forces: Sequence[Any], name: str, columns: np.ndarray) -> np.ndarray:
    """Return the columns (..., times, 2 nv, count) of a field or path with the shape of its value."""
    if name in (SIGNALS, GRAVITY):
        return columns
    if name not in KINDS:
        return _shaped_for_path(model, parameters_at(model, name, forces)[0], columns)
    if name in ENTRIES_OF_BODY:
        of_bodies = columns.reshape(*columns.shape[:-1], model.n_bodies, ENTRIES_OF_BODY[name])
        if name == "mass":
            return of_bodies[..., 0]
        if name == "cg":
            return of_bodies
        return matrices_of_columns(of_bodies, 3)
    full = np.zeros((*columns.shape[:-1], model.nv), columns.dtype)
    full[np.isnan(columns[..., 0])] = np.nan
    full[..., _dofs_of(model, actions, name)] = columns
    if name in ("rotor_inertia", "gear_ratio"):
        full = full * _slope_of_armature(model, name)[..., None, None, :]
    return full.astype(columns.dtype)


def _slope_of_armature(model: Model, name: str) -> np.ndarray:
    """Return the derivatives of the armatures with respect to the rotor inertias or the gear ratios."""
    return model.gear_ratio**2 if name == "rotor_inertia" else 2.0 * model.rotor_inertia * model.gear_ratio


def _shaped_for_path(model: Model, match: Match[Any], columns: np.ndarray) -> np.ndarray:
    """Return the columns (..., times, 2 nv, count) of the parameter of a path with the shape of its value."""
    if isinstance(match.owned.value, PlaceOfForce):
        return matrices_of_columns(columns, 6) if match.owned.value.is_matrix else columns[..., 0]
    if match.is_whole and match.components:
        return matrices_of_columns(columns, 3) if match.field == "inertia" else columns
    found = columns[..., 0]
    if match.field == MASS_AND_INERTIA:  # the tensor is proportional to the mass
        i = match.owned.value
        slopes = model.inertia[..., i, :, :][..., *UPPER_TRIANGLE] / model.mass[..., i, None]
        found = found + (columns[..., 1:] * slopes[..., None, None, :].astype(columns.dtype)).sum(-1)
    if match.field in ("rotor_inertia", "gear_ratio"):
        slope = _slope_of_armature(model, match.field)[..., match.owned.value, None, None]
        found = (found * slope).astype(columns.dtype)
    return found
