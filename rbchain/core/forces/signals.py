"""Numbers that change with time: polynomials, tables of polynomial pieces, and sines, with their first two derivatives.

All lanes share the kind of a signal. Its coefficients may be each sample's own, and so is its time.
"""

import math

from ..simd.jit import kernel
from ..simd.lanes import constant_like
from ..simd.trig import sincos

# Rows of `SharedActions.signals`, one column for each signal.
SIGNAL_KIND = 0  # SIGNAL_CONSTANT, SIGNAL_POLYNOMIAL (plus sines) or SIGNAL_TABLE (plus sines)
SIGNAL_FIRST_COEFFICIENT = 1  # index of its first coefficient in the numbers
SIGNAL_COEFFICIENT_COUNT = 2  # how many coefficients a polynomial, or a piece of a table, has
SIGNAL_TABLE_START = 3  # where in `SharedActions.tables`: the breaks of all pieces, then the coefficients of each
SIGNAL_TABLE_STRIDE = 4  # from one sample's table to the next; 0 if all samples share one
SIGNAL_PIECES = 5
SIGNAL_SINES = 6  # index of the first number of amplitude, angular frequency and phase of each sine
SIGNAL_SINE_COUNT = 7  # how many sines
SIGNAL_ROWS = 8
SIGNAL_CONSTANT, SIGNAL_POLYNOMIAL, SIGNAL_TABLE = 0, 1, 2

# Rows of `BlockActions.values`.
SIGNAL_VALUE, SIGNAL_RATE, SIGNAL_ACCELERATION = 0, 1, 2
# Rows of `BlockActions.pieces`: times between which a piece holds, the time it counts from, and its coefficients.
PIECE_SINCE, PIECE_UNTIL, PIECE_ORIGIN, PIECE_COEFFICIENTS = 0, 1, 2, 3


@kernel
def set_sample_signals(actions, lane):
    """Set the signals of a lane in which a new sample starts, whose numbers it holds."""
    for s in range(actions.shared.signals.shape[1]):
        actions.pieces[s, PIECE_SINCE, lane] = constant_like(actions.pieces, math.inf)
        if actions.shared.signals[SIGNAL_KIND, s] == SIGNAL_CONSTANT:
            actions.values[s, SIGNAL_VALUE, lane] = actions.numbers[
                actions.shared.signals[SIGNAL_FIRST_COEFFICIENT, s], lane
            ]
            actions.values[s, SIGNAL_RATE, lane] = constant_like(actions.values, 0.0)
            actions.values[s, SIGNAL_ACCELERATION, lane] = constant_like(actions.values, 0.0)


@kernel
def follow_signals(actions, k):
    """Values and derivatives of all signals at the time of each lane."""
    for s in range(actions.shared.signals.shape[1]):
        moves = actions.shared.signals[SIGNAL_KIND, s]
        if moves == SIGNAL_TABLE:
            for lane in range(actions.time.shape[1]):
                t = actions.time[0, lane]
                if not (actions.pieces[s, PIECE_SINCE, lane] <= t < actions.pieces[s, PIECE_UNTIL, lane]):
                    find_piece(actions, s, t, lane)
            elapsed = actions.time[0, k] - actions.pieces[s, PIECE_ORIGIN, k]
            evaluate_polynomial(actions, s, actions.pieces[s], PIECE_COEFFICIENTS, elapsed, k)
        elif moves == SIGNAL_POLYNOMIAL:
            evaluate_polynomial(
                actions, s, actions.numbers, actions.shared.signals[SIGNAL_FIRST_COEFFICIENT, s], actions.time[0, k], k
            )
        for harmonic in range(actions.shared.signals[SIGNAL_SINE_COUNT, s]):
            add_sine(actions, s, actions.shared.signals[SIGNAL_SINES, s] + 3 * harmonic, k)


@kernel
def find_piece(actions, s, t, lane):
    """Find the piece of a table that holds at time t; the first and the last hold beyond the table too."""
    tables, pieces, count = (
        actions.shared.tables,
        actions.shared.signals[SIGNAL_PIECES, s],
        actions.shared.signals[SIGNAL_COEFFICIENT_COUNT, s],
    )
    start = (
        actions.shared.signals[SIGNAL_TABLE_START, s]
        + actions.shared.signals[SIGNAL_TABLE_STRIDE, s] * actions.sample[lane]
    )
    low, high = 0, pieces - 1
    while low < high:
        middle = (low + high + 1) // 2
        if tables[start + middle] <= t:
            low = middle
        else:
            high = middle - 1
    since = tables[start + low] if low > 0 else -math.inf
    until = tables[start + low + 1] if low < pieces - 1 else math.inf
    actions.pieces[s, PIECE_SINCE, lane] = constant_like(actions.pieces, since)
    actions.pieces[s, PIECE_UNTIL, lane] = constant_like(actions.pieces, until)
    actions.pieces[s, PIECE_ORIGIN, lane] = constant_like(actions.pieces, tables[start + low])
    for j in range(count):
        coefficient = tables[start + pieces + low * count + j]
        actions.pieces[s, PIECE_COEFFICIENTS + j, lane] = constant_like(actions.pieces, coefficient)


@kernel
def evaluate_polynomial(actions, s, coefficients, first, t, k):
    """Value, rate and acceleration of the sum of coefficients[first + j] t^j, by Horner's rule."""
    value = constant_like(t, 0.0) * t
    rate, half = value, value
    for j in range(actions.shared.signals[SIGNAL_COEFFICIENT_COUNT, s] - 1, -1, -1):
        half = half * t + rate
        rate = rate * t + value
        value = value * t + coefficients[first + j, k]
    actions.values[s, SIGNAL_VALUE, k] = value
    actions.values[s, SIGNAL_RATE, k] = rate
    actions.values[s, SIGNAL_ACCELERATION, k] = half + half


@kernel
def add_sine(actions, s, at, k):
    """Add a sin(w t + phase) to a signal."""
    a, w, phase = actions.numbers[at, k], actions.numbers[at + 1, k], actions.numbers[at + 2, k]
    sine, cosine = sincos(w * actions.time[0, k] + phase)
    actions.values[s, SIGNAL_VALUE, k] = actions.values[s, SIGNAL_VALUE, k] + a * sine
    actions.values[s, SIGNAL_RATE, k] = actions.values[s, SIGNAL_RATE, k] + a * w * cosine
    actions.values[s, SIGNAL_ACCELERATION, k] = actions.values[s, SIGNAL_ACCELERATION, k] - a * w * w * sine
