"""Drivers of forces between bodies, which copy states into lanes and results out, as in `dynamics`.

`springs` and `bushings` (rows, forces) are the arrays of integers of `core.forces.between_bodies`, with a column for
each force. `numbers` is (samples, m), or (1, m) if all samples have the same numbers, in SI units. "Scratch" in a
docstring is the number of the block's rows after the result.
"""

from ..compiling.jit import driver, kernel
from ..core.algorithms import derivatives_between_bodies as derivative_kernels
from ..core.forces import between_bodies
from ..core.lanes.lane_memory import all_lanes, lane_width
from ..core.lanes.lanes import constant_like
from ..core.spatial.storage import load_force, store3
from ..core.tree.kinematics import move_dof
from ..core.tree.layout import set_sample_parameters
from .blocks import block_for, body_count, pack, unpack
from .single_states import can_compute


@kernel
def pack_numbers(numbers, first, block):
    """Copy `numbers` (samples or 1, m) of the samples that start at `first` into the lanes of block (m, lanes)."""
    for lane in range(block.shape[1]):
        row = min(max(first, 0) + lane, numbers.shape[0] - 1)
        for j in range(block.shape[0]):
            block[j, lane] = constant_like(block, numbers[row, j])


@driver
def wrenches_between_bodies(
    memory, topology, parameters, variation, springs, bushings, numbers, q, qd, wrenches, first, last
):
    """Compute the sum of all forces between bodies on each body, `wrenches` (bodies, 6).

    A row is the force, N, then the moment about the origin of the body, N m, in world axes. Scratch: 6 (n + 1) + m.
    """
    if not can_compute(topology, first, (q, qd)):
        return False
    n, bodies, width, k = topology.shape[1], body_count(topology), lane_width(q), all_lanes(q)
    of_dofs = 6 * bodies + 6 * (n + 1)
    block = block_for(memory, topology, parameters, None, of_dofs + numbers.shape[1], q)
    found = block.rows[: 6 * bodies].reshape(bodies, 6, width)
    sums, lane_numbers = block.rows[6 * bodies : of_dofs].reshape(n + 1, 6, width), block.rows[of_dofs:]
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack_numbers(numbers, start, lane_numbers)
        for i in range(n):
            move_dof(i, block.model, block.q, block.qd, block.work, k)
        between_bodies.compute_wrenches_between_bodies(
            block.model, springs, bushings, lane_numbers, sums, block.work, k
        )
        for i in range(n):
            if block.model.body[i] >= 0:
                f = load_force(sums, i, 0, k)
                store3(found, block.model.body[i], 0, k, f.lin)
                store3(found, block.model.body[i], 3, k, f.ang)
        unpack(block.rows[: 6 * bodies], wrenches, start, last)
    return True


@driver
def elastic_energy(memory, topology, parameters, variation, springs, bushings, numbers, q, qd, energy, first, last):
    """Compute the elastic energy of all forces between bodies, `energy` (1), J. Scratch: m."""
    if not can_compute(topology, first, (q, qd)):
        return False
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, 1 + numbers.shape[1], q)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack_numbers(numbers, start, block.rows[1:])
        for i in range(n):
            move_dof(i, block.model, block.q, block.qd, block.work, k)
        block.rows[0, k] = between_bodies.elastic_energy(block.model, springs, bushings, block.rows[1:], block.work, k)
        unpack(block.rows[:1], energy, start, last)
    return True


@driver
def derivatives_between_bodies(
    memory, topology, parameters, variation, springs, bushings, numbers, q, qd, result, first, last
):
    """Compute the derivatives of the joint forces of springs and bushings with respect to q and qd, `result` (2, n, n).

    Row i of a matrix is the force of dof i, in N or N m per rad, m, rad/s or m/s. Derivatives with respect to q of free
    and spherical joints are along their velocities, in body axes. Scratch: m.
    """
    if not can_compute(topology, first, (q, qd)):
        return False
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    squares = 2 * n * n
    block = block_for(memory, topology, parameters, None, squares + numbers.shape[1], q)
    found, lane_numbers = block.rows[:squares], block.rows[squares:]
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack_numbers(numbers, start, lane_numbers)
        for row in range(squares):
            found[row, k] = constant_like(found, 0.0)
        derivative_kernels.derivatives_between_bodies(
            block.model,
            block.q,
            block.qd,
            (springs, bushings, lane_numbers),
            found.reshape(2, n, n, width),
            block.work,
            k,
        )
        unpack(found, result, start, last)
    return True
