"""Rows of `SharedActions.signals`, and of the values, pieces and windows of signals in `BlockActions`.

The arrays are `SharedActions.signals` (ROWS, signals), and `values` (signals, 3, lanes), `pieces` (signals,
PIECE_COEFFICIENTS + most coefficients, lanes) and `windows` (WINDOW_ROWS, signals, lanes). All times are in s.
"""

# Rows of `SharedActions.signals`, one column for each signal. Indices of numbers refer to `BlockActions.numbers`.
KIND = 0  # CONSTANT, POLYNOMIAL or TABLE
FIRST_COEFFICIENT = 1  # index of the value of a constant, or of the first coefficient of a polynomial
COEFFICIENT_COUNT = 2  # number of coefficients of a polynomial, or of each piece of a table
TABLE_START = 3  # index of the table in `SharedActions.tables`: start times of all pieces, then coefficients
TABLE_STRIDE = 4  # from the table of one sample to the table of the next; 0 if all samples share one
PIECES = 5  # number of pieces of a table
SINES = 6  # index of the amplitude, angular frequency (rad/s) and phase (rad) of the first sine
SINE_COUNT = 7  # number of sines
KNOTS = 8  # column of the class of the first piece's start in `SharedActions.knots` (`signal_breaks`)
CHECKED_ORDER = 9  # 0 or 1: whether steps resolve the value or the rate; -1 if it does not act between instants
ROWS = 10
CONSTANT, POLYNOMIAL, TABLE = 0, 1, 2

# Rows of `BlockActions.values`.
VALUE, RATE, ACCELERATION = 0, 1, 2
# Rows of `BlockActions.pieces`, for the current piece of each lane: its start and end, the time at which its polynomial
# has t = 0, and its coefficients.
PIECE_SINCE, PIECE_UNTIL, PIECE_ORIGIN, PIECE_COEFFICIENTS = 0, 1, 2, 3
# Rows of `BlockActions.windows`: pieces of the table of each signal and lane.
WINDOW_FIRST, WINDOW_LAST = 0, 1  # the first and the last piece that evaluations use
WINDOW_PASSED, WINDOW_NEXT = 2, 3  # the pieces that start at the last break and at the next one (`signal_breaks`)
WINDOW_KNOT = 4  # the piece that starts at the next knot between different polynomials
WINDOW_ROWS = 5


def are_constant(signals):
    """Whether all signals of `SharedActions.signals` are constants without sines."""
    return bool(((signals[KIND] == CONSTANT) & (signals[SINE_COUNT] == 0)).all())
