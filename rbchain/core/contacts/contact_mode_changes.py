"""Changes of the modes of single elements: open, closed, sticking and sliding.

`contact_layout` describes the arguments. Forces p are in N or N m, in one lane.
"""

import math

from ...compiling.jit import kernel
from . import contact_layout as contact, element_layout as element, mode_layout as mode
from .contact_layout import has_tangents

# Relative tolerance of the signs of forces and accelerations.
SIGN_TOLERANCE = 1e-10


@kernel
def motion_of_row(row, contacts, modes, lane):
    """Return the acceleration a + W p of a row under the forces p, m/s^2 or rad/s^2."""
    total = modes.rows[row, mode.ACCELERATION, lane]
    for column in range(modes.rows.shape[0]):
        total = total + contacts.matrix[row, column, lane] * modes.rows[column, mode.FORCE, lane]
    return total


@kernel
def release_element(e, contacts, modes, numbers, tolerance, lane):
    """Open an active constraint if it has no force, and let it slide if its friction is at the limit.

    Forces of stops and contacts up to `tolerance`, N or N m, count as zero.
    """
    rows, table, row, at = (
        modes.rows,
        contacts.table,
        contacts.table[element.ROW, e],
        contacts.table[element.NUMBERS, e],
    )
    p, kind = rows[row, mode.FORCE, lane], table[element.KIND, e]
    if rows[row, mode.MODE, lane] != mode.HELD:
        return
    if kind == element.FRICTION:
        if abs(p) >= friction_limit(p, at, numbers, lane):
            start_sliding(row, p, modes, lane)
    elif not p > tolerance:
        open_row(e, contacts, modes, lane)
    elif has_tangents(e, table) and rows[row + 1, mode.MODE, lane] == mode.HELD:
        is_at_limit = tangent_force(row, modes, lane) >= rows[row, mode.FRICTION, lane] * p - tolerance
        if is_at_limit:
            start_sliding_of_contact(row, modes, lane)


@kernel
def friction_limit(p, at, numbers, lane):
    """Return the largest friction of a joint that sticks, on the side of the force p, N m or N."""
    return (
        numbers[at + element.FRICTION_STATIC_BACKWARD, lane]
        if p > 0.0
        else numbers[at + element.FRICTION_STATIC_FORWARD, lane]
    )


@kernel
def tangent_force(row, modes, lane):
    """Return the size of the friction of a contact, N."""
    p, r = modes.rows[row + 1, mode.FORCE, lane], modes.rows[row + 2, mode.FORCE, lane]
    return math.sqrt(p * p + r * r)


@kernel
def start_sliding(row, p, modes, lane):
    """Let the friction of a joint slide against the force p."""
    modes.rows[row, mode.MODE, lane] = mode.SLIDING
    modes.rows[row, mode.DIRECTION, lane] = -1.0 if p > 0.0 else 1.0


@kernel
def start_sliding_of_contact(row, modes, lane):
    """Let a contact slide against its friction."""
    rows, size = modes.rows, tangent_force(row, modes, lane)
    for tangent in range(row + 1, row + 3):
        rows[tangent, mode.MODE, lane] = mode.SLIDING if size > 0.0 else mode.OPEN
        if size > 0.0:
            rows[tangent, mode.DIRECTION, lane] = -rows[tangent, mode.FORCE, lane] / size


@kernel
def open_row(e, contacts, modes, lane):
    """Open a stop or a contact."""
    row = contacts.table[element.ROW, e]
    for r in range(row, row + contacts.table[element.SIZE, e]):
        modes.rows[r, mode.MODE, lane] = mode.OPEN


@kernel
def close_row(e, contacts, modes, rest, lane):
    """Close a stop or a contact. Its friction sticks if its velocity is at most `rest`, m/s, and otherwise slides."""
    row, rows = contacts.table[element.ROW, e], modes.rows
    rows[row, mode.MODE, lane] = mode.HELD
    if not has_tangents(e, contacts.table):
        return
    a, b = contacts.rows[row + 1, contact.VELOCITY, lane], contacts.rows[row + 2, contact.VELOCITY, lane]
    speed, current = math.sqrt(a * a + b * b), mode.OPEN
    if rows[row, mode.FRICTION, lane] > 0.0:
        current = mode.SLIDING if speed > rest else mode.HELD
    for tangent in range(row + 1, row + 3):
        rows[tangent, mode.MODE, lane] = current
        rows[tangent, mode.CAN_CHANGE, lane] = 1.0 if current == mode.HELD else 0.0
        if current == mode.SLIDING:
            rows[tangent, mode.DIRECTION, lane] = contacts.rows[tangent, contact.VELOCITY, lane] / speed


@kernel
def change_worst_mode(contacts, modes, numbers, rest, lane):
    """Change the mode of the row that violates its conditions most, and return whether there is such a row."""
    rows, table = modes.rows, contacts.table
    forces, accelerations = 0.0, 0.0
    for row in range(rows.shape[0]):
        forces = max(forces, abs(rows[row, mode.FORCE, lane]))
        accelerations = max(accelerations, abs(rows[row, mode.ACCELERATION, lane]))
    worst, worst_element = SIGN_TOLERANCE, -1
    for e in range(table.shape[1]):
        violation = violation_of_element(e, contacts, modes, numbers, forces, accelerations, lane)
        if violation > worst:
            worst, worst_element = violation, e
    if worst_element < 0:
        return False
    row, kind = table[element.ROW, worst_element], table[element.KIND, worst_element]
    if kind == element.FRICTION:
        if rows[row, mode.MODE, lane] == mode.HELD:
            start_sliding(row, rows[row, mode.FORCE, lane], modes, lane)
        else:
            rows[row, mode.MODE, lane] = mode.HELD
    elif rows[row, mode.MODE, lane] == mode.OPEN:
        close_row(worst_element, contacts, modes, rest, lane)
    elif rows[row, mode.FORCE, lane] < -SIGN_TOLERANCE * forces:
        open_row(worst_element, contacts, modes, lane)
    elif rows[row + 1, mode.MODE, lane] == mode.HELD:
        start_sliding_of_contact(row, modes, lane)
    else:
        rows[row + 1, mode.MODE, lane] = rows[row + 2, mode.MODE, lane] = mode.HELD
    return True


@kernel
def violation_of_element(e, contacts, modes, numbers, forces, accelerations, lane):
    """Return the violation of the conditions of an element's mode, relative to the largest force or acceleration.

    `forces` is the largest absolute force, N or N m, and `accelerations` the largest acceleration, m/s^2 or rad/s^2.
    """
    rows, table = modes.rows, contacts.table
    row, at, kind = table[element.ROW, e], table[element.NUMBERS, e], table[element.KIND, e]
    p, current = rows[row, mode.FORCE, lane], rows[row, mode.MODE, lane]
    can_change = rows[row, mode.CAN_CHANGE, lane] > 0.0
    motion = 0.0
    if can_change and current != mode.HELD and accelerations > 0.0:
        motion = motion_of_row(row, contacts, modes, lane) / accelerations
    if kind == element.FRICTION:
        if current == mode.HELD:
            return (abs(p) - friction_limit(p, at, numbers, lane)) / forces if forces > 0.0 else 0.0
        return -motion * rows[row, mode.DIRECTION, lane] if can_change else 0.0
    if current == mode.OPEN:
        return -motion
    if p < -SIGN_TOLERANCE * forces or not has_tangents(e, table):
        return -p / forces if forces > 0.0 else 0.0
    if rows[row + 1, mode.MODE, lane] == mode.HELD:
        return (tangent_force(row, modes, lane) - rows[row, mode.FRICTION, lane] * p) / forces if forces > 0.0 else 0.0
    starts = rows[row + 1, mode.MODE, lane] == mode.SLIDING and rows[row + 1, mode.CAN_CHANGE, lane] > 0.0
    return (
        -motion_along_direction(row, contacts, modes, lane) / accelerations if starts and accelerations > 0.0 else 0.0
    )


@kernel
def motion_along_direction(row, contacts, modes, lane):
    """Return the acceleration of a contact along its direction of sliding, m/s^2."""
    total = motion_of_row(row + 1, contacts, modes, lane) * modes.rows[row + 1, mode.DIRECTION, lane]
    return total + motion_of_row(row + 2, contacts, modes, lane) * modes.rows[row + 2, mode.DIRECTION, lane]
