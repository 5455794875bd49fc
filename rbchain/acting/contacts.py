"""Dry friction, hard stops, contact with planes and between spheres, and their records.

`flatten_contacts` turns them into arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import SupportsIndex, TypeGuard

import numpy as np
import numpy.typing as npt

from ..common.misspelt import SuggestsAttributes
from .packing import value_of_sample


@dataclass(frozen=True, eq=False)
class DryFriction(SuggestsAttributes):
    """Coulomb friction of a joint that sticks: below the static friction, the velocity is exactly zero.

    While the joint slides, the friction force is `kinetic`, against the motion. While it sticks, the force balances the
    other forces. The joint starts to slide if the balancing force would exceed `static`.

    Parameters
    ----------
    joint : str
        Name of the joint.
    kinetic : float or (...) array, N m or N
        Friction of the sliding joint, at least 0. An array has one value for each sample, here and in the other
        parameters.
    static : float or (...) array, N m or N
        Largest friction of the sticking joint, at least `kinetic`, which is the default.
    kinetic_backward, static_backward : float or (...) array, N m or N
        Friction that resists motion in the negative direction. The defaults are `kinetic` and `static`.
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    max_records : int
        rbchain records the first `max_records` intervals in which the joint sticks, and counts the rest.

    Notes
    -----
    A joint cannot also have the regularised friction of `PassiveForces`. Only some methods of `simulate` support dry
    friction; see there.

    Examples
    --------
    A block of 1 kg slides with 2 m/s against a friction of 4 N. It stops after 0.5 s and 0.5 m:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> builder.add_body("block", joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia(mass=1.0))
    >>> friction = rb.DryFriction("block", kinetic=4.0)
    >>> motion = builder.build().simulate([[0.0]], [[2.0]], 1.0, method="moreau", step=0.01, forces=[friction])
    >>> motion.q[0, -1].round(6).tolist(), motion.qd[0, -1].tolist()
    ([0.5], [0.0])
    """

    joint: str
    kinetic: npt.ArrayLike
    static: npt.ArrayLike | None = None
    kinetic_backward: npt.ArrayLike | None = None
    static_backward: npt.ArrayLike | None = None
    dof: int | None = None
    max_records: int = 16

    def with_defaults(self) -> DryFriction:
        """Return the friction with all numbers that are not given."""
        static = self.kinetic if self.static is None else self.static
        backward = self.kinetic if self.kinetic_backward is None else self.kinetic_backward
        static_backward = self.static_backward
        if static_backward is None:
            static_backward = static if self.kinetic_backward is None else self.kinetic_backward
        return replace(self, static=static, kinetic_backward=backward, static_backward=static_backward)

    def of_sample(self, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]) -> DryFriction:
        """Return the friction of one sample of a batch."""
        static, kinetic_backward, static_backward = (
            None if value is None else value_of_sample(value, i, batch_shape)
            for value in (self.static, self.kinetic_backward, self.static_backward)
        )
        kinetic = value_of_sample(self.kinetic, i, batch_shape)
        return DryFriction(self.joint, kinetic, static, kinetic_backward, static_backward, self.dof, self.max_records)


@dataclass(frozen=True, eq=False)
class HardStops(SuggestsAttributes):
    """Rigid stops of a joint at its `Model.position_limits`.

    Parameters
    ----------
    joint : str
        Name of the joint. It needs a finite limit.
    restitution : float or (...) array
        Ratio of the speeds after and before an impact, from 0 to 1. An array has one value for each sample.
    dof : int
        Degree of freedom of the joint, counted from 0. Required if the joint has several.
    max_records : int
        rbchain records the first `max_records` impacts and counts the rest.

    Notes
    -----
    A joint cannot also have the elastic stops of `PassiveForces`. Only some methods of `simulate` support hard stops;
    see there.

    Examples
    --------
    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> limits = rb.JointLimits(lower=-1.0, upper=1.0)
    >>> builder.add_body("door", joint=rb.Revolute(), inertia=rb.Inertia(1.0, inertia=(1, 1, 1)), limits=limits)
    >>> stops = rb.HardStops("door", restitution=0.5)
    >>> motion = builder.build().simulate([[0.0]], [[1.0]], 2.0, method="moreau", step=0.01, forces=[stops])
    >>> motion.q[0, -1].round(6).tolist(), motion.qd[0, -1].round(6).tolist()
    ([0.5], [-0.5])
    """

    joint: str
    restitution: npt.ArrayLike = 0.0
    dof: int | None = None
    max_records: int = 16

    def of_sample(self, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]) -> HardStops:
        """Return the stops of one sample of a batch."""
        return replace(self, restitution=value_of_sample(self.restitution, i, batch_shape))


@dataclass(frozen=True, eq=False)
class SphereContact(SuggestsAttributes):
    """Contact of a sphere on a body, or of a point, with a fixed plane.

    Parameters
    ----------
    body : str
        Name of a body, or of a frame on fixed joints.
    point : (3,) or (..., 3) array, m
        Centre of the sphere, in the axes of the body or frame, from its origin. An array has one row for each sample,
        here and in the other parameters.
    radius : float or (...) array, m
        At least 0; 0 for a point.
    plane_point : (3,) or (..., 3) array, m
        A point of the plane, in the world.
    plane_normal : (3,) or (..., 3) array
        Direction from the plane into the space in which the sphere moves, in world axes; of any length above 0.
    friction : float or (...) array
        Coefficient mu of Coulomb's law, at least 0: the tangential force is at most mu times the normal force.
    restitution : float or (...) array
        Ratio of the normal speeds after and before an impact, from 0 to 1.
    max_records : int
        rbchain records the first `max_records` impacts and intervals of sticking, and counts the rest.

    Notes
    -----
    The force acts at the point of the sphere that is closest to the plane. There is no friction of rolling or
    spinning. Only some methods of `simulate` support contact; see there.

    Examples
    --------
    A ball falls from a height of 0.8 m and rebounds to 0.2 m:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, -10))
    >>> builder.add_body("ball", joint=rb.Prismatic((0, 0, 1)), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    >>> floor = rb.SphereContact("ball", (0, 0, 0), 0.1, (0, 0, 0), (0, 0, 1), restitution=0.5)
    >>> motion = builder.build().simulate([[0.9]], [[0.0]], 0.6, method="moreau", step=0.001, forces=[floor])
    >>> motion.q[0, -1].round(6).tolist(), motion.impacts[0].t[0, :1].round(6).tolist()
    ([0.3], [0.4])
    """

    body: str
    point: npt.ArrayLike
    radius: npt.ArrayLike
    plane_point: npt.ArrayLike
    plane_normal: npt.ArrayLike
    friction: npt.ArrayLike = 0.0
    restitution: npt.ArrayLike = 0.0
    max_records: int = 16

    def of_sample(self, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]) -> SphereContact:
        """Return the contact of one sample of a batch."""
        return SphereContact(
            self.body,
            value_of_sample(self.point, i, batch_shape, (3,)),
            value_of_sample(self.radius, i, batch_shape),
            value_of_sample(self.plane_point, i, batch_shape, (3,)),
            value_of_sample(self.plane_normal, i, batch_shape, (3,)),
            value_of_sample(self.friction, i, batch_shape),
            value_of_sample(self.restitution, i, batch_shape),
            self.max_records,
        )


@dataclass(frozen=True, eq=False)
class SphereSphereContact(SuggestsAttributes):
    """Contact of two spheres on two bodies, or of a sphere and a point.

    Parameters
    ----------
    body_a, body_b : str or None
        Names of two bodies, or of frames on fixed joints. None is the world.
    point_a, point_b : (3,) or (..., 3) arrays, m
        Centres of the spheres, in the axes of the bodies or frames, from their origins. An array has one row for each
        sample, here and in the other parameters. In the world: from the origin, in world axes.
    radius_a, radius_b : float or (...) array, m
        At least 0; their sum is above 0.
    restitution : float or (...) array
        Ratio of the normal speeds after and before an impact, from 0 to 1.
    max_records : int
        rbchain records the first `max_records` impacts and intervals of sticking, and counts the rest.
    friction : float or (...) array
        Coefficient mu of Coulomb's law, at least 0: the tangential force is at most mu times the normal force.

    Notes
    -----
    The forces act at the point where the spheres touch. There is no friction of rolling or spinning. Recorded forces
    and impulses are those on `body_b`; body a receives the opposite ones. The spheres touch from outside. Only some
    methods of `simulate` support contact; see there.

    Restitution is Newton's law for each contact on its own, also in simultaneous impacts. With a restitution of 1, a
    ball that hits a row of N - 1 equal balls at rest, which touch each other, moves them all with 2 / N of its speed.
    With gaps between the balls, impacts follow one after the other, and only the last ball leaves. Use gaps for
    Newton's cradle, and with "moreau" a step that is shorter than the time between two impacts. "moreau" misses the
    impact of two spheres that pass each other within one step.

    Examples
    --------
    A ball hits an equal ball at rest and stops:

    >>> import rbchain as rb
    >>> builder = rb.ModelBuilder(gravity=(0, 0, 0))
    >>> for name in ("a", "b"):
    ...     builder.add_body(name, joint=rb.Prismatic((1, 0, 0)), inertia=rb.Inertia.sphere(0.1, mass=1.0))
    >>> balls = rb.SphereSphereContact("a", "b", (0, 0, 0), (0, 0, 0), 0.1, 0.1, restitution=1.0)
    >>> motion = builder.build().simulate(
    ...     [[0.0, 0.5]], [[1.0, 0.0]], 1.0, method="moreau", step=0.01, forces=[balls]
    ... )
    >>> motion.qd[0, -1].round(6).tolist(), motion.impacts[0].impulse[0, 0].round(6).tolist()
    ([0.0, 1.0], [1.0, 0.0, 0.0])
    """

    body_a: str | None
    body_b: str | None
    point_a: npt.ArrayLike
    point_b: npt.ArrayLike
    radius_a: npt.ArrayLike
    radius_b: npt.ArrayLike
    restitution: npt.ArrayLike = 0.0
    max_records: int = 16
    friction: npt.ArrayLike = 0.0

    @property
    def is_rough(self) -> bool:
        """Whether the contact has friction, in any of the samples."""
        return bool(np.any(np.asarray(self.friction) != 0.0))

    def of_sample(
        self, i: SupportsIndex | tuple[SupportsIndex, ...], batch_shape: tuple[int, ...]
    ) -> SphereSphereContact:
        """Return the contact of one sample of a batch."""
        return SphereSphereContact(
            self.body_a,
            self.body_b,
            value_of_sample(self.point_a, i, batch_shape, (3,)),
            value_of_sample(self.point_b, i, batch_shape, (3,)),
            value_of_sample(self.radius_a, i, batch_shape),
            value_of_sample(self.radius_b, i, batch_shape),
            value_of_sample(self.restitution, i, batch_shape),
            self.max_records,
            value_of_sample(self.friction, i, batch_shape),
        )


Contact = DryFriction | HardStops | SphereContact | SphereSphereContact
#: The classes of dry friction, hard stops and contacts.
CONTACTS = (DryFriction, HardStops, SphereContact, SphereSphereContact)
#: Their names, for messages.
NAMES_OF_CONTACTS = "DryFriction, HardStops, SphereContact or SphereSphereContact"


@dataclass(frozen=True, eq=False)
class ImpactRecord(SuggestsAttributes):
    """The impacts of a HardStops, a SphereContact or a SphereSphereContact.

    Attributes
    ----------
    force : HardStops, SphereContact or SphereSphereContact
    count : (...) array of int
        Number of impacts, including those that are not recorded.
    t : (..., max_records) array, s
        Times of the recorded impacts; NaN for unused entries.
    impulse : (..., max_records) or (..., max_records, 3) array, N s or N m s
        Impulse on the joint of a HardStops; in world axes, on the body of a SphereContact and on `body_b` of a
        SphereSphereContact.

    Notes
    -----
    The impulses of "moreau" are those of a step. With a restitution of 0, they contain the contact force in the rest of
    the step. Contacts that are at rest when another contact has an impact transmit impulses, but have no impact.
    """

    force: HardStops | SphereContact | SphereSphereContact
    count: np.ndarray
    t: np.ndarray
    impulse: np.ndarray


@dataclass(frozen=True, eq=False)
class StickingRecord(SuggestsAttributes):
    """The intervals in which a DryFriction or the friction of a contact sticks.

    Attributes
    ----------
    force : DryFriction, SphereContact or SphereSphereContact
    count : (...) array of int
        Number of intervals, including those that are not recorded.
    start, end : (..., max_records) arrays, s
        Recorded intervals; NaN for unused entries. The end is infinite for an interval that lasts to the end of the
        simulation.
    """

    force: DryFriction | SphereContact | SphereSphereContact
    count: np.ndarray
    start: np.ndarray
    end: np.ndarray


def is_contact(force: object) -> TypeGuard[Contact]:
    """Whether a force is dry friction, a pair of hard stops or a contact."""
    return isinstance(force, CONTACTS)


def label_of_contact(force: Contact) -> str:
    """Return the class of a force, and the name of its joint or body, for messages."""
    if isinstance(force, SphereSphereContact):
        place = f"of {force.body_a!r} and {force.body_b!r}"
    else:
        place = f"on {force.body!r}" if isinstance(force, SphereContact) else f"of joint {force.joint!r}"
    return f"{type(force).__name__} {place}"
