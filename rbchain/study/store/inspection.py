"""Inspection of a folder of results: its contents, and its damaged files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import StudyError
from .checksums import Damage, DamagedFile, digest_of, read_json, read_verified
from .layout import CHECKSUMS, FOLDER, FORMAT, WITHOUT_CHECKSUMS, document_of, identity_of, record_of

FILES_NAMED = 3  # in an error message


@dataclass
class Findings:
    """The contents of a folder of results.

    Attributes
    ----------
    attributes : dict or None
        Attributes of the whole group; None if its `zarr.json` is damaged.
    identity : str, optional
        `identity_of` the study to which the files must belong, if it is known.
    arrays : dict
        The undamaged `zarr.json` documents of the arrays, by name.
    finished : dict of int
        Number of stored samples of each chunk whose files are all undamaged.
    damage : list of Damage
    """

    folder: Path
    identity: str | None = None
    attributes: dict[str, Any] | None = None
    arrays: dict[str, dict[str, Any]] = field(default_factory=dict)
    finished: dict[int, int] = field(default_factory=dict)
    damage: list[Damage] = field(default_factory=list)

    @property
    def per_sample(self) -> list[dict[str, Any]]:
        """Documents of the arrays that have a value for each sample."""
        return [document for document in self.arrays.values() if document["dimension_names"][0] == "sample"]

    @property
    def chunk(self) -> int | None:
        """Number of samples in a chunk; None if no undamaged document contains it."""
        if self.attributes is not None:
            return int(self.attributes["chunk"])
        sizes = [document["chunk_grid"]["configuration"]["chunk_shape"][0] for document in self.per_sample]
        return int(sizes[0]) if sizes else None

    @property
    def samples(self) -> int | None:
        """Number of samples; None if the arrays disagree."""
        counts = {int(document["shape"][0]) for document in self.per_sample}
        return counts.pop() if len(counts) == 1 else None

    def bounds(self, chunk: int) -> tuple[int, int]:
        """Return the first sample of a chunk, and the sample after its last."""
        size, samples = self.chunk or 0, self.samples
        return chunk * size, (chunk + 1) * size if samples is None else min((chunk + 1) * size, samples)

    def check_undamaged(self) -> None:
        """Raise a StudyError if files are damaged; it lists them and states how to repair them."""
        if not self.damage:
            return
        samples = sum(last - first for first, last in map(self.bounds, damaged_chunks(self.damage)))
        raise StudyError(
            f"{damage_message(self.folder, self.damage)}. To repair the results, run the study into this folder again "
            f"(`rbchain study run FILE --out {self.folder}`); {repair_message(samples)}"
        )


def damaged_chunks(damage: Iterable[Damage]) -> list[int]:
    """Return the chunks with damaged files, sorted."""
    return sorted({file.chunk for file in damage if file.chunk is not None})


def repair_message(samples: int) -> str:
    """Describe the repair by the next run, if the damaged files hold this number of samples."""
    if samples == 0:
        return "rbchain restores the damaged files and keeps all samples"
    return f"rbchain restores the damaged files and recomputes {samples:,} {'samples' if samples > 1 else 'sample'}"


def damage_message(folder: Path, damage: list[Damage]) -> str:
    """Describe the first few damaged files."""
    named = "; ".join(f"{folder / each.file}: {each.reason}" for each in damage[:FILES_NAMED])
    more = len(damage) - FILES_NAMED
    return f"{named}; and {more:,} more files" if more > 0 else named


def inspect(folder: str | Path, identity: str | None = None) -> Findings:
    """Compare every file of the results in a folder with its checksum.

    If the group's own description is damaged, `identity` identifies the study to which the files must belong.

    Raises
    ------
    StudyError
        If the folder contains no results, or results in another format.
    """
    findings = Findings(Path(folder), identity)
    if not (findings.folder / FOLDER).is_dir():
        raise StudyError(
            f"{folder} contains no results of a study; expected the folder that `rbchain study run` was given as --out"
        )
    _inspect_group(findings)
    _inspect_arrays(findings)
    _inspect_chunks(findings)
    return findings


def _inspect_group(findings: Findings) -> None:
    try:
        findings.attributes = read_verified(findings.folder, document_of(""))["attributes"]
    except DamagedFile as reason:
        _refuse_format_without_checksums(findings.folder)
        findings.damage.append(Damage(document_of(""), str(reason)))
        return
    if findings.attributes["format"] != FORMAT:
        raise StudyError(
            f"{findings.folder}: the results have format {findings.attributes['format']}; expected format {FORMAT}. "
            "Read them with the version of rbchain that wrote them, or run the study again into another folder"
        )
    findings.identity = identity_of(findings.attributes["study"])


def _refuse_format_without_checksums(folder: Path) -> None:
    try:
        attributes = read_json(folder / document_of("")).get("attributes", {})
    except DamagedFile:
        return
    if attributes.get("format") == WITHOUT_CHECKSUMS:
        raise StudyError(
            f"{folder}: an earlier version of rbchain wrote these results without checksums, so damage cannot be "
            "detected; run the study again into another folder"
        )


def _inspect_arrays(findings: Findings) -> None:
    if findings.attributes is None:  # they contain the names of the arrays
        names = sorted(path.name for path in (findings.folder / FOLDER).iterdir() if path.is_dir())
    else:
        names = findings.attributes["arrays"]
    for name in names:
        try:
            document = read_verified(findings.folder, document_of(name))
            _check_identity(findings, document["attributes"])
        except DamagedFile as reason:
            findings.damage.append(Damage(document_of(name), str(reason)))
            continue
        findings.arrays[name] = document
        for file, digest in document["attributes"].get("files", {}).items():
            _compare(findings, file, digest, None)
    if not findings.damage and findings.samples is None:
        disagreement = "the arrays have different numbers of samples, because a run was killed while it ended"
        findings.damage.append(Damage(FOLDER, disagreement))
    elif not findings.damage and findings.samples > findings.attributes["samples"]:  # type: ignore[index]
        disagreement = "the arrays have more samples than the study, because a run was killed while the study grew"
        findings.damage.append(Damage(FOLDER, disagreement))


def _inspect_chunks(findings: Findings) -> None:
    ended = findings.attributes is not None and "statistics" in findings.attributes
    chunks = {int(path.stem) for path in (findings.folder / CHECKSUMS).glob("*.json") if path.stem.isdecimal()}
    if ended and findings.samples is not None and findings.chunk:
        chunks |= set(range(-(-findings.samples // findings.chunk)))
    for chunk in sorted(chunks):
        before = len(findings.damage)
        try:
            record = read_verified(findings.folder, record_of(chunk))
            _check_identity(findings, record)
            for file, digest in record["files"].items():
                _compare(findings, file, digest, chunk)
            stored = record.get("samples", _planned(findings, chunk))
        except DamagedFile as reason:
            findings.damage.append(Damage(record_of(chunk), str(reason), chunk))
        if len(findings.damage) == before:
            findings.finished[chunk] = stored
        elif not ended and not (findings.folder / record_of(chunk)).exists():
            del findings.damage[before:]  # a running study has just removed the chunk


def _planned(findings: Findings, chunk: int) -> int:
    """Return the number of samples of a chunk as they were planned: earlier versions of rbchain did not store it."""
    samples = findings.samples if findings.attributes is None else int(findings.attributes["samples"])
    if samples is None or findings.chunk is None:
        return 0
    return min(findings.chunk, samples - chunk * findings.chunk)


def _check_identity(findings: Findings, document: dict[str, Any]) -> None:
    """Raise DamagedFile if a document belongs to another study."""
    if findings.identity not in (None, document["study_sha256"]):
        raise DamagedFile("the file belongs to another study")


def _compare(findings: Findings, file: str, digest: str, chunk: int | None) -> None:
    """Record a file as damaged if its checksum differs."""
    try:
        if digest_of(findings.folder / file) != digest:
            raise DamagedFile("the checksum does not match the contents")
    except DamagedFile as reason:
        findings.damage.append(Damage(file, str(reason), chunk))
