"""From a description to the arrays of `core.layout`.

Each body's axes are turned so that its joint's axis becomes z; placements, centres of gravity and tensors turn along.
"""

import numpy as np

from ..core import layout
from ..core.lane_memory import CACHE_LINE
from ..core.lanes import LANE_WIDTHS
from .description import VARIABLE_FIELDS

JOINT_CODES = {"revolute": layout.REVOLUTE, "prismatic": layout.PRISMATIC, "screw": layout.SCREW}

#: Columns of the parameters that each field of a description reaches.
REACH = {
    "placement_rotation": ("rotation",),
    "placement_translation": ("translation",),
    "axis": ("rotation", "translation", "cg", "inertia"),
    "pitch": ("advance",),
    "mass": ("mass",),
    "cg": ("cg",),
    "inertia": ("inertia",),
}
COLUMNS = {
    "rotation": slice(layout.PLACEMENT_ROTATION, layout.PLACEMENT_ROTATION + 9),
    "translation": slice(layout.PLACEMENT_TRANSLATION, layout.PLACEMENT_TRANSLATION + 3),
    "mass": slice(layout.MASS, layout.MASS + 1),
    "cg": slice(layout.CG, layout.CG + 3),
    "inertia": slice(layout.INERTIA, layout.INERTIA + 6),
    "advance": slice(layout.ADVANCE, layout.ADVANCE + 1),
}
UPPER_TRIANGLE = ((0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2))


def topology_of(description):
    """Parents, joint types and the order in which children add up (4, n), as `core.layout` has them."""
    n = len(description.body_names)
    topology = np.zeros((4, n), np.int64)
    topology[layout.PARENT] = np.where(description.parent < 0, n, description.parent)
    topology[layout.JOINT] = [JOINT_CODES[kind] for kind in description.joint_types]
    gathering = np.full(n, -1)
    free, rows = [], 0
    for i in range(n - 1, -1, -1):  # the order of the inward sweep: a row is free again once its body has read it
        if gathering[i] >= 0:
            free.append(gathering[i])
        p = description.parent[i]
        if p >= 0:
            topology[layout.JOINS, i] = gathering[p] >= 0
            if gathering[p] < 0:
                if not free:
                    free.append(rows)
                    rows += 1
                gathering[p] = free.pop()
    topology[layout.GATHERING] = np.where(gathering < 0, rows, gathering)
    return topology


def joint_aligned_axes(axis):
    """Rotations (..., 3, 3) that take z to `axis` (..., 3), smoothly but at -z; the identity for z itself."""
    x, y, z = np.moveaxis(axis, -1, 0)
    # the formula divides by 1 + z: in the lower half find the axis turned over about x, and turn it back
    sign = np.where(z >= 0.0, 1.0, -1.0)
    a, b, c = x, sign * y, sign * z
    d = 1.0 / (1.0 + c)
    upper = np.array([[1.0 - a * a * d, -a * b * d, a], [-a * b * d, 1.0 - b * b * d, b], [-a, -b, c]])
    rotation = np.moveaxis(upper, (0, 1), (-2, -1))
    return np.stack([np.ones_like(sign), sign, sign], -1)[..., :, None] * rotation


def columns_of(description, name):
    """One group of columns of the parameters, (..., n, width)."""
    d = description
    if name in ("rotation", "translation", "cg", "inertia"):
        F = joint_aligned_axes(d.axis)
        back = np.swapaxes(F, -1, -2)
        if name == "cg":
            return (back @ d.cg[..., None])[..., 0]
        if name == "inertia":
            return (back @ d.inertia @ F)[..., UPPER_TRIANGLE[0], UPPER_TRIANGLE[1]]
        world = np.broadcast_to(np.eye(3), (*F.shape[:-3], 1, 3, 3))
        back_of_parent = np.concatenate([back, world], -3)[..., d.parent, :, :]
        if name == "translation":
            return (back_of_parent @ d.placement_translation[..., None])[..., 0]
        placed = back_of_parent @ d.placement_rotation @ F
        return placed.reshape(*placed.shape[:-2], 9)
    if name == "mass":
        return d.mass[..., None]
    slides = np.array([kind == "prismatic" for kind in d.joint_types], dtype=np.float64)
    screws = np.array([kind == "screw" for kind in d.joint_types])
    return np.where(screws, d.pitch, slides)[..., None]


def parameters_of(description):
    """The parameters (n + 1, PARAMETERS) of a description without batch axes."""
    n = len(description.body_names)
    parameters = np.zeros((n + 1, layout.PARAMETERS))
    for name, columns in COLUMNS.items():
        parameters[:n, columns] = columns_of(description, name)
    parameters[n, layout.GRAVITY : layout.GRAVITY + 3] = description.gravity
    return parameters


def batch_shape_of(description):
    """Leading axes of the fields in which chains differ; () where they share everything."""
    return np.broadcast_shapes(
        *(getattr(description, field).shape[: -len(axes)] for field, axes in VARIABLE_FIELDS.items())
    )


def variation_of(description, parameters, dtype):
    """Parameters that chains do not share, ordered by blocks of lanes: entries (m, 2) and values (blocks, m, lanes).

    Sets in `parameters` what a field with batch axes turns out to share after all.
    """
    n, width = len(description.body_names), LANE_WIDTHS[np.dtype(dtype).name]
    batch = batch_shape_of(description)
    chains = int(np.prod(batch))
    blocks = -(-chains // width)
    entries, values = [], []

    def add(row, column, of_chains):
        of_chains = np.broadcast_to(of_chains, batch).reshape(-1)
        if chains == 0 or (of_chains == of_chains[0]).all():
            if chains:
                parameters[row, column] = of_chains[0]
            return
        padded = np.empty(blocks * width, dtype)
        padded[:chains] = of_chains
        padded[chains:] = of_chains[-1]
        entries.append((row, column))
        values.append(padded.reshape(blocks, width))

    varied = [f for f, axes in VARIABLE_FIELDS.items() if getattr(description, f).ndim > len(axes)]
    for name in sorted({reached for field in varied if field != "gravity" for reached in REACH[field]}):
        columns = columns_of(description, name)
        for row in range(n):
            for offset in range(columns.shape[-1]):
                add(row, COLUMNS[name].start + offset, columns[..., row, offset])
    if "gravity" in varied:
        for axis in range(3):
            add(n, layout.GRAVITY + axis, description.gravity[..., axis])
    stacked = aligned_empty((blocks, len(values), width), dtype)
    for entry, of_blocks in enumerate(values):
        stacked[:, entry] = of_blocks
    return np.array(entries, np.int64).reshape(-1, 2), stacked


def aligned_empty(shape, dtype):
    """An array that starts on a cache line: packs that straddle two load at half the speed."""
    itemsize = np.dtype(dtype).itemsize
    size = int(np.prod(shape))
    memory = np.empty(size + CACHE_LINE // itemsize, dtype)
    start = -memory.ctypes.data % CACHE_LINE // itemsize
    return memory[start : start + size].reshape(shape)
