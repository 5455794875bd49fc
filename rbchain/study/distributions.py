"""Distributions of one number, or of several that hang together: each maps a uniform number in (0, 1) to a value.

Draws are made by the inverse of the distribution function alone, so that every design (random, stratified, Sobol) can
feed every distribution, and any frozen distribution of SciPy's will do.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from scipy import stats

from .numbers import Described, real_numbers, refuse_unreal


def _read_only(values: npt.ArrayLike, info: ValidationInfo) -> np.ndarray:
    found = real_numbers(str(info.field_name), values)
    if found.size == 0 or not np.isfinite(found).all():
        raise ValueError(f"expected finite numbers, found {found.tolist()}")
    found.flags.writeable = False
    return found


def _positive(value: float | str) -> float | str:
    if not isinstance(value, str) and not value > 0.0:
        raise ValueError(f"expected a number above 0, found {value}")
    return value


#: A number in SI, or a string of a number and its unit, such as "2 mm".
if TYPE_CHECKING:
    Quantity = Any  # `in_si` makes numbers of the strings
else:
    Quantity = Annotated[float | str, Field(union_mode="left_to_right")]
Positive = Annotated[Quantity, AfterValidator(_positive)]
Numbers = Annotated[Any, BeforeValidator(_read_only)]


class Distribution(Described):
    """What all distributions share."""

    def in_si(self, convert: Callable[[str], float]) -> Self:
        """The distribution once `convert` has made numbers of its strings."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        made = {
            name: convert(value) if isinstance(value, str) and name in MEASURED else value
            for name, value in given.items()
        }
        return type(self)(**made) if made != given else self

    if TYPE_CHECKING:

        def _scipy(self) -> Any: ...

    def ppf(self, u: npt.ArrayLike) -> np.ndarray:
        """Values (...) of uniform numbers (...): the inverse of the distribution function."""
        return self._scipy().ppf(u)


MEASURED = ("mean", "std", "low", "high", "mode", "median")


class Normal(Distribution):
    """Mean and standard deviation."""

    kind: Literal["normal"] = "normal"
    mean: Quantity = 0.0
    std: Positive

    def _scipy(self) -> Any:
        return stats.norm(self.mean, self.std)


class Bounded(Distribution):
    """What lies between `low` and `high`."""

    low: Quantity
    high: Quantity

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        low, high = self.low, self.high
        if not isinstance(low, str) and not isinstance(high, str) and not low < high:
            raise ValueError(f"low is {low} and high {high}; expected low below high")
        return self


class TruncatedNormal(Bounded):
    """A normal distribution, given that it lies between `low` and `high`."""

    kind: Literal["truncated_normal"] = "truncated_normal"
    mean: Quantity = 0.0
    std: Positive

    def _scipy(self) -> Any:
        return stats.truncnorm(
            (self.low - self.mean) / self.std, (self.high - self.mean) / self.std, loc=self.mean, scale=self.std
        )


class LogNormal(Distribution):
    """exp(normal): its median, and the standard deviation of its logarithm."""

    kind: Literal["log_normal"] = "log_normal"
    median: Positive = 1.0
    sigma: Annotated[float, Field(gt=0.0)]

    def _scipy(self) -> Any:
        return stats.lognorm(self.sigma, scale=self.median)


class Uniform(Bounded):
    """Between `low` and `high`."""

    kind: Literal["uniform"] = "uniform"

    def _scipy(self) -> Any:
        return stats.uniform(self.low, self.high - self.low)


class Triangular(Bounded):
    """From `low` over the most probable `mode` to `high`."""

    kind: Literal["triangular"] = "triangular"
    mode: Quantity

    @model_validator(mode="after")
    def _mode_between(self) -> Self:
        if not any(isinstance(x, str) for x in (self.low, self.mode, self.high)) and not (
            self.low <= self.mode <= self.high
        ):
            raise ValueError(f"mode is {self.mode}; expected one from low, {self.low}, to high, {self.high}")
        return self

    def _scipy(self) -> Any:
        width = self.high - self.low
        return stats.triang((self.mode - self.low) / width, loc=self.low, scale=width)


class Discrete(Distribution):
    """Some values, equally probable or with the given probabilities."""

    kind: Literal["discrete"] = "discrete"
    values: Numbers
    probabilities: Numbers | None = None

    @model_validator(mode="after")
    def _probable(self) -> Self:
        p = self.probabilities
        if self.values.ndim != 1:
            raise ValueError(f"values has shape {self.values.shape}; expected a list of numbers")
        if p is not None and (p.shape != self.values.shape or (p < 0.0).any() or abs(p.sum() - 1.0) > 1e-9):
            raise ValueError(
                f"probabilities are {p.tolist()}; expected {self.values.size} numbers, none negative, that sum to 1"
            )
        return self

    def ppf(self, u: npt.ArrayLike) -> np.ndarray:
        p = np.full(self.values.size, 1.0 / self.values.size) if self.probabilities is None else self.probabilities
        return self.values[np.minimum(np.searchsorted(np.cumsum(p), u), self.values.size - 1)]


class MultivariateNormal(Distribution):
    """Of the components of one dispersion together: means (m,) and covariance (m, m)."""

    kind: Literal["multivariate_normal"] = "multivariate_normal"
    mean: Numbers
    covariance: Numbers

    @model_validator(mode="after")
    def _covariant(self) -> Self:
        m = self.mean.size
        if self.mean.shape != (m,) or self.covariance.shape != (m, m):
            raise ValueError(
                f"mean has shape {self.mean.shape} and covariance {self.covariance.shape}; expected (m,) and (m, m)"
            )
        deviations = np.sqrt(np.maximum(self.covariance.diagonal(), 0.0))
        if not (deviations > 0.0).all():
            raise ValueError(
                f"covariance has the diagonal {self.covariance.diagonal().tolist()}; expected variances above 0"
            )
        triangle_of_correlation(self.covariance / np.outer(deviations, deviations))
        return self

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(self.covariance.diagonal())

    @property
    def correlation(self) -> np.ndarray:
        return self.covariance / np.outer(self.std, self.std)

    def component(self, i: int) -> Normal:
        """One of its numbers alone."""
        return Normal(mean=float(self.mean[i]), std=float(self.std[i]))


class Scipy(Distribution):
    """Any continuous or discrete distribution of `scipy.stats`, by its name and arguments."""

    kind: Literal["scipy"] = "scipy"
    name: str
    args: tuple[float, ...] = ()
    kwds: dict[str, float] = Field(default={})

    @field_validator("kwds", mode="before")
    @classmethod
    def _real_keywords(cls, kwds: Any) -> Any:
        for name, value in kwds.items() if isinstance(kwds, dict) else ():
            refuse_unreal(f"kwds.{name}", value)
        return kwds

    @model_validator(mode="after")
    def _exists(self) -> Self:
        family = getattr(stats, self.name, None)
        if not isinstance(family, (stats.rv_continuous, stats.rv_discrete)):
            raise ValueError(f"name is {self.name!r}; expected that of a distribution in scipy.stats, such as 'beta'")
        try:
            median = self._scipy().ppf(0.5)
        except TypeError as error:
            raise ValueError(f"scipy.stats.{self.name} refuses these arguments: {error}") from None
        if not np.isfinite(median):
            raise ValueError(f"scipy.stats.{self.name} knows no distribution with args {self.args} and {self.kwds}")
        return self

    def _scipy(self) -> Any:
        return getattr(stats, self.name)(*self.args, **self.kwds)


class Given(Distribution):
    """An object with a `ppf`, from Python only: a histogram of SciPy's, a distribution of one's own."""

    kind: Literal["given"] = "given"
    distribution: Any

    def ppf(self, u: npt.ArrayLike) -> np.ndarray:
        try:
            found = self.distribution.ppf(u)
        except Exception as error:
            raise ValueError(f"its ppf raised {type(error).__name__}: {error}") from error
        values = real_numbers("the result of its ppf", found)
        if values.shape != np.shape(u):
            raise ValueError(f"its ppf returned shape {values.shape} for {np.shape(u)}; expected the same shape")
        return values


def _frozen(value: Any) -> Any:
    """A frozen distribution of SciPy's in words where it has a name there, and any other by itself."""
    if isinstance(value, Distribution | dict) or not hasattr(value, "ppf"):
        return value
    family = getattr(value, "dist", None)
    if family is not None and type(getattr(stats, getattr(family, "name", None) or "", None)) is type(family):
        return Scipy(name=family.name, args=value.args, kwds=value.kwds)  # type: ignore[union-attr]
    return Given(distribution=value)


AnyDistribution = Annotated[
    Annotated[
        Normal | TruncatedNormal | LogNormal | Uniform | Triangular | Discrete | MultivariateNormal | Scipy | Given,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_frozen),
]


def triangle_of_correlation(matrix: npt.ArrayLike) -> np.ndarray:
    """The lower triangle L with L L^T = matrix, or a ValueError that says why it is no correlation matrix."""
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"the matrix has shape {matrix.shape}; expected a square one of finite numbers")
    if not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-12):
        raise ValueError("the matrix is not symmetric")
    if not np.allclose(matrix.diagonal(), 1.0, rtol=0.0, atol=1e-12):
        raise ValueError(f"the diagonal is {matrix.diagonal().tolist()}; expected ones")
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(matrix)[0]
        raise ValueError(f"the matrix is not positive definite: its smallest eigenvalue is {smallest:.3g}") from None
