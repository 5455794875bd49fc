"""Rows of `Stepper.tally`; the first RECORDED are also the columns of `Outcome.tally`."""

STATUS, STEPS, REJECTIONS, EVALUATIONS, IS_STIFF = 0, 1, 2, 3, 4
PARTS = 5  # accepted parts of steps, which StepRecord counts
BEYOND_LIMIT = 6  # number of the first dof that exceeds its position limits, counted from 1; 0 if there is none
RECORDED = 7
SAMPLE, SAVED, AFTER_REJECTION = 7, 8, 9
STIFF_STEPS, SMOOTH_STEPS = 10, 11  # see `stiffness`
BREAK = 12  # class of the breaks of signals at the end of the step (`forces.signal_breaks`)
ROWS = 13
