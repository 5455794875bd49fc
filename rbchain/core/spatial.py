"""Spatial vectors and inertias (Featherstone 2008, chapter 2) as tuples of numbers, and their algebra.

All quantities of a body are in world-aligned axes and refer to a point, by default the body's joint origin; passing one
to another point is a translation by a lever `r`. A 3-vector is a tuple of 3; a rotation matrix a tuple of 9, row by
row; a symmetric matrix a tuple of 6: xx, xy, xz, yy, yz, zz.
"""

from typing import NamedTuple

from .jit import kernel


class Motion(NamedTuple):
    """Velocity or acceleration: angular part, and linear part of the body-fixed point at the reference point."""

    ang: tuple
    lin: tuple


class Force(NamedTuple):
    """Wrench or momentum: moment about the reference point, and force."""

    ang: tuple
    lin: tuple


class Inertia(NamedTuple):
    """[[J, H], [H^T, M]]: maps a Motion to a Force. J and M symmetric (6), H general (9).

    Of a rigid body, H = [h]x with the first moment h = m c, and M = m 1; of an articulated one, anything symmetric.
    """

    J: tuple
    H: tuple
    M: tuple


# --- vectors and matrices ---------------------------------------------------------------------------------------------


@kernel
def add3(a, b):
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@kernel
def subtract3(a, b):
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@kernel
def scale3(s, a):
    return (s * a[0], s * a[1], s * a[2])


@kernel
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@kernel
def rotate(R, a):
    """R a"""
    return (
        R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
        R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
        R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
    )


@kernel
def rotate_back(R, a):
    """R^T a"""
    return (
        R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
        R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
        R[2] * a[0] + R[5] * a[1] + R[8] * a[2],
    )


@kernel
def compose(A, B):
    """A B"""
    return (
        A[0] * B[0] + A[1] * B[3] + A[2] * B[6],
        A[0] * B[1] + A[1] * B[4] + A[2] * B[7],
        A[0] * B[2] + A[1] * B[5] + A[2] * B[8],
        A[3] * B[0] + A[4] * B[3] + A[5] * B[6],
        A[3] * B[1] + A[4] * B[4] + A[5] * B[7],
        A[3] * B[2] + A[4] * B[5] + A[5] * B[8],
        A[6] * B[0] + A[7] * B[3] + A[8] * B[6],
        A[6] * B[1] + A[7] * B[4] + A[8] * B[7],
        A[6] * B[2] + A[7] * B[5] + A[8] * B[8],
    )


@kernel
def turn_about_z(R, s, c):
    """R rot(z, q), given sine and cosine of q."""
    return (
        R[0] * c + R[1] * s,
        R[1] * c - R[0] * s,
        R[2],
        R[3] * c + R[4] * s,
        R[4] * c - R[3] * s,
        R[5],
        R[6] * c + R[7] * s,
        R[7] * c - R[6] * s,
        R[8],
    )


@kernel
def next_axes(R):
    """The same axes with y in the place of x, z of y, and x of z."""
    return (R[1], R[2], R[0], R[4], R[5], R[3], R[7], R[8], R[6])


@kernel
def z_axis(R):
    return (R[2], R[5], R[8])


@kernel
def symmetric(S, a):
    """S a"""
    return (
        S[0] * a[0] + S[1] * a[1] + S[2] * a[2],
        S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
        S[2] * a[0] + S[4] * a[1] + S[5] * a[2],
    )


@kernel
def rotate_symmetric(R, S):
    """R S R^T"""
    x = symmetric(S, (R[0], R[1], R[2]))
    y = symmetric(S, (R[3], R[4], R[5]))
    z = symmetric(S, (R[6], R[7], R[8]))
    return (
        x[0] * R[0] + x[1] * R[1] + x[2] * R[2],
        x[0] * R[3] + x[1] * R[4] + x[2] * R[5],
        x[0] * R[6] + x[1] * R[7] + x[2] * R[8],
        y[0] * R[3] + y[1] * R[4] + y[2] * R[5],
        y[0] * R[6] + y[1] * R[7] + y[2] * R[8],
        z[0] * R[6] + z[1] * R[7] + z[2] * R[8],
    )


# --- spatial vectors --------------------------------------------------------------------------------------------------


@kernel
def cross_motion(v, m):
    """v x m: the rate of change of a motion vector m that moves with v."""
    return Motion(cross(v.ang, m.ang), add3(cross(v.ang, m.lin), cross(v.lin, m.ang)))


@kernel
def add_motions(a, b):
    return Motion(add3(a.ang, b.ang), add3(a.lin, b.lin))


@kernel
def add_forces(a, b):
    return Force(add3(a.ang, b.ang), add3(a.lin, b.lin))


@kernel
def subtract_forces(a, b):
    return Force(subtract3(a.ang, b.ang), subtract3(a.lin, b.lin))


@kernel
def scale_force(s, f):
    return Force(scale3(s, f.ang), scale3(s, f.lin))


@kernel
def power(f, m):
    """f . m: the rate of work of a force on a motion."""
    return dot(f.ang, m.ang) + dot(f.lin, m.lin)


@kernel
def cross_force(v, f):
    """v x* f: the rate of change of a force vector f that moves with v."""
    return Force(add3(cross(v.ang, f.ang), cross(v.lin, f.lin)), cross(v.ang, f.lin))


@kernel
def motion_at_tip(m, r):
    """The same motion, referred to the tip of the lever r."""
    return Motion(m.ang, add3(m.lin, cross(m.ang, r)))


@kernel
def force_at_root(f, r):
    """The same force, referred from the tip of the lever r to its root."""
    return Force(add3(f.ang, cross(r, f.lin)), f.lin)


# --- rigid bodies and what hangs on them as one -----------------------------------------------------------------------


class Rigid(NamedTuple):
    """Inertia of a rigid body about a point: mass, first moment (3) and rotational inertia (6)."""

    m: object
    h: tuple
    J: tuple


@kernel
def add_rigids(A, B):
    J, K = A.J, B.J
    return Rigid(
        A.m + B.m,
        add3(A.h, B.h),
        (J[0] + K[0], J[1] + K[1], J[2] + K[2], J[3] + K[3], J[4] + K[4], J[5] + K[5]),
    )


@kernel
def rigid_at_root(A, r):
    """The same rigid inertia, referred from the tip of the lever r to its root."""
    h, J = A.h, A.J
    g = add3(h, scale3(A.m, r))  # the first moment about the root
    xx, yy, zz = r[0] * (h[0] + g[0]), r[1] * (h[1] + g[1]), r[2] * (h[2] + g[2])
    return Rigid(
        A.m,
        g,
        (
            *(J[0] + (yy + zz), J[1] - (r[0] * g[1] + h[0] * r[1]), J[2] - (r[0] * g[2] + h[0] * r[2])),
            *(J[3] + (xx + zz), J[4] - (r[1] * g[2] + h[1] * r[2]), J[5] + (xx + yy)),
        ),
    )


@kernel
def rigid_times(A, m):
    """A m"""
    return rigid_momentum(A.m, A.h, A.J, m)


# --- inertias ---------------------------------------------------------------------------------------------------------


@kernel
def add_inertias(A, B):
    J, H, M, K, G, N = A.J, A.H, A.M, B.J, B.H, B.M
    return Inertia(
        (J[0] + K[0], J[1] + K[1], J[2] + K[2], J[3] + K[3], J[4] + K[4], J[5] + K[5]),
        (
            *(H[0] + G[0], H[1] + G[1], H[2] + G[2], H[3] + G[3], H[4] + G[4]),
            *(H[5] + G[5], H[6] + G[6], H[7] + G[7], H[8] + G[8]),
        ),
        (M[0] + N[0], M[1] + N[1], M[2] + N[2], M[3] + N[3], M[4] + N[4], M[5] + N[5]),
    )


@kernel
def add_rigid(A, m, h, J):
    """A + the inertia of a rigid body with mass m, first moment h and rotational inertia J about the same point."""
    H, M, K = A.H, A.M, A.J
    return Inertia(
        (K[0] + J[0], K[1] + J[1], K[2] + J[2], K[3] + J[3], K[4] + J[4], K[5] + J[5]),
        (H[0], H[1] - h[2], H[2] + h[1], H[3] + h[2], H[4], H[5] - h[0], H[6] - h[1], H[7] + h[0], H[8]),
        (M[0] + m, M[1], M[2], M[3] + m, M[4], M[5] + m),
    )


@kernel
def momentum(A, m):
    """A m: the force (or momentum) that goes with an acceleration (or velocity)."""
    H = A.H
    return Force(
        add3(symmetric(A.J, m.ang), rotate(H, m.lin)),
        add3(rotate_back(H, m.ang), symmetric(A.M, m.lin)),
    )


@kernel
def rigid_momentum(m, h, J, v):
    """I v of a rigid body with mass m, first moment h and rotational inertia J."""
    return Force(add3(symmetric(J, v.ang), cross(h, v.lin)), add3(scale3(m, v.lin), cross(v.ang, h)))


@kernel
def deflate(A, U, Dinv):
    """A - U U^T / D: what is left of an inertia once a joint gives way along its own axis."""
    J, H, M = A.J, A.H, A.M
    a, l = U.ang, U.lin  # noqa: E741
    x, y = scale3(Dinv, a), scale3(Dinv, l)
    return Inertia(
        (
            *(J[0] - x[0] * a[0], J[1] - x[0] * a[1], J[2] - x[0] * a[2]),
            *(J[3] - x[1] * a[1], J[4] - x[1] * a[2], J[5] - x[2] * a[2]),
        ),
        (
            *(H[0] - x[0] * l[0], H[1] - x[0] * l[1], H[2] - x[0] * l[2]),
            *(H[3] - x[1] * l[0], H[4] - x[1] * l[1], H[5] - x[1] * l[2]),
            *(H[6] - x[2] * l[0], H[7] - x[2] * l[1], H[8] - x[2] * l[2]),
        ),
        (
            *(M[0] - y[0] * l[0], M[1] - y[0] * l[1], M[2] - y[0] * l[2]),
            *(M[3] - y[1] * l[1], M[4] - y[1] * l[2], M[5] - y[2] * l[2]),
        ),
    )


@kernel
def inertia_at_root(A, r):
    """The same inertia, referred from the tip of the lever r to its root.

    H' = H + [r]x M,  J' = J + [r]x H^T - H' [r]x  (Featherstone 2008, table 2.8, for axes that are parallel).
    """
    J, H, M = A.J, A.H, A.M
    x, y, z = r
    G = (
        *(H[0] + (y * M[2] - z * M[1]), H[1] + (y * M[4] - z * M[3]), H[2] + (y * M[5] - z * M[4])),
        *(H[3] + (z * M[0] - x * M[2]), H[4] + (z * M[1] - x * M[4]), H[5] + (z * M[2] - x * M[5])),
        *(H[6] + (x * M[1] - y * M[0]), H[7] + (x * M[3] - y * M[1]), H[8] + (x * M[4] - y * M[2])),
    )
    K = (
        J[0] + (y * H[2] - z * H[1]) - (G[1] * z - G[2] * y),
        J[1] + (y * H[5] - z * H[4]) - (G[2] * x - G[0] * z),
        J[2] + (y * H[8] - z * H[7]) - (G[0] * y - G[1] * x),
        J[3] + (z * H[3] - x * H[5]) - (G[5] * x - G[3] * z),
        J[4] + (z * H[6] - x * H[8]) - (G[3] * y - G[4] * x),
        J[5] + (x * H[7] - y * H[6]) - (G[6] * y - G[7] * x),
    )
    return Inertia(K, G, M)
