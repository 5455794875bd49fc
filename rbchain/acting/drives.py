"""Drives: laws for the force or the motion of a joint over time. `flatten_drive` turns them into arrays.

The forces of the drives of a degree of freedom add up. At most one drive prescribes its motion, and is then alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..core.control import drive_layout
from ..errors import ArgumentError
from .coordinates import refuse_quaternion
from .inputs import Input
from .knots import refuse_jumps
from .numeric_fields import LARGEST, SIGNAL, Drive, NumericField
from .packing import SampleNumbers, SignalTables
from .signals import Signal, SignalLike, as_signal

if TYPE_CHECKING:
    from ..facade.model import Model

ControllerModel: TypeAlias = Union[Literal["nominal", "own"], "Model"]
NOMINAL, OWN = "nominal", "own"
#: Reference of a PID that follows the outputs of a sampled controller, and its former name.
OUTER, FORMER_OUTER = "outer", "target"


@dataclass(frozen=True, eq=False)
class DriveWithModel(Drive):
    """Base class of drives that can compute forces with a model."""

    renamed_arguments: ClassVar = {"model": "controller_model"}
    if TYPE_CHECKING:
        controller_model: ControllerModel

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.controller_model
        is_word = isinstance(given, str) and given in (NOMINAL, OWN)
        if not is_word and not hasattr(given, "kernel_model"):  # a Model, which this module must not import
            hint = did_you_mean(given, (NOMINAL, OWN)) if isinstance(given, str) else ""
            raise ArgumentError(
                f'{self.label()}: controller_model is {excerpt(given)}; expected "{NOMINAL}", "{OWN}" or a Model{hint}'
            )


@dataclass(frozen=True, eq=False)
class PrescribedForce(DriveWithModel):
    """An actuator force over time.

    Parameters
    ----------
    joint : str
        Name of the joint.
    signal : Signal or number, N m or N
        The force. An array has one value for each sample, here and in all drives.
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    gravity_compensation : bool
        Whether to add the gravity force of this degree of freedom, from `gravity_forces(q)`. Among joints that
        constraints connect, either all have it, or as many independent ones as the loop or coupling has degrees of
        freedom. The latter then also hold the others: a joint with the gravity force G1, to which a coupler connects
        a joint with the gravity force G2 and the ratio r, gets G1 + r G2.
    limit : float or one for each sample, N m or N
        Largest force of this drive, in both directions.
    controller_model : "nominal", "own" or Model
        The model that computes the gravity forces, as for `PID`.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Examples
    --------
    A force of 2 N accelerates a slide of 4 kg by 0.5 m/s^2:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=4.0))
    >>> motion = builder.build().simulate(
    ...     [[0.0]], duration=1.0, method="rk4", step=0.1, drives=[rb.PrescribedForce("slide", 2.0)])
    >>> motion.qd[0, -1].round(9).tolist()
    [0.5]
    """

    numeric_fields: ClassVar = (
        NumericField("signal", "N m or N", kind=SIGNAL),
        NumericField("limit", "N m or N", 0.0),
    )
    joint: str
    signal: SignalLike
    _: KW_ONLY
    dof: int | None = None
    gravity_compensation: bool = False
    limit: npt.ArrayLike = np.inf
    controller_model: ControllerModel = "nominal"


@dataclass(frozen=True, eq=False)
class PrescribedAcceleration(Drive):
    """A prescribed acceleration over time. `Trajectory.tau` contains the required actuator force.

    Parameters
    ----------
    joint : str
        Name of the joint.
    signal : Signal or number, rad/s^2 or m/s^2
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.
    """

    numeric_fields: ClassVar = (NumericField("signal", "rad/s^2 or m/s^2", kind=SIGNAL),)
    joint: str
    signal: SignalLike
    _: KW_ONLY
    dof: int | None = None


@dataclass(frozen=True, eq=False)
class PrescribedVelocity(Drive):
    """A prescribed velocity over time, which replaces the velocity of the initial state.

    The acceleration is the exact derivative of the signal. Signals with jumps are not supported.

    Parameters
    ----------
    joint : str
        Name of the joint.
    signal : Signal or number, rad/s or m/s
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.
    """

    numeric_fields: ClassVar = (NumericField("signal", "rad/s or m/s", kind=SIGNAL),)
    joint: str
    signal: SignalLike
    _: KW_ONLY
    dof: int | None = None


@dataclass(frozen=True, eq=False)
class PrescribedPosition(Drive):
    """A prescribed position over time, which replaces the position and velocity of the initial state.

    Velocity and acceleration are the exact derivatives of the signal. Signals with jumps or kinks, such as linear
    tables, are not supported.

    Parameters
    ----------
    joint : str
        Name of the joint, which must not be free or spherical.
    signal : Signal or number, rad or m
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Examples
    --------
    >>> import rbchain as rb
    >>> drive = rb.PrescribedPosition("link1", rb.Signal.sines(0.1, 2.0))
    >>> rod = rb.Model.serial_chain(1)
    >>> motion = rod.simulate([[0.0]], duration=1.0, method="rk4", step=0.1, drives=[drive], save_at=11)
    >>> motion.q[0, -1].round(6).tolist(), motion.tau.shape
    ([0.09093], (1, 11, 1))
    """

    numeric_fields: ClassVar = (NumericField("signal", "rad or m", kind=SIGNAL),)
    joint: str
    signal: SignalLike
    _: KW_ONLY
    dof: int | None = None


@dataclass(frozen=True, eq=False)
class PID(DriveWithModel):
    """A PID controller: tau = kp e + ki (integral of e) + kd de/dt + feedforward, with the error e = reference - q.

    Parameters
    ----------
    joint : str
        Name of the joint, which must not be free or spherical.
    reference : Signal, number or "outer", rad or m
        The position to follow. With "outer", the PID is the inner controller of a cascade: it follows the held output
        of a user function in `Sampled`.
    kp, kd, ki : float or one for each sample, N m/rad, N m s/rad, N m/(rad s) (N/m, N s/m, N/(m s))
        Gains, at least 0. `kp` and `kd` may also be a multiple of an `Input` plus a constant, such as the coefficient
        of a damper that a program changes: `kd=rb.Input("damper", lower=0.0, upper=2.0)`.
    limit : float or one for each sample, N m or N
        Largest force of this drive, in both directions. It includes `feedforward` and gravity compensation, but not the
        forces of other drives. An `Actuator` limits the sum of all drives. The integral of the error also grows while
        the force is at its limit: there is no anti-windup. A function in `Sampled` can stop the integral.
    gravity_compensation : bool
        Whether to add the gravity force of this degree of freedom, from `gravity_forces(q)`. Among joints that
        constraints connect, either all have it, or as many independent ones as the loop or coupling has degrees of
        freedom. The latter then also hold the others: a joint with the gravity force G1, to which a coupler connects
        a joint with the gravity force G2 and the ratio r, gets G1 + r G2.
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    controller_model : "nominal", "own" or Model
        The model with which the controller computes the gravity forces. The default "nominal" stands for
        `Model.nominal`: the model of a study before dispersion, or the model before `vary` and `with_payload`. The
        value "own" stands for the simulated model with the parameters of each sample, which a real controller does not
        know. A Model must have the same joints, and may have parameters for each sample. All drives of a simulation
        must use the same model.
    feedforward : Signal or number, N m or N
        Force to add, such as the force that the reference motion requires.
    feedforward_time_constant : float or one for each sample, s
        Time constant T of a first-order lag of the feedforward, for motors whose torque builds up with a delay. The
        force z that acts follows T dz/dt = feedforward - z and starts at z = 0. Without a lag, it is 0 for all samples.
        "rosenbrock", "radau", sensitivities and linear analysis do not support a lag.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Examples
    --------
    >>> import rbchain as rb
    >>> arm = rb.Model.serial_chain(2)
    >>> drives = [rb.PID(joint, 0.5, kp=2.0, kd=0.2, gravity_compensation=True) for joint in arm.joint_names]
    >>> motion = arm.simulate([[0, 0]], duration=5.0, method="rk4", step=1e-3, drives=drives)
    >>> motion.q[0, -1].round(6).tolist()
    [0.5, 0.5]
    """

    foreign_arguments: ClassVar = {
        "p": "kp",
        "i": "ki",
        "d": "kd",
        "stiffness": "kp",
        "damping": "kd",
        "target": "reference",
        "setpoint": "reference",
        "max_torque": "limit",
        "torque_limit": "limit",
        "max_force": "limit",
        "force_limit": "limit",
        "forcerange": "limit, the largest force in both directions",
        "period": "rb.Sampled(PID(...), period=...)",
        "dt": "rb.Sampled(PID(...), period=...)",
    }
    numeric_fields: ClassVar = (
        NumericField("reference", "rad or m", kind=SIGNAL, word=OUTER),
        NumericField("kp", "N m/rad or N/m", 0.0, LARGEST, takes_inputs=True),
        NumericField("kd", "N m s/rad or N s/m", 0.0, LARGEST, takes_inputs=True),
        NumericField("ki", "N m/(rad s) or N/(m s)", 0.0, LARGEST),
        NumericField("limit", "N m or N", 0.0),
        NumericField("feedforward", "N m or N", kind=SIGNAL),
        NumericField("feedforward_time_constant", "s", 0.0, LARGEST),
    )
    joint: str
    reference: SignalLike | Literal["outer"]
    _: KW_ONLY
    kp: npt.ArrayLike | Input | Signal
    ki: npt.ArrayLike = 0.0
    kd: npt.ArrayLike | Input | Signal = 0.0
    limit: npt.ArrayLike = np.inf
    gravity_compensation: bool = False
    dof: int | None = None
    controller_model: ControllerModel = "nominal"
    feedforward: SignalLike = 0.0
    feedforward_time_constant: npt.ArrayLike = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.reference, str) and self.reference == FORMER_OUTER:
            raise ArgumentError(f'{self.label()}: reference is "{FORMER_OUTER}", which is now called "{OUTER}"')
        super().__post_init__()


@dataclass(frozen=True, eq=False)
class ComputedTorque(DriveWithModel):
    """Computed-torque control: the force for qdd = d2r/dt2 + kd de/dt + kp e + ki (integral of e), with e = r - q.

    The controller computes the force with `controller_model` from the state and the actuator forces of the other
    degrees of freedom. The forces of other drives on its own degree of freedom add to it. It does not include friction,
    springs or wrenches. With closed loops, it includes the forces of the constraints, and the joints with such a drive
    must be independent. If all joints have such a drive and the model is exact, the errors obey linear equations. If
    only some joints have one, this is partial feedback linearization.

    Parameters
    ----------
    joint : str
        Name of the joint, which must not be free or spherical.
    reference : Signal or number, rad or m
        The position r to follow. Its derivatives are exact.
    kp, kd, ki : float or one for each sample, 1/s^2, 1/s, 1/s^3
        Gains, at least 0.
    limit : float or one for each sample, N m or N
        Largest force of this drive, in both directions.
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    controller_model : "nominal", "own" or Model
        The model of the controller, as for `PID`.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    References
    ----------
    Luh, Walker and Paul (1980), "Resolved-acceleration control of mechanical manipulators"; Spong (1994), "Partial
    feedback linearization of underactuated mechanical systems".

    Examples
    --------
    >>> import rbchain as rb
    >>> arm = rb.Model.serial_chain(2)
    >>> drives = [rb.ComputedTorque(joint, 0.5, kp=100.0, kd=20.0) for joint in arm.joint_names]
    >>> motion = arm.simulate([[0, 0]], duration=2.0, method="rk4", step=1e-2, drives=drives)
    >>> motion.q[0, -1].round(6).tolist()
    [0.5, 0.5]
    """

    numeric_fields: ClassVar = (
        NumericField("reference", "rad or m", kind=SIGNAL),
        NumericField("kp", "1/s^2", 0.0, LARGEST),
        NumericField("kd", "1/s", 0.0, LARGEST),
        NumericField("ki", "1/s^3", 0.0, LARGEST),
        NumericField("limit", "N m or N", 0.0),
    )
    joint: str
    reference: SignalLike
    _: KW_ONLY
    kp: npt.ArrayLike
    kd: npt.ArrayLike
    ki: npt.ArrayLike = 0.0
    limit: npt.ArrayLike = np.inf
    dof: int | None = None
    controller_model: ControllerModel = "nominal"


ONE_JOINT = (PrescribedForce, PrescribedAcceleration, PrescribedVelocity, PrescribedPosition, PID, ComputedTorque)
OneJointDrive = (
    PrescribedForce | PrescribedAcceleration | PrescribedVelocity | PrescribedPosition | PID | ComputedTorque
)
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
DERIVATIVES = {PrescribedVelocity: 1, PrescribedPosition: 2, PID: 1, ComputedTorque: 2}
#: Number of derivatives of its signal between which a drive prescribes the motion, so that none may jump.
MOTION_DERIVATIVES = {PrescribedVelocity: 1, PrescribedPosition: 2}
OF_POSITION = (PID, ComputedTorque, PrescribedPosition)
PRESCRIBED = (PrescribedAcceleration, PrescribedVelocity, PrescribedPosition)


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
    if not is_sampled and np.any(np.asarray(getattr(drive, "ki", 0.0)) != 0.0):
        codes[drive_layout.INTEGRAL, d] = model.nq + model.nv + states_of_drives(codes)
    if isinstance(drive, PID):
        _add_feedforward(what, drive, is_sampled, codes, d, signals)
        _add_lag(what, model, drive, is_sampled, codes, d, numbers)
    codes[drive_layout.COMPENSATES_GRAVITY, d] = getattr(drive, "gravity_compensation", False)


def _add_feedforward(what: str, drive: PID, is_sampled: bool, codes: np.ndarray, d: int, signals: SignalTables) -> None:
    """Add the signal of the feedforward force, unless it is the number zero."""
    signal = as_signal(f"{what}: feedforward", drive.feedforward)
    if signal.is_constant and not signal.coefficients.any() and not signal.inputs:
        return
    codes[drive_layout.FEEDFORWARD, d] = signals.add(f"{what}: feedforward", signal, -1 if is_sampled else 0)


def _add_lag(
    what: str, model: Model, drive: PID, is_sampled: bool, codes: np.ndarray, d: int, numbers: SampleNumbers
) -> None:
    """Add the time constant of the feedforward and its row of the state, unless it is zero for all samples."""
    given = np.asarray(drive.feedforward_time_constant)
    if not (given > 0.0).any():
        return
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
    return int((codes[[drive_layout.INTEGRAL, drive_layout.LAGGED]] >= 0).sum())


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
        if not isinstance(drive, PID):
            continue
        given = np.ravel(drive.feedforward_time_constant)
        shortest = np.min(given, initial=np.inf, where=given > 0.0)
        if step > longest * shortest:
            raise ArgumentError(
                f"{drive.label()}: feedforward_time_constant is {shortest:g} s and step is {step:g} s; expected a step "
                f"of at most {longest:g} time constants, {longest * shortest:.3g} s, because longer steps of "
                f'"{method}" are unstable. Choose a shorter step, or set feedforward_time_constant to 0'
            )
