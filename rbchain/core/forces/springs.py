"""Springs with dampers between two bodies, or between a body and the world.

A spring pulls its point on body b towards its point on body a, and the latter towards the former, with the tension

    T = stiffness (L - rest_length) + damping dL/dt,   e = d / L,   d = point b - point a,   L = |d|.

The force on body b is -T e. A spring of zero length has no direction, and its force is zero. A spring that can only
pull has the tension max(T, 0).

In all kernels, `springs` (SPRING_ROWS, count) and `numbers` (m, lanes) hold the integers and the numbers below.
"""

import math
from typing import NamedTuple

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, select, zeros_like
from ..spatial.storage import load_motion, number3
from ..spatial.vectors import Force, add3, cross, dot, motion_at_tip, rotate, scale3, subtract3
from ..tree import frame_layout as frame
from ..tree.kinematics import body_axes, origin_about_first_joint

# Rows of an array of springs (SPRING_ROWS, count), one column for each spring.
SPRING_DOF_A, SPRING_DOF_B = 0, 1  # dofs of the bodies; n for the world
SPRING_NUMBERS = 2  # index of the first of its numbers
SPRING_TENSION_ONLY = 3  # 1 if it can only pull
SPRING_ROWS = 4
# Numbers of a spring, in an array `numbers` (m, lanes).
SPRING_POINT_A, SPRING_POINT_B = 0, 3  # 3 each: in body axes, m
SPRING_STIFFNESS = 6  # N/m
SPRING_DAMPING = 7  # N s/m
SPRING_REST_LENGTH = 8  # m
SPRING_NUMBER_COUNT = 9


class Spring(NamedTuple):
    """State of a spring, in world axes.

    `arm_a` and `arm_b` (3) go from the joint origins of the bodies to the points, m. `direction` (3) is e, or zero if
    the length is zero. `tension` is T, N, and `pull` is T / L, N/m. `stiffness` and `damping` are zero if the spring is
    slack. `reciprocal` is 1 / L, or zero. `velocity` (3) is the velocity of point b relative to body a, m/s. `spin` (3)
    is the angular velocity of body b relative to body a, rad/s. dL/dt is e . velocity, because body a turns about
    point a.
    """

    arm_a: tuple
    arm_b: tuple
    direction: tuple
    reciprocal: float
    tension: float
    pull: float
    stiffness: float
    damping: float
    velocity: tuple
    spin: tuple


@kernel
def arm_and_position(i, point, model, work, k):
    """Return the lever of a point in body axes on the body of dof i, and its position from the first joint origin.

    The point (3) and both results (3) are in m; the results are in world axes.
    """
    arm = rotate(body_axes(i, model, work, k), point)
    return arm, add3(origin_about_first_joint(i, model, work, k), arm)


@kernel
def stretch_of_spring(s, model, springs, numbers, work, k):
    """Return L - rest_length of spring s, m, which is negative if it is shorter (reads R, LEVER and POSITION)."""
    at = springs[SPRING_NUMBERS, s]
    _, point_a = arm_and_position(springs[SPRING_DOF_A, s], number3(numbers, at + SPRING_POINT_A, k), model, work, k)
    _, point_b = arm_and_position(springs[SPRING_DOF_B, s], number3(numbers, at + SPRING_POINT_B, k), model, work, k)
    d = subtract3(point_b, point_a)
    return math.sqrt(dot(d, d)) - numbers[at + SPRING_REST_LENGTH, k]


@kernel
def spring_state(s, model, springs, numbers, work, k):
    """Compute the state of spring s (reads R, V, LEVER and POSITION)."""
    a, b, at = springs[SPRING_DOF_A, s], springs[SPRING_DOF_B, s], springs[SPRING_NUMBERS, s]
    arm_a, point_a = arm_and_position(a, number3(numbers, at + SPRING_POINT_A, k), model, work, k)
    arm_b, point_b = arm_and_position(b, number3(numbers, at + SPRING_POINT_B, k), model, work, k)
    v_a, v_b = load_motion(work.dof, a, frame.V, k), load_motion(work.dof, b, frame.V, k)
    d = subtract3(point_b, point_a)
    velocity = subtract3(motion_at_tip(v_b, arm_b).lin, motion_at_tip(v_a, add3(arm_a, d)).lin)
    length, zero, one = math.sqrt(dot(d, d)), constant_like(work.dof, 0.0), constant_like(work.dof, 1.0)
    has_direction = length > zero
    reciprocal = select(has_direction, one / select(has_direction, length, one), zero)
    direction = scale3(reciprocal, d)
    stiffness, damping = numbers[at + SPRING_STIFFNESS, k], numbers[at + SPRING_DAMPING, k]
    tension = stiffness * (length - numbers[at + SPRING_REST_LENGTH, k]) + damping * dot(direction, velocity)
    pull = select(has_direction, tension * reciprocal, stiffness)
    if springs[SPRING_TENSION_ONLY, s] == 1:
        is_slack = tension < zero
        tension, pull = select(is_slack, zero, tension), select(is_slack, zero, pull)
        stiffness, damping = select(is_slack, zero, stiffness), select(is_slack, zero, damping)
    spin = subtract3(v_b.ang, v_a.ang)
    return Spring(
        arm_a=arm_a,
        arm_b=arm_b,
        direction=direction,
        reciprocal=reciprocal,
        tension=tension,
        pull=pull,
        stiffness=stiffness,
        damping=damping,
        velocity=velocity,
        spin=spin,
    )


@kernel
def spring_force(spring):
    """Return the force (3) on body b at its point, in world axes, N."""
    return scale3(-spring.tension, spring.direction)


@kernel
def elastic_stretch(s, spring, model, springs, numbers, work, k):
    """Return L - rest_length of spring s, or zero if it is slack, m (reads POSITION)."""
    a, b = springs[SPRING_DOF_A, s], springs[SPRING_DOF_B, s]
    point_a = add3(origin_about_first_joint(a, model, work, k), spring.arm_a)
    d = subtract3(add3(origin_about_first_joint(b, model, work, k), spring.arm_b), point_a)
    rest_length = numbers[springs[SPRING_NUMBERS, s] + SPRING_REST_LENGTH, k]
    stretch, zero = math.sqrt(dot(d, d)) - rest_length, constant_like(work.dof, 0.0)
    if springs[SPRING_TENSION_ONLY, s] == 1:
        stretch = max(stretch, zero)
    return stretch


@kernel
def spring_energy(s, model, springs, numbers, work, k):
    """Compute the elastic energy of spring s, J: stiffness (L - rest_length)^2 / 2, or zero if it is slack."""
    spring = spring_state(s, model, springs, numbers, work, k)
    stretch = elastic_stretch(s, spring, model, springs, numbers, work, k)
    stiffness = numbers[springs[SPRING_NUMBERS, s] + SPRING_STIFFNESS, k]
    return constant_like(work.dof, 0.5) * stiffness * stretch * stretch


@kernel
def spring_power(s, model, springs, numbers, work, k):
    """Compute the rate of the elastic energy of spring s: stiffness (L - rest_length) dL/dt, or zero if it is slack.

    The power is in W.
    """
    spring = spring_state(s, model, springs, numbers, work, k)
    stretch = elastic_stretch(s, spring, model, springs, numbers, work, k)
    stiffness = numbers[springs[SPRING_NUMBERS, s] + SPRING_STIFFNESS, k]
    return stiffness * stretch * dot(spring.direction, spring.velocity)


@kernel
def spring_response(spring, S):
    """Compute the derivative of the wrench on body b along the displacement S of body b, while body a does not move.

    S and the wrench are in world axes, at the fixed point of the world where point b is. The relative velocity of the
    bodies does not change as a spatial vector, so the velocity of point b relative to body a changes by spin x S.
    S is a Motion. The result is a Force for a unit of the displacement: N m and N per rad or m.
    """
    e, move = spring.direction, S.lin
    stretch = dot(e, move)
    turned = scale3(spring.reciprocal, subtract3(move, scale3(stretch, e)))
    rate = dot(turned, spring.velocity) + dot(e, cross(spring.spin, move))
    along = spring.stiffness * stretch + spring.damping * rate
    across = scale3(spring.pull, subtract3(move, scale3(stretch, e)))
    change = subtract3(scale3(-along, e), across)
    return Force(cross(move, spring_force(spring)), change)


@kernel
def spring_damping_response(spring, S):
    """Compute the derivative of the wrench on body b along the relative velocity S; axes and point as above.

    S is a Motion, and the result a Force: N m and N per rad/s or m/s.
    """
    zero = zeros_like(spring.tension)
    along = spring.damping * dot(spring.direction, S.lin)
    return Force((zero, zero, zero), scale3(-along, spring.direction))
