"""Limits and bounds of the rows of dry friction, stops and contacts in a step of `moreau`, and which of them stick."""

import math

from ...compiling.jit import is_given, kernel
from ..contacts import contact_layout as contact, element_layout as element
from ..contacts.contact_layout import has_tangents, is_contact, is_one_of_points
from ..lanes.lanes import any_lane, constant_like, full_like, select, zeros_like
from ..spatial.storage import load3
from ..spatial.vectors import add3, cross, dot, scale3, subtract3
from ..tree import frame_layout as frame

# An impact needs a speed of more than this multiple of the change of the velocity by other forces in the step.
IMPACT_SPEED = 2.0
# Gaps that are far from closed are larger than FAR times the depth that is not corrected, closed gaps are smaller than
# CLOSED times this depth.
FAR, CLOSED = 1000.0, 0.01
# Closed gaps of three or more points of a body are smaller than CLOSED_POINTS times this depth. NEGLIGIBLE times this
# depth is the largest neglected motion of their points in a step.
CLOSED_POINTS, NEGLIGIBLE = 10.0, 0.1


def has_contacts(block, *_):
    """Whether a block has dry friction, stops or contacts. Numba decides it when it compiles."""
    return is_given(block, "loads", "actions", "contacts")


@kernel
def may_act(contacts, settings, h, k):
    """Whether a row may have an impulse in this step, in any lane.

    A gap is far from closed if it is more than twice the distance moved in the step. If all gaps are far from closed,
    all impulses are zero, and the responses are not needed. Dry friction always acts.
    """
    table, rows = contacts.table, contacts.rows
    least = constant_like(rows, FAR * settings.penetration)
    for e in range(table.shape[1]):
        if table[element.KIND, e] == element.FRICTION:
            return True
        row = table[element.ROW, e]
        speed = max(abs(rows[row, contact.START_VELOCITY, k]), abs(rows[row, contact.FREE_VELOCITY, k]))
        is_far = rows[row, contact.GAP, k] > (h + h) * speed + least
        if any_lane(~is_far):
            return True
    return False


@kernel
def stick_at_rest(e, contacts, numbers, tolerance, v, k):
    """Let a joint with friction stick if its velocity is zero at the start of the step, up to the tolerance.

    v (n, lanes) are the velocities at the start. They and the tolerance are in rad/s and m/s.
    """
    rows, row, at = contacts.rows, contacts.table[element.ROW, e], contacts.table[element.NUMBERS, e]
    u, zero, one = v[contacts.table[element.DOF, e], k], constant_like(rows, 0.0), constant_like(rows, 1.0)
    static = numbers[at + element.FRICTION_STATIC_FORWARD, k] + numbers[at + element.FRICTION_STATIC_BACKWARD, k]
    sticks = (abs(u) <= constant_like(rows, tolerance)) & (static > zero)
    rows[row, contact.STICKS, k] = select(sticks, one, zero)


@kernel
def remove_small_strains(contacts, settings, h, work, k):
    """Remove the centripetal acceleration from d u / dt of three or more points of a body, if it is small.

    Points that stick do not rotate at the end of the step. With w x (w x r) of its middle, no impulses could stop all
    of them. r is the lever from the center of the points.
    """
    table, rows = contacts.table, contacts.rows
    limit = constant_like(rows, NEGLIGIBLE * settings.penetration)
    for e in range(table.shape[1]):
        if is_one_of_points(e, table):
            center = center_of_points(e, contacts, k)
            spin = load3(work.dof, table[element.DOF, e], frame.V, k)
            largest = zeros_like(rows[0, contact.BIAS, k])
            for other in range(table.shape[1]):
                if is_same_body(other, e, table):
                    strain = strain_of_point(other, center, spin, contacts, k)
                    for axis in range(3):
                        largest = max(largest, abs(strain[axis]))
            is_small = constant_like(rows, 0.5) * h * h * largest <= limit
            strain = strain_of_point(e, center, spin, contacts, k)
            for row in range(table[element.ROW, e], table[element.ROW, e] + 3):
                bias = rows[row, contact.BIAS, k]
                without = bias - dot(load3(rows, row, contact.NORMAL, k), strain)
                rows[row, contact.BIAS, k] = select(is_small, without, bias)


@kernel
def is_same_body(other, e, table):
    """Whether an element is one of three or more points of the body of element e, which is one of them, too."""
    return is_one_of_points(other, table) and table[element.DOF, other] == table[element.DOF, e]


@kernel
def center_of_points(e, contacts, k):
    """Return the mean lever (3) of the points of the group of element e, m."""
    table, rows = contacts.table, contacts.rows
    row = table[element.ROW, e]
    lever = load3(rows, row, contact.LEVER, k)
    total, count = subtract3(lever, lever), 0.0
    for other in range(table.shape[1]):
        if is_same_body(other, e, table):
            total = add3(total, load3(rows, table[element.ROW, other], contact.LEVER, k))
            count += 1.0
    return scale3(constant_like(rows, 1.0 / count), total)


@kernel
def strain_of_point(e, center, spin, contacts, k):
    """Return the centripetal acceleration (3) of the point of element e relative to the center, m/s^2."""
    lever = subtract3(load3(contacts.rows, contacts.table[element.ROW, e], contact.LEVER, k), center)
    return cross(spin, cross(spin, lever))


@kernel
def set_friction_limits(e, contacts, numbers, h, k):
    """Set the limits of the impulse of a dof's friction, N m s or N s: static while it sticks, else kinetic."""
    row, at = contacts.table[element.ROW, e], contacts.table[element.NUMBERS, e]
    rows = contacts.rows
    sticks = rows[row, contact.STICKS, k] > constant_like(rows, 0.0)
    forward = select(
        sticks, numbers[at + element.FRICTION_STATIC_FORWARD, k], numbers[at + element.FRICTION_KINETIC_FORWARD, k]
    )
    backward = select(
        sticks, numbers[at + element.FRICTION_STATIC_BACKWARD, k], numbers[at + element.FRICTION_KINETIC_BACKWARD, k]
    )
    rows[row, contact.LOWER, k] = -h * forward
    rows[row, contact.UPPER, k] = h * backward


@kernel
def release_joints(contacts, numbers, h, k):
    """Set the friction of joints that start to slide to the kinetic friction; return whether there are any.

    A sticking joint starts to slide if its impulse is at the limit.
    """
    rows, zero, any_slips = contacts.rows, constant_like(contacts.rows, 0.0), False
    for e in range(contacts.table.shape[1]):
        if contacts.table[element.KIND, e] == element.FRICTION:
            row = contacts.table[element.ROW, e]
            p, sticks = rows[row, contact.IMPULSE, k], rows[row, contact.STICKS, k]
            is_at_limit = (p <= rows[row, contact.LOWER, k]) | (p >= rows[row, contact.UPPER, k])
            slips = (sticks > zero) & is_at_limit
            rows[row, contact.STICKS, k] = select(slips, zero, sticks)
            if any_lane(slips):
                set_friction_limits(e, contacts, numbers, h, k)
                any_slips = True
    return any_slips


@kernel
def set_start_gap(e, contacts, h, k):
    """Replace the gap of a stop or a contact in the middle of the step by the gap at its start, m or rad."""
    rows, row, half = contacts.rows, contacts.table[element.ROW, e], constant_like(contacts.rows, 0.5)
    rows[row, contact.GAP, k] = rows[row, contact.GAP, k] - half * h * rows[row, contact.START_VELOCITY, k]


@kernel
def largest_gaps(e, contacts, tolerance, h, k):
    """Return the gap of element e at the start, and what remains of it with the velocity -gap / h, m or rad.

    Contacts of the same two bodies have the same results, the largest of these contacts. The bounds of points in one
    plane of a body are therefore compatible. Otherwise, one of four points under a foot would have to open because of
    round-off, and the solver would have to find it. Of three or more points, those that may have an impact do not
    count for the others, because their bound is zero.
    """
    table = contacts.table
    gap, remains = gap_and_rest(table[element.ROW, e], contacts, h, k)
    if not is_contact(e, table):
        return gap, remains
    for other in range(table.shape[1]):
        touches = is_contact(other, table) and table[element.DOF, other] == table[element.DOF, e]
        if touches and table[element.OTHER, other] == table[element.OTHER, e]:
            row = table[element.ROW, other]
            other_gap, other_remains = gap_and_rest(row, contacts, h, k)
            larger_gap, larger_rest = max(gap, other_gap), max(remains, other_remains)
            if is_one_of_points(e, table):
                is_fast = is_faster_than_forces(row, contacts, tolerance, k)
                larger_gap, larger_rest = select(is_fast, gap, larger_gap), select(is_fast, remains, larger_rest)
            gap, remains = larger_gap, larger_rest
    return gap, remains


@kernel
def is_faster_than_forces(row, contacts, tolerance, k):
    """Whether a gap closes with a speed that is an impact, if the gap closes within the step."""
    rows = contacts.rows
    u = rows[row, contact.START_VELOCITY, k]
    change = abs(rows[row, contact.FREE_VELOCITY, k] - u)
    return -u > constant_like(rows, IMPACT_SPEED) * change + constant_like(rows, tolerance)


@kernel
def least_excess(e, rate, is_closed, contacts, depth, h, k):
    """Return the least sum of velocity and rate = gap / h of the points of a body, m/s, at the start of the step.

    The result of an element that is not one of three or more points is its own sum. `rate` is the rate of element e. In
    lanes in which `is_closed` is true, the rates are zero.
    """
    rows, table = contacts.rows, contacts.table
    least = rate + rows[table[element.ROW, e], contact.START_VELOCITY, k]
    if is_one_of_points(e, table):
        for other in range(table.shape[1]):
            if is_same_body(other, e, table):
                row = table[element.ROW, other]
                gap = max(rows[row, contact.GAP, k], -depth)
                other_rate = select(is_closed, constant_like(rows, 0.0), gap) / h
                least = min(least, other_rate + rows[row, contact.START_VELOCITY, k])
    return least


@kernel
def gap_and_rest(row, contacts, h, k):
    """Return the gap of a row at the start of the step and what remains of it with the velocity -gap / h, m or rad."""
    rows, half = contacts.rows, constant_like(contacts.rows, 0.5)
    gap = rows[row, contact.GAP, k]
    return gap, half * (max(gap, zeros_like(gap)) + h * rows[row, contact.START_VELOCITY, k])


@kernel
def set_bound(e, contacts, settings, numbers, h, k):
    """Set the least velocity of a stop or of the normal of a contact at the end of the step, m/s or rad/s.

    Reads the gaps of all rows at the start.
    """
    rows, row, at = contacts.rows, contacts.table[element.ROW, e], contacts.table[element.NUMBERS, e]
    restitution = numbers[at + element.NUMBER_RESTITUTION, k]
    zero, one, half = constant_like(rows, 0.0), constant_like(rows, 1.0), constant_like(rows, 0.5)
    u, free = rows[row, contact.START_VELOCITY, k], rows[row, contact.FREE_VELOCITY, k]
    d, depth = free - u, constant_like(rows, settings.penetration)
    closed = constant_like(rows, CLOSED_POINTS if is_one_of_points(e, contacts.table) else CLOSED) * depth
    largest, remains = largest_gaps(e, contacts, settings.tolerance, h, k)
    rate = select(largest <= closed, zero, max(rows[row, contact.GAP, k], -depth)) / h
    excess = least_excess(e, rate, largest <= closed, contacts, depth, h, k)
    least = constant_like(rows, IMPACT_SPEED) * abs(d) + constant_like(rows, settings.tolerance)
    is_impact = (-u > least) & (rate + half * (u + free) < zero)
    root = math.sqrt(max(u * u - (rate + rate) * d, zero))
    time = max(min((rate + rate) / select(is_impact, root - u, one), one), zero)
    is_impact = is_impact & (velocity_at(time, row, contacts, h, k) < zero)
    is_clipped = (one - time) * d - restitution * (u + time * d) <= zero
    slower = select((remains <= closed) | (excess < zero), zero, max(rate + u, zero))
    rows[row, contact.BOUND, k] = select(is_impact, zero, -rate - slower)
    rows[row, contact.IMPACT, k] = select(is_impact, one, zero)
    rows[row, contact.IMPACT_TIME, k] = select(is_impact, time, zero)
    rows[row, contact.IS_CLIPPED, k] = select(is_clipped, one, zero)
    if has_tangents(e, contacts.table):
        rows[row + 1, contact.UPPER, k] = zero


@kernel
def velocity_at(time, row, contacts, h, k):
    """Return J v of a row, m/s or rad/s, after a fraction of the step without impulses, with J of the middle.

    The fraction, `time`, and the result are one value for each lane.
    """
    rows = contacts.rows
    turn = constant_like(rows, 0.5) * h * rows[row, contact.BIAS, k]
    u, free = rows[row, contact.START_VELOCITY, k] + turn, rows[row, contact.FREE_VELOCITY, k] - turn
    return u + time * (free - u)


@kernel
def set_shifts(contacts, numbers, h, k):
    """Set contact.SHIFT: the change of the velocity from the first impact to the end of the step, zero in other rows.

    It is in m/s or rad/s. Also sets the least velocity after impacts by Newton's law of restitution.
    """
    table, rows = contacts.table, contacts.rows
    zero, time = constant_like(rows, 0.0), time_of_first_impact(contacts, k)
    for e in range(table.shape[1]):
        kind, row = table[element.KIND, e], table[element.ROW, e]
        for r in range(row, row + table[element.SIZE, e]):
            rows[r, contact.SHIFT, k] = zero
        if kind == element.FRICTION:
            continue
        rebounds = (rows[row, contact.IMPACT, k] > zero) & (rows[row, contact.IS_CLIPPED, k] <= zero)
        for r in range(row, row + table[element.SIZE, e]):
            shift = rows[r, contact.FREE_VELOCITY, k] - velocity_at(time, r, contacts, h, k)
            rows[r, contact.SHIFT, k] = select(rebounds, shift, rows[r, contact.SHIFT, k])
        restitution = numbers[table[element.NUMBERS, e] + element.NUMBER_RESTITUTION, k]
        rebound = max(-restitution * velocity_at(time, row, contacts, h, k), zero)
        rows[row, contact.BOUND, k] = select(rebounds, rebound, rows[row, contact.BOUND, k])


@kernel
def time_of_first_impact(contacts, k):
    """Return the time of the first possible impact in each lane as a fraction of the step, or 1."""
    table, rows = contacts.table, contacts.rows
    time = full_like(rows[0, contact.FREE_VELOCITY, k], 1.0)
    for e in range(table.shape[1]):
        if table[element.KIND, e] != element.FRICTION:
            row = table[element.ROW, e]
            is_impact = rows[row, contact.IMPACT, k] > constant_like(rows, 0.0)
            time = select(is_impact, min(time, rows[row, contact.IMPACT_TIME, k]), time)
    return time


@kernel
def has_collision(contacts, k):
    """Return 1 in lanes with an impact whose impulse is positive, else 0."""
    table, rows = contacts.table, contacts.rows
    found, zero = zeros_like(rows[0, contact.IMPULSE, k]), constant_like(rows, 0.0)
    for e in range(table.shape[1]):
        if table[element.KIND, e] != element.FRICTION:
            row = table[element.ROW, e]
            collides = (rows[row, contact.IMPACT, k] > zero) & (rows[row, contact.IMPULSE, k] > zero)
            found = select(collides, constant_like(rows, 1.0), found)
    return found


@kernel
def update_sticking(contacts, tolerance, v, k):
    """Decide which joints and contacts stick at the end of a step; the velocity of a sticking joint is exactly zero.

    Joints and contacts stick if their speed is at most the tolerance, even with friction at its limit. At the limit,
    the velocity of a joint is not changed, because the joint may have just started to slide.

    v (n, lanes) are the velocities of the dofs at the end of the step, rad/s and m/s.
    """
    table, rows = contacts.table, contacts.rows
    for e in range(table.shape[1]):
        kind, row, i = table[element.KIND, e], table[element.ROW, e], table[element.DOF, e]
        zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
        slow = constant_like(rows, tolerance)
        if kind == element.FRICTION:
            p, lower, upper = rows[row, contact.IMPULSE, k], rows[row, contact.LOWER, k], rows[row, contact.UPPER, k]
            sticks = (abs(rows[row, contact.VELOCITY, k]) <= slow) & (lower < upper)
            v[i, k] = select(sticks & (p > lower) & (p < upper), zero, v[i, k])
            rows[row, contact.STICKS, k] = select(sticks, one, zero)
        elif has_tangents(e, table):
            radius = rows[row, contact.FRICTION, k] * rows[row, contact.IMPULSE, k]
            speed = max(abs(rows[row + 1, contact.VELOCITY, k]), abs(rows[row + 2, contact.VELOCITY, k]))
            sticks = (speed <= slow) & (radius > zero)
            rows[row, contact.STICKS, k] = select(sticks, one, zero)
