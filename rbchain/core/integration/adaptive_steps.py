"""Advance the state of each lane in steps of its own, by their errors; a lane whose sample ends takes the next one."""

import math

from ..simd.jit import kernel, routine
from ..simd.lanes import like, select
from ..tree.kinematics import normalize_positions, straighten
from .acting import allow_calls, begin_events, evaluate, has_failed_call, pass_events, record_failed_call
from .events import NEVER, is_nowhere, state_within
from .rollout import (
    ACCEPTED,
    AFTER_REJECTION,
    CHAIN,
    ERROR,
    EVALUATIONS,
    FRESH,
    PREVIOUS_ERROR,
    RATE,
    REJECTIONS,
    SIZE,
    STATUS,
    STEP,
    STEPS,
    TIME,
    TRIAL,
    H,
    T,
    record_chain,
    save_end,
    save_lane,
    save_passed,
    take_chain,
    take_stages,
)
from .runge_kutta import (
    SMALLEST_ERROR,
    combine,
    first_step,
    growth_of_step,
    norm,
    nothing_if_finite,
    shrinkage_of_step,
    trial_step,
)
from .status import DONE, IDLE, NOT_FINITE, RUNNING, STEP_UNDERFLOW, STOPPED, TOO_MANY_STEPS, USER_FUNCTION_FAILED


@kernel
def roll_adaptively(block, stepper, tableau, batch, tolerances, span, k):
    """Integrate the chains of span = (first, last): a lane whose chain has ended takes the next one."""
    next_chain, last = span
    running = 0
    for lane in range(stepper.y.shape[1]):
        stepper.tally[STATUS, lane] = IDLE
        # a lane without a chain idles on a copy of one, so that it never meets numbers that were not set
        take_chain(block, stepper, batch, min(next_chain, last - 1), lane)
        if next_chain < last:
            stepper.tally[STATUS, lane] = RUNNING
            next_chain += 1
            running += 1
        else:
            allow_calls(block, False, lane)
    start_fresh_lanes(block, stepper, tableau, batch, tolerances, k)
    while running > 0 and batch.outcome.interrupt[0] == 0:
        attempt_step(block, stepper, tableau, tolerances, k)
        for lane in range(stepper.y.shape[1]):
            if stepper.tally[STATUS, lane] == RUNNING:
                judge_step(block, stepper, tableau, batch, tolerances, lane)
        accept_steps(block, stepper, tableau, k)
        taken = 0
        for lane in range(stepper.y.shape[1]):
            if stepper.tally[STATUS, lane] >= DONE:
                end_lane(block, stepper, tableau, batch, lane)
                stepper.control[ACCEPTED, lane] = like(stepper.control, 0.0)
                running -= 1
                stepper.tally[STATUS, lane] = IDLE
                if next_chain < last:
                    take_chain(block, stepper, batch, next_chain, lane)
                    stepper.tally[STATUS, lane] = RUNNING
                    next_chain += 1
                    running += 1
                    taken += 1
                else:
                    rest_lane(block, stepper, lane)
        if taken > 0:
            start_fresh_lanes(block, stepper, tableau, batch, tolerances, k)


@routine
def end_lane(block, stepper, tableau, batch, lane):
    """Report how the sample in a lane ended, and its last valid state."""
    chain, t = stepper.tally[CHAIN, lane], stepper.clock[T, lane]
    if stepper.tally[STATUS, lane] == STOPPED:  # the state at the event is in `change`
        save_end(stepper.change, batch, chain, t, lane)
    else:
        save_end(stepper.y, batch, chain, t, lane)
    if stepper.tally[STATUS, lane] == USER_FUNCTION_FAILED:
        record_failed_call(block, batch.records, chain, lane)
    record_chain(block, stepper, batch, lane)


@kernel
def rest_lane(block, stepper, lane):
    """Park an idle lane at the zero configuration, so that it does not slow down the other lanes."""
    allow_calls(block, False, lane)
    stepper.control[H, lane] = like(stepper.y, 0.0)
    for j in range(stepper.y.shape[0]):
        stepper.y[j, lane] = like(stepper.y, 0.0)
    straighten(block.model, stepper.y, lane)


@kernel
def start_fresh_lanes(block, stepper, tableau, batch, tolerances, k):
    """First rates and first step of the lanes that have just taken a chain; the others only watch.

    Hairer, Norsett and Wanner (1993), II.4, "starting step size": compare the rates here and an Euler step away.
    """
    y, y_new, change, rates, control = stepper.y, stepper.y_new, stepper.change, stepper.rates, stepper.control
    rtol, atol = tolerances.rtol, tolerances.atol
    fresh = control[FRESH, k] > like(y, 0.0)
    hold_running_lanes(block, stepper, True)  # they are between two steps
    control[TRIAL, k] = like(y, 0.0)
    for j in range(y.shape[0]):
        rates[1, j, k] = like(y, 0.0)
    for there in range(1, 3):
        for j in range(y.shape[0]):
            y_new[j, k] = y[j, k] + control[TRIAL, k] * rates[1, j, k]
        evaluate(block, y_new, control[TIME, k] + control[TRIAL, k], rates[there], k)
        if there == 1:
            for j in range(y.shape[0]):
                y[j, k] = select(fresh, y_new[j, k], y[j, k])  # where a drive has put it
                rates[0, j, k] = select(fresh, rates[1, j, k], rates[0, j, k])
            control[SIZE, k] = norm(y, y, y, atol, rtol, k)
            control[RATE, k] = norm(rates[1], y, y, atol, rtol, k)
            for lane in range(y.shape[1]):
                control[TRIAL, lane] = like(y, trial_step(float(control[SIZE, lane]), float(control[RATE, lane])))
    for j in range(y.shape[0]):
        change[j, k] = rates[2, j, k] - rates[1, j, k]
    control[ERROR, k] = norm(change, y, y, atol, rtol, k)
    hold_running_lanes(block, stepper, False)
    for lane in range(y.shape[1]):
        if control[FRESH, lane] > like(y, 0.0):
            start_lane(block, stepper, tableau, batch, lane)


@kernel
def hold_running_lanes(block, stepper, held):
    """Call no user functions for lanes in which a sample is on its way, or call them again."""
    for lane in range(stepper.y.shape[1]):
        is_fresh = stepper.control[FRESH, lane] > like(stepper.y, 0.0)
        if stepper.tally[STATUS, lane] == RUNNING and not is_fresh:
            allow_calls(block, not held, lane)


@routine
def start_lane(block, stepper, tableau, batch, lane):
    """Choose a fresh lane's first step, and save where it starts."""
    control, tally = stepper.control, stepper.tally
    control[FRESH, lane] = like(control, 0.0)
    control[H, lane] = like(control, 0.0)
    if tally[STATUS, lane] == IDLE:
        return
    tally[EVALUATIONS, lane] = 2
    save_lane(block, stepper.y, batch, tally[CHAIN, lane], 0, lane)
    begin_events(block, stepper.y, stepper.clock[T, lane], lane)
    rate, trial, change = float(control[RATE, lane]), float(control[TRIAL, lane]), float(control[ERROR, lane])
    if has_failed_call(block, lane):
        tally[STATUS, lane] = USER_FUNCTION_FAILED
    elif not rate < math.inf:
        tally[STATUS, lane] = NOT_FINITE
    elif change < math.inf:
        set_step(stepper, batch, first_step(trial, rate, change, tableau.order), lane)
    else:
        set_step(stepper, batch, trial, lane)


@kernel
def set_step(stepper, batch, wanted, lane):
    """The next step, stretched or cut so that it ends where the motion ends rather than just before or beyond."""
    left = batch.times[batch.times.shape[0] - 1] - stepper.clock[T, lane]
    stepper.clock[STEP, lane] = left if 1.01 * wanted >= left else wanted
    stepper.control[H, lane] = like(stepper.control, stepper.clock[STEP, lane])


@kernel
def attempt_step(block, stepper, tableau, tolerances, k):
    """The stages of a step in every lane; the last stage is the step's end. Leaves the size of the error in ERROR."""
    y, y_new, change, rates, h = stepper.y, stepper.y_new, stepper.change, stepper.rates, stepper.control[H, k]
    for lane in range(y.shape[1]):
        stepper.control[TIME, lane] = like(y, stepper.clock[T, lane])
    take_stages(block, stepper, tableau, k)
    normalize_positions(block.model, y_new, k)
    for j in range(y.shape[0]):
        change[j, k] = h * combine(tableau.error, tableau.error.shape[0], rates, j, k)
    error = norm(change, y, y_new, tolerances.atol, tolerances.rtol, k)
    stepper.control[ERROR, k] = error + nothing_if_finite(y_new, k)


@routine
def judge_step(block, stepper, tableau, batch, tolerances, lane):
    """Accept or reject the step of a lane, save what it has passed, and choose the next step."""
    control, clock, tally = stepper.control, stepper.clock, stepper.tally
    error, h, end = float(control[ERROR, lane]), clock[STEP, lane], batch.times[batch.times.shape[0] - 1]
    tally[EVALUATIONS, lane] += tableau.c.shape[0] - 1
    theta = NEVER
    if error <= 1.0 and not has_failed_call(block, lane):
        theta = pass_events(block, stepper, tableau, batch.records, clock[T, lane], h, tally[CHAIN, lane], lane)
    if has_failed_call(block, lane):
        control[ACCEPTED, lane] = like(control, 0.0)
        tally[STATUS, lane] = USER_FUNCTION_FAILED
        return
    if is_nowhere(theta):
        control[ACCEPTED, lane] = like(control, 0.0)
        tally[STATUS, lane] = NOT_FINITE
        return
    if error <= 1.0:
        control[ACCEPTED, lane] = like(control, 1.0)
        tally[STEPS, lane] += 1
        t_new = end if end - clock[T, lane] <= h else clock[T, lane] + h
        if theta < NEVER:
            tally[STATUS, lane] = STOPPED
            t_new = clock[T, lane] + theta * h
        save_passed(block, stepper, tableau, batch, t_new, lane)
        if theta < NEVER:
            state_within(block, stepper, tableau, theta, h, lane)
        clock[T, lane] = t_new
        factor = growth_of_step(error, clock[PREVIOUS_ERROR, lane], tableau.order, tally[AFTER_REJECTION, lane] > 0)
        clock[PREVIOUS_ERROR, lane] = max(error, SMALLEST_ERROR)
        tally[AFTER_REJECTION, lane] = 0
    else:
        control[ACCEPTED, lane] = like(control, 0.0)
        tally[REJECTIONS, lane] += 1
        tally[AFTER_REJECTION, lane] = 1
        factor = shrinkage_of_step(error, tableau.order)
    set_step(stepper, batch, h * factor, lane)
    if tally[STATUS, lane] == STOPPED:
        return
    if clock[T, lane] >= end:
        tally[STATUS, lane] = DONE
    elif not clock[STEP, lane] >= 1e-15 * end:
        tally[STATUS, lane] = STEP_UNDERFLOW if error < math.inf else NOT_FINITE
    elif tally[STEPS, lane] + tally[REJECTIONS, lane] >= tolerances.max_steps:
        tally[STATUS, lane] = TOO_MANY_STEPS


@kernel
def accept_steps(block, stepper, tableau, k):
    """Move the lanes whose step was accepted to its end; its last rate is the next step's first.

    Not quite so where quaternions have been given back their length: what that does to their rate is as small as the
    step's error.
    """
    y, y_new, rates = stepper.y, stepper.y_new, stepper.rates
    accepted = stepper.control[ACCEPTED, k] > like(y, 0.0)
    final = tableau.c.shape[0] - 1
    for j in range(y.shape[0]):
        y[j, k] = select(accepted, y_new[j, k], y[j, k])
        rates[0, j, k] = select(accepted, rates[final, j, k], rates[0, j, k])
