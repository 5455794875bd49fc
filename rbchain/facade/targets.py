"""Target: where a frame should be in inverse kinematics, and its conversion to the numbers of the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import FloatArray, common_batch, excerpt, finite_number
from ..common.values import Value
from ..core.algorithms import target_errors as kinds
from ..errors import ArgumentError, ModelError
from ..model.kernel_model import KernelModel
from ..model.pose import Array, Made, Pose, is_rotation, nearest_rotation, normalized, numbers, rotation_matrix, vector3

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

#: The parts of a target that determine its orientation; a target has at most one of them.
ORIENTING = ("rotation", "direction", "look_at")


@dataclass(frozen=True, eq=False)
class Target(Value):
    """The desired position or orientation of a frame, or both, for `Model.inverse_kinematics`.

    The orientation is a rotation, a direction of an axis, or a point to which an axis points. Arrays with leading batch
    axes contain one target for each sample.

    Parameters
    ----------
    position : (..., 3) array, m, optional
        Where `point` should be in the world.
    rotation : (..., 3, 3) array, quaternion [x, y, z, w], or SciPy Rotation, optional
        Rotation from the axes of the frame to world axes.
    axis : (3,) array, optional
        The axis to which `direction` or `look_at` applies, in the axes of the frame. Any length except zero.
    direction : (..., 3) array, optional
        Direction of the axis in world axes, of any length except zero. The frame may turn about it.
    look_at : (..., 3) array, m, optional
        Point in the world to which the axis points from `point`, at any distance.
    point : (3,) array, m
        A point in the axes of the frame, from its origin.
    position_weight, rotation_weight : float
        Weights of the errors if they cannot all be zero; positive. With equal weights, 1 rad counts as much as the
        sum of the link lengths and of the travels of prismatic joints. They do not change which solutions are exact.

    Raises
    ------
    ArgumentError
        If nothing is given, or more than one of `rotation`, `direction` and `look_at`; if `axis` is missing or not
        used; or if a shape, a rotation or a weight is invalid. Positions that are not finite are allowed: their
        samples have no solution.

    Examples
    --------
    A camera at the tip of an arm looks at a point:

    >>> import rbchain as rb
    >>> arm = rb.Model.serial_chain(2, length=1.0)
    >>> found = arm.inverse_kinematics({"link2": rb.Target(axis=(1, 0, 0), look_at=(0, 2, 0))}, [0.3, 0.2])
    >>> bool(found.success)
    True
    """

    foreign_arguments: ClassVar[dict[str, str]] = {
        "pose": "position and rotation, or a Pose instead of the Target",
        "translation": "position",
        "orientation": "rotation",
        "quaternion": "rotation",
        "gaze": "look_at",
        "weight": "position_weight and rotation_weight",
    }
    position: Made[npt.ArrayLike | None, FloatArray | None] = None  # type: ignore[assignment]
    rotation: Made[npt.ArrayLike | Rotation | None, FloatArray | None] = None  # type: ignore[assignment]
    _: KW_ONLY
    axis: Made[npt.ArrayLike | None, FloatArray | None] = None  # type: ignore[assignment]
    direction: Made[npt.ArrayLike | None, FloatArray | None] = None  # type: ignore[assignment]
    look_at: Made[npt.ArrayLike | None, FloatArray | None] = None  # type: ignore[assignment]
    point: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    position_weight: float = 1.0
    rotation_weight: float = 1.0

    def __post_init__(self) -> None:
        given = [name for name in ORIENTING if getattr(self, name) is not None]
        if len(given) > 1:
            raise ArgumentError(f"Target has {' and '.join(given)}; expected at most one of {', '.join(ORIENTING)}")
        if not given and self.position is None:
            raise ArgumentError(f"Target is empty; expected a position, or one of {', '.join(ORIENTING)}")
        has_axis, needs_axis = self.axis is not None, given in (["direction"], ["look_at"])
        if needs_axis and not has_axis:
            raise ArgumentError(f"Target has {given[0]} without axis; expected the axis, such as axis=(0, 0, 1)")
        if has_axis and not needs_axis:
            raise ArgumentError("Target has axis without direction or look_at. Add one of the two, or remove axis")
        try:
            for name in ("position", "direction", "look_at"):
                if getattr(self, name) is not None:
                    object.__setattr__(self, name, _vectors(getattr(self, name), name))
            if self.rotation is not None:
                object.__setattr__(self, "rotation", _rotations(self.rotation))
            if has_axis:
                object.__setattr__(self, "axis", _non_zero(vector3(self.axis, "axis"), "axis"))  # type: ignore[arg-type]
            object.__setattr__(self, "point", vector3(self.point, "point"))
        except ModelError as error:
            raise ArgumentError(f"Target: {error}") from None
        if self.direction is not None:
            _non_zero(self.direction, "direction")
        parts = {name: getattr(self, name) for name in ("position", *given) if getattr(self, name) is not None}
        batches = {name: x.shape[: -2 if name == "rotation" else -1] for name, x in parts.items()}
        common_batch(batches, ArgumentError, "Target: ")
        for name in ("position_weight", "rotation_weight"):
            object.__setattr__(
                self, name, finite_number(f"Target: {name}", getattr(self, name), ArgumentError, above=0)
            )


class Goals(NamedTuple):
    """All targets of a call as the driver takes them.

    `arrays` are the goals (..., GOAL_ROWS) of each target, and `batches` the shapes of their batches, by the names of
    the frames.
    """

    targets: kinds.Targets
    arrays: list[np.ndarray]
    batches: dict[str, tuple[int, ...]]


def goals_of(targets: Mapping[str, Pose | Target], model: KernelModel) -> Goals:
    """Return the targets of frames of a model as the driver takes them; raise an error if one is not possible."""
    if not isinstance(targets, Mapping) or not targets:
        raise ArgumentError(
            f"targets is {excerpt(targets)}; expected a dict from frames to targets, such as {{'tool0': rb.Pose(...)}}"
        )
    found = [_of_frame(name, target, model) for name, target in targets.items()]
    arrays = [goals for _, _, goals in found]
    return Goals(
        kinds.Targets(np.array([row for row, _, _ in found]).T.copy(), np.array([places for _, places, _ in found])),
        arrays,
        {f"the target of {name!r}": goals.shape[:-1] for name, goals in zip(targets, arrays, strict=True)},
    )


def _of_frame(name: str, given: Any, model: KernelModel) -> tuple[list[int], list[float], np.ndarray]:
    """Return the column of the table, the numbers and the goals (..., GOAL_ROWS) of the target of a frame."""
    frame = model.frame(name)  # raises an error for an unknown name
    target = _as_target(name, given)
    dof, _, *point = model.observed_point(name, target.point, None)
    if dof == model.nv:
        raise ArgumentError(f"frame {name!r} is fixed to the world, so it has no target; expected a frame of a body")
    axis = np.zeros(3) if target.axis is None else frame.pose.rotation @ normalized(target.axis)
    kind, orientation = kinds.KIND_NONE, _padded(np.zeros(3))
    if target.rotation is not None:
        kind = kinds.KIND_ROTATION
        with np.errstate(invalid="ignore"):  # rotations that are not finite
            of_body = target.rotation @ frame.pose.rotation.T
        orientation = of_body.reshape(*of_body.shape[:-2], 9)
    elif target.direction is not None:
        kind, orientation = kinds.KIND_DIRECTION, _padded(_unit(target.direction))
    elif target.look_at is not None:
        kind, orientation = kinds.KIND_GAZE, _padded(target.look_at)
    position = np.zeros(3) if target.position is None else target.position
    batch = np.broadcast_shapes(position.shape[:-1], orientation.shape[:-1])
    goals = np.concatenate([np.broadcast_to(x, (*batch, x.shape[-1])) for x in (position, orientation)], -1)
    weights = (target.position_weight, target.rotation_weight)
    return [int(dof), int(target.position is not None), kind], [*point, *axis, *weights], goals


def _as_target(name: str, given: Any) -> Target:
    """Return a target; the position and the rotation of a pose, or of a batch of poses, as one."""
    if isinstance(given, Target):
        return given
    if isinstance(given, Pose):
        return Target(given.translation, given.rotation)
    raise ArgumentError(
        f"the target of {name!r} is {excerpt(given)}; expected a Pose, a batch of poses as frame_poses returns it, or "
        "a Target. Use rb.Pose.from_matrix for a homogeneous matrix, and rb.Target(position) for a position alone"
    )


def _vectors(value: npt.ArrayLike, what: str) -> FloatArray:
    """Copy vectors (..., 3), which need not be finite."""
    found = numbers(value, what, finite=False)
    if found.shape[-1:] != (3,):
        raise ModelError(f"{what} has shape {found.shape}; expected (..., 3)")
    return found


def _rotations(value: Any) -> FloatArray:
    """Return rotation matrices (..., 3, 3); in a batch, matrices that are not finite are allowed."""
    matrices = value.as_matrix() if hasattr(value, "as_matrix") else value  # SciPy's Rotation
    found = numbers(matrices, "rotation", finite=False)
    if found.ndim < 3 and not (found.shape == (3, 3) and np.isnan(found).any()):
        return rotation_matrix(found)
    if found.shape[-2:] != (3, 3):
        raise ModelError(f"rotation has shape {found.shape}; expected (..., 3, 3), or (4,) for a quaternion")
    is_finite = np.isfinite(found).all((-1, -2), keepdims=True)
    known = np.where(is_finite, found, np.eye(3))
    wrong = np.asarray(~is_rotation(known))
    if wrong.any():
        raise ModelError(
            f"{int(wrong.sum())} of {wrong.size} matrices are not rotations, such as "
            f"{known[tuple(np.argwhere(wrong)[0])].tolist()}; expected orthogonal matrices with determinant 1"
        )
    return np.where(is_finite, nearest_rotation(known), np.nan)


def _non_zero(vectors: FloatArray, what: str) -> FloatArray:
    """Return the vectors (..., 3); raise an ArgumentError if one is zero."""
    if not np.any(vectors, -1).all():
        raise ArgumentError(f"Target: {what} contains a zero vector; expected non-zero vectors")
    return vectors


def _unit(vectors: FloatArray) -> FloatArray:
    """Return vectors (..., 3) scaled to length 1; NaN if they are not finite."""
    is_finite = np.isfinite(vectors).all(-1, keepdims=True)
    return np.where(is_finite, normalized(np.where(is_finite, vectors, 1.0)), np.nan)


def _padded(vectors: FloatArray) -> FloatArray:
    """Return vectors (..., 3) followed by zeros, (..., 9)."""
    return np.concatenate([vectors, np.zeros((*vectors.shape[:-1], 6))], -1)
