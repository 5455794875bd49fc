"""Sensitivities in `simulate`: check their names, choose the columns that are integrated, and shape the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.contacts import NAMES_OF_CONTACTS
from ..acting.controllers import uses_simulated_model
from ..common.real_arrays import excerpt
from ..core.control import drive_layout as drive
from ..core.linear import parameter_forces as codes
from ..core.linear.sensitivities import SensitivitySettings
from ..core.tree import setting_layout as setting
from ..errors import ArgumentError
from ..model.parameters import UPPER_TRIANGLE
from .methods import Method, names_of

if TYPE_CHECKING:
    from ..acting.sampled import Drive as AnyDrive
    from ..drivers.trajectories import Actions
    from ..facade.model import Model

#: Methods that integrate sensitivities.
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
}
ENTRIES_OF_BODY = {"mass": 1, "cg": 3, "inertia": 6}
SPRINGS = ("stiffness", "rest_position", "cubic_stiffness")
GAINS = ("kp", "ki", "kd")
#: The parameters that the forces of controllers with a model depend on.
PARAMETERS_OF_CONTROLLERS = ("mass", "cg", "inertia", "rotor_inertia", "gear_ratio")


def with_sensitivities(
    model: Model,
    actions: Actions | None,
    drives: Sequence[AnyDrive],
    names: Sequence[str],
    method: Method,
    controls_steps: bool,
) -> Actions | None:
    """Return the actions with the settings of the sensitivities, and memory for the states of events with them.

    Raises
    ------
    ArgumentError
        If a name is unknown, or the sensitivities do not support the method, the model or the actions.
    """
    if not names:
        return actions
    assert actions is not None  # flatten_actions was called with always=True
    _refuse_unsupported(model, actions, drives, names, method)
    columns = np.concatenate([_columns_of(model, actions, name) for name in names], 1)
    settings = SensitivitySettings(np.ascontiguousarray(columns), int(controls_steps))
    states = actions.records.states
    rows = states.shape[-1] + columns.shape[1] * _rows_of_column(model, actions)
    states = np.full((*states.shape[:-1], rows), np.nan, states.dtype)
    return actions._replace(sensitivities=settings, records=actions.records._replace(states=states))


def sensitivity_rows(model: Model, actions: Actions | None) -> int:
    """Return the number of rows of the state for sensitivities."""
    if actions is None or actions.sensitivities is None:
        return 0
    settings: Any = actions.sensitivities
    return int(settings.columns.shape[1]) * _rows_of_column(model, actions)


def _rows_of_column(model: Model, actions: Actions) -> int:
    return 2 * model.nv + actions.integrals


def checked_names(names: Any, argument: str = "sensitivities") -> tuple[str, ...]:
    """Return the names of sensitivities as a tuple. Raises ArgumentError if one is unknown or given twice."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ArgumentError(f'{argument} is {excerpt(names)}; expected a list of names, such as ("q", "mass")')
    for name in names:
        if not isinstance(name, str) or name not in KINDS:
            raise ArgumentError(f"{argument} contains {excerpt(name)}; expected names among {', '.join(KINDS)}")
    if len(set(names)) < len(names):
        raise ArgumentError(f"{argument} is {excerpt(list(names))}; expected each name once")
    return tuple(names)


def _refuse_unsupported(
    model: Model, actions: Actions, drives: Sequence[AnyDrive], names: Sequence[str], method: Method
) -> None:
    """Refuse methods, models and actions without derivatives of the motion."""
    remedy = "Use differences of simulations"
    if not method.has_sensitivities:
        raise ArgumentError(
            f'method is "{method.name}", which does not compute sensitivities; expected '
            f"{names_of(lambda method: method.has_sensitivities)}"
        )
    if actions.shared.contacts is not None:
        raise ArgumentError(
            f"sensitivities do not support {NAMES_OF_CONTACTS}, because motions with impacts are not smooth; expected "
            "forces without them. Use the friction and the elastic stops of PassiveForces"
        )
    _refuse_unsupported_controllers(model, actions, drives, names, remedy)
    if actions.shared.samplers is not None:
        raise ArgumentError(
            "sensitivities do not support Sampled, because the derivatives of its outputs are not computed; expected "
            f"other drives. {remedy}"
        )
    if actions.settings[setting.FUNCTION] != 0 and actions.settings[setting.DERIVATIVES] == 0:
        raise ArgumentError(
            "sensitivities need the derivatives of UserForces with respect to q and qd, but derivatives is None. Pass "
            "UserForces(..., derivatives=...)"
        )


def _refuse_unsupported_controllers(
    model: Model, actions: Actions, drives: Sequence[AnyDrive], names: Sequence[str], remedy: str
) -> None:
    """Refuse controllers with a model, if the derivatives of their forces are not computed."""
    if not actions.settings[[setting.COMPUTES, setting.COMPENSATES]].any():
        return
    of_model = [name for name in names if name in PARAMETERS_OF_CONTROLLERS]
    if of_model and uses_simulated_model(model, drives):
        raise ArgumentError(
            f"sensitivities contains {', '.join(of_model)}, but the controllers use these parameters too "
            f'(model="true"); expected model="nominal", whose parameters do not change. {remedy}'
        )


def _columns_of(model: Model, actions: Actions, name: str) -> np.ndarray:
    """Return the columns (COLUMN_ROWS, count) of one name."""
    if name in ENTRIES_OF_BODY:
        entries = ENTRIES_OF_BODY[name]
        dofs, entry = np.repeat(model.kernel_model.dofs.last, entries), np.tile(np.arange(entries), model.n_bodies)
    else:
        dofs = _dofs_of(model, actions, name)
        entry = np.zeros(dofs.size, int)
    return np.stack([np.full(dofs.size, KINDS[name]), dofs, entry]).astype(np.int64)


def _dofs_of(model: Model, actions: Actions, name: str) -> np.ndarray:
    """Return the degrees of freedom that have a column for one name; the others have zero sensitivities."""
    if name in SPRINGS:
        return np.flatnonzero(~model.kernel_model.dofs.in_quaternion_joint)
    if name not in GAINS:
        return np.arange(model.nv)
    has_pid = actions.shared.drives[drive.KIND] == drive.KIND_PID
    if not has_pid.any():
        raise ArgumentError(f'sensitivities contains "{name}", but drives contains no PID; expected a PID drive')
    if name == "ki":
        without = has_pid & (actions.shared.drives[drive.INTEGRAL] < 0)
        if without.any():
            joints = [model.joint_names[body] for body in np.unique(model.kernel_model.dofs.body[without])]
            raise ArgumentError(
                f'sensitivities contains "ki", but the drives of joints {joints} have ki = 0 and integrate no error; '
                "expected a ki other than zero in at least one sample"
            )
    return np.flatnonzero(has_pid)


def sensitivities_of(
    model: Model, actions: Actions | None, names: Sequence[str], saved: np.ndarray
) -> dict[str, np.ndarray]:
    """Return {name: sensitivities} from the rows of saved states (..., times, rows) behind the integrals."""
    if actions is None or not names:
        return {}
    n, found, first = model.nv, {}, 0
    rows = _rows_of_column(model, actions)
    columns = saved.reshape(*saved.shape[:-1], saved.shape[-1] // rows, rows)
    columns = np.swapaxes(columns[..., : 2 * n], -1, -2)  # (..., times, 2 nv, columns)
    for name in names:
        count = _columns_of(model, actions, name).shape[1]
        found[name] = _shaped(model, actions, name, columns[..., first : first + count])
        first += count
    return found


def _shaped(model: Model, actions: Actions, name: str, columns: np.ndarray) -> np.ndarray:
    """Return the columns (..., times, 2 nv, count) of one name with the shape of its field."""
    if name in ENTRIES_OF_BODY:
        of_bodies = columns.reshape(*columns.shape[:-1], model.n_bodies, ENTRIES_OF_BODY[name])
        if name == "mass":
            return of_bodies[..., 0]
        if name == "cg":
            return of_bodies
        # the column of a product of inertia is the derivative by both of its entries together
        tensor = np.zeros((*of_bodies.shape[:-1], 3, 3), columns.dtype)
        share = np.where(np.equal(*UPPER_TRIANGLE), 1.0, 0.5).astype(columns.dtype)
        for rows in (UPPER_TRIANGLE, UPPER_TRIANGLE[::-1]):
            tensor[..., rows[0], rows[1]] = share * of_bodies
        return tensor
    full = np.zeros((*columns.shape[:-1], model.nv), columns.dtype)
    full[np.isnan(columns[..., 0])] = np.nan
    full[..., _dofs_of(model, actions, name)] = columns
    gear, rotor = (x[..., None, None, :] for x in (model.gear_ratio, model.rotor_inertia))
    if name == "rotor_inertia":
        full = full * gear**2
    elif name == "gear_ratio":
        full = full * (2.0 * rotor * gear)
    return full.astype(columns.dtype)
