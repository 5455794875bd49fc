"""The outputs of linear models: motions of joints and motions of frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..acting.coordinates import dof_index
from ..common.misspelt import one_of
from ..common.real_arrays import FloatArray, excerpt
from ..errors import ArgumentError
from ..model.kernel_arrays import ORIGIN
from .coordinates import Coordinates
from .frame_motions import acceleration_by_state, velocity_by_state
from .operating_points import Conditions, OperatingPoints

if TYPE_CHECKING:
    from ..facade.model import Model

Output = tuple[str, str] | tuple[str, str, int]

OF_JOINTS = ("position", "velocity", "acceleration")
#: Names of the six rows of the motions of a frame. "dwx" is the derivative of "wx" by time.
OF_FRAMES = {
    "pose": ("x", "y", "z", "rx", "ry", "rz"),
    "frame_velocity": ("vx", "vy", "vz", "wx", "wy", "wz"),
    "frame_acceleration": ("ax", "ay", "az", "dwx", "dwy", "dwz"),
}


@dataclass(frozen=True)
class OutputRows:
    """One output: its quantity, the names of its rows, and its degrees of freedom or the name of its frame."""

    quantity: str
    names: tuple[str, ...]
    dofs: tuple[int, ...]
    frame: str = ""


def outputs_of(conditions: Conditions, outputs: Sequence[Output] | None) -> list[OutputRows]:
    """Return the outputs with the names of their rows."""
    model = conditions.model
    if outputs is None:
        dofs = tuple(range(model.nv))
        return [
            OutputRows(quantity, tuple(f"{prefix} {model.velocity_labels[i]}" for i in dofs), dofs)
            for quantity, prefix in (("position", "q"), ("velocity", "qd"))
        ]
    return [_output(model, given) for given in listed("outputs", outputs, "pairs such as ('position', joint)")]


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
        return OutputRows(quantity, tuple(f"{name} {row}" for row in OF_FRAMES[quantity]), (), name)
    dofs = dofs_of_joint(model, "outputs", name, given[2] if len(given) == 3 else None)
    prefix = {"position": "q", "velocity": "qd", "acceleration": "qdd"}[quantity]
    return OutputRows(quantity, tuple(f"{prefix} {model.velocity_labels[i]}" for i in dofs), tuple(dofs))


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
) -> tuple[FloatArray, FloatArray]:
    """Compute C (samples, outputs, states) and D (samples, outputs, inputs).

    `equations` are the coordinates, the derivatives of dq/dt and qdd by the states, and the derivatives of qdd by the
    inputs.
    """
    coordinates, (_, accelerations), by_inputs = equations
    P, V = coordinates.of_positions, coordinates.of_velocities
    samples, count = conditions.samples, by_inputs.shape[2]
    C: list[FloatArray] = [np.zeros((samples, 0, P.shape[2]))]
    D: list[FloatArray] = [np.zeros((samples, 0, count))]
    of_joints = {"position": P, "velocity": V, "acceleration": accelerations}
    for output in outputs:
        dofs = list(output.dofs)
        if output.frame:
            by_q, by_qd, by_qdd = _motion_of_frame(conditions, points, output)
            C.append(by_q @ P + by_qd @ V + by_qdd @ accelerations)
            D.append(by_qdd @ by_inputs)
        else:
            C.append(of_joints[output.quantity][:, dofs])
            has_inputs = output.quantity == "acceleration"
            D.append(by_inputs[:, dofs] if has_inputs else np.zeros((samples, len(dofs), count)))
    return np.concatenate(C, 1), np.concatenate(D, 1)


def _motion_of_frame(conditions: Conditions, points: OperatingPoints, output: OutputRows) -> tuple[FloatArray, ...]:
    """Compute the derivatives of a motion of a frame by q, qd and qdd, in world axes: (samples, 6, nv) each.

    With the Jacobian J, the change of the pose is J dq.
    """
    model, batch = conditions.model, conditions.batch
    q, qd = (x.reshape(*batch, x.shape[-1]) for x in (points.q, points.qd))
    J = model.jacobian(q, output.frame).reshape(conditions.samples, 6, model.nv)
    zero = np.zeros_like(J)
    if output.quantity == "pose":
        return J, zero, zero
    if output.quantity == "frame_velocity":
        rate = model.jacobian_derivative(q, qd, output.frame).reshape(conditions.samples, 6, model.nv)
        return velocity_by_state(model, J, rate, points.qd), J, zero
    return *acceleration_by_state(model, J, points.qd, points.qdd), J
