"""Responses of the rows of dry friction, joint stops and contacts: the velocities that impulses cause.

The response of a row is Y = H^-1 J^T, the velocity that a unit impulse causes. It follows from the articulated-body
factors of the last dynamics by an inward sweep along the path to the base and an outward sweep over the tree, as for
constraints (`constraint_solver`). With closed loops, the response includes the impulses of the constraints, so it
satisfies the constraints. In an implicit step, the factors contain the stiffness and the damping of the joints.

Sources: Featherstone (2008), sections 7.3 and 11.5; Mirtich (1996), "Impulse-based dynamic simulation of rigid body
systems", chapter 4, for impulses by the articulated-body algorithm.

`contact_layout` describes the arguments. The response of a row is `Contacts.responses[row]` (n, lanes), in rad/s or m/s
per N s or N m s.
"""

from ...compiling.jit import is_given, kernel, only_if, routine
from ..lanes.lanes import constant_like, nan_unless_finite, select, zeros_like
from ..loops.constrained_dynamics import carry_change, store_targets_of_changes
from ..loops.constraint_solver import respond_to_multipliers, solve_multipliers
from ..spatial.storage import load3, load6, load9, load_force, load_motion, store3, store_spatial
from ..spatial.vectors import Force, Motion, add3, motion_at_tip, power, scale3, scale_force, subtract_forces, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import add_joint_motion, joint_force
from ..tree.kinematics import force_on_parent
from ..tree.layout import apply_gravity, parameter, remove_gravity
from . import contact_layout as contact, element_layout as element
from .contact_layout import has_tangents, is_contact
from .contact_reduction import factorize, is_reduced
from .contact_rows import impulse_on_first_body, impulse_on_second_body, row_of_velocity


@routine
def update_responses(model, contacts, constraints, numbers, work, k):
    """Compute Y = H^-1 J^T (m, n, lanes) and J Y (m, m, lanes) of all rows.

    Reads J, and the levers and directions of contacts from `update_jacobian`, R, LEVER, U and DINV of the last dynamics
    and, for closed loops, the factors of the constraints; writes A.
    """
    table = contacts.table
    for e in range(table.shape[1]):
        first = table[element.ROW, e]
        if has_tangents(e, table):
            contacts.rows[first, contact.FRICTION, k] = numbers[table[element.NUMBERS, e] + element.NUMBER_FRICTION, k]
    remove_gravity(model, work, k)
    if is_reduced(contacts):
        respond_to_forces(model, contacts, numbers, work, k)
        combine_responses(model, contacts, k)
        factorize(contacts, k)
    else:
        respond_to_rows(model, contacts, constraints, numbers, work, k)
        assemble_contact_matrix(model, contacts, k)
    apply_gravity(model, work, k)
    invert_diagonal(contacts, k)


@routine
def respond_to_rows(model, contacts, constraints, numbers, work, k):
    """Compute the responses of all rows one by one."""
    table = contacts.table
    for e in range(table.shape[1]):
        first = table[element.ROW, e]
        if is_upper_stop_after_lower(e, table):
            copy_opposite_response(first, model, contacts, k)
            continue
        for row in range(first, first + table[element.SIZE, e]):
            zero = zeros_like(numbers[0, k])
            for i in range(model.parent.shape[0]):
                contacts.responses[row, i, k] = zero
            pass_impulses(e, row, zero, model, contacts, work, k)
            spread_response(row, contacts.responses, model, work, k)
            close_response(row, model, contacts, constraints, work, k)


@routine
def respond_to_forces(model, contacts, numbers, work, k):
    """Compute the responses (c, n, lanes) to the six unit forces on each body with points on the world, and K.

    Writes K, the velocities of the bodies that these forces cause, to the upper triangle of `Contacts.reduced`.
    """
    table, bodies, zero = contacts.table, contacts.bodies, zeros_like(numbers[0, k])
    for group in range(bodies.shape[0] // 6):
        for i in range(6):
            row, unit = 6 * group + i, unit_force(i, zero)
            for j in range(model.parent.shape[0]):
                bodies[row, j, k] = zero
            pass_impulse(row, dof_of_group(group, table), zero, unit, bodies, model, work, k)
            spread_response(row, bodies, model, work, k)
            for other in range(group, bodies.shape[0] // 6):
                body = dof_of_group(other, table)
                for j in range(6):
                    contacts.reduced[row, 6 * other + j, k] = work.dof[body, frame.A + j, k]


@kernel
def unit_force(i, zero):
    """Return the Force whose entry i is 1; `zero` is the number zero of each lane."""
    one = zero + constant_like(zero, 1.0)
    ang = (one if i == 0 else zero, one if i == 1 else zero, one if i == 2 else zero)
    lin = (one if i == 3 else zero, one if i == 4 else zero, one if i == 5 else zero)
    return Force(ang, lin)


@kernel
def dof_of_group(group, table):
    """Return the dof of the body with this number in element.GROUP."""
    for e in range(table.shape[1]):
        if table[element.GROUP, e] == group:
            return table[element.DOF, e]
    return 0


@routine
def combine_responses(model, contacts, k):
    """Compute the responses of all rows, and J H^-1 J^T, from the responses and K of `respond_to_forces`."""
    table, rows, bodies = contacts.table, contacts.rows, contacts.bodies
    for e in range(table.shape[1]):
        first, unknown = table[element.ROW, e], 6 * table[element.GROUP, e]
        for row in range(first, first + 3):
            store_spatial(rows, row, contact.BASIS, k, impulse_on_second_body(row, first, contacts, k))
            f = load6(rows, row, contact.BASIS, k)
            for j in range(model.parent.shape[0]):
                total = f[0] * bodies[unknown, j, k] + f[1] * bodies[unknown + 1, j, k]
                total = total + f[2] * bodies[unknown + 2, j, k] + f[3] * bodies[unknown + 3, j, k]
                contacts.responses[row, j, k] = (
                    total + f[4] * bodies[unknown + 4, j, k] + f[5] * bodies[unknown + 5, j, k]
                )
    for e in range(table.shape[1]):
        for row in range(table[element.ROW, e], table[element.ROW, e] + 3):
            for group in range(table[element.GROUP, e] + 1):
                motion = motion_of_body(6 * group, 6 * table[element.GROUP, e], row, contacts, k)
                for d in range(table.shape[1]):
                    if table[element.GROUP, d] == group:
                        for other in range(table[element.ROW, d], table[element.ROW, d] + 3):
                            total = power(load_force(rows, other, contact.BASIS, k), motion)
                            contacts.matrix[row, other, k] = total
                            contacts.matrix[other, row, k] = total


@kernel
def motion_of_body(first, unknown, row, contacts, k):
    """Return the Motion of the body whose first unknown is `first` due to a unit impulse of a row, m/s and rad/s.

    `unknown` is the first unknown of the body of the row.
    """
    reduced, impulse = contacts.reduced, load_motion(contacts.rows, row, contact.BASIS, k)
    ang = (
        power(load_force(reduced, first, unknown, k), impulse),
        power(load_force(reduced, first + 1, unknown, k), impulse),
        power(load_force(reduced, first + 2, unknown, k), impulse),
    )
    lin = (
        power(load_force(reduced, first + 3, unknown, k), impulse),
        power(load_force(reduced, first + 4, unknown, k), impulse),
        power(load_force(reduced, first + 5, unknown, k), impulse),
    )
    return Motion(ang, lin)


@kernel
def is_upper_stop_after_lower(e, table):
    """Whether element e is the upper stop of a dof whose lower stop is the element before."""
    if e == 0 or table[element.KIND, e] != element.STOP or table[element.KIND, e - 1] != element.STOP:
        return False
    return table[element.DOF, e] == table[element.DOF, e - 1] and table[element.SIGN, e] != table[element.SIGN, e - 1]


@kernel
def copy_opposite_response(row, model, contacts, k):
    """Set the response of a row to the negative response of the previous row."""
    for i in range(model.parent.shape[0]):
        contacts.responses[row, i, k] = -contacts.responses[row - 1, i, k]


@kernel
def pass_impulses(e, row, zero, model, contacts, work, k):
    """Add the generalized impulses u due to a unit impulse of a row of element e to the response of the row.

    `zero` is the number zero of each lane.
    """
    table = contacts.table
    i, other, first = table[element.DOF, e], table[element.OTHER, e], table[element.ROW, e]
    if is_contact(e, table):
        f = impulse_on_second_body(row, first, contacts, k)
        pass_impulse(row, i, zero, f, contacts.responses, model, work, k)
        if other < model.parent.shape[0]:
            f = impulse_on_first_body(row, first, contacts, k)
            pass_impulse(row, other, zero, f, contacts.responses, model, work, k)
    else:
        motor = zero + constant_like(zero, table[element.SIGN, e])
        f = Force((zero, zero, zero), (zero, zero, zero))
        pass_impulse(row, i, motor, f, contacts.responses, model, work, k)


@routine
def pass_impulse(row, dof_of_row, motor, f, responses, model, work, k):
    """Add the generalized impulses u due to `motor` on a dof and f on its body to the response of a row.

    u = motor + S . f,  f_parent = f - U u / D

    `motor` is in N m s or N s. f is a Force in world axes about the joint origin of `dof_of_row`, N m s and N s.
    """
    n, dof = model.parent.shape[0], work.dof
    i, at_joint = dof_of_row, motor
    while i < n:
        axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
        u = at_joint + joint_force(model.joint[i], axis, advance, f)
        responses[row, i, k] = responses[row, i, k] + u
        passed = subtract_forces(f, scale_force(dof[i, frame.DINV, k] * u, load_force(dof, i, frame.U, k)))
        f = force_on_parent(i, passed, model, work, k)
        at_joint = nan_unless_finite(motor)
        i = model.parent[i]


@routine
def spread_response(row, responses, model, work, k):
    """Replace the generalized impulses u of a row by the velocities Y that they cause, from the base to the tips.

    Y = (u - U . a_parent) / D
    """
    dof = work.dof
    for i in range(model.parent.shape[0]):
        axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
        a = motion_at_tip(load_motion(dof, model.parent[i], frame.A, k), load3(dof, i, frame.LEVER, k))
        change = dof[i, frame.DINV, k] * (responses[row, i, k] - power(load_force(dof, i, frame.U, k), a))
        responses[row, i, k] = change
        store_spatial(dof, i, frame.A, k, add_joint_motion(model.joint[i], a, axis, advance, change))


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
    """Compute J Y (m, m, lanes)."""
    table = contacts.table
    for e in range(table.shape[1]):
        is_on_world = has_tangents(e, table) and table[element.OTHER, e] >= model.parent.shape[0]
        for d in range(e, table.shape[1]):
            if is_on_world and has_tangents(d, table):
                assemble_block(e, d, model, contacts, k)
            else:
                assemble_rows(e, d, model, contacts, k)


@kernel
def assemble_rows(e, d, model, contacts, k):
    """Compute J Y of the rows of two elements row by row, where e is not larger than d."""
    table, matrix, start = contacts.table, contacts.matrix, contacts.table[element.ROW, d]
    for row in range(table[element.ROW, e], table[element.ROW, e] + table[element.SIZE, e]):
        for other in range(max(row, start), start + table[element.SIZE, d]):
            if is_contact(d, table):
                total = row_of_velocity(e, row, model, contacts, contacts.responses[other], k)
            else:  # the product in the other order has one term
                total = row_of_velocity(d, other, model, contacts, contacts.responses[row], k)
            matrix[row, other, k] = total
            matrix[other, row, k] = total


@kernel
def assemble_block(e, d, model, contacts, k):
    """Compute J Y of a contact e with the world and a contact d, both with tangents, where e is not larger than d."""
    table, jacobian, responses, matrix = contacts.table, contacts.jacobian, contacts.responses, contacts.matrix
    row, other, i, n = table[element.ROW, e], table[element.ROW, d], table[element.DOF, e], model.parent.shape[0]
    v = (responses[other, i, k], responses[other + 1, i, k], responses[other + 2, i, k])
    first, second, third = (
        scale3(jacobian[row, i, k], v),
        scale3(jacobian[row + 1, i, k], v),
        scale3(jacobian[row + 2, i, k], v),
    )
    i = model.parent[i]
    while i < n:  # J is zero outside the path to the body
        v = (responses[other, i, k], responses[other + 1, i, k], responses[other + 2, i, k])
        first = add3(first, scale3(jacobian[row, i, k], v))
        second = add3(second, scale3(jacobian[row + 1, i, k], v))
        third = add3(third, scale3(jacobian[row + 2, i, k], v))
        i = model.parent[i]
    store3(matrix, row + 2, other, k, third)
    store3(matrix, row + 1, other, k, second)
    store3(matrix, row, other, k, first)
    for a in range(3):
        for b in range(a + 1 if e == d else 0, 3):
            matrix[other + b, row + a, k] = matrix[row + a, other + b, k]


@routine
def invert_diagonal(contacts, k):
    """Store the diagonal of J Y, and its reciprocals, with which the solver scales impulses."""
    table, matrix, rows = contacts.table, contacts.matrix, contacts.rows
    zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
    for e in range(table.shape[1]):
        first, count = table[element.ROW, e], table[element.SIZE, e]
        for row in range(first, first + count):
            rows[row, contact.DIAGONAL, k] = matrix[row, row, k]
            diagonal = rows[row, contact.DIAGONAL, k]
            if row > first:  # a bound of the largest eigenvalue of the tangents
                across = abs(matrix[first + 1, first + 2, k])
                diagonal = max(matrix[first + 1, first + 1, k], matrix[first + 2, first + 2, k]) + across
            acts = diagonal > zero
            rows[row, contact.INVERSE, k] = select(acts, one / select(acts, diagonal, one), zero * diagonal)


@routine
def add_responses(responses, rows, column, v, k):
    """Add the velocities that impulses in a column of `rows` (m, columns, lanes) cause to v (n, lanes), rad/s or m/s.

    `responses` is (m, n, lanes). With forces instead of impulses, add the accelerations that they cause.
    """
    for row in range(rows.shape[0]):
        for i in range(v.shape[0]):
            v[i, k] = v[i, k] + responses[row, i, k] * rows[row, column, k]
