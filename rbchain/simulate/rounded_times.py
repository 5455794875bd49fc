"""Signals that change more quickly than float32 resolves times."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from ..core.forces import signal_layout
from ..drivers.trajectories import Actions
from ..errors import SimulationWarning

#: Values of a signal that are wrong by this fraction of its largest value because of rounded times cause a warning.
LARGEST_ERROR = 1e-4
ROWS = 4096  # of a table of each sample are checked at once, which limits the memory


def warn_of_rounded_times(
    actions: Actions | None, samples: int, duration: float, dtype: np.dtype, stacklevel: int = 6
) -> bool:
    """Warn if a simulation is in float32, and the distance of its times is too large for a signal.

    The steps and the ends of pieces are in float64, but evaluations within a step have times in float32. Returns
    whether there was a warning.
    """
    if actions is None or dtype != np.float32 or not (samples and 0.0 < duration < np.inf):
        return False
    numbers = actions.shared.numbers
    signals = (
        (*_pieces_of(codes, numbers, actions.shared.tables, samples), _waves_of(codes, numbers))
        for codes in actions.shared.signals.T
    )
    found = [_largest_error(*rows, duration=duration) for signal in signals for rows in _parts(*signal)]
    error, time = max(found, default=(0.0, 0.0))
    if error <= LARGEST_ERROR:
        return False
    warnings.warn(
        f"the simulation is in float32, in which times near {time:.6g} s are multiples of "
        f"{float(np.spacing(np.float32(time))):.2g} s. A signal changes so quickly there that its values are wrong "
        f"by up to {100.0 * error:.2g} % of the maximum. Use float64 arrays for q0 and qd0",
        SimulationWarning,
        stacklevel=stacklevel + 1,
    )
    return True


def checked_until(actions: Actions | None, times: np.ndarray, until: float) -> float:
    """Check the times of the samples of a stepper in float32; return until when the check applies, s.

    `until` is the result of the last call. The distance of times doubles at powers of two, so the check is until the
    next one. After a warning, no more checks are necessary.
    """
    latest = times.max(initial=0.0)
    if latest <= until:
        return until
    end = float(2.0 ** np.ceil(np.log2(latest)))
    below = float(np.nextafter(np.float32(end), np.float32(0.0)))
    warned = warn_of_rounded_times(actions, times.size, below, np.dtype(np.float32), stacklevel=4)
    return np.inf if warned else end


def _pieces_of(
    codes: np.ndarray, numbers: np.ndarray, tables: np.ndarray, samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return starts (rows, pieces) and coefficients (rows, pieces, count) of a signal; rows is 1 or `samples`."""
    count = int(codes[signal_layout.COEFFICIENT_COUNT])
    if codes[signal_layout.KIND] != signal_layout.TABLE:
        first = codes[signal_layout.FIRST_COEFFICIENT]
        return np.zeros((len(numbers), 1)), numbers[:, None, first : first + count]
    pieces, start = int(codes[signal_layout.PIECES]), int(codes[signal_layout.TABLE_START])
    rows = samples if codes[signal_layout.TABLE_STRIDE] else 1
    table = tables[start : start + rows * pieces * (1 + count)].reshape(rows, -1)
    return table[:, :pieces], table[:, pieces:].reshape(rows, pieces, count)


def _waves_of(codes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return amplitudes, angular frequencies and phases of the sines of a signal, (rows, sines, 3)."""
    first, count = codes[signal_layout.SINES], codes[signal_layout.SINE_COUNT]
    return numbers[:, first : first + 3 * count].reshape(len(numbers), -1, 3)


def _parts(*arrays: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Return arrays (rows, ...) in parts of ROWS rows. Arrays with one row belong to all rows of the others."""
    for first in range(0, max(map(len, arrays)), ROWS):
        yield [x[first : first + ROWS] if len(x) > 1 else x for x in arrays]


def _largest_error(
    since: np.ndarray, coefficients: np.ndarray, waves: np.ndarray, *, duration: float
) -> tuple[float, float]:
    """Return the largest error of a signal relative to the largest value in a row, and the time of this error.

    It is the slope at the ends of each piece times the distance between two times in float32. Of sines, the largest
    values and slopes add up.
    """
    used = since < duration
    until = np.minimum(np.concatenate([since[:, 1:], np.full((len(since), 1), duration)], 1), duration)
    length = np.where(used, until - since, 0.0)
    powers, ends = np.arange(coefficients.shape[-1]), np.stack([np.zeros_like(length), length])[..., None]
    coefficients = np.where(used[..., None], coefficients, 0.0)
    amplitudes = np.abs(waves[..., 0])
    values = np.abs((coefficients * ends**powers).sum(-1)).max((0, 2)) + amplitudes.sum(-1)  # (rows,)
    slopes = np.abs((coefficients[..., 1:] * powers[1:] * ends ** powers[:-1]).sum(-1)).max(0)  # (rows, pieces)
    slopes = slopes + (amplitudes * np.abs(waves[..., 1])).sum(-1)[:, None]
    largest = np.where(values > 0.0, values, np.inf)[:, None]
    errors = slopes / largest * np.spacing(until.astype(np.float32))
    row, piece = np.unravel_index(np.argmax(errors), errors.shape)
    return float(errors.max()), float(np.broadcast_to(until, errors.shape)[row, piece])
