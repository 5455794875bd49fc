"""Joints of a file that mimic other joints, as couplers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from ..common.misspelled import did_you_mean
from ..errors import FileFormatError
from ..model.constraints import CouplerConstraint
from .notes import Notes
from .urdf_elements import Mimic


class MimicJoint(Protocol):
    """A joint of a file. `has_one_dof` is true if its position is one number."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def has_one_dof(self) -> bool: ...
    @property
    def mimic(self) -> Mimic | None: ...


def check_mimicked(path: Path, name: str, mimicked: str | None, names: Iterable[str]) -> None:
    """Raise a FileFormatError if a joint does not mimic another joint of the file. `names` are the joints."""
    others = [other for other in names if other != name]
    if mimicked not in others:
        meant = did_you_mean(mimicked or "", others)
        raise FileFormatError(
            f"{path}: joint {name!r} mimics joint {mimicked!r}; expected another joint of the file{meant}"
        )


def couplers_of(path: Path, all_joints: Iterable[MimicJoint], notes: Notes) -> list[CouplerConstraint]:
    """Return a coupler for each joint that mimics another one; warn about mimics that a coupler cannot represent."""
    joints = {joint.name: joint for joint in all_joints}
    couplers, ignored = [], []
    for joint in joints.values():
        if joint.mimic is None or joint.type == "fixed":
            continue
        _refuse_cycle(path, joint, joints)
        other = joints[joint.mimic.joint]
        if joint.has_one_dof and other.has_one_dof and joint.mimic.multiplier:
            couplers.append(
                CouplerConstraint(
                    joint.name, joint.name, other.name, ratio=joint.mimic.multiplier, offset=joint.mimic.offset
                )
            )
        else:
            ignored.append(
                f"{joint.name!r} ({joint.type}) mimics {other.name!r} ({other.type}) with the multiplier "
                f"{joint.mimic.multiplier:g}"
            )
    if ignored:
        notes.add(
            f"rbchain ignores <mimic> of joints that then move independently: {', '.join(ignored)}; expected "
            "two joints with one degree of freedom each, and a multiplier other than 0"
        )
    return couplers


def _refuse_cycle(path: Path, joint: MimicJoint, joints: Mapping[str, MimicJoint]) -> None:
    """Raise a FileFormatError if a joint mimics itself by way of other joints."""
    followed = [joint.name]
    mimic = joint.mimic
    while mimic is not None and mimic.joint not in followed:
        followed.append(mimic.joint)
        mimic = joints[mimic.joint].mimic
    if mimic is not None:
        raise FileFormatError(
            f"{path}: the joints {followed[followed.index(mimic.joint) :]} mimic each other in a cycle; remove the "
            "mimic element of one of them"
        )
