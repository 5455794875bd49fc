"""Texts and names that the writers of XML formats share."""

from __future__ import annotations

from collections.abc import Iterable


def number_text(numbers: Iterable[float]) -> str:
    """Return numbers with all digits, separated by spaces."""
    return " ".join(repr(float(x)) for x in numbers)


def unused_name(name: str, taken: set[str]) -> str:
    """Return an unused name that begins with `name`, and add it to the names in use."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
