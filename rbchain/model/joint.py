"""Types of joints. Axes are in the body's frame, which coincides with the joint's frame at q = 0.

`dofs` of a joint are its degrees of freedom, in order: each is a motion along or about one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import FloatArray
from ..common.values import Value
from ..errors import ModelError
from .pose import Array, numbers, unit_axis

X, Y, Z = np.eye(3)


class Dof(NamedTuple):
    """One degree of freedom: "revolute", "prismatic" or "screw", a unit axis, and the pitch of a screw in m/rad."""

    kind: str
    axis: FloatArray
    pitch: float = 0.0


#: Largest sine of the angle between two axes that count as parallel.
PARALLEL = 1e-9


class DescribedJoint(Value):
    """Base class of all joints.

    Attributes
    ----------
    kind : str
        Name of the class in files.
    dofs : tuple of Dof
        The degrees of freedom.
    """

    internal_names: ClassVar[tuple[str, ...]] = ("kind", "dofs")
    foreign_arguments: ClassVar[dict[str, str]] = {
        "name": "joint_name of ModelBuilder.add_body",
        "limits": "limits of ModelBuilder.add_body",
        "range": "limits=rb.JointLimits(...) of ModelBuilder.add_body",
        "damping": "passive=rb.PassiveForces(damping=...) of ModelBuilder.add_body",
        "stiffness": "passive=rb.PassiveForces(stiffness=...) of ModelBuilder.add_body",
        "armature": "rotor_inertia of ModelBuilder.add_body",
    }


@dataclass(frozen=True, eq=False)
class Revolute(DescribedJoint):
    """Revolute joint: rotates about `axis` by q.

    Parameters
    ----------
    axis : (3,) array
        Axis of rotation in the body's frame (right-hand rule); any length.

    Raises
    ------
    ModelError
        If `axis` does not have three finite components or is zero. This applies to all joints with an axis.

    Notes
    -----
    q is in rad, qd in rad/s and tau in N m.

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.Revolute(axis=(0, 0, 2)).axis.tolist()
    [0.0, 0.0, 1.0]
    """

    axis: Array = (0.0, 0.0, 1.0)  # type: ignore[assignment]
    kind: ClassVar[str] = "revolute"

    @property
    def dofs(self) -> tuple[Dof, ...]:
        return (Dof(self.kind, self.axis),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "axis of a Revolute joint"))


@dataclass(frozen=True, eq=False)
class Prismatic(DescribedJoint):
    """Prismatic joint: translates along `axis` by q.

    Parameters
    ----------
    axis : (3,) array
        Direction of the translation in the body's frame; any length.

    Notes
    -----
    q is in m, qd in m/s and tau in N.

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.Prismatic(axis=(3, 0, 4)).axis.tolist()
    [0.6, 0.0, 0.8]
    """

    axis: Array = (0.0, 0.0, 1.0)  # type: ignore[assignment]
    kind: ClassVar[str] = "prismatic"

    @property
    def dofs(self) -> tuple[Dof, ...]:
        return (Dof(self.kind, self.axis),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "axis of a Prismatic joint"))


@dataclass(frozen=True, eq=False)
class Screw(DescribedJoint):
    """Screw joint: rotates about `axis` by q and translates along it by `pitch` q.

    Parameters
    ----------
    axis : (3,) array
        Axis in the body's frame (right-hand rule); any length.
    pitch : float, m/rad
        Translation per angle; a lead of 5 mm per revolution is 0.005 / (2 pi).

    Raises
    ------
    ModelError
        If `axis` does not have three finite components, or is zero, or `pitch` is not one finite value.

    Notes
    -----
    q is in rad, qd in rad/s and tau in N m.

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.Screw(axis=(0, 0, 1), pitch=0.002).pitch
    0.002
    """

    axis: FloatArray
    pitch: float
    kind: ClassVar[str] = "screw"

    @property
    def dofs(self) -> tuple[Dof, ...]:
        return (Dof(self.kind, self.axis, self.pitch),)

    if TYPE_CHECKING:  # mypy does not treat `Array` as a descriptor in a field without a default

        def __init__(self, axis: npt.ArrayLike, pitch: float) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "axis of a Screw joint"))
        object.__setattr__(self, "pitch", float(numbers(self.pitch, "pitch of a Screw joint", ())))


@dataclass(frozen=True)
class Fixed(DescribedJoint):
    """Fixed joint: the body is merged into its parent body, and its name becomes the name of a frame.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> builder.add_body("arm", joint=rb.Revolute(), inertia=rb.Inertia.rod(1.0, mass=1.0))
    >>> builder.add_body("tool", parent="arm", joint=rb.Fixed(), placement=rb.Pose((0.5, 0, 0)))
    >>> model = builder.build()
    >>> model.n_bodies, model.frame_poses([0.0], "tool").translation.tolist()
    (1, [0.5, 0.0, 0.0])
    """

    kind: ClassVar[str] = "fixed"
    dofs: ClassVar[tuple[Dof, ...]] = ()


@dataclass(frozen=True)
class Free(DescribedJoint):
    """Free joint: six degrees of freedom.

    Notes
    -----
    The position q = [x, y, z, qx, qy, qz, qw] consists of the body's origin (m) and its orientation (unit quaternion)
    in the placement frame. The velocity qd = [linear (m/s), angular (rad/s)] of the body's origin is relative to the
    parent, in body axes, and qdd is its time derivative. The joint force tau = [force (N), moment about the origin
    (N m)] is in body axes. Pinocchio's free-flyer has the same conventions. MuJoCo has the linear velocity in world
    axes, and its quaternion begins with w.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> builder.add_body("satellite", joint=rb.Free(), inertia=rb.Inertia.sphere(1.0, mass=100.0))
    >>> model = builder.build()
    >>> model.nq, model.nv
    (7, 6)
    """

    kind: ClassVar[str] = "free"
    dofs: ClassVar[tuple[Dof, ...]] = (
        *(Dof("prismatic", axis) for axis in (X, Y, Z)),
        *(Dof("revolute", axis) for axis in (X, Y, Z)),
    )


@dataclass(frozen=True)
class Spherical(DescribedJoint):
    """Spherical joint (ball joint): rotates about any axis through the origin; three degrees of freedom.

    Notes
    -----
    The position q = [qx, qy, qz, qw] is the orientation of the body (unit quaternion) in the placement frame. The
    velocity qd is the angular velocity relative to the parent (rad/s), qdd is its time derivative, and tau is the
    moment (N m), all in body axes. Pinocchio and MuJoCo have the same conventions, except that MuJoCo's quaternion
    begins with w.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> builder.add_body("plate", joint=rb.Spherical(), inertia=rb.Inertia.box((1, 1, 0.1), mass=1))
    >>> builder.build().nq, builder.build().nv
    (4, 3)
    """

    kind: ClassVar[str] = "spherical"
    dofs: ClassVar[tuple[Dof, ...]] = tuple(Dof("revolute", axis) for axis in (X, Y, Z))


@dataclass(frozen=True, eq=False)
class Composite(DescribedJoint):
    """Composite joint: joints with one degree of freedom in series at the same point.

    Parameters
    ----------
    joints : sequence of Revolute, Prismatic or Screw
        The joints, from the parent to the body. Each axis is given in the frame that the previous joints move. All
        these frames coincide at q = 0.

    Raises
    ------
    ModelError
        If `joints` is empty or contains other joints.

    Notes
    -----
    q and qd = dq/dt consist of the positions and velocities of the joints, in order.

    Examples
    --------
    >>> import rbchain as rb
    >>> gimbal = rb.Composite([rb.Revolute((0, 0, 1)), rb.Revolute((0, 1, 0)), rb.Revolute((1, 0, 0))])
    >>> builder = rb.ModelBuilder()
    >>> builder.add_body("plate", joint=gimbal, inertia=rb.Inertia.box((1, 1, 0.1), mass=1))
    >>> builder.build().dof_types
    ('revolute', 'revolute', 'revolute')
    """

    joints: Sequence[Revolute | Prismatic | Screw]
    kind: ClassVar[str] = "composite"

    @property
    def dofs(self) -> tuple[Dof, ...]:
        return tuple(joint.dofs[0] for joint in self.joints)

    def __post_init__(self) -> None:
        given = self.joints
        kinds = (Revolute, Prismatic, Screw)
        if not isinstance(given, (tuple, list)) or not given or not all(isinstance(joint, kinds) for joint in given):
            raise ModelError(
                f"joints of a Composite joint are {given!r}; expected a list of one or more Revolute, Prismatic or "
                "Screw joints"
            )
        object.__setattr__(self, "joints", tuple(given))


@dataclass(frozen=True, eq=False)
class Universal(DescribedJoint):
    """Universal joint: rotates about `first`, and then about `second` in the rotated frame.

    Parameters
    ----------
    first, second : (3,) array
        Axes of rotation in the body's frame at q = 0; any length. They need not be orthogonal.

    Notes
    -----
    q = [angle about first, angle about second] in rad, and qd = dq/dt.

    Examples
    --------
    >>> import rbchain as rb
    >>> rb.Universal().second.tolist()
    [0.0, 1.0, 0.0]
    """

    first: Array = (1.0, 0.0, 0.0)  # type: ignore[assignment]
    second: Array = (0.0, 1.0, 0.0)  # type: ignore[assignment]
    kind: ClassVar[str] = "universal"

    @property
    def dofs(self) -> tuple[Dof, ...]:
        return (Dof("revolute", self.first), Dof("revolute", self.second))

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", unit_axis(self.first, "first of a Universal joint"))
        object.__setattr__(self, "second", unit_axis(self.second, "second of a Universal joint"))
        if not (np.abs(np.cross(self.first, self.second)) > PARALLEL).any():
            raise ModelError(
                f"first is {self.first.tolist()} and second is {self.second.tolist()}, which are parallel; expected "
                "two directions. For one axis, use Revolute"
            )


@dataclass(frozen=True, eq=False)
class Planar(DescribedJoint):
    """Planar joint: translates in the plane normal to `axis`, and then rotates about `axis`.

    Parameters
    ----------
    axis : (3,) array
        Normal of the plane in the body's frame; any length.

    Notes
    -----
    q = [x, y, angle] (m, m, rad) and qd = dq/dt. The directions of the translations are fixed in the placement frame.
    They are its x and y, turned by the smallest rotation that takes z to `axis`; `rbchain.model.joint.axes_along`
    defines them for axes with a negative z. Drake has the same conventions. In Pinocchio the velocity is in body axes,
    and q contains the cosine and the sine of the angle.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder()
    >>> builder.add_body("plate", joint=rb.Planar(), inertia=rb.Inertia.box((1, 1, 0.1), mass=1))
    >>> builder.build().dof_types
    ('prismatic', 'prismatic', 'revolute')
    """

    axis: Array = (0.0, 0.0, 1.0)  # type: ignore[assignment]
    kind: ClassVar[str] = "planar"

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis, "axis of a Planar joint"))

    @property
    def dofs(self) -> tuple[Dof, ...]:
        turn = axes_along(self.axis)
        return (Dof("prismatic", turn[:, 0]), Dof("prismatic", turn[:, 1]), Dof("revolute", self.axis))


JOINTS = (Revolute, Prismatic, Screw, Fixed, Free, Spherical, Planar, Universal, Composite)
AnyJoint = Revolute | Prismatic | Screw | Fixed | Free | Spherical | Planar | Universal | Composite
#: Types of joints whose position contains a quaternion, with the length of their position.
QUATERNION_JOINTS = {Free.kind: 7, Spherical.kind: 4}


def axes_along(axis: FloatArray) -> FloatArray:
    """Return rotations (..., 3, 3) that turn z to the unit vectors `axis` (..., 3); the identity for z itself.

    For an axis with z >= 0 this is the rotation by the smallest angle. For other axes it is F R, where F is
    diag(1, -1, -1) and R is the rotation by the smallest angle from z to F axis. So it is well conditioned near -z.
    """
    x, y, z = np.moveaxis(axis, -1, 0)
    sign = np.where(z >= 0.0, 1.0, -1.0)
    a, b, c = x, sign * y, sign * z
    d = 1.0 / (1.0 + c)
    upper = np.array([[1.0 - a * a * d, -a * b * d, a], [-a * b * d, 1.0 - b * b * d, b], [-a, -b, c]])
    rotation = np.moveaxis(upper, (0, 1), (-2, -1))
    return np.stack([np.ones_like(sign), sign, sign], -1)[..., :, None] * rotation
