"""The records of a batch and of the samples in the lanes of a block."""

from typing import Annotated, NamedTuple

import numpy as np

from ..lanes.lane_records import lane_record
from . import control_layout as controls, spare_layout as spares

ERROR_TO_SHORTEN = 2.5  # an error for which the step control repeats the step with about 3/4 of its length


class ContactRecords(NamedTuple):
    """Recorded impacts and sticking of each DryFriction, HardStops and contact, with m = max_records.

    `impact_counts` (samples, forces), `impact_times` (samples, forces, m), s, and `impulses` (samples, forces, m, 3)
    hold the impacts. An impulse acts on the second body of a contact, in world axes, N s. The impulse of a stop acts on
    its dof, N s or N m s, and is the first of three numbers. `sticking_counts` (samples, forces) and `sticking_times`
    (samples, forces, m, 2), s, hold the starts and ends of the intervals of sticking. `limits` (forces,) are the
    numbers of records that each force keeps. `residuals` (samples,) are the largest residuals of the solver, m/s or
    rad/s.
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

    `counts` (samples, events), `times` (samples, events, m), s, and `states` (samples, events, m, rows of the state)
    hold the events, with m = max_records. `failures` (samples,) is the code of the user function that failed, or 0;
    `failed_calls` (samples, 1 + nq + nv) holds the arguments t, s, q and qd of that call. Both are empty if there is no
    user function. `contacts` is a ContactRecords, or None without dry friction, stops and contacts.
    """

    counts: np.ndarray
    times: np.ndarray
    states: np.ndarray
    failures: np.ndarray
    failed_calls: np.ndarray
    contacts: ContactRecords | None


class Start(NamedTuple):
    """Initial states and constant joint forces: (samples, ...), or (...,) for a single sample.

    `q` (nq) is in rad and m, `qd` (nv) in rad/s and m/s, `tau` (nv) in N m and N, as in `drivers.dynamics`.
    `memory` (samples, rows) is the `Outcome.memory` with which the samples continue; it has no rows if all samples
    restart, and NaN in its first column for a sample that restarts. `order` (m,) are the samples to integrate; it
    is empty if these are all samples in their order. `is_too_stiff` (samples,) are the samples that end at their start,
    because fixed steps are too long for the forces between bodies; it is empty if there are none.
    """

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    memory: np.ndarray
    order: np.ndarray
    is_too_stiff: np.ndarray


class Saved(NamedTuple):
    """States at the saved times, as flat arrays of (samples, times, nq), (..., nv) and (..., all other rows).

    Units are as in `Start`. `forces` (samples, times, forces, 3) are the forces of dry friction, stops and contacts, or
    None without them. They are the force on the second body of a contact, N, in world axes. For a dof, they are the
    force, N m or N, and two zeros. `outputs` are the active outputs of sampled controllers, a flat array of (samples,
    times, channels), or None. `work` (samples, times) is the work since the start (`work`), J, or None if it is not
    computed.
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
    step, s. `states` (samples, steps, nodes, rows of the state) are the states at the nodes, and `outputs` (samples,
    steps, nodes, channels) are the outputs of sampled controllers there. All are empty if no steps are recorded. Steps
    are counted from 1. A step with two parts (`step_parts`) counts as two.
    """

    nodes: np.ndarray
    times: np.ndarray
    states: np.ndarray
    outputs: np.ndarray


class Outcome(NamedTuple):
    """The status, the last valid state and the steps of each sample, and the flag with which the caller stops lanes.

    `tally` (samples, tallies.RECORDED) holds the status, and the counts of steps, rejections and evaluations. The next
    columns are 1 if the sample was stiff for an explicit method, the count of the parts of steps, and the first
    dof beyond its position limits, counted from 1. `end_times` (samples,), s, and `end_states` (samples,
    rows of the state) are the last valid state. The caller sets `interrupt` (1,) to a number other than zero to stop.
    `record` is a StepRecord. `limits` (samples, m, 4) are the coordinate, the lower and the upper limit, rad or m, and
    the dof, of each position that has limits and no stops. Their first axis has length 1 if the samples have the same
    stops. `memory` (samples, rows) holds the values that the last state does not determine (`sample_memory`).
    """

    tally: np.ndarray
    end_times: np.ndarray
    end_states: np.ndarray
    interrupt: np.ndarray
    record: StepRecord
    limits: np.ndarray
    memory: np.ndarray


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


class Stepper(NamedTuple):
    """The working memory of the integrator for one block.

    `y`, `y_new` and `change` (rows, lanes) are states, or changes of states: q, qd, integrals of errors and
    sensitivities. `rates` (stages, rows, lanes) are the time derivatives at the stages. The stages of Rosenbrock and
    Radau methods between the first and the last entry are increments. `control_layout`, `clock_layout` and
    `tally_layout` define the rows of `control`, `clock` and `tally` (rows, lanes). `linear` is a LinearizedRate for
    Rosenbrock methods, a RadauStep for Radau methods, else None. `spare` (spares.COUNT, rows, lanes) is memory for
    states at saved times. `work` is a WorkMemory, or None.
    """

    y: Annotated[np.ndarray, "rows"]
    y_new: Annotated[np.ndarray, "rows"]
    change: Annotated[np.ndarray, "rows"]
    rates: Annotated[np.ndarray, "stages", "rows"]
    control: Annotated[np.ndarray, controls.ROWS]
    clock: np.ndarray
    tally: np.ndarray
    linear: object
    spare: Annotated[np.ndarray, spares.COUNT, "rows"]
    work: object


stepper_size, carve_stepper = lane_record(Stepper, "rows", "stages")
