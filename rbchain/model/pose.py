"""Pose: position and orientation of a frame in another; checks of vectors, axes and rotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ..common.lock_free import cached_property
from ..common.pickles import new
from ..common.real_arrays import FloatArray, excerpt, real_array
from ..common.values import Value
from ..errors import ArgumentError, ModelError

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

#: Largest error of a given rotation matrix, as entries of R R^T - 1. The nearest rotation replaces the matrix.
NEARLY_ORTHOGONAL = 1e-6
#: A matrix with an error up to this one is a rotation up to round-off, and is not changed.
ORTHOGONAL = 1e-15

#: Limits of lengths, masses and densities: the inertia of a solid, a density times a fifth power of lengths, does not
#: overflow float64.
SMALLEST, LARGEST = 1e-50, 1e50

Given_contra = TypeVar("Given_contra", contravariant=True)
Found_co = TypeVar("Found_co", covariant=True)


class Made(Generic[Given_contra, Found_co]):
    """Type of a field that the constructor accepts as one type and `__post_init__` converts to another."""

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: Any = None) -> Found_co: ...
        def __set__(self, instance: object, value: Given_contra) -> None: ...


Array = Made[npt.ArrayLike, FloatArray]


def numbers(value: npt.ArrayLike, what: str, shape: tuple[int, ...] | None = None, finite: bool = True) -> FloatArray:
    """Copy real numbers to an array; raise a ModelError that names them as `what` if they are invalid."""
    found = np.array(real_array(what, value, ModelError))
    if shape is not None and found.shape != shape:
        description = f"has shape {found.shape}" if found.shape else f"is the single number {found}"
        raise ModelError(f"{what} {description}; expected {f'shape {shape}' if shape else 'a single number'}")
    if finite and not np.isfinite(found).all():
        raise ModelError(f"{what} is {found.tolist()}; expected finite numbers")
    return found


def vector3(value: npt.ArrayLike, what: str) -> FloatArray:
    """Copy three finite values to an array (3,); raise a ModelError that names them as `what` otherwise."""
    return numbers(value, what, (3,))


def positive(value: npt.ArrayLike, what: str) -> float:
    """Convert a positive number to a float; raise a ModelError that names it as `what` otherwise."""
    found = float(numbers(value, what, ()))
    if found <= 0.0:
        raise ModelError(f"{what} is {found}; expected a positive number")
    if not SMALLEST <= found <= LARGEST:
        raise ModelError(f"{what} is {found}; expected a number from {SMALLEST:g} to {LARGEST:g}")
    return found


def asymmetry(matrix: FloatArray) -> str:
    """Describe for a message why a finite matrix (m, m) is not symmetric, by its most different pair of entries."""
    half = matrix / 2.0  # so that differences do not overflow
    i, j = np.unravel_index(np.argmax(np.abs(half - half.T)), matrix.shape)
    return (
        f"is not symmetric: its element [{i}, {j}] is {float(matrix[i, j])} and its element [{j}, {i}] is "
        f"{float(matrix[j, i])}; expected equal numbers"
    )


def rotation_matrix(rotation: npt.ArrayLike | Rotation | None) -> FloatArray:
    """Return the rotation matrix (3, 3) of a rotation.

    It is None (no rotation), a matrix, a quaternion [x, y, z, w] of any length, or SciPy's Rotation.

    A matrix that is orthogonal to within 1e-6 is replaced by the nearest rotation. Raises a ModelError for other
    matrices and for the zero quaternion.
    """
    if rotation is None:
        return np.eye(3)
    if hasattr(rotation, "as_matrix"):  # SciPy's Rotation, whose import takes longer than rbchain's
        rotation = rotation.as_matrix()
    found = numbers(rotation, "rotation")
    if found.shape == (4,):
        if not found.any():
            raise ModelError(f"rotation is the quaternion {found.tolist()}; expected [x, y, z, w], not all zero")
        x, y, z, w = np.ldexp(found, -_exponent(found))
        xx, yy, zz, ww = x * x, y * y, z * z, w * w
        # the squared length divides at the end, so that rotations by 90 degrees are exact
        matrix = [
            [ww + xx - (yy + zz), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), ww + yy - (xx + zz), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), ww + zz - (xx + yy)],
        ]
        return nearest_rotation(np.array(matrix) / (xx + yy + zz + ww))
    if found.shape != (3, 3):
        raise ModelError(
            f"rotation has shape {found.shape}; expected (3, 3), or (4,) for a quaternion [x, y, z, w]. For Euler "
            "angles, use scipy.spatial.transform.Rotation.from_euler"
        )
    if not is_rotation(found):
        raise ModelError(
            f"rotation is {found.tolist()}; expected a rotation matrix, orthogonal to within {NEARLY_ORTHOGONAL:g} and "
            "with determinant 1"
        )
    return nearest_rotation(found)


def is_rotation(matrix: np.ndarray) -> np.ndarray:
    """Whether finite matrices (..., 3, 3) are rotations within `NEARLY_ORTHOGONAL`; shape (...)."""
    with np.errstate(over="ignore", invalid="ignore"):  # products of large values overflow
        return (_off_orthogonal(matrix) <= NEARLY_ORTHOGONAL) & (np.linalg.det(matrix) > 0.0)


def nearest_rotation(matrix: FloatArray) -> FloatArray:
    """Return the rotations nearest to matrices (..., 3, 3) that are rotations within `NEARLY_ORTHOGONAL`.

    They are the orthogonal polar factors. The iteration R (3 - R^T R) / 2 squares the error in each step (Bjorck and
    Bowie 1971). A matrix that is a rotation up to round-off is returned unchanged, so that writing and reading a model
    does not change it.
    """
    found = matrix
    for _ in range(2):
        off = _off_orthogonal(found)[..., None, None] > ORTHOGONAL
        found = np.where(off, found @ (3.0 * np.eye(3) - np.swapaxes(found, -1, -2) @ found) / 2.0, found)
    return found


def _off_orthogonal(matrix: FloatArray) -> FloatArray:
    return np.abs(matrix @ np.swapaxes(matrix, -1, -2) - np.eye(3)).max((-1, -2))


def unit_axis(axis: npt.ArrayLike, what: str = "axis") -> FloatArray:
    """Return the axis scaled to length 1. Raises a ModelError that names it as `what` if it is zero or text."""
    if isinstance(axis, str):
        raise ModelError(f"{what} is {axis!r}; expected a vector of three numbers, such as (0, 0, 1) for the axis z")
    found = vector3(axis, what)
    if not found.any():
        raise ModelError(f"{what} is {found.tolist()}; expected a non-zero vector")
    return normalized(found)


def normalized(vectors: FloatArray) -> FloatArray:
    """Return finite vectors (..., m) scaled to length 1. Zero vectors remain zero; the caller has to check for them."""
    exponent = _exponent(vectors)
    scaled = np.ldexp(vectors, -exponent)
    length = np.linalg.norm(scaled, axis=-1, keepdims=True)
    # vectors of length 1 up to round-off are not changed, so that writing and reading a model does not change it
    keep = (length == 0.0) | (np.abs(np.ldexp(length, exponent) - 1.0) <= 4e-16)
    return np.where(keep, vectors, scaled / np.where(keep, 1.0, length))


def _exponent(vectors: FloatArray) -> FloatArray:
    """Exponents of two (..., 1) to scale vectors (..., m) with, so that their squares do not overflow."""
    return np.frexp(np.abs(vectors).max(-1, keepdims=True))[1]


@dataclass(frozen=True, eq=False)
class Pose(Value):
    """Position and orientation of a frame in an outer frame.

    A point p in the frame has the outer coordinates ``rotation @ p + translation``. Poses that rbchain returns may be
    batches, with translations (..., 3) and rotations (..., 3, 3).

    Parameters
    ----------
    translation : (3,) array, m
        Origin of the frame in the outer frame.
    rotation : None, (3, 3) array, quaternion [x, y, z, w], or SciPy Rotation
        Rotation from the axes of the frame to the outer axes; no rotation by default. A quaternion may have any length
        except zero. For Euler angles, pass `scipy.spatial.transform.Rotation.from_euler(...)`.

    Raises
    ------
    ModelError
        If the translation does not have three finite components, or the rotation is not a rotation within 1e-6.

    Examples
    --------
    >>> import rbchain as rb
    >>> quarter_turn = rb.Pose(translation=(1, 0, 0), rotation=(0, 0, 1, 1))
    >>> (quarter_turn @ quarter_turn).translation.round(12).tolist()
    [1.0, 1.0, 0.0]
    """

    translation: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    rotation: Made[npt.ArrayLike | Rotation | None, FloatArray] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        translation, rotation = vector3(self.translation, "translation"), rotation_matrix(self.rotation)
        object.__setattr__(self, "translation", translation)
        object.__setattr__(self, "rotation", rotation)

    @classmethod
    def from_matrix(cls, matrix: npt.ArrayLike) -> Pose:
        """Make a pose from a homogeneous matrix (4, 4), as `Pose.matrix` returns it.

        Raises
        ------
        ModelError
            If the shape is not (4, 4), the last row is not [0, 0, 0, 1], or the rotation is not a rotation within 1e-6.

        Examples
        --------
        >>> import rbchain as rb
        >>> pose = rb.Pose((1, 2, 3), rotation=(0, 0, 1, 1))
        >>> rb.Pose.from_matrix(pose.matrix) == pose
        True
        """
        found = numbers(matrix, "matrix", (4, 4))
        if not np.array_equal(found[3], (0.0, 0.0, 0.0, 1.0)):
            raise ModelError(f"matrix has the last row {found[3].tolist()}; expected [0, 0, 0, 1]")
        return cls(found[:3, 3], found[:3, :3])

    @property
    def matrix(self) -> FloatArray:
        """Homogeneous matrices (..., 4, 4): the rotation, the translation in the last column, the last row 0 0 0 1."""
        found = np.zeros((*self.translation.shape[:-1], 4, 4), self.translation.dtype)
        found[..., :3, :3], found[..., :3, 3], found[..., 3, 3] = self.rotation, self.translation, 1.0
        return found

    @property
    def quaternion(self) -> FloatArray:
        """Unit quaternions (..., 4) of the rotation, [x, y, z, w] with w >= 0, as in SciPy."""
        from scipy.spatial.transform import Rotation  # takes longer to import than rbchain

        writable = self.rotation.reshape(-1, 3, 3).copy()  # as SciPy needs it
        return Rotation.from_matrix(writable).as_quat(canonical=True).reshape(*self.rotation.shape[:-2], 4)

    def apply(self, points: npt.ArrayLike) -> FloatArray:
        """Return the outer coordinates of points in the frame.

        Parameters
        ----------
        points : (..., 3) array, m
            Points; their leading axes broadcast with the axes of a batch of poses.

        Examples
        --------
        >>> import rbchain as rb
        >>> quarter_turn = rb.Pose((1, 0, 0), rotation=(0, 0, 1, 1))
        >>> quarter_turn.apply([[1, 0, 0], [0, 2, 0]]).round(12).tolist()
        [[1.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
        """
        found = real_array("points", points, ArgumentError)
        if found.shape[-1:] != (3,):
            raise ArgumentError(f"points has shape {found.shape}; expected (..., 3)")
        return (self.rotation @ found[..., None])[..., 0] + self.translation

    def inverse(self) -> Pose:
        """Return the pose of the outer frame in this frame.

        Examples
        --------
        >>> import rbchain as rb
        >>> pose = rb.Pose((1, 0, 0), rotation=(0, 0, 1, 1))
        >>> (pose @ pose.inverse()).translation.round(12).tolist()
        [0.0, 0.0, 0.0]
        """
        back = np.swapaxes(self.rotation, -1, -2)
        return computed_pose(-(back @ self.translation[..., None])[..., 0], back)

    def __matmul__(self, other: Pose) -> Pose:
        """Compose two poses: `other` is a pose in the frame that has this pose."""
        if not isinstance(other, Pose):
            raise TypeError(f"cannot compose a Pose with {excerpt(other)}; use pose.apply(points) to transform points")
        translation = self.translation + (self.rotation @ other.translation[..., None])[..., 0]
        return computed_pose(translation, self.rotation @ other.rotation)


def computed_pose(translation: FloatArray, rotation: FloatArray) -> Pose:
    """Return a pose of computed arrays without checking, converting or copying them."""
    pose = object.__new__(Pose)
    object.__setattr__(pose, "translation", translation)
    object.__setattr__(pose, "rotation", rotation)
    return pose


class PoseOfRows(Pose):
    """Poses whose arrays are views of rows (..., 4, 3): the translation, then the rotation matrix.

    The views are created when they are first read. This takes longer than to compute the poses of a few bodies.
    """

    def __init__(self, rows: FloatArray) -> None:
        object.__setattr__(self, "_rows", rows)

    @cached_property
    def translation(self) -> FloatArray:
        return self._rows[..., 0, :]

    @cached_property
    def rotation(self) -> FloatArray:
        return self._rows[..., 1:, :]

    def __reduce__(self) -> Any:
        return new, ("Pose",), {"translation": self.translation, "rotation": self.rotation}

    if TYPE_CHECKING:
        _rows: FloatArray


PoseOfRows.__name__ = PoseOfRows.__qualname__ = Pose.__name__  # which texts and messages show
