"""The joints a body can hang on. The axis is in the body's frame, and the same in the joint's."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .pose import numbers, unit_axis


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
        object.__setattr__(self, "pitch", float(numbers(self.pitch, "pitch", ())))


@dataclass(frozen=True)
class Fixed:
    """Does not move: the body becomes part of its parent, and its name stays as that of a frame."""

    kind: ClassVar[str] = "fixed"
