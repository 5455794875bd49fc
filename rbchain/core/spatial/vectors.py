"""Spatial vectors: velocities, accelerations and forces of bodies in kernels (Featherstone 2008, chapter 2).

All spatial vectors are in world axes and refer to a point, by default a joint origin. A translation by a lever r refers
them to another point; r is the vector from its root to its tip. All are tuples, so that the compiler keeps them in
registers: 3-vectors of 3 numbers, matrices of 9, row by row, and symmetric matrices of 6: xx, xy, xz, yy, yz, zz.
"""

import math
from typing import NamedTuple

from ...compiling.jit import kernel


class Motion(NamedTuple):
    """Velocity or spatial acceleration: angular part (3), and linear part (3) at the reference point.

    Units: rad/s and m/s, or rad/s^2 and m/s^2.
    """

    ang: tuple
    lin: tuple


class Force(NamedTuple):
    """Wrench (N m, N) or momentum (kg m^2/s, kg m/s): moment about the reference point (3), and force (3)."""

    ang: tuple
    lin: tuple


# --- vectors and matrices ---------------------------------------------------------------------------------------------


@kernel
def add3(a, b):
    """Return the sum a + b (3) of two vectors (3)."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@kernel
def subtract3(a, b):
    """Return the difference a - b (3) of two vectors (3)."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@kernel
def scale3(s, a):
    """Return s a (3) for a number s and a vector a (3)."""
    return (s * a[0], s * a[1], s * a[2])


@kernel
def dot(a, b):
    """Return the product a . b of two vectors (3), a number."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def length(a):
    """Return |a| of a vector (3)."""
    return math.sqrt(dot(a, a))


@kernel
def size(a):
    """Return the sum of the absolute values of a vector (3)."""
    return abs(a[0]) + abs(a[1]) + abs(a[2])


@kernel
def cross(a, b):
    """Return a x b (3) for two vectors (3)."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@kernel
def rotate(R, a):
    """Return R a (3) for a matrix R (9) and a vector a (3)."""
    return (
        R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
        R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
        R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
    )


@kernel
def rotate_back(R, a):
    """Return R^T a (3) for a matrix R (9) and a vector a (3)."""
    return (
        R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
        R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
        R[2] * a[0] + R[5] * a[1] + R[8] * a[2],
    )


@kernel
def compose(A, B):
    """Return the product A B (9) of two matrices (9)."""
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
def rotate_about_z(R, s, c):
    """Return R rot(z, q) (9) for a matrix R (9), where s is the sine and c the cosine of q."""
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
def permute_axes(R):
    """Return the axes R (9) in the order y, z, x."""
    return (R[1], R[2], R[0], R[4], R[5], R[3], R[7], R[8], R[6])


@kernel
def z_axis(R):
    """Return the z axis (3) of the matrix R (9), its third column."""
    return (R[2], R[5], R[8])


@kernel
def column_of(R, axis):
    """Return one column (3) of a rotation R (9)."""
    if axis == 0:
        return (R[0], R[3], R[6])
    if axis == 1:
        return (R[1], R[4], R[7])
    return (R[2], R[5], R[8])


@kernel
def symmetric(S, a):
    """Return S a (3) for a symmetric matrix S (6) and a vector a (3)."""
    return (
        S[0] * a[0] + S[1] * a[1] + S[2] * a[2],
        S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
        S[2] * a[0] + S[4] * a[1] + S[5] * a[2],
    )


@kernel
def rotate_symmetric(R, S):
    """Return R S R^T (6) for a matrix R (9) and a symmetric matrix S (6)."""
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
    """Return v x m, the rate of a motion vector m that is fixed in a frame with velocity v.

    v and m are Motions at the same point.
    """
    return Motion(cross(v.ang, m.ang), add3(cross(v.ang, m.lin), cross(v.lin, m.ang)))


@kernel
def add_motions(a, b):
    """Return the sum a + b of two Motions at the same point."""
    return Motion(add3(a.ang, b.ang), add3(a.lin, b.lin))


@kernel
def add_forces(a, b):
    """Return the sum a + b of two Forces about the same point."""
    return Force(add3(a.ang, b.ang), add3(a.lin, b.lin))


@kernel
def subtract_forces(a, b):
    """Return the difference a - b of two Forces about the same point."""
    return Force(subtract3(a.ang, b.ang), subtract3(a.lin, b.lin))


@kernel
def scale_force(s, f):
    """Return s f for a number s and a Force f."""
    return Force(scale3(s, f.ang), scale3(s, f.lin))


@kernel
def scale_motion(s, m):
    """Return s m for a number s and a Motion m."""
    return Motion(scale3(s, m.ang), scale3(s, m.lin))


@kernel
def power(f, m):
    """Return f . m for a Force f and a Motion m at the same point: the power, W, if m is a velocity."""
    return dot(f.ang, m.ang) + dot(f.lin, m.lin)


@kernel
def cross_force(v, f):
    """Return v x* f, the rate of a force vector f that is fixed in a frame with velocity v.

    v is a Motion and f a Force at the same point.
    """
    return Force(add3(cross(v.ang, f.ang), cross(v.lin, f.lin)), cross(v.ang, f.lin))


@kernel
def motion_at_tip(m, r):
    """Refer a Motion at the root of the lever r (3), world axes, to its tip: (w, v + w x r). r is in m."""
    return Motion(m.ang, add3(m.lin, cross(m.ang, r)))


@kernel
def force_at_root(f, r):
    """Refer a Force at the tip of the lever r (3), world axes, to its root: (n + r x f, f). r is in m."""
    return Force(add3(f.ang, cross(r, f.lin)), f.lin)
