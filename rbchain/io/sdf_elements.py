"""Joints, inertias and shapes of an SDF file as Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..common.misspelled import did_you_mean
from ..errors import FileFormatError
from ..model.collision_shape import CollisionShape
from ..model.inertia import Inertia
from ..model.joint import AnyJoint, Fixed, Prismatic, Revolute, Screw, Spherical, Universal
from ..model.limits import JointLimits
from ..model.passive import PassiveForces
from ..model.pose import Pose
from ..model.validation import naming
from ..model.visual import Visual
from .inertia_of_shapes import inertia_of_shape
from .notes import LEFT_OUT, Notes
from .sdf_scopes import MODEL, TRUE, Scope, number, numbers, reference_of, text_of
from .urdf_elements import Mimic
from .urdf_visuals import file_of, shapes_of
from .write_urdf import UNLIMITED

ROUND_OFF = 16 * np.finfo(float).eps
INCOMPLETE = "links without mass or inertia, which have SDFormat's defaults of 1 kg and 1 kg m^2"
DENSITY = 1000.0  # kg/m^3; of links with automatic inertia
AXES_OF_MODEL = (1, 4)  # the version in which axes have the axes of the model by default
SIZES = {
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "sphere": ("radius",),
    "capsule": ("radius", "length"),
    "ellipsoid": ("radii",),
}


class Kind(NamedTuple):
    """A type of joints: makes the joint from its axes and its pitch; the number of the axes."""

    joint: Callable[[np.ndarray, float], AnyJoint]
    n_axes: int


KINDS = {
    "fixed": Kind(lambda axes, pitch: Fixed(), 0),
    "revolute": Kind(lambda axes, pitch: Revolute(axes[0]), 1),
    "continuous": Kind(lambda axes, pitch: Revolute(axes[0]), 1),
    "prismatic": Kind(lambda axes, pitch: Prismatic(axes[0]), 1),
    "screw": Kind(lambda axes, pitch: Screw(axes[0], pitch), 1),
    "universal": Kind(lambda axes, pitch: Universal(axes[0], axes[1]), 2),
    "revolute2": Kind(lambda axes, pitch: Universal(axes[0], axes[1]), 2),
    "ball": Kind(lambda axes, pitch: Spherical(), 0),
}


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint. It connects two links; `parent` is None for the world.

    `pose` and `axes` (axes, 3) are its pose and the directions of its axes in the world at zero positions.
    """

    name: str
    type: str
    parent: str | None
    child: str
    pose: Pose
    axes: np.ndarray
    pitch: float
    passive: PassiveForces | None
    limits: JointLimits | None
    mimic: Mimic | None
    rotor_inertia: float
    gear_ratio: float

    @property
    def has_one_dof(self) -> bool:
        """Whether the position of the joint is one value."""
        return KINDS[self.type].n_axes == 1

    def joint(self, rotation: np.ndarray) -> AnyJoint:
        """Return the joint of rbchain in a frame with this rotation in the world."""
        axes = self.axes @ rotation
        axes[np.abs(axes) <= ROUND_OFF * np.abs(axes).max(initial=0.0)] = 0.0  # rotations that cancel each other
        return KINDS[self.type].joint(axes, self.pitch)


def joint_of(scope: Scope, element: Any, notes: Notes) -> Joint:
    """Read a <joint> element."""
    name, kind = scope.prefix + element.get("name"), element.get("type") or ""
    where = f"{scope.path}: joint {name!r}"
    if kind not in KINDS:
        raise FileFormatError(f"{where}: its type is {kind!r}; expected one of {[*KINDS]}{did_you_mean(kind, KINDS)}")
    ends = {tag: text_of(element, tag) for tag in ("parent", "child")}
    for tag, end in ends.items():
        if not end:
            raise FileFormatError(f"{where} has no <{tag}>; expected the name of a link or frame")
    child = scope.link(ends["child"])
    if child is None:
        raise FileFormatError(f"{where}: its child is the world; expected a link. Exchange its <parent> and <child>")
    pose = scope.pose_of(element)
    axes = [axis for tag in ("axis", "axis2") if (axis := element.find(tag)) is not None]
    count = KINDS[kind].n_axes
    if len(axes) < count:
        raise FileFormatError(f"{where} has {len(axes)} of the elements <axis> and <axis2>; expected {count}")
    used = axes[: 1 if kind == "ball" else count]
    with naming(f"joint {name!r}"):
        return Joint(
            name=name,
            type=kind,
            parent=scope.link(ends["parent"]),
            child=child,
            pose=scope.outer @ pose,
            axes=np.array([_direction(scope, where, axis, pose) for axis in axes[:count]]).reshape(-1, 3),
            pitch=_pitch(scope, where, element) if kind == "screw" else 0.0,
            passive=_passive(scope, used, kind),
            limits=_limits(scope, used, name, kind, notes) if count else None,
            mimic=_mimic(scope, name, axes, notes),
            rotor_inertia=number(scope.path, element, "drake:rotor_inertia", 0.0),
            gear_ratio=number(scope.path, element, "drake:gear_ratio", 1.0),
        )


def _direction(scope: Scope, where: str, axis: Any, pose: Pose) -> np.ndarray:
    """Return the direction (3,) of an axis in the world; `pose` is the pose of the joint in its model."""
    xyz = axis.find("xyz")
    found = numbers(scope.path, xyz, (0.0, 0.0, 1.0))
    if not found.any():
        raise FileFormatError(f"{where}: axis is {found.tolist()}; expected a non-zero vector")
    frame = "" if xyz is None else xyz.get("expressed_in", "")
    of_model = text_of(axis, "use_parent_model_frame", str(scope.file.version <= AXES_OF_MODEL)).lower() in TRUE
    given = scope.pose(frame or MODEL) if frame or of_model else pose
    return scope.outer.rotation @ given.rotation @ found


def _pitch(scope: Scope, where: str, element: Any) -> float:
    """Return the pitch of a screw joint, m/rad.

    A positive <screw_thread_pitch> is the pitch of a right-handed screw in m per turn. The older <thread_pitch> is its
    inverse in rad/m, with the opposite sign.
    """
    if element.find("screw_thread_pitch") is not None:
        return number(scope.path, element, "screw_thread_pitch", 0.0) / (2.0 * np.pi)
    inverse = number(scope.path, element, "thread_pitch", 0.0)
    if inverse == 0.0:
        raise FileFormatError(f"{where} has no pitch; expected a <screw_thread_pitch>, in m per turn")
    return -1.0 / inverse


def _passive(scope: Scope, axes: list[Any], kind: str) -> PassiveForces | None:
    """Return damping, friction and springs of a joint, with one value for each axis."""
    if not axes:
        return None
    tags = {"damping": "damping", "friction": "friction", "stiffness": "spring_stiffness"}
    tags |= {} if kind == "ball" else {"rest_position": "spring_reference"}
    found = {
        field: [number(scope.path, axis.find("dynamics"), tag, 0.0) for axis in axes] for field, tag in tags.items()
    }
    return PassiveForces(**{field: values[0] if len(values) == 1 else values for field, values in found.items()})


def _limits(scope: Scope, axes: list[Any], name: str, kind: str, notes: Notes) -> JointLimits:
    """Return the limits of the axes of a joint. A negative effort or velocity stands for no limit."""
    unlimited = {"lower": -np.inf, "upper": np.inf, "effort": np.inf, "velocity": np.inf}
    found = {
        tag: np.array([number(scope.path, axis.find("limit"), tag, value, may_be_infinite=True) for axis in axes])
        for tag, value in unlimited.items()
    }
    for tag, values in found.items():
        values[np.abs(values) >= UNLIMITED] *= np.inf
        if tag in ("effort", "velocity"):
            values[values < 0.0] = np.inf
    lower, upper = found["lower"], found["upper"]
    invalid = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    if invalid.any():
        which = f"lower {lower[invalid][0]:g}, upper {upper[invalid][0]:g}; expected lower <= upper"
        notes.add(f"joint {name!r} has invalid limits, which are ignored: {which}")
    ignored = invalid | (kind == "continuous")
    lower[ignored], upper[ignored] = -np.inf, np.inf
    return JointLimits(**{tag: values[0] if len(values) == 1 else values for tag, values in found.items()})


def _mimic(scope: Scope, name: str, axes: list[Any], notes: Notes) -> Mimic | None:
    """Return how the first axis of a joint mimics a joint: q = multiplier (q_other - reference) + offset."""
    given = [axis.find("mimic") for axis in axes]
    if any(mimic is not None for mimic in given[1:]):
        notes.put(LEFT_OUT, "<mimic> in <axis2>", f"joint {name!r}")
    if not given or given[0] is None:
        return None
    multiplier, offset, reference = (
        number(scope.path, given[0], tag, default)
        for tag, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
    )
    return Mimic(scope.prefix + given[0].get("joint", ""), multiplier, offset - multiplier * reference)


def inertia_of(scope: Scope, name: str, link: Any, collisions: Sequence[CollisionShape], notes: Notes) -> Inertia:
    """Return the inertia of a link in its own frame.

    The default of a mass is 1 kg, and of a moment of inertia about an axis 1 kg m^2. Automatic inertia is the sum of
    the inertias of the collision shapes, which does not depend on a mass, a pose or an inertia in the file.
    """
    inertial, where = link.find("inertial"), f"link {name!r}"
    if inertial is not None and inertial.get("auto", "").lower() in TRUE:
        given = [tag for tag in ("mass", "pose", "inertia") if inertial.find(tag) is not None]
        if given:
            notes.put(LEFT_OUT, f"<{'>, <'.join(given)}> in <inertial auto>", where)
        return _automatic_inertia(scope, where, link, collisions)
    mass, tensor = (None if inertial is None else inertial.find(tag) for tag in ("mass", "inertia"))
    if mass is None or tensor is None or any(tensor.find(tag) is None for tag in ("ixx", "iyy", "izz")):
        notes.put(INCOMPLETE, repr(name))
    xx, xy, xz, yy, yz, zz = (
        number(scope.path, tensor, tag, float(tag[1] == tag[2])) for tag in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    with naming(where):
        own = Inertia(number(scope.path, inertial, "mass", 1.0), inertia=matrix)
        return own if inertial is None else own.moved(_pose_in_link(scope, link, inertial))


def _automatic_inertia(scope: Scope, where: str, link: Any, collisions: Sequence[CollisionShape]) -> Inertia:
    """Return the sum of the inertias of the collision shapes of a link."""
    default = number(scope.path, link.find("inertial"), "density", DENSITY)
    densities = [number(scope.path, element, "density", default) for element in link.findall("collision")]
    if not collisions or len(collisions) != len(densities):
        raise FileFormatError(
            f"{scope.path}: {where} has <inertial auto> and {len(densities)} collision shapes, of which "
            f"{len(collisions)} are valid; expected at least one valid shape, or a <mass>"
        )
    with naming(f"{where}: <inertial auto>"):
        parts = [inertia_of_shape(shape, density) for shape, density in zip(collisions, densities, strict=True)]
        return sum(parts, start=Inertia(0.0))


def collisions_of(scopes: Iterable[Scope], notes: Notes) -> Mapping[str, list[CollisionShape]]:
    """Return the collision shapes of all links that have any, in the frames of the links."""
    return _shapes(scopes, "collision", lambda scope, element: CollisionShape(**_geometry(scope, element)), notes)


def visuals_of(scopes: Iterable[Scope], notes: Notes) -> Mapping[str, list[Visual]]:
    """Return the visuals of all links that have any, in the frames of the links."""
    return _shapes(scopes, "visual", _visual, notes)


def _shapes(scopes: Iterable[Scope], tag: str, made: Callable[[Scope, Any], Any], notes: Notes) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for scope in scopes:
        found |= shapes_of(scope.of_tag("link"), tag, partial(made, scope), notes)
    return found


def _pose_in_link(scope: Scope, link: Any, element: Any) -> Pose:
    """Return the pose of an element of a link in the frame of the link."""
    pose, frame, own = scope.raw_pose(element.find("pose")), reference_of(element), link.get("name")
    return pose if frame == own else scope.pose(own).inverse() @ scope.pose(frame) @ pose


def _visual(scope: Scope, element: Any) -> Visual:
    diffuse = element.find("material/diffuse")
    color = None if diffuse is None else np.clip([float(word) for word in diffuse.text.split()], 0.0, 1.0)
    return Visual(**_geometry(scope, element), color=color)


def _geometry(scope: Scope, element: Any) -> dict[str, Any]:
    """Return the arguments of a Visual and of a CollisionShape.

    Raises a ModelError, ValueError or AttributeError for other shapes and for parts of meshes.
    """
    pose = _pose_in_link(scope, element.getparent(), element)
    (shape,) = (child for child in element.find("geometry") if isinstance(child.tag, str))
    if shape.tag == "mesh":
        if shape.find("submesh") is not None:
            raise ValueError("<submesh> stands for a part of the mesh")
        scale = numbers(scope.path, shape.find("scale"), (1.0, 1.0, 1.0))
        return {"shape": "mesh", "size": scale, "pose": pose, "file": file_of(scope.path, text_of(shape, "uri"))}
    size = [float(word) for tag in SIZES.get(shape.tag, ()) for word in shape.findtext(tag).split()]
    return {"shape": shape.tag, "size": size, "pose": pose}
