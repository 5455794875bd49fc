"""Contact of an ellipsoid or a disk on a body with a plane of the world."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt
from ..core.contacts.contact_shapes import ELLIPSOID_PLANE
from ..core.contacts.ellipsoid_plane import THINNEST
from ..errors import ArgumentError
from .body_contacts import MATERIAL
from .numeric_fields import LARGEST, LARGEST_FLOAT32, NumericField
from .packing import SampleNumbers
from .plane_contacts import PLANE_FIELDS, PlaneContact

if TYPE_CHECKING:
    from ..facade.model import Model


@dataclass(frozen=True, eq=False)
class EllipsoidContact(PlaneContact):
    """Contact of an ellipsoid on a body, or of the rim of a disk, with a fixed plane.

    Parameters
    ----------
    frame : str
        Name of a body, or of a frame on fixed joints.
    point : (3,) or (..., 3) array, m
        Center, in the axes of `frame`, from its origin. An array has one row for each sample, here and in the other
        parameters.
    semi_axes : (3, 3) or (..., 3, 3) array, m
        Each row is the vector of a semi-axis, in the axes of `frame`. One of them is zero for a disk, such as
        `np.diag((0.1, 0.1, 0))` for a disk with a radius of 0.1 m and the axis z. Vectors that are not perpendicular
        are conjugate semi-axes.
    plane_point, plane_normal, friction, restitution, max_records, name
        As in `SphereContact`.

    Notes
    -----
    The force acts at the lowest point, which moves on the ellipsoid or on the rim. Rolling and spinning friction are
    not modeled. A cylinder has two contacts: the disks at its ends. `Model.simulate` describes which methods support
    contact.

    A disk that lies flat on the plane has no unique lowest point. rbchain then uses its center, which does not resist
    tipping. For a standing cylinder, use several contact points on its rim: a `SphereContact` with a radius of 0 for
    each.

    Examples
    --------
    A coin of 5 cm rolls upright with 2 rad/s:

    >>> import numpy as np, rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> builder.add_body("coin", joint=rb.Free(), inertia=rb.Inertia(0.1, inertia=(6e-5, 6e-5, 12e-5)))
    >>> floor = {"plane_point": (0, 0, 0), "plane_normal": (0, 0, 1), "friction": 0.5}
    >>> rim = rb.EllipsoidContact("coin", point=(0, 0, 0), semi_axes=np.diag((0.05, 0.05, 0)), **floor)
    >>> upright = [0, 0, 0.05, 0.5**0.5, 0, 0, 0.5**0.5]
    >>> motion = builder.build().simulate(upright, [0.1, 0, 0, 0, 0, -2.0], 1.0, forces=[rim])
    >>> motion.q[-1, :3].round(9).tolist()
    [0.1, 0.0, 0.05]
    """

    foreign_arguments: ClassVar = MATERIAL | {
        "normal": "plane_normal",
        "size": "semi_axes",
        "radius": "semi_axes",
        "axis": "semi_axes",
        "center": "point",
    }
    numeric_fields: ClassVar = (
        NumericField("point", "m", -LARGEST, LARGEST, (3,)),
        NumericField("semi_axes", "m", -LARGEST_FLOAT32, LARGEST_FLOAT32, (3, 3)),
        *PLANE_FIELDS,
    )
    frame: str
    _: KW_ONLY
    point: npt.ArrayLike
    semi_axes: npt.ArrayLike
    plane_point: npt.ArrayLike
    plane_normal: npt.ArrayLike
    friction: npt.ArrayLike = 0.0
    restitution: npt.ArrayLike = 0.0
    max_records: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        axes = self.numeric_field("semi_axes").checked(self.label(), self.semi_axes)
        lengths = np.linalg.svd(axes, compute_uv=False)
        if not (lengths[..., 1] > THINNEST * lengths[..., 0]).all():
            raise ArgumentError(
                f"{self.label()}: semi_axes is {excerpt(axes.tolist())}; expected at least two vectors in different "
                "directions. Use SphereContact for points, and two of them for the ends of a rod"
            )

    def flatten(self, model: Model, what: str, numbers: SampleNumbers) -> tuple[int, int, int]:
        dof, pose = self.add_center(model, what, numbers)
        axes = self.numeric_field("semi_axes").checked(what, self.semi_axes) @ pose.rotation.T
        lengths = np.linalg.svd(axes, compute_uv=False)  # the semi-axes, if the vectors are not perpendicular
        largest, smallest = lengths[..., 0], lengths[..., 2]
        numbers.add(f"{what}: semi_axes", largest)
        self.add_plane(what, numbers)
        numbers.add(f"{what}: semi_axes", np.maximum(smallest, THINNEST * largest))
        numbers.add_row(f"{what}: semi_axes", axes.reshape(*axes.shape[:-2], 9))
        return ELLIPSOID_PLANE, dof, model.nv

    def gap(self, model: Model, q: np.ndarray) -> float:
        pose, normal = model.frame_poses(q, self.frame), np.asarray(self.plane_normal, float)
        down = np.asarray(self.semi_axes, float) @ pose.rotation.T @ (normal / np.linalg.norm(normal))
        return self.height(pose) - float(np.linalg.norm(down))
