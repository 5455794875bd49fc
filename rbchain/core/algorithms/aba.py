"""Forward dynamics: compute joint accelerations from a state and joint forces by the articulated-body algorithm.

Source: Featherstone (1983; 2008, section 7.3). All spatial quantities are in world-aligned axes and refer to the joint
origin of their dof. Passing them to the parent is therefore a translation without a rotation.
"""

import numpy as np

from ...compiling.jit import kernel
from ..forces.between_bodies import update_wrenches_between_bodies
from ..forces.hydrodynamics import add_inertia_and_bias
from ..forces.wrenches import subtract_action_wrenches
from ..lanes.lanes import constant_like, epsilon, nan_unless_finite, select
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
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.joints import add_joint_motion, inertia_along, joint_bias, joint_force
from ..tree.kinematics import move_dof
from ..tree.layout import CONTRIBUTION_IA, CONTRIBUTION_PA, IN_REGISTERS, POSING_CARRIED, PRISMATIC, parameter

# D below this multiple of epsilon times the inertia is round-off from the subtraction of nearly equal inertias.
ROUND_OFF_FACTOR = 16.0


@kernel
def forward_dynamics(model, q, qd, loads, qdd, work, k):
    """Compute qdd (n, lanes) from q (nq, lanes), qd, loads.tau and loads.wrenches, for the samples in lanes k.

    Three sweeps: outward for positions and velocities, inward for articulated inertias, outward for accelerations. qd
    and loads.tau are (n, lanes); `Loads` describes loads.wrenches. If the mechanism is singular in q, some qdd are NaN.
    SI units.
    """
    n = model.parent.shape[0]
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
    update_wrenches_between_bodies(model, loads, work, k)
    contribution = no_contribution(work, k)
    for i in range(n - 1, -1, -1):
        contribution = aba_inward_step(i, model, qd, loads, contribution, work, k)
    for i in range(n):
        accelerate_dof(i, model, qd, qdd, work, k)


@kernel
def propagate_nan(rows, k):
    """Set all rows (m, lanes) of a lane to NaN if any of them is not finite, so that a failed sample is all NaN."""
    nothing = nan_unless_finite(rows[0, k])
    for j in range(1, rows.shape[0]):
        nothing = nothing + nan_unless_finite(rows[j, k])
    for j in range(rows.shape[0]):
        rows[j, k] = rows[j, k] + nothing


@kernel
def subtract_wrench(i, loads, f, k):
    """Return f minus the external wrench on the body of dof i; f if the call has no wrenches.

    Both are in world axes, about the joint origin, in N m and N.
    `loads.wrenches` holds the force before the moment, and a Force holds the moment first.
    """
    if loads.wrenches.shape[0] == 0:
        return f
    return subtract_forces(f, Force(load3(loads.wrenches, i, 3, k), load3(loads.wrenches, i, 0, k)))


@kernel
def no_contribution(work, k):
    """Load the contribution to a dof without children: zero inertia (an Inertia) and zero force (a Force)."""
    sums, childless = work.contributions, work.contributions.shape[0] - 1
    return load_inertia(sums, childless, CONTRIBUTION_IA, k), load_force(sums, childless, CONTRIBUTION_PA, k)


@kernel
def children_contribution(i, model, contribution, work, k):
    """Return the sum of the contributions of the children of dof i: articulated inertia and bias force.

    If dof i + 1 is the only child, the sum is `contribution`, which the inward step of dof i + 1 has just returned.
    Contributions along a serial chain therefore stay in registers. All other sums are in memory. A contribution is an
    Inertia and a Force, in world axes about joint origin i.
    """
    row, sums = model.contribution_row[i], work.contributions
    if row == IN_REGISTERS:
        return contribution
    return load_inertia(sums, row, CONTRIBUTION_IA, k), load_force(sums, row, CONTRIBUTION_PA, k)


@kernel
def articulated_inertia_and_bias(i, model, loads, contribution, work, k):
    """Compute the articulated inertia and the bias force of dof i (Featherstone 2008, eqs. 7.21-7.22).

        IA = I + sum of Ia over the children
        pA = v x* I v - wrench + sum of pa over the children

    I is the inertia of the body of dof i, or zero for a dof without a body. Reads R and V. `contribution` is as for
    `children_contribution`. IA is an Inertia and pA a Force, N m and N, in world axes about joint origin i.
    """
    I_children, p_children = children_contribution(i, model, contribution, work, k)
    IA, p = add_inertia_and_bias(i, model, I_children, work, k)
    pA = subtract_action_wrenches(i, model, loads, subtract_wrench(i, loads, p, k), work, k)
    return IA, add_forces(pA, p_children)


@kernel
def reciprocal_of_inertia(i, model, D, IA, work, k):
    """Return 1 / D, or NaN if D is only round-off, because then the mechanism is singular.

    The threshold is proportional to the trace of the articulated inertia. For a joint with several dofs, take the
    largest trace of this dof and of the later dofs of the joint: the elimination of the later dofs may leave only
    round-off in IA.

    Reads and writes SCALE, which passes the trace to the preceding dof of the joint. D is a number, kg m^2 or kg, and
    IA an Inertia.
    """
    p, J, M = model.parent[i], IA.J, IA.M
    rotational, translational = J[0] + J[3] + J[5], M[0] + M[3] + M[5]
    if model.body[i] < 0:
        rotational = max(rotational, work.dof[i, frame.SCALE, k])
        translational = max(translational, work.dof[i, frame.SCALE + 1, k])
    if p < model.parent.shape[0] and model.body[p] < 0:
        work.dof[p, frame.SCALE, k] = rotational
        work.dof[p, frame.SCALE + 1, k] = translational
    round_off = ROUND_OFF_FACTOR * epsilon(D) * (translational if model.joint[i] == PRISMATIC else rotational)
    one, is_regular = constant_like(D, 1.0), round_off < D
    return select(is_regular, one / select(is_regular, D, one), constant_like(D, np.nan))


@kernel
def aba_inward_step(i, model, qd, loads, contribution, work, k):
    """Run the inward step of dof i: eliminate its acceleration, and return the contribution to its parent.

    A contribution is an Inertia and a Force, as for `children_contribution`.
    """
    IA, pA = articulated_inertia_and_bias(i, model, loads, contribution, work, k)
    return project_out_dof(i, model, qd, loads, IA, pA, work, k)


@kernel
def project_out_dof(i, model, qd, loads, IA, pA, work, k):
    """Project dof i out of its articulated inertia, and return the contribution to its parent.

        U = IA S,  D = S^T U + armature,  u = tau - S^T pA
        Ia = IA - U U^T / D,  pa = pA + Ia c + U u / D

    Writes U, DINV and FORCE. Returns the result of `contribute_to_parent`. Source: Featherstone (2008), eqs. 7.43-7.47.
    IA and Ia are Inertias, and pA, pa and U Forces, in world axes about joint origin i. D is in kg m^2 or kg, and u in
    N m or N.
    """
    p, joint, dof = model.parent[i], model.joint[i], work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    U = inertia_along(joint, IA, axis, advance)
    D = joint_force(joint, axis, advance, U) + parameter(model.parameters, i, param.ARMATURE, k)
    Dinv = reciprocal_of_inertia(i, model, D, IA, work, k)
    u = loads.tau[i, k] - joint_force(joint, axis, advance, pA)
    store_spatial(dof, i, frame.U, k, U)
    dof[i, frame.DINV, k] = Dinv
    dof[i, frame.FORCE, k] = u
    if p < model.parent.shape[0]:
        c = joint_bias(joint, load_motion(dof, i, frame.V, k), axis, advance, qd[i, k])
        Ia = deflate(IA, U, Dinv)
        pa = add_forces(add_forces(pA, momentum(Ia, c)), scale_force(Dinv * u, U))
        return contribute_to_parent(i, model, Ia, pa, work, k)
    return IA, pA  # not used: a root has no parent


@kernel
def contribute_to_parent(i, model, Ia, pa, work, k):
    """Refer Ia and pa to the joint origin of the parent, add the contributions of the siblings, and return the sum.

    If dof i is the only child and directly follows its parent, the sum stays in registers; else store it. Ia is an
    Inertia, and pa a Force, N m and N, in world axes.
    """
    if model.posing[i] != POSING_CARRIED:  # a carried dof has the same joint origin as its parent
        r = load3(work.dof, i, frame.LEVER, k)
        Ia, pa = inertia_at_root(Ia, r), force_at_root(pa, r)
    row, contributions = model.contribution_row[model.parent[i]], work.contributions
    if row == IN_REGISTERS:
        return Ia, pa
    if model.accumulates[i]:
        Ia = add_inertias(Ia, load_inertia(contributions, row, CONTRIBUTION_IA, k))
        pa = add_forces(pa, load_force(contributions, row, CONTRIBUTION_PA, k))
    store_inertia(contributions, row, CONTRIBUTION_IA, k, Ia)
    store_spatial(contributions, row, CONTRIBUTION_PA, k, pa)
    return Ia, pa


@kernel
def accelerate_dof(i, model, qd, qdd, work, k):
    """Compute qdd of dof i and the acceleration a of its frame (Featherstone 2008, eqs. 7.48-7.50).

        a' = a_parent + c,  qdd = (u - U . a') / D,  a = a' + S qdd

    Reads R, LEVER, V, U, DINV and FORCE of dof i and A of the parent; writes qdd and A. The acceleration a is a Motion
    in world axes, at the joint origin. qd and qdd are (n, lanes).
    """
    p, joint, dof = model.parent[i], model.joint[i], work.dof
    axis, advance = z_axis(load9(dof, i, frame.R, k)), parameter(model.parameters, i, param.ADVANCE, k)
    c = joint_bias(joint, load_motion(dof, i, frame.V, k), axis, advance, qd[i, k])
    a = add_motions(motion_at_tip(load_motion(dof, p, frame.A, k), load3(dof, i, frame.LEVER, k)), c)
    qdd_i = dof[i, frame.DINV, k] * (dof[i, frame.FORCE, k] - power(load_force(dof, i, frame.U, k), a))
    qdd[i, k] = qdd_i
    store_spatial(dof, i, frame.A, k, add_joint_motion(joint, a, axis, advance, qdd_i))
