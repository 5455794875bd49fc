"""Recursive Newton-Euler equations at 40 digits: the reference that results of the package are compared with.

All vectors are in world axes. An outward pass computes the motion of each body. An inward pass computes the force and
moment in each joint (Luh, Walker and Paul 1980). To be independent of the package, it uses neither spatial algebra nor
articulated inertias.

Inputs are arrays of doubles, which are converted exactly, or mpmath ``mpf``. Results are object arrays of ``mpf`` with
40 digits. Arithmetic on them is rounded to the precision of the caller, so that ``reference - result`` is correctly
rounded. All units are SI.

The model is used as given: rotations are orthogonal and axes have unit length only to about 1e-16. Nothing is
normalized again. The mass matrix is symmetric and ``T = qd.H.qd / 2`` to 40 digits. Identities that need exactly
orthogonal rotations, such as the gravity force as a gradient of V, hold only to 1e-16.

Derivatives are central differences with about 24 digits. They take many evaluations, so use them for small models.

A free or spherical joint is a single motion of its body. Its quaternion is normalized here, and its velocities are in
body axes. Every other joint is one or several motions along or about axes, one after the other. Rotor inertia
(armature) acts only on its own coordinate.

Symbols of a frame: R (3,3) and p (3,) are its pose in the world, and a (3,) is an axis. The angular velocity and
acceleration are w and dw. The velocity and acceleration of the origin are v and dv. The center of mass minus p is c.
"""

from typing import NamedTuple

import mpmath as mp
import numpy as np

DIGITS = 40
STEP = mp.ldexp(1, -43)  # of differences, about 1e-13: its square and 40 digits less 13 are both about 1e-26

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


class Frame(NamedTuple):
    """The frame of a body after one motion of its joint."""

    kind: str  # of the motion
    dof: int  # its first entry in qd
    R: tuple  # (3,3) world from frame
    p: tuple  # (3,) origin, world, m
    a: tuple  # (3,) axis, world, fixed in the frame before as well as in this one; None of free and spherical


class Motion(NamedTuple):
    w: tuple  # angular velocity, rad/s
    v: tuple  # velocity of the frame origin, m/s
    dw: tuple  # angular acceleration, rad/s^2
    dv: tuple  # acceleration of the frame origin, m/s^2


REST = Motion(ORIGIN, ORIGIN, ORIGIN, ORIGIN)


def unit_quaternion(values):
    x = exact_vector(values)
    length = mp.sqrt(sum(part * part for part in x))
    return tuple(part / length for part in x)


def quaternion_product(a, b):
    """[x, y, z, w] of the rotation b, then a."""
    u, v = a[:3], b[:3]
    return (*add(scale(a[3], v), scale(b[3], u), cross(u, v)), a[3] * b[3] - dot(u, v))


def rotation_of(quaternion):
    """Matrix (3,3) of a unit quaternion [x, y, z, w], column by column: e + 2 u x (w e + u x e)."""
    u, w = quaternion[:3], quaternion[3]
    return transpose([add(e, scale(2, cross(u, add(scale(w, e), cross(u, e))))) for e in IDENTITY])


def turn_and_slide(model, k):
    """Rotation (rad) and translation (m) along the axis per unit of the coordinate."""
    kind = model.dof_types[k]
    if kind == "revolute":
        return mp.mpf(1), mp.mpf(0)
    if kind == "prismatic":
        return mp.mpf(0), mp.mpf(1)
    if kind == "screw":
        return mp.mpf(1), exact(model.pitch[k])
    raise ValueError(f"joint type {kind!r}")


def joint_motions(model, i):
    """The motions of a joint one after the other: (kind, first entry in q, first entry in qd)."""
    kind, at_q, first = model.joint_types[i], int(model.position_index[i]), int(model.velocity_index[i])
    if kind in ("free", "spherical"):
        return [(kind, at_q, first)]
    after = int(model.velocity_index[i + 1]) if i + 1 < model.n_bodies else model.nv
    return [(model.dof_types[k], at_q + k - first, k) for k in range(first, after)]


def poses(model, q):
    """Frames of every body, one for each motion of its joint (the last is the body's own), from the roots outwards."""
    result = []
    for i, parent in enumerate(model.parent):
        R, p = (result[parent][-1].R, result[parent][-1].p) if parent >= 0 else (IDENTITY, ORIGIN)
        p = add(p, apply(R, exact_vector(model.placement_translation[i])))
        R = product(R, exact_matrix(model.placement_rotation[i]))
        frames = []
        for kind, at_q, k in joint_motions(model, i):
            a = None
            if kind == "free":
                p = add(p, apply(R, exact_vector(q[at_q : at_q + 3])))
                R = product(R, rotation_of(unit_quaternion(q[at_q + 3 : at_q + 7])))
            elif kind == "spherical":
                R = product(R, rotation_of(unit_quaternion(q[at_q : at_q + 4])))
            else:
                axis, (turn, slide) = exact_vector(model.axis[k]), turn_and_slide(model, k)
                a = apply(R, axis)
                if slide:
                    p = add(p, scale(slide * exact(q[at_q]), a))
                if turn:
                    R = product(R, rotation_about(axis, turn * exact(q[at_q])))
            frames.append(Frame(kind, k, R, p, a))
        result.append(frames)
    return result


def relative_motion(model, frame, qd, qdd):
    """Motion against the frame before, with derivatives as seen from there, in world axes."""
    R, k = frame.R, frame.dof
    if frame.kind == "spherical":
        # The components are in axes that turn with w, but w x w = 0.
        w, dw = (apply(R, exact_vector(x[k : k + 3])) for x in (qd, qdd))
        return Motion(w, ORIGIN, dw, ORIGIN)
    if frame.kind == "free":
        v, w = apply(R, exact_vector(qd[k : k + 3])), apply(R, exact_vector(qd[k + 3 : k + 6]))
        dv, dw = apply(R, exact_vector(qdd[k : k + 3])), apply(R, exact_vector(qdd[k + 3 : k + 6]))
        return Motion(w, v, dw, add(dv, cross(w, v)))
    rate, acceleration = exact(qd[k]), exact(qdd[k])
    turn, slide = turn_and_slide(model, k)
    return Motion(*(scale(s * x, frame.a) for x in (rate, acceleration) for s in (turn, slide)))


def carried(carrier, r, relative):
    """Motion in the world of a frame with this relative motion, its origin r from that of the carrier."""
    w_r = cross(carrier.w, r)
    return Motion(
        add(carrier.w, relative.w),
        add(carrier.v, w_r, relative.v),
        add(carrier.dw, cross(carrier.w, relative.w), relative.dw),
        # The acceleration of the coincident point of the carrier, the Coriolis term, and the relative acceleration.
        add(
            carrier.dv, cross(carrier.dw, r), cross(carrier.w, w_r), scale(2, cross(carrier.w, relative.v)), relative.dv
        ),
    )


def motions(model, placed, qd, qdd):
    """Motion of every body, outwards from the roots."""
    result = []
    for frames, parent in zip(placed, model.parent, strict=True):
        motion, origin = (result[parent], placed[parent][-1].p) if parent >= 0 else (REST, ORIGIN)
        for frame in frames:
            motion = carried(motion, subtract(frame.p, origin), relative_motion(model, frame, qd, qdd))
            origin = frame.p
        result.append(motion)
    return result


def times_inertia(model, i, R, w):
    """Inertia about the center of mass times w, both in world axes: R I R^T w."""
    return apply(R, apply(exact_matrix(model.inertia[i]), apply(transpose(R), w)))


def felt_by(model, frame, force, moment):
    """Generalized forces of one motion from a force and its moment about the frame's origin."""
    if frame.kind == "spherical":
        return apply(transpose(frame.R), moment)
    if frame.kind == "free":
        return apply(transpose(frame.R), force) + apply(transpose(frame.R), moment)
    turn, slide = turn_and_slide(model, frame.dof)
    return (turn * dot(frame.a, moment) + slide * dot(frame.a, force),)


def joint_forces(model, q, qd, qdd, wrenches, gravity):
    """The two passes; list of nv mpf."""
    placed = poses(model, q)
    moved = motions(model, placed, qd, qdd)

    # Newton and Euler for each body: the force that must act besides gravity and the external wrench.
    force, moment = [], []  # moment about the frame origin
    for i, (frames, (w, _, dw, dv)) in enumerate(zip(placed, moved, strict=True)):
        R = frames[-1].R
        c = apply(R, exact_vector(model.cg[i]))
        dv_c = add(dv, cross(dw, c), cross(w, cross(w, c)))
        f = scale(exact(model.mass[i]), subtract(dv_c, gravity))
        m = add(times_inertia(model, i, R, dw), cross(w, times_inertia(model, i, R, w)), cross(c, f))
        if wrenches is not None:
            load = exact_vector(wrenches[i])
            f, m = subtract(f, load[:3]), subtract(m, load[3:])
        force.append(f)
        moment.append(m)

    # Inward pass: a joint carries its own body and the joints of the children.
    tau = [exact(armature) * exact(acceleration) for armature, acceleration in zip(model.armature, qdd, strict=True)]
    for i in reversed(range(model.n_bodies)):
        p, parent = placed[i][-1].p, model.parent[i]
        for frame in placed[i]:
            about_frame = add(moment[i], cross(subtract(p, frame.p), force[i]))
            for k, felt in enumerate(felt_by(model, frame, force[i], about_frame), frame.dof):
                tau[k] += felt
        if parent >= 0:
            r = subtract(p, placed[parent][-1].p)
            force[parent] = add(force[parent], force[i])
            moment[parent] = add(moment[parent], moment[i], cross(r, force[i]))
    return tau


@at_40_digits
def body_poses(model, q):
    """List of (R (3,3), p (3,)), object arrays: body axes to world axes, frame origin in world (m)."""
    return [(np.array(frames[-1].R, dtype=object), np.array(frames[-1].p, dtype=object)) for frames in poses(model, q)]


@at_40_digits
def inverse_dynamics(model, q, qd, qdd, wrenches=None):
    """Joint forces (nv,) that give qdd (nv,); N m, or N along a prismatic coordinate.

    wrenches (n,6): load on each body, [force (N); moment (N m) about the frame origin], world axes.
    """
    return np.array(joint_forces(model, q, qd, qdd, wrenches, exact_vector(model.gravity)), dtype=object)


@at_40_digits
def residual(model, q, qd, qdd, tau, wrenches=None):
    """inverse_dynamics - tau, (nv,): how far a forward dynamics answer is from satisfying the equations."""
    needed = joint_forces(model, q, qd, qdd, wrenches, exact_vector(model.gravity))
    return np.array([x - exact(y) for x, y in zip(needed, tau, strict=True)], dtype=object)


@at_40_digits
def mass_matrix(model, q):
    """Joint-space mass matrix (nv,nv): column j is the force of unit qdd_j, without gravity and velocity."""
    rest = [0] * model.nv
    columns = [joint_forces(model, q, rest, unit, None, ORIGIN) for unit in tangents(model)]
    return np.array(columns, dtype=object).T


@at_40_digits
def bias_forces(model, q, qd, wrenches=None):
    """Joint forces (nv,) at qdd = 0: Coriolis, centrifugal and gravity forces minus those of external wrenches."""
    return inverse_dynamics(model, q, qd, [0] * model.nv, wrenches)


@at_40_digits
def forward_dynamics(model, q, qd, tau, wrenches=None):
    """Joint accelerations (nv,), from H qdd = tau - bias; rad/s^2, or m/s^2 along a prismatic coordinate."""
    bias = bias_forces(model, q, qd, wrenches)
    right = mp.matrix([exact(x) - b for x, b in zip(tau, bias, strict=True)])
    return np.array(list(mp.lu_solve(mp.matrix(mass_matrix(model, q).tolist()), right)), dtype=object)


@at_40_digits
def kinetic_energy(model, q, qd):
    """Sum over bodies of m v_c^2 / 2 + w.I.w / 2, and armature qd^2 / 2 of the rotors, J; mpf."""
    placed = poses(model, q)
    total = sum(exact(armature) * exact(rate) ** 2 for armature, rate in zip(model.armature, qd, strict=True))
    for i, (w, v, _, _) in enumerate(motions(model, placed, qd, [0] * model.nv)):
        R = placed[i][-1].R
        v_c = add(v, cross(w, apply(R, exact_vector(model.cg[i]))))
        total += exact(model.mass[i]) * dot(v_c, v_c) + dot(w, times_inertia(model, i, R, w))
    return total / 2


@at_40_digits
def potential_energy(model, q):
    """-sum m g.c, c the center of mass in the world, J; mpf. Zero at the world origin."""
    gravity = exact_vector(model.gravity)
    return -sum(
        exact(model.mass[i]) * dot(gravity, add(frames[-1].p, apply(frames[-1].R, exact_vector(model.cg[i]))))
        for i, frames in enumerate(poses(model, q))
    )


def tangents(model):
    """The unit vectors of qd (nv, nv)."""
    return [[mp.mpf(int(i == j)) for i in range(model.nv)] for j in range(model.nv)]


def turned(quaternion, w):
    """Unit quaternion after a turn by |w| about w, in its own axes."""
    angle = mp.sqrt(dot(w, w))
    sine_by_angle = mp.sin(angle / 2) / angle if angle else mp.mpf(1) / 2
    return quaternion_product(unit_quaternion(quaternion), (*scale(sine_by_angle, w), mp.cos(angle / 2)))


def screwed(v, w):
    """Displacement after unit time at constant velocities v and w in body axes, in the axes at the start."""
    angle = mp.sqrt(dot(w, w))
    if not angle:
        return v
    w_v = cross(w, v)
    first, second = 2 * (mp.sin(angle / 2) / angle) ** 2, (angle - mp.sin(angle)) / angle**3
    return add(v, scale(first, w_v), scale(second, cross(w, w_v)))


@at_40_digits
def integrate(model, q, v):
    """Position (nq,) after unit time at constant v (nv,) from q (nq,): the exponential of v, on the right of q."""
    q, v = [exact(x) for x in q], exact_vector(v)
    for i in range(model.n_bodies):
        for kind, at_q, k in joint_motions(model, i):
            if kind == "free":
                xyz, quaternion = q[at_q : at_q + 3], q[at_q + 3 : at_q + 7]
                slid = apply(rotation_of(unit_quaternion(quaternion)), screwed(v[k : k + 3], v[k + 3 : k + 6]))
                q[at_q : at_q + 7] = add(xyz, slid) + turned(quaternion, v[k + 3 : k + 6])
            elif kind == "spherical":
                q[at_q : at_q + 4] = turned(q[at_q : at_q + 4], v[k : k + 3])
            else:
                q[at_q] += v[k]
    return np.array(q, dtype=object)


def slope(function, argument):
    """Derivative at 0 of function(argument(s))."""
    return (function(argument(STEP)) - function(argument(-STEP))) / (2 * STEP)


def slopes(model, function, argument):
    """Derivatives of function(argument(step)) along each unit vector of qd; the first axis is that of the direction."""
    return np.array(
        [slope(function, lambda s, unit=unit: argument([s * x for x in unit])) for unit in tangents(model)],
        dtype=object,
    )


def moved_along(values, step):
    return [exact(x) + y for x, y in zip(values, step, strict=True)]


@at_40_digits
def mass_matrix_rate(model, q, qd):
    """dH/dt (nv,nv) while q moves with qd."""
    return slope(lambda x: mass_matrix(model, x), lambda s: integrate(model, q, [s * exact(x) for x in qd]))


@at_40_digits
def coriolis_christoffel(model, q, qd):
    """Coriolis matrix (nv,nv) of Christoffel's symbols, (dH_ij/dq_k + dH_ik/dq_j - dH_jk/dq_i) qd_k / 2."""
    if {"free", "spherical"} & set(model.joint_types):
        raise ValueError("free and spherical joints: their velocities are not the rates of coordinates")
    dH = slopes(model, lambda x: mass_matrix(model, x), lambda step: integrate(model, q, step))  # [k, i, j]
    symbols = (dH.transpose(1, 2, 0) + dH.transpose(1, 0, 2) - dH) / 2  # [i, j, k]
    return symbols @ np.array([exact(x) for x in qd], dtype=object)


@at_40_digits
def inverse_dynamics_derivatives(model, q, qd, qdd):
    """dtau/dq (on the tangent space: q moved by integrate), dtau/dqd and dtau/dqdd, (nv,nv), [i, j] of entry i."""
    by_q = slopes(model, lambda x: inverse_dynamics(model, x, qd, qdd), lambda step: integrate(model, q, step))
    by_qd = slopes(model, lambda x: inverse_dynamics(model, q, x, qdd), lambda step: moved_along(qd, step))
    return by_q.T, by_qd.T, mass_matrix(model, q)


@at_40_digits
def forward_dynamics_derivatives(model, q, qd, tau):
    """dqdd/dq (on the tangent space: q moved by integrate), dqdd/dqd and dqdd/dtau, (nv,nv), [i, j] of entry i."""
    by_q = slopes(model, lambda x: forward_dynamics(model, x, qd, tau), lambda step: integrate(model, q, step))
    by_qd = slopes(model, lambda x: forward_dynamics(model, q, x, tau), lambda step: moved_along(qd, step))
    by_tau = slopes(model, lambda x: forward_dynamics(model, q, qd, x), lambda step: moved_along(tau, step))
    return by_q.T, by_qd.T, by_tau.T
