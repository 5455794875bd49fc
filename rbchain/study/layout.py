"""The files of a folder of results: their names, and the arrays before any sample is computed.

results.zarr/zarr.json            what the study is, and its statistics once all samples are done
results.zarr/NAME/zarr.json       an array: shape, type, units
results.zarr/NAME/c/CHUNK...      its values for the samples of one chunk
checksums/CHUNK.json              the SHA-256 of these files; written last, once a chunk is finished
log.jsonl                         a line for each run; not part of the results
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .checksums import digest_of, read_json, write_sealed
from .outputs import NOT_RUN, Variable
from .plan import Plan

FOLDER, CHECKSUMS, LOCK = "results.zarr", "checksums", ".lock"
FORMAT = 2
WITHOUT_CHECKSUMS = 1  # the format that rbchain wrote before

#: Attributes that checks need and no reader of the results does.
OF_CHECKS = ("checksum", "study_sha256", "files", "arrays")


def document_of(array: str) -> str:
    """The name of an array's `zarr.json` within the folder; of the whole group's for ""."""
    return f"{FOLDER}/{array}/zarr.json" if array else f"{FOLDER}/zarr.json"


def record_of(chunk: int) -> str:
    """The name of the file with a chunk's checksums."""
    return f"{CHECKSUMS}/{chunk}.json"


def file_of(variable: Variable, chunk: int) -> str:
    """The name of the file with a variable's values for the samples of a chunk."""
    return f"{FOLDER}/{variable.name}/c/{chunk}" + "/0" * len(variable.dims)


def identity_of(study: str) -> str:
    """The SHA-256 of a study's description in JSON, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(json.loads(study), sort_keys=True).encode()).hexdigest()


def lay_out(folder: Path, plan: Plan, chunk: int, attributes: dict[str, Any]) -> None:
    """Write the arrays of a study into a folder: all samples not run, chunks of `chunk` samples."""
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
            attributes={"units": variable.units, "long_name": variable.label or variable.name},
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
        write_sealed(folder, document_of(name), document)


def _files_of(folder: Path, array: str) -> dict[str, str]:
    """The files of an array's values, each with its SHA-256."""
    place = folder / FOLDER / array
    files = sorted(path for path in (place / "c").rglob("*") if path.is_file())
    return {str(path.relative_to(folder).as_posix()): digest_of(path) for path in files}


def coordinates_of(plan: Plan) -> Iterator[tuple[str, str, np.ndarray, str]]:
    """Labels along the axes, and what is measured there: name, axis, values, unit."""
    model, events = plan.nominal.model, plan.nominal.events
    found: list[tuple[str, str, Any, str]] = [
        ("parameter", "parameter", plan.columns, ""),
        ("parameter_units", "parameter", plan.units, ""),
        ("position", "position", model.position_labels, ""),
        ("position_units", "position", model.position_units, ""),
        ("velocity", "velocity", model.velocity_labels, ""),
        ("velocity_units", "velocity", model.velocity_units, ""),
    ]
    if plan.description.outputs.motion:
        found.append(("time", "time", plan.nominal.times, "s"))
    if events:
        found.append(("event", "event", [f"{i}: {e.joint or 'function'}" for i, e in enumerate(events)], ""))
    yield from ((name, dim, np.asarray(values), units) for name, dim, values, units in found if len(values))
