"""Sweeps that add water to the mass matrix, to the Coriolis matrix and to the joint forces.

The algorithms are the same as in `crba` and `coriolis`, with a general symmetric inertia A for each body: added masses
do not have the form of rigid bodies. The body-level matrix of Echeandia and Wensing (2021) is

    B = (v x* A + (A v) x~* - A v x) / 2,  (f) x~* m = m x* f

It has a short form for rigid bodies only. These kernels store its product with each of the six unit motions.
"""

from ...compiling.jit import kernel, only_if
from ..lanes.lanes import constant_like, full_like, zeros_like
from ..spatial.inertias import add_inertias, inertia_at_root, momentum
from ..spatial.storage import load3, load9, load_force, load_inertia, load_motion, store_inertia, store_spatial
from ..spatial.vectors import (
    Force,
    Motion,
    add_forces,
    cross_force,
    cross_motion,
    force_at_root,
    motion_at_tip,
    power,
    scale_force,
    subtract_forces,
    z_axis,
)
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import inertia_along, joint_bias, joint_force, joint_motion
from ..tree.kinematics import force_on_parent, move_dof
from ..tree.layout import POSING_CARRIED, parameter
from .hydrodynamics import added_inertia, drag, is_in_water

# Rows of B in the scratch of the Coriolis matrix. They replace B of the rigid bodies, which is no longer used.
ADDED_MASS_B_ROWS = 36


def _is_in_water(model, *_):
    return is_in_water(model)


@only_if(_is_in_water)
@kernel
def add_drag(model, q, qd, forces, work, k):
    """Add the drag of still water to joint forces (n, lanes): S_i^T (sum of the drag in the subtree of dof i).

    Writes R, LEVER, V and F. The joint forces `forces` are in N m or N.
    """
    n, dof = model.parent.shape[0], work.dof
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
        store_spatial(dof, i, frame.F, k, drag(i, model, load_motion(dof, i, frame.V, k), work, k))
    for i in range(n - 1, -1, -1):
        axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
        f, p = load_force(dof, i, frame.F, k), model.parent[i]
        forces[i, k] = forces[i, k] + joint_force(model.joint[i], axis, advance, f)
        if p < n:
            f_parent = force_on_parent(i, f, model, work, k)
            store_spatial(dof, p, frame.F, k, add_forces(load_force(dof, p, frame.F, k), f_parent))


@only_if(_is_in_water)
@kernel
def add_mass_of_water(model, H, work, k):
    """Add the added masses to the mass matrix H (n, n, lanes), kg m^2, kg m or kg.

    Reads R and LEVER; writes COMPOSITE.
    """
    n = model.parent.shape[0]
    for i in range(n):
        start_composite(i, model, work, k)
    for i in range(n - 1, -1, -1):
        project_mass(i, model, H, work, k)
        pass_composite(i, model, work, k)


@kernel
def start_composite(i, model, work, k):
    """Set COMPOSITE of dof i to the added mass of its body, or to zero without a body (reads R)."""
    if model.body[i] >= 0:
        store_inertia(work.dof, i, frame.COMPOSITE, k, added_inertia(i, model, work, k))
    else:
        for row in range(21):
            work.dof[i, frame.COMPOSITE + row, k] = constant_like(work.dof, 0.0)


@kernel
def pass_composite(i, model, work, k):
    """Add COMPOSITE of dof i to COMPOSITE of its parent, about the parent's joint origin: Ac_parent += Ac_i."""
    p, dof = model.parent[i], work.dof
    if p < model.parent.shape[0]:
        Ac = load_inertia(dof, i, frame.COMPOSITE, k)
        if model.posing[i] != POSING_CARRIED:
            Ac = inertia_at_root(Ac, load3(dof, i, frame.LEVER, k))
        store_inertia(dof, p, frame.COMPOSITE, k, add_inertias(load_inertia(dof, p, frame.COMPOSITE, k), Ac))


@kernel
def project_mass(i, model, H, work, k):
    """Add S_j . Ac_i S_i to H_ij and H_ji, for dof i and its ancestors j (reads R, LEVER and COMPOSITE).

    H is (n, n, lanes).
    """
    n, dof = model.parent.shape[0], work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    f = inertia_along(model.joint[i], load_inertia(dof, i, frame.COMPOSITE, k), axis, advance)
    H[i, i, k] = H[i, i, k] + joint_force(model.joint[i], axis, advance, f)
    j = i
    while model.parent[j] < n:
        f = force_on_parent(j, f, model, work, k)
        j = model.parent[j]
        axis, advance = z_axis(load9(dof, j, frame.R, k)), parameter(model.parameters, j, param.ADVANCE, k)
        H_ij = H[i, j, k] + joint_force(model.joint[j], axis, advance, f)
        H[i, j, k] = H_ij
        H[j, i, k] = H_ij


@only_if(_is_in_water)
@kernel
def add_coriolis_of_water(model, C, scratch, work, k):
    """Add the added masses to the Coriolis matrix C (n, n, lanes).

    Writes the first ADDED_MASS_B_ROWS rows of scratch (n, CORIOLIS_ROWS, lanes). Reads R, LEVER and V; writes
    COMPOSITE.
    """
    n = model.parent.shape[0]
    for i in range(n):
        start_composite(i, model, work, k)
        start_general_coriolis(i, scratch, work, k)
    for i in range(n - 1, -1, -1):
        project_general_coriolis(i, model, C, scratch, work, k)
        pass_general_coriolis(i, model, scratch, work, k)
        pass_composite(i, model, work, k)


@kernel
def unit_motion(row, x):
    """Return the motion whose entry `row` is one, angular before linear, in the precision and lanes of x.

    x is a number, and the result a Motion.
    """
    zero, one, j = zeros_like(x), full_like(x, 1.0), row
    return Motion(
        (one if j == 0 else zero, one if j == 1 else zero, one if j == 2 else zero),
        (one if j == 3 else zero, one if j == 4 else zero, one if j == 5 else zero),
    )


@kernel
def start_general_coriolis(i, scratch, work, k):
    """Store B m = (v x* A m + m x* A v - A (v x m)) / 2 of the body of dof i, for each unit motion m.

    Reads V, and A in COMPOSITE. Writes the six Forces, in world axes about the joint origin, to the first
    ADDED_MASS_B_ROWS rows of `scratch` (n, rows, lanes).
    """
    A, v = load_inertia(work.dof, i, frame.COMPOSITE, k), load_motion(work.dof, i, frame.V, k)
    Av = momentum(A, v)
    half = constant_like(work.dof, 0.5)
    for row in range(6):
        m = unit_motion(row, v.ang[0])
        f = add_forces(cross_force(v, momentum(A, m)), cross_force(m, Av))
        f = subtract_forces(f, momentum(A, cross_motion(v, m)))
        store_spatial(scratch, i, 6 * row, k, scale_force(half, f))


@kernel
def general_coriolis_times(i, m, scratch, k):
    """Return B m of dof i: a Force for a Motion m, at the joint origin.

    B is in the first ADDED_MASS_B_ROWS rows of `scratch` (n, rows, lanes).
    """
    x, y, z = m.ang
    u, v, w = m.lin
    f = scale_force(x, load_force(scratch, i, 0, k))
    f = add_forces(f, scale_force(y, load_force(scratch, i, 6, k)))
    f = add_forces(f, scale_force(z, load_force(scratch, i, 12, k)))
    f = add_forces(f, scale_force(u, load_force(scratch, i, 18, k)))
    f = add_forces(f, scale_force(v, load_force(scratch, i, 24, k)))
    return add_forces(f, scale_force(w, load_force(scratch, i, 30, k)))


@kernel
def general_coriolis_transpose_times(i, m, scratch, k):
    """Return B^T m of dof i: a Force for a Motion m, at the joint origin.

    B is in the first ADDED_MASS_B_ROWS rows of `scratch` (n, rows, lanes).
    """
    return Force(
        (
            power(load_force(scratch, i, 0, k), m),
            power(load_force(scratch, i, 6, k), m),
            power(load_force(scratch, i, 12, k), m),
        ),
        (
            power(load_force(scratch, i, 18, k), m),
            power(load_force(scratch, i, 24, k), m),
            power(load_force(scratch, i, 30, k), m),
        ),
    )


@kernel
def pass_general_coriolis(i, model, scratch, work, k):
    """Add B of the subtree of dof i to B of its parent, about the parent's joint origin (reads LEVER).

    B is in the first ADDED_MASS_B_ROWS rows of `scratch` (n, rows, lanes).
    """
    p = model.parent[i]
    if p < model.parent.shape[0]:
        r = load3(work.dof, i, frame.LEVER, k)
        for row in range(6):
            m = motion_at_tip(unit_motion(row, r[0]), r)
            f = force_at_root(general_coriolis_times(i, m, scratch, k), r)
            store_spatial(scratch, p, 6 * row, k, add_forces(load_force(scratch, p, 6 * row, k), f))


@kernel
def project_general_coriolis(i, model, C, scratch, work, k):
    """Add the added masses to the entries of C for dof i and its ancestors j, with S' = v x S.

    C_ji += S_j . (Ac S'_i + Bc S_i),  C_ij += S'_j . Ac S_i + S_j . Bc^T S_i

    C is (n, n, lanes), and `scratch` (n, rows, lanes) contains B of the subtree.
    """
    n, dof = model.parent.shape[0], work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    S, A = joint_motion(model.joint[i], axis, advance), load_inertia(dof, i, frame.COMPOSITE, k)
    S_rate = joint_bias(model.joint[i], load_motion(dof, i, frame.V, k), axis, advance, constant_like(axis[0], 1.0))
    f_column = add_forces(momentum(A, S_rate), general_coriolis_times(i, S, scratch, k))
    f_row, b_row = momentum(A, S), general_coriolis_transpose_times(i, S, scratch, k)
    C[i, i, k] = C[i, i, k] + joint_force(model.joint[i], axis, advance, f_column)
    j = i
    while model.parent[j] < n:
        f_column, f_row = force_on_parent(j, f_column, model, work, k), force_on_parent(j, f_row, model, work, k)
        b_row = force_on_parent(j, b_row, model, work, k)
        j = model.parent[j]
        axis, advance = z_axis(load9(dof, j, frame.R, k)), parameter(model.parameters, j, param.ADVANCE, k)
        S_rate = joint_bias(model.joint[j], load_motion(dof, j, frame.V, k), axis, advance, constant_like(axis[0], 1.0))
        C[j, i, k] = C[j, i, k] + joint_force(model.joint[j], axis, advance, f_column)
        C[i, j, k] = C[i, j, k] + power(f_row, S_rate) + joint_force(model.joint[j], axis, advance, b_row)


# --- functions for the algorithms, which do nothing for models in air -------------------------------------------------
