"""The search for contacts within a step: no accepted step passes over a gap that closes and opens again.

A gap g is a function of the positions, which are polynomials of the fraction of the step. An interval
of the step from a to b, of length s, is free if one of three lower bounds of g is not negative:

    way        (g_a + g_b - V s) / 2                                      V, A: bounds of speed and acceleration
    tangents   g_a + g_a' x - A x^2 / 2, and the same from the other end
    cubic      the cubic polynomial with g and g' of both ends of each half, minus its error

The error of the cubic polynomial of the whole interval in the middle is 16 times the error of the cubics of the halves.
This estimate is used only in intervals in which g has no extremes that the three points do not show. There, bodies turn
by less than RESOLVED rad, and the points of a contact move so little that its normal turns by less than that. Intervals
that are not free are halved, from the start of the step to its end, until all are free or a gap is found to be closed.
"""

import math

from ...compiling.jit import kernel, only_if, routine
from ..contacts import contact_layout as contact, element_layout as element, mode_layout as mode
from ..contacts.contact_layout import is_contact
from ..contacts.contact_modes import closed_gap
from ..contacts.contact_rates import has_contact_modes
from ..contacts.contact_rows import gap_of_element, rate_of_gap
from ..contacts.contact_shapes import lengths_of_contact
from ..lanes.lanes import constant_like
from ..methods.adaptive_methods import polynomial_of_row
from ..sample import control_layout as controls, tally_layout as tallies
from ..sample.status import RUNNING
from ..tree.kinematics import move_dof, place_dof, tangents_of_rates
from ..tree.layout import POSING_FREE, POSING_SPHERICAL
from .motion_bounds import store_bounds_of_gap

RESOLVED = 0.5  # rad
# A closed gap ends the search when the interval is shorter than this fraction of the step.
SHORT_INTERVAL = 1.0 / 64.0
# After this number of intervals, the step is shortened to half of the part that is free.
MAX_INTERVALS = 400


@only_if(has_contact_modes)
@routine
def find_contacts(block, stepper, tableau, k):
    """Set FLAG_CONTACT of each lane to a fraction of its step after which a gap is closed; 1 if there is none.

    No gap closes in the part of the step that is at most SHORT_INTERVAL shorter. Overwrites R, LEVER, V and POSITION.
    """
    actions = block.loads.actions
    table, modes = actions.contacts.table, actions.modes
    for e in range(table.shape[1]):
        if table[element.KIND, e] != element.FRICTION:
            store_bounds_of_gap(e, block, stepper, tableau, k)
    searching = 0
    for lane in range(stepper.y.shape[1]):
        searching += start_search(block, stepper, lane)
    if searching == 0:
        return
    evaluate_gaps(block, stepper, tableau, mode.GAP_START, k)
    while searching > 0:
        place_lanes(modes, 0.5)
        evaluate_gaps(block, stepper, tableau, mode.GAP_MIDDLE, k)
        place_lanes(modes, 1.0)
        evaluate_gaps(block, stepper, tableau, mode.GAP_END, k)
        searching = 0
        for lane in range(stepper.y.shape[1]):
            if modes.flags[mode.FLAG_WIDTH, lane] > 0.0:
                judge_interval(actions, lane)
            searching += int(modes.flags[mode.FLAG_WIDTH, lane] > 0.0)


@kernel
def start_search(block, stepper, lane):
    """Prepare the search in a lane, and return 1 if a gap may close within the step."""
    contacts, modes, control = block.loads.actions.contacts, block.loads.actions.modes, stepper.control
    table, flags, is_needed = contacts.table, modes.flags, False
    flags[mode.FLAG_CONTACT, lane] = 1.0
    flags[mode.FLAG_FREE, lane] = flags[mode.FLAG_PLACE, lane] = flags[mode.FLAG_WIDTH, lane] = flags[
        mode.FLAG_TRIALS, lane
    ] = 0.0
    if not (float(control[controls.ERROR, lane]) <= 1.0 and float(control[controls.H, lane]) > 0.0):
        return 0
    if stepper.tally[tallies.STATUS, lane] != RUNNING:
        return 0
    for e in range(table.shape[1]):
        row = table[element.ROW, e]
        if table[element.KIND, e] != element.FRICTION and modes.rows[row, mode.MODE, lane] == mode.OPEN:
            start, end = modes.rows[row, mode.WATCH_START, lane], contacts.rows[row, contact.GAP, lane]
            lowest = 0.5 * (start + end - modes.rows[row, mode.SPEED, lane])
            is_needed = is_needed or not lowest >= min(start, 0.0) - closed_gap(row, modes, lane)
    flags[mode.FLAG_WIDTH, lane] = 1.0 if is_needed else 0.0
    return 1 if is_needed else 0


@kernel
def place_lanes(modes, fraction):
    """Set the place at which the gaps are evaluated to a fraction of the interval of each lane."""
    flags = modes.flags
    for lane in range(flags.shape[1]):
        flags[mode.FLAG_PLACE, lane] = flags[mode.FLAG_FREE, lane] + fraction * flags[mode.FLAG_WIDTH, lane]


@routine
def evaluate_gaps(block, stepper, tableau, column, k):
    """Compute the gaps after the fraction FLAG_PLACE of the step, and their rates in the next column of the rows.

    Writes `ContactModes.rows`: a gap is in m or rad, and its rate in m or rad per step. Overwrites `change`, `block.q`
    and `block.qd`, which is then the velocity in rad or m per step.
    """
    actions, model, work, q, v = block.loads.actions, block.model, block.work, block.q, block.qd
    table, rows, numbers, rate = actions.contacts.table, actions.modes.rows, actions.numbers, stepper.change
    y, y_new, h, x = stepper.y, stepper.y_new, stepper.control[controls.H, k], actions.modes.flags[mode.FLAG_PLACE, k]
    two = constant_like(y, 2.0)
    three, four = two + constant_like(y, 1.0), two + two
    for j in range(q.shape[0]):
        a, b, c, d = polynomial_of_row(tableau, y, y_new, h, stepper.rates, j, k)
        q[j, k] = y[j, k] + x * (a + x * (b + x * (c + x * d)))
        rate[j, k] = a + x * (two * b + x * (three * c + x * (four * d)))
    for i in range(model.parent.shape[0]):
        if model.posing[i] == POSING_FREE:
            scale_quaternion(model.coordinate[i] + 3, q, rate, k)
        elif model.posing[i] == POSING_SPHERICAL:
            scale_quaternion(model.coordinate[i], q, rate, k)
    tangents_of_rates(model, q, rate, v, k)
    for i in range(model.parent.shape[0]):
        move_dof(i, model, q, v, work, k)
        place_dof(i, model, work, k)
    for e in range(table.shape[1]):
        if table[element.KIND, e] != element.FRICTION:
            row = table[element.ROW, e]
            rows[row, column, k] = gap_of_element(e, model, actions.contacts, q, numbers, work, k)
            rows[row, column + 1, k] = rate_of_gap(e, model, actions.contacts, v, numbers, work, k)


@kernel
def scale_quaternion(at, q, rate, k):
    """Divide a quaternion and its rate by its length, so that its angular velocity follows from them.

    It is in rows `at` to at + 3 of q (nq, lanes), and its change per step in the same rows of `rate` (rows, lanes).
    """
    total = q[at, k] * q[at, k]
    for j in range(at + 1, at + 4):
        total = total + q[j, k] * q[j, k]
    size = math.sqrt(total)
    for j in range(at, at + 4):
        q[j, k] = q[j, k] / size
        rate[j, k] = rate[j, k] / size


@kernel
def judge_interval(actions, lane):
    """Move a lane to its next interval: the one after this one if it is free, else the first half of this one.

    FLAG_WIDTH is zero if the search has ended.
    """
    contacts, modes = actions.contacts, actions.modes
    flags, table, rows = modes.flags, contacts.table, modes.rows
    free, width, is_free, closed = float(flags[mode.FLAG_FREE, lane]), float(flags[mode.FLAG_WIDTH, lane]), True, 2.0
    for e in range(table.shape[1]):
        row = table[element.ROW, e]
        if table[element.KIND, e] == element.FRICTION or rows[row, mode.MODE, lane] != mode.OPEN:
            continue
        slack = float(closed_gap(row, modes, lane))
        lowest = min(float(rows[row, mode.WATCH_START, lane]), 0.0) - slack
        if rows[row, mode.GAP_MIDDLE, lane] < lowest:
            closed = min(closed, 0.5)
        elif rows[row, mode.GAP_END, lane] < lowest:
            closed = min(closed, 1.0)
        elif is_free:
            smooth = is_resolved(e, actions, width, lane)
            is_free = is_half_free(row, mode.GAP_START, width, smooth, lowest - slack, modes, lane)
            is_free = is_free and is_half_free(row, mode.GAP_MIDDLE, width, smooth, lowest - slack, modes, lane)
    flags[mode.FLAG_TRIALS, lane] += 1.0
    if closed > 1.0 and is_free:
        free = 1.0 if free + width >= 1.0 - 1e-12 else free + width
        for row in range(rows.shape[0]):
            rows[row, mode.GAP_START, lane] = rows[row, mode.GAP_END, lane]
            rows[row, mode.GAP_START + 1, lane] = rows[row, mode.GAP_END + 1, lane]
        width = min(2.0 * width, 1.0 - free)
    elif closed <= 1.0 and width <= SHORT_INTERVAL:
        flags[mode.FLAG_CONTACT, lane], width = free + closed * width, 0.0
    elif flags[mode.FLAG_TRIALS, lane] > MAX_INTERVALS:
        flags[mode.FLAG_CONTACT, lane], width = 0.5 * free if free > 0.0 else width, 0.0
    else:
        width = 0.5 * width
    flags[mode.FLAG_FREE, lane], flags[mode.FLAG_WIDTH, lane] = free, width


@kernel
def is_resolved(e, actions, width, lane):
    """Whether a gap is so smooth in an interval that values at three points describe it.

    `width` is the length of the interval as a fraction of the step.
    """
    contacts, rows = actions.contacts, actions.modes.rows
    row = contacts.table[element.ROW, e]
    if not width * rows[row, mode.TURN, lane] <= RESOLVED:
        return False
    if not is_contact(e, contacts.table):
        return True
    distance = rows[row, mode.GAP_START, lane] + lengths_of_contact(e, contacts, actions.numbers, lane).turning
    return width * rows[row, mode.SPEED, lane] <= RESOLVED * distance


@kernel
def is_half_free(row, first, width, is_smooth, lowest, modes, lane):
    """Whether a gap is above `lowest`, m or rad, in one half of an interval.

    `first` is the column of the start of this half, and `width` the length of the interval as a fraction of the step.
    """
    rows, s = modes.rows, 0.5 * width
    g, u = float(rows[row, first, lane]) - lowest, s * float(rows[row, first + 1, lane])
    end, v = float(rows[row, first + 2, lane]) - lowest, s * float(rows[row, first + 3, lane])
    speed, bend = s * float(rows[row, mode.SPEED, lane]), 0.5 * s * s * float(rows[row, mode.BEND, lane])
    if g + end >= speed or min(g, g + u - bend) >= 0.0 or min(end, end - v - bend) >= 0.0:
        return True
    return is_smooth and least_of_cubic(g, end, u, v) >= error_of_cubic(row, width, modes, lane)


@kernel
def error_of_cubic(row, width, modes, lane):
    """Estimate the error of the cubic polynomials in both halves of an interval from the cubic of the whole interval.

    In the middle, the fourth derivative makes the error of the whole cubic 16 times larger than the errors in the
    halves, and the fifth derivative makes the error of its rate 16 times larger. The result is in m or rad. `width` is
    the length of the interval as a fraction of the step.
    """
    rows = modes.rows
    g, end = float(rows[row, mode.GAP_START, lane]), float(rows[row, mode.GAP_END, lane])
    u, v = width * float(rows[row, mode.GAP_START + 1, lane]), width * float(rows[row, mode.GAP_END + 1, lane])
    middle, rate = float(rows[row, mode.GAP_MIDDLE, lane]), width * float(rows[row, mode.GAP_MIDDLE + 1, lane])
    return abs(middle - 0.5 * (g + end) - 0.125 * (u - v)) + abs(rate - 1.5 * (end - g) + 0.25 * (u + v))


@kernel
def least_of_cubic(start, end, u, v):
    """Return the least value in [0, 1] of the cubic polynomial with these values and derivatives at both ends.

    The values are gaps minus a bound, m or rad, and the derivatives u and v are in m or rad per interval.
    """
    least, quadratic, cubic = min(start, end), 3.0 * (end - start) - 2.0 * u - v, u + v - 2.0 * (end - start)
    square = quadratic * quadratic - 3.0 * u * cubic
    if square > 0.0:
        root = math.sqrt(square)
        # the minimum, where the derivative u + 2 quadratic s + 3 cubic s^2 rises
        divisor = quadratic + root
        s = -u / divisor if divisor > 0.0 else (root - quadratic) / (3.0 * cubic) if cubic != 0.0 else 0.0
        if 0.0 < s < 1.0:
            least = min(least, start + s * (u + s * (quadratic + s * cubic)))
    return least
