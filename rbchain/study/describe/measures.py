"""Measures: numbers that a study computes from the motion of each sample."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from ...acting.actuators import Actuator
from ...acting.coordinates import dof_index
from ...acting.drives import PID, ComputedTorque, PrescribedForce
from ...acting.events import Event
from ...acting.sampled import Drive, Sampled
from ...acting.signals import as_signal
from ...acting.wrenches import Current, Force
from ...common.misspelt import did_you_mean
from ...errors import StudyError
from ...facade.model import Model
from ...simulate.trajectory import Trajectory
from . import in_steps, measure_units, responses
from .in_steps import along
from .numbers import Described, real_numbers

SMALLEST = float(np.finfo(float).tiny)
#: Values that exceed a level by less than this share of the largest value are at the level: projections and the solver
#: of "moreau" hold bodies at stops to 1e-10 of their units.
ROUND_OFF_OF_LEVELS = 2e-10
LONGEST_NAME = 200  # bytes; the results of a measure are in a folder of its name

#: Reductions of a series (..., times) over time.
OVER = {
    "final": lambda x: x[..., -1],
    "max": lambda x: x.max(-1),
    "min": lambda x: x.min(-1),
    "mean": lambda x: x.mean(-1),
    "rms": lambda x: np.sqrt((x * x).mean(-1)),
    "peak": lambda x: np.abs(x).max(-1),
    "peak_to_peak": lambda x: x.max(-1) - x.min(-1),
}
#: The same of the extremes in the steps of a motion.
EXTREMES = {
    "max": in_steps.largest,
    "min": in_steps.smallest,
    "peak": lambda steps: in_steps.largest(steps.map(np.abs)),
    "peak_to_peak": lambda steps: in_steps.largest(steps) - in_steps.smallest(steps),
}
#: Words for a measure that depends on the saved times.
AT_SAVED_TIMES = "at the saved times"
#: Quantities that are known at the saved times only.
AT_TIMES = ("function", "energy_error")
#: Quantities that the last state of a sample does not determine, because they need the drives and the forces.
OF_FORCES = ("torque", "power", "reaction_force", "reaction_moment")
#: Quantities whose final value is computed from the last states only.
OF_FRAMES = ("distance", "coordinate", "speed")
#: Reductions that need the reference of a step.
OF_STEPS = ("settling_time", "overshoot", "rise_time")
DURATIONS = ("settling_time", "rise_time", "time_above", "time_in_saturation")
#: Units of the integral over time, where "s" is not simply appended.
INTEGRATED = {"W": "J", "m/s": "m", "rad/s": "rad", "": "s"}


def extended(series: np.ndarray) -> np.ndarray:
    """Return the series (..., times) with the last finite number repeated to the end of each sample."""
    last = np.maximum(np.isfinite(series).cumsum(-1).argmax(-1), 0)
    times = np.minimum(np.arange(series.shape[-1]), last[..., None])
    return np.take_along_axis(series, times, -1)


def _round_off(steps: in_steps.Steps, level: float) -> np.ndarray:
    """Return by how much the values of each sample may exceed a level on which they are."""
    return ROUND_OFF_OF_LEVELS * np.maximum(np.abs(steps.x).max((1, 2), initial=0.0), abs(level))


def _last_states(motion: Trajectory) -> Trajectory:
    """Return the last state of each sample as a motion of (..., 1) times, without actuator forces."""
    t, q, qd = motion.end_time[..., None], motion.end_q[..., None, :], motion.end_qd[..., None, :]
    counts = motion.status, motion.steps, motion.rejections, motion.evaluations
    return Trajectory(t, q, qd, *counts, model=motion.model, forces=motion.forces, end_time=motion.end_time)


class Measure(Described):
    """A number that a study computes from the motion of each sample.

    Parameters
    ----------
    name : str
        Name in the results.
    quantity : str
        * "distance" of the origin of `frame` from the point `target`, in m
        * "distance_to_plane": distance of the origin of `frame` from the plane through `target` with the normal vector
          `normal`, in m; positive on the side to which the normal points
        * "coordinate" of the origin of `frame` along the world's `axis`, in m
        * "speed" of the origin of `frame`, in m/s
        * "position", "velocity" and actuator "torque" of the degree of freedom `dof` of `joint`, in rad, rad/s and N m
          or in m, m/s and N
        * "tracking_error": position of the degree of freedom minus the reference of its `PID` or `ComputedTorque`
        * "power" of the actuator of the degree of freedom, in W; of all actuators if `joint` is not given
        * "reaction_force", "reaction_moment": magnitude of the force or moment that `joint` transmits, in N or N m
        * "kinetic_energy", "potential_energy" (of gravity, and elastic energy), and their sum "energy", in J
        * "energy_drift": the energy minus its initial value, in J
        * "energy_error": the energy that the integration has gained, `Trajectory.energy_error`, in J. A study with
          this measure integrates the work of all forces, which takes more time
        * "function": the result of `function`
    over : str
        Reduction over the whole motion. It does not depend on the saved times (`Simulation.samples`), except for a
        "function" and an "energy_error". If an event stops a sample, its state counts as constant afterwards; integrals
        and durations end there.

        * "final" value (default), "max", "min", "mean", "rms" (root mean square), "peak" (largest magnitude),
          "peak_to_peak" (largest minus smallest value)
        * "integral", "integral_of_magnitude", "integral_of_square" over time: the "integral" of "power" is the energy,
          and the "integral_of_square" of "torque" is a usual measure of the control effort
        * "settling_time": time in s after which the quantity stays within `band` times its initial deviation from the
          `reference`; NaN if it is outside at the end. Statistics leave samples with NaN out
        * "overshoot": how far the quantity passes the reference, relative to the initial deviation (0.1 means 10 %)
        * "rise_time": time in s from the first 10 % to the first 90 % of the step to the reference; NaN if 90 % are not
          reached
        * "time_above": time in s for which the quantity is above `limit`, by more than 2e-10 of its largest value
        * "time_in_saturation": time in s for which the "torque" is at the limit of its drive, or at the limit rounded
          to the `resolution` of a `Sampled`; not for joints with an `Actuator`
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
    normal : (3,) array
        Normal vector of a plane in world axes, of any length.
    reference : float or str
        Final value of a step, in the SI unit of the quantity or with a unit, such as "30 deg". It is 0 for a
        "tracking_error".
    band : float
        Half of the width of the band of a "settling_time", relative to the step (0.02 by default).
    limit : float or str
        Limit of "time_above", in the SI unit of the quantity or with a unit, such as "5 deg/s".
    function : callable(model, motion) or str
        A function, or its place as "module:name". It receives the model of some samples and their `Trajectory`, and
        returns numbers (samples,), or (samples, times) to be reduced by `over`.
    unit : str
        Unit of the results, such as "deg", "mm" or "kN". The numbers are converted from the units above. Of a
        "function", it is the unit in which the function returns its numbers.

    Notes
    -----
    A study computes extremes, integrals and crossings of levels within the accepted steps, from their continuous
    extensions. The method of integration determines their error. Values at both ends of a step count, so a peak just
    after an impact is found. If a quantity crosses a level twice within a sixteenth of a step, both crossings may be
    missed.

    A "function" receives the motion at the saved times, so its reductions use the values at these times. Between
    them, the series counts as linear. The same holds for `values` of a trajectory without `dense_output`, except for
    "final" values of a sample that ended early. They are the values in its last state, and of "torque", "power" and
    reactions the values at the last saved time.

    Examples
    --------
    >>> from rbchain.study import Measure
    >>> Measure(name="peak speed", quantity="speed", frame="link2", over="max").over
    'max'

    A measure of a trajectory:

    >>> import numpy as np, rbchain as rb
    >>> arm = rb.Model.serial_chain(1)
    >>> motion = arm.simulate(np.zeros((2, 1)), np.zeros((2, 1)), 0.5, method="rk4", step=0.05, save_at=11)
    >>> fall = Measure(name="height", quantity="coordinate", frame="link1", axis="y", over="min")
    >>> fall.values(arm, motion).shape
    (2,)
    """

    renamed: ClassVar[Mapping[str, str]] = {"of": "quantity"}

    name: str
    quantity: Literal[
        "distance",
        "distance_to_plane",
        "coordinate",
        "speed",
        "position",
        "velocity",
        "torque",
        "tracking_error",
        "power",
        "reaction_force",
        "reaction_moment",
        "kinetic_energy",
        "potential_energy",
        "energy",
        "energy_drift",
        "energy_error",
        "function",
    ]
    over: Literal[
        "final",
        "max",
        "min",
        "mean",
        "rms",
        "peak",
        "peak_to_peak",
        "integral",
        "integral_of_magnitude",
        "integral_of_square",
        "settling_time",
        "overshoot",
        "rise_time",
        "time_above",
        "time_in_saturation",
    ] = "final"
    frame: str | None = None
    joint: str | None = None
    dof: int = 0
    axis: Literal["x", "y", "z"] = "x"
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    normal: tuple[float, float, float] | None = None
    reference: float | str | None = None
    band: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.02
    limit: float | str | None = None
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
            ("frame", ("distance", "distance_to_plane", "coordinate", "speed")),
            ("joint", ("position", "velocity", "torque", "tracking_error", "reaction_force", "reaction_moment")),
            ("normal", ("distance_to_plane",)),
            ("function", ("function",)),
        ):
            if key == "joint" and self.quantity == "power":  # of one joint or of all
                continue
            if (getattr(self, key) is None) == (self.quantity in kinds):
                wrong = f"is missing; the quantity {self.quantity!r} needs it"
                if self.quantity not in kinds:
                    wrong = f"is {getattr(self, key)!r}, but the quantity {self.quantity!r} does not use it; remove it"
                raise ValueError(f"{key} {wrong}")
        for key, is_used in (
            ("dof", self.joint is not None and not self.quantity.startswith("reaction")),
            ("axis", self.quantity == "coordinate"),
            ("target", self.quantity in ("distance", "distance_to_plane")),
            ("band", self.over == "settling_time"),
        ):
            value = getattr(self, key)
            if value != type(self).model_fields[key].default and not is_used:
                used_by = f"over = {self.over!r}" if key == "band" else f"the quantity {self.quantity!r}"
                raise ValueError(f"{key} is {value!r}, but {used_by} does not use it; remove it")
        self._check_reduction()
        return self

    def _check_reduction(self) -> None:
        """Raise a ValueError if a key that the reduction needs is missing, or one that it does not use is given."""
        of_step = self.over in OF_STEPS and self.quantity != "tracking_error"
        for key, needed in (("reference", of_step), ("limit", self.over == "time_above")):
            if (getattr(self, key) is None) == needed:
                wrong = f"is missing; over = {self.over!r} needs it"
                if not needed:
                    wrong = f"is {getattr(self, key)!r}, but over = {self.over!r} of {self.quantity!r} does not use it"
                raise ValueError(f"{key} {wrong}")
        if self.over == "time_in_saturation" and self.quantity != "torque":
            raise ValueError(f"over is 'time_in_saturation', but quantity is {self.quantity!r}; expected 'torque'")
        if self.normal is not None and not np.any(self.normal):
            raise ValueError(f"normal is {list(self.normal)}; expected a vector other than zero")

    def units_in(self, model: Model) -> str:
        """Return the unit: the given one, or the SI unit of the quantity and the reduction."""
        return self.unit or self._si_unit(model)

    def factor(self, model: Model) -> float:
        """Return the factor from the SI unit to the unit of the results. Raises StudyError if they do not fit.

        A function returns its numbers in the unit of the results.
        """
        has_own_unit = self.quantity == "function" and self.over not in (*DURATIONS, "overshoot")
        return 1.0 if has_own_unit or not self.unit else measure_units.factor(self.unit, self._si_unit(model))

    def _in_si(self, key: str, model: Model) -> float:
        """Return the reference or the limit in the SI unit of the quantity."""
        return measure_units.number_in_si(key, getattr(self, key) or 0.0, self._unit_of_quantity(model))

    def _si_unit(self, model: Model) -> str:
        if self.over in DURATIONS:
            return "s"
        unit = self._unit_of_quantity(model)
        if self.over == "integral_of_square":
            return f"({unit})^2 s" if unit else "s"
        if self.over.startswith("integral"):
            return INTEGRATED.get(unit, f"{unit} s")
        return "" if self.over == "overshoot" else unit

    def _unit_of_quantity(self, model: Model) -> str:
        angular = self.joint is not None and model.dof_types[self._dof(model)] != "prismatic"
        of_joints = {"position": ("m", "rad"), "velocity": ("m/s", "rad/s"), "torque": ("N", "N m")}
        of_joints["tracking_error"] = of_joints["position"]
        if self.quantity in of_joints:
            return of_joints[self.quantity][angular]
        of_others = {
            "distance": "m",
            "distance_to_plane": "m",
            "coordinate": "m",
            "speed": "m/s",
            "power": "W",
            "reaction_force": "N",
            "reaction_moment": "N m",
        }
        return of_others.get(self.quantity, "J" if "energy" in self.quantity else "")

    def check(self, model: Model, forces: Sequence[Force], drives: Sequence[Drive] = ()) -> None:
        """Raise a StudyError if the measure does not fit the model, the forces or the drives."""
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
        self.factor(model)
        for key in ("reference", "limit"):
            self._in_si(key, model)
        if self.quantity == "tracking_error":
            self._tracking_drive(model, drives)
        if self.over == "time_in_saturation":
            self._limited_drive(model, drives)
        if self.quantity.startswith("reaction") and (model.in_water or not all(isinstance(f, Current) for f in forces)):
            raise StudyError(
                f"quantity is {self.quantity!r}, but the study has bodies in water, or forces such as a Wrench; "
                "rbchain computes reactions only without them. Remove the measure, or the water and the forces"
            )

    def values(self, model: Model, motion: Trajectory, drives: Sequence[Drive] = ()) -> np.ndarray:
        """Compute the measure of each sample of a trajectory.

        Parameters
        ----------
        model : Model
            The simulated model.
        motion : Trajectory
        drives : list
            Drives of the simulation. Only a "tracking_error" and a "time_in_saturation" need them.

        Returns
        -------
        (...) array
            In the unit of `units_in`.
        """
        return self._values_in_si(model, motion, drives) * self.factor(model)

    def _values_in_si(self, model: Model, motion: Trajectory, drives: Sequence[Drive] = ()) -> np.ndarray:
        if self.over == "final" and self.quantity in OF_FRAMES and motion.t.size > 1:
            end = replace(motion, t=motion.t[-1:], q=motion.q[..., -1:, :], qd=motion.qd[..., -1:, :])
            final = self._values_in_si(model, end)
            if np.isfinite(final).all():  # else a sample has ended earlier
                return final
        if self.is_in_steps and motion.dense_output is not None:
            steps = in_steps.in_steps(motion, [partial(self.quantity_of, model, drives=drives)])[0]
            return self._reduced_in_si(steps, model, motion, drives).reshape(motion.status.shape)
        series = real_numbers("the result of the function", self._series(model, motion, drives))
        batch, times = motion.status.shape, motion.t.size
        if series.shape not in (batch, (*batch, times)):
            raise StudyError(
                f"the function returned an array of shape {series.shape}; expected {batch}, one number for each "
                f"sample, or {(*batch, times)}, one for each sample and time"
            )
        if series.shape == batch:
            return series
        if self.over == "final" and self.quantity not in AT_TIMES:
            series = self._with_values_at_ends(series, model, motion, drives)
        series = extended(series)
        if self.over in OVER:
            return OVER[self.over](series)
        t = np.minimum(motion.t, motion.end_time[..., None])
        if self.over in OF_STEPS:
            band = (self.band,) if self.over == "settling_time" else ()
            return getattr(responses, self.over)(t, series, self._in_si("reference", model), *band)
        if self.over == "time_above":
            return responses.time_above(t, series, self._in_si("limit", model))
        if self.over == "time_in_saturation":
            return responses.time_in_saturation(t, series, self._largest_output(model, drives)[..., None])
        magnitudes = {"integral": series, "integral_of_magnitude": np.abs(series), "integral_of_square": series**2}
        return responses.integral(t, magnitudes[self.over])

    def _with_values_at_ends(
        self, series: np.ndarray, model: Model, motion: Trajectory, drives: Sequence[Drive]
    ) -> np.ndarray:
        """Return the series (..., times) with the value at the end of each sample that ended early as the last one."""
        is_missing = np.isnan(series[..., -1])
        if not is_missing.any() or (self.quantity in OF_FORCES and motion.dense_output is None):
            return series
        ends = in_steps.ends_of(motion) if self.quantity in OF_FORCES else _last_states(motion)
        x = self.quantity_of(model, ends, drives)[..., 0]
        if self.quantity == "energy_drift":
            x = x - self._energy(model, motion)[..., 0]
        last = np.where(is_missing, x, series[..., -1])
        return np.concatenate([series[..., :-1], last[..., None]], -1)

    def needs_steps(self, events: Sequence[Event]) -> bool:
        """Whether a study needs the accepted steps: also for forces in the state at an event that stops a sample."""
        return self.is_in_steps or (self.over == "final" and self.quantity in OF_FORCES and any(e.stop for e in events))

    @property
    def is_in_steps(self) -> bool:
        """Whether the steps of a motion determine the measure, so that it does not depend on the saved times.

        Functions of users receive the saved times only, and an "energy_error" is known at these times only.
        """
        return self.over != "final" and self.quantity not in AT_TIMES

    @property
    def evaluated(self) -> str:
        """Words for the times that the measure depends on; none if it does not depend on the saved times."""
        return AT_SAVED_TIMES if self.quantity in AT_TIMES else ""

    def reduced(self, steps: in_steps.Steps, model: Model, motion: Trajectory, drives: Sequence[Drive]) -> np.ndarray:
        """Return the measure (...) of each sample from its quantity in the steps of a motion, as `values` does."""
        found = self._reduced_in_si(steps, model, motion, drives)
        return found.reshape(motion.status.shape) * self.factor(model)

    def _reduced_in_si(
        self, steps: in_steps.Steps, model: Model, motion: Trajectory, drives: Sequence[Drive]
    ) -> np.ndarray:
        start = steps.x[:, 0, 0]
        if self.quantity == "energy_drift":
            steps = steps.map(lambda x: x - along(start, x))
        if self.over in OF_STEPS:
            return self._response(steps, start, self._in_si("reference", model))
        if self.over == "time_above":
            limit = self._in_si("limit", model)
            above = limit + _round_off(steps, limit)
            return in_steps.time_above_zero(steps.map(lambda x: x - along(above, x)))
        if self.over == "time_in_saturation":
            largest = np.broadcast_to(self._largest_output(model, drives), motion.status.shape)
            least = responses.SATURATED * largest.reshape(-1)
            return in_steps.time_above_zero(steps.map(lambda x: np.abs(x) - along(least, x) + SMALLEST))
        if self.over in EXTREMES:
            return EXTREMES[self.over](steps)
        if self.over in ("mean", "rms"):
            squares = steps.map(np.square) if self.over == "rms" else steps
            found = in_steps.mean(squares, in_steps.duration_of(motion))
            return np.sqrt(np.maximum(found, 0.0)) if self.over == "rms" else found
        functions = {"integral_of_magnitude": np.abs, "integral_of_square": np.square}
        return in_steps.integral(steps.map(functions[self.over]) if self.over in functions else steps)

    def _response(self, steps: in_steps.Steps, start: np.ndarray, reference: float) -> np.ndarray:
        """Return a settling time, overshoot or rise time of a step from the values at the start."""
        if self.over == "settling_time":
            band = self.band * np.abs(start - reference) + _round_off(steps, reference)
            outside = steps.map(lambda x: np.abs(x - reference) - along(band, x))
            found = in_steps.last_time(outside)
            return np.where(outside.end > 0.0, np.nan, np.where(np.isnan(found), steps.times[:, 0, 0], found))
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.over == "overshoot":
                beyond = steps.map(lambda x: (x - reference) / along(reference - start, x))
                return np.maximum(in_steps.largest(beyond), 0.0)
            progress = steps.map(lambda x: (x - along(start, x)) / along(reference - start, x))
            first, last = (in_steps.first_time(progress.map(partial(np.add, -level))) for level in (0.1, 0.9))
            return last - first

    def quantity_of(self, model: Model, motion: Trajectory, drives: Sequence[Drive]) -> np.ndarray:
        """Return the quantity at the times of a motion, (..., times); the energy itself for an "energy_drift"."""
        if self.quantity == "energy_drift":
            return self._energy(model, motion)
        return self._series(model, motion, drives)

    def _series(self, model: Model, motion: Trajectory, drives: Sequence[Drive]) -> np.ndarray:
        needed = (drives,) if self.quantity == "tracking_error" else ()
        return getattr(self, f"_{self.quantity}")(model, motion, *needed)

    def _largest_output(self, model: Model, drives: Sequence[Drive]) -> np.ndarray:
        """Return the largest torque of the drive of the degree of freedom, of each sample or of all."""
        drive = self._limited_drive(model, drives)
        resolution = [x.resolution for x in drives if isinstance(x, Sampled) and x.controller is drive]
        return responses.largest_output(drive.limit, resolution[0] if resolution else 0.0)

    def _drive(self, model: Model, drives: Sequence[Drive], kinds: tuple[type, ...], expected: str) -> Any:
        """Return the drive of the degree of freedom, or the controller inside it."""
        inner: list[Any] = [getattr(drive, "controller", drive) for drive in drives]
        for drive in inner:
            if type(drive) in kinds and dof_index(model, "drive", drive.joint, drive.dof) == self._dof(model):
                return drive
        names = " or ".join(kind.__name__ for kind in kinds)
        raise StudyError(
            f"joint {self.joint!r} has no drive with {expected}, which this measure needs; expected a {names} among "
            "the drives"
        )

    def _limited_drive(self, model: Model, drives: Sequence[Drive]) -> Any:
        for drive in drives:
            if isinstance(drive, Actuator) and dof_index(model, "Actuator", drive.joint, drive.dof) == self._dof(model):
                raise StudyError(
                    f"over is 'time_in_saturation', but joint {self.joint!r} has an Actuator, whose torque differs "
                    "from the command of the drive; expected a joint without one. Use 'time_above' with the limit of "
                    "the motor"
                )
        return self._drive(model, drives, (PID, ComputedTorque, PrescribedForce), "a limit")

    def _tracking_drive(self, model: Model, drives: Sequence[Drive]) -> Any:
        drive = self._drive(model, drives, (PID, ComputedTorque), "a reference")
        if isinstance(drive.reference, str):
            raise StudyError(
                f"quantity is 'tracking_error', but the {type(drive).__name__} of joint {self.joint!r} follows the "
                f"{drive.reference!r} of a user function, which is not stored; expected a drive with a number or a "
                "Signal as reference. Use the quantity 'position', or a function of your own"
            )
        return drive

    def _tracking_error(self, model: Model, motion: Trajectory, drives: Sequence[Drive]) -> np.ndarray:
        reference = self._tracking_drive(model, drives).reference
        t = np.fmin(motion.t, motion.end_time[..., None])  # the error counts as constant afterwards
        return self._position(model, motion) - as_signal("reference", reference)(t)

    def _power(self, model: Model, motion: Trajectory) -> np.ndarray:
        if self.joint is None:
            return (motion.tau * motion.qd).sum(-1)
        return self._torque(model, motion) * self._velocity(model, motion)

    def _distance_to_plane(self, model: Model, motion: Trajectory) -> np.ndarray:
        normal = np.array(self.normal)
        return (self._poses(model, motion) - self.target) @ (normal / np.linalg.norm(normal))

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

    def _energy_error(self, model: Model, motion: Trajectory) -> np.ndarray:
        return motion.energy_error

    def _function(self, model: Model, motion: Trajectory) -> Any:
        return self.function(model, motion)
