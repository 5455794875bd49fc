"""The report of a study: a self-contained HTML page, and its pictures."""

from __future__ import annotations

import base64
import html
import io
import json
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Status
from .opening import open_finished
from .outcomes import NOT_RUN, has_failed
from .pictures import draw_bands, draw_distribution, draw_influences, measures_of
from .stored_results import StoredResults

if TYPE_CHECKING:
    from ..figure import Figure

FAILURES_SHOWN = 20
DPI = 110

PAGE = Template("""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-bottom: 1px solid #ccc }
table { border-collapse: collapse; font-size: 0.9rem }
td, th { padding: 0.2rem 0.8rem; border-bottom: 1px solid #e5e5e5 }
th { text-align: left } td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
img { max-width: 100% } pre { background: #f6f6f6; padding: 1rem; overflow-x: auto; font-size: 0.8rem }
</style></head><body>
<h1>$title</h1>
<p>$summary</p>
$sections
</body></html>
""")


def write_report(folder: str | Path) -> Path:
    """Write `report.html` and `report/*.png` into a folder of results; returns the path of the page.

    The report shows the distributions of all measures, each measure against the parameters that explain most of its
    variance, quantile bands over time if the motion was stored, and the failed samples.
    """
    folder = Path(folder)
    results, samples = open_finished(folder)
    statistics = json.loads(results.attrs.get("statistics", "null"))
    pictures = {}
    sections = [_failures(results), _dispersions(results)]
    for name in measures_of(results):
        pictures[f"distribution of {name}"] = draw_distribution(results, name, statistics)
        pictures[f"influences on {name}"] = draw_influences(results, name)
    for name in ("q", "qd"):
        if name in results and statistics:
            pictures[f"{name} over time"] = draw_bands(results, name, statistics)
    if statistics:
        sections.insert(0, _table(results, statistics))
    (folder / "report").mkdir(exist_ok=True)
    figures = ((title, figure) for title, figure in pictures.items() if figure is not None)
    for number, (title, figure) in enumerate(figures, 1):
        png = _png(figure)
        name = "".join(c if c.isalnum() else "_" for c in title)
        (folder / "report" / f"{number}_{name}.png").write_bytes(png)
        code = base64.b64encode(png).decode()
        caption = html.escape(title)
        sections.append(f'<h2>{caption}</h2><img alt="{caption}" src="data:image/png;base64,{code}">')
    sections.append(_provenance(results))
    page = folder / "report.html"
    title = html.escape(results.attrs["title"])
    partial = folder / "report.html.partial"
    partial.write_text(
        PAGE.substitute(title=title, summary=_summary(results, samples, statistics), sections="\n".join(sections)),
        encoding="utf-8",
    )
    partial.replace(page)
    return page


def _png(figure: Figure) -> bytes:
    """Return a picture of a figure. `Figure.savefig` could draw it twice."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    picture = io.BytesIO()
    figure.set_dpi(DPI)
    # the lowest level of compression takes half of the time of the usual one; the files are as large
    FigureCanvasAgg(figure).print_png(picture, pil_kwargs={"compress_level": 1})
    return picture.getvalue()


def _summary(results: StoredResults, samples: int, statistics: dict[str, Any] | None) -> str:
    if not statistics:
        done = int((results["status"].values != NOT_RUN).sum())
        return f"The study is not finished: {done:,} of {samples:,} samples are done."
    rate = statistics["failure_rate"]
    return (
        f"{statistics['failures']:,} of {statistics['samples']:,} samples failed. The failure rate is "
        f"{rate['estimate']:.3%} (95 % confidence interval {rate['low']:.3%} to {rate['high']:.3%})."
    )


def _table(results: StoredResults, statistics: dict[str, Any]) -> str:
    """Return the table of statistics of the measures and the final state."""
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
            title = html.escape(f"{name} {label}".strip())
            rows.append(f"<tr><th>{title}</th>{cells}<td>{html.escape(variable.attrs.get('units', ''))}</td></tr>")
    head = "".join(f"<th>{x}</th>" for x in ("output", "mean", "std", "min", "5 %", "median", "95 %", "max", "unit"))
    return f"<h2>Statistics</h2><table><tr>{head}</tr>{''.join(rows)}</table>"


def _failures(results: StoredResults) -> str:
    """Return the section on the failed samples and their draws."""
    status = results["status"].values
    failed = np.flatnonzero(has_failed(status))
    if failed.size == 0:
        return "<h2>Failures</h2><p>No sample failed.</p>"
    codes, counts = np.unique(status[failed], return_counts=True)
    kinds = "".join(f"<li>{n:,}: {html.escape(sentence(int(c)))}</li>" for c, n in zip(codes, counts, strict=True))
    names: Any = results["parameter"].values if "parameter" in results else []
    shown = failed[:FAILURES_SHOWN]
    head = "".join(f"<th>{html.escape(str(x))}</th>" for x in ("sample", "status", "end time (s)", *names))
    drawn, ends = results["parameters"][shown].values, results["end_time"][shown].values
    rows = "".join(
        f'<tr><th>{k}</th><td class="number">{status[k]}</td><td class="number">{end:.4g}</td>'
        + "".join(f'<td class="number">{x:.5g}</td>' for x in values)
        + "</tr>"
        for k, end, values in zip(shown, ends, drawn, strict=True)
    )
    more = f"<p>First {len(shown)} of {failed.size:,} failed samples, with their drawn numbers:</p>"
    return f"<h2>Failures</h2><ul>{kinds}</ul>{more}<table><tr>{head}</tr>{rows}</table>"


def _dispersions(results: StoredResults) -> str:
    """Return the section on the dispersions and their effects."""
    effects = json.loads(results.attrs["effects"])
    items = "".join(f"<li>{html.escape(name)} changes: {html.escape(text)}</li>" for name, text in effects.items())
    return f"<h2>Dispersions</h2>{f'<ul>{items}</ul>' if items else '<p>Nothing varies.</p>'}"


def sentence(status: int) -> str:
    """Return the message of a status."""
    if status == NOT_RUN:
        return "The sample has not been computed."
    return Status(status).sentence if status in set(Status) else f"The status {status} is unknown."


def _provenance(results: StoredResults) -> str:
    """Return the section with the description of the study, and the versions that computed the results."""
    origin = {key: json.loads(results.attrs[key]) for key in ("provenance", "study")}
    return f"<h2>Provenance</h2><pre>{html.escape(json.dumps(origin, indent=1))}</pre>"
