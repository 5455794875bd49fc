"""The identity of user functions in the description of a study: a digest of all that they depend on, with the names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...compiling.dependencies import Dependencies, Described
from ...compiling.origins import name_of
from ...errors import StudyError

MOST_PARTS = 40  # of a function or an object that a description names; a digest covers all
DEEPEST = 4  # level of the named parts
LONGEST = 80  # text of a number
READS = "reads from outside"


def function_as_json(value: Any) -> dict[str, Any]:
    """Return the identity of a function or an object: its name, a digest, and what it depends on, by name.

    Raises
    ------
    StudyError
        If it depends on an object whose changes would not be noticed, such as an open file.
    """
    dependencies = Dependencies()
    described = dependencies.describe(value)
    what = name_of(value if hasattr(value, "__qualname__") else type(value))
    if dependencies.unknown:
        raise StudyError(
            f"{what} depends on {'; '.join(dependencies.unknown[:3])}, whose changes rbchain cannot notice, so that a "
            "folder could contain the results of two functions; expected numbers, arrays, functions, and objects that "
            "can be pickled. Run the study without a folder, or create the object inside the function"
        )
    found = {"function": what, "sha256": described.digest} | _parts(described, DEEPEST)
    return found | ({READS: sorted(set(dependencies.read))} if dependencies.read else {})


def _parts(described: Described, depth: int) -> dict[str, Any]:
    """Return the named parts of a description, so that a message can name what has changed."""
    parts = [(name, part) for name, part in described.parts if name != "(code)"]
    if depth == 0 or len(parts) > MOST_PARTS:
        return {}
    return {name: _brief(part, depth - 1) for name, part in parts}


def _brief(described: Described, depth: int) -> Any:
    if described.kind == "value":
        return described.own if len(described.own) <= LONGEST else described.own[:LONGEST] + "..."
    return {"sha256": described.digest} | _parts(described, depth)


def reads_from_outside(document: Any) -> Iterator[str]:
    """Yield how the functions in the description of a study read files or environment variables."""
    if isinstance(document, dict):
        yield from document.get(READS, ())
        document = list(document.values())
    if isinstance(document, list):
        for part in document:
            yield from reads_from_outside(part)


def is_own(value: Any) -> bool:
    """Return whether the class of a value belongs to rbchain, whose fields describe it."""
    return type(value).__module__.partition(".")[0] == "rbchain"
