"""A study bound to its model: every draw, every chain, every output of any range of samples."""

from __future__ import annotations

import copy
import hashlib
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError
from scipy.stats import norm

from ..actions.gather import gather
from ..chain import Model
from ..errors import ModelError, RbchainError, StateError, StudyError
from ..model.units import SI, Units
from ..simulation import Trajectory
from .checks import check_actions, check_settings, refuse_driven
from .description import Description, Dispersion, ModelSource, in_words
from .designs import Table
from .distributions import Distribution, MultivariateNormal, triangle_of_correlation
from .measures import Measure
from .numbers import real_numbers
from .outputs import no_outputs_of, outputs_of, variables_of
from .parameters import FLOAT64, MODEL, PARAMETERS, Chains, Target, targets_of
from .tables import read_design

Result = TypeVar("Result")


@dataclass(frozen=True)
class Draws:
    """The columns of one target of one dispersion."""

    dispersion: Dispersion
    target: Target
    columns: slice


class Plan:
    """What a description comes to, once its files are read and its names are found. Can be pickled.

    Attributes
    ----------
    model : Model
        Before anything varies.
    columns : tuple of str
        Names of the numbers that are drawn.
    places : list of str
        Where in the description each of them has its distribution.
    variables : tuple of Variable
        What is kept of every sample.
    """

    def __init__(self, description: Description, folder: str | Path = ".") -> None:
        self.description, self.folder = description, Path(folder)
        source = description.model
        self.model = self.checked("model", source.build, self.folder) if isinstance(source, ModelSource) else source
        if self.model.batch_shape:
            raise StudyError(f"model is a batch of shape {self.model.batch_shape}; expected a single model")
        self.drives, self.forces, self.events = description.drives, description.forces, description.events
        self._set_initial_state()
        check_settings(self)
        check_actions(self)
        for i, measure in enumerate(description.measures):
            self.checked(f"measures[{i}]", measure.check, self.model, self.forces)
        self.measuring = [_ready(measure, i) for i, measure in enumerate(description.measures)]
        self._lay_out_columns()
        self.table, self.table_start = None, 0
        if isinstance(description.design, Table):
            self.table = read_design(self.folder / description.design.file, self.columns, description.samples)
        else:
            self.checked("design", description.design.check, description.samples, len(self.columns))
        self.variables = tuple(variables_of(self))

    def checked(self, place: str, call: Callable[..., Result], *arguments: Any, **settings: Any) -> Result:
        """A call whose errors say where in the description they come from."""
        try:
            return call(*arguments, **settings)
        except ValidationError as error:
            words = "; ".join(problem["msg"].removeprefix("Value error, ") for problem in error.errors())
            raise StudyError(f"{place}: {words}") from None
        except (RbchainError, ValueError, TypeError) as error:
            raise StudyError(f"{place}: {error}") from None

    def _set_initial_state(self) -> None:
        simulate, model = self.description.simulate, self.model
        q = model.neutral() if simulate.q is None else simulate.q
        states = []
        for name, value, size in (("q", q, model.nq), ("qd", simulate.qd, model.nv), ("tau", simulate.tau, model.nv)):
            numbers = self.checked("simulate", real_numbers, name, value)
            try:
                state = np.broadcast_to(numbers, size)
            except ValueError:
                raise StudyError(f"simulate.{name} is {value!r}; expected {size} numbers") from None
            if not np.isfinite(state).all():
                raise StudyError(f"simulate.{name} is {state.tolist()}; expected finite numbers")
            states.append(state)
        self.q, self.qd, self.tau = states
        self.checked("simulate.q", model.integrate, self.q, np.zeros(model.nv))  # which looks at the quaternions

    def _lay_out_columns(self) -> None:
        """Give every number that is drawn its column, and its distribution."""
        self.draws: list[Draws] = []
        self._distributions: list[Distribution] = []
        self.places: list[str] = []
        names, units, correlations, start = [], [], [], 0
        for i, dispersion in enumerate(self.description.vary):
            targets = self.checked(f"vary[{i}].of", targets_of, self, dispersion.parameter, dispersion.of)
            if dispersion.parameter == "tau":
                refuse_driven(self, f"vary[{i}].of", [target.index for target in targets])
            width = max(1, len(dispersion.components or ()))
            for t, target in enumerate(targets):
                if t > 0 and dispersion.shared:
                    self.draws.append(Draws(dispersion, target, self.draws[-1].columns))
                    continue
                columns = slice(start, start + width)
                self.draws.append(Draws(dispersion, target, columns))
                distribution = self.checked(f"vary[{i}].distribution", self._in_si, dispersion, target)
                alone = dispersion.shared or PARAMETERS[dispersion.parameter].of == MODEL
                label = dispersion.name if alone else f"{dispersion.name}[{target.name}]"
                names += [f"{label}.{c}" for c in dispersion.components] if dispersion.components else [label]
                units += [self._unit(dispersion, target)] * width
                self.places += [f"vary[{i}].distribution"] * width
                if isinstance(distribution, MultivariateNormal):
                    self._distributions += [distribution.component(c) for c in range(width)]
                    correlations.append((list(range(start, start + width)), distribution.correlation))
                else:
                    self._distributions += [distribution] * width
                start += width
        self.columns, self.units = tuple(names), tuple(units)
        for i, correlation in enumerate(self.description.correlate):
            unknown = [name for name in correlation.of if name not in names]
            if unknown:
                raise StudyError(f"correlate[{i}].of: {unknown[0]!r} is not drawn; there are {names}")
            correlations.append(([names.index(name) for name in correlation.of], np.array(correlation.matrix, float)))
        taken = [c for columns, _ in correlations for c in columns]
        twice = sorted({names[c] for c in taken if taken.count(c) > 1})
        if twice:
            raise StudyError(f"correlate: {twice[0]!r} is correlated twice; expected one matrix for each number")
        self.correlations = [(columns, triangle_of_correlation(matrix)) for columns, matrix in correlations]

    def _in_si(self, dispersion: Dispersion, target: Target) -> Distribution:
        """A dispersion's distribution with all its numbers in SI."""
        dimension = _dimension(dispersion, target)

        def convert(text: str) -> float:
            if dispersion.how == "multiply" or dimension is None:
                raise ValueError(f"{text!r} has a unit; expected a plain number")
            return Units("SI").quantity(text, dimension)

        return dispersion.distribution.in_si(convert)

    def _unit(self, dispersion: Dispersion, target: Target) -> str:
        """What its draws are measured in: "1" is no unit, "" one that is SI's."""
        dimension = _dimension(dispersion, target)
        return "1" if dispersion.how == "multiply" or dispersion.parameter == "inertia" else SI.get(dimension or "", "")

    @property
    def times(self) -> np.ndarray:
        """The times of the motion that are looked at."""
        return np.linspace(0.0, self.description.simulate.duration, self.description.simulate.samples)

    def sizes(self) -> dict[str, int]:
        """How long each axis behind that of the samples is."""
        return {
            "parameter": len(self.columns),
            "position": self.model.nq,
            "velocity": self.model.nv,
            "time": self.description.simulate.samples,
            "event": len(self.events),
        }

    def bytes_per_sample(self) -> int:
        """About what a sample takes in memory while it is computed: results, states looked at, and its own chain."""
        model = self.model
        looked_at = 8 * self.description.simulate.samples * 8 * (model.nq + model.nv + 6 * model.n_bodies)
        return self._kept_per_sample + looked_at + 8 * 60 * (model.nv + 1) * (2 if not model.in_water else 8)

    @property
    def _kept_per_sample(self) -> int:
        sizes = self.sizes()
        return sum(np.dtype(v.dtype).itemsize * math.prod(sizes[d] for d in v.dims) for v in self.variables)

    def stored_bytes(self) -> int:
        """What the results of all samples take before they are compressed."""
        return self.description.samples * self._kept_per_sample

    # --- samples ------------------------------------------------------------------------------------------------------

    def draw(self, first: int, last: int) -> np.ndarray:
        """What is drawn for the samples from `first` to before `last`, (last - first, columns)."""
        if self.table is not None:
            return self.table[first - self.table_start : last - self.table_start]
        if not self.columns:
            return np.zeros((last - first, 0))  # for which no design has points
        seed, samples = self.description.seed, self.description.samples
        points = self.description.design.points(first, last, len(self.columns), seed, samples)  # type: ignore[union-attr]
        return self.values(points)

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
        draws = [
            self.checked(place, distribution.ppf, points[:, c])
            for c, (place, distribution) in enumerate(zip(self.places, self._distributions, strict=True))
        ]
        return np.stack(draws, -1)

    def chains(self, values: np.ndarray) -> Chains:
        """The chains of these draws (m, columns): their model, states and actions, as `Chains` has them."""
        chains = Chains(self, len(values))
        for draws in self.draws:
            chains.apply(draws.dispersion, draws.target, values[:, draws.columns])
        return chains

    def simulate(self, values: np.ndarray, save_at: npt.ArrayLike | None = None) -> tuple[Model, Trajectory]:
        """Motions of the chains of these draws: their model, and their Trajectory."""
        chains = self.chains(values)
        many, simulate = chains.build(), self.description.simulate
        motion = many.simulate(
            chains.q,
            chains.qd,
            simulate.duration,
            tau=chains.tau,
            drives=chains.drives,
            forces=chains.forces,
            events=self.events,
            save_at=self.times if save_at is None else save_at,
            **simulate.settings(),
        )
        return many, motion

    def compute(self, first: int, last: int) -> dict[str, np.ndarray]:
        """All outputs of the samples from `first` to before `last`, by name."""
        lowest, highest = self.company(first, last)
        found = self.compute_values(self.draw(lowest, highest))
        return {name: values[first - lowest : last - lowest] for name, values in found.items()}

    def company(self, first: int, last: int) -> tuple[int, int]:
        """The range of samples to compute for these: two at least.

        One chain alone would share all its parameters with itself, for which other code would be compiled.
        """
        if last - first > 1 or self.description.samples == 1:
            return first, last
        return (first, last + 1) if last < self.description.samples else (first - 1, last)

    def compute_values(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """All outputs of the samples with these values (m, columns), by name."""
        possible = np.isfinite(values).all(-1)
        if possible.all():
            try:
                return outputs_of(self, values)
            except (ModelError, StateError):
                possible = self.possible(values)
                if possible.all():
                    raise
        found = no_outputs_of(self, values)
        if possible.any():
            for name, of_possible in self.compute_values(values[possible]).items():
                found[name][possible] = of_possible
        return found

    def possible(self, values: np.ndarray) -> np.ndarray:
        """Which of these draws (m, columns) make chains that can be: (m,) of bool."""
        finite = np.isfinite(values).all(-1)
        if not finite.all():
            finite[finite] = self.possible(values[finite])
            return finite
        try:
            chains, simulate = self.chains(values), self.description.simulate
            chains.build()
            actions = chains.drives, chains.forces, self.events
            gather(self.model, (len(values),), simulate.duration, FLOAT64, *actions, simulate.method == "implicit")
        except (ModelError, StateError):
            if len(values) == 1:
                return np.array([False])
            return np.concatenate([self.possible(half) for half in np.array_split(values, 2)])
        return np.full(len(values), True)

    def with_values(self, description: Description, values: np.ndarray) -> Plan:
        """The plan of the chains with these values (samples, columns), in the place of what a design draws."""
        other = copy.copy(self)
        other.description, other.table = description, values
        return other

    def part(self, first: int, last: int) -> Plan:
        """As much of the plan as these samples need: a table's other rows need not go to who computes them."""
        if self.table is None:
            return self
        other, (lowest, highest) = copy.copy(self), self.company(first, last)
        other.table, other.table_start = self.draw(lowest, highest), lowest
        return other

    def words(self) -> dict[str, Any]:
        """What the study is, as its store keeps it."""
        words = in_words(self.description)
        words |= {"model": in_words(self.model), "rbchain": version("rbchain"), "measures": in_words(self.measuring)}
        if self.table is not None:
            words["design"]["sha256"] = hashlib.sha256(np.ascontiguousarray(self.table).tobytes()).hexdigest()
        return words


def _dimension(dispersion: Dispersion, target: Target) -> str | None:
    """What a parameter of this target is, as `Units` has it; None of those that have no word there."""
    dimension = PARAMETERS[dispersion.parameter].dimension
    return dimension[not target.turns] if isinstance(dimension, tuple) else dimension


def _ready(measure: Measure, i: int) -> Measure:
    """A measure whose function is one, found by its name if that is what was given."""
    function = measure.function
    if function is None or callable(function):
        return measure
    module, colon, name = str(function).partition(":")
    if not colon:
        raise StudyError(f"measures[{i}].function is {function!r}; expected a function, or 'module:name'")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ValueError, ImportError, AttributeError) as error:
        raise StudyError(f"measures[{i}].function is {function!r}, which cannot be imported: {error}") from None
    if not callable(found):
        raise StudyError(f"measures[{i}].function is {function!r}, which is {found!r}; expected a function")
    return measure.model_copy(update={"function": found})
