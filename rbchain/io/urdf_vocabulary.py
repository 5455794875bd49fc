"""Names of the elements and attributes of URDF files: which ones rbchain reads, and notes about all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..common.misspelled import did_you_mean
from .notes import LEFT_OUT, Notes
from .xml_reading import attributes_of, label


class Names(NamedTuple):
    """Names in an element: its attributes, children that occur at most once, and other children.

    `without_effect` are children that do not change the motion, and `left_out` are children that do.
    """

    attributes: tuple[str, ...] = ()
    single: tuple[str, ...] = ()
    several: tuple[str, ...] = ()
    without_effect: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


POSE = ("xyz", "rpy", "quat_xyzw")
VALUE = Names(("value",))
LINK = Names(("link",))
JOINT = Names(
    ("name", "type"),
    ("parent", "child", "origin", "axis", "dynamics", "limit", "mimic", "drake:screw_thread_pitch"),
    without_effect=("safety_controller", "calibration", "material", "hardwareInterface"),
    left_out=("joint_properties", "drake:mimic", "drake:controller_gains"),
)
#: By the name of the element. Children without an entry are not searched.
VOCABULARY = {
    "robot": Names(
        ("name", "version"),
        several=(
            *("link", "joint", "drake:joint", "loop_joint", "frame", "fixed_frame", "force_element"),
            *("drake:ball_constraint", "transmission", "gazebo"),
        ),
        without_effect=("material", "sensor", "ros2_control", "drake:collision_filter_group"),
        left_out=("deformable", "mujoco", "drake:linear_spring_damper", "drake:linear_bushing_rpy"),
    ),
    "link": Names(
        ("name",),
        ("inertial",),
        ("contact",),
        # a mass outside <inertial> is noted elsewhere
        without_effect=(
            *("visual", "collision", "material", "sensor", "self_filter", "collision_checking"),
            *("mass", "inertia"),
        ),
    ),
    "inertial": Names((), ("origin", "mass", "inertia")),
    "origin": Names(POSE),
    "mass": VALUE,
    "inertia": Names(("ixx", "ixy", "ixz", "iyy", "iyz", "izz")),
    "contact": Names(
        (),
        without_effect=(
            *("lateral_friction", "rolling_friction", "spinning_friction", "restitution", "stiffness", "damping"),
            *("contact_cfm", "contact_erp", "friction_anchor"),
        ),
        left_out=("inertia_scaling",),
    ),
    "joint": JOINT,
    "drake:joint": JOINT,
    "parent": LINK,
    "child": LINK,
    "axis": Names(("xyz",)),
    "dynamics": Names(("damping", "friction", "spring_stiffness", "spring_reference")),
    "limit": Names(
        (
            *("lower", "upper", "velocity", "effort", "acceleration", "deceleration", "jerk", "drake:acceleration"),
            "drake:jerk",
        )
    ),
    "mimic": Names(("joint", "multiplier", "offset")),
    "drake:screw_thread_pitch": VALUE,
    "loop_joint": Names(("name", "type"), ("axis", "link2"), ("link1",), ("limit", "dynamics")),
    "link1": Names(("link", *POSE)),
    "link2": Names(("link", *POSE)),
    "frame": Names(("name", "link", *POSE)),
    "fixed_frame": Names(("name",), ("parent", "origin")),
}
UNKNOWN = "unknown names, which are ignored"


def check_names(robot: Any, notes: Notes, vocabulary: Mapping[str, Names] = VOCABULARY) -> str:
    """Note elements and attributes that are unknown, repeated, or missing in the model.

    Returns a text about misspelled names, for errors that they may cause.
    """
    misspelled: list[str] = []

    def unknown(what: str, name: str, owner: str, names: tuple[str, ...]) -> None:
        hint = _hint(name, names)
        notes.put(UNKNOWN, f"{what}: {hint}" if hint else what, owner)
        misspelled.extend([f"{what}: {hint}"] if hint else [])

    waiting = [(robot, "")]
    while waiting:
        element, owner = waiting.pop()
        tag = label(element)
        names = vocabulary[tag]
        owner = owner_of(element) or owner
        for name in attributes_of(element):
            if name not in names.attributes:
                unknown(f"attribute {name!r} of <{tag}>", name, owner, names.attributes)
        children = [(label(child), child) for child in element]
        _note_repeated(owner, [name for name, _ in children], names, notes)
        known = (*names.single, *names.several)
        for name, child in children:
            if name in known:
                waiting += [(child, owner)] if name in vocabulary else []
            elif name in names.left_out:
                notes.put(LEFT_OUT, f"<{name}>", owner_of(child) or owner)
            elif name not in names.without_effect and not name.startswith("xacro:"):
                all_names = (*known, *names.without_effect, *names.left_out)
                unknown(f"<{name}> in <{tag}>", name, owner_of(child) or owner, all_names)
    return f". The file contains misspelled names: {', '.join(dict.fromkeys(misspelled))}" if misspelled else ""


def _hint(name: str, known: tuple[str, ...]) -> str:
    """Return a suggestion for a misspelled name; an empty text if no name is similar."""
    hint = did_you_mean(name, known) or did_you_mean(name.lower(), known)
    exchanged = [f"; did you mean {other}?" for other in known if sorted(other) == sorted(name.lower())]
    return (hint or "".join(exchanged[:1])).removeprefix("; ")


def _note_repeated(owner: str, found: list[str], names: Names, notes: Notes) -> None:
    for name in names.single:
        if found.count(name) > 1:
            notes.add(f"{owner} has {found.count(name)} <{name}> elements, of which the first one is used")


def owner_of(element: Any) -> str:
    """Text for an element with a name, such as "joint 'elbow'"; an empty text for others and for the robot."""
    name, tag = element.get("name"), label(element).removeprefix("drake:")
    return f"{tag} {name!r}" if name and tag != "robot" else ""
