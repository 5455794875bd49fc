"""External forces over time, which sweeps subtract from the force on each body, and inertia of implicit steps."""

from ...compiling.jit import is_given, kernel, only_if
from ..spatial.vectors import Force, add3, cross, rotate, subtract_forces
from ..tree import joint_layout as joint, setting_layout as setting
from ..tree.kinematics import body_axes
from . import signal_layout as signal
from .between_bodies import subtract_wrench_between_bodies
from .hydrodynamics import subtract_drag

# Rows of `SharedActions.wrenches` (WRENCH_ROWS, count), one column for each wrench.
WRENCH_DOF = 0  # dof of the body
WRENCH_AXES = 1  # WRENCH_WORLD_AXES or WRENCH_BODY_AXES
WRENCH_COMPONENTS = 2  # the first of its six signals: force (3), N, and moment about the point (3), N m
WRENCH_POINT = 3  # index in `BlockActions.numbers` of the point (3), in body axes, m
WRENCH_ROWS = 4
WRENCH_WORLD_AXES, WRENCH_BODY_AXES = 0, 1


@kernel
def subtract_wrenches_over_time(i, model, actions, f, work, k):
    """Return f minus the drag, the wrenches over time and the forces between bodies, at joint origin i (reads R, V).

    f is a Force in world axes, N m and N.
    """
    if actions.settings[setting.EXTERNAL_FORCES] == 0:
        return f
    f = subtract_drag(i, model, actions, f, work, k)
    for w in range(actions.shared.wrenches.shape[1]):
        if actions.shared.wrenches[WRENCH_DOF, w] == i:
            f = subtract_forces(f, wrench_over_time(w, i, model, actions, work, k))
    return subtract_wrench_between_bodies(i, actions, f, k)


@kernel
def wrench_over_time(w, i, model, actions, work, k):
    """Compute wrench w on the body of dof i, about its joint origin, in world axes: a Force, N m and N (reads R)."""
    wrenches, values, numbers = actions.shared.wrenches, actions.values, actions.numbers
    s, at = wrenches[WRENCH_COMPONENTS, w], wrenches[WRENCH_POINT, w]
    force = (values[s, signal.VALUE, k], values[s + 1, signal.VALUE, k], values[s + 2, signal.VALUE, k])
    moment = (values[s + 3, signal.VALUE, k], values[s + 4, signal.VALUE, k], values[s + 5, signal.VALUE, k])
    axes = body_axes(i, model, work, k)
    if wrenches[WRENCH_AXES, w] == WRENCH_BODY_AXES:
        force, moment = rotate(axes, force), rotate(axes, moment)
    point = rotate(axes, (numbers[at, k], numbers[at + 1, k], numbers[at + 2, k]))
    return Force(add3(moment, cross(point, force)), force)


@only_if(lambda i, model, loads, *_: is_given(loads, "actions"), otherwise=lambda i, model, loads, f, work, k: f)
@kernel
def subtract_action_wrenches(i, model, loads, f, work, k):
    """Subtract the drag, the wrenches over time and the forces between bodies from the force f on the body of dof i.

    f is a Force in world axes about joint origin i.
    """
    return subtract_wrenches_over_time(i, model, loads.actions, f, work, k)


@only_if(lambda i, loads, *_: is_given(loads, "actions"), otherwise=lambda i, loads, D, k: D)
@kernel
def add_implicit_inertia(i, loads, D, k):
    """Add the inertia that represents stiffness and damping in an implicit step to D of dof i.

    D and the result are numbers, kg m^2 or kg.
    """
    return D + loads.actions.joints[joint.IMPLICIT_INERTIA, i, k]
