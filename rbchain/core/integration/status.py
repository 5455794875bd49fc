"""How a sample's simulation ends: the integers that compiled code writes, of which `errors.Status` is made."""

DONE = 0
STEP_UNDERFLOW = 1
NOT_FINITE = 2
TOO_MANY_STEPS = 3
STOPPED = 4
TOO_STIFF = 5
INVALID_PARAMETERS = 6  # set by studies
USER_FUNCTION_FAILED = 7

# The status of a lane whose sample has not ended, or which has no sample.
RUNNING = -1
IDLE = -2
