"""Reader for URDF, the Unified Robot Description Format of ROS. Mesh files are not read."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from ..builder import ModelBuilder
from ..chain import Model
from ..errors import FileFormatError, ModelError
from ..model.constraints import CouplerConstraint
from ..model.inertia import Inertia
from ..model.joint import JOINTS as ALL_JOINTS
from ..model.joint import AnyJoint, Fixed, Free, Planar, Prismatic, Revolute
from ..model.limits import JointLimits
from ..model.passive import PassiveForces
from ..model.visual import Visual
from ..real_arrays import excerpt
from .urdf_elements import Joint, Link, Robot, robot_of
from .urdf_visuals import visuals_of
from .write_urdf import UNLIMITED

XACRO = "Expand its macros with the program xacro first"
#: Elements without effect on the dynamics and the limits. Visuals are read separately.
WITHOUT_MASS = ("visual", "collision", "material", "transmission", "gazebo", "sensor")
JOINTS: dict[str, Callable[..., AnyJoint]] = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "planar": Planar,
}
OF_ONE_DOF = {"revolute", "continuous", "prismatic"}
WITHOUT_AXIS: dict[str, Callable[[], AnyJoint]] = {"fixed": Fixed, "floating": Free}


def load_urdf(path: Path, base: AnyJoint | None = None, nonphysical_inertia: str = "warn") -> Model:
    """Read a model from a URDF file, with a gravity of 9.81 m/s^2 along -z.

    The joint `base` connects the root link to the world; by default the link is fixed. Damping and friction become
    passive forces of the joints. Limits are stored but not enforced, because URDF does not define the stiffness of
    stops. A joint that mimics another one becomes a CouplerConstraint with the name of the joint.

    Raises FileFormatError if the file does not follow the format, and ModelError if the mechanism is invalid.
    """
    robot, visuals = _parse(path)
    links = {link.name: link for link in robot.links}
    root, children = _tree(path, robot)
    if base is not None and not isinstance(base, ALL_JOINTS):
        expected = ", ".join(kind.__name__ for kind in ALL_JOINTS)
        raise ModelError(f"base is {base!r}; expected an instance of {expected}, such as Free()")
    builder = ModelBuilder(name=robot.name, nonphysical_inertia=nonphysical_inertia)
    builder.add_body(
        root, joint=Fixed() if base is None else base, inertia=_inertia(links[root]), visuals=visuals.get(root, ())
    )
    waiting = children.get(root, [])[::-1]
    while waiting:
        joint = waiting.pop()
        builder.add_body(
            joint.child,
            parent=joint.parent,
            joint=_joint(joint),
            placement=joint.origin,
            inertia=_inertia(links[joint.child]),
            joint_name=joint.name,
            passive=_passive(joint),
            limits=_limits(path, joint),
            visuals=visuals.get(joint.child, ()),
        )
        waiting.extend(children.get(joint.child, [])[::-1])
    for coupler in _couplers(path, robot):
        builder.add_constraint(coupler)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = builder.build()
    for warning in caught:
        warnings.warn(f"{path}: {warning.message}", stacklevel=3)
    return model


def _tree(path: Path, robot: Robot) -> tuple[str, dict[str, list[Joint]]]:
    """Name of the root link, and the joints whose parent is each link."""
    links = {link.name for link in robot.links}
    if not links:
        raise FileFormatError(
            f"{path}: the file has no <link> elements; expected at least one. If it contains xacro macros: {XACRO}"
        )
    children: dict[str, list[Joint]] = {}
    parents: dict[str, str] = {}
    for joint in robot.joints:
        for end in (joint.parent, joint.child):
            if end not in links:
                raise FileFormatError(
                    f"{path}: joint {joint.name!r} refers to link {end!r}, which is not in the file; expected one of "
                    f"{excerpt(sorted(links))}"
                )
        if joint.child in parents:
            raise FileFormatError(
                f"{path}: link {joint.child!r} has two parents, {parents[joint.child]!r} and {joint.parent!r}; "
                "expected a tree, in which each link is the child of at most one joint"
            )
        parents[joint.child] = joint.parent
        children.setdefault(joint.parent, []).append(joint)
    roots = sorted(links - set(parents))
    if len(roots) != 1:
        raise FileFormatError(
            f"{path}: {len(roots)} links have no parent joint ({roots}); expected exactly one, the root link. Connect "
            "the others with joints"
        )
    reached, waiting = set(), roots[:]
    while waiting:
        link = waiting.pop()
        reached.add(link)
        waiting.extend(joint.child for joint in children.get(link, []))
    if reached != links:
        raise FileFormatError(f"{path}: the joints of links {sorted(links - reached)} form a cycle; expected a tree")
    return roots[0], children


def _parse(path: Path) -> tuple[Robot, dict[str, list[Visual]]]:
    """Parse a file to a robot and the visuals of its links.

    Files with a document type are refused: its entities could expand without limit or refer to other files.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    content = path.read_bytes()
    try:
        tree = etree.parse(io.BytesIO(content), parser)
    except etree.XMLSyntaxError as error:
        hint = f". {XACRO}" if b"xacro" in content else ""
        raise FileFormatError(f"{path}: the file is not well-formed XML: {error.msg}{hint}") from None
    if tree.docinfo.internalDTD is not None:
        raise FileFormatError(
            f"{path}: the file declares a document type (DOCTYPE); expected none, because rbchain does not expand "
            "entities. Remove the declaration"
        )
    robot = tree.getroot()
    if robot.tag != "robot":
        raise FileFormatError(f"{path}: the root element is <{robot.tag}>; expected <robot>")
    robot.set("name", robot.get("name") or path.stem)
    visuals = visuals_of(path, robot)
    etree.strip_elements(robot, *WITHOUT_MASS)
    _warn_of_likely_mistakes(path, robot)
    _check_elements(path, robot)
    return robot_of(robot), visuals


def _warn_of_likely_mistakes(path: Path, robot: Any) -> None:
    """Warn of masses outside <inertial>, which have no effect, and of angles that seem to be in degrees."""
    for link in robot.findall("link"):
        outside = [tag for tag in ("mass", "inertia") if link.find(tag) is not None]
        if outside:
            warnings.warn(
                f"{path}: link {link.get('name')!r} has <{outside[0]}> outside <inertial>, which has no effect; "
                "expected it inside <inertial>",
                stacklevel=5,
            )
    for owner in robot.iter("link", "joint"):
        for origin in owner.iter("origin"):
            angles = [word for word in origin.get("rpy", "").split() if _is_beyond_a_turn(word)]
            if angles:
                warnings.warn(
                    f"{path}: {owner.tag} {owner.get('name')!r} has the angle {angles[0]} rad in rpy of <origin>, "
                    "which is more than a turn; expected radians. If it is in degrees, multiply it by pi / 180",
                    stacklevel=5,
                )
                break


def _is_beyond_a_turn(word: str) -> bool:
    try:
        return 6.3 < abs(float(word)) < np.inf
    except ValueError:
        return False


# Attributes of the elements of a link or joint: the number of numbers, and whether the attribute is optional.
NUMBERS = {
    "origin": {"xyz": (3, True), "rpy": (3, True)},
    "mass": {"value": (1, False)},
    "inertia": {name: (1, False) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")},
    "axis": {"xyz": (3, False)},
    "dynamics": {"damping": (1, True), "friction": (1, True)},
    "limit": {name: (1, True) for name in ("lower", "upper", "velocity", "effort")},
    "mimic": {"multiplier": (1, True), "offset": (1, True)},
}


def _check_elements(path: Path, robot: Any) -> None:
    """Raise a FileFormatError for elements and attributes that are missing, repeated or not numbers."""
    for kind in ("link", "joint"):
        names = [element.get("name") for element in robot.findall(kind)]
        for name in names:
            if not name or names.count(name) > 1:
                found = f"{names.count(name)} {kind}s have the name {name!r}" if name else f"a {kind} has no name"
                raise FileFormatError(f"{path}: {found}; expected a unique name for each {kind}")
    for link in robot.findall("link"):
        for inertial in link.findall("inertial"):
            _expect_children(path, link, inertial, ("mass", "inertia"))
            _check_numbers(path, link, inertial)
    joints = {joint.get("name") for joint in robot.findall("joint")}
    for joint in robot.findall("joint"):
        _expect_children(path, joint, joint, ("parent", "child"))
        if len(joint.findall("mimic")) > 1:
            found = f"joint {joint.get('name')!r} has {len(joint.findall('mimic'))} <mimic> elements"
            raise FileFormatError(f"{path}: {found}; expected at most one")
        for mimic in joint.findall("mimic"):
            if mimic.get("joint") not in joints - {joint.get("name")}:
                found = f"joint {joint.get('name')!r} mimics joint {mimic.get('joint')!r}"
                raise FileFormatError(f"{path}: {found}; expected another joint of the file")
        if joint.get("type") not in (*JOINTS, *WITHOUT_AXIS):
            found = f"the type of joint {joint.get('name')!r} is {joint.get('type')!r}"
            raise FileFormatError(f"{path}: {found}; expected one of {[*JOINTS, *WITHOUT_AXIS]}")
        if joint.get("type") in WITHOUT_AXIS:
            etree.strip_elements(joint, "axis", "dynamics")
        _check_numbers(path, joint, joint)
        axis = joint.find("axis")
        if axis is not None and not any(map(float, axis.get("xyz").split())):
            where = f"{path}: joint {joint.get('name')!r}"
            raise FileFormatError(f"{where}: axis is [0.0, 0.0, 0.0]; expected a non-zero vector")


def _expect_children(path: Path, owner: Any, element: Any, tags: Sequence[str]) -> None:
    for tag in tags:
        if len(element.findall(tag)) != 1:
            where = f"{owner.tag} {owner.get('name')!r}"
            raise FileFormatError(
                f"{path}: {where} has {len(element.findall(tag))} <{tag}> elements; expected exactly one"
            )


def _check_numbers(path: Path, owner: Any, element: Any) -> None:
    """Check that the numbers of an element's children are present, finite, and of the right count."""
    for child in element:
        for attribute, (count, optional) in NUMBERS.get(child.tag, {}).items():
            text = child.get(attribute)
            if text is None and optional:
                continue
            try:
                # float() takes underscores, XML's decimals have none
                numbers = [float(word) for word in text.replace("_", "?").split()]
            except (AttributeError, ValueError):
                numbers = []
            if len(numbers) != count or not np.isfinite(numbers).all():
                where = f"{path}: {owner.tag} {owner.get('name')!r}: the attribute {attribute} of <{child.tag}>"
                found = "is missing" if text is None else f"is {text!r}"
                expected = f"{count} finite numbers, separated by spaces" if count > 1 else "1 finite number"
                hint = f". {XACRO}" if text is not None and "${" in text else ""
                raise FileFormatError(f"{where} {found}; expected {expected}{hint}")


def _joint(joint: Joint) -> AnyJoint:
    if joint.type in WITHOUT_AXIS:
        return WITHOUT_AXIS[joint.type]()
    return JOINTS[joint.type](axis=joint.axis)


def _passive(joint: Joint) -> PassiveForces | None:
    """Damping and friction of a joint."""
    if joint.dynamics is None or joint.type in WITHOUT_AXIS:
        return None
    damping, friction = joint.dynamics
    return PassiveForces(damping=damping, friction=friction)


def _limits(path: Path, joint: Joint) -> JointLimits | None:
    """Limits of a joint; missing ones are infinite, and a continuous joint has no limits of position."""
    given = joint.limit
    if given is None or joint.type in WITHOUT_AXIS or joint.type == "planar":
        return None
    lower, upper, velocity, effort = (
        np.inf if x is None or abs(x) >= UNLIMITED else x
        for x in (given.lower, given.upper, given.velocity, given.effort)
    )
    if joint.type == "continuous":
        lower = upper = np.inf
    lower = -np.inf if lower == np.inf else lower
    velocity, effort = velocity or np.inf, effort or np.inf  # many files have 0 for unknown limits
    if lower > upper or velocity < 0.0 or effort < 0.0:
        warnings.warn(
            f"{path}: joint {joint.name!r} has invalid limits, which are left out: lower {lower:g}, upper {upper:g}, "
            f"velocity {velocity:g}, effort {effort:g}; expected lower <= upper, and the others zero or more",
            stacklevel=4,
        )
        return None
    return JointLimits(lower=lower, upper=upper, velocity=velocity, effort=effort)


def _inertia(link: Link) -> Inertia | None:
    """Inertia of a link in its own frame."""
    if link.inertial is None:
        return None
    return Inertia(link.inertial.mass, inertia=link.inertial.inertia).moved(link.inertial.origin)


def _couplers(path: Path, robot: Robot) -> list[CouplerConstraint]:
    """Return a coupler for each joint that mimics another one; warn of mimics that a coupler cannot represent."""
    joints = {joint.name: joint for joint in robot.joints}
    couplers, ignored = [], []
    for joint in robot.joints:
        if joint.mimic is None or joint.type == "fixed":
            continue
        _refuse_cycle(path, joint, joints)
        other = joints[joint.mimic.joint]
        if {joint.type, other.type} <= OF_ONE_DOF and joint.mimic.multiplier:
            couplers.append(
                CouplerConstraint(joint.name, joint.name, other.name, joint.mimic.multiplier, joint.mimic.offset)
            )
        else:
            ignored.append(
                f"{joint.name!r} ({joint.type}) mimics {other.name!r} ({other.type}) with the multiplier "
                f"{joint.mimic.multiplier:g}"
            )
    if ignored:
        warnings.warn(
            f"{path}: rbchain ignores <mimic> of joints that then move independently: {', '.join(ignored)}; expected "
            "two joints with one degree of freedom each, and a multiplier other than 0",
            stacklevel=4,
        )
    return couplers


def _refuse_cycle(path: Path, joint: Joint, joints: dict[str, Joint]) -> None:
    """Raise a FileFormatError if a joint mimics itself by way of other joints."""
    followed = [joint.name]
    mimic = joint.mimic
    while mimic is not None and mimic.joint not in followed:
        followed.append(mimic.joint)
        mimic = joints[mimic.joint].mimic
    if mimic is not None:
        raise FileFormatError(
            f"{path}: the joints {followed[followed.index(mimic.joint) :]} mimic each other in a cycle; expected one "
            "of them to move independently"
        )
