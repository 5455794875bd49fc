"""Sensitivities in `simulate`: check their names, choose the columns that are integrated, and shape the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.contacts import NAMES_OF_CONTACTS
from ..acting.controllers import uses_simulated_model
from ..acting.flatten_drives import refuse_lags
from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..core.linear import parameter_layout as codes
from ..core.linear.sensitivities import SensitivitySettings
from ..core.tree import setting_layout as setting
from ..errors import ArgumentError, UnknownNameError
from ..model.parameter_paths import MASS_AND_INERTIA
from ..model.parameters import UPPER_TRIANGLE
from ..model.paths import Match
from .force_columns import PlaceOfForce, matrices_of_columns
from .methods import names_of
from .samplers import outputs_of_samplers, refuse_derivatives_of_samplers
from .sensitivity_columns import AXIS, ENTRIES_OF_BODY, GEOMETRY, GRAVITY, KINDS, columns_of, dofs_of, parameters_at
from .signal_columns import SIGNALS, Weights

if TYPE_CHECKING:
    from ..drivers.trajectories import Actions
    from ..facade.model import Model
    from .request import Request

#: The parameters that the forces of controllers with a model depend on.
PARAMETERS_OF_CONTROLLERS = (
    *("gravity", "mass", MASS_AND_INERTIA, "cg", "inertia", "rotor_inertia", "gear_ratio"),
    *GEOMETRY,
)


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
    of_name |= {name: columns_of(model, actions, request.acting, name) for name in names if name != SIGNALS}
    columns = np.concatenate([of_name[name] for name in names], 1)
    settings = SensitivitySettings(np.ascontiguousarray(columns), int(request.control_derivative_errors))
    states = actions.records.states
    rows = states.shape[-1] + columns.shape[1] * _rows_of_column(model, actions)
    rows += outputs_of_samplers(actions)  # latched at events
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
    return 0 if actions is None else columns_of_sensitivities(actions) * _rows_of_column(model, actions)


def columns_of_sensitivities(actions: Actions | None) -> int:
    """Return the number of parameters with sensitivities."""
    if actions is None or actions.sensitivities is None:
        return 0
    settings: Any = actions.sensitivities
    return int(settings.columns.shape[1])


def _rows_of_column(model: Model, actions: Actions) -> int:
    return 2 * model.nv + actions.integrals


def checked_names(
    model: Model, names: Any, acting: Sequence[Any] = (), argument: str = "derivatives"
) -> tuple[str, ...]:
    """Return the names of fields and the paths of parameters of a model and of actions as a tuple.

    `acting` are forces, and drives after them.

    Raises ArgumentError or UnknownNameError if one is unknown, given twice, or names several parameters.
    """
    if isinstance(names, str) or not isinstance(names, (tuple, Sequence)):  # a test of a tuple takes less time
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
        found = parameters_at(model, name, acting)
        if len(found) > 1 or not (found[0].is_whole or len(found[0].components) == 1):
            known = [match.name for match in found]
            remedy = ". Give each force another name" if len(set(known)) < len(known) else ""
            raise ArgumentError(
                f"{argument} contains {name!r}, which matches {len(found)} parameters; expected the path of one of "
                f"{excerpt(known)}{remedy}"
            )
    if len(set(names)) < len(names):
        raise ArgumentError(f"{argument} is {excerpt(list(names))}; expected each name once")
    return tuple(names)


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
    _refuse_geometry(request, remedy)
    refuse_lags("the computation of derivatives", actions.shared.drives, remedy)
    _refuse_unsupported_controllers(request, actions, remedy)
    refuse_derivatives_of_samplers(request.drives, request.events, remedy)
    if actions.settings[setting.FUNCTIONS] > 0 and actions.settings[setting.DERIVATIVES] == 0:
        raise ArgumentError(
            "derivatives of trajectories require the derivatives of UserForces with respect to q and qd, but its "
            "derivatives are None. Pass UserForces(..., derivatives=...)"
        )


def _refuse_geometry(request: Request, remedy: str) -> None:
    """Raise an error for derivatives with respect to geometry, if further forces depend on the geometry."""
    model = request.model
    found = [x for x in request.names if x != SIGNALS and _field_of(model, request.acting, x) in GEOMETRY]
    is_closed = model.kernel_model.constraint_tables is not None
    if found and (is_closed or model.in_water):
        state = "has closed loops" if is_closed else "is in water"
        raise ArgumentError(
            f"derivatives contains {', '.join(found)}, but the model {state}, for which "
            f"derivatives with respect to geometry are not available; expected an open chain in air. {remedy}"
        )


def _refuse_unsupported_controllers(request: Request, actions: Actions, remedy: str) -> None:
    """Raise an error for controllers with a model, if the derivatives of their forces are not computed."""
    model, drives = request.model, request.drives
    if not actions.settings[setting.CONTROLLER_MODEL]:
        return
    of_model = [
        name
        for name in request.names
        if name != SIGNALS and _field_of(model, request.acting, name) in PARAMETERS_OF_CONTROLLERS
    ]
    if of_model and uses_simulated_model(model, drives):
        raise ArgumentError(
            f"derivatives contains {', '.join(of_model)}, but the controllers use these parameters too "
            f'(controller_model="own"); expected controller_model="nominal", whose parameters do not change. {remedy}'
        )


def _field_of(model: Model, acting: Sequence[Any], name: str) -> str:
    """Return the field of a name, which is a field or a path."""
    return name if name in KINDS else parameters_at(model, name, acting)[0].field


def columns_of_states(model: Model, actions: Actions, saved: np.ndarray) -> np.ndarray:
    """Return all columns (..., 2 nv, columns) from the rows of states (..., rows) after the integrals."""
    rows = _rows_of_column(model, actions)
    columns = saved.reshape(*saved.shape[:-1], saved.shape[-1] // rows, rows)
    return np.swapaxes(columns[..., : 2 * model.nv], -1, -2)


def named(request: Request, actions: Actions, columns: np.ndarray) -> dict[str, np.ndarray]:
    """Return {name: array} from columns (..., times, rows, columns); each array has the axes of its parameter last."""
    model, acting, found, first = request.model, request.acting, {}, 0
    for name in request.names:
        count = _count_of(model, actions, acting, name)
        found[name] = _shaped(model, actions, acting, name, columns[..., first : first + count])
        first += count
    return found


def sensitivities_of(request: Request, actions: Actions | None, saved: np.ndarray) -> dict[str, np.ndarray]:
    """Return {name: sensitivities} from the rows of saved states (..., times, rows) after the integrals."""
    if actions is None or not request.names:
        return {}
    return named(request, actions, columns_of_states(request.model, actions, saved))


def _count_of(model: Model, actions: Actions, acting: Sequence[Any], name: str) -> int:
    """Return the number of columns of a field, a path, or the values of tables."""
    if name == SIGNALS:
        settings: Any = actions.sensitivities
        return int(np.isin(settings.columns[codes.COLUMN_KIND], codes.OF_SIGNALS).sum())
    return columns_of(model, actions, acting, name).shape[1]


def _shaped(model: Model, actions: Actions, acting: Sequence[Any], name: str, columns: np.ndarray) -> np.ndarray:
    """Return the columns (..., times, 2 nv, count) of a field or path with the shape of its value."""
    if name in (SIGNALS, GRAVITY):
        return columns
    if name not in KINDS:
        return _shaped_for_path(model, parameters_at(model, name, acting)[0], columns)
    if name in ENTRIES_OF_BODY:
        of_bodies = columns.reshape(*columns.shape[:-1], model.n_bodies, ENTRIES_OF_BODY[name])
        if name == "mass":
            return of_bodies[..., 0]
        return matrices_of_columns(of_bodies, 3) if name == "inertia" else of_bodies
    if name == AXIS:
        axes = np.zeros((*columns.shape[:-1], model.nv, 3), columns.dtype)
        axes[np.isnan(columns).any(-1)] = np.nan
        axes[..., dofs_of(model, actions, name), :] = columns.reshape(*columns.shape[:-1], -1, 3)
        return axes
    full = np.zeros((*columns.shape[:-1], model.nv), columns.dtype)
    full[np.isnan(columns[..., 0])] = np.nan
    full[..., dofs_of(model, actions, name)] = columns
    if name in ("rotor_inertia", "gear_ratio"):
        full = full * _slope_of_armature(model, name)[..., None, None, :]
    return full.astype(columns.dtype)


def _slope_of_armature(model: Model, name: str) -> np.ndarray:
    """Return the derivatives of the armatures with respect to the rotor inertias or the gear ratios."""
    return model.gear_ratio**2 if name == "rotor_inertia" else 2.0 * model.rotor_inertia * model.gear_ratio


def _shaped_for_path(model: Model, match: Match[Any], columns: np.ndarray) -> np.ndarray:
    """Return the columns (..., times, 2 nv, count) of the parameter of a path with the shape of its value."""
    if isinstance(match.owned.value, PlaceOfForce) and match.owned.value.is_matrix:
        return matrices_of_columns(columns, 6)
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
