"""Outputs: the arrays that are stored for each sample, computed from the trajectories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..actions.events import Event
from ..actions.sampled import Drive
from ..chain import Model
from ..errors import Status
from ..trajectory import Trajectory
from .description import Outputs
from .measures import Measure
from .nominal import Nominal
from .outcomes import NOT_RUN, has_failed
from .places import call_at

STATUS_LABEL = f"status: {Status.DONE:d} done, {Status.STOPPED:d} stopped by an event, {NOT_RUN} not run, others failed"


@dataclass(frozen=True)
class Variable:
    """An output of the study. `dims` are its axes after that of the samples."""

    name: str
    dims: tuple[str, ...] = ()
    dtype: type[np.generic] = np.float64
    units: str = ""
    label: str = ""


def variables_of(outputs: Outputs, measures: Sequence[Measure], nominal: Nominal) -> Iterator[Variable]:
    """Yield the outputs of the study, the status last: it is written last."""
    states = (("q", "position"), ("qd", "velocity"))
    yield Variable("parameters", ("parameter",), label="drawn numbers")
    if outputs.final:
        yield from (Variable(f"{name}_final", (dim,), label=f"final {name}") for name, dim in states)
    if outputs.extremes:
        for name, dim in states:
            yield Variable(f"{name}_min", (dim,), label=f"minimum of {name} over the evaluated times")
            yield Variable(f"{name}_max", (dim,), label=f"maximum of {name} over the evaluated times")
    if outputs.motion:
        yield from (Variable(name, ("time", dim), label=name) for name, dim in states)
    if nominal.events:
        yield Variable("event_count", ("event",), np.int64, label="number of occurrences of the event")
        yield Variable("event_time", ("event",), units="s", label="time of the first occurrence of the event")
    for measure in measures:
        units = measure.units_in(nominal.model)
        yield Variable(measure.name, units=units, label=f"{measure.name} ({units})" if units else measure.name)
    yield Variable("end_time", units="s", label="last evaluated time that the sample reached")
    yield Variable("status", dtype=np.int8, label=STATUS_LABEL)


def outputs_of_invalid_draws(
    variables: Sequence[Variable], sizes: Mapping[str, int], values: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the outputs of samples with invalid draws (m, columns): NaN or 0, and the status."""
    outputs = {}
    for variable in variables:
        shape = (len(values), *(sizes[d] for d in variable.dims))
        outputs[variable.name] = np.full(shape, np.nan if variable.dtype is np.float64 else 0, variable.dtype)
    return outputs | {
        "parameters": values,
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
) -> dict[str, np.ndarray]:
    """Compute all outputs of the samples with draws (m, columns), by name, from their models and motions."""
    failed = has_failed(motion.status)
    q, qd = motion.q, motion.qd
    ends = np.isfinite(qd).all(-1).sum(-1)
    motion = _held_after_stop(motion, events)
    outputs = {"parameters": values, "status": motion.status.astype(np.int8)}
    outputs["end_time"] = np.where(ends > 0, motion.t[np.maximum(ends, 1) - 1], 0.0)
    nan_if_failed = np.where(failed, np.nan, 1.0)
    for name, held, raw in (("q", motion.q, q), ("qd", motion.qd, qd)):
        outputs |= {
            name: raw,
            f"{name}_final": held[:, -1] * nan_if_failed[:, None],
            f"{name}_min": held.min(1) * nan_if_failed[:, None],
            f"{name}_max": held.max(1) * nan_if_failed[:, None],
        }
    if events:
        outputs["event_count"] = np.stack([record.count for record in motion.events], -1)
        outputs["event_time"] = np.stack([record.t[..., 0] for record in motion.events], -1)
    for i, measure in enumerate(measures):
        outputs[measure.name] = (
            call_at(f"measures[{i}], {measure.name!r}", measure.values, many, motion, drives) * nan_if_failed
        )
    return {v.name: outputs[v.name].astype(v.dtype, copy=False) for v in variables}


def _held_after_stop(motion: Trajectory, events: Sequence[Event]) -> Trajectory:
    """Return the motion with the state of each sample held from the event that stopped it to the end."""
    stopped = motion.status == Status.STOPPED
    if not stopped.any():
        return motion
    q, qd, t = motion.q.copy(), motion.qd.copy(), np.full(stopped.shape, np.inf)
    for event, record in zip(events, motion.events, strict=True):
        if event.stop:
            first = stopped & (record.count > 0) & np.isinf(t)
            t[first] = record.t[first, 0]
            later = first[:, None] & (motion.t >= t[:, None])
            q[later] = np.broadcast_to(record.q[:, :1], q.shape)[later]
            qd[later] = np.broadcast_to(record.qd[:, :1], qd.shape)[later]
    return replace(motion, q=q, qd=qd)
