"""Films of trajectories: HTML pages, GIF and MP4 files, and series of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..common.interrupts import interrupts_wait
from ..common.progress import progress
from ..common.real_arrays import excerpt
from ..common.whole_files import PARTIAL, whole_file
from ..errors import ArgumentError
from .painting import DPI, Painting
from .scene import Scene, checked_layers, known_layers, scene_at_rest, scene_of_motion
from .stage import Stage
from .viewer import server_of, stop

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..facade.model import Model
    from ..simulate.trajectory import Trajectory

MAX_FRAMES = 20_000
ENDINGS = (".html", ".gif", ".mp4", ".png")


def film(
    motion: Trajectory,
    path: str | Path,
    sample: int | tuple[int, ...],
    show: Sequence[str],
    fps: float,
    speed: float,
    size: tuple[int, int],
) -> list[Path]:
    """Write an animation of a trajectory: see `Trajectory.film`."""
    path, layers = Path(path), checked_layers(show)
    if path.suffix not in ENDINGS:
        raise ArgumentError(f"{path}: expected .html, .gif, .mp4 or .png; found {path.suffix or 'no ending'}")
    for name, value in (("fps", fps), ("speed", speed)):
        if not 0.0 < value < np.inf:
            raise ArgumentError(f"{name} is {value!r}; expected a positive number")
    check_size(size)
    if not path.parent.is_dir():
        raise ArgumentError(
            f"path is {str(path)!r}, but the folder {str(path.parent)!r} does not exist; expected a folder"
        )
    frames = max(2, round(float(motion.t[-1] - motion.t[0]) / speed * fps) + 1)
    if frames > MAX_FRAMES:
        raise ArgumentError(
            f"the film would have {frames} frames; expected at most {MAX_FRAMES}: raise speed or lower fps"
        )
    scene = scene_of_motion(motion, sample, frames)
    layers = known_layers(scene, layers)
    with progress(f"Writing {path.name}", frames) as work, interrupts_wait() as interrupt:

        def next_frame() -> None:
            work.advance()
            interrupt()

        if path.suffix == ".html":
            return _page(path, scene, layers, fps, next_frame)
        painting = Painting(scene, layers, size)
        # the files get their names only when all are complete, so that an interrupted film cannot be taken for one
        with TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}_") as folder:
            unfinished = Path(folder) / path.name
            if path.suffix == ".png":
                written = _pictures(unfinished, painting, next_frame)
            else:
                written = _video(unfinished, painting, fps, next_frame)
            return [file.replace(path.with_name(file.name)) for file in written]


def picture(model: Model, q: npt.ArrayLike | None, show: Sequence[str], size: tuple[int, int]) -> Figure:
    """Figure of a model: see `Model.picture`."""
    check_size(size)
    q = np.asarray(model.neutral() if q is None else q, np.float64)
    scene = scene_at_rest(model, q)
    return Painting(scene, known_layers(scene, checked_layers(show)), size).figure


def check_size(size: tuple[int, int]) -> None:
    """Raise an ArgumentError if the size of an image is not a width and a height in pixels."""
    if not isinstance(size, (tuple, list)) or len(size) != 2 or not all(isinstance(x, int) and x > 0 for x in size):
        raise ArgumentError(f"size is {excerpt(size)}; expected a width and a height in pixels, such as (800, 600)")


def _page(path: Path, scene: Scene, layers: Sequence[str], fps: float, next_frame: Callable[[], None]) -> list[Path]:
    server = server_of("127.0.0.1", 0, scene.model.name)
    try:
        stage = Stage(server, scene, layers)
        recorder = server.get_scene_serializer()
        for frame in range(scene.t.size):
            stage.show(frame)
            recorder.insert_sleep(1.0 / fps)
            next_frame()
        with whole_file(path) as partial:
            partial.write_text(recorder.as_html(), encoding="utf-8")
    finally:
        stop(server)
    return [path]


def _pictures(path: Path, painting: Painting, next_frame: Callable[[], None]) -> list[Path]:
    written = [path.with_name(f"{path.stem}_{frame:04d}.png") for frame in range(painting.scene.t.size)]
    for frame, file in enumerate(written):
        painting.show(frame)
        with whole_file(file) as partial:
            painting.figure.savefig(partial, format="png")
        next_frame()
    return written


def _video(path: Path, painting: Painting, fps: Any, next_frame: Callable[[], None]) -> list[Path]:
    import matplotlib as mpl
    from matplotlib import animation

    settings: Any = {"savefig.bbox": None}  # frames of different sizes cannot be written
    if path.suffix == ".mp4":
        import imageio_ffmpeg  # contains the program

        settings["animation.ffmpeg_path"] = imageio_ffmpeg.get_ffmpeg_exe()
    with mpl.rc_context(settings):
        writer = animation.PillowWriter(fps) if path.suffix == ".gif" else animation.FFMpegWriter(fps)
        with whole_file(path, PARTIAL + path.suffix) as partial, writer.saving(painting.figure, partial, DPI):
            for frame in range(painting.scene.t.size):
                painting.show(frame)
                writer.grab_frame()
                next_frame()
    return [path]
