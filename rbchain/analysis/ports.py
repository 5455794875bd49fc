"""The outputs of linear models: motions of joints and of frames, reactions of joints, and forces of constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.coordinates import dof_index
from ..common.misspelled import one_of
from ..common.real_arrays import FloatArray, excerpt
from ..errors import ArgumentError, UnknownNameError
from ..model.kernel_arrays import ORIGIN
from .coordinates import Coordinates
from .frame_motions import motion_of_frame
from .multipliers import Multipliers, multipliers_of
from .operating_points import Conditions, OperatingPoints
from .reactions import check_reactions, reaction_by_state, reaction_by_wrenches

if TYPE_CHECKING:
    from ..facade.model import Model

Output = tuple[str, str] | tuple[str, str, int]

OF_JOINTS = ("position", "velocity", "acceleration")
REACTION, OF_REACTION = "reaction", ("fx", "fy", "fz", "mx", "my", "mz")
CONSTRAINT_FORCE = "constraint_force"
OF_FORCES = (REACTION, CONSTRAINT_FORCE)
#: Names of the six rows of the motions of a frame. "dwx" is the time derivative of "wx".
OF_FRAMES = {
    "pose": ("x", "y", "z", "rx", "ry", "rz"),
    "frame_velocity": ("vx", "vy", "vz", "wx", "wy", "wz"),
    "frame_acceleration": ("ax", "ay", "az", "dwx", "dwy", "dwz"),
}


@dataclass(frozen=True)
class OutputRows:
    """One output: its quantity, the names of its rows, and its dofs, its frame, its body or its rows of constraints."""

    quantity: str
    names: tuple[str, ...]
    dofs: tuple[int, ...]
    frame: str = ""
    body: int = -1
    rows: tuple[int, ...] = ()


def outputs_of(conditions: Conditions, outputs: Sequence[Output] | None) -> list[OutputRows]:
    """Return the outputs with the names of their rows."""
    model = conditions.model
    if outputs is None:
        dofs = tuple(range(model.nv))
        return [
            OutputRows(quantity, tuple(f"{prefix} {model.velocity_labels[i]}" for i in dofs), dofs)
            for quantity, prefix in (("position", "q"), ("velocity", "qd"))
        ]
    return [_output(conditions, given) for given in listed("outputs", outputs, "pairs such as ('position', joint)")]


def _output(conditions: Conditions, given: Any) -> OutputRows:
    """Return one output."""
    model = conditions.model
    if not (isinstance(given, tuple) and len(given) in (2, 3) and all(isinstance(x, str) for x in given[:2])):
        raise ArgumentError(
            f"outputs contains {excerpt(given)}; expected pairs of a quantity and a name, such as ('position', joint)"
        )
    quantity = one_of("the quantity of an output", given[0], (*OF_JOINTS, *OF_FRAMES, *OF_FORCES), ArgumentError)
    name = given[1]
    if quantity in OF_FRAMES:
        if len(given) == 3:
            raise ArgumentError(f"outputs contains {excerpt(given)}; expected ({quantity!r}, frame), without a dof")
        model.kernel_model.observed_point(name, ORIGIN, None)  # raises an error for an unknown name
        return OutputRows(quantity, tuple(f"{name} {row}" for row in OF_FRAMES[quantity]), (), name)
    if quantity in OF_FORCES:
        if len(given) == 3:
            kind = "joint" if quantity == REACTION else "constraint"
            raise ArgumentError(f"outputs contains {excerpt(given)}; expected ({quantity!r}, {kind}), without a dof")
        return _reaction(conditions, name) if quantity == REACTION else _force_of_constraint(conditions, name)
    dofs = dofs_of_joint(model, "outputs", name, given[2] if len(given) == 3 else None)
    prefix = {"position": "q", "velocity": "qd", "acceleration": "qdd"}[quantity]
    return OutputRows(quantity, tuple(f"{prefix} {model.velocity_labels[i]}" for i in dofs), tuple(dofs))


def _reaction(conditions: Conditions, joint: str) -> OutputRows:
    """Return the reaction of a joint."""
    dofs_of_joint(conditions.model, "outputs", joint, None)  # raises an error for an unknown name
    check_reactions(conditions)
    names = tuple(f"{REACTION} {joint} {row}" for row in OF_REACTION)
    return OutputRows(REACTION, names, (), body=conditions.model.joint_names.index(joint))


def _force_of_constraint(conditions: Conditions, name: str) -> OutputRows:
    """Return the force of a constraint."""
    of_rows = conditions.model.constraint_names_of_rows
    one_of("the constraint of an output", name, tuple(dict.fromkeys(of_rows)), UnknownNameError)
    rows = tuple(row for row, of_row in enumerate(of_rows) if of_row == name)
    names = tuple(f"{CONSTRAINT_FORCE} {name} {i}" for i in range(len(rows)))
    return OutputRows(CONSTRAINT_FORCE, names, (), rows=rows)


def listed(name: str, given: Any, expected: str) -> list[Any]:
    """Return a list of inputs or outputs."""
    if not isinstance(given, (list, tuple)):
        raise ArgumentError(f"{name} is {excerpt(given)}; expected a list of {expected}")
    return list(given)


def dofs_of_joint(model: Model, what: str, joint: str, dof: int | None = None) -> list[int]:
    """Return the degrees of freedom of a joint: all of them if `dof` is None."""
    if dof is not None:
        return [dof_index(model, what, joint, dof)]
    first = dof_index(model, what, joint, 0)
    return list(range(first, first + int(model.kernel_model.dofs.counts[model.joint_names.index(joint)])))


def rows_of_outputs(
    conditions: Conditions,
    points: OperatingPoints,
    outputs: Sequence[OutputRows],
    equations: tuple[Coordinates, tuple[FloatArray, FloatArray], FloatArray],
    forces_of_inputs: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Compute C (samples, outputs, states) and D (samples, outputs, inputs).

    `equations` are the coordinates, the derivatives of dq/dt and qdd with respect to the states, and the derivatives of
    qdd with respect to the inputs. `forces_of_inputs` are the derivatives with respect to the inputs of the right-hand
    side of M dqdd = df (samples, nv, inputs), and of the wrenches on bodies (samples, bodies, 6, inputs).
    """
    coordinates, (_, accelerations), by_inputs = equations
    forces, wrenches = forces_of_inputs
    P, V = coordinates.of_positions, coordinates.of_velocities
    samples, count = conditions.samples, by_inputs.shape[2]
    C: list[FloatArray] = [np.zeros((samples, 0, P.shape[2]))]
    D: list[FloatArray] = [np.zeros((samples, 0, count))]
    of_joints = {"position": P, "velocity": V, "acceleration": accelerations}
    multipliers = Multipliers(*(np.zeros((samples, 0, *shape)) for shape in ((), P.shape[2:], (count,))))
    if conditions.has_loops and any(output.quantity in OF_FORCES for output in outputs):
        multipliers = multipliers_of(conditions, points, coordinates, forces)
    for output in outputs:
        dofs = list(output.dofs)
        if output.quantity == REACTION:
            state = reaction_by_state(conditions, points, output.body, multipliers.value)
            direct = reaction_by_wrenches(conditions, points, output.body, wrenches)
            C.append(state[0] @ P + state[1] @ V + state[2] @ accelerations + state[3] @ multipliers.by_states)
            D.append(state[2] @ by_inputs + state[3] @ multipliers.by_inputs + direct)
        elif output.quantity == CONSTRAINT_FORCE:
            C.append(multipliers.by_states[:, output.rows])
            D.append(multipliers.by_inputs[:, output.rows])
        elif output.frame:
            by_q, by_qd, by_qdd = _derivatives(conditions, points, output)
            C.append(by_q @ P + by_qd @ V + by_qdd @ accelerations)
            D.append(by_qdd @ by_inputs)
        else:
            C.append(of_joints[output.quantity][:, dofs])
            has_inputs = output.quantity == "acceleration"
            D.append(by_inputs[:, dofs] if has_inputs else np.zeros((samples, len(dofs), count)))
    return np.concatenate(C, 1), np.concatenate(D, 1)


def _derivatives(conditions: Conditions, points: OperatingPoints, output: OutputRows) -> tuple[FloatArray, ...]:
    """Compute the derivatives of the motion of a frame with respect to q, qd and qdd, (samples, 6, nv).

    With the Jacobian J of a frame, the change of its pose is J dq.
    """
    model = conditions.model
    q = points.q.reshape(*conditions.batch, model.nq)
    J = model.jacobian(q, output.frame).reshape(conditions.samples, 6, model.nv)
    zero = np.zeros_like(J)
    if output.quantity == "pose":
        return J, zero, zero
    motion = motion_of_frame(model, J, points.qd, points.qdd)
    if output.quantity == "frame_velocity":
        return motion.velocity_by_q, J, zero
    return motion.acceleration_by_q, motion.acceleration_by_qd, J
