"""Time stepping for dry friction, joint stops and contacts: Moreau's midpoint scheme with fixed steps.

A step from (q, v) to (q', v') of length h evaluates the dynamics in the middle of the step:

    q_m = q + h/2 v,   v_m = v + h/2 qdd(q_m, v) + w/2,   v_free = v + h qdd(q_m, v_m)
    v' = v_free + H^-1 J^T p,   q' = q + h ((1 - s) v + s v')

w is a prediction of H^-1 J^T p, which follows from qdd(q_m, v) in the same way as p from qdd(q_m, v_m). It is zero in
steps with an impact. A step depends on the state at its start only, so a motion in pieces is the motion in one call.
s is 1/2 in steps without impacts. The impulses p of all rows are solved together: see `contact_solver`. J is evaluated
in the middle. The velocities of the rows are u = J v - h/2 b at the start and u' = J v' + h/2 b at the end, with
b = dJ/dt v_m. A row with the gap g closes at the time c h, 0 = g + h (c u + c^2 d / 2), with d = u_free - u. This is an
impact if the speed is more than 2 |d| and more than the tolerance of the solver. Slower contacts have no restitution,
so a bouncing ball comes to rest. In a step without an impact, u' >= min(-g / h, -2 g / h - u), except for gaps that are
closed up to round-off (`moreau_rows`). The gap of such a step is not negative at its end, because s is chosen that way.

All impulses of impacts in a step act at the time c h of the first one, after which the finite forces change the
velocity by (1 - c) h qdd. The law of `impact_law` holds for the velocities J v at this time, with J of the middle.
The impulses therefore add no kinetic energy. If the rebound would end within the step, or without restitution, the law
holds for u' at the end of the step. For constant forces, flights and impacts of a single contact are exact.

The dynamics are linearly implicit in the springs, damping and gains of joints, as in `fixed_steps`.

Sources: Moreau (1988), "Unilateral contact and dry friction in finite freedom dynamics"; Jean (1999), "The non-smooth
contact dynamics method"; Acary and Brogliato (2008), *Numerical Methods for Nonsmooth Dynamical Systems*. The bound of
a closing gap follows Stewart and Trinkle (1996).
"""

import math

from ...compiling.jit import kernel, only_if, routine
from ..contacts import contact_layout as contact, element_layout as element
from ..contacts.contact_responses import add_responses, update_responses
from ..contacts.contact_rows import update_biases, update_gaps, update_jacobian, update_row_velocities
from ..contacts.contact_solver import predict_contacts, solve_contacts
from ..contacts.gear_friction import update_gear_friction
from ..contacts.impact_law import limit_energy
from ..lanes.lanes import any_lane, constant_like, full_like, select, zeros_like
from ..loops.constraint_hooks import has_open_loops
from ..sample import clock_layout as clocks, control_layout as controls, tally_layout as tallies
from ..sample.rate import evaluate, moves_freely, set_prescribed_states
from ..sample.status import INITIAL_PENETRATION, RUNNING, STEP_TOO_LONG
from ..sample.work_memory import store_work_of_impulses
from ..tree import frame_layout as frame
from ..tree.kinematics import normalize_positions, position_rates
from .contact_records import record_contacts
from .fixed_steps import end_sample, end_step, save_starts
from .gap_corrections import correct_positions, least_gap
from .middle_of_step import keep_first_change, settle_middle
from .moreau_rows import (
    has_collision,
    has_contacts,
    may_act,
    release_joints,
    remove_small_strains,
    set_bound,
    set_friction_limits,
    set_shifts,
    set_start_gap,
    stick_at_rest,
    time_of_first_impact,
    update_sticking,
)
from .rollout import close_end_of_step
from .step_parts import divide_step, keep_smooth_changes

MAX_SLIPS = 4  # how often sticking joints may start to slide in a step, which changes their limits


@kernel
def take_moreau_step(block, stepper, settings, batch, t, h, restarts, k):
    """Compute the end of a step from t to t + h."""
    compute_midpoint(block, stepper, settings, t, h, k)
    finish_step(block, stepper, settings, h, k)


@routine
def end_moreau_step(block, stepper, settings, batch, is_saved_time, lane):
    """Check the step of a lane as `end_step` does, and record its impacts and sticking."""
    if is_too_fast(block, stepper, lane):
        end_sample(block, stepper, batch, STEP_TOO_LONG, stepper.clock[clocks.T, lane], stepper.y, lane)
        return
    slot = stepper.tally[tallies.SAVED, lane]
    end_step(block, stepper, settings.tableau, batch, is_saved_time, lane)
    record_contacts(block, stepper, batch, slot, lane)


@kernel
def is_too_fast(block, stepper, lane):
    """Whether the middle of the step of a lane could not be computed.

    If the projection of the end onto the constraints fails, the error is infinite too.
    """
    is_infinite = float(stepper.control[controls.ERROR, lane]) == math.inf
    return is_infinite and not has_open_loops(block, lane)


@routine
def start_with_contacts(block, stepper, settings, batch, samples, k):
    """Save the initial states, and end the samples that start in a penetration."""
    check_start(block, stepper, k)
    save_starts(block, stepper, settings, batch, samples, k)
    for lane in range(samples):
        if starts_inside(block, settings, lane):
            end_sample(block, stepper, batch, INITIAL_PENETRATION, batch.times[0], stepper.y, lane)


@kernel
def compute_midpoint(block, stepper, settings, t, h, k):
    """Set the clocks for a step from t to t + h, and compute the state in its middle, as y_new, and the rate there.

    Depends on the state at t only, and on nothing that earlier steps have computed.
    """
    y, y_new, rate, model = stepper.y, stepper.y_new, stepper.rates[0], block.model
    nq, n, half = block.q.shape[0], block.qd.shape[0], constant_like(y, 0.5 * h)
    for lane in range(y.shape[1]):
        stepper.clock[clocks.T, lane] = t
        stepper.clock[clocks.STEP, lane] = h
        stepper.control[controls.TIME, lane] = constant_like(y, t + 0.5 * h)
        stepper.control[controls.H, lane] = constant_like(y, h)
        stepper.control[controls.ERROR, lane] = constant_like(y, 0.0)  # every step is accepted
        if stepper.tally[tallies.STATUS, lane] == RUNNING:
            stepper.tally[tallies.EVALUATIONS, lane] += 2
    position_rates(model, y[:nq], y[nq : nq + n], rate[:nq], k)
    for j in range(nq):
        y_new[j, k] = y[j, k] + half * rate[j, k]
    for j in range(nq, y.shape[0]):
        y_new[j, k] = y[j, k]
    normalize_positions(model, y_new, k)
    evaluate(block, y_new, stepper.control[controls.TIME, k], rate, k)
    add_smooth_changes(block, stepper, constant_like(y, h), k)
    predict_impulses(block, stepper, settings, constant_like(y, h), k)
    for i in range(n):
        if moves_freely(block, i):
            y_new[nq + i, k] = y_new[nq + i, k] + half * rate[nq + i, k]
    add_half_of_prediction(block, y_new[nq : nq + n], k)
    keep_first_change(block, stepper, k)
    for j in range(nq + n, y.shape[0]):
        y_new[j, k] = y[j, k] + half * rate[j, k]
    evaluate(block, y_new, stepper.control[controls.TIME, k], rate, k)
    settle_middle(block, stepper, k)
    compute_biases(block, settings, y_new[nq : nq + n], constant_like(y, h), k)


@kernel
def add_smooth_changes(block, stepper, h, k):
    """Compute the velocities at the end of the step without impulses, in rows of `change`, from the rate in its middle.

    They are in rad/s and m/s. The middle has the prescribed velocity of a dof, if there is one.
    """
    y, y_new, nq, half = stepper.y, stepper.y_new, block.q.shape[0], constant_like(stepper.y, 0.5)
    for i in range(block.qd.shape[0]):
        at, length = (y[nq + i, k], h) if moves_freely(block, i) else (y_new[nq + i, k], half * h)
        stepper.change[nq + i, k] = at + length * stepper.rates[0, nq + i, k]


@routine
def finish_step(block, stepper, settings, h, k):
    """Compute the end of the step, y_new, from the state and the rate in its middle."""
    y, y_new, change, rates = stepper.y, stepper.y_new, stepper.change, stepper.rates
    nq, n, model, length = block.q.shape[0], block.qd.shape[0], block.model, constant_like(stepper.y, h)
    half, one = constant_like(y, 0.5), constant_like(y, 1.0)
    add_smooth_changes(block, stepper, length, k)
    for i in range(n):
        y_new[nq + i, k] = change[nq + i, k]
        change[nq + i, k] = y_new[nq + i, k] - y[nq + i, k]
    for j in range(nq + n, y.shape[0]):  # integrals and lagged forces of drives
        y_new[j, k] = y[j, k] + length * rates[0, j, k]
        rates[1, j, k] = rates[0, j, k]
    keep_smooth_changes(block, stepper, k)
    weight, impact, flight = solve_impulses(block, stepper, settings, length, k)
    end = one - weight  # weights of the velocities at the start and at the end of the step
    for i in range(n):
        smooth = impact * flight * (weight - half) * change[nq + i, k]
        change[nq + i, k] = weight * y[nq + i, k] + end * y_new[nq + i, k] + smooth
    position_rates(model, y_new[:nq], change[nq : nq + n], change[:nq], k)
    for j in range(nq):
        y_new[j, k] = y[j, k] + length * change[j, k]
    normalize_positions(model, y_new, k)
    stepper.control[controls.TIME, k] = stepper.control[controls.TIME, k] - half * length  # the start of the step
    set_prescribed_states(block, y_new, stepper.control[controls.TIME, k] + length, k)
    close_end_of_step(block, stepper, settings.tableau, k)
    correct_positions(block, stepper, settings, k)
    position_rates(model, y[:nq], y[nq : nq + n], rates[0, :nq], k)
    position_rates(model, y_new[:nq], y_new[nq : nq + n], rates[1, :nq], k)
    divide_step(block, stepper, weight, impact, flight, k)
    for j in range(nq, nq + n):  # steps without contacts have linear velocities
        rates[0, j, k] = (y_new[j, k] - y[j, k]) / length
        rates[1, j, k] = rates[0, j, k]


# --- contacts ---------------------------------------------------------------------------------------------------------


@only_if(has_contacts)
@routine
def predict_impulses(block, stepper, settings, h, k):
    """Compute the impulses of the step from the rate without them, and store the changes of the velocity by them.

    The solver at the end of the step uses these impulses as its initial guess. A step with an impact has no prediction.
    Writes `Contacts.changes`: changes[0] are the changes of the velocities, rad/s and m/s, and changes[1] is 1 / D.
    """
    contacts, nq, n = block.loads.actions.contacts, block.q.shape[0], block.qd.shape[0]
    rows, work, changes = contacts.rows, block.work, contacts.changes
    update_gaps(block.model, contacts, stepper.y_new, block.loads.actions.numbers, work, k)
    update_jacobian(block.model, contacts, block.loads.actions.numbers, work, k)
    compute_biases(block, settings, stepper.y_new[nq : nq + n], h, k)
    for row in range(rows.shape[0]):
        rows[row, contact.IMPULSE, k] = constant_like(rows, 0.0)
    rows[0, contact.RESPONDS, 0] = constant_like(rows, 0.0)
    set_rows(block, stepper, stepper.change[nq : nq + n], settings, h, k)
    if rows[0, contact.RESPONDS, 0] > constant_like(rows, 0.0):
        predict_rows(block, settings, h, k)
    nothing = constant_like(rows, 0.0)
    for i in range(n):
        changes[0, i, k] = nothing
        changes[1, i, k] = work.dof[i, frame.DINV, k]
    if rows[0, contact.RESPONDS, 0] > constant_like(rows, 0.0):
        add_responses(contacts.responses, rows, contact.IMPULSE, changes[0], k)
    collides = has_collision(contacts, k) > nothing
    for i in range(n):
        changes[0, i, k] = select(collides, nothing, changes[0, i, k])


@only_if(has_contacts)
@kernel
def add_half_of_prediction(block, v, k):
    """Add half the change of the velocity by the predicted impulses to v (n, lanes), rad/s and m/s."""
    contacts = block.loads.actions.contacts
    for i in range(v.shape[0]):
        v[i, k] = v[i, k] + constant_like(v, 0.5) * contacts.changes[0, i, k]


@only_if(has_contacts)
@kernel
def compute_biases(block, settings, qd, h, k):
    """Compute d u / dt of all rows without accelerations of the joints, in the middle of a step, from qd (n, lanes).

    Writes contact.BIAS, m/s^2 or rad/s^2.
    """
    actions = block.loads.actions
    update_biases(block.model, actions.contacts, qd, actions.numbers, block.work, k)
    remove_small_strains(actions.contacts, settings, h, block.work, k)


@only_if(
    has_contacts,
    otherwise=lambda block, stepper, settings, h, k: (
        full_like(stepper.y[0, k], 0.5),
        zeros_like(stepper.y[0, k]),
        zeros_like(stepper.y[0, k]),
    ),
)
@routine
def solve_impulses(block, stepper, settings, h, k):
    """Add the impulses of all rows to the velocities at the end of a step; return the results of `weights_of_step`."""
    contacts, y_new, nq, n = block.loads.actions.contacts, stepper.y_new, block.q.shape[0], block.qd.shape[0]
    rows, responds, half = contacts.rows, constant_like(contacts.rows, 0.0), constant_like(contacts.rows, 0.5)
    if rows[0, contact.RESPONDS, 0] > responds and has_new_factors(block, k):
        rows[0, contact.RESPONDS, 0] = responds
    update_gaps(block.model, contacts, y_new, block.loads.actions.numbers, block.work, k)
    set_rows(block, stepper, y_new[nq : nq + n], settings, h, k)
    residual = zeros_like(rows[0, contact.VELOCITY, k])
    acts = rows[0, contact.RESPONDS, 0] > responds
    if acts:
        residual = solve_rows(block, settings, h, k)
    collides = has_collision(contacts, k)
    store_work_of_impulses(block, stepper, acts, collides * (time_of_first_impact(contacts, k) - half), k)
    if acts:
        add_responses(contacts.responses, rows, contact.IMPULSE, y_new[nq : nq + n], k)
    rows[0, contact.RESIDUAL, k] = residual
    for row in range(rows.shape[0]):
        rows[row, contact.VELOCITY, k] = rows[row, contact.VELOCITY, k] + rows[row, contact.SHIFT, k]
    update_sticking(contacts, settings.tolerance, y_new[nq : nq + n], k)
    return weights_of_step(contacts, settings, h, k)


@kernel
def has_new_factors(block, k):
    """Whether the factors of the dynamics have changed since the responses were computed, in any lane.

    Only damping that depends on the velocity changes them.
    """
    changes, dof, differs = block.loads.actions.contacts.changes, block.work.dof, False
    for i in range(block.qd.shape[0]):
        differs = differs or any_lane(changes[1, i, k] != dof[i, frame.DINV, k])
    return differs


@routine
def set_rows(block, stepper, v_free, settings, h, k):
    """Set the velocities, bounds and limits of all rows for a step with the velocities v_free without impulses.

    v_free (n, lanes) is at the end of the step, rad/s and m/s. Reads the gaps and J of the middle. Computes the
    responses, and sets contact.RESPONDS, if a row may act.
    """
    contacts, model, y = block.loads.actions.contacts, block.model, stepper.y
    nq, n, rows, numbers = block.q.shape[0], block.qd.shape[0], contacts.rows, block.loads.actions.numbers
    update_row_velocities(model, contacts, y[nq : nq + n], contact.START_VELOCITY, k)
    update_row_velocities(model, contacts, v_free, contact.FREE_VELOCITY, k)
    half = constant_like(rows, 0.5) * h
    update_gear_friction(block.loads.actions, k)
    for row in range(rows.shape[0]):
        turn = half * rows[row, contact.BIAS, k]
        rows[row, contact.START_VELOCITY, k] = rows[row, contact.START_VELOCITY, k] - turn
        rows[row, contact.FREE_VELOCITY, k] = rows[row, contact.FREE_VELOCITY, k] + turn
    for e in range(contacts.table.shape[1]):
        if contacts.table[element.KIND, e] != element.FRICTION:
            set_start_gap(e, contacts, h, k)
    for e in range(contacts.table.shape[1]):
        if contacts.table[element.KIND, e] == element.FRICTION:
            stick_at_rest(e, contacts, numbers, settings.tolerance, y[nq : nq + n], k)
            set_friction_limits(e, contacts, numbers, h, k)
        else:
            set_bound(e, contacts, settings, numbers, h, k)
    set_shifts(contacts, numbers, h, k)
    for row in range(rows.shape[0]):
        rows[row, contact.VELOCITY, k] = rows[row, contact.FREE_VELOCITY, k] - rows[row, contact.SHIFT, k]
    if rows[0, contact.RESPONDS, 0] <= constant_like(rows, 0.0) and may_act(contacts, settings, h, k):
        update_responses(model, contacts, block.constraints, numbers, block.work, k)
        rows[0, contact.RESPONDS, 0] = constant_like(rows, 1.0)


@routine
def solve_rows(block, settings, h, k):
    """Solve for the impulses of all rows without a gain of energy, and return the largest residual.

    The initial guess is contact.IMPULSE. The residual is one value for each lane, m/s or rad/s.
    """
    contacts, numbers = block.loads.actions.contacts, block.loads.actions.numbers
    residual = zeros_like(contacts.rows[0, contact.VELOCITY, k])
    for _ in range(MAX_SLIPS):
        restore_free_velocities(contacts, k)
        residual = solve_contacts(contacts, settings.tolerance, k)
        if not release_joints(contacts, numbers, h, k):
            break
    return limit_energy(contacts, residual, settings.tolerance, k)


@routine
def predict_rows(block, settings, h, k):
    """Approximate the impulses of all rows; the initial guess is contact.IMPULSE."""
    contacts, numbers = block.loads.actions.contacts, block.loads.actions.numbers
    for _ in range(MAX_SLIPS):
        restore_free_velocities(contacts, k)
        predict_contacts(contacts, settings.tolerance, k)
        if not release_joints(contacts, numbers, h, k):
            break


@kernel
def restore_free_velocities(contacts, k):
    """Set the velocities of all rows without impulses, m/s or rad/s, for the solver."""
    rows = contacts.rows
    for row in range(rows.shape[0]):
        rows[row, contact.VELOCITY, k] = rows[row, contact.FREE_VELOCITY, k] - rows[row, contact.SHIFT, k]


@kernel
def weights_of_step(contacts, settings, h, k):
    """Return the weight of the velocity at the start, 1 if the step has an impact, and 1 if nothing else touches.

    These are one value for each lane. The positions of a step with an impact c h after its start also move with
    c - 1/2 times the change of the velocities without impulses, if nothing else touches.
    """
    table, rows = contacts.table, contacts.rows
    zero, one, half = constant_like(rows, 0.0), constant_like(rows, 1.0), constant_like(rows, 0.5)
    depth = constant_like(rows, 0.1 * settings.penetration)
    weight, flies = full_like(rows[0, contact.VELOCITY, k], 0.5), full_like(rows[0, contact.VELOCITY, k], 1.0)
    for e in range(table.shape[1]):
        row = table[element.ROW, e]
        if table[element.KIND, e] == element.FRICTION:
            flies = select(rows[row, contact.IMPULSE, k] != zero, zero, flies)
            continue
        turn = half * h * rows[row, contact.BIAS, k]  # the positions move with J v and J v' of the middle
        u, end = rows[row, contact.START_VELOCITY, k] + turn, rows[row, contact.VELOCITY, k] - turn
        pushes = rows[row, contact.IMPULSE, k] > zero
        collides = pushes & (rows[row, contact.IMPACT, k] > zero)
        rests = (rows[row, contact.IMPACT, k] <= zero) | (rows[row, contact.IS_CLIPPED, k] > zero)
        flies = select(pushes & rests, zero, flies)
        accelerates = end > u
        reach = (max(rows[row, contact.GAP, k], zero) + depth) / h + end
        limit = max(reach / select(accelerates, end - u, one), zero)
        weight = select(accelerates, select(collides, weight, min(weight, limit)), weight)
    impact = has_collision(contacts, k)
    return select(impact > zero, time_of_first_impact(contacts, k), weight), impact, flies


# --- the start of a motion --------------------------------------------------------------------------------------------


@only_if(has_contacts)
@kernel
def check_start(block, stepper, k):
    """Compute the gaps at the start, m or rad, and clear the numbers of earlier samples in `Contacts.rows`."""
    contacts = block.loads.actions.contacts
    for row in range(contacts.rows.shape[0]):
        for column in range(contacts.rows.shape[1]):
            contacts.rows[row, column, k] = constant_like(contacts.rows, 0.0)
    update_gaps(block.model, contacts, stepper.y, block.loads.actions.numbers, block.work, k)


@only_if(has_contacts, False)
@kernel
def starts_inside(block, settings, lane):
    """Whether the initial position of a lane is inside of a stop or of a plane."""
    return least_gap(block.loads.actions.contacts, lane) < constant_like(block.q, -settings.penetration)
