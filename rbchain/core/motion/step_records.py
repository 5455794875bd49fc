"""Records of accepted steps: their continuous extensions, to compute quantities within the steps."""

from ...compiling.jit import kernel, only_if, routine
from ..control.actuators import output_at
from ..lanes.lanes import constant_like
from ..sample import clock_layout as clocks, control_layout as controls, spare_layout as spares, tally_layout as tallies
from ..sample.status import STOPPED
from ..tree.kinematics import normalize_positions
from ..tree.sampler_layout import has_samplers
from .step_parts import has_parts, meeting_of_parts, state_within_step


@only_if(has_samplers)
@kernel
def store_outputs(block, record, t, place, lane):
    """Store the outputs of sampled controllers that act at time t in a StepRecord, place = (sample, step, node)."""
    actions, (sample, step, node) = block.loads.actions, place
    for c in range(actions.sampled.held.shape[0]):
        record.outputs[sample, step, node, c] = output_at(actions, c, t, lane)


@routine
def store_part(block, stepper, tableau, batch, part, span, lane):
    """Store a part of the step of a lane in the StepRecord, if it has a place for it.

    `part` is its number, `span` = (fraction of the step at its start, fraction at its end, time at its end). The number
    of the record is `tallies.PARTS`, so that the first one has the number 1. Number 0 is for the initial state.
    """
    y, y_new, state, spare, tally = stepper.y, stepper.y_new, stepper.change, stepper.spare, stepper.tally
    tally[tallies.PARTS, lane] += 1
    record, sample, number = batch.outcome.record, tally[tallies.SAMPLE, lane], tally[tallies.PARTS, lane]
    if number >= record.times.shape[1]:
        return
    h, t, last = stepper.control[controls.H, lane], stepper.clock[clocks.T, lane], record.nodes.shape[0] - 1
    first, end, t_end = span
    t_start = t + first * stepper.clock[clocks.STEP, lane] if first > 0.0 else t
    record.times[sample, number, 0] = t_start
    record.times[sample, number, 1] = t_end
    for node in range(last + 1):
        theta = constant_like(y, first + record.nodes[node] * (end - first))
        for j in range(y.shape[0]):
            if node == 0:
                state[j, lane] = y[j, lane] if part == 0 else spare[spares.PART_START, j, lane]
            elif node == last and end == 1.0:
                state[j, lane] = y_new[j, lane]
            else:
                state[j, lane] = state_within_step(block, stepper, tableau, h, theta, j, lane)
        normalize_positions(block.model, state, lane)
        for j in range(y.shape[0]):
            record.states[sample, number, node, j] = state[j, lane]
        store_outputs(block, record, t_start + record.nodes[node] * (t_end - t_start), (sample, number, node), lane)


@only_if(
    has_parts,
    otherwise=lambda block, stepper, tableau, batch, end, t_new, lane: store_part(
        block, stepper, tableau, batch, 0, (0.0, end, t_new), lane
    ),
)
@routine
def store_parts_of_step(block, stepper, tableau, batch, end, t_new, lane):
    """Store the parts of the step of a lane from its start to t_new, the fraction `end` of the step."""
    meeting = float(meeting_of_parts(block, stepper, lane))
    if end <= meeting:
        store_part(block, stepper, tableau, batch, 0, (0.0, end, t_new), lane)
        return
    t_meeting = stepper.clock[clocks.T, lane] + meeting * stepper.clock[clocks.STEP, lane]
    store_part(block, stepper, tableau, batch, 0, (0.0, meeting, t_meeting), lane)
    store_part(block, stepper, tableau, batch, 1, (meeting, end, t_new), lane)


@routine
def store_step(block, stepper, tableau, batch, t_new, lane):
    """Store the step of a lane from its start to t_new in the StepRecord, as far as it has places."""
    is_whole = stepper.tally[tallies.STATUS, lane] != STOPPED
    share = (t_new - stepper.clock[clocks.T, lane]) / stepper.clock[clocks.STEP, lane]
    end = 1.0 if is_whole else share
    store_parts_of_step(block, stepper, tableau, batch, end, t_new, lane)
