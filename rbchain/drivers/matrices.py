"""Drivers of the mass matrix and of other matrices, which copy states into lanes and results out, as in `dynamics`.

Each result is (n, n) for a sample unless its docstring gives another shape. Its entries refer to the velocities of the
dofs, which are in body axes for free and spherical joints. The rows of the block hold the result, then scratch for the
kernel. "Scratch" in a docstring is the number of its rows.
"""

from ..compiling.jit import driver
from ..core.algorithms import aba, coriolis, crba, minverse, momentum as momentum_kernels
from ..core.lanes.lane_memory import all_lanes, lane_width
from ..core.lanes.lanes import constant_like
from ..core.tree.layout import remove_gravity, set_sample_parameters
from .blocks import block_for, pack, unpack
from .single_states import can_compute


@driver
def mass_matrix(memory, topology, parameters, variation, q, result, first, last):
    """Compute the mass matrix, kg m^2, kg m and kg. Scratch: RIGID_ROWS n."""
    if not can_compute(topology, first, (q,)):
        return False
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, n * n + crba.RIGID_ROWS * n, q)
    H, composite = block.rows[: n * n], block.rows[n * n :].reshape(n, crba.RIGID_ROWS, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        crba.mass_matrix(block.model, block.q, H.reshape(n, n, width), composite, block.work, k)
        unpack(H, result, start, last)
    return True


@driver
def mass_matrix_inverse(memory, topology, parameters, variation, q, result, first, last):
    """Compute the inverse of the mass matrix, 1/(kg m^2), 1/(kg m) and 1/kg; NaN for a singular sample.

    Scratch: COLUMNS_TOGETHER (n + 1) COLUMN_ROWS.
    """
    if not can_compute(topology, first, (q,)):
        return False
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    shape = (minverse.COLUMNS_TOGETHER, n + 1, minverse.COLUMN_ROWS, width)
    block = block_for(memory, topology, parameters, None, n * n + shape[0] * shape[1] * shape[2], q)
    inverse, columns = block.rows[: n * n], block.rows[n * n :].reshape(shape)
    for i in range(n):
        block.qd[i, k] = constant_like(memory, 0.0)
        block.loads.tau[i, k] = constant_like(memory, 0.0)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        remove_gravity(block.model, block.work, k)
        pack(q, start, last, block.q, k)
        aba.forward_dynamics(block.model, block.q, block.qd, block.loads, block.qdd, block.work, k)
        minverse.mass_matrix_inverse(block.model, inverse.reshape(n, n, width), columns, block.work, k)
        aba.propagate_nan(inverse, k)
        unpack(inverse, result, start, last)
    return True


@driver
def coriolis_matrix(memory, topology, parameters, variation, q, qd, result, first, last):
    """Compute the Coriolis matrix, whose product with qd is in N m and N. Scratch: CORIOLIS_ROWS n."""
    if not can_compute(topology, first, (q, qd)):
        return False
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, n * n + coriolis.CORIOLIS_ROWS * n, q)
    C, scratch = block.rows[: n * n], block.rows[n * n :].reshape(n, coriolis.CORIOLIS_ROWS, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        coriolis.coriolis_matrix(block.model, block.q, block.qd, C.reshape(n, n, width), scratch, block.work, k)
        unpack(C, result, start, last)
    return True


@driver
def christoffel_symbols(memory, topology, parameters, variation, q, result, first, last):
    """Compute the Christoffel symbols (n, n, n), whose sum over the last axis times qd is the Coriolis matrix.

    The units are kg m^2, kg m and kg. Scratch: n n + CORIOLIS_ROWS n.
    """
    if not can_compute(topology, first, (q,)):
        return False
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    cube, square = n * n * n, n * n
    block = block_for(memory, topology, parameters, None, cube + square + coriolis.CORIOLIS_ROWS * n, q)
    symbols, C = block.rows[:cube], block.rows[cube : cube + square].reshape(n, n, width)
    scratch = block.rows[cube + square :].reshape(n, coriolis.CORIOLIS_ROWS, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        cubes = symbols.reshape(n, n, n, width)
        coriolis.christoffel_symbols(block.model, block.q, block.qd, cubes, C, scratch, block.work, k)
        unpack(symbols, result, start, last)
    return True


@driver
def centroidal_momentum_matrix(memory, topology, parameters, variation, q, result, first, last):
    """Compute the centroidal momentum matrix (6, n): rows of momentum, then of angular momentum, in world axes.

    Its product with qd is in kg m/s and kg m^2/s, and refers to the center of mass. Scratch: RIGID_ROWS n.
    """
    if not can_compute(topology, first, (q,)):
        return False
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, 6 * n + crba.RIGID_ROWS * n, q)
    matrix, composite = block.rows[: 6 * n], block.rows[6 * n :].reshape(n, crba.RIGID_ROWS, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        momentum_kernels.centroidal_momentum_matrix(
            block.model, block.q, matrix.reshape(6, n, width), composite, block.work, k
        )
        unpack(matrix, result, start, last)
    return True
