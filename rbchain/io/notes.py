"""Notes: the single warning about a file."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

MAX_NAMES = 20  # of a list in a message
MAX_OWNERS = 3  # of each part that the model omits
LEFT_OUT = "omitted from the model"


class Notes:
    """Sentences on elements of a file that a model omits or treats differently; one warning has all of them."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, dict[str, None]]] = {}
        self._sentences: list[str] = []

    def add(self, *sentences: str) -> None:
        """Add sentences to the warning."""
        self._sentences += sentences

    def put(self, heading: str, part: str, owner: str = "") -> None:
        """Add a part of the file under a heading; parts with the same text share a list of their owners."""
        owners = self._parts.setdefault(heading, {}).setdefault(part, {})
        owners |= {owner: None} if owner else {}

    @contextmanager
    def of_warnings(self) -> Iterator[None]:
        """Add the warnings that are raised in this context."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        self.add(*(str(warning.message) for warning in caught))

    def warn(self, path: Path, stacklevel: int) -> None:
        """Warn once, with the name of the file. `stacklevel` counts from the caller."""
        sentences = [
            f"{heading}: {', '.join(part + _in_brackets(list(owners)) for part, owners in parts.items())}"
            for heading, parts in self._parts.items()
        ]
        sentences += dict.fromkeys(self._sentences)  # the nominal model may have the same faults
        if sentences:
            warnings.warn(f"{path}: {'; '.join(sentences)}", stacklevel=stacklevel + 1)


def listed(names: Sequence[str]) -> str:
    """Return names in quotes, separated by commas. A long list ends with the number of the other names."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(map(repr, names[:MAX_NAMES])) + more


def _in_brackets(owners: Sequence[str]) -> str:
    more = f" and {len(owners) - MAX_OWNERS} more" if len(owners) > MAX_OWNERS else ""
    return f" ({', '.join(owners[:MAX_OWNERS])}{more})" if owners else ""
