"""Packs are compared with NumPy in each lane, and sincos with extended precision."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from mpmath import mp

from rbchain.compiling.jit import driver, kernel
from rbchain.compiling.levels import LANE_WIDTHS
from rbchain.core.lanes.lane_memory import all_lanes, lane_width, window
from rbchain.core.lanes.lanes import any_lane, constant_like, floor, full_like, nan_unless_finite, select, zeros_like
from rbchain.core.lanes.trig import sincos

DTYPES = [np.float64, np.float32]


@driver
def arithmetic(a, b, out):
    k = all_lanes(a)
    x, y = a[0, k], b[0, k]
    out[0, k] = x + y
    out[1, k] = x - y
    out[2, k] = x * y
    out[3, k] = x / y
    out[4, k] = -x
    out[5, k] = abs(x)
    out[6, k] = math.sqrt(abs(x))
    out[7, k] = min(x, y)
    out[8, k] = max(x, y)
    out[9, k] = 2.0 * x + 1
    out[10, k] = select(x < y, x, y)
    out[11, k] = select((x <= y) & ~(x > 0.0) | (y >= 1.0), 1.0, y)
    out[12, k] = 7.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic_is_ieee_in_every_lane(dtype):
    width = LANE_WIDTHS[np.dtype(dtype).name]
    rng = np.random.default_rng(0)
    for _ in range(50):
        x, y = rng.normal(size=(2, width)).astype(dtype)
        out = np.empty((13, width), dtype)
        arithmetic(x[None], y[None], out)
        one, two = dtype(1), dtype(2)
        exact = [x + y, x - y, x * y, x / y, -x, abs(x), np.sqrt(abs(x)), np.minimum(x, y), np.maximum(x, y)]
        assert np.array_equal(out[:9], exact)
        np.testing.assert_allclose(out[9], two * x + one, rtol=2 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps)
        assert np.array_equal(out[10], np.where(x < y, x, y))
        assert np.array_equal(out[11], np.where((x <= y) & ~(x > 0) | (y >= 1), one, y))
        assert (out[12] == 7).all()


@driver
def conversions(a, b, out, wide):
    k = all_lanes(a)
    x, y = a[0, k], b[0, k]
    out[0, k] = floor(x)
    out[1, k] = math.copysign(x, y)
    wide[0, k] = float(x) / 3.0
    out[2, k] = constant_like(out, wide[0, k])
    wide[1, k] = select((x < y) & (wide[0, k] < 0.0), wide[0, k], 1.0)  # masks of two precisions


@pytest.mark.parametrize("dtype", DTYPES)
def test_packs_are_rounded_and_converted_as_numbers(dtype):
    width = LANE_WIDTHS[np.dtype(dtype).name]
    x, y = (10.0 * np.random.default_rng(0).normal(size=(2, width))).astype(dtype)
    x[:3], y[:2] = [np.nan, 1e30, -0.0], [-1.0, -0.0]
    out, wide = np.empty((3, width), dtype), np.empty((2, width))
    conversions(x[None], y[None], out, wide)
    third = x.astype(float) / 3.0
    np.testing.assert_array_equal(out, [np.floor(x), np.copysign(x, y), third.astype(dtype)])
    np.testing.assert_array_equal(np.signbit(out[1]), np.signbit(y))
    np.testing.assert_array_equal(wide, [third, np.where((x < y) & (third < 0.0), third, 1.0)])
    assert floor(-1.5) == -2.0
    assert math.isnan(floor(math.nan))


@driver
def minimum_of(a, b, out):
    k = all_lanes(a)
    out[0, k] = min(a[0, k], b[0, k])
    out[1, k] = select(a[0, k] < b[0, k], 1.0, 0.0)


def test_comparisons_with_nan_are_false():
    width = LANE_WIDTHS["float64"]
    out = np.empty((2, width))
    minimum_of(np.full((1, width), np.nan), np.ones((1, width)), out)
    assert np.isnan(out[0]).all()  # like Python's min(nan, 1.0)
    assert (out[1] == 0).all()


@kernel
def store_constants(a, out, k):
    x, y = a[0, k], a[1, k]
    total, product = zeros_like(x), full_like(x, 1.0)  # numbers of another type could not change in the loop
    for i in range(a.shape[0]):
        total, product = total + a[i, k], product * a[i, k]
    out[0, k], out[1, k], out[2, k] = zeros_like(x), full_like(x, 0.1), nan_unless_finite(x)
    out[3, k], out[4, k], out[5, k] = nan_unless_finite(x * y), total, product


@driver
def constants_in_lanes(a, out):
    store_constants(a, out, all_lanes(a))


@driver
def constants_of_numbers(a, out):
    for lane in range(a.shape[1]):
        store_constants(a, out, lane)


def constants_in_plain_python(a, out):
    for lane in range(a.shape[1]):
        getattr(store_constants, "py_func", store_constants)(a, out, lane)


@pytest.mark.parametrize("compute", [constants_in_lanes, constants_of_numbers, constants_in_plain_python])
@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_are_exact_also_for_nan_and_only_finite_numbers_have_a_difference_of_zero_from_themselves(compute, dtype):
    width = LANE_WIDTHS[np.dtype(dtype).name]
    a = np.random.default_rng(0).normal(size=(2, width)).astype(dtype)
    special = np.array([np.nan, np.inf, -np.inf, -1.5], dtype)
    for first in range(special.size):  # a register may have fewer lanes
        a[0] = np.resize(np.roll(special, first), width)
        out = np.full((6, width), 7.0, dtype)
        with np.errstate(invalid="ignore"):
            compute(a, out)
            exact = [np.zeros(width), np.full(width, dtype(0.1)), a[0] - a[0], a[0] - a[0], a[0] + a[1], a[0] * a[1]]
        np.testing.assert_array_equal(out, exact)
        assert not np.signbit(out[0]).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_and_constants_have_the_precision_of_their_number(dtype):
    for found in (zeros_like(dtype(1.0)), full_like(dtype(1.0), 0.1), nan_unless_finite(dtype(1.0))):
        assert type(found) is dtype
    assert type(zeros_like(1.0)) is float


@driver
def any_negative(a, out):
    out[0] = any_lane(a[0, all_lanes(a)] < 0.0)


def test_any_lane_detects_each_lane():
    width = LANE_WIDTHS["float64"]
    out = np.empty(1)
    for lane in range(width):
        a = np.ones((1, width))
        any_negative(a, out)
        assert out[0] == 0
        a[0, lane] = -1
        any_negative(a, out)
        assert out[0] == 1


class Holder(NamedTuple):
    rows: np.ndarray


@kernel
def write_row(holder, k):
    holder.rows[1, k] = select(holder.rows[0, k] > 0.0, 3.0, 4.0)


@driver
def write_through_a_tuple(rows, out):
    holder = Holder(rows)
    write_row(holder, all_lanes(rows))
    holder.rows[2, all_lanes(rows)] = 5.0
    out[0], out[1] = holder.rows[1, 0], holder.rows[2, 0]


def test_a_store_into_an_array_of_a_tuple_is_kept():
    """Numba's dead-code elimination would drop such stores where it inlines an overload."""
    rows, out = np.ones((3, LANE_WIDTHS["float64"])), np.zeros(2)
    write_through_a_tuple(rows, out)
    assert out.tolist() == [3.0, 5.0]


@driver
def write_windows(memory):
    first, second = window(memory, 1, (2, 3)), window(memory, 7, (4,))
    first[1, 2] = 10.0
    second[3] = 20.0


def test_windows_share_the_memory_of_their_array():
    memory = np.zeros(11)
    write_windows(memory)
    assert memory.tolist() == [0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 20]


@driver
def widths(chain, batch, out):
    out[0], out[1] = lane_width(chain), lane_width(batch)


def test_a_single_state_uses_one_lane_and_a_batch_a_register():
    out = np.empty(2)
    widths(np.empty(3), np.empty((2, 3)), out)
    assert out.tolist() == [1, LANE_WIDTHS["float64"]]


@driver
def sines_and_cosines(x, s, c):
    k = all_lanes(x)
    for i in range(x.shape[0]):
        s[i, k], c[i, k] = sincos(x[i, k])


def computed(x):
    """sincos in lanes of any array."""
    width = LANE_WIDTHS[x.dtype.name]
    padded = np.zeros(-(-x.size // width) * width, x.dtype)
    padded[: x.size] = x
    s, c = np.empty((2, *padded.reshape(-1, width).shape), x.dtype)
    sines_and_cosines(padded.reshape(-1, width), s, c)
    return s.reshape(-1)[: x.size], c.reshape(-1)[: x.size]


def ulps(found, exact, dtype):
    return np.abs(found.astype(np.longdouble) - exact) / np.spacing(np.abs(exact).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sincos_is_within_2_ulp_up_to_1e5(dtype):
    """Compared with long double (64 bits of mantissa), whose error is below 0.001 ulp of float64."""
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            rng.uniform(-1e5, 1e5, 500_000),
            rng.uniform(-10, 10, 400_000),
            10.0 ** rng.uniform(-300 if dtype is np.float64 else -37, 5, 100_000),
        ]
    ).astype(dtype)
    s, c = computed(x)
    exact = x.astype(np.longdouble)
    assert np.finfo(np.longdouble).nmant >= 63
    assert ulps(s, np.sin(exact), dtype).max() < 2
    assert ulps(c, np.cos(exact), dtype).max() < 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_sincos_is_within_2_ulp_next_to_its_zeros(dtype):
    """Near multiples of pi/2 the result almost cancels, so that the reference needs 60 digits."""
    x = (np.arange(0, 63_000, 7) * (np.pi / 2)).astype(dtype)
    s, c = computed(x)
    with mp.workdps(60):
        for found, function in ((s, mp.sin), (c, mp.cos)):
            for value, angle in zip(found, x, strict=True):
                exact = function(mp.mpf(float(angle)))
                assert abs(mp.mpf(float(value)) - exact) <= 2 * mp.mpf(float(np.spacing(dtype(abs(float(exact))))))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sincos_is_accurate_for_all_finite_numbers_and_nan_otherwise(dtype):
    limit = 1e300 if dtype is np.float64 else 1e38
    far = np.array([1.00001e5, -3e6, 1e10, -1e22, limit, 12345678.0], dtype)
    s, c = computed(far)
    with mp.workdps(400):
        for i, angle in enumerate(far):
            np.testing.assert_allclose(s[i], float(mp.sin(mp.mpf(float(angle)))), rtol=2 * np.finfo(dtype).eps)
            np.testing.assert_allclose(c[i], float(mp.cos(mp.mpf(float(angle)))), rtol=2 * np.finfo(dtype).eps)
    s, c = computed(np.array([np.inf, -np.inf, np.nan], dtype))
    assert np.isnan(s).all()
    assert np.isnan(c).all()


def test_a_large_angle_in_one_lane_does_not_change_other_lanes():
    x = np.linspace(-3, 3, LANE_WIDTHS["float64"])
    alone = computed(x)
    x[1] = 1e9
    beside = computed(x)
    for before, after in zip(alone, beside, strict=True):
        assert np.array_equal(np.delete(before, 1), np.delete(after, 1))
