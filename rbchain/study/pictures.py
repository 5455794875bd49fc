"""Plots of a study's results with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..plots import draw_quantile_bands
from .stored_results import StoredArray, StoredResults

if TYPE_CHECKING:
    import xarray

    from ..figure import Figure

AnyResults: TypeAlias = "xarray.Dataset | StoredResults"

MOST_POINTS = 20_000  # samples in a scatter plot; more would not be visible
MOST_INFLUENTIAL = 4
GROUPS = 20
COLOURS = {"bar": "#4878a8", "line": "#b5482f", "point": "#30506e"}


def measures_of(results: AnyResults) -> list[str]:
    """Return the names of the outputs that have one number for each sample."""
    return [str(n) for n, v in results.items() if v.dims == ("sample",) and v.dtype.kind == "f" and n != "end_time"]


def _axes(rows: int, columns: int, width: float = 9.0, height: float = 3.2) -> tuple[Figure, np.ndarray]:
    from ..figure import Figure

    figure = Figure(figsize=(width, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False).ravel()


def draw_distribution(results: AnyResults, name: str, statistics: dict[str, Any] | None) -> Figure | None:
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


def draw_influences(results: AnyResults, name: str) -> Figure | None:
    """Plot the measure against each of the parameters that explain most of its variance."""
    if "parameter" not in results:
        return None
    values = results[name].values
    step = max(1, len(values) // MOST_POINTS)
    values, drawn = values[::step], results["parameters"][::step].values
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
        axes.set(xlabel=str(results["parameter"].values[c]), title=f"explains {shares[c]:.0%} of the variance")
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


def draw_bands(results: AnyResults, name: str, statistics: dict[str, Any]) -> Figure:
    """Plot median and quantile bands of each coordinate over time."""
    variable, levels = results[name], statistics["levels"]
    quantiles = np.array(statistics["of"][name]["quantiles"], dtype=float)  # (levels, times, coordinates)
    labels, times = results[str(variable.dims[2])].values, results["time"].values
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


def _label(variable: xarray.DataArray | StoredArray) -> Any:
    return variable.attrs.get("long_name") or variable.name
