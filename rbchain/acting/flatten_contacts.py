"""Turn dry friction, hard stops and contacts into arrays for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..common.real_arrays import excerpt, real_array
from ..core.contacts import contact_layout as layout
from ..core.control import drives as drive_codes
from ..core.sample.records import ContactRecords
from ..errors import StateError
from ..model.pose import normalized
from .contacts import (
    Contact,
    DryFriction,
    HardStops,
    SphereContact,
    SphereSphereContact,
    is_contact,
    label_of_contact,
)
from .coordinates import dof_index, refuse_quaternion
from .flatten_between_bodies import bodies_at_ends
from .packing import SampleNumbers

if TYPE_CHECKING:
    from ..facade.model import Model

MAX_RECORDS = 1_000_000
LARGEST = float(np.finfo(np.float32).max)
#: The axis c of `contact_rows.directions_of_pair`. The normal of two spheres is rarely close to -c.
TANGENT_AXIS = normalized(np.array([0.37, -0.53, 0.71]))


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
        what, other = label_of_contact(force), model.nv
        _check_max_records(what, force.max_records)
        if isinstance(force, SphereContact):
            columns = _flat_sphere(model, what, force, numbers)
        elif isinstance(force, SphereSphereContact):
            other, columns = _flat_pair(model, what, force, numbers)
        else:
            i = _dof(model, what, force, drive_kinds)
            if (type(force), i) in taken:
                raise StateError(f"{what}: this degree of freedom already has a {type(force).__name__}; expected one")
            taken[type(force), i] = force
            if isinstance(force, DryFriction):
                columns = _flat_friction(model, what, force, i, numbers)
            else:
                columns = _flat_stops(model, what, force, i, numbers)
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


def _check_max_records(what: str, most: Any) -> None:
    whole = isinstance(most, (int, np.integer)) and not isinstance(most, bool)
    if not whole or not 1 <= most <= MAX_RECORDS:
        raise StateError(f"{what}: max_records is {most!r}; expected a whole number from 1 to {MAX_RECORDS}")


def _dof(model: Model, what: str, force: DryFriction | HardStops, drive_kinds: np.ndarray) -> int:
    dof = force.dof
    if dof is None:
        body = model.joint_names.index(force.joint) if force.joint in model.joint_names else -1
        if body >= 0 and model.kernel_model.dofs.counts[body] > 1:
            raise StateError(
                f"{what}: this joint has {model.kernel_model.dofs.counts[body]} degrees of freedom; expected the "
                "number of one of them as dof"
            )
        dof = 0
    i = dof_index(model, what, force.joint, dof)
    if drive_kinds[i] in drive_codes.PRESCRIBED_KINDS:
        raise StateError(f"{what}: a drive prescribes the motion of this joint; expected a joint that moves freely")
    return i


def _flat_friction(
    model: Model, what: str, force: DryFriction, i: int, numbers: SampleNumbers
) -> list[tuple[int, int, int, int]]:
    if np.any(model.friction[..., i] != 0.0) or np.any(model.static_friction[..., i] != 0.0):
        raise StateError(
            f"{what}: the joint also has the regularised friction of PassiveForces; expected one of them. Set its "
            "friction to 0"
        )
    if force.static_backward is None and force.kinetic_backward is not None and force.static is not None:
        raise StateError(f"{what}: kinetic_backward and static are given; expected static_backward, too")
    full, first = force.with_defaults(), len(numbers.columns)
    for direction in ("", "_backward"):
        names = f"kinetic{direction}", f"static{direction}"
        for name in names:
            numbers.add(f"{what}: {name}", getattr(full, name), 0.0, LARGEST)
        kinetic, static = (real_array(name, getattr(full, name), StateError) for name in names)
        if np.any(static < kinetic):
            raise StateError(
                f"{what}: static{direction} is {excerpt(static.tolist())} and kinetic{direction} is "
                f"{excerpt(kinetic.tolist())}; expected static{direction} >= kinetic{direction}"
            )
    return [(layout.FRICTION, i, first, 1)]


def _flat_stops(
    model: Model, what: str, force: HardStops, i: int, numbers: SampleNumbers
) -> list[tuple[int, int, int, int]]:
    refuse_quaternion(model, what, i, "use another joint")
    lower, upper = model.position_limits[i].tolist()
    if not (np.isfinite(lower) or np.isfinite(upper)):
        raise StateError(
            f"{what}: the joint has no position limits; expected at least one finite limit. Give its body "
            "limits=rb.JointLimits(lower, upper)"
        )
    if np.any(model.limit_stiffness[..., i] != 0.0):
        raise StateError(
            f"{what}: the joint also has the elastic stops of PassiveForces; expected one of them. Remove their limits"
        )
    if lower == upper:
        raise StateError(f"{what}: both position limits are {lower:g}; expected lower < upper. Use Model.lock")
    columns = []
    for position, sign in ((lower, 1), (upper, -1)):
        if np.isfinite(position):
            first = numbers.add(f"{what}: position", position)
            numbers.add(f"{what}: restitution", _restitution(what, force.restitution))
            columns.append((layout.STOP, i, first, sign))
    return columns


def _flat_sphere(
    model: Model, what: str, contact: SphereContact, numbers: SampleNumbers
) -> list[tuple[int, int, int, int]]:
    if not isinstance(contact.body, str):
        raise StateError(f"{what}: body is {excerpt(contact.body)}; expected the name of a body")
    frame = model.kernel_model.frame(contact.body)
    if frame.body < 0:
        raise StateError(f"{what}: this frame is fixed to the world; expected a moving body, or a frame fixed to one")
    pose = frame.pose
    point = _vectors(f"{what}: point", contact.point)
    first, _ = numbers.add_row(f"{what}: point", point @ pose.rotation.T + pose.translation)
    numbers.add(f"{what}: radius", contact.radius, 0.0, LARGEST)
    numbers.add_row(f"{what}: plane_point", _vectors(f"{what}: plane_point", contact.plane_point))
    normal = _vectors(f"{what}: plane_normal", contact.plane_normal)
    if not np.any(normal, -1).all():
        raise StateError(f"{what}: plane_normal is {excerpt(normal.tolist())}; expected vectors that are not zero")
    normal = normalized(normal)
    for direction in (normal, *_tangents(normal)):
        numbers.add_row(f"{what}: plane_normal", direction)
    numbers.add(f"{what}: friction", contact.friction, 0.0, LARGEST)
    numbers.add(f"{what}: restitution", _restitution(what, contact.restitution))
    return [(layout.SPHERE, int(model.kernel_model.dofs.last[frame.body]), first, 1)]


def _flat_pair(
    model: Model, what: str, contact: SphereSphereContact, numbers: SampleNumbers
) -> tuple[int, list[tuple[int, int, int, int]]]:
    """Return the dof of body a, and the column of the element."""
    (dof_a, pose_a), (dof_b, pose_b) = bodies_at_ends(model, what, contact)
    first = len(numbers.columns)
    for name, given, pose in (("point_b", contact.point_b, pose_b), ("point_a", contact.point_a, pose_a)):
        point = _vectors(f"{what}: {name}", given)
        numbers.add_row(f"{what}: {name}", point @ pose.rotation.T + pose.translation)
    radii = []
    for name, given in (("radius_a", contact.radius_a), ("radius_b", contact.radius_b)):
        radius = real_array(f"{what}: {name}", given, StateError)
        if not ((radius >= 0.0) & (radius <= LARGEST)).all():
            raise StateError(f"{what}: {name} is {excerpt(radius.tolist())}; expected finite numbers of at least 0")
        radii.append(numbers.for_each_sample(f"{what}: {name}", radius))
    if not (radii[0] + radii[1] > 0.0).all():
        raise StateError(f"{what}: radius_a and radius_b are both 0; expected at least one radius above 0")
    numbers.add(f"{what}: radius_a + radius_b", radii[0] + radii[1])
    if contact.is_rough:
        for axis in (TANGENT_AXIS, *_tangents(TANGENT_AXIS)):
            numbers.add_row(f"{what}: axes of the tangents", axis)
    friction = numbers.for_each_sample(f"{what}: friction", contact.friction)
    if not ((friction >= 0.0) & (friction <= LARGEST)).all():
        raise StateError(f"{what}: friction is {excerpt(friction.tolist())}; expected finite numbers of at least 0")
    if not contact.is_rough:
        numbers.add(f"{what}: restitution", _restitution(what, contact.restitution))
        return dof_a, [(layout.PAIR, dof_b, first, 1)]
    numbers.add(f"{what}: friction", friction)
    numbers.add(f"{what}: restitution", _restitution(what, contact.restitution))
    numbers.add(f"{what}: radius_b", radii[1])
    numbers.add(f"{what}: radius_a", radii[0])
    return dof_a, [(layout.ROUGH_PAIR, dof_b, first, 1)]


def _tangents(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors that form a right-handed frame with each normal (..., 3)."""
    axis = np.eye(3)[np.argmin(np.abs(normal), -1)]
    first = normalized(np.cross(axis, normal))
    return first, np.cross(normal, first)


def _restitution(what: str, value: npt.ArrayLike) -> np.ndarray:
    found = real_array(f"{what}: restitution", value, StateError)
    if not ((found >= 0.0) & (found <= 1.0)).all():
        raise StateError(f"{what}: restitution is {excerpt(found.tolist())}; expected numbers from 0 to 1")
    return found


def _vectors(what: str, value: npt.ArrayLike) -> np.ndarray:
    found = real_array(what, value, StateError)
    if found.shape[-1:] != (3,):
        raise StateError(f"{what} has shape {found.shape}; expected (3,) or (..., 3)")
    if not np.isfinite(found).all():
        raise StateError(f"{what} is {excerpt(found.tolist())}; expected finite numbers")
    return found
