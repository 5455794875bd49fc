"""Numbers that change with time: polynomials, tables of polynomial pieces, and sines, with their first two derivatives.

All lanes share the kind of a signal. Its coefficients may be each chain's own, and so is its time.
"""

import math

from ..simd.jit import kernel
from ..simd.lanes import like
from ..simd.trig import sincos

# Rows of `SharedActions.signals`, one column for each signal.
MOVES = 0  # CONSTANT, POLYNOMIAL (plus sines) or TABLE (plus sines)
FIRST = 1  # index of its first coefficient in the numbers
COUNT = 2  # how many coefficients a polynomial, or a piece of a table, has
TABLE_START = 3  # where in `SharedActions.tables`: the breaks of all pieces, then the coefficients of each
STRIDE = 4  # from one sample's table to the next; 0 if all samples share one
PIECES = 5
SINES = 6  # index of the first number of amplitude, angular frequency and phase of each sine
HARMONICS = 7  # how many sines
SIGNAL_ROWS = 8
CONSTANT, POLYNOMIAL, TABLE = 0, 1, 2

# Rows of `Acting.values`.
VALUE, RATE, ACCELERATION = 0, 1, 2
# Rows of `Acting.pieces`: times between which a piece holds, the time it counts from, and its coefficients.
SINCE, UNTIL, ORIGIN, COEFFICIENTS = 0, 1, 2, 3


@kernel
def take_signals(acting, lane):
    """Set the signals of a lane in which a new sample starts, whose numbers it holds."""
    for s in range(acting.shared.signals.shape[1]):
        acting.pieces[s, SINCE, lane] = like(acting.pieces, math.inf)
        if acting.shared.signals[MOVES, s] == CONSTANT:
            acting.values[s, VALUE, lane] = acting.numbers[acting.shared.signals[FIRST, s], lane]
            acting.values[s, RATE, lane] = like(acting.values, 0.0)
            acting.values[s, ACCELERATION, lane] = like(acting.values, 0.0)


@kernel
def follow_signals(acting, k):
    """Values and derivatives of all signals at the time of each lane."""
    for s in range(acting.shared.signals.shape[1]):
        moves = acting.shared.signals[MOVES, s]
        if moves == TABLE:
            for lane in range(acting.time.shape[1]):
                t = acting.time[0, lane]
                if not (acting.pieces[s, SINCE, lane] <= t < acting.pieces[s, UNTIL, lane]):
                    take_piece(acting, s, t, lane)
            elapsed = acting.time[0, k] - acting.pieces[s, ORIGIN, k]
            evaluate_polynomial(acting, s, acting.pieces[s], COEFFICIENTS, elapsed, k)
        elif moves == POLYNOMIAL:
            evaluate_polynomial(acting, s, acting.numbers, acting.shared.signals[FIRST, s], acting.time[0, k], k)
        for harmonic in range(acting.shared.signals[HARMONICS, s]):
            add_sine(acting, s, acting.shared.signals[SINES, s] + 3 * harmonic, k)


@kernel
def take_piece(acting, s, t, lane):
    """Find the piece of a table that holds at time t; the first and the last hold beyond the table too."""
    tables, pieces, count = acting.shared.tables, acting.shared.signals[PIECES, s], acting.shared.signals[COUNT, s]
    start = acting.shared.signals[TABLE_START, s] + acting.shared.signals[STRIDE, s] * acting.chain[lane]
    low, high = 0, pieces - 1
    while low < high:
        middle = (low + high + 1) // 2
        if tables[start + middle] <= t:
            low = middle
        else:
            high = middle - 1
    since = tables[start + low] if low > 0 else -math.inf
    until = tables[start + low + 1] if low < pieces - 1 else math.inf
    acting.pieces[s, SINCE, lane] = like(acting.pieces, since)
    acting.pieces[s, UNTIL, lane] = like(acting.pieces, until)
    acting.pieces[s, ORIGIN, lane] = like(acting.pieces, tables[start + low])
    for j in range(count):
        coefficient = tables[start + pieces + low * count + j]
        acting.pieces[s, COEFFICIENTS + j, lane] = like(acting.pieces, coefficient)


@kernel
def evaluate_polynomial(acting, s, coefficients, first, t, k):
    """Value, rate and acceleration of the sum of coefficients[first + j] t^j, by Horner's rule."""
    value = like(t, 0.0) * t
    rate, half = value, value
    for j in range(acting.shared.signals[COUNT, s] - 1, -1, -1):
        half = half * t + rate
        rate = rate * t + value
        value = value * t + coefficients[first + j, k]
    acting.values[s, VALUE, k] = value
    acting.values[s, RATE, k] = rate
    acting.values[s, ACCELERATION, k] = half + half


@kernel
def add_sine(acting, s, at, k):
    """Add a sin(w t + phase) to a signal."""
    a, w, phase = acting.numbers[at, k], acting.numbers[at + 1, k], acting.numbers[at + 2, k]
    sine, cosine = sincos(w * acting.time[0, k] + phase)
    acting.values[s, VALUE, k] = acting.values[s, VALUE, k] + a * sine
    acting.values[s, RATE, k] = acting.values[s, RATE, k] + a * w * cosine
    acting.values[s, ACCELERATION, k] = acting.values[s, ACCELERATION, k] - a * w * w * sine
