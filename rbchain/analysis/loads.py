"""Loads of joints: inertial forces of bodies and the opposites of the forces on them, with their derivatives.

With the inertia G of a body about its origin, including added mass, and its velocity v and acceleration a in body axes
(a is dv/dt of the components),

    F = G a + v x* G v

is its inertial force in body axes (Featherstone 2008, eq. 2.45). Weight, buoyancy and wrenches act at points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..acting.signals import three_signals
from ..acting.wrenches import Wrench
from ..common.real_arrays import FloatArray
from .frame_motions import FrameMotion, at_point, cross, motion_of_frame
from .operating_points import Conditions, OperatingPoints

#: The halves of a wrench or of a motion.
LINEAR, ANGULAR = slice(3), slice(3, 6)


class Placed(NamedTuple):
    """The origin (samples, 3), the axes (samples, 3, 3) and the Jacobian (samples, 6, nv) of a body or of the world."""

    origin: FloatArray
    R: FloatArray
    J: FloatArray


@dataclass(frozen=True)
class Load:
    """A force and a moment (samples, 6) at a point, in world axes.

    `derivatives` are with respect to q, qd and qdd (samples, 6, nv), and to the multipliers of the constraints
    (samples, 6, m). `place` (samples, 3) is the point, and J (samples, 6, nv) its Jacobian.
    """

    value: FloatArray
    derivatives: tuple[FloatArray, FloatArray, FloatArray, FloatArray]
    place: FloatArray
    J: FloatArray


def load_at(
    place: FloatArray,
    J: FloatArray,
    value: FloatArray,
    derivatives: tuple[FloatArray | None, ...] = (),
    *,
    multipliers: int = 0,
) -> Load:
    """Return a force and a moment at a point, whose missing derivatives are zero.

    `multipliers` is the number of multipliers if no derivative with respect to them is given.
    """
    shapes = [J.shape] * 3 + [(*J.shape[:2], multipliers)]
    given = (*derivatives, None, None, None, None)[:4]
    by_q, by_qd, by_qdd, by_multipliers = (
        np.zeros(shape) if x is None else x for shape, x in zip(shapes, given, strict=True)
    )
    return Load(value, (by_q, by_qd, by_qdd, by_multipliers), place, J)


def of_samples(conditions: Conditions, x: FloatArray, *shape: int) -> FloatArray:
    """Return numbers of all samples, (samples, *shape), from an array that fits into (*batch, *shape)."""
    return np.broadcast_to(x, (*conditions.batch, *shape)).reshape(conditions.samples, *shape)


def placed_body(conditions: Conditions, points: OperatingPoints, body: int) -> Placed:
    """Return the origin, the axes and the Jacobian of a body; of the world if `body` is -1."""
    model, samples = conditions.model, conditions.samples
    if body < 0:
        axes = np.broadcast_to(np.eye(3), (samples, 3, 3))
        return Placed(np.zeros((samples, 3)), axes, np.zeros((samples, 6, model.nv)))
    q, name = points.q.reshape(*conditions.batch, model.nq), model.body_names[body]
    pose = model.frame_poses(q, name)
    J = model.jacobian(q, name).reshape(samples, 6, model.nv)
    return Placed(pose.translation.reshape(samples, 3), pose.rotation.reshape(samples, 3, 3), J)


def in_axes(R: FloatArray, x: FloatArray) -> FloatArray:
    """Return the wrenches or motions R x, for x (samples, 6, columns)."""
    return np.concatenate([R @ x[:, LINEAR], R @ x[:, ANGULAR]], 1)


def turned(J: FloatArray, x: FloatArray) -> FloatArray:
    """Return the changes (samples, 6, nv) of a wrench or a motion x (samples, 6) that turns with a body."""
    columns = x[:, :, None]
    return np.concatenate([cross(J[:, ANGULAR], columns[:, LINEAR]), cross(J[:, ANGULAR], columns[:, ANGULAR])], 1)


def velocity_in_body_axes(placed: Placed, motion: FrameMotion) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the velocity (samples, 6, 1) of a body in its axes, and its derivatives with respect to q and qd."""
    back = np.swapaxes(placed.R, 1, 2)
    by_q = in_axes(back, motion.velocity_by_q - turned(placed.J, motion.velocity))
    return in_axes(back, motion.velocity[:, :, None]), by_q, in_axes(back, placed.J)


def acceleration_in_body_axes(
    placed: Placed, motion: FrameMotion
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return dv/dt of the velocity in body axes (samples, 6, 1), and its derivatives with respect to q, qd and qdd."""
    back, omega = np.swapaxes(placed.R, 1, 2), motion.velocity[:, ANGULAR, None]
    v = motion.velocity[:, LINEAR, None]
    a, by_q, by_qd = (x.copy() for x in (motion.acceleration, motion.acceleration_by_q, motion.acceleration_by_qd))
    a[:, LINEAR] -= cross(omega, v)[:, :, 0]
    for by, of_velocity in ((by_q, motion.velocity_by_q), (by_qd, placed.J)):
        by[:, LINEAR] -= cross(of_velocity[:, ANGULAR], v) + cross(omega, of_velocity[:, LINEAR])
    by_q -= turned(placed.J, a)
    return in_axes(back, a[:, :, None]), in_axes(back, by_q), in_axes(back, by_qd), in_axes(back, placed.J)


def loads_of_body(conditions: Conditions, points: OperatingPoints, c: int) -> Iterator[Load]:
    """Yield the inertial force of body c, and the opposites of its weight, its buoyancy and the wrenches on it."""
    model, body = conditions.model, placed_body(conditions, points, c)
    mass, gravity = of_samples(conditions, model.mass[..., c]), of_samples(conditions, model.gravity, 3)
    G = _rigid_inertia(
        mass, of_samples(conditions, model.cg[..., c, :], 3), of_samples(conditions, model.inertia[..., c, :, :], 3, 3)
    )
    weights = [(mass, model.cg)]
    if model.in_water:
        density = of_samples(conditions, model.fluid_density)
        added, by_density = (
            of_samples(conditions, x[..., c, :, :], 6, 6) for x in (model.added_mass, model.added_volume)
        )
        is_wet, rho = (density > 0.0)[:, None, None], density[:, None, None]
        G = G + is_wet * added + rho * by_density
        weights.append((-density * of_samples(conditions, model.volume[..., c]), model.buoyancy_center))
    yield _inertial_force(body, motion_of_frame(model, body.J, points.qd, points.qdd), G)
    for weight, center in weights:
        arm = (body.R @ of_samples(conditions, center[..., c, :], 3)[:, :, None])[:, :, 0]
        force = np.concatenate([-weight[:, None] * gravity, np.zeros_like(gravity)], 1)
        yield load_at(body.origin + arm, at_point(body.J, arm), force)
    for wrench in conditions.forces:
        if isinstance(wrench, Wrench) and model.kernel_model.frame(wrench.frame).body == c:
            yield _opposite_of_wrench(conditions, points, wrench, body)


def _rigid_inertia(m: FloatArray, cg: FloatArray, about_cg: FloatArray) -> FloatArray:
    """Return the inertia (samples, 6, 6) of a rigid body about its origin, in body axes; linear before angular."""
    x, y, z = cg.T
    zero = np.zeros_like(x)
    lever = np.moveaxis(np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]), 2, 0)
    m, G = m[:, None, None], np.zeros((len(m), 6, 6))
    G[:, LINEAR, LINEAR], G[:, ANGULAR, ANGULAR] = m * np.eye(3), about_cg - m * lever @ lever
    G[:, LINEAR, ANGULAR], G[:, ANGULAR, LINEAR] = -m * lever, m * lever
    return G


def _inertial_force(body: Placed, motion: FrameMotion, G: FloatArray) -> Load:
    """Return the inertial force of a body at its origin."""
    v, v_by_q, v_by_qd = velocity_in_body_axes(body, motion)
    a, *a_by = acceleration_in_body_axes(body, motion)
    momentum = G @ v
    value = in_axes(body.R, G @ a + cross_force(v, momentum))[:, :, 0]
    by_q, by_qd = (
        in_axes(body.R, G @ of_a + cross_force(of_v, momentum) + cross_force(v, G @ of_v))
        for of_a, of_v in zip(a_by[:2], (v_by_q, v_by_qd), strict=True)
    )
    return load_at(body.origin, body.J, value, (by_q + turned(body.J, value), by_qd, in_axes(body.R, G @ a_by[2])))


def cross_force(v: FloatArray, f: FloatArray) -> FloatArray:
    """Return the products v x* f of motions and wrenches (samples, 6, columns), linear before angular."""
    omega = v[:, ANGULAR]
    moment = cross(omega, f[:, ANGULAR]) + cross(v[:, LINEAR], f[:, LINEAR])
    return np.concatenate([cross(omega, f[:, LINEAR]), moment], 1)


def _opposite_of_wrench(conditions: Conditions, points: OperatingPoints, wrench: Wrench, body: Placed) -> Load:
    """Return the opposite of a wrench over time at its point."""
    place, J = _point(conditions, points, wrench.frame, wrench.point)
    t = points.t.reshape(*conditions.batch, 1)
    signals = [s for field in ("force", "moment") for s in three_signals(field, getattr(wrench, field))]
    value = -np.stack([of_samples(conditions, s(t)[..., 0]) for s in signals], -1)
    if wrench.axes == "world":
        return load_at(place, J, value)
    value = in_axes(body.R, value[:, :, None])[:, :, 0]
    return load_at(place, J, value, (turned(body.J, value),))


def _point(
    conditions: Conditions, points: OperatingPoints, frame: str, point: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the place (samples, 3) and the Jacobian (samples, 6, nv) of a point of a frame."""
    model, samples = conditions.model, conditions.samples
    q = points.q.reshape(*conditions.batch, model.nq)
    pose = model.frame_poses(q, frame)
    arm = np.einsum("...ij,...j->...i", pose.rotation, np.asarray(point, float))
    J = at_point(model.jacobian(q, frame).reshape(samples, 6, model.nv), of_samples(conditions, arm, 3))
    return of_samples(conditions, pose.translation + arm, 3), J
