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

Parameters are an array `(n + 1 + constraints, columns)` that all samples share, or one with a last axis `lanes` if
samples differ. Row n holds gravity, and a row of each constraint follows. `columns` is param.COLUMNS, or
param.COLUMNS_IN_WATER in water. The working memory is an array `(n + 1, frame.ROWS, lanes)`.

Arguments of these names are the same in all kernels, unless a docstring states otherwise:

* `k` is the index of all lanes, or of one lane; `lane` is the index of one lane. `i` is a dof.
* `model` is a FlatModel, `work` a Work, `loads` a `Loads`, `actions` a BlockActions, and `block` a Block. `parameters`
  is the array of parameters above.
* `q` (nq, lanes) holds positions: rad, m, and quaternions x, y, z, w. `qd` and `qdd` (n, lanes) hold velocities, rad/s
  or m/s, and accelerations, rad/s^2 or m/s^2. Joint forces (n, lanes) are in N m or N.
* `y` (rows, lanes) is a state: q, qd, the integrals of control errors, rad s or m s, and sensitivities. `rate` (rows,
  lanes) is its derivative with respect to the time. `t` is a time, and `h` the length of a step, s.
* A number in parentheses alone, such as R (9), is the size of a tuple: vectors have 3 numbers, symmetric matrices 6
  (xx, xy, xz, yy, yz, zz) and matrices 9, row by row. Each entry is a SIMD value, or one value for a single lane.
* A `Motion`, a `Force`, an `Inertia` or a `Rigid` of dof i is in world axes, and refers to the joint origin of dof i.

Each array with many rows has a module with the row numbers: `frame_layout` for `Work.dof`, `parameter_layout` for the
parameters, `setting_layout` and `joint_layout` for `BlockActions.settings` and `joints`. Docstrings omit the module of
rows of `Work.dof` ("Reads R").
"""

from typing import NamedTuple

import numpy as np

from ...compiling.jit import is_given, kernel
from ..lanes.lanes import constant_like
from . import frame_layout as frame, parameter_layout as param
from .sampler_layout import Samplers

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
# The integer type of the topology shows whether the model is in water, so that code can choose when it is compiled.
IN_AIR, IN_WATER = np.int64, np.int32

REVOLUTE, PRISMATIC, SCREW = 0, 1, 2
# The pose of frame i follows from one coordinate (OWN) or, for the first dof of a free or spherical joint, from all
# coordinates of the joint (FREE, SPHERICAL). The other dofs of these joints are CARRIED by the first one: all frames of
# the joint are fixed in its body and differ only in the order of their axes.
POSING_OWN, POSING_FREE, POSING_SPHERICAL, POSING_CARRIED = 0, 1, 2, 3
PASSIVE_SPRING, PASSIVE_DAMPER, PASSIVE_FRICTION = 1, 2, 4
PASSIVE_STRIBECK, PASSIVE_STOPS, PASSIVE_ASYMMETRIC = 8, 16, 32
DIAGONAL_DRAG, FULL_DRAG, STRIP_DRAG = 1, 2, 4


# --- contribution of a child to its parent: first row of each ---
CONTRIBUTION_IA = 0  # 21: articulated inertia about the parent's joint origin, world axes: J (6), H (9), M (6)
CONTRIBUTION_PA = 21  # 6: articulated bias force: moment, N m, then force, N
CONTRIBUTION_ROWS = 27


class FlatModel(NamedTuple):
    """Topology and parameters of a mechanism: one array (n,) per row of the topology, as described above.

    `parameters` is described above. `water` is the same array if the mechanism is in water, else None. Compiled code
    chooses by its type.
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
    """Working memory of one block.

    `dof` is (n + 1, frame.ROWS, lanes). `contributions` is (rows, CONTRIBUTION_ROWS, lanes).

    `contributions` has a row for each sum of children's contributions that does not stay in registers, and a last row
    of zeros.
    """

    dof: np.ndarray
    contributions: np.ndarray


class Loads(NamedTuple):
    """Forces on the mechanism: joint forces `tau` (n, lanes), `wrenches` (n, 6, lanes), `actions` BlockActions or None.

    Joint forces are in N m or N. A wrench is a force, N, then a moment about the joint origin, N m, in world axes, at
    the dof of its body. Without wrenches the array is (0, 6, lanes). `actions` holds the drives, wrenches and events
    over time.
    """

    tau: np.ndarray
    wrenches: np.ndarray
    actions: object


class SharedActions(NamedTuple):
    """Drives, wrenches and events over time of all samples in a call: shared integers, and numbers of each sample.

    `signals`, `drives`, `functions`, `wrenches`, `springs`, `bushings` and `events` (rows, count) hold integers;
    `core.forces.signal_layout`, `core.control.drive_layout`, `core.control.user_calls`, `core.forces.wrenches`,
    `core.forces.springs`, `core.forces.bushings` and `core.motion.events` describe their rows. `springs` and `bushings`
    are None if there are no forces between bodies, so that compiled code contains nothing for them. `contacts` holds
    the elements of `core.contacts.contact_layout`, or is None without dry friction, stops and contacts.
    `gear_friction` (rows, count) holds the integers of `core.contacts.gear_friction`, or is None if no dry friction
    grows with the force of the drives. `samplers` is a `core.tree.sampler_layout.Samplers`, or None without sampled
    controllers. `actuators` (rows, n) holds the integers of `core.control.actuators`, or is None without actuators.
    `tables` (m,) holds the tables of signals, `knots` (samples or 1, m) the classes of their knots, `numbers` (samples
    or 1, m) all other numbers. `variation` is the Variation of the controllers' model, or None.
    """

    signals: np.ndarray
    drives: np.ndarray
    functions: np.ndarray
    wrenches: np.ndarray
    springs: object
    bushings: object
    contacts: object
    gear_friction: object
    samplers: Samplers | None
    actuators: object
    events: np.ndarray
    tables: np.ndarray
    knots: np.ndarray
    numbers: np.ndarray
    variation: object


class BlockActions(NamedTuple):
    """Drives, wrenches and events over time of the samples in one block.

    * `settings` (setting.COUNT,): each block has a copy, because sweeps set setting.EXTERNAL_FORCES.
    * `sample` (lanes,) is the index of the sample in each lane, `numbers` (m, lanes) its row of
      `SharedActions.numbers`.
    * `time` (1, lanes) is the time of each lane, s.
    * `values` (signals, 3, lanes) and `pieces` (signals, rows, lanes) are described in `core.forces.signal_layout`,
      `joints` (joint.ROWS, n, lanes) in `joint_layout`.
    * `windows` (WINDOW_ROWS, signals, lanes) and `differences` (nodes, lanes) are described in
      `core.forces.signal_layout` and `core.forces.signal_breaks`.
    * `event_values` (rows, lanes) are the values of the event functions in a step: `core.motion.event_values`.
    * `call_arguments` (m,) is memory for the arguments of a user function.
    * `failures` (lanes,) is CALLS_ALLOWED, CALLS_STOPPED or the code of the user function that failed.
    * `failed_calls` (1 + nq + nv, lanes) are the arguments t, q, qd of the call that failed.
    * `model` is the controllers' model of the mechanism.
    * `between_bodies` (n + 1, 6, lanes) are the wrenches of all forces between bodies, in world axes about the joint
      origins, moment (N m) before force (N), or None without such forces.
    * `contacts` is a `contact_layout.Contacts`, or None without dry friction, stops and contacts. `modes` is a
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


# Entries of `BlockActions.failures`.
CALLS_ALLOWED = 0
CALLS_STOPPED = -1  # user functions are not called for this lane, because its sample has ended
FAILED_FIRST_EVENT = 1  # event e has the code FAILED_FIRST_EVENT + e; the codes of other functions follow


class Block(NamedTuple):
    """Model, working memory, states and forces of the samples in one block. `rows` (m, lanes) belongs to the driver.

    `q` is (nq, lanes), `qd` and `qdd` are (n, lanes), as described above. `constraints` is a
    `constraint_layout.Constraints`, or None for an open chain.
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
    """Copy the parameters of a sample to lane k of `parameters`, the array of a FlatModel, if samples differ.

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
    """Copy the parameters of a sample to lane k of a block, and set its gravity.

    `parameters` is the array of the block's model.
    """
    if parameters.ndim == 2:
        return
    replace_parameters(parameters, variation, sample, source, k)
    apply_gravity(block.model, block.work, k)


@kernel
def flat_model(topology, parameters, water):
    """Combine the rows of the topology (TOPOLOGY_ROWS, n) and the parameters into a FlatModel.

    `parameters` and `water` are the arrays of a FlatModel.
    """
    return FlatModel(
        parent=topology[TOPOLOGY_PARENT],
        joint=topology[TOPOLOGY_JOINT],
        contribution_row=topology[TOPOLOGY_CONTRIBUTION_ROW],
        accumulates=topology[TOPOLOGY_ACCUMULATES],
        posing=topology[TOPOLOGY_POSING],
        coordinate=topology[TOPOLOGY_COORDINATE],
        first=topology[TOPOLOGY_FIRST],
        body=topology[TOPOLOGY_BODY],
        passive=topology[TOPOLOGY_PASSIVE],
        drag=topology[TOPOLOGY_DRAG],
        parameters=parameters,
        water=water,
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
    """Return one parameter of dof i: a number that all samples share, or the number of the sample in lane k.

    `parameters` is the array of a FlatModel.
    """
    if parameters.ndim == 2:
        return parameters[i, column]
    return parameters[i, column, k]


@kernel
def parameter3(parameters, i, column, k):
    """Return the 3 parameters of dof i starting at `column`, as a tuple (3)."""
    return (
        parameter(parameters, i, column, k),
        parameter(parameters, i, column + 1, k),
        parameter(parameters, i, column + 2, k),
    )


@kernel
def parameter6(parameters, i, column, k):
    """Return the 6 parameters of dof i starting at `column`, as a tuple (6)."""
    return (*parameter3(parameters, i, column, k), *parameter3(parameters, i, column + 3, k))


@kernel
def parameter9(parameters, i, column, k):
    """Return the 9 parameters of dof i starting at `column`, as a tuple (9)."""
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
        dof[n, frame.R + row, k] = constant_like(dof, 1.0 if row % 4 == 0 else 0.0)
    for row in range(6):
        dof[n, frame.V + row, k] = constant_like(dof, 0.0)
    for axis in range(3):
        dof[n, frame.POSITION + axis, k] = constant_like(dof, 0.0)
        dof[n, frame.A + axis, k] = constant_like(dof, 0.0)
    apply_gravity(model, work, k)


@kernel
def remove_gravity(model, work, k):
    """Set the acceleration of the base to zero, for sweeps without gravity."""
    for row in range(6):
        work.dof[model.parent.shape[0], frame.A + row, k] = constant_like(work.dof, 0.0)


@kernel
def apply_gravity(model, work, k):
    """Set the linear acceleration of the base to -gravity, in world axes, m/s^2 (Featherstone 2008, section 5.3)."""
    n = model.parent.shape[0]
    for axis in range(3):
        work.dof[n, frame.A + 3 + axis, k] = -parameter(model.parameters, n, param.GRAVITY + axis, k)
