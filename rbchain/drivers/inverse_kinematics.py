"""Driver of inverse kinematics: the lanes of a block search for different samples, each for as long as it needs."""

from ..compiling.jit import driver, kernel
from ..core.algorithms.inverse_kinematics import (
    ITERATIONS,
    Problem,
    begin_sample,
    evaluate,
    is_done,
    move,
    search_in,
    search_size,
)
from ..core.lanes.lane_memory import all_lanes, lane_width
from ..core.tree.layout import set_sample_parameters
from .blocks import block_for

#: A lane that has no sample.
IDLE = -1


@kernel
def load_sample(block, variation, problem, search, states, sample, lane):
    """Copy a sample to a lane, and begin its search. `states` are q_guess (samples, nq) and goals (samples, rows)."""
    q_guess, goals = states
    # not the width of `variation`, which is None if all samples share the parameters
    set_sample_parameters(block, block.model.parameters, variation, sample, sample % block.q.shape[1], lane)
    for j in range(block.q.shape[0]):
        search.guess[j, lane] = q_guess[sample, j]
    for row in range(search.goals.shape[0]):
        search.goals[row, lane] = goals[sample, row]
    begin_sample(problem, search, block.q, lane)


@kernel
def store_result(search, result, lane):
    """Copy the best positions, the errors of the targets and the number of iterations of a lane to result (m,)."""
    nq = search.best_q.shape[0]
    for j in range(nq):
        result[j] = search.best_q[j, lane]
    for t in range(search.errors.shape[0]):
        for part in range(2):
            result[nq + 2 * t + part] = search.best_errors[t, part, lane]
    result[nq + 2 * search.errors.shape[0]] = search.state[ITERATIONS, lane]


@driver
def inverse_kinematics(
    memory, topology, parameters, variation, targets, starts, limits, goals, tolerance, q_guess, result, first, last
):
    """Find positions in which frames reach their targets: `result` (samples, nq + 2 targets + 1).

    A row holds q, the two errors of each target, m and the length of a `Turn`, and the number of iterations. `targets`
    are `Targets`, `starts`, `limits` and `tolerance` (1,) belong to the `Problem`, and `goals` (samples, rows) are the
    rows of `core.algorithms.target_errors`. q_guess is (samples, nq) and not a single state. A lane whose sample is
    solved takes the next sample.
    """
    n, nq, m = topology.shape[1], q_guess.shape[1], targets.table.shape[1]
    width, k = lane_width(q_guess), all_lanes(q_guess)
    block = block_for(memory, topology, parameters, None, search_size(n, nq, m), q_guess)
    search = search_in(block.rows.reshape(block.rows.size), 0, width, n, nq, m)
    problem, states = Problem(targets, starts, limits, tolerance[0]), (q_guess, goals)
    samples = block.qdd[0]  # of each lane, which no kernel here uses otherwise
    following, active = first, 0
    for lane in range(width):
        load_sample(block, variation, problem, search, states, min(following, last - 1), lane)
        samples[lane] = following if following < last else IDLE
        active += 1 if following < last else 0
        following += 1
    while active > 0:
        evaluate(block.model, problem, search, block.q, block.work, k)
        for lane in range(width):
            if samples[lane] == IDLE or not is_done(problem, search, block.q, lane):
                continue
            store_result(search, result[int(samples[lane])], lane)
            if following < last:
                load_sample(block, variation, problem, search, states, following, lane)
                samples[lane] = following
                following += 1
            else:
                samples[lane] = IDLE
                active -= 1
        move(block.model, problem, search, block.q, k)
    return True
