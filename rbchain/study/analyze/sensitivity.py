"""Sensitivity analysis: indices of Sobol and Morris for each random input, computed by SALib."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import missing_package
from ..describe.designs import SMALLEST
from .index_samples import IndexSamples

if TYPE_CHECKING:
    import xarray

    from ..study import Study

LEVELS = 4  # of the grid of Morris
#: Quantiles that stand for the ends of a distribution without bounds.
UNBOUNDED = (0.005, 0.995)
NAMES = ("S1", "S1_conf", "ST", "ST_conf", "S2", "S2_conf", "mu", "mu_star", "sigma", "mu_star_conf")


def sobol_indices(
    study: Study,
    measure: str | None = None,
    *,
    base_samples: int = 512,
    second_order: bool = False,
    out: str | Path | None = None,
    **settings: Any,
) -> xarray.Dataset:
    """Compute the Sobol indices of a measure for each random input: its shares of the variance.

    Parameters
    ----------
    measure : str, optional
        Name of the measure. All measures by default.
    base_samples : int
        Size of the base design, a power of 2: d random inputs need base_samples * (d + 2) simulations. Indices of the
        second order need base_samples * (2 * d + 2).
    second_order : bool
        Compute the indices of pairs too.
    out : path, optional
        Folder for the results of the simulations, from which an interrupted run can be resumed. Reports show the
        indices in a folder within the folder of a study whose name begins with "indices", such as
        "landing/indices-sobol".
    **settings
        As for `Study.run`.

    Returns
    -------
    xarray.Dataset
        Along `parameter`: the first-order indices "S1" and the total indices "ST" (Saltelli 2010, with Jansen's
        estimator of the total index), and the half widths "S1_conf" and "ST_conf" of their 95 % intervals. Along
        `parameter` and `other`: the indices of second order "S2", which are the shares of pairs beyond their indices of
        first order, and "S2_conf". With all measures, arrays have the axis `measure` before these axes, and the indices
        of a measure that is constant or not finite in all samples are NaN, with a warning.

    Raises
    ------
    StudyError
        If the draws are not independent (`shapley_effects` supports correlations), or if samples fail.

    Warns
    -----
    SimulationWarning
        If samples succeed with a warning, such as joints that exceed their position limits, as for `Study.run`.
    """
    samples = IndexSamples(study, measure, "sobol", base_samples, settings)
    sampled, analyzed = _sobol(second_order)
    return samples.indices(*_with_salib(samples, sampled, analyzed), out)


def morris(
    study: Study, measure: str | None = None, *, base_samples: int = 512, out: str | Path | None = None, **settings: Any
) -> xarray.Dataset:
    """Compute the elementary effects of Morris of a measure for each random input.

    Parameters
    ----------
    measure : str, optional
        Name of the measure. All measures by default.
    base_samples : int
        Number of paths of the design: d random inputs need base_samples * (d + 1) simulations.
    out, **settings
        As for `sobol_indices`.

    Returns
    -------
    xarray.Dataset
        Along `parameter`: "mu", "mu_star", "sigma" and "mu_star_conf", in the unit of the measure per range of the
        parameter. The range of a distribution without bounds lies between its quantiles of 0.5 % and 99.5 %. With all
        measures, arrays have the axis `measure` before `parameter`.

    Raises
    ------
    StudyError
        As for `sobol_indices`.

    Warns
    -----
    SimulationWarning
        As for `sobol_indices`.

    Examples
    --------
    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(1), samples=50, simulate=rb.Simulation(0.1),
    ...     vary={"*.q": rb.Uniform(-0.1, 0.1)},
    ...     measures=[rb.Measure("angle", "position", joint="link1")],
    ... )
    >>> study.morris("angle", base_samples=8).parameter.values.tolist()
    ['link1.q']
    """
    samples = IndexSamples(study, measure, "morris", base_samples, settings)
    sampled, analyzed = _morris()
    return samples.indices(*_with_salib(samples, sampled, analyzed), out)


def _with_salib(
    samples: IndexSamples, sampled: Callable[..., Any], analyzed: Callable[..., Any]
) -> tuple[np.ndarray, Callable[[np.ndarray], dict[str, np.ndarray]]]:
    """Return the draws (m, d), and the function that computes the indices of a measure (m,).

    `sampled` and `analyzed` are the functions of SALib that sample the unit cube and analyze the results.
    """
    plan = samples.study.plan
    problem = {"num_vars": len(plan.columns), "names": list(plan.columns), "bounds": [[0.0, 1.0]] * len(plan.columns)}
    points = sampled(problem, samples.base_samples, plan.description.seed)
    # distributions may be infinite at the ends of the unit interval; use quantiles near them instead
    inside = np.clip(points, SMALLEST, 1.0 - 2 * SMALLEST)
    if samples.method == "morris":
        ends = plan.drawn.values(np.repeat([[0.0], [1.0]], points.shape[1], axis=1))
        has_range = np.isfinite(ends).all(0)
        # the levels stay evenly spaced, because the effects are divided by the distance of levels
        inside = np.where(has_range, points, UNBOUNDED[0] + (UNBOUNDED[1] - UNBOUNDED[0]) * points)
    return plan.drawn.values(inside), partial(_arrays, analyzed, problem, points)


def _arrays(
    analyzed: Callable[..., Any], problem: Any, points: np.ndarray, measured: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the indices of SALib as arrays. Indices of pairs are symmetric; SALib returns the upper triangle."""
    found = {k: np.asarray(v, float) for k, v in analyzed(problem, points, measured).items() if k in NAMES}
    return {k: np.fmax(v, v.T) if v.ndim == 2 else v for k, v in found.items()}


def _sobol(second_order: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    try:
        from SALib.analyze import sobol as analysis
        from SALib.sample import sobol as sampling
    except ImportError:
        raise _missing() from None
    return (
        lambda problem, n, seed: sampling.sample(problem, n, calc_second_order=second_order, seed=seed),
        lambda problem, _, measured: analysis.analyze(problem, measured, calc_second_order=second_order, seed=0),
    )


def _morris() -> tuple[Callable[..., Any], Callable[..., Any]]:
    try:
        from SALib.analyze import morris as analysis
        from SALib.sample import morris as sampling
    except ImportError:
        raise _missing() from None
    return (
        lambda problem, n, seed: sampling.sample(problem, n, num_levels=LEVELS, seed=seed),
        lambda problem, points, measured: analysis.analyze(problem, points, measured, num_levels=LEVELS, seed=0),
    )


def _missing() -> ImportError:
    return ImportError(missing_package("Sobol and Morris indices need the package SALib", "study"))
