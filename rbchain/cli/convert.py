"""`rbchain convert`: write a mechanism in another format."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from .output import EXIT_OK, help_texts

if TYPE_CHECKING:
    from ..facade.model import Model


def add_convert(
    commands: Any, file: argparse.ArgumentParser, load_model: Callable[[argparse.Namespace], Model]
) -> None:
    """Add the command `convert` to the parser."""
    convert = commands.add_parser(
        "convert",
        parents=[file],
        help="write a mechanism in another format",
        **help_texts(
            "Write a mechanism in another format. Warnings list the parts that this format cannot represent.",
            "rbchain convert examples/puma560.urdf puma560.toml",
            "rbchain convert drone.urdf drone.xml --free-base",
        ),
    )
    convert.add_argument("out", metavar="OUT", help="new file; its ending .toml, .urdf or .xml (MJCF) sets the format")
    convert.add_argument("--overwrite", action="store_true", help="replace a file that exists")
    convert.set_defaults(command=_convert, subject=load_model, when_interrupted="no file was written")


def _convert(options: argparse.Namespace, model: Model, console: Console) -> int:
    from ..io import save

    if Path(options.out).exists() and not options.overwrite:
        raise ValueError(f"{options.out} exists; choose another name, or add --overwrite to replace it")
    save(model, options.out)
    console.print(f"saved {options.out}", markup=False, highlight=False, soft_wrap=True)
    return EXIT_OK
