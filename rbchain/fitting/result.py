"""The result of a fit: estimates, their standard errors, and combinations that the data do not determine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.misspelled import SuggestsAttributes
from ..common.pickles import PickledByName
from ..common.real_arrays import FloatArray
from ..model.named_items import NamedDict
from .problem import Problem
from .springs import fitted_forces

if TYPE_CHECKING:
    from ..facade.model import Model

#: A combination with a singular value below this fraction of the largest one does not change the trajectory.
NULL_SHARE = 1e-9
#: Shares of a combination that its description omits.
SMALL_SHARE = 0.05
#: Residuals, divided by the noise, above which the model does not explain the trajectory.
LARGEST_MISFIT = 2.0


@dataclass(frozen=True, eq=False)
class Fit(PickledByName, SuggestsAttributes):
    """The result of `rb.fit`.

    Attributes
    ----------
    model : Model
        The model with the estimated parameters.
    names : tuple of str
        Names of the p estimated parameters, such as "link2.mass".
    values, standard_deviations : dict of str to float
        The estimates and their standard deviations by these names, in SI units. A standard deviation is infinite if the
        data do not determine the parameter, and NaN if there are too few data to estimate the noise. The entries of "q"
        and "qd" are the initial state. For free and spherical joints, "q" is the displacement from the measured
        position in body axes, as in `Model.integrate`. With a list of trajectories, the names of these entries start
        with the number of the trajectory, as in "motion2.link1.q".
    units : dict of str to str
        SI units of the estimates; empty where they depend on the mechanism.
    covariance : (p, p) array
        Covariance of the estimates in the order of `names`, for errors of the data that are independent of each other.
        Combinations in `undetermined` are not included.
    success : bool
        Whether the fit has converged, no parameter is at the limit of its change, and the residuals are at most twice
        the noise, if it was given.
    message : str
        The size of the residuals, whether the data determine all parameters, which of them are at their bounds, and a
        remedy if `success` is False.
    undetermined : tuple of str
        Combinations of relative changes that the data do not determine, such as "0.71 link1.mass - 0.71 link2.mass".
        Their standard deviation exceeds 100 %, or they do not change the trajectory at all. Their estimates stay close
        to the initial guesses.
    at_bounds : tuple of str
        Parameters whose estimates are at the given bounds. Their standard deviations do not take bounds into account.
    residuals : (times, 2 nv) array, or tuple of them
        Fitted minus measured positions and velocities; NaN where nothing was measured. With a list, one array for each
        trajectory.
    motion : Trajectory, or tuple of them
        The trajectory of the fitted model. With a list, one for each trajectory.
    drives : tuple, or tuple of them
        The drives with the estimated gains. With a list, those for each trajectory.
    forces : tuple, or tuple of them
        The forces with the estimated parameters of springs. With a list, those for each trajectory.
    costs : (starts,) array
        Half the sum of squared residuals, divided by the noise, at the result of each starting point.
    """

    model: Model
    names: tuple[str, ...]
    values: dict[str, float]
    standard_deviations: dict[str, float]
    units: dict[str, str]
    covariance: FloatArray
    success: bool
    message: str
    undetermined: tuple[str, ...]
    at_bounds: tuple[str, ...]
    residuals: Any  # a tuple for a list of trajectories, like the next three
    motion: Any
    drives: tuple[Any, ...]
    forces: tuple[Any, ...]
    costs: FloatArray

    def __post_init__(self) -> None:
        for name in ("values", "standard_deviations", "units"):
            words = "the fit", "parameter", "parameters"
            object.__setattr__(self, name, NamedDict(*words, getattr(self, name)))

    def __repr__(self) -> str:
        words = f"undetermined: {'; '.join(self.undetermined)}" if self.undetermined else ""
        return "\n".join(filter(None, [self._table(), self.message, words]))

    def _table(self) -> str:
        """Return the estimates as aligned columns."""
        rows = [("parameter", "value", "standard error", "unit", "")]
        for name, x in self.values.items():
            error = self.standard_deviations[name]
            found = "not determined" if np.isposinf(error) else "determined"
            found = "at bound" if name in self.at_bounds else found
            rows.append((name, f"{x:.6g}", f"{error:.2g}", self.units[name], found))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            f"{name:{widths[0]}}  {x:>{widths[1]}}  {error:>{widths[2]}}  {unit:{widths[3]}}  {found}".rstrip()
            for name, x, error, unit, found in rows
        )


def fit_of(problem: Problem, x: FloatArray, costs: FloatArray, at_bounds: Sequence[str], reasons: str) -> Fit:
    """Return the Fit for the best variables x. `reasons` states why they are not a minimum."""
    residuals, J = (part[0] for part in problem.evaluate(x[None]))
    estimates_noise = not problem.motions[0].has_noise
    # simulations start exactly in the first measured state: its residuals are zero and contain no information
    excess = int(((residuals != 0.0) | J.any(-1)).sum()) - problem.size
    misfit = float(residuals @ residuals) / max(excess, 1)
    variance, is_explained = (misfit, True) if estimates_noise else (1.0, misfit <= LARGEST_MISFIT**2)
    _, sizes, V = np.linalg.svd(J, full_matrices=False)
    is_known = (sizes > NULL_SHARE * sizes.max(initial=0.0)) & (sizes > np.sqrt(variance))
    known, unknown = V[is_known], V[~is_known]
    inverse = (known / np.square(sizes[is_known, None])).T @ known
    numbers, slopes, scales = problem.numbers(x)
    covariance = variance * slopes @ inverse @ slopes.T
    deviations = np.sqrt(np.diag(covariance))
    changes = (slopes @ unknown.T).T / scales
    if estimates_noise and excess < 1:
        covariance, deviations = covariance * np.nan, deviations * np.nan
    deviations[(np.abs(changes) > SMALL_SHARE).any(0)] = np.inf
    values = {name: found[0] for name, found in problem.values(x[None]).items()}
    fitted = [motion[0] for motion in problem.simulated]
    errors = [
        np.where(measured.weights > 0.0, problem.errors(measured, motion), np.nan)
        for measured, motion in zip(problem.motions, fitted, strict=True)
    ]
    drives = [problem.fitted_drives(motion.actions.drives, values) for motion in problem.motions]
    forces = [fitted_forces(problem.model, motion.actions.forces, values) for motion in problem.motions]
    is_single = not problem.motion_names
    return Fit(
        model=problem.fitted_model(values),
        names=tuple(problem.labels),
        values=dict(zip(problem.labels, numbers.tolist(), strict=True)),
        standard_deviations=dict(zip(problem.labels, deviations.tolist(), strict=True)),
        units=problem.units,
        covariance=covariance,
        success=is_explained and not reasons,
        message=_message(misfit, is_explained, (estimates_noise, excess), len(unknown))
        + _at_bounds(at_bounds)
        + reasons,
        undetermined=tuple(as_text(row, problem.labels) for row in changes),
        at_bounds=tuple(at_bounds),
        residuals=errors[0] if is_single else tuple(errors),
        motion=fitted[0] if is_single else tuple(fitted),
        drives=drives[0] if is_single else tuple(drives),
        forces=forces[0] if is_single else tuple(forces),
        costs=costs,
    )


def _at_bounds(names: Sequence[str]) -> str:
    return f" At their bounds, which the standard errors do not take into account: {', '.join(names)}." if names else ""


def _message(misfit: float, is_explained: bool, noise: tuple[bool, int], unknown: int) -> str:
    """Describe the residuals, whose mean square divided by the noise is `misfit`, and the undetermined combinations.

    `noise` states whether it is estimated, and the number of residuals minus the number of parameters.
    """
    size, (estimates_noise, excess) = float(np.sqrt(misfit)), noise
    found = f"The residuals are {size:.2g} rad, m, rad/s or m/s." if estimates_noise else ""
    if estimates_noise and excess < 1:
        found += (
            " The standard errors are NaN, because there are no more measurements than parameters, so the noise "
            "cannot be estimated; pass noise, or more measurements."
        )
    if not estimates_noise:
        found = f"The residuals are {size:.2g} times the noise"
        found += (
            "."
            if is_explained
            else (
                "; expected about 1. The model does not explain the motion, or this is a local minimum. Fit other "
                "parameters, or use other initial guesses, more starts or a shorter motion."
            )
        )
    return found + (
        f" The data do not determine {unknown} combination{'s' if unknown > 1 else ''} of parameters."
        if unknown
        else " The data determine all parameters."
    )


def as_text(row: FloatArray, labels: Sequence[str]) -> str:
    """Return a combination of relative changes as text, such as "0.71 link1.mass - 0.71 link2.mass"."""
    row = row * (np.sign(row[np.argmax(np.abs(row))]) / np.linalg.norm(row))
    terms = [(share, label) for share, label in zip(row, labels, strict=True) if abs(share) > SMALL_SHARE]
    text = "".join(f" {'-' if share < 0.0 else '+'} {abs(share):.2f} {label}" for share, label in terms)
    return text.removeprefix(" + ").strip()
