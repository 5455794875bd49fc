"""Bodies that a `ModelBuilder` adds: checks of each body and of their tree."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..common.misspelled import did_you_mean
from ..common.real_arrays import FloatArray, excerpt
from ..errors import ModelError, UnknownNameError
from ..model import validation
from ..model.assembly import Body
from ..model.collision_shape import CollisionShape
from ..model.immersion import Immersion
from ..model.inertia import Inertia
from ..model.joint import JOINTS, AnyJoint, Fixed
from ..model.limits import JointLimits
from ..model.numbers_of_dofs import of_dofs
from ..model.passive import PassiveForces
from ..model.pose import Pose
from ..model.visual import Visual

MASSLESS = Inertia(0.0)


class BodyArguments(NamedTuple):
    """The arguments of `ModelBuilder.add_body` without the name of the body, as the caller gives them."""

    parent: str | None
    joint: AnyJoint | None
    placement: Pose
    inertia: Inertia
    rotor_inertia: npt.ArrayLike
    gear_ratio: npt.ArrayLike
    passive: PassiveForces
    immersion: Immersion | None
    limits: JointLimits
    visuals: Sequence[Visual]
    collisions: Sequence[CollisionShape]
    joint_name: str


def check_names(name: str, parent: str | None, joint_name: str, bodies: Mapping[str, Body]) -> None:
    """Raise a ModelError if the names of a new body or its joint are not texts, or already used by other bodies."""
    if not (isinstance(name, str) and name):
        raise ModelError(f"body {name!r}: the name is {name!r}; expected a non-empty string")
    if name in bodies:
        raise ModelError(f"body {name!r}: the model already has a body of this name; expected a unique name")
    if not (parent is None or isinstance(parent, str)):
        raise ModelError(f"body {name!r}: parent is {parent!r}; expected the name of a body, or None for the world")
    if not (isinstance(joint_name, str) and joint_name):
        raise ModelError(f"body {name!r}: joint_name is {joint_name!r}; expected a non-empty string")
    for other, body in bodies.items():
        if body.joint_name == joint_name:
            raise ModelError(
                f"body {name!r}: joint_name is {joint_name!r}, which is already the name of the joint of body "
                f"{other!r}; expected a unique name"
            )


def checked_body(name: str, given: BodyArguments) -> Body:
    """Return the body with these arguments of `ModelBuilder.add_body`. Raises ModelError if one is invalid.

    The names and the values of the inertia are checked elsewhere.
    """
    joint, placement, visuals, immersion = given.joint, given.placement, given.visuals, given.immersion
    inertia, passive, limits = given.inertia, given.passive, given.limits
    if not isinstance(joint, JOINTS):
        kinds = ", ".join(kind.__name__ for kind in JOINTS)
        raise ModelError(
            f"body {name!r}: joint is {joint!r}; expected an instance of {kinds}, such as Revolute(axis=(0, 0, 1))"
        )
    if not isinstance(placement, Pose) or placement.translation.shape != (3,):
        raise ModelError(
            f"body {name!r}: placement is {placement!r}; expected one Pose, such as Pose(translation=(0, 0, 1))"
        )
    for field, shapes, kind in (("visuals", visuals, Visual), ("collisions", given.collisions, CollisionShape)):
        if not isinstance(shapes, (list, tuple)):
            raise ModelError(
                f"body {name!r}: {field} is {excerpt(shapes)}; expected a list of {kind.__name__}, even for one"
            )
    for what, value, kind in (
        ("inertia", inertia, Inertia),
        ("passive", passive, PassiveForces),
        ("limits", limits, JointLimits),
        *(() if immersion is None else (("immersion", immersion, Immersion),)),
        *(("an element of visuals", visual, Visual) for visual in visuals),
        *(("an element of collisions", shape, CollisionShape) for shape in given.collisions),
    ):
        if not isinstance(value, kind):
            article = "an" if kind.__name__[0] in "AEIOU" else "a"
            raise ModelError(f"body {name!r}: {what} is {value!r}; expected {article} {kind.__name__}")
    validation.check_axes((given.joint_name,) * len(joint.dofs), np.reshape([dof.axis for dof in joint.dofs], (-1, 3)))
    rotor, gears = _checked_motor(name, joint, given.rotor_inertia, given.gear_ratio)
    forces = passive.of_dofs(name, joint)
    has_stop = np.isfinite(passive.stop_lower).any() or np.isfinite(passive.stop_upper).any()
    if np.any(passive.limit_stiffness) and not has_stop:
        warnings.warn(
            f"body {name!r}: passive has a limit_stiffness but no stop_lower and no stop_upper, so the "
            "joint has no stop. JointLimits are not enforced; set the limits of PassiveForces",
            stacklevel=4,
        )
    ranges = limits.of_dofs(name, joint)
    return Body(
        parent=given.parent,
        joint=joint,
        placement=placement,
        inertia=inertia,
        rotor_inertia=rotor,
        gear_ratio=gears,
        passive=forces,
        limits=ranges,
        immersion=immersion,
        visuals=tuple(visuals),
        collisions=tuple(given.collisions),
        joint_name=given.joint_name,
    )


def _checked_motor(
    name: str, joint: AnyJoint, rotor_inertia: npt.ArrayLike, gear_ratio: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the rotor inertias and gear ratios of a joint (dofs,), or raise a ModelError."""
    rotor = of_dofs(name, joint, "rotor_inertia", rotor_inertia)
    if (rotor < 0.0).any():
        raise ModelError(f"body {name!r}: rotor_inertia is {rotor.tolist()}; expected zero or more")
    gears = of_dofs(name, joint, "gear_ratio", gear_ratio)
    if ((gears == 0.0) & (rotor > 0.0)).any():
        raise ModelError(
            f"body {name!r}: gear_ratio is {gears.tolist()}, but rotor_inertia is {rotor.tolist()}; expected a "
            "ratio other than 0, because the reflected inertia is rotor_inertia * gear_ratio^2. Use 1 for a direct "
            "drive, or set rotor_inertia to 0"
        )
    if isinstance(joint, Fixed) and np.any(rotor_inertia):
        raise ModelError(
            f"body {name!r}: rotor_inertia is {rotor_inertia!r}; expected 0, because a fixed joint does not move"
        )
    return rotor, gears


def check_tree(model_name: str, bodies: Mapping[str, Body]) -> None:
    """Raise a ModelError if bodies by their names do not form a tree with parents before children."""
    if not bodies:
        raise ModelError(f"model {model_name!r} is empty; expected at least one body")
    seen: set[str | None] = {None}
    for name, body in bodies.items():
        parent = body.parent
        if parent is not None and parent not in bodies:
            others = [other for other in bodies if other != name]
            known = f", or one of {others}{did_you_mean(parent, others)}" if others else ""
            raise UnknownNameError(
                f"body {name!r}: parent is {parent!r}, which is not a body of the model; use None for the world{known}"
            )
        if parent not in seen:
            if _is_in_cycle(name, bodies):
                raise ModelError(
                    f"body {name!r}: its parents form a cycle; expected a tree whose root is connected to the world"
                )
            raise ModelError(
                f"body {name!r}: its parent {parent!r} was added after it; expected parents before children. "
                f"Call add_body for {parent!r} first"
            )
        seen.add(name)


def _is_in_cycle(name: str | None, bodies: Mapping[str, Body]) -> bool:
    """Whether the parents of a body never lead to the world."""
    visited = set()
    while name is not None and name not in visited:
        visited.add(name)
        name = bodies[name].parent
    return name is not None
