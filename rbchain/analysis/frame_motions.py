"""Derivatives of the motions of frames by the positions and velocities of a state, in world axes.

The columns of the Jacobian J of a frame are the axes S_k of the degrees of freedom at the origin of the frame. Let v
and a be the spatial velocity and acceleration of the frame, at the fixed point of the world that coincides with this
origin. The parent body of the joint of dof k has v_k and a_k, and the body that the joint moves has the velocity u_k.
The relative motion turns with S_k. The derivatives on the tangent space are therefore

    dv/dq_k = S_k x (v - v_k),      da/dq_k = S_k x (a - a_k) + (v_k x S_k) x (v - v_k),
    dv/dqd_k = S_k,                 da/dqd_k = u_k x S_k + S_k x (v - v_k),   da/dqdd_k = S_k.

The origin moves by the linear part of S_k, and its acceleration is the linear part of a plus omega x v. The derivatives
of the velocity also follow from the rate of J, which `rbchain.Model.jacobian_derivative` computes.

Source: Carpentier and Mansard (2018), "Analytical derivatives of rigid body dynamics algorithms".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..common.real_arrays import FloatArray
from .tangents import rates_of_tangents, skew

if TYPE_CHECKING:
    from ..facade.model import Model


def velocity_by_state(model: Model, J: FloatArray, rate: FloatArray, qd: FloatArray) -> FloatArray:
    """Compute the derivatives of the velocity of a frame by the positions.

    The velocity of the origin is the derivative of the displacement by time. The rotation vector r of the displacement
    is the last three rows of J dq, and the angular velocity w changes by r' - w x r.

    Parameters
    ----------
    model : Model
    J, rate : (samples, 6, nv) arrays
        The Jacobian of the frame, and its derivative by time.
    qd : (samples, nv) array

    Returns
    -------
    (samples, 6, nv) array
    """
    by_q = rate + J @ rates_of_tangents(model, qd)
    turn = (J[:, 3:] @ qd[:, :, None])[:, :, 0]
    by_q[:, 3:] -= skew(turn) @ J[:, 3:]
    return by_q


def acceleration_by_state(
    model: Model, J: FloatArray, qd: FloatArray, qdd: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute the derivatives of the acceleration of a frame by the positions and by the velocities.

    Parameters
    ----------
    model : Model
    J : (samples, 6, nv) array
        The Jacobian of the frame.
    qd, qdd : (samples, nv) arrays

    Returns
    -------
    by_q, by_qd : (samples, 6, nv) arrays
        The rows are the acceleration of the origin and the angular acceleration, as in `Model.body_accelerations`.
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
    v_by_q[:, :3] += _product(v[:, 3:], J[:, :3])
    by_q[:, :3] += _product(a[:, 3:], J[:, :3]) + _product(v_by_q[:, 3:], v[:, :3]) + _product(v[:, 3:], v_by_q[:, :3])
    by_qd[:, :3] += _product(J[:, 3:], v[:, :3]) + _product(v[:, 3:], J[:, :3])
    return by_q, by_qd


def _dofs_of_joints(model: Model) -> Iterator[slice]:
    """Yield the degrees of freedom whose axes move together: all of a free or spherical joint, and single ones."""
    for kind, first, count in zip(model.joint_types, model.velocity_index, model.kernel_model.dofs.counts, strict=True):
        start, stop = int(first), int(first) + int(count)
        step = stop - start if kind in ("free", "spherical") else 1
        yield from (slice(i, i + step) for i in range(start, stop, step))


def _product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the cross products of vectors (samples, 3, columns)."""
    return np.cross(a, b, axis=1)


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the cross products a x b of motions (samples, 6, columns), whose linear parts come first."""
    linear = _product(a[:, 3:], b[:, :3]) + _product(a[:, :3], b[:, 3:])
    return np.concatenate([linear, _product(a[:, 3:], b[:, 3:])], 1)
