"""Visual: the shape of a body in images. It has no effect on the dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import numpy as np

from ..common.misspelled import one_of
from ..common.values import Value
from ..errors import ModelError
from .pose import Made, Pose, numbers

Shape = Literal["box", "cylinder", "capsule", "sphere", "ellipsoid", "mesh"]
#: Numbers that define the size of each shape.
SIZES: dict[Shape, tuple[str, ...]] = {
    "box": ("x", "y", "z"),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "sphere": ("radius",),
    "ellipsoid": ("x", "y", "z"),
    "mesh": ("x", "y", "z"),
}


@dataclass(frozen=True, eq=False)
class Visual(Value):
    """A shape fixed to a body, for images.

    Parameters
    ----------
    shape : "box", "cylinder", "capsule", "sphere", "ellipsoid" or "mesh"
    size : sequence of float, m
        Box: the three edges. Cylinder: radius and length; its axis is z. Capsule: radius and distance between the
        centers of its hemispherical ends; its axis is z. Sphere: radius. Ellipsoid: the three semi-axes. Mesh: factors
        along x, y and z that convert the coordinates in the file to meters; 1 by default.
    pose : Pose
        Pose of the shape's center, or of the mesh's origin, in the body's frame.
    color : (3,) or (4,) sequence, optional
        Red, green, blue and opacity, each from 0 to 1. Three values mean an opaque color.
    file : str
        Path of an STL, OBJ or Collada file; for a mesh only.

    Raises
    ------
    ModelError
        If the shape is unknown, or an argument does not fit it.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> look = rb.Visual("box", (0.4, 0.1, 0.1), pose=rb.Pose((0.2, 0, 0)), color=(0.9, 0.5, 0.1, 1.0))
    >>> builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia.rod(0.4, mass=1.0), visuals=[look])
    >>> builder.build().visuals["arm"][0].shape
    'box'
    """

    shape: Shape
    size: Made[Sequence[float] | np.ndarray, tuple[float, ...]] = ()  # type: ignore[assignment]
    _: KW_ONLY
    pose: Pose = field(default_factory=Pose)
    color: Made[Sequence[float] | np.ndarray | None, tuple[float, ...] | None] = None  # type: ignore[assignment]
    file: str = ""

    def __post_init__(self) -> None:
        one_of("shape", self.shape, [*SIZES], ModelError)
        size = checked_size(self.shape, self.size, SIZES[self.shape], self.pose, self.file)
        object.__setattr__(self, "size", size)
        if self.color is not None:
            if isinstance(self.color, str):
                raise ModelError(f"color is {self.color!r}; expected three or four numbers from 0 to 1")
            color = numbers(self.color, "color")
            if color.shape not in ((3,), (4,)) or (color < 0.0).any() or (color > 1.0).any():
                raise ModelError(f"color is {color.tolist()}; expected three or four numbers from 0 to 1")
            color = np.append(color, 1.0)[:4]
            object.__setattr__(self, "color", tuple(color.tolist()))


def checked_size(
    shape: str, size: Sequence[float] | np.ndarray, names: Sequence[str], pose: Pose, file: str
) -> tuple[float, ...]:
    """Return the numbers of the size of a shape, which have these names.

    Raises ModelError if they, the pose or the path of the file do not fit the shape.
    """
    is_unscaled = shape == "mesh" and isinstance(size, (tuple, list)) and not size
    found = numbers((1.0, 1.0, 1.0) if is_unscaled else size, f"size of a {shape}")
    if found.shape != (len(names),):
        expected = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
        raise ModelError(f"size of a {shape} is {found.tolist()}; expected {expected}")
    if not isinstance(pose, Pose):
        raise ModelError(f"pose of a {shape} is {pose!r}; expected a Pose, such as Pose((0, 0, 1))")
    if shape != "mesh" and (found <= 0.0).any():
        raise ModelError(f"size of a {shape} is {found.tolist()}; expected positive numbers")
    if not isinstance(file, str) or (shape == "mesh") != bool(file):
        expected = "the path of a file" if shape == "mesh" else "none, because only a mesh has a file"
        raise ModelError(f"file of a {shape} is {file!r}; expected {expected}")
    return tuple(found.tolist())
