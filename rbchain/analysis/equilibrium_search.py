"""The search for equilibria: damped Newton steps on the tangent space, for all samples of a batch together.

Let x be independent changes of the positions, dq = G x, and f the sum of all joint forces at rest. An equilibrium has
G^T f = 0 in all free directions. Let K be the derivative of -f, and M the mass matrix, both in coordinates x. In the
coordinates y = L^T x, with M = L L^T, the step along each eigenvector of the symmetric part of K is

    y = force / max(|stiffness|, least stiffness).

It is Newton's step for positive stiffness, and follows the force for negative stiffness. A step is halved while it
passes the point at which the force along it changes its sign, unless the force decreases. Near the equilibrium, the
complete K replaces its symmetric part, because forces of controllers and of water have no potential.

Degrees of freedom that are held, and those whose control error is integrated, do not move freely. The forces that hold
them, and the integrals, balance the forces in these directions, with the smallest norm.

Source: Dauphin et al. (2014), "Identifying and attacking the saddle point problem in high-dimensional non-convex
optimization"; Nocedal and Wright (2006), *Numerical Optimization*, chapter 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..simulate.loops import held_dofs
from ..simulate.results import set_prescribed_states
from .coordinates import coordinates_of
from .eigenvalues import tolerance
from .operating_points import Conditions, OperatingPoints, operating_points

#: Residual of an equilibrium, relative to the largest force.
LARGEST_RESIDUAL = 1e-12
#: Control error of an equilibrium that is integrated, rad or m.
LARGEST_ERROR = 1e-12
#: Largest residual of the constraints of positions that are held, rad or m.
LARGEST_GAP = 1e-9
#: Largest change of an angle in one step, rad.
LARGEST_TURN = 0.5
#: Stiffness below this share of the largest one is round-off.
LEAST_STIFFNESS = 1e-13
#: Largest step along an eigenvector, in scaled coordinates, if nothing resists the force.
LARGEST_STEP = 1e6
#: Smallest stiffness, relative to the moments that are not balanced.
DAMPING = 0.1
#: Below this relative residual, the complete derivative of the forces determines the steps.
NEAR = 1e-4
#: Share of the force along a step that may act against it at its end.
OVERSHOOT = 0.5
MOST_HALVINGS = 25
#: Growth of a motion that is round-off, relative to the fastest rate.
LEAST_GROWTH = 1e-6


class Reduced(NamedTuple):
    """The equations of the samples in independent coordinates, scaled by the mass matrix.

    `changes` (samples, nv, p) are the changes of the positions by y. `free` (samples, p, p) is the projection onto the
    free directions. `fixed` (samples, p, h) are the directions of the other degrees of freedom. `force` (samples, p)
    are all forces. `largest` (samples,) is the largest unbalanced joint force, N m or N.
    """

    changes: np.ndarray
    free: np.ndarray
    fixed: np.ndarray
    force: np.ndarray
    largest: np.ndarray


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
    """

    def __init__(self, conditions: Conditions, states: list[np.ndarray], t: np.ndarray, held: np.ndarray) -> None:
        self.conditions, self.t, self.held = conditions, t, held
        self.is_prescribed = held_dofs(conditions.actions, conditions.model.nv)  # by drives, (nv,)
        self.q, self.qd, self.tau = states[0], np.zeros_like(states[1]), states[2]
        self.integrals = np.zeros((conditions.samples, conditions.actions.integrals))
        self.fixed = np.concatenate([held, conditions.integrated])
        self.is_turn = np.array([kind != "prismatic" for kind in conditions.model.dof_types])
        self.residual = np.full(conditions.samples, np.inf)
        self.success = np.zeros(conditions.samples, bool)
        self.scale = np.ones(conditions.samples)

    # --- the equations ------------------------------------------------------------------------------------------------

    def points_at(self, q: np.ndarray, tau: np.ndarray) -> OperatingPoints:
        """Return the derivatives of the equations of motion at rest."""
        return operating_points(self.conditions, (q, self.qd, tau), self.integrals, self.t)

    def reduced(self, points: OperatingPoints) -> Reduced:
        """Return the equations in independent coordinates; NaN for samples in singular positions."""
        coordinates = coordinates_of(self.conditions, points)
        p = len(coordinates.positions)
        G = coordinates.of_positions[:, :, :p]
        mass = np.swapaxes(G, 1, 2) @ points.M @ G
        is_regular = np.isfinite(mass).all((1, 2)) & points.is_finite
        safe = np.where(is_regular[:, None, None], mass, np.eye(p))
        changes = G @ np.swapaxes(np.linalg.inv(np.linalg.cholesky(safe)), 1, 2)
        force = np.einsum("sip,si->sp", changes, points.forces)
        finite = np.where(is_regular[:, None, None], changes, 0.0)
        fixed = np.swapaxes(finite[:, self.fixed], 1, 2)
        free = np.broadcast_to(np.eye(p), (len(G), p, p))
        if len(self.fixed):
            free = free - fixed @ np.linalg.pinv(fixed, rcond=1e-10)
        largest = np.zeros(len(G))
        if p:  # joint forces with the same power, without the forces of constraints
            joint_forces = np.einsum("sip,sp->si", points.M @ changes, force)
            largest = abs(joint_forces).max(-1, initial=0.0)
        return Reduced(changes, free, fixed, force, np.where(is_regular, largest, np.inf))

    def balance(self, points: OperatingPoints, reduced: Reduced) -> None:
        """Add the forces that hold the fixed degrees of freedom to tau, and to the integrals."""
        m = self.integrals.shape[1]
        if not len(self.fixed):
            return
        by_integrals = np.einsum("sip,sim->spm", reduced.changes, points.C)
        by_forces = np.swapaxes(reduced.changes[:, self.held], 1, 2)
        columns = np.concatenate([by_integrals, by_forces], 2)
        is_finite = np.isfinite(columns).all((1, 2)) & np.isfinite(reduced.force).all(-1)
        columns = np.where(is_finite[:, None, None], columns, 0.0)
        force = np.where(is_finite[:, None], reduced.force, 0.0)
        found = -np.einsum("smp,sp->sm", np.linalg.pinv(columns, rcond=1e-10), force)
        self.integrals += found[:, :m]
        self.tau[:, self.held] += found[:, m:]

    def stiffness(self, points: OperatingPoints, reduced: Reduced) -> np.ndarray:
        """Return the derivative of minus the forces, in scaled coordinates, with the forces balanced."""
        balanced = np.where(self.is_prescribed, 0.0, self.tau - np.nan_to_num(points.forces))
        K = self.points_at(self.q, balanced).K
        self.scale = np.maximum(abs(np.nan_to_num(K)).max((1, 2), initial=0.0), abs(self.tau).max(-1, initial=0.0))
        return np.swapaxes(reduced.changes, 1, 2) @ K @ reduced.changes

    # --- the search ---------------------------------------------------------------------------------------------------

    def run(self, most: int) -> None:
        """Search for at most so many steps."""
        self.start()
        if not self.conditions.samples:
            return
        points = self.points_at(self.q, self.tau)
        _refuse_moving(self.conditions, points)
        best = np.full(self.conditions.samples, np.inf)
        for iteration in range(most + 1):
            reduced = self.reduced(points)
            self.balance(points, reduced)
            if len(self.fixed):
                points = self.points_at(self.q, self.tau)
                reduced = self.reduced(points)
            K = self.stiffness(points, reduced)
            error = abs(points.error).max(-1, initial=0.0)
            self.residual = np.where(error > LARGEST_ERROR, np.inf, reduced.largest)
            self.success = self.residual <= LARGEST_RESIDUAL * self.scale
            improves = ~(self.residual > 0.5 * best)
            best = np.fmin(best, self.residual)
            is_active = np.isfinite(reduced.largest) & ~(self.success & ~improves) & (self.residual > 0.0)
            if iteration == most or not is_active.any():
                break
            points = self.move(points, reduced, K, is_active)

    def start(self) -> None:
        """Assemble closed chains."""
        conditions = self.conditions
        self.q = self.closed(operating_positions(conditions, self.q, self.t)) if conditions.samples else self.q

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

    def move(self, points: OperatingPoints, reduced: Reduced, K: np.ndarray, is_active: np.ndarray) -> OperatingPoints:
        """Move the active samples by one step, and return the derivatives there."""
        model = self.conditions.model
        step = np.zeros_like(reduced.force)
        step[is_active] = _steps(K[is_active], _of(reduced, is_active), self.scale[is_active], self.is_turn)
        if len(self.conditions.integrated):  # towards the references of the controllers
            error = np.zeros((len(step), len(self.fixed)))
            error[:, len(self.held) :] = points.error
            pulled = np.linalg.pinv(np.swapaxes(reduced.fixed, 1, 2), rcond=1e-10) @ error[:, :, None]
            step = np.where(is_active[:, None], step + pulled[:, :, 0], 0.0)
        change = (np.where(np.isfinite(reduced.changes), reduced.changes, 0.0) @ step[:, :, None])[:, :, 0]
        change[:, self.held] = 0.0  # without round-off
        turn = abs(change[:, self.is_turn]).max(-1, initial=0.0)
        share = np.minimum(1.0, LARGEST_TURN / np.maximum(turn, LARGEST_TURN))
        along = np.einsum("sp,sp->s", reduced.force, step)
        size = np.linalg.norm(np.einsum("spr,sr->sp", reduced.free, reduced.force), axis=-1)
        start, is_open = self.q, is_active.copy()
        for halving in range(MOST_HALVINGS):
            moved = model.integrate(start, np.where(is_active, share, 0.0)[:, None] * change)
            self.q = self.closed(np.where(is_active[:, None], moved, start))
            found = self.points_at(self.q, self.tau)
            after = self.reduced(found)
            if len(self.conditions.integrated) or halving == MOST_HALVINGS - 1:
                is_open &= ~np.isfinite(after.largest)
            else:
                at_end = np.einsum("si,si->s", found.forces, change)
                free_size = np.linalg.norm(np.einsum("spr,sr->sp", after.free, after.force), axis=-1)
                is_open &= ~((at_end >= -OVERSHOOT * along) | (free_size <= 0.9 * size))
            if not is_open.any():
                break
            share = np.where(is_open, 0.5 * share, share)
        return found

    def is_stable(self) -> np.ndarray:
        """Whether no small motion of the free directions grows, (samples,)."""
        is_stable = np.zeros(self.conditions.samples, bool)
        chosen = np.flatnonzero(self.success)
        if not len(chosen):
            return is_stable
        points = self.points_at(self.q, self.tau)
        changes = self.reduced(points).changes
        if not len(self.held):
            is_stable[chosen] = self._are_stable(points, changes[chosen], chosen)
            return is_stable
        for k in chosen:  # an orthonormal basis of the directions in which the held joints stay
            left, values, _ = np.linalg.svd(changes[k][self.held].T)
            free = changes[k] @ left[:, int((values > 1e-10).sum()) :]
            is_stable[k] = self._are_stable(points, free[None], np.array([k]))[0]
        return is_stable

    def _are_stable(self, points: OperatingPoints, Z: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Whether no small motion grows in the directions Z (chosen samples, nv, p), scaled by the mass matrix."""
        K, D, C = (np.swapaxes(Z, 1, 2) @ x[chosen] for x in (points.K, points.D, points.C))
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


def operating_positions(conditions: Conditions, q: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return positions (samples, nq) with the prescribed ones."""
    q = q.copy()
    states = q[:, None], np.zeros((len(q), 1, conditions.model.nv))
    set_prescribed_states(
        conditions.model, conditions.drives, t.reshape(*conditions.batch, 1), states, conditions.batch
    )
    return q


def _refuse_moving(conditions: Conditions, points: OperatingPoints) -> None:
    """Refuse prescribed positions that move."""
    moving = np.flatnonzero((points.qd != 0.0).any(0))
    if len(moving):
        model = conditions.model
        joint = model.joint_names[int(model.kernel_model.dofs.body[moving[0]])]
        raise ArgumentError(
            f"equilibrium: PrescribedPosition moves joint {joint!r} at the time t; expected a velocity of zero. Use a "
            "constant signal, or another time"
        )


def _of(reduced: Reduced, chosen: np.ndarray) -> Reduced:
    """Return the equations of some samples."""
    return Reduced(*(x[chosen] for x in reduced))


def _steps(K: np.ndarray, reduced: Reduced, scale: np.ndarray, is_turn: np.ndarray) -> np.ndarray:
    """Return the steps (samples, p) in the free directions.

    `is_turn` (nv,) tells which changes are angles. The stiffness of free and spherical joints contains the moment that
    is not balanced, because their tangent space turns. So smaller stiffness than this moment has no meaning.
    """
    K = reduced.free @ K @ reduced.free
    force = np.einsum("spr,sr->sp", reduced.free, reduced.force)
    values, vectors = np.linalg.eigh((K + np.swapaxes(K, 1, 2)) / 2)
    along = np.einsum("spr,sp->sr", vectors, force)
    least = LEAST_STIFFNESS * abs(values).max(-1, initial=0.0)[:, None]
    is_round_off = abs(along) <= least + LEAST_STIFFNESS * np.linalg.norm(force, axis=-1)[:, None]
    angle = np.sqrt((reduced.changes[:, is_turn] ** 2).sum((1, 2)))  # of a unit step, at most
    moment = DAMPING * angle * np.linalg.norm(force, axis=-1)
    divisors = np.maximum(abs(values), np.maximum(np.maximum(least, moment[:, None]), abs(along) / LARGEST_STEP))
    is_still = ((abs(values) <= least) & is_round_off) | (along == 0.0)
    steps = np.where(is_still, 0.0, along / np.where(is_still, 1.0, divisors))
    found: np.ndarray = np.einsum("spr,sr->sp", vectors, steps)
    is_near = (reduced.largest <= NEAR * scale) & (values >= -least).all(-1)
    if is_near.any():
        newton = np.linalg.pinv(K[is_near], rcond=LEAST_STIFFNESS)
        found[is_near] = (newton @ force[is_near][:, :, None])[:, :, 0]
    return found
