"""From a description to the arrays of `core.tree.layout`.

A joint of several degrees of freedom becomes a row of bodies with one each, all but the last without mass. Each body's
axes are turned so that its joint's axis becomes z; placements, centres of mass and tensors turn along.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.simd.lane_memory import CACHE_LINE
from ..core.simd.levels import LANE_WIDTHS
from ..core.tree import layout
from ..lock_free import cached_property
from .description import VARIABLE_FIELDS, Description, is_in_water
from .joint import QUATERNION_JOINTS, axes_along
from .passive import PASSIVE_FIELDS

DOF_CODES = {"revolute": layout.REVOLUTE, "prismatic": layout.PRISMATIC, "screw": layout.SCREW}
POSING_CODES = {"free": layout.POSING_FREE, "spherical": layout.POSING_SPHERICAL}

#: Columns of the parameters that each field of a description reaches.
COLUMNS_OF_FIELD = {
    "placement_rotation": ("rotation",),
    "placement_translation": ("translation",),
    "axis": ("rotation", "translation", "cg", "inertia", "axis"),
    "pitch": ("advance",),
    "rotor_inertia": ("armature",),
    "gear_ratio": ("armature",),
    "mass": ("mass", "total", "net_mass", "net_moment"),
    "cg": ("cg", "total", "net_moment"),
    "inertia": ("inertia", "total"),
    **{field: (field,) for field in PASSIVE_FIELDS},
    "friction": ("friction", "static_friction"),
    "fluid_density": (
        *("added", "total", "displaced", "net_mass", "net_moment"),
        *("linear_damping", "quadratic_damping", "strip_factor"),
    ),
    "volume": ("displaced", "net_mass", "net_moment"),
    "buoyancy_center": ("buoyancy_center", "net_moment"),
    "added_mass": ("added", "total"),
    "added_volume": ("added", "total"),
    "linear_damping": ("linear_damping",),
    "quadratic_damping": ("quadratic_damping",),
    "strip_drag": ("strip_factor",),
}
COLUMNS = {
    "rotation": slice(layout.PARAM_PLACEMENT_ROTATION, layout.PARAM_PLACEMENT_ROTATION + 9),
    "translation": slice(layout.PARAM_PLACEMENT_TRANSLATION, layout.PARAM_PLACEMENT_TRANSLATION + 3),
    "mass": slice(layout.PARAM_MASS, layout.PARAM_MASS + 1),
    "cg": slice(layout.PARAM_CG, layout.PARAM_CG + 3),
    "inertia": slice(layout.PARAM_INERTIA, layout.PARAM_INERTIA + 6),
    "advance": slice(layout.PARAM_ADVANCE, layout.PARAM_ADVANCE + 1),
    "armature": slice(layout.PARAM_ARMATURE, layout.PARAM_ARMATURE + 1),
    "axis": slice(layout.PARAM_AXIS, layout.PARAM_AXIS + 3),
    **{
        field: slice(layout.PARAM_STIFFNESS + i, layout.PARAM_STIFFNESS + i + 1)
        for i, field in enumerate(PASSIVE_FIELDS)
    },
}
#: Columns that only a model in water has.
WATER_COLUMNS = {
    "added": slice(layout.PARAM_ADDED_MASS, layout.PARAM_ADDED_MASS + 21),
    "total": slice(layout.PARAM_TOTAL_INERTIA, layout.PARAM_TOTAL_INERTIA + 21),
    "net_mass": slice(layout.PARAM_NET_MASS, layout.PARAM_NET_MASS + 1),
    "net_moment": slice(layout.PARAM_NET_MOMENT, layout.PARAM_NET_MOMENT + 3),
    "displaced": slice(layout.PARAM_DISPLACED_MASS, layout.PARAM_DISPLACED_MASS + 1),
    "buoyancy_center": slice(layout.PARAM_BUOYANCY_CENTER, layout.PARAM_BUOYANCY_CENTER + 3),
    "drag_rotation": slice(layout.PARAM_DRAG_ROTATION, layout.PARAM_DRAG_ROTATION + 9),
    "drag_origin": slice(layout.PARAM_DRAG_ORIGIN, layout.PARAM_DRAG_ORIGIN + 3),
    "linear_damping": slice(layout.PARAM_LINEAR_DAMPING, layout.PARAM_LINEAR_DAMPING + 36),
    "quadratic_damping": slice(layout.PARAM_QUADRATIC_DAMPING, layout.PARAM_QUADRATIC_DAMPING + 36),
    "strip_factor": slice(layout.PARAM_STRIP_FACTOR, layout.PARAM_STRIP_FACTOR + 1),
    "strip_length": slice(layout.PARAM_STRIP_LENGTH, layout.PARAM_STRIP_LENGTH + 1),
}
WATER_TURNED_WITH_AXIS = ("added", "total", "net_moment", "buoyancy_center", "drag_rotation", "drag_origin")
#: The fields of which one other than zero makes a joint have the passive force.
PASSIVE_CODES = {
    layout.PASSIVE_SPRING: ("stiffness", "cubic_stiffness"),
    layout.PASSIVE_DAMPER: ("damping",),
    layout.PASSIVE_FRICTION: ("friction", "static_friction"),
    layout.PASSIVE_STRIBECK: ("static_friction",),
    layout.PASSIVE_STOPS: ("limit_stiffness",),
    layout.PASSIVE_ASYMMETRIC: ("friction_asymmetry",),
}
LIN, ANG = slice(0, 3), slice(3, 6)
UPPER_TRIANGLE = ((0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2))


@dataclass(frozen=True, eq=False)
class Dofs:
    """Which degrees of freedom belong to which body, and which entries of q pose them."""

    joint_types: tuple[str, ...]
    counts: np.ndarray

    @cached_property
    def body(self) -> np.ndarray:
        """The body that each degree of freedom moves (nv,)."""
        return np.repeat(np.arange(self.counts.size), self.counts)

    @cached_property
    def velocity_index(self) -> np.ndarray:
        """First entry of each body in qd (n,)."""
        return np.concatenate([[0], np.cumsum(self.counts)[:-1]])

    @cached_property
    def last(self) -> np.ndarray:
        """The last degree of freedom of each body (n,): the body itself in the kernels' arrays."""
        return self.velocity_index + self.counts - 1

    @cached_property
    def position_counts(self) -> np.ndarray:
        """How many entries of q each body has (n,)."""
        return np.array([QUATERNION_JOINTS.get(k, c) for k, c in zip(self.joint_types, self.counts, strict=True)])

    @cached_property
    def position_index(self) -> np.ndarray:
        """First entry of each body in q (n,)."""
        return np.concatenate([[0], np.cumsum(self.position_counts)[:-1]])

    @cached_property
    def quaternions(self) -> list[int]:
        """First entry in q of each quaternion."""
        of_bodies = zip(self.joint_types, self.position_index, self.position_counts, strict=True)
        return [int(index + count - 4) for kind, index, count in of_bodies if kind in QUATERNION_JOINTS]

    @cached_property
    def in_quaternion_joint(self) -> np.ndarray:
        """Which degrees of freedom are those of a free or spherical joint (nv,)."""
        return np.array([kind in QUATERNION_JOINTS for kind in self.joint_types])[self.body]


def dofs_of(description: Description) -> Dofs:
    """The description's degrees of freedom; its arrays are read-only, for a Model shows them."""
    dofs = Dofs(description.joint_types, description.dof_counts)
    for index in (dofs.velocity_index, dofs.position_index):
        index.flags.writeable = False
    return dofs


def topology_of(description: Description) -> np.ndarray:
    """Parents, joints and the order in which children add up (TOPOLOGY_ROWS, nv), as `core.tree.layout` has them."""
    dofs, n = dofs_of(description), len(description.dof_types)
    topology = np.zeros((layout.TOPOLOGY_ROWS, n), layout.IN_AIR)
    parent = np.arange(-1, n - 1)
    parent[dofs.velocity_index] = np.where(description.parent < 0, -1, dofs.last[description.parent])
    topology[layout.TOPOLOGY_PARENT] = np.where(parent < 0, n, parent)
    topology[layout.TOPOLOGY_JOINT] = [DOF_CODES[kind] for kind in description.dof_types]
    topology[layout.TOPOLOGY_FIRST] = np.arange(n)
    topology[layout.TOPOLOGY_BODY] = -1
    topology[layout.TOPOLOGY_BODY, dofs.last] = np.arange(dofs.counts.size)
    for body, kind in enumerate(description.joint_types):
        first, last, at = dofs.velocity_index[body], dofs.last[body], dofs.position_index[body]
        if kind in QUATERNION_JOINTS:
            topology[layout.TOPOLOGY_POSING, first : last + 1] = layout.POSING_CARRIED
            topology[layout.TOPOLOGY_POSING, first] = POSING_CODES[kind]
            topology[layout.TOPOLOGY_COORDINATE, first : last + 1] = at
            topology[layout.TOPOLOGY_FIRST, first : last + 1] = first
        else:
            topology[layout.TOPOLOGY_COORDINATE, first : last + 1] = np.arange(at, at + dofs.counts[body])
    topology[layout.TOPOLOGY_CONTRIBUTION_ROW], topology[layout.TOPOLOGY_ACCUMULATES] = _contribution_rows(parent)
    for code, fields in PASSIVE_CODES.items():
        for field in fields:
            given = getattr(description, field) != 0.0
            topology[layout.TOPOLOGY_PASSIVE] |= code * given.reshape(-1, n).any(0)
    if is_in_water(description):
        topology[layout.TOPOLOGY_DRAG, dofs.last] = _drag_of(description)
        return topology.astype(layout.IN_WATER)
    return topology


def _drag_of(description: Description) -> np.ndarray:
    """Which drag each body has (n,)."""
    both = description.linear_damping, description.quadratic_damping
    matrices = np.stack([np.abs(m).reshape(-1, *m.shape[-3:]).max(0) for m in both]).max(0)
    full = (matrices * (1.0 - np.eye(6))).any((-1, -2))
    strips = (description.strip_drag.reshape(-1, full.size) != 0.0).any(0) & (description.strip_length > 0.0)
    diagonal = matrices.any((-1, -2)) & ~full
    return layout.FULL_DRAG * full + layout.DIAGONAL_DRAG * diagonal + layout.STRIP_DRAG * strips


def _contribution_rows(parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows in which the children of each body add up (nv,), as few as will do, and who adds to a sibling's (nv,).

    Bodies whose only child is the next body need none.
    """
    n = parent.size
    children = np.bincount(parent[parent >= 0], minlength=n)
    in_registers = np.array([children[i] == 1 and i + 1 < n and parent[i + 1] == i for i in range(n)], bool)
    contribution_row, accumulates = np.full(n, -1), np.zeros(n, np.int64)
    free, rows = [], 0
    for i in range(n - 1, -1, -1):  # the order of the inward sweep: a row is free again once its body has read it
        if contribution_row[i] >= 0:
            free.append(contribution_row[i])
        p = parent[i]
        if p >= 0 and not in_registers[p]:
            accumulates[i] = contribution_row[p] >= 0
            if contribution_row[p] < 0:
                if not free:
                    free.append(rows)
                    rows += 1
                contribution_row[p] = free.pop()
    contribution_row = np.where(contribution_row < 0, rows, contribution_row)
    return np.where(in_registers, layout.IN_REGISTERS, contribution_row), accumulates


def columns_of(description: Description, name: str) -> np.ndarray:
    """One group of columns of the parameters, (..., nv, width)."""
    d, dofs = description, dofs_of(description)
    # a free or spherical joint turns to its axes by itself
    axis = np.where(dofs.in_quaternion_joint[:, None], [0.0, 0.0, 1.0], d.axis)
    if name == "axis":
        return axis
    if name == "armature":
        return (d.rotor_inertia * d.gear_ratio**2)[..., None]
    if name == "advance":
        kinds = np.array(d.dof_types)
        return np.where(kinds == "screw", d.pitch, kinds == "prismatic")[..., None]
    if name == "static_friction":  # the kernels want its excess
        return np.maximum(d.static_friction - d.friction, 0.0)[..., None]
    if name == "stribeck_velocity":  # and divide by no more than they must
        return 1.0 / d.stribeck_velocity[..., None]
    if name in PASSIVE_FIELDS:
        return getattr(d, name)[..., None]
    if name == "mass":
        return _of_last(dofs, d.mass[..., None])
    F = axes_along(axis)
    back = np.swapaxes(F, -1, -2)
    if name in WATER_COLUMNS:
        return _of_last(dofs, _water_columns(d, name, F[..., dofs.last, :, :]))
    if name == "cg":
        return (back @ _of_last(dofs, d.cg)[..., None])[..., 0]
    if name == "inertia":
        tensor = _of_last(dofs, d.inertia.reshape(*d.inertia.shape[:-2], 9)).reshape(*d.inertia.shape[:-3], -1, 3, 3)
        return (back @ tensor @ F)[..., UPPER_TRIANGLE[0], UPPER_TRIANGLE[1]]
    world = np.broadcast_to(np.eye(3), (*F.shape[:-3], 1, 3, 3))
    parent = topology_of(d)[layout.TOPOLOGY_PARENT]
    back_of_parent = np.concatenate([back, world], -3)[..., parent, :, :]
    if name == "translation":
        return (back_of_parent @ _of_first(dofs, d.placement_translation, np.zeros(3))[..., None])[..., 0]
    rotation = _of_first(dofs, d.placement_rotation.reshape(*d.placement_rotation.shape[:-2], 9), np.eye(3).reshape(9))
    placed = back_of_parent @ rotation.reshape(*rotation.shape[:-1], 3, 3) @ F
    return placed.reshape(*placed.shape[:-2], 9)


def _water_columns(d: Description, name: str, F: np.ndarray) -> np.ndarray:
    """Columns of water for the bodies (..., n, width), whose joints' axes F (..., n, 3, 3) takes z to."""
    back = np.swapaxes(F, -1, -2)
    density = d.fluid_density[..., None]
    if name in ("added", "total"):
        A = added_matrices(d)
        if name == "total":
            A = A + _rigid_matrices(d)
        J, H, M = (back @ A[..., rows, columns] @ F for rows, columns in ((ANG, ANG), (ANG, LIN), (LIN, LIN)))
        upper = (..., *UPPER_TRIANGLE)
        return np.concatenate([J[upper], H.reshape(*H.shape[:-2], 9), M[upper]], -1)
    if name == "net_mass":
        return (d.mass - density * d.volume)[..., None]
    if name == "net_moment":
        moment = d.mass[..., None] * d.cg - (density * d.volume)[..., None] * d.buoyancy_center
        return (back @ moment[..., None])[..., 0]
    if name == "displaced":
        return (density * d.volume)[..., None]
    if name == "buoyancy_center":
        return (back @ d.buoyancy_center[..., None])[..., 0]
    if name == "drag_origin":
        return (back @ d.drag_translation[..., None])[..., 0]
    if name == "drag_rotation":
        turned = back @ d.drag_rotation
        return turned.reshape(*turned.shape[:-2], 9)
    if name == "strip_factor":
        return (density / 2 * d.strip_drag * d.strip_diameter)[..., None]
    if name == "strip_length":
        return d.strip_length[..., None]
    matrix = (density > 0.0)[..., None, None] * getattr(d, name)  # a sample without a fluid has nothing of one
    return matrix.reshape(*matrix.shape[:-2], 36)


def added_matrices(d: Description) -> np.ndarray:
    """Added masses of each body about its origin, (..., n, 6, 6), linear before angular; zero without a fluid."""
    density = d.fluid_density[..., None, None, None]
    return (density > 0.0) * d.added_mass + density * d.added_volume


def _rigid_matrices(d: Description) -> np.ndarray:
    """Inertia of each body about its origin, (..., n, 6, 6), linear before angular."""
    mass = d.mass[..., None, None]
    x, y, z = np.moveaxis(d.cg, -1, 0)
    zero = np.zeros_like(x)
    cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(*x.shape, 3, 3)
    corner = np.swapaxes(mass * cross, -1, -2)
    blocks = mass * np.eye(3), corner, np.swapaxes(corner, -1, -2), d.inertia - mass * cross @ cross
    linear, upper, lower, angular = np.broadcast_arrays(*blocks)
    return np.block([[linear, upper], [lower, angular]])


def _of_last(dofs: Dofs, of_bodies: np.ndarray) -> np.ndarray:
    """Values of bodies (..., n, m) at the last degree of freedom of each, zero at the others."""
    is_last = np.isin(np.arange(dofs.body.size), dofs.last)
    return np.where(is_last[:, None], of_bodies[..., dofs.body, :], 0.0)


def _of_first(dofs: Dofs, of_bodies: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Values of bodies (..., n, m) at the first degree of freedom of each."""
    is_first = np.isin(np.arange(dofs.body.size), dofs.velocity_index)
    return np.where(is_first[:, None], of_bodies[..., dofs.body, :], otherwise)


def parameters_of(description: Description, in_water: bool) -> np.ndarray:
    """The parameters of a description without batch axes (nv + 1, PARAM_COLUMNS), in water PARAM_COLUMNS_IN_WATER."""
    n = len(description.dof_types)
    parameters = np.zeros((n + 1, layout.PARAM_COLUMNS_IN_WATER if in_water else layout.PARAM_COLUMNS))
    for name, columns in (COLUMNS | WATER_COLUMNS if in_water else COLUMNS).items():
        parameters[:n, columns] = columns_of(description, name)
    parameters[n, layout.PARAM_GRAVITY : layout.PARAM_GRAVITY + 3] = description.gravity
    parameters[n, layout.PARAM_AXIS + 2] = 1.0  # the base's axes are the world's
    return parameters


def batch_shape_of(description: Description) -> tuple[int, ...]:
    """Leading axes of the fields in which samples differ; () where they share everything."""
    return np.broadcast_shapes(
        *(
            (shape := getattr(description, field).shape)[: len(shape) - len(axes)]
            for field, axes in VARIABLE_FIELDS.items()
        )
    )


def variation_of(
    description: Description, parameters: np.ndarray, dtype: npt.DTypeLike, in_water: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Parameters that samples do not share, ordered by blocks of lanes: entries (m, 2) and values (blocks, m, lanes).

    Sets in `parameters` what a field with batch axes turns out to share after all.
    """
    n, width = len(description.dof_types), LANE_WIDTHS[np.dtype(dtype).name]
    batch = batch_shape_of(description)
    samples = int(np.prod(batch))
    blocks = -(-samples // width)
    entries, values = [], []

    def add(row: int, column: int, of_samples: np.ndarray) -> None:
        of_samples = np.broadcast_to(of_samples, batch).reshape(-1)
        if samples == 0 or (of_samples == of_samples[0]).all():
            if samples:
                parameters[row, column] = of_samples[0]
            return
        padded = np.empty(blocks * width, dtype)
        padded[:samples] = of_samples
        padded[samples:] = of_samples[-1]
        entries.append((row, column))
        values.append(padded.reshape(blocks, width))

    varied = [f for f, axes in VARIABLE_FIELDS.items() if getattr(description, f).ndim > len(axes)]
    groups = COLUMNS | WATER_COLUMNS if in_water else COLUMNS
    reached = {name for field in varied if field != "gravity" for name in COLUMNS_OF_FIELD[field]}
    reached |= set(WATER_TURNED_WITH_AXIS) if "axis" in varied else set()
    for name in sorted(reached & groups.keys()):
        columns = columns_of(description, name)
        for row in range(n):
            for offset in range(columns.shape[-1]):
                add(row, groups[name].start + offset, columns[..., row, offset])
    if "gravity" in varied:
        for axis in range(3):
            add(n, layout.PARAM_GRAVITY + axis, description.gravity[..., axis])
    stacked = aligned_empty((blocks, len(values), width), dtype)
    for entry, of_blocks in enumerate(values):
        stacked[:, entry] = of_blocks
    return np.array(entries, np.int64).reshape(-1, 2), stacked


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
    """An array that starts on a cache line: packs that straddle two load at half the speed."""
    itemsize = np.dtype(dtype).itemsize
    size = int(np.prod(shape))
    memory = np.empty(size + CACHE_LINE // itemsize, dtype)
    start = -memory.ctypes.data % CACHE_LINE // itemsize
    return memory[start : start + size].reshape(shape)
