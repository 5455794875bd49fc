"""Rows of dry friction, joint stops and contacts: gaps, velocities and accelerations, and the Jacobian J.

`contact_layout` describes the elements and their rows. A contact acts on its bodies at two points (`contact_points`),
along a normal and, with friction, along two tangents. If the first body is the world, only the second body has terms.
`contact_shapes` provides the points and directions of each shape, and `contact_responses` computes the velocities that
impulses of the rows cause. `contact_layout` describes the arguments.
"""

from ...compiling.jit import kernel, routine
from ..lanes.lanes import constant_like, nan_unless_finite, zeros_like
from ..spatial.storage import load3, load9, load_motion, store3, store_spatial
from ..spatial.vectors import Force, add_motions, cross, dot, motion_at_tip, size, subtract3, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import joint_bias, joint_force
from ..tree.kinematics import force_on_parent, place_dof
from ..tree.layout import apply_gravity, parameter, remove_gravity
from . import contact_layout as contact, element_layout as element
from .contact_layout import has_tangents, is_contact
from .contact_shapes import (
    accelerations_of_contact,
    lengths_of_contact,
    points_of_contact,
    tangents_of_contact,
)


@routine
def update_gaps(model, contacts, q, numbers, work, k):
    """Compute the gaps of stops and contacts at q (nq, lanes), m or rad. Reads R and LEVER; writes POSITION."""
    table, rows = contacts.table, contacts.rows
    for i in range(model.parent.shape[0]):
        place_dof(i, model, work, k)
    for e in range(table.shape[1]):
        if table[element.KIND, e] != element.FRICTION:
            rows[table[element.ROW, e], contact.GAP, k] = gap_of_element(e, model, contacts, q, numbers, work, k)


@kernel
def gap_of_element(e, model, contacts, q, numbers, work, k):
    """Return the gap of a stop or a contact at q (nq, lanes), m or rad. Reads R and POSITION."""
    table = contacts.table
    if is_contact(e, table):
        return points_of_contact(e, model, contacts, numbers, work, k).gap
    travel = (
        q[model.coordinate[table[element.DOF, e]], k] - numbers[table[element.NUMBERS, e] + element.STOP_POSITION, k]
    )
    return travel if table[element.SIGN, e] > 0 else -travel


@kernel
def size_of_gap(e, model, contacts, q, numbers, work, k):
    """Return the sum of the absolute values of the terms that cancel in a gap at q (nq, lanes), m or rad.

    Reads POSITION.
    """
    table, dof = contacts.table, work.dof
    i, other, at = table[element.DOF, e], table[element.OTHER, e], table[element.NUMBERS, e]
    if table[element.KIND, e] == element.STOP:
        return abs(q[model.coordinate[i], k]) + abs(numbers[at + element.STOP_POSITION, k])
    total = size(load3(dof, i, frame.POSITION, k)) + lengths_of_contact(e, contacts, numbers, k).size
    return total + size(load3(dof, other, frame.POSITION, k)) if other < model.parent.shape[0] else total


@kernel
def rate_of_gap(e, model, contacts, qd, numbers, work, k):
    """Return the rate of the gap of a stop or a contact, m/s or rad/s. Reads R, POSITION and V.

    The rate of a stop follows from qd (n, lanes), the rate of a contact from V.
    """
    table, dof = contacts.table, work.dof
    i, other = table[element.DOF, e], table[element.OTHER, e]
    if table[element.KIND, e] == element.STOP:
        return qd[i, k] if table[element.SIGN, e] > 0 else -qd[i, k]
    points = points_of_contact(e, model, contacts, numbers, work, k)
    velocity = motion_at_tip(load_motion(dof, i, frame.V, k), points.second).lin
    if other < model.parent.shape[0]:
        velocity = subtract3(velocity, motion_at_tip(load_motion(dof, other, frame.V, k), points.first).lin)
    return dot(points.normal, velocity)


@routine
def update_biases(model, contacts, qd, numbers, work, k):
    """Compute d u / dt of all rows, m/s^2 or rad/s^2, without accelerations of the joints, from qd (n, lanes).

    Reads R, LEVER, V and the directions of `update_jacobian`; writes A and POSITION.
    """
    table, rows, dof = contacts.table, contacts.rows, work.dof
    remove_gravity(model, work, k)
    for i in range(model.parent.shape[0]):
        axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
        a = motion_at_tip(load_motion(dof, model.parent[i], frame.A, k), load3(dof, i, frame.LEVER, k))
        c = joint_bias(model.joint[i], load_motion(dof, i, frame.V, k), axis, advance, qd[i, k])
        store_spatial(dof, i, frame.A, k, add_motions(a, c))
        place_dof(i, model, work, k)
    for e in range(table.shape[1]):
        if is_contact(e, table):
            store_accelerations(e, rows, contact.BIAS, model, contacts, numbers, work, k)
        else:
            rows[table[element.ROW, e], contact.BIAS, k] = nan_unless_finite(qd[0, k])
    apply_gravity(model, work, k)


@kernel
def store_accelerations(e, rows, column, model, contacts, numbers, work, k):
    """Store d u / dt of the rows of a contact in a column of `rows`; for the tangents, as if they did not turn.

    `rows` (m, columns, lanes) is `Contacts.rows` or `ContactModes.rows`; the accelerations are in m/s^2. Reads R, V, A,
    POSITION and the directions of `update_jacobian`.
    """
    row = contacts.table[element.ROW, e]
    normal, change = accelerations_of_contact(e, model, contacts, numbers, work, k)
    rows[row, column, k] = normal
    if has_tangents(e, contacts.table):
        for tangent in range(row + 1, row + 3):
            rows[tangent, column, k] = dot(load3(contacts.rows, tangent, contact.NORMAL, k), change)


@routine
def update_jacobian(model, contacts, numbers, work, k):
    """Compute J (m, n, lanes). Reads R, LEVER and POSITION; writes the levers and directions of contacts."""
    table, n = contacts.table, model.parent.shape[0]
    for row in range(contacts.rows.shape[0]):
        for i in range(n):
            contacts.jacobian[row, i, k] = zeros_like(numbers[0, k])
    for e in range(table.shape[1]):
        i, other, row = table[element.DOF, e], table[element.OTHER, e], table[element.ROW, e]
        if is_contact(e, table):
            store_points(e, model, contacts, numbers, work, k)
            for r in range(row, row + table[element.SIZE, e]):
                add_to_jacobian(r, i, impulse_on_second_body(r, row, contacts, k), model, contacts, work, k)
                if other < n:
                    add_to_jacobian(r, other, impulse_on_first_body(r, row, contacts, k), model, contacts, work, k)
        else:
            zero = zeros_like(numbers[0, k])
            contacts.jacobian[row, i, k] = zero + constant_like(zero, table[element.SIGN, e])


@kernel
def store_points(e, model, contacts, numbers, work, k):
    """Store the levers of the points of a contact, and the directions of its rows."""
    rows, row = contacts.rows, contacts.table[element.ROW, e]
    first, second, normal, _ = points_of_contact(e, model, contacts, numbers, work, k)
    store3(rows, row, contact.LEVER, k, second)
    if contacts.table[element.OTHER, e] < model.parent.shape[0]:
        store3(rows, row, contact.OTHER_LEVER, k, first)
    store3(rows, row, contact.NORMAL, k, normal)
    if has_tangents(e, contacts.table):
        first_tangent, second_tangent = tangents_of_contact(e, normal, contacts, numbers, k)
        store3(rows, row + 1, contact.NORMAL, k, first_tangent)
        store3(rows, row + 2, contact.NORMAL, k, second_tangent)


@kernel
def impulse_on_second_body(row, first_row, contacts, k):
    """Return the unit impulse of a row of a contact on the second body, about its joint origin.

    The result is a Force in world axes. `first_row` is the first row of the contact.
    """
    d = load3(contacts.rows, row, contact.NORMAL, k)
    return Force(cross(load3(contacts.rows, first_row, contact.LEVER, k), d), d)


@kernel
def impulse_on_first_body(row, first_row, contacts, k):
    """Return the opposite impulse on the first body, about its joint origin, as a Force in world axes."""
    d = load3(contacts.rows, row, contact.NORMAL, k)
    back = (-d[0], -d[1], -d[2])
    return Force(cross(load3(contacts.rows, first_row, contact.OTHER_LEVER, k), back), back)


@routine
def add_to_jacobian(row, dof_of_body, f, model, contacts, work, k):
    """Add S . f of the dofs that move a body to a row of J; f is a unit impulse on the body about its joint origin.

    f is a Force in world axes. The body belongs to `dof_of_body`.
    """
    n, dof, jacobian, i = model.parent.shape[0], work.dof, contacts.jacobian, dof_of_body
    while i < n:
        axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
        jacobian[row, i, k] = jacobian[row, i, k] + joint_force(model.joint[i], axis, advance, f)
        f = force_on_parent(i, f, model, work, k)
        i = model.parent[i]


@kernel
def row_of_velocity(e, row, model, contacts, v, k):
    """Compute J v, m/s or rad/s, for one row of element e, from velocities v (n, lanes)."""
    i, n = contacts.table[element.DOF, e], model.parent.shape[0]
    if contacts.table[element.OTHER, e] < n:  # J is zero outside the paths to both bodies
        total = contacts.jacobian[row, 0, k] * v[0, k]
        for j in range(1, n):
            total = total + contacts.jacobian[row, j, k] * v[j, k]
        return total
    total = contacts.jacobian[row, i, k] * v[i, k]
    if is_contact(e, contacts.table):
        i = model.parent[i]
        while i < n:
            total = total + contacts.jacobian[row, i, k] * v[i, k]
            i = model.parent[i]
    return total


@routine
def update_row_velocities(model, contacts, v, column, k):
    """Compute J v of all rows, m/s or rad/s, from v (n, lanes), and store it in a column of `Contacts.rows`."""
    table = contacts.table
    for e in range(table.shape[1]):
        first = table[element.ROW, e]
        for row in range(first, first + table[element.SIZE, e]):
            contacts.rows[row, column, k] = row_of_velocity(e, row, model, contacts, v, k)
