"""Memory of a block of lanes. The states of its samples are copied into it, and the results out of it.

Drivers take the numbers of a batch as arrays (samples, m), and compute them in lanes; those of one sample as (m,).
"""

from numba.extending import overload

from ..core.simd.jit import choose, kernel
from ..core.simd.lane_memory import (
    CACHE_LINE,
    aligned_start,
    all_lanes,
    can_stream,
    gather_half_squares,
    gather_square,
    lane_width,
    scatter_half_squares,
    scatter_square,
    stream_square,
    window,
)
from ..core.simd.lanes import constant_like
from ..core.tree.layout import (
    CONTRIBUTION_ROWS,
    DOF_ROWS,
    IN_WATER,
    PARAM_COLUMNS_IN_WATER,
    TOPOLOGY_BODY,
    TOPOLOGY_CONTRIBUTION_ROW,
    TOPOLOGY_COORDINATE,
    Block,
    Loads,
    Work,
    flat_model,
    reset_base,
    sample_entry,
)


def memory_size(topology, rows, width, itemsize):
    """How many numbers `block_for` needs for a block of `width` lanes and `rows` more rows, whatever the driver."""
    n, contribution_rows, most_positions = (
        topology.shape[1],
        topology[TOPOLOGY_CONTRIBUTION_ROW].max() + 1,
        topology[TOPOLOGY_COORDINATE].max() + 7,
    )
    states = most_positions + 3 * n
    rows_in_all = (
        (n + 1) * (DOF_ROWS + PARAM_COLUMNS_IN_WATER) + contribution_rows * CONTRIBUTION_ROWS + states + 6 * n + rows
    )
    return int(rows_in_all * width + CACHE_LINE // itemsize)


@kernel
def body_count(topology):
    """How many bodies there are outside: those that are the last of their joint."""
    count = 0
    for i in range(topology.shape[1]):
        count = max(count, topology[TOPOLOGY_BODY, i] + 1)
    return count


@kernel
def block_for(memory, topology, parameters, wrenches, rows, q):
    """Lay out a block of lanes for positions `q` in `memory` and reset its base; `rows` more rows, set to zero."""
    n, nq, width = topology.shape[1], q.shape[q.ndim - 1], lane_width(q)
    loaded = 0
    if wrenches is not None:
        loaded = n if wrenches.size > 0 else 0
    contribution_rows = 1
    for i in range(n):
        contribution_rows = max(contribution_rows, topology[TOPOLOGY_CONTRIBUTION_ROW, i] + 1)
    bodies = aligned_start(memory)
    contributions = bodies + (n + 1) * DOF_ROWS * width
    states = contributions + contribution_rows * CONTRIBUTION_ROWS * width
    velocities = states + nq * width
    wrench = velocities + 3 * n * width
    own = wrench + 6 * loaded * width
    of_lanes = window(memory, own + rows * width, (*parameters.shape[:2], width))
    chosen = choose_parameters(parameters, of_lanes)
    block = Block(
        flat_model(topology, chosen, water_of(topology, chosen)),
        Work(
            window(memory, bodies, (n + 1, DOF_ROWS, width)),
            window(memory, contributions, (contribution_rows, CONTRIBUTION_ROWS, width)),
        ),
        window(memory, states, (nq, width)),
        window(memory, velocities, (n, width)),
        window(memory, velocities + n * width, (n, width)),
        Loads(window(memory, velocities + 2 * n * width, (n, width)), window(memory, wrench, (loaded, 6, width)), None),
        window(memory, own, (rows, width)),
    )
    for row in range(rows):
        for lane in range(width):
            block.rows[row, lane] = constant_like(memory, 0.0)
    reset_base(block.model, block.work, all_lanes(q))
    return block


# The chosen parameters of a model in water, or None: it is the type of the topology's integers that tells.
water_of = choose(
    lambda topology, chosen: str(topology.dtype) == IN_WATER.__name__,
    lambda topology, chosen: chosen,
    lambda topology, chosen: None,
)


def choose_parameters(shared, of_lanes):
    """The parameters that kernels read: shared ones as they are; (n + 1, PARAM_COLUMNS, 1) copied to each lane."""
    if shared.ndim == 2:
        return shared
    for i in range(shared.shape[0]):
        for column in range(shared.shape[1]):
            for lane in range(of_lanes.shape[2]):
                of_lanes[i, column, lane] = shared[i, column, 0]
    return of_lanes


@overload(choose_parameters)
def _overload_choose_parameters(shared, of_lanes):
    # Numba would see one function return arrays of two shapes. `choose` would inline the loop into every driver.
    if shared.ndim == 2:
        return lambda shared, of_lanes: shared
    return choose_parameters


@kernel
def pack(samples, first, last, block, k):
    """Numbers of the samples from `first` on into block (m, lanes); lanes from `last` on repeat the sample before."""
    if samples.ndim == 1:
        for j in range(block.shape[0]):
            block[j, k] = samples[j]
        return
    rows, width = block.shape
    if last - first >= width and rows >= width:
        for j in range(0, rows, width):
            gather_square(samples, block, first, min(j, rows - width))
        return
    half = width // 2
    if last - first >= width and rows >= half > 1:
        for j in range(0, rows, half):
            gather_half_squares(samples, block, first, min(j, rows - half))
        return
    for lane in range(width):
        sample = min(first + lane, last - 1)
        for j in range(block.shape[0]):
            block[j, lane] = samples[sample, j]


@kernel
def pack_wrenches(samples, first, last, block):
    """`pack` for a block (n, 6, lanes), which is empty if there are no wrenches."""
    if samples.size == 0:
        return
    for i in range(block.shape[0]):
        for row in range(6):
            for lane in range(block.shape[2]):
                block[i, row, lane] = sample_entry(samples, min(first + lane, last - 1), 6 * i + row)


@kernel
def unpack(block, samples, first, last):
    """The reverse of `pack`; lanes from `last` on are dropped."""
    if samples.ndim == 1:
        for j in range(block.shape[0]):
            samples[j] = block[j, 0]
        return
    rows, width = block.shape
    if last - first >= width and rows >= width:
        if can_stream(samples, block):
            for j in range(0, rows, width):
                stream_square(samples, block, first, j)
            return
        for j in range(0, rows, width):
            scatter_square(samples, block, first, min(j, rows - width))
        return
    half = width // 2
    if last - first >= width and rows >= half > 1:
        for j in range(0, rows, half):
            scatter_half_squares(samples, block, first, min(j, rows - half))
        return
    for lane in range(min(width, last - first)):
        for j in range(block.shape[0]):
            samples[first + lane, j] = block[j, lane]
