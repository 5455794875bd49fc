"""The law of impacts: Newton's law of restitution and Coulomb's law of friction, limited so that no energy is gained.

The velocities of the rows are u before and u' = u + W p after the impulses p, which change the kinetic energy by

    E(p) = p . (u + u') / 2 = p . u + p . W p / 2

Newton's law u_n' >= -e u_n can increase the energy if there is friction, or if several contacts differ in e (Kane and
Levinson 1985). Plastic impulses p_0, with e = 0 in all rows, cannot: p_0 . u' <= 0, so E(p_0) <= -p_0 . W p_0 / 2. If
the impulses p_N of Newton's law add energy, the law takes the last point without a gain on the way from p_0 to p_N:

    p = p_0 + s (p_N - p_0),   E(p) = 0,   0 <= s <= 1

Impulses p_0 and p_N satisfy p_n >= 0 and |p_t| <= mu p_n, and their velocities u_n' >= 0. Both sets are convex, so p
satisfies them too. An impact that loses energy has exactly the coefficient e. The law also limits impulses that the
solver could not compute to its tolerance. If p_0 itself adds energy for this reason, it is scaled down.
Newton's law has no solution if friction holds a contact that has to rebound. The impulses are then p_0.

Sources: Kane and Levinson (1985), *Dynamics: Theory and Applications*, section 5.8. Chatterjee and Ruina (1998), "A new
algebraic rigid-body collision law based on impulse space considerations". Glocker (2013), "Energetic consistency
conditions for standard impacts, part I", states when Newton's law loses energy.

`contact_layout` describes the arguments. `residual`, m/s or rad/s, and `limits` are one value for each lane;
`tolerance` is one value for all lanes, m/s or rad/s.
"""

import math

from ...compiling.jit import kernel, routine
from ..lanes.lanes import any_lane, constant_like, epsilon, nan_unless_finite, select
from . import contact_layout as contact, element_layout as element
from .contact_residuals import compute_velocities
from .contact_solver import solve_contacts

# Energy that impulses may add because of round-off, as a multiple of epsilon times the sum of the absolute values of
# all terms.
ROUND_OFF = 256.0


@routine
def solve_impacts(contacts, tolerance, k):
    """Solve for the impulses of all rows as `solve_contacts` does, without a gain of energy; return the residual."""
    return limit_energy(contacts, solve_contacts(contacts, tolerance, k), tolerance, k)


@routine
def limit_energy(contacts, residual, tolerance, k):
    """Replace the impulses of `solve_contacts`, which have this residual, where they add energy; return the residual.

    Where plastic impulses replace the others, the residual belongs to the plastic impulses.
    """
    rows = contacts.rows
    zero, one, two = constant_like(rows, 0.0), constant_like(rows, 1.0), constant_like(rows, 2.0)
    compute_velocities(contacts, one, k)
    total, size = energy_of_impulses(contacts, k)
    loses = total <= constant_like(rows, ROUND_OFF) * epsilon(rows) * size
    is_solved = (residual <= constant_like(rows, tolerance)) | (largest_bound(contacts, k) <= zero)
    limits = select(loses & is_solved, zero, select(is_solved, one, two))
    if any_lane(limits > zero):
        return limit_restitution(contacts, limits, residual, tolerance, k)
    return residual


@kernel
def energy_of_impulses(contacts, k):
    """Return the energy that the impulses add, and the sum of the absolute values of its terms, J."""
    rows, half = contacts.rows, constant_like(contacts.rows, 0.5)
    total = nan_unless_finite(rows[0, contact.IMPULSE, k])
    size = total
    for row in range(rows.shape[0]):
        u, end = rows[row, contact.GIVEN_VELOCITY, k], rows[row, contact.VELOCITY, k]
        p = half * rows[row, contact.IMPULSE, k]
        total = total + p * (u + end)
        size = size + abs(p) * (abs(u) + abs(end))
    return total, size


@kernel
def largest_bound(contacts, k):
    """Return the largest BOUND of all stops and contacts, m/s or rad/s, or zero."""
    table, rows = contacts.table, contacts.rows
    largest = nan_unless_finite(rows[0, contact.IMPULSE, k])
    for e in range(table.shape[1]):
        if table[element.KIND, e] != element.FRICTION:
            largest = max(largest, rows[table[element.ROW, e], contact.BOUND, k])
    return largest


@routine
def limit_restitution(contacts, limits, residual, tolerance, k):
    """Limit the impulses in lanes with `limits` 1, use plastic impulses in lanes with 2; return the residual."""
    rows, table = contacts.rows, contacts.table
    zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
    is_limited = limits > zero
    for row in range(rows.shape[0]):
        p = rows[row, contact.IMPULSE, k]
        rows[row, contact.RESTITUTION_IMPULSE, k] = p
        rows[row, contact.IMPULSE, k] = select(is_limited, zero, p)
        rows[row, contact.VELOCITY, k] = rows[row, contact.GIVEN_VELOCITY, k]
    for e in range(table.shape[1]):
        if table[element.KIND, e] != element.FRICTION:
            row = table[element.ROW, e]
            bound = rows[row, contact.BOUND, k]
            rows[row, contact.BOUND, k] = select(is_limited, min(bound, nan_unless_finite(bound)), bound)
    plastic = solve_contacts(contacts, tolerance, k)
    lose_energy(contacts, limits, k)
    share = select(limits > one, zero, share_of_restitution(contacts, k))
    for row in range(rows.shape[0]):
        p, full = rows[row, contact.IMPULSE, k], rows[row, contact.RESTITUTION_IMPULSE, k]
        moved = select(share > zero, p + share * (full - p), p)  # `full` may not be finite
        rows[row, contact.IMPULSE, k] = select(is_limited, moved, full)
    compute_velocities(contacts, one, k)
    return select(is_limited, plastic, residual)


@kernel
def lose_energy(contacts, limits, k):
    """Multiply plastic impulses that add energy by the largest number with which they add none."""
    rows, zero, one = contacts.rows, constant_like(contacts.rows, 0.0), constant_like(contacts.rows, 1.0)
    compute_velocities(contacts, one, k)
    total, _ = energy_of_impulses(contacts, k)
    linear = nan_unless_finite(total)
    for row in range(rows.shape[0]):
        linear = linear + rows[row, contact.IMPULSE, k] * rows[row, contact.GIVEN_VELOCITY, k]
    square = total - linear  # E(t p) = t linear + t^2 square
    share = select(linear < zero, -linear / select(square > -linear, square, -linear), zero)
    loses = total <= zero
    for row in range(rows.shape[0]):
        p = rows[row, contact.IMPULSE, k]
        reduced = select(share > zero, share * p, zero)
        rows[row, contact.IMPULSE, k] = select((limits > zero) & ~loses, reduced, p)
    compute_velocities(contacts, one, k)


@kernel
def share_of_restitution(contacts, k):
    """Return the largest s <= 1 for which p_0 + s (p_N - p_0) adds no energy: E_0 + s a + s^2 b = 0."""
    rows, matrix, half = contacts.rows, contacts.matrix, constant_like(contacts.rows, 0.5)
    zero, one = constant_like(rows, 0.0), constant_like(rows, 1.0)
    start, _ = energy_of_impulses(contacts, k)
    slope, curvature = nan_unless_finite(start), nan_unless_finite(start)
    for row in range(rows.shape[0]):
        change = rows[row, contact.RESTITUTION_IMPULSE, k] - rows[row, contact.IMPULSE, k]
        response = nan_unless_finite(change)
        for other in range(rows.shape[0]):
            further = rows[other, contact.RESTITUTION_IMPULSE, k] - rows[other, contact.IMPULSE, k]
            response = response + matrix[row, other, k] * further
        slope = slope + change * rows[row, contact.VELOCITY, k]
        curvature = curvature + half * change * response
    loss = max(-start, nan_unless_finite(start))
    root = abs(slope) + math.sqrt(
        slope * slope + constant_like(rows, 4.0) * max(curvature, nan_unless_finite(loss)) * loss
    )
    upper = select(slope > zero, loss + loss, root)
    lower = select(slope > zero, root, curvature + curvature)
    return select(
        lower > zero,
        min(upper / select(lower > zero, lower, one), one + nan_unless_finite(lower)),
        nan_unless_finite(lower),
    )
