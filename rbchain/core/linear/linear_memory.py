"""Memory of a LinearizedRate: its allocation, and its division among the fields."""

import numpy as np

from ...compiling.jit import is_given, kernel, only_if
from ..lanes.lane_memory import CACHE_LINE, aligned_start
from ..loops.constraint_layout import constraint_derivatives_in, constraint_derivatives_size
from .linearized_rate import LinearizedRate, carve_linearized_rate, linearized_rate_size


def linearized_rate_memory(n, tables, integrals, state_size, width, dtype, blocks=1):
    """Allocate the memory of the LinearizedRate of each block, for n dofs and `state_size` rows of the state.

    Returns the numbers (blocks, m) and the pivots (blocks, n, width), int64.
    """
    rows = linearized_rate_size(n, state_size - n - integrals, integrals)
    rows += 0 if tables is None else constraint_derivatives_size(tables.envelope.shape[1], n, integrals)
    return (
        np.zeros((blocks, rows * width + CACHE_LINE // dtype.itemsize), dtype),
        np.zeros((blocks, n, width), np.int64),
    )


@only_if(lambda numbers, start, tables, sizes, width: is_given(tables))
@kernel
def constraint_derivatives_in_block(numbers, start, tables, sizes, width):
    """Return the ConstraintDerivatives of a block, or None for an open chain.

    `numbers` (m,) is the memory of a block, `tables` are ConstraintTables, or None, and `sizes` are the numbers of dofs
    and of integrals.
    """
    n, integrals = sizes
    return constraint_derivatives_in(numbers, start, width, tables.envelope.shape[1], n, integrals)


@kernel
def linearized_rate_in(numbers, pivots, tables, nq, size):
    """Create the LinearizedRate of a block with nq positions and `size` rows of the state.

    `numbers` (m,) and `pivots` (n, lanes) are the memory of one block, and `tables` are ConstraintTables, or None.
    """
    n, width = pivots.shape
    integrals, start = size - nq - n, aligned_start(numbers)
    of_constraints = constraint_derivatives_in_block(
        numbers, start + linearized_rate_size(n, nq, integrals) * width, tables, (n, integrals), width
    )
    return carve_linearized_rate(numbers, start, width, pivots, of_constraints, n, nq, integrals)


@kernel
def without_tree(linear):
    """Return the LinearizedRate without memory for trees, so that its systems have matrices."""
    derivatives, by_integral, by_time, factors, pivots, direction, tangent, displacement = linear[:8]
    state, rates, of_forces, dofs, _, of_constraints = linear[8:]
    return LinearizedRate(
        derivatives,
        by_integral,
        by_time,
        factors,
        pivots,
        direction,
        tangent,
        displacement,
        state,
        rates,
        of_forces,
        dofs,
        None,
        of_constraints,
    )
