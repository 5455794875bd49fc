"""Drivers of closed loops, which copy states into lanes and results out, as in `dynamics`.

`tables` are the ConstraintTables of the mechanism, m is the number of rows of all constraints. The rows of added
inertias follow them and are not part of the results. `constraint_residual` and `constraint_jacobian` expect tables
without added inertias. The other arguments are as in `dynamics`.
"""

from ..compiling.jit import driver, kernel, plain_or_compiled
from ..core.algorithms import aba, derivatives, minverse
from ..core.lanes.lane_memory import all_lanes, lane_width
from ..core.lanes.lanes import constant_like, epsilon, full_like
from ..core.loops import (
    constrained_derivatives,
    constraint_jacobian as constraint_jacobian_kernels,
    constraint_layout as closure,
    constraint_minimum_norm,
    constraint_rows,
    equation_layout as equation,
)
from ..core.loops.constrained_dynamics import (
    constrained_forward_dynamics,
    constrained_hybrid_dynamics,
    larger,
    largest_error,
    project_state,
)
from ..core.loops.constraint_layout import constraint_derivatives_in, constraint_derivatives_size, constraints_in
from ..core.tree.layout import TOPOLOGY_BODY, set_sample_parameters
from .blocks import block_for, body_count, pack, pack_wrenches, unpack
from .single_states import can_compute

#: Epsilon to this power is added to the scales of the residuals of initial states, in m, rad, m/s and rad/s, because
#: the velocities of a part at rest may be round-off.
NEARLY_AT_REST = 0.4


@kernel
def constraints_of(block, tables, results):
    """Create the Constraints in `Block.rows` (rows, lanes), after `results` rows; each factorization decides ranks."""
    constraints = constraints_in(block.rows, results, tables, block.qd.shape[0])
    for lane in range(constraints.flags.shape[1]):
        constraints.flags[closure.FLAG_DECIDES, lane] = constant_like(block.q, 1.0)
    return constraints


@kernel
def memory_rows(tables):
    """Return how many rows of working memory the constraints need."""
    return tables.sizes[closure.MEMORY_SIZE]


@kernel
def pack_and_compute(block, constraints, variation, states, start, last, k):
    """Copy the samples [start, last) into the lanes of a block, and compute their accelerations and multipliers.

    `states` are q, qd, tau and wrenches, as in `dynamics`. Writes `Block.qdd` (n, lanes), rad/s^2 and m/s^2, and the
    multipliers, N and N m.
    """
    q, qd, tau, wrenches = states
    set_sample_parameters(block, block.model.parameters, variation, start, k, k)
    pack(q, start, last, block.q, k)
    pack(qd, start, last, block.qd, k)
    pack(tau, start, last, block.loads.tau, k)
    pack_wrenches(wrenches, start, last, block.loads.wrenches)
    constrained_forward_dynamics(block.model, constraints, block.q, block.qd, block.loads, block.qdd, block.work, k)


@driver
def forward_dynamics(memory, topology, parameters, variation, tables, q, qd, tau, wrenches, qdd, first, last):
    """Compute joint accelerations `qdd` (n) of a closed loop from joint forces; NaN for a sample that is singular."""
    if not can_compute(topology, first, (q, qd, tau)):
        return False
    k = all_lanes(q)
    block = block_for(memory, topology, parameters, wrenches, memory_rows(tables), q)
    constraints = constraints_of(block, tables, 0)
    for start in range(first, last, lane_width(q)):
        pack_and_compute(block, constraints, variation, (q, qd, tau, wrenches), start, last, k)
        aba.propagate_nan(block.qdd, k)
        unpack(block.qdd, qdd, start, last)
    return True


@plain_or_compiled
def scratch_of_derivatives(m, n):
    """Return the scratch of `forward_dynamics_derivatives` for m rows of constraints and n dofs."""
    columns = minverse.COLUMNS_TOGETHER * (n + 1) * minverse.COLUMN_ROWS
    return 3 * n * n + derivatives.DERIVATIVE_ROWS * n + columns + constraint_derivatives_size(m, n, 0)


@driver
def forward_dynamics_derivatives(memory, topology, parameters, variation, tables, q, qd, tau, result, first, last):
    """Compute the derivatives of the accelerations of closed loops with respect to q, qd and tau, `result` (3, n, n).

    Row i of a matrix is the acceleration of dof i, rad/s^2 or m/s^2. Derivatives with respect to q of free and
    spherical joints are along their velocities, in body axes. Scratch: `scratch_of_derivatives`.
    """
    if not can_compute(topology, first, (q, qd, tau)):
        return False
    n, m, width, k = topology.shape[1], tables.envelope.shape[1], lane_width(q), all_lanes(q)
    squares, shape = 3 * n * n, (minverse.COLUMNS_TOGETHER, n + 1, minverse.COLUMN_ROWS, width)
    scratch_end = 2 * squares + derivatives.DERIVATIVE_ROWS * n
    columns_end = scratch_end + shape[0] * shape[1] * shape[2]
    rows = squares + scratch_of_derivatives(m, n)
    block = block_for(memory, topology, parameters, None, rows + memory_rows(tables), q)
    constraints = constraints_of(block, tables, rows)
    flat = block.rows.reshape(block.rows.size)
    parts = constraint_derivatives_in(flat, columns_end * width, width, m, n, 0)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(tau, start, last, block.loads.tau, k)
        constrained_derivatives.constrained_forward_dynamics_derivatives(
            block,
            constraints,
            block.rows[:squares].reshape(3, n, n, width),
            block.rows[squares : 2 * squares].reshape(3, n, n, width),
            block.rows[2 * squares : scratch_end].reshape(n, derivatives.DERIVATIVE_ROWS, width),
            block.rows[scratch_end:columns_end].reshape(shape),
            parts,
            k,
        )
        aba.propagate_nan(block.rows[:squares], k)
        unpack(block.rows[:squares], result, start, last)
    return True


@driver
def constraint_forces(memory, topology, parameters, variation, tables, q, qd, tau, wrenches, multipliers, first, last):
    """Compute the `multipliers` (m) of all constraints, N and N m, which act on body b.

    The multipliers of dependent rows have the minimum norm.
    """
    if not can_compute(topology, first, (q, qd, tau)):
        return False
    m, k = tables.sizes[closure.CONSTRAINT_ROWS], all_lanes(q)
    block = block_for(memory, topology, parameters, wrenches, m + memory_rows(tables), q)
    constraints, found = constraints_of(block, tables, m), block.rows[:m]
    for start in range(first, last, lane_width(q)):
        pack_and_compute(block, constraints, variation, (q, qd, tau, wrenches), start, last, k)
        constraint_minimum_norm.minimum_norm_multipliers(constraints, k)
        store_in_order(constraints, equation.MULTIPLIER, found, k)
        aba.propagate_nan(found, k)
        unpack(found, multipliers, start, last)
    return True


@kernel
def store_in_order(constraints, column, found, k):
    """Copy one column of `Constraints.rows` to `found` (m, lanes), in the order of the interface.

    The rows of added inertias are omitted.
    """
    table = constraints.tables.table
    for c in range(table.shape[1]):
        if table[closure.TYPE, c] == closure.ADDED_INERTIA:
            continue
        for r in range(table[closure.ROW_COUNT, c]):
            found[table[closure.OUTPUT, c] + r, k] = constraints.rows[table[closure.ROW, c] + r, column, k]


@driver
def constraint_residual(memory, topology, parameters, variation, tables, q, qd, residuals, first, last):
    """Compute the residuals of all rows, m or rad, and their rates, m/s or rad/s: `residuals` (2, m)."""
    if not can_compute(topology, first, (q, qd)):
        return False
    m, k = tables.envelope.shape[1], all_lanes(q)
    block = block_for(memory, topology, parameters, None, 2 * m + memory_rows(tables), q)
    constraints = constraints_of(block, tables, 2 * m)
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        constraint_rows.move_and_update_rows(block.model, constraints, block.q, block.qd, block.work, k)
        store_in_order(constraints, equation.RESIDUAL, block.rows[:m], k)
        store_in_order(constraints, equation.RATE, block.rows[m : 2 * m], k)
        unpack(block.rows[: 2 * m], residuals, start, last)
    return True


@driver
def constraint_jacobian(memory, topology, parameters, variation, tables, q, J, first, last):
    """Compute the Jacobian `J` (m, n) of the residuals with respect to a change of q along the tangent space.

    The entries are in m or rad per rad or m. The columns of free and spherical joints refer to their velocities, in
    body axes.
    """
    if not can_compute(topology, first, (q,)):
        return False
    n, m, width, k = topology.shape[1], tables.envelope.shape[1], lane_width(q), all_lanes(q)
    block = block_for(memory, topology, parameters, None, m * n + memory_rows(tables), q)
    constraints, found = constraints_of(block, tables, m * n), block.rows[: m * n].reshape(m, n, width)
    for i in range(n):
        block.qd[i, k] = constant_like(block.qd, 0.0)
    for start in range(first, last, width):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        for row in range(m * n):
            block.rows[row, k] = constant_like(block.rows, 0.0)
        constraint_rows.move_and_update_rows(block.model, constraints, block.q, block.qd, block.work, k)
        constraint_jacobian_kernels.constraint_jacobian(block.model, constraints, found, closure.OUTPUT, block.work, k)
        unpack(block.rows[: m * n], J, start, last)
    return True


@driver
def constraint_wrenches(memory, topology, parameters, variation, tables, q, qd, tau, wrenches, forces, first, last):
    """Compute the forces of all constraints: `forces` (6 bodies + n), wrenches on bodies, then joint forces.

    A wrench is a force, N, then a moment about the body's origin, N m, in world axes. Joint forces are in N m and N.
    """
    if not can_compute(topology, first, (q, qd, tau)):
        return False
    n, bodies, width, k = topology.shape[1], body_count(topology), lane_width(q), all_lanes(q)
    size = 6 * bodies + n
    block = block_for(memory, topology, parameters, wrenches, size + 6 * n + memory_rows(tables), q)
    constraints = constraints_of(block, tables, size + 6 * n)
    found = block.rows[size : size + 6 * n].reshape(n, 6, width)
    for start in range(first, last, width):
        pack_and_compute(block, constraints, variation, (q, qd, tau, wrenches), start, last, k)
        constraint_minimum_norm.minimum_norm_multipliers(constraints, k)
        for row in range(size + 6 * n):
            block.rows[row, k] = constant_like(block.rows, 0.0)
        constraint_jacobian_kernels.constraint_wrenches(
            block.model, constraints, found, block.rows[6 * bodies : size], k
        )
        for i in range(n):
            b = topology[TOPOLOGY_BODY, i]
            if b >= 0:
                for row in range(6):
                    block.rows[6 * b + row, k] = found[i, row, k]
        aba.propagate_nan(block.rows[:size], k)
        unpack(block.rows[:size], forces, start, last)
    return True


@driver
def closed_states(memory, topology, parameters, variation, tables, q, qd, held, states, first, last):
    """Project states onto the constraints.

    `states` (nq + n + 2) are q, qd and the largest residuals before and after, relative to the scale of round-off. The
    units of q and qd are as in `dynamics`. Dofs in which `held` (n) is 1 keep their position and velocity.
    """
    if not can_compute(topology, first, (q, qd, held)):
        return False
    nq, n, k = q.shape[q.ndim - 1], topology.shape[1], all_lanes(q)
    size = nq + n + 2
    block = block_for(memory, topology, parameters, None, size + n + memory_rows(tables), q)
    constraints, held_rows = constraints_of(block, tables, size + n), block.rows[size : size + n]
    for start in range(first, last, lane_width(q)):
        set_sample_parameters(block, block.model.parameters, variation, start, k, k)
        pack(q, start, last, block.q, k)
        pack(qd, start, last, block.qd, k)
        pack(held, start, last, held_rows, k)
        for i in range(n):
            block.qdd[i, k] = constant_like(block.qdd, 0.0)
            block.loads.tau[i, k] = constant_like(block.qdd, 0.0)
        one = full_like(block.q[0, k], 1.0)
        for stage in range(2):  # whether rates depend on each other is known only for closed positions
            constrained_hybrid_dynamics(
                block.model, constraints, block.q, block.qd, block.loads, block.qdd, held_rows, block.work, k
            )
            if stage == 0:
                constraint_rows.update_speeds(block.model, constraints, block.qd, block.work, k)
                smallest = constant_like(block.q, epsilon(block.q) ** NEARLY_AT_REST)
                residual = largest_error(constraints, equation.RESIDUAL, equation.SCALE, smallest, k)
                rate = largest_error(constraints, equation.RATE, equation.SPEED, smallest, k)
                block.rows[nq + n, k] = larger(residual, rate)
            project_state(block.model, constraints, block.q, block.qd, block.work, one, stage == 1, k)
        for j in range(nq):
            block.rows[j, k] = block.q[j, k]
        for j in range(n):
            block.rows[nq + j, k] = block.qd[j, k]
        block.rows[nq + n + 1, k] = constraints.flags[closure.FLAG_ERROR, k]
        unpack(block.rows[:size], states, start, last)
    return True
