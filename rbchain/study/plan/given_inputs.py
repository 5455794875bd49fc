"""Inputs that a caller gives for the drawn numbers of a study."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...common.real_arrays import excerpt, real_array
from ...errors import StudyError
from .plan import Plan


def given_inputs(inputs: Any, plan: Plan) -> np.ndarray:
    """Return numbers (m, columns) in the order of the columns of a plan. Raises StudyError if they do not fit."""
    names = list(plan.columns)
    given = _names_of(inputs)
    values = real_array("inputs", inputs, StudyError)
    if values.ndim != 2 or values.shape[1] != len(names):
        raise StudyError(
            f"inputs has shape {values.shape}; expected (m, {len(names)}), a column for each of {excerpt(names)}"
        )
    if given is None:
        return values
    if sorted(given) != sorted(names):
        raise StudyError(
            f"inputs has the columns {excerpt(given)}; expected the names of Study.inputs: {excerpt(names)}"
        )
    return values[:, [given.index(name) for name in names]]


def _names_of(inputs: Any) -> list[str] | None:
    """Return the names of the columns of a DataFrame or a DataArray; None for other arrays."""
    if hasattr(inputs, "columns"):
        return [str(name) for name in inputs.columns]
    if hasattr(inputs, "dims") and len(inputs.dims) == 2 and inputs.dims[1] in inputs.coords:
        return [str(name) for name in inputs.coords[inputs.dims[1]].values]
    return None
