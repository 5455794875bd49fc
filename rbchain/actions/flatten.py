"""Turn drives, wrenches and events into the arrays from which compiled code computes the rate of a state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..core.forces import signals, wrenches
from ..core.integration import drives as drive_codes
from ..core.integration import events as event_codes
from ..core.integration.rollout import Records
from ..core.tree import layout
from ..drivers.trajectories import Actions
from ..errors import StateError
from ..real_arrays import real_array
from .controllers import controller_arrays, controllers_model
from .drives import (
    ONE_JOINT,
    PID,
    ComputedTorque,
    Drive,
    OneJointDrive,
    PrescribedPosition,
    PrescribedVelocity,
    UserForces,
)
from .events import Event
from .signals import Signal, SignalLike, as_signal, three_signals
from .user_code import UserFunction, name_of, user_function
from .wrenches import Current, Force, Wrench

if TYPE_CHECKING:
    from ..chain import Model

MOST_RECORDS = 1_000_000
KINDS = {
    "PrescribedForce": drive_codes.KIND_FORCE,
    "PrescribedAcceleration": drive_codes.KIND_PRESCRIBED_ACCELERATION,
    "PrescribedVelocity": drive_codes.KIND_PRESCRIBED_VELOCITY,
    "PrescribedPosition": drive_codes.KIND_PRESCRIBED_POSITION,
    "PID": drive_codes.KIND_PID,
    "ComputedTorque": drive_codes.KIND_COMPUTED_TORQUE,
}


class _Numbers:
    """Numbers of all samples, or of each, one column after the other."""

    def __init__(self, batch: tuple[int, ...]) -> None:
        self.batch = batch
        self.columns: list[np.ndarray] = []

    def add(self, name: str, value: npt.ArrayLike, least: float = -np.inf, most: float = np.inf) -> int:
        """Column of a number of all samples, or of one for each."""
        found = real_array(name, value, StateError)
        try:
            found = np.broadcast_to(found, self.batch if found.ndim else ())
        except ValueError:
            raise StateError(f"{name} has shape {found.shape}; expected () or the batch's, {self.batch}") from None
        if np.isnan(found).any() or not ((found >= least) & (found <= most)).all():
            bound = "" if least == -np.inf else f" of at least {least:g}"
            bound += "" if most == np.inf else ", finite"
            raise StateError(f"{name} is {found.tolist()}; expected numbers{bound}")
        self.columns.append(found.reshape(-1))
        return len(self.columns) - 1

    def add_row(self, name: str, values: npt.ArrayLike) -> tuple[int, int]:
        """First column of the numbers along the last axis of `values` (..., m), and m."""
        values = np.atleast_1d(real_array(name, values, StateError))
        first = len(self.columns)
        for j in range(values.shape[-1]):
            self.add(name, values[..., j])
        return first, len(self.columns) - first

    def rows(self) -> np.ndarray:
        """(1, m), or (samples, m) where any are each sample's own."""
        samples = math.prod(self.batch) if any(column.size > 1 for column in self.columns) else 1
        rows = np.zeros((max(samples, 1), max(len(self.columns), 1)))
        for j, column in enumerate(self.columns):
            if column.size:
                rows[:, j] = column
        return rows


class _Signals:
    """Signals as columns of codes, numbers and tables."""

    def __init__(self, numbers: _Numbers, duration: float) -> None:
        self.numbers, self.duration = numbers, duration
        self.codes: list[np.ndarray] = []
        self.tables: list[np.ndarray] = []
        self.size = self.most_coefficients = 0

    def add(self, name: str, value: SignalLike) -> int:
        """Number of a signal."""
        signal, batch = as_signal(name, value), self.numbers.batch
        if signal.batch_shape not in ((), batch):
            raise StateError(f"{name} has batch shape {signal.batch_shape}; expected () or the batch's, {batch}")
        if signal.end < self.duration or signal.breaks[0] > 0.0:
            raise StateError(
                f"{name} is given from {signal.breaks[0]:g} to {signal.end:g} s; expected it from 0 to "
                f"{self.duration:g} s"
            )
        codes = np.zeros(signals.SIGNAL_ROWS, np.int64)
        codes[signals.SIGNAL_COEFFICIENT_COUNT] = signal.coefficients.shape[-1]
        if signal.breaks.size == 1 and signal.breaks[0] == 0.0:
            codes[signals.SIGNAL_KIND] = signals.SIGNAL_CONSTANT if signal.is_constant else signals.SIGNAL_POLYNOMIAL
            codes[signals.SIGNAL_FIRST_COEFFICIENT], _ = self.numbers.add_row(name, signal.coefficients[..., 0, :])
        else:
            codes[signals.SIGNAL_KIND] = signals.SIGNAL_TABLE
            self._add_table(signal, codes)
        waves = signal.waves.reshape(*signal.waves.shape[:-2], -1)
        codes[signals.SIGNAL_SINES], _ = self.numbers.add_row(name, waves)
        codes[signals.SIGNAL_SINE_COUNT] = signal.waves.shape[-2]
        self.codes.append(codes)
        return len(self.codes) - 1

    def _add_table(self, signal: Signal, codes: np.ndarray) -> None:
        pieces, count = signal.coefficients.shape[-2:]
        codes[signals.SIGNAL_PIECES], codes[signals.SIGNAL_TABLE_START] = pieces, self.size
        flat = signal.coefficients.reshape(-1, pieces * count)
        breaks = np.broadcast_to(signal.breaks, (flat.shape[0], pieces))
        table = np.concatenate([breaks, flat], -1)
        codes[signals.SIGNAL_TABLE_STRIDE] = table.shape[1] if flat.shape[0] > 1 else 0
        self.tables.append(table.reshape(-1))
        self.size += table.size
        self.most_coefficients = max(self.most_coefficients, count)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        codes = np.array(self.codes, np.int64).reshape(-1, signals.SIGNAL_ROWS).T.copy()
        return codes, np.concatenate([np.zeros(0), *self.tables])


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
) -> tuple[Actions | None, UserCalls]:
    """Actions on a batch of samples of a model over a duration, and the user functions among them.

    The actions are None if nothing acts but constant joint forces. Raises StateError where something names what is not
    there, is there twice, or has numbers that do not fit.
    """
    drives, forces = _sequence("drives", drives), _sequence("forces", forces)
    events = _sequence("events", events)
    if not (drives or forces or events or implicit or model.kernel_model.has_passive_or_fluid_forces):
        return None, UserCalls({}, np.zeros((1, 0)), dtype)
    numbers = _Numbers(batch)
    functions: dict[int, UserCall] = {}
    of_time = _Signals(numbers, duration)
    settings = np.zeros(layout.SETTING_COUNT, np.int64)
    settings[[layout.SETTING_IMPLICIT, layout.SETTING_HYBRID]] = implicit
    codes, integrals, user = _flatten_drives(model, drives, of_time, numbers, settings)
    if user is not None:
        functions[layout.FAILED_USER_FORCES] = call = _user_forces(model, user, numbers, boundscheck)
        settings[layout.SETTING_FUNCTION] = call.function.address
        settings[layout.SETTING_FUNCTION_NUMBERS], settings[layout.SETTING_FUNCTION_COUNT] = call.first, call.count
    settings[layout.SETTING_CURRENT] = _current(model, forces, of_time)
    attached = [_wrench(model, force, of_time, numbers) for force in forces if not isinstance(force, Current)]
    watched = []
    for e, event in enumerate(events):
        of_event, called = _event(model, e, event, numbers, boundscheck)
        watched.append(of_event)
        if called is not None:
            functions[layout.FAILED_FIRST_EVENT + e] = called
    signal_codes, tables = of_time.arrays()
    samples, most = math.prod(batch), max([1, *(event.max_records for event in events)])
    size = model.nq + model.nv + integrals
    records = Records(
        np.zeros((samples, len(watched)), np.int64),
        np.full((samples, len(watched), most), np.nan),
        np.full((samples, len(watched), most, size), np.nan, dtype),
        np.zeros(samples if functions else 0, np.int64),
        np.zeros((samples if functions else 0, 1 + model.nq + model.nv)),
    )
    given = numbers.rows()
    controller, variation = controller_arrays(model, controllers_model(model, drives, batch), dtype)
    shared = layout.SharedActions(
        signals=signal_codes,
        drives=codes,
        wrenches=np.array(attached, np.int64).reshape(-1, wrenches.WRENCH_ROWS).T.copy(),
        events=np.array(watched, np.int64).reshape(-1, event_codes.EVENT_ROWS).T.copy(),
        tables=tables,
        numbers=given,
        variation=variation,
    )
    actions = Actions(shared, settings, controller, records, of_time.most_coefficients, integrals)
    return actions, UserCalls(functions, given, dtype)


@dataclass(frozen=True, eq=False)
class UserCall:
    """A user function of a simulation: what it is for, and where its parameters stand among the numbers."""

    what: str
    function: UserFunction
    first: int
    count: int


@dataclass(frozen=True, eq=False)
class UserCalls:
    """The user functions of a simulation by the codes of `BlockActions.failures`, and the numbers of all samples."""

    functions: dict[int, UserCall]
    given: np.ndarray
    dtype: np.dtype

    def failure(self, records: Records, sample: int, nq: int) -> str:
        """Which function failed for a sample, with which exception and when."""
        call = self.functions[int(records.failures[sample])]
        t, *_ = arguments = records.failed_calls[sample]
        parameters = self.given[min(sample, len(self.given) - 1), call.first : call.first + call.count]
        rounded = parameters.astype(self.dtype).astype(np.float64)  # as the simulation had them
        exception = call.function.exception(t, arguments[1 : 1 + nq], arguments[1 + nq :], rounded)
        return f"{call.what} raised {exception} at t = {t:.6g} s"


def _user_forces(model: Model, drive: UserForces, numbers: _Numbers, boundscheck: bool) -> UserCall:
    what = f"UserForces with function {name_of(drive.function)}"
    first, count = numbers.add_row("parameters of UserForces", drive.parameters)
    function = user_function("UserForces", drive.function, model.nq, model.nv, count, model.nv, boundscheck)
    return UserCall(what, function, first, count)


def _sequence(name: str, items: Any) -> Sequence[Any]:
    if not isinstance(items, (list, tuple)):
        raise StateError(f"{name} is {items!r}; expected a list")
    return items


def dof_index(model: Model, what: str, joint: str | None, dof: int) -> int:
    """Number of a degree of freedom of a named joint."""
    if joint not in model.joint_names:
        raise StateError(f"{what}: joint {joint!r} is not there; the joints are {list(model.joint_names)}")
    body = model.joint_names.index(joint)
    count = int(model.kernel_model.dofs.counts[body])
    if not (isinstance(dof, (int, np.integer)) and 0 <= dof < count):
        raise StateError(f"{what}: joint {joint!r} has {count} degrees of freedom; found dof {dof!r}")
    return int(model.velocity_index[body]) + int(dof)


def _flatten_drives(
    model: Model, drives: Sequence[Drive], of_time: _Signals, numbers: _Numbers, settings: np.ndarray
) -> tuple[np.ndarray, int, UserForces | None]:
    """Codes (DRIVE_ROWS, nv) of the drives, how many integrals of errors they keep, and the UserForces among them."""
    codes = np.zeros((drive_codes.DRIVE_ROWS, model.nv), np.int64)
    codes[drive_codes.DRIVE_INTEGRAL] = -1
    integrals = 0
    user: UserForces | None = None
    for drive in drives:
        if isinstance(drive, UserForces):
            if user is not None:
                raise StateError("two UserForces are given; expected at most one function")
            user = drive
            continue
        if not isinstance(drive, ONE_JOINT):
            expected = ", ".join(kind.__name__ for kind in (*ONE_JOINT, UserForces))
            raise StateError(f"a drive is {drive!r}; expected one of {expected}")
        what = f"{type(drive).__name__} of joint {drive.joint!r}"
        i = dof_index(model, what, drive.joint, drive.dof)
        if codes[drive_codes.DRIVE_KIND, i] != drive_codes.KIND_NONE:
            raise StateError(f"{what}: degree of freedom {drive.dof} of that joint has a drive already")
        codes[drive_codes.DRIVE_KIND, i] = KINDS[type(drive).__name__]
        _check_coordinate(model, what, drive, i)
        controller = isinstance(drive, (PID, ComputedTorque))
        reference = as_signal(what, drive.reference if isinstance(drive, (PID, ComputedTorque)) else drive.signal)
        _check_smooth(what, drive, reference)
        codes[drive_codes.DRIVE_SIGNAL, i] = of_time.add(what, reference)
        gains = [getattr(drive, gain, 0.0) for gain in ("kp", "ki", "kd")]
        codes[drive_codes.DRIVE_GAINS, i] = numbers.add(f"{what}: kp", gains[0], 0.0, np.finfo(float).max)
        numbers.add(f"{what}: ki", gains[1], 0.0, np.finfo(float).max)
        numbers.add(f"{what}: kd", gains[2], 0.0, np.finfo(float).max)
        numbers.add(f"{what}: limit", getattr(drive, "limit", np.inf), least=0.0)
        if controller and np.any(np.asarray(gains[1]) != 0.0):
            codes[drive_codes.DRIVE_INTEGRAL, i] = model.nq + model.nv + integrals
            integrals += 1
        compensated = getattr(drive, "gravity_compensation", False)
        if not isinstance(compensated, (bool, np.bool_)):
            raise StateError(f"{what}: gravity_compensation is {compensated!r}; expected True or False")
        codes[drive_codes.DRIVE_COMPENSATES_GRAVITY, i] = compensated
    settings[layout.SETTING_HYBRID] |= np.isin(codes[drive_codes.DRIVE_KIND], drive_codes.PRESCRIBED_KINDS).any()
    settings[layout.SETTING_COMPENSATES] = codes[drive_codes.DRIVE_COMPENSATES_GRAVITY].any()
    settings[layout.SETTING_COMPUTES] = (codes[drive_codes.DRIVE_KIND] == drive_codes.KIND_COMPUTED_TORQUE).any()
    return codes, integrals, user


def _check_coordinate(model: Model, what: str, drive: OneJointDrive, i: int) -> None:
    """Refuse drives that look at the position of a joint that has a quaternion instead of one."""
    if model.kernel_model.dofs.in_quaternion_joint[i] and isinstance(drive, (PID, ComputedTorque, PrescribedPosition)):
        raise StateError(f"{what}: a free or spherical joint has no such coordinate; expected another drive")


def _check_smooth(what: str, drive: OneJointDrive, reference: Signal) -> None:
    """Refuse motions whose derivatives have jumps that no finite force makes."""
    orders = {PrescribedPosition: 2, PrescribedVelocity: 1}.get(type(drive), 0)
    for order in range(orders):
        for at in reference.breaks[1:]:
            before, after = reference(np.nextafter(at, -np.inf), order), reference(at, order)
            size = np.abs(reference(reference.breaks, order)).max() + np.abs(after).max() + 1.0
            if (np.abs(after - before) > 1e-9 * size).any():
                kind = ("position", "velocity")[order + (orders == 1)]
                raise StateError(f"{what}: its {kind} jumps at {at:g} s; expected a smoother signal")


def _current(model: Model, forces: Sequence[Force], of_time: _Signals) -> int:
    """The first of three signals of the current, or -1."""
    currents = [force for force in forces if isinstance(force, Current)]
    if not currents:
        return -1
    if len(currents) > 1:
        raise StateError(f"{len(currents)} Currents are given; expected one")
    if not model.in_water:
        raise StateError("a Current is given, but no body is in water; expected bodies with an Immersion, and a fluid")
    first, *_ = [
        of_time.add("Current", component) for component in three_signals("Current: velocity", currents[0].velocity)
    ]
    return first


def _wrench(model: Model, wrench: Force, of_time: _Signals, numbers: _Numbers) -> tuple[int, int, int, int]:
    if not isinstance(wrench, Wrench):
        raise StateError(f"a force is {wrench!r}; expected a Wrench or a Current")
    what = f"Wrench on {wrench.frame!r}"
    frame = model.kernel_model.frame(wrench.frame)
    body, pose = frame.body, frame.pose
    if body < 0:
        raise StateError(f"{what}: it is fixed to the world; expected a body that moves")
    if wrench.axes not in ("world", "body"):
        raise StateError(f'{what}: axes is {wrench.axes!r}; expected "world" or "body"')
    if wrench.axes == "body" and np.abs(pose.rotation - np.eye(3)).max() > 0.0:
        raise StateError(f"{what}: the frame is turned against its body; expected the body, or axes of the world")
    components = [*three_signals(f"{what}: force", wrench.force), *three_signals(f"{what}: moment", wrench.moment)]
    first, *_ = [of_time.add(what, component) for component in components]
    point = real_array(f"{what}: point", wrench.point, StateError)
    if point.shape[-1:] != (3,):
        raise StateError(f"{what}: point has shape {point.shape}; expected (3,) or (..., 3)")
    if not np.isfinite(point).all():
        raise StateError(f"{what}: point is {point.tolist()}; expected finite numbers")
    at, _ = numbers.add_row(f"{what}: point", point @ pose.rotation.T + pose.translation)
    axes = wrenches.WRENCH_BODY_AXES if wrench.axes == "body" else wrenches.WRENCH_WORLD_AXES
    return int(model.kernel_model.dofs.last[body]), axes, first, at


def _event(
    model: Model, e: int, event: Event, numbers: _Numbers, boundscheck: bool
) -> tuple[np.ndarray, UserCall | None]:
    """Codes of event number e, and its function if it has one."""
    if not isinstance(event, Event):
        raise StateError(f"an event is {event!r}; expected an Event")
    if (event.joint is None) == (event.function is None):
        raise StateError(f"an event has joint {event.joint!r} and function {event.function!r}; expected one of them")
    if not isinstance(event.direction, (int, np.integer)) or event.direction not in (-1, 0, 1):
        raise StateError(f"direction of an event is {event.direction!r}; expected -1, 0 or 1")
    whole = isinstance(event.max_records, (int, np.integer)) and not isinstance(event.max_records, bool)
    if not whole or not 1 <= event.max_records <= MOST_RECORDS:
        found, expected = event.max_records, f"expected a whole number from 1 to {MOST_RECORDS}"
        raise StateError(f"max_records of an event is {found!r}; {expected}")
    codes = np.zeros(event_codes.EVENT_ROWS, np.int64)
    codes[event_codes.EVENT_DIRECTION], codes[event_codes.EVENT_TERMINAL] = event.direction, bool(event.stop)
    if event.function is not None:
        codes[event_codes.EVENT_ROW] = -1
        first, count = numbers.add_row("parameters of an event", event.parameters)
        codes[event_codes.EVENT_NUMBERS], codes[event_codes.EVENT_NUMBER_COUNT] = first, count
        function = user_function(f"event {e}", event.function, model.nq, model.nv, count, 1, boundscheck)
        codes[event_codes.EVENT_ADDRESS] = function.address
        return codes, UserCall(f"event {e} with function {name_of(event.function)}", function, first, count)
    what = f"event of joint {event.joint!r}"
    i = dof_index(model, what, event.joint, event.dof)
    if event.quantity not in ("position", "velocity"):
        raise StateError(f'{what}: quantity is {event.quantity!r}; expected "position" or "velocity"')
    if event.quantity == "position" and model.kernel_model.dofs.in_quaternion_joint[i]:
        raise StateError(f"{what}: a free or spherical joint has no such coordinate; expected a function")
    row = (
        model.nq + i
        if event.quantity == "velocity"
        else int(model.kernel_model.topology[layout.TOPOLOGY_COORDINATE, i])
    )
    codes[event_codes.EVENT_ROW], codes[event_codes.EVENT_NUMBERS] = row, numbers.add(f"{what}: value", event.value)
    return codes, None
