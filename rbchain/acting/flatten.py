"""Turn drives, forces and events into arrays, from which compiled code computes the rate of a state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.real_arrays import excerpt
from ..core.control import drives as drive_rows
from ..core.motion import event_values as event_codes
from ..core.sample.records import ContactRecords, Records
from ..core.tree import layout
from ..core.tree.sampler_layout import GROUP_COMPENSATES, GROUP_COMPUTES
from ..drivers.trajectories import Actions
from ..errors import StateError
from .actuators import Actuator
from .batch_functions import BatchFunction, is_batch_function, rows_of_batch
from .controllers import controller_arrays, controllers_model
from .drives import UserForces
from .events import Event
from .flatten_actuators import flatten_actuators
from .flatten_between_bodies import flatten_between_bodies, is_between_bodies
from .flatten_contacts import flatten_contacts, new_contact_records
from .flatten_drives import flatten_drives, settings_of_drives
from .flatten_events import flatten_event
from .flatten_sampled import flatten_samplers
from .flatten_wrenches import flatten_current, flatten_wrenches
from .packing import SampleNumbers, SignalTables
from .sampled import Drive, Sampled
from .user_code import UserCall, UserCalls, name_of, user_function
from .wrenches import Force

if TYPE_CHECKING:
    from ..facade.model import Model


# The settings that hold the addresses of the functions of UserForces, and the codes of their failures.
USER_SETTINGS = (layout.SETTING_FUNCTION, layout.SETTING_DERIVATIVES)
USER_CODES = (layout.FAILED_USER_FORCES, layout.FAILED_USER_DERIVATIVES)


def flatten_actions(
    model: Model,
    batch: tuple[int, ...],
    duration: float,
    dtype: np.dtype,
    drives: Sequence[Drive] = (),
    forces: Sequence[Force] = (),
    events: Sequence[Event] = (),
    implicit: bool = False,
    boundscheck: bool = False,
    always: bool = False,
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
    drives, forces, events : lists
    implicit : bool
        Whether the method of integration uses the stiffness and damping of the joints.
    boundscheck : bool
        Whether user functions check the bounds of their arrays.
    always : bool
        Whether to return Actions even if only constant joint forces act.

    Returns
    -------
    actions : Actions or None
        None if only constant joint forces act, unless `always` is True.
    calls : UserCalls
        The user functions among the actions.

    Raises
    ------
    StateError
        If an action names a joint that does not exist, a joint has two drives, or numbers do not fit.
    """
    _check_list("drives", drives)
    _check_list("forces", forces)
    _check_list("events", events)
    if not (always or drives or forces or events or implicit or model.kernel_model.has_passive_or_fluid_forces):
        return None, UserCalls({}, np.zeros((1, 0)), dtype, {})
    numbers = SampleNumbers(batch)
    functions: dict[int, UserCall] = {}
    signals = SignalTables(numbers, duration)
    settings = np.zeros(layout.SETTING_COUNT, np.int64)
    settings[[layout.SETTING_IMPLICIT, layout.SETTING_HYBRID]] = implicit
    actuators = [drive for drive in drives if isinstance(drive, Actuator)]
    others = [drive for drive in drives if not isinstance(drive, Actuator)]
    drive_codes, integrals, user, sampled = flatten_drives(model, others, signals, numbers)
    samplers, sampled_calls = flatten_samplers(
        model,
        sampled,
        drive_codes,
        numbers,
        lambda drive, outputs: _sampled_function(model, drive, outputs, numbers, dtype, boundscheck),
        layout.FAILED_FIRST_EVENT + len(events),
    )
    batch_functions = {code: call for code, call in sampled_calls.items() if isinstance(call, BatchFunction)}
    functions |= {code: call for code, call in sampled_calls.items() if isinstance(call, UserCall)}
    actuator_codes = flatten_actuators(model, actuators, drive_codes, samplers, user is not None, numbers)
    settings_of_drives(drive_codes, settings)
    settings[layout.SETTING_CONTROLLER_MODEL] = (
        settings[layout.SETTING_COMPENSATES]
        or settings[layout.SETTING_COMPUTES]
        or (samplers is not None and samplers.groups[[GROUP_COMPENSATES, GROUP_COMPUTES]].any())
    )
    if user is not None:
        calls = _user_forces(model, user, numbers, boundscheck)
        settings[layout.SETTING_FUNCTION_NUMBERS], settings[layout.SETTING_FUNCTION_COUNT] = (
            calls[0].first,
            calls[0].count,
        )
        for call, setting, code in zip(calls, USER_SETTINGS, USER_CODES, strict=False):
            settings[setting], functions[code] = call.function.address, call
    settings[layout.SETTING_CURRENT] = flatten_current(model, forces, signals)
    wrench_codes = flatten_wrenches(model, forces, signals, numbers)
    between_bodies: tuple[np.ndarray | None, np.ndarray | None] = None, None
    if any(is_between_bodies(force) for force in forces):
        between_bodies = flatten_between_bodies(model, forces, numbers)
    contacts = flatten_contacts(model, forces, numbers, drive_codes[drive_rows.DRIVE_KIND])
    codes_of_events = []
    for e, event in enumerate(events):
        codes, called = flatten_event(model, e, event, numbers, boundscheck)
        codes_of_events.append(codes)
        if called is not None:
            functions[layout.FAILED_FIRST_EVENT + e] = called
    signal_codes, tables, knots = signals.arrays()
    given = numbers.rows()
    controller, variation = controller_arrays(model, controllers_model(model, drives, batch), dtype)
    shared = layout.SharedActions(
        signals=signal_codes,
        drives=drive_codes,
        wrenches=wrench_codes,
        springs=between_bodies[0],
        bushings=between_bodies[1],
        contacts=contacts,
        samplers=samplers,
        actuators=actuator_codes,
        events=np.array(codes_of_events, np.int64).reshape(-1, event_codes.EVENT_ROWS).T.copy(),
        tables=tables,
        knots=knots,
        numbers=given,
        variation=variation,
    )
    samples = math.prod(batch)
    contact_records = new_contact_records(contacts, forces, samples)
    has_functions = bool(functions or batch_functions)
    records = _new_records(model, samples, events, integrals, has_functions, dtype, contact_records)
    actions = Actions(shared, settings, controller, records, signals.most_coefficients, integrals, None, None)
    return actions, UserCalls(functions, given, dtype, batch_functions)


def _check_list(name: str, items: Any) -> None:
    if not isinstance(items, (list, tuple)):
        raise StateError(f"{name} is {excerpt(items)}; expected a list, such as {name}=[...]")


def _user_forces(model: Model, drive: UserForces, numbers: SampleNumbers, boundscheck: bool) -> list[UserCall]:
    """Return the function of UserForces and, if it is given, that of the derivatives."""
    first, count = numbers.add_row("parameters of UserForces", drive.parameters)
    sizes = model.nq, model.nv, count
    what = f"UserForces with function {name_of(drive.function)}"
    if is_batch_function(drive.function, False):
        raise StateError(
            f"{what}: it has no argument out, so Python would call it for the whole batch, which only Sampled "
            "supports; expected function(t, q, qd, parameters, out). Add out, or use rb.Sampled(function, period=...)"
        )
    calls = [
        UserCall(what, user_function("UserForces", drive.function, *sizes, (model.nv,), boundscheck), first, count)
    ]
    if drive.derivatives is not None:
        what, results = f"UserForces with derivatives {name_of(drive.derivatives)}", (2, model.nv, model.nv)
        function = user_function("derivatives of UserForces", drive.derivatives, *sizes, results, boundscheck)
        calls.append(UserCall(what, function, first, count))
    return calls


def _sampled_function(
    model: Model, drive: Sampled, outputs: int, numbers: SampleNumbers, dtype: np.dtype, boundscheck: bool
) -> UserCall | BatchFunction:
    """Return the user function of a sampled drive, compiled or for the whole batch."""
    assert isinstance(drive.controller, UserForces)
    user, states = drive.controller, np.shape(drive.states)[-1] if np.ndim(drive.states) else 1
    what = f"Sampled UserForces with function {name_of(user.function)}"
    if is_batch_function(user.function, states > 0):
        parameters, initial = (
            rows_of_batch(f"{what}: {name}", values, numbers.batch).astype(dtype).astype(np.float64)
            for name, values in (("parameters", user.parameters), ("states", drive.states))
        )
        clock = float(drive.period), float(drive.phase)
        return BatchFunction(what, user.function, *clock, model.nq, parameters, initial, outputs, dtype)
    first, count = numbers.add_row("parameters of Sampled UserForces", user.parameters)
    sizes = model.nq, model.nv, count
    function = user_function(
        "Sampled UserForces", user.function, *sizes, (outputs,), boundscheck, states, in_python=True
    )
    return UserCall(what, function, first, count)


def _new_records(
    model: Model,
    samples: int,
    events: Sequence[Event],
    integrals: int,
    has_functions: bool,
    dtype: np.dtype,
    contacts: ContactRecords | None,
) -> Records:
    """Allocate the records of events and of failed calls of user functions."""
    most = max([1, *(event.max_records for event in events)])
    calls = samples if has_functions else 0
    return Records(
        np.zeros((samples, len(events)), np.int64),
        np.full((samples, len(events), most), np.nan),
        np.full((samples, len(events), most, model.nq + model.nv + integrals), np.nan, dtype),
        np.zeros(calls, np.int64),
        np.zeros((calls, 1 + model.nq + model.nv)),
        contacts,
    )
