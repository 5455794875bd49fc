"""The choice of the modes of dry friction, stops and contacts in one lane, from the accelerations.

This is a complementarity problem: a closed gap has either a force or an acceleration. Friction is at its limit, against
the acceleration, or the row has no acceleration.

At first, all rows that may change are active constraints (mode HELD). Then one row after the other changes its mode:
always the row that violates its conditions most, with the forces of `contact_modes.solve_forces`. If this does not end,
`contact_solver` computes another first choice. This may fail, because its sweeps may diverge. Also, contacts that
depend on each other have many solutions, and `solve_forces` computes only one of them for given modes. As a last
resort, solve with a larger diagonal and reduce it step by step (a homotopy), down to the diagonal of `solve_forces`.

A ball that rolls in a groove has more rows at rest than degrees of freedom: see `find_forces_within_limits`. With
sliding contacts there may be no solution (the paradox of Painleve). An impulse then has to change the velocities.

Source: Pfeiffer and Glocker (1996), *Multibody Dynamics with Unilateral Contacts*, chapters 5 and 8.

`contact_layout` describes the arguments. `rest` is the speed up to which a contact is at rest, m/s.
"""

import math

from ...compiling.jit import kernel, routine
from . import contact_layout as contact, element_layout as element, mode_layout as mode
from .contact_layout import has_tangents
from .contact_mode_changes import (
    SIGN_TOLERANCE,
    change_worst_mode,
    close_row,
    friction_limit,
    motion_of_row,
    release_element,
    start_sliding_of_contact,
    tangent_force,
)
from .contact_modes import REGULARIZATION, prepare_element, solve_forces
from .contact_newton import eliminate_rows, least_proximal, linearize
from .contact_residuals import add_to_velocities, apply_change, largest_missing_velocity, largest_residual
from .contact_solver import solve_contacts

MAX_ALIGNMENTS, MAX_TURNS, TURN_TOLERANCE = 40, 50, 1e-9
# The tolerance after the last choice: round-off changes the directions of contacts that depend on each other by up to
# this angle, rad.
LOOSE_TOLERANCE = 1e-6
# Factors that reduce the diagonal, and the number of Newton steps for each value of the diagonal.
LARGEST_REDUCTION, SMALLEST_REDUCTION, MAX_NEWTON_STEPS = 0.1, 0.97, 12
# A contact that starts to slide counts as idle if its acceleration is below this fraction of the largest acceleration.
IDLE = 1e-8
IS_IDLE = 2.0  # mode.CAN_CHANGE of such a contact, while all contacts are compared
# Fractions of the limits of friction: forces of rows that depend on each other are sought within these limits.
PARTS_OF_FRICTION = (0.25, 0.75, 0.95)
MAX_PROJECTIONS = 40
# Tolerance of the solver that computes another first choice, relative to the largest acceleration.
SOLVER_TOLERANCE = 1e-13
# In this solver, the acceleration of sliding contacts along their direction, as a multiple of the largest acceleration.
SLIDING_ACCELERATION = 1e10
# The bound of the velocity, or acceleration, of a row without a contact.
NO_BOUND = -1e30


@routine
def choose_modes(contacts, modes, numbers, rest, lane):
    """Choose the modes of the rows with mode.CAN_CHANGE in one lane; return whether forces and accelerations fit them.

    In the initial modes, all of these rows must be active constraints. Velocities of tangents below `rest`, m/s, count
    as zero.
    """
    if not choose_modes_that_fit(contacts, modes, numbers, rest, lane):
        return False
    if not hold_idle_contacts(contacts, modes, lane) or find_forces_within_limits(contacts, modes, numbers, rest, lane):
        return True
    for row in range(modes.rows.shape[0]):
        modes.rows[row, mode.REFERENCE, lane] = 0.0
    hold_candidates(contacts, modes, rest, lane)
    return choose_modes_that_fit(contacts, modes, numbers, rest, lane)


@routine
def choose_modes_that_fit(contacts, modes, numbers, rest, lane):
    """Choose modes, with up to three first choices; return whether forces and accelerations fit them."""
    if find_modes(contacts, modes, numbers, rest, TURN_TOLERANCE, lane):
        return True
    guess_modes(contacts, modes, numbers, rest, lane)
    if find_modes(contacts, modes, numbers, rest, TURN_TOLERANCE, lane):
        return True
    follow_modes(contacts, modes, numbers, rest, lane)
    return find_modes(contacts, modes, numbers, rest, LOOSE_TOLERANCE, lane)


@kernel
def hold_idle_contacts(contacts, modes, lane):
    """Let contacts stick that start to slide without an acceleration; return whether there are any.

    Other active constraints keep the points of these contacts at rest. The friction of these contacts is at its limit,
    and would leave it at once.
    """
    rows, largest, found = modes.rows, 0.0, False
    for row in range(rows.shape[0]):
        largest = max(largest, abs(rows[row, mode.ACCELERATION, lane]))
    for e in range(contacts.table.shape[1]):
        row = contacts.table[element.ROW, e]
        if not has_tangents(e, contacts.table) or rows[row, mode.MODE, lane] != mode.HELD:
            continue
        if rows[row + 1, mode.CAN_CHANGE, lane] > 0.0 and rows[row + 1, mode.MODE, lane] == mode.SLIDING:
            motion = abs(motion_of_row(row + 1, contacts, modes, lane))
            if motion + abs(motion_of_row(row + 2, contacts, modes, lane)) <= IDLE * largest:
                rows[row + 1, mode.CAN_CHANGE, lane] = rows[row + 2, mode.CAN_CHANGE, lane] = IS_IDLE
                found = True
    for row in range(rows.shape[0]):
        if rows[row, mode.CAN_CHANGE, lane] == IS_IDLE:
            rows[row, mode.MODE, lane], rows[row, mode.CAN_CHANGE, lane] = mode.HELD, 1.0
    return found


@routine
def find_forces_within_limits(contacts, modes, numbers, rest, lane):
    """Find reference forces of active constraints that depend on each other; return whether the modes fit them.

    Many forces cause the same accelerations. Forces within a fraction of the friction limits keep the modes unchanged.
    To find them, alternately project the forces onto these limits, and add the change that restores the accelerations
    (von Neumann's method of alternating projections).
    """
    for part in PARTS_OF_FRICTION:
        for _ in range(MAX_PROJECTIONS):
            for e in range(contacts.table.shape[1]):
                project_forces(e, part, contacts, modes, numbers, lane)
            solve_forces(contacts, modes, numbers, lane)
            if are_within_limits(0.5 * (1.0 + part), contacts, modes, lane):
                return find_modes(contacts, modes, numbers, rest, TURN_TOLERANCE, lane)
    return False


@kernel
def project_forces(e, part, contacts, modes, numbers, lane):
    """Set the reference of an element's active constraints to the forces within `part` of its limits nearest to p."""
    rows, table, row, at = (
        modes.rows,
        contacts.table,
        contacts.table[element.ROW, e],
        contacts.table[element.NUMBERS, e],
    )
    p, kind = rows[row, mode.FORCE, lane], table[element.KIND, e]
    if kind == element.FRICTION:
        limit = part * friction_limit(p, at, numbers, lane)
        rows[row, mode.REFERENCE, lane] = min(max(p, -limit), limit)
        return
    rows[row, mode.REFERENCE, lane] = max(p, 0.0)
    if has_tangents(e, table) and rows[row + 1, mode.MODE, lane] == mode.HELD:
        slope, size = part * rows[row, mode.FRICTION, lane], tangent_force(row, modes, lane)
        if size > slope * p:
            normal = max(p + slope * size, 0.0) / (1.0 + slope * slope)
            rows[row, mode.REFERENCE, lane] = normal
            for tangent in range(row + 1, row + 3):
                rows[tangent, mode.REFERENCE, lane] = slope * normal / size * rows[tangent, mode.FORCE, lane]
        else:
            for tangent in range(row + 1, row + 3):
                rows[tangent, mode.REFERENCE, lane] = rows[tangent, mode.FORCE, lane]


@kernel
def are_within_limits(part, contacts, modes, lane):
    """Whether the forces of all closed stops and contacts are within `part` of their limits."""
    rows, table = modes.rows, contacts.table
    for e in range(table.shape[1]):
        row, kind = table[element.ROW, e], table[element.KIND, e]
        if kind != element.FRICTION and rows[row, mode.MODE, lane] == mode.HELD:
            p = rows[row, mode.FORCE, lane]
            is_held = has_tangents(e, table) and rows[row + 1, mode.MODE, lane] == mode.HELD
            if p < 0.0 or (is_held and tangent_force(row, modes, lane) > part * rows[row, mode.FRICTION, lane] * p):
                return False
    return True


@routine
def find_modes(contacts, modes, numbers, rest, tolerance, lane):
    """Correct the modes and the directions of sliding alternately, and return whether the modes fit the forces.

    `tolerance` is the largest change of a direction, rad.
    """
    for _ in range(MAX_ALIGNMENTS):
        if not correct_modes(contacts, modes, numbers, rest, lane):
            return False
        if align_directions(contacts, modes, numbers, tolerance, lane):
            return True
    return False


@kernel
def correct_modes(contacts, modes, numbers, rest, lane):
    """Change the modes one after the other, until forces and accelerations fit them; return whether they do."""
    for _ in range(4 * modes.rows.shape[0] + 4):
        solve_forces(contacts, modes, numbers, lane)
        if not change_worst_mode(contacts, modes, numbers, rest, lane):
            return True
    return False


@kernel
def align_directions(contacts, modes, numbers, tolerance, lane):
    """Turn the directions of contacts that start to slide to the directions of their accelerations.

    The accelerations depend on the directions. Returns whether the contacts had these directions before, up to a change
    of `tolerance`, rad.
    """
    for turn in range(MAX_TURNS):
        change = 0.0
        for e in range(contacts.table.shape[1]):
            row = contacts.table[element.ROW, e]
            has_friction_rows = has_tangents(e, contacts.table)
            if has_friction_rows and modes.rows[row + 1, mode.MODE, lane] == mode.SLIDING:
                change = max(change, turn_direction(row, contacts, modes, lane))
        if change <= tolerance:
            return turn == 0
        solve_forces(contacts, modes, numbers, lane)
    return False


@kernel
def turn_direction(row, contacts, modes, lane):
    """Turn the direction of a contact that starts to slide towards its acceleration, and return the change."""
    rows, largest = modes.rows, largest_eigenvalue(row, contacts, lane)
    size = rows[row, mode.FRICTION, lane] * rows[row, mode.FORCE, lane]
    if not (rows[row + 1, mode.CAN_CHANGE, lane] > 0.0 and largest > 0.0 and size > 0.0):
        return 0.0
    a = size * rows[row + 1, mode.DIRECTION, lane] + motion_of_row(row + 1, contacts, modes, lane) / largest
    b = size * rows[row + 2, mode.DIRECTION, lane] + motion_of_row(row + 2, contacts, modes, lane) / largest
    norm = math.sqrt(a * a + b * b)
    if not norm > 0.0:
        return 0.0
    change = abs(a / norm - rows[row + 1, mode.DIRECTION, lane]) + abs(b / norm - rows[row + 2, mode.DIRECTION, lane])
    rows[row + 1, mode.DIRECTION, lane] = a / norm
    rows[row + 2, mode.DIRECTION, lane] = b / norm
    return change


@kernel
def largest_eigenvalue(row, contacts, lane):
    """Return the largest eigenvalue of the block of W for the two tangents of a contact, 1/kg."""
    W = contacts.matrix
    a, b, c = W[row + 1, row + 1, lane], W[row + 2, row + 2, lane], W[row + 1, row + 2, lane]
    return 0.5 * (a + b) + math.sqrt(0.25 * (a - b) * (a - b) + c * c)


@routine
def guess_modes(contacts, modes, numbers, rest, lane):
    """Choose modes from the forces of `contact_solver`, with accelerations instead of velocities."""
    rows = modes.rows
    tolerance = prepare_guess(contacts, modes, numbers, rest, lane)
    solve_contacts(contacts, tolerance, lane)
    for row in range(rows.shape[0]):
        rows[row, mode.FORCE, lane] = contacts.rows[row, contact.IMPULSE, lane]
    choose_modes_of_forces(contacts, modes, numbers, lane)
    restore_velocities(contacts, lane)


@kernel
def prepare_guess(contacts, modes, numbers, rest, lane):
    """Set the rows for `contact_solver` and return its tolerance, m/s^2 or rad/s^2."""
    rows, table, scale = modes.rows, contacts.table, 0.0
    for row in range(rows.shape[0]):
        scale = max(scale, abs(rows[row, mode.ACCELERATION, lane]))
        contacts.rows[row, contact.START_VELOCITY, lane] = contacts.rows[row, contact.VELOCITY, lane]
    hold_candidates(contacts, modes, rest, lane)
    for e in range(table.shape[1]):
        prepare_element(e, contacts, modes, numbers, lane)
    for e in range(table.shape[1]):
        set_solver_rows(e, contacts, modes, numbers, SLIDING_ACCELERATION * scale, lane)
    return SOLVER_TOLERANCE * scale


@kernel
def hold_candidates(contacts, modes, rest, lane):
    """Make all rows whose modes follow from forces active constraints."""
    rows, table = modes.rows, contacts.table
    for e in range(table.shape[1]):
        row = table[element.ROW, e]
        if table[element.KIND, e] != element.FRICTION and rows[row, mode.CAN_CHANGE, lane] > 0.0:
            close_row(e, contacts, modes, rest, lane)
        elif rows[row, mode.CAN_CHANGE, lane] > 0.0:
            rows[row, mode.MODE, lane] = mode.HELD


@kernel
def choose_modes_of_forces(contacts, modes, numbers, lane):
    """Choose modes from mode.FORCE, which satisfies the conditions of all rows."""
    rows, table, largest = modes.rows, contacts.table, 0.0
    for row in range(rows.shape[0]):
        largest = max(largest, abs(rows[row, mode.FORCE, lane]))
    for e in range(table.shape[1]):
        release_element(e, contacts, modes, numbers, SIGN_TOLERANCE * largest, lane)


@kernel
def restore_velocities(contacts, lane):
    """Restore the velocities that `prepare_guess` has replaced by accelerations."""
    for row in range(contacts.rows.shape[0]):
        contacts.rows[row, contact.IMPULSE, lane] = 0.0
        contacts.rows[row, contact.VELOCITY, lane] = contacts.rows[row, contact.START_VELOCITY, lane]


@routine
def follow_modes(contacts, modes, numbers, rest, lane):
    """Choose modes from forces with a diagonal added to W, which is reduced in steps from 1 to REGULARIZATION.

    With a large diagonal, the rows hardly depend on each other. Each solution starts from the previous solution. A step
    that fails is repeated with a smaller reduction. The last forces are almost equal to the forces of `solve_forces` in
    the same modes.
    """
    rows, table = modes.rows, contacts.table
    tolerance = prepare_guess(contacts, modes, numbers, rest, lane)
    for row in range(rows.shape[0]):
        rows[row, mode.RIGHT, lane] = contacts.matrix[row, row, lane]
        contacts.rows[row, contact.FREE_VELOCITY, lane] = contacts.rows[row, contact.VELOCITY, lane]
    added, reduction = 1.0 / LARGEST_REDUCTION, LARGEST_REDUCTION
    while added > REGULARIZATION and reduction < SMALLEST_REDUCTION:
        smaller = max(reduction * added, REGULARIZATION)
        if solve_with_diagonal(smaller, contacts, modes, tolerance, lane):
            added, reduction = smaller, max(reduction * reduction, LARGEST_REDUCTION)
        else:
            reduction = math.sqrt(reduction)
    choose_modes_of_forces(contacts, modes, numbers, lane)
    if solve_with_diagonal(0.0, contacts, modes, tolerance, lane):
        for e in range(table.shape[1]):
            row = table[element.ROW, e]
            is_rough = has_tangents(e, table)
            if (
                is_rough
                and rows[row + 1, mode.CAN_CHANGE, lane] > 0.0
                and rows[row + 1, mode.MODE, lane] == mode.SLIDING
            ):
                start_sliding_of_contact(row, modes, lane)
    restore_velocities(contacts, lane)


@routine
def solve_with_diagonal(added, contacts, modes, tolerance, lane):
    """Solve for mode.FORCE by Newton's method, with `added` times mode.SCALE on the diagonal of W; return success.

    Starts from mode.FORCE, and does not change it without success. mode.RIGHT is the diagonal of W. The residual is at
    most `tolerance`, m/s^2 or rad/s^2.
    """
    rows, m = contacts.rows, contacts.rows.shape[0]
    for row in range(m):
        contacts.matrix[row, row, lane] = modes.rows[row, mode.RIGHT, lane] + added * modes.rows[row, mode.SCALE, lane]
        rows[row, contact.IMPULSE, lane] = modes.rows[row, mode.FORCE, lane]
        rows[row, contact.VELOCITY, lane] = rows[row, contact.FREE_VELOCITY, lane]
    for row in range(m):
        add_to_velocities(row, rows[row, contact.IMPULSE, lane], contacts, lane)
    for _ in range(MAX_NEWTON_STEPS):
        if max(largest_residual(contacts, lane), largest_missing_velocity(contacts, lane)) <= tolerance:
            for row in range(m):
                modes.rows[row, mode.FORCE, lane] = rows[row, contact.IMPULSE, lane]
            return True
        eliminate_rows(contacts, linearize(contacts, least_proximal(rows), lane), lane)
        for row in range(m):
            apply_change(row, rows[row, contact.RIGHT, lane], contacts, 1.0, lane)
    return False


@kernel
def set_solver_rows(e, contacts, modes, numbers, sliding, lane):
    """Set the accelerations, the bounds and the limits of the forces of an element for `contact_solver`.

    An acceleration `sliding`, m/s^2, along the direction of a contact that slides fixes the direction of its friction.
    """
    rows, table, row, at = (
        modes.rows,
        contacts.table,
        contacts.table[element.ROW, e],
        contacts.table[element.NUMBERS, e],
    )
    for r in range(row, row + table[element.SIZE, e]):
        slides = r > row and rows[r, mode.MODE, lane] == mode.SLIDING
        along = sliding * rows[r, mode.HEADING, lane] if slides else 0.0
        contacts.rows[r, contact.VELOCITY, lane] = rows[r, mode.ACCELERATION, lane] + along
        for column in (contact.IMPULSE, contact.LOWER, contact.UPPER):
            contacts.rows[r, column, lane] = 0.0
    contacts.rows[row, contact.BOUND, lane] = NO_BOUND if rows[row, mode.MODE, lane] == mode.OPEN else 0.0
    if table[element.KIND, e] == element.FRICTION:
        held, p = rows[row, mode.MODE, lane] == mode.HELD, rows[row, mode.FORCE, lane]
        contacts.rows[row, contact.LOWER, lane] = -numbers[at + element.FRICTION_STATIC_FORWARD, lane] if held else p
        contacts.rows[row, contact.UPPER, lane] = numbers[at + element.FRICTION_STATIC_BACKWARD, lane] if held else p
