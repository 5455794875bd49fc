"""CollisionShape: a shape of a body, from which `Model.contacts` makes contacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..common.misspelled import one_of
from ..common.values import Value
from ..errors import ModelError
from .pose import Made, Pose, numbers
from .visual import SIZES as SIZES_OF_VISUALS, checked_size

Shape = Literal["box", "cylinder", "capsule", "sphere", "ellipsoid", "mesh", "hull"]
#: Numbers that define the size of each shape.
SIZES: dict[str, tuple[str, ...]] = {"hull": ()} | {str(shape): names for shape, names in SIZES_OF_VISUALS.items()}


@dataclass(frozen=True, eq=False)
class CollisionShape(Value):
    """A shape fixed to a body. It has no effect until `Model.contacts` turns it into contacts.

    Parameters
    ----------
    shape : "box", "cylinder", "capsule", "sphere", "ellipsoid", "mesh" or "hull"
        A mesh stands for its convex hull, and a hull for the convex hull of `points`.
    size : sequence of float, m
        As for `Visual`; () for a hull.
    pose : Pose
        Pose of the center of the shape, or of the origin of the mesh or the points, in the body's frame.
    file : str
        Path of an STL, OBJ or Collada file; for a mesh only. `Model.contacts` reads it.
    points : (p, 3) array, m
        For a hull only.
    touches_ground : bool
        Whether the shape touches the ground of `Model.contacts`. If not, it only touches the bodies of `pairs`.

    Raises
    ------
    ModelError
        If the shape is unknown, or an argument does not fit it.

    Examples
    --------
    A box falls flat on the ground:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> box, inertia = rb.CollisionShape("box", (0.2, 0.2, 0.1)), rb.Inertia(1.0, inertia=(0.004, 0.004, 0.007))
    >>> builder.add_body("box", joint=rb.Prismatic((0, 0, 1)), inertia=inertia, collisions=[box])
    >>> model = builder.build()
    >>> ground = model.contacts(ground=rb.Plane((0, 0, 0), (0, 0, 1)))
    >>> motion = model.simulate([0.25], duration=1.0, forces=ground)
    >>> motion.q[-1].round(9).tolist()
    [0.05]
    """

    shape: Shape
    size: Made[Sequence[float] | np.ndarray, tuple[float, ...]] = ()  # type: ignore[assignment]
    _: KW_ONLY
    pose: Pose = field(default_factory=Pose)
    file: str = ""
    points: Made[npt.ArrayLike, np.ndarray] = ()  # type: ignore[assignment]
    touches_ground: bool = True

    def __post_init__(self) -> None:
        one_of("shape", self.shape, [*SIZES], ModelError)
        size = checked_size(self.shape, self.size, SIZES[self.shape], self.pose, self.file)
        is_empty = isinstance(self.points, (tuple, list)) and not self.points
        points = numbers(np.zeros((0, 3)) if is_empty else self.points, f"points of a {self.shape}")
        if points.ndim != 2 or points.shape[1] != 3 or (self.shape == "hull") != (len(points) > 0):
            expected = "an array (p, 3)" if self.shape == "hull" else "none, because only a hull has points"
            raise ModelError(f"points of a {self.shape} have the shape {points.shape}; expected {expected}")
        if not isinstance(self.touches_ground, bool):
            raise ModelError(f"touches_ground of a {self.shape} is {self.touches_ground!r}; expected True or False")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "points", points)
