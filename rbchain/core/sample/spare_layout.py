"""Numbers of the states in `Stepper.spare`, which `saved_states` uses."""

STATE, RATE = 0, 1  # the saved state, and the rate there or at the start of the step
START, NEXT_RATE = 2, 3  # the start of the last step, and the first rate of the next one
COUNT = 4
# In time stepping with contacts, they describe where both parts of the last step meet (`step_parts`).
PART_END, PART_START = 0, 1  # the end of the first part, and the start of the second one
PART_END_RATE, PART_START_RATE = 2, 3  # the rates of the positions there
