"""Derivatives of the joint forces of springs and bushings with respect to q and qd, for implicit integration.

A force between bodies a and b exerts the wrench W on b and -W on a, at the same point p of b. The paths to a and to b
start where the paths from the base separate. A unit velocity of dof j moves b relative to a by sign_j S_j, where sign_j
is 1 on the path to b and -1 on the path to a. The generalized forces are

    tau_j = sign_j S_j . W,   at the fixed point of the world that coincides with p.

W depends only on the pose and on the velocity of b relative to a. Let H S be the derivative of W along a displacement S
of b while a does not move. Let B S be the derivative of W along a relative velocity S. With the velocity v of body b at
p, and the velocity v_p of the parent body of the joint of dof k,

    y_k = H S_k + B (S_k x (v - v_p)),
    dW/dq_k = y_k for k on the path to b,   S_k x* W - y_k for k on the path to a,
    dW/dqd_k = sign_k B S_k,
    dtau_j/dq_k = sign_j (S_j . dW/dq_k + (S_k x S_j) . W if joint j moves with dof k).

For k on the path to a, displace all bodies, which turns W, and then move b back. For free and spherical
joints, derivatives with respect to q are taken on the tangent space, along the velocities qd, as in `derivatives`.
"""

from typing import NamedTuple

from ...compiling.jit import choose, kernel
from ..forces.bushings import (
    BUSHING_DOF_A,
    BUSHING_DOF_B,
    Bushing,
    bushing_damping_response,
    bushing_response,
    bushing_state,
    bushing_wrench,
)
from ..forces.springs import (
    SPRING_DOF_A,
    SPRING_DOF_B,
    spring_damping_response,
    spring_force,
    spring_response,
    spring_state,
)
from ..lanes.lanes import constant_like, zeros_like
from ..spatial.storage import load_motion
from ..spatial.vectors import (
    Force,
    Motion,
    add3,
    add_forces,
    cross_force,
    cross_motion,
    motion_at_tip,
    power,
    scale_force,
    subtract3,
    subtract_forces,
)
from ..tree import frame_layout as frame
from ..tree.kinematics import axis_motion, move_dof, origin_about_first_joint, place_about_first_joint
from .derivatives import BY_Q, BY_QD
from .jacobians import comes_after


class ChangeAlongDof(NamedTuple):
    """The motion S of a dof at the point of a force, whether it is on the path to b, and the derivatives of W along it.

    World axes, at the point. `by_q` and `by_qd` are the derivatives with respect to the position and the velocity, N m
    and N per rad, m, rad/s or m/s.
    """

    dof: int
    is_to_b: bool
    S: Motion
    by_q: Force
    by_qd: Force


@kernel
def derivatives_between_bodies(model, q, qd, forces, derivatives, work, k):
    """Add d tau / dq and d tau / dqd of all springs and bushings to derivatives (2, n, n, lanes).

    `forces` are the integers of springs (SPRING_ROWS, count) and of bushings (BUSHING_ROWS, count), and the numbers of
    both (m, lanes): see `forces.springs` and `forces.bushings`. q is (nq, lanes), and qd (n, lanes); SI units.
    """
    springs, bushings, numbers = forces
    for i in range(model.parent.shape[0]):
        move_dof(i, model, q, qd, work, k)
        place_about_first_joint(i, model, work, k)
    for s in range(springs.shape[1]):
        spring = spring_state(s, model, springs, numbers, work, k)
        zero = zeros_like(spring.tension)
        bodies = springs[SPRING_DOF_A, s], springs[SPRING_DOF_B, s]
        wrench = Force((zero, zero, zero), spring_force(spring))
        add_derivatives(bodies, spring, wrench, model, numbers, derivatives, work, k)
    for s in range(bushings.shape[1]):
        bushing = bushing_state(s, model, bushings, numbers, work, k)
        bodies = bushings[BUSHING_DOF_A, s], bushings[BUSHING_DOF_B, s]
        wrench = bushing_wrench(bushing)
        add_derivatives(bodies, bushing, wrench, model, numbers, derivatives, work, k)


@kernel
def add_derivatives(bodies, state, W, model, numbers, derivatives, work, k):
    """Add the derivatives of one force; `state` is its Spring or Bushing, and W its wrench on body b at the point.

    World axes, N m and N. `derivatives` is (2, n, n, lanes). `bodies` are the dofs a and b, and `numbers` is
    (m, lanes).
    """
    a, b = bodies
    tip = add3(origin_about_first_joint(b, model, work, k), state.arm_b)
    v = velocity_at(b, tip, model, work, k)
    i, j = b, a
    while i != j:  # go up both paths until they meet
        on_path_to_b = comes_after(i, j, model)
        dof = i if on_path_to_b else j
        S = motion_at(dof, tip, model, work, k)
        v_parent = velocity_at(model.parent[model.first[dof]], tip, model, work, k)
        y = response_along(state, S, v, v_parent, numbers, k)
        by_qd = damping_response(state, S, numbers, k)
        if on_path_to_b:
            add_columns(ChangeAlongDof(dof, True, S, y, by_qd), bodies, tip, W, model, derivatives, work, k)
            i = model.parent[i]
        else:
            minus = constant_like(work.dof, -1.0)
            by_q, by_qd = subtract_forces(cross_force(S, W), y), scale_force(minus, by_qd)
            add_columns(ChangeAlongDof(dof, False, S, by_q, by_qd), bodies, tip, W, model, derivatives, work, k)
            j = model.parent[j]


@kernel
def add_columns(along, bodies, tip, W, model, derivatives, work, k):
    """Add the derivatives of all joint forces with respect to one dof, from its ChangeAlongDof.

    `bodies` are the dofs a and b. `tip` (3) is the point of the force, from the first joint origin, and W the wrench on
    b (a Force), both in world axes, m, N m and N. `derivatives` is (2, n, n, lanes).
    """
    dof = along.dof
    j, i = bodies
    while i != j:
        is_to_b = comes_after(i, j, model)
        row = i if is_to_b else j
        S_row = motion_at(row, tip, model, work, k)
        change, rate = power(along.by_q, S_row), power(along.by_qd, S_row)
        if is_to_b == along.is_to_b and model.first[dof] <= model.first[row]:
            change = change + power(W, cross_motion(along.S, S_row))
        if not is_to_b:
            change, rate = -change, -rate
        derivatives[BY_Q, row, dof, k] = derivatives[BY_Q, row, dof, k] + change
        derivatives[BY_QD, row, dof, k] = derivatives[BY_QD, row, dof, k] + rate
        if is_to_b:
            i = model.parent[i]
        else:
            j = model.parent[j]


@kernel
def motion_at(i, tip, model, work, k):
    """Return S of dof i, a Motion at the point `tip` (3): both in world axes, `tip` from the first joint origin, m."""
    return motion_at_tip(axis_motion(i, model, work, k), subtract3(tip, origin_about_first_joint(i, model, work, k)))


@kernel
def velocity_at(i, tip, model, work, k):
    """Return the velocity of the body of dof i, a Motion at the point `tip` (3), in world axes, rad/s and m/s.

    `tip` is the position from the first joint origin, m. Reads V and POSITION.
    """
    arm = subtract3(tip, origin_about_first_joint(i, model, work, k))
    return motion_at_tip(load_motion(work.dof, i, frame.V, k), arm)


@kernel
def response_along(state, S, v, v_in_front, numbers, k):
    """Return y = H S + B (S x (v - v_in_front)), the change of the wrench on b along a displacement of b alone.

    v is the velocity of b, and `v_in_front` the velocity of the body in front of the joint that displaces b. Both are
    Motions, and the result is a Force, at the point of the force, in world axes.
    """
    relative = Motion(subtract3(v.ang, v_in_front.ang), subtract3(v.lin, v_in_front.lin))
    return add_forces(response(state, S, numbers, k), damping_response(state, cross_motion(S, relative), numbers, k))


def _is_bushing(state, *_):
    return getattr(state, "instance_class", type(state)) is Bushing


# The derivatives of the wrench of a Spring or of a Bushing: along a displacement, and along a velocity.
response = choose(_is_bushing, bushing_response, lambda state, S, numbers, k: spring_response(state, S))
damping_response = choose(
    _is_bushing, bushing_damping_response, lambda state, S, numbers, k: spring_damping_response(state, S)
)
