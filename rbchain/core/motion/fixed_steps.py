"""Fixed steps, which have the same length in all lanes of a block. `life` calls these functions in order.

With Euler's tableau, the step is linearly implicit in the springs, damping and friction of the joints, as MuJoCo's
"implicitfast" is in damping. The dynamics solve (H + h D + h^2 K) qdd = tau - h K qd. This gives the velocity at the
end of the step, which also moves the positions.
"""

from ...compiling.jit import kernel, only_if, routine
from ..control import drive_layout as drive
from ..control.drive_slopes import store_stiffness_and_damping, use_mean_slopes_of_gears
from ..lanes.lanes import any_lane, constant_like
from ..linear.parameters_between_bodies import has_forces_between_bodies
from ..linear.sensitivities import (
    close_columns_of_start,
    evaluate_with_sensitivities,
    has_sensitivities,
    measures_closed_columns,
)
from ..loops.constraint_hooks import (
    decide_rank,
    has_constraints,
    has_lost_rank,
    has_open_loops,
    record_start,
    record_starts,
)
from ..methods.explicit_steps import advance_to_stage, evaluate_stage
from ..methods.runge_kutta import nan_unless_in_range
from ..sample import clock_layout as clocks, control_layout as controls, tally_layout as tallies
from ..sample.rate import (
    allow_calls,
    has_failed_call,
    is_too_stiff,
    record_failed_call,
    set_step_length,
    update_passive_stiffness_and_damping,
    use_mean_slopes_of_friction,
)
from ..sample.status import DONE, NOT_ASSEMBLED, NOT_FINITE, RUNNING, STOPPED, TOO_STIFF, USER_FUNCTION_FAILED
from ..sample.work_memory import has_work
from ..tree import setting_layout as setting
from ..tree.kinematics import position_rates
from ..tree.layout import has_actions
from ..tree.sampler_layout import has_samplers
from .event_values import interpolate_state
from .events import NO_EVENT, begin_events, check_events, is_event_not_finite
from .position_limits import check_limits_of_end
from .rollout import (
    close_end_of_step,
    record_sample,
    save_end,
    save_lane,
    save_passed_times,
)
from .sampled_controllers import run_controllers, save_held_outputs
from .step_records import store_step
from .work import keep_step_for_work


@kernel
def save_starts(block, stepper, settings, batch, samples, k):
    """Save the initial states, and end the samples that are too stiff at their start."""
    for lane in range(samples):
        begin_events(block, stepper.y, batch.times[0], lane)
        save_lane(block, stepper.y, batch, stepper.tally[tallies.SAMPLE, lane], 0, lane)
    end_stiff_starts(block, stepper, batch, samples)


@only_if(has_forces_between_bodies)
@kernel
def end_stiff_starts(block, stepper, batch, samples):
    """End the samples in `Start.is_too_stiff`."""
    is_too_stiff = batch.start.is_too_stiff
    for lane in range(samples if is_too_stiff.shape[0] > 0 else 0):
        if is_too_stiff[stepper.tally[tallies.SAMPLE, lane]]:
            end_sample(block, stepper, batch, TOO_STIFF, batch.times[0], stepper.y, lane)


@kernel
def take_fixed_step(block, stepper, settings, batch, t, h, restarts, k):
    """Compute the end of a step from t to t + h; `restarts` states whether the rate there is computed again anyway."""
    tableau = settings.tableau
    if tableau.order > 1:
        store_stiffness_and_damping(block, stepper.y, k)
    start_step(block, stepper, tableau, batch, t, h, k)
    omits_end = restarts and may_omit_ends(block, batch)
    compute_stages_of_step(block, stepper, tableau, batch, t, h, omits_end, k)
    close_end_of_step(block, stepper, tableau, k)


@only_if(lambda block, *_: not has_constraints(block) and not has_sensitivities(block), False)
@kernel
def may_omit_ends(block, batch):
    """Whether the rate at the end of a step has no use but to start the next step.

    Projections onto constraints and sensitivities use it, and records of steps interpolate with it.
    """
    return batch.outcome.record.times.shape[1] == 0 and actions_allow_omitted_ends(block)


@only_if(has_actions, True)
@kernel
def actions_allow_omitted_ends(block):
    """Whether no action needs the rate at the end of a step.

    Events interpolate with it, user functions may fail there, and prescribed motions set the state there.
    """
    actions = block.loads.actions
    is_free = actions.settings[setting.FUNCTIONS] == 0 and actions.shared.events.shape[1] == 0
    kinds = actions.shared.drives[drive.KIND]
    for i in range(kinds.shape[0]):
        is_free = is_free and kinds[i] != drive.KIND_PRESCRIBED_POSITION and kinds[i] != drive.KIND_PRESCRIBED_VELOCITY
    return is_free


@only_if(lambda stepper, tableau: has_work(stepper), False)
@kernel
def needs_end_for_work(stepper, tableau):
    """Whether the work of a step needs the rate at its end: the state is not linear in the step."""
    return tableau.order > 1


@kernel
def compute_stages_of_step(block, stepper, tableau, batch, t, h, omits_end, k):
    """Compute the stages of a step from t to t + h as `compute_stages` does, without the rate at its end if not used.

    End the samples for which the step is too long at a stage.
    """
    final = tableau.c.shape[0] - 1
    for stage in range(1, final + 1):
        advance_to_stage(block, stepper, tableau, stage, k)
        if stage < final or not omits_end or needs_end_for_work(stepper, tableau):
            evaluate_stage(block, stepper, tableau, stage, k)
        if tableau.order > 1:
            end_stiff_samples(block, stepper, tableau, batch, stage, t, h, k)
    if omits_end:
        for lane in range(stepper.y.shape[1]):
            stepper.tally[tallies.EVALUATIONS, lane] -= stepper.tally[tallies.STATUS, lane] == RUNNING


@only_if(has_actions)
@kernel
def end_stiff_samples(block, stepper, tableau, batch, stage, t, h, k):
    """End the samples that are too stiff for an explicit step at a stage.

    The articulated inertias belong to the last rate, which is the rate of this stage or of the one before. Forces such
    as elastic stops may act within a step only. Drives count at the end only, except for the friction of their gears:
    stages may pass states in which a drive is not saturated.
    """
    is_end = int(stage == tableau.c.shape[0] - 1)
    if is_end:
        store_stiffness_and_damping(block, stepper.y_new, k)
    else:
        update_passive_stiffness_and_damping(block, stepper.y_new, k)
    use_mean_slopes_of_friction(block, stepper.y, stepper.y_new, k)
    use_mean_slopes_of_gears(block, stepper.y, stepper.y_new, is_end, k)
    end_lanes_if_too_stiff(block, stepper, batch, t, h, k)


@kernel
def end_lanes_if_too_stiff(block, stepper, batch, t, h, k):
    """End the running samples that are too stiff for a step of length h, s, that starts at t."""
    if any_lane(is_too_stiff(block, h, k)):
        for lane in range(stepper.y.shape[1]):
            is_running = stepper.tally[tallies.STATUS, lane] == RUNNING and not has_failed_call(block, lane)
            if is_running and is_too_stiff(block, h, lane):
                end_sample(block, stepper, batch, TOO_STIFF, t, stepper.y, lane)


@only_if(measures_closed_columns)
@kernel
def close_columns_of_block(block, stepper, k):
    """Project the columns of all samples at their start, before sampled controllers measure them."""
    is_new, t = constant_like(stepper.y, 1.0), stepper.control[controls.TIME, k]
    close_columns_of_start(block, stepper.y, is_new, t, stepper.rates[0], k)


@only_if(has_samplers, False)
@routine
def run_controllers_of_block(block, stepper, batch, t, k):
    """Run the sampled controllers of all lanes that have a stop at time t.

    Returns whether there was a stop. A user function that fails ends its sample.
    """
    for lane in range(stepper.y.shape[1]):
        stepper.clock[clocks.T, lane] = t
    if run_controllers(block, stepper, batch, True, k) == 0:
        return False
    for lane in range(stepper.y.shape[1]):
        if stepper.tally[tallies.STATUS, lane] == RUNNING and has_failed_call(block, lane):
            end_sample(block, stepper, batch, USER_FUNCTION_FAILED, t, stepper.y, lane)
    return True


@kernel
def end_block(block, stepper, batch, samples):
    """End the samples that are still running, and record the results of all samples of the block."""
    for lane in range(samples):
        if stepper.tally[tallies.STATUS, lane] == RUNNING:
            end_sample(block, stepper, batch, DONE, batch.times[batch.times.shape[0] - 1], stepper.y, lane)
        record_sample(block, stepper, batch, lane)


@kernel
def end_sample(block, stepper, batch, status, t, y, lane):
    """Set the status of a lane's sample, and save y at time t as its last valid state.

    The time of a step and a saved time at its start may differ by round-off.
    """
    stepper.tally[tallies.STATUS, lane] = status
    last_saved = batch.times[stepper.tally[tallies.SAVED, lane] - 1]
    save_end(y, batch, stepper.tally[tallies.SAMPLE, lane], max(t, last_saved), lane)
    if status == USER_FUNCTION_FAILED:
        record_failed_call(block, batch.records, stepper.tally[tallies.SAMPLE, lane], lane)
    allow_calls(block, False, lane)


@kernel
def set_time_of_rate(stepper, t):
    """Let the next rates be those at time t."""
    for lane in range(stepper.y.shape[1]):
        stepper.clock[clocks.RATE, lane] = t


@kernel
def start_interval(block, stepper, h, k):
    """Compute the rates at the time clocks.RATE for steps of length h."""
    for lane in range(stepper.y.shape[1]):
        stepper.control[controls.TIME, lane] = constant_like(stepper.y, stepper.clock[clocks.RATE, lane])
        if stepper.tally[tallies.STATUS, lane] == RUNNING:
            stepper.tally[tallies.EVALUATIONS, lane] += 1
    set_step_length(block, h, k)
    time = stepper.control[controls.TIME, k]
    decide_rank(block, constant_like(stepper.y, 1.0), k)
    evaluate_with_sensitivities(block, stepper.y, time, stepper.rates[0], k)
    decide_rank(block, constant_like(stepper.y, 0.0), k)
    record_starts(block, None)


@kernel
def start_step(block, stepper, tableau, batch, t, h, k):
    """Set the clocks of all lanes for a step from t to t + h.

    For an implicit step, compute the rates of the positions from the velocities at the end of the step. For an explicit
    one, end the samples that are too stiff for it.
    """
    nq, n, y, rate = block.q.shape[0], block.qd.shape[0], stepper.y, stepper.rates[0]
    for lane in range(y.shape[1]):
        stepper.clock[clocks.T, lane] = t
        stepper.clock[clocks.STEP, lane] = h
        stepper.control[controls.TIME, lane] = constant_like(y, t)
        stepper.control[controls.H, lane] = constant_like(y, h)
        stepper.control[controls.ERROR, lane] = constant_like(y, 0.0)  # every step is accepted
        if tableau.order == 1:
            for i in range(n):
                stepper.y_new[nq + i, lane] = y[nq + i, lane] + constant_like(y, h) * rate[nq + i, lane]
            position_rates(block.model, y[:nq], stepper.y_new[nq : nq + n], rate[:nq], lane)
    if tableau.order > 1:
        end_lanes_if_too_stiff(block, stepper, batch, t, h, k)


@routine
def end_step(block, stepper, tableau, batch, is_saved_time, lane):
    """Check the step of a lane for failures and events, count it, and save its end if that is a saved time."""
    tally, y_new, t, h = stepper.tally, stepper.y_new, stepper.clock[clocks.T, lane], stepper.clock[clocks.STEP, lane]
    finite = nan_unless_in_range(y_new, lane) == constant_like(y_new, 0.0)
    theta, slot = NO_EVENT, tally[tallies.SAVED, lane]
    if finite and not has_failed_call(block, lane):
        theta = check_events(block, stepper, tableau, batch.records, lane)
    if has_failed_call(block, lane):
        end_sample(block, stepper, batch, USER_FUNCTION_FAILED, t, stepper.y, lane)
        return
    if not finite or is_event_not_finite(theta):
        end_sample(block, stepper, batch, NOT_FINITE, t, stepper.y, lane)
        return
    if has_open_loops(block, lane) or has_lost_rank(block, lane):
        end_sample(block, stepper, batch, NOT_ASSEMBLED, t, stepper.y, lane)
        return
    record_start(block, lane)
    tally[tallies.STEPS, lane] += 1
    tally[tallies.EVALUATIONS, lane] += tableau.c.shape[0] - 1
    if theta < NO_EVENT:
        tally[tallies.STATUS, lane] = STOPPED
        save_passed_times(block, stepper, tableau, batch, t + theta * h, lane)
        store_step(block, stepper, tableau, batch, t + theta * h, lane)
        interpolate_state(block, stepper, tableau, theta, lane)
        check_limits_of_end(stepper, batch, theta, lane)
        end_sample(block, stepper, batch, STOPPED, t + theta * h, stepper.change, lane)
    else:
        check_limits_of_end(stepper, batch, theta, lane)
        store_step(block, stepper, tableau, batch, t + h, lane)
        if is_saved_time:
            save_lane(block, y_new, batch, tally[tallies.SAMPLE, lane], tally[tallies.SAVED, lane], lane)
            tally[tallies.SAVED, lane] += 1
    save_held_outputs(block, stepper, batch, slot, lane)
    keep_step_for_work(block, stepper, slot, lane)


@kernel
def end_fixed_step(block, stepper, settings, batch, is_saved_time, lane):
    """Call `end_step` with the tableau of the method."""
    end_step(block, stepper, settings.tableau, batch, is_saved_time, lane)


@kernel
def move_to_end(block, stepper, settings, k):
    """Move all lanes to the end of the step, whose time has the round-off of the lanes' clocks."""
    for j in range(stepper.y.shape[0]):
        stepper.y[j, k] = stepper.y_new[j, k]
    for lane in range(stepper.y.shape[1]):
        stepper.clock[clocks.RATE, lane] = float(
            stepper.control[controls.TIME, lane] + stepper.control[controls.H, lane]
        )


@kernel
def accept_fixed_step(block, stepper, settings, k):
    """Move all lanes to the end of the step, whose last rate becomes the first of the next step."""
    rates, final = stepper.rates, settings.tableau.c.shape[0] - 1
    move_to_end(block, stepper, settings, k)
    for j in range(stepper.y.shape[0]):
        rates[0, j, k] = rates[final, j, k]
