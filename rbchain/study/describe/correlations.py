"""Correlations of random inputs, and their matrices."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from pydantic import model_validator

from ...common.real_arrays import excerpt
from .numbers import Described, real_numbers


class Correlation(Described):
    """Correlation of several random inputs, by a Gaussian copula.

    Parameters
    ----------
    parameters : sequence of str
        Paths of the inputs as in the results, such as "link1.mass" and "link1.cg.x".
    matrix : array_like, shape (m, m)
        Correlation matrix of the normal scores of the m inputs. For normally distributed inputs this is their
        correlation matrix.

    Examples
    --------
    >>> from rbchain.study import Correlation
    >>> Correlation(["link1.mass", "link1.cg.x"], [[1.0, 0.5], [0.5, 1.0]]).parameters
    ('link1.mass', 'link1.cg.x')
    """

    renamed: ClassVar[Mapping[str, str]] = {"of": "parameters"}

    positional: ClassVar[tuple[str, ...]] = ("parameters", "matrix")

    parameters: tuple[str, ...]
    matrix: Any

    if TYPE_CHECKING:

        def __init__(self, parameters: Sequence[str], matrix: npt.ArrayLike) -> None: ...

    @model_validator(mode="after")
    def _check_matrix(self) -> Self:
        matrix = real_numbers("matrix", self.matrix)
        if matrix.shape != (len(self.parameters),) * 2:
            raise ValueError(
                f"matrix has shape {matrix.shape}; expected ({len(self.parameters)}, {len(self.parameters)}), one row "
                "and one column for each of the parameters"
            )
        triangle_of_correlation(matrix)
        return self


def triangle_of_correlation(matrix: npt.ArrayLike) -> np.ndarray:
    """Return the lower triangle L with L L^T = matrix, or raise a ValueError if it is not a correlation matrix."""
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"the matrix is {excerpt(matrix.tolist())}; expected a square matrix of finite numbers")
    if not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-12):
        i, j = np.argwhere(np.abs(matrix - matrix.T) > 1e-12)[0]
        raise ValueError(
            f"the matrix is not symmetric: entry [{i}, {j}] is {matrix[i, j]:g}, but entry [{j}, {i}] is "
            f"{matrix[j, i]:g}"
        )
    if not np.allclose(matrix.diagonal(), 1.0, rtol=0.0, atol=1e-12):
        raise ValueError(f"the diagonal of the correlation matrix is {matrix.diagonal().tolist()}; expected ones")
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(matrix)[0]
        raise ValueError(
            f"the correlation matrix is not positive definite: its smallest eigenvalue is {smallest:.3g}; expected all "
            "above 0. Make the correlations between different inputs smaller"
        ) from None
