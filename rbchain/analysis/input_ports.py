"""The inputs of linear models: joint forces, numbers of `rbchain.Input`, references of drives, and wrenches.

The change of an input is a sum of unit changes of other numbers: a joint force, the force of a drive, an acceleration,
the rate of an integral, or a component of a wrench. The acceleration is one that a drive prescribes, or one for which a
controller computes a torque. Each unit change adds forces df to the right-hand side of M dqdd = df. M has a row of the
identity matrix for each degree of freedom with a prescribed acceleration.

With computed torque, let a be the degrees of freedom whose accelerations are inputs of the controllers' model, and o
the others. A change of a changes the accelerations of the others in this model, and so the torques:

    M_oo da_o = - M_oa da_a,   dF_i = M_i da  for each i with computed torque.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..acting.controllers import controllers_model
from ..acting.drive_table import PRESCRIBES_MOTION, new_table
from ..acting.drives import ONE_JOINT, PID, ComputedTorque, OneJointDrive, PrescribedAcceleration, PrescribedForce
from ..acting.inputs import Input
from ..acting.numeric_fields import fields_for_inputs
from ..acting.signals import as_signal, three_signals
from ..acting.wrenches import Current, Wrench
from ..common.misspelled import one_of
from ..common.real_arrays import FloatArray, excerpt
from ..core.control import drive_layout
from ..errors import ArgumentError
from .operating_points import Conditions, OperatingPoints
from .ports import dofs_of_joint, listed

GivenInput: TypeAlias = str | Input | tuple[str, int] | tuple[str, str] | tuple[str, str, int]

INPUT_OF_JOINT = "tau "
#: Inputs of controllers, with the order of the derivative of the reference.
REFERENCES = {"reference": 0, "reference_velocity": 1, "reference_acceleration": 2}
#: Wrenches in world axes at the origin of a frame, with their components and the names of these.
WRENCHES = {"force": range(3), "moment": range(3, 6), "wrench": range(6)}
OF_WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
EXPECTED = (
    "the name of a joint, a pair (joint, dof), an rb.Input, or a pair such as ('reference', joint) and ('force', frame)"
)


@dataclass(frozen=True)
class UnitChange:
    """A unit change of a value on which the motion depends.

    `index` is a degree of freedom, the column of a drive, the number of an integral, or the component of a wrench. A
    wrench acts at `point` (..., 3) of `frame`.
    """

    of: Literal["joint force", "drive force", "acceleration", "integral", "wrench"]
    index: int
    frame: str = ""
    point: npt.ArrayLike = (0.0, 0.0, 0.0)
    axes: Literal["world", "body"] = "world"


#: A unit change with its factor, a (samples,) or () array.
Change: TypeAlias = tuple[FloatArray, UnitChange]
ONE = np.ones(())


@dataclass(frozen=True)
class LinearInput:
    """One column of B: its name, and its unit changes with their factors."""

    name: str
    changes: tuple[Change, ...]


def inputs_of(conditions: Conditions, inputs: Sequence[GivenInput] | None) -> list[LinearInput]:
    """Return the inputs. Raises an ArgumentError for an input that the model, the drives and the forces do not have."""
    if inputs is None:
        dofs = np.flatnonzero(~PRESCRIBES_MOTION[conditions.kinds])
        return [_joint_force(conditions, int(i)) for i in dofs]
    found: list[LinearInput] = []
    for given in listed("inputs", inputs, "the names of joints"):
        for column in _columns(conditions, given):
            if column.name in (other.name for other in found):
                raise ArgumentError(f"inputs contains {excerpt(given)} twice; expected each input once")
            found.append(column)
    return found


def _columns(conditions: Conditions, given: Any) -> list[LinearInput]:
    """Return the columns of one input."""
    if isinstance(given, Input):
        return [_number(conditions, given.name)]
    parts = given if isinstance(given, tuple) else (given,)
    words = [part for part in parts if isinstance(part, str)]
    if len(words) == 1 and words[0] is parts[0] and len(parts) <= 2:
        return _joint_forces(conditions, *parts)
    if len(words) != 2 or words != [*parts[:2]] or len(parts) > 3:
        raise ArgumentError(f"inputs contains {excerpt(given)}; expected {EXPECTED}")
    quantity = one_of("the quantity of an input", parts[0], (*REFERENCES, *WRENCHES), ArgumentError)
    if quantity in REFERENCES:
        return [_reference(conditions, quantity, i) for i in dofs_of_joint(conditions.model, "inputs", *parts[1:])]
    if len(parts) == 3:
        raise ArgumentError(f"inputs contains {excerpt(given)}; expected ({quantity!r}, frame), without a dof")
    return _wrench(conditions, quantity, parts[1])


def _joint_forces(conditions: Conditions, joint: str, dof: int | None = None) -> list[LinearInput]:
    """Return the forces of the degrees of freedom of a joint."""
    dofs = dofs_of_joint(conditions.model, "inputs", joint, dof)
    if PRESCRIBES_MOTION[conditions.kinds[dofs]].any():
        raise ArgumentError(
            f"inputs: a drive prescribes the motion of joint {joint!r}, so a joint force has no effect. "
            "Remove the drive or the input"
        )
    return [_joint_force(conditions, i) for i in dofs]


def _joint_force(conditions: Conditions, i: int) -> LinearInput:
    return LinearInput(INPUT_OF_JOINT + conditions.model.velocity_labels[i], ((ONE, UnitChange("joint force", i)),))


def _wrench(conditions: Conditions, quantity: str, name: str) -> list[LinearInput]:
    """Return components of a wrench at the origin of a frame."""
    if conditions.model.kernel_model.frame(name).body < 0:
        raise ArgumentError(
            f"inputs: frame {name!r} is fixed to the world, so a {quantity} has no effect; expected a moving body, or "
            "a frame fixed to one"
        )
    return [LinearInput(f"{name} {OF_WRENCH[c]}", ((ONE, UnitChange("wrench", c, name)),)) for c in WRENCHES[quantity]]


def _reference(conditions: Conditions, quantity: str, i: int) -> LinearInput:
    """Return the reference of the controller of a degree of freedom."""
    label, order = conditions.model.velocity_labels[i], REFERENCES[quantity]
    own = [
        (d, drive)
        for d, drive in columns_of_drives(conditions)
        if isinstance(drive, (PID, ComputedTorque)) and conditions.actions.shared.drives[drive_layout.DOF, d] == i
    ]
    if len(own) != 1:
        raise ArgumentError(
            f"inputs: {label!r} has {len(own)} drives with a reference; expected one PID or ComputedTorque. With "
            "several, pass an rb.Input in place of their references"
        )
    (d, drive), *_ = own
    if order == 2 and not isinstance(drive, ComputedTorque):
        raise ArgumentError(
            f"inputs contains a reference_acceleration of {label!r}, whose drive is a PID; expected a ComputedTorque, "
            "because a PID does not use this derivative"
        )
    return LinearInput(f"{quantity} {label}", tuple(_changes_of_reference(conditions, d, drive, order)))


def _number(conditions: Conditions, name: str) -> LinearInput:
    """Return the number of an `rbchain.Input`, which is part of signals of the drives and forces."""
    changes: list[Change] = []
    known: list[str] = []
    for signal, unit_changes in _signals(conditions):
        known += [term.name for term in signal.inputs]
        for term in signal.inputs:
            if term.name == name:
                factor = term.flat(conditions.batch).factor
                changes += [(factor * own, change) for own, change in unit_changes(name)]
    if name not in known:
        raise ArgumentError(
            f"inputs contains the input {name!r}, which is not in the drives and forces; expected one of "
            f"{excerpt(sorted(set(known)))}"
        )
    return LinearInput(f"input {name}", tuple(changes))


def columns_of_drives(conditions: Conditions) -> list[tuple[int, OneJointDrive]]:
    """Return the drives of single joints, with their columns in the table of drives."""
    drives = [drive for drive in conditions.drives if isinstance(drive, ONE_JOINT)]
    return list(zip(new_table(conditions.model, drives)[1], drives, strict=True))


def _signals(conditions: Conditions) -> Iterator[tuple[Any, Any]]:
    """Yield the signals of drives and forces, and functions of the name of an input that return their unit changes."""
    for d, drive in columns_of_drives(conditions):
        for field in fields_for_inputs(drive):
            signal = as_signal(field, getattr(drive, field))
            yield signal, lambda name, d=d, drive=drive, field=field: _changes_of_drive(conditions, d, drive, field)
    for force in conditions.forces:
        if isinstance(force, Wrench):
            for first, field in enumerate(("force", "moment")):
                for c, signal in enumerate(three_signals(field, getattr(force, field))):
                    change = UnitChange("wrench", 3 * first + c, force.frame, force.point, force.axes)
                    yield signal, lambda name, change=change: [(ONE, change)]
        elif isinstance(force, Current):
            for signal in three_signals("velocity", force.velocity):
                yield signal, _refuse_current


def _refuse_current(name: str) -> None:
    raise ArgumentError(
        f"inputs contains the input {name!r}, which is a velocity of a Current; linearize supports inputs of drives "
        "and wrenches. Remove it from inputs, or use differences of accelerations"
    )


def _changes_of_drive(conditions: Conditions, d: int, drive: OneJointDrive, field: str) -> list[Change]:
    """Return the changes for a unit change of a drive's signal, whose time derivatives are zero."""
    if drive.numeric_field(field).takes_inputs:
        raise ArgumentError(
            f"{drive.label()}: {field} contains an input, but linearize does not support inputs that are gains; "
            "expected inputs of references and forces. Remove it from inputs, or use differences of accelerations"
        )
    if field == "reference":
        return _changes_of_reference(conditions, d, drive, 0)
    if isinstance(drive, (PrescribedForce, PID)):  # the signal, and the feedforward
        return [(ONE, UnitChange("drive force", d))]
    if isinstance(drive, PrescribedAcceleration):
        return [(ONE, UnitChange("acceleration", int(conditions.actions.shared.drives[drive_layout.DOF, d])))]
    raise ArgumentError(
        f"{drive.label()}: its signal contains an input, but linearize does not support inputs that prescribe a "
        "velocity or a position; expected a PrescribedAcceleration or a controller. Or remove it from inputs"
    )


def _changes_of_reference(conditions: Conditions, d: int, drive: OneJointDrive, order: int) -> list[Change]:
    """Return the changes for a unit change of a controller's reference, or of one of its time derivatives."""
    shared = conditions.actions.shared
    dof, first, row = (int(shared.drives[i, d]) for i in (drive_layout.DOF, drive_layout.GAINS, drive_layout.INTEGRAL))
    of = UnitChange("acceleration", dof) if isinstance(drive, ComputedTorque) else UnitChange("drive force", d)
    if order == 2:
        return [(ONE, of)]
    gain = drive_layout.GAIN_KP if order == 0 else drive_layout.GAIN_KD
    changes: list[Change] = [(shared.numbers[:, first + gain], of)]
    if order == 0 and row >= 0:
        changes.append((ONE, UnitChange("integral", row - conditions.model.nq - conditions.model.nv)))
    return changes


def changes_by_inputs(
    conditions: Conditions, points: OperatingPoints, inputs: Sequence[LinearInput]
) -> tuple[FloatArray, FloatArray]:
    """Compute the changes of the right-hand side of M dqdd = df, and of the rates of the integrals, by the inputs.

    Returns
    -------
    forces : (samples, nv, inputs) array
    integrals : (samples, m, inputs) array
    """
    forces = np.zeros((conditions.samples, conditions.model.nv, len(inputs)))
    integrals = np.zeros((conditions.samples, conditions.actions.integrals, len(inputs)))
    for column, given in enumerate(inputs):
        for factor, change in given.changes:
            if change.of == "integral":
                integrals[:, change.index, column] += factor
            else:
                forces[:, :, column] += np.reshape(factor, (-1, 1)) * _forces_of_change(conditions, points, change)
    return forces, integrals


def _forces_of_change(conditions: Conditions, points: OperatingPoints, change: UnitChange) -> FloatArray:
    """Compute the forces (samples, nv) of a unit change."""
    if change.of == "joint force":
        return points.F[:, :, change.index]
    if change.of == "drive force":
        return points.by_drive[:, :, change.index]
    if change.of == "acceleration":
        return _forces_of_acceleration(conditions, points, change.index)
    return _forces_of_wrench(conditions, points, change)


def _forces_of_acceleration(conditions: Conditions, points: OperatingPoints, c: int) -> FloatArray:
    """Compute the forces of a unit acceleration of dof c, which a drive prescribes, or a controller computes with."""
    n, is_prescribed = conditions.model.nv, PRESCRIBES_MOTION[conditions.kinds]
    computes = conditions.kinds == drive_layout.KIND_COMPUTED_TORQUE
    forces = np.zeros((conditions.samples, n))
    if computes.any():
        model = controllers_model(conditions.model, conditions.drives, conditions.batch)
        q = points.q.reshape(*conditions.batch, conditions.model.nq)
        M = np.asarray(model.mass_matrix(q), np.float64).reshape(conditions.samples, n, n)
        others = np.flatnonzero(~(computes | is_prescribed))
        change = np.zeros((conditions.samples, n))
        change[:, c] = 1.0
        usable = np.flatnonzero(np.isfinite(M).all((1, 2)))
        of_others = M[np.ix_(usable, others, others)]
        change[np.ix_(usable, others)] = -np.linalg.solve(of_others, M[np.ix_(usable, others, np.array([c]))])[:, :, 0]
        torques = (M @ change[:, :, None])[:, :, 0]
        dofs = np.flatnonzero(computes)  # computed torque is the first drive of its dof
        forces[:, dofs] = points.by_drive[:, dofs, dofs] * torques[:, dofs]
    if is_prescribed[c]:
        forces[:, c] = 1.0
    return forces


def _forces_of_wrench(conditions: Conditions, points: OperatingPoints, change: UnitChange) -> FloatArray:
    """Compute the joint forces of a unit force or moment on a frame; zero where the motion is prescribed."""
    model, samples = conditions.model, conditions.samples
    wrench, _ = _unit_wrench(conditions, points, change)
    J = model.jacobian(points.q.reshape(*conditions.batch, model.nq), change.frame).reshape(samples, 6, model.nv)
    forces = np.einsum("sij,si->sj", J, wrench)
    return np.where(PRESCRIBES_MOTION[conditions.kinds], 0.0, forces)


def _unit_wrench(conditions: Conditions, points: OperatingPoints, change: UnitChange) -> tuple[FloatArray, FloatArray]:
    """Return a unit force or moment on a frame (samples, 6), about the origin of the frame, and this origin."""
    model, samples = conditions.model, conditions.samples
    pose = model.frame_poses(points.q.reshape(*conditions.batch, model.nq), change.frame)
    R = pose.rotation.reshape(samples, 3, 3)
    axis, wrench = change.index % 3, np.zeros((samples, 6))
    direction = R[:, :, axis] if change.axes == "body" else np.eye(3)[axis]
    if change.index < 3:
        arm = np.einsum("...ij,...j->...i", pose.rotation, np.asarray(change.point, float)).reshape(samples, 3)
        wrench[:, :3], wrench[:, 3:] = direction, np.cross(arm, direction)
    else:
        wrench[:, 3:] = direction
    return wrench, pose.translation.reshape(samples, 3)


def wrenches_of_inputs(conditions: Conditions, points: OperatingPoints, inputs: Sequence[LinearInput]) -> FloatArray:
    """Compute the wrenches on bodies by unit changes of the inputs: (samples, bodies, 6, inputs).

    Forces, then moments about the origin of the world, in world axes.
    """
    model = conditions.model
    found = np.zeros((conditions.samples, model.n_bodies, 6, len(inputs)))
    for column, given in enumerate(inputs):
        for factor, change in given.changes:
            if change.of == "wrench":
                body = model.kernel_model.frame(change.frame).body
                wrench, origin = _unit_wrench(conditions, points, change)
                wrench[:, 3:] += np.cross(origin, wrench[:, :3])
                found[:, body, :, column] += np.reshape(factor, (-1, 1)) * wrench
    return found
