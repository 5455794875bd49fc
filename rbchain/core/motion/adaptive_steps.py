"""The parts of adaptive steps, whose lengths the error of each step controls. `life` calls them in order."""

import math

from ...compiling.jit import kernel, only_if, routine
from ..contacts.contact_rates import has_contact_modes
from ..forces.signal_breaks import KNOT_JUMP, KNOT_SAME, begin_breaks, use_pieces_between_breaks
from ..lanes.lanes import constant_like, epsilon, select
from ..linear.sensitivities import (
    error_norm,
    evaluate_with_sensitivities,
)
from ..loops.constraint_hooks import (
    decide_rank,
    has_open_loops,
    record_starts,
    reduce_error,
    restore_rows_of_start,
)
from ..methods.adaptive_methods import (
    compute_step,
    error_of_step,
    evaluations_of_step,
    forget_prediction,
    growth_of_iteration,
    update_stiffness,
)
from ..methods.runge_kutta import (
    MIN_PREVIOUS_ERROR,
    euler_step,
    first_step,
    growth_of_step,
    nan_unless_in_range,
    shrinkage_of_step,
)
from ..sample import clock_layout as clocks, control_layout as controls, tally_layout as tallies
from ..sample.rate import allow_calls, has_failed_call, record_failed_call
from ..sample.records import ERROR_TO_SHORTEN
from ..sample.status import (
    DONE,
    IDLE,
    NOT_ASSEMBLED,
    NOT_FINITE,
    RUNNING,
    STEP_UNDERFLOW,
    STOPPED,
    TIME_NOT_RESOLVED,
    TOO_MANY_STEPS,
    USER_FUNCTION_FAILED,
)
from ..tree.kinematics import reset_quaternions
from ..tree.layout import has_actions
from .adaptive_controllers import hold_running_lanes, start_controllers
from .contact_events import (
    begin_contacts,
    project_contacts,
    restart_after_jump,
    starts_again,
)
from .contact_search import find_contacts
from .elastic_stops import passes_elastic_stop
from .event_values import interpolate_state
from .events import NO_EVENT, begin_events, check_events, is_event_not_finite
from .position_limits import check_limits_of_end
from .rollout import close_end_of_step, record_sample, save_end, save_lane
from .sampled_controllers import save_held_outputs
from .saved_states import save_interpolated_states
from .slack_springs import shorten_before_taut_springs
from .step_inspection import clear_bounds, repeats_step
from .step_lengths import longest_first_step, pass_breaks_of_lane, recall_step, set_step
from .step_records import store_step
from .work import keep_step_for_work

# Steps are shorter than the round-off of time below this fraction of it. At the start, the time counts as at least the
# fraction START of the end time.
SHORTEST_STEP, START = 1e-15, 1e-10
# A motion whose steps are shorter than the round-off of the end time after the first ones cannot reach its end. If it
# lasts longer than LONG_MOTION, s, its duration is the reason.
LONG_MOTION, FIRST_STEPS = 1e9, 1000
LARGEST_ROUND_OFF_AT_KINKS = 1e-10  # above, steps after kinks compute their first rates: true in float32 only


@routine
def end_lane(block, stepper, batch, lane):
    """Record the status and the last valid state of the sample in a lane."""
    sample, t = stepper.tally[tallies.SAMPLE, lane], stepper.clock[clocks.T, lane]
    if stepper.tally[tallies.STATUS, lane] == STOPPED:  # the state at the event is in `change`
        save_end(stepper.change, batch, sample, t, lane)
    else:
        save_end(stepper.y, batch, sample, t, lane)
    if stepper.tally[tallies.STATUS, lane] == USER_FUNCTION_FAILED:
        record_failed_call(block, batch.records, sample, lane)
    record_sample(block, stepper, batch, lane)


@kernel
def park_lane(block, stepper, lane):
    """Deactivate an idle lane: set it to the zero configuration, so that it does not slow down the other lanes."""
    allow_calls(block, False, lane)
    stepper.control[controls.H, lane] = constant_like(stepper.y, 0.0)
    for j in range(stepper.y.shape[0]):
        stepper.y[j, lane] = constant_like(stepper.y, 0.0)
    reset_quaternions(block.model, stepper.y, lane)


@routine
def start_new_lanes(block, stepper, tableau, batch, tolerances, k):
    """Compute the first rates and the first step length of the lanes with a new sample; other lanes are unchanged.

    A sample that continues an earlier call uses its next step. For other samples, the length follows from the rates at
    the start and after an Euler step: Hairer, Norsett and Wanner (1993), II.4, "starting step size".
    """
    y, y_new, change, rates, control = stepper.y, stepper.y_new, stepper.change, stepper.rates, stepper.control
    is_new = control[controls.NEW, k] > constant_like(y, 0.0)
    for lane in range(y.shape[1]):
        if control[controls.NEW, lane] > constant_like(y, 0.0):
            begin_breaks_of_lane(block, stepper.clock[clocks.T, lane], lane)
    start_controllers(block, stepper, batch, k)
    hold_running_lanes(block, stepper, True)  # the evaluations below belong to no step of these lanes
    control[controls.EULER_STEP, k] = constant_like(y, 0.0)
    for j in range(y.shape[0]):
        rates[1, j, k] = constant_like(y, 0.0)
    for stage in range(1, 2 if continue_with_steps(block, stepper) else 3):
        for j in range(y.shape[0]):
            y_new[j, k] = y[j, k] + control[controls.EULER_STEP, k] * rates[1, j, k]
        decides = 1.0 if stage == 1 else 0.0
        decide_rank(block, constant_like(y, decides) * control[controls.NEW, k], k)
        t = control[controls.TIME, k] + control[controls.EULER_STEP, k]
        evaluate_with_sensitivities(block, y_new, t, rates[stage], k)
        if stage == 1:
            record_starts(block, control[controls.NEW])
            begin_contacts(block, stepper, batch, tolerances, k)
            for j in range(y.shape[0]):
                y[j, k] = select(is_new, y_new[j, k], y[j, k])  # with the prescribed positions and velocities
                rates[0, j, k] = select(is_new, rates[1, j, k], rates[0, j, k])
            control[controls.STATE_NORM, k] = error_norm(block, y, y, y, tolerances, k)
            control[controls.RATE_NORM, k] = error_norm(block, rates[1], y, y, tolerances, k)
            for lane in range(y.shape[1]):
                length = euler_step(float(control[controls.STATE_NORM, lane]), float(control[controls.RATE_NORM, lane]))
                longest = longest_first_step(block, stepper, batch, tolerances, lane)
                control[controls.EULER_STEP, lane] = constant_like(y, min(length, longest))
    for j in range(y.shape[0]):
        change[j, k] = rates[2, j, k] - rates[1, j, k]
    control[controls.ERROR, k] = error_norm(block, change, y, y, tolerances, k)
    hold_running_lanes(block, stepper, False)
    for lane in range(y.shape[1]):
        if control[controls.NEW, lane] > constant_like(y, 0.0):
            start_lane(block, stepper, tableau, batch, tolerances, lane)


@kernel
def continue_with_steps(block, stepper):
    """Whether all lanes with a new sample continue an earlier call, and have a next step."""
    for lane in range(stepper.y.shape[1]):
        is_new = stepper.control[controls.NEW, lane] > constant_like(stepper.y, 0.0)
        if is_new and (starts_again(block, stepper, lane) or not stepper.clock[clocks.PROPOSED, lane] > 0.0):
            return False
    return True


@only_if(lambda block, *_: not has_contact_modes(block))
@kernel
def save_start(block, stepper, batch, lane):
    """Save the initial state of a lane. With modes of contacts, it has been saved before the impacts at the start."""
    save_lane(block, stepper.y, batch, stepper.tally[tallies.SAMPLE, lane], 0, lane)


@routine
def start_lane(block, stepper, tableau, batch, tolerances, lane):
    """Choose the first step length of a lane with a new sample, and save its initial state."""
    control, tally, is_first = stepper.control, stepper.tally, not starts_again(block, stepper, lane)
    control[controls.NEW, lane] = constant_like(control, 0.0)
    control[controls.H, lane] = constant_like(control, 0.0)
    forget_prediction(stepper, tableau, lane)
    if tally[tallies.STATUS, lane] == IDLE:
        return
    if is_first:
        tally[tallies.EVALUATIONS, lane] = 1 if stepper.clock[clocks.PROPOSED, lane] > 0.0 else 2
        save_start(block, stepper, batch, lane)
        begin_events(block, stepper.y, stepper.clock[clocks.T, lane], lane)
    rate, euler_length, change = (
        float(control[controls.RATE_NORM, lane]),
        float(control[controls.EULER_STEP, lane]),
        float(control[controls.ERROR, lane]),
    )
    if has_failed_call(block, lane):
        tally[tallies.STATUS, lane] = USER_FUNCTION_FAILED
    elif not rate < math.inf:
        tally[tallies.STATUS, lane] = NOT_FINITE
    elif is_first and stepper.clock[clocks.PROPOSED, lane] > 0.0:
        set_step(block, stepper, tableau, batch, tolerances, stepper.clock[clocks.PROPOSED, lane], lane)
    else:
        step = first_step(euler_length, rate, change, tableau.order) if change < math.inf else euler_length
        longest = longest_first_step(block, stepper, batch, tolerances, lane)
        set_step(block, stepper, tableau, batch, tolerances, min(step, longest), lane)


@routine
def compute_trial_step(block, stepper, tableau, tolerances, k):
    """Compute the end and the error of a step in all lanes."""
    y, y_new, change = stepper.y, stepper.y_new, stepper.change
    for lane in range(y.shape[1]):
        stepper.control[controls.TIME, lane] = constant_like(y, stepper.clock[clocks.T, lane])
    compute_step(block, stepper, tableau, tolerances, k)
    reduce_error(block, y_new, change, k)
    error = error_norm(block, change, y, y_new, tolerances, k)
    stepper.control[controls.ERROR, k] = error_of_step(stepper, tableau, error + nan_unless_in_range(y_new, k), k)
    shorten_before_taut_springs(block, stepper, tableau, tolerances, k)
    close_end_of_step(block, stepper, tableau, k)
    project_contacts(block, stepper, tableau, k)
    find_contacts(block, stepper, tableau, k)


@routine
def accept_or_reject_step(block, stepper, tableau, batch, tolerances, lane):
    """Accept or reject the step of a lane, save the times in it, and choose the next step length.

    A step that fails or ends the motion sets the status of its sample.
    """
    control, clock, tally = stepper.control, stepper.clock, stepper.tally
    error, h = float(control[controls.ERROR, lane]), clock[clocks.STEP, lane]
    tally[tallies.EVALUATIONS, lane] += evaluations_of_step(block, stepper, tableau, lane)
    theta = NO_EVENT
    if error <= 1.0 and passes_elastic_stop(block, stepper, tableau, tolerances, h, lane):
        error = ERROR_TO_SHORTEN
        control[controls.ERROR, lane] = constant_like(control, error)
    if error <= 1.0 and not has_failed_call(block, lane):
        if repeats_step(block, stepper, tolerances, clock[clocks.T, lane], h, lane):
            return
        theta = check_events(block, stepper, tableau, batch.records, lane)
    if has_failed_call(block, lane):
        control[controls.ACCEPTED, lane] = constant_like(control, 0.0)
        tally[tallies.STATUS, lane] = USER_FUNCTION_FAILED
        return
    if is_event_not_finite(theta):
        control[controls.ACCEPTED, lane] = constant_like(control, 0.0)
        tally[tallies.STATUS, lane] = NOT_FINITE
        return
    if error <= 1.0:
        control[controls.ACCEPTED, lane] = constant_like(control, 1.0)
        tally[tallies.STEPS, lane] += 1
        update_stiffness(stepper, tableau, lane)
        stop, slot = clock[clocks.STOP, lane], tally[tallies.SAVED, lane]
        t_new = stop if stop - clock[clocks.T, lane] <= h else clock[clocks.T, lane] + h
        if theta < NO_EVENT:
            tally[tallies.STATUS, lane] = STOPPED
            t_new = clock[clocks.T, lane] + theta * h
        save_interpolated_states(block, stepper, tableau, batch, t_new, lane)
        store_step(block, stepper, tableau, batch, t_new, lane)
        save_held_outputs(block, stepper, batch, slot, lane)
        keep_step_for_work(block, stepper, slot, lane)
        if theta < NO_EVENT:
            interpolate_state(block, stepper, tableau, theta, lane)
        check_limits_of_end(stepper, batch, theta, lane)
        clock[clocks.START, lane], clock[clocks.TAKEN, lane], clock[clocks.T, lane] = clock[clocks.T, lane], h, t_new
        factor = growth_of_step(
            error, clock[clocks.PREVIOUS_ERROR, lane], tableau.order, tally[tallies.AFTER_REJECTION, lane] > 0
        )
        factor = growth_of_iteration(stepper, tableau, factor, lane)
        clock[clocks.PREVIOUS_ERROR, lane] = max(error, MIN_PREVIOUS_ERROR)
        tally[tallies.AFTER_REJECTION, lane] = 0
        step = recall_step(stepper, h * factor, lane)
        pass_breaks_of_lane(block, tally, t_new, lane)
    else:
        control[controls.ACCEPTED, lane] = constant_like(control, 0.0)
        tally[tallies.REJECTIONS, lane] += 1
        tally[tallies.AFTER_REJECTION, lane] = 1
        step = h * shrinkage_of_step(error, tableau.order)
        clear_bounds(block, lane)
        restore_rows_of_start(block, lane)
    set_step(block, stepper, tableau, batch, tolerances, step, lane)
    if tally[tallies.STATUS, lane] != STOPPED:
        check_end_of_motion(block, stepper, batch, tolerances, step, lane)


@only_if(has_actions)
@routine
def restart_after_breaks(block, stepper, tableau, k):
    """Let the lanes that have passed a break of a signal use the pieces after it, and compute their rates after a jump.

    Other lanes keep their rates. In float32, rates are also computed after kinks: the rate before a kink contains the
    round-off of the time, times the slope of the signal, which a long step would multiply by its length.
    """
    y, y_new, control, rates, tally = stepper.y, stepper.y_new, stepper.control, stepper.rates, stepper.tally
    lanes = 0
    for lane in range(y.shape[1]):
        passed, tally[tallies.BREAK, lane] = tally[tallies.BREAK, lane], KNOT_SAME
        control[controls.NEW, lane] = constant_like(y, 0.0)
        if passed == KNOT_SAME or tally[tallies.STATUS, lane] != RUNNING:
            continue
        use_pieces_between_breaks(block.loads.actions, lane)
        if passed == KNOT_JUMP:
            forget_prediction(stepper, tableau, lane)
            if restart_after_jump(block, lane):
                continue
        if passed == KNOT_JUMP or epsilon(y) > LARGEST_ROUND_OFF_AT_KINKS:
            control[controls.NEW, lane] = constant_like(y, 1.0)
            tally[tallies.EVALUATIONS, lane] += 1
            lanes += 1
    if lanes == 0:
        return
    hold_running_lanes(block, stepper, True)
    for lane in range(y.shape[1]):
        control[controls.TIME, lane] = constant_like(y, stepper.clock[clocks.T, lane])
    for j in range(y.shape[0]):
        y_new[j, k] = y[j, k]
    evaluate_with_sensitivities(block, y_new, control[controls.TIME, k], rates[1], k)
    is_behind_break = control[controls.NEW, k] > constant_like(y, 0.0)
    for j in range(y.shape[0]):
        rates[0, j, k] = select(is_behind_break, rates[1, j, k], rates[0, j, k])
    hold_running_lanes(block, stepper, False)
    for lane in range(y.shape[1]):
        control[controls.NEW, lane] = constant_like(y, 0.0)
        if tally[tallies.STATUS, lane] == RUNNING and has_failed_call(block, lane):
            tally[tallies.STATUS, lane] = USER_FUNCTION_FAILED


@only_if(has_actions)
@kernel
def begin_breaks_of_lane(block, t, lane):
    """Find the first breaks of all signals for a lane that starts at time t."""
    begin_breaks(block.loads.actions, t, lane)


@kernel
def check_end_of_motion(block, stepper, batch, tolerances, step, lane):
    """Set the status of a lane that has reached its end time, or whose next step is too short or one too many."""
    clock, tally, end = stepper.clock, stepper.tally, batch.times[batch.times.shape[0] - 1]
    error = float(stepper.control[controls.ERROR, lane])
    if clock[clocks.T, lane] >= end:
        tally[tallies.STATUS, lane] = DONE
    elif not step >= SHORTEST_STEP * max(clock[clocks.T, lane], START * end):
        tally[tallies.STATUS, lane] = STEP_UNDERFLOW if error < math.inf else NOT_FINITE
        if has_open_loops(block, lane):
            tally[tallies.STATUS, lane] = NOT_ASSEMBLED
    elif tally[tallies.STEPS, lane] >= FIRST_STEPS and step < SHORTEST_STEP * end:
        tally[tallies.STATUS, lane] = TIME_NOT_RESOLVED if end > LONG_MOTION else STEP_UNDERFLOW
    elif tally[tallies.STEPS, lane] + tally[tallies.REJECTIONS, lane] >= tolerances.max_steps:
        tally[tallies.STATUS, lane] = TOO_MANY_STEPS
