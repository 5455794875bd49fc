"""Forces between two bodies: springs with dampers, and bushings. `flatten_between_bodies` turns them into arrays."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt, real_array
from ..errors import ArgumentError
from ..model.constraints import BallConstraint, HingeConstraint, WeldConstraint
from ..model.pose import Pose
from .numeric_fields import LARGEST, POSE, Force, NumericField

if TYPE_CHECKING:
    from .sphere_contacts import SphereSphereContact

#: Former names of the frames at the ends of a force.
FORMER_ENDS = {"body_a": "frame_a", "body_b": "frame_b"}


@dataclass(frozen=True, eq=False)
class SpringDamper(Force):
    """A spring with a damper between two points on two bodies, or between a body and the world.

    The tension is stiffness (L - rest_length) + damping dL/dt, where L is the distance of the points. It acts along the
    line through the points, with opposite signs on the two bodies.

    Parameters
    ----------
    frame_a, frame_b : str or None
        Names of bodies, or of frames on fixed joints; None for the world.
    point_a, point_b : (3,) or (..., 3) array, m
        The points, each in the axes of its frame, from its origin; in world coordinates for the world.
    stiffness : float or (...) array, N/m
        At least 0. An array has one value for each sample, here and in the other parameters.
    damping : float or (...) array, N s/m
        At least 0.
    rest_length : float or (...) array, m
        Length without elastic tension, at least 0.
    tension_only : bool
        Whether the spring can only pull, like a cable. The tension is then max(0, stiffness (L - rest_length) + damping
        dL/dt): it is never negative, and is zero while the sum is negative. A cable shorter than its rest length
        therefore pulls if it lengthens fast enough.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Notes
    -----
    A spring of zero length has no direction. Its force is zero at this length. If `rest_length` and `damping` are zero,
    the force is stiffness times the vector between the points, which is smooth there; otherwise it jumps.
    `Model.elastic_energy` computes the energy stiffness (L - rest_length)^2 / 2, or zero if a cable is shorter than its
    rest length. MuJoCo's spatial tendons have the same force.

    Examples
    --------
    A mass of 1 kg on a vertical spring of 100 N/m oscillates with a period of 2 pi / 10 s:

    >>> import numpy as np, rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> builder.add_body("mass", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=1.0))
    >>> spring = rb.SpringDamper(None, "mass", point_a=(0, 0, -1), point_b=(0, 0, 0), stiffness=100.0, rest_length=1.0)
    >>> motion = builder.build().simulate([[0.1]], duration=np.pi / 10, forces=[spring])
    >>> motion.q[0, -1].round(6).tolist()
    [-0.1]
    """

    renamed_arguments: ClassVar = FORMER_ENDS
    renamed_attributes: ClassVar = FORMER_ENDS
    numeric_fields: ClassVar = (
        NumericField("point_a", "m", -LARGEST, LARGEST, (3,)),
        NumericField("point_b", "m", -LARGEST, LARGEST, (3,)),
        NumericField("stiffness", "N/m", 0.0, LARGEST),
        NumericField("damping", "N s/m", 0.0, LARGEST),
        NumericField("rest_length", "m", 0.0, LARGEST),
    )
    frame_a: str | None
    frame_b: str | None
    _: KW_ONLY
    point_a: npt.ArrayLike
    point_b: npt.ArrayLike
    stiffness: npt.ArrayLike
    damping: npt.ArrayLike = 0.0
    rest_length: npt.ArrayLike = 0.0
    tension_only: bool = False

    def label(self) -> str:
        """Return the names of the class and of the frames, for messages."""
        return f"SpringDamper {label_of(self)}"


@dataclass(frozen=True, eq=False)
class Bushing(Force):
    """Linear stiffness and damping between a frame A on one body and a frame B on another, or on the world.

    The displacement x = (p, phi) has six components, in the axes of A. p is the position of the origin of B, and phi is
    the rotation vector of the axes of B. The wrench on body b, at the origin of B and in the axes of A, is
    -J^T (K x + D dx/dt), where J maps the relative velocity to dx/dt. Body a receives the opposite wrench at the same
    point.

    Parameters
    ----------
    frame_a, frame_b : str or None
        Names of bodies, or of frames on fixed joints; None for the world.
    stiffness : (6, 6) or (..., 6, 6) array, N/m, N/rad, N m/m and N m/rad
        K, a symmetric and positive semidefinite matrix. Translations come before rotations.
    damping : (6, 6) or (..., 6, 6) array, N s/m, N s/rad, N s and N m s/rad
        D, a symmetric and positive semidefinite matrix; zero by default.
    pose_a, pose_b : Pose, optional
        Poses of A and B in `frame_a` and `frame_b`; these frames themselves by default. A pose that rbchain has
        computed may have batch axes.
    free_axis : bool
        Whether B turns freely about the z axis of A by any angle, as in a bearing. Then phi is the tilt z_A x z_B, and
        the last row and column of K and D are zero.
    name : str, optional
        Owner of the parameters in paths, as in "NAME.field"; see `Dispersion`.

    Raises
    ------
    ArgumentError
        From the functions that take forces: if a body does not exist, or both frames are fixed to the same body. Also
        if a matrix is invalid, or its last row is not zero although the axis is free.

    Notes
    -----
    `in_place_of` creates a stiff bushing that replaces a constraint between two frames.

    The elastic wrench is conservative: `Model.elastic_energy` computes its potential x^T K x / 2. The damping
    dissipates the power dx/dt^T D dx/dt. The rotation vector is unique for angles below pi. At pi, the vector and the
    moment jump to their opposites, so use bushings for rotations well below pi, except about a free axis.

    Simbody's `Force::LinearBushing` and Drake's `LinearBushingRollPitchYaw` have diagonal matrices, and three angles
    instead of the rotation vector. For a rotation about one axis of A, the angles and the vector are the same. Drake
    expresses the translation in axes halfway between A and B.

    References
    ----------
    Bullo and Murray (1995), "Proportional derivative (PD) control on the Euclidean group"; Sherman, Seth and Delp
    (2011), "Simbody: multibody dynamics for biomedical research".

    Examples
    --------
    A disk of 2 kg m^2 on a bushing of 8 N m/rad oscillates with a period of pi s:

    >>> import numpy as np, rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> builder.add_body("disk", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(1.0, inertia=(1, 1, 2)))
    >>> bushing = rb.Bushing(None, "disk", stiffness=np.diag([1e3, 1e3, 1e3, 1e2, 1e2, 8.0]))
    >>> motion = builder.build().simulate([[0.1]], duration=np.pi / 2, forces=[bushing])
    >>> motion.q[0, -1].round(6).tolist()
    [-0.1]
    """

    renamed_arguments: ClassVar = FORMER_ENDS
    renamed_attributes: ClassVar = FORMER_ENDS
    numeric_fields: ClassVar = (
        NumericField("stiffness", "", -LARGEST, LARGEST, (6, 6)),
        NumericField("damping", "", -LARGEST, LARGEST, (6, 6)),
        NumericField("pose_a", "", kind=POSE),
        NumericField("pose_b", "", kind=POSE),
    )
    frame_a: str | None
    frame_b: str | None
    _: KW_ONLY
    stiffness: npt.ArrayLike
    damping: npt.ArrayLike | None = None
    pose_a: Pose | None = None
    pose_b: Pose | None = None
    free_axis: bool = False

    @classmethod
    def in_place_of(
        cls,
        constraint: BallConstraint | HingeConstraint | WeldConstraint,
        *,
        compliance: npt.ArrayLike,
        angular_compliance: npt.ArrayLike | None = None,
        damping_time: npt.ArrayLike,
    ) -> Bushing:
        """Make a stiff bushing that acts in place of a constraint, and yields under load.

        Use it for loops that close only with perfect dimensions, and for redundant bearings, whose forces then become
        unique. Do not add the constraint to the model. Compliant constraints (`ModelBuilder.add_constraint`) allow
        longer steps, but some functions, such as `equilibrium`, only support bushings.

        Parameters
        ----------
        constraint : BallConstraint, HingeConstraint or WeldConstraint
        compliance : float or (...) array, m/N
            Displacement per force, the same in all directions; more than 0.
        angular_compliance : float or (...) array, rad/(N m)
            Tilt or rotation per moment, of a hinge or a weld; more than 0.
        damping_time : float or (...) array, s
            Time in which a displacement without inertia decays by the factor e, at least 0. The damping is this time
            times the stiffness. With damping, "radau" and "rosenbrock" take much longer steps.

        Returns
        -------
        Bushing
            With the name of the constraint.

        Raises
        ------
        ArgumentError
            If a value is invalid, the shapes of the values differ, or the constraint is of another class.

        Examples
        --------
        >>> import rbchain as rb
        >>> hinge = rb.HingeConstraint("tip", "coupler", "rocker", point_a=(0.9, 0, 0), point_b=(0.6, 0, 0))
        >>> bearing = rb.Bushing.in_place_of(hinge, compliance=1e-8, angular_compliance=1e-6, damping_time=1e-3)
        >>> bearing.free_axis, [float(f"{k:.3g}") for k in bearing.stiffness.diagonal()]
        (True, [100000000.0, 100000000.0, 100000000.0, 1000000.0, 1000000.0, 0.0])
        """
        what = "Bushing.in_place_of"
        if not isinstance(constraint, BallConstraint | HingeConstraint | WeldConstraint):
            raise ArgumentError(
                f"{what}: the constraint is {excerpt(constraint)}; expected a BallConstraint, a HingeConstraint or a "
                "WeldConstraint"
            )
        is_ball, is_hinge = (isinstance(constraint, kind) for kind in (BallConstraint, HingeConstraint))
        if is_ball != (angular_compliance is None):
            expected = "none, because a ball joint turns freely" if is_ball else "the tilt per moment, rad/(N m)"
            raise ArgumentError(f"{what}: angular_compliance is {excerpt(angular_compliance)}; expected {expected}")
        numbers = {"compliance": positive_numbers(f"{what}: compliance", compliance)}
        if angular_compliance is not None:
            numbers["angular_compliance"] = positive_numbers(f"{what}: angular_compliance", angular_compliance)
        numbers["damping_time"] = time = positive_numbers(f"{what}: damping_time", damping_time, zero=True)
        try:
            np.broadcast_shapes(*(x.shape for x in numbers.values()))
        except ValueError:
            found = ", ".join(f"{name} {x.shape}" for name, x in numbers.items())
            raise ArgumentError(f"{what}: the shapes are {found}; expected one number or one per sample") from None
        linear = 1.0 / numbers["compliance"]
        angular = np.zeros(()) if is_ball else 1.0 / numbers["angular_compliance"]
        rows = (linear,) * 3 + (angular, angular, 0.0 * angular if is_hinge else angular)
        stiffness = np.stack(np.broadcast_arrays(*rows), -1)[..., None, :] * np.eye(6)
        pose_a, pose_b = constraint.poses
        return cls(
            constraint.frame_a,
            constraint.frame_b,
            stiffness=stiffness,
            damping=time[..., None, None] * stiffness,
            pose_a=pose_a,
            pose_b=pose_b,
            free_axis=is_hinge,
            name=constraint.name,
        )

    def label(self) -> str:
        """Return the names of the class and of the frames, for messages."""
        return f"Bushing {label_of(self)}"


#: The classes of forces between bodies.
BETWEEN_BODIES = (SpringDamper, Bushing)


def label_of(force: SpringDamper | Bushing | SphereSphereContact) -> str:
    """Return the name of a force in a study: the names of its frames, such as "slider-rod1", or "world"."""
    return "-".join("world" if frame is None else str(frame) for frame in (force.frame_a, force.frame_b))


def is_between_bodies(force: Any) -> bool:
    """Whether a force acts between two bodies."""
    return isinstance(force, BETWEEN_BODIES)


def positive_numbers(what: str, value: npt.ArrayLike, zero: bool = False) -> np.ndarray:
    """Return finite values (...) above zero, or of at least zero if `zero`; raise ArgumentError for others."""
    found = finite_numbers(what, value, ())
    if (found < 0.0).any() or not (zero or found.all()):
        raise ArgumentError(f"{what} is {excerpt(found.tolist())}; expected {'at least' if zero else 'more than'} 0")
    return found


def finite_numbers(what: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Return finite values (..., *shape); raise ArgumentError for others."""
    found = real_array(what, value, ArgumentError)
    if found.shape[max(0, found.ndim - len(shape)) :] != shape:
        expected = ", ".join(map(str, shape))
        raise ArgumentError(f"{what} has shape {found.shape}; expected {shape} or (..., {expected})")
    if not np.isfinite(found).all():
        raise ArgumentError(f"{what} is {excerpt(found.tolist())}; expected finite numbers")
    return found
