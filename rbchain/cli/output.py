"""Parts that all commands share: exit codes, help texts, tables of numbers, and the check of output files."""

import argparse
import math
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

EXIT_OK, EXIT_SOME_FAILED, EXIT_REFUSED, EXIT_INTERRUPTED = 0, 1, 2, 130
LONGEST_LINE = 100_000  # characters, of output that is not cut
EXIT_CODES = (
    "exit codes: 0 done; 1 some samples failed; 2 the command or a file is invalid, or results are damaged; "
    "130 interrupted"
)


def help_texts(description: str, *examples: str) -> dict[str, Any]:
    """Return the arguments of a parser for its description, and for examples and exit codes at the end of the help."""
    lines = ["examples:" if len(examples) > 1 else "example:", *(f"  {example}" for example in examples)]
    return {
        "description": textwrap.fill(description, 100),
        "epilog": "\n".join([*lines, "", EXIT_CODES]),
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


class Renamed(argparse.Action):
    """A former name of a command or an option: an error that suggests the new one, `const`. The help omits it."""

    def __init__(self, option_strings: Sequence[str], dest: str, const: str, **_: Any) -> None:
        super().__init__(option_strings, dest, argparse.REMAINDER, const, help=argparse.SUPPRESS)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        name = self.option_strings[0] if self.option_strings else parser.prog
        parser.error(f"{name} is now called {self.const}")


@contextmanager
def warnings_as_lines(errors: Console) -> Iterator[None]:
    """Print warnings as lines, without their place in the code."""

    def print_warning(message: Warning | str, *place: Any) -> None:
        errors.print(f"rbchain: warning: {message}", markup=False, soft_wrap=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = print_warning  # type: ignore[assignment]
        yield


def table_of_numbers(title: str, columns: Sequence[str], texts: Sequence[str] = ()) -> Table:
    """Return an empty table in which texts wrap before numbers do.

    Five numbers with exponents, such as -1.7241e-05, fit into 80 columns. Nothing is cut off in narrower terminals.
    """
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name in columns:
        if name in texts:
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="right", no_wrap=True, overflow="fold")
    return table


def check_state_options(options: argparse.Namespace) -> None:
    """Raise a ValueError unless the options for random initial states and for the duration are valid."""
    for name, least in (("batch", 1), ("seed", 0)):
        if getattr(options, name) < least:
            raise ValueError(f"--{name} is {getattr(options, name)}; expected a whole number of at least {least}")
    if not 0.0 < options.duration < math.inf:
        raise ValueError(f"--duration is {options.duration}; expected a finite number of seconds above 0")
    if not 0.0 <= options.spread < math.inf:
        raise ValueError(f"--spread is {options.spread}; expected a finite number of at least 0")


def writable(out: str | None, ending: str = ".npz") -> Path | None:
    """Return the path of an output file with this ending. Raise an error if it cannot be written."""
    if out is None:
        return None
    path = Path(out if out.endswith(ending) else out + ending)
    if Path(out).is_dir() or path.is_dir():
        raise ValueError(f"--out is {out}, which is a folder; expected the name of a file")
    if not path.parent.is_dir():
        raise ValueError(f"--out is {out}, but the folder {path.parent} does not exist; create it first")
    existed = path.exists()
    with path.open("ab"):
        pass
    if not existed:
        path.unlink()
    return path
