"""Tables of a report in HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence


def number(value: float | None, interval: Sequence[float | None] = (), below: str = "") -> str:
    """Return the cell of a number, with its confidence interval or other text below it."""
    known = "" if value is None else f"{value:.5g}"
    if value is not None and interval:
        known, *ends = with_digits(value, *interval)
        below = f"{ends[0]} to {ends[1]}"
    return f'<td class="number">{known}{f"<small>{html.escape(below)}</small>" if below else ""}</td>'


def with_digits(value: float, low: float | None, high: float | None) -> tuple[str, str, str]:
    """Return a number and the ends of its interval with the digits that show the width of the interval to two digits.

    >>> with_digits(0.3812345, 0.3807, 0.3818)
    ('0.3812', '0.3807', '0.3818')
    >>> with_digits(123456.0, 120000.0, None)
    ('1.2346e+05', '1.2e+05', 'unknown')
    """
    ends = [end for end in (low, high) if end is not None]
    largest = max(abs(x) for x in (value, *ends))
    if len(ends) < 2 or ends[0] == ends[1] or largest == 0.0:
        return f"{value:.5g}", *("unknown" if end is None else f"{end:.4g}" for end in (low, high))
    place = math.floor(math.log10(ends[1] - ends[0])) - 1  # of the last digit
    if place >= -5 and largest < 1e6:
        decimals = max(0, -place)
        return tuple(f"{x:.{decimals}f}" for x in (value, *ends))  # type: ignore[return-value]
    digits = min(15, max(0, math.floor(math.log10(largest)) - place))
    return tuple(f"{x:.{digits}e}" for x in (value, *ends))  # type: ignore[return-value]


def table(head: Iterable[str], rows: Iterable[str], words: Sequence[str] = (), first_line: str = "") -> str:
    """Return a table. The columns in `words` contain text; the others contain numbers."""
    caption = f"<caption>{html.escape(first_line)}</caption>" if first_line else ""
    cells = "".join(f"<th{'' if x in words else ' class=number'}>{html.escape(x)}</th>" for x in head)
    return f'<div class="wide"><table>{caption}<thead><tr>{cells}</tr></thead>{"".join(rows)}</table></div>'
