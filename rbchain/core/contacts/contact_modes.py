"""Modes of dry friction, stops and contacts: the forces in a given mode, and the choice of the mode.

Each row is open, sliding, or an active constraint (mode HELD). Let a be the accelerations of the rows without these
forces, and W = J H^-1 J^T. The forces p of the rows follow from

    open      p = 0
    active    a + W p = 0: a closed contact or stop, or friction that sticks
    sliding   p = - kinetic friction along the direction of the motion, for contacts - mu p_n times this direction

The mode of a row is constant within a step. The equations of the active constraints are solved directly. A small
diagonal is added to W, and one step of iterative refinement removes its effect on the accelerations. If rows depend on
each other, the difference of the solution from a reference has almost the smallest norm. The reference is zero, or
forces within the limits of friction that `contact_choice` has found.

Source: Pfeiffer and Glocker (1996), *Multibody Dynamics with Unilateral Contacts*, chapters 4 and 5; Acary and
Brogliato (2008), *Numerical Methods for Nonsmooth Dynamical Systems*, chapter 8.

`contact_layout` describes the arguments. Forces are in N or N m, accelerations in m/s^2 or rad/s^2.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import kernel, routine
from ..lanes.lane_records import lane_record
from ..lanes.lanes import any_lane, constant_like, nan_unless_finite, select
from . import contact_layout as contact, element_layout as element, mode_layout as mode
from .contact_layout import has_tangents
from .contact_responses import add_responses

# A gap up to CLOSED_GAP, m or rad, is closed. If CLOSED_ROUND_OFF times ROUND_OFF times mode.SIZE is larger, a gap up
# to this number is closed.
CLOSED_GAP, ROUND_OFF, CLOSED_ROUND_OFF = 1e-10, 1e-15, 10.0
# The number that is added to the diagonal of active constraints, relative to the largest diagonal entry of the element.
REGULARIZATION = 1e-8
# No force moves a row whose diagonal entry is below this fraction of the largest diagonal entry of its element.
IMMOBILE = 1e-12
# Active constraints fix another row if they reduce its response to a force to less than this fraction. The error of the
# solution for the forces is about REGULARIZATION.
AT_REST = 1e-6
# The direction of sliding hardly turns if the speed is below this number, m/s, or below VELOCITY_ERRORS times the error
# of the velocity. Otherwise, the errors of a step would turn the friction of a contact that starts to slide at random,
# so it would hardly accelerate.
SLOWEST_TURN, VELOCITY_ERRORS = 1e-11, 100.0


class ContactModes(NamedTuple):
    """The modes of the rows in one block, which belong to `contact_layout.Contacts`; m is the number of rows.

    `mode_layout` describes `rows` (m, mode.ROWS, lanes) and `flags` (mode.FLAG_ROWS, lanes). `matrix` (m, m, lanes)
    holds the accelerations due to unit forces of the active constraints, with the friction that these forces cause.
    `factors` (m, m, lanes) are its factors.
    """

    rows: Annotated[np.ndarray, "m", mode.ROWS]
    matrix: Annotated[np.ndarray, "m", "m"]
    factors: Annotated[np.ndarray, "m", "m"]
    flags: Annotated[np.ndarray, mode.FLAG_ROWS]


modes_size, modes_in = lane_record(ContactModes, "m")


@kernel
def closed_gap(row, modes, k):
    """Return the gap up to which a row is closed, m or rad."""
    size = constant_like(modes.rows, CLOSED_ROUND_OFF * ROUND_OFF) * modes.rows[row, mode.SIZE, k]
    return max(size, constant_like(modes.rows, CLOSED_GAP) + nan_unless_finite(size))


# --- forces in a given mode -------------------------------------------------------------------------------------------


@routine
def solve_forces(contacts, modes, numbers, k):
    """Compute mode.FORCE of all rows, N or N m, from their modes, their velocities and mode.ACCELERATION."""
    rows, table = modes.rows, contacts.table
    zero = constant_like(rows, 0.0)
    for e in range(table.shape[1]):
        prepare_element(e, contacts, modes, numbers, k)
    factor_held_rows(contacts, modes, k)
    add_friction_of_contacts(contacts, modes, mode.FORCE, k)
    for row in range(rows.shape[0]):
        total = rows[row, mode.ACCELERATION, k]
        for column in range(rows.shape[0]):
            total = total + contacts.matrix[row, column, k] * rows[column, mode.FORCE, k]
        rows[row, mode.RIGHT, k] = select(rows[row, mode.INVERSE, k] != zero, -total, zero * total)
    solve_held_rows(modes, k)
    for row in range(rows.shape[0]):
        rows[row, mode.FORCE, k] = rows[row, mode.FORCE, k] + rows[row, mode.RIGHT, k]
    add_friction_of_contacts(contacts, modes, mode.FORCE, k)


@kernel
def prepare_element(e, contacts, modes, numbers, k):
    """Set the heading, the coefficient of friction and the known forces of an element."""
    rows, table, zero = modes.rows, contacts.table, constant_like(modes.rows, 0.0)
    row, at, kind = table[element.ROW, e], table[element.NUMBERS, e], table[element.KIND, e]
    largest = contacts.matrix[row, row, k]
    if has_tangents(e, table):
        turn_heading(row, contacts, modes, k)
        largest = max(largest, contacts.matrix[row + 1, row + 1, k])
        largest = max(largest, contacts.matrix[row + 2, row + 2, k])
    rows[row, mode.HEADING, k] = rows[row, mode.DIRECTION, k]
    held = constant_like(rows, mode.HELD)
    for r in range(row, row + table[element.SIZE, e]):
        rows[r, mode.FORCE, k] = select(rows[r, mode.MODE, k] == held, rows[r, mode.REFERENCE, k], zero * largest)
        rows[r, mode.FRICTION, k] = zero * largest
        rows[r, mode.SCALE, k] = largest
    if has_tangents(e, table):
        rows[row, mode.FRICTION, k] = numbers[at + element.NUMBER_FRICTION, k]
    if kind == element.FRICTION:
        rows[row, mode.FORCE, k] = kinetic_friction(row, at, modes, numbers, k)


@kernel
def kinetic_friction(row, at, modes, numbers, k):
    """Return the friction of a joint that slides, N m or N, else 0."""
    rows, zero = modes.rows, constant_like(modes.rows, 0.0)
    d = rows[row, mode.DIRECTION, k]
    forward, backward = (
        numbers[at + element.FRICTION_KINETIC_FORWARD, k],
        numbers[at + element.FRICTION_KINETIC_BACKWARD, k],
    )
    slides = rows[row, mode.MODE, k] == constant_like(rows, mode.SLIDING)
    return select(slides, select(d > zero, -forward, backward), zero * d)


@kernel
def turn_heading(row, contacts, modes, k):
    """Turn the direction of sliding of a contact to the direction of its velocity, by at most 45 degrees.

    The direction does not change if the velocity changes its sign within the step. The forces are therefore smooth
    functions of the state.
    """
    rows = modes.rows
    one = constant_like(rows, 1.0)
    a, b = rows[row + 1, mode.DIRECTION, k], rows[row + 2, mode.DIRECTION, k]
    u, v = contacts.rows[row + 1, contact.VELOCITY, k], contacts.rows[row + 2, contact.VELOCITY, k]
    along, across = u * a + v * b, v * a - u * b
    slowest = max(rows[row + 1, mode.SLOWEST, k], rows[row + 2, mode.SLOWEST, k])
    slowest = max(slowest, constant_like(rows, SLOWEST_TURN) + nan_unless_finite(along))
    turn = across / max(along, slowest)
    limit = one + nan_unless_finite(turn)
    turn = min(max(turn, -limit), limit)
    size = one / math.sqrt(one + turn * turn)
    rows[row + 1, mode.HEADING, k] = size * (a - turn * b)
    rows[row + 2, mode.HEADING, k] = size * (b + turn * a)


@kernel
def store_slowest_turns(contacts, modes, qd, rtol, atol, lane):
    """Set mode.SLOWEST of all rows from the errors of their velocities. qd is (n, lanes), `atol` in m/s."""
    rows = modes.rows
    for row in range(rows.shape[0]):
        speed = 0.0
        for i in range(qd.shape[0]):
            speed += abs(float(contacts.jacobian[row, i, lane]) * float(qd[i, lane]))
        rows[row, mode.SLOWEST, lane] = VELOCITY_ERRORS * (atol + rtol * speed)


@kernel
def factor_held_rows(contacts, modes, k):
    """Compute and factor the matrix of the active constraints, without row exchanges.

    The other rows and columns are as in the identity matrix.
    """
    rows, E, A, m = modes.rows, modes.matrix, modes.factors, modes.rows.shape[0]
    zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
    for row in range(m):
        held = rows[row, mode.MODE, k] == constant_like(rows, mode.HELD)
        moves = contacts.matrix[row, row, k] > constant_like(rows, IMMOBILE) * rows[row, mode.SCALE, k]
        nothing = zero * rows[row, mode.ACCELERATION, k]
        rows[row, mode.INVERSE, k] = select(held & moves, one + nothing, nothing)
    for row in range(m):
        held, nothing = rows[row, mode.INVERSE, k] > zero, zero * rows[row, mode.ACCELERATION, k]
        for column in range(m):
            E[row, column, k] = nothing
            if any_lane(held):
                both = held & (rows[column, mode.INVERSE, k] > zero)
                E[row, column, k] = select(both, response_of_force(row, column, contacts, modes, k), nothing)
            A[row, column, k] = E[row, column, k]
        extra = constant_like(rows, REGULARIZATION) * rows[row, mode.SCALE, k]
        A[row, row, k] = select(held, A[row, row, k] + extra, one + nothing)
    for c in range(m):
        held = rows[c, mode.INVERSE, k] > zero
        rows[c, mode.INVERSE, k] = select(held, one / A[c, c, k], zero * A[c, c, k])
        if any_lane(held):
            for row in range(c + 1, m):
                factor = A[row, c, k]
                if any_lane(factor != zero):
                    factor = factor * rows[c, mode.INVERSE, k]
                    A[row, c, k] = factor
                    for column in range(c + 1, m):
                        A[row, column, k] = A[row, column, k] - factor * A[c, column, k]


@kernel
def response_of_force(row, column, contacts, modes, k):
    """Return the acceleration of a row due to a unit force of an active constraint and the friction that it causes.

    `column` is the row of the active constraint.
    """
    rows, W = modes.rows, contacts.matrix
    total, mu = W[row, column, k], rows[column, mode.FRICTION, k]
    if any_lane(mu > constant_like(rows, 0.0)):
        slides = rows[column + 1, mode.MODE, k] == constant_like(rows, mode.SLIDING)
        slope = W[row, column + 1, k] * rows[column + 1, mode.HEADING, k]
        slope = slope + W[row, column + 2, k] * rows[column + 2, mode.HEADING, k]
        total = total - select(slides, mu * slope, nan_unless_finite(mu))
    return total


@kernel
def solve_held_rows(modes, k):
    """Replace accelerations in mode.RIGHT by the forces of active constraints that cause them, with one refinement.

    mode.RIGHT must be zero for all rows that are not active constraints.
    """
    rows, E, m = modes.rows, modes.matrix, modes.rows.shape[0]
    for row in range(m):
        rows[row, mode.REST, k] = rows[row, mode.RIGHT, k]
    substitute(modes, k)
    for row in range(m):
        rest = rows[row, mode.REST, k]
        for column in range(m):
            rest = rest - E[row, column, k] * rows[column, mode.RIGHT, k]
        rows[row, mode.REST, k] = rest
    for row in range(m):
        rows[row, mode.SOLUTION, k] = rows[row, mode.RIGHT, k]
        rows[row, mode.RIGHT, k] = rows[row, mode.REST, k]
    substitute(modes, k)
    for row in range(m):
        rows[row, mode.RIGHT, k] = rows[row, mode.RIGHT, k] + rows[row, mode.SOLUTION, k]


@kernel
def is_held_by_other_rows(row, contacts, modes, lane):
    """Whether active constraints fix the joint or contact of another row, so its own force does not accelerate it.

    Reads the factors of `solve_forces`; overwrites mode.RIGHT, mode.REST and mode.SOLUTION.
    """
    rows, W = modes.rows, contacts.matrix
    for other in range(rows.shape[0]):
        held = rows[other, mode.INVERSE, lane] != 0.0
        rows[other, mode.RIGHT, lane] = -W[other, row, lane] if held else 0.0
    solve_held_rows(modes, lane)
    total = W[row, row, lane]
    for other in range(rows.shape[0]):
        if rows[other, mode.INVERSE, lane] != 0.0:
            total += response_of_force(row, other, contacts, modes, lane) * rows[other, mode.RIGHT, lane]
    return abs(total) <= AT_REST * W[row, row, lane]


@kernel
def substitute(modes, k):
    """Replace mode.RIGHT by the solution of the factored system; zero for rows that are not active constraints."""
    rows, A, m = modes.rows, modes.factors, modes.rows.shape[0]
    for row in range(m):
        x = rows[row, mode.RIGHT, k]
        for column in range(row):
            x = x - A[row, column, k] * rows[column, mode.RIGHT, k]
        rows[row, mode.RIGHT, k] = x
    for row in range(m - 1, -1, -1):
        x = rows[row, mode.RIGHT, k]
        for column in range(row + 1, m):
            x = x - A[row, column, k] * rows[column, mode.RIGHT, k]
        rows[row, mode.RIGHT, k] = x * rows[row, mode.INVERSE, k]


@kernel
def add_friction_of_contacts(contacts, modes, column, k):
    """Set the forces of the tangents of sliding contacts, in a column of `modes.rows`, to - mu p_n times their heading.

    p_n is the force of the normal in this column, N.
    """
    rows, table = modes.rows, contacts.table
    for e in range(table.shape[1]):
        if has_tangents(e, table):
            row = table[element.ROW, e]
            slides = rows[row + 1, mode.MODE, k] == constant_like(rows, mode.SLIDING)
            size = rows[row, mode.FRICTION, k] * rows[row, column, k]
            for tangent in range(row + 1, row + 3):
                p = rows[tangent, column, k]
                rows[tangent, column, k] = select(slides, -size * rows[tangent, mode.HEADING, k], p)


@kernel
def correct_held_rows(contacts, modes, column, changes, k):
    """Compute changes (n, lanes) that make a column of `contacts.rows` zero in active constraints.

    These are changes of velocities, rad/s or m/s, for VELOCITY, and of positions along the tangent space for GAP.
    """
    rows, zero = modes.rows, constant_like(modes.rows, 0.0)
    for row in range(rows.shape[0]):
        value = contacts.rows[row, column, k]
        rows[row, mode.RIGHT, k] = select(rows[row, mode.INVERSE, k] != zero, -value, zero * value)
    solve_held_rows(modes, k)
    add_friction_of_contacts(contacts, modes, mode.RIGHT, k)  # as in `response_of_force`
    for i in range(changes.shape[0]):
        changes[i, k] = zero * rows[0, mode.RIGHT, k]
    add_responses(contacts.responses, rows, mode.RIGHT, changes, k)
