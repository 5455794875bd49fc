"""What a folder of results holds, and which of its files are damaged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import StudyError
from .checksums import Damage, DamagedFile, digest_of, read_json, read_sealed
from .layout import CHECKSUMS, FOLDER, FORMAT, WITHOUT_CHECKSUMS, document_of, identity_of, record_of

FILES_NAMED = 3  # in a message


@dataclass
class Findings:
    """What was found in a folder of results.

    Attributes
    ----------
    attributes : dict or None
        Of the whole group, where its `zarr.json` is intact.
    identity : str, optional
        `identity_of` the study that the results must be of, where it is known.
    arrays : dict
        The `zarr.json` of every array for which it is intact, by name.
    finished : set of int
        Chunks of which every file is what was written.
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
        """Documents of the arrays with a value for each sample."""
        return [document for document in self.arrays.values() if document["dimension_names"][0] == "sample"]

    @property
    def chunk(self) -> int | None:
        """How many samples a chunk has, if any document says so."""
        if self.attributes is not None:
            return int(self.attributes["chunk"])
        sizes = [document["chunk_grid"]["configuration"]["chunk_shape"][0] for document in self.per_sample]
        return int(sizes[0]) if sizes else None

    @property
    def samples(self) -> int | None:
        """How many samples there are, if all arrays agree."""
        counts = {int(document["shape"][0]) for document in self.per_sample}
        return counts.pop() if len(counts) == 1 else None

    def bounds(self, chunk: int) -> tuple[int, int]:
        """First sample of a chunk, and the one behind its last."""
        size, samples = self.chunk or 0, self.samples
        return chunk * size, (chunk + 1) * size if samples is None else min((chunk + 1) * size, samples)

    def refuse_damage(self) -> None:
        """A StudyError that names the damaged files and says how to repair them, if there are any."""
        if not self.damage:
            return
        samples = sum(last - first for first, last in map(self.bounds, damaged_chunks(self.damage)))
        raise StudyError(
            f"{damage_message(self.folder, self.damage)}. To repair the results, run the study into this folder again "
            f"(`rbchain study run FILE --out {self.folder}`); {repair_message(samples)}"
        )


def damaged_chunks(damage: Iterable[Damage]) -> list[int]:
    """The chunks that have damaged files, in their order."""
    return sorted({found.chunk for found in damage if found.chunk is not None})


def repair_message(samples: int) -> str:
    """What a run does about damaged files with so many samples."""
    if samples == 0:
        return "rbchain restores the damaged files and keeps all samples"
    return f"rbchain restores the damaged files and recomputes {samples:,} {'samples' if samples > 1 else 'sample'}"


def damage_message(folder: Path, damage: list[Damage]) -> str:
    """Which files are damaged, and how; of many the first ones."""
    named = "; ".join(f"{folder / found.file}: {found.reason}" for found in damage[:FILES_NAMED])
    more = len(damage) - FILES_NAMED
    return f"{named}; and {more:,} more" if more > 0 else named


def inspect(folder: str | Path, identity: str | None = None) -> Findings:
    """Read every file of the results in a folder, and compare it with its checksum.

    `identity` is that of the study that the results should be of, used if they do not say so themselves.

    Raises
    ------
    StudyError
        If there are no results, or if an rbchain of another format wrote them.
    """
    found = Findings(Path(folder), identity)
    if not (found.folder / FOLDER).is_dir():
        raise StudyError(f"{folder}: there are no results of a study")
    _inspect_group(found)
    _inspect_arrays(found)
    _inspect_chunks(found)
    return found


def _inspect_group(found: Findings) -> None:
    try:
        found.attributes = read_sealed(found.folder, document_of(""))["attributes"]
    except DamagedFile as reason:
        _refuse_without_checksums(found.folder)
        found.damage.append(Damage(document_of(""), str(reason)))
        return
    if found.attributes["format"] != FORMAT:
        raise StudyError(
            f"{found.folder}: the results have format {found.attributes['format']}; expected {FORMAT}, the format of "
            "this version of rbchain"
        )
    found.identity = identity_of(found.attributes["study"])


def _refuse_without_checksums(folder: Path) -> None:
    try:
        attributes = read_json(folder / document_of("")).get("attributes", {})
    except DamagedFile:
        return
    if attributes.get("format") == WITHOUT_CHECKSUMS:
        raise StudyError(
            f"{folder}: an earlier version of rbchain wrote these results without checksums, so nobody can tell "
            "whether they are damaged; run the study again into another folder"
        )


def _inspect_arrays(found: Findings) -> None:
    if found.attributes is None:  # which name the arrays
        names = sorted(path.name for path in (found.folder / FOLDER).iterdir() if path.is_dir())
    else:
        names = found.attributes["arrays"]
    for name in names:
        try:
            document = read_sealed(found.folder, document_of(name))
            _check_identity(found, document["attributes"])
        except DamagedFile as reason:
            found.damage.append(Damage(document_of(name), str(reason)))
            continue
        found.arrays[name] = document
        for file, digest in document["attributes"].get("files", {}).items():
            _compare(found, file, digest, None)
    if not found.damage and found.samples is None:
        shape = "the arrays have different numbers of samples, because a run was killed while it ended"
        found.damage.append(Damage(FOLDER, shape))


def _inspect_chunks(found: Findings) -> None:
    ended = found.attributes is not None and "statistics" in found.attributes
    chunks = {int(path.stem) for path in (found.folder / CHECKSUMS).glob("*.json") if path.stem.isdecimal()}
    if ended and found.samples is not None and found.chunk:
        chunks |= set(range(-(-found.samples // found.chunk)))
    for chunk in sorted(chunks):
        before = len(found.damage)
        try:
            record = read_sealed(found.folder, record_of(chunk))
            _check_identity(found, record)
            for file, digest in record["files"].items():
                _compare(found, file, digest, chunk)
        except DamagedFile as reason:
            found.damage.append(Damage(record_of(chunk), str(reason), chunk))
        if len(found.damage) == before:
            found.finished.add(chunk)
        elif not ended and not (found.folder / record_of(chunk)).exists():
            del found.damage[before:]  # a run that is at work has just dropped the chunk


def _check_identity(found: Findings, document: dict[str, Any]) -> None:
    """DamagedFile if a document is of another study."""
    if found.identity not in (None, document["study_sha256"]):
        raise DamagedFile("the file belongs to another study")


def _compare(found: Findings, file: str, digest: str, chunk: int | None) -> None:
    """Note a file that is not what was written."""
    try:
        if digest_of(found.folder / file) != digest:
            raise DamagedFile("the checksum does not match the contents")
    except DamagedFile as reason:
        found.damage.append(Damage(file, str(reason), chunk))
