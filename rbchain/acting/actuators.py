"""Actuators: lag, torque-speed curve and gear friction between the command of a joint's drives and its actuator force.

`flatten_actuators` turns them into arrays: time constants, torque-speed curves as piecewise linear functions, and the
parameters of gearboxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt, real_array
from ..core.control import actuators as rows, drive_layout as drive
from ..core.tree import sampler_layout as sampler
from ..core.tree.sampler_layout import Samplers
from ..errors import ArgumentError
from .coordinates import dof_index
from .numeric_fields import LARGEST, LARGEST_FLOAT32, Drive, NumericField
from .packing import SampleNumbers

if TYPE_CHECKING:
    from ..facade.model import Model

#: Kinds of drives whose force is constant between the instants of sampled controllers.
HELD_KINDS = (drive.KIND_NONE, drive.KIND_HELD)
#: Smallest `gear_friction_velocity`, rad/s or m/s. Its square and its third power are not zero in float32.
SMALLEST_VELOCITY = 1e-9


@dataclass(frozen=True, eq=False)
class Actuator(Drive):
    """The motor of a joint: a first-order lag, a torque-speed curve that limits the torque, and gearbox friction.

    The command u is the sum of the forces of all drives of this joint and of its `tau`. The lag obeys T df/dt = u - f
    with T = `time_constant` and f(0) = 0. The curve F(v) is the largest torque in the positive direction at the
    velocity v of the joint. The torque of the motor is f, clipped to -F(-v) <= f <= F(v) at every instant. The gearbox
    friction c abs(f) v / sqrt(v^2 + v0^2) opposes the motion, with c = `gear_friction` and v0 =
    `gear_friction_velocity`. `Trajectory.tau` contains the delivered torque, which is f minus this friction.

    Parameters
    ----------
    joint : str
        Name of the joint.
    time_constant : float or one for each sample, s
        Time constant T of the lag; 0 for no lag. With a lag, the drives of this joint must be `Sampled`, because the
        command must be constant between sampling instants.
    stall_torque : float or one for each sample, N m or N
        Largest torque at zero speed and when braking.
    no_load_speed : float or one for each sample, rad/s or m/s
        Speed at which the largest torque is zero. It decreases linearly from `stall_torque` at zero speed. At higher
        speeds, the torque in the direction of motion is zero, and the motor still brakes with up to `stall_torque`. By
        default the torque does not depend on the speed.
    torque_speed : (m, 2) or (..., m, 2) array, optional
        Points (v, F) of the curve in the order of increasing velocities, in place of `stall_torque` and
        `no_load_speed`. The curve is linear between the points and constant beyond them. Points at negative velocities
        describe braking.
    gear_friction : float or one for each sample
        Gearbox friction per motor torque, from 0 to 1. The friction is regularized. For a gearbox that can stick, use
        the `gear_friction` of a `DryFriction`.
    gear_friction_velocity : float or one for each sample, rad/s or m/s
        Velocity v0 below which the gearbox friction is reduced. Loaded joints creep instead of sticking.
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Notes
    -----
    Torques and speeds refer to the joint. For a motor with the gear ratio n, multiply the torques of the data sheet
    by n, and divide its speeds by n.

    A motor that lifts a weight through a gear with a `gear_friction` of c has an efficiency of 1 - c. Friction that
    grows with the torque is part of the servo models of Duclusaud et al. (2024), "Extended Friction Models for
    the Physics Simulation of Servo Actuators". `rb.fit` estimates `gear_friction`.

    Between two instants of a sampled controller, the command is constant, so the lag is an exponential function, which
    every integration method computes exactly.

    Examples
    --------
    A motor without load accelerates by w = w0 (1 - exp(-t stall_torque / (w0 J))), with w0 = `no_load_speed`:

    >>> import numpy as np, rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> builder.add_body("rotor", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(0.1, 0.1, 0.1)))
    >>> drives = [rb.PrescribedForce("rotor", 5.0), rb.Actuator("rotor", stall_torque=2.0, no_load_speed=20.0)]
    >>> motion = builder.build().simulate([[0.0]], duration=2.0, drives=drives)
    >>> bool(np.isclose(motion.qd[0, -1, 0], 20.0 * (1.0 - np.exp(-2.0))))
    True

    A digital controller whose torque follows the command with a time constant of 5 ms:

    >>> digital = rb.Sampled(rb.PID("link1", 0.5, kp=0.4, kd=0.04), period=1e-2)
    >>> drives = [digital, rb.Actuator("link1", time_constant=5e-3)]
    >>> motion = rb.Model.serial_chain(1, gravity=(0, 0, 0)).simulate([[0.0]], duration=5.0, drives=drives)
    >>> motion.q[0, -1].round(3).tolist()
    [0.5]
    """

    numeric_fields: ClassVar = (
        NumericField("time_constant", "s", 0.0, LARGEST),
        NumericField("stall_torque", "N m or N"),
        NumericField("no_load_speed", "rad/s or m/s"),
        NumericField("torque_speed", "", -LARGEST, LARGEST, (None, 2)),
        NumericField("gear_friction", "1", 0.0, 1.0),
        NumericField("gear_friction_velocity", "rad/s or m/s", SMALLEST_VELOCITY, LARGEST_FLOAT32),
    )
    joint: str
    _: KW_ONLY
    time_constant: npt.ArrayLike = 0.0
    stall_torque: npt.ArrayLike = np.inf
    no_load_speed: npt.ArrayLike = np.inf
    torque_speed: npt.ArrayLike | None = None
    gear_friction: npt.ArrayLike = 0.0
    gear_friction_velocity: npt.ArrayLike = 0.01
    dof: int | None = None


def flatten_actuators(
    model: Model,
    actuators: Sequence[Actuator],
    drives: np.ndarray,
    samplers: Samplers | None,
    has_user_forces: bool,
    numbers: SampleNumbers,
) -> np.ndarray | None:
    """Flatten actuators, and add their parameters.

    Parameters
    ----------
    model : Model
    actuators : list of Actuator
    drives : (drive.ROWS, columns) array of int
        The table of drives, in which sampled controllers are outputs that are held.
    samplers : Samplers or None
    has_user_forces : bool
        Whether a user function adds joint forces continuously.
    numbers : SampleNumbers

    Returns
    -------
    codes : (ACTUATOR_ROWS, nv) array of int, or None
        Rows as in `core.control.actuators`; None without actuators.
    """
    if not actuators:
        return None
    codes = np.full((rows.ACTUATOR_ROWS, model.nv), -1, np.int64)
    codes[rows.ACTUATOR_POINTS] = 0
    taken: set[int] = set()
    for actuator in actuators:
        what = actuator.label()
        i = dof_index(model, what, actuator.joint, actuator.dof)
        kinds = drives[drive.KIND, drives[drive.DOF] == i]
        if i in taken:
            raise ArgumentError(
                f"{what}: degree of freedom {actuator.dof or 0} of this joint already has an Actuator; expected one"
            )
        taken.add(i)
        if np.isin(kinds, drive.PRESCRIBED_KINDS).any():
            raise ArgumentError(
                f"{what}: a drive prescribes the motion of this joint, so an Actuator cannot limit its torque; "
                "expected a drive with a force. Use PID or PrescribedForce, or remove the Actuator"
            )
        column = numbers.add_field(what, actuator, "time_constant")
        if (numbers.columns[column] > 0.0).any():
            _refuse_continuous_commands(what, i, kinds, samplers, has_user_forces)
            codes[rows.ACTUATOR_TIME_CONSTANT, i] = column
        codes[[rows.ACTUATOR_CURVE, rows.ACTUATOR_POINTS], i] = _add_curve(what, actuator, numbers)
        column = numbers.add_field(what, actuator, "gear_friction")
        numbers.add_field(what, actuator, "gear_friction_velocity")
        if (numbers.columns[column] > 0.0).any():
            codes[rows.ACTUATOR_GEAR, i] = column
    return codes


def _refuse_continuous_commands(
    what: str, i: int, kinds: np.ndarray, samplers: Samplers | None, has_user_forces: bool
) -> None:
    """Raise an error for a lag of a command that is not constant between the instants of a sampled controller."""
    channels = np.zeros((sampler.CHANNEL_ROWS, 0)) if samplers is None else samplers.channels
    acts = (channels[sampler.CHANNEL_DOF] == i) & (channels[sampler.CHANNEL_GROUP] >= 0)
    if not acts.any():
        raise ArgumentError(
            f"{what}: it has a time_constant, but no drive of this joint is a digital controller; expected a command "
            "that is constant between instants. Put the drive into Sampled(..., period=1e-3), or remove time_constant"
        )
    if not np.isin(kinds, HELD_KINDS).all():
        raise ArgumentError(
            f"{what}: it has a time_constant, but a drive of this joint acts continuously; expected a command that is "
            "constant between instants. Put each drive into Sampled(..., period=1e-3), or use tau for a constant force"
        )
    if has_user_forces:
        raise ArgumentError(
            f"{what}: it has a time_constant, but UserForces adds forces that change between instants; expected a "
            "command that is constant between instants. Put UserForces into Sampled(..., period=1e-3)"
        )


def _add_curve(what: str, actuator: Actuator, numbers: SampleNumbers) -> tuple[int, int]:
    """Add the numbers of a torque-speed curve. Return the first column, and the number of points; (-1, 0) without one.

    The columns are F of the first point, its velocity, the slope after it, the velocity of the second point, and so on.
    """
    stall = numbers.for_each_sample(f"{what}: stall_torque", actuator.stall_torque)
    speed = numbers.for_each_sample(f"{what}: no_load_speed", actuator.no_load_speed)
    if actuator.torque_speed is not None:
        if np.isfinite(stall).any() or np.isfinite(speed).any():
            raise ArgumentError(
                f"{what} has both a torque_speed curve and a stall_torque or a no_load_speed; use one of the two"
            )
        points = _checked_points(what, actuator, numbers.batch)
    else:
        if not ((stall >= 0.0).all() and (speed > 0.0).all()):
            raise ArgumentError(
                f"{what}: stall_torque is {excerpt(stall.tolist())} and no_load_speed is {excerpt(speed.tolist())}; "
                "expected a torque of at least 0 and a speed above 0"
            )
        if (np.isinf(stall) & np.isfinite(speed)).any():
            raise ArgumentError(f"{what}: it has a no_load_speed, but no stall_torque; expected both")
        if np.isinf(stall).all():
            return -1, 0
        start, end = np.minimum(stall, LARGEST), np.where(np.isinf(speed), np.minimum(stall, LARGEST), 0.0)
        numbers_of_points = np.broadcast_arrays(0.0, start, np.minimum(speed, LARGEST), end)
        points = np.stack(numbers_of_points, -1).reshape(*numbers_of_points[0].shape, 2, 2)
    velocities, torques = points[..., 0], points[..., 1]
    slopes = np.diff(torques) / np.diff(velocities)
    first = numbers.add(f"{what}: torque_speed", torques[..., 0])
    for p in range(points.shape[-2]):
        numbers.add(f"{what}: torque_speed", velocities[..., p])
        numbers.add(f"{what}: torque_speed", slopes[..., p] if p < slopes.shape[-1] else 0.0)
    return first, points.shape[-2]


def _checked_points(what: str, actuator: Actuator, batch: tuple[int, ...]) -> np.ndarray:
    """Return the points (..., m, 2) of a torque-speed curve. Raises an ArgumentError if they are invalid."""
    points = real_array(f"{what}: torque_speed", actuator.torque_speed, ArgumentError)
    fits = points.ndim >= 2 and points.shape[-1] == 2 and points.shape[:-2] in ((), batch) and points.size > 0
    if not fits:
        of_samples = f" or {(*batch, 'm', 2)}".replace("'", "") if batch else ""
        raise ArgumentError(
            f"{what}: torque_speed has shape {points.shape}; expected (m, 2){of_samples}, with a velocity and a torque "
            "in each row"
        )
    if not np.isfinite(points).all():
        raise ArgumentError(f"{what}: torque_speed is {excerpt(points.tolist())}; expected finite numbers")
    if (np.diff(points[..., 0]) <= 0.0).any():
        raise ArgumentError(
            f"{what}: torque_speed has the velocities {excerpt(points[..., 0].tolist())}; expected increasing numbers"
        )
    has_negative = (points[..., 1] < 0.0).any(-1)
    for curve in points[has_negative]:
        v = np.concatenate([curve[:, 0], -curve[:, 0]])
        least, largest = (np.interp(sign * v, *curve.T) for sign in (-1.0, 1.0))
        crossed = largest + least < 0.0
        if crossed.any():
            at = v[np.argmax(crossed)]
            raise ArgumentError(
                f"{what}: at the velocity {at:g}, torque_speed allows torques from {-least[np.argmax(crossed)]:g} to "
                f"{largest[np.argmax(crossed)]:g}; expected a range that is not empty. Add points at negative "
                "velocities, where the motor brakes"
            )
    return points
