"""Memory of a block: copies of the states of a block's samples into lanes, and of the results out of them.

The numbers of a batch are arrays (samples, m), which drivers compute in lanes. The numbers of a single sample are
arrays (m,), which drivers compute as scalars. The arrays and their units are described in `dynamics`: `memory` (m,),
`topology` (TOPOLOGY_ROWS, n), `parameters`, q (samples, nq) or (nq,), and `wrenches` (samples, 6 n) or (6 n,).
"""

from ..compiling.jit import kernel, only_if, routine
from ..core.lanes.lane_memory import (
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
from ..core.lanes.lanes import constant_like
from ..core.tree import frame_layout as frame, parameter_layout as param
from ..core.tree.layout import (
    CONTRIBUTION_ROWS,
    IN_WATER,
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


def memory_size(topology, rows, width, itemsize, constraints=0):
    """Return how many numbers `block_for` needs for `width` lanes, for any driver.

    `topology` is (TOPOLOGY_ROWS, n), `constraints` the number of constraints, `rows` the number of the driver's rows.
    """
    n, contribution_rows, max_nq = (
        topology.shape[1],
        topology[TOPOLOGY_CONTRIBUTION_ROW].max() + 1,
        topology[TOPOLOGY_COORDINATE].max() + 7,
    )
    states = max_nq + 3 * n
    total_rows = (
        (n + 1) * frame.ROWS
        + (n + 1 + constraints) * param.COLUMNS_IN_WATER
        + contribution_rows * CONTRIBUTION_ROWS
        + states
        + 6 * n
        + rows
    )
    return int(total_rows * width + CACHE_LINE // itemsize)


@kernel
def body_count(topology):
    """Return the number of bodies of the mechanism."""
    count = 0
    for i in range(topology.shape[1]):
        count = max(count, topology[TOPOLOGY_BODY, i] + 1)
    return count


@kernel
def block_for(memory, topology, parameters, wrenches, rows, q):
    """Create the block for positions `q` in `memory`, of `memory_size` numbers, and reset it.

    `rows` rows of the block are for the driver, and zero at first. Without `wrenches` (None or empty), the block has no
    memory for them. Only the shape and the type of q are used.
    """
    block = block_in(memory, topology, parameters, wrenches, rows, q)
    reset_block(block, parameters, all_lanes(q))
    return block


@kernel
def block_in(memory, topology, parameters, wrenches, rows, q):
    """Create the block as `block_for` does, with the numbers that its memory contains."""
    n, nq, width = topology.shape[1], q.shape[q.ndim - 1], lane_width(q)
    wrench_dofs = 0
    if wrenches is not None:
        wrench_dofs = n if wrenches.size > 0 else 0
    contribution_rows = 1
    for i in range(n):
        contribution_rows = max(contribution_rows, topology[TOPOLOGY_CONTRIBUTION_ROW, i] + 1)
    dofs = aligned_start(memory)
    contributions = dofs + (n + 1) * frame.ROWS * width
    states = contributions + contribution_rows * CONTRIBUTION_ROWS * width
    velocities = states + nq * width
    wrench = velocities + 3 * n * width
    driver_rows = wrench + 6 * wrench_dofs * width
    copies = window(memory, driver_rows + rows * width, (*parameters.shape[:2], width))
    block_parameters = choose_parameters(parameters, copies)
    return Block(
        model=flat_model(topology, block_parameters, water_of(topology, block_parameters)),
        work=Work(
            window(memory, dofs, (n + 1, frame.ROWS, width)),
            window(memory, contributions, (contribution_rows, CONTRIBUTION_ROWS, width)),
        ),
        q=window(memory, states, (nq, width)),
        qd=window(memory, velocities, (n, width)),
        qdd=window(memory, velocities + n * width, (n, width)),
        loads=Loads(
            window(memory, velocities + 2 * n * width, (n, width)),
            window(memory, wrench, (wrench_dofs, 6, width)),
            None,
        ),
        rows=window(memory, driver_rows, (rows, width)),
        constraints=None,
    )


@kernel
def reset_block(block, parameters, k):
    """Set the rows of the driver to zero, the parameters to the numbers of the model, and the base to rest."""
    copy_parameters(parameters, block.model.parameters)
    for row in range(block.rows.shape[0]):
        for lane in range(block.rows.shape[1]):
            block.rows[row, lane] = constant_like(block.rows, 0.0)
    reset_base(block.model, block.work, k)


@only_if(lambda topology, parameters: str(topology.dtype) == IN_WATER.__name__)
@kernel
def water_of(topology, parameters):
    """Return the parameters if the model is in water, else None. The integer type of the topology decides."""
    return parameters


def are_shared(parameters, *_):
    """Whether all samples have the same parameters, and blocks have no copies of them."""
    return parameters.ndim == 2


@only_if(lambda parameters, copies: not are_shared(parameters))
@routine
def copy_parameters(parameters, copies):
    """Copy parameters (n + 1, param.COLUMNS, 1) to all lanes of `copies` (n + 1, param.COLUMNS, lanes)."""
    for i in range(parameters.shape[0]):
        for column in range(parameters.shape[1]):
            for lane in range(copies.shape[2]):
                copies[i, column, lane] = parameters[i, column, 0]


@only_if(are_shared, otherwise=lambda parameters, copies: copies)
@kernel
def choose_parameters(parameters, copies):
    """Return the parameters that kernels read: shared ones themselves, or a copy for each lane if samples differ.

    `parameters` is (n + 1, param.COLUMNS), or (n + 1, param.COLUMNS, 1) if samples differ. `copies` is
    (n + 1, param.COLUMNS, lanes).
    """
    return parameters


@kernel
def pack(samples, first, last, block, k):
    """Copy the samples [first, last) into the lanes of block (m, lanes). The lanes after them repeat the last sample.

    `samples` is (samples, m). A whole block is copied in squares that are transposed in registers. If their size does
    not divide m, the last two squares overlap. A single sample (m,) goes to lane k.
    """
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
    """Copy wrenches (samples, 6 n) or (6 n,) into block (n, 6, lanes), as `pack` does; without them, both are empty."""
    if samples.size == 0:
        return
    for i in range(block.shape[0]):
        for row in range(6):
            for lane in range(block.shape[2]):
                block[i, row, lane] = sample_entry(samples, min(first + lane, last - 1), 6 * i + row)


@kernel
def unpack(block, samples, first, last):
    """Copy the lanes of block (m, lanes) to the samples [first, last).

    `samples` is (samples, m), or (m,) for a single sample.
    """
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
