"""Writing the description of results: new, in place of a damaged one, or for more samples. Removing damaged chunks."""

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
from .layout import CHECKSUMS, FORMAT, OF_CHECKS, document_of, file_of, identity_of, lay_out, record_of
from .provenance import provenance

UNFINISHED = ".unfinished"
OF_ALL_SAMPLES = ("statistics", "survivors", "linear_analysis")  # attributes that another number of samples changes


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
    """Lay out all arrays of the study in a temporary folder next to the results, from which they can be moved."""
    unfinished = folder / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    lay_out(unfinished, plan, chunk, attributes)
    yield unfinished
    shutil.rmtree(unfinished)


def samples_before(findings: Findings, plan: Plan) -> int | None:
    """Return the number of samples of the study in a folder, or None if its description is damaged.

    Raises
    ------
    StudyError
        If the results belong to another study, or to more samples.
    """
    if findings.attributes is not None:
        old, new = json.loads(findings.attributes["study"]), json.loads(json.dumps(plan.as_json()))
        if old["samples"] != new["samples"] and old == new | {"samples": old["samples"]}:
            _check_can_grow(findings, plan, old["samples"])
            return old["samples"]
        changed = differences(old, new)
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
    return None if findings.attributes is None else plan.description.samples


def _check_can_grow(findings: Findings, plan: Plan, before: int) -> None:
    """Raise a StudyError unless a study with more samples contains all samples of the study in a folder."""
    samples, design = plan.description.samples, plan.description.design
    if samples < before:
        raise StudyError(
            f"samples is {samples:,}, but {findings.folder} contains this study with {before:,} samples; expected at "
            "least as many. Choose another folder, or load these results and select the first samples"
        )
    if not design.can_grow:
        raise StudyError(
            f"samples is {samples:,}, but {findings.folder} contains this study with {before:,} samples, and all "
            f"samples of the design {design.type!r} depend on their number. Choose another folder, or the design "
            "'random' or 'sobol', whose studies can grow"
        )


def drop(findings: Findings, plan: Plan) -> None:
    """Remove all files of damaged chunks. The checksums go first, because they mark a chunk as finished."""
    for chunk in damaged_chunks(findings.damage):
        for file in (record_of(chunk), *(file_of(variable, chunk) for variable in plan.variables)):
            (findings.folder / file).unlink(missing_ok=True)


def restore(findings: Findings, plan: Plan, effects: dict[str, str]) -> None:
    """Replace the description of the results by a new one, without statistics. The study may have more samples."""
    folder, chunk = findings.folder, findings.chunk
    if chunk is None:
        raise StudyError(
            f"{folder}: all files that contain the number of samples per chunk are damaged; delete the folder, and run "
            "the study again"
        )
    new = attributes_of(plan, chunk, effects)
    attributes = (findings.attributes or new) | {name: new[name] for name in ("samples", "study")}
    kept = {name: value for name, value in attributes.items() if name not in (*OF_CHECKS, *OF_ALL_SAMPLES)}
    with laid_out(folder, plan, chunk, kept) as unfinished:
        if identity_of(new["study"]) != findings.identity:
            _write_records(findings, unfinished, identity_of(new["study"]))
        last = unfinished / document_of("")  # it shows that the other files belong to the study
        for path in sorted((path for path in unfinished.rglob("*") if path.is_file()), key=lambda p: (p == last, p)):
            place = folder / path.relative_to(unfinished)
            place.parent.mkdir(parents=True, exist_ok=True)
            path.replace(place)


def _write_records(findings: Findings, folder: Path, identity: str) -> None:
    """Write the checksums of all finished chunks into a folder, for a study of this identity."""
    (folder / CHECKSUMS).mkdir()
    for chunk, samples in findings.finished.items():
        record = read_verified(findings.folder, record_of(chunk))
        write_with_checksum(folder, record_of(chunk), record | {"study_sha256": identity, "samples": samples})
