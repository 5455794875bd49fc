"""The command line: `rbchain simulate`, `info`, `view`, `study` and `doctor`."""

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from .. import __version__
from ..errors import RbchainError
from .doctor import add_doctor
from .output import EXIT_INTERRUPTED, EXIT_REFUSED
from .single import add_single
from .study import add_study
from .warm import add_warm

EXAMPLES = """examples:
  rbchain simulate examples/puma560.urdf --batch 10000 --duration 2 --spread 0.2 --seed 1 --out swing.npz
  rbchain simulate arm.urdf --batch 1 --duration 10 --method rk4 --step 1e-3
  rbchain info examples/puma560.urdf
  rbchain view examples/puma560.urdf
  rbchain view arm.urdf --duration 2 --batch 50 --out swing.html
  rbchain study run examples/landing.toml --out landing
  rbchain study report landing

exit codes: 0 done; 1 some samples could not be computed to the end; 2 the command or the file was refused"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    console, errors = Console(), Console(stderr=True, highlight=False)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            subject = options.subject(options)
        for warning in caught:
            errors.print(f"rbchain: warning: {warning.message}", markup=False, soft_wrap=True)
        return options.command(options, subject, console)
    except KeyboardInterrupt:
        errors.print(f"rbchain: interrupted; {options.when_interrupted}")
        return EXIT_INTERRUPTED
    except (RbchainError, OSError, ValueError, ImportError) as error:
        errors.print(f"rbchain: error: {error}", markup=False, soft_wrap=True)
        return EXIT_REFUSED


def _parser() -> argparse.ArgumentParser:
    form: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "epilog": EXAMPLES}
    parser = argparse.ArgumentParser(
        prog="rbchain", description="Dynamics of serial chains and trees of rigid bodies, in batches.", **form
    )
    parser.add_argument("--version", action="version", version=f"rbchain {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_single(commands, form)
    add_study(commands, form)
    add_warm(commands, form)
    add_doctor(commands, form)
    return parser
