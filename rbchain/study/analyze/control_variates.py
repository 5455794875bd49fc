"""Control variates: a more precise mean of a measure, from the known means of the random inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ...errors import StudyError
from ..describe.designs import Random
from ..plan.outcomes import NOT_RUN, has_failed
from ..plan.plan import Plan
from ..run.order_statistics import CONFIDENCE

if TYPE_CHECKING:
    import xarray

    from ..study import Study

LEAST_SAMPLES = 10  # per coefficient of the regression


def control_variates(study: Study, results: xarray.Dataset, measure: str | None = None) -> xarray.Dataset:
    """Estimate the means of measures with less variance, from the known means of the random inputs.

    A linear regression on the random inputs explains part of the variance of a measure. Because the means of these
    inputs are known, this part does not contribute to the error of the mean.

    Parameters
    ----------
    results : xarray.Dataset
        Results of this study.
    measure : str, optional
        Name of a measure; all measures by default.

    Returns
    -------
    xarray.Dataset
        Along `measure`: the mean and the half width `half_width` of its 95 % interval, `plain_mean` and
        `plain_half_width` without control variates, and `factor`. A study without control variates needs `factor`
        times as many samples for the same error. `attrs["parameters"]` lists the inputs that were used.

    Raises
    ------
    StudyError
        If samples failed, if the samples are not independent (`design` is not "random"), if they are fewer than 10
        for each coefficient, or if the results belong to another study.

    Notes
    -----
    Inputs whose mean or standard deviation is unknown or infinite are not used, for example those with user-defined
    distributions and with distributions such as Cauchy's. SciPy gives the means of its distributions; rbchain uses them
    if they agree with the quantiles. Intervals are exact for normally distributed inputs and asymptotic for others. A
    factor slightly below 1 means that the measure does not depend linearly on the inputs.

    The source is Lavenberg and Welch (1981), "A perspective on the use of control variables to increase the
    efficiency of Monte Carlo simulations".

    Examples
    --------
    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(1), samples=50, simulate={"duration": 0.1},
    ...     vary={"*.q": rb.Uniform(-0.1, 0.1)},
    ...     measures=[{"name": "angle", "quantity": "position", "joint": "link1"}],
    ... )
    >>> found = study.control_variates(study.run(), "angle")
    >>> bool(found.half_width < 0.1 * found.plain_half_width), bool(found.factor > 100)
    (True, True)
    """
    import xarray

    plan = study.plan
    names = plan.chosen_measures(measure)
    missing = [name for name in ("parameters", "status", *names) if name not in results]
    if missing:
        raise StudyError(f"the results contain no {missing[0]!r}; expected the dataset of Study.run")
    drawn = _verified_draws(plan, results["parameters"].values)
    values = {name: results[name].values for name in names}
    estimates, used = controlled_means(plan, drawn, results["status"].values, values)
    labels = ("mean", "half_width", "plain_mean", "plain_half_width", "factor")
    found = xarray.Dataset(
        {label: ("measure", column) for label, column in zip(labels, estimates.T, strict=True)},
        {"measure": names, "units": ("measure", [results[name].attrs.get("units", "") for name in names])},
        {"samples": len(drawn), "parameters": used},
    )
    return found if measure is None else found.sel(measure=measure)


def controlled_means(
    plan: Plan, drawn: np.ndarray, status: np.ndarray, measures: dict[str, np.ndarray]
) -> tuple[np.ndarray, list[str]]:
    """Return the results of `controlled_mean` for each measure, and the names of the random inputs that were used.

    `drawn` (n, columns), `status` (n,) and `measures` (n,), by name, contain all samples.
    """
    if not isinstance(plan.description.design, Random):
        raise StudyError(
            f"the design of this study is {plan.description.design.type!r}, but control variates need independent "
            'samples; set design = "random"'
        )
    if plan.table is not None:  # for example of `Study.sobol_indices`
        raise StudyError(
            "the draws of this study come from a table, but control variates need independent samples of the "
            'distributions; use the results of Study.run with design = "random"'
        )
    moments = np.array([column.distribution.moments() for column in plan.drawn.columns]).reshape(-1, 2)
    used = np.isfinite(moments).all(-1) & (moments[:, 1] > 0.0)
    used &= np.ptp(drawn, axis=0) > 0.0  # rare values of a discrete distribution may be missing
    _check_samples(status, measures, int(used.sum()))
    controls = (drawn[:, used] - moments[used, 0]) / moments[used, 1]
    estimates = np.array([controlled_mean(values, controls) for values in measures.values()])
    return estimates, [plan.columns[c] for c in np.flatnonzero(used)]


def _verified_draws(plan: Plan, drawn: np.ndarray) -> np.ndarray:
    """Return the random inputs of results, or raise a StudyError if they belong to another study."""
    samples = len(drawn)
    belong = drawn.shape == (samples, len(plan.columns)) and samples <= plan.description.samples
    # another machine may round the quantiles of a distribution differently
    if not belong or not np.allclose(drawn, plan.draw(0, samples), rtol=1e-9, atol=0.0, equal_nan=True):
        raise StudyError(
            "the random inputs of the results differ from the draws of this study; expected the results of this study, "
            "with its samples in order from the first one"
        )
    return drawn


def _check_samples(status: np.ndarray, measures: dict[str, np.ndarray], controls: int) -> None:
    """Raise a StudyError if samples failed or are missing, if measures are not finite, or if there are too few."""
    failed = int((has_failed(status) | (status == NOT_RUN)).sum())
    if failed:
        raise StudyError(
            f"{failed} of {status.size} samples failed or were not run, but control variates need all samples: the "
            "means of the random inputs of the others are not known. Finish the run, or narrow the distributions"
        )
    for name, values in measures.items():
        wrong = int((~np.isfinite(values)).sum())
        if wrong:
            raise StudyError(
                f"{name!r} is not finite in {wrong} of {status.size} samples, but control variates need all samples; "
                "choose another measure"
            )
    if status.size < LEAST_SAMPLES * (controls + 1):
        raise StudyError(
            f"the results have {status.size} samples; expected at least {LEAST_SAMPLES * (controls + 1)}, "
            f"{LEAST_SAMPLES} for each of the {controls + 1} coefficients of the regression. Run more samples"
        )


def controlled_mean(values: np.ndarray, controls: np.ndarray) -> tuple[float, float, float, float, float]:
    """Estimate the mean of values (n,) by linear regression on controls (n, p), whose means are known to be 0.

    The estimate is the intercept of the regression. The residual variance s^2 has n - p - 1 degrees of freedom. With
    D = [1, controls], the variance of the intercept is s^2 [(D^T D)^-1]_00, and its confidence interval follows from
    Student's t distribution. It is exact if values and controls are jointly normal, and asymptotic otherwise, even for
    nonlinear values.

    Sources: Lavenberg and Welch (1981), "A perspective on the use of control variables to increase the efficiency of
    Monte Carlo simulations"; Owen (2013), "Monte Carlo theory, methods and examples", section 8.9.

    The ratio of the variances without and with controls is (n - p - 2) / (n - 2) / (1 - R^2), where 1 - R^2 is the
    ratio of the unbiased variances of residuals and values. The first factor is the price of the p coefficients.

    Returns
    -------
    tuple of float
        Mean and half width of its 95 % interval, the same without controls, and the ratio of the variances.

    Raises
    ------
    StudyError
        If the controls are linearly dependent.
    """
    n, p = controls.shape
    plain, variance = values.mean(), values.var(ddof=1)
    plain_half = special.stdtrit(n - 1, 0.5 + CONFIDENCE / 2) * np.sqrt(variance / n)
    if np.ptp(values) == 0.0:
        return values[0], 0.0, values[0], 0.0, 1.0
    D = np.column_stack([np.ones(n), controls])
    centered = values - plain  # subtracted, so that round-off is relative to the spread and not to the mean
    coefficients, _, rank, _ = np.linalg.lstsq(D, centered, rcond=None)
    if rank <= p:
        raise StudyError("the random inputs of these samples are linearly dependent; run more samples")
    residual = ((centered - D @ coefficients) ** 2).sum() / (n - p - 1)
    of_intercept = np.linalg.inv(D.T @ D)[0, 0]
    half = special.stdtrit(n - p - 1, 0.5 + CONFIDENCE / 2) * np.sqrt(residual * of_intercept)
    with np.errstate(divide="ignore"):
        factor = np.divide(variance, residual) * (n - p - 2) / (n - 2)
    return plain + coefficients[0], half, plain, plain_half, factor
