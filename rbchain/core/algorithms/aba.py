"""Forward dynamics: the articulated-body algorithm (Featherstone 1983; 2008, section 7.3), in world-aligned axes.

Every body's quantities refer to its own joint origin, so that passing them to the parent is a translation only.
"""

import numpy as np

from ..forces.hydrodynamics import add_body
from ..forces.wrenches import subtract_attached
from ..simd.jit import kernel
from ..simd.lanes import epsilon, like, select
from ..spatial.inertias import add_inertias, deflate, inertia_at_root, momentum
from ..spatial.storage import load3, load9, load_force, load_inertia, load_motion, store_inertia, store_spatial
from ..spatial.vectors import (
    Force,
    add_forces,
    add_motions,
    force_at_root,
    motion_at_tip,
    power,
    scale_force,
    subtract_forces,
    z_axis,
)
from ..tree.joints import add_joint_motion, inertia_along, joint_bias, joint_force
from ..tree.kinematics import move_body
from ..tree.layout import (
    ADVANCE,
    ARMATURE,
    CARRIED,
    DINV,
    FORCE,
    IA,
    IN_REGISTERS,
    LEVER,
    PA,
    PRISMATIC,
    SCALE,
    A,
    R,
    U,
    V,
    parameter,
)

ROUNDINGS = 16.0  # bound of the round-off in a small difference of large inertias, in units of epsilon


@kernel
def forward_dynamics(model, q, qd, loads, qdd, work, k):
    """Accelerations of all joints under the given forces, for the chains of lanes k."""
    n = model.parent.shape[0]
    for i in range(n):
        move_body(i, model, q, qd, work, k)
    shown = nothing_shown(work, k)
    for i in range(n - 1, -1, -1):
        shown = eliminate_joint(i, model, qd, loads, shown, work, k)
    for i in range(n):
        accelerate_body(i, model, qd, qdd, work, k)


@kernel
def fail_together(rows, k):
    """Make NaN of all rows (m, lanes) in a lane where any is not finite: a chain that fails, fails as a whole."""
    nothing = rows[0, k] - rows[0, k]
    for j in range(1, rows.shape[0]):
        nothing = nothing + (rows[j, k] - rows[j, k])
    for j in range(rows.shape[0]):
        rows[j, k] = rows[j, k] + nothing


@kernel
def subtract_wrench(i, loads, f, k):
    """f less the external wrench on body i, if there are any: force, then moment, as the interface has them."""
    if loads.wrenches.shape[0] == 0:
        return f
    return subtract_forces(f, Force(load3(loads.wrenches, i, 3, k), load3(loads.wrenches, i, 0, k)))


@kernel
def nothing_shown(work, k):
    """The contribution to a body without children: no inertia and no force."""
    sums, childless = work.gathered, work.gathered.shape[0] - 1
    return load_inertia(sums, childless, IA, k), load_force(sums, childless, PA, k)


@kernel
def show_of_children(i, model, shown, work, k):
    """Sum of the contributions of body i's children to its inertia and bias force.

    If the only child is body i + 1, that is `shown`, which the sweep has just returned. So along a chain contributions
    stay in registers. Where a body has several children, their sum is in memory.
    """
    row, sums = model.gathering[i], work.gathered
    if row == IN_REGISTERS:
        return shown
    return load_inertia(sums, row, IA, k), load_force(sums, row, PA, k)


@kernel
def articulate_body(i, model, loads, shown, work, k):
    """Articulated inertia and bias force of body i, with everything that it carries.

    IA = I + sum of the children's, pA = v x* I v - wrench + sum of the children's (Featherstone 2008, eqs. 7.21-7.22).
    """
    I_children, p_children = show_of_children(i, model, shown, work, k)
    IA_body, p = add_body(i, model, I_children, work, k)
    pA = subtract_attached(i, model, loads, subtract_wrench(i, loads, p, k), work, k)
    return IA_body, add_forces(pA, p_children)


@kernel
def reciprocal_of_inertia(i, model, D, IA_body, work, k):
    """1 / D, or NaN if D is only round-off: there the mechanism is singular.

    Use the inertia of the joint's last body to set the threshold for round-off, because after the other degrees of
    freedom are eliminated only round-off may remain.
    """
    p, J, M = model.parent[i], IA_body.J, IA_body.M
    rotational, translational = J[0] + J[3] + J[5], M[0] + M[3] + M[5]
    if model.body[i] < 0:
        rotational = max(rotational, work.body[i, SCALE, k])
        translational = max(translational, work.body[i, SCALE + 1, k])
    if p < model.parent.shape[0] and model.body[p] < 0:
        work.body[p, SCALE, k] = rotational
        work.body[p, SCALE + 1, k] = translational
    noise = ROUNDINGS * epsilon(D) * (translational if model.joint[i] == PRISMATIC else rotational)
    one, enough = like(D, 1.0), noise < D
    return select(enough, one / select(enough, D, one), like(D, np.nan))


@kernel
def eliminate_joint(i, model, qd, loads, shown, work, k):
    """Step of the inward sweep: eliminate the acceleration of joint i, and pass the remaining inertia to the parent."""
    IA_body, pA = articulate_body(i, model, loads, shown, work, k)
    return release_joint(i, model, qd, loads, IA_body, pA, work, k)


@kernel
def release_joint(i, model, qd, loads, IA_body, pA, work, k):
    """U = IA S, D = S^T U + armature, u = tau - S^T pA; to the parent Ia = IA - U U^T / D, pa = pA + Ia c + U u / D.

    Featherstone (2008), eqs. 7.43-7.47. Writes U, DINV and FORCE; returns what `show_to_parent` does.
    """
    p, joint, body = model.parent[i], model.joint[i], work.body
    axis, advance = z_axis(load9(body, i, R, k)), parameter(model.parameters, i, ADVANCE, k)
    U_joint = inertia_along(joint, IA_body, axis, advance)
    D = joint_force(joint, axis, advance, U_joint) + parameter(model.parameters, i, ARMATURE, k)
    Dinv = reciprocal_of_inertia(i, model, D, IA_body, work, k)
    u = loads.tau[i, k] - joint_force(joint, axis, advance, pA)
    store_spatial(body, i, U, k, U_joint)
    body[i, DINV, k] = Dinv
    body[i, FORCE, k] = u
    if p < model.parent.shape[0]:
        c = joint_bias(joint, load_motion(body, i, V, k), axis, advance, qd[i, k])
        Ia = deflate(IA_body, U_joint, Dinv)
        pa = add_forces(add_forces(pA, momentum(Ia, c)), scale_force(Dinv * u, U_joint))
        return show_to_parent(i, model, Ia, pa, work, k)
    return IA_body, pA  # a root contributes to no body


@kernel
def show_to_parent(i, model, Ia, pa, work, k):
    """The contribution of body i, at its parent's joint origin; added to that of its siblings, if it has any."""
    if model.posing[i] != CARRIED:  # else both are at the same point
        r = load3(work.body, i, LEVER, k)
        Ia, pa = inertia_at_root(Ia, r), force_at_root(pa, r)
    row, gathered = model.gathering[model.parent[i]], work.gathered
    if row == IN_REGISTERS:
        return Ia, pa
    if model.joins[i]:
        Ia = add_inertias(Ia, load_inertia(gathered, row, IA, k))
        pa = add_forces(pa, load_force(gathered, row, PA, k))
    store_inertia(gathered, row, IA, k, Ia)
    store_spatial(gathered, row, PA, k, pa)
    return Ia, pa


@kernel
def accelerate_body(i, model, qd, qdd, work, k):
    """qdd = (u - U . a') / D and a = a' + S qdd with a' = a_parent + c (Featherstone 2008, eqs. 7.48-7.50)."""
    p, joint, body = model.parent[i], model.joint[i], work.body
    axis, advance = z_axis(load9(body, i, R, k)), parameter(model.parameters, i, ADVANCE, k)
    c = joint_bias(joint, load_motion(body, i, V, k), axis, advance, qd[i, k])
    a = add_motions(motion_at_tip(load_motion(body, p, A, k), load3(body, i, LEVER, k)), c)
    qdd_joint = body[i, DINV, k] * (body[i, FORCE, k] - power(load_force(body, i, U, k), a))
    qdd[i, k] = qdd_joint
    store_spatial(body, i, A, k, add_joint_motion(joint, a, axis, advance, qdd_joint))
