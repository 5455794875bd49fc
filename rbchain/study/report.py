"""The report of a study: one HTML page that stands alone, and its pictures."""

from __future__ import annotations

import base64
import html
import io
import json
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import STATUS_SENTENCES
from .outputs import BAD_PARAMETERS, ENDED_WELL
from .store import open_dataset

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

SHOWN = 20_000  # samples in a scatter plot and a rank correlation: more do not show
MOST_INFLUENTIAL = 4
GROUPS = 20
COLOURS = {"bar": "#4878a8", "line": "#b5482f", "band": "#9db9d3", "point": "#30506e"}
FAILURES_SHOWN = 20

PAGE = Template("""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-bottom: 1px solid #ccc }
table { border-collapse: collapse; font-size: 0.9rem }
td, th { padding: 0.2rem 0.8rem; border-bottom: 1px solid #e5e5e5 }
th { text-align: left } td.number { text-align: right; font-variant-numeric: tabular-nums }
img { max-width: 100% } pre { background: #f6f6f6; padding: 1rem; overflow-x: auto; font-size: 0.8rem }
</style></head><body>
<h1>$title</h1>
<p>$summary</p>
$sections
</body></html>
""")


def write_report(folder: str | Path) -> Path:
    """Write `report.html` and `report/*.png` into a folder of results; returns the page's path.

    Distributions of all measures, bands of quantiles over time where the motion was kept, each measure against the
    parameters that explain most of its variance, and the samples that failed.
    """
    folder = Path(folder)
    results = open_dataset(folder)
    statistics = json.loads(results.attrs.get("statistics", "null"))
    pictures = {}
    sections = [_about_failures(results)]
    for name in _measures(results):
        pictures[f"distribution of {name}"] = _distribution(results, name, statistics)
        pictures[f"influences on {name}"] = _influences(results, name)
    for name in ("q", "qd"):
        if name in results and statistics:
            pictures[f"{name} over time"] = _bands(results, name, statistics)
    if statistics:
        sections.insert(0, _table(results, statistics))
    (folder / "report").mkdir(exist_ok=True)
    drawn_ones = ((title, figure) for title, figure in pictures.items() if figure is not None)
    for number, (title, figure) in enumerate(drawn_ones, 1):
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=110)
        name = "".join(c if c.isalnum() else "_" for c in title)
        (folder / "report" / f"{number}_{name}.png").write_bytes(drawn.getvalue())
        code = base64.b64encode(drawn.getvalue()).decode()
        words = html.escape(title)
        sections.append(f'<h2>{words.capitalize()}</h2><img alt="{words}" src="data:image/png;base64,{code}">')
    sections.append(_provenance(results))
    page = folder / "report.html"
    title = html.escape(results.attrs["title"])
    page.write_text(
        PAGE.substitute(title=title, summary=_summary(results, statistics), sections="\n".join(sections)),
        encoding="utf-8",
    )
    return page


def _measures(results: xarray.Dataset) -> list[str]:
    """Names of the outputs that are one number of each sample."""
    return [str(n) for n, v in results.items() if v.dims == ("sample",) and v.dtype.kind == "f" and n != "end_time"]


def _summary(results: xarray.Dataset, statistics: dict[str, Any] | None) -> str:
    if not statistics:
        done = int((results.status.values >= 0).sum())
        return f"Not finished: {done:,} of {results.sizes['sample']:,} samples are done."
    rate = statistics["failure_rate"]
    return (
        f"{statistics['samples']:,} samples, of which {statistics['failures']:,} failed: {rate['estimate']:.3%} "
        f"(95 % interval {rate['low']:.3%} to {rate['high']:.3%})."
    )


def _table(results: xarray.Dataset, statistics: dict[str, Any]) -> str:
    """Statistics of the measures and the final state."""
    rows = []
    levels = statistics["levels"]
    for name, of_one in statistics["of"].items():
        variable = results[name]
        if "time" in variable.dims:
            continue
        labels = results[variable.dims[1]].values if len(variable.dims) > 1 else [""]
        columns = {key: np.array(v, dtype=object).reshape(-1, len(labels)) for key, v in of_one.items()}
        for i, label in enumerate(labels):
            deviation = columns["variance"][0][i]
            numbers = [columns["mean"][0][i], None if deviation is None else deviation**0.5, columns["min"][0][i]]
            numbers += [columns["quantiles"][levels.index(p)][i] for p in (0.05, 0.5, 0.95)] + [columns["max"][0][i]]
            cells = "".join(f'<td class="number">{"" if x is None else f"{x:.5g}"}</td>' for x in numbers)
            shown = html.escape(f"{name} {label}".strip())
            rows.append(f"<tr><th>{shown}</th>{cells}<td>{html.escape(variable.attrs.get('units', ''))}</td></tr>")
    head = "".join(f"<th>{x}</th>" for x in ("", "mean", "std", "min", "5 %", "median", "95 %", "max", ""))
    return f"<h2>Statistics</h2><table><tr>{head}</tr>{''.join(rows)}</table>"


def _about_failures(results: xarray.Dataset) -> str:
    """The samples that failed, with what was drawn for them."""
    status = results.status.values
    failed = np.flatnonzero((status > 0) & ~np.isin(status, ENDED_WELL))
    if failed.size == 0:
        return "<h2>Failures</h2><p>None.</p>"
    codes, counts = np.unique(status[failed], return_counts=True)
    words = "".join(f"<li>{n:,}: {html.escape(sentence(int(c)))}</li>" for c, n in zip(codes, counts, strict=True))
    names = results.parameter.values if "parameter" in results.coords else []
    shown = failed[:FAILURES_SHOWN]
    head = "".join(f"<th>{html.escape(str(x))}</th>" for x in ("sample", "status", "end time, s", *names))
    drawn, ends = results.parameters[shown].values, results.end_time[shown].values
    rows = "".join(
        f'<tr><th>{k}</th><td class="number">{status[k]}</td><td class="number">{end:.4g}</td>'
        + "".join(f'<td class="number">{x:.5g}</td>' for x in values)
        + "</tr>"
        for k, end, values in zip(shown, ends, drawn, strict=True)
    )
    more = f"<p>The first {len(shown)} of {failed.size:,}:</p>"
    return f"<h2>Failures</h2><ul>{words}</ul>{more}<table><tr>{head}</tr>{rows}</table>"


def sentence(status: int) -> str:
    """What a sample's status says."""
    if status == BAD_PARAMETERS:
        return "No chain can have the parameters that were drawn."
    return STATUS_SENTENCES.get(status, "The sample has not been computed.")


def _axes(rows: int, columns: int, width: float = 9.0, height: float = 3.2) -> tuple[Figure, np.ndarray]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False).ravel()


def _distribution(results: xarray.Dataset, name: str, statistics: dict[str, Any] | None) -> Figure | None:
    """A histogram, with median and quantiles."""
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
        found = dict(zip(statistics["levels"], statistics["of"][name]["quantiles"], strict=True))
        for level, style in ((0.05, ":"), (0.5, "-"), (0.95, ":")):
            axes.axvline(found[level], color=COLOURS["line"], linestyle=style, label=f"{level:.0%}: {found[level]:.5g}")
        axes.legend(frameon=False)
    axes.set(xlabel=_label(results[name]), ylabel="samples")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _influences(results: xarray.Dataset, name: str) -> Figure | None:
    """The measure against the parameters that explain most of its variance, each alone."""
    if "parameter" not in results.coords:
        return None
    step = max(1, results.sizes["sample"] // SHOWN)
    values, drawn = results[name][::step].values, results.parameters[::step].values
    there = np.isfinite(values)
    values, drawn = values[there], drawn[there]
    if values.size < 2 * GROUPS or np.ptp(values) == 0:
        return None
    shares = {c: explained(drawn[:, c], values) for c in range(drawn.shape[1]) if np.ptp(drawn[:, c]) > 0}
    most = sorted(shares, key=lambda c: -shares[c])[:MOST_INFLUENTIAL]
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
    """The share of the variance of `values` that the parameter alone explains: the correlation ratio.

    Samples are sorted by the parameter into GROUPS; what the means of groups of mere chance would vary by is taken off.
    """
    groups = np.array_split(values[np.argsort(parameter, kind="stable")], GROUPS)
    means, sizes = np.array([g.mean() for g in groups]), np.array([g.size for g in groups])
    between, total = (sizes * (means - values.mean()) ** 2).sum(), ((values - values.mean()) ** 2).sum()
    by_chance = (total - between) / (values.size - GROUPS) * (GROUPS - 1)
    return max(0.0, float((between - by_chance) / total))


def _bands(results: xarray.Dataset, name: str, statistics: dict[str, Any]) -> Figure:
    """Median and quantile bands of each coordinate over time."""
    variable, levels = results[name], statistics["levels"]
    quantiles = np.array(statistics["of"][name]["quantiles"], dtype=float)  # (levels, times, coordinates)
    labels, times = results[variable.dims[2]].values, results.time.values
    columns = min(3, len(labels))
    figure, all_axes = _axes(-(-len(labels) // columns), columns, height=2.6)
    for i, (axes, label) in enumerate(zip(all_axes, labels, strict=False)):
        for low, high, alpha in ((0.05, 0.95, 0.45), (0.25, 0.75, 0.8)):
            band = quantiles[levels.index(low), :, i], quantiles[levels.index(high), :, i]
            axes.fill_between(
                times, *band, color=COLOURS["band"], alpha=alpha, linewidth=0, label=f"{low:.0%}-{high:.0%}"
            )
        axes.plot(times, quantiles[levels.index(0.5), :, i], color=COLOURS["line"], label="median")
        axes.set(xlabel="t (s)", ylabel=f"{name} {label}")
        axes.spines[["top", "right"]].set_visible(False)
    for axes in all_axes[len(labels) :]:
        axes.remove()
    all_axes[0].legend(frameon=False, fontsize=8)
    return figure


def _label(variable: xarray.DataArray) -> Any:
    return variable.attrs.get("long_name") or variable.name


def _provenance(results: xarray.Dataset) -> str:
    """What was run, by what."""
    words = {key: json.loads(results.attrs[key]) for key in ("provenance", "reach", "study") if key in results.attrs}
    return f"<h2>What was run</h2><pre>{html.escape(json.dumps(words, indent=1))}</pre>"
