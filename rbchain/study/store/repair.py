"""Writing the description of results, new or in place of a damaged one, and removing damaged chunks."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import StudyError
from ..describe.identity import differences
from ..plan.plan import Plan
from .checksums import read_verified, write_with_checksum
from .inspection import Findings, damaged_chunks
from .layout import FORMAT, OF_CHECKS, document_of, file_of, lay_out, record_of
from .provenance import provenance

UNFINISHED = ".unfinished"


def attributes_of(plan: Plan, chunk: int, effects: dict[str, str]) -> dict[str, Any]:
    """Return the attributes of the whole group."""
    return {
        "format": FORMAT,
        "title": plan.description.name,
        "samples": plan.description.samples,
        "chunk": chunk,
        "study": json.dumps(plan.as_json()),
        "provenance": json.dumps(provenance()),
        "effects": json.dumps(effects),
    }


def change_attributes(folder: Path, **changed: str | None) -> None:
    """Change attributes of the whole group, or remove those that are None."""
    document = read_verified(folder, document_of(""))
    attributes = document["attributes"] | changed
    document["attributes"] = {name: value for name, value in attributes.items() if value is not None}
    write_with_checksum(folder, document_of(""), document)


@contextlib.contextmanager
def laid_out(folder: Path, plan: Plan, chunk: int, attributes: dict[str, Any]) -> Iterator[Path]:
    """Lay out all arrays of the study in a temporary folder beside the results, from which they can be moved."""
    unfinished = folder / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    lay_out(unfinished, plan, chunk, attributes)
    yield unfinished
    shutil.rmtree(unfinished)


def refuse_another_study(findings: Findings, plan: Plan) -> None:
    """Raise a StudyError if the results belong to another study."""
    if findings.attributes is not None:
        changed = differences(json.loads(findings.attributes["study"]), json.loads(json.dumps(plan.as_json())))
        if changed:
            raise StudyError(
                f"{findings.folder} contains the results of another study: {'; '.join(changed[:5])}. Choose another "
                "folder, or delete this one"
            )
    elif not findings.arrays:
        raise StudyError(
            f"{findings.folder / document_of('')} is damaged, and no other file shows that the results belong to this "
            "study. Choose another folder, or delete this one"
        )


def drop(findings: Findings, plan: Plan) -> None:
    """Remove all files of damaged chunks. The checksums go first, because they mark a chunk as finished."""
    for chunk in damaged_chunks(findings.damage):
        for file in (record_of(chunk), *(file_of(variable, chunk) for variable in plan.variables)):
            (findings.folder / file).unlink(missing_ok=True)


def restore(findings: Findings, plan: Plan, effects: dict[str, str]) -> None:
    """Replace the description of the results by a new one, without statistics."""
    folder, chunk = findings.folder, findings.chunk
    if chunk is None:
        raise StudyError(
            f"{folder}: all files that contain the number of samples per chunk are damaged; delete the folder, and run "
            "the study again"
        )
    attributes = findings.attributes or attributes_of(plan, chunk, effects)
    kept = {
        name: value for name, value in attributes.items() if name not in (*OF_CHECKS, "statistics", "linear_analysis")
    }
    with laid_out(folder, plan, chunk, kept) as unfinished:
        for path in sorted(path for path in unfinished.rglob("*") if path.is_file()):
            place = folder / path.relative_to(unfinished)
            place.parent.mkdir(parents=True, exist_ok=True)
            path.replace(place)
