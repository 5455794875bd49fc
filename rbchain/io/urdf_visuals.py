"""Reader for the visuals of URDF files. A faulty visual is only noted, as it has no effect on the dynamics."""

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelError
from ..model.visual import Visual
from .notes import Notes
from .urdf_elements import pose_of

SIZES = {"box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",), "capsule": ("radius", "length")}
PACKAGE = "package://"


def visuals_of(path: Path, robot: Any, notes: Notes) -> dict[str, list[Visual]]:
    """Read the visuals of all links that have any, from the root element of the file."""
    colors: dict[str, tuple[float, ...] | None] = {}
    for material in robot.iter("material"):
        with contextlib.suppress(ValueError, AttributeError, TypeError):
            name = material.get("name", "")
            colors[name] = _color(material) or colors.get(name)
    found: dict[str, list[Visual]] = {}
    unread = []
    for link in robot.findall("link"):
        for element in link.findall("visual"):
            try:
                found.setdefault(link.get("name"), []).append(_visual(path, element, colors))
            except (ModelError, OSError, ValueError, AttributeError, TypeError):
                unread.append(link.get("name"))
    if unread:
        notes.add(f"some visuals of links {list(dict.fromkeys(unread))} are invalid and left out")
    return found


def _numbers(text: str | None, default: str | None = None) -> np.ndarray:
    return np.array([float(word) for word in (default if text is None else text).split()])  # type: ignore[union-attr]


def _visual(path: Path, element: Any, colors: dict[str, tuple[float, ...] | None]) -> Visual:
    pose = pose_of(element.find("origin"))
    material = element.find("material")
    color = None if material is None else _color(material) or colors.get(material.get("name"))
    (shape,) = (child for child in element.find("geometry") if isinstance(child.tag, str))
    if shape.tag == "mesh":
        file, scale = _file(path, shape.get("filename")), _numbers(shape.get("scale"), "1 1 1")
        return Visual("mesh", scale, pose=pose, color=color, file=file)
    size = np.concatenate([_numbers(shape.get(name)) for name in SIZES.get(shape.tag, ())])
    return Visual(shape.tag, size, pose=pose, color=color)


def _color(material: Any) -> tuple[float, ...] | None:
    color = material.find("color")
    return None if color is None else tuple(np.clip(_numbers(color.get("rgba")), 0.0, 1.0).tolist())


def _file(path: Path, name: str) -> str:
    """Path of a mesh file, relative to the URDF or in a ROS package.

    The package is searched in the folders above the URDF and in the folders of ROS_PACKAGE_PATH.
    """
    if not name.startswith(PACKAGE):
        return str((path.parent / name.removeprefix("file://")).resolve())
    rest = name.removeprefix(PACKAGE)
    above = [path.resolve().parent, *path.resolve().parents]
    on_path = [Path(folder) for folder in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if folder]
    places = [folder / rest for folder in (*above, *on_path)]
    # the folder of a package may have a different name
    places += [folder.joinpath(*Path(rest).parts[1:]) for folder in above]
    return str(next((place for place in places if place.exists()), places[0]))
