"""The probability that a measure of a study is above or below a threshold."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from scipy import special

from ...common.misspelled import one_of
from ...common.real_arrays import finite_number, whole_number
from ...errors import SimulationWarning, StudyError
from ..describe.designs import OF_VALUES, uniforms
from ..describe.distributions import Discrete
from ..describe.measure_units import number_in_si
from ..plan.checks import refuse_noise
from ..plan.plan import Plan
from ..run.compilation import compiled_in_parallel
from ..run.resources import Resources
from ..run.settings_of_run import settings_of_run
from ..store.capacity import total_memory, with_unit
from .estimates import Estimate
from .form import form
from .importance import importance_sampling
from .monte_carlo import monte_carlo
from .question import locked_folder
from .result import Probability, write_result
from .simulations import Settings, Simulations, Undefined
from .subset import subset_simulation

if TYPE_CHECKING:
    from ..study import Study

Method = Literal["monte_carlo", "subset", "importance", "form"]
STAGED = ("subset", "importance")
ADAPTIVE = ("importance", "form")  # number of simulations
LEAST_STAGE = 100  # simulations
UNUSED = ("progress", "on_failure")  # settings of `Study.run` that do not apply


def probability(
    study: Study,
    measure: str,
    *,
    above: float | str | None = None,
    below: float | str | None = None,
    method: Method = "subset",
    simulations: int = 20_000,
    stage: int | None = None,
    coefficient_of_variation: float | None = None,
    undefined: Undefined | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> Probability:
    """Estimate the probability of a failure: a measure is above or below a threshold.

    Parameters
    ----------
    measure : str
        Name of the measure.
    above, below : float or str
        The threshold, in the unit of the measure or with a unit, such as "5 mm". Pass one of the two.
    method : str
        * "monte_carlo": share of failures among independent samples. Supports all studies.
        * "subset" (default): subset simulation, for probabilities down to 1e-12 and any number of random inputs.
        * "importance": importance sampling from a mixture of normal distributions, which is fitted to the failures in
          stages.
        * "form": first-order reliability method, corrected by importance sampling around the design points. For smooth
          measures.
    simulations : int
        Number of simulations of "monte_carlo", and a limit for the other methods.
    stage : int, optional
        Simulations of each stage of "subset" and "importance" (1000 by default).
    coefficient_of_variation : float, optional
        "importance" and "form" simulate until the estimate has this coefficient of variation (0.2 by default), or up to
        the limit.
    undefined : "failure" or "no_failure", optional
        How to count samples without a value: their simulation failed, or their measure is NaN, such as the settling
        time of a motion that does not settle. By default, the interval of "monte_carlo" covers both cases, and the
        estimate omits these samples. The other methods raise an error, because they need a value for each sample.
    out : path, optional
        Folder for the simulations. After an interruption, the method continues there, with identical results. With
        "monte_carlo", the folder may also contain fewer simulations.
    **settings
        `executor`, `workers`, `scheduler`, `chunk` and `memory` as for `Study.run`.

    Returns
    -------
    Probability

    Raises
    ------
    StudyError
        If the study has noise or random signals and the method is not "monte_carlo", if the draws come from a table, if
        samples have no value, or if the method does not reach the threshold.

    Warns
    -----
    SimulationWarning
        If samples succeed with a warning, such as joints that exceed their position limits, as for `Study.run`. The
        estimate includes these samples.

    Notes
    -----
    All samples are independent draws from the distributions and correlations; the design of the study has no effect.
    Random numbers depend on the seed of the study, the stage and the sample, not on chunks, threads and processes. The
    samples of "monte_carlo" are the samples of `study.run` with the design "random".

    Sources: Clopper and Pearson (1934). Au and Beck (2001), "Estimation of small failure probabilities in high
    dimensions by subset simulation". Papaioannou, Betz, Zwirglmaier and Straub (2015), "MCMC algorithms for subset
    simulation". Papaioannou, Geyer and Straub (2019), "Improved cross entropy-based importance sampling with a flexible
    mixture model". Rackwitz and Fiessler (1978), "Structural reliability under combined random load sequences".

    Examples
    --------
    The largest kinetic energy of a rod that falls from the angle q is (1 + sin(q)) / 2. It exceeds 0.95 J for angles
    above asin(0.9) = 1.12:

    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(1, length=1.0), samples=10, simulate=rb.Simulation(1.0),
    ...     vary={"*.q": rb.Uniform(-1.5, 1.5)},
    ...     measures=[rb.Measure("energy", "kinetic_energy", over="max")],
    ... )
    >>> found = study.probability("energy", above=0.95, stage=100)
    >>> found.interval[0] < (1.5 - 1.12) / 3 < found.interval[1], found.simulations
    (True, 100)
    """
    one_of("method", method, get_args(Method), StudyError)
    if undefined is not None:
        one_of("undefined", undefined, get_args(Undefined), StudyError)
    plan = study.plan
    plan.check_measure(measure)
    threshold, sign, asked = _threshold(plan, measure, above, below)
    _check(plan, method)
    limit = whole_number("simulations", simulations, StudyError, least=2)
    size, wanted = _size_and_variation(method, stage, coefficient_of_variation)
    needed = limit * (16 * len(plan.columns) + 32)
    if needed > total_memory():
        raise StudyError(
            f"simulations is {limit:,}: they need {with_unit(needed)} of memory, but this machine has "
            f"{with_unit(total_memory())}; reduce simulations"
        )
    own = inspect.getfullargspec(probability).kwonlyargs
    settings_of_run(study.run, "Study.probability", settings, own=own, without=UNUSED)
    resources = Resources(**settings)
    executor = resources.new_executor()
    question = {"measure": measure, "threshold": threshold, "sign": sign, "method": method, "undefined": undefined}
    if method in STAGED:
        question["stage"] = size
    with contextlib.ExitStack() as stack:
        folder = None if out is None else stack.enter_context(locked_folder(out, plan, question))
        stack.enter_context(compiled_in_parallel(plan))
        of_run = Settings(resources, executor, folder)
        simulate = Simulations(plan, measure, threshold, sign, undefined, limit, of_run)
        estimate = _estimated(simulate, method, plan, size, wanted)
        result = _result(study, simulate, estimate, method, asked)
        if folder is not None:
            write_result(result, folder)
    for sentence in result.warnings:
        warnings.warn(sentence, SimulationWarning, stacklevel=2)
    return result


def _threshold(
    plan: Plan, measure: str, above: float | str | None, below: float | str | None
) -> tuple[float, float, str]:
    """Return the threshold, the sign of its margin, and the question in words."""
    if (above is None) == (below is None):
        raise StudyError(
            f"above is {above!r} and below is {below!r}; expected one threshold, such as above=0.005 or above='5 mm'"
        )
    name, given, sign = ("above", above, 1.0) if below is None else ("below", below, -1.0)
    unit = next(v.units for v in plan.variables if v.name == measure)
    number = number_in_si(name, given, unit) if isinstance(given, str) else given
    threshold = finite_number(name, number, StudyError)
    return threshold, sign, f"{measure} {'>' if sign > 0 else '<'} {threshold:.6g} {unit}".rstrip()


def _size_and_variation(method: str, stage: int | None, variation: float | None) -> tuple[int, float]:
    """Return the simulations of a stage and the wanted coefficient of variation."""
    if stage is not None and method not in STAGED:
        raise StudyError(f"stage is {stage!r}, but method {method!r} has no stages; remove stage")
    if variation is not None and method not in ADAPTIVE:
        raise StudyError(
            f"coefficient_of_variation is {variation!r}, but method {method!r} does not choose its number of "
            "simulations; remove coefficient_of_variation, or use method='importance'"
        )
    size = whole_number("stage", 1000 if stage is None else stage, StudyError, least=LEAST_STAGE)
    given = 0.2 if variation is None else variation
    return size, finite_number("coefficient_of_variation", given, StudyError, above=0.0)


def _check(plan: Plan, method: str) -> None:
    """Raise a StudyError if the method does not support the study."""
    if plan.table is not None:
        raise StudyError(
            "the draws of this study come from a table, but a probability needs the distributions; choose another "
            "design"
        )
    if not plan.columns and method != "monte_carlo":
        raise StudyError(
            f"the study has no dispersions, but method {method!r} needs at least one; add vary, or use "
            "method='monte_carlo'"
        )
    discrete = [c.name for c in plan.drawn.columns if isinstance(c.distribution, Discrete)]
    if method == "form" and discrete:
        raise StudyError(
            f"{discrete[0]!r} has a discrete distribution, but method 'form' needs the derivative with respect to "
            "each random input; use method='importance' or method='subset'"
        )
    if method != "monte_carlo":
        try:
            refuse_noise(plan.nominal, [draws.varied.parameter for draws in plan.drawn.draws])
        except StudyError as error:
            raise StudyError(f"method is {method!r}, but {error}. Or use method='monte_carlo'") from None


def _estimated(simulate: Simulations, method: str, plan: Plan, stage: int, wanted: float) -> Estimate:
    """Run the method."""
    dimension, seed = len(plan.columns), plan.description.seed
    if method == "monte_carlo":
        count = simulate.limit
        points = uniforms(seed, OF_VALUES, 0, count, dimension) if dimension else np.zeros((count, 0))
        u = special.ndtri(points)
        return monte_carlo(u, simulate.of_points(points, u))
    if method == "importance":
        return importance_sampling(
            simulate, dimension, seed, stage, wanted, simulate.limit, exploring=simulate.exploring
        )
    if method == "form":
        return form(simulate, dimension, seed, wanted, simulate.limit)
    return subset_simulation(simulate, dimension, seed, stage)


def _result(study: Study, simulate: Simulations, estimate: Estimate, method: str, asked: str) -> Probability:
    """Return the result, with the most probable failing sample and the influence of the random inputs."""
    import xarray

    plan = study.plan
    is_failure, distance = simulate.margins < 0.0, np.linalg.norm(simulate.u, axis=-1)
    sample = int(np.argmin(np.where(is_failure, distance, np.inf))) if is_failure.any() else None
    nearest = np.full(len(plan.columns), np.nan) if sample is None else simulate.values[sample]
    of_parameters = {"parameter": list(plan.columns), "units": ("parameter", list(plan.units))}
    all_samples = plan.with_values(simulate.values)
    return Probability(
        question=asked,
        method=method,
        estimate=estimate.value,
        interval=estimate.interval,
        coefficient_of_variation=estimate.coefficient_of_variation,
        simulations=simulate.count,
        failed=simulate.failed,
        undefined=simulate.without_number,
        warnings=simulate.warnings,
        sample=sample,
        inputs=xarray.DataArray(nearest, of_parameters, ("parameter",)),
        importance=xarray.DataArray(_importance(plan, estimate), of_parameters, ("parameter",)),
        stages=estimate.stages,
        study=study.of_plan(all_samples),
        first_order=estimate.first_order,
    )


def _importance(plan: Plan, estimate: Estimate) -> np.ndarray:
    """Return the importance (d,) of the random inputs, of sum 1; NaN without failures.

    The mean square of a standard normal number is 1. The number drives the failures if its mean square in failures is
    larger. For a linear margin, the excess is proportional to the squared cosine alpha^2 of FORM. FORM itself has the
    scores of its design point.
    """
    if estimate.design_point is not None:
        scores = _scores(plan, estimate.design_point[None])[0] ** 2
        return scores / scores.sum() if scores.sum() > 0.0 else np.full(len(plan.columns), np.nan)
    if not len(estimate.failing):
        return np.full(len(plan.columns), np.nan)
    excess = np.maximum(estimate.weights @ _scores(plan, estimate.failing) ** 2 - 1.0, 0.0)
    return excess / excess.sum() if excess.sum() > 0.0 else np.full(len(plan.columns), np.nan)


def _scores(plan: Plan, u: np.ndarray) -> np.ndarray:
    """Return the correlated standard normal scores (m, d) of the random inputs."""
    scores = np.array(u)
    for columns, triangle in plan.drawn.correlations:
        scores[:, columns] = u[:, columns] @ triangle.T
    return scores
