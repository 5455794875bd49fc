"""Reader for SDF files (SDFormat), the robot descriptions of Gazebo and Drake."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..errors import FileFormatError, ModelError
from ..facade.builder import ModelBuilder
from ..facade.model import Model
from ..model.constraints import BallConstraint, Constraint, HingeConstraint, WeldConstraint
from ..model.joint import AnyJoint, Fixed
from ..model.pose import Pose
from .base_joint import check_base, check_moves
from .couplers import check_mimicked, couplers_of
from .names import Names
from .notes import LEFT_OUT, Notes, listed
from .sdf_elements import ROUND_OFF, Joint, collisions_of, inertia_of, joint_of, visuals_of
from .sdf_scopes import File, Scope, numbers, root_of
from .sdf_vocabulary import check_vocabulary

GRAVITY = (0.0, 0.0, -9.81)  # m/s^2; of a file without a world
GRAVITY_OF_WORLDS = (0.0, 0.0, -9.8)  # m/s^2; SDFormat's default
#: Joints whose link frame can lie anywhere on the axis of the joint, or must lie at the joint.
ON_AXIS, AT_JOINT = ("revolute", "continuous", "screw"), ("universal", "revolute2", "ball")


def load_sdf(
    path: Path, base: AnyJoint | None = None, nonphysical_inertia: Literal["refuse", "warn"] = "warn"
) -> Model:
    """Read a model from an SDF file (versions 1.4 to 1.12), or the only moving model of its world.

    If no joint connects a link to the world, `base` is the joint between the world and the root link; by default the
    link is fixed, and the warning lists it. Damping, friction and springs become passive forces of the joints. Limits
    are stored but not enforced. A joint that mimics another one becomes a CouplerConstraint. Of several joints with the
    same child link, the first one is a joint of the model, and the others become constraints. Names in nested models
    have the prefix `model::`. Frames become frames of the model.

    The axes of a body are the axes of its link, and its origin is the origin of the link. If this origin does not lie
    on the axis of the joint, the origin of the body is the origin of the joint instead. A frame `link_origin` then has
    the pose of the link.

    Raises FileFormatError if the file does not follow the format or has a joint that rbchain does not support, and
    ModelError if the mechanism is invalid.
    """
    check_base(base)
    notes = Notes()
    root, version = root_of(path)
    misspelled = check_vocabulary(root, notes)
    try:
        model, gravity = _moving_model(File(path, version, (), notes), root)
        builder = ModelBuilder(name=model.element.get("name"), gravity=gravity, nonphysical_inertia=nonphysical_inertia)
        with notes.of_warnings():
            _Reader(path, model, builder, notes).add(base)
            built = builder.build()
    except FileFormatError as error:
        raise FileFormatError(f"{error}{misspelled}") from None
    notes.warn(path, stacklevel=4)
    return built


def _moving_model(file: File, root: Any) -> tuple[Scope, np.ndarray]:
    """Return the only moving model of a file, and the gravity."""
    path, worlds = file.path, root.findall("world")
    if len(worlds) > 1 or (worlds and root.find("model") is not None):
        raise FileFormatError(
            f"{path}: the file has {len(worlds)} <world> elements and other models; remove all except one"
        )
    world = Scope(file, worlds[0] if worlds else root)
    if world.element.find("joint") is not None:
        raise FileFormatError(f"{path}: the world has joints; expected all joints in one model")
    moving = {name: scope for name, scope in world.nested.items() if not scope.is_static}
    if world.nested and not moving:
        raise ModelError(f"no body moves: the models {listed([*world.nested])} are static; expected one that moves")
    missing = f", and its included files {listed(world.missing)} do not exist" if world.missing else ""
    if not moving:
        raise FileFormatError(f"{path}: the file has no <model>{missing}; expected one model that moves")
    if len(moving) != 1:
        raise FileFormatError(
            f"{path}: the file has {len(moving)} moving models ({listed([*moving])}); expected exactly one. Write each "
            "model to a file, and join them with ModelBuilder.add_model"
        )
    ((name, model),) = moving.items()
    for uri in world.missing:
        file.notes.put(LEFT_OUT, "included files that do not exist", repr(uri))
    others = [other for other in world.nested if other != name]
    if others:
        file.notes.put(LEFT_OUT, "static models", listed(others))
    model.place(world.pose(name))
    for inner in model.all_scopes():
        if inner.is_static:
            raise FileFormatError(
                f"{path}: model {inner.prefix.removesuffix('::')!r} is static, but it is part of a model that moves; "
                "expected no <static> in it. Connect its link to the world by a joint"
            )
    default = GRAVITY_OF_WORLDS if worlds else GRAVITY
    return model, numbers(path, worlds[0].find("gravity") if worlds else None, default)


class _Reader:
    """Adds the links, joints and frames of a model to a `ModelBuilder`."""

    def __init__(self, path: Path, model: Scope, builder: ModelBuilder, notes: Notes) -> None:
        self.path, self.name, self.builder, self.notes = path, model.element.get("name"), builder, notes
        self._scopes = list(model.all_scopes())
        self._links = {name: (scope, link) for scope in self._scopes for name, link in scope.of_tag("link")}
        if not self._links:
            raise FileFormatError(f"{path}: model {self.name!r} has no links; expected at least one")
        self._joints = [joint_of(scope, joint, notes) for scope in self._scopes for _, joint in scope.of_tag("joint")]
        self._collisions, self._visuals = collisions_of(self._scopes, notes), visuals_of(self._scopes, notes)
        self._joint_names = Names(joint.name for joint in self._joints)
        self._names = Names([*self._links, *(name for scope in self._scopes for name, _ in scope.of_tag("frame"))])
        #: Poses of the bodies in the world at zero positions; None is the world.
        self._bodies: dict[str | None, Pose] = {None: Pose()}
        self._moved: list[str] = []

    def add(self, base: AnyJoint | None) -> None:
        """Add all bodies, frames and constraints. `base` is the joint between the world and the root links."""
        roots, tree, closing = self._tree()
        self._check_base(base, roots, any(joint.parent is None for joint in tree))
        check_moves(self.name, base, (joint.type for joint in tree))
        for root in roots:
            self._add_body(root, None, Fixed() if base is None else base, self._pose(root), self._joint_names.new(root))
        for joint in tree:
            frame = self._frame(joint)
            self._add_body(
                joint.child,
                joint.parent,
                joint.joint(frame.rotation),
                frame,
                joint.name,
                rotor_inertia=joint.rotor_inertia,
                gear_ratio=joint.gear_ratio,
                passive=joint.passive,
                limits=joint.limits,
            )
        for scope in self._scopes:
            for name, frame in scope.of_tag("frame"):
                own = frame.get("name")
                self._add_frame(name, scope.link(own), scope.outer @ scope.pose(own))
        self._add_origins()
        names = [joint.name for joint in tree]
        for joint in tree:
            if joint.mimic is not None:
                check_mimicked(self.path, joint.name, joint.mimic.joint, names)
        for constraint in (*couplers_of(self.path, tree, self.notes), *map(self._closure, closing)):
            self.builder.add_constraint(constraint)

    def _tree(self) -> tuple[list[str], list[Joint], list[Joint]]:
        """Return the links without parent joint, the joints of the tree, parents first, and the joints of loops."""
        children = {joint.child for joint in self._joints}
        roots = [link for link in self._links if link not in children]
        reached, tree, waiting = {None, *roots}, list[Joint](), list(self._joints)
        while joint := next((x for x in waiting if x.parent in reached and x.child not in reached), None):
            reached.add(joint.child)
            tree.append(joint)
            waiting.remove(joint)
        others = [link for link in self._links if link not in reached]
        if others:
            raise FileFormatError(
                f"{self.path}: the joints of links {listed(others)} form a cycle; expected joints that connect them to "
                "the world or to a link without parent joint"
            )
        return roots, tree, waiting

    def _check_base(self, base: AnyJoint | None, roots: list[str], has_world_joint: bool) -> None:
        if base is not None and not roots:
            raise ModelError(
                f"base is {base!r}, but the joints of the file connect all links to the world; remove base"
            )
        if base is None and len(roots) + has_world_joint > 1:
            raise FileFormatError(
                f"{self.path}: no joint connects links {listed(roots)} to the world or to each other. To let each of "
                "them float, pass base=rbchain.Free() to load, or --free-base to a command. To fix them, pass "
                "base=rbchain.Fixed()"
            )
        if base is None and roots:
            self.notes.add(
                f"no joint connects link {roots[0]!r} to the world, so it would float in Gazebo; it is fixed to "
                "the world. Pass base=rbchain.Free() to load, or --free-base to a command, to let it float. Pass "
                "base=rbchain.Fixed() to omit this warning"
            )

    def _pose(self, link: str) -> Pose:
        """Return the pose of a link in the world at zero positions."""
        scope, element = self._links[link]
        return scope.outer @ scope.pose(element.get("name"))

    def _frame(self, joint: Joint) -> Pose:
        """Return the pose of the body of a joint in the world at zero positions.

        It is the pose of the link, unless the joint would move the origin of the link relative to its own.
        """
        link = self._pose(joint.child)
        arm = joint.pose.translation - link.translation
        if joint.type in ON_AXIS:
            axis = joint.axes[0] / np.linalg.norm(joint.axes[0])
            arm = arm - (arm @ axis) * axis
        elif joint.type not in AT_JOINT:
            return link
        size = max(np.abs(joint.pose.translation).max(), np.abs(link.translation).max())
        return link if np.abs(arm).max() <= ROUND_OFF * size else Pose(joint.pose.translation, link.rotation)

    def _add_body(
        self, name: str, parent: str | None, joint: AnyJoint, frame: Pose, joint_name: str, **of_joint: Any
    ) -> None:
        """Add a link; `frame` is the pose of its body in the world at zero positions."""
        scope, element = self._links[name]
        inertia = inertia_of(scope, name, element, self._collisions.get(name, ()), self.notes)
        own = self._pose(name)
        to_body = Pose(frame.rotation.T @ (own.translation - frame.translation))
        if to_body.translation.any():
            self._moved.append(name)
        self.builder.add_body(
            name,
            parent=parent,
            joint=joint,
            placement=self._bodies[parent].inverse() @ frame,
            inertia=inertia.moved(to_body),
            joint_name=joint_name,
            visuals=[replace(shape, pose=to_body @ shape.pose) for shape in self._visuals.get(name, ())],
            collisions=[replace(shape, pose=to_body @ shape.pose) for shape in self._collisions.get(name, ())],
            **of_joint,
        )
        self._bodies[name] = frame

    def _add_frame(self, name: str, link: str | None, pose: Pose) -> None:
        """Add a frame that is fixed to a link; `pose` is its pose in the world at zero positions."""
        placement = self._bodies[link].inverse() @ pose
        self.builder.add_body(
            name, parent=link, joint=Fixed(), placement=placement, joint_name=self._joint_names.new(name)
        )

    def _add_origins(self) -> None:
        """Add frames at the origins of links whose bodies have other origins."""
        names = {link: self._names.new(f"{link}_origin") for link in self._moved}
        for link, name in names.items():
            self._add_frame(name, link, self._pose(link))
        if names:
            self.notes.add(
                f"the bodies of links {listed([*names])} have their origins at their joints, and the frames "
                f"{listed([*names.values()])} have the poses of the links"
            )

    def _closure(self, joint: Joint) -> Constraint:
        """Return the constraint of a joint that closes a loop."""
        pose_a, pose_b = (self._bodies[link].inverse() @ joint.pose for link in (joint.parent, joint.child))
        ends, points = (joint.name, joint.parent, joint.child), (pose_a.translation, pose_b.translation)
        passive = joint.passive
        if passive is not None and any(np.any(x) for x in (passive.damping, passive.friction, passive.stiffness)):
            self.notes.put(LEFT_OUT, "<dynamics> of joints that close loops", repr(joint.name))
        if joint.mimic is not None:
            self.notes.put(LEFT_OUT, "<mimic> of joints that close loops", repr(joint.name))
        if joint.rotor_inertia:
            self.notes.put(LEFT_OUT, "rotors of joints that close loops", repr(joint.name))
        if joint.type == "ball":
            return BallConstraint(*ends, *points)
        if joint.type in ("revolute", "continuous"):
            axis_a, axis_b = (joint.axes[0] @ self._bodies[link].rotation for link in (joint.parent, joint.child))
            return HingeConstraint(*ends, *points, axis_a=axis_a, axis_b=axis_b)
        if joint.type == "fixed":
            return WeldConstraint(*ends, pose_a=pose_a, pose_b=pose_b)
        raise FileFormatError(
            f"{self.path}: joint {joint.name!r} of type {joint.type!r} closes a loop; expected a fixed, revolute, "
            "continuous or ball joint. Move it before the other joints of the loop, so that one of them closes it"
        )
