"""Forces between two bodies: springs with dampers, and bushings. `flatten_between_bodies` turns them into arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy.typing as npt

from ..common.misspelt import SuggestsAttributes
from ..model.pose import Pose
from .packing import value_of_sample

if TYPE_CHECKING:
    from .contacts import SphereSphereContact


@dataclass(frozen=True, eq=False)
class SpringDamper(SuggestsAttributes):
    """A spring with a damper between two points on two bodies, or between a body and the world.

    The tension is stiffness (L - rest_length) + damping dL/dt, where L is the distance of the points. It acts along the
    line through the points, with opposite signs on the two bodies.

    Parameters
    ----------
    body_a, body_b : str or None
        Names of bodies, or of frames on fixed joints. None is the world.
    point_a, point_b : (3,) or (..., 3) array, m
        The points, each in the axes of its body or frame, from its origin. World coordinates if the body is None.
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

    Notes
    -----
    A spring of zero length has no direction. Its force is zero at this length. If `rest_length` and `damping` are zero,
    the force is stiffness times the vector between the points, which is smooth there; otherwise it jumps.
    `Model.elastic_energy` computes the energy stiffness (L - rest_length)^2 / 2, or zero if a cable is shorter than its
    rest length. MuJoCo's spatial tendons have the same force.

    Examples
    --------
    A mass of 1 kg on a vertical spring of 100 N/m oscillates with the period 2 pi / 10 s:

    >>> import numpy as np, rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> builder.add_body("mass", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia(mass=1.0))
    >>> spring = rb.SpringDamper(None, "mass", (0, 0, -1), (0, 0, 0), stiffness=100.0, rest_length=1.0)
    >>> motion = builder.build().simulate([[0.1]], [[0.0]], np.pi / 10, forces=[spring])
    >>> motion.q[0, -1].round(6).tolist()
    [-0.1]
    """

    body_a: str | None
    body_b: str | None
    point_a: npt.ArrayLike
    point_b: npt.ArrayLike
    stiffness: npt.ArrayLike
    damping: npt.ArrayLike = 0.0
    rest_length: npt.ArrayLike = 0.0
    tension_only: bool = False

    def of_sample(self, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]) -> SpringDamper:
        """Return the spring of one sample of a batch."""
        return SpringDamper(
            self.body_a,
            self.body_b,
            value_of_sample(self.point_a, i, batch_shape, (3,)),
            value_of_sample(self.point_b, i, batch_shape, (3,)),
            value_of_sample(self.stiffness, i, batch_shape),
            value_of_sample(self.damping, i, batch_shape),
            value_of_sample(self.rest_length, i, batch_shape),
            self.tension_only,
        )


@dataclass(frozen=True, eq=False)
class Bushing(SuggestsAttributes):
    """Linear stiffness and damping between a frame A on one body and a frame B on another, or on the world.

    The displacement x = (p, phi) has six components, in the axes of A. p is the position of the origin of B, and phi is
    the rotation vector of the axes of B. The wrench on body b, at the origin of B and in the axes of A, is
    -J^T (K x + D dx/dt), where J maps the relative velocity to dx/dt. Body a receives the opposite wrench at the same
    point.

    Parameters
    ----------
    body_a, body_b : str or None
        Names of bodies, or of frames on fixed joints. None is the world.
    stiffness : (6, 6) or (..., 6, 6) array, N/m, N/rad, N m/m and N m/rad
        K, a symmetric and positive semidefinite matrix. Translations come before rotations.
    damping : (6, 6) or (..., 6, 6) array, N s/m, N s/rad, N s and N m s/rad
        D, a symmetric and positive semidefinite matrix; zero by default.
    pose_a, pose_b : Pose, optional
        Poses of A and B in the axes of their bodies; their frames themselves by default. A pose that rbchain has
        computed may have batch axes.

    Notes
    -----
    The elastic wrench is conservative: `Model.elastic_energy` computes its potential x^T K x / 2. The damping
    dissipates the power dx/dt^T D dx/dt. The rotation vector is unique for angles below pi. At pi it jumps to its
    opposite, and the moment with it, so bushings suit rotations well below pi.

    Simbody's `Force::LinearBushing` and Drake's `LinearBushingRollPitchYaw` have diagonal matrices, and three angles
    instead of the rotation vector. For a rotation about one axis of A, the angles and the vector are the same. Drake
    expresses the translation in axes halfway between A and B.

    References
    ----------
    Bullo and Murray (1995), "Proportional derivative (PD) control on the Euclidean group"; Sherman, Seth and Delp
    (2011), "Simbody: multibody dynamics for biomedical research".

    Examples
    --------
    A disk of 2 kg m^2 on a bushing of 8 N m/rad oscillates with the period pi s:

    >>> import numpy as np, rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> builder.add_body("disk", joint=rb.Revolute((0, 0, 1)), inertia=rb.Inertia(1.0, inertia=(1, 1, 2)))
    >>> bushing = rb.Bushing(None, "disk", stiffness=np.diag([1e3, 1e3, 1e3, 1e2, 1e2, 8.0]))
    >>> motion = builder.build().simulate([[0.1]], [[0.0]], np.pi / 2, forces=[bushing])
    >>> motion.q[0, -1].round(6).tolist()
    [-0.1]
    """

    body_a: str | None
    body_b: str | None
    stiffness: npt.ArrayLike
    damping: npt.ArrayLike | None = None
    pose_a: Pose | None = None
    pose_b: Pose | None = None

    def of_sample(self, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]) -> Bushing:
        """Return the bushing of one sample of a batch."""
        poses = [
            None
            if pose is None
            else Pose.computed(
                value_of_sample(pose.translation, i, batch_shape, (3,)),
                value_of_sample(pose.rotation, i, batch_shape, (3, 3)),
            )
            for pose in (self.pose_a, self.pose_b)
        ]
        damping = None if self.damping is None else value_of_sample(self.damping, i, batch_shape, (6, 6))
        return Bushing(
            self.body_a, self.body_b, value_of_sample(self.stiffness, i, batch_shape, (6, 6)), damping, *poses
        )


#: The classes of forces between bodies.
BETWEEN_BODIES = (SpringDamper, Bushing)


def label_of(force: SpringDamper | Bushing | SphereSphereContact) -> str:
    """Return the name of a force in a study: the names of its bodies, such as "slider-rod1", or "world"."""
    return "-".join("world" if body is None else str(body) for body in (force.body_a, force.body_b))
