"""Where results are kept: a Zarr group that xarray opens, a chunk of it for every chunk of the study.

A chunk's status is written last, and every file appears whole or not at all (it is renamed into its place): so what has
a status is finished, and whatever interrupts a run leaves nothing to mend.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import StudyError
from ..lock_free import cached_property
from .description import differences
from .outputs import NOT_RUN
from .provenance import provenance

if TYPE_CHECKING:
    import xarray

    from .plan import Plan
    from .statistics import Statistics

FOLDER, LOCK = "results.zarr", ".lock"
FORMAT = 1


class Store:
    """The results of one study in a folder; made by `Store.create` or `Store.open`."""

    def __init__(self, folder: str | Path) -> None:
        import zarr

        self.folder = Path(folder)
        try:
            self.group: Any = zarr.open_group(self.folder / FOLDER, mode="r+")
            self.attributes: dict[str, Any] = dict(self.group.attrs)
            self.chunk = int(self.attributes["chunk"])
            self.samples = self.group["status"].shape[0]  # type: ignore[union-attr]
            self.attributes["study"]
        except (KeyError, ValueError, OSError) as error:
            raise StudyError(f"{self.folder / FOLDER} is no store of a study, or is damaged ({error!r})") from None

    @classmethod
    def exists(cls, folder: str | Path) -> bool:
        """Whether there is one."""
        return (Path(folder) / FOLDER / "zarr.json").is_file()

    @classmethod
    def create(cls, folder: str | Path, plan: Plan, chunk: int, reach: dict[str, str]) -> Store:
        """A new one, which appears in its folder once it is whole."""
        import zarr

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / (FOLDER + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        samples, sizes = plan.description.samples, plan.sizes()
        attributes = {
            "format": FORMAT,
            "title": plan.description.name,
            "samples": samples,
            "chunk": chunk,
            "study": json.dumps(plan.words()),
            "provenance": json.dumps(provenance()),
            "reach": json.dumps(reach),
        }
        group = zarr.create_group(unfinished, attributes=attributes)
        for variable in plan.variables:
            shape = tuple(sizes[d] for d in variable.dims)
            group.create_array(
                variable.name,
                shape=(samples, *shape),
                chunks=(chunk, *(max(1, size) for size in shape)),
                dtype=np.dtype(variable.dtype),
                fill_value=NOT_RUN if variable.name == "status" else np.nan if variable.dtype is np.float64 else 0,
                dimension_names=("sample", *variable.dims),
                attributes={"units": variable.units, "long_name": variable.label or variable.name},
                config={"write_empty_chunks": True},
            )
        for name, dim, labels, units in _coordinates(plan):
            values = labels.astype(np.dtypes.StringDType()) if labels.dtype.kind == "U" else labels
            group.create_array(name, data=values, dimension_names=(dim,), attributes={"units": units})
        unfinished.rename(folder / FOLDER)
        return cls(folder)

    @classmethod
    def open(cls, folder: str | Path, plan: Plan) -> Store:
        """The one that is there, if it is of this very study; a StudyError names what has changed."""
        store = cls(folder)
        changed = differences(json.loads(store.attributes["study"]), json.loads(json.dumps(plan.words())))
        if changed:
            raise StudyError(
                f"{store.folder}: this study is another one than that whose results are there: "
                + "; ".join(changed[:5])
                + " (give another folder, or delete this one)"
            )
        for left in (store.folder / FOLDER).rglob("*.partial"):  # of a write that was cut off
            left.unlink(missing_ok=True)
        return store

    def bounds(self: Store | InMemory, chunk: int) -> tuple[int, int]:
        """First sample of a chunk, and the one behind its last."""
        return chunk * self.chunk, min((chunk + 1) * self.chunk, self.samples)

    @property
    def chunks(self: Store | InMemory) -> int:
        """How many there are."""
        return -(-self.samples // self.chunk)

    def is_finished(self, chunk: int) -> bool:
        """Whether all results of a chunk are there."""
        store = self.folder / FOLDER
        return all((store / name / "c" / f"{chunk}{further}").is_file() for name, further in self._files)

    @cached_property
    def _files(self) -> list[tuple[str, str]]:
        """Of each array along the samples its name, and what the names of its chunks' files end with; status first."""
        found: list[tuple[str, str]] = []
        for name, array in self.group.arrays():
            if array.metadata.dimension_names[0] == "sample" and 0 not in array.shape:
                found.append((name, "/0" * (len(array.shape) - 1)))
        return sorted(found, key=lambda of_array: of_array[0] != "status")

    def write(self, chunk: int, outputs: dict[str, np.ndarray]) -> None:
        """Keep the results of a chunk, its status last."""
        first, last = self.bounds(chunk)
        try:
            for name, values in outputs.items():
                if values.size and name != "status":
                    self.group[name][first:last] = values
            self.group["status"][first:last] = outputs["status"]
        except OSError as error:
            raise StudyError(
                f"{self.folder}: the results cannot be written ({error.strerror or error}); "
                "once they can, the same command goes on from here"
            ) from error

    def read(self, chunk: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Results of a finished chunk by name."""
        first, last = self.bounds(chunk)
        return {name: self.group[name][first:last] for name in names}

    def end_at(self, samples: int) -> None:
        """Make these all the samples there are: the study stopped early. The status last, as for a chunk."""
        if samples == self.samples:
            return
        for name, _ in reversed(self._files):
            array = self.group[name]
            array.resize((samples, *array.shape[1:]))
        self.samples = samples

    def keep_statistics(self, statistics: Statistics) -> None:
        """The last thing written: statistics of everything, and how many samples failed."""
        self.group.attrs["statistics"] = json.dumps(statistics.in_words())

    def dataset(self) -> xarray.Dataset:
        """The results as xarray has them: read when looked at."""
        return open_dataset(self.folder)


@contextlib.contextmanager
def alone(folder: str | Path) -> Iterator[None]:
    """Hold a folder of results, or raise a StudyError where another run does; however a process ends, it lets go."""
    import fcntl

    with (Path(folder) / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(f"{folder}: another run is at work on this study") from None
        yield


class InMemory:
    """Results that are kept nowhere: what `Store` is, without a folder."""

    def __init__(self, plan: Plan, chunk: int) -> None:
        sizes = plan.sizes()
        self.samples, self.chunk = plan.description.samples, chunk
        self.arrays = {v.name: np.empty((self.samples, *(sizes[d] for d in v.dims)), v.dtype) for v in plan.variables}

    bounds, chunks = Store.bounds, Store.chunks

    def is_finished(self, chunk: int) -> bool:
        return False

    def write(self, chunk: int, outputs: dict[str, np.ndarray]) -> None:
        first, last = self.bounds(chunk)
        for name, values in outputs.items():
            self.arrays[name][first:last] = values

    def read(self, chunk: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        first, last = self.bounds(chunk)
        return {name: self.arrays[name][first:last] for name in names}

    def end_at(self, samples: int) -> None:
        self.arrays = {name: values[:samples] for name, values in self.arrays.items()}
        self.samples = samples

    def dataset(self, plan: Plan, statistics: Statistics) -> xarray.Dataset:
        """The results as xarray has them."""
        import xarray

        variables = {
            v.name: (("sample", *v.dims), self.arrays[v.name], {"units": v.units, "long_name": v.label or v.name})
            for v in plan.variables
        }
        coordinates = {name: (dim, values, {"units": units}) for name, dim, values, units in _coordinates(plan)}
        attributes = {"title": plan.description.name, "statistics": json.dumps(statistics.in_words())}
        return xarray.Dataset(variables, coordinates, attributes)


def open_dataset(folder: str | Path) -> xarray.Dataset:
    """The results in a folder as an `xarray.Dataset`, read when looked at."""
    import xarray

    path = Path(folder) / FOLDER
    if not Store.exists(folder):
        raise StudyError(f"{folder}: there are no results of a study")
    found = xarray.open_zarr(path, chunks=None, mask_and_scale=False, consolidated=False)
    return found.set_coords([name for name, variable in found.items() if "sample" not in variable.dims])


def _coordinates(plan: Plan) -> list[tuple[str, str, np.ndarray, str]]:
    """Labels along the axes, and what is measured there: name, axis, values, unit."""
    model = plan.model
    found: list[tuple[str, str, Any, str]] = [
        ("parameter", "parameter", plan.columns, ""),
        ("parameter_units", "parameter", plan.units, ""),
        ("position", "position", model.position_labels, ""),
        ("position_units", "position", model.position_units, ""),
        ("velocity", "velocity", model.velocity_labels, ""),
        ("velocity_units", "velocity", model.velocity_units, ""),
    ]
    if plan.description.outputs.motion:
        found.append(("time", "time", plan.times, "s"))
    if plan.events:
        found.append(("event", "event", [f"{i}: {e.joint or 'function'}" for i, e in enumerate(plan.events)], ""))
    return [(name, dim, np.asarray(values), units) for name, dim, values, units in found if len(values)]
