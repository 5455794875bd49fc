"""Limits of the joints of a URDF file."""

from __future__ import annotations

import numpy as np

from ..model.limits import JointLimits
from .notes import Notes
from .urdf_elements import Joint, Robot
from .write_urdf import UNLIMITED

EXPECTED = "expected lower <= upper, and the others zero or more"


def limits_of(robot: Robot, notes: Notes) -> dict[str, JointLimits]:
    """Return the limits of joints with one degree of freedom; missing ones are infinite. Note invalid limits."""
    found: dict[str, JointLimits] = {}
    invalid: dict[str, str] = {}
    for joint in robot.joints:
        if joint.limit and joint.has_one_dof:
            found[joint.name], faults = _limits(joint)
            if faults:
                invalid[joint.name] = ", ".join(faults)
    if len(invalid) == 1:
        ((name, text),) = invalid.items()
        notes.add(f"joint {name!r} has invalid limits, which are ignored: {text}; {EXPECTED}")
    elif invalid:
        texts = ", ".join(f"{name!r} ({text})" for name, text in invalid.items())
        notes.add(f"joints have invalid limits, which are ignored: {texts}; {EXPECTED}")
    return found


def _limits(joint: Joint) -> tuple[JointLimits, list[str]]:
    """Return the valid limits of a joint, and texts for the invalid ones.

    A continuous joint has no limits of position. If one of `lower` and `upper` is missing, it is 0, as URDF defines it.
    A joint with neither has no limits of position. Many files have 0 for unknown limits of other quantities.
    """
    given = {name: np.copysign(np.inf, x) if abs(x) >= UNLIMITED else x for name, x in joint.limit.items()}
    has_limits = joint.type != "continuous" and ("lower" in given or "upper" in given)
    lower, upper = given.pop("lower", 0.0), given.pop("upper", 0.0)
    if not has_limits:
        lower, upper = -np.inf, np.inf
    faults = []
    if lower > upper or lower == np.inf or upper == -np.inf:
        faults.append(f"lower {lower:g}, upper {upper:g}")
        lower, upper = -np.inf, np.inf
    faults += [f"{name} {x:g}" for name, x in given.items() if x < 0.0]
    if "acceleration" in given:
        given.setdefault("deceleration", given["acceleration"])  # as URDF 1.2 defines it
    largest = {name: x for name, x in given.items() if x > 0.0}
    return JointLimits(lower=lower, upper=upper, **largest), faults
