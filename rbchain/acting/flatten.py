"""Turn drives, forces and events into arrays, from which compiled code computes the rate of a state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..common.real_arrays import excerpt
from ..core.control import drive_layout
from ..core.control.user_calls import (
    FUNCTION_ADDRESS,
    FUNCTION_COUNT,
    FUNCTION_DERIVATIVES,
    FUNCTION_NUMBERS,
    FUNCTION_ROWS,
)
from ..core.motion import event_values as event_layout
from ..core.sample.records import Records
from ..core.tree import layout, setting_layout as setting
from ..core.tree.sampler_layout import Samplers
from ..drivers.trajectories import Actions
from ..errors import ArgumentError
from .actuators import Actuator, flatten_actuators
from .between_bodies import is_between_bodies
from .contacts import flatten_contacts, gear_friction_of, new_contact_records
from .controllers import controller_arrays, controllers_model
from .drive_table import new_table, settings_of_drives
from .drives import ONE_JOINT, PID, ComputedTorque
from .events import Event, flatten_event
from .flatten_between_bodies import flatten_between_bodies
from .flatten_drives import flatten_drive, states_of_drives
from .flatten_sampled import flatten_samplers
from .numeric_fields import Drive, Force
from .packing import SampleNumbers, SignalTables
from .sampled import Sampled, controller_of
from .signals import Signal
from .user_code import BatchFunction, UserCall, UserCalls
from .user_forces import UserForces, flatten_user_forces
from .wrenches import flatten_current, flatten_wrenches

if TYPE_CHECKING:
    from ..facade.model import Model


class _FlatDrives(NamedTuple):
    """The arrays of all drives.

    * `codes` (drive_layout.ROWS, columns), `samplers`, `actuators` and `functions` are fields of `SharedActions`.
    * `integrals` is the number of states of the drives, `users` the number of functions that act continuously.
    * `calls` and `batch_functions` are the user functions by the codes of their failures.
    """

    codes: np.ndarray
    samplers: Samplers | None
    actuators: np.ndarray | None
    functions: np.ndarray
    integrals: int
    users: int
    calls: dict[int, UserCall]
    batch_functions: dict[int, BatchFunction]


def flatten_actions(
    model: Model,
    batch: tuple[int, ...],
    duration: float,
    dtype: np.dtype,
    actions: tuple[Sequence[Drive], Sequence[Force], Sequence[Event]],
    implicit: bool = False,
    always: bool = False,
    weights: Sequence[tuple[str, Signal, int]] = (),
) -> tuple[Actions | None, UserCalls]:
    """Flatten the actions on a batch of samples of a model.

    Parameters
    ----------
    model : Model
    batch : tuple
        Shape of the batch.
    duration : float, s
        Duration of the simulation, which all signals have to cover.
    dtype : numpy dtype
        Precision of the simulation.
    actions : tuple of lists
        drives, forces and events.
    implicit : bool
        Whether the method of integration uses the stiffness and damping of the joints.
    always : bool
        Whether to return Actions even if only constant joint forces act.
    weights : list of tuples
        More signals, which become the last ones: names, signals and derivatives as for `SignalTables.add`.

    Returns
    -------
    actions : Actions or None
        None if only constant joint forces act, unless `always` is True.
    calls : UserCalls
        The user functions among the actions.

    Raises
    ------
    ArgumentError
        If an action names a joint that does not exist, drives of a joint exclude each other, or values do not fit.
    """
    drives, forces, events = actions
    _refuse_other_than_lists(*actions)
    if not (always or drives or forces or events or implicit or model.kernel_model.has_passive_or_fluid_forces):
        return None, UserCalls({}, np.zeros((1, 0)), dtype, {})
    numbers = SampleNumbers(batch)
    signals = SignalTables(numbers, duration)
    settings = np.zeros(setting.COUNT, np.int64)
    settings[[setting.IMPLICIT, setting.HYBRID]] = implicit
    flat = _flatten_all_drives(model, drives, signals, numbers, dtype, layout.FAILED_FIRST_EVENT + len(events))
    settings_of_drives(flat.codes, flat.samplers, settings)
    has_derivatives = flat.users > 0 and flat.functions[FUNCTION_DERIVATIVES].all()
    settings[[setting.FUNCTIONS, setting.DERIVATIVES]] = flat.users, has_derivatives
    settings[setting.CURRENT] = flatten_current(model, forces, signals)
    wrench_codes = flatten_wrenches(model, forces, signals, numbers)
    is_between = any(is_between_bodies(force) for force in forces)
    springs, bushings = flatten_between_bodies(model, forces, numbers) if is_between else (None, None)
    contacts = flatten_contacts(model, forces, numbers, flat.codes[drive_layout.KIND, : model.nv])
    event_codes, event_calls = _flatten_events(model, events, numbers)
    functions = flat.calls | event_calls
    for weight in weights:
        signals.add(*weight)
    signal_codes, tables, knots = signals.arrays()
    rows = numbers.rows()
    controller, variation = controller_arrays(model, controllers_model(model, drives, batch), dtype)
    shared = layout.SharedActions(
        signals=signal_codes,
        drives=flat.codes,
        functions=flat.functions,
        wrenches=wrench_codes,
        springs=springs,
        bushings=bushings,
        contacts=contacts,
        gear_friction=gear_friction_of(contacts, forces, flat.actuators),
        samplers=flat.samplers,
        actuators=flat.actuators,
        events=event_codes,
        tables=tables,
        knots=knots,
        numbers=rows,
        variation=variation,
    )
    has_functions = bool(functions or flat.batch_functions)
    records = _new_records(model, math.prod(batch), events, flat.integrals, has_functions, dtype)
    records = records._replace(contacts=new_contact_records(contacts, forces, math.prod(batch)))
    found = Actions(shared, settings, controller, records, signals.most_coefficients, flat.integrals, None, None)
    return found, UserCalls(functions, rows, dtype, flat.batch_functions, signals.inputs)


def _refuse_other_than_lists(drives: object, forces: object, events: object) -> None:
    """Raise an ArgumentError if one of the actions is not a list."""
    for name, items in (("drives", drives), ("forces", forces), ("events", events)):
        if not isinstance(items, (list, tuple)):
            raise ArgumentError(f"{name} is {excerpt(items)}; expected a list, such as {name}=[...]")


def _flatten_all_drives(
    model: Model,
    drives: Sequence[Drive],
    signals: SignalTables,
    numbers: SampleNumbers,
    dtype: np.dtype,
    first_code: int,
) -> _FlatDrives:
    """Add the signals and numbers of all drives to the arrays. `first_code` is the code of the first user function."""
    actuators = [drive for drive in drives if isinstance(drive, Actuator)]
    others = [drive for drive in drives if not isinstance(drive, Actuator)]
    codes, users, sampled = _flatten_drives(model, others, signals, numbers)
    integrals = states_of_drives(codes)
    samplers, sampled_calls = flatten_samplers(model, sampled, codes, numbers, dtype, first_code)
    actuator_codes = flatten_actuators(model, actuators, codes, samplers, bool(users), numbers)
    functions, calls = _flatten_functions(model, users, numbers, first_code + len(sampled_calls))
    return _FlatDrives(
        codes=codes,
        samplers=samplers,
        actuators=actuator_codes,
        functions=functions,
        integrals=integrals,
        users=len(users),
        calls={code: call for code, call in sampled_calls.items() if isinstance(call, UserCall)} | calls,
        batch_functions={code: call for code, call in sampled_calls.items() if isinstance(call, BatchFunction)},
    )


def _flatten_functions(
    model: Model, users: Sequence[UserForces], numbers: SampleNumbers, first_code: int
) -> tuple[np.ndarray, dict[int, UserCall]]:
    """Return the table (FUNCTION_ROWS, functions) of UserForces, and their functions by the codes of their failures."""
    codes = np.zeros((FUNCTION_ROWS, len(users)), np.int64)
    calls: dict[int, UserCall] = {}
    for f, user in enumerate(users):
        own = flatten_user_forces(model, user, numbers)
        codes[[FUNCTION_NUMBERS, FUNCTION_COUNT], f] = own[FUNCTION_ADDRESS].first, own[FUNCTION_ADDRESS].count
        for row, call in own.items():
            codes[[row, row + 1], f] = call.function.address, first_code + len(calls)
            calls[first_code + len(calls)] = call
    return codes, calls


def _flatten_events(
    model: Model, events: Sequence[Event], numbers: SampleNumbers
) -> tuple[np.ndarray, dict[int, UserCall]]:
    """Return the table (EVENT_ROWS, events), and the functions of events by the codes of their failures."""
    found = [flatten_event(model, event, numbers) for event in events]
    codes = np.array([codes for codes, _ in found], np.int64).reshape(-1, event_layout.EVENT_ROWS).T.copy()
    return codes, {layout.FAILED_FIRST_EVENT + e: call for e, (_, call) in enumerate(found) if call is not None}


def _flatten_drives(
    model: Model, drives: Sequence[Drive], signals: SignalTables, numbers: SampleNumbers
) -> tuple[np.ndarray, list[UserForces], list[tuple[Sampled, int | None]]]:
    """Add the signals and numbers of drives to the arrays.

    Returns
    -------
    codes : (drive_layout.ROWS, columns) array of int
        Rows as in `core.control.drive_layout`.
    users : list of UserForces
        The user functions that act continuously.
    sampled : list of pairs
        The sampled drives, and their columns in the table of drives, or None for user functions.
    """
    for given in drives:
        _check_drive(given)
    codes, columns = new_table(model, [x for x in map(controller_of, drives) if isinstance(x, ONE_JOINT)])
    of_joints = iter(columns)
    users: list[UserForces] = []
    sampled: list[tuple[Sampled, int | None]] = []
    for given in drives:
        drive, d = controller_of(given), None
        if isinstance(drive, ONE_JOINT):
            d = next(of_joints)
            flatten_drive(model, drive, isinstance(given, Sampled), codes, d, signals, numbers)
        if isinstance(given, Sampled):
            sampled.append((given, d))
        elif d is None:
            users.append(drive)
    return codes, users, sampled


def _check_drive(given: Drive) -> None:
    """Raise an ArgumentError if the class of a drive or of the controller in it is not possible."""
    drive: object = controller_of(given)
    if isinstance(given, Sampled) and not isinstance(drive, (PID, ComputedTorque, UserForces)):
        raise ArgumentError(f"Sampled: controller is {excerpt(drive)}; expected a PID, a ComputedTorque or UserForces")
    if not isinstance(drive, (*ONE_JOINT, UserForces)):
        if isinstance(drive, Force):
            raise ArgumentError(f"drives contains a {type(drive).__name__}. Pass forces as forces=[...]")
        expected = ", ".join(kind.__name__ for kind in (*ONE_JOINT, UserForces, Sampled, Actuator))
        raise ArgumentError(f"drives contains {excerpt(drive)}; expected objects of {expected}")


def _new_records(
    model: Model,
    samples: int,
    events: Sequence[Event],
    integrals: int,
    has_functions: bool,
    dtype: np.dtype,
) -> Records:
    """Allocate the records of events and of failed calls of user functions, without records of contacts."""
    most = max([1, *(event.max_records for event in events)])
    calls = samples if has_functions else 0
    return Records(
        counts=np.zeros((samples, len(events)), np.int64),
        times=np.full((samples, len(events), most), np.nan),
        states=np.full((samples, len(events), most, model.nq + model.nv + integrals), np.nan, dtype),
        failures=np.zeros(calls, np.int64),
        failed_calls=np.zeros((calls, 1 + model.nq + model.nv)),
        contacts=None,
    )
