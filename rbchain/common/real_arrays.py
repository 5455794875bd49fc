"""Conversion of a caller's values to arrays; raises an error where NumPy would silently lose information."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: The type of arrays of float64 or float32, for type checkers.
FloatArray: TypeAlias = NDArray[np.floating[Any]]
FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
LONGEST_EXCERPT = 200
UNREADABLE = (TypeError, ValueError, ArithmeticError, RuntimeError)


def real_array(
    name: str, value: Any, error: type[Exception], *, keep_float32: bool = False, truth_values: bool = False
) -> FloatArray:
    """Convert a caller's numbers to a float64 array, which may be `value` itself.

    Parameters
    ----------
    name : str
        Name of the argument, for the error message.
    value : array_like
        Real numbers: a scalar, a sequence, or an object that `numpy.asarray` reads, such as one of pandas or xarray.
    error : type
        The exception to raise.
    keep_float32 : bool
        Whether to return an array of float32 unchanged.
    truth_values : bool
        Whether to convert False and True to 0 and 1; otherwise they are an error.

    Raises
    ------
    error
        If `value` is or contains a masked array, is complex (even with zero imaginary parts), boolean, text or ragged,
        has a unit, or contains a number outside the range of float64.

    Examples
    --------
    >>> real_array("mass", [1, 2.5], ValueError)
    array([1. , 2.5])
    >>> real_array("mass", [1 + 2j], ValueError)
    Traceback (most recent call last):
    ValueError: mass has type complex128; expected real numbers
    """
    if type(value) is not np.ndarray:
        if _has_unit(value):
            raise error(f"{name} is {excerpt(value)}, a quantity with a unit; expected plain numbers in SI units")
        value = _unmasked(name, value, error, "real numbers")
    if value.dtype == FLOAT64 or (keep_float32 and value.dtype == FLOAT32):
        return value
    if value.dtype.kind not in ("bfiu" if truth_values else "fiu") and not _has_real_objects(value):
        what = f"is {excerpt(value.tolist())}" if value.dtype.kind in "OUS" else f"has type {value.dtype}"
        raise error(f"{name} {what}; expected real numbers")
    try:
        with np.errstate(over="raise"):
            return value.astype(np.float64)
    except UNREADABLE:
        raise error(f"{name} is {excerpt(value.tolist())}; expected numbers within float64's range") from None


def finite_array(name: str, value: Any, error: type[Exception]) -> FloatArray:
    """Convert a caller's finite values to a new float64 array; raise an `error` if one is not finite."""
    found = np.array(real_array(name, value, error))
    if not np.isfinite(found).all():
        raise error(f"{name} is {excerpt(found.tolist())}; expected finite numbers")
    return found


def finite_number(
    name: str, value: Any, error: type[Exception], *, least: float = -math.inf, above: float = -math.inf
) -> float:
    """Convert a caller's number to a finite float >= `least` and > `above`; raise an `error` if it is not one.

    Examples
    --------
    >>> finite_number("step", 0, ValueError, above=0.0)
    Traceback (most recent call last):
    ValueError: step is 0; expected a finite number above 0
    """
    number = value if type(value) is float else _number(value)
    if math.isfinite(number) and number >= least and number > above:
        return number
    bound = f" of at least {least:g}" if least > -math.inf else f" above {above:g}" if above > -math.inf else ""
    raise error(f"{name} is {excerpt(value)}; expected a finite number{bound}")


def whole_number(name: str, value: Any, error: type[Exception], *, least: int, most: int | None = None) -> int:
    """Convert a caller's whole number from `least` to `most`; raise an `error` if it is not one.

    Examples
    --------
    >>> whole_number("chunk", 2.5, ValueError, least=1)
    Traceback (most recent call last):
    ValueError: chunk is 2.5; expected a whole number of at least 1
    """
    number = value if type(value) is int else _number(value)
    is_whole = isinstance(number, int) or number.is_integer()
    if is_whole and number >= least and (most is None or number <= most):
        return int(number)
    bound = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise error(f"{name} is {excerpt(value)}; expected a whole number {bound}")


def true_or_false(name: str, value: Any, error: type[Exception]) -> bool:
    """Convert a caller's flag to a bool; raise an `error` if it is not True or False.

    Examples
    --------
    >>> true_or_false("passive", 1, ValueError)
    Traceback (most recent call last):
    ValueError: passive is 1; expected True or False
    """
    if isinstance(value, bool | np.bool):
        return bool(value)
    raise error(f"{name} is {excerpt(value)}; expected True or False")


def common_batch(
    batches: Mapping[str, tuple[int, ...]], error: type[Exception], what: str = "", remedy: str = ""
) -> tuple[int, ...]:
    """Return the batch shape of arguments, by their names.

    Without one, raise an `error`, which begins with `what` and ends with `remedy`.

    Examples
    --------
    >>> common_batch({"q": (3, 1), "qd": (4,)}, ValueError)
    (3, 4)
    >>> common_batch({"q": (3,), "qd": (4,)}, ValueError)
    Traceback (most recent call last):
    ValueError: the batch shapes do not fit together: q (3,), qd (4,); expected equal lengths, or 1
    """
    try:
        return np.broadcast_shapes(*batches.values())
    except ValueError:
        found = ", ".join(f"{name} {shape}" for name, shape in batches.items())
        raise error(
            f"{what}the batch shapes do not fit together: {found}; expected equal lengths, or 1{remedy}"
        ) from None


def _number(value: Any) -> float:
    """The value as a float; NaN if it is not a real number."""
    with contextlib.suppress(ValueError):
        found = real_array("value", value, ValueError)
        return float(found) if found.ndim == 0 else math.nan
    return math.nan


def float32_array(name: str, value: np.ndarray, error: type[Exception]) -> np.ndarray:
    """Round an array to float32; raise an `error` with its name if a number is outside the range."""
    try:
        with np.errstate(over="raise"):
            return value.astype(np.float32)
    except FloatingPointError:
        raise error(f"{name} is {excerpt(value.tolist())}; expected numbers within float32's range") from None


def bool_array(name: str, value: Any, error: type[Exception]) -> np.ndarray:
    """Convert a caller's truth values to an array of bool; raise an `error` with its name for other types."""
    found = _unmasked(name, value, error, "an array of bool")
    if found.dtype != bool:
        raise error(f"{name} has type {found.dtype}; expected an array of bool, with True or False for each entry")
    return found


def _unmasked(name: str, value: Any, error: type[Exception], expected: str) -> np.ndarray:
    """`numpy.asarray(value)`; raise an `error` for a masked array, because NumPy would drop the mask."""
    try:
        found = None if _is_masked(value) else np.asarray(value)
    except UNREADABLE as reason:
        raise error(f"{name} is {excerpt(value)}; expected {expected}: {reason}") from None
    if found is None:
        raise error(
            f"{name} is a masked array; expected {expected} without a mask. Fill the masked entries or remove them"
        )
    return found


def _is_masked(value: Any) -> bool:
    """Whether the value is a masked array, or a nested sequence that contains one."""
    if isinstance(value, (list, tuple)):
        return any(type(x) is not float and _is_masked(x) for x in value)
    return isinstance(value, np.ma.MaskedArray)


def _has_unit(value: Any) -> bool:
    """Whether the value is a quantity of pint, astropy or unyt. NumPy would drop its unit."""
    in_array = isinstance(value, np.ndarray) and (hasattr(value, "unit") or hasattr(value, "units"))
    return in_array or (hasattr(value, "magnitude") and hasattr(value, "to_root_units"))


def _has_real_objects(value: np.ndarray) -> bool:
    """Whether an array of objects contains only real numbers, such as integers outside the range of int64."""
    is_real = (isinstance(x, (Real, Decimal)) and not isinstance(x, bool) for x in value.flat)
    return value.dtype == object and all(is_real)


def excerpt(value: Any, longest: int = LONGEST_EXCERPT) -> str:
    """Text of a value for a message, with at most `longest` characters and dots if more were cut off."""
    try:
        text = repr(value)
    except ValueError:  # Python does not print integers of more than 4300 digits
        return f"{type(value).__name__} too long to print"
    return text if len(text) <= longest else f"{text[:longest]}..."
