"""What a model shows of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Never, Self, TypeVar, overload

import numpy as np

from ..model.description import Description
from ..model.flatten import Dofs

if TYPE_CHECKING:
    from ..model.visual import Visual

T = TypeVar("T")


class Shown(Generic[T]):
    """A read-only attribute that the model's description has under the same name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, model: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, model: object, owner: Any = None) -> T: ...
    def __get__(self, model: Any, owner: Any = None) -> Any:
        return self if model is None else getattr(model._description, self.name)

    def __set__(self, model: object, value: Never) -> None:
        raise AttributeError(f"{self.name} of a model cannot be changed; vary({self.name}=...) makes another model")


class Attributes:
    """The attributes of a Model, as its docstring lists them."""

    _description: Description
    _dofs: Dofs

    name = Shown[str]()
    body_names = Shown[tuple[str, ...]]()
    joint_names = Shown[tuple[str, ...]]()
    joint_types = Shown[tuple[str, ...]]()
    dof_types = Shown[tuple[str, ...]]()
    parent = Shown[np.ndarray]()
    placement_rotation = Shown[np.ndarray]()
    placement_translation = Shown[np.ndarray]()
    axis = Shown[np.ndarray]()
    pitch = Shown[np.ndarray]()
    mass = Shown[np.ndarray]()
    cg = Shown[np.ndarray]()
    inertia = Shown[np.ndarray]()
    gravity = Shown[np.ndarray]()
    rotor_inertia = Shown[np.ndarray]()
    gear_ratio = Shown[np.ndarray]()
    stiffness = Shown[np.ndarray]()
    rest_position = Shown[np.ndarray]()
    cubic_stiffness = Shown[np.ndarray]()
    damping = Shown[np.ndarray]()
    friction = Shown[np.ndarray]()
    static_friction = Shown[np.ndarray]()
    stribeck_velocity = Shown[np.ndarray]()
    friction_velocity = Shown[np.ndarray]()
    lower_limit = Shown[np.ndarray]()
    upper_limit = Shown[np.ndarray]()
    limit_stiffness = Shown[np.ndarray]()
    limit_damping = Shown[np.ndarray]()
    friction_asymmetry = Shown[np.ndarray]()
    fluid_density = Shown[np.ndarray]()
    volume = Shown[np.ndarray]()
    buoyancy_center = Shown[np.ndarray]()
    added_mass = Shown[np.ndarray]()
    added_volume = Shown[np.ndarray]()
    linear_damping = Shown[np.ndarray]()
    quadratic_damping = Shown[np.ndarray]()
    strip_drag = Shown[np.ndarray]()
    drives = Shown[tuple[Any, ...]]()

    @property
    def armature(self) -> np.ndarray:
        return self.rotor_inertia * self.gear_ratio**2

    @property
    def position_limits(self) -> np.ndarray:
        return self._description.limits[:, :2]

    @property
    def velocity_limit(self) -> np.ndarray:
        return self._description.limits[:, 2]

    @property
    def effort_limit(self) -> np.ndarray:
        return self._description.limits[:, 3]

    @property
    def visuals(self) -> dict[str, tuple[Visual, ...]]:
        return dict(self._description.visuals)

    @property
    def fixed_frames(self) -> dict[str, int]:
        return {name: frame.body for name, frame in self._description.frames.items()}

    @property
    def position_index(self) -> np.ndarray:
        return self._dofs.position_index

    @property
    def velocity_index(self) -> np.ndarray:
        return self._dofs.velocity_index

    @property
    def n_bodies(self) -> int:
        return len(self._description.body_names)
