"""The states of a linear model: independent changes of positions and velocities, and integrals of control errors.

The state x of a linear model selects entries of (dq, dqd, z): positions and velocities of some degrees of freedom, and
all integrals. The maps

    dq = P x,   dqd = V x

return the changes of all degrees of freedom. In an open tree, the state has all positions and velocities that are not
prescribed, and the maps copy them. With closed loops, the other positions and velocities follow from the independent
ones, to first order:

    J dq = 0,   J dqd + d(J qd)/dq dq = 0.

The state selects entries of the same degrees of freedom at all times. So the time derivative of x is the selection of
the derivatives of (dq, dqd, z), although P and V change with time. Source: Wehage and Haug (1982), "Generalized
coordinate partitioning for dimension reduction in analysis of constrained dynamic systems".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.control import drive_layout as drive
from .operating_points import Conditions, OperatingPoints

#: Samples of a batch whose independent degrees of freedom are candidates for all of them.
MOST_CANDIDATES = 16
#: A projection has this singular value or less if the loops hold the direction; otherwise it is at least 1.
SMALLEST_PROJECTION = 1e-6
#: If the selected entries of a unit change of the positions are below this value, other entries determine the sample.
SMALLEST_SELECTION = 1e-5


@dataclass(frozen=True)
class Coordinates:
    """The states of the linear models of a batch.

    `positions` (p,) and `velocities` (v,) are the degrees of freedom whose changes are states, and `integrals` the
    number of integrals. `of_positions` and `of_velocities` (samples, nv, p + v + integrals) are the maps P and V. They
    are NaN for samples in which the selected degrees of freedom do not determine the others.
    """

    positions: np.ndarray
    velocities: np.ndarray
    integrals: int
    of_positions: np.ndarray
    of_velocities: np.ndarray

    def select(self, of_positions: np.ndarray, of_velocities: np.ndarray, of_integrals: np.ndarray) -> np.ndarray:
        """Return the rows of the state, from rows of all dofs (samples, nv, ...) and of the integrals."""
        return np.concatenate([of_positions[:, self.positions], of_velocities[:, self.velocities], of_integrals], 1)

    def names(self, labels: tuple[str, ...], integrated: np.ndarray) -> tuple[str, ...]:
        """Return the names of the states, from the labels of the degrees of freedom."""
        return (
            *(f"q {labels[i]}" for i in self.positions),
            *(f"qd {labels[i]}" for i in self.velocities),
            *(f"integral {labels[i]}" for i in integrated),
        )


def free_dofs(conditions: Conditions) -> tuple[np.ndarray, np.ndarray]:
    """Return the degrees of freedom whose positions, and those whose velocities, no drive prescribes."""
    is_placed = conditions.kinds == drive.KIND_PRESCRIBED_POSITION
    is_driven = is_placed | (conditions.kinds == drive.KIND_PRESCRIBED_VELOCITY)
    return np.flatnonzero(~is_placed), np.flatnonzero(~is_driven)


def tangent_bases(conditions: Conditions, points: OperatingPoints) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the changes of the positions that keep loops closed, for groups of samples with equal numbers of changes.

    A group consists of its samples (rows,), and of changes (rows, nv, p) of all positions by independent numbers. They
    are orthonormal, and the changes of a sample do not depend on the others.
    """
    dofs, _ = free_dofs(conditions)
    if not conditions.has_loops:
        return [(np.arange(len(points.q)), _copies(dofs, points))]
    bases, ranks = _bases(points.closed[:, 0][:, :, dofs])
    groups = (np.flatnonzero(ranks == rank) for rank in np.unique(ranks))
    return [(rows, bases[rows][:, :, : ranks[rows[0]]]) for rows in groups]


def coordinates_of_groups(conditions: Conditions, points: OperatingPoints) -> list[tuple[np.ndarray, Coordinates]]:
    """Choose the states of the linear models for groups of samples (rows,), so that no sample depends on the others."""
    rows = np.arange(len(points.q))
    if conditions.has_loops and len(rows):
        choices = [_own_choices(points.closed[:, 0], dofs) for dofs in free_dofs(conditions)]
        groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        for row in np.flatnonzero(points.is_finite):
            groups.setdefault(tuple(tuple(choice[row].tolist()) for choice in choices), []).append(int(row))
        members = [np.array(group) for group in groups.values()] or [rows[:0]]
    else:
        members = [rows]
    return [(group, coordinates_of(conditions, points.rows(group))) for group in members]


def coordinates_of(conditions: Conditions, points: OperatingPoints) -> Coordinates:
    """Choose the states of the linear models of a batch."""
    n, rows, m = conditions.model.nv, len(points.q), conditions.actions.integrals
    _, velocities = free_dofs(conditions)
    positions, _ = free_dofs(conditions)
    if conditions.has_loops:
        positions, of_q = independent_changes(points.closed[:, 0], positions)
        velocities, of_qd = independent_changes(points.closed[:, 0], velocities)
        # the velocities that an independent position changes, without the changes of the independent velocities
        by_q = points.closed[:, 1] @ of_q
        by_q = by_q - of_qd @ by_q[:, velocities]
        by_q[:, velocities] = np.where(np.isfinite(by_q[:, velocities]), 0.0, np.nan)  # without round-off
    else:
        of_q, of_qd = _copies(positions, points), _copies(velocities, points)
        by_q = np.zeros((rows, n, len(positions)))
    p, v = len(positions), len(velocities)
    of_positions, of_velocities = np.zeros((2, rows, n, p + v + m))
    of_positions[:, :, :p], of_velocities[:, :, :p], of_velocities[:, :, p : p + v] = of_q, by_q, of_qd
    return Coordinates(positions, velocities, m, of_positions, of_velocities)


def _copies(dofs: np.ndarray, points: OperatingPoints) -> np.ndarray:
    """Return the changes (rows, nv, p) of all degrees of freedom by unit changes of some of an open tree."""
    rows, n = points.qdd.shape
    return np.broadcast_to(np.eye(n)[:, dofs], (rows, n, len(dofs)))


def independent_changes(projection: np.ndarray, dofs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Choose independent degrees of freedom among `dofs`, and compute the changes of all of them by a unit change.

    `projection` (samples, n, n) maps changes to changes that keep the loops closed. The choice is the same for all
    samples. It maximizes the smallest singular value of the selected entries in the worst of the samples.

    Returns
    -------
    chosen : (p,) array of int
    changes : (samples, n, p) array
        NaN for samples in which the chosen degrees of freedom do not determine the others.
    """
    is_finite = np.isfinite(projection).all((1, 2))
    bases, ranks = _bases(projection[:, :, dofs])
    rank = int(np.bincount(ranks[is_finite]).argmax()) if is_finite.any() else 0
    bases = bases[:, :, :rank]
    is_regular = is_finite & (ranks == rank)
    found = np.flatnonzero(is_regular)
    best, chosen = -1.0, np.zeros(0, int)
    for sample in found[:: max(1, len(found) // MOST_CANDIDATES)]:
        candidate = _own_choice(bases[sample], dofs)
        if np.array_equal(candidate, chosen):
            continue
        worst = _smallest(bases[found][:, candidate])
        if worst > best:
            best, chosen = worst, candidate
    changes = np.full((*bases.shape[:2], rank), np.nan)
    if rank:
        selected = bases[:, chosen]
        is_regular &= np.linalg.svd(selected, compute_uv=False).min(-1, initial=np.inf) > SMALLEST_SELECTION
        changes[is_regular] = bases[is_regular] @ np.linalg.inv(selected[is_regular])
        changes[np.ix_(is_regular, chosen)] = np.eye(rank)  # without round-off
    return chosen, changes


def _bases(projection: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal changes that keep the loops closed, and their numbers (samples,); 0 if they are not finite.

    `projection` (samples, n, m) maps m changes to changes that keep the loops closed. The first columns of the result
    (samples, n, ...) are the changes.
    """
    is_finite = np.isfinite(projection).all((1, 2))
    left, values, _ = np.linalg.svd(np.where(is_finite[:, None, None], projection, 0.0), full_matrices=False)
    return left, (values > SMALLEST_PROJECTION).sum(-1)


def _own_choices(projection: np.ndarray, dofs: np.ndarray) -> list[np.ndarray]:
    """Return the independent degrees of freedom that each sample would choose alone."""
    bases, ranks = _bases(projection[:, :, dofs])
    return [_own_choice(basis[:, :rank], dofs) for basis, rank in zip(bases, ranks, strict=True)]


def _own_choice(basis: np.ndarray, dofs: np.ndarray) -> np.ndarray:
    """Return the degrees of freedom (p,) among `dofs` that determine the changes of a basis (n, p) best."""
    from scipy.linalg import qr  # slow to import, and only closed loops need it

    _, pivots = qr(basis[dofs].T, mode="r", pivoting=True)[:2]
    return np.sort(dofs[pivots[: basis.shape[1]]])


def _smallest(selected: np.ndarray) -> float:
    """Return the smallest singular value of matrices (samples, p, p)."""
    return float(np.linalg.svd(selected, compute_uv=False).min(initial=np.inf))
