"""Breaks of signals: the times at which steps with error control end, and the length of steps over smooth knots.

A knot is the time between two pieces of a table. Each knot of each sample has a class:

    KNOT_SAME     both pieces are the same polynomial, as in a constant stretch
    KNOT_SMOOTH   the signal and its slope are continuous
    KNOT_KINK     the slope jumps
    KNOT_JUMP     a value that the rate of the state depends on jumps

Steps end at kinks and jumps, the breaks. Between two breaks, evaluations use only the pieces in between. So the last
stage of a step uses the value before the break, and the first stage of the next step the value after it. The round-off
of their times has no effect.

A step may pass smooth knots: a table can have thousands of them in one step. The stages of a step must not miss a
pulse between them. Therefore the signal in the step has to agree with the polynomial of degree 5 that has the same
values at NODES. The step is halved until it does, or until it ends at the first smooth knot. For signals whose
acceleration acts, the rate has to agree instead of the value.

A sum of sines can be a pulse as well, such as a Fourier series. A bound of its difference from the polynomial limits
the step. On a step of length h, sin(w t + phase) differs from the polynomial by at most (w h / 2)^6 / (16 * 6!). The
reason is that the product of the distances to the six nodes is at most (h / 2)^6 / 16. Bounds above 1 count as 1. The
sum of the bounds, each times the amplitude, has to be small relative to the sum of the amplitudes.
"""

import math

from ...compiling.jit import kernel, routine
from . import signal_layout as signal
from .signals import forget_piece, piece_at, start_of_table

KNOT_SAME, KNOT_SMOOTH, KNOT_KINK, KNOT_JUMP = 0, 1, 2, 3
# Times that differ by less than this fraction are equal: times of different clocks differ by their round-off.
RELATIVE_ROUND_OFF = 1e-14
# Chebyshev points of a step, as fractions of its length.
NODES = tuple(0.5 - 0.5 * math.cos(math.pi * j / 5) for j in range(6))
# At this angle w h, the bound of a sine's difference from the polynomial of a step is 1.
SINE_LIMIT = 2.0 * (16.0 * 720.0) ** (1.0 / 6.0)
NEAR_TOLERANCE = 1.1  # the multiple of the tolerance that the bound of a sum of sines may reach


@kernel
def is_reached(time, t):
    """Whether the time t is at or after another one; both are in s."""
    return time <= t * (1.0 + RELATIVE_ROUND_OFF)


@kernel
def start_of_piece(actions, s, piece, lane):
    """Return the time at which a piece of a table starts, s; infinity for the number of pieces."""
    if piece >= actions.shared.signals[signal.PIECES, s]:
        return math.inf
    return actions.shared.tables[start_of_table(actions, s, lane) + piece]


@kernel
def next_knot(actions, s, piece, least, lane):
    """Return the first piece from `piece`, whose start has at least a class; the number of pieces if none has."""
    codes = actions.shared.signals
    pieces, at = codes[signal.PIECES, s], codes[signal.KNOTS, s]
    row = min(actions.sample[lane], actions.shared.knots.shape[0] - 1)
    while piece < pieces and actions.shared.knots[row, at + piece] < least:
        piece += 1
    return piece


@kernel
def begin_breaks(actions, t, lane):
    """Find the first breaks of all signals for a lane that starts at time t, s.

    Writes `actions.windows` (WINDOW_ROWS, signals, lanes).
    """
    for s in range(actions.shared.signals.shape[1]):
        if actions.shared.signals[signal.KIND, s] == signal.TABLE:
            piece = piece_at(actions, s, t, 0, actions.shared.signals[signal.PIECES, s] - 1, lane)
            actions.windows[signal.WINDOW_PASSED, s, lane] = piece
            actions.windows[signal.WINDOW_NEXT, s, lane] = next_knot(actions, s, piece + 1, KNOT_KINK, lane)
            actions.windows[signal.WINDOW_KNOT, s, lane] = next_knot(actions, s, piece + 1, KNOT_SMOOTH, lane)
    use_pieces_between_breaks(actions, lane)


@kernel
def use_pieces_between_breaks(actions, lane):
    """Let evaluations use the pieces from the last break that a lane has passed to the next one.

    Writes `actions.windows` (WINDOW_ROWS, signals, lanes).
    """
    for s in range(actions.shared.signals.shape[1]):
        if actions.shared.signals[signal.KIND, s] == signal.TABLE:
            actions.windows[signal.WINDOW_FIRST, s, lane] = actions.windows[signal.WINDOW_PASSED, s, lane]
            actions.windows[signal.WINDOW_LAST, s, lane] = actions.windows[signal.WINDOW_NEXT, s, lane] - 1
            forget_piece(actions, s, lane)


@kernel
def pass_breaks(actions, t, lane):
    """Record which breaks a lane has passed at time t. Returns the largest class of its last breaks, or KNOT_SAME.

    t is in s. Writes `actions.windows` (WINDOW_ROWS, signals, lanes).
    """
    largest, windows = KNOT_SAME, actions.windows
    for s in range(actions.shared.signals.shape[1]):
        if actions.shared.signals[signal.KIND, s] != signal.TABLE:
            continue
        while is_reached(start_of_piece(actions, s, windows[signal.WINDOW_NEXT, s, lane], lane), t):
            piece = windows[signal.WINDOW_NEXT, s, lane]
            is_jump = next_knot(actions, s, piece, KNOT_JUMP, lane) == piece
            largest = max(largest, KNOT_JUMP if is_jump else KNOT_KINK)
            windows[signal.WINDOW_PASSED, s, lane] = piece
            windows[signal.WINDOW_NEXT, s, lane] = next_knot(actions, s, piece + 1, KNOT_KINK, lane)
        while is_reached(start_of_piece(actions, s, windows[signal.WINDOW_KNOT, s, lane], lane), t):
            windows[signal.WINDOW_KNOT, s, lane] = next_knot(
                actions, s, windows[signal.WINDOW_KNOT, s, lane] + 1, KNOT_SMOOTH, lane
            )
    return largest


@kernel
def next_break(actions, until, lane):
    """Return the time of the first break that a lane has not passed, s, or `until`, s, if that is earlier."""
    first = until
    for s in range(actions.shared.signals.shape[1]):
        if actions.shared.signals[signal.KIND, s] == signal.TABLE:
            time = start_of_piece(actions, s, actions.windows[signal.WINDOW_NEXT, s, lane], lane)
            if time < first * (1.0 - RELATIVE_ROUND_OFF):
                first = time
    return first


@kernel
def shortest_period(actions, lane):
    """Return the shortest period of the sines that act on a lane, s; infinity without any."""
    shortest, numbers = math.inf, actions.numbers
    for s in range(actions.shared.signals.shape[1]):
        for harmonic in range(actions.shared.signals[signal.SINE_COUNT, s]):
            at = actions.shared.signals[signal.SINES, s] + 3 * harmonic
            amplitude, w = float(numbers[at, lane]), abs(float(numbers[at + 1, lane]))
            if actions.shared.signals[signal.CHECKED_ORDER, s] >= 0 and amplitude != 0.0 and w > 0.0:
                shortest = min(shortest, 2.0 * math.pi / w)
    return shortest


@kernel
def resolved_length(actions, t, length, tolerance, lane):
    """Return the length of a step from t, at most `length`, in which no signal has a pulse that the step may miss.

    `tolerance` is the largest difference of a signal from a polynomial, relative to the signal. t and the lengths are
    in s.
    """
    for s in range(actions.shared.signals.shape[1]):
        if actions.shared.signals[signal.KIND, s] == signal.TABLE:
            first = start_of_piece(actions, s, actions.windows[signal.WINDOW_KNOT, s, lane], lane) - t
            while first < length * (1.0 - RELATIVE_ROUND_OFF) and not agrees(actions, s, t, length, tolerance, lane):
                length = max(first, 0.5 * length)
        if actions.shared.signals[signal.CHECKED_ORDER, s] >= 0:
            length = length_for_sines(actions, s, length, tolerance, lane)
    return length


@kernel
def length_for_sines(actions, s, length, tolerance, lane):
    """Return the length of a step, at most `length`, that resolves the sines of signal s.

    The bound falls with at most the sixth power of the length, so the lengths approach the result from above. Both
    lengths are in s.
    """
    bound = bound_of_sines(actions, s, length, lane)
    while bound > NEAR_TOLERANCE * tolerance:
        length *= (tolerance / bound) ** (1.0 / 6.0)
        bound = bound_of_sines(actions, s, length, lane)
    return length


@kernel
def bound_of_sines(actions, s, length, lane):
    """Return the bound of the difference of the sines of signal s from a polynomial, relative to their amplitudes.

    The length is in s.
    """
    numbers, total, bound = actions.numbers, 0.0, 0.0
    for harmonic in range(actions.shared.signals[signal.SINE_COUNT, s]):
        at = actions.shared.signals[signal.SINES, s] + 3 * harmonic
        amplitude, w = abs(float(numbers[at, lane])), abs(float(numbers[at + 1, lane]))
        if actions.shared.signals[signal.CHECKED_ORDER, s] == 1:
            amplitude *= w
        angle = min(w * length / SINE_LIMIT, 1.0)
        total += amplitude
        bound += amplitude * angle**6
    return bound / total if total > 0.0 else 0.0


@routine
def agrees(actions, s, t, length, tolerance, lane):
    """Whether signal s agrees with the polynomial of a step, in Newton's form with divided differences.

    t and the length are in s. Overwrites `actions.differences` (nodes, lanes).
    """
    differences, first = actions.differences, actions.windows[signal.WINDOW_PASSED, s, lane]
    last, points = (
        actions.windows[signal.WINDOW_NEXT, s, lane] - 1,
        max(2, actions.shared.signals[signal.COEFFICIENT_COUNT, s] - 2),
    )
    largest = 0.0
    for j in range(len(NODES)):
        x = t + NODES[j] * length
        value = value_in_piece(actions, s, piece_at(actions, s, x, first, last, lane), x, lane)
        differences[j, lane] = value
        largest = max(largest, abs(value))
    for order in range(1, len(NODES)):
        for j in range(len(NODES) - 1, order - 1, -1):
            change = differences[j, lane] - differences[j - 1, lane]
            differences[j, lane] = change / (NODES[j] - NODES[j - order])
    piece, begin = piece_at(actions, s, t, first, last, lane), t
    while begin < t + length:
        following = next_knot(actions, s, piece + 1, KNOT_SMOOTH, lane)
        end = min(start_of_piece(actions, s, following, lane), t + length)
        for i in range(points):
            x = begin + (i + 0.5) / points * (end - begin)
            value, place, fitted = value_in_piece(actions, s, piece, x, lane), (x - t) / length, 0.0
            for j in range(len(NODES) - 1, -1, -1):
                fitted = fitted * (place - NODES[j]) + differences[j, lane]
            if abs(value - fitted) > tolerance * max(largest, abs(value)):
                return False
        piece, begin = following, end
    return True


@kernel
def value_in_piece(actions, s, piece, t, lane):
    """Return the value of a piece of a table at time t, or its rate if signal.CHECKED_ORDER is 1.

    t is in s.
    """
    tables, codes, start = actions.shared.tables, actions.shared.signals, start_of_table(actions, s, lane)
    count = codes[signal.COEFFICIENT_COUNT, s]
    at, elapsed = start + codes[signal.PIECES, s] + piece * count, t - tables[start + piece]
    value, rate = 0.0, 0.0
    for j in range(count - 1, -1, -1):
        rate = rate * elapsed + value
        value = value * elapsed + tables[at + j]
    return rate if codes[signal.CHECKED_ORDER, s] == 1 else value
