"""Cubic splines through the values of a table."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from ..common.real_arrays import FloatArray, excerpt
from ..errors import ArgumentError

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

OF_TABLE = "values of the table at times"


def cubic_spline(times: FloatArray, values: FloatArray) -> PPoly:
    """Return SciPy's cubic spline. Raises ArgumentError if its linear equations have no accurate solution."""
    from scipy.interpolate import CubicSpline
    from scipy.linalg import LinAlgError, LinAlgWarning

    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error", LinAlgWarning)
            return CubicSpline(times, values, axis=-1)
    except (ValueError, LinAlgError, LinAlgWarning) as reason:
        raise ArgumentError(
            f"{OF_TABLE} {excerpt(times.tolist())} have no accurate cubic spline: {reason}. Use times that are spaced "
            'more evenly, or interpolation="linear"'
        ) from None
