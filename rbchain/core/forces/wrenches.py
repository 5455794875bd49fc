"""External wrenches on bodies over time, drag among them; and how an implicit step changes the sweeps."""

from ..simd.jit import choose, is_given, kernel
from ..spatial.vectors import Force, add3, cross, rotate, subtract_forces
from ..tree.kinematics import body_axes
from ..tree.layout import YIELDING
from .hydrodynamics import subtract_drag
from .signals import VALUE

# Rows of `SharedActions.wrenches`, one column for each wrench.
ON_BODY = 0  # the row of the body
AXES = 1  # WORLD or OWN
COMPONENTS = 2  # the first of its six signals: force, then moment about the point
POINT = 3  # index of the first of the point's coordinates in body axes
WRENCH_ROWS = 4
WORLD, OWN = 0, 1


@kernel
def subtract_wrenches_over_time(i, model, acting, f, work, k):
    """f less the wrenches on body i, referred from their points to its origin (reads R)."""
    if acting.external[0] == 0:
        return f
    f = subtract_drag(i, model, acting, f, work, k)
    for w in range(acting.shared.wrenches.shape[1]):
        if acting.shared.wrenches[ON_BODY, w] == i:
            f = subtract_forces(f, wrench_over_time(w, i, model, acting, work, k))
    return f


@kernel
def wrench_over_time(w, i, model, acting, work, k):
    """One wrench, about the origin of body i in world axes."""
    wrenches, values, numbers = acting.shared.wrenches, acting.values, acting.numbers
    s, at = wrenches[COMPONENTS, w], wrenches[POINT, w]
    force = (values[s, VALUE, k], values[s + 1, VALUE, k], values[s + 2, VALUE, k])
    moment = (values[s + 3, VALUE, k], values[s + 4, VALUE, k], values[s + 5, VALUE, k])
    axes = body_axes(i, model, work, k)
    if wrenches[AXES, w] == OWN:
        force, moment = rotate(axes, force), rotate(axes, moment)
    point = rotate(axes, (numbers[at, k], numbers[at + 1, k], numbers[at + 2, k]))
    return Force(add3(moment, cross(point, force)), force)


# f less the wrenches over time on body i.
subtract_attached = choose(
    lambda i, model, loads, *_: is_given(loads, "acting"),
    lambda i, model, loads, f, work, k: subtract_wrenches_over_time(i, model, loads.acting, f, work, k),
    lambda i, model, loads, f, work, k: f,
)

# D, with what stands for springs and damping in an implicit step.
yielding = choose(
    lambda i, loads, *_: is_given(loads, "acting"),
    lambda i, loads, D, k: D + loads.acting.joints[YIELDING, i, k],
    lambda i, loads, D, k: D,
)
