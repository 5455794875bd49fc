"""MJCF, read by MuJoCo's own parser (the extra `mjcf`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..chain import Model
from ..errors import FileFormatError
from ..model.builder import ModelBuilder
from ..model.inertia import Inertia
from ..model.joint import AnyJoint, Composite, Fixed, Free, Prismatic, Revolute, Spherical
from ..model.limits import JointLimits
from ..model.passive import JointForces
from ..model.pose import Pose, rotation_matrix
from ..model.visual import Visual

try:
    import mujoco
except ImportError:
    mujoco = None


def load_mjcf(path: Path, nonphysical_inertia: str = "warn") -> Model:
    """The model in an MJCF file, as MuJoCo compiles it.

    Joints, masses, springs, damping, dry friction, armature, ranges and geoms (as visuals, but for planes, meshes and
    height fields) are kept, and sites as frames. A body's frame is its joint's: where MuJoCo's joint is not at the
    body's origin, the frame stands at the joint's anchor. Positions count from the pose in the file (a joint's `ref` is
    not added). What else acts in MuJoCo is named in a warning. Raises FileFormatError, or ModelError if the mechanism
    cannot be.
    """
    if mujoco is None:
        raise FileFormatError(f"{path}: MJCF needs MuJoCo's parser; install rbchain[mjcf]")
    if not path.exists():
        raise FileNotFoundError(path)
    try:
        source = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        raise FileFormatError(f"{path}: {' '.join(str(error).split())}") from None
    builder = ModelBuilder(
        name=source.names.split(b"\0", 1)[0].decode() or path.stem,
        gravity=source.opt.gravity,
        nonphysical_inertia=nonphysical_inertia,
    )
    anchors = {0: np.zeros(3)}  # of each body's joint, in MuJoCo's body frame
    names: dict[int, str | None] = {0: None}
    for body in range(1, source.nbody):
        _add_body(builder, source, path, body, anchors, names)
    taken = set(names.values())
    for site in range(source.nsite):
        body, name = source.site_bodyid[site], _name(source, "site", site) or f"site{site}"
        place = Pose(source.site_pos[site] - anchors[body], _rotation(source.site_quat[site]))
        name = name if name not in taken else f"{name}_site"
        taken.add(name)
        builder.add_body(name, parent=names[body], joint=Fixed(), placement=place)
    _warn_of_what_is_ignored(source, path)
    return builder.build()


def _name(source: Any, kind: str, i: int) -> str | None:
    return mujoco.mj_id2name(source, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), i)


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    """Matrix of MuJoCo's quaternion [w, x, y, z]."""
    w, x, y, z = quaternion
    return rotation_matrix([x, y, z, w])


def _add_body(
    builder: ModelBuilder,
    source: Any,
    path: Path,
    body: int,
    anchors: dict[int, np.ndarray],
    names: dict[int, str | None],
) -> None:
    joints = range(source.body_jntadr[body], source.body_jntadr[body] + source.body_jntnum[body])
    name = _name(source, "body", body) or f"body{body}"
    parent = source.body_parentid[body]
    points = [source.jnt_pos[j] for j in joints]
    if any(not np.allclose(point, points[0], atol=1e-12) for point in points):
        raise FileFormatError(f"{path}: the joints of body {name!r} are at different points; expected one point")
    joint, passive, rotor = _joint(source, path, name, joints)
    anchor = points[0] if points and joint.kind != "free" else np.zeros(3)
    R = _rotation(source.body_quat[body])
    turned = _rotation(source.body_iquat[body])
    tensor = turned @ np.diag(source.body_inertia[body]) @ turned.T
    anchors[body], names[body] = anchor, name
    builder.add_body(
        name,
        parent=names[parent],
        joint=joint,
        placement=Pose(source.body_pos[body] + R @ anchor - anchors[parent], R),
        inertia=Inertia(source.body_mass[body], source.body_ipos[body] - anchor, (tensor + tensor.T) / 2),
        joint_name=(_name(source, "joint", joints[0]) if len(joints) == 1 else None) or name,
        rotor_inertia=rotor,
        passive=passive,
        limits=_limits(source, joint, joints),
        visuals=_visuals(source, body, anchor),
    )


def _joint(
    source: Any, path: Path, name: str, joints: Sequence[int]
) -> tuple[AnyJoint, JointForces | None, np.ndarray | float]:
    """The joint of a body, its passive forces, and what MuJoCo calls armature."""
    if not joints:
        return Fixed(), None, 0.0
    kinds: dict[Any, Callable[[int], AnyJoint]] = {
        mujoco.mjtJoint.mjJNT_FREE: lambda j: Free(),
        mujoco.mjtJoint.mjJNT_BALL: lambda j: Spherical(),
        mujoco.mjtJoint.mjJNT_SLIDE: lambda j: Prismatic(source.jnt_axis[j]),
        mujoco.mjtJoint.mjJNT_HINGE: lambda j: Revolute(source.jnt_axis[j]),
    }
    made: list[Any] = [kinds[mujoco.mjtJoint(source.jnt_type[j])](j) for j in joints]
    if len(made) > 1 and not all(isinstance(joint, (Revolute, Prismatic)) for joint in made):
        raise FileFormatError(
            f"{path}: body {name!r} has a ball joint and others; expected hinges and slides, or it alone"
        )
    joint: AnyJoint = made[0] if len(made) == 1 else Composite(made)
    first = source.jnt_dofadr[joints[0]]
    dofs = slice(first, first + len(joint.dofs))
    forces = {"damping": source.dof_damping[dofs], "friction": source.dof_frictionloss[dofs]}
    if joint.kind not in ("free", "spherical"):
        at = [source.jnt_qposadr[j] for j in joints]
        forces["stiffness"] = source.jnt_stiffness[list(joints)]
        forces["rest_position"] = source.qpos_spring[at] - source.qpos0[at]
    elif source.jnt_stiffness[joints[0]]:
        warnings.warn(f"{path}: the spring of body {name!r}'s ball or free joint is left out", stacklevel=5)
    return joint, JointForces(**forces), source.dof_armature[dofs]


def _limits(source: Any, joint: AnyJoint, joints: Sequence[int]) -> JointLimits | None:
    """The ranges of hinges and slides, and what may act on them."""
    if joint.kind in ("free", "spherical", "fixed"):
        return None
    which = list(joints)
    references = source.qpos0[source.jnt_qposadr[which], None]  # positions count from the pose in the file
    ranges = source.jnt_range[which] - references
    lower, upper = np.where(source.jnt_limited[which, None], ranges, (-np.inf, np.inf)).T
    efforts = np.where(source.jnt_actfrclimited[which], np.abs(source.jnt_actfrcrange[which]).max(1), np.inf)
    return JointLimits(lower=lower, upper=upper, effort=efforts)


def _visuals(source: Any, body: int, anchor: np.ndarray) -> list[Visual]:
    """The geoms of a body that are plain shapes; their half lengths are MuJoCo's."""
    kinds = mujoco.mjtGeom
    shapes = {
        kinds.mjGEOM_SPHERE: lambda size: ("sphere", size[:1]),
        kinds.mjGEOM_CAPSULE: lambda size: ("capsule", (size[0], 2 * size[1])),
        kinds.mjGEOM_ELLIPSOID: lambda size: ("ellipsoid", size),
        kinds.mjGEOM_CYLINDER: lambda size: ("cylinder", (size[0], 2 * size[1])),
        kinds.mjGEOM_BOX: lambda size: ("box", 2 * size),
    }
    first, found = source.body_geomadr[body], []
    for geom in range(first, first + source.body_geomnum[body]):
        kind = kinds(source.geom_type[geom])
        if kind in shapes:
            shape, size = shapes[kind](source.geom_size[geom])
            pose = Pose(source.geom_pos[geom] - anchor, _rotation(source.geom_quat[geom]))
            found.append(Visual(shape, size, pose, np.clip(source.geom_rgba[geom], 0.0, 1.0)))
    return found


NOT_SHOWN = () if mujoco is None else (int(mujoco.mjtGeom.mjGEOM_MESH), int(mujoco.mjtGeom.mjGEOM_HFIELD))


def _warn_of_what_is_ignored(source: Any, path: Path) -> None:
    counts = {
        "actuators": source.nu,
        "tendons": source.ntendon,
        "equality constraints": source.neq,
        "limits of joints (kept, but do not act)": int(source.jnt_limited.sum()),
        "contacts of geoms": int(((source.geom_contype != 0) & (source.geom_conaffinity != 0)).sum()),
        "geoms of the world": int(source.body_geomnum[0]),
        "meshes and height fields as visuals": int(np.isin(source.geom_type, NOT_SHOWN).sum()),
        "a reference position (ref)": int(np.count_nonzero(source.qpos0[_angles(source)])),
        "fluid": int(source.opt.density > 0.0 or source.opt.viscosity > 0.0),
    }
    found = [name for name, count in counts.items() if count]
    if found:
        warnings.warn(f"{path}: left out of the model: {', '.join(found)}", stacklevel=4)


def _angles(source: Any) -> list[int]:
    """Entries of qpos that belong to hinges and slides."""
    return [source.jnt_qposadr[j] for j in range(source.njnt) if source.jnt_type[j] in (2, 3)]
