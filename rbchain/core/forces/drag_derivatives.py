"""Derivatives of the drag on a body with respect to its velocity relative to the water, for implicit integration."""

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, zeros_like
from ..spatial.storage import load9
from ..spatial.vectors import (
    Force,
    add3,
    add_forces,
    compose,
    cross,
    rotate,
    rotate_back,
    z_axis,
)
from ..tree import frame_layout as frame, parameter_layout as param
from ..tree.layout import DIAGONAL_DRAG, FULL_DRAG, STRIP_DRAG, parameter, parameter3, parameter9
from .strip_drag import strip_drag_along


@kernel
def drag_along(i, model, v, m, work, k):
    """Compute the derivative of `drag` at the velocity v along a motion m, both at the joint origin (reads R).

    v and m are Motions in world axes. The result is a Force about the joint origin, per unit of m.
    """
    zero, kinds, parameters = zeros_like(v.ang[0]), model.drag[i], model.parameters
    f = Force((zero, zero, zero), (zero, zero, zero))
    if kinds == 0:
        return f
    axes = load9(work.dof, i, frame.R, k)
    origin = rotate(axes, parameter3(parameters, i, param.DRAG_ORIGIN, k))
    axes = compose(axes, parameter9(parameters, i, param.DRAG_ROTATION, k))
    lin, m_lin = add3(v.lin, cross(v.ang, origin)), add3(m.lin, cross(m.ang, origin))
    if kinds & (DIAGONAL_DRAG | FULL_DRAG):
        velocity = (*rotate_back(axes, lin), *rotate_back(axes, v.ang))
        motion = (*rotate_back(axes, m_lin), *rotate_back(axes, m.ang))
        f = matrix_drag_along(i, parameters, velocity, motion, k)
        f = Force(rotate(axes, f.ang), rotate(axes, f.lin))
    if kinds & STRIP_DRAG:
        along = strip_drag_along(i, parameters, (lin, v.ang), (m_lin, m.ang), z_axis(axes), k)
        f = add_forces(f, along)
    return Force(add3(f.ang, cross(origin, f.lin)), f.lin)


@kernel
def matrix_drag_along(i, parameters, v, m, k):
    """Return - (D1 + 2 D2 |v|) m for v and m (6) in the drag frame, linear before angular.

    The result is a Force in the drag frame, about its origin.
    """
    return Force(
        (
            drag_row_along(i, parameters, 18, v, m, k),
            drag_row_along(i, parameters, 24, v, m, k),
            drag_row_along(i, parameters, 30, v, m, k),
        ),
        (
            drag_row_along(i, parameters, 0, v, m, k),
            drag_row_along(i, parameters, 6, v, m, k),
            drag_row_along(i, parameters, 12, v, m, k),
        ),
    )


@kernel
def drag_row_along(i, parameters, entry, v, m, k):
    """Return one row of `matrix_drag_along`; its parameters start at `entry` of D1 and of D2.

    v and m (6) are as for `matrix_drag_along`. The row is a number.
    """
    total, two = zeros_like(v[0]), constant_like(v[0], 2.0)
    for j in range(6):
        linear = parameter(parameters, i, param.LINEAR_DAMPING + entry + j, k)
        quadratic = parameter(parameters, i, param.QUADRATIC_DAMPING + entry + j, k)
        total = total - (linear + two * quadratic * abs(v[j])) * m[j]
    return total
