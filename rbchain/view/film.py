"""Films: a page that plays by itself, GIF and MP4, and pictures one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import StateError
from .painting import Painting
from .scene import Scene, checked_layers, scene_at_rest, scene_of_motion
from .stage import Stage
from .viewer import server_of, stop

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..chain import Model
    from ..trajectory import Trajectory

MOST_FRAMES = 20_000
WRITERS = {".gif": "pillow", ".mp4": "ffmpeg"}
ENDINGS = (".html", *WRITERS, ".png")


def film(
    motion: Trajectory,
    path: str | Path,
    sample: int | tuple[int, ...],
    show: Sequence[str],
    fps: float,
    speed: float,
    size: tuple[int, int],
) -> list[Path]:
    """Write a motion: see `Trajectory.film`."""
    path, layers = Path(path), checked_layers(show)
    if path.suffix not in ENDINGS:
        raise StateError(f"{path}: expected .html, .gif, .mp4 or .png; found {path.suffix or 'no ending'}")
    for name, value in (("fps", fps), ("speed", speed)):
        if not 0.0 < value < np.inf:
            raise StateError(f"{name} is {value!r}; expected a positive number")
    frames = max(2, round(float(motion.t[-1] - motion.t[0]) / speed * fps) + 1)
    if frames > MOST_FRAMES:
        raise StateError(
            f"the film would have {frames} frames; expected at most {MOST_FRAMES}: raise speed, or lower fps"
        )
    scene = scene_of_motion(motion, sample, frames, reactions="reactions" in layers)
    if path.suffix == ".html":
        return _page(path, scene, layers, fps)
    painting = Painting(scene, layers, size)
    # an interrupted film must not look like a complete one: files appear under their names when all are written
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}_") as folder:
        unfinished = Path(folder) / path.name
        if path.suffix == ".png":
            written = _pictures(unfinished, painting, frames)
        else:
            written = _video(unfinished, painting, frames, fps)
        return [file.replace(path.with_name(file.name)) for file in written]


def picture(model: Model, q: npt.ArrayLike | None, show: Sequence[str], size: tuple[int, int]) -> Figure:
    """A figure of a model: see `Model.picture`."""
    q = np.asarray(model.neutral() if q is None else q, np.float64)
    return Painting(scene_at_rest(model, q), checked_layers(show), size).figure


def _page(path: Path, scene: Scene, layers: Sequence[str], fps: float) -> list[Path]:
    server = server_of("127.0.0.1", 0, scene.model.name)
    try:
        stage = Stage(server, scene, layers)
        recorder = server.get_scene_serializer()
        for frame in range(scene.t.size):
            stage.show(frame)
            recorder.insert_sleep(1.0 / fps)
        path.write_text(recorder.as_html(), encoding="utf-8")
    finally:
        stop(server)
    return [path]


def _pictures(path: Path, painting: Painting, frames: int) -> list[Path]:
    written = [path.with_name(f"{path.stem}_{frame:04d}.png") for frame in range(frames)]
    for frame, file in enumerate(written):
        painting.show(frame)
        painting.figure.savefig(file)
    return written


def _video(path: Path, painting: Painting, frames: int, fps: Any) -> list[Path]:
    import matplotlib as mpl
    from matplotlib.animation import FuncAnimation

    settings: Any = {}
    if path.suffix == ".mp4":
        import imageio_ffmpeg  # brings the program with it

        settings["animation.ffmpeg_path"] = imageio_ffmpeg.get_ffmpeg_exe()
    with mpl.rc_context(settings):
        animation = FuncAnimation(painting.figure, painting.show, frames)
        animation.save(path, writer=WRITERS[path.suffix], fps=fps)
    return [path]
