"""Tables of a report in HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence


def number(value: float | None, interval: Sequence[float | None] = (), below: str = "", digits: int = 5) -> str:
    """Return the cell of a number, with its confidence interval or other text below it.

    Without an interval, it has this number of significant digits.
    """
    if value is None or math.isnan(value):
        known, below = "", "" if interval else below
    elif interval:
        known, *ends = with_digits(value, *interval)
        below = f"{ends[0]} to {ends[1]}"
    else:
        known = f"{value:.{digits}g}"
    return f'<td class="number">{known}{f"<small>{html.escape(below)}</small>" if below else ""}</td>'


def with_digits(value: float, low: float | None, high: float | None) -> tuple[str, str, str]:
    """Return a number and the ends of its interval with the digits that show the width of the interval to two digits.

    >>> with_digits(0.3812345, 0.3807, 0.3818)
    ('0.3812', '0.3807', '0.3818')
    >>> with_digits(123456.0, 120000.0, None)
    ('1.2346e+05', '1.2e+05', 'unknown')
    """
    low, high = (None if end is None or math.isnan(end) else end for end in (low, high))
    largest = max(abs(x) for x in (value, low or 0.0, high or 0.0))
    if low is None or high is None or low == high or largest == 0.0:
        first, last = ("unknown" if end is None else f"{end:.4g}" for end in (low, high))
        return f"{value:.5g}", first, last
    place = math.floor(math.log10(high - low)) - 1  # of the last digit
    form = f".{max(0, -place)}f"
    if place < -5 or largest >= 1e6:
        form = f".{min(15, max(0, math.floor(math.log10(largest)) - place))}e"
    return f"{value:{form}}", f"{low:{form}}", f"{high:{form}}"


def table(head: Iterable[str], rows: Iterable[str], words: Sequence[str] = (), first_line: str = "") -> str:
    """Return a table. The columns in `words` contain text; the others contain numbers."""
    caption = f"<caption>{html.escape(first_line)}</caption>" if first_line else ""
    cells = "".join(f"<th{'' if x in words else ' class=number'}>{html.escape(x)}</th>" for x in head)
    return f'<div class="wide"><table>{caption}<thead><tr>{cells}</tr></thead>{"".join(rows)}</table></div>'
