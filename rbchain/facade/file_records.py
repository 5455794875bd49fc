"""Keyframes and sensors of a model file, in the models that edits return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ..acting.input_values import inputs_of_drives
from ..common.real_arrays import FloatArray
from ..model.keyframe import Keyframe
from ..model.pose import Pose
from ..model.sensor_of_file import REACTIONS, SensorOfFile

if TYPE_CHECKING:
    from .attributes import Attributes

AnyModel = TypeVar("AnyModel", bound="Attributes")
State = tuple[FloatArray, FloatArray]


def with_file_records(
    edited: AnyModel,
    original: Attributes,
    converted: Callable[[FloatArray, FloatArray], State],
    reversed_joints: Mapping[str, int] | None = None,
) -> AnyModel:
    """Return an edited model with the keyframes and the sensors of the original one.

    `converted` converts q and qd of the original model. `reversed_joints` are the joints that connect the same bodies
    in the opposite direction, and their numbers of dofs. Frames keep their names and poses. A keyframe keeps the
    values of inputs that the edited model has; a sensor of a joint that it does not have is omitted.
    """
    inputs = inputs_of_drives(edited.drives)
    keyframes = {
        name: Keyframe(*converted(key.q, key.qd), {name: x for name, x in key.inputs.items() if name in inputs})
        for name, key in original.keyframes.items()
    }
    sensors_of_file = original.description.sensors
    found = {name: _edited(sensor, edited, reversed_joints or {}) for name, sensor in sensors_of_file.items()}
    sensors = {name: sensor for name, sensor in found.items() if sensor is not None}
    if not keyframes and not sensors:
        return edited
    return type(edited)(edited.description.replaced({"keyframes": keyframes, "sensors": sensors}))


def _edited(sensor: SensorOfFile, model: Attributes, reversed_joints: Mapping[str, int]) -> SensorOfFile | None:
    """Return a sensor of the edited model; None if it has no such joint."""
    if sensor.joint:
        count = reversed_joints.get(sensor.joint)
        if count is not None:
            return replace(sensor, dof=count - 1 - sensor.dof)
        return sensor if sensor.joint in model.joint_names else None
    if sensor.body is None:
        return sensor
    if sensor.kind in REACTIONS and (sensor.body not in model.body_names or reversed_joints):
        return None  # a force between other bodies, or inside one
    return carried_by_body(sensor, model)


def carried_by_body(sensor: SensorOfFile, model: Attributes) -> SensorOfFile:
    """Return a sensor whose `body` is the name of a frame with the moving body that carries this frame."""
    if sensor.joint or sensor.body is None:
        return sensor
    frame = model.kernel_model.frame(sensor.body)
    body = None if frame.body < 0 else model.body_names[frame.body]
    return sensor if body == sensor.body else replace(sensor, body=body, pose=frame.pose @ sensor.pose)


def attached_sensor(sensor: SensorOfFile, prefix: str, parent: str | None, placement: Pose) -> SensorOfFile:
    """Return a sensor of a model whose world is fixed to the frame `parent` of another model, at `placement`."""
    if sensor.joint:
        return replace(sensor, joint=prefix + sensor.joint)
    if sensor.body is None:
        return replace(sensor, body=parent, pose=placement @ sensor.pose)
    return replace(sensor, body=prefix + sensor.body)
