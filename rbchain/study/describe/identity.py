"""The identity of a study: its description as JSON, with digests of its model and of all that its functions need."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from ...common.real_arrays import excerpt
from ...compiling.dependencies import Dependencies, Described
from ...compiling.origins import name_of
from ...errors import StudyError
from ...facade.model import Model

MOST_PARTS = 40  # of a function or an object that a description names; a digest covers all
DEEPEST = 4  # level of the named parts
LONGEST = 80  # text of a number
READS = "reads from outside"
IMPORTS = "imports by a name that is not in its code"


def as_json(value: Any) -> Any:
    """Convert a value to JSON for the store. Equal values give equal JSON.

    Raises StudyError if a function depends on an object that cannot be described.
    """
    if isinstance(value, Model):
        return {"model": value.name, "sha256": fingerprint(value)}
    if isinstance(value, BaseModel) and _is_own(value):
        return {name: as_json(getattr(value, name)) for name in type(value).model_fields}
    if is_dataclass(value) and _is_own(value):
        return {"type": type(value).__name__} | {f.name: as_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    return _function_as_json(value)


def fingerprint(model: Model) -> str:
    """Return a hash of a model, without its visuals and drives."""
    digest = hashlib.sha256()
    for field in fields(model.description):
        value = getattr(model.description, field.name)
        if field.name in ("visuals", "drives"):  # the description of a study contains the drives
            continue
        if field.name == "nominal":  # the model that controllers use
            value = "" if value is None else fingerprint(model.nominal)
        if isinstance(value, np.ndarray):
            digest.update(f"{field.name} {value.shape} {value.dtype}".encode() + np.ascontiguousarray(value).tobytes())
        elif field.name in ("collisions", "keyframes", "sensors") and value:
            digest.update(f"{field.name} {json.dumps(as_json(value))}".encode())
        elif isinstance(value, dict):
            frames = {n: (f.body, f.pose.translation.tolist(), f.pose.rotation.tolist()) for n, f in value.items()}
            digest.update(f"{field.name} {frames}".encode())
        else:
            digest.update(f"{field.name} {value}".encode())
    return digest.hexdigest()


def _is_own(value: Any) -> bool:
    """Return whether the class of a value belongs to rbchain, whose fields describe it."""
    return type(value).__module__.partition(".")[0] == "rbchain"


def _function_as_json(value: Any) -> dict[str, Any]:
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
            f"{what} depends on {'; '.join(dependencies.unknown[:3])}, whose changes rbchain cannot detect, so a "
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


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Return the differences of two descriptions in JSON: each place with its old and its new value."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        return [d for key in keys for d in differences(old.get(key), new.get(key), f"{place}.{key}".lstrip("."))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [d for i, pair in enumerate(zip(old, new, strict=True)) for d in differences(*pair, f"{place}[{i}]")]
    return [] if old == new else [f"{place} was {excerpt(old, longest=80)}, is {excerpt(new, longest=80)}"]
