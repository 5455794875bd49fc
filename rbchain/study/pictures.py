"""Plots of a study's results with matplotlib: `results.rbchain.plot(...)`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from ..errors import StudyError
from ..plots import draw_quantile_bands

if TYPE_CHECKING:
    from ..figure import Figure

MOST_POINTS = 20_000  # samples in a scatter plot; more would not be visible
MOST_INFLUENTIAL = 4
GROUPS = 20
COLOURS = {"bar": "#4878a8", "line": "#b5482f", "point": "#30506e"}


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


def measures_of(results: xarray.Dataset) -> list[str]:
    """Return the names of the outputs that have one number for each sample."""
    return [str(n) for n, v in results.items() if v.dims == ("sample",) and v.dtype.kind == "f" and n != "end_time"]


def _axes(rows: int, columns: int, width: float = 9.0, height: float = 3.2) -> tuple[Figure, np.ndarray]:
    from ..figure import Figure

    figure = Figure(figsize=(width, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False).ravel()


def draw_distribution(results: xarray.Dataset, name: str, statistics: dict[str, Any] | None) -> Figure | None:
    """Plot a histogram with median and quantiles."""
    if statistics:
        counts, edges = (np.array(statistics["of"][name][key], float) for key in ("histogram", "histogram_edges"))
    else:
        values = results[name].values
        counts, edges = np.histogram(values[np.isfinite(values)], 60)
    if counts.sum() == 0:
        return None
    figure, (axes,) = _axes(1, 1)
    axes.stairs(counts, edges, fill=True, color=COLOURS["bar"])
    if statistics:
        quantiles = dict(zip(statistics["levels"], statistics["of"][name]["quantiles"], strict=True))
        for level, style in ((0.05, ":"), (0.5, "-"), (0.95, ":")):
            label = f"{level:.0%}: {quantiles[level]:.5g}"
            axes.axvline(quantiles[level], color=COLOURS["line"], linestyle=style, label=label)
        axes.legend(frameon=False)
    axes.set(xlabel=_label(results[name]), ylabel="samples")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_influences(results: xarray.Dataset, name: str) -> Figure | None:
    """Plot the measure against each of the parameters that explain most of its variance."""
    if "parameter" not in results.coords:
        return None
    step = max(1, results.sizes["sample"] // MOST_POINTS)
    values, drawn = results[name][::step].values, results.parameters[::step].values
    finite = np.isfinite(values)
    values, drawn = values[finite], drawn[finite]
    if values.size < 2 * GROUPS or np.ptp(values) == 0:
        return None
    shares = {c: explained(drawn[:, c], values) for c in range(drawn.shape[1]) if np.ptp(drawn[:, c]) > 0}
    most = [c for c in sorted(shares, key=lambda c: -shares[c])[:MOST_INFLUENTIAL] if shares[c] > 0.005]
    if not most:
        return None
    figure, all_axes = _axes(1, len(most), height=3.0)
    for axes, c in zip(all_axes, most, strict=True):
        axes.plot(drawn[:, c], values, ".", markersize=2, alpha=0.4, color=COLOURS["point"], rasterized=True)
        axes.set(xlabel=str(results.parameter.values[c]), title=f"explains {shares[c]:.0%} of the variance")
        axes.title.set_fontsize(9)
        axes.spines[["top", "right"]].set_visible(False)
    all_axes[0].set_ylabel(_label(results[name]))
    return figure


def explained(parameter: np.ndarray, values: np.ndarray) -> float:
    """Estimate the share of the variance of `values` that the parameter alone explains: the correlation ratio.

    Samples are sorted by the parameter into groups. The variance that the means of random groups would have is
    subtracted.
    """
    groups = np.array_split(values[np.argsort(parameter, kind="stable")], GROUPS)
    means, sizes = np.array([g.mean() for g in groups]), np.array([g.size for g in groups])
    between, total = (sizes * (means - values.mean()) ** 2).sum(), ((values - values.mean()) ** 2).sum()
    by_chance = (total - between) / (values.size - GROUPS) * (GROUPS - 1)
    return max(0.0, float((between - by_chance) / total))


def draw_bands(results: xarray.Dataset, name: str, statistics: dict[str, Any]) -> Figure:
    """Plot median and quantile bands of each coordinate over time."""
    variable, levels = results[name], statistics["levels"]
    quantiles = np.array(statistics["of"][name]["quantiles"], dtype=float)  # (levels, times, coordinates)
    labels, times = results[variable.dims[2]].values, results.time.values
    columns = min(3, len(labels))
    figure, all_axes = _axes(-(-len(labels) // columns), columns, height=2.6)
    for i, (axes, label) in enumerate(zip(all_axes, labels, strict=False)):
        draw_quantile_bands(axes, times, levels, quantiles[:, :, i])
        axes.set(xlabel="t (s)", ylabel=f"{name} {label}")
        axes.spines[["top", "right"]].set_visible(False)
    for axes in all_axes[len(labels) :]:
        axes.remove()
    all_axes[0].legend(frameon=False, fontsize=8)
    return figure


def _label(variable: xarray.DataArray) -> Any:
    return variable.attrs.get("long_name") or variable.name
