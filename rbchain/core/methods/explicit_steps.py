"""The stages of an explicit Runge-Kutta method for the motion of a block."""

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like
from ..linear.sensitivities import evaluate_with_sensitivities
from ..sample.records import CONTROL_H, CONTROL_TIME
from ..tree.kinematics import normalize_positions
from .runge_kutta import advance


@kernel
def compute_stages(block, stepper, tableau, k):
    """Compute the stages of a step from y, whose rate is rates[0].

    Writes the end of the step to y_new, and the rate there to the last entry of rates. Its quaternions are normalised
    before, so that this rate is the first of the next step, and of another motion that starts there.
    """
    y, y_new, rates, h = stepper.y, stepper.y_new, stepper.rates, stepper.control[CONTROL_H, k]
    for stage in range(1, tableau.c.shape[0]):
        advance(tableau.A[stage], stage, y, h, rates, y_new, k)
        if stage == tableau.c.shape[0] - 1:
            normalize_positions(block.model, y_new, k)
        t = stepper.control[CONTROL_TIME, k] + constant_like(h, tableau.c[stage]) * h
        evaluate_with_sensitivities(block, y_new, t, rates[stage], k)
