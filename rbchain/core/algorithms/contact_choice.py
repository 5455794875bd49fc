"""The choice of the modes of dry friction, stops and contacts in one lane, from the accelerations.

This is a complementarity problem: a closed gap has either a force or an acceleration, and friction is at its limit or
the row has no acceleration. All rows that may change are held at first. The row that violates its conditions most then
changes its mode, one after the other, with the forces that `contact_modes.solve_forces` computes. If this does not end,
projected Gauss-Seidel sweeps give another first choice.

Sources: Pfeiffer and Glocker (1996), *Multibody Dynamics with Unilateral Contacts*, chapter 5; Jourdan, Alart and Jean
(1998), "A Gauss-Seidel like algorithm to solve frictional contact problems".
"""

import math

from ..simd.jit import kernel, routine
from ..tree.contact_layout import (
    CONTACT_VELOCITY,
    ELEMENT_KIND,
    ELEMENT_NUMBERS,
    ELEMENT_ROW,
    FRICTION,
    FRICTION_STATIC_BACKWARD,
    FRICTION_STATIC_FORWARD,
    has_tangents,
    rows_of_element,
)
from .contact_modes import (
    HELD,
    MODE,
    MODE_ACCELERATION,
    MODE_CAN_CHANGE,
    MODE_DIRECTION,
    MODE_FORCE,
    MODE_FRICTION,
    MODE_HEADING,
    OPEN,
    SLIDING,
    prepare_element,
    solve_forces,
)

MAX_SWEEPS, SWEEP_TOLERANCE = 2000, 1e-15
MAX_TURNS, TURN_TOLERANCE = 50, 1e-9
# Relative tolerance of the signs of forces and accelerations.
SIGN_TOLERANCE = 1e-10


@kernel
def motion_of_row(row, contacts, modes, lane):
    """Return a + W p of a row."""
    total = modes.rows[row, MODE_ACCELERATION, lane]
    for column in range(modes.rows.shape[0]):
        total = total + contacts.matrix[row, column, lane] * modes.rows[column, MODE_FORCE, lane]
    return total


@routine
def relax(contacts, modes, numbers, lane):
    """Solve for MODE_FORCE by projected Gauss-Seidel sweeps, with limits of the forces of the held rows.

    Forces of gaps are not negative, and those of friction are between the static limits or in a disc. The motion
    w = a + W p of a row is zero unless its force is at a limit. If the sweeps diverge, all forces are zero. Returns the
    last change of w.

    Source: Jourdan, Alart and Jean (1998), "A Gauss-Seidel like algorithm to solve frictional contact problems".
    """
    rows, table = modes.rows, contacts.table
    scale, change = 0.0, 0.0
    for row in range(rows.shape[0]):
        scale = max(scale, abs(rows[row, MODE_ACCELERATION, lane]))
    for _sweep in range(MAX_SWEEPS):
        change = 0.0
        for e in range(table.shape[1]):
            row = table[ELEMENT_ROW, e]
            before = rows[row, MODE_FORCE, lane]
            if rows[row, MODE, lane] == HELD and contacts.matrix[row, row, lane] > 0.0:
                relax_row(e, contacts, modes, numbers, lane)
                change = max(change, abs(rows[row, MODE_FORCE, lane] - before) * contacts.matrix[row, row, lane])
            if has_tangents(table[ELEMENT_KIND, e]) and rows[row + 1, MODE, lane] == HELD:
                change = max(change, relax_tangents(row, contacts, modes, lane))
        if change <= SWEEP_TOLERANCE * scale or not change < math.inf:
            break
    if not change < math.inf:  # the sweeps diverge, which friction makes possible
        for row in range(rows.shape[0]):
            rows[row, MODE_FORCE, lane] = 0.0
    return change


@kernel
def relax_row(e, contacts, modes, numbers, lane):
    """Update the force of one row: the friction of a joint, a stop, or the normal of a contact."""
    rows, table = modes.rows, contacts.table
    row, at = table[ELEMENT_ROW, e], table[ELEMENT_NUMBERS, e]
    diagonal = contacts.matrix[row, row, lane]
    force = rows[row, MODE_FORCE, lane] - motion_of_row(row, contacts, modes, lane) / diagonal
    if table[ELEMENT_KIND, e] == FRICTION:
        force = max(force, -numbers[at + FRICTION_STATIC_FORWARD, lane])
        rows[row, MODE_FORCE, lane] = min(force, numbers[at + FRICTION_STATIC_BACKWARD, lane])
        return
    rows[row, MODE_FORCE, lane] = max(force, 0.0)
    if has_tangents(table[ELEMENT_KIND, e]) and rows[row + 1, MODE, lane] == SLIDING:
        size = rows[row, MODE_FRICTION, lane] * rows[row, MODE_FORCE, lane]
        for tangent in range(row + 1, row + 3):
            rows[tangent, MODE_FORCE, lane] = -size * rows[tangent, MODE_HEADING, lane]


@kernel
def relax_tangents(row, contacts, modes, lane):
    """Update the forces of the tangents of a contact that may stick, and return the change of w."""
    rows, largest = modes.rows, largest_eigenvalue(row, contacts, lane)
    if not largest > 0.0:
        return 0.0
    p = rows[row + 1, MODE_FORCE, lane] - motion_of_row(row + 1, contacts, modes, lane) / largest
    r = rows[row + 2, MODE_FORCE, lane] - motion_of_row(row + 2, contacts, modes, lane) / largest
    size, radius = math.sqrt(p * p + r * r), rows[row, MODE_FRICTION, lane] * rows[row, MODE_FORCE, lane]
    if size > radius:
        p, r = p * (radius / size), r * (radius / size)
    change = largest * max(abs(p - rows[row + 1, MODE_FORCE, lane]), abs(r - rows[row + 2, MODE_FORCE, lane]))
    rows[row + 1, MODE_FORCE, lane] = p
    rows[row + 2, MODE_FORCE, lane] = r
    return change


@routine
def choose_modes(contacts, modes, numbers, rest, lane):
    """Choose the modes of the rows with MODE_CAN_CHANGE in one lane, so that forces and accelerations fit them.

    Starts from modes in which all of these rows are held. Velocities of tangents below `rest` count as zero.
    """
    if not correct_modes(contacts, modes, numbers, rest, lane):
        guess_modes(contacts, modes, numbers, rest, lane)
        correct_modes(contacts, modes, numbers, rest, lane)
    align_directions(contacts, modes, numbers, lane)
    correct_modes(contacts, modes, numbers, rest, lane)


@kernel
def correct_modes(contacts, modes, numbers, rest, lane):
    """Change the modes one after the other, until forces and accelerations fit them; return whether they do."""
    for _ in range(4 * modes.rows.shape[0] + 4):
        solve_forces(contacts, modes, numbers, lane)
        if not change_worst_mode(contacts, modes, numbers, rest, lane):
            return True
    return False


@kernel
def align_directions(contacts, modes, numbers, lane):
    """Turn the directions of contacts that start to slide to those of their accelerations, which depend on them."""
    for _ in range(MAX_TURNS):
        change = 0.0
        for e in range(contacts.table.shape[1]):
            row = contacts.table[ELEMENT_ROW, e]
            is_sphere = has_tangents(contacts.table[ELEMENT_KIND, e])
            if is_sphere and modes.rows[row + 1, MODE, lane] == SLIDING:
                change = max(change, turn_direction(row, contacts, modes, lane))
        if change <= TURN_TOLERANCE:
            break
        solve_forces(contacts, modes, numbers, lane)


@kernel
def turn_direction(row, contacts, modes, lane):
    """Turn the direction of a contact that starts to slide towards its acceleration, and return the change."""
    rows, largest = modes.rows, largest_eigenvalue(row, contacts, lane)
    size = rows[row, MODE_FRICTION, lane] * rows[row, MODE_FORCE, lane]
    if not (rows[row + 1, MODE_CAN_CHANGE, lane] > 0.0 and largest > 0.0 and size > 0.0):
        return 0.0
    a = size * rows[row + 1, MODE_DIRECTION, lane] + motion_of_row(row + 1, contacts, modes, lane) / largest
    b = size * rows[row + 2, MODE_DIRECTION, lane] + motion_of_row(row + 2, contacts, modes, lane) / largest
    norm = math.sqrt(a * a + b * b)
    if not norm > 0.0:
        return 0.0
    change = abs(a / norm - rows[row + 1, MODE_DIRECTION, lane]) + abs(b / norm - rows[row + 2, MODE_DIRECTION, lane])
    rows[row + 1, MODE_DIRECTION, lane] = a / norm
    rows[row + 2, MODE_DIRECTION, lane] = b / norm
    return change


@kernel
def largest_eigenvalue(row, contacts, lane):
    """Return the largest eigenvalue of W of the tangents of a contact."""
    W = contacts.matrix
    a, b, c = W[row + 1, row + 1, lane], W[row + 2, row + 2, lane], W[row + 1, row + 2, lane]
    return 0.5 * (a + b) + math.sqrt(0.25 * (a - b) * (a - b) + c * c)


@kernel
def guess_modes(contacts, modes, numbers, rest, lane):
    """Choose modes from the forces of sweeps, which may be inaccurate."""
    rows, table = modes.rows, contacts.table
    for e in range(table.shape[1]):
        row = table[ELEMENT_ROW, e]
        if table[ELEMENT_KIND, e] != FRICTION and rows[row, MODE_CAN_CHANGE, lane] > 0.0:
            close_row(e, contacts, modes, rest, lane)
        elif rows[row, MODE_CAN_CHANGE, lane] > 0.0:
            rows[row, MODE, lane] = HELD
        prepare_element(e, contacts, modes, numbers, lane)
    relax(contacts, modes, numbers, lane)
    largest = 0.0
    for row in range(rows.shape[0]):
        largest = max(largest, abs(rows[row, MODE_FORCE, lane]))
    for e in range(table.shape[1]):
        row, at = table[ELEMENT_ROW, e], table[ELEMENT_NUMBERS, e]
        p = rows[row, MODE_FORCE, lane]
        if rows[row, MODE, lane] != HELD:
            continue
        if table[ELEMENT_KIND, e] == FRICTION:
            if abs(p) >= friction_limit(p, at, numbers, lane):
                start_sliding(row, p, modes, lane)
        elif not p > SIGN_TOLERANCE * largest:
            open_row(e, contacts, modes, lane)
        elif has_tangents(table[ELEMENT_KIND, e]) and rows[row + 1, MODE, lane] == HELD:
            is_at_limit = tangent_force(row, modes, lane) >= rows[row, MODE_FRICTION, lane] * p
            if is_at_limit:
                start_sliding_of_contact(row, modes, lane)


@kernel
def friction_limit(p, at, numbers, lane):
    """Return the largest friction of a joint that sticks, on the side of the force p."""
    return numbers[at + FRICTION_STATIC_BACKWARD, lane] if p > 0.0 else numbers[at + FRICTION_STATIC_FORWARD, lane]


@kernel
def tangent_force(row, modes, lane):
    """Return the size of the friction of a contact."""
    p, r = modes.rows[row + 1, MODE_FORCE, lane], modes.rows[row + 2, MODE_FORCE, lane]
    return math.sqrt(p * p + r * r)


@kernel
def start_sliding(row, p, modes, lane):
    """Let the friction of a joint slide against the force p."""
    modes.rows[row, MODE, lane] = SLIDING
    modes.rows[row, MODE_DIRECTION, lane] = -1.0 if p > 0.0 else 1.0


@kernel
def start_sliding_of_contact(row, modes, lane):
    """Let a contact slide against its friction."""
    rows, size = modes.rows, tangent_force(row, modes, lane)
    for tangent in range(row + 1, row + 3):
        rows[tangent, MODE, lane] = SLIDING if size > 0.0 else OPEN
        if size > 0.0:
            rows[tangent, MODE_DIRECTION, lane] = -rows[tangent, MODE_FORCE, lane] / size


@kernel
def open_row(e, contacts, modes, lane):
    """Open a stop or a contact."""
    row = contacts.table[ELEMENT_ROW, e]
    for r in range(row, row + rows_of_element(e, contacts.table)):
        modes.rows[r, MODE, lane] = OPEN


@kernel
def close_row(e, contacts, modes, rest, lane):
    """Close a stop or a contact, whose friction sticks if its velocity is at most `rest`, and else slides."""
    row, rows = contacts.table[ELEMENT_ROW, e], modes.rows
    rows[row, MODE, lane] = HELD
    if not has_tangents(contacts.table[ELEMENT_KIND, e]):
        return
    a, b = contacts.rows[row + 1, CONTACT_VELOCITY, lane], contacts.rows[row + 2, CONTACT_VELOCITY, lane]
    speed, mode = math.sqrt(a * a + b * b), OPEN
    if rows[row, MODE_FRICTION, lane] > 0.0:
        mode = SLIDING if speed > rest else HELD
    for tangent in range(row + 1, row + 3):
        rows[tangent, MODE, lane] = mode
        rows[tangent, MODE_CAN_CHANGE, lane] = 1.0 if mode == HELD else 0.0
        if mode == SLIDING:
            rows[tangent, MODE_DIRECTION, lane] = contacts.rows[tangent, CONTACT_VELOCITY, lane] / speed


@kernel
def change_worst_mode(contacts, modes, numbers, rest, lane):
    """Change the mode of the row that violates its conditions most, and return whether there is such a row."""
    rows, table = modes.rows, contacts.table
    forces, accelerations = 0.0, 0.0
    for row in range(rows.shape[0]):
        forces = max(forces, abs(rows[row, MODE_FORCE, lane]))
        accelerations = max(accelerations, abs(rows[row, MODE_ACCELERATION, lane]))
    worst, element = SIGN_TOLERANCE, -1
    for e in range(table.shape[1]):
        violation = violation_of_element(e, contacts, modes, numbers, forces, accelerations, lane)
        if violation > worst:
            worst, element = violation, e
    if element < 0:
        return False
    row, kind = table[ELEMENT_ROW, element], table[ELEMENT_KIND, element]
    if kind == FRICTION:
        if rows[row, MODE, lane] == HELD:
            start_sliding(row, rows[row, MODE_FORCE, lane], modes, lane)
        else:
            rows[row, MODE, lane] = HELD
    elif rows[row, MODE, lane] == OPEN:
        close_row(element, contacts, modes, rest, lane)
    elif rows[row, MODE_FORCE, lane] < -SIGN_TOLERANCE * forces:
        open_row(element, contacts, modes, lane)
    else:
        start_sliding_of_contact(row, modes, lane)
    return True


@kernel
def violation_of_element(e, contacts, modes, numbers, forces, accelerations, lane):
    """Return by how much an element violates the conditions of its mode, relative to the largest number of all rows."""
    rows, table = modes.rows, contacts.table
    row, at, kind = table[ELEMENT_ROW, e], table[ELEMENT_NUMBERS, e], table[ELEMENT_KIND, e]
    p, mode = rows[row, MODE_FORCE, lane], rows[row, MODE, lane]
    can_change = rows[row, MODE_CAN_CHANGE, lane] > 0.0
    motion = 0.0
    if can_change and mode != HELD and accelerations > 0.0:
        motion = motion_of_row(row, contacts, modes, lane) / accelerations
    if kind == FRICTION:
        if mode == HELD:
            return (abs(p) - friction_limit(p, at, numbers, lane)) / forces if forces > 0.0 else 0.0
        return -motion * rows[row, MODE_DIRECTION, lane] if can_change else 0.0
    if mode == OPEN:
        return -motion
    if p < -SIGN_TOLERANCE * forces or not has_tangents(kind):
        return -p / forces if forces > 0.0 else 0.0
    if rows[row + 1, MODE, lane] == HELD:
        return (tangent_force(row, modes, lane) - rows[row, MODE_FRICTION, lane] * p) / forces if forces > 0.0 else 0.0
    return 0.0
