"""Store: the results on disk, a Zarr group with one chunk for each chunk of the study.

Every file is written under another name and then renamed, so it is either complete or absent. The checksums of a chunk
are written last and mark it as finished. So a killed run leaves no damaged results.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...common.whole_files import whole_file
from ...errors import StudyError
from ..plan.plan import Plan
from .capacity import check_disk, check_memory
from .checksums import Damage, digest_of, read_verified, write_with_checksum
from .inspection import Findings, damage_message, damaged_chunks, inspect, repair_message
from .layout import CHECKSUMS, FOLDER, LOCK, document_of, file_of, identity_of, record_of
from .repair import OF_ALL_SAMPLES, attributes_of, change_attributes, drop, laid_out, restore, samples_before


class Chunked:
    """Samples in chunks of size `chunk`. The last chunk may be smaller."""

    samples: int
    chunk: int
    finished: dict[int, int]  # number of stored samples by chunk

    def bounds(self, chunk: int) -> tuple[int, int]:
        """Return the first sample of a chunk, and the sample after its last."""
        return chunk * self.chunk, min((chunk + 1) * self.chunk, self.samples)

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.samples // self.chunk)

    def is_finished(self, chunk: int) -> bool:
        """Tell whether all results of a chunk are stored."""
        first, last = self.bounds(chunk)
        return self.finished.get(chunk, 0) >= last - first

    def missing(self, chunk: int) -> tuple[int, int]:
        """Return the first sample of a chunk that is not stored, and the sample after its last."""
        first, last = self.bounds(chunk)
        return min(first + self.finished.get(chunk, 0), last), last


class Store(Chunked):
    """The results of one study in a folder, from `Store.create` or `Store.open`.

    Attributes
    ----------
    finished : dict of int
        Number of stored samples by chunk. The last chunk of a study that has grown may contain a part of its samples.
    grown_from : int, optional
        Number of samples that the study had before it grew.
    repaired : list of Damage
        Files that were damaged when the store was opened. They are restored, or their samples are computed again.
    has_linear_analysis : bool
        Whether it contained the result of `linear_analysis` when it was opened.
    """

    def __init__(self, folder: Path, plan: Plan, findings: Findings) -> None:
        import zarr

        self.folder, self.plan, self.finished = folder, plan, findings.finished
        self.grown_from: int | None = None
        self.repaired: list[Damage] = findings.damage
        group: Any = zarr.open_group(folder / FOLDER, mode="r+")
        self.group = group
        self.chunk, self.samples = int(group.attrs["chunk"]), int(group["status"].shape[0])
        self.identity = identity_of(group.attrs["study"])
        self.has_linear_analysis = "linear_analysis" in group.attrs

    @classmethod
    def exists(cls, folder: str | Path) -> bool:
        """Tell whether a folder contains a store."""
        return (Path(folder) / FOLDER).is_dir()

    @classmethod
    def create(cls, folder: str | Path, plan: Plan, chunk: int, effects: dict[str, str]) -> Store:
        """Create a store. It appears in the folder when it is complete."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        check_disk(plan, folder)
        shutil.rmtree(folder / CHECKSUMS, ignore_errors=True)
        with laid_out(folder, plan, chunk, attributes_of(plan, chunk, effects)) as unfinished:
            (folder / CHECKSUMS).mkdir()
            (unfinished / FOLDER).rename(folder / FOLDER)
        return cls(folder, plan, Findings(folder))

    @classmethod
    def open(cls, folder: str | Path, plan: Plan, effects: dict[str, str]) -> Store:
        """Open the store of this study, and remove or restore its damaged files. More samples make it grow.

        Raises
        ------
        StudyError
            If the results belong to another study. The message lists the differences.
        """
        folder = Path(folder)
        findings = inspect(folder, identity_of(json.dumps(plan.as_json())))
        before = samples_before(findings, plan)
        grows = before not in (None, plan.description.samples)
        for pattern in ("*.partial", f"{FOLDER}/**/*.partial", f"{CHECKSUMS}/*.partial"):
            for left in folder.glob(pattern):  # from an interrupted write
                left.unlink(missing_ok=True)
        (folder / CHECKSUMS).mkdir(exist_ok=True)
        drop(findings, plan)
        if grows or any(damage.chunk is None for damage in findings.damage):
            restore(findings, plan, effects)
        elif findings.damage:
            change_attributes(folder, **dict.fromkeys(OF_ALL_SAMPLES))
        store = cls(folder, plan, findings)
        store.grown_from = before if grows else None
        return store

    def repair_message(self) -> str:
        """Describe the damaged files and their repair."""
        lost = [last - first for first, last in map(self.bounds, damaged_chunks(self.repaired))]
        return f"{damage_message(self.folder, self.repaired)}; {repair_message(sum(lost))}"

    def write(self, chunk: int, outputs: dict[str, np.ndarray]) -> None:
        """Write the missing results of a chunk, then the checksums of the whole chunk."""
        first, last = self.missing(chunk)
        try:
            (self.folder / record_of(chunk)).unlink(missing_ok=True)  # it does not hold while the files change
            for name, values in outputs.items():
                if values.size and name != "status":
                    self._array(name)[first:last] = values
            self._array("status")[first:last] = outputs["status"]
            files = [file_of(variable, chunk) for variable in self.plan.variables if outputs[variable.name].size]
            digests = {file: digest_of(self.folder / file) for file in files}
            count = last - self.bounds(chunk)[0]
            record = {"study_sha256": self.identity, "samples": count, "files": digests}
            write_with_checksum(self.folder, record_of(chunk), record)
        except OSError as error:
            raise StudyError(
                f"{self.folder}: the results cannot be written ({error.strerror or error}). Once the cause is removed, "
                "run the same command again to resume"
            ) from error
        self.finished[chunk] = count

    def take(self, findings: Findings) -> None:
        """Copy the finished chunks of another folder of the same study that this store lacks."""
        for chunk in findings.finished:
            whole = findings.finished[chunk] >= self.bounds(chunk)[1] - self.bounds(chunk)[0]
            if not whole or self.is_finished(chunk):
                continue
            record = read_verified(findings.folder, record_of(chunk))
            for file in (*record["files"], record_of(chunk)):  # the record last, because it marks the chunk as finished
                (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
                with whole_file(self.folder / file) as partial:
                    shutil.copyfile(findings.folder / file, partial)
            self.finished[chunk] = findings.finished[chunk]

    def _array(self, name: str) -> Any:
        """Return an array that also writes chunks of fill values only, because a missing file counts as damage."""
        return self.group[name].with_config({"write_empty_chunks": True})

    def read(self, chunk: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Read results of a finished chunk, by name."""
        first, last = self.bounds(chunk)
        return {name: self.group[name][first:last] for name in names}

    def end_at(self, samples: int) -> None:
        """Reduce the store to this number of samples, because the study stopped early."""
        beyond = -(-samples // self.chunk)
        places = [self.folder / CHECKSUMS] + [self.folder / FOLDER / v.name / "c" for v in self.plan.variables]
        for path in [path for place in places if place.is_dir() for path in place.iterdir()]:
            if path.stem.isdecimal() and int(path.stem) >= beyond:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for variable in self.plan.variables:
            document = read_verified(self.folder, document_of(variable.name))
            document["shape"][0] = samples
            write_with_checksum(self.folder, document_of(variable.name), document)
        self.samples = samples

    def write_statistics(self, statistics: dict[str, Any], survivors: str) -> None:
        """Write the statistics, which mark the study as finished, and the sentence about failed samples if any."""
        change_attributes(self.folder, statistics=json.dumps(statistics), survivors=survivors or None)

    def write_linear_analysis(self, analysis: dict[str, Any]) -> None:
        """Write the result of `linear_analysis`."""
        change_attributes(self.folder, linear_analysis=json.dumps(analysis))


@contextlib.contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Lock a folder of results, or raise a StudyError if another run has locked it. The lock ends with the process."""
    import fcntl

    with (Path(folder) / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(
                f"{folder}: another run is writing into this folder; wait until it ends, or choose another folder"
            ) from None
        yield


class InMemory(Chunked):
    """Results in memory, with the interface of `Store`."""

    def __init__(self, plan: Plan, chunk: int) -> None:
        check_memory(plan)
        sizes = plan.sizes()
        self.samples, self.chunk, self.finished = plan.description.samples, chunk, {}
        self.arrays = {v.name: np.empty((self.samples, *(sizes[d] for d in v.dims)), v.dtype) for v in plan.variables}

    def write(self, chunk: int, outputs: dict[str, np.ndarray]) -> None:
        first, last = self.bounds(chunk)
        for name, values in outputs.items():
            self.arrays[name][first:last] = values
        self.finished[chunk] = last - first

    def read(self, chunk: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        first, last = self.bounds(chunk)
        return {name: self.arrays[name][first:last] for name in names}

    def end_at(self, samples: int) -> None:
        self.arrays = {name: values[:samples] for name, values in self.arrays.items()}
        self.samples = samples
