"""Find the degrees of freedom whose accelerations neither inertia nor constraints determine.

A massless body moves as the constraints demand, if these do not allow it to move on its own: no motion of the mechanism
may have zero kinetic energy and satisfy the constraints. This depends on the geometry and on the zeros of the inertias,
not on the values of other inertias. The rows of the constraints and of the inertias are therefore divided by their
lengths.
"""

from __future__ import annotations

import numpy as np

from .description import Description, some_samples
from .loop_geometry import geometry_of, in_body_axes
from .massless import inertia_factors
from .topology import Dofs, dofs_of

ATTEMPTS, ITERATIONS = 6, 60  # of the search for closed positions
CLOSED, LONGEST_STEP = 1e-11, 0.5  # residual in m or rad, step in m or rad
#: Singular values below this number are zero; larger entries of their vectors are motions.
RANK_TOLERANCE, MOVES = 1e-8, 1e-5


def undetermined_dofs(
    description: Description, without: np.ndarray, held: np.ndarray, resisted: np.ndarray
) -> np.ndarray:
    """Return which degrees of freedom (samples, nv) move without inertia and without a constraint.

    `without` (samples, nv) marks degrees of freedom whose accelerations the inertias of the tree do not determine.
    `held` (nv,) and `resisted` (samples, nv) are the same as for `dofs_without_inertia`.
    """
    found, known = np.zeros_like(without), {}
    for sample in np.flatnonzero(without.any(-1)):
        d, stiff = some_samples(description, int(sample)), np.broadcast_to(resisted, without.shape)[sample]
        # samples with zeros in the same places are equal in this respect
        rotors = d.rotor_inertia * d.gear_ratio != 0.0
        zeros = tuple(x.tobytes() for x in (d.mass > 0.0, d.inertia != 0.0, rotors, stiff))
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
    geometry = geometry_of(d, dofs, q)
    rows = [geometry.J, np.eye(held.size)[(d.rotor_inertia * d.gear_ratio != 0.0) | resisted]]
    for body, W in enumerate(inertia_factors(d)):
        rows.append(W @ in_body_axes(geometry.rotation[body]) @ geometry.of_bodies[body])
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
        geometry = geometry_of(d, dofs, q)
        if np.abs(geometry.residual).max() < CLOSED:
            return q, True
        step = np.linalg.lstsq(geometry.J, geometry.residual, rcond=RANK_TOLERANCE)[0]
        length = float(np.linalg.norm(step))
        q = q - step * (LONGEST_STEP / length if length > LONGEST_STEP else 1.0)
    return q, False
