"""Bounds and priors of parameters, by the names of fields or paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..common.real_arrays import FloatArray, excerpt, real_array
from ..errors import ArgumentError
from ..simulate.sensitivity_columns import GRAVITY, KINDS, parameters_at
from .variables import EntryVariables

if TYPE_CHECKING:
    from .problem import Problem

#: An estimate is at a bound if its distance is at most this fraction of the interval, on the scale of the variables.
SHARE_AT_BOUND = 1e-6


class Prior(NamedTuple):
    """The mean and the standard deviation of a parameter, in SI units, and its column among the variables."""

    column: int
    mean: float
    deviation: float


class Bounds:
    """The interval of the variables of a problem: the bounds of a caller, and otherwise their largest changes.

    Largest possible numbers count as bounds of the caller.
    """

    def __init__(self, problem: Problem, bounds: Mapping[str, Any] | None) -> None:
        self.labels, self.upper = problem.labels, problem.largest_changes.copy()
        self.lower = -self.upper
        self.is_given = np.zeros((2, problem.size), bool)
        first = problem.numbers(np.zeros(problem.size))[0]
        for column in range(problem.size):
            field, place = problem.field_of(column)
            if isinstance(field, EntryVariables) and np.isfinite(field.largest_number):
                self.upper[column] = field.at(place, field.largest_number)
                self.is_given[1, column] = True
        for name, column, (low, high) in _pairs(problem, "bounds", bounds, "(lower, upper)"):
            if not low < high:
                raise ArgumentError(f"bounds of {name} are ({low:g}, {high:g}); expected the lower bound first")
            if not low <= first[column] <= high:
                raise ArgumentError(
                    f"bounds of {name} are ({low:g}, {high:g}), but the initial guess is {first[column]:g}; expected "
                    "bounds that contain it. Use model.replace to change the initial guess"
                )
            field, place = problem.field_of(column)
            if not isinstance(field, EntryVariables):
                raise ArgumentError(
                    f"bounds contains {name}, which fit does not support, because a tensor is fitted as a whole. "
                    "Use a prior for the tensor"
                )
            given = [field.at(place, number) for number in (low, min(high, field.largest_number))]
            self.is_given[:, column] = np.isfinite(given)
            self.lower[column] = given[0] if np.isfinite(given[0]) else self.lower[column]
            self.upper[column] = given[1] if np.isfinite(given[1]) else self.upper[column]

    def reached_by(self, x: FloatArray) -> tuple[list[str], list[str]]:
        """Return the names of the parameters at bounds of the caller, and at their largest changes."""
        near = SHARE_AT_BOUND * (self.upper - self.lower)
        is_reached = np.array([x - self.lower <= near, self.upper - x <= near])
        of_caller, of_change = (is_reached & self.is_given).any(0), (is_reached & ~self.is_given).any(0)
        at_bounds, at_limit = ([self.labels[i] for i in np.flatnonzero(found)] for found in (of_caller, of_change))
        return at_bounds, at_limit


def priors_of(problem: Problem, priors: Mapping[str, Any] | None) -> list[Prior]:
    """Check the priors of a caller."""
    found = []
    for name, column, (mean, deviation) in _pairs(problem, "priors", priors, "(mean, standard deviation)"):
        if not (np.isfinite(mean) and np.isfinite(deviation) and deviation > 0.0):
            raise ArgumentError(
                f"the prior of {name} is ({mean:g}, {deviation:g}); expected a finite mean and a positive standard "
                "deviation"
            )
        found.append(Prior(column, mean, deviation))
    if found and not problem.motions[0].has_noise:
        raise ArgumentError(
            "priors is given without noise, so the weights of the priors and of the measurements cannot be compared; "
            "expected noise, the standard deviation of the measurements"
        )
    return found


def _pairs(
    problem: Problem, argument: str, given: Mapping[str, Any] | None, expected: str
) -> Iterator[tuple[str, int, FloatArray]]:
    """Yield the name, the column and the two numbers of each parameter in a dict of a caller."""
    taken: dict[int, str] = {}
    if not isinstance(given, Mapping | None):
        raise ArgumentError(f'{argument} is {excerpt(given)}; expected a dict such as {{"link2.mass": {expected}}}')
    for path, value in (given or {}).items():
        pair = real_array(f"{argument}[{path!r}]", value, ArgumentError)
        if pair.shape != (2,) or np.isnan(pair).any():
            raise ArgumentError(f"{argument}[{path!r}] is {excerpt(value)}; expected the two numbers {expected}")
        for column in _columns_at(problem, argument, path):
            name = problem.labels[column]
            if column in taken:
                raise ArgumentError(
                    f"{argument} contains {taken[column]!r} and {path!r}, which both select {name}; expected one"
                )
            taken[column] = path
            yield name, column, pair


def _columns_at(problem: Problem, argument: str, path: Any) -> list[int]:
    """Return the columns of the fitted parameters that the name of a field or a path names.

    With a list of trajectories, "motion2.link1.q" names a parameter of the second one, and "link1.q" of all.
    """
    if not isinstance(path, str) or not (path in KINDS or "." in path):
        raise ArgumentError(
            f'{argument} contains {excerpt(path)}; expected the name of a field, or a path such as "link2.mass"'
        )
    first, _, rest = path.partition(".")
    of_motion = f"{first}." if "." in rest and first in problem.motion_names else ""
    found = set()
    forces = problem.motions[0].actions.forces
    for match in (
        parameters_at(problem.model, path if path == GRAVITY else f"*.{path}")
        if path in KINDS
        else parameters_at(problem.model, path.removeprefix(of_motion), forces)
    ):
        names = [match.owned.components[c] for c in match.components]
        found |= {f"{match.name}.{name}" for name in names} if names else {match.name}
    prefixes = [of_motion] if of_motion else ["", *(f"{name}." for name in problem.motion_names)]
    found = {f"{prefix}{name}" for prefix in prefixes for name in found}
    columns = [column for column, label in enumerate(problem.labels) if label in found]
    if not columns:
        raise ArgumentError(
            f"{argument} contains {path!r}, which is not fitted; expected parameters among {excerpt(problem.labels)}"
        )
    return columns
