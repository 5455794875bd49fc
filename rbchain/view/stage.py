"""A scene as nodes of a viser server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .camera import FIELD_OF_VIEW
from .meshes import ball
from .scene import CENTER, GHOST, REACTION, TRAIL, Scene
from .shapes import ellipsoids_of, shapes_of

GHOST_OPACITY = 0.08


class Stage:
    """All that a viewer or an HTML film shows, on a `viser.ViserServer`; `show` moves it to a frame of the scene.

    The nodes of a layer are added when the layer is first visible.
    """

    def __init__(self, server: Any, scene: Scene, layers: Sequence[str]) -> None:
        self.server, self.scene = server, scene
        self.visible = set(layers)
        self._build()

    def _build(self) -> None:
        scene = self.scene
        self.shapes = shapes_of(scene.model)
        self._frame, self._shown = 0, scene
        self.nodes: list[Any] = []
        self.layers: dict[str, list[Any]] = {}
        self._add: dict[str, Callable[[], list[Any]]] = {
            "bodies": self._add_bodies,
            "frames": self._add_frames,
            "centers": self._add_centers,
            "ellipsoids": self._add_ellipsoids,
            "reactions": self._add_reactions,
        }
        if len(scene.translation) > 1:
            self._add["ghosts"] = self._add_ghosts
        if len(scene.t) > 1:
            self._add["trails"] = self._add_trails
        with self.server.atomic():
            self._set_up()
            add_frame = self.server.scene.add_frame
            self.nodes = [add_frame(f"/bodies/{i}", show_axes=False) for i in range(scene.model.n_bodies)]
            for name in self.visible & set(self._add):
                self.layers[name] = self._add[name]()
        self.show(0)

    @property
    def available(self) -> set[str]:
        """Layers that there are: no ghosts without a batch, no trails without a trajectory."""
        return set(self._add)

    def replace(self, scene: Scene) -> None:
        """Show another scene, whose model may have other lengths, masses and shapes."""
        same = scene.model is self.scene.model
        self.scene = scene
        if not same:
            self.server.scene.reset()
            self._build()

    def set_visible(self, layer: str, visible: bool) -> None:
        """Show or hide a layer. Raises ArgumentError if reactions are not known."""
        if visible and layer not in self.layers:
            self.layers[layer] = self._add[layer]()
            self._move(layer)
        (self.visible.add if visible else self.visible.discard)(layer)
        for handle in self.layers.get(layer, ()):
            handle.visible = visible

    def show(self, frame: int, scene: Scene | None = None) -> None:
        """Move everything to a frame of the scene, or of another scene. Ghosts stay if the other scene has none."""
        self._frame, self._shown = frame, self.scene if scene is None else scene
        with self.server.atomic():
            for i, node in enumerate(self.nodes):
                node.position = self._shown.translation[0, frame, i]
                node.wxyz = self._shown.quaternion[0, frame, i]
            for layer in self.visible & set(self.layers):
                self._move(layer)

    def _move(self, layer: str) -> None:
        """Move the nodes of a layer that are not children of the bodies' nodes."""
        scene, frame = self._shown, self._frame
        if layer == "ghosts" and len(scene.translation) > 1:
            for i, handle in self.ghosts:
                handle.batched_positions = scene.translation[1:, frame, i].astype(np.float32)
                handle.batched_wxyzs = scene.quaternion[1:, frame, i].astype(np.float32)
        elif layer == "centers":
            self.layers["centers"][0].batched_positions = scene.centers(frame).astype(np.float32)
        elif layer == "frames":
            origins, turns = scene.axes(frame)
            handle = self.layers["frames"][0]
            handle.batched_positions, handle.batched_wxyzs = (x.astype(np.float32) for x in (origins, turns))
        elif layer == "trails" and len(scene.t) > 1:
            for handle, path in zip(self.layers["trails"], np.swapaxes(scene.trails, 0, 1), strict=True):
                handle.points = _segments(path, frame)
        elif layer == "reactions":
            self.layers["reactions"][0].points = scene.arrows(frame).astype(np.float32)

    def _set_up(self) -> None:
        scene = self.server.scene
        view = self.scene.camera(self.scene.points(self.shapes, tuple(self.visible)))
        scene.set_up_direction(view.up)
        camera = self.server.initial_camera
        camera.position, camera.look_at, camera.up = view.position, view.center, view.up
        camera.fov, camera.near, camera.far = FIELD_OF_VIEW, 0.01 * view.radius, 100.0 * view.radius
        normal, center, cell, count = view.grid
        scene.add_grid(
            "/grid",
            2 * count * cell,
            2 * count * cell,
            plane=("yz", "xz", "xy")[normal],
            position=center,
            cell_size=cell,
            section_size=2 * cell,
            section_color=(205, 208, 212),
            fade_distance=25.0 * view.radius,
        )

    def _add_bodies(self) -> list[Any]:
        added = []
        for k, shape in enumerate(self.shapes):
            parent = f"/bodies/{shape.body}" if shape.body >= 0 else "/base"
            added.append(
                self.server.scene.add_mesh_simple(
                    f"{parent}/{k}",
                    shape.vertices.astype(np.float32),
                    shape.faces,
                    color=_bytes(shape.color),
                    opacity=None if shape.opacity >= 1.0 else shape.opacity,
                    side="double",
                )
            )
        return added

    def _add_ellipsoids(self) -> list[Any]:
        return [
            self.server.scene.add_mesh_simple(
                f"/bodies/{shape.body}/ellipsoid",
                shape.vertices.astype(np.float32),
                shape.faces,
                color=_bytes(shape.color),
                opacity=shape.opacity,
            )
            for shape in ellipsoids_of(self.scene.model)
        ]

    def _add_ghosts(self) -> list[Any]:
        count = len(self.scene.translation) - 1
        self.ghosts = []
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
        return [handle for _, handle in self.ghosts]

    def _add_centers(self) -> list[Any]:
        model = self.scene.model
        vertices, faces = ball(12)
        radii = self.scene.sizes.thickness * (0.4 + np.cbrt(model.mass / max(model.mass.max(), 1e-300)))
        handle = self.server.scene.add_batched_meshes_simple(
            "/centers",
            vertices.astype(np.float32),
            faces,
            batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (model.n_bodies, 1)),
            batched_positions=self._shown.centers(self._frame),
            batched_scales=radii,
            batched_colors=CENTER,
        )
        return [handle]

    def _add_frames(self) -> list[Any]:
        thickness = self.scene.sizes.thickness
        origins, turns = self._shown.axes(self._frame)
        scene = self.server.scene
        frames = scene.add_batched_axes(
            "/frames", turns, origins, axes_length=6.0 * thickness, axes_radius=0.25 * thickness
        )
        return [frames, scene.add_frame("/world", axes_length=7.5 * thickness, axes_radius=0.3 * thickness)]

    def _add_trails(self) -> list[Any]:
        thickness = 0.25 * self.scene.sizes.thickness
        return [
            self.server.scene.add_line_segments(f"/trails/{tip}", _segments(path, 0), TRAIL, thickness=thickness)
            for tip, path in enumerate(np.swapaxes(self.scene.trails, 0, 1))
        ]

    def _add_reactions(self) -> list[Any]:
        thickness = self.scene.sizes.thickness
        handle = self.server.scene.add_arrows(
            "/reactions",
            self._shown.arrows(self._frame),
            REACTION,
            shaft_radius=0.4 * thickness,
            head_radius=thickness,
            head_length=2 * thickness,
        )
        return [handle]


def _bytes(color: Sequence[float]) -> tuple[int, ...]:
    return tuple(round(255 * channel) for channel in color)


def _segments(path: np.ndarray, frame: int) -> np.ndarray:
    """Path (frames, 3) up to a frame, as segments; at least one, which may have no length."""
    points = path[: max(frame, 1) + 1] if frame else np.repeat(path[:1], 2, axis=0)
    return np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)
