"""Accelerations of closed chains in maximal coordinates at 50 digits: the reference for closed loops.

Each body has six accelerations, those of its origin and its angular acceleration, in world axes. Every joint and every
constraint of the mechanism is a set of rows G a = g for them. Gauss's principle gives the accelerations and the forces:

    W a - F = G^T mu,   G a = g

with the inertias W of single bodies and the forces F on them. Dependent rows are left out by Gaussian elimination with
50 digits, so the accelerations are exact for any number of them. There is no tree, no articulated inertia and no joint
coordinate besides the state itself. Joints: revolute, prismatic, spherical and free ones.

Inputs are doubles, which are converted exactly. All units are SI.
"""

from typing import NamedTuple

import mpmath as mp
import numpy as np

import rbchain as rb

from .newton_euler import (
    IDENTITY,
    ORIGIN,
    add,
    apply,
    cross,
    dot,
    exact,
    exact_matrix,
    exact_vector,
    motions,
    poses,
    product,
    scale,
    subtract,
    transpose,
)

DIGITS = 50
DEPENDENT = mp.mpf(10) ** -12  # a row of doubles that is dependent is so to about 1e-15

at_50_digits = mp.workdps(DIGITS)


class Placed(NamedTuple):
    """A body: its pose (R, p), and its velocities v of the origin and w, in world axes; number -1 is the world."""

    number: int
    R: tuple
    p: tuple
    v: tuple
    w: tuple


WORLD = Placed(-1, IDENTITY, ORIGIN, ORIGIN, ORIGIN)


class Row(NamedTuple):
    """One equation for accelerations: the sum over bodies of force . dv + moment . dw, equal to `value`."""

    of_bodies: dict  # number of a body -> (force, moment) for a unit multiplier
    value: object


def row_of(a, b, on_a, on_b, value):
    return Row({body.number: force for body, force in ((a, on_a), (b, on_b)) if body.number >= 0}, value)


def normals(axis):
    """Two unit vectors normal to an axis."""
    least = min(range(3), key=lambda i: abs(axis[i]))
    x = cross(axis, IDENTITY[least])
    x = scale(1 / mp.sqrt(dot(x, x)), x)
    return x, cross(axis, x)


def point_row(a, b, r_a, r_b, e, bias=0):
    """Let the points at r_a and r_b have the same acceleration along e, less `bias`."""
    of_a, of_b = (cross(body.w, cross(body.w, r)) for body, r in ((a, r_a), (b, r_b)))
    on_a, on_b = (scale(-1, e), cross(scale(-1, r_a), e)), (e, cross(r_b, e))
    return row_of(a, b, on_a, on_b, dot(e, subtract(of_a, of_b)) - bias)


def turn_row(a, b, e, value):
    """Let e . (dw_b - dw_a) be `value`."""
    return row_of(a, b, (ORIGIN, scale(-1, e)), (ORIGIN, e), value)


def product_row(a, b, x, y):
    """Let the product x . y of an axis of body a and one of body b have the second derivative zero."""
    x_rate, y_rate = cross(a.w, x), cross(b.w, y)
    known = dot(cross(a.w, x_rate), y) + 2 * dot(x_rate, y_rate) + dot(x, cross(b.w, y_rate))
    return cross(y, x), -known


def joint_rows(kind, parent, child, axis, rate):
    """The rows of a joint at the origin of the child, along or about a world axis fixed in both bodies."""
    r = subtract(child.p, parent.p)
    if kind == "free":
        return []
    if kind == "prismatic":
        x, y = normals(axis)
        # the origin moves as the point of the parent there, and along the axis
        coriolis = scale(2 * rate, cross(parent.w, axis))
        sideways = [point_row(parent, child, r, ORIGIN, e, bias=-dot(e, coriolis)) for e in (x, y)]
        return sideways + [turn_row(parent, child, e, mp.mpf(0)) for e in IDENTITY]
    rows = [point_row(parent, child, r, ORIGIN, e) for e in IDENTITY]
    if kind == "revolute":
        rows += [turn_row(parent, child, e, rate * dot(e, cross(parent.w, axis))) for e in normals(axis)]
    return rows


def constraint_rows(model, constraint, bodies, axes_a, joints):
    """The rows of one constraint, in the order of `Model.constraint_residual`."""
    if isinstance(constraint, rb.CouplerConstraint):
        # q'' of a joint is the relative angular acceleration about its axis, less terms of velocities: see `joint_row`
        driven, driver = joints[constraint.joint], joints[constraint.other]
        ratio = exact(constraint.ratio)
        of_bodies, value = {}, mp.mpf(0)
        for sign, row in ((mp.mpf(1), joint_row(*driven)), (-ratio, joint_row(*driver))):
            value += sign * row.value
            for number, (force, moment) in row.of_bodies.items():
                before = of_bodies.get(number, (ORIGIN, ORIGIN))
                of_bodies[number] = (add(before[0], scale(sign, force)), add(before[1], scale(sign, moment)))
        return [Row(of_bodies, value)]
    a, b = (
        WORLD if name is None else bodies[model.body_names.index(name)]
        for name in (constraint.frame_a, constraint.frame_b)
    )
    if isinstance(constraint, rb.WeldConstraint):
        points = constraint.pose_a.translation, constraint.pose_b.translation
    else:
        points = constraint.point_a, constraint.point_b
    r_a, r_b = (apply(body.R, exact_vector(point)) for body, point in zip((a, b), points, strict=True))
    if isinstance(constraint, rb.DistanceConstraint):
        d = subtract(add(b.p, r_b), add(a.p, r_a))
        length = mp.sqrt(dot(d, d))
        e = scale(1 / length, d)
        rate = subtract(add(b.v, cross(b.w, r_b)), add(a.v, cross(a.w, r_a)))
        along = dot(e, rate)
        return [point_row(a, b, r_a, r_b, e, bias=(dot(rate, rate) - along**2) / length)]
    rows = [point_row(a, b, r_a, r_b, e) for e in IDENTITY]
    if isinstance(constraint, rb.HingeConstraint):
        x, y, _ = transpose(product(a.R, exact_matrix(axes_a)))
        length = mp.sqrt(sum(exact(v) ** 2 for v in constraint.axis_b))
        z = scale(1 / length, apply(b.R, exact_vector(constraint.axis_b)))
        rows += [turn_row(a, b, *product_row(a, b, axis, z)) for axis in (x, y)]
    if isinstance(constraint, rb.WeldConstraint):
        A = transpose(product(a.R, exact_matrix(constraint.pose_a.rotation)))
        B = transpose(product(b.R, exact_matrix(constraint.pose_b.rotation)))
        for axis in range(3):
            y, z = (axis + 1) % 3, (axis + 2) % 3
            (e, value), (other_e, other) = product_row(a, b, A[z], B[y]), product_row(a, b, A[y], B[z])
            rows.append(turn_row(a, b, scale(mp.mpf(1) / 2, subtract(e, other_e)), (value - other) / 2))
    return rows


def joint_row(kind, parent, child, axis, rate):
    """The row whose left side is q'' of a joint with one degree of freedom if its value is added: q'' = row - value."""
    if kind == "prismatic":
        return point_row(parent, child, subtract(child.p, parent.p), ORIGIN, axis)
    return turn_row(parent, child, axis, mp.mpf(0))


def independent(rows, size):
    """Numbers of rows that depend on no row before, by Gaussian elimination with complete pivoting of columns."""
    kept, reduced = [], []
    for number, row in enumerate(rows):
        x = [mp.mpf(0)] * size
        for body, (force, moment) in row.of_bodies.items():
            x[6 * body : 6 * body + 6] = [*force, *moment]
        largest = max(abs(v) for v in x)
        for pivot, other in reduced:
            factor = x[pivot]
            if factor:
                x = [u - factor * v for u, v in zip(x, other, strict=True)]
        pivot = max(range(size), key=lambda i: abs(x[i]))
        if abs(x[pivot]) > DEPENDENT * largest:
            kept.append(number)
            reduced.append((pivot, [v / x[pivot] for v in x]))
    return kept


@at_50_digits
def closed_chain_dynamics(model, constraints, q, qd, tau):
    """Accelerations qdd (nv,), and multipliers of the constraints (m,), or None if the rows depend on each other.

    `constraints` are those that the model was built with. All results are lists of mpf.
    """
    rest = [mp.mpf(0)] * model.nv
    placed = poses(model, q)
    moved = motions(model, placed, qd, rest)
    bodies = [Placed(i, frames[-1].R, frames[-1].p, moved[i].v, moved[i].w) for i, frames in enumerate(placed)]
    joints, rows = {}, []
    for i, frames in enumerate(placed):
        parent = bodies[model.parent[i]] if model.parent[i] >= 0 else WORLD
        kind, at = model.joint_types[i], int(model.velocity_index[i])
        joints[model.joint_names[i]] = (kind, parent, bodies[i], frames[-1].a, exact(qd[at]))
        rows += joint_rows(*joints[model.joint_names[i]])
    first = len(rows)
    for c, constraint in enumerate(constraints):
        rows += constraint_rows(model, constraint, bodies, model.constraint_axes_a[c], joints)
    size = 6 * model.n_bodies
    kept = independent(rows, size)
    force = newton_euler_forces(model, bodies, joints, tau)
    acceleration, multipliers = solve(model, bodies, [rows[i] for i in kept], force)
    qdd = [x for i in range(model.n_bodies) for x in joint_acceleration(joints[model.joint_names[i]], acceleration)]
    return qdd, multipliers[kept.index(first) :] if len(kept) == len(rows) else None


def newton_euler_forces(model, bodies, joints, tau):
    """Forces and moments on all bodies besides those of bearings: gravity, gyroscopic terms and motors, list (6 n)."""
    gravity = exact_vector(model.gravity)
    total = [[ORIGIN, ORIGIN] for _ in bodies]
    for i, body in enumerate(bodies):
        mass, c = exact(model.mass[i]), apply(body.R, exact_vector(model.cg[i]))
        lin = scale(mass, subtract(gravity, cross(body.w, cross(body.w, c))))
        turning = apply(inertia_in_world(model, i, body), body.w)
        total[i] = [lin, subtract(cross(c, lin), cross(body.w, turning))]
        kind, parent, _, axis, _ = joints[model.joint_names[i]]
        at = int(model.velocity_index[i])
        count = {"free": 6, "spherical": 3}.get(kind, 1)
        motor = exact_vector(tau[at : at + count])
        if kind == "free":
            push, turn = apply(body.R, motor[:3]), apply(body.R, motor[3:])
        elif kind == "spherical":
            push, turn = ORIGIN, apply(body.R, motor)
        else:
            push, turn = (scale(motor[0], axis), ORIGIN) if kind == "prismatic" else (ORIGIN, scale(motor[0], axis))
        total[i] = [add(total[i][0], push), add(total[i][1], turn)]
        if parent.number >= 0:
            there = total[parent.number]
            lever = cross(subtract(body.p, parent.p), push)
            total[parent.number] = [subtract(there[0], push), subtract(there[1], add(turn, lever))]
    return [x for force, moment in total for x in (*force, *moment)]


def inertia_in_world(model, i, body):
    return product(product(body.R, exact_matrix(model.inertia[i])), transpose(body.R))


def solve(model, bodies, rows, force):
    """Solve the equations of all bodies and independent rows."""
    size, m = 6 * len(bodies), len(rows)
    K, right = mp.zeros(size + m), mp.zeros(size + m, 1)
    for i, body in enumerate(bodies):
        mass, c, inertia = (
            exact(model.mass[i]),
            apply(body.R, exact_vector(model.cg[i])),
            inertia_in_world(model, i, body),
        )
        cx = ((0, -c[2], c[1]), (c[2], 0, -c[0]), (-c[1], c[0], 0))
        square = product(cx, cx)
        for x in range(3):
            K[6 * i + x, 6 * i + x] = mass
            for y in range(3):
                K[6 * i + 3 + x, 6 * i + y] = mass * cx[x][y]
                K[6 * i + x, 6 * i + 3 + y] = -mass * cx[x][y]
                K[6 * i + 3 + x, 6 * i + 3 + y] = inertia[x][y] - mass * square[x][y]
    for r, row in enumerate(rows):
        for body, (lin, ang) in row.of_bodies.items():
            for x, value in enumerate((*lin, *ang)):
                K[6 * body + x, size + r] = -value
                K[size + r, 6 * body + x] = value
        right[size + r] = row.value
    for x, value in enumerate(force):
        right[x] = value
    found = mp.lu_solve(K, right)
    return [found[x] for x in range(size)], [found[size + r] for r in range(m)]


def joint_acceleration(joint, acceleration):
    """Accelerations of one joint from those of its bodies, as in qdd."""
    kind, parent, child, axis, _ = joint

    def of(body):
        at = 6 * body.number
        return (
            (ORIGIN, ORIGIN)
            if body.number < 0
            else (tuple(acceleration[at : at + 3]), tuple(acceleration[at + 3 : at + 6]))
        )

    (dv_p, dw_p), (dv, dw) = of(parent), of(child)
    if kind == "revolute":
        return [dot(axis, subtract(dw, dw_p))]
    if kind == "spherical":
        relative = subtract(child.w, parent.w)
        return apply(transpose(child.R), subtract(subtract(dw, dw_p), cross(parent.w, relative)))
    if kind == "prismatic":
        r = subtract(child.p, parent.p)
        carried = add(dv_p, cross(dw_p, r), cross(parent.w, cross(parent.w, r)))
        return [dot(axis, subtract(dv, carried))]
    # a free joint on the world: body axes turn with w
    assert parent.number < 0
    R = transpose(child.R)
    return (*apply(R, subtract(dv, cross(child.w, child.v))), *apply(R, dw))


def as_doubles(values):
    return np.array([float(x) for x in values])
