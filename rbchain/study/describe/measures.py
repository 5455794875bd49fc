"""Measures: numbers that a study computes from the trajectory of each sample."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from ...acting.contacts import NAMES_OF_CONTACTS, is_contact
from ...acting.events import Event
from ...acting.numeric_fields import Drive, Force
from ...common.misspelled import did_you_mean
from ...errors import ArgumentError, StudyError
from ...facade.model import Model
from ...simulate.trajectory import Trajectory
from . import measure_units
from .in_steps import Steps
from .kinds_of_quantities import OF_BEARINGS, OF_EQUILIBRIA, OF_REACTIONS
from .measure_keys import check_keys
from .numbers import Described
from .quantities import QUANTITIES, Case, dof_of, limited_drive, rows_of_constraint, tracking_drive
from .reductions import AT_TIMES, OF_FORCES, reduced, reduced_in_steps

#: Words for a measure that depends on the saved times.
AT_SAVED_TIMES = "at the saved times"
DURATIONS = ("settling_time", "rise_time", "time_above", "time_in_saturation")
#: Units of the integral over time, where "s" is not simply appended.
INTEGRATED = {"W": "J", "m/s": "m", "rad/s": "rad", "": "s"}

Quantity = Literal[
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
    "constraint_force",
    "constraint_moment",
    "kinetic_energy",
    "potential_energy",
    "energy",
    "energy_drift",
    "energy_error",
    "frequency",
    "damping_ratio",
    "gain_margin",
    "equilibrium",
    "event_time",
    "function",
]
Reduction = Literal[
    "final",
    "at_event",
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
]


class Measure(Described):
    """A scalar that a study computes from the trajectory of each sample.

    Parameters
    ----------
    name : str
        Name in the results.
    quantity : str
        * "distance" of the origin of `frame` from `point`, in m
        * "distance_to_plane": distance of the origin of `frame` from the plane through `point` with the normal vector
          `normal`, in m; positive on the side to which the normal points
        * "coordinate" of the origin of `frame` along the world's `axis`, in m
        * "speed" of the origin of `frame`, in m/s. The origin of a body is a point of its joint axis, so the speed of
          the first body of an arm is 0. For another point of a body, add a fixed frame there
        * "position", "velocity" and actuator "torque" of the degree of freedom `dof` of `joint`, in rad, rad/s and N m
          or in m, m/s and N
        * "tracking_error": position of the degree of freedom minus the reference of its `PID` or `ComputedTorque`, of
          which it must have one
        * "power" of the actuator of the degree of freedom, in W; of all actuators if `joint` is not given
        * "reaction_force", "reaction_moment": magnitude of the force or moment that `joint` transmits, in N or N m, as
          in `Trajectory.reactions`. The moment is about the origin of the joint and contains the torque of the actuator
        * "constraint_force", "constraint_moment": magnitude of the force or moment of `constraint`, in N or N m, as in
          `Trajectory.constraint_forces`. In an overconstrained mechanism, it is the solution of minimum norm
        * "kinetic_energy", "potential_energy" (of gravity, and elastic energy), and their sum "energy", in J
        * "energy_drift": the energy minus its initial value, in J
        * "energy_error": the energy that the integration has gained (`Trajectory.energy_error`), in J. A study with
          this measure integrates the work of all forces, which takes more time
        * "equilibrium": position at rest of the degree of freedom `dof` of `joint`, in rad or m
        * "frequency" in Hz and "damping_ratio" of the small oscillations `mode` about the equilibrium
        * "gain_margin" of the feedback loop that is cut at the force of `joint`: a factor, as in `Model.margins`.
          Infinite if the gains may grow without limit; statistics omit infinite values, as they omit NaN
        * "event_time": time of the first occurrence of `event`, in s; NaN if it does not occur
        * "function": the result of `function`
    over : str
        Reduction over the whole trajectory. It does not depend on the saved times (`Simulation.save_at`), except for a
        "function" and an "energy_error". If an event stops a sample, its state is constant afterwards; integrals and
        durations end at the event.

        * "final" value (default), "max", "min", "mean", "rms" (root mean square), "peak" (largest magnitude),
          "peak_to_peak" (largest minus smallest value)
        * "at_event": value in the state at the first occurrence of `event`; NaN if it does not occur. Not of forces
        * "integral", "integral_of_magnitude", "integral_of_square" over time: the "integral" of "power" is the energy,
          and the "integral_of_square" of "torque" is a common measure of the control effort
        * "settling_time": time in s after which the quantity stays within `band` times its initial deviation from the
          value `step_to`; NaN if it is outside at the end. Statistics omit samples with NaN
        * "overshoot": how far the quantity passes `step_to`, relative to the initial deviation (0.1 means 10 %)
        * "rise_time": time in s from the first 10 % to the first 90 % of the step to `step_to`; NaN if 90 % are not
          reached
        * "time_above": time in s for which the quantity is above `threshold`, by more than 2e-10 of its largest value
        * "time_in_saturation": time in s for which the "torque" is at the limit of its drive, or at the limit rounded
          to the `resolution` of a `Sampled`. No other drive, `tau` or `Actuator` may act on the joint
    frame : str
        Name of a body or of a fixed frame.
    joint : str
        Name of a joint.
    constraint : str
        Name of a constraint of the model.
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several, except for reactions.
    mode : int
        Number of the mode in `Model.modes`, counted from 0 for the lowest frequency.
    event : int or str
        Number of an `Event` of the study, counted from 0, or its `name`.
    axis : "x", "y" or "z"
        Axis of a coordinate.
    point : (3,) array, m
        Point in world axes; the origin by default.
    normal : (3,) array
        Normal vector of a plane in world axes, of any length.
    step_to : float or str
        Final value of a step, in the SI unit of the quantity or with a unit, such as "30 deg". It is 0 for a
        "tracking_error".
    band : float
        Half of the width of the band of a "settling_time", relative to the step (0.02 by default).
    threshold : float or str
        Level of "time_above", in the SI unit of the quantity or with a unit, such as "5 deg/s".
    function : callable(model, motion) or str
        A function, or its place as "module:name". It receives the model of some samples and their `Trajectory`, and
        returns values (samples,), or (samples, times) to be reduced by `over`. `model[..., None]` accepts the saved
        states, as in `model[..., None].energy(motion.q, motion.qd)`.
    unit : str
        Unit of the results, such as "deg", "mm" or "kN". Results are converted from the units above. For a "function",
        it is the unit of the values that the function returns.

    Notes
    -----
    A study computes extremes, integrals and crossings of levels within the accepted steps, from their continuous
    extensions. The method of integration determines their error. They include the values at both ends of a step, so
    they do not miss a peak just after an impact. If a quantity with a corner crosses a level twice within a sixteenth
    of a step that has another crossing, both crossings may be missed.

    A "function" receives the trajectory at the saved times, so its reductions use the values at these times. Between
    these times, the quantity is assumed to be linear. The same applies to `values` of a trajectory without
    `dense_output`, except for "final" values of a sample that ended early. Final values are the values in its last
    state; for "torque", "power", reactions and forces of constraints, they are the values at the last saved time.

    "equilibrium", "frequency", "damping_ratio" and "gain_margin" are results of `Model.equilibrium`, `modes` and
    `margins`. The search starts from the last state of the trajectory, with all drives and forces at this time. The
    result is therefore the equilibrium at which a damped motion ends. The measure is NaN without an equilibrium, for a
    mode that the sample does not have, and for the margin of a loop that is not stable. Modes are sorted by frequency
    in each sample: where frequencies cross, `mode` refers to another shape. An overdamped mode counts as two.

    Examples
    --------
    >>> from rbchain.study import Measure
    >>> Measure("peak speed", "speed", frame="link2", over="max").over
    'max'

    A measure of a trajectory:

    >>> import numpy as np, rbchain as rb
    >>> arm = rb.Model.serial_chain(1)
    >>> motion = arm.simulate(np.zeros((2, 1)), duration=0.5, method="rk4", step=0.05, save_at=11)
    >>> fall = Measure("height", "coordinate", frame="link1", axis="y", over="min")
    >>> fall.values(arm, motion).shape
    (2,)
    """

    renamed: ClassVar[Mapping[str, str]] = {
        "of": "quantity",
        "reference": "step_to",
        "limit": "threshold",
        "target": "point",
    }
    internal_names: ClassVar[tuple[str, ...]] = (
        *(
            "check",
            "evaluated",
            "factor",
            "in_si",
            "is_at_event",
            "is_at_rest",
            "is_in_steps",
            "needs_steps",
            "reduced_in_steps",
            "units_in",
            "with_number_of_event",
        ),
        "values",
    )
    positional: ClassVar[tuple[str, ...]] = ("name", "quantity")

    name: str
    quantity: Quantity
    over: Reduction = "final"
    frame: str | None = None
    joint: str | None = None
    constraint: str | None = None
    dof: int | None = None
    mode: Annotated[int, Field(ge=0)] = 0
    event: Annotated[int, Field(ge=0)] | str | None = None
    axis: Literal["x", "y", "z"] = "x"
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    normal: tuple[float, float, float] | None = None
    step_to: float | str | None = None
    band: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.02
    threshold: float | str | None = None
    function: Any = None
    unit: str = ""

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            quantity: Quantity,
            *,
            over: Reduction = "final",
            frame: str | None = None,
            joint: str | None = None,
            constraint: str | None = None,
            dof: int | None = None,
            mode: int = 0,
            event: int | str | None = None,
            axis: Literal["x", "y", "z"] = "x",
            point: npt.ArrayLike = (0.0, 0.0, 0.0),
            normal: npt.ArrayLike | None = None,
            step_to: float | str | None = None,
            band: float = 0.02,
            threshold: float | str | None = None,
            function: Callable[[Model, Trajectory], npt.ArrayLike] | str | None = None,
            unit: str = "",
        ) -> None: ...

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        check_keys(self)
        return self

    def units_in(self, model: Model) -> str:
        """Return the unit: the given one, or the SI unit of the quantity and the reduction."""
        return self.unit or self._si_unit(model)

    def factor(self, model: Model) -> float:
        """Return the factor from the SI unit to the unit of the results. Raises StudyError if they do not fit.

        A function returns its values in the unit of the results.
        """
        has_own_unit = self.quantity == "function" and self.over not in (*DURATIONS, "overshoot")
        return 1.0 if has_own_unit or not self.unit else measure_units.factor(self.unit, self._si_unit(model))

    def in_si(self, key: str, model: Model) -> float:
        """Return `step_to` or the threshold in the SI unit of the quantity."""
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
        return QUANTITIES[self.quantity].unit_of(self, model)

    def check(
        self, model: Model, forces: Sequence[Force], drives: Sequence[Drive] = (), events: Sequence[Event] = ()
    ) -> None:
        """Raise a StudyError if the measure does not fit the model, the forces, the drives or the events."""
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
            if self.quantity not in OF_REACTIONS:
                try:
                    dof_of(self, model)
                except ArgumentError as error:
                    raise StudyError(str(error)) from None
        self.with_number_of_event(events)
        self.factor(model)
        for key in ("step_to", "threshold"):
            self.in_si(key, model)
        if self.quantity == "tracking_error":
            tracking_drive(self, model, drives)
        if self.over == "time_in_saturation":
            limited_drive(self, model, drives)
        if self.constraint is not None:
            rows_of_constraint(self, model)
        if self.quantity in OF_BEARINGS:
            acting = {type(force).__name__ for force in forces if is_contact(force)}
            found = (["bodies in water"] if model.in_water else []) + sorted(acting)
            if found:
                raise StudyError(
                    f"quantity is {self.quantity!r}, but the study has {', '.join(found)}; rbchain computes reactions "
                    f"and forces of constraints only without water and {NAMES_OF_CONTACTS}. Remove the measure, or "
                    "these"
                )

    def with_number_of_event(self, events: Sequence[Event]) -> Self:
        """Return the measure with the number of its event in place of its name. Raises StudyError if there is none."""
        if self.event is None:
            return self
        names = [event.name for event in events]
        number = names.index(self.event) if self.event in names else self.event
        if names.count(self.event) > 1:  # type: ignore[arg-type]
            raise StudyError(f"event is {self.event!r}, which is the name of several events; expected a number")
        if isinstance(number, str) or number >= len(events):
            known = [i if name is None else name for i, name in enumerate(names)]
            raise StudyError(f"event is {self.event!r}; expected an event of the study, by number or name: {known}")
        return self.model_copy(update={"event": number})

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
        return reduced(Case(self, model, motion, drives)) * self.factor(model)

    def needs_steps(self, events: Sequence[Event]) -> bool:
        """Whether a study needs the accepted steps, including for forces at an event that stops a sample."""
        return self.is_in_steps or (self.over == "final" and self.quantity in OF_FORCES and any(e.stop for e in events))

    @property
    def is_in_steps(self) -> bool:
        """Whether the measure follows from the steps of a trajectory, and so does not depend on the saved times.

        User functions receive the saved times only, and an "energy_error" is known at these times only.
        """
        return self.over not in ("final", "at_event") and self.quantity not in AT_TIMES

    @property
    def is_at_event(self) -> bool:
        """Whether the measure belongs to the first occurrence of an event."""
        return self.over == "at_event" or self.quantity == "event_time"

    @property
    def is_at_rest(self) -> bool:
        """Whether the measure belongs to the equilibrium near the end of the trajectory."""
        return self.quantity in OF_EQUILIBRIA

    @property
    def evaluated(self) -> str:
        """Words for the times that the measure depends on; none if it does not depend on the saved times."""
        return AT_SAVED_TIMES if self.quantity in AT_TIMES else ""

    def reduced_in_steps(self, steps: Steps, model: Model, motion: Trajectory, drives: Sequence[Drive]) -> np.ndarray:
        """Return the measure (...) of each sample from its quantity in the steps of a motion, as `values` does."""
        return reduced_in_steps(steps, Case(self, model, motion, drives)) * self.factor(model)
