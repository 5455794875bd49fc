"""The sampled controllers of samples with adaptive steps. `life` calls them in order."""

from ...compiling.jit import kernel, only_if, routine
from ..lanes.lanes import constant_like, select
from ..linear.sensitivities import close_columns_of_start, evaluate_with_sensitivities, measures_closed_columns
from ..sample import clock_layout as clocks, control_layout as controls, tally_layout as tallies
from ..sample.rate import allow_calls, has_failed_call
from ..sample.status import RUNNING, USER_FUNCTION_FAILED
from ..tree import sampler_layout as sampler
from ..tree.sampler_layout import has_samplers
from .contact_events import restart_after_jump
from .sampled_controllers import has_changed, run_controllers
from .step_lengths import set_step


@only_if(has_samplers)
@kernel
def start_controllers(block, stepper, batch, k):
    """Run the sampled controllers of new lanes that have an instant at the start."""
    close_columns_of_new_lanes(block, stepper, k)
    run_controllers(block, stepper, batch, False, k)


@only_if(measures_closed_columns)
@kernel
def close_columns_of_new_lanes(block, stepper, k):
    """Project the columns of new lanes, before sampled controllers measure them; other lanes are unchanged."""
    y, y_new, control = stepper.y, stepper.y_new, stepper.control
    for j in range(y.shape[0]):
        y_new[j, k] = y[j, k]
    hold_running_lanes(block, stepper, True)
    close_columns_of_start(block, y_new, control[controls.NEW, k], control[controls.TIME, k], stepper.rates[1], k)
    hold_running_lanes(block, stepper, False)
    is_new = control[controls.NEW, k] > constant_like(y, 0.0)
    for j in range(y.shape[0]):
        y[j, k] = select(is_new, y_new[j, k], y[j, k])


@kernel
def hold_running_lanes(block, stepper, held):
    """Stop or allow the calls of user functions for the lanes whose sample has started before."""
    for lane in range(stepper.y.shape[1]):
        is_new = stepper.control[controls.NEW, lane] > constant_like(stepper.y, 0.0)
        if stepper.tally[tallies.STATUS, lane] == RUNNING and not is_new:
            allow_calls(block, not held, lane)


@only_if(has_samplers)
@routine
def run_controllers_at_stops(block, stepper, tableau, batch, tolerances, k):
    """Run the sampled controllers of the lanes whose step has ended at a stop, and compute the rates with new outputs.

    Lanes without a stop keep their rates.
    """
    y, y_new, rates, tally = stepper.y, stepper.y_new, stepper.rates, stepper.tally
    if run_controllers(block, stepper, batch, False, k) == 0:
        return
    flags = block.loads.actions.sampled.flags
    for lane in range(y.shape[1]):
        if has_changed(block, lane):
            tally[tallies.EVALUATIONS, lane] += 1
            if has_failed_call(block, lane):
                tally[tallies.STATUS, lane] = USER_FUNCTION_FAILED
            elif tally[tallies.STATUS, lane] == RUNNING:
                set_step(block, stepper, tableau, batch, tolerances, stepper.clock[clocks.PROPOSED, lane], lane)
                restart_after_jump(block, lane)
        elif tally[tallies.STATUS, lane] == RUNNING:
            allow_calls(block, False, lane)
    for j in range(y.shape[0]):
        y_new[j, k] = y[j, k]
    evaluate_with_sensitivities(block, y_new, stepper.control[controls.TIME, k], rates[1], k)
    is_changed = flags[sampler.FLAG_HAS_CHANGED, k] > constant_like(y, 0.0)
    for j in range(y.shape[0]):
        rates[0, j, k] = select(is_changed, rates[1, j, k], rates[0, j, k])
    for lane in range(y.shape[1]):
        if tally[tallies.STATUS, lane] == RUNNING and not has_changed(block, lane):
            allow_calls(block, True, lane)
