"""Geoms of an MJCF file as visuals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..model.pose import Pose
from ..model.visual import Shape, Visual
from .mjcf_source import Source, rotation

ENDINGS = (".stl", ".obj", ".dae")  # of the meshes that the viewer reads
GROUPS_SHOWN = 3  # MuJoCo's viewer shows the first groups of geoms; the others are often collision shapes
DEFAULT_COLOR = (0.5, 0.5, 0.5, 1.0)  # of a geom whose color is the color of its material


def visuals_of(source: Source, body: int, anchor: np.ndarray) -> list[Visual]:
    """Return the geoms of a body with simple shapes or mesh files. MuJoCo stores half lengths, Visual has full lengths.

    Geoms of groups that MuJoCo's viewer hides are visuals if the body has no others.
    """
    model, first = source.model, source.model.body_geomadr[body]
    geoms = range(first, first + model.body_geomnum[body])
    shown = [geom for geom in geoms if model.geom_group[geom] < GROUPS_SHOWN]
    found = (_visual(source, geom, anchor) for geom in shown or geoms)
    return [visual for visual in found if visual is not None]


def mesh_file(source: Source, geom: int) -> str:
    """Return the path of the mesh of a geom; an empty text if the viewer cannot show its file."""
    model, mesh = source.model, int(source.model.geom_dataid[geom])
    if source.geom_type(geom) != "mesh" or mesh < 0 or not hasattr(model, "paths") or model.mesh_pathadr[mesh] < 0:
        return ""
    text = model.paths[model.mesh_pathadr[mesh] :].split(b"\0", 1)[0].decode(errors="replace")
    file = (source.path.parent / text).resolve()
    if file.suffix.lower() not in ENDINGS or not file.is_file() or source.name("mesh", mesh) in source.moved_meshes:
        return ""
    return str(file)


def _visual(source: Source, geom: int, anchor: np.ndarray) -> Visual | None:
    """Return a geom as a visual; None if its shape has none."""
    shapes: dict[str, Callable[[np.ndarray], tuple[Shape, Any]]] = {
        "sphere": lambda size: ("sphere", size[:1]),
        "capsule": lambda size: ("capsule", (size[0], 2 * size[1])),
        "ellipsoid": lambda size: ("ellipsoid", size),
        "cylinder": lambda size: ("cylinder", (size[0], 2 * size[1])),
        "box": lambda size: ("box", 2 * size),
    }
    model, kind, file = source.model, source.geom_type(geom), mesh_file(source, geom)
    pose, color = Pose(model.geom_pos[geom] - anchor, rotation(model.geom_quat[geom])), model.geom_rgba[geom]
    if model.geom_matid[geom] >= 0 and np.allclose(color, DEFAULT_COLOR):
        color = model.mat_rgba[model.geom_matid[geom]]
    color = np.clip(color, 0.0, 1.0)
    if file:
        mesh = int(model.geom_dataid[geom])
        # the geom has the principal axes of the mesh, and not the axes of its file
        own = Pose(model.mesh_pos[mesh], rotation(model.mesh_quat[mesh]))
        return Visual("mesh", model.mesh_scale[mesh], pose=pose @ own.inverse(), color=color, file=file)
    if kind not in shapes:
        return None
    shape, size = shapes[kind](model.geom_size[geom])
    return Visual(shape, size, pose=pose, color=color)
