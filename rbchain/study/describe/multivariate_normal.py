"""The joint normal distribution of the components of one dispersion."""

from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import model_validator

from .correlations import triangle_of_correlation
from .distribution import Distribution
from .distributions import Normal
from .numbers import Numbers


class MultivariateNormal(Distribution):
    """Joint normal distribution of the components of one dispersion.

    Parameters
    ----------
    mean : array_like, shape (m,)
        Means of the components, in SI units.
    covariance : array_like, shape (m, m)
        Symmetric and positive definite, in squared SI units.

    Examples
    --------
    >>> from rbchain.study import MultivariateNormal
    >>> MultivariateNormal(mean=[0.0, 0.1], covariance=[[4e-4, 1e-4], [1e-4, 1e-4]]).std.tolist()
    [0.02, 0.01]
    """

    internal_names: ClassVar[tuple[str, ...]] = ("component", "correlation", "std")
    positional: ClassVar[tuple[str, ...]] = ("mean", "covariance")
    type: Literal["multivariate_normal"] = "multivariate_normal"
    mean: Numbers
    covariance: Numbers

    if TYPE_CHECKING:

        def __init__(self, mean: npt.ArrayLike, covariance: npt.ArrayLike) -> None: ...

    @model_validator(mode="after")
    def _check_covariance(self) -> Self:
        m = self.mean.size
        if self.mean.shape != (m,) or self.covariance.shape != (m, m):
            raise ValueError(
                f"mean has shape {self.mean.shape} and covariance has shape {self.covariance.shape}; expected (m,) and "
                "(m, m)"
            )
        deviations = np.sqrt(np.maximum(self.covariance.diagonal(), 0.0))
        if not (deviations > 0.0).all():
            raise ValueError(
                f"the diagonal of covariance is {self.covariance.diagonal().tolist()}; expected variances above 0"
            )
        triangle_of_correlation(self.covariance / np.outer(deviations, deviations))
        return self

    @property
    def std(self) -> np.ndarray:
        """Standard deviations of the components (m,)."""
        return np.sqrt(self.covariance.diagonal())

    @property
    def correlation(self) -> np.ndarray:
        """Correlation matrix of the components (m, m)."""
        return self.covariance / np.outer(self.std, self.std)

    def component(self, i: int) -> Normal:
        """Return the distribution of component i alone."""
        return Normal(mean=float(self.mean[i]), std=float(self.std[i]))
