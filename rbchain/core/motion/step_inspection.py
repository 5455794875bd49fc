"""Where a step with contacts ends: the first change of a mode, impact or penetration within it."""

from ...compiling.jit import kernel, only_if, routine
from ..contacts import contact_layout as contact, element_layout as element, mode_layout as mode
from ..contacts.contact_layout import has_tangents
from ..contacts.contact_mode_changes import friction_limit, tangent_force
from ..contacts.contact_modes import ROUND_OFF, closed_gap
from ..contacts.contact_rates import has_contact_modes
from ..lanes.lanes import constant_like
from ..sample import clock_layout as clocks, control_layout as controls, tally_layout as tallies
from ..sample.status import NO_CONTACT_MODES, STEP_UNDERFLOW, TOO_MANY_STEPS
from .contact_impacts import speed_at_rest

# The time of a change of modes is located to this accuracy, s, or to the round-off of the time.
TIME_TOLERANCE = 1e-12
MAX_ITERATIONS = 100
ROOT_ITERATIONS = 12  # of Newton's method for a cubic polynomial
# If the ratio of the two values is smaller, bisect the interval instead of interpolating linearly.
SMALLEST_RATIO = 1e-6
# Forces count as negative, or as larger than a limit, beyond this fraction of the largest force.
FORCE_TOLERANCE = 1e-9
# Multiples of the largest closed gap: gaps that open must not become smaller by more, and steps must not end deeper.
PENETRATION, LARGEST_PENETRATION = 10.0, 100.0
# A sample ends if more than MAX_DWELLS steps in succession end with a change of modes and last at most DWELL times the
# tolerance of the time.
MAX_DWELLS, DWELL = 50, 10.0


@kernel
def update_watches(block, rest, lane):
    """Compute mode.WATCH of all rows from the last evaluation. Velocities below 1e-3 `rest` are round-off.

    `rest` is in m/s or rad/s. The unit of mode.WATCH depends on the mode: see `contact_events`.
    """
    actions = block.loads.actions
    contacts, modes, numbers = actions.contacts, actions.modes, actions.numbers
    rows, table, forces, reversal = modes.rows, contacts.table, 0.0, 1e-3 * rest
    for row in range(rows.shape[0]):
        forces = max(forces, abs(rows[row, mode.FORCE, lane]))
        rows[row, mode.WATCH, lane] = 1.0
    slack = FORCE_TOLERANCE * forces
    for e in range(table.shape[1]):
        row, at, kind = table[element.ROW, e], table[element.NUMBERS, e], table[element.KIND, e]
        p, u, current = (
            rows[row, mode.FORCE, lane],
            contacts.rows[row, contact.VELOCITY, lane],
            rows[row, mode.MODE, lane],
        )
        if kind == element.FRICTION:
            limit = friction_limit(p, at, numbers, lane)
            slides = current == mode.SLIDING
            along = u * rows[row, mode.DIRECTION, lane]
            rows[row, mode.WATCH, lane] = along + reversal if slides else limit + slack - abs(p)
            continue
        rows[row, mode.WATCH, lane] = contacts.rows[row, contact.GAP, lane] if current == mode.OPEN else p + slack
        if has_tangents(e, table) and rows[row + 1, mode.MODE, lane] == mode.HELD:
            limit = rows[row, mode.FRICTION, lane] * p
            rows[row + 1, mode.WATCH, lane] = limit + slack - tangent_force(row, modes, lane)
        elif has_tangents(e, table) and rows[row + 1, mode.MODE, lane] == mode.SLIDING:
            along = contacts.rows[row + 1, contact.VELOCITY, lane] * rows[row + 1, mode.DIRECTION, lane]
            across = contacts.rows[row + 2, contact.VELOCITY, lane] * rows[row + 2, mode.DIRECTION, lane]
            rows[row + 1, mode.WATCH, lane] = along + across + reversal


@kernel
def has_to_change(row, contacts, modes, rest, lane):
    """Whether the mode of a row has to change: mode.WATCH is negative, and gaps not only by round-off.

    Velocities below 1e-3 `rest`, m/s or rad/s, are round-off.
    """
    watch = modes.rows[row, mode.WATCH, lane]
    if modes.rows[row, mode.MODE, lane] == mode.OPEN:
        approaches = contacts.rows[row, contact.VELOCITY, lane] < -1e-3 * rest
        deepest = min(modes.rows[row, mode.WATCH_START, lane], 0.0) - PENETRATION * closed_gap(row, modes, lane)
        return (watch < 0.0 and approaches) or watch < deepest
    return watch < 0.0


@kernel
def keep_start(block, lane):
    """Copy the numbers at the end of a step to the start of the next step, and turn directions of sliding."""
    contacts, modes = block.loads.actions.contacts, block.loads.actions.modes
    for row in range(modes.rows.shape[0]):
        modes.rows[row, mode.WATCH_START, lane] = modes.rows[row, mode.WATCH, lane]
        modes.rows[row, mode.START_VELOCITY, lane] = contacts.rows[row, contact.VELOCITY, lane]
        if modes.rows[row, mode.MODE, lane] == mode.SLIDING:
            modes.rows[row, mode.DIRECTION, lane] = modes.rows[row, mode.HEADING, lane]


@only_if(has_contact_modes, False)
@routine
def repeats_step(block, stepper, tolerances, t, h, lane):
    """Compare the end of a step of a lane with its modes, and return whether the lane repeats it with another length.

    Sets FLAG_RESTARTS if the step ends with a change of modes.
    """
    contacts, modes, rest = block.loads.actions.contacts, block.loads.actions.modes, speed_at_rest(tolerances)
    flags, tolerance = modes.flags, max(TIME_TOLERANCE, 4.0 * 2.2e-16 * (t + h))
    shorter = h * float(flags[mode.FLAG_CONTACT, lane])
    if shorter < h - tolerance:
        clear_bounds(block, lane)
        repeat_step(stepper, tolerances, shorter, lane)
        return True
    update_watches(block, rest, lane)
    changes = False
    for row in range(modes.rows.shape[0]):
        changes = changes or has_to_change(row, contacts, modes, rest, lane)
    locates = flags[mode.FLAG_LOCATES, lane] > 0.0
    if not changes and not locates:
        keep_start(block, lane)
        return is_penetration(contacts, modes, stepper, tolerance, lane)
    if not locates:
        flags[mode.FLAG_LOCATES, lane] = 1.0
        flags[mode.FLAG_LOW, lane] = 0.0
        flags[mode.FLAG_ITERATIONS, lane] = 0.0
        flags[mode.FLAG_SIDE, lane] = 0.0
        for row in range(modes.rows.shape[0]):
            modes.rows[row, mode.WATCH_LOW, lane] = modes.rows[row, mode.WATCH_START, lane]
            modes.rows[row, mode.VELOCITY_LOW, lane] = modes.rows[row, mode.START_VELOCITY, lane]
    flags[mode.FLAG_ITERATIONS, lane] += 1.0
    flags[mode.FLAG_HIGH if changes else mode.FLAG_LOW, lane] = h
    for row in range(modes.rows.shape[0]):
        watch = modes.rows[row, mode.WATCH, lane]
        u = contacts.rows[row, contact.VELOCITY, lane]
        modes.rows[row, mode.VELOCITY_HIGH if changes else mode.VELOCITY_LOW, lane] = u
        if changes:
            modes.rows[row, mode.WATCH_HIGH, lane] = watch if has_to_change(row, contacts, modes, rest, lane) else 1.0
        else:
            modes.rows[row, mode.WATCH_LOW, lane] = watch
    length = next_length(modes, changes, tolerance, lane)
    if changes and (length >= h or flags[mode.FLAG_ITERATIONS, lane] > MAX_ITERATIONS):
        flags[mode.FLAG_LOCATES, lane] = 0.0
        flags[mode.FLAG_ITERATIONS, lane] = 0.0
        flags[mode.FLAG_RESTARTS, lane] = 1.0
        return is_dwelling(modes, stepper, h <= DWELL * tolerance, lane) or is_penetration(
            contacts, modes, stepper, tolerance, lane
        )
    repeat_step(stepper, tolerances, length, lane)
    return True


@kernel
def is_dwelling(modes, stepper, is_short, lane):
    """Whether too many successive steps have ended with a change of modes in almost no time; ends the sample then."""
    modes.flags[mode.FLAG_DWELLS, lane] = modes.flags[mode.FLAG_DWELLS, lane] + 1.0 if is_short else 0.0
    if modes.flags[mode.FLAG_DWELLS, lane] <= MAX_DWELLS:
        return False
    stepper.control[controls.ACCEPTED, lane] = constant_like(stepper.control, 0.0)
    stepper.tally[tallies.STATUS, lane] = NO_CONTACT_MODES
    return True


@kernel
def is_penetration(contacts, modes, stepper, tolerance, lane):
    """Whether a step ends in a penetration, because no step length was found that avoids it; ends the sample then.

    `tolerance` is the accuracy of the time, s.
    """
    for e in range(contacts.table.shape[1]):
        if contacts.table[element.KIND, e] != element.FRICTION:
            row = contacts.table[element.ROW, e]
            gap, way = (
                float(contacts.rows[row, contact.GAP, lane]),
                abs(float(contacts.rows[row, contact.VELOCITY, lane])),
            )
            if not gap >= -LARGEST_PENETRATION * closed_gap(row, modes, lane) - 2.0 * tolerance * way:
                stepper.control[controls.ACCEPTED, lane] = constant_like(stepper.control, 0.0)
                stepper.tally[tallies.STATUS, lane] = STEP_UNDERFLOW
                return True
    return False


@kernel
def repeat_step(stepper, tolerances, length, lane):
    """Make a lane repeat its step with another length, s, unless this exceeds the number of steps."""
    stepper.control[controls.ACCEPTED, lane] = constant_like(stepper.control, 0.0)
    stepper.clock[clocks.STEP, lane] = length
    stepper.control[controls.H, lane] = constant_like(stepper.control, length)
    stepper.tally[tallies.REJECTIONS, lane] += 1
    if stepper.tally[tallies.STEPS, lane] + stepper.tally[tallies.REJECTIONS, lane] >= tolerances.max_steps:
        stepper.tally[tallies.STATUS, lane] = TOO_MANY_STEPS
    stepper.clock[clocks.PROPOSED, lane] = 0.0


@kernel
def next_length(modes, changes, tolerance, lane):
    """Return the next length of a step between the bounds, or the upper bound if the first change is close to it.

    The length, the bounds and the tolerance are in s.
    The change is interpolated between the bounds, and the length is a little beyond it. Numbers that are interpolated
    linearly are halved at a bound that does not move (regula falsi, Illinois). Every eighth iteration is a bisection.
    """
    flags, side = modes.flags, 1.0 if changes else -1.0
    first, low, high = first_change(modes, lane), float(flags[mode.FLAG_LOW, lane]), float(flags[mode.FLAG_HIGH, lane])
    if changes and (high - first <= tolerance or high - low <= tolerance or has_round_off_only(modes, lane)):
        return high
    if flags[mode.FLAG_SIDE, lane] == side:
        other = mode.WATCH_LOW if changes else mode.WATCH_HIGH
        for row in range(modes.rows.shape[0]):
            if modes.rows[row, mode.MODE, lane] != mode.OPEN and modes.rows[row, mode.WATCH_HIGH, lane] < 0.0:
                modes.rows[row, other, lane] = 0.5 * modes.rows[row, other, lane]
        first = first_change(modes, lane)
    flags[mode.FLAG_SIDE, lane] = side
    length = first + 0.5 * max(tolerance, time_of_round_off(modes, lane))
    if length >= high:  # the first change is at the upper bound, if there is none shortly before it
        length = high - tolerance
    if not low < length < high or flags[mode.FLAG_ITERATIONS, lane] % 8.0 == 7.0:
        return 0.5 * (low + high)
    return length


@kernel
def has_round_off_only(modes, lane):
    """Whether the numbers that are negative at the upper bound are gaps that are zero up to round-off."""
    rows = modes.rows
    for row in range(rows.shape[0]):
        watch = rows[row, mode.WATCH_HIGH, lane]
        is_gap = rows[row, mode.MODE, lane] == mode.OPEN
        if watch < 0.0 and not (is_gap and watch >= -ROUND_OFF * rows[row, mode.SIZE, lane]):
            return False
    return True


@kernel
def time_of_round_off(modes, lane):
    """Return the longest time, s, in which gaps that are negative at the upper bound change by round-off."""
    rows, longest = modes.rows, 0.0
    for row in range(rows.shape[0]):
        if modes.rows[row, mode.MODE, lane] == mode.OPEN and rows[row, mode.WATCH_HIGH, lane] < 0.0:
            u = abs(float(rows[row, mode.VELOCITY_HIGH, lane]))
            if u > 0.0:
                longest = max(longest, ROUND_OFF * rows[row, mode.SIZE, lane] / u)
    return longest


@kernel
def first_change(modes, lane):
    """Return the step length, s, after which the first mode changes, by interpolation between the bounds.

    Gaps are interpolated by cubic polynomials, all other numbers linearly.
    """
    low, high = float(modes.flags[mode.FLAG_LOW, lane]), float(modes.flags[mode.FLAG_HIGH, lane])
    first = high
    for row in range(modes.rows.shape[0]):
        a, b = float(modes.rows[row, mode.WATCH_LOW, lane]), float(modes.rows[row, mode.WATCH_HIGH, lane])
        if b < 0.0:
            fraction = a / (a - b) if a > SMALLEST_RATIO * -b else 0.5
            if modes.rows[row, mode.MODE, lane] == mode.OPEN:
                u = (high - low) * float(modes.rows[row, mode.VELOCITY_LOW, lane])
                v = (high - low) * float(modes.rows[row, mode.VELOCITY_HIGH, lane])
                fraction = root_of_gap(a, b, u, v, fraction)
            first = min(first, low + (high - low) * fraction)
    return first


@kernel
def root_of_gap(start, end, u, v, fraction):
    """Return the fraction of a step at which the cubic polynomial of a gap is zero, by Newton's method between bounds.

    `start` and `end` are the gaps at both ends, m or rad, and u and v their derivatives with respect to the fraction. A
    gap that is zero at first and opens is divided by the fraction. Returns the given fraction if the gap is zero at
    first and neither opens nor closes.
    """
    quadratic, cubic = 3.0 * (end - start) - 2.0 * u - v, u + v - 2.0 * (end - start)
    is_zero_at_start = start <= 0.0
    if is_zero_at_start and u <= 0.0:
        return 0.0 if u < 0.0 else fraction
    low, high, s = 0.0, 1.0, 0.5
    for _ in range(ROOT_ITERATIONS):
        if is_zero_at_start:
            f, slope = u + s * (quadratic + s * cubic), quadratic + 2.0 * s * cubic
        else:
            f = start + s * (u + s * (quadratic + s * cubic))
            slope = u + s * (2.0 * quadratic + 3.0 * s * cubic)
        if f > 0.0:
            low = s
        else:
            high = s
        s = s - f / slope if slope < 0.0 else low
        if not low < s < high:
            s = 0.5 * (low + high)
    return s


@only_if(has_contact_modes)
@kernel
def clear_bounds(block, lane):
    """Clear the bounds of the iteration of the step length."""
    flags = block.loads.actions.modes.flags
    for flag in (mode.FLAG_LOCATES, mode.FLAG_ITERATIONS):
        flags[flag, lane] = constant_like(flags, 0.0)
