"""Arrays that pass a state from kernel to kernel: topology, parameters, working memory, forces, and their rows.

Entry i of these arrays is degree of freedom (dof) i; n is the number of dofs. The docstrings of all kernels use these
terms:

* Frame i moves with dof i. Its origin is the joint origin, and its z axis is the axis of dof i.
* The body of dof i is the link whose joint ends with dof i. A joint with several dofs is a sequence of joints with one
  dof each. Only its last dof has a body; the other dofs move a frame without mass.
* The parent of dof i is the previous dof of the same joint or, for the first dof of a joint, the last dof of the parent
  link's joint. Row n is the base: the parent of all roots.
* The subtree of dof i is dof i with all its descendants. Its ancestors are on the path from its parent to the base.
* Body axes are the axes of the body's frame in `Model`. They differ from the axes of frame i by a constant rotation,
  which turns the axis of dof i to z (`model.joint.axes_along`).

Parameters are an array `(n + 1, PARAM_COLUMNS)` that all samples share, or `(n + 1, PARAM_COLUMNS, lanes)` if samples
differ; row n holds gravity. The working memory is an array `(n + 1, DOF_ROWS, lanes)`.

Each constant has the prefix of its array: ROW_ of `Work.dof`, PARAM_ of the parameters, TOPOLOGY_ of the topology.
Docstrings omit the prefix of rows ("Reads R").
"""

from typing import NamedTuple

import numpy as np

from ...compiling.jit import is_given, kernel
from ..lanes.lanes import constant_like
from .sampler_layout import Samplers

# --- parameters of a dof and of its body: first column, and the number of columns if there are several ---
PARAM_PLACEMENT_ROTATION = 0  # 9: rotation from frame i at q = 0 to the parent's frame
PARAM_PLACEMENT_TRANSLATION = 9  # 3: joint origin in the parent's frame, m
PARAM_MASS = 12  # kg
PARAM_CG = 13  # 3: centre of mass in frame i, m
PARAM_INERTIA = 16  # 6: about the centre of mass, in the axes of frame i, kg m^2
PARAM_ADVANCE = 22  # travel along the axis per unit of q: revolute 0, prismatic 1, screw its pitch (m/rad)
PARAM_ARMATURE = 23  # reflected rotor inertia, kg m^2 or kg
PARAM_AXIS = 24  # 3: the joint's axis in body axes, a unit vector
PARAM_STIFFNESS = 27  # of the spring, N m/rad or N/m
PARAM_REST = 28  # rest position of the spring, rad or m
PARAM_CUBIC_STIFFNESS = 29  # N m/rad^3 or N/m^3
PARAM_DAMPING = 30  # N m s/rad or N s/m
PARAM_FRICTION = 31  # sliding friction, N m or N
PARAM_BREAKAWAY = 32  # static friction minus sliding friction, N m or N
PARAM_STRIBECK_RATE = 33  # reciprocal of the velocity at which half of PARAM_BREAKAWAY remains, s/rad or s/m
PARAM_FRICTION_VELOCITY = 34  # width of the regularised sign function, rad/s or m/s
PARAM_LOWER, PARAM_UPPER = 35, 36  # positions of the stops, rad or m
PARAM_LIMIT_STIFFNESS = 37  # of the stops, N m/rad or N/m
PARAM_LIMIT_DAMPING = 38  # relative increase of the stop's force per unit of velocity into it, s/rad or s/m
PARAM_FRICTION_ASYMMETRY = 39  # added to the friction at positive velocity, subtracted at negative, N m or N
PARAM_COLUMNS = 40
# further columns of models in water
PARAM_ADDED_MASS = 40  # 21: about the joint origin, in the axes of frame i: J (6), H (9), M (6) of an `Inertia`
PARAM_DISPLACED_MASS = 61  # mass of the displaced fluid, kg
PARAM_BUOYANCY_CENTER = 62  # 3: in frame i, m
PARAM_DRAG_ROTATION = 65  # 9: rotation from the drag frame to frame i
PARAM_DRAG_ORIGIN = 74  # 3: origin of the drag frame, in frame i, m
PARAM_LINEAR_DAMPING = 77  # 36: D1 in the drag frame, row by row, linear before angular
PARAM_QUADRATIC_DAMPING = 113  # 36: D2, as D1
PARAM_STRIP_FACTOR = 149  # drag per squared cross-flow velocity and length of the cylinder, kg/m^2
PARAM_STRIP_LENGTH = 150  # length of the cylinder along z of the drag frame, m
PARAM_TOTAL_INERTIA = 151  # 21: added mass and inertia of the rigid body, as PARAM_ADDED_MASS
PARAM_NET_MASS = 172  # mass minus displaced mass, kg
PARAM_NET_MOMENT = 173  # 3: first moment of the mass minus first moment of the displaced mass, in frame i, kg m
PARAM_COLUMNS_IN_WATER = 176
PARAM_GRAVITY = 0  # 3: in row n, world axes, m/s^2

# --- rows of the topology: an integer array (TOPOLOGY_ROWS, n) ---
TOPOLOGY_PARENT = 0  # parent of the dof; n for a root
TOPOLOGY_JOINT = 1  # REVOLUTE, PRISMATIC or SCREW
# Row of `Work.contributions` with the sum of the children's contributions. A dof without children has the last row,
# which is always zero. If the only child of dof i is dof i + 1, the value is IN_REGISTERS: the inward sweep visits the
# child immediately before dof i, and passes its contribution in registers.
TOPOLOGY_CONTRIBUTION_ROW = 2
IN_REGISTERS = -1
TOPOLOGY_ACCUMULATES = 3  # 1 if the inward sweep adds the contribution to the contribution of an earlier sibling
TOPOLOGY_POSING = 4  # one of POSING_OWN, ...: the coordinates that determine the pose of frame i
TOPOLOGY_COORDINATE = 5  # the first of these entries of q
TOPOLOGY_FIRST = 6  # first dof of the joint for the dofs of a free or spherical joint; else the dof itself
TOPOLOGY_BODY = 7  # index of the dof's body in the mechanism; -1 if the dof has none
TOPOLOGY_PASSIVE = 8  # sum of the dof's codes PASSIVE_SPRING, ...
TOPOLOGY_DRAG = 9  # sum of the body's codes DIAGONAL_DRAG, ...
TOPOLOGY_ROWS = 10
# The integer type of the topology says whether the model is in water, so that code can choose when it is compiled.
IN_AIR, IN_WATER = np.int64, np.int32

REVOLUTE, PRISMATIC, SCREW = 0, 1, 2
# The pose of frame i follows from one coordinate (OWN) or, for the first dof of a free or spherical joint, from all
# coordinates of the joint (FREE, SPHERICAL). The other dofs of these joints are CARRIED by the first one: all frames of
# the joint are fixed in its body and differ only in the order of their axes.
POSING_OWN, POSING_FREE, POSING_SPHERICAL, POSING_CARRIED = 0, 1, 2, 3
PASSIVE_SPRING, PASSIVE_DAMPER, PASSIVE_FRICTION = 1, 2, 4
PASSIVE_STRIBECK, PASSIVE_STOPS, PASSIVE_ASYMMETRIC = 8, 16, 32
DIAGONAL_DRAG, FULL_DRAG, STRIP_DRAG = 1, 2, 4

# --- working memory of a dof: first row of each ---
ROW_R = 0  # 9: rotation from frame i to world axes
ROW_LEVER = 9  # 3: from the parent's joint origin to the joint origin of dof i, world axes, m
ROW_V = 12  # 6: velocity of frame i (angular, linear at the joint origin), world axes
ROW_U = 18  # 6: U = IA S
ROW_DINV = 24  # 1 / D, D = S^T IA S + armature
ROW_FORCE = 25  # u = tau - S^T pA
ROW_A = 26  # 6: acceleration of frame i; gravity counts as an upward acceleration of the base
ROW_F = 32  # 6: force transmitted across the joint (RNEA, residual)
ROW_POSITION = 38  # 3: of the joint origin in the world, m
ROW_SCALE = 41  # 2: largest rotational and translational inertia at later dofs of the joint: scales of round-off in D
DOF_ROWS = 43
# The sweeps of the mass matrix and of the Coriolis matrix do not use the 23 rows from U to POSITION. In water, they
# keep composite added masses in the first 21 of these rows.
ROW_COMPOSITE = ROW_U  # 21: added mass of the subtree: J (6), H (9), M (6)

# --- contribution of a child to its parent: first row of each ---
CONTRIBUTION_IA = 0  # 21: articulated inertia about the parent's joint origin: J (6), H (9), M (6)
CONTRIBUTION_PA = 21  # 6: articulated bias force
CONTRIBUTION_ROWS = 27


class FlatModel(NamedTuple):
    """Topology and parameters of a mechanism: one array per row of the topology, as described above.

    `water` is the array `parameters` if the mechanism is in water, else None. Compiled code chooses by its type.
    """

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
    """Working memory of one block: `dof` (n + 1, DOF_ROWS, lanes) and `contributions` (rows, CONTRIBUTION_ROWS, lanes).

    `contributions` has a row for each sum of children's contributions that does not stay in registers, and a last row
    of zeros.
    """

    dof: np.ndarray
    contributions: np.ndarray


class Loads(NamedTuple):
    """Forces on the mechanism: joint forces `tau` (n, lanes), `wrenches` (n, 6, lanes), `actions` BlockActions or None.

    A wrench is a force, then a moment about the joint origin, in world axes, at the dof of its body. Without wrenches
    the array is (0, 6, lanes). `actions` holds the drives, wrenches and events over time.
    """

    tau: np.ndarray
    wrenches: np.ndarray
    actions: object


class SharedActions(NamedTuple):
    """Drives, wrenches and events over time of all samples in a call: shared integers, and numbers of each sample.

    `signals`, `drives`, `wrenches`, `springs`, `bushings` and `events` (rows, count) hold integers;
    `core.forces.signals`, `core.forces.wrenches`, `core.forces.springs`, `core.forces.bushings`,
    `core.control.drives` and `core.motion.events` describe their rows. `springs` and `bushings` are None if
    there are no forces between bodies, so that compiled code contains nothing for them. `contacts` holds the elements
    of `core.contacts.contact_layout`, or is None without dry friction, stops and contacts. `samplers` is a
    `core.tree.sampler_layout.Samplers`, or None without sampled controllers. `actuators` (rows, n) holds the integers
    of `core.control.actuators`, or is None without actuators. `tables` (m,) holds the tables of signals, `knots`
    (samples or 1, m) the classes of their knots, `numbers` (samples or 1, m) all other numbers. `variation` is the
    Variation of the controllers' model, or None.
    """

    signals: np.ndarray
    drives: np.ndarray
    wrenches: np.ndarray
    springs: object
    bushings: object
    contacts: object
    samplers: Samplers | None
    actuators: object
    events: np.ndarray
    tables: np.ndarray
    knots: np.ndarray
    numbers: np.ndarray
    variation: object


class BlockActions(NamedTuple):
    """Drives, wrenches and events over time of the samples in one block.

    * `settings` (SETTING_COUNT,) is described below. Each block has a copy, because sweeps set SETTING_EXTERNAL_FORCES.
    * `sample` (lanes,) is the index of the sample in each lane, `numbers` (m, lanes) its row of
      `SharedActions.numbers`.
    * `time` (1, lanes) is the time of each lane, s.
    * `values` (signals, 3, lanes) and `pieces` are described in `core.forces.signals`, `joints` below.
    * `windows` (WINDOW_ROWS, signals, lanes) and `differences` (nodes, lanes) are described in
      `core.forces.signals` and `core.forces.signal_breaks`.
    * `event_values` (rows, lanes) are the values of the event functions in a step: `core.motion.event_values`.
    * `call_arguments` is memory for the arguments of a user function.
    * `failures` (lanes,) is CALLS_ALLOWED, CALLS_STOPPED or the code of the user function that failed.
    * `failed_calls` (1 + nq + nv, lanes) are the arguments t, q, qd of the call that failed.
    * `model` is the controllers' model of the mechanism.
    * `between_bodies` (n + 1, 6, lanes) are the wrenches of all forces between bodies, or None without such forces.
    * `contacts` is a `contact_layout.Contacts`, or None without dry friction, stops and contacts. `modes` is an
      `contacts.contact_modes.ContactModes`, or None if the method does not compute their forces from modes.
    * `sensitivities` is a `core.linear.sensitivities.Sensitivities`, or None.
    * `sampled` is a `sampler_layout.SamplerMemory`, or None without sampled controllers.
    """

    shared: SharedActions
    settings: np.ndarray
    sample: np.ndarray
    numbers: np.ndarray
    time: np.ndarray
    values: np.ndarray
    pieces: np.ndarray
    windows: np.ndarray
    differences: np.ndarray
    joints: np.ndarray
    event_values: np.ndarray
    call_arguments: np.ndarray
    failures: np.ndarray
    failed_calls: np.ndarray
    model: FlatModel
    between_bodies: object
    contacts: object
    modes: object
    sensitivities: object
    sampled: object


# Entries of `BlockActions.settings`.
SETTING_COMPENSATES = 0  # 1 if some drive compensates gravity
SETTING_COMPUTES = 1  # 1 if some drive uses computed torque
SETTING_FUNCTION = 2  # address of the user's function, or 0
SETTING_FUNCTION_NUMBERS = 3  # index of its first parameter in `numbers`
SETTING_FUNCTION_COUNT = 4  # number of its parameters
SETTING_EXTERNAL_FORCES = 5  # 0 in the controllers' sweeps, which omit wrenches and drag; else 1
SETTING_IMPLICIT = 6  # 1 if the step is implicit in springs and damping
SETTING_CURRENT = 7  # first of the three signals with the velocity of the water, or -1 without a current
SETTING_HYBRID = 8  # 1 if hybrid dynamics is required: a motion is prescribed, or the step is implicit
SETTING_DERIVATIVES = 9  # address of the user's function for the derivatives of its forces, or 0
SETTING_CONTROLLER_MODEL = 10  # 1 if some drive, also a sampled one, computes forces with the controllers' model
SETTING_SAMPLED_GROUP = 11  # 1 + the group of sampled controllers that computes its outputs, or 0
SETTING_COUNT = 12

# Entries of `BlockActions.failures`.
CALLS_ALLOWED = 0
CALLS_STOPPED = -1  # user functions are not called for this lane, because its sample has ended
FAILED_USER_FORCES = 1
FAILED_USER_DERIVATIVES = 2
FAILED_FIRST_EVENT = 3  # event e has the code FAILED_FIRST_EVENT + e

# Rows of `BlockActions.joints` (JOINT_ROWS, n, lanes), one column for each dof.
JOINT_ACTUATOR_FORCE = 0
JOINT_PASSIVE_FORCE = 1
JOINT_QDD = 2  # acceleration: an input if JOINT_PRESCRIBED is 1, else a result
JOINT_PRESCRIBED = 3
JOINT_QD = 4  # velocity that the current sweep uses
JOINT_STIFFNESS = 5  # - d force / d position
JOINT_DAMPING = 6  # - d force / d velocity
JOINT_IMPLICIT_INERTIA = 7  # h damping + h^2 stiffness, added to D in an implicit step of length h
JOINT_GRAVITY_FORCE = 8  # joint force that balances gravity
JOINT_COMPUTED_TORQUE = 9
JOINT_USER_FORCE = 10
JOINT_CONSTANT_FORCE = 11
JOINT_STEP_LENGTH = 12  # h of an implicit step, in column 0 only
JOINT_MODEL_ACCELERATION = 13  # acceleration of the controllers' model under computed torque
JOINT_ROWS = 14


class Block(NamedTuple):
    """Model, working memory, states and forces of the samples in one block. `rows` (m, lanes) belongs to the driver.

    `constraints` is a `constraint_layout.Constraints`, or None for an open chain.
    """

    model: FlatModel
    work: Work
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    loads: Loads
    rows: np.ndarray
    constraints: object


class Variation(NamedTuple):
    """Parameters that differ between samples.

    `entries` (m, 2) holds the row and the column of the parameter that each one replaces, `values` (blocks, m, lanes)
    the numbers of sample `block * lanes + lane`.
    """

    entries: np.ndarray
    values: np.ndarray


@kernel
def replace_parameters(parameters, variation, sample, source, k):
    """Copy the parameters of a sample to lane k of `parameters` (n + 1, PARAM_COLUMNS, lanes), if samples differ.

    `source` is the lane of `variation.values` to copy from: the lane of `sample`, or all lanes of its block.
    """
    if parameters.ndim == 2:
        return
    entries, values = variation.entries, variation.values
    block = sample // values.shape[2]
    for entry in range(entries.shape[0]):
        parameters[entries[entry, 0], entries[entry, 1], k] = values[block, entry, source]


@kernel
def set_sample_parameters(block, parameters, variation, sample, source, k):
    """Copy the parameters of a sample to lane k of a block, and set its gravity."""
    if parameters.ndim == 2:
        return
    replace_parameters(parameters, variation, sample, source, k)
    apply_gravity(block.model, block.work, k)


@kernel
def flat_model(topology, parameters, water):
    """Combine the rows of the topology (TOPOLOGY_ROWS, n) and the parameters into a FlatModel."""
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


def has_actions(block, *_):
    """Whether drives, forces or events act on the samples of a Block, or of its Numba type."""
    return is_given(block, "loads", "actions")


@kernel
def sample_entry(samples, sample, j):
    """Return entry j of one sample of a batch (samples, m), or of a single sample (m,)."""
    if samples.ndim == 1:
        return samples[j]
    return samples[sample, j]


@kernel
def parameter(parameters, i, column, k):
    """Return one parameter of dof i: a number that all samples share, or the number of the sample in lane k."""
    if parameters.ndim == 2:
        return parameters[i, column]
    return parameters[i, column, k]


@kernel
def parameter3(parameters, i, column, k):
    """Return 3 parameters of dof i from `column` on."""
    return (
        parameter(parameters, i, column, k),
        parameter(parameters, i, column + 1, k),
        parameter(parameters, i, column + 2, k),
    )


@kernel
def parameter6(parameters, i, column, k):
    """Return 6 parameters of dof i from `column` on."""
    return (*parameter3(parameters, i, column, k), *parameter3(parameters, i, column + 3, k))


@kernel
def parameter9(parameters, i, column, k):
    """Return 9 parameters of dof i from `column` on."""
    return (*parameter6(parameters, i, column, k), *parameter3(parameters, i, column + 6, k))


@kernel
def reset_base(model, work, k):
    """Set the base to rest at the origin of the world, and the contribution for dofs without children to zero.

    Writes R, V, POSITION and A of row n, and the last row of `work.contributions`.
    """
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
    """Set the acceleration of the base to zero, for sweeps without gravity."""
    for row in range(6):
        work.dof[model.parent.shape[0], ROW_A + row, k] = constant_like(work.dof, 0.0)


@kernel
def apply_gravity(model, work, k):
    """Set the acceleration of the base to -gravity, in world axes (Featherstone 2008, section 5.3)."""
    n = model.parent.shape[0]
    for axis in range(3):
        work.dof[n, ROW_A + 3 + axis, k] = -parameter(model.parameters, n, PARAM_GRAVITY + axis, k)
