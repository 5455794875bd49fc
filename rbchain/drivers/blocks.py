"""Working memory of a block of lanes, and the chains' numbers in and out of it.

Drivers take the numbers of a batch as arrays (chains, m), and compute them in lanes; those of one chain as (m,).
"""

import numpy as np

from ..core.jit import kernel, setup
from ..core.lanes import all_lanes, lane_width, window
from ..core.layout import (
    BODY_ROWS,
    GATHERED_ROWS,
    GATHERING,
    Block,
    Loads,
    Work,
    flat_model,
    number_of,
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
def parameters_for(parameters):
    """The parameters as the kernels read them: shared (n + 1, PARAMETERS), or a copy for each lane of (.., .., 1)."""
    if parameters.ndim == 2:
        return parameters
    n, columns, width = parameters.shape[0], parameters.shape[1], lane_width(parameters)
    of_lanes = aligned(n * columns * width, parameters).reshape(n, columns, width)
    for i in range(n):
        for column in range(columns):
            of_lanes[i, column, :] = parameters[i, column, 0]
    return of_lanes


@setup
def block_for(topology, parameters, wrenches, rows, sample):
    """Memory for one block of lanes, in one allocation, its base settled; `rows` more rows as the driver needs them."""
    n, width = topology.shape[1], lane_width(sample)
    loaded = 0 if wrenches is None else n
    gatherings = 1
    for i in range(n):
        gatherings = max(gatherings, topology[GATHERING, i] + 1)
    of_bodies = (n + 1) * BODY_ROWS * width
    of_gathered = gatherings * GATHERED_ROWS * width
    of_states = of_bodies + of_gathered
    of_wrenches = of_states + 4 * n * width
    own = of_wrenches + 6 * loaded * width
    memory = aligned(own + rows * width, sample)
    block = Block(
        flat_model(topology, parameters_for(parameters)),
        Work(
            window(memory, 0, (n + 1, BODY_ROWS, width)),
            window(memory, of_bodies, (gatherings, GATHERED_ROWS, width)),
        ),
        window(memory, of_states, (n, width)),
        window(memory, of_states + n * width, (n, width)),
        window(memory, of_states + 2 * n * width, (n, width)),
        Loads(window(memory, of_states + 3 * n * width, (n, width)), window(memory, of_wrenches, (loaded, 6, width))),
        window(memory, own, (rows, width)),
        memory,
    )
    settle_base(block.model, block.work, all_lanes(sample))
    return block


@kernel
def take_varied(block, parameters, variation, first, k):
    """Put the own parameters of the chains from `first` on into their lanes of the block's parameters."""
    if parameters.ndim == 2:
        return
    entries, values = variation.entries, variation.values
    for entry in range(entries.shape[0]):
        parameters[entries[entry, 0], entries[entry, 1], k] = values[first // values.shape[2], entry, k]
    settle_base(block.model, block.work, k)


@kernel
def pack(chains, first, last, block, k):
    """Numbers of the chains from `first` on into block (m, lanes); lanes from `last` on repeat the chain before."""
    if chains.ndim == 1:
        for j in range(block.shape[0]):
            block[j, k] = chains[j]
        return
    for lane in range(block.shape[1]):
        chain = min(first + lane, last - 1)
        for j in range(block.shape[0]):
            block[j, lane] = chains[chain, j]


@kernel
def pack_wrenches(chains, first, last, block):
    """`pack` for a block (n, 6, lanes): of each chain and body force before moment, as the world outside has it."""
    if chains is None:
        return
    for i in range(block.shape[0]):
        for axis in range(3):
            force, moment = 6 * i + axis, 6 * i + 3 + axis
            for lane in range(block.shape[2]):
                chain = min(first + lane, last - 1)
                block[i, axis, lane] = number_of(chains, chain, moment)
                block[i, 3 + axis, lane] = number_of(chains, chain, force)


@kernel
def unpack(block, chains, first, last):
    """The reverse of `pack`; lanes from `last` on are dropped."""
    if chains.ndim == 1:
        for j in range(block.shape[0]):
            chains[j] = block[j, 0]
        return
    for lane in range(min(block.shape[1], last - first)):
        for j in range(block.shape[0]):
            chains[first + lane, j] = block[j, lane]
