"""Recursive Newton-Euler equations at 40 digits, the reference that the package is judged against.

Written in vector form, with every vector in world axes: a pass from the roots outwards gives the motion
of each body, a pass inwards gives the force and moment that each joint transmits (Luh, Walker and Paul 1980).
There is no spatial algebra and no articulated inertia here, on purpose.

Inputs are arrays of doubles, converted exactly, or mpmath ``mpf``. Results are object arrays of ``mpf``
that carry 40 digits; arithmetic done on them afterwards is rounded to the precision in force at the caller
(``reference - result`` is correctly rounded whatever that is). SI units throughout.

The model is taken as given: placement rotations and axes are orthogonal and unit only to about 1e-16, and
nothing is re-normalised. The mass matrix is symmetric and ``T = qd.H.qd / 2`` to 40 digits all the same, but
identities that need exactly orthogonal rotations (the gravity torque as a gradient of V) hold to 1e-16 only.

Notation of the code, for body i: R (3,3) and p (3,) pose in the world; a (3,) joint axis; w, dw angular
velocity and acceleration; v, dv velocity and acceleration of the frame origin; c centre of mass less p.
"""

from typing import NamedTuple

import mpmath as mp
import numpy as np

DIGITS = 40

at_40_digits = mp.workdps(DIGITS)


def exact(x):
    """Scalar as mpf; a double is converted without rounding, an mpf is kept."""
    return x if isinstance(x, mp.mpf) else mp.mpf(float(x))


def exact_vector(values):
    return tuple(exact(x) for x in values)


def exact_matrix(rows):
    return tuple(exact_vector(row) for row in rows)


# 3-vectors are tuples and 3x3 matrices tuples of rows: mp.matrix is several times slower.


def add(*vectors):
    return tuple(sum(parts[1:], parts[0]) for parts in zip(*vectors, strict=True))


def subtract(u, v):
    return (u[0] - v[0], u[1] - v[1], u[2] - v[2])


def scale(s, v):
    return (s * v[0], s * v[1], s * v[2])


def dot(u, v):
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


def cross(u, v):
    return (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])


def apply(matrix, v):
    return tuple(dot(row, v) for row in matrix)


def transpose(matrix):
    return tuple(zip(*matrix, strict=True))


def product(a, b):
    columns = transpose(b)
    return tuple(tuple(dot(row, column) for column in columns) for row in a)


def rotation_about(axis, angle):
    """Rodrigues: 1 + sin(angle) K + (1 - cos(angle)) K^2, with K v = axis x v."""
    zero = mp.mpf(0)
    x, y, z = axis
    k = ((zero, -z, y), (z, zero, -x), (-y, x, zero))
    k2 = product(k, k)
    s, versine = mp.sin(angle), 2 * mp.sin(angle / 2) ** 2
    return tuple(tuple((1 if i == j else 0) + s * k[i][j] + versine * k2[i][j] for j in range(3)) for i in range(3))


ORIGIN = (mp.mpf(0),) * 3
IDENTITY = tuple(tuple(mp.mpf(int(i == j)) for j in range(3)) for i in range(3))


class Pose(NamedTuple):
    R: tuple  # (3,3) world from body
    p: tuple  # (3,) frame origin, world, m
    a: tuple  # (3,) joint axis, world; fixed in the parent as well as in the body


class Motion(NamedTuple):
    w: tuple  # angular velocity, rad/s
    v: tuple  # velocity of the frame origin, m/s
    dw: tuple  # angular acceleration, rad/s^2
    dv: tuple  # acceleration of the frame origin, m/s^2


def turn_and_slide(model, i):
    """Rotation (rad) and translation (m) along the axis per unit of q."""
    kind = model.joint_types[i]
    if kind == "revolute":
        return mp.mpf(1), mp.mpf(0)
    if kind == "prismatic":
        return mp.mpf(0), mp.mpf(1)
    if kind == "screw":
        return mp.mpf(1), exact(model.pitch[i])
    raise ValueError(f"joint type {kind!r}")


def poses(model, q):
    """Pose of every body, outwards from the roots."""
    result = []
    for i, parent in enumerate(model.parent):
        R, p = (result[parent].R, result[parent].p) if parent >= 0 else (IDENTITY, ORIGIN)
        p = add(p, apply(R, exact_vector(model.placement_translation[i])))
        R = product(R, exact_matrix(model.placement_rotation[i]))
        axis, qi = exact_vector(model.axis[i]), exact(q[i])
        turn, slide = turn_and_slide(model, i)
        a = apply(R, axis)
        if slide:
            p = add(p, scale(slide * qi, a))
        if turn:
            R = product(R, rotation_about(axis, turn * qi))
        result.append(Pose(R, p, a))
    return result


def motions(model, placed, qd, qdd):
    """Motion of every body, outwards from the roots."""
    result = []
    for i, parent in enumerate(model.parent):
        if parent >= 0:
            w, v, dw, dv = result[parent]
            r = subtract(placed[i].p, placed[parent].p)
            # The point of the parent that coincides with the origin of body i.
            w_r = cross(w, r)
            v, dv = add(v, w_r), add(dv, cross(dw, r), cross(w, w_r))
        else:
            w, v, dw, dv = ORIGIN, ORIGIN, ORIGIN, ORIGIN
        a, rate, acceleration = placed[i].a, exact(qd[i]), exact(qdd[i])
        turn, slide = turn_and_slide(model, i)
        # The axis moves with the parent: da/dt = w x a. Sliding meets it twice (Coriolis), turning once.
        w_a = cross(w, a)
        v = add(v, scale(slide * rate, a))
        dv = add(dv, scale(slide * acceleration, a), scale(2 * slide * rate, w_a))
        dw = add(dw, scale(turn * acceleration, a), scale(turn * rate, w_a))
        w = add(w, scale(turn * rate, a))
        result.append(Motion(w, v, dw, dv))
    return result


def times_inertia(model, i, R, w):
    """Inertia about the centre of mass times w, both in world axes: R I R^T w."""
    return apply(R, apply(exact_matrix(model.inertia[i]), apply(transpose(R), w)))


def joint_forces(model, q, qd, qdd, wrenches, gravity):
    """The two passes; list of n mpf."""
    placed = poses(model, q)
    moved = motions(model, placed, qd, qdd)

    # Newton and Euler, body by body: what must act on it besides gravity and the external load.
    force, moment = [], []  # moment about the frame origin
    for i, ((R, _, _), (w, _, dw, dv)) in enumerate(zip(placed, moved, strict=True)):
        c = apply(R, exact_vector(model.cg[i]))
        dv_c = add(dv, cross(dw, c), cross(w, cross(w, c)))
        f = scale(exact(model.mass[i]), subtract(dv_c, gravity))
        m = add(times_inertia(model, i, R, dw), cross(w, times_inertia(model, i, R, w)), cross(c, f))
        if wrenches is not None:
            load = exact_vector(wrenches[i])
            f, m = subtract(f, load[:3]), subtract(m, load[3:])
        force.append(f)
        moment.append(m)

    # Inwards: a joint carries its own body and the joints of the children.
    tau = [None] * len(placed)
    for i in reversed(range(len(placed))):
        turn, slide = turn_and_slide(model, i)
        tau[i] = turn * dot(placed[i].a, moment[i]) + slide * dot(placed[i].a, force[i])
        parent = model.parent[i]
        if parent >= 0:
            r = subtract(placed[i].p, placed[parent].p)
            force[parent] = add(force[parent], force[i])
            moment[parent] = add(moment[parent], moment[i], cross(r, force[i]))
    return tau


@at_40_digits
def body_poses(model, q):
    """List of (R (3,3), p (3,)), object arrays: body axes to world axes, frame origin in world (m)."""
    return [(np.array(R, dtype=object), np.array(p, dtype=object)) for R, p, _ in poses(model, q)]


@at_40_digits
def inverse_dynamics(model, q, qd, qdd, wrenches=None):
    """Joint forces (n,) that give qdd (n,); N m, or N for a prismatic joint.

    wrenches (n,6): load on each body, [force (N); moment (N m) about the frame origin], world axes.
    """
    return np.array(joint_forces(model, q, qd, qdd, wrenches, exact_vector(model.gravity)), dtype=object)


@at_40_digits
def residual(model, q, qd, qdd, tau, wrenches=None):
    """inverse_dynamics - tau, (n,): how far a forward dynamics answer is from satisfying the equations."""
    needed = joint_forces(model, q, qd, qdd, wrenches, exact_vector(model.gravity))
    return np.array([x - exact(y) for x, y in zip(needed, tau, strict=True)], dtype=object)


@at_40_digits
def mass_matrix(model, q):
    """Joint-space mass matrix (n,n): column j is the force of unit qdd_j, without gravity and velocity."""
    n = len(model.parent)
    rest = [0] * n
    columns = [joint_forces(model, q, rest, [int(i == j) for i in range(n)], None, ORIGIN) for j in range(n)]
    return np.array(columns, dtype=object).T


@at_40_digits
def bias_forces(model, q, qd, wrenches=None):
    """Joint forces (n,) at qdd = 0: Coriolis and centrifugal, gravity, less the external loads."""
    return inverse_dynamics(model, q, qd, [0] * len(model.parent), wrenches)


@at_40_digits
def forward_dynamics(model, q, qd, tau, wrenches=None):
    """Joint accelerations (n,), from H qdd = tau - bias; rad/s^2, or m/s^2 for a prismatic joint."""
    bias = bias_forces(model, q, qd, wrenches)
    right = mp.matrix([exact(x) - b for x, b in zip(tau, bias, strict=True)])
    return np.array(list(mp.lu_solve(mp.matrix(mass_matrix(model, q).tolist()), right)), dtype=object)


@at_40_digits
def kinetic_energy(model, q, qd):
    """Sum over bodies of m v_c^2 / 2 + w.I.w / 2, J; mpf."""
    placed = poses(model, q)
    total = mp.mpf(0)
    for i, ((R, _, _), (w, v, _, _)) in enumerate(
        zip(placed, motions(model, placed, qd, [0] * len(placed)), strict=True)
    ):
        v_c = add(v, cross(w, apply(R, exact_vector(model.cg[i]))))
        total += exact(model.mass[i]) * dot(v_c, v_c) + dot(w, times_inertia(model, i, R, w))
    return total / 2


@at_40_digits
def potential_energy(model, q):
    """-sum m g.c, c the centre of mass in the world, J; mpf. Zero at the world origin."""
    gravity = exact_vector(model.gravity)
    return -sum(
        exact(model.mass[i]) * dot(gravity, add(p, apply(R, exact_vector(model.cg[i]))))
        for i, (R, p, _) in enumerate(poses(model, q))
    )
