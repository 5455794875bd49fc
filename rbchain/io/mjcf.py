"""Reader for MJCF files, which MuJoCo compiles (the `mjcf` extra)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..acting.input_values import inputs_of_drives
from ..errors import FileFormatError, ModelError
from ..facade.builder import ModelBuilder
from ..facade.model import Model
from ..model.inertia import Inertia
from ..model.joint import QUATERNION_JOINTS, AnyJoint, Composite, Fixed, Free, Prismatic, Revolute, Spherical
from ..model.keyframe import Keyframe
from ..model.limits import JointLimits
from ..model.pose import Pose
from .mjcf_actuators import Actuators
from .mjcf_collisions import collisions_of
from .mjcf_constraints import active_equalities, constraint_of
from .mjcf_differences import differences, refusals
from .mjcf_forces import Forces
from .mjcf_sensors import sensors_of
from .mjcf_source import UNLIMITED, Source, rotation
from .mjcf_states import state_from_mujoco, state_to_mujoco
from .mjcf_visuals import visuals_of
from .names import Names
from .notes import Notes, listed

__all__ = ["load_mjcf", "state_from_mujoco", "state_to_mujoco"]


def load_mjcf(path: Path, nonphysical_inertia: Literal["refuse", "warn"] = "warn") -> Model:
    """Read an MJCF file as MuJoCo compiles it.

    rbchain keeps joints, masses, springs, damping, dry friction, armature, gravity compensation, the fluid, ranges and
    keyframes. Actuators become drives, and their controls become inputs. Equality constraints between bodies or sites,
    and linear ones between joints, become constraints of the model; their solref and solimp are ignored. Geoms become
    visuals, except planes and height fields. Geoms that can collide become collision shapes for `Model.contacts`, and
    sites become frames. One warning lists everything else that has an effect in MuJoCo.

    The frame of a body is at the anchor of its joint, which in MuJoCo need not be the origin of the body. If a body has
    joints at several points, massless bodies connect them. Positions are relative to the pose in the file: `ref` of a
    joint is not added.

    Raises FileFormatError if a joint or a body has a force that rbchain cannot represent, and ModelError if the
    mechanism is invalid.
    """
    source = Source(path)
    forces = Forces(source)
    if not source.model.njnt:
        raise ModelError(
            f"model {path.stem!r} has no moving body, because the file has no joints; expected at least one. Add a "
            "<freejoint/> to a body that moves"
        )
    reasons = list(refusals(source, forces))
    if reasons:
        raise FileFormatError(f"{path}: rbchain cannot represent this file: {'; '.join(reasons)}")
    reader = _Reader(source, forces, path.stem, nonphysical_inertia)
    for body in range(1, source.model.nbody):
        reader.add_body(body)
    for site in range(source.model.nsite):
        reader.add_site(site)
    notes, actuators = Notes(), Actuators(source, reader.dofs)
    for drive in actuators.drives:
        reader.builder.add_drive(drive)
    sensors, no_sensors = sensors_of(source, forces, reader.frames, reader.dofs)
    equalities = reader.add_constraints()
    notes.add(*differences(source, forces, equalities, actuators, no_sensors), *reader.renamed())
    notes.add(*(f"MuJoCo warns: {text}" for text in source.warnings))
    with notes.of_warnings():
        model = reader.builder.build()
    notes.warn(path, stacklevel=4)
    added = {"keyframes": _keyframes(source, model, actuators), "sensors": sensors}
    return Model(model.description.replaced(added)) if any(added.values()) else model


def _keyframes(source: Source, model: Model, actuators: Actuators) -> dict[str, Keyframe]:
    """The keyframes of a file, in the coordinates of the model. Controls beyond their ranges are clipped."""
    engine, terms = source.model, inputs_of_drives(model.drives)
    names = Names(source.name("key", key) for key in range(engine.nkey))
    q, qd = state_from_mujoco(model, engine, engine.key_qpos, engine.key_qvel)
    found = {}
    for key in range(engine.nkey):
        controls = {name: engine.key_ctrl[key, at] for name, at in actuators.controls.items()}
        inputs = {name: float(np.clip(controls[name], term.lower, term.upper)) for name, term in terms.items()}
        found[source.name("key", key) or names.new(f"key{key}")] = Keyframe(q[key], qd[key], inputs)
    return found


class _Reader:
    """Adds the bodies of a compiled file to a `ModelBuilder`."""

    def __init__(
        self, source: Source, forces: Forces, stem: str, nonphysical_inertia: Literal["refuse", "warn"]
    ) -> None:
        self.source, self.forces = source, forces
        self.builder = ModelBuilder(
            name=source.model.names.split(b"\0", 1)[0].decode() or stem,
            gravity=forces.gravity,
            nonphysical_inertia=nonphysical_inertia,
            fluid_density=forces.fluid_density,
        )
        self._of_bodies = {source.name("body", body) for body in range(1, source.model.nbody)}
        #: New names of sites, and names of joints that become parts of composite joints.
        self._renamed: dict[str, str] = {}
        self._composites: dict[str, list[str]] = {}
        self._names = Names(self._of_bodies | {source.name("site", site) for site in range(source.model.nsite)})
        self._joint_names = Names({source.name("joint", joint) for joint in range(source.model.njnt)})
        #: Name in the model of each of MuJoCo's bodies, and origin of the model's frame in the frame of MuJoCo's body.
        self.frames: dict[int, tuple[str | None, np.ndarray]] = {0: (None, np.zeros(3))}
        #: Names of MuJoCo's hinges and slides that are joints of the model.
        self._joints: dict[int, str] = {}
        #: Names in the model of MuJoCo's joints, and their first degrees of freedom there; None if there is only one.
        self.dofs: dict[int, tuple[str, int | None]] = {}

    def add_body(self, body: int) -> None:
        """Add a body. If it has joints at several points, add a massless body for each point except the last first."""
        model, rows = self.source.model, _rows(self.source, body)
        name = self.source.name("body", body) or self._names.new(f"body{body}")
        parent, anchor = self.frames[model.body_parentid[body]]
        place, at = Pose(model.body_pos[body] - anchor, rotation(model.body_quat[body])), np.zeros(3)
        for count, joints in enumerate(rows[:-1], 1):
            massless, point = self._names.new(f"{name}_{count}"), _point(self.source, joints)
            self._add(massless, parent, joints, place @ Pose(point - at))
            parent, place, at = massless, Pose(), point
        point, turn = _point(self.source, rows[-1]), rotation(model.body_iquat[body])
        tensor = turn @ np.diag(model.body_inertia[body]) @ turn.T
        self._add(
            name,
            parent,
            rows[-1],
            place @ Pose(point - at),
            inertia=Inertia(model.body_mass[body], cg=model.body_ipos[body] - point, inertia=(tensor + tensor.T) / 2),
            immersion=self.forces.immersion(body, point),
            visuals=visuals_of(self.source, body, point),
            collisions=collisions_of(self.source, body, point),
        )
        self.frames[body] = name, point

    def _add(self, name: str, parent: str | None, joints: Sequence[int], placement: Pose, **of_body: Any) -> None:
        """Add a body to the builder; its joint consists of the given MuJoCo joints."""
        own_name = self.source.name("joint", joints[0]) if len(joints) == 1 else ""
        of_joint: dict[str, Any] = {}
        joint = _joint(self.source, joints)
        if joints:
            has_angle = joint.kind not in QUATERNION_JOINTS
            of_joint["rotor_inertia"] = self.forces.rotor_inertia(joints)
            of_joint["passive"] = self.forces.of_joints(joints, has_angle)
            of_joint["limits"] = _limits(self.source, joints) if has_angle else None
        joint_name = own_name or self._joint_names.new(name if name not in self._joint_names else f"{name}_joints")
        names = [name for name in (self.source.name("joint", j) for j in joints) if name]
        if len(joints) > 1 and names:
            self._composites[joint_name] = names
        if len(joints) == len(joint.dofs) == 1:
            self._joints[joints[0]] = joint_name
        has_one = len(joint.dofs) == 1
        self.dofs |= {number: (joint_name, None if has_one else dof) for dof, number in enumerate(joints)}
        self.builder.add_body(
            name,
            parent=parent,
            joint=joint,
            placement=placement,
            joint_name=joint_name,
            **of_joint,
            **of_body,
        )

    def add_site(self, site: int) -> None:
        """Add a site as a frame."""
        model, name = self.source.model, self.source.name("site", site)
        if not name or name in self._of_bodies:
            own_name = name
            name = self._names.new(f"{name}_site" if name else f"site{site}")
            if own_name:
                self._renamed[own_name] = name
        parent, anchor = self.frames[model.site_bodyid[site]]
        self.builder.add_body(
            name,
            parent=parent,
            joint=Fixed(),
            placement=Pose(model.site_pos[site] - anchor, rotation(model.site_quat[site])),
            joint_name=self._joint_names.new(name),
        )

    def renamed(self) -> list[str]:
        """Sentences on sites and joints that have other names in the model."""
        found = []
        if self._renamed:
            sites, frames = listed(list(self._renamed)), listed(list(self._renamed.values()))
            found.append(f"sites {sites} have the names of bodies, so their frames have the names {frames}")
        if self._composites:
            parts = ", ".join(f"{joint!r} ({', '.join(names)})" for joint, names in self._composites.items())
            found.append(f"joints of one body form the composite joints {parts}")
        return found

    def add_constraints(self) -> tuple[list[int], list[int]]:
        """Add the equality constraints; return the added ones, and the ones that rbchain cannot represent."""
        source, added, lacking = self.source, [], []
        names = Names({source.name("equality", i) for i in range(source.model.neq)})
        for i in active_equalities(source):
            name = source.name("equality", i) or names.new(f"{source.equality_type(i)}{i}")
            constraint = constraint_of(source, i, name, self.frames, self._joints)
            if constraint is None:
                lacking.append(i)
            else:
                self.builder.add_constraint(constraint)
                added.append(i)
        return added, lacking


def _rows(source: Source, body: int) -> list[list[int]]:
    """Group the joints of a body; each group becomes one joint of rbchain.

    The rotations of a group are about the same point, and a ball or free joint is a separate group.
    """
    rows: list[list[int]] = [[]]
    for joint in source.joints(body):
        row = rows[-1]
        kinds = {source.joint_type(j) for j in (*row, joint)}
        points = {tuple(source.model.jnt_pos[j]) for j in (*row, joint) if source.joint_type(j) != "slide"}
        if row and (kinds & {"ball", "free"} or len(points) > 1):
            rows.append([joint])
        else:
            row.append(joint)
    return rows


def _point(source: Source, joints: Sequence[int]) -> np.ndarray:
    """Anchor of a group of joints in MuJoCo's body frame: the anchor of a rotation, because slides may be anywhere."""
    if not joints or source.joint_type(joints[0]) == "free":
        return np.zeros(3)
    turning = [joint for joint in joints if source.joint_type(joint) != "slide"]
    return source.model.jnt_pos[(turning or joints)[0]]


def _joint(source: Source, joints: Sequence[int]) -> AnyJoint:
    """The joint of rbchain for a group of MuJoCo's joints."""
    kinds: dict[str, Callable[[int], AnyJoint]] = {
        "free": lambda j: Free(),
        "ball": lambda j: Spherical(),
        "slide": lambda j: Prismatic(source.model.jnt_axis[j]),
        "hinge": lambda j: Revolute(source.model.jnt_axis[j]),
    }
    made: list[Any] = [kinds[source.joint_type(joint)](joint) for joint in joints]
    return Fixed() if not made else made[0] if len(made) == 1 else Composite(made)


def _limits(source: Source, joints: Sequence[int]) -> JointLimits:
    """The ranges of positions and of actuator forces of hinges and slides."""
    model, which = source.model, list(joints)
    references = model.qpos0[model.jnt_qposadr[which], None]  # positions are relative to the pose in the file
    ranges = model.jnt_range[which]
    ranges[np.abs(ranges) >= UNLIMITED] *= np.inf  # MuJoCo does not reach such positions
    are_limited = model.jnt_limited[which, None] & (not source.disabled("limit", "constraint"))
    lower, upper = np.where(are_limited, ranges - references, (-np.inf, np.inf)).T
    efforts = np.where(model.jnt_actfrclimited[which], np.abs(model.jnt_actfrcrange[which]).max(1), np.inf)
    return JointLimits(lower=lower, upper=upper, effort=efforts)
