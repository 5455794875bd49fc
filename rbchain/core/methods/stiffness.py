"""Stiffness detection: whether stability, and not accuracy, limits the steps of an explicit Runge-Kutta method.

The last two stages of a step of the methods of Dormand and Prince are at the same time, at states g and y_new. Then

    h |lambda| = h |f(y_new) - f(g)| / |y_new - g|

estimates the largest eigenvalue lambda of the Jacobian. A sample is stiff if the estimate exceeds the limit of
stability in STIFF_STEPS steps without SMOOTH_STEPS others in a row between them.

Source: Hairer and Wanner (1996), *Solving Ordinary Differential Equations II*, section IV.2, and their codes DOPRI5 and
DOP853.
"""

from ...compiling.jit import kernel
from ..sample import clock_layout as clocks, tally_layout as tallies

STIFF_STEPS, SMOOTH_STEPS = 15, 6
STEPS_BETWEEN_TESTS = 100  # while no step is stiff


@kernel
def detect_stiffness(stepper, tableau, lane):
    """Update the counts of stiff steps in a lane after an accepted step."""
    tally = stepper.tally
    if tally[tallies.STIFF_STEPS, lane] == 0 and tally[tallies.STEPS, lane] % STEPS_BETWEEN_TESTS != 0:
        return
    if is_limited_by_stability(stepper, tableau, lane):
        tally[tallies.SMOOTH_STEPS, lane] = 0
        tally[tallies.STIFF_STEPS, lane] += 1
        if tally[tallies.STIFF_STEPS, lane] >= STIFF_STEPS:
            tally[tallies.IS_STIFF, lane] = 1
            tally[tallies.STIFF_STEPS, lane] = 0
        return
    tally[tallies.SMOOTH_STEPS, lane] += 1
    if tally[tallies.SMOOTH_STEPS, lane] >= SMOOTH_STEPS:
        tally[tallies.STIFF_STEPS, lane] = 0
        tally[tallies.SMOOTH_STEPS, lane] = 0


@kernel
def is_limited_by_stability(stepper, tableau, lane):
    """Whether the estimate of h |lambda| exceeds the limit of stability."""
    rates, last = stepper.rates, tableau.c.shape[0] - 1
    rate_change, state_change = 0.0, 0.0
    for j in range(stepper.y.shape[0]):
        change = float(rates[last, j, lane]) - float(rates[last - 1, j, lane])
        rate_change += change * change
        change = 0.0
        for stage in range(last):
            change += (tableau.A[last, stage] - tableau.A[last - 1, stage]) * float(rates[stage, j, lane])
        state_change += change * change
    h, limit = stepper.clock[clocks.STEP, lane], tableau.stability_limit
    return h * h * rate_change > limit**2 * (h * h * state_change)
