"""Signals over time, with two derivatives, which drives, wrenches and currents read in every evaluation.

A signal is a constant, a polynomial or a table of polynomial pieces. Sines may be added to the latter two. All lanes
share the kind of a signal. Coefficients may differ between samples, and each lane has its own time.
"""

import math

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, zeros_like
from ..lanes.trig import sincos

# Rows of `SharedActions.signals`, one column for each signal. Indices of numbers refer to `BlockActions.numbers`.
SIGNAL_KIND = 0  # SIGNAL_CONSTANT, SIGNAL_POLYNOMIAL or SIGNAL_TABLE
SIGNAL_FIRST_COEFFICIENT = 1  # index of the value of a constant, or of the first coefficient of a polynomial
SIGNAL_COEFFICIENT_COUNT = 2  # number of coefficients of a polynomial, or of each piece of a table
SIGNAL_TABLE_START = 3  # index of the table in `SharedActions.tables`: start times of all pieces, then coefficients
SIGNAL_TABLE_STRIDE = 4  # from the table of one sample to the table of the next; 0 if all samples share one
SIGNAL_PIECES = 5  # number of pieces of a table
SIGNAL_SINES = 6  # index of the amplitude, angular frequency (rad/s) and phase (rad) of the first sine
SIGNAL_SINE_COUNT = 7  # number of sines
SIGNAL_KNOTS = 8  # column of the class of the first piece's start in `SharedActions.knots` (`signal_breaks`)
SIGNAL_CHECKED_ORDER = 9  # 0 or 1: whether steps resolve the value or the rate; -1 if it does not act between instants
SIGNAL_ROWS = 10
SIGNAL_CONSTANT, SIGNAL_POLYNOMIAL, SIGNAL_TABLE = 0, 1, 2

# Rows of `BlockActions.values`.
SIGNAL_VALUE, SIGNAL_RATE, SIGNAL_ACCELERATION = 0, 1, 2
# Rows of `BlockActions.pieces`, for the current piece of each lane: its start and end, the time at which its polynomial
# has t = 0, and its coefficients.
PIECE_SINCE, PIECE_UNTIL, PIECE_ORIGIN, PIECE_COEFFICIENTS = 0, 1, 2, 3
# Rows of `BlockActions.windows`: pieces of the table of each signal and lane.
WINDOW_FIRST, WINDOW_LAST = 0, 1  # the first and the last piece that evaluations use
WINDOW_PASSED, WINDOW_NEXT = 2, 3  # the pieces that start at the last break and at the next one (`signal_breaks`)
WINDOW_KNOT = 4  # the piece that starts at the next knot between different polynomials
WINDOW_ROWS = 5


@kernel
def set_sample_signals(actions, lane):
    """Set the signals of a lane when a new sample starts in it, after its row of numbers has been set."""
    for s in range(actions.shared.signals.shape[1]):
        forget_piece(actions, s, lane)
        actions.windows[WINDOW_FIRST, s, lane] = 0
        actions.windows[WINDOW_LAST, s, lane] = actions.shared.signals[SIGNAL_PIECES, s] - 1
        if actions.shared.signals[SIGNAL_KIND, s] == SIGNAL_CONSTANT:
            actions.values[s, SIGNAL_VALUE, lane] = actions.numbers[
                actions.shared.signals[SIGNAL_FIRST_COEFFICIENT, s], lane
            ]
            actions.values[s, SIGNAL_RATE, lane] = constant_like(actions.values, 0.0)
            actions.values[s, SIGNAL_ACCELERATION, lane] = constant_like(actions.values, 0.0)


@kernel
def forget_piece(actions, s, lane):
    """Let the next evaluation find the piece of signal s."""
    actions.pieces[s, PIECE_SINCE, lane] = constant_like(actions.pieces, math.inf)


@kernel
def evaluate_signals(actions, k):
    """Compute the values and derivatives of all signals at the time of each lane.

    Writes `actions.values` (signals, 3, lanes) and, when a lane enters another piece of a table, `actions.pieces`.
    """
    for s in range(actions.shared.signals.shape[1]):
        kind = actions.shared.signals[SIGNAL_KIND, s]
        if kind == SIGNAL_TABLE:
            for lane in range(actions.time.shape[1]):
                t = actions.time[0, lane]
                if not (actions.pieces[s, PIECE_SINCE, lane] <= t < actions.pieces[s, PIECE_UNTIL, lane]):
                    find_piece(actions, s, t, lane)
            elapsed = actions.time[0, k] - actions.pieces[s, PIECE_ORIGIN, k]
            evaluate_polynomial(actions, s, actions.pieces[s], PIECE_COEFFICIENTS, elapsed, k)
        elif kind == SIGNAL_POLYNOMIAL:
            evaluate_polynomial(
                actions, s, actions.numbers, actions.shared.signals[SIGNAL_FIRST_COEFFICIENT, s], actions.time[0, k], k
            )
        for harmonic in range(actions.shared.signals[SIGNAL_SINE_COUNT, s]):
            add_sine(actions, s, actions.shared.signals[SIGNAL_SINES, s] + 3 * harmonic, k)


@kernel
def start_of_table(actions, s, lane):
    """Return the index of the first number of signal s in `SharedActions.tables` for the sample in a lane."""
    codes = actions.shared.signals
    return codes[SIGNAL_TABLE_START, s] + codes[SIGNAL_TABLE_STRIDE, s] * actions.sample[lane]


@kernel
def piece_at(actions, s, t, first, last, lane):
    """Return the piece of a table that applies at time t, among the pieces from `first` to `last`."""
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
    """Load the piece of a table that applies at time t; the first and the last one of the window extend beyond it."""
    tables, pieces, count = (
        actions.shared.tables,
        actions.shared.signals[SIGNAL_PIECES, s],
        actions.shared.signals[SIGNAL_COEFFICIENT_COUNT, s],
    )
    first, last = actions.windows[WINDOW_FIRST, s, lane], actions.windows[WINDOW_LAST, s, lane]
    start, low = start_of_table(actions, s, lane), piece_at(actions, s, t, first, last, lane)
    since = tables[start + low] if low > first else -math.inf
    until = tables[start + low + 1] if low < last else math.inf
    actions.pieces[s, PIECE_SINCE, lane] = constant_like(actions.pieces, since)
    actions.pieces[s, PIECE_UNTIL, lane] = constant_like(actions.pieces, until)
    actions.pieces[s, PIECE_ORIGIN, lane] = constant_like(actions.pieces, tables[start + low])
    for j in range(count):
        coefficient = tables[start + pieces + low * count + j]
        actions.pieces[s, PIECE_COEFFICIENTS + j, lane] = constant_like(actions.pieces, coefficient)


@kernel
def evaluate_polynomial(actions, s, coefficients, first, t, k):
    """Compute the sum of coefficients[first + j] t^j and its first two derivatives, by Horner's rule."""
    value = zeros_like(t)
    rate, half_acceleration = value, value
    for j in range(actions.shared.signals[SIGNAL_COEFFICIENT_COUNT, s] - 1, -1, -1):
        half_acceleration = half_acceleration * t + rate
        rate = rate * t + value
        value = value * t + coefficients[first + j, k]
    actions.values[s, SIGNAL_VALUE, k] = value
    actions.values[s, SIGNAL_RATE, k] = rate
    actions.values[s, SIGNAL_ACCELERATION, k] = half_acceleration + half_acceleration


@kernel
def add_sine(actions, s, at, k):
    """Add a sin(w t + phase) to signal s."""
    a, w, phase = actions.numbers[at, k], actions.numbers[at + 1, k], actions.numbers[at + 2, k]
    sine, cosine = sincos(w * actions.time[0, k] + phase)
    actions.values[s, SIGNAL_VALUE, k] = actions.values[s, SIGNAL_VALUE, k] + a * sine
    actions.values[s, SIGNAL_RATE, k] = actions.values[s, SIGNAL_RATE, k] + a * w * cosine
    actions.values[s, SIGNAL_ACCELERATION, k] = actions.values[s, SIGNAL_ACCELERATION, k] - a * w * w * sine
