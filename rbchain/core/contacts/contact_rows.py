"""Rows of dry friction, joint stops and contacts: gaps, velocities, and the velocities that impulses cause.

`contact_layout` describes the elements and their rows. The response of a row is Y = H^-1 J^T, the velocity that a unit
impulse causes. It follows from the articulated-body factors of the last dynamics by an inward sweep along the path to
the base and an outward sweep over the tree, as for constraints (`constraint_solver`). In a closed chain, the response
includes the impulses of the constraints, so that it satisfies the constraints. In an implicit step, the factors contain
the stiffness and the damping of the joints.

Sources: Featherstone (2008), sections 7.3 and 11.5; Mirtich (1996), "Impulse-based dynamic simulation of rigid body
systems", chapter 4, for impulses by the articulated-body algorithm.
"""

import math

from ...compiling.jit import is_given, kernel, only_if, routine
from ..lanes.lanes import constant_like, select
from ..loops.constrained_dynamics import carry_change, store_targets_of_changes
from ..loops.constraint_solver import respond_to_multipliers, solve_multipliers
from ..spatial.storage import load3, load9, load_force, load_motion, store_spatial
from ..spatial.vectors import (
    Force,
    add3,
    add_motions,
    cross,
    dot,
    motion_at_tip,
    power,
    rotate,
    scale3,
    scale_force,
    subtract3,
    subtract_forces,
    z_axis,
)
from ..tree.joints import add_joint_motion, joint_bias, joint_force
from ..tree.kinematics import body_axes, force_on_parent, place_dof
from ..tree.layout import (
    PARAM_ADVANCE,
    ROW_A,
    ROW_DINV,
    ROW_LEVER,
    ROW_POSITION,
    ROW_R,
    ROW_U,
    ROW_V,
    apply_gravity,
    parameter,
    remove_gravity,
)
from .contact_layout import (
    CONTACT_BIAS,
    CONTACT_DIAGONAL,
    CONTACT_FRICTION,
    CONTACT_GAP,
    CONTACT_INVERSE,
    CONTACT_NORMAL,
    ELEMENT_DOF,
    ELEMENT_KIND,
    ELEMENT_NUMBERS,
    ELEMENT_OTHER,
    ELEMENT_ROW,
    ELEMENT_SIGN,
    FRICTION,
    PAIR,
    PAIR_OTHER_POINT,
    PAIR_POINT,
    PAIR_RADII,
    ROUGH_AXES,
    ROUGH_OTHER_RADIUS,
    ROUGH_PAIR,
    ROUGH_RADIUS,
    SPHERE,
    SPHERE_FRICTION,
    SPHERE_NORMAL,
    SPHERE_PLANE_POINT,
    SPHERE_POINT,
    SPHERE_RADIUS,
    SPHERE_TANGENT_A,
    STOP,
    STOP_POSITION,
    has_tangents,
    is_pair,
    rows_of_element,
)


@kernel
def vector_of(numbers, at, k):
    """Return three of the numbers (m, lanes), from index `at` on."""
    return (numbers[at, k], numbers[at + 1, k], numbers[at + 2, k])


@kernel
def direction_of_contact(at, direction, numbers, k):
    """Return the normal (0) or a tangent (1, 2) of a contact, in world axes; its numbers start at index `at`."""
    return vector_of(numbers, at + SPHERE_NORMAL + (SPHERE_TANGENT_A - SPHERE_NORMAL) * direction, k)


@kernel
def lowest_point(e, model, contacts, numbers, work, k):
    """Return the vector from the joint origin of its body to the point of a sphere that is closest to the plane.

    World axes, m.
    """
    i, at = contacts.table[ELEMENT_DOF, e], contacts.table[ELEMENT_NUMBERS, e]
    center = rotate(body_axes(i, model, work, k), vector_of(numbers, at + SPHERE_POINT, k))
    return subtract3(center, scale3(numbers[at + SPHERE_RADIUS, k], vector_of(numbers, at + SPHERE_NORMAL, k)))


@kernel
def acceleration_of_lowest_point(e, model, contacts, numbers, work, k):
    """Return d u / dt of the lowest point of a sphere, from the velocities in V and the accelerations in A.

    World axes, m/s^2. The point has the velocity v_c - omega x r n. The normal n is constant, so the derivative of this
    velocity is a_c - alpha x r n.
    """
    i, at = contacts.table[ELEMENT_DOF, e], contacts.table[ELEMENT_NUMBERS, e]
    below = scale3(numbers[at + SPHERE_RADIUS, k], vector_of(numbers, at + SPHERE_NORMAL, k))
    center = add3(lowest_point(e, model, contacts, numbers, work, k), below)
    v, a = load_motion(work.dof, i, ROW_V, k), load_motion(work.dof, i, ROW_A, k)
    return subtract3(acceleration_of_point(v, a, center), cross(a.ang, below))


@kernel
def acceleration_of_point(v, a, point):
    """Return the acceleration of a point of a body, m/s^2, from the motion of its frame; `point` is the lever to it."""
    return add3(motion_at_tip(a, point).lin, cross(v.ang, motion_at_tip(v, point).lin))


@kernel
def center_of_sphere(i, at, model, numbers, work, k):
    """Return the vector from joint origin i, or from the origin of the world, to a point whose numbers start at `at`.

    World axes, m.
    """
    point = vector_of(numbers, at, k)
    return point if i == model.parent.shape[0] else rotate(body_axes(i, model, work, k), point)


@kernel
def line_of_centers(e, model, contacts, numbers, work, k):
    """Return the levers of the first and the second centre of two spheres, and the direction and length of their line.

    World axes, m. Reads R and POSITION.
    """
    table, at = contacts.table, contacts.table[ELEMENT_NUMBERS, e]
    other, i = table[ELEMENT_OTHER, e], table[ELEMENT_DOF, e]
    first = center_of_sphere(other, at + PAIR_OTHER_POINT, model, numbers, work, k)
    second = center_of_sphere(i, at + PAIR_POINT, model, numbers, work, k)
    line = subtract3(
        add3(load3(work.dof, i, ROW_POSITION, k), second), add3(load3(work.dof, other, ROW_POSITION, k), first)
    )
    length = math.sqrt(dot(line, line))
    return first, second, scale3(constant_like(length, 1.0) / positive_length(length), line), length


@kernel
def positive_length(length):
    """Return the length, or 1 if it is zero: concentric spheres penetrate, and their line has the direction zero."""
    one = constant_like(length, 1.0) + (length - length)
    return select(length > constant_like(length, 0.0), length, one)


@kernel
def directions_of_pair(n, at, numbers, k):
    """Return the normal n of two spheres and two tangents, which turn with it.

    With orthonormal axes c, e_1 and e_2 among the numbers, the smallest rotation from c to n turns e_i to
    t_i = e_i - (e_i . n) / (1 + c . n) (c + n). The tangents are smooth functions of n except at n = -c.
    """
    c, one = vector_of(numbers, at + ROUGH_AXES, k), constant_like(numbers, 1.0)
    weight, middle = one / positive_length(one + dot(c, n)), add3(c, n)
    first, second = vector_of(numbers, at + ROUGH_AXES + 3, k), vector_of(numbers, at + ROUGH_AXES + 6, k)
    return (
        n,
        subtract3(first, scale3(weight * dot(first, n), middle)),
        subtract3(second, scale3(weight * dot(second, n), middle)),
    )


@kernel
def levers_of_pair(e, model, contacts, numbers, work, k):
    """Return the levers of the touching points of the first and the second of two rough spheres, and their line.

    The line of the centres consists of its direction and its length. World axes, m.
    """
    at = contacts.table[ELEMENT_NUMBERS, e]
    first, second, n, d = line_of_centers(e, model, contacts, numbers, work, k)
    first = add3(first, scale3(numbers[at + ROUGH_OTHER_RADIUS, k], n))
    return first, subtract3(second, scale3(numbers[at + ROUGH_RADIUS, k], n)), n, d


@kernel
def acceleration_of_touching_points(e, model, contacts, numbers, work, k):
    """Return d w / dt of the relative velocity w of the touching points of two rough spheres, world axes, m/s^2.

    Reads the velocities in V and the accelerations in A. The point of the second sphere, with radius r, has the
    velocity v - omega x r n. The point of the first sphere has the velocity v + omega x r n. The normal n turns with
    the centres.
    """
    table, dof, at = contacts.table, work.dof, contacts.table[ELEMENT_NUMBERS, e]
    first, second, n, d = line_of_centers(e, model, contacts, numbers, work, k)
    other, i = table[ELEMENT_OTHER, e], table[ELEMENT_DOF, e]
    v, a = load_motion(dof, i, ROW_V, k), load_motion(dof, i, ROW_A, k)
    v_other, a_other = load_motion(dof, other, ROW_V, k), load_motion(dof, other, ROW_A, k)
    w = subtract3(motion_at_tip(v, second).lin, motion_at_tip(v_other, first).lin)
    change = subtract3(acceleration_of_point(v, a, second), acceleration_of_point(v_other, a_other, first))
    turn = scale3(constant_like(d, 1.0) / positive_length(d), subtract3(w, scale3(dot(n, w), n)))
    below = add3(cross(a.ang, n), cross(v.ang, turn))
    above = add3(cross(a_other.ang, n), cross(v_other.ang, turn))
    radii = add3(scale3(numbers[at + ROUGH_RADIUS, k], below), scale3(numbers[at + ROUGH_OTHER_RADIUS, k], above))
    return subtract3(change, radii)


@kernel
def acceleration_between_centers(e, model, contacts, numbers, work, k):
    """Return d u / dt of two spheres, from the velocities in V and the accelerations in A.

    Let w be the velocity of the second centre relative to the first, and u = n . w. The line of the centres has the
    length d and the direction n. It turns with dn/dt = (w - u n) / d, so du/dt = n . dw/dt + |w - u n|^2 / d.
    """
    table, dof = contacts.table, work.dof
    first, second, n, d = line_of_centers(e, model, contacts, numbers, work, k)
    other, i = table[ELEMENT_OTHER, e], table[ELEMENT_DOF, e]
    v, a = load_motion(dof, i, ROW_V, k), load_motion(dof, i, ROW_A, k)
    v_other, a_other = load_motion(dof, other, ROW_V, k), load_motion(dof, other, ROW_A, k)
    w = subtract3(motion_at_tip(v, second).lin, motion_at_tip(v_other, first).lin)
    change = subtract3(acceleration_of_point(v, a, second), acceleration_of_point(v_other, a_other, first))
    across = subtract3(w, scale3(dot(n, w), n))
    return dot(n, change) + dot(across, across) / positive_length(d)


@routine
def update_gaps(model, contacts, q, numbers, work, k):
    """Compute the gaps of stops and contacts at q (nq, lanes), m or rad. Reads R and LEVER; writes POSITION."""
    table, rows = contacts.table, contacts.rows
    for i in range(model.parent.shape[0]):
        place_dof(i, model, work, k)
    for e in range(table.shape[1]):
        if table[ELEMENT_KIND, e] != FRICTION:
            rows[table[ELEMENT_ROW, e], CONTACT_GAP, k] = gap_of_element(e, model, contacts, q, numbers, work, k)


@kernel
def gap_of_element(e, model, contacts, q, numbers, work, k):
    """Return the gap of a stop or a contact at q (nq, lanes), m or rad. Reads R, LEVER and POSITION."""
    table, dof = contacts.table, work.dof
    i, at = table[ELEMENT_DOF, e], table[ELEMENT_NUMBERS, e]
    if table[ELEMENT_KIND, e] == SPHERE:
        point = add3(load3(dof, i, ROW_POSITION, k), lowest_point(e, model, contacts, numbers, work, k))
        above = subtract3(point, vector_of(numbers, at + SPHERE_PLANE_POINT, k))
        return dot(vector_of(numbers, at + SPHERE_NORMAL, k), above)
    if is_pair(table[ELEMENT_KIND, e]):
        return line_of_centers(e, model, contacts, numbers, work, k)[3] - numbers[at + PAIR_RADII, k]
    travel = q[model.coordinate[i], k] - numbers[at + STOP_POSITION, k]
    return travel if table[ELEMENT_SIGN, e] > 0 else -travel


@kernel
def size_of_gap(e, model, contacts, q, numbers, work, k):
    """Return the sum of the absolute values of the terms that cancel in a gap, m or rad. Reads POSITION."""
    table, dof = contacts.table, work.dof
    i, at = table[ELEMENT_DOF, e], table[ELEMENT_NUMBERS, e]
    if table[ELEMENT_KIND, e] == STOP:
        return abs(q[model.coordinate[i], k]) + abs(numbers[at + STOP_POSITION, k])
    size = sum_of_sizes(load3(dof, i, ROW_POSITION, k)) + sum_of_sizes(vector_of(numbers, at, k))
    if table[ELEMENT_KIND, e] == SPHERE:
        return size + sum_of_sizes(vector_of(numbers, at + SPHERE_PLANE_POINT, k)) + numbers[at + SPHERE_RADIUS, k]
    size = size + sum_of_sizes(load3(dof, table[ELEMENT_OTHER, e], ROW_POSITION, k)) + numbers[at + PAIR_RADII, k]
    return size + sum_of_sizes(vector_of(numbers, at + PAIR_OTHER_POINT, k))


@kernel
def sum_of_sizes(v):
    """Return the sum of the absolute values of a vector."""
    return abs(v[0]) + abs(v[1]) + abs(v[2])


@kernel
def rate_of_gap(e, model, contacts, qd, numbers, work, k):
    """Return the rate of the gap of a stop or a contact, m/s or rad/s. Reads R, LEVER, POSITION and V."""
    table, dof = contacts.table, work.dof
    i, at = table[ELEMENT_DOF, e], table[ELEMENT_NUMBERS, e]
    if table[ELEMENT_KIND, e] == STOP:
        return qd[i, k] if table[ELEMENT_SIGN, e] > 0 else -qd[i, k]
    v = load_motion(dof, i, ROW_V, k)
    if table[ELEMENT_KIND, e] == SPHERE:
        point = motion_at_tip(v, lowest_point(e, model, contacts, numbers, work, k)).lin
        return dot(vector_of(numbers, at + SPHERE_NORMAL, k), point)
    first, second, n, _ = line_of_centers(e, model, contacts, numbers, work, k)
    point = motion_at_tip(load_motion(dof, table[ELEMENT_OTHER, e], ROW_V, k), first).lin
    return dot(n, subtract3(motion_at_tip(v, second).lin, point))


@routine
def update_biases(model, contacts, qd, numbers, work, k):
    """Compute d u / dt of all rows without accelerations of the joints. Reads R, LEVER and V; writes A and POSITION."""
    table, rows, dof = contacts.table, contacts.rows, work.dof
    remove_gravity(model, work, k)
    for i in range(model.parent.shape[0]):
        axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
        a = motion_at_tip(load_motion(dof, model.parent[i], ROW_A, k), load3(dof, i, ROW_LEVER, k))
        c = joint_bias(model.joint[i], load_motion(dof, i, ROW_V, k), axis, advance, qd[i, k])
        store_spatial(dof, i, ROW_A, k, add_motions(a, c))
        place_dof(i, model, work, k)
    for e in range(table.shape[1]):
        at, row = table[ELEMENT_NUMBERS, e], table[ELEMENT_ROW, e]
        if table[ELEMENT_KIND, e] == SPHERE:
            bias = acceleration_of_lowest_point(e, model, contacts, numbers, work, k)
            for direction in range(3):
                rows[row + direction, CONTACT_BIAS, k] = dot(direction_of_contact(at, direction, numbers, k), bias)
        elif is_pair(table[ELEMENT_KIND, e]):
            rows[row, CONTACT_BIAS, k] = acceleration_between_centers(e, model, contacts, numbers, work, k)
            if table[ELEMENT_KIND, e] == ROUGH_PAIR:
                store_tangential_accelerations(e, CONTACT_BIAS, rows, model, contacts, numbers, work, k)
        else:
            rows[row, CONTACT_BIAS, k] = qd[0, k] - qd[0, k]
    apply_gravity(model, work, k)


@kernel
def store_tangential_accelerations(e, column, rows, model, contacts, numbers, work, k):
    """Store the accelerations of the tangents of two rough spheres in a column of `rows`, as for a constant normal."""
    row, at = contacts.table[ELEMENT_ROW, e], contacts.table[ELEMENT_NUMBERS, e]
    n = line_of_centers(e, model, contacts, numbers, work, k)[2]
    change = acceleration_of_touching_points(e, model, contacts, numbers, work, k)
    _, first, second = directions_of_pair(n, at, numbers, k)
    rows[row + 1, column, k] = dot(first, change)
    rows[row + 2, column, k] = dot(second, change)


@kernel
def update_contact_rows(model, contacts, constraints, numbers, work, k):
    """Compute J, Y = H^-1 J^T and J Y of all rows: see `update_jacobian` and `update_responses`."""
    update_jacobian(model, contacts, numbers, work, k)
    update_responses(model, contacts, constraints, numbers, work, k)


@routine
def update_jacobian(model, contacts, numbers, work, k):
    """Compute J (m, n, lanes). Reads R, LEVER and POSITION; writes the directions of pairs of spheres to NORMAL."""
    table, rows = contacts.table, contacts.rows
    for row in range(rows.shape[0]):
        for i in range(model.parent.shape[0]):
            contacts.jacobian[row, i, k] = numbers[0, k] - numbers[0, k]
    for e in range(table.shape[1]):
        i, at, row = table[ELEMENT_DOF, e], table[ELEMENT_NUMBERS, e], table[ELEMENT_ROW, e]
        if table[ELEMENT_KIND, e] == SPHERE:
            lever = lowest_point(e, model, contacts, numbers, work, k)
            for direction in range(3):
                d = direction_of_contact(at, direction, numbers, k)
                add_to_jacobian(row + direction, i, Force(cross(lever, d), d), model, contacts, work, k)
        elif table[ELEMENT_KIND, e] == PAIR:
            first, second, d, _ = line_of_centers(e, model, contacts, numbers, work, k)
            back = (-d[0], -d[1], -d[2])
            for axis in range(3):
                rows[row, CONTACT_NORMAL + axis, k] = d[axis]
            add_to_jacobian(row, i, Force(cross(second, d), d), model, contacts, work, k)
            add_to_jacobian(row, table[ELEMENT_OTHER, e], Force(cross(first, back), back), model, contacts, work, k)
        elif table[ELEMENT_KIND, e] == ROUGH_PAIR:
            first, second, n, _ = levers_of_pair(e, model, contacts, numbers, work, k)
            row_of_direction = row
            for d in directions_of_pair(n, at, numbers, k):
                back = (-d[0], -d[1], -d[2])
                for axis in range(3):
                    rows[row_of_direction, CONTACT_NORMAL + axis, k] = d[axis]
                other = table[ELEMENT_OTHER, e]
                add_to_jacobian(row_of_direction, i, Force(cross(second, d), d), model, contacts, work, k)
                add_to_jacobian(row_of_direction, other, Force(cross(first, back), back), model, contacts, work, k)
                row_of_direction += 1
        else:
            zero = numbers[at, k] - numbers[at, k]
            contacts.jacobian[row, i, k] = zero + constant_like(zero, table[ELEMENT_SIGN, e])


@routine
def add_to_jacobian(row, dof_of_body, f, model, contacts, work, k):
    """Add S . f of the dofs that move a body to a row of J; f is a unit impulse on the body about its joint origin."""
    n, dof, jacobian, i = model.parent.shape[0], work.dof, contacts.jacobian, dof_of_body
    while i < n:
        axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
        jacobian[row, i, k] = jacobian[row, i, k] + joint_force(model.joint[i], axis, advance, f)
        f = force_on_parent(i, f, model, work, k)
        i = model.parent[i]


@routine
def update_responses(model, contacts, constraints, numbers, work, k):
    """Compute Y = H^-1 J^T (m, n, lanes) and J Y (m, m, lanes) of all rows, from J.

    Reads R, LEVER, POSITION, U and DINV of the last dynamics and, for closed chains, the factors of the constraints;
    writes A.
    """
    table, rows = contacts.table, contacts.rows
    remove_gravity(model, work, k)
    for e in range(table.shape[1]):
        i, at, row = table[ELEMENT_DOF, e], table[ELEMENT_NUMBERS, e], table[ELEMENT_ROW, e]
        if table[ELEMENT_KIND, e] == SPHERE:
            lever = lowest_point(e, model, contacts, numbers, work, k)
            for direction in range(3):
                d = direction_of_contact(at, direction, numbers, k)
                zero = d[0] - d[0]
                respond_to_impulse(row + direction, i, zero, Force(cross(lever, d), d), model, contacts, work, k)
                close_response(row + direction, model, contacts, constraints, work, k)
            rows[row, CONTACT_FRICTION, k] = numbers[at + SPHERE_FRICTION, k]
        elif table[ELEMENT_KIND, e] == PAIR:
            first, second, d, _ = line_of_centers(e, model, contacts, numbers, work, k)
            respond_to_pair(e, row, first, second, d, model, contacts, work, k)
            close_response(row, model, contacts, constraints, work, k)
        elif table[ELEMENT_KIND, e] == ROUGH_PAIR:
            first, second, n, _ = levers_of_pair(e, model, contacts, numbers, work, k)
            row_of_direction = row
            for d in directions_of_pair(n, at, numbers, k):
                respond_to_pair(e, row_of_direction, first, second, d, model, contacts, work, k)
                close_response(row_of_direction, model, contacts, constraints, work, k)
                row_of_direction += 1
            rows[row, CONTACT_FRICTION, k] = numbers[at + SPHERE_FRICTION, k]
        elif is_upper_stop_after_lower(e, table):
            copy_opposite_response(row, model, contacts, k)
        else:
            zero = numbers[at, k] - numbers[at, k]
            sign = zero + constant_like(zero, table[ELEMENT_SIGN, e])
            no_force = Force((zero, zero, zero), (zero, zero, zero))
            respond_to_impulse(row, i, sign, no_force, model, contacts, work, k)
            close_response(row, model, contacts, constraints, work, k)
    apply_gravity(model, work, k)
    assemble_contact_matrix(model, contacts, k)


@kernel
def is_upper_stop_after_lower(e, table):
    """Whether element e is the upper stop of a dof whose lower stop is the element before."""
    if e == 0 or table[ELEMENT_KIND, e] != STOP or table[ELEMENT_KIND, e - 1] != STOP:
        return False
    return table[ELEMENT_DOF, e] == table[ELEMENT_DOF, e - 1] and table[ELEMENT_SIGN, e] != table[ELEMENT_SIGN, e - 1]


@kernel
def copy_opposite_response(row, model, contacts, k):
    """Set the response of a row to the negative response of the previous row."""
    for i in range(model.parent.shape[0]):
        contacts.responses[row, i, k] = -contacts.responses[row - 1, i, k]


@kernel
def respond_to_impulse(row, dof_of_row, motor, f, model, contacts, work, k):
    """Compute the response of the open chain to a unit impulse: `motor` on a dof, and f on its body.

    u = motor + S . f,  f_parent = f - U u / D,  Y = (u - U . a_parent) / D
    """
    for i in range(model.parent.shape[0]):
        contacts.responses[row, i, k] = motor - motor
    pass_impulse(row, dof_of_row, motor, f, model, contacts, work, k)
    spread_response(row, model, contacts, work, k)


@kernel
def respond_to_pair(e, row, first, second, d, model, contacts, work, k):
    """Compute the response of the open chain to a unit impulse along d between two spheres, positive on the second.

    The impulse acts at the end of the lever `second`, and the opposite impulse at the end of the lever `first`. Both
    impulses are passed to the base one after the other, and their responses add up.
    """
    table, zero = contacts.table, d[0] - d[0]
    back = (-d[0], -d[1], -d[2])
    for i in range(model.parent.shape[0]):
        contacts.responses[row, i, k] = zero
    pass_impulse(row, table[ELEMENT_DOF, e], zero, Force(cross(second, d), d), model, contacts, work, k)
    pass_impulse(row, table[ELEMENT_OTHER, e], zero, Force(cross(first, back), back), model, contacts, work, k)
    spread_response(row, model, contacts, work, k)


@routine
def pass_impulse(row, dof_of_row, motor, f, model, contacts, work, k):
    """Add the generalised impulses u due to `motor` on a dof and f on its body to the response of a row."""
    n, dof, responses = model.parent.shape[0], work.dof, contacts.responses
    i, at_joint = dof_of_row, motor
    while i < n:
        axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
        u = at_joint + joint_force(model.joint[i], axis, advance, f)
        responses[row, i, k] = responses[row, i, k] + u
        passed = subtract_forces(f, scale_force(dof[i, ROW_DINV, k] * u, load_force(dof, i, ROW_U, k)))
        f = force_on_parent(i, passed, model, work, k)
        at_joint = motor - motor
        i = model.parent[i]


@routine
def spread_response(row, model, contacts, work, k):
    """Replace the generalised impulses u of a row by the velocities that they cause, from the base to the tips."""
    dof, responses = work.dof, contacts.responses
    for i in range(model.parent.shape[0]):
        axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
        a = motion_at_tip(load_motion(dof, model.parent[i], ROW_A, k), load3(dof, i, ROW_LEVER, k))
        change = dof[i, ROW_DINV, k] * (responses[row, i, k] - power(load_force(dof, i, ROW_U, k), a))
        responses[row, i, k] = change
        store_spatial(dof, i, ROW_A, k, add_joint_motion(model.joint[i], a, axis, advance, change))


@only_if(lambda row, model, contacts, constraints, work, k: is_given(constraints))
@kernel
def close_response(row, model, contacts, constraints, work, k):
    """Remove the part of a response that violates the constraints: Y - H^-1 J^T (J H^-1 J^T)^-1 J Y."""
    n = model.parent.shape[0]
    for i in range(n):
        constraints.changes[i, k] = contacts.responses[row, i, k]
        carry_change(i, model, constraints.changes, work, k)
    store_targets_of_changes(constraints, work, k)
    solve_multipliers(constraints, work, k)
    respond_to_multipliers(model, constraints, work, k)
    for i in range(n):
        contacts.responses[row, i, k] = contacts.responses[row, i, k] + constraints.changes[i, k]


@routine
def assemble_contact_matrix(model, contacts, k):
    """Compute J Y (m, m, lanes), and the reciprocals of its diagonal, with which the solver scales impulses."""
    table, matrix, rows = contacts.table, contacts.matrix, contacts.rows
    zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
    for e in range(table.shape[1]):
        first, count = table[ELEMENT_ROW, e], rows_of_element(e, table)
        for row in range(first, first + count):
            for d in range(e, table.shape[1]):
                start = table[ELEMENT_ROW, d]
                for other in range(max(row, start), start + rows_of_element(d, table)):
                    if has_tangents(table[ELEMENT_KIND, d]) or table[ELEMENT_KIND, d] == PAIR:
                        total = row_of_velocity(e, row, model, contacts, contacts.responses[other], k)
                    else:  # the product in the other order has one term
                        total = row_of_velocity(d, other, model, contacts, contacts.responses[row], k)
                    matrix[row, other, k] = total
                    matrix[other, row, k] = total
            rows[row, CONTACT_DIAGONAL, k] = matrix[row, row, k]
        for row in range(first, first + count):
            diagonal = rows[row, CONTACT_DIAGONAL, k]
            if row > first:  # a bound of the largest eigenvalue of the tangents
                across = abs(matrix[first + 1, first + 2, k])
                diagonal = max(matrix[first + 1, first + 1, k], matrix[first + 2, first + 2, k]) + across
            acts = diagonal > zero
            rows[row, CONTACT_INVERSE, k] = select(acts, one / select(acts, diagonal, one), zero * diagonal)


@kernel
def row_of_velocity(e, row, model, contacts, v, k):
    """Compute J v for one row of element e, from velocities v (n, lanes)."""
    i, n = contacts.table[ELEMENT_DOF, e], model.parent.shape[0]
    if is_pair(contacts.table[ELEMENT_KIND, e]):  # J is zero outside the paths to both bodies
        total = contacts.jacobian[row, 0, k] * v[0, k]
        for j in range(1, n):
            total = total + contacts.jacobian[row, j, k] * v[j, k]
        return total
    total = contacts.jacobian[row, i, k] * v[i, k]
    if contacts.table[ELEMENT_KIND, e] == SPHERE:
        i = model.parent[i]
        while i < n:
            total = total + contacts.jacobian[row, i, k] * v[i, k]
            i = model.parent[i]
    return total


@routine
def update_row_velocities(model, contacts, v, column, k):
    """Compute J v of all rows from v (n, lanes), and store it in a column of the rows."""
    table = contacts.table
    for e in range(table.shape[1]):
        first, count = table[ELEMENT_ROW, e], rows_of_element(e, table)
        for row in range(first, first + count):
            contacts.rows[row, column, k] = row_of_velocity(e, row, model, contacts, v, k)


@routine
def add_responses(responses, rows, column, v, k):
    """Add the velocities that impulses in a column of `rows` (m, columns, lanes) cause to v (n, lanes).

    With forces instead of impulses, add the accelerations that they cause.
    """
    for row in range(rows.shape[0]):
        for i in range(v.shape[0]):
            v[i, k] = v[i, k] + responses[row, i, k] * rows[row, column, k]
