"""A scene drawn by matplotlib, for films and pictures where there is no browser."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .scene import CENTER, GHOST, REACTION, TRAIL, Scene, tips_of
from .shapes import ellipsoids_of, shapes_of

DPI = 100
LIGHT = np.array([0.35, -0.5, 0.8])
AXES = ("#d04030", "#30a040", "#3060d0")
ELEVATION, AZIMUTH = 22.0, -58.0  # of the viewer, degrees
TO_EYE = np.array(
    [
        np.cos(np.radians(ELEVATION)) * np.cos(np.radians(AZIMUTH)),
        np.cos(np.radians(ELEVATION)) * np.sin(np.radians(AZIMUTH)),
        np.sin(np.radians(ELEVATION)),
    ]
)
AMBIENT = 0.45  # how bright a surface is that turns away from the light


class Painting:
    """A matplotlib figure of a scene; `show` draws one of its frames."""

    def __init__(self, scene: Scene, layers: Sequence[str], size: tuple[int, int]) -> None:
        from matplotlib.figure import Figure

        self.scene, self.layers = scene, layers
        bodies = shapes_of(scene.model)
        self.ball = scene.ball(bodies)
        self.shapes = bodies if "bodies" in layers else []
        self.shapes += ellipsoids_of(scene.model) if "ellipsoids" in layers else []
        self.figure = Figure(figsize=(size[0] / DPI, size[1] / DPI), dpi=DPI)
        self.axes: Any = self.figure.add_axes((0, 0, 1, 1), projection="3d", computed_zorder=False)
        self._set_up()
        self.drawn: list[Any] = []
        self.show(0)

    def show(self, frame: int) -> list[Any]:
        """Draw a frame; returns what was drawn."""
        for artist in self.drawn:
            artist.remove()
        self.drawn = [*self._ghosts(frame), *self._trails(frame), *self._bodies(frame), *self._marks(frame)]
        return self.drawn

    def _set_up(self) -> None:
        up = int(np.argmax(np.abs(self.scene.up)))
        # a right-handed frame whose last axis points up: matplotlib looks along it
        self.turn = np.roll(np.eye(3), 2 - up, axis=0) * (1.0 if self.scene.up[up] > 0.0 else -1.0)
        if self.scene.up[up] < 0.0:
            self.turn[0] *= -1.0  # a turn by half about the first axis, not a reflection
        center, radius = self.ball
        center = self.turn @ center
        axes = self.axes
        for set_limits, middle in zip((axes.set_xlim, axes.set_ylim, axes.set_zlim), center, strict=True):
            set_limits(middle - 0.85 * radius, middle + 0.85 * radius)
        axes.set_box_aspect((1, 1, 1), zoom=1.3)
        axes.view_init(elev=ELEVATION, azim=AZIMUTH)
        axes.set_axis_off()
        step = 10.0 ** np.floor(np.log10(radius)) / 2
        span = np.arange(-np.ceil(1.3 * radius / step), np.ceil(1.3 * radius / step) + 1) * step
        for x in span:
            for line in (([x, x], span[[0, -1]]), (span[[0, -1]], [x, x])):
                axes.plot(*line, [0, 0], color="#d5d9de", linewidth=0.6, zorder=0, clip_on=False)

    def _turned(self, points: np.ndarray) -> np.ndarray:
        return points @ self.turn.T

    def _bodies(self, frame: int) -> list[Any]:
        """All triangles together, so that the near ones hide the far ones, each as bright as it faces the light."""
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        corners, of_shapes = [], []
        for shape in self.shapes:
            points = shape.vertices
            if shape.body >= 0:
                R, p = self.scene.rotation[0, frame, shape.body], self.scene.translation[0, frame, shape.body]
                points = points @ R.T + p
            of_shape = self._turned(points)[shape.faces]
            normals = np.cross(of_shape[:, 1] - of_shape[:, 0], of_shape[:, 2] - of_shape[:, 0])
            normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
            if (
                shape.closed and shape.opacity >= 1.0
            ):  # what turns its back on the viewer is hidden; sorting by depth may show it
                seen = normals @ TO_EYE > -0.2
                of_shape, normals = of_shape[seen], normals[seen]
            bright = AMBIENT + (1 - AMBIENT) * np.clip(normals @ LIGHT / np.linalg.norm(LIGHT), 0.0, 1.0)
            corners.append(of_shape)
            of_shapes.append(np.column_stack([bright[:, None] * shape.colour, np.full(len(bright), shape.opacity)]))
        if not corners:
            return []
        colours = np.concatenate(of_shapes)
        # edges in the colours of their faces close the gaps between these, but would draw a net on what is transparent
        edges = colours * [1.0, 1.0, 1.0, 0.0] * (colours[:, 3:] < 1.0) + colours * (colours[:, 3:] >= 1.0)
        surface = Poly3DCollection(np.concatenate(corners), facecolors=colours, edgecolors=edges, linewidths=0.2)
        surface.set_zorder(3)
        return [self.axes.add_collection3d(surface)]

    def _ghosts(self, frame: int) -> list[Any]:
        """The others of the batch, as lines from joint to joint."""
        from mpl_toolkits.mplot3d.art3d import Line3DCollection

        if "ghosts" not in self.layers or len(self.scene.translation) == 1:
            return []
        at = self.scene.translation[1:, frame]
        pairs = [(at[:, parent], at[:, i]) for i, parent in enumerate(self.scene.model.parent) if parent >= 0]
        pairs += [
            (at[:, i], at[:, i] + self.scene.rotation[1:, frame, i] @ point) for i, point in tips_of(self.scene.model)
        ]
        lines = self._turned(np.stack([np.concatenate(ends) for ends in zip(*pairs, strict=True)], axis=1))
        found = Line3DCollection(lines, colors=_hex(GHOST), linewidths=1.2, alpha=0.25, zorder=1)
        return [self.axes.add_collection3d(found)]

    def _trails(self, frame: int) -> list[Any]:
        if "trails" not in self.layers or frame == 0:
            return []
        ways = self._turned(self.scene.trails[: frame + 1])
        return [
            line
            for way in np.swapaxes(ways, 0, 1)
            for line in self.axes.plot(*way.T, color=_hex(TRAIL), lw=1.4, zorder=2)
        ]

    def _marks(self, frame: int) -> list[Any]:
        """Centres of mass, frames and reactions."""
        drawn: list[Any] = []
        radius = self.ball[1]
        if "centers" in self.layers:
            masses = self.scene.model.mass
            area = 70 * (masses / max(masses.max(), 1e-300)) ** (2 / 3)
            at = self._turned(self.scene.centers(frame)).T
            drawn.append(self.axes.scatter(*at, s=area, color=_hex(CENTER), depthshade=False, zorder=4))
        if "frames" in self.layers:
            for origin, turn in zip(self.scene.translation[0, frame], self.scene.rotation[0, frame], strict=True):
                for axis, colour in zip(turn.T, AXES, strict=True):
                    ends = self._turned(np.array([origin, origin + 0.12 * radius * axis]))
                    drawn += self.axes.plot(*ends.T, color=colour, lw=1.6, zorder=5)
        if "reactions" in self.layers and self.scene.reactions is not None:
            start, end = np.swapaxes(self._turned(self.scene.arrows(frame)), 0, 1)
            way = (end - start).T
            drawn.append(
                self.axes.quiver(*start.T, *way, color=_hex(REACTION), lw=1.8, arrow_length_ratio=0.2, zorder=6)
            )
        return drawn


def _hex(colour: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
