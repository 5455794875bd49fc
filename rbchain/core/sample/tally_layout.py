"""Rows of `Stepper.tally`; the first RECORDED are also the columns of `Outcome.tally`."""

STATUS, STEPS, REJECTIONS, EVALUATIONS, IS_STIFF = 0, 1, 2, 3, 4
PARTS = 5  # accepted parts of steps, which StepRecord counts
RECORDED = 6
SAMPLE, SAVED, AFTER_REJECTION = 6, 7, 8
STIFF_STEPS, SMOOTH_STEPS = 9, 10  # see `stiffness`
BREAK = 11  # class of the breaks of signals at the end of the step (`forces.signal_breaks`)
ROWS = 12
