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
    n, wrenches, numbers = model.parent.shape[0], actions.shared.wrenches, actions.numbers
    for i in range(n):
        place_about_first_joint(i, model, work, k)
    for w in range(wrenches.shape[1]):
        b, at = wrenches[WRENCH_DOF, w], wrenches[WRENCH_POINT, w]
        point = (numbers[at, k], numbers[at + 1, k], numbers[at + 2, k])
        arm = rotate(body_axes(b, model, work, k), point)
        tip = add3(origin_about_first_joint(b, model, work, k), arm)
        W = force_at_root(wrench_over_time(w, b, model, actions, work, k), (-arm[0], -arm[1], -arm[2]))
        zero = zeros_like(arm[0])
        no_force = Force((zero, zero, zero), (zero, zero, zero))
        i = b
        while i != n:
            S = motion_at(i, tip, model, work, k)
            dW = Force(cross(S.lin, W.lin), no_force.lin)
            if wrenches[WRENCH_AXES, w] == WRENCH_BODY_AXES:
                dW = cross_force(S, W)
            add_columns(ChangeAlongDof(i, True, S, dW, no_force), (n, b), tip, W, model, derivatives, work, k)
            i = model.parent[i]
