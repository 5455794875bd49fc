"""Forces of water on bodies, which the dynamics adds to each body: added mass, buoyancy, drag, current.

In an ideal fluid, Kirchhoff's equations (Lamb 1932, sections 124-126) give the force that moves a body against the
fluid as A a + v x* A v. A is the added mass: a symmetric 6 x 6 inertia that is constant in body axes. Every evaluation
rotates it to world axes, R A R^T. Added mass has no weight. As kernels represent gravity by an acceleration of the
base, A g is added to compensate for it.

In a uniform current, the motion relative to the water replaces v and a (Fossen 2011, section 8.3). In addition, the
accelerated water exerts a force on the displaced volume, as gravity does.

Functions for the algorithms have two versions. The type of `model.water` selects one of them at compilation, so water
costs models in air no time.
"""

from ...compiling.jit import is_given, kernel, only_if
from ..lanes.lanes import zeros_like
from ..spatial.inertias import Inertia, add_inertias, add_rigid, momentum, rigid_momentum
from ..spatial.storage import load3, load9, load_motion
from ..spatial.vectors import (
    Force,
    Motion,
    add3,
    add_forces,
    compose,
    cross,
    cross_force,
    dot,
    rotate,
    rotate_back,
    rotate_symmetric,
    scale3,
    subtract3,
    subtract_forces,
    symmetric,
    z_axis,
)
from ..tree import frame_layout as frame, parameter_layout as param, setting_layout as setting
from ..tree.kinematics import rigid_inertia
from ..tree.layout import DIAGONAL_DRAG, FULL_DRAG, STRIP_DRAG, parameter, parameter3, parameter6, parameter9
from . import signal_layout as signal
from .strip_drag import strip_drag

# --- forces of water --------------------------------------------------------------------------------------------------


@kernel
def added_inertia(i, model, work, k):
    """Compute the added mass of the body of dof i about its joint origin, an Inertia in world axes (reads R)."""
    return rotated_inertia(i, param.ADDED_MASS, model, work, k)


@kernel
def rotated_inertia(i, column, model, work, k):
    """Return an Inertia in world axes: 21 parameters of dof i that start at `column`, J (6), H (9), M (6) (reads R)."""
    axes, parameters = load9(work.dof, i, frame.R, k), model.parameters
    J = rotate_symmetric(axes, parameter6(parameters, i, column, k))
    M = rotate_symmetric(axes, parameter6(parameters, i, column + 15, k))
    H = parameter9(parameters, i, column + 6, k)
    x = rotate(axes, (H[0], H[3], H[6]))
    y = rotate(axes, (H[1], H[4], H[7]))
    z = rotate(axes, (H[2], H[5], H[8]))
    columns = (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2])
    a, b, c = rotate(axes, columns[:3]), rotate(axes, columns[3:6]), rotate(axes, columns[6:])
    return Inertia(J, (*a, *b, *c), M)


@kernel
def gravity_of_base(model, work, k):
    """Return gravity (3), m/s^2 in world axes: minus the acceleration of the base (reads A of row n)."""
    x, y, z = load3(work.dof, model.parent.shape[0], frame.A + 3, k)
    return (-x, -y, -z)


@kernel
def buoyancy(i, model, g, work, k):
    """Compute the buoyancy - (displaced mass) g of the body of dof i, about its joint origin (reads R).

    The field g (3) is in world axes, m/s^2. The result is a Force in world axes.
    """
    center = rotate(load9(work.dof, i, frame.R, k), parameter3(model.parameters, i, param.BUOYANCY_CENTER, k))
    lift = scale3(-parameter(model.parameters, i, param.DISPLACED_MASS, k), g)
    return Force(cross(center, lift), lift)


@kernel
def add_inertia_and_bias_in_air(i, model, A, work, k):
    """Return A + I and v x* I v for the body of dof i (reads R and V).

    A is an Inertia about the joint origin. The results are an Inertia and a Force in world axes.
    """
    v = load_motion(work.dof, i, frame.V, k)
    m, h, J = rigid_inertia(i, model, work, k)
    return add_rigid(A, m, h, J), cross_force(v, rigid_momentum(m, h, J, v))


def _model_is_in_water(i, model, *_):
    return is_in_water(model)


@only_if(_model_is_in_water, otherwise=add_inertia_and_bias_in_air)
@kernel
def add_inertia_and_bias(i, model, A, work, k):
    """Return A + T and v x* T v + T g - f for the body of dof i, with the terms of still water (reads R and V).

    T is the inertia of the rigid body plus the added mass, f the sum of weight and buoyancy. A and the results are as
    for `add_inertia_and_bias_in_air`.
    """
    v, parameters, axes = load_motion(work.dof, i, frame.V, k), model.parameters, load9(work.dof, i, frame.R, k)
    zero = zeros_like(axes[0])
    if model.body[i] < 0:
        return A, Force((zero, zero, zero), (zero, zero, zero))
    T, g = rotated_inertia(i, param.TOTAL_INERTIA, model, work, k), gravity_of_base(model, work, k)
    force = scale3(parameter(parameters, i, param.NET_MASS, k), g)
    moment = cross(rotate(axes, parameter3(parameters, i, param.NET_MOMENT, k)), g)
    p = add_forces(cross_force(v, momentum(T, v)), Force(rotate(T.H, g), symmetric(T.M, g)))
    return add_inertias(A, T), subtract_forces(p, Force(moment, force))


@only_if(_model_is_in_water, otherwise=lambda i, model, a, f, work, k: f)
@kernel
def add_water_force(i, model, a, f, work, k):
    """Return f + A (a + g) + v x* A v - buoyancy for the body of dof i (reads R and V).

    a is the acceleration of the body, with gravity as an upward acceleration of the base. a is a Motion. f is a Force,
    N m and N. Both are in world axes, at the joint origin.
    """
    if model.body[i] < 0:
        return f
    added, v = added_inertia(i, model, work, k), load_motion(work.dof, i, frame.V, k)
    g = gravity_of_base(model, work, k)
    f = add_forces(f, momentum(added, Motion(a.ang, add3(a.lin, g))))
    f = add_forces(f, cross_force(v, momentum(added, v)))
    return subtract_forces(f, buoyancy(i, model, g, work, k))


@only_if(
    _model_is_in_water, otherwise=lambda i, model, position, v, work, k: (zeros_like(v.ang[0]), zeros_like(v.ang[0]))
)
@kernel
def energy_of_water(i, model, position, v, work, k):
    """Return v . A v and (displaced mass) g . (center of buoyancy), J; the joint origin is at `position`, m.

    v is a Motion. `position` (3) and v are in world axes.
    """
    zero = zeros_like(v.ang[0])
    if model.body[i] < 0:
        return zero, zero
    Av = momentum(added_inertia(i, model, work, k), v)
    g = gravity_of_base(model, work, k)
    center = rotate(load9(work.dof, i, frame.R, k), parameter3(model.parameters, i, param.BUOYANCY_CENTER, k))
    potential = parameter(model.parameters, i, param.DISPLACED_MASS, k) * dot(g, add3(position, center))
    return dot(Av.ang, v.ang) + dot(Av.lin, v.lin), potential


@only_if(_model_is_in_water, otherwise=lambda i, model, actions, f, work, k: f)
@kernel
def subtract_drag(i, model, actions, f, work, k):
    """Return f minus the drag; in a current, also refer f of the body of dof i to the motion relative to the water.

    With the velocity w of the water and u = v - (0, w):

        f + A c + u x* A u - v x* A v - (displaced mass) w' - drag(u),  c = (0, omega x w - w')

    c is the acceleration relative to the water minus the acceleration relative to the world. Reads R and V. f is a
    Force, N m and N, in world axes about the joint origin.
    """
    if model.body[i] < 0:
        return f
    v = load_motion(work.dof, i, frame.V, k)
    if actions.settings[setting.CURRENT] >= 0:
        w, w_rate = motion_of_water(actions, signal.VALUE, k), motion_of_water(actions, signal.RATE, k)
        added, u = added_inertia(i, model, work, k), Motion(v.ang, subtract3(v.lin, w))
        zero = zeros_like(w[0])
        c = Motion((zero, zero, zero), subtract3(cross(v.ang, w), w_rate))
        f = add_forces(f, add_forces(momentum(added, c), cross_force(u, momentum(added, u))))
        f = subtract_forces(f, cross_force(v, momentum(added, v)))
        f = subtract_forces(f, buoyancy(i, model, (-w_rate[0], -w_rate[1], -w_rate[2]), work, k))
        v = u
    return subtract_forces(f, drag(i, model, v, work, k))


@kernel
def motion_of_water(actions, order, k):
    """Return the velocity (3) of the water (order signal.VALUE), m/s, or its rate (signal.RATE), m/s^2, in world axes.

    Both are zero without a current, and for controllers, because their model is in still water.
    """
    s, zero = actions.settings[setting.CURRENT], zeros_like(actions.time[0, k])
    if s < 0 or actions.settings[setting.EXTERNAL_FORCES] == 0:
        return (zero, zero, zero)
    return (actions.values[s, order, k], actions.values[s + 1, order, k], actions.values[s + 2, order, k])


@kernel
def drag(i, model, v, work, k):
    """Compute the drag on the body of dof i about its joint origin (reads R). v is relative to the water.

    v is a Motion, and the result a Force, both in world axes at the joint origin.
    """
    zero, kinds, parameters = zeros_like(v.ang[0]), model.drag[i], model.parameters
    f = Force((zero, zero, zero), (zero, zero, zero))
    if kinds == 0:
        return f
    axes = load9(work.dof, i, frame.R, k)
    origin = rotate(axes, parameter3(parameters, i, param.DRAG_ORIGIN, k))
    axes = compose(axes, parameter9(parameters, i, param.DRAG_ROTATION, k))
    lin = add3(v.lin, cross(v.ang, origin))
    if kinds & DIAGONAL_DRAG:
        f = diagonal_drag(i, parameters, rotate_back(axes, lin), rotate_back(axes, v.ang), k)
    if kinds & FULL_DRAG:
        f = full_drag(i, parameters, rotate_back(axes, lin), rotate_back(axes, v.ang), k)
    f = Force(rotate(axes, f.ang), rotate(axes, f.lin))
    if kinds & STRIP_DRAG:
        f = add_forces(f, strip_drag(i, parameters, lin, v.ang, z_axis(axes), k))
    return Force(add3(f.ang, cross(origin, f.lin)), f.lin)


@kernel
def diagonal_drag(i, parameters, lin, ang, k):
    """Return - D1 v - D2 |v| v with diagonal D1 and D2, for the velocity v = (ang, lin) in the drag frame.

    `lin` (3), m/s, and `ang` (3), rad/s, refer to the origin of the drag frame. The result is a Force in its axes,
    about its origin.
    """
    return Force(
        (
            damping_force(i, parameters, 21, ang[0], k),
            damping_force(i, parameters, 28, ang[1], k),
            damping_force(i, parameters, 35, ang[2], k),
        ),
        (
            damping_force(i, parameters, 0, lin[0], k),
            damping_force(i, parameters, 7, lin[1], k),
            damping_force(i, parameters, 14, lin[2], k),
        ),
    )


@kernel
def damping_force(i, parameters, entry, v, k):
    """Return - (d1 + d2 |v|) v, where d1 and d2 are one entry of D1 and of D2.

    v and the result are numbers. `entry` is 6 times the row plus the column of the entry, linear before angular.
    """
    linear = parameter(parameters, i, param.LINEAR_DAMPING + entry, k)
    return -(linear + parameter(parameters, i, param.QUADRATIC_DAMPING + entry, k) * abs(v)) * v


@kernel
def full_drag(i, parameters, lin, ang, k):
    """Return - D1 v - D2 |v| v with general D1 and D2, for the velocity v = (ang, lin) in the drag frame.

    The arguments and the result are as for `diagonal_drag`.
    """
    return Force(
        (
            drag_row(i, parameters, 18, lin, ang, k),
            drag_row(i, parameters, 24, lin, ang, k),
            drag_row(i, parameters, 30, lin, ang, k),
        ),
        (
            drag_row(i, parameters, 0, lin, ang, k),
            drag_row(i, parameters, 6, lin, ang, k),
            drag_row(i, parameters, 12, lin, ang, k),
        ),
    )


@kernel
def drag_row(i, parameters, entry, lin, ang, k):
    """Return one row of `full_drag`; its parameters start at `entry` of D1 and of D2.

    `lin` (3) and `ang` (3) are as for `diagonal_drag`. The row is a number, N or N m.
    """
    total = zeros_like(lin[0])
    for j in range(3):
        total = (
            total
            + damping_force(i, parameters, entry + j, lin[j], k)
            + damping_force(i, parameters, entry + 3 + j, ang[j], k)
        )
    return total


# --- functions for the algorithms -------------------------------------------------------------------------------------


def is_in_water(model):
    """Whether a model is in water; `model` is a FlatModel or its Numba type."""
    return is_given(model, "water")
