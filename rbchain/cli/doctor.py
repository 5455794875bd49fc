"""`rbchain doctor`: the installation, the processor and the compile cache."""

import argparse
from typing import Any

from rich.console import Console
from rich.table import Table

from .output import EXIT_OK, help_texts


def add_doctor(commands: Any) -> None:
    """Add the command `doctor` to the parser."""
    summary = "show the installation: processor, lanes, threads, compile cache and package versions"
    texts = help_texts(f"{summary.capitalize()}.", "rbchain doctor")
    doctor = commands.add_parser("doctor", help=summary, **texts)
    doctor.set_defaults(command=_doctor, subject=lambda options: None, when_interrupted="nothing was changed")


def _doctor(options: argparse.Namespace, subject: None, console: Console) -> int:
    from .installation import driver_origins, findings

    table = Table(show_header=False, box=None)
    for name, value in findings().items():
        table.add_row(name, value)
    console.print(table)
    origins = driver_origins()
    if not origins:
        console.print(
            "No machine code is stored yet. Calls compile the drivers that they need; `rbchain warm` compiles all."
        )
        return EXIT_OK
    table = Table("driver", box=None)
    table.add_column("from the package", justify="right")
    table.add_column("from the cache", justify="right")
    for driver, counts in origins.items():
        table.add_row(driver, *map(str, counts))
    console.print(table)
    return EXIT_OK
