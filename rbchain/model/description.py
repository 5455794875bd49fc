"""A mechanism as plain arrays, body by body: what a Model is made of."""

from dataclasses import dataclass

import numpy as np

from .passive import PASSIVE_FIELDS
from .pose import Pose


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame fixed to a moving body, or to the world (body -1)."""

    body: int
    pose: Pose


@dataclass(frozen=True, eq=False)
class Description:
    """Every number and name of a mechanism of n moving bodies, each with one joint to its parent.

    `dof_counts` (n,) says how many degrees of freedom each joint has; `dof_types` and what follows have one entry for
    each of the nv in all. Arrays of numbers may have leading batch axes: one value for each chain.
    """

    name: str
    body_names: tuple
    joint_names: tuple
    joint_types: tuple
    dof_counts: np.ndarray
    dof_types: tuple
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
    lower_limit: np.ndarray
    upper_limit: np.ndarray
    limit_stiffness: np.ndarray
    limit_damping: np.ndarray
    mass: np.ndarray
    cg: np.ndarray
    inertia: np.ndarray
    gravity: np.ndarray
    frames: dict
    nonphysical_inertia: str


#: Axes of one chain's value of each number that chains may differ in; "n" stands for the number of bodies, "nv" for
#: that of degrees of freedom.
VARIABLE_FIELDS = {
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
}
