"""Elastic stops and plays that a joint would enter and leave within one step.

The ends of such a step, and perhaps its stages, do not see the force. The positions within the step do. If they pass a
limit between two ends that do not, the step is repeated with a shorter length, until it ends inside of the stop or
before it. A damped stop does not act on a joint that leaves it quickly: such an end is not inside.
"""

import math

from ...compiling.jit import kernel, routine
from ..lanes.lanes import constant_like, epsilon, select, zeros_like
from ..methods.adaptive_methods import interpolate
from ..tree import parameter_layout as param
from ..tree.layout import PASSIVE_STOPS, parameter

INTERVALS = 8  # of a step, in which the extreme is searched
SEARCHES = 4  # parabolas through the three best places; an extreme of fourth degree is then known to about 1e-9
PART_OF_TOLERANCE = 1e-3  # penetrations of less than this fraction of the tolerance of the position are not seen


@routine
def passes_elastic_stop(block, stepper, tableau, tolerances, h, lane):
    """Whether the step of a lane, of length h, passes an elastic stop that the joint does not touch at either end."""
    model, y = block.model, stepper.y
    for i in range(model.parent.shape[0]):
        if model.passive[i] & PASSIVE_STOPS:
            row, at = model.coordinate[i], block.q.shape[0] + i
            damping = float(parameter(model.parameters, i, param.LIMIT_DAMPING, lane))
            start, end = float(y[row, lane]), float(stepper.y_new[row, lane])
            for side in range(2):
                sign, column = (1.0, param.UPPER) if side == 1 else (-1.0, param.LOWER)
                limit = float(parameter(model.parameters, i, column, lane))
                depth, velocity = sign * (end - limit), float(stepper.y_new[at, lane])
                is_free = depth < 0.0 or damping * sign * velocity <= -1.0
                if sign * (start - limit) < 0.0 and is_free and abs(limit) < math.inf:
                    tolerance = PART_OF_TOLERANCE * (tolerances.atol + tolerances.rtol * abs(limit))
                    tolerance = max(tolerance, 64.0 * epsilon(y) * max(abs(start), abs(end)))
                    if deepest(stepper, tableau, h, row, sign, limit, lane) > tolerance:
                        return True
    return False


@kernel
def deepest(stepper, tableau, h, row, sign, limit, lane):
    """Return the largest sign * (position - limit), rad or m, within the step of a lane, if it is not at an end.

    The position is a row of the state.
    """
    best, depth = 0, sign * (float(stepper.y[row, lane]) - limit)
    for number in range(1, INTERVALS):
        found = depth_at(stepper, tableau, h, number / INTERVALS, row, sign, limit, lane)
        if found > depth:
            best, depth = number, found
    if best == 0:
        best = 1  # the extreme may be next to the start
    width = 1.0 / INTERVALS
    middle = best * width
    for _ in range(SEARCHES):
        left = depth_at(stepper, tableau, h, middle - width, row, sign, limit, lane)
        right = depth_at(stepper, tableau, h, middle + width, row, sign, limit, lane)
        center = depth_at(stepper, tableau, h, middle, row, sign, limit, lane)
        depth = max(depth, center)
        middle, width = approach_extreme(middle, width, left, center, right)
    return max(depth, depth_at(stepper, tableau, h, middle, row, sign, limit, lane))


@kernel
def approach_extreme(middle, width, left, center, right):
    """Return the middle and the half width of a narrower interval about the vertex of the parabola through its places.

    left, center, right: values at middle - width, middle and middle + width, in fractions of a step, each one value or
    one value for each lane. The interval stays where it is if the parabola has no maximum.
    """
    zero = zeros_like(center)
    one, half, quarter = constant_like(zero, 1.0), constant_like(zero, 0.5), constant_like(zero, 0.25)
    curvature = left - (center + center) + right
    bends = curvature < zero
    shift = select(bends, half * (left - right) / select(bends, curvature, one), zero)
    middle, width = middle + min(max(shift, -one), one) * width, quarter * width
    return min(max(middle, width), one - width), width


@kernel
def depth_at(stepper, tableau, h, theta, row, sign, limit, lane):
    """Return sign * (position - limit), rad or m, after the fraction theta of the step of a lane."""
    y, y_new = stepper.y, stepper.y_new
    length, fraction = constant_like(y, h), constant_like(y, theta)
    return sign * (float(interpolate(tableau, y, y_new, length, stepper.rates, fraction, row, lane)) - limit)
