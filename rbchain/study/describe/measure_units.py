"""Units of measures: conversion of results to another unit, and of texts such as "5 deg" to SI."""

from __future__ import annotations

import re
from functools import cache

from ...common.real_arrays import excerpt
from ...errors import ModelError, StudyError
from ...model.units import MEASUREMENT, PRODUCT, converted


@cache
def factor(unit: str, own: str) -> float:
    """Return the factor that converts numbers in the SI unit `own` to numbers in `unit`.

    Raises
    ------
    StudyError
        If the units measure different quantities.
    """
    if unit == own:
        return 1.0
    expected = f"expected a unit of the same quantity as {own!r}" if own else "expected '%' or no unit"
    if not re.fullmatch(rf"\s*({PRODUCT}|%)\s*", unit):
        raise StudyError(f"unit is {excerpt(unit)}; {expected}, such as {_example(own)!r}")
    try:
        return converted(1.0, own or "dimensionless", "percent" if unit.strip() == "%" else unit)
    except ModelError:
        raise StudyError(
            f"unit is {unit!r}, but the measure is {f'in {own!r}' if own else 'a plain number'}; {expected}, such as "
            f"{_example(own)!r}. For your own factor, use a measure with a function"
        ) from None


def number_in_si(name: str, value: float | str, own: str) -> float:
    """Return a number, or a text of a number and a unit, as a number in the SI unit `own`. Raises StudyError."""
    if not isinstance(value, str):
        return float(value)
    found = MEASUREMENT.fullmatch(value)
    try:
        if found is None:
            raise ModelError(value)
        return converted(float(found[1]), found[2], own or "dimensionless")
    except ModelError:
        raise StudyError(
            f"{name} is {value!r}; expected a number in {own or 'no unit'!r}, or a text such as '1 {_example(own)}'"
        ) from None


def _example(own: str) -> str:
    return {"rad": "deg", "rad/s": "deg/s", "m": "mm", "m/s": "mm/s", "s": "ms", "N": "kN", "": "%"}.get(own, own)
