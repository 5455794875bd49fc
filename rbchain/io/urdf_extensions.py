"""Elements of other programs in URDF files: loops and frames of Drake and Isaac Sim, springs of Gazebo, rotors."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..common.misspelled import did_you_mean
from ..errors import FileFormatError
from ..model.constraints import BallConstraint, Constraint, HingeConstraint, WeldConstraint
from ..model.pose import Pose
from .names import Names
from .notes import LEFT_OUT, Notes
from .urdf_checks import check_numbers
from .urdf_elements import DRAKE, Robot, pose_of, vector
from .xml_reading import label

#: Settings of Gazebo that do not change the motion of the mechanism itself.
GAZEBO_WITHOUT_EFFECT = (
    *("canonicalBody", "collision", "visual", "material", "sensor", "laserRetro", "provideFeedback", "enable_wind"),
    *("disableFixedJointLumping", "preserveFixedJoint", "preserveWorldJoint", "implicitSpringDamper", "cfmDamping"),
    *("fdir1", "kd", "kp", "mu", "mu1", "mu2", "maxContacts", "maxVel", "minDepth", "selfCollide", "self_collide"),
    *("stopKd", "stopKp", "stopCfm", "stopErp", "fudgeFactor", "initial_joint_position", "initialJointPosition"),
)
#: Prefixes of sensors and controllers in files for old versions of Gazebo.
GAZEBO_PREFIXES = ("sensor:", "controller:", "interface:", "rendering:")
#: Values of other settings that do not change the motion.
GAZEBO_NEUTRAL = {
    **dict.fromkeys(("turnGravityOff", "kinematic", "static"), ("false", "0", "")),
    "gravity": ("true", "1", ""),
}
GAZEBO_ZERO = ("dampingFactor", "velocity_decay", "pose")
#: Attributes that may hold the numbers of a setting.
NUMBERS = ("value", "linear", "angular")
GAZEBO_SPRING = ("springStiffness", "springReference")


@dataclass
class Extensions:
    """Extensions of URDF in a file. `springs` are stiffness and rest position, `rotors` inertia and gear ratio."""

    springs: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    rotors: dict[str, tuple[float, float]] = field(default_factory=dict)
    frames: list[tuple[str, str, Pose]] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)


def extensions_of(path: Path, root: Any, robot: Robot, notes: Notes) -> Extensions:
    """Read the extensions of a file; note the extensions that the model omits."""
    reader = _Reader(path, robot, notes)
    for element in root:
        if label(element) in READERS:
            READERS[label(element)](reader, element)
    reader.add_springs_of_gazebo()
    for joint in robot.joints:
        if joint.dynamics.get("spring_stiffness"):
            reader.add_spring(joint.name, joint.dynamics["spring_stiffness"], joint.dynamics.get("spring_reference", 0))
    return reader.found


class _Reader:
    """Reads the elements of `READERS`."""

    def __init__(self, path: Path, robot: Robot, notes: Notes) -> None:
        self.path, self.notes, self.found = path, notes, Extensions()
        self._links = {link.name for link in robot.links}
        self._joints = {joint.name: joint for joint in robot.joints}
        self._springs: dict[Any, dict[str, float]] = {}
        #: Names of frames and constraints that are in use.
        self._frames, self._constraints = set(self._links), Names(joint.name for joint in robot.joints if joint.mimic)

    def add_spring(self, joint: str, stiffness: float, rest: float) -> None:
        """Add a spring at a joint with one degree of freedom."""
        if joint in self._joints and self._joints[joint].has_one_dof:
            self.found.springs.setdefault(joint, []).append((stiffness, rest))
        else:
            self._leave_out("springs that are not at a joint with one degree of freedom", f"joint {joint!r}")

    def read_loop_joint(self, element: Any) -> None:
        """Read a joint that closes a loop: <link1> and <link2>, or <link1> twice, and an axis in both."""
        ends = [child for child in element if label(child) in ("link1", "link2")]
        where, kind = f"{self.path}: loop_joint {element.get('name')!r}", element.get("type")
        if len(ends) != 2:
            raise FileFormatError(f"{where} has {len(ends)} elements <link1> and <link2>; expected two")
        check_numbers(self.path, element, element)
        (link_a, pose_a), (link_b, pose_b) = ((self._link(where, end), pose_of(end)) for end in ends)
        name = self._constraints.new(element.get("name") or f"{link_a}-{link_b}")
        points: dict[str, Any] = {"point_a": pose_a.translation, "point_b": pose_b.translation}
        if kind in ("spherical", "ball"):
            self.found.constraints.append(BallConstraint(name, link_a, link_b, **points))
        elif kind in ("revolute", "continuous"):
            axis = element.find("axis")
            axis = np.array([1.0, 0.0, 0.0]) if axis is None else vector(axis, "xyz", "1 0 0")
            axes: dict[str, Any] = {"axis_a": pose_a.rotation @ axis, "axis_b": pose_b.rotation @ axis}
            self.found.constraints.append(HingeConstraint(name, link_a, link_b, **points, **axes))
        elif kind == "fixed":
            self.found.constraints.append(WeldConstraint(name, link_a, link_b, pose_a=pose_a, pose_b=pose_b))
        else:
            self._leave_out(f"<loop_joint> of type {kind!r}", repr(name))

    def read_ball_constraint(self, element: Any) -> None:
        """Read a ball constraint of Drake."""
        prefix, where = f"{DRAKE}ball_constraint_", f"{self.path}: <{DRAKE}ball_constraint>"
        parts = {label(child).removeprefix(prefix): child for child in element}
        if not {"body_A", "body_B", "p_AP"} <= parts.keys():
            raise FileFormatError(f"{where} has {sorted(parts)}; expected {prefix}body_A, _body_B and _p_AP")
        one, other = (self._link(where, parts[key], "name") for key in ("body_A", "body_B"))
        point_a, point_b = (self._numbers(where, parts.get(key), 3) for key in ("p_AP", "p_BQ"))
        name = self._constraints.new(f"{one}-{other}")
        self.found.constraints.append(BallConstraint(name, one, other, point_a, point_b))

    def read_frame(self, element: Any) -> None:
        """Read a frame of Drake: its link and its pose are attributes."""
        check_numbers(self.path, element.getparent(), [element])
        self._add_frame(element, self._link(f"{self.path}: frame {element.get('name')!r}", element), pose_of(element))

    def read_fixed_frame(self, element: Any) -> None:
        """Read a frame of Isaac Sim: its link and its pose are elements."""
        where, parent = f"{self.path}: fixed_frame {element.get('name')!r}", element.find("parent")
        if parent is None:
            raise FileFormatError(f"{where} has no <parent>; expected <parent link=...>")
        check_numbers(self.path, element, element)
        self._add_frame(element, self._link(where, parent), pose_of(element.find("origin")))

    def read_force_element(self, element: Any) -> None:
        """Read a torsional spring of Drake."""
        for part in element:
            joint = part.find("joint")
            if label(part) == "torsional_spring" and joint is not None:
                where = f"{self.path}: force_element {element.get('name')!r}"
                stiffness, rest = (self._number(where, part, key) for key in ("stiffness", "rest_angle"))
                self.add_spring(joint.get("name"), stiffness, rest)
            else:
                self._leave_out(f"<{label(part)}> in <force_element>", repr(element.get("name")))

    def read_transmission(self, element: Any) -> None:
        """Read the inertia of a rotor, an extension of Drake."""
        numbers = {label(part).removeprefix(DRAKE): part for part in element.iter() if label(part).startswith(DRAKE)}
        joint = element.find("joint")
        if not numbers.keys() & {"rotor_inertia", "gear_ratio"} or joint is None:
            return
        where = f"{self.path}: transmission {element.get('name')!r}"
        name = joint.get("name")
        inertia, ratio = (
            self._number(where, numbers[key], "value") if key in numbers else default
            for key, default in (("rotor_inertia", 0.0), ("gear_ratio", 1.0))
        )
        if name in self._joints and self._joints[name].has_one_dof:
            self.found.rotors[name] = inertia, ratio
        elif inertia:
            self._leave_out("rotors that are not at a joint with one degree of freedom", f"joint {name!r}")

    def read_gazebo(self, element: Any) -> None:
        """Read springs of joints; note other settings that change the motion."""
        reference = element.get("reference")
        spring = self._springs.setdefault(reference, {})
        for part in element:
            name = label(part)
            text = (part.text or "").strip() or part.get("value", "")
            if name in GAZEBO_SPRING and not len(part):
                spring[name] = self._number(f"{self.path}: <{name}> in <gazebo>", part, "value", text)
            elif not _is_neutral(name, text, part):
                owner = part.get("filename") or part.get("name") or reference
                self._leave_out(f"<{name}> in <gazebo>", repr(owner) if owner else "")

    def add_springs_of_gazebo(self) -> None:
        """Add the springs of all <gazebo> elements: one of them may give the stiffness, and another the reference."""
        for joint, spring in self._springs.items():
            if spring.get("springStiffness"):
                self.add_spring(joint, spring["springStiffness"], spring.get("springReference", 0.0))

    def _add_frame(self, element: Any, link: str, pose: Pose) -> None:
        name = element.get("name")
        if not name or name in self._frames:
            self._leave_out("frames with the name of a link or another frame", repr(name))
            return
        self._frames.add(name)
        self.found.frames.append((name, link, pose))

    def _link(self, where: str, element: Any, attribute: str = "link") -> str:
        """Return the name of the link that an element refers to."""
        name = element.get(attribute)
        if name not in self._links:
            hint = did_you_mean(name or "", self._links)
            raise FileFormatError(f"{where} refers to link {name!r}; expected a link of the file{hint}")
        return name

    def _leave_out(self, what: str, owner: str) -> None:
        self.notes.put(LEFT_OUT, what, owner)

    def _number(self, where: str, element: Any, attribute: str, text: str | None = None) -> float:
        return float(self._numbers(f"{where}: {attribute}", element, 1, attribute, text)[0])

    @staticmethod
    def _numbers(where: str, element: Any, count: int, attribute: str = "value", text: str | None = None) -> np.ndarray:
        """Return the numbers in an attribute; zeros if the element or the attribute is missing."""
        given = text if text is not None or element is None else element.get(attribute)
        if given is None:
            return np.zeros(count)
        try:
            found = np.array([float(word) for word in given.split()])
        except ValueError:
            found = np.zeros(0)
        if found.size != count or not np.isfinite(found).all():
            raise FileFormatError(f"{where} is {given!r}; expected {count} finite number{'s' if count > 1 else ''}")
        return found


READERS = {
    "loop_joint": _Reader.read_loop_joint,
    f"{DRAKE}ball_constraint": _Reader.read_ball_constraint,
    "frame": _Reader.read_frame,
    "fixed_frame": _Reader.read_fixed_frame,
    "force_element": _Reader.read_force_element,
    "transmission": _Reader.read_transmission,
    "gazebo": _Reader.read_gazebo,
}


def _is_neutral(name: str, text: str, element: Any) -> bool:
    """Whether a setting of Gazebo does not change the motion."""
    if name in GAZEBO_WITHOUT_EFFECT or name.startswith(GAZEBO_PREFIXES) or name in GAZEBO_SPRING:
        return True
    if name in GAZEBO_ZERO:
        parts = [*element.iter("*")]  # such as <linear> and <angular>
        numbers = [part.text or "" for part in parts] + [part.get(key, "") for part in parts for key in NUMBERS]
        return not set("".join(numbers)) & set("123456789")
    return text.lower() in GAZEBO_NEUTRAL.get(name, ())


def combined(springs: list[tuple[float, float]]) -> tuple[float, float]:
    """Return stiffness and rest position of one spring that replaces several at a joint."""
    stiffness = sum(k for k, _ in springs)
    return stiffness, sum(k * rest for k, rest in springs) / stiffness if stiffness else 0.0
