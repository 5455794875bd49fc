"""What joints do by themselves: springs, damping, dry friction, stops; and how it yields to motion.

Friction: Hess and Soom (1990), with v / sqrt(v^2 + v0^2) for the sign of v; stops: Hunt and Crossley (1975).
"""

import math

from .jit import kernel
from .lanes import like, select
from .layout import (
    BREAKAWAY,
    CUBIC_STIFFNESS,
    DAMPER,
    DAMPING,
    FRICTION,
    FRICTION_VELOCITY,
    LIMIT_DAMPING,
    LIMIT_STIFFNESS,
    LOWER,
    REST,
    SLIDING,
    SPRING,
    STIFFNESS,
    STOPS,
    STRIBECK_VELOCITY,
    UPPER,
    parameter,
)


@kernel
def passive_force(i, model, q, qd, k):
    """Force of joint i by itself, and by how much it falls per unit of position and of velocity: never below zero."""
    kinds, zero = model.passive[i], like(qd, 0.0) * qd[i, k]
    force, stiffness, damping = zero, zero, zero
    if kinds & SPRING:
        force, stiffness = spring_force(i, model, q[model.coordinate[i], k], k)
    if kinds & DAMPER:
        damping = parameter(model.parameters, i, DAMPING, k) + zero
        force = force - damping * qd[i, k]
    if kinds & SLIDING:
        friction, slope = friction_force(i, model, qd[i, k], k)
        force, damping = force + friction, damping + slope
    if kinds & STOPS:
        stop, hardness, slope = stop_force(i, model, q[model.coordinate[i], k], qd[i, k], k)
        force, stiffness, damping = force + stop, stiffness + hardness, damping + slope
    return force, stiffness, damping


@kernel
def spring_force(i, model, q, k):
    """- k x - c x^3 with x = q - rest, and its stiffness."""
    linear, cubic = parameter(model.parameters, i, STIFFNESS, k), parameter(model.parameters, i, CUBIC_STIFFNESS, k)
    x = q - parameter(model.parameters, i, REST, k)
    stiffening = cubic * (x * x)
    return -(linear + stiffening) * x, max(linear + like(x, 3.0) * stiffening, x - x)


@kernel
def friction_force(i, model, v, k):
    """- (F + E / (1 + (v / vs)^2)) v / sqrt(v^2 + v0^2), and by how much it falls with v."""
    sliding, excess = parameter(model.parameters, i, FRICTION, k), parameter(model.parameters, i, BREAKAWAY, k)
    ratio = v / parameter(model.parameters, i, STRIBECK_VELOCITY, k)
    v0 = parameter(model.parameters, i, FRICTION_VELOCITY, k)
    one = like(v, 1.0)
    fade, s = one / (one + ratio * ratio), one / math.sqrt(v * v + v0 * v0)
    size, sign = sliding + excess * fade, v * s
    # d size / dv times sign is never positive: the Stribeck effect, that friction falls with speed
    growth = size * (v0 * v0) * (s * s * s)
    fall = like(v, 2.0) * excess * fade * fade * ratio * sign / parameter(model.parameters, i, STRIBECK_VELOCITY, k)
    return -size * sign, max(growth - fall, v - v)


@kernel
def stop_force(i, model, q, v, k):
    """k x max(0, 1 + d dx/dt) back from a stop that joint i is x into, and by how much it falls with q and with v."""
    numbers, zero, one = model.parameters, v - v, like(v, 1.0)
    hardness, d = parameter(numbers, i, LIMIT_STIFFNESS, k), parameter(numbers, i, LIMIT_DAMPING, k)
    below, above = parameter(numbers, i, LOWER, k) - q, q - parameter(numbers, i, UPPER, k)
    sign = select(above > zero, -one, one)
    x = max(zero, below) + max(zero, above)
    pressing = max(one - sign * d * v, zero)
    touching = select(x > zero, one, zero) * select(pressing > zero, one, zero)
    return sign * (hardness * x * pressing), touching * hardness * pressing, touching * hardness * x * d


@kernel
def passive_forces(model, q, qd, forces, k):
    """Forces (n, lanes) of all joints by themselves."""
    for i in range(model.parent.shape[0]):
        forces[i, k], _, _ = passive_force(i, model, q, qd, k)
