"""The tangent spaces of free and spherical joints, which turn with their bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..common.real_arrays import FloatArray

if TYPE_CHECKING:
    from ..facade.model import Model


def rates_of_tangents(model: Model, qd: FloatArray) -> FloatArray:
    """Compute the matrices R (samples, nv, nv) in d(dq)/dt = dqd + R dq, for the velocities qd (samples, nv).

    R is zero except for free and spherical joints, whose tangent space turns with the body. Let r and l be the
    rotational and the linear part of dq, and omega and v the angular velocity and the velocity in body axes. Then

        r' = dqd_r + r x omega,   l' = dqd_l + r x v + l x omega.
    """
    R = np.zeros((*qd.shape, qd.shape[-1]))
    for kind, first in zip(model.joint_types, model.velocity_index, strict=True):
        if kind in ("free", "spherical"):
            r = int(first) + (3 if kind == "free" else 0)
            R[:, r : r + 3, r : r + 3] = -skew(qd[:, r : r + 3])
            if kind == "free":
                R[:, r - 3 : r, r - 3 : r] = R[:, r : r + 3, r : r + 3]
                R[:, r - 3 : r, r : r + 3] = -skew(qd[:, r - 3 : r])
    return R


def skew(v: FloatArray) -> FloatArray:
    """Return the matrices (samples, 3, 3) of the cross products v x, for v (samples, 3)."""
    x, y, z = v.T
    o = np.zeros_like(x)
    return np.moveaxis(np.array([[o, -z, y], [z, o, -x], [-y, x, o]]), -1, 0)
