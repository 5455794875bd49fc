"""Inspection of a folder of results: its contents, and its damaged files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import StudyError
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
    finished : set of int
        Chunks whose files are all undamaged.
    damage : list of Damage
    """

    folder: Path
    identity: str | None = None
    attributes: dict[str, Any] | None = None
    arrays: dict[str, dict[str, Any]] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)
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
        """Raise a StudyError if files are damaged; it names them and says how to repair them."""
        if not self.damage:
            return
        samples = sum(last - first for first, last in map(self.bounds, damaged_chunks(self.damage)))
        raise StudyError(
            f"{damage_message(self.folder, self.damage)}. To repair the results, run the study into this folder again "
            f"(`rbchain study run FILE --out {self.folder}`); {repair_message(samples)}"
        )


def damaged_chunks(damage: Iterable[Damage]) -> list[int]:
    """Return the chunks with damaged files, sorted."""
    return sorted({found.chunk for found in damage if found.chunk is not None})


def repair_message(samples: int) -> str:
    """Describe the repair by the next run, if the damaged files hold this number of samples."""
    if samples == 0:
        return "rbchain restores the damaged files and keeps all samples"
    return f"rbchain restores the damaged files and recomputes {samples:,} {'samples' if samples > 1 else 'sample'}"


def damage_message(folder: Path, damage: list[Damage]) -> str:
    """Describe the first few damaged files."""
    named = "; ".join(f"{folder / found.file}: {found.reason}" for found in damage[:FILES_NAMED])
    more = len(damage) - FILES_NAMED
    return f"{named}; and {more:,} more files" if more > 0 else named


def inspect(folder: str | Path, identity: str | None = None) -> Findings:
    """Compare every file of the results in a folder with its checksum.

    If the group's own description is damaged, `identity` is that of the study to which the files must belong.

    Raises
    ------
    StudyError
        If the folder contains no results, or results in another format.
    """
    found = Findings(Path(folder), identity)
    if not (found.folder / FOLDER).is_dir():
        raise StudyError(
            f"{folder} contains no results of a study; expected the folder that `rbchain study run` was given as --out"
        )
    _inspect_group(found)
    _inspect_arrays(found)
    _inspect_chunks(found)
    return found


def _inspect_group(found: Findings) -> None:
    try:
        found.attributes = read_verified(found.folder, document_of(""))["attributes"]
    except DamagedFile as reason:
        _refuse_format_without_checksums(found.folder)
        found.damage.append(Damage(document_of(""), str(reason)))
        return
    if found.attributes["format"] != FORMAT:
        raise StudyError(
            f"{found.folder}: the results have format {found.attributes['format']}; expected format {FORMAT}. Read "
            "them with the version of rbchain that wrote them, or run the study again into another folder"
        )
    found.identity = identity_of(found.attributes["study"])


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


def _inspect_arrays(found: Findings) -> None:
    if found.attributes is None:  # they contain the names of the arrays
        names = sorted(path.name for path in (found.folder / FOLDER).iterdir() if path.is_dir())
    else:
        names = found.attributes["arrays"]
    for name in names:
        try:
            document = read_verified(found.folder, document_of(name))
            _check_identity(found, document["attributes"])
        except DamagedFile as reason:
            found.damage.append(Damage(document_of(name), str(reason)))
            continue
        found.arrays[name] = document
        for file, digest in document["attributes"].get("files", {}).items():
            _compare(found, file, digest, None)
    if not found.damage and found.samples is None:
        disagreement = "the arrays have different numbers of samples, because a run was killed while it ended"
        found.damage.append(Damage(FOLDER, disagreement))


def _inspect_chunks(found: Findings) -> None:
    ended = found.attributes is not None and "statistics" in found.attributes
    chunks = {int(path.stem) for path in (found.folder / CHECKSUMS).glob("*.json") if path.stem.isdecimal()}
    if ended and found.samples is not None and found.chunk:
        chunks |= set(range(-(-found.samples // found.chunk)))
    for chunk in sorted(chunks):
        before = len(found.damage)
        try:
            record = read_verified(found.folder, record_of(chunk))
            _check_identity(found, record)
            for file, digest in record["files"].items():
                _compare(found, file, digest, chunk)
        except DamagedFile as reason:
            found.damage.append(Damage(record_of(chunk), str(reason), chunk))
        if len(found.damage) == before:
            found.finished.add(chunk)
        elif not ended and not (found.folder / record_of(chunk)).exists():
            del found.damage[before:]  # a running study has just removed the chunk


def _check_identity(found: Findings, document: dict[str, Any]) -> None:
    """Raise DamagedFile if a document belongs to another study."""
    if found.identity not in (None, document["study_sha256"]):
        raise DamagedFile("the file belongs to another study")


def _compare(found: Findings, file: str, digest: str, chunk: int | None) -> None:
    """Record a file as damaged if its checksum differs."""
    try:
        if digest_of(found.folder / file) != digest:
            raise DamagedFile("the checksum does not match the contents")
    except DamagedFile as reason:
        found.damage.append(Damage(file, str(reason), chunk))
