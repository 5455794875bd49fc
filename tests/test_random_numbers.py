"""Random numbers of samples: published test vectors, the same bits in compiled code, moments and independence."""

import math

import numpy as np
import pytest
from scipy import stats

from rbchain.compiling.jit import driver
from rbchain.core.lanes.random_numbers import (
    FIRST_SIGNAL_CHANNEL,
    minus_log,
    philox,
    random_words,
    sine_and_cosine_of_turns,
    two_normals,
    two_uniforms,
)

ONES = 0xFFFFFFFF
COUNT = 200_000
#: Five standard deviations: one false alarm in two million.
ALARM = 5.0


@driver
def fill(seed, samples, channel, instants, words, numbers):
    for i in range(len(samples)):
        sample, instant = int(samples[i]), int(instants[i])
        words[i, 0], words[i, 1], words[i, 2], words[i, 3] = random_words(seed, sample, channel, instant)
        numbers[i, 0], numbers[i, 1] = two_uniforms(seed, sample, channel, instant)
        numbers[i, 2], numbers[i, 3] = two_normals(seed, sample, channel, instant)


@pytest.mark.parametrize(
    ("counter_and_key", "words"),
    [
        ((0, 0, 0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ONES, ONES, ONES, ONES, ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_published_vectors(counter_and_key, words):
    """Vectors of philox4x32-10 in the file kat_vectors of Random123."""
    assert philox(*counter_and_key) == words


def test_compiled_code_plain_python_and_arrays_have_the_same_bits():
    seed, channel = (1 << 62) + 12345, FIRST_SIGNAL_CHANNEL + 7
    rng = np.random.default_rng(0)
    samples, instants = rng.integers(0, 1 << 50, 300), rng.integers(0, 1 << 32, 300)
    words, numbers = np.zeros((300, 4), np.int64), np.zeros((300, 4))
    fill(seed, samples, channel, instants, words, numbers)
    places = list(zip(samples.tolist(), instants.tolist(), strict=True))
    np.testing.assert_array_equal(words, [random_words(seed, s, channel, i) for s, i in places])
    plain = [two_uniforms(seed, s, channel, i) + two_normals(seed, s, channel, i) for s, i in places]
    np.testing.assert_array_equal(numbers, plain)
    arrays = two_uniforms(seed, samples, channel, instants) + two_normals(seed, samples, channel, instants)
    np.testing.assert_array_equal(numbers, np.stack(arrays, -1))


def test_logarithm_sine_and_cosine_are_accurate_to_rounding():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.random(10_000), 2.0 ** -rng.uniform(0, 53, 10_000), [2.0**-53, 0.5, 1 - 2.0**-53]])
    eps = np.finfo(float).eps
    np.testing.assert_allclose(minus_log(x), -np.log(x), rtol=2 * eps, atol=0)
    turns = rng.random(10_000)
    turns = np.concatenate([turns, np.arange(1, 64) / 64, [2.0**-53, 1 - 2.0**-53]])
    sine, cosine = sine_and_cosine_of_turns(turns)
    # the argument of NumPy's functions has an error of one rounding of up to 2 pi
    np.testing.assert_allclose(sine, np.sin(2 * math.pi * turns), rtol=0, atol=5 * eps)
    np.testing.assert_allclose(cosine, np.cos(2 * math.pi * turns), rtol=0, atol=5 * eps)


def test_moments():
    """Means of powers, within five of their own standard deviations."""
    for numbers in two_normals(3, np.arange(COUNT), 0, 5):
        for power in range(1, 7):
            mean = 0.0 if power % 2 else float(math.prod(range(1, power, 2)))
            variance = float(math.prod(range(1, 2 * power, 2))) - mean**2
            assert abs((numbers**power).mean() - mean) < ALARM * math.sqrt(variance / COUNT)
    for numbers in two_uniforms(3, np.arange(COUNT), 0, 5):
        assert 0.0 < numbers.min() < numbers.max() < 1.0
        assert abs(numbers.mean() - 0.5) < ALARM * math.sqrt(1 / 12 / COUNT)


def test_distributions():
    """Kolmogorov and Smirnov's test, at the level of one false alarm in a million."""
    for numbers in two_normals(4, 17, 2, np.arange(COUNT)):
        assert stats.kstest(numbers, "norm").pvalue > 1e-6
    for numbers in two_uniforms(4, 17, 2, np.arange(COUNT)):
        assert stats.kstest(numbers, "uniform").pvalue > 1e-6


def test_independence():
    """Numbers of neighboring seeds, samples, channels and instants, and both of an instant, are not correlated."""
    k = np.arange(COUNT)
    first, second = two_normals(1, k, 0, 0)
    others = [second, two_normals(2, k, 0, 0)[0], two_normals(1, k + 1, 0, 0)[0], two_normals(1, k, 1, 0)[0]]
    others += [
        two_normals(1, k, 0, 1)[0],
        two_normals(1, k + (1 << 32), 0, 0)[0],
        two_normals(1 + (1 << 32), k, 0, 0)[0],
    ]
    for other in others:
        for a, b in ((first, other), (first**2 - 1, (other**2 - 1) / 2)):
            assert abs((a * b).mean()) < ALARM / math.sqrt(COUNT) * a.std()
