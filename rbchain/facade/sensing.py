"""Measurements of the sensors of a model file, computed from a trajectory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..common.real_arrays import FloatArray, excerpt
from ..errors import ArgumentError
from ..model.named_items import NamedDict, NamedItems
from ..model.pose import computed_pose
from ..model.sensor_of_file import REACTIONS, SensorOfFile

if TYPE_CHECKING:
    from ..simulate.trajectory import Trajectory
    from .model import Model

#: Kinds of sensors that measure in the axes of their frame, and not in world axes.
IN_OWN_AXES = ("velocimeter", "gyroscope", "accelerometer", "force", "torque")
ANGULAR = ("frame angular velocity", "frame angular acceleration", "gyroscope", "torque")


class Sensors(NamedItems[SensorOfFile]):
    """The sensors of the model's file by their names. `model.sensors.of(motion)` computes their measurements."""

    _owner, _singular, _plural = "the model", "sensor", "sensors"

    def __init__(self, model: Model) -> None:
        self._model = model
        self._names = tuple(model.description.sensors)

    def _item(self, name: str) -> SensorOfFile:
        return self._model.description.sensors[name]

    def __repr__(self) -> str:
        return f"Sensors({ {name: sensor.kind for name, sensor in self.items()} })"

    def of(self, motion: Trajectory) -> dict[str, FloatArray]:
        """Compute the measurements of all sensors at the saved times of a trajectory of this model.

        Parameters
        ----------
        motion : Trajectory

        Returns
        -------
        dict of arrays
            By the names of the sensors: (..., times) for sensors of joints, (..., times, 4) for quaternions [x, y, z,
            w], and (..., times, 3) for all others. `SensorOfFile.unit` is the unit. Sensors of frames measure in world
            axes; velocimeters, gyroscopes, accelerometers, forces and torques are in the axes of the frame.
            Accelerations include -g, as in MuJoCo and in real accelerometers. Forces and torques are the action of the
            parent on the body.

        Raises
        ------
        ArgumentError
            If the trajectory belongs to a model with other bodies or joints, or if a sensor measures a force and
            `motion.reactions` is not available, for example because of contacts.

        Notes
        -----
        The measurements have no noise.
        """
        own, other = self._model, getattr(motion, "model", None)
        if other is None or (own.body_names, own.joint_names) != (other.body_names, other.joint_names):
            of = f"a motion of model {other.name!r}, which has other bodies" if other is not None else excerpt(motion)
            raise ArgumentError(f"sensors of {own.name!r}: motion is {of}; expected a trajectory of this model")
        measurements = _Measurements(motion)
        found = {name: measurements.of(sensor) for name, sensor in self.items()}
        return NamedDict(self._owner, self._singular, self._plural, found)


class _Measurements:
    """The quantities of a trajectory that sensors measure; each is computed once."""

    def __init__(self, motion: Trajectory) -> None:
        self._motion, self._model = motion, motion.model_of_states
        self._found: dict[str, FloatArray] = {}

    def of(self, sensor: SensorOfFile) -> FloatArray:
        """Return the measurements of a sensor."""
        found = self._of_joint(sensor) if sensor.joint else self._of_frame(sensor)
        return np.clip(found, -sensor.cutoff, sensor.cutoff)

    def _of_joint(self, sensor: SensorOfFile) -> FloatArray:
        model, body = self._model, self._model.joint_names.index(sensor.joint)
        dof = model.velocity_index[body] + sensor.dof
        if sensor.kind == "position":
            return self._motion.q[..., model.position_index[body] + sensor.dof] + sensor.offset
        return (self._motion.qd if sensor.kind == "velocity" else self._motion.tau)[..., dof]

    def _of_frame(self, sensor: SensorOfFile) -> FloatArray:
        kind, rotation, offset = sensor.kind, self._rotation(sensor), self._offset(sensor)
        if kind == "frame position":
            return self._at_body("translation", sensor) + offset
        if kind == "frame quaternion":
            return computed_pose(offset, rotation).quaternion
        if kind in REACTIONS:  # from the parent, in the axes of the body
            reaction = self._at_body("reactions", sensor)
            force, moment = reaction[..., :3], reaction[..., 3:]
            found = force if kind == "force" else moment - np.cross(sensor.pose.translation, force)
            return found @ sensor.pose.rotation
        velocity = self._at_body("velocities", sensor)
        spin = velocity[..., 3:]
        if "acceleration" in kind or kind == "accelerometer":
            acceleration = self._at_body("accelerations", sensor)
            turning = acceleration[..., 3:]
            central = np.cross(spin, np.cross(spin, offset))
            linear = acceleration[..., :3] + np.cross(turning, offset) + central - self._model.gravity
            found = turning if kind in ANGULAR else linear
        else:
            found = spin if kind in ANGULAR else velocity[..., :3] + np.cross(spin, offset)
        return (found[..., None, :] @ rotation)[..., 0, :] if kind in IN_OWN_AXES else found

    def _rotation(self, sensor: SensorOfFile) -> FloatArray:
        """Rotation of the frame of a sensor in the world, (..., times, 3, 3)."""
        return self._at_body("rotation", sensor) @ sensor.pose.rotation

    def _offset(self, sensor: SensorOfFile) -> FloatArray:
        """Vector from the origin of the body to the frame of a sensor, in world axes, (..., times, 3)."""
        return self._at_body("rotation", sensor) @ sensor.pose.translation

    def _at_body(self, quantity: str, sensor: SensorOfFile) -> FloatArray:
        """Return a quantity of the body of a sensor; zeros or the identity matrix for the world."""
        motion, model = self._motion, self._model
        if sensor.body is None:
            shape = {"rotation": (3, 3), "translation": (3,)}.get(quantity, (6,))
            value = np.eye(3) if quantity == "rotation" else np.zeros(shape)
            return np.broadcast_to(value, (*motion.q.shape[:-1], *shape))
        if quantity not in self._found:
            if quantity in ("rotation", "translation"):
                poses = model.body_poses(motion.q)
                self._found |= {"rotation": poses.rotation, "translation": poses.translation}
            elif quantity == "velocities":
                self._found[quantity] = model.body_velocities(motion.q, motion.qd)
            elif quantity == "accelerations":
                self._found[quantity] = model.body_accelerations(motion.q, motion.qd, motion.qdd)
            else:
                self._found[quantity] = motion.reactions
        found, index = self._found[quantity], model.body_names.index(sensor.body)
        return found[..., index, :, :] if quantity == "rotation" else found[..., index, :]
