"""How a sample's simulation ends, as the integers that compiled code writes; `rbchain.errors.Status` gives the sentences."""

DONE = 0
STEP_UNDERFLOW = 1
NOT_FINITE = 2
TOO_MANY_STEPS = 3
STOPPED = 4
TOO_STIFF = 5
USER_FUNCTION_FAILED = 6
