"""The arrays that the sweeps of a kernel hand on: topology, parameters, working memory, forces, and the rows of each.

Constants have the prefix of their array: ROW_ of `Work.dof`, PARAM_ of the parameters, TOPOLOGY_ of the topology.
Docstrings of kernels name rows without it ("reads R").

Entry i of these arrays is degree of freedom (dof) i, and n is the number of dofs. A joint with several dofs is a
sequence of joints with one dof each, between bodies without mass; the last of them carries the body of the mechanism.
In the kernels, "body i" is the body that dof i moves, with or without mass, and "joint i" is the joint of dof i.

Parameters: an array `(n + 1, PARAM_COLUMNS)` that all samples share, or `(n + 1, PARAM_COLUMNS, lanes)` if samples
differ. The axes of body i are turned so that the joint's axis is z. Row n is the base, which holds gravity. Working
memory: an array `(n + 1, rows, lanes)`; its row n is the base again, so that a root has a parent.
"""

from typing import NamedTuple

import numpy as np

from ..simd.jit import kernel
from ..simd.lanes import constant_like

# --- parameters of a dof and its body: first column of each ---
PARAM_PLACEMENT_ROTATION = 0  # 9: joint frame to parent's frame at q = 0
PARAM_PLACEMENT_TRANSLATION = 9  # 3: joint origin in the parent's frame, m
PARAM_MASS = 12  # kg
PARAM_CG = 13  # 3: centre of mass in body axes, m
PARAM_INERTIA = 16  # 6: about the centre of mass, in body axes, kg m^2
PARAM_ADVANCE = 22  # travel along the axis per unit of q: 0 revolute, 1 prismatic, the pitch (m/rad) of a screw
PARAM_ARMATURE = 23  # inertia of the rotor, reflected to the joint, kg m^2 or kg
PARAM_AXIS = 24  # 3: the joint's axis in body axes, from which the flattening has turned to z
PARAM_STIFFNESS = 27  # of the joint's spring, N m/rad or N/m
PARAM_REST = 28  # where the spring is at rest, rad or m
PARAM_CUBIC_STIFFNESS = 29  # N m/rad^3 or N/m^3
PARAM_DAMPING = 30  # N m s/rad or N s/m
PARAM_FRICTION = 31  # of sliding, N m or N
PARAM_BREAKAWAY = 32  # by how much the friction at rest exceeds that of sliding
PARAM_STRIBECK_RATE = 33  # one over the velocity at which half of that excess is gone
PARAM_FRICTION_VELOCITY = 34  # over which the friction changes its sign
PARAM_LOWER, PARAM_UPPER = 35, 36  # where the joint's stops begin
PARAM_LIMIT_STIFFNESS = 37
PARAM_LIMIT_DAMPING = 38  # relative increase of the stop's force per unit of velocity into it
PARAM_FRICTION_ASYMMETRY = 39  # added to the friction in positive direction, subtracted in negative, N m or N
PARAM_COLUMNS = 40
# more columns of a body in water
PARAM_ADDED_MASS = 40  # 21: about the joint origin, as `inertias.Inertia`: J (6), H (9), M (6)
PARAM_DISPLACED_MASS = 61  # mass of the displaced fluid, kg
PARAM_BUOYANCY_CENTER = 62  # 3: in body axes, m
PARAM_DRAG_ROTATION = 65  # 9: of the frame of the drag, in body axes
PARAM_DRAG_ORIGIN = 74  # 3: in body axes, m
PARAM_LINEAR_DAMPING = 77  # 36: row by row, linear before angular
PARAM_QUADRATIC_DAMPING = 113  # 36
PARAM_STRIP_FACTOR = 149  # force across per squared velocity and length of the strip, along z of the frame of the drag
PARAM_STRIP_LENGTH = 150
PARAM_TOTAL_INERTIA = 151  # 21: added mass and rigid body together, as above
PARAM_NET_MASS = 172  # mass less that of the displaced fluid, kg
PARAM_NET_MOMENT = 173  # 3: first moment of the mass less that of the displaced fluid, kg m
PARAM_COLUMNS_IN_WATER = 176
PARAM_GRAVITY = 0  # 3: of row n, m/s^2 in world axes

# --- rows of the topology: an integer array (TOPOLOGY_ROWS, n) ---
TOPOLOGY_PARENT = 0  # the parent's row; n for a root
TOPOLOGY_JOINT = 1  # REVOLUTE, PRISMATIC or SCREW
TOPOLOGY_CONTRIBUTION_ROW = 2  # row of the sum of the children's contributions; without children the last, always zero
IN_REGISTERS = -1  # instead of a row, if the only child of body i is body i + 1, which the sweep visits just before
TOPOLOGY_ACCUMULATES = 3  # 1 if a sibling, with a higher number, has stored its contribution in the parent's row before
TOPOLOGY_POSING = 4  # which entries of q the pose follows from, see below
TOPOLOGY_COORDINATE = 5  # the first of these entries of q
TOPOLOGY_FIRST = 6  # the first dof of a free or spherical joint, for each of its dofs; else the dof itself
TOPOLOGY_BODY = 7  # number of the mechanism's body that the dof carries, or -1 for a body without mass
TOPOLOGY_PASSIVE = 8  # which passive forces the joint has: the sum of those below
TOPOLOGY_DRAG = 9  # which drag the body has: the sum of those below
TOPOLOGY_ROWS = 10
AIR, IN_WATER = np.int64, np.int32  # type of the topology's integers: it tells compiled code whether there is water

REVOLUTE, PRISMATIC, SCREW = 0, 1, 2
# Posed by a coordinate of its own; or the first body of a free or spherical joint, posed by all the joint's
# coordinates; or carried by that body: such axes are fixed in the last body of the joint, not each in the next.
POSING_OWN, POSING_FREE, POSING_SPHERICAL, POSING_CARRIED = 0, 1, 2, 3
PASSIVE_SPRING, PASSIVE_DAMPER, PASSIVE_FRICTION = 1, 2, 4
PASSIVE_STRIBECK, PASSIVE_STOPS, PASSIVE_ASYMMETRIC = 8, 16, 32
DIAGONAL_DRAG, FULL_DRAG, STRIP_DRAG = 1, 2, 4

# --- working memory of a dof and its body: first row of each ---
ROW_R = 0  # 9: body axes to world axes
ROW_LEVER = 9  # 3: from the parent's joint origin to the body's, world axes, m
ROW_V = 12  # 6: velocity (angular, linear at the joint origin), world axes
ROW_U = 18  # 6: articulated inertia times the joint's axis
ROW_DINV = 24  # 1 / (S^T IA S)
ROW_FORCE = 25  # u: joint force less that of the bias force
ROW_A = 26  # 6: acceleration, gravity counted as an upward acceleration of the base
ROW_F = 32  # 6: force through the joint (RNEA, residual)
ROW_POSITION = 38  # 3: of the joint origin in the world, m
ROW_SCALE = 41  # 2: how large the rotational and the translational inertia are that a joint of several dofs meets
DOF_ROWS = 43
# Rows that the mass matrix and the Coriolis matrix share with the sweeps above: neither matrix uses the 23 rows from U
# to POSITION, of which these 21 are the first.
ROW_COMPOSITE = ROW_U  # 21: added mass of the body and all that it carries, J (6), H (9), M (6)

# --- contribution of a child to its parent's articulated body: first row of each ---
CONTRIBUTION_IA = 0  # 21: articulated inertia about the parent's joint origin: J (6), H (9), M (6)
CONTRIBUTION_PA = 21  # 6: articulated bias force
CONTRIBUTION_ROWS = 27


class FlatModel(NamedTuple):
    """A mechanism as the kernels see it. `water` is its parameters once more where it is in water, else None."""

    parent: np.ndarray
    joint: np.ndarray
    contribution_row: np.ndarray
    accumulates: np.ndarray
    posing: np.ndarray
    coordinate: np.ndarray
    first: np.ndarray
    body: np.ndarray
    passive: np.ndarray
    drag: np.ndarray
    parameters: np.ndarray
    water: object


class Work(NamedTuple):
    """The working memory of one block of lanes: dofs (n + 1, DOF_ROWS, lanes), and sums of children's contributions.

    The latter, (rows, CONTRIBUTION_ROWS, lanes), have a row only where contributions do not stay in registers.
    """

    dof: np.ndarray
    contributions: np.ndarray


class Loads(NamedTuple):
    """Forces on the mechanism: joint forces (n, lanes), wrenches (n, 6, lanes) or, if there are none, (0, 6, lanes).

    A wrench is force, then moment about the origin of the body, in world axes.
    `actions` holds the drives, wrenches and events over time, or is None.
    """

    tau: np.ndarray
    wrenches: np.ndarray
    actions: object


class SharedActions(NamedTuple):
    """What acts over time on the samples of a call: integers that all samples share, and the numbers of each sample.

    `signals`, `drives`, `wrenches` and `events` (rows, count) are described where they are used. `tables` is
    flat; `given` (samples or 1, m) are the numbers of all samples. `variation` holds the parameters of the controllers'
    model that differ between samples, or None.
    """

    signals: np.ndarray
    drives: np.ndarray
    wrenches: np.ndarray
    events: np.ndarray
    tables: np.ndarray
    given: np.ndarray
    variation: object


class BlockActions(NamedTuple):
    """What acts over time on the samples in one block of lanes.

    `sample` (lanes,) says which samples these are, `numbers` (m, lanes) are theirs. `failures` (lanes,) holds
    CALLS_ALLOWED, CALLS_STOPPED or the code of the user function that failed, `failed_calls` (1 + nq + nv, lanes) the
    arguments t, q, qd of that call. `settings` (SETTING_COUNT,), described below, is the block's own copy, because
    sweeps set SETTING_EXTERNAL_FORCES. `model` is the controllers' model of the mechanism. The rest is working memory.
    """

    shared: SharedActions
    settings: np.ndarray
    sample: np.ndarray
    numbers: np.ndarray
    time: np.ndarray
    values: np.ndarray
    pieces: np.ndarray
    joints: np.ndarray
    before: np.ndarray
    call: np.ndarray
    failures: np.ndarray
    failed_calls: np.ndarray
    model: FlatModel


# Entries of `BlockActions.settings`.
SETTING_COMPENSATES = 0  # 1 if some drive compensates gravity
SETTING_COMPUTES = 1  # 1 if some drive uses computed torque
SETTING_FUNCTION = 2  # address of the user's function, or 0
SETTING_FUNCTION_NUMBERS = 3  # the number that is the first of its parameters
SETTING_FUNCTION_COUNT = 4  # how many those are
SETTING_EXTERNAL_FORCES = 5  # 0 in the controllers' sweeps, which leave out wrenches and drag; else 1
SETTING_IMPLICIT = 6  # 1 if the step is implicit in springs and damping
SETTING_CURRENT = 7  # the first of three signals that are the velocity of the water, or -1
SETTING_HYBRID = 8  # 1 if hybrid dynamics is needed: some motion is prescribed, or the step is implicit
SETTING_COUNT = 9

# Entries of `BlockActions.failures`: whether user functions are called for a lane, or the function that failed.
CALLS_ALLOWED = 0
CALLS_STOPPED = -1  # the sample in this lane has ended
FAILED_USER_FORCES = 1
FAILED_FIRST_EVENT = 2  # of event e: FAILED_FIRST_EVENT + e

# Rows of `BlockActions.joints` (JOINT_ROWS, n, lanes).
JOINT_ACTUATOR_FORCE = 0
JOINT_PASSIVE_FORCE = 1
JOINT_QDD = 2  # acceleration: an input where JOINT_PRESCRIBED is 1, else a result
JOINT_PRESCRIBED = 3
JOINT_QD = 4  # qd as the sweep sees it
JOINT_STIFFNESS = 5  # - d force / d position
JOINT_DAMPING = 6  # - d force / d velocity
JOINT_IMPLICIT_INERTIA = 7  # h damping + h^2 stiffness, added to D in an implicit step of length h
JOINT_GRAVITY_FORCE = 8  # joint force that balances gravity
JOINT_COMPUTED_TORQUE = 9
JOINT_USER_FORCE = 10
JOINT_CONSTANT_FORCE = 11
JOINT_STEP_LENGTH = 12  # of an implicit step, in its first column
JOINT_ROWS = 13


class Block(NamedTuple):
    """What a sweep works on: the model, and the states of the samples in its lanes; `rows` are the driver's own."""

    model: FlatModel
    work: Work
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    loads: Loads
    rows: np.ndarray


class Variation(NamedTuple):
    """Parameters that each sample has for itself, in the order in which blocks of lanes take them.

    `entries` (m, 2): row and column of the parameters they replace; `values` (blocks, m, lanes).
    """

    entries: np.ndarray
    values: np.ndarray


@kernel
def replace_parameters(parameters, variation, sample, source, k):
    """Copy the parameters that vary to lane k of parameters (n + 1, PARAM_COLUMNS, lanes), if samples differ.

    `source` is the lane of `variation.values` that they come from: that of the sample, or all lanes of its block.
    """
    if parameters.ndim == 2:
        return
    entries, values = variation.entries, variation.values
    block = sample // values.shape[2]
    for entry in range(entries.shape[0]):
        parameters[entries[entry, 0], entries[entry, 1], k] = values[block, entry, source]


@kernel
def set_sample_parameters(block, parameters, variation, sample, source, k):
    """`replace_parameters` of a block, and the gravity that comes with them."""
    if parameters.ndim == 2:
        return
    replace_parameters(parameters, variation, sample, source, k)
    apply_gravity(block.model, block.work, k)


@kernel
def flat_model(topology, parameters, water):
    return FlatModel(
        topology[TOPOLOGY_PARENT],
        topology[TOPOLOGY_JOINT],
        topology[TOPOLOGY_CONTRIBUTION_ROW],
        topology[TOPOLOGY_ACCUMULATES],
        topology[TOPOLOGY_POSING],
        topology[TOPOLOGY_COORDINATE],
        topology[TOPOLOGY_FIRST],
        topology[TOPOLOGY_BODY],
        topology[TOPOLOGY_PASSIVE],
        topology[TOPOLOGY_DRAG],
        parameters,
        water,
    )


@kernel
def number_of(samples, sample, j):
    """One number of a batch (samples, m), or of a single sample (m,)."""
    if samples.ndim == 1:
        return samples[j]
    return samples[sample, j]


@kernel
def parameter(parameters, i, column, k):
    """One number of body i: shared by all samples, or each sample's own."""
    if parameters.ndim == 2:
        return parameters[i, column]
    return parameters[i, column, k]


@kernel
def parameter3(parameters, i, column, k):
    return (
        parameter(parameters, i, column, k),
        parameter(parameters, i, column + 1, k),
        parameter(parameters, i, column + 2, k),
    )


@kernel
def parameter6(parameters, i, column, k):
    return (*parameter3(parameters, i, column, k), *parameter3(parameters, i, column + 3, k))


@kernel
def parameter9(parameters, i, column, k):
    return (*parameter6(parameters, i, column, k), *parameter3(parameters, i, column + 6, k))


@kernel
def reset_base(model, work, k):
    """Put the base at rest at the world's origin, and nothing where childless bodies look for their children's sum."""
    n, dof, childless = model.parent.shape[0], work.dof, work.contributions.shape[0] - 1
    for row in range(CONTRIBUTION_ROWS):
        work.contributions[childless, row, k] = constant_like(dof, 0.0)
    for row in range(9):
        dof[n, ROW_R + row, k] = constant_like(dof, 1.0 if row % 4 == 0 else 0.0)
    for row in range(6):
        dof[n, ROW_V + row, k] = constant_like(dof, 0.0)
    for axis in range(3):
        dof[n, ROW_POSITION + axis, k] = constant_like(dof, 0.0)
        dof[n, ROW_A + axis, k] = constant_like(dof, 0.0)
    apply_gravity(model, work, k)


@kernel
def remove_gravity(model, work, k):
    """Let the base rest in a world without gravity."""
    for row in range(6):
        work.dof[model.parent.shape[0], ROW_A + row, k] = constant_like(work.dof, 0.0)


@kernel
def apply_gravity(model, work, k):
    """Gravity is an acceleration of the base upwards (Featherstone 2008, 5.3)."""
    n = model.parent.shape[0]
    for axis in range(3):
        work.dof[n, ROW_A + 3 + axis, k] = -parameter(model.parameters, n, PARAM_GRAVITY + axis, k)
