"""The base class of contacts of a shape on a body with a plane of the world."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt
from ..errors import ArgumentError
from ..model.pose import Pose, normalized
from .body_contacts import BodyContact
from .numeric_fields import LARGEST, LARGEST_FLOAT32, NumericField
from .packing import SampleNumbers

if TYPE_CHECKING:
    from ..facade.model import Model

#: The numeric fields of the plane and of both materials.
PLANE_FIELDS = (
    NumericField("plane_point", "m", -LARGEST, LARGEST, (3,)),
    NumericField("plane_normal", "1", -LARGEST, LARGEST, (3,)),
    NumericField("friction", "1", 0.0, LARGEST_FLOAT32),
    NumericField("restitution", "1", 0.0, 1.0),
)


class PlaneContact(BodyContact):
    """Base class of the contacts of a shape on a body with a fixed plane.

    Each subclass has these fields, and declares `point` and `PLANE_FIELDS` in `numeric_fields`. Its `flatten` calls
    `add_center` and `add_plane`.
    """

    internal_names: ClassVar[tuple[str, ...]] = (*BodyContact.internal_names, "add_center", "add_plane", "height")
    frame: str
    point: npt.ArrayLike
    plane_point: npt.ArrayLike
    plane_normal: npt.ArrayLike

    def __post_init__(self) -> None:
        super().__post_init__()
        normal = self.numeric_field("plane_normal").checked(self.label(), self.plane_normal)
        if not np.any(normal, -1).all():
            raise ArgumentError(
                f"{self.label()}: plane_normal is {excerpt(normal.tolist())}; expected vectors that are not zero"
            )

    @property
    def has_tangents(self) -> bool:
        return True

    def add_center(self, model: Model, what: str, numbers: SampleNumbers) -> tuple[int, Pose]:
        """Add the center in the axes of the body to the numbers.

        Returns the last dof of the body, and the pose of the frame on it. A frame of the world raises an ArgumentError.
        """
        frame = model.kernel_model.frame(self.frame)
        if frame.body < 0:
            raise ArgumentError(
                f"{what}: this frame is fixed to the world; expected a moving body, or a frame fixed to one"
            )
        point = self.numeric_field("point").checked(what, self.point)
        numbers.add_row(f"{what}: point", point @ frame.pose.rotation.T + frame.pose.translation)
        return int(model.kernel_model.dofs.last[frame.body]), frame.pose

    def add_plane(self, what: str, numbers: SampleNumbers) -> None:
        """Add the point, the normal and two tangents of the plane to the numbers."""
        numbers.add_field(what, self, "plane_point")
        normal = self.numeric_field("plane_normal").checked(what, self.plane_normal)
        axes = _axes_of_one_plane(normal.tobytes()) if normal.ndim == 1 else axes_of_plane(normal)
        for direction in axes:
            numbers.add_row(f"{what}: plane_normal", direction)

    def height(self, pose: Pose) -> float:
        """Return the height of the center above the plane, m, for a pose of the frame. Fields are single numbers."""
        normal = np.asarray(self.plane_normal, float)
        above = pose.rotation @ np.asarray(self.point, float) + pose.translation - np.asarray(self.plane_point)
        return float(above @ normal / np.linalg.norm(normal))


def axes_of_plane(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the unit vector along each normal (..., 3), and two tangents."""
    unit = normalized(normal)
    return unit, *tangents_of_plane(unit)


@lru_cache(maxsize=256)
def _axes_of_one_plane(normal: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `axes_of_plane` for the bytes of one normal (3,): contacts are converted again for each simulation."""
    return axes_of_plane(np.frombuffer(normal))


def tangents_of_plane(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors that form a right-handed frame with each normal (..., 3)."""
    axis = np.eye(3)[np.argmin(np.abs(normal), -1)]
    first = normalized(np.cross(axis, normal))
    return first, np.cross(normal, first)
