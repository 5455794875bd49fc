"""The life of a sample, from its start to its end.

    start      `start_sample` copies its initial state, parameters and forces to a lane. `start_new_lanes` runs the
               controllers, decides the modes of contacts, computes the first rate, and chooses the first step.
    step       `compute_trial_step` computes the end of a step by the method, closes the loops, and finds contacts that
               close or open within the step.
    inspect    `accept_or_reject_step` reads the error of the step, failed functions and events. It saves the states and
               the outputs at the saved times, stores the continuous extension, and chooses the next step.
    accept     `integrate_work` adds the work of forces. `accept_steps` moves to the end of the step.
    continue   `restart_after_breaks` passes the breaks of signals. `wait_for_outputs` waits for functions in Python.
               `run_controllers_at_stops` runs the digital controllers that are due.
    end        `end_lane` records the status, the last valid state and the counts.

Methods with adaptive steps integrate each lane with its own steps, and a lane whose sample has ended takes the next
sample of the batch. Methods with fixed steps integrate all lanes of a block with the same steps: `take_step` computes a
step, and `inspect_step` and `accept_step` correspond to the moments above.
"""

import math

from ...compiling.jit import choose, kernel, routine
from ..control.sampler_clocks import limit_to_stops_of_lanes
from ..forces.signal_breaks import is_reached
from ..lanes.lanes import constant_like
from ..methods.settings import AdaptiveStepSettings
from ..sample import clock_layout as clocks, control_layout as controls, tally_layout as tallies
from ..sample.rate import allow_calls
from ..sample.status import DONE, IDLE, RUNNING, WAITING
from .adaptive_controllers import run_controllers_at_stops
from .adaptive_steps import (
    accept_or_reject_step,
    compute_trial_step,
    end_lane,
    park_lane,
    restart_after_breaks,
    start_new_lanes,
)
from .contact_events import restart_lane
from .fixed_methods import accept_step, inspect_step, start_motion, take_step
from .fixed_steps import close_columns_of_block, end_block, run_controllers_of_block, set_time_of_rate, start_interval
from .rollout import start_sample
from .saved_states import accept_steps
from .waiting import (
    block_waits_at,
    count_lanes,
    has_ended,
    is_resumed,
    resume_block,
    resume_lanes,
    wait_for_outputs,
)
from .work import integrate_work

#: Largest error of a difference of two saved times, relative to the later one, so that it makes no step more.
ROUND_OFF_OF_TIMES = 4e-16


@routine
def integrate_adaptive_steps(block, stepper, settings, batch, span, k):
    """Integrate the samples first to last - 1, span = (first, last), each with its own steps, until all end or wait."""
    tableau, tolerances, next_sample = settings.tableau, settings.tolerances, span[1]
    resumed = is_resumed(block, stepper)
    if resumed:
        resume_lanes(block, stepper, batch)
    else:
        next_sample = start_lanes(block, stepper, batch, span)
        if wait_for_outputs(block, stepper, span, k):
            return
    if has_new_lane(stepper):
        start_new_lanes(block, stepper, tableau, batch, tolerances, k)
        resumed = False
    while has_active_lane(stepper) and batch.outcome.interrupt[0] == 0:
        if not resumed:
            compute_trial_step(block, stepper, tableau, tolerances, k)
            for lane in range(stepper.y.shape[1]):
                if stepper.tally[tallies.STATUS, lane] == RUNNING:
                    accept_or_reject_step(block, stepper, tableau, batch, tolerances, lane)
            integrate_work(block, stepper, tableau, batch, k)
            accept_steps(block, stepper, tableau, batch, tolerances, k)
            restart_after_breaks(block, stepper, tableau, k)
            wait_for_outputs(block, stepper, span, k)
        resumed = False
        run_controllers_at_stops(block, stepper, tableau, batch, tolerances, k)
        next_sample = end_and_restart_lanes(block, stepper, settings, batch, next_sample, span, k)


@kernel
def start_lanes(block, stepper, batch, span):
    """Start the first samples. Returns the number of the next sample."""
    first, last = span
    for lane in range(stepper.y.shape[1]):
        # a lane without a sample computes with a copy of the last one, because its own memory is not initialized
        start_sample(block, stepper, batch, min(first + lane, last - 1), lane)
        has_sample = first + lane < last
        stepper.tally[tallies.STATUS, lane] = RUNNING if has_sample else IDLE
        allow_calls(block, has_sample, lane)
    return min(first + stepper.y.shape[1], last)


@kernel
def has_active_lane(stepper):
    """Whether a lane has a sample that does not wait, including one that has ended and is not yet recorded."""
    return count_lanes(stepper, IDLE) + count_lanes(stepper, WAITING) < stepper.tally.shape[1]


@kernel
def has_new_lane(stepper):
    """Whether a lane has just received its sample."""
    for lane in range(stepper.y.shape[1]):
        if stepper.control[controls.NEW, lane] > constant_like(stepper.control, 0.0):
            return True
    return False


@kernel
def end_and_restart_lanes(block, stepper, settings, batch, next_sample, span, k):
    """Record the samples that have ended. Start the next samples, and restart the lanes whose contacts have changed.

    Returns the number of the next sample.
    """
    new_samples = 0
    for lane in range(stepper.y.shape[1]):
        if stepper.tally[tallies.STATUS, lane] >= DONE:
            end_lane(block, stepper, batch, lane)
            stepper.control[controls.ACCEPTED, lane] = constant_like(stepper.control, 0.0)
            stepper.tally[tallies.STATUS, lane] = IDLE
            if next_sample < span[1]:
                start_sample(block, stepper, batch, next_sample, lane)
                stepper.tally[tallies.STATUS, lane] = RUNNING
                next_sample += 1
                new_samples += 1
            else:
                park_lane(block, stepper, lane)
        elif stepper.tally[tallies.STATUS, lane] == RUNNING and restart_lane(block, stepper, lane):
            new_samples += 1
    if new_samples > 0:
        start_new_lanes(block, stepper, settings.tableau, batch, settings.tolerances, k)
    return next_sample


@routine
def integrate_block(block, stepper, settings, batch, span, k):
    """Integrate the samples first to last - 1 of a block, span = (first, last), in equal steps, until they end or wait.

    Steps end at saved times and at stops of controllers. Between them, they are equal and not longer than `step`.
    """
    times, tableau, samples = batch.times, settings.tableau, min(stepper.y.shape[1], span[1] - span[0])
    resumed, slot, end_time = is_resumed(block, stepper), 1, times[times.shape[0] - 1]
    if resumed:
        resume_block(block, stepper, batch)
    else:
        start_lanes(block, stepper, batch, span)
        close_columns_of_block(block, stepper, k)
    start, restarts = stepper.clock[clocks.T, 0], True
    while slot < times.shape[0] and times[slot] <= start:
        slot += 1
    running = count_lanes(stepper, RUNNING)
    while running > 0 and batch.outcome.interrupt[0] == 0:
        t = time_of_step(settings, start)
        if not resumed and block_waits_at(block, stepper, start, span, k):
            return
        resumed = False
        has_jumped = run_controllers_of_block(block, stepper, batch, t, k)
        if has_jumped:
            set_time_of_rate(stepper, t)
        if start >= end_time:
            break
        end = limit_to_stops_of_lanes(block, times[slot])
        quotient = (end - start) / settings.step * (1.0 - 1e-12) - ROUND_OFF_OF_TIMES * end / settings.step
        steps = max(1, int(math.ceil(quotient)))  # noqa: RUF046 (Numba's is a float)
        h, is_first = length_of_steps(settings.step, start, end, steps), start == times[0]
        if has_jumped or restarts:  # else the last rate of the previous step is used
            start_interval(block, stepper, constant_like(stepper.y, h), k)
        if is_first:
            start_motion(block, stepper, settings, batch, samples, k)
        restarts = tableau.order == 1 or end >= end_time or is_reached(limit_to_stops_of_lanes(block, math.inf), end)
        interval = start, h, steps, end == times[slot], restarts
        running = take_steps(block, stepper, settings, batch, interval, samples, k)
        start = end
        if not start < times[slot]:
            start, slot = times[slot], slot + 1
    end_block(block, stepper, batch, samples)


@kernel
def length_of_steps(step, start, end, steps):
    """Return the length of equal steps from start to end, s: `step` itself if it differs from it by round-off only."""
    if abs(end - start - steps * step) <= 2.0 * ROUND_OFF_OF_TIMES * abs(end):
        return step
    return (end - start) / steps


@kernel
def number_of_step(settings, start):
    """Return how many whole steps lie between the origin and the start of a step; -1 if it is between two of them."""
    number = math.floor((start - settings.origin) / settings.step + 0.5)
    is_multiple = abs(settings.origin + number * settings.step - start) <= 2.0 * ROUND_OFF_OF_TIMES * abs(start)
    return number if is_multiple else -1


@kernel
def time_of_step(settings, start):
    """Return the time at which a step starts, s, without the round-off of the saved time before it.

    So the time of a step depends neither on the saved times nor on the calls that divide a motion.
    """
    number = number_of_step(settings, start)
    return start if number < 0 else settings.origin + number * settings.step


@kernel
def take_steps(block, stepper, settings, batch, interval, samples, k):
    """Take the steps of an interval. Returns the number of samples that have not ended.

    `interval` are the start and the length of a step, s, the number of steps, and whether the interval ends at a saved
    time, and where the rate is computed again.
    """
    start, h, steps, ends_at_saved_time, restarts = interval
    running, number = count_lanes(stepper, RUNNING), number_of_step(settings, start)
    number = number if h == settings.step else -1
    for index in range(steps):
        if running == 0 or batch.outcome.interrupt[0] != 0:
            break
        is_last = index == steps - 1
        restarts_next, is_saved_time = is_last and restarts, is_last and ends_at_saved_time
        t = start + index * h if number < 0 else settings.origin + (number + index) * settings.step
        take_step(block, stepper, settings, batch, t, h, restarts_next, k)
        for lane in range(samples):
            if stepper.tally[tallies.STATUS, lane] == RUNNING:
                inspect_step(block, stepper, settings, batch, is_saved_time, lane)
        running = count_lanes(stepper, RUNNING)
        integrate_work(block, stepper, settings.tableau, batch, k)
        accept_step(block, stepper, settings, k)
    return running


@routine
def integrate_blocks(block, stepper, settings, batch, span, k):
    """Integrate the samples of a span with fixed steps, one block after the other."""
    first, last = span
    width = stepper.y.shape[1]
    for first_of_block in range(first, last, width):
        if batch.outcome.interrupt[0] != 0:
            break
        integrate_block(block, stepper, settings, batch, (first_of_block, min(first_of_block + width, last)), k)


def has_adaptive_steps(block, stepper, settings, *_):
    """Whether settings, or their Numba type, belong to a method with adaptive steps."""
    return getattr(settings, "instance_class", type(settings)) is AdaptiveStepSettings


integrate_samples = choose(has_adaptive_steps, integrate_adaptive_steps, integrate_blocks)


@kernel
def integrate(block, stepper, settings, batch, span, k):
    """Integrate the samples of a block, unless they have ended before."""
    if not has_ended(block, stepper):
        integrate_samples(block, stepper, settings, batch, span, k)
