"""Drives: laws for the force or the motion of a joint over time. `flatten_drives` turns them into arrays.

The forces of all drives on a degree of freedom add up. A drive that prescribes the motion of a degree of freedom must
be the only one there.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import ArgumentError
from .inputs import Input
from .numeric_fields import LARGEST, SIGNAL, Drive, NumericField
from .signals import Signal, SignalLike

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
        Whether to add the gravity force of this degree of freedom, from `gravity_forces(q)`. If constraints connect
        several joints, gravity compensation must act on all of them, or on as many independent ones as the loop or
        coupling has degrees of freedom. In the second case, the compensated joints also support the others. For
        example, if a coupler of ratio r connects a joint with gravity force G2 to a joint with gravity force G1, the
        drive of the joint with G1 applies G1 + r G2.
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
        The position to follow. With "outer", the PID is the inner controller of a cascade: it follows the output of a
        user function in `Sampled`.
    kp, kd, ki : float or one for each sample, N m/rad, N m s/rad, N m/(rad s) (N/m, N s/m, N/(m s))
        Gains, at least 0. `kp` and `kd` may also be a multiple of an `Input` plus a constant, such as the coefficient
        of a damper that a program changes: `kd=rb.Input("damper", lower=0.0, upper=2.0)`.
    limit : float or one for each sample, N m or N
        Largest force of this drive, in both directions. It includes `feedforward` and gravity compensation, but not the
        forces of other drives. An `Actuator` limits the sum of all drives. The integral of the error also grows while
        the force is at its limit, because there is no anti-windup. A function in `Sampled` can implement it.
    gravity_compensation : bool
        Whether to add the gravity force of this degree of freedom, from `gravity_forces(q)`. If constraints connect
        several joints, gravity compensation must act on all of them, or on as many independent ones as the loop or
        coupling has degrees of freedom. In the second case, the compensated joints also support the others. For
        example, if a coupler of ratio r connects a joint with gravity force G2 to a joint with gravity force G1, the
        drive of the joint with G1 applies G1 + r G2.
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
        applied force z follows T dz/dt = feedforward - z and starts at z = 0. T must be above 0 in all samples, or 0 in
        all samples for no lag. "rosenbrock", "radau", sensitivities and linear analysis do not support a lag.
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
    degrees of freedom. The forces of other drives on its own degree of freedom are added to this force. The controller
    does not account for friction, springs or wrenches. With closed loops, it accounts for the forces of the
    constraints, and the joints with such a drive must be independent. If all joints have such a drive and the model is
    exact, the errors obey linear equations. If only some joints have one, the control law is partial feedback
    linearization.

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
PRESCRIBED = (PrescribedAcceleration, PrescribedVelocity, PrescribedPosition)
