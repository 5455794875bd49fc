"""The Coriolis matrix, from composite bodies (Echeandia and Wensing 2021, "Numerical methods to compute the Coriolis
matrix and Christoffel symbols for rigid-body systems", algorithm 1).

Their body-level matrix B = (v x* I + (I v) x* - I v x) / 2 turns out, for a rigid body, to be simple: it maps a motion
m to the force

    B m = (Q m.ang, m.ang x P)    with    P = m v.lin + v.ang x h,    Q = -[v.ang]x E + (h . v.lin) 1 - v.lin h^T,

where E = tr(J) / 2 - J is the second moment of the mass. As the force of all particles r it reads dm m.ang x u at each,
u being the particle's velocity. So B is twelve numbers; and referred to another point, P stays and Q gains r x (. x P).
"""

from typing import NamedTuple

from ..forces.added_mass import ADDED_MASS_B_ROWS, add_coriolis_of_water
from ..simd.jit import kernel
from ..simd.lanes import constant_like
from ..spatial.inertias import Rigid, rigid_times
from ..spatial.storage import load3, load9, load_motion, load_rigid, store3, store9, store_rigid, store_spatial
from ..spatial.vectors import Force, add3, add_forces, cross, dot, power, rotate, rotate_back, scale3, z_axis
from ..tree.joints import joint_bias, joint_force, joint_motion, rigid_along
from ..tree.kinematics import force_on_parent, move_dof, rigid_inertia
from ..tree.layout import PARAM_ADVANCE, POSING_CARRIED, ROW_LEVER, ROW_R, ROW_V, parameter
from .crba import RIGID_ROWS, pass_inertia

# Scratch of a body: composite inertia, composite B, and the rate of S.
SCRATCH_B = RIGID_ROWS
SCRATCH_SDOT = SCRATCH_B + 12
CORIOLIS_ROWS = max(SCRATCH_SDOT + 6, ADDED_MASS_B_ROWS)


class BodyCoriolis(NamedTuple):
    """B, the Coriolis matrix of a body or of a composite of bodies: Q (9) and P (3)."""

    Q: tuple
    P: tuple


@kernel
def body_coriolis(I, v):  # noqa: E741
    """B of one rigid body with velocity v."""
    m, h, J = I
    half = constant_like(J[0], 0.5)
    xx, yy, zz = half * (J[3] + J[5] - J[0]), half * (J[0] + J[5] - J[3]), half * (J[0] + J[3] - J[5])
    x, y, z = cross(v.ang, (xx, -J[1], -J[2])), cross(v.ang, (-J[1], yy, -J[4])), cross(v.ang, (-J[2], -J[4], zz))
    return BodyCoriolis(
        translate_moment_map(h, v.lin, (-x[0], -y[0], -z[0], -x[1], -y[1], -z[1], -x[2], -y[2], -z[2])),
        add3(scale3(m, v.lin), cross(v.ang, h)),
    )


@kernel
def translate_moment_map(r, P, Q):
    """Q + (r . P) 1 - P r^T: to Q m is added r x (m x P)."""
    d = dot(r, P)
    return (
        *(Q[0] + (d - P[0] * r[0]), Q[1] - P[0] * r[1], Q[2] - P[0] * r[2]),
        *(Q[3] - P[1] * r[0], Q[4] + (d - P[1] * r[1]), Q[5] - P[1] * r[2]),
        *(Q[6] - P[2] * r[0], Q[7] - P[2] * r[1], Q[8] + (d - P[2] * r[2])),
    )


@kernel
def coriolis_times(B, m):
    """B m"""
    return Force(rotate(B.Q, m.ang), cross(m.ang, B.P))


@kernel
def coriolis_transpose_moment(B, m):
    """The moment of B^T m, which has no force."""
    return add3(rotate_back(B.Q, m.ang), cross(B.P, m.lin))


@kernel
def load_coriolis(a, i, row, k):
    return BodyCoriolis(load9(a, i, row, k), load3(a, i, row + 9, k))


@kernel
def store_coriolis(a, i, row, k, x):
    store9(a, i, row, k, x.Q)
    store3(a, i, row + 9, k, x.P)


@kernel
def coriolis_matrix(model, q, qd, C, scratch, work, k):
    """C (n, n, lanes); scratch (n, CORIOLIS_ROWS, lanes).

    Pairs of bodies of which neither carries the other are not written: their entries stay zero.
    """
    n = model.parent.shape[0]
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
        start_composites(i, model, scratch, work, k)
    for i in range(n - 1, -1, -1):
        project_coriolis(i, model, C, scratch, work, k)
        pass_inertia(i, model, scratch, work, k)
        pass_coriolis(i, model, scratch, work, k)
    add_coriolis_of_water(model, C, scratch, work, k)


@kernel
def start_composites(i, model, scratch, work, k):
    """Inertia and B of body i alone, and the rate of its joint's axis: S' = v x S."""
    dof, v = work.dof, load_motion(work.dof, i, ROW_V, k)
    I_body = Rigid(*rigid_inertia(i, model, work, k))
    axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    store_rigid(scratch, i, 0, k, I_body)
    store_coriolis(scratch, i, SCRATCH_B, k, body_coriolis(I_body, v))
    store_spatial(
        scratch, i, SCRATCH_SDOT, k, joint_bias(model.joint[i], v, axis, advance, constant_like(axis[0], 1.0))
    )


@kernel
def pass_coriolis(i, model, scratch, work, k):
    """Add to the parent the B of what body i carries, itself included, about the parent's joint origin."""
    p = model.parent[i]
    if p < model.parent.shape[0]:
        mine, its = load_coriolis(scratch, i, SCRATCH_B, k), load_coriolis(scratch, p, SCRATCH_B, k)
        S, T = mine.Q, its.Q
        if model.posing[i] != POSING_CARRIED:  # else both are at the same point
            S = translate_moment_map(load3(work.dof, i, ROW_LEVER, k), mine.P, S)
        total = (
            *(S[0] + T[0], S[1] + T[1], S[2] + T[2], S[3] + T[3], S[4] + T[4]),
            *(S[5] + T[5], S[6] + T[6], S[7] + T[7], S[8] + T[8]),
        )
        store_coriolis(scratch, p, SCRATCH_B, k, BodyCoriolis(total, add3(mine.P, its.P)))


@kernel
def project_coriolis(i, model, C, scratch, work, k):
    """C_ji = S_j . (Ic S'_i + Bc S_i) and C_ij = S'_j . Ic S_i + S_j . Bc^T S_i for body i and all that carry it."""
    n, dof = model.parent.shape[0], work.dof
    axis, advance = z_axis(load9(dof, i, ROW_R, k)), parameter(model.parameters, i, PARAM_ADVANCE, k)
    S = joint_motion(model.joint[i], axis, advance)
    I_c, B_c = load_rigid(scratch, i, 0, k), load_coriolis(scratch, i, SCRATCH_B, k)
    f_column = add_forces(rigid_times(I_c, load_motion(scratch, i, SCRATCH_SDOT, k)), coriolis_times(B_c, S))
    f_row, moment = rigid_along(model.joint[i], I_c, axis, advance), coriolis_transpose_moment(B_c, S)
    C[i, i, k] = joint_force(model.joint[i], axis, advance, f_column)
    j = i
    while model.parent[j] < n:
        f_column, f_row = force_on_parent(j, f_column, model, work, k), force_on_parent(j, f_row, model, work, k)
        j = model.parent[j]
        axis, advance = z_axis(load9(dof, j, ROW_R, k)), parameter(model.parameters, j, PARAM_ADVANCE, k)
        S = joint_motion(model.joint[j], axis, advance)
        C[j, i, k] = joint_force(model.joint[j], axis, advance, f_column)
        C[i, j, k] = power(f_row, load_motion(scratch, j, SCRATCH_SDOT, k)) + dot(moment, S.ang)


@kernel
def christoffel_symbols(model, q, qd, symbols, C, scratch, work, k):
    """symbols (n, n, n, lanes) with C_ij = sum of symbols_ijl qd_l: C is linear in qd, so C for one unit after another.

    C (n, n, lanes) is scratch and starts as zero; overwrites qd.
    """
    n = model.parent.shape[0]
    for j in range(n):
        qd[j, k] = constant_like(qd, 0.0)
    for unit in range(n):
        qd[unit, k] = constant_like(qd, 1.0)
        coriolis_matrix(model, q, qd, C, scratch, work, k)
        qd[unit, k] = constant_like(qd, 0.0)
        for i in range(n):
            for j in range(n):
                symbols[i, j, unit, k] = C[i, j, k]
