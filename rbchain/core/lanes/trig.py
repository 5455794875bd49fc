"""Sine, cosine, arctangent and logarithm of all lanes of a SIMD value, or of one value with the C library."""

import math

from numba import types

from ...compiling.jit import kernel, overload
from .lane_numbers import fused, get_lane, lanes_in, rotate_quadrants, set_lane
from .lanes import Pack, any_lane

# For larger |x| the three parts of pi/2 below are not precise enough. The C library computes these lanes.
MAX_REDUCED_ANGLE = 1e5

# HALF_PI[0] + HALF_PI[1] + HALF_PI[2] is pi/2 in three times the working precision (Cody and Waite 1980). With a fused
# multiply-add, the first subtraction is exact for |x| <= MAX_REDUCED_ANGLE.
HALF_PI_64 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
HALF_PI_32 = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
# 1.5 * 2^p with p bits of mantissa: adding it rounds a number to an integer, which the low bits of the sum hold.
BIAS_64, BIAS_32 = 6755399441055744.0, 12582912.0


def sincos(x):
    """Compute sine and cosine of a number or SIMD value x, rad; NaN for inf and NaN.

    Errors are within 2 ulp for |x| <= 1e5. For larger angles and for single numbers, the C library computes the
    results.
    """
    return (math.sin(x), math.cos(x)) if math.isfinite(x) else (math.nan, math.nan)


@overload(sincos)
def _overload_sincos(x):
    if not isinstance(x, Pack):
        return lambda x: (math.sin(x), math.cos(x))
    if x.dtype == types.float64:
        return lambda x: _sincos_64(x)
    return lambda x: _sincos_32(x)


@kernel
def _reduce(x, half_pi, bias):
    """Reduce x = quadrants * pi/2 + r to |r| <= pi/4; return r, and a number with the quadrants in its low bits.

    x is a SIMD value, rad, and `half_pi` (3) the parts of pi/2.
    """
    biased = x * (2.0 / math.pi) + bias
    quadrants = biased - bias
    r = fused(-quadrants, half_pi[0], x)
    r = fused(-quadrants, half_pi[1], r)
    return fused(-quadrants, half_pi[2], r), biased


@kernel
def _sincos_64(x):
    """Evaluate minimax polynomials on [-pi/4, pi/4]; coefficients of Sun's fdlibm (1993), k_sin.c and k_cos.c."""
    r, biased = _reduce(x, HALF_PI_64, BIAS_64)
    z = r * r
    s = 1.58969099521155010221e-10 * z - 2.50507602534068634195e-08
    s = ((s * z + 2.75573137070700676789e-06) * z - 1.98412698298579493134e-04) * z + 8.33333333332248946124e-03
    s = s * z - 1.66666666666666324348e-01
    c = -1.13596475577881948265e-11 * z + 2.08757232129817482790e-09
    c = ((c * z - 2.75573143513906633035e-07) * z + 2.48015872894767294178e-05) * z - 1.38888888888741095749e-03
    c = (c * z + 4.16666666666666019037e-02) * z - 0.5
    s, c = rotate_quadrants(biased, (s * z) * r + r, c * z + 1.0)
    return _replace_large_angles(x, s, c)


@kernel
def _sincos_32(x):
    """Evaluate minimax polynomials on [-pi/4, pi/4]; coefficients of Moshier's Cephes (1989), sinf.c."""
    r, biased = _reduce(x, HALF_PI_32, BIAS_32)
    z = r * r
    s = (-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1
    c = (2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2
    s, c = rotate_quadrants(biased, (s * z) * r + r, (c * z - 0.5) * z + 1.0)
    return _replace_large_angles(x, s, c)


@kernel
def _replace_large_angles(x, s, c):
    """Replace sine and cosine by the results of the C library in lanes with |x| > MAX_REDUCED_ANGLE."""
    if any_lane(abs(x) > MAX_REDUCED_ANGLE):
        return _sincos_of_large_angles(x, s, c)
    return s, c


@kernel
def _sincos_of_large_angles(x, s, c):
    """Replace sine and cosine in these lanes, one after the other."""
    for lane in range(lanes_in(x)):
        angle = get_lane(x, lane)
        if abs(angle) > MAX_REDUCED_ANGLE:
            s, c = set_lane(s, lane, math.sin(angle)), set_lane(c, lane, math.cos(angle))
    return s, c


def arctan2(y, x):
    """Compute the angle of the point (x, y), rad, with the C library, one lane after the other."""
    return math.atan2(y, x)


@overload(arctan2)
def _overload_arctan2(y, x):
    if not isinstance(x, Pack):
        return lambda y, x: math.atan2(y, x)
    return lambda y, x: _arctan2_of_lanes(y, x)


@kernel
def _arctan2_of_lanes(y, x):
    """Compute `arctan2` of SIMD values: the angles, rad, one lane after the other, because no instruction does it."""
    angle = y
    for lane in range(lanes_in(x)):
        angle = set_lane(angle, lane, math.atan2(get_lane(y, lane), get_lane(x, lane)))
    return angle


def logarithm(x):
    """Compute the natural logarithm of x > 0 with the C library, one lane after the other."""
    return math.log(x)


@overload(logarithm)
def _overload_logarithm(x):
    if not isinstance(x, Pack):
        return lambda x: math.log(x)
    return lambda x: _logarithm_of_lanes(x)


@kernel
def _logarithm_of_lanes(x):
    """Compute `logarithm` of a SIMD value, one lane after the other, because no instruction does it."""
    found = x
    for lane in range(lanes_in(x)):
        found = set_lane(found, lane, math.log(get_lane(x, lane)))
    return found
