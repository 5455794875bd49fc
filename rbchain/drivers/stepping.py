"""Kernels that move the samples of a stepper, as `Stepper` does in Python, with the same results, bit for bit.

They call the machine code of `integrate_batch` by its address, so that a user's driver does not compile it again.
"""

import math

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..compiling.jit import is_given, kernel, only_if, overload, plain_or_compiled, routine
from ..core.lanes.lanes import constant_like
from ..core.motion.sample_memory import TIME_OF_RATE
from ..core.sample import tally_layout as tallies
from ..core.sample.status import DONE, NOT_FINITE
from ..core.tree.sampler_layout import MOST_SAMPLES
from ..errors import ArgumentError
from .trajectories import integrate_batch

NUMBA_NAMES = {
    "numba.core.callconv.CPUCallConv": (
        "call_function(self, builder, callee, resty, argtys, args, attrs)",
        "get_function_type(self, restype, argtypes)",
        "return_status_propagate(self, builder, status)",
    ),
    "numba.core.cpu.CPUContext": ("call_conv", "get_dummy_value(self)"),
}


def integrate(entry, motion, first, last):
    """Call `integrate_batch`, whose compiled code is at `entry`, with the arguments in a Motion."""
    integrate_batch(*motion, first, last)


@intrinsic
def _integrate(typing_context, entry, motion, first, last):
    kinds = (*motion.types, types.int64, types.int64)

    def codegen(context, builder, sig, values):
        address, arguments, *span = values
        fields = [builder.extract_value(arguments, i) for i in range(len(motion.types))]
        function = context.call_conv.get_function_type(types.none, kinds)
        pointer = builder.inttoptr(address, ir.PointerType(function))
        status, _ = context.call_conv.call_function(builder, pointer, types.none, kinds, [*fields, *span])
        with builder.if_then(status.is_error, likely=False):
            context.call_conv.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.none(types.int64, motion, types.int64, types.int64), codegen


@overload(integrate)
def _overload_integrate(entry, motion, first, last):
    return lambda entry, motion, first, last: _integrate(entry, motion, first, last)


@plain_or_compiled
def time_of_steps(origin, steps, length):
    """Return the time after steps of one length, s, bit for bit the same in plain Python and in compiled code."""
    return origin + steps * length


@plain_or_compiled
def with_term(number, factor, value):
    """Return number + factor * value, bit for bit the same in plain Python and in compiled code."""
    return number + factor * value


@kernel
def end_of_call(samples, s, count, duration):
    """Return the time of sample s after `count` steps, or after a duration if `count` is 0, s."""
    timing = samples.timing
    if count > 0:
        return time_of_steps(timing.origin, samples.steps[s] + count, timing.step)
    return samples.t[s] + duration


@only_if(lambda samples: is_given(samples, "terms"))
@routine
def write_inputs(samples):
    """Write the inputs to the arrays of the kernels. Samples with inputs that are not finite fail."""
    terms, shared = samples.terms, samples.motion.actions.shared
    for s in range(samples.t.shape[0]):
        is_wrong = False
        for c in range(terms.columns.shape[0]):
            number = terms.constants[s, c]
            for term in range(terms.ends[c], terms.ends[c + 1]):
                value = samples.inputs[s, terms.inputs[term]]
                lower, upper = terms.ranges[term, 0], terms.ranges[term, 1]
                value = lower if value < lower else upper if value > upper else value  # NaN stays NaN
                number = with_term(number, terms.factors[s, term], value)
            is_wrong = is_wrong or not math.isfinite(float(constant_like(samples.q, number)))
            if terms.columns[c] < 0:
                shared.tables[terms.places[s, c]] = number
            else:
                shared.numbers[s, terms.columns[c]] = number
        if is_wrong and samples.status[s] == DONE:
            samples.status[s] = NOT_FINITE


@routine
def refuse_outdated(samples):
    """Raise an ArgumentError if the stepper has other arrays now."""
    if samples.is_current[0] == 0:
        raise ArgumentError(
            "the parameters or the random numbers of the stepper have changed in Python since the call of "
            "stepper.in_compiled_code(); call it again"
        )


@routine
def refuse_call(samples, count, duration):
    """Raise an ArgumentError if the samples cannot move, and mark those as pending that can continue."""
    for dof in range(samples.held.shape[0]):
        for s in range(samples.tau.shape[0]):
            if samples.held[dof] == 1 and samples.tau[s, dof] != 0.0:
                raise ArgumentError(
                    "tau is other than zero for a joint whose motion a drive prescribes, so it has no effect; "
                    "set its tau to 0, or remove the drive"
                )
    for s in range(samples.t.shape[0]):
        samples.pending[s] = 1 if samples.status[s] == DONE else 0
        if samples.pending[s] == 1 and end_of_call(samples, s, count, duration) > samples.timing.latest:
            raise ArgumentError(
                "the step ends after the duration of the stepper; expected an earlier time. Reset the samples, or give "
                "model.stepper a longer duration"
            )


@routine
def move(samples, count, duration):
    """Take `count` steps with all samples that can continue, or integrate for a duration, s, if `count` is 0."""
    refuse_outdated(samples)
    write_inputs(samples)
    refuse_call(samples, count, duration)
    motion, is_autonomous, size = samples.motion, samples.timing.is_autonomous, samples.t.shape[0]
    order, pending = motion.start.order, samples.pending
    for s in range(size):
        if pending[s] == 0:
            continue
        start, together = samples.t[s], 0
        motion.times[0], motion.times[1] = start, end_of_call(samples, s, count, duration)
        for other in range(s, size):
            if pending[other] == 1 and (is_autonomous or samples.t[other] == start):
                order[together] = other
                together += 1
                pending[other] = 0
        motion.outcome.interrupt[0] = 0  # Ctrl-C may have ended the last call
        integrate(samples.entry, motion, 0, together)
        for index in range(together):
            keep_result(samples, order[index], start, count, duration)


@kernel
def keep_result(samples, s, start, count, duration):
    """Keep the state of sample s after a call that integrated from a start, s."""
    outcome, nq = samples.motion.outcome, samples.q.shape[1]
    copy_row(outcome.end_states[s, :nq], samples.q[s])
    copy_row(outcome.end_states[s, nq:], samples.qd[s])
    copy_row(outcome.memory[s], samples.memory[s])
    samples.status[s] = outcome.tally[s, tallies.STATUS]
    if samples.status[s] == DONE:
        samples.t[s] = end_of_call(samples, s, count, duration)
        samples.steps[s] += count
    else:
        samples.t[s] += outcome.end_times[s] - start


@kernel
def copy_row(source, target):
    """Copy the first numbers of a row to a row (m,)."""
    for j in range(target.shape[0]):
        target[j] = source[j]


@kernel
def step(samples, count):
    """Take `count` steps with all samples that can continue, as `Stepper.step` does, in this thread.

    A sample that fails keeps its status and its last valid state. There is no warning.

    Parameters
    ----------
    samples : StepperArrays
    count : int

    Raises
    ------
    ArgumentError
        If `count` is not positive, the method chooses the length of its steps, the steps end after the duration of the
        stepper, or joints whose motion a drive prescribes have forces. Also if the parameters of the stepper have
        changed since `Stepper.in_compiled_code`.
    """
    if not samples.timing.step > 0.0:
        raise ArgumentError(
            "the method chooses the length of its steps, so they cannot be counted; use compiled.advance "
            "with a duration"
        )
    if count < 1:
        raise ArgumentError("count is not positive; expected a number of steps of at least 1")
    move(samples, count, 0.0)


@kernel
def advance(samples, duration):
    """Advance all samples that can continue by a duration, as `Stepper.advance` does with adaptive methods.

    Parameters
    ----------
    samples : StepperArrays
    duration : float, s

    Raises
    ------
    ArgumentError
        If `duration` is not positive, or the steps have a fixed length. Also as for `step`.
    """
    if samples.timing.step > 0.0:
        raise ArgumentError(
            "the steps of the method have a fixed length; expected the number of steps. Use compiled.step"
        )
    if not 0.0 < duration < math.inf:
        raise ArgumentError("duration is not a positive number; expected a finite time in s above 0")
    move(samples, 0, duration)


@kernel
def copy_sample(source, i, target, j):
    """Copy the state of sample i to sample j of a target: q, qd, tau, inputs, time, status, and states of controllers.

    Sample j keeps its parameters, its random numbers and the number of its episode.

    Parameters
    ----------
    source, target : StepperArrays or Snapshot
        Both from one stepper, or from steppers with the same method, drives and forces.
    i, j : int
    """
    copy_row(source.q[i], target.q[j])
    copy_row(source.qd[i], target.qd[j])
    copy_row(source.tau[i], target.tau[j])
    copy_row(source.inputs[i], target.inputs[j])
    copy_row(source.memory[i], target.memory[j])
    target.t[j], target.status[j], target.steps[j] = source.t[i], source.status[i], source.steps[i]


@kernel
def save(samples, snapshot):
    """Copy the state of all samples to a snapshot, as `Stepper.save` does.

    Parameters
    ----------
    samples : StepperArrays
    snapshot : Snapshot
        From `snapshot_of`.
    """
    for s in range(samples.t.shape[0]):
        copy_sample(samples, s, snapshot, s)
        snapshot.episodes[s] = samples.episodes[s]


@kernel
def restore(samples, snapshot):
    """Restore the state of all samples from a snapshot, as `Stepper.restore` does.

    Parameters
    ----------
    samples : StepperArrays
    snapshot : Snapshot
        From `snapshot_of`.
    """
    for s in range(samples.t.shape[0]):
        copy_sample(snapshot, s, samples, s)
        set_episode(samples, s, snapshot.episodes[s])


@kernel
def reset(samples, s):
    """Start a new episode of sample s, as `Stepper.reset` does: with the initial state, time, tau and inputs.

    Write to `samples.q[s]` and `samples.qd[s]` before the next step to start from another state. It must satisfy the
    constraints, and quaternions must have norm 1.

    Parameters
    ----------
    samples : StepperArrays
    s : int

    Raises
    ------
    ArgumentError
        If random signals or the draws of a study differ between episodes, because only Python can draw them.
    """
    beginning = samples.beginning
    refuse_outdated(samples)
    if not beginning.can_reset:
        raise ArgumentError(
            "random signals, drawn drives or sensors with sample_ids depend on the episode; expected a stepper without "
            "them. Use stepper.reset in Python, then stepper.in_compiled_code() again"
        )
    copy_row(beginning.q[s], samples.q[s])
    copy_row(beginning.qd[s], samples.qd[s])
    copy_row(beginning.tau[s], samples.tau[s])
    copy_row(beginning.inputs[s], samples.inputs[s])
    samples.t[s], samples.status[s], samples.steps[s] = samples.timing.origin, DONE, 0
    samples.memory[s, TIME_OF_RATE] = math.nan
    set_episode(samples, s, samples.episodes[s] + 1)


@kernel
def set_episode(samples, s, episode):
    """Set the number of the episode of sample s."""
    samples.episodes[s] = episode
    set_number_of_noise(samples, s, samples.beginning.numbers[s] + MOST_SAMPLES * episode)


@only_if(lambda samples, s, number: is_given(samples, "motion", "actions"))
@kernel
def set_number_of_noise(samples, s, number):
    """Set the number on which the noise of the sensors of sample s depends."""
    columns = samples.beginning.columns
    for j in range(columns.shape[0]):
        samples.motion.actions.shared.numbers[s, columns[j]] = number
