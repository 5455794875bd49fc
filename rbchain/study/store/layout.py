"""Layout of a folder of results: the names of the files, and the empty arrays.

results.zarr/zarr.json            description of the study; statistics, once all samples are done
results.zarr/NAME/zarr.json       description of an array: shape, type, units
results.zarr/NAME/c/CHUNK...      values of the array for the samples of one chunk
checksums/CHUNK.json              number of samples of a chunk, and SHA-256 of its files; written when it is finished
description/study.toml, model.toml  the study and its model, if the study comes from Python; not part of the results
sketch.svg                        the mechanism of the first sample in its initial state; not part of the results
indices.json                      indices of a sensitivity analysis, in its folder; not part of the results
log.jsonl                         log of the runs; not part of the results
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plan.outcomes import NOT_RUN
from .checksums import digest_of, read_json, write_with_checksum

if TYPE_CHECKING:
    from ..plan.outputs import Variable
    from ..plan.plan import Plan

FOLDER, CHECKSUMS, DESCRIPTION, LOCK = "results.zarr", "checksums", "description", ".lock"
SKETCH = "sketch.svg"
INDICES = "indices.json"
FORMAT = 3
WITHOUT_CHECKSUMS = 1  # the format of earlier versions of rbchain

#: Attributes for the checks, hidden from readers of the results.
OF_CHECKS = ("checksum", "study_sha256", "files", "arrays")


def document_of(array: str) -> str:
    """Return the path of the `zarr.json` of an array within the folder, or of the whole group for ""."""
    return f"{FOLDER}/{array}/zarr.json" if array else f"{FOLDER}/zarr.json"


def record_of(chunk: int) -> str:
    """Return the path of the file with the checksums of a chunk."""
    return f"{CHECKSUMS}/{chunk}.json"


def file_of(variable: Variable, chunk: int) -> str:
    """Return the path of the file with the values of a variable for the samples of a chunk."""
    return f"{FOLDER}/{variable.name}/c/{chunk}" + "/0" * len(variable.dims)


def identity_of(study: str) -> str:
    """Return the SHA-256 of a study's description in JSON. It does not depend on the order of the keys."""
    return hashlib.sha256(json.dumps(json.loads(study), sort_keys=True).encode()).hexdigest()


def lay_out(folder: Path, plan: Plan, chunk: int, attributes: dict[str, Any]) -> None:
    """Write the empty arrays of a study into a folder, in chunks of `chunk` samples."""
    import zarr
    from zarr.codecs import Crc32cCodec, ZstdCodec

    samples, sizes = plan.description.samples, plan.sizes()
    codecs: Any = [ZstdCodec(level=0), Crc32cCodec()]
    coordinates = list(coordinates_of(plan))
    names = [variable.name for variable in plan.variables] + [name for name, *_ in coordinates]
    group = zarr.create_group(folder / FOLDER, attributes=attributes | {"arrays": names})
    for variable in plan.variables:
        shape = tuple(sizes[d] for d in variable.dims)
        group.create_array(
            variable.name,
            shape=(samples, *shape),
            chunks=(chunk, *(max(1, size) for size in shape)),
            dtype=np.dtype(variable.dtype),
            fill_value=np.nan if variable.dtype is np.float64 else NOT_RUN,
            dimension_names=("sample", *variable.dims),
            attributes=variable.attributes,
            compressors=codecs,
        )
    for name, dim, labels, units in coordinates:
        values = labels.astype(np.dtypes.StringDType()) if labels.dtype.kind == "U" else labels
        group.create_array(name, data=values, dimension_names=(dim,), attributes={"units": units}, compressors=codecs)
    identity = identity_of(attributes["study"])
    for name in ("", *names):
        document = read_json(folder / document_of(name))
        if name:
            document["attributes"]["study_sha256"] = identity
        if name in [n for n, *_ in coordinates]:
            document["attributes"]["files"] = _files_of(folder, name)
        write_with_checksum(folder, document_of(name), document)


def _files_of(folder: Path, array: str) -> dict[str, str]:
    """Return the files with the values of an array, and their SHA-256."""
    place = folder / FOLDER / array
    files = sorted(path for path in (place / "c").rglob("*") if path.is_file())
    return {str(path.relative_to(folder).as_posix()): digest_of(path) for path in files}


def coordinates_of(plan: Plan) -> Iterator[tuple[str, str, np.ndarray, str]]:
    """Yield the labels along the axes and their units: name, axis, values, unit."""
    model, events = plan.nominal.model, plan.nominal.events
    coordinates: list[tuple[str, str, Any, str]] = [
        ("parameter", "parameter", plan.columns, ""),
        ("parameter_units", "parameter", plan.units, ""),
        ("position", "position", model.position_labels, ""),
        ("position_units", "position", model.position_units, ""),
        ("velocity", "velocity", model.velocity_labels, ""),
        ("velocity_units", "velocity", model.velocity_units, ""),
    ]
    if plan.description.outputs.motion:
        coordinates.append(("time", "time", plan.nominal.simulation.saved_times, "s"))
    if events:
        coordinates.append(("event", "event", [f"{i}: {e.joint or 'function'}" for i, e in enumerate(events)], ""))
    yield from ((name, dim, np.asarray(values), units) for name, dim, values, units in coordinates if len(values))
