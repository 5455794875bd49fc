"""Forces between two bodies: springs with dampers, and bushings. `flatten_between_bodies` turns them into arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt, real_array
from ..core.forces import bushings, springs
from ..core.tree.layout import TOPOLOGY_COORDINATE
from ..drivers import between_bodies as drivers
from ..errors import ArgumentError
from ..model.constraints import BallConstraint, HingeConstraint, WeldConstraint
from ..model.pose import Pose, asymmetry, is_rotation
from .numeric_fields import LARGEST, POSE, Force, NumericField
from .packing import SampleNumbers

if TYPE_CHECKING:
    from ..facade.model import Model
    from .sphere_contacts import SphereSphereContact

#: Former names of the frames at the ends of a force.
FORMER_ENDS = {"body_a": "frame_a", "body_b": "frame_b"}
#: Largest difference between symmetric entries of a matrix, and largest negative eigenvalue, relative to its entries.
ROUND_OFF = 1e-12


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
        Whether the spring can only pull, as a cable. The tension is then max(0, stiffness (L - rest_length) + damping
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
    `in_place_of` makes the bushing that holds two frames as a constraint does, but gives way.

    The elastic wrench is conservative: `Model.elastic_energy` computes its potential x^T K x / 2. The damping
    dissipates the power dx/dt^T D dx/dt. The rotation vector is unique for angles below pi. At pi it jumps to its
    opposite, and the moment with it, so bushings suit rotations well below pi, except about a free axis.

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
        """Make a stiff bushing that acts in place of a constraint, and gives way under load.

        Use it for loops that close only with perfect dimensions, and for redundant bearings, whose forces then are
        unique. Do not add the constraint to the model. `ModelBuilder.add_constraint` makes compliant constraints with
        longer steps; bushings also act in functions that do not support them, such as `equilibrium`.

        Parameters
        ----------
        constraint : BallConstraint, HingeConstraint or WeldConstraint
        compliance : float or (...) array, m/N
            Displacement per force, the same in all directions; more than 0.
        angular_compliance : float or (...) array, rad/(N m)
            Tilt or rotation per moment, of a hinge or a weld; more than 0.
        damping_time : float or (...) array, s
            Time in which a displacement without inertia decays by the factor e, at least 0. The damping is this time
            times the stiffness. Methods "radau" and "rosenbrock" then take steps that are much longer.

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


def flatten_between_bodies(
    model: Model, forces: Sequence[Any], numbers: SampleNumbers
) -> tuple[np.ndarray, np.ndarray]:
    """Add the numbers of springs and bushings to the arrays, and return their codes.

    Returns
    -------
    springs, bushings : (SPRING_ROWS, springs) and (BUSHING_ROWS, bushings) arrays of int
        Both may have no columns. Other forces are ignored.

    Raises
    ------
    ArgumentError, ModelError
        If a body does not exist, both bodies are the same, or values are invalid.
    """
    of_springs = [_flat_spring(model, force, numbers) for force in forces if isinstance(force, SpringDamper)]
    of_bushings = [_flat_bushing(model, force, numbers) for force in forces if isinstance(force, Bushing)]
    return (
        np.array(of_springs, np.int64).reshape(-1, springs.SPRING_ROWS).T.copy(),
        np.array(of_bushings, np.int64).reshape(-1, bushings.BUSHING_ROWS).T.copy(),
    )


def compute_between_bodies(
    model: Model,
    forces: Sequence[Any],
    batch: tuple[int, ...],
    driver: Callable[..., Any],
    shape: tuple[int, ...],
    states: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    repeats: int = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Call a driver of `drivers.between_bodies` for states, (..., nq) and (..., nv) arrays.

    Parameters
    ----------
    model : Model
    forces : sequence
        Springs and bushings; other forces are ignored.
    batch : tuple
        Shape of the batch for which the numbers of the forces are given.
    driver, shape, states, out
        As for `KernelModel.compute`.
    repeats : int
        Number of consecutive states that each sample of the batch has.
    """
    numbers = SampleNumbers(batch)
    codes = flatten_between_bodies(model, forces, numbers)
    given = numbers.rows()
    if given.shape[0] > 1 and repeats > 1:
        given = np.repeat(given, repeats, axis=0)
    sums = 6 * (model.nv + 1) if driver is drivers.wrenches_between_bodies else 0
    return model.kernel_model.compute(
        driver, shape, ("q", "qd"), states, scratch=sums + given.shape[1], given=(*codes, given), out=out
    )


def is_between_bodies(force: Any) -> bool:
    """Whether a force acts between two bodies."""
    return isinstance(force, BETWEEN_BODIES)


def _flat_spring(model: Model, spring: SpringDamper, numbers: SampleNumbers) -> tuple[int, int, int, int]:
    what = spring.label()
    (dof_a, pose_a), (dof_b, pose_b) = bodies_at_ends(model, what, spring)
    first = len(numbers.columns)
    for name, pose in (("point_a", pose_a), ("point_b", pose_b)):
        found = spring.numeric_field(name).checked(what, getattr(spring, name))
        numbers.add_row(f"{what}: {name}", found @ pose.rotation.T + pose.translation)
    for name in ("stiffness", "damping", "rest_length"):
        numbers.add_field(what, spring, name)
    return dof_a, dof_b, first, int(spring.tension_only)


def _flat_bushing(model: Model, bushing: Bushing, numbers: SampleNumbers) -> tuple[int, int, int, int]:
    what = bushing.label()
    (dof_a, body_a), (dof_b, body_b) = bodies_at_ends(model, what, bushing)
    first = len(numbers.columns)
    for name, given, of_body in (("pose_a", bushing.pose_a, body_a), ("pose_b", bushing.pose_b, body_b)):
        pose = of_body @ _pose(f"{what}: {name}", given)
        numbers.add_row(f"{what}: {name}", pose.translation)
        numbers.add_row(f"{what}: {name}", pose.rotation.reshape(*pose.rotation.shape[:-2], 9))
    damping = np.zeros((6, 6)) if bushing.damping is None else bushing.damping
    for name, matrix in (("stiffness", bushing.stiffness), ("damping", damping)):
        found = _dissipative(f"{what}: {name}", bushing.numeric_field(name).checked(what, matrix))
        if bushing.free_axis and np.any(found[..., 5, :]):
            raise ArgumentError(
                f"{what}: the last row of its {name} is {excerpt(found[..., 5, :].tolist())}; expected zeros, because "
                "it turns freely about its z axis. Set free_axis to False if it resists this rotation"
            )
        numbers.add_row(f"{what}: {name}", found.reshape(*found.shape[:-2], 36))
    return dof_a, dof_b, first, int(bushing.free_axis)


def bodies_at_ends(
    model: Model, what: str, force: SpringDamper | Bushing | SphereSphereContact
) -> list[tuple[int, Pose]]:
    """Return the last dof of each body (nv for the world), and the pose of its frame in the axes of the body."""
    found = []
    for name in (force.frame_a, force.frame_b):
        if name is None:
            found.append((-1, Pose()))
            continue
        frame = model.kernel_model.frame(name)
        found.append((frame.body, frame.pose))
    if found[0][0] == found[1][0]:
        body_name = "the world" if found[0][0] < 0 else f"body {model.body_names[found[0][0]]!r}"
        raise ArgumentError(f"{what}: both ends are fixed to {body_name}; expected two different bodies")
    return [(model.nv if i < 0 else int(model.kernel_model.dofs.last[i]), pose) for i, pose in found]


def positive_numbers(what: str, value: npt.ArrayLike, zero: bool = False) -> np.ndarray:
    """Return finite values (...) above zero, or of at least zero if `zero`; raise ArgumentError for others."""
    found = _finite(what, value, ())
    if (found < 0.0).any() or not (zero or found.all()):
        raise ArgumentError(f"{what} is {excerpt(found.tolist())}; expected {'at least' if zero else 'more than'} 0")
    return found


def _finite(what: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    found = real_array(what, value, ArgumentError)
    if found.shape[max(0, found.ndim - len(shape)) :] != shape:
        expected = ", ".join(map(str, shape))
        raise ArgumentError(f"{what} has shape {found.shape}; expected {shape} or (..., {expected})")
    if not np.isfinite(found).all():
        raise ArgumentError(f"{what} is {excerpt(found.tolist())}; expected finite numbers")
    return found


def _pose(what: str, pose: Pose | None) -> Pose:
    if pose is None:
        return Pose()
    if not isinstance(pose, Pose):
        raise ArgumentError(f"{what} is {excerpt(pose)}; expected a Pose")
    _finite(f"{what}: translation", pose.translation, (3,))
    if not is_rotation(_finite(f"{what}: rotation", pose.rotation, (3, 3))).all():
        raise ArgumentError(f"{what}: rotation is {excerpt(pose.rotation.tolist())}; expected rotation matrices")
    return pose


def _dissipative(what: str, found: np.ndarray) -> np.ndarray:
    """Return symmetric matrices without negative eigenvalues; raise ArgumentError for others."""
    allowed = ROUND_OFF * np.abs(found).max((-1, -2), initial=0.0)
    skew = np.abs(found - found.mT).max((-1, -2)) > allowed
    if skew.any():
        raise ArgumentError(f"{what} {asymmetry(found[skew][0] if found.ndim > 2 else found)}")
    found = (found + found.mT) / 2
    least = np.linalg.eigvalsh(found)[..., 0]
    if (least < -allowed).any():
        raise ArgumentError(
            f"{what} has the eigenvalue {float(least.min()):g}; expected a positive semidefinite matrix, without "
            "negative eigenvalues"
        )
    return found


def elastic_energy(model: Model, forces: Sequence[Any], q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Compute the elastic energy at positions q (..., times, nq), as (..., times), J.

    Joint springs, elastic stops, and springs and bushings between bodies store it.
    """
    energy = elastic_energy_of_joints(model, q)
    if not any(is_between_bodies(force) for force in forces):
        return energy
    driver, repeats, batch = drivers.elastic_energy, states_of_sample(model, q), q.shape[:-2]
    several = model[..., None]
    return energy + compute_between_bodies(several, forces, batch, driver, (1,), (q, qd), repeats=repeats)[..., 0]


def elastic_energy_of_joints(model: Model, q: np.ndarray) -> np.ndarray:
    """Compute the elastic energy of joint springs and stops at positions q (..., times, nq), as (..., times), J.

    `core.forces.passive` computes the forces.
    """
    fields = ("stiffness", "cubic_stiffness", "rest_position", "limit_stiffness", "stop_lower", "stop_upper")
    k, k3, rest, k_stop, lower, upper = (getattr(model, name)[..., None, :].astype(q.dtype) for name in fields)
    position = q[..., model.kernel_model.topology[TOPOLOGY_COORDINATE]]
    squared = (position - rest) ** 2
    depth = np.maximum(lower - position, 0.0) + np.maximum(position - upper, 0.0)
    return (0.5 * k * squared + 0.25 * k3 * squared**2 + 0.5 * k_stop * depth**2).sum(-1)


def states_of_sample(model: Model, q: np.ndarray) -> int:
    """Return how many consecutive states a driver receives for each sample, for positions q (..., times, nq).

    The states of a varied model are passed to drivers at one time after the other.
    """
    return 1 if model.batch_shape else q.shape[-2]
