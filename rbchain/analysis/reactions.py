"""Derivatives of the reactions of joints in open trees.

The joint of a body transmits the inertial forces of all bodies c that it carries, minus the wrenches on them. With the
mass m, the acceleration x'' of the center of mass and the inertia I about it, the force and the moment of one body are

    f = m (x'' - g),   n = I alpha + omega x I omega

at the center of mass, in world axes. A turn r of the body changes I z by r x I z - I (r x z), for each constant vector
z. `Model.joint_reactions` returns the sum about the origin of the body, in axes that turn with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..acting.between_bodies import SpringDamper
from ..acting.signals import three_signals
from ..acting.wrenches import Wrench
from ..common.real_arrays import FloatArray
from ..errors import ArgumentError
from .frame_motions import at_point, cross, motion_of_frame
from .operating_points import Conditions, OperatingPoints


@dataclass(frozen=True)
class Load:
    """A force and a moment (samples, 6) at a point, and their derivatives (samples, 6, nv), in world axes.

    `place` (samples, 3) is the point, and J (samples, 6, nv) its Jacobian.
    """

    value: FloatArray
    by_q: FloatArray
    by_qd: FloatArray
    by_qdd: FloatArray
    place: FloatArray
    J: FloatArray


def check_reactions(conditions: Conditions) -> None:
    """Raise an error for reactions in closed loops and in water, and with bushings."""
    found, expected = "", ""
    others = [force.label() for force in conditions.forces if not isinstance(force, (Wrench, SpringDamper))]
    if conditions.has_loops:
        found, expected = "the model has constraints", "an open tree"
    elif conditions.model.in_water:
        found, expected = "the model is in water", "a model with fluid_density=0"
    elif others:
        found, expected = f"forces contains {others[0]}", "no other forces than Wrench and SpringDamper"
    if found:
        raise ArgumentError(
            f"outputs contains a reaction, but {found}; expected {expected}. Use differences of joint_reactions"
        )


def reaction_by_state(conditions: Conditions, points: OperatingPoints, body: int) -> tuple[FloatArray, ...]:
    """Compute the derivatives of a joint's reaction with respect to q, qd and qdd, (samples, 6, nv) each."""
    origin, R, J = _placed(conditions, points, body)
    value, derivatives = np.zeros((conditions.samples, 6, 1)), np.zeros((3, *J.shape))
    for load in _loads(conditions, points, bodies_behind(conditions, body)):
        arm, force = (load.place - origin)[:, :, None], load.value[:, :3, None]
        value[:, :3] += force
        value[:, 3:] += load.value[:, 3:, None] + cross(arm, force)
        for by, own in enumerate((load.by_q, load.by_qd, load.by_qdd)):
            derivatives[by] += own
            derivatives[by, :, 3:] += cross(arm, own[:, :3])
        derivatives[0, :, 3:] += cross(load.J[:, :3] - J[:, :3], force)
    for rows in (slice(3), slice(3, 6)):  # in axes that turn with the body
        derivatives[0, :, rows] -= cross(J[:, 3:], value[:, rows])
    return tuple(_in_body_axes(R, x) for x in derivatives)


def reaction_by_wrenches(
    conditions: Conditions, points: OperatingPoints, body: int, wrenches: FloatArray
) -> FloatArray:
    """Compute the derivatives of a joint's reaction with respect to inputs that are wrenches, at constant qdd.

    `wrenches` (samples, bodies, 6, inputs) are their derivatives with respect to the inputs: forces, and moments about
    the origin of the world. Returns a (samples, 6, inputs) array.
    """
    origin, R, _ = _placed(conditions, points, body)
    total = -wrenches[:, bodies_behind(conditions, body)].sum(1)
    total[:, 3:] -= cross(origin[:, :, None], total[:, :3])
    return _in_body_axes(R, total)


def bodies_behind(conditions: Conditions, body: int) -> list[int]:
    """Return a body and all bodies that its joint moves."""
    found = {body}
    for i, parent in enumerate(conditions.model.parent):  # parents first
        if int(parent) in found:
            found.add(i)
    return sorted(found)


def _in_body_axes(R: FloatArray, x: FloatArray) -> FloatArray:
    """Return forces and moments (samples, 6, columns) in body axes, from world axes."""
    back = np.swapaxes(R, 1, 2)
    return np.concatenate([back @ x[:, :3], back @ x[:, 3:]], 1)


def _placed(conditions: Conditions, points: OperatingPoints, body: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the origin (samples, 3), the axes (samples, 3, 3) and the Jacobian (samples, 6, nv) of a body."""
    model, samples = conditions.model, conditions.samples
    q, name = points.q.reshape(*conditions.batch, model.nq), model.body_names[body]
    pose = model.frame_poses(q, name)
    J = model.jacobian(q, name).reshape(samples, 6, model.nv)
    return pose.translation.reshape(samples, 3), pose.rotation.reshape(samples, 3, 3), J


def _loads(conditions: Conditions, points: OperatingPoints, bodies: list[int]) -> Iterator[Load]:
    """Yield the inertial forces of the bodies, and the opposites of the wrenches and spring forces on them."""
    for c in bodies:
        yield _inertial_force(conditions, points, c)
    for force in conditions.forces:
        if isinstance(force, Wrench):
            frame = conditions.model.kernel_model.frame(force.frame)
            if frame.body in bodies:
                yield _opposite_of_wrench(conditions, points, force, frame.body)
        elif isinstance(force, SpringDamper):
            yield from _opposites_of_spring(conditions, points, force, bodies)


def _inertial_force(conditions: Conditions, points: OperatingPoints, c: int) -> Load:
    """Return the inertial force of body c at its center of mass, with gravity."""
    model = conditions.model
    origin, R, J = _placed(conditions, points, c)
    arm = (R @ of_samples(conditions, model.cg[..., c, :], 3)[:, :, None])[:, :, 0]
    m = of_samples(conditions, model.mass[..., c])[:, None, None]
    I = R @ of_samples(conditions, model.inertia[..., c, :, :], 3, 3) @ np.swapaxes(R, 1, 2)  # noqa: E741
    J = at_point(J, arm)
    motion = motion_of_frame(model, J, points.qd, points.qdd)
    turn, omega, alpha = J[:, 3:], motion.velocity[:, 3:, None], motion.acceleration[:, 3:, None]
    force = m * (motion.acceleration[:, :3, None] - of_samples(conditions, model.gravity, 3)[:, :, None])
    moment = I @ alpha + cross(omega, I @ omega)

    def change_of_moment(turn: FloatArray, of_omega: FloatArray, of_alpha: FloatArray) -> FloatArray:
        momentum = cross(turn, I @ omega) - I @ cross(turn, omega) + I @ of_omega
        change = cross(turn, I @ alpha) - I @ cross(turn, alpha) + I @ of_alpha
        return change + cross(of_omega, I @ omega) + cross(omega, momentum)

    by_q, by_qd = motion.acceleration_by_q, motion.acceleration_by_qd
    zero = np.zeros_like(turn)
    return Load(
        value=np.concatenate([force, moment], 1)[:, :, 0],
        by_q=np.concatenate([m * by_q[:, :3], change_of_moment(turn, motion.velocity_by_q[:, 3:], by_q[:, 3:])], 1),
        by_qd=np.concatenate([m * by_qd[:, :3], change_of_moment(zero, turn, by_qd[:, 3:])], 1),
        by_qdd=np.concatenate([m * J[:, :3], I @ turn], 1),
        place=origin + arm,
        J=J,
    )


def _opposite_of_wrench(conditions: Conditions, points: OperatingPoints, wrench: Wrench, body: int) -> Load:
    """Return the opposite of a wrench over time at its point, with its derivatives."""
    model, batch, samples = conditions.model, conditions.batch, conditions.samples
    _, R, J_of_body = _placed(conditions, points, body)
    place, J = _point(conditions, points, wrench.frame, wrench.point)
    t = points.t.reshape(*batch, 1)
    signals = [s for field in ("force", "moment") for s in three_signals(field, getattr(wrench, field))]
    value = -np.stack([of_samples(conditions, s(t)[..., 0]) for s in signals], -1)
    zero = np.zeros((samples, 6, model.nv))
    by_q = zero
    if wrench.axes == "body":
        value = np.einsum("sij,slj->sli", R, value.reshape(samples, 2, 3)).reshape(samples, 6)
        by_q = np.concatenate([cross(J_of_body[:, 3:], value[:, rows, None]) for rows in (slice(3), slice(3, 6))], 1)
    return Load(value, by_q, zero, zero, place, J)


def _opposites_of_spring(
    conditions: Conditions, points: OperatingPoints, spring: SpringDamper, bodies: list[int]
) -> Iterator[Load]:
    """Yield the opposites of the forces of a spring on its two bodies, for each body that is in a list.

    With the vector d from a to b, its length L and direction u = d / L, the tension is k (L - L_0) + c u . d'.
    """
    model = conditions.model
    ends = [(spring.frame_a, spring.point_a), (spring.frame_b, spring.point_b)]
    (place_a, J_a), (place_b, J_b) = (_point(conditions, points, *end) for end in ends)
    a, b = (motion_of_frame(model, J, points.qd, points.qdd) for J in (J_a, J_b))
    v, v_by_q = (b.velocity - a.velocity)[:, :3, None], (b.velocity_by_q - a.velocity_by_q)[:, :3]
    d, J = (place_b - place_a)[:, :, None], (J_b - J_a)[:, :3]
    k, c, rest = (
        of_samples(conditions, np.asarray(x, float))[:, None, None]
        for x in (spring.stiffness, spring.damping, spring.rest_length)
    )
    with np.errstate(invalid="ignore", divide="ignore"):  # a spring of zero length has no direction
        length = np.sqrt((d * d).sum(1, keepdims=True))
        u = d / length
        stretch = (u * J).sum(1, keepdims=True)
        u_by_q = (J - u * stretch) / length
    tension = k * (length - rest) + c * (u * v).sum(1, keepdims=True)
    by_q = k * stretch + c * ((u_by_q * v).sum(1, keepdims=True) + (u * v_by_q).sum(1, keepdims=True))
    acts = np.where(tension > 0.0, 1.0, 0.0) if spring.tension_only else 1.0
    force = (acts * tension * u, acts * (u * by_q + tension * u_by_q), acts * u * (c * stretch))
    none = np.zeros((conditions.samples, 3, model.nv))
    for side, place, J_of_end, (frame, _) in ((-1.0, place_a, J_a, ends[0]), (1.0, place_b, J_b, ends[1])):
        if frame is not None and model.kernel_model.frame(frame).body in bodies:
            value, of_q, of_qd = (np.concatenate([side * x, np.zeros_like(x)], 1) for x in force)
            yield Load(value[:, :, 0], of_q, of_qd, np.concatenate([none, none], 1), place, J_of_end)


def _point(
    conditions: Conditions, points: OperatingPoints, frame: str | None, point: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the place (samples, 3) and the Jacobian (samples, 6, nv) of a point of a frame, or of the world."""
    model, samples = conditions.model, conditions.samples
    arm = np.asarray(point, float)
    if frame is None:
        return of_samples(conditions, arm, 3), np.zeros((samples, 6, model.nv))
    q = points.q.reshape(*conditions.batch, model.nq)
    pose = model.frame_poses(q, frame)
    arm = of_samples(conditions, np.einsum("...ij,...j->...i", pose.rotation, arm), 3)
    J = at_point(model.jacobian(q, frame).reshape(samples, 6, model.nv), arm)
    return pose.translation.reshape(samples, 3) + arm, J


def of_samples(conditions: Conditions, x: FloatArray, *shape: int) -> FloatArray:
    """Return numbers of all samples, (samples, *shape), from an array that fits into (*batch, *shape)."""
    return np.broadcast_to(x, (*conditions.batch, *shape)).reshape(conditions.samples, *shape)
