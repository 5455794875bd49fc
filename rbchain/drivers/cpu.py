"""One compiled driver per quantity: the chains [first, last) of a batch, block by block of lanes.

Common arguments: `memory`, `memory_size` numbers that no other call uses meanwhile; `topology` (4, n); `parameters`
(n + 1, PARAMETERS) with None for `variation`, or (n + 1, PARAMETERS, 1) with a Variation; then the chains' numbers,
inputs before outputs: (chains, m) of a batch, (m,) of a single chain. `wrenches` is None where there are none. `first`
is a multiple of the lane width, as blocks of varied parameters are.
"""

from ..core import aba, kinematics, residual, rnea
from ..core import energy as energies
from ..core.jit import driver
from ..core.lane_memory import all_lanes, lane_width
from .blocks import block_for, pack, pack_wrenches, take_varied, unpack

POSE_NUMBERS = 12
MOST_ROWS_PER_BODY = POSE_NUMBERS  # of what any driver here asks `block_for` for


@driver
def forward_dynamics(memory, topology, parameters, variation, q, qd, tau, wrenches, qdd, first, last):
    """Joint accelerations `qdd`; NaN where a chain is singular or its state not finite."""
    block, k = block_for(memory, topology, parameters, wrenches, 0, q), all_lanes(q)
    for start in range(first, last, lane_width(q)):
        take_varied(block, block.model.parameters, variation, start, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(tau, start, last, block.loads.tau, k)
        pack_wrenches(wrenches, start, last, block.loads.wrenches)
        aba.forward_dynamics(block.model, block.q, block.qd, block.loads, block.qdd, block.work, k)
        aba.fail_together(block.qdd, k)
        unpack(block.qdd, qdd, start, last)


@driver
def inverse_dynamics(memory, topology, parameters, variation, q, qd, qdd, wrenches, tau, first, last):
    """Joint forces `tau` that give the accelerations `qdd`."""
    block, k = block_for(memory, topology, parameters, wrenches, 0, q), all_lanes(q)
    for start in range(first, last, lane_width(q)):
        take_varied(block, block.model.parameters, variation, start, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(qdd, start, last, block.qdd, k)
        pack_wrenches(wrenches, start, last, block.loads.wrenches)
        rnea.inverse_dynamics(block.model, block.q, block.qd, block.qdd, block.loads, block.work, k)
        unpack(block.loads.tau, tau, start, last)


@driver
def force_balance(memory, topology, parameters, variation, q, qd, tau, wrenches, residuals, first, last):
    """What is left of each body's balance: `residuals`, per chain (n, 6) with the moment before the force."""
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, wrenches, 6 * n, q)
    of_bodies = block.rows.reshape(n, 6, width)
    for start in range(first, last, width):
        take_varied(block, block.model.parameters, variation, start, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(tau, start, last, block.loads.tau, k)
        pack_wrenches(wrenches, start, last, block.loads.wrenches)
        residual.force_balance(block.model, block.q, block.qd, block.loads, block.qdd, of_bodies, block.work, k)
        unpack(block.rows, residuals, start, last)


@driver
def body_poses(memory, topology, parameters, variation, q, poses, first, last):
    """Positions and rotations of the bodies: `poses`, per chain (n, 12)."""
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, POSE_NUMBERS * n, q)
    of_bodies = block.rows.reshape(n, POSE_NUMBERS, width)
    for start in range(first, last, width):
        take_varied(block, block.model.parameters, variation, start, k)
        pack(q, start, last, block.q, k)
        kinematics.place_bodies(block.model, block.q, of_bodies, block.work, k)
        unpack(block.rows, poses, start, last)


@driver
def energy(memory, topology, parameters, variation, q, qd, kinetic_potential, first, last):
    """Kinetic and potential energy of each chain."""
    block, k = block_for(memory, topology, parameters, None, 2, q), all_lanes(q)
    for start in range(first, last, lane_width(q)):
        take_varied(block, block.model.parameters, variation, start, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        energies.energy(block.model, block.q, block.qd, block.rows, block.work, k)
        unpack(block.rows, kinetic_potential, start, last)
