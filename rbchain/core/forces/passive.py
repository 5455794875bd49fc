"""Passive joint forces: springs, damping, dry friction, stops; and their stiffness and damping.

Friction: Hess and Soom (1990), with v / sqrt(v^2 + v0^2) for the sign of v; stops: Hunt and Crossley (1975).
"""

import math

from ..simd.jit import kernel
from ..simd.lanes import constant_like, select
from ..tree.layout import (
    PARAM_BREAKAWAY,
    PARAM_CUBIC_STIFFNESS,
    PARAM_DAMPING,
    PARAM_FRICTION,
    PARAM_FRICTION_ASYMMETRY,
    PARAM_FRICTION_VELOCITY,
    PARAM_LIMIT_DAMPING,
    PARAM_LIMIT_STIFFNESS,
    PARAM_LOWER,
    PARAM_REST,
    PARAM_STIFFNESS,
    PARAM_STRIBECK_RATE,
    PARAM_UPPER,
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
    """Passive force of joint i."""
    kinds, numbers, v = model.passive[i], model.parameters, qd[i, k]
    force = v - v
    if kinds & PASSIVE_DAMPER:
        force = force - parameter(numbers, i, PARAM_DAMPING, k) * v
    if kinds & PASSIVE_FRICTION:
        v0 = parameter(numbers, i, PARAM_FRICTION_VELOCITY, k)
        force = force - sliding_friction(i, kinds, numbers, v, k) * v / math.sqrt(v * v + v0 * v0)
    if kinds & PASSIVE_SPRING:
        x = q[model.coordinate[i], k] - parameter(numbers, i, PARAM_REST, k)
        force = force - x * (
            parameter(numbers, i, PARAM_STIFFNESS, k) + parameter(numbers, i, PARAM_CUBIC_STIFFNESS, k) * (x * x)
        )
    if kinds & PASSIVE_STOPS:
        x, sign = stop_penetration(i, numbers, q[model.coordinate[i], k], k)
        pressing = max(constant_like(v, 1.0) - sign * parameter(numbers, i, PARAM_LIMIT_DAMPING, k) * v, v - v)
        force = force + sign * (parameter(numbers, i, PARAM_LIMIT_STIFFNESS, k) * x * pressing)
    return force


@kernel
def passive_stiffness_and_damping(i, model, q, qd, k):
    """Stiffness and damping of the passive force of joint i: - d force / d q and - d force / d qd, never below zero."""
    kinds, numbers, v = model.passive[i], model.parameters, qd[i, k]
    zero, one = v - v, constant_like(v, 1.0)
    stiffness, damping = zero, zero
    if kinds & PASSIVE_DAMPER:
        damping = damping + parameter(numbers, i, PARAM_DAMPING, k)
    if kinds & PASSIVE_FRICTION:
        v0 = parameter(numbers, i, PARAM_FRICTION_VELOCITY, k)
        # without the Stribeck effect, which reduces the damping
        sharp = one / math.sqrt(v * v + v0 * v0)
        damping = damping + sliding_friction(i, kinds, numbers, v, k) * (v0 * v0) * (sharp * sharp * sharp)
    if kinds & PASSIVE_SPRING:
        x = q[model.coordinate[i], k] - parameter(numbers, i, PARAM_REST, k)
        cubic = constant_like(v, 3.0) * parameter(numbers, i, PARAM_CUBIC_STIFFNESS, k) * (x * x)
        stiffness = stiffness + max(parameter(numbers, i, PARAM_STIFFNESS, k) + cubic, zero)
    if kinds & PASSIVE_STOPS:
        x, sign = stop_penetration(i, numbers, q[model.coordinate[i], k], k)
        d, hard = parameter(numbers, i, PARAM_LIMIT_DAMPING, k), parameter(numbers, i, PARAM_LIMIT_STIFFNESS, k)
        pressing = max(one - sign * d * v, zero)
        stiffness = stiffness + select(x > zero, hard * pressing, zero)
        damping = damping + select(pressing > zero, hard * x * d, zero)
    return stiffness, damping


@kernel
def sliding_friction(i, kinds, numbers, v, k):
    """Dry friction of joint i before it is regularised, N m or N: f + (fs - f) s(v) + a sgn(v), never below zero."""
    size = parameter(numbers, i, PARAM_FRICTION, k) + (v - v)
    if kinds & PASSIVE_STRIBECK:
        size = size + parameter(numbers, i, PARAM_BREAKAWAY, k) * stribeck_share(i, numbers, v, k)
    if kinds & PASSIVE_ASYMMETRIC:
        more = parameter(numbers, i, PARAM_FRICTION_ASYMMETRY, k) + (v - v)
        size = size + select(v > v - v, more, -more)
    return size


@kernel
def stribeck_share(i, numbers, v, k):
    """Share of the excess of friction at rest that remains at velocity v: 1 / (1 + (v / vs)^2)."""
    ratio = v * parameter(numbers, i, PARAM_STRIBECK_RATE, k)
    return constant_like(v, 1.0) / (constant_like(v, 1.0) + ratio * ratio)


@kernel
def stop_penetration(i, numbers, q, k):
    """How far joint i is beyond one of its limits, and the direction back."""
    zero, one = q - q, constant_like(q, 1.0)
    below, above = parameter(numbers, i, PARAM_LOWER, k) - q, q - parameter(numbers, i, PARAM_UPPER, k)
    return max(below, zero) + max(above, zero), select(above > zero, -one, one)


@kernel
def passive_forces(model, q, qd, forces, k):
    """Passive forces (n, lanes) of all joints."""
    for i in range(model.parent.shape[0]):
        forces[i, k] = passive_force(i, model, q, qd, k)
