"""Elements of a URDF file as Python objects.

The caller has checked that names, numbers and required elements are there. Values of the file that rbchain does not
use are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..model.joint import AnyJoint, Fixed, Free, Planar, Prismatic, Revolute, Screw, Spherical, Universal
from ..model.pose import Pose
from .xml_reading import attributes_of, label

DRAKE = "drake:"
#: Elements for joints. Drake's has the types that URDF does not have.
JOINT_TAGS = ("joint", f"{DRAKE}joint")


@dataclass(frozen=True)
class Inertial:
    """Mass properties; the tensor is zero if the file has none."""

    mass: float
    inertia: np.ndarray
    origin: Pose


@dataclass(frozen=True)
class Link:
    name: str
    inertial: Inertial | None
    has_tensor: bool


@dataclass(frozen=True)
class Mimic:
    """The position of a joint is multiplier times the position of another joint, plus the offset."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Joint:
    """A joint. `dynamics` and `limit` have the numbers that the file names."""

    name: str
    kind: Kind
    type: str
    parent: str
    child: str
    origin: Pose
    axis: np.ndarray
    pitch: float
    dynamics: Mapping[str, float]
    limit: Mapping[str, float]
    mimic: Mimic | None

    @property
    def has_one_dof(self) -> bool:
        """Whether the position of the joint is one value."""
        return self.type in ("revolute", "continuous", "prismatic", "screw")


class Kind(NamedTuple):
    """A type of joints: its class in rbchain, and whether it has an axis."""

    joint: Callable[[Joint], AnyJoint]
    has_axis: bool = False


KINDS = {
    "revolute": Kind(lambda joint: Revolute(joint.axis), True),
    "continuous": Kind(lambda joint: Revolute(joint.axis), True),
    "prismatic": Kind(lambda joint: Prismatic(joint.axis), True),
    "planar": Kind(lambda joint: Planar(joint.axis), True),
    "fixed": Kind(lambda joint: Fixed()),
    "floating": Kind(lambda joint: Free()),
    "spherical": Kind(lambda joint: Spherical()),  # of PyBullet
}
DRAKE_KINDS = {
    "ball": Kind(lambda joint: Spherical()),
    "planar": Kind(lambda joint: Planar((0.0, 0.0, 1.0))),
    "screw": Kind(lambda joint: Screw(joint.axis, joint.pitch), True),
    "universal": Kind(lambda joint: Universal((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))),
}


@dataclass(frozen=True)
class Robot:
    name: str
    links: list[Link]
    joints: list[Joint]


def robot_of(root: Any) -> Robot:
    """Read the <robot> element."""
    links = [_link(link) for link in root.findall("link")]
    return Robot(root.get("name"), links, [_joint(joint) for joint in root if label(joint) in JOINT_TAGS])


def kind_of(joint: Any) -> dict[str, Kind]:
    """Return the types that a joint element can have."""
    return DRAKE_KINDS if label(joint).startswith(DRAKE) else KINDS


def pose_of(element: Any) -> Pose:
    """Pose in the attributes of an element such as <origin>, or the identity if there is none.

    `rpy` are rotations about the fixed axes x, y and z, in this order.
    """
    if element is None:
        return Pose()
    place = vector(element, "xyz", "0 0 0")
    if element.get("quat_xyzw") is not None:
        quaternion = vector(element, "quat_xyzw", "")
        return Pose(place, quaternion / np.linalg.norm(quaternion))
    return Pose(place, rotation_of(vector(element, "rpy", "0 0 0")))


def rotation_of(rpy: np.ndarray) -> np.ndarray:
    """Return the matrix (3, 3) of rotations about the fixed axes x, y and z, in this order, by angles (3,), rad."""
    (ci, cj, ck), (si, sj, sk) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cj * ck, sj * (si * ck) - ci * sk, sj * (ci * ck) + si * sk],
            [cj * sk, sj * (si * sk) + ci * ck, sj * (ci * sk) - si * ck],
            [-sj, cj * si, cj * ci],
        ]
    )


def vector(element: Any, attribute: str, default: str) -> np.ndarray:
    """Return the numbers in an attribute."""
    return np.array([float(word) for word in element.get(attribute, default).split()])


def _link(element: Any) -> Link:
    inertial = element.find("inertial")
    if inertial is None:
        return Link(element.get("name"), None, True)
    tensor = inertial.find("inertia")
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    xx, xy, xz, yy, yz, zz = (0.0 if tensor is None else float(tensor.get(name)) for name in names)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    mass = float(inertial.find("mass").get("value"))
    return Link(element.get("name"), Inertial(mass, inertia, pose_of(inertial.find("origin"))), tensor is not None)


def _joint(element: Any) -> Joint:
    axis, mimic = element.find("axis"), element.find("mimic")
    pitch = next((child for child in element if label(child) == f"{DRAKE}screw_thread_pitch"), None)
    return Joint(
        name=element.get("name"),
        kind=kind_of(element)[element.get("type")],
        type=element.get("type"),
        parent=element.find("parent").get("link"),
        child=element.find("child").get("link"),
        origin=pose_of(element.find("origin")),
        axis=np.array([1.0, 0.0, 0.0]) if axis is None else vector(axis, "xyz", "1 0 0"),
        pitch=0.0 if pitch is None else float(pitch.get("value")) / (2.0 * np.pi),  # m per turn in the file
        dynamics=_numbers(element.find("dynamics"), ("damping", "friction", "spring_stiffness", "spring_reference")),
        limit=_limit(element.find("limit")),
        mimic=None
        if mimic is None
        else Mimic(mimic.get("joint"), float(mimic.get("multiplier", "1")), float(mimic.get("offset", "0"))),
    )


def _limit(element: Any) -> dict[str, float]:
    names = ("lower", "upper", "velocity", "effort", "acceleration", "deceleration", "jerk")
    of_drake = _numbers(element, (f"{DRAKE}acceleration", f"{DRAKE}jerk"))
    return {name.removeprefix(DRAKE): x for name, x in of_drake.items()} | _numbers(element, names)


def _numbers(element: Any, names: tuple[str, ...]) -> dict[str, float]:
    given = {} if element is None else attributes_of(element)
    return {name: float(given[name]) for name in names if name in given}
