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
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import kernel, routine
from ..lanes.lane_records import lane_record
from ..lanes.lanes import any_lane, constant_like, select
from .contact_layout import (
    CONTACT_VELOCITY,
    ELEMENT_KIND,
    ELEMENT_NUMBERS,
    ELEMENT_ROW,
    ELEMENT_SIZE,
    FRICTION,
    FRICTION_KINETIC_BACKWARD,
    FRICTION_KINETIC_FORWARD,
    NUMBER_FRICTION,
    has_tangents,
)
from .contact_responses import add_responses

OPEN, HELD, SLIDING = 0.0, 1.0, 2.0

# --- rows of `ContactModes.rows` ---
MODE = 0  # OPEN, HELD or SLIDING
MODE_DIRECTION = 1  # direction of sliding at the start of the step: 1 or -1, or a component of a unit vector
MODE_HEADING = 2  # direction of sliding in the state of the last evaluation
MODE_ACCELERATION = 3  # a, without the forces of the rows
MODE_FORCE = 4  # p
MODE_RIGHT = 5  # right-hand side and solution of the linear system
MODE_REST = 6  # right-hand side of the refinement
MODE_SOLUTION = 7  # solution without the refinement
MODE_INVERSE = 8  # 1 / pivot; 0 for rows that are not solved for
MODE_SCALE = 9  # largest diagonal entry of W in the rows of the element
MODE_FRICTION = 10  # mu of the normal row of a contact; else 0
MODE_CAN_CHANGE = 11  # 1 if the row is closed and has no velocity, so that its mode follows from the forces
MODE_STUCK = 12  # 1 while an interval of sticking is recorded
MODE_WATCH = 13  # a number that is negative if the mode has to change; see `core.motion.contact_events`
MODE_WATCH_LOW, MODE_WATCH_HIGH = 14, 15  # the same at the bounds between which the length of a step is iterated
MODE_WATCH_START, MODE_START_VELOCITY = 16, 17  # MODE_WATCH and u at the start of the step
MODE_VELOCITY_LOW, MODE_VELOCITY_HIGH = 18, 19  # u at the bounds
MODE_SPEED, MODE_BEND, MODE_TURN = 20, 21, 22  # bounds of the motion in a step: see `core.motion.motion_bounds`
# gap and its rate, at three places of an interval of a step: see `core.motion.contact_search`
MODE_GAP_START, MODE_GAP_MIDDLE, MODE_GAP_END = 23, 25, 27
MODE_REFERENCE = 29  # reference force: if rows depend on each other, p is the solution closest to it
MODE_SIZE = 30  # sum of the terms that cancel in the gap, m or rad
MODE_ROWS = 31

# --- rows of `ContactModes.flags` ---
FLAG_RESTARTS = 0  # 1 if an impact or a change of modes ends the step
FLAG_LOCATES = 1  # 1 while the length of a step is iterated
FLAG_LOW, FLAG_HIGH = 2, 3  # bounds of this length, s
FLAG_SIDE = 4  # bound that the last iteration has changed: -1 low, 1 high
FLAG_ITERATIONS = 5
FLAG_PROJECTIONS = 6  # number of projections of a state onto the active constraints
FLAG_CHOOSES = 7  # 1 while the modes of a lane that starts are chosen
FLAG_DWELLS = 8  # number of successive steps of almost no length that have ended with a change of modes
FLAG_CONTACT = 9  # fraction of the step after which a gap is closed that may open again; 1 if there is none
FLAG_FREE, FLAG_WIDTH = 10, 11  # start and length of the interval of a step in which contacts are searched
FLAG_PLACE, FLAG_TRIALS = 12, 13  # place in this interval at which gaps are evaluated; number of intervals
FLAG_ROWS = 14

# A gap up to CLOSED_GAP, m or rad, is closed. If CLOSED_ROUND_OFF times ROUND_OFF times MODE_SIZE is larger, a gap up
# to this number is closed.
CLOSED_GAP, ROUND_OFF, CLOSED_ROUND_OFF = 1e-10, 1e-15, 10.0
# The number that is added to the diagonal of active constraints, relative to the largest diagonal entry of the element.
REGULARISATION = 1e-8
# No force moves a row whose diagonal entry is below this fraction of the largest diagonal entry of its element.
IMMOBILE = 1e-12
# Active constraints fix another row if they reduce its response to a force to less than this fraction. The error of the
# solution for the forces is about REGULARISATION.
AT_REST = 1e-6
# The direction of sliding does not turn further if the speed is below this number, m/s.
SLOWEST_TURN = 1e-11


class ContactModes(NamedTuple):
    """The modes of the rows in one block, which belong to `contact_layout.Contacts`; m is the number of rows.

    `rows` (m, MODE_ROWS, lanes) and `flags` (FLAG_ROWS, lanes) are described above. `matrix` (m, m, lanes) holds the
    accelerations due to unit forces of the active constraints, with the friction that these forces cause. `factors`
    (m, m, lanes) are its factors.
    """

    rows: Annotated[np.ndarray, "m", MODE_ROWS]
    matrix: Annotated[np.ndarray, "m", "m"]
    factors: Annotated[np.ndarray, "m", "m"]
    flags: Annotated[np.ndarray, FLAG_ROWS]


modes_size, modes_in = lane_record(ContactModes, "m")


@kernel
def closed_gap(row, modes, k):
    """Return the gap up to which a row is closed, m or rad."""
    size = constant_like(modes.rows, CLOSED_ROUND_OFF * ROUND_OFF) * modes.rows[row, MODE_SIZE, k]
    return max(size, constant_like(modes.rows, CLOSED_GAP) + (size - size))


# --- forces in a given mode -------------------------------------------------------------------------------------------


@routine
def solve_forces(contacts, modes, numbers, k):
    """Compute MODE_FORCE of all rows, N or N m, from their modes, their velocities and MODE_ACCELERATION."""
    rows, table = modes.rows, contacts.table
    zero = constant_like(rows, 0.0)
    for e in range(table.shape[1]):
        prepare_element(e, contacts, modes, numbers, k)
    factor_held_rows(contacts, modes, k)
    add_friction_of_contacts(contacts, modes, MODE_FORCE, k)
    for row in range(rows.shape[0]):
        total = rows[row, MODE_ACCELERATION, k]
        for column in range(rows.shape[0]):
            total = total + contacts.matrix[row, column, k] * rows[column, MODE_FORCE, k]
        rows[row, MODE_RIGHT, k] = select(rows[row, MODE_INVERSE, k] != zero, -total, zero * total)
    solve_held_rows(modes, k)
    for row in range(rows.shape[0]):
        rows[row, MODE_FORCE, k] = rows[row, MODE_FORCE, k] + rows[row, MODE_RIGHT, k]
    add_friction_of_contacts(contacts, modes, MODE_FORCE, k)


@kernel
def prepare_element(e, contacts, modes, numbers, k):
    """Set the heading, the coefficient of friction and the known forces of an element."""
    rows, table, zero = modes.rows, contacts.table, constant_like(modes.rows, 0.0)
    row, at, kind = table[ELEMENT_ROW, e], table[ELEMENT_NUMBERS, e], table[ELEMENT_KIND, e]
    largest = contacts.matrix[row, row, k]
    if has_tangents(e, table):
        turn_heading(row, contacts, modes, k)
        largest = max(largest, contacts.matrix[row + 1, row + 1, k])
        largest = max(largest, contacts.matrix[row + 2, row + 2, k])
    rows[row, MODE_HEADING, k] = rows[row, MODE_DIRECTION, k]
    held = constant_like(rows, HELD)
    for r in range(row, row + table[ELEMENT_SIZE, e]):
        rows[r, MODE_FORCE, k] = select(rows[r, MODE, k] == held, rows[r, MODE_REFERENCE, k], zero * largest)
        rows[r, MODE_FRICTION, k] = zero * largest
        rows[r, MODE_SCALE, k] = largest
    if has_tangents(e, table):
        rows[row, MODE_FRICTION, k] = numbers[at + NUMBER_FRICTION, k]
    if kind == FRICTION:
        rows[row, MODE_FORCE, k] = kinetic_friction(row, at, modes, numbers, k)


@kernel
def kinetic_friction(row, at, modes, numbers, k):
    """Return the friction of a joint that slides, N m or N, else 0."""
    rows, zero = modes.rows, constant_like(modes.rows, 0.0)
    d = rows[row, MODE_DIRECTION, k]
    forward, backward = numbers[at + FRICTION_KINETIC_FORWARD, k], numbers[at + FRICTION_KINETIC_BACKWARD, k]
    slides = rows[row, MODE, k] == constant_like(rows, SLIDING)
    return select(slides, select(d > zero, -forward, backward), zero * d)


@kernel
def turn_heading(row, contacts, modes, k):
    """Turn the direction of sliding of a contact to the direction of its velocity, by at most 45 degrees.

    The direction does not change if the velocity changes its sign within the step. The forces are therefore smooth
    functions of the state.
    """
    rows = modes.rows
    one = constant_like(rows, 1.0)
    a, b = rows[row + 1, MODE_DIRECTION, k], rows[row + 2, MODE_DIRECTION, k]
    u, v = contacts.rows[row + 1, CONTACT_VELOCITY, k], contacts.rows[row + 2, CONTACT_VELOCITY, k]
    along, across = u * a + v * b, v * a - u * b
    slowest = constant_like(rows, SLOWEST_TURN) + (along - along)
    turn = across / max(along, slowest)
    limit = one + (turn - turn)
    turn = min(max(turn, -limit), limit)
    size = one / math.sqrt(one + turn * turn)
    rows[row + 1, MODE_HEADING, k] = size * (a - turn * b)
    rows[row + 2, MODE_HEADING, k] = size * (b + turn * a)


@kernel
def factor_held_rows(contacts, modes, k):
    """Compute and factor the matrix of the active constraints, without row exchanges.

    The other rows and columns are those of the identity matrix.
    """
    rows, E, A, m = modes.rows, modes.matrix, modes.factors, modes.rows.shape[0]
    zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
    for row in range(m):
        held = rows[row, MODE, k] == constant_like(rows, HELD)
        moves = contacts.matrix[row, row, k] > constant_like(rows, IMMOBILE) * rows[row, MODE_SCALE, k]
        nothing = zero * rows[row, MODE_ACCELERATION, k]
        rows[row, MODE_INVERSE, k] = select(held & moves, one + nothing, nothing)
    for row in range(m):
        held, nothing = rows[row, MODE_INVERSE, k] > zero, zero * rows[row, MODE_ACCELERATION, k]
        for column in range(m):
            E[row, column, k] = nothing
            if any_lane(held):
                both = held & (rows[column, MODE_INVERSE, k] > zero)
                E[row, column, k] = select(both, response_of_force(row, column, contacts, modes, k), nothing)
            A[row, column, k] = E[row, column, k]
        extra = constant_like(rows, REGULARISATION) * rows[row, MODE_SCALE, k]
        A[row, row, k] = select(held, A[row, row, k] + extra, one + nothing)
    for c in range(m):
        held = rows[c, MODE_INVERSE, k] > zero
        rows[c, MODE_INVERSE, k] = select(held, one / A[c, c, k], zero * A[c, c, k])
        if any_lane(held):
            for row in range(c + 1, m):
                factor = A[row, c, k]
                if any_lane(factor != zero):
                    factor = factor * rows[c, MODE_INVERSE, k]
                    A[row, c, k] = factor
                    for column in range(c + 1, m):
                        A[row, column, k] = A[row, column, k] - factor * A[c, column, k]


@kernel
def response_of_force(row, column, contacts, modes, k):
    """Return the acceleration of a row due to a unit force of an active constraint and the friction that it causes."""
    rows, W = modes.rows, contacts.matrix
    total, mu = W[row, column, k], rows[column, MODE_FRICTION, k]
    if any_lane(mu > constant_like(rows, 0.0)):
        slides = rows[column + 1, MODE, k] == constant_like(rows, SLIDING)
        slope = W[row, column + 1, k] * rows[column + 1, MODE_HEADING, k]
        slope = slope + W[row, column + 2, k] * rows[column + 2, MODE_HEADING, k]
        total = total - select(slides, mu * slope, mu - mu)
    return total


@kernel
def solve_held_rows(modes, k):
    """Replace accelerations in MODE_RIGHT by the forces of active constraints that cause them, with one refinement.

    MODE_RIGHT must be zero for all rows that are not active constraints.
    """
    rows, E, m = modes.rows, modes.matrix, modes.rows.shape[0]
    for row in range(m):
        rows[row, MODE_REST, k] = rows[row, MODE_RIGHT, k]
    substitute(modes, k)
    for row in range(m):
        rest = rows[row, MODE_REST, k]
        for column in range(m):
            rest = rest - E[row, column, k] * rows[column, MODE_RIGHT, k]
        rows[row, MODE_REST, k] = rest
    for row in range(m):
        rows[row, MODE_SOLUTION, k] = rows[row, MODE_RIGHT, k]
        rows[row, MODE_RIGHT, k] = rows[row, MODE_REST, k]
    substitute(modes, k)
    for row in range(m):
        rows[row, MODE_RIGHT, k] = rows[row, MODE_RIGHT, k] + rows[row, MODE_SOLUTION, k]


@kernel
def is_held_by_other_rows(row, contacts, modes, lane):
    """Whether active constraints fix the joint or contact of another row, so that its own force does not accelerate it.

    Reads the factors of `solve_forces`; overwrites MODE_RIGHT, MODE_REST and MODE_SOLUTION.
    """
    rows, W = modes.rows, contacts.matrix
    for other in range(rows.shape[0]):
        held = rows[other, MODE_INVERSE, lane] != 0.0
        rows[other, MODE_RIGHT, lane] = -W[other, row, lane] if held else 0.0
    solve_held_rows(modes, lane)
    total = W[row, row, lane]
    for other in range(rows.shape[0]):
        if rows[other, MODE_INVERSE, lane] != 0.0:
            total += response_of_force(row, other, contacts, modes, lane) * rows[other, MODE_RIGHT, lane]
    return abs(total) <= AT_REST * W[row, row, lane]


@kernel
def substitute(modes, k):
    """Replace MODE_RIGHT by the solution of the factored system; zero for rows that are not active constraints."""
    rows, A, m = modes.rows, modes.factors, modes.rows.shape[0]
    for row in range(m):
        x = rows[row, MODE_RIGHT, k]
        for column in range(row):
            x = x - A[row, column, k] * rows[column, MODE_RIGHT, k]
        rows[row, MODE_RIGHT, k] = x
    for row in range(m - 1, -1, -1):
        x = rows[row, MODE_RIGHT, k]
        for column in range(row + 1, m):
            x = x - A[row, column, k] * rows[column, MODE_RIGHT, k]
        rows[row, MODE_RIGHT, k] = x * rows[row, MODE_INVERSE, k]


@kernel
def add_friction_of_contacts(contacts, modes, column, k):
    """Set the forces of the tangents of sliding contacts, in a column of the rows, to - mu p_n times their heading."""
    rows, table = modes.rows, contacts.table
    for e in range(table.shape[1]):
        if has_tangents(e, table):
            row = table[ELEMENT_ROW, e]
            slides = rows[row + 1, MODE, k] == constant_like(rows, SLIDING)
            size = rows[row, MODE_FRICTION, k] * rows[row, column, k]
            for tangent in range(row + 1, row + 3):
                p = rows[tangent, column, k]
                rows[tangent, column, k] = select(slides, -size * rows[tangent, MODE_HEADING, k], p)


@kernel
def correct_held_rows(contacts, modes, column, changes, k):
    """Compute changes (n, lanes) of velocities that make a column of `contacts.rows` zero in active constraints."""
    rows, zero = modes.rows, constant_like(modes.rows, 0.0)
    for row in range(rows.shape[0]):
        value = contacts.rows[row, column, k]
        rows[row, MODE_RIGHT, k] = select(rows[row, MODE_INVERSE, k] != zero, -value, zero * value)
    solve_held_rows(modes, k)
    add_friction_of_contacts(contacts, modes, MODE_RIGHT, k)  # as in `response_of_force`
    for i in range(changes.shape[0]):
        changes[i, k] = zero * rows[0, MODE_RIGHT, k]
    add_responses(contacts.responses, rows, MODE_RIGHT, changes, k)
