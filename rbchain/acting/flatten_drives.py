"""Arrays of the drives: their signals, gains and limits, and their rows of the state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.real_arrays import excerpt
from ..core.control import drive_layout
from ..errors import ArgumentError
from .coordinates import refuse_quaternion
from .drives import OUTER, PID, ComputedTorque, OneJointDrive, PrescribedPosition, PrescribedVelocity
from .inputs import Input
from .knots import refuse_jumps
from .packing import SampleNumbers, SignalTables
from .signals import Signal, as_signal

if TYPE_CHECKING:
    from ..facade.model import Model

KINDS = {
    "PrescribedForce": drive_layout.KIND_FORCE,
    "PrescribedAcceleration": drive_layout.KIND_PRESCRIBED_ACCELERATION,
    "PrescribedVelocity": drive_layout.KIND_PRESCRIBED_VELOCITY,
    "PrescribedPosition": drive_layout.KIND_PRESCRIBED_POSITION,
    "PID": drive_layout.KIND_PID,
    "ComputedTorque": drive_layout.KIND_COMPUTED_TORQUE,
}


#: Gains and limit in the order of their columns, and their values for drives without them.
GAINS = (("kp", 0.0), ("ki", 0.0), ("kd", 0.0), ("limit", np.inf))


#: Highest derivative of its signal that a drive reads.
DERIVATIVES: dict[type, int] = {PrescribedVelocity: 1, PrescribedPosition: 2, PID: 1, ComputedTorque: 2}


#: Number of derivatives of its signal between which a drive prescribes the motion, so that none may jump.
MOTION_DERIVATIVES: dict[type, int] = {PrescribedVelocity: 1, PrescribedPosition: 2}


OF_POSITION = (PID, ComputedTorque, PrescribedPosition)


def flatten_drive(
    model: Model,
    drive: OneJointDrive,
    is_sampled: bool,
    codes: np.ndarray,
    d: int,
    signals: SignalTables,
    numbers: SampleNumbers,
) -> None:
    """Add the signals and the numbers of a drive to the arrays.

    Parameters
    ----------
    model : Model
    drive : drive of one joint
    is_sampled : bool
        Whether the drive is the controller of a `Sampled`.
    codes : (drive_layout.ROWS, columns) array of int
        The table of drives, from `new_table`. Column d changes.
    d : int
    signals : SignalTables
    numbers : SampleNumbers
    """
    what = drive.label()
    codes[drive_layout.KIND, d] = KINDS[type(drive).__name__]
    if isinstance(drive, OF_POSITION):
        remedy = "use PrescribedForce, PrescribedAcceleration, PrescribedVelocity or UserForces"
        refuse_quaternion(model, what, int(codes[drive_layout.DOF, d]), remedy)
    name = "reference" if isinstance(drive, (PID, ComputedTorque)) else "signal"
    follows = isinstance(drive, PID) and isinstance(drive.reference, str) and drive.reference == OUTER
    codes[drive_layout.FOLLOWS_TARGET, d] = follows
    signal = as_signal(f"{what}: {name}", 0.0 if follows else getattr(drive, name))
    refuse_jumps(f"{what}: {name}", signal, MOTION_DERIVATIVES.get(type(drive), 0))
    # between the instants of a sampled controller, its signals do not act
    derivatives = -1 if is_sampled else DERIVATIVES.get(type(drive), 0)
    codes[drive_layout.SIGNAL, d] = signals.add(f"{what}: {name}", signal, derivatives)
    codes[drive_layout.GAINS, d] = len(numbers.columns)
    for gain, absent in GAINS:
        value = getattr(drive, gain, absent)
        if isinstance(value, (Signal, Input)):
            signals.add_number(f"{what}: {gain}", value)
        elif hasattr(drive, gain):
            numbers.add_field(what, drive, gain)
        else:
            numbers.add(f"{what}: {gain}", absent)
    if not is_sampled and not _is_zero(getattr(drive, "ki", 0.0)):
        codes[drive_layout.INTEGRAL, d] = model.nq + model.nv + states_of_drives(codes)
    if isinstance(drive, PID):
        _add_feedforward(what, drive, is_sampled, codes, d, signals)
        _add_lag(what, model, drive, is_sampled, codes, d, numbers)
    codes[drive_layout.COMPENSATES_GRAVITY, d] = getattr(drive, "gravity_compensation", False)


def _is_zero(value: Any) -> bool:
    """Whether a number, or each number of an array, is zero. An Input is not."""
    return value == 0.0 if type(value) is float else not np.any(np.asarray(value) != 0.0)


def _add_feedforward(what: str, drive: PID, is_sampled: bool, codes: np.ndarray, d: int, signals: SignalTables) -> None:
    """Add the signal of the feedforward force, unless it is the number zero."""
    if type(drive.feedforward) is float and drive.feedforward == 0.0:
        return
    signal = as_signal(f"{what}: feedforward", drive.feedforward)
    if signal.is_constant and not signal.coefficients.any() and not signal.inputs:
        return
    codes[drive_layout.FEEDFORWARD, d] = signals.add(f"{what}: feedforward", signal, -1 if is_sampled else 0)


def _add_lag(
    what: str, model: Model, drive: PID, is_sampled: bool, codes: np.ndarray, d: int, numbers: SampleNumbers
) -> None:
    """Add the time constant of the feedforward and its row of the state, unless it is zero for all samples."""
    if _is_zero(drive.feedforward_time_constant):
        return
    given = np.asarray(drive.feedforward_time_constant)
    if is_sampled:
        raise ArgumentError(
            f"{what}: it has a feedforward_time_constant, but a controller in Sampled computes its force at instants "
            "only; expected 0. Use an Actuator with a time_constant, which delays the force of the controller"
        )
    if not (given > 0.0).all():
        raise ArgumentError(
            f"{what}: feedforward_time_constant is {excerpt(given.tolist())}; expected numbers above 0, "
            "or 0 for all samples. Use a short time constant for samples without a lag"
        )
    column = numbers.add_field(what, drive, "feedforward_time_constant")
    if codes[drive_layout.FEEDFORWARD, d] >= 0:
        codes[drive_layout.LAG, d] = column
        codes[drive_layout.LAGGED, d] = model.nq + model.nv + states_of_drives(codes)


def states_of_drives(codes: np.ndarray) -> int:
    """Return the number of integrals and of lagged forces in a table of drives, which are rows of the state."""
    return int(np.count_nonzero(codes[[drive_layout.INTEGRAL, drive_layout.LAGGED]] >= 0))


def refuse_lags(what: str, codes: np.ndarray, remedy: str) -> None:
    """Raise an ArgumentError if a table of drives has a lag. `what` is the subject of the message."""
    if (codes[drive_layout.LAGGED] >= 0).any():
        raise ArgumentError(
            f"{what} does not support the feedforward_time_constant of a PID; expected 0 for all drives. {remedy}"
        )


def refuse_short_lags(drives: Iterable[object], method: str, step: float, longest: float) -> None:
    """Raise an ArgumentError for a lag with which steps of a method are unstable.

    Parameters
    ----------
    drives : iterable of drives
    method : str
    step : float, s
    longest : float
        Longest stable step, in time constants.
    """
    for drive in drives:
        if not isinstance(drive, PID) or _is_zero(drive.feedforward_time_constant):
            continue
        given = np.ravel(drive.feedforward_time_constant)
        shortest = np.min(given, initial=np.inf, where=given > 0.0)
        if step > longest * shortest:
            raise ArgumentError(
                f"{drive.label()}: feedforward_time_constant is {shortest:g} s and step is {step:g} s; expected a step "
                f"of at most {longest:g} time constants, {longest * shortest:.3g} s, because longer steps of "
                f'"{method}" are unstable. Choose a shorter step, or set feedforward_time_constant to 0'
            )
