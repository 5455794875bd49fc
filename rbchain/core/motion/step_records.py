"""Records of accepted steps: their continuous extensions, from which quantities are computed within the steps."""

from ...compiling.jit import choose, kernel, routine
from ..control.actuators import output_at
from ..lanes.lanes import constant_like
from ..methods.dense_output import interpolate
from ..sample.records import CLOCK_STEP, CLOCK_T, CONTROL_H, TALLY_SAMPLE, TALLY_STATUS, TALLY_STEPS
from ..sample.status import STOPPED
from ..tree.kinematics import normalize_positions
from ..tree.sampler_layout import has_samplers


@kernel
def store_outputs_of_step(block, record, t, place, lane):
    """Store the outputs of sampled controllers that act at time t, place = (sample, step, node)."""
    actions, (sample, step, node) = block.loads.actions, place
    for c in range(actions.sampled.held.shape[0]):
        record.outputs[sample, step, node, c] = output_at(actions, c, t, lane)


# Store the outputs of sampled controllers that act at a time within a step.
store_outputs = choose(has_samplers, store_outputs_of_step, lambda block, record, t, place, lane: None)


@routine
def store_step(block, stepper, tableau, batch, t_new, lane):
    """Store the step of a lane from its start to t_new in the StepRecord, if it has a place for it.

    The number of the step is `TALLY_STEPS`, so that the first one has the number 1. Number 0 is for the initial state.
    """
    y, y_new, state, rates, tally = stepper.y, stepper.y_new, stepper.change, stepper.rates, stepper.tally
    record, sample, step = batch.outcome.record, tally[TALLY_SAMPLE, lane], tally[TALLY_STEPS, lane]
    if step >= record.times.shape[1]:
        return
    h, t, last = stepper.control[CONTROL_H, lane], stepper.clock[CLOCK_T, lane], record.nodes.shape[0] - 1
    share = (t_new - t) / stepper.clock[CLOCK_STEP, lane]
    record.times[sample, step, 0] = t
    record.times[sample, step, 1] = t_new
    for node in range(last + 1):
        at_end = node == last and tally[TALLY_STATUS, lane] != STOPPED
        theta = constant_like(y, record.nodes[node] * share)
        for j in range(y.shape[0]):
            if node == 0 or at_end:
                state[j, lane] = y[j, lane] if node == 0 else y_new[j, lane]
            else:
                state[j, lane] = interpolate(tableau, y, y_new, h, rates, theta, j, lane)
        normalize_positions(block.model, state, lane)
        for j in range(y.shape[0]):
            record.states[sample, step, node, j] = state[j, lane]
        store_outputs(block, record, t + record.nodes[node] * (t_new - t), (sample, step, node), lane)
