"""Reader for the visuals and collision shapes of URDF files. A faulty one is only noted: none acts by itself."""

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..errors import ModelError
from ..model.collision_shape import CollisionShape
from ..model.visual import Visual
from .notes import Notes
from .urdf_elements import pose_of

SIZES = {"box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",), "capsule": ("radius", "length")}
PREFIXES = ("package://", "model://")
#: Variables of the environment with folders of packages and models.
FOLDERS = ("ROS_PACKAGE_PATH", "GZ_SIM_RESOURCE_PATH", "SDF_PATH", "GAZEBO_MODEL_PATH")
Shape = TypeVar("Shape", Visual, CollisionShape)


def visuals_of(path: Path, robot: Any, notes: Notes) -> dict[str, list[Visual]]:
    """Read the visuals of all links that have any, from the root element of the file."""
    colors: dict[str, tuple[float, ...] | None] = {}
    for material in robot.iter("material"):
        with contextlib.suppress(ValueError, AttributeError, TypeError):
            name = material.get("name", "")
            colors[name] = _color(material) or colors.get(name)
    return shapes_of(_links(robot), "visual", lambda element: _visual(path, element, colors), notes)


def collisions_of(path: Path, robot: Any, notes: Notes) -> dict[str, list[CollisionShape]]:
    """Read the collision shapes of all links that have any, from the root element of the file."""
    return shapes_of(_links(robot), "collision", lambda element: CollisionShape(**_geometry(path, element)), notes)


def _links(robot: Any) -> list[tuple[str, Any]]:
    return [(link.get("name"), link) for link in robot.findall("link")]


def shapes_of(
    links: Iterable[tuple[str, Any]], tag: str, made: Callable[[Any], Shape], notes: Notes
) -> dict[str, list[Shape]]:
    """Make an object of each element with a tag in links, given as names and elements; note links with faulty ones."""
    found: dict[str, list[Shape]] = {}
    unread = []
    for name, link in links:
        for element in link.findall(tag):
            try:
                found.setdefault(name, []).append(made(element))
            except (ModelError, OSError, ValueError, AttributeError, TypeError):
                unread.append(name)
    if unread:
        notes.add(f"some {tag}s of links {list(dict.fromkeys(unread))} are invalid and ignored")
    return found


def _numbers(text: str | None, default: str | None = None) -> np.ndarray:
    return np.array([float(word) for word in (default if text is None else text).split()])  # type: ignore[union-attr]


def _visual(path: Path, element: Any, colors: dict[str, tuple[float, ...] | None]) -> Visual:
    material = element.find("material")
    color = None if material is None else _color(material) or colors.get(material.get("name"))
    return Visual(**_geometry(path, element), color=color)


def _geometry(path: Path, element: Any) -> dict[str, Any]:
    """Return the arguments of a Visual and of a CollisionShape for the origin and the geometry of an element."""
    pose = pose_of(element.find("origin"))
    (shape,) = (child for child in element.find("geometry") if isinstance(child.tag, str))
    if shape.tag == "mesh":
        file, scale = file_of(path, shape.get("filename")), _numbers(shape.get("scale"), "1 1 1")
        return {"shape": "mesh", "size": scale, "pose": pose, "file": file}
    size = np.concatenate([_numbers(shape.get(name)) for name in SIZES.get(shape.tag, ())])
    return {"shape": shape.tag, "size": size, "pose": pose}


def _color(material: Any) -> tuple[float, ...] | None:
    color = material.find("color")
    return None if color is None else tuple(np.clip(_numbers(color.get("rgba")), 0.0, 1.0).tolist())


def file_of(path: Path, name: str, may_be_renamed: bool = True) -> str:
    """Path of a file that the file `path` refers to: relative to it, or in a ROS package or a model of Gazebo.

    The package is searched in the folders above the file and in the folders of the variables of `FOLDERS`. If its
    folder may be renamed, the rest of the name is also searched in the folders above the file.
    """
    prefix = next((prefix for prefix in PREFIXES if name.startswith(prefix)), None)
    if prefix is None:
        return str((path.parent / name.removeprefix("file://")).resolve())
    rest = name.removeprefix(prefix)
    above = [path.resolve().parent, *path.resolve().parents]
    on_path = [Path(x) for variable in FOLDERS for x in os.environ.get(variable, "").split(os.pathsep) if x]
    places = [folder / rest for folder in (*above, *on_path)]
    if may_be_renamed:
        places += [folder.joinpath(*Path(rest).parts[1:]) for folder in above]
    return str(next((place for place in places if place.exists()), places[0]))
