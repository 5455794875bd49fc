"""Columns of a study's draws: the numbers that are drawn for each sample, with their distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from ...errors import StudyError
from ...model.units import SI
from ..describe.correlations import triangle_of_correlation
from ..describe.description import Description
from ..describe.dispersions import Dispersion
from ..describe.distributions import Distribution, MultivariateNormal
from ..describe.parameter_table import DIMENSIONLESS, MODEL, PARAMETERS
from ..describe.places import errors_at
from .checks import refuse_driven
from .nominal import Nominal
from .targets import Target, targets_of


@dataclass(frozen=True)
class Draws:
    """The columns that one target of one dispersion uses."""

    dispersion: Dispersion
    target: Target
    columns: slice


@dataclass(frozen=True)
class Column:
    """A drawn number.

    Attributes
    ----------
    place : str
        Place of its distribution in the description, for error messages.
    unit : str
        SI unit; "1" for a factor, strain or coefficient, "" if the parameter table names no unit.
    """

    name: str
    place: str
    unit: str
    distribution: Distribution


@dataclass(frozen=True, eq=False)
class Columns:
    """All drawn numbers.

    Attributes
    ----------
    draws : tuple of Draws
        Columns of each target of each dispersion, in the order of the description.
    correlations : tuple of (list of int, array)
        Correlated columns, with the lower triangle of the Cholesky factorisation of their correlation matrix.
    """

    columns: tuple[Column, ...]
    draws: tuple[Draws, ...]
    correlations: tuple[tuple[list[int], np.ndarray], ...]

    def values(self, points: np.ndarray) -> np.ndarray:
        """Return the drawn numbers (m, columns) of points in the unit cube."""
        points = np.array(points, dtype=np.float64)
        if not self.columns:
            return points
        for columns, triangle in self.correlations:
            scores = special.ndtri(points[:, columns])
            # summed term by term, because a matrix product may add in an order that depends on the number of samples
            mixed = sum(scores[:, [j]] * triangle[:, j] for j in range(len(columns)))
            points[:, columns] = special.ndtr(mixed)
        draws = []
        for c, column in enumerate(self.columns):
            with errors_at(column.place):
                draws.append(column.distribution.ppf(points[:, c]))
        return np.stack(draws, -1)


def columns_of(description: Description, nominal: Nominal) -> Columns:
    """Return the columns of all dispersions of the description."""
    all_columns: list[Column] = []
    all_draws: list[Draws] = []
    correlations: list[tuple[list[int], np.ndarray]] = []
    for i, dispersion in enumerate(description.vary):
        with errors_at(f"vary[{i}].targets"):
            targets = targets_of(nominal, dispersion.parameter, dispersion.targets)
        if dispersion.parameter == "tau":
            refuse_driven(nominal, f"vary[{i}].targets", [target.index for target in targets])
        for target in targets[:1] if dispersion.shared else targets:
            start = len(all_columns)
            all_columns += _columns_of_target(dispersion, target, f"vary[{i}].distribution")
            columns = slice(start, len(all_columns))
            all_draws += [Draws(dispersion, t, columns) for t in (targets if dispersion.shared else [target])]
            if isinstance(dispersion.distribution, MultivariateNormal):
                correlations.append((list(range(start, len(all_columns))), dispersion.distribution.correlation))
    names = [column.name for column in all_columns]
    for i, correlation in enumerate(description.correlate):
        unknown = [name for name in correlation.parameters if name not in names]
        if unknown:
            raise StudyError(
                f"correlate[{i}].parameters: {unknown[0]!r} is not a drawn number; expected names of {names}"
            )
        correlations.append(
            ([names.index(name) for name in correlation.parameters], np.array(correlation.matrix, float))
        )
    correlated = [c for columns, _ in correlations for c in columns]
    repeated = sorted({names[c] for c in correlated if correlated.count(c) > 1})
    if repeated:
        raise StudyError(
            f"correlate: {repeated[0]!r} is in two correlation matrices; expected each number in one matrix at most. "
            "Combine the matrices"
        )
    triangles = tuple((columns, triangle_of_correlation(matrix)) for columns, matrix in correlations)
    return Columns(tuple(all_columns), tuple(all_draws), triangles)


def _columns_of_target(dispersion: Dispersion, target: Target, place: str) -> list[Column]:
    """Return the columns of the components of one target, with distributions in SI units."""
    parameter, is_factor = PARAMETERS[dispersion.parameter], dispersion.how == "multiply"
    has_one_label = dispersion.shared or parameter.owner == MODEL
    label = dispersion.name if has_one_label else f"{dispersion.name}[{target.name}]"
    names = [f"{label}.{component}" for component in dispersion.components or ()] or [label]
    dimension = None if is_factor else parameter.dimension_of(target.angular)
    unit = "1" if is_factor or dispersion.parameter in DIMENSIONLESS else SI.get(dimension or "", "")
    with errors_at(place):
        expected = "a plain number, a factor" if is_factor else "a plain number in SI units"
        distribution: Distribution = dispersion.distribution.in_si(dimension, expected)
    if isinstance(distribution, MultivariateNormal):
        return [Column(name, place, unit, distribution.component(c)) for c, name in enumerate(names)]
    return [Column(name, place, unit, distribution) for name in names]
