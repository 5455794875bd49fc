"""Impacts and new modes of dry friction, stops and contacts, in one lane at the end of a step or at the start.

An impact changes the velocities in an instant, by the impulses of `impact_law`: Newton's law of restitution for normal
directions and Coulomb's law for tangents, without a gain of energy. Friction of joints has no impulse. An impact has no
restitution if the flight after it would not be higher than `atol`, with the largest acceleration of the closed gaps. A
bouncing ball therefore comes to rest after a finite number of impacts. A contact that another impact opens stays closed
under the same condition, so a rod that rocks comes to rest, too.

Sources: Pfeiffer and Glocker (1996), *Multibody Dynamics with Unilateral Contacts*, chapter 8; Acary and Brogliato
(2008), *Numerical Methods for Nonsmooth Dynamical Systems*, chapter 8.
"""

from ...compiling.jit import kernel, routine
from ..contacts import contact_layout as contact, element_layout as element, mode_layout as mode
from ..contacts.contact_choice import NO_BOUND
from ..contacts.contact_layout import has_tangents
from ..contacts.contact_mode_changes import close_row, motion_of_row, open_row
from ..contacts.contact_modes import CLOSED_ROUND_OFF, ROUND_OFF, closed_gap, is_held_by_other_rows
from ..contacts.contact_responses import add_responses
from ..contacts.contact_rows import update_row_velocities
from ..contacts.impact_law import solve_impacts
from ..sample import tally_layout as tallies
from ..sample.work_memory import add_work_of_impact
from .contact_records import record_impact, record_interval, store_forces


@kernel
def speed_at_rest(tolerances):
    """Return the largest speed of a row that counts as rest, m/s or rad/s."""
    return 10.0 * tolerances.atol


@kernel
def is_closed(e, contacts, modes, lane):
    """Whether the gap of an element is closed."""
    if contacts.table[element.KIND, e] == element.FRICTION:
        return False
    row = contacts.table[element.ROW, e]
    return contacts.rows[row, contact.GAP, lane] <= closed_gap(row, modes, lane)


@kernel
def lowest_flight(row, modes, tolerances, lane):
    """Return the least height of a computed flight after an impact, m or rad: `atol` or round-off of the gap."""
    return max(tolerances.atol, CLOSED_ROUND_OFF * ROUND_OFF * modes.rows[row, mode.SIZE, lane])


@kernel
def restitution_of(e, block, lane):
    """Return the coefficient of restitution of a stop or a contact."""
    actions = block.loads.actions
    return actions.numbers[actions.contacts.table[element.NUMBERS, e] + element.NUMBER_RESTITUTION, lane]


@routine
def strike(block, stepper, batch, y, tolerances, lane):
    """Apply and record the impacts of closed gaps, if there are any: change the velocities in the state y of a lane.

    Reads the rows, their responses and their accelerations in this state.
    """
    contacts, modes = block.loads.actions.contacts, block.loads.actions.modes
    table, rows, rest = contacts.table, contacts.rows, speed_at_rest(tolerances)
    has_impact = False
    for e in range(table.shape[1]):
        row = table[element.ROW, e]
        rows[row, contact.IMPACT, lane] = 0.0
        rows[row, contact.IMPACT_TIME, lane] = 0.0
        if is_closed(e, contacts, modes, lane) and rows[row, contact.VELOCITY, lane] < -rest:
            rows[row, contact.IMPACT, lane] = 1.0
            has_impact = True
    if not has_impact:
        return
    for row in range(rows.shape[0]):
        rows[row, contact.START_VELOCITY, lane] = rows[row, contact.VELOCITY, lane]
    apply_impulses(block, stepper, batch, y, tolerances, 1.0, lane)


@routine
def strike_without_collision(block, stepper, batch, y, tolerances, lane):
    """Change the velocities in the state y of a lane by impulses of its closed contacts, if no modes fit the forces.

    This is the paradox of Painleve: the friction of a contact that slides presses it into its plane, and no finite
    force stops it. The impulses are the limit of the impulses of a step of time stepping whose length goes to zero
    (Moreau 1988). This limit always exists.
    """
    contacts, modes = block.loads.actions.contacts, block.loads.actions.modes
    table, rows, rest, largest = contacts.table, contacts.rows, speed_at_rest(tolerances), 0.0
    for row in range(rows.shape[0]):
        largest = max(largest, abs(modes.rows[row, mode.ACCELERATION, lane]))
    length = rest / largest if largest > 0.0 else 0.0
    for row in range(rows.shape[0]):
        change = length * modes.rows[row, mode.ACCELERATION, lane]
        rows[row, contact.START_VELOCITY, lane] = rows[row, contact.VELOCITY, lane] + change
    for e in range(table.shape[1]):
        row = table[element.ROW, e]
        slides = has_tangents(e, table) and has_sliding_velocity(row, modes, lane)
        rows[row, contact.IMPACT, lane] = 1.0 if slides else 0.0
        rows[row, contact.IMPACT_TIME, lane] = 0.0
    apply_impulses(block, stepper, batch, y, tolerances, 0.0, lane)


@kernel
def has_sliding_velocity(row, modes, lane):
    """Whether a contact is closed, has friction and has a velocity of sliding. Does not depend on the chosen modes."""
    touches, has_friction = modes.rows[row, mode.CAN_CHANGE, lane] > 0.0, modes.rows[row, mode.FRICTION, lane] > 0.0
    return touches and has_friction and modes.rows[row + 1, mode.CAN_CHANGE, lane] == 0.0


@routine
def apply_impulses(block, stepper, batch, y, tolerances, factor, lane):
    """Solve for the impulses of the closed gaps from the velocities in START_VELOCITY, apply and record them.

    Changes qd in the state y. `factor` multiplies all coefficients of restitution.
    """
    contacts, modes = block.loads.actions.contacts, block.loads.actions.modes
    table, rows, fastest = contacts.table, contacts.rows, 0.0
    nq, n = block.q.shape[0], block.qd.shape[0]
    for row in range(rows.shape[0]):
        fastest = max(fastest, abs(rows[row, contact.START_VELOCITY, lane]))
    for e in range(table.shape[1]):
        set_bounds_of_impact(e, factor, block, tolerances, lane)
    residual = solve_impacts(contacts, 1e-14 * fastest, lane)
    records, sample = batch.records.contacts, stepper.tally[tallies.SAMPLE, lane]
    if not residual <= records.residuals[sample]:
        records.residuals[sample] = residual
    add_work_of_impact(block, stepper, y, lane)
    add_responses(contacts.responses, rows, contact.IMPULSE, y[nq : nq + n], lane)
    for e in range(table.shape[1]):
        if table[element.KIND, e] != element.FRICTION:
            record_impact(e, block, stepper, records, sample, lane)
    update_row_velocities(block.model, contacts, y[nq : nq + n], contact.VELOCITY, lane)
    for row in range(modes.rows.shape[0]):
        rows[row, contact.IMPULSE, lane] = 0.0


@kernel
def set_bounds_of_impact(e, factor, block, tolerances, lane):
    """Set the velocity, the bounds and the start of the solver for an element; `factor` reduces all restitutions."""
    contacts, modes = block.loads.actions.contacts, block.loads.actions.modes
    table, rows, row = contacts.table, contacts.rows, contacts.table[element.ROW, e]
    for r in range(row, row + table[element.SIZE, e]):
        rows[r, contact.VELOCITY, lane] = rows[r, contact.START_VELOCITY, lane]
        for column in (contact.IMPULSE, contact.LOWER, contact.UPPER):
            rows[r, column, lane] = 0.0
    if table[element.KIND, e] == element.FRICTION:
        return
    u = rows[row, contact.START_VELOCITY, lane]
    if not is_closed(e, contacts, modes, lane):
        rows[row, contact.BOUND, lane] = NO_BOUND
        return
    rebound = -restitution_of(e, block, lane) * factor * min(u, 0.0)
    pull = 2.0 * lowest_flight(row, modes, tolerances, lane) * largest_acceleration(contacts, modes, lane)
    rests = rebound <= speed_at_rest(tolerances) or rebound * rebound <= pull
    rows[row, contact.BOUND, lane] = 0.0 if rests else rebound


@kernel
def largest_acceleration(contacts, modes, lane):
    """Return the largest acceleration of a closed gap without contact forces, m/s^2 or rad/s^2."""
    largest = 0.0
    for e in range(contacts.table.shape[1]):
        row = contacts.table[element.ROW, e]
        if contacts.table[element.KIND, e] != element.FRICTION and contacts.rows[row, contact.GAP, lane] <= closed_gap(
            row, modes, lane
        ):
            largest = max(largest, abs(modes.rows[row, mode.ACCELERATION, lane]))
    return largest


@kernel
def set_candidates(block, tolerances, lane):
    """Set the modes that follow from gaps and velocities, and mark the rows whose modes follow from forces."""
    contacts, modes = block.loads.actions.contacts, block.loads.actions.modes
    table, rows, rest = contacts.table, modes.rows, speed_at_rest(tolerances)
    for row in range(rows.shape[0]):
        rows[row, mode.REFERENCE, lane] = 0.0
    for e in range(table.shape[1]):
        row = table[element.ROW, e]
        u = contacts.rows[row, contact.VELOCITY, lane]
        if table[element.KIND, e] == element.FRICTION:
            at_rest = abs(u) <= rest
            rows[row, mode.MODE, lane] = mode.HELD if at_rest else mode.SLIDING
            rows[row, mode.DIRECTION, lane] = 1.0 if u > 0.0 else -1.0
            rows[row, mode.CAN_CHANGE, lane] = 1.0 if at_rest else 0.0
            continue
        stays_closed = is_closed(e, contacts, modes, lane) and u <= rest
        rows[row, mode.CAN_CHANGE, lane] = 1.0 if stays_closed else 0.0
        if stays_closed:
            close_row(e, contacts, modes, rest, lane)
        else:
            open_row(e, contacts, modes, lane)


@kernel
def is_short_flight(e, contacts, modes, tolerances, lane):
    """Whether a closed gap opens with a velocity, but its acceleration closes it again at once (`lowest_flight`)."""
    row = contacts.table[element.ROW, e]
    u = contacts.rows[row, contact.VELOCITY, lane]
    if (
        not is_closed(e, contacts, modes, lane)
        or modes.rows[row, mode.MODE, lane] != mode.OPEN
        or u <= speed_at_rest(tolerances)
    ):
        return False
    return u * u <= -2.0 * lowest_flight(row, modes, tolerances, lane) * motion_of_row(row, contacts, modes, lane)


@kernel
def record_sticking(block, batch, sample, t, lane):
    """Record the elements that start or stop sticking at time t."""
    contacts, modes, records = block.loads.actions.contacts, block.loads.actions.modes, batch.records.contacts
    for e in range(contacts.table.shape[1]):
        kind, row, f = contacts.table[element.KIND, e], contacts.table[element.ROW, e], contacts.table[element.FORCE, e]
        if not (kind == element.FRICTION or has_tangents(e, contacts.table)):
            continue
        sticks = is_at_rest(row, contacts, modes, lane)
        if has_tangents(e, contacts.table):
            sticks = modes.rows[row, mode.MODE, lane] == mode.HELD and (
                is_at_rest(row + 1, contacts, modes, lane) and is_at_rest(row + 2, contacts, modes, lane)
            )
        stuck = modes.rows[row, mode.STUCK, lane] > 0.0
        modes.rows[row, mode.STUCK, lane] = 1.0 if sticks else 0.0
        record_interval(sticks, stuck, t, records, sample, f)


@kernel
def is_at_rest(row, contacts, modes, lane):
    """Whether friction sticks: it is an active constraint, or its force is at the limit and others keep it at rest.

    The modes and factors must come from the last evaluation.
    """
    current = modes.rows[row, mode.MODE, lane]
    may_stick = current == mode.SLIDING and modes.rows[row, mode.CAN_CHANGE, lane] > 0.0
    return current == mode.HELD or (may_stick and is_held_by_other_rows(row, contacts, modes, lane))


@kernel
def store_forces_of_modes(block, batch, sample, slot, lane):
    """Store the forces of the last evaluation, N or N m, at a saved time in `Saved.forces`."""
    contacts, modes = block.loads.actions.contacts, block.loads.actions.modes
    for row in range(modes.rows.shape[0]):
        contacts.rows[row, contact.IMPULSE, lane] = modes.rows[row, mode.FORCE, lane]
    store_forces(block, batch, sample, slot, 1.0, lane)
    for row in range(modes.rows.shape[0]):
        contacts.rows[row, contact.IMPULSE, lane] = 0.0
