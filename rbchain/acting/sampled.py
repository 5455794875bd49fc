"""Sampled controllers, which compute their outputs at instants and hold them in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt, finite_number
from ..errors import ArgumentError
from .drives import PID, ComputedTorque
from .needs import Needs
from .numeric_fields import LARGEST, Drive, NumericField
from .sensors import Encoder, Sensor, VelocitySensor
from .user_code import is_batch_function
from .user_forces import UserForces

Outputs: TypeAlias = Literal["force", "position", "velocity"] | Sequence[Literal["position", "velocity"]]
FORCE, TARGETS = "force", ("position", "velocity")
#: Kinds of outputs of a user function.
KINDS_OF_OUTPUTS = ((FORCE,), *((kind,) for kind in TARGETS), TARGETS)


@dataclass(frozen=True, eq=False)
class Sampled(Drive):
    """A digital controller: it computes outputs at sampling instants, and each output acts until the next one.

    Instant i is at phase + i period. The controller uses the state that was measured one `latency` before the instant,
    and its output takes effect one `delay` after the instant (zero-order hold). Before the first output takes effect,
    the output is zero. Instants whose measurement would be before the start are omitted. Integration steps end at these
    times.

    Parameters
    ----------
    controller : PID, ComputedTorque, UserForces or function
        The integral of the error is I_i = I_(i-1) + period e_i, and the output of instant i uses I_i. References, and
        the time that user functions receive, are evaluated at the instant. A function is short for
        `UserForces(function)`. It computes joint forces. There are two kinds of function:

        * function(t, q, qd, parameters, out) is compiled by Numba, and called for each sample. It adds the forces (nv,)
          to `out`.
        * function(t, q, qd, parameters) is plain Python, and called once in each period for the whole batch. `q`, `qd`
          and `parameters` are arrays (..., nq), (..., nv) and (..., m) in the batch shape. It returns the forces
          (..., nv).

        With `states` and `needs`, they have further arguments before `out`: function(t, q, qd, parameters, states,
        computed, out) and function(t, q, qd, parameters, states, computed).
    period : float, s
        Time between two instants.
    delay : float or one for each sample, s
        Time from the instant until the output takes effect, such as the computing time. It may be longer than the
        period.
    phase : float, s
        Time of the first instant.
    latency : float or one for each sample, s
        Age of the measured state at the instant. It may be longer than the period.
    sensors : list of Encoder and VelocitySensor
        How the controller measures positions and velocities. Measurements without a sensor are exact. Drives with the
        same period, phase, delay, latency and sensors are evaluated together.
    rate_limit : float or one for each sample, N m/s or N/s, or units of the target per s
        Largest rate of change between two outputs of the controller.
    resolution : float or one for each sample, N m or N, or units of the target
        Distance between two values of the output; 0 for no rounding. Outputs are first clipped to the `limit` of the
        controller, then to the rate limit, and rounded last. An output may therefore exceed the limit by up to half the
        resolution.
    states : (m,) or (..., m) array
        Initial values of the discrete states of a user function. The function then has the argument `states` after
        `parameters`, and changes it in place. It is (m,) for a compiled function, else (..., m).
    joints : list of str, optional
        Joints to which the outputs of a user function apply, in this order; all joints by default. There is one output
        for each degree of freedom of these joints.
    outputs : "force", "position", "velocity" or ("position", "velocity")
        What a user function computes: joint forces, or targets of the `PID` drives with the reference "outer". With
        both targets, the positions of all joints come first, then the velocities. Without a target velocity, the PID
        uses zero. Each target applies until the next one takes effect. Before the first output takes effect, the target
        is the initial position. The PID may be continuous, or belong to a separate `Sampled`. With both targets,
        `limit`, `rate_limit` and `resolution` must have their default values, because positions and velocities have
        different units.
    limit : float or one for each sample, N m or N, or units of the target
        Largest absolute value of an output of a user function before it is rounded.
    needs : Needs, optional
        Quantities of a model, such as poses, Jacobians and the mass matrix. The function receives them in the argument
        `computed`, which is the last one, or the last one before `out`.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Raises
    ------
    ArgumentError
        From `Model.simulate`, if a function in plain Python does not return numbers of the expected shape. Exceptions
        of the function are raised unchanged, with a note about the time. If outputs of a sample are not finite, the
        sample ends with status USER_FUNCTION_FAILED.

    Notes
    -----
    Functions in plain Python need the same latency for all samples. For samples that have ended, they receive the last
    measurement. A simulation with such functions keeps all samples in memory, about 5 kB for each joint and sample.

    All `ComputedTorque` drives must have the same period, delay, phase, latency and sensors. Other controllers can have
    their own. With fixed-step methods, delays and latencies can differ between samples if they, the periods, the phases
    and the saved times are multiples of `step`.

    If several controllers have an instant at the same time, they are evaluated in the order of the drives. Controllers
    that are evaluated together take the place of the first one. A `PID` that follows targets is always evaluated after
    the functions that are listed before it. A `ComputedTorque` uses the forces of other actuators that act before this
    instant.

    References
    ----------
    Åström and Wittenmark (1997), *Computer-Controlled Systems*, chapters 2 and 8.

    Examples
    --------
    >>> import rbchain as rb
    >>> arm = rb.Model.serial_chain(2)
    >>> pid = [rb.PID(joint, 0.5, kp=0.4, kd=0.04, gravity_compensation=True) for joint in arm.joint_names]
    >>> drives = [rb.Sampled(controller, period=1e-2, delay=2e-3) for controller in pid]
    >>> motion = arm.simulate([[0, 0]], duration=8.0, drives=drives)
    >>> motion.q[0, -1].round(3).tolist()
    [0.5, 0.5]

    A function with a discrete state, which counts its calls:

    >>> def pulse(t, q, qd, parameters, states, out):
    ...     states[0] += 1.0
    ...     out[0] = 1.0 if states[0] % 2.0 == 1.0 else -1.0
    >>> drive = rb.Sampled(rb.UserForces(pulse), period=0.1, states=[0.0])
    >>> motion = rb.Model.serial_chain(1, gravity=(0, 0, 0)).simulate([[0.0]], duration=0.25, save_at=6, drives=[drive])
    >>> motion.tau[0, :, 0].tolist()
    [1.0, 1.0, -1.0, -1.0, 1.0, 1.0]

    A function in plain Python for the whole batch:

    >>> def damper(t, q, qd, parameters):
    ...     return -0.05 * qd
    >>> drive = rb.Sampled(damper, period=0.1)
    >>> rod = rb.Model.serial_chain(1, gravity=(0, 0, 0))
    >>> motion = rod.simulate([[0.0], [0.1]], [[1.0], [2.0]], 0.1, drives=[drive])
    >>> motion.tau[:, 0, 0].tolist()
    [-0.05, -0.1]

    Cascaded control: a function computes the target of a continuous PID controller.

    >>> def half_way(t, q, qd, parameters):
    ...     return q + 0.5 * (0.4 - q)
    >>> outer = rb.Sampled(half_way, period=0.5, outputs="position")
    >>> inner = rb.PID("link1", "outer", kp=2.0, kd=0.2)
    >>> motion = rod.simulate([[0.0]], duration=6.0, method="implicit", step=0.02, drives=[outer, inner])
    >>> bool(abs(motion.q[0, -1, 0] - 0.4) < 1e-3)
    True
    """

    foreign_arguments: ClassVar = {
        "rate": "period, the inverse of the rate",
        "frequency": "period, the inverse of the frequency",
        "dt": "period",
        "timestep": "period",
        "sample_time": "period",
        "dead_time": "delay",
    }
    numeric_fields: ClassVar = (
        NumericField("delay", "s", 0.0, LARGEST),
        NumericField("latency", "s", 0.0, LARGEST),
        NumericField("rate_limit", "", 0.0),
        NumericField("resolution", "", 0.0, LARGEST),
        NumericField("limit", "", 0.0),
        NumericField("states", "", shape=(None,)),
    )
    controller: PID | ComputedTorque | UserForces | Callable[..., Any]
    _: KW_ONLY
    period: float = 1e-3
    delay: npt.ArrayLike = 0.0
    phase: float = 0.0
    latency: npt.ArrayLike = 0.0
    sensors: Sequence[Sensor] = ()
    rate_limit: npt.ArrayLike = np.inf
    resolution: npt.ArrayLike = 0.0
    states: npt.ArrayLike = ()
    joints: Sequence[str] | None = None
    outputs: Outputs = "force"
    limit: npt.ArrayLike = np.inf
    needs: Needs | None = None

    def __post_init__(self) -> None:
        if callable(self.controller):
            object.__setattr__(self, "controller", UserForces(self.controller))
        super().__post_init__()
        if self.needs is not None and not isinstance(self.needs, Needs):
            raise ArgumentError(f"{self.label()}: needs is {excerpt(self.needs)}; expected Needs(...)")
        finite_number(f"{self.label()}: period", self.period, ArgumentError, above=0.0)
        finite_number(f"{self.label()}: phase", self.phase, ArgumentError, least=0.0)
        if kinds_of_outputs(self.outputs) not in KINDS_OF_OUTPUTS:
            hint = did_you_mean(self.outputs, (FORCE, *TARGETS)) if isinstance(self.outputs, str) else ""
            raise ArgumentError(
                f"{self.label()}: outputs is {excerpt(self.outputs)}; expected 'force', 'position', 'velocity' or "
                f"('position', 'velocity'){hint}"
            )

    def label(self) -> str:
        """Return the names of the class, of the controller's class and of its joint, for messages."""
        joint = f" of joint {self.controller.joint!r}" if isinstance(self.controller, (PID, ComputedTorque)) else ""
        return f"Sampled {type(self.controller).__name__}{joint}"


def kinds_of_outputs(outputs: object) -> tuple[str, ...]:
    """Return the kinds of outputs of a user function; () for an object that does not list any."""
    found = (outputs,) if isinstance(outputs, str) else outputs
    return tuple(found) if isinstance(found, (list, tuple)) else ()


def controller_of(drive: Any) -> Any:
    """Return the controller of a sampled drive, and other drives as they are."""
    return drive.controller if isinstance(drive, Sampled) else drive


def is_in_cascade(drive: Any) -> bool:
    """Whether a drive computes or follows targets, and so needs another drive."""
    controller, outputs = controller_of(drive), drive.outputs if isinstance(drive, Sampled) else "force"
    return outputs != "force" or (isinstance(controller, PID) and isinstance(controller.reference, str))


def is_called_for_batch(drive: Any) -> bool:
    """Whether Python calls the function of a drive for the whole batch."""
    if not (isinstance(drive, Sampled) and isinstance(drive.controller, UserForces)):
        return False
    return is_batch_function(drive.controller.function, np.size(drive.states) > 0, drive.needs is not None)


def with_sensors(drive: Any, change: Callable[[Sensor], Sensor]) -> Any:
    """Return a drive whose sensors a function has changed, and drives without sensors as they are."""
    return replace(drive, sensors=[change(x) for x in drive.sensors]) if isinstance(drive, Sampled) else drive


def sensors_of(drives: Sequence[Any]) -> list[Sensor]:
    """Return the sensors of all drives."""
    return [sensor for drive in drives if isinstance(drive, Sampled) for sensor in drive.sensors]


def has_noise(drives: Sequence[Any]) -> bool:
    """Whether a sensor of the drives has noise."""
    return any(np.any(np.asarray(sensor.noise) != 0.0) for sensor in sensors_of(drives))


def with_samples(drives: Any, samples: np.ndarray, seed: int) -> Any:
    """Return drives whose sensors have these numbers of samples, and this seed if they have none."""
    if not isinstance(drives, (list, tuple)):
        return drives
    return [_sampled_with_samples(drive, samples, seed) if isinstance(drive, Sampled) else drive for drive in drives]


def _sampled_with_samples(drive: Sampled, samples: np.ndarray, seed: int) -> Sampled:
    if not isinstance(drive.sensors, (list, tuple)):
        return drive  # refused later
    sensors = []
    for sensor in drive.sensors:
        # also without noise, because a study may add it later
        if isinstance(sensor, (Encoder, VelocitySensor)):
            own = seed if sensor.seed is None else sensor.seed
            numbers = samples if sensor.sample_ids is None else sensor.sample_ids
            sensors.append(replace(sensor, sample_ids=numbers, seed=own))
        else:
            sensors.append(sensor)
    return replace(drive, sensors=sensors)
