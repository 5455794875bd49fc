"""Equations of the impulses that `contact_solver` solves: velocities, changes of single rows, and residuals.

`contact_layout` describes the arguments. Velocities u are in m/s or rad/s, and impulses p in N s or N m s.
`contact_choice` solves the same equations for accelerations and forces. `running` is one value for each lane.
"""

import math

from ...compiling.jit import kernel, routine
from ..lanes.lanes import any_lane, constant_like, nan_unless_finite, select
from . import contact_layout as contact, element_layout as element
from .contact_layout import has_tangents


@kernel
def compute_velocities(contacts, running, k):
    """Compute u = u_free + W p in the lanes in which `running` is positive."""
    rows = contacts.rows
    for row in range(rows.shape[0]):
        u, given = rows[row, contact.VELOCITY, k], rows[row, contact.GIVEN_VELOCITY, k]
        rows[row, contact.VELOCITY, k] = select(running > nan_unless_finite(running), given, u)
    for row in range(rows.shape[0]):
        p = rows[row, contact.IMPULSE, k]
        add_to_velocities(row, select(running > nan_unless_finite(running), p, nan_unless_finite(p)), contacts, k)


@kernel
def add_to_velocities(row, change, contacts, k):
    """Add the velocities that the change of an impulse, N s or N m s, causes to VELOCITY of all rows."""
    rows, matrix = contacts.rows, contacts.matrix
    if any_lane(change != nan_unless_finite(change)):
        for other in range(rows.shape[0]):
            rows[other, contact.VELOCITY, k] = rows[other, contact.VELOCITY, k] + matrix[row, other, k] * change


@kernel
def change_of_friction(row, rows, k):
    """Compute the change of the impulse of a dof's friction, N m s or N s, between its limits."""
    p = rows[row, contact.IMPULSE, k]
    target = p - rows[row, contact.VELOCITY, k] * rows[row, contact.INVERSE, k]
    return min(max(target, rows[row, contact.LOWER, k]), rows[row, contact.UPPER, k]) - p


@kernel
def change_of_normal(row, rows, k):
    """Compute the change of the impulse, N s or N m s, of a stop or of a normal, which stays at least zero."""
    p = rows[row, contact.IMPULSE, k]
    above = rows[row, contact.VELOCITY, k] - rows[row, contact.BOUND, k]
    return max(p - above * rows[row, contact.INVERSE, k], nan_unless_finite(p)) - p


@kernel
def friction_target(row, rows, k):
    """Return the two tangential impulses without the limit, their norm, and the radius of the disk, all in N s."""
    inverse = rows[row + 1, contact.INVERSE, k]
    a = rows[row + 1, contact.IMPULSE, k] - rows[row + 1, contact.VELOCITY, k] * inverse
    b = rows[row + 2, contact.IMPULSE, k] - rows[row + 2, contact.VELOCITY, k] * inverse
    radius = rows[row, contact.FRICTION, k] * rows[row, contact.IMPULSE, k] + rows[row + 1, contact.UPPER, k]
    return a, b, math.sqrt(a * a + b * b), radius


@kernel
def change_of_tangents(row, rows, k):
    """Compute the changes of the two tangential impulses, N s, which stay in a disk."""
    a, b, norm, radius = friction_target(row, rows, k)
    one = constant_like(rows, 1.0)
    is_outside = norm > radius
    scale = select(is_outside, radius / select(is_outside, norm, one), one)
    return scale * a - rows[row + 1, contact.IMPULSE, k], scale * b - rows[row + 2, contact.IMPULSE, k]


@routine
def largest_residual(contacts, k):
    """Return the largest residual of the rows that impulses change, m/s or rad/s; NaN if one is not finite."""
    table, rows = contacts.table, contacts.rows
    residual = nan_unless_finite(rows[0, contact.VELOCITY, k])
    for e in range(table.shape[1]):
        kind, row = table[element.KIND, e], table[element.ROW, e]
        if kind == element.FRICTION:
            residual = larger_residual(residual, row, change_of_friction(row, rows, k), rows, k)
            continue
        residual = larger_residual(residual, row, change_of_normal(row, rows, k), rows, k)
        if has_tangents(e, table):
            a, b = change_of_tangents(row, rows, k)
            residual = larger_residual(residual, row + 1, a, rows, k)
            residual = larger_residual(residual, row + 2, b, rows, k)
    return residual


@routine
def largest_missing_velocity(contacts, k):
    """Return the largest violation of BOUND, m/s or rad/s, by stops and contacts whose velocity no impulse changes.

    The result is zero if there is none.
    """
    table, rows = contacts.table, contacts.rows
    zero, largest = constant_like(rows, 0.0), nan_unless_finite(rows[0, contact.VELOCITY, k])
    for e in range(table.shape[1]):
        if table[element.KIND, e] != element.FRICTION:
            row = table[element.ROW, e]
            missing = rows[row, contact.BOUND, k] - rows[row, contact.VELOCITY, k]
            largest = select(rows[row, contact.INVERSE, k] > zero, largest, max(largest, missing))
    return largest


@kernel
def larger_residual(residual, row, change, rows, k):
    """Return the larger of a residual and the residual of a row whose impulse would have to change by `change`.

    Residuals are in m/s or rad/s, and `change` is in N s or N m s.
    """
    inverse, one = rows[row, contact.INVERSE, k], constant_like(rows, 1.0)
    acts = inverse > nan_unless_finite(inverse)
    found = select(acts, abs(change) / select(acts, inverse, one), nan_unless_finite(change))
    return select(residual >= found, residual, found + nan_unless_finite(residual))


@routine
def sweep(contacts, running, k):
    """Update the impulses row by row, in the lanes in which `running` is positive."""
    table, rows = contacts.table, contacts.rows
    for e in range(table.shape[1]):
        kind, row = table[element.KIND, e], table[element.ROW, e]
        change = change_of_friction(row, rows, k) if kind == element.FRICTION else change_of_normal(row, rows, k)
        apply_change(row, change, contacts, running, k)
        if has_tangents(e, table):
            a, b = change_of_tangents(row, rows, k)
            apply_change(row + 1, a, contacts, running, k)
            apply_change(row + 2, b, contacts, running, k)


@kernel
def apply_change(row, change, contacts, running, k):
    """Change the impulse of a row in the lanes in which `running` is positive."""
    change = select(running > nan_unless_finite(running), change, nan_unless_finite(change))
    contacts.rows[row, contact.IMPULSE, k] = contacts.rows[row, contact.IMPULSE, k] + change
    add_to_velocities(row, change, contacts, k)
