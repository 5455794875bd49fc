"""The accessor `rbchain` of xarray datasets: `results.rbchain.plot(...)`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import xarray

from ..errors import StudyError
from .pictures import GROUPS, draw_bands, draw_distribution, draw_influences, measures_of

if TYPE_CHECKING:
    from ..figure import Figure


@xarray.register_dataset_accessor("rbchain")
class Results:
    """The accessor `rbchain` of an xarray Dataset with the results of a study."""

    def __init__(self, results: xarray.Dataset) -> None:
        self._results = results

    def plot(self, name: str | None = None, *, influences: bool = False) -> Figure:
        """Plot one output.

        Parameters
        ----------
        name : str, optional
            Name of a measure, to plot its distribution with median and quantiles. Or "q" or "qd", if the motion was
            stored, to plot median and quantile bands over time. The first measure by default.
        influences : bool
            Whether to plot a measure against the parameters that explain most of its variance instead.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        StudyError
            If there is no such output, or too few different numbers.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     model=rb.Model.serial_chain(1), samples=50, simulate={"duration": 0.1},
        ...     vary=[{"parameter": "q", "distribution": {"kind": "uniform", "low": -0.1, "high": 0.1}}],
        ...     measures=[{"name": "lowest", "quantity": "coordinate", "frame": "link1", "axis": "y", "over": "min"}],
        ... )
        >>> study.run().rbchain.plot("lowest").axes[0].get_ylabel()
        'samples'
        """
        measures = measures_of(self._results)
        motions = [n for n in ("q", "qd") if n in self._results and "time" in self._results[n].dims]
        name = name or next(iter([*measures, *motions]), None)
        statistics = json.loads(self._results.attrs.get("statistics", "null"))
        figure = None
        if name in measures:
            draw = (self._results, name)
            figure = draw_influences(*draw) if influences else draw_distribution(*draw, statistics)
        elif name in motions and statistics:
            figure = draw_bands(self._results, name, statistics)
        if figure is None:
            raise StudyError(_why_nothing_to_plot(name, measures, motions, influences))
        return figure


def _why_nothing_to_plot(name: str | None, measures: list[str], motions: list[str], influences: bool) -> str:
    if name is None:
        return "the study has no output to plot; add measures, or set motion = true in outputs"
    if name in motions:
        return f"{name!r} can be plotted when the study is finished; run it again to resume it"
    if name not in measures:
        return f"name is {name!r}; expected one of {[*measures, *motions]}"
    if influences:
        return (
            f"the influences on {name!r} cannot be plotted; expected at least {2 * GROUPS} samples, and a parameter "
            "that explains more than 0.5 % of the variance"
        )
    return f"{name!r} cannot be plotted; expected samples with a finite value"
