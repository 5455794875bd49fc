"""Distributions of one value or of several correlated ones.

Each distribution maps uniform numbers in (0, 1) to values by the inverse of its distribution function, so it works with
every design (random, stratified, Sobol). The formulas agree with `scipy.stats`, which takes more than a second to
import. `scipy_distributions` accepts its other distributions.
"""

import math
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator
from scipy import special

from .distribution import Distribution
from .numbers import Numbers, Positive, Quantity


class Normal(Distribution):
    """Normal distribution.

    Parameters
    ----------
    mean : float or str
        In SI units, or with a unit such as "100 g" (0 by default).
    std : float or str
        Standard deviation, above 0, in the same unit as `mean`.

    Examples
    --------
    >>> from rbchain.study import Normal
    >>> Normal(mean=1.0, std=0.05).ppf([0.5, 0.975]).round(3).tolist()
    [1.0, 1.098]
    """

    positional: ClassVar[tuple[str, ...]] = ("mean", "std")
    type: Literal["normal"] = "normal"
    mean: Quantity = 0.0
    std: Positive

    if TYPE_CHECKING:

        def __init__(self, mean: Quantity = 0.0, std: Quantity = ...) -> None: ...

    def _quantile(self, u: np.ndarray) -> np.ndarray:
        return special.ndtri(u) * self.std + self.mean

    def moments(self) -> tuple[float, float]:
        return self.mean, self.std


class Bounded(Distribution):
    """Base class of distributions between `low` and `high`."""

    low: Quantity
    high: Quantity

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        low, high = self.low, self.high
        if not isinstance(low, str) and not isinstance(high, str) and not low < high:
            raise ValueError(f"low is {low} and high is {high}; expected low below high")
        return self


class TruncatedNormal(Bounded):
    """Normal distribution, truncated to the range from `low` to `high`.

    Parameters
    ----------
    low, high : float or str
        Ends of the range, in SI units or with a unit.
    mean, std : float or str
        Mean (0 by default) and standard deviation before the truncation.

    Examples
    --------
    >>> from rbchain.study import TruncatedNormal
    >>> TruncatedNormal(mean=1.0, std=0.05, low=0.9, high=1.1).ppf([0.0, 0.5, 1.0]).tolist()
    [0.9, 1.0, 1.1]
    """

    positional: ClassVar[tuple[str, ...]] = ("mean", "std", "low", "high")
    type: Literal["truncated_normal"] = "truncated_normal"
    mean: Quantity = 0.0
    std: Positive

    if TYPE_CHECKING:

        def __init__(
            self, mean: Quantity = 0.0, std: Quantity = ..., low: Quantity = ..., high: Quantity = ...
        ) -> None: ...

    def _quantile(self, u: np.ndarray) -> np.ndarray:
        a, b = (self.low - self.mean) / self.std, (self.high - self.mean) / self.std
        # logarithms of probabilities, which are small far from the mean; the upper tail is the mirror of the lower one
        with np.errstate(divide="ignore"):
            if a < 0.0:
                scores = special.ndtri_exp(np.logaddexp(special.log_ndtr(a), np.log(u) + _log_of_normal(a, b)))
            else:
                scores = -special.ndtri_exp(np.logaddexp(special.log_ndtr(-b), np.log1p(-u) + _log_of_normal(a, b)))
        found = scores * self.std + self.mean
        return np.where(u == 0.0, self.low, np.where(u == 1.0, self.high, np.clip(found, self.low, self.high)))

    def moments(self) -> tuple[float, float]:
        """Return mean and standard deviation, by quadrature: closed forms cancel for narrow and for distant ranges."""
        a, b = (self.low - self.mean) / self.std, (self.high - self.mean) / self.std
        mode = min(max(0.0, a), b)
        reach = 80.0 / (
            math.hypot(mode, math.sqrt(80.0)) + abs(mode)
        )  # at which the density is exp(-40) of its maximum
        first, last = max(a - mode, -reach), min(b - mode, reach)
        nodes, weights = np.polynomial.legendre.leggauss(100)
        offsets = first + (last - first) * (nodes + 1.0) / 2
        weights = weights * np.exp(-offsets * (offsets + 2 * mode) / 2)
        offset = np.average(offsets, weights=weights)
        spread = np.sqrt(np.average((offsets - offset) ** 2, weights=weights))
        return float((mode + offset) * self.std + self.mean), float(spread * self.std)


def _log_of_normal(a: float, b: float) -> float:
    """Return the logarithm of the probability that a standard normal number is between a and b."""
    if a > 0.0:  # mirrored, because the difference of two numbers near 1 would lose digits
        a, b = -b, -a
    if b > 0.0:
        return float(np.log1p(-special.ndtr(a) - special.ndtr(-b)))
    upper = special.log_ndtr(b)
    return float(upper + np.log1p(-np.exp(special.log_ndtr(a) - upper)))


class LogNormal(Distribution):
    """Log-normal distribution: the logarithm of the value is normally distributed.

    Parameters
    ----------
    median : float or str
        Above 0, in SI units or with a unit (1 by default).
    sigma : float
        Standard deviation of the natural logarithm of the value.

    Examples
    --------
    >>> from rbchain.study import LogNormal
    >>> LogNormal(median=4.0, sigma=0.3).ppf([0.5, 0.8413]).round(2).tolist()
    [4.0, 5.4]
    """

    positional: ClassVar[tuple[str, ...]] = ("median", "sigma")
    type: Literal["log_normal"] = "log_normal"
    median: Positive = 1.0
    sigma: Annotated[float, Field(gt=0.0)]

    if TYPE_CHECKING:

        def __init__(self, median: Quantity = 1.0, sigma: float = ...) -> None: ...

    def _quantile(self, u: np.ndarray) -> np.ndarray:
        return np.exp(self.sigma * special.ndtri(u)) * self.median

    def moments(self) -> tuple[float, float]:
        with np.errstate(over="ignore"):
            mean = float(self.median * np.exp(self.sigma**2 / 2))
            return mean, float(mean * np.sqrt(np.expm1(self.sigma**2)))


class Uniform(Bounded):
    """Uniform distribution.

    Parameters
    ----------
    low, high : float or str
        Ends of the range, in SI units or with a unit.

    Examples
    --------
    >>> from rbchain.study import Uniform
    >>> Uniform(low=-1.0, high=4.0).ppf([0.0, 0.5, 1.0]).tolist()
    [-1.0, 1.5, 4.0]
    """

    positional: ClassVar[tuple[str, ...]] = ("low", "high")
    type: Literal["uniform"] = "uniform"

    if TYPE_CHECKING:

        def __init__(self, low: Quantity, high: Quantity) -> None: ...

    def _quantile(self, u: np.ndarray) -> np.ndarray:
        return u * (self.high - self.low) + self.low

    def moments(self) -> tuple[float, float]:
        return self.low + (self.high - self.low) / 2, (self.high - self.low) / math.sqrt(12.0)


class Triangular(Bounded):
    """Triangular distribution.

    Parameters
    ----------
    low, high : float or str
        Ends of the range, in SI units or with a unit.
    mode : float or str
        Most probable value, from `low` to `high`.

    Examples
    --------
    >>> from rbchain.study import Triangular
    >>> Triangular(low=0.0, mode=1.0, high=2.0).ppf([0.5, 1.0]).tolist()
    [1.0, 2.0]
    """

    positional: ClassVar[tuple[str, ...]] = ("low", "mode", "high")
    type: Literal["triangular"] = "triangular"
    mode: Quantity

    if TYPE_CHECKING:

        def __init__(self, low: Quantity, mode: Quantity, high: Quantity) -> None: ...

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if not any(isinstance(x, str) for x in (self.low, self.mode, self.high)) and not (
            self.low <= self.mode <= self.high
        ):
            raise ValueError(f"mode is {self.mode}; expected a number from low = {self.low} to high = {self.high}")
        return self

    def _quantile(self, u: np.ndarray) -> np.ndarray:
        width = self.high - self.low
        c = (self.mode - self.low) / width
        return np.where(u < c, np.sqrt(c * u), 1.0 - np.sqrt((1.0 - c) * (1.0 - u))) * width + self.low

    def moments(self) -> tuple[float, float]:
        mode, width = self.mode - self.low, self.high - self.low
        return self.low + (mode + width) / 3, math.sqrt((mode**2 - mode * width + width**2) / 18)


class Weibull(Distribution):
    """Weibull distribution, for example of strengths and lifetimes.

    The value exceeds `low` + x with the probability exp(-(x / `scale`)^`shape`).

    Parameters
    ----------
    scale : float or str
        Above 0, in SI units or with a unit. 63 % of the values are below `low` + `scale`.
    shape : float
        Above 0. The spread of the values decreases with increasing `shape`.
    low : float or str
        Smallest value, in SI units or with a unit (0 by default).

    Examples
    --------
    >>> from rbchain.study import Weibull
    >>> Weibull(scale=2.0, shape=1.5).ppf([0.1, 0.6321]).round(2).tolist()
    [0.45, 2.0]
    """

    positional: ClassVar[tuple[str, ...]] = ("scale", "shape")
    type: Literal["weibull"] = "weibull"
    scale: Positive
    shape: Annotated[float, Field(gt=0.0)]
    low: Quantity = 0.0

    if TYPE_CHECKING:

        def __init__(self, scale: Quantity, shape: float, *, low: Quantity = 0.0) -> None: ...

    def _quantile(self, u: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):  # the largest value is infinite
            return self.low + self.scale * (-np.log1p(-u)) ** (1.0 / self.shape)

    def moments(self) -> tuple[float, float]:
        with np.errstate(over="ignore"):
            mean = self.scale * special.gamma(1.0 + 1.0 / self.shape)
            # the square of std / mean, without the difference of two gamma functions
            log_ratio = special.gammaln(1.0 + 2.0 / self.shape) - 2.0 * special.gammaln(1.0 + 1.0 / self.shape)
            return float(self.low + mean), float(mean * np.sqrt(np.expm1(log_ratio)))


class Gumbel(Distribution):
    """Gumbel distribution, for example of the largest force in a year.

    The value is below x with the probability exp(-exp(-(x - `mode`) / `scale`)). Its mean is `mode` + 0.5772 `scale`.

    Parameters
    ----------
    mode : float or str
        Most probable value, in SI units or with a unit.
    scale : float or str
        Above 0, in SI units or with a unit. The standard deviation is 1.2825 `scale`.

    Examples
    --------
    >>> from rbchain.study import Gumbel
    >>> Gumbel(mode=10.0, scale=2.0).ppf([0.3679, 0.99]).round(1).tolist()
    [10.0, 19.2]
    """

    positional: ClassVar[tuple[str, ...]] = ("mode", "scale")
    type: Literal["gumbel"] = "gumbel"
    mode: Quantity
    scale: Positive

    if TYPE_CHECKING:

        def __init__(self, mode: Quantity, scale: Quantity) -> None: ...

    def _quantile(self, u: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):  # the smallest and the largest value are infinite
            return self.mode - self.scale * np.log(-np.log(u))

    def moments(self) -> tuple[float, float]:
        return self.mode + np.euler_gamma * self.scale, math.pi / math.sqrt(6.0) * self.scale


class Discrete(Distribution):
    """Discrete distribution.

    Parameters
    ----------
    values : sequence of float, shape (m,)
        Possible values, in SI units.
    probabilities : sequence of float, shape (m,), optional
        Probabilities of the values, of sum 1. All values are equally probable if not given.

    Examples
    --------
    >>> from rbchain.study import Discrete
    >>> Discrete(values=[1.0, 5.0], probabilities=[0.2, 0.8]).ppf([0.1, 0.3]).tolist()
    [1.0, 5.0]
    """

    positional: ClassVar[tuple[str, ...]] = ("values", "probabilities")
    type: Literal["discrete"] = "discrete"
    values: Numbers
    probabilities: Numbers | None = None

    if TYPE_CHECKING:

        def __init__(self, values: npt.ArrayLike, probabilities: npt.ArrayLike | None = None) -> None: ...

    @model_validator(mode="after")
    def _check_probabilities(self) -> Self:
        p = self.probabilities
        if self.values.ndim != 1:
            raise ValueError(f"values has shape {self.values.shape}; expected a plain list of numbers, shape (m,)")
        if p is not None and (p.shape != self.values.shape or (p < 0.0).any() or abs(p.sum() - 1.0) > 1e-9):
            raise ValueError(
                f"probabilities is {p.tolist()}; expected {self.values.size} numbers, one for each value, none "
                "negative, of sum 1"
            )
        return self

    def ppf(self, u: npt.ArrayLike) -> np.ndarray:
        p = np.full(self.values.size, 1.0 / self.values.size) if self.probabilities is None else self.probabilities
        values, p = self.values[p > 0.0], p[p > 0.0]
        return values[np.minimum(np.searchsorted(np.cumsum(p), u), values.size - 1)]

    def moments(self) -> tuple[float, float]:
        mean = np.average(self.values, weights=self.probabilities)
        return float(mean), float(np.sqrt(np.average((self.values - mean) ** 2, weights=self.probabilities)))
