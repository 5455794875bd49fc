"""Convert the parameters of a description to one precision, with the values that differ between samples."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..core.tree.layout import Variation
from ..errors import ModelError
from .description import VARIABLE_FIELDS, Description
from .parameters import batch_shape_of, parameters_of, variation_of


def parameters_and_variation(
    description: Description, dtype: np.dtype, in_water: bool
) -> tuple[np.ndarray, Variation | None]:
    """Return parameters and variation in one precision, with or without the columns of a model in water.

    The parameters belong to the first sample. The variation is None if all samples share them. Raises ModelError if a
    parameter is beyond the range of the precision.
    """
    try:
        with np.errstate(over="raise", invalid="raise"):
            parameters, variation = parameters_of(_first_sample(description), in_water), None
            if batch_shape_of(description) != ():
                variation = Variation(*variation_of(description, parameters, dtype, in_water))
                parameters = parameters[..., None]
            return parameters.astype(dtype), variation
    except FloatingPointError:
        raise ModelError(
            f"model {description.name!r}: a parameter, or a product such as rotor_inertia gear_ratio^2, is beyond the "
            f"range of {dtype.name}; expected absolute values up to {np.finfo(dtype).max:.1e}. Check the units of "
            "large parameters" + (", or use float64 states" if dtype == np.float32 else "")
        ) from None


def _first_sample(description: Description) -> Description:
    """Return the description with the values that the first sample has; ones if there are no samples."""
    first: dict[str, Any] = {}
    for field, axes in VARIABLE_FIELDS.items():
        value = getattr(description, field)
        shape, batch_axes = value.shape[value.ndim - len(axes) :], value.ndim - len(axes)
        if batch_axes:
            first[field] = value[(0,) * batch_axes] if value.size else np.ones(shape)
    return dataclasses.replace(description, **first)
