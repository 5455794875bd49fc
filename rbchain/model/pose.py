"""Rigid displacements: where one frame stands in another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from ..real_arrays import real_array

#: How far from orthogonal a given matrix may be; within that the nearest rotation takes its place.
NEARLY_ORTHOGONAL = 1e-6
#: A matrix this close to orthogonal is a rotation to round-off, and stays as it is.
ORTHOGONAL = 1e-15

#: Of measures and densities: the inertia of a solid, a density times a fifth power of lengths, stays within float64.
SMALLEST, LARGEST = 1e-50, 1e50

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
    found = np.array(real_array(what, value, ModelError))
    if shape is not None and found.shape != shape:
        raise ModelError(f"{what} has shape {found.shape}; expected {shape}")
    if finite and not np.isfinite(found).all():
        raise ModelError(f"{what} is {found.tolist()}; expected finite numbers")
    return found


def vector3(value: npt.ArrayLike, what: str) -> np.ndarray:
    """Three finite numbers, or a ModelError that says what they were for."""
    return numbers(value, what, (3,))


def positive(value: npt.ArrayLike, what: str) -> float:
    """A positive number, or a ModelError that says what it was for."""
    found = float(numbers(value, what, ()))
    if found <= 0.0:
        raise ModelError(f"{what} is {found}; expected a positive number")
    if not SMALLEST <= found <= LARGEST:
        raise ModelError(f"{what} is {found}; expected a number from {SMALLEST:g} to {LARGEST:g}")
    return found


def rotation_matrix(rotation: npt.ArrayLike | None) -> np.ndarray:
    """Rotation matrix (3, 3) from None (no rotation), a matrix, or a quaternion [x, y, z, w] of any length but zero.

    Raises ModelError if a matrix is off a rotation by more than 1e-6; closer ones become the nearest rotation.
    """
    if rotation is None:
        return np.eye(3)
    found = numbers(rotation, "rotation")
    if found.shape == (4,):
        if not found.any():
            raise ModelError(f"rotation is the quaternion {found.tolist()}; expected [x, y, z, w] of non-zero length")
        x, y, z, w = np.ldexp(found, -_exponent(found))
        xx, yy, zz, ww = x * x, y * y, z * z, w * w
        # a quaternion of unit length would carry the round-off of a root into every entry: quarter turns are exact here
        matrix = [
            [ww + xx - (yy + zz), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), ww + yy - (xx + zz), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), ww + zz - (xx + yy)],
        ]
        return nearest_rotation(np.array(matrix) / (xx + yy + zz + ww))
    if found.shape != (3, 3):
        raise ModelError(f"rotation has shape {found.shape}; expected (3, 3), or (4,) for a quaternion [x, y, z, w]")
    if not is_rotation(found):
        raise ModelError(
            f"rotation is {found.tolist()}; expected a rotation matrix, orthogonal to {NEARLY_ORTHOGONAL:g} and of "
            "determinant 1"
        )
    return nearest_rotation(found)


def is_rotation(matrix: np.ndarray) -> np.ndarray:
    """Which finite matrices (..., 3, 3) are rotations to `NEARLY_ORTHOGONAL` (...)."""
    with np.errstate(over="ignore", invalid="ignore"):  # of matrices that are far from it
        return (_off_orthogonal(matrix) <= NEARLY_ORTHOGONAL) & (np.linalg.det(matrix) > 0.0)


def nearest_rotation(matrix: np.ndarray) -> np.ndarray:
    """The rotations nearest to matrices (..., 3, 3) that are rotations to `NEARLY_ORTHOGONAL`.

    They are the orthogonal polar factors, by the iteration R (3 - R^T R) / 2 (Bjorck and Bowie 1971), which squares the
    error. A matrix that is a rotation to round-off is kept to the bit, so that a model survives being written and read.
    """
    found = matrix
    for _ in range(2):
        off = _off_orthogonal(found)[..., None, None] > ORTHOGONAL
        found = np.where(off, found @ (3.0 * np.eye(3) - np.swapaxes(found, -1, -2) @ found) / 2.0, found)
    return found


def _off_orthogonal(matrix: np.ndarray) -> np.ndarray:
    return np.abs(matrix @ np.swapaxes(matrix, -1, -2) - np.eye(3)).max((-1, -2))


def unit_axis(axis: npt.ArrayLike) -> np.ndarray:
    """The axis at length 1. Raises ModelError if it has no direction."""
    found = vector3(axis, "axis")
    if not found.any():
        raise ModelError(f"axis is {found.tolist()}; expected a non-zero vector")
    return normalized(found)


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Finite vectors (..., m) at length 1; zero as it is, for the caller to refuse."""
    exponent = _exponent(vectors)
    scaled = np.ldexp(vectors, -exponent)
    length = np.linalg.norm(scaled, axis=-1, keepdims=True)
    # a vector of unit length to round-off is kept to the bit, so that a model survives being written and read
    keep = (length == 0.0) | (np.abs(np.ldexp(length, exponent) - 1.0) <= 4e-16)
    return np.where(keep, vectors, scaled / np.where(keep, 1.0, length))


def _exponent(vectors: np.ndarray) -> np.ndarray:
    """The power of two to take from vectors (..., m), exactly, before they are squared (..., 1)."""
    return np.frexp(np.abs(vectors).max(-1, keepdims=True))[1]


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
