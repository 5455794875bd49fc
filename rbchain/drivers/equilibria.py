"""Driver of the search for equilibria: the lanes of a block search for different samples, each as long as it needs."""

import numpy as np

from ..compiling.jit import driver, kernel
from ..core.lanes.lane_memory import CACHE_LINE, aligned_start, all_lanes, lane_width
from ..core.lanes.lanes import constant_like
from ..core.linear.descent import IS_DONE, begin_descent, descent_in, descent_size, move_down, sum_forces
from ..core.linear.linear_memory import linearized_rate_in, without_tree
from ..core.linear.linearized_rate import differentiate_exactly
from ..core.sample import control_layout as controls
from ..core.sample.rate import evaluate
from .linearized import linearized_memory
from .trajectories import load_row, memory_for

#: A lane that has no sample.
IDLE = -1


def equilibria_memory(topology, tables, state_size, actions, lanes):
    """Allocate the memory of a call, with the arguments of `linearized_memory`."""
    width, dtype = lanes
    n = topology.shape[1]
    numbers = descent_size(n, state_size - n) * width + CACHE_LINE // dtype.itemsize
    return (*linearized_memory(topology, tables, state_size, actions, lanes), np.zeros(numbers, dtype))


@kernel
def begin_sample(block, stepper, descent, states, of_samples, times, sample, lane):
    """Copy a sample to a lane, and begin its search."""
    load_row(block, stepper, states, sample, of_samples, (sample, times[sample]), lane)
    begin_descent(descent, stepper.y[: descent.start.shape[0]], lane)


@driver
def equilibria(memory, topology, parameters, variation, tables, states, tau, actions, times, most, result, first, last):
    """Search for positions at rest near q: `result` (samples, nq). `states` are q, qd of zero and no integrals.

    `memory` is from `equilibria_memory`. tau (samples, n) are
    the constant joint forces, N m and N, and `times` (samples,) are in s. The search ends after
    `most` evaluations. A lane whose sample is at rest takes the next
    one.
    """
    q, _, integrals = states
    nq, n, m, width, k = q.shape[1], topology.shape[1], integrals.shape[1], lane_width(q), all_lanes(q)
    of_states, of_linear, scratch = memory
    block, stepper = memory_for(of_states, 0, topology, tables, parameters, q, actions, (nq + n + m, 1))
    linear = without_tree(linearized_rate_in(of_linear[0][0], of_linear[1][0], tables, nq, nq + n + m))
    descent = descent_in(scratch, aligned_start(scratch), width, n, nq)
    y, rate, samples = stepper.y, stepper.rates[0], of_linear[1][0][0]  # the pivots, which no kernel here uses
    following, active = first, 0
    for lane in range(width):
        begin_sample(block, stepper, descent, states, (variation, tau), times, min(following, last - 1), lane)
        samples[lane] = following if following < last else IDLE
        active += 1 if following < last else 0
        following += 1
    while active > 0:
        t = stepper.control[controls.TIME, k]
        evaluate(block, y, t, rate, k)
        for i in range(n):
            linear.direction[i, k] = rate[nq + i, k]
            rate[nq + i, k] = constant_like(y, 0.0)  # the stiffness at rest
        differentiate_exactly(block, linear, y, rate, t, k)
        sum_forces(linear.derivatives, descent, linear.direction, k)
        move_down(block.model, linear.derivatives, descent, most, y[:nq], k)
        for lane in range(width):
            if samples[lane] == IDLE or descent.state[IS_DONE, lane] == 0.0:
                continue
            for j in range(nq):
                result[samples[lane], j] = descent.found[j, lane]
            if following < last:
                begin_sample(block, stepper, descent, states, (variation, tau), times, following, lane)
                samples[lane] = following
                following += 1
            else:
                samples[lane] = IDLE
                active -= 1
    return True
