"""Memory for the work of forces, and the work of impulses. `work` integrates the power of forces over a step."""

from typing import Annotated, NamedTuple

import numpy as np

from ...compiling.jit import is_given, kernel, only_if, routine
from ..algorithms.rnea import inverse_dynamics
from ..contacts import contact_layout as contact
from ..contacts.contact_responses import add_responses
from ..lanes.lane_memory import CACHE_LINE, aligned_start
from ..lanes.lane_records import lane_record
from ..lanes.lanes import constant_like, zeros_like
from ..loops import constraint_layout as closure
from ..loops.constraint_hooks import has_constraints
from ..tree import joint_layout as joint
from ..tree.layout import Loads, apply_gravity, parameter, remove_gravity

NODES = 5  # of the quadrature over a part of a step
# Rows of `WorkMemory.sums`.
SUM_WORK = 0  # work since the start of the sample, J
SUM_TIME, SUM_STEP = 1, 2  # time at the start of the accepted step, and its length, s
SUM_SLOT = 3  # number of saved times before the step
SUM_ROWS = 4


class WorkMemory(NamedTuple):
    """Working memory of one block for the work of forces that are neither gravity nor elastic.

    * `sums` (SUM_ROWS, lanes) is defined above, always float64.
    * `powers` (NODES, lanes) are the powers at the nodes of a part of the step, W.
    * `impulses` (1, lanes) is the work of the impulses of a step of time stepping, J.
    * `step` (1, lanes) is the length of the accepted step, s. `start` and `length` (1, lanes) are the start and the
      length of the current part, as fractions of the step; the length is zero without one.
    * `needed` (1, lanes) is the resolution that the part needs, `scale` (1, lanes) the scale of the energy, J.
    * `kinks` (1, lanes) is 1 if the elastic energy has a kink in the part, else 0.
    * `role` (1, lanes) distinguishes lanes with a step from lanes whose calls of user functions wait for them.
    * `energies` (2, lanes) are the kinetic and the potential energy at a node, J.
    * `state` and `rate` (rows, lanes) are the state at a node and its rate.
    * `torques` (n, lanes) are the joint forces at a node, N m and N, or the joint impulses of an impact, N m s and N s.
    """

    sums: np.ndarray
    powers: Annotated[np.ndarray, NODES]
    impulses: Annotated[np.ndarray, 1]
    step: Annotated[np.ndarray, 1]
    start: Annotated[np.ndarray, 1]
    length: Annotated[np.ndarray, 1]
    needed: Annotated[np.ndarray, 1]
    kinks: Annotated[np.ndarray, 1]
    scale: Annotated[np.ndarray, 1]
    role: Annotated[np.ndarray, 1]
    energies: Annotated[np.ndarray, 2]
    state: Annotated[np.ndarray, "rows"]
    rate: Annotated[np.ndarray, "rows"]
    torques: Annotated[np.ndarray, "n"]


work_size, carve_work = lane_record(WorkMemory, "rows", "n")


def work_memory(n, state_size, width, dtype, blocks):
    """Allocate the memory that `work_in` divides among the fields of the WorkMemory of each block, for n dofs.

    Returns the sums (blocks, SUM_ROWS, width), and all other numbers (blocks, m).
    """
    numbers = work_size(state_size, n) * width + CACHE_LINE // dtype.itemsize
    return np.zeros((blocks, SUM_ROWS, width)), np.zeros((blocks, numbers), dtype)


@only_if(lambda memory, b, n, size: is_given(memory))
@kernel
def work_in(memory, b, n, size):
    """Create the WorkMemory of block b with n dofs and `size` rows of the state, in the arrays of `work_memory`."""
    sums, numbers = memory[0][b], memory[1][b]
    return carve_work(numbers, aligned_start(numbers), sums.shape[1], sums, size, n)


def has_work(stepper, *_):
    """Whether a Stepper, or its Numba type, computes the work of forces."""
    return is_given(stepper, "work")


@only_if(has_work)
@kernel
def begin_work(stepper, batch, sample, lane):
    """Set the work of a new sample in a lane to zero."""
    work, zero = stepper.work, constant_like(stepper.y, 0.0)
    work.sums[SUM_WORK, lane] = 0.0
    work.impulses[0, lane], work.scale[0, lane] = zero, zero
    work.step[0, lane], work.length[0, lane] = zero, zero
    batch.saved.work[sample, 0] = 0.0


@only_if(has_constraints)
@kernel
def _without_added_inertias(block, qdd, torques, k):
    """Subtract the forces on added inertias, which the dynamics of closed loops take away again.

    qdd, rad/s^2 and m/s^2, and `torques`, N m and N, are (n, lanes).
    """
    table = block.constraints.tables.table
    for c in range(table.shape[1]):
        if table[closure.TYPE, c] == closure.ADDED_INERTIA:
            i, at = table[closure.DOF_B, c], table[closure.PARAMETERS, c]
            added = parameter(block.model.parameters, at, closure.PARAM_ADDED_INERTIA, k)
            torques[i, k] = torques[i, k] - added * qdd[i, k]


@kernel
def inverse_dynamics_of_mechanism(block, q, qd, qdd, torques, k):
    """Compute the joint forces H qdd + h without external forces; h has the bias forces and gravity.

    q is (nq, lanes). qd, qdd and the result, `torques`, are (n, lanes); SI units.
    """
    loads = Loads(torques, block.loads.wrenches, None)
    inverse_dynamics(block.model, q, qd, qdd, loads, block.work, k)
    _without_added_inertias(block, qdd, torques, k)


@kernel
def compute_joint_impulses(block, work, q, k):
    """Compute the changes of the velocities by the impulses of all rows, `rate`, and the joint impulses H `rate`.

    The joint impulses, `torques` (n, lanes), N m s and N s, contain the impulses of contacts, drives of prescribed
    motions and constraints. H is the mass matrix at the positions q (nq, lanes). `rate` is in rad/s and m/s.
    """
    contacts, n = block.loads.actions.contacts, work.torques.shape[0]
    for i in range(n):
        work.state[i, k] = constant_like(work.state, 0.0)
        work.rate[i, k] = constant_like(work.rate, 0.0)
    rest, change = work.state[:n], work.rate[:n]
    add_responses(contacts.responses, contacts.rows, contact.IMPULSE, change, k)
    remove_gravity(block.model, block.work, k)
    inverse_dynamics_of_mechanism(block, q, rest, change, work.torques, k)
    apply_gravity(block.model, block.work, k)


@only_if(lambda block, stepper, *_: has_work(stepper))
@routine
def add_work_of_impact(block, stepper, y, lane):
    """Add the work of the impulses of an impact in the state y before it: v' H dv with the mean velocity v + dv / 2.

    This is the change of the kinetic energy, J, by the change dv of the velocities. y is (rows, lanes).
    """
    work, nq, total = stepper.work, block.q.shape[0], 0.0
    compute_joint_impulses(block, work, y[:nq], lane)
    for i in range(work.torques.shape[0]):
        mean = float(y[nq + i, lane]) + 0.5 * float(work.rate[i, lane])
        total += float(work.torques[i, lane]) * mean
    work.sums[SUM_WORK, lane] += total


@only_if(lambda block, stepper, *_: has_work(stepper))
@routine
def store_work_of_impulses(block, stepper, acts, lag, k):
    """Compute the work of all impulses of a step of time stepping, J, before they change the velocities in y_new.

    The velocities change from v to v'. The impulses contribute dv to this change, and other forces contribute d:

        (H + implicit terms) dv . ((v + v') / 2 + (c - 1/2) d)

    The second factor is the mean of the velocities before and after the impulses, which act at the time c h of an
    impact. `lag` is c - 1/2 of each lane, or zero without an impact. `acts` states whether there may be impulses.
    """
    work, y, y_new, contacts = stepper.work, stepper.y, stepper.y_new, block.loads.actions.contacts
    rows, joints, nq, half = contacts.rows, block.loads.actions.joints, block.q.shape[0], constant_like(y_new, 0.5)
    total = zeros_like(rows[0, contact.IMPULSE, k])
    work.impulses[0, k] = total
    if not acts:
        return
    compute_joint_impulses(block, work, y_new[:nq], k)
    for i in range(work.torques.shape[0]):
        change = work.rate[i, k]
        impulse = work.torques[i, k] + joints[joint.IMPLICIT_INERTIA, i, k] * change
        mean = half * (y[nq + i, k] + (y_new[nq + i, k] + change)) + lag * (y_new[nq + i, k] - y[nq + i, k])
        total = total + mean * impulse
    work.impulses[0, k] = total
