"""A scene as nodes of a viser server."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .scene import CENTER, GHOST, LAYERS, REACTION, TRAIL, Scene
from .shapes import THINNEST, ellipsoids_of, extent_of, shapes_of

GHOST_OPACITY = 0.08


class Stage:
    """Everything that a viewer or a film shows, on a `viser.ViserServer`; `show` moves it to a frame of the scene."""

    def __init__(self, server: Any, scene: Scene, layers: Sequence[str]) -> None:
        self.server, self.scene = server, scene
        self.visible = set(layers)
        self._build()

    def _build(self) -> None:
        self.size = extent_of(self.scene.model)
        self.layers: dict[str, list[Any]] = {name: [] for name in LAYERS}
        self.reactions: Any = None
        self.shapes = shapes_of(self.scene.model)
        self._set_up()
        self._add_bodies()
        self._add_ghosts()
        self._add_marks()
        for name in self.layers:
            self.set_visible(name, name in self.visible)
        self.show(0)

    def replace(self, scene: Scene) -> None:
        """Show another scene, of the same mechanism or of one with other lengths, masses and shapes."""
        same = scene.model is self.scene.model
        self.scene = scene
        if not same:
            self.server.scene.reset()
            self._build()

    def set_visible(self, layer: str, visible: bool) -> None:
        """Show or hide a layer."""
        (self.visible.add if visible else self.visible.discard)(layer)
        for handle in self.layers[layer]:
            handle.visible = visible

    def show(self, frame: int, scene: Scene | None = None) -> None:
        """Everything where it is in a frame of the scene, or of another one; ghosts stay where that has none."""
        scene = self.scene if scene is None else scene
        with self.server.atomic():
            for i, node in enumerate(self.nodes):
                node.position, node.wxyz = scene.translation[0, frame, i], scene.quaternion[0, frame, i]
            for i, handle in self.ghosts if len(scene.translation) > 1 else ():
                handle.batched_positions = scene.translation[1:, frame, i].astype(np.float32)
                handle.batched_wxyzs = scene.quaternion[1:, frame, i].astype(np.float32)
            self.centers.batched_positions = scene.centers(frame).astype(np.float32)
            origins, turns = scene.axes(frame)
            self.frames.batched_positions, self.frames.batched_wxyzs = (x.astype(np.float32) for x in (origins, turns))
            if len(scene.t) > 1:
                for handle, way in zip(self.layers["trails"], np.swapaxes(scene.trails, 0, 1), strict=True):
                    handle.points = _segments(way, frame)
            if self.reactions is not None and scene.reactions is not None:
                self.reactions.points = scene.arrows(frame).astype(np.float32)

    def _set_up(self) -> None:
        scene, view = self.server.scene, self.scene
        center, radius = view.ball(self.shapes)
        up = view.up
        scene.set_up_direction(up)
        across = np.eye(3)[np.argmin(np.abs(up))]
        aside = np.cross(up, across) / np.linalg.norm(np.cross(up, across))
        direction = 0.8 * aside + 0.9 * np.cross(aside, up) + 0.45 * up
        camera = self.server.initial_camera
        camera.position, camera.look_at = center + 1.5 * radius * direction / np.linalg.norm(direction), center
        camera.up = up
        plane = ("yz", "xz", "xy")[np.argmax(np.abs(up))]
        cell = 10.0 ** np.floor(np.log10(1.5 * radius))
        width = float(np.ceil(4 * radius / cell) * cell)
        scene.add_grid(
            "/grid", width, width, plane=plane, cell_size=cell / 2, section_size=cell, section_color=(205, 208, 212)
        )
        self.world = scene.add_frame("/world", axes_length=0.15 * self.size, axes_radius=0.006 * self.size)

    def _add_bodies(self) -> None:
        scene = self.server.scene
        self.nodes = [scene.add_frame(f"/bodies/{i}", show_axes=False) for i in range(self.scene.model.n_bodies)]
        for k, shape in enumerate(self.shapes):
            parent = f"/bodies/{shape.body}" if shape.body >= 0 else "/base"
            self.layers["bodies"].append(
                scene.add_mesh_simple(
                    f"{parent}/{k}",
                    shape.vertices.astype(np.float32),
                    shape.faces,
                    color=_bytes(shape.colour),
                    opacity=None if shape.opacity >= 1.0 else shape.opacity,
                    side="double",
                )
            )
        self.layers["ellipsoids"] = [
            scene.add_mesh_simple(
                f"/bodies/{shape.body}/ellipsoid",
                shape.vertices,
                shape.faces,
                color=_bytes(shape.colour),
                opacity=shape.opacity,
            )
            for shape in ellipsoids_of(self.scene.model)
        ]

    def _add_ghosts(self) -> None:
        self.ghosts = []
        count = len(self.scene.translation) - 1
        if not count:
            return
        for k, shape in enumerate(self.shapes):
            if shape.body < 0:
                continue
            handle = self.server.scene.add_batched_meshes_simple(
                f"/ghosts/{k}",
                shape.vertices.astype(np.float32),
                shape.faces,
                batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
                batched_positions=np.zeros((count, 3)),
                batched_colors=GHOST,
                opacity=GHOST_OPACITY,
                cast_shadow=False,
                receive_shadow=False,
            )
            self.ghosts.append((shape.body, handle))
        self.layers["ghosts"] = [handle for _, handle in self.ghosts]

    def _add_marks(self) -> None:
        """Centres of mass, frames, trails, and reactions."""
        scene, view, size = self.server.scene, self.scene, self.size
        from trimesh import creation

        model = view.model
        ball = creation.icosphere(subdivisions=2)
        radii = THINNEST * size * (0.4 + np.cbrt(model.mass / max(model.mass.max(), 1e-300)))
        self.centers = scene.add_batched_meshes_simple(
            "/centers",
            ball.vertices.astype(np.float32),
            ball.faces,
            batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (model.n_bodies, 1)),
            batched_positions=view.centers(0),
            batched_scales=radii,
            batched_colors=CENTER,
        )
        origins, turns = view.axes(0)
        self.frames = scene.add_batched_axes(
            "/frames", turns, origins, axes_length=0.12 * size, axes_radius=0.25 * THINNEST * size
        )
        if len(view.t) > 1:
            self.layers["trails"] = [
                scene.add_line_segments(f"/trails/{tip}", _segments(way, 0), TRAIL, thickness=0.25 * THINNEST * size)
                for tip, way in enumerate(np.swapaxes(view.trails, 0, 1))
            ]
        self.layers |= {"centers": [self.centers], "frames": [self.frames, self.world]}
        if view.reactions is not None:
            self.reactions = scene.add_arrows(
                "/reactions",
                view.arrows(0),
                REACTION,
                shaft_radius=0.4 * THINNEST * size,
                head_radius=THINNEST * size,
                head_length=2 * THINNEST * size,
            )
            self.layers["reactions"] = [self.reactions]


def _bytes(colour: Sequence[float]) -> tuple[int, ...]:
    return tuple(round(255 * channel) for channel in colour)


def _segments(way: np.ndarray, frame: int) -> np.ndarray:
    """The way (frames, 3) up to a frame, as segments (at least one, if of no length)."""
    points = way[: max(frame, 1) + 1] if frame else np.repeat(way[:1], 2, axis=0)
    return np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)
