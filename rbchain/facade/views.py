"""Views of one body and of one joint of a model: `model.body["link2"].mass`, `model.joint["elbow"].damping`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ..common.misspelled import SuggestsAttributes
from ..common.real_arrays import FloatArray, excerpt
from ..errors import ArgumentError
from ..model.description import VARIABLE_FIELDS
from ..model.named_items import NamedItems
from ..model.pose import Pose

if TYPE_CHECKING:
    from .model import Model


class _Entries:
    """A read-only attribute of a view: the entries of its body or joint in the array of the model with that name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, view: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, view: _View, owner: Any = None) -> FloatArray: ...
    def __get__(self, view: _View | None, owner: Any = None) -> Any:
        if view is None:
            return self
        values = getattr(view.model, self.name)
        behind = VARIABLE_FIELDS[self.name][1:] if self.name in VARIABLE_FIELDS else values.shape[1:]
        return values[(..., view.entries, *[slice(None)] * len(behind))]


class _View(SuggestsAttributes):
    """One body or joint of a model; read-only."""

    internal_names: ClassVar[tuple[str, ...]] = ("entries",)
    model: Model
    name: str
    entries: int | slice

    def __init__(self, model: Model, name: str, entries: int | slice) -> None:
        self.__dict__.update(model=model, name=name, entries=entries)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"cannot set {name}, because models are immutable; make a new model with "
            f"model.replace({{'{self.name}.{name}': ...}}), or use a ModelBuilder"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} of model {self.model.name!r})"


class BodyView(_View):
    """A body of a model: its parameters, of shape (...) or (..., 3), ..., with the batch axes of the model first.

    Attributes
    ----------
    model : Model
        The model of the body.
    name, joint, parent : str
        Names of the body, of its joint, and of its parent; the parent is None for the world.
    index : int
        Place of the body in arrays (n, ...).
    placement : Pose
        Pose of its joint in the frame of the parent at q = 0.
    mass, cg, inertia, placement_rotation, placement_translation
    volume, buoyancy_center, added_mass, added_volume, linear_damping, quadratic_damping, strip_drag
        The values of this body in the `Model` attributes of the same names.
    """

    mass = _Entries()
    cg = _Entries()
    inertia = _Entries()
    volume = _Entries()
    buoyancy_center = _Entries()
    added_mass = _Entries()
    added_volume = _Entries()
    linear_damping = _Entries()
    quadratic_damping = _Entries()
    strip_drag = _Entries()
    placement_rotation = _Entries()
    placement_translation = _Entries()

    @property
    def index(self) -> int:
        return self.model.body_names.index(self.name)

    @property
    def joint(self) -> str:
        return self.model.joint_names[self.index]

    @property
    def parent(self) -> str | None:
        parent = int(self.model.parent[self.index])
        return None if parent < 0 else self.model.body_names[parent]

    @property
    def placement(self) -> Pose:
        return Pose(self.placement_translation, self.placement_rotation)


class JointView(_View):
    """A joint of a model: its parameters, of shape (..., dofs) or (..., dofs, 3), with the batch axes of the model.

    Attributes
    ----------
    model : Model
        The model of the joint.
    name, body, type : str
        Names of the joint and of the body that it moves, and the type of the joint as in `Model.joint_types`.
    index : int
        Place of the joint in `Model.joint_names`.
    dofs : int
        Number of its degrees of freedom.
    position_limits : (dofs, 2) array
        Smallest and largest position. The other limits are (dofs,) arrays.
    velocity_limit, effort_limit, acceleration_limit, deceleration_limit, jerk_limit
    axis, pitch, rotor_inertia, gear_ratio, armature
    stiffness, rest_position, cubic_stiffness, damping, friction, static_friction, stribeck_velocity
    friction_velocity, friction_asymmetry, stop_lower, stop_upper, limit_stiffness, limit_damping
        The values of this joint in the `Model` attributes of the same names.
    """

    axis = _Entries()
    pitch = _Entries()
    rotor_inertia = _Entries()
    gear_ratio = _Entries()
    armature = _Entries()
    stiffness = _Entries()
    rest_position = _Entries()
    cubic_stiffness = _Entries()
    damping = _Entries()
    friction = _Entries()
    static_friction = _Entries()
    stribeck_velocity = _Entries()
    friction_velocity = _Entries()
    friction_asymmetry = _Entries()
    stop_lower = _Entries()
    stop_upper = _Entries()
    limit_stiffness = _Entries()
    limit_damping = _Entries()
    position_limits = _Entries()
    velocity_limit = _Entries()
    effort_limit = _Entries()
    acceleration_limit = _Entries()
    deceleration_limit = _Entries()
    jerk_limit = _Entries()

    @property
    def index(self) -> int:
        return self.model.joint_names.index(self.name)

    @property
    def body(self) -> str:
        return self.model.body_names[self.index]

    @property
    def type(self) -> str:
        return self.model.joint_types[self.index]

    @property
    def dofs(self) -> int:
        return int(self.model.kernel_model.dofs.counts[self.index])

    def q(self, positions: npt.ArrayLike) -> FloatArray:
        """Return the positions of this joint, (..., m), of positions (..., nq) of the model.

        Examples
        --------
        >>> import rbchain as rb
        >>> arm = rb.Model.serial_chain(3)
        >>> arm.joint["link2"].q([0.1, 0.2, 0.3]).tolist()
        [0.2]
        """
        ends = (*self.model.position_index.tolist(), self.model.nq)
        return self._some("positions", positions, self.model.nq, slice(ends[self.index], ends[self.index + 1]))

    def qd(self, velocities: npt.ArrayLike) -> FloatArray:
        """Return the velocities of this joint, (..., dofs), of velocities, accelerations or forces (..., nv)."""
        return self._some("velocities", velocities, self.model.nv, self.entries)

    def _some(self, name: str, values: npt.ArrayLike, count: int, chosen: Any) -> FloatArray:
        array = np.asarray(values)
        if array.shape[-1:] != (count,):
            raise ArgumentError(f"{name} has shape {array.shape}; expected (..., {count})")
        return array[..., chosen]


View = TypeVar("View", bound=_View)


class Views(NamedItems[View]):
    """The bodies or the joints of a model by their names, in the order of the model."""

    _owner = "the model"

    def __init__(
        self, names: Sequence[str], view: Callable[[str], View], what: str, remarks: Mapping[str, str]
    ) -> None:
        self._names, self._view, self._remarks = tuple(names), view, remarks
        self._singular, self._plural = what, "bodies" if what == "body" else f"{what}s"

    def _item(self, name: str) -> View:
        return self._view(name)

    def _remark(self, name: Any) -> str:
        remark = self._remarks.get(name) if isinstance(name, str) else None
        return f". {remark}" if remark else super()._remark(name)

    if not TYPE_CHECKING:  # with __call__, a type checker would accept calls

        def __call__(self, name, *_):
            raise TypeError(f"model.{self._singular} is not a method; write model.{self._singular}[{name!r}]")

    def __repr__(self) -> str:
        return f"{self._singular} names: {excerpt(list(self._names))}"


def bodies_of(model: Model) -> Views[BodyView]:
    """Return the views of the bodies of a model."""
    remarks = {
        name: f"{name!r} is a frame that is fixed to {'the world' if body < 0 else f'body {model.body_names[body]!r}'}"
        for name, body in model.fixed_frames.items()
    }
    return Views(model.body_names, lambda name: BodyView(model, name, model.body_names.index(name)), "body", remarks)


def joints_of(model: Model) -> Views[JointView]:
    """Return the views of the joints of a model."""
    ends = (*model.velocity_index.tolist(), model.nv)

    def view(name: str) -> JointView:
        i = model.joint_names.index(name)
        return JointView(model, name, slice(ends[i], ends[i + 1]))

    remarks = {
        body: f"The joint of body {body!r} is {joint!r}"
        for body, joint in zip(model.body_names, model.joint_names, strict=True)
    }
    return Views(model.joint_names, view, "joint", remarks)
