"""Conversion of constraints to the fields of a Description, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import ModelError, UnknownNameError
from .constraints import KINDS, Constraint, CouplerConstraint, DistanceConstraint
from .declared_constraint import COMPLIANCES, NUMBERS, SIDE_FIELDS, BodyConstraint, name_of
from .description import ConstraintPlace, Description, Frame
from .pose import Pose, computed_pose


def constraint_fields(
    constraints: Sequence[Constraint], carriers: Mapping[str, Frame], joints: Mapping[str, tuple[int, int]]
) -> dict[str, Any]:
    """Return the fields of a Description for its constraints.

    Parameters
    ----------
    constraints : list
    carriers : dict
        Of each body, by its name: the moving body that carries it, and its pose in the frame of that body.
    joints : dict
        Of each joint that moves, by its name: the index of its body and its number of degrees of freedom.

    Returns
    -------
    dict
        "constraints", and the fields in CONSTRAINT_FIELDS with one entry per constraint.

    Raises
    ------
    ModelError
        If a body or joint does not exist, a joint has several degrees of freedom, or bodies are fixed to each other.
    """
    places: list[ConstraintPlace] = []
    poses: list[tuple[Pose, Pose]] = []
    for constraint in constraints:
        place, pose_a, pose_b = _placed(constraint, carriers, joints)
        places.append(place)
        poses.append((pose_a, pose_b))
    count = len(constraints)
    fields: dict[str, Any] = {"constraints": tuple(places)}
    for side, name in enumerate(("a", "b")):
        fields[f"constraint_point_{name}"] = np.array([pose[side].translation for pose in poses]).reshape(count, 3)
        fields[f"constraint_axes_{name}"] = np.array([pose[side].rotation for pose in poses]).reshape(count, 3, 3)
    for name, default in (("length", 1.0), ("ratio", 1.0), ("offset", 0.0)):
        fields[f"constraint_{name}"] = np.array([float(getattr(x, name, default)) for x in constraints]).reshape(count)
    for name in COMPLIANCES:
        found = [float(getattr(x, name, None) or 0.0) for x in constraints]
        fields[f"constraint_{name}"] = np.array(found).reshape(count)
    return fields


def _placed(
    constraint: Constraint, carriers: Mapping[str, Frame], joints: Mapping[str, tuple[int, int]]
) -> tuple[ConstraintPlace, Pose, Pose]:
    """Return the bodies of a constraint, and the poses of its frames in the frames of the bodies."""
    if isinstance(constraint, CouplerConstraint):
        body_a, body_b = (_joint_body(constraint, joint, joints) for joint in (constraint.other, constraint.joint))
        return ConstraintPlace(constraint.name, constraint.kind, body_a, body_b), Pose(), Pose()
    frame_a, frame_b = (_carrier(constraint, name, carriers) for name in (constraint.frame_a, constraint.frame_b))
    if frame_a.body == frame_b.body:
        raise ModelError(
            f"{name_of(constraint)}: its frames {constraint.frame_a!r} and {constraint.frame_b!r} are fixed to each "
            "other; expected bodies that move relative to each other"
        )
    own_a, own_b = constraint.poses
    place = ConstraintPlace(
        constraint.name, constraint.kind, frame_a.body, frame_b.body, is_compliant=constraint.compliance is not None
    )
    return place, constraint.part_of(frame_a.pose @ own_a), constraint.part_of(frame_b.pose @ own_b)


def constraints_of(description: Description) -> list[Constraint]:
    """Return the constraints of a description without batch axes. This is the inverse of `constraint_fields`."""
    return [_constraint_of(description, c) for c in range(len(description.constraints))]


def _constraint_of(d: Description, c: int) -> Constraint:
    place = d.constraints[c]
    kind = KINDS[place.kind]
    values: dict[str, Any] = {"name": place.name}
    if kind is CouplerConstraint:
        values |= {"joint": d.joint_names[place.body_b], "other": d.joint_names[place.body_a]}
    else:
        for side, body in (("a", place.body_a), ("b", place.body_b)):
            point, axes = (getattr(d, f"constraint_{name}_{side}")[c] for name in ("point", "axes"))
            values[f"frame_{side}"] = d.body_names[body] if body >= 0 else None
            for name in kind.side_fields:
                values[f"{name}_{side}"] = SIDE_FIELDS[name].of_pose(computed_pose(point, axes))
    names = [field.name for field in dataclasses.fields(kind) if field.name in NUMBERS]
    names += kind.names_of_compliances() if place.is_compliant else ()
    for name in names:
        values[name] = float(getattr(d, f"constraint_{name}")[c])
    return kind(**values)


def attached_constraint(constraint: Constraint, prefix: str, parent: str | None, placement: Pose) -> Constraint:
    """Return a constraint of a model whose world is fixed to body `parent` of another model, at `placement`."""
    changed: dict[str, Any] = {"name": prefix + constraint.name}
    if isinstance(constraint, CouplerConstraint):
        return replace(constraint, **changed, joint=prefix + constraint.joint, other=prefix + constraint.other)
    for side in ("a", "b"):
        frame = getattr(constraint, f"frame_{side}")
        changed[f"frame_{side}"] = parent if frame is None else prefix + frame
        if frame is not None:
            continue
        for name in constraint.side_fields:
            field = f"{name}_{side}"
            changed[field] = SIDE_FIELDS[name].moved(placement, getattr(constraint, field))
    return replace(constraint, **changed)


def violation(constraint: BodyConstraint, pose_a: Pose, pose_b: Pose) -> float:
    """Return the largest residual of a constraint between two bodies with these poses.

    It is infinite if the axes of a hinge are opposite, or the frames of a weld are rotated by more than 90 degrees.
    """
    own_a, own_b = constraint.poses
    a, b, rows = pose_a @ own_a, pose_b @ own_b, constraint.rows
    turn = a.rotation.T @ b.rotation
    if rows.is_turned_over(np.diag(turn)):
        return np.inf
    residuals = rows.residuals(b.translation - a.translation, turn, getattr(constraint, "length", 0.0))
    return float(np.abs(residuals).max())


def text_of(constraint: Constraint) -> str:
    """Return the type and the bodies or joints, such as "ball: left - right" or "coupler: arm = 0.5 motor + 0.1"."""
    if isinstance(constraint, CouplerConstraint):
        offset = f" {'+' if constraint.offset > 0.0 else '-'} {abs(constraint.offset):.4g}" if constraint.offset else ""
        return f"{constraint.kind}: {constraint.joint} = {constraint.ratio:.4g} {constraint.other}{offset}"
    names = ["world" if frame is None else frame for frame in (constraint.frame_a, constraint.frame_b)]
    length = f", {constraint.length:.4g} m" if isinstance(constraint, DistanceConstraint) else ""
    compliance = "" if constraint.compliance is None else f", compliance {constraint.compliance:.4g} m/N"
    return f"{constraint.kind}: {names[0]} - {names[1]}{length}{compliance}"


def lines_of_constraints(description: Description, rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
    """Return a line (constraints, 4, 3) for each constraint: origin of body a, point a, point b, origin of body b.

    The description has no batch axes. `rotation` (n, 3, 3) and `translation` (n, 3) are the
    poses of the bodies. The line to a point of the world starts at the point. Couplers have no line.
    """
    lines = []
    for c, place in enumerate(description.constraints):
        if not place.rows.of_points:
            continue
        ends = []
        for body, point in (
            (place.body_a, description.constraint_point_a[c]),
            (place.body_b, description.constraint_point_b[c]),
        ):
            ends.append((point, point) if body < 0 else (translation[body], translation[body] + rotation[body] @ point))
        lines.append([ends[0][0], ends[0][1], ends[1][1], ends[1][0]])
    return np.reshape(lines, (-1, 4, 3))


def _carrier(constraint: Constraint, body: str | None, carriers: Mapping[str, Frame]) -> Frame:
    if body is None:
        return Frame(-1, Pose())
    if body not in carriers:
        names = list(carriers)
        raise UnknownNameError(
            f"{name_of(constraint)}: the model has no body {body!r}; use None for the world, or one of "
            f"{excerpt(names)}{did_you_mean(body, names)}"
        )
    return carriers[body]


def _joint_body(constraint: CouplerConstraint, joint: str, joints: Mapping[str, tuple[int, int]]) -> int:
    if joint not in joints:
        names = list(joints)
        raise UnknownNameError(
            f"{name_of(constraint)}: the model has no moving joint {joint!r}; expected one of {excerpt(names)}"
            f"{did_you_mean(str(joint), names)}"
        )
    body, dofs = joints[joint]
    if dofs != 1:
        raise ModelError(
            f"{name_of(constraint)}: joint {joint!r} has {dofs} degrees of freedom; expected a joint with one"
        )
    return body
