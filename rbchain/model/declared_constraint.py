"""Declarations of a class of constraints: its kind, its rows and its fields.

Files, edits, assembly, studies, images and the equations of motion work with these declarations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt
from ..common.values import Value
from ..errors import ModelError
from .joint import axes_along
from .pose import Pose, normalized, numbers, positive, unit_axis, vector3

#: Number of rows of each type: point b minus point a, the distance of both, or the row of a constraint between joints.
ROW_COUNTS = {"position": 3, "distance": 1, "coupler": 1, "added inertia": 1}
TYPES_OF_JOINTS = ("coupler", "added inertia")
#: Numbers of an axis of body a and of an axis of body b.
Axes = tuple[int, int]


class Rows(NamedTuple):
    """The rows of a constraint: rows of its points, then rows of directions; or one row of joints.

    Attributes
    ----------
    type : str
        Type of the rows before the directions, a key of `ROW_COUNTS`.
    directions : tuple
        For each direction, one pair of axes (x, y) or two. The row is x . y, or (x . y - z . w) / 2.
    aligned : tuple
        Axes of both bodies that are equal if the constraint is satisfied.
    """

    type: str
    directions: tuple[tuple[Axes] | tuple[Axes, Axes], ...] = ()
    aligned: tuple[int, ...] = ()

    @property
    def total(self) -> int:
        """Number of all rows."""
        return ROW_COUNTS[self.type] + len(self.directions)

    @property
    def of_points(self) -> int:
        """Number of the rows of points."""
        return 0 if self.type in TYPES_OF_JOINTS else ROW_COUNTS[self.type]

    def residuals(self, between: np.ndarray, turn: np.ndarray, length: float) -> np.ndarray:
        """Return the residuals (total,) of a constraint between bodies.

        `between` (3,) is point b minus point a, `turn` (3, 3) are the cosines of the angles between the axes of body a
        and the axes of body b, and `length` is the prescribed distance.
        """
        first = {"position": between, "distance": np.array([np.linalg.norm(between) - length])}[self.type]
        return np.array([*first, *(sum(w * turn[axes] for w, axes in weighted(pairs)) for pairs in self.directions)])

    def is_turned_over(self, cosines: np.ndarray) -> np.ndarray:
        """Whether aligned axes are turned by more than 90 degrees, from the cosines (..., 3) of the angles of all axes.

        The directions are then zero even at half a turn.
        """
        own = cosines[..., list(self.aligned)]
        return own.sum(-1) < (own.shape[-1] - 1) / 2  # for three axes, the sum is 1 + 2 cos of the angle of the turn


def weighted(pairs: tuple[Axes, ...]) -> list[tuple[float, Axes]]:
    """Return the weight of each product in the row of a direction, and its axes."""
    return [(1.0, pairs[0])] if len(pairs) == 1 else [(0.5, pairs[0]), (-0.5, pairs[1])]


def _one_pose(value: Any, what: str) -> Pose:
    if not isinstance(value, Pose) or value.translation.shape != (3,):
        raise ModelError(f"{what} is {excerpt(value)}; expected one Pose, such as Pose(translation=(0, 0, 1))")
    return value


def _number(value: npt.ArrayLike, what: str) -> float:
    return float(numbers(value, what, ()))


def _ratio(value: npt.ArrayLike, what: str) -> float:
    found = _number(value, what)
    if found == 0.0:
        raise ModelError(f'{what} is 0; expected another number. To fix a joint, use model.lock({{"joint": position}})')
    return found


class SideField(NamedTuple):
    """A field that a constraint has for each of its bodies. Its name has the ending "_a" or "_b".

    Attributes
    ----------
    checked : function
        Converts a value. Raises a ModelError that names it as the second argument if it is invalid.
    of_pose : function
        Returns the value for the pose of the frame of the constraint in the frame of the body.
    moved : function
        Returns the value in the outer frame of a pose, the first argument.
    arrays : tuple
        The arrays of a `Description` that contain the value, without "constraint_" and the ending.
    """

    checked: Callable[[Any, str], Any]
    of_pose: Callable[[Pose], Any]
    moved: Callable[[Pose, Any], Any]
    arrays: tuple[str, ...]


SIDE_FIELDS = {
    "point": SideField(
        vector3, lambda pose: pose.translation, lambda outer, x: outer.rotation @ x + outer.translation, ("point",)
    ),
    "axis": SideField(unit_axis, lambda pose: pose.rotation[:, 2], lambda outer, x: outer.rotation @ x, ("axes",)),
    "pose": SideField(_one_pose, lambda pose: pose, lambda outer, x: outer @ x, ("point", "axes")),
}
#: Fields with one value, and the functions that check and convert them.
NUMBERS = {"length": positive, "ratio": _ratio, "offset": _number}
#: Fields of a compliant constraint; None for a rigid constraint. Their numbers are positive.
COMPLIANCES = ("compliance", "angular_compliance", "relaxation_time")
#: The relaxation time of a compliant constraint by default, s.
RELAXATION_TIME = 1e-3


def name_of(constraint: DeclaredConstraint) -> str:
    """Return the type and the name of a constraint, for a message."""
    return f"{type(constraint).__name__} {constraint.name!r}"


class DeclaredConstraint(Value):
    """Base class of all constraints. It checks the name and the numbers of the fields.

    Attributes
    ----------
    kind : str
        Name of the class in files.
    rows : Rows
    side_fields : tuple
        Keys of `SIDE_FIELDS`.
    """

    internal_names: ClassVar[tuple[str, ...]] = (
        *("kind", "rows", "side_fields", "arrays", "part_of", "poses", "names_of_compliances"),
    )
    kind: ClassVar[str]
    rows: ClassVar[Rows]
    side_fields: ClassVar[tuple[str, ...]] = ()
    name: str

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name):
            raise ModelError(f"{type(self).__name__}: its name is {excerpt(self.name)}; expected a non-empty string")
        self._check_ends()
        checks = {f"{name}_{side}": SIDE_FIELDS[name].checked for name in self.side_fields for side in "ab"} | NUMBERS
        for name in (field.name for field in fields(self) if field.name in checks):  # type: ignore[arg-type]
            value = checks[name](getattr(self, name), f"{name_of(self)}: {name}")
            object.__setattr__(self, name, value)  # the dataclass is frozen
        self._check_compliances()

    def _check_compliances(self) -> None:
        """Check the numbers of a compliant constraint."""
        given = {name: getattr(self, name) for name in COMPLIANCES if getattr(self, name, None) is not None}
        if not given:
            return
        expected = [name for name in self.names_of_compliances() if name != "relaxation_time"]
        missing = [name for name in expected if name not in given]
        if missing:
            raise ModelError(
                f"{name_of(self)}: {', '.join(given)} is given without {', '.join(missing)}; expected "
                f"{' and '.join(expected)} of a compliant constraint, or none of them for a rigid constraint"
            )
        given.setdefault("relaxation_time", RELAXATION_TIME)
        for name, value in given.items():
            object.__setattr__(self, name, positive(value, f"{name_of(self)}: {name}"))

    @classmethod
    def names_of_compliances(cls) -> tuple[str, ...]:
        """Return the names in `COMPLIANCES` that apply to this class."""
        return tuple(name for name in COMPLIANCES if name in cls.__annotations__)

    def _check_ends(self) -> None:
        """Check the bodies or joints that the constraint connects."""
        raise NotImplementedError

    @classmethod
    def arrays(cls, is_compliant: bool = False) -> set[str]:
        """Return the names of the fields of a Description that contain the numbers of such a constraint."""
        found = {name for name in NUMBERS if name in cls.__annotations__}
        found |= {*cls.names_of_compliances()} if is_compliant else set()
        found |= {f"{array}_{side}" for name in cls.side_fields for array in SIDE_FIELDS[name].arrays for side in "ab"}
        return {f"constraint_{name}" for name in found}


class BodyConstraint(DeclaredConstraint):
    """Base class of the constraints between two bodies."""

    renamed_arguments: ClassVar[dict[str, str]] = {"body_a": "frame_a", "body_b": "frame_b"}
    renamed_attributes: ClassVar[dict[str, str]] = renamed_arguments

    frame_a: str | None
    frame_b: str | None
    compliance: float | None = None

    def _check_ends(self) -> None:
        for field in ("frame_a", "frame_b"):
            frame = getattr(self, field)
            if not (frame is None or isinstance(frame, str)):
                raise ModelError(
                    f"{name_of(self)}: {field} is {excerpt(frame)}; expected the name of a body or frame, or None for "
                    "the world"
                )
        if self.frame_a == self.frame_b:
            end = "the world" if self.frame_a is None else repr(self.frame_a)
            raise ModelError(f"{name_of(self)}: it connects {end} to itself; expected two different bodies")

    @classmethod
    def part_of(cls, pose: Pose) -> Pose:
        """Return a pose of the frame of the constraint without the axes that its rows do not depend on."""
        if "pose" in cls.side_fields:
            return pose
        axes = axes_along(normalized(pose.rotation[:, 2])) if "axis" in cls.side_fields else None
        return Pose(pose.translation, axes)

    @property
    def poses(self) -> tuple[Pose, Pose]:
        """The poses of the axes of the constraint in `frame_a` and `frame_b`. z is the axis, if it has one."""
        return self._pose("a"), self._pose("b")

    def _pose(self, side: str) -> Pose:
        if "pose" in self.side_fields:
            return getattr(self, f"pose_{side}")
        axes = axes_along(getattr(self, f"axis_{side}")) if "axis" in self.side_fields else None
        return Pose(getattr(self, f"point_{side}"), axes)
