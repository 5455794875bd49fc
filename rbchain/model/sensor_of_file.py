"""SensorOfFile: a sensor that a model file describes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from ..common.values import Value
from .pose import Pose

#: Kinds of sensors, and the units of their measurements.
UNITS = {
    "position": "rad or m",
    "velocity": "rad/s or m/s",
    "force of the actuators": "N m or N",
    "frame position": "m",
    "frame quaternion": "1",
    "frame linear velocity": "m/s",
    "frame angular velocity": "rad/s",
    "frame linear acceleration": "m/s^2",
    "frame angular acceleration": "rad/s^2",
    "velocimeter": "m/s",
    "gyroscope": "rad/s",
    "accelerometer": "m/s^2",
    "force": "N",
    "torque": "N m",
}
#: Kinds of sensors that measure the reaction between a body and its parent.
REACTIONS = ("force", "torque")


@dataclass(frozen=True, eq=False)
class SensorOfFile(Value):
    """A sensor of a joint or of a frame, as a model file describes it. `Model.sensors` computes its measurements.

    Attributes
    ----------
    kind : str
        A key of `UNITS`.
    joint : str
        Name of the joint of a sensor of a joint.
    dof : int
        Degree of freedom of the joint.
    body : str or None
        Name of the moving body that carries the frame of any other sensor; None for the world.
    pose : Pose
        Pose of the frame in the frame of the body.
    offset : float
        Number to add to a position: the position of the joint in the file at q = 0.
    cutoff : float
        Largest absolute value of the measurements.
    unit : str
        SI unit of the measurements.
    """

    kind: str
    _: KW_ONLY
    joint: str = ""
    dof: int = 0
    body: str | None = None
    pose: Pose = field(default_factory=Pose)
    offset: float = 0.0
    cutoff: float = np.inf

    @property
    def unit(self) -> str:
        """SI unit of the measurements."""
        return UNITS[self.kind]
