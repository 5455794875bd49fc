"""Realizations of random signals: the signals of some samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.lanes.random_numbers import minus_log, two_normals, two_uniforms
from ..errors import ArgumentError
from .random_processes import WAVE_QUANTITIES, Amplitudes, WaveQuantity, positive
from .random_signals import intervals_of
from .signals import Signal

STANDARD_GRAVITY = 9.80665  # m/s^2, of the dispersion relation of waves
#: Waves have frequencies in this range, relative to the peak of the spectrum.
WAVE_FREQUENCIES = (0.4, 5.0)
SPECTRUM_POINTS = 4001  # frequencies at which a spectrum is integrated
BLOCK = 8192  # random numbers that are computed at once, so that they stay in the cache


@dataclass(frozen=True)
class Stream:
    """The random numbers of one signal of some samples."""

    seed: int
    channel: int
    samples: np.ndarray

    def uniforms(self, instants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two uniform numbers (..., m) of these instants (m,) of each sample."""
        return two_uniforms(self.seed, self.samples[..., None], self.channel, instants)

    def normals(self, number: int) -> np.ndarray:
        """Return normal numbers (number, ...) of each sample."""
        samples, pairs = self.samples.reshape(-1), -(-number // 2)
        numbers = np.empty((pairs, 2, samples.size))
        rows = max(1, BLOCK // max(1, samples.size))
        for first in range(0, pairs, rows):
            part = slice(first, min(first + rows, pairs))
            instants = np.arange(part.start, part.stop)[:, None]
            numbers[part, 0], numbers[part, 1] = two_normals(self.seed, samples, self.channel, instants)
        return numbers.reshape(2 * pairs, *self.samples.shape)[:number]

    def one_each(self, name: str, value: np.ndarray) -> np.ndarray:
        """Return the value of each sample (...)."""
        if value.shape not in ((), self.samples.shape):
            raise ArgumentError(
                f"{name} of a random signal has shape {value.shape}; expected one number, or an array of shape "
                f"{self.samples.shape} with one for each sample"
            )
        return np.broadcast_to(value, self.samples.shape)


def _noise(
    stream: Stream,
    duration: float,
    density: np.ndarray | Callable[[np.ndarray], npt.ArrayLike],
    frequencies: np.ndarray,
    factor: np.ndarray,
    offset: np.ndarray,
    sines: int,
    amplitudes: Amplitudes,
) -> Signal:
    f = np.unique(np.concatenate([np.linspace(frequencies[0], frequencies[-1], SPECTRUM_POINTS), frequencies]))
    G = _density_at(f, density) if callable(density) else np.interp(f, frequencies, density)
    frequency, amplitude, phase = _sines(stream, f, G, sines, amplitudes)
    return _sum_of_sines(
        stream, stream.one_each("factor", factor)[..., None] * amplitude, 2 * math.pi * frequency, phase, offset
    )


def _sea_state(
    stream: Stream,
    duration: float,
    significant_wave_height: np.ndarray,
    peak_period: np.ndarray,
    gamma: float,
    quantity: WaveQuantity,
    depth: np.ndarray,
    factor: np.ndarray,
    offset: np.ndarray,
    sines: int,
    amplitudes: Amplitudes,
) -> Signal:
    x = np.linspace(*WAVE_FREQUENCIES, SPECTRUM_POINTS)
    G = jonswap_shape(x, gamma)
    relative, amplitude, phase = _sines(stream, x, G / _integral(x, G), sines, amplitudes)
    height = stream.one_each("significant_wave_height", significant_wave_height)[..., None]
    w = 2 * math.pi * relative / stream.one_each("peak_period", peak_period)[..., None]
    order, quarter_turns = WAVE_QUANTITIES[quantity]
    depth = stream.one_each("depth", depth)[..., None]
    of_depth = np.exp(-depth * w**2 / STANDARD_GRAVITY) if order else 1.0
    scale = stream.one_each("factor", factor)[..., None] * height / 4 * of_depth
    return _sum_of_sines(stream, scale * amplitude * w**order, w, phase + quarter_turns * math.pi / 2, offset)


def _density_at(f: np.ndarray, density: Callable[[np.ndarray], npt.ArrayLike]) -> np.ndarray:
    found = positive("density", density(f), least=0.0)
    if found.shape not in ((), f.shape):
        raise ArgumentError(
            f"density(f) has shape {found.shape} for frequencies of shape {f.shape}; expected one number, or one for "
            "each frequency"
        )
    return np.broadcast_to(found, f.shape)


def jonswap_shape(x: np.ndarray, gamma: float) -> np.ndarray:
    """Return the JONSWAP spectrum at frequencies relative to its peak, up to a factor.

    Source: Hasselmann et al. (1973). For gamma = 1 it is the spectrum of Pierson and Moskowitz (1964).
    """
    width = np.where(x <= 1.0, 0.07, 0.09)
    return x**-5.0 * np.exp(-1.25 * x**-4.0) * gamma ** np.exp(-0.5 * ((x - 1.0) / width) ** 2)


def _sines(
    stream: Stream, f: np.ndarray, G: np.ndarray, sines: int, amplitudes: Amplitudes
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return frequencies, amplitudes and phases (..., sines) of a process with the one-sided density G at f.

    Each sine has the same share of the variance. Its frequency is random in its band, with the density G, so that the
    expected spectrum is G and the sum is not periodic.
    """
    share = np.concatenate([np.zeros(1), np.cumsum(0.5 * (G[1:] + G[:-1]) * np.diff(f))])
    i = np.arange(sines)
    in_band, turns = stream.uniforms(i)
    place = np.minimum((i + in_band) / sines * share[-1], np.nextafter(share[-1], 0.0))
    j = np.searchsorted(share, place, "right") - 1
    frequency = f[j] + (f[j + 1] - f[j]) * (place - share[j]) / (share[j + 1] - share[j])
    amplitude = np.broadcast_to(math.sqrt(2.0 * share[-1] / sines), frequency.shape)
    if amplitudes == "random":
        amplitude = amplitude * np.sqrt(minus_log(stream.uniforms(i + sines)[0]))
    return frequency, amplitude, 2.0 * math.pi * turns


def _integral(x: np.ndarray, y: np.ndarray) -> float:
    return float((0.5 * (y[1:] + y[:-1]) * np.diff(x)).sum())


def _sum_of_sines(
    stream: Stream, amplitude: np.ndarray, w: np.ndarray, phase: np.ndarray, offset: np.ndarray
) -> Signal:
    constant = stream.one_each("offset", offset)[..., None, None]
    return Signal(constant, waves=np.stack([amplitude, w, phase], -1))


def _ornstein_uhlenbeck(
    stream: Stream,
    duration: float,
    std: np.ndarray,
    correlation_time: np.ndarray,
    interval: float,
    offset: np.ndarray,
) -> Signal:
    """Step the process exactly: x[k + 1] = a x[k] + std sqrt(1 - a^2) n[k], a = exp(-interval / correlation_time)."""
    intervals = intervals_of(duration, interval)
    x = stream.normals(intervals + 1)
    steps = interval / stream.one_each("correlation_time", correlation_time)
    decay, spread = np.exp(-steps), np.sqrt(-np.expm1(-2.0 * steps))
    for k in range(intervals):
        x[k + 1] = decay * x[k] + spread * x[k + 1]
    return _linear(stream.one_each("offset", offset) + stream.one_each("std", std) * x, interval)


def _random_walk(stream: Stream, duration: float, intensity: np.ndarray, interval: float, offset: np.ndarray) -> Signal:
    walk = np.zeros((intervals_of(duration, interval) + 1, *stream.samples.shape))
    np.cumsum(stream.normals(len(walk) - 1), 0, out=walk[1:])
    scale = math.sqrt(interval) * stream.one_each("intensity", intensity)
    return _linear(stream.one_each("offset", offset) + scale * walk, interval)


def _linear(values: np.ndarray, interval: float) -> Signal:
    """Return the signal that interpolates values (m, ...) at multiples of the interval linearly."""
    start = interval * np.arange(len(values))
    pieces = np.stack([values[:-1], np.diff(values, axis=0) / interval])
    return Signal(np.moveaxis(pieces, (1, 0), (-2, -1)), breaks=start[:-1], end=float(start[-1]))


PROCESSES: dict[str, Callable[..., Signal]] = {
    "noise": _noise,
    "ornstein_uhlenbeck": _ornstein_uhlenbeck,
    "random_walk": _random_walk,
    "sea_state": _sea_state,
}
