"""Checks of the arguments of functions of a state. A state passes here before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import StateError
from .real_arrays import FLOAT32, FLOAT64, real_array


def precision_of(arrays: Sequence[np.ndarray]) -> np.dtype:
    """That of a calculation with these arguments."""
    return FLOAT32 if all(x.dtype == FLOAT32 for x in arrays) else FLOAT64


def as_array(name: str, x: npt.ArrayLike) -> np.ndarray:
    """An argument as an array of float32 or float64, or a StateError that names it."""
    return real_array(name, x, StateError, keep_float32=True)


def check_out(out: np.ndarray, shape: tuple[int, ...], dtype: np.dtype, arguments: Sequence[Any]) -> None:
    """Refuse an array for the result that does not fit, or that shares memory with an argument."""
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise StateError(f"out is a {type(out).__name__}; expected an array {shape} of {dtype}")
    if out.shape != shape or out.dtype != dtype or not out.flags.carray:
        order = "" if out.flags.carray else ", not C-contiguous and writeable"
        raise StateError(
            f"out has shape {out.shape}, type {out.dtype}{order}; expected {shape}, {dtype}, C-contiguous and writeable"
        )
    check_overlap(out, arguments)


def check_overlap(out: np.ndarray | None, arguments: Sequence[Any]) -> None:
    """Refuse an array for the result that shares memory with an argument."""
    if out is None:
        return
    if any(isinstance(x, np.ndarray) and np.may_share_memory(out, x) for x in arguments):
        raise StateError(
            "out shares memory with an argument, which would be overwritten while it is read; expected an array of its "
            "own. Use out=np.empty(shape)"
        )


def copied_to(out: np.ndarray | None, result: np.ndarray, arguments: Sequence[Any]) -> np.ndarray:
    """The result, in `out` if that is given."""
    if out is None:
        return result
    check_out(out, result.shape, result.dtype, arguments)
    out[...] = result
    return out
