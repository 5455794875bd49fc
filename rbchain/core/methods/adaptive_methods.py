"""The parts of an adaptive step that depend on the method, which `choose` selects at compile time from its tableau."""

from ...compiling.jit import choose, kernel
from ..lanes.lanes import constant_like, select
from ..sample.records import CONTROL_FAILURE, CONTROL_H
from .explicit_steps import compute_stages
from .radau import (
    compute_radau_step,
    evaluations_of_radau_step,
    forget_polynomial,
    growth_after_iterations,
    keep_polynomial,
)
from .radau_tableau import is_radau
from .rosenbrock import compute_rosenbrock_step, evaluations_of_rosenbrock_step
from .runge_kutta import combine
from .stiffness import detect_stiffness
from .tableaus import is_rosenbrock

# --- a step -----------------------------------------------------------------------------------------------------------


@kernel
def error_or_failure(stepper, tableau, error, k):
    """Return the error of a step, or CONTROL_FAILURE."""
    failure = stepper.control[CONTROL_FAILURE, k]
    return select(failure > constant_like(error, 0.0), failure, error)


@kernel
def compute_runge_kutta_step(block, stepper, tableau, tolerances, k):
    """Compute the stages of a step, its end y_new, and the difference from the embedded method, `change`."""
    compute_stages(block, stepper, tableau, k)
    h = stepper.control[CONTROL_H, k]
    for j in range(stepper.y.shape[0]):
        stepper.change[j, k] = h * combine(tableau.error, tableau.error.shape[0], stepper.rates, j, k)


compute_step_without_iterations = choose(
    lambda block, stepper, tableau, *_: is_rosenbrock(tableau),
    compute_rosenbrock_step,
    compute_runge_kutta_step,
)

# Compute the end of a step and an estimate of its error.
compute_step = choose(
    lambda block, stepper, tableau, *_: is_radau(tableau),
    compute_radau_step,
    lambda block, stepper, tableau, tolerances, k: compute_step_without_iterations(
        block, stepper, tableau, tolerances, k
    ),
)

evaluations_without_iterations = choose(
    lambda block, stepper, tableau, lane: is_rosenbrock(tableau),
    lambda block, stepper, tableau, lane: evaluations_of_rosenbrock_step(block, stepper, tableau),
    lambda block, stepper, tableau, lane: tableau.c.shape[0] - 1,
)

# The number of evaluations of the dynamics in a step.
evaluations_of_step = choose(
    lambda block, stepper, tableau, lane: is_radau(tableau),
    evaluations_of_radau_step,
    lambda block, stepper, tableau, lane: evaluations_without_iterations(block, stepper, tableau, lane),
)

# Return the error of a step, or the number that shortens an implicit step that has failed.
error_of_step = choose(
    lambda stepper, tableau, *_: is_radau(tableau) or is_rosenbrock(tableau),
    error_or_failure,
    lambda stepper, tableau, error, k: error,
)

# Return the ratio of the next step length to this one, of which slow iterations allow a part only.
growth_of_iteration = choose(
    lambda stepper, tableau, *_: is_radau(tableau),
    growth_after_iterations,
    lambda stepper, tableau, growth, lane: growth,
)

# Store the accepted steps, and forget those of the last sample, from which a method predicts the next step.
keep_prediction = choose(
    lambda stepper, tableau, *_: is_radau(tableau), keep_polynomial, lambda stepper, tableau, accepted, k: None
)
forget_prediction = choose(
    lambda stepper, tableau, *_: is_radau(tableau), forget_polynomial, lambda stepper, tableau, lane: None
)

# Detect whether a sample is stiff for an explicit method.
update_stiffness = choose(
    lambda stepper, tableau, lane: is_rosenbrock(tableau) or is_radau(tableau),
    lambda stepper, tableau, lane: None,
    detect_stiffness,
)
