"""Description: the names and numbers of a mechanism as plain arrays. A Model is made from a description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..common.pickles import PickledByName, new
from .collision_shape import CollisionShape
from .constraints import KINDS
from .declared_constraint import Rows
from .immersion import Immersion, shifted
from .keyframe import Keyframe
from .passive import PASSIVE_FIELDS
from .pose import Pose
from .sensor_of_file import SensorOfFile
from .visual import Visual


@dataclass(frozen=True, eq=False)
class Frame(PickledByName):
    """A named frame fixed to a moving body, or to the world (body -1)."""

    body: int
    pose: Pose


class ConstraintPlace(NamedTuple):
    """The name of a constraint, its kind (a key of `KINDS`), and its bodies (world: -1).

    The bodies of a coupler are the bodies of its joints; body a has the joint `other`. The kind "added inertia" follows
    the constraints of the mechanism in the arrays of its dynamics only (`added_inertias`). It acts on the degree of
    freedom `dof` of body b, and its inertia is in `constraint_length`. A compliant constraint gives way under load.
    """

    name: str
    kind: str
    body_a: int
    body_b: int
    dof: int = -1
    is_compliant: bool = False

    @property
    def arrays(self) -> set[str]:
        """The names of the fields of a Description that contain its numbers."""
        return KINDS[self.kind].arrays(self.is_compliant)

    @property
    def rows(self) -> Rows:
        return KINDS[self.kind].rows if self.dof < 0 else Rows("added inertia")

    def __reduce__(self) -> tuple[Any, ...]:
        return new, ("ConstraintPlace", *self)


@dataclass(frozen=True, eq=False)
class Description(PickledByName):
    """All names and numbers of a mechanism with n moving bodies, each with one joint to its parent.

    `dof_counts` (n,) are the numbers of degrees of freedom of the joints; nv is their sum. `VARIABLE_FIELDS` has the
    shapes of the values that may differ between samples; with leading batch axes, there is one value per sample.
    """

    name: str
    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    joint_types: tuple[str, ...]
    dof_counts: np.ndarray
    dof_types: tuple[str, ...]
    parent: np.ndarray
    placement_rotation: np.ndarray
    placement_translation: np.ndarray
    axis: np.ndarray
    pitch: np.ndarray
    rotor_inertia: np.ndarray
    gear_ratio: np.ndarray
    stiffness: np.ndarray
    rest_position: np.ndarray
    cubic_stiffness: np.ndarray
    damping: np.ndarray
    friction: np.ndarray
    static_friction: np.ndarray
    stribeck_velocity: np.ndarray
    friction_velocity: np.ndarray
    stop_lower: np.ndarray
    stop_upper: np.ndarray
    limit_stiffness: np.ndarray
    limit_damping: np.ndarray
    friction_asymmetry: np.ndarray
    fluid_density: np.ndarray
    volume: np.ndarray
    buoyancy_center: np.ndarray
    added_mass: np.ndarray
    added_volume: np.ndarray
    linear_damping: np.ndarray
    quadratic_damping: np.ndarray
    strip_drag: np.ndarray
    strip_diameter: np.ndarray
    strip_length: np.ndarray
    drag_rotation: np.ndarray
    drag_translation: np.ndarray
    mass: np.ndarray
    cg: np.ndarray
    inertia: np.ndarray
    gravity: np.ndarray
    frames: dict[str, Frame]
    nonphysical_inertia: str
    limits: np.ndarray  # (nv, 7), in the order of LIMITS
    drives: tuple[Any, ...]
    visuals: dict[str, tuple[Visual, ...]]  # by name of body or frame
    collisions: dict[str, tuple[CollisionShape, ...]] = field(default_factory=dict)  # by name of body or frame
    keyframes: dict[str, Keyframe] = field(default_factory=dict)
    sensors: dict[str, SensorOfFile] = field(default_factory=dict)
    nominal: Any = None  # the Description before its samples were varied; None if they are equal
    constraints: tuple[ConstraintPlace, ...] = ()
    constraint_point_a: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    constraint_point_b: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    constraint_axes_a: np.ndarray = field(default_factory=lambda: np.zeros((0, 3, 3)))
    constraint_axes_b: np.ndarray = field(default_factory=lambda: np.zeros((0, 3, 3)))
    constraint_length: np.ndarray = field(default_factory=lambda: np.zeros(0))
    constraint_ratio: np.ndarray = field(default_factory=lambda: np.zeros(0))
    constraint_offset: np.ndarray = field(default_factory=lambda: np.zeros(0))
    constraint_compliance: np.ndarray = field(default_factory=lambda: np.zeros(0))
    constraint_angular_compliance: np.ndarray = field(default_factory=lambda: np.zeros(0))
    constraint_relaxation_time: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def replaced(self, fields: Mapping[str, Any]) -> Description:
        """Return a description with other values of some fields.

        `dataclasses.replace` takes longer than the dynamics of a few bodies.
        """
        made = object.__new__(Description)
        made.__dict__.update(self.__dict__)
        made.__dict__.update(fields)
        return made


#: Fields of constraints that may differ between samples: points in the axes of the bodies, rotations from constraint
#: axes to body axes, lengths of distances, ratios and offsets of couplers. Compliances and relaxation times are 0 for
#: rigid constraints.
CONSTRAINT_FIELDS: dict[str, tuple[str | int, ...]] = {
    "constraint_point_a": ("constraints", 3),
    "constraint_point_b": ("constraints", 3),
    "constraint_axes_a": ("constraints", 3, 3),
    "constraint_axes_b": ("constraints", 3, 3),
    "constraint_length": ("constraints",),
    "constraint_ratio": ("constraints",),
    "constraint_offset": ("constraints",),
    "constraint_compliance": ("constraints",),
    "constraint_angular_compliance": ("constraints",),
    "constraint_relaxation_time": ("constraints",),
}
#: Fields that may differ between samples, with the shape of one sample's value: n is the number of bodies, nv is the
#: number of degrees of freedom.
VARIABLE_FIELDS: dict[str, tuple[str | int, ...]] = {
    "placement_rotation": ("n", 3, 3),
    "placement_translation": ("n", 3),
    "axis": ("nv", 3),
    "pitch": ("nv",),
    "rotor_inertia": ("nv",),
    "gear_ratio": ("nv",),
    **dict.fromkeys(PASSIVE_FIELDS, ("nv",)),
    "mass": ("n",),
    "cg": ("n", 3),
    "inertia": ("n", 3, 3),
    "gravity": (3,),
    **CONSTRAINT_FIELDS,
    "fluid_density": (),
    "volume": ("n",),
    "buoyancy_center": ("n", 3),
    "added_mass": ("n", 6, 6),
    "added_volume": ("n", 6, 6),
    "linear_damping": ("n", 6, 6),
    "quadratic_damping": ("n", 6, 6),
    "strip_drag": ("n",),
}
WATER_FIELDS = tuple(VARIABLE_FIELDS)[tuple(VARIABLE_FIELDS).index("fluid_density") :]


def some_samples(description: Description, samples: int | np.ndarray) -> Description:
    """Return the description of one or several samples, which are indices of the flattened batch."""
    fields = {name: getattr(description, name) for name in VARIABLE_FIELDS}
    behind = {name: value.ndim - len(VARIABLE_FIELDS[name]) for name, value in fields.items()}
    batch = np.broadcast_shapes(*(value.shape[: behind[name]] for name, value in fields.items()))
    changed = {}
    for name, value in fields.items():
        own = value.shape[behind[name] :]
        if behind[name]:
            changed[name] = np.broadcast_to(value, (*batch, *own)).reshape(-1, *own)[samples]
    return description.replaced(changed)


def indexed(description: Description, index: Any) -> Description:
    """Return the description of the samples that an index of NumPy chooses in the batch; it may contain new axes."""
    entries = index if isinstance(index, tuple) else (index,)
    entries = entries if any(entry is Ellipsis for entry in entries) else (*entries, Ellipsis)
    changed = {}
    for name, axes in VARIABLE_FIELDS.items():
        value = getattr(description, name)
        if value.ndim > len(axes):
            changed[name] = value[(*entries, *(slice(None),) * len(axes))]
    return description.replaced(changed)


def water_of(immersions: Sequence[Immersion | None], fluid_density: float) -> dict[str, np.ndarray]:
    """The fields of a Description for bodies with these Immersions (None: dry) in a fluid of this density (kg/m^3).

    Added masses are transformed to the frames of the bodies. Damping stays in the frame of the immersion, because the
    quadratic term D2 |v| v cannot be transformed to another frame by a constant matrix.
    """
    given = [Immersion() if immersion is None else immersion for immersion in immersions]
    return {
        "fluid_density": np.array(float(fluid_density)),
        "volume": np.array([x.volume for x in given]),
        "buoyancy_center": np.array([x.buoyancy_center for x in given]),
        "added_mass": np.array([shifted(x.added_mass, x.pose) for x in given]),
        "added_volume": np.array([shifted(x.added_volume, x.pose) for x in given]),
        "linear_damping": np.array([x.linear_damping for x in given]),
        "quadratic_damping": np.array([x.quadratic_damping for x in given]),
        "strip_drag": np.array([x.strip_drag for x in given]),
        "strip_diameter": np.array([x.strip_diameter for x in given]),
        "strip_length": np.array([x.strip_length for x in given]),
        "drag_rotation": np.array([x.pose.rotation for x in given]),
        "drag_translation": np.array([x.pose.translation for x in given]),
    }


def is_in_water(description: Description) -> bool:
    """Whether the model has a fluid that acts on at least one body."""
    fields = (getattr(description, name) for name in WATER_FIELDS)
    density, *of_bodies = fields
    return bool((density > 0.0).any() and any(x.any() for x in of_bodies))
