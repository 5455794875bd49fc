"""The common parts of fixed and adaptive steps: copy a sample to a lane, close the loops, save states."""

import numpy as np

from ...compiling.jit import kernel, only_if, routine
from ..control.sampler_clocks import begin_targets
from ..lanes.lanes import constant_like, select
from ..linear.sensitivities import evaluate_with_sensitivities, start_sensitivities
from ..loops.constraint_hooks import (
    closed_lanes,
    decide_rank,
    has_constraints,
    has_open_loops,
    is_end_near_singularity,
    needs_new_factors,
    project_end_of_step,
    project_end_with_new_factors,
)
from ..methods.runge_kutta import MIN_PREVIOUS_ERROR
from ..sample import clock_layout as clocks, control_layout as controls, tally_layout as tallies
from ..sample.rate import evaluate, set_sample_forces
from ..sample.records import ERROR_TO_SHORTEN
from ..sample.status import STOPPED
from ..sample.work_memory import begin_work
from ..tree.kinematics import normalize_positions
from ..tree.layout import sample_entry, set_sample_parameters
from .position_limits import check_limits_of_start
from .sample_memory import continues, recall_memory, record_memory
from .sampled_controllers import save_held_outputs
from .step_parts import state_within_step


@only_if(has_constraints)
@routine
def close_end_of_step(block, stepper, tableau, k):
    """Project the end of a step onto the constraints, and compute the rate there.

    Reads controls.ERROR: only steps whose error is accepted are projected. If the projection fails, the error is
    infinite. If the end is close to a singular configuration, the error is a number that shortens the step.

    The independent rows are chosen again only in lanes that are closed. Lanes with a rejected step keep the choice for
    its start.
    """
    control, y_new, final = stepper.control, stepper.y_new, tableau.c.shape[0] - 1
    one, zero = constant_like(y_new, 1.0), constant_like(y_new, 0.0)
    error, h = control[controls.ERROR, k], control[controls.H, k]
    accepted = select(error <= one, one, zero)
    accepted = select(h > zero, accepted, zero)  # idle lanes have no step, and their states are not closed
    project_end_of_step(block, y_new, accepted, k)
    if needs_new_factors(block, k):
        evaluate(block, y_new, control[controls.TIME, k] + h, stepper.rates[final], k)
        project_end_with_new_factors(block, y_new, k)
    normalize_positions(block.model, y_new, k)
    decide_rank(block, closed_lanes(block, accepted, k), k)
    evaluate_with_sensitivities(block, y_new, control[controls.TIME, k] + h, stepper.rates[final], k)
    decide_rank(block, zero, k)
    for lane in range(y_new.shape[1]):
        if has_open_loops(block, lane):
            control[controls.ERROR, lane] = constant_like(control, np.inf)
        elif float(control[controls.ERROR, lane]) <= 1.0 and is_end_near_singularity(block, lane):
            control[controls.ERROR, lane] = constant_like(control, ERROR_TO_SHORTEN)


@kernel
def save_lane(block, y, batch, sample, slot, lane):
    """Save the state y of a lane in `Saved` at the saved time number `slot`."""
    nq, nv, m = block.q.shape[0], block.qd.shape[0], batch.times.shape[0]
    integrals = y.shape[0] - nq - nv
    for i in range(nq):
        batch.saved.q[(sample * m + slot) * nq + i] = y[i, lane]
    for i in range(nv):
        batch.saved.qd[(sample * m + slot) * nv + i] = y[nq + i, lane]
    for i in range(integrals):
        batch.saved.integrals[(sample * m + slot) * integrals + i] = y[nq + nv + i, lane]


@routine
def save_passed_times(block, stepper, tableau, batch, t_new, lane):
    """Save the states at the saved times up to t_new, by the continuous extension of the step of a lane."""
    y, y_new, state = stepper.y, stepper.y_new, stepper.change
    h, slot, sample = (
        stepper.control[controls.H, lane],
        stepper.tally[tallies.SAVED, lane],
        stepper.tally[tallies.SAMPLE, lane],
    )
    while slot < batch.times.shape[0] and batch.times[slot] <= t_new:
        theta = constant_like(y, (batch.times[slot] - stepper.clock[clocks.T, lane]) / stepper.clock[clocks.STEP, lane])
        at_end = batch.times[slot] == t_new and stepper.tally[tallies.STATUS, lane] != STOPPED
        for j in range(y.shape[0]):
            within = state_within_step(block, stepper, tableau, h, theta, j, lane)
            state[j, lane] = y_new[j, lane] if at_end else within
        normalize_positions(block.model, state, lane)
        save_lane(block, state, batch, sample, slot, lane)
        slot += 1
    stepper.tally[tallies.SAVED, lane] = slot


@kernel
def save_end(y, batch, sample, t, lane):
    """Save the state y of a lane as the last valid state of a sample, at time t, s, in `Outcome`."""
    batch.outcome.end_times[sample] = t
    for j in range(y.shape[0]):
        batch.outcome.end_states[sample, j] = y[j, lane]


@routine
def record_sample(block, stepper, batch, lane):
    """Record the status and the counts of a lane's sample, and set its states at later saved times to NaN."""
    nq, nv, m, sample = block.q.shape[0], block.qd.shape[0], batch.times.shape[0], stepper.tally[tallies.SAMPLE, lane]
    integrals, saved = stepper.y.shape[0] - nq - nv, stepper.tally[tallies.SAVED, lane]
    for row in range(tallies.RECORDED):
        batch.outcome.tally[sample, row] = stepper.tally[row, lane]
    record_memory(block, stepper, batch.outcome.memory, sample, lane)
    for j in range((sample * m + saved) * nq, (sample + 1) * m * nq):
        batch.saved.q[j] = constant_like(batch.saved.q, np.nan)
    for j in range((sample * m + saved) * nv, (sample + 1) * m * nv):
        batch.saved.qd[j] = constant_like(batch.saved.qd, np.nan)
    for j in range((sample * m + saved) * integrals, (sample + 1) * m * integrals):
        batch.saved.integrals[j] = constant_like(batch.saved.integrals, np.nan)


@routine
def start_sample(block, stepper, batch, index, lane):
    """Copy the initial state, the joint forces, the actions and the parameters of a sample to a lane.

    `index` counts the samples that the call integrates.
    """
    nq, nv, order = block.q.shape[0], block.qd.shape[0], batch.start.order
    sample = order[index] if order.shape[0] > 0 else index
    for i in range(nq):
        stepper.y[i, lane] = sample_entry(batch.start.q, sample, i)
    for i in range(nv):
        stepper.y[nq + i, lane] = sample_entry(batch.start.qd, sample, i)
    for i in range(nq + nv, stepper.y.shape[0]):
        stepper.y[i, lane] = constant_like(stepper.y, 0.0)
    if not continues(batch.start.memory, sample):  # another normalization may change the round-off
        normalize_positions(block.model, stepper.y, lane)
    set_sample_parameters(block, block.model.parameters, batch.variation, sample, sample % stepper.y.shape[1], lane)
    set_sample_forces(block, batch.start.tau, batch.times[0], sample, lane)
    begin_targets(block, stepper.y, lane)
    start_sensitivities(block, stepper.y, lane)
    begin_work(stepper, batch, sample, lane)
    stepper.tally[tallies.STEPS, lane] = 0
    stepper.tally[tallies.REJECTIONS, lane] = 0
    stepper.tally[tallies.EVALUATIONS, lane] = 0
    stepper.tally[tallies.IS_STIFF, lane] = 0
    stepper.tally[tallies.PARTS, lane] = 0
    stepper.tally[tallies.BEYOND_LIMIT, lane] = 0
    stepper.tally[tallies.STIFF_STEPS, lane] = 0
    stepper.tally[tallies.SMOOTH_STEPS, lane] = 0
    stepper.tally[tallies.SAMPLE, lane] = sample
    stepper.tally[tallies.SAVED, lane] = 1
    stepper.tally[tallies.AFTER_REJECTION, lane] = 0
    stepper.tally[tallies.BREAK, lane] = 0
    check_limits_of_start(stepper, batch, lane)
    stepper.clock[clocks.T, lane] = batch.times[0]
    stepper.clock[clocks.RATE, lane] = batch.times[0]
    stepper.clock[clocks.PROPOSED, lane] = 0.0
    stepper.clock[clocks.PREVIOUS_ERROR, lane] = MIN_PREVIOUS_ERROR
    recall_memory(block, stepper, batch.start, sample, lane)
    if continues(batch.start.memory, sample):  # else the controllers save their first outputs
        save_held_outputs(block, stepper, batch, 0, lane)
    stepper.control[controls.TIME, lane] = constant_like(stepper.y, batch.times[0])
    stepper.control[controls.NEW, lane] = constant_like(stepper.y, 1.0)
    stepper.control[controls.ACCEPTED, lane] = constant_like(stepper.y, 0.0)
