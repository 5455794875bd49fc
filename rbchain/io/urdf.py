"""Reader for URDF, the Unified Robot Description Format of ROS. Mesh files are not read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import FileFormatError
from ..facade.builder import ModelBuilder
from ..facade.model import Model
from ..model.collision_shape import CollisionShape
from ..model.inertia import Inertia
from ..model.joint import AnyJoint, Fixed
from ..model.passive import PassiveForces
from ..model.validation import naming
from ..model.visual import Visual
from .base_joint import check_base, check_moves
from .couplers import couplers_of
from .inertia_of_shapes import inertias_of_links
from .notes import LEFT_OUT, Notes, listed
from .urdf_checks import apply_version, check_elements, note_likely_mistakes
from .urdf_elements import Joint, Link, Robot, robot_of
from .urdf_extensions import Extensions, combined, extensions_of
from .urdf_limits import limits_of
from .urdf_visuals import collisions_of, visuals_of
from .urdf_vocabulary import check_names
from .urdf_xacro import check_expressions, check_macros, expanded, remedy
from .xml_reading import label, xml_root
from .xml_writing import unused_name


def load_urdf(
    path: Path,
    base: AnyJoint | None = None,
    nonphysical_inertia: Literal["refuse", "warn"] = "warn",
    density: float | str | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Model:
    """Read a model from a URDF file, with a gravity of 9.81 m/s^2 along -z.

    The joint `base` connects the root link to the world; by default the link is fixed. Damping, friction and springs
    become passive forces of the joints. Limits are stored but not enforced, because URDF does not define the stiffness
    of stops. A joint that mimics another one becomes a CouplerConstraint with the name of the joint, and a loop joint
    becomes a constraint. With `arguments`, xacro expands the macros of the file first. With a `density`, moving bodies
    without mass get the inertia of their shapes. One warning lists all elements that the model omits, and likely
    mistakes.

    Raises FileFormatError if the file does not follow the format, and ModelError if the mechanism is invalid.
    """
    check_base(base)
    notes = Notes()
    file = _parse(path, None if arguments is None else expanded(path, arguments), notes)
    robot = file.robot
    check_moves(robot.name, base, (joint.type for joint in robot.joints))
    builder = ModelBuilder(name=robot.name, nonphysical_inertia=nonphysical_inertia)
    with notes.of_warnings():
        _add_bodies(builder, file, base, density, notes)
        for constraint in (*couplers_of(path, robot.joints, notes), *file.extensions.constraints):
            builder.add_constraint(constraint)
        model = builder.build()
    if model.bodies_without_inertia and density is None:
        notes.add(
            "rbchain.load(path, density=1000.0), or --density 1000 of a command, computes the inertias of moving bodies"
            " without mass from their shapes"
        )
    notes.warn(path, stacklevel=4)
    return model


class _File(NamedTuple):
    """The contents of a file: the name of the root link, and the joints whose parent is each link."""

    robot: Robot
    root: str
    children: dict[str, list[Joint]]
    visuals: dict[str, list[Visual]]
    collisions: dict[str, list[CollisionShape]]
    extensions: Extensions


def _add_bodies(
    builder: ModelBuilder, file: _File, base: AnyJoint | None, density: float | str | None, notes: Notes
) -> None:
    """Add the links, parents first, and the frames."""
    robot, root, children, visuals, collisions, extensions = file
    names = {joint.name for joint in robot.joints}
    inertias = {link.name: own for link in robot.links if (own := _inertia(link)) is not None}
    if density is not None:
        groups = _links_of_bodies(file, base is not None)
        inertias |= inertias_of_links(groups, inertias, (collisions, visuals), density, notes)
    own_name = unused_name(root, names)
    if base is not None and own_name != root:
        notes.add(f"the joint of the root link has the name {own_name!r}, because a joint of the file is {root!r}")
    builder.add_body(
        root,
        joint=Fixed() if base is None else base,
        inertia=inertias.get(root),
        joint_name=own_name,
        visuals=visuals.get(root, ()),
        collisions=collisions.get(root, ()),
    )
    limits = limits_of(robot, notes)
    waiting = children.get(root, [])[::-1]
    while waiting:
        joint = waiting.pop()
        rotor_inertia, gear_ratio = extensions.rotors.get(joint.name, (0.0, 1.0))
        builder.add_body(
            joint.child,
            parent=joint.parent,
            joint=joint.kind.joint(joint),
            placement=joint.origin,
            inertia=inertias.get(joint.child),
            joint_name=joint.name,
            rotor_inertia=rotor_inertia,
            gear_ratio=gear_ratio,
            passive=_passive(joint, extensions, notes),
            limits=limits.get(joint.name),
            visuals=visuals.get(joint.child, ()),
            collisions=collisions.get(joint.child, ()),
        )
        waiting.extend(children.get(joint.child, [])[::-1])
    for name, link, pose in extensions.frames:
        builder.add_body(name, parent=link, joint=Fixed(), placement=pose, joint_name=unused_name(name, names))
    points = [link.name for link in robot.links if not link.has_tensor]
    if points:
        notes.add(f"links {listed(points)} have no <inertia>, so their masses are points")


def _links_of_bodies(file: _File, moves: bool) -> list[list[str]]:
    """Return the links of each moving body, with the links that are fixed to it. `moves` is true if the root moves."""
    bodies: list[list[str]] = [[file.root]]
    waiting = [(file.root, bodies[0])]
    while waiting:
        link, body = waiting.pop()
        for joint in file.children.get(link, []):
            if joint.type == "fixed":
                body.append(joint.child)
                waiting.append((joint.child, body))
            else:
                bodies.append([joint.child])
                waiting.append((joint.child, bodies[-1]))
    return bodies if moves else bodies[1:]


def _tree(path: Path, robot: Robot) -> tuple[str, dict[str, list[Joint]]]:
    """Name of the root link, and the joints whose parent is each link."""
    links = {link.name for link in robot.links}
    if not links:
        raise FileFormatError(f"{path}: the file has no <link> elements; expected at least one")
    children: dict[str, list[Joint]] = {}
    parents: dict[str, str] = {}
    for joint in robot.joints:
        for end in (joint.parent, joint.child):
            if end not in links:
                raise FileFormatError(
                    f"{path}: joint {joint.name!r} refers to link {end!r}, which is not in the file; expected one of "
                    f"{excerpt(sorted(links))}{did_you_mean(str(end), links)}"
                )
        if joint.child in parents:
            raise FileFormatError(
                f"{path}: link {joint.child!r} has two parents, {parents[joint.child]!r} and {joint.parent!r}; "
                "expected a tree, in which each link is the child of at most one joint. Close a loop with <loop_joint>"
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


def _parse(path: Path, content: bytes | None, notes: Notes) -> _File:
    """Parse a file, or its content after the expansion of macros."""
    root = xml_root(path, content)
    if root.tag != "robot":
        hint = did_you_mean(label(root), ("robot", "mujoco"))
        raise FileFormatError(f"{path}: the root element is <{label(root)}>; expected <robot>{hint}")
    root.set("name", root.get("name") or path.stem)
    check_macros(path, root, notes)
    misspelled = check_names(root, notes)
    try:
        if root.find("link") is None and "xacro" in root.nsmap:
            raise FileFormatError(
                f"{path}: the file has no <link> elements; expected at least one. It declares xacro: if another file "
                f"calls its macros, expand that one. {remedy(path)}"
            )
        apply_version(root, notes)
        note_likely_mistakes(root, notes)
        check_elements(path, root)
        check_expressions(path, root)
        robot = robot_of(root)
        tree = _tree(path, robot)
        extensions = extensions_of(path, root, robot, notes)
    except FileFormatError as error:
        raise FileFormatError(f"{error}{misspelled}") from None
    return _File(robot, *tree, visuals_of(path, root, notes), collisions_of(path, root, notes), extensions)


def _passive(joint: Joint, extensions: Extensions, notes: Notes) -> PassiveForces | None:
    """Damping, friction and springs of a joint."""
    damping, friction = joint.dynamics.get("damping", 0.0), joint.dynamics.get("friction", 0.0)
    if joint.type == "floating" and (damping or friction):
        notes.put(LEFT_OUT, "<dynamics> of floating joints", repr(joint.name))
    if joint.type in ("fixed", "floating"):
        return None
    stiffness, rest = combined(extensions.springs.get(joint.name, []))
    with naming(f"body {joint.child!r}"):
        return PassiveForces(damping=damping, friction=friction, stiffness=stiffness, rest_position=rest)


def _inertia(link: Link) -> Inertia | None:
    """Inertia of a link in its own frame."""
    if link.inertial is None:
        return None
    with naming(f"body {link.name!r}"):
        return Inertia(link.inertial.mass, inertia=link.inertial.inertia).moved(link.inertial.origin)
