"""The results of a study as files for other programs: CSV and MATLAB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.whole_files import whole_file
from ...errors import Status
from ..plan.outcomes import NOT_RUN
from .pictures import measures_of, units_along, with_unit

if TYPE_CHECKING:
    import xarray


def to_csv(results: xarray.Dataset, path: str | Path) -> None:
    """Write a row for each sample. `Results.to_csv` describes the columns."""
    import pandas

    with whole_file(path) as partial:
        pandas.DataFrame(dict(_columns(results))).to_csv(partial, index_label="sample")


def to_mat(results: xarray.Dataset, path: str | Path) -> None:
    """Write arrays. `Results.to_mat` describes their names."""
    from scipy import io

    measures = measures_of(results)
    arrays: dict[str, Any] = {name: values.values for name, values in _others(results, measures)}
    arrays |= {"status": results["status"].values, "status_names": _texts(_status_names(results))}
    if measures:
        arrays |= {"measures": np.stack([results[name].values for name in measures], -1)}
        arrays |= {"measure_names": _texts(measures), "measure_units": _texts([_unit(results, n) for n in measures])}
    for name in results.coords:
        values = results[name].values
        label = f"{name}_names" if values.dtype.kind in "UT" and not str(name).endswith("_units") else str(name)
        arrays[label] = _texts(values) if values.dtype.kind in "UT" else values
    with whole_file(path) as partial, partial.open("wb") as file:
        io.savemat(file, arrays, long_field_names=True, oned_as="column", do_compression=True)


def _columns(results: xarray.Dataset) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the columns of a table with a row for each sample, with their names and units."""
    yield "status", np.array(_status_names(results), object)
    for name, values in _others(results, []):
        if values.dims == ("sample",):
            yield with_unit(name, _unit(results, name)), values.values
        elif "time" not in values.dims:
            yield from _entries(results, name, values)


def _entries(results: xarray.Dataset, name: str, values: xarray.DataArray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield a column for each entry of an output with an axis besides the samples."""
    axis = str(values.dims[1])
    labels = [str(label) for label in results[axis].values]
    units = units_along(results, axis) if f"{axis}_units" in results else [_unit(results, name)] * len(labels)
    for k, (label, unit) in enumerate(zip(labels, units, strict=True)):
        yield with_unit(label if name == "parameters" else f"{name} {label}", unit), values.values[:, k]


def _others(results: xarray.Dataset, without: list[str]) -> Iterator[tuple[str, xarray.DataArray]]:
    """Yield the outputs besides the status, in the order of the description."""
    for name, values in results.data_vars.items():
        if name != "status" and name not in without:
            yield str(name), values


def _unit(results: xarray.Dataset, name: str) -> str:
    return str(results[name].attrs.get("units", ""))


def _status_names(results: xarray.Dataset) -> list[str]:
    """Return the name of the status of each sample, such as "DONE"."""
    return ["NOT_RUN" if status == NOT_RUN else Status(status).name for status in results["status"].values.tolist()]


def _texts(texts: Any) -> np.ndarray:
    """Return texts as a cell array of MATLAB."""
    cells = np.empty(len(texts), object)
    cells[:] = [str(text) for text in texts]
    return cells
