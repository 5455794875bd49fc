"""Columns of a study's draws: the numbers that are drawn for each sample, with their distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from ...acting.signal_numbers import OF_SIGNAL
from ...errors import StudyError
from ..describe.correlations import triangle_of_correlation
from ..describe.description import Description
from ..describe.dispersions import Dispersion
from ..describe.distribution import Distribution
from ..describe.multivariate_normal import MultivariateNormal
from ..describe.parameter_table import PARAMETERS
from ..describe.places import errors_at
from .checks import refuse_driven
from .nominal import Nominal
from .targets import Varied, parameters_of, varied_at


@dataclass(frozen=True)
class Draws:
    """The columns of one parameter that the dispersion with this path changes."""

    path: str
    varied: Varied
    columns: slice


@dataclass(frozen=True)
class Column:
    """A random input.

    Attributes
    ----------
    place : str
        Place of its distribution in the description, for error messages.
    unit : str
        SI unit; "1" for a factor, strain or coefficient, "" if it depends on a function or the mechanism.
    """

    name: str
    place: str
    unit: str
    distribution: Distribution


@dataclass(frozen=True, eq=False)
class Columns:
    """All random inputs.

    Attributes
    ----------
    draws : tuple of Draws
        Columns of each parameter of each dispersion, in the order of the description.
    correlations : tuple of (list of int, array)
        Correlated columns, with the lower triangle of the Cholesky factorization of their correlation matrix.
    """

    columns: tuple[Column, ...]
    draws: tuple[Draws, ...]
    correlations: tuple[tuple[list[int], np.ndarray], ...]

    def values(self, points: np.ndarray) -> np.ndarray:
        """Return the random inputs (m, columns) of points in the unit cube."""
        points = np.array(points, dtype=np.float64)
        if not self.columns:
            return points
        for columns, triangle in self.correlations:
            scores = special.ndtri(points[:, columns])
            # summed term by term, because a matrix product may add in an order that depends on the number of samples
            mixed = sum(scores[:, [j]] * triangle[:, j] for j in range(len(columns)))
            points[:, columns] = special.ndtr(mixed)
        return self.of_probabilities(points)

    def of_probabilities(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the values (m, columns) that the random inputs do not exceed with these probabilities."""
        draws = []
        for c, column in enumerate(self.columns):
            with errors_at(column.place):
                draws.append(column.distribution.ppf(probabilities[:, c]))
        return np.stack(draws, -1)


def columns_of(description: Description, nominal: Nominal) -> Columns:
    """Return the columns of all dispersions of the description."""
    all_columns: list[Column] = []
    all_draws: list[Draws] = []
    correlations: list[tuple[list[int], np.ndarray]] = []
    parameters = parameters_of(nominal)
    for path, dispersion in description.vary.items():
        place = f'vary."{path}"'
        with errors_at(place):
            found = varied_at(path, dispersion, parameters, nominal)
        if found[0].parameter == "tau":
            refuse_driven(nominal, place, [varied.target.index for varied in found])
        for varied in found[:1] if dispersion.shared else found:
            start = len(all_columns)
            all_columns += _columns_of(path, dispersion, varied)
            columns = slice(start, len(all_columns))
            all_draws += [Draws(path, v, columns) for v in (found if dispersion.shared else [varied])]
            if isinstance(dispersion.distribution, MultivariateNormal):
                correlations.append((list(range(start, len(all_columns))), dispersion.distribution.correlation))
    names = [column.name for column in all_columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise StudyError(
            f"vary: {twice!r} is varied by two dispersions; expected each parameter once. Use paths of different "
            "parameters, or `shared` in one dispersion"
        )
    for i, correlation in enumerate(description.correlate):
        unknown = [name for name in correlation.parameters if name not in names]
        if unknown:
            raise StudyError(
                f"correlate[{i}].parameters: {unknown[0]!r} is not a random input; expected names of {names}"
            )
        correlations.append(
            ([names.index(name) for name in correlation.parameters], np.array(correlation.matrix, float))
        )
    correlated = [c for columns, _ in correlations for c in columns]
    repeated = sorted({names[c] for c in correlated if correlated.count(c) > 1})
    if repeated:
        raise StudyError(
            f"correlate: {repeated[0]!r} is in two correlation matrices; expected each input in at most one matrix. "
            "Combine the matrices"
        )
    triangles = tuple((columns, triangle_of_correlation(matrix)) for columns, matrix in correlations)
    return Columns(tuple(all_columns), tuple(all_draws), triangles)


def _columns_of(path: str, dispersion: Dispersion, varied: Varied) -> list[Column]:
    """Return the columns of the components of one parameter, with distributions in SI units."""
    parameter, is_factor = PARAMETERS[varied.parameter], varied.how == "multiply"
    names = [f"{varied.name}.{component}" for component in varied.component_names] or [varied.name]
    if dispersion.shared:
        names = [path] if len(names) == 1 else [f"{path}.{component}" for component in varied.component_names]
    of_unit = PARAMETERS[varied.target.signal] if parameter.si_unit == OF_SIGNAL else parameter
    dimension = None if is_factor else of_unit.dimension_of(varied.target.angular)
    unit = "1" if is_factor else of_unit.unit_of(varied.target.angular)
    place = f'vary."{path}".distribution'
    with errors_at(place):
        expected = "a plain number, a factor" if is_factor else "a plain number in SI units"
        distribution: Distribution = dispersion.distribution.in_si(dimension, unit, expected)
        if not isinstance(distribution, MultivariateNormal):
            return [Column(name, place, unit, distribution) for name in names]
        if distribution.mean.size != len(names):
            raise StudyError(f"found {distribution.mean.size} means; expected {len(names)}, one for each of {names}")
    return [Column(name, place, unit, distribution.component(c)) for c, name in enumerate(names)]
