"""A scene drawn by matplotlib, for films and images without a browser."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .scene import CENTER, GHOST, REACTION, TRAIL, Scene, tips_of
from .shapes import Shape, ellipsoids_of, shapes_of

DPI = 100
AXES = ("#d04030", "#30a040", "#3060d0")
GRID = "#d5d9de"
LIGHT = np.array([-0.35, 0.75, 0.55])  # direction to the light: right, upwards and towards the camera
AMBIENT = 0.45  # brightness of a surface that is turned away from the light
MARGIN = 1.1
LEAST_SHARE = 0.1  # of the camera's view that a picture shows
HEAD = 0.2  # of an arrow, relative to its length


class Painting:
    """A matplotlib figure of a scene; `show` draws one of its frames.

    matplotlib's own 3D axes would draw the same image, but several times slower.
    """

    def __init__(self, scene: Scene, layers: Sequence[str], size: tuple[int, int]) -> None:
        from ..plots.figure import Figure

        self.scene, self.layers = scene, layers
        pixel = 2 * scene.camera(scene.points((), layers)).half_height / min(size)
        bodies = shapes_of(scene.model, pixel)
        points = scene.points(bodies, layers)
        self.camera = scene.camera(points)
        shapes = bodies if "bodies" in layers else []
        shapes = shapes + ellipsoids_of(scene.model, pixel) if "ellipsoids" in layers else shapes
        self.surfaces = _Surfaces(shapes)
        self.figure = Figure(figsize=(size[0] / DPI, size[1] / DPI), dpi=DPI)
        self.axes: Any = self.figure.add_axes((0, 0, 1, 1))
        self._set_up(points, size)
        self.drawn: list[Any] = []
        self.show(0)

    def show(self, frame: int) -> list[Any]:
        """Draw a frame instead of the one before; return its artists."""
        for artist in self.drawn:
            artist.remove()
        self.drawn = [*self._ghosts(frame), *self._trails(frame), *self._bodies(frame), *self._marks(frame)]
        return self.drawn

    def _set_up(self, points: np.ndarray, size: tuple[int, int]) -> None:
        """Show the part of the camera's view that contains the points (m, 3), and the ground."""
        seen, _ = self.camera.project(points)
        low, high = seen.min(0), seen.max(0)
        needed = np.maximum(high - low, LEAST_SHARE * 2 * self.camera.half_height) / size
        half = MARGIN * needed.max() * np.array(size) / 2
        (left, bottom), (right, top) = (low + high) / 2 - half, (low + high) / 2 + half
        self.axes.set(xlim=(left, right), ylim=(bottom, top))
        self.axes.set_axis_off()
        normal, center, cell, count = self.camera.grid
        across = [axis for axis in range(3) if axis != normal]
        offsets = np.arange(-count, count + 1) * cell
        ends = np.tile(center, (2, offsets.size, 2, 1))
        for lines, (fixed, free) in zip(ends, (across, across[::-1]), strict=True):
            lines[:, :, fixed] += offsets[:, None]
            lines[:, :, free] += offsets[[0, -1]]
        self._add_lines(ends.reshape(-1, 2, 3), colors=GRID, linewidths=0.6, zorder=0)

    def _add_lines(self, lines: np.ndarray, **style: Any) -> Any:
        """Lines (lines, points, 3), without the lines that reach behind the camera."""
        from matplotlib.collections import LineCollection

        points, away = self.camera.project(lines)
        visible = (away > 0.05 * self.camera.distance).all(axis=1)
        return self.axes.add_collection(LineCollection(list(points[visible]), **style), autolim=False)

    def _bodies(self, frame: int) -> list[Any]:
        """Draw the triangles from the farthest to the nearest, so that near ones hide far ones."""
        from matplotlib.collections import PolyCollection

        if not len(self.surfaces.faces):
            return []
        corners = self.surfaces.placed(self.scene.rotation[0, frame], self.scene.translation[0, frame])
        points, away = self.camera.project(corners)
        points, away = points[self.surfaces.faces], away[self.surfaces.faces]
        sides = points[:, 1:] - points[:, :1]
        faces_camera = sides[:, 0, 0] * sides[:, 1, 1] > sides[:, 0, 1] * sides[:, 1, 0]
        seen = np.flatnonzero(faces_camera | self.surfaces.both_sides)
        seen = seen[np.argsort(-away[seen].mean(axis=1), kind="stable")]
        corners = corners[self.surfaces.faces[seen]]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        to_light = LIGHT @ self.camera.axes / np.linalg.norm(LIGHT)
        bright = AMBIENT + (1 - AMBIENT) * np.clip(normals @ to_light, 0.0, 1.0)
        colors = self.surfaces.colors[seen] * np.column_stack([bright, bright, bright, np.ones(len(seen))])
        # edges in the colors of their faces close the gaps between these, but would draw a net on transparent ones
        edges = np.where(colors[:, 3:] < 1.0, [1.0, 1.0, 1.0, 0.0], 1.0) * colors
        surface = PolyCollection(points[seen], facecolors=colors, edgecolors=edges, linewidths=0.2, zorder=3)
        return [self.axes.add_collection(surface, autolim=False)]

    def _ghosts(self, frame: int) -> list[Any]:
        """Draw the ghosts as lines from joint to joint."""
        if "ghosts" not in self.layers or len(self.scene.translation) == 1:
            return []
        at = self.scene.translation[1:, frame]
        pairs = [(at[:, parent], at[:, i]) for i, parent in enumerate(self.scene.model.parent) if parent >= 0]
        pairs += [
            (at[:, i], at[:, i] + self.scene.rotation[1:, frame, i] @ point) for i, point in tips_of(self.scene.model)
        ]
        lines = np.stack([np.concatenate(ends) for ends in zip(*pairs, strict=True)], axis=1)
        return [self._add_lines(lines, colors=_hex(GHOST), linewidths=1.2, alpha=0.25, zorder=1)]

    def _trails(self, frame: int) -> list[Any]:
        if "trails" not in self.layers or frame == 0:
            return []
        paths = np.swapaxes(self.scene.trails[: frame + 1], 0, 1)
        return [self._add_lines(paths, colors=_hex(TRAIL), linewidths=1.4, zorder=2)]

    def _marks(self, frame: int) -> list[Any]:
        """Draw centers of mass, frames and reactions."""
        drawn: list[Any] = []
        if "centers" in self.layers:
            masses = self.scene.model.mass
            area = 70 * (masses / max(masses.max(), 1e-300)) ** (2 / 3)
            points, _ = self.camera.project(self.scene.centers(frame))
            drawn.append(self.axes.scatter(*points.T, s=area, color=_hex(CENTER), zorder=4))
        if "frames" in self.layers:
            origins, turns = self.scene.translation[0, frame][:, None], self.scene.rotation[0, frame]
            ends = origins + 6.0 * self.scene.sizes.thickness * np.swapaxes(turns, 1, 2)
            lines = np.stack([np.broadcast_to(origins, ends.shape), ends], axis=2)
            drawn.append(self._add_lines(lines.reshape(-1, 2, 3), colors=AXES, linewidths=1.6, zorder=5))
        if "reactions" in self.layers:
            drawn.append(self._add_lines(self._outlines(frame), colors=_hex(REACTION), linewidths=1.6, zorder=6))
        return drawn

    def _outlines(self, frame: int) -> np.ndarray:
        """Arrows of the reactions as lines (n, 5, 3): shaft, and the two sides of a head in the image plane."""
        start, end = np.swapaxes(self.scene.arrows(frame), 0, 1)
        along = end - start
        across = np.cross(along, self.camera.axes[2])
        sides = [end + HEAD * (0.35 * sign * across - along) for sign in (1.0, -1.0)]
        return np.stack([start, end, sides[0], end, sides[1]], axis=1)


class _Surfaces:
    """The triangles of all shapes in common arrays."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.shapes = shapes
        first = np.cumsum([0, *(len(shape.vertices) for shape in shapes)])
        counts = [len(shape.faces) for shape in shapes]
        no_faces = np.empty((0, 3), int)
        self.faces = np.concatenate([no_faces, *(s.faces + k for s, k in zip(shapes, first, strict=False))])
        self.colors = np.repeat(np.array([(*s.color, s.opacity) for s in shapes]), counts, axis=0)
        self.both_sides = np.repeat([not s.closed or s.opacity < 1.0 for s in shapes], counts)
        self._places = [slice(*ends) for ends in pairwise(first)]
        self._vertices = np.empty((first[-1], 3))

    def placed(self, rotation: np.ndarray, translation: np.ndarray) -> np.ndarray:
        """Vertices (V, 3) in world axes, of bodies with these poses."""
        for shape, place in zip(self.shapes, self._places, strict=True):
            if shape.body >= 0:
                self._vertices[place] = shape.vertices @ rotation[shape.body].T + translation[shape.body]
            else:
                self._vertices[place] = shape.vertices
        return self._vertices


def _hex(color: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
