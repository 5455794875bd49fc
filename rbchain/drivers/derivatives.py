"""Drivers of derivatives and regressors. Arguments as in `dynamics`."""

from ..core.algorithms import aba, minverse, regressors
from ..core.algorithms import derivatives as of_dynamics
from ..core.simd.jit import driver
from ..core.simd.lane_memory import all_lanes, lane_width
from ..core.tree.layout import set_sample_parameters
from .blocks import block_for, body_count, pack, unpack


@driver
def inverse_dynamics_derivatives(memory, topology, parameters, variation, q, qd, qdd, result, first, last):
    """Derivatives of the joint forces by q, qd and qdd, per sample (3, n, n); scratch DERIVATIVE_ROWS n."""
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, 3 * n * n + of_dynamics.DERIVATIVE_ROWS * n, q)
    found = block.rows[: 3 * n * n]
    scratch = block.rows[3 * n * n :].reshape(n, of_dynamics.DERIVATIVE_ROWS, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(qdd, start, last, block.qdd, k)
        of_dynamics.inverse_dynamics_derivatives(
            block.model,
            block.q,
            block.qd,
            block.qdd,
            block.loads,
            found.reshape(3, n, n, width),
            scratch,
            block.work,
            k,
        )
        unpack(found, result, start, last)


@driver
def forward_dynamics_derivatives(memory, topology, parameters, variation, q, qd, tau, result, first, last):
    """Derivatives of the accelerations by q, qd and tau, per sample (3, n, n).

    Scratch 3 n n + DERIVATIVE_ROWS n + TOGETHER COLUMN_ROWS (n + 1).
    """
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    squares, shape = 3 * n * n, (minverse.COLUMNS_TOGETHER, n + 1, minverse.COLUMN_ROWS, width)
    of_bodies = 2 * squares + of_dynamics.DERIVATIVE_ROWS * n
    block = block_for(memory, topology, parameters, None, of_bodies + shape[0] * shape[1] * shape[2], q)
    found, of_inverse = block.rows[:squares], block.rows[squares : 2 * squares].reshape(3, n, n, width)
    scratch = block.rows[2 * squares : of_bodies].reshape(n, of_dynamics.DERIVATIVE_ROWS, width)
    columns = block.rows[of_bodies:].reshape(shape)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(tau, start, last, block.loads.tau, k)
        of_dynamics.forward_dynamics_derivatives(
            block.model,
            block.q,
            block.qd,
            block.qdd,
            block.loads,
            found.reshape(3, n, n, width),
            of_inverse,
            scratch,
            columns,
            block.work,
            k,
        )
        aba.propagate_nan(found, k)
        unpack(found, result, start, last)


@driver
def inverse_dynamics_regressor(memory, topology, parameters, variation, q, qd, qdd, result, first, last):
    """What each body's parameters contribute to the joint forces, per sample (n, bodies, 10)."""
    n, bodies, width, k = topology.shape[1], body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, regressors.PARAMETERS_OF_BODY * n * bodies, q)
    Y = block.rows.reshape(n, bodies, regressors.PARAMETERS_OF_BODY, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(qdd, start, last, block.qdd, k)
        regressors.inverse_dynamics_regressor(block.model, block.q, block.qd, block.qdd, Y, block.work, k)
        unpack(block.rows, result, start, last)


@driver
def kinetic_energy_regressor(memory, topology, parameters, variation, q, qd, result, first, last):
    """What each body's parameters contribute to the kinetic energy, per sample (bodies, 10)."""
    bodies, width, k = body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, regressors.PARAMETERS_OF_BODY * bodies, q)
    Y = block.rows.reshape(bodies, regressors.PARAMETERS_OF_BODY, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        regressors.kinetic_energy_regressor(block.model, block.q, block.qd, Y, block.work, k)
        unpack(block.rows, result, start, last)


@driver
def potential_energy_regressor(memory, topology, parameters, variation, q, result, first, last):
    """What each body's parameters contribute to the potential energy, per sample (bodies, 10)."""
    bodies, width, k = body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, regressors.PARAMETERS_OF_BODY * bodies, q)
    Y = block.rows.reshape(bodies, regressors.PARAMETERS_OF_BODY, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        regressors.potential_energy_regressor(block.model, block.q, Y, block.work, k)
        unpack(block.rows, result, start, last)
