"""The common parts of fixed and adaptive steps: copy a sample to a lane, compute the stages of a step, save states.

`fixed_steps` and `adaptive_steps` combine these kernels with those of `runge_kutta`.
"""

from typing import NamedTuple

import numpy as np

from ..simd.jit import choose, kernel, routine
from ..simd.lanes import constant_like, select
from ..tree.kinematics import normalize_positions
from ..tree.layout import sample_entry, set_sample_parameters
from .action_hooks import set_sample_forces
from .constraint_hooks import (
    closed_lanes,
    decide_rank,
    has_constraints,
    has_open_loops,
    is_end_near_singularity,
    project_end_of_step,
    reset_conditions,
)
from .dense_output import interpolate
from .radau_tableau import RadauTableau
from .runge_kutta import MIN_PREVIOUS_ERROR, advance
from .sampler_clocks import begin_targets
from .sensitivities import evaluate_with_sensitivities, start_sensitivities
from .status import STOPPED
from .tableaus import RosenbrockTableau, Tableau
from .work_memory import begin_work

# Rows of `Stepper.control`, in the precision of the states.
CONTROL_H = 0  # length of the step, s
CONTROL_ERROR = 1  # norm of the error of the step; for the first step, of the change of the rate
CONTROL_ACCEPTED = 2  # 1 if the step is accepted, else 0
CONTROL_NEW = 3  # 1 if the lane has just received its sample, else 0
CONTROL_STATE_NORM = 4  # norm of the state, for the first step
CONTROL_RATE_NORM = 5  # norm of the rate, for the first step
CONTROL_EULER_STEP = 6  # length of the Euler step from which the first step is estimated, s
CONTROL_TIME = 7  # time at the start of the step, s
CONTROL_FAILURE = 8  # of an implicit step: 0, or the error that shortens it
CONTROL_SAVES, CONTROL_NEXT_H = 9, 10  # 1 while a lane computes a saved state; meanwhile the length of its next step
CONTROL_ROWS = 11
# Rows of `Stepper.clock`, always float64, because the sum of float32 steps would drift.
CLOCK_T, CLOCK_STEP, CLOCK_PREVIOUS_ERROR = 0, 1, 2
CLOCK_STOP = 3  # time at which the step has to end at the latest, s
CLOCK_PROPOSED = 4  # length of the step that a stop has shortened, s; else 0
CLOCK_START, CLOCK_TAKEN = 5, 6  # start and length of the last accepted step, s
CLOCK_REACHED, CLOCK_PART = 7, 8  # time that the shorter steps to a saved time have reached, and their length, s
CLOCK_ROWS = 9
# Numbers of the states in `Stepper.spare`, which `saved_states` uses.
SPARE_STATE, SPARE_RATE = 0, 1  # the saved state, and the rate there or at the start of the step
SPARE_START, SPARE_NEXT_RATE = 2, 3  # the start of the last step, and the first rate of the next one
SPARE_COUNT = 4
# Rows of `Stepper.tally`; the first RECORDED_TALLIES are also the columns of `Outcome.tally`.
TALLY_STATUS, TALLY_STEPS, TALLY_REJECTIONS, TALLY_EVALUATIONS, TALLY_IS_STIFF = 0, 1, 2, 3, 4
RECORDED_TALLIES = 5
TALLY_SAMPLE, TALLY_SAVED, TALLY_AFTER_REJECTION = 5, 6, 7
TALLY_STIFF_STEPS, TALLY_SMOOTH_STEPS = 8, 9  # see `stiffness`
TALLY_BREAK = 10  # class of the breaks of signals at the end of the step (`forces.signal_breaks`)
TALLY_ROWS = 11


ERROR_TO_SHORTEN = 2.5  # an error for which the step control repeats the step with about 3/4 of its length


class ContactRecords(NamedTuple):
    """Recorded impacts and sticking of each DryFriction, HardStops and SphereContact, with m = max_records.

    `impact_counts` (samples, forces), `impact_times` (samples, forces, m), s, and `impulses` (samples, forces, m, 3)
    hold the impacts. `sticking_counts` (samples, forces) and `sticking_times` (samples, forces, m, 2) hold the
    intervals of sticking. `limits` (forces,) are the numbers of records that each force keeps. `residuals` (samples,)
    are the largest residuals of the solver, m/s or rad/s.
    """

    impact_counts: np.ndarray
    impact_times: np.ndarray
    impulses: np.ndarray
    sticking_counts: np.ndarray
    sticking_times: np.ndarray
    limits: np.ndarray
    residuals: np.ndarray


class Records(NamedTuple):
    """Recorded events and failed calls of user functions.

    `counts` (samples, events), `times` (samples, events, m) and `states` (samples, events, m, rows of the state) hold
    the events, with m = max_records. `failures` (samples,) is the code of the user function that failed, or 0;
    `failed_calls` (samples, 1 + nq + nv) holds the arguments t, q, qd of that call. Both are empty if there is no user
    function. `contacts` is a ContactRecords, or None without dry friction, stops and contacts.
    """

    counts: np.ndarray
    times: np.ndarray
    states: np.ndarray
    failures: np.ndarray
    failed_calls: np.ndarray
    contacts: ContactRecords | None


class Start(NamedTuple):
    """Initial states and constant joint forces: (samples, ...), or (...,) for a single sample."""

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray


class Saved(NamedTuple):
    """States at the saved times, as flat arrays of (samples, times, nq), (..., nv) and (..., all other rows).

    `forces` (samples, times, forces, 3) are those of dry friction, stops and contacts, or None without them. `outputs`
    are the outputs of sampled controllers that act, a flat array of (samples, times, channels), or None without them.
    `work` (samples, times) is the work since the start (`work`), J, or None if it is not computed.
    """

    q: np.ndarray
    qd: np.ndarray
    integrals: np.ndarray
    forces: np.ndarray | None
    outputs: np.ndarray | None
    work: np.ndarray | None


class StepRecord(NamedTuple):
    """The continuous extensions of the first accepted steps of each sample, as states at the `nodes` of each step.

    `nodes` (nodes,) are fractions of a step, from 0 to 1. `times` (samples, steps, 2) are the start and the end of each
    step, s. `states` (samples, steps, nodes, rows of the state) and the outputs of sampled controllers, `outputs`
    (samples, steps, nodes, channels), are those at the nodes. All are empty if no steps are recorded. The number of a
    step is its count, so that the first one has the number 1.
    """

    nodes: np.ndarray
    times: np.ndarray
    states: np.ndarray
    outputs: np.ndarray


class Outcome(NamedTuple):
    """The status, the last valid state and the steps of each sample, and the flag with which the caller stops lanes.

    `tally` (samples, RECORDED_TALLIES) holds the status, the counts of steps, rejections and evaluations, and 1 if the
    sample was stiff for an explicit method. `end_times` (samples,)
    and `end_states` (samples, rows of the state) are the last valid state. The caller sets `interrupt` (1,) to a number
    other than zero to stop. `record` is a StepRecord.
    """

    tally: np.ndarray
    end_times: np.ndarray
    end_states: np.ndarray
    interrupt: np.ndarray
    record: StepRecord


class Batch(NamedTuple):
    """The samples of a call: their initial states, the parameters in which they differ, and their results.

    `times` (m,) are the times to save, s. `records` is a Records, or None without actions.
    """

    start: Start
    variation: object
    times: np.ndarray
    saved: Saved
    outcome: Outcome
    records: object


class Tolerances(NamedTuple):
    """Tolerances and limits of the steps.

    `rtol` and `atol` are the relative and the absolute tolerance, `max_steps` the largest number of accepted and
    rejected steps of a sample, and `max_step` the length of the longest step, s. `of_signals` is the largest difference
    of a signal in a step from a polynomial, relative to the signal (`forces.signal_breaks`).
    """

    rtol: float
    atol: float
    max_steps: int
    max_step: float = np.inf
    of_signals: float = 1e-6


class FixedStepSettings(NamedTuple):
    """The method, and the maximum length of a step, s."""

    tableau: Tableau
    step: float


class ContactStepSettings(NamedTuple):
    """The maximum length of a step, s, and the tolerances of contact.

    `tableau` is Euler's, for the interpolation of a step. `tolerance` is the largest residual of the velocities, m/s
    and rad/s, `penetration` the largest depth that is not corrected, m and rad.
    """

    tableau: Tableau
    step: float
    tolerance: float
    penetration: float


class AdaptiveStepSettings(NamedTuple):
    """The method and its tolerances."""

    tableau: Tableau | RosenbrockTableau | RadauTableau
    tolerances: Tolerances


class Stepper(NamedTuple):
    """The working memory of the integrator for one block.

    `y`, `y_new` and `change` (rows, lanes) are states: q, qd, integrals of errors and sensitivities. `rates` is
    (stages, rows, lanes). The rows of `control`, `clock` and `tally` (rows, lanes) are defined above. `linear` is a
    LinearisedRate for Rosenbrock methods, a RadauStep for Radau methods, else None. `spare` (SPARE_COUNT, rows, lanes)
    is memory for states at saved times. `work` is a WorkMemory, or None.
    """

    y: np.ndarray
    y_new: np.ndarray
    change: np.ndarray
    rates: np.ndarray
    control: np.ndarray
    clock: np.ndarray
    tally: np.ndarray
    linear: object
    spare: np.ndarray
    work: object


@kernel
def compute_stages(block, stepper, tableau, k):
    """Compute the stages of a step from y, whose rate is rates[0].

    Writes the end of the step to y_new, and the rate there to the last entry of rates. Its quaternions are normalised
    before, so that this rate is the first of the next step, and of another motion that starts there.
    """
    y, y_new, rates, h = stepper.y, stepper.y_new, stepper.rates, stepper.control[CONTROL_H, k]
    for stage in range(1, tableau.c.shape[0]):
        advance(tableau.A[stage], stage, y, h, rates, y_new, k)
        if stage == tableau.c.shape[0] - 1:
            normalize_positions(block.model, y_new, k)
        t = stepper.control[CONTROL_TIME, k] + constant_like(h, tableau.c[stage]) * h
        evaluate_with_sensitivities(block, y_new, t, rates[stage], k)


@routine
def close_loops(block, stepper, tableau, k):
    """Project the end of a step onto the constraints, and compute the rate there.

    Reads CONTROL_ERROR: only steps whose error is accepted are projected. If the projection fails, the error is
    infinite. If the end is close to a singular position, the error is a number that shortens the step.

    Which rows are independent is decided only in lanes that are closed: those with a rejected step keep the decision
    for its start.
    """
    control, y_new, final = stepper.control, stepper.y_new, tableau.c.shape[0] - 1
    one, zero = constant_like(y_new, 1.0), constant_like(y_new, 0.0)
    error, h = control[CONTROL_ERROR, k], control[CONTROL_H, k]
    accepted = select(error <= one, one + zero * error, zero * error)
    accepted = select(h > zero, accepted, zero * h)  # idle lanes have no step, and their states are not closed
    project_end_of_step(block, y_new, accepted, k)
    normalize_positions(block.model, y_new, k)
    decide_rank(block, closed_lanes(block, accepted, k), k)
    evaluate_with_sensitivities(block, y_new, control[CONTROL_TIME, k] + h, stepper.rates[final], k)
    decide_rank(block, zero * h, k)
    for lane in range(y_new.shape[1]):
        if has_open_loops(block, lane):
            control[CONTROL_ERROR, lane] = constant_like(control, np.inf)
        elif float(control[CONTROL_ERROR, lane]) <= 1.0 and is_end_near_singularity(block, lane):
            control[CONTROL_ERROR, lane] = constant_like(control, ERROR_TO_SHORTEN)


# Project the end of a step onto the constraints of a closed chain.
close_end_of_step = choose(has_constraints, close_loops, lambda block, stepper, tableau, k: None)


@kernel
def save_lane(block, y, batch, sample, slot, lane):
    """Save the state y of a lane at the saved time number `slot`."""
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
    y, y_new, state, rates = stepper.y, stepper.y_new, stepper.change, stepper.rates
    h, slot, sample = (
        stepper.control[CONTROL_H, lane],
        stepper.tally[TALLY_SAVED, lane],
        stepper.tally[TALLY_SAMPLE, lane],
    )
    while slot < batch.times.shape[0] and batch.times[slot] <= t_new:
        theta = constant_like(y, (batch.times[slot] - stepper.clock[CLOCK_T, lane]) / stepper.clock[CLOCK_STEP, lane])
        at_end = batch.times[slot] == t_new and stepper.tally[TALLY_STATUS, lane] != STOPPED
        for j in range(y.shape[0]):
            state[j, lane] = y_new[j, lane] if at_end else interpolate(tableau, y, y_new, h, rates, theta, j, lane)
        normalize_positions(block.model, state, lane)
        save_lane(block, state, batch, sample, slot, lane)
        slot += 1
    stepper.tally[TALLY_SAVED, lane] = slot


@kernel
def save_end(y, batch, sample, t, lane):
    """Save y as the last valid state of a sample, at time t."""
    batch.outcome.end_times[sample] = t
    for j in range(y.shape[0]):
        batch.outcome.end_states[sample, j] = y[j, lane]


@routine
def record_sample(block, stepper, batch, lane):
    """Record the status and the counts of a lane's sample, and set its states at later saved times to NaN."""
    nq, nv, m, sample = block.q.shape[0], block.qd.shape[0], batch.times.shape[0], stepper.tally[TALLY_SAMPLE, lane]
    integrals, saved = stepper.y.shape[0] - nq - nv, stepper.tally[TALLY_SAVED, lane]
    for row in range(RECORDED_TALLIES):
        batch.outcome.tally[sample, row] = stepper.tally[row, lane]
    for j in range((sample * m + saved) * nq, (sample + 1) * m * nq):
        batch.saved.q[j] = constant_like(batch.saved.q, np.nan)
    for j in range((sample * m + saved) * nv, (sample + 1) * m * nv):
        batch.saved.qd[j] = constant_like(batch.saved.qd, np.nan)
    for j in range((sample * m + saved) * integrals, (sample + 1) * m * integrals):
        batch.saved.integrals[j] = constant_like(batch.saved.integrals, np.nan)


@routine
def start_sample(block, stepper, batch, sample, lane):
    """Copy the initial state, the joint forces, the actions and the parameters of a sample to a lane."""
    nq, nv = block.q.shape[0], block.qd.shape[0]
    for i in range(nq):
        stepper.y[i, lane] = sample_entry(batch.start.q, sample, i)
    for i in range(nv):
        stepper.y[nq + i, lane] = sample_entry(batch.start.qd, sample, i)
    for i in range(nq + nv, stepper.y.shape[0]):
        stepper.y[i, lane] = constant_like(stepper.y, 0.0)
    normalize_positions(block.model, stepper.y, lane)
    set_sample_parameters(block, block.model.parameters, batch.variation, sample, sample % stepper.y.shape[1], lane)
    reset_conditions(block, lane)
    set_sample_forces(block, batch.start.tau, batch.times[0], sample, lane)
    begin_targets(block, stepper.y, lane)
    start_sensitivities(block, stepper.y, lane)
    begin_work(stepper, batch, sample, lane)
    stepper.tally[TALLY_STEPS, lane] = 0
    stepper.tally[TALLY_REJECTIONS, lane] = 0
    stepper.tally[TALLY_EVALUATIONS, lane] = 0
    stepper.tally[TALLY_IS_STIFF, lane] = 0
    stepper.tally[TALLY_STIFF_STEPS, lane] = 0
    stepper.tally[TALLY_SMOOTH_STEPS, lane] = 0
    stepper.tally[TALLY_SAMPLE, lane] = sample
    stepper.tally[TALLY_SAVED, lane] = 1
    stepper.tally[TALLY_AFTER_REJECTION, lane] = 0
    stepper.tally[TALLY_BREAK, lane] = 0
    stepper.clock[CLOCK_T, lane] = batch.times[0]
    stepper.clock[CLOCK_PREVIOUS_ERROR, lane] = MIN_PREVIOUS_ERROR
    stepper.control[CONTROL_TIME, lane] = constant_like(stepper.y, batch.times[0])
    stepper.control[CONTROL_NEW, lane] = constant_like(stepper.y, 1.0)
    stepper.control[CONTROL_ACCEPTED, lane] = constant_like(stepper.y, 0.0)
