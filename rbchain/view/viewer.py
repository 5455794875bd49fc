"""Viewer: a web page that plays a trajectory, or poses a model with sliders."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import viser

from ..common.progress import progress
from ..common.real_arrays import whole_number
from ..errors import ArgumentError
from .scene import LAYERS, Scene, checked_layers, known_layers, number_of, scene_at_rest, scene_of_motion
from .stage import Stage

if TYPE_CHECKING:
    from ..facade.model import Model
    from ..simulate.trajectory import Trajectory

FRAMES_PER_SECOND = 30
MIN_FRAMES, MAX_FRAMES = 90, 900  # of a trajectory
LABELS = {"centers": "centers of mass", "ellipsoids": "inertia ellipsoids", "reactions": "joint reactions"}


def server_of(host: str, port: int, title: str) -> viser.ViserServer:
    """Start a viser server that prints nothing."""
    with redirect_stdout(io.StringIO()):  # viser prints its address even if `verbose` is false
        server = viser.ViserServer(host=host, port=port, label=title, verbose=False)
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    server.gui.main_panel.dock_right()
    return server


def stop(server: viser.ViserServer) -> None:
    """Stop a server; viser prints nothing."""
    with redirect_stdout(io.StringIO()):
        server.stop()


class Viewer:
    """A web page at `url`, available until `close` is called or the program ends.

    `Model.view` and `Trajectory.view` return it.

    Attributes
    ----------
    url : str
        Address of the page.
    """

    def __init__(
        self,
        model: Model,
        motion: Trajectory | None,
        q: npt.ArrayLike | None,
        sample: int | tuple[int, ...],
        show: Sequence[str],
        host: str,
        port: int,
    ) -> None:
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._model, self._sample = model, sample
        self._motion: Any = motion
        layers = checked_layers(show)
        # a server whose port is invalid would never start, without an error
        port = whole_number("port", port, ArgumentError, least=0, most=65535)
        with progress(f"Preparing the viewer of {model.name}"):
            q = np.asarray(model.neutral() if q is None else q, np.float64)
            scene = scene_at_rest(model, q) if motion is None else self._scene_of_sample()
            layers = known_layers(scene, layers)
            self._server = server_of(host, port, model.name)
            try:
                self._stage = Stage(self._server, scene, layers)
                self._add_controls(layers)
            except BaseException:
                stop(self._server)
                raise
        self.url = f"http://{'localhost' if host in ('0.0.0.0', '127.0.0.1') else host}:{self._server.get_port()}"
        if motion is not None:
            threading.Thread(target=self._play, daemon=True).start()

    def wait(self) -> None:
        """Wait until the viewer is closed or the user presses Ctrl-C."""
        try:
            self._closed.wait()
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop the server of the page."""
        if not self._closed.is_set():
            self._closed.set()
            with self._lock:
                stop(self._server)

    def __repr__(self) -> str:
        return f"Viewer({self._model.name!r}, {'closed' if self._closed.is_set() else self.url})"

    def _scene_of_sample(self) -> Scene:
        duration = self._motion.t[-1] - self._motion.t[0]
        frames = int(np.clip(FRAMES_PER_SECOND * duration, MIN_FRAMES, MAX_FRAMES)) if duration > 0.0 else 1
        return scene_of_motion(self._motion, self._sample, frames)

    # --- controls -----------------------------------------------------------------------------------------------------

    def _add_controls(self, layers: Sequence[str]) -> None:
        gui: Any = self._server.gui
        if self._motion is not None:
            self._add_playback(gui)
        with gui.add_folder("Show"):
            for name in LAYERS:
                if name in self._stage.available:
                    box = gui.add_checkbox(LABELS.get(name, name), initial_value=name in layers)
                    box.on_update(lambda event, name=name: self._set_visible(name, event.target.value))
            self._problem = gui.add_markdown("")
        with gui.add_folder("Joints"):
            self._sliders = [self._add_slider(gui, i) for i in range(self._model.nv)]
            gui.add_button("To neutral").on_click(lambda _: self._pose(np.zeros(self._model.nv)))
        self._seen = self._stage.scene.q[0]
        self._show_on_sliders(self._seen)

    def _set_visible(self, layer: str, visible: bool) -> None:
        """Show or hide a layer; if it cannot be shown, the page states why."""
        with self._lock:
            try:
                self._stage.set_visible(layer, visible)
                self._problem.content = ""
            except ArgumentError as error:
                self._problem.content = str(error)

    def _add_playback(self, gui: Any) -> None:
        t = self._stage.scene.t
        duration = float(t[-1] - t[0])
        with gui.add_folder("Motion"):
            self._playing = gui.add_checkbox("play", initial_value=True)
            self._time = gui.add_slider(
                "time (s)", float(t[0]), float(max(t[-1], t[0] + 1e-9)), duration / 1000 or 1e-9, float(t[0])
            )
            usual = 1.0 if 0.5 <= duration <= 120.0 else max(duration, 1e-9) / 10.0
            self._speed = gui.add_number("speed", usual, min=0.0, step=usual / 10)
            if self._motion.status.size > 1:
                number, last = number_of(self._sample, self._motion.status.shape), self._motion.status.size - 1
                sample = gui.add_number("sample", number, min=0, max=last, step=1)
                sample.on_update(lambda event: self._to_sample(int(event.target.value)))
        self._now = float(t[0])
        self._playing.on_update(lambda event: self._show_on_sliders(self._seen))
        self._time.on_update(lambda event: event.client is not None and self._to_time(event.target.value))  # type: ignore[func-returns-value]

    def _add_slider(self, gui: Any, i: int) -> Any:
        model = self._model
        turns = model.dof_types[i] != "prismatic"
        span = np.pi if turns else self._stage.scene.sizes.extent
        lower, upper = model.position_limits[i].tolist()
        lower = lower if np.isfinite(lower) else min(-span, upper - span)
        upper = upper if np.isfinite(upper) else max(span, lower + span)
        upper = max(upper, lower + 1e-6)  # the range of a slider cannot be empty
        unit = "rad" if turns else "m"
        slider = gui.add_slider(
            f"{model.velocity_labels[i]} ({unit})",
            lower,
            upper,
            (upper - lower) / 500 or 1e-3,
            min(max(0.0, lower), upper),
        )
        slider.on_update(lambda event: event.client is not None and self._turn(i, event.target.value))  # type: ignore[func-returns-value]
        return slider

    def _turn(self, i: int, value: float) -> None:
        """Move one degree of freedom; the others keep the positions that are shown."""
        with self._lock:
            model = self._stage.scene.model
            offset = model.difference(model.neutral()[None], self._seen[None])[0]
            offset[i] = value
            self._pose(offset)

    def _pose(self, offset: npt.ArrayLike) -> None:
        """Pose the sample at an offset (nv,) from its neutral positions. This pauses a trajectory; ghosts stay."""
        with self._lock:
            if self._motion is not None:
                self._playing.value = False
            model = self._stage.scene.model
            q = model.integrate(model.neutral()[None], np.asarray(offset, np.float64)[None])[0]
            self._stage.show(0, scene_at_rest(model, q))
            self._seen = q
            self._show_on_sliders(q)

    def _show_on_sliders(self, q: np.ndarray) -> None:
        model = self._stage.scene.model
        for slider, value in zip(self._sliders, model.difference(model.neutral()[None], q[None])[0], strict=True):
            slider.value = round(float(np.clip(value, slider.min, slider.max)), 4)

    # --- playing ------------------------------------------------------------------------------------------------------

    def _frame_at(self, t: float) -> int:
        times = self._stage.scene.t
        return int(np.clip(np.searchsorted(times, t, "right") - 1, 0, times.size - 1))

    def _show_at(self, t: float) -> None:
        """Show the state of the trajectory at a time."""
        self._now = t
        frame = self._frame_at(t)
        self._stage.show(frame)
        self._seen = self._stage.scene.q[frame]

    def _to_time(self, t: float) -> None:
        with self._lock:
            self._playing.value = False
            self._show_at(t)
            self._show_on_sliders(self._seen)

    def _to_sample(self, sample: int) -> None:
        with self._lock:
            try:
                scene = scene_of_motion(self._motion, sample, self._stage.scene.t.size)
            except ArgumentError as error:
                self._problem.content = str(error)
                return
            self._problem.content = ""
            self._stage.replace(scene)
            self._show_at(self._now)
            self._show_on_sliders(self._seen)

    def _play(self) -> None:
        """Play the trajectory in real time, again and again."""
        last = time.perf_counter()
        while not self._closed.wait(1.0 / FRAMES_PER_SECOND):
            now = time.perf_counter()
            with self._lock:
                if self._closed.is_set():
                    return
                if self._playing.value:
                    t, times = self._now + self._speed.value * (now - last), self._stage.scene.t
                    self._show_at(float(times[0] if t > times[-1] else t))
                    self._time.value = self._now
            last = now
