"""Working memory of a block of lanes, and the chains' numbers in and out of it.

Drivers see the numbers of a batch as flat arrays: m numbers of chain 0, m numbers of chain 1, and so on.
"""

import numpy as np

from ..core.jit import kernel, setup
from ..core.lanes import all_lanes, lane_width
from ..core.layout import (
    BODY_ROWS,
    GATHERED_ROWS,
    GATHERING,
    Block,
    Loads,
    Work,
    flat_model,
    settle_base,
)


@setup
def aligned(size, sample):
    """An uninitialised array that starts on a cache line, so that no pack straddles two; precision of `sample`."""
    per_line = 64 // sample.itemsize
    room = np.empty(size + per_line, sample.dtype)
    skipped = (-(room.ctypes.data // sample.itemsize)) % per_line
    return room[skipped : skipped + size]


@setup
def parameters_for(parameters, variation):
    """The parameters as the kernels read them: shared as they are, or a copy for each lane where chains differ."""
    if variation is None:
        return parameters
    n, columns, width = parameters.shape[0], parameters.shape[1], lane_width(parameters)
    of_lanes = aligned(n * columns * width, parameters).reshape(n, columns, width)
    for i in range(n):
        for column in range(columns):
            of_lanes[i, column, :] = parameters[i, column]
    return of_lanes


@setup
def block_for(topology, parameters, variation, wrenches, rows, sample):
    """Memory for one block of lanes, in one allocation, its base settled; `rows` more rows as the driver needs them."""
    n, width = topology.shape[1], lane_width(sample)
    loaded = n if wrenches.size > 0 else 0
    gatherings = 1
    for i in range(n):
        gatherings = max(gatherings, topology[GATHERING, i] + 1)
    of_bodies = (n + 1) * BODY_ROWS * width
    of_gathered = of_bodies + gatherings * GATHERED_ROWS * width
    memory = aligned(of_gathered + (4 * n + 6 * loaded + rows) * width, sample)
    work = Work(
        memory[:of_bodies].reshape(n + 1, BODY_ROWS, width),
        memory[of_bodies:of_gathered].reshape(gatherings, GATHERED_ROWS, width),
    )
    state = memory[of_gathered:].reshape(-1, width)
    model = flat_model(topology, parameters_for(parameters, variation))
    settle_base(model, work, all_lanes(sample))
    return Block(
        model,
        work,
        state[:n],
        state[n : 2 * n],
        state[2 * n : 3 * n],
        Loads(state[3 * n : 4 * n], state[4 * n : 4 * n + 6 * loaded].reshape(loaded, 6, width)),
        state[4 * n + 6 * loaded :],
    )


@kernel
def take_varied(block, variation, first, k):
    """Put the own parameters of the chains from `first` on into their lanes."""
    if variation is None:
        return
    entries, values, parameters = variation.entries, variation.values, block.model.parameters
    for entry in range(entries.shape[0]):
        parameters[entries[entry, 0], entries[entry, 1], k] = values[first // values.shape[2], entry, k]
    settle_base(block.model, block.work, k)


@kernel
def pack(chains, first, last, block):
    """Numbers of the chains from `first` on into block (m, lanes); lanes from `last` on repeat the chain before."""
    m = block.shape[0]
    for lane in range(block.shape[1]):
        start = min(first + lane, last - 1) * m
        for j in range(m):
            block[j, lane] = chains[start + j]


@kernel
def unpack(block, chains, first, last):
    """The reverse of `pack`; lanes from `last` on are dropped."""
    m = block.shape[0]
    for lane in range(min(block.shape[1], last - first)):
        start = (first + lane) * m
        for j in range(m):
            chains[start + j] = block[j, lane]


@kernel
def pack_wrenches(chains, first, last, block):
    """`pack` for a block (n, 6, lanes): of each chain and body force before moment, as the world outside has it."""
    n, width = block.shape[0], block.shape[2]
    for lane in range(width):
        start = min(first + lane, last - 1) * 6 * n
        for i in range(n):
            for axis in range(3):
                block[i, axis, lane] = chains[start + 6 * i + 3 + axis]
                block[i, 3 + axis, lane] = chains[start + 6 * i + axis]
