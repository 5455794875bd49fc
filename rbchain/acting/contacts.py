"""Contact with planes and between spheres, and the records of contacts, dry friction and hard stops.

`flatten_contacts` turns all of them into arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np
import numpy.typing as npt

from ..common.misspelt import SuggestsAttributes
from ..common.real_arrays import excerpt
from ..core.contacts import contact_layout as layout
from ..core.sample.records import ContactRecords
from ..errors import StateError
from ..model.pose import normalized
from .between_bodies import bodies_at_ends
from .friction_and_stops import (
    DryFriction,
    HardStops,
    dof_of_force,
    flatten_friction,
    flatten_stops,
)
from .numeric_fields import LARGEST, LARGEST_FLOAT32, DeclaredForce, NumericField
from .packing import SampleNumbers

if TYPE_CHECKING:
    from ..facade.model import Model

#: The axis c of `contact_rows.directions_of_pair`. The normal of two spheres is rarely close to -c.
TANGENT_AXIS = normalized(np.array([0.37, -0.53, 0.71]))


@dataclass(frozen=True, eq=False)
class SphereContact(DeclaredForce):
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

    numeric_fields: ClassVar = (
        NumericField("point", "m", -LARGEST, LARGEST, (3,)),
        NumericField("radius", "m", 0.0, LARGEST_FLOAT32),
        NumericField("plane_point", "m", -LARGEST, LARGEST, (3,)),
        NumericField("plane_normal", "1", -LARGEST, LARGEST, (3,)),
        NumericField("friction", "1", 0.0, LARGEST_FLOAT32),
        NumericField("restitution", "1", 0.0, 1.0),
    )
    body: str
    point: npt.ArrayLike
    radius: npt.ArrayLike
    plane_point: npt.ArrayLike
    plane_normal: npt.ArrayLike
    friction: npt.ArrayLike = 0.0
    restitution: npt.ArrayLike = 0.0
    max_records: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        normal = self.numeric_field("plane_normal").checked(self.label(), self.plane_normal)
        if not np.any(normal, -1).all():
            raise StateError(
                f"{self.label()}: plane_normal is {excerpt(normal.tolist())}; expected vectors that are not zero"
            )

    def label(self) -> str:
        """Return the names of the class and of the body, for messages."""
        return f"SphereContact on {self.body!r}"


@dataclass(frozen=True, eq=False)
class SphereSphereContact(DeclaredForce):
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

    numeric_fields: ClassVar = (
        NumericField("point_a", "m", -LARGEST, LARGEST, (3,)),
        NumericField("point_b", "m", -LARGEST, LARGEST, (3,)),
        NumericField("radius_a", "m", 0.0, LARGEST_FLOAT32),
        NumericField("radius_b", "m", 0.0, LARGEST_FLOAT32),
        NumericField("restitution", "1", 0.0, 1.0),
        NumericField("friction", "1", 0.0, LARGEST_FLOAT32),
    )
    body_a: str | None
    body_b: str | None
    point_a: npt.ArrayLike
    point_b: npt.ArrayLike
    radius_a: npt.ArrayLike
    radius_b: npt.ArrayLike
    restitution: npt.ArrayLike = 0.0
    max_records: int = 16
    friction: npt.ArrayLike = 0.0

    def label(self) -> str:
        """Return the names of the class and of the bodies, for messages."""
        return f"SphereSphereContact of {self.body_a!r} and {self.body_b!r}"

    @property
    def is_rough(self) -> bool:
        """Whether the contact has friction, in any of the samples."""
        return bool(np.any(np.asarray(self.friction) != 0.0))


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
    "moreau" records the impulses of a whole step. With a restitution of 0, they contain the contact force in the rest
    of the step. Contacts that are at rest when another contact has an impact transmit impulses, but have no impact.
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


def flatten_contacts(
    model: Model, forces: Sequence[Any], numbers: SampleNumbers, drive_kinds: np.ndarray
) -> np.ndarray | None:
    """Add the numbers of dry friction, hard stops and contacts to the arrays, and return the elements.

    Parameters
    ----------
    model : Model
    forces : sequence
        Other forces are left out.
    numbers : SampleNumbers
    drive_kinds : (nv,) array of int
        The kind of drive of each degree of freedom, as in `core.control.drives`.

    Returns
    -------
    (ELEMENT_ROWS, elements) array of int, or None without such forces

    Raises
    ------
    StateError, ModelError
        If a joint or a body does not exist or does not fit, or numbers are invalid.
    """
    found = [force for force in forces if is_contact(force)]
    if not found:
        return None
    elements: list[list[int]] = []
    taken: dict[tuple[type, int], Contact] = {}
    row = 0
    for number, force in enumerate(found):
        what, other = force.label(), model.nv
        if isinstance(force, SphereContact):
            columns = _flat_sphere(model, what, force, numbers)
        elif isinstance(force, SphereSphereContact):
            other, columns = _flat_pair(model, what, force, numbers)
        else:
            i = dof_of_force(model, what, force, drive_kinds)
            if (type(force), i) in taken:
                raise StateError(f"{what}: this degree of freedom already has a {type(force).__name__}; expected one")
            taken[type(force), i] = force
            if isinstance(force, DryFriction):
                columns = flatten_friction(model, what, force, i, numbers)
            else:
                columns = flatten_stops(model, what, force, i, numbers)
        for kind, dof, first, sign in columns:
            elements.append([kind, dof, first, row, sign, number, other])
            row += layout.ROWS_OF_KIND[kind]
    return np.array(elements, np.int64).T.copy()


def new_contact_records(elements: np.ndarray | None, forces: Sequence[Any], samples: int) -> ContactRecords | None:
    """Allocate the records of impacts, of sticking and of forces; None without such forces."""
    if elements is None:
        return None
    found = [force for force in forces if is_contact(force)]
    most = max(force.max_records for force in found)
    return ContactRecords(
        np.zeros((samples, len(found)), np.int64),
        np.full((samples, len(found), most), np.nan),
        np.full((samples, len(found), most, 3), np.nan),
        np.zeros((samples, len(found)), np.int64),
        np.full((samples, len(found), most, 2), np.nan),
        np.array([force.max_records for force in found]),
        np.zeros(samples),
    )


def _flat_sphere(
    model: Model, what: str, contact: SphereContact, numbers: SampleNumbers
) -> list[tuple[int, int, int, int]]:
    frame = model.kernel_model.frame(contact.body)
    if frame.body < 0:
        raise StateError(f"{what}: this frame is fixed to the world; expected a moving body, or a frame fixed to one")
    pose = frame.pose
    point = contact.numeric_field("point").checked(what, contact.point)
    first, _ = numbers.add_row(f"{what}: point", point @ pose.rotation.T + pose.translation)
    numbers.add_field(what, contact, "radius")
    numbers.add_field(what, contact, "plane_point")
    normal = normalized(contact.numeric_field("plane_normal").checked(what, contact.plane_normal))
    for direction in (normal, *_tangents(normal)):
        numbers.add_row(f"{what}: plane_normal", direction)
    numbers.add_field(what, contact, "friction")
    numbers.add_field(what, contact, "restitution")
    return [(layout.SPHERE, int(model.kernel_model.dofs.last[frame.body]), first, 1)]


def _flat_pair(
    model: Model, what: str, contact: SphereSphereContact, numbers: SampleNumbers
) -> tuple[int, list[tuple[int, int, int, int]]]:
    """Return the dof of body a, and the column of the element."""
    (dof_a, pose_a), (dof_b, pose_b) = bodies_at_ends(model, what, contact)
    first = len(numbers.columns)
    for name, pose in (("point_b", pose_b), ("point_a", pose_a)):
        point = contact.numeric_field(name).checked(what, getattr(contact, name))
        numbers.add_row(f"{what}: {name}", point @ pose.rotation.T + pose.translation)
    radii = [
        contact.numeric_field(name).checked(what, numbers.for_each_sample(f"{what}: {name}", getattr(contact, name)))
        for name in ("radius_a", "radius_b")
    ]
    if not (radii[0] + radii[1] > 0.0).all():
        raise StateError(f"{what}: radius_a and radius_b are both 0; expected at least one radius above 0")
    numbers.add(f"{what}: radius_a + radius_b", radii[0] + radii[1])
    if contact.is_rough:
        for axis in (TANGENT_AXIS, *_tangents(TANGENT_AXIS)):
            numbers.add_row(f"{what}: axes of the tangents", axis)
    if not contact.is_rough:
        contact.numeric_field("friction").checked(what, numbers.for_each_sample(f"{what}: friction", contact.friction))
        numbers.add_field(what, contact, "restitution")
        return dof_a, [(layout.PAIR, dof_b, first, 1)]
    numbers.add_field(what, contact, "friction")
    numbers.add_field(what, contact, "restitution")
    numbers.add(f"{what}: radius_b", radii[1])
    numbers.add(f"{what}: radius_a", radii[0])
    return dof_a, [(layout.ROUGH_PAIR, dof_b, first, 1)]


def _tangents(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors that form a right-handed frame with each normal (..., 3)."""
    axis = np.eye(3)[np.argmin(np.abs(normal), -1)]
    first = normalized(np.cross(axis, normal))
    return first, np.cross(normal, first)
