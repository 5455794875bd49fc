"""How much each number that is drawn matters: Sobol's and Morris' indices, by SALib."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import StudyError
from ..real_arrays import whole_number
from .capacity import total_memory, with_unit
from .designs import SMALLEST, Random
from .plan import Plan

if TYPE_CHECKING:
    import xarray

    from .study import Study

LEVELS = 4  # of Morris' grid


def indices(
    study: Study,
    measure: str | None,
    method: str = "sobol",
    samples: int = 512,
    out: str | Path | None = None,
    **settings: Any,
) -> xarray.Dataset:
    """Indices of sensitivity of a measure.

    Parameters
    ----------
    study : Study
        What it draws must be independent.
    measure : str
    method : "sobol" or "morris"
        Sobol's first-order and total indices (Saltelli 2010; Jansen's total), from samples (d + 2) motions of d
        numbers; or Morris' elementary effects, from samples (d + 1).
    samples : int
        For "sobol" best a power of 2.
    out : path, optional
        Folder of the motions' results, which can be gone on with.
    **settings
        As for `Study.run`.

    Returns
    -------
    xarray.Dataset
        Along `parameter`: "S1" and "ST" with the half widths "S1_conf" and "ST_conf" of their 95 % intervals; or "mu",
        "mu_star", "sigma" and "mu_star_conf", in the measure's unit per range of the parameter.

    Raises
    ------
    StudyError
        If samples failed: there is no index without them.
    """
    import xarray

    plan = study.plan
    if measure not in [m.name for m in study.description.measures]:
        raise StudyError(f"measure is {measure!r}; there are {[m.name for m in study.description.measures]}")
    if plan.drawn.correlations or plan.table is not None:
        raise StudyError("sensitivity needs independent draws; these are correlated, or come from a table")
    if not plan.columns:
        raise StudyError("nothing varies in this study")
    samples = whole_number("samples", samples, StudyError, least=2)
    needed = 8 * samples * (len(plan.columns) + 2) * (len(plan.columns) + 1)
    if needed > total_memory():
        raise StudyError(
            f"samples is {samples:,}: the design takes {with_unit(needed)} of memory, and this machine has "
            f"{with_unit(total_memory())}; choose fewer samples"
        )
    sampled, analysed = _methods(method)
    problem = {"num_vars": len(plan.columns), "names": list(plan.columns), "bounds": [[0.0, 1.0]] * len(plan.columns)}
    points = sampled(problem, samples, study.description.seed)
    # the ends of the unit interval, where a distribution may have no value, become quantiles near them
    inside = np.clip(points, 0.005, 0.995) if method == "morris" else np.clip(points, SMALLEST, 1.0 - 2 * SMALLEST)
    results = study.of_plan(plan_of_values(plan, plan.drawn.values(inside))).run(out, **settings)
    found = results[measure].values
    failed = int(np.isnan(found).sum())
    if failed:
        raise StudyError(f"{failed} of {found.size} samples gave no {measure!r}: there are no indices without them")
    names = {"S1", "ST", "S1_conf", "ST_conf", "mu", "mu_star", "sigma", "mu_star_conf"}
    values = {k: np.asarray(v, float) for k, v in analysed(problem, points, found).items() if k in names}
    variables = {name: ("parameter", of_all) for name, of_all in values.items()}
    attributes = {"measure": measure, "method": method, "motions": found.size}
    return xarray.Dataset(variables, {"parameter": list(plan.columns)}, attributes)


def plan_of_values(plan: Plan, values: np.ndarray) -> Plan:
    """The plan of the samples with these values (samples, columns), in the place of what a design draws."""
    description = plan.description.model_copy(
        update={
            "samples": len(values),
            "design": Random(),
            "stop_when": None,
            "name": f"{plan.description.name}, varied",
        }
    )
    return replace(plan, description=description, table=values)


def _methods(method: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """How a method samples the unit cube, and how it analyses what came of it."""
    try:
        if method == "sobol":
            from SALib.analyze import sobol as analysis
            from SALib.sample import sobol as sampling

            return (
                lambda problem, n, seed: sampling.sample(problem, n, calc_second_order=False, seed=seed),
                lambda problem, points, found: analysis.analyze(problem, found, calc_second_order=False, seed=0),
            )
        if method == "morris":
            from SALib.analyze import morris as analysis
            from SALib.sample import morris as sampling

            return (
                lambda problem, n, seed: sampling.sample(problem, n, num_levels=LEVELS, seed=seed),
                lambda problem, points, found: analysis.analyze(problem, points, found, num_levels=LEVELS, seed=0),
            )
    except ImportError:
        raise ImportError(
            "sensitivity needs the package SALib, which is missing: pip install 'rbchain[study]'"
        ) from None
    raise StudyError(f'method is {method!r}; expected "sobol" or "morris"')
