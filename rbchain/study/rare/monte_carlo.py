"""Monte Carlo: the share of failures in independent samples."""

from __future__ import annotations

import math

import numpy as np

from .estimates import Estimate, Stage, clopper_pearson


def monte_carlo(u: np.ndarray, margins: np.ndarray) -> Estimate:
    """Estimate the probability of a failure from independent samples, with the interval of Clopper and Pearson.

    Parameters
    ----------
    u : (m, d) array
        Standard normal vectors of the samples.
    margins : (m,) array
        Negative for a failure, NaN if unknown. The estimate omits unknown samples. The interval covers both cases:
        all of them are failures, or none is.

    Examples
    --------
    >>> import numpy as np
    >>> u = np.linspace(-2, 2, 100)[:, None]
    >>> found = monte_carlo(u, 1.0 - u[:, 0])
    >>> found.value, np.round(found.interval, 4).tolist()
    (0.25, [0.1688, 0.3466])
    """
    unknown = int(np.isnan(margins).sum())
    failing = margins < 0.0
    failures, known = int(failing.sum()), len(u) - unknown
    value = failures / known if known else math.nan
    interval = clopper_pearson(failures, len(u))[0], clopper_pearson(failures + unknown, len(u))[1]
    variation = math.sqrt((1.0 - value) / failures) if failures else math.inf
    stages = (Stage(len(u), 0.0, value),)
    return Estimate(value, interval, variation, stages, u[failing], np.full(failures, 1.0 / max(failures, 1)))
