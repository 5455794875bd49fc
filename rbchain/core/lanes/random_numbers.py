"""Random numbers of samples, from the counter-based generator Philox4x32-10.

The key of the generator is the seed. Its counter is (instant, channel, sample). Each number can be computed by itself,
so a sample gets the same numbers alone, in any batch, in any order and with any step size.

In compiled code, the functions take int64 values. In plain Python, they take Python's integers or arrays of int64. All
three give identical results on every machine. The generator uses integers only, and the normal numbers use only
operations that IEEE 754 rounds correctly.

Source: Salmon, Moraes, Dror and Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3".
"""

import numpy as np

from ...compiling.jit import overload, plain_or_compiled

# Channels of different users do not overlap, so their numbers are independent for the same seed.
FIRST_SENSOR_CHANNEL, FIRST_SIGNAL_CHANNEL = 0, 1 << 31
DRAW_CHANNEL = FIRST_SIGNAL_CHANNEL - 1  # of the parameters and states that a study draws for an episode

WORD = 0xFFFFFFFF
ROUNDS = 10
MULTIPLIER_0, MULTIPLIER_1 = 0xD2511F53, 0xCD9E8D57
WEYL_0, WEYL_1 = 0x9E3779B9, 0xBB67AE85  # increments of the key: golden ratio, and square root of 3 minus 1

# To scale a number of [2^-64, 1) to [0.5, 1): if it is below the first entry, multiply it by the second, 2^n.
SCALES = tuple((2.0**-n, 2.0**n, float(n)) for n in (32, 16, 8, 4, 2, 1))
LOG_2_HIGH, LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SQUARE_ROOT_OF_HALF = 0.7071067811865476


@plain_or_compiled
def multiply_words(multiplier, x):
    """Return the high and low words of the product of two words. Its bits are correct, even if int64 overflows."""
    product = multiplier * x
    return product >> 32 & WORD, product & WORD


@plain_or_compiled
def philox(c0, c1, c2, c3, k0, k1):
    """Compute four random words (4) of 32 bits from a counter of four words and a key of two words."""
    for _ in range(ROUNDS):
        high_0, low_0 = multiply_words(MULTIPLIER_0, c0)
        high_1, low_1 = multiply_words(MULTIPLIER_1, c2)
        c0, c1, c2, c3 = high_1 ^ c1 ^ k0, low_1, high_0 ^ c3 ^ k1, low_0
        k0, k1 = (k0 + WEYL_0) & WORD, (k1 + WEYL_1) & WORD
    return c0, c1, c2, c3


@plain_or_compiled
def random_words(seed, sample, channel, instant):
    """Compute the four random words of an instant. Seed and sample have 64 bits, channel and instant 32 bits."""
    return philox(
        instant & WORD, channel & WORD, sample & WORD, (sample >> 32) & WORD, seed & WORD, (seed >> 32) & WORD
    )


@plain_or_compiled
def two_uniforms(seed, sample, channel, instant):
    """Compute two independent uniform numbers of an instant, in the open interval (0, 1), each of 52 bits."""
    a, b, c, d = random_words(seed, sample, channel, instant)
    return (
        ((a >> 6) * 2.0**26 + (b >> 6) + 0.5) * 2.0**-52,
        ((c >> 6) * 2.0**26 + (d >> 6) + 0.5) * 2.0**-52,
    )


@plain_or_compiled
def two_normals(seed, sample, channel, instant):
    """Compute two independent standard normal numbers of an instant (Box and Muller 1958). They are within +-8.6."""
    u, turns = two_uniforms(seed, sample, channel, instant)
    radius = np.sqrt(2.0 * minus_log(u))
    sine, cosine = sine_and_cosine_of_turns(turns)
    return radius * cosine, radius * sine


def factor_where(condition, factor):
    """Return a factor where a condition holds, and 1 elsewhere."""
    return 1.0 + condition * (factor - 1.0)


@overload(factor_where)
def _compiled_factor_where(condition, factor):
    """Select one of the numbers. Converting the condition to a number takes three times as long."""

    def select(condition, factor):
        return factor if condition else 1.0

    return select


@plain_or_compiled
def minus_log(x):
    """Compute -log(x) for x in [2^-64, 1), with the polynomial of Sun's fdlibm (1993), e_log.c."""
    exponent = 0.0 * x
    for limit, factor, n in SCALES:
        small = x < limit
        x = x * factor_where(small, factor)
        exponent = exponent + small * n
    small = x < SQUARE_ROOT_OF_HALF
    f = x * factor_where(small, 2.0) - 1.0
    exponent = exponent + small
    s = f / (2.0 + f)
    z = s * s
    r = 1.531383769920937332e-01 + 1.479819860511658591e-01 * z
    r = 2.222219843214978396e-01 + (1.818357216161805012e-01 + r * z) * z
    r = (6.666666666666735130e-01 + (3.999999999940941908e-01 + (2.857142874366239149e-01 + r * z) * z) * z) * z
    half_square = 0.5 * f * f
    return exponent * LOG_2_HIGH + ((half_square - (s * (half_square + r) - exponent * LOG_2_LOW)) - f)


@plain_or_compiled
def sine_and_cosine_of_turns(turns):
    """Compute sine and cosine of the angle 2 pi turns for turns in (0, 1), with the polynomials of fdlibm's k_sin.c."""
    quadrant = np.floor(4.0 * turns + 0.5)
    x = (4.0 * turns - quadrant) * 1.5707963267948966
    z = x * x
    s = -2.50507602534068634195e-08 + 1.58969099521155010221e-10 * z
    s = 8.33333333332248946124e-03 + (-1.98412698298579493134e-04 + (2.75573137070700676789e-06 + s * z) * z) * z
    s = x + x * z * (-1.66666666666666324348e-01 + s * z)
    c = 2.08757232129817482790e-09 - 1.13596475577881948265e-11 * z
    c = -1.38888888888741095749e-03 + (2.48015872894767294178e-05 + (-2.75573143513906633035e-07 + c * z) * z) * z
    c = 1.0 - 0.5 * z + z * z * (4.16666666666666019037e-02 + c * z)
    odd = quadrant - 2.0 * np.floor(0.5 * quadrant)
    half_turn = np.floor(0.5 * quadrant)
    sign = 1.0 - 2.0 * (half_turn - 2.0 * np.floor(0.5 * half_turn))
    return sign * (s + odd * (c - s)), sign * (c - odd * (c + s))
