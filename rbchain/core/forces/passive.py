"""Passive joint forces: springs, damping, dry friction, stops; and their stiffness and damping.

Friction: Hess and Soom (1990), with v / sqrt(v^2 + v0^2) for the sign of v; stops: Hunt and Crossley (1975).
"""

import math

from ..simd.jit import kernel
from ..simd.lanes import like, select
from ..tree.layout import (
    ASYMMETRIC,
    BREAKAWAY,
    CUBIC_STIFFNESS,
    DAMPER,
    DAMPING,
    FRICTION,
    FRICTION_ASYMMETRY,
    FRICTION_VELOCITY,
    LIMIT_DAMPING,
    LIMIT_STIFFNESS,
    LOWER,
    REST,
    SLIDING,
    SPRING,
    STIFFNESS,
    STOPS,
    STRIBECK,
    STRIBECK_RATE,
    UPPER,
    parameter,
)


@kernel
def passive_force(i, model, q, qd, k):
    """Passive force of joint i."""
    kinds, numbers, v = model.passive[i], model.parameters, qd[i, k]
    force = v - v
    if kinds & DAMPER:
        force = force - parameter(numbers, i, DAMPING, k) * v
    if kinds & SLIDING:
        v0 = parameter(numbers, i, FRICTION_VELOCITY, k)
        force = force - sliding_friction(i, kinds, numbers, v, k) * v / math.sqrt(v * v + v0 * v0)
    if kinds & SPRING:
        x = q[model.coordinate[i], k] - parameter(numbers, i, REST, k)
        force = force - x * (parameter(numbers, i, STIFFNESS, k) + parameter(numbers, i, CUBIC_STIFFNESS, k) * (x * x))
    if kinds & STOPS:
        x, sign = depth_in_stop(i, numbers, q[model.coordinate[i], k], k)
        pressing = max(like(v, 1.0) - sign * parameter(numbers, i, LIMIT_DAMPING, k) * v, v - v)
        force = force + sign * (parameter(numbers, i, LIMIT_STIFFNESS, k) * x * pressing)
    return force


@kernel
def passive_slopes(i, model, q, qd, k):
    """Stiffness and damping of the passive force of joint i: - d force / d q and - d force / d qd, never below zero."""
    kinds, numbers, v = model.passive[i], model.parameters, qd[i, k]
    zero, one = v - v, like(v, 1.0)
    hardness, slope = zero, zero
    if kinds & DAMPER:
        slope = slope + parameter(numbers, i, DAMPING, k)
    if kinds & SLIDING:
        v0 = parameter(numbers, i, FRICTION_VELOCITY, k)
        # without the Stribeck effect, which reduces the damping
        sharp = one / math.sqrt(v * v + v0 * v0)
        slope = slope + sliding_friction(i, kinds, numbers, v, k) * (v0 * v0) * (sharp * sharp * sharp)
    if kinds & SPRING:
        x = q[model.coordinate[i], k] - parameter(numbers, i, REST, k)
        cubic = like(v, 3.0) * parameter(numbers, i, CUBIC_STIFFNESS, k) * (x * x)
        hardness = hardness + max(parameter(numbers, i, STIFFNESS, k) + cubic, zero)
    if kinds & STOPS:
        x, sign = depth_in_stop(i, numbers, q[model.coordinate[i], k], k)
        d, hard = parameter(numbers, i, LIMIT_DAMPING, k), parameter(numbers, i, LIMIT_STIFFNESS, k)
        pressing = max(one - sign * d * v, zero)
        hardness = hardness + select(x > zero, hard * pressing, zero)
        slope = slope + select(pressing > zero, hard * x * d, zero)
    return hardness, slope


@kernel
def sliding_friction(i, kinds, numbers, v, k):
    """Dry friction of joint i before it is regularised, N m or N: f + (fs - f) s(v) + a sgn(v), never below zero."""
    size = parameter(numbers, i, FRICTION, k) + (v - v)
    if kinds & STRIBECK:
        size = size + parameter(numbers, i, BREAKAWAY, k) * stribeck_share(i, numbers, v, k)
    if kinds & ASYMMETRIC:
        more = parameter(numbers, i, FRICTION_ASYMMETRY, k) + (v - v)
        size = size + select(v > v - v, more, -more)
    return size


@kernel
def stribeck_share(i, numbers, v, k):
    """Share of the excess of friction at rest that remains at velocity v: 1 / (1 + (v / vs)^2)."""
    ratio = v * parameter(numbers, i, STRIBECK_RATE, k)
    return like(v, 1.0) / (like(v, 1.0) + ratio * ratio)


@kernel
def depth_in_stop(i, numbers, q, k):
    """How far joint i is beyond one of its limits, and the direction back."""
    zero, one = q - q, like(q, 1.0)
    below, above = parameter(numbers, i, LOWER, k) - q, q - parameter(numbers, i, UPPER, k)
    return max(below, zero) + max(above, zero), select(above > zero, -one, one)


@kernel
def passive_forces(model, q, qd, forces, k):
    """Passive forces (n, lanes) of all joints."""
    for i in range(model.parent.shape[0]):
        forces[i, k] = passive_force(i, model, q, qd, k)
