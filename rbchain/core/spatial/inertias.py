"""Inertias of rigid and of articulated bodies, which map accelerations to forces, and velocities to momenta.

All inertias are in world axes and about a point, by default a joint origin. Symmetric matrices (6) hold xx, xy, xz, yy,
yz, zz; general ones (9) their rows. Source: Featherstone (2008), chapters 2 and 7.
"""

from typing import NamedTuple

from ...compiling.jit import kernel
from .vectors import Force, add3, cross, rotate, rotate_back, scale3, symmetric

# --- rigid and composite bodies --------------------------------------------------------------------------------------


class Rigid(NamedTuple):
    """Inertia of a rigid body about a point: mass m, kg; first moment h (3), kg m; rotational inertia J (6), kg m^2."""

    m: object
    h: tuple
    J: tuple


@kernel
def add_rigids(A, B):
    """Return A + B for two Rigids about the same point: the inertia of two bodies that move as one."""
    J, K = A.J, B.J
    return Rigid(
        A.m + B.m,
        add3(A.h, B.h),
        (J[0] + K[0], J[1] + K[1], J[2] + K[2], J[3] + K[3], J[4] + K[4], J[5] + K[5]),
    )


@kernel
def rigid_at_root(A, r):
    """Refer a rigid inertia about the tip of the lever r to its root.

    h' = h + m r,  J' = J - [r]x [h]x - [h']x [r]x

    A is a Rigid, and r (3) is in world axes, m.
    """
    h, J = A.h, A.J
    g = add3(h, scale3(A.m, r))  # h'
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
    """Return A m (a Force) for a Rigid A and a Motion m: the momentum of a rigid body with velocity m."""
    return rigid_momentum(A.m, A.h, A.J, m)


@kernel
def rigid_momentum(m, h, J, v):
    """Return I v for a rigid body with mass m, first moment h and rotational inertia J.

    I v = (J w + h x v0, m v0 + w x h) with v = (w, v0) (Featherstone 2008, eq. 2.63).

    m, h (3) and J (6) are the numbers of a `Rigid`, and v is a Motion. The result is a Force: kg m^2/s and kg m/s, or N
    m and N if v is an acceleration.
    """
    return Force(add3(symmetric(J, v.ang), cross(h, v.lin)), add3(scale3(m, v.lin), cross(v.ang, h)))


# --- articulated bodies ----------------------------------------------------------------------------------------------


class Inertia(NamedTuple):
    """Spatial inertia [[J, H], [H^T, M]], which maps a Motion to a Force: J and M symmetric (6), H general (9).

    J is in kg m^2, H in kg m and M in kg. A rigid body has H = [h]x with the first moment h = m c, and M = m 1.
    Articulated inertias and added masses do not have this form in general.
    """

    J: tuple
    H: tuple
    M: tuple


@kernel
def add_inertias(A, B):
    """Return A + B for two Inertias about the same point."""
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
    """Return A + I for a rigid body with mass m, first moment h and rotational inertia J about the same point.

    A is an Inertia. m, kg, h (3), kg m, and J (6), kg m^2, are the numbers of a `Rigid`.
    """
    H, M, K = A.H, A.M, A.J
    return Inertia(
        (K[0] + J[0], K[1] + J[1], K[2] + J[2], K[3] + J[3], K[4] + J[4], K[5] + J[5]),
        (H[0], H[1] - h[2], H[2] + h[1], H[3] + h[2], H[4], H[5] - h[0], H[6] - h[1], H[7] + h[0], H[8]),
        (M[0] + m, M[1], M[2], M[3] + m, M[4], M[5] + m),
    )


@kernel
def momentum(A, m):
    """Return A m (a Force) for an Inertia A and a Motion m: the momentum, or the inertial force of an acceleration."""
    H = A.H
    return Force(
        add3(symmetric(A.J, m.ang), rotate(H, m.lin)),
        add3(rotate_back(H, m.ang), symmetric(A.M, m.lin)),
    )


@kernel
def deflate(A, U, Dinv):
    """Return A - U U^T / D, the inertia that remains if the joint accelerates freely (Featherstone 2008, eq. 7.46).

    A is an Inertia, and U = A S a Force for a unit acceleration of the joint. Dinv is 1 / D, in 1/(kg m^2) or 1/kg.
    """
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
    """Refer an Inertia about the tip of the lever r (3), world axes, m, to its root.

    H' = H + [r]x M,  J' = J + [r]x H^T - H' [r]x  (Featherstone 2008, table 2.8, for parallel axes).
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
