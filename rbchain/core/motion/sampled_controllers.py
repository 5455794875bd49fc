"""Sampled controllers: measure the state at the instants, compute the outputs, and hold them. See `sampler_clocks`.

The integral of a PID controller is a discrete state: I_i = I_(i-1) + period e_i, which the output of instant i uses.
"""

import math

from ...compiling.jit import choose, kernel, only_if, routine
from ..control import drive_layout as drive
from ..control.actuators import output_at
from ..control.callbacks import call, store_failed_call
from ..control.drive_forces import feedback, reference
from ..control.drives import sweep_under_actions
from ..control.needed_quantities import compute_needs, copy_needs
from ..control.sampler_clocks import (
    hold_due_outputs,
    instant,
    is_measurement_due,
    is_reached,
    set_next_stop,
)
from ..control.user_calls import call_user_forces
from ..forces import signal_layout as signal
from ..forces.signals import evaluate_signals
from ..lanes.lanes import constant_like, select
from ..linear.sampled_sensitivities import (
    differentiate_gravity_of_group,
    differentiate_output,
    enqueue_changes,
    hold_changes,
    keep_measured_changes,
    restart_changes_of_lags,
)
from ..sample import clock_layout as clocks, control_layout as controls, tally_layout as tallies
from ..sample.status import DONE, RUNNING
from ..tree import joint_layout as joint, sampler_layout as sampler, setting_layout as setting
from ..tree.layout import CALLS_ALLOWED, apply_gravity
from ..tree.sampler_layout import actions_have_limits, has_batch_calls, has_samplers
from .measurements import is_due, measure_lanes, rounded


@routine
def run_controllers(block, stepper, batch, with_ended_samples, k):
    """Run the controllers with a stop at the time of their lane, and save their outputs if that is a saved time.

    Sets FLAG_HAS_CHANGED in lanes with a stop, and returns their number. Writes controls.TIME. `with_ended_samples`
    states whether the clocks of samples that have ended continue.
    """
    actions, sampled, changed = block.loads.actions, block.loads.actions.sampled, 0
    width = stepper.y.shape[1]
    for lane in range(width):
        sampled.flags[sampler.FLAG_HAS_CHANGED, lane] = constant_like(sampled.flags, 0.0)
        stepper.control[controls.TIME, lane] = constant_like(stepper.y, stepper.clock[clocks.T, lane])
    for g in range(sampled.stops.shape[0]):
        due = 0
        for lane in range(width):
            status, t = stepper.tally[tallies.STATUS, lane], stepper.clock[clocks.T, lane]
            sampled.flags[sampler.FLAG_IS_DUE, lane] = constant_like(sampled.flags, 0.0)
            if (with_ended_samples or status in (RUNNING, DONE)) and is_reached(sampled.stops[g, lane], t):
                sampled.flags[sampler.FLAG_HAS_CHANGED, lane] = constant_like(sampled.flags, 1.0)
                hold_outputs(actions, g, t, lane)
                if is_measurement_due(actions, g, t, lane):
                    sampled.flags[sampler.FLAG_IS_DUE, lane] = constant_like(sampled.flags, 1.0)
                    due += 1
        if due > 0:
            set_outputs(block, stepper, g, k)
        for lane in range(width):
            if has_changed(block, lane) and is_reached(sampled.stops[g, lane], stepper.clock[clocks.T, lane]):
                hold_outputs(actions, g, stepper.clock[clocks.T, lane], lane)
                set_next_stop(actions, g, lane)
    for lane in range(width):
        if has_changed(block, lane):
            changed += 1
            save_outputs_at_stop(block, stepper, batch, lane)
    return changed


@kernel
def hold_outputs(actions, g, t, lane):
    """Latch the outputs of a group that are due at time t, s, or before, and their derivatives."""
    before = actions.sampled.counts[sampler.COUNT_ACTING, g, lane]
    restart_changes_of_lags(actions, g, t, lane)
    hold_due_outputs(actions, g, t, lane)
    hold_changes(actions, g, before, lane)


@kernel
def has_changed(block, lane):
    """Whether the controllers of a lane have had a stop."""
    flags = block.loads.actions.sampled.flags
    return flags[sampler.FLAG_HAS_CHANGED, lane] > constant_like(flags, 0.0)


@routine
def compute_outputs(block, stepper, g, k):
    """Measure the state and compute the outputs of a group, N m, N or targets, in the lanes with FLAG_IS_DUE."""
    actions, sampled, samplers = block.loads.actions, block.loads.actions.sampled, block.loads.actions.shared.samplers
    nq, n, calls_function = block.q.shape[0], block.qd.shape[0], samplers.groups[sampler.GROUP_FUNCTION, g] != 0
    measure_lanes(block, stepper, g, k)
    evaluate_signals(actions, k)
    add_errors(block, g, k)
    run_sweeps_of_group(block, g, k)
    compute_needs(block, g, k)
    differentiate_gravity_of_group(block, g, k)
    for d in range(samplers.drives.shape[1]):
        if samplers.channels[sampler.CHANNEL_GROUP, d] == g:
            force, due = force_of_controller(d, block, k), is_due(block, k)
            differentiate_output(block, stepper.y, g, d, force, due, k)
            set_output(actions, g, d, float(limited_force(d, actions, force, k)), due, k)
    keep_measured_changes(block, stepper.y, g, is_due(block, k), k)
    for lane in range(stepper.y.shape[1]):
        if is_due(block, lane):
            if not calls_function or call_sampled_function(actions, g, nq, n, lane):
                enqueue_outputs(actions, g, lane)
            sampled.counts[sampler.COUNT_NEXT, g, lane] += 1


@routine
def set_outputs_of_batch(block, stepper, g, k):
    """Compute the outputs of a group as `compute_outputs` does, or take the outputs that Python has computed."""
    actions = block.loads.actions
    if actions.shared.samplers.groups[sampler.GROUP_BATCH_CALL, g] == 0:
        compute_outputs(block, stepper, g, k)
        return
    for lane in range(stepper.y.shape[1]):
        if is_due(block, lane):
            enqueue_outputs_of_batch(actions, g, lane)
            actions.sampled.counts[sampler.COUNT_NEXT, g, lane] += 1


@kernel
def enqueue_outputs_of_batch(actions, g, lane):
    """Add the outputs that Python has computed for a lane to the queue. If they are not finite, the call has failed."""
    groups, index = actions.shared.samplers.groups, actions.sampled.counts[sampler.COUNT_NEXT, g, lane]
    outputs, sample = (
        actions.shared.samplers.batch_calls.outputs[groups[sampler.GROUP_BATCH_CALL, g] - 1],
        actions.sample[lane],
    )
    if actions.failures[lane] != CALLS_ALLOWED:
        return
    for j in range(groups[sampler.GROUP_OUTPUT_COUNT, g]):
        if not math.isfinite(outputs[sample, j]):
            t = float(instant(actions, g, index))
            store_failed_call(actions, groups[sampler.GROUP_FUNCTION_CODE, g], t, actions.sampled.measured, lane)
            return
    for j in range(groups[sampler.GROUP_OUTPUT_COUNT, g]):
        set_output(actions, g, groups[sampler.GROUP_CHANNEL, g] + j, outputs[sample, j], True, lane)
    enqueue_outputs(actions, g, lane)


# Compute the outputs of a group, in the lanes with FLAG_IS_DUE.
set_outputs = choose(has_batch_calls, set_outputs_of_batch, compute_outputs)


@kernel
def add_errors(block, g, k):
    """Add the errors of the controllers of a group, times the period, to their integrals, if FLAG_IS_DUE is set.

    Writes `SamplerMemory.integrals`, rad s or m s.
    """
    actions, drives = block.loads.actions, block.loads.actions.shared.samplers.drives
    sampled, samplers, due = actions.sampled, actions.shared.samplers, is_due(block, k)
    period = constant_like(sampled.integrals, samplers.clocks[sampler.CLOCK_PERIOD, g])
    for d in range(drives.shape[1]):
        if samplers.channels[sampler.CHANNEL_GROUP, d] == g:
            position = sampled.measured[block.model.coordinate[drives[drive.DOF, d]], k]
            error = reference(actions, drives[drive.SIGNAL, d], signal.VALUE, d, k) - position
            integral = sampled.integrals[d, k]
            sampled.integrals[d, k] = select(due, integral + period * error, integral)


@kernel
def run_sweeps_of_group(block, g, k):
    """Compute the gravity forces and the computed torques of a group, N m and N, with the measured state.

    Writes joint.GRAVITY_FORCE and joint.COMPUTED_TORQUE.
    """
    actions, groups = block.loads.actions, block.loads.actions.shared.samplers.groups
    settings, y, nq, n = actions.settings, actions.sampled.measured, block.q.shape[0], block.qd.shape[0]
    compensates, computes = settings[setting.COMPENSATES], settings[setting.COMPUTES]
    if groups[sampler.GROUP_COMPENSATES, g] == 0 and groups[sampler.GROUP_COMPUTES, g] == 0:
        return
    settings[setting.SAMPLED_GROUP] = g + 1
    settings[setting.COMPENSATES], settings[setting.COMPUTES] = 1, groups[sampler.GROUP_COMPUTES, g]
    if settings[setting.FUNCTIONS] > 0:
        for lane in range(actions.time.shape[1]):
            if is_due(block, lane):
                call_user_forces(actions, nq, n, y, lane)
    for sweep in range(1 + groups[sampler.GROUP_COMPUTES, g]):
        sweep_under_actions(sweep, block, y, k)
    settings[setting.SAMPLED_GROUP] = 0
    settings[setting.COMPENSATES], settings[setting.COMPUTES] = compensates, computes
    apply_gravity(block.model, block.work, k)


@kernel
def force_of_controller(d, block, k):
    """Compute the output of the sampled controller of drive d before its limits, N m or N."""
    actions, drives = block.loads.actions, block.loads.actions.shared.samplers.drives
    i = drives[drive.DOF, d]
    if drives[drive.KIND, d] == drive.KIND_COMPUTED_TORQUE:
        force = actions.joints[joint.COMPUTED_TORQUE, i, k]
    else:
        force = feedback(d, block, actions.sampled.measured, k)
        if drives[drive.FEEDFORWARD, d] >= 0:
            force = force + actions.values[drives[drive.FEEDFORWARD, d], signal.VALUE, k]
    if drives[drive.COMPENSATES_GRAVITY, d] == 1:
        force = force + actions.joints[joint.GRAVITY_FORCE, i, k]
    return force


@kernel
def limited_force(d, actions, force, k):
    """Clip the output of the sampled controller of drive d to its limit, N m or N."""
    limit = actions.numbers[actions.shared.samplers.drives[drive.GAINS, d] + drive.GAIN_LIMIT, k]
    return min(max(force, -limit), limit)


@only_if(actions_have_limits, otherwise=lambda actions, c, value, k: value)
@kernel
def clipped(actions, c, value, k):
    """Clip an output to the limit of its channel. NaN stays NaN. Both have the unit of the channel."""
    at = actions.shared.samplers.limits[c]
    if at < 0:
        return value
    limit = float(actions.numbers[at, k])
    return select(abs(value) > limit, math.copysign(limit, value), value)


@kernel
def set_output(actions, g, c, value, due, k):
    """Apply the limit, the rate limit and the resolution of channel c to an output, in lanes that are due.

    The output `value` is in N m or N, or a target in rad, m, rad/s or m/s; `value` and `due` belong to the lanes k.
    """
    sampled, samplers = actions.sampled, actions.shared.samplers
    at, computed = samplers.channels[sampler.CHANNEL_NUMBERS, c], sampled.computed[c, k]
    change, previous = float(actions.numbers[at, k]) * samplers.clocks[sampler.CLOCK_PERIOD, g], float(computed)
    value = clipped(actions, c, value, k)
    step = value - previous
    value = select(abs(step) > change, previous + math.copysign(change, step), value)  # min and max may hide NaN
    value = rounded(value, float(actions.numbers[at + 1, k]))
    sampled.computed[c, k] = select(due, constant_like(sampled.computed, value), computed)


@kernel
def enqueue_outputs(actions, g, lane):
    """Add the computed outputs of a group to the queue of a lane."""
    sampled, channels = actions.sampled, actions.shared.samplers.channels
    slot = sampled.counts[sampler.COUNT_NEXT, g, lane] % sampled.queue.shape[0]
    for c in range(channels.shape[1]):
        if channels[sampler.CHANNEL_GROUP, c] == g:
            sampled.queue[slot, c, lane] = sampled.computed[c, lane]
    enqueue_changes(actions, g, slot, lane)


@kernel
def call_sampled_function(actions, g, nq, nv, lane):
    """Call the user function of a group with the measured state of a lane, and set its outputs.

    Returns whether there are outputs. There are none if the function has failed, or if the sample has ended.
    """
    sampled, groups, memory = actions.sampled, actions.shared.samplers.groups, actions.call_arguments
    if actions.failures[lane] != CALLS_ALLOWED:
        return False
    first, count = groups[sampler.GROUP_FUNCTION_NUMBERS, g], groups[sampler.GROUP_FUNCTION_COUNT, g]
    state, states = groups[sampler.GROUP_STATE, g], groups[sampler.GROUP_STATE_COUNT, g]
    n, parameters = groups[sampler.GROUP_OUTPUT_COUNT, g], nq + nv
    out = parameters + count + copy_needs(actions, g, parameters + count, lane)
    end = out + n + states
    for j in range(parameters):
        memory[j] = sampled.measured[j, lane]
    for j in range(count):
        memory[parameters + j] = actions.numbers[first + j, lane]
    for j in range(n):
        memory[out + j] = 0.0
    for j in range(states):
        memory[out + n + j] = sampled.states[state + j, lane]
    t = float(instant(actions, g, sampled.counts[sampler.COUNT_NEXT, g, lane]))
    failed = call(
        groups[sampler.GROUP_FUNCTION, g],
        t,
        memory[:nq],
        memory[nq:parameters],
        memory[parameters:out],
        memory[out:end],
    )
    if failed != 0:
        store_failed_call(actions, groups[sampler.GROUP_FUNCTION_CODE, g], t, sampled.measured, lane)
        return False
    for j in range(states):
        sampled.states[state + j, lane] = constant_like(sampled.states, memory[out + n + j])
    for j in range(n):
        set_output(actions, g, groups[sampler.GROUP_CHANNEL, g] + j, memory[out + j], True, lane)
    return True


# --- saved outputs ----------------------------------------------------------------------------------------------------


@kernel
def save_outputs(block, stepper, batch, slot, lane):
    """Save the outputs that act in a lane at the saved time number `slot`, in `Saved.outputs`."""
    actions, m, sample = block.loads.actions, batch.times.shape[0], stepper.tally[tallies.SAMPLE, lane]
    count = actions.sampled.held.shape[0]
    for c in range(count):
        batch.saved.outputs[(sample * m + slot) * count + c] = output_at(actions, c, batch.times[slot], lane)


@kernel
def save_outputs_at_stop(block, stepper, batch, lane):
    """Save the outputs again if the last saved time is at the stop, because the new outputs take effect at the stop.

    User functions are not called in a lane whose sample has ended, or that has a copy of the sample before it.
    """
    slot, samples = stepper.tally[tallies.SAVED, lane] - 1, stepper.tally[tallies.SAMPLE]
    is_copy, has_ended = lane > 0 and samples[lane] == samples[lane - 1], stepper.tally[tallies.STATUS, lane] > DONE
    if not is_copy and not has_ended and is_reached(stepper.clock[clocks.T, lane], batch.times[slot]):
        save_outputs(block, stepper, batch, slot, lane)


@only_if(has_samplers)
@kernel
def save_held_outputs(block, stepper, batch, first, lane):
    """Save the outputs for all saved times of a step; `first` was the next one before the step."""
    for slot in range(first, stepper.tally[tallies.SAVED, lane]):
        save_outputs(block, stepper, batch, slot, lane)
