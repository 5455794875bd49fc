"""Trajectories in the browser and in animations: methods of `Trajectory`, which require the `view` extra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..common.calls import explains_calls

if TYPE_CHECKING:
    from pathlib import Path

    from ..view.viewer import Viewer
    from .trajectory import Trajectory


@explains_calls(is_method=True)
def view(
    motion: Trajectory,
    sample: int | tuple[int, ...] = 0,
    *,
    show: Sequence[str] = ("bodies", "ghosts", "trails"),
    port: int = 8080,
    host: str = "127.0.0.1",
) -> Viewer:
    """Play the trajectory in the browser (extra `view`).

    Move the joints with the sliders, and the camera with the mouse.

    Parameters
    ----------
    sample : int or tuple
        The sample to show in full; up to 30 others of the batch are drawn as ghosts.
    show : sequence of str
        Layers that are visible at first: "bodies", "ghosts", "trails" (of the outermost points), "frames",
        "centers" (of mass), "ellipsoids" (of inertia) and "reactions" (forces in the joints). The page has a
        checkbox for each layer.
    port : int
        The first port to try.
    host : str
        Address to listen on; "0.0.0.0" makes the page available to other machines.

    Returns
    -------
    Viewer
        Its attribute `url` is the address of the page, which exists until `close()`. In a script, `wait()` blocks
        until Ctrl-C.
    """
    from ..view.viewer import Viewer

    return Viewer(motion.model, motion, None, sample, show, host, port)


@explains_calls(is_method=True)
def film(
    motion: Trajectory,
    path: str | Path,
    sample: int | tuple[int, ...] = 0,
    *,
    show: Sequence[str] = ("bodies", "ghosts", "trails"),
    fps: float = 30,
    speed: float = 1.0,
    size: tuple[int, int] = (800, 600),
) -> list[Path]:
    """Write the trajectory as an animation (extra `view`).

    Parameters
    ----------
    path : str or Path
        The suffix selects the format: `.html` for a page that does not need a server or a network connection; `.gif` or
        `.mp4`; `.png` for an image of each frame, such as swing_0000.png for "swing.png".
    sample, show
        As for `view`.
    fps, speed : float
        Frames per second of the animation, and seconds of the simulation per second of the animation.
    size : (int, int)
        Width and height in pixels; not used for `.html`.

    Returns
    -------
    list of Path
        The files written.

    Warns
    -----
    UserWarning
        If `show` contains "reactions" but they are not available, or if only the first and last states were saved.
    """
    from ..view import film as films

    return films.film(motion, path, sample, show, fps, speed, size)
