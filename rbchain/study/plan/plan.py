"""Plan: a study that is checked against its model. It draws samples, simulates them and computes their outputs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...acting.flatten import flatten_actions
from ...acting.random_actions import random_signals_of
from ...acting.random_signals import RandomSignal
from ...acting.sampled import Sampled, controller_of, is_called_for_batch
from ...acting.tables import FUNCTIONS, NamedFunction
from ...acting.user_forces import UserForces
from ...common.real_arrays import FLOAT64
from ...errors import ArgumentError, ModelError, StudyError
from ...facade.model import Model
from ...simulate.methods import METHODS
from ...simulate.trajectory import Trajectory
from ..describe.description import Description
from ..describe.designs import GivenValues, Random, Table
from ..describe.identity import as_json
from ..describe.measures import Measure
from ..describe.named_columns import in_order
from ..describe.places import errors_at
from .checks import check_actions, check_at_rest, check_settings, refuse_saturation_with_force
from .columns import Columns, columns_of
from .nominal import Nominal, nominal_of
from .outputs import Variable, needs_steps, outputs_of, outputs_of_invalid_draws, variables_of
from .samples import Samples
from .tables import read_design, rows_of_samples
from .user_modules import imported_function, refuse_code

FIRST_STEPS = 128  # accepted steps of a sample for which the first simulation has memory
NEAR = 4  # distance of the samples that may accompany a single one
LEAST_AT_ONCE = 32  # samples that are simulated together: enough for all lanes
STEP_MEMORY = 1 << 27  # bytes for the accepted steps of samples that are simulated together


@dataclass(frozen=True, eq=False)
class Plan:
    """A study whose files are read and whose names are resolved. Can be pickled.

    Attributes
    ----------
    measures : tuple of Measure
        The measures of the description, with their functions imported.
    variables : tuple of Variable
        The outputs of each sample.
    table : array (samples, columns), optional
        Random inputs of the samples with numbers `table_start` and above, which replace the values from the design.
    modules : dict
        Modules that the description imports, and their files.
    """

    description: Description
    nominal: Nominal
    drawn: Columns
    measures: tuple[Measure, ...]
    variables: tuple[Variable, ...]
    table: np.ndarray | None = None
    table_start: int = 0
    modules: dict[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the random inputs."""
        return tuple(column.name for column in self.drawn.columns)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the random inputs, as in `Column`."""
        return tuple(column.unit for column in self.drawn.columns)

    def check_measure(self, measure: str | None) -> None:
        """Raise a StudyError if the study has no measure of this name, or no measure at all."""
        known = [m.name for m in self.measures]
        if not known:
            raise StudyError("the study has no measures, but this analysis needs one; add measures")
        if measure not in known:
            raise StudyError(f"measure is {measure!r}; expected one of the measures of the study: {known}")

    def chosen_measures(self, measure: str | None) -> list[str]:
        """Return the name of this measure, or the names of all measures if it is None."""
        if measure is None and self.measures:
            return [m.name for m in self.measures]
        self.check_measure(measure)
        return [str(measure)]

    def sizes(self) -> dict[str, int]:
        """Return the lengths of all axes after the axis of the samples."""
        return {
            "parameter": len(self.columns),
            "position": self.nominal.model.nq,
            "velocity": self.nominal.model.nv,
            "time": self.nominal.simulation.saved_times.size,
            "event": len(self.nominal.events),
        }

    def bytes_per_sample(self) -> int:
        """Estimate the memory for a sample while it is computed: results, states at saved times and parameters."""
        model = self.nominal.model
        of_states = 8 * self.nominal.times.size * 8 * (model.nq + model.nv + 6 * model.n_bodies)
        of_signals = sum(signal.bytes_per_sample(self.nominal.simulation.duration) for signal in self.random_signals)
        of_steps = 8 * 60 * (model.nv + 1) * (2 if not model.in_water else 8)
        if any(map(is_called_for_batch, self.nominal.drives)):  # the memory of all blocks is kept
            of_steps += 5000 * (model.nv + 1)
        return self._kept_per_sample + of_states + of_steps + of_signals

    @property
    def random_signals(self) -> list[RandomSignal]:
        """Random signals of the drives and forces."""
        return random_signals_of(self.nominal.drives) + random_signals_of(self.nominal.forces)

    @property
    def _kept_per_sample(self) -> int:
        sizes = self.sizes()
        return sum(np.dtype(v.dtype).itemsize * math.prod(sizes[d] for d in v.dims) for v in self.variables)

    def stored_bytes(self) -> int:
        """Return the size of the results of all samples before compression."""
        return self.description.samples * self._kept_per_sample

    # --- samples ------------------------------------------------------------------------------------------------------

    def draw(self, first: int, last: int) -> np.ndarray:
        """Return the random inputs (last - first, columns) of the samples from `first` to before `last`."""
        if self.table is not None:
            return self.table[first - self.table_start : last - self.table_start]
        if not self.columns:
            return np.zeros((last - first, 0))  # designs need a column
        seed, samples = self.description.seed, self.description.samples
        points = self.description.design.points(first, last, len(self.columns), seed, samples)  # type: ignore[union-attr]
        return self.drawn.values(points)

    def samples(self, values: np.ndarray, numbers: np.ndarray) -> Samples:
        """Return the samples with these draws (m, columns) and numbers (m,): models, states, drives and forces."""
        changes = [(draws.varied, values[:, draws.columns]) for draws in self.drawn.draws]
        return Samples(self.nominal, numbers, changes)

    def simulate(
        self, samples: Samples, save_at: npt.ArrayLike | None = None, steps: int = FIRST_STEPS
    ) -> tuple[Model, Trajectory]:
        """Simulate samples; returns their model and Trajectory.

        If outputs need all accepted steps, these are kept; `steps` is the number of steps of a sample to expect.
        """
        many, simulate = samples.build(), self.nominal.simulation
        simulate_them = partial(
            many.simulate,
            *samples.initial_states(many),
            simulate.duration,
            tau=samples.tau,
            drives=samples.drives,
            forces=samples.forces,
            events=samples.events,
            save_at=self.nominal.times if save_at is None else save_at,
            energy_error=self.nominal.energy_error,
            on_failure="ignore",
            **simulate.settings(),
        )
        if not self.needs_steps:
            return many, simulate_them()
        motion = simulate_them(dense_output=steps)
        most = motion.dense_output.most  # type: ignore[union-attr]
        return many, motion if most <= steps else simulate_them(dense_output=most)

    @property
    def needs_steps(self) -> bool:
        """Whether outputs need the accepted steps of the trajectories."""
        return needs_steps(self.measures, self.variables, self.nominal.events)

    def compute(self, first: int, last: int) -> dict[str, np.ndarray]:
        """Compute all outputs of the samples from `first` to before `last`, by name."""
        return self.compute_values(self.draw(first, last), np.arange(first, last))

    def accompanied(self, values: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the draws (2, columns) and numbers (2,) of one sample (1, columns), (1,) and of another one.

        A single sample would have shared parameters, for which rbchain compiles other machine code. The other one is a
        valid sample near it, with other draws if possible; without one it is the sample itself.
        """
        lowest, highest = self._near(int(numbers[0]), int(numbers[0]) + 1)
        others = self.draw(lowest, highest)
        found = np.flatnonzero(self.valid(others) & (np.arange(lowest, highest) != numbers[0]))
        differing = found[(others[found] != values).any(-1)]
        beside = np.concatenate([differing, found])[:1]
        if not beside.size:
            return np.repeat(values, 2, 0), np.repeat(numbers, 2)
        return np.concatenate([values, others[beside]]), np.concatenate([numbers, lowest + beside])

    def _near(self, first: int, last: int) -> tuple[int, int]:
        """Return the range of samples near these ones that can be drawn: those that can accompany a single one."""
        end = self.description.samples if self.table is None else self.table_start + len(self.table)
        return max(self.table_start, first - NEAR), min(end, last + NEAR)

    def compute_values(self, values: np.ndarray, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Compute all outputs of the samples with these draws (m, columns) and numbers (m,), by name."""
        valid = np.isfinite(values).all(-1)
        if valid.all():
            try:
                return self._outputs(values, numbers)
            except (ModelError, ArgumentError):
                valid = self.valid(values)
                if valid.all():
                    raise
        outputs = outputs_of_invalid_draws(self.variables, self.sizes(), values)
        if valid.any():
            for name, outputs_of_valid in self.compute_values(values[valid], numbers[valid]).items():
                outputs[name][valid] = outputs_of_valid
        return outputs

    def _outputs(self, values: np.ndarray, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Compute all outputs of valid samples, in parts whose steps fit into the memory if outputs need them."""
        if len(values) == 1:
            outputs = self._outputs(*self.accompanied(values, numbers))
            return {name: of_both[:1] for name, of_both in outputs.items()}
        found: list[dict[str, np.ndarray]] = []
        first, count, steps = 0, LEAST_AT_ONCE if self.needs_steps else len(values), FIRST_STEPS
        while first < len(values):
            last = first + count if first + count + 1 < len(values) else len(values)  # no part of a single sample
            samples = self.samples(values[first:last], numbers[first:last])
            many, motion = self.simulate(samples, steps=steps)
            results = many, motion, self.nominal.events, samples.drives, self.nominal.simulation.times[1]
            found.append(outputs_of(self.variables, self.measures, values[first:last], *results))
            first, steps = last, FIRST_STEPS + int(1.2 * motion.steps.max())
            count = max(LEAST_AT_ONCE, int(STEP_MEMORY / (steps * self._bytes_per_step)))
        return {name: np.concatenate([part[name] for part in found]) for name in found[0]}

    @property
    def _bytes_per_step(self) -> int:
        """Estimate the memory for an accepted step: its states, and the quantities of measures in it."""
        return 8 * (8 * (self.nominal.model.nq + self.nominal.model.nv) + 40 * (1 + len(self.measures)))

    def valid(self, values: np.ndarray) -> np.ndarray:
        """Return which of these draws (m, columns) give valid models, drives and forces: (m,) array of bool."""
        finite = np.isfinite(values).all(-1)
        if not finite.all():
            finite[finite] = self.valid(values[finite])
            return finite
        try:
            samples, simulate = self.samples(values, np.arange(len(values))), self.nominal.simulation
            samples.build()
            actions = samples.drives, samples.forces, samples.events
            implicit = METHODS[simulate.method].is_implicit_in_joints
            flatten_actions(self.nominal.model, (len(values),), simulate.duration, FLOAT64, actions, implicit)
        except (ModelError, ArgumentError):
            if len(values) == 1:
                return np.array([False])
            return np.concatenate([self.valid(half) for half in np.array_split(values, 2)])
        return np.full(len(values), True)

    def with_values(self, values: np.ndarray) -> Plan:
        """Return the plan with these random inputs (samples, columns) in place of the values from the design."""
        name = f"{self.description.name}, varied"
        changed = {"samples": len(values), "design": Random(), "stop_when": None, "name": name}
        return replace(self, description=self.description.model_copy(update=changed), table=values)

    def part(self, first: int, last: int) -> Plan:
        """Return the plan with only the rows of the table that these samples need, to send it to a worker."""
        if self.table is None:
            return self
        lowest, highest = self._near(first, last) if last - first == 1 else (first, last)
        return replace(self, table=self.draw(lowest, highest), table_start=lowest)

    def as_json(self) -> dict[str, Any]:
        """Return the description of the study for the store."""
        document = as_json(self.description)
        document |= {
            "model": as_json(self.nominal.model),
            "rbchain": version("rbchain"),
            "measures": as_json(self.measures),
        }
        if self.table is not None:
            document["design"]["sha256"] = hashlib.sha256(np.ascontiguousarray(self.table).tobytes()).hexdigest()
        return document


def plan_of(description: Description, folder: str | Path = ".", code: bool = True) -> Plan:
    """Return the plan of a description, whose files are in `folder`. A StudyError names what does not fit the model.

    `code` states whether the functions of measures may be imported.
    """
    folder = Path(folder)
    description, modules = _with_functions_of_drives(description, folder, code)
    nominal = nominal_of(description, folder)
    if nominal.drives:  # also the drives of the model, which the identity has to contain
        description = description.model_copy(update={"drives": nominal.drives})
    description = description.model_copy(update={"forces": nominal.forces})
    check_settings(nominal)
    check_actions(nominal)
    for i, measure in enumerate(description.measures):
        with errors_at(f"measures[{i}]"):
            measure.check(nominal.model, nominal.forces, nominal.drives, nominal.events)
            check_at_rest(nominal, measure)
    measures, modules_of_measures = _with_functions(description.measures, folder, code)
    measures = tuple(measure.with_number_of_event(nominal.events) for measure in measures)
    drawn, table = columns_of(description, nominal), None
    forced = [
        *np.flatnonzero(nominal.tau),
        *(x.varied.target.index for x in drawn.draws if x.varied.parameter == "tau"),
    ]
    for i, measure in enumerate(measures):
        refuse_saturation_with_force(nominal, measure, f"measures[{i}]", forced)
    design, names = description.design, [column.name for column in drawn.columns]
    if isinstance(design, Table):
        table = read_design(folder / design.file, names, description.samples)
    elif isinstance(design, GivenValues):
        values = in_order("design", design.values, design.columns, names)
        table = rows_of_samples("design", values, names, description.samples)
        # the plan sends each worker its part of the table only
        description = description.model_copy(update={"design": design.without_values()})
    else:
        with errors_at("design"):
            design.check(description.samples, len(drawn.columns))
    variables = tuple(variables_of(description.outputs, measures, nominal))
    return Plan(description, nominal, drawn, measures, variables, table, modules=modules | modules_of_measures)


def _with_functions_of_drives(description: Description, folder: Path, code: bool) -> tuple[Description, dict[str, str]]:
    """Return the description with the functions of drives imported that are given by name, and their modules."""
    found: list[Any] = []
    modules: dict[str, str] = {}
    if description.drives is None:
        return description, modules
    for i, drive in enumerate(description.drives):
        controller = controller_of(drive)
        if not isinstance(controller, UserForces):
            found.append(drive)
            continue
        functions: dict[str, Any] = {}
        for name in FUNCTIONS:
            given, place = getattr(controller, name), f"drives[{i}].{name}"
            if isinstance(given, NamedFunction):
                if not code:
                    refuse_code(place, given.name)
                functions[name], module, file = imported_function(place, given.name, folder)
                modules[module] = file
        changed = replace(controller, **functions)
        found.append(replace(drive, controller=changed) if isinstance(drive, Sampled) else changed)
    return description.model_copy(update={"drives": tuple(found)}), modules


def _with_functions(
    measures: Sequence[Measure], folder: Path, code: bool
) -> tuple[tuple[Measure, ...], dict[str, str]]:
    """Return the measures with the functions imported that are given by name, and the files of their modules."""
    found: list[Measure] = []
    modules: dict[str, str] = {}
    for i, measure in enumerate(measures):
        function, place = measure.function, f"measures[{i}].function"
        if not code:
            refuse_code(place, function)
        if function is not None and not callable(function):
            imported, module, file = imported_function(place, function, folder)
            modules[module] = file
            found.append(measure.model_copy(update={"function": imported}))
        else:
            found.append(measure)
    return tuple(found), modules
