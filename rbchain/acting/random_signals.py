"""Random signals: noise and sea states. Each sample sees its own realisation.

The random numbers of a signal depend only on the seed, the channel and the number of the sample
(`core.lanes.random_numbers`). So a sample sees the same signal alone and in any batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from ..common.misspelt import SuggestsAttributes
from ..common.real_arrays import excerpt, finite_number, real_array, whole_number
from ..core.lanes.random_numbers import FIRST_SIGNAL_CHANNEL, minus_log, two_normals, two_uniforms
from ..errors import StateError
from .packing import numbers_of_samples
from .sampled import with_samples
from .signals import Signal

STANDARD_GRAVITY = 9.80665  # m/s^2, of the dispersion relation of waves
#: Channel of all waves without a channel of their own, so that they belong to the same sea.
WAVE_CHANNEL = (1 << 31) - 1
#: Waves have frequencies in this range, relative to the peak of the spectrum.
WAVE_FREQUENCIES = (0.4, 5.0)
SPECTRUM_POINTS = 4001  # frequencies at which a spectrum is integrated
BLOCK = 8192  # random numbers that are computed at once, so that they stay in the cache
LARGEST_SIZE = 8e9  # bytes of the arrays of one signal of all samples
BYTES_PER_NUMBER = 32  # of a signal in memory: its array, and copies of it for the kernels


@dataclass(frozen=True, eq=False)
class RandomSignal(SuggestsAttributes):
    """A random function of time. Each sample of a simulation or study sees its own realisation.

    `Signal.noise`, `Signal.ornstein_uhlenbeck`, `Signal.random_walk` and `Signal.sea_state` make random signals.
    Drives, wrenches and currents accept them wherever they accept a `Signal`.

    Attributes
    ----------
    kind : str
        Name of the process.
    parameters : dict
        Parameters of the process.
    seed : int, optional
        Seed of the random numbers. The default is the seed of the study, or 0 in `Model.simulate`.
    channel : int, optional
        Signals with different channels are independent. Signals of one process with the same seed and channel are
        equal. By default, the places among the drives and forces have the channels 0, 1, 2, ... in their order, so
        choose larger numbers. All waves have the same channel by default, because they describe the same sea.

    Examples
    --------
    >>> import rbchain as rb
    >>> gust = rb.Signal.ornstein_uhlenbeck(std=2.0, correlation_time=0.5, seed=1)
    >>> gust.signal(duration=1.0, samples=range(100))(0.5).shape
    (100,)
    >>> bool(gust.signal(1.0, samples=17)(0.5) == gust.signal(1.0, samples=range(100))(0.5)[17])
    True
    """

    kind: str
    parameters: Mapping[str, Any]
    seed: int | None = None
    channel: int | None = None

    def __post_init__(self) -> None:
        if self.seed is not None:
            whole_number("seed", self.seed, StateError, least=0, most=(1 << 63) - 1)
        if self.channel is not None:
            whole_number("channel", self.channel, StateError, least=0, most=WAVE_CHANNEL - 1)

    def signal(self, duration: float, samples: npt.ArrayLike = 0) -> Signal:
        """Return the signals of some samples.

        Parameters
        ----------
        duration : float, s
            Time that the signals have to cover. The signals for a shorter and for a longer duration are equal where
            both are defined.
        samples : int or (...) array of int
            Numbers of the samples. Those of `Model.simulate` are 0, 1, 2, ... in the order of the batch.

        Returns
        -------
        Signal
            With the batch shape of `samples`. A missing channel or seed is 0: this is the signal
            that `Model.simulate` uses for the first place among the drives and forces.

        Raises
        ------
        StateError
            If a parameter has neither one value nor one for each sample, or if the arrays would exceed 8 GB.
        """
        return self.realised(duration, numbers_of_samples(samples), 0, 0)

    def realised(self, duration: float, samples: np.ndarray, seed: int, channel: int) -> Signal:
        """Return the signals of these samples, with the seed and channel that apply if the signal has none."""
        duration = finite_number("duration", duration, StateError, above=0.0)
        needed = samples.size * self.bytes_per_sample(duration)
        if needed > LARGEST_SIZE:
            raise StateError(
                f"a random signal ({self.kind}) of {samples.size} samples and {duration:g} s needs {needed / 1e9:.3g} "
                f"GB; expected at most {LARGEST_SIZE / 1e9:g} GB. Simulate fewer samples at once, use a longer "
                "interval or fewer sines, or run a study, which simulates its samples in parts"
            )
        own_channel = channel if self.channel is None else self.channel
        if self.kind == "sea_state" and self.channel is None:
            own_channel = WAVE_CHANNEL
        stream = _Stream(seed if self.seed is None else self.seed, FIRST_SIGNAL_CHANNEL + own_channel, samples)
        return PROCESSES[self.kind](stream, duration, **self.parameters)

    def bytes_per_sample(self, duration: float) -> int:
        """Estimate the memory of the signal of one sample during a simulation, in bytes."""
        if "sines" in self.parameters:
            return 3 * BYTES_PER_NUMBER * self.parameters["sines"]
        return 3 * BYTES_PER_NUMBER * _intervals(duration, self.parameters["interval"])


@dataclass(frozen=True)
class _Stream:
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
            raise StateError(
                f"{name} of a random signal has shape {value.shape}; expected one number, or an array of shape "
                f"{self.samples.shape} with one for each sample"
            )
        return np.broadcast_to(value, self.samples.shape)


def noise(
    density: npt.ArrayLike | Callable[[np.ndarray], npt.ArrayLike],
    frequencies: npt.ArrayLike,
    factor: npt.ArrayLike,
    offset: npt.ArrayLike,
    sines: int,
    amplitudes: str,
) -> dict[str, Any]:
    """Check the parameters of `Signal.noise`."""
    of_table = real_array("frequencies", frequencies, StateError)
    if of_table.ndim != 1 or of_table.size < 2 or not (np.diff(of_table) > 0).all() or not 0 <= of_table[0] < np.inf:
        raise StateError(
            f"frequencies is {excerpt(of_table.tolist())}; expected at least two increasing frequencies in Hz, not "
            "negative"
        )
    found = density(of_table) if callable(density) else density
    values = _positive("density", found, least=0.0)
    if values.shape not in ((), of_table.shape) or not values.any():
        raise StateError(
            f"density has shape {values.shape} and the largest value {values.max(initial=0.0):g}; expected one density "
            f"above 0, or one for each of the {of_table.size} frequencies"
        )
    given = density if callable(density) else np.broadcast_to(values, of_table.shape)
    return {"density": given, "frequencies": of_table} | _of_sines(factor, offset, sines, amplitudes)


def ornstein_uhlenbeck(
    std: npt.ArrayLike, correlation_time: npt.ArrayLike, interval: float | None, offset: npt.ArrayLike
) -> dict[str, Any]:
    """Check the parameters of `Signal.ornstein_uhlenbeck`."""
    times = _positive("correlation_time", correlation_time)
    if interval is None:
        if times.ndim:
            raise StateError(
                "interval is missing, and correlation_time differs between samples; expected an interval in s that "
                "holds for all samples"
            )
        interval = float(times) / 20
    return {
        "std": _positive("std", std, least=0.0),
        "correlation_time": times,
        "interval": finite_number("interval", interval, StateError, above=0.0),
        "offset": _finite("offset", offset),
    }


def random_walk(intensity: npt.ArrayLike, interval: float, offset: npt.ArrayLike) -> dict[str, Any]:
    """Check the parameters of `Signal.random_walk`."""
    return {
        "intensity": _positive("intensity", intensity, least=0.0),
        "interval": finite_number("interval", interval, StateError, above=0.0),
        "offset": _finite("offset", offset),
    }


def sea_state(
    significant_wave_height: npt.ArrayLike,
    peak_period: npt.ArrayLike,
    gamma: float,
    quantity: str,
    depth: float,
    factor: npt.ArrayLike,
    offset: npt.ArrayLike,
    sines: int,
    amplitudes: str,
) -> dict[str, Any]:
    """Check the parameters of `Signal.sea_state`."""
    if quantity not in WAVE_QUANTITIES:
        raise StateError(f"quantity is {quantity!r}; expected one of {', '.join(WAVE_QUANTITIES)}")
    gamma = finite_number("gamma", gamma, StateError, least=1.0)
    depth = finite_number("depth", depth, StateError, least=0.0)
    if quantity == "elevation" and depth > 0.0:
        raise StateError(
            f'depth is {depth:g}, but quantity is "elevation", which is at the surface; expected a depth of 0. Or '
            "choose a velocity or an acceleration of the water as quantity"
        )
    return {
        "significant_wave_height": _positive("significant_wave_height", significant_wave_height, least=0.0),
        "peak_period": _positive("peak_period", peak_period),
        "gamma": gamma,
        "quantity": quantity,
        "depth": depth,
    } | _of_sines(factor, offset, sines, amplitudes)


def _of_sines(factor: npt.ArrayLike, offset: npt.ArrayLike, sines: int, amplitudes: str) -> dict[str, Any]:
    if amplitudes not in ("random", "deterministic"):
        raise StateError(f'amplitudes is {amplitudes!r}; expected "random" or "deterministic"')
    return {
        "factor": _finite("factor", factor),
        "offset": _finite("offset", offset),
        "sines": whole_number("sines", sines, StateError, least=1, most=100_000),
        "amplitudes": amplitudes,
    }


def _finite(name: str, value: npt.ArrayLike) -> np.ndarray:
    found = np.array(real_array(name, value, StateError), np.float64)
    if not np.isfinite(found).all():
        raise StateError(f"{name} is {excerpt(found.tolist())}; expected finite numbers")
    return found


def _positive(name: str, value: npt.ArrayLike, least: float | None = None) -> np.ndarray:
    found = _finite(name, value)
    if not ((found > 0.0) if least is None else (found >= least)).all():
        bound = "above 0" if least is None else f"of at least {least:g}"
        raise StateError(f"{name} is {excerpt(found.tolist())}; expected numbers {bound}")
    return found


def _density_at(f: np.ndarray, density: Callable[[np.ndarray], npt.ArrayLike]) -> np.ndarray:
    found = _positive("density", density(f), least=0.0)
    if found.shape not in ((), f.shape):
        raise StateError(
            f"density(f) has shape {found.shape} for frequencies of shape {f.shape}; expected one number, or one for "
            "each frequency"
        )
    return np.broadcast_to(found, f.shape)


# --- processes --------------------------------------------------------------------------------------------------------


def _noise(
    stream: _Stream,
    duration: float,
    density: np.ndarray | Callable[[np.ndarray], npt.ArrayLike],
    frequencies: np.ndarray,
    factor: np.ndarray,
    offset: np.ndarray,
    sines: int,
    amplitudes: str,
) -> Signal:
    f = np.unique(np.concatenate([np.linspace(frequencies[0], frequencies[-1], SPECTRUM_POINTS), frequencies]))
    G = _density_at(f, density) if callable(density) else np.interp(f, frequencies, density)
    frequency, amplitude, phase = _sines(stream, f, G, sines, amplitudes)
    return _sum_of_sines(
        stream, stream.one_each("factor", factor)[..., None] * amplitude, 2 * math.pi * frequency, phase, offset
    )


def _sea_state(
    stream: _Stream,
    duration: float,
    significant_wave_height: np.ndarray,
    peak_period: np.ndarray,
    gamma: float,
    quantity: str,
    depth: float,
    factor: np.ndarray,
    offset: np.ndarray,
    sines: int,
    amplitudes: str,
) -> Signal:
    x = np.linspace(*WAVE_FREQUENCIES, SPECTRUM_POINTS)
    G = jonswap_shape(x, gamma)
    relative, amplitude, phase = _sines(stream, x, G / _integral(x, G), sines, amplitudes)
    height = stream.one_each("significant_wave_height", significant_wave_height)[..., None]
    w = 2 * math.pi * relative / stream.one_each("peak_period", peak_period)[..., None]
    order, quarter_turns = WAVE_QUANTITIES[quantity]
    of_depth = np.exp(-depth * w**2 / STANDARD_GRAVITY) if order else 1.0
    scale = stream.one_each("factor", factor)[..., None] * height / 4 * of_depth
    return _sum_of_sines(stream, scale * amplitude * w**order, w, phase + quarter_turns * math.pi / 2, offset)


#: Quantities of waves: the power of the angular frequency by which the elevation is multiplied, and quarter turns by
#: which the phase leads the phase of the elevation. Particle motions decrease with depth.
WAVE_QUANTITIES = {
    "elevation": (0, 0),
    "horizontal_velocity": (1, 0),
    "vertical_velocity": (1, 1),
    "horizontal_acceleration": (2, 1),
    "vertical_acceleration": (2, 2),
}


def jonswap_shape(x: np.ndarray, gamma: float) -> np.ndarray:
    """Return the JONSWAP spectrum at frequencies relative to its peak, up to a factor.

    Source: Hasselmann et al. (1973). For gamma = 1 it is the spectrum of Pierson and Moskowitz (1964).
    """
    width = np.where(x <= 1.0, 0.07, 0.09)
    return x**-5.0 * np.exp(-1.25 * x**-4.0) * gamma ** np.exp(-0.5 * ((x - 1.0) / width) ** 2)


def _sines(
    stream: _Stream, f: np.ndarray, G: np.ndarray, sines: int, amplitudes: str
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
    stream: _Stream, amplitude: np.ndarray, w: np.ndarray, phase: np.ndarray, offset: np.ndarray
) -> Signal:
    constant = stream.one_each("offset", offset)[..., None, None]
    return Signal(constant, waves=np.stack([amplitude, w, phase], -1))


def _ornstein_uhlenbeck(
    stream: _Stream,
    duration: float,
    std: np.ndarray,
    correlation_time: np.ndarray,
    interval: float,
    offset: np.ndarray,
) -> Signal:
    """Step the process exactly: x[k + 1] = a x[k] + std sqrt(1 - a^2) n[k], a = exp(-interval / correlation_time)."""
    intervals = _intervals(duration, interval)
    x = stream.normals(intervals + 1)
    steps = interval / stream.one_each("correlation_time", correlation_time)
    decay, spread = np.exp(-steps), np.sqrt(-np.expm1(-2.0 * steps))
    for k in range(intervals):
        x[k + 1] = decay * x[k] + spread * x[k + 1]
    return _linear(stream.one_each("offset", offset) + stream.one_each("std", std) * x, interval)


def _random_walk(
    stream: _Stream, duration: float, intensity: np.ndarray, interval: float, offset: np.ndarray
) -> Signal:
    walk = np.zeros((_intervals(duration, interval) + 1, *stream.samples.shape))
    np.cumsum(stream.normals(len(walk) - 1), 0, out=walk[1:])
    scale = math.sqrt(interval) * stream.one_each("intensity", intensity)
    return _linear(stream.one_each("offset", offset) + scale * walk, interval)


def _intervals(duration: float, interval: float) -> int:
    """Return the number of intervals. The last one begins at the duration or ends after it."""
    return math.floor(duration / interval) + 1


def _linear(values: np.ndarray, interval: float) -> Signal:
    """Return the signal that interpolates values (m, ...) at multiples of the interval linearly."""
    start = interval * np.arange(len(values))
    pieces = np.stack([values[:-1], np.diff(values, axis=0) / interval])
    return Signal(np.moveaxis(pieces, (1, 0), (-2, -1)), start[:-1], end=float(start[-1]))


PROCESSES: dict[str, Callable[..., Signal]] = {
    "noise": _noise,
    "ornstein_uhlenbeck": _ornstein_uhlenbeck,
    "random_walk": _random_walk,
    "sea_state": _sea_state,
}


# --- signals of the samples of a simulation ---------------------------------------------------------------------------


def actions_of_samples(
    drives: Any, forces: Any, duration: float, samples: np.ndarray, seed: int = 0
) -> tuple[Any, Any]:
    """Return drives and forces with the signals and the noise of sensors of some samples.

    A random signal without a channel uses its position among all random signals of the drives, then of the forces,
    as the channel. Channels that other signals have been given are not counted.

    Parameters
    ----------
    drives, forces : lists
        They are returned as they are if they contain no random signals and no noise.
    duration : float, s
    samples : (...) array of int
        Numbers of the samples of the batch.
    seed : int
        Seed of random signals and sensors without a seed.
    """
    given = {signal.channel for signal in random_signals_of(drives) + random_signals_of(forces)}
    channels = (channel for channel in count() if channel not in given)

    def of_samples(signal: RandomSignal) -> Signal:
        return signal.realised(duration, samples, seed, next(channels))

    return with_samples(_replaced(drives, of_samples), samples, seed), _replaced(forces, of_samples)


def random_signals_of(actions: Sequence[Any]) -> list[RandomSignal]:
    """Return the random signals of drives or forces."""
    found: list[RandomSignal] = []

    def collect(signal: RandomSignal) -> RandomSignal:
        found.append(signal)
        return signal

    _replaced(actions, collect)
    return found


def _replaced(actions: Any, function: Callable[[RandomSignal], Any]) -> Any:
    """Return actions in which the function has replaced each random signal, also in the components of forces."""
    if isinstance(actions, (list, tuple)):
        return [_replaced_in(action, function) for action in actions]
    return actions


def _replaced_in(value: Any, function: Callable[[RandomSignal], Any]) -> Any:
    if isinstance(value, RandomSignal):
        return function(value)
    if _has_three_components(value):
        parts = tuple(_replaced_in(part, function) for part in value)
        return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
    if not is_dataclass(value) or isinstance(value, (type, Signal)):
        return value
    old = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    new = {name: _replaced_in(part, function) for name, part in old.items()}
    changed = {name: part for name, part in new.items() if part is not old[name]}
    return replace(value, **changed) if changed else value


def _has_three_components(value: Any) -> bool:
    is_sequence = isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.dtype.kind == "O")
    return is_sequence and len(value) == 3
