"""Bounds of the motion of two points, whose distance is a gap, within a step.

The positions within a step are polynomials of the fraction of the step. The bounds hold for the whole
step, and their unit of time is its length. They add up along the paths of the two points to the frame that both have in
common. Dof i of a path has the largest distance r_i of the point from its axis, and the largest rate w_i of its
rotation. For a prismatic joint, r_i is 1 and w_i is 0.

    speed         V = sum of r_i |q_i'|
    acceleration  A = sum of r_i |q_i''| + w_i (r_i |q_i'| + 2 times the part of V of the dofs after i)

The second derivative of a gap is then at least -A, even for the distance of two spheres, because motion across the line
between the centers makes it larger. The lowest point of a body that is round with a radius of curvature R moves on the
body. Its gap is the height of a fixed point less a support function, whose second derivative is at most R times the
square of the rotation.

Source: Mirtich (1996), "Impulse-based dynamic simulation of rigid body systems", chapter 2, bounds the times of
collisions in the same way.
"""

import math

from ...compiling.jit import kernel, routine
from ..contacts import element_layout as element, mode_layout as mode
from ..contacts.contact_shapes import bend_of_contact, lengths_of_contact
from ..lanes.lanes import constant_like, nan_unless_finite, zeros_like
from ..methods.adaptive_methods import polynomial_of_row
from ..sample import control_layout as controls
from ..spatial.vectors import length
from ..tree import parameter_layout as param
from ..tree.layout import POSING_CARRIED, POSING_FREE, POSING_OWN, PRISMATIC, parameter, parameter3

# The least length of a quaternion within a step. It differs from 1 by the error of the step only.
SHORTEST_QUATERNION = 0.9


@routine
def store_bounds_of_gap(e, block, stepper, tableau, k):
    """Store the results of `bounds_of_gap` in mode.SPEED, mode.BEND and mode.TURN of the row of a stop or a contact."""
    rows, row = block.loads.actions.modes.rows, block.loads.actions.contacts.table[element.ROW, e]
    speed, bend, turn = bounds_of_gap(e, block, stepper, tableau, k)
    rows[row, mode.SPEED, k], rows[row, mode.BEND, k], rows[row, mode.TURN, k] = speed, bend, turn


@kernel
def bounds_of_gap(e, block, stepper, tableau, k):
    """Return the largest speed, acceleration and rotation of the points of a stop or a contact within the step.

    The first two are in m or rad per step and per squared step, the rotation in rad per step. Reads R of a state in the
    step.
    """
    actions, model = block.loads.actions, block.model
    table = actions.contacts.table
    i, other = table[element.DOF, e], table[element.OTHER, e]
    if table[element.KIND, e] == element.STOP:
        rate, bend, _ = bounds_of_row(model.coordinate[i], stepper, tableau, k)
        return rate, bend, nan_unless_finite(rate)
    end = common_ancestor(i, other, model)
    lengths = lengths_of_contact(e, actions.contacts, actions.numbers, k)
    speed, bend, turn = bounds_of_point(i, end, lengths.second_reach, block, stepper, tableau, k)
    if other != end:
        speed_b, bend_b, turn_b = bounds_of_point(other, end, lengths.first_reach, block, stepper, tableau, k)
        speed, bend, turn = speed + speed_b, bend + bend_b, turn + turn_b
    more = bend_of_contact(e, speed, turn, model, actions.contacts, actions.numbers, block.work, k)
    return speed, bend + more, turn


@kernel
def common_ancestor(i, j, model):
    """Return the last dof on both paths from dofs i and j to the base; n if it is the base."""
    n = model.parent.shape[0]
    while i != j:
        if i != n and (j == n or i > j):
            i = model.parent[i]
        else:
            j = model.parent[j]
    return i


@kernel
def bounds_of_point(i, end, reach, block, stepper, tableau, k):
    """Return bounds of speed, acceleration and rotation of a point of the body of dof i, seen from frame `end`.

    `reach` is the distance of the point from joint origin i, m, in each lane. The bounds are in m per step, m per
    squared step and rad per step.
    """
    model = block.model
    speed, bend, turn = zeros_like(reach), zeros_like(reach), zeros_like(reach)
    two = constant_like(reach, 2.0) + zeros_like(reach)
    while i != end:
        posing, at = model.posing[i], model.coordinate[i]
        if posing == POSING_OWN:
            rate, change, travel = bounds_of_row(at, stepper, tableau, k)
            lever, way = reach, zeros_like(reach)
            if model.joint[i] == PRISMATIC:
                bend, speed, way = bend + change, speed + rate, travel
            else:
                advance = abs(parameter(model.parameters, i, param.ADVANCE, k))
                lever = reach + advance
                bend = bend + lever * change + rate * (two * speed + lever * rate)
                speed, turn, way = speed + lever * rate, turn + rate, advance * travel
            reach = reach + way
        elif posing != POSING_CARRIED:
            turn_at = at + 3 if posing == POSING_FREE else at
            rate, change = bounds_of_rotation(turn_at, stepper, tableau, k)
            bend = bend + reach * change + rate * (two * speed + reach * rate)
            speed, turn = speed + reach * rate, turn + rate
            if posing == POSING_FREE:
                rate, change, travel = bounds_of_rows(at, 3, stepper, tableau, k)
                bend, speed, reach = bend + change, speed + rate, reach + travel
        if posing != POSING_CARRIED:
            reach = reach + length(parameter3(model.parameters, i, param.PLACEMENT_TRANSLATION, k))
        i = model.parent[i]
    return speed, bend, turn


@kernel
def bounds_of_rotation(at, stepper, tableau, k):
    """Return bounds of the angular velocity and acceleration of a quaternion in rows `at` to at + 3 of the state.

    They are in rad per step and rad per squared step.
    """
    rate, change, _ = bounds_of_rows(at, 4, stepper, tableau, k)
    two, inverse = constant_like(rate, 2.0), constant_like(rate, 1.0 / SHORTEST_QUATERNION)
    rate = inverse * rate
    return two * rate, two * (inverse * change + two * rate * rate)


@kernel
def bounds_of_rows(first, count, stepper, tableau, k):
    """Return bounds of the first and second derivative, and of the length, of a vector in rows of the state.

    The vector has `count` rows, and its first row is `first`. Derivatives are with respect to the fraction of the step.
    """
    rate, bend, size = bounds_of_row(first, stepper, tableau, k)
    rate, bend, size = rate * rate, bend * bend, size * size
    for j in range(first + 1, first + count):
        r, b, s = bounds_of_row(j, stepper, tableau, k)
        rate, bend, size = rate + r * r, bend + b * b, size + s * s
    return math.sqrt(rate), math.sqrt(bend), math.sqrt(size)


@kernel
def bounds_of_row(j, stepper, tableau, k):
    """Return bounds of the first and second derivative, and of the value, of a row of the state.

    Derivatives are by the fraction of the step. The coefficients of a derivative in the basis of Bernstein polynomials
    bound it.
    """
    y, y_new, h = stepper.y, stepper.y_new, stepper.control[controls.H, k]
    a, b, c, d = polynomial_of_row(tableau, y, y_new, h, stepper.rates, j, k)
    two, third = constant_like(y, 2.0), constant_like(y, 1.0 / 3.0)
    b, c, d = two * b, (two + constant_like(y, 1.0)) * c, two * (two * d)  # the derivative is a + b x + c x^2 + d x^3
    rate = max(abs(a), abs(a + third * b))
    rate = max(rate, abs(a + third * (two * b + c)))
    rate = max(rate, abs(a + b + c + d))
    bend = max(abs(b), abs(b + c))
    bend = max(bend, abs(b + two * c + (two + constant_like(y, 1.0)) * d))
    return rate, bend, abs(y[j, k]) + rate
