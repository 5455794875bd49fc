"""Plots of a study's results with matplotlib."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...plots.motions import draw_quantile_bands
from ..analyze.explained_variance import explained_shares
from ..run.order_statistics import QuantileAndInterval, quantile_and_interval
from ..store.stored_results import StoredArray, StoredResults
from .report_tables import with_digits

if TYPE_CHECKING:
    import xarray

    from ...plots.figure import Figure

AnyResults: TypeAlias = "xarray.Dataset | StoredResults"

MOST_POINTS = 20_000  # samples from which densities and influences are estimated
FEW_POINTS = 1000  # drawn one by one; more would hide each other
CELLS = (40, 60)  # of a density plot, across and up
MOST_INFLUENTIAL = 4
LEAST_SHARE = 0.005  # of the variance that an influential parameter explains
GROUPS = 20
SHOWN_LEVELS = (0.05, 0.5, 0.95)  # of quantiles
PREFIXES, SHORTEST_PREFIX = 30, 20  # of the samples, in a plot of convergence
WIDTH = 9.0  # of figures, in inches like all lengths here
MARGINS = (0.85, 0.3, 0.6, 0.4)  # left, right, bottom, top: for a label, and numbers of six letters
GAP = 0.2  # between axes, besides their labels
FONT_SIZE, LETTER_WIDTH = 10.0, 0.085
MOST_TICKS = 5  # matplotlib spends most of its time on ticks
COLORS = {"bar": "#4878a8", "line": "#b5482f", "point": "#30506e"}
DENSITY_COLORS = "Blues"


def measures_of(results: AnyResults) -> list[str]:
    """Return the names of the outputs that have one value for each sample."""
    return [str(n) for n, v in results.items() if v.dims == ("sample",) and v.dtype.kind == "f" and n != "end_time"]


def units_along(results: AnyResults, dim: str) -> list[str]:
    """Return the units of the entries along an axis, such as "position"; "1" stands for plain numbers."""
    return [str(unit) for unit in results[f"{dim}_units"].values]


def with_unit(label: str, unit: str) -> str:
    """Return a label with its unit in parentheses; plain numbers have no unit."""
    return f"{label} ({unit})" if unit not in ("", "1") else label


def _axes(rows: int, columns: int, height: float, shared_y: bool = False, width: float = WIDTH) -> tuple[Any, Any]:
    """Return a figure and its axes. The margins are constant: matplotlib fits them in twice the time of drawing."""
    from ...plots.figure import Figure

    left, right, bottom, top = MARGINS
    across, down = GAP if shared_y else left, bottom + GAP
    height = height * rows
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
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "log":
            powers = 10 ** np.arange(np.ceil(np.log10(low)), np.floor(np.log10(high)) + 1).astype(int)
            places = powers if len(powers) > 1 else np.array([low, high]).astype(int)
            axis.set_ticks(places, [f"{place:,}" for place in places])  # exponents take time to typeset
            continue
        axis.get_major_locator().set_params(nbins=MOST_TICKS)
        ticks = axis.get_major_locator().tick_values(low, high)
        axis.set_ticks(ticks[(ticks >= low) & (ticks <= high)])
        axes.ticklabel_format(axis=axis.axis_name, scilimits=(-3, 5))  # numbers at the ticks fit into the margins
    axes.spines[["top", "right"]].set_visible(False)


def draw_distribution(
    results: AnyResults, name: str, statistics: dict[str, Any] | None, width: float = WIDTH
) -> Figure | None:
    """Plot a histogram with median and quantiles."""
    if statistics:
        counts, edges = (np.array(statistics["of"][name][key], float) for key in ("histogram", "histogram_edges"))
    else:
        values = results[name].values
        counts, edges = np.histogram(values[np.isfinite(values)], 60)
    if counts.sum() == 0:
        return None
    figure, (axes,) = _axes(1, 1, 3.2, width=width)
    axes.stairs(counts, edges, fill=True, color=COLORS["bar"])
    if statistics:
        found = zip(SHOWN_LEVELS, shown_quantiles(results, name), (":", "-", ":"), strict=True)
        for level, (quantile, low, high), style in found:
            known, *_ = with_digits(quantile, low, high)
            label = f"{100 * level:.0f} %: {known} {results[name].attrs.get('units', '')}"
            axes.axvline(quantile, color=COLORS["line"], linestyle=style, label=label)
        axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, fontsize=8, borderpad=0.0)
    _finish(axes, _label(results[name]), "samples")
    return figure


def shown_quantiles(results: AnyResults, name: str) -> list[QuantileAndInterval]:
    """Return the quantiles of the finite values of a measure at `SHOWN_LEVELS`, and their 95 % confidence intervals."""
    values = results[name].values
    ordered = np.sort(values[np.isfinite(values)])
    return [quantile_and_interval(ordered, level) for level in SHOWN_LEVELS]


def draw_convergence(results: AnyResults, name: str, width: float = WIDTH) -> Figure | None:
    """Plot the quantiles of the first n samples over n, with their 95 % confidence intervals."""
    values = results[name].values
    values = values[np.isfinite(values)]
    if values.size < 2 * SHORTEST_PREFIX or np.ptp(values) == 0:
        return None
    first = max(SHORTEST_PREFIX, values.size // 1000)
    counts = np.unique(np.geomspace(first, values.size, PREFIXES).astype(int))
    found = np.full((len(SHOWN_LEVELS), 3, counts.size), np.nan)  # quantile, and the ends of its interval
    for i, count in enumerate(counts):
        ordered = np.sort(values[:count])
        for of_level, level in zip(found, SHOWN_LEVELS, strict=True):
            of_level[:, i] = quantile_and_interval(ordered, level)
    figure, (axes,) = _axes(1, 1, 3.2, width=width)
    for (quantile, low, high), level in zip(found, SHOWN_LEVELS, strict=True):
        style = "-" if level == 0.5 else ":"
        axes.fill_between(counts, low, high, color=COLORS["bar"], alpha=0.3, linewidth=0)
        axes.plot(counts, quantile, color=COLORS["line"], linestyle=style, label=f"{100 * level:.0f} %")
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_xlim(counts[0], counts[-1])
    _finish(axes, "number of samples", _label(results[name]))
    return figure


def influences_on(results: AnyResults, name: str) -> list[tuple[int, float]]:
    """Return the parameters that explain most of the variance of a measure, as column and share, the largest first."""
    if "parameter" not in results:
        return []
    values, drawn = _finite_pairs(results, name)
    if values.size < 2 * GROUPS or np.ptp(values) == 0:
        return []
    shares = explained_shares(drawn, values)
    most = np.argsort(-shares, kind="stable")[:MOST_INFLUENTIAL]
    return [(int(c), float(shares[c])) for c in most if shares[c] > LEAST_SHARE]


def _finite_pairs(results: AnyResults, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a measure (m,) and the random inputs (m, columns) of the samples where it is finite."""
    values = results[name].values
    step = max(1, len(values) // MOST_POINTS)
    values, drawn = values[::step], results["parameters"][::step].values
    finite = np.isfinite(values)
    return values[finite], drawn[finite]


def draw_influences(
    results: AnyResults, name: str, influences: Sequence[tuple[int, float]] | None = None
) -> Figure | None:
    """Plot the measure against each of the parameters that explain most of its variance.

    Many samples are drawn as their density: a darker cell contains more samples. The line is the mean of the measure in
    groups of equal size.
    """
    influences = influences_on(results, name) if influences is None else influences
    if not influences:
        return None
    values, drawn = _finite_pairs(results, name)
    labels, units = results["parameter"].values, units_along(results, "parameter")
    figure, all_axes = _axes(1, len(influences), 3.0, shared_y=True, width=WIDTH * min(1.0, (1 + len(influences)) / 4))
    for axes, (c, share) in zip(all_axes, influences, strict=True):
        if values.size <= FEW_POINTS:
            axes.plot(drawn[:, c], values, ".", markersize=3, alpha=0.6, color=COLORS["point"])
        else:
            counts, across, up = np.histogram2d(drawn[:, c], values, CELLS)
            axes.imshow(
                np.ma.masked_equal(counts.T, 0.0),
                cmap=DENSITY_COLORS,
                vmin=-0.25 * counts.max(),  # so that a cell with one sample is visible
                extent=(across[0], across[-1], up[0], up[-1]),
                origin="lower",
                aspect="auto",
                interpolation="nearest",
            )
        means = [(drawn[g, c].mean(), values[g].mean()) for g in _groups(drawn[:, c])]
        axes.plot(*np.transpose(means), color=COLORS["line"])
        # without y, matplotlib measures all labels to place the title
        axes.set_title(f"explains {100 * share:.0f} % of the variance", fontsize=9, y=1.0, pad=14)
        label = with_unit(str(labels[c]), units[c])
        _finish(axes, label, _label(results[name]) if axes is all_axes[0] else "")
    return figure


def _groups(parameter: np.ndarray) -> list[np.ndarray]:
    """Return the indices of samples in groups of equal size, sorted by the parameter."""
    return np.array_split(np.argsort(parameter, kind="stable"), GROUPS)


def _axes_of_coordinates(count: int) -> tuple[Any, Any]:
    """Return a figure, and axes over time for each of the coordinates."""
    columns = min(3, count)
    figure, all_axes = _axes(-(-count // columns), columns, 2.6, width=WIDTH * (1 + columns) / 4)
    for axes in all_axes[count:]:
        axes.remove()
    return figure, all_axes[:count]


def draw_bands(results: AnyResults, name: str, statistics: dict[str, Any]) -> Figure:
    """Plot median and quantile bands of each coordinate over time."""
    variable, levels = results[name], statistics["levels"]
    quantiles = np.array(statistics["of"][name]["quantiles"], dtype=float)  # (levels, times, coordinates)
    dim = str(variable.dims[2])
    labels, units, times = results[dim].values, units_along(results, dim), results["time"].values
    figure, all_axes = _axes_of_coordinates(len(labels))
    for i, (axes, label) in enumerate(zip(all_axes, labels, strict=True)):
        draw_quantile_bands(axes, times, levels, quantiles[:, :, i])
        _finish(axes, "t (s)", with_unit(f"{name} {label}", units[i]))
    handles = all_axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="upper right", ncols=len(handles[0]), frameon=False, fontsize=8, borderaxespad=0.2)
    return figure


def draw_motion(times: np.ndarray, q: np.ndarray, labels: Sequence[str], units: Sequence[str]) -> Figure:
    """Plot the positions (times, coordinates) of one sample over time."""
    figure, all_axes = _axes_of_coordinates(len(labels))
    for axes, values, label, unit in zip(all_axes, q.T, labels, units, strict=True):
        axes.plot(times, values, color=COLORS["line"])
        _finish(axes, "t (s)", with_unit(label, unit))
    return figure


def _label(variable: xarray.DataArray | StoredArray) -> str:
    return str(variable.attrs.get("long_name") or variable.name)
