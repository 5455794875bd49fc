"""What `rbchain study` prints about results: the effects of dispersions, statistics, progress and the report."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .output import EXIT_OK, EXIT_SOME_FAILED, table_of_numbers

if TYPE_CHECKING:
    from ..study.store.stored_results import StoredResults


def print_effects(console: Console, effects: Mapping[str, str]) -> None:
    """Print a table of the dispersions and their effects on the model."""
    table = Table(title="dispersions")
    for column in ("name", "changes"):
        table.add_column(column)
    for name, effect in effects.items():
        table.add_row(escape(name), escape(effect))
    console.print(table if effects else "Nothing varies in this study: all samples are the same.")


def print_statistics(console: Console, results: StoredResults, folder: Path) -> int:
    """Print the statistics of the measures, and the failure rate."""
    from ..study.analyze.survivors import survivors_in, warnings_in

    statistics = json.loads(results.attrs["statistics"])
    columns = ("measure", "mean", "std", "5 %", "median", "95 %", "unit")
    table = table_of_numbers(escape(results.attrs["title"]), columns, texts=("measure", "unit"))
    survivors, levels, left_out = survivors_in(results), statistics["levels"], []
    for name, measured in statistics["of"].items():
        if results[name].dims != ("sample",):
            continue
        undefined = statistics["samples"] - statistics["failures"] - measured["count"]
        if undefined:
            left_out.append(f"{name}: without {undefined:,} samples, in which it is not a finite number")
        if measured["mean"] is None:
            continue
        deviation = float("nan") if measured["variance"] is None else measured["variance"] ** 0.5
        quantiles = [measured["quantiles"][levels.index(p)] for p in (0.05, 0.5, 0.95)]
        numbers = [f"{x:.5g}" for x in (measured["mean"], deviation, *quantiles)]
        table.add_row(escape(name), *numbers, escape(results[name].attrs.get("units", "")))
    if survivors:
        console.print(survivors, markup=False, highlight=False, soft_wrap=True)
    console.print(table)
    for line in left_out:
        console.print(line, markup=False, highlight=False)
    for line in warnings_in(results):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    rate = statistics["failure_rate"]
    console.print(
        f"{statistics['samples']:,} samples, {statistics['failures']:,} failed. Failure rate {rate['estimate']:.3%}, "
        f"95 % confidence interval {rate['low']:.3%} to {rate['high']:.3%}",
        highlight=False,
    )
    console.print(f"results are in {folder}", markup=False, highlight=False, soft_wrap=True)
    return EXIT_SOME_FAILED if statistics["failures"] else EXIT_OK


def print_status(options: argparse.Namespace, folder: str, console: Console) -> int:
    """Print the effects of the dispersions, and the number of finished samples."""
    from ..study.analyze.survivors import survivors_in, warnings_in
    from ..study.plan.outcomes import NOT_RUN, has_failed
    from ..study.store.opening import open_finished

    results, samples = open_finished(folder)
    print_effects(console, json.loads(results.attrs["effects"]))
    status = results["status"].values
    done, failed = int((status != NOT_RUN).sum()), int(has_failed(status).sum())
    is_finished = "finished" if "statistics" in results.attrs else "not finished"
    console.print(
        f"{results.attrs['title']}: {done:,} of {samples:,} samples, {failed:,} failed, {is_finished}", markup=False
    )
    if failed:
        console.print(survivors_in(results), markup=False, highlight=False, soft_wrap=True)
    for line in warnings_in(results):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return EXIT_OK


def write_page(options: argparse.Namespace, folder: str, console: Console) -> int:
    from ..study.show.report import write_report

    console.print(f"wrote {write_report(folder)}", markup=False, highlight=False, soft_wrap=True)
    return EXIT_OK
