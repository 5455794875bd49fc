"""Dry friction, stops and contacts in adaptive steps: the modes of all rows are constant within a step.

The active constraints are the rows in the mode HELD: closed gaps, and friction that sticks. Each row has a number that
is negative if the mode of the row has to change (mode.WATCH):

    open gap              gap
    closed gap            force
    sticking friction     limit of the force minus the absolute value of the force
    sliding friction      velocity along the direction of sliding

If a trial step ends with a negative number, the lane repeats the step with other lengths, until the first change is at
its end (regula falsi). The step then ends there. Impacts change the velocities, and the forces of the new state decide
the new modes. The lane then starts again as with a new sample. Positions and velocities are projected onto the active
constraints at the ends of steps and at the saved times.
"""

import math

from ...compiling.jit import kernel, only_if, routine
from ..contacts import contact_layout as contact, element_layout as element, mode_layout as mode
from ..contacts.contact_choice import choose_modes
from ..contacts.contact_modes import closed_gap, correct_held_rows, solve_forces, store_slowest_turns
from ..contacts.contact_rates import has_contact_modes, stop_held_dofs
from ..contacts.contact_rows import update_row_velocities
from ..lanes.lanes import any_lane, constant_like, nan_unless_finite, select
from ..sample import clock_layout as clocks, control_layout as controls, spare_layout as spares, tally_layout as tallies
from ..sample.rate import evaluate
from ..sample.status import INITIAL_PENETRATION, NO_CONTACT_MODES, RUNNING
from ..tree.kinematics import add_step
from .contact_impacts import (
    is_short_flight,
    record_sticking,
    set_candidates,
    speed_at_rest,
    store_forces_of_modes,
    strike,
    strike_without_collision,
)
from .rollout import save_lane
from .step_inspection import PENETRATION, keep_start, update_watches

# controls.NEW of a lane that starts again after a change of modes.
STARTS_AGAIN = 2.0
# Residuals of active constraints up to this fraction of the largest closed gap are round-off and need no projection.
PROJECTED = 1e-3
MAX_PROJECTIONS = 4
EVALUATIONS_OF_START = 4
# How often the modes of a lane may be chosen at its start.
MAX_CHOICES = 10


# --- the start of a lane ----------------------------------------------------------------------------------------------


@only_if(has_contact_modes)
@routine
def begin_contacts(block, stepper, batch, tolerances, k):
    """Compute the impacts, modes and rates of all new lanes in their states `y_new`.

    Reads the rate that has just been evaluated; writes rates[1]. Overwrites the velocities in `y_new`.
    """
    flags, y, time = block.loads.actions.modes.flags, stepper.y_new, stepper.control[controls.TIME, k]
    for lane in range(y.shape[1]):
        flags[mode.FLAG_CHOOSES, lane] = constant_like(flags, 0.0)
        if is_starting(stepper, lane):
            if float(stepper.control[controls.NEW, lane]) != STARTS_AGAIN:
                begin_sample(block, stepper, batch, lane)
            strike(block, stepper, batch, y, tolerances, lane)
            flags[mode.FLAG_CHOOSES, lane] = constant_like(flags, 1.0)
    for remaining in range(MAX_CHOICES - 1, -1, -1):
        evaluate(block, y, time, stepper.rates[1], k)
        choosing = 0
        for lane in range(y.shape[1]):
            if flags[mode.FLAG_CHOOSES, lane] > 0.0 and is_starting(stepper, lane):
                choosing += choose_modes_of_lane(block, stepper, batch, tolerances, remaining, lane)
        if choosing == 0:
            break
    evaluate(block, y, time, stepper.rates[1], k)
    for lane in range(y.shape[1]):
        if is_starting(stepper, lane):
            sample = stepper.tally[tallies.SAMPLE, lane]
            record_sticking(block, batch, sample, stepper.clock[clocks.T, lane], lane)
            update_watches(block, speed_at_rest(tolerances), lane)
            keep_start(block, lane)
            if float(stepper.control[controls.NEW, lane]) != STARTS_AGAIN:
                store_forces_of_modes(block, batch, sample, 0, lane)


@routine
def choose_modes_of_lane(block, stepper, batch, tolerances, remaining, lane):
    """Choose the modes of a lane; return 1 if impulses change its velocities and the modes must be chosen again.

    Impulses act if no modes fit the forces, or if flights are too short to be computed. `remaining` is the number of
    choices that may follow.
    """
    actions, y, nq, n = block.loads.actions, stepper.y_new, block.q.shape[0], block.qd.shape[0]
    if not has_finite_accelerations(actions.modes, lane):  # `start_lane` ends the sample, in the state y
        actions.modes.flags[mode.FLAG_CHOOSES, lane] = constant_like(y, 0.0)
        return 0
    qd = y[nq : nq + n]
    store_slowest_turns(actions.contacts, actions.modes, qd, tolerances.rtol, tolerances.atol, lane)
    set_candidates(block, tolerances, lane)
    stop_candidates(block, y, lane)
    found = choose_modes(actions.contacts, actions.modes, actions.numbers, speed_at_rest(tolerances), lane)
    if remaining > 0 and not found:
        strike_without_collision(block, stepper, batch, y, tolerances, lane)
        return 1
    if remaining > 0 and stop_short_flights(block, y, tolerances, lane):
        strike(block, stepper, batch, y, tolerances, lane)
        return 1
    actions.modes.flags[mode.FLAG_CHOOSES, lane] = constant_like(y, 0.0)
    stop_held_dofs(actions.contacts, actions.modes, y[nq : nq + n], lane)
    if not found:
        stepper.tally[tallies.STATUS, lane] = NO_CONTACT_MODES
    return 0


@kernel
def has_finite_accelerations(modes, lane):
    """Whether the accelerations of all rows are finite. If not, an impulse may change the velocities to NaN."""
    total = 0.0
    for row in range(modes.rows.shape[0]):
        total += abs(modes.rows[row, mode.ACCELERATION, lane])
    return total < math.inf


@kernel
def stop_short_flights(block, y, tolerances, lane):
    """Keep gaps closed that would open for a short flight only, without friction; return whether there are any.

    If there are any, the modes must be chosen again.
    """
    contacts, modes, found = block.loads.actions.contacts, block.loads.actions.modes, False
    for e in range(contacts.table.shape[1]):
        if is_short_flight(e, contacts, modes, tolerances, lane):
            modes.rows[contacts.table[element.ROW, e], mode.MODE, lane] = mode.HELD
            found = True
    if found:
        for row in range(modes.rows.shape[0]):
            if modes.rows[row, mode.MODE, lane] == mode.SLIDING:
                modes.rows[row, mode.MODE, lane] = mode.OPEN
        stop_candidates(block, y, lane)
    return found


@kernel
def stop_candidates(block, y, lane):
    """Set the small velocities of the rows whose modes follow from forces to zero, by a change of qd in the state y."""
    actions, nq, n = block.loads.actions, block.q.shape[0], block.qd.shape[0]
    contacts, modes = actions.contacts, actions.modes
    solve_forces(contacts, modes, actions.numbers, lane)
    correct_held_rows(contacts, modes, contact.VELOCITY, contacts.changes[1], lane)
    for i in range(n):
        y[nq + i, lane] = y[nq + i, lane] + contacts.changes[1, i, lane]
    update_row_velocities(block.model, contacts, y[nq : nq + n], contact.VELOCITY, lane)


@kernel
def is_starting(stepper, lane):
    """Whether a lane has a sample that starts, or starts again."""
    return stepper.control[controls.NEW, lane] > 0.0 and stepper.tally[tallies.STATUS, lane] == RUNNING


@kernel
def begin_sample(block, stepper, batch, lane):
    """Reset the modes of a lane with a new sample, save its initial state and check its gaps."""
    contacts, modes = block.loads.actions.contacts, block.loads.actions.modes
    for row in range(modes.rows.shape[0]):
        size = modes.rows[row, mode.SIZE, lane]  # of the rate that has just been evaluated
        for column in range(mode.ROWS):
            modes.rows[row, column, lane] = constant_like(modes.rows, 0.0)
        modes.rows[row, mode.SIZE, lane] = size
    for flag in range(mode.FLAG_ROWS):
        modes.flags[flag, lane] = constant_like(modes.flags, 0.0)
    save_lane(block, stepper.y_new, batch, stepper.tally[tallies.SAMPLE, lane], 0, lane)
    for e in range(contacts.table.shape[1]):
        has_gap, row = contacts.table[element.KIND, e] != element.FRICTION, contacts.table[element.ROW, e]
        if has_gap and contacts.rows[row, contact.GAP, lane] < -PENETRATION * closed_gap(row, modes, lane):
            stepper.tally[tallies.STATUS, lane] = INITIAL_PENETRATION


@only_if(has_contact_modes, False)
@kernel
def starts_again(block, stepper, lane):
    """Whether a lane starts again after a change of modes, and so its initial state has been saved before."""
    return stepper.control[controls.NEW, lane] == STARTS_AGAIN


@only_if(has_contact_modes, False)
@kernel
def restart_lane(block, stepper, lane):
    """Let a lane start again if its step has ended with a change of modes, and return whether it does."""
    flags = block.loads.actions.modes.flags
    if not flags[mode.FLAG_RESTARTS, lane] > 0.0:
        return False
    flags[mode.FLAG_RESTARTS, lane] = constant_like(flags, 0.0)
    stepper.control[controls.NEW, lane] = constant_like(flags, STARTS_AGAIN)
    # the step has been taken, and the sample may end before the next one
    stepper.control[controls.ACCEPTED, lane] = constant_like(flags, 0.0)
    stepper.control[controls.TIME, lane] = constant_like(flags, stepper.clock[clocks.T, lane])
    stepper.tally[tallies.EVALUATIONS, lane] += EVALUATIONS_OF_START
    return True


# --- the end of a step ------------------------------------------------------------------------------------------------


@only_if(has_contact_modes)
@routine
def project_contacts(block, stepper, tableau, k):
    """Project the end of a step onto the active constraints and compute the rate, in lanes with an accepted error."""
    control, y, flags = stepper.control, stepper.y_new, block.loads.actions.modes.flags
    h, error, rate = control[controls.H, k], control[controls.ERROR, k], stepper.rates[tableau.c.shape[0] - 1]
    steps = (error <= constant_like(y, 1.0)) & (h > constant_like(y, 0.0))
    project_onto_held_rows(block, stepper, y, rate, control[controls.TIME, k] + h, steps, k)
    for lane in range(y.shape[1]):
        stepper.tally[tallies.EVALUATIONS, lane] += int(flags[mode.FLAG_PROJECTIONS, lane])


@routine
def project_onto_held_rows(block, stepper, y, rate, time, steps, k):
    """Project the state y at a time, s, onto the active constraints, and compute its rate, in the lanes `steps`.

    The state y must have been evaluated last. Writes the number of further evaluations to FLAG_PROJECTIONS. `time` and
    `steps` are one value and one truth value for each lane.
    """
    actions, moved = block.loads.actions, stepper.spare[spares.START]
    contacts, modes, model = actions.contacts, actions.modes, block.model
    nq, n, zero, one = block.q.shape[0], block.qd.shape[0], constant_like(y, 0.0), constant_like(y, 1.0)
    modes.flags[mode.FLAG_PROJECTIONS, k] = nan_unless_finite(time)
    for _ in range(MAX_PROJECTIONS):
        moves = steps & (largest_residual_of_held_rows(contacts, modes, k) > one)
        if not any_lane(moves):
            break
        modes.flags[mode.FLAG_PROJECTIONS, k] = modes.flags[mode.FLAG_PROJECTIONS, k] + select(
            moves, one + zero * time, zero * time
        )
        correct_held_rows(contacts, modes, contact.GAP, contacts.changes[0], k)
        correct_held_rows(contacts, modes, contact.VELOCITY, contacts.changes[1], k)
        add_step(model, y[:nq], contacts.changes[0], moved[:nq], moved[:nq], k)
        for j in range(nq):
            y[j, k] = select(moves, moved[j, k], y[j, k])
        for i in range(n):
            y[nq + i, k] = y[nq + i, k] + select(moves, contacts.changes[1, i, k], zero * time)
        stop_held_dofs(contacts, modes, y[nq : nq + n], k)
        evaluate(block, y, time, rate, k)


@kernel
def largest_residual_of_held_rows(contacts, modes, k):
    """Return the largest gap or velocity of the active constraints, in units of round-off.

    Rows without a gap have the gap zero. The result is without a unit.
    """
    rows, zero = modes.rows, constant_like(modes.rows, 0.0)
    largest = zero * rows[0, mode.INVERSE, k]
    for row in range(rows.shape[0]):
        residual = max(abs(contacts.rows[row, contact.GAP, k]), abs(contacts.rows[row, contact.VELOCITY, k]))
        residual = residual / (constant_like(rows, PROJECTED) * closed_gap(row, modes, k))
        largest = select(rows[row, mode.INVERSE, k] != zero, max(largest, residual), largest)
    return largest


@only_if(has_contact_modes, False)
@kernel
def restart_after_jump(block, lane):
    """Let a lane start again, because the forces have jumped and its modes may change; return that it does."""
    flags = block.loads.actions.modes.flags
    flags[mode.FLAG_RESTARTS, lane] = constant_like(flags, 1.0)
    return True
