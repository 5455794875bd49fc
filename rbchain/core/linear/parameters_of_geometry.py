"""Derivatives of the joint forces with respect to the geometry of joints, for sensitivities.

A change of the geometry of a joint displaces bodies like an additional joint whose velocity is zero. The additional
joint is before or after dof d, and moves all bodies of the subtree of dof d along S:

    placement_translation   before: S is a translation along an axis of the parent
    placement_rotation      before: S is a rotation about an axis of the joint, through the origin of its placement
    axis                    this rotation before the dof, and the rotation back about the same axis of the body after it

Let v and a be the velocity and the acceleration of the body in front of the additional joint, and P' = v x S,
P'' = a x S + v x P', as in `algorithms.derivatives`. With the composite Ic_j and Bc_j of the subtree of dof j, the
derivatives of the forces of inverse dynamics are

    S_j . (2 Bc_j P' + Ic_j P'')             for a dof j that moves along S,
    S_j . (2 Bc_d P' + Ic_d P'' + S x* F_d)  for a dof j in front of the additional joint.

The derivatives of the joint forces of wrenches, springs and bushings follow from their changes along S, as in
`algorithms.derivatives_of_wrenches` and `algorithms.derivatives_between_bodies`.
"""

from typing import NamedTuple

from ...compiling.jit import kernel, only_if
from ..algorithms.coriolis import SCRATCH_B, coriolis_times, load_coriolis, pass_coriolis, start_composites
from ..algorithms.crba import pass_inertia
from ..algorithms.derivatives_between_bodies import motion_at, response_along, velocity_at
from ..algorithms.derivatives_of_wrenches import change_of_wrench, tip_of_wrench, wrench_at_tip
from ..algorithms.jacobians import comes_after
from ..algorithms.rnea import apply_newton_euler, pass_force
from ..forces.bushings import BUSHING_DOF_A, BUSHING_DOF_B, bushing_state, bushing_wrench
from ..forces.springs import SPRING_DOF_A, SPRING_DOF_B, spring_force, spring_state
from ..forces.wrenches import WRENCH_DOF
from ..lanes.lanes import constant_like, zeros_like
from ..spatial.inertias import rigid_times
from ..spatial.storage import load3, load9, load_force, load_motion, load_rigid
from ..spatial.vectors import (
    Force,
    Motion,
    add3,
    add_forces,
    add_motions,
    column_of,
    compose,
    cross_force,
    cross_motion,
    motion_at_tip,
    power,
    rotate,
    scale3,
    scale_force,
    subtract3,
    subtract_forces,
)
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.kinematics import (
    axes_of_body,
    body_axes,
    force_on_parent,
    move_dof,
    origin_about_first_joint,
    place_about_first_joint,
)
from ..tree.layout import parameter3, parameter9
from .parameter_layout import BY_AXIS, BY_TRANSLATION, COLUMN_KIND, OF_GEOMETRY
from .parameters_between_bodies import force_of_dof, has_forces_between_bodies


class Displacement(NamedTuple):
    """A unit displacement S of the subtree of a dof. `is_before` states whether the axis of the dof moves too.

    S is a Motion in world axes, at the joint origin of the dof.
    """

    dof: int
    is_before: bool
    S: Motion


@kernel
def prepare_geometry(block, columns, y, rate, k):
    """Compute the motions, the forces and the composites of all bodies, if the columns contain geometry.

    Writes R, LEVER, V, A, F, POSITION and `linear.dofs`. `columns` is (COLUMN_ROWS, count); y and `rate` are
    (rows, lanes).
    """
    nq, n, model, loads, work = block.q.shape[0], block.qd.shape[0], block.model, block.loads, block.work
    linear, needed = loads.actions.sensitivities.linear, False
    for column in range(columns.shape[1]):
        needed = needed or columns[COLUMN_KIND, column] in OF_GEOMETRY
    if not needed:
        return
    q, qd, qdd, scratch = y[:nq], y[nq : nq + n], rate[nq : nq + n], linear.dofs
    for i in range(n):
        linear.tangent[i, k] = loads.tau[i, k]
        move_dof(i, model, q, qd, work, k)
        place_about_first_joint(i, model, work, k)
        start_composites(i, model, scratch, work, k)
        apply_newton_euler(i, model, qd, qdd, loads, work, k)
    for i in range(n - 1, -1, -1):
        pass_inertia(i, model, scratch, work, k)
        pass_coriolis(i, model, scratch, work, k)
        pass_force(i, model, qdd, loads, work, k)
    for i in range(n):
        loads.tau[i, k] = linear.tangent[i, k]


@kernel
def subtract_force_of_geometry(block, kind, i, entry, w, k):
    """Subtract the derivatives of the forces of inverse dynamics less all forces by the geometry of dof i from w.

    `entry` is the number of an axis. w is (n, lanes), N m or N per m or rad. Reads the results of `prepare_geometry`.
    """
    model, work = block.model, block.work
    p, R_p, zero = model.parent[i], load9(work.dof, model.parent[i], frame.R, k), constant_like(work.dof, 0.0)
    if kind == BY_TRANSLATION:
        e = column_of(body_axes(p, model, work, k), entry)
        subtract_force_of_displacement(block, Displacement(i, True, Motion((zero, zero, zero), e)), w, k)
        return
    R = compose(R_p, parameter9(model.parameters, i, param.PLACEMENT_ROTATION, k))
    e = column_of(axes_of_body(i, R, model, k), entry)
    to_placement = rotate(R_p, parameter3(model.parameters, i, param.PLACEMENT_TRANSLATION, k))
    travel = subtract3(load3(work.dof, i, frame.LEVER, k), to_placement)
    turn = motion_at_tip(Motion(e, (zero, zero, zero)), travel)
    subtract_force_of_displacement(block, Displacement(i, True, turn), w, k)
    if kind == BY_AXIS:
        e = scale3(constant_like(work.dof, -1.0), column_of(body_axes(i, model, work, k), entry))
        subtract_force_of_displacement(block, Displacement(i, False, Motion(e, (zero, zero, zero))), w, k)


@kernel
def subtract_force_of_displacement(block, move, w, k):
    """Subtract the derivatives of inverse dynamics less all forces along a Displacement from w (n, lanes)."""
    subtract_inertial_forces(block, move, w, k)
    add_wrenches(block, move, w, k)
    add_forces_between_bodies(block, move, w, k)


@kernel
def is_in_subtree(j, i, model):
    """Whether dof j is dof i or one of its descendants; false for the base."""
    n = model.parent.shape[0]
    while i < j < n:
        j = model.parent[j]
    return j == i


@kernel
def is_moved(j, move):
    """Whether the axis of dof j, which is on a path through the displaced subtree, moves along a Displacement."""
    return j > move.dof or (j == move.dof and move.is_before)


@kernel
def motion_in_front(move, model, row, work, k):
    """Load a Motion of the body in front of the additional joint, V or A, at the joint origin of its dof."""
    if move.is_before:
        r = load3(work.dof, move.dof, frame.LEVER, k)
        return motion_at_tip(load_motion(work.dof, model.parent[move.dof], row, k), r)
    return load_motion(work.dof, move.dof, row, k)


@kernel
def force_of_subtree(i, psidot, psiddot, scratch, k):
    """Return 2 Bc P' + Ic P'' of the subtree of dof i, for P' and P'' at its joint origin: N m and N per unit."""
    coriolis = coriolis_times(load_coriolis(scratch, i, SCRATCH_B, k), psidot)
    two = constant_like(scratch, 2.0)
    return add_forces(scale_force(two, coriolis), rigid_times(load_rigid(scratch, i, 0, k), psiddot))


@kernel
def subtract_inertial_forces(block, move, w, k):
    """Subtract the derivatives of inverse dynamics without actions along a Displacement from w (n, lanes)."""
    model, work, d, S = block.model, block.work, move.dof, move.S
    n, scratch = model.parent.shape[0], block.loads.actions.sensitivities.linear.dofs
    v, a = motion_in_front(move, model, frame.V, work, k), motion_in_front(move, model, frame.A, work, k)
    psidot = cross_motion(v, S)
    psiddot = add_motions(cross_motion(a, S), cross_motion(v, psidot))
    f = add_forces(
        force_of_subtree(d, psidot, psiddot, scratch, k), cross_force(S, load_force(work.dof, d, frame.F, k))
    )
    j = d
    while j < n:
        if not is_moved(j, move):
            w[j, k] = w[j, k] - force_of_dof(j, f, block, k)
        f = force_on_parent(j, f, model, work, k)
        j = model.parent[j]
    origin = origin_about_first_joint(d, model, work, k)
    for j in range(d, n):
        if is_moved(j, move) and is_in_subtree(j, d, model):
            arm = subtract3(origin_about_first_joint(j, model, work, k), origin)
            f = force_of_subtree(j, motion_at_tip(psidot, arm), motion_at_tip(psiddot, arm), scratch, k)
            w[j, k] = w[j, k] - force_of_dof(j, f, block, k)


@kernel
def add_wrenches(block, move, w, k):
    """Add the derivatives of the joint forces of wrenches over time along a Displacement to w (n, lanes)."""
    model, work, actions = block.model, block.work, block.loads.actions
    n, wrenches = model.parent.shape[0], actions.shared.wrenches
    for index in range(wrenches.shape[1]):
        i = wrenches[WRENCH_DOF, index]
        if is_in_subtree(i, move.dof, model):
            tip = tip_of_wrench(index, model, actions, work, k)
            W = wrench_at_tip(index, model, actions, work, k)
            S = displacement_at(move, tip, model, work, k)
            dW = change_of_wrench(index, S, W, actions)
            while i != n:
                w[i, k] = w[i, k] + force_along(i, move, S, W, dW, tip, model, work, k)
                i = model.parent[i]


@kernel
def displacement_at(move, tip, model, work, k):
    """Return S of a Displacement at the point `tip` (3), from the first joint origin, in world axes, m."""
    return motion_at_tip(move.S, subtract3(tip, origin_about_first_joint(move.dof, model, work, k)))


@kernel
def force_along(i, move, S, W, dW, tip, model, work, k):
    """Return the derivative of the joint force of dof i by a wrench W at `tip` (3) that changes by dW along S.

    W and dW are Forces, and S is the Motion of a Displacement, all at the point `tip` in world axes.
    """
    axis = motion_at(i, tip, model, work, k)
    change = power(dW, axis)
    if is_moved(i, move):
        change = change + power(W, cross_motion(S, axis))
    return change


@only_if(has_forces_between_bodies)
@kernel
def add_forces_between_bodies(block, move, w, k):
    """Add the derivatives of the joint forces of springs and bushings along a Displacement to w (n, lanes)."""
    actions = block.loads.actions
    springs, bushings, numbers = actions.shared.springs, actions.shared.bushings, actions.numbers
    for s in range(springs.shape[1]):
        spring = spring_state(s, block.model, springs, numbers, block.work, k)
        zero = zeros_like(spring.tension)
        W = Force((zero, zero, zero), spring_force(spring))
        add_change_between((springs[SPRING_DOF_A, s], springs[SPRING_DOF_B, s]), spring, W, block, move, w, k)
    for s in range(bushings.shape[1]):
        bushing = bushing_state(s, block.model, bushings, numbers, block.work, k)
        W = bushing_wrench(bushing)
        add_change_between((bushings[BUSHING_DOF_A, s], bushings[BUSHING_DOF_B, s]), bushing, W, block, move, w, k)


@kernel
def add_change_between(bodies, state, W, block, move, w, k):
    """Add the derivatives of the joint forces of one spring or bushing along a Displacement to w (n, lanes).

    `bodies` are the dofs a and b, and `state` is its Spring or Bushing. W is its wrench on body b, a Force at the point
    of b, in world axes.
    """
    model, work, numbers = block.model, block.work, block.loads.actions.numbers
    j, i = bodies
    moves_b = is_in_subtree(i, move.dof, model)
    if moves_b == is_in_subtree(j, move.dof, model):
        return
    tip = add3(origin_about_first_joint(i, model, work, k), state.arm_b)
    S = displacement_at(move, tip, model, work, k)
    v = velocity_at(i, tip, model, work, k)
    v_in_front = velocity_at(move.dof if not move.is_before else model.parent[move.dof], tip, model, work, k)
    dW = response_along(state, S, v, v_in_front, numbers, k)
    if not moves_b:
        dW = subtract_forces(cross_force(S, W), dW)
    while i != j:
        is_to_b = comes_after(i, j, model)
        row = i if is_to_b else j
        change = power(dW, motion_at(row, tip, model, work, k))
        if is_to_b == moves_b:
            change = force_along(row, move, S, W, dW, tip, model, work, k)
        w[row, k] = w[row, k] + (change if is_to_b else -change)
        if is_to_b:
            i = model.parent[i]
        else:
            j = model.parent[j]
