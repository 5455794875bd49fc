"""Rigid displacements: where one frame stands in another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import ModelError

Given_contra = TypeVar("Given_contra", contravariant=True)
Found_co = TypeVar("Found_co", covariant=True)


class Made(Generic[Given_contra, Found_co]):
    """A dataclass's field to type checkers: what it is given as, and what `__post_init__` makes of that."""

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: Any = None) -> Found_co: ...
        def __set__(self, instance: object, value: Given_contra) -> None: ...


Array = Made[npt.ArrayLike, np.ndarray]


def numbers(value: npt.ArrayLike, what: str, shape: tuple[int, ...] | None = None, finite: bool = True) -> np.ndarray:
    """Real numbers as an array of the model's own, or a ModelError that says what they were for."""
    try:
        found = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} is {value!r}; expected real numbers") from None
    if shape is not None and found.shape != shape:
        raise ModelError(f"{what} has shape {found.shape}; expected {shape}")
    if finite and not np.isfinite(found).all():
        raise ModelError(f"{what} is {found.tolist()}; expected finite numbers")
    return found


def vector3(value: npt.ArrayLike, what: str) -> np.ndarray:
    """Three finite numbers, or a ModelError that says what they were for."""
    return numbers(value, what, (3,))


def rotation_matrix(rotation: npt.ArrayLike | None) -> np.ndarray:
    """Rotation matrix (3, 3) from None (no rotation), a matrix, or a quaternion [x, y, z, w].

    A quaternion is normalised. Raises ModelError unless the result is a proper rotation to 1e-6.
    """
    if rotation is None:
        return np.eye(3)
    found = numbers(rotation, "rotation")
    if found.shape == (4,):
        length = np.linalg.norm(found)
        if not (np.isfinite(length) and length > 0.0):
            raise ModelError(f"quaternion {found.tolist()} has no direction; expected [x, y, z, w] that is not zero")
        x, y, z, w = found / length
        return np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
            ]
        )
    if found.shape != (3, 3):
        raise ModelError(f"rotation has shape {found.shape}; expected (3, 3), or (4,) for a quaternion [x, y, z, w]")
    if not (np.abs(found @ found.T - np.eye(3)).max() <= 1e-6 and np.linalg.det(found) > 0.0):
        raise ModelError(f"rotation {found.tolist()} is not a proper rotation matrix")
    return found


def unit_axis(axis: npt.ArrayLike) -> np.ndarray:
    """The axis at length 1. Raises ModelError if it has no direction."""
    found = vector3(axis, "axis")
    length = np.linalg.norm(found)
    if not 0.0 < length < np.inf:
        raise ModelError(f"axis {found.tolist()} has no direction; expected a vector that is not zero")
    # an axis of unit length to rounding is kept to the bit, so that a model survives being written and read
    return found if abs(length - 1.0) <= 4e-16 else found / length


@dataclass(frozen=True, eq=False)
class Pose:
    """Position and orientation of a frame in another.

    Parameters
    ----------
    translation : (3,) array, m
        Origin of the frame in the other frame.
    rotation : None, (3, 3) array, or quaternion [x, y, z, w]
        Turns the frame's axes into the other's: ``p_other = rotation @ p + translation``.

    Poses that a calculation returns hold arrays (..., 3) and (..., 3, 3).

    Examples
    --------
    >>> import rbchain as rb
    >>> quarter_turn = rb.Pose(translation=(1, 0, 0), rotation=(0, 0, 1, 1))
    >>> (quarter_turn @ quarter_turn).translation.round(12).tolist()
    [1.0, 1.0, 0.0]
    """

    translation: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    rotation: Made[npt.ArrayLike | None, np.ndarray] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        translation, rotation = vector3(self.translation, "translation"), rotation_matrix(self.rotation)
        object.__setattr__(self, "translation", translation)
        object.__setattr__(self, "rotation", rotation)

    @classmethod
    def computed(cls, translation: np.ndarray, rotation: np.ndarray) -> Pose:
        """A pose of arrays that a calculation gave: taken as they are, in their precision, NaN included."""
        pose = object.__new__(cls)
        object.__setattr__(pose, "translation", translation)
        object.__setattr__(pose, "rotation", rotation)
        return pose

    def inverse(self) -> Pose:
        """The pose of the other frame in this one."""
        back = np.swapaxes(self.rotation, -1, -2)
        return Pose.computed(-(back @ self.translation[..., None])[..., 0], back)

    def __matmul__(self, other: Pose) -> Pose:
        """The pose of a frame that has pose `other` in a frame with this pose."""
        translation = self.translation + (self.rotation @ other.translation[..., None])[..., 0]
        return Pose.computed(translation, self.rotation @ other.rotation)
