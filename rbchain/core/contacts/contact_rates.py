"""Accelerations with the forces of dry friction, stops and contacts, for methods that locate changes of their modes."""

from ...compiling.jit import is_given, kernel, only_if, routine
from ..lanes.lanes import constant_like, nan_unless_finite, select
from . import contact_layout as contact, element_layout as element, mode_layout as mode
from .contact_layout import is_contact
from .contact_modes import solve_forces
from .contact_responses import add_responses, update_responses
from .contact_rows import (
    size_of_gap,
    store_accelerations,
    update_gaps,
    update_jacobian,
    update_row_velocities,
)
from .gear_friction import update_gear_friction


def has_contact_modes(block, *_):
    """Whether a block, or its Numba type, has modes of contacts."""
    return is_given(block, "loads", "actions", "modes")


@only_if(has_contact_modes)
@routine
def add_contact_forces(block, y, rate, k):
    """Add the accelerations due to the forces of all rows to `rate`, the rate of the state y.

    y and `rate` are (rows, lanes); `rate` must not include these forces before. Reads the factors and the accelerations
    of the last dynamics; writes A. The acceleration of a dof that sticks or touches a stop is exactly zero.
    """
    actions, model, nq, n = block.loads.actions, block.model, block.q.shape[0], block.qd.shape[0]
    contacts, modes, numbers = actions.contacts, actions.modes, actions.numbers
    table, qdd = contacts.table, rate[nq : nq + n]
    update_gear_friction(actions, k)
    update_gaps(model, contacts, y[:nq], numbers, block.work, k)
    update_jacobian(model, contacts, numbers, block.work, k)
    for e in range(table.shape[1]):
        store_acceleration(e, block, qdd, k)
        if table[element.KIND, e] != element.FRICTION:
            size = size_of_gap(e, model, contacts, y[:nq], numbers, block.work, k)
            modes.rows[table[element.ROW, e], mode.SIZE, k] = size
    update_responses(model, contacts, block.constraints, numbers, block.work, k)
    update_row_velocities(model, contacts, y[nq : nq + n], contact.VELOCITY, k)
    solve_forces(contacts, modes, numbers, k)
    add_responses(contacts.responses, modes.rows, mode.FORCE, qdd, k)
    stop_held_dofs(contacts, modes, qdd, k)


@kernel
def store_acceleration(e, block, qdd, k):
    """Store the acceleration of the rows of an element, from qdd (n, lanes) and the accelerations of the frames in A.

    Writes mode.ACCELERATION, m/s^2 or rad/s^2.
    """
    actions = block.loads.actions
    table, rows = actions.contacts.table, actions.modes.rows
    if is_contact(e, table):
        store_accelerations(e, rows, mode.ACCELERATION, block.model, actions.contacts, actions.numbers, block.work, k)
    else:
        i, row = table[element.DOF, e], table[element.ROW, e]
        rows[row, mode.ACCELERATION, k] = qdd[i, k] if table[element.SIGN, e] > 0 else -qdd[i, k]


@kernel
def stop_held_dofs(contacts, modes, v, k):
    """Set the velocities or accelerations v (n, lanes) of dofs that stick or touch a stop to exactly zero."""
    table = contacts.table
    for e in range(table.shape[1]):
        if table[element.KIND, e] == element.FRICTION or table[element.KIND, e] == element.STOP:
            i = table[element.DOF, e]
            held = modes.rows[table[element.ROW, e], mode.MODE, k] == constant_like(v, mode.HELD)
            v[i, k] = select(held, nan_unless_finite(v[i, k]), v[i, k])
