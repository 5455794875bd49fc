"""Conversion of a Description to the parameters of `core.tree.layout`, and of fields that differ between samples.

The axes of each body are rotated so that the axis of its joint becomes z. Placements, centers of mass and tensors are
converted to these axes.
"""

from __future__ import annotations

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


def parameters_of(description: Description, in_water: bool) -> np.ndarray:
    """Return the parameters of a description without batch axes.

    The shape is (nv + 1 + constraints, param.COLUMNS or param.COLUMNS_IN_WATER).
    """
    n, constraints = len(description.dof_types), len(description.constraints)
    columns_count = param.COLUMNS_IN_WATER if in_water else param.COLUMNS
    parameters = np.zeros((n + 1 + constraints, columns_count))
    axes = rotated_axes(description)
    for name, columns in (COLUMNS | WATER_COLUMNS if in_water else COLUMNS).items():
        parameters[:n, columns] = columns_of(description, name, axes)
    parameters[n, param.GRAVITY : param.GRAVITY + 3] = description.gravity
    parameters[n, param.AXIS + 2] = 1.0  # the axes of the base are the world axes
    if constraints:
        parameters[n + 1 :, : closure.PARAM_COLUMNS] = constraint_parameters(description)
    return parameters


def batch_shape_of(description: Description) -> tuple[int, ...]:
    """Return the batch axes of the fields of a description; () if all samples are equal."""
    return np.broadcast_shapes(
        *(
            (shape := getattr(description, field).shape)[: len(shape) - len(axes)]
            for field, axes in VARIABLE_FIELDS.items()
        )
    )


def variation_of(
    description: Description, parameters: np.ndarray, dtype: npt.DTypeLike, in_water: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the parameters that differ between samples: entries (m, 2) and values (blocks, m, lanes).

    An entry is a row and a column of `parameters`. If a field has batch axes but all its samples are equal, its value
    is written to `parameters` instead.
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
    changed = {name for field in varied for name in COLUMNS_OF_FIELD.get(field, ())}
    changed |= set(WATER_COLUMNS_IN_ROTATED_AXES) if "axis" in varied else set()
    axes_of_joints = rotated_axes(description)
    for name in sorted(changed & groups.keys()):
        columns = columns_of(description, name, axes_of_joints)
        for row in range(n):
            for offset in range(columns.shape[-1]):
                add(row, groups[name].start + offset, columns[..., row, offset])
    if "gravity" in varied:
        for axis in range(3):
            add(n, param.GRAVITY + axis, description.gravity[..., axis])
    if description.constraints and ("axis" in varied or not CONSTRAINT_FIELDS.keys().isdisjoint(varied)):
        columns = constraint_parameters(description)
        for constraint in range(columns.shape[-2]):
            for column in range(columns.shape[-1]):
                add(n + 1 + constraint, column, columns[..., constraint, column])
    stacked = aligned_empty((blocks, len(values), width), dtype)
    for entry, of_blocks in enumerate(values):
        stacked[:, entry] = of_blocks
    return np.array(entries, np.int64).reshape(-1, 2), stacked


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
    """Return an empty array that starts on a cache line. Vector loads that cross a cache line take twice as long."""
    itemsize = np.dtype(dtype).itemsize
    size = int(np.prod(shape))
    memory = np.empty(size + CACHE_LINE // itemsize, dtype)
    start = -memory.ctypes.data % CACHE_LINE // itemsize
    return memory[start : start + size].reshape(shape)
