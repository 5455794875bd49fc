"""Convert the parameters of a description to one precision, with the values that differ between samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.tree.layout import Variation
from ..errors import ModelError
from .description import VARIABLE_FIELDS, Description
from .parameters import Known, batch_shapes_of, parameters_of, rotated_axes, variation_of


def parameters_and_variation(
    description: Description,
    dtype: np.dtype,
    in_water: bool,
    axes: tuple[np.ndarray, np.ndarray],
    known: Known | None = None,
) -> tuple[np.ndarray, Variation | None]:
    """Return parameters and variation in one precision, with or without the columns of a model in water.

    The parameters belong to the first sample. The variation is None if all samples share them.

    Parameters
    ----------
    description : Description
    dtype : dtype
    in_water : bool
    axes : two arrays
        The result of `rotated_axes` for all samples.
    known : Known, optional
        Parameters in float64 with the same columns.

    Raises
    ------
    ModelError
        If a parameter is beyond the range of the precision.
    """
    varied = batch_shapes_of(description, VARIABLE_FIELDS if known is None else known.differing)
    try:
        with np.errstate(over="raise", invalid="raise"):
            if not varied:
                return parameters_of(description, in_water, axes, known).astype(dtype), None
            first = _first_sample(description, varied)
            parameters = parameters_of(first, in_water, rotated_axes(first) if "axis" in varied else axes, known)
            variation = Variation(*variation_of(description, parameters, dtype, in_water, axes, varied))
            return parameters[..., None].astype(dtype), variation
    except FloatingPointError:
        raise ModelError(
            f"model {description.name!r}: a parameter, or a product such as rotor_inertia gear_ratio^2, is beyond the "
            f"range of {dtype.name}; expected absolute values up to {np.finfo(dtype).max:.1e}. Check the units of "
            "large parameters" + (", or use float64 states" if dtype == np.float32 else "")
        ) from None


def _first_sample(description: Description, varied: Mapping[str, tuple[int, ...]]) -> Description:
    """Return the description with the values that the first sample has; ones if there are no samples."""
    first: dict[str, Any] = {}
    for field, batch in varied.items():
        value = getattr(description, field)
        first[field] = value[(0,) * len(batch)] if value.size else np.ones(value.shape[len(batch) :])
    return description.replaced(first)
