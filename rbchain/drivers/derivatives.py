"""Drivers of derivatives and regressors, which copy states into lanes and results out, as in `dynamics`.

The inertial parameters of a body are its mass, kg, its first moment (3), kg m, and its inertia about its origin (xx,
xy, xz, yy, yz, zz), kg m^2, in body axes. "Scratch" in a docstring is the number of the block's rows after the result.
"""

from ..compiling.jit import driver
from ..core.algorithms import aba, derivatives, minverse, regressors
from ..core.forces.passive import exact_passive_stiffness_and_damping
from ..core.lanes.lane_memory import all_lanes, lane_width
from ..core.tree.layout import set_sample_parameters
from .blocks import block_for, body_count, pack, unpack
from .single_states import can_compute


@driver
def inverse_dynamics_derivatives(memory, topology, parameters, variation, q, qd, qdd, result, first, last):
    """Compute the derivatives of the joint forces with respect to q, qd and qdd, `result` (3, n, n).

    Row i of a matrix is the force of dof i, N m or N. Derivatives with respect to q of free and spherical joints are
    along their velocities, in body axes. Scratch: DERIVATIVE_ROWS n.
    """
    if not can_compute(topology, first, (q, qd, qdd)):
        return False
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, 3 * n * n + derivatives.DERIVATIVE_ROWS * n, q)
    derivative_rows = block.rows[: 3 * n * n]
    scratch = block.rows[3 * n * n :].reshape(n, derivatives.DERIVATIVE_ROWS, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(qdd, start, last, block.qdd, k)
        derivatives.inverse_dynamics_derivatives(
            block.model,
            block.q,
            block.qd,
            block.qdd,
            block.loads,
            derivative_rows.reshape(3, n, n, width),
            scratch,
            block.work,
            k,
        )
        unpack(derivative_rows, result, start, last)
    return True


@driver
def forward_dynamics_derivatives(memory, topology, parameters, variation, q, qd, tau, result, first, last):
    """Compute the derivatives of the accelerations with respect to q, qd and tau, `result` (3, n, n).

    Row i of a matrix is the acceleration of dof i, rad/s^2 or m/s^2. Derivatives with respect to q of free and
    spherical joints are along their velocities, in body axes. Scratch: 3 n n + DERIVATIVE_ROWS n + COLUMNS_TOGETHER
    (n + 1) COLUMN_ROWS.
    """
    if not can_compute(topology, first, (q, qd, tau)):
        return False
    n, width, k = topology.shape[1], lane_width(q), all_lanes(q)
    squares, shape = 3 * n * n, (minverse.COLUMNS_TOGETHER, n + 1, minverse.COLUMN_ROWS, width)
    scratch_end = 2 * squares + derivatives.DERIVATIVE_ROWS * n
    block = block_for(memory, topology, parameters, None, scratch_end + shape[0] * shape[1] * shape[2], q)
    derivative_rows, inverse_derivatives = (
        block.rows[:squares],
        block.rows[squares : 2 * squares].reshape(3, n, n, width),
    )
    scratch = block.rows[2 * squares : scratch_end].reshape(n, derivatives.DERIVATIVE_ROWS, width)
    columns = block.rows[scratch_end:].reshape(shape)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(tau, start, last, block.loads.tau, k)
        derivatives.forward_dynamics_derivatives(
            block, derivative_rows.reshape(3, n, n, width), inverse_derivatives, scratch, columns, k
        )
        aba.propagate_nan(derivative_rows, k)
        unpack(derivative_rows, result, start, last)
    return True


@driver
def inverse_dynamics_regressor(memory, topology, parameters, variation, q, qd, qdd, result, first, last):
    """Compute derivatives of joint forces, N m and N, with respect to inertial parameters, `result` (n, bodies, 10)."""
    if not can_compute(topology, first, (q, qd, qdd)):
        return False
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
    return True


@driver
def kinetic_energy_regressor(memory, topology, parameters, variation, q, qd, result, first, last):
    """Compute derivatives of the kinetic energy, J, with respect to inertial parameters, `result` (bodies, 10)."""
    if not can_compute(topology, first, (q, qd)):
        return False
    bodies, width, k = body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, regressors.PARAMETERS_OF_BODY * bodies, q)
    Y = block.rows.reshape(bodies, regressors.PARAMETERS_OF_BODY, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        regressors.kinetic_energy_regressor(block.model, block.q, block.qd, Y, block.work, k)
        unpack(block.rows, result, start, last)
    return True


@driver
def potential_energy_regressor(memory, topology, parameters, variation, q, result, first, last):
    """Compute derivatives of the potential energy, J, with respect to inertial parameters, `result` (bodies, 10)."""
    if not can_compute(topology, first, (q,)):
        return False
    bodies, width, k = body_count(topology), lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, regressors.PARAMETERS_OF_BODY * bodies, q)
    Y = block.rows.reshape(bodies, regressors.PARAMETERS_OF_BODY, width)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        regressors.potential_energy_regressor(block.model, block.q, Y, block.work, k)
        unpack(block.rows, result, start, last)
    return True


@driver
def passive_derivatives(memory, topology, parameters, variation, q, qd, result, first, last):
    """Compute the derivative of each passive joint force with respect to its own q and qd, `result` (2, n).

    Row 0 is in N m/rad or N/m, row 1 in N m s/rad or N s/m. Drag is omitted.
    """
    if not can_compute(topology, first, (q, qd)):
        return False
    n, k = topology.shape[1], all_lanes(q)
    block = block_for(memory, topology, parameters, None, 2 * n, q)
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        for i in range(n):
            stiffness, damping = exact_passive_stiffness_and_damping(i, block.model, block.q, block.qd, k)
            block.rows[i, k], block.rows[n + i, k] = -stiffness, -damping
        unpack(block.rows, result, start, last)
    return True
