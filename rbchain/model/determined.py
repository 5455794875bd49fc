"""Find the degrees of freedom whose accelerations neither inertia nor constraints determine.

A massless body moves as the constraints demand, if these leave it no motion of its own: no motion of the mechanism may
have zero kinetic energy and satisfy the constraints. That is a question of the geometry and of which inertias are zero,
not of their values. The rows of the constraints and those of the inertias are therefore divided by their lengths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .description import Description, one_sample
from .massless import inertia_factors
from .topology import Dofs, dofs_of

ATTEMPTS, ITERATIONS = 6, 60  # of the search for closed positions
CLOSED = 1e-11
#: Singular values below this number are zero; larger entries of their vectors are motions.
RANK_TOLERANCE, MOVES = 1e-8, 1e-5


def undetermined_dofs(
    description: Description, without: np.ndarray, held: np.ndarray, resisted: np.ndarray
) -> np.ndarray:
    """Return which degrees of freedom (samples, nv) move without inertia and without a constraint.

    `without` (samples, nv) are those whose accelerations the inertias of the tree do not determine. `held` (nv,) and
    `resisted` (samples, nv) are as for `dofs_without_inertia`.
    """
    found, known = np.zeros_like(without), {}
    for sample in np.flatnonzero(without.any(-1)):
        d, stiff = one_sample(description, int(sample)), np.broadcast_to(resisted, without.shape)[sample]
        # samples with zeros in the same places are equal in this respect
        zeros = tuple(x.tobytes() for x in (d.mass > 0.0, d.inertia != 0.0, d.rotor_inertia * d.gear_ratio != 0.0, stiff))
        if zeros not in known:
            known[zeros] = _undetermined(d, held, stiff)
        found[sample] = known[zeros]
    return found


def _undetermined(d: Description, held: np.ndarray, resisted: np.ndarray) -> np.ndarray:
    """`undetermined_dofs` of one sample (nv,), in random positions that satisfy the constraints."""
    dofs, rng = dofs_of(d), np.random.default_rng(0)
    q, closed = np.zeros(held.size), False
    for _ in range(ATTEMPTS):
        q, closed = _closed_positions(d, dofs, rng.uniform(-1.0, 1.0, held.size))
        if closed:
            break
    geometry = _geometry_of(d, dofs, q)
    rows = [geometry.J, np.eye(held.size)[(d.rotor_inertia * d.gear_ratio != 0.0) | resisted]]
    for body, W in enumerate(inertia_factors(d)):
        rows.append(W @ _in_body_axes(geometry.rotation[body]) @ geometry.of_bodies[body])
    matrix = np.concatenate(rows)[:, ~held]
    sizes = np.linalg.norm(matrix, axis=-1, keepdims=True)
    matrix = np.concatenate([matrix / np.where(sizes > 0.0, sizes, 1.0), np.zeros((1, matrix.shape[1]))])
    _, sigma, motions = np.linalg.svd(matrix)
    sigma = np.concatenate([sigma, np.zeros(len(motions) - sigma.size)])
    found = np.zeros(held.size, bool)
    found[~held] = (np.abs(motions[sigma < RANK_TOLERANCE]) > MOVES).any(0)
    return found


def _closed_positions(d: Description, dofs: Dofs, q: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return positions near q, and whether they satisfy the constraints (Gauss-Newton with steps of minimum norm)."""
    for _ in range(ITERATIONS):
        geometry = _geometry_of(d, dofs, q)
        if np.abs(geometry.residual).max() < CLOSED:
            return q, True
        step = np.linalg.lstsq(geometry.J, geometry.residual, rcond=RANK_TOLERANCE)[0]
        q = q - step * min(1.0, 0.5 / max(np.linalg.norm(step), 1e-300))
    return q, False


class _Geometry(NamedTuple):
    """Residuals (m,) and Jacobian (m, nv) of the constraints; Jacobians (n, 6, nv) and rotations of the bodies."""

    residual: np.ndarray
    J: np.ndarray
    of_bodies: np.ndarray
    rotation: np.ndarray


def _geometry_of(d: Description, dofs: Dofs, q: np.ndarray) -> _Geometry:
    """Compute the geometry at q (nv,), where joints with a quaternion are prismatic and revolute joints in series."""
    nv, n = q.size, len(d.parent)
    rotation, origin = np.zeros((n + 1, 3, 3)), np.zeros((n + 1, 3))
    of_bodies = np.zeros((n + 1, 6, nv))
    rotation[n] = np.eye(3)  # the world is the last body
    for body, parent in enumerate(d.parent):
        R, p = rotation[parent], origin[parent] + rotation[parent] @ d.placement_translation[body]
        J = _moved(of_bodies[parent], p - origin[parent])
        R = R @ d.placement_rotation[body]
        for dof in range(dofs.velocity_index[body], dofs.last[body] + 1):
            axis, slides = R @ d.axis[dof], d.dof_types[dof] == "prismatic"
            advance = float(slides) + (d.pitch[dof] if d.dof_types[dof] == "screw" else 0.0)
            J[:, dof] = [*(advance * axis), *(axis * (not slides))]
            J, p = _moved(J, q[dof] * advance * axis), p + q[dof] * advance * axis
            if not slides:
                R = _rotation(axis, q[dof]) @ R
        rotation[body], origin[body], of_bodies[body] = R, p, J
    residuals, jacobians = [], []
    for c, place in enumerate(d.constraints):
        if place.kind == "coupler":
            a, b = dofs.last[place.body_a], dofs.last[place.body_b]
            J = np.zeros((1, nv))
            J[0, b], J[0, a] = 1.0, -d.constraint_ratio[c]
            residuals.append(J @ q - d.constraint_offset[c])
            jacobians.append(J)
            continue
        A, B = ((rotation[body], origin[body], of_bodies[body]) for body in (place.body_a, place.body_b))
        arms = A[0] @ d.constraint_point_a[c], B[0] @ d.constraint_point_b[c]
        J = _moved(B[2], arms[1]) - _moved(A[2], arms[0])
        between = B[1] + arms[1] - A[1] - arms[0]
        if place.kind == "distance":
            length = max(float(np.linalg.norm(between)), 1e-300)
            residuals.append(np.array([length - d.constraint_length[c]]))
            jacobians.append(between[None] / length @ J[:3])
            continue
        residuals.append(between)
        jacobians.append(J[:3])
        a, b = A[0] @ d.constraint_axes_a[c], B[0] @ d.constraint_axes_b[c]
        pairs = {"hinge": [[(0, 2)], [(1, 2)]], "weld": [[(2, 1), (1, 2)], [(0, 2), (2, 0)], [(1, 0), (0, 1)]]}
        for products in pairs.get(place.kind, []):
            turns = [np.cross(b[:, j], a[:, i]) for i, j in products]
            values = [a[:, i] @ b[:, j] for i, j in products]
            signs = [1.0, -1.0][: len(products)]
            residuals.append(np.array([sum(s * x for s, x in zip(signs, values, strict=True))]))
            jacobians.append(sum(s * x for s, x in zip(signs, turns, strict=True))[None] @ J[3:])
    return _Geometry(np.concatenate(residuals), np.concatenate(jacobians), of_bodies[:n], rotation[:n])


def _moved(J: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Refer a Jacobian (6, nv), linear first, to a point at r from its own."""
    return np.concatenate([J[:3] + np.cross(J[3:], r, axisa=0).T, J[3:]])


def _in_body_axes(R: np.ndarray) -> np.ndarray:
    """Return the matrix that turns velocities (6,) from world axes to the axes of a body with rotation R."""
    zero = np.zeros((3, 3))
    return np.block([[R.T, zero], [zero, R.T]])


def _rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return the rotation matrix about a unit axis (Rodrigues' formula)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)
