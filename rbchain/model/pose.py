"""Rigid displacements: where one frame stands in another."""

from dataclasses import dataclass

import numpy as np

from ..errors import ModelError


def rotation_matrix(rotation):
    """Rotation matrix (3, 3) from None (no rotation), a matrix, or a quaternion [x, y, z, w].

    A quaternion is normalised. Raises ModelError unless the result is a proper rotation to 1e-6.
    """
    if rotation is None:
        return np.eye(3)
    found = np.asarray(rotation, dtype=np.float64)
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


def vector3(value, what):
    """A finite vector of three numbers, or a ModelError that says what it was for."""
    found = np.asarray(value, dtype=np.float64)
    if found.shape != (3,):
        raise ModelError(f"{what} has shape {found.shape}; expected (3,)")
    if not np.isfinite(found).all():
        raise ModelError(f"{what} is {found.tolist()}; expected finite numbers")
    return found


@dataclass(frozen=True, eq=False)
class Pose:
    """Position and orientation of a frame in another.

    Parameters
    ----------
    translation : (..., 3) array, m
        Origin of the frame in the other frame.
    rotation : None, (..., 3, 3) array, or quaternion [x, y, z, w]
        Turns the frame's axes into the other's: ``p_other = rotation @ p + translation``.

    Examples
    --------
    >>> import rbchain as rb
    >>> quarter_turn = rb.Pose(translation=(1, 0, 0), rotation=(0, 0, 1, 1))
    >>> (quarter_turn @ quarter_turn).translation.round(12).tolist()
    [1.0, 1.0, 0.0]
    """

    translation: np.ndarray = (0.0, 0.0, 0.0)
    rotation: np.ndarray = None

    def __post_init__(self):
        translation, rotation = np.asarray(self.translation), self.rotation
        if translation.ndim < 2:
            translation, rotation = vector3(translation, "translation"), rotation_matrix(rotation)
        object.__setattr__(self, "translation", translation)
        object.__setattr__(self, "rotation", rotation)

    def __matmul__(self, other):
        """The pose of a frame that has pose `other` in a frame with this pose."""
        return Pose(
            self.translation + (self.rotation @ other.translation[..., None])[..., 0], self.rotation @ other.rotation
        )
