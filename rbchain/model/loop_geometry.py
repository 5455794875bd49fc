"""Residuals and Jacobians of the constraints and Jacobians of the bodies of one sample, in NumPy.

They are the same as in the kernels (`core.loops.constraint_rows`). A model is checked with them before any kernel is
compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .declared_constraint import weighted
from .description import Description
from .topology import Dofs


class Geometry(NamedTuple):
    """Residuals (m,) and Jacobian (m, nv) of the constraints; rotations (n, 3, 3), origins and Jacobians (n, 6, nv).

    The last body is the world. Jacobians are linear first, in world axes.
    """

    residual: np.ndarray
    J: np.ndarray
    rotation: np.ndarray
    origin: np.ndarray
    of_bodies: np.ndarray


def is_turned_over(d: Description, rotation: np.ndarray) -> np.ndarray:
    """Whether the axes of a hinge are opposite, or the frames of a weld are rotated by more than 90 degrees.

    `rotation` (..., n, 3, 3) are the rotations of the bodies in the world. Returns an array (...) of bool.
    Residuals are sines of angles, so they are zero even at 180 degrees.
    """
    world = np.broadcast_to(np.eye(3), (*rotation.shape[:-3], 1, 3, 3))
    of_bodies = np.concatenate([rotation, world], -3)
    found = np.zeros(rotation.shape[:-3], bool)
    for c, place in enumerate(d.constraints):
        if not place.rows.aligned:
            continue
        A = of_bodies[..., place.body_a, :, :] @ d.constraint_axes_a[..., c, :, :]
        B = of_bodies[..., place.body_b, :, :] @ d.constraint_axes_b[..., c, :, :]
        found |= place.rows.is_turned_over((A * B).sum(-2))
    return found


def geometry_of(d: Description, dofs: Dofs, q: np.ndarray) -> Geometry:
    """Compute the geometry at q (nv,), where joints with a quaternion are prismatic and revolute joints in series."""
    n = len(d.parent)
    rotation, origin, of_bodies = np.zeros((n + 1, 3, 3)), np.zeros((n + 1, 3)), np.zeros((n + 1, 6, q.size))
    rotation[n] = np.eye(3)
    for body, parent in enumerate(d.parent):
        R, p = rotation[parent], origin[parent] + rotation[parent] @ d.placement_translation[body]
        J = _moved(of_bodies[parent], p - origin[parent])
        R = R @ d.placement_rotation[body]
        for dof in range(dofs.velocity_index[body], dofs.last[body] + 1):
            axis, slides = R @ d.axis[dof], d.dof_types[dof] == "prismatic"
            advance = float(slides) + (d.pitch[dof] if d.dof_types[dof] == "screw" else 0.0)
            J[:, dof] = [*(advance * axis), *(axis * (not slides))]
            travel = q[dof] * advance * axis
            J, p = _moved(J, travel), p + travel
            R = R if slides else _rotation(axis, q[dof]) @ R
        rotation[body], origin[body], of_bodies[body] = R, p, J
    bodies = Geometry(np.zeros(0), np.zeros((0, q.size)), rotation, origin, of_bodies)
    rows = [_rows_of(c, d, dofs, q, bodies) for c in range(len(d.constraints))]
    return bodies._replace(residual=np.concatenate([r for r, _ in rows]), J=np.concatenate([J for _, J in rows]))


def _rows_of(c: int, d: Description, dofs: Dofs, q: np.ndarray, bodies: Geometry) -> tuple[np.ndarray, np.ndarray]:
    """Return the residuals and the Jacobian of constraint c."""
    place = d.constraints[c]
    a, b = place.body_a, place.body_b
    if place.kind == "coupler":
        J = np.zeros((1, q.size))
        J[0, dofs.last[b]], J[0, dofs.last[a]] = 1.0, -d.constraint_ratio[c]
        return J @ q - d.constraint_offset[c], J
    arm_a, arm_b = bodies.rotation[a] @ d.constraint_point_a[c], bodies.rotation[b] @ d.constraint_point_b[c]
    J = _moved(bodies.of_bodies[b], arm_b) - _moved(bodies.of_bodies[a], arm_a)
    between = bodies.origin[b] + arm_b - bodies.origin[a] - arm_a
    A, B = bodies.rotation[a] @ d.constraint_axes_a[c], bodies.rotation[b] @ d.constraint_axes_b[c]
    length = float(np.linalg.norm(between))
    along = between / length if length > 0.0 else between
    rows = [{"position": J[:3], "distance": along[None] @ J[:3]}[place.rows.type]]
    for pairs in place.rows.directions:
        e = np.sum([w * np.cross(B[:, j], A[:, i]) for w, (i, j) in weighted(pairs)], axis=0)
        rows.append(e[None] @ J[3:])
    return place.rows.residuals(between, A.T @ B, d.constraint_length[c]), np.concatenate(rows)


def _moved(J: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Refer a Jacobian (6, nv) to a point at r from its own."""
    return np.concatenate([J[:3] + np.cross(J[3:].T, r).T, J[3:]])


def in_body_axes(R: np.ndarray) -> np.ndarray:
    """Return the matrix that turns velocities (6,) from world axes to the axes of a body with rotation R."""
    zero = np.zeros((3, 3))
    return np.block([[R.T, zero], [zero, R.T]])


def _rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return the rotation matrix about a unit axis (Rodrigues' formula)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)
