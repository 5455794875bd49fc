"""Collision shapes of MJCF files: geoms that contype and conaffinity let collide."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.collision_shape import CollisionShape
from ..model.pose import Pose
from .mjcf_source import Source, rotation

#: contype and conaffinity of the ground if the file has none: MuJoCo's defaults.
DEFAULT_MASKS = [(1, 1)]
GROUND = ("plane", "hfield")


def collisions_of(source: Source, body: int, anchor: np.ndarray) -> list[CollisionShape]:
    """Return the collision shapes of a body, whose frame has its origin at the anchor (3,), m.

    A shape touches the ground if its geom collides with a plane or height field of the file that is fixed to the world.
    If the file has none, the ground has MuJoCo's default contype and conaffinity. <exclude> and <pair> count.
    """
    model, found = source.model, list[CollisionShape]()
    if source.disabled("contact", "constraint"):
        return found
    first = model.body_geomadr[body]
    for geom in range(first, first + model.body_geomnum[body]):
        paired = set(model.pair_geom1) | set(model.pair_geom2)
        if not (model.geom_contype[geom] or model.geom_conaffinity[geom] or geom in paired):
            continue
        given = _geometry(source, geom)
        if given is not None:
            pose = Pose(model.geom_pos[geom] - anchor, rotation(model.geom_quat[geom]))
            found.append(CollisionShape(**given, pose=pose, touches_ground=_touches_ground(source, geom)))
    return found


def _geometry(source: Source, geom: int) -> dict[str, Any] | None:
    """Return the shape and its size or points; None for shapes that are not convex or not bounded."""
    model, kind = source.model, source.geom_type(geom)
    size = model.geom_size[geom]
    if kind == "mesh":
        return {"shape": "hull", "points": _hull(model, model.geom_dataid[geom])}
    sizes = {
        "sphere": size[:1],
        "capsule": (size[0], 2 * size[1]),
        "ellipsoid": size,
        "cylinder": (size[0], 2 * size[1]),
        "box": 2 * size,
    }
    return {"shape": kind, "size": sizes[kind]} if kind in sizes else None


def _hull(model: Any, mesh: int) -> np.ndarray:
    """Return the vertices of the convex hull that MuJoCo has computed for a mesh, or all vertices if there is none.

    The numbers of a hull in `mesh_graph` are the number of its vertices, the number of its faces, an address for each
    vertex, and the number of each vertex in the mesh.
    """
    first = model.mesh_vertadr[mesh]
    vertices = np.array(model.mesh_vert[first : first + model.mesh_vertnum[mesh]], float)
    graph = model.mesh_graphadr[mesh]
    if graph < 0:
        return vertices
    count = model.mesh_graph[graph]
    return vertices[np.sort(model.mesh_graph[graph + 2 + count : graph + 2 + 2 * count])]


def _touches_ground(source: Source, geom: int) -> bool:
    """Whether MuJoCo lets a geom collide with the ground."""
    model = source.model
    ground = [
        g for g in np.flatnonzero(model.body_weldid[model.geom_bodyid] == 0).tolist() if source.geom_type(g) in GROUND
    ]
    pairs = [{a, b} for a, b in zip(model.pair_geom1, model.pair_geom2, strict=True)]
    if any({geom, other} in pairs for other in ground):
        return True
    own = model.geom_bodyid[geom]
    excluded = {tuple(sorted((code >> 16, code & 0xFFFF))) for code in model.exclude_signature.tolist()}
    masks = [
        (model.geom_contype[g], model.geom_conaffinity[g])
        for g in ground
        if tuple(sorted((int(own), int(model.geom_bodyid[g])))) not in excluded
    ]
    masks = masks if ground else [] if (0, int(own)) in excluded else DEFAULT_MASKS
    contype, conaffinity = model.geom_contype[geom], model.geom_conaffinity[geom]
    return any(bool((contype & affinity) or (kind & conaffinity)) for kind, affinity in masks)
