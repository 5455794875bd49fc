"""Tables of signals that change more quickly than float32 resolves times."""

from __future__ import annotations

import warnings

import numpy as np

from ..core.forces import signal_layout
from ..drivers.trajectories import Actions
from ..errors import SimulationWarning

#: Values of a table that are wrong by this fraction of its largest value because of rounded times cause a warning.
LARGEST_ERROR = 1e-4
ROWS = 4096  # of a table of each sample are checked at once, which limits the memory


def warn_of_rounded_times(actions: Actions | None, samples: int, duration: float, dtype: np.dtype) -> None:
    """Warn if a simulation is in float32, and the distance of its times is too large for a table of a signal.

    The steps and the ends of pieces are in float64, but evaluations within a step have times in float32.
    """
    if actions is None or dtype != np.float32 or not (samples and 0.0 < duration < np.inf):
        return
    codes = actions.shared.signals
    acts = (codes[signal_layout.KIND] == signal_layout.TABLE) & (codes[signal_layout.CHECKED_ORDER] >= 0)
    tables = [_table_of(column, actions.shared.tables, samples) for column in codes.T[acts]]
    found = [
        _largest_error(breaks[first : first + ROWS], coefficients[first : first + ROWS], duration)
        for breaks, coefficients in tables
        for first in range(0, len(coefficients), ROWS)
    ]
    error, time = max(found, default=(0.0, 0.0))
    if error > LARGEST_ERROR:
        warnings.warn(
            f"the simulation is in float32, in which times near {time:.6g} s are multiples of "
            f"{float(np.spacing(np.float32(time))):.2g} s. The table of a signal changes so quickly there that its "
            f"values are wrong by up to {100.0 * error:.2g} % of the maximum. Use float64 arrays for q0 and qd0",
            SimulationWarning,
            stacklevel=6,
        )


def _table_of(codes: np.ndarray, tables: np.ndarray, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return starts (rows, pieces) and coefficients (rows, pieces, count) of a table; rows is 1 or `samples`."""
    pieces, count = int(codes[signal_layout.PIECES]), int(codes[signal_layout.COEFFICIENT_COUNT])
    rows, start = samples if codes[signal_layout.TABLE_STRIDE] else 1, int(codes[signal_layout.TABLE_START])
    table = tables[start : start + rows * pieces * (1 + count)].reshape(rows, -1)
    return table[:, :pieces], table[:, pieces:].reshape(rows, pieces, count)


def _largest_error(since: np.ndarray, coefficients: np.ndarray, duration: float) -> tuple[float, float]:
    """Return the largest error of a table relative to the largest value in a row, and the time of this error.

    It is the slope at the ends of each piece times the distance between two times in float32.
    """
    used = since < duration
    until = np.minimum(np.concatenate([since[:, 1:], np.full((len(since), 1), duration)], 1), duration)
    length = np.where(used, until - since, 0.0)
    powers, ends = np.arange(coefficients.shape[-1]), np.stack([np.zeros_like(length), length])[..., None]
    coefficients = np.where(used[..., None], coefficients, 0.0)
    values = np.abs((coefficients * ends**powers).sum(-1)).max((0, 2))  # (rows,)
    slopes = np.abs((coefficients[..., 1:] * powers[1:] * ends ** powers[:-1]).sum(-1)).max(0)  # (rows, pieces)
    largest = np.where(values > 0.0, values, np.inf)[:, None]
    errors = slopes / largest * np.spacing(until.astype(np.float32))
    row, piece = np.unravel_index(np.argmax(errors), errors.shape)
    return float(errors.max()), float(until[row, piece])
