"""Tables of values that a piecewise polynomial interpolates."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from ..common.real_arrays import FloatArray
from .signals import Signal

Interpolation = Literal["held", "linear", "cubic"]
#: Interpolations by the number of coefficients of a piece.
INTERPOLATIONS: dict[int, Interpolation] = {1: "held", 2: "linear", 4: "cubic"}
#: A signal is a table if it differs from the interpolated values by this fraction of the largest one at most.
ROUND_OFF = 1e-9


class SignalTable(NamedTuple):
    """Values (..., m) of a signal at its times (m,) or (..., m) in s. A held value acts from its time on.

    `end` is the end of held values in s.
    """

    times: FloatArray
    values: FloatArray
    interpolation: Interpolation
    end: float = np.inf

    def signal(self) -> Signal:
        """Return the signal of the table, whose times (..., m) may differ between samples."""
        if self.interpolation == "held":
            return Signal(self.values[..., None], breaks=self.times, end=self.end)
        if self.interpolation == "linear" or self.times.ndim > 1:
            return Signal.table(self.times, self.values, interpolation=self.interpolation)
        # each sample alone: the bits of a spline may depend on how many are computed together
        alone = Signal.table(np.broadcast_to(self.times, self.values.shape), self.values)
        return replace(alone, breaks=self.times[:-1])


def table_of(signal: Signal) -> SignalTable | None:
    """Return the table of a signal without sines and inputs; None if the signal does not interpolate its values."""
    kind = INTERPOLATIONS.get(signal.coefficients.shape[-1])
    if kind is None or signal.breaks.ndim > 1:
        return None
    if kind == "held":
        return SignalTable(signal.breaks, signal.coefficients[..., 0], kind, signal.end)
    if signal.end == np.inf:
        return None
    times = np.append(signal.breaks, signal.end)
    values = signal(times)
    difference = signal.coefficients - Signal.table(times, values, interpolation=kind).coefficients
    powers = np.diff(times)[:, None] ** np.arange(signal.coefficients.shape[-1])
    largest = np.abs(values).max(-1, keepdims=True)[..., None]
    if not (np.abs(difference * powers) <= ROUND_OFF * largest).all():
        return None
    # the signal does not store its last value, which is known up to round-off: most are numbers of few digits
    last = [float(f"{value:.15g}") for value in values[..., -1].flat]
    values = np.concatenate([values[..., :-1], np.reshape(last, (*values.shape[:-1], 1))], -1)
    return SignalTable(times, values, kind)
