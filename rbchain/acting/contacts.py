"""Dry friction, hard stops and contacts, and their records. `flatten_contacts` turns them into arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from ..common.misspelled import SuggestsAttributes
from ..common.pickles import PickledByName
from ..common.real_arrays import FloatArray
from ..core.contacts import element_layout as element, gear_friction as gear
from ..core.control.actuators import ACTUATOR_GEAR
from ..core.sample.records import ContactRecords
from ..errors import ArgumentError
from .body_contacts import BodyContact
from .capsule_contacts import CapsuleCapsuleContact
from .ellipsoid_contacts import EllipsoidContact
from .friction_and_stops import (
    DryFriction,
    HardStops,
    dof_of_force,
    flatten_friction,
    flatten_stops,
)
from .packing import SampleNumbers
from .sphere_contacts import SphereContact, SphereSphereContact

if TYPE_CHECKING:
    from ..facade.model import Model

#: The classes of contacts of two bodies.
BODY_CONTACTS = (SphereContact, SphereSphereContact, EllipsoidContact, CapsuleCapsuleContact)
#: The classes of dry friction, hard stops and contacts.
CONTACTS = (DryFriction, HardStops, *BODY_CONTACTS)
#: Their names, for messages.
NAMES_OF_CONTACTS = f"{', '.join(kind.__name__ for kind in CONTACTS[:-1])} or {CONTACTS[-1].__name__}"

Contact = DryFriction | HardStops | BodyContact


@dataclass(frozen=True, eq=False)
class ImpactRecord(PickledByName, SuggestsAttributes):
    """The impacts of a HardStops or of a contact, such as a SphereContact.

    Attributes
    ----------
    force : HardStops or contact
    count : (...) array of int
        Number of impacts, including those that are not recorded.
    t : (..., max_records) array, s
        Times of the recorded impacts; NaN for unused entries.
    impulse : (..., max_records) or (..., max_records, 3) array, N s or N m s
        Impulse on the joint of a HardStops; in world axes, on the body of a contact with the world, or on `frame_b` of
        a contact of two bodies.

    Notes
    -----
    "moreau" records the impulses of a whole step. With a restitution of 0, they include the impulse of the contact
    force over the rest of the step. Contacts that are at rest when another contact has an impact transmit impulses, but
    have no impact.
    """

    force: HardStops | BodyContact
    count: np.ndarray
    t: FloatArray
    impulse: FloatArray


@dataclass(frozen=True, eq=False)
class StickingRecord(PickledByName, SuggestsAttributes):
    """The intervals in which a DryFriction or the friction of a contact sticks.

    Attributes
    ----------
    force : DryFriction or contact
    count : (...) array of int
        Number of intervals, including those that are not recorded.
    start, end : (..., max_records) arrays, s
        Recorded intervals; NaN for unused entries. The end is infinite for an interval that lasts to the end of the
        simulation.
    """

    force: DryFriction | BodyContact
    count: np.ndarray
    start: FloatArray
    end: FloatArray


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
        Other forces are ignored.
    numbers : SampleNumbers
    drive_kinds : (nv,) array of int
        The kind of drive of each degree of freedom, as in `core.control.drive_layout`.

    Returns
    -------
    (element.ROWS, elements) array of int, or None without such forces

    Raises
    ------
    ArgumentError, ModelError
        If a joint or a body does not exist or does not fit, or values are invalid.
    """
    found = [force for force in forces if is_contact(force)]
    if not found:
        return None
    elements: list[list[int]] = []
    taken: dict[tuple[type, int], Contact] = {}
    row = 0
    for number, force in enumerate(found):
        what, other, size = force.label(), model.nv, 1
        if isinstance(force, BodyContact):
            first, size = numbers.add_field(what, force, "restitution"), 3 if force.has_tangents else 1
            numbers.add_field(what, force, "friction")
            kind, dof, other = force.flatten(model, what, numbers)
            columns = [(kind, dof, first, 1)]
        else:
            i = dof_of_force(model, what, force, drive_kinds)
            if (type(force), i) in taken:
                raise ArgumentError(
                    f"{what}: this degree of freedom already has a {type(force).__name__}; expected one"
                )
            taken[type(force), i] = force
            if isinstance(force, DryFriction):
                columns = flatten_friction(model, what, force, i, numbers)
            else:
                columns = flatten_stops(model, what, force, i, numbers)
        for kind, dof, first, sign in columns:
            elements.append([kind, dof, first, row, sign, number, other, size, 0, -1])
            row += size
    table = np.array(elements, np.int64).T.copy()
    touches = (table[element.SIZE] == 3) & (table[element.OTHER] == model.nv)
    for e in np.flatnonzero(touches):
        table[element.POINTS, e] = np.sum(touches & (table[element.DOF] == table[element.DOF, e]))
    if np.all(table[element.POINTS] >= 3) and not model.constraint_names:
        table[element.GROUP] = np.unique(table[element.DOF], return_inverse=True)[1]
    return table


def gear_friction_of(
    elements: np.ndarray | None, forces: Sequence[Any], actuators: np.ndarray | None
) -> np.ndarray | None:
    """Return the table (gear.GEAR_ROWS, count) of friction that grows with the force of drives; None without.

    `elements` is the result of `flatten_contacts`, and `actuators` of `flatten_actuators`.

    Raises
    ------
    ArgumentError
        If the actuator of the same degree of freedom has a gear friction, too.
    """
    if elements is None:
        return None
    found = [force for force in forces if is_contact(force)]
    grows = [isinstance(found[number], DryFriction) and found[number].has_gear for number in elements[element.FORCE]]
    if not any(grows):
        return None
    codes = np.zeros((gear.GEAR_ROWS, sum(grows)), np.int64)
    codes[gear.GEAR_DOF] = elements[element.DOF, grows]
    codes[gear.GEAR_NUMBERS] = elements[element.NUMBERS, grows]
    for number, dof in zip(elements[element.FORCE, grows], codes[gear.GEAR_DOF], strict=True):
        if actuators is not None and actuators[ACTUATOR_GEAR, dof] >= 0:
            raise ArgumentError(
                f"{found[number].label()}: it has a gear_friction, and the Actuator of this joint has one, too. "
                "Use one of the two, and set the other one to 0"
            )
    return codes


def new_contact_records(elements: np.ndarray | None, forces: Sequence[Any], samples: int) -> ContactRecords | None:
    """Allocate the records of impacts, of sticking and of forces; None without such forces."""
    if elements is None:
        return None
    found = [force for force in forces if is_contact(force)]
    most = max(force.max_records for force in found)
    return ContactRecords(
        impact_counts=np.zeros((samples, len(found)), np.int64),
        impact_times=np.full((samples, len(found), most), np.nan),
        impulses=np.full((samples, len(found), most, 3), np.nan),
        sticking_counts=np.zeros((samples, len(found)), np.int64),
        sticking_times=np.full((samples, len(found), most, 2), np.nan),
        limits=np.array([force.max_records for force in found]),
        residuals=np.zeros(samples),
    )
