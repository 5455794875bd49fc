"""Bodies with their joints, and their assembly to the Description of a mechanism: fixed bodies join their parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import ModelError
from . import validation
from .collision_shape import CollisionShape
from .constraint_fields import constraint_fields, constraints_of
from .constraints import Constraint
from .description import Description, Frame, water_of
from .immersion import Immersion, shifted
from .inertia import Inertia
from .joint import AnyJoint, Composite, Fixed, Free, Planar, Prismatic, Revolute, Screw, Spherical, Universal
from .limits import LIMITS
from .passive import PASSIVE_FIELDS
from .pose import Pose, computed_pose
from .visual import Visual


class Body(NamedTuple):
    """A body with its joint, checked; numbers of the joint are arrays (dofs,), `limits` (dofs, 7)."""

    parent: str | None
    joint: AnyJoint
    placement: Pose
    inertia: Inertia
    rotor_inertia: np.ndarray
    gear_ratio: np.ndarray
    passive: dict[str, np.ndarray]
    limits: np.ndarray
    immersion: Immersion | None
    visuals: tuple[Visual, ...]
    collisions: tuple[CollisionShape, ...]
    joint_name: str


@dataclass(frozen=True, eq=False)
class Mechanism:
    """The bodies of a mechanism by their names, parents first, and the data of the whole mechanism."""

    name: str
    bodies: Mapping[str, Body]
    gravity: np.ndarray
    fluid_density: float
    nonphysical_inertia: str
    drives: Sequence[Any]
    constraints: Sequence[Constraint] = ()


def fixed_body(
    parent: str | None,
    placement: Pose,
    visuals: tuple[Visual, ...] = (),
    collisions: tuple[CollisionShape, ...] = (),
) -> Body:
    """Return a body without mass on a fixed joint: a frame."""
    nothing = np.zeros(0)
    passive = dict.fromkeys(PASSIVE_FIELDS, nothing)
    limits = np.zeros((0, len(LIMITS)))
    return Body(
        parent=parent,
        joint=Fixed(),
        placement=placement,
        inertia=Inertia(0.0),
        rotor_inertia=nothing,
        gear_ratio=nothing,
        passive=passive,
        limits=limits,
        immersion=None,
        visuals=visuals,
        collisions=collisions,
        joint_name="",
    )


def assemble(mechanism: Mechanism) -> Description:
    """Return the description of a mechanism.

    Raises a ModelError if no body can move, if two bodies that are fixed to each other both have drag, or if sums of
    masses overflow.
    """
    bodies = mechanism.bodies
    carriers: dict[str, Frame] = {}
    inertias: list[Inertia] = []
    immersions: list[Immersion | None] = []
    moving: list[tuple[str, Frame]] = []
    for name, body in bodies.items():
        carrier = Frame(-1, Pose()) if body.parent is None else carriers[body.parent]
        place = carrier.pose @ body.placement
        placed = Frame(carrier.body, Pose(place.translation, place.rotation))
        if isinstance(body.joint, Fixed):
            carriers[name] = placed
            if placed.body >= 0:
                inertias[placed.body] = inertias[placed.body] + body.inertia.moved(placed.pose)
                immersions[placed.body] = _joined(name, immersions[placed.body], body.immersion, placed.pose)
        else:
            carriers[name] = Frame(len(moving), Pose())
            moving.append((name, placed))
            inertias.append(body.inertia)
            immersions.append(body.immersion)
    if not moving:
        raise ModelError(
            f"model {mechanism.name!r} has no moving body: all its joints are fixed; expected at least one other joint"
        )
    names = [name for name, _ in moving]
    movable = [bodies[name] for name in names]
    joints = [body.joint for body in movable]
    dofs = [dof for joint in joints for dof in joint.dofs]
    numbers: dict[str, Any] = {
        name: np.array([getattr(x, name) for x in inertias]) for name in ("mass", "cg", "inertia")
    }
    for field, values in numbers.items():  # sums over bodies on fixed joints may overflow
        validation.check_finite(names, field, values, values.ndim - 1)
    numbers |= {field: np.concatenate([body.passive[field] for body in movable]) for field in PASSIVE_FIELDS}
    numbers |= water_of(immersions, mechanism.fluid_density)
    joint_places = {body.joint_name: (i, len(body.joint.dofs)) for i, body in enumerate(movable)}
    return Description(
        name=mechanism.name,
        body_names=tuple(names),
        joint_names=tuple(body.joint_name for body in movable),
        joint_types=tuple(joint.kind for joint in joints),
        dof_counts=np.array([len(joint.dofs) for joint in joints]),
        dof_types=tuple(dof.kind for dof in dofs),
        parent=np.array([placed.body for _, placed in moving]),
        placement_rotation=np.array([placed.pose.rotation for _, placed in moving]),
        placement_translation=np.array([placed.pose.translation for _, placed in moving]),
        axis=np.array([dof.axis for dof in dofs]),
        pitch=np.array([dof.pitch for dof in dofs]),
        rotor_inertia=np.concatenate([body.rotor_inertia for body in movable]),
        gear_ratio=np.concatenate([body.gear_ratio for body in movable]),
        **numbers,
        gravity=mechanism.gravity.copy(),
        frames={name: frame for name, frame in carriers.items() if name not in names},
        nonphysical_inertia=mechanism.nonphysical_inertia,
        limits=np.concatenate([body.limits for body in movable]),
        drives=tuple(mechanism.drives),
        visuals={name: body.visuals for name, body in bodies.items() if body.visuals},
        collisions={name: body.collisions for name, body in bodies.items() if body.collisions},
        **constraint_fields(mechanism.constraints, carriers, joint_places),
    )


def _joined(name: str, carrier: Immersion | None, own: Immersion | None, pose: Pose) -> Immersion | None:
    """Return the joint immersion of a moving body and of a body that is fixed to it at this pose."""
    if own is None:
        return carrier
    with validation.naming(f"body {name!r}"):
        return own.moved(pose) if carrier is None else carrier.joined(own.moved(pose))


def mechanism_of(description: Description) -> Mechanism:
    """Return the bodies of a description without batch axes. `assemble` makes the same description of them.

    Frames on fixed joints become bodies without mass after all other bodies. Added masses are transformed to the
    frame of the drag and back, which changes them by round-off.
    """
    d, first = description, 0
    bodies: dict[str, Body] = {}
    for i, name in enumerate(d.body_names):
        dofs = slice(first, first + d.dof_counts[i])
        first = dofs.stop
        bodies[name] = Body(
            parent=d.body_names[d.parent[i]] if d.parent[i] >= 0 else None,
            joint=joint_of(d, i, dofs),
            placement=computed_pose(d.placement_translation[i], d.placement_rotation[i]),
            inertia=Inertia(d.mass[i], cg=d.cg[i], inertia=d.inertia[i]),
            rotor_inertia=d.rotor_inertia[dofs],
            gear_ratio=d.gear_ratio[dofs],
            passive={field: getattr(d, field)[dofs] for field in PASSIVE_FIELDS},
            limits=d.limits[dofs],
            immersion=_immersion_of(d, i),
            visuals=d.visuals.get(name, ()),
            collisions=d.collisions.get(name, ()),
            joint_name=d.joint_names[i],
        )
    for name, frame in d.frames.items():
        carrier = d.body_names[frame.body] if frame.body >= 0 else None
        bodies[name] = fixed_body(carrier, frame.pose, d.visuals.get(name, ()), d.collisions.get(name, ()))
    density, constraints = float(d.fluid_density), constraints_of(d)
    return Mechanism(d.name, bodies, d.gravity, density, d.nonphysical_inertia, d.drives, constraints)


def joint_of(description: Description, i: int, dofs: slice) -> AnyJoint:
    """Return the joint of body i, which has these degrees of freedom."""
    kind, axes, pitches = description.joint_types[i], description.axis[dofs], description.pitch[dofs]
    if kind in (Free.kind, Spherical.kind):
        return Free() if kind == Free.kind else Spherical()
    if kind == Planar.kind and np.allclose(axes, [dof.axis for dof in Planar(axes[2]).dofs], rtol=0, atol=1e-14):
        return Planar(axes[2])
    if kind == Universal.kind:
        return Universal(axes[0], axes[1])
    parts: list[Revolute | Prismatic | Screw] = []
    for part, axis, pitch in zip(description.dof_types[dofs], axes, pitches, strict=True):
        if part == Screw.kind:
            parts.append(Screw(axis, pitch))
        else:
            parts.append(Revolute(axis) if part == Revolute.kind else Prismatic(axis))
    return Composite(parts) if kind in (Composite.kind, Planar.kind) else parts[0]


def _immersion_of(description: Description, i: int) -> Immersion | None:
    """Return the immersion of body i, or None if it is dry."""
    d = description
    pose = computed_pose(d.drag_translation[i], d.drag_rotation[i])
    names = ("volume", "linear_damping", "quadratic_damping", "strip_diameter", "strip_length", "strip_drag")
    own = {name: getattr(d, name)[i] for name in names}
    added = {name: getattr(d, name)[i] for name in ("added_mass", "added_volume")}
    if not any(np.any(value) for value in (*own.values(), *added.values())):
        return None
    back = pose.inverse()
    # `shifted` rounds, so the matrix of a frame that coincides with the body's is not transformed
    if pose.translation.any() or (pose.rotation != np.eye(3)).any():
        added = {name: shifted(matrix, back) for name, matrix in added.items()}
    return Immersion(**own, **added, buoyancy_center=d.buoyancy_center[i], pose=pose)
