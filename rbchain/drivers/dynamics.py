"""Drivers of the dynamics, which copy the states of each block into lanes, call a kernel and copy the results out.

All drivers of single instants have these arguments in common. n is the number of degrees of freedom (dofs):

* `memory`: array of `blocks.memory_size` values, which no other call uses at the same time.
* `topology`: (TOPOLOGY_ROWS, n).
* `parameters` and `variation`: (n + 1, param.COLUMNS) and None or, if samples differ, (n + 1, param.COLUMNS, 1) and a
  Variation. Row n holds gravity. A closed loop has one more row for each constraint, and a model in water has
  param.COLUMNS_IN_WATER columns.
* The numbers of the samples, inputs before outputs: (samples, m) of a batch, (m,) of a single sample. A docstring gives
  the shape for one sample, without the axis of the samples, and an array of several axes is flattened to m numbers.
* `first` and `last`: the driver computes the samples [first, last). `first` is a multiple of the lane width, because a
  Variation is stored in blocks.

These inputs have the same meaning in all drivers:

* `q` (nq): positions of the joints, rad and m, and unit quaternions (x, y, z, w).
* `qd` (n), `qdd` (n): velocities, rad/s and m/s, and accelerations, rad/s^2 and m/s^2.
* `tau` (n): joint forces, N m for rotations and N for translations. Velocities, accelerations and forces of free and
  spherical joints are in body axes.
* `wrenches` (n, 6): for each dof the force, N, then the moment about its joint origin, N m, on its body, in world axes.
  The array may be empty.

They return whether they have computed the samples. A driver computes nothing if `first` is UNCHECKED, and the state has
a wrong size or a quaternion that is not of norm 1 (`single_states`).

The rows of a block are zero at first. Kernels write only those entries of a result that can differ from zero.
"""

from ..compiling.jit import driver
from ..core.algorithms import aba, hybrid, residual, rnea
from ..core.forces import passive
from ..core.forces.added_mass import add_drag
from ..core.lanes.lane_memory import all_lanes, lane_width
from ..core.tree.layout import set_sample_parameters
from .blocks import block_for, body_count, pack, pack_wrenches, unpack
from .single_states import can_compute


@driver
def forward_dynamics(memory, topology, parameters, variation, q, qd, tau, wrenches, qdd, first, last):
    """Compute joint accelerations `qdd` (n) from joint forces; NaN for a sample that is singular or not finite.

    They are in rad/s^2 and m/s^2.
    """
    if not can_compute(topology, first, (q, qd, tau)):
        return False
    block, k = block_for(memory, topology, parameters, wrenches, 0, q), all_lanes(q)
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(tau, start, last, block.loads.tau, k)
        pack_wrenches(wrenches, start, last, block.loads.wrenches)
        aba.forward_dynamics(block.model, block.q, block.qd, block.loads, block.qdd, block.work, k)
        aba.propagate_nan(block.qdd, k)
        unpack(block.qdd, qdd, start, last)
    return True


@driver
def inverse_dynamics(memory, topology, parameters, variation, q, qd, qdd, wrenches, tau, first, last):
    """Compute the joint forces `tau` (n), N m and N, that result in the accelerations `qdd`."""
    if not can_compute(topology, first, (q, qd, qdd)):
        return False
    block, k = block_for(memory, topology, parameters, wrenches, 0, q), all_lanes(q)
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(qdd, start, last, block.qdd, k)
        pack_wrenches(wrenches, start, last, block.loads.wrenches)
        rnea.inverse_dynamics(block.model, block.q, block.qd, block.qdd, block.loads, block.work, k)
        unpack(block.loads.tau, tau, start, last)
    return True


@driver
def hybrid_dynamics(
    memory, topology, parameters, variation, q, qd, tau, qdd, prescribed, wrenches, result, first, last
):
    """Compute accelerations, rad/s^2 and m/s^2, and joint forces, N m and N: `result` (2, n).

    `qdd` is given where `prescribed` (n) is 1, else `tau`.
    """
    if not can_compute(topology, first, (q, qd, tau, qdd, prescribed)):
        return False
    n, k = topology.shape[1], all_lanes(q)
    block = block_for(memory, topology, parameters, wrenches, 3 * n, q)
    qdd_rows, tau_rows, prescribed_rows = block.rows[:n], block.rows[n : 2 * n], block.rows[2 * n :]
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(tau, start, last, block.loads.tau, k)
        pack(qdd, start, last, block.qdd, k)
        pack(prescribed, start, last, prescribed_rows, k)
        pack_wrenches(wrenches, start, last, block.loads.wrenches)
        hybrid.hybrid_dynamics(block.model, block.q, block.qd, block.loads, block.qdd, prescribed_rows, block.work, k)
        for i in range(n):
            qdd_rows[i, k] = block.qdd[i, k]
            tau_rows[i, k] = block.loads.tau[i, k]
        aba.propagate_nan(block.rows[: 2 * n], k)
        unpack(block.rows[: 2 * n], result, start, last)
    return True


@driver
def force_balance(memory, topology, parameters, variation, q, qd, tau, wrenches, residuals, first, last):
    """Compute the unbalanced moment and force of each dof, `residuals` (n, 6), as a check of forward dynamics.

    A row is the moment about the joint origin, N m, then the force, N, in world axes.
    """
    if not can_compute(topology, first, (q, qd, tau)):
        return False
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, wrenches, 6 * n, q)
    residual_rows = block.rows.reshape(n, 6, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(tau, start, last, block.loads.tau, k)
        pack_wrenches(wrenches, start, last, block.loads.wrenches)
        residual.force_balance(block.model, block.q, block.qd, block.loads, block.qdd, residual_rows, block.work, k)
        unpack(block.rows, residuals, start, last)
    return True


@driver
def joint_reactions(memory, topology, parameters, variation, q, qd, qdd, wrenches, reactions, first, last):
    """Compute the force and moment that each joint transmits to its body, `reactions` (bodies, 6).

    A row is the force, N, then the moment about the origin of the body, N m, in body axes.
    """
    if not can_compute(topology, first, (q, qd, qdd)):
        return False
    bodies, width, k = body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, wrenches, 6 * bodies, q)
    reaction_rows = block.rows.reshape(bodies, 6, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(qdd, start, last, block.qdd, k)
        pack_wrenches(wrenches, start, last, block.loads.wrenches)
        rnea.joint_reactions(block.model, block.q, block.qd, block.qdd, block.loads, reaction_rows, block.work, k)
        unpack(block.rows, reactions, start, last)
    return True


@driver
def passive_forces(memory, topology, parameters, variation, q, qd, forces, first, last):
    """Compute the passive joint forces and the drag of still water on the joints, `forces` (n), N m and N."""
    if not can_compute(topology, first, (q, qd)):
        return False
    block, k = block_for(memory, topology, parameters, None, 0, q), all_lanes(q)
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        passive.passive_forces(block.model, block.q, block.qd, block.loads.tau, k)
        add_drag(block.model, block.q, block.qd, block.loads.tau, block.work, k)
        unpack(block.loads.tau, forces, start, last)
    return True
