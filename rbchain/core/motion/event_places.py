"""Places of a step between which the value of an event has no extreme.

A row of the state is a polynomial of the fraction x of a step. Its extremes are known if it is of fourth degree. Other
rows and user functions are evaluated in INTERVALS + 1 places. An extreme is searched where the value is closer to zero
than in both neighboring places, and at an end of the step from which it slopes towards zero. The search ends if the
value is on the other side of zero or cannot reach it. Two changes of the sign without such an extreme are not found.

Source: Kiefer (1953), "Sequential minimax search for a maximum", for the golden section.
"""

import math

from ...compiling.jit import kernel, only_if, routine
from ..contacts.contact_rates import has_contact_modes
from ..lanes.lanes import constant_like
from ..methods.adaptive_methods import has_quartic, polynomial_of_row
from ..sample import clock_layout as clocks
from .event_values import (
    EVENT_NUMBERS,
    EVENT_ROW,
    MAX_PLACES,
    ROUND_OFF,
    event_value,
    largest_row,
    place_row,
    time_within_step,
    units_within_step,
    value_within_step,
    without_round_off,
)
from .step_parts import has_parts, meeting_of_parts, polynomial_of_part

INTERVALS = 4
SLOPE = 1e-3  # part of an interval over which the slope at the ends of a step is taken
GOLDEN_PART = 0.381966011250105  # (3 - sqrt 5) / 2
MAX_SEARCHES, MAX_BISECTIONS = 60, 100
# The search for an extreme ends when the adjacent values exceed it by this fraction of its distance from zero.
FLAT = 0.1
NARROW = 1e-12  # of the step


@only_if(has_quartic, False)
@kernel
def has_polynomials(tableau):
    """Whether rows of the state are polynomials of fourth degree within a step."""
    return True


@only_if(has_contact_modes, False)
@kernel
def has_jumps(block):
    """Whether the state may jump between two steps, at impacts."""
    return True


@routine
def list_places(e, block, stepper, tableau, lane):
    """Store places of a step of a lane, in order, with the values of event e there; return their number.

    The start of the step is the first place, and its end the last one. After an impact, the value of a velocity at the
    start differs from the value at the end of the last step.
    """
    actions = block.loads.actions
    row = actions.shared.events[EVENT_ROW, e]
    if row >= 0 and has_polynomials(tableau):
        return list_places_of_state(e, row, block, stepper, tableau, lane)
    start = actions.event_values[e, lane]
    if has_jumps(block):
        before = actions.event_values[largest_row(e, actions.shared.events.shape[1]), lane]  # 0 for functions
        f = event_value(e, block, stepper.y, stepper.clock[clocks.T, lane], lane)
        start = without_round_off(f, ROUND_OFF, before, stepper.y)
    count = add_place(0.0, start, 0, actions, lane)
    largest = 0.0  # the values of functions keep their round-off
    if row >= 0:
        largest = update_largest(e, float(stepper.y[row, lane]), float(stepper.y_new[row, lane]), actions, lane)
    for interval in range(1, INTERVALS):
        theta = interval / INTERVALS
        f = value_at(e, block, stepper, tableau, theta, lane)
        if math.isfinite(f):
            count = add_place(theta, f, count, actions, lane)
    f = event_value(e, block, stepper.y_new, time_within_step(stepper, 1.0, lane), lane)
    count = add_place(1.0, without_round_off(f, ROUND_OFF, largest, stepper.y), count, actions, lane)
    return add_dips(e, block, stepper, tableau, count, lane)


@kernel
def value_at(e, block, stepper, tableau, theta, lane):
    """Return the value of event e after the fraction theta of a step; 0 if the value of a row is round-off.

    It has the unit of the row, or of the result of the user function.
    """
    actions, f = block.loads.actions, value_within_step(e, block, stepper, tableau, theta, lane)
    largest = actions.event_values[largest_row(e, actions.shared.events.shape[1]), lane]  # 0 for functions
    return without_round_off(f, units_within_step(tableau), largest, stepper.y)


@kernel
def update_largest(e, start, end, actions, lane):
    """Update and return the largest number of the row that event e observes, from its values at both ends of a step."""
    at = largest_row(e, actions.shared.events.shape[1])
    actions.event_values[at, lane] = max(actions.event_values[at, lane], abs(start), abs(end))
    return actions.event_values[at, lane]


@kernel
def add_place(theta, f, count, actions, lane):
    """Store the fraction theta and the value f of a place after `count` others; return the new number of places."""
    row = place_row(count, actions.shared.events.shape[1])
    actions.event_values[row, lane], actions.event_values[row + 1, lane] = theta, f
    return count + 1


# --- rows of the state ------------------------------------------------------------------------------------------------


@kernel
def list_places_of_row(e, row, block, stepper, tableau, lane):
    """Store both ends of a step and the extremes of a row of the state in it; return the number of places."""
    y, y_new = stepper.y, stepper.y_new
    h = constant_like(y, stepper.clock[clocks.STEP, lane])
    polynomial = polynomial_of_row(tableau, y, y_new, h, stepper.rates, row, lane)
    motion = float(y[row, lane]), float(y_new[row, lane]), polynomial
    return add_places_of_polynomial(e, block, stepper, tableau, motion, (0.0, 1.0), 0, lane)


@only_if(lambda e, row, block, *_: has_parts(block), otherwise=list_places_of_row)
@kernel
def list_places_of_state(e, row, block, stepper, tableau, lane):
    """Store the places of a row of the state in a step, as `list_places_of_row`; in a divided step, of both parts."""
    meeting, count = float(meeting_of_parts(block, stepper, lane)), 0
    for part in range(2 if meeting < 1.0 else 1):
        motion = polynomial_of_part(block, stepper, part == 0, row, lane)
        span = (0.0, meeting) if part == 0 else (meeting, 1.0 - meeting)
        count = add_places_of_polynomial(e, block, stepper, tableau, motion, span, count, lane)
    return count


@kernel
def add_places_of_polynomial(e, block, stepper, tableau, motion, span, count, lane):
    """Store both ends and the extremes of a polynomial after `count` places; return the new number of places.

    `motion` = (start, end, (a, b, c, d)). The polynomial start + a x + b x^2 + c x^3 + d x^4 has the values start and
    end at x = 0 and 1. These are the fractions place and place + share of the step; `span` = (place, share).

    Values that are round-off are stored as 0. The start has the same round-off as the end of the last step, so the
    value there is 0 in both steps or in none.
    """
    actions, y, (start, end, polynomial), (place, share) = block.loads.actions, stepper.y, motion, span
    values, events = actions.event_values, actions.shared.events
    level = float(actions.numbers[events[EVENT_NUMBERS, e], lane])
    before = without_round_off(start - level, ROUND_OFF, values[largest_row(e, events.shape[1]), lane], y)
    largest = update_largest(e, start, end, actions, lane)
    a, b, c, d = float(polynomial[0]), float(polynomial[1]), float(polynomial[2]), float(polynomial[3])
    count, low = add_place(place, before, count, actions, lane), 0.0
    first, second = bends(b, 3.0 * c, 6.0 * d)
    for high in (first, second, 1.0):  # the derivative a + 2 b x + 3 c x^2 + 4 d x^3 is monotone between them
        extreme = zero_of_derivative(a, b, c, d, low, high)
        if low < extreme < high:
            f = start - level + extreme * (a + extreme * (b + extreme * (c + extreme * d)))
            f = without_round_off(f, units_within_step(tableau), largest, y)
            count = add_place(place + share * extreme, f, count, actions, lane)
        low = high
    return add_place(place + share, without_round_off(end - level, ROUND_OFF, largest, y), count, actions, lane)


@kernel
def bends(a, b, c):
    """Return the zeros of a + b x + c x^2 between 0 and 1, in order; 0 and 1 instead of others."""
    square = b * b - 4.0 * a * c
    if not square > 0.0:
        return 0.0, 1.0
    q = -0.5 * (b + math.copysign(math.sqrt(square), b))
    x = a / q if q != 0.0 else 0.0
    z = q / c if c != 0.0 else 1.0
    low, high = min(x, z), max(x, z)
    return (low if 0.0 < low < 1.0 else 0.0), (high if 0.0 < high < 1.0 else 1.0)


@kernel
def zero_of_derivative(a, b, c, d, low, high):
    """Return the zero of a + 2 b x + 3 c x^2 + 4 d x^3 between two places, or -1. It must be monotone between them."""
    f_low = a + low * (2.0 * b + low * (3.0 * c + low * 4.0 * d))
    f_high = a + high * (2.0 * b + high * (3.0 * c + high * 4.0 * d))
    if not f_low * f_high < 0.0:
        return -1.0
    for _ in range(MAX_BISECTIONS):
        x = 0.5 * (low + high)
        if not low < x < high:
            break
        f = a + x * (2.0 * b + x * (3.0 * c + x * 4.0 * d))
        if (f < 0.0) == (f_low < 0.0):
            low = x
        else:
            high = x
    return 0.5 * (low + high)


# --- user functions ---------------------------------------------------------------------------------------------------


@kernel
def add_dips(e, block, stepper, tableau, count, lane):
    """Insert places at which a function that comes close to zero has the other sign; return the number of places."""
    actions = block.loads.actions
    values, m = actions.event_values, actions.shared.events.shape[1]
    last = count - 1
    for number in range(last, -1, -1):
        at, before, after = place_row(number, m), place_row(max(number - 1, 0), m), place_row(min(number + 1, last), m)
        middle, left, right = values[at, lane], values[before, lane], values[after, lane]
        f, f_left, f_right = values[at + 1, lane], values[before + 1, lane], values[after + 1, lane]
        if not (is_closest(f, f_left) and is_closest(f, f_right)) or count == MAX_PLACES:
            continue
        if number in (0, last):  # the slope decides whether there is an extreme next to the end of the step
            middle += SLOPE * (right - left) if number == 0 else -SLOPE * (right - left)
            slope = value_at(e, block, stepper, tableau, middle, lane)
            if is_closest(f, slope):
                continue
            f = slope
        theta, f = search_dip(e, block, stepper, tableau, (left, middle, right), (f_left, f, f_right), lane)
        if theta >= 0.0:
            count = insert_place(number if theta < values[at, lane] else number + 1, theta, f, count, actions, lane)
    return count


@kernel
def is_closest(f, other):
    """Whether the value f is on the same side of zero as another one, and not farther away from it."""
    return (f > 0.0 and other >= f) or (f < 0.0 and other <= f)


@kernel
def insert_place(number, theta, f, count, actions, lane):
    """Store the fraction theta and the value f of a place as place `number`, before others; return the new count."""
    values, m = actions.event_values, actions.shared.events.shape[1]
    for moved in range(count - 1, number - 1, -1):
        for row in range(2):
            values[place_row(moved + 1, m) + row, lane] = values[place_row(moved, m) + row, lane]
    add_place(theta, f, number, actions, lane)
    return count + 1


@routine
def search_dip(e, block, stepper, tableau, places, values, lane):
    """Search a place at which a function is on the other side of zero; return it and the value there, or -1 and 0.

    `places` are three fractions of the step in order, and `values` the values of event e there. The value in the middle
    is closer to zero than the others. The next place is the extreme of the parabola through them or, at every third
    time, a golden section of the longer interval.
    """
    left, middle, right = places
    sign = 1.0 if values[0] > 0.0 else -1.0
    f_left, f_middle, f_right = sign * values[0], sign * values[1], sign * values[2]
    for trial in range(MAX_SEARCHES):
        if f_middle <= 0.0:
            return middle, sign * f_middle
        if right - left <= NARROW or max(f_left, f_right) - f_middle <= FLAT * f_middle:
            break
        u, v = (middle - left) * (f_middle - f_right), (middle - right) * (f_middle - f_left)
        step = 0.5 * ((middle - left) * u - (middle - right) * v) / (u - v) if u != v else 0.0
        if trial % 3 == 2 or not (left < middle - step < right) or abs(step) < SLOPE * (right - left):
            step = GOLDEN_PART * (middle - right if right - middle > middle - left else middle - left)
        x = middle - step
        f = sign * value_at(e, block, stepper, tableau, x, lane)
        if f < f_middle:
            left, right = (left, middle) if x < middle else (middle, right)
            f_left, f_right = (f_left, f_middle) if x < middle else (f_middle, f_right)
            middle, f_middle = x, f
        elif x < middle:
            left, f_left = x, f
        else:
            right, f_right = x, f
    return -1.0, 0.0
