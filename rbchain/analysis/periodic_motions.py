"""`rbchain.analysis.periodic`: periodic motions and their stability, by shooting.

A motion with the period T of the forces repeats if its state x, positions and velocities, satisfies x(T) = x(0). With
the exact derivative M of x(T) with respect to x(0), the monodromy matrix, Newton's steps are

    (M - 1) dx = x(0) - x(T).

If M - 1 is singular, dx is the solution with the smallest norm. If no force depends on the time, T can be unknown, too.
With the rates f of the states at the start and at the end, Newton's steps are then

    (M - 1) dx + f(T) dT = x(0) - x(T),   f(0) . dx = 0.

The second equation keeps the phase. One multiplier is 1, for a shift of the time. A step that changes a large share of
the motion has no meaning: without damping, the amplitude is not determined, and the matrix is nearly singular. A step
of smaller norm then ignores small singular values.

A change of the state is multiplied by M in each period, so the motion is stable if the eigenvalues of M, the Floquet
multipliers, have absolute values of at most 1.

Source: Nayfeh and Balachandran (1995), *Applied Nonlinear Dynamics*, sections 3.2 and 6.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..acting.numeric_fields import Drive, Force
from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray, excerpt, finite_number, real_array, whole_number
from ..errors import ArgumentError
from ..model.arguments import SampleArrays
from ..simulate.accelerations import accelerations
from ..simulate.methods import MethodName
from ..simulate.simulation import simulate
from .coordinates import free_dofs
from .operating_points import Conditions, conditions_of

if TYPE_CHECKING:
    from ..facade.model import Model

#: Number of times at which the forces are compared with those one period later, and their largest relative difference.
TIMES_OF_FORCES, LARGEST_DIFFERENCE = 8, 1e-6
#: Singular values of M - 1 below this fraction of the largest one are zero.
LEAST_SINGULAR_VALUE = 1e-9
#: Largest change of the state by a step of the search for the period, relative to the change by its rate in a period.
LARGEST_STEP = 0.03
#: Singular values below this fraction of the largest one do not contribute to the step that replaces a larger one.
SMALL_SINGULAR_VALUE = 0.05
#: A multiplier this far above 1 is round-off.
LEAST_GROWTH = 1e-6


@dataclass(frozen=True, eq=False)
class PeriodicMotion(SampleArrays):
    """The result of `rbchain.analysis.periodic`. `found[i]` is the periodic motion of one sample of a batch.

    Attributes
    ----------
    q, qd : (..., nq) and (..., nv) arrays, rad or m, and rad/s or m/s
        State at time 0. `Model.simulate(q, qd, period)` computes the motion. For samples that failed, the best state of
        the search.
    period : float, or (...) array if it was unknown, s
    monodromy : (..., states, states) array
        The derivative of the state after one period with respect to the state at time 0.
    multipliers : (..., states) complex array
        Floquet multipliers: the eigenvalues of the monodromy matrix, the largest absolute value first.
    states : tuple of str
        Names of the states: "q NAME" and "qd NAME" for each degree of freedom that is not prescribed.
    residual : (...) array
        The largest difference between the states after one period and at time 0, in SI units.
    stable : (...) array of bool
        Whether the motion is stable: no multiplier has an absolute value above 1 + 1e-6. With an unknown period, the
        multiplier nearest to 1, which belongs to a shift in time, is ignored. False for samples that failed.
    success : (...) array of bool
        Whether the residual is at most the tolerance. With an unknown period, an equilibrium is not a solution.
    """

    q: FloatArray
    qd: FloatArray
    period: float | FloatArray
    monodromy: FloatArray
    multipliers: npt.NDArray[np.complex128]
    states: tuple[str, ...]
    residual: FloatArray
    stable: npt.NDArray[np.bool_]
    success: npt.NDArray[np.bool_]


@explains_calls(contacts="forces", q="q_guess", qd="qd_guess", duration="period", T="period")
def periodic(
    model: Model,
    q_guess: npt.ArrayLike | None = None,
    qd_guess: npt.ArrayLike = 0.0,
    *,
    period: float | None = None,
    period_guess: npt.ArrayLike | None = None,
    tau: npt.ArrayLike = 0.0,
    drives: Sequence[Drive] | None = None,
    forces: Sequence[Force] = (),
    method: MethodName = "rk45",
    step: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 30,
) -> PeriodicMotion:
    """Find a motion that repeats after a known or unknown period, and the stability of this motion.

    Parameters
    ----------
    model : Model
        Without constraints.
    q_guess, qd_guess : (..., nq) and (..., nv) arrays, rad or m, and rad/s or m/s
        State of each sample at time 0, from which the search starts. By default, it is at rest in the neutral
        positions.
    period : float, s, optional
        Period of the forces, or a multiple of it. If no force depends on the time, the period of the motion, such as a
        free oscillation with the matching amplitude.
    period_guess : float or (...) array, s, optional
        Instead of `period`, if no force depends on the time: where the search for the period of each sample starts.
    tau, drives, forces
        As for `simulate`, with the limits of `linearize`. Controllers with an integral gain are not supported.
    method, step, rtol, atol
        As for `simulate`: "rk45", "dop853" or "rk4". The defaults of rtol and atol are 1e-10 and 1e-12.
    tolerance : float
        Largest residual, in rad or m, and rad/s or m/s.
    max_iterations : int
        Largest number of simulations.

    Returns
    -------
    PeriodicMotion
        `success` is False for each sample, or a single state, without a periodic motion near the guess.

    Raises
    ------
    ArgumentError
        If a shape does not fit, a drive or a force is not supported, or the model has constraints. Also if the forces
        do not repeat after the period, or depend on the time while the period is unknown.

    Notes
    -----
    With an unknown period, each sample is simulated on its own. The search may find a multiple of the period.

    Positions must repeat too: a motion in which a joint makes full turns in a period does not count as periodic.

    Examples
    --------
    A damped rod without gravity on a spring, under a force of 1 N m with 2 rad/s: I x'' + d x' + c x = sin(2 t).

    >>> import numpy as np, rbchain as rb
    >>> rod = rb.Model.serial_chain(1, length=1.5, mass=2.0, gravity=(0, 0, 0)).replace(stiffness=[9], damping=[1])
    >>> push = rb.PrescribedForce("link1", rb.Signal.sines(1.0, 2.0))
    >>> found = rb.analysis.periodic(rod, period=np.pi, drives=[push])
    >>> found.q.round(6).tolist(), found.qd.round(6).tolist(), bool(found.stable)
    ([-0.153846], [0.461538], True)
    """
    if (period is None) == (period_guess is None):
        raise ArgumentError(
            f"period is {excerpt(period)} and period_guess is {excerpt(period_guess)}; expected one of the two. Give "
            "the period of the forces, or period_guess if no force depends on the time"
        )
    is_known = period is not None
    guess = real_array("period_guess", period_guess, ArgumentError) if period is None else np.zeros(())
    if period is not None:
        period = finite_number("period", period, ArgumentError, above=0.0)
    elif not (np.isfinite(guess).all() and (guess > 0.0).all()):
        raise ArgumentError(f"period_guess is {excerpt(period_guess)}; expected finite numbers above 0 s")
    tolerance = finite_number("tolerance", tolerance, ArgumentError, above=0.0)
    most = whole_number("max_iterations", max_iterations, ArgumentError, least=1)
    names = ("q_guess", "qd_guess", "tau")
    conditions, (q, qd, _), _ = conditions_of(
        "periodic", model, (q_guess, qd_guess, tau), (drives, forces), np.zeros(guess.shape), names
    )
    _refuse(conditions)
    is_adaptive = method != "rk4"
    acting = {"tau": tau, "drives": conditions.drives, "forces": forces}
    settings = {"method": method, "step": step, **acting}
    if is_adaptive:
        settings |= {"rtol": 1e-10 if rtol is None else rtol, "atol": 1e-12 if atol is None else atol}
    periods = np.broadcast_to(guess if period is None else period, conditions.batch).reshape(-1).astype(float)
    shooting = _Shooting(conditions, periods, is_known, settings)
    shooting.search(q, qd, tolerance, most)
    _refuse_other_periods(shooting, acting)
    batch, M = conditions.batch, shooting.monodromy
    multipliers = _multipliers(M)
    success = (shooting.residual <= tolerance) & ~shooting.is_equilibrium(tolerance)
    largest = _largest_growth(multipliers, is_known)
    return PeriodicMotion(
        q=shooting.q.reshape(*batch, model.nq),
        qd=shooting.qd.reshape(*batch, model.nv),
        period=shooting.periods.reshape(batch) if period is None else period,
        monodromy=M.reshape(*batch, *M.shape[1:]),
        multipliers=multipliers.reshape(*batch, M.shape[1]),
        states=shooting.states,
        residual=shooting.residual.reshape(batch),
        stable=(success & (largest <= 1.0 + LEAST_GROWTH)).reshape(batch),
        success=success.reshape(batch),
    )


def _multipliers(M: np.ndarray) -> np.ndarray:
    """Return the eigenvalues (samples, n) of monodromy matrices (samples, n, n), the largest first; NaN for NaN."""
    multipliers = np.full(M.shape[:2], np.nan, complex)
    is_finite = np.isfinite(M).all((1, 2))
    multipliers[is_finite] = np.linalg.eigvals(M[is_finite])
    return np.take_along_axis(multipliers, np.argsort(-abs(multipliers), -1), -1)


def _largest_growth(multipliers: np.ndarray, is_known: bool) -> np.ndarray:
    """Return the largest growth of a deviation in a period (samples,). `is_known` states if the period is known."""
    growths = abs(multipliers)
    if not is_known and growths.size:  # a shift of the time does not grow
        np.put_along_axis(growths, abs(np.nan_to_num(multipliers) - 1.0).argmin(-1)[:, None], 0.0, -1)
    return np.asarray(growths.max(-1, initial=0.0))


class _Shooting:
    """The search: the best state of each sample, with its period, its residual and its monodromy matrix."""

    def __init__(self, conditions: Conditions, periods: FloatArray, is_known: bool, settings: dict[str, Any]) -> None:
        self.model, self.batch, n = conditions.model, conditions.batch, conditions.model.nv
        self.periods, self.is_known, self.settings = periods, is_known, settings
        positions, velocities = free_dofs(conditions)
        self.chosen = np.concatenate([positions, n + velocities])
        labels = self.model.velocity_labels
        self.states = (*(f"q {labels[i]}" for i in positions), *(f"qd {labels[i]}" for i in velocities))
        self.q: FloatArray = np.zeros((conditions.samples, self.model.nq))
        self.qd: FloatArray = np.zeros((conditions.samples, n))
        self.residual = np.full(conditions.samples, np.inf)
        #: Changes of the positions that drives prescribe in a period (samples, positions).
        self.drift: FloatArray = np.zeros((conditions.samples, n - len(positions)))
        self.monodromy = np.full((conditions.samples, len(self.chosen), len(self.chosen)), np.nan)

    def search(self, q: FloatArray, qd: FloatArray, tolerance: float, most: int) -> None:
        """Improve the states for at most so many simulations. A step that does not improve a sample is shortened."""
        self.q, self.qd, share = q, qd, np.ones(len(q))
        states = len(self.chosen)
        step = np.zeros((len(q), states + 1))  # the last column is the period
        for _ in range(most):
            change, n = np.zeros((len(q), 2 * qd.shape[1])), qd.shape[1]
            change[:, self.chosen] = share[:, None] * step[:, :states]
            periods = np.maximum(self.periods + share * step[:, states], 0.5 * self.periods)
            q_new, qd_new = self.model.integrate(self.shaped(self.q), self.shaped(change[:, :n])), change[:, n:]
            found = self._after_period(np.reshape(q_new, q.shape), self.qd + qd_new, periods)
            improves = found[2] < self.residual
            self.q[improves], self.qd[improves], self.residual[improves] = (x[improves] for x in found[:3])
            self.monodromy[improves], self.periods[improves] = found[4][improves], periods[improves]
            self.drift[improves] = found[7][improves]
            share = np.where(improves, 1.0, share / 4.0)
            A, right = self._equations(*found)
            A, right = np.where(improves[:, None, None], A, 0.0), np.where(improves[:, None], right, 0.0)
            newton = self._solved(A, right, LEAST_SINGULAR_VALUE)
            if not self.is_known:
                most_of_step = LARGEST_STEP * self.periods * abs(self._rates(self.q, self.qd)).max(-1, initial=0.0)
                is_long = abs(newton[:, :states]).max(-1, initial=0.0) > most_of_step
                newton[is_long] = self._solved(A[is_long], right[is_long], SMALL_SINGULAR_VALUE)
            step[improves, : A.shape[2]] = newton[improves]
            is_open = (self.residual > 1e-3 * tolerance) & (share > 1e-3)
            step[~is_open] = 0.0
            if not is_open.any():
                break

    @staticmethod
    def _solved(A: FloatArray, right: FloatArray, least: float) -> FloatArray:
        """Return the solutions of smallest norm, without singular values below a fraction of the largest one."""
        found: FloatArray = (np.linalg.pinv(A, rcond=least) @ right[..., None])[..., 0]
        return found

    def _equations(self, *found: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the matrices and the right-hand sides of Newton's steps, from the results of `_after_period`."""
        q, qd, _, residuals, M, q_end, qd_end, _ = found
        A = M - np.eye(M.shape[1])
        if self.is_known:
            return A, -residuals
        bordered = np.zeros((len(A), A.shape[1] + 1, A.shape[2] + 1))
        bordered[:, :-1, :-1], bordered[:, :-1, -1] = A, self._rates(q_end, qd_end)
        bordered[:, -1, :-1] = self._rates(q, qd)
        return bordered, np.concatenate([-residuals, np.zeros((len(A), 1))], 1)

    def _rates(self, q: FloatArray, qd: FloatArray) -> FloatArray:
        """Return the rates (samples, states) of states at time 0."""
        acting = {name: self.settings[name] for name in ("tau", "drives", "forces")}
        qdd = accelerations(self.model, self.shaped(q), self.shaped(qd), **acting).reshape(qd.shape)
        return np.concatenate([qd, qdd], -1)[:, self.chosen]

    def is_equilibrium(self, tolerance: float) -> npt.NDArray[np.bool_]:
        """Whether the states hardly move, if the period is unknown, (samples,)."""
        if self.is_known:
            return np.zeros(len(self.q), bool)
        moved = abs(self._rates(self.q, self.qd)).max(-1, initial=0.0) * self.periods
        found: npt.NDArray[np.bool_] = moved <= 1e3 * tolerance
        return found

    def _after_period(self, q: FloatArray, qd: FloatArray, periods: FloatArray) -> tuple[FloatArray, ...]:
        """Return the states, the largest residuals, the residuals (samples, states), and the monodromy matrices.

        The states contain the positions and velocities that drives prescribe at time 0. The states after one period
        follow, and the changes of the positions that drives prescribe.
        """
        n = qd.shape[1]
        if self.is_known:
            period = float(periods[0]) if len(periods) else 1.0
            found = self._simulated(self.model, self.shaped(q), self.shaped(qd), period, self.settings)
        else:
            parts = [self._simulated(*self._sample(i, q, qd, periods)) for i in range(len(q))]
            empty = [np.zeros((0, *shape)) for shape in (*2 * ((self.model.nq,), (n,)), (2 * n, 2 * n))]
            found = tuple(np.stack(x) for x in zip(*parts, strict=True)) if parts else tuple(empty)
        shapes = (*2 * (q.shape[1:], (n,)), (2 * n, 2 * n))
        q, qd, q_end, qd_end, derivatives = (x.reshape(len(q), *shape) for x, shape in zip(found, shapes, strict=True))
        change = self.model.difference(self.shaped(q), self.shaped(q_end)).reshape(qd.shape)
        drift = np.delete(change, self.chosen[self.chosen < n], axis=1)
        residuals = np.concatenate([change, qd_end - qd], -1)[:, self.chosen]
        M = derivatives[:, self.chosen][:, :, self.chosen]
        return q, qd, abs(residuals).max(-1, initial=0.0), residuals, M, q_end, qd_end, drift

    def _sample(self, i: int, q: FloatArray, qd: FloatArray, periods: FloatArray) -> tuple[Any, ...]:
        """Return the arguments of `_simulated` for one sample."""
        place, batch = np.unravel_index(i, self.batch), self.batch
        settings = dict(self.settings)
        if batch:
            settings["tau"] = np.broadcast_to(self.settings["tau"], (*batch, self.model.nv))[place]
            for name in ("drives", "forces"):
                settings[name] = [x.of_sample(place, batch) for x in self.settings[name]]
        model = self.model[place] if self.model.batch_shape else self.model
        return model, q[i], qd[i], float(periods[i]), settings

    def _simulated(
        self, model: Model, q: FloatArray, qd: FloatArray, period: float, settings: dict[str, Any]
    ) -> tuple[FloatArray, ...]:
        """Return the states at the start and after a period, and the derivatives (..., 2 nv, 2 nv) of the latter."""
        motion = simulate(
            model, q, qd, period, save_at=[0.0, period], derivatives=("q", "qd"), on_failure="ignore", **settings
        )
        derivatives = np.concatenate([motion.derivatives[name][..., -1, :, :] for name in ("q", "qd")], -1)
        return motion.q[..., 0, :], motion.qd[..., 0, :], motion.q[..., -1, :], motion.qd[..., -1, :], derivatives

    def shaped(self, x: FloatArray) -> FloatArray:
        """Return an array (samples, n) with the axes of the batch."""
        return x.reshape(*self.batch, x.shape[-1])


def _refuse(conditions: Conditions) -> None:
    """Raise an error for constraints, and controllers whose integrals are part of the state."""
    if conditions.has_loops:
        raise ArgumentError(
            "periodic does not support closed loops; expected a model without constraints. Simulate until the motion "
            "repeats"
        )
    if conditions.actions.integrals:
        raise ArgumentError(
            "periodic does not support drives with an integral gain, whose integral is not part of the state; expected "
            "ki = 0. Add the constant force that balances the motion as `tau` or feedforward"
        )


def _refuse_other_periods(shooting: _Shooting, acting: dict[str, Any]) -> None:
    """Raise an error for forces and prescribed motions that do not repeat after the period, or depend on the time."""
    q, qd = shooting.shaped(shooting.q), shooting.shaped(shooting.qd)
    period = float(shooting.periods.max(initial=0.0))
    drift = float(np.nan_to_num(abs(shooting.drift)).max(initial=0.0))
    if drift > LARGEST_DIFFERENCE:
        raise ArgumentError(
            f"period is {period:g} s, but a prescribed position differs by {drift:.2g} one period later; expected "
            "prescribed motions that repeat after the period"
        )
    later_by = period if shooting.is_known else period * (np.sqrt(2.0) - 1.0)  # no multiple of a period of forces
    for t in period * np.arange(TIMES_OF_FORCES) / TIMES_OF_FORCES:
        now, later = (accelerations(shooting.model, q, qd, t=x, **acting) for x in (t, t + later_by))
        difference = np.nan_to_num(abs(later - now)).max(initial=0.0)
        if difference <= LARGEST_DIFFERENCE * max(1.0, np.nan_to_num(abs(now)).max(initial=0.0)):
            continue
        if not shooting.is_known:
            raise ArgumentError(
                f"period_guess: the accelerations due to the forces at {t:g} s and at {t + later_by:g} s differ by "
                f"{difference:.2g}; expected forces that do not depend on the time. Use period instead"
            )
        raise ArgumentError(
            f"period is {period:g} s, but the accelerations due to the forces at {t:g} s and one period later "
            f"differ by {difference:.2g}; expected the period of the forces, or a multiple of it"
        )
