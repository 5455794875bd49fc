"""Constraints between bodies, which close the loops of a mechanism, and between joints, such as gears."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, get_args

import numpy.typing as npt

from ..common.real_arrays import excerpt
from ..errors import ModelError
from .declared_constraint import BodyConstraint, DeclaredConstraint, Rows, name_of
from .pose import Array, Pose


@dataclass(frozen=True, eq=False)
class BallConstraint(BodyConstraint):
    """Hold a point of body b at a point of body a, as a ball joint does.

    Parameters
    ----------
    name : str
        Name of the constraint.
    frame_a, frame_b : str or None
        Names of bodies, or of frames on fixed joints; None for the world.
    point_a, point_b : (3,) array, m
        Each point in the axes of its frame, from its origin; in world coordinates for the world.
    compliance, relaxation_time
        Arguments of `ModelBuilder.add_constraint`, which sets them; None for a rigid constraint.

    Raises
    ------
    ModelError
        If a name or a value is invalid, or both bodies are the same. `ModelBuilder.build` also raises it if a body
        does not exist, or if the bodies are fixed to each other.

    Notes
    -----
    The residual is point b minus point a, in world axes, m. The multipliers are the force on body b, in world axes, N.

    Examples
    --------
    A hinge and a ball joint support the two ends of a rod:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> builder.add_body("rod", joint=rb.Revolute(axis=(0, 1, 0)), inertia=rb.Inertia.rod(1.0, mass=2.0))
    >>> builder.add_constraint(rb.BallConstraint("pin", None, "rod", point_a=(0, 0, 1), point_b=(0, 0, 1)))
    >>> builder.build().constraint_residual([0.0]).tolist()
    [0.0, 0.0, 0.0]
    """

    name: str
    frame_a: str | None
    frame_b: str | None
    point_a: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    point_b: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    _: KW_ONLY
    compliance: float | None = None
    relaxation_time: float | None = None
    kind: ClassVar[str] = "ball"
    rows: ClassVar[Rows] = Rows("position")
    side_fields: ClassVar[tuple[str, ...]] = ("point",)


@dataclass(frozen=True, eq=False)
class HingeConstraint(BodyConstraint):
    """Hold a point and an axis of body b at a point and an axis of body a, as a hinge does.

    Parameters
    ----------
    name, frame_a, frame_b, point_a, point_b
        As for `BallConstraint`.
    axis_a, axis_b : (3,) array
        The axis of the hinge in the axes of each body, of any length except 0; z by default.
    compliance, angular_compliance, relaxation_time
        As for `BallConstraint`.

    Raises
    ------
    ModelError
        As for `BallConstraint`.

    Notes
    -----
    The residual has five rows: three rows as in a `BallConstraint`, then the components of the unit vector along axis b
    on two axes of body a that are normal to axis a. The multipliers are the force on body b, N, then two moments, N m.

    Examples
    --------
    A door is 0.1 m above its hinge:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> builder.add_body("door", joint=rb.Free(), inertia=rb.Inertia.box((1, 0.05, 2), mass=20))
    >>> builder.add_constraint(rb.HingeConstraint("hinge", None, "door"))
    >>> builder.build().constraint_residual([0, 0, 0.1, 0, 0, 0, 1]).tolist()
    [0.0, 0.0, 0.1, 0.0, 0.0]
    """

    name: str
    frame_a: str | None
    frame_b: str | None
    point_a: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    point_b: Array = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    axis_a: Array = (0.0, 0.0, 1.0)  # type: ignore[assignment]
    axis_b: Array = (0.0, 0.0, 1.0)  # type: ignore[assignment]
    _: KW_ONLY
    compliance: float | None = None
    angular_compliance: float | None = None
    relaxation_time: float | None = None
    kind: ClassVar[str] = "hinge"
    rows: ClassVar[Rows] = Rows("position", (((0, 2),), ((1, 2),)), aligned=(2,))
    side_fields: ClassVar[tuple[str, ...]] = ("point", "axis")


@dataclass(frozen=True, eq=False)
class WeldConstraint(BodyConstraint):
    """Hold a frame of body b at a frame of body a.

    Parameters
    ----------
    name, frame_a, frame_b
        As for `BallConstraint`.
    pose_a, pose_b : Pose
        Pose of each frame in the frame of its body. The default is the frame of the body.
    compliance, angular_compliance, relaxation_time
        As for `BallConstraint`.

    Raises
    ------
    ModelError
        As for `BallConstraint`.

    Notes
    -----
    The residual has six rows: three rows as in a `BallConstraint`, then sin(angle) times the axis of the rotation
    between the two frames, in the axes of frame a. The multipliers are the force on body b, N, then the moment, N m.

    Examples
    --------
    A plate is welded to a frame at a distance of 0.1 m:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> builder.add_body("plate", joint=rb.Free(), inertia=rb.Inertia.box((1, 1, 0.01), mass=8))
    >>> builder.add_constraint(rb.WeldConstraint("weld", None, "plate"))
    >>> builder.build().constraint_residual([0.1, 0, 0, 0, 0, 0, 1]).tolist()
    [0.1, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    name: str
    frame_a: str | None
    frame_b: str | None
    pose_a: Pose = Pose()  # noqa: RUF009 - immutable
    pose_b: Pose = Pose()  # noqa: RUF009
    _: KW_ONLY
    compliance: float | None = None
    angular_compliance: float | None = None
    relaxation_time: float | None = None
    kind: ClassVar[str] = "weld"
    rows: ClassVar[Rows] = Rows("position", (((2, 1), (1, 2)), ((0, 2), (2, 0)), ((1, 0), (0, 1))), aligned=(0, 1, 2))
    side_fields: ClassVar[tuple[str, ...]] = ("pose",)


@dataclass(frozen=True, eq=False)
class DistanceConstraint(BodyConstraint):
    """Hold the distance between two points, as a massless rod with ball joints does.

    Parameters
    ----------
    name, frame_a, frame_b, point_a, point_b
        As for `BallConstraint`.
    length : float, m
        The distance; more than 0.
    compliance, relaxation_time
        As for `BallConstraint`.

    Raises
    ------
    ModelError
        As for `BallConstraint`.

    Notes
    -----
    The residual is the distance minus `length`, m. The multiplier is the force on body b away from point a, N. It is
    negative if the rod is under tension.

    Examples
    --------
    A bob is 0.1 m too low for its rod of 1 m:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> builder.add_body("bob", joint=rb.Free(), inertia=rb.Inertia.box((0.1, 0.1, 0.1), mass=1))
    >>> rod = rb.DistanceConstraint("rod", None, "bob", point_a=(0, 0, 0), point_b=(0, 0, 0), length=1.0)
    >>> builder.add_constraint(rod)
    >>> builder.build().constraint_residual([0, 0, -1.1, 0, 0, 0, 1]).round(12).tolist()
    [0.1]
    """

    name: str
    frame_a: str | None
    frame_b: str | None
    point_a: npt.ArrayLike
    point_b: npt.ArrayLike
    length: float
    _: KW_ONLY
    compliance: float | None = None
    relaxation_time: float | None = None
    kind: ClassVar[str] = "distance"
    rows: ClassVar[Rows] = Rows("distance")
    side_fields: ClassVar[tuple[str, ...]] = ("point",)


@dataclass(frozen=True, eq=False)
class CouplerConstraint(DeclaredConstraint):
    """Couple the position of a joint to the position of another joint: q = ratio q_other + offset.

    This models gears, racks and pinions, belts and the mimic joints of URDF.

    Parameters
    ----------
    name : str
        Name of the constraint.
    joint, other : str
        Names of two joints with one degree of freedom each.
    ratio : float
        Change of q per change of q_other; not 0. The unit is m/rad if only `joint` is prismatic, and rad/m if only
        `other` is.
    offset : float, rad or m
        Position of `joint` if the position of `other` is 0.

    Raises
    ------
    ModelError
        If a name or a value is invalid, or both joints are the same. `ModelBuilder.build` also raises it if a joint
        does not exist or has several degrees of freedom.

    Notes
    -----
    The residual is q - ratio q_other - offset, rad or m. The multiplier is the force of the gear on `joint`, N m or N.

    Examples
    --------
    A motor drives an arm through a gear with a ratio of 1/2:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> for name in ("motor", "arm"):
    ...     builder.add_body(name, joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)))
    >>> builder.add_constraint(rb.CouplerConstraint("gear", "arm", "motor", ratio=0.5))
    >>> builder.build().forward_dynamics([0, 0], [0, 0], [5.0, 0]).round(12).tolist()
    [4.0, 2.0]
    """

    name: str
    joint: str
    other: str
    ratio: float
    offset: float = 0.0
    kind: ClassVar[str] = "coupler"
    rows: ClassVar[Rows] = Rows("coupler")

    def _check_ends(self) -> None:
        for field in ("joint", "other"):
            joint = getattr(self, field)
            if not isinstance(joint, str):
                raise ModelError(f"{name_of(self)}: {field} is {excerpt(joint)}; expected the name of a joint")
        if self.joint == self.other:
            raise ModelError(f"{name_of(self)}: it couples joint {self.joint!r} to itself; expected two joints")


Constraint = BallConstraint | HingeConstraint | WeldConstraint | DistanceConstraint | CouplerConstraint
KINDS: dict[str, type[Constraint]] = {constraint.kind: constraint for constraint in get_args(Constraint)}
