"""Constraints between bodies, which close the loops of a mechanism, and couplers of joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from ..misspelt import SuggestsAttributes, did_you_mean
from ..real_arrays import excerpt
from .description import ConstraintPlace, Description, Frame
from .joint import axes_along
from .pose import Array, Pose, normalized, numbers, positive, vector3


@dataclass(frozen=True, eq=False)
class BallConstraint(SuggestsAttributes):
    """Hold a point of body b at a point of body a, as a ball joint does.

    Parameters
    ----------
    name : str
        Name of the constraint.
    body_a, body_b : str or None
        Names of the bodies, or of frames on fixed joints; None for the world.
    point_a, point_b : (3,) array, m
        The points in the axes of their bodies, from the origins.

    Notes
    -----
    The residual is point b minus point a, in world axes, m. The multipliers are the force on body b, N.

    Examples
    --------
    A rod that hangs on a hinge is held at its other end too, so that its weight of 20 N is shared:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, -10))
    >>> builder.add_body("rod", joint=rb.Revolute(axis=(0, 1, 0)), inertia=rb.Inertia.rod(1.0, mass=2.0))
    >>> builder.add_constraint(rb.BallConstraint("pin", None, "rod", (0, 0, 1), (0, 0, 1)))
    >>> model = builder.build()
    >>> model.constraint_residual([0.0]).tolist()
    [0.0, 0.0, 0.0]
    """

    name: str
    body_a: str | None
    body_b: str | None
    point_a: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    point_b: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        _check_bodies(self)
        _convert_points(self)


@dataclass(frozen=True, eq=False)
class HingeConstraint(SuggestsAttributes):
    """Hold a point and an axis of body b at a point and an axis of body a, as a hinge does.

    Parameters
    ----------
    name, body_a, body_b, point_a, point_b
        As for `BallConstraint`.
    axis_a, axis_b : (3,) array
        The axis of the hinge in the axes of each body, of any length.

    Notes
    -----
    The residual is that of a `BallConstraint`, then the components of the unit vector along axis b on two axes of
    body a that are normal to axis a. The multipliers are the force on body b, N, then moments, N m.
    """

    name: str
    body_a: str | None
    body_b: str | None
    point_a: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    point_b: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    axis_a: Array = (0.0, 0.0, 1.0)  # type: ignore[assignment]
    axis_b: Array = (0.0, 0.0, 1.0)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        _check_bodies(self)
        _convert_points(self)
        for field in ("axis_a", "axis_b"):
            _set(self, field, _axis(getattr(self, field), f"{_what(self)}: {field}"))


@dataclass(frozen=True, eq=False)
class WeldConstraint(SuggestsAttributes):
    """Hold a frame of body b at a frame of body a.

    Parameters
    ----------
    name, body_a, body_b
        As for `BallConstraint`.
    pose_a, pose_b : Pose
        The frames, in those of their bodies.

    Notes
    -----
    The residual is that of a `BallConstraint`, then sin(angle) times the axis of the rotation between the two frames,
    in the axes of frame a. The multipliers are the force on body b, N, then the moment, N m.
    """

    name: str
    body_a: str | None
    body_b: str | None
    pose_a: Pose = Pose()  # noqa: RUF009 - immutable
    pose_b: Pose = Pose()  # noqa: RUF009

    def __post_init__(self) -> None:
        _check_bodies(self)
        for field in ("pose_a", "pose_b"):
            pose = getattr(self, field)
            if not isinstance(pose, Pose) or pose.translation.shape != (3,):
                raise ModelError(
                    f"{_what(self)}: {field} is {excerpt(pose)}; expected one Pose, such as Pose(translation=(0, 0, 1))"
                )


@dataclass(frozen=True, eq=False)
class DistanceConstraint(SuggestsAttributes):
    """Hold the distance between two points, as a massless rod with ball joints does.

    Parameters
    ----------
    name, body_a, body_b, point_a, point_b
        As for `BallConstraint`.
    length : float, m
        The distance; more than 0.

    Notes
    -----
    The residual is the distance minus `length`, m. The multiplier is the force on body b away from point a, N, so a rod
    under tension has a negative one.
    """

    name: str
    body_a: str | None
    body_b: str | None
    point_a: Array
    point_b: Array
    length: float

    def __post_init__(self) -> None:
        _check_bodies(self)
        _convert_points(self)
        _set(self, "length", positive(self.length, f"{_what(self)}: length"))


@dataclass(frozen=True, eq=False)
class CouplerConstraint(SuggestsAttributes):
    """Couple the position of a joint to that of another one: q = ratio q_other + offset.

    It models gears, racks and pinions, belts and the mimic joints of URDF.

    Parameters
    ----------
    name : str
        Name of the constraint.
    joint, other : str
        Names of two joints with one degree of freedom each.
    ratio : float
        Change of q per change of q_other; not 0. Its unit is m/rad if only `joint` is prismatic.
    offset : float, rad or m
        Position of `joint` where that of `other` is 0.

    Notes
    -----
    The residual is q - ratio q_other - offset, rad or m. The multiplier is the force of the gear on `joint`, N m or N.

    Examples
    --------
    A motor drives a joint by a gear with the ratio 1/2:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> for name in ("motor", "arm"):
    ...     builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    >>> builder.add_constraint(rb.CouplerConstraint("gear", "arm", "motor", ratio=0.5))
    >>> builder.build().forward_dynamics([0, 0], [0, 0], [5.0, 0]).round(12).tolist()
    [4.0, 2.0]
    """

    name: str
    joint: str
    other: str
    ratio: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        _check_name(self)
        if self.joint == self.other:
            raise ModelError(f"{_what(self)}: it couples joint {self.joint!r} to itself; expected two different joints")
        _set(self, "ratio", float(numbers(self.ratio, f"{_what(self)}: ratio", ())))
        _set(self, "offset", float(numbers(self.offset, f"{_what(self)}: offset", ())))
        if self.ratio == 0.0:
            raise ModelError(f"{_what(self)}: ratio is 0; expected another number. Use Model.lock for a joint at rest")


Constraint = BallConstraint | HingeConstraint | WeldConstraint | DistanceConstraint | CouplerConstraint
KINDS: dict[type[Constraint], str] = {
    BallConstraint: "ball",
    HingeConstraint: "hinge",
    WeldConstraint: "weld",
    DistanceConstraint: "distance",
    CouplerConstraint: "coupler",
}
CONSTRAINTS = tuple(KINDS)


def _set(constraint: object, field: str, value: Any) -> None:
    object.__setattr__(constraint, field, value)  # the dataclass is frozen


def _what(constraint: Any) -> str:
    return f"{type(constraint).__name__} {constraint.name!r}"


def _check_name(constraint: Any) -> None:
    if not (isinstance(constraint.name, str) and constraint.name):
        raise ModelError(
            f"{type(constraint).__name__}: its name is {excerpt(constraint.name)}; expected a non-empty string"
        )


def _check_bodies(constraint: Any) -> None:
    _check_name(constraint)
    for field in ("body_a", "body_b"):
        body = getattr(constraint, field)
        if not (body is None or isinstance(body, str)):
            raise ModelError(
                f"{_what(constraint)}: {field} is {excerpt(body)}; expected the name of a body, or None for the world"
            )
    if constraint.body_a == constraint.body_b:
        body = "the world" if constraint.body_a is None else f"body {constraint.body_a!r}"
        raise ModelError(f"{_what(constraint)}: it connects {body} to itself; expected two different bodies")


def _convert_points(constraint: Any) -> None:
    for field in ("point_a", "point_b"):
        _set(constraint, field, vector3(getattr(constraint, field), f"{_what(constraint)}: {field}"))


def _axis(value: npt.ArrayLike, what: str) -> np.ndarray:
    found = vector3(value, what)
    if not found.any():
        raise ModelError(f"{what} is {found.tolist()}; expected a non-zero vector")
    return normalized(found)


class ConstraintNumbers(NamedTuple):
    """The numbers of constraints as arrays, whose names are those of the fields of a Description."""

    constraint_point_a: np.ndarray
    constraint_point_b: np.ndarray
    constraint_axes_a: np.ndarray
    constraint_axes_b: np.ndarray
    constraint_length: np.ndarray
    constraint_ratio: np.ndarray
    constraint_offset: np.ndarray


def constraint_fields(
    constraints: Sequence[Constraint], carriers: Mapping[str, Frame], joints: Mapping[str, tuple[int, int]]
) -> dict[str, Any]:
    """Return the fields of a Description for its constraints.

    Parameters
    ----------
    constraints : list
    carriers : dict
        For the name of each body, the moving body that carries it, and its pose there.
    joints : dict
        For the name of each joint that moves, the index of its body and its number of degrees of freedom.

    Raises
    ------
    ModelError
        If a body or joint does not exist, a joint has several degrees of freedom, or bodies are fixed to each other.
    """
    places, point_a, point_b, axes_a, axes_b, lengths, ratios, offsets = [], [], [], [], [], [], [], []
    for constraint in constraints:
        pose_a, pose_b, length, ratio, offset = Pose(), Pose(), 1.0, 1.0, 0.0
        if isinstance(constraint, CouplerConstraint):
            body_a, body_b = (_joint_body(constraint, joint, joints) for joint in (constraint.other, constraint.joint))
            ratio, offset = constraint.ratio, constraint.offset
        else:
            frame_a, frame_b = (_carrier(constraint, body, carriers) for body in (constraint.body_a, constraint.body_b))
            if frame_a.body == frame_b.body:
                raise ModelError(
                    f"{_what(constraint)}: its bodies {constraint.body_a!r} and {constraint.body_b!r} are fixed to "
                    "each other; expected bodies that move relative to each other"
                )
            own_a, own_b = _poses(constraint)
            pose_a, pose_b, body_a, body_b = frame_a.pose @ own_a, frame_b.pose @ own_b, frame_a.body, frame_b.body
            length = constraint.length if isinstance(constraint, DistanceConstraint) else 1.0
            if isinstance(constraint, HingeConstraint):  # the rows depend on the axes only
                pose_a, pose_b = (
                    Pose(p.translation, axes_along(normalized(p.rotation[:, 2]))) for p in (pose_a, pose_b)
                )
            elif not isinstance(constraint, WeldConstraint):  # the rows do not depend on axes
                pose_a, pose_b = Pose(pose_a.translation), Pose(pose_b.translation)
        places.append(ConstraintPlace(constraint.name, KINDS[type(constraint)], body_a, body_b))
        for found, value in (
            (point_a, pose_a.translation),
            (point_b, pose_b.translation),
            (axes_a, pose_a.rotation),
            (axes_b, pose_b.rotation),
        ):
            found.append(value)
        lengths.append(length)
        ratios.append(ratio)
        offsets.append(offset)
    count = len(constraints)
    arrays = ConstraintNumbers(
        np.reshape(point_a, (count, 3)),
        np.reshape(point_b, (count, 3)),
        np.reshape(axes_a, (count, 3, 3)),
        np.reshape(axes_b, (count, 3, 3)),
        np.array(lengths, float),
        np.array(ratios, float),
        np.array(offsets, float),
    )
    return {"constraints": tuple(places), **arrays._asdict()}


def constraints_of(description: Description) -> list[Constraint]:
    """Return the constraints of a description without batch axes. `constraint_fields` makes the same fields of them."""
    d = description
    found: list[Constraint] = []
    for c, place in enumerate(d.constraints):
        if place.kind == "coupler":
            joint, other = d.joint_names[place.body_b], d.joint_names[place.body_a]
            ratio, offset = float(d.constraint_ratio[c]), float(d.constraint_offset[c])
            found.append(CouplerConstraint(place.name, joint, other, ratio, offset))
            continue
        names = [d.body_names[body] if body >= 0 else None for body in (place.body_a, place.body_b)]
        points = d.constraint_point_a[c], d.constraint_point_b[c]
        axes = d.constraint_axes_a[c], d.constraint_axes_b[c]
        if place.kind == "ball":
            found.append(BallConstraint(place.name, *names, *points))
        elif place.kind == "hinge":
            found.append(HingeConstraint(place.name, *names, *points, axes[0][:, 2], axes[1][:, 2]))
        elif place.kind == "weld":
            poses = [Pose.computed(point, turn) for point, turn in zip(points, axes, strict=True)]
            found.append(WeldConstraint(place.name, *names, *poses))
        else:
            found.append(DistanceConstraint(place.name, *names, *points, float(d.constraint_length[c])))
    return found


def attached_constraint(constraint: Constraint, prefix: str, parent: str | None, placement: Pose) -> Constraint:
    """Return the constraint of a model that is added to another one: its world is fixed to `parent` at `placement`."""
    changed: dict[str, Any] = {"name": prefix + constraint.name}
    if isinstance(constraint, CouplerConstraint):
        return replace(constraint, **changed, joint=prefix + constraint.joint, other=prefix + constraint.other)
    for side in ("a", "b"):
        body = getattr(constraint, f"body_{side}")
        changed[f"body_{side}"] = parent if body is None else prefix + body
        if body is not None:
            continue
        if isinstance(constraint, WeldConstraint):
            changed[f"pose_{side}"] = placement @ getattr(constraint, f"pose_{side}")
            continue
        point = getattr(constraint, f"point_{side}")
        changed[f"point_{side}"] = placement.rotation @ point + placement.translation
        if isinstance(constraint, HingeConstraint):
            changed[f"axis_{side}"] = placement.rotation @ getattr(constraint, f"axis_{side}")
    return replace(constraint, **changed)


def violation(constraint: Constraint, pose_a: Pose, pose_b: Pose) -> float:
    """Return how much two bodies with these poses violate a constraint other than a coupler: its largest residual.

    It is infinite if the axes of a hinge are opposite, or the frames of a weld are turned by more than a right angle.
    """
    own_a, own_b = _poses(constraint)  # type: ignore[arg-type]
    a, b = pose_a @ own_a, pose_b @ own_b
    apart = b.translation - a.translation
    if isinstance(constraint, DistanceConstraint):
        return abs(float(np.linalg.norm(apart)) - constraint.length)
    turn = a.rotation.T @ b.rotation
    found = [float(np.abs(apart).max())]
    if isinstance(constraint, HingeConstraint):
        found.append(float(np.abs(turn[:2, 2]).max()) if turn[2, 2] > 0.0 else np.inf)
    elif isinstance(constraint, WeldConstraint):
        found.append(float(np.abs(turn - turn.T).max() / 2.0) if np.trace(turn) > 1.0 else np.inf)
    return max(found)


def _poses(constraint: BallConstraint | HingeConstraint | WeldConstraint | DistanceConstraint) -> tuple[Pose, Pose]:
    """Return the frames of a constraint in those of its bodies; the z axis is that of a hinge."""
    if isinstance(constraint, WeldConstraint):
        return constraint.pose_a, constraint.pose_b
    if isinstance(constraint, HingeConstraint):
        return (
            Pose(constraint.point_a, axes_along(constraint.axis_a)),
            Pose(constraint.point_b, axes_along(constraint.axis_b)),
        )
    return Pose(constraint.point_a), Pose(constraint.point_b)


def _carrier(constraint: Constraint, body: str | None, carriers: Mapping[str, Frame]) -> Frame:
    if body is None:
        return Frame(-1, Pose())
    if body not in carriers:
        names = list(carriers)
        raise ModelError(
            f"{_what(constraint)}: the model has no body {body!r}; expected None for the world, or one of "
            f"{excerpt(names)}{did_you_mean(body, names)}"
        )
    return carriers[body]


def _joint_body(constraint: CouplerConstraint, joint: str, joints: Mapping[str, tuple[int, int]]) -> int:
    if joint not in joints:
        names = list(joints)
        raise ModelError(
            f"{_what(constraint)}: the model has no moving joint {joint!r}; expected one of {excerpt(names)}"
            f"{did_you_mean(str(joint), names)}"
        )
    body, dofs = joints[joint]
    if dofs != 1:
        raise ModelError(
            f"{_what(constraint)}: joint {joint!r} has {dofs} degrees of freedom; expected a joint with one"
        )
    return body
