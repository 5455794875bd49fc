"""Derivatives of constraints: of their forces J^T lambda with respect to q, and of their accelerations.

Each row of a constraint has the rate phi' = e . (x_b' - x_a') with a vector e. For the rows of points, x' is the
velocity of a point; for the rows of directions, it is the angular velocity of a body. The vectors are

    position   the axes of the world, which are constant,
    distance   e = d / |d|,  e' = (w - (e . w) e) / |d|,  e'' = (d'' - (e . d'') e - 2 (e . w) e') / |d| - |e'|^2 e,
    direction  e = y x x for axes x of body a and y of body b, or a sum of such products,

with d = p_b - p_a, and w = d'. Let s, d(x') and d(x'') be the changes of the position (or of the orientation), of x'
and of x'' along dof i. For a dof on the path to body b, and with the opposite signs for a dof on the path to body a,

    d phi''/dq_i = e'' . s + 2 e' . d(x')/dq_i + e . d(x'')/dq_i,   d phi''/dqd_i = 2 e' . s + e . d(x'')/dqd_i,
    d phi'/dq_i = e' . s + e . d(x')/dq_i.

These are derivatives for constant qdd. With S' and P', P'' of `derivatives`, referred to the point p, they follow from

    points      s = S.lin,  dx'/dq = P'.lin + S.ang x x',  dx''/dq = P''.lin + 2 P'.ang x x' + S.ang x x'',
                dx''/dqd = (P' + S').lin + 2 S.ang x x',
    directions  s = S.ang,  dx'/dq = P'.ang,  dx''/dq = P''.ang,  dx''/dqd = (P' + S').ang,

where terms S.ang x omega of directions are part of e' and e''. The constraint exerts the wrench W on body b at its
point and -W on body a at its own point. A displacement S of body b changes W, at a fixed point of the world, by

    dW = (dm + S.lin x f, df),  df = sum of lambda (I - e e^T) S.lin / |d|,  dm = (N - tr N) S.ang,

with the force f, and with N = sum of lambda y x^T of all products. A displacement of body a changes the wrench on body
b by dW = (dm, df) with df = - sum of lambda (I - e e^T) S.lin / |d| and dm = (tr N - N^T) S.ang. Then

    d(S_j . W)/dq_i = S_j . dW,   minus S_j . (S x* W) if joint j moves with dof i.

A coupler is linear in q, so its derivatives are zero. For free and spherical joints, derivatives with respect to q are
taken on the tangent space, along the velocities qd, as in `derivatives`.
"""

from typing import NamedTuple

from ...compiling.jit import kernel, routine
from ..algorithms.derivatives import BY_Q, SCRATCH_PSIDDOT, SCRATCH_PSIDOT, SCRATCH_PSIDOT_PLUS_SDOT
from ..lanes.lanes import constant_like, nan_unless_finite, select, zeros_like
from ..spatial.storage import load3, load6, load9, load_force, load_motion, store3, store9, store_spatial
from ..spatial.vectors import (
    Force,
    add3,
    column_of,
    compose,
    cross,
    cross_force,
    dot,
    motion_at_tip,
    power,
    rotate,
    rotate_back,
    scale3,
    subtract3,
    subtract_forces,
    symmetric,
)
from ..tree import frame_layout as frame
from ..tree.kinematics import axis_motion
from ..tree.layout import parameter, parameter3, parameter9
from . import constraint_layout as closure, equation_layout as equation
from .constraint_jacobian import constraint_jacobian
from .constraint_rows import inverse_relaxation_time


class Point(NamedTuple):
    """The point of a constraint on one body: its vector r from the body's origin, its velocity and its acceleration.

    Vectors (3) in world axes; m, m/s and m/s^2.
    """

    r: tuple
    v: tuple
    a: tuple


@kernel
def differentiate_constraints(model, constraints, parts, derivatives, scratch, work, k):
    """Compute the derivatives of all rows, and subtract d(J^T lambda)/dq from derivatives[BY_Q].

    Writes `by_q`, `by_qd` and `rates` (m, n, lanes) of `parts`, a ConstraintDerivatives. `derivatives` is
    (2 or 3, n, n, lanes). Reads the rows, `parts.multipliers`, R, LEVER, V, A, and `scratch` (n, rows, lanes), which
    `inverse_dynamics_derivatives` has written.
    """
    table = constraints.tables.table
    for row in range(parts.by_q.shape[0]):
        for i in range(parts.by_q.shape[1]):
            parts.by_q[row, i, k] = constant_like(parts.by_q, 0.0)
            parts.by_qd[row, i, k] = constant_like(parts.by_q, 0.0)
            parts.rates[row, i, k] = constant_like(parts.by_q, 0.0)
    start_with_relaxation(model, constraints, parts, work, k)
    for c in range(table.shape[1]):
        if table[closure.TYPE, c] in closure.TYPES_OF_JOINTS:
            continue
        for column in range(closure.FORCE_ROWS):
            parts.force[0, column, k] = constant_like(parts.force, 0.0)
        for r in range(closure.MAX_ROW_COUNT):
            for column in range(closure.VECTOR_ROWS):
                parts.vectors[r, column, k] = constant_like(parts.vectors, 0.0)
        differentiate_vectors_of_points(c, model, constraints, parts, work, k)
        differentiate_vectors_of_directions(c, model, constraints, parts, work, k)
        for side in range(2):
            differentiate_rows(c, side, model, constraints, parts, scratch, work, k)
        for side in range(2):
            subtract_derivatives_of_force(c, side, model, constraints, parts, derivatives, k)
        if table[closure.COMPLIANT, c] == 1:
            add_relaxation_of_rates(c, model, constraints, parts, k)


@routine
def start_with_relaxation(model, constraints, parts, work, k):
    """Add the derivatives J / t^2 and 2 J / t of phi / t^2 + 2 / t J qd to `by_q` and `by_qd`, which are zero.

    They belong to the rows of compliant constraints with the relaxation time t (`constraint_solver`).
    """
    table, sizes = constraints.tables.table, constraints.tables.sizes
    if sizes[closure.RIGID_ROWS] == sizes[closure.CONSTRAINT_ROWS]:
        return
    constraint_jacobian(model, constraints, parts.by_q, closure.ROW, work, k)
    for c in range(table.shape[1]):
        inverse = zeros_like(parts.by_q[0, 0, k])
        if table[closure.COMPLIANT, c] == 1:
            inverse = inverse + inverse_relaxation_time(c, model, constraints, k)  # may be one value for all lanes
        for row in range(table[closure.ROW, c], table[closure.ROW, c] + table[closure.ROW_COUNT, c]):
            for i in range(parts.by_q.shape[1]):
                relaxed = inverse * parts.by_q[row, i, k]
                parts.by_qd[row, i, k] = relaxed + relaxed
                parts.by_q[row, i, k] = inverse * relaxed


@kernel
def add_relaxation_of_rates(c, model, constraints, parts, k):
    """Add the derivatives of 2 / t J qd with respect to q, at constant qd, to the rows of a compliant constraint."""
    first, inverse = constraints.tables.table[closure.ROW, c], inverse_relaxation_time(c, model, constraints, k)
    for row in range(first, first + constraints.tables.table[closure.ROW_COUNT, c]):
        for i in range(parts.by_q.shape[1]):
            parts.by_q[row, i, k] = parts.by_q[row, i, k] + (inverse + inverse) * parts.rates[row, i, k]


@kernel
def point_of(c, side, model, constraints, work, k):
    """Compute the point of constraint c on one body (side 0: a, 1: b). Reads R, V and A."""
    table = constraints.tables.table
    i, at = table[closure.DOF_A + side, c], table[closure.PARAMETERS, c]
    column = closure.PARAM_POINT_A + side * (closure.PARAM_POINT_B - closure.PARAM_POINT_A)
    r = rotate(load9(work.dof, i, frame.R, k), parameter3(model.parameters, at, column, k))
    v, a = load_motion(work.dof, i, frame.V, k), load_motion(work.dof, i, frame.A, k)
    velocity = motion_at_tip(v, r).lin
    return Point(r, velocity, add3(motion_at_tip(a, r).lin, cross(v.ang, velocity)))


@kernel
def differentiate_vectors_of_points(c, model, constraints, parts, work, k):
    """Store e, e', e'' of the rows of the points, their force, and its change along a displacement.

    Writes `parts.vectors` and `parts.force`, in world axes; they are zero before.
    """
    table, rows = constraints.tables.table, constraints.rows
    row, zero, one = table[closure.ROW, c], constant_like(rows, 0.0), constant_like(rows, 1.0)
    if table[closure.TYPE, c] != closure.DISTANCE:
        for axis in range(3):
            parts.vectors[axis, closure.VECTOR + axis, k] = one
            parts.force[0, closure.FORCE_WRENCH + 3 + axis, k] = parts.multipliers[row + axis, k]
        return
    a, b = point_of(c, 0, model, constraints, work, k), point_of(c, 1, model, constraints, work, k)
    e, tension = load_force(rows, row, equation.FORCE_B, k).lin, parts.multipliers[row, k]
    length = rows[row, equation.RESIDUAL, k] + parameter(
        model.parameters, table[closure.PARAMETERS, c], closure.PARAM_LENGTH, k
    )
    is_apart = length > zero  # the direction of coinciding points is undefined
    inverse = select(is_apart, one / select(is_apart, length, one), nan_unless_finite(length))
    rate, acceleration = subtract3(b.v, a.v), subtract3(b.a, a.a)
    along = dot(e, rate)
    first = scale3(inverse, subtract3(rate, scale3(along, e)))
    second = subtract3(acceleration, scale3(dot(e, acceleration), e))
    second = scale3(inverse, subtract3(second, scale3(along + along, first)))
    store3(parts.vectors, 0, closure.VECTOR_SECOND, k, subtract3(second, scale3(dot(first, first), e)))
    store3(parts.vectors, 0, closure.VECTOR_FIRST, k, first)
    store3(parts.vectors, 0, closure.VECTOR, k, e)
    store3(parts.force, 0, closure.FORCE_WRENCH + 3, k, scale3(tension, e))
    stiffness = tension * inverse
    xx, yy, zz = one - e[0] * e[0], one - e[1] * e[1], one - e[2] * e[2]
    store3(parts.force, 0, closure.FORCE_STRETCH, k, scale3(stiffness, (xx, -e[0] * e[1], -e[0] * e[2])))
    store3(parts.force, 0, closure.FORCE_STRETCH + 3, k, scale3(stiffness, (yy, -e[1] * e[2], zz)))


@kernel
def differentiate_vectors_of_directions(c, model, constraints, parts, work, k):
    """Add e, e', e'' of the rows of the directions to `parts.vectors`, and their moment and N to `parts.force`."""
    table, dof = constraints.tables.table, work.dof
    at, first, count = table[closure.PARAMETERS, c], table[closure.POINT_ROWS, c], table[closure.ROW_COUNT, c]
    if first == count:
        return
    axes_a, axes_b = (
        parameter9(model.parameters, at, closure.PARAM_AXES_A, k),
        parameter9(model.parameters, at, closure.PARAM_AXES_B, k),
    )
    A = compose(load9(dof, table[closure.DOF_A, c], frame.R, k), axes_a)
    B = compose(load9(dof, table[closure.DOF_B, c], frame.R, k), axes_b)
    for r in range(first, count):
        axes = closure.AXES + closure.AXES_OF_ROW * (r - first)
        has_two = table[axes + 2, c] != closure.NO_AXIS
        for part in range(2 if has_two else 1):
            x, y = column_of(A, table[axes + 2 * part, c]), column_of(B, table[axes + 2 * part + 1, c])
            weight = constant_like(dof, 0.5 - part if has_two else 1.0)
            add_product(c, r, (x, y), weight, constraints, parts, work, k)


@kernel
def add_product(c, r, axes, weight, constraints, parts, work, k):
    """Add the product of two axes, x of body a and y of body b, to row r of constraint c.

    `axes` are both unit vectors (3) in world axes, and `weight` is the factor of their product.
    """
    x, y = axes
    table, dof, two = constraints.tables.table, work.dof, constant_like(work.dof, 2.0)
    i, j = table[closure.DOF_A, c], table[closure.DOF_B, c]
    w_a, w_b = load3(dof, i, frame.V, k), load3(dof, j, frame.V, k)
    x1, y1 = cross(w_a, x), cross(w_b, y)
    x2 = add3(cross(load3(dof, i, frame.A, k), x), cross(w_a, x1))
    y2 = add3(cross(load3(dof, j, frame.A, k), y), cross(w_b, y1))
    e, first = scale3(weight, cross(y, x)), scale3(weight, add3(cross(y1, x), cross(y, x1)))
    second = scale3(weight, add3(add3(cross(y2, x), cross(y, x2)), scale3(two, cross(y1, x1))))
    store3(parts.vectors, r, closure.VECTOR_SECOND, k, add3(load3(parts.vectors, r, closure.VECTOR_SECOND, k), second))
    store3(parts.vectors, r, closure.VECTOR_FIRST, k, add3(load3(parts.vectors, r, closure.VECTOR_FIRST, k), first))
    store3(parts.vectors, r, closure.VECTOR, k, add3(load3(parts.vectors, r, closure.VECTOR, k), e))
    multiplier = parts.multipliers[table[closure.ROW, c] + r, k]
    moment, m = scale3(multiplier, e), weight * multiplier
    store3(parts.force, 0, closure.FORCE_WRENCH, k, add3(load3(parts.force, 0, closure.FORCE_WRENCH, k), moment))
    N = load9(parts.force, 0, closure.FORCE_TURN, k)
    turn = (*scale3(m * y[0], x), *scale3(m * y[1], x), *scale3(m * y[2], x))
    total = (
        *(N[0] + turn[0], N[1] + turn[1], N[2] + turn[2]),
        *(N[3] + turn[3], N[4] + turn[4], N[5] + turn[5]),
        *(N[6] + turn[6], N[7] + turn[7], N[8] + turn[8]),
    )
    store9(parts.force, 0, closure.FORCE_TURN, k, total)


@kernel
def differentiate_rows(c, side, model, constraints, parts, scratch, work, k):
    """Add the derivatives of the rows of constraint c along the dofs on the path to one body (side 0: a, 1: b).

    `scratch` (n, rows, lanes) is as in `differentiate_constraints`. Also writes `parts.axes`.
    """
    table, paths, n = constraints.tables.table, constraints.tables.paths, model.parent.shape[0]
    point, two = point_of(c, side, model, constraints, work, k), constant_like(work.dof, 2.0)
    arm = point.r
    for step in range(table[closure.PATH_A + side, c], table[closure.PATH_END_A + side, c]):
        i = paths[0, step]
        S = motion_at_tip(axis_motion(i, model, work, k), arm)
        psidot = motion_at_tip(load_motion(scratch, i, SCRATCH_PSIDOT, k), arm)
        psiddot = motion_at_tip(load_motion(scratch, i, SCRATCH_PSIDDOT, k), arm)
        both = motion_at_tip(load_motion(scratch, i, SCRATCH_PSIDOT_PLUS_SDOT, k), arm)
        store_spatial(parts.axes, side * n + i, 0, k, S)
        velocity = add3(psidot.lin, cross(S.ang, point.v))
        by_q = add3(scale3(two, cross(psidot.ang, point.v)), cross(S.ang, point.a))
        by_q, by_qd = add3(psiddot.lin, by_q), add3(both.lin, scale3(two, cross(S.ang, point.v)))
        for r in range(table[closure.ROW_COUNT, c]):
            if r < table[closure.POINT_ROWS, c]:
                add_changes(c, r, side, i, (S.lin, velocity, by_q, by_qd), constraints, parts, k)
            else:
                changes = S.ang, psidot.ang, psiddot.ang, both.ang
                add_changes(c, r, side, i, changes, constraints, parts, k)
        arm = add3(arm, load3(work.dof, i, frame.LEVER, k))


@kernel
def add_changes(c, r, side, i, changes, constraints, parts, k):
    """Add the derivatives of row r of constraint c along dof i, from the changes s, dx'/dq, dx''/dq and dx''/dqd.

    `changes` are these four vectors (3) in world axes.
    """
    s, velocity, by_q, by_qd = changes
    row, one, two = (
        constraints.tables.table[closure.ROW, c] + r,
        constant_like(parts.by_q, 1.0),
        constant_like(parts.by_q, 2.0),
    )
    second, first, e = (
        load3(parts.vectors, r, closure.VECTOR_SECOND, k),
        load3(parts.vectors, r, closure.VECTOR_FIRST, k),
        load3(parts.vectors, r, closure.VECTOR, k),
    )
    sign = -one if side == 0 else one
    of_q = dot(second, s) + two * dot(first, velocity) + dot(e, by_q)
    parts.by_q[row, i, k] = parts.by_q[row, i, k] + sign * of_q
    parts.by_qd[row, i, k] = parts.by_qd[row, i, k] + sign * (two * dot(first, s) + dot(e, by_qd))
    parts.rates[row, i, k] = parts.rates[row, i, k] + sign * (dot(first, s) + dot(e, velocity))


@kernel
def change_of_force(side, S, parts, k):
    """Return the change (dm, df) of the wrench on body b along a displacement S of one body (side 0: a, 1: b).

    S is a Motion at the point of this body, and the result a Force, both in world axes.
    """
    N, w = load9(parts.force, 0, closure.FORCE_TURN, k), S.ang
    trace = N[0] + N[4] + N[8]
    stretch = symmetric(load6(parts.force, 0, closure.FORCE_STRETCH, k), S.lin)
    if side == 0:
        zero = zeros_like(trace)
        return Force(subtract3(scale3(trace, w), rotate_back(N, w)), subtract3((zero, zero, zero), stretch))
    return Force(subtract3(rotate(N, w), scale3(trace, w)), stretch)


@kernel
def subtract_derivatives_of_force(c, side, model, constraints, parts, derivatives, k):
    """Subtract the derivatives of all joint forces of constraint c with respect to the dofs on the path to one body.

    Changes derivatives[BY_Q] (n, n, lanes).
    """
    table, paths, n = constraints.tables.table, constraints.tables.paths, model.parent.shape[0]
    W = load_force(parts.force, 0, closure.FORCE_WRENCH, k)  # on body b
    for step in range(table[closure.PATH_A + side, c], table[closure.PATH_END_A + side, c]):
        i = paths[0, step]
        S = load_motion(parts.axes, side * n + i, 0, k)
        change = change_of_force(side, S, parts, k)
        subtract_along_path((c, 1 - side), i, (change, change), model, constraints, parts, derivatives, k)
        moved = Force(add3(change.ang, cross(S.lin, W.lin)), change.lin)
        turned = subtract_forces(moved, cross_force(S, W))
        subtract_along_path((c, side), i, (moved, turned), model, constraints, parts, derivatives, k)


@kernel
def subtract_along_path(path, i, changes, model, constraints, parts, derivatives, k):
    """Subtract the derivatives with respect to q_i of the joint forces on the path to one body.

    `path` contains the constraint and the side of the body. `changes` are two Force values: the change of the wrench on
    body b for the joints before the joint of dof i, and the change for the other joints.
    """
    (c, side), (before, after) = path, changes
    table, paths, n = constraints.tables.table, constraints.tables.paths, model.parent.shape[0]
    for step in range(table[closure.PATH_A + side, c], table[closure.PATH_END_A + side, c]):
        j = paths[0, step]
        change = power(after if j >= model.first[i] else before, load_motion(parts.axes, side * n + j, 0, k))
        total = derivatives[BY_Q, j, i, k]
        derivatives[BY_Q, j, i, k] = total + change if side == 0 else total - change
