"""Figures that notebooks show."""

import io

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
