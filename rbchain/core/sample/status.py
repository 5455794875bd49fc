"""Status codes: the integers that compiled code writes when the simulation of a sample ends, as in `errors.Status`."""

DONE = 0
STEP_UNDERFLOW = 1
NOT_FINITE = 2
TOO_MANY_STEPS = 3
STOPPED = 4
TOO_STIFF = 5
INVALID_PARAMETERS = 6  # written by studies, not by compiled code
USER_FUNCTION_FAILED = 7
NOT_ASSEMBLED = 8
INITIAL_PENETRATION = 9
NO_CONTACT_MODES = 10
TIME_NOT_RESOLVED = 11
STEP_TOO_LONG = 12

# Status of a lane whose sample has not ended yet, and of a lane without a sample.
RUNNING = -1
IDLE = -2
# Status of a lane whose sample waits for functions that Python calls for the whole batch.
WAITING = -3
# Status of a lane that has not received a sample yet.
NOT_STARTED = -4
