"""Drives: laws for the force or the motion of a joint over time. `flatten_drives` turns them into arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from ..common.misspelt import SuggestsAttributes
from .derivative_check import compare_derivatives
from .signals import SignalLike

if TYPE_CHECKING:
    from ..facade.model import Model

ControllerModel: TypeAlias = Union[str, "Model"]


@dataclass(frozen=True, eq=False)
class PrescribedForce(SuggestsAttributes):
    """An actuator force over time.

    Parameters
    ----------
    joint : str
        Name of the joint.
    signal : Signal or number, N m or N
        The force. An array has one value for each sample, here and in all drives.
    dof : int
        Degree of freedom of the joint, counted from 0.
    gravity_compensation : bool
        Whether to add the gravity force of this degree of freedom, from `gravity_forces(q)`.
    limit : float or one for each sample, N m or N
        Largest actuator force, in both directions.
    model : "nominal", "true" or Model
        The model that computes the gravity forces, as for `PID`.

    Examples
    --------
    A force of 2 N accelerates a slide of 4 kg by 0.5 m/s^2:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> builder.add_body("slide", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=4.0))
    >>> motion = builder.build().simulate(
    ...     [[0.0]], [[0.0]], 1.0, method="rk4", step=0.1, drives=[rb.PrescribedForce("slide", 2.0)])
    >>> motion.qd[0, -1].round(9).tolist()
    [0.5]
    """

    joint: str
    signal: SignalLike
    dof: int = 0
    gravity_compensation: bool = False
    limit: npt.ArrayLike = np.inf
    model: ControllerModel = "nominal"


@dataclass(frozen=True, eq=False)
class PrescribedAcceleration(SuggestsAttributes):
    """A prescribed acceleration over time. `Trajectory.tau` contains the required actuator force.

    Parameters
    ----------
    joint : str
        Name of the joint.
    signal : Signal or number, rad/s^2 or m/s^2
    dof : int
        Degree of freedom of the joint, counted from 0.
    """

    joint: str
    signal: SignalLike
    dof: int = 0


@dataclass(frozen=True, eq=False)
class PrescribedVelocity(SuggestsAttributes):
    """A prescribed velocity over time, which replaces the velocity of the initial state.

    The acceleration is the exact derivative of the signal. Signals with jumps are refused.

    Parameters
    ----------
    joint : str
        Name of the joint.
    signal : Signal or number, rad/s or m/s
    dof : int
        Degree of freedom of the joint, counted from 0.
    """

    joint: str
    signal: SignalLike
    dof: int = 0


@dataclass(frozen=True, eq=False)
class PrescribedPosition(SuggestsAttributes):
    """A prescribed position over time, which replaces the position and velocity of the initial state.

    Velocity and acceleration are the exact derivatives of the signal. Signals with jumps or kinks, such as linear
    tables, are refused.

    Parameters
    ----------
    joint : str
        Name of the joint, which must not be free or spherical.
    signal : Signal or number, rad or m
    dof : int
        Degree of freedom of the joint, counted from 0.

    Examples
    --------
    >>> import rbchain as rb
    >>> drive = rb.PrescribedPosition("link1", rb.Signal.sines(0.1, 2.0))
    >>> motion = rb.Model.serial_chain(1).simulate([[0.0]], [[0.0]], 1.0, method="rk4", step=0.1, drives=[drive])
    >>> motion.q[0, -1].round(6).tolist(), motion.tau.shape
    ([0.09093], (1, 2, 1))
    """

    joint: str
    signal: SignalLike
    dof: int = 0


#: Reference of a PID that follows the outputs of a sampled controller.
TARGET = "target"


@dataclass(frozen=True, eq=False)
class PID(SuggestsAttributes):
    """A PID controller: tau = kp e + ki (integral of e) + kd de/dt, with the error e = reference - q.

    Parameters
    ----------
    joint : str
        Name of the joint, which must not be free or spherical.
    reference : Signal, number or "target", rad or m
        The position to follow. "target" is the output of a user function in `Sampled`, which is held.
    kp, kd, ki : float or one for each sample, N m/rad, N m s/rad, N m/(rad s) (N/m, N s/m, N/(m s))
        Gains, at least 0.
    limit : float or one for each sample, N m or N
        Largest actuator force, in both directions. It includes gravity compensation and `UserForces`.
    gravity_compensation : bool
        Whether to add the gravity force of this degree of freedom, from `gravity_forces(q)`.
    dof : int
        Degree of freedom of the joint, counted from 0.
    model : "nominal", "true" or Model
        The model with which the controller computes the gravity forces. The default "nominal" stands for
        `Model.nominal`: the model of a study before dispersion, or the model before `vary` and `with_payload`. The
        value "true" stands for the simulated model with the parameters of each sample, which a real controller does not
        know. A Model must have the same joints, and may have parameters for each sample. All drives of a simulation
        must use the same model.

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
    reference: SignalLike | Literal["target"]
    kp: npt.ArrayLike
    kd: npt.ArrayLike = 0.0
    ki: npt.ArrayLike = 0.0
    limit: npt.ArrayLike = np.inf
    gravity_compensation: bool = False
    dof: int = 0
    model: ControllerModel = "nominal"


@dataclass(frozen=True, eq=False)
class ComputedTorque(SuggestsAttributes):
    """Computed-torque control: the force for qdd = d2r/dt2 + kd de/dt + kp e + ki (integral of e), with e = r - q.

    The controller computes the force with `model` from the state and the forces of the other actuators. It does not
    include friction, springs or wrenches. If all joints have such a drive and the model is exact, the errors obey
    linear equations. If only some joints have one, this is partial feedback linearisation.

    Parameters
    ----------
    joint : str
        Name of the joint, which must not be free or spherical.
    reference : Signal or number, rad or m
        The position r to follow. Its derivatives are exact.
    kp, kd, ki : float or one for each sample, 1/s^2, 1/s, 1/s^3
        Gains, at least 0.
    limit : float or one for each sample, N m or N
        Largest actuator force, in both directions.
    dof : int
        Degree of freedom of the joint, counted from 0.
    model : "nominal", "true" or Model
        The model of the controller, as for `PID`.

    References
    ----------
    Luh, Walker and Paul (1980), "Resolved-acceleration control of mechanical manipulators"; Spong (1994), "Partial
    feedback linearization of underactuated mechanical systems".

    Examples
    --------
    >>> import rbchain as rb
    >>> arm = rb.Model.serial_chain(2)
    >>> drives = [rb.ComputedTorque(joint, 0.5, kp=100.0, kd=20.0) for joint in arm.joint_names]
    >>> motion = arm.simulate([[0, 0]], [[0, 0]], 2.0, method="rk4", step=1e-2, drives=drives)
    >>> motion.q[0, -1].round(6).tolist()
    [0.5, 0.5]
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
    """Joint forces from a user function, added to those of the drives.

    Parameters
    ----------
    function : function(t, q, qd, parameters, out)
        Adds the joint forces (nv,) to `out`, which is zero at first. `t` is the time in s; the other arguments are flat
        float64 arrays of one sample. Numba compiles the function once in each process; a function decorated with
        `numba.njit` is used as it is. `Sampled` also accepts functions in plain Python for the whole batch.
    parameters : (m,) or (..., m) array
        Numbers for the functions, the same for all samples or different for each.
    derivatives : function(t, q, qd, parameters, out), optional
        Writes the derivatives of the joint forces with respect to q to out[0], and with respect to qd to out[1].
        `out` (2, nv, nv) is zero at first; out[0, i, j] is the derivative of force i with respect to position j. For
        free and spherical joints, derivatives with respect to q are taken along the velocities qd. The methods
        "rosenbrock" and "radau" use the derivatives; without them they compute differences, which takes more time.

    Notes
    -----
    If the function raises an exception, the sample ends with status USER_FUNCTION_FAILED. This also holds for trial
    states that are not part of the motion. With `simulate(..., boundscheck=True)`, reading or writing beyond the end of
    an array raises an IndexError.

    Wrong derivatives reduce the order of the method "rosenbrock". The error estimate contains most of this error, so
    the steps become shorter, but errors may exceed the tolerances. "radau" needs more iterations or shorter steps.
    Compare the functions with `check_derivatives`.

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

    A stiff spring, with its derivative:

    >>> def stiffness(t, q, qd, parameters, out):
    ...     out[0, 0, 0] = -parameters[0]
    >>> stiff = rb.UserForces(spring, [1e6], derivatives=stiffness)
    >>> stiff.check_derivatives(rod, [0.1], [0.0])
    """

    function: Callable[..., Any]
    parameters: npt.ArrayLike = ()
    derivatives: Callable[..., Any] | None = None

    def check_derivatives(self, model: Model, q: npt.ArrayLike, qd: npt.ArrayLike, t: float = 0.0) -> None:
        """Compare the derivatives with central differences of the function in one state.

        Parameters
        ----------
        model : Model
        q, qd : (nq,), (nv,) arrays, rad or m, and rad/s or m/s
        t : float, s

        Raises
        ------
        StateError
            If an entry deviates by more than 1e-5 of the largest derivative with respect to q, or to qd. The message
            names the entry. Also if there are no derivatives, or if parameters differ between samples.

        Examples
        --------
        >>> import rbchain as rb
        >>> def damper(t, q, qd, parameters, out):
        ...     out[0] -= 2.0 * qd[0]
        >>> def wrong(t, q, qd, parameters, out):
        ...     out[1, 0, 0] = 2.0
        >>> rod = rb.Model.serial_chain(1)
        >>> rb.UserForces(damper, derivatives=wrong).check_derivatives(rod, [0.1], [0.0])
        Traceback (most recent call last):
        ...
        rbchain.errors.StateError: derivatives of UserForces: d tau[0] / d qd[0] is 2; ...
        """
        compare_derivatives(self, model, q, qd, t)


ONE_JOINT = (PrescribedForce, PrescribedAcceleration, PrescribedVelocity, PrescribedPosition, PID, ComputedTorque)
OneJointDrive = (
    PrescribedForce | PrescribedAcceleration | PrescribedVelocity | PrescribedPosition | PID | ComputedTorque
)
