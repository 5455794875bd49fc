"""Plan: a checked study. It draws the samples, simulates them and computes their outputs."""

from __future__ import annotations

import hashlib
import importlib
import math
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..actions.flatten import flatten_actions
from ..chain import Model
from ..errors import ModelError, StateError, StudyError
from ..real_arrays import FLOAT64
from ..trajectory import Trajectory
from .checks import check_actions, check_settings
from .columns import Columns, columns_of
from .description import Description, as_json
from .designs import Table
from .measures import Measure
from .nominal import Nominal, nominal_of
from .outputs import Variable, no_outputs_of, outputs_of, variables_of
from .places import call_at
from .samples import Samples
from .tables import read_design


@dataclass(frozen=True, eq=False)
class Plan:
    """All that a description comes to, once its files are read and its names are found. Can be pickled.

    Attributes
    ----------
    measures : tuple of Measure
        Those of the description, with functions in the place of their names.
    variables : tuple of Variable
        What is kept of every sample.
    table : array (samples, columns), optional
        Values in the place of what a design draws: those of the samples from `table_start` on.
    """

    description: Description
    nominal: Nominal
    drawn: Columns
    measures: tuple[Measure, ...]
    variables: tuple[Variable, ...]
    table: np.ndarray | None = None
    table_start: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the numbers that are drawn."""
        return tuple(column.name for column in self.drawn.columns)

    @property
    def units(self) -> tuple[str, ...]:
        """What each of them is measured in."""
        return tuple(column.unit for column in self.drawn.columns)

    def sizes(self) -> dict[str, int]:
        """How long each axis behind that of the samples is."""
        return {
            "parameter": len(self.columns),
            "position": self.nominal.model.nq,
            "velocity": self.nominal.model.nv,
            "time": self.description.simulate.samples,
            "event": len(self.nominal.events),
        }

    def bytes_per_sample(self) -> int:
        """About what a sample takes in memory while it is computed: results, states at saved times, and parameters."""
        model = self.nominal.model
        of_states = 8 * self.description.simulate.samples * 8 * (model.nq + model.nv + 6 * model.n_bodies)
        return self._kept_per_sample + of_states + 8 * 60 * (model.nv + 1) * (2 if not model.in_water else 8)

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
        return self.drawn.values(points)

    def samples(self, values: np.ndarray) -> Samples:
        """The samples with these draws (m, columns): their models, states and actions."""
        samples = Samples(self.nominal, len(values))
        for draws in self.drawn.draws:
            samples.apply(draws.dispersion, draws.target, values[:, draws.columns])
        return samples

    def simulate(self, values: np.ndarray, save_at: npt.ArrayLike | None = None) -> tuple[Model, Trajectory]:
        """Motions of the samples with these draws: their model, and their Trajectory."""
        samples = self.samples(values)
        many, simulate = samples.build(), self.nominal.simulation
        motion = many.simulate(
            samples.q,
            samples.qd,
            simulate.duration,
            tau=samples.tau,
            drives=samples.drives,
            forces=samples.forces,
            events=self.nominal.events,
            save_at=self.nominal.times if save_at is None else save_at,
            **simulate.settings(),
        )
        return many, motion

    def compute(self, first: int, last: int) -> dict[str, np.ndarray]:
        """All outputs of the samples from `first` to before `last`, by name."""
        lowest, highest = self.computed_range(first, last)
        found = self.compute_values(self.draw(lowest, highest))
        return {name: values[first - lowest : last - lowest] for name, values in found.items()}

    def computed_range(self, first: int, last: int) -> tuple[int, int]:
        """The range of samples to compute for these: two at least.

        A single sample would take the path of shared parameters, for which other code would be compiled.
        """
        if last - first > 1 or self.description.samples == 1:
            return first, last
        return (first, last + 1) if last < self.description.samples else (first - 1, last)

    def compute_values(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """All outputs of the samples with these values (m, columns), by name."""
        valid = np.isfinite(values).all(-1)
        if valid.all():
            try:
                return outputs_of(self.variables, self.measures, values, *self.simulate(values), self.nominal.events)
            except (ModelError, StateError):
                valid = self.valid(values)
                if valid.all():
                    raise
        found = no_outputs_of(self.variables, self.sizes(), values)
        if valid.any():
            for name, of_valid in self.compute_values(values[valid]).items():
                found[name][valid] = of_valid
        return found

    def valid(self, values: np.ndarray) -> np.ndarray:
        """Which of these draws (m, columns) give valid models and actions: (m,) of bool."""
        finite = np.isfinite(values).all(-1)
        if not finite.all():
            finite[finite] = self.valid(values[finite])
            return finite
        try:
            samples, simulate = self.samples(values), self.nominal.simulation
            samples.build()
            actions = samples.drives, samples.forces, self.nominal.events
            flatten_actions(
                self.nominal.model, (len(values),), simulate.duration, FLOAT64, *actions, simulate.method == "implicit"
            )
        except (ModelError, StateError):
            if len(values) == 1:
                return np.array([False])
            return np.concatenate([self.valid(half) for half in np.array_split(values, 2)])
        return np.full(len(values), True)

    def part(self, first: int, last: int) -> Plan:
        """As much of the plan as these samples need: a table's other rows need not go to who computes them."""
        if self.table is None:
            return self
        lowest, highest = self.computed_range(first, last)
        return replace(self, table=self.draw(lowest, highest), table_start=lowest)

    def as_json(self) -> dict[str, Any]:
        """What the study is, as its store keeps it."""
        found = as_json(self.description)
        found |= {
            "model": as_json(self.nominal.model),
            "rbchain": version("rbchain"),
            "measures": as_json(self.measures),
        }
        if self.table is not None:
            found["design"]["sha256"] = hashlib.sha256(np.ascontiguousarray(self.table).tobytes()).hexdigest()
        return found


def plan_of(description: Description, folder: str | Path = ".") -> Plan:
    """The plan of a description, whose files are in the folder; a StudyError says what does not fit the model."""
    folder = Path(folder)
    nominal = nominal_of(description, folder)
    check_settings(nominal)
    check_actions(nominal)
    for i, measure in enumerate(description.measures):
        call_at(f"measures[{i}]", measure.check, nominal.model, nominal.forces)
    measures = tuple(_ready(measure, i) for i, measure in enumerate(description.measures))
    drawn, table = columns_of(description, nominal), None
    if isinstance(description.design, Table):
        names = [column.name for column in drawn.columns]
        table = read_design(folder / description.design.file, names, description.samples)
    else:
        call_at("design", description.design.check, description.samples, len(drawn.columns))
    variables = tuple(variables_of(description.outputs, measures, nominal))
    return Plan(description, nominal, drawn, measures, variables, table)


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
