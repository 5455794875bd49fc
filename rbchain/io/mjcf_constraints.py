"""Equality constraints of an MJCF file as constraints of rbchain."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..model.constraints import (
    BallConstraint,
    Constraint,
    CouplerConstraint,
    DistanceConstraint,
    WeldConstraint,
)
from ..model.pose import Pose
from .mjcf_source import Source, rotation

#: Name in the model of each of MuJoCo's bodies, and origin of the model's frame in the frame of MuJoCo's body.
Frames = Mapping[int, tuple[str | None, np.ndarray]]


def active_equalities(source: Source) -> list[int]:
    """Return the equality constraints that act: they are active, and their bodies move relative to each other."""
    if source.disabled("equality", "constraint"):
        return []
    found = []
    for i in np.flatnonzero(source.model.eq_active0).tolist():
        if source.equality_type(i) in ("connect", "weld"):
            one, other = (source.model.body_weldid[body] for body, _ in _frames_of(source, i))
            if one == other:
                continue
        found.append(i)
    return found


def constraint_of(source: Source, i: int, name: str, frames: Frames, joints: Mapping[int, str]) -> Constraint | None:
    """Return an equality constraint under this name, or None if rbchain cannot represent it.

    `joints` are the names, in the model, of MuJoCo's joints that are joints with one degree of freedom in the model.
    """
    kind, values = source.equality_type(i), source.model.eq_data[i]
    if kind in ("connect", "weld"):
        (name_a, pose_a), (name_b, pose_b) = (_in_model(frames, *frame) for frame in _frames_of(source, i))
        if kind == "weld" and values[10] > 0.0:
            return WeldConstraint(name, name_a, name_b, pose_a=pose_a, pose_b=pose_b)
        return BallConstraint(name, name_a, name_b, point_a=pose_a.translation, point_b=pose_b.translation)
    first, second = int(source.model.eq_obj1id[i]), int(source.model.eq_obj2id[i])
    if kind == "joint" and first in joints and second in joints and values[1] and not values[2:5].any():
        return CouplerConstraint(name, joints[first], joints[second], ratio=values[1], offset=values[0])
    if kind == "tendon" and second < 0:
        coupler = _coupler_of_tendon(source, first, name, values[0], joints)
        return coupler or _distance(source, first, name, values[0], frames)
    return None


def joints_of_tendon(source: Source, tendon: int) -> list[tuple[int, float]] | None:
    """Return the joints of a fixed tendon and their coefficients; None for a spatial tendon."""
    model, first = source.model, int(source.model.tendon_adr[tendon])
    part = slice(first, first + int(model.tendon_num[tendon]))
    if (model.wrap_type[part] != source.kind("Wrap", "mjWRAP_JOINT")).any():
        return None
    return list(zip(model.wrap_objid[part].tolist(), model.wrap_prm[part].tolist(), strict=True))


def _coupler_of_tendon(
    source: Source, tendon: int, name: str, longer: float, joints: Mapping[int, str]
) -> CouplerConstraint | None:
    """Return the constraint that holds the length of a fixed tendon of two joints, or None for other tendons.

    With positions relative to the pose in the file, a q_a + b q_b = `longer`.
    """
    found = joints_of_tendon(source, tendon) or []
    if len(found) != 2 or not all(joint in joints and factor for joint, factor in found):
        return None
    (one, a), (other, b) = found
    return CouplerConstraint(name, joints[one], joints[other], ratio=-b / a, offset=longer / a)


def _distance(source: Source, tendon: int, name: str, longer: float, frames: Frames) -> DistanceConstraint | None:
    """Return the constraint that holds the length of a straight tendon between two sites, or None for other tendons."""
    model, first = source.model, source.model.tendon_adr[tendon]
    part = slice(first, first + model.tendon_num[tendon])
    sites = model.wrap_objid[part]
    length = float(model.tendon_length0[tendon] + longer)
    if len(sites) != 2 or (model.wrap_type[part] != source.kind("Wrap", "mjWRAP_SITE")).any() or not length > 0.0:
        return None
    (name_a, pose_a), (name_b, pose_b) = (_in_model(frames, *_frame_of_site(source, site)) for site in sites)
    if name_a == name_b:
        return None
    return DistanceConstraint(
        name, name_a, name_b, point_a=pose_a.translation, point_b=pose_b.translation, length=length
    )


def _frames_of(source: Source, i: int) -> list[tuple[int, Pose]]:
    """Return the two bodies that a connect or weld constraint holds together, and its frames in theirs."""
    model, values = source.model, source.model.eq_data[i]
    elements = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    if model.eq_objtype[i] == source.kind("Obj", "mjOBJ_SITE"):
        return [_frame_of_site(source, site) for site in elements]
    if source.equality_type(i) == "connect":
        poses = Pose(values[:3]), Pose(values[3:6])
    else:
        poses = Pose(values[3:6], rotation(values[6:10])), Pose(values[:3])
    return list(zip(elements, poses, strict=True))


def _frame_of_site(source: Source, site: int) -> tuple[int, Pose]:
    """Return the body of a site, and the pose of the site in its frame."""
    model = source.model
    return int(model.site_bodyid[site]), Pose(model.site_pos[site], rotation(model.site_quat[site]))


def _in_model(frames: Frames, body: int, pose: Pose) -> tuple[str | None, Pose]:
    """Return the name of a body in the model, and a pose in its frame there."""
    name, anchor = frames[body]
    return name, Pose(pose.translation - anchor, pose.rotation)
