"""`rbchain.analysis.periodic`: periodic motions and their stability, by shooting.

A motion with the period T of the forces repeats if its state x, positions and velocities, satisfies x(T) = x(0). With
the exact derivative M of x(T) with respect to x(0), the monodromy matrix, Newton's steps are

    (M - 1) dx = x(0) - x(T).

If M - 1 is singular, dx is the solution with the smallest norm. A change of the state is multiplied by M in each
period, so the motion is stable if the eigenvalues of M, the Floquet multipliers, have absolute values of at most 1.

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
from ..common.real_arrays import FloatArray, finite_number, whole_number
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
#: Singular values of M - 1 below this share of the largest one are zero.
LEAST_SINGULAR_VALUE = 1e-9
#: A multiplier this far above 1 is round-off.
LEAST_GROWTH = 1e-6


@dataclass(frozen=True, eq=False)
class PeriodicMotion(SampleArrays):
    """The result of `rbchain.analysis.periodic`. `found[i]` is the periodic motion of one sample of a batch.

    Attributes
    ----------
    q, qd : (..., nq) and (..., nv) arrays, rad or m, and rad/s or m/s
        State at the time 0. `Model.simulate(q, qd, period)` is the motion. For samples that failed, the best state of
        the search.
    period : float, s
    monodromy : (..., states, states) array
        The derivative of the state after one period with respect to the state at the time 0.
    multipliers : (..., states) complex array
        Floquet multipliers: the eigenvalues of the monodromy matrix, the largest absolute value first.
    states : tuple of str
        Names of the states: "q NAME" and "qd NAME" for each degree of freedom that is not prescribed.
    residual : (...) array
        The largest difference between the states after one period and at the time 0, in SI units.
    stable : (...) array of bool
        Whether no small change grows: no multiplier has an absolute value above 1 + 1e-6. False for samples that
        failed.
    success : (...) array of bool
        Whether the residual is at most the tolerance.
    """

    q: FloatArray
    qd: FloatArray
    period: float
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
    period: float,
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
    """Find a motion that repeats after a known period, and the stability of this motion.

    Parameters
    ----------
    model : Model
        Without constraints.
    q_guess, qd_guess : (..., nq) and (..., nv) arrays, rad or m, and rad/s or m/s
        State of each sample at the time 0, at which the search starts. The defaults are the neutral positions, at rest.
    period : float, s
        Period of the forces, or a multiple of it. If no force depends on the time, the motion with this period, such as
        a free oscillation with the matching amplitude.
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
        If a shape does not fit, a drive or a force is not supported, the model has constraints, or the forces do not
        repeat after the period.

    Notes
    -----
    Positions must repeat too: a joint that turns by whole turns in a period has no periodic motion here.

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
    period = finite_number("period", period, ArgumentError, above=0.0)
    tolerance = finite_number("tolerance", tolerance, ArgumentError, above=0.0)
    most = whole_number("max_iterations", max_iterations, ArgumentError, least=1)
    names = ("q_guess", "qd_guess", "tau")
    conditions, (q, qd, _), _ = conditions_of(
        "periodic", model, (q_guess, qd_guess, tau), (drives, forces), np.zeros(()), names
    )
    _refuse(conditions)
    is_adaptive = method != "rk4"
    acting = {"tau": tau, "drives": conditions.drives, "forces": forces}
    settings = {"method": method, "step": step, **acting}
    if is_adaptive:
        settings |= {"rtol": 1e-10 if rtol is None else rtol, "atol": 1e-12 if atol is None else atol}
    shooting = _Shooting(conditions, period, settings)
    shooting.search(q, qd, tolerance, most)
    _refuse_other_periods(shooting, acting)
    batch, M = conditions.batch, shooting.monodromy
    multipliers = np.full(M.shape[:2], np.nan, complex)
    is_known = np.isfinite(M).all((1, 2))
    multipliers[is_known] = np.linalg.eigvals(M[is_known])
    multipliers = np.take_along_axis(multipliers, np.argsort(-abs(multipliers), -1), -1)
    success = shooting.residual <= tolerance
    largest = abs(multipliers).max(-1, initial=0.0)
    return PeriodicMotion(
        q=shooting.q.reshape(*batch, model.nq),
        qd=shooting.qd.reshape(*batch, model.nv),
        period=period,
        monodromy=M.reshape(*batch, *M.shape[1:]),
        multipliers=multipliers.reshape(*batch, M.shape[1]),
        states=shooting.states,
        residual=shooting.residual.reshape(batch),
        stable=(success & (largest <= 1.0 + LEAST_GROWTH)).reshape(batch),
        success=success.reshape(batch),
    )


class _Shooting:
    """The search: the best state of each sample, with its residual and its monodromy matrix."""

    def __init__(self, conditions: Conditions, period: float, settings: dict[str, Any]) -> None:
        self.model, self.batch, n = conditions.model, conditions.batch, conditions.model.nv
        self.period, self.settings = period, settings
        positions, velocities = free_dofs(conditions)
        self.chosen = np.concatenate([positions, n + velocities])
        labels = self.model.velocity_labels
        self.states = (*(f"q {labels[i]}" for i in positions), *(f"qd {labels[i]}" for i in velocities))
        self.q: FloatArray = np.zeros((conditions.samples, self.model.nq))
        self.qd: FloatArray = np.zeros((conditions.samples, n))
        self.residual = np.full(conditions.samples, np.inf)
        self.monodromy = np.full((conditions.samples, len(self.chosen), len(self.chosen)), np.nan)

    def search(self, q: FloatArray, qd: FloatArray, tolerance: float, most: int) -> None:
        """Improve the states for at most so many simulations. A step that does not improve a sample is shortened."""
        self.q, self.qd, share = q, qd, np.ones(len(q))
        step = np.zeros((len(q), len(self.chosen)))
        for _ in range(most):
            change, n = np.zeros((len(q), 2 * qd.shape[1])), qd.shape[1]
            change[:, self.chosen] = share[:, None] * step
            q_new, qd_new = self.model.integrate(self.shaped(self.q), self.shaped(change[:, :n])), change[:, n:]
            found = self._after_period(np.reshape(q_new, q.shape), self.qd + qd_new)
            improves = found[2] < self.residual
            self.q[improves], self.qd[improves], self.residual[improves] = (x[improves] for x in found[:3])
            self.monodromy[improves] = found[4][improves]
            share = np.where(improves, 1.0, share / 4.0)
            A = np.where(improves[:, None, None], found[4] - np.eye(len(self.chosen)), 0.0)
            newton = (
                -np.linalg.pinv(A, rcond=LEAST_SINGULAR_VALUE) @ np.where(improves[:, None], found[3], 0.0)[..., None]
            )
            step[improves] = newton[improves, :, 0]
            is_open = (self.residual > 1e-3 * tolerance) & (share > 1e-3)
            step[~is_open] = 0.0
            if not is_open.any():
                break

    def _after_period(self, q: FloatArray, qd: FloatArray) -> tuple[FloatArray, ...]:
        """Return the states, the largest residuals, the residuals (samples, states), and the monodromy matrices."""
        motion = simulate(
            self.model,
            self.shaped(q),
            self.shaped(qd),
            self.period,
            save_at=[0.0, self.period],
            derivatives=("q", "qd"),
            on_failure="ignore",
            **self.settings,
        )
        q_end, qd_end = motion.q[..., -1, :], motion.qd[..., -1, :]
        change = np.concatenate([self.model.difference(self.shaped(q), q_end), qd_end - self.shaped(qd)], -1)
        residuals = change.reshape(len(q), change.shape[-1])[:, self.chosen]
        derivatives = np.concatenate([motion.derivatives[name][..., -1, :, :] for name in ("q", "qd")], -1)
        M = derivatives.reshape(len(q), *derivatives.shape[-2:])[:, self.chosen][:, :, self.chosen]
        return q, qd, abs(residuals).max(-1, initial=0.0), residuals, M

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
    """Raise an error for forces and prescribed motions that do not repeat after the period."""
    q, qd = shooting.shaped(shooting.q), shooting.shaped(shooting.qd)
    for t in shooting.period * np.arange(TIMES_OF_FORCES) / TIMES_OF_FORCES:
        now, later = (accelerations(shooting.model, q, qd, t=x, **acting) for x in (t, t + shooting.period))
        difference = np.nan_to_num(abs(later - now)).max(initial=0.0)
        if difference > LARGEST_DIFFERENCE * max(1.0, np.nan_to_num(abs(now)).max(initial=0.0)):
            raise ArgumentError(
                f"period is {shooting.period:g} s, but the accelerations by the forces at {t:g} s and one period later "
                f"differ by {difference:.2g}; expected the period of the forces, or a multiple of it"
            )
