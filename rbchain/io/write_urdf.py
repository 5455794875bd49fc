"""Writer for URDF: links, visuals, collision shapes, joints, limits, damping, friction and couplers.

A warning lists the elements that URDF cannot represent.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from lxml import etree

from ..errors import FileFormatError
from ..facade.model import Model
from ..model.collision_shape import CollisionShape
from ..model.constraint_fields import constraints_of
from ..model.constraints import CouplerConstraint
from ..model.description import Description, Frame
from ..model.limits import LIMITS
from ..model.passive import PASSIVE_FIELDS, PassiveForces
from ..model.visual import Visual
from .xml_writing import number_text, unused_name

TYPES = {"revolute": "continuous", "prismatic": "prismatic", "planar": "planar", "free": "floating"}
WRITTEN_FIELDS = ("damping", "friction")  # of PassiveForces
ROOT = "world"
# Stands for a missing limit, because URDF requires a number.
UNLIMITED = 1e9
SHAPES = ("box", "cylinder", "sphere", "capsule", "mesh")  # of visuals
#: Limits that need version 1.2 of URDF.
OF_VERSION_1_2 = ("acceleration", "deceleration", "jerk")


def urdf_of(model: Model) -> str:
    """Return the URDF of a model without batch axes. Its root is a massless link that represents the world.

    Numbers are written with all digits: positions, axes and tensors are read again exactly, and rotations, which URDF
    stores as angles, up to round-off. Raises FileFormatError for joints that URDF does not have.
    """
    description = model.description
    unknown = sorted({kind for kind in description.joint_types if kind not in TYPES})
    if unknown:
        raise FileFormatError(
            f"model {description.name!r} has {', '.join(unknown)} joints, which URDF does not have; expected "
            f"{', '.join(TYPES)} or fixed joints. Save the model to a .toml file"
        )
    frames = dict(description.frames)
    root = _root(description.body_names, frames)
    robot = etree.Element("robot", name=description.name, **_version(model))
    _add_shapes(etree.SubElement(robot, "link", name=root), model, root)
    for i, name in enumerate(description.body_names):
        link = etree.SubElement(robot, "link", name=name)
        if description.mass[i] or description.inertia[i].any():
            _add_inertia(link, description.mass[i], description.cg[i], description.inertia[i])
        _add_shapes(link, model, name)
        _add_joint(robot, description, i, model.velocity_index[i], root)
    joints = set(description.joint_names)
    for name, frame in frames.items():
        _add_shapes(etree.SubElement(robot, "link", name=name), model, name)
        joint = etree.SubElement(robot, "joint", name=unused_name(f"{name}_fixed", joints), type="fixed")
        parent = root if frame.body < 0 else description.body_names[frame.body]
        etree.SubElement(joint, "parent", link=parent)
        etree.SubElement(joint, "child", link=name)
        _add_origin(joint, frame.pose.translation, frame.pose.rotation)
    others = _add_mimics(robot, description)
    _warn_of_losses(model, others)
    etree.indent(robot)
    return etree.tostring(robot, encoding="unicode", xml_declaration=False) + "\n"


def _version(model: Model) -> dict[str, str]:
    """Return the attribute for the version of URDF, if the model needs a later one than 1.0."""
    columns = [LIMITS.index(name) for name in OF_VERSION_1_2]
    if np.isfinite(model.description.limits[:, columns]).any():
        return {"version": "1.2"}
    shapes = {shape.shape for of in (model.visuals, model.collisions) for own in of.values() for shape in own}
    return {"version": "1.1"} if "capsule" in shapes else {}


def _root(body_names: Sequence[str], frames: dict[str, Frame]) -> str:
    """Name of the root link: a frame that coincides with the world, which is removed from `frames`, or a new name."""
    for name, frame in frames.items():
        if frame.body < 0 and not frame.pose.translation.any() and (frame.pose.rotation == np.eye(3)).all():
            del frames[name]
            return name
    taken = {*body_names, *frames}
    return next(name for name in (ROOT, *(f"{ROOT}_{i}" for i in range(len(taken) + 1))) if name not in taken)


def _add_origin(element: Any, translation: np.ndarray, rotation: np.ndarray) -> None:
    etree.SubElement(element, "origin", xyz=number_text(translation), rpy=number_text(_angles(rotation)))


def _angles(rotation: np.ndarray) -> tuple[float, float, float]:
    """Return roll, pitch and yaw of a rotation Rz(yaw) Ry(pitch) Rx(roll).

    At a pitch close to 90 degrees, the yaw is dominated by round-off. Therefore roll and pitch are computed from the
    rotation that remains after this yaw is removed, so that all three angles together give the rotation up to
    round-off.
    """
    yaw = np.arctan2(rotation[1, 0], rotation[0, 0])
    s, c = np.sin(yaw), np.cos(yaw)
    (along, _, _), (_, cosine, sine), (down, _, _) = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) @ rotation
    return np.arctan2(-sine, cosine), np.arctan2(-down, along), yaw


def _add_inertia(link: Any, mass: float, cg: np.ndarray, inertia: np.ndarray) -> None:
    inertial = etree.SubElement(link, "inertial")
    etree.SubElement(inertial, "origin", xyz=number_text(cg), rpy="0 0 0")
    etree.SubElement(inertial, "mass", value=repr(float(mass)))
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    numbers = map(float, inertia[np.triu_indices(3)])
    etree.SubElement(inertial, "inertia", {name: repr(x) for name, x in zip(names, numbers, strict=True)})


def _add_joint(robot: Any, description: Description, i: int, dof: int, root: str) -> None:
    kind, parent = description.joint_types[i], description.parent[i]
    limits = description.limits[dof]
    limited = kind == "prismatic" or (kind == "revolute" and np.isfinite(limits[:2]).any())
    type_name = "revolute" if limited and kind == "revolute" else TYPES[kind]
    joint = etree.SubElement(robot, "joint", name=description.joint_names[i], type=type_name)
    etree.SubElement(joint, "parent", link=root if parent < 0 else description.body_names[parent])
    etree.SubElement(joint, "child", link=description.body_names[i])
    _add_origin(joint, description.placement_translation[i], description.placement_rotation[i])
    if kind == "free":
        return
    etree.SubElement(joint, "axis", xyz=number_text(description.axis[dof + 2 if kind == "planar" else dof]))
    if description.damping[dof] or description.friction[dof]:
        numbers = {key: repr(float(getattr(description, key)[dof])) for key in ("damping", "friction")}
        etree.SubElement(joint, "dynamics", numbers)
    if limited or (kind == "revolute" and np.isfinite(limits).any()):
        numbers = np.nan_to_num(limits, posinf=UNLIMITED, neginf=-UNLIMITED).tolist()
        written = dict(zip(LIMITS, map(repr, numbers), strict=True))
        skipped = set() if limited else {"lower", "upper"}  # the position of a continuous joint is unlimited
        skipped |= {name for name in OF_VERSION_1_2 if limits[LIMITS.index(name)] == np.inf}
        if "acceleration" not in skipped:
            skipped.discard("deceleration")  # by default, it is equal to the acceleration
        etree.SubElement(joint, "limit", {name: text for name, text in written.items() if name not in skipped})


def _add_mimics(robot: Any, description: Description) -> list[str]:
    """Write couplers as <mimic>; return the names of the constraints that URDF cannot represent.

    A joint has at most one <mimic>, and joints do not mimic each other in a cycle.
    """
    elements = {joint.get("name"): joint for joint in robot.iter("joint")}
    mimicked: dict[str, str] = {}
    others = []
    for constraint in constraints_of(description):
        if not isinstance(constraint, CouplerConstraint) or constraint.joint in mimicked:
            others.append(constraint.name)
            continue
        end = constraint.other
        while end in mimicked:
            end = mimicked[end]
        if end == constraint.joint:
            others.append(constraint.name)
            continue
        mimicked[constraint.joint] = constraint.other
        etree.SubElement(
            elements[constraint.joint],
            "mimic",
            joint=constraint.other,
            multiplier=repr(constraint.ratio),
            offset=repr(constraint.offset),
        )
    return others


def _add_shapes(link: Any, model: Model, name: str) -> None:
    """Add the visuals and the collision shapes of a body or a frame to its link."""
    for visual in model.visuals.get(name, ()):
        if visual.shape in SHAPES:
            element = _shape_in(link, "visual", visual)
            if visual.color is not None:
                material = etree.SubElement(element, "material", name="-".join(f"{x:.3g}" for x in visual.color))
                etree.SubElement(material, "color", rgba=number_text(visual.color))
    for collision in model.collisions.get(name, ()):
        if collision.shape in SHAPES:
            _shape_in(link, "collision", collision)


def _shape_in(link: Any, tag: str, shape: Visual | CollisionShape) -> Any:
    element = etree.SubElement(link, tag)
    _add_origin(element, shape.pose.translation, shape.pose.rotation)
    geometry = etree.SubElement(etree.SubElement(element, "geometry"), shape.shape)
    if shape.shape == "mesh":
        geometry.attrib.update({"filename": shape.file, "scale": number_text(shape.size)})
    elif shape.shape == "box":
        geometry.set("size", number_text(shape.size))
    else:
        for name, x in zip(("radius", "length"), shape.size, strict=False):
            geometry.set(name, repr(x))
    return element


def _is_lost(model: Model, key: str) -> bool:
    """Whether the file omits values of this field: it has one value per joint, and none for a free joint."""
    values, description = getattr(model, key), model.description
    of_joints = np.split(values, np.cumsum(description.dof_counts)[:-1])
    return any(
        x.any() if kind == "free" else (x != x[0]).any()
        for kind, x in zip(description.joint_types, of_joints, strict=True)
    )


def _warn_of_losses(model: Model, constraints: Sequence[str]) -> None:
    """Warn about everything that the file omits, including these constraints."""
    description = model.description
    lost = [
        key
        for key in PASSIVE_FIELDS
        if key not in WRITTEN_FIELDS and (getattr(description, key) != getattr(PassiveForces, key)).any()
    ]
    lost += [
        f"{key} of free joints and differences of {key} within planar joints"
        for key in WRITTEN_FIELDS
        if _is_lost(model, key)
    ]
    of_single = np.repeat(np.isin(description.joint_types, ("revolute", "prismatic")), description.dof_counts)
    if np.isfinite(description.limits[~of_single]).any():
        lost.append("limits of joints other than revolute and prismatic")
    if (description.limits[:, 2:] == 0.0).any():
        lost.append("limits of velocity, effort, acceleration and jerk that are zero")
    others = {visual.shape for visuals in description.visuals.values() for visual in visuals} - set(SHAPES)
    lost += [f"visuals that are {' or '.join(sorted(others))}"] if others else []
    collisions = [shape for own in description.collisions.values() for shape in own]
    unknown = {shape.shape for shape in collisions} - set(SHAPES)
    lost += [f"collision shapes that are {' or '.join(sorted(unknown))}"] if unknown else []
    no_ground = any(not shape.touches_ground for shape in collisions)
    lost += ["that some collision shapes do not touch the ground"] if no_ground else []
    lost += [f"constraints {', '.join(map(repr, constraints))}"] if constraints else []
    lost += [name for name in ("drives", "sensors", "keyframes") if getattr(description, name)]
    lost += ["the nominal model, which controllers use"] if description.nominal is not None else []
    lost += ["rotor_inertia"] if description.rotor_inertia.any() else []
    lost += ["water and immersions"] if model.in_water else []
    lost += ["gravity other than 9.81 m/s^2 along -z"] if (description.gravity != [0.0, 0.0, -9.81]).any() else []
    if lost:
        warnings.warn(
            f"model {model.name!r}: URDF cannot represent, and the file omits: {', '.join(lost)}", stacklevel=4
        )
