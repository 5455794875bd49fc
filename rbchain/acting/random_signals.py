"""Random signals: functions of time with a separate realization for each sample.

The random numbers of a signal depend only on the seed, the channel and the number of the sample
(`core.lanes.random_numbers`). A sample therefore gets the same signal in any batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..common.calls import explains_calls
from ..common.real_arrays import excerpt, finite_number, real_array, whole_number
from ..common.values import private_copy
from ..core.lanes.random_numbers import FIRST_SIGNAL_CHANNEL
from ..errors import ArgumentError
from .signal_arithmetic import AddsSignals, SignalSum

if TYPE_CHECKING:
    from .signals import Signal

#: Channel of all waves without a channel of their own, so that they belong to the same sea.
WAVE_CHANNEL = (1 << 31) - 1
LARGEST_SIZE = 8e9  # bytes of the arrays of one signal of all samples
#: Processes whose realizations are sums of sines. The others have slopes that grow without limit as `interval` gets
#: smaller.
DIFFERENTIABLE = ("noise", "sea_state")
BYTES_PER_NUMBER = 32  # of a signal in memory: its array, and copies of it for the kernels


@dataclass(frozen=True, eq=False)
class RandomSignal(AddsSignals):
    """A random function of time. Each sample of a simulation or study gets its own realization.

    `Signal.noise`, `Signal.ornstein_uhlenbeck`, `Signal.random_walk` and `Signal.sea_state` create random signals.
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
        equal. By default, the random signals of the drives and forces have the channels 0, 1, 2, ... in their order
        (other signals are not counted), so choose larger numbers. By default, all sea states have the same channel,
        because they describe the same sea.

    Examples
    --------
    >>> import rbchain as rb
    >>> gust = rb.Signal.ornstein_uhlenbeck(std=2.0, correlation_time=0.5, seed=1)
    >>> gust.signal(duration=1.0, sample_ids=range(100))(0.5).shape
    (100,)
    >>> bool(gust.signal(1.0, sample_ids=17)(0.5) == gust.signal(1.0, sample_ids=range(100))(0.5)[17])
    True
    """

    internal_names: ClassVar[tuple[str, ...]] = ("bytes_per_sample", "realized", "refuse_derivative")
    kind: str
    parameters: Mapping[str, Any]
    seed: int | None = None
    channel: int | None = None

    def __post_init__(self) -> None:
        if self.seed is not None:
            whole_number("seed", self.seed, ArgumentError, least=0, most=(1 << 63) - 1)
        if self.channel is not None:
            whole_number("channel", self.channel, ArgumentError, least=0, most=WAVE_CHANNEL - 1)
        object.__setattr__(self, "parameters", {name: private_copy(x) for name, x in self.parameters.items()})

    @explains_calls(is_method=True, samples="sample_ids")
    def signal(self, duration: float, sample_ids: npt.ArrayLike = 0) -> Signal:
        """Return the signals of some samples.

        Parameters
        ----------
        duration : float, s
            Time that the signals have to cover. The signals for a shorter and for a longer duration are equal where
            both are defined.
        sample_ids : int or (...) array of int
            Indices of the samples. `Model.simulate` uses 0, 1, 2, ... in the order of the batch.

        Returns
        -------
        Signal
            With the batch shape of `sample_ids`. A missing channel or seed is 0, as for the first random signal among
            the drives and forces of `Model.simulate`.

        Raises
        ------
        ArgumentError
            If a parameter has neither one value nor one for each sample, or if the arrays would exceed 8 GB.
        """
        return self.realized(duration, numbers_of_samples(sample_ids), 0, 0)

    def derivative(self) -> SignalSum:
        """Return the exact derivative of the signal with respect to time, which is also a random signal.

        In a sum, a signal and its derivative belong to the same realization. In different drives or forces, this is the
        case only if the signal has a `channel` or is a sea state.

        Raises
        ------
        ArgumentError
            If the process has no derivative: a random walk or an Ornstein-Uhlenbeck process.

        Examples
        --------
        The velocity of the water at the surface is the derivative of the elevation:

        >>> import rbchain as rb
        >>> sea = {"significant_wave_height": 2.0, "peak_period": 8.0}
        >>> elevation = rb.Signal.sea_state(**sea)
        >>> velocity = rb.Signal.sea_state(**sea, quantity="vertical_velocity")
        >>> bool(abs(elevation.derivative().signal(9.0)(5.0) - velocity.signal(9.0)(5.0)) < 1e-12)
        True
        """
        return (1.0 * self).derivative()

    def refuse_derivative(self) -> None:
        """Raise an ArgumentError if the process has no derivative."""
        if self.kind not in DIFFERENTIABLE:
            raise ArgumentError(
                f"a random signal ({self.kind}) has no derivative: its slope between two times grows without limit as "
                "they approach each other. Expected Signal.noise or Signal.sea_state, whose realizations are smooth"
            )

    def realized(self, duration: float, samples: np.ndarray, seed: int, channel: int) -> Signal:
        """Return the signals of these samples, with the seed and channel that apply if the signal has none."""
        from .realizations import PROCESSES, Stream

        duration = finite_number("duration", duration, ArgumentError, above=0.0)
        needed = samples.size * self.bytes_per_sample(duration)
        if needed > LARGEST_SIZE:
            raise ArgumentError(
                f"a random signal ({self.kind}) of {samples.size} samples and {duration:g} s needs {needed / 1e9:.3g} "
                f"GB; expected at most {LARGEST_SIZE / 1e9:g} GB. Simulate fewer samples at once, use a longer "
                "interval or fewer sines, or run a study, which simulates its samples in parts"
            )
        own_channel = channel if self.channel is None else self.channel
        if self.kind == "sea_state" and self.channel is None:
            own_channel = WAVE_CHANNEL
        stream = Stream(seed if self.seed is None else self.seed, FIRST_SIGNAL_CHANNEL + own_channel, samples)
        return PROCESSES[self.kind](stream, duration, **self.parameters)

    def bytes_per_sample(self, duration: float) -> int:
        """Estimate the memory of the signal of one sample during a simulation, in bytes."""
        if "sines" in self.parameters:
            return 3 * BYTES_PER_NUMBER * self.parameters["sines"]
        return 3 * BYTES_PER_NUMBER * intervals_of(duration, self.parameters["interval"])


def numbers_of_samples(sample_ids: npt.ArrayLike) -> np.ndarray:
    """Return the numbers of samples as integers. Raises ArgumentError if they are not whole or below 0."""
    found = real_array("sample_ids", sample_ids, ArgumentError)
    if not ((found >= 0) & (found < 2.0**53) & (found == np.floor(found))).all():
        raise ArgumentError(f"sample_ids is {excerpt(found.tolist())}; expected whole numbers >= 0")
    return found.astype(np.int64)


def intervals_of(duration: float, interval: float) -> int:
    """Return the number of intervals. The last one begins at the duration or ends after it."""
    return math.floor(duration / interval) + 1
