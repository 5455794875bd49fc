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

from ...errors import StudyError
from ..plan.plan import Plan
from .capacity import check_disk, check_memory
from .checksums import Damage, digest_of, read_verified, write_with_checksum
from .inspection import Findings, damage_message, damaged_chunks, inspect, repair_message
from .layout import CHECKSUMS, FOLDER, LOCK, document_of, file_of, identity_of, record_of
from .repair import attributes_of, change_attributes, drop, laid_out, refuse_another_study, restore


class Chunked:
    """Samples in chunks of size `chunk`. The last chunk may be smaller."""

    samples: int
    chunk: int
    finished: set[int]

    def bounds(self, chunk: int) -> tuple[int, int]:
        """Return the first sample of a chunk, and the sample after its last."""
        return chunk * self.chunk, min((chunk + 1) * self.chunk, self.samples)

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.samples // self.chunk)


class Store(Chunked):
    """The results of one study in a folder, from `Store.create` or `Store.open`.

    Attributes
    ----------
    finished : set of int
        Chunks whose results are all stored.
    repaired : list of Damage
        Files that were damaged when the store was opened. They are restored, or their samples are computed again.
    has_linear_analysis : bool
        Whether it contained the result of `linear_analysis` when it was opened.
    """

    def __init__(self, folder: Path, plan: Plan, findings: Findings) -> None:
        import zarr

        self.folder, self.plan, self.finished = folder, plan, findings.finished
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
        """Open the store of this study, and remove or restore its damaged files.

        Raises
        ------
        StudyError
            If the results belong to another study. The message names the differences.
        """
        folder = Path(folder)
        findings = inspect(folder, identity_of(json.dumps(plan.as_json())))
        refuse_another_study(findings, plan)
        for pattern in ("*.partial", f"{FOLDER}/**/*.partial", f"{CHECKSUMS}/*.partial"):
            for left in folder.glob(pattern):  # from an interrupted write
                left.unlink(missing_ok=True)
        (folder / CHECKSUMS).mkdir(exist_ok=True)
        drop(findings, plan)
        if any(damage.chunk is None for damage in findings.damage):
            restore(findings, plan, effects)
        elif findings.damage:
            change_attributes(folder, statistics=None, survivors=None, linear_analysis=None)
        return cls(folder, plan, findings)

    def repair_message(self) -> str:
        """Describe the damaged files and their repair."""
        lost = [last - first for first, last in map(self.bounds, damaged_chunks(self.repaired))]
        return f"{damage_message(self.folder, self.repaired)}; {repair_message(sum(lost))}"

    def is_finished(self, chunk: int) -> bool:
        """Tell whether all results of a chunk are stored."""
        return chunk in self.finished

    def write(self, chunk: int, outputs: dict[str, np.ndarray]) -> None:
        """Write the results of a chunk, then their checksums."""
        first, last = self.bounds(chunk)
        try:
            for name, values in outputs.items():
                if values.size and name != "status":
                    self._array(name)[first:last] = values
            self._array("status")[first:last] = outputs["status"]
            files = [file_of(variable, chunk) for variable in self.plan.variables if outputs[variable.name].size]
            digests = {file: digest_of(self.folder / file) for file in files}
            write_with_checksum(self.folder, record_of(chunk), {"study_sha256": self.identity, "files": digests})
        except OSError as error:
            raise StudyError(
                f"{self.folder}: the results cannot be written ({error.strerror or error}). Once the cause is removed, "
                "run the same command again to resume"
            ) from error
        self.finished.add(chunk)

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
        self.samples, self.chunk, self.finished = plan.description.samples, chunk, set()
        self.arrays = {v.name: np.empty((self.samples, *(sizes[d] for d in v.dims)), v.dtype) for v in plan.variables}

    def is_finished(self, chunk: int) -> bool:
        return chunk in self.finished

    def write(self, chunk: int, outputs: dict[str, np.ndarray]) -> None:
        first, last = self.bounds(chunk)
        for name, values in outputs.items():
            self.arrays[name][first:last] = values
        self.finished.add(chunk)

    def read(self, chunk: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        first, last = self.bounds(chunk)
        return {name: self.arrays[name][first:last] for name in names}

    def end_at(self, samples: int) -> None:
        self.arrays = {name: values[:samples] for name, values in self.arrays.items()}
        self.samples = samples
