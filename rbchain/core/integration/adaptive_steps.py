"""Advance the state of each lane in steps of its own, by their errors; a lane whose sample ends takes the next one."""

import math

from ..simd.jit import kernel, routine
from ..simd.lanes import constant_like, select
from ..tree.kinematics import normalize_positions, reset_quaternions
from .action_hooks import allow_calls, begin_events, check_events, evaluate, has_failed_call, record_failed_call
from .events import NEVER, is_nowhere, state_within
from .rollout import (
    CLOCK_PREVIOUS_ERROR,
    CLOCK_STEP,
    CLOCK_T,
    CONTROL_ACCEPTED,
    CONTROL_ERROR,
    CONTROL_FRESH,
    CONTROL_H,
    CONTROL_RATE,
    CONTROL_SIZE,
    CONTROL_TIME,
    CONTROL_TRIAL,
    TALLY_AFTER_REJECTION,
    TALLY_EVALUATIONS,
    TALLY_REJECTIONS,
    TALLY_SAMPLE,
    TALLY_STATUS,
    TALLY_STEPS,
    compute_stages,
    record_sample,
    save_end,
    save_lane,
    save_passed,
    start_sample,
)
from .runge_kutta import (
    SMALLEST_ERROR,
    combine,
    first_step,
    growth_of_step,
    norm,
    shrinkage_of_step,
    trial_step,
    zero_if_finite,
)
from .status import DONE, IDLE, NOT_FINITE, RUNNING, STEP_UNDERFLOW, STOPPED, TOO_MANY_STEPS, USER_FUNCTION_FAILED


@kernel
def integrate_adaptive_steps(block, stepper, tableau, batch, tolerances, span, k):
    """Integrate the samples of span = (first, last): a lane whose sample has ended takes the next one."""
    next_sample, last = span
    running = 0
    for lane in range(stepper.y.shape[1]):
        stepper.tally[TALLY_STATUS, lane] = IDLE
        # a lane without a sample idles on a copy of one, so that it never meets numbers that were not set
        start_sample(block, stepper, batch, min(next_sample, last - 1), lane)
        if next_sample < last:
            stepper.tally[TALLY_STATUS, lane] = RUNNING
            next_sample += 1
            running += 1
        else:
            allow_calls(block, False, lane)
    start_fresh_lanes(block, stepper, tableau, batch, tolerances, k)
    while running > 0 and batch.outcome.interrupt[0] == 0:
        compute_trial_step(block, stepper, tableau, tolerances, k)
        for lane in range(stepper.y.shape[1]):
            if stepper.tally[TALLY_STATUS, lane] == RUNNING:
                accept_or_reject_step(block, stepper, tableau, batch, tolerances, lane)
        accept_steps(block, stepper, tableau, k)
        taken = 0
        for lane in range(stepper.y.shape[1]):
            if stepper.tally[TALLY_STATUS, lane] >= DONE:
                end_lane(block, stepper, tableau, batch, lane)
                stepper.control[CONTROL_ACCEPTED, lane] = constant_like(stepper.control, 0.0)
                running -= 1
                stepper.tally[TALLY_STATUS, lane] = IDLE
                if next_sample < last:
                    start_sample(block, stepper, batch, next_sample, lane)
                    stepper.tally[TALLY_STATUS, lane] = RUNNING
                    next_sample += 1
                    running += 1
                    taken += 1
                else:
                    park_lane(block, stepper, lane)
        if taken > 0:
            start_fresh_lanes(block, stepper, tableau, batch, tolerances, k)


@routine
def end_lane(block, stepper, tableau, batch, lane):
    """Report how the sample in a lane ended, and its last valid state."""
    sample, t = stepper.tally[TALLY_SAMPLE, lane], stepper.clock[CLOCK_T, lane]
    if stepper.tally[TALLY_STATUS, lane] == STOPPED:  # the state at the event is in `change`
        save_end(stepper.change, batch, sample, t, lane)
    else:
        save_end(stepper.y, batch, sample, t, lane)
    if stepper.tally[TALLY_STATUS, lane] == USER_FUNCTION_FAILED:
        record_failed_call(block, batch.records, sample, lane)
    record_sample(block, stepper, batch, lane)


@kernel
def park_lane(block, stepper, lane):
    """Park an idle lane at the zero configuration, so that it does not slow down the other lanes."""
    allow_calls(block, False, lane)
    stepper.control[CONTROL_H, lane] = constant_like(stepper.y, 0.0)
    for j in range(stepper.y.shape[0]):
        stepper.y[j, lane] = constant_like(stepper.y, 0.0)
    reset_quaternions(block.model, stepper.y, lane)


@kernel
def start_fresh_lanes(block, stepper, tableau, batch, tolerances, k):
    """First rates and first step of the lanes that have just taken a sample; the others are unchanged.

    Hairer, Norsett and Wanner (1993), II.4, "starting step size": compare the rates here and an Euler step away.
    """
    y, y_new, change, rates, control = stepper.y, stepper.y_new, stepper.change, stepper.rates, stepper.control
    rtol, atol = tolerances.rtol, tolerances.atol
    fresh = control[CONTROL_FRESH, k] > constant_like(y, 0.0)
    hold_running_lanes(block, stepper, True)  # they are between two steps
    control[CONTROL_TRIAL, k] = constant_like(y, 0.0)
    for j in range(y.shape[0]):
        rates[1, j, k] = constant_like(y, 0.0)
    for there in range(1, 3):
        for j in range(y.shape[0]):
            y_new[j, k] = y[j, k] + control[CONTROL_TRIAL, k] * rates[1, j, k]
        evaluate(block, y_new, control[CONTROL_TIME, k] + control[CONTROL_TRIAL, k], rates[there], k)
        if there == 1:
            for j in range(y.shape[0]):
                y[j, k] = select(fresh, y_new[j, k], y[j, k])  # where a drive has put it
                rates[0, j, k] = select(fresh, rates[1, j, k], rates[0, j, k])
            control[CONTROL_SIZE, k] = norm(y, y, y, atol, rtol, k)
            control[CONTROL_RATE, k] = norm(rates[1], y, y, atol, rtol, k)
            for lane in range(y.shape[1]):
                control[CONTROL_TRIAL, lane] = constant_like(
                    y, trial_step(float(control[CONTROL_SIZE, lane]), float(control[CONTROL_RATE, lane]))
                )
    for j in range(y.shape[0]):
        change[j, k] = rates[2, j, k] - rates[1, j, k]
    control[CONTROL_ERROR, k] = norm(change, y, y, atol, rtol, k)
    hold_running_lanes(block, stepper, False)
    for lane in range(y.shape[1]):
        if control[CONTROL_FRESH, lane] > constant_like(y, 0.0):
            start_lane(block, stepper, tableau, batch, lane)


@kernel
def hold_running_lanes(block, stepper, held):
    """Call no user functions for lanes in which a sample is on its way, or call them again."""
    for lane in range(stepper.y.shape[1]):
        is_fresh = stepper.control[CONTROL_FRESH, lane] > constant_like(stepper.y, 0.0)
        if stepper.tally[TALLY_STATUS, lane] == RUNNING and not is_fresh:
            allow_calls(block, not held, lane)


@routine
def start_lane(block, stepper, tableau, batch, lane):
    """Choose a fresh lane's first step, and save where it starts."""
    control, tally = stepper.control, stepper.tally
    control[CONTROL_FRESH, lane] = constant_like(control, 0.0)
    control[CONTROL_H, lane] = constant_like(control, 0.0)
    if tally[TALLY_STATUS, lane] == IDLE:
        return
    tally[TALLY_EVALUATIONS, lane] = 2
    save_lane(block, stepper.y, batch, tally[TALLY_SAMPLE, lane], 0, lane)
    begin_events(block, stepper.y, stepper.clock[CLOCK_T, lane], lane)
    rate, trial, change = (
        float(control[CONTROL_RATE, lane]),
        float(control[CONTROL_TRIAL, lane]),
        float(control[CONTROL_ERROR, lane]),
    )
    if has_failed_call(block, lane):
        tally[TALLY_STATUS, lane] = USER_FUNCTION_FAILED
    elif not rate < math.inf:
        tally[TALLY_STATUS, lane] = NOT_FINITE
    elif change < math.inf:
        set_step(stepper, batch, first_step(trial, rate, change, tableau.order), lane)
    else:
        set_step(stepper, batch, trial, lane)


@kernel
def set_step(stepper, batch, wanted, lane):
    """The next step, stretched or cut so that it ends where the motion ends rather than just before or beyond."""
    left = batch.times[batch.times.shape[0] - 1] - stepper.clock[CLOCK_T, lane]
    stepper.clock[CLOCK_STEP, lane] = left if 1.01 * wanted >= left else wanted
    stepper.control[CONTROL_H, lane] = constant_like(stepper.control, stepper.clock[CLOCK_STEP, lane])


@kernel
def compute_trial_step(block, stepper, tableau, tolerances, k):
    """The stages of a step in every lane; the last stage is the step's end. Writes the size of the error."""
    y, y_new, change, rates, h = stepper.y, stepper.y_new, stepper.change, stepper.rates, stepper.control[CONTROL_H, k]
    for lane in range(y.shape[1]):
        stepper.control[CONTROL_TIME, lane] = constant_like(y, stepper.clock[CLOCK_T, lane])
    compute_stages(block, stepper, tableau, k)
    normalize_positions(block.model, y_new, k)
    for j in range(y.shape[0]):
        change[j, k] = h * combine(tableau.error, tableau.error.shape[0], rates, j, k)
    error = norm(change, y, y_new, tolerances.atol, tolerances.rtol, k)
    stepper.control[CONTROL_ERROR, k] = error + zero_if_finite(y_new, k)


@routine
def accept_or_reject_step(block, stepper, tableau, batch, tolerances, lane):
    """Accept or reject the step of a lane, save what it has passed, and choose the next step."""
    control, clock, tally = stepper.control, stepper.clock, stepper.tally
    error, h, end = float(control[CONTROL_ERROR, lane]), clock[CLOCK_STEP, lane], batch.times[batch.times.shape[0] - 1]
    tally[TALLY_EVALUATIONS, lane] += tableau.c.shape[0] - 1
    theta = NEVER
    if error <= 1.0 and not has_failed_call(block, lane):
        theta = check_events(
            block, stepper, tableau, batch.records, clock[CLOCK_T, lane], h, tally[TALLY_SAMPLE, lane], lane
        )
    if has_failed_call(block, lane):
        control[CONTROL_ACCEPTED, lane] = constant_like(control, 0.0)
        tally[TALLY_STATUS, lane] = USER_FUNCTION_FAILED
        return
    if is_nowhere(theta):
        control[CONTROL_ACCEPTED, lane] = constant_like(control, 0.0)
        tally[TALLY_STATUS, lane] = NOT_FINITE
        return
    if error <= 1.0:
        control[CONTROL_ACCEPTED, lane] = constant_like(control, 1.0)
        tally[TALLY_STEPS, lane] += 1
        t_new = end if end - clock[CLOCK_T, lane] <= h else clock[CLOCK_T, lane] + h
        if theta < NEVER:
            tally[TALLY_STATUS, lane] = STOPPED
            t_new = clock[CLOCK_T, lane] + theta * h
        save_passed(block, stepper, tableau, batch, t_new, lane)
        if theta < NEVER:
            state_within(block, stepper, tableau, theta, h, lane)
        clock[CLOCK_T, lane] = t_new
        factor = growth_of_step(
            error, clock[CLOCK_PREVIOUS_ERROR, lane], tableau.order, tally[TALLY_AFTER_REJECTION, lane] > 0
        )
        clock[CLOCK_PREVIOUS_ERROR, lane] = max(error, SMALLEST_ERROR)
        tally[TALLY_AFTER_REJECTION, lane] = 0
    else:
        control[CONTROL_ACCEPTED, lane] = constant_like(control, 0.0)
        tally[TALLY_REJECTIONS, lane] += 1
        tally[TALLY_AFTER_REJECTION, lane] = 1
        factor = shrinkage_of_step(error, tableau.order)
    set_step(stepper, batch, h * factor, lane)
    if tally[TALLY_STATUS, lane] == STOPPED:
        return
    if clock[CLOCK_T, lane] >= end:
        tally[TALLY_STATUS, lane] = DONE
    elif not clock[CLOCK_STEP, lane] >= 1e-15 * end:
        tally[TALLY_STATUS, lane] = STEP_UNDERFLOW if error < math.inf else NOT_FINITE
    elif tally[TALLY_STEPS, lane] + tally[TALLY_REJECTIONS, lane] >= tolerances.max_steps:
        tally[TALLY_STATUS, lane] = TOO_MANY_STEPS


@kernel
def accept_steps(block, stepper, tableau, k):
    """Move the lanes whose step was accepted to its end; its last rate is the next step's first.

    Not quite so where quaternions have been given back their length: what that does to their rate is as small as the
    step's error.
    """
    y, y_new, rates = stepper.y, stepper.y_new, stepper.rates
    accepted = stepper.control[CONTROL_ACCEPTED, k] > constant_like(y, 0.0)
    final = tableau.c.shape[0] - 1
    for j in range(y.shape[0]):
        y[j, k] = select(accepted, y_new[j, k], y[j, k])
        rates[0, j, k] = select(accepted, rates[final, j, k], rates[0, j, k])
