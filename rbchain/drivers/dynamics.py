"""Drivers of the dynamics: for the samples [first, last), copy the states of each block into lanes and call a kernel.

Common arguments of all drivers of quantities: `memory`, `memory_size` numbers that no other call uses meanwhile, for
`rows` that this driver asks `block_for` for; `topology` (TOPOLOGY_ROWS, n); `parameters` (n + 1, PARAM_COLUMNS) with
None for `variation`, or (n + 1, PARAM_COLUMNS, 1) with a Variation; then the samples' numbers, inputs before outputs:
(samples, m) of a batch, (m,) of a single sample. `wrenches` has no numbers where there are none. `first` is a multiple
of the lane width, as blocks of varied parameters are.

n counts degrees of freedom, as the kernels do. Where only some entries of a result are ever other than zero, the
block's rows, which start as zero, hold them from block to block.
"""

from ..core.algorithms import aba, hybrid, residual, rnea
from ..core.forces import passive
from ..core.forces.added_mass import add_drag
from ..core.simd.jit import driver
from ..core.simd.lane_memory import all_lanes, lane_width
from ..core.tree.layout import set_sample_parameters
from .blocks import block_for, body_count, pack, pack_wrenches, unpack


@driver
def forward_dynamics(memory, topology, parameters, variation, q, qd, tau, wrenches, qdd, first, last):
    """Joint accelerations `qdd`; NaN where a sample is singular or its state not finite."""
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


@driver
def inverse_dynamics(memory, topology, parameters, variation, q, qd, qdd, wrenches, tau, first, last):
    """Joint forces `tau` that give the accelerations `qdd`."""
    block, k = block_for(memory, topology, parameters, wrenches, 0, q), all_lanes(q)
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(qdd, start, last, block.qdd, k)
        pack_wrenches(wrenches, start, last, block.loads.wrenches)
        rnea.inverse_dynamics(block.model, block.q, block.qd, block.qdd, block.loads, block.work, k)
        unpack(block.loads.tau, tau, start, last)


@driver
def hybrid_dynamics(memory, topology, parameters, variation, q, qd, tau, qdd, prescribed, wrenches, found, first, last):
    """Per sample (2, n): accelerations and joint forces, one of them given where `prescribed` is 1 or 0."""
    n, k = topology.shape[1], all_lanes(q)
    block = block_for(memory, topology, parameters, wrenches, 3 * n, q)
    qdd_found, tau_found, driven = block.rows[:n], block.rows[n : 2 * n], block.rows[2 * n :]
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(tau, start, last, block.loads.tau, k)
        pack(qdd, start, last, block.qdd, k)
        pack(prescribed, start, last, driven, k)
        pack_wrenches(wrenches, start, last, block.loads.wrenches)
        hybrid.hybrid_dynamics(block.model, block.q, block.qd, block.loads, block.qdd, driven, block.work, k)
        for i in range(n):
            qdd_found[i, k] = block.qdd[i, k]
            tau_found[i, k] = block.loads.tau[i, k]
        aba.propagate_nan(block.rows[: 2 * n], k)
        unpack(block.rows[: 2 * n], found, start, last)


@driver
def force_balance(memory, topology, parameters, variation, q, qd, tau, wrenches, residuals, first, last):
    """What is left of each body's balance: `residuals`, per sample (n, 6) with the moment before the force."""
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, wrenches, 6 * n, q)
    of_dofs = block.rows.reshape(n, 6, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(tau, start, last, block.loads.tau, k)
        pack_wrenches(wrenches, start, last, block.loads.wrenches)
        residual.force_balance(block.model, block.q, block.qd, block.loads, block.qdd, of_dofs, block.work, k)
        unpack(block.rows, residuals, start, last)


@driver
def joint_reactions(memory, topology, parameters, variation, q, qd, qdd, wrenches, reactions, first, last):
    """What the joints transmit: `reactions`, per sample (bodies, 6) with the force before the moment."""
    bodies, width, k = body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, wrenches, 6 * bodies, q)
    of_dofs = block.rows.reshape(bodies, 6, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(qdd, start, last, block.qdd, k)
        pack_wrenches(wrenches, start, last, block.loads.wrenches)
        rnea.joint_reactions(block.model, block.q, block.qd, block.qdd, block.loads, of_dofs, block.work, k)
        unpack(block.rows, reactions, start, last)


@driver
def passive_forces(memory, topology, parameters, variation, q, qd, found, first, last):
    """What the joints do by themselves, and the drag of still water."""
    block, k = block_for(memory, topology, parameters, None, 0, q), all_lanes(q)
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        passive.passive_forces(block.model, block.q, block.qd, block.loads.tau, k)
        add_drag(block.model, block.q, block.qd, block.loads.tau, block.work, k)
        unpack(block.loads.tau, found, start, last)
