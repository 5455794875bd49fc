"""Derivatives of the joint forces of water: added mass, buoyancy, drag and currents, for implicit integration.

The force of the water on a body depends on its motion relative to the water, and on f = g - w' (`hydrodynamics`), with
the velocity w of the water and its rate w':

    F = A a + u x* A u - drag(u) - buoyancy(f),   u = v - (0, w),   a = acceleration + (0, f + omega x w).

The equations of `derivatives` hold with u and a instead of the velocities and accelerations of the bodies. In body
axes, displacing dof j changes u by P'_j, and a by P''_j - u x P'_j. Let N be the matrix for which

    N m = m x* A u + u x* A m - A (u x m) - (d drag / du) m.

Let Ac, Nc, mc and hc be the sums of A, N, displaced mass and first moment of the displaced mass over the subtree of dof
i. Let Fc be the sum of the forces that `rnea` does not include: drag and terms of the current. The equations of
`derivatives` hold with Ac, Nc and Fc instead of Ic, 2 Bc and fc. In addition, the field changes by (0, - S.ang x f) and
acts on the displaced mass.
"""

from ...compiling.jit import kernel, only_if, routine
from ..forces import signal_layout as signal
from ..forces.added_mass import (
    general_coriolis_times,
    general_coriolis_transpose_times,
    pass_composite,
    pass_general_coriolis,
    project_mass,
    start_composite,
    unit_motion,
)
from ..forces.drag_derivatives import drag_along
from ..forces.hydrodynamics import gravity_of_base, is_in_water, motion_of_water, subtract_drag
from ..lanes.lanes import zeros_like
from ..spatial.inertias import Rigid, add_rigids, momentum, rigid_at_root, rigid_times
from ..spatial.storage import (
    load3,
    load9,
    load_force,
    load_inertia,
    load_motion,
    load_rigid,
    store_rigid,
    store_spatial,
)
from ..spatial.vectors import (
    Force,
    Motion,
    add3,
    add_forces,
    add_motions,
    cross,
    cross_force,
    cross_motion,
    motion_at_tip,
    power,
    rotate,
    subtract3,
    subtract_forces,
    z_axis,
)
from ..tree import frame_layout as frame, parameter_layout as param, setting_layout as setting
from ..tree.joints import joint_force
from ..tree.kinematics import axis_motion, force_on_parent
from ..tree.layout import POSING_CARRIED, parameter, parameter3
from .crba import RIGID_ROWS
from .derivatives import BY_Q, BY_QD, DERIVATIVE_ROWS, SCRATCH_PSIDDOT, SCRATCH_PSIDOT

# Further rows of the scratch memory of a dof: the displaced mass and its first moment as a Rigid, and the force Fc.
# The first rows hold N, and in `added_mass` they hold B.
SCRATCH_DISPLACED = DERIVATIVE_ROWS
SCRATCH_FORCE = SCRATCH_DISPLACED + RIGID_ROWS
WATER_DERIVATIVE_ROWS = SCRATCH_FORCE + 6


def _is_in_water(model, *_):
    return is_in_water(model)


@only_if(_is_in_water)
@routine
def add_derivatives_of_water(model, loads, derivatives, scratch, work, k):
    """Add the terms of water to derivatives (3, n, n, lanes) of `inverse_dynamics_derivatives`, which ran before.

    `scratch` (n, WATER_DERIVATIVE_ROWS, lanes) is the memory that this function has used. Drag and currents follow from
    loads.actions, at the time of its signals. The sweeps of controllers omit them. Reads R, LEVER, V and A; writes
    COMPOSITE. SI units.
    """
    n = model.parent.shape[0]
    for i in range(n):
        store_relative_axis_rates(i, model, loads.actions, scratch, work, k)
    for i in range(n):
        start_composite(i, model, work, k)
        start_response_of_water(i, model, loads.actions, scratch, work, k)
    for i in range(n - 1, -1, -1):
        project_mass(i, model, derivatives[2], work, k)
        differentiate_by_dof_in_water(i, model, loads.actions, derivatives, scratch, work, k)
        differentiate_force_of_dof_in_water(i, model, loads.actions, derivatives, scratch, work, k)
        pass_response_of_water(i, model, scratch, work, k)


@kernel
def field_of_water(model, actions, work, k):
    """Return f = g - w' (3), world axes, m/s^2."""
    return subtract3(gravity_of_base(model, work, k), motion_of_water(actions, signal.RATE, k))


@kernel
def store_relative_axis_rates(i, model, actions, scratch, work, k):
    """Store P' and P'' of dof i from velocities and accelerations relative to the water.

    Both are Motions in world axes, about the joint origin, in `scratch` (n, WATER_DERIVATIVE_ROWS, lanes).
    """
    dof, first, w = work.dof, model.first[i], motion_of_water(actions, signal.VALUE, k)
    p, r, S = model.parent[first], load3(dof, first, frame.LEVER, k), axis_motion(i, model, work, k)
    v, a = load_motion(dof, p, frame.V, k), load_motion(dof, p, frame.A, k)
    u = motion_at_tip(Motion(v.ang, subtract3(v.lin, w)), r)
    field = add3(field_of_water(model, actions, work, k), cross(v.ang, w))
    a = motion_at_tip(Motion(a.ang, add3(a.lin, field)), r)
    psidot = cross_motion(u, S)
    store_spatial(scratch, i, SCRATCH_PSIDOT, k, psidot)
    store_spatial(scratch, i, SCRATCH_PSIDDOT, k, add_motions(cross_motion(a, S), cross_motion(u, psidot)))


@kernel
def start_response_of_water(i, model, actions, scratch, work, k):
    """Store N, the displaced mass and the force of the body of dof i (reads R, V and COMPOSITE).

    Writes N as six Forces, a Rigid and a Force, in world axes about the joint origin, to `scratch`
    (n, WATER_DERIVATIVE_ROWS, lanes).
    """
    v, w, A = (
        load_motion(work.dof, i, frame.V, k),
        motion_of_water(actions, signal.VALUE, k),
        load_inertia(work.dof, i, frame.COMPOSITE, k),
    )
    u, zero, has_drag = Motion(v.ang, subtract3(v.lin, w)), zeros_like(v.ang[0]), model.body[i] >= 0
    has_drag = has_drag and actions.settings[setting.EXTERNAL_FORCES] == 1
    Au, nothing = momentum(A, u), Force((zero, zero, zero), (zero, zero, zero))
    for row in range(6):
        m = unit_motion(row, v.ang[0])
        f = add_forces(cross_force(m, Au), cross_force(u, momentum(A, m)))
        f = subtract_forces(f, momentum(A, cross_motion(u, m)))
        if has_drag:
            f = subtract_forces(f, drag_along(i, model, u, m, work, k))
        store_spatial(scratch, i, 6 * row, k, f)
    mass, h = zero, nothing.lin
    if model.body[i] >= 0:
        mass = zero + parameter(model.parameters, i, param.DISPLACED_MASS, k)
        center = rotate(load9(work.dof, i, frame.R, k), parameter3(model.parameters, i, param.BUOYANCY_CENTER, k))
        h = (mass * center[0], mass * center[1], mass * center[2])
    store_rigid(scratch, i, SCRATCH_DISPLACED, k, Rigid(mass, h, (zero, zero, zero, zero, zero, zero)))
    if has_drag:
        nothing = subtract_drag(i, model, actions, nothing, work, k)
    store_spatial(scratch, i, SCRATCH_FORCE, k, nothing)


@kernel
def response_of_displaced_mass(i, s, field, scratch, k):
    """Return minus the change of the buoyancy of the subtree of dof i along a rotation s, seen in body axes.

    The rotation s (3), rad, and f, the `field` (3), m/s^2, are in world axes. The result is a Force about joint origin
    i, which the derivative of the joint forces contains. `scratch` is (n, WATER_DERIVATIVE_ROWS, lanes).
    """
    zero = zeros_like(s[0])
    change = cross(field, s)
    return rigid_times(load_rigid(scratch, i, SCRATCH_DISPLACED, k), Motion((zero, zero, zero), change))


@kernel
def differentiate_by_dof_in_water(i, model, actions, derivatives, scratch, work, k):
    """Add the terms of water to the derivatives of tau_j with respect to q_i and qd_i, for j = i and i's ancestors j.

    `derivatives` is (3, n, n, lanes), and `scratch` (n, WATER_DERIVATIVE_ROWS, lanes).
    """
    n, dof, first = model.parent.shape[0], work.dof, model.first[i]
    S, A = axis_motion(i, model, work, k), load_inertia(dof, i, frame.COMPOSITE, k)
    psidot = load_motion(scratch, i, SCRATCH_PSIDOT, k)
    by_q = add_forces(
        momentum(A, load_motion(scratch, i, SCRATCH_PSIDDOT, k)), general_coriolis_times(i, psidot, scratch, k)
    )
    field = field_of_water(model, actions, work, k)
    by_q = add_forces(by_q, response_of_displaced_mass(i, S.ang, field, scratch, k))
    by_qd = add_forces(
        momentum(A, add_motions(psidot, relative_axis_rate(i, S, actions, work, k))),
        general_coriolis_times(i, S, scratch, k),
    )
    j = i
    while j < n:
        axis, advance = z_axis(load9(dof, j, frame.R, k)), parameter(model.parameters, j, param.ADVANCE, k)
        derivatives[BY_Q, j, i, k] = derivatives[BY_Q, j, i, k] + joint_force(model.joint[j], axis, advance, by_q)
        derivatives[BY_QD, j, i, k] = derivatives[BY_QD, j, i, k] + joint_force(model.joint[j], axis, advance, by_qd)
        if j == first:
            by_q = add_forces(by_q, cross_force(S, load_force(scratch, i, SCRATCH_FORCE, k)))
        by_q, by_qd = force_on_parent(j, by_q, model, work, k), force_on_parent(j, by_qd, model, work, k)
        j = model.parent[j]


@kernel
def relative_axis_rate(i, S, actions, work, k):
    """Return u x S of dof i, a Motion in world axes: the rate of its axis S (a Motion), relative to the water."""
    v = load_motion(work.dof, i, frame.V, k)
    return cross_motion(Motion(v.ang, subtract3(v.lin, motion_of_water(actions, signal.VALUE, k))), S)


@kernel
def differentiate_force_of_dof_in_water(i, model, actions, derivatives, scratch, work, k):
    """Add the terms of water to the derivatives of tau_i with respect to q_j and qd_j, for the ancestors j of dof i.

    `derivatives` is (3, n, n, lanes), and `scratch` (n, WATER_DERIVATIVE_ROWS, lanes).
    """
    n, S = model.parent.shape[0], axis_motion(i, model, work, k)
    inertial = momentum(load_inertia(work.dof, i, frame.COMPOSITE, k), S)
    row = general_coriolis_transpose_times(i, S, scratch, k)
    displaced = rigid_times(load_rigid(scratch, i, SCRATCH_DISPLACED, k), S).lin
    field = field_of_water(model, actions, work, k)
    moment = cross(displaced, field)  # displaced . (f x s) = s . (displaced x f)
    j = i
    while model.parent[j] < n:
        inertial, row = force_on_parent(j, inertial, model, work, k), force_on_parent(j, row, model, work, k)
        j = model.parent[j]
        S_j, psidot = axis_motion(j, model, work, k), load_motion(scratch, j, SCRATCH_PSIDOT, k)
        by_q = power(inertial, load_motion(scratch, j, SCRATCH_PSIDDOT, k)) + power(row, psidot)
        by_q = by_q + (moment[0] * S_j.ang[0] + moment[1] * S_j.ang[1] + moment[2] * S_j.ang[2])
        axis_rate = add_motions(psidot, relative_axis_rate(j, S_j, actions, work, k))
        derivatives[BY_Q, i, j, k] = derivatives[BY_Q, i, j, k] + by_q
        derivatives[BY_QD, i, j, k] = derivatives[BY_QD, i, j, k] + (power(inertial, axis_rate) + power(row, S_j))


@kernel
def pass_response_of_water(i, model, scratch, work, k):
    """Add A, N, the displaced mass and the force of the subtree of dof i to its parent's (reads LEVER).

    `scratch` is (n, WATER_DERIVATIVE_ROWS, lanes).
    """
    pass_general_coriolis(i, model, scratch, work, k)
    pass_composite(i, model, work, k)
    p = model.parent[i]
    if p < model.parent.shape[0]:
        displaced = load_rigid(scratch, i, SCRATCH_DISPLACED, k)
        if model.posing[i] != POSING_CARRIED:
            displaced = rigid_at_root(displaced, load3(work.dof, i, frame.LEVER, k))
        displaced = add_rigids(load_rigid(scratch, p, SCRATCH_DISPLACED, k), displaced)
        store_rigid(scratch, p, SCRATCH_DISPLACED, k, displaced)
        f = force_on_parent(i, load_force(scratch, i, SCRATCH_FORCE, k), model, work, k)
        store_spatial(scratch, p, SCRATCH_FORCE, k, add_forces(load_force(scratch, p, SCRATCH_FORCE, k), f))
