"""Drives: the actuator force of a joint over time. `flatten` turns them into arrays for the kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from ..misspelt import SuggestsAttributes
from .signals import SignalLike

if TYPE_CHECKING:
    from ..chain import Model

ControllerModel: TypeAlias = Union[str, "Model"]


@dataclass(frozen=True, eq=False)
class PrescribedForce(SuggestsAttributes):
    """A motor that gives a force over time.

    Parameters
    ----------
    joint : str
        Name of the joint.
    signal : Signal or number, N m or N
        As everywhere here, an array gives each sample its own.
    dof : int
        Which degree of freedom of the joint.
    gravity_compensation : bool
        Whether the motor also carries the joint's share of gravity, `gravity_forces(q)`.
    limit : float, N m or N
        The most it can give, either way.
    model : "nominal", "true" or Model
        The model of the mechanism that computes the gravity forces, as for `PID`.
    """

    joint: str
    signal: SignalLike
    dof: int = 0
    gravity_compensation: bool = False
    limit: npt.ArrayLike = np.inf
    model: ControllerModel = "nominal"


@dataclass(frozen=True, eq=False)
class PrescribedAcceleration(SuggestsAttributes):
    """A motor that gives whatever force an acceleration over time (rad/s^2, m/s^2) takes: `Trajectory.tau` tells."""

    joint: str
    signal: SignalLike
    dof: int = 0


@dataclass(frozen=True, eq=False)
class PrescribedVelocity(SuggestsAttributes):
    """A motor that forces a velocity over time (rad/s, m/s), from the start on, whatever the initial state says.

    Its acceleration is the signal's exact derivative: a signal that jumps has none.
    """

    joint: str
    signal: SignalLike
    dof: int = 0


@dataclass(frozen=True, eq=False)
class PrescribedPosition(SuggestsAttributes):
    """A motor that forces a position over time (rad, m), from the start on, whatever the initial state says.

    Velocity and acceleration are the signal's exact derivatives: one with kinks, such as a linear table, is refused.
    """

    joint: str
    signal: SignalLike
    dof: int = 0


@dataclass(frozen=True, eq=False)
class PID(SuggestsAttributes):
    """A motor that follows a reference: kp e + ki (integral of e) + kd de/dt with e = reference - q.

    Parameters
    ----------
    joint : str
    reference : Signal or number, rad or m
    kp, kd, ki : float or one for each sample
    limit : float, N m or N
        The most the motor can give, either way, with what compensation and `UserForces` add.
    gravity_compensation : bool
        Whether it also carries the joint's share of gravity, `gravity_forces(q)`.
    dof : int
    model : "nominal", "true" or Model
        The model of the mechanism that the controller uses to compute the gravity forces. "nominal", the default, is
        `Model.nominal`: in a study the model before dispersion, after `vary` the model before its samples differed.
        "true" is the simulated model with each sample's own parameters, which no real controller knows. A Model must
        have the same joints; it may have parameters for each sample. All drives of a simulation use the same model.

    Examples
    --------
    >>> import rbchain as rb
    >>> arm = rb.Model.serial_chain(2)
    >>> drives = [rb.PID(joint, 0.5, kp=2.0, kd=0.2, gravity_compensation=True) for joint in arm.joint_names]
    >>> motion = arm.simulate([[0, 0]], [[0, 0]], 5.0, method="rk4", step=1e-3, drives=drives)
    >>> motion.q[0, -1].round(6).tolist()
    [0.5, 0.5]
    """

    joint: str
    reference: SignalLike
    kp: npt.ArrayLike
    kd: npt.ArrayLike = 0.0
    ki: npt.ArrayLike = 0.0
    limit: npt.ArrayLike = np.inf
    gravity_compensation: bool = False
    dof: int = 0
    model: ControllerModel = "nominal"


@dataclass(frozen=True, eq=False)
class ComputedTorque(SuggestsAttributes):
    """A motor whose force follows from a model: qdd = d2r/dt2 + kd de/dt + kp e + ki (integral of e).

    The controller uses `model`, as for `PID`, and the torques of the other actuators; it does not know friction,
    springs or wrenches. If all joints are driven so and the model is exact, the errors obey linear equations (Luh,
    Walker and Paul 1980); if only some are, this is Spong's (1994) partial feedback linearisation. Parameters as for
    `PID`, the gains per unit of inertia: 1/s^2, 1/s, 1/s^3.
    """

    joint: str
    reference: SignalLike
    kp: npt.ArrayLike
    kd: npt.ArrayLike
    ki: npt.ArrayLike = 0.0
    limit: npt.ArrayLike = np.inf
    dof: int = 0
    model: ControllerModel = "nominal"


@dataclass(frozen=True, eq=False)
class UserForces(SuggestsAttributes):
    """Joint forces from a function of the user's own, added to what the drives give.

    Parameters
    ----------
    function : function(t, q, qd, parameters, out)
        Adds the joint forces (nv,) to `out`, which starts as zero. All arguments but t (s) are flat float64 arrays, of
        one sample. Numba compiles it once in each process; a function under `numba.njit` is taken as it is. If it
        raises an exception, the sample ends with status USER_FUNCTION_FAILED, also if it raises at a trial state that
        the motion would not have reached; `simulate(..., boundscheck=True)` makes it raise an IndexError where it reads
        or writes beyond the end of an array.
    parameters : (m,) or (..., m) array
        Numbers for it, of all samples or of each.

    Examples
    --------
    >>> import rbchain as rb
    >>> def spring(t, q, qd, parameters, out):
    ...     out[0] -= parameters[0] * q[0]
    >>> rod = rb.Model.serial_chain(1, gravity=(0, 0, 0))
    >>> settings = {"method": "rk4", "step": 1e-3}
    >>> motion = rod.simulate([[0.1]], [[0.0]], 1.0, drives=[rb.UserForces(spring, [0.3])], **settings)
    >>> float(motion.q[0, -1, 0].round(6))
    0.084385
    """

    function: Callable[..., Any]
    parameters: npt.ArrayLike = ()


ONE_JOINT = (PrescribedForce, PrescribedAcceleration, PrescribedVelocity, PrescribedPosition, PID, ComputedTorque)
OneJointDrive = (
    PrescribedForce | PrescribedAcceleration | PrescribedVelocity | PrescribedPosition | PID | ComputedTorque
)
Drive = OneJointDrive | UserForces
