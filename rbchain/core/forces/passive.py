"""Passive joint forces, which the rate of a state adds to the actuator forces: springs, damping, friction, stops.

With the position q and the velocity v of a dof:

    spring    - k x - k3 x^3,  x = q - rest
    damper    - d v
    friction  - F(v) v / sqrt(v^2 + v0^2),  F of `sliding_friction`
    stop      +- k x max(0, 1 + d x'),  x the penetration

Sources: friction, Hess and Soom (1990), with v / sqrt(v^2 + v0^2) in place of the sign of v; stops, Hunt and Crossley
(1975).
"""

import math

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, nan_unless_finite, select, zeros_like
from ..tree import parameter_layout as param
from ..tree.layout import (
    PASSIVE_ASYMMETRIC,
    PASSIVE_DAMPER,
    PASSIVE_FRICTION,
    PASSIVE_SPRING,
    PASSIVE_STOPS,
    PASSIVE_STRIBECK,
    parameter,
)


@kernel
def passive_force(i, model, q, qd, k):
    """Compute the passive force of dof i, N m or N, from q (nq, lanes) and qd (n, lanes)."""
    kinds, parameters, v = model.passive[i], model.parameters, qd[i, k]
    force = nan_unless_finite(v)
    if kinds & PASSIVE_DAMPER:
        force = force - parameter(parameters, i, param.DAMPING, k) * v
    if kinds & PASSIVE_FRICTION:
        force = force - friction_against(i, kinds, parameters, v, k)
    if kinds & PASSIVE_SPRING:
        x = q[model.coordinate[i], k] - parameter(parameters, i, param.REST, k)
        force = force - x * (
            parameter(parameters, i, param.STIFFNESS, k) + parameter(parameters, i, param.CUBIC_STIFFNESS, k) * (x * x)
        )
    if kinds & PASSIVE_STOPS:
        x, sign = stop_penetration(i, parameters, q[model.coordinate[i], k], k)
        factor = max(constant_like(v, 1.0) - sign * parameter(parameters, i, param.LIMIT_DAMPING, k) * v, zeros_like(v))
        force = force + sign * (parameter(parameters, i, param.LIMIT_STIFFNESS, k) * x * factor)
    return force


@kernel
def passive_stiffness_and_damping(i, model, q, qd, k):
    """Compute stiffness and damping of dof i: - d force / d q and - d force / d qd, with negative terms set to zero.

    Stiffness is in N m/rad or N/m, damping in N m s/rad or N s/m. q is (nq, lanes), and qd (n, lanes).
    """
    kinds, parameters, v = model.passive[i], model.parameters, qd[i, k]
    zero, one = zeros_like(v), constant_like(v, 1.0)
    stiffness, damping = zero, zero
    if kinds & PASSIVE_DAMPER:
        damping = damping + parameter(parameters, i, param.DAMPING, k)
    if kinds & PASSIVE_FRICTION:
        damping = damping + friction_slope(i, kinds, parameters, v, k)
    if kinds & PASSIVE_SPRING:
        x = q[model.coordinate[i], k] - parameter(parameters, i, param.REST, k)
        cubic = constant_like(v, 3.0) * parameter(parameters, i, param.CUBIC_STIFFNESS, k) * (x * x)
        stiffness = stiffness + max(parameter(parameters, i, param.STIFFNESS, k) + cubic, zero)
    if kinds & PASSIVE_STOPS:
        x, sign = stop_penetration(i, parameters, q[model.coordinate[i], k], k)
        d, k_stop = parameter(parameters, i, param.LIMIT_DAMPING, k), parameter(parameters, i, param.LIMIT_STIFFNESS, k)
        factor = max(one - sign * d * v, zero)
        stiffness = stiffness + select(x > zero, k_stop * factor, zero)
        damping = damping + select(factor > zero, k_stop * x * d, zero)
    return stiffness, damping


@kernel
def exact_passive_stiffness_and_damping(i, model, q, qd, k):
    """Compute - d force / d q and - d force / d qd of dof i, including negative terms.

    Units and shapes are as for `passive_stiffness_and_damping`.
    """
    stiffness, damping = passive_stiffness_and_damping(i, model, q, qd, k)
    kinds, parameters, v = model.passive[i], model.parameters, qd[i, k]
    if kinds & PASSIVE_SPRING:
        x = q[model.coordinate[i], k] - parameter(parameters, i, param.REST, k)
        cubic = constant_like(v, 3.0) * parameter(parameters, i, param.CUBIC_STIFFNESS, k) * (x * x)
        stiffness = stiffness + min(parameter(parameters, i, param.STIFFNESS, k) + cubic, zeros_like(v))
    if kinds & PASSIVE_STRIBECK:
        v0, s = parameter(parameters, i, param.FRICTION_VELOCITY, k), stribeck_share(i, parameters, v, k)
        rate = parameter(parameters, i, param.STRIBECK_RATE, k)
        slope = constant_like(v, -2.0) * v * rate * rate * s * s  # ds / dv
        slope = parameter(parameters, i, param.BREAKAWAY, k) * slope
        damping = damping + slope * v / math.sqrt(v * v + v0 * v0)
    return stiffness, damping


@kernel
def friction_against(i, kinds, parameters, v, k):
    """Compute the dry friction of dof i against its velocity v, N m or N: F v / sqrt(v^2 + v0^2).

    v is a number, rad/s or m/s.
    """
    v0 = parameter(parameters, i, param.FRICTION_VELOCITY, k)
    return sliding_friction(i, kinds, parameters, v, k) * v / math.sqrt(v * v + v0 * v0)


@kernel
def friction_slope(i, kinds, parameters, v, k):
    """Compute the derivative of the dry friction of dof i with respect to its velocity v, N m s/rad or N s/m.

    The derivative of F(v) is omitted: the Stribeck effect reduces the damping. v is a number, rad/s or m/s.
    """
    v0 = parameter(parameters, i, param.FRICTION_VELOCITY, k)
    inverse = constant_like(v, 1.0) / math.sqrt(v * v + v0 * v0)
    return sliding_friction(i, kinds, parameters, v, k) * (v0 * v0) * (inverse * inverse * inverse)


@kernel
def mean_friction_slope(i, kinds, parameters, v, w, k):
    """Compute the mean slope of the dry friction of dof i between the velocities v and w, N m s/rad or N s/m.

    v and w are numbers, rad/s or m/s.
    """
    f, g = friction_against(i, kinds, parameters, v, k), friction_against(i, kinds, parameters, w, k)
    change = select(v == w, constant_like(v, 1.0), v - w)
    return select(v == w, friction_slope(i, kinds, parameters, v, k), (f - g) / change)


@kernel
def sliding_friction(i, kinds, parameters, v, k):
    """Compute the magnitude of the dry friction of dof i, F = f + (fs - f) s(v) + a sgn(v) >= 0, N m or N.

    f is the sliding friction, fs the static friction, s(v) the result of `stribeck_share`, and a the asymmetry. v is a
    number, rad/s or m/s.
    """
    zero = zeros_like(v)
    friction = parameter(parameters, i, param.FRICTION, k) + zero  # in lanes, even if all samples share the number
    if kinds & PASSIVE_STRIBECK:
        friction = friction + parameter(parameters, i, param.BREAKAWAY, k) * stribeck_share(i, parameters, v, k)
    if kinds & PASSIVE_ASYMMETRIC:
        asymmetry = parameter(parameters, i, param.FRICTION_ASYMMETRY, k)
        friction = friction + select(v > zero, asymmetry, -asymmetry)
    return friction


@kernel
def stribeck_share(i, parameters, v, k):
    """Compute the share of fs - f that remains at velocity v, s = 1 / (1 + (v / vs)^2).

    v is a number, rad/s or m/s.
    """
    ratio = v * parameter(parameters, i, param.STRIBECK_RATE, k)
    return constant_like(v, 1.0) / (constant_like(v, 1.0) + ratio * ratio)


@kernel
def stop_penetration(i, parameters, q, k):
    """Compute how far dof i is beyond a stop, rad or m, and the sign of the force of the stop, 1 or -1.

    q is the position of the dof, a number.
    """
    zero, one = zeros_like(q), constant_like(q, 1.0)
    below, above = parameter(parameters, i, param.LOWER, k) - q, q - parameter(parameters, i, param.UPPER, k)
    return max(below, zero) + max(above, zero), select(above > zero, -one, one)


@kernel
def passive_forces(model, q, qd, forces, k):
    """Compute the passive forces (n, lanes) of all dofs, N m or N, from q (nq, lanes) and qd (n, lanes)."""
    for i in range(model.parent.shape[0]):
        forces[i, k] = passive_force(i, model, q, qd, k)
