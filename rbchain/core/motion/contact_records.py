"""Record impacts, intervals of sticking, and the forces of dry friction, stops and contacts at the saved times."""

import math

from ...compiling.jit import is_given, kernel, only_if, routine
from ..contacts import contact_layout as contact, element_layout as element
from ..contacts.contact_layout import has_tangents, is_contact
from ..lanes.lanes import constant_like
from ..sample import clock_layout as clocks, tally_layout as tallies
from ..sample.status import RUNNING, STOPPED
from .step_parts import meeting_of_parts


@only_if(lambda block, *_: is_given(block, "loads", "actions", "contacts"))
@routine
def record_contacts(block, stepper, batch, slot, lane):
    """Record the impulses of an accepted step of a lane; `slot` is the number of saved times before the step."""
    tally, contacts = stepper.tally, block.loads.actions.contacts
    if tally[tallies.STATUS, lane] != RUNNING and tally[tallies.STATUS, lane] != STOPPED:
        return
    sample, first = tally[tallies.SAMPLE, lane], tally[tallies.STEPS, lane] == 1
    records = batch.records.contacts
    residual = float(contacts.rows[0, contact.RESIDUAL, lane])
    if not residual <= records.residuals[sample]:
        records.residuals[sample] = residual
    if first:
        store_forces(block, batch, sample, 0, stepper.clock[clocks.STEP, lane], lane)
    for saved in range(slot, tally[tallies.SAVED, lane]):
        store_forces(block, batch, sample, saved, stepper.clock[clocks.STEP, lane], lane)
    t, h = stepper.clock[clocks.T, lane], stepper.clock[clocks.STEP, lane]
    time_of_jump = t + float(meeting_of_parts(block, stepper, lane)) * h  # the impulses of all impacts act then
    has_jumped = tally[tallies.STATUS, lane] == RUNNING or batch.outcome.end_times[sample] >= time_of_jump
    for e in range(contacts.table.shape[1]):
        kind = contacts.table[element.KIND, e]
        if kind != element.FRICTION and has_jumped:
            record_impact(e, block, stepper, records, sample, lane)
        if kind == element.FRICTION or has_tangents(e, contacts.table):
            record_sticking(e, contacts, stepper, records, sample, lane)


@kernel
def impulse_of_element(e, block, axis, lane):
    """Return one component of the impulse of an element: on its body in world axes or, as component 0, on its joint.

    The impulse of a contact acts on its second body, N s. The impulse on a joint is in N m s or N s.
    """
    contacts, total = block.loads.actions.contacts, 0.0
    row = contacts.table[element.ROW, e]
    if is_contact(e, contacts.table):
        for r in range(row, row + contacts.table[element.SIZE, e]):
            component = contacts.rows[r, contact.NORMAL + axis, lane]
            total += float(contacts.rows[r, contact.IMPULSE, lane]) * float(component)
    elif axis == 0:
        total = float(contacts.rows[row, contact.IMPULSE, lane]) * contacts.table[element.SIGN, e]
    return total


@kernel
def store_forces(block, batch, sample, slot, h, lane):
    """Store the forces of all elements at a saved time in `Saved.forces`: their impulses, divided by the time h, s.

    The impulses are in contact.IMPULSE. The forces are in N or N m, as in `impulse_of_element`.
    """
    contacts, forces = block.loads.actions.contacts, batch.saved.forces
    for f in range(forces.shape[2]):
        for axis in range(3):
            forces[sample, slot, f, axis] = constant_like(forces, 0.0)
    for e in range(contacts.table.shape[1]):
        f = contacts.table[element.FORCE, e]
        for axis in range(3):
            force = impulse_of_element(e, block, axis, lane) / h
            forces[sample, slot, f, axis] += constant_like(forces, force)


@kernel
def record_impact(e, block, stepper, records, sample, lane):
    """Record an impact of an element in ContactRecords, if it has one in the step."""
    contacts = block.loads.actions.contacts
    row, f = contacts.table[element.ROW, e], contacts.table[element.FORCE, e]
    rows = contacts.rows
    if not (rows[row, contact.IMPACT, lane] > 0.0 and rows[row, contact.IMPULSE, lane] > 0.0):
        return
    t = stepper.clock[clocks.T, lane] + float(rows[row, contact.IMPACT_TIME, lane]) * stepper.clock[clocks.STEP, lane]
    slot = records.impact_counts[sample, f]
    records.impact_counts[sample, f] = slot + 1
    if slot < records.limits[f]:
        records.impact_times[sample, f, slot] = t
        for axis in range(3):
            records.impulses[sample, f, slot, axis] = impulse_of_element(e, block, axis, lane)


@kernel
def record_sticking(e, contacts, stepper, records, sample, lane):
    """Record that an element has started or stopped sticking, in ContactRecords.

    An element that sticks at the end of one step only has no interval: its velocity changes its sign.
    """
    rows, row, f = contacts.rows, contacts.table[element.ROW, e], contacts.table[element.FORCE, e]
    sticks, before = rows[row, contact.STICKS, lane] > 0.0, rows[row, contact.STUCK, lane]
    holds = sticks and (before > 0.0 or stepper.tally[tallies.STEPS, lane] == 1)
    rows[row, contact.STUCK, lane] = constant_like(rows, 2.0 if holds else 1.0 if sticks else 0.0)
    record_interval(holds, before > 1.0, stepper.clock[clocks.T, lane], records, sample, f)


@kernel
def record_interval(sticks, stuck, t, records, sample, f):
    """Record the time t, s, at which force f starts or stops sticking, if it does so, in ContactRecords."""
    slot = records.sticking_counts[sample, f]
    if sticks and not stuck:
        records.sticking_counts[sample, f] = slot + 1
        if slot < records.limits[f]:
            records.sticking_times[sample, f, slot, 0] = t
            records.sticking_times[sample, f, slot, 1] = math.inf
    elif stuck and not sticks and slot <= records.limits[f]:
        records.sticking_times[sample, f, slot - 1, 1] = t
