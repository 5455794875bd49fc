"""Distributions of SciPy, and users' objects with a method `ppf`."""

import math
from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, field_validator, model_validator

from .distribution import Distribution
from .distributions import Discrete, Gumbel, LogNormal, Normal, Triangular, TruncatedNormal, Uniform, Weibull
from .multivariate_normal import MultivariateNormal
from .numbers import real_numbers, refuse_unreal


class Scipy(Distribution):
    """Continuous or discrete distribution of `scipy.stats`, by name.

    Parameters
    ----------
    name : str
        Name in `scipy.stats`, such as "beta".
    args : sequence of float
        Its shape parameters.
    kwds : dict of float
        Its keyword arguments, such as `loc` and `scale`.

    Examples
    --------
    >>> from rbchain.study import Scipy
    >>> Scipy(name="expon", kwds={"scale": 2.0}).ppf([0.5]).round(3).tolist()
    [1.386]
    """

    type: Literal["scipy"] = "scipy"
    name: str
    args: tuple[float, ...] = ()
    kwds: dict[str, float] = Field(default={})

    @field_validator("kwds", mode="before")
    @classmethod
    def _check_keywords(cls, kwds: Any) -> Any:
        for name, value in kwds.items() if isinstance(kwds, dict) else ():
            refuse_unreal(f"kwds.{name}", value)
        return kwds

    @model_validator(mode="after")
    def _check_name_and_arguments(self) -> Self:
        from scipy import stats

        family = getattr(stats, self.name, None)
        if not isinstance(family, (stats.rv_continuous, stats.rv_discrete)):
            raise ValueError(f"name is {self.name!r}; expected a distribution of scipy.stats, such as 'beta'")
        try:
            median = self.ppf(0.5)
        except TypeError as error:
            raise ValueError(
                f"scipy.stats.{self.name} does not accept args = {self.args} and kwds = {self.kwds}: {error}"
            ) from None
        if not np.isfinite(median):
            raise ValueError(
                f"scipy.stats.{self.name} with args = {self.args} and kwds = {self.kwds} has the median {median}; "
                "expected arguments in the range that SciPy documents"
            )
        return self

    def ppf(self, u: npt.ArrayLike) -> np.ndarray:
        from scipy import stats

        return getattr(stats, self.name)(*self.args, **self.kwds).ppf(u)

    def moments(self) -> tuple[float, float]:
        from scipy import stats

        frozen = getattr(stats, self.name)(*self.args, **self.kwds)
        with np.errstate(all="ignore"):
            mean, std = float(frozen.mean()), float(frozen.std())
            values = frozen.ppf((np.arange(10_000) + 0.5) / 10_000)
            # SciPy's moments can be wrong, for example for a narrow truncnorm: they must agree with the quantiles
            agree = abs(values.mean() - mean) <= 0.01 * std and abs(values.std() - std) <= 0.1 * std < np.inf
        return (mean, std) if agree else (math.nan, math.nan)


class Given(Distribution):
    """Object with a method `ppf`, from Python only: a histogram of SciPy or a user's own distribution."""

    type: Literal["given"] = "given"
    distribution: Any

    def ppf(self, u: npt.ArrayLike) -> np.ndarray:
        try:
            result = self.distribution.ppf(u)
        except Exception as error:
            raise ValueError(f"the method ppf raised {type(error).__name__}: {error}") from error
        values = real_numbers("the result of ppf", result)
        if values.shape != np.shape(u):
            raise ValueError(
                f"the method ppf returned shape {values.shape} for an argument of shape {np.shape(u)}; expected the "
                "same shape"
            )
        return values


def from_object(value: Any) -> Any:
    """Describe a frozen distribution of SciPy by its name, and wrap any other object with a `ppf`."""
    if isinstance(value, Distribution | dict) or not hasattr(value, "ppf"):
        return value
    from scipy import stats

    family = getattr(value, "dist", None)
    if family is not None and type(getattr(stats, getattr(family, "name", None) or "", None)) is type(family):
        return Scipy(name=family.name, args=value.args, kwds=value.kwds)  # type: ignore[union-attr]
    return Given(distribution=value)


#: Any distribution: an object, or a table with its `type`.
AnyDistribution = Annotated[
    Annotated[
        Normal
        | TruncatedNormal
        | LogNormal
        | Uniform
        | Triangular
        | Weibull
        | Gumbel
        | Discrete
        | MultivariateNormal
        | Scipy
        | Given,
        Field(discriminator="type"),
    ],
    BeforeValidator(from_object),
]
