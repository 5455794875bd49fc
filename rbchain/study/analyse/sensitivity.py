"""Sensitivity analysis: indices of Sobol and Morris for each drawn number, computed by SALib."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...common.real_arrays import whole_number
from ...errors import StudyError, missing_package
from ..describe.designs import SMALLEST
from ..plan.checks import refuse_noise
from ..run.settings_of_run import settings_of_run
from ..store.capacity import total_memory, with_unit

if TYPE_CHECKING:
    import xarray

    from ..study import Study

LEVELS = 4  # of the grid of Morris
#: Quantiles that stand for the ends of a distribution without bounds.
UNBOUNDED = (0.005, 0.995)
#: The methods of `Study`, for messages.
FUNCTIONS = {"sobol": "Study.sobol_indices", "morris": "Study.morris"}


def sobol_indices(
    study: Study, measure: str | None, *, base_samples: int = 512, out: str | Path | None = None, **settings: Any
) -> xarray.Dataset:
    """Compute the Sobol indices of a measure for each drawn number: its shares of the variance.

    Parameters
    ----------
    measure : str
        Name of the measure.
    base_samples : int
        Size of the base design, a power of 2: d drawn numbers need base_samples * (d + 2) motions.
    out : path, optional
        Folder for the results of the motions. An interrupted run can be resumed from it.
    **settings
        As for `Study.run`.

    Returns
    -------
    xarray.Dataset
        Along `parameter`: the first-order indices "S1" and the total indices "ST" (Saltelli 2010, with Jansen's
        estimator of the total index), and the half widths "S1_conf" and "ST_conf" of their 95 % intervals.

    Raises
    ------
    StudyError
        If the draws are not independent, or if samples fail.
    """
    return _indices(study, measure, "sobol", base_samples, out, settings)


def morris(
    study: Study, measure: str | None, *, base_samples: int = 512, out: str | Path | None = None, **settings: Any
) -> xarray.Dataset:
    """Compute the elementary effects of Morris of a measure for each drawn number.

    Parameters
    ----------
    measure : str
        Name of the measure.
    base_samples : int
        Number of paths of the design: d drawn numbers need base_samples * (d + 1) motions.
    out, **settings
        As for `sobol_indices`.

    Returns
    -------
    xarray.Dataset
        Along `parameter`: "mu", "mu_star", "sigma" and "mu_star_conf", in the unit of the measure per range of the
        parameter. The range of a distribution without bounds lies between its quantiles of 0.5 % and 99.5 %.

    Raises
    ------
    StudyError
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
    return _indices(study, measure, "morris", base_samples, out, settings)


def _indices(
    study: Study, measure: str | None, method: str, base_samples: int, out: str | Path | None, settings: dict[str, Any]
) -> xarray.Dataset:
    """Compute the sensitivity of a measure to each drawn number. `method` is "sobol" or "morris"."""
    import xarray

    of_run = {"on_failure": "ignore"} | settings_of_run(study.run, FUNCTIONS[method], settings)
    plan = study.plan
    plan.check_measure(measure)
    if plan.drawn.correlations or plan.table is not None:
        raise StudyError(
            "the draws of this study are correlated or come from a table, but a sensitivity analysis needs independent "
            "draws; remove correlate, multivariate normal distributions and the table"
        )
    if not plan.columns:
        raise StudyError("the study has no dispersions, but a sensitivity analysis needs at least one; add vary")
    refuse_noise(plan.nominal, [draws.varied.parameter for draws in plan.drawn.draws])
    base_samples = whole_number("base_samples", base_samples, StudyError, least=2)
    needed = 8 * base_samples * (len(plan.columns) + 2) * (len(plan.columns) + 1)
    if needed > total_memory():
        raise StudyError(
            f"base_samples is {base_samples:,}: the design needs {with_unit(needed)} of memory, but this machine has "
            f"{with_unit(total_memory())}; reduce base_samples"
        )
    sampled, analysed = _methods(method)
    problem = {"num_vars": len(plan.columns), "names": list(plan.columns), "bounds": [[0.0, 1.0]] * len(plan.columns)}
    points = sampled(problem, base_samples, plan.description.seed)
    # distributions may be infinite at the ends of the unit interval; use quantiles near them instead
    inside = np.clip(points, SMALLEST, 1.0 - 2 * SMALLEST)
    if method == "morris":
        ends = plan.drawn.values(np.repeat([[0.0], [1.0]], points.shape[1], axis=1))
        has_range = np.isfinite(ends).all(0)
        # the levels stay evenly spaced, because the effects are divided by the distance of levels
        inside = np.where(has_range, points, UNBOUNDED[0] + (UNBOUNDED[1] - UNBOUNDED[0]) * points)
    results = study.of_plan(plan.with_values(plan.drawn.values(inside))).run(out, **of_run)
    measured = results[measure].values
    failed = int(np.isnan(measured).sum())
    if failed:
        raise StudyError(
            f"{failed} of {measured.size} samples failed or have no finite {measure!r}, but the indices need all "
            "samples; narrow the distributions, or change the settings of simulate"
        )
    if method == "sobol" and np.ptp(measured) == 0.0:
        raise StudyError(
            f"{measure!r} is {measured[0]:g} in all {measured.size} samples, but Sobol indices are shares of its "
            "variance; choose another measure, or use morris()"
        )
    names = {"S1", "ST", "S1_conf", "ST_conf", "mu", "mu_star", "sigma", "mu_star_conf"}
    values = {k: np.asarray(v, float) for k, v in analysed(problem, points, measured).items() if k in names}
    variables = {name: ("parameter", index) for name, index in values.items()}
    attributes = {"measure": measure, "method": method, "motions": measured.size}
    return xarray.Dataset(variables, {"parameter": list(plan.columns)}, attributes)


def _methods(method: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the functions that sample the unit cube and analyse the results."""
    try:
        if method == "sobol":
            from SALib.analyze import sobol as analysis
            from SALib.sample import sobol as sampling

            return (
                lambda problem, n, seed: sampling.sample(problem, n, calc_second_order=False, seed=seed),
                lambda problem, points, measured: analysis.analyze(problem, measured, calc_second_order=False, seed=0),
            )
        from SALib.analyze import morris as analysis
        from SALib.sample import morris as sampling

        return (
            lambda problem, n, seed: sampling.sample(problem, n, num_levels=LEVELS, seed=seed),
            lambda problem, points, measured: analysis.analyze(problem, points, measured, num_levels=LEVELS, seed=0),
        )
    except ImportError:
        raise ImportError(missing_package("sensitivity analyses need the package SALib", "study")) from None
