"""Checks of the drives and constraints of a `ModelBuilder`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..acting.drives import ONE_JOINT, OneJointDrive
from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import ModelError, UnknownNameError
from ..model.assembly import Body
from ..model.constraints import KINDS, Constraint
from ..model.declared_constraint import name_of
from ..model.joint import Fixed


def check_drive(drive: OneJointDrive, bodies: Mapping[str, Body]) -> None:
    """Raise a ModelError if the bodies do not have the joint or the degree of freedom of a drive."""
    if not isinstance(drive, ONE_JOINT):
        expected = ", ".join(kind.__name__ for kind in ONE_JOINT)
        raise ModelError(f"drive is {drive!r}; expected one of {expected}")
    joints = [body.joint_name for body in bodies.values() if not isinstance(body.joint, Fixed)]
    if drive.joint not in joints:
        known = f": one of {joints}{did_you_mean(drive.joint, joints)}" if joints else ". Call add_body first"
        raise UnknownNameError(f"drive: its joint is {drive.joint!r}; expected a joint that was added before{known}")
    body = next(body for body in bodies.values() if body.joint_name == drive.joint)
    count = len(body.joint.dofs)
    dof = 0 if drive.dof is None and count == 1 else drive.dof
    if not (isinstance(dof, (int, np.integer)) and 0 <= dof < count):
        expected = f"expected an integer from 0 to {count - 1}, as the joint has {count} degrees of freedom"
        expected = "expected 0, as the joint has one degree of freedom" if count == 1 else expected
        raise ModelError(f"drive of joint {drive.joint!r}: dof is {drive.dof!r}; {expected}")


def with_compliance(
    constraint: Constraint, values: Mapping[str, float | None], others: Iterable[Constraint]
) -> Constraint:
    """Return a constraint with the compliances that are not None.

    Raises a ModelError if one of the other constraints has its name, or it does not have such a compliance.
    """
    if not isinstance(constraint, tuple(KINDS.values())):
        expected = ", ".join(kind.__name__ for kind in KINDS.values())
        raise ModelError(f"constraint is {excerpt(constraint)}; expected one of {expected}")
    if any(other.name == constraint.name for other in others):
        raise ModelError(
            f"constraint {constraint.name!r}: the model already has a constraint of this name; expected a unique name"
        )
    given: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    unknown = [name for name in given if name not in constraint.names_of_compliances()]
    if unknown:
        known = ", ".join(constraint.names_of_compliances())
        raise ModelError(
            f"{name_of(constraint)}: {', '.join(unknown)} is given; expected "
            f"{f'only {known}' if known else 'no compliance, because couplers are rigid'}. Remove it"
        )
    return replace(constraint, **given) if given else constraint


def warn_of_nonphysical_inertia(model: str, nonphysical: Sequence[str], negative: Sequence[str]) -> None:
    """Warn the caller of `ModelBuilder.build` of bodies whose inertia is not physically possible."""
    if negative:
        warnings.warn(
            f"model {model!r}: the inertia of {negative} has a negative principal moment. It is "
            "used unchanged, so kinetic energies may be negative and accelerations wrong or NaN. Correct the "
            "inertia",
            stacklevel=3,
        )
    others = [name for name in nonphysical if name not in negative]
    if others:
        warnings.warn(
            f"model {model!r}: no body can have the inertia of {others}, because the largest principal moment "
            "exceeds the sum of the other two (triangle inequality). It is used unchanged",
            stacklevel=3,
        )
