"""Take a sample into a lane, compute the stages of its steps, and save its states: for fixed and adaptive steps alike.

`fixed_steps` and `adaptive_steps` put these and the Runge-Kutta kernels together.
"""

from typing import NamedTuple

import numpy as np

from ..simd.jit import kernel, routine
from ..simd.lanes import constant_like
from ..tree.kinematics import normalize_positions
from ..tree.layout import sample_entry, set_sample_parameters
from .action_hooks import evaluate, set_sample_forces
from .runge_kutta import SMALLEST_ERROR, advance, interpolate
from .status import STOPPED
from .tableaus import Tableau

# Rows of `Stepper.control`, in the precision of the states.
CONTROL_H, CONTROL_ERROR, CONTROL_ACCEPTED, CONTROL_FRESH = 0, 1, 2, 3
CONTROL_SIZE, CONTROL_RATE, CONTROL_TRIAL, CONTROL_TIME = 4, 5, 6, 7
CONTROL_ROWS = 8
# Rows of `Stepper.clock`, always float64: a float32 time would drift.
CLOCK_T, CLOCK_STEP, CLOCK_PREVIOUS_ERROR = 0, 1, 2
CLOCK_ROWS = 3
# Rows of `Stepper.tally`; the first four are also the columns of `Outcome.tally`.
TALLY_STATUS, TALLY_STEPS, TALLY_REJECTIONS, TALLY_EVALUATIONS = 0, 1, 2, 3
TALLY_SAMPLE, TALLY_SAVED, TALLY_AFTER_REJECTION = 4, 5, 6
TALLY_ROWS = 7


class Records(NamedTuple):
    """Events and failed calls of user functions.

    `counts` (samples, events), `times` (samples, events, most), `states` (samples, events, most, rows of the state).
    `failures` (samples,) is the code of the user function that failed, or 0; `failed_calls` (samples, 1 + nq + nv)
    holds the arguments t, q, qd of that call. Both are empty if there is no user function.
    """

    counts: np.ndarray
    times: np.ndarray
    states: np.ndarray
    failures: np.ndarray
    failed_calls: np.ndarray


class Start(NamedTuple):
    """Initial states and constant joint forces, (samples, ...) or of a single sample (...,)."""

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray


class Saved(NamedTuple):
    """States at the saved times, flat: per sample (times, nq), (times, nv) and (times, integrals of errors)."""

    q: np.ndarray
    qd: np.ndarray
    integrals: np.ndarray


class Outcome(NamedTuple):
    """How each sample ended, and the flag by which the caller stops all lanes.

    `tally` (samples, 4): status and counts; `end_times` (samples,) and `end_states` (samples, rows of the state): the
    last valid state; `interrupt` (1,) is not zero once the caller wants all lanes to stop.
    """

    tally: np.ndarray
    end_times: np.ndarray
    end_states: np.ndarray
    interrupt: np.ndarray


class Batch(NamedTuple):
    """The samples of a call: where they start, the parameters that they do not share, and where their results go.

    `times` (m,) are those to be saved; `records` of events, or None.
    """

    start: Start
    variation: object
    times: np.ndarray
    saved: Saved
    outcome: Outcome
    records: object


class Tolerances(NamedTuple):
    """Relative and absolute error of a step, and how many steps a sample may take, accepted and rejected."""

    rtol: float
    atol: float
    max_steps: int


class FixedStepSettings(NamedTuple):
    """The method, and the length that no step exceeds, s."""

    tableau: Tableau
    step: float


class AdaptiveStepSettings(NamedTuple):
    """The method, and the tolerances that it keeps."""

    tableau: Tableau
    tolerances: Tolerances


class Stepper(NamedTuple):
    """The integrator's memory for one block of lanes: states (rows, lanes), in them q, qd and integrals of errors."""

    y: np.ndarray
    y_new: np.ndarray
    change: np.ndarray
    rates: np.ndarray
    control: np.ndarray
    clock: np.ndarray
    tally: np.ndarray


@kernel
def compute_stages(block, stepper, tableau, k):
    """The stages of a step from y, whose rate is known; its end is left in y_new, and the rate there as the last."""
    y, y_new, rates, h = stepper.y, stepper.y_new, stepper.rates, stepper.control[CONTROL_H, k]
    for stage in range(1, tableau.c.shape[0]):
        advance(tableau.A[stage], stage, y, h, rates, y_new, k)
        evaluate(
            block, y_new, stepper.control[CONTROL_TIME, k] + constant_like(h, tableau.c[stage]) * h, rates[stage], k
        )


@kernel
def save_lane(block, y, batch, sample, slot, lane):
    """Save the state of a lane as it is in y."""
    nq, nv, m = block.q.shape[0], block.qd.shape[0], batch.times.shape[0]
    more = y.shape[0] - nq - nv
    for i in range(nq):
        batch.saved.q[(sample * m + slot) * nq + i] = y[i, lane]
    for i in range(nv):
        batch.saved.qd[(sample * m + slot) * nv + i] = y[nq + i, lane]
    for i in range(more):
        batch.saved.integrals[(sample * m + slot) * more + i] = y[nq + nv + i, lane]


@routine
def save_passed(block, stepper, tableau, batch, t_new, lane):
    """Save the times that the step of a lane has passed by t_new, by the continuous extension."""
    y, y_new, passed, rates = stepper.y, stepper.y_new, stepper.change, stepper.rates
    h, slot, sample = (
        stepper.control[CONTROL_H, lane],
        stepper.tally[TALLY_SAVED, lane],
        stepper.tally[TALLY_SAMPLE, lane],
    )
    while slot < batch.times.shape[0] and batch.times[slot] <= t_new:
        theta = constant_like(y, (batch.times[slot] - stepper.clock[CLOCK_T, lane]) / stepper.clock[CLOCK_STEP, lane])
        at_end = batch.times[slot] == t_new and stepper.tally[TALLY_STATUS, lane] != STOPPED
        for j in range(y.shape[0]):
            passed[j, lane] = y_new[j, lane] if at_end else interpolate(tableau, y, y_new, h, rates, theta, j, lane)
        normalize_positions(block.model, passed, lane)
        save_lane(block, passed, batch, sample, slot, lane)
        slot += 1
    stepper.tally[TALLY_SAVED, lane] = slot


@kernel
def save_end(y, batch, sample, t, lane):
    """Save the last valid state of a sample, at time t."""
    batch.outcome.end_times[sample] = t
    for j in range(y.shape[0]):
        batch.outcome.end_states[sample, j] = y[j, lane]


@routine
def record_sample(block, stepper, batch, lane):
    """Report how a lane's sample ended; what it has not reached is NaN."""
    nq, nv, m, sample = block.q.shape[0], block.qd.shape[0], batch.times.shape[0], stepper.tally[TALLY_SAMPLE, lane]
    more, saved = stepper.y.shape[0] - nq - nv, stepper.tally[TALLY_SAVED, lane]
    for row in range(4):
        batch.outcome.tally[sample, row] = stepper.tally[row, lane]
    for j in range((sample * m + saved) * nq, (sample + 1) * m * nq):
        batch.saved.q[j] = constant_like(batch.saved.q, np.nan)
    for j in range((sample * m + saved) * nv, (sample + 1) * m * nv):
        batch.saved.qd[j] = constant_like(batch.saved.qd, np.nan)
    for j in range((sample * m + saved) * more, (sample + 1) * m * more):
        batch.saved.integrals[j] = constant_like(batch.saved.integrals, np.nan)


@routine
def start_sample(block, stepper, batch, sample, lane):
    """Put a sample's state, joint forces and parameters into a lane."""
    nq, nv = block.q.shape[0], block.qd.shape[0]
    for i in range(nq):
        stepper.y[i, lane] = sample_entry(batch.start.q, sample, i)
    for i in range(nv):
        stepper.y[nq + i, lane] = sample_entry(batch.start.qd, sample, i)
    for i in range(nq + nv, stepper.y.shape[0]):
        stepper.y[i, lane] = constant_like(stepper.y, 0.0)
    normalize_positions(block.model, stepper.y, lane)
    set_sample_parameters(block, block.model.parameters, batch.variation, sample, sample % stepper.y.shape[1], lane)
    set_sample_forces(block, batch.start.tau, batch.times[0], sample, lane)
    stepper.tally[TALLY_STEPS, lane] = 0
    stepper.tally[TALLY_REJECTIONS, lane] = 0
    stepper.tally[TALLY_EVALUATIONS, lane] = 0
    stepper.tally[TALLY_SAMPLE, lane] = sample
    stepper.tally[TALLY_SAVED, lane] = 1
    stepper.tally[TALLY_AFTER_REJECTION, lane] = 0
    stepper.clock[CLOCK_T, lane] = batch.times[0]
    stepper.clock[CLOCK_PREVIOUS_ERROR, lane] = SMALLEST_ERROR
    stepper.control[CONTROL_TIME, lane] = constant_like(stepper.y, batch.times[0])
    stepper.control[CONTROL_FRESH, lane] = constant_like(stepper.y, 1.0)
    stepper.control[CONTROL_ACCEPTED, lane] = constant_like(stepper.y, 0.0)
