"""URDF (the Unified Robot Description Format of ROS), read through yourdfpy; meshes are not needed."""

import io
import warnings

import numpy as np
import yourdfpy
from lxml import etree

from ..errors import FileFormatError
from ..model.builder import ModelBuilder
from ..model.inertia import Inertia
from ..model.joint import Fixed, Prismatic, Revolute
from ..model.pose import Pose

WITHOUT_MASS = ("visual", "collision", "material", "transmission", "gazebo", "sensor")
JOINTS = {"revolute": Revolute, "continuous": Revolute, "prismatic": Prismatic}


def load_urdf(path, nonphysical_inertia="warn"):
    """The model in a URDF file, its root link fixed to the world, gravity 9.81 m/s^2 along -z.

    Joint limits are not part of the dynamics. What would be, but is not computed (mimicry of another joint, damping,
    friction), is named in a warning. Raises FileFormatError, or ModelError if the mechanism cannot be.
    """
    robot = _parse(path)
    links = {link.name: link for link in robot.links}
    children, has_parent = {}, set()
    for joint in robot.joints:
        for end in (joint.parent, joint.child):
            if end not in links:
                raise FileFormatError(f"{path}: joint {joint.name!r} names link {end!r}, which is not there")
        if joint.child in has_parent:
            raise FileFormatError(f"{path}: link {joint.child!r} has two parents; expected a tree")
        has_parent.add(joint.child)
        children.setdefault(joint.parent, []).append(joint)
    roots = [name for name in links if name not in has_parent]
    if len(roots) != 1:
        raise FileFormatError(f"{path}: {len(roots)} links have no parent ({roots}); expected exactly one, the root")
    _warn_of_what_is_ignored(path, robot)
    builder = ModelBuilder(name=robot.name, nonphysical_inertia=nonphysical_inertia)
    builder.add_body(roots[0], joint=Fixed())
    waiting = children.get(roots[0], [])[::-1]
    while waiting:
        joint = waiting.pop()
        builder.add_body(
            joint.child,
            parent=joint.parent,
            joint=_joint(path, joint),
            placement=_pose(joint.origin),
            inertia=_inertia(links[joint.child]),
            joint_name=joint.name,
        )
        waiting.extend(children.get(joint.child, [])[::-1])
    return builder.build()


def _parse(path):
    """The file's elements, without document types: what they declare could expand without bound or reach elsewhere."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    try:
        tree = etree.parse(io.BytesIO(path.read_bytes()), parser)
    except etree.XMLSyntaxError as error:
        raise FileFormatError(f"{path}: not well-formed XML: {error}") from None
    if tree.docinfo.internalDTD is not None:
        raise FileFormatError(f"{path}: declares a document type (DOCTYPE); entities are not expanded, expected none")
    if tree.getroot().tag != "robot":
        raise FileFormatError(f"{path}: the root element is <{tree.getroot().tag}>; expected <robot>")
    robot = tree.getroot()
    robot.set("name", robot.get("name") or path.stem)
    etree.strip_elements(robot, *WITHOUT_MASS)
    try:
        return yourdfpy.URDF.load(io.BytesIO(etree.tostring(robot)), build_scene_graph=False, load_meshes=False).robot
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise FileFormatError(f"{path}: not a URDF: {type(error).__name__}: {error}") from error


def _joint(path, joint):
    if joint.type == "fixed":
        return Fixed()
    if joint.type not in JOINTS:
        raise FileFormatError(f"{path}: joint {joint.name!r} is {joint.type!r}; expected one of {[*JOINTS, 'fixed']}")
    return JOINTS[joint.type](axis=(1.0, 0.0, 0.0) if joint.axis is None else joint.axis)


def _pose(matrix):
    return Pose() if matrix is None else Pose(matrix[:3, 3], matrix[:3, :3])


def _inertia(link):
    """Mass properties of a link in its own frame."""
    inertial = link.inertial
    if inertial is None:
        return None
    tensor = np.zeros((3, 3)) if inertial.inertia is None else inertial.inertia
    return Inertia(inertial.mass or 0.0, inertia=tensor).moved(_pose(inertial.origin))


def _warn_of_what_is_ignored(path, robot):
    mimics = [joint.name for joint in robot.joints if joint.mimic is not None]
    if mimics:
        warnings.warn(f"{path}: these joints mimic others, but are computed as free ones: {mimics}", stacklevel=4)
    dissipative = [j.name for j in robot.joints if j.dynamics and (j.dynamics.damping or j.dynamics.friction)]
    if dissipative:
        warnings.warn(f"{path}: damping and friction of these joints are not computed: {dissipative}", stacklevel=4)
