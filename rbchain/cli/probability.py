"""`rbchain study probability`: the probability that a measure of a study is above or below a threshold."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from .output import EXIT_OK

if TYPE_CHECKING:
    from ..study import Study


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument("question", metavar="QUESTION", help="a failure, such as 'tool error > 5 mm'")
    parser.add_argument(
        "--method",
        choices=("monte_carlo", "subset", "importance", "form"),
        default="subset",
        help="method of the analysis (default: subset)",
    )
    parser.add_argument(
        "--simulations",
        type=int,
        default=20_000,
        help="number of simulations of monte_carlo, and a limit for the other methods (default: 20000)",
    )
    parser.add_argument("--stage", type=int, help="simulations of each stage of subset and importance (default: 1000)")
    parser.add_argument(
        "--variation", type=float, help="target coefficient of variation of importance and form (default: 0.2)"
    )
    parser.add_argument("--undefined", choices=("failure", "no_failure"), help="how to count samples without a value")


def print_probability(
    options: argparse.Namespace, study: Study, results: Path, running: dict[str, Any], console: Console
) -> int:
    """Estimate a probability, keep its simulations next to the results of the study, and print it."""
    from ..study.rare.question import folder_of, read_question

    measure, threshold = read_question(options.question)
    folder = folder_of(results, options.question, options.method)
    given: dict[str, Any] = threshold | {"stage": options.stage, "coefficient_of_variation": options.variation}
    given |= {"undefined": options.undefined, "simulations": options.simulations}
    found = study.probability(measure, method=options.method, out=folder, **given, **running)
    console.print(str(found), markup=False, highlight=False)
    console.print(f"simulations are in {folder}", markup=False, highlight=False, soft_wrap=True)
    return EXIT_OK
