"""Plots of a study's results with matplotlib."""

from __future__ import annotations

import textwrap
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
WIDTH = 9.0  # of figures, in inches like all lengths here
MARGINS = (0.85, 0.15, 0.6, 0.4)  # left, right, bottom, top: for a label, and numbers of six letters
GAP = 0.2  # between axes, besides their labels
FONT_SIZE, LETTER_WIDTH = 10.0, 0.085
COLOURS = {"bar": "#4878a8", "line": "#b5482f", "point": "#30506e"}


def measures_of(results: AnyResults) -> list[str]:
    """Return the names of the outputs that have one number for each sample."""
    return [str(n) for n, v in results.items() if v.dims == ("sample",) and v.dtype.kind == "f" and n != "end_time"]


def _axes(rows: int, columns: int, height: float, shared_y: bool = False) -> tuple[Figure, np.ndarray]:
    """Return a figure and its axes. The margins are constant: matplotlib fits them in twice the time of drawing."""
    from ..figure import Figure

    left, right, bottom, top = MARGINS
    across, down = GAP if shared_y else left, bottom + GAP
    width, height = WIDTH, height * rows
    grid = {
        "left": left / width,
        "right": 1.0 - right / width,
        "bottom": bottom / height,
        "top": 1.0 - top / height,
        "wspace": across * columns / (width - left - right - (columns - 1) * across),
        "hspace": down * rows / (height - bottom - top - (rows - 1) * down),
    }
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(rows, columns, squeeze=False, sharey=shared_y, gridspec_kw=grid).ravel()


def _finish(axes: Any, xlabel: str, ylabel: str = "") -> None:
    """Label the axes, in small letters and several lines if a label is longer than its axis."""
    width, height = axes.figure.get_size_inches() * axes.get_position().size
    for set_label, label, length in ((axes.set_xlabel, xlabel, width), (axes.set_ylabel, ylabel, height)):
        if len(label) * LETTER_WIDTH <= length:
            set_label(label)
        else:
            set_label(textwrap.fill(label, int(length / (0.8 * LETTER_WIDTH))), fontsize=0.8 * FONT_SIZE)
    axes.ticklabel_format(scilimits=(-3, 5))  # numbers at the ticks fit into the margins
    axes.spines[["top", "right"]].set_visible(False)


def draw_distribution(results: AnyResults, name: str, statistics: dict[str, Any] | None) -> Figure | None:
    """Plot a histogram with median and quantiles."""
    if statistics:
        counts, edges = (np.array(statistics["of"][name][key], float) for key in ("histogram", "histogram_edges"))
    else:
        values = results[name].values
        counts, edges = np.histogram(values[np.isfinite(values)], 60)
    if counts.sum() == 0:
        return None
    figure, (axes,) = _axes(1, 1, 3.2)
    axes.stairs(counts, edges, fill=True, color=COLOURS["bar"])
    if statistics:
        quantiles = dict(zip(statistics["levels"], statistics["of"][name]["quantiles"], strict=True))
        for level, style in ((0.05, ":"), (0.5, "-"), (0.95, ":")):
            label = f"{level:.0%}: {quantiles[level]:.5g}"
            axes.axvline(quantiles[level], color=COLOURS["line"], linestyle=style, label=label)
        axes.legend(frameon=False)
    _finish(axes, _label(results[name]), "samples")
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
    figure, all_axes = _axes(1, len(most), 3.0, shared_y=True)
    for axes, c in zip(all_axes, most, strict=True):
        axes.plot(drawn[:, c], values, ".", markersize=2, alpha=0.4, color=COLOURS["point"], rasterized=True)
        # without y, matplotlib measures all labels to place the title
        axes.set_title(f"explains {shares[c]:.0%} of the variance", fontsize=9, y=1.0, pad=14)
        _finish(axes, str(results["parameter"].values[c]), _label(results[name]) if axes is all_axes[0] else "")
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
    figure, all_axes = _axes(-(-len(labels) // columns), columns, 2.6)
    for i, (axes, label) in enumerate(zip(all_axes, labels, strict=False)):
        draw_quantile_bands(axes, times, levels, quantiles[:, :, i])
        _finish(axes, "t (s)", f"{name} {label}")
    for axes in all_axes[len(labels) :]:
        axes.remove()
    handles = all_axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="upper right", ncols=len(handles[0]), frameon=False, fontsize=8, borderaxespad=0.2)
    return figure


def _label(variable: xarray.DataArray | StoredArray) -> str:
    return str(variable.attrs.get("long_name") or variable.name)
