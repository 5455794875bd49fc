"""Contact of two capsules on two bodies."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from ..core.contacts.contact_shapes import CAPSULES
from ..model.pose import Pose
from .body_contacts import MATERIAL
from .flatten_between_bodies import bodies_at_ends
from .numeric_fields import LARGEST, NumericField
from .packing import SampleNumbers
from .sphere_contacts import SphereSphereContact

if TYPE_CHECKING:
    from ..facade.model import Model


@dataclass(frozen=True, eq=False)
class CapsuleCapsuleContact(SphereSphereContact):
    """Contact of two capsules on two bodies, or of a capsule and a sphere.

    A capsule contains all points that are closer to a segment than its radius.

    Parameters
    ----------
    frame_a, frame_b : str or None
        Names of two bodies, or of frames on fixed joints; None for the world.
    point_a, point_b : (3,) or (..., 3) arrays, m
        Centers of the capsules, each in the axes of its frame, from its origin; in world coordinates for the world. An
        array has one row for each sample, here and in the other parameters.
    half_axis_a, half_axis_b : (3,) or (..., 3) arrays, m
        Vectors from the centers to an end of the segments, in the same axes. Zero (default) for a sphere.
    radius_a, radius_b : float or (...) array, m
        At least 0; their sum is above 0.
    friction, restitution, max_records, name
        As in `SphereSphereContact`.

    Notes
    -----
    The forces act at the points of the surfaces that are closest to each other. These points move on the bodies. The
    derivative of the contact force jumps where a point passes from the cylinder of a capsule to the half-sphere at its
    end. Recorded forces and impulses act on `frame_b`.

    Two parallel capsules touch along a line and have no unique closest points. rbchain then uses the middle of the
    line, which does not resist tipping. For a capsule that lies on another one along its length, use two contacts with
    spheres at its ends.

    Source: Ericson (2005), "Real-Time Collision Detection", section 5.1.9.

    Examples
    --------
    A bar of 0.2 m falls crosswise on a rail with a radius of 0.1 m. Its own radius is 0.05 m:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, -10))
    >>> bar = rb.Inertia(1.0, inertia=(0.002, 0.004, 0.004))
    >>> builder.add_body("bar", joint=rb.Prismatic((0, 0, 1)), inertia=bar)
    >>> crosswise = rb.CapsuleCapsuleContact(
    ...     None, "bar", point_a=(0, 0, 0), half_axis_a=(0, 2, 0), radius_a=0.1,
    ...     point_b=(0.05, 0, 0), half_axis_b=(0.1, 0, 0), radius_b=0.05, restitution=0.5,
    ... )
    >>> motion = builder.build().simulate([[0.95]], duration=0.6, method="moreau", step=0.001, forces=[crosswise])
    >>> motion.q[0, -1].round(6).tolist(), motion.impacts[0].t[0, :1].round(6).tolist()
    ([0.35], [0.4])
    """

    foreign_arguments: ClassVar = MATERIAL | {"size": "radius_a", "length": "half_axis_a", "fromto": "half_axis_a"}
    numeric_fields: ClassVar[tuple[NumericField, ...]] = (
        *SphereSphereContact.numeric_fields,
        NumericField("half_axis_a", "m", -LARGEST, LARGEST, (3,)),
        NumericField("half_axis_b", "m", -LARGEST, LARGEST, (3,)),
    )
    _: KW_ONLY
    half_axis_a: npt.ArrayLike = (0.0, 0.0, 0.0)
    half_axis_b: npt.ArrayLike = (0.0, 0.0, 0.0)

    def flatten(self, model: Model, what: str, numbers: SampleNumbers) -> tuple[int, int, int]:
        _, dof, other = super().flatten(model, what, numbers)
        (_, pose_a), (_, pose_b) = bodies_at_ends(model, what, self)
        for name, pose in (("half_axis_b", pose_b), ("half_axis_a", pose_a)):
            axis = self.numeric_field(name).checked(what, getattr(self, name))
            numbers.add_row(f"{what}: {name}", axis @ pose.rotation.T)
        return CAPSULES, dof, other

    def gap(self, model: Model, q: np.ndarray) -> float:
        segments = []
        for side in "ab":
            frame = getattr(self, f"frame_{side}")
            pose = Pose() if frame is None else model.frame_poses(q, frame)
            center = pose.rotation @ np.asarray(getattr(self, f"point_{side}"), float) + pose.translation
            segments.append((center, pose.rotation @ np.asarray(getattr(self, f"half_axis_{side}"), float)))
        radii = float(np.asarray(self.radius_a)) + float(np.asarray(self.radius_b))
        return distance_of_segments(*segments[0], *segments[1]) - radii


def distance_of_segments(center_a: np.ndarray, half_a: np.ndarray, center_b: np.ndarray, half_b: np.ndarray) -> float:
    """Return the distance of two segments with these centers and half axes (3,), the least |r + t B - s A|."""
    from scipy.optimize import lsq_linear

    between = center_b - center_a
    axes = np.column_stack([half_a, -half_b])
    return float(np.linalg.norm(axes @ lsq_linear(axes, between, (-1.0, 1.0), "bvls", tol=1e-15).x - between))
