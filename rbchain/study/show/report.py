"""The report of a study: a self-contained HTML page with plots."""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.interrupts import interrupts_wait
from ...common.whole_files import whole_file
from ..analyze.survivors import survivors_in, warnings_in
from ..describe.kinds_of_quantities import OF_EQUILIBRIA, OF_MODES
from ..plan.outcomes import NOT_RUN, has_failed, sentence
from ..store.layout import SKETCH
from ..store.opening import open_finished
from ..store.stored_results import StoredResults
from .indices_report import sensitivity_indices
from .linear_report import LinearAnalysis
from .pictures import (
    SHOWN_LEVELS,
    WIDTH,
    draw_bands,
    draw_convergence,
    draw_distribution,
    draw_influences,
    influences_on,
    measures_of,
    shown_quantiles,
    units_along,
    with_unit,
)
from .rare_report import rare_events
from .report_tables import number, table, with_digits

if TYPE_CHECKING:
    from ...plots.figure import Figure

FAILURES_SHOWN = 20
DPI = 110
DISTRIBUTION_WIDTH = 0.6 * WIDTH  # the convergence is next to it

PAGE = Template("""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 66rem; margin: 1.5rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: 0 } h2 { font-size: 1.2rem; margin-top: 2rem; border-bottom: 1px solid #ccc }
p { margin: 0.5rem 0 } table { border-collapse: collapse; font-size: 0.9rem } .wide { overflow-x: auto }
td, th { padding: 0.2rem 0.6rem; border-bottom: 1px solid #e5e5e5; vertical-align: top; text-align: left }
caption { text-align: left; padding: 0.2rem 0.6rem }
thead th { vertical-align: bottom } tr > th:first-child { min-width: 10rem }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
small { display: block; color: #666; font-size: 0.75rem; font-weight: normal } .note { color: #555; font-size: 0.85rem }
img { max-width: 100% } .beside { display: flex; gap: 2rem } figure { margin: -2rem 0 0; flex: none }
.tables { display: flex; flex-wrap: wrap; gap: 1.5rem 3rem }
figcaption { color: #555; font-size: 0.75rem; text-align: center }
.beside .beside img { min-width: 0; object-fit: contain }
details { margin-top: 1.5rem } summary { cursor: pointer; font-weight: bold }
pre { background: #f6f6f6; padding: 1rem; overflow-x: auto; font-size: 0.8rem }
</style></head><body>
<h1>$title</h1>
<div class="beside"><p>$summary</p>$sketch</div>
$sections
</body></html>
""")


def write_report(folder: str | Path) -> Path:
    """Write `report.html` and `report/*.png` into a folder of results; returns the path of the page.

    The report begins with a description of the simulation and an image of the mechanism in the initial state of sample
    0. The table of the measures follows: quantiles and mean with their 95 % confidence intervals, standard deviations
    of the samples and of first order, and the parameters that explain most of the variance. For each measure it shows
    the distribution, its convergence with the number of samples, its dependence on these parameters, and the mean by
    control variates. Quantile bands over time follow if the trajectories were stored, then the sensitivity analyses in
    the folder (`rbchain study indices`). Analyses of rare events (`rbchain study probability`) show the most probable
    failing sample, the parameters that drive it, and its trajectory. Then come the failed samples and the dispersions.
    Local sensitivities, the statistics of other outputs and the description of the study are folded.
    """
    folder = Path(folder)
    results, samples = open_finished(folder)
    statistics = json.loads(results.attrs.get("statistics", "null"))
    survivors = survivors_in(results)
    linear = LinearAnalysis(json.loads(results.attrs.get("linear_analysis", "{}")), survivors)
    (folder / "report").mkdir(exist_ok=True)
    for old in (folder / "report").glob("[0-9]*_*.png"):
        old.unlink()
    pictures = _Pictures(folder / "report")
    influences = {name: influences_on(results, name) for name in measures_of(results)}
    sections = [_measures(results, statistics, influences, linear, survivors)] if statistics and influences else []
    for name, of_measure in influences.items():
        sections.append(_measure(results, name, statistics, of_measure, pictures))
        sections.append(linear.mean(results, name))
    if statistics:
        sections += [_bands(results, name, statistics, pictures) for name in ("q", "qd") if name in results]
    sections += [sensitivity_indices(folder), rare_events(folder, pictures.element)]
    sections += [_failures(results), _dispersions(results), linear.sensitivities(results)]
    if statistics:
        sections.append(_other_statistics(results, statistics, "" if influences else " open", survivors))
    sections.append(_description(results))
    page = folder / "report.html"
    title = html.escape(results.attrs["title"])
    summary = _summary(results, samples, statistics)
    filled = PAGE.substitute(title=title, summary=summary, sketch=_sketch(folder), sections="\n".join(sections))
    with whole_file(page) as partial:
        partial.write_text(filled, encoding="utf-8")
    return page


class _Pictures:
    """Writes figures as numbered files, and returns their elements for the page."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def element(self, title: str, figure: Figure | None) -> str:
        """Return the `img` element of a figure; nothing if there is none."""
        if figure is None:
            return ""
        self.count += 1
        png = _png(figure)
        name = "".join(c if c.isalnum() else "_" for c in title)
        with whole_file(self.folder / f"{self.count}_{name}.png") as partial:
            partial.write_bytes(png)
        code = base64.b64encode(png).decode()
        return f'<img alt="{html.escape(title)}" src="data:image/png;base64,{code}">'


def _png(figure: Figure) -> bytes:
    """Return the PNG image of a figure. `Figure.savefig` could draw it twice."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    picture = io.BytesIO()
    figure.set_dpi(DPI)
    # the lowest level of compression takes half of the time of the usual one; the files are as large
    with interrupts_wait():
        FigureCanvasAgg(figure).print_png(picture, pil_kwargs={"compress_level": 1})
    return picture.getvalue()


def _summary(results: StoredResults, samples: int, statistics: dict[str, Any] | None) -> str:
    if not statistics:
        done = int((results["status"].values != NOT_RUN).sum())
        return f"The study is not finished: {done:,} of {samples:,} samples are done."
    rate, study = statistics["failure_rate"], json.loads(results.attrs["study"])
    drawn = results["parameters"].values[:1].shape[1]
    model, simulation = study["model"].get("model"), study["simulate"]
    name = f" {html.escape(str(model))}" if model else ""
    return (
        f"The model{name} was simulated for {simulation['duration']:g} s with the method {simulation['method']}, "
        f"with {drawn} random {'input' if drawn == 1 else 'inputs'} for each sample. "
        f"{statistics['failures']:,} of {statistics['samples']:,} samples failed. The failure rate is "
        f"{_percent(rate['estimate'])} (95 % confidence interval {_percent(rate['low'])} to {_percent(rate['high'])})."
        f"{''.join(f' {html.escape(sentence)}' for sentence in warnings_in(results))}"
    )


def _sketch(folder: Path) -> str:
    """Return the image of the mechanism; nothing for a folder of an earlier version of rbchain."""
    file = folder / SKETCH
    if not file.exists():
        return ""
    code = base64.b64encode(file.read_bytes()).decode()
    picture = f'<img alt="mechanism" src="data:image/svg+xml;base64,{code}">'
    return f"<figure>{picture}<figcaption>initial state of sample 0</figcaption></figure>"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _levels() -> list[str]:
    return ["median" if level == 0.5 else _percent(level) for level in SHOWN_LEVELS]


def _measures(
    results: StoredResults,
    statistics: dict[str, Any],
    influences: dict[str, list[tuple[int, float]]],
    linear: LinearAnalysis,
    survivors: str,
) -> str:
    """Return the table of the measures."""
    rows = []
    study = json.loads(results.attrs["study"])
    described = {of["name"]: of for of in study["measures"]}
    for name, of_measure in influences.items():
        found, unit = statistics["of"][name], html.escape(results[name].attrs.get("units", ""))
        cells = [number(quantile, interval) for quantile, *interval in shown_quantiles(results, name)]
        cells += [number(found["mean"], found.get("mean_interval", ()))]
        cells += [_cell_of_deviation(found)]
        cells += [number(linear.first_order(name), digits=3)] if linear.has_first_order else []
        reasons = "<br>".join(
            f"{html.escape(str(results['parameter'].values[c]))} {100 * share:.0f}&nbsp;%"
            for c, share in of_measure[:2]
        )
        evaluated = results[name].attrs.get("evaluated", "")
        meaning = _meaning(described[name]) + (f", {evaluated}" if evaluated else "")
        title = f"{html.escape(name)}<small>{html.escape(meaning)}</small>"
        undefined = statistics["samples"] - statistics["failures"] - found["count"]
        if undefined:
            title += f"<small>without {undefined:,} samples, in which it is not a finite number</small>"
        rows.append(f"<tr><th>{title}</th>{''.join(cells)}<td>{unit}</td><td>{reasons}</td></tr>")
    words = ("measure", "unit", "explains most of the variance")
    stds = ("std", "std by gradient") if linear.has_first_order else ("std",)
    head = (words[0], *_levels(), "mean", *stds, *words[1:])
    note = "The small numbers are 95 % confidence intervals, for quantiles from order statistics."
    design = study["design"]["type"]
    if design != "random":
        note += f" The samples of the design {design} are not independent, so the intervals are approximate."
    note += linear.note(results, statistics)
    return f'{table(head, rows, words, survivors)}<p class="note">{note}</p>'


def _meaning(measure: dict[str, Any]) -> str:
    """Describe a measure: its quantity, its owner, and the reduction over time."""
    owner = measure.get("frame") or measure.get("joint")
    if measure["quantity"] in OF_MODES:
        owner = f"mode {measure['mode']}"
    meaning = f"{measure['quantity'].replace('_', ' ')}{f' of {owner}' if owner else ''}"
    return meaning if measure["quantity"] in OF_EQUILIBRIA else f"{meaning}, {measure['over'].replace('_', ' ')}"


def _deviation(variance: float | None) -> float | None:
    return None if variance is None else variance**0.5


def _cell_of_deviation(found: dict[str, Any]) -> str:
    """Return the cell of a standard deviation, with the digits that the error for normal distributions allows."""
    std, count = _deviation(found["variance"]), found["count"]
    if not std or count < 2:
        return number(std)
    half = 2.0 * std / (2.0 * (count - 1)) ** 0.5
    return f'<td class="number">{with_digits(std, std - half, std + half)[0]}</td>'


def _measure(
    results: StoredResults,
    name: str,
    statistics: dict[str, Any] | None,
    influences: Sequence[tuple[int, float]],
    pictures: _Pictures,
) -> str:
    """Return the section of one measure: distribution, convergence and influences."""
    distribution = draw_distribution(results, name, statistics, DISTRIBUTION_WIDTH)
    if distribution is None:
        return f"<h2>{html.escape(name)}</h2><p>No sample has a finite value.</p>"
    beside = pictures.element(f"distribution of {name}", distribution)
    convergence = draw_convergence(results, name, WIDTH - DISTRIBUTION_WIDTH)
    beside += pictures.element(f"convergence of {name}", convergence)
    notes = ["Left: distribution. Right: 5 %, median and 95 % of the first samples, with 95 % confidence intervals."]
    below = pictures.element(f"influences on {name}", draw_influences(results, name, influences))
    if below:
        notes.append("Below: dependence on the parameters. Darker cells contain more samples. Line: mean.")
    note = " ".join(notes if convergence else notes[1:])
    return f'<h2>{html.escape(name)}</h2><div class="beside">{beside}</div>{below}<p class="note">{note}</p>'


def _bands(results: StoredResults, name: str, statistics: dict[str, Any], pictures: _Pictures) -> str:
    title = f"{name} over time"
    return f"<h2>{title}</h2>{pictures.element(title, draw_bands(results, name, statistics))}"


def _other_statistics(results: StoredResults, statistics: dict[str, Any], state: str, survivors: str) -> str:
    """Return the folded table of the statistics of random inputs, final states and extremes."""
    rows = []
    levels = [statistics["levels"].index(level) for level in SHOWN_LEVELS]
    for name, of_one in statistics["of"].items():
        dims = results[name].dims
        if len(dims) != 2:
            continue
        columns = {
            key: np.array(values, dtype=object).reshape(-1, np.shape(values)[-1]) for key, values in of_one.items()
        }
        units = units_along(results, dims[1]) if f"{dims[1]}_units" in results else [results[name].attrs["units"]]
        for i, label in enumerate(results[dims[1]].values):
            numbers = [columns["mean"][0][i], _deviation(columns["variance"][0][i]), columns["min"][0][i]]
            numbers += [columns["quantiles"][level][i] for level in levels] + [columns["max"][0][i]]
            title = html.escape(str(label) if name == "parameters" else f"{name} {label}")
            cells = "".join(map(number, numbers))
            rows.append(f"<tr><th>{title}</th>{cells}<td>{html.escape(units[i % len(units)])}</td></tr>")
    if not rows:
        return ""
    words = ("output", "unit")
    shown = table((words[0], "mean", "std", "min", *_levels(), "max", words[1]), rows, words, survivors)
    return f"<details{state}><summary>Statistics of random inputs and states</summary>{shown}</details>"


def _failures(results: StoredResults) -> str:
    """Return the section on the failed samples and their draws."""
    status = results["status"].values
    failed = np.flatnonzero(has_failed(status))
    if failed.size == 0:
        return "<h2>Failures</h2><p>No sample failed.</p>"
    codes, counts = np.unique(status[failed], return_counts=True)
    kinds = "".join(f"<li>{n:,}: {html.escape(sentence(int(c)))}</li>" for c, n in zip(codes, counts, strict=True))
    names: list[str] = []
    if "parameter" in results:
        units = units_along(results, "parameter")
        names = [with_unit(str(name), unit) for name, unit in zip(results["parameter"].values, units, strict=True)]
    shown = failed[:FAILURES_SHOWN]
    head = "".join(f"<th>{html.escape(str(x))}</th>" for x in ("sample", "status", "end time (s)", *names))
    drawn, ends = results["parameters"][shown].values, results["end_time"][shown].values
    rows = "".join(
        f'<tr><th>{k}</th><td class="number">{status[k]}</td><td class="number">{end:.4g}</td>'
        + "".join(f'<td class="number">{x:.5g}</td>' for x in values)
        + "</tr>"
        for k, end, values in zip(shown, ends, drawn, strict=True)
    )
    more = f"<p>First {len(shown)} of {failed.size:,} failed samples, with their random inputs:</p>"
    table = f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'
    return f"<h2>Failures</h2><ul>{kinds}</ul>{more}{table}"


def _dispersions(results: StoredResults) -> str:
    """Return the section on the dispersions and their effects."""
    effects = json.loads(results.attrs["effects"])
    items = "".join(f"<li>{html.escape(name)} changes: {html.escape(text)}</li>" for name, text in effects.items())
    return f"<h2>Dispersions</h2>{f'<ul>{items}</ul>' if items else '<p>Nothing varies.</p>'}"


def _description(results: StoredResults) -> str:
    """Return the folded sections with the description of the study, and the versions that computed the results."""
    import tomli_w

    titles = {"study": "Description of the study", "provenance": "Provenance of the results"}
    return "\n".join(
        f"<details><summary>{title} (TOML)</summary><pre>"
        f"{html.escape(tomli_w.dumps(_without_empty(json.loads(results.attrs[key]))))}</pre></details>"
        for key, title in titles.items()
    )


def _without_empty(value: Any) -> Any:
    """Return a JSON value without null, which TOML does not have, and without empty strings and lists."""
    if isinstance(value, dict):
        return {key: _without_empty(item) for key, item in value.items() if item not in (None, "", [], {})}
    return [_without_empty(item) for item in value if item is not None] if isinstance(value, list) else value
