"""Writer for MJCF: bodies, joints, limits, springs, damping, visuals, sites, equality constraints and drives.

A warning lists the elements that MJCF cannot represent. The file is written without MuJoCo.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, assert_never

import numpy as np
from lxml import etree
from scipy.spatial.transform import Rotation

from ..errors import FileFormatError
from ..facade.model import Model
from ..model.constraint_fields import constraints_of
from ..model.constraints import (
    BallConstraint,
    Constraint,
    CouplerConstraint,
    DistanceConstraint,
    HingeConstraint,
    WeldConstraint,
)
from ..model.description import Description
from ..model.joint import QUATERNION_JOINTS
from ..model.limits import LIMITS
from ..model.passive import PASSIVE_FIELDS, PassiveForces
from ..model.pose import Pose, computed_pose
from ..model.visual import Visual
from .mjcf_source import MIN_VALUE, UNLIMITED
from .notes import listed
from .write_mjcf_drives import actuators_of, add_actuators
from .xml_writing import number_text, unused_name

TYPES = {"revolute": "hinge", "prismatic": "slide"}  # of degrees of freedom
QUATERNION_TYPES = {"free": "free", "spherical": "ball"}
WRITTEN_FIELDS = ("stiffness", "rest_position", "cubic_stiffness", "damping", "friction")  # of PassiveForces
UNWRITTEN_LIMITS = ("velocity", "acceleration", "deceleration", "jerk")
#: Factors of the sizes of visuals: MuJoCo has half lengths.
HALVES = {"box": (0.5, 0.5, 0.5), "cylinder": (1.0, 0.5), "capsule": (1.0, 0.5)}
#: Relative excess of a principal moment over the sum of the others that is round-off.
ROUND_OFF = 1e-12


def mjcf_of(model: Model) -> str:
    """Return the MJCF of a model without batch axes.

    Frames become sites. Each constraint between bodies has two separate sites. A HingeConstraint becomes two `connect`
    elements, whose points are on its axis. Numbers are written with all digits. Raises FileFormatError for a joint, an
    inertia or a name that MuJoCo does not support.
    """
    return _Writer(model).text()


class _Writer:
    """The elements of a file. `lost` collects everything that the file omits or changes."""

    def __init__(self, model: Model) -> None:
        self.model, self.description = model, model.description
        self.lost: list[str] = []
        #: Names of joints that lose their limits, by the kind of the limits.
        self.lost_limits: dict[str, list[str]] = {}
        self.light: list[str] = []
        _refuse_joints(self.description)
        self.root = etree.Element("mujoco", model=self.description.name)
        etree.SubElement(self.root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        etree.SubElement(self.root, "option", gravity=number_text(self.description.gravity))
        #: The element of each body; the last one is the element of the world.
        self.bodies: list[Any] = []
        self.joints, self.sites = set(self.description.joint_names), set(self.description.frames)
        kinds = zip(self.description.joint_names, self.description.joint_types, strict=True)
        joints = [name for name, kind in kinds if kind not in QUATERNION_JOINTS]
        self.actuators, self.lost_drives = actuators_of(self.description.drives, joints)
        #: MuJoCo's hinge or slide for each joint and degree of freedom in it.
        self.hinges: dict[tuple[str, int], str] = {}

    def text(self) -> str:
        """Write all elements, and warn about losses."""
        world = etree.SubElement(self.root, "worldbody")
        for i, parent in enumerate(self.description.parent):
            self._add_body(i, world if parent < 0 else self.bodies[parent])
        self.bodies.append(world)
        for name, frame in self.description.frames.items():
            self._add_site(frame.body, name, frame.pose)
            _add_geoms(self.bodies[frame.body], self.model.visuals.get(name, ()), frame.pose)
        self._add_constraints()
        self._add_drives()
        self._warn()
        etree.indent(self.root)
        return etree.tostring(self.root, encoding="unicode") + "\n"

    def _add_body(self, i: int, parent: Any) -> None:
        d, name = self.description, self.description.body_names[i]
        pose = _pose_attributes(computed_pose(d.placement_translation[i], d.placement_rotation[i]))
        element = etree.SubElement(parent, "body", name=name, **pose)
        self.bodies.append(element)
        self._add_joints(i, element)
        mass, moments, axes = self._inertia(i)
        etree.SubElement(
            element,
            "inertial",
            mass=repr(mass),
            diaginertia=number_text(moments),
            **_pose_attributes(computed_pose(d.cg[i], axes)),
        )
        _add_geoms(element, self.model.visuals.get(name, ()), Pose())

    def _inertia(self, i: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Return mass, principal moments and principal axes. MuJoCo requires a positive mass and positive moments."""
        d, name = self.description, self.description.body_names[i]
        moments, axes = np.linalg.eigh(d.inertia[i])
        axes[:, 2] *= np.linalg.det(axes)  # right-handed
        limit = moments[0] + moments[1]
        if moments[0] < -ROUND_OFF * moments[2] or moments[2] - limit > ROUND_OFF * moments[2]:
            raise FileFormatError(
                f"body {name!r}: the principal moments of its inertia are {moments.tolist()}; expected moments that "
                "are not negative, with none greater than the sum of the other two, because MuJoCo requires it. "
                "Correct the inertia, or save the model to a .toml file"
            )
        if d.mass[i] < MIN_VALUE or moments[0] < MIN_VALUE:
            self.light.append(name)
        moments = np.maximum(moments, MIN_VALUE)
        moments[2] = min(moments[2], moments[0] + moments[1])
        return max(float(d.mass[i]), MIN_VALUE), moments, axes

    def _add_joints(self, i: int, element: Any) -> None:
        """Write the joint of a body: one element, or one for each degree of freedom."""
        d, name = self.description, self.description.joint_names[i]
        first = int(self.model.velocity_index[i])
        dofs = range(first, first + int(d.dof_counts[i]))
        if d.joint_types[i] in QUATERNION_JOINTS:
            joint = etree.SubElement(element, "joint", name=name, type=QUATERNION_TYPES[d.joint_types[i]])
            self._add_forces_of_all_dofs(name, joint, dofs)
            return
        for count, dof in enumerate(dofs, 1):
            joint = etree.SubElement(
                element,
                "joint",
                name=name if len(dofs) == 1 else unused_name(f"{name}_{count}", self.joints),
                type=TYPES[d.dof_types[dof]],
                axis=number_text(d.axis[dof]),
            )
            self.hinges[name, count - 1] = joint.get("name")
            self._add_forces(joint, dof)
            self._add_limits(name, joint, dof, count - 1)

    def _add_forces(self, joint: Any, dof: int) -> None:
        d = self.description
        if d.stiffness[dof] or d.cubic_stiffness[dof]:
            cubic = (0.0, d.cubic_stiffness[dof]) if d.cubic_stiffness[dof] else ()
            joint.set("stiffness", number_text((d.stiffness[dof], *cubic)))
            joint.set("springref", number_text(d.rest_position[dof : dof + 1]))
        numbers = {"damping": d.damping[dof], "frictionloss": d.friction[dof], "armature": self.model.armature[dof]}
        joint.attrib.update({key: repr(float(x)) for key, x in numbers.items() if x})

    def _add_forces_of_all_dofs(self, name: str, joint: Any, dofs: range) -> None:
        """Write the values of a ball or a free joint, which has one value for all degrees of freedom."""
        d, which = self.description, slice(dofs.start, dofs.stop)
        given = {"damping": d.damping[which], "frictionloss": d.friction[which], "armature": self.model.armature[which]}
        for key, values in given.items():
            only_damping = joint.get("type") == "free" and key != "damping"  # others are in other axes in MuJoCo
            if values.any() and (only_damping or (values != values[0]).any()):
                self.lost.append(f"{key} {values.tolist()} of joint {name!r}")
            elif values.any():
                joint.set(key, repr(float(values[0])))
        if np.isfinite(d.limits[which]).any():
            self.lost.append(f"limits of joint {name!r}")

    def _add_limits(self, name: str, joint: Any, dof: int, place: int) -> None:
        """Write the limits of a degree of freedom, the dof `place` of its joint."""
        own = [actuator for actuator in self.actuators if (actuator.joint, actuator.dof) == (name, place)]
        lower, upper, _, effort, *_ = limits = self.description.limits[dof]
        if lower == upper:
            self._lose("position limits", name)  # MuJoCo ignores or refuses such a range
        elif np.isfinite([lower, upper]).any():
            # a range has two ends: the largest position stands for no limit
            joint.set("range", number_text(np.clip([lower, upper], -UNLIMITED, UNLIMITED)))
        if own and sum(actuator.limit for actuator in own) > effort:
            self._lose("effort limit", name)  # it does not act on drives, but MuJoCo's range does
        elif 0.0 < effort < np.inf:
            joint.set("actuatorfrcrange", number_text((-effort, effort)))
        elif not effort:
            self._lose("effort limit 0", name)
        for column, key in enumerate(LIMITS):
            if key in UNWRITTEN_LIMITS and np.isfinite(limits[column]):
                self._lose(f"{key} limit", name)

    def _lose(self, limit: str, joint: str) -> None:
        """Note a limit that the file omits."""
        self.lost_limits.setdefault(limit, []).append(joint)

    def _add_site(self, body: int, name: str, pose: Pose) -> str:
        etree.SubElement(self.bodies[body], "site", name=name, **_pose_attributes(pose))
        return name

    def _sites(self, constraint: Any, pose_a: Pose, pose_b: Pose, name: str = "") -> dict[str, str]:
        """Add the sites of a constraint; return them as attributes."""
        found = {}
        for number, side, pose in ((1, "a", pose_a), (2, "b", pose_b)):
            frame = getattr(constraint, f"frame_{side}")
            index = -1 if frame is None else self.description.body_names.index(frame)
            site = unused_name(f"{name or constraint.name}_{side}", self.sites)
            found[f"site{number}"] = self._add_site(index, site, pose)
        return found

    def _add_constraints(self) -> None:
        constraints = constraints_of(self.description)
        if not constraints:
            return
        tendons = etree.Element("tendon")
        equality, names = etree.Element("equality"), {constraint.name for constraint in constraints}
        compliant = [place.name for place in self.description.constraints if place.is_compliant]
        if compliant:
            self.lost.append(f"compliances of constraints {', '.join(map(repr, compliant))}")
        for constraint in constraints:
            self._add_constraint(constraint, equality, tendons, names)
        self.root.extend([element for element in (tendons, equality) if len(element)])

    def _add_constraint(self, constraint: Constraint, equality: Any, tendons: Any, names: set[str]) -> None:
        name = constraint.name
        match constraint:
            case CouplerConstraint(joint=joint, other=other):
                polynomial = number_text((constraint.offset, constraint.ratio, 0.0, 0.0, 0.0))
                etree.SubElement(equality, "joint", name=name, joint1=joint, joint2=other, polycoef=polynomial)
            case WeldConstraint():
                sites = self._sites(constraint, constraint.pose_a, constraint.pose_b)
                etree.SubElement(equality, "weld", name=name, **sites)
            case DistanceConstraint():
                sites = self._sites(constraint, Pose(constraint.point_a), Pose(constraint.point_b))
                tendon = etree.SubElement(tendons, "spatial", name=name)
                for site in sites.values():
                    etree.SubElement(tendon, "site", site=site)
                longer = constraint.length - self._distance_at_zero(constraint)
                etree.SubElement(
                    equality, "tendon", name=name, tendon1=name, polycoef=number_text((longer, 0.0, 0.0, 0.0, 0.0))
                )
            case BallConstraint():
                sites = self._sites(constraint, Pose(constraint.point_a), Pose(constraint.point_b))
                etree.SubElement(equality, "connect", name=name, **sites)
            case HingeConstraint():
                second = unused_name(f"{name}_axis", names)
                for own, distance in ((name, 0.0), (second, 1.0)):  # in m, along the axis
                    pose_a = Pose(constraint.point_a + distance * constraint.axis_a)
                    pose_b = Pose(constraint.point_b + distance * constraint.axis_b)
                    sites = self._sites(constraint, pose_a, pose_b, own)
                    etree.SubElement(equality, "connect", name=own, **sites)
            case _:
                assert_never(constraint)

    def _add_drives(self) -> None:
        """Write drives as actuators, and note the ones and the values that the file omits."""
        if self.actuators:
            add_actuators(self.root, self.actuators, self.hinges)
        self.lost += [f"drives ({', '.join(self.lost_drives)})"] if self.lost_drives else []
        terms = [actuator.term for actuator in self.actuators if actuator.term is not None]
        values = [term.name for term in terms if (term.value != np.clip(0.0, term.lower, term.upper)).any()]
        self.lost += [f"the values of inputs {', '.join(map(repr, values))}"] if values else []

    def _distance_at_zero(self, constraint: DistanceConstraint) -> float:
        """Distance of the points at the zero configuration. MuJoCo measures the length of a tendon relative to it."""
        points = [
            (self._place_at_zero(body) @ Pose(point)).translation
            for body, point in (
                (constraint.frame_a, constraint.point_a),
                (constraint.frame_b, constraint.point_b),
            )
        ]
        return float(np.linalg.norm(points[1] - points[0]))

    def _place_at_zero(self, body: str | None) -> Pose:
        """Pose of a body in the world at the zero configuration, in which no joint moves its body."""
        d, place = self.description, Pose()
        i = -1 if body is None else d.body_names.index(body)
        while i >= 0:
            place = computed_pose(d.placement_translation[i], d.placement_rotation[i]) @ place
            i = int(d.parent[i])
        return place

    def _warn(self) -> None:
        model, d, lost = self.model, self.description, self.lost
        lost += [
            key
            for key in PASSIVE_FIELDS
            if key not in WRITTEN_FIELDS and (getattr(d, key) != getattr(PassiveForces, key)).any()
        ]
        lost += [_of_joints(limit, names) for limit, names in self.lost_limits.items()]
        meshes = any(visual.shape == "mesh" for visuals in d.visuals.values() for visual in visuals)
        lost += ["visuals that are meshes"] if meshes else []
        lost += ["collision shapes"] if d.collisions else []
        lost += [name for name in ("sensors", "keyframes") if getattr(d, name)]
        lost += ["the nominal model, which controllers use"] if d.nominal is not None else []
        lost += ["water and immersions"] if model.in_water else []
        if lost:
            warnings.warn(
                f"model {model.name!r}: MJCF cannot represent, and the file omits: {', '.join(lost)}", stacklevel=5
            )
        if self.light:
            warnings.warn(
                f"model {model.name!r}: the file has {MIN_VALUE:g} kg and kg m^2 instead of smaller masses and moments "
                f"of inertia of bodies {', '.join(map(repr, self.light))}, because MuJoCo requires it",
                stacklevel=5,
            )


def _of_joints(limit: str, names: Sequence[str]) -> str:
    return f"the {limit} of joint{'s' if len(names) > 1 else ''} {listed(names)}"


def _refuse_joints(description: Description) -> None:
    """Raise FileFormatError for joints and names that MuJoCo does not support."""
    for i, (joint, kind) in enumerate(zip(description.joint_names, description.joint_types, strict=True)):
        if kind == "free" and description.parent[i] >= 0:
            raise FileFormatError(
                f"joint {joint!r} is a free joint on body {description.body_names[description.parent[i]]!r}; expected "
                "a free joint on the world, because MJCF has no other. Save the model to a .toml file"
            )
    if "screw" in description.dof_types:
        joint = description.joint_names[_body_of_dof(description, description.dof_types.index("screw"))]
        raise FileFormatError(
            f"joint {joint!r} is or contains a screw joint, which MJCF does not have; expected revolute, prismatic, "
            "spherical, free, planar, universal, composite or fixed joints. Save the model to a .toml file"
        )
    if "world" in description.body_names:
        raise FileFormatError(
            "a body has the name 'world', which is the world in MJCF; expected another name. Save the model to a .toml "
            "file"
        )


def _body_of_dof(description: Description, dof: int) -> int:
    return int(np.searchsorted(np.cumsum(description.dof_counts), dof, side="right"))


def _pose_attributes(pose: Pose) -> dict[str, str]:
    x, y, z, w = Rotation.from_matrix(pose.rotation).as_quat()
    return {"pos": number_text(pose.translation), "quat": number_text((w, x, y, z))}


def _add_geoms(element: Any, visuals: Sequence[Visual], frame: Pose) -> None:
    """Write visuals in a frame of a body as geoms without mass and contact."""
    for visual in visuals:
        if visual.shape == "mesh":
            continue
        geom = etree.SubElement(
            element,
            "geom",
            type=visual.shape,
            size=number_text(np.multiply(visual.size, HALVES.get(visual.shape, 1.0))),
            contype="0",
            conaffinity="0",
            **_pose_attributes(frame @ visual.pose),
        )
        if visual.color is not None:
            geom.set("rgba", number_text(visual.color))
