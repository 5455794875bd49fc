"""Rows of `Stepper.clock`, always float64, because the sum of float32 steps would drift."""

T, STEP, PREVIOUS_ERROR = 0, 1, 2
STOP = 3  # latest end of the step, s
PROPOSED = 4  # length of the step that a stop has shortened, s; else 0
START, TAKEN = 5, 6  # start and length of the last accepted step, s
REACHED, PART = 7, 8  # time that the shorter steps to a saved time have reached, and their length, s
RATE = 9  # time at which a fixed step computes its first rate, s
ROWS = 10
