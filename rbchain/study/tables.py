"""Designs that come from files."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import StudyError
from .numbers import real_numbers


def read_design(path: Path, columns: Sequence[str], samples: int) -> np.ndarray:
    """The values of `columns` in a file (CSV, Parquet, npz, npy), (samples, columns).

    Raises
    ------
    StudyError
        If there is no such file or column, if it has too few rows, or a number that is not finite.
    """
    if not path.is_file():
        raise StudyError(f"design.file: there is no file {path.name!r} beside the study")
    try:
        table = _read(path, columns)
    except StudyError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise StudyError(f"design.file: {path.name} cannot be read: {error}") from None
    missing = [name for name in columns if name not in table]
    if missing:
        raise StudyError(f"design.file: {path.name} has no column {missing[0]!r}; it has {list(table)}")
    try:
        values = np.stack([_column(table, name) for name in columns], -1)
    except ValueError as error:
        raise StudyError(f"design.file: {path.name}: {error}") from None
    if len(values) < samples:
        raise StudyError(f"design.file: {path.name} has {len(values)} rows; samples is {samples}")
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        raise StudyError(f"design.file: {path.name}: row {bad[0][0]} of {columns[bad[0][1]]!r} is not finite")
    return values[:samples]


def _column(table: Mapping[str, Any], name: str) -> np.ndarray:
    """The numbers of a column."""
    values = real_numbers(f"column {name!r}", table[name])
    if values.ndim != 1:
        raise ValueError(f"column {name!r} has shape {values.shape}; expected one number for each sample")
    return values


def _read(path: Path, columns: Sequence[str]) -> Mapping[str, Any]:
    if path.suffix == ".npy":
        values = np.load(path)
        if values.ndim != 2 or values.shape[1] != len(columns):
            raise StudyError(
                f"design.file: {path.name} has shape {values.shape}; expected (samples, {len(columns)}), a column for "
                f"each of {list(columns)}"
            )
        return dict(zip(columns, values.T, strict=True))
    if path.suffix == ".npz":
        return dict(np.load(path))
    import pandas

    if path.suffix == ".parquet":
        return dict(pandas.read_parquet(path))
    if path.suffix != ".csv":
        raise StudyError(f"design.file: {path.name}: expected .csv, .parquet, .npz or .npy")
    return dict(pandas.read_csv(path))
