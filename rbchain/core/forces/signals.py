"""Signals over time, with two derivatives, which drives, wrenches and currents read in every evaluation.

A signal is a constant, a polynomial or a table of polynomial pieces. Sines may be added to the latter two. All lanes
share the kind of a signal. Coefficients may differ between samples, and each lane has its own time, s.

In all kernels, `s` is the number of the signal. A coefficient of t^j has the unit of the signal, divided by s^j.
"""

import math

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, zeros_like
from ..lanes.trig import sincos
from . import signal_layout as signal


@kernel
def set_sample_signals(actions, lane):
    """Set the signals of a lane when a new sample starts in it, after its row of numbers has been set.

    Writes `actions.values` (signals, 3, lanes), `pieces` (signals, rows, lanes) and `windows`
    (WINDOW_ROWS, signals, lanes) of the lane.
    """
    for s in range(actions.shared.signals.shape[1]):
        forget_piece(actions, s, lane)
        actions.windows[signal.WINDOW_FIRST, s, lane] = 0
        actions.windows[signal.WINDOW_LAST, s, lane] = actions.shared.signals[signal.PIECES, s] - 1
        if actions.shared.signals[signal.KIND, s] == signal.CONSTANT:
            actions.values[s, signal.VALUE, lane] = actions.numbers[
                actions.shared.signals[signal.FIRST_COEFFICIENT, s], lane
            ]
            actions.values[s, signal.RATE, lane] = constant_like(actions.values, 0.0)
            actions.values[s, signal.ACCELERATION, lane] = constant_like(actions.values, 0.0)


@kernel
def forget_piece(actions, s, lane):
    """Let the next evaluation find the piece of signal s.

    Writes `actions.pieces` (signals, rows, lanes).
    """
    actions.pieces[s, signal.PIECE_SINCE, lane] = constant_like(actions.pieces, math.inf)


@kernel
def evaluate_signals(actions, k):
    """Compute the values and derivatives of all signals at the time of each lane.

    Writes `actions.values` (signals, 3, lanes) and, when a lane enters another piece of a table, `actions.pieces`.
    """
    for s in range(actions.shared.signals.shape[1]):
        kind = actions.shared.signals[signal.KIND, s]
        if kind == signal.TABLE:
            for lane in range(actions.time.shape[1]):
                t = actions.time[0, lane]
                if not (actions.pieces[s, signal.PIECE_SINCE, lane] <= t < actions.pieces[s, signal.PIECE_UNTIL, lane]):
                    find_piece(actions, s, t, lane)
            elapsed = actions.time[0, k] - actions.pieces[s, signal.PIECE_ORIGIN, k]
            evaluate_polynomial(actions, s, actions.pieces[s], signal.PIECE_COEFFICIENTS, elapsed, k)
        elif kind == signal.POLYNOMIAL:
            evaluate_polynomial(
                actions, s, actions.numbers, actions.shared.signals[signal.FIRST_COEFFICIENT, s], actions.time[0, k], k
            )
        for harmonic in range(actions.shared.signals[signal.SINE_COUNT, s]):
            add_sine(actions, s, actions.shared.signals[signal.SINES, s] + 3 * harmonic, k)


@kernel
def start_of_table(actions, s, lane):
    """Return the index of the first number of signal s in `SharedActions.tables` for the sample in a lane.

    `SharedActions.tables` is (m,).
    """
    codes = actions.shared.signals
    return codes[signal.TABLE_START, s] + codes[signal.TABLE_STRIDE, s] * actions.sample[lane]


@kernel
def piece_at(actions, s, t, first, last, lane):
    """Return the piece of a table that applies at time t, among the pieces from `first` to `last`.

    t is in s; `first`, `last` and the result are numbers of pieces.
    """
    start, low, high = start_of_table(actions, s, lane), first, last
    while low < high:
        middle = (low + high + 1) // 2
        if actions.shared.tables[start + middle] <= t:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def find_piece(actions, s, t, lane):
    """Load the piece of a table that applies at time t; the first and the last one of the window extend beyond it.

    Writes `actions.pieces` (signals, rows, lanes); times are in s.
    """
    tables, pieces, count = (
        actions.shared.tables,
        actions.shared.signals[signal.PIECES, s],
        actions.shared.signals[signal.COEFFICIENT_COUNT, s],
    )
    first, last = actions.windows[signal.WINDOW_FIRST, s, lane], actions.windows[signal.WINDOW_LAST, s, lane]
    start, low = start_of_table(actions, s, lane), piece_at(actions, s, t, first, last, lane)
    since = tables[start + low] if low > first else -math.inf
    until = tables[start + low + 1] if low < last else math.inf
    actions.pieces[s, signal.PIECE_SINCE, lane] = constant_like(actions.pieces, since)
    actions.pieces[s, signal.PIECE_UNTIL, lane] = constant_like(actions.pieces, until)
    actions.pieces[s, signal.PIECE_ORIGIN, lane] = constant_like(actions.pieces, tables[start + low])
    for j in range(count):
        coefficient = tables[start + pieces + low * count + j]
        actions.pieces[s, signal.PIECE_COEFFICIENTS + j, lane] = constant_like(actions.pieces, coefficient)


@kernel
def evaluate_polynomial(actions, s, coefficients, first, t, k):
    """Compute the sum of coefficients[first + j] t^j and its first two derivatives, by Horner's rule.

    `coefficients` is (m, lanes), and t in s. Writes `actions.values` (signals, 3, lanes).
    """
    value = zeros_like(t)
    rate, half_acceleration = value, value
    for j in range(actions.shared.signals[signal.COEFFICIENT_COUNT, s] - 1, -1, -1):
        half_acceleration = half_acceleration * t + rate
        rate = rate * t + value
        value = value * t + coefficients[first + j, k]
    actions.values[s, signal.VALUE, k] = value
    actions.values[s, signal.RATE, k] = rate
    actions.values[s, signal.ACCELERATION, k] = half_acceleration + half_acceleration


@kernel
def add_sine(actions, s, at, k):
    """Add a sin(w t + phase) to `actions.values` (signals, 3, lanes) of signal s.

    a, w, rad/s, and the phase, rad, are three numbers that start at index `at` of `actions.numbers` (m, lanes).
    """
    a, w, phase = actions.numbers[at, k], actions.numbers[at + 1, k], actions.numbers[at + 2, k]
    sine, cosine = sincos(w * actions.time[0, k] + phase)
    actions.values[s, signal.VALUE, k] = actions.values[s, signal.VALUE, k] + a * sine
    actions.values[s, signal.RATE, k] = actions.values[s, signal.RATE, k] + a * w * cosine
    actions.values[s, signal.ACCELERATION, k] = actions.values[s, signal.ACCELERATION, k] - a * w * w * sine
