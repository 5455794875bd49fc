"""What a study keeps of each motion: one number, found from something over time."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from ..actions.wrenches import Force, Wrench
from ..chain import Model
from ..errors import StudyError
from ..trajectory import Trajectory
from .numbers import Described, real_numbers

LONGEST_NAME = 200  # bytes: results are in a folder of that name

#: What is asked of a series of numbers over time.
OVER = {
    "final": lambda x: x[..., -1],
    "max": lambda x: x.max(-1),
    "min": lambda x: x.min(-1),
    "mean": lambda x: x.mean(-1),
    "rms": lambda x: np.sqrt((x * x).mean(-1)),
}


def extended(series: np.ndarray) -> np.ndarray:
    """Series (samples, times) in which the last number goes on where a sample has ended."""
    last = np.maximum(np.isfinite(series).cumsum(-1).argmax(-1), 0)
    times = np.minimum(np.arange(series.shape[-1]), last[:, None])
    return np.take_along_axis(series, times, -1)


class Measure(Described):
    """A number of each sample's motion.

    Parameters
    ----------
    name : str
    quantity : what is measured
        "distance": of `frame` (a body or fixed frame) from `target` (3,) m; "coordinate": x, y or z of a frame,
        `axis`; "speed": of a frame's origin; "position", "velocity", "torque": of a `joint`, its `dof`;
        "reaction_force", "reaction_moment": how large what the joint's bearing transmits is; "kinetic_energy",
        "potential_energy", "energy"; "energy_drift": how far the energy has gone from its first value; or
        "function".
    over : "final", "max", "min", "mean" or "rms"
        Over the times looked at, of which `Simulation.samples` says how many there are; after an event has stopped a
        sample, it counts as staying as it was. "peak" is the largest magnitude.
    function : callable(model, motion), or "module:name"
        Numbers (samples,) or (samples, times) from the model of these samples and their `Trajectory`.
    unit : str
        For the plots.
    """

    renamed: ClassVar[Mapping[str, str]] = {"of": "quantity"}

    name: str
    quantity: Literal[
        "distance",
        "coordinate",
        "speed",
        "position",
        "velocity",
        "torque",
        "reaction_force",
        "reaction_moment",
        "kinetic_energy",
        "potential_energy",
        "energy",
        "energy_drift",
        "function",
    ]
    over: Literal["final", "max", "min", "mean", "rms", "peak"] = "final"
    frame: str | None = None
    joint: str | None = None
    dof: int = 0
    axis: Literal["x", "y", "z"] = "x"
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    function: Any = None
    unit: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not re.fullmatch(r"[^/\\.\x00-\x1f][^/\\\x00-\x1f]*", self.name) or len(self.name.encode()) > LONGEST_NAME:
            raise ValueError(
                f"name is {self.name!r}; expected the name of a folder: up to {LONGEST_NAME} bytes, no dot in front, "
                "no slash, backslash or control character"
            )
        for key, kinds in (
            ("frame", ("distance", "coordinate", "speed")),
            ("joint", ("position", "velocity", "torque", "reaction_force", "reaction_moment")),
            ("function", ("function",)),
        ):
            if (getattr(self, key) is None) == (self.quantity in kinds):
                found = "needs" if self.quantity in kinds else "has no use for"
                raise ValueError(f"{self.quantity!r} {found} {key}")
        return self

    def units_in(self, model: Model) -> str:
        """As given, or what this is measured in."""
        angular = self.joint is not None and model.dof_types[self._dof(model)] != "prismatic"
        of_joints = {"position": ("m", "rad"), "velocity": ("m/s", "rad/s"), "torque": ("N", "N m")}
        if self.quantity in of_joints:
            return self.unit or of_joints[self.quantity][angular]
        of_others = {
            "distance": "m",
            "coordinate": "m",
            "speed": "m/s",
            "reaction_force": "N",
            "reaction_moment": "N m",
        }
        return self.unit or of_others.get(self.quantity, "J" if "energy" in self.quantity else "")

    def check(self, model: Model, forces: Sequence[Force]) -> None:
        """A StudyError where the model has not what this is of."""
        if self.frame is not None and self.frame not in (*model.body_names, *model.fixed_frames):
            names = [*model.body_names, *model.fixed_frames]
            raise StudyError(f"frame is {self.frame!r}; expected a body or a fixed frame of {model.name!r}: {names}")
        if self.joint is not None:
            if self.joint not in model.joint_names:
                raise StudyError(f"joint is {self.joint!r}; expected one of {list(model.joint_names)}")
            count = np.diff([*model.velocity_index, model.nv])[model.joint_names.index(self.joint)]
            if not 0 <= self.dof < count:
                raise StudyError(f"dof is {self.dof}; joint {self.joint!r} has {count}, counted from 0")
        if self.quantity.startswith("reaction") and (model.in_water or any(isinstance(f, Wrench) for f in forces)):
            raise StudyError(
                f"quantity is {self.quantity!r}; rbchain computes reactions only in air and without a Wrench"
            )

    def values(self, model: Model, motion: Trajectory) -> np.ndarray:
        """The number of each sample (samples,)."""
        series = real_numbers("the result of its function", getattr(self, f"_{self.quantity}")(model, motion))
        samples, times = motion.qd.shape[:2]
        if series.shape not in ((samples,), (samples, times)):
            raise StudyError(
                f"its function returned shape {series.shape}; expected one number for each sample, ({samples},), or "
                f"one for each sample and time, ({samples}, {times})"
            )
        if series.ndim == 1:
            return series
        series = extended(series)
        if self.over == "peak":
            return np.abs(series).max(-1)
        return OVER[self.over](series)

    def _poses(self, model: Model, motion: Trajectory) -> np.ndarray:
        if self.frame in model.body_names:
            return model.body_poses(motion.q).translation[..., model.body_names.index(self.frame), :]
        return model.frame_poses(motion.q, self.frame).translation  # type: ignore[arg-type]

    def _distance(self, model: Model, motion: Trajectory) -> np.ndarray:
        return np.linalg.norm(self._poses(model, motion) - self.target, axis=-1)

    def _coordinate(self, model: Model, motion: Trajectory) -> np.ndarray:
        return self._poses(model, motion)[..., "xyz".index(self.axis)]

    def _speed(self, model: Model, motion: Trajectory) -> np.ndarray:
        J = model.jacobian(motion.q, self.frame)  # type: ignore[arg-type]
        return np.linalg.norm((J[..., :3, :] @ motion.qd[..., None])[..., 0], axis=-1)

    def _dof(self, model: Model) -> int:
        return int(model.velocity_index[model.joint_names.index(self.joint)]) + self.dof

    def _position(self, model: Model, motion: Trajectory) -> np.ndarray:
        return model.difference(model.neutral(), motion.q)[..., self._dof(model)]

    def _velocity(self, model: Model, motion: Trajectory) -> np.ndarray:
        return motion.qd[..., self._dof(model)]

    def _torque(self, model: Model, motion: Trajectory) -> np.ndarray:
        return motion.tau[..., self._dof(model)]

    def _reaction(self, model: Model, motion: Trajectory, part: slice) -> np.ndarray:
        joint = model.joint_names.index(self.joint)
        return np.linalg.norm(model.joint_reactions(motion.q, motion.qd, motion.qdd)[..., joint, part], axis=-1)

    def _reaction_force(self, model: Model, motion: Trajectory) -> np.ndarray:
        return self._reaction(model, motion, slice(0, 3))

    def _reaction_moment(self, model: Model, motion: Trajectory) -> np.ndarray:
        return self._reaction(model, motion, slice(3, 6))

    def _kinetic_energy(self, model: Model, motion: Trajectory) -> np.ndarray:
        return model.energy(motion.q, motion.qd)[0]

    def _potential_energy(self, model: Model, motion: Trajectory) -> np.ndarray:
        return model.energy(motion.q, motion.qd)[1]

    def _energy(self, model: Model, motion: Trajectory) -> np.ndarray:
        kinetic, potential = model.energy(motion.q, motion.qd)
        return kinetic + potential

    def _energy_drift(self, model: Model, motion: Trajectory) -> np.ndarray:
        energy = self._energy(model, motion)
        return energy - energy[..., :1]

    def _function(self, model: Model, motion: Trajectory) -> Any:
        return self.function(model, motion)
