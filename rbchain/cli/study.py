"""`rbchain study`: Monte Carlo studies. Their packages are imported only by the commands that need them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..errors import StudyError
from . import indices, probability
from .output import EXIT_OK, EXIT_SOME_FAILED, Renamed, help_texts, table_of_numbers, writable
from .study_results import print_effects, print_statistics, print_status, write_page

if TYPE_CHECKING:
    from ..study import Study


RESUMABLE = ("run", "resume", "merge", "indices", "probability")


class _Verb(NamedTuple):
    """A command of `rbchain study`: the keys of its arguments in `_arguments`, its action, and its help texts."""

    arguments: tuple[str, ...]
    load: Callable[[argparse.Namespace], Any]
    action: Callable[[argparse.Namespace, Any, Console], int]
    summary: str
    examples: tuple[str, ...]


def add_study(commands: Any) -> None:
    """Add the commands of `rbchain study` to the parser."""
    study = commands.add_parser(
        "study",
        help="run Monte Carlo studies and inspect their results",
        **help_texts(
            "Run Monte Carlo studies and inspect their results. `rbchain study VERB --help` explains a command.",
            "rbchain study run examples/landing.toml --out landing",
            "rbchain study report landing",
        ),
    )
    verbs = study.add_subparsers(required=True, metavar="VERB")
    arguments = _arguments()
    for name, verb in VERBS.items():
        texts = help_texts(f"{verb.summary[0].upper()}{verb.summary[1:]}.", *verb.examples)
        parents = [arguments[key] for key in verb.arguments]
        parser = verbs.add_parser(name, parents=parents, help=verb.summary, **texts)
        again = "run the same command again" + (" to resume" if name in RESUMABLE else "")
        parser.set_defaults(command=verb.action, subject=verb.load, when_interrupted=again)
        if name == "run":
            parser.add_argument(
                "--part",
                metavar="K/N",
                type=_part,
                help="compute part K of N into --out; `rbchain study merge` joins them",
            )
        if name == "merge":
            parser.add_argument("parts", metavar="FOLDER", nargs="+", help="folder of a part")
        if name == "sample":
            parser.add_argument("number", metavar="K", type=int, help="number of the sample, from 0")
            parser.add_argument(
                "--out", metavar="FILE.npz", help="file for the trajectory, as Trajectory.save writes it"
            )
        if name == "indices":
            indices.add_arguments(parser)
        if name == "probability":
            probability.add_arguments(parser)
    former = verbs.add_parser("sensitivity", add_help=False)
    former.add_argument("arguments", action=Renamed, const="rbchain study indices")


def _arguments() -> dict[str, argparse.ArgumentParser]:
    """Return a parser of each argument, or group of arguments, that several commands have."""
    return {
        "file": _parent("file", metavar="FILE", help="study: a TOML file"),
        "folder": _parent("folder", metavar="FOLDER", help="folder of the results"),
        "code": _parent("--no-code", action="store_true", help="do not accept a study that imports user functions"),
        "merged": _parent("folder", metavar="OUT", help="folder for all results"),
        "out": _parent("--out", metavar="FOLDER", help="folder for the results (default: FILE without its ending)"),
        "running": _options_of_runs(),
    }


def _parent(name: str, **settings: Any) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(name, **settings)
    return parser


def _options_of_runs() -> argparse.ArgumentParser:
    running = argparse.ArgumentParser(add_help=False)
    running.add_argument(
        "--executor",
        choices=("local", "processes", "dask"),
        default="local",
        help="compute on the threads of one process, in several processes, or on a dask cluster (default: local)",
    )
    running.add_argument("--workers", type=int, help="number of processes of --executor processes (default: all cores)")
    running.add_argument(
        "--scheduler", metavar="ADDRESS", help="scheduler of --executor dask, such as tcp://10.0.0.1:8786"
    )
    running.add_argument("--chunk", type=int, help="samples computed at once (default: up to 4096, as memory allows)")
    running.add_argument(
        "--memory", type=float, help="memory limit for these samples in GB, in place of --chunk (default: 1)"
    )
    return running


def read_study(options: argparse.Namespace) -> Study:
    """Return the study of a file, and print the users' modules that it imports."""
    from .. import Study

    return _with_modules_printed(Study.read(options.file, code=not options.no_code))


def _study_of_results(options: argparse.Namespace) -> Study:
    """Return the study of a folder of results, or of the first part of a study."""
    from ..study.loading import study_of_results

    folder = getattr(options, "parts", [options.folder])[0]
    return _with_modules_printed(study_of_results(folder, code=not options.no_code))


def _with_modules_printed(study: Study) -> Study:
    """Print the users' modules that the study file has imported."""
    for module, file in study.modules.items():
        Console(stderr=True, highlight=False).print(
            f"rbchain: the study imports module {module!r} from {file}", markup=False, soft_wrap=True
        )
    return study


def _part(text: str) -> tuple[int, int]:
    """Return the part that the text K/N means."""
    number, separator, parts = text.partition("/")
    if not separator or not number.isdecimal() or not parts.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a part; expected K/N, such as 3/100 for the third of 100")
    return int(number), int(parts)


def _folder(options: argparse.Namespace) -> str:
    return options.folder


def _study_folder(options: argparse.Namespace) -> Path:
    return Path(options.out) if options.out else Path(options.file).with_suffix("")


def _running(options: argparse.Namespace) -> dict[str, Any]:
    names = ("executor", "workers", "scheduler", "chunk")
    memory = None if options.memory is None else options.memory * 1e9
    return {name: getattr(options, name) for name in names} | {"memory": memory}


def _run_study(options: argparse.Namespace, study: Study, console: Console) -> int:
    if options.part is not None:
        return _run_part(options, study, console)
    return _run_into(_study_folder(options), options, study, console)


def _run_part(options: argparse.Namespace, study: Study, console: Console) -> int:
    """Run a part of a study with a progress bar, and print its samples."""
    from ..study.plan.outcomes import has_failed

    if options.out is None:
        raise StudyError("--part needs --out; use a separate folder for each part")
    results = study.run(options.out, part=options.part, progress=True, **_running(options))
    failed = int(has_failed(results["status"].values).sum())
    number, parts = options.part
    console.print(
        f"part {number} of {parts}: {results.sizes['sample']:,} samples, {failed:,} failed",
        highlight=False,
        markup=False,
    )
    console.print(f"results are in {options.out}", markup=False, highlight=False, soft_wrap=True)
    return EXIT_SOME_FAILED if failed else EXIT_OK


def _merge_parts(options: argparse.Namespace, study: Study, console: Console) -> int:
    """Merge parts of a study, and print the statistics."""
    from ..study.merge_into import merge_into

    merge_into(study, options.folder, options.parts)
    return _run_into(Path(options.folder), options, study, console)


def _check_study(options: argparse.Namespace, study: Study, console: Console) -> int:
    """Print the effects of the dispersions, the measures, and the number of samples of a study that fits its model."""
    print_effects(console, study.effects)
    description = study.description
    table = Table(title="measures")
    for column in ("name", "quantity", "over", "unit"):
        table.add_column(column)
    for measure in study.plan.measures:
        unit = measure.units_in(study.plan.nominal.model)
        table.add_row(escape(measure.name), escape(measure.quantity), escape(measure.over), escape(unit))
    if study.plan.measures:
        console.print(table)
    simulation = description.simulate
    console.print(
        f"{description.name}: the study fits its model. It has {description.samples:,} samples of "
        f"{simulation.duration:g} s with method {simulation.method!r}",
        markup=False,
        highlight=False,
    )
    return EXIT_OK


def _resume_study(options: argparse.Namespace, study: Study, console: Console) -> int:
    return _run_into(Path(options.folder), options, study, console)


def _run_into(folder: Path, options: argparse.Namespace, study: Study, console: Console) -> int:
    """Print the effects of the dispersions, run the study with a progress bar, and print the statistics."""
    from ..study.run.resources import Resources
    from ..study.run_into import run_into
    from ..study.show.progress import bar_of
    from ..study.store.opening import stored_results_in

    print_effects(console, study.effects)
    with bar_of(study.description.name, study.description.samples) as advance:
        run_into(study, folder, Resources(**_running(options)), progress=advance)
    return print_statistics(console, stored_results_in(folder), folder)


def _sample(options: argparse.Namespace, study: Study, console: Console) -> int:
    """Simulate one sample; print its random inputs and its status."""
    out = writable(options.out)
    drawn, _, motion = study.sample(options.number)
    title = f"sample {options.number} of {escape(study.description.name)}"
    table = table_of_numbers(title, ("random input", "value", "unit"), texts=("random input", "unit"))
    for (name, value), unit in zip(drawn.items(), study.plan.units, strict=True):
        table.add_row(escape(name), f"{value:.8g}", escape(unit))
    console.print(table)
    console.print(motion.message, markup=False)
    if out:
        motion.save(out)
        console.print(f"saved {out}", markup=False, highlight=False, soft_wrap=True)
    return EXIT_OK if motion.success else EXIT_SOME_FAILED


def _indices(options: argparse.Namespace, study: Study, console: Console) -> int:
    return indices.print_indices(options, study, _study_folder(options), _running(options), console)


def _probability(options: argparse.Namespace, study: Study, console: Console) -> int:
    return probability.print_probability(options, study, _study_folder(options), _running(options), console)


#: The commands of `rbchain study` by their names, in the order of their list in `--help`.
VERBS = {
    "run": _Verb(
        ("file", "running", "out", "code"),
        read_study,
        _run_study,
        "run a study, or resume it after an interruption",
        (
            "rbchain study run examples/landing.toml --out landing",
            "rbchain study run landing.toml --executor processes --workers 8",
        ),
    ),
    "check": _Verb(
        ("file", "code"),
        read_study,
        _check_study,
        "check a study file, and show what varies, without a simulation",
        ("rbchain study check examples/landing.toml",),
    ),
    "resume": _Verb(
        ("folder", "running", "code"),
        _study_of_results,
        _resume_study,
        "resume the study whose results are in a folder",
        ("rbchain study resume landing",),
    ),
    "merge": _Verb(
        ("merged", "running", "code"),
        _study_of_results,
        _merge_parts,
        "merge the parts of a study that the jobs of a cluster have computed",
        ("rbchain study merge landing parts/*",),
    ),
    "indices": _Verb(
        ("file", "running", "out", "code"),
        read_study,
        _indices,
        "compute the sensitivity of the measures to each varied parameter: Sobol, Morris or Shapley",
        (
            "rbchain study indices examples/landing.toml --method shapley",
            'rbchain study indices landing.toml --measure "peak speed" --second-order --base-samples 64',
        ),
    ),
    "probability": _Verb(
        ("file", "running", "out", "code"),
        read_study,
        _probability,
        "estimate the probability that a measure is above or below a threshold",
        (
            "rbchain study probability examples/landing.toml 'peak speed > 3 m/s'",
            "rbchain study probability landing.toml 'clearance < 0' --method importance --variation 0.1",
        ),
    ),
    "sample": _Verb(
        ("file", "code"),
        read_study,
        _sample,
        "simulate one sample again, and save its trajectory",
        (
            "rbchain study sample examples/landing.toml 17",
            "rbchain study sample examples/landing.toml 17 --out sample17.npz",
        ),
    ),
    "status": _Verb(
        ("folder",),
        _folder,
        print_status,
        "show what varies in a study, and how many samples are done",
        ("rbchain study status landing",),
    ),
    "report": _Verb(
        ("folder",),
        _folder,
        write_page,
        "write an HTML page about the results",
        ("rbchain study report landing",),
    ),
}
