"""`rbchain warm`: compile drivers before they are needed."""

from __future__ import annotations

import argparse
import os
from typing import Any

from rich.console import Console

from .output import EXIT_OK, help_texts
from .study import read_study


def add_warm(commands: Any) -> None:
    """Add the command `warm` to the parser."""
    summary = "compile drivers before they are needed, in parallel processes"
    texts = help_texts(
        f"{summary.capitalize()}. Later processes load the machine code from the cache.",
        "rbchain warm",
        "rbchain warm examples/landing.toml --for x86-64-v3 --for x86-64-v4",
    )
    warm = commands.add_parser("warm", help=summary, **texts)
    warm.add_argument(
        "file",
        metavar="STUDY",
        nargs="?",
        help="TOML file of a study, to compile only its drivers (default: all drivers)",
    )
    warm.add_argument(
        "--for",
        dest="levels",
        action="append",
        metavar="LEVEL",
        help="processor level to compile for, such as x86-64-v3; repeat it for several (default: this machine)",
    )
    warm.add_argument("--processes", type=int, help="number of compiling processes (default: one for each core)")
    warm.add_argument("--no-code", action="store_true", help="do not accept a study that imports user functions")
    warm.set_defaults(command=_warm, subject=_signatures, when_interrupted="run the same command again to continue")


def _signatures(options: argparse.Namespace) -> Any:
    """Return the signatures of the drivers to compile."""
    from ..compiling.levels import levels_of_architecture

    if options.processes is not None and options.processes < 1:
        raise ValueError(f"--processes is {options.processes}; expected a whole number of at least 1")
    known = levels_of_architecture()
    for level in options.levels or ():
        if level not in known:
            raise ValueError(f"--for is {level}; expected one of {', '.join(known)}")
    if options.file is None:
        from ..precompile.calls import call_everything
        from ..precompile.signatures import signatures_of

        return signatures_of(call_everything)
    from ..study.run.compilation import signatures_of_plan

    return signatures_of_plan(read_study(options).plan)


def _warm(options: argparse.Namespace, signatures: Any, console: Console) -> int:
    from ..common.progress import progress
    from ..compiling.levels import LEVEL
    from ..precompile.parallel import compile_signatures

    for level in options.levels or [LEVEL]:
        with progress(f"Compiling for {level}", total=len(signatures), after=0.0) as work:
            files = compile_signatures(
                signatures, level, options.processes, lambda signature: work.advance(note=signature.name)
            )
        folders = sorted({os.path.dirname(file.parent) for file in files})
        console.print(f"{len(files)} drivers for {level} in {', '.join(folders)}", highlight=False, soft_wrap=True)
    return EXIT_OK
