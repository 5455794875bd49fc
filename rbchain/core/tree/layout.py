"""The arrays of the kernels: a model's topology and parameters, working memory, forces, and the rows of each.

Entry i of these arrays is degree of freedom (dof) i, and n is the number of dofs. A joint with several dofs is a
sequence of joints with one dof each, between bodies without mass; the last of them carries the body of the mechanism.
In the kernels, "body i" is the body that dof i moves, with or without mass, and "joint i" is the joint of dof i.

Parameters: an array `(n + 1, PARAMETERS)` that all chains share, or `(n + 1, PARAMETERS, lanes)` if chains differ.
The axes of body i are turned so that the joint's axis is z. Row n is the base, which holds gravity. Working memory:
an array `(n + 1, rows, lanes)`; its row n is the base again, so that a root has a parent.
"""

from typing import NamedTuple

import numpy as np

from ..simd.jit import kernel
from ..simd.lanes import like

# --- parameters of a dof and its body: first column of each ---
PLACEMENT_ROTATION = 0  # 9: joint frame to parent's frame at q = 0
PLACEMENT_TRANSLATION = 9  # 3: joint origin in the parent's frame, m
MASS = 12  # kg
CG = 13  # 3: centre of gravity in body axes, m
INERTIA = 16  # 6: about the centre of gravity, in body axes, kg m^2
ADVANCE = 22  # travel along the axis per unit of q: 0 revolute, 1 prismatic, the pitch (m/rad) of a screw
ARMATURE = 23  # inertia of the rotor, reflected to the joint, kg m^2 or kg
AXIS = 24  # 3: the joint's axis in body axes, from which the flattening has turned to z
STIFFNESS = 27  # of the joint's spring, N m/rad or N/m
REST = 28  # where the spring is at rest, rad or m
CUBIC_STIFFNESS = 29  # N m/rad^3 or N/m^3
DAMPING = 30  # N m s/rad or N s/m
FRICTION = 31  # of sliding, N m or N
BREAKAWAY = 32  # by how much the friction at rest exceeds that of sliding
STRIBECK_RATE = 33  # one over the velocity at which half of that excess is gone
FRICTION_VELOCITY = 34  # over which the friction changes its sign
LOWER, UPPER = 35, 36  # where the joint's stops begin
LIMIT_STIFFNESS = 37
LIMIT_DAMPING = 38  # relative increase of the stop's force per unit of velocity into it
FRICTION_ASYMMETRY = 39  # added to the friction in positive direction, subtracted in negative, N m or N
PARAMETERS = 40
# more columns of a body in water
ADDED_MASS = 40  # 21: about the joint origin, as `inertias.Inertia`: J (6), H (9), M (6)
DISPLACED = 61  # mass of the displaced fluid, kg
BUOYANCY_CENTER = 62  # 3: in body axes, m
DRAG_ROTATION = 65  # 9: of the frame of the drag, in body axes
DRAG_ORIGIN = 74  # 3: in body axes, m
LINEAR_DAMPING = 77  # 36: row by row, linear before angular
QUADRATIC_DAMPING = 113  # 36
STRIP_FACTOR = 149  # force across per squared velocity and length of the strip, along z of the frame of the drag
STRIP_LENGTH = 150
TOTAL_INERTIA = 151  # 21: added mass and rigid body together, as above
NET_MASS = 172  # mass less that of the displaced fluid, kg
NET_MOMENT = 173  # 3: first moment of the mass less that of the displaced fluid, kg m
WET_PARAMETERS = 176
GRAVITY = 0  # 3: of row n, m/s^2 in world axes

# --- rows of the topology: an integer array (TOPOLOGY_ROWS, n) ---
PARENT = 0  # the parent's row; n for a root
JOINT = 1  # REVOLUTE, PRISMATIC or SCREW
GATHERING = 2  # row of the sum of the children's contributions; without children the last, always zero
IN_REGISTERS = -1  # instead of a row, if the only child of body i is body i + 1, which the sweep visits just before
JOINS = 3  # 1 if a sibling, with a higher number, has stored its contribution in the parent's row before
POSING = 4  # which entries of q the pose follows from, see below
COORDINATE = 5  # the first of these entries of q
FIRST = 6  # the first dof of a free or spherical joint, for each of its dofs; else the dof itself
BODY = 7  # number of the mechanism's body that the dof carries, or -1 for a body without mass
PASSIVE = 8  # which passive forces the joint has: the sum of those below
DRAG = 9  # which drag the body has: the sum of those below
TOPOLOGY_ROWS = 10
AIR, IN_WATER = np.int64, np.int32  # type of the topology's integers: it tells compiled code whether there is water

REVOLUTE, PRISMATIC, SCREW = 0, 1, 2
# Posed by a coordinate of its own; or the first body of a free or spherical joint, posed by all the joint's
# coordinates; or carried by that body: such axes are fixed in the last body of the joint, not each in the next.
OWN, FREE, SPHERICAL, CARRIED = 0, 1, 2, 3
SPRING, DAMPER, SLIDING = 1, 2, 4
STRIBECK, STOPS, ASYMMETRIC = 8, 16, 32
DIAGONAL_DRAG, FULL_DRAG, STRIP_DRAG = 1, 2, 4

# --- working memory of a dof and its body: first row of each ---
R = 0  # 9: body axes to world axes
LEVER = 9  # 3: from the parent's joint origin to the body's, world axes, m
V = 12  # 6: velocity (angular, linear at the joint origin), world axes
U = 18  # 6: articulated inertia times the joint's axis
DINV = 24  # 1 / (S^T IA S)
FORCE = 25  # u: joint force less that of the bias force
A = 26  # 6: acceleration, gravity counted as an upward acceleration of the base
F = 32  # 6: force through the joint (RNEA, residual)
POSITION = 38  # 3: of the joint origin in the world, m
SCALE = 41  # 2: how large the rotational and the translational inertia are that a joint of several dofs meets
BODY_ROWS = 43
# Rows that the mass matrix and the Coriolis matrix share with the sweeps above: neither matrix uses U, DINV, FORCE, A,
# F or POSITION, which are the 21 rows from U on.
COMPOSITE = U  # 21: added mass of the body and all that it carries, J (6), H (9), M (6)

# --- contribution of a child to its parent's articulated body: first row of each ---
IA = 0  # 21: articulated inertia about the parent's joint origin: J (6), H (9), M (6)
PA = 21  # 6: articulated bias force
GATHERED_ROWS = 27


class FlatModel(NamedTuple):
    """A mechanism as the kernels see it. `water` is its parameters once more where it is in water, else None."""

    parent: np.ndarray
    joint: np.ndarray
    gathering: np.ndarray
    joins: np.ndarray
    posing: np.ndarray
    coordinate: np.ndarray
    first: np.ndarray
    body: np.ndarray
    passive: np.ndarray
    drag: np.ndarray
    parameters: np.ndarray
    water: object


class Work(NamedTuple):
    """The working memory of one block of lanes: dofs (n + 1, BODY_ROWS, lanes), and sums of children's contributions.

    The latter, (rows, GATHERED_ROWS, lanes), have a row only where contributions do not stay in registers.
    """

    body: np.ndarray
    gathered: np.ndarray


class Loads(NamedTuple):
    """Forces on the mechanism: joint forces (n, lanes), wrenches (n, 6, lanes) or, if there are none, (0, 6, lanes).

    A wrench is force, then moment about the origin of the body, in world axes.
    `acting` holds the drives, wrenches and events over time, or is None.
    """

    tau: np.ndarray
    wrenches: np.ndarray
    acting: object


class SharedActions(NamedTuple):
    """What acts over time on the samples of a call: integers that all samples share, and the numbers of each sample.

    `signals`, `drives`, `wrenches` and `events` (rows, count) are described where they are used; `settings` (SETTINGS,)
    below. `tables` is flat; `given` (samples or 1, m) are the numbers of all samples. `variation` holds the parameters
    of the controllers' model that differ between samples, or None.
    """

    signals: np.ndarray
    drives: np.ndarray
    wrenches: np.ndarray
    events: np.ndarray
    settings: np.ndarray
    tables: np.ndarray
    given: np.ndarray
    variation: object


class Acting(NamedTuple):
    """What acts over time on the samples in one block of lanes.

    `chain` (lanes,) says which samples these are, `numbers` (m, lanes) are theirs. `failures` (lanes,) holds CALLABLE,
    RETIRED or the code of the user function that failed, `failed_calls` (1 + nq + nv, lanes) the arguments t, q, qd of
    that call. `external` (1,) is 1 while wrenches and drag act on bodies, 0 in the sweeps of controllers. `model` is
    the controllers' model of the mechanism. The rest is working memory.
    """

    shared: SharedActions
    chain: np.ndarray
    numbers: np.ndarray
    time: np.ndarray
    values: np.ndarray
    pieces: np.ndarray
    joints: np.ndarray
    before: np.ndarray
    call: np.ndarray
    failures: np.ndarray
    failed_calls: np.ndarray
    external: np.ndarray
    model: FlatModel


# Entries of `SharedActions.settings`.
COMPENSATES = 0  # 1 if some drive compensates gravity
COMPUTES = 1  # 1 if some drive uses computed torque
FUNCTION = 2  # address of the user's function, or 0
FUNCTION_NUMBERS = 3  # the number that is the first of its parameters
FUNCTION_COUNT = 4  # how many those are
IMPLICIT = 5  # 1 if the step is implicit in springs and damping
CURRENT = 6  # the first of three signals that are the velocity of the water, or -1
FORCED = 7  # 1 if hybrid dynamics is needed: some motion is prescribed, or the step is implicit
SETTINGS = 8

# Entries of `Acting.failures`: whether user functions are called for a lane, or the function that failed.
CALLABLE = 0
RETIRED = -1  # the sample in this lane has ended
USER_FORCES = 1
FIRST_EVENT = 2  # of event e: FIRST_EVENT + e

# Rows of `Acting.joints` (JOINT_ROWS, n, lanes).
MOTOR = 0
OWN_FORCE = 1
GIVEN_QDD = 2  # acceleration: an input where PRESCRIBED is 1, else a result
PRESCRIBED = 3
SPEED = 4  # qd as the sweep sees it
HARDNESS = 5  # - d force / d position
SLOPE = 6  # - d force / d velocity
YIELDING = 7  # h damping + h^2 stiffness, added to D in an implicit step of length h
WEIGHT = 8  # joint force that balances gravity
COMPUTED_FORCE = 9
CUSTOM = 10
CONSTANT_FORCE = 11
STEP_LENGTH = 12  # of an implicit step, in its first column
JOINT_ROWS = 13


class Block(NamedTuple):
    """What a sweep works on: the model, and the states of the chains in its lanes; `rows` are the driver's own."""

    model: FlatModel
    work: Work
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    loads: Loads
    rows: np.ndarray


class Variation(NamedTuple):
    """Parameters that each chain has for itself, in the order in which blocks of lanes take them.

    `entries` (m, 2): row and column of the parameters they replace; `values` (blocks, m, lanes).
    """

    entries: np.ndarray
    values: np.ndarray


@kernel
def replace_parameters(parameters, variation, chain, source, k):
    """Copy the parameters that vary to lane k of parameters (n + 1, PARAMETERS, lanes), if chains differ.

    `source` is the lane of `variation.values` that they come from: that of the chain, or all lanes of its block.
    """
    if parameters.ndim == 2:
        return
    entries, values = variation.entries, variation.values
    block = chain // values.shape[2]
    for entry in range(entries.shape[0]):
        parameters[entries[entry, 0], entries[entry, 1], k] = values[block, entry, source]


@kernel
def take_parameters(block, parameters, variation, chain, source, k):
    """`replace_parameters` of a block, and the gravity that comes with them."""
    if parameters.ndim == 2:
        return
    replace_parameters(parameters, variation, chain, source, k)
    apply_gravity(block.model, block.work, k)


@kernel
def flat_model(topology, parameters, water):
    return FlatModel(
        topology[PARENT],
        topology[JOINT],
        topology[GATHERING],
        topology[JOINS],
        topology[POSING],
        topology[COORDINATE],
        topology[FIRST],
        topology[BODY],
        topology[PASSIVE],
        topology[DRAG],
        parameters,
        water,
    )


@kernel
def number_of(chains, chain, j):
    """One number of a batch (chains, m), or of a single chain (m,)."""
    if chains.ndim == 1:
        return chains[j]
    return chains[chain, j]


@kernel
def parameter(parameters, i, column, k):
    """One number of body i: shared by all chains, or each chain's own."""
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
def settle_base(model, work, k):
    """Put the base at rest at the world's origin, and nothing where childless bodies look for their children's sum."""
    n, body, childless = model.parent.shape[0], work.body, work.gathered.shape[0] - 1
    for row in range(GATHERED_ROWS):
        work.gathered[childless, row, k] = like(body, 0.0)
    for row in range(9):
        body[n, R + row, k] = like(body, 1.0 if row % 4 == 0 else 0.0)
    for row in range(6):
        body[n, V + row, k] = like(body, 0.0)
    for axis in range(3):
        body[n, POSITION + axis, k] = like(body, 0.0)
        body[n, A + axis, k] = like(body, 0.0)
    apply_gravity(model, work, k)


@kernel
def take_gravity_off(model, work, k):
    """Let the base rest in a world without gravity."""
    for row in range(6):
        work.body[model.parent.shape[0], A + row, k] = like(work.body, 0.0)


@kernel
def apply_gravity(model, work, k):
    """Gravity is an acceleration of the base upwards (Featherstone 2008, 5.3)."""
    n = model.parent.shape[0]
    for axis in range(3):
        work.body[n, A + 3 + axis, k] = -parameter(model.parameters, n, GRAVITY + axis, k)
