"""`rbchain study indices`: the sensitivity of the measures of a study to its random inputs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from ..errors import StudyError
from .output import EXIT_OK, Renamed, table_of_numbers

if TYPE_CHECKING:
    import xarray

    from ..study import Study

MOST_PAIRS = 10
#: The index that orders the parameters, by method.
ORDERS = {"sobol": "ST", "morris": "mu_star", "shapley": "Sh"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument("--measure", help="name of the measure (default: all measures)")
    parser.add_argument(
        "--method",
        choices=tuple(ORDERS),
        default="sobol",
        help="method of the analysis; only shapley supports correlated draws (default: sobol)",
    )
    parser.add_argument("--second-order", action="store_true", help="compute Sobol indices of pairs, too")
    parser.add_argument("--base-samples", type=int, default=512, help="size of the base design (default: 512)")
    parser.add_argument("--samples", action=Renamed, const="--base-samples")


def print_indices(
    options: argparse.Namespace, study: Study, results: Path, running: dict[str, Any], console: Console
) -> int:
    """Compute indices, keep their samples next to the results of the study, and print a table for each measure."""
    if options.second_order and options.method != "sobol":
        raise StudyError(f"--second-order needs the method sobol, but --method is {options.method}")
    settings = running | {"base_samples": options.base_samples}
    settings |= {"out": results / f"indices-{options.method}{'-second-order' if options.second_order else ''}"}
    if options.method == "sobol":
        indices = study.sobol_indices(options.measure, second_order=options.second_order, **settings)
    else:
        compute = study.morris if options.method == "morris" else study.shapley_effects
        indices = compute(options.measure, **settings)
    of_measures = indices.expand_dims(measure=[options.measure]) if options.measure else indices
    for name in of_measures["measure"].values:
        _print_table(console, str(name), of_measures.sel(measure=name))
    return EXIT_OK


def _print_table(console: Console, measure: str, indices: xarray.Dataset) -> None:
    """Print the indices of a measure, the greatest first."""
    names = [str(name) for name in indices if not str(name).startswith("S2")]
    title = f"{escape(measure)}: {indices.attrs['method']}, {indices.attrs['motions']:,} simulations"
    table = table_of_numbers(title, ("parameter", *names), texts=("parameter",))
    parameters = indices["parameter"].values
    for i in np.argsort(-np.abs(indices[ORDERS[indices.attrs["method"]]].values)):
        table.add_row(escape(str(parameters[i])), *(f"{float(indices[name][i]):.4g}" for name in names))
    console.print(table)
    if "S2" not in indices:
        return
    table = table_of_numbers(f"{escape(measure)}: pairs", ("pair", "S2", "S2_conf"), texts=("pair",))
    first, second = np.triu_indices(len(parameters), 1)
    for k in np.argsort(-np.abs(indices["S2"].values[first, second]))[:MOST_PAIRS]:
        i, j = first[k], second[k]
        numbers = [f"{float(indices[name][i, j]):.4g}" for name in ("S2", "S2_conf")]
        table.add_row(escape(f"{parameters[i]}, {parameters[j]}"), *numbers)
    console.print(table)
