"""Tables of a report in HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def number(value: float | None, interval: Sequence[float | None] = (), below: str = "") -> str:
    """Return the cell of a number, with its confidence interval or other text below it."""
    known = "" if value is None else f"{value:.5g}"
    ends = [] if value is None else ["unknown" if end is None else f"{end:.4g}" for end in interval]
    below = f"{ends[0]} to {ends[1]}" if ends else below
    return f'<td class="number">{known}{f"<small>{html.escape(below)}</small>" if below else ""}</td>'


def table(head: Iterable[str], rows: Iterable[str], words: Sequence[str] = (), first_line: str = "") -> str:
    """Return a table. The columns in `words` contain text; the others contain numbers."""
    caption = f"<caption>{html.escape(first_line)}</caption>" if first_line else ""
    cells = "".join(f"<th{'' if x in words else ' class=number'}>{html.escape(x)}</th>" for x in head)
    return f'<div class="wide"><table>{caption}<thead><tr>{cells}</tr></thead>{"".join(rows)}</table></div>'
