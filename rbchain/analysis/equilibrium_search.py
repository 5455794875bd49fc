"""The search for equilibria: damped Newton steps on the tangent space, for all samples of a batch together.

Let x be independent changes of the positions, dq = G x, and f the sum of all joint forces at rest. An equilibrium has
G^T f = 0 in all free directions. Let K be the derivative of -f, and M the mass matrix, both in coordinates x. In the
coordinates y = sqrt(diag M) x, the step along each eigenvector of the symmetric part of K is

    y = force / max(|stiffness|, least stiffness).

It is Newton's step for positive stiffness, and follows the force for negative stiffness. A step is halved while it
passes the point at which the force along it changes its sign, unless the force decreases. Near the equilibrium, the
complete K replaces its symmetric part, because forces of controllers and of water have no potential.

Degrees of freedom that are held, and those whose control error is integrated, do not move freely. The forces of the
supports and the integrals balance the forces in these directions, with the smallest norm.

A step computes only the samples that still move. In open trees whose joints all move freely, a search in lanes
(`core.linear.descent`) precedes it and leaves little to do.

Source: Dauphin et al. (2014), "Identifying and attacking the saddle point problem in high-dimensional non-convex
optimization"; Nocedal and Wright (2006), *Numerical Optimization*, chapter 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..acting.coordinates import joints_of_dofs
from ..acting.user_forces import UserForces
from ..errors import ArgumentError
from ..simulate.loops import held_dofs
from .coordinates import tangent_bases
from .eigenvalues import tolerance
from .operating_points import Conditions, OperatingPoints, operating_points, positions_at_rest, prescribed_states

#: Residual of an equilibrium, relative to the largest force.
LARGEST_RESIDUAL = 1e-12
#: Control error of an equilibrium that is integrated, rad or m.
LARGEST_ERROR = 1e-12
#: Largest residual of the constraints of positions that are held, rad or m.
LARGEST_GAP = 1e-9
#: Largest change of an angle in one step, rad.
LARGEST_TURN = 0.5
#: Stiffness below this fraction of the largest one is round-off.
LEAST_STIFFNESS = 1e-13
#: Largest step along an eigenvector, in scaled coordinates, if nothing resists the force.
LARGEST_STEP = 1e6
#: Smallest stiffness, relative to the moments that are not balanced.
DAMPING = 0.1
#: Below this relative residual, the complete derivative of the forces determines the steps.
NEAR = 1e-4
#: Share of the force along a step that may act against it at its end.
OVERSHOOT = 0.5
#: Share of the largest stiffness above which the stiffness in all directions determines a step.
REGULAR = 1e-8
MOST_HALVINGS = 25
#: Steps if no joint moves: the forces of the first one contain the round-off of all that they balance.
FORCES_ONLY = 2
#: Growth of a motion that is round-off, relative to the fastest rate.
LEAST_GROWTH = 1e-6


class Reduced(NamedTuple):
    """The equations of some samples in scaled independent coordinates y.

    `changes` (rows, nv, p) are the changes of the positions by y, and `free` (rows, p, p) is the projection onto the
    free directions, or None if all are free. `fixed` (rows, p, h) are the directions of the other degrees of freedom.
    `force` (rows, p) are all forces. `largest` (rows,) is the largest unbalanced joint force, N m or N.
    """

    changes: np.ndarray
    free: np.ndarray | None
    fixed: np.ndarray
    force: np.ndarray
    largest: np.ndarray

    def rows(self, chosen: np.ndarray) -> Reduced:
        """Return the equations of some of the rows."""
        return Reduced(*(None if x is None else x[chosen] for x in self))  # type: ignore[arg-type]

    def free_force(self) -> np.ndarray:
        """Return the forces (rows, p) in the free directions."""
        return self.force if self.free is None else _times(self.free, self.force)

    def free_stiffness(self, K: np.ndarray) -> np.ndarray:
        """Return the stiffness (rows, p, p) in the free directions."""
        return K if self.free is None else self.free @ K @ self.free


class Search:
    """The state of a search: `q`, `tau` and `integrals` of each sample, and its `residual` and `success`.

    Parameters
    ----------
    conditions : Conditions
    states : list of arrays
        q (samples, nq), qd, and tau (samples, nv).
    t : (samples,) array, s
    held : array of int
        Degrees of freedom that stay at their positions.
    supports : array of int
        Degrees of freedom whose joint forces balance the forces in the held directions.
    """

    def __init__(
        self,
        conditions: Conditions,
        states: list[np.ndarray],
        t: np.ndarray,
        held: np.ndarray,
        supports: np.ndarray,
    ) -> None:
        self.conditions, self.t, self.held, self.supports = conditions, t, held, supports
        self.is_prescribed = held_dofs(conditions.actions, conditions.model.nv)  # by drives, (nv,)
        self.q, self.qd, self.tau = states[0], np.zeros_like(states[1]), states[2]
        self.integrals = np.zeros((conditions.samples, conditions.actions.integrals))
        self.fixed = np.concatenate([held, conditions.integrated])
        self.is_turn = np.array([kind != "prismatic" for kind in conditions.model.dof_types])
        self.residual = np.full(conditions.samples, np.inf)
        self.success = np.zeros(conditions.samples, bool)
        self.scale = np.ones(conditions.samples)

    # --- the equations ------------------------------------------------------------------------------------------------

    def points_at(self, rows: np.ndarray, tau: np.ndarray) -> OperatingPoints:
        """Return the derivatives of the equations of motion of some samples at rest."""
        states = self.q[rows], self.qd[rows], self.integrals[rows]
        return operating_points(self.conditions, states, tau, self.t, rows)

    def reduced(self, points: OperatingPoints, G: np.ndarray) -> Reduced:
        """Return the equations in independent coordinates, with the changes G (rows, nv, p) of the positions."""
        of_positions = np.swapaxes(G, 1, 2)
        mass, force, is_regular = of_positions @ points.M @ G, _times(of_positions, points.forces), points.is_finite
        is_regular &= np.isfinite(mass).all((1, 2))
        diagonal = np.where(is_regular[:, None], np.diagonal(mass, axis1=1, axis2=2), 1.0)
        size = 1.0 / np.sqrt(diagonal)
        changes = G * size[:, None]
        fixed = np.swapaxes(np.where(is_regular[:, None, None], changes, 0.0)[:, self.fixed], 1, 2)
        free = np.eye(G.shape[2]) - fixed @ np.linalg.pinv(fixed, rcond=1e-10) if len(self.fixed) else None
        joint_forces = force
        if self.conditions.has_loops and G.shape[2]:  # with the same power, without the forces of constraints
            safe = np.where(is_regular[:, None, None], mass, np.eye(G.shape[2]))
            joint_forces = _times(points.M @ G, np.linalg.solve(safe, force[:, :, None])[:, :, 0])
        largest = np.where(is_regular, abs(joint_forces).max(-1, initial=0.0), np.inf)
        return Reduced(changes, free, fixed, force * size, largest)

    def balance(self, rows: np.ndarray, points: OperatingPoints, reduced: Reduced) -> None:
        """Add forces to the joint forces of the supports, and to the integrals, that hold the fixed directions."""
        m = self.integrals.shape[1]
        columns = np.swapaxes(reduced.changes, 1, 2) @ np.concatenate([points.C, points.F[:, :, self.supports]], 2)
        is_finite = np.isfinite(columns).all((1, 2)) & np.isfinite(reduced.force).all(-1)
        columns = np.where(is_finite[:, None, None], columns, 0.0)
        force = np.where(is_finite[:, None], reduced.force, 0.0)
        found = -_times(np.linalg.pinv(columns, rcond=1e-10), force)
        self.integrals[rows] += found[:, :m]
        self.tau[np.ix_(rows, self.supports)] += found[:, m:]

    def stiffness(self, rows: np.ndarray, points: OperatingPoints, reduced: Reduced) -> np.ndarray:
        """Return the derivative of minus the forces, in scaled coordinates, with the forces balanced."""
        tau = self.tau.copy()
        tau[rows] = np.where(self.is_prescribed, 0.0, tau[rows] - np.nan_to_num(points.forces))
        K = self.points_at(rows, tau).K
        self.scale[rows] = np.maximum(
            abs(np.nan_to_num(K)).max((1, 2), initial=0.0), abs(self.tau[rows]).max(-1, initial=0.0)
        )
        return np.swapaxes(reduced.changes, 1, 2) @ K @ reduced.changes

    # --- the search ---------------------------------------------------------------------------------------------------

    def run(self, most: int) -> None:
        """Search for at most so many steps."""
        self.start(most)
        if len(self.held) == self.conditions.model.nv:
            most = min(most, FORCES_ONLY)
        # a step after the search in lanes would only change the round-off
        first = 0.0 if self.descends else np.inf
        best = np.full(self.conditions.samples, first)
        rows = np.arange(self.conditions.samples)
        points = self.points_at(rows, self.tau)
        _refuse_moving(self.conditions, points)
        moving = [(rows, points)]
        for iteration in range(most + 1):
            groups = [
                (rows[own], points.rows(own), G)
                for rows, points in moving
                for own, G in tangent_bases(self.conditions, points)
            ]
            moved = [self.step(*group, best, iteration == most) for group in groups]
            moving = [found for found in moved if found is not None]
            if not moving:
                break

    def step(
        self, rows: np.ndarray, points: OperatingPoints, G: np.ndarray, best: np.ndarray, is_last: bool
    ) -> tuple[np.ndarray, OperatingPoints] | None:
        """Store the residuals of a group of samples, and move the samples that are not at rest by one step.

        G (rows, nv, p) are the changes of the positions, and `best` (samples,) the smallest residuals so far. Returns
        the samples that moved, and the derivatives there; None if no sample moved.
        """
        reduced = self.reduced(points, G)
        if len(self.fixed):
            self.balance(rows, points, reduced)
            points = self.points_at(rows, self.tau)
            reduced = self.reduced(points, G)
        K = self.stiffness(rows, points, reduced)
        error = abs(points.error).max(-1, initial=0.0)
        residual = np.where(error > LARGEST_ERROR, np.inf, reduced.largest)
        success = residual <= LARGEST_RESIDUAL * self.scale[rows]
        self.residual[rows], self.success[rows] = residual, success
        improves = ~(residual > 0.5 * best[rows])
        best[rows] = np.fmin(best[rows], residual)
        is_active = np.isfinite(reduced.largest) & ~(success & ~improves) & (residual > 0.0)
        if is_last or not is_active.any():
            return None
        rows = rows[is_active]
        return rows, self.move(rows, points.error[is_active], reduced.rows(is_active), K[is_active])

    @property
    def descends(self) -> bool:
        """Whether the search in lanes is possible."""
        is_free = not (self.conditions.has_loops or len(self.fixed) or self.is_prescribed.any())
        return is_free and not any(isinstance(drive, UserForces) for drive in self.conditions.drives)

    def start(self, most: int) -> None:
        """Move prescribed joints to their positions, and assemble closed loops or descend in lanes."""
        self.q, _ = prescribed_states(self.conditions, self.q, self.qd, self.t)
        if self.descends:
            self.q = positions_at_rest(self.conditions, self.q, self.tau, self.t, most)
        elif self.conditions.samples:
            self.q = self.closed(self.q)

    def closed(self, q: np.ndarray) -> np.ndarray:
        """Return positions (samples, nq) that satisfy the constraints; NaN if none was found."""
        conditions, model = self.conditions, self.conditions.model
        if not conditions.has_loops:
            return q
        if len(self.held) == model.nv:
            is_closed = abs(model.constraint_residual(q.reshape(*conditions.batch, model.nq))).max(-1) <= LARGEST_GAP
            return np.where(is_closed.reshape(-1, 1), q, np.nan)
        bodies = model.kernel_model.dofs.body[np.union1d(self.held, np.flatnonzero(self.is_prescribed)).astype(int)]
        fixed = [model.joint_names[body] for body in np.unique(bodies)]
        found = model.assemble(q.reshape(*conditions.batch, model.nq), fixed=fixed, on_failure="ignore")
        return np.asarray(found).reshape(-1, model.nq)

    def move(self, rows: np.ndarray, errors: np.ndarray, reduced: Reduced, K: np.ndarray) -> OperatingPoints:
        """Move some samples by one step, and return the derivatives there.

        `errors` (rows, m) are the control errors that are integrated.
        """
        step = _steps(K, reduced, self.scale[rows], self.is_turn)
        if len(self.conditions.integrated):  # towards the references of the controllers
            fixed_errors = np.zeros((len(rows), len(self.fixed)))
            fixed_errors[:, len(self.held) :] = errors
            step += _times(np.linalg.pinv(np.swapaxes(reduced.fixed, 1, 2), rcond=1e-10), fixed_errors)
        change = _times(reduced.changes, step)
        change[:, self.held] = 0.0  # without round-off
        turn = abs(change[:, self.is_turn]).max(-1, initial=0.0)
        share = np.minimum(1.0, LARGEST_TURN / np.maximum(turn, LARGEST_TURN))
        along = np.einsum("sp,sp->s", reduced.force, step)
        size = np.linalg.norm(reduced.free_force(), axis=-1)
        start, is_open = self.q, np.ones(len(rows), bool)
        for halving in range(MOST_HALVINGS):
            self.q = self.moved(rows, start, share[:, None] * change)
            found = self.points_at(rows, self.tau)
            largest, free_size = self.sizes(found)
            if len(self.conditions.integrated) or halving == MOST_HALVINGS - 1:
                is_open &= ~np.isfinite(largest)
            else:
                at_end = np.einsum("si,si->s", found.forces, change)
                is_open &= ~((at_end >= -OVERSHOOT * along) | (free_size <= 0.9 * size))
            if not is_open.any():
                break
            share = np.where(is_open, 0.5 * share, share)
        return found

    def sizes(self, points: OperatingPoints) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest unbalanced joint forces, and the norms of the forces in free directions, (rows,) each."""
        largest, norm = np.zeros((2, len(points.q)))
        for own, G in tangent_bases(self.conditions, points):
            reduced = self.reduced(points.rows(own), G)
            largest[own], norm[own] = reduced.largest, np.linalg.norm(reduced.free_force(), axis=-1)
        return largest, norm

    def moved(self, rows: np.ndarray, q: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Return the positions (samples, nq) after changes (rows, nv) of some samples."""
        moved = q.copy()
        moved[rows] = self.conditions.model.integrate(q[rows], change)
        closed = self.closed(moved)
        moved[rows] = closed[rows]
        return moved

    def is_stable(self, held: np.ndarray) -> np.ndarray:
        """Whether no small motion grows in which the joints `held` stay at their positions, (samples,)."""
        is_stable = np.zeros(self.conditions.samples, bool)
        rows = np.flatnonzero(self.success)
        points = self.points_at(rows, self.tau)
        for own, G in tangent_bases(self.conditions, points):
            if not len(held):
                is_stable[rows[own]] = self._are_stable(points.rows(own), G)
                continue
            for row, changes in zip(own, G, strict=True):  # a basis of the directions in which the held joints stay
                left, values, _ = np.linalg.svd(changes[held].T)
                free = changes @ left[:, int((values > 1e-10).sum()) :]
                is_stable[rows[row]] = self._are_stable(points.rows(np.array([row])), free[None])[0]
        return is_stable

    def _are_stable(self, points: OperatingPoints, Z: np.ndarray) -> np.ndarray:
        """Whether no small motion grows in the directions Z (rows, nv, p)."""
        factor = np.linalg.cholesky(np.swapaxes(Z, 1, 2) @ points.M @ Z)
        Z = Z @ np.swapaxes(np.linalg.inv(factor), 1, 2)  # scaled by the mass matrix
        K, D, C = (np.swapaxes(Z, 1, 2) @ x for x in (points.K, points.D, points.C))
        K, D = K @ Z, D @ Z
        p, m = C.shape[1:]
        size = abs(K).max((1, 2), initial=0.0)
        least = tolerance(2 * p) * size
        asymmetry = abs(K - np.swapaxes(K, 1, 2)).max((1, 2), initial=0.0)
        has_potential = (asymmetry <= least) & (m == 0)
        lowest = np.linalg.eigvalsh((K + np.swapaxes(K, 1, 2)) / 2).min(-1, initial=np.inf)
        found: np.ndarray = has_potential & (lowest >= -least)
        is_damped = (abs(D).max((1, 2), initial=0.0) > 0.0) & ~(has_potential & (lowest < -least))
        others = np.flatnonzero(is_damped | ~has_potential)
        if len(others):
            A = np.zeros((len(others), 2 * p + m, 2 * p + m))
            A[:, :p, p : 2 * p] = np.eye(p)
            A[:, p : 2 * p, :p], A[:, p : 2 * p, p : 2 * p], A[:, p : 2 * p, 2 * p :] = (
                -K[others],
                -D[others],
                C[others],
            )
            A[:, 2 * p :, :p] = -Z[others][:, self.conditions.integrated]
            values = np.linalg.eigvals(A)
            growth = values.real.max(-1, initial=0.0)
            found[others] = growth <= LEAST_GROWTH * abs(values).max(-1, initial=0.0)
        return found


def _refuse_moving(conditions: Conditions, points: OperatingPoints) -> None:
    """Raise an error for prescribed positions that move."""
    moving = np.flatnonzero((points.qd != 0.0).any(0))
    if len(moving):
        joint = joints_of_dofs(conditions.model, moving)[0]
        raise ArgumentError(
            f"equilibrium: PrescribedPosition moves joint {joint!r} at time t; expected a velocity of zero. Use a "
            "constant signal, or another time"
        )


def _steps(K: np.ndarray, reduced: Reduced, scale: np.ndarray, is_turn: np.ndarray) -> np.ndarray:
    """Return the steps (rows, p) in the free directions.

    `is_turn` (nv,) marks the changes that are angles. The stiffness of free and spherical joints contains the moment
    that is not balanced, because their tangent space turns. So smaller stiffness than this moment has no meaning.
    """
    K, force = reduced.free_stiffness(K), reduced.free_force()
    values, vectors = np.linalg.eigh((K + np.swapaxes(K, 1, 2)) / 2)
    along = _times(np.swapaxes(vectors, 1, 2), force)
    least = LEAST_STIFFNESS * abs(values).max(-1, initial=0.0)[:, None]
    is_round_off = abs(along) <= least + LEAST_STIFFNESS * np.linalg.norm(force, axis=-1)[:, None]
    # one axis, because sums over two axes would depend on the batch
    turns = reduced.changes[:, is_turn].reshape(len(K), is_turn.sum() * K.shape[-1])
    angle = np.linalg.norm(turns, axis=-1)  # of a unit step, at most
    moment = DAMPING * angle * np.linalg.norm(force, axis=-1)
    divisors = np.maximum(abs(values), np.maximum(np.maximum(least, moment[:, None]), abs(along) / LARGEST_STEP))
    is_still = ((abs(values) <= least) & is_round_off) | (along == 0.0)
    steps = np.where(is_still, 0.0, along / np.where(is_still, 1.0, divisors))
    found = _times(vectors, steps)
    is_near = (reduced.largest <= NEAR * scale) & (values >= -least).all(-1)
    is_regular = is_near & (values > REGULAR * abs(values).max(-1, initial=0.0)[:, None]).all(-1)
    is_near &= ~is_regular
    found[is_regular] = np.linalg.solve(K[is_regular], force[is_regular][:, :, None])[:, :, 0]
    found[is_near] = _times(np.linalg.pinv(K[is_near], rcond=LEAST_STIFFNESS), force[is_near])
    return found if reduced.free is None else _times(reduced.free, found)  # K of other directions is round-off


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Multiply matrices (rows, n, m) by vectors (rows, m)."""
    product: np.ndarray = (matrices @ vectors[:, :, None])[:, :, 0]
    return product
