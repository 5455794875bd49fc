"""Numbers that a study is given: real ones. NumPy and pydantic drop masks and imaginary parts without an error."""

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator


class Described(BaseModel):
    """A part of a description, whose numbers are real."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _real(cls, given: Any) -> Any:
        if isinstance(given, dict):
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
    """An array of float64 with these values; a ValueError that names anything but real numbers."""
    refuse_unreal(name, values)
    try:
        found = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} has lists of different lengths; expected an array of real numbers") from None
    if found.dtype.kind not in "biuf":
        kinds = {"U": "text", "O": "objects"}
        raise ValueError(f"{name} holds {kinds.get(found.dtype.kind, found.dtype)}; expected real numbers")
    return np.array(found, dtype=np.float64)
