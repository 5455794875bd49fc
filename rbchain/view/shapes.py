"""Triangle meshes of the bodies: their visuals, or simple solids derived from their joints and inertia."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..plots.sketch import ends_of, points_of_constraints
from .meshes import Mesh, ball, box, capsule, cylinder

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..model.pose import Pose
    from ..model.visual import Visual

LINK, JOINT, STRUCTURE, ELLIPSOID = (0.36, 0.55, 0.78), (0.95, 0.62, 0.22), (0.72, 0.74, 0.77), (0.85, 0.3, 0.35)
CLOSURE = (0.75, 0.2, 0.2)  # of the points of constraints
MIN_SEGMENTS, MAX_SEGMENTS = 6, 20  # around round shapes
THICKEST, THINNEST = 0.02, 0.003  # radius of a link, relative to the extent of the mechanism


@dataclass(frozen=True, eq=False)
class Shape:
    """A triangle mesh fixed to a body: vertices (V, 3) in the body's frame, m, and faces (F, 3).

    `body` is -1 for shapes that are fixed to the world. `color` is red, green and blue, from 0 to 1. The inside of a
    `closed` mesh cannot be seen.
    """

    body: int
    vertices: np.ndarray
    faces: np.ndarray
    color: tuple[float, ...]
    opacity: float = 1.0
    closed: bool = True


@dataclass(frozen=True)
class Sizes:
    """Sizes of the drawn parts of a mechanism, m."""

    extent: float  # of the whole mechanism
    thickness: float  # radius of links; frames, joints and arrows are multiples of it


def sizes_of(model: Model) -> Sizes:
    """Sizes that suit a model: its extent, and a thickness that suits both its extent and the length of its links.

    The extent is the largest distance from the root of a tree along its joints to the ends of its bodies. For bodies
    without length it is the size of the boxes that have their inertia.
    """
    lengths = np.linalg.norm(model.placement_translation, axis=1)
    far = np.zeros(model.n_bodies)
    for i, parent in enumerate(model.parent):
        far[i] = lengths[i] + far[parent] if parent >= 0 else 0.0
    ends = [np.linalg.norm(ends_of(model, i), axis=1) for i in range(model.n_bodies)]
    extent = max(far[i] + ends[i].max(initial=0.0) for i in range(model.n_bodies))
    heavy = np.flatnonzero(model.mass > 0.0)
    if heavy.size:
        diagonals = [np.linalg.norm(box_of_inertia(model.mass[i], model.inertia[i])[0]) for i in heavy]
        extent = max(extent, float(np.average(diagonals, weights=model.mass[heavy])))
    extent = float(extent) or 1.0
    links = np.concatenate(ends)
    thickness = THICKEST * extent if not links.size else 0.12 * links.mean()
    return Sizes(extent, float(np.clip(thickness, THINNEST * extent, THICKEST * extent)))


def segments_of(radius: float, pixel: float) -> int:
    """Even number of segments that approximate a circle within half a pixel.

    `pixel` is the size of a pixel, m, where the mechanism is; 0 if the image can be enlarged.
    """
    if pixel == 0.0:
        return MAX_SEGMENTS
    # a chord of the angle 2 pi / n is at most radius (pi / n)^2 / 2 off the arc
    return int(np.clip(2 * np.ceil(np.pi / 2 * np.sqrt(radius / pixel)), MIN_SEGMENTS, MAX_SEGMENTS))


def shapes_of(model: Model, pixel: float = 0.0) -> list[Shape]:
    """Shapes of the bodies of a model that is not a batch, as fine as `segments_of` specifies.

    Warns
    -----
    UserWarning
        If mesh files are missing or cannot be read.
    """
    places: dict[str, tuple[int, Pose | None]] = {name: (i, None) for i, name in enumerate(model.body_names)}
    places |= {name: (frame.body, frame.pose) for name, frame in model.description.frames.items()}
    found: list[Shape] = []
    missing: list[str] = []
    for name, visuals in model.visuals.items():
        body, pose = places[name]
        for visual in visuals:
            shape = _shape_of_visual(visual, body, pose, pixel, missing)
            if shape is not None:
                found.append(shape)
    if missing:
        warnings.warn(f"model {model.name!r}: these meshes are not shown: {'; '.join(missing)}", stacklevel=2)
    seen, sizes = {shape.body for shape in found}, sizes_of(model)
    for i in range(model.n_bodies):
        if i not in seen:
            found += _substitutes(model, i, sizes, pixel)
    return found + _markers(model, sizes, pixel)


def _placed(
    body: int, mesh: Mesh, rotation: np.ndarray, translation: np.ndarray, color: Sequence[float], opacity: float = 1.0
) -> Shape:
    vertices, faces = mesh
    return Shape(body, vertices @ rotation.T + translation, faces, tuple(color), opacity)


def _shape_of_visual(visual: Visual, body: int, pose: Pose | None, pixel: float, missing: list[str]) -> Shape | None:
    """Shape of a visual; None for a mesh file that cannot be read, which is added to `missing`."""
    mesh = (*_solid(visual, pixel), True) if visual.shape != "mesh" else _from_file(visual, missing)
    if mesh is None:
        return None
    vertices, faces, closed = mesh
    placed = visual.pose if pose is None else pose @ visual.pose
    *color, opacity = (*STRUCTURE, 1.0) if visual.color is None else visual.color
    vertices = vertices @ placed.rotation.T + placed.translation
    return Shape(body, vertices, faces, tuple(color), float(opacity), closed)


def _solid(visual: Visual, pixel: float) -> Mesh:
    size = visual.size
    segments = segments_of(size[0] if visual.shape in ("cylinder", "capsule") else max(size), pixel)
    if visual.shape == "box":
        return box(size)
    if visual.shape == "cylinder":
        return cylinder(size[0], size[1], segments)
    if visual.shape == "capsule":
        return capsule(size[0], size[1], segments)
    vertices, faces = ball(segments)
    return vertices * size, faces


def _from_file(visual: Visual, missing: list[str]) -> tuple[np.ndarray, np.ndarray, bool] | None:
    """Mesh of a file and whether it is closed."""
    import trimesh  # slow to import, and needed for files only

    if not Path(visual.file).exists():
        missing.append(f"{visual.file} does not exist")
        return None
    try:
        mesh = trimesh.load_mesh(visual.file)
        mesh.apply_scale(visual.size)
        if not len(mesh.faces):
            raise ValueError("no faces")
        return np.asarray(mesh.vertices), np.asarray(mesh.faces), bool(mesh.is_watertight)
    except Exception:  # readers of many formats raise many types; one mesh must not prevent the picture
        missing.append(f"{visual.file} cannot be read")
        return None


def _markers(model: Model, sizes: Sizes, pixel: float) -> list[Shape]:
    """A ball at each point of a constraint, on both of its bodies. They coincide where a loop is closed."""
    radius = 1.3 * sizes.thickness
    vertices, faces = ball(segments_of(radius, pixel))
    return [
        Shape(i, radius * vertices + point, faces, CLOSURE)
        for i in range(-1, model.n_bodies)
        for point in points_of_constraints(model, i)
    ]


def _substitutes(model: Model, i: int, sizes: Sizes, pixel: float) -> list[Shape]:
    """Shapes for a body without visuals: a capsule to each of its ends, or the box of its inertia, and its joint."""
    thickness = sizes.thickness
    ends = ends_of(model, i)
    lengths = np.linalg.norm(ends, axis=1)
    found = []
    for end, length in zip(ends, lengths, strict=True):
        radius = min(thickness, max(0.25 * length, THINNEST * sizes.extent))
        mesh = capsule(radius, length, segments_of(radius, pixel))
        found.append(_placed(i, mesh, _rotation_of_z_to(end / length), end / 2, LINK))
    if not found and model.mass[i] > 0.0:
        edges, axes = box_of_inertia(model.mass[i], model.inertia[i])
        found.append(_placed(i, box(np.clip(edges, 2 * thickness, sizes.extent)), axes, model.cg[i], LINK))
    kind, axis = model.joint_types[i], model.axis[model.velocity_index[i]]
    room = max(0.25 * lengths.max(), THINNEST * sizes.extent) if len(ends) else thickness
    size = 1.5 * min(thickness, room)
    segments = segments_of(size, pixel)
    if kind in ("revolute", "screw"):
        mesh = cylinder(size, 2.2 * size, segments)
    elif kind == "prismatic":
        mesh = box((1.6 * size, 1.6 * size, 2.6 * size))
    elif kind == "free":
        return found
    else:
        vertices, faces = ball(segments)
        mesh = vertices * size, faces
    return [*found, _placed(i, mesh, _rotation_of_z_to(axis), np.zeros(3), JOINT)]


def _rotation_of_z_to(direction: np.ndarray) -> np.ndarray:
    """Rotation matrix that takes z to a unit vector."""
    x = np.cross(direction, np.eye(3)[np.argmin(np.abs(direction))])
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(direction, x), direction])


def box_of_inertia(mass: float, inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges (3,), m, of the homogeneous box with an inertia tensor (3, 3) about its center, and its axes as columns.

    If no box has this tensor, edges that would be imaginary are zero.
    """
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    return np.sqrt(np.maximum(6.0 * (moments.sum() - 2.0 * moments) / mass, 0.0)), axes


def ellipsoids_of(model: Model, pixel: float = 0.0) -> list[Shape]:
    """For each body with mass, the homogeneous ellipsoid that has its mass and inertia.

    Its axes are at least somewhat thicker than the links and at most as long as the mechanism.
    """
    found, sizes = [], sizes_of(model)
    for i in np.flatnonzero(model.mass > 0.0):
        edges, axes = box_of_inertia(model.mass[i], model.inertia[i])
        semi_axes = np.clip(edges * np.sqrt(5.0 / 12.0), 1.3 * sizes.thickness, sizes.extent / 2)
        vertices, faces = ball(segments_of(semi_axes.max(), pixel))
        found.append(_placed(int(i), (vertices * semi_axes, faces), axes, model.cg[i], ELLIPSOID, 0.45))
    return found
