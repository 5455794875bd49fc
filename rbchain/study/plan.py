"""A study bound to its model: every draw, every chain, every output of any range of samples."""

import hashlib
import importlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.stats import norm

from ..actions.gather import gather
from ..core import rollout
from ..errors import RbchainError, StudyError
from ..model.flatten import COLUMNS, WATER_COLUMNS
from ..model.units import Units
from .description import Description, ModelSource, in_words
from .designs import Table
from .distributions import MultivariateNormal, triangle_of_correlation
from .parameters import PARAMETERS, Chains, Target, targets_of

NOT_RUN = -1  # the status of a sample whose turn has not come
BAD_PARAMETERS = 6  # the status of one whose parameters no chain can have


@dataclass(frozen=True)
class Variable:
    """An output of the study: its name, axes behind that of the samples, and what it is measured in."""

    name: str
    dims: tuple = ()
    dtype: type = np.float64
    units: str = ""
    label: str = ""


@dataclass(frozen=True)
class Draws:
    """The columns of one target of one dispersion."""

    dispersion: object
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
    variables : tuple of Variable
        What is kept of every sample.
    """

    def __init__(self, description: Description, folder="."):
        self.description, folder = description, Path(folder)
        source = description.model
        self.model = source.build(folder) if isinstance(source, ModelSource) else source
        if self.model.batch_shape:
            raise StudyError(f"model: its chains differ already, {self.model.batch_shape} of them; expected one chain")
        self.drives, self.forces, self.events = description.drives, description.forces, description.events
        self._set_initial_state()
        self._check_actions()
        for i, measure in enumerate(description.measures):
            self._checked(f"measures[{i}]", measure.check, self.model, self.forces)
        self._measuring = [_ready(measure, i) for i, measure in enumerate(description.measures)]
        self._lay_out_columns()
        self._table = self._read_table(folder) if isinstance(description.design, Table) else None
        if self._table is None:
            self._checked("design", description.design.check, description.samples, len(self.columns))
        self.variables = tuple(self._variables())

    def _checked(self, place, call, *arguments):
        """A call whose errors say where in the description they come from."""
        try:
            return call(*arguments)
        except (RbchainError, ValueError, TypeError) as error:
            raise StudyError(f"{place}: {error}") from None

    def _set_initial_state(self):
        simulate, model = self.description.simulate, self.model
        q = model.neutral() if simulate.q is None else simulate.q
        states = []
        for name, value, size in (("q", q, model.nq), ("qd", simulate.qd, model.nv), ("tau", simulate.tau, model.nv)):
            try:
                state = np.broadcast_to(np.asarray(value, dtype=np.float64), size)
            except (TypeError, ValueError):
                raise StudyError(f"simulate.{name} is {value!r}; expected {size} numbers") from None
            if not np.isfinite(state).all():
                raise StudyError(f"simulate.{name} is {state.tolist()}; expected finite numbers")
            states.append(state)
        self.q, self.qd, self.tau = states

    def _check_actions(self):
        simulate = self.description.simulate
        if simulate.method != "rk45" and simulate.step is None:
            raise StudyError(f"simulate.step: method {simulate.method!r} needs one")
        if simulate.method == "rk45" and simulate.step is not None:
            raise StudyError('simulate.step: method "rk45" chooses its own steps; expected none')
        actions = self.drives, self.forces, self.events
        dtype = np.dtype(np.float64)
        self._checked(
            "drives, forces or events",
            lambda: gather(self.model, (1,), simulate.duration, dtype, *actions, simulate.method == "implicit"),
        )

    def _lay_out_columns(self):
        """Give every number that is drawn its column, and its distribution."""
        self._draws, self._distributions, names, correlations, start = [], [], [], [], 0
        for i, dispersion in enumerate(self.description.vary):
            targets = self._checked(f"vary[{i}].of", targets_of, self, dispersion.parameter, dispersion.of)
            width = max(1, len(dispersion.components))
            for t, target in enumerate(targets):
                if t > 0 and dispersion.shared:
                    self._draws.append(Draws(dispersion, target, self._draws[-1].columns))
                    continue
                columns = slice(start, start + width)
                self._draws.append(Draws(dispersion, target, columns))
                distribution = self._checked(f"vary[{i}].distribution", self._in_si, dispersion, target)
                label = dispersion.name if dispersion.shared or target.name == self.model.name else (
                    f"{dispersion.name}[{target.name}]"
                )  # fmt: skip
                names += [f"{label}.{c}" for c in dispersion.components] if dispersion.components else [label]
                if isinstance(distribution, MultivariateNormal):
                    self._distributions += [distribution.component(c) for c in range(width)]
                    correlations.append((list(range(start, start + width)), distribution.correlation))
                else:
                    self._distributions += [distribution] * width
                start += width
        self.columns = tuple(names)
        for i, correlation in enumerate(self.description.correlate):
            unknown = [name for name in correlation.of if name not in names]
            if unknown:
                raise StudyError(f"correlate[{i}].of: {unknown[0]!r} is not drawn; there are {names}")
            correlations.append(([names.index(name) for name in correlation.of], np.array(correlation.matrix, float)))
        taken = [c for columns, _ in correlations for c in columns]
        twice = sorted({names[c] for c in taken if taken.count(c) > 1})
        if twice:
            raise StudyError(f"correlate: {twice[0]!r} is correlated twice; expected one matrix for each number")
        self._correlations = [(columns, triangle_of_correlation(matrix)) for columns, matrix in correlations]

    def _in_si(self, dispersion, target):
        """A dispersion's distribution with all its numbers in SI."""
        dimension = PARAMETERS[dispersion.parameter].dimension
        if isinstance(dimension, tuple):
            dimension = dimension[0] if target.revolute else dimension[1]

        def convert(text):
            if dispersion.how == "multiply" or dimension is None:
                raise ValueError(f"{text!r} has a unit; expected a plain number")
            return Units("SI").quantity(text, dimension)

        return dispersion.distribution.in_si(convert)

    def _read_table(self, folder):
        """The values of a design that is a file's."""
        path = folder / self.description.design.file
        if not path.is_file():
            raise StudyError(f"design.file: there is no file {self.description.design.file!r} beside the study")
        table = self._checked(f"design.file {path.name}", read_table, path, self.columns)
        missing = [name for name in self.columns if name not in table]
        if missing:
            raise StudyError(f"design.file: {path.name} has no column {missing[0]!r}; it has {list(table)}")
        values = np.stack([np.asarray(table[name], np.float64) for name in self.columns], -1)
        if len(values) < self.description.samples:
            raise StudyError(f"design.file: {path.name} has {len(values)} rows; samples is {self.description.samples}")
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise StudyError(f"design.file: row {row} of {self.columns[column]!r} is not finite")
        return values[: self.description.samples]

    # --- outputs ------------------------------------------------------------------------------------------------------

    @property
    def times(self):
        """The times of the motion that are looked at."""
        return np.linspace(0.0, self.description.simulate.duration, self.description.simulate.samples)

    def _variables(self):
        """What is kept of every sample; the status last, which says that the rest is there."""
        outputs, states = self.description.outputs, (("q", "position"), ("qd", "velocity"))
        yield Variable("parameters", ("parameter",), label="what was drawn")
        if outputs.final:
            yield from (Variable(f"{name}_final", (dim,), label=f"{name} at the end") for name, dim in states)
        if outputs.extremes:
            for name, dim in states:
                yield Variable(f"{name}_min", (dim,), label=f"least {name} at the times looked at")
                yield Variable(f"{name}_max", (dim,), label=f"greatest {name} at the times looked at")
        if outputs.motion:
            yield from (Variable(name, ("time", dim), label=name) for name, dim in states)
        if self.events:
            yield Variable("event_count", ("event",), np.int64, label="how often an event happened")
            yield Variable("event_time", ("event",), units="s", label="when an event happened first")
        yield from (Variable(m.name, units=m.units, label=m.label) for m in self.description.measures)
        yield Variable("end_time", units="s", label="until when the chain was computed, of the times looked at")
        yield Variable("status", dtype=np.int8, label="how the chain ended: 0 done, 4 stopped by an event; else failed")

    def sizes(self):
        """How long each axis behind that of the samples is."""
        return {
            "parameter": len(self.columns),
            "position": self.model.nq,
            "velocity": self.model.nv,
            "time": self.times.size,
            "event": len(self.events),
        }

    def bytes_per_sample(self):
        """About what a sample takes in memory while it is computed: results, states looked at, and its own chain."""
        sizes, model = self.sizes(), self.model
        kept = sum(8 * int(np.prod([sizes[d] for d in v.dims])) for v in self.variables)
        looked_at = 8 * self.times.size * 8 * (model.nq + model.nv + 6 * model.n_bodies)
        return kept + looked_at + 8 * 60 * (model.nv + 1) * (2 if not model.in_water else 8)

    # --- samples ------------------------------------------------------------------------------------------------------

    def draw(self, first, last):
        """What is drawn for the samples from `first` to before `last`, (last - first, columns)."""
        if self._table is not None:
            return self._table[first:last]
        if not self.columns:
            return np.zeros((last - first, 0))
        seed, samples = self.description.seed, self.description.samples
        points = self.description.design.points(first, last, len(self.columns), seed, samples)
        return self.values(points)

    def values(self, points):
        """Values of the numbers drawn (m, columns), from points in the unit cube."""
        points = np.array(points, dtype=np.float64)
        for columns, triangle in self._correlations:
            points[:, columns] = norm.cdf(norm.ppf(points[:, columns]) @ triangle.T)
        return np.stack([d.ppf(points[:, c]) for c, d in enumerate(self._distributions)], -1)

    def chains(self, values):
        """The chains of these draws (m, columns): their model, states and actions, as `Chains` has them."""
        chains = Chains(self, len(values))
        for draws in self._draws:
            chains.apply(draws.dispersion, draws.target, values[:, draws.columns])
        return chains

    def simulate(self, values, save_at=None):
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

    def compute(self, first, last):
        """All outputs of the samples from `first` to before `last`, by name."""
        lowest, highest = self.company(first, last)
        found = self.compute_values(self.draw(lowest, highest))
        return {name: values[first - lowest : last - lowest] for name, values in found.items()}

    def company(self, first, last):
        """The range of samples to compute for these: two at least.

        One chain alone would share all its parameters with itself, for which other code would be compiled.
        """
        if last - first > 1 or self.description.samples == 1:
            return first, last
        return (first, last + 1) if last < self.description.samples else (first - 1, last)

    def compute_values(self, values):
        """All outputs of the samples with these values (m, columns), by name."""
        try:
            return self._outputs(values)
        except RbchainError as error:
            if len(values) == 1:
                return self._nothing(values)
            # some chain's numbers are none that a chain can have: the others go on without it
            if not isinstance(error, ValueError):
                raise
            halves = [self.compute_values(half) for half in np.array_split(values, 2)]
            return {name: np.concatenate([half[name] for half in halves]) for name in halves[0]}

    def _nothing(self, values):
        """The outputs of a sample that cannot be simulated."""
        found, sizes = {}, self.sizes()
        for variable in self.variables:
            shape = (1, *(sizes[d] for d in variable.dims))
            found[variable.name] = np.full(shape, np.nan if variable.dtype is np.float64 else 0, variable.dtype)
        return found | {"parameters": values, "status": np.full(1, BAD_PARAMETERS, np.int8), "end_time": np.zeros(1)}

    def _outputs(self, values):
        many, motion = self.simulate(values)
        failed = ~np.isin(motion.status, (rollout.DONE, rollout.STOPPED))
        q, qd = motion.q, motion.qd
        ends = np.isfinite(qd).all(-1).sum(-1)
        motion = _held(motion, self.events)
        found = {"parameters": values, "status": motion.status.astype(np.int8)}
        found["end_time"] = np.where(ends > 0, motion.t[np.maximum(ends, 1) - 1], 0.0)
        spoilt = np.where(failed, np.nan, 1.0)
        for name, held, raw in (("q", motion.q, q), ("qd", motion.qd, qd)):
            found |= {
                name: raw,
                f"{name}_final": held[:, -1] * spoilt[:, None],
                f"{name}_min": held.min(1) * spoilt[:, None],
                f"{name}_max": held.max(1) * spoilt[:, None],
            }
        if self.events:
            found["event_count"] = np.stack([record.count for record in motion.events], -1)
            found["event_time"] = np.stack([record.t[..., 0] for record in motion.events], -1)
        for i, measure in enumerate(self.description.measures):
            numbers = self._measuring[i].values(many, motion)
            if numbers.shape != (len(values),):
                raise StudyError(
                    f"measures[{i}], {measure.name!r}: its function gives shape {numbers.shape}; expected one number, "
                    f"or one for each time, of each of {len(values)} chains"
                )
            found[measure.name] = numbers * spoilt
        return {v.name: found[v.name].astype(v.dtype, copy=False) for v in self.variables}

    def reach(self):
        """Which numbers of the kernels every dispersion changes: {name: words}.

        Raises
        ------
        StudyError
            If a dispersion changes none, though its draws differ from the model's own values.
        """
        simulate = self.description.simulate
        values = self.values(np.repeat([[0.3], [0.7]], len(self.columns), 1))
        found = {}
        for dispersion in self.description.vary:
            chains = Chains(self, len(values))
            for draws in self._draws:
                if draws.dispersion is dispersion:
                    chains.apply(dispersion, draws.target, values[:, draws.columns])
            plain, dtype = Chains(self, len(values)), np.dtype(np.float64)
            reached = []
            for name, own, before in (
                ("initial positions", chains.q, plain.q),
                ("initial velocities", chains.qd, plain.qd),
                ("joint forces", chains.tau, plain.tau),
            ):
                reached += [name] if not np.array_equal(own, before) else []
            many = self._checked(f"vary {dispersion.name!r}", chains.build)
            _, table, variation = many._arrays_in(dtype)
            _, nominal, _ = self.model._arrays_in(dtype)
            entries = {(int(row), int(column)) for row, column in variation.entries}
            width = min(table.shape[1], nominal.shape[1])
            entries |= {(int(r), int(c)) for r, c in np.argwhere(_flat(table)[:, :width] != _flat(nominal)[:, :width])}
            reached += self._in_words(entries)
            if PARAMETERS[dispersion.parameter].of in ("drive", "wrench") or dispersion.parameter == "current":
                settings = (len(values),), simulate.duration, dtype
                implicit = simulate.method == "implicit"
                after, before = (
                    gather(self.model, *settings, c.drives, c.forces, self.events, implicit) for c in (chains, plain)
                )
                reached += ["actions"] if not _same(after, before) else []
            if not reached:
                raise StudyError(f"vary {dispersion.name!r} does not reach the kernels: nothing that they read changes")
            found[dispersion.name] = "; ".join(reached)
        return found

    def _in_words(self, entries):
        """Rows and columns of the kernels' parameters by their names."""
        groups = COLUMNS | WATER_COLUMNS
        names = [self.model.body_names[body] for body in self.model._dofs.body]
        found = {}
        for row, column in sorted(entries):
            of = "the world" if row == len(names) else names[row]
            here = [n for n, columns in groups.items() if columns.start <= column < columns.stop]
            found.setdefault(of, []).append("gravity" if row == len(names) else here[0])
        return [f"{of}: {', '.join(dict.fromkeys(groups))}" for of, groups in found.items()]

    def words(self):
        """What the study is, as its store keeps it."""
        words = in_words(self.description)
        words["model"] = in_words(self.model)
        if self._table is not None:
            words["design"]["sha256"] = hashlib.sha256(np.ascontiguousarray(self._table).tobytes()).hexdigest()
        return words


def _flat(table):
    """Parameters (n + 1, columns), whether shared or shared by blocks."""
    return table if table.ndim == 2 else table[..., 0]


def _same(first, second):
    """Whether two sets of arrays are the same."""
    if isinstance(first, np.ndarray):
        return isinstance(second, np.ndarray) and np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    if isinstance(first, tuple):
        return len(first) == len(second) and all(_same(a, b) for a, b in zip(first, second, strict=True))
    return True


def _held(motion, events):
    """The motion, in which a chain that an event stopped stays in the state it had then."""
    stopped = motion.status == rollout.STOPPED
    if not stopped.any():
        return motion
    q, qd, t = motion.q.copy(), motion.qd.copy(), np.full(stopped.shape, np.inf)
    for event, record in zip(events, motion.events, strict=True):
        if event.stop:
            here = stopped & (record.count > 0) & np.isinf(t)
            t[here] = record.t[here, 0]
            later = here[:, None] & (motion.t >= t[:, None])
            q[later] = np.broadcast_to(record.q[:, :1], q.shape)[later]
            qd[later] = np.broadcast_to(record.qd[:, :1], qd.shape)[later]
    return replace(motion, q=q, qd=qd)


def _ready(measure, i):
    """A measure whose function is one, found by its name if that is what was given."""
    function = measure.function
    if function is None or callable(function):
        return measure
    try:
        module, name = str(function).split(":")
        found = getattr(importlib.import_module(module), name)
    except (ValueError, ImportError, AttributeError) as error:
        raise StudyError(f"measures[{i}].function is {function!r}; expected 'module:name' ({error})") from None
    if not callable(found):
        raise StudyError(f"measures[{i}].function: {function!r} is no function")
    return measure.model_copy(update={"function": found})


def read_table(path, columns):
    """Columns of a file of numbers, by name."""
    if path.suffix == ".npy":
        values = np.load(path)
        if values.ndim != 2 or values.shape[1] != len(columns):
            raise StudyError(f"its shape is {values.shape}; expected (samples, {len(columns)}): {list(columns)}")
        return dict(zip(columns, values.T, strict=True))
    if path.suffix == ".npz":
        return dict(np.load(path))
    import pandas

    if path.suffix == ".parquet":
        return dict(pandas.read_parquet(path))
    if path.suffix != ".csv":
        raise StudyError("expected .csv, .parquet, .npy or .npz")
    return dict(pandas.read_csv(path))
