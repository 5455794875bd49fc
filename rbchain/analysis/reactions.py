"""Derivatives of the reactions of joints.

The joint of a body transmits the inertial forces of all bodies that it carries, minus the forces on them: weight,
buoyancy, wrenches, and the forces of springs, bushings and constraints. `Model.joint_reactions` returns the sum about
the origin of the body, in axes that turn with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..acting.wrenches import Current
from ..common.real_arrays import FloatArray
from ..errors import ArgumentError
from .frame_motions import cross
from .loads import Load, in_axes, load_at, loads_of_body, placed_body, turned
from .loads_between_bodies import loads_between_bodies, loads_of_constraints
from .operating_points import Conditions, OperatingPoints


def check_reactions(conditions: Conditions) -> None:
    """Raise an error for reactions in water with drag or a current."""
    has_current = any(isinstance(force, Current) for force in conditions.forces)
    if has_current or conditions.model.kernel_model.has_drag:
        found = "forces contains a Current" if has_current else "the model is in water with drag"
        raise ArgumentError(
            f"outputs contains a reaction, but {found}; expected a model without drag, and no Current in forces. Use "
            "other outputs, such as the acceleration of the joint"
        )


def reaction_by_state(
    conditions: Conditions, points: OperatingPoints, body: int, multipliers: FloatArray
) -> tuple[FloatArray, ...]:
    """Compute the derivatives of a joint's reaction.

    `multipliers` (samples, m) are the forces of the constraints.

    Returns
    -------
    by_q, by_qd, by_qdd : (samples, 6, nv) arrays
    by_multipliers : (samples, 6, m) array
    """
    origin, R, J = placed_body(conditions, points, body)
    loads = _loads(conditions, points, bodies_behind(conditions, body), multipliers)
    total = load_at(origin, J, np.zeros((conditions.samples, 6)), multipliers=multipliers.shape[1])
    value, derivatives = total.value, total.derivatives
    for load in loads:
        arm, force = (load.place - origin)[:, :, None], load.value[:, :3, None]
        value += load.value
        value[:, 3:] += cross(arm, force)[:, :, 0]
        for by, own in zip(derivatives, load.derivatives, strict=True):
            by[..., : own.shape[2]] += own
            by[:, 3:, : own.shape[2]] += cross(arm, own[:, :3])
        derivatives[0][:, 3:] += cross(load.J[:, :3] - J[:, :3], force)
    derivatives[0][:] -= turned(J, value)  # in axes that turn with the body
    return tuple(in_axes(np.swapaxes(R, 1, 2), by) for by in derivatives)


def reaction_by_wrenches(
    conditions: Conditions, points: OperatingPoints, body: int, wrenches: FloatArray
) -> FloatArray:
    """Compute the derivatives of a joint's reaction with respect to inputs that are wrenches, at constant qdd.

    `wrenches` (samples, bodies, 6, inputs) are their derivatives with respect to the inputs: forces, and moments about
    the origin of the world. Returns a (samples, 6, inputs) array.
    """
    origin, R, _ = placed_body(conditions, points, body)
    total = -wrenches[:, bodies_behind(conditions, body)].sum(1)
    total[:, 3:] -= cross(origin[:, :, None], total[:, :3])
    return in_axes(np.swapaxes(R, 1, 2), total)


def bodies_behind(conditions: Conditions, body: int) -> list[int]:
    """Return a body and all bodies that its joint moves."""
    found = {body}
    for i, parent in enumerate(conditions.model.parent):  # parents first
        if int(parent) in found:
            found.add(i)
    return sorted(found)


def _loads(
    conditions: Conditions, points: OperatingPoints, bodies: list[int], multipliers: FloatArray
) -> Iterator[Load]:
    """Yield the inertial forces of the bodies, and the opposites of all forces on them."""
    for c in bodies:
        yield from loads_of_body(conditions, points, c)
    yield from loads_between_bodies(conditions, points, bodies)
    yield from loads_of_constraints(conditions, points, multipliers, bodies)
