"""Turn drives into arrays for the kernels: codes of each degree of freedom, and gains, limits and signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..common.real_arrays import excerpt
from ..core.control import drives as drive_codes
from ..core.tree import layout
from ..errors import StateError
from .actuators import Actuator
from .coordinates import dof_index, refuse_quaternion
from .drives import (
    ONE_JOINT,
    PID,
    TARGET,
    ComputedTorque,
    OneJointDrive,
    PrescribedPosition,
    PrescribedVelocity,
    UserForces,
)
from .packing import SampleNumbers, SignalTables
from .sampled import Drive, Sampled
from .signals import Signal, as_signal

if TYPE_CHECKING:
    from ..facade.model import Model

KINDS = {
    "PrescribedForce": drive_codes.KIND_FORCE,
    "PrescribedAcceleration": drive_codes.KIND_PRESCRIBED_ACCELERATION,
    "PrescribedVelocity": drive_codes.KIND_PRESCRIBED_VELOCITY,
    "PrescribedPosition": drive_codes.KIND_PRESCRIBED_POSITION,
    "PID": drive_codes.KIND_PID,
    "ComputedTorque": drive_codes.KIND_COMPUTED_TORQUE,
}
#: Highest derivative of its signal that a drive reads.
DERIVATIVES = {PrescribedVelocity: 1, PrescribedPosition: 2, PID: 1, ComputedTorque: 2}
OF_POSITION = (PID, ComputedTorque, PrescribedPosition)


def flatten_drives(
    model: Model, drives: Sequence[Drive], signals: SignalTables, numbers: SampleNumbers
) -> tuple[np.ndarray, int, UserForces | None, list[tuple[Sampled, int | None]]]:
    """Add the signals and numbers of drives to the arrays.

    Returns
    -------
    codes : (DRIVE_ROWS, nv) array of int
        Rows as in `core.control.drives`.
    integrals : int
        Number of integrals of control errors, which the state has besides q and qd.
    user : UserForces or None
        The user function among the drives.
    sampled : list of pairs
        The sampled drives, and the degrees of freedom that they drive, or None for user functions.
    """
    codes = np.zeros((drive_codes.DRIVE_ROWS, model.nv), np.int64)
    codes[drive_codes.DRIVE_INTEGRAL] = -1
    integrals = 0
    user: UserForces | None = None
    sampled: list[tuple[Sampled, int | None]] = []
    for given in drives:
        drive: object = given.controller if isinstance(given, Sampled) else given
        if isinstance(given, Sampled) and not isinstance(drive, (PID, ComputedTorque, UserForces)):
            raise StateError(f"Sampled: controller is {excerpt(drive)}; expected a PID, a ComputedTorque or UserForces")
        if isinstance(given, Sampled) and isinstance(drive, UserForces):
            sampled.append((given, None))
            continue
        if isinstance(drive, UserForces):
            if user is not None:
                raise StateError(
                    "drives contains more than one UserForces; expected at most one. Add all forces in one function"
                )
            user = drive
            continue
        if not isinstance(drive, ONE_JOINT):
            expected = ", ".join(kind.__name__ for kind in (*ONE_JOINT, UserForces, Sampled, Actuator))
            raise StateError(f"drives contains {excerpt(drive)}; expected objects of {expected}")
        what = f"{type(drive).__name__} of joint {drive.joint!r}"
        i = dof_index(model, what, drive.joint, drive.dof)
        if codes[drive_codes.DRIVE_KIND, i] != drive_codes.KIND_NONE:
            raise StateError(
                f"{what}: degree of freedom {drive.dof} of this joint already has a drive; expected at most one. Use "
                "UserForces to add forces to those of a drive"
            )
        codes[drive_codes.DRIVE_KIND, i] = KINDS[type(drive).__name__]
        if isinstance(drive, OF_POSITION):
            remedy = "use PrescribedForce, PrescribedAcceleration, PrescribedVelocity or UserForces"
            refuse_quaternion(model, what, i, remedy)
        name = "reference" if isinstance(drive, (PID, ComputedTorque)) else "signal"
        follows = isinstance(drive, PID) and isinstance(drive.reference, str) and drive.reference == TARGET
        codes[drive_codes.DRIVE_FOLLOWS_TARGET, i] = follows
        if isinstance(drive, PID) and isinstance(drive.reference, str) and not follows:
            raise StateError(
                f"{what}: reference is {excerpt(drive.reference)}; expected a Signal, numbers, or {TARGET!r} to follow "
                "the outputs of a user function"
            )
        signal = as_signal(f"{what}: {name}", 0.0 if follows else getattr(drive, name))
        _refuse_jumps(f"{what}: {name}", drive, signal)
        # between the instants of a sampled controller, its reference does not act
        derivatives = -1 if isinstance(given, Sampled) else DERIVATIVES.get(type(drive), 0)
        codes[drive_codes.DRIVE_SIGNAL, i] = signals.add(f"{what}: {name}", signal, derivatives)
        gains = [getattr(drive, gain, 0.0) for gain in ("kp", "ki", "kd")]
        first, *_ = [
            numbers.add(f"{what}: {gain}", value, 0.0, np.finfo(float).max)
            for gain, value in zip(("kp", "ki", "kd"), gains, strict=True)
        ]
        codes[drive_codes.DRIVE_GAINS, i] = first
        numbers.add(f"{what}: limit", getattr(drive, "limit", np.inf), least=0.0)
        if isinstance(given, Sampled):
            sampled.append((given, i))
        elif isinstance(drive, (PID, ComputedTorque)) and np.any(np.asarray(gains[1]) != 0.0):
            codes[drive_codes.DRIVE_INTEGRAL, i] = model.nq + model.nv + integrals
            integrals += 1
        compensated = getattr(drive, "gravity_compensation", False)
        if not isinstance(compensated, (bool, np.bool_)):
            raise StateError(f"{what}: gravity_compensation is {compensated!r}; expected True or False")
        codes[drive_codes.DRIVE_COMPENSATES_GRAVITY, i] = compensated
    return codes, integrals, user, sampled


def settings_of_drives(codes: np.ndarray, settings: np.ndarray) -> None:
    """Set the flags in `settings` that the table of drives needs."""
    settings[layout.SETTING_HYBRID] |= np.isin(codes[drive_codes.DRIVE_KIND], drive_codes.PRESCRIBED_KINDS).any()
    settings[layout.SETTING_COMPENSATES] = codes[drive_codes.DRIVE_COMPENSATES_GRAVITY].any()
    settings[layout.SETTING_COMPUTES] = (codes[drive_codes.DRIVE_KIND] == drive_codes.KIND_COMPUTED_TORQUE).any()


def _refuse_jumps(what: str, drive: OneJointDrive, signal: Signal) -> None:
    """Refuse prescribed motions with jumps in position or velocity, which no finite force can cause."""
    orders = {PrescribedPosition: 2, PrescribedVelocity: 1}.get(type(drive), 0)
    times = signal.breaks[1:]
    for order in range(orders if times.size else 0):
        before, after = signal(np.nextafter(times, -np.inf), order), signal(times, order)
        size = np.abs(signal(signal.breaks, order)).max() + np.abs(after) + 1.0
        jumps = (np.abs(after - before) > 1e-9 * size).reshape(-1, times.size).any(0)
        if jumps.any():
            kind, at = ("position", "velocity")[order + (orders == 1)], times[np.argmax(jumps)]
            raise StateError(
                f"{what}: the {kind} jumps at {at:g} s, which takes an infinite force; expected a smoother signal, "
                'such as Signal.table(times, values, kind="cubic")'
            )
