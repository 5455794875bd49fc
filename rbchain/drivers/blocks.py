"""Working memory of a block of lanes, and the chains' numbers in and out of it."""

import numpy as np

from ..core.jit import kernel, setup
from ..core.lanes import lane_width
from ..core.layout import BODY_ROWS, GATHERED_ROWS, GATHERING, PARAMETERS, Work


@setup
def aligned(shape, like_array):
    """An uninitialised array that starts on a cache line, so that no pack straddles two."""
    size = 1
    for extent in shape:
        size *= extent
    per_line = 64 // like_array.itemsize
    room = np.empty(size + per_line, like_array.dtype)
    skipped = (-(room.ctypes.data // like_array.itemsize)) % per_line
    return room[skipped : skipped + size].reshape(shape)


@setup
def work_for(topology, like_array):
    """Working memory for one block of lanes in the precision of `like_array`."""
    n, width = topology.shape[1], lane_width(like_array)
    rows = 1
    for i in range(n):
        rows = max(rows, topology[GATHERING, i] + 1)
    return Work(aligned((n + 1, BODY_ROWS, width), like_array), aligned((rows, GATHERED_ROWS, width), like_array))


@kernel
def pack(chains, first, block):
    """Numbers `(batch, m)` of the chains from `first` on into `(m, lanes)`; lanes past the end repeat the last chain."""
    for lane in range(block.shape[1]):
        chain = min(first + lane, chains.shape[0] - 1)
        for j in range(block.shape[0]):
            block[j, lane] = chains[chain, j]


@kernel
def unpack(block, chains, first):
    """The reverse of `pack`; lanes past the end are dropped."""
    for lane in range(min(block.shape[1], chains.shape[0] - first)):
        for j in range(block.shape[0]):
            chains[first + lane, j] = block[j, lane]
