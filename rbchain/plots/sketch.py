"""Sketches of mechanisms in SVG, computed in plain Python, so that nothing waits for the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..model.constraint_fields import lines_of_constraints

if TYPE_CHECKING:
    from ..facade.model import Model

WIDTH, HEIGHT, MARGIN = 260, 220, 18
AZIMUTH, ELEVATION = 0.6, 0.35  # of the view, rad
PARALLEL = 1e-6  # largest sine of an angle between parallel axes


def poses_in_python(model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute rotations (n, 3, 3) and joint origins (n, 3) of the bodies at positions (nq,), in world axes, m.

    `Model.body_poses` computes the same in compiled code.
    """
    rotations: list[np.ndarray] = []
    origins: list[np.ndarray] = []
    for i, parent in enumerate(model.parent):
        R, p = (np.eye(3), np.zeros(3)) if parent < 0 else (rotations[parent], origins[parent])
        R, p = R @ model.placement_rotation[i], p + R @ model.placement_translation[i]
        at, dof, kind = model.position_index[i], model.velocity_index[i], model.joint_types[i]
        if kind in ("free", "spherical"):
            if kind == "free":
                p, at = p + R @ q[at : at + 3], at + 3
            R = R @ _of_quaternion(q[at : at + 4])
        else:
            last = model.velocity_index[i + 1] if i + 1 < model.n_bodies else model.nv
            for k in range(last - dof):
                axis, angle = model.axis[dof + k], q[at + k]
                if model.dof_types[dof + k] != "revolute":
                    travel = 1.0 if model.dof_types[dof + k] == "prismatic" else model.pitch[dof + k]
                    p = p + travel * angle * (R @ axis)
                if model.dof_types[dof + k] != "prismatic":
                    R = R @ _of_quaternion(np.array([*np.sin(angle / 2) * axis, np.cos(angle / 2)]))
        rotations.append(R)
        origins.append(p)
    return np.array(rotations), np.array(origins)


def _of_quaternion(q: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a quaternion [x, y, z, w]."""
    *v, w = q / np.linalg.norm(q)
    x, y, z = v
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross


def ends_of(model: Model, i: int) -> np.ndarray:
    """Ends (m, 3) of body i in its frame, m: joints of its children, frames and constraints, or the end of a rod.

    The rod is twice as long as the distance to the center of mass.
    """
    children = model.placement_translation[model.parent == i]
    frames = [frame.pose.translation for frame in model.description.frames.values() if frame.body == i]
    points = np.array([*children, *frames, *points_of_constraints(model, i)]).reshape(-1, 3)
    if not points.any() and model.mass[i] > 0.0:
        points = 2.0 * model.cg[None, i]
    return points[points.any(axis=1)]


def points_of_constraints(model: Model, i: int) -> np.ndarray:
    """Points (m, 3) of body i, or of the world (-1), that constraints hold, in its frame, m."""
    d, found = model.description, []
    for c, place in enumerate(d.constraints):
        if place.rows.of_points:
            ends = (place.body_a, d.constraint_point_a[c]), (place.body_b, d.constraint_point_b[c])
            found += [point for body, point in ends if body == i]
    return np.reshape(found, (-1, 3))


def sketch_of(model: Model, q: np.ndarray | None = None) -> str:
    """Return an SVG of a model at positions (nq,), by default the neutral ones.

    It shows joints, lines from them to the ends of their bodies, centers of mass, and constraints (dashed). The line of
    a constraint connects its two points with the origins of their bodies. The radius of the circle of a center of mass
    grows with the cube root of the mass. A square is the origin of the world, if a joint ties a body to the world.
    """
    rotations, origins = poses_in_python(model, model.neutral() if q is None else np.asarray(q, np.float64))
    centers = origins + np.einsum("nij,nj->ni", rotations, model.cg)
    roots = [i for i in np.flatnonzero(model.parent < 0) if model.joint_types[i] != "free"]
    links = [(np.zeros(3), origins[i]) for i in roots]
    for i, (R, p) in enumerate(zip(rotations, origins, strict=True)):
        links += [(p, p + R @ end) for end in ends_of(model, i)]
    loops = lines_of_constraints(model.description, rotations, origins)
    groups = (np.zeros((len(roots[:1]), 3)), origins, centers, np.reshape(links, (-1, 3)), loops.reshape(-1, 3))
    ground, joints, masses, ends, of_loops = _in_picture(groups, _view(model, rotations))
    parts = [f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" fill="#999"/>' for x, y in ground]
    parts += [_line(a, b, "#1f5a99", 2) for a, b in ends.reshape(-1, 2, 2)]
    for four in of_loops.reshape(-1, 4, 2):
        parts += [_line(a, b, "#c03030", 1.5, ' stroke-dasharray="4 3"') for a, b in pairwise(four)]
    largest = max(model.mass.max(), 1e-300)
    for (x, y), mass in zip(masses, model.mass, strict=True):
        radius = 2 + 5 * (mass / largest) ** (1 / 3)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="#e0a030" opacity="0.7"/>')
    for (x, y), name in zip(joints, model.body_names, strict=True):
        label = f"<title>{escape(name)}</title>"
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#1f5a99">{label}</circle>')
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">{"".join(parts)}</svg>'


def _in_picture(groups: Sequence[np.ndarray], view: np.ndarray) -> list[np.ndarray]:
    """Return places (m, 2) in the image, in pixels, of groups of points (m, 3), which fill it together."""
    points = np.concatenate(groups) @ view.T
    low, high = points.min(0), points.max(0)
    size = np.array([WIDTH, HEIGHT])
    scale = ((size - 2 * MARGIN) / np.maximum(high - low, 1e-9)).min()
    places = (points - (low + high) / 2) * scale * [1.0, -1.0] + size / 2
    return np.split(places, np.cumsum([len(group) for group in groups])[:-1])


def _view(model: Model, rotations: np.ndarray) -> np.ndarray:
    """Return the directions to the right and upwards in the image, as rows in world axes.

    Upwards is against gravity. A mechanism whose axes of rotation are parallel is seen along them, unless they are
    vertical. Others are seen obliquely from above.
    """
    g = model.gravity
    body = np.searchsorted(model.velocity_index, np.arange(model.nv), "right") - 1
    turns = [dof for dof, kind in enumerate(model.dof_types) if kind != "prismatic"]
    axes = [rotations[body[dof]] @ model.axis[dof] for dof in turns]
    is_planar = len(axes) > 0 and all(np.linalg.norm(np.cross(axis, axes[0])) < PARALLEL for axis in axes)
    normal = axes[0] * np.sign(axes[0] @ [0.3, -0.5, 1.0]) if is_planar else np.zeros(3)
    up = -g / np.linalg.norm(g) if g.any() else np.array([0.0, 1.0, 0.0] if abs(normal[2]) > 0.5 else [0.0, 0.0, 1.0])
    right = np.cross(up, normal)
    if np.linalg.norm(right) > PARALLEL:
        right /= np.linalg.norm(right)
        return np.array([right, np.cross(normal, right)])
    first = np.eye(3)[np.argmin(np.abs(up))]
    second = np.cross(up, first)
    second /= np.linalg.norm(second)
    first = np.cross(second, up)
    level = np.cos(AZIMUTH) * first + np.sin(AZIMUTH) * second
    return np.array(
        [
            np.cos(AZIMUTH) * second - np.sin(AZIMUTH) * first,
            np.cos(ELEVATION) * up - np.sin(ELEVATION) * level,
        ]
    )


def _line(a: np.ndarray, b: np.ndarray, color: str, width: float, style: str = "") -> str:
    ends = f'x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"'
    return f'<line {ends} stroke="{color}" stroke-width="{width}"{style}/>'
