"""Sensors of joints and frames of an MJCF file."""

from __future__ import annotations

import numpy as np

from ..model.pose import Pose
from ..model.sensor_of_file import SensorOfFile
from .mjcf_actuators import Dofs
from .mjcf_constraints import Frames
from .mjcf_forces import Forces
from .mjcf_source import Source, rotation
from .names import Names

OF_JOINTS = {"JOINTPOS": "position", "JOINTVEL": "velocity", "JOINTACTFRC": "force of the actuators"}
OF_FRAMES = {
    "FRAMEPOS": "frame position",
    "FRAMEQUAT": "frame quaternion",
    "FRAMELINVEL": "frame linear velocity",
    "FRAMEANGVEL": "frame angular velocity",
    "FRAMELINACC": "frame linear acceleration",
    "FRAMEANGACC": "frame angular acceleration",
    "VELOCIMETER": "velocimeter",
    "GYRO": "gyroscope",
    "ACCELEROMETER": "accelerometer",
    "FORCE": "force",
    "TORQUE": "torque",
}


def sensors_of(source: Source, forces: Forces, frames: Frames, dofs: Dofs) -> tuple[dict[str, SensorOfFile], list[str]]:
    """Return the sensors of a file by their names, and the labels of those that rbchain does not represent."""
    model, found, lacking = source.model, {}, []
    names = Names(source.name("sensor", i) for i in range(model.nsensor))
    for i in range(model.nsensor):
        sensor = _sensor(source, forces, i, frames, dofs)
        if sensor is None:
            lacking.append(source.label("sensor", i))
        else:
            found[source.name("sensor", i) or names.new(f"sensor{i}")] = sensor
    return found, lacking


def _sensor(source: Source, forces: Forces, i: int, frames: Frames, dofs: Dofs) -> SensorOfFile | None:
    """Return a sensor; None if rbchain does not represent it."""
    model, kind, target = source.model, int(source.model.sensor_type[i]), int(source.model.sensor_objid[i])
    cutoff = float(model.sensor_cutoff[i]) or np.inf
    delay = source.field("sensor_delay", model.nsensor)[i]
    if delay > 0.0 or model.sensor_refid[i] >= 0:  # relative to another frame
        return None
    for name, own in OF_JOINTS.items():
        if kind == source.kind("Sensor", f"mjSENS_{name}") and target in dofs:
            joint, dof = dofs[target]
            is_scalar = source.joint_type(target) in ("hinge", "slide")
            offset = float(model.qpos0[model.jnt_qposadr[target]]) if own == "position" else 0.0
            return SensorOfFile(own, joint=joint, dof=dof or 0, offset=offset, cutoff=cutoff) if is_scalar else None
    for name, own in OF_FRAMES.items():
        if kind == source.kind("Sensor", f"mjSENS_{name}"):
            place = _frame(source, int(model.sensor_objtype[i]), target)
            if place is None or place[0] not in frames:
                return None
            body, pose = place
            is_reaction = own in ("force", "torque")
            if is_reaction and (not model.body_jntnum[body] or _is_immersed(source, forces, body)):
                return None  # a body without joints is part of its parent
            return _sensor_of_frame(source, own, body, pose, frames, cutoff)
    return None


def _sensor_of_frame(source: Source, kind: str, body: int, pose: Pose, frames: Frames, cutoff: float) -> SensorOfFile:
    """Return the sensor at a pose in the frame of one of MuJoCo's bodies, which may be fixed to another one."""
    model = source.model
    while body and not model.body_jntnum[body]:
        pose = Pose(model.body_pos[body], rotation(model.body_quat[body])) @ pose
        body = int(model.body_parentid[body])
    name, anchor = frames[body]
    own = Pose(pose.translation - anchor, pose.rotation)
    return SensorOfFile(kind, body=name, pose=own, cutoff=cutoff)


def _is_immersed(source: Source, forces: Forces, body: int) -> bool:
    """Whether a body or a body that it carries has an immersion.

    The forces of an immersion act from outside. MuJoCo adds them to the measurements of force and torque sensors.
    """
    carried = [body]
    for other in range(body + 1, source.model.nbody):  # parents have smaller numbers
        if source.model.body_parentid[other] in carried:
            carried.append(other)
    return any(forces.immersion(each, np.zeros(3)) is not None for each in carried)


def _frame(source: Source, element: int, number: int) -> tuple[int, Pose] | None:
    """Return one of MuJoCo's bodies and a pose in its frame, for a site, body or geom; None for other elements."""
    model = source.model
    if element == source.kind("Obj", "mjOBJ_SITE"):
        return int(model.site_bodyid[number]), Pose(model.site_pos[number], rotation(model.site_quat[number]))
    if element == source.kind("Obj", "mjOBJ_BODY"):  # the inertial frame
        return number, Pose(model.body_ipos[number], rotation(model.body_iquat[number]))
    if element == source.kind("Obj", "mjOBJ_XBODY"):
        return number, Pose()
    if element == source.kind("Obj", "mjOBJ_GEOM"):
        return int(model.geom_bodyid[number]), Pose(model.geom_pos[number], rotation(model.geom_quat[number]))
    return None
