"""Conversion of a Description to the parameters of `core.tree.layout`, and of fields that differ between samples.

The axes of each body are rotated so that the axis of its joint becomes z. Placements, centers of mass and tensors are
converted to these axes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..compiling.levels import LANE_WIDTHS
from ..core.lanes.lane_memory import CACHE_LINE
from ..core.loops import constraint_layout as closure
from ..core.tree import parameter_layout as param
from .constraint_tables import constraint_parameters
from .description import CONSTRAINT_FIELDS, VARIABLE_FIELDS, Description
from .joint import axes_along
from .passive import PASSIVE_FIELDS
from .topology import Dofs, dofs_of, parents_of

#: Groups of columns of the parameters that depend on each field of a Description.
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
#: Columns of each group.
COLUMNS = {
    "rotation": slice(param.PLACEMENT_ROTATION, param.PLACEMENT_ROTATION + 9),
    "translation": slice(param.PLACEMENT_TRANSLATION, param.PLACEMENT_TRANSLATION + 3),
    "mass": slice(param.MASS, param.MASS + 1),
    "cg": slice(param.CG, param.CG + 3),
    "inertia": slice(param.INERTIA, param.INERTIA + 6),
    "advance": slice(param.ADVANCE, param.ADVANCE + 1),
    "armature": slice(param.ARMATURE, param.ARMATURE + 1),
    "axis": slice(param.AXIS, param.AXIS + 3),
    **{field: slice(param.STIFFNESS + i, param.STIFFNESS + i + 1) for i, field in enumerate(PASSIVE_FIELDS)},
}
#: Columns of the further groups of models in water.
WATER_COLUMNS = {
    "added": slice(param.ADDED_MASS, param.ADDED_MASS + 21),
    "total": slice(param.TOTAL_INERTIA, param.TOTAL_INERTIA + 21),
    "net_mass": slice(param.NET_MASS, param.NET_MASS + 1),
    "net_moment": slice(param.NET_MOMENT, param.NET_MOMENT + 3),
    "displaced": slice(param.DISPLACED_MASS, param.DISPLACED_MASS + 1),
    "buoyancy_center": slice(param.BUOYANCY_CENTER, param.BUOYANCY_CENTER + 3),
    "drag_rotation": slice(param.DRAG_ROTATION, param.DRAG_ROTATION + 9),
    "drag_origin": slice(param.DRAG_ORIGIN, param.DRAG_ORIGIN + 3),
    "linear_damping": slice(param.LINEAR_DAMPING, param.LINEAR_DAMPING + 36),
    "quadratic_damping": slice(param.QUADRATIC_DAMPING, param.QUADRATIC_DAMPING + 36),
    "strip_factor": slice(param.STRIP_FACTOR, param.STRIP_FACTOR + 1),
    "strip_length": slice(param.STRIP_LENGTH, param.STRIP_LENGTH + 1),
}
#: Groups of water columns that are in the rotated axes, and so depend on the joint's axis.
WATER_COLUMNS_IN_ROTATED_AXES = ("added", "total", "net_moment", "buoyancy_center", "drag_rotation", "drag_origin")
ALL_COLUMNS = COLUMNS | WATER_COLUMNS
LINEAR, ANGULAR = slice(0, 3), slice(3, 6)
UPPER_TRIANGLE = ((0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2))


def rotated_axes(description: Description) -> tuple[np.ndarray, np.ndarray]:
    """Return the axis of each degree of freedom (..., nv, 3), and the axes with it as z, (..., nv, 3, 3)."""
    # the dofs of a free or spherical joint share one frame, whose axes are not rotated
    axis = np.where(dofs_of(description).in_quaternion_joint[:, None], [0.0, 0.0, 1.0], description.axis)
    return axis, axes_along(axis)


def columns_of(description: Description, name: str, axes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return one group of columns of the parameters, (..., nv, width), with the result of `rotated_axes`."""
    d, dofs = description, dofs_of(description)
    axis, F = axes
    if name == "axis":
        return axis
    if name == "armature":
        return (d.rotor_inertia * d.gear_ratio**2)[..., None]
    if name == "advance":
        kinds = np.array(d.dof_types)
        return np.where(kinds == "screw", d.pitch, kinds == "prismatic")[..., None]
    if name == "static_friction":  # param.BREAKAWAY: the difference saves the kernels a subtraction
        return np.maximum(d.static_friction - d.friction, 0.0)[..., None]
    if name == "stribeck_velocity":  # param.STRIBECK_RATE: the inverse saves the kernels a division
        return 1.0 / d.stribeck_velocity[..., None]
    if name in PASSIVE_FIELDS:
        return getattr(d, name)[..., None]
    if name == "mass":
        return _of_last(dofs, d.mass[..., None])
    back = np.swapaxes(F, -1, -2)
    if name in WATER_COLUMNS:
        return _of_last(dofs, _water_columns(d, name, F[..., dofs.last, :, :]))
    if name == "cg":
        return (back @ _of_last(dofs, d.cg)[..., None])[..., 0]
    if name == "inertia":
        tensor = _of_last(dofs, d.inertia.reshape(*d.inertia.shape[:-2], 9))
        tensor = tensor.reshape(*tensor.shape[:-1], 3, 3)
        return (back @ tensor @ F)[..., UPPER_TRIANGLE[0], UPPER_TRIANGLE[1]]
    world = np.broadcast_to(np.eye(3), (*F.shape[:-3], 1, 3, 3))
    back_of_parent = np.concatenate([back, world], -3)[..., parents_of(d), :, :]  # -1: the world
    if name == "translation":
        return (back_of_parent @ _of_first(dofs, d.placement_translation, np.zeros(3))[..., None])[..., 0]
    rotation = _of_first(dofs, d.placement_rotation.reshape(*d.placement_rotation.shape[:-2], 9), np.eye(3).reshape(9))
    placed = back_of_parent @ rotation.reshape(*rotation.shape[:-1], 3, 3) @ F
    return placed.reshape(*placed.shape[:-2], 9)


def _water_columns(d: Description, name: str, F: np.ndarray) -> np.ndarray:
    """Return one group of water columns of the bodies, (..., n, width).

    F (..., n, 3, 3) are the rotations from the rotated axes to body axes.
    """
    back = np.swapaxes(F, -1, -2)
    density = d.fluid_density[..., None]
    if name in ("added", "total"):
        A = added_matrices(d)
        if name == "total":
            A = A + _rigid_matrices(d)
        pairs = ((ANGULAR, ANGULAR), (ANGULAR, LINEAR), (LINEAR, LINEAR))
        J, H, M = (back @ A[..., rows, columns] @ F for rows, columns in pairs)
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
    matrix = (density > 0.0)[..., None, None] * getattr(d, name)  # samples without a fluid have no damping
    return matrix.reshape(*matrix.shape[:-2], 36)


def added_matrices(d: Description) -> np.ndarray:
    """Return the added mass of each body about its origin, (..., n, 6, 6), linear first; zero without a fluid."""
    density = d.fluid_density[..., None, None, None]
    return (density > 0.0) * d.added_mass + density * d.added_volume


def _rigid_matrices(d: Description) -> np.ndarray:
    """Return the rigid-body inertia of each body about its origin, (..., n, 6, 6), linear first."""
    mass = d.mass[..., None, None]
    x, y, z = np.moveaxis(d.cg, -1, 0)
    zero = np.zeros_like(x)
    cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(*x.shape, 3, 3)
    corner = np.swapaxes(mass * cross, -1, -2)
    blocks = mass * np.eye(3), corner, np.swapaxes(corner, -1, -2), d.inertia - mass * cross @ cross
    linear, upper, lower, angular = np.broadcast_arrays(*blocks)
    return np.block([[linear, upper], [lower, angular]])


def _of_last(dofs: Dofs, of_bodies: np.ndarray) -> np.ndarray:
    """Assign values of bodies (..., n, m) to their last degrees of freedom (..., nv, m), and zero to the others."""
    return np.where(dofs.is_last[:, None], of_bodies[..., dofs.body, :], 0.0)


def _of_first(dofs: Dofs, of_bodies: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Assign values of bodies (..., n, m) to their first degrees of freedom, and `otherwise` to the others."""
    return np.where(dofs.is_first[:, None], of_bodies[..., dofs.body, :], otherwise)


class Known(NamedTuple):
    """The parameters of a mechanism with other numbers, and the fields in which these differ."""

    parameters: np.ndarray
    differing: Collection[str]


def parameters_of(
    description: Description, in_water: bool, axes: tuple[np.ndarray, np.ndarray], known: Known | None = None
) -> np.ndarray:
    """Return the parameters of a description without batch axes, with the result of `rotated_axes`.

    Columns that do not depend on differing fields are copied from parameters that are known. The shape is
    (nv + 1 + constraints, param.COLUMNS or param.COLUMNS_IN_WATER).
    """
    n, constraints = len(description.dof_types), len(description.constraints)
    groups = ALL_COLUMNS if in_water else COLUMNS
    if known is None:
        parameters = np.zeros((n + 1 + constraints, param.COLUMNS_IN_WATER if in_water else param.COLUMNS))
        parameters[n, param.AXIS + 2] = 1.0  # the axes of the base are the world axes
        changed: Collection[str] = groups
    else:
        parameters, changed = known.parameters.copy(), _groups_of(known.differing)
    for name in changed:
        if name in groups:
            parameters[:n, groups[name]] = columns_of(description, name, axes)
    parameters[n, param.GRAVITY : param.GRAVITY + 3] = description.gravity
    if constraints and (known is None or _affect_constraints(known.differing)):
        parameters[n + 1 :, : closure.PARAM_COLUMNS] = constraint_parameters(description)
    return parameters


def _groups_of(fields: Collection[str]) -> set[str]:
    """Return the groups of columns that depend on some fields."""
    of_axis = WATER_COLUMNS_IN_ROTATED_AXES if "axis" in fields else ()
    return {name for field in fields for name in COLUMNS_OF_FIELD.get(field, ())}.union(of_axis)


def _affect_constraints(fields: Collection[str]) -> bool:
    return "axis" in fields or not CONSTRAINT_FIELDS.keys().isdisjoint(fields)


def batch_shape_of(description: Description, among: Collection[str] = tuple(VARIABLE_FIELDS)) -> tuple[int, ...]:
    """Return the batch axes of some fields of a description; () if all samples are equal."""
    shapes = {*batch_shapes_of(description, among).values()}
    return np.broadcast_shapes(*shapes) if len(shapes) > 1 else next(iter(shapes), ())


def batch_shapes_of(description: Description, among: Collection[str]) -> dict[str, tuple[int, ...]]:
    """Return the batch axes of the fields among these that have any."""
    values = vars(description)
    counts = {name: values[name].ndim - len(VARIABLE_FIELDS[name]) for name in among}
    return {name: values[name].shape[:count] for name, count in counts.items() if count}


def variation_of(
    description: Description,
    parameters: np.ndarray,
    dtype: npt.DTypeLike,
    in_water: bool,
    axes: tuple[np.ndarray, np.ndarray],
    varied: Mapping[str, tuple[int, ...]],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the parameters that differ between samples: entries (m, 2) and values (blocks, m, lanes).

    An entry is a row and a column of `parameters`. If a field has batch axes but all its samples are equal, its value
    is written to `parameters` instead. `axes` is the result of `rotated_axes`, and `varied` are the fields with batch
    axes, and these axes.
    """
    n, width = len(description.dof_types), LANE_WIDTHS[np.dtype(dtype).name]
    batch = np.broadcast_shapes(*varied.values())
    samples = math.prod(batch)
    blocks = -(-samples // width)
    entries, values = [np.zeros((0, 2), np.int64)], []

    def add(row: int, column: int, of_samples: np.ndarray) -> None:
        """Add a part (..., rows, columns) of the parameters, starting at a row and a column."""
        if not samples:
            return
        rows, columns = of_samples.shape[-2:]
        flat = np.broadcast_to(of_samples, (*batch, rows, columns)).reshape(samples, rows * columns)
        differs = (flat != flat[0]).any(0)
        is_same = ~differs.reshape(rows, columns)
        parameters[row : row + rows, column : column + columns][is_same] = flat[0, ~differs]
        entries.append(np.argwhere(~is_same) + (row, column))
        values.append(flat[:, differs])

    groups = ALL_COLUMNS if in_water else COLUMNS
    for name in sorted(_groups_of(varied) & groups.keys()):
        add(0, groups[name].start, columns_of(description, name, axes))
    if "gravity" in varied:
        add(n, param.GRAVITY, description.gravity[..., None, :])
    if description.constraints and _affect_constraints(varied):
        add(n + 1, 0, constraint_parameters(description))
    all_entries = np.concatenate(entries)
    stacked = aligned_empty((blocks, len(all_entries), width), dtype)
    first = 0
    for part in values:
        last = first + part.shape[1]
        padded = np.empty((blocks * width, last - first), dtype)
        padded[:samples], padded[samples:] = part, part[-1]
        stacked[:, first:last] = padded.reshape(blocks, width, last - first).swapaxes(1, 2)
        first = last
    return all_entries, stacked


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
    """Return an empty array that starts on a cache line. Vector loads that cross a cache line take twice as long."""
    itemsize = np.dtype(dtype).itemsize
    size = int(np.prod(shape))
    memory = np.empty(size + CACHE_LINE // itemsize, dtype)
    address = memory.__array_interface__["data"][0]  # `memory.ctypes` takes three times as long
    start = -address % CACHE_LINE // itemsize
    return memory[start : start + size].reshape(shape)
