"""Edit the description of a mechanism: lock joints, or choose another root."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import ModelError, UnknownNameError
from .assembly import Body, Mechanism, assemble, fixed_body, mechanism_of
from .constraint_fields import constraint_fields, violation
from .constraints import Constraint, CouplerConstraint
from .description import Description
from .inertia import Inertia
from .joint import (
    QUATERNION_JOINTS,
    AnyJoint,
    Composite,
    Dof,
    Fixed,
    Free,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
)
from .limits import LIMITS, JointLimits
from .parameters import batch_shape_of
from .passive import PassiveForces
from .pose import NEARLY_ORTHOGONAL, Pose, numbers

#: Largest residual of a constraint between bodies that `lock` fixes to each other, relative to 1 plus the positions.
LOCK_TOLERANCE = 1e-6
#: Fields of a body that belong to its link, and not to its joint.
OF_LINK = ("inertia", "immersion", "visuals", "collisions")

# --- locked joints ----------------------------------------------------------------------------------------------------


def locked_description(description: Description, joints: Mapping[str, npt.ArrayLike]) -> Description:
    """Return the description with these joints fixed at these positions. Raises a ModelError if that is impossible."""
    mechanism = editable(description, "lock")
    if not isinstance(joints, Mapping):
        raise ModelError(f'lock: joints is {excerpt(joints)}; expected a dict such as {{"joint": position}}')
    of_joint = {body.joint_name: name for name, body in mechanism.bodies.items() if not isinstance(body.joint, Fixed)}
    check_joints("lock", joints, tuple(of_joint))
    positions = with_coupled_joints(mechanism.constraints, joints)
    if len(positions) == len(of_joint):
        coupled = [name for name in positions if name not in joints]
        found = f" or joints that are coupled to them, {excerpt(coupled)}" if coupled else ""
        raise ModelError(
            f"lock: joints contains all joints of model {description.name!r}{found}; expected at least one other"
        )
    bodies = dict(mechanism.bodies)
    for joint_name, position in positions.items():
        name = of_joint[joint_name]
        body = bodies[name]
        place = body.placement @ joint_pose(f"lock: joint {joint_name!r}", body.joint, position)
        held = fixed_body(body.parent, place, body.visuals, body.collisions)
        bodies[name] = held._replace(inertia=body.inertia, immersion=body.immersion)
    drives = [drive for drive in mechanism.drives if drive.joint not in positions]
    constraints = [x for x in mechanism.constraints if not _is_always_satisfied(x, bodies, positions)]
    locked = assemble(replace(mechanism, bodies=bodies, drives=drives, constraints=constraints))
    nominal = description.nominal
    return locked if nominal is None else replace(locked, nominal=locked_description(nominal, joints))


def with_coupled_joints(
    constraints: Sequence[Constraint], joints: Mapping[str, npt.ArrayLike]
) -> dict[str, npt.ArrayLike]:
    """Return the positions of joints to lock and of all joints that are coupled to them.

    Raises a ModelError if positions contradict a coupler.
    """
    positions = dict(joints)
    couplers = [constraint for constraint in constraints if isinstance(constraint, CouplerConstraint)]
    for _ in couplers:  # each pass follows the couplers of a chain by at least one
        for coupler in couplers:
            if coupler.other in positions and coupler.joint not in positions:
                other = _position_in_coupler(coupler.other, positions)
                positions[coupler.joint] = coupler.ratio * other + coupler.offset
            elif coupler.joint in positions and coupler.other not in positions:
                position = _position_in_coupler(coupler.joint, positions)
                positions[coupler.other] = (position - coupler.offset) / coupler.ratio
    for coupler in couplers:
        if coupler.joint not in positions:
            continue
        position, other = (_position_in_coupler(name, positions) for name in (coupler.joint, coupler.other))
        expected = coupler.ratio * other + coupler.offset
        if not abs(position - expected) <= LOCK_TOLERANCE * (1.0 + abs(position) + abs(expected)):
            raise ModelError(
                f"lock: the positions {position:g} of joint {coupler.joint!r} and {other:g} of joint {coupler.other!r} "
                f"contradict CouplerConstraint {coupler.name!r}; expected {expected:g} for joint {coupler.joint!r}. "
                "Lock only one of them: the other one is then locked too"
            )
    return positions


def joints_coupled_to(constraints: Sequence[Constraint], joints: Sequence[str]) -> set[str]:
    """Return joints and all joints that couplers connect to them."""
    found = set(joints)
    couplers = [{x.joint, x.other} for x in constraints if isinstance(x, CouplerConstraint)]
    for _ in couplers:
        for pair in couplers:
            if pair & found:
                found |= pair
    return found


def _position_in_coupler(joint: str, positions: Mapping[str, npt.ArrayLike]) -> float:
    """Return the position of a joint with one degree of freedom. Raises a ModelError."""
    what = f"lock: joint {joint!r}: position"
    position = np.atleast_1d(numbers(positions[joint], what))
    if position.shape != (1,):
        raise ModelError(f"{what} has shape {position.shape}; expected one number")
    return float(position[0])


def _is_always_satisfied(
    constraint: Constraint, bodies: Mapping[str, Body], positions: Mapping[str, npt.ArrayLike]
) -> bool:
    """Whether a constraint connects bodies, or couples joints, that do not move relative to each other.

    Raises a ModelError if it is violated.
    """
    if isinstance(constraint, CouplerConstraint):
        return constraint.joint in positions
    (body_a, pose_a), (body_b, pose_b) = (_carrier(bodies, name) for name in (constraint.frame_a, constraint.frame_b))
    if body_a != body_b:
        return False
    if constraint.compliance is not None:  # its forces do not move the body
        return True
    error = violation(constraint, pose_a, pose_b)
    if not error <= LOCK_TOLERANCE * (1.0 + np.abs(pose_a.translation).max() + np.abs(pose_b.translation).max()):
        raise ModelError(
            f"lock: the positions violate constraint {constraint.name!r}, whose frames {constraint.frame_a!r} and "
            f"{constraint.frame_b!r} become fixed to each other; its residual is {error:.2e}, expected 0. Use "
            "positions from model.assemble(q)"
        )
    return True


def _carrier(bodies: Mapping[str, Body], name: str | None) -> tuple[str | None, Pose]:
    """Return the moving body that carries a body, or None for the world, and the pose of the body there."""
    pose = Pose()
    while name is not None and isinstance(bodies[name].joint, Fixed):
        pose = bodies[name].placement @ pose
        name = bodies[name].parent
    return name, pose


def check_joints(what: str, given: Any, known: Sequence[str]) -> None:
    """Raise a ModelError if a name is not the name of a joint."""
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) if isinstance(name, str) else ""
            raise UnknownNameError(f"{what}: the model has no joint {name!r}; its joints are {excerpt([*known])}{hint}")


def joint_pose(what: str, joint: AnyJoint, position: npt.ArrayLike) -> Pose:
    """Return the pose of the body of a joint in the placement frame, at a position (m,). Raises a ModelError."""
    count = QUATERNION_JOINTS.get(joint.kind, len(joint.dofs))
    q = np.atleast_1d(numbers(position, f"{what}: position"))
    if q.shape != (count,):
        expected = f"{count} numbers" if count > 1 else "one number"
        raise ModelError(f"{what}: position has shape {q.shape}; expected {expected} for a {joint.kind} joint")
    if joint.kind in QUATERNION_JOINTS:
        if abs(np.linalg.norm(q[-4:]) - 1.0) > NEARLY_ORTHOGONAL:
            raise ModelError(
                f"{what}: its quaternion is {q[-4:].tolist()}; expected [x, y, z, w] with a norm of 1. Divide it by "
                "its norm"
            )
        return Pose(q[:3] if joint.kind == Free.kind else (0.0, 0.0, 0.0), q[-4:])
    pose = Pose()
    for dof, value in zip(joint.dofs, q, strict=True):
        travel = {"revolute": 0.0, "prismatic": value, "screw": dof.pitch * value}[dof.kind]
        turn = 0.0 if dof.kind == "prismatic" else value / 2.0
        pose = pose @ Pose(travel * dof.axis, [*(np.sin(turn) * dof.axis), np.cos(turn)])
    return pose


# --- another root -----------------------------------------------------------------------------------------------------


def rerooted_description(description: Description, root: str) -> Description:
    """Return the description of the same mechanism, in which body `root` has the free joint to the world.

    The joints between the old and the new root are reversed: the parent becomes the child. A body has the frame of its
    joint. Therefore a moving body named after the old parent, with the suffix "_body", has the frame of the reversed
    joint. The old parent itself is fixed to this body, so its name, frame, inertia and shapes do not change. Raises a
    ModelError if the joints cannot be reversed.
    """
    mechanism = editable(description, "reroot")
    path = path_to_root(mechanism, root)
    if len(path) == 1:
        return description
    old = mechanism.bodies[path[-1]]
    _check_old_root(old, mechanism.drives)
    new = mechanism.bodies[root]
    of_root = {key: getattr(new, key) for key in OF_LINK}
    bodies = {root: old._replace(**of_root)}
    reversed_joints = {}
    for child_name, parent_name in pairwise(path):
        child, parent = mechanism.bodies[child_name], mechanism.bodies[parent_name]
        reversed_joints[child.joint_name] = len(child.joint.dofs)
        _check_reversible(child, mechanism.drives)
        moving = child._replace(
            parent=child_name,
            joint=reversed_joint(child.joint),
            placement=Pose(),
            inertia=Inertia(0.0),
            rotor_inertia=child.rotor_inertia[::-1],
            gear_ratio=child.gear_ratio[::-1],
            passive={field: values[::-1] for field, values in child.passive.items()},
            limits=child.limits[::-1],
            immersion=None,
            visuals=(),
            collisions=(),
        )
        if not is_identity(child.placement):
            carrier = unused_name(f"{parent_name}_body", mechanism.bodies)
            bodies[carrier] = moving
            moving = fixed_body(carrier, child.placement.inverse())
        bodies[parent_name] = moving._replace(**{key: getattr(parent, key) for key in OF_LINK})
    bodies |= {name: body for name, body in mechanism.bodies.items() if name not in bodies}
    drives = [
        replace(drive, dof=reversed_joints[drive.joint] - 1 - (drive.dof or 0))
        if drive.joint in reversed_joints
        else drive
        for drive in mechanism.drives
    ]
    rerooted = assemble(replace(mechanism, bodies=bodies, drives=drives))
    nominal = description.nominal
    return rerooted if nominal is None else replace(rerooted, nominal=rerooted_description(nominal, root))


def path_to_root(mechanism: Mechanism, name: str) -> list[str]:
    """Return the names of the bodies from `name` to its root, which must be on a free joint. Raises a ModelError."""
    bodies = mechanism.bodies
    moving = [other for other, body in bodies.items() if not isinstance(body.joint, Fixed)]
    if name not in moving:
        if isinstance(name, str) and name in bodies:
            carrier = bodies[name].parent
            where = "the world" if carrier is None else f"body {carrier!r}"
            raise ModelError(f"reroot: {name!r} is a frame that is fixed to {where}; expected the name of a body")
        hint = did_you_mean(name, moving) if isinstance(name, str) else ""
        raise UnknownNameError(f"reroot: the model has no body {name!r}; its bodies are {excerpt(moving)}{hint}")
    path = [name]
    while (parent := bodies[path[-1]].parent) is not None:
        path.append(parent)
    root = bodies[path[-1]]
    if not isinstance(root.joint, Free):
        raise ModelError(
            f"reroot: {name!r} cannot become the root, because body {path[-1]!r} is connected to the world by a "
            f"{root.joint.kind} joint; expected a free joint. Load or build the model with a floating base"
        )
    return path


def reversed_joint(joint: AnyJoint) -> AnyJoint:
    """Return the joint seen from its other side: at the same q, in reverse order, its pose is the inverse.

    For free and spherical joints the type is the same, but q is not.
    """
    if isinstance(joint, (Free, Spherical)):
        return joint
    parts = [reversed_part(dof) for dof in joint.dofs[::-1]]
    if isinstance(joint, Universal):
        return Universal(parts[0].axis, parts[1].axis)
    return parts[0] if len(parts) == 1 and not isinstance(joint, Composite) else Composite(parts)


def reversed_part(dof: Dof) -> Revolute | Prismatic | Screw:
    """Return the joint with one degree of freedom along or about the opposite axis."""
    axis = 0.0 - dof.axis
    if dof.kind == "screw":
        return Screw(axis, dof.pitch)
    return Revolute(axis) if dof.kind == "revolute" else Prismatic(axis)


def reversed_state(kind: str, q: Any, qd: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the position and velocity of a joint (..., m) seen from its other side, as `reversed_joint` defines them.

    A free or spherical joint then has the velocity of the parent relative to the body, in the axes of the parent.
    """
    from scipy.spatial.transform import Rotation

    if kind not in QUATERNION_JOINTS:
        return q[..., ::-1], qd[..., ::-1]
    inverse = np.concatenate([-q[..., -4:-1], q[..., -1:]], -1)
    R = Rotation.from_quat(q[..., -4:].reshape(-1, 4)).as_matrix().reshape(*q.shape[:-1], 3, 3)
    turned = [np.einsum("...ij,...j->...i", R, qd[..., k : k + 3]) for k in range(0, qd.shape[-1], 3)]
    if kind != Free.kind:
        return inverse, -turned[0]
    p, (v, w) = q[..., :3], turned
    moved = -np.einsum("...ji,...j->...i", R, p)
    return np.concatenate([moved, inverse], -1), np.concatenate([np.cross(w, p) - v, -w], -1)


def is_identity(pose: Pose) -> bool:
    """Whether a pose is the identity, to the last bit."""
    return not pose.translation.any() and bool((pose.rotation == np.eye(3)).all())


def unused_name(name: str, taken: Container[str]) -> str:
    """Return the name, with more underscores appended if it is taken."""
    while name in taken:
        name += "_"
    return name


def _check_old_root(root: Body, drives: Sequence[Any]) -> None:
    """Raise an error for numbers of the root's joint that refer to the axes of its body."""
    fields = _directional_fields(root)
    if any(drive.joint == root.joint_name for drive in drives):
        fields.append("a drive")
    if fields:
        raise ModelError(
            f"reroot: the free joint {root.joint_name!r} has {', '.join(fields)}, in the axes of its body; expected "
            "none, because another body would have this joint. Build the model without them"
        )


def _check_reversible(child: Body, drives: Sequence[Any]) -> None:
    """Raise an error for reversed joints with gravity compensation, or with values in axes of the body.

    The gravity force of a joint is the gravity force of all bodies beyond it. A reversed joint has other bodies beyond
    it.
    """
    if any(drive.joint == child.joint_name and getattr(drive, "gravity_compensation", False) for drive in drives):
        raise ModelError(
            f"reroot: the drive of joint {child.joint_name!r} has gravity compensation, which carries the bodies "
            "beyond the joint; the joint is reversed, so the drive would carry the other bodies; expected a drive "
            "without gravity compensation. Build the model without this drive"
        )
    if child.joint.kind not in QUATERNION_JOINTS:
        return
    fields = _directional_fields(child)
    if isinstance(child.joint, Spherical):
        # these do not depend on axes if they are equal for all
        equal = ("rotor_inertia", "damping", *(f"{limit} limit" for limit in LIMITS[2:]))
        fields = [field for field in fields if field not in equal or np.ptp(_numbers_of(child, field)) > 0.0]
    if any(drive.joint == child.joint_name for drive in drives):
        fields.append("a drive")
    if fields:
        raise ModelError(
            f"reroot: the {child.joint.kind} joint {child.joint_name!r} has {', '.join(fields)}, in the axes of its "
            "body; expected none, because the joint is reversed, and the body on its other side has other axes"
        )


def _numbers_of(body: Body, field: str) -> np.ndarray:
    if field.endswith(" limit"):
        return body.limits[:, LIMITS.index(field.removesuffix(" limit"))]
    return body.passive[field] if field in body.passive else getattr(body, field)


def _directional_fields(body: Body) -> list[str]:
    """Return the names of the numbers of a joint that differ from their defaults."""
    defaults = {field: getattr(PassiveForces, field) for field in body.passive}
    defaults |= {f"{field} limit": getattr(JointLimits, field) for field in LIMITS}
    defaults |= {"rotor_inertia": 0.0}
    return [field for field, default in defaults.items() if (_numbers_of(body, field) != default).any()]


# --- no constraints ---------------------------------------------------------------------------------------------------


def open_description(description: Description) -> Description:
    """Return the description without its constraints."""
    nominal = None if description.nominal is None else open_description(description.nominal)
    return replace(description, nominal=nominal, **constraint_fields((), {}, {}))


# --- all edits --------------------------------------------------------------------------------------------------------


def editable(description: Description, what: str) -> Mechanism:
    """Return the bodies of a description. Raises a ModelError if its samples differ, or a drive has its own model."""
    if batch_shape_of(description):
        raise ModelError(
            f"{what} expects a model without batch axes, but model {description.name!r} was varied. Edit the model "
            "first and call vary on the result, or use model.nominal or model[i]"
        )
    for drive in description.drives:
        if not isinstance(getattr(drive, "controller_model", "nominal"), str):
            raise ModelError(
                f"{what}: the drive of joint {drive.joint!r} has its own model, whose joints would not fit; "
                'expected controller_model="nominal" or "own". Pass this drive to simulate instead'
            )
    return mechanism_of(description)
