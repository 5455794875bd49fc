"""Derivatives with respect to q of the joint forces of wrenches over time.

A wrench W acts on body b at a point. Its joint forces and their derivatives follow from `derivatives_between_bodies`
with the world as body a. Along a displacement S of the body, a wrench in body axes turns with the body. A wrench in
world axes keeps its axes, and moves with its point:

    dW = S x* W in body axes,   dW = (S_lin x force, 0) in world axes.
"""

from ...compiling.jit import kernel
from ..forces.wrenches import WRENCH_AXES, WRENCH_BODY_AXES, WRENCH_DOF, WRENCH_POINT, wrench_over_time
from ..lanes.lanes import zeros_like
from ..spatial.vectors import Force, add3, cross, cross_force, force_at_root, rotate
from ..tree.kinematics import body_axes, origin_about_first_joint, place_about_first_joint
from .derivatives_between_bodies import ChangeAlongDof, add_columns, motion_at


@kernel
def derivatives_of_wrenches(model, actions, derivatives, work, k):
    """Add d tau / dq of all wrenches over time, at the time of the signals, to derivatives (2, n, n, lanes).

    Reads R and LEVER; writes POSITION. The derivatives are in N m or N per rad or m.
    """
    n, wrenches = model.parent.shape[0], actions.shared.wrenches
    for i in range(n):
        place_about_first_joint(i, model, work, k)
    for w in range(wrenches.shape[1]):
        b, tip = wrenches[WRENCH_DOF, w], tip_of_wrench(w, model, actions, work, k)
        W = wrench_at_tip(w, model, actions, work, k)
        zero = zeros_like(tip[0])
        no_force = Force((zero, zero, zero), (zero, zero, zero))
        i = b
        while i != n:
            S = motion_at(i, tip, model, work, k)
            dW = change_of_wrench(w, S, W, actions)
            add_columns(ChangeAlongDof(i, True, S, dW, no_force), (n, b), tip, W, model, derivatives, work, k)
            i = model.parent[i]


@kernel
def arm_of_wrench(w, model, actions, work, k):
    """Return the vector (3) from the joint origin of its body to the point of wrench w, in world axes, m (reads R)."""
    at, numbers = actions.shared.wrenches[WRENCH_POINT, w], actions.numbers
    point = (numbers[at, k], numbers[at + 1, k], numbers[at + 2, k])
    return rotate(body_axes(actions.shared.wrenches[WRENCH_DOF, w], model, work, k), point)


@kernel
def tip_of_wrench(w, model, actions, work, k):
    """Return the point (3) of wrench w, from the first joint origin, in world axes, m (reads R and POSITION)."""
    b = actions.shared.wrenches[WRENCH_DOF, w]
    return add3(origin_about_first_joint(b, model, work, k), arm_of_wrench(w, model, actions, work, k))


@kernel
def wrench_at_tip(w, model, actions, work, k):
    """Return wrench w, a Force at its point in world axes, N m and N, at the time of the signals (reads R)."""
    arm = arm_of_wrench(w, model, actions, work, k)
    f = wrench_over_time(w, actions.shared.wrenches[WRENCH_DOF, w], model, actions, work, k)
    return force_at_root(f, (-arm[0], -arm[1], -arm[2]))


@kernel
def change_of_wrench(w, S, W, actions):
    """Return the derivative of wrench w, the Force W at its point, along a displacement S of its body.

    S is a Motion at the point. The result is a Force, N m and N per rad or m.
    """
    if actions.shared.wrenches[WRENCH_AXES, w] == WRENCH_BODY_AXES:
        return cross_force(S, W)
    zero = zeros_like(S.lin[0])
    return Force(cross(S.lin, W.lin), (zero, zero, zero))
