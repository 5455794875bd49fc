"""Derivatives of the motions of frames by the positions and velocities of a state, in world axes.

The columns of the Jacobian J of a frame are the axes S_k of the degrees of freedom at the origin of the frame. Let v
and a be the spatial velocity and acceleration of the frame, at the fixed point of the world that coincides with this
origin. The parent body of the joint of dof k has v_k and a_k, and the body that the joint moves has the velocity u_k.
The relative motion turns with S_k. The derivatives on the tangent space are therefore

    dv/dq_k = S_k x (v - v_k),      da/dq_k = S_k x (a - a_k) + (v_k x S_k) x (v - v_k),
    dv/dqd_k = S_k,                 da/dqd_k = u_k x S_k + S_k x (v - v_k),   da/dqdd_k = S_k.

The origin moves by the linear part of S_k, and its acceleration is the linear part of a plus omega x v.

Source: Carpentier and Mansard (2018), "Analytical derivatives of rigid body dynamics algorithms".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..common.real_arrays import FloatArray

if TYPE_CHECKING:
    from ..facade.model import Model


class FrameMotion(NamedTuple):
    """The motion of a frame, and its derivatives with respect to the positions and the velocities.

    The rows are linear, then angular, of the origin of the frame in world axes, as in `Model.body_accelerations`.

    Attributes
    ----------
    velocity, acceleration : (samples, 6) arrays
    J : (samples, 6, nv) array
        The Jacobian, which is the derivative of the pose with respect to q, of the velocity with respect to qd, and of
        the acceleration with respect to qdd.
    velocity_by_q, acceleration_by_q, acceleration_by_qd : (samples, 6, nv) arrays
    """

    velocity: FloatArray
    acceleration: FloatArray
    J: FloatArray
    velocity_by_q: FloatArray
    acceleration_by_q: FloatArray
    acceleration_by_qd: FloatArray


def motion_of_frame(model: Model, J: FloatArray, qd: FloatArray, qdd: FloatArray) -> FrameMotion:
    """Compute the motion of a frame, and its derivatives with respect to the state.

    Parameters
    ----------
    model : Model
    J : (samples, 6, nv) array
        The Jacobian of the frame.
    qd, qdd : (samples, nv) arrays

    Returns
    -------
    FrameMotion
    """
    v, a = np.zeros((2, len(J), 6, 1))
    of_parent, a_of_parent, of_body = np.zeros((3, *J.shape))
    for dofs in _dofs_of_joints(model):
        of_parent[:, :, dofs], a_of_parent[:, :, dofs] = v, a
        own = J[:, :, dofs] @ qd[:, dofs, None]
        v = v + own
        a = a + J[:, :, dofs] @ qdd[:, dofs, None] + _cross(v, own)
        of_body[:, :, dofs] = v
    relative = v - of_parent
    v_by_q = _cross(J, relative)
    by_q = _cross(J, a - a_of_parent) + _cross(_cross(of_parent, J), relative)
    by_qd = _cross(of_body, J) + v_by_q
    # from a fixed point of the world to the origin, which moves by J[:, :3] dq
    v_by_q[:, :3] += cross(v[:, 3:], J[:, :3])
    by_q[:, :3] += cross(a[:, 3:], J[:, :3]) + cross(v_by_q[:, 3:], v[:, :3]) + cross(v[:, 3:], v_by_q[:, :3])
    by_qd[:, :3] += cross(J[:, 3:], v[:, :3]) + cross(v[:, 3:], J[:, :3])
    acceleration = a[:, :, 0]
    acceleration[:, :3] += np.cross(v[:, 3:, 0], v[:, :3, 0])
    return FrameMotion(v[:, :, 0], acceleration, J, v_by_q, by_q, by_qd)


def at_point(J: FloatArray, arm: FloatArray) -> FloatArray:
    """Return the Jacobian of a point that is fixed to a frame, from the Jacobian (samples, 6, nv) of its origin.

    The `arm` (samples, 3) from the origin to the point is in world axes, m.
    """
    return np.concatenate([J[:, :3] + cross(J[:, 3:], arm[:, :, None]), J[:, 3:]], 1)


def cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the cross products of vectors (samples, 3, columns)."""
    return np.cross(a, b, axis=1)


def _dofs_of_joints(model: Model) -> Iterator[slice]:
    """Yield the degrees of freedom whose axes move together: all of a free or spherical joint, and single ones."""
    for kind, first, count in zip(model.joint_types, model.velocity_index, model.kernel_model.dofs.counts, strict=True):
        start, stop = int(first), int(first) + int(count)
        step = stop - start if kind in ("free", "spherical") else 1
        yield from (slice(i, i + step) for i in range(start, stop, step))


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the cross products a x b of motions (samples, 6, columns), whose linear parts come first."""
    linear = cross(a[:, 3:], b[:, :3]) + cross(a[:, :3], b[:, 3:])
    return np.concatenate([linear, cross(a[:, 3:], b[:, 3:])], 1)
