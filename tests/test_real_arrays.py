"""Values are converted to arrays without loss, or refused by name."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pint
import pytest
import xarray as xr

from rbchain.common.real_arrays import real_array
from rbchain.errors import ArgumentError

UNITS = pint.UnitRegistry()
CYCLE: list = []
CYCLE.append(CYCLE)
# where NumPy's longdouble is longer than float64
BEYOND = np.finfo(np.longdouble).max
LONG = [(np.full(2, BEYOND), "expected numbers within float64.s range")] if np.finfo(float).max < BEYOND else []


class WithUnit(np.ndarray):
    """An array with an attribute that NumPy drops, like the quantities of astropy."""

    unit = "lb"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ma.array([1.0, 2.0], mask=[True, False]), "masked array"),
        (np.ma.array([1.0, 2.0]), "masked array"),
        (np.ma.masked, "masked array"),
        ([1.0, np.ma.masked], "masked array"),
        ([[1.0, 2.0], np.ma.array([1.0, 2.0], mask=[True, False])], "masked array"),
        (1.0 + 0.0j, "type complex128; expected real numbers"),
        ([1.0, 2.0j], "type complex128; expected real numbers"),
        (xr.DataArray([1.0j]), "type complex128; expected real numbers"),
        (True, "type bool; expected real numbers"),
        (np.array([True]), "type bool; expected real numbers"),
        ("1.5", "is '1.5'; expected real numbers"),
        (["1.5"], r"is \['1.5'\]; expected real numbers"),
        (None, "is None; expected real numbers"),
        ({1: 2}, "expected real numbers"),
        ([[1.0], [2.0, 3.0]], "expected real numbers: .*inhomogeneous"),
        (CYCLE, "expected real numbers"),
        (np.datetime64("2026-01-01"), "type datetime64.*; expected real numbers"),
        (10**400, "is 1000.*; expected numbers within float64's range"),
        ([1.0, 10**5000], "expected numbers within float64's range"),
        *LONG,
        (2.2 * UNITS.pound, "pound.*with a unit; expected plain numbers in SI units"),
        ([2.2 * UNITS.pound], "pound"),
        (np.ones(2).view(WithUnit), "with a unit; expected plain numbers in SI units"),
    ],
)
def test_a_value_that_would_lose_information_is_refused_by_name(value, message):
    with pytest.raises(ArgumentError, match=f"(?s)^load .*{message}"):
        real_array("load", value, ArgumentError)


@pytest.mark.parametrize(
    "value",
    [
        [1, 2.5],
        (1.0, np.float32(2.5)),
        np.array([1.0, 2.5], np.float16),
        np.array([1.0, 2.5], ">f8"),
        np.array([1, 2.5], object),
        [Fraction(1), Decimal("2.5")],
        pd.Series([1.0, 2.5]),
        pd.Series([1.0, 2.5], dtype="Float64"),
        xr.DataArray([1.0, 2.5], attrs={"unit": "kg"}),
    ],
)
def test_real_numbers_of_any_kind_become_float64(value):
    found = real_array("load", value, ArgumentError)
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 2.5]


def test_integers_beyond_int64_and_nonfinite_numbers_are_accepted():
    assert real_array("load", 10**25, ArgumentError) == 1e25
    assert np.isnan(real_array("load", np.nan, ArgumentError))
    assert real_array("load", [-np.inf, np.inf], ArgumentError).tolist() == [-np.inf, np.inf]


def test_float32_is_kept_only_on_request():
    single = np.ones(2, np.float32)
    assert real_array("load", single, ArgumentError, keep_float32=True) is single
    assert real_array("load", single, ArgumentError).dtype == np.float64
    assert real_array("load", np.ones(2, np.float16), ArgumentError, keep_float32=True).dtype == np.float64


def test_an_array_of_float64_is_not_copied():
    load = np.ones(2)
    assert real_array("load", load, ArgumentError) is load
