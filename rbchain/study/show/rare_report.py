"""The section of a report about rare events: probabilities, and the most probable failing sample."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..rare.layout import FOLDER, RESULT
from .pictures import draw_motion
from .report_tables import number, table

if TYPE_CHECKING:
    from ...plots.figure import Figure

MOST_PARAMETERS = 10


def rare_events(folder: Path, picture: Callable[[str, Figure | None], str]) -> str:
    """Return the section about the analyses next to the results of a study; empty without them.

    `picture` returns the element of a figure with a title.
    """
    found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted((folder / FOLDER).glob(f"*/{RESULT}"))]
    if not found:
        return ""
    head = ("failure", "method", "probability", "coefficient of variation", "simulations", "failed", "undefined")
    rows = [_row(one) for one in found]
    note = (
        "The small numbers are 95 % confidence intervals. The number of simulations contains the failed ones, and the "
        "undefined ones, whose measure is NaN."
    )
    notes = [note, *(f"{one['question']}: {sentence}" for one in found for sentence in one["warnings"])]
    regions = [_region(one, picture) for one in found if one["sample"] is not None]
    paragraphs = "".join(f'<p class="note">{html.escape(sentence)}</p>' for sentence in notes)
    return f"<h2>Rare events</h2>{table(head, rows, head[:2])}{paragraphs}{''.join(regions)}"


def _row(one: dict[str, Any]) -> str:
    cells = f"<th>{html.escape(one['question'])}</th><td>{html.escape(one['method'].replace('_', ' '))}</td>"
    # the digits of a small probability follow its size, and not the width of its interval, which may be larger
    ends = ["unknown" if end is None else f"{end:.2g}" for end in one["interval"]]
    cells += number(one["estimate"], below=" to ".join(ends), digits=3)
    cells += number(one["coefficient_of_variation"], digits=2)
    cells += "".join(f'<td class="number">{one[key]:,}</td>' for key in ("simulations", "failed", "undefined"))
    return f"<tr>{cells}</tr>"


def _region(one: dict[str, Any], picture: Callable[[str, Figure | None], str]) -> str:
    """Return the most probable failing sample, the parameters that drive it, and its trajectory."""
    importance = np.array([0.0 if x is None else x for x in one["importance"]])
    rows = [
        f"<tr><th>{html.escape(one['parameters'][i])}</th>{number(one['inputs'][i])}"
        f"<td>{html.escape(one['units'][i])}</td>{number(float(importance[i]))}</tr>"
        for i in np.argsort(-importance, kind="stable")[:MOST_PARAMETERS]
    ]
    title = f"{one['question']}, {one['method'].replace('_', ' ')}"
    head = ("parameter", "value", "unit", "importance")
    shown = table(head, rows, ("parameter", "unit"), f"{title}: most probable failing sample {one['sample']}")
    motion = one["motion"]
    if motion is None:
        return shown
    of_motion = np.array(motion["t"]), np.array(motion["q"]), motion["labels"], motion["units"]
    return shown + picture(f"trajectory of the most probable failing sample: {title}", draw_motion(*of_motion))
