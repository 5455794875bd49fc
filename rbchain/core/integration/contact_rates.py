"""Accelerations with the forces of dry friction, stops and contacts, for methods that locate changes of their modes."""

from ..algorithms.contact_modes import HELD, MODE, MODE_ACCELERATION, MODE_FORCE, solve_forces
from ..algorithms.contact_rows import lowest_point, update_contact_rows, update_gaps, update_row_velocities, vector_of
from ..simd.jit import choose, is_given, kernel, routine
from ..simd.lanes import constant_like, select
from ..spatial.storage import load_motion
from ..spatial.vectors import add3, cross, dot, motion_at_tip, scale3, subtract3
from ..tree.contact_layout import (
    CONTACT_VELOCITY,
    ELEMENT_DOF,
    ELEMENT_KIND,
    ELEMENT_NUMBERS,
    ELEMENT_ROW,
    ELEMENT_SIGN,
    SPHERE,
    SPHERE_NORMAL,
    SPHERE_RADIUS,
    SPHERE_TANGENT_A,
)
from ..tree.layout import PARAM_GRAVITY, ROW_A, ROW_V, parameter3


def has_contact_modes(block, *_):
    """Whether a block, or its Numba type, has modes of contacts."""
    return is_given(block, "loads", "actions") and is_given(block, "loads", "actions", "modes")


@routine
def add_forces_of_modes(block, y, rate, k):
    """Add the accelerations due to the forces of all rows to the rate of the state y, which has none of them.

    Reads the factors and the accelerations of the last dynamics; writes A. The acceleration of a joint that is held is
    exactly zero.
    """
    actions, model, nq, n = block.loads.actions, block.model, block.q.shape[0], block.qd.shape[0]
    contacts, modes, numbers = actions.contacts, actions.modes, actions.numbers
    rows, table, qdd = modes.rows, contacts.table, rate[nq : nq + n]
    update_gaps(model, contacts, y[:nq], numbers, block.work, k)
    for e in range(table.shape[1]):
        store_acceleration(e, block, qdd, k)
    update_contact_rows(model, contacts, block.constraints, numbers, block.work, k)
    update_row_velocities(model, contacts, y[nq : nq + n], CONTACT_VELOCITY, k)
    solve_forces(contacts, modes, numbers, k)
    for row in range(rows.shape[0]):
        for i in range(n):
            qdd[i, k] = qdd[i, k] + contacts.responses[row, i, k] * rows[row, MODE_FORCE, k]
    stop_held_dofs(contacts, modes, qdd, k)


# Add the accelerations due to dry friction, stops and contacts, if the method computes their forces from modes.
add_contact_forces = choose(has_contact_modes, add_forces_of_modes, lambda block, y, rate, k: None)


@kernel
def store_acceleration(e, block, qdd, k):
    """Store the acceleration of the rows of an element, from qdd and the accelerations of the frames in A.

    The lowest point of a sphere has the velocity v_c - omega x r n. The normal n is constant, so its derivative is
    a_c - alpha x r n.
    """
    actions, model, dof = block.loads.actions, block.model, block.work.dof
    table, rows, numbers = actions.contacts.table, actions.modes.rows, actions.numbers
    i, at, row = table[ELEMENT_DOF, e], table[ELEMENT_NUMBERS, e], table[ELEMENT_ROW, e]
    if table[ELEMENT_KIND, e] != SPHERE:
        rows[row, MODE_ACCELERATION, k] = qdd[i, k] if table[ELEMENT_SIGN, e] > 0 else -qdd[i, k]
        return
    below = scale3(numbers[at + SPHERE_RADIUS, k], vector_of(numbers, at + SPHERE_NORMAL, k))
    center = add3(lowest_point(e, model, actions.contacts, numbers, block.work, k), below)
    v, a = load_motion(dof, i, ROW_V, k), load_motion(dof, i, ROW_A, k)
    of_center = add3(motion_at_tip(a, center).lin, cross(v.ang, motion_at_tip(v, center).lin))
    of_center = add3(of_center, parameter3(model.parameters, model.parent.shape[0], PARAM_GRAVITY, k))
    acceleration = subtract3(of_center, cross(a.ang, below))
    for direction in range(3):
        d = vector_of(numbers, at + SPHERE_NORMAL + (SPHERE_TANGENT_A - SPHERE_NORMAL) * direction, k)
        rows[row + direction, MODE_ACCELERATION, k] = dot(d, acceleration)


@kernel
def stop_held_dofs(contacts, modes, v, k):
    """Set the velocities or accelerations v (n, lanes) of joints that stick or touch a stop to exactly zero."""
    table = contacts.table
    for e in range(table.shape[1]):
        if table[ELEMENT_KIND, e] != SPHERE:
            i = table[ELEMENT_DOF, e]
            held = modes.rows[table[ELEMENT_ROW, e], MODE, k] == constant_like(v, HELD)
            v[i, k] = select(held, v[i, k] - v[i, k], v[i, k])
