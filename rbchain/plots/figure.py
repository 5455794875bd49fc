"""Figures that notebooks show."""

import io
from typing import Any

import numpy as np
from matplotlib.figure import Figure as MatplotlibFigure


class Figure(MatplotlibFigure):
    """A matplotlib figure that a notebook shows as the result of a cell.

    matplotlib's own figures are shown only after `%matplotlib inline` or an import of pyplot. pyplot does not know
    this figure, so that it does not show it a second time.
    """

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()


def figure_with_panels(
    rows: int, columns: int, size: tuple[float, float], **settings: Any
) -> tuple[Figure, np.ndarray]:
    """Return a figure of this size, in inches, and its axes (rows, columns). `settings` are for `Figure.subplots`."""
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, **settings)
    for axes in panels.ravel():
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels
