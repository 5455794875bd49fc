"""Numbers that a study is given: real ones. NumPy and pydantic drop masks and imaginary parts without an error."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator

from ..real_arrays import real_array


class Described(BaseModel):
    """A part of a description, whose numbers are real."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False)

    #: Keys of earlier versions, each with its name of today.
    renamed: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _real(cls, given: Any) -> Any:
        if isinstance(given, dict):
            for old in given.keys() & cls.renamed.keys():
                raise ValueError(
                    f"the key {old!r} is called {cls.renamed[old]!r} now; found {old} = {given[old]!r:.80}"
                )
            for name, value in given.items():
                refuse_unreal(name, value)
                is_flag = name in cls.model_fields and cls.model_fields[name].annotation is bool
                if isinstance(value, bool | np.bool_) and not is_flag:
                    raise ValueError(f"{name} is {value}; expected another kind of value")
        return given


def refuse_unreal(name: str, value: Any) -> None:
    """A ValueError that names masked arrays and complex numbers, also within lists."""
    if np.ma.isMaskedArray(value) or value is np.ma.masked:
        raise ValueError(f"{name} is a masked array; expected real numbers without a mask")
    if isinstance(value, complex) or getattr(getattr(value, "dtype", None), "kind", "") == "c":
        raise ValueError(f"{name} is complex; expected real numbers")
    if isinstance(value, list | tuple):
        for item in value:
            refuse_unreal(name, item)


def real_numbers(name: str, values: Any) -> np.ndarray:
    """An array of float64 of one's own with these values, in which truth values are 0 and 1; a ValueError otherwise."""
    refuse_unreal(name, values)
    return np.array(real_array(name, values, ValueError, truth_values=True))
