"""Outputs: the arrays that are stored for each sample, computed from the trajectories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...acting.contacts import is_contact
from ...acting.events import Event
from ...acting.numeric_fields import Drive
from ...acting.sampled import Sampled
from ...errors import Status
from ...facade.model import Model
from ...simulate.trajectory import Trajectory
from ..describe.at_rest import AtRest
from ..describe.description import Outputs
from ..describe.in_steps import in_steps, largest, smallest
from ..describe.measures import Measure
from ..describe.places import errors_at
from ..describe.quantities import Case, quantity_of
from .nominal import Nominal
from .outcomes import NOT_RUN, WARNINGS, Warnings, warnings_of

EXTREMES = ("q_min", "q_max", "qd_min", "qd_max")
STATUS_LABEL = f"status: {Status.DONE:d} done, {Status.STOPPED:d} stopped by an event, {NOT_RUN} not run, others failed"
WARNINGS_LABEL = "sum of " + ", ".join(f"{flag:d} {flag.name}" for flag in Warnings).lower().replace("_", " ")


@dataclass(frozen=True)
class Variable:
    """An output of the study. `dims` are its axes after the axis of the samples.

    `evaluated` states at which times a measure is evaluated, if it depends on them.
    """

    name: str
    dims: tuple[str, ...] = ()
    dtype: type[np.generic] = np.float64
    units: str = ""
    label: str = ""
    evaluated: str = ""

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the results."""
        found = {"units": self.units, "long_name": self.label or self.name}
        return found | ({"evaluated": self.evaluated} if self.evaluated else {})


def variables_of(outputs: Outputs, measures: Sequence[Measure], nominal: Nominal) -> Iterator[Variable]:
    """Yield the outputs of the study, the status last: it is written last."""
    states = (("q", "position"), ("qd", "velocity"))
    yield Variable("parameters", ("parameter",), label="random inputs")
    if outputs.final:
        yield from (Variable(f"{name}_final", (dim,), label=f"final {name}") for name, dim in states)
    if outputs.extremes:
        for name, dim in states:
            yield Variable(f"{name}_min", (dim,), label=f"minimum of {name} over the motion")
            yield Variable(f"{name}_max", (dim,), label=f"maximum of {name} over the motion")
    if outputs.motion:
        yield from (Variable(name, ("time", dim), label=name) for name, dim in states)
    if nominal.events:
        yield Variable("event_count", ("event",), np.int64, label="number of occurrences of the event")
        yield Variable("event_time", ("event",), units="s", label="time of the first occurrence of the event")
    for measure in measures:
        units = measure.units_in(nominal.model)
        label = f"{measure.name} ({units})" if units else measure.name
        yield Variable(measure.name, units=units, label=label, evaluated=measure.evaluated)
    if _may_warn(nominal):
        yield Variable(WARNINGS, dtype=np.int8, label=WARNINGS_LABEL)
    yield Variable("end_time", units="s", label="last valid time of the sample")
    yield Variable("status", dtype=np.int8, label=STATUS_LABEL)


def _may_warn(nominal: Nominal) -> bool:
    """Whether a sample can have a warning."""
    has_contacts = nominal.simulation.method == "moreau" and any(is_contact(force) for force in nominal.forces)
    has_limits = np.isfinite(nominal.model.position_limits).any()
    return bool(has_contacts or has_limits or any(isinstance(drive, Sampled) for drive in nominal.drives))


def outputs_of_invalid_draws(
    variables: Sequence[Variable], sizes: Mapping[str, int], values: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the outputs of samples with invalid draws (m, columns): NaN or 0, and the status."""
    outputs = {}
    for variable in variables:
        shape = (len(values), *(sizes[d] for d in variable.dims))
        outputs[variable.name] = np.full(shape, np.nan if variable.dtype is np.float64 else 0, variable.dtype)
    return outputs | {
        "parameters": np.array(values),  # a design may be read-only
        "status": np.full(len(values), Status.INVALID_PARAMETERS, np.int8),
        "end_time": np.zeros(len(values)),
    }


def outputs_of(
    variables: Sequence[Variable],
    measures: Sequence[Measure],
    values: np.ndarray,
    many: Model,
    motion: Trajectory,
    events: Sequence[Event],
    drives: Sequence[Drive],
    saved: slice,
) -> dict[str, np.ndarray]:
    """Compute all outputs of the samples with draws (m, columns), by name, from their models and trajectories.

    `saved` are the times of the trajectories to store.
    """
    failed = motion.failed
    outputs = {"parameters": values, "status": motion.status.astype(np.int8), "end_time": motion.end_time}
    if any(variable.name == WARNINGS for variable in variables):
        outputs[WARNINGS] = warnings_of(motion)
    nan_if_failed = np.where(failed, np.nan, 1.0)
    for name, states in (("q", motion.q), ("qd", motion.qd)):
        outputs |= {name: states[:, saved], f"{name}_final": states[:, -1] * nan_if_failed[:, None]}
    if events:
        outputs["event_count"] = np.stack([record.count for record in motion.events], -1)
        outputs["event_time"] = np.stack([record.t[..., 0] for record in motion.events], -1)
    at_rest = AtRest(motion)
    for i, measure in enumerate(measures):
        with _errors_of(i, measure):
            if measure.is_at_rest:  # all of them share the equilibria
                outputs[measure.name] = at_rest.values(measure) * measure.factor(many) * nan_if_failed
            elif not measure.is_in_steps:
                outputs[measure.name] = measure.values(many, motion, drives) * nan_if_failed
    if any(m.is_in_steps for m in measures) or any(v.name in EXTREMES for v in variables):
        found = _outputs_in_steps(variables, measures, many, motion, drives)
        outputs |= {name: (x.T * nan_if_failed).T for name, x in found.items()}
    return {v.name: outputs[v.name].astype(v.dtype, copy=False) for v in variables}


def needs_steps(measures: Sequence[Measure], variables: Sequence[Variable], events: Sequence[Event]) -> bool:
    """Whether outputs need the accepted steps of the trajectories."""
    return any(m.needs_steps(events) for m in measures) or any(v.name in EXTREMES for v in variables)


def _errors_of(i: int, measure: Measure) -> AbstractContextManager[None]:
    """Turn errors into a StudyError that names measure i."""
    return errors_at(f"measures[{i}], {measure.name!r}")


def _outputs_in_steps(
    variables: Sequence[Variable],
    measures: Sequence[Measure],
    many: Model,
    motion: Trajectory,
    drives: Sequence[Drive],
) -> dict[str, np.ndarray]:
    """Compute the measures and extremes that need the accepted steps, by name."""
    chosen = [(i, measure) for i, measure in enumerate(measures) if measure.is_in_steps]
    quantities = [partial(_quantity, i, measure, many, drives) for i, measure in chosen]
    names = {v.name.rpartition("_")[0]: v.name for v in variables if v.name in EXTREMES}
    entries = [(name, i) for name in names for i in range(getattr(motion, name).shape[-1])]
    quantities += [partial(_entry, name, i) for name, i in entries]
    found = in_steps(motion, quantities)
    outputs = {m.name: m.reduced_in_steps(x, many, motion, drives) for (_, m), x in zip(chosen, found, strict=False)}
    for name in names:
        rows = [x for x, (of, _) in zip(found[len(chosen) :], entries, strict=True) if of == name]
        outputs[f"{name}_max"] = np.stack([largest(x) for x in rows], -1)
        outputs[f"{name}_min"] = np.stack([smallest(x) for x in rows], -1)
    return outputs


def _quantity(i: int, measure: Measure, many: Model, drives: Sequence[Drive], motion: Trajectory) -> np.ndarray:
    """Return the quantity of measure i at the times of a trajectory."""
    with _errors_of(i, measure):
        return quantity_of(Case(measure, many, motion, drives))


def _entry(name: str, i: int, motion: Trajectory) -> np.ndarray:
    """Return entry i of q or qd at the times of a trajectory."""
    return np.asarray(getattr(motion, name)[..., i], float)
