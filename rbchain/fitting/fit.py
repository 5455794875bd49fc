"""Estimation of parameters from measured trajectories: nonlinear least squares with the derivatives of `simulate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..acting.numeric_fields import Drive, Force
from ..common.calls import explains_calls
from ..common.real_arrays import FloatArray, finite_number, whole_number
from ..errors import ArgumentError, SimulationError
from ..facade.states import generator_of
from .fitted_entries import checked_names, fitted_entries
from .limits import Bounds, priors_of
from .measurements import Measured, Measurement, motions_of
from .problem import Problem
from .result import Fit, fit_of

if TYPE_CHECKING:
    from ..facade.model import Model

MAX_ITERATIONS, CONVERGED = 40, 1e-6


@explains_calls()
def fit(
    model: Model,
    motion: Measured | list[Measured],
    parameters: Sequence[str],
    *,
    drives: Sequence[Drive] | None = None,
    forces: Sequence[Force] = (),
    tau: npt.ArrayLike = 0.0,
    noise: npt.ArrayLike | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    priors: Mapping[str, tuple[float, float]] | None = None,
    starts: int = 8,
    spread: float = 0.2,
    rng: np.random.Generator | int | None = 0,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_step: float | None = None,
) -> Fit:
    """Estimate parameters of a model from measured trajectories.

    The method is nonlinear least squares with the derivatives of `simulate(..., derivatives=...)`. All starting
    points are simulated in one batch. Levenberg-Marquardt steps improve all of them, and SciPy's
    `least_squares` completes the best one.

    Parameters
    ----------
    model : Model
        The model with initial guesses of the parameters.
    motion : Trajectory, tuple (t, q, qd), Measurement, or list of them
        The measured trajectory of one sample: times (times,) that start at 0, positions (times, nq) and velocities
        (times, nv). NaN marks missing values. If qd is None, no velocities were measured, and the initial velocity is
        zero. The trajectories of a list share the parameters. Their times and initial states may differ, and with
        `Measurement` also their drives, forces and `tau`.
    parameters : sequence of str
        Names of fields, such as "mass" for all masses, or paths, such as "link2.mass" or "link[2-6].cg.x", as in
        `simulate(..., derivatives=...)`. Rotations, such as "axis", are not fitted. Paths such as "cord.stiffness"
        select parameters of a `SpringDamper` in `forces` by its name. "q" and "qd" stand for the initial state of each
        trajectory. Without them, a simulation starts exactly from the first measured state. In closed loops, they are
        the initial state in independent coordinates, and the others follow from the constraints. Positive parameters
        are fitted as logarithms, and entries that are zero stay zero. "inertia" is fitted in the log-Cholesky form, so
        the tensor is always physically consistent.
    drives, forces, tau
        As for `simulate`, for trajectories without their own drives, forces or `tau`. Random signals are the same as
        in the first sample of a simulation.
    noise : float or (2 nv,) array, optional
        Standard deviation of the measured positions and velocities. If not given, it is estimated from the residuals,
        and equal for all of them.
    bounds : dict of (lower, upper), optional
        Smallest and largest values of parameters, by fields or paths, in SI units. They must contain the initial
        guesses. An infinite value means that there is no bound. The standard deviations do not take bounds into
        account.
    priors : dict of (mean, standard deviation), optional
        Prior knowledge of parameters, by fields or paths, in SI units. Priors count as measurements and need `noise`.
    starts : int
        Number of starting points: the parameters of the model, and random ones near them.
    spread : float
        Relative standard deviation of the random starting points.
    rng : numpy Generator or seed
        Source of the starting points.
    rtol, atol : float
        Tolerances of the simulations. The defaults are as for `simulate`.
    max_step : float, s, optional
        Longest step of the simulations, as in `Model.simulate`.

    Returns
    -------
    Fit

    Raises
    ------
    ArgumentError, ModelError
        If an argument is invalid, or `simulate` does not support the derivatives.
    SimulationError
        If no starting point can be simulated to the end.

    References
    ----------
    Rucker and Wensing (2022), "Smooth parameterization of rigid-body inertia", for the log-Cholesky form. More (1978),
    "The Levenberg-Marquardt algorithm".

    Examples
    --------
    A torque of 1 N m accelerates a rod from rest, q = 0.4 t^2. Its inertia about the axis is 1.25 kg m^2. The tensor of
    the model contributes 0.25 kg m^2, and the mass, 0.5 m from the axis, contributes the rest:

    >>> import numpy as np, rbchain as rb
    >>> rod = rb.Model.serial_chain(1, length=1.0, mass=3.0, gravity=(0, 0, 0))
    >>> t = np.linspace(0, 1, 11)
    >>> fit = rb.fit(rod, (t, 0.4 * t[:, None] ** 2, None), ["mass"], tau=1.0)
    >>> {name: round(value, 6) for name, value in fit.values.items()}
    {'link1.mass': 4.0}
    """
    from scipy.optimize import least_squares

    names = checked_names(model, parameters)
    starts = whole_number("starts", starts, ArgumentError, least=1, most=100_000)
    spread = finite_number("spread", spread, ArgumentError, least=0.0)
    common = Measurement((), (), tau=tau, drives=drives, forces=forces, noise=noise)
    model.kernel_model.refuse_compliance("fit")
    motions = motions_of(model, motion, common)
    entries = fitted_entries(model, names, motions[0].actions.forces)
    problem = Problem(model, motions, entries, {"rtol": rtol, "atol": atol, "max_step": max_step})
    limits, problem.priors = Bounds(problem, bounds), priors_of(problem, priors)
    if problem.count < problem.size:
        raise ArgumentError(
            f"motion contains {problem.count} measured numbers, fewer than the {problem.size} parameters; pass more "
            "measurements"
        )
    x: FloatArray = np.zeros((starts, problem.size))
    x[1:] = spread * generator_of(rng).normal(size=(starts - 1, problem.size)) * problem.is_varied
    x, costs = improve(problem, np.clip(x, limits.lower, limits.upper), limits)
    if not np.isfinite(costs).any():
        failed = next((one for one in problem.simulated if not one.success), problem.simulated[0])
        raise SimulationError(failed.message, failed)
    best = least_squares(
        lambda x: problem.evaluate(x[None])[0][0],
        x[np.argmin(costs)],
        lambda x: problem.evaluate(x[None])[1][0],
        bounds=(limits.lower, limits.upper),
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
        max_nfev=MAX_ITERATIONS,
    )
    at_bounds, at_limit = limits.reached_by(best.x)
    return fit_of(problem, best.x, costs, at_bounds, _reasons_of_failure(at_limit, best.status == 0))


def improve(problem: Problem, x: FloatArray, limits: Bounds) -> tuple[FloatArray, FloatArray]:
    """Improve all starting points together by Levenberg-Marquardt steps, and return them with their costs."""

    def evaluated(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        residuals, J = problem.evaluate(x)
        costs = 0.5 * np.square(residuals).sum(-1)
        return np.where(np.isfinite(costs), costs, np.inf), residuals, J

    costs, residuals, J = evaluated(x)
    damping = np.full(len(x), 1e-3)
    for _ in range(MAX_ITERATIONS):
        runs = np.isfinite(costs)
        g = (np.swapaxes(J, -1, -2) @ residuals[..., None])[..., 0]
        held = ((x <= limits.lower) & (g > 0.0)) | ((x >= limits.upper) & (g < 0.0))  # the cost decreases outside
        J_used = np.where(runs[:, None, None] & ~held[:, None], J, 0.0)
        H, g = np.swapaxes(J_used, -1, -2) @ J_used, np.where(runs[:, None] & ~held, g, 0.0)
        scale = np.einsum("...ii->...i", H)
        H = H + (damping[:, None] * (scale + 1e-8 * scale.max(-1, keepdims=True) + 1e-300))[..., None] * np.eye(
            x.shape[1]
        )
        steps = -np.linalg.solve(H, g[..., None])[..., 0]
        trial = np.clip(x + steps, limits.lower, limits.upper)
        new = evaluated(trial)
        better = new[0] < costs
        change = np.where(better, (costs - new[0]) / np.maximum(costs, 1e-300), 0.0)
        stalled = ~better & (damping > 1e3)
        x[better], costs[better], residuals[better], J[better] = trial[better], *(part[better] for part in new)
        damping = np.where(better, damping / 5.0, damping * 4.0)
        if (~runs | stalled | (better & (change < CONVERGED)) | (costs <= 0.0)).all():
            break
    return x, costs


def _reasons_of_failure(at_limit: list[str], ends_early: bool) -> str:
    """Describe why the estimates are not a minimum of the cost; empty if they are."""
    found = ""
    if at_limit:
        found += (
            f" The estimates of {', '.join(at_limit)} have the largest allowed difference from their initial guesses: "
            "use better initial guesses, or omit these parameters."
        )
    if ends_early:
        found += " The fit has not converged: use better initial guesses or fewer parameters."
    return found
