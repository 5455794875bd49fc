"""Bodies in water: added mass, buoyancy, drag, current.

Kirchhoff's equations of a body in an ideal fluid (Lamb 1932, sections 124-126), in spatial form: the fluid adds the
inertia A to the body's, with the momentum A v and its rate A a + v x* A v. A turns with the body; in world axes it is
R A R^T, anew in every state. It has no weight: as gravity counts as an acceleration of the base, A g is taken back. In
a uniform current the same holds for the motion relative to it (Fossen 2011, section 8.3), whose acceleration besides
presses on the body as gravity does.

Each function comes in two, of which the type of `model.water` chooses one: for models in air there is nothing to do.
"""

import math

from ..simd.jit import choose, is_given, kernel
from ..simd.lanes import constant_like
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
from ..tree.kinematics import rigid_inertia
from ..tree.layout import (
    DIAGONAL_DRAG,
    FULL_DRAG,
    PARAM_ADDED_MASS,
    PARAM_BUOYANCY_CENTER,
    PARAM_DISPLACED_MASS,
    PARAM_DRAG_ORIGIN,
    PARAM_DRAG_ROTATION,
    PARAM_LINEAR_DAMPING,
    PARAM_NET_MASS,
    PARAM_NET_MOMENT,
    PARAM_QUADRATIC_DAMPING,
    PARAM_STRIP_FACTOR,
    PARAM_STRIP_LENGTH,
    PARAM_TOTAL_INERTIA,
    ROW_A,
    ROW_R,
    ROW_V,
    SETTING_CURRENT,
    STRIP_DRAG,
    parameter,
    parameter3,
    parameter6,
    parameter9,
)
from .signals import SIGNAL_RATE, SIGNAL_VALUE

# Gauss and Legendre's points and weights on (-1, 1), for the strips of a cylinder.
GAUSS_POINTS = (-0.8611363115940526, -0.3399810435848563, 0.3399810435848563, 0.8611363115940526)
GAUSS_WEIGHTS = (0.3478548451374538, 0.6521451548625461, 0.6521451548625461, 0.3478548451374538)


# --- what water does --------------------------------------------------------------------------------------------------


@kernel
def added_inertia(i, model, work, k):
    """Added mass of body i about its joint origin, in world axes (reads R)."""
    return turned_inertia(i, PARAM_ADDED_MASS, model, work, k)


@kernel
def turned_inertia(i, column, model, work, k):
    """An inertia from the parameters of body i, 21 numbers from `column` on, in world axes (reads R)."""
    axes, numbers = load9(work.dof, i, ROW_R, k), model.parameters
    J = rotate_symmetric(axes, parameter6(numbers, i, column, k))
    M = rotate_symmetric(axes, parameter6(numbers, i, column + 15, k))
    H = parameter9(numbers, i, column + 6, k)
    x = rotate(axes, (H[0], H[3], H[6]))
    y = rotate(axes, (H[1], H[4], H[7]))
    z = rotate(axes, (H[2], H[5], H[8]))
    columns = (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2])
    a, b, c = rotate(axes, columns[:3]), rotate(axes, columns[3:6]), rotate(axes, columns[6:])
    return Inertia(J, (*a, *b, *c), M)


@kernel
def gravity_of_base(model, work, k):
    """Gravity, as sweeps count it: minus the acceleration of the base."""
    x, y, z = load3(work.dof, model.parent.shape[0], ROW_A + 3, k)
    return (-x, -y, -z)


@kernel
def buoyancy(i, model, g, work, k):
    """Force of still water with gravity g on body i, about its joint origin."""
    arm = rotate(load9(work.dof, i, ROW_R, k), parameter3(model.parameters, i, PARAM_BUOYANCY_CENTER, k))
    lift = scale3(-parameter(model.parameters, i, PARAM_DISPLACED_MASS, k), g)
    return Force(cross(arm, lift), lift)


@kernel
def add_inertia_and_bias_in_air(i, model, A, work, k):
    v = load_motion(work.dof, i, ROW_V, k)
    m, h, J = rigid_inertia(i, model, work, k)
    return add_rigid(A, m, h, J), cross_force(v, rigid_momentum(m, h, J, v))


@kernel
def add_inertia_and_bias_in_water(i, model, A, work, k):
    """With the rigid body's inertia and the added mass as one, T: A + T, and v x* T v + T g - weight + buoyancy."""
    v, numbers, axes = load_motion(work.dof, i, ROW_V, k), model.parameters, load9(work.dof, i, ROW_R, k)
    zero = axes[0] - axes[0]
    if model.body[i] < 0:
        return A, Force((zero, zero, zero), (zero, zero, zero))
    T, g = turned_inertia(i, PARAM_TOTAL_INERTIA, model, work, k), gravity_of_base(model, work, k)
    weight = scale3(parameter(numbers, i, PARAM_NET_MASS, k), g)
    moment = cross(rotate(axes, parameter3(numbers, i, PARAM_NET_MOMENT, k)), g)
    p = add_forces(cross_force(v, momentum(T, v)), Force(rotate(T.H, g), symmetric(T.M, g)))
    return add_inertias(A, T), subtract_forces(p, Force(moment, weight))


@kernel
def add_force_of_water(i, model, a, f, work, k):
    """f + A (a + g) + v x* A v - buoyancy, where a counts gravity as an acceleration upwards."""
    if model.body[i] < 0:
        return f
    added, v = added_inertia(i, model, work, k), load_motion(work.dof, i, ROW_V, k)
    g = gravity_of_base(model, work, k)
    f = add_forces(f, momentum(added, Motion(a.ang, add3(a.lin, g))))
    f = add_forces(f, cross_force(v, momentum(added, v)))
    return subtract_forces(f, buoyancy(i, model, g, work, k))


@kernel
def kinetic_and_potential(i, model, position, v, work, k):
    """v . A v, and density volume g . (centre of buoyancy)."""
    zero = v.ang[0] - v.ang[0]
    if model.body[i] < 0:
        return zero, zero
    moved = momentum(added_inertia(i, model, work, k), v)
    g = gravity_of_base(model, work, k)
    arm = rotate(load9(work.dof, i, ROW_R, k), parameter3(model.parameters, i, PARAM_BUOYANCY_CENTER, k))
    lift = parameter(model.parameters, i, PARAM_DISPLACED_MASS, k) * dot(g, add3(position, arm))
    return dot(moved.ang, v.ang) + dot(moved.lin, v.lin), lift


@kernel
def subtract_drag_in_current(i, model, actions, f, work, k):
    """f less the drag, with velocities and accelerations relative to the current."""
    if model.body[i] < 0:
        return f
    v, s = load_motion(work.dof, i, ROW_V, k), actions.settings[SETTING_CURRENT]
    if s >= 0:
        w = (
            actions.values[s, SIGNAL_VALUE, k],
            actions.values[s + 1, SIGNAL_VALUE, k],
            actions.values[s + 2, SIGNAL_VALUE, k],
        )
        w_rate = (
            actions.values[s, SIGNAL_RATE, k],
            actions.values[s + 1, SIGNAL_RATE, k],
            actions.values[s + 2, SIGNAL_RATE, k],
        )
        added, u = added_inertia(i, model, work, k), Motion(v.ang, subtract3(v.lin, w))
        # the spatial acceleration against the current less that against the world
        zero = w[0] - w[0]
        c = Motion((zero, zero, zero), subtract3(cross(v.ang, w), w_rate))
        f = add_forces(f, add_forces(momentum(added, c), cross_force(u, momentum(added, u))))
        f = subtract_forces(f, cross_force(v, momentum(added, v)))
        f = subtract_forces(f, buoyancy(i, model, (-w_rate[0], -w_rate[1], -w_rate[2]), work, k))
        v = u
    return subtract_forces(f, drag(i, model, v, work, k))


@kernel
def drag(i, model, v, work, k):
    """Force of the water on body i that moves with v against it, about the joint origin."""
    zero, kinds, numbers = v.ang[0] - v.ang[0], model.drag[i], model.parameters
    f = Force((zero, zero, zero), (zero, zero, zero))
    if kinds == 0:
        return f
    axes = load9(work.dof, i, ROW_R, k)
    arm = rotate(axes, parameter3(numbers, i, PARAM_DRAG_ORIGIN, k))
    axes = compose(axes, parameter9(numbers, i, PARAM_DRAG_ROTATION, k))
    there = add3(v.lin, cross(v.ang, arm))
    if kinds & DIAGONAL_DRAG:
        f = diagonal_drag(i, numbers, rotate_back(axes, there), rotate_back(axes, v.ang), k)
    if kinds & FULL_DRAG:
        f = full_drag(i, numbers, rotate_back(axes, there), rotate_back(axes, v.ang), k)
    f = Force(rotate(axes, f.ang), rotate(axes, f.lin))
    if kinds & STRIP_DRAG:
        f = add_forces(f, strip_drag(i, numbers, there, v.ang, z_axis(axes), k))
    return Force(add3(f.ang, cross(arm, f.lin)), f.lin)


@kernel
def diagonal_drag(i, numbers, lin, ang, k):
    """- D1 v - D2 |v| v of diagonal D1 and D2."""
    return Force(
        (
            damping_force(i, numbers, 21, ang[0], k),
            damping_force(i, numbers, 28, ang[1], k),
            damping_force(i, numbers, 35, ang[2], k),
        ),
        (
            damping_force(i, numbers, 0, lin[0], k),
            damping_force(i, numbers, 7, lin[1], k),
            damping_force(i, numbers, 14, lin[2], k),
        ),
    )


@kernel
def damping_force(i, numbers, entry, v, k):
    linear = parameter(numbers, i, PARAM_LINEAR_DAMPING + entry, k)
    return -(linear + parameter(numbers, i, PARAM_QUADRATIC_DAMPING + entry, k) * abs(v)) * v


@kernel
def full_drag(i, numbers, lin, ang, k):
    """- D1 v - D2 |v| v of general D1 and D2."""
    return Force(
        (
            drag_row(i, numbers, 18, lin, ang, k),
            drag_row(i, numbers, 24, lin, ang, k),
            drag_row(i, numbers, 30, lin, ang, k),
        ),
        (
            drag_row(i, numbers, 0, lin, ang, k),
            drag_row(i, numbers, 6, lin, ang, k),
            drag_row(i, numbers, 12, lin, ang, k),
        ),
    )


@kernel
def drag_row(i, numbers, entry, lin, ang, k):
    total = lin[0] - lin[0]
    for j in range(3):
        total = (
            total
            + damping_force(i, numbers, entry + j, lin[j], k)
            + damping_force(i, numbers, entry + 3 + j, ang[j], k)
        )
    return total


@kernel
def strip_drag(i, numbers, there, spin, axis, k):
    """Drag on a slender cylinder, summed over strips (Gauss and Legendre's rule), about its middle.

    On each strip - factor |u| u of the velocity u across the axis.
    """
    factor, half = (
        parameter(numbers, i, PARAM_STRIP_FACTOR, k),
        constant_like(spin[0], 0.5) * parameter(numbers, i, PARAM_STRIP_LENGTH, k),
    )
    zero, sweep = spin[0] - spin[0], cross(spin, axis)
    f = Force((zero, zero, zero), (zero, zero, zero))
    for j in range(4):
        at = constant_like(spin[0], GAUSS_POINTS[j]) * half
        u = add3(there, scale3(at, sweep))
        u = subtract3(u, scale3(dot(axis, u), axis))
        pull = scale3(-factor * constant_like(spin[0], GAUSS_WEIGHTS[j]) * half * math.sqrt(dot(u, u)), u)
        f = Force(add3(f.ang, scale3(at, cross(axis, pull))), add3(f.lin, pull))
    return f


# --- what the algorithms ask for --------------------------------------------------------------------------------------


def is_in_water(model):
    """Whether a model, or one of this Numba type, is in water."""
    return is_given(model, "water")


def _body_is_in_water(i, model, *_):
    return is_in_water(model)


# A + I and v x* I v of body i, with what still water adds to them.
add_inertia_and_bias = choose(_body_is_in_water, add_inertia_and_bias_in_water, add_inertia_and_bias_in_air)

# The force that the motion of body i takes, with what it takes in still water.
add_water_force = choose(_body_is_in_water, add_force_of_water, lambda i, model, a, f, work, k: f)

# f less what water does to body i by its motion relative to it, still water's inertia apart.
subtract_drag = choose(_body_is_in_water, subtract_drag_in_current, lambda i, model, actions, f, work, k: f)

# Twice the kinetic energy that body i has by the water around it, and the potential energy of its buoyancy.
energy_of_water = choose(
    _body_is_in_water,
    kinetic_and_potential,
    lambda i, model, position, v, work, k: (v.ang[0] - v.ang[0], v.ang[0] - v.ang[0]),
)
