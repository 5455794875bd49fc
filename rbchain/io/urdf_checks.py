"""Checks of the elements of a URDF file, before they are read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from ..common.misspelled import did_you_mean
from ..errors import FileFormatError
from .couplers import check_mimicked
from .notes import Notes, listed
from .urdf_elements import DRAKE, JOINT_TAGS, kind_of
from .urdf_xacro import has_expression, remedy
from .xml_reading import attributes_of, label

VERSIONS = ("1.0", "1.1", "1.2")
#: Attributes that a version of URDF added, by the name of their element.
ADDED: dict[str, dict[str, tuple[str, ...]]] = {
    "1.1": dict.fromkeys(("origin", "link1", "link2", "frame"), ("quat_xyzw",)),
    "1.2": {"limit": ("acceleration", "deceleration", "jerk")},
}
POSE: dict[str, tuple[int, bool]] = {"xyz": (3, True), "rpy": (3, True), "quat_xyzw": (4, True)}
#: Attributes of elements: the number of numbers, and whether the attribute is optional.
NUMBERS: dict[str, dict[str, tuple[int, bool]]] = {
    "origin": POSE,
    "link1": POSE,
    "link2": POSE,
    "frame": POSE,
    "mass": {"value": (1, False)},
    "inertia": {name: (1, False) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")},
    "axis": {"xyz": (3, False)},
    "dynamics": {name: (1, True) for name in ("damping", "friction", "spring_stiffness", "spring_reference")},
    "limit": {
        name: (1, True)
        for name in (
            *("lower", "upper", "velocity", "effort", "acceleration", "deceleration", "jerk"),
            *("drake:acceleration", "drake:jerk"),
        )
    },
    "mimic": {"multiplier": (1, True), "offset": (1, True)},
    f"{DRAKE}screw_thread_pitch": {"value": (1, False)},
}
MAY_BE_INFINITE = ("limit",)


def apply_version(robot: Any, notes: Notes) -> None:
    """Remove attributes that the file's version of URDF does not have, and note them."""
    given = version = robot.get("version", "1.0")
    if given not in VERSIONS:
        version = VERSIONS[-1] if re.fullmatch(r"1\.\d+|[2-9].*", given) else VERSIONS[0]
        notes.add(f"the version of URDF is {given!r}; expected one of {listed(VERSIONS)}. It is read as {version}")
    for added_in, tags in ADDED.items():
        found = [
            (element, name)
            for element in robot.iter()
            for name in tags.get(label(element), ())
            if version < added_in and element.get(name) is not None
        ]
        for element, name in found:
            del element.attrib[name]
        if found:
            names = ", ".join(dict.fromkeys(name for _, name in found))
            notes.add(
                f"version {version} of URDF does not have {names}, so they are ignored; set "
                f'version="{added_in}" in <robot> to use them'
            )


def check_elements(path: Path, robot: Any) -> None:
    """Raise a FileFormatError for elements and attributes that are missing or not numbers, and for equal names."""
    joints = [element for element in robot if label(element) in JOINT_TAGS]
    for kind, elements in (("link", robot.findall("link")), ("joint", joints)):
        counts = Counter(element.get("name") for element in elements)
        for name, count in counts.items():
            if not name or count > 1:
                found = f"{count} {kind}s have the name {name!r}" if name else f"a {kind} has no name"
                raise FileFormatError(f"{path}: {found}; expected a unique name for each {kind}")
    for link in robot.findall("link"):
        for inertial in link.findall("inertial"):
            _expect_child(path, link, inertial, "mass")
            check_numbers(path, link, inertial)
    names = {joint.get("name") for joint in joints}
    for joint in joints:
        _check_joint(path, joint, names)


def _check_joint(path: Path, joint: Any, names: Collection[str]) -> None:
    name, where = joint.get("name"), f"{path}: joint {joint.get('name')!r}"
    for tag in ("parent", "child"):
        _expect_child(path, joint, joint, tag, most=1)
    if len(joint.findall("mimic")) > 1:
        raise FileFormatError(f"{where} has {len(joint.findall('mimic'))} <mimic> elements; expected at most one")
    for mimic in joint.findall("mimic"):
        check_mimicked(path, name, mimic.get("joint"), names)
    kinds = kind_of(joint)
    if joint.get("type") not in kinds:
        meant = did_you_mean(joint.get("type") or "", kinds)
        raise FileFormatError(
            f"{path}: the type of joint {name!r} is {joint.get('type')!r}; expected one of {[*kinds]}{meant}"
        )
    check_numbers(path, joint, joint)
    axis = joint.find("axis")
    if axis is not None and kinds[joint.get("type")].has_axis and not any(map(float, axis.get("xyz").split())):
        raise FileFormatError(f"{where}: axis is [0.0, 0.0, 0.0]; expected a non-zero vector")


def _expect_child(path: Path, owner: Any, element: Any, tag: str, most: float = np.inf) -> None:
    found = len(element.findall(tag))
    if not 1 <= found <= most:
        raise FileFormatError(
            f"{path}: {label(owner)} {owner.get('name')!r} has {found} <{tag}> elements; expected exactly one"
        )


def check_numbers(path: Path, owner: Any, element: Any) -> None:
    """Check the numbers of an element's children: that they are there, finite, and of the right count."""
    for child in element:
        given = attributes_of(child)
        for attribute, (count, optional) in NUMBERS.get(label(child), {}).items():
            text = given.get(attribute)
            if text is None and optional:
                continue
            numbers = _numbers(text)
            finite = "" if label(child) in MAY_BE_INFINITE else "finite "
            if len(numbers) != count or np.isnan(numbers).any() or (finite and not np.isfinite(numbers).all()):
                where = f"{path}: {label(owner)} {owner.get('name')!r}: the attribute {attribute} of <{label(child)}>"
                found = "is missing" if text is None else f"is {text!r}"
                expected = f"{count} finite numbers, separated by spaces" if count > 1 else f"1 {finite}number"
                hint = f". {remedy(path)}" if text is not None and has_expression(text) else ""
                raise FileFormatError(f"{where} {found}; expected {expected}{hint}")
        if "quat_xyzw" in given:
            _check_quaternion(f"{path}: {label(owner)} {owner.get('name')!r}: <{label(child)}>", given)


def _check_quaternion(where: str, given: dict[str, str]) -> None:
    if "rpy" in given:
        raise FileFormatError(f"{where} has both rpy and quat_xyzw; remove one of the two")
    if not any(_numbers(given["quat_xyzw"])):
        raise FileFormatError(f"{where}: quat_xyzw is {given['quat_xyzw']!r}; expected a non-zero quaternion x y z w")


def _numbers(text: str | None) -> list[float]:
    try:  # float() takes underscores, XML's decimals have none
        return [float(word) for word in (text or "").replace("_", "?").split()]
    except ValueError:
        return []


def note_likely_mistakes(robot: Any, notes: Notes) -> None:
    """Note masses outside <inertial>, which have no effect, and angles that seem to be in degrees."""
    for link in robot.findall("link"):
        outside = [tag for tag in ("mass", "inertia") if link.find(tag) is not None]
        if outside:
            notes.add(
                f"link {link.get('name')!r} has <{outside[0]}> outside <inertial>, which has no effect; expected it "
                "inside <inertial>"
            )
    for owner in robot.iter("link", *JOINT_TAGS):
        for origin in owner.iter("origin"):
            angles = [angle for angle in _numbers(origin.get("rpy")) if 6.3 < abs(angle) < np.inf]
            if angles:
                where = f"{label(owner)} {owner.get('name')!r}"
                notes.add(
                    f"{where} has the angle {angles[0]:g} rad in rpy of <origin>, which is more than a turn; expected "
                    "radians. If it is in degrees, multiply it by pi / 180"
                )
                break
