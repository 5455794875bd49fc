"""Corrections of the positions after a step of `moreau`, so that stops and contacts do not penetrate."""

import math

from ...compiling.jit import kernel, only_if, routine
from ..contacts import contact_layout as contact, element_layout as element
from ..contacts.contact_layout import has_tangents
from ..contacts.contact_responses import add_responses, update_responses
from ..contacts.contact_rows import update_gaps
from ..contacts.contact_solver import solve_contacts
from ..lanes.lanes import any_lane, constant_like, full_like, select, zeros_like
from ..loops.constraint_hooks import project_corrected_end
from ..tree.kinematics import add_step, rotate_dof
from .moreau_rows import has_contacts

MAX_CORRECTIONS = 10


@only_if(has_contacts)
@routine
def correct_positions(block, stepper, settings, k):
    """Move the positions at the end of a step out of stops and contacts, without a motion of joints that stick.

    Reads the responses of the middle of the step. Keeps the impulses and velocities of the rows. The moves satisfy the
    constraints of a closed loop to first order, so that each is followed by a projection.
    """
    contacts, model, y_new = block.loads.actions.contacts, block.model, stepper.y_new
    table, rows, numbers, moves = contacts.table, contacts.rows, block.loads.actions.numbers, contacts.changes
    nq, n, depth = block.q.shape[0], block.qd.shape[0], constant_like(contacts.rows, settings.penetration)
    zero = constant_like(rows, 0.0)
    for iteration in range(MAX_CORRECTIONS):
        for i in range(n):
            rotate_dof(i, model, y_new, block.work, k)
        update_gaps(model, contacts, y_new, numbers, block.work, k)
        least = least_gap(contacts, k)
        is_inside = least < -depth
        if not any_lane(is_inside):
            break
        if iteration == 0:
            begin_correction(block, k)
        for row in range(rows.shape[0]):
            rows[row, contact.IMPULSE, k] = zero
        for e in range(table.shape[1]):
            set_correction(e, iteration == 0, contacts, k)
        solve_contacts(contacts, 0.1 * settings.penetration, k)
        for i in range(n):
            moves[0, i, k] = zero
        add_responses(contacts.responses, rows, contact.IMPULSE, moves[0], k)
        for e in range(table.shape[1]):
            if table[element.KIND, e] == element.FRICTION:
                sticks = rows[table[element.ROW, e], contact.STICKS, k] > zero
                i = table[element.DOF, e]
                moves[0, i, k] = select(sticks, zero, moves[0, i, k])
        moved = stepper.change[:nq]
        add_step(model, y_new[:nq], moves[0], moved, moved, k)
        for j in range(nq):  # positions that do not move keep their bits, which another normalization can change
            y_new[j, k] = select(is_inside, moved[j, k], y_new[j, k])
        project_corrected_end(block, y_new, is_inside, k)
        for row in range(rows.shape[0]):
            rows[row, contact.IMPULSE, k] = rows[row, contact.STORED, k]


@kernel
def begin_correction(block, k):
    """Store the impulses before a correction, and compute the responses if the step has not done so."""
    contacts = block.loads.actions.contacts
    rows = contacts.rows
    if not rows[0, contact.RESPONDS, 0] > constant_like(rows, 0.0):
        update_responses(block.model, contacts, block.constraints, block.loads.actions.numbers, block.work, k)
    for row in range(rows.shape[0]):
        rows[row, contact.STORED, k] = rows[row, contact.IMPULSE, k]


@kernel
def least_gap(contacts, k):
    """Return the smallest gap of all rows, m or rad, for each lane; infinity without stops and contacts."""
    rows, table = contacts.rows, contacts.table
    least = full_like(rows[0, contact.IMPULSE, k], math.inf)
    for e in range(table.shape[1]):
        if table[element.KIND, e] != element.FRICTION:
            least = min(least, rows[table[element.ROW, e], contact.GAP, k])
    return least


@kernel
def set_correction(e, holds, contacts, k):
    """Set the rows of an element for a correction of positions: gaps become positive, sticking rows do not move.

    Contacts that stick may move if `holds` is false, because they can make it impossible to open a gap. The velocity of
    a row is its gap, m or rad, in a correction.
    """
    rows, row, zero = contacts.rows, contacts.table[element.ROW, e], constant_like(contacts.rows, 0.0)
    nothing = zeros_like(rows[row, contact.IMPULSE, k])
    limit = select(rows[row, contact.STICKS, k] > zero, constant_like(rows, math.inf), nothing)
    if contacts.table[element.KIND, e] == element.FRICTION:
        rows[row, contact.VELOCITY, k] = nothing
        rows[row, contact.LOWER, k] = -limit
        rows[row, contact.UPPER, k] = limit
        return
    rows[row, contact.VELOCITY, k] = rows[row, contact.GAP, k]
    rows[row, contact.BOUND, k] = nothing
    if has_tangents(e, contacts.table):
        limit = limit if holds else nothing
        rows[row, contact.FRICTION, k] = nothing
        rows[row + 1, contact.VELOCITY, k] = nothing
        rows[row + 2, contact.VELOCITY, k] = nothing
        rows[row + 1, contact.UPPER, k] = limit
