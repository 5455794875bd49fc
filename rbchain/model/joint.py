"""The joints a body can hang on. Axes are in the body's frame, which at q = 0 is the joint's.

Each joint is a sequence of `dofs`, its degrees of freedom: motions along or about one axis each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from .pose import Array, normalized, numbers, vector3

X, Y, Z = np.eye(3)


class Dof(NamedTuple):
    """One degree of freedom: "revolute", "prismatic" or "screw" along a unit axis; pitch of a screw in m/rad."""

    kind: str
    axis: np.ndarray
    pitch: float = 0.0


def _direction(axis: npt.ArrayLike) -> np.ndarray:
    """The axis at length 1; zero as it is, for the builder to refuse with the joint's name."""
    return normalized(vector3(axis, "axis"))


@dataclass(frozen=True, eq=False)
class Revolute:
    """Turns about `axis` by q (rad), right-handed."""

    axis: Array = (0.0, 0.0, 1.0)  # type: ignore[assignment]
    kind: ClassVar[str] = "revolute"

    @property
    def dofs(self) -> tuple[Dof, ...]:
        return (Dof(self.kind, self.axis),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", _direction(self.axis))


@dataclass(frozen=True, eq=False)
class Prismatic:
    """Slides along `axis` by q (m)."""

    axis: Array = (0.0, 0.0, 1.0)  # type: ignore[assignment]
    kind: ClassVar[str] = "prismatic"

    @property
    def dofs(self) -> tuple[Dof, ...]:
        return (Dof(self.kind, self.axis),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", _direction(self.axis))


@dataclass(frozen=True, eq=False)
class Screw:
    """Turns about `axis` by q (rad) and slides along it by `pitch` q; `pitch` in m/rad, right-handed."""

    axis: np.ndarray
    pitch: float
    kind: ClassVar[str] = "screw"

    @property
    def dofs(self) -> tuple[Dof, ...]:
        return (Dof(self.kind, self.axis, self.pitch),)

    if TYPE_CHECKING:  # to mypy a field without a default is no descriptor, as `Array` is

        def __init__(self, axis: npt.ArrayLike, pitch: float) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", _direction(self.axis))
        object.__setattr__(self, "pitch", float(numbers(self.pitch, "pitch", ())))


@dataclass(frozen=True)
class Fixed:
    """Does not move: the body becomes part of its parent, and its name stays as that of a frame."""

    kind: ClassVar[str] = "fixed"
    dofs: ClassVar[tuple[Dof, ...]] = ()


@dataclass(frozen=True)
class Free:
    """Moves anywhere: six degrees of freedom.

    q = [x, y, z, qx, qy, qz, qw]: the body's origin (m) and orientation (unit quaternion) in the placement frame. The
    velocity is [linear, angular] of the body's origin against the parent, in the body's axes, and qdd its time
    derivative; tau is the force and the moment about that origin, in the body's axes. So it is in Pinocchio
    (free-flyer); MuJoCo has the linear velocity in world axes and the quaternion's w first.
    """

    kind: ClassVar[str] = "free"
    dofs: ClassVar[tuple[Dof, ...]] = (
        *(Dof("prismatic", axis) for axis in (X, Y, Z)),
        *(Dof("revolute", axis) for axis in (X, Y, Z)),
    )


@dataclass(frozen=True)
class Spherical:
    """Turns about any axis through the origin: three degrees of freedom.

    q = [qx, qy, qz, qw], the orientation (unit quaternion) in the placement frame. The velocity is the angular velocity
    against the parent in the body's axes, qdd its time derivative, tau the moment in the body's axes. So it is in
    Pinocchio and MuJoCo, but for the order of MuJoCo's quaternion.
    """

    kind: ClassVar[str] = "spherical"
    dofs: ClassVar[tuple[Dof, ...]] = tuple(Dof("revolute", axis) for axis in (X, Y, Z))


@dataclass(frozen=True, eq=False)
class Composite:
    """One-dof joints one after the other at one point: each moves the next.

    q and v are theirs in turn, v = dq/dt. `joints` are Revolute, Prismatic or Screw, each axis in the frame that those
    before have moved; at q = 0 all frames are one.
    """

    joints: Sequence[Revolute | Prismatic | Screw]
    kind: ClassVar[str] = "composite"

    @property
    def dofs(self) -> tuple[Dof, ...]:
        return tuple(joint.dofs[0] for joint in self.joints)

    def __post_init__(self) -> None:
        joints = tuple(self.joints) if isinstance(self.joints, (tuple, list)) else (self.joints, None)
        if not joints or not all(isinstance(joint, (Revolute, Prismatic, Screw)) for joint in joints):
            raise ModelError(
                f"joints are {joints!r}; expected at least one Revolute, Prismatic or Screw, and no others"
            )
        object.__setattr__(self, "joints", joints)


@dataclass(frozen=True, eq=False)
class Universal:
    """Turns about `first`, then about `second` in the frame that has been turned: q = [angle, angle] (rad)."""

    first: Array = (1.0, 0.0, 0.0)  # type: ignore[assignment]
    second: Array = (0.0, 1.0, 0.0)  # type: ignore[assignment]
    kind: ClassVar[str] = "universal"

    @property
    def dofs(self) -> tuple[Dof, ...]:
        return (Dof("revolute", self.first), Dof("revolute", self.second))

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", _direction(self.first))
        object.__setattr__(self, "second", _direction(self.second))


@dataclass(frozen=True, eq=False)
class Planar:
    """Slides in the plane normal to `axis`, then turns about it: q = [x, y, angle] (m, m, rad), v = dq/dt.

    The directions of sliding stay with the placement frame. For `axis` z they are its x and y; for an axis in the upper
    half (z >= 0) what the smallest turn that takes z to it makes of these, and in the lower half that smallest turn for
    the axis with y and z reversed, then y and z reversed in the result. (So it is in Drake; Pinocchio's velocity is in
    the body's axes, and its angle a cosine and a sine.)
    """

    axis: Array = (0.0, 0.0, 1.0)  # type: ignore[assignment]
    kind: ClassVar[str] = "planar"

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", _direction(self.axis))

    @property
    def dofs(self) -> tuple[Dof, ...]:
        turn = axes_along(self.axis)
        return (Dof("prismatic", turn[:, 0]), Dof("prismatic", turn[:, 1]), Dof("revolute", self.axis))


JOINTS = (Revolute, Prismatic, Screw, Fixed, Free, Spherical, Planar, Universal, Composite)
AnyJoint = Revolute | Prismatic | Screw | Fixed | Free | Spherical | Planar | Universal | Composite
#: Joints whose orientation is a quaternion, with the length of their part of q.
QUATERNION_JOINTS = {Free.kind: 7, Spherical.kind: 4}


def axes_along(axis: np.ndarray) -> np.ndarray:
    """Rotations (..., 3, 3) that take z to `axis` (..., 3), smoothly but at -z; the identity for z itself.

    In the upper half the smallest turn; in the lower half that for the axis turned over about x, turned over.
    """
    x, y, z = np.moveaxis(axis, -1, 0)
    sign = np.where(z >= 0.0, 1.0, -1.0)
    a, b, c = x, sign * y, sign * z
    d = 1.0 / (1.0 + c)
    upper = np.array([[1.0 - a * a * d, -a * b * d, a], [-a * b * d, 1.0 - b * b * d, b], [-a, -b, c]])
    rotation = np.moveaxis(upper, (0, 1), (-2, -1))
    return np.stack([np.ones_like(sign), sign, sign], -1)[..., :, None] * rotation
