"""Gradients of measures with respect to the random inputs at their means, and first-order standard deviations."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ...errors import SimulationWarning, Status, StudyError
from ..describe.distributions import Normal
from ..plan.checks import refuse_noise
from ..plan.outcomes import WARNINGS, has_failed, sentences_of_warnings
from ..plan.plan import Plan
from ..run.chunks import MEMORY, chunk_size
from ..run.executors import Executor, local

if TYPE_CHECKING:
    import xarray

    from ..study import Study

STEPS_PER_STD = 64  # a power of two; the truncation error is then below the error of most integrations
OFFSETS = np.array([1.0, -1.0, 2.0, -2.0])  # in steps


@dataclass(frozen=True)
class Gradients:
    """Gradients of measures (m,) with respect to random inputs (p,), as described by `Study.gradient`."""

    names: list[str]
    units: list[str]
    gradient_units: list[list[str]]
    means: np.ndarray
    stds: np.ndarray
    values: np.ndarray
    gradient: np.ndarray
    error: np.ndarray
    first_order_std: np.ndarray
    warnings: list[str]

    @property
    def contribution(self) -> np.ndarray:
        """Absolute changes (m, p) of the measures for one standard deviation of each random input."""
        return np.abs(self.gradient) * self.stds


def gradient(study: Study, measure: str | None = None) -> xarray.Dataset:
    """Compute the derivatives of measures with respect to the random inputs, at the means of these inputs.

    One batch of 4 p + 1 simulations for p random inputs gives the derivatives of all measures: central differences with
    steps of 1/64 and 1/32 of the standard deviations, and Richardson's extrapolation. The means and standard deviations
    of the random inputs follow from their distributions.

    Parameters
    ----------
    measure : str, optional
        Name of a measure; all measures by default.

    Returns
    -------
    xarray.Dataset
        Along `measure` and `parameter`: `gradient`, an estimate of its error (`error`), and `contribution`, the
        absolute change of the measure for one standard deviation of the parameter. Along `measure`: `value` at the
        means, and `first_order_std`, the standard deviation of a linear measure with this gradient. Along `parameter`:
        `mean` and `std`. The coordinates `units`, `parameter_units` and `gradient_units` contain the units. A unit is
        empty if it is not known.

    Raises
    ------
    StudyError
        If one of the samples fails, if a mean or standard deviation is unknown or infinite, if the draws come from
        a table, or if the study has noise.

    Warns
    -----
    SimulationWarning
        If samples succeed with a warning, such as joints that exceed their position limits, as for `Study.run`.

    Notes
    -----
    `error` estimates the truncation error of a central difference, half of the jump of the slope at the means, and
    round-off. If it is large, the measure is not smooth, or the tolerances of `simulate` are too loose. `gradient` is
    NaN where a measure is not finite near the means.

    The first-order variance is g C g for the gradient g and the covariance C of the random inputs. It is NaN if
    correlated inputs are not normally distributed.

    Examples
    --------
    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(1, gravity=(0, 0, 0)), samples=50, simulate={"duration": 2.0},
    ...     vary={"*.qd": rb.Normal(std=0.1)},
    ...     measures=[{"name": "angle", "quantity": "position", "joint": "link1"}],
    ... )
    >>> found = study.gradient("angle")
    >>> found.gradient.values.round(6).tolist(), found.gradient_units.values.tolist()
    ([2.0], ['rad/(rad/s)'])
    >>> round(found.first_order_std.item(), 6)
    0.2
    """
    import xarray

    plan = study.plan
    names = plan.chosen_measures(measure)
    found = compute_gradients(plan, names)
    for sentence in found.warnings:
        warnings.warn(sentence, SimulationWarning, stacklevel=2)
    of_both = ("measure", "parameter")
    dataset = xarray.Dataset(
        {
            "gradient": (of_both, found.gradient),
            "error": (of_both, found.error),
            "contribution": (of_both, found.contribution),
            "value": ("measure", found.values),
            "first_order_std": ("measure", found.first_order_std),
            "mean": ("parameter", found.means),
            "std": ("parameter", found.stds),
        },
        {
            "measure": names,
            "parameter": list(plan.columns),
            "units": ("measure", found.units),
            "parameter_units": ("parameter", list(plan.units)),
            "gradient_units": (of_both, found.gradient_units),
        },
        {"motions": motions_for(plan)},
    )
    return dataset if measure is None else dataset.sel(measure=measure)


def motions_for(plan: Plan) -> int:
    """Return the number of simulations that gradients need."""
    return 1 + OFFSETS.size * len(plan.columns)


def compute_gradients(
    plan: Plan, names: list[str], executor: Executor = local, largest: int | None = None
) -> Gradients:
    """Compute the gradients of these measures, in chunks of at most `largest` simulations but at least two.

    Raises a StudyError with the reason if the study has none.
    """
    _check(plan)
    moments = np.array([column.distribution.moments() for column in plan.drawn.columns])
    for column, (mean, std) in zip(plan.columns, moments, strict=True):
        if not (np.isfinite(mean) and np.isfinite(std) and mean + std / STEPS_PER_STD != mean):
            raise StudyError(
                f"the mean of {column!r} is {mean:g} and its standard deviation is {std:g}, where nan means unknown; a "
                "gradient needs finite numbers and a standard deviation above 0 and above the round-off of the mean. "
                "Use another distribution"
            )
    means, stds = moments.T
    steps = (means + stds / STEPS_PER_STD) - means  # so that round-off does not change the differences
    values, found = _simulated(plan, names, means, steps, executor, largest)
    gradient, error = differences(values, steps)
    variance = np.einsum("mi,ij,mj->m", gradient, _covariance(plan, stds), gradient)
    units = [{v.name: v.units for v in plan.variables}[name] for name in names]
    of_gradient = [[_ratio(u, p) for p in plan.units] for u in units]
    first_order_std = np.sqrt(np.maximum(variance, 0.0))
    return Gradients(names, units, of_gradient, means, stds, values[:, 0], gradient, error, first_order_std, found)


def _check(plan: Plan) -> None:
    """Raise a StudyError if the study has no gradient."""
    if not plan.columns:
        raise StudyError("the study has no dispersions, but a gradient needs at least one; add vary")
    if plan.table is not None:
        raise StudyError(
            "the draws of this study come from a table, but a gradient needs the means and standard deviations of "
            "distributions; choose another design"
        )
    refuse_noise(plan.nominal, [draws.varied.parameter for draws in plan.drawn.draws])


def _simulated(
    plan: Plan, names: list[str], means: np.ndarray, steps: np.ndarray, executor: Executor, largest: int | None
) -> tuple[np.ndarray, list[str]]:
    """Return the measures (measures, 1 + 4 p) at the means, and at the OFFSETS of each of the p inputs.

    Also return a sentence for each warning that samples have.
    """
    displacements = (OFFSETS * np.diag(steps)[..., None]).swapaxes(1, 2).reshape(-1, steps.size)
    points = means + np.concatenate([np.zeros((1, steps.size)), displacements])
    variables = tuple(variable for variable in plan.variables if variable.name in (*names, "status", WARNINGS))
    varied = replace(plan.with_values(points), variables=variables)
    size = chunk_size(varied, MEMORY) if largest is None else largest
    # at least two samples in a chunk, because a single one would run other machine code
    chunks = max(1, min(-(-len(points) // size), len(points) // 2))
    ends = np.linspace(0, len(points), chunks + 1).astype(int).tolist()
    spans = [(chunk, first, last) for chunk, (first, last) in enumerate(pairwise(ends))]
    values = np.empty((len(names), len(points)))
    status, warned = np.empty(len(points), np.int64), np.zeros(len(points), np.int64)
    for chunk, outputs in executor(varied, spans):
        _, first, last = spans[chunk]
        status[first:last], warned[first:last] = outputs["status"], outputs.get(WARNINGS, 0)
        values[:, first:last] = [outputs[name] for name in names]
    failed = np.flatnonzero(has_failed(status))
    if failed.size:
        changed = np.flatnonzero(points[failed[0]] != means)
        where = "".join(f", except {plan.columns[c]!r} = {points[failed[0], c]:g}" for c in changed)
        raise StudyError(
            f"the sample with all random inputs at their means{where} fails, but a gradient needs it: "
            f"{Status(status[failed[0]]).sentence} Change the distributions or the settings of simulate"
        )
    return values, sentences_of_warnings(warned, len(points))


def differences(values: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return derivatives (m, p) and their errors (m, p) from values (m, 1 + 4 p) as `_simulated` returns them.

    The central differences D1 over one step and D2 over two steps have truncation errors of second order. Richardson's
    extrapolation (4 D1 - D2) / 3 removes them. The error is the sum of three terms:

    * |D1 - D2| / 3, the truncation error of D1. It is large for jumps and for irregular errors of the integration.
    * Half of the jump of the slope at the means, from the second differences over one and two steps. It is of third
      order for smooth functions.
    * Round-off of the values.
    """
    center = values[:, :1]
    up, down, up2, down2 = np.moveaxis(values[:, 1:].reshape(len(values), -1, OFFSETS.size), -1, 0)
    with np.errstate(invalid="ignore", over="ignore"):
        D1, D2 = (up - down) / (2 * steps), (up2 - down2) / (4 * steps)
        change1, change2 = (up - 2 * center + down) / steps, (up2 - 2 * center + down2) / (2 * steps)
        rounding = 4 * np.finfo(float).eps * np.abs(center) / steps
        return (4 * D1 - D2) / 3, np.abs(D1 - D2) / 3 + np.abs(2 * change1 - change2) / 2 + rounding


def _covariance(plan: Plan, stds: np.ndarray) -> np.ndarray:
    """Return the covariance of the random inputs; NaN for correlated inputs that are not normal.

    A study describes correlations of normal scores. They equal the correlations of the inputs if these are normal.
    """
    correlation = np.eye(stds.size)
    for columns, triangle in plan.drawn.correlations:
        are_normal = all(isinstance(plan.drawn.columns[c].distribution, Normal) for c in columns)
        correlation[np.ix_(columns, columns)] = triangle @ triangle.T if are_normal else np.nan
    return correlation * np.outer(stds, stds)


def _ratio(unit: str, parameter_unit: str) -> str:
    """Return the unit of a derivative; "" if one of the units is not known."""
    if parameter_unit == "1" or not (unit and parameter_unit):
        return unit if parameter_unit else ""
    if unit == parameter_unit:
        return "1"
    return f"{unit}/({parameter_unit})" if set(parameter_unit) & set(" /*") else f"{unit}/{parameter_unit}"
