"""`rbchain study`: Monte Carlo studies. What they need is imported when one is asked for."""

from __future__ import annotations

import argparse
import contextlib
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .output import EXIT_OK, EXIT_SOME_FAILED, writable

if TYPE_CHECKING:
    import xarray

    from ..study import Study


def add_study(commands: Any, form: dict[str, Any]) -> None:
    """The commands of `rbchain study`."""
    study = commands.add_parser("study", help="Monte Carlo studies: many samples of a mechanism", **form)
    verbs = study.add_subparsers(required=True, metavar="VERB")
    file = argparse.ArgumentParser(add_help=False)
    file.add_argument("file", metavar="FILE", help="the study: a TOML file")
    running = argparse.ArgumentParser(add_help=False)
    running.add_argument("--executor", choices=("local", "processes", "dask"), default="local", help="default: local")
    running.add_argument("--workers", type=int, help="of --executor processes (default: one for each core)")
    running.add_argument("--scheduler", metavar="ADDRESS", help="of --executor dask, such as tcp://10.0.0.1:8786")
    running.add_argument("--chunk", type=int, help="samples computed at once (default: up to 4096, as memory allows)")
    running.add_argument("--memory", type=float, default=1.0, help="for chunks on their way, in GB (default: 1)")
    out = argparse.ArgumentParser(add_help=False)
    out.add_argument("--out", metavar="FOLDER", help="of the results (default: FILE without its ending)")
    results = argparse.ArgumentParser(add_help=False)
    results.add_argument("folder", metavar="FOLDER", help="of the results")
    for name, summary, parents, action in (
        ("run", "run a study, or go on with one that was interrupted", [file, running, out], _run_study),
        ("resume", "go on with a study that was begun", [results, running], _resume_study),
        ("sensitivity", "which parameters matter", [file, running, out], _sensitivity),
        ("sample", "run one sample again, alone, with all of its motion", [file], _sample),
        ("status", "how far a study is", [results], _study_status),
        ("report", "write an HTML page about the results", [results], _report_study),
    ):
        verb = verbs.add_parser(name, parents=parents, help=summary, **form)
        subject = _study if file in parents else _study_of_results if running in parents else _folder
        again = "run the same command again" + (" to resume" if running in parents else "")
        verb.set_defaults(command=action, subject=subject, when_interrupted=again)
        if name == "sample":
            verb.add_argument("number", metavar="K", type=int, help="which sample, from 0 on")
            verb.add_argument("--out", metavar="FILE.npz", help="where to save t, q, qd and what was drawn")
        if name == "sensitivity":
            verb.add_argument("--measure", help="of what (default: the first)")
            verb.add_argument("--method", choices=("sobol", "morris"), default="sobol", help="default: sobol")
            verb.add_argument("--samples", type=int, default=512, help="of the method's design (default: 512)")


def _study(options: argparse.Namespace) -> Study:
    from .. import Study

    return Study.read(options.file)


def _study_of_results(options: argparse.Namespace) -> Study:
    from .. import Study

    return Study.of_results(options.folder)


def _folder(options: argparse.Namespace) -> str:
    return options.folder


def _study_folder(options: argparse.Namespace) -> Path:
    return Path(options.out) if options.out else Path(options.file).with_suffix("")


def _running(options: argparse.Namespace) -> dict[str, Any]:
    names = ("executor", "workers", "scheduler", "chunk")
    return {name: getattr(options, name) for name in names} | {"memory": options.memory * 1e9}


def _run_study(options: argparse.Namespace, study: Study, console: Console) -> int:
    return _run_into(_study_folder(options), options, study, console)


def _resume_study(options: argparse.Namespace, study: Study, console: Console) -> int:
    return _run_into(Path(options.folder), options, study, console)


def _run_into(folder: Path, options: argparse.Namespace, study: Study, console: Console) -> int:
    """Run with a bar, then say what came of it."""
    from ..study.progress import bar_of

    with _warnings_said(), bar_of(study.description) as advance:
        results = study.run(folder, progress=advance, **_running(options))
    return _print_study(console, results, folder)


@contextlib.contextmanager
def _warnings_said() -> Iterator[None]:
    """Within this, warnings are lines on stderr, without the place in the code."""
    errors = Console(stderr=True, highlight=False)

    def say(message: Warning | str, *place: Any) -> None:
        errors.print(f"rbchain: warning: {message}", markup=False, soft_wrap=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = say  # type: ignore[assignment]
        yield


def _print_study(console: Console, results: xarray.Dataset, folder: Path) -> int:
    """Statistics of the measures in a table."""
    statistics = json.loads(results.attrs["statistics"])
    table = Table(title=escape(results.attrs["title"]))
    for column in ("", "mean", "std", "5 %", "median", "95 %", "unit"):
        table.add_column(column, justify="left" if column in ("", "unit") else "right")
    levels = statistics["levels"]
    for name, found in statistics["of"].items():
        if results[name].dims != ("sample",) or found["mean"] is None:
            continue
        deviation = float("nan") if found["variance"] is None else found["variance"] ** 0.5
        quantiles = [found["quantiles"][levels.index(p)] for p in (0.05, 0.5, 0.95)]
        numbers = [f"{x:.5g}" for x in (found["mean"], deviation, *quantiles)]
        table.add_row(escape(name), *numbers, escape(results[name].attrs.get("units", "")))
    console.print(table)
    rate = statistics["failure_rate"]
    console.print(
        f"{statistics['samples']:,} samples, {statistics['failures']:,} failed: {rate['estimate']:.3%}, "
        f"95 % interval {rate['low']:.3%} to {rate['high']:.3%}",
        highlight=False,
    )
    console.print(f"results in {folder}", markup=False, highlight=False, soft_wrap=True)
    return EXIT_SOME_FAILED if statistics["failures"] else EXIT_OK


def _study_status(options: argparse.Namespace, folder: str, console: Console) -> int:
    """How far the study in a folder is."""
    from ..study.opening import open_finished
    from ..study.outputs import NOT_RUN, has_failed

    results, samples = open_finished(folder)
    status = results.status.values
    done, failed = int((status != NOT_RUN).sum()), int(has_failed(status).sum())
    ended = "finished" if "statistics" in results.attrs else "not finished"
    console.print(
        f"{results.attrs['title']}: {done:,} of {samples:,} samples, {failed:,} failed, {ended}", markup=False
    )
    return EXIT_OK


def _report_study(options: argparse.Namespace, folder: str, console: Console) -> int:
    from ..study.report import write_report

    console.print(f"wrote {write_report(folder)}", markup=False, highlight=False, soft_wrap=True)
    return EXIT_OK


def _sample(options: argparse.Namespace, study: Study, console: Console) -> int:
    """One sample's draws and how it ended."""
    out = writable(options.out)
    drawn, _, motion = study.sample(options.number)
    table = Table(title=f"sample {options.number} of {escape(study.description.name)}", show_header=False)
    for name, value in drawn.items():
        table.add_row(escape(name), f"{value:.8g}")
    console.print(table)
    console.print(motion.message, markup=False)
    if out:
        names, values = np.array(list(drawn)), np.array(list(drawn.values()))
        np.savez(out, t=motion.t, q=motion.q, qd=motion.qd, status=motion.status, parameter=names, drawn=values)
        console.print(f"saved {out}", markup=False, highlight=False, soft_wrap=True)
    return EXIT_OK if motion.success else EXIT_SOME_FAILED


def _sensitivity(options: argparse.Namespace, study: Study, console: Console) -> int:
    """The indices in a table, the greatest first."""
    measures = [m.name for m in study.description.measures]
    measure = options.measure or (measures[0] if measures else None)
    folder = _study_folder(options) / f"sensitivity-{options.method}"
    with _warnings_said():
        found = study.sensitivity(measure, options.method, options.samples, folder, **_running(options))
    table = Table(title=f"{escape(str(measure))}: {options.method}, {found.attrs['motions']:,} motions")
    names = [str(name) for name in found]
    for column in ("parameter", *names):
        table.add_column(column, justify="left" if column == "parameter" else "right")
    order = np.argsort(-np.abs(found["ST" if options.method == "sobol" else "mu_star"].values))
    for i in order:
        table.add_row(escape(str(found.parameter.values[i])), *(f"{float(found[name][i]):.4g}" for name in names))
    console.print(table)
    return EXIT_OK
