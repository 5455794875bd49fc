"""Coriolis matrix: compute C(q, qd) and its Christoffel symbols from composite bodies.

Source: Echeandia and Wensing (2021), "Numerical methods to compute the Coriolis matrix and Christoffel symbols for
rigid-body systems", algorithm 1. For a rigid body, their matrix B = (v x* I + (I v) x* - I v x) / 2 maps a motion m to
the force

    B m = (Q m.ang, m.ang x P)  with  P = mass v.lin + v.ang x h,  Q = -[v.ang]x E + (h . v.lin) 1 - v.lin h^T,

where E = tr(J) / 2 - J is the second moment of the mass. B m is the sum over all particles of dm (m.ang x u), where u
is the velocity of the particle of mass dm. B is therefore stored as twelve numbers, Q and P. To refer B to another
point, keep P and add r x (. x P) to Q.
"""

from typing import NamedTuple

from ...compiling.jit import kernel
from ..forces.added_mass import ADDED_MASS_B_ROWS, add_coriolis_of_water
from ..lanes.lanes import constant_like
from ..spatial.inertias import Rigid, rigid_times
from ..spatial.storage import load3, load9, load_motion, load_rigid, store3, store9, store_rigid, store_spatial
from ..spatial.vectors import Force, add3, add_forces, cross, dot, power, rotate, rotate_back, scale3, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import joint_bias, joint_force, joint_motion, rigid_along
from ..tree.kinematics import force_on_parent, move_dof, rigid_inertia
from ..tree.layout import POSING_CARRIED, parameter
from .crba import RIGID_ROWS, pass_inertia

# Rows of the scratch memory of a dof: composite inertia, composite B, and the rate of S.
SCRATCH_B = RIGID_ROWS
SCRATCH_SDOT = SCRATCH_B + 12
CORIOLIS_ROWS = max(SCRATCH_SDOT + 6, ADDED_MASS_B_ROWS)


class BodyCoriolis(NamedTuple):
    """Matrix B of a rigid body or of a composite body: Q (9), kg m^2/s, and P (3), kg m/s.

    B is in world axes, and refers to a joint origin.
    """

    Q: tuple
    P: tuple


@kernel
def body_coriolis(I, v):  # noqa: E741
    """Compute B of a rigid body with inertia I (a Rigid) and velocity v (a Motion), in world axes about one point."""
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
    """Refer Q from the tip of the lever r to its root: Q + (r . P) 1 - P r^T, which adds r x (m x P) to Q m.

    r (3) is in world axes, m. Q (9) is in kg m^2/s, and P (3) in kg m/s.
    """
    d = dot(r, P)
    return (
        *(Q[0] + (d - P[0] * r[0]), Q[1] - P[0] * r[1], Q[2] - P[0] * r[2]),
        *(Q[3] - P[1] * r[0], Q[4] + (d - P[1] * r[1]), Q[5] - P[1] * r[2]),
        *(Q[6] - P[2] * r[0], Q[7] - P[2] * r[1], Q[8] + (d - P[2] * r[2])),
    )


@kernel
def coriolis_times(B, m):
    """Compute B m, a Force, for a Motion m at the point of B (a BodyCoriolis)."""
    return Force(rotate(B.Q, m.ang), cross(m.ang, B.P))


@kernel
def coriolis_transpose_moment(B, m):
    """Compute the moment (3) of B^T m for a Motion m at the point of B. The force of B^T m is zero."""
    return add3(rotate_back(B.Q, m.ang), cross(B.P, m.lin))


@kernel
def load_coriolis(a, i, row, k):
    """Load B of dof i from an array (dofs, rows, lanes), starting at `row`: Q (9), P (3)."""
    return BodyCoriolis(load9(a, i, row, k), load3(a, i, row + 9, k))


@kernel
def store_coriolis(a, i, row, k, x):
    """Store B of dof i in an array (dofs, rows, lanes), starting at `row`: Q (9), P (3)."""
    store9(a, i, row, k, x.Q)
    store3(a, i, row + 9, k, x.P)


@kernel
def coriolis_matrix(model, q, qd, C, scratch, work, k):
    """Compute the Coriolis matrix C (n, n, lanes) for the samples in lanes k.

    C must start as zeros. Only the diagonal and entries (i, j) where one dof is an ancestor of the other are written;
    all others stay zero. C qd (n, lanes) is in N m or N.
    `scratch` (n, CORIOLIS_ROWS, lanes) is scratch memory.
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
    """Store the inertia and B of the body of dof i, and the rate of its axis, S' = v x S.

    All are in world axes, about the joint origin. Writes a Rigid, B and a Motion to the rows 0, SCRATCH_B and
    SCRATCH_SDOT of `scratch` (n, CORIOLIS_ROWS or more, lanes).
    """
    dof, v = work.dof, load_motion(work.dof, i, frame.V, k)
    I_body = Rigid(*rigid_inertia(i, model, work, k))
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    store_rigid(scratch, i, 0, k, I_body)
    store_coriolis(scratch, i, SCRATCH_B, k, body_coriolis(I_body, v))
    store_spatial(
        scratch, i, SCRATCH_SDOT, k, joint_bias(model.joint[i], v, axis, advance, constant_like(axis[0], 1.0))
    )


@kernel
def pass_coriolis(i, model, scratch, work, k):
    """Add the composite B of the subtree of dof i to its parent's composite B, about the parent's joint origin.

    B is in the rows of `scratch` (n, CORIOLIS_ROWS or more, lanes) that start at SCRATCH_B.
    """
    p = model.parent[i]
    if p < model.parent.shape[0]:
        B_i, B_p = load_coriolis(scratch, i, SCRATCH_B, k), load_coriolis(scratch, p, SCRATCH_B, k)
        Q, G = B_i.Q, B_p.Q
        if model.posing[i] != POSING_CARRIED:  # a carried dof has the same joint origin as its parent
            Q = translate_moment_map(load3(work.dof, i, frame.LEVER, k), B_i.P, Q)
        total = (
            *(Q[0] + G[0], Q[1] + G[1], Q[2] + G[2], Q[3] + G[3], Q[4] + G[4]),
            *(Q[5] + G[5], Q[6] + G[6], Q[7] + G[7], Q[8] + G[8]),
        )
        store_coriolis(scratch, p, SCRATCH_B, k, BodyCoriolis(total, add3(B_i.P, B_p.P)))


@kernel
def project_coriolis(i, model, C, scratch, work, k):
    """Compute the entries of C for dof i and its ancestors j.

    C_ji = S_j . (Ic S'_i + Bc S_i)
    C_ij = S'_j . Ic S_i + S_j . Bc^T S_i

    C is (n, n, lanes), and `scratch` (n, CORIOLIS_ROWS, lanes) has the composites of the subtree of dof i.
    """
    n, dof = model.parent.shape[0], work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    S = joint_motion(model.joint[i], axis, advance)
    Ic, Bc = load_rigid(scratch, i, 0, k), load_coriolis(scratch, i, SCRATCH_B, k)
    f_column = add_forces(rigid_times(Ic, load_motion(scratch, i, SCRATCH_SDOT, k)), coriolis_times(Bc, S))
    f_row, moment = rigid_along(model.joint[i], Ic, axis, advance), coriolis_transpose_moment(Bc, S)
    C[i, i, k] = joint_force(model.joint[i], axis, advance, f_column)
    j = i
    while model.parent[j] < n:
        f_column, f_row = force_on_parent(j, f_column, model, work, k), force_on_parent(j, f_row, model, work, k)
        j = model.parent[j]
        axis, advance = z_axis(load9(dof, j, frame.R, k)), parameter(model.parameters, j, param.ADVANCE, k)
        S = joint_motion(model.joint[j], axis, advance)
        C[j, i, k] = joint_force(model.joint[j], axis, advance, f_column)
        C[i, j, k] = power(f_row, load_motion(scratch, j, SCRATCH_SDOT, k)) + dot(moment, S.ang)


@kernel
def christoffel_symbols(model, q, qd, symbols, C, scratch, work, k):
    """Compute the Christoffel symbols (n, n, n, lanes), for which C_ij = sum over l of symbols_ijl qd_l.

    C is linear in qd, so the symbols for l are the matrix C of a unit velocity of dof l. C (n, n, lanes) is scratch
    memory and must start as zeros. Overwrites qd. The symbols are in kg m^2, kg m or kg. `scratch` is as for
    `coriolis_matrix`.
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
