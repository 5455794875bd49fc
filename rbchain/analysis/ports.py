"""The inputs and outputs of linear models: joint forces, motions of joints, and motions of frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.coordinates import dof_index
from ..acting.drive_table import PRESCRIBES_MOTION
from ..common.misspelt import one_of
from ..common.real_arrays import FloatArray, excerpt
from ..errors import ArgumentError
from ..model.kernel_arrays import ORIGIN
from .coordinates import Coordinates
from .operating_points import Conditions, OperatingPoints
from .tangents import rates_of_tangents, skew

if TYPE_CHECKING:
    from ..facade.model import Model

Input = str | tuple[str, int]
Output = tuple[str, str] | tuple[str, str, int]

INPUT_OF_JOINT = "tau "
OF_JOINTS, OF_FRAMES = ("position", "velocity", "acceleration"), ("pose", "frame_velocity")
#: Names of the six rows of a pose and of the velocity of a frame.
OF_POSE, OF_VELOCITY = ("x", "y", "z", "rx", "ry", "rz"), ("vx", "vy", "vz", "wx", "wy", "wz")


@dataclass(frozen=True)
class OutputRows:
    """One output: its quantity, the names of its rows, and its degrees of freedom or the name of its frame."""

    quantity: str
    names: tuple[str, ...]
    dofs: tuple[int, ...]
    frame: str = ""


def inputs_of(conditions: Conditions, inputs: Sequence[Input] | None) -> list[tuple[str, int]]:
    """Return the label and the index of each degree of freedom whose joint force is an input."""
    model, is_prescribed = conditions.model, PRESCRIBES_MOTION[conditions.kinds]
    if inputs is None:
        dofs = [int(i) for i in np.flatnonzero(~is_prescribed)]
        return [(model.velocity_labels[i], i) for i in dofs]
    found: list[tuple[str, int]] = []
    for given in _listed("inputs", inputs, "the names of joints"):
        is_pair = isinstance(given, tuple) and len(given) == 2
        joint, dof = given if is_pair else (given, None)
        if not isinstance(joint, str):
            raise ArgumentError(
                f"inputs contains {excerpt(given)}; expected the name of a joint, or a pair (joint, dof)"
            )
        for i in dofs_of_joint(model, "inputs", joint, dof):
            if is_prescribed[i]:
                raise ArgumentError(
                    f"inputs: a drive prescribes the motion of joint {joint!r}, so a joint force has no effect; "
                    "expected other joints. Remove the drive or the input"
                )
            if i in (other for _, other in found):
                raise ArgumentError(f"inputs contains joint {joint!r} twice; expected each degree of freedom once")
            found.append((model.velocity_labels[i], i))
    return found


def outputs_of(conditions: Conditions, outputs: Sequence[Output] | None) -> list[OutputRows]:
    """Return the outputs with the names of their rows."""
    model = conditions.model
    if outputs is None:
        dofs = tuple(range(model.nv))
        return [
            OutputRows(quantity, tuple(f"{prefix} {model.velocity_labels[i]}" for i in dofs), dofs)
            for quantity, prefix in (("position", "q"), ("velocity", "qd"))
        ]
    return [_output(model, given) for given in _listed("outputs", outputs, "pairs such as ('position', joint)")]


def _output(model: Model, given: Any) -> OutputRows:
    """Return one output."""
    if not (isinstance(given, tuple) and len(given) in (2, 3) and all(isinstance(x, str) for x in given[:2])):
        raise ArgumentError(
            f"outputs contains {excerpt(given)}; expected pairs of a quantity and a name, such as ('position', joint)"
        )
    quantity = one_of("the quantity of an output", given[0], (*OF_JOINTS, *OF_FRAMES), ArgumentError)
    name = given[1]
    if quantity in OF_FRAMES:
        if len(given) == 3:
            raise ArgumentError(f"outputs contains {excerpt(given)}; expected ({quantity!r}, frame), without a dof")
        model.kernel_model.observed_point(name, ORIGIN, None)  # raises an error for an unknown name
        rows = OF_POSE if quantity == "pose" else OF_VELOCITY
        return OutputRows(quantity, tuple(f"{name} {row}" for row in rows), (), name)
    dofs = dofs_of_joint(model, "outputs", name, given[2] if len(given) == 3 else None)
    prefix = {"position": "q", "velocity": "qd", "acceleration": "qdd"}[quantity]
    return OutputRows(quantity, tuple(f"{prefix} {model.velocity_labels[i]}" for i in dofs), tuple(dofs))


def _listed(name: str, given: Any, expected: str) -> list[Any]:
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
) -> tuple[FloatArray, FloatArray]:
    """Compute C (samples, outputs, states) and D (samples, outputs, inputs).

    `equations` are the coordinates, the derivatives of dq/dt and qdd by the states, and the derivatives of qdd by the
    inputs.
    """
    coordinates, (_, accelerations), by_inputs = equations
    P, V = coordinates.of_positions, coordinates.of_velocities
    samples, states, count = conditions.samples, P.shape[2], by_inputs.shape[2]
    C: list[FloatArray] = [np.zeros((samples, 0, states))]
    D: list[FloatArray] = [np.zeros((samples, 0, count))]
    of_joints = {"position": P, "velocity": V, "acceleration": accelerations}
    for output in outputs:
        dofs = list(output.dofs)
        if output.frame:
            C.append(_motion_of_frame(conditions, points, output, P, V))
        else:
            C.append(of_joints[output.quantity][:, dofs])
        has_inputs = output.quantity == "acceleration"
        D.append(by_inputs[:, dofs] if has_inputs else np.zeros((samples, C[-1].shape[1], count)))
    return np.concatenate(C, 1), np.concatenate(D, 1)


def _motion_of_frame(
    conditions: Conditions, points: OperatingPoints, output: OutputRows, P: FloatArray, V: FloatArray
) -> FloatArray:
    """Compute the change of the pose or the velocity of a frame by the states, in world axes: (samples, 6, states).

    With the Jacobian J, the displacement is J dq, and the rotation vector r is its last three rows. The velocity of the
    origin is the derivative of the displacement by time. The angular velocity w changes by r' - w x r.
    """
    model, batch = conditions.model, conditions.batch
    q, qd = (x.reshape(*batch, x.shape[-1]) for x in (points.q, points.qd))
    J = model.jacobian(q, output.frame).reshape(-1, 6, model.nv)
    if output.quantity == "pose":
        return J @ P
    rate = model.jacobian_derivative(q, qd, output.frame).reshape(-1, 6, model.nv)
    by_q = rate + J @ rates_of_tangents(model, points.qd)
    turn = (J[:, 3:] @ points.qd[:, :, None])[:, :, 0]
    by_q[:, 3:] -= skew(turn) @ J[:, 3:]
    return by_q @ P + J @ V
