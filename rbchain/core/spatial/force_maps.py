"""Linear maps from motions to forces without symmetry, as the derivatives of the dynamics have them.

They map the acceleration A and the angular velocity V of a body, or their changes, to a Force. Vectors are in world
axes, and refer to a point. Matrices (9) hold their rows.
"""

from typing import NamedTuple

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, zeros_like
from .storage import load3, load9, load_motion, store3, store9, store_spatial
from .vectors import Force, Motion, add3, add_motions, cross, dot, rotate, rotate_back, scale3


class ForceMap(NamedTuple):
    """The moment MA A.ang + ML A.lin + MV V and the force FA A.ang + FL A.lin + FV V.

    All fields are matrices (9), in world axes: MA in kg m^2, ML and FA in kg m, FL in kg, MV in kg m^2/s, FV in kg m/s.
    """

    MA: tuple
    ML: tuple
    MV: tuple
    FA: tuple
    FL: tuple
    FV: tuple


class MotionChange(NamedTuple):
    """A change of the acceleration A (a Motion) and of the angular velocity V (3) of a body.

    Both are in world axes, per unit of the quantity that changes: A in rad/s^2 and m/s^2, V in rad/s.
    """

    A: Motion
    V: tuple


FORCE_MAP_ROWS, CHANGE_ROWS = 54, 9


@kernel
def map_of_body(m, h, J, Q, P):
    """Return I A + 2 B V of a body with mass m, first moment h, rotational inertia J (6), and B of Q (9) and P (3).

    The mass m is in kg, h (3) in kg m, J in kg m^2, Q in kg m^2/s and P in kg m/s. All are in world axes, about the
    reference point.
    """
    zero, two = zeros_like(h[0]), constant_like(h[0], 2.0)
    return ForceMap(
        (J[0], J[1], J[2], J[1], J[3], J[4], J[2], J[4], J[5]),
        (zero, -h[2], h[1], h[2], zero, -h[0], -h[1], h[0], zero),
        (*scale3(two, Q[:3]), *scale3(two, Q[3:6]), *scale3(two, Q[6:])),
        (zero, h[2], -h[1], -h[2], zero, h[0], h[1], -h[0], zero),
        (m, zero, zero, zero, m, zero, zero, zero, m),
        (zero, two * P[2], -two * P[1], -two * P[2], zero, two * P[0], two * P[1], -two * P[0], zero),
    )


@kernel
def map_times(G, x):
    """Return the force (a Force) of a MotionChange x for the ForceMap G."""
    return Force(
        add3(add3(rotate(G.MA, x.A.ang), rotate(G.ML, x.A.lin)), rotate(G.MV, x.V)),
        add3(add3(rotate(G.FA, x.A.ang), rotate(G.FL, x.A.lin)), rotate(G.FV, x.V)),
    )


@kernel
def power_of_map(G, S):
    """Return the change S^T G: the product of the force of a change and S is its product with the change.

    G is a ForceMap, and S a Motion. The result is a MotionChange with the factors of A and of V.
    """
    return MotionChange(
        Motion(
            add3(rotate_back(G.MA, S.ang), rotate_back(G.FA, S.lin)),
            add3(rotate_back(G.ML, S.ang), rotate_back(G.FL, S.lin)),
        ),
        add3(rotate_back(G.MV, S.ang), rotate_back(G.FV, S.lin)),
    )


@kernel
def product_of_changes(row, x):
    """Return the sum of the products of the components of two MotionChanges, a number."""
    return dot(row.A.ang, x.A.ang) + dot(row.A.lin, x.A.lin) + dot(row.V, x.V)


@kernel
def add_changes(x, y):
    """Return the sum x + y of two MotionChanges."""
    return MotionChange(add_motions(x.A, y.A), add3(x.V, y.V))


@kernel
def add9(A, B):
    """Return the sum A + B (9) of two matrices (9)."""
    return (*add3(A[:3], B[:3]), *add3(A[3:6], B[3:6]), *add3(A[6:], B[6:]))


@kernel
def subtract_outer(A, u, row):
    """Return A - u row^T (9) for a matrix A (9) and two vectors (3)."""
    return (
        *(A[0] - u[0] * row[0], A[1] - u[0] * row[1], A[2] - u[0] * row[2]),
        *(A[3] - u[1] * row[0], A[4] - u[1] * row[1], A[5] - u[1] * row[2]),
        *(A[6] - u[2] * row[0], A[7] - u[2] * row[1], A[8] - u[2] * row[2]),
    )


@kernel
def subtract_force_of_row(G, u, row):
    """Return the ForceMap G without the Force u times the MotionChange `row`: G - u row^T."""
    return ForceMap(
        subtract_outer(G.MA, u.ang, row.A.ang),
        subtract_outer(G.ML, u.ang, row.A.lin),
        subtract_outer(G.MV, u.ang, row.V),
        subtract_outer(G.FA, u.lin, row.A.ang),
        subtract_outer(G.FL, u.lin, row.A.lin),
        subtract_outer(G.FV, u.lin, row.V),
    )


@kernel
def add_cross(A, r, B):
    """Return A + [r]x B (9) for two matrices (9) and a vector r (3)."""
    return (
        *(A[0] + (r[1] * B[6] - r[2] * B[3]), A[1] + (r[1] * B[7] - r[2] * B[4]), A[2] + (r[1] * B[8] - r[2] * B[5])),
        *(A[3] + (r[2] * B[0] - r[0] * B[6]), A[4] + (r[2] * B[1] - r[0] * B[7]), A[5] + (r[2] * B[2] - r[0] * B[8])),
        *(A[6] + (r[0] * B[3] - r[1] * B[0]), A[7] + (r[0] * B[4] - r[1] * B[1]), A[8] + (r[0] * B[5] - r[1] * B[2])),
    )


@kernel
def subtract_times_cross(A, B, r):
    """Return A - B [r]x (9) for two matrices (9) and a vector r (3)."""
    return (*add3(A[:3], cross(r, B[:3])), *add3(A[3:6], cross(r, B[3:6])), *add3(A[6:], cross(r, B[6:])))


@kernel
def map_at_root(G, r):
    """Refer a map about the tip of the lever r to its root: A.lin at the tip is A.lin - r x A.ang at the root.

    G is a ForceMap, and r (3) is in world axes, m.
    """
    MA, FA = subtract_times_cross(G.MA, G.ML, r), subtract_times_cross(G.FA, G.FL, r)
    return ForceMap(add_cross(MA, r, FA), add_cross(G.ML, r, G.FL), add_cross(G.MV, r, G.FV), FA, G.FL, G.FV)


@kernel
def add_maps(G, H):
    """Return the sum G + H of two ForceMaps."""
    return ForceMap(
        add9(G.MA, H.MA), add9(G.ML, H.ML), add9(G.MV, H.MV), add9(G.FA, H.FA), add9(G.FL, H.FL), add9(G.FV, H.FV)
    )


@kernel
def load_map(a, i, row, k):
    """Load a ForceMap (54) from an array (dofs, rows, lanes), from `row` of dof i: MA, ML, MV, FA, FL, FV."""
    return ForceMap(
        load9(a, i, row, k),
        load9(a, i, row + 9, k),
        load9(a, i, row + 18, k),
        load9(a, i, row + 27, k),
        load9(a, i, row + 36, k),
        load9(a, i, row + 45, k),
    )


@kernel
def store_map(a, i, row, k, G):
    """Store a ForceMap (54) in an array (dofs, rows, lanes), from `row` of dof i: MA, ML, MV, FA, FL, FV."""
    store9(a, i, row, k, G.MA)
    store9(a, i, row + 9, k, G.ML)
    store9(a, i, row + 18, k, G.MV)
    store9(a, i, row + 27, k, G.FA)
    store9(a, i, row + 36, k, G.FL)
    store9(a, i, row + 45, k, G.FV)


@kernel
def load_change(a, i, row, k):
    """Load a MotionChange (9) from an array (dofs, rows, lanes), from `row` of dof i: A (6), V (3)."""
    return MotionChange(load_motion(a, i, row, k), load3(a, i, row + 6, k))


@kernel
def store_change(a, i, row, k, x):
    """Store a MotionChange (9) in an array (dofs, rows, lanes), from `row` of dof i: A (6), V (3)."""
    store_spatial(a, i, row, k, x.A)
    store3(a, i, row + 6, k, x.V)
