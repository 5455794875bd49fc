"""Contacts of spheres on bodies: with a plane of the world, and with each other."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from ..core.contacts.contact_shapes import SPHERE_PLANE, SPHERE_SPHERE
from ..errors import ArgumentError
from ..model.pose import Pose
from .between_bodies import FORMER_ENDS
from .body_contacts import MATERIAL, BodyContact
from .flatten_between_bodies import bodies_at_ends
from .numeric_fields import LARGEST, LARGEST_FLOAT32, NumericField
from .packing import SampleNumbers
from .plane_contacts import PLANE_FIELDS, PlaneContact

if TYPE_CHECKING:
    from ..facade.model import Model


@dataclass(frozen=True, eq=False)
class SphereContact(PlaneContact):
    """Contact of a sphere on a body, or of a point, with a fixed plane.

    Parameters
    ----------
    frame : str
        Name of a body, or of a frame on fixed joints.
    point : (3,) or (..., 3) array, m
        Center of the sphere, in the axes of `frame`, from its origin. An array has one row for each sample,
        here and in the other parameters.
    radius : float or (...) array, m
        At least 0; 0 for a point.
    plane_point : (3,) or (..., 3) array, m
        A point of the plane, in the world.
    plane_normal : (3,) or (..., 3) array
        Direction from the plane into the space in which the sphere moves, in world axes; of any length above 0.
    friction : float or (...) array
        Coefficient mu of Coulomb's law, at least 0: the tangential force is at most mu times the normal force.
    restitution : float or (...) array
        Ratio of the normal speeds after and before an impact, from 0 to 1.
    max_records : int
        rbchain records the first `max_records` impacts and intervals of sticking, and counts the rest.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Notes
    -----
    The force acts at the point of the sphere that is closest to the plane. Rolling and spinning friction are not
    modeled. `Model.simulate` describes which methods support contact.

    Examples
    --------
    A ball falls from a height of 0.8 m and rebounds to 0.2 m:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, -10))
    >>> builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    >>> plane = {"plane_point": (0, 0, 0), "plane_normal": (0, 0, 1)}
    >>> floor = rb.SphereContact("ball", point=(0, 0, 0), radius=0.1, **plane, restitution=0.5)
    >>> motion = builder.build().simulate([[0.9]], duration=0.6, method="moreau", step=0.001, forces=[floor])
    >>> motion.q[0, -1].round(6).tolist(), motion.impacts[0].t[0, :1].round(6).tolist()
    ([0.3], [0.4])
    """

    renamed_arguments: ClassVar = {"body": "frame"}
    renamed_attributes: ClassVar = renamed_arguments
    foreign_arguments: ClassVar = MATERIAL | {
        "normal": "plane_normal",
        "height": "plane_point, a point of the plane",
        "size": "radius",
        "center": "point",
    }
    numeric_fields: ClassVar = (
        NumericField("point", "m", -LARGEST, LARGEST, (3,)),
        NumericField("radius", "m", 0.0, LARGEST_FLOAT32),
        *PLANE_FIELDS,
    )
    frame: str
    _: KW_ONLY
    point: npt.ArrayLike
    radius: npt.ArrayLike
    plane_point: npt.ArrayLike
    plane_normal: npt.ArrayLike
    friction: npt.ArrayLike = 0.0
    restitution: npt.ArrayLike = 0.0
    max_records: int = 16

    def flatten(self, model: Model, what: str, numbers: SampleNumbers) -> tuple[int, int, int]:
        dof, _ = self.add_center(model, what, numbers)
        numbers.add_field(what, self, "radius")
        self.add_plane(what, numbers)
        return SPHERE_PLANE, dof, model.nv

    def gap(self, model: Model, q: np.ndarray) -> float:
        return self.height(model.frame_poses(q, self.frame)) - float(np.asarray(self.radius))


@dataclass(frozen=True, eq=False)
class SphereSphereContact(BodyContact):
    """Contact of two spheres on two bodies, or of a sphere and a point.

    Parameters
    ----------
    frame_a, frame_b : str or None
        Names of two bodies, or of frames on fixed joints; None for the world.
    point_a, point_b : (3,) or (..., 3) arrays, m
        Centers of the spheres, each in the axes of its frame, from its origin; in world coordinates for the world. An
        array has one row for each sample, here and in the other parameters.
    radius_a, radius_b : float or (...) array, m
        At least 0; their sum is above 0.
    restitution : float or (...) array
        Ratio of the normal speeds after and before an impact, from 0 to 1.
    max_records : int
        rbchain records the first `max_records` impacts and intervals of sticking, and counts the rest.
    friction : float or (...) array
        Coefficient mu of Coulomb's law, at least 0: the tangential force is at most mu times the normal force.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Notes
    -----
    The forces act at the point where the spheres touch. Rolling and spinning friction are not modeled. Recorded forces
    and impulses act on `frame_b`, and the opposite ones on `frame_a`. The spheres touch each other from outside.
    `Model.simulate` describes which methods support contact.

    Newton's law of restitution applies to each contact separately, even in simultaneous impacts. With a restitution of
    1, a ball that hits a row of N - 1 equal balls at rest, which touch each other, moves them all with 2 / N of its
    speed. With gaps between the balls, the impacts occur one after the other, and only the last ball leaves. Use gaps
    to model Newton's cradle. With "moreau", the step must also be shorter than the time between two impacts. "moreau"
    misses the impact of two spheres that pass each other within one step.

    Examples
    --------
    A ball hits an equal ball at rest and stops:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> for name in ("a", "b"):
    ...     builder.add_body(name, joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    >>> centers = {"point_a": (0, 0, 0), "point_b": (0, 0, 0)}
    >>> balls = rb.SphereSphereContact("a", "b", **centers, radius_a=0.1, radius_b=0.1, restitution=1.0)
    >>> motion = builder.build().simulate(
    ...     [[0.0, 0.5]], [[1.0, 0.0]], 1.0, method="moreau", step=0.01, forces=[balls]
    ... )
    >>> motion.qd[0, -1].round(6).tolist(), motion.impacts[0].impulse[0, 0].round(6).tolist()
    ([0.0, 1.0], [1.0, 0.0, 0.0])
    """

    renamed_arguments: ClassVar = FORMER_ENDS
    renamed_attributes: ClassVar = FORMER_ENDS
    foreign_arguments: ClassVar = MATERIAL
    numeric_fields: ClassVar[tuple[NumericField, ...]] = (
        NumericField("point_a", "m", -LARGEST, LARGEST, (3,)),
        NumericField("point_b", "m", -LARGEST, LARGEST, (3,)),
        NumericField("radius_a", "m", 0.0, LARGEST_FLOAT32),
        NumericField("radius_b", "m", 0.0, LARGEST_FLOAT32),
        NumericField("restitution", "1", 0.0, 1.0),
        NumericField("friction", "1", 0.0, LARGEST_FLOAT32),
    )
    frame_a: str | None
    frame_b: str | None
    _: KW_ONLY
    point_a: npt.ArrayLike
    point_b: npt.ArrayLike
    radius_a: npt.ArrayLike
    radius_b: npt.ArrayLike
    friction: npt.ArrayLike = 0.0
    restitution: npt.ArrayLike = 0.0
    max_records: int = 16

    def label(self) -> str:
        """Return the names of the class and of the frames, for messages."""
        return f"{type(self).__name__} of {self.frame_a!r} and {self.frame_b!r}"

    @property
    def has_tangents(self) -> bool:
        return bool(np.any(np.asarray(self.friction) != 0.0))

    def flatten(self, model: Model, what: str, numbers: SampleNumbers) -> tuple[int, int, int]:
        (dof_a, pose_a), (dof_b, pose_b) = bodies_at_ends(model, what, self)
        for name, pose in (("point_b", pose_b), ("point_a", pose_a)):
            point = self.numeric_field(name).checked(what, getattr(self, name))
            numbers.add_row(f"{what}: {name}", point @ pose.rotation.T + pose.translation)
        radius_a, radius_b = (
            self.numeric_field(name).checked(what, numbers.for_each_sample(f"{what}: {name}", getattr(self, name)))
            for name in ("radius_a", "radius_b")
        )
        if not (radius_a + radius_b > 0.0).all():
            raise ArgumentError(f"{what}: radius_a and radius_b are both 0; expected at least one radius above 0")
        numbers.add(f"{what}: radius_a + radius_b", radius_a + radius_b)
        numbers.add(f"{what}: radius_b", radius_b)
        numbers.add(f"{what}: radius_a", radius_a)
        return SPHERE_SPHERE, dof_b, dof_a

    def gap(self, model: Model, q: np.ndarray) -> float:
        centers = []
        for frame, point in ((self.frame_a, self.point_a), (self.frame_b, self.point_b)):
            pose = Pose() if frame is None else model.frame_poses(q, frame)
            centers.append(pose.rotation @ np.asarray(point, float) + pose.translation)
        radii = float(np.asarray(self.radius_a)) + float(np.asarray(self.radius_b))
        return float(np.linalg.norm(centers[1] - centers[0])) - radii
