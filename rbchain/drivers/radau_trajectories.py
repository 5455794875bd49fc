"""The driver of `simulate` for the method "radau", and the memory that it needs."""

import numpy as np

from ..compiling.jit import driver, kernel
from ..core.lanes.lane_memory import CACHE_LINE, aligned_start, all_lanes
from ..core.linear.complex_systems import carve_complex_systems, complex_systems_size
from ..core.linear.linearised_rate import LinearisedRate
from ..core.methods.adaptive_methods import rates_of_step
from ..core.methods.radau import PAIRS, carve_radau_step, radau_step_size
from ..core.motion.adaptive_steps import integrate_adaptive_steps
from ..core.sample.records import Batch, Stepper
from .trajectories import linearised_rate_in, linearised_rate_memory, memory_for, records_for, trajectory_memory


def radau_memory(topology, tables, state_size, stages, actions, width, dtype, has_work=False):
    """Allocate the memory for one call of `radau_steps`: that of the other drivers, and of a RadauStep."""
    n, integrals = topology.shape[1], 0 if actions is None else actions.integrals
    rows = complex_systems_size(PAIRS, n, state_size - n - integrals, state_size) + radau_step_size(state_size)
    return (
        trajectory_memory(topology, tables, state_size, stages, actions, width, dtype, has_work),
        linearised_rate_memory(n, tables, integrals, state_size, width, dtype),
        np.zeros(rows * width + CACHE_LINE // dtype.itemsize, dtype),
        np.zeros((PAIRS, 2 * n, width), np.int64),
    )


@kernel
def radau_step_in(memory, tables, nq, size):
    """Create the RadauStep of a block with nq positions and `size` rows of the state."""
    (linear_numbers, linear_pivots), numbers, pivots = memory[1], memory[2], memory[3]
    n, width = linear_pivots.shape
    linear = without_tree(linearised_rate_in(linear_numbers, linear_pivots, tables, nq, size))
    start = aligned_start(numbers)
    systems = carve_complex_systems(numbers, start, width, linear, pivots, PAIRS, n, nq, size)
    stages = start + complex_systems_size(PAIRS, n, nq, size) * width
    return carve_radau_step(numbers, stages, width, systems, size)


@kernel
def without_tree(linear):
    """Return the LinearisedRate without memory for trees, so that its systems have matrices."""
    derivatives, by_integral, by_time, factors, pivots, direction, tangent, displacement = linear[:8]
    state, rates, of_forces, dofs, _, of_constraints = linear[8:]
    return LinearisedRate(
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


@kernel
def radau_memory_for(memory, topology, tables, parameters, q, actions, shape):
    """Create the block and the Stepper of a Radau method, as `memory_for` does."""
    block, stepper = memory_for(memory[0], topology, tables, parameters, q, actions, shape)
    y, y_new, change, rates, control, clock, tally, _, spare, work = stepper
    step = radau_step_in(memory, tables, block.q.shape[0], shape[0])
    return block, Stepper(y, y_new, change, rates, control, clock, tally, step, spare, work)


@driver
def radau_steps(
    memory, topology, parameters, variation, tables, settings, start, actions, times, saved, outcome, first, last
):
    """Integrate the samples [first, last) by a Radau method, each with its own adaptive step.

    `memory` is from `radau_memory`; the other arguments are as for `adaptive_steps`.
    """
    tableau, shape = settings.tableau, (outcome.end_states.shape[1], rates_of_step(settings.tableau))
    block, stepper = radau_memory_for(memory, topology, tables, parameters, start.q, actions, shape)
    batch = Batch(start, variation, times, saved, outcome, records_for(actions))
    integrate_adaptive_steps(block, stepper, tableau, batch, settings.tolerances, (first, last), all_lanes(start.q))
