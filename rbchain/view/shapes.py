"""What each body looks like, as triangles: its visuals, or stand-ins made from its joints and its inertia."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..chain import Model
    from ..model.pose import Pose
    from ..model.visual import Visual

LINK, JOINT, STRUCTURE = (0.36, 0.55, 0.78), (0.95, 0.62, 0.22), (0.72, 0.74, 0.77)
SEGMENTS = 20  # around a cylinder
THINNEST = 0.02  # of the whole mechanism: stand-ins are no thinner


@dataclass(frozen=True, eq=False)
class Shape:
    """A triangle mesh fixed to a moving body (the world: -1): vertices (V, 3) in its frame, m, and faces (F, 3)."""

    body: int
    vertices: np.ndarray
    faces: np.ndarray
    colour: tuple[float, ...]
    opacity: float = 1.0
    closed: bool = True  # has an inside, which nobody sees


def shapes_of(model: Model) -> list[Shape]:
    """The shapes of a model of one sample."""
    from trimesh import creation

    places: dict[str, tuple[int, Pose | None]] = {name: (i, None) for i, name in enumerate(model.body_names)}
    places |= {name: (frame.body, frame.pose) for name, frame in model.description.frames.items()}
    found: list[Shape] = []
    missing: list[str] = []
    for name, visuals in model.visuals.items():
        body, pose = places[name]
        for visual in visuals:
            mesh = _mesh_of(visual, creation, missing)
            if mesh is not None:
                placed = visual.pose if pose is None else pose @ visual.pose
                colour = (*STRUCTURE, 1.0) if visual.colour is None else visual.colour
                found.append(_shape(body, mesh, placed.rotation, placed.translation, colour[:3], colour[3]))
    if missing:
        warnings.warn(f"model {model.name!r}: these meshes are not shown: {'; '.join(missing)}", stacklevel=2)
    seen = {shape.body for shape in found}
    for i in range(model.n_bodies):
        if i not in seen:
            found += _stand_ins(model, i, creation)
    return found


def _shape(
    body: int, mesh: Any, rotation: np.ndarray, translation: np.ndarray, colour: Sequence[float], opacity: float = 1.0
) -> Shape:
    vertices = mesh.vertices @ rotation.T + translation
    return Shape(body, vertices, np.asarray(mesh.faces), tuple(colour), float(opacity), bool(mesh.is_watertight))


def _mesh_of(visual: Visual, creation: Any, missing: list[str]) -> Any:
    """A visual's triangles in its own frame; a file that cannot be read is added to `missing`."""
    size = visual.size
    if visual.shape == "mesh":
        return _from_file(visual, missing)
    if visual.shape == "box":
        return creation.box(size)
    if visual.shape == "cylinder":
        return creation.cylinder(radius=size[0], height=size[1], sections=2 * SEGMENTS)
    if visual.shape == "capsule":
        return _capsule(creation, *size)
    ball = creation.icosphere(subdivisions=2)
    ball.apply_scale(size if visual.shape == "ellipsoid" else size * 3)
    return ball


def _from_file(visual: Visual, missing: list[str]) -> Any:
    import trimesh

    if not Path(visual.file).exists():
        missing.append(f"{visual.file} is not there")
        return None
    try:
        mesh = trimesh.load_mesh(visual.file)
        mesh.apply_scale(visual.size)
        if not len(mesh.faces):
            raise ValueError("no faces")
        return mesh
    except Exception:  # whatever a reader of some format meets: a picture is no reason to stop
        missing.append(f"{visual.file} cannot be read")
        return None


def _capsule(creation: Any, radius: float, length: float) -> Any:
    mesh = creation.capsule(height=length, radius=radius, count=[SEGMENTS, SEGMENTS // 2])
    mesh.vertices[:, 2] -= (mesh.vertices[:, 2].max() + mesh.vertices[:, 2].min()) / 2
    return mesh


def extent_of(model: Model) -> float:
    """How far the mechanism reaches at most, m: along its joints and to its centres of mass."""
    length = np.linalg.norm(model.placement_translation, axis=1)
    far = np.zeros(model.n_bodies)
    for i, parent in enumerate(model.parent):
        far[i] = length[i] + (far[parent] if parent >= 0 else 0.0)
    return float(max(np.max(far + 2 * np.linalg.norm(model.cg, axis=1)), 1e-3))


def ends_of(model: Model, i: int) -> np.ndarray:
    """Points in body i's frame that it reaches to: joints of its children, frames fixed to it, its rod's end."""
    children = model.placement_translation[model.parent == i]
    frames = [frame.pose.translation for frame in model.description.frames.values() if frame.body == i]
    points = np.array([*children, *frames]).reshape(-1, 3)
    if not points.any() and model.mass[i] > 0.0:
        points = 2.0 * model.cg[None, i]
    return points[np.linalg.norm(points, axis=1) > 1e-9]


def _stand_ins(model: Model, i: int, creation: Any) -> list[Shape]:
    """Capsules from the body's joint to where it ends, a box of its inertia where there are none, and its joint."""
    extent = extent_of(model)
    thickness = THINNEST * extent
    found = []
    for end in ends_of(model, i):
        length = float(np.linalg.norm(end))
        mesh = _capsule(creation, min(thickness, 0.25 * length), length)
        found.append(_shape(i, mesh, _turn_of_z_to(end / length), end / 2, LINK))
    if not found and model.mass[i] > 0.0:
        edges, axes = box_of_inertia(model.mass[i], model.inertia[i])
        mesh = creation.box(np.clip(edges, 2 * thickness, extent))
        found.append(_shape(i, mesh, axes, model.cg[i], LINK))
    first = model.velocity_index[i]
    kind, axis = model.joint_types[i], model.axis[first]
    size = 1.5 * thickness
    if kind in ("revolute", "screw"):
        mesh = creation.cylinder(radius=size, height=2.2 * size, sections=2 * SEGMENTS)
    elif kind == "prismatic":
        mesh = creation.box((1.6 * size, 1.6 * size, 2.6 * size))
    elif kind == "free":
        return found
    else:
        mesh = creation.icosphere(subdivisions=2, radius=size)
    return [*found, _shape(i, mesh, _turn_of_z_to(axis), np.zeros(3), JOINT)]


def _turn_of_z_to(direction: np.ndarray) -> np.ndarray:
    """A rotation that takes z to a unit vector."""
    x = np.eye(3)[np.argmin(np.abs(direction))]
    x = np.cross(direction, x)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(direction, x), direction])


def box_of_inertia(mass: float, inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges (3,) of the even box that has this inertia (3, 3) about its centre, and its axes (3, 3), as columns."""
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    return np.sqrt(np.maximum(6.0 * (moments.sum() - 2.0 * moments) / mass, 0.0)), axes


def ellipsoids_of(model: Model) -> list[Shape]:
    """Of every body with mass, the even ellipsoid that has its mass and inertia."""
    from trimesh import creation

    found, least = [], 1.3 * THINNEST * extent_of(model)
    for i in np.flatnonzero(model.mass > 0.0):
        edges, axes = box_of_inertia(model.mass[i], model.inertia[i])
        ball = creation.icosphere(subdivisions=3)
        ball.apply_scale(np.maximum(edges * np.sqrt(5.0 / 12.0), least))  # semi-axes^2 / 5 = edges^2 / 12
        found.append(_shape(int(i), ball, axes, model.cg[i], (0.85, 0.3, 0.35), 0.45))
    return found
