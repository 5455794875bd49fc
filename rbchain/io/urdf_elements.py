"""Elements of a URDF file as Python objects.

The caller has checked that names, numbers and required elements are there. Values of the file that rbchain does not
use are not read.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.pose import Pose


@dataclass(frozen=True)
class Inertial:
    mass: float
    inertia: np.ndarray
    origin: Pose


@dataclass(frozen=True)
class Link:
    name: str
    inertial: Inertial | None


@dataclass(frozen=True)
class Limit:
    """Limits of a joint; None if the file does not name one."""

    lower: float | None
    upper: float | None
    velocity: float | None
    effort: float | None


@dataclass(frozen=True)
class Mimic:
    """The position of a joint is multiplier times that of another joint, plus the offset."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Joint:
    """A joint; damping and friction are None if the file has no <dynamics>."""

    name: str
    type: str
    parent: str
    child: str
    origin: Pose
    axis: np.ndarray
    dynamics: tuple[float, float] | None
    limit: Limit | None
    mimic: Mimic | None


@dataclass(frozen=True)
class Robot:
    name: str
    links: list[Link]
    joints: list[Joint]


def robot_of(root: Any) -> Robot:
    """Read the <robot> element."""
    links = [Link(link.get("name"), _inertial(link.find("inertial"))) for link in root.findall("link")]
    return Robot(root.get("name"), links, [_joint(joint) for joint in root.findall("joint")])


def pose_of(origin: Any) -> Pose:
    """Pose of an <origin> element, or the identity if there is none.

    `rpy` are rotations about the fixed axes x, y and z, in this order.
    """
    if origin is None:
        return Pose()
    (ci, cj, ck), (si, sj, sk) = np.cos(rpy := _vector(origin, "rpy", "0 0 0")), np.sin(rpy)
    rotation = [
        [cj * ck, sj * (si * ck) - ci * sk, sj * (ci * ck) + si * sk],
        [cj * sk, sj * (si * sk) + ci * ck, sj * (ci * sk) - si * ck],
        [-sj, cj * si, cj * ci],
    ]
    return Pose(_vector(origin, "xyz", "0 0 0"), np.array(rotation))


def _vector(element: Any, attribute: str, default: str) -> np.ndarray:
    return np.array([float(word) for word in element.get(attribute, default).split()])


def _inertial(element: Any) -> Inertial | None:
    if element is None:
        return None
    tensor = element.find("inertia")
    xx, xy, xz, yy, yz, zz = (float(tensor.get(name)) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Inertial(float(element.find("mass").get("value")), inertia, pose_of(element.find("origin")))


def _joint(element: Any) -> Joint:
    axis, dynamics, limit, mimic = (element.find(tag) for tag in ("axis", "dynamics", "limit", "mimic"))
    return Joint(
        name=element.get("name"),
        type=element.get("type"),
        parent=element.find("parent").get("link"),
        child=element.find("child").get("link"),
        origin=pose_of(element.find("origin")),
        axis=np.array([1.0, 0.0, 0.0]) if axis is None else _vector(axis, "xyz", "1 0 0"),
        dynamics=None
        if dynamics is None
        else (_number(dynamics, "damping") or 0.0, _number(dynamics, "friction") or 0.0),
        limit=None if limit is None else Limit(*(_number(limit, n) for n in ("lower", "upper", "velocity", "effort"))),
        mimic=None
        if mimic is None
        else Mimic(mimic.get("joint"), float(mimic.get("multiplier", "1")), float(mimic.get("offset", "0"))),
    )


def _number(element: Any, attribute: str) -> float | None:
    text = element.get(attribute)
    return None if text is None else float(text)
