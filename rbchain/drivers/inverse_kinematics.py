"""Driver of inverse kinematics: the lanes of a block search for different samples, each for as long as it needs."""

from ..compiling.jit import driver, is_given, kernel, only_if
from ..core.algorithms.inverse_kinematics import (
    ITERATIONS,
    Problem,
    begin_sample,
    evaluate,
    is_done,
    keep_best,
    move,
    search_in,
    search_size,
)
from ..core.lanes.lane_memory import all_lanes, lane_width
from ..core.lanes.lanes import constant_like
from ..core.loops.constraint_errors import add_constraints
from ..core.loops.constraint_layout import MEMORY_SIZE, constraints_in
from ..core.spatial.storage import store6
from ..core.tree import frame_layout as frame
from ..core.tree.layout import set_sample_parameters
from .blocks import block_for

#: A lane that has no sample.
IDLE = -1


@only_if(is_given, 0)
@kernel
def constraint_rows(tables):
    """Return the number of rows of the constraints; 0 without constraints."""
    return tables.envelope.shape[1]


@only_if(is_given, 0)
@kernel
def memory_rows(tables):
    """Return how many rows of working memory the constraints need."""
    return tables.sizes[MEMORY_SIZE]


@only_if(lambda tables, *_: is_given(tables))
@kernel
def constraints_of(tables, block, first, k):
    """Create the Constraints in `Block.rows` (rows, lanes), after `first` rows, and set all velocities to zero."""
    zero = constant_like(block.q, 0.0)
    for i in range(block.qd.shape[0]):
        store6(block.work.dof, i, frame.V, k, (zero, zero, zero, zero, zero, zero))
    return constraints_in(block.rows, first, tables, block.qd.shape[0])


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
    """Copy the best positions, the errors, the gap and the number of iterations of a lane to `result`."""
    nq = search.best_q.shape[0]
    for j in range(nq):
        result[j] = search.best_q[j, lane]
    for t in range(search.errors.shape[0]):
        for part in range(2):
            result[nq + 2 * t + part] = search.best_errors[t, part, lane]
    last = nq + 2 * search.errors.shape[0]
    result[last], result[last + 1] = search.best_gap[0, lane], search.state[ITERATIONS, lane]


@driver
def inverse_kinematics(
    memory,
    topology,
    parameters,
    variation,
    targets,
    tables,
    starts,
    limits,
    goals,
    tolerances,
    q_guess,
    result,
    first,
    last,
):
    """Find positions in which frames reach their targets: `result` (samples, nq + 2 targets + 2).

    A row holds q, the two errors of each target, m and the length of a `Turn`, the largest residual of the constraints,
    and the number of iterations. `targets` are `Targets`, `starts`, `limits` and `tolerances` (2,) belong to the
    `Problem`, and `goals` (samples, rows) are the rows of `core.algorithms.target_errors`. `tables` are the
    ConstraintTables, or None without constraints. q_guess is (samples, nq) and not a single state. A lane whose sample
    is solved takes the next sample.
    """
    n, nq, m, count = topology.shape[1], q_guess.shape[1], constraint_rows(tables), targets.table.shape[1]
    width, k = lane_width(q_guess), all_lanes(q_guess)
    size = search_size(n, nq, count, m)
    block = block_for(memory, topology, parameters, None, size + memory_rows(tables), q_guess)
    search = search_in(block.rows.reshape(block.rows.size), 0, width, n, nq, count, m)
    constraints = constraints_of(tables, block, size, k)
    problem, states = Problem(targets, starts, limits, tolerances[0], tolerances[1]), (q_guess, goals)
    samples = block.qdd[0]  # of each lane, which no kernel here uses otherwise
    following, active = first, 0
    for lane in range(width):
        load_sample(block, variation, problem, search, states, min(following, last - 1), lane)
        samples[lane] = following if following < last else IDLE
        active += 1 if following < last else 0
        following += 1
    while active > 0:
        evaluate(block.model, problem, search, block.q, block.work, k)
        add_constraints(constraints, block.model, problem, search, block.q, block.work, k)
        keep_best(problem, search, block.q, k)
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
