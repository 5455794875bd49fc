"""Reading the values of a design from a table in a file."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import StudyError
from ..describe.numbers import real_numbers


def read_design(path: Path, columns: Sequence[str], samples: int) -> np.ndarray:
    """Read `columns` of a table (CSV, Parquet, npz or npy file), (samples, columns).

    Raises
    ------
    StudyError
        If the file or a column is missing, a column is not used, there are too few rows, or a value is not a finite
        number.
    """
    if not path.is_file():
        raise StudyError(
            f"design.file is {path.name!r}, but {path.resolve()} does not exist; expected a path relative to the "
            "folder of the study"
        )
    try:
        table = _read(path, columns)
    except StudyError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise StudyError(f"design.file: {path.name} cannot be read: {error}") from None
    missing = [name for name in columns if name not in table]
    if missing:
        raise StudyError(
            f"design.file: {path.name} has no column {missing[0]!r}; expected a column for each random input, "
            f"{list(columns)}, and found {list(table)}"
        )
    unused = [name for name in table if name not in columns]
    if unused:
        raise StudyError(
            f"design.file: {path.name} has the columns {unused}, which the study does not use, such as weights of "
            f"samples; expected a column for each random input, {list(columns)}, and no others. Remove them"
        )
    try:
        values = np.stack([_column(table, name) for name in columns], -1)
    except ValueError as error:
        raise StudyError(f"design.file: {path.name}: {error}") from None
    return rows_of_samples(f"design.file: {path.name}", values, columns, samples)


def rows_of_samples(what: str, values: np.ndarray, columns: Sequence[str], samples: int) -> np.ndarray:
    """Return the rows of the samples. Raises StudyError if there are too few, or a value is not finite."""
    if len(values) < samples:
        raise StudyError(
            f"{what} has {len(values)} rows; expected at least {samples}, the number of samples. Add rows, or set "
            f"samples = {len(values)}"
        )
    not_finite = np.argwhere(~np.isfinite(values))
    if not_finite.size:
        row, column = not_finite[0]
        raise StudyError(
            f"{what}: row {row} of column {columns[column]!r}, counted from 0, is {values[row, column]}; expected a "
            "finite number"
        )
    return values[:samples]


def _column(table: Mapping[str, Any], name: str) -> np.ndarray:
    """Return the numbers of a column."""
    values = real_numbers(f"column {name!r}", table[name])
    if values.ndim != 1:
        raise ValueError(f"column {name!r} has shape {values.shape}; expected (samples,), one number for each sample")
    return values


def _read(path: Path, columns: Sequence[str]) -> Mapping[str, Any]:
    if path.suffix == ".npy":
        values = np.load(path)
        if values.ndim != 2 or values.shape[1] != len(columns):
            raise StudyError(
                f"design.file: {path.name} has shape {values.shape}; expected (samples, {len(columns)}), one column "
                f"for each random input: {list(columns)}"
            )
        return dict(zip(columns, values.T, strict=True))
    if path.suffix == ".npz":
        return dict(np.load(path))
    import pandas

    if path.suffix == ".parquet":
        return dict(pandas.read_parquet(path))
    if path.suffix != ".csv":
        raise StudyError(f"design.file is {path.name!r}; expected a file that ends in .csv, .parquet, .npz or .npy")
    return dict(pandas.read_csv(path))
