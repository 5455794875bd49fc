"""Shapley effects: shares of the variance of a measure for each random input, which may be correlated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from ..describe.designs import SMALLEST, uniforms
from .index_samples import IndexSamples

if TYPE_CHECKING:
    import xarray

    from ..study import Study

OF_ORDERS, OF_NUMBERS = 1 << 61, (1 << 61) + 1  # second half of the key of Philox: no other method uses these numbers
NORMAL_QUANTILE = 1.96  # of 97.5 %


def shapley_effects(
    study: Study, measure: str | None = None, *, base_samples: int = 512, out: str | Path | None = None, **settings: Any
) -> xarray.Dataset:
    """Compute the Shapley effects of the random inputs: their shares of the variance of a measure.

    The sum of the shares is 1, even for correlated inputs. A share contains half of the variance that two inputs
    explain only together, by their interaction or by their correlation. An input without any direct influence therefore
    has a share if it is correlated with an input that has one.

    Parameters
    ----------
    measure : str, optional
        Name of the measure. All measures by default.
    base_samples : int
        Number of random orders of the random inputs: d random inputs need base_samples * (d + 1) simulations.
    out, **settings
        As for `Study.sobol_indices`.

    Returns
    -------
    xarray.Dataset
        Along `parameter`: the effects "Sh", and the half widths "Sh_conf" of their 95 % intervals. With all measures,
        arrays have the axis `measure` before `parameter`.

    Raises
    ------
    StudyError
        If the draws come from a table, or if samples fail.

    Warns
    -----
    SimulationWarning
        As for `Study.sobol_indices`.

    Notes
    -----
    Owen (2014), "Sobol' indices and Shapley value", and Song, Nelson and Staum (2016), "Shapley effects for global
    sensitivity analysis: theory and computation", define the effects. The estimator is from Goda (2021), "A simple
    algorithm for global sensitivity analysis with Shapley effects". Correlated inputs are conditioned on each other by
    their normal scores.

    Examples
    --------
    >>> import rbchain as rb
    >>> study = rb.Study(
    ...     rb.Model.serial_chain(1), samples=50, simulate=rb.Simulation(0.1),
    ...     vary={"*.q": rb.Uniform(-0.1, 0.1)},
    ...     measures=[rb.Measure("angle", "position", joint="link1")],
    ... )
    >>> study.shapley_effects("angle", base_samples=8).Sh.values.tolist()
    [1.0]
    """
    samples = IndexSamples(study, measure, "shapley", base_samples, settings)
    plan, count, columns = study.plan, samples.base_samples, len(study.plan.columns)
    factor = np.eye(columns)
    for some, triangle in plan.drawn.correlations:
        factor[np.ix_(some, some)] = triangle
    orders, scores = orders_and_scores(plan.description.seed, count, factor)
    inside = np.clip(special.ndtr(scores.reshape(-1, columns)), SMALLEST, 1.0 - 2 * SMALLEST)

    def analyzed(y: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(("Sh", "Sh_conf"), effects_of(orders, y.reshape(count, columns + 1)), strict=True))

    return samples.indices(plan.drawn.of_probabilities(inside), analyzed, out)


def orders_and_scores(seed: int, count: int, factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draw orders (count, d) of d inputs, and normal scores (count, d + 1, d) with the correlation F F^T, F (d, d).

    The scores k of an order depend on two independent samples: the first k inputs of the order are taken from the last
    sample, and the others follow their distribution under this condition. So they are independent of the last sample
    for k = 0, and equal to it for k = d.
    """
    d = len(factor)
    orders = np.argsort(uniforms(seed, OF_ORDERS, 0, count, d), axis=1)
    # the scores are L w with the Cholesky factor L of the matrix in this order, and independent numbers w; L comes from
    # a QR factorization, which exists for singular correlations too
    triangles = np.linalg.qr(factor[orders].mT).R.mT
    triangles *= np.where(np.diagonal(triangles, axis1=-2, axis2=-1) < 0.0, -1.0, 1.0)[:, None]
    other, last = np.moveaxis(special.ndtri(uniforms(seed, OF_NUMBERS, 0, count, 2 * d)).reshape(count, 2, d), 1, 0)
    is_of_last = np.arange(d) < np.arange(d + 1)[:, None]
    w = np.where(is_of_last, last[:, None], other[:, None])
    scores = np.empty_like(w)
    np.put_along_axis(scores, np.broadcast_to(orders[:, None], w.shape), w @ triangles.mT, axis=-1)
    return orders, scores


def effects_of(orders: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the effects (d,) and the half widths (d,) of their 95 % intervals, from measures y (count, d + 1).

    The variance that the first k inputs of an order do not explain is the mean of (y_d - y_k)^2 / 2. The change from k
    - 1 to k is the contribution of input k.
    """
    count = len(y)
    left = (y[:, -1:] - y) ** 2 / 2
    parts = np.empty((count, y.shape[1] - 1))
    np.put_along_axis(parts, orders, -np.diff(left, axis=1), axis=1)
    total = parts.sum(1)
    effects = parts.mean(0) / total.mean()
    # the standard error of a ratio of means
    deviations = (parts - effects * total[:, None]).std(0, ddof=1) / (total.mean() * count**0.5)
    return effects, NORMAL_QUANTILE * deviations
