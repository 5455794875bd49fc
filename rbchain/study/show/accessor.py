"""The accessor `rbchain` of xarray datasets: `results.rbchain.plot(...)`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from ...errors import StudyError
from .pictures import GROUPS, draw_bands, draw_distribution, draw_influences, measures_of

if TYPE_CHECKING:
    from ...plots.figure import Figure
    from ..study import Study


@xarray.register_dataset_accessor("rbchain")
class Results:
    """The accessor `rbchain` of an xarray Dataset with the results of a study.

    Attributes
    ----------
    study : Study or None
        The study that computed the results. None for results that were opened from a folder, copied or changed.
    """

    def __init__(self, results: xarray.Dataset) -> None:
        self._results = results
        self.study: Study | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_results": self._results, "study": None}  # functions of a study may be impossible to pickle

    def gradient(self, measure: str | None = None) -> xarray.Dataset:
        """Compute the derivatives of measures by the drawn numbers, at the means of these numbers.

        Parameters
        ----------
        measure : str, optional
            Name of a measure; all measures by default.

        Returns
        -------
        xarray.Dataset
            As from `Study.gradient`. In addition `monte_carlo_std`, the standard deviation of the measure among the
            samples that did not fail, to compare with `first_order_std`.

        Raises
        ------
        StudyError
            As `Study.gradient`, and if the results do not contain their study.

        Examples
        --------
        >>> import rbchain as rb
        >>> study = rb.Study(
        ...     model=rb.Model.serial_chain(1, gravity=(0, 0, 0)), samples=200, simulate={"duration": 2.0},
        ...     vary=[{"parameter": "qd", "distribution": {"kind": "normal", "std": 0.1}}],
        ...     measures=[{"name": "angle", "quantity": "position", "joint": "link1"}],
        ... )
        >>> found = study.run().rbchain.gradient("angle")
        >>> bool(abs(found.monte_carlo_std / found.first_order_std - 1) < 0.2)
        True
        """
        if self.study is None:
            raise StudyError(
                "these results do not contain their study, whose model a gradient needs; call gradient of the study. "
                "For results in a folder: rbchain.Study.of_results(folder).gradient(measure)"
            )
        found = self.study.gradient(measure)
        stds = [self._results[name].std(ddof=1).item() for name in np.ravel(found.measure.values)]
        found = found.assign(monte_carlo_std=(found.measure.dims, np.reshape(stds, found.measure.shape)))
        kept = {name: text for name, text in self._results.attrs.items() if name == "survivors"}
        return found.assign_attrs(kept)

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
