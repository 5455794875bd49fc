"""Rows of `Stepper.control`, in the precision of the states."""

H = 0  # length of the step, s
ERROR = 1  # norm of the error of the step; for the first step, of the change of the rate
ACCEPTED = 2  # 1 if the step is accepted, else 0
NEW = 3  # 1 if the lane has just received its sample, else 0
STATE_NORM = 4  # norm of the state, for the first step
RATE_NORM = 5  # norm of the rate, for the first step
EULER_STEP = 6  # length of the Euler step that estimates the first step, s
TIME = 7  # time at the start of the step, s
FAILURE = 8  # of an implicit step: 0, or the error that shortens it
SAVES, NEXT_H = 9, 10  # 1 while a lane computes a saved state; meanwhile the length of its next step
MEETING = 11  # fraction of a step of time stepping at which its second part starts; 1 without one
ROWS = 12
