"""Loads of springs, bushings and constraints on bodies, with their derivatives.

The force between two bodies depends on their poses and velocities only. `Model.derivatives_between_bodies` computes its
derivatives for floating bodies. Products with the derivatives of the poses and velocities give the derivatives with
respect to the state of the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..acting.between_bodies import Bushing, SpringDamper
from ..common.real_arrays import FloatArray
from ..model.declared_constraint import weighted
from ..model.description import ConstraintPlace
from ..model.floating import floating_description
from .frame_motions import at_point, cross, motion_of_frame
from .loads import (
    Load,
    Placed,
    in_axes,
    load_at,
    of_samples,
    placed_body,
    turned,
    velocity_in_body_axes,
)
from .operating_points import Conditions, OperatingPoints

# --- springs and bushings ---------------------------------------------------------------------------------------------


def loads_between_bodies(conditions: Conditions, points: OperatingPoints, bodies: Sequence[int]) -> Iterator[Load]:
    """Yield the opposites of the sums of all forces of springs and bushings on each of these bodies."""
    from scipy.spatial.transform import Rotation  # slow to import, and only these loads need it

    model, batch, samples = conditions.model, conditions.batch, conditions.samples
    forces = [force for force in conditions.forces if isinstance(force, (SpringDamper, Bushing))]
    frames = {name for force in forces for name in (force.frame_a, force.frame_b) if name is not None}
    ends = sorted({model.kernel_model.frame(name).body for name in frames} - {-1})
    if not set(ends) & set(bodies):
        return
    floating = type(model)(floating_description(model.kernel_model.description, ends, frames))
    placed = [placed_body(conditions, points, i) for i in ends]
    velocities = [velocity_in_body_axes(x, motion_of_frame(model, x.J, points.qd, points.qdd)) for x in placed]
    q = np.concatenate([part for x in placed for part in (x.origin, Rotation.from_matrix(x.R).as_quat())], 1)
    qd = np.concatenate([v[:, :, 0] for v, _, _ in velocities], 1)
    states = q.reshape(*batch, q.shape[1]), qd.reshape(*batch, qd.shape[1])
    wrenches = floating.wrenches_between_bodies(*states, forces).reshape(samples, len(ends), 6)
    by_x, by_v = (x.reshape(samples, *x.shape[-2:]) for x in floating.derivatives_between_bodies(*states, forces))
    moves = np.concatenate([in_axes(np.swapaxes(x.R, 1, 2), x.J) for x in placed], 1)
    of_q, of_qd = (np.concatenate([v[by] for v in velocities], 1) for by in (1, 2))
    for k, (i, body) in enumerate(zip(ends, placed, strict=True)):
        if i in bodies:
            rows, value = slice(6 * k, 6 * k + 6), -wrenches[:, k]
            by_q = -in_axes(body.R, by_x[:, rows] @ moves + by_v[:, rows] @ of_q) + turned(body.J, value)
            yield load_at(body.origin, body.J, value, (by_q, -in_axes(body.R, by_v[:, rows] @ of_qd)))


# --- constraints ------------------------------------------------------------------------------------------------------


class ConstraintEnds(NamedTuple):
    """A constraint between two bodies, the first of its rows, and the poses of its frames on body a and body b.

    The origins of the frames are the points of the constraint, and J are their Jacobians.
    """

    place: ConstraintPlace
    row: int
    ends: tuple[Placed, Placed]

    @property
    def bodies(self) -> tuple[int, int]:
        """The two bodies; -1 for the world."""
        return self.place.body_a, self.place.body_b


class RowVectors(NamedTuple):
    """The vectors e (samples, 3, rows) of rows with the rates e . (x_b' - x_a'), and their changes.

    `by_q` (samples, 3, rows, nv) are the derivatives of e.
    """

    e: FloatArray
    by_q: FloatArray


def constraints_between_bodies(conditions: Conditions, points: OperatingPoints) -> Iterator[ConstraintEnds]:
    """Yield all constraints between bodies; couplers act between joints."""
    model, row = conditions.model, 0
    description = model.kernel_model.description
    for c, place in enumerate(description.constraints):
        if place.rows.of_points:
            ends = []
            for body, point, axes in (
                (place.body_a, model.constraint_point_a, model.constraint_axes_a),
                (place.body_b, model.constraint_point_b, model.constraint_axes_b),
            ):
                own = placed_body(conditions, points, body)
                arm = (own.R @ of_samples(conditions, point[..., c, :], 3)[:, :, None])[:, :, 0]
                frame = own.R @ of_samples(conditions, axes[..., c, :, :], 3, 3)
                ends.append(Placed(own.origin + arm, frame, at_point(own.J, arm)))
            yield ConstraintEnds(place, row, (ends[0], ends[1]))
        row += place.rows.total


def vectors_of_points(constraint: ConstraintEnds) -> RowVectors:
    """Compute the vectors of the rows of the points of a constraint."""
    a, b = constraint.ends
    samples, nv = len(a.origin), a.J.shape[2]
    if constraint.place.rows.type == "position":
        return RowVectors(np.broadcast_to(np.eye(3), (samples, 3, 3)), np.zeros((samples, 3, 3, nv)))
    between, J = (b.origin - a.origin)[:, :, None], (b.J - a.J)[:, :3]
    length = np.sqrt((between**2).sum(1, keepdims=True))
    with np.errstate(invalid="ignore", divide="ignore"):  # points that coincide have no direction
        e = between / length
        by_q = (J - e * (e * J).sum(1, keepdims=True)) / length
    return RowVectors(e, by_q[:, :, None])


def vectors_of_directions(constraint: ConstraintEnds) -> RowVectors:
    """Compute the vectors of the rows of the directions: the sums of y x x for axes x of body a and y of body b."""
    a, b = constraint.ends
    directions = constraint.place.rows.directions
    samples, nv = len(a.origin), a.J.shape[2]
    e, by_q = np.zeros((samples, 3, len(directions))), np.zeros((samples, 3, len(directions), nv))
    for r, pairs in enumerate(directions):
        for weight, (i, j) in weighted(pairs):
            x, y = a.R[:, :, i, None], b.R[:, :, j, None]
            e[:, :, r] += weight * cross(y, x)[:, :, 0]
            by_q[:, :, r] += weight * (cross(cross(b.J[:, 3:], y), x) + cross(y, cross(a.J[:, 3:], x)))
    return RowVectors(e, by_q)


def loads_of_constraints(
    conditions: Conditions, points: OperatingPoints, multipliers: FloatArray, bodies: Sequence[int]
) -> Iterator[Load]:
    """Yield the opposites of the forces of the constraints on these bodies; `multipliers` is (samples, m)."""
    samples, m = multipliers.shape
    for constraint in constraints_between_bodies(conditions, points):
        if not set(constraint.bodies) & set(bodies):
            continue
        vectors = vectors_of_points(constraint), vectors_of_directions(constraint)
        by_rows, by_q, row = np.zeros((samples, 6, m)), [], constraint.row
        for half, (e, change) in zip((slice(3), slice(3, 6)), vectors, strict=True):
            rows = slice(row, row + e.shape[2])
            by_rows[:, half, rows], row = e, row + e.shape[2]
            by_q.append(np.einsum("sijk,sj->sik", change, multipliers[:, rows]))
        on_b, of_q = (by_rows @ multipliers[:, :, None])[:, :, 0], np.concatenate(by_q, 1)
        for sign, body, end in zip((1.0, -1.0), constraint.bodies, constraint.ends, strict=True):
            if body in bodies:  # the opposite of the force on b, and the force on b for a
                yield load_at(end.origin, end.J, sign * on_b, (sign * of_q, None, None, sign * by_rows))


def changes_of_rates(conditions: Conditions, points: OperatingPoints, velocity: FloatArray) -> FloatArray:
    """Compute d(J velocity)/dq (samples, m, nv) of all constraints, for constant velocities (samples, nv)."""
    model = conditions.model
    found = np.zeros((conditions.samples, model.kernel_model.constraint_rows, model.nv))
    rest = np.zeros_like(velocity)
    for constraint in constraints_between_bodies(conditions, points):
        a, b = (motion_of_frame(model, end.J, velocity, rest) for end in constraint.ends)
        row = constraint.row
        for half, vectors in ((slice(3), vectors_of_points), (slice(3, 6), vectors_of_directions)):
            e, by_q = vectors(constraint)
            rate, change = (b.velocity - a.velocity)[:, half], (b.velocity_by_q - a.velocity_by_q)[:, half]
            rows = slice(row, row + e.shape[2])
            found[:, rows] = np.swapaxes(e, 1, 2) @ change + np.einsum("sijk,si->sjk", by_q, rate)
            row += e.shape[2]
    return found
