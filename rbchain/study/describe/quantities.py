"""Quantities of measures: their values at the times of a motion, their units, and the drives that they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...acting.actuators import Actuator
from ...acting.coordinates import dof_index, joint_index, joints_of_dofs
from ...acting.drives import PID, ComputedTorque, PrescribedForce
from ...acting.events import EventRecord
from ...acting.numeric_fields import Drive
from ...acting.sampled import Sampled, controller_of
from ...acting.signals import as_signal
from ...acting.user_forces import UserForces
from ...common.misspelled import did_you_mean
from ...errors import StudyError
from ...facade.model import Model
from ...model.constraints import CouplerConstraint
from ...simulate.trajectory import Trajectory
from . import responses
from .at_rest import AtRest

if TYPE_CHECKING:
    from .measures import Measure


class Case(NamedTuple):
    """A measure of a motion, with the simulated model and its drives."""

    measure: Measure
    model: Model
    motion: Trajectory
    drives: Sequence[Drive] = ()

    @property
    def dof(self) -> int:
        """Index of the degree of freedom of the measure."""
        return dof_of(self.measure, self.model)

    @property
    def energy(self) -> np.ndarray:
        """Kinetic, potential and elastic energy at the times of the motion, (..., times)."""
        kinetic, potential = self.motion.model_of_states.energy(self.motion.q, self.motion.qd)
        return kinetic + potential + self.motion.elastic_energy


def dof_of(measure: Measure, model: Model) -> int:
    """Return the index of the degree of freedom of a measure. Raises ArgumentError if the model does not have it."""
    return dof_index(model, f"Measure {measure.name!r}", measure.joint, measure.dof)


class Quantity(NamedTuple):
    """A quantity: its values at the times of a motion, its SI unit, and its unit for a degree of freedom that turns."""

    values: Callable[[Case], Any]
    unit: str = ""
    angular_unit: str = ""

    def unit_of(self, measure: Measure, model: Model) -> str:
        """Return the SI unit of the quantity of a measure."""
        is_angular = self.angular_unit and model.dof_types[dof_of(measure, model)] != "prismatic"
        return self.angular_unit if is_angular else self.unit


def quantity_of(case: Case) -> np.ndarray:
    """Return the quantity of a measure at the times of a motion, (..., times); the energy for an "energy_drift"."""
    return case.energy if case.measure.quantity == "energy_drift" else QUANTITIES[case.measure.quantity].values(case)


def _points(case: Case) -> np.ndarray:
    """Return the origin of the frame of a measure, (..., times, 3)."""
    frame, model, q = case.measure.frame, case.motion.model_of_states, case.motion.q
    if frame in model.body_names:
        return model.body_poses(q).translation[..., model.body_names.index(frame), :]
    return model.frame_poses(q, frame).translation  # type: ignore[arg-type]


def _distance(case: Case) -> np.ndarray:
    return np.linalg.norm(_points(case) - case.measure.point, axis=-1)


def _distance_to_plane(case: Case) -> np.ndarray:
    normal = np.array(case.measure.normal)
    return (_points(case) - case.measure.point) @ (normal / np.linalg.norm(normal))


def _speed(case: Case) -> np.ndarray:
    J = case.motion.model_of_states.jacobian(case.motion.q, case.measure.frame)  # type: ignore[arg-type]
    return np.linalg.norm((J[..., :3, :] @ case.motion.qd[..., None])[..., 0], axis=-1)


def _position(case: Case) -> np.ndarray:
    return case.model.difference(case.model.neutral(), case.motion.q)[..., case.dof]


def _tracking_error(case: Case) -> np.ndarray:
    reference = tracking_drive(case.measure, case.model, case.drives).reference
    t = np.fmin(case.motion.t, case.motion.end_time[..., None])  # the error counts as constant afterwards
    return _position(case) - as_signal("reference", reference)(t)


def _power(case: Case) -> np.ndarray:
    powers = case.motion.tau * case.motion.qd
    return powers.sum(-1) if case.measure.joint is None else powers[..., case.dof]


def _reaction(case: Case, part: slice) -> np.ndarray:
    """Return the magnitude of the force or of the moment that a joint transmits."""
    joint = joint_index(case.model, f"Measure {case.measure.name!r}", case.measure.joint)
    return np.linalg.norm(case.motion.reactions[..., joint, part], axis=-1)


def _constraint_force(case: Case) -> np.ndarray:
    """Return the magnitude of the force or of the moment of a constraint."""
    rows = rows_of_constraint(case.measure, case.model)
    return np.linalg.norm(case.motion.constraint_forces[..., rows], axis=-1)


def rows_of_constraint(measure: Measure, model: Model) -> np.ndarray:
    """Return the indices of the multipliers that are forces, or moments, of the constraint of a measure.

    Raises StudyError if the model does not have the constraint, or if the constraint transmits none.
    """
    names, wants_forces = model.constraint_names, measure.quantity == "constraint_force"
    if measure.constraint not in names:
        raise StudyError(
            f"constraint is {measure.constraint!r}; expected a constraint of model {model.name!r}: {list(names)}"
            f"{did_you_mean(str(measure.constraint), names)}"
        )
    place = model.description.constraints[names.index(measure.constraint)]
    rows = np.flatnonzero(np.array(model.constraint_names_of_rows) == measure.constraint)
    if place.kind == CouplerConstraint.kind:
        has_forces = model.dof_types[model.velocity_index[place.body_b]] == "prismatic"
        found = rows if has_forces == wants_forces else rows[:0]
    else:
        found = rows[:3] if wants_forces else rows[3:]
    if not found.size:
        other = "constraint_moment" if wants_forces else "constraint_force"
        raise StudyError(
            f"quantity is {measure.quantity!r}, but the {place.kind} constraint {measure.constraint!r} transmits no "
            f"{'force' if wants_forces else 'moment'}; expected {other!r}"
        )
    return found


def _kinetic_energy(case: Case) -> np.ndarray:
    return case.motion.model_of_states.energy(case.motion.q, case.motion.qd)[0]


def _potential_energy(case: Case) -> np.ndarray:
    return case.motion.model_of_states.energy(case.motion.q, case.motion.qd)[1] + case.motion.elastic_energy


def _energy_drift(case: Case) -> np.ndarray:
    energy = case.energy
    return energy - energy[..., :1]


def _at_rest(case: Case) -> np.ndarray:
    return AtRest(case.motion).values(case.measure)


def _event_time(case: Case) -> np.ndarray:
    return first_occurrence(case.measure, case.motion).t[..., 0]


def first_occurrence(measure: Measure, motion: Trajectory) -> EventRecord:
    """Return the record of the event of a measure. Raises StudyError if the trajectory has no such event."""
    if not isinstance(measure.event, int) or measure.event >= len(motion.events):
        raise StudyError(
            f"event is {measure.event!r}, and the trajectory has {len(motion.events)} events; expected the number "
            "of an event, counted from 0. Only a study knows the names of events"
        )
    return motion.events[measure.event]


QUANTITIES = {
    "distance": Quantity(_distance, "m"),
    "distance_to_plane": Quantity(_distance_to_plane, "m"),
    "coordinate": Quantity(lambda case: _points(case)[..., "xyz".index(case.measure.axis)], "m"),
    "speed": Quantity(_speed, "m/s"),
    "position": Quantity(_position, "m", "rad"),
    "velocity": Quantity(lambda case: case.motion.qd[..., case.dof], "m/s", "rad/s"),
    "torque": Quantity(lambda case: case.motion.tau[..., case.dof], "N", "N m"),
    "tracking_error": Quantity(_tracking_error, "m", "rad"),
    "power": Quantity(_power, "W"),
    "reaction_force": Quantity(lambda case: _reaction(case, slice(0, 3)), "N"),
    "reaction_moment": Quantity(lambda case: _reaction(case, slice(3, 6)), "N m"),
    "constraint_force": Quantity(_constraint_force, "N"),
    "constraint_moment": Quantity(_constraint_force, "N m"),
    "kinetic_energy": Quantity(_kinetic_energy, "J"),
    "potential_energy": Quantity(_potential_energy, "J"),
    "energy": Quantity(lambda case: case.energy, "J"),
    "energy_drift": Quantity(_energy_drift, "J"),
    "energy_error": Quantity(lambda case: case.motion.energy_error, "J"),
    "frequency": Quantity(_at_rest, "Hz"),
    "damping_ratio": Quantity(_at_rest),
    "gain_margin": Quantity(_at_rest),
    "equilibrium": Quantity(_at_rest, "m", "rad"),
    "event_time": Quantity(_event_time, "s"),
    "function": Quantity(lambda case: case.measure.function(case.model, case.motion)),
}


def largest_output(measure: Measure, model: Model, drives: Sequence[Drive]) -> np.ndarray:
    """Return the largest torque of the drive of the degree of freedom, of each sample or of all."""
    drive = limited_drive(measure, model, drives)
    resolution = [x.resolution for x in drives if isinstance(x, Sampled) and x.controller is drive]
    return responses.largest_output(drive.limit, resolution[0] if resolution else 0.0)


def limited_drive(measure: Measure, model: Model, drives: Sequence[Drive]) -> Any:
    """Return the drive of the degree of freedom, which has a limit.

    Raises StudyError if there is none, or if its force is not the whole torque.
    """
    dof = dof_of(measure, model)
    for drive in drives:
        if isinstance(drive, Actuator) and dof_index(model, "Actuator", drive.joint, drive.dof) == dof:
            raise StudyError(
                f"over is 'time_in_saturation', but joint {measure.joint!r} has an Actuator, whose torque differs "
                "from the command of the drive; expected a joint without one. Use 'time_above' with a threshold of "
                "the motor"
            )
    if any(_is_function_on(drive, model, dof) for drive in drives):
        raise StudyError(
            f"over is 'time_in_saturation', but UserForces may act on joint {measure.joint!r}, whose torque is the sum "
            "of all forces; expected only a drive with a limit. Use 'time_above' with a limit for the sum"
        )
    return _drive(measure, model, drives, (PID, ComputedTorque, PrescribedForce), "a limit")


def _is_function_on(drive: Drive, model: Model, dof: int) -> bool:
    """Whether a drive is a user function that may give a force to a degree of freedom."""
    if not isinstance(controller_of(drive), UserForces):
        return False
    if not isinstance(drive, Sampled):
        return True
    [joint] = joints_of_dofs(model, dof)
    return drive.outputs in ("force", ["force"], ("force",)) and (drive.joints is None or joint in drive.joints)


def tracking_drive(measure: Measure, model: Model, drives: Sequence[Drive]) -> Any:
    """Return the drive of the degree of freedom, which follows a reference. Raises StudyError if there is none."""
    drive = _drive(measure, model, drives, (PID, ComputedTorque), "a reference")
    if isinstance(drive.reference, str):
        raise StudyError(
            f"quantity is 'tracking_error', but the {type(drive).__name__} of joint {measure.joint!r} follows the "
            f"{drive.reference!r} of a user function, which is not stored; expected a drive with a number or a "
            "Signal as reference. Use the quantity 'position', or your own function"
        )
    return drive


def _drive(measure: Measure, model: Model, drives: Sequence[Drive], kinds: tuple[type, ...], expected: str) -> Any:
    """Return the drive of the degree of freedom, or the controller inside it. Raises StudyError unless there is one."""
    dof = dof_of(measure, model)
    inner = [drive for drive in map(controller_of, drives) if type(drive) in kinds]
    found = [drive for drive in inner if dof_index(model, "drive", drive.joint, drive.dof) == dof]
    if len(found) == 1:
        return found[0]
    names = " or ".join(kind.__name__ for kind in kinds)
    if found:
        raise StudyError(
            f"joint {measure.joint!r} has {len(found)} drives with {expected}, so this measure is ambiguous; expected "
            f"one {names} among the drives"
        )
    raise StudyError(
        f"joint {measure.joint!r} has no drive with {expected}, which this measure needs; expected a {names} among "
        "the drives"
    )
