"""The attributes of a Model: the fields of its description, and properties of its kernel model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, Never, Self, TypeVar, overload

import numpy as np

from ..common.misspelled import did_you_mean
from ..common.real_arrays import FloatArray, excerpt
from ..errors import ModelError
from ..model.constraint_tables import row_counts_of
from ..model.description import VARIABLE_FIELDS, Description
from ..model.kernel_model import KernelModel
from ..model.keyframe import Keyframe
from ..model.named_items import NamedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ..model.collision_shape import CollisionShape
    from ..model.pose import Pose
    from ..model.visual import Visual

T = TypeVar("T")


class DescriptionField(Generic[T]):
    """A read-only attribute that returns the field of the model's description with the same name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, model: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, model: object, owner: Any = None) -> T: ...
    def __get__(self, model: Any, owner: Any = None) -> Any:
        return self if model is None else getattr(model.description, self.name)

    def __set__(self, model: object, value: Never) -> None:
        remedy = f"model.replace({self.name}=...)" if self.name in VARIABLE_FIELDS else "a ModelBuilder"
        raise AttributeError(f"cannot set {self.name}, because models are immutable; make a new model with {remedy}")


class Attributes:
    """The attributes that the docstring of Model lists. All base classes of Model share them."""

    if TYPE_CHECKING:  # methods that the base classes of Model use of each other

        def random_state(
            self, rng: np.random.Generator | int | None, batch: int | tuple[int, ...] = ()
        ) -> tuple[FloatArray, FloatArray]: ...
        def neutral(self) -> FloatArray: ...
        def body_velocities(self, q: npt.ArrayLike, qd: npt.ArrayLike) -> FloatArray: ...
        def forward_dynamics(
            self,
            q: npt.ArrayLike,
            qd: npt.ArrayLike,
            tau: npt.ArrayLike = 0.0,
            wrenches: npt.ArrayLike | None = None,
            *,
            passive: bool = False,
        ) -> FloatArray: ...
        def passive_forces(self, q: npt.ArrayLike, qd: npt.ArrayLike) -> FloatArray: ...
        def _joint_forces(
            self, q: npt.ArrayLike, qd: npt.ArrayLike, tau: npt.ArrayLike, passive: bool
        ) -> FloatArray: ...
        def _inverse_dynamics_of_tree(
            self, q: npt.ArrayLike, qd: npt.ArrayLike, qdd: npt.ArrayLike, wrenches: npt.ArrayLike | None = None
        ) -> FloatArray: ...
        def _forces_of_actuated_joints(
            self,
            q: npt.ArrayLike,
            qd: npt.ArrayLike,
            qdd: npt.ArrayLike,
            wrenches: npt.ArrayLike | None,
            actuated: Sequence[str] | None,
            passive: bool,
            out: FloatArray | None,
        ) -> FloatArray: ...
        def _derivatives_of_actuated_joints(
            self,
            states: Sequence[npt.ArrayLike],
            actuated: Sequence[str] | None,
            passive: bool,
            out: FloatArray | None,
        ) -> FloatArray: ...
        def _constrained_hybrid_dynamics(
            self,
            states: Sequence[npt.ArrayLike],
            prescribed: np.ndarray,
            wrenches: npt.ArrayLike | None,
            passive: bool,
            out: FloatArray | None,
        ) -> FloatArray: ...
        def forward_dynamics_derivatives(
            self, q: npt.ArrayLike, qd: npt.ArrayLike, tau: npt.ArrayLike = 0.0, *, passive: bool = False
        ) -> tuple[FloatArray, FloatArray, FloatArray]: ...
        def mass_matrix(self, q: npt.ArrayLike) -> FloatArray: ...
        def _constraint_wrenches(
            self, q: npt.ArrayLike, qd: npt.ArrayLike, tau: npt.ArrayLike, wrenches: npt.ArrayLike | None
        ) -> tuple[FloatArray, FloatArray]: ...
        def constraint_residual(self, q: npt.ArrayLike) -> FloatArray: ...
        def constraint_jacobian(self, q: npt.ArrayLike) -> FloatArray: ...
        def body_poses(self, q: npt.ArrayLike) -> Pose: ...
        def integrate(self, q: npt.ArrayLike, v: npt.ArrayLike) -> FloatArray: ...
        def difference(self, q0: npt.ArrayLike, q1: npt.ArrayLike) -> FloatArray: ...
        def _none_like(self, name: str, states: npt.ArrayLike) -> FloatArray: ...

    def __init__(self, description: Description | None = None) -> None:
        if description is None:
            raise ModelError(
                "Model was called without a Description; models are made by rbchain.load(path), ModelBuilder.build() "
                "or Model.serial_chain(n)"
            )
        if not isinstance(description, Description):
            raise ModelError(
                f"Model was called with {excerpt(description)}; expected a Description. Use rbchain.load for a file, "
                "and rbchain.ModelBuilder for a new mechanism"
            )
        self.__dict__.update(description=description, kernel_model=KernelModel(description))

    @classmethod
    def _of(cls, description: Description, kernel_model: KernelModel) -> Self:
        """Return the model of a description whose kernel model exists."""
        model = cls.__new__(cls)
        model.__dict__.update(description=description, kernel_model=kernel_model)
        return model

    def __setattr__(self, name: str, value: Never) -> None:
        """Raise an AttributeError, which suggests the right name of a misspelled field."""
        if isinstance(getattr(type(self), name, None), DescriptionField):
            object.__setattr__(self, name, value)  # raises its own message
        hint = "" if hasattr(self, name) else did_you_mean(name, dir(self))
        raise AttributeError(f"cannot set {name}, because models are immutable{hint}")

    internal_names: ClassVar[tuple[str, ...]] = ("description", "kernel_model")
    description: Description
    kernel_model: KernelModel
    name = DescriptionField[str]()
    body_names = DescriptionField[tuple[str, ...]]()
    joint_names = DescriptionField[tuple[str, ...]]()
    joint_types = DescriptionField[tuple[str, ...]]()
    dof_types = DescriptionField[tuple[str, ...]]()
    parent = DescriptionField[np.ndarray]()
    placement_rotation = DescriptionField[FloatArray]()
    placement_translation = DescriptionField[FloatArray]()
    axis = DescriptionField[FloatArray]()
    pitch = DescriptionField[FloatArray]()
    mass = DescriptionField[FloatArray]()
    cg = DescriptionField[FloatArray]()
    inertia = DescriptionField[FloatArray]()
    gravity = DescriptionField[FloatArray]()
    rotor_inertia = DescriptionField[FloatArray]()
    gear_ratio = DescriptionField[FloatArray]()
    stiffness = DescriptionField[FloatArray]()
    rest_position = DescriptionField[FloatArray]()
    cubic_stiffness = DescriptionField[FloatArray]()
    damping = DescriptionField[FloatArray]()
    friction = DescriptionField[FloatArray]()
    static_friction = DescriptionField[FloatArray]()
    stribeck_velocity = DescriptionField[FloatArray]()
    friction_velocity = DescriptionField[FloatArray]()
    stop_lower = DescriptionField[FloatArray]()
    stop_upper = DescriptionField[FloatArray]()
    limit_stiffness = DescriptionField[FloatArray]()
    limit_damping = DescriptionField[FloatArray]()
    friction_asymmetry = DescriptionField[FloatArray]()
    fluid_density = DescriptionField[FloatArray]()
    volume = DescriptionField[FloatArray]()
    buoyancy_center = DescriptionField[FloatArray]()
    added_mass = DescriptionField[FloatArray]()
    added_volume = DescriptionField[FloatArray]()
    linear_damping = DescriptionField[FloatArray]()
    quadratic_damping = DescriptionField[FloatArray]()
    strip_drag = DescriptionField[FloatArray]()
    drives = DescriptionField[tuple[Any, ...]]()
    constraint_point_a = DescriptionField[FloatArray]()
    constraint_point_b = DescriptionField[FloatArray]()
    constraint_axes_a = DescriptionField[FloatArray]()
    constraint_axes_b = DescriptionField[FloatArray]()
    constraint_length = DescriptionField[FloatArray]()
    constraint_ratio = DescriptionField[FloatArray]()
    constraint_offset = DescriptionField[FloatArray]()
    constraint_compliance = DescriptionField[FloatArray]()
    constraint_angular_compliance = DescriptionField[FloatArray]()
    constraint_relaxation_time = DescriptionField[FloatArray]()

    @property
    def constraint_names(self) -> tuple[str, ...]:
        return tuple(place.name for place in self.description.constraints)

    @property
    def constraint_names_of_rows(self) -> tuple[str, ...]:
        """The name of the constraint of each row of `constraint_residual`."""
        counts = row_counts_of(self.description)
        return tuple(name for name, count in zip(self.constraint_names, counts, strict=True) for _ in range(count))

    @property
    def nq(self) -> int:
        return self.kernel_model.nq

    @property
    def nv(self) -> int:
        return self.kernel_model.nv

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.kernel_model.batch_shape

    @property
    def in_water(self) -> bool:
        """Whether a fluid acts on any body."""
        return self.kernel_model.in_water

    @property
    def bodies_without_inertia(self) -> tuple[str, ...]:
        return self.kernel_model.bodies_without_inertia

    @property
    def armature(self) -> FloatArray:
        return self.rotor_inertia * self.gear_ratio**2

    @property
    def position_limits(self) -> FloatArray:
        return self.description.limits[:, :2]

    @property
    def velocity_limit(self) -> FloatArray:
        return self.description.limits[:, 2]

    @property
    def effort_limit(self) -> FloatArray:
        return self.description.limits[:, 3]

    @property
    def acceleration_limit(self) -> FloatArray:
        return self.description.limits[:, 4]

    @property
    def deceleration_limit(self) -> FloatArray:
        return self.description.limits[:, 5]

    @property
    def jerk_limit(self) -> FloatArray:
        return self.description.limits[:, 6]

    @property
    def visuals(self) -> dict[str, tuple[Visual, ...]]:
        words = "the model", "body with visuals", "bodies with visuals"
        return NamedDict(*words, self.description.visuals)

    @property
    def collisions(self) -> dict[str, tuple[CollisionShape, ...]]:
        words = "the model", "body with collision shapes", "bodies with collision shapes"
        return NamedDict(*words, self.description.collisions)

    @property
    def fixed_frames(self) -> dict[str, int]:
        found = {name: frame.body for name, frame in self.description.frames.items()}
        return NamedDict("the model", "fixed frame", "fixed frames", found)

    @property
    def keyframes(self) -> dict[str, Keyframe]:
        return NamedDict("the model", "keyframe", "keyframes", self.description.keyframes)

    @property
    def position_index(self) -> np.ndarray:
        return self.kernel_model.dofs.position_index

    @property
    def velocity_index(self) -> np.ndarray:
        return self.kernel_model.dofs.velocity_index

    @property
    def n_bodies(self) -> int:
        return len(self.description.body_names)
