"""The columns of a study's draws: which number of which target each one is, and its distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from ..errors import StudyError
from ..model.units import SI, Units
from .checks import refuse_driven
from .description import Description, Dispersion
from .distributions import Distribution, MultivariateNormal, triangle_of_correlation
from .nominal import Nominal
from .parameter_table import MODEL, PARAMETERS
from .places import call_at
from .targets import Target, targets_of


@dataclass(frozen=True)
class Draws:
    """The columns of one target of one dispersion."""

    dispersion: Dispersion
    target: Target
    columns: slice


@dataclass(frozen=True)
class Column:
    """One number that is drawn.

    Attributes
    ----------
    place : str
        Where in the description its distribution is.
    unit : str
        "1" is no unit, "" one that is SI's.
    """

    name: str
    place: str
    unit: str
    distribution: Distribution


@dataclass(frozen=True, eq=False)
class Columns:
    """All numbers that are drawn.

    Attributes
    ----------
    draws : tuple of Draws
        Which of them each target of each dispersion takes, in the order of the description.
    correlations : tuple of (list of int, array)
        Columns that are correlated, and the lower triangle of the Cholesky factorisation of their correlation matrix.
    """

    columns: tuple[Column, ...]
    draws: tuple[Draws, ...]
    correlations: tuple[tuple[list[int], np.ndarray], ...]

    def values(self, points: np.ndarray) -> np.ndarray:
        """Values of the numbers drawn (m, columns), from points in the unit cube."""
        points = np.array(points, dtype=np.float64)
        if not self.columns:
            return points
        for columns, triangle in self.correlations:
            scores = norm.ppf(points[:, columns])
            # term by term: a matrix product may add in another order for another number of samples
            mixed = sum(scores[:, [j]] * triangle[:, j] for j in range(len(columns)))
            points[:, columns] = norm.cdf(mixed)
        draws = [call_at(column.place, column.distribution.ppf, points[:, c]) for c, column in enumerate(self.columns)]
        return np.stack(draws, -1)


def columns_of(description: Description, nominal: Nominal) -> Columns:
    """Give every number that is drawn its column, and its distribution."""
    found: list[Column] = []
    all_draws: list[Draws] = []
    correlations: list[tuple[list[int], np.ndarray]] = []
    for i, dispersion in enumerate(description.vary):
        targets = call_at(f"vary[{i}].targets", targets_of, nominal, dispersion.parameter, dispersion.targets)
        if dispersion.parameter == "tau":
            refuse_driven(nominal, f"vary[{i}].targets", [target.index for target in targets])
        for target in targets[:1] if dispersion.shared else targets:
            start = len(found)
            distribution = call_at(f"vary[{i}].distribution", _in_si, dispersion, target)
            found += _columns_of_target(dispersion, target, f"vary[{i}].distribution", distribution)
            columns = slice(start, len(found))
            all_draws += [Draws(dispersion, t, columns) for t in (targets if dispersion.shared else [target])]
            if isinstance(distribution, MultivariateNormal):
                correlations.append((list(range(start, len(found))), distribution.correlation))
    names = [column.name for column in found]
    for i, correlation in enumerate(description.correlate):
        unknown = [name for name in correlation.parameters if name not in names]
        if unknown:
            raise StudyError(f"correlate[{i}].parameters: {unknown[0]!r} is not drawn; there are {names}")
        correlations.append(
            ([names.index(name) for name in correlation.parameters], np.array(correlation.matrix, float))
        )
    taken = [c for columns, _ in correlations for c in columns]
    twice = sorted({names[c] for c in taken if taken.count(c) > 1})
    if twice:
        raise StudyError(f"correlate: {twice[0]!r} is correlated twice; expected one matrix for each number")
    triangles = tuple((columns, triangle_of_correlation(matrix)) for columns, matrix in correlations)
    return Columns(tuple(found), tuple(all_draws), triangles)


def _columns_of_target(dispersion: Dispersion, target: Target, place: str, distribution: Distribution) -> list[Column]:
    """The columns of the components of one target."""
    has_one_label = dispersion.shared or PARAMETERS[dispersion.parameter].owner == MODEL
    label = dispersion.name if has_one_label else f"{dispersion.name}[{target.name}]"
    names = [f"{label}.{component}" for component in dispersion.components or ()] or [label]
    joint = isinstance(distribution, MultivariateNormal)
    of_each = [distribution.component(c) if joint else distribution for c in range(len(names))]  # type: ignore[attr-defined]
    return [Column(name, place, _unit(dispersion, target), x) for name, x in zip(names, of_each, strict=True)]


def _in_si(dispersion: Dispersion, target: Target) -> Distribution:
    """A dispersion's distribution with all its numbers in SI."""
    dimension = _dimension(dispersion, target)

    def convert(text: str) -> float:
        if dispersion.how == "multiply" or dimension is None:
            raise ValueError(f"{text!r} has a unit; expected a plain number")
        return Units("SI").quantity(text, dimension)

    return dispersion.distribution.in_si(convert)


def _unit(dispersion: Dispersion, target: Target) -> str:
    """What its draws are measured in: "1" is no unit, "" one that is SI's."""
    dimension = _dimension(dispersion, target)
    return "1" if dispersion.how == "multiply" or dispersion.parameter == "inertia" else SI.get(dimension or "", "")


def _dimension(dispersion: Dispersion, target: Target) -> str | None:
    """What a parameter of this target is, as `Units` has it; None of those that have no word there."""
    dimension = PARAMETERS[dispersion.parameter].dimension
    return dimension[not target.angular] if isinstance(dimension, tuple) else dimension
