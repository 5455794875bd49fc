"""The command line: `rbchain simulate`, `info`, `view`, `convert`, `study`, `warm` and `doctor`."""

import argparse
import gc
from collections.abc import Sequence

from rich.console import Console

from .. import __version__
from ..errors import RbchainError
from .doctor import add_doctor
from .output import EXIT_INTERRUPTED, EXIT_REFUSED, LONGEST_LINE, help_texts, warnings_as_lines
from .single import add_single
from .study import add_study
from .warm import add_warm


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    gc.set_threshold(100_000)  # by default Python spends 5 % of the time on looking for garbage while it imports
    options = _parser().parse_args(arguments)
    console, errors = Console(), Console(stderr=True, highlight=False)
    if not console.is_terminal:
        console.width = LONGEST_LINE  # a file or a pipe has no width
    try:
        with warnings_as_lines(errors):
            return options.command(options, options.subject(options), console)
    except KeyboardInterrupt:
        errors.print(f"rbchain: interrupted; {options.when_interrupted}")
        return EXIT_INTERRUPTED
    except (RbchainError, OSError, ValueError, ImportError) as error:
        errors.print(f"rbchain: error: {error}", markup=False, soft_wrap=True)
        return EXIT_REFUSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rbchain",
        **help_texts(
            "Simulate robot arms, floating-base robots, linkages and gear trains, one mechanism or a batch of many. "
            "`rbchain COMMAND --help` explains a command.",
            "rbchain simulate examples/puma560.urdf --batch 10000 --duration 2 --out swing.npz",
            "rbchain info examples/puma560.urdf",
            "rbchain view examples/puma560.urdf",
            "rbchain study run examples/landing.toml --out landing",
            "rbchain study report landing",
        ),
    )
    parser.add_argument("--version", action="version", version=f"rbchain {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_single(commands)
    add_study(commands)
    add_warm(commands)
    add_doctor(commands)
    return parser
