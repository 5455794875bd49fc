"""Random processes: noise, random walks and sea states. `Signal` has these functions as static methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.misspelled import one_of
from ..common.real_arrays import excerpt, finite_array, finite_number, real_array, whole_number
from ..errors import ArgumentError
from .random_signals import RandomSignal

Amplitudes = Literal["random", "deterministic"]
WaveQuantity = Literal[
    "elevation", "horizontal_velocity", "vertical_velocity", "horizontal_acceleration", "vertical_acceleration"
]
#: Quantities of waves: the power of the angular frequency by which the elevation is multiplied, and quarter turns by
#: which the phase leads the phase of the elevation. Particle motions decrease with depth.
WAVE_QUANTITIES: dict[WaveQuantity, tuple[int, int]] = {
    "elevation": (0, 0),
    "horizontal_velocity": (1, 0),
    "vertical_velocity": (1, 1),
    "horizontal_acceleration": (2, 1),
    "vertical_acceleration": (2, 2),
}


@explains_calls()
def noise(
    density: npt.ArrayLike | Callable[[np.ndarray], npt.ArrayLike],
    frequencies: npt.ArrayLike,
    *,
    factor: npt.ArrayLike = 1.0,
    offset: npt.ArrayLike = 0.0,
    sines: int = 100,
    amplitudes: Amplitudes = "random",
    seed: int | None = None,
    channel: int | None = None,
) -> RandomSignal:
    """Make stationary band-limited noise with a given power spectral density, as a sum of sines.

    Parameters
    ----------
    density : float, (m,) array, or function of frequencies in Hz
        One-sided power spectral density, in the square of the signal's unit per Hz. It is interpolated linearly
        between the frequencies. A number means white noise in the band.
    frequencies : (m,) array, Hz
        Frequencies of the densities. The first and the last one are the limits of the band.
    factor, offset : float or (...) array
        The signal is the offset plus the factor times the noise.
    sines : int
        Number of sines. Each has the same share of the variance, and a random frequency in its part of the band.
    amplitudes : "random" or "deterministic"
        "random": the signal is Gaussian at each time, and the variance of a realization is random. "deterministic":
        all realizations have the same variance, and the signal is Gaussian in the limit of many sines.
    seed, channel : int, optional
        As in `RandomSignal`.

    Returns
    -------
    RandomSignal

    Notes
    -----
    The expectation of the spectrum over the samples is the density, and the signal does not repeat itself. The spectrum
    of one realization consists of `sines` lines. If a system has a narrow resonance, use so many sines that several of
    them are within its bandwidth. Each evaluation of the dynamics computes all sines.

    References
    ----------
    Shinozuka and Deodatis (1991), "Simulation of stochastic processes by spectral representation".

    Examples
    --------
    White noise of 0.5 N^2/Hz up to 10 Hz has a variance of 5 N^2:

    >>> import rbchain as rb
    >>> noise = rb.Signal.noise(0.5, frequencies=(0.0, 10.0))
    >>> values = noise.signal(duration=1.0, sample_ids=range(2000))(0.3)
    >>> bool(abs(values.var() - 5.0) < 0.8)
    True
    """
    of_table = real_array("frequencies", frequencies, ArgumentError)
    if of_table.ndim != 1 or of_table.size < 2 or not (np.diff(of_table) > 0).all() or not 0 <= of_table[0] < np.inf:
        raise ArgumentError(
            f"frequencies is {excerpt(of_table.tolist())}; expected at least two increasing frequencies in Hz, not "
            "negative"
        )
    found = density(of_table) if callable(density) else density
    values = positive("density", found, least=0.0)
    if values.shape not in ((), of_table.shape) or not values.any():
        raise ArgumentError(
            f"density has shape {values.shape} and the largest value {values.max(initial=0.0):g}; expected one density "
            f"above 0, or one for each of the {of_table.size} frequencies"
        )
    given = density if callable(density) else np.broadcast_to(values, of_table.shape)
    parameters = {"density": given, "frequencies": of_table} | _of_sines(factor, offset, sines, amplitudes)
    return RandomSignal("noise", parameters, seed, channel)


@explains_calls()
def ornstein_uhlenbeck(
    std: npt.ArrayLike,
    correlation_time: npt.ArrayLike,
    *,
    interval: float | None = None,
    offset: npt.ArrayLike = 0.0,
    seed: int | None = None,
    channel: int | None = None,
) -> RandomSignal:
    """Make a stationary Ornstein-Uhlenbeck process: noise whose autocorrelation decays exponentially.

    Parameters
    ----------
    std : float or (...) array
        Standard deviation.
    correlation_time : float or (...) array, s
        Time T of the autocovariance std^2 exp(-abs(t) / T).
    interval : float, s, optional
        Time between two points of the grid; a twentieth of the correlation time by default.
    offset : float or (...) array
        Mean.
    seed, channel : int, optional
        As in `RandomSignal`.

    Returns
    -------
    RandomSignal

    Notes
    -----
    The one-sided power spectral density of the process is 4 std^2 T / (1 + (2 pi f T)^2) per Hz. The values at the
    points of the grid have exactly the distribution of the process. The signal is linear between them. The
    variance is lowest in the middle between two points, std^2 (1 + a) / 2 with a = exp(-interval / T). Its mean
    over time is std^2 (2 + a) / 3, which is 1.6 % below std^2 for the default interval. The linear interpolation
    multiplies the spectrum of the sampled process by sinc(f interval)^4, with sinc(x) = sin(pi x) / (pi x).
    The slope changes at each point, at which the steps of methods with error control end.

    References
    ----------
    Gillespie (1996), "Exact numerical simulation of the Ornstein-Uhlenbeck process and its integral".

    Examples
    --------
    >>> import rbchain as rb
    >>> gust = rb.Signal.ornstein_uhlenbeck(std=3.0, correlation_time=0.5)
    >>> at_grid_point = gust.signal(duration=1.0, sample_ids=range(2000))(0.5)
    >>> bool(abs(at_grid_point.std() - 3.0) < 0.25)
    True
    """
    times = positive("correlation_time", correlation_time)
    if interval is None:
        if times.ndim:
            raise ArgumentError(
                "interval is missing, and correlation_time differs between samples; expected an interval in s that "
                "holds for all samples"
            )
        interval = float(times) / 20
    parameters = {
        "std": positive("std", std, least=0.0),
        "correlation_time": times,
        "interval": finite_number("interval", interval, ArgumentError, above=0.0),
        "offset": finite_array("offset", offset, ArgumentError),
    }
    return RandomSignal("ornstein_uhlenbeck", parameters, seed, channel)


@explains_calls()
def random_walk(
    intensity: npt.ArrayLike,
    interval: float,
    *,
    offset: npt.ArrayLike = 0.0,
    seed: int | None = None,
    channel: int | None = None,
) -> RandomSignal:
    """Make a random walk (Wiener process), such as the drift of a sensor's bias.

    Parameters
    ----------
    intensity : float or (...) array, unit of the signal per square root of s
        The standard deviation at time t is intensity sqrt(t).
    interval : float, s
        Time between two points of the grid. The values at the points have exactly the distribution of the process.
        The signal is linear between them.
    offset : float or (...) array
        Value at time 0.
    seed, channel : int, optional
        As in `RandomSignal`.

    Returns
    -------
    RandomSignal

    Examples
    --------
    >>> import rbchain as rb
    >>> drift = rb.Signal.random_walk(intensity=0.1, interval=0.5)
    >>> bool(abs(drift.signal(duration=4.0, sample_ids=range(2000))(4.0).std() - 0.2) < 0.02)
    True
    """
    parameters = {
        "intensity": positive("intensity", intensity, least=0.0),
        "interval": finite_number("interval", interval, ArgumentError, above=0.0),
        "offset": finite_array("offset", offset, ArgumentError),
    }
    return RandomSignal("random_walk", parameters, seed, channel)


@explains_calls()
def sea_state(
    significant_wave_height: npt.ArrayLike,
    peak_period: npt.ArrayLike,
    *,
    gamma: float = 3.3,
    quantity: WaveQuantity = "elevation",
    depth: npt.ArrayLike = 0.0,
    factor: npt.ArrayLike = 1.0,
    offset: npt.ArrayLike = 0.0,
    sines: int = 100,
    amplitudes: Amplitudes = "deterministic",
    seed: int | None = None,
    channel: int | None = None,
) -> RandomSignal:
    """Make the elevation of an irregular sea, or the motion of its water, as a sum of linear waves in deep water.

    Parameters
    ----------
    significant_wave_height : float or (...) array, m
        Four times the standard deviation of the elevation.
    peak_period : float or (...) array, s
        Period of the peak of the spectrum.
    gamma : float
        Peak enhancement of the JONSWAP spectrum, at least 1. With 1 it is the spectrum of Pierson and Moskowitz.
    quantity : str
        "elevation" in m; "horizontal_velocity" (in the direction of the waves) or "vertical_velocity" (upwards) of
        the water in m/s; "horizontal_acceleration" or "vertical_acceleration" in m/s^2.
    depth : float or (...) array, m
        Depth of the water particle below the mean water level; 0 for the elevation.
    factor, offset : float or (...) array
        The signal is the offset plus the factor times the quantity. For waves at an angle to an axis, use the
        cosine of the angle as the factor; use the velocity of a steady current as the offset.
    sines : int
        Number of sines. Each has the same share of the variance of the elevation, and a random frequency in its
        part of the spectrum.
    amplitudes : "deterministic" or "random"
        "deterministic": every realization has this significant wave height. "random": the elevation is Gaussian, and
        only the mean square over all realizations is exact.
    seed, channel : int, optional
        As in `RandomSignal`. All waves of a sample without a channel belong to the same sea, so elevation, velocities
        and accelerations are consistent. Give an independent swell its own channel.

    Returns
    -------
    RandomSignal

    Notes
    -----
    The frequencies are between 0.4 and 5 times the frequency of the peak. The spectrum is scaled so that the
    significant wave height is exact for any gamma. The motion of the water decreases with depth by
    exp(-w^2 depth / g), with the angular frequency w and g = 9.80665 m/s^2. The equations hold if the sea is deeper
    than half of the longest wavelength, and for depths below the troughs. Velocities at depth 0 contain all waves
    up to the highest frequency.

    References
    ----------
    Hasselmann et al. (1973), "Measurements of wind-wave growth and swell decay during JONSWAP"; Pierson and
    Moskowitz (1964); Faltinsen (1990), *Sea Loads on Ships and Offshore Structures*, chapter 2.

    Examples
    --------
    The current of a sea state 10 m below the surface, with a steady current of 0.5 m/s:

    >>> import rbchain as rb
    >>> sea = {"significant_wave_height": 2.0, "peak_period": 8.0, "depth": 10.0}
    >>> along = rb.Signal.sea_state(**sea, quantity="horizontal_velocity", offset=0.5)
    >>> current = rb.Current((along, 0.0, rb.Signal.sea_state(**sea, quantity="vertical_velocity")))
    """
    one_of("quantity", quantity, [*WAVE_QUANTITIES], ArgumentError)
    gamma = finite_number("gamma", gamma, ArgumentError, least=1.0)
    depth = positive("depth", depth, least=0.0)
    if quantity == "elevation" and depth.any():
        raise ArgumentError(
            f'depth is {excerpt(depth.tolist())}, but quantity is "elevation", which is at the surface; expected a '
            "depth of 0. Or choose a velocity or an acceleration of the water as quantity"
        )
    parameters = {
        "significant_wave_height": positive("significant_wave_height", significant_wave_height, least=0.0),
        "peak_period": positive("peak_period", peak_period),
        "gamma": gamma,
        "quantity": quantity,
        "depth": depth,
    } | _of_sines(factor, offset, sines, amplitudes)
    return RandomSignal("sea_state", parameters, seed, channel)


def _of_sines(factor: npt.ArrayLike, offset: npt.ArrayLike, sines: int, amplitudes: Amplitudes) -> dict[str, Any]:
    one_of("amplitudes", amplitudes, get_args(Amplitudes), ArgumentError)
    return {
        "factor": finite_array("factor", factor, ArgumentError),
        "offset": finite_array("offset", offset, ArgumentError),
        "sines": whole_number("sines", sines, ArgumentError, least=1, most=100_000),
        "amplitudes": amplitudes,
    }


def positive(name: str, value: npt.ArrayLike, least: float | None = None) -> np.ndarray:
    """Return finite values above 0, or of at least `least`. Raises ArgumentError, with the name."""
    found = finite_array(name, value, ArgumentError)
    if not ((found > 0.0) if least is None else (found >= least)).all():
        bound = "above 0" if least is None else f"of at least {least:g}"
        raise ArgumentError(f"{name} is {excerpt(found.tolist())}; expected numbers {bound}")
    return found


PROCESSES: dict[str, Callable[..., RandomSignal]] = {
    "noise": noise,
    "ornstein_uhlenbeck": ornstein_uhlenbeck,
    "random_walk": random_walk,
    "sea_state": sea_state,
}
