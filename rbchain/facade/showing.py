"""A mechanism in the browser and in images: methods of `Model`, which require the `view` extra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy.typing as npt

from ..common.calls import explains_calls

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..view.viewer import Viewer
    from .model import Model


@explains_calls(is_method=True)
def view(
    model: Model,
    q: npt.ArrayLike | None = None,
    *,
    show: Sequence[str] = ("bodies",),
    port: int = 8080,
    host: str = "127.0.0.1",
) -> Viewer:
    """Show the mechanism in the browser, with sliders for its joints (extra `view`).

    Parameters
    ----------
    q : (nq,) array, optional
        Initial positions; the default is `neutral()`.
    show, port, host
        As for `Trajectory.view`. Reactions are computed for the mechanism at rest, with joint forces that balance
        gravity.

    Returns
    -------
    Viewer
        Its attribute `url` is the address of the page.
    """
    from ..view.viewer import Viewer

    return Viewer(model[(0,) * len(model.batch_shape)], None, q, 0, show, host, port)


@explains_calls(is_method=True)
def picture(
    model: Model,
    q: npt.ArrayLike | None = None,
    *,
    show: Sequence[str] = ("bodies",),
    size: tuple[int, int] = (800, 600),
) -> Figure:
    """Draw the mechanism as a matplotlib Figure (extra `view`).

    Parameters
    ----------
    q : (nq,) array, optional
        Positions; the default is `neutral()`.
    show, size
        As for `Trajectory.film`.

    Returns
    -------
    Figure
    """
    from ..view import film

    return film.picture(model[(0,) * len(model.batch_shape)], q, show, size)
