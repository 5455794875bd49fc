"""The joints a body can hang on. The axis is in the body's frame, and the same in the joint's."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import ModelError
from .pose import vector3


def unit_axis(axis):
    """The axis at length 1. Raises ModelError if it has no direction."""
    found = vector3(axis, "axis")
    length = np.linalg.norm(found)
    if not 0.0 < length < np.inf:
        raise ModelError(f"axis {found.tolist()} has no direction; expected a vector that is not zero")
    # an axis of unit length to rounding is kept to the bit, so that a model survives being written and read
    return found if abs(length - 1.0) <= 4e-16 else found / length


@dataclass(frozen=True, eq=False)
class Revolute:
    """Turns about `axis` by q (rad), right-handed."""

    axis: np.ndarray = (0.0, 0.0, 1.0)
    kind: ClassVar[str] = "revolute"

    def __post_init__(self):
        object.__setattr__(self, "axis", unit_axis(self.axis))


@dataclass(frozen=True, eq=False)
class Prismatic:
    """Slides along `axis` by q (m)."""

    axis: np.ndarray = (0.0, 0.0, 1.0)
    kind: ClassVar[str] = "prismatic"

    def __post_init__(self):
        object.__setattr__(self, "axis", unit_axis(self.axis))


@dataclass(frozen=True, eq=False)
class Screw:
    """Turns about `axis` by q (rad) and slides along it by `pitch` q; `pitch` in m/rad, right-handed."""

    axis: np.ndarray
    pitch: float
    kind: ClassVar[str] = "screw"

    def __post_init__(self):
        object.__setattr__(self, "axis", unit_axis(self.axis))
        if not np.isfinite(self.pitch):
            raise ModelError(f"pitch is {self.pitch}; expected a finite number of m/rad")
        object.__setattr__(self, "pitch", float(self.pitch))


@dataclass(frozen=True)
class Fixed:
    """Does not move: the body becomes part of its parent, and its name stays as that of a frame."""

    kind: ClassVar[str] = "fixed"
