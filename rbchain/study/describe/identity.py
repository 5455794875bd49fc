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
IMPORTS = "imports by a name that is not in its code"


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
    noted = {READS: dependencies.read, IMPORTS: dependencies.imports}
    return found | {key: sorted(set(names)) for key, names in noted.items() if names}


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


def changes_that_are_not_noticed(document: Any) -> list[str]:
    """Return sentences about functions in the description of a study whose changes rbchain cannot notice."""
    found = []
    for key, what in (
        (READS, "functions of the study read files or environment variables ({})"),
        (IMPORTS, "functions of the study import modules that rbchain cannot determine from their code ({})"),
    ):
        names = [*dict.fromkeys(_noted(document, key))]
        if names:
            found.append(
                what.format(", ".join(names[:5])) + ". If these change, rbchain does not notice it and continues with "
                "the results in the folder. Delete the folder then"
            )
    return found


def _noted(document: Any, key: str) -> Iterator[str]:
    """Yield all names that the functions in a description have under this key."""
    if isinstance(document, dict):
        yield from document.get(key, ())
        document = list(document.values())
    if isinstance(document, list):
        for part in document:
            yield from _noted(part, key)


def is_own(value: Any) -> bool:
    """Return whether the class of a value belongs to rbchain, whose fields describe it."""
    return type(value).__module__.partition(".")[0] == "rbchain"
