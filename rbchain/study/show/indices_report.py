"""The section of a report about sensitivity analyses: indices of all measures."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import numpy as np

from ..store.layout import INDICES
from .report_tables import number, table

MOST_SHOWN = 8  # parameters or pairs of a measure
#: Titles of the methods, and their indices by the words that a report uses; the last one orders the parameters.
METHODS = {
    "sobol": ("Sobol indices", {"first order": "S1", "total": "ST"}),
    "morris": ("elementary effects of Morris", {"mu": "mu", "sigma": "sigma", "mu*": "mu_star"}),
    "shapley": ("Shapley effects", {"share of the variance": "Sh"}),
}


def sensitivity_indices(folder: Path) -> str:
    """Return the section about the sensitivity analyses in the folder of a study; empty without them."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob(f"indices*/{INDICES}"))]
    tables = [_table(one, measure) for one in found for measure in one["measures"]]
    if not tables:
        return ""
    note = "The small numbers are 95 % confidence intervals. Indices of the second order belong to pairs."
    return f'<h2>Sensitivity indices</h2><p class="note">{note}</p><div class="tables">{"".join(tables)}</div>'


def _table(one: dict[str, Any], measure: str) -> str:
    title, words = METHODS[one["method"]]
    indices = {name: np.array(values) for name, values in one["measures"][measure].items()}
    order = np.argsort(-np.abs(indices[[*words.values()][-1]]), kind="stable")[:MOST_SHOWN]
    rows = [
        f"<tr><th>{html.escape(one['parameters'][c])}</th>"
        + "".join(_cell(indices, name, (c,)) for name in words.values())
        + "</tr>"
        for c in order
    ]
    head = ("parameter", *words)
    first_line = f"{measure}: {title}, {one['motions']:,} simulations"
    shown = table(head, rows, head[:1], first_line)
    if "S2" not in indices:
        return shown
    first, second = np.triu_indices(len(one["parameters"]), 1)
    largest = np.argsort(-np.abs(indices["S2"][first, second]), kind="stable")[:MOST_SHOWN]
    rows = [
        f"<tr><th>{html.escape(one['parameters'][a])}, {html.escape(one['parameters'][b])}</th>"
        f"{_cell(indices, 'S2', (a, b))}</tr>"
        for a, b in zip(first[largest], second[largest], strict=True)
    ]
    return shown + table(("pair", "second order"), rows, ("pair",), f"{measure}: pairs")


def _cell(indices: dict[str, np.ndarray], name: str, place: tuple[Any, ...]) -> str:
    value = float(indices[name][place])
    if f"{name}_conf" not in indices:
        return number(value)
    half = float(indices[f"{name}_conf"][place])
    return number(value, (value - half, value + half))
