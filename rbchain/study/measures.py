"""Measures: numbers that a study computes from the motion of each sample."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from ..actions.wrenches import Current, Force
from ..chain import Model
from ..errors import StudyError
from ..misspelt import did_you_mean
from ..trajectory import Trajectory
from .numbers import Described, real_numbers

LONGEST_NAME = 200  # bytes; the results of a measure are in a folder of its name

#: Reductions of a series (samples, times) over time.
OVER = {
    "final": lambda x: x[..., -1],
    "max": lambda x: x.max(-1),
    "min": lambda x: x.min(-1),
    "mean": lambda x: x.mean(-1),
    "rms": lambda x: np.sqrt((x * x).mean(-1)),
}


def extended(series: np.ndarray) -> np.ndarray:
    """Return the series (samples, times) with the last finite number repeated to the end of each sample."""
    last = np.maximum(np.isfinite(series).cumsum(-1).argmax(-1), 0)
    times = np.minimum(np.arange(series.shape[-1]), last[:, None])
    return np.take_along_axis(series, times, -1)


class Measure(Described):
    """A number that a study computes from the motion of each sample.

    Parameters
    ----------
    name : str
        Name in the results.
    quantity : str
        * "distance" of the origin of `frame` from the point `target`, in m
        * "coordinate" of the origin of `frame` along the world's `axis`, in m
        * "speed" of the origin of `frame`, in m/s
        * "position", "velocity" and actuator "torque" of the degree of freedom `dof` of `joint`, in rad, rad/s and N m
          or in m, m/s and N
        * "reaction_force", "reaction_moment": magnitude of the force or moment that `joint` transmits, in N or N m
        * "kinetic_energy", "potential_energy" (of gravity, and of springs and bushings between bodies), and their sum
          "energy", in J
        * "energy_drift": the energy minus its initial value, in J
        * "function": the result of `function`
    over : "final", "max", "min", "mean", "rms" or "peak"
        Reduction over the evaluated times (`Simulation.samples`): the final value (default), maximum, minimum, mean,
        root mean square, or largest magnitude. If an event stops a sample, its state counts as constant afterwards.
    frame : str
        Name of a body or of a fixed frame.
    joint : str
        Name of a joint.
    dof : int
        Degree of freedom of the joint, counted from 0.
    axis : "x", "y" or "z"
        Axis of a coordinate.
    target : (3,) array, m
        Point in world axes; the origin by default.
    function : callable(model, motion) or str
        A function, or its place as "module:name". It receives the model of some samples and their `Trajectory`, and
        returns numbers (samples,), or (samples, times) to be reduced by `over`.
    unit : str
        Unit that replaces the one above in results and plots.

    Examples
    --------
    >>> from rbchain.study import Measure
    >>> Measure(name="peak speed", quantity="speed", frame="link2", over="max").over
    'max'
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
    def _check_keys(self) -> Self:
        if not re.fullmatch(r"[^/\\.\x00-\x1f][^/\\\x00-\x1f]*", self.name) or len(self.name.encode()) > LONGEST_NAME:
            raise ValueError(
                f"name is {self.name!r}; expected a name that a folder can have: up to {LONGEST_NAME} bytes, without "
                "slashes, backslashes, control characters and a dot at the beginning"
            )
        for key, kinds in (
            ("frame", ("distance", "coordinate", "speed")),
            ("joint", ("position", "velocity", "torque", "reaction_force", "reaction_moment")),
            ("function", ("function",)),
        ):
            if (getattr(self, key) is None) == (self.quantity in kinds):
                wrong = f"is missing; the quantity {self.quantity!r} needs it"
                if self.quantity not in kinds:
                    wrong = f"is {getattr(self, key)!r}, but the quantity {self.quantity!r} does not use it; remove it"
                raise ValueError(f"{key} {wrong}")
        return self

    def units_in(self, model: Model) -> str:
        """Return the unit: the given one, or that of the quantity."""
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
        """Raise a StudyError if the measure does not fit the model or the forces."""
        if self.frame is not None and self.frame not in (*model.body_names, *model.fixed_frames):
            names = [*model.body_names, *model.fixed_frames]
            raise StudyError(
                f"frame is {self.frame!r}; expected a body or a fixed frame of model {model.name!r}: {names}"
                f"{did_you_mean(self.frame, names)}"
            )
        if self.joint is not None:
            if self.joint not in model.joint_names:
                raise StudyError(
                    f"joint is {self.joint!r}; expected a joint of model {model.name!r}: {list(model.joint_names)}"
                    f"{did_you_mean(self.joint, model.joint_names)}"
                )
            count = np.diff([*model.velocity_index, model.nv])[model.joint_names.index(self.joint)]
            if not 0 <= self.dof < count:
                raise StudyError(
                    f"dof is {self.dof}; expected a whole number from 0 to {count - 1}, because joint {self.joint!r} "
                    f"has {count} degree{'s' if count > 1 else ''} of freedom"
                )
        if self.quantity.startswith("reaction") and (model.in_water or not all(isinstance(f, Current) for f in forces)):
            raise StudyError(
                f"quantity is {self.quantity!r}, but the study has bodies in water, or forces such as a Wrench; "
                "rbchain computes reactions only without them. Remove the measure, or the water and the forces"
            )

    def values(self, model: Model, motion: Trajectory) -> np.ndarray:
        """Return the number of each sample (samples,)."""
        series = real_numbers("the result of the function", getattr(self, f"_{self.quantity}")(model, motion))
        samples, times = motion.qd.shape[:2]
        if series.shape not in ((samples,), (samples, times)):
            raise StudyError(
                f"the function returned an array of shape {series.shape}; expected ({samples},), one number for each "
                f"sample, or ({samples}, {times}), one for each sample and time"
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
        reactions = model.joint_reactions(motion.q, motion.qd, motion.qdd, tau=motion.joint_forces)
        return np.linalg.norm(reactions[..., joint, part], axis=-1)

    def _reaction_force(self, model: Model, motion: Trajectory) -> np.ndarray:
        return self._reaction(model, motion, slice(0, 3))

    def _reaction_moment(self, model: Model, motion: Trajectory) -> np.ndarray:
        return self._reaction(model, motion, slice(3, 6))

    def _kinetic_energy(self, model: Model, motion: Trajectory) -> np.ndarray:
        return model.energy(motion.q, motion.qd)[0]

    def _potential_energy(self, model: Model, motion: Trajectory) -> np.ndarray:
        return model.energy(motion.q, motion.qd)[1] + motion.elastic_energy

    def _energy(self, model: Model, motion: Trajectory) -> np.ndarray:
        kinetic, potential = model.energy(motion.q, motion.qd)
        return kinetic + potential + motion.elastic_energy

    def _energy_drift(self, model: Model, motion: Trajectory) -> np.ndarray:
        energy = self._energy(model, motion)
        return energy - energy[..., :1]

    def _function(self, model: Model, motion: Trajectory) -> Any:
        return self.function(model, motion)
