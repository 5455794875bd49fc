"""The base class of distributions."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ...model.units import Units
from .numbers import Described


class Distribution(Described):
    """Base class of all distributions."""

    internal_names: ClassVar[tuple[str, ...]] = ("type", "in_si", "moments", "ppf")
    renamed: ClassVar[Mapping[str, str]] = {"kind": "type"}

    def in_si(self, dimension: str | None, unit: str, expected: str) -> Self:
        """Return the distribution with its strings converted to numbers of a dimension, or in an SI unit without one.

        Raises a ValueError for a string if both are unknown; `expected` describes the expected number.
        """
        numbers = {name: getattr(self, name) for name in type(self).model_fields}
        with_units = {name: x for name, x in numbers.items() if name in WITH_UNITS and isinstance(x, str)}
        for name, text in with_units.items():
            if dimension is None and unit in ("", "1"):
                raise ValueError(f"{text!r} has a unit; expected {expected}")
            units = Units("SI")
            numbers[name] = units.in_si(text, unit) if dimension is None else units.quantity(text, dimension)
        return type(self)(**numbers) if with_units else self

    if TYPE_CHECKING:

        def _quantile(self, u: np.ndarray) -> np.ndarray: ...

    def ppf(self, u: npt.ArrayLike) -> np.ndarray:
        """Map uniform numbers (...) to values (...), by the inverse of the distribution function.

        Numbers outside [0, 1] give NaN.
        """
        uniform = np.asarray(u, np.float64)
        is_inside = (uniform >= 0.0) & (uniform <= 1.0)
        return np.where(is_inside, self._quantile(np.where(is_inside, uniform, 0.5)), np.nan)

    def moments(self) -> tuple[float, float]:
        """Return mean and standard deviation; NaN or infinity if they are unknown or do not exist."""
        return math.nan, math.nan


#: Fields that may be strings with a unit.
WITH_UNITS = ("mean", "std", "low", "high", "mode", "median", "scale")
