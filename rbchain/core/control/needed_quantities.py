"""Quantities of a model that compiled functions of sampled controllers need, computed in lanes from the measured state.

These are the results of the methods of `Model`: poses, Jacobians and their derivatives, the mass matrix, bias and
gravity forces. A function gets these numbers after its parameters. Without such functions, nothing here is compiled.
"""

from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import is_given, kernel, only_if, routine
from ..algorithms.crba import RIGID_ROWS, mass_matrix
from ..algorithms.jacobians import offset_and_tip, point_in, store_jacobian, store_jacobian_derivative
from ..algorithms.rnea import inverse_dynamics
from ..lanes.lane_records import lane_record
from ..lanes.lanes import constant_like
from ..spatial.storage import load3
from ..spatial.vectors import add3, compose
from ..tree import frame_layout as frame, sampler_layout as sampler
from ..tree.kinematics import body_axes, move_dof, place_about_first_joint
from ..tree.layout import Loads, apply_gravity

# Rows of `Needs.groups`, one column for each group of controllers. A function gets the numbers in this order: the
# translations of all its poses, their rotations, the Jacobians, their derivatives, the mass matrix and the forces.
NEED_COUNT = 0  # how many numbers its function needs
NEED_OWN = 1  # 1 if they are of the simulated model, 0 if they are of the controllers' model
NEED_FIRST_FRAME = 2  # its first row of `Needs.frames`
NEED_POSES, NEED_JACOBIANS, NEED_DERIVATIVES = 3, 4, 5  # number of frames, whose rows follow each other
NEED_MASS_MATRIX, NEED_BIAS_FORCES, NEED_GRAVITY_FORCES = 6, 7, 8  # 1 if they are needed
NEED_ROWS = 9
# Columns of `Needs.frames`, in body axes: a point as in `jacobians.point_in`, and a rotation (9).
FRAME_POINT, FRAME_ROTATION = 0, 5
FRAME_COLUMNS = 14
# Numbers of a pose.
TRANSLATION_NUMBERS, ROTATION_NUMBERS = 3, 9


class Needs(NamedTuple):
    """Quantities that the functions need: `groups` (NEED_ROWS, groups) and `frames` (frames, FRAME_COLUMNS)."""

    groups: np.ndarray
    frames: np.ndarray


class NeedsMemory(NamedTuple):
    """Memory for the needs of one group.

    * `numbers` (count, lanes) are the quantities, in SI units, in the order of the rows above.
    * `rest` (n, lanes) are velocities or accelerations of zero.
    * `composite` (n, RIGID_ROWS, lanes) is scratch memory of the mass matrix.
    """

    numbers: Annotated[np.ndarray, "count"]
    rest: Annotated[np.ndarray, "n"]
    composite: Annotated[np.ndarray, "n", RIGID_ROWS]


needs_size, carve_needs = lane_record(NeedsMemory, "count", "n")


def actions_have_needs(actions, *_):
    """Whether compiled functions of sampled controllers need quantities of a model."""
    return is_given(actions, "shared", "samplers", "needs")


def has_needs(block, *_):
    """Whether compiled functions of the sampled controllers of a block need quantities of a model."""
    return is_given(block, "loads", "actions", "shared", "samplers", "needs")


@kernel
def memory_of_needs(actions):
    """Return the NeedsMemory of a block."""
    sizes, n, width = actions.shared.samplers.sizes, actions.joints.shape[1], actions.joints.shape[2]
    return carve_needs(actions.sampled.needed, 0, width, sizes[sampler.SIZE_NEEDED], n)


@only_if(has_needs)
@routine
def compute_needs(block, g, k):
    """Compute the quantities that the function of a group needs from the measured state, in all lanes.

    Lanes without a measurement may get NaN. Writes `NeedsMemory.numbers`.
    """
    actions, groups = block.loads.actions, block.loads.actions.shared.samplers.needs.groups
    count, y, nq, n = groups[NEED_COUNT, g], actions.sampled.measured, block.q.shape[0], block.qd.shape[0]
    if count == 0:
        return
    memory, q, qd = memory_of_needs(actions), y[:nq], y[nq : nq + n]
    model = block.model if groups[NEED_OWN, g] == 1 else actions.model
    for j in range(count):
        memory.numbers[j, k] = constant_like(y, 0.0)
    at = store_frames(model, q, qd, actions.shared.samplers.needs, g, memory.numbers, block.work, k)
    if groups[NEED_MASS_MATRIX, g] == 1:
        H = memory.numbers[at : at + n * n].reshape(n, n, y.shape[1])
        mass_matrix(model, q, H, memory.composite, block.work, k)
        at += n * n
    for i in range(n):
        memory.rest[i, k] = constant_like(y, 0.0)
    apply_gravity(model, block.work, k)
    for row in range(NEED_BIAS_FORCES, NEED_GRAVITY_FORCES + 1):
        if groups[row, g] == 1:
            loads = Loads(memory.numbers[at : at + n], block.loads.wrenches, None)
            velocities = qd if row == NEED_BIAS_FORCES else memory.rest
            inverse_dynamics(model, q, velocities, memory.rest, loads, block.work, k)
            at += n
    apply_gravity(block.model, block.work, k)


@kernel
def store_frames(model, q, qd, needs, g, numbers, work, k):
    """Store the poses, the Jacobians and their derivatives that a group needs, and return how many numbers they are.

    `needs` is a Needs. Writes `numbers` of a NeedsMemory, which start as zeros.
    """
    groups, n, width = needs.groups, model.parent.shape[0], numbers.shape[1]
    poses, jacobians, derivatives = groups[NEED_POSES, g], groups[NEED_JACOBIANS, g], groups[NEED_DERIVATIVES, g]
    if poses + jacobians + derivatives == 0:
        return 0
    for i in range(n):
        move_dof(i, model, q, qd, work, k)
        place_about_first_joint(i, model, work, k)
    row, at = groups[NEED_FIRST_FRAME, g], TRANSLATION_NUMBERS * poses
    for f in range(poses):
        store_pose(model, needs.frames[row], numbers, TRANSLATION_NUMBERS * f, at, work, k)
        row += 1
        at += ROTATION_NUMBERS
    for f in range(jacobians + derivatives):
        point, J = point_in(numbers, needs.frames[row]), numbers[at : at + 6 * n].reshape(6, n, width)
        if f < jacobians:
            store_jacobian(model, point, J, work, k)
        else:
            store_jacobian_derivative(model, point, J, work, k)
        row += 1
        at += 6 * n
    return at


@kernel
def store_pose(model, place, numbers, translation, rotation, work, k):
    """Store the translation (3), m, and the rotation (9) of a frame at these rows of `numbers` (rows, lanes).

    `place` (FRAME_COLUMNS) is its row of `Needs.frames`. Reads R, LEVER and POSITION.
    """
    point = point_in(numbers, place)
    _, tip = offset_and_tip(point, model, work, k)
    position = add3(load3(work.dof, 0, frame.LEVER, k), tip)
    axes = compose(body_axes(point.dof, model, work, k), rotation_in(numbers, place))
    for row in range(TRANSLATION_NUMBERS):
        numbers[translation + row, k] = position[row]
    for row in range(ROTATION_NUMBERS):
        numbers[rotation + row, k] = axes[row]


@kernel
def rotation_in(numbers, place):
    """Return the rotation (9) of a frame in the precision of `numbers` from its row of `Needs.frames`."""
    a, b, c = FRAME_ROTATION, FRAME_ROTATION + 3, FRAME_ROTATION + 6
    return (
        *(constant_like(numbers, place[a]), constant_like(numbers, place[a + 1]), constant_like(numbers, place[a + 2])),
        *(constant_like(numbers, place[b]), constant_like(numbers, place[b + 1]), constant_like(numbers, place[b + 2])),
        *(constant_like(numbers, place[c]), constant_like(numbers, place[c + 1]), constant_like(numbers, place[c + 2])),
    )


@only_if(actions_have_needs, otherwise=0)
@kernel
def copy_needs(actions, g, at, lane):
    """Copy the needs of a group's function in a lane to `BlockActions.call_arguments`, starting at index `at`.

    Returns how many numbers these are.
    """
    count, numbers = actions.shared.samplers.needs.groups[NEED_COUNT, g], memory_of_needs(actions).numbers
    for j in range(count):
        actions.call_arguments[at + j] = numbers[j, lane]
    return count
