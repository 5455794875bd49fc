"""Errors of frames from their targets, and their derivatives: the equations that inverse kinematics solves.

A target has up to two parts. The first is the position of a point of a body, m. The second is a rotation of the body,
a direction of an axis of the body, or a point at which this axis looks. The error of the second part is a vector of the
length 2 sin(angle / 2), which grows up to half a turn and needs no trigonometric function:

    rotation   2 x, where the unit quaternion (x, w) with w >= 0 rotates the target to the body, in world axes
    direction  R a - d
    gaze       R a - u, with the unit vector u from the point of the body to the point at which it looks
"""

from typing import NamedTuple

import numpy as np

from ...compiling.jit import kernel
from ..lanes.lanes import constant_like, zeros_like
from ..spatial.rotations import quaternion_of
from ..spatial.storage import load3, load6, number3, store3
from ..spatial.vectors import add3, compose, cross, dot, length, rotate, scale3, subtract3
from ..tree import frame_layout as frame
from ..tree.kinematics import body_axes
from .jacobians import column

# --- rows of `Targets.table` (TARGET_ROWS, targets) ---
TARGET_DOF = 0  # the last dof of the body
TARGET_HAS_POSITION = 1
TARGET_KIND = 2  # of the second part
TARGET_ROWS = 3
KIND_NONE, KIND_ROTATION, KIND_DIRECTION, KIND_GAZE = 0, 1, 2, 3

# --- columns of `Targets.numbers` (targets, NUMBERS) ---
POINT = 0  # 3: point of the body, in body axes, m
AXIS = 3  # 3: in body axes, a unit vector
POSITION_WEIGHT, ROTATION_WEIGHT = 6, 7
NUMBERS = 8

# --- rows of a target in `goals` (GOAL_ROWS targets + 1, lanes), whose last row is 1 / size of the mechanism, 1/m ---
GOAL_POSITION = 0  # 3: in the world, m
GOAL_ROTATION = 3  # 9: rotation from body axes to world axes
GOAL_DIRECTION = 3  # 3: world axes, a unit vector
GOAL_GAZE = 3  # 3: in the world, m
GOAL_ROWS = 12

#: A gaze has no direction nearer to its point than this distance, m.
SHORTEST_GAZE = 1e-9


class Targets(NamedTuple):
    """The targets of a call, which all samples share: integers `table` (TARGET_ROWS, targets), and `numbers`."""

    table: np.ndarray
    numbers: np.ndarray


class Turn(NamedTuple):
    """The error of a rotation, a direction or a gaze, and its rate for a velocity v and an angular velocity w.

    The rate is `share` w + w x `arm` + `nearness` (v - u (u . v)), where u is `sight`. `error`, `arm` and `sight` (3)
    are in world axes, `nearness` in 1/m. v is the velocity of the point of the target.
    """

    error: tuple
    share: float
    arm: tuple
    nearness: float
    sight: tuple


@kernel
def tip_of_target(t, targets, axes, work, k):
    """Compute the position of the point of target t in the world, m. `axes` (9) are the axes of its body."""
    place = targets.numbers[t]
    offset = rotate(axes, (place[POINT], place[POINT + 1], place[POINT + 2]))
    return add3(load3(work.dof, targets.table[TARGET_DOF, t], frame.POSITION, k), offset)


@kernel
def turn_of_target(t, targets, goals, axes, tip, k):
    """Compute the `Turn` of target t from the axes (9) of its body and the position `tip` (3) of its point, m."""
    kind, numbers, at = targets.table[TARGET_KIND, t], targets.numbers[t], GOAL_ROWS * t
    zero = zeros_like(tip[0])
    nothing = (zero, zero, zero)
    if kind == KIND_ROTATION:
        g = number3(goals, at + GOAL_ROTATION, k)
        h = number3(goals, at + GOAL_ROTATION + 3, k)
        i = number3(goals, at + GOAL_ROTATION + 6, k)
        w, x, y, z = quaternion_of(compose(axes, (g[0], h[0], i[0], g[1], h[1], i[1], g[2], h[2], i[2])))
        two = constant_like(w, 2.0)
        return Turn((two * x, two * y, two * z), w, (x, y, z), zero, nothing)
    axis = rotate(axes, (numbers[AXIS], numbers[AXIS + 1], numbers[AXIS + 2]))
    goal = number3(goals, at + GOAL_DIRECTION, k)
    if kind == KIND_DIRECTION:
        return Turn(subtract3(axis, goal), zero, axis, zero, nothing)
    if kind == KIND_GAZE:
        ray = subtract3(goal, tip)
        nearness = constant_like(zero, 1.0) / max(length(ray), constant_like(zero, SHORTEST_GAZE))
        sight = scale3(nearness, ray)
        return Turn(subtract3(axis, sight), zero, axis, nearness, sight)
    return Turn(nothing, zero, nothing, zero, nothing)


@kernel
def turn_rate(kind, turn, v, w):
    """Compute the rate (3) of the error of a `Turn`; `turn.error` states v and w (3), m/s and rad/s."""
    if kind == KIND_ROTATION:
        # half a quaternion's error is its vector part, whose rate is (w0 w + w x vector) / 2
        return add3(scale3(turn.share, w), cross(w, turn.arm))
    if kind == KIND_GAZE:
        across = subtract3(v, scale3(dot(turn.sight, v), turn.sight))
        return add3(cross(w, turn.arm), scale3(turn.nearness, across))
    return cross(w, turn.arm)


@kernel
def dot6(a, b):
    """Return the product of two vectors (6), a number."""
    return (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]) + (a[3] * b[3] + a[4] * b[4] + a[5] * b[5])


@kernel
def add_target(t, model, targets, goals, search, work, k):
    """Add target t to the energy, the gradient and the normal matrix of a `Search`, and store its errors.

    Reads R and POSITION in the world. `search.normal` has the products of columns i and j for j <= i only.
    """
    table, numbers = targets.table, targets.numbers
    dof, kind, has_position = table[TARGET_DOF, t], table[TARGET_KIND, t], table[TARGET_HAS_POSITION, t]
    axes = body_axes(dof, model, work, k)
    tip = tip_of_target(t, targets, axes, work, k)
    turn = turn_of_target(t, targets, goals, axes, tip, k)
    off = subtract3(tip, number3(goals, GOAL_ROWS * t + GOAL_POSITION, k))
    weight = numbers[t, POSITION_WEIGHT] * goals[goals.shape[0] - 1, k]
    turn_weight = constant_like(off[0], numbers[t, ROTATION_WEIGHT])
    if has_position == 0:
        off, weight = scale3(zeros_like(off[0]), off), zeros_like(weight)
    search.errors[t, 0, k] = length(off)
    search.errors[t, 1, k] = length(turn.error)
    error = (*scale3(weight, off), *scale3(turn_weight, turn.error))
    half = constant_like(off[0], 0.5)
    search.energy[0, k] = search.energy[0, k] + half * dot6(error, error)
    n, i = model.parent.shape[0], dof
    while i != n:
        v, w = column(i, model, tip, work, k)  # both positions are in the world
        store3(search.columns, i, 0, k, scale3(weight, v))
        store3(search.columns, i, 3, k, scale3(turn_weight, turn_rate(kind, turn, v, w)))
        i = model.parent[i]
    i = dof
    while i != n:
        own = load6(search.columns, i, 0, k)
        search.gradient[i, k] = search.gradient[i, k] + dot6(own, error)
        j = i
        while j != n:  # ancestors have smaller numbers
            search.normal[i, j, k] = search.normal[i, j, k] + dot6(own, load6(search.columns, j, 0, k))
            j = model.parent[j]
        i = model.parent[i]
