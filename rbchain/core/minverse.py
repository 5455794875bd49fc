"""The inverse of the mass matrix, from what the articulated-body algorithm leaves behind.

Column j is the acceleration that a unit force in joint j gives the mechanism at rest without gravity (Featherstone
2008, section 7.3, for n right-hand sides). It stands beside Carpentier's "Analytical inverse of the joint space inertia
matrix" (2018), of the same order.
"""

from .jit import kernel
from .joints import add_joint_motion, joint_force
from .lanes import like
from .layout import ADVANCE, DINV, FORCE, LEVER, A, R, U, parameter
from .spatial import add_forces, force_at_root, motion_at_tip, power, scale_force, z_axis
from .storage import load3, load9, load_force, load_motion, store_spatial


@kernel
def mass_matrix_inverse(model, inverse, work, k):
    """inverse (n, n, lanes), where `aba` has left R, LEVER, U and DINV and the base does not accelerate.

    Overwrites FORCE and A.
    """
    n = model.parent.shape[0]
    for j in range(n):
        for i in range(j):
            work.body[i, FORCE, k] = like(work.body, 0.0)
        pull_joint(j, model, work, k)
        for i in range(j + 1):
            yield_joint(i, j, model, inverse, work, k)


@kernel
def pull_joint(j, model, work, k):
    """u of joint j, which a unit force pulls, and of the joints that carry it."""
    n, body = model.parent.shape[0], work.body
    body[j, FORCE, k] = like(body, 1.0)
    p = scale_force(body[j, DINV, k], load_force(body, j, U, k))
    while model.parent[j] < n:
        p = force_at_root(p, load3(body, j, LEVER, k))
        j = model.parent[j]
        axis, advance = z_axis(load9(body, j, R, k)), parameter(model.parameters, j, ADVANCE, k)
        u = -joint_force(model.joint[j], axis, advance, p)
        body[j, FORCE, k] = u
        p = add_forces(p, scale_force(body[j, DINV, k] * u, load_force(body, j, U, k)))


@kernel
def yield_joint(i, j, model, inverse, work, k):
    """Acceleration of joint i when joint j is pulled; the matrix is symmetric, so i <= j suffices."""
    body = work.body
    axis, advance = z_axis(load9(body, i, R, k)), parameter(model.parameters, i, ADVANCE, k)
    a = motion_at_tip(load_motion(body, model.parent[i], A, k), load3(body, i, LEVER, k))
    qdd = body[i, DINV, k] * (body[i, FORCE, k] - power(load_force(body, i, U, k), a))
    store_spatial(body, i, A, k, add_joint_motion(model.joint[i], a, axis, advance, qdd))
    inverse[i, j, k] = qdd
    inverse[j, i, k] = qdd
