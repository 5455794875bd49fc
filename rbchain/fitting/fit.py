"""Estimation of parameters from measured motions, by nonlinear least squares with the derivatives of `simulate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..acting.numeric_fields import Drive, Force
from ..acting.random_actions import actions_of_samples
from ..common.calls import explains_calls
from ..common.misspelt import SuggestsAttributes, did_you_mean
from ..common.pickles import PickledByName
from ..common.real_arrays import FloatArray, excerpt, finite_number, real_array, whole_number
from ..errors import ArgumentError, ModelError, SimulationError, UnknownNameError
from ..facade.states import generator_of
from ..model.parameter_paths import MASS_AND_INERTIA
from ..model.paths import Match
from ..simulate.sensitivities import KINDS, parameters_at
from ..simulate.trajectory import Trajectory
from .problem import Measurements, Problem
from .variables import EntryVariables

if TYPE_CHECKING:
    from ..facade.model import Model

#: A variable counts as at its limit if its change is at least this share of the largest change.
SHARE_OF_LIMIT = 0.999
#: A combination with a singular value below this share of the largest one does not change the motion.
NULL_SHARE = 1e-9
#: Shares of a combination that its description omits.
SMALL_SHARE = 0.05
#: Residuals, divided by the noise, above which the model does not explain the motion.
LARGEST_MISFIT = 2.0
MAX_ITERATIONS, CONVERGED = 40, 1e-6


@dataclass(frozen=True, eq=False)
class Fit(PickledByName, SuggestsAttributes):
    """The result of `rb.fit`.

    Attributes
    ----------
    model : Model
        The model with the estimated parameters.
    names : tuple of str
        Names of the p estimated numbers, such as "link2.mass".
    values, standard_deviations : dict of str to float
        The estimates and their standard deviations by these names, in SI units. A standard deviation is infinite if
        the data do not determine the number. The numbers of "q" and "qd" are the initial state. For free and spherical
        joints, "q" is the displacement from the measured position in body axes, as in `Model.integrate`.
    covariance : (p, p) array
        Covariance of the estimates in the order of `names`, for errors of the data that are independent of each other.
        Combinations in `undetermined` are not included.
    success : bool
        Whether the fit has converged, no parameter is at the limit of its change, and the residuals are at most twice
        the noise, if it was given.
    message : str
        The size of the residuals, whether the data determine all parameters, and a remedy if `success` is False.
    undetermined : tuple of str
        Combinations of relative changes that the data do not determine, such as "0.71 link1.mass - 0.71 link2.mass".
        Their standard deviation exceeds 100 %, or they do not change the motion at all. They approximately keep their
        first guesses.
    residuals : (times, 2 nv) array
        Fitted minus measured positions and velocities; NaN where nothing was measured.
    motion : Trajectory
        The motion of the fitted model.
    drives : tuple
        The drives with the estimated gains.
    costs : (starts,) array
        Half the sum of squared residuals, divided by the noise, at the result of each starting point.
    """

    model: Model
    names: tuple[str, ...]
    values: dict[str, float]
    standard_deviations: dict[str, float]
    covariance: FloatArray
    success: bool
    message: str
    undetermined: tuple[str, ...]
    residuals: FloatArray
    motion: Trajectory
    drives: tuple[Drive, ...]
    costs: FloatArray

    def __repr__(self) -> str:
        numbers = [f"{name} = {x:.6g} +- {self.standard_deviations[name]:.2g}" for name, x in self.values.items()]
        words = f"undetermined: {'; '.join(self.undetermined)}" if self.undetermined else ""
        return "\n".join(filter(None, ["Fit", *numbers, self.message, words]))


@explains_calls()
def fit(
    model: Model,
    motion: Trajectory | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike | None],
    parameters: Sequence[str],
    *,
    drives: Sequence[Drive] | None = None,
    forces: Sequence[Force] = (),
    tau: npt.ArrayLike = 0.0,
    noise: npt.ArrayLike | None = None,
    starts: int = 8,
    spread: float = 0.2,
    rng: np.random.Generator | int | None = 0,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_step: float | None = None,
) -> Fit:
    """Estimate parameters of a model from a measured motion.

    The method is nonlinear least squares with the derivatives of `simulate(..., derivatives=...)`. All starting
    points are simulated in one batch. Levenberg-Marquardt steps improve all of them, and SciPy's
    `least_squares` completes the best one.

    Parameters
    ----------
    model : Model
        The model with first guesses of the parameters.
    motion : Trajectory, or tuple (t, q, qd)
        The measured motion of one sample: times (times,) from 0 on, positions (times, nq) and velocities (times, nv).
        NaN marks missing numbers; qd may be None, except for its first row, which is then zero.
    parameters : sequence of str
        Names of fields, such as "mass" for all masses, or paths, such as "link2.mass" or "link[2-6].cg.x", as in
        `simulate(..., derivatives=...)`. "q" and "qd" stand for the initial state. Without
        them, the motion starts exactly at the first measured state. Positive parameters are fitted as logarithms, and
        entries that are zero stay zero. "inertia" is fitted in the log-Cholesky form, so the tensor is always
        physically consistent.
    drives, forces, tau
        The actions on the mechanism, as for `simulate`. Random signals are the same as in the first sample of a
        simulation.
    noise : float or (2 nv,) array, optional
        Standard deviation of the measured positions and velocities. If not given, it is estimated from the residuals,
        and equal for all of them.
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

    fields = _fitted_entries(model, parameters)
    starts = whole_number("starts", starts, ArgumentError, least=1, most=100_000)
    spread = finite_number("spread", spread, ArgumentError, least=0.0)
    data = Measurements(model, motion, noise)
    tau = np.broadcast_to(real_array("tau", tau, ArgumentError), (model.nv,))
    drives = model.drives if drives is None else drives
    drives, forces = actions_of_samples(drives, forces, float(data.t[-1]), np.array(0))
    problem = Problem(
        model, data, fields, tuple(drives), tuple(forces), tau, {"rtol": rtol, "atol": atol, "max_step": max_step}
    )
    if np.count_nonzero(data.weights) < problem.size:
        raise ArgumentError(
            f"the motion contains {np.count_nonzero(data.weights)} numbers, fewer than the {problem.size} parameters; "
            "expected more measurements"
        )
    x: FloatArray = np.zeros((starts, problem.size))
    x[1:] = spread * generator_of(rng).normal(size=(starts - 1, problem.size)) * problem.is_varied
    x, costs = improve(problem, x)
    if not np.isfinite(costs).any():
        raise SimulationError(problem.motion.message, problem.motion)
    best = least_squares(
        lambda x: problem.evaluate(x[None])[0][0],
        x[np.argmin(costs)],
        lambda x: problem.evaluate(x[None])[1][0],
        bounds=(-problem.largest_changes, problem.largest_changes),
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
        max_nfev=MAX_ITERATIONS,
    )
    at_limit = [
        label
        for label, x, largest in zip(problem.labels, best.x, problem.largest_changes, strict=True)
        if abs(x) > SHARE_OF_LIMIT * largest
    ]
    return _result(problem, best.x, noise is None, costs, _reasons_of_failure(at_limit, best.status == 0))


def _fitted_entries(model: Model, parameters: Sequence[str]) -> dict[str, set[int] | None]:
    """Return the fields to fit, with the entries of their flat arrays; None for all.

    Raises an error if `fit` cannot estimate a parameter of this model.
    """
    if isinstance(parameters, str) or not isinstance(parameters, Sequence):
        raise ArgumentError(
            f'parameters is {excerpt(parameters)}; expected a list of names such as ["link2.mass", "damping"]'
        )
    if not parameters:
        raise ArgumentError('parameters is empty; expected names such as ["link2.mass", "damping"]')
    if model.batch_shape:
        raise ModelError(
            f"fit needs one set of parameters, but the model has batch_shape {model.batch_shape}; expected (). Use "
            "model[i]"
        )
    found: dict[str, set[int] | None] = {}
    for name in parameters:
        if name in KINDS:
            entries: dict[str, set[int] | None] = {name: None}
        elif isinstance(name, str) and "." in name:
            matches = parameters_at(model, name)
            if matches[0].field == MASS_AND_INERTIA:
                raise ArgumentError(
                    f"parameters contains {name!r}, which fit does not support; expected the path of the mass, for "
                    "which the inertia tensor does not change, or of the inertia"
                )
            entries = {matches[0].field: {entry for match in matches for entry in _entries_of(match)}}
        else:
            raise UnknownNameError(
                f"parameters contains {excerpt(name)}; expected names among {', '.join(KINDS)}, or paths such as "
                f'"link2.mass"{did_you_mean(str(name), KINDS)}'
            )
        for field, numbers in entries.items():
            if field in found and (numbers is None or numbers & (found[field] or numbers)):
                raise ArgumentError(f"parameters is {excerpt(list(parameters))}; expected each parameter once")
            found[field] = None if numbers is None else numbers | (found.get(field) or set())
    if not found.keys().isdisjoint(("q", "qd")) and model.kernel_model.constraint_tables is not None:
        raise ArgumentError(
            'parameters contains "q" or "qd", which fit does not support for closed chains, because initial states '
            "have to satisfy the constraints; expected other parameters. Pass a motion that starts in a closed state"
        )
    return found


def _entries_of(match: Match[int]) -> list[int]:
    """Return the entries of a parameter in the flat array of its field; of an inertia the body."""
    if match.field == "inertia" and not match.is_whole:
        raise ArgumentError(f'{match.name} is fitted as a whole tensor; expected "{match.name}" without a component')
    return [3 * match.owned.value + c for c in match.components] if match.field == "cg" else [match.owned.value]


def improve(problem: Problem, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Improve all starting points together by Levenberg-Marquardt steps, and return them with their costs."""

    def evaluated(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        residuals, J = problem.evaluate(x)
        costs = 0.5 * np.square(residuals).sum(-1)
        return np.where(np.isfinite(costs), costs, np.inf), residuals, J

    costs, residuals, J = evaluated(x)
    damping = np.full(len(x), 1e-3)
    for _ in range(MAX_ITERATIONS):
        runs = np.isfinite(costs)
        J_used, r_used = np.where(runs[:, None, None], J, 0.0), np.where(runs[:, None], residuals, 0.0)
        H, g = np.swapaxes(J_used, -1, -2) @ J_used, (np.swapaxes(J_used, -1, -2) @ r_used[..., None])[..., 0]
        scale = np.einsum("...ii->...i", H)
        H = H + (damping[:, None] * (scale + 1e-8 * scale.max(-1, keepdims=True) + 1e-300))[..., None] * np.eye(
            x.shape[1]
        )
        steps = -np.linalg.solve(H, g[..., None])[..., 0]
        trial = np.clip(x + steps, -problem.largest_changes, problem.largest_changes)
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
            f" The estimates of {', '.join(at_limit)} have the largest allowed difference from their first guesses: "
            "use better first guesses, or leave these parameters out."
        )
    if ends_early:
        found += " The fit has not converged: use better first guesses or fewer parameters."
    return found


def _result(problem: Problem, x: FloatArray, estimates_noise: bool, costs: FloatArray, reasons: str) -> Fit:
    """Return the Fit for the best variables x. `reasons` says why they are not a minimum."""
    residuals, J = (part[0] for part in problem.evaluate(x[None]))
    misfit = float(residuals @ residuals) / max(residuals.size - problem.size, 1)
    variance, is_explained = (misfit, True) if estimates_noise else (1.0, misfit <= LARGEST_MISFIT**2)
    _, sizes, V = np.linalg.svd(J, full_matrices=False)
    largest = sizes.max(initial=0.0)
    is_known = (sizes > NULL_SHARE * largest) & (sizes > np.sqrt(variance))
    known, unknown = V[is_known], V[~is_known]
    inverse = (known / np.square(sizes[is_known, None])).T @ known
    slopes = np.zeros((problem.size, problem.size))
    numbers, scales = np.zeros(problem.size), np.zeros(problem.size)
    for name, field in problem.fields.items():
        part = problem.parts[name]
        numbers[part], slopes[np.ix_(part, part)] = field.numbers(x[None, part])
        scales[part] = field.scales(x[None, part])
        if isinstance(field, EntryVariables) and name in ("q", "qd"):  # displacements of the measured state
            numbers[part] += problem.initial_numbers(name)[field.entries]
    covariance = variance * slopes @ inverse @ slopes.T
    deviations = np.sqrt(np.diag(covariance))
    changes = (slopes @ unknown.T).T / scales
    deviations[(np.abs(changes) > SMALL_SHARE).any(0)] = np.inf
    values = {name: found[0] for name, found in problem.values(x[None]).items()}
    motion, data = problem.motion[0], problem.data
    error = np.concatenate([problem.model.difference(data.q, motion.q), motion.qd - data.qd], -1)
    return Fit(
        model=problem.fitted_model(values),
        names=tuple(problem.labels),
        values=dict(zip(problem.labels, numbers.tolist(), strict=True)),
        standard_deviations=dict(zip(problem.labels, deviations.tolist(), strict=True)),
        covariance=covariance,
        success=is_explained and not reasons,
        message=_message(misfit, is_explained, estimates_noise, len(unknown)) + reasons,
        undetermined=tuple(_as_text(row, problem.labels) for row in changes),
        residuals=np.where(data.weights > 0.0, error, np.nan),
        motion=motion,
        drives=problem.fitted_drives(values),
        costs=costs,
    )


def _message(misfit: float, is_explained: bool, estimates_noise: bool, unknown: int) -> str:
    """Describe the residuals, whose mean square divided by the noise is `misfit`, and the undetermined combinations."""
    size = float(np.sqrt(misfit))
    found = f"The residuals are {size:.2g} rad, m, rad/s or m/s." if estimates_noise else ""
    if not estimates_noise:
        found = f"The residuals are {size:.2g} times the noise"
        found += (
            "."
            if is_explained
            else (
                "; expected about 1. The model does not explain the motion, or this is a local minimum. Fit other "
                "parameters, or use other first guesses, more starts or a shorter motion."
            )
        )
    return found + (
        f" The data do not determine {unknown} combination{'s' if unknown > 1 else ''} of parameters."
        if unknown
        else " The data determine all parameters."
    )


def _as_text(row: FloatArray, labels: Sequence[str]) -> str:
    """Return a combination of relative changes as text, such as "0.71 link1.mass - 0.71 link2.mass"."""
    row = row * (np.sign(row[np.argmax(np.abs(row))]) / np.linalg.norm(row))
    terms = [(share, label) for share, label in zip(row, labels, strict=True) if abs(share) > SMALL_SHARE]
    text = "".join(f" {'-' if share < 0.0 else '+'} {abs(share):.2f} {label}" for share, label in terms)
    return text.removeprefix(" + ").strip()
