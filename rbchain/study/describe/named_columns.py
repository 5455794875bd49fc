"""Columns of an array that belong to the random inputs of a study, by their names or in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...common.real_arrays import excerpt
from ...errors import StudyError


def names_of(array: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a DataFrame or a DataArray; None for other arrays."""
    if hasattr(array, "columns"):
        return tuple(str(name) for name in array.columns)
    if hasattr(array, "dims") and len(array.dims) == 2 and array.dims[1] in array.coords:
        return tuple(str(name) for name in array.coords[array.dims[1]].values)
    return None


def in_order(what: str, values: np.ndarray, given: Sequence[str] | None, names: Sequence[str]) -> np.ndarray:
    """Return the columns of an array (m, columns) in the order of `names`; `given` has the names of its columns.

    Raises StudyError if they do not fit. `what` is the name of the array.
    """
    names = list(names)
    if values.ndim != 2 or values.shape[1] != len(names):
        raise StudyError(
            f"{what} has shape {values.shape}; expected (m, {len(names)}), a column for each of {excerpt(names)}"
        )
    if given is None:
        return values
    if sorted(given) != sorted(names):
        raise StudyError(
            f"{what} has the columns {excerpt(list(given))}; expected the names of Study.inputs: {excerpt(names)}"
        )
    return values[:, [given.index(name) for name in names]]
