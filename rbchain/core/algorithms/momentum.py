"""Momentum: compute the center of mass, the momentum about it, and the centroidal momentum matrix A_G.

A_G(q) qd is the linear and angular momentum. Source: Orin, Goswami and Lee (2013), "Centroidal dynamics of a humanoid
robot".
"""

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, zeros_like
from ..spatial.inertias import Rigid, rigid_momentum
from ..spatial.storage import load3, load9, load_motion, load_rigid, store_rigid
from ..spatial.vectors import add3, cross, scale3, subtract3, z_axis
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import rigid_along
from ..tree.kinematics import move_dof, place_about_first_joint, rigid_inertia, rotate_dof
from ..tree.layout import parameter
from .crba import pass_inertia

# Rows of the result of `momentum`.
MOMENTUM_LINEAR, MOMENTUM_ANGULAR, MOMENTUM_CENTER = 0, 3, 6
MOMENTUM_ROWS = 9


@kernel
def momentum(model, q, qd, result, work, k):
    """Compute result (9, lanes): momentum, angular momentum about the center of mass, and the center of mass.

    Each has three rows, in world axes; kg m/s, kg m^2/s and m. q is (nq, lanes), and qd (n, lanes).
    """
    n = model.parent.shape[0]
    zero = zeros_like(q[0, k])
    linear, angular, center, mass = (zero, zero, zero), (zero, zero, zero), (zero, zero, zero), zero
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
        place_about_first_joint(i, model, work, k)
        m, h, J = rigid_inertia(i, model, work, k)
        position, p = (
            load3(work.dof, i, frame.POSITION, k),
            rigid_momentum(m, h, J, load_motion(work.dof, i, frame.V, k)),
        )
        linear = add3(linear, p.lin)
        angular = add3(angular, add3(p.ang, cross(position, p.lin)))
        center, mass = add3(center, add3(scale3(m, position), h)), mass + m
    center = scale3(constant_like(work.dof, 1.0) / mass, center)
    store_row3(result, MOMENTUM_LINEAR, k, linear)
    store_row3(result, MOMENTUM_ANGULAR, k, subtract3(angular, cross(center, linear)))
    store_row3(result, MOMENTUM_CENTER, k, add3(load3(work.dof, 0, frame.LEVER, k), center))


@kernel
def store_row3(a, row, k, x):
    """Store a vector (3) in three rows of a (rows, lanes)."""
    a[row, k], a[row + 1, k], a[row + 2, k] = x


@kernel
def centroidal_momentum_matrix(model, q, matrix, composite, work, k):
    """Compute the centroidal momentum matrix (6, n, lanes): rows of momentum, then of angular momentum, in world axes.

    The angular momentum is about the center of mass. `composite` (n, RIGID_ROWS, lanes) is scratch memory. The product
    with qd is in kg m/s and kg m^2/s.
    """
    n = model.parent.shape[0]
    zero = zeros_like(q[0, k])
    center, mass = (zero, zero, zero), zero
    for i in range(n):
        rotate_dof(i, model, q, work, k)
        place_about_first_joint(i, model, work, k)
        m, h, J = rigid_inertia(i, model, work, k)
        store_rigid(composite, i, 0, k, Rigid(m, h, J))
        center = add3(center, add3(scale3(m, load3(work.dof, i, frame.POSITION, k)), h))
        mass = mass + m
    center = scale3(constant_like(work.dof, 1.0) / mass, center)
    for i in range(n - 1, -1, -1):
        axis, advance = z_axis(load9(work.dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
        p = rigid_along(model.joint[i], load_rigid(composite, i, 0, k), axis, advance)
        lever = subtract3(load3(work.dof, i, frame.POSITION, k), center)
        angular = add3(p.ang, cross(lever, p.lin))
        for row in range(3):
            matrix[row, i, k] = p.lin[row]
            matrix[3 + row, i, k] = angular[row]
        pass_inertia(i, model, composite, work, k)
