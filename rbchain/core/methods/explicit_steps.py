"""Explicit Runge-Kutta methods whose dense output is of fourth degree. `interface` describes the arguments."""

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like
from ..linear.sensitivities import evaluate_with_sensitivities
from ..sample import control_layout as controls
from ..tree.kinematics import normalize_positions
from .interface import MethodFunctions
from .runge_kutta import advance, combine, interpolate_runge_kutta, polynomial_of_runge_kutta
from .stiffness import detect_stiffness
from .tableaus import Tableau


@kernel
def compute_stages(block, stepper, tableau, k):
    """Compute the stages of a step from y, whose rate is rates[0].

    Writes the end of the step to y_new, and the rate there to the last entry of rates. Its quaternions are normalized
    before, so this rate is the first of the next step, and of another motion that starts there.
    """
    for stage in range(1, tableau.c.shape[0]):
        advance_to_stage(block, stepper, tableau, stage, k)
        evaluate_stage(block, stepper, tableau, stage, k)


@kernel
def advance_to_stage(block, stepper, tableau, stage, k):
    """Write the state of a stage to y_new. The last stage is the end of the step."""
    advance(tableau.A[stage], stage, stepper.y, stepper.control[controls.H, k], stepper.rates, stepper.y_new, k)
    if stage == tableau.c.shape[0] - 1:
        normalize_positions(block.model, stepper.y_new, k)


@kernel
def evaluate_stage(block, stepper, tableau, stage, k):
    """Compute the rate of the stage in y_new, and store it in `Stepper.rates[stage]` (rows, lanes)."""
    h = stepper.control[controls.H, k]
    t = stepper.control[controls.TIME, k] + constant_like(h, tableau.c[stage]) * h
    evaluate_with_sensitivities(block, stepper.y_new, t, stepper.rates[stage], k)


@kernel
def compute_runge_kutta_step(block, stepper, tableau, tolerances, k):
    """Compute the stages of a step, its end y_new, and the difference from the embedded method, `change`."""
    compute_stages(block, stepper, tableau, k)
    h = stepper.control[controls.H, k]
    for j in range(stepper.y.shape[0]):
        stepper.change[j, k] = h * combine(tableau.error, tableau.error.shape[0], stepper.rates, j, k)


@kernel
def evaluations_of_runge_kutta_step(block, stepper, tableau, lane):
    """Return the number of evaluations in a step, whose first rate is known."""
    return tableau.c.shape[0] - 1


RUNGE_KUTTA = MethodFunctions(
    tableau=Tableau,
    take_step=compute_runge_kutta_step,
    evaluations=evaluations_of_runge_kutta_step,
    interpolate=interpolate_runge_kutta,
    polynomial=polynomial_of_runge_kutta,
    detect_stiffness=detect_stiffness,
    has_quartic=True,
)
